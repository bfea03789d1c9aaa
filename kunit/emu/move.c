// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory that moves while it is used for RDMA: WRs that use it wait, and continue at its
 * new place; none is lost, executed twice or ends in error. The cases call pause_mr and
 * resume_mr of the device as the midlayer does when a dma-buf moves; the memory is that of
 * the card of peer_rig.h.
 */
#include <kverbs/delay.h>

#include "emu/peer_rig.h"
#include "emu/rig_net.h"
#include "emu/window.h"
#include "lib/objects.h"

#define LEN		60000
/* Number of moves under traffic of each kind. */
#define MOVES		100
/* Number of pauses during atomic operations. */
#define PAUSES		4000
#define SRQ_DEPTH	4

KUNIT_ARRAY_PARAM_DESC(use, uses, name);

/* "send into": the receive is in the card's memory. */
static const struct use *const recv_use = &uses[1];

static const struct use *use_of(struct kunit *test)
{
	return test->param_value;
}

static void expect_waiting(struct kunit *test, struct traffic *t)
{
	KUNIT_EXPECT_TRUE(test, rig_empty(t->r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(t->r->b.rcq));
}

static void expect_success(struct kunit *test, struct traffic *t, u64 id)
{
	traffic_expect(test, t, id, IB_WC_SUCCESS, IB_WC_SUCCESS);
}

static void what_is_on_the_move_is_waited_for(struct kunit *test)
{
	struct card *c = card_up(test, false);
	struct traffic *t;
	int pair, i;
	u32 len;

	for (pair = 0; pair < ARRAY_SIZE(rig_pairs); pair++) {
		t = traffic_up(test, c, use_of(test), &rig_pairs[pair]);
		len = traffic_len(t, LEN);
		/* Two moves: to contiguous pages, which make larger ones, and back. */
		for (i = 1; i <= 2; i++) {
			traffic_fill(t, len, i);
			traffic_pause(t);
			KUNIT_ASSERT_EQ(test, 0, traffic_post(t, i, len));
			expect_waiting(test, t);
			card_move(c);
			KUNIT_ASSERT_EQ(test, 0, traffic_resume(t));
			expect_success(test, t, i);
			KUNIT_EXPECT_TRUE(test, traffic_arrived(t, len, i));
		}
		traffic_end(test, t);
	}
}

static void what_waits_fails_when_the_memory_goes(struct kunit *test)
{
	struct card *c = card_up(test, false);
	struct traffic *t = traffic_up(test, c, use_of(test), &rig_pairs[1]);

	traffic_pause(t);
	KUNIT_ASSERT_EQ(test, 0, traffic_post(t, 1, traffic_len(t, LEN)));
	expect_waiting(test, t);
	KUNIT_EXPECT_EQ(test, 0, card_take_back(c, 0));
	traffic_expect(test, t, 1, t->use->want, t->use->want_recv);
	KUNIT_EXPECT_TRUE(test, card_all(c, USE_AT, USE_LEN, CARD_POISON));
}

static void what_waits_fails_when_the_region_ends(struct kunit *test)
{
	struct card *c = card_up(test, false);
	struct traffic *t = traffic_up(test, c, use_of(test), &rig_pairs[1]);

	if (t->mw)
		kunit_skip(test, "a region with windows does not end");
	traffic_pause(t);
	KUNIT_ASSERT_EQ(test, 0, traffic_post(t, 1, traffic_len(t, LEN)));
	expect_waiting(test, t);
	traffic_end(test, t);
	traffic_expect(test, t, 1, t->use->want, t->use->want_recv);
}

/* Each allocation of resume_mr fails in turn: the MR stays paused until resume_mr succeeds. */
static void region_that_cannot_go_on_waits(struct kunit *test)
{
	struct card *c = card_up(test, false);
	struct traffic *t = traffic_up(test, c, &uses[5], &rig_pairs[1]);
	unsigned int nth = 0;
	int ret;

	kvt_need_injection(test);
	traffic_fill(t, LEN, 1);
	traffic_pause(t);
	KUNIT_ASSERT_EQ(test, 0, traffic_post(t, 1, LEN));
	do {
		kvt_fail_nth(++nth);
		ret = traffic_resume(t);
		kvt_failed_nth();
		if (ret) {
			KUNIT_ASSERT_EQ(test, -ENOMEM, ret);
			expect_waiting(test, t);
		}
	} while (ret && nth < 100);
	KUNIT_EXPECT_EQ(test, 0, ret);
	KUNIT_EXPECT_GT(test, nth, 1);
	expect_success(test, t, 1);
	KUNIT_EXPECT_TRUE(test, traffic_arrived(t, LEN, 1));
}

static void binding_waits(struct kunit *test)
{
	struct card *c = card_up(test, false);
	struct traffic *t = traffic_up(test, c, &uses[5], &rig_pairs[0]);
	struct ib_mw *mw = win_new(test, t->r->b.pd, IB_MW_TYPE_2);
	struct rig_end *e = &t->r->b;
	struct ib_wc wc;

	traffic_pause(t);
	KUNIT_ASSERT_EQ(test, 0, win_bind(e, mw, t->mr, 0, 8, PEER_REMOTE, 1));
	KUNIT_EXPECT_TRUE(test, rig_empty(e->scq));
	KUNIT_ASSERT_EQ(test, 0, traffic_resume(t));
	RIG_EXPECT_WC(test, e->scq, &wc, 1, IB_WC_SUCCESS);
}

/* Receives in paused memory */

/* A connection whose second end receives from an SRQ if @shared, else from its own RQ. */
static struct traffic *receiver_up(struct kunit *test, bool shared)
{
	struct rig *r = rig_new(test, "emu0", "emu1");

	if (shared)
		r->b.srq = kvt_srq(test, r->b.pd, SRQ_DEPTH, RIG_SGE);
	return traffic_up_on(test, card_up(test, false), recv_use, r);
}

static const bool shareds[] = { false, true };

static void shared_name(const bool *shared, char *desc)
{
	strscpy(desc, *shared ? "SRQ" : "own queue", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shared, shareds, shared_name);

static int post_recv(struct rig_end *e, const struct ib_recv_wr *wr)
{
	return e->srq ? ib_post_srq_recv(e->srq, wr, NULL) :
			ib_post_recv(e->qp, wr, NULL);
}

/*
 * Posts two receives, the first in the card's memory, which is paused, the second in the
 * host's; and a send for each. Neither send may complete.
 */
static void post_both(struct kunit *test, struct traffic *t)
{
	struct ib_sge card = { t->mr->iova + USE_SKIP, LEN, t->mr->lkey };
	struct ib_sge host = rig_sge(&t->r->b, 0, LEN);
	struct ib_recv_wr wr = { .wr_id = 1, .sg_list = &card, .num_sge = 1 };

	KUNIT_ASSERT_EQ(test, 0, post_recv(&t->r->b, &wr));
	wr.wr_id = 2;
	wr.sg_list = &host;
	KUNIT_ASSERT_EQ(test, 0, post_recv(&t->r->b, &wr));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&t->r->a, 1, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&t->r->a, 2, 0, LEN));
	expect_waiting(test, t);
}

