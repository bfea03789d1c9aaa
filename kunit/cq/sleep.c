// SPDX-License-Identifier: GPL-2.0-only
/*
 * A done() that sleeps in a work queue: the other CQs of its vector and context are still
 * polled, the lane stays fair and goes idle in the end, and CQs and QPs can be destroyed as
 * usual. A sleep ends when the case lets it, or too late, which the case then reports.
 */
#include <linux/delay.h>
#include <linux/mutex.h>
#include <linux/timer.h>
#include <kverbs/delay.h>

#include "../cq/cq.h"
#include "lib/console.h"
#include "cq/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

/* Completions that are polled in one batch. */
#define BATCH		10

/* Completions that a drain or a flush has to wait for. */
#define BEFORE		50
#define LATE_NS		(5 * NSEC_PER_MSEC)

/* Times that a done() asks, a jiffy apart. A lane is to go on without it after about two. */
#define PATIENCE	100

/* More than a work queue has active at a time by default. */
#define SLEEPERS	300

/* CQs whose done() sleep, with another one behind them. */
#define BEHIND		50

/* Completions of each CQ of which one has a weight, whose share they are a multiple of. */
#define WEIGHT		3
#define FLOOD		(4 * WEIGHT * IB_CQ_SHARE)

/* CQs that take turns at sleeping, and completions of each. */
#define NAPPERS		6
#define NAPS		3000
#define AHEAD		20

/* Creates a CQ beside others, for which @on_done is called with @arg. */
static struct recorder *beside(struct kunit *test, struct mock *m, recorder_fn *on_done, void *arg)
{
	struct recorder *rec = recorder_up(test, m, kvt_context(test), 0);

	recorder_expect_calls(rec, 1, on_done, arg);
	return rec;
}

static void sleep_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);

	if (!it->n)
		cq_gate_pass(rec->arg);
}

/* Creates a CQ, and pushes a completion whose done() sleeps at @g. */
static struct recorder *sleeper(struct kunit *test, struct mock *m, struct kvt_gate *g)
{
	struct recorder *rec;

	kvt_gate_init(g);
	rec = beside(test, m, sleep_in_done, g);
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, rec, 1)));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&g->entered));
	return rec;
}

/* Expects that a completion of @rec is handled. */
static void expect_served(struct kunit *test, struct recorder *rec)
{
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, rec, 1)));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&rec->all));
	recorder_expect_clean(test, rec);
}

/* Lets the done() of a sleeper() return, and expects that it had to be let. */
static void expect_asleep(struct kunit *test, struct recorder *rec, struct kvt_gate *g)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&rec->seen));
	kvt_gate_open(g);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&rec->all));
	KUNIT_EXPECT_TRUE(test, g->in_time);
	recorder_expect_clean(test, rec);
}

/* --- waiting for others ------------------------------------------------------ */

static void open_gate(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	kvt_gate_open(rec->arg);
}

static void c16_done_may_wait_for_a_done_of_its_lane(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_gate g;
	struct recorder *a = sleeper(test, m, &g);
	struct recorder *b = beside(test, m, open_gate, &g);

	expect_served(test, b);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&a->all));
	KUNIT_EXPECT_TRUE(test, g.in_time);
	recorder_expect_clean(test, a);
}

/* Nothing is woken after the done() has begun. */
static void done_may_wait_for_a_done_that_is_next_in_line(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_gate g;
	struct recorder *a, *b;
	struct item *first, *second;

	kvt_gate_init(&g);
	a = beside(test, m, sleep_in_done, &g);
	b = beside(test, m, open_gate, &g);
	first = items_new(test, a, 1);
	second = items_new(test, b, 1);
	/* A softirq or another task does not come between. */
	preempt_disable();
	KUNIT_EXPECT_TRUE(test, item_push(first));
	KUNIT_EXPECT_TRUE(test, item_push(second));
	preempt_enable();
	KUNIT_EXPECT_TRUE(test, kvt_wait(&b->all));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&a->all));
	KUNIT_EXPECT_TRUE(test, g.in_time);
	recorder_expect_clean(test, a);
	recorder_expect_clean(test, b);
}

