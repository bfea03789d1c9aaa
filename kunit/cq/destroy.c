// SPDX-License-Identifier: GPL-2.0-only
/*
 * QPs that are destroyed while their completions are handed to done(); ib_cq_flush();
 * ib_process_cq_direct().
 */
#include <linux/delay.h>

#include "cq/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

#define LANES_MAX	3

/* How long a slow done() takes. */
#define SLOW_US		200

/* Completions that are polled in one batch. */
#define BATCH		10

/* Destroys a QP, and counts completions of it after that. */
struct undertaker {
	struct ib_qp *victim;	/* the QP */
	/* Address of @victim once it is destroyed, not to be dereferenced. */
	const void *dead;
	int late;		/* completions of @dead that were handed to done() */
	bool changed;		/* the current completion was changed by ib_destroy_qp() */
	int ret;		/* what ib_destroy_qp() returned */
};

static void bury(struct undertaker *u)
{
	const void *qp = u->victim;

	u->ret = ib_destroy_qp(u->victim);
	WRITE_ONCE(u->dead, qp);
}

/* The first completion destroys the QP. */
static void bury_first(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct undertaker *u = rec->arg;

	if (wc->qp && wc->qp == READ_ONCE(u->dead))
		u->late++;
	/* Every other item is of the destroyed QP and is dropped, which is no disorder. */
	rec->next[0] = it->n + 2;
	if (it->n)
		return;
	bury(u);
	if (wc->wr_cqe != &it->cqe)
		u->changed = true;
}

static void completions_of_a_destroyed_qp_are_dropped(struct kunit *test)
{
	struct cq_hold *h = cq_hold_of_param(test);
	struct recorder *rec = recorder_held(test, h);
	struct item *items = items_new(test, rec, BATCH);
	struct ib_qp *qp[2];
	struct undertaker u = {};
	int i;

	for (i = 0; i < 2; i++)
		qp[i] = recorder_qp(test, rec);
	u.victim = qp[1];
	recorder_expect_calls(rec, BATCH / 2, bury_first, &u);
	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	for (i = 0; i < BATCH; i++)
		KUNIT_EXPECT_TRUE(test, item_push_of(&items[i], qp[i % 2]));
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	KUNIT_EXPECT_TRUE(test, recorder_settle(rec));
	KUNIT_EXPECT_EQ(test, 0, u.ret);
	KUNIT_EXPECT_EQ(test, 0, u.late);
	for (i = 0; i < BATCH; i++)
		KUNIT_EXPECT_EQ(test, !(i % 2), items[i].dones);
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp[0]));
}

static void done_may_destroy_its_own_qp(struct kunit *test)
{
	struct cq_hold *h = cq_hold_of_param(test);
	struct recorder *rec = recorder_held(test, h);
	struct item *items = items_new(test, rec, BATCH);
	struct undertaker u = {};
	int i;

	u.victim = recorder_qp(test, rec);
	recorder_expect_calls(rec, 1, bury_first, &u);
	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	items_push_each(test, items, BATCH, u.victim);
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	KUNIT_EXPECT_TRUE(test, recorder_settle(rec));
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(rec->cq));
	KUNIT_EXPECT_EQ(test, 0, u.ret);
	KUNIT_EXPECT_FALSE(test, u.changed);
	for (i = 0; i < BATCH; i++)
		KUNIT_EXPECT_EQ(test, !i, items[i].dones);
}

static void qp_of_another_cq_of_the_lane_is_destroyed(struct kunit *test)
{
	struct cq_hold *h = cq_hold_of_param(test);
	struct recorder *rec = recorder_held(test, h);
	struct recorder *other = recorder_held(test, h);
	struct item *items = items_new(test, rec, 1);
	struct item *others = items_new(test, other, BATCH);
	struct undertaker u = {};

	u.victim = recorder_qp(test, other);
	recorder_expect_calls(rec, 1, bury_first, &u);
	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	KUNIT_EXPECT_TRUE(test, item_push(&items[0]));
	items_push_each(test, others, BATCH, u.victim);
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	KUNIT_EXPECT_TRUE(test, recorder_settle(rec));
	KUNIT_EXPECT_EQ(test, 0, u.ret);
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(rec->cq));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&other->seen));
}

/* Completions of a QP that is destroyed while they are handed to done(). */
struct batch {
	struct recorder *rec;	/* recorder of the QP's CQ */
	struct item *items;	/* the completions */
	struct kvt_gate g;	/* keeps the first done() from returning */
	struct undertaker u;	/* destroys the QP meanwhile */
};

static void batch_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct batch *b = rec->arg;

	if (wc->qp && wc->qp == READ_ONCE(b->u.dead))
		b->u.late++;
	if (!it->n)
		cq_gate_pass(&b->g);
}

