// SPDX-License-Identifier: GPL-2.0-only
/*
 * CQs of ib_alloc_cq() in each polling context, on a device whose completions
 * the case makes up.
 */
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <kunit/test.h>
#include <rdma/ib_verbs.h>

#include "lib.h"
#include "mock.h"
#include "suites.h"

#define CQ_SIZE		256
#define PRODUCERS	2
#define FLOOD		200000
#define MANY_CQS	16

struct recorder;

/* One completion: who made it, and its place among those. */
struct item {
	struct ib_cqe cqe;
	struct recorder *rec;
	u32 n;
	u8 producer;
	u8 dones;
};

/**
 * struct recorder - watches the completions of one CQ
 * @m: the device
 * @cq: the CQ
 * @ctx: its polling context
 * @inside: completions being handled now
 * @concurrent: how often a second one was
 * @disorder: how often one was not the next of its producer
 * @wrong_context: how often one came where it should not
 * @next: by producer, the number expected next
 * @seen: completions handled
 * @expect: complete @all when @seen gets there
 * @all: see @expect
 * @rearmed: completed when the CQ is armed after @expect was reached
 * @on_done: called in done
 * @arg: for it
 */
struct recorder {
	struct mock *m;
	struct ib_cq *cq;
	enum ib_poll_context ctx;
	atomic_t inside;
	int concurrent;
	int disorder;
	int wrong_context;
	u32 next[PRODUCERS];
	atomic_t seen;
	int expect;
	struct completion all;
	struct completion rearmed;
	void (*on_done)(struct recorder *rec, struct ib_cq *cq,
			struct ib_wc *wc);
	void *arg;
};

static const enum ib_poll_context contexts[] = {
	IB_POLL_DIRECT, IB_POLL_SOFTIRQ, IB_POLL_THREAD, IB_POLL_WORKQUEUE,
	IB_POLL_UNBOUND_WORKQUEUE,
};

static void context_name(const enum ib_poll_context *ctx, char *desc)
{
	static const char *const names[] = {
		[IB_POLL_DIRECT] = "direct", [IB_POLL_SOFTIRQ] = "softirq",
		[IB_POLL_THREAD] = "thread", [IB_POLL_WORKQUEUE] = "workqueue",
		[IB_POLL_UNBOUND_WORKQUEUE] = "unbound",
	};

	strscpy(desc, names[*ctx], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(context, contexts, context_name);

static bool in_right_context(enum ib_poll_context ctx)
{
	switch (ctx) {
	case IB_POLL_DIRECT:
		return in_task();
	case IB_POLL_SOFTIRQ:
		return in_serving_softirq() && !in_hardirq();
	case IB_POLL_THREAD:
		return in_task() && (current->flags & PF_KTHREAD) &&
		       !(current->flags & PF_WQ_WORKER);
	default:
		return in_task() && (current->flags & PF_WQ_WORKER);
	}
}

static void item_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct recorder *rec = it->rec;

	if (atomic_inc_return(&rec->inside) != 1)
		rec->concurrent++;
	if (it->n != rec->next[it->producer]++)
		rec->disorder++;
	if (!in_right_context(rec->ctx))
		rec->wrong_context++;
	it->dones++;
	if (rec->on_done)
		rec->on_done(rec, cq, wc);
	atomic_dec(&rec->inside);
	if (atomic_inc_return(&rec->seen) == rec->expect)
		complete(&rec->all);
}

static void note_rearm(struct ib_cq *cq, void *arg)
{
	struct recorder *rec = arg;

	if (atomic_read(&rec->seen) >= rec->expect)
		complete(&rec->rearmed);
}

static void recorder_end(void *arg)
{
	struct recorder *rec = arg;

	if (rec->cq)
		ib_free_cq(rec->cq);
}

static struct recorder *recorder_up(struct kunit *test, struct mock *m,
				    enum ib_poll_context ctx, int vector)
{
	struct recorder *rec = kunit_kzalloc(test, sizeof(*rec), GFP_KERNEL);
	struct ib_cq *cq;

	KUNIT_ASSERT_NOT_NULL(test, rec);
	init_completion(&rec->all);
	init_completion(&rec->rearmed);
	rec->m = m;
	rec->ctx = ctx;
	cq = ib_alloc_cq(m->ibdev, rec, CQ_SIZE, vector, ctx);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	rec->cq = cq;
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, recorder_end,
							    rec));
	return rec;
}

