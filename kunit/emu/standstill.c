// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread stands still in the middle of a post, a poll or a copy of the software HCA,
 * while others do more operations than a counter of few bits can count: nothing is
 * lost, nothing is refused that there is room for, and nobody waits. See
 * kverbs/delay.h. The name of a case that covers a row of the conformance table starts
 * with the row's id.
 */
#include <linux/delay.h>
#include <kverbs/delay.h>

#include "emu/rig_net.h"
#include "lib/objects.h"

#define SRQ_DEPTH	4
#define CQ_HELD		4
#define LEN		64

/* What others do while a thread stands still. */
struct standstill {
	/* The connection of the thread that stands still, or its datagram queue pairs. */
	struct rig *r;
	struct rig *other;	/* the connection of the others */
	struct ib_srq *srq;	/* where they receive */
	struct ib_ah *ah;	/* their address */
	u32 times;		/* how many messages they send */
	bool armed;		/* the receiver asks for a notification after each */
	u32 failed;		/* messages that could not be posted, or did not complete */
};

/* More than 15, and than 16, bits can tell apart. */
static const u32 standstills[] = { 3, BIT(15) + 1, BIT(16) - 1, BIT(16) + 1 };

KVT_NUMBER_PARAM(standstill, standstills, "%u");

static u32 times_of(struct kunit *test)
{
	return *(const u32 *)test->param_value;
}

static bool succeeded(struct ib_cq *cq)
{
	struct ib_wc wc;

	return ib_poll_cq(cq, 1, &wc) == 1 && wc.status == IB_WC_SUCCESS;
}

static void connection_goes_on(void *arg)
{
	struct standstill *s = arg;
	struct rig *r = s->other;
	u32 i;

	for (i = 0; i < s->times && !s->failed; i++) {
		if (rig_recv(&r->b, i, 0, LEN) || rig_send(&r->a, i, 0, LEN) ||
		    !succeeded(r->a.scq) || !succeeded(r->b.rcq) ||
		    (s->armed && ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP)))
			s->failed++;
	}
}

/* @nr messages arrive, and nobody polls. */
static void send_messages(struct kunit *test, struct rig *r, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, 0, LEN));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, LEN));
	}
}

/* They are polled. */
static void expect_messages(struct kunit *test, struct rig *r, u32 nr)
{
	while (nr--) {
		KUNIT_EXPECT_TRUE(test, succeeded(r->a.scq));
		KUNIT_EXPECT_TRUE(test, succeeded(r->b.rcq));
	}
}

/* As many sends as the queue has entries are taken, and complete; not one more. */
static void expect_whole_queue(struct kunit *test, struct rig *r)
{
	send_messages(test, r, RIG_WR);
	KUNIT_EXPECT_EQ(test, -ENOMEM, rig_send(&r->a, RIG_WR, 0, LEN));
	KUNIT_EXPECT_EQ(test, -ENOMEM, rig_recv(&r->b, RIG_WR, 0, LEN));
	expect_messages(test, r, RIG_WR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

static void p12_late_poller_makes_room_once(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct standstill s = { .other = r, .times = times_of(test) };

	send_messages(test, r, 1);
	kverbs_delay_set("emu_cq_retire", connection_goes_on, &s);
	KUNIT_EXPECT_TRUE(test, succeeded(r->a.scq));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	/* The others polled the receive that belongs to it, and left their last one. */
	KUNIT_EXPECT_TRUE(test, succeeded(r->b.rcq));
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	expect_whole_queue(test, r);
}

static void poller_that_was_overtaken_polls_on(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct standstill s = { .other = r, .times = times_of(test) };

	/* The others take turns with it, and are done with one entry more than they send. */
	send_messages(test, r, 2);
	kverbs_delay_set("emu_cq_take", connection_goes_on, &s);
	KUNIT_EXPECT_TRUE(test, succeeded(r->a.scq));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	KUNIT_EXPECT_TRUE(test, succeeded(r->b.rcq));
	expect_messages(test, r, 1);
	expect_whole_queue(test, r);
}

static void poster_that_was_overtaken_posts(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct standstill s = { .other = r, .times = times_of(test) };

	kverbs_delay_set("emu_ring_reserve", connection_goes_on, &s);
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&r->b, 0, 0, LEN));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	KUNIT_EXPECT_EQ(test, 0, rig_send(&r->a, 0, 0, LEN));
	expect_messages(test, r, 1);
	expect_whole_queue(test, r);
}

/* A connection that completes into the same queues as @r. */
static struct rig *rig_onto(struct kunit *test, struct rig *r)
{
	struct rig *other = rig_new(test, "emu0", "emu1");

	other->a.scq = r->a.scq;
	other->b.rcq = r->b.rcq;
	rig_start(test, other);
	return other;
}