static void done_may_wait_for_another_lane_that_waits_for_its_own(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_gate ga, gb;
	struct recorder *a = sleeper(test, m, &ga);
	struct recorder *b, *c;

	/* C lets B return, whose return lets A. */
	kvt_gate_init(&gb);
	b = recorder_up(test, m, IB_POLL_THREAD, 0);
	recorder_expect_calls(b, 1, sleep_in_done, &gb);
	c = beside(test, m, open_gate, &gb);
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, b, 1)));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&gb.entered));
	expect_served(test, c);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&b->all));
	KUNIT_EXPECT_TRUE(test, gb.in_time);
	expect_asleep(test, a, &ga);
}

static void lock_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	mutex_lock(rec->arg);
	mutex_unlock(rec->arg);
}

static void c16_done_that_waits_for_a_mutex_stops_nobody(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *a, *b;
	struct mutex lock;

	mutex_init(&lock);
	a = beside(test, m, lock_in_done, &lock);
	b = beside(test, m, NULL, NULL);
	mutex_lock(&lock);
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, a, 1)));
	expect_served(test, b);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->seen));
	mutex_unlock(&lock);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&a->all));
	recorder_expect_clean(test, a);
	mutex_destroy(&lock);
}

/* A done() that asks again and again, a jiffy later, whether the done() beside it was called. */
struct asker {
	struct recorder *other;
	struct item *item;	/* completion of @other */
	int asked;
};

/*
 * The watch starts before the first sleep, so each sleep ends before the watch looks: of timers of
 * the same jiffy, the last to be added is the first to expire.
 */
static void ask_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct asker *a = rec->arg;

	item_push(a->item);
	while (!atomic_read(&a->other->seen) && a->asked < PATIENCE) {
		a->asked++;
		schedule_timeout_uninterruptible(1);
	}
}

static void c16_done_that_sleeps_by_jiffies_stops_nobody(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct asker asker = {};
	struct recorder *rec;

	asker.other = beside(test, m, NULL, NULL);
	asker.item = items_new(test, asker.other, 1);
	rec = beside(test, m, ask_in_done, &asker);
	expect_served(test, rec);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&asker.other->all));
	recorder_expect_clean(test, asker.other);
	KUNIT_EXPECT_LT(test, asker.asked, PATIENCE);
}

static void c16_two_may_sleep_beside_a_third(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_gate g[2];
	struct recorder *a = sleeper(test, m, &g[0]);
	struct recorder *b = sleeper(test, m, &g[1]);
	struct recorder *c = beside(test, m, NULL, NULL);

	expect_served(test, c);
	expect_asleep(test, a, &g[0]);
	expect_asleep(test, b, &g[1]);
	KUNIT_EXPECT_GE(test, c->cq->lane->stats.handovers, 2);
}

/* Many done() that sleep at once. */
struct crowd {
	atomic_t inside;	/* number of them */
	struct completion full;	/* completed when all are inside */
	struct completion go;	/* lets them return */
	atomic_t late;		/* number of those that gave up */
};

static void crowd_in(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct crowd *c = rec->arg;

	if (atomic_inc_return(&c->inside) == SLEEPERS)
		complete(&c->full);
	if (!kvt_wait(&c->go))
		atomic_inc(&c->late);
}

static void hundreds_may_sleep_at_once(struct kunit *test)
{
	struct recorder **rec = kunit_kcalloc(test, SLEEPERS, sizeof(*rec), GFP_KERNEL);
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *awake = beside(test, m, NULL, NULL);
	struct crowd c = {};
	int i;

	KUNIT_ASSERT_NOT_NULL(test, rec);
	init_completion(&c.full);
	init_completion(&c.go);
	for (i = 0; i < SLEEPERS; i++) {
		rec[i] = beside(test, m, crowd_in, &c);
		KUNIT_EXPECT_TRUE(test, item_push(items_new(test, rec[i], 1)));
	}
	KUNIT_EXPECT_TRUE(test, kvt_wait(&c.full));
	expect_served(test, awake);
	complete_all(&c.go);
	for (i = 0; i < SLEEPERS; i++) {
		KUNIT_EXPECT_TRUE(test, kvt_wait(&rec[i]->all));
		recorder_expect_clean(test, rec[i]);
	}
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&c.late));
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(awake->cq));
}

/*
 * A CQ that is queued behind CQs whose done() functions sleep unnoticed waits for each of them
 * once, and not longer than the watch takes to detect it. Only virtual time can measure that.
 */