static struct recorder *recorder_of_param(struct kunit *test)
{
	const enum ib_poll_context *ctx = test->param_value;

	return recorder_up(test, mock_up(test, "kvtm_a"), *ctx, 0);
}

static void item_init(struct item *it, struct recorder *rec, u8 producer, u32 n)
{
	it->cqe.done = item_done;
	it->rec = rec;
	it->producer = producer;
	it->n = n;
	it->dones = 0;
}

static struct item *items_new(struct kunit *test, struct recorder *rec, u32 n)
{
	struct item *items = kunit_kcalloc(test, n, sizeof(*items), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, items);
	for (i = 0; i < n; i++)
		item_init(&items[i], rec, 0, i);
	return items;
}

static bool push(struct item *it)
{
	struct ib_wc wc = { .wr_cqe = &it->cqe, .status = IB_WC_SUCCESS };

	return mock_cq_push(it->rec->cq, &wc, false);
}

static void push_arg(void *arg)
{
	push(arg);
}

/* Everything pushed has been handled; in DIRECT somebody must do it. */
static bool settle(struct recorder *rec)
{
	if (rec->ctx != IB_POLL_DIRECT)
		return kvt_wait(&rec->all);
	while (ib_process_cq_direct(rec->cq, -1) > 0)
		;
	return atomic_read(&rec->seen) == rec->expect;
}

static void expect_clean(struct kunit *test, struct recorder *rec)
{
	KUNIT_EXPECT_EQ(test, rec->expect, atomic_read(&rec->seen));
	KUNIT_EXPECT_EQ(test, 0, rec->concurrent);
	KUNIT_EXPECT_EQ(test, 0, rec->disorder);
	KUNIT_EXPECT_EQ(test, 0, rec->wrong_context);
}

static void each_completion_is_done_once_in_order(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, CQ_SIZE);
	int i;

	rec->expect = CQ_SIZE;
	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_ASSERT_TRUE(test, push(&items[i]));
	KUNIT_ASSERT_TRUE(test, settle(rec));
	for (i = 0; i < CQ_SIZE; i++)
		KUNIT_EXPECT_EQ(test, 1, items[i].dones);
	KUNIT_EXPECT_EQ(test, 0, mock_cq_pending(rec->cq));
	expect_clean(test, rec);
}

static void completion_from_hardirq_is_done(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 2);

	rec->expect = 2;
	kvt_run_in_hardirq(push_arg, &items[0]);
	kvt_run_in_softirq(push_arg, &items[1]);
	KUNIT_ASSERT_TRUE(test, settle(rec));
	expect_clean(test, rec);
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

	rec->expect = 1;
	rec->on_done = keep_wc;
	rec->arg = &got;
	mock_cq_push(rec->cq, &wc, false);
	KUNIT_ASSERT_TRUE(test, settle(rec));
	KUNIT_EXPECT_EQ(test, IB_WC_LOC_LEN_ERR, got.status);
	KUNIT_EXPECT_EQ(test, IB_WC_RECV, got.opcode);
	KUNIT_EXPECT_EQ(test, 77, got.byte_len);
	KUNIT_EXPECT_EQ(test, 5, got.vendor_err);
	KUNIT_EXPECT_PTR_EQ(test, rec->cq->cq_context, rec);
	expect_clean(test, rec);
}

static void idle_cq_is_armed_again(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 3);
	int i;

	if (rec->ctx == IB_POLL_DIRECT) {
		KUNIT_EXPECT_EQ(test, 0, mock_calls(rec->m,
						    MOCK_req_notify_cq));
		return;
	}
	KUNIT_EXPECT_TRUE(test, mock_cq_armed(rec->cq));
	mock_cq_on_arm(rec->cq, note_rearm, rec);
	/* Each alone: the next wake-up comes only if the CQ was armed. */
	for (i = 0; i < 3; i++) {
		rec->expect = i + 1;
		KUNIT_ASSERT_TRUE(test, push(&items[i]));
		KUNIT_ASSERT_TRUE(test, kvt_wait(&rec->all));
		KUNIT_ASSERT_TRUE(test, kvt_wait(&rec->rearmed));
	}
	expect_clean(test, rec);
}

