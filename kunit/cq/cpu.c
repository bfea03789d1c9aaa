// SPDX-License-Identifier: GPL-2.0-only
/*
 * A CQ is polled although a CPU is kept busy by whoever waits for that: the one where another CQ
 * of its lane was notified, the one where it was notified itself, or the one that its lane runs on,
 * in a done() or between two rounds.
 * Each ends when the CQ has been polled, or too late, which the case then reports.
 */
#include <linux/bottom_half.h>
#include <linux/sched.h>
#include <kverbs/delay.h>

#include "../cq/cq.h"
#include "cq/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

/* Times that a lane is moved, and comes back. */
#define ROUNDS	5

static void open_gate(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	kvt_gate_open(rec->arg);
}

static void sleep_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	kvt_gate_sleep(rec->arg);
}

static void spin_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	kvt_gate_pass(rec->arg);
}

/* Creates a CQ of the lane of vector 0 that handles @expect completions. */
static struct recorder *in_lane(struct kunit *test, struct mock *m, int expect,
				recorder_fn *on_done, void *arg)
{
	struct recorder *rec = recorder_up(test, m, kvt_context(test), 0);

	recorder_expect_calls(rec, expect, on_done, arg);
	return rec;
}

/* Notifies a CQ, and keeps its CPU busy until the gate opens. */
struct spinner {
	struct kvt_gate g;	/* what it waits for */
	struct item *item;	/* completion that it pushes first */
};

static int spinner_fn(void *arg)
{
	struct spinner *s = arg;

	/* No other task has the CPU either, but with PREEMPT_RT. */
	local_bh_disable();
	item_push(s->item);
	kvt_gate_pass(&s->g);
	local_bh_enable();
	return 0;
}

/* Starts it on the other CPU. */
static struct kvt_thread *spinner_start(struct kunit *test, struct spinner *s, struct item *item)
{
	kvt_gate_init(&s->g);
	s->item = item;
	return kvt_thread_start(test, kvt_other_cpu(), spinner_fn, s);
}

static void cq_is_polled_though_its_neighbour_waits_for_a_cpu(struct kunit *test)
{
	struct spinner *s = kvt_zalloc(test, sizeof(*s));
	struct recorder *far, *near;
	struct item *items[2];
	struct kvt_thread *t;
	struct mock *m;
	int i;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	m = mock_up(test, "kvtm_a");
	far = in_lane(test, m, ROUNDS, NULL, NULL);
	near = in_lane(test, m, ROUNDS, open_gate, &s->g);
	items[0] = items_new(test, far, ROUNDS);
	items[1] = items_new(test, near, ROUNDS);
	for (i = 0; i < ROUNDS; i++) {
		t = spinner_start(test, s, &items[0][i]);
		KUNIT_ASSERT_TRUE(test, kvt_wait(&s->g.entered));
		KUNIT_EXPECT_TRUE(test, item_push(&items[1][i]));
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
		KUNIT_EXPECT_TRUE(test, s->g.in_time);
	}
	KUNIT_EXPECT_TRUE(test, kvt_wait(&far->all));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&near->all));
	recorder_expect_clean(test, far);
	recorder_expect_clean(test, near);
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(near->cq));
}

static void cq_behind_a_sleeper_is_polled_though_its_waker_spins(struct kunit *test)
{
	struct spinner *s = kvt_zalloc(test, sizeof(*s));
	struct recorder *sleeper, *other;
	struct kvt_thread *t;
	struct kvt_gate g;
	struct mock *m;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	m = mock_up(test, "kvtm_a");
	kvt_gate_init(&g);
	sleeper = in_lane(test, m, 1, sleep_in_done, &g);
	other = in_lane(test, m, 1, open_gate, &s->g);
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, sleeper, 1)));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&g.entered));
	t = spinner_start(test, s, items_new(test, other, 1));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_TRUE(test, s->g.in_time);
	kvt_gate_open(&g);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&sleeper->all));
	KUNIT_EXPECT_TRUE(test, g.in_time);
	recorder_expect_clean(test, sleeper);
	recorder_expect_clean(test, other);
}

/*
 * A runner has been displaced: the busy one, or the other CQ would not have been polled. So may
 * others be that lose their CPU for long enough, which a busy machine does to them.
 */
static void expect_displaced(struct kunit *test, struct recorder *busy)
{
	KUNIT_EXPECT_GE(test, busy->cq->lane->stats.handovers, 1);
}

static void done_that_keeps_its_cpu_busy_stops_nobody(struct kunit *test)
{
	struct recorder *busy, *other;
	struct kvt_gate g;
	struct mock *m;

	kvt_need_two_cpus(test);
	m = mock_up(test, "kvtm_a");
	kvt_gate_init(&g);
	busy = in_lane(test, m, 1, spin_in_done, &g);
	other = in_lane(test, m, 1, open_gate, &g);
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, busy, 1)));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&g.entered));
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, other, 1)));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&busy->all));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&other->all));
	KUNIT_EXPECT_TRUE(test, g.in_time);
	expect_displaced(test, busy);
	recorder_expect_clean(test, busy);
	recorder_expect_clean(test, other);
}

/* Another task that keeps a CPU. */
struct keeper {
	struct kvt_gate g;	/* what it waits for */
	struct completion over;
};

static void keep_cpu(void *arg)
{
	struct keeper *k = arg;

	kvt_gate_pass(&k->g);
	kverbs_delay_clear();
	complete(&k->over);
}

/* It wants the CPU when the done() has returned. */
static void wanted_in_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	if (!atomic_read(&rec->seen))
		kverbs_delay_set("ib_cq_pause", keep_cpu, rec->arg);
	set_tsk_need_resched(current);
}

static void runner_that_loses_its_cpu_between_rounds_stops_nobody(struct kunit *test)
{
	const int flood = 8 * IB_CQ_SHARE;
	struct recorder *busy, *other;
	struct keeper k;
	struct mock *m;

	kvt_need_two_cpus(test);
	m = mock_up(test, "kvtm_a");
	kvt_gate_init(&k.g);
	init_completion(&k.over);
	busy = in_lane(test, m, flood, wanted_in_done, &k);
	other = in_lane(test, m, 1, open_gate, &k.g);
	KUNIT_EXPECT_TRUE(test, items_push(items_new(test, busy, flood), flood));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&k.g.entered));
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, other, 1)));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&busy->all));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&other->all));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&k.over));
	KUNIT_EXPECT_TRUE(test, k.g.in_time);
	expect_displaced(test, busy);
	recorder_expect_clean(test, busy);
	recorder_expect_clean(test, other);
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(busy->cq));
}

static struct kunit_case cq_cpu_cases[] = {
	KUNIT_CASE_PARAM(cq_is_polled_though_its_neighbour_waits_for_a_cpu, kvt_scheduled_context),
	KUNIT_CASE_PARAM(cq_behind_a_sleeper_is_polled_though_its_waker_spins, kvt_queued_context),
	KUNIT_CASE_PARAM(done_that_keeps_its_cpu_busy_stops_nobody, kvt_queued_context),
	KUNIT_CASE_PARAM(runner_that_loses_its_cpu_between_rounds_stops_nobody, kvt_queued_context),
	{}
};
KVT_SUITE(cq_cpu);