static void cq_behind_sleepers_waits_two_jiffies_for_each(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *rec[BEHIND], *awake;
	struct item *item[BEHIND + 1];
	struct crowd c = {};
	unsigned long took;
	int i;

	init_completion(&c.full);
	init_completion(&c.go);
	for (i = 0; i < BEHIND; i++) {
		rec[i] = beside(test, m, crowd_in, &c);
		item[i] = items_new(test, rec[i], 1);
	}
	awake = beside(test, m, NULL, NULL);
	item[i] = items_new(test, awake, 1);
	took = jiffies;
	for (i = 0; i <= BEHIND; i++)
		KUNIT_EXPECT_TRUE(test, item_push(item[i]));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&awake->all));
	took = jiffies - took;
	KUNIT_EXPECT_EQ(test, BEHIND, atomic_read(&c.inside));
	KUNIT_EXPECT_EQ(test, BEHIND, awake->cq->lane->stats.handovers);
	if (IS_ENABLED(CONFIG_UML))
		KUNIT_EXPECT_LE(test, took, 2 * (BEHIND + 1));
	complete_all(&c.go);
	for (i = 0; i < BEHIND; i++) {
		KUNIT_EXPECT_TRUE(test, kvt_wait(&rec[i]->all));
		recorder_expect_clean(test, rec[i]);
	}
	recorder_expect_clean(test, awake);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&c.late));
}

/* --- waiting for a CQ -------------------------------------------------------- */

/* What a done() does to another CQ. */
struct inner {
	struct recorder *rec;	/* recorder of that CQ */
	struct ib_qp *qp;	/* a QP of that CQ */
	int seen;		/* completions handled when the call returned */
	int ret;		/* what it returned */
	enum ib_qp_state state;	/* state of @qp then */
};

static void drain_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct inner *in = rec->arg;

	ib_drain_qp(in->qp);
	in->seen = atomic_read(&in->rec->seen);
	in->state = mock_qp_state(in->qp);
	in->ret = ib_destroy_qp(in->qp);
}

static void flush_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct inner *in = rec->arg;

	in->ret = ib_cq_flush(in->rec->cq);
	in->seen = atomic_read(&in->rec->seen);
}

static void free_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct inner *in = rec->arg;

	recorder_free(in->rec);
	in->seen = atomic_read(&in->rec->seen);
}

/* In the done() of one CQ, another one with BEFORE completions is dealt with. */
static void deal_with_another(struct kunit *test, struct inner *in, recorder_fn *how)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *a = beside(test, m, how, in);
	struct item *first = items_new(test, a, 1);
	struct item *items;

	/* It steps aside by itself: the watch is not needed. */
	a->cq->lane->watched = false;
	in->rec = beside(test, m, NULL, NULL);
	in->rec->expect = BEFORE;
	in->ret = 1;
	items = items_new(test, in->rec, BEFORE);
	if (how == drain_in_done)
		in->qp = recorder_qp(test, in->rec);
	m->flush_ns = LATE_NS;
	/* Unless another CPU runs the lane, the second CQ waits in line behind the first. */
	preempt_disable();
	KUNIT_EXPECT_TRUE(test, item_push(first));
	items_push_each(test, items, BEFORE, in->qp);
	preempt_enable();
	KUNIT_ASSERT_TRUE(test, kvt_wait(&a->all));
	recorder_expect_clean(test, a);
}

static void c16_done_may_drain_a_qp_of_another_cq_of_its_lane(struct kunit *test)
{
	struct inner *in = kvt_zalloc(test, sizeof(*in));

	deal_with_another(test, in, drain_in_done);
	KUNIT_EXPECT_EQ(test, BEFORE, in->seen);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, in->state);
	KUNIT_EXPECT_EQ(test, 0, in->ret);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(in->rec->m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(in->rec->m, MOCK_post_recv));
	recorder_expect_clean(test, in->rec);
}

static void c16_done_may_flush_another_cq_of_its_lane(struct kunit *test)
{
	struct inner *in = kvt_zalloc(test, sizeof(*in));

	deal_with_another(test, in, flush_in_done);
	KUNIT_EXPECT_EQ(test, 0, in->ret);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&in->rec->all));
	recorder_expect_clean(test, in->rec);
}

static void c16_done_may_free_another_cq_of_its_lane(struct kunit *test)
{
	struct inner *in = kvt_zalloc(test, sizeof(*in));

	deal_with_another(test, in, free_in_done);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(in->rec->m, MOCK_destroy_cq));
	KUNIT_EXPECT_EQ(test, in->seen, atomic_read(&in->rec->seen));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&in->rec->inside));
}