static int bury_fn(void *arg)
{
	bury(arg);
	return 0;
}

static int direct_fn(void *arg)
{
	struct recorder *rec = arg;

	return ib_process_cq_direct(rec->cq, -1);
}

static void destroy_waits_for_the_batch_that_is_handed_out(struct kunit *test)
{
	struct cq_hold *h = cq_hold_of_param(test);
	struct batch *b = kvt_zalloc(test, sizeof(*b));
	struct kvt_thread *t, *poller;

	kvt_gate_init(&b->g);
	b->rec = recorder_held(test, h);
	recorder_expect_calls(b->rec, BATCH, batch_done, b);
	b->items = items_new(test, b->rec, BATCH);
	b->u.victim = recorder_qp(test, b->rec);
	t = kvt_thread_new(test, 0, bury_fn, &b->u);
	poller = kvt_thread_new(test, kvt_other_cpu(), direct_fn, b->rec);
	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	items_push_each(test, b->items, BATCH, b->u.victim);
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	if (b->rec->ctx == IB_POLL_DIRECT)
		kvt_thread_go(poller);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&b->g.entered));

	kvt_thread_go(t);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	kvt_gate_open(&b->g);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_EQ(test, 0, b->u.ret);
	/* All of them were handed to done() before ib_destroy_qp() returned. */
	KUNIT_EXPECT_EQ(test, BATCH, atomic_read(&b->rec->seen));
	KUNIT_EXPECT_EQ(test, 0, b->u.late);
	if (b->rec->ctx == IB_POLL_DIRECT)
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(poller));
}

/* Lanes that destroy QPs of each other. */
struct duel {
	struct recorder *rec[LANES_MAX];	/* one CQ on each lane */
	struct item *items[LANES_MAX];	/* for each lane, a batch of completions of its QP */
	/* For each lane, the destruction of its QP by another lane. */
	struct undertaker u[LANES_MAX];
	int lanes;			/* number of lanes */
	atomic_t meet;			/* lanes that are ready to destroy a QP */
	atomic_t alone;			/* lanes that met no other in time */
};

static void duel_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct duel *d = rec->arg;
	int me = 0;

	while (d->rec[me] != rec)
		me++;
	if (wc->qp && wc->qp == READ_ONCE(d->u[me].dead))
		d->u[me].late++;
	if (it->n)
		return;
	atomic_inc(&d->meet);
	/* Sleep instead of spinning: the other lane may be a work item on this CPU. */
	if (!kvt_until_by(atomic_read(&d->meet) == d->lanes, usleep_range(50, 100)))
		atomic_inc(&d->alone);
	bury(&d->u[(me + 1) % d->lanes]);
}

/* Each lane's first completion destroys the QP of the next lane. */
static void duel(struct kunit *test, const enum ib_poll_context *ctx, const int *vector, int lanes)
{
	struct duel *d = kvt_zalloc(test, sizeof(*d));
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_wc wc = {};
	int i, n;

	d->lanes = lanes;
	for (i = 0; i < lanes; i++) {
		d->rec[i] = recorder_up(test, m, ctx[i], vector[i]);
		d->rec[i]->on_done = duel_done;
		d->rec[i]->arg = d;
		d->items[i] = items_new(test, d->rec[i], BATCH);
		d->u[i].victim = recorder_qp(test, d->rec[i]);
		/* Only the last one notifies, so that all are polled in one batch. */
		for (n = 0; n < BATCH; n++) {
			wc.wr_cqe = &d->items[i][n].cqe;
			wc.qp = d->u[i].victim;
			if (n < BATCH - 1)
				mock_cq_push_quiet(d->rec[i]->cq, &wc);
		}
	}
	for (i = 0; i < lanes; i++)
		item_push_of(&d->items[i][BATCH - 1], d->u[i].victim);
	for (i = 0; i < lanes; i++) {
		KUNIT_EXPECT_EQ(test, 0, ib_cq_flush(d->rec[i]->cq));
		KUNIT_EXPECT_TRUE(test, cq_rig_rest(d->rec[i]->cq));
	}
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&d->alone));
	for (i = 0; i < lanes; i++) {
		KUNIT_EXPECT_EQ(test, 0, d->u[i].ret);
		KUNIT_EXPECT_NOT_NULL(test, d->u[i].dead);
		KUNIT_EXPECT_EQ(test, 0, d->u[i].late);
		KUNIT_EXPECT_EQ(test, 0, d->rec[i]->concurrent);
	}
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->live[MOCK_QP]));
}

static void two_lanes_destroy_qps_of_each_other(struct kunit *test)
{
	enum ib_poll_context ctx[] = { kvt_context(test), kvt_context(test) };
	int vector[] = { 0, kvt_other_cpu() };

	kvt_need_two_cpus(test);
	duel(test, ctx, vector, 2);
}