static void receives_stay_in_order(struct kunit *test)
{
	const bool *shared = test->param_value;
	struct traffic *t = receiver_up(test, *shared);

	traffic_fill(t, LEN, 1);
	traffic_pause(t);
	post_both(test, t);
	card_move(t->c);
	KUNIT_ASSERT_EQ(test, 0, traffic_resume(t));
	expect_success(test, t, 1);
	expect_success(test, t, 2);
	KUNIT_EXPECT_TRUE(test, traffic_arrived(t, LEN, 1));
	KUNIT_EXPECT_TRUE(test, rig_filled(t->r->b.buf, LEN, 1));
}

/* A receive that a message has taken from an SRQ belongs to the QP, which flushes it. */
static void receive_that_waits_is_flushed(struct kunit *test)
{
	const bool *shared = test->param_value;
	struct traffic *t = receiver_up(test, *shared);
	struct ib_wc wc;

	traffic_pause(t);
	post_both(test, t);
	KUNIT_ASSERT_EQ(test, 0, rig_to(t->r->b.qp, IB_QPS_ERR));
	RIG_EXPECT_WC(test, t->r->b.rcq, &wc, 1, IB_WC_WR_FLUSH_ERR);
	if (*shared)
		KUNIT_EXPECT_TRUE(test, rig_empty(t->r->b.rcq));
	else
		RIG_EXPECT_WC(test, t->r->b.rcq, &wc, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_ASSERT_EQ(test, 0, rig_to(t->r->a.qp, IB_QPS_ERR));
	RIG_EXPECT_WC(test, t->r->a.scq, &wc, 1, IB_WC_WR_FLUSH_ERR);
	RIG_EXPECT_WC(test, t->r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
}

/* If a QP that has taken a receive is reset or destroyed, its room in the SRQ is free again. */
static void receive_that_waits_is_given_back(struct kunit *test)
{
	struct traffic *t = receiver_up(test, true);
	struct ib_sge sge = rig_sge(&t->r->b, 0, 8);
	struct ib_recv_wr wr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 };
	struct ib_wc wc;
	int i, way;

	for (way = 0; way < 2; way++) {
		traffic_pause(t);
		post_both(test, t);
		if (way)
			rig_destroy_qp(test, &t->r->b);
		else
			KUNIT_ASSERT_EQ(test, 0, rig_to(t->r->b.qp, IB_QPS_RESET));
		/* The second of the two receives is still in the SRQ. */
		for (i = 1; i < SRQ_DEPTH; i++)
			KUNIT_ASSERT_EQ(test, 0, post_recv(&t->r->b, &wr));
		KUNIT_EXPECT_EQ(test, -ENOMEM, post_recv(&t->r->b, &wr));
		KUNIT_ASSERT_EQ(test, 0, traffic_resume(t));
		if (way)
			return;
		KUNIT_ASSERT_EQ(test, 0, rig_to(t->r->a.qp, IB_QPS_RESET));
		rig_connect(test, t->r);
		for (i = 0; i < SRQ_DEPTH; i++) {
			KUNIT_ASSERT_EQ(test, 0, rig_send(&t->r->a, 4, 0, 8));
			RIG_EXPECT_WC(test, t->r->b.rcq, &wc, i ? 3 : 2, IB_WC_SUCCESS);
			RIG_EXPECT_WC(test, t->r->a.scq, &wc, 4, IB_WC_SUCCESS);
		}
	}
}

/* Datagrams */

static struct traffic *datagrams_up(struct kunit *test, struct ib_ah **ah)
{
	struct traffic *t = kvt_zalloc(test, sizeof(*t));

	t->r = rig_ud(test, "emu0", "emu1");
	t->c = card_up(test, false);
	t->use = recv_use;
	t->mr = card_mr(test, t->c, t->r->b.pd, USE_AT, USE_LEN);
	*ah = rig_ah(test, &t->r->a, &t->r->b);
	return t;
}

/* Posts a receive in the card's memory, of id 7. What is sent to it is of pattern 5. */
static void post_card_recv(struct kunit *test, struct traffic *t)
{
	struct ib_sge sge = { t->mr->iova + USE_SKIP, 500, t->mr->lkey };
	struct ib_recv_wr wr = { .wr_id = 7, .sg_list = &sge, .num_sge = 1 };

	rig_fill(t->r->a.buf, RIG_BUF, 5);
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(t->r->b.qp, &wr, NULL));
}

