// SPDX-License-Identifier: GPL-2.0-only
/*
 * CQs of ib_alloc_cq() in each polling context, on a mock device whose completions the case
 * pushes itself.
 */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "cq/rig.h"
#include "lib/mock.h"

#define FLOOD		200000
#define MANY_CQS	16
#define CONTEXTS	5

/* Jiffies for which a done() computes. */
#define BUSY		10
/* Much less than what the watch takes for a done() that has lost its CPU, a quarter of a second. */
#define NOT_STUCK	(HZ / 5)
#define MAX_ROUNDS	100

static void note_rearm(struct ib_cq *cq, void *arg)
{
	struct recorder *rec = arg;

	if (atomic_read(&rec->seen) >= rec->expect)
		complete(&rec->rearmed);
}

static void push_arg(void *arg)
{
	item_push(arg);
}

static void each_completion_is_done_once_in_order(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, CQ_RIG_SIZE);
	int i;

	rec->expect = CQ_RIG_SIZE;
	items_push_each(test, items, CQ_RIG_SIZE, NULL);
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	for (i = 0; i < CQ_RIG_SIZE; i++)
		KUNIT_EXPECT_EQ(test, 1, items[i].dones);
	KUNIT_EXPECT_EQ(test, 0, mock_cq_pending(rec->cq));
	recorder_expect_clean(test, rec);
}

static void completion_from_hardirq_is_done(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 2);

	rec->expect = 2;
	kvt_run_in_hardirq(push_arg, &items[0]);
	kvt_run_in_softirq(push_arg, &items[1]);
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
}

static void keep_wc(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	*(struct ib_wc *)rec->arg = *wc;
	if (cq != rec->cq)
		rec->wrong_context++;
}

static void done_sees_the_completion_as_polled(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 1);
	struct ib_wc got = {}, wc = {
		.wr_cqe = &items[0].cqe, .status = IB_WC_LOC_LEN_ERR,
		.opcode = IB_WC_RECV, .byte_len = 77, .vendor_err = 5,
	};

	recorder_expect_calls(rec, 1, keep_wc, &got);
	mock_cq_push(rec->cq, &wc, false);
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	KUNIT_EXPECT_EQ(test, IB_WC_LOC_LEN_ERR, got.status);
	KUNIT_EXPECT_EQ(test, IB_WC_RECV, got.opcode);
	KUNIT_EXPECT_EQ(test, 77, got.byte_len);
	KUNIT_EXPECT_EQ(test, 5, got.vendor_err);
	KUNIT_EXPECT_PTR_EQ(test, rec->cq->cq_context, rec);
	recorder_expect_clean(test, rec);
}

static void idle_cq_is_armed_again(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 3);
	int i;

	if (rec->ctx == IB_POLL_DIRECT) {
		KUNIT_EXPECT_EQ(test, 0, mock_calls(rec->m, MOCK_req_notify_cq));
		return;
	}
	KUNIT_EXPECT_TRUE(test, mock_cq_armed(rec->cq));
	mock_cq_on_arm(rec->cq, note_rearm, rec);
	/* One completion at a time: each is noticed only if the CQ was armed again. */
	for (i = 0; i < 3; i++) {
		rec->expect = i + 1;
		KUNIT_ASSERT_TRUE(test, item_push(&items[i]));
		KUNIT_ASSERT_TRUE(test, kvt_wait(&rec->all));
		KUNIT_ASSERT_TRUE(test, kvt_wait(&rec->rearmed));
	}
	recorder_expect_clean(test, rec);
}

/* Pushes a completion after the last poll found none and before the CQ is armed. */
static void slip_in(struct ib_cq *cq, void *arg)
{
	struct item *it = arg;
	struct ib_wc wc = { .wr_cqe = &it->cqe };

	if (it->rec->expect == 1 && atomic_read(&it->rec->seen) == 1) {
		it->rec->expect = 2;
		mock_cq_push_quiet(cq, &wc);
	}
}