/* Arrives after the last poll found nothing and before the arm. */
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
	KUNIT_ASSERT_TRUE(test, push(&items[0]));
	/* Completed for the first, then for the one that slipped in. */
	KUNIT_ASSERT_TRUE(test, kvt_wait(&rec->all));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&rec->all));
	KUNIT_EXPECT_EQ(test, 1, items[1].dones);
	expect_clean(test, rec);
}

static void null_wr_cqe_is_tolerated_on_error(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 2);
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR };

	rec->expect = 2;
	KUNIT_ASSERT_TRUE(test, push(&items[0]));
	KUNIT_ASSERT_TRUE(test, mock_cq_push(rec->cq, &wc, false));
	KUNIT_ASSERT_TRUE(test, push(&items[1]));
	KUNIT_ASSERT_TRUE(test, settle(rec));
	expect_clean(test, rec);
}

static void push_next(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);

	if (it->n + 1 < rec->expect)
		push(it + 1);
}

static void done_may_cause_the_next_completion(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 500);

	rec->expect = 500;
	rec->on_done = push_next;
	KUNIT_ASSERT_TRUE(test, push(&items[0]));
	KUNIT_ASSERT_TRUE(test, settle(rec));
	expect_clean(test, rec);
}

struct producer {
	struct recorder *rec;
	u8 id;
	u64 count;
	struct item *items;
	int stop;
};

/* The items are used again once they were done: the CQ's size in flight. */
static int producer_fn(void *arg)
{
	struct producer *p = arg;
	u64 i;

	for (i = 0; i < p->count; i++) {
		struct item *it = &p->items[i % CQ_SIZE];

		while (i - READ_ONCE(p->rec->next[p->id]) >= CQ_SIZE / 2) {
			if (READ_ONCE(p->stop))
				return -ETIMEDOUT;
			cond_resched();
		}
		item_init(it, p->rec, p->id, i);
		if (!push(it))
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
		if (kthread_should_stop())
			return -ETIMEDOUT;
	}
	return 0;
}

static void done_is_never_concurrent_for_one_cq(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	u64 count = kvt_count(FLOOD) / ARRAY_SIZE(contexts);
	struct kvt_thread *t[PRODUCERS], *direct = NULL;
	struct producer *p;
	int i;

	kvt_seed(test, "completions from each of two CPUs", count);
	p = kunit_kcalloc(test, PRODUCERS, sizeof(*p), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	rec->expect = PRODUCERS * count;
	if (rec->ctx == IB_POLL_DIRECT)
		direct = kvt_thread_start(test, -1, direct_fn, rec);
	for (i = 0; i < PRODUCERS; i++) {
		p[i].rec = rec;
		p[i].id = i;
		p[i].count = count;
		p[i].items = items_new(test, rec, CQ_SIZE);
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0,
					producer_fn, &p[i]);
	}
	for (i = 0; i < PRODUCERS; i++) {
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(t[i]));
		WRITE_ONCE(p[i].stop, 1);
		KUNIT_EXPECT_EQ(test, 0, t[i]->ret);
	}
	if (direct)
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(direct));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&rec->all));
	expect_clean(test, rec);
}

static void stay_inside(struct recorder *rec, struct ib_cq *cq,
			struct ib_wc *wc)
{
	kvt_gate_pass(rec->arg);
}

static int free_fn(void *arg)
{
	struct recorder *rec = arg;

	ib_free_cq(rec->cq);
	rec->cq = NULL;
	return 0;
}

static int push_fn(void *arg)
{
	push(arg);
	return 0;
}

static void free_waits_for_done_and_nothing_runs_after(struct kunit *test)
{
	const enum ib_poll_context *ctx = test->param_value;
	struct kvt_thread *freer, *pusher;
	struct kvt_gate g;
	struct recorder *rec;
	struct item *items;
	struct mock *m;
	int i, seen;

	if (*ctx == IB_POLL_DIRECT || !kvt_other_cpu())
		kunit_skip(test, "needs a context of its own and two CPUs");
	kvt_stay_on_first_cpu();
	kvt_gate_init(&g);
	m = mock_up(test, "kvtm_a");
	rec = recorder_up(test, m, *ctx, kvt_other_cpu());
	items = items_new(test, rec, 100);
	rec->on_done = stay_inside;
	rec->arg = &g;
	freer = kvt_thread_new(test, 0, free_fn, rec);
	pusher = kvt_thread_start(test, kvt_other_cpu(), push_fn, &items[0]);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&g.entered));
	rec->on_done = NULL;
	for (i = 1; i < 100; i++)
		push(&items[i]);

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
	const enum ib_poll_context *ctx = test->param_value;
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *rec[MANY_CQS];
	struct item *items[MANY_CQS];
	int i, j;

	for (i = 0; i < MANY_CQS; i++) {
		rec[i] = recorder_up(test, m, *ctx, 0);
		items[i] = items_new(test, rec[i], 50);
		rec[i]->expect = 50;
	}
	for (j = 0; j < 50; j++)
		for (i = 0; i < MANY_CQS; i++)
			KUNIT_ASSERT_TRUE(test, push(&items[i][j]));
	for (i = 0; i < MANY_CQS; i++) {
		KUNIT_ASSERT_TRUE(test, settle(rec[i]));
		expect_clean(test, rec[i]);
	}
}