/*
 * Datagrams for a receive in paused memory are dropped. The sends complete with success,
 * and the receive stays posted.
 */
static void receive_of_datagrams_is_kept(struct kunit *test)
{
	struct ib_ah *ah;
	struct traffic *t = datagrams_up(test, &ah);
	struct rig *r = t->r;
	struct ib_wc wc;
	int i;

	post_card_recv(test, t);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 8, 0, 500));
	traffic_pause(t);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, i, 0, 200));
		RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_ASSERT_EQ(test, 0, traffic_resume(t));

	for (i = 7; i < 9; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, i, 0, 200));
		RIG_EXPECT_DELIVERED(test, r, &wc, i, i);
	}
	KUNIT_EXPECT_TRUE(test, card_holds(t->c, USE_AT + USE_SKIP + RIG_GRH, r->a.buf, 200));
}

/* What others do while a thread stands still with the place of the parked receive. */
struct others {
	struct traffic *t;
	struct ib_ah *ah;	/* of the second end, which sends to itself */
	u32 times;		/* how many datagrams it sends */
	u32 failed;		/* those that did not go into a receive posted last */
};

static void datagrams_go_on(void *arg)
{
	struct others *o = arg;
	struct rig_end *e = &o->t->r->b;
	struct ib_wc wc;
	u64 i;

	for (i = 100; i < 100 + o->times && !o->failed; i++) {
		if (rig_recv(e, i, 0, 500) || rig_ud_send(e, o->ah, e, i, 0, 200) ||
		    ib_poll_cq(e->scq, 1, &wc) != 1 || wc.wr_id != i ||
		    ib_poll_cq(e->rcq, 1, &wc) != 1 || wc.wr_id != i ||
		    wc.status != IB_WC_SUCCESS)
			o->failed++;
	}
}

