// SPDX-License-Identifier: GPL-2.0-only
/*
 * The CQ layer's invariants under load from two CPUs, from threads and from hard
 * interrupts: each completion is handled once and in order, a CQ runs one done() at a
 * time, no wake-up is lost, and CQs are not armed more often than needed.
 *
 * Locking: a stream's producer writes @sent, the context that polls its CQ writes @seen
 * and @wrong. Producers read @seen to learn when all that they have sent was handled.
 */
#include <linux/hrtimer.h>

#include "../cq/cq.h"
#include "cq/rig.h"
#include "lib/mock.h"

/* Completions of each case: ten million for each scheduled context in all. */
#define ONE_CQ		4000000ULL
#define ONE_VECTOR	4000000ULL
#define TWO_VECTORS	2000000ULL
#define ALL_CONTEXTS	2000000ULL
#define DIRECT		4000000ULL

/* Divides the counts in kernels whose instrumentation makes completions expensive. */
#define DEBUG_SHARE	(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ? 20 : 1)

#define MAX_CQS		6
#define CQ_SIZE		512
#define BURST		64

/* Producers: threads on two CPUs, and hrtimers on two CPUs. */
#define THREADS		2
#define TIMERS		2
#define PRODUCERS	(THREADS + TIMERS)

/* Timers push one in TIMER_PART completions, at most TIMER_BURST each time they expire. */
#define TIMER_PART	8
#define TIMER_BURST	32
#define TIMER_NS	(100 * NSEC_PER_USEC)

/*
 * A case needs more notifications than this to show anything, and the one with two threads
 * that poll more than SHARE completions of each. Where CPUs run by turns, a few notifications
 * may do for a whole round, and one thread may poll all of it, so rounds are repeated, each
 * from idle.
 */
#define NOTIFICATIONS	100
#define SHARE		100
#define MAX_ROUNDS	200

/* A thread waits until its stream is idle after one in PAUSE bursts, at random. */
#define PAUSE		8

struct target;

/* What one producer sends to one CQ. */
struct stream {
	struct ib_cqe cqe;	/* wr_cqe of all completions of the stream */
	struct target *t;	/* the CQ */
	u32 sent;		/* completions pushed */
	u32 seen;		/* completions handled */
	u32 wrong;		/* completions handled out of order */
};

/* A CQ under load. */
struct target {
	struct ib_cq *cq;			/* the CQ */
	atomic_t inside;			/* done() calls that are running */
	u32 concurrent;				/* how often a done() began while another one ran */
	struct stream stream[PRODUCERS];	/* streams, by producer */
};

struct stress;

/* A source of completions. */
struct producer {
	struct stress *s;	/* the case */
	int id;			/* index in stress.p and target.stream */
	u32 rng;		/* state of the random number generator */
	u64 left;		/* completions to push */
	bool lost;		/* a thread timed out when it waited for a CQ */
	struct hrtimer timer;	/* hrtimer of a producer in hard interrupt */
	/* Completed when the timer does not run again: @left is 0, or the case stops. */
	struct completion done;
};

/* State of a case. */
struct stress {
	struct mock *m;			/* the device */
	u64 count;			/* completions in a round */
	struct target target[MAX_CQS];	/* the CQs */
	int targets;			/* number of CQs */
	struct producer p[PRODUCERS];	/* the producers */
	int stop;			/* tells the producers to end */
};

static void stream_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct stream *st = container_of(wc->wr_cqe, struct stream, cqe);
	struct target *t = st->t;

	if (atomic_inc_return(&t->inside) != 1)
		t->concurrent++;
	if (wc->byte_len != st->seen)
		st->wrong++;
	WRITE_ONCE(st->seen, st->seen + 1);
	atomic_dec(&t->inside);
}

static bool stream_push(struct stream *st)
{
	struct ib_wc wc = { .wr_cqe = &st->cqe, .byte_len = st->sent };

	if (!mock_cq_push(st->t->cq, &wc, false))
		return false;
	st->sent++;
	return true;
}

static bool stream_idle(struct stream *st)
{
	return READ_ONCE(st->seen) == st->sent;
}

static struct stream *pick(struct producer *p)
{
	struct target *t = &p->s->target[kvt_rand(&p->rng) % p->s->targets];

