// SPDX-License-Identifier: GPL-2.0-only
/*
 * The simulated device of sim.h.
 *
 * Locking: none. While a CQ has completions to be polled, everything here runs in the
 * runner of the one lane that all CQs share. When all CQs are armed, the runner completes
 * &sim.idle and rests, and the case moves the clock to the next arrival; notifying the CQ is
 * the last thing that the case does before the simulation belongs to the runner again.
 */
#include <linux/bottom_half.h>
#include <linux/sort.h>
#include <kverbs/completion.h>

#include "cq/rig.h"
#include "cq/sim.h"
#include "lib/mock.h"

struct sim_cq {
	struct ib_cq ibcq;
	struct sim_flow *flow;
	u64 arrival[SIM_DEPTH];
	u32 head;
	u32 tail;
	bool armed;
};

static struct sim_cq *to_scq(struct ib_cq *cq)
{
	return container_of(cq, struct sim_cq, ibcq);
}

static void sim_put(struct sim_cq *cq, u64 when)
{
	if (cq->head - cq->tail == SIM_DEPTH) {
		cq->flow->sim->overruns++;
		return;
	}
	cq->arrival[cq->head++ % SIM_DEPTH] = when;
	cq->flow->arrived++;
}

static void sim_fill(struct sim_cq *cq, u64 when)
{
	while (cq->head - cq->tail < SIM_DEPTH)
		sim_put(cq, when);
}

/* Adds the completions that arrive at f->next, and draws the time of the next arrival. */
static void sim_arrive(struct sim_flow *f)
{
	struct sim_cq *cq = to_scq(f->cq);
	u64 when = f->next;
	u32 n;

	if (f->flood) {
		sim_fill(cq, when);
		f->next = U64_MAX;
		return;
	}
	for (n = 1 + kvt_rand(&f->rng) % f->burst; n; n--)
		sim_put(cq, when);
	f->next += 1 + kvt_rand(&f->rng) % (2 * f->gap);
	if (f->next >= f->sim->end)
		f->next = U64_MAX;
}

static struct sim_flow *sim_first(struct sim *s)
{
	struct sim_flow *first = &s->flow[0];
	int i;

	for (i = 1; i < s->flows; i++)
		if (s->flow[i].next < first->next)
			first = &s->flow[i];
	return first;
}

static void sim_notify(struct sim_flow *f)
{
	struct sim_cq *cq = to_scq(f->cq);

	if (!cq->armed)
		return;
	cq->armed = false;
	ib_cq_notify(&cq->ibcq);
}

/* Called by the runner: advances the clock, and lets all completions due by then arrive. */
static void sim_advance(struct sim *s, u64 ns)
{
	struct sim_flow *f;

	s->now += ns;
	for (;;) {
		f = sim_first(s);
		if (f->next > s->now)
			return;
		sim_arrive(f);
		sim_notify(f);
	}
}

static void sim_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct sim_flow *f = container_of(wc->wr_cqe, struct sim_flow, cqe);
	struct sim *s = f->sim;

	if (atomic_inc_return(&s->inside) != 1)
		s->concurrent++;
	if (s->now < s->end)
		f->served++;
	if (f->done < f->max)
		f->delay[f->done] = (u32)s->now - wc->byte_len;
	f->done++;
	sim_advance(s, s->done_ns);
	atomic_dec(&s->inside);
}

static int sim_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct sim_cq *cq = to_scq(ibcq);
	struct sim *s = cq->flow->sim;
	int n;

	sim_advance(s, SIM_POLL_NS);
	for (n = 0; n < num && cq->tail != cq->head; n++) {
		memset(&wc[n], 0, sizeof(wc[n]));
		wc[n].wr_cqe = &cq->flow->cqe;
		wc[n].byte_len = cq->arrival[cq->tail++ % SIM_DEPTH];
	}
	if (cq->flow->flood && s->now < s->end)
		sim_fill(cq, s->now);
	return n;
}

static int sim_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct sim_cq *cq = to_scq(ibcq);
	struct sim *s = cq->flow ? cq->flow->sim : NULL;
	int i;

	if (s)
		sim_advance(s, SIM_ARM_NS);
	cq->armed = cq->head == cq->tail;
	if (!cq->armed)
		return 1;
	for (i = 0; s && i < s->flows; i++)
		if (!to_scq(s->flow[i].cq)->armed)
			return 0;
	if (s)
		complete(&s->idle);
	return 0;
}

static int sim_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs)
{
	ibcq->cqe = SIM_DEPTH;
	return 0;
}

static int sim_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	return 0;
}

static void sim_end(void *arg)
{
	struct sim *s = arg;
	int i;

	for (i = 0; i < s->flows; i++)
		if (s->flow[i].cq)
			ib_free_cq(s->flow[i].cq);
	mock_unregister(s->m);
	for (i = 0; i < s->flows; i++)
		kvfree(s->flow[i].delay);
}

/**
 * sim_new() - a simulation without flows
 * @test: the running case
 * @ctx: the polling context
 * @end: when arrivals end, in ns
 * @seed: seed of the random numbers, not 0
 *
 * Return: the simulation, which ends with the case.
 */
