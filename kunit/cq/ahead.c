// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CQ that is alone is polled ahead. What is not handed out when a neighbour comes is handed
 * out later, in order, by whichever runner, unless its QP or the CQ is gone.
 */
#include <linux/module.h>
#include <kunit/test.h>
#include <kverbs/delay.h>
#include <rdma/ib_verbs.h>

#include "../cq/cq.h"
#include "cq/rig.h"
#include "lib/lib.h"
#include "lib/mock.h"
#include "lib/objects.h"

/* Completions of the CQ: a run begins with a share, and then polls ahead. */
#define FLOOD		(IB_CQ_SHARE + IB_CQ_AHEAD)

/* The one whose done() brings the neighbour, within the first share that was polled ahead. */
#define CALL		(IB_CQ_SHARE + 4)

/* As many are handed out before the neighbour has its turn; the rest was polled ahead. */
#define BEFORE		(2 * IB_CQ_SHARE)

/* So long that runs do not end by their time. */
#define NEVER_US	10000000

/* A CQ that is polled ahead, and its neighbour. */
struct scene {
	struct recorder *rec;		/* recorder of the CQ */
	struct item *items;		/* its completions */
	struct recorder *light;		/* recorder of the neighbour */
	/* completions of the neighbour; the first is pushed by that of @items at CALL */
	struct item *lone;
	struct kvt_gate g;		/* for cases in which a done() sleeps */
	struct completion last;		/* the last of @lone was handed out */
	struct ib_qp *qp[2];		/* what the completions are of, by turns; NULL: of none */
	const void *dead;	/* address of qp[1] once it was destroyed, not to be dereferenced */
	int late;			/* completions of @dead that were handed out */
	int at;	/* @rec's completions that were handed out when the neighbour had its turn */
	int rest;			/* those polled ahead, and not handed out, at that time */
	/* @rec's completions that were handed out when what the case does was done */
	int seen;
	int ret;			/* what that returned */
	void (*act)(struct scene *s);	/* done in the done() of @lone */
};

static void call_neighbour(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct scene *s = rec->arg;

	if (wc->qp && wc->qp == READ_ONCE(s->dead))
		s->late++;
	if (it->n == CALL)
		item_push(s->lone);
}

static void neighbour_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct ib_cq_lane *lane = cq->lane;
	struct scene *s = rec->arg;

	if (it->n == FLOOD - 1)
		complete(&s->last);
	if (it->n)
		return;
	s->at = atomic_read(&s->rec->seen);
	if (lane->ahead_cq == s->rec->cq)
		s->rest = lane->ahead_end - lane->ahead_at;
	if (s->act)
		s->act(s);
}

static struct scene *scene_new(struct kunit *test, enum ib_poll_context ctx,
			       void (*act)(struct scene *s))
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct mock *m;

	cq_rig_tune(test, "cq_time_us", NEVER_US);
	KUNIT_ASSERT_NOT_NULL(test, s);
	m = mock_up(test, "kvtm_a");
	s->act = act;
	s->rec = recorder_up(test, m, ctx, kvt_other_cpu());
	recorder_expect_calls(s->rec, FLOOD, call_neighbour, s);
	s->items = items_new(test, s->rec, FLOOD);
	s->light = recorder_up(test, m, ctx, kvt_other_cpu());
	recorder_expect_calls(s->light, 1, neighbour_done, s);
	s->lone = items_new(test, s->light, FLOOD);
	kvt_gate_init(&s->g);
	init_completion(&s->last);
	return s;
}

static void scene_give_qps(struct kunit *test, struct scene *s)
{
	int i;

	for (i = 0; i < 2; i++)
		s->qp[i] = recorder_qp(test, s->rec);
}

/* Only the last completion notifies, so that all are there before the first one is polled. */
static void scene_begin(struct kunit *test, struct scene *s)
{
	struct ib_wc wc = {};
	int i;

	for (i = 0; i < FLOOD - 1; i++) {
		wc.wr_cqe = &s->items[i].cqe;
		wc.qp = s->qp[i % 2];
		KUNIT_EXPECT_TRUE(test, mock_cq_push_quiet(s->rec->cq, &wc));
	}
	KUNIT_EXPECT_TRUE(test, item_push_of(&s->items[i], s->qp[i % 2]));
}

static void expect_polled_ahead(struct kunit *test, struct scene *s)
{
	KUNIT_EXPECT_EQ(test, BEFORE, s->at);
	KUNIT_EXPECT_EQ(test, FLOOD - BEFORE, s->rest);
}