static const u32 standstills[] = { 1, BIT(16) + 1 };

KVT_NUMBER_PARAM(standstill, standstills, "%u");

/* Nobody waits for it, and each receive is used once. */
static void thread_stands_still_with_a_parked_receive(struct kunit *test)
{
	static const char * const places[] = { "emu_park", "emu_claim_parked" };
	struct others o = { .times = *(const u32 *)test->param_value };
	struct ib_ah *ah;
	struct traffic *t = datagrams_up(test, &ah);
	struct rig *r = t->r;
	struct ib_wc wc;
	u64 i;

	o.t = t;
	o.ah = rig_ah(test, &r->b, &r->b);
	post_card_recv(test, t);
	traffic_pause(t);
	/* The first datagram is dropped, the second one goes where the first one was to go. */
	for (i = 0; i < 2; i++) {
		kverbs_delay_set(places[i], datagrams_go_on, &o);
		KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, i, 0, 200));
		KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
		KUNIT_EXPECT_EQ(test, 0, o.failed);
		RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_SUCCESS);
		if (i)
			RIG_EXPECT_WC(test, r->b.rcq, &wc, 7, IB_WC_SUCCESS);
		else
			KUNIT_ASSERT_EQ(test, 0, traffic_resume(t));
		KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	}
	KUNIT_EXPECT_TRUE(test, card_holds(t->c, USE_AT + USE_SKIP + RIG_GRH, r->a.buf, 200));
	rig_ah_put(test, o.ah);
}

static void sender_of_datagrams_waits(struct kunit *test)
{
	struct ib_ah *ah;
	struct traffic *t = datagrams_up(test, &ah);
	struct rig *r = t->r;
	struct ib_ud_wr wr;
	struct ib_sge sge;
	struct ib_wc wc;

	card_mr_end(test, t->mr);
	t->mr = card_mr(test, t->c, r->a.pd, USE_AT, USE_LEN);
	sge = (struct ib_sge) { t->mr->iova + USE_SKIP, 200, t->mr->lkey };
	card_fill(t->c, USE_AT, USE_LEN, CARD_FRESH);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 500));
	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	traffic_pause(t);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	expect_waiting(test, t);
	KUNIT_ASSERT_EQ(test, 0, traffic_resume(t));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 1);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + RIG_GRH, 200, CARD_FRESH));
}

/* A thread that uses memory over and over and checks its contents. */
struct stream {
	struct traffic *t;
	u64 done;	/* number of uses so far */
};

/*
 * Uses the memory once. Returns 0 or an errno that tells what was wrong. The card is locked
 * while its memory is filled and compared, so that it does not move meanwhile.
 */
static int stream_once(struct stream *s, u32 seed)
{
	struct traffic *t = s->t;
	u32 len = traffic_len(t, LEN);
	struct ib_wc wc;
	bool right;

	mutex_lock(&t->c->lock);
	traffic_fill(t, len, seed);
	mutex_unlock(&t->c->lock);
	if (traffic_post(t, 1, len) || !rig_poll(t->r->a.scq, &wc) || wc.status != IB_WC_SUCCESS)
		return -EIO;
	if (t->use->op == IB_WR_SEND && (!rig_poll(t->r->b.rcq, &wc) || wc.status != IB_WC_SUCCESS))
		return -EREMOTEIO;
	mutex_lock(&t->c->lock);
	right = traffic_arrived(t, len, seed);
	mutex_unlock(&t->c->lock);
	return right ? 0 : -EBADMSG;
}

static int stream(void *arg)
{
	struct stream *s = arg;
	u32 seed = 0;
	int ret = 0;

	while (!ret && !kvt_should_stop()) {
		ret = stream_once(s, ++seed);
		WRITE_ONCE(s->done, s->done + 1);
		kvt_yield();
	}
	return ret;
}

static int move_once(struct traffic *t)
{
	traffic_pause(t);
	mutex_lock(&t->c->lock);
	card_move(t->c);
	mutex_unlock(&t->c->lock);
	return traffic_resume(t);
}

