// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rings shared by a process and the kernel, while a kernel thread stands still in the middle of
 * an operation on them, for as long as others like: nothing is lost, taken twice, or published
 * too late for the process to wake up.
 */
#include <linux/delay.h>
#include <linux/sched.h>
#include <kverbs/delay.h>

#include "emu/process.h"
#include "lib/objects.h"

#define DEPTH	3
#define CQE	255

/* A connection to a process. */
struct link {
	struct rig *r;			/* the kernel's end, and the process's */
	struct process *process;	/* whose the second end is */
	struct emu_uring *cq;		/* where the process polls sends and receives */
	struct process_rings rings;	/* where it posts */
};

/* A connection whose second end has the CQ and the SRQ of @beside, unless that is NULL. */
static struct link *link_up(struct kunit *test, const struct link *beside)
{
	struct link *l = kvt_zalloc(test, sizeof(*l));
	struct rig_end *e;

	l->r = rig_new(test, "emu0", "emu1");
	l->r->rnr_retry = 0;
	e = &l->r->b;
	if (beside) {
		l->process = beside->process;
		l->cq = beside->cq;
		e->scq = beside->r->b.scq;
		e->rcq = e->scq;
		e->srq = beside->r->b.srq;
	} else {
		l->process = process_new(test, e->ibdev);
		e->scq = process_cq(test, l->process, CQE, e, &l->cq);
		e->rcq = e->scq;
	}
	return l;
}

static void link_start(struct kunit *test, struct link *l)
{
	rig_make_qp(test, l->r, &l->r->a);
	process_make_qp(test, l->process, l->r, &l->r->b, &l->rings);
	rig_connect(test, l->r);
}

/* The kernel's end sends nothing, with @flags. */
static int link_send(struct link *l, u64 id, int flags)
{
	struct ib_send_wr wr;

	rig_send_wr(&wr, id, NULL, 0);
	wr.send_flags |= flags;
	return ib_post_send(l->r->a.qp, &wr, NULL);
}

static bool link_sent(struct link *l)
{
	struct ib_wc wc;

	return rig_poll(l->r->a.scq, &wc) && wc.status == IB_WC_SUCCESS;
}

#define EXPECT_POLLED(test, l, id, want)					\
do {										\
	struct ib_uverbs_wc __wc = {};						\
										\
	KUNIT_EXPECT_TRUE(test, kvt_until(process_poll((l)->cq, &__wc)));	\
	KUNIT_EXPECT_EQ(test, (u64)(id), __wc.wr_id);				\
	KUNIT_EXPECT_EQ(test, (u32)(want), __wc.status);			\
} while (0)

static void process_and_kernel_send_to_each_other(struct kunit *test)
{
	struct link *l = link_up(test, NULL);
	struct ib_wc wc;
	u64 i;

	link_start(test, l);
	/* More often than the rings have places. */
	for (i = 0; i < 2 * CQE; i++) {
		KUNIT_ASSERT_TRUE(test, process_recv(l->rings.rq, i, NULL, 0));
		KUNIT_ASSERT_EQ(test, 0, link_send(l, i, 0));
		KUNIT_ASSERT_TRUE(test, link_sent(l));
		EXPECT_POLLED(test, l, i, IB_WC_SUCCESS);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&l->r->a, i, 0, 0));
		KUNIT_ASSERT_TRUE(test, process_send(l->rings.sq, i, NULL, 0));
		KUNIT_ASSERT_EQ(test, 0, process_doorbell(l->r->b.qp));
		RIG_EXPECT_WC(test, l->r->a.rcq, &wc, i, IB_WC_SUCCESS);
		EXPECT_POLLED(test, l, i, IB_WC_SUCCESS);
	}
}

/* --- a process that waits --- */

/* What happens while a thread stands still. */
struct meanwhile {
	struct link *link;
	int err;
};

/* Two links of one CQ, and a receive for a message of each. */
static struct link *two_links(struct kunit *test, struct link **other)
{
	struct link *l = link_up(test, NULL);

	*other = link_up(test, l);
	link_start(test, l);
	link_start(test, *other);
	KUNIT_ASSERT_TRUE(test, process_recv(l->rings.rq, 1, NULL, 0));
	KUNIT_ASSERT_TRUE(test, process_recv((*other)->rings.rq, 2, NULL, 0));
	return l;
}

static void send_unsolicited(void *arg)
{
	struct meanwhile *m = arg;

	m->err = link_send(m->link, 2, 0);
}

