// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CQ scheduler: fairness among CQs, measured in a simulation with a virtual clock, and
 * the bounds of a run by budget and time, measured in real time.
 */
#include <linux/delay.h>

#include "../cq/cq.h"
#include "cq/rig.h"
#include "cq/sim.h"
#include "lib/mock.h"

#define LIGHTS		7
#define SEED		20240229

/* Lengths of simulations, by the virtual clock. */
#define RUN_NS		(50 * NSEC_PER_MSEC)
#define SHORT_RUN_NS	(10 * NSEC_PER_MSEC)

/* So long that runs end by their budget only, which makes results reproducible. */
#define NEVER_US	10000000

#define DEFAULT_US	1000

/* Duration of an expensive done(), and number of such completions. */
#define COSTLY_US	200
#define COSTLY		600

/* Number of completions with a cheap done(), and the budget of a run. */
#define CHEAP		10000
#define BUDGET		128

/*
 * Most completions of a run when a single one uses up its time: the clock is not read after
 * each completion.
 */
#define OVERTIME	(8 * IB_CQ_SHARE)

/* Completions of a CQ that its neighbour waits for at most: a share begun, and a full one. */
#define SHARE_BOUND	(2 * IB_CQ_SHARE)

/* Arrivals at each of the light CQs. */
struct demand {
	u32 gap;		/* mean time between arrivals, in ns */
	u32 burst;		/* most completions that arrive at once */
};

/* Each light CQ needs 1% of the simulated time, and about 4%. */
static const struct demand singles = { .gap = 50000, .burst = 1 };
static const struct demand bursts = { .gap = 100000, .burst = 16 };

/* Service that the light CQs got. */
struct outcome {
	u32 p50[LIGHTS];	/* median delay of each light CQ, in ns */
	u32 p99[LIGHTS];	/* 99th percentile of the delay */
	u32 max[LIGHTS];	/* longest delay */
	u32 served[LIGHTS];	/* completions handled until the end */
	u32 flood;	/* completions of the flooded CQ handled until the end, or 0 without one */
	u32 jain;		/* Jain's fairness index among the light CQs, times 10000 */
};

static void light_run(struct kunit *test, const struct demand *d, bool flood,
		      struct outcome *o)
{
	struct sim *s = sim_new(test, kvt_context(test), RUN_NS, SEED);
	int i;

	memset(o, 0, sizeof(*o));
	for (i = 0; i < LIGHTS; i++)
		sim_light(s, d->gap, d->burst);
	if (flood)
		sim_flood(s);
	sim_open(test, s);
	sim_run(test, s);
	for (i = 0; i < LIGHTS; i++) {
		o->p50[i] = sim_percentile(&s->flow[i], 50);
		o->p99[i] = sim_percentile(&s->flow[i], 99);
		o->max[i] = sim_percentile(&s->flow[i], 100);
		o->served[i] = s->flow[i].served;
	}
	o->flood = flood ? s->flow[LIGHTS].served : 0;
	o->jain = sim_jain(s->flow, LIGHTS);
}

static u32 most(const u32 *v)
{
	u32 max = 0;
	int i;

	for (i = 0; i < LIGHTS; i++)
		max = max(max, v[i]);
	return max;
}

static void light_cqs_beside_a_flood(struct kunit *test, const struct demand *d)
{
	struct outcome *alone, *beside, *again;
	int i;

	alone = kunit_kcalloc(test, 3, sizeof(*alone), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, alone);
	beside = alone + 1;
	again = alone + 2;
	light_run(test, d, false, alone);
	light_run(test, d, true, beside);
	light_run(test, d, true, again);

	kunit_info(test, "alone: p50 %u p99 %u max %u ns; beside %u of a flood: p50 %u p99 %u max %u ns, Jain 0.%04u",
		   most(alone->p50), most(alone->p99), most(alone->max), beside->flood,
		   most(beside->p50), most(beside->p99), most(beside->max), beside->jain);
	KUNIT_EXPECT_GE(test, beside->jain, 9900);
	for (i = 0; i < LIGHTS; i++)
		KUNIT_EXPECT_LE(test, beside->p99[i], 3 * alone->p99[i]);
	/* The flooded CQ gets the time that the light CQs leave. */
	KUNIT_EXPECT_GT(test, beside->flood, RUN_NS / SIM_DONE_NS / 2);
	KUNIT_EXPECT_EQ(test, 0, memcmp(beside, again, sizeof(*again)));
}