/* A connection goes before queues that are not its own. */
static void connection_end(struct kunit *test, struct rig *r)
{
	rig_destroy_qp(test, &r->a);
	rig_destroy_qp(test, &r->b);
}

static void completion_that_was_overtaken_is_written(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct standstill s = { .other = rig_onto(test, r), .times = times_of(test) };

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 0, 0, LEN));
	kverbs_delay_set("emu_cq_begin", connection_goes_on, &s);
	KUNIT_EXPECT_EQ(test, 0, rig_send(&r->a, 0, 0, LEN));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	expect_messages(test, r, 1);
	expect_whole_queue(test, r);
	connection_end(test, s.other);
}

static int srq_recv(struct standstill *s, u64 id)
{
	struct ib_sge sge[2] = { rig_sge(&s->r->b, 0, LEN), rig_sge(&s->r->b, LEN, LEN) };
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = 2 };

	return ib_post_srq_recv(s->srq, &wr, NULL);
}

/* The slow message has taken one of four receives: there is room for that one, always. */
static void srq_goes_on(void *arg)
{
	struct standstill *s = arg;
	u32 i;

	for (i = 0; i < s->times && !s->failed; i++) {
		if (srq_recv(s, SRQ_DEPTH + i) || srq_recv(s, 0) != -ENOMEM ||
		    rig_send(&s->other->a, i, 0, LEN) || !succeeded(s->other->a.scq) ||
		    !succeeded(s->other->b.rcq))
			s->failed++;
	}
}

static void s4_slow_message_keeps_no_place_in_an_srq(struct kunit *test)
{
	struct ib_sge sge[2];
	struct ib_send_wr wr;
	struct standstill s = {
		.r = rig_new(test, "emu0", "emu1"),
		.other = rig_new(test, "emu0", "emu1"),
		.times = times_of(test),
	};
	struct ib_wc wc;
	u32 i;

	s.srq = kvt_srq(test, s.r->b.pd, SRQ_DEPTH, 2);
	s.r->b.srq = s.srq;
	s.other->b.srq = s.srq;
	rig_start(test, s.r);
	rig_start(test, s.other);
	for (i = 0; i < SRQ_DEPTH; i++)
		KUNIT_ASSERT_EQ(test, 0, srq_recv(&s, i));

	for (i = 0; i < 2; i++)
		sge[i] = rig_sge(&s.r->a, SZ_1K + i * SZ_1K, LEN);
	rig_fill(s.r->a.buf + SZ_1K, SZ_2K, 7);
	rig_send_wr(&wr, 1, sge, 2);
	kverbs_delay_set("emu_copy", srq_goes_on, &s);
	KUNIT_EXPECT_EQ(test, 0, ib_post_send(s.r->a.qp, &wr, NULL));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	RIG_EXPECT_WC(test, s.r->a.scq, &wc, 1, IB_WC_SUCCESS);
	/* It has the receive that it took, and not one that was posted since. */
	RIG_EXPECT_WC(test, s.r->b.rcq, &wc, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 2 * LEN, wc.byte_len);
	KUNIT_EXPECT_MEMEQ(test, s.r->b.buf, s.r->a.buf + SZ_1K, LEN);
	KUNIT_EXPECT_MEMEQ(test, s.r->b.buf + LEN, s.r->a.buf + SZ_2K, LEN);
	KUNIT_EXPECT_EQ(test, 0, srq_recv(&s, 0));
	KUNIT_EXPECT_EQ(test, -ENOMEM, srq_recv(&s, 0));
	connection_end(test, s.r);
	connection_end(test, s.other);
}

/* A receive is taken and polled, and posted again. */
static void srq_turns_over(void *arg)
{
	struct standstill *s = arg;
	u32 i;

	for (i = 0; i < s->times && !s->failed; i++) {
		if (rig_send(&s->r->a, i, 0, LEN) || !succeeded(s->r->a.scq) ||
		    !succeeded(s->r->b.rcq) || srq_recv(s, i))
			s->failed++;
	}
}

/* A resize stands still after counting the receives, whose number stays the same. */
static void srq_counts_no_receive_twice(struct kunit *test)
{
	struct ib_srq_attr attr = { .max_wr = SRQ_DEPTH };
	struct standstill s = { .r = rig_new(test, "emu0", "emu1"), .times = times_of(test) };
	u32 i;

	s.srq = kvt_srq(test, s.r->b.pd, SRQ_DEPTH, 2);
	s.r->b.srq = s.srq;
	rig_start(test, s.r);
	for (i = 0; i < SRQ_DEPTH; i++)
		KUNIT_ASSERT_EQ(test, 0, srq_recv(&s, i));
	kverbs_delay_set("emu_srq_left", srq_turns_over, &s);
	KUNIT_EXPECT_EQ(test, 0, ib_modify_srq(s.srq, &attr, IB_SRQ_MAX_WR));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	attr.max_wr = SRQ_DEPTH - 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_srq(s.srq, &attr, IB_SRQ_MAX_WR));
	connection_end(test, s.r);
}