/*
 * A thread that has completed a solicited message stands still before it can say so; another
 * thread completes an unsolicited one, and copies both.
 */
static void solicited_completion_that_another_copies_is_told_of(struct kunit *test)
{
	struct link *other, *l = two_links(test, &other);
	struct meanwhile m = { .link = other, .err = -EXFULL };
	struct rig_end *e = &l->r->b;

	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(e->rcq, IB_CQ_SOLICITED));

	kverbs_delay_set("emu_user_completed", send_unsolicited, &m);
	KUNIT_EXPECT_EQ(test, 0, link_send(l, 1, IB_SEND_SOLICITED));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, m.err);
	KUNIT_EXPECT_EQ(test, 2, process_used(l->cq));
	KUNIT_EXPECT_TRUE_MSG(test, kvt_wait(&e->got_call), "the process sleeps for ever");
	EXPECT_POLLED(test, l, 1, IB_WC_SUCCESS);
	EXPECT_POLLED(test, l, 2, IB_WC_SUCCESS);
	rig_destroy_qp(test, &other->r->b);
}

/* Another one completes when the owner has found nothing more to copy, and is about to leave. */
static void completion_that_the_owner_has_not_seen_is_copied(struct kunit *test)
{
	struct link *other, *l = two_links(test, &other);
	struct meanwhile m = { .link = other, .err = -EXFULL };
	struct rig_end *e = &l->r->b;

	kverbs_delay_set("emu_user_cq_copied", send_unsolicited, &m);
	KUNIT_EXPECT_EQ(test, 0, link_send(l, 1, 0));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, m.err);
	EXPECT_POLLED(test, l, 1, IB_WC_SUCCESS);
	EXPECT_POLLED(test, l, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&e->called));
	rig_destroy_qp(test, &other->r->b);
}

/* A process that polls when its ring has just been found full. */
struct late_poll {
	struct link *link, *other;
	struct ib_uverbs_wc wc;
	int wrong;
};

static void poll_one(void *arg)
{
	struct late_poll *p = arg;

	p->wrong += !process_poll(p->link->cq, &p->wc) || p->wc.wr_id != 0;
}

/* Both completions wait for the thread that stands still. */
static void send_two(void *arg)
{
	struct late_poll *p = arg;

	p->wrong += link_send(p->other, CQE, 0) || link_send(p->other, CQE + 1, 0);
	kverbs_delay_set("emu_user_cq_lost", poll_one, p);
}

/* What comes behind a completion that was lost would vouch for it. */
static void c13_nothing_follows_what_was_lost(struct kunit *test)
{
	struct late_poll p = {};
	struct ib_uverbs_wc wc;
	u64 i;

	p.link = link_up(test, NULL);
	p.other = link_up(test, p.link);
	link_start(test, p.link);
	link_start(test, p.other);
	KUNIT_ASSERT_TRUE(test, process_recv(p.other->rings.rq, CQE, NULL, 0));
	KUNIT_ASSERT_TRUE(test, process_recv(p.other->rings.rq, CQE + 1, NULL, 0));
	for (i = 0; i < CQE; i++) {
		KUNIT_ASSERT_TRUE(test, process_recv(p.link->rings.rq, i, NULL, 0));
		if (i == CQE - 1)
			kverbs_delay_set("emu_user_cq_copied", send_two, &p);
		KUNIT_ASSERT_EQ(test, 0, link_send(p.link, i, 0));
		KUNIT_ASSERT_TRUE(test, link_sent(p.link));
	}
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, p.wrong);
	for (i = 1; i < CQE; i++)
		EXPECT_POLLED(test, p.link, i, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, process_poll(p.link->cq, &wc));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(p.other->r->b.qp));
	rig_destroy_qp(test, &p.other->r->b);
}

/* A process whose queue pairs complete so much that the copying is left to a work item. */
struct busy {
	struct link *link, *other;
	int left;		/* times that the owner still looks */
	int wrong;
	struct kvt_gate gate;	/* where the work item stands still */
};

static void work_stands_still(void *arg)
{
	struct busy *b = arg;

	kvt_gate_sleep(&b->gate);
}

static void owner_must_look_again(void *arg)
{
	struct ib_uverbs_wc wc;
	struct busy *b = arg;

	if (--b->left)
		kverbs_delay_set("emu_user_cq_copied", owner_must_look_again, b);
	else
		kverbs_delay_set_any("emu_user_cq_work", work_stands_still, b);
	b->wrong += !process_poll(b->link->cq, &wc) || wc.status != IB_WC_SUCCESS ||
		    link_send(b->other, 2, 0) || !link_sent(b->other) ||
		    !process_recv(b->other->rings.rq, 2, NULL, 0);
}