struct sim *sim_new(struct kunit *test, enum ib_poll_context ctx, u64 end, u32 seed)
{
	static const struct ib_device_ops size = {
		INIT_RDMA_OBJ_SIZE(ib_cq, sim_cq, ibcq),
	};
	struct sim *s = kvt_zalloc(test, sizeof(*s));
	struct mock *m = mock_new(test);

	m->ops.create_cq = sim_create_cq;
	m->ops.destroy_cq = sim_destroy_cq;
	m->ops.poll_cq = sim_poll_cq;
	m->ops.req_notify_cq = sim_req_notify_cq;
	m->ops.size_ib_cq = size.size_ib_cq;
	mock_alloc(test, m);
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtsim%d"));
	s->m = m;
	s->ctx = ctx;
	s->end = end;
	s->seed = seed;
	s->wake_ns = SIM_WAKE_NS;
	s->done_ns = SIM_DONE_NS;
	init_completion(&s->idle);
	kvt_defer(test, sim_end, s);
	return s;
}

static struct sim_flow *sim_flow(struct sim *s)
{
	struct sim_flow *f = &s->flow[s->flows++];

	f->cqe.done = sim_done;
	f->sim = s;
	f->burst = 1;
	f->rng = s->seed * 2654435761U + s->flows;
	f->rng += !f->rng;
	return f;
}

/**
 * sim_flood() - add a CQ that always has completions
 * @s: the simulation
 *
 * Return: the flow.
 */
struct sim_flow *sim_flood(struct sim *s)
{
	struct sim_flow *f = sim_flow(s);

	f->flood = true;
	return f;
}

/**
 * sim_light() - add a CQ to which completions come at random intervals
 * @s: the simulation
 * @gap: mean time between arrivals, in ns
 * @burst: largest number of completions that arrive at once
 *
 * Return: the flow.
 */
struct sim_flow *sim_light(struct sim *s, u32 gap, u32 burst)
{
	struct sim_flow *f = sim_flow(s);

	f->gap = gap;
	f->burst = burst;
	f->next = 1 + kvt_rand(&f->rng) % (2 * gap);
	/* Room for twice the number of completions to be expected. */
	f->max = div_u64(s->end, gap) * (burst + 1);
	return f;
}

/**
 * sim_open() - create the CQs of the flows
 * @test: the running case
 * @s: the simulation
 */
void sim_open(struct kunit *test, struct sim *s)
{
	struct sim_flow *f;
	struct ib_cq *cq;

	for (f = s->flow; f < &s->flow[s->flows]; f++) {
		if (f->max)
			f->delay = KVT_PTR(test, kvcalloc(f->max, sizeof(*f->delay), GFP_KERNEL));
		cq = KVT_PTR(test, ib_alloc_cq(s->m->ibdev, NULL, SIM_DEPTH, 0, s->ctx));
		f->cq = cq;
	}
	/* Set only here: the arming of the CQs at their creation takes no virtual time. */
	for (f = s->flow; f < &s->flow[s->flows]; f++)
		to_scq(f->cq)->flow = f;
}

/**
 * sim_run() - run an open simulation until all completions are handled
 * @test: the running case
 * @s: the simulation
 */
void sim_run(struct kunit *test, struct sim *s)
{
	struct sim_flow *f;

	for (;;) {
		KUNIT_ASSERT_TRUE(test, cq_rig_rest(s->flow[0].cq));
		f = sim_first(s);
		if (f->next == U64_MAX)
			break;
		s->now = max(s->now, f->next) + s->wake_ns;
		sim_arrive(f);
		reinit_completion(&s->idle);
		/* local_bh_enable() then runs the softirqs here, rather than ksoftirqd. */
		local_bh_disable();
		sim_notify(f);
		local_bh_enable();
		KUNIT_ASSERT_TRUE_MSG(test, kvt_wait(&s->idle),
				      "not served at %llu ns: a wake-up was lost", s->now);
	}
	KUNIT_EXPECT_EQ(test, 0, s->concurrent);
	KUNIT_EXPECT_EQ(test, 0, s->overruns);
	for (f = s->flow; f < &s->flow[s->flows]; f++)
		KUNIT_EXPECT_EQ(test, f->arrived, f->done);
}

static int sim_compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/**
 * sim_percentile() - a percentile of the delays of a flow, after the run
 * @f: the flow
 * @percent: the percentile; 100 gives the longest delay
 *
 * Return: the delay, in ns.
 */
u32 sim_percentile(struct sim_flow *f, unsigned int percent)
{
	u32 n = min(f->done, f->max);

	if (!n)
		return 0;
	sort(f->delay, n, sizeof(*f->delay), sim_compare, NULL);
	return f->delay[min(n - 1, n * percent / 100)];
}

/**
 * sim_jain() - Jain's fairness index of the service that flows were given
 * @flows: the flows
 * @n: number of flows
 *
 * Return: the index, times 10000; 0 if no flow was served.
 */
u32 sim_jain(struct sim_flow *flows, int n)
{
	u64 sum = 0, squares = 0;
	int i;

	for (i = 0; i < n; i++) {
		sum += flows[i].served;
		squares += (u64)flows[i].served * flows[i].served;
	}
	if (!squares)
		return 0;
	return div64_u64(10000 * sum * sum, n * squares);
}