static void scene_end(struct kunit *test, struct scene *s)
{
	KUNIT_EXPECT_TRUE(test, recorder_settle(s->light));
	KUNIT_EXPECT_TRUE(test, recorder_settle(s->rec));
	/* A runner that was displaced ends it after the last done(), beside the lane. */
	KUNIT_EXPECT_TRUE(test, kvt_until(!READ_ONCE(s->rec->cq->lane->ahead_cq)));
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(s->rec->cq));
	recorder_expect_clean(test, s->light);
	recorder_expect_clean(test, s->rec);
}

static void neighbour_waits_for_a_share_of_what_was_polled_ahead(struct kunit *test)
{
	struct scene *s = scene_new(test, kvt_context(test), NULL);

	scene_begin(test, s);
	scene_end(test, s);
	expect_polled_ahead(test, s);
	KUNIT_EXPECT_EQ(test, FLOOD, atomic_read(&s->rec->seen));
	KUNIT_EXPECT_EQ(test, FLOOD, s->rec->cq->stats.completions);
}

static void neighbours_come(void *arg)
{
	struct scene *s = arg;
	int i;

	kverbs_delay_clear();
	for (i = 0; i < FLOOD; i++)
		item_push(&s->lone[i]);
}

/* The last completion that was polled ahead has been handled: no neighbour had come. */
static void stand_still_at_the_end(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);

	if (it->n == CALL)
		kverbs_delay_set("ib_cq_ahead_batch", neighbours_come, rec->arg);
}

/* They come between the last look for them and the end of the batch. */
static void neighbour_that_comes_at_the_end_is_served(struct kunit *test)
{
	struct scene *s = scene_new(test, kvt_context(test), NULL);

	s->rec->on_done = stand_still_at_the_end;
	s->light->expect = FLOOD;
	scene_begin(test, s);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&s->last));
	scene_end(test, s);
	KUNIT_EXPECT_EQ(test, FLOOD, s->at);
	KUNIT_EXPECT_EQ(test, FLOOD, atomic_read(&s->rec->seen));
	KUNIT_EXPECT_EQ(test, FLOOD, s->rec->cq->stats.completions);
}

static void destroy_qp(struct scene *s)
{
	const void *qp = s->qp[1];

	s->ret = ib_destroy_qp(s->qp[1]);
	s->seen = atomic_read(&s->rec->seen);
	WRITE_ONCE(s->dead, qp);
}

/* A thread drops the rest; in a work queue, another runner hands it out first. */
static void neighbour_destroys_a_qp_that_was_polled_ahead(struct kunit *test)
{
	struct scene *s = scene_new(test, kvt_context(test), destroy_qp);
	int i, dones = 0;

	scene_give_qps(test, s);
	if (kvt_context(test) == IB_POLL_THREAD)
		s->rec->expect = BEFORE + (FLOOD - BEFORE) / 2;
	scene_begin(test, s);
	KUNIT_EXPECT_TRUE(test, recorder_settle(s->light));
	KUNIT_EXPECT_TRUE(test, recorder_settle(s->rec));
	expect_polled_ahead(test, s);
	KUNIT_EXPECT_EQ(test, 0, s->ret);
	KUNIT_EXPECT_EQ(test, 0, s->late);
	for (i = 0; i < FLOOD; i++)
		dones += s->items[i].dones;
	KUNIT_EXPECT_EQ(test, s->rec->expect, dones);
	if (kvt_context(test) != IB_POLL_THREAD)
		KUNIT_EXPECT_EQ(test, FLOOD, s->seen);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(s->qp[0]));
}

/* The done() of one that was polled ahead, with more of them behind its batch. */
static void call_and_destroy(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct scene *s = rec->arg;

	call_neighbour(rec, cq, wc);
	if (it->n == BEFORE)
		destroy_qp(s);
	/* Every other one is of the QP that was destroyed. */
	if (s->dead)
		rec->next[0] = it->n + 2;
}

static void done_destroys_a_qp_that_was_polled_ahead(struct kunit *test)
{
	struct scene *s = scene_new(test, kvt_context(test), NULL);
	int i;

	scene_give_qps(test, s);
	s->rec->on_done = call_and_destroy;
	s->rec->expect = BEFORE + (FLOOD - BEFORE) / 2;
	scene_begin(test, s);
	scene_end(test, s);
	expect_polled_ahead(test, s);
	KUNIT_EXPECT_EQ(test, 0, s->ret);
	KUNIT_EXPECT_EQ(test, 0, s->late);
	for (i = 0; i < FLOOD; i++)
		KUNIT_EXPECT_EQ(test, i < BEFORE || !(i % 2), s->items[i].dones);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(s->qp[0]));
}

static void free_cq(struct scene *s)
{
	recorder_free(s->rec);
	s->seen = atomic_read(&s->rec->seen);
}