static int reset_fn(void *arg)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct busy *b = arg;

	return ib_modify_qp(b->link->r->b.qp, &attr, IB_QP_STATE);
}

/*
 * As when a process reads an event that a queue pair is drained, polls, and destroys it: what has
 * completed must not be lost on its way to the process.
 */
static void completion_on_its_way_outlives_its_queue_pair(struct kunit *test)
{
	struct busy *b = kvt_zalloc(test, sizeof(*b));
	struct kvt_thread *reset;

	b->link = two_links(test, &b->other);
	/* The owner looks once more each time, but for the last of its budget. */
	b->left = EMU_PUMP_BUDGET - 1;
	kvt_gate_init(&b->gate);
	kverbs_delay_set("emu_user_cq_copied", owner_must_look_again, b);
	KUNIT_EXPECT_EQ(test, 0, link_send(b->link, 1, 0));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&b->gate.entered));
	KUNIT_EXPECT_EQ(test, 0, b->wrong);
	KUNIT_ASSERT_TRUE(test, process_recv(b->link->rings.rq, 3, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, link_send(b->link, 3, 0));

	reset = kvt_thread_start(test, -1, reset_fn, b);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(reset));
	kvt_gate_open(&b->gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(reset));
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(reset));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	EXPECT_POLLED(test, b->link, 2, IB_WC_SUCCESS);
	EXPECT_POLLED(test, b->link, 3, IB_WC_SUCCESS);
	rig_destroy_qp(test, &b->other->r->b);
}

/* --- receives that are posted in the error state --- */

/* More than are looked at in a quarter of a second. */
#define IDLERS	1100

/* Queue pairs of a process in the error state, each with a receive queue and nothing in it. */
static void idlers_up(struct kunit *test, struct link *l, int nr)
{
	struct process_rings rings;
	struct rig_end e = l->r->b;

	while (nr--) {
		process_make_qp(test, l->process, l->r, &e, &rings);
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(l->r, &e));
		KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(e.qp));
	}
}

/* Nothing tells of them; however long there were none, and however many others look for some. */
static void receives_posted_in_the_error_state_are_flushed(struct kunit *test)
{
	struct link *l = link_up(test, NULL);
	static const u32 idle_ms[] = { 0, 1, 300, 2000 };
	u64 i;

	link_start(test, l);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(l->r->b.qp));
	for (i = 0; i < 2 * ARRAY_SIZE(idle_ms); i++) {
		if (i == ARRAY_SIZE(idle_ms))
			idlers_up(test, l, IDLERS);
		msleep(idle_ms[i % ARRAY_SIZE(idle_ms)]);
		KUNIT_ASSERT_TRUE(test, process_recv(l->rings.rq, i, NULL, 0));
		EXPECT_POLLED(test, l, i, IB_WC_WR_FLUSH_ERR);
	}
	/* It starts over. */
	KUNIT_ASSERT_EQ(test, 0, rig_to(l->r->b.qp, IB_QPS_RESET));
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(l->r, &l->r->b));
	KUNIT_ASSERT_TRUE(test, process_recv(l->rings.rq, 20, NULL, 0));
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(l->r->b.qp));
	EXPECT_POLLED(test, l, 20, IB_WC_WR_FLUSH_ERR);
}

/* Neither the flag nor the number of elements says that the data is in the entry. */
static void data_in_the_entry_needs_no_flag(struct kunit *test)
{
	struct link *l = link_up(test, NULL);
	u8 data[RIG_INLINE / 2];
	struct ib_wc wc;

	link_start(test, l);
	rig_fill(data, sizeof(data), 5);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&l->r->a, 2, 0, RIG_INLINE));
	KUNIT_ASSERT_TRUE(test, process_send_inline(l->rings.sq, 1, data, sizeof(data)));
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->b.qp));
	EXPECT_POLLED(test, l, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, l->r->a.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, sizeof(data), (size_t)wc.byte_len);
	KUNIT_EXPECT_TRUE(test, rig_filled(l->r->a.buf, sizeof(data), 5));
	/* And a message without data is one. */
	KUNIT_ASSERT_TRUE(test, process_send_inline(l->rings.sq, 3, data, 0));
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&l->r->a, 4, 0, 8));
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->b.qp));
	EXPECT_POLLED(test, l, 3, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, l->r->a.rcq, &wc, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0U, wc.byte_len);
}