static void three_lanes_destroy_qps_in_a_circle(struct kunit *test)
{
	static const enum ib_poll_context ctx[] = {
		IB_POLL_THREAD, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE,
	};
	static const int vector[] = { 0, 0, 0 };

	duel(test, ctx, vector, 3);
}

static void two_cqs_of_a_lane_destroy_qps_of_each_other(struct kunit *test)
{
	enum ib_poll_context ctx[] = { kvt_context(test), kvt_context(test) };
	static const int vector[] = { 0, 0 };

	duel(test, ctx, vector, 2);
}

static void three_cqs_of_a_lane_destroy_qps_in_a_circle(struct kunit *test)
{
	enum ib_poll_context ctx[] = {
		kvt_context(test), kvt_context(test), kvt_context(test),
	};
	static const int vector[] = { 0, 0, 0 };

	duel(test, ctx, vector, 3);
}

/* --- ib_cq_flush() ---------------------------------------------------------- */

struct flusher {
	struct recorder *rec;
	int seen;
};

static int flush_fn(void *arg)
{
	struct flusher *f = arg;
	int ret = ib_cq_flush(f->rec->cq);

	f->seen = atomic_read(&f->rec->seen);
	return ret;
}

static void flush_handles_what_is_there(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 100);

	KUNIT_EXPECT_EQ(test, 0, ib_cq_flush(rec->cq));
	rec->expect = 100;
	items_push_each(test, items, 100, NULL);
	KUNIT_EXPECT_EQ(test, 0, ib_cq_flush(rec->cq));
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, 0, mock_cq_pending(rec->cq));
	KUNIT_EXPECT_EQ(test, 0, ib_cq_flush(rec->cq));
}

/* Slow, so that a flush that returns too early is noticed. */
static void dawdle(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	udelay(SLOW_US);
}

static void flush_waits_until_it_is_handled(struct kunit *test)
{
	struct cq_hold *h = cq_hold_of_param(test);
	struct recorder *rec = recorder_held(test, h);
	struct item *items = items_new(test, rec, 100);
	struct flusher f[2] = { { .rec = rec }, { .rec = rec } };
	struct kvt_thread *t[2];
	int i;

	rec->on_done = dawdle;
	rec->expect = 100;
	for (i = 0; i < 2; i++)
		t[i] = kvt_thread_new(test, 0, flush_fn, &f[i]);
	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	items_push_each(test, items, 100, NULL);
	for (i = 0; i < 2; i++)
		kvt_thread_go(t[i]);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t[i]));
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(t[i]));
		KUNIT_EXPECT_EQ(test, 0, t[i]->ret);
		KUNIT_EXPECT_EQ(test, 100, f[i].seen);
	}
	KUNIT_EXPECT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
}

struct endless {
	struct flusher f;
	bool stop;
};

static void push_forever(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct endless *e = rec->arg;

	it->n += 100;
	if (!READ_ONCE(e->stop))
		item_push(it);
}

static void flush_ends_though_completions_keep_coming(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct item *items = items_new(test, rec, 100);
	struct endless *e = kvt_zalloc(test, sizeof(*e));
	struct kvt_thread *t;

	e->f.rec = rec;
	rec->on_done = push_forever;
	rec->arg = e;
	KUNIT_EXPECT_TRUE(test, items_push(items, 100));
	t = kvt_thread_start(test, -1, flush_fn, &e->f);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	WRITE_ONCE(e->stop, true);
	KUNIT_EXPECT_EQ(test, 0, t->ret);
	KUNIT_EXPECT_GE(test, e->f.seen, 100);
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(rec->cq));
	KUNIT_EXPECT_EQ(test, 0, rec->concurrent + rec->disorder);
}

static void flush_inside(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct flusher *f = rec->arg;

	f[0].seen = ib_cq_flush(cq);
	if (f[1].rec)
		f[1].seen = ib_cq_flush(f[1].rec->cq);
}

/* A thread polls both CQs; in a work queue, another runner takes over. */
static void flush_in_a_done_of_what_polls_the_cq_is_refused(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct flusher f[2] = { { .seen = 1 }, { .seen = 1 } };

	f[1].rec = recorder_up(test, rec->m, rec->ctx, 0);
	recorder_call_once(test, rec, flush_inside, f);
	KUNIT_EXPECT_EQ(test, -EDEADLK, f[0].seen);
	KUNIT_EXPECT_EQ(test, rec->ctx == IB_POLL_THREAD ? -EDEADLK : 0, f[1].seen);
}