/* The same for completions. */
static void cq_counts_no_entry_twice(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct standstill s = { .other = r, .times = times_of(test) };

	send_messages(test, r, CQ_HELD);
	kverbs_delay_set("emu_cq_left", connection_goes_on, &s);
	KUNIT_EXPECT_EQ(test, 0, ib_resize_cq(r->a.scq, CQ_HELD));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	/* The size is a power of two. */
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_resize_cq(r->a.scq, CQ_HELD / 2));
	expect_messages(test, r, CQ_HELD);
}

/* The second end sends to itself. */
static void datagrams_go_on(void *arg)
{
	struct standstill *s = arg;
	struct rig_end *e = &s->r->b;
	u32 i;

	for (i = 0; i < s->times && !s->failed; i++) {
		if (rig_ud_send(e, s->ah, e, i, SZ_4K, LEN) || !succeeded(e->scq) ||
		    !succeeded(e->rcq) || rig_recv(e, RIG_WR + i, SZ_8K, RIG_GRH + LEN))
			s->failed++;
	}
}

static void u9_slow_datagram_keeps_one_place(struct kunit *test)
{
	struct standstill s = { .r = rig_ud(test, "emu0", "emu1"), .times = times_of(test) };
	struct rig *r = s.r;
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_wc wc;
	u32 i;

	s.ah = rig_ah(test, &r->b, &r->b);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 0, 0, RIG_GRH + LEN));
	for (i = 1; i < RIG_WR; i++)
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, SZ_8K, RIG_GRH + LEN));
	rig_fill(r->a.buf, LEN, 9);
	kverbs_delay_set("emu_copy", datagrams_go_on, &s);
	KUNIT_EXPECT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 0);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + RIG_GRH, LEN, 9));
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&r->b, 0, 0, RIG_GRH + LEN));
	KUNIT_EXPECT_EQ(test, -ENOMEM, rig_recv(&r->b, 0, 0, RIG_GRH + LEN));
	rig_ah_put(test, s.ah);
	rig_ah_put(test, ah);
}

static int peek(struct ib_cq *cq)
{
	return cq->device->ops.peek_cq(cq, 2);
}

/* The timer becomes the owner, executes what was posted, and gives up ownership. */
static void timer_goes_on(void *arg)
{
	struct standstill *s = arg;
	u32 i;

	for (i = 0; i < 2; i++)
		s->failed += !!rig_recv(&s->r->b, i, 0, LEN);
	s->failed += !kvt_spin_until(peek(s->r->a.scq) >= 2);
}

/* A thread that finds an owner which leaves before it can be notified becomes the owner. */
static void news_for_an_owner_that_has_left_are_seen(struct kunit *test)
{
	struct standstill s;
	struct rig *r;

	/* And a clock: the timer is to expire while this thread keeps its CPU. */
	kvt_need_two_cpus(test);
	r = rig_up(test, "emu0", "emu1");
	s = (struct standstill) { .r = r };
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 0, 0, LEN));
	KUNIT_ASSERT_TRUE(test, rig_empty(r->a.scq));
	kverbs_delay_set("emu_qp_own_or_signal", timer_goes_on, &s);
	KUNIT_EXPECT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	expect_messages(test, r, 2);
	/* It has let go of the queue pair. */
	expect_whole_queue(test, r);
}

/* A message is delivered by a thread that stands still at @place while others go on. */
static void stand_still_in_moderation(struct kunit *test, struct rig *r, const char *place)
{
	struct standstill s = {
		.other = rig_onto(test, r),
		.times = times_of(test),
		.armed = true,
	};

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 0, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP));
	kverbs_delay_set(place, connection_goes_on, &s);
	KUNIT_EXPECT_EQ(test, 0, rig_send(&r->a, 0, 0, LEN));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s.failed);
	KUNIT_EXPECT_TRUE(test, succeeded(r->a.scq));
	/* The others have polled its receive, and left their last one. */
	KUNIT_EXPECT_TRUE(test, succeeded(r->b.rcq));
	connection_end(test, s.other);
}

/* It defers the notification that others have asked for since, which comes when it is due. */
static void late_completion_defers_no_notification_for_ever(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");

	KUNIT_ASSERT_EQ(test, 0, rdma_set_cq_moderation(r->b.rcq, CQ_HELD, 0));
	stand_still_in_moderation(test, r, "emu_cq_defer");
	irq_work_sync(&r->b.rcq->notify.work);
	reinit_completion(&r->b.got_call);
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP));
	send_messages(test, r, CQ_HELD);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&r->b.got_call));
}

