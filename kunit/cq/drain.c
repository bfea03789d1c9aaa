// SPDX-License-Identifier: GPL-2.0-only
/*
 * Draining QPs in every polling context: with late completions, without busy polling,
 * when the CQ fails, beside other drains and traffic, in a done(), and with an SRQ.
 */
#include <linux/delay.h>
#include <kverbs/completion.h>

#include "cq/rig.h"
#include "lib/console.h"
#include "lib/mock.h"
#include "lib/objects.h"

#define BEFORE		50
#define LATE_NS		(300 * NSEC_PER_MSEC)
#define SOON_NS		(5 * NSEC_PER_MSEC)
#define ROUNDS		100

/* Polls allowed per drained queue: one at once, one when notified, some for lost races. */
#define POLLS_MAX	8

/* Delay in each done(), so that completions are handled late. */
#define SLOW_US		200

static void drain_waits_for_what_completes_late(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, BEFORE);
	struct ib_qp *qp = recorder_qp(test, rec);
	struct mock_cq_counts before, after;

	rec->m->flush_ns = LATE_NS;
	rec->expect = BEFORE;
	items_push_each(test, items, BEFORE, qp);
	mock_cq_count(rec->cq, &before);
	ib_drain_qp(qp);
	mock_cq_count(rec->cq, &after);
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, 0, mock_cq_pending(rec->cq));
	kunit_info(test, "%llu polls", after.polls - before.polls);
	KUNIT_EXPECT_LE(test, after.polls - before.polls, BEFORE / 16 + 2 * POLLS_MAX);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

static void each_queue_is_drained_alone(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct ib_qp *qp = recorder_qp(test, rec);

	rec->m->flush_ns = SOON_NS;
	ib_drain_sq(qp);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, mock_qp_state(qp));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(rec->m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(rec->m, MOCK_post_recv));
	ib_drain_rq(qp);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(rec->m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(rec->m, MOCK_post_recv));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

/* --- when the CQ fails ------------------------------------------------------- */

/* Reports a CQ error when the drain waits for its send, whose flush the CQ has lost. */
static int fail_fn(void *arg)
{
	struct recorder *rec = arg;

	while (!mock_calls(rec->m, MOCK_post_send))
		schedule();
	ib_cq_notify_event(rec->cq, IB_EVENT_CQ_ERR);
	return 0;
}

static void drain_gives_up_when_its_cq_fails(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, BEFORE);
	struct ib_qp *qp = recorder_qp(test, rec);
	struct kvt_thread *t;

	rec->m->flush_lost = true;
	rec->expect = BEFORE;
	items_push_each(test, items, BEFORE, qp);
	t = kvt_thread_start(test, kvt_other_cpu(), fail_fn, rec);
	ib_drain_qp(qp);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(rec->m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(rec->m, MOCK_post_recv));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

static int drain_fn(void *arg)
{
	ib_drain_qp(arg);
	return 0;
}

static void drain_that_waits_says_so(struct kunit *test)
{
	struct kvt_console *said = kvt_console_watch(test, "still no completion in CQ");
	struct recorder *rec = recorder_of_param(test);
	struct ib_qp *qp = recorder_qp(test, rec);
	struct kvt_thread *t;

	rec->m->flush_lost = true;
	cq_rig_warn_soon(test);
	t = kvt_thread_start(test, -1, drain_fn, qp);
	KUNIT_EXPECT_TRUE(test, kvt_console_wait(said));
	ib_cq_notify_event(rec->cq, IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

static void drain_of_a_cq_that_failed_handles_what_is_there(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, BEFORE);
	struct ib_qp *qp = recorder_qp(test, rec);

	ib_cq_notify_event(rec->cq, IB_EVENT_CQ_ERR);
	rec->expect = BEFORE;
	items_push_each(test, items, BEFORE, qp);
	ib_drain_qp(qp);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, mock_qp_state(qp));
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(rec->m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(rec->m, MOCK_post_recv));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

/* --- several at once -------------------------------------------------------- */

/* Drains QPs of one CQ again and again. */
struct drainer {
	struct ib_pd *pd;	/* of the QPs */
	struct ib_cq *cq;	/* their CQ */
	u64 rounds;		/* how often */
};

static int drainer_fn(void *arg)
{
	struct drainer *d = arg;
	struct ib_qp_init_attr init = {
		.send_cq = d->cq, .recv_cq = d->cq, .qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1 },
	};
	struct ib_qp *qp;
	u64 i;

	for (i = 0; i < d->rounds; i++) {
		qp = ib_create_qp(d->pd, &init);
		if (IS_ERR(qp))
			return PTR_ERR(qp);
		if (kvt_qp_to_init(qp, 1))
			return -EINVAL;
		ib_drain_qp(qp);
		ib_destroy_qp(qp);
	}
	return 0;
}