static void single_completions_are_handled_soon_beside_a_flood(struct kunit *test)
{
	light_cqs_beside_a_flood(test, &singles);
}

static void bursts_are_handled_soon_beside_a_flood(struct kunit *test)
{
	light_cqs_beside_a_flood(test, &bursts);
}

static void flooded_cqs_share_evenly(struct kunit *test)
{
	struct sim *s = sim_new(test, kvt_context(test), SHORT_RUN_NS, SEED);
	u32 jain;
	int i;

	for (i = 0; i < SIM_FLOWS; i++)
		sim_flood(s);
	sim_open(test, s);
	sim_run(test, s);
	jain = sim_jain(s->flow, SIM_FLOWS);
	kunit_info(test, "Jain %u.%04u", jain / 10000, jain % 10000);
	KUNIT_EXPECT_GE(test, jain, 9900);
	KUNIT_EXPECT_GT(test, s->flow[0].served, 1000);
}

static void service_follows_the_weights(struct kunit *test)
{
	static const unsigned int weights[] = { 1, 2, 4 };
	struct sim *s = sim_new(test, kvt_context(test), SHORT_RUN_NS, SEED);
	u32 sum = 0, share;
	int i;

	for (i = 0; i < 3; i++)
		sim_flood(s);
	sim_open(test, s);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, 0, ib_cq_set_weight(s->flow[i].cq, weights[i]));
	sim_run(test, s);
	for (i = 0; i < 3; i++)
		sum += s->flow[i].served;
	kunit_info(test, "served %u %u %u", s->flow[0].served, s->flow[1].served,
		   s->flow[2].served);
	for (i = 0; i < 3; i++) {
		share = sum * weights[i] / 7;
		KUNIT_EXPECT_GE(test, s->flow[i].served, share - share / 20);
		KUNIT_EXPECT_LE(test, s->flow[i].served, share + share / 20);
	}
}

static void weight_that_is_changed_counts_from_then_on(struct kunit *test)
{
	struct sim *s = sim_new(test, kvt_context(test), SHORT_RUN_NS, SEED);
	u32 before[2], after[2];
	int i;

	sim_flood(s);
	sim_flood(s);
	sim_open(test, s);
	sim_run(test, s);
	for (i = 0; i < 2; i++)
		before[i] = s->flow[i].served;
	KUNIT_EXPECT_EQ(test, 0, ib_cq_set_weight(s->flow[0].cq, 3));
	s->end += SHORT_RUN_NS;
	for (i = 0; i < 2; i++)
		s->flow[i].next = s->now;
	sim_run(test, s);
	for (i = 0; i < 2; i++)
		after[i] = s->flow[i].served - before[i];
	KUNIT_EXPECT_LE(test, abs((int)before[0] - (int)before[1]), 2 * IB_CQ_SHARE);
	KUNIT_EXPECT_LE(test, abs((int)after[0] - 3 * (int)after[1]), (int)after[0] / 20);
}

static void weight_out_of_range_is_refused(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct ib_cq_init_attr attr = { .cqe = 16 };
	struct ib_cq *own;

	KUNIT_EXPECT_EQ(test, 0, ib_cq_set_weight(rec->cq, 1));
	KUNIT_EXPECT_EQ(test, 0, ib_cq_set_weight(rec->cq, 64));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_cq_set_weight(rec->cq, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_cq_set_weight(rec->cq, 65));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_cq_set_weight(rec->cq, -1));

	own = ib_create_cq(rec->m->ibdev, NULL, NULL, NULL, &attr);
	KUNIT_ASSERT_FALSE(test, IS_ERR(own));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_cq_set_weight(own, 1));
	ib_destroy_cq(own);
}

/* A CQ that is kept full, and its neighbour. */
struct load {
	struct recorder *flood;	/* the CQ that is kept full */
	struct recorder *light;	/* its neighbour */
	struct item *lone;	/* the only completion of @light */
	unsigned int us;	/* time that a done() on @flood takes */
	int until;		/* number of completions of @flood */
	int at;			/* number of completions of @flood after which @lone is pushed */
	int waited;		/* completions of @flood that were handled before @lone was */
	bool beside;		/* @lone was handled while @flood was being polled */
};

static void flood_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct load *l = rec->arg;
	int seen = atomic_read(&rec->seen);

	if (l->us)
		udelay(l->us);
	if (seen == l->at)
		item_push(l->lone);
	it->n += CQ_RIG_SIZE / 2;
	if (it->n < l->until)
		item_push(it);
}