static void completion_between_poll_and_arm_is_not_missed(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 2);

	if (rec->ctx == IB_POLL_DIRECT)
		kunit_skip(test, "nothing arms a CQ polled by its consumer");
	rec->expect = 1;
	mock_cq_on_arm(rec->cq, slip_in, &items[1]);
	KUNIT_ASSERT_TRUE(test, item_push(&items[0]));
	/* @all is completed for the first completion, then for the one that slipped in. */
	KUNIT_ASSERT_TRUE(test, kvt_wait(&rec->all));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&rec->all));
	KUNIT_EXPECT_EQ(test, 1, items[1].dones);
	recorder_expect_clean(test, rec);
}

static void null_wr_cqe_is_tolerated_on_error(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 2);
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR };

	rec->expect = 2;
	KUNIT_ASSERT_TRUE(test, item_push(&items[0]));
	KUNIT_ASSERT_TRUE(test, mock_cq_push(rec->cq, &wc, false));
	KUNIT_ASSERT_TRUE(test, item_push(&items[1]));
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
}

static void push_next(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);

	if (it->n + 1 < rec->expect)
		item_push(it + 1);
}

static void done_may_cause_the_next_completion(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 500);

	rec->expect = 500;
	rec->on_done = push_next;
	KUNIT_ASSERT_TRUE(test, item_push(&items[0]));
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
}

struct producer {
	struct recorder *rec;
	u8 id;
	u64 count;
	struct item *items;
};

/* Reuses the items once they are done; at most half the CQ's size is in flight. */
static int producer_fn(void *arg)
{
	struct producer *p = arg;
	u64 i;

	for (i = 0; i < p->count; i++) {
		struct item *it = &p->items[i % CQ_RIG_SIZE];

		while (i - READ_ONCE(p->rec->next[p->id]) >= CQ_RIG_SIZE / 2) {
			if (kvt_should_stop())
				return -ETIMEDOUT;
			cond_resched();
		}
		item_init(it, p->rec, p->id, i);
		if (!item_push(it))
			return -ENOSPC;
	}
	return 0;
}

static int direct_fn(void *arg)
{
	struct recorder *rec = arg;

	while (atomic_read(&rec->seen) < rec->expect) {
		if (ib_process_cq_direct(rec->cq, 16) < 0)
			return -EIO;
		cond_resched();
		if (kvt_should_stop())
			return -ETIMEDOUT;
	}
	return 0;
}

static void done_is_never_concurrent_for_one_cq(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	u64 count = kvt_count(FLOOD) / CONTEXTS;
	struct kvt_thread *t[CQ_RIG_PRODUCERS], *direct = NULL;
	struct producer *p;
	int i;

	kvt_print_length(test, "completions from each of two CPUs", count);
	p = KVT_PTR(test, kunit_kcalloc(test, CQ_RIG_PRODUCERS, sizeof(*p), GFP_KERNEL));
	rec->expect = CQ_RIG_PRODUCERS * count;
	if (rec->ctx == IB_POLL_DIRECT)
		direct = kvt_thread_start(test, -1, direct_fn, rec);
	for (i = 0; i < CQ_RIG_PRODUCERS; i++) {
		p[i].rec = rec;
		p[i].id = i;
		p[i].count = count;
		p[i].items = items_new(test, rec, CQ_RIG_SIZE);
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, producer_fn, &p[i]);
	}
	for (i = 0; i < CQ_RIG_PRODUCERS; i++)
		KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(t[i]));
	if (direct)
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(direct));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&rec->all));
	recorder_expect_clean(test, rec);
}

/* Sleeps, mostly not for so long that the watch looks meanwhile. */
static void nap_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	usleep_range(1000, 2000);
}

/* A done() that computes beside another CQ. */
struct busy {
	struct recorder *other;
	unsigned long pushed;	/* when its completion was pushed, in jiffies */
	int seen;		/* completions of @other handled while the done() ran */
	bool stuck;		/* it was so long ago that others may have been let in */
};

/* Lets the watch look, and others run, but does not sleep. */
static void work_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	int before, seen;
	struct busy *b = rec->arg;
	unsigned long start = jiffies;

	before = atomic_read(&b->other->seen);
	while (time_before(jiffies, start + BUSY)) {
		cpu_relax();
		cond_resched();
	}
	seen = atomic_read(&b->other->seen);
	b->stuck = time_after(jiffies, b->pushed + NOT_STUCK);
	b->seen += b->stuck ? 0 : seen - before;
}