static int poller_fn(void *arg)
{
	struct recorder *rec = arg;

	while (!kvt_should_stop()) {
		ib_process_cq_direct(rec->cq, -1);
		schedule();
	}
	return 0;
}

/* Pushes completions of its own to the CQ while others drain QPs. */
static int chatter_fn(void *arg)
{
	struct recorder *rec = arg;
	struct item it = { .dones = 1 };
	u32 n = 0;

	while (!kvt_should_stop()) {
		item_init(&it, rec, 0, n++);
		item_push(&it);
		while (!READ_ONCE(it.dones) && !kvt_should_stop())
			schedule();
	}
	/* The item is on the stack, so it must be handled before this returns. */
	while (!READ_ONCE(it.dones)) {
		if (rec->ctx == IB_POLL_DIRECT)
			ib_process_cq_direct(rec->cq, -1);
		schedule();
	}
	return 0;
}

static void drain_together(struct kunit *test, bool polled, u64 flush_ns)
{
	struct recorder *rec = recorder_of_param(test);
	struct drainer d = { .cq = rec->cq };
	struct kvt_thread *t[2], *poller = NULL, *chatter;
	int i;

	d.pd = kvt_pd(test, rec->m->ibdev);
	d.rounds = max_t(u64, 2, kvt_count(ROUNDS));
	rec->m->flush_ns = flush_ns;
	if (polled)
		poller = kvt_thread_start(test, 0, poller_fn, rec);
	chatter = kvt_thread_start(test, -1, chatter_fn, rec);
	for (i = 0; i < 2; i++)
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, drainer_fn, &d);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(t[i]));
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_stop(chatter));
	if (poller)
		KUNIT_EXPECT_EQ(test, 0, kvt_thread_stop(poller));
	KUNIT_EXPECT_EQ(test, 0, rec->concurrent + rec->disorder);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&rec->m->live[MOCK_QP]));
}

static void two_drain_qps_of_one_cq(struct kunit *test)
{
	drain_together(test, false, SOON_NS / 10);
}

static void drain_beside_a_consumer_that_polls(struct kunit *test)
{
	if (kvt_context(test) != IB_POLL_DIRECT)
		kunit_skip(test, "the consumer polls no CQ of this context");
	drain_together(test, true, SOON_NS / 10);
}

static void drain_of_what_completes_at_once(struct kunit *test)
{
	drain_together(test, kvt_context(test) == IB_POLL_DIRECT, 0);
}

/* --- in a done() ------------------------------------------------------------ */

static void drain_inside(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	ib_drain_qp(rec->arg);
}

/* The refused drain must not post: its requests would be on a stack that is gone. */
static void drain_in_a_done_of_its_cq_is_refused(struct kunit *test)
{
	enum ib_poll_context ctx = kvt_context(test);
	struct recorder *rec;
	struct ib_qp *qp;

	if (ctx == IB_POLL_SOFTIRQ)
		kunit_skip(test, "needs a context that may sleep");
	rec = recorder_of_param(test);
	qp = recorder_qp(test, rec);
	recorder_call_once(test, rec, drain_inside, qp);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(rec->m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(rec->m, MOCK_post_recv));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

static void drain_in_a_done_of_another_lane(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *of = recorder_up(test, m, kvt_context(test), 0);
	struct recorder *rec;
	struct ib_qp *qp;

	rec = recorder_up(test, m, of->ctx == IB_POLL_THREAD ? IB_POLL_WORKQUEUE :
						       IB_POLL_THREAD, 0);
	m->flush_ns = SOON_NS;
	qp = recorder_qp(test, of);
	recorder_call_once(test, rec, drain_inside, qp);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_post_recv));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

/* --- with an SRQ ------------------------------------------------------------ */

/* A QP that takes its requests from an SRQ. */
struct srq_user {
	struct recorder *rec;	/* recorder of its receive CQ */
	struct recorder *sends;	/* recorder of its send CQ, which may be @rec */
	struct item *items;	/* receives that the QP has taken when it goes into error */
	struct ib_qp *qp;	/* the QP */
};