/* --- sends that are not executed --- */

/* A process posts what its queue pair has no room for: the entry's own memory has none, either. */
static void atomic_without_room_for_its_element_is_refused(struct kunit *test)
{
	struct link *l = link_up(test, NULL);
	const struct ib_sge sge = { .lkey = RIG_BAD_KEY, .length = 8 };

	l->r->init.cap.max_send_sge = 0;
	link_start(test, l);
	KUNIT_ASSERT_TRUE(test, process_post(l->rings.sq, 1, IB_WR_ATOMIC_FETCH_AND_ADD, &sge, 1));
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->b.qp));
	EXPECT_POLLED(test, l, 1, IB_WC_LOC_QP_OP_ERR);
	/* In the error state, too, each entry is copied. */
	KUNIT_ASSERT_TRUE(test, process_post(l->rings.sq, 2, IB_WR_ATOMIC_CMP_AND_SWP, &sge, 1));
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->b.qp));
	EXPECT_POLLED(test, l, 2, IB_WC_WR_FLUSH_ERR);
}

/* More than the poster flushes before a runner goes on, and as many as the ring has room for. */
#define CHAIN	31

/*
 * The first one fails. Whether what is behind it has been flushed yet when the queue pair is moved
 * to RTS makes no difference.
 */
static void u7_recovery_flushes_what_a_process_posted_before(struct kunit *test)
{
	struct link *l = link_up(test, NULL);
	const struct ib_sge bad = { .lkey = RIG_BAD_KEY, .length = 8 };
	u64 i;

	l->r->init.qp_type = IB_QPT_UC;
	link_start(test, l);
	KUNIT_ASSERT_TRUE(test, process_send(l->rings.sq, 0, &bad, 1));
	for (i = 1; i < CHAIN; i++)
		KUNIT_ASSERT_TRUE(test, process_send(l->rings.sq, i, NULL, 0));
	/* Keeps the runner thread from ending the flush before the QP is moved to RTS. */
	sched_set_fifo(current);
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->b.qp));
	KUNIT_EXPECT_EQ(test, 0, rig_to(l->r->b.qp, IB_QPS_RTS));
	sched_set_normal(current, 0);
	EXPECT_POLLED(test, l, 0, IB_WC_LOC_PROT_ERR);
	for (i = 1; i < CHAIN; i++)
		EXPECT_POLLED(test, l, i, IB_WC_WR_FLUSH_ERR);
	KUNIT_ASSERT_TRUE(test, process_send(l->rings.sq, CHAIN, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->b.qp));
	EXPECT_POLLED(test, l, CHAIN, IB_WC_SUCCESS);
}

static const u32 send_types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };

KVT_NUMBER_PARAM(send_type, send_types, "type %u");

/* Moves the process's end to @state from RESET. The other end stays as it is. */
static void process_to(struct kunit *test, struct link *l, enum ib_qp_state state)
{
	struct rig_end *e = &l->r->b;

	if (state >= IB_QPS_INIT)
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(l->r, e));
	if (state >= IB_QPS_RTR)
		KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(l->r, e, &l->r->a));
	if (state >= IB_QPS_RTS)
		KUNIT_ASSERT_EQ(test, 0, rig_to_rts(l->r, e));
}

/* The doorbell has refused it, so nobody waits for its completion. */
static void p1_request_that_was_refused_is_neither_flushed_nor_sent(struct kunit *test)
{
	struct link *l = link_up(test, NULL);
	struct rig_end *e = &l->r->b;
	int state;

	l->r->init.qp_type = *(const u32 *)test->param_value;
	e->qkey = 1;
	rig_make_qp(test, l->r, &l->r->a);
	process_make_qp(test, l->process, l->r, e, &l->rings);
	for (state = IB_QPS_RESET; state <= IB_QPS_RTR; state++) {
		process_to(test, l, state);
		KUNIT_ASSERT_TRUE(test, process_send(l->rings.sq, 1, NULL, 0));
		KUNIT_EXPECT_EQ(test, -EINVAL, process_doorbell(e->qp));
		if (state == IB_QPS_RTR)
			KUNIT_ASSERT_EQ(test, 0, rig_to_rts(l->r, e));
		else if (state == IB_QPS_RESET)
			KUNIT_ASSERT_EQ(test, 0, rig_to_init(l->r, e));
		KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(e->qp));
		KUNIT_ASSERT_TRUE(test, process_send(l->rings.sq, 2, NULL, 0));
		KUNIT_EXPECT_EQ(test, 0, process_doorbell(e->qp));
		EXPECT_POLLED(test, l, 2, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_EQ(test, 0, process_used(l->cq));
		KUNIT_ASSERT_EQ(test, 0, rig_to(e->qp, IB_QPS_RESET));
	}
}