static void memory_moves_under_traffic(struct kunit *test)
{
	u64 i, n = kvt_count(MOVES);
	u32 seed = kvt_seed(test, "moves", n);
	struct card *c = card_up(test, false);
	struct stream *s = kvt_zalloc(test, sizeof(*s));
	struct kvt_thread *thread;
	u64 end;

	s->t = traffic_up(test, c, use_of(test), &rig_pairs[1]);
	thread = kvt_thread_start(test, kvt_other_cpu(), stream, s);
	/* Without this, all moves might be over before the thread begins. */
	while (!READ_ONCE(s->done) && kvt_thread_running(thread))
		cond_resched();
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_EQ(test, 0, move_once(s->t));
		end = ktime_get_ns() + kvt_rand(&seed) % 200000;
		while (ktime_get_ns() < end)
			cond_resched();
	}
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_stop(thread));
	KUNIT_EXPECT_GT(test, s->done, 0);
}

/* Fetch-and-add must return consecutive numbers: no operation is lost or executed twice. */
static int count_up(void *arg)
{
	struct stream *s = arg;
	struct traffic *t = s->t;
	u64 *answer = (u64 *)card_at(t->c, USE_AT + USE_SKIP);
	struct ib_wc wc;

	while (!kvt_should_stop()) {
		if (traffic_post(t, 1, sizeof(u64)) ||
		    !rig_poll(t->r->a.scq, &wc) || wc.status != IB_WC_SUCCESS)
			return -EIO;
		if (READ_ONCE(*answer) != s->done)
			return -EBADMSG;
		WRITE_ONCE(s->done, s->done + 1);
		kvt_yield();
	}
	return 0;
}

/* Waits until one more operation has completed, and then @ns nanoseconds. */
static void let_it_count(struct stream *s, struct kvt_thread *thread, u32 ns)
{
	u64 done = READ_ONCE(s->done), end;

	while (READ_ONCE(s->done) == done && kvt_thread_running(thread))
		cond_resched();
	end = ktime_get_ns() + ns;
	while (ktime_get_ns() < end)
		cpu_relax();
}

/* An atomic is executed only once even if the memory for its result is paused for a while. */
static void atomic_operations_are_done_once(struct kunit *test)
{
	u64 i, n = kvt_count(PAUSES);
	u32 seed = kvt_seed(test, "pauses", n);
	struct card *c = card_up(test, false);
	struct stream *s = kvt_zalloc(test, sizeof(*s));
	struct kvt_thread *thread;

	s->t = traffic_up(test, c, &uses[8], &rig_pairs[0]);
	memset(traffic_host(s->t), 0, sizeof(u64));
	thread = kvt_thread_start(test, kvt_other_cpu(), count_up, s);
	for (i = 0; i < n && kvt_thread_running(thread); i++) {
		let_it_count(s, thread, kvt_rand(&seed) % 8192);
		traffic_pause(s->t);
		KUNIT_EXPECT_EQ(test, 0, traffic_resume(s->t));
	}
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_stop(thread));
	KUNIT_EXPECT_GT(test, s->done, 0);
}

static struct kunit_case emu_move_cases[] = {
	KUNIT_CASE_PARAM(what_is_on_the_move_is_waited_for, use_gen_params),
	KUNIT_CASE_PARAM(what_waits_fails_when_the_memory_goes, use_gen_params),
	KUNIT_CASE_PARAM(what_waits_fails_when_the_region_ends, use_gen_params),
	KUNIT_CASE(region_that_cannot_go_on_waits),
	KUNIT_CASE(binding_waits),
	KUNIT_CASE_PARAM(receives_stay_in_order, shared_gen_params),
	KUNIT_CASE_PARAM(receive_that_waits_is_flushed, shared_gen_params),
	KUNIT_CASE(receive_that_waits_is_given_back),
	KUNIT_CASE(receive_of_datagrams_is_kept),
	KUNIT_CASE_PARAM(thread_stands_still_with_a_parked_receive, standstill_gen_params),
	KUNIT_CASE(sender_of_datagrams_waits),
	KUNIT_CASE_PARAM(memory_moves_under_traffic, use_gen_params),
	KUNIT_CASE(atomic_operations_are_done_once),
	{}
};
KVT_SUITE(emu_move);