	return &t->stream[p->id];
}

/*
 * This producer pushes nothing meanwhile that would wake the CQ again and hide the loss of
 * a wake-up.
 */
static bool wait_idle(struct producer *p, struct stream *st)
{
	unsigned long end = jiffies + KVT_TIMEOUT;

	while (!stream_idle(st)) {
		if (time_after(jiffies, end) || READ_ONCE(p->s->stop))
			return false;
		cond_resched();
	}
	return true;
}

static bool push_burst(struct producer *p, struct stream *st, u32 n)
{
	unsigned long end = jiffies + KVT_TIMEOUT;

	while (n && p->left) {
		if (stream_push(st)) {
			n--;
			p->left--;
			continue;
		}
		if (time_after(jiffies, end) || READ_ONCE(p->s->stop))
			return false;
		cond_resched();
	}
	return true;
}

static int thread_fn(void *arg)
{
	struct producer *p = arg;
	struct stream *st;

	while (p->left) {
		st = pick(p);
		if (!push_burst(p, st, 1 + kvt_rand(&p->rng) % BURST) ||
		    (!(kvt_rand(&p->rng) % PAUSE) && !wait_idle(p, st))) {
			p->lost = true;
			WRITE_ONCE(p->s->stop, 1);
			return -ETIMEDOUT;
		}
		cond_resched();
	}
	return 0;
}

static enum hrtimer_restart timer_fn(struct hrtimer *timer)
{
	struct producer *p = container_of(timer, struct producer, timer);
	struct stream *st = pick(p);
	u32 n = 1 + kvt_rand(&p->rng) % TIMER_BURST;

	while (n-- && p->left && stream_push(st))
		p->left--;
	if (!p->left || READ_ONCE(p->s->stop)) {
		complete(&p->done);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(TIMER_NS / 2 + kvt_rand(&p->rng) % TIMER_NS));
	return HRTIMER_RESTART;
}

static int timer_start_fn(void *arg)
{
	struct producer *p = arg;

	hrtimer_start(&p->timer, ns_to_ktime(TIMER_NS), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static void stress_end(void *arg)
{
	struct stress *s = arg;
	int i;

	WRITE_ONCE(s->stop, 1);
	for (i = THREADS; i < PRODUCERS; i++)
		hrtimer_cancel(&s->p[i].timer);
	for (i = 0; i < s->targets; i++)
		ib_free_cq(s->target[i].cq);
	mock_unregister(s->m);
}

static void add_target(struct kunit *test, struct stress *s, enum ib_poll_context ctx, int vector)
{
	struct target *t = &s->target[s->targets];
	struct ib_cq *cq;
	int i;

	for (i = 0; i < PRODUCERS; i++) {
		t->stream[i].cqe.done = stream_done;
		t->stream[i].t = t;
	}
	cq = KVT_PTR(test, ib_alloc_cq(s->m->ibdev, t, CQ_SIZE, vector, ctx));
	t->cq = cq;
	s->targets++;
}

static struct stress *stress_new(struct kunit *test, u64 full)
{
	struct stress *s = kvt_zalloc(test, sizeof(*s));
	u64 count = max_t(u64, 1000, kvt_count(full) / DEBUG_SHARE);
	u32 seed = kvt_seed(test, "completions", count);
	struct producer *p;
	int i;

	s->m = mock_up(test, "kvtm_a");
	s->count = count;
	for (i = 0; i < PRODUCERS; i++) {
		p = &s->p[i];
		p->s = s;
		p->id = i;
		p->rng = seed + i;
		p->rng += !p->rng;
		init_completion(&p->done);
		hrtimer_init(&p->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		p->timer.function = timer_fn;
	}
	kvt_defer(test, stress_end, s);
	return s;
}

static void stress_fill(struct stress *s)
{
	u64 timers = s->count / TIMER_PART;
	int i;

	for (i = 0; i < PRODUCERS; i++) {
		s->p[i].left = i < THREADS ? (s->count - timers) / THREADS : timers / TIMERS;
		reinit_completion(&s->p[i].done);
	}
}

static void stress_run(struct kunit *test, struct stress *s)
{
	struct kvt_thread *t[PRODUCERS];
	int i, cpu;

	stress_fill(s);
	for (i = 0; i < PRODUCERS; i++) {
		cpu = i % 2 ? kvt_other_cpu() : 0;
		t[i] = kvt_thread_start(test, cpu, i < THREADS ? thread_fn : timer_start_fn,
					&s->p[i]);
	}
	for (i = 0; i < PRODUCERS; i++) {
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(t[i]));
		if (i < THREADS) {
			KUNIT_EXPECT_FALSE(test, s->p[i].lost);
			continue;
		}
		KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&s->p[i].done,
								    10 * KVT_TIMEOUT));
	}
}