/* The CQs of a lane are not polled concurrently, except for those whose done() sleeps. */
static void done_that_does_not_sleep_runs_alone(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *rec[3];
	struct item *items[3];
	struct busy busy = {};
	int i, round = 0;

	for (i = 0; i < ARRAY_SIZE(rec); i++) {
		rec[i] = recorder_up(test, m, kvt_context(test), 0);
		items[i] = items_new(test, rec[i], MAX_ROUNDS);
	}
	rec[0]->on_done = nap_in_done;
	rec[1]->on_done = work_in_done;
	rec[1]->arg = &busy;
	busy.other = rec[2];
	/* A round in which its CPU stood still says nothing. */
	do {
		for (i = 0; i < ARRAY_SIZE(rec); i++)
			rec[i]->expect = round + 1;
		busy.pushed = jiffies;
		preempt_disable();
		for (i = 0; i < ARRAY_SIZE(rec); i++)
			KUNIT_EXPECT_TRUE(test, item_push(&items[i][round]));
		preempt_enable();
		for (i = 0; i < ARRAY_SIZE(rec); i++)
			KUNIT_ASSERT_TRUE(test, kvt_wait(&rec[i]->all));
	} while (busy.stuck && ++round < MAX_ROUNDS);
	for (i = 0; i < ARRAY_SIZE(rec); i++)
		recorder_expect_clean(test, rec[i]);
	KUNIT_EXPECT_FALSE(test, busy.stuck);
	KUNIT_EXPECT_EQ(test, 0, busy.seen);
}

static void stay_inside(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	/* An unbound worker that spins may keep this case from its CPU. */
	cq_gate_pass(rec->arg);
}

static int free_fn(void *arg)
{
	struct recorder *rec = arg;

	recorder_free(rec);
	return 0;
}

static int push_fn(void *arg)
{
	item_push(arg);
	return 0;
}

static void free_waits_for_done_and_nothing_runs_after(struct kunit *test)
{
	enum ib_poll_context ctx = kvt_context(test);
	struct kvt_thread *freer, *pusher;
	struct kvt_gate g;
	struct recorder *rec;
	struct item *items;
	struct mock *m;
	int i, seen;

	if (ctx == IB_POLL_DIRECT || !kvt_other_cpu())
		kunit_skip(test, "needs a context of its own and two CPUs");
	kvt_stay_on_first_cpu();
	kvt_gate_init(&g);
	m = mock_up(test, "kvtm_a");
	rec = recorder_up(test, m, ctx, kvt_other_cpu());
	items = items_new(test, rec, 100);
	rec->on_done = stay_inside;
	rec->arg = &g;
	freer = kvt_thread_new(test, 0, free_fn, rec);
	pusher = kvt_thread_start(test, kvt_other_cpu(), push_fn, &items[0]);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&g.entered));
	rec->on_done = NULL;
	for (i = 1; i < 100; i++)
		item_push(&items[i]);

	kvt_thread_go(freer);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(freer));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_destroy_cq));
	kvt_gate_open(&g);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(freer));
	seen = atomic_read(&rec->seen);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_destroy_cq));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&rec->inside));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(pusher));
	KUNIT_EXPECT_TRUE(test, g.in_time);

	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, seen, atomic_read(&rec->seen));
	KUNIT_EXPECT_EQ(test, 0, rec->concurrent);
	MOCK_EXPECT_IDLE(test, m);
}

static void many_cqs_on_one_vector_are_all_served(struct kunit *test)
{
	enum ib_poll_context ctx = kvt_context(test);
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *rec[MANY_CQS];
	struct item *items[MANY_CQS];
	int i, j;

	for (i = 0; i < MANY_CQS; i++) {
		rec[i] = recorder_up(test, m, ctx, 0);
		items[i] = items_new(test, rec[i], 50);
		rec[i]->expect = 50;
	}
	for (j = 0; j < 50; j++)
		for (i = 0; i < MANY_CQS; i++)
			KUNIT_ASSERT_TRUE(test, item_push(&items[i][j]));
	for (i = 0; i < MANY_CQS; i++) {
		KUNIT_ASSERT_TRUE(test, recorder_settle(rec[i]));
		recorder_expect_clean(test, rec[i]);
	}
}