static void flush_in_a_done_of_a_direct_cq_is_refused(struct kunit *test)
{
	struct recorder *rec = recorder_up(test, mock_up(test, "kvtm_a"), IB_POLL_DIRECT, 0);
	struct flusher f[2] = { { .seen = 1 } };

	recorder_call_once(test, rec, flush_inside, f);
	KUNIT_EXPECT_EQ(test, -EDEADLK, f[0].seen);
}

static void flush_of_a_cq_that_the_consumer_arms_is_refused(struct kunit *test)
{
	struct ib_cq_init_attr attr = { .cqe = 16 };
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq = KVT_PTR(test, ib_create_cq(m->ibdev, NULL, NULL, NULL, &attr));

	KUNIT_EXPECT_EQ(test, -EINVAL, ib_cq_flush(cq));
	ib_destroy_cq(cq);
}

/* --- IB_POLL_DIRECT --------------------------------------------------------- */

static void direct_cq_is_polled_by_one_at_a_time(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct cq_hold *h = cq_hold_new(test, m, IB_POLL_DIRECT);
	struct item *more = items_new(test, h->rec, 2);

	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	KUNIT_EXPECT_TRUE(test, item_push(&more[1]));
	KUNIT_EXPECT_EQ(test, 0, ib_process_cq_direct(h->rec->cq, -1));
	KUNIT_EXPECT_EQ(test, 1, mock_cq_pending(h->rec->cq));
	h->rec->on_done = NULL;
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	h->rec->expect = 2;
	KUNIT_EXPECT_TRUE(test, recorder_settle(h->rec));
	recorder_expect_clean(test, h->rec);
}

static void poll_inside(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	*(int *)rec->arg += ib_process_cq_direct(cq, -1);
}

static void direct_poll_in_its_own_done_finds_nothing(struct kunit *test)
{
	struct recorder *rec = recorder_up(test, mock_up(test, "kvtm_a"), IB_POLL_DIRECT, 0);
	struct item *items = items_new(test, rec, 40);
	int inside = 0;

	recorder_expect_calls(rec, 40, poll_inside, &inside);
	items_push_each(test, items, 40, NULL);
	KUNIT_EXPECT_EQ(test, 40, ib_process_cq_direct(rec->cq, -1));
	KUNIT_EXPECT_EQ(test, 0, inside);
	recorder_expect_clean(test, rec);
}

static void direct_poll_of_a_scheduled_cq_does_nothing(struct kunit *test)
{
	struct cq_hold *h = cq_hold_of_param(test);
	struct recorder *rec = recorder_held(test, h);

	rec->expect = 1;
	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, rec, 1)));
	KUNIT_EXPECT_EQ(test, 0, ib_process_cq_direct(rec->cq, -1));
	KUNIT_EXPECT_EQ(test, 1, mock_cq_pending(rec->cq));
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	KUNIT_EXPECT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
}

static struct kunit_case cq_destroy_cases[] = {
	KUNIT_CASE_PARAM(completions_of_a_destroyed_qp_are_dropped, kvt_sleeping_context),
	KUNIT_CASE_PARAM(done_may_destroy_its_own_qp, kvt_sleeping_context),
	KUNIT_CASE_PARAM(qp_of_another_cq_of_the_lane_is_destroyed, kvt_sleeping_context),
	KUNIT_CASE_PARAM(destroy_waits_for_the_batch_that_is_handed_out, kvt_any_context),
	KUNIT_CASE_PARAM(two_lanes_destroy_qps_of_each_other, kvt_sleeping_context),
	KUNIT_CASE(three_lanes_destroy_qps_in_a_circle),
	KUNIT_CASE_PARAM(two_cqs_of_a_lane_destroy_qps_of_each_other, kvt_queued_context),
	KUNIT_CASE_PARAM(three_cqs_of_a_lane_destroy_qps_in_a_circle, kvt_queued_context),
	KUNIT_CASE_PARAM(flush_handles_what_is_there, kvt_any_context),
	KUNIT_CASE_PARAM(flush_waits_until_it_is_handled, kvt_scheduled_context),
	KUNIT_CASE_PARAM(flush_ends_though_completions_keep_coming, kvt_scheduled_context),
	KUNIT_CASE_PARAM(flush_in_a_done_of_what_polls_the_cq_is_refused, kvt_sleeping_context),
	KUNIT_CASE(flush_in_a_done_of_a_direct_cq_is_refused),
	KUNIT_CASE(flush_of_a_cq_that_the_consumer_arms_is_refused),
	KUNIT_CASE(direct_cq_is_polled_by_one_at_a_time),
	KUNIT_CASE(direct_poll_in_its_own_done_finds_nothing),
	KUNIT_CASE_PARAM(direct_poll_of_a_scheduled_cq_does_nothing, kvt_scheduled_context),
	{}
};
KVT_SUITE(cq_destroy);