static void light_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct load *l = rec->arg;

	l->waited = atomic_read(&l->flood->seen) - l->at;
	l->beside = READ_ONCE(l->flood->cq->lane->runner->poller);
}

static struct load *load_new(struct kunit *test, unsigned int us, int until)
{
	struct load *l = kvt_zalloc(test, sizeof(*l));
	struct mock *m = mock_up(test, "kvtm_a");

	l->us = us;
	l->until = until;
	l->at = until / 2;
	l->flood = recorder_up(test, m, kvt_context(test), 0);
	recorder_expect_calls(l->flood, until, flood_done, l);
	l->light = recorder_up(test, m, kvt_context(test), 0);
	recorder_expect_calls(l->light, 1, light_done, l);
	l->lone = items_new(test, l->light, 1);
	return l;
}

static void load_run(struct kunit *test, struct load *l)
{
	struct item *items = items_new(test, l->flood, CQ_RIG_SIZE / 2);

	kvt_stay_on_first_cpu();
	KUNIT_ASSERT_TRUE(test, items_push(items, CQ_RIG_SIZE / 2));
	KUNIT_ASSERT_TRUE(test, recorder_settle(l->flood));
	KUNIT_ASSERT_TRUE(test, recorder_settle(l->light));
	recorder_expect_clean(test, l->flood);
	recorder_expect_clean(test, l->light);
	KUNIT_ASSERT_TRUE(test, cq_rig_rest(l->flood->cq));
}

static void run_ends_when_its_budget_is_spent(struct kunit *test)
{
	struct load *l = load_new(test, 0, CHEAP);
	struct ib_cq_lane *lane = l->flood->cq->lane;

	cq_rig_tune(test, "cq_time_us", NEVER_US);
	cq_rig_tune(test, "cq_budget", BUDGET);
	load_run(test, l);
	KUNIT_EXPECT_LE(test, l->waited, SHARE_BOUND);
	kunit_info(test, "%llu runs of %llu completions", lane->stats.runs,
		   lane->stats.completions);
	KUNIT_EXPECT_GE(test, lane->stats.budget_spent, CHEAP / BUDGET - 1);
	KUNIT_EXPECT_EQ(test, 0, lane->stats.time_spent);
}

/* A run makes way within 128 completions, when it next looks at the clock, and a share. */
#define WAY_BOUND	(128 + 16)

/* The neighbour is another device's, and so is its lane. */
static void run_ends_when_another_lane_waits(struct kunit *test)
{
	struct load *l = load_new(test, 0, CHEAP);
	struct ib_cq_lane *lane = l->flood->cq->lane;

	if (!lane->ctx->waiting)
		kunit_skip(test, "the scheduler of tasks sees to that");
	cq_rig_tune(test, "cq_time_us", NEVER_US);
	cq_rig_tune(test, "cq_budget", CHEAP);
	l->light = recorder_up(test, mock_up(test, "kvtm_b"), kvt_context(test), 0);
	recorder_expect_calls(l->light, 1, light_done, l);
	l->lone = items_new(test, l->light, 1);
	load_run(test, l);
	KUNIT_EXPECT_LE(test, l->waited, WAY_BOUND);
	/* A work queue takes another worker if the first takes ten milliseconds, by the clock. */
	KUNIT_EXPECT_LE(test, lane->stats.gave_way, 1);
	if (!l->beside)
		KUNIT_EXPECT_EQ(test, 1, lane->stats.gave_way);
	KUNIT_EXPECT_EQ(test, 0, lane->stats.time_spent);
}

static void run_ends_when_its_time_is_spent(struct kunit *test)
{
	struct load *l = load_new(test, COSTLY_US, COSTLY);
	struct ib_cq_lane *lane = l->flood->cq->lane;

	kvt_need_fine_clock(test);
	cq_rig_tune(test, "cq_time_us", COSTLY_US);
	load_run(test, l);
	KUNIT_EXPECT_LE(test, l->waited, SHARE_BOUND);
	kunit_info(test, "%llu runs, %llu ended by time", lane->stats.runs,
		   lane->stats.time_spent);
	KUNIT_EXPECT_GE(test, lane->stats.time_spent, COSTLY / OVERTIME);
	KUNIT_EXPECT_EQ(test, 0, lane->stats.budget_spent);
}

/* A thread that counts how often it gets the CPU while the flood goes on. */
struct bystander {
	struct load *l;
	int turns;
};