static void neighbour_frees_a_cq_that_was_polled_ahead(struct kunit *test)
{
	struct scene *s = scene_new(test, kvt_context(test), free_cq);

	scene_begin(test, s);
	KUNIT_EXPECT_TRUE(test, recorder_settle(s->light));
	expect_polled_ahead(test, s);
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(s->light->cq));
	KUNIT_EXPECT_EQ(test, s->seen, atomic_read(&s->rec->seen));
	KUNIT_EXPECT_NULL(test, s->light->cq->lane->ahead_cq);
}

static void hold_up(struct scene *s)
{
	kvt_gate_sleep(&s->g);
}

static int flush_fn(void *arg)
{
	struct scene *s = arg;

	s->ret = ib_cq_flush(s->rec->cq);
	return atomic_read(&s->rec->seen);
}

static int destroy_fn(void *arg)
{
	struct scene *s = arg;

	destroy_qp(s);
	return s->seen;
}

/* Runs @fn while the neighbour's done() holds up the thread, and the rest is still to come. */
static void expect_to_wait_for_the_rest(struct kunit *test, struct scene *s, int (*fn)(void *arg))
{
	struct kvt_thread *t = kvt_thread_new(test, 0, fn, s);

	scene_begin(test, s);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&s->g.entered));
	kvt_thread_go(t);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	kvt_gate_open(&s->g);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	scene_end(test, s);
	expect_polled_ahead(test, s);
	KUNIT_EXPECT_EQ(test, 0, s->ret);
	KUNIT_EXPECT_EQ(test, FLOOD, t->ret);
	KUNIT_EXPECT_EQ(test, 0, s->late);
}

static void flush_waits_for_what_was_polled_ahead(struct kunit *test)
{
	expect_to_wait_for_the_rest(test, scene_new(test, IB_POLL_THREAD, hold_up), flush_fn);
}

static void destroy_waits_for_what_was_polled_ahead(struct kunit *test)
{
	struct scene *s = scene_new(test, IB_POLL_THREAD, hold_up);

	scene_give_qps(test, s);
	expect_to_wait_for_the_rest(test, s, destroy_fn);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(s->qp[0]));
}

/* The neighbour's done() sleeps until all is handed out, by another runner. */
static void wait_for_all(struct scene *s)
{
	s->ret = !kvt_wait(&s->rec->all);
	/* For the case, which waits for the same. */
	complete(&s->rec->all);
}

static void rest_is_handed_out_by_the_next_runner(struct kunit *test)
{
	struct scene *s = scene_new(test, kvt_context(test), wait_for_all);

	scene_begin(test, s);
	scene_end(test, s);
	expect_polled_ahead(test, s);
	KUNIT_EXPECT_EQ(test, 0, s->ret);
	KUNIT_EXPECT_GE(test, s->rec->cq->lane->stats.handovers, 1);
}

/* Sleeps in a batch that was polled ahead, while the neighbour has as many completions. */
static void call_and_sleep(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct scene *s = rec->arg;

	if (it->n != CALL)
		return;
	items_push(s->lone, FLOOD);
	s->ret = !kvt_wait(&s->last);
}

static void runner_that_sleeps_keeps_what_it_polled_ahead(struct kunit *test)
{
	struct scene *s = scene_new(test, kvt_context(test), NULL);

	s->rec->on_done = call_and_sleep;
	s->light->expect = FLOOD;
	scene_begin(test, s);
	scene_end(test, s);
	KUNIT_EXPECT_EQ(test, 0, s->ret);
	KUNIT_EXPECT_EQ(test, CALL, s->at);
	KUNIT_EXPECT_GE(test, s->rec->cq->lane->stats.handovers, 1);
	KUNIT_EXPECT_EQ(test, FLOOD, atomic_read(&s->rec->seen));
}

static struct kunit_case cq_ahead_cases[] = {
	KUNIT_CASE_PARAM(neighbour_waits_for_a_share_of_what_was_polled_ahead,
			 kvt_scheduled_context),
	KUNIT_CASE_PARAM(neighbour_that_comes_at_the_end_is_served, kvt_sleeping_context),
	KUNIT_CASE_PARAM(neighbour_destroys_a_qp_that_was_polled_ahead, kvt_sleeping_context),
	KUNIT_CASE_PARAM(done_destroys_a_qp_that_was_polled_ahead, kvt_sleeping_context),
	KUNIT_CASE_PARAM(neighbour_frees_a_cq_that_was_polled_ahead, kvt_sleeping_context),
	KUNIT_CASE(flush_waits_for_what_was_polled_ahead),
	KUNIT_CASE(destroy_waits_for_what_was_polled_ahead),
	KUNIT_CASE_PARAM(rest_is_handed_out_by_the_next_runner, kvt_queued_context),
	KUNIT_CASE_PARAM(runner_that_sleeps_keeps_what_it_polled_ahead, kvt_queued_context),
	{}
};

KVT_SUITE(cq_ahead);