static int free_fn(void *arg)
{
	recorder_free(arg);
	return 0;
}

/* The done() that the flush, or the free, has to wait for sleeps itself. */
static void done_waits_for_another_that_sleeps(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct inner *in = kvt_zalloc(test, sizeof(*in));
	struct kvt_gate g;
	struct recorder *b = sleeper(test, m, &g);
	struct recorder *c = beside(test, m, NULL, NULL);
	struct recorder *a;

	in->rec = b;
	a = beside(test, m, flush_in_done, in);
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, a, 1)));
	expect_served(test, c);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->seen));
	expect_asleep(test, b, &g);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&a->all));
	KUNIT_EXPECT_EQ(test, 0, in->ret);
	KUNIT_EXPECT_EQ(test, 1, in->seen);
}

/* --- the way out ------------------------------------------------------------- */

/* A QP that is destroyed while a done() of it sleeps. */
struct grave {
	struct kvt_gate g;	/* keeps the first done() asleep */
	struct ib_qp *qp;	/* the QP */
	const void *dead;	/* its address once it is destroyed, not to be dereferenced */
	int late;		/* completions of @dead that were handed to done() */
};

static void grave_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct grave *gr = rec->arg;

	if (wc->qp && wc->qp == READ_ONCE(gr->dead))
		gr->late++;
	if (!it->n)
		cq_gate_pass(&gr->g);
}

static int bury_fn(void *arg)
{
	struct grave *gr = arg;
	const void *qp = gr->qp;
	int ret = ib_destroy_qp(gr->qp);

	WRITE_ONCE(gr->dead, qp);
	return ret;
}

static void bury_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	bury_fn(rec->arg);
}

/* The first done() of a batch of the QP sleeps, and another CQ is served meanwhile. */
static struct recorder *grave_dug(struct kunit *test, struct mock *m, struct grave *gr)
{
	struct recorder *rec;
	struct item *items;
	struct ib_wc wc = {};
	int i;

	kvt_gate_init(&gr->g);
	rec = beside(test, m, grave_done, gr);
	rec->expect = BATCH;
	items = items_new(test, rec, BATCH);
	gr->qp = recorder_qp(test, rec);
	for (i = 0; i < BATCH - 1; i++) {
		wc.wr_cqe = &items[i].cqe;
		wc.qp = gr->qp;
		KUNIT_EXPECT_TRUE(test, mock_cq_push_quiet(rec->cq, &wc));
	}
	KUNIT_EXPECT_TRUE(test, item_push_of(&items[i], gr->qp));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&gr->g.entered));
	expect_served(test, beside(test, m, NULL, NULL));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&rec->seen));
	return rec;
}

static void q7_destroy_waits_for_a_done_that_sleeps(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct grave *gr = kvt_zalloc(test, sizeof(*gr));
	struct recorder *rec;
	struct kvt_thread *t;

	rec = grave_dug(test, m, gr);
	t = kvt_thread_start(test, -1, bury_fn, gr);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	kvt_gate_open(&gr->g);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_EQ(test, 0, t->ret);
	KUNIT_EXPECT_EQ(test, BATCH, atomic_read(&rec->seen));
	KUNIT_EXPECT_EQ(test, 0, gr->late);
	KUNIT_EXPECT_TRUE(test, gr->g.in_time);
	recorder_expect_clean(test, rec);
}

/*
 * Expects that @fn(@arg), which waits for a done() that sleeps at @g, says so in the log by @words.
 */
static void expect_words(struct kunit *test, const char *words, int (*fn)(void *arg), void *arg,
			 struct kvt_gate *g)
{
	struct kvt_console *said = kvt_console_watch(test, words);
	struct kvt_thread *t;

	cq_rig_warn_soon(test);
	t = kvt_thread_start(test, -1, fn, arg);
	KUNIT_EXPECT_TRUE(test, kvt_console_wait(said));
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(t));
	kvt_gate_open(g);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_EQ(test, 0, t->ret);
}

static void q7_destroy_that_waits_says_so(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct grave *gr = kvt_zalloc(test, sizeof(*gr));

	grave_dug(test, m, gr);
	expect_words(test, "waiting for a done() of its CQ", bury_fn, gr, &gr->g);
}