/* The time counts from when the thread goes on. */
static void late_timer_sends_the_notification(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");

	KUNIT_ASSERT_EQ(test, 0, rdma_set_cq_moderation(r->b.rcq, 0, 1));
	stand_still_in_moderation(test, r, "emu_cq_start_timer");
	KUNIT_EXPECT_TRUE(test, kvt_wait(&r->b.got_call));
}

/* What happens while a write stands still before it enters the region of its key. */
struct round {
	struct kvt_thread *thread;
	struct ib_fmr *fmr;
	u64 page;		/* that the keys of the round map */
	u32 key;		/* that the write names */
	int err;		/* what went wrong */
};

/* Maps and unmaps until the write's key comes again, for another page. */
static int fmr_key_comes_round(void *arg)
{
	struct round *round = arg;
	LIST_HEAD(list);
	int i;

	for (i = 0; i < 256 && !round->err; i++) {
		if (i % 128 == 0) {
			list_add(&round->fmr->list, &list);
			round->err = ib_unmap_fmr(&list);
			list_del_init(&round->fmr->list);
		}
		if (!round->err)
			round->err = ib_map_phys_fmr(round->fmr, &round->page, 1, 0);
	}
	if (!round->err && round->fmr->rkey != round->key)
		round->err = -ESTALE;
	return 0;
}

static void fmr_key_comes_round_meanwhile(void *arg)
{
	struct round *round = arg;

	kvt_thread_go(round->thread);
	while (kvt_thread_running(round->thread))
		cpu_relax();
}

static void expect_write(struct kunit *test, struct rig *r, u32 rkey)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 7, 0, LEN, 0, rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 7, IB_WC_SUCCESS);
}

/* The key names the new mapping by then, as if the write had been posted later. */
static void write_goes_where_its_key_leads_when_it_goes_on(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 255, .page_shift = PAGE_SHIFT };
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct round round = { .page = r->b.dma };
	u8 *old = r->b.buf, *new = old + PAGE_SIZE;
	bool there = false;
	int i;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	round.fmr = KVT_OWN(test, ib_alloc_fmr(r->b.pd, IB_ACCESS_LOCAL_WRITE |
					       IB_ACCESS_REMOTE_WRITE, &attr), kvt_end_fmr);
	KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(round.fmr, &round.page, 1, 0));
	round.key = round.fmr->rkey;
	round.page += PAGE_SIZE;
	/* The first finds the peer, the second one the region, which is remembered then. */
	expect_write(test, r, round.key);
	expect_write(test, r, round.key);
	rig_fill(r->a.buf, LEN, 1);
	round.thread = kvt_thread_new(test, kvt_other_cpu(), fmr_key_comes_round, &round);
	/* What goes on with other devices may have made it forget the peer, and so the region. */
	for (i = 0; i < 20 && !there; i++) {
		memset(r->b.buf, 0xee, RIG_BUF);
		kverbs_delay_set("emu_target_enter", fmr_key_comes_round_meanwhile, &round);
		expect_write(test, r, round.key);
		there = kverbs_delay_clear();
	}
	KUNIT_ASSERT_TRUE(test, there);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(round.thread));
	KUNIT_EXPECT_EQ(test, 0, round.err);
	KUNIT_EXPECT_TRUE(test, rig_all(old, PAGE_SIZE, 0xee));
	KUNIT_EXPECT_MEMEQ(test, new, r->a.buf, LEN);
}

static struct kunit_case emu_standstill_cases[] = {
	KUNIT_CASE_PARAM(p12_late_poller_makes_room_once, standstill_gen_params),
	KUNIT_CASE_PARAM(poller_that_was_overtaken_polls_on, standstill_gen_params),
	KUNIT_CASE_PARAM(poster_that_was_overtaken_posts, standstill_gen_params),
	KUNIT_CASE_PARAM(completion_that_was_overtaken_is_written, standstill_gen_params),
	KUNIT_CASE_PARAM(s4_slow_message_keeps_no_place_in_an_srq, standstill_gen_params),
	KUNIT_CASE_PARAM(srq_counts_no_receive_twice, standstill_gen_params),
	KUNIT_CASE_PARAM(cq_counts_no_entry_twice, standstill_gen_params),
	KUNIT_CASE_PARAM(u9_slow_datagram_keeps_one_place, standstill_gen_params),
	KUNIT_CASE_PARAM(late_completion_defers_no_notification_for_ever, standstill_gen_params),
	KUNIT_CASE_PARAM(late_timer_sends_the_notification, standstill_gen_params),
	KUNIT_CASE(news_for_an_owner_that_has_left_are_seen),
	KUNIT_CASE(write_goes_where_its_key_leads_when_it_goes_on),
	{}
};
KVT_SUITE(emu_standstill);

MODULE_DESCRIPTION("KUnit: threads that stand still in the software HCA");
MODULE_LICENSE("GPL");