static int bystander_fn(void *arg)
{
	struct bystander *b = arg;
	int seen, last = 0;

	do {
		seen = atomic_read(&b->l->flood->seen);
		if (seen > last && seen < b->l->until)
			b->turns++;
		last = seen;
		schedule();
	} while (seen < b->l->until);
	return 0;
}

static void flood_does_not_hold_the_cpu(struct kunit *test)
{
	/*
	 * Long enough for the scheduler: the slice of a task is some ms, and workers have nice -20,
	 * beside which the thread gets about one part in ninety of their CPU.
	 */
	struct bystander b = { .l = load_new(test, COSTLY_US, 8 * COSTLY) };
	struct kvt_thread *t;

	kvt_need_fine_clock(test);
	t = kvt_thread_start(test, 0, bystander_fn, &b);
	cq_rig_tune(test, "cq_time_us", DEFAULT_US);
	load_run(test, b.l);
	KUNIT_EXPECT_LE(test, b.l->waited, SHARE_BOUND);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	kunit_info(test, "a thread had %d turns", b.turns);
	KUNIT_EXPECT_GE(test, b.turns, 1);
}

static void vector_is_not_held_up_by_another(struct kunit *test)
{
	struct cq_hold *h = cq_hold_of_param(test);
	struct recorder *other = recorder_up(test, h->rec->m, h->rec->ctx, 0);

	other->expect = 1;
	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	item_push(items_new(test, other, 1));
	KUNIT_EXPECT_TRUE(test, recorder_settle(other));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&h->rec->seen));
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
}

static void burst_on_an_idle_cq_schedules_it_once(struct kunit *test)
{
	struct cq_hold *h = cq_hold_of_param(test);
	struct recorder *rec = recorder_held(test, h);
	struct item *items = items_new(test, rec, 64);
	struct mock_cq_counts before, after;
	struct ib_cq_stats stats;
	u64 schedules;

	rec->expect = 64;
	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	mock_cq_count(rec->cq, &before);
	stats = rec->cq->stats;
	schedules = rec->cq->lane->stats.schedules;
	items_push_each(test, items, 64, NULL);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&rec->seen));
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	KUNIT_ASSERT_TRUE(test, cq_rig_rest(rec->cq));
	mock_cq_count(rec->cq, &after);
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, 1, after.fired - before.fired);
	KUNIT_EXPECT_EQ(test, 1, after.arms - before.arms);
	KUNIT_EXPECT_EQ(test, 0, after.missed - before.missed);
	KUNIT_EXPECT_EQ(test, 1, rec->cq->stats.schedules - stats.schedules);
	KUNIT_EXPECT_EQ(test, 1, rec->cq->stats.rearms - stats.rearms);
	KUNIT_EXPECT_EQ(test, 64, rec->cq->stats.completions - stats.completions);
	KUNIT_EXPECT_EQ(test, schedules, rec->cq->lane->stats.schedules);
}

static int sched_init(struct kunit *test)
{
	cq_rig_tune(test, "cq_time_us", NEVER_US);
	return 0;
}

static struct kunit_case cq_sched_cases[] = {
	KUNIT_CASE_PARAM(single_completions_are_handled_soon_beside_a_flood,
			 kvt_scheduled_context),
	KUNIT_CASE_PARAM(bursts_are_handled_soon_beside_a_flood, kvt_scheduled_context),
	KUNIT_CASE_PARAM(flooded_cqs_share_evenly, kvt_scheduled_context),
	KUNIT_CASE_PARAM(service_follows_the_weights, kvt_scheduled_context),
	KUNIT_CASE_PARAM(weight_that_is_changed_counts_from_then_on, kvt_scheduled_context),
	KUNIT_CASE_PARAM(weight_out_of_range_is_refused, kvt_any_context),
	KUNIT_CASE_PARAM(run_ends_when_its_budget_is_spent, kvt_scheduled_context),
	KUNIT_CASE_PARAM(run_ends_when_its_time_is_spent, kvt_scheduled_context),
	KUNIT_CASE_PARAM(run_ends_when_another_lane_waits, kvt_scheduled_context),
	KUNIT_CASE_PARAM(flood_does_not_hold_the_cpu, kvt_scheduled_context),
	KUNIT_CASE_PARAM(vector_is_not_held_up_by_another, kvt_scheduled_context),
	KUNIT_CASE_PARAM(burst_on_an_idle_cq_schedules_it_once, kvt_scheduled_context),
	{}
};
KVT_SUITE(cq_sched, .init = sched_init);

MODULE_DESCRIPTION("KUnit: the scheduler of completion queues");
MODULE_LICENSE("GPL");