static void failing_create_leaves_nothing(struct kunit *test)
{
	enum ib_poll_context ctx = kvt_context(test);
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq;

	mock_fail(m, MOCK_create_cq, -EXFULL);
	cq = ib_alloc_cq(m->ibdev, NULL, CQ_RIG_SIZE, 0, ctx);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(cq));
	MOCK_EXPECT_IDLE(test, m);

	mock_fail_none(m);
	cq = KVT_PTR(test, ib_alloc_cq(m->ibdev, NULL, CQ_RIG_SIZE, 0, ctx));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&m->live[MOCK_CQ]));
	ib_free_cq(cq);
	MOCK_EXPECT_IDLE(test, m);
}

static void direct_polls_within_its_budget(struct kunit *test)
{
	struct recorder *rec = recorder_up(test, mock_up(test, "kvtm_a"), IB_POLL_DIRECT, 0);
	struct item *items = items_new(test, rec, 40);

	items_push_each(test, items, 40, NULL);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&rec->seen));
	KUNIT_EXPECT_EQ(test, 5, ib_process_cq_direct(rec->cq, 5));
	KUNIT_EXPECT_EQ(test, 5, atomic_read(&rec->seen));
	KUNIT_EXPECT_EQ(test, 35, ib_process_cq_direct(rec->cq, -1));
	KUNIT_EXPECT_EQ(test, 0, ib_process_cq_direct(rec->cq, -1));
}

static void alloc_cq_any_spreads_over_the_vectors(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long used = 0;
	struct ib_cq *cq[8];
	int i, n = 0;

	for (i = 0; i < 8; i++) {
		cq[i] = ib_alloc_cq_any(m->ibdev, NULL, CQ_RIG_SIZE, IB_POLL_SOFTIRQ);
		if (IS_ERR(cq[i]))
			break;
		KUNIT_EXPECT_LT(test, cq[i]->comp_vector, m->ibdev->num_comp_vectors);
		used |= BIT(cq[i]->comp_vector);
		n++;
	}
	KUNIT_EXPECT_EQ(test, 8, n);
	KUNIT_EXPECT_EQ(test, min(8, m->ibdev->num_comp_vectors), hweight_long(used));
	while (n--)
		ib_free_cq(cq[n]);
}

static struct kunit_case cq_contexts_cases[] = {
	KUNIT_CASE_PARAM(each_completion_is_done_once_in_order, kvt_any_context),
	KUNIT_CASE_PARAM(completion_from_hardirq_is_done, kvt_any_context),
	KUNIT_CASE_PARAM(done_sees_the_completion_as_polled, kvt_any_context),
	KUNIT_CASE_PARAM(idle_cq_is_armed_again, kvt_any_context),
	KUNIT_CASE_PARAM(completion_between_poll_and_arm_is_not_missed, kvt_any_context),
	KUNIT_CASE_PARAM(null_wr_cqe_is_tolerated_on_error, kvt_any_context),
	KUNIT_CASE_PARAM(done_may_cause_the_next_completion, kvt_any_context),
	KUNIT_CASE_PARAM(done_is_never_concurrent_for_one_cq, kvt_any_context),
	KUNIT_CASE_PARAM(done_that_does_not_sleep_runs_alone, kvt_queued_context),
	KUNIT_CASE_PARAM(free_waits_for_done_and_nothing_runs_after, kvt_any_context),
	KUNIT_CASE_PARAM(many_cqs_on_one_vector_are_all_served, kvt_any_context),
	KUNIT_CASE_PARAM(failing_create_leaves_nothing, kvt_any_context),
	KUNIT_CASE(direct_polls_within_its_budget),
	KUNIT_CASE(alloc_cq_any_spreads_over_the_vectors),
	{}
};
KVT_SUITE(cq_contexts);

MODULE_DESCRIPTION("KUnit: completion queues in each context");
MODULE_LICENSE("GPL");