/* All completions were handled without another wake-up, and the CQ is armed again. */
static void expect_idle(struct kunit *test, struct target *t)
{
	unsigned long end = jiffies + KVT_TIMEOUT;
	int i;

	for (i = 0; i < PRODUCERS; i++) {
		while (!stream_idle(&t->stream[i]) && time_before(jiffies, end))
			schedule();
		KUNIT_EXPECT_EQ(test, t->stream[i].sent, t->stream[i].seen);
		KUNIT_EXPECT_EQ(test, 0, t->stream[i].wrong);
	}
	KUNIT_EXPECT_EQ(test, 0, t->concurrent);
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(t->cq));
	KUNIT_EXPECT_TRUE(test, mock_cq_armed(t->cq));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&t->cq->state));
}

/*
 * Arming a CQ either reports missed completions or makes the CQ idle. Each idle period but
 * the last one was ended by a notification.
 */
static void expect_balance(struct kunit *test, struct target *t)
{
	const struct ib_cq_stats *stats = &t->cq->stats;
	struct mock_cq_counts n;
	u64 sent = 0;
	int i;

	for (i = 0; i < PRODUCERS; i++)
		sent += t->stream[i].sent;
	mock_cq_count(t->cq, &n);
	KUNIT_EXPECT_EQ(test, n.arms, n.fired + n.missed + 1);
	KUNIT_EXPECT_EQ(test, 0, n.again);
	KUNIT_EXPECT_EQ(test, n.arms, stats->rearms);
	KUNIT_EXPECT_EQ(test, n.missed, stats->missed);
	KUNIT_EXPECT_EQ(test, n.polls, stats->polls);
	KUNIT_EXPECT_EQ(test, n.empty, stats->empty_polls);
	KUNIT_EXPECT_EQ(test, sent, stats->completions);
	/* A notification that comes while the CQ is being armed does not schedule it. */
	KUNIT_EXPECT_LE(test, stats->schedules, n.fired);
}

static void stress_check(struct kunit *test, struct stress *s)
{
	u64 fired = 0, missed = 0, schedules = 0;
	struct mock_cq_counts n;
	int i;

	for (i = 0; i < s->targets; i++) {
		expect_idle(test, &s->target[i]);
		expect_balance(test, &s->target[i]);
		mock_cq_count(s->target[i].cq, &n);
		fired += n.fired;
		missed += n.missed;
		if (!i || s->target[i].cq->lane != s->target[i - 1].cq->lane)
			schedules += s->target[i].cq->lane->stats.schedules;
	}
	kunit_info(test, "%llu notifications, %llu missed, %llu schedules", fired, missed, schedules);
	KUNIT_EXPECT_LE(test, schedules, fired);
	KUNIT_EXPECT_GT(test, fired, NOTIFICATIONS);
}

static u64 stress_fired(struct stress *s)
{
	struct mock_cq_counts n;
	u64 fired = 0;
	int i;

	for (i = 0; i < s->targets; i++) {
		mock_cq_count(s->target[i].cq, &n);
		fired += n.fired;
	}
	return fired;
}

/* Runs rounds on CQs that the layer polls, until there were enough notifications. */
static void stress_scheduled(struct kunit *test, struct stress *s)
{
	int rounds = MAX_ROUNDS, i;

	do {
		stress_run(test, s);
		for (i = 0; i < s->targets; i++)
			expect_idle(test, &s->target[i]);
	} while (stress_fired(s) <= NOTIFICATIONS && --rounds);
	stress_check(test, s);
}

static void one_cq_loses_nothing(struct kunit *test)
{
	struct stress *s = stress_new(test, ONE_CQ);

	add_target(test, s, kvt_context(test), 0);
	stress_scheduled(test, s);
}