static void fail_and_post(void *arg)
{
	struct meanwhile *m = arg;
	struct link *l = m->link;

	m->err = rig_send(&l->r->a, 0, 0, 8);
	if (!process_send(l->rings.sq, 2, NULL, 0))
		m->err = -ENOSPC;
	/* If it had not failed, the doorbell would wait for the one that stands still here. */
	if (!process_used(l->cq))
		m->err = -EINVAL;
	m->err = m->err ?: process_doorbell(l->r->b.qp);
}

/* What was posted after the queue pair had failed is flushed, whatever else was posted before. */
static void post_in_the_error_state_is_not_dropped(struct kunit *test)
{
	struct link *l = link_up(test, NULL);
	struct meanwhile m = { .link = l, .err = -1 };
	const struct ib_sge bad = { .lkey = RIG_BAD_KEY, .length = 8 };

	link_start(test, l);
	KUNIT_ASSERT_EQ(test, 0, rig_to(l->r->b.qp, IB_QPS_RESET));
	process_to(test, l, IB_QPS_RTR);
	KUNIT_ASSERT_TRUE(test, process_recv(l->rings.rq, 0, &bad, 1));
	KUNIT_ASSERT_TRUE(test, process_send(l->rings.sq, 1, NULL, 0));
	kverbs_delay_set("emu_drop_for_user", fail_and_post, &m);
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->b.qp));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, m.err);
	EXPECT_POLLED(test, l, 0, IB_WC_LOC_PROT_ERR);
	EXPECT_POLLED(test, l, 1, IB_WC_WR_FLUSH_ERR);
	EXPECT_POLLED(test, l, 2, IB_WC_WR_FLUSH_ERR);
}

/* --- receives that several take --- */

/* Two queue pairs of a process that take receives of one SRQ. */
struct sharers {
	struct link *slow;		/* who stands still */
	struct link *other;		/* who goes on */
	struct ib_srq *srq;		/* where both receive */
	struct emu_uring *ring;		/* where the process posts */
	u32 times;			/* how many messages @other receives meanwhile */
	u64 next;			/* number of the receive that is posted next */
	u64 taken;			/* number of the receive that is to be taken next */
	u32 failed;			/* messages that did not arrive in it */
};

/* More than 15, and than 16, bits can tell apart; or exactly as many as the ring has places. */
static const u32 standstills[] = { 1, DEPTH + 1, BIT(15) + 1, BIT(16), BIT(16) + 1 };

KVT_NUMBER_PARAM(standstill, standstills, "%u");

static struct sharers *sharers_up(struct kunit *test)
{
	struct sharers *s = kvt_zalloc(test, sizeof(*s));
	struct rig_end *e;

	s->slow = link_up(test, NULL);
	e = &s->slow->r->b;
	s->srq = process_srq(test, s->slow->process, e->pd, DEPTH, 1, &s->ring);
	e->srq = s->srq;
	s->other = link_up(test, s->slow);
	link_start(test, s->slow);
	link_start(test, s->other);
	if (test->param_value)
		s->times = *(const u32 *)test->param_value;
	return s;
}

static bool sharers_post(struct sharers *s)
{
	if (!process_recv(s->ring, s->next, NULL, 0))
		return false;
	s->next++;
	return true;
}

/* A message to @l must arrive in the oldest receive. */
static bool sharers_receive(struct sharers *s, struct link *l)
{
	struct ib_uverbs_wc wc;

	return !link_send(l, 0, 0) && link_sent(l) && kvt_until(process_poll(l->cq, &wc)) &&
	       !wc.status && wc.wr_id == s->taken++;
}

static void others_receive(void *arg)
{
	struct sharers *s = arg;
	u32 i;

	for (i = 0; i < s->times && !s->failed; i++) {
		if (!sharers_receive(s, s->other) || !sharers_post(s))
			s->failed++;
	}
}