static void free_that_waits_says_so(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_gate g;

	expect_words(test, "waiting for its done()", free_fn, sleeper(test, m, &g), &g);
}

static int flush_fn(void *arg)
{
	struct recorder *rec = arg;

	return ib_cq_flush(rec->cq);
}

static void flush_that_waits_says_so(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_gate g;

	expect_words(test, "waiting for a done() of it to return", flush_fn, sleeper(test, m, &g),
		     &g);
}

static int poll_fn(void *arg)
{
	struct recorder *rec = arg;

	return ib_process_cq_direct(rec->cq, -1);
}

static void free_that_waits_for_a_caller_says_so(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *rec = recorder_up(test, m, IB_POLL_DIRECT, 0);
	struct kvt_thread *poller;
	struct kvt_gate g;

	kvt_gate_init(&g);
	rec->on_done = sleep_in_done;
	rec->arg = &g;
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, rec, 1)));
	poller = kvt_thread_start(test, -1, poll_fn, rec);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&g.entered));
	expect_words(test, "waiting for ib_process_cq_direct() to return", free_fn, rec, &g);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(poller));
	KUNIT_EXPECT_EQ(test, 1, poller->ret);
}

static void done_that_destroys_waits_for_a_done_that_sleeps(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct grave *gr = kvt_zalloc(test, sizeof(*gr));
	struct recorder *rec, *digger, *third;

	rec = grave_dug(test, m, gr);
	digger = beside(test, m, bury_in_done, gr);
	third = beside(test, m, NULL, NULL);
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, digger, 1)));
	expect_served(test, third);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&digger->seen));
	kvt_gate_open(&gr->g);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&digger->all));
	KUNIT_EXPECT_EQ(test, BATCH, atomic_read(&rec->seen));
	KUNIT_EXPECT_EQ(test, 0, gr->late);
	KUNIT_EXPECT_TRUE(test, gr->g.in_time);
	recorder_expect_clean(test, rec);
}

/* The QP of the done() itself: what the displaced runner has still to hand out is dropped. */
static void bury_own(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	grave_done(rec, cq, wc);
	bury_fn(rec->arg);
}

static void done_that_slept_may_destroy_its_own_qp(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct grave *gr = kvt_zalloc(test, sizeof(*gr));
	struct recorder *rec = grave_dug(test, m, gr);

	rec->on_done = bury_own;
	/* It is inside grave_done() now: the second completion of the batch destroys the QP. */
	rec->expect = 2;
	kvt_gate_open(&gr->g);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&rec->all));
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(rec->cq));
	KUNIT_EXPECT_EQ(test, 0, ib_cq_flush(rec->cq));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&rec->seen));
	KUNIT_EXPECT_EQ(test, 0, gr->late);
}

static int leave_fn(void *arg)
{
	struct recorder *rec = arg;
	struct mock *m = rec->m;

	recorder_free(rec);
	mock_unregister(m);
	return 0;
}

static void device_goes_when_the_sleeper_has_returned(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_gate g;
	struct recorder *rec = sleeper(test, m, &g);
	struct recorder *other = beside(test, m, NULL, NULL);
	struct kvt_thread *t;

	expect_served(test, other);
	recorder_free(other);
	t = kvt_thread_start(test, -1, leave_fn, rec);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_destroy_cq));
	kvt_gate_open(&g);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_TRUE(test, g.in_time);
	KUNIT_EXPECT_EQ(test, 2, mock_calls(m, MOCK_destroy_cq));
	recorder_expect_clean(test, rec);
	MOCK_EXPECT_IDLE(test, m);
}

/* A runner that stands still before it gives its CQ back. */
struct return_slowly {
	struct kvt_gate asleep;	/* lets the done() return */
	struct kvt_gate back;	/* holds up the runner after that */
};

static void stand_still(void *arg)
{
	struct return_slowly *r = arg;

	cq_gate_pass(&r->back);
	kverbs_delay_clear();
}

static void return_slowly_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct return_slowly *r = rec->arg;

	kverbs_delay_set("ib_cq_return_runner", stand_still, r);
	cq_gate_pass(&r->asleep);
}