static void cqs_of_one_vector_lose_nothing(struct kunit *test)
{
	struct stress *s = stress_new(test, ONE_VECTOR);
	int i;

	for (i = 0; i < 4; i++)
		add_target(test, s, kvt_context(test), 0);
	stress_scheduled(test, s);
}

static void cqs_of_two_vectors_lose_nothing(struct kunit *test)
{
	struct stress *s = stress_new(test, TWO_VECTORS);
	int i;

	for (i = 0; i < MAX_CQS; i++)
		add_target(test, s, kvt_context(test), i < MAX_CQS / 2 ? 0 : kvt_other_cpu());
	stress_scheduled(test, s);
}

static void cqs_of_all_contexts_lose_nothing(struct kunit *test)
{
	struct stress *s = stress_new(test, ALL_CONTEXTS);

	add_target(test, s, IB_POLL_SOFTIRQ, 0);
	add_target(test, s, IB_POLL_SOFTIRQ, kvt_other_cpu());
	add_target(test, s, IB_POLL_THREAD, 0);
	add_target(test, s, IB_POLL_THREAD, kvt_other_cpu());
	add_target(test, s, IB_POLL_WORKQUEUE, 0);
	add_target(test, s, IB_POLL_UNBOUND_WORKQUEUE, 0);
	stress_scheduled(test, s);
}

/* A thread that polls a CQ of IB_POLL_DIRECT. */
struct consumer {
	struct stress *s;	/* the case */
	u64 taken;		/* sum of what ib_process_cq_direct() returned */
};

static int consumer_fn(void *arg)
{
	struct consumer *c = arg;
	int n;

	while (!kvt_should_stop()) {
		n = ib_process_cq_direct(c->s->target[0].cq, 32);
		WRITE_ONCE(c->taken, c->taken + n);
		cond_resched();
	}
	return 0;
}

static bool consumers_share(struct consumer *c)
{
	return min(READ_ONCE(c[0].taken), READ_ONCE(c[1].taken)) > SHARE;
}

static void direct_cq_is_polled_from_two_cpus(struct kunit *test)
{
	struct stress *s = stress_new(test, DIRECT);
	struct target *t = &s->target[0];
	struct consumer c[2] = {};
	struct kvt_thread *poll[2];
	int rounds = MAX_ROUNDS, i;
	u64 sent = 0;

	add_target(test, s, IB_POLL_DIRECT, 0);
	for (i = 0; i < 2; i++) {
		c[i].s = s;
		poll[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, consumer_fn, &c[i]);
	}
	/* On one CPU, one of them may poll all. */
	do {
		stress_run(test, s);
		for (i = 0; i < PRODUCERS; i++)
			KUNIT_EXPECT_TRUE(test, wait_idle(&s->p[i], &t->stream[i]));
	} while (kvt_other_cpu() && !consumers_share(c) && --rounds);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, 0, kvt_thread_stop(poll[i]));
	for (i = 0; i < PRODUCERS; i++) {
		KUNIT_EXPECT_EQ(test, 0, t->stream[i].wrong);
		sent += t->stream[i].sent;
	}
	KUNIT_EXPECT_EQ(test, 0, t->concurrent);
	KUNIT_EXPECT_EQ(test, sent, c[0].taken + c[1].taken);
	KUNIT_EXPECT_EQ(test, sent, t->cq->stats.completions);
	if (kvt_other_cpu())
		KUNIT_EXPECT_TRUE(test, consumers_share(c));
}

static struct kunit_case cq_stress_cases[] = {
	KUNIT_CASE(direct_cq_is_polled_from_two_cpus),
	KUNIT_CASE_PARAM(one_cq_loses_nothing, kvt_scheduled_context),
	KUNIT_CASE_PARAM(cqs_of_one_vector_lose_nothing, kvt_scheduled_context),
	KUNIT_CASE_PARAM(cqs_of_two_vectors_lose_nothing, kvt_scheduled_context),
	KUNIT_CASE(cqs_of_all_contexts_lose_nothing),
	{}
};
KVT_SUITE(cq_stress);

MODULE_DESCRIPTION("KUnit: completion queues under load");
MODULE_LICENSE("GPL");