/* As a device does: completes the receives that the QP has taken, then raises the event. */
static void srq_leave(struct ib_qp *qp, void *arg)
{
	struct srq_user *u = arg;
	int i;

	for (i = 0; i < BEFORE; i++)
		item_push_of(&u->items[i], qp);
	ib_qp_notify_event(qp, IB_EVENT_QP_LAST_WQE_REACHED);
}

static void slow_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	udelay(SLOW_US);
}

static struct ib_srq *srq_new(struct kunit *test, struct ib_pd *pd)
{
	struct ib_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct ib_srq *srq = KVT_PTR(test, ib_create_srq(pd, &attr));

	kvt_defer(test, kvt_end_srq, srq);
	return srq;
}

static void srq_drain(struct kunit *test, bool apart)
{
	struct recorder *rec = recorder_of_param(test);
	struct srq_user u = { .rec = rec, .sends = rec };
	struct ib_pd *pd = kvt_pd(test, rec->m->ibdev);

	if (apart)
		u.sends = recorder_up(test, rec->m, rec->ctx, 0);
	u.items = items_new(test, rec, BEFORE);
	u.qp = cq_rig_qp(test, pd, u.sends->cq, rec->cq, srq_new(test, pd));
	rec->m->on_error = srq_leave;
	rec->m->on_error_arg = &u;
	rec->on_done = slow_done;
	rec->expect = BEFORE;
	ib_drain_qp(u.qp);
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(rec->m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(rec->m, MOCK_post_recv));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(u.qp));
}

static void srq_user_is_drained_from_both_its_cqs(struct kunit *test)
{
	srq_drain(test, true);
}

static void srq_user_is_drained_from_its_cq(struct kunit *test)
{
	srq_drain(test, false);
}

static void srq_user_drains_while_others_complete(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct recorder *sends = recorder_up(test, rec->m, rec->ctx, 0);
	struct ib_pd *pd = kvt_pd(test, rec->m->ibdev);
	struct ib_srq *srq = srq_new(test, pd);
	struct srq_user u = { .rec = rec, .sends = sends };
	struct kvt_thread *chatter;
	u64 round, rounds = max_t(u64, 2, kvt_count(ROUNDS));
	int i;

	u.items = items_new(test, rec, BEFORE);
	rec->m->on_error = srq_leave;
	rec->m->on_error_arg = &u;
	chatter = kvt_thread_start(test, kvt_other_cpu(), chatter_fn, rec);
	for (round = 0; round < rounds; round++) {
		for (i = 0; i < BEFORE; i++)
			item_init(&u.items[i], rec, 1, round * BEFORE + i);
		u.qp = cq_rig_qp(test, pd, sends->cq, rec->cq, srq);
		ib_drain_qp(u.qp);
		for (i = 0; i < BEFORE; i++)
			KUNIT_EXPECT_EQ(test, 1, u.items[i].dones);
		KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(u.qp));
	}
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_stop(chatter));
	KUNIT_EXPECT_EQ(test, 0, rec->concurrent + rec->disorder + rec->wrong_context);
}

static struct kunit_case cq_drain_cases[] = {
	KUNIT_CASE_PARAM(drain_waits_for_what_completes_late, kvt_any_context),
	KUNIT_CASE_PARAM(each_queue_is_drained_alone, kvt_any_context),
	KUNIT_CASE_PARAM(drain_gives_up_when_its_cq_fails, kvt_any_context),
	KUNIT_CASE_PARAM(drain_that_waits_says_so, kvt_any_context),
	KUNIT_CASE_PARAM(drain_of_a_cq_that_failed_handles_what_is_there, kvt_any_context),
	KUNIT_CASE_PARAM(two_drain_qps_of_one_cq, kvt_any_context),
	KUNIT_CASE_PARAM(drain_beside_a_consumer_that_polls, kvt_any_context),
	KUNIT_CASE_PARAM(drain_of_what_completes_at_once, kvt_any_context),
	KUNIT_CASE_PARAM(drain_in_a_done_of_its_cq_is_refused, kvt_any_context),
	KUNIT_CASE_PARAM(drain_in_a_done_of_another_lane, kvt_any_context),
	KUNIT_CASE_PARAM(srq_user_is_drained_from_both_its_cqs, kvt_any_context),
	KUNIT_CASE_PARAM(srq_user_is_drained_from_its_cq, kvt_any_context),
	KUNIT_CASE_PARAM(srq_user_drains_while_others_complete, kvt_any_context),
	{}
};
KVT_SUITE(cq_drain);