/* The lane is at rest when the runner of the CQ is late in giving it back. */
static void cq_that_is_given_back_late_is_freed_after_that(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct return_slowly r;
	struct recorder *rec, *other;
	struct kvt_thread *t;

	kvt_gate_init(&r.asleep);
	kvt_gate_init(&r.back);
	rec = beside(test, m, return_slowly_done, &r);
	other = beside(test, m, NULL, NULL);
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, rec, 1)));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&r.asleep.entered));
	expect_served(test, other);
	kvt_gate_open(&r.asleep);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&r.back.entered));
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(other->cq));
	t = kvt_thread_start(test, -1, free_fn, rec);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	kvt_gate_open(&r.back);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_TRUE(test, r.back.in_time);
	recorder_expect_clean(test, rec);
}

/* --- the lane ---------------------------------------------------------------- */

/* Two CQs that are filled at once. */
struct race {
	struct recorder *rec[2];	/* their recorders; the second one has the weight WEIGHT */
	struct item *items[2];		/* FLOOD completions of each */
	/* completions of the first that were handled when the second one was empty */
	int lost;
};

static void start_race(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct race *r = rec->arg;

	items_push(r->items[0], FLOOD);
	items_push(r->items[1], FLOOD);
}

static void end_race(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct race *r = rec->arg;

	if (atomic_read(&rec->seen) == FLOOD - 1)
		r->lost = atomic_read(&r->rec[0]->seen);
}

static void lane_with_a_sleeper_is_fair(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct race *r = kvt_zalloc(test, sizeof(*r));
	struct kvt_gate g;
	struct recorder *a = sleeper(test, m, &g);
	int i;

	for (i = 0; i < 2; i++) {
		r->rec[i] = beside(test, m, i ? end_race : NULL, r);
		r->rec[i]->expect = FLOOD;
		r->items[i] = items_new(test, r->rec[i], FLOOD);
	}
	KUNIT_EXPECT_EQ(test, 0, ib_cq_set_weight(r->rec[1]->cq, WEIGHT));
	/* In the runner, so that both are in line before it goes on. */
	expect_served(test, beside(test, m, start_race, r));
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, kvt_wait(&r->rec[i]->all));
		recorder_expect_clean(test, r->rec[i]);
	}
	KUNIT_EXPECT_EQ(test, FLOOD / WEIGHT, r->lost);
	expect_asleep(test, a, &g);
}

/* Waits until the watch of a lane is off. Returns false if it stays on. */
static bool watch_ends(struct ib_cq_lane *lane)
{
	unsigned long end = jiffies + KVT_TIMEOUT;

	while (hrtimer_is_queued(&lane->watch.timer) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	return !hrtimer_is_queued(&lane->watch.timer);
}

static void watch_is_on_only_while_somebody_waits(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *b = beside(test, m, NULL, NULL);
	struct ib_cq_lane *lane = b->cq->lane;
	struct kvt_gate g;
	struct recorder *a = sleeper(test, m, &g);

	/* No other CQ waits next to the one that sleeps. */
	KUNIT_EXPECT_FALSE(test, hrtimer_is_queued(&lane->watch.timer));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&lane->active));
	KUNIT_EXPECT_EQ(test, 0, lane->stats.handovers);
	expect_served(test, b);
	KUNIT_EXPECT_EQ(test, 1, lane->stats.handovers);
	/* It still sleeps, but the lane is at rest. */
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(b->cq));
	KUNIT_EXPECT_TRUE(test, watch_ends(lane));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&lane->active));
	expect_asleep(test, a, &g);
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(b->cq));
	KUNIT_EXPECT_TRUE(test, watch_ends(lane));
}

/* A CQ whose done() sleeps now and then. */
struct napper {
	struct recorder *rec;	/* its recorder */
	struct ib_cq *quiet;	/* a CQ without completions */
	struct item *items;	/* completions, used in turn */
	u32 rng;		/* state of the random number generator */
	u32 total;		/* number of completions */
	bool waited;		/* it has waited for another CQ of the lane */
};

static void nap(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct napper *n = rec->arg;

	/* What needs a handover is done at least once, whatever the random numbers are. */
	switch (n->waited ? kvt_rand(&n->rng) % 64 : 2) {
	case 0:
		schedule_timeout_uninterruptible(3);
		break;
	case 1:
		usleep_range(50, 100);
		break;
	case 2:
		n->waited = true;
		ib_cq_flush(n->quiet);
		break;
	}
	it->n += AHEAD;
	if (it->n < n->total)
		item_push(it);
}