/* The thread that has copied the oldest receive finds that it is not the oldest any more. */
static void receive_that_another_took_is_not_taken_again(struct kunit *test)
{
	struct sharers *s = sharers_up(test);
	u32 i;

	while (sharers_post(s))
		;
	KUNIT_EXPECT_EQ(test, DEPTH, s->next);
	kverbs_delay_set("emu_user_claim", others_receive, s);
	KUNIT_EXPECT_TRUE(test, sharers_receive(s, s->slow));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s->failed);
	for (i = 1; i < DEPTH; i++)
		KUNIT_EXPECT_TRUE(test, sharers_receive(s, s->other));
	KUNIT_EXPECT_EQ(test, 0, process_used(s->ring));
	rig_destroy_qp(test, &s->slow->r->b);
	rig_destroy_qp(test, &s->other->r->b);
}

static void others_receive_after_it(void *arg)
{
	struct sharers *s = arg;

	/* It has taken one, which is not in the CQ yet. */
	s->taken++;
	others_receive(s);
}

/* A thread that is late to publish the position still publishes the latest one. */
static void place_of_a_receive_is_given_back_once(struct kunit *test)
{
	struct sharers *s = sharers_up(test);
	struct ib_uverbs_wc wc = {};

	while (sharers_post(s))
		;
	kverbs_delay_set("emu_user_publish_taken", others_receive_after_it, s);
	KUNIT_EXPECT_EQ(test, 0, link_send(s->slow, 0, 0));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, s->failed);
	KUNIT_EXPECT_TRUE(test, link_sent(s->slow));
	KUNIT_EXPECT_TRUE(test, kvt_until(process_poll(s->slow->cq, &wc)));
	KUNIT_EXPECT_EQ(test, 0, wc.wr_id);
	/* The ring is full but for that one. */
	KUNIT_EXPECT_EQ(test, DEPTH - 1, process_used(s->ring));
	KUNIT_EXPECT_TRUE(test, sharers_post(s));
	KUNIT_EXPECT_FALSE(test, sharers_post(s));
	rig_destroy_qp(test, &s->slow->r->b);
	rig_destroy_qp(test, &s->other->r->b);
}

/* The process goes on with the ring that it has: librxe maps a new one only after success. */
static void ring_stays_if_the_limit_is_refused(struct kunit *test)
{
	struct sharers *s = sharers_up(test);
	struct ib_srq_attr attr = {}, bad = { .max_wr = 4 * DEPTH, .srq_limit = 64 * DEPTH };
	struct emu_uring *ring = s->ring;

	KUNIT_EXPECT_EQ(test, -EINVAL,
			process_modify_srq(s->slow->process, s->srq, &bad,
					   IB_SRQ_MAX_WR | IB_SRQ_LIMIT, &ring));
	KUNIT_ASSERT_EQ(test, 0, ib_query_srq(s->srq, &attr));
	KUNIT_ASSERT_EQ(test, DEPTH, attr.max_wr);
	KUNIT_EXPECT_TRUE(test, sharers_post(s));
	KUNIT_EXPECT_TRUE(test, sharers_receive(s, s->other));
	rig_destroy_qp(test, &s->slow->r->b);
	rig_destroy_qp(test, &s->other->r->b);
}

static struct kunit_case emu_process_ring_cases[] = {
	KUNIT_CASE(process_and_kernel_send_to_each_other),
	KUNIT_CASE(solicited_completion_that_another_copies_is_told_of),
	KUNIT_CASE(completion_that_the_owner_has_not_seen_is_copied),
	KUNIT_CASE(c13_nothing_follows_what_was_lost),
	KUNIT_CASE(completion_on_its_way_outlives_its_queue_pair),
	KUNIT_CASE(receives_posted_in_the_error_state_are_flushed),
	KUNIT_CASE(data_in_the_entry_needs_no_flag),
	KUNIT_CASE(atomic_without_room_for_its_element_is_refused),
	KUNIT_CASE(u7_recovery_flushes_what_a_process_posted_before),
	KUNIT_CASE_PARAM(p1_request_that_was_refused_is_neither_flushed_nor_sent,
			 send_type_gen_params),
	KUNIT_CASE(post_in_the_error_state_is_not_dropped),
	KUNIT_CASE(ring_stays_if_the_limit_is_refused),
	KUNIT_CASE_PARAM(receive_that_another_took_is_not_taken_again, standstill_gen_params),
	KUNIT_CASE_PARAM(place_of_a_receive_is_given_back_once, standstill_gen_params),
	{}
};
KVT_SUITE(emu_process_ring);