static void failing_create_leaves_nothing(struct kunit *test)
{
	const enum ib_poll_context *ctx = test->param_value;
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq;

	mock_fail(m, MOCK_create_cq, -EXFULL);
	cq = ib_alloc_cq(m->ibdev, NULL, CQ_SIZE, 0, *ctx);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(cq));
	MOCK_EXPECT_IDLE(test, m);

	mock_fail_none(m);
	cq = ib_alloc_cq(m->ibdev, NULL, CQ_SIZE, 0, *ctx);
	KUNIT_ASSERT_FALSE(test, IS_ERR(cq));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&m->live[MOCK_CQ]));
	ib_free_cq(cq);
	MOCK_EXPECT_IDLE(test, m);
}

static void direct_polls_within_its_budget(struct kunit *test)
{
	struct recorder *rec = recorder_up(test, mock_up(test, "kvtm_a"),
					   IB_POLL_DIRECT, 0);
	struct item *items = items_new(test, rec, 40);
	int i;

	for (i = 0; i < 40; i++)
		KUNIT_ASSERT_TRUE(test, push(&items[i]));
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
		cq[i] = ib_alloc_cq_any(m->ibdev, NULL, CQ_SIZE,
					IB_POLL_SOFTIRQ);
		if (IS_ERR(cq[i]))
			break;
		KUNIT_EXPECT_LT(test, cq[i]->comp_vector,
				m->ibdev->num_comp_vectors);
		used |= BIT(cq[i]->comp_vector);
		n++;
	}
	KUNIT_EXPECT_EQ(test, 8, n);
	KUNIT_EXPECT_EQ(test, min(8, m->ibdev->num_comp_vectors),
			hweight_long(used));
	while (n--)
		ib_free_cq(cq[n]);
}

static struct kunit_case cq_contexts_cases[] = {
	KUNIT_CASE_PARAM(each_completion_is_done_once_in_order,
			 context_gen_params),
	KUNIT_CASE_PARAM(completion_from_hardirq_is_done, context_gen_params),
	KUNIT_CASE_PARAM(done_sees_the_completion_as_polled,
			 context_gen_params),
	KUNIT_CASE_PARAM(idle_cq_is_armed_again, context_gen_params),
	KUNIT_CASE_PARAM(completion_between_poll_and_arm_is_not_missed,
			 context_gen_params),
	KUNIT_CASE_PARAM(null_wr_cqe_is_tolerated_on_error,
			 context_gen_params),
	KUNIT_CASE_PARAM(done_may_cause_the_next_completion,
			 context_gen_params),
	KUNIT_CASE_PARAM(done_is_never_concurrent_for_one_cq,
			 context_gen_params),
	KUNIT_CASE_PARAM(free_waits_for_done_and_nothing_runs_after,
			 context_gen_params),
	KUNIT_CASE_PARAM(many_cqs_on_one_vector_are_all_served,
			 context_gen_params),
	KUNIT_CASE_PARAM(failing_create_leaves_nothing, context_gen_params),
	KUNIT_CASE(direct_polls_within_its_budget),
	KUNIT_CASE(alloc_cq_any_spreads_over_the_vectors),
	{}
};

static struct kunit_suite cq_contexts_suite = {
	.name = "cq_contexts",
	.test_cases = cq_contexts_cases,
};

kunit_test_suites(&cq_contexts_suite, &cq_notify_suite);

MODULE_DESCRIPTION("KUnit: completion queues in each context");
MODULE_LICENSE("GPL");