static void nobody_is_forgotten_when_all_sleep_now_and_then(struct kunit *test)
{
	struct napper *n = kunit_kcalloc(test, NAPPERS, sizeof(*n), GFP_KERNEL);
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *quiet = beside(test, m, NULL, NULL);
	u32 total = max_t(u64, 2 * AHEAD, kvt_count(NAPS));
	u32 seed = kvt_seed(test, "completions of each CQ", total);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, n);
	for (i = 0; i < NAPPERS; i++) {
		n[i].rec = beside(test, m, nap, &n[i]);
		n[i].rec->expect = total;
		n[i].quiet = quiet->cq;
		n[i].total = total;
		n[i].rng = seed + i + 1;
		n[i].items = items_new(test, n[i].rec, AHEAD);
	}
	/* All are there before the first is handled and pushed again, which keeps their order. */
	for (i = 0; i < NAPPERS; i++)
		KUNIT_EXPECT_TRUE(test, items_push(n[i].items, AHEAD));
	for (i = 0; i < NAPPERS; i++) {
		KUNIT_EXPECT_TRUE(test, kvt_wait(&n[i].rec->all));
		recorder_expect_clean(test, n[i].rec);
	}
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(n[0].rec->cq));
	kunit_info(test, "%llu handovers", n[0].rec->cq->lane->stats.handovers);
	KUNIT_EXPECT_GT(test, n[0].rec->cq->lane->stats.handovers, 0);
}

static struct kunit_case cq_sleep_cases[] = {
	KUNIT_CASE_PARAM(c16_done_may_wait_for_a_done_of_its_lane, kvt_queued_context),
	KUNIT_CASE_PARAM(done_may_wait_for_a_done_that_is_next_in_line, kvt_queued_context),
	KUNIT_CASE_PARAM(done_may_wait_for_another_lane_that_waits_for_its_own, kvt_queued_context),
	KUNIT_CASE_PARAM(c16_done_that_waits_for_a_mutex_stops_nobody, kvt_queued_context),
	KUNIT_CASE_PARAM(c16_done_that_sleeps_by_jiffies_stops_nobody, kvt_queued_context),
	KUNIT_CASE_PARAM(c16_two_may_sleep_beside_a_third, kvt_queued_context),
	KUNIT_CASE_PARAM(hundreds_may_sleep_at_once, kvt_queued_context),
	KUNIT_CASE_PARAM(cq_behind_sleepers_waits_two_jiffies_for_each, kvt_queued_context),
	KUNIT_CASE_PARAM(c16_done_may_drain_a_qp_of_another_cq_of_its_lane, kvt_queued_context),
	KUNIT_CASE_PARAM(c16_done_may_flush_another_cq_of_its_lane, kvt_queued_context),
	KUNIT_CASE_PARAM(c16_done_may_free_another_cq_of_its_lane, kvt_queued_context),
	KUNIT_CASE_PARAM(done_waits_for_another_that_sleeps, kvt_queued_context),
	KUNIT_CASE_PARAM(q7_destroy_waits_for_a_done_that_sleeps, kvt_queued_context),
	KUNIT_CASE_PARAM(q7_destroy_that_waits_says_so, kvt_queued_context),
	KUNIT_CASE_PARAM(free_that_waits_says_so, kvt_queued_context),
	KUNIT_CASE_PARAM(flush_that_waits_says_so, kvt_queued_context),
	KUNIT_CASE(free_that_waits_for_a_caller_says_so),
	KUNIT_CASE_PARAM(done_that_destroys_waits_for_a_done_that_sleeps, kvt_queued_context),
	KUNIT_CASE_PARAM(done_that_slept_may_destroy_its_own_qp, kvt_queued_context),
	KUNIT_CASE_PARAM(device_goes_when_the_sleeper_has_returned, kvt_queued_context),
	KUNIT_CASE_PARAM(cq_that_is_given_back_late_is_freed_after_that, kvt_queued_context),
	KUNIT_CASE_PARAM(lane_with_a_sleeper_is_fair, kvt_queued_context),
	KUNIT_CASE_PARAM(watch_is_on_only_while_somebody_waits, kvt_queued_context),
	KUNIT_CASE_PARAM(nobody_is_forgotten_when_all_sleep_now_and_then, kvt_queued_context),
	{}
};
KVT_SUITE(cq_sleep);

MODULE_DESCRIPTION("KUnit: done() that sleeps in a work queue");
MODULE_LICENSE("GPL");
