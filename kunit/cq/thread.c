// SPDX-License-Identifier: GPL-2.0-only
/*
 * The threads of completion vectors, which poll IB_POLL_THREAD CQs: how many there are,
 * which CPU they run on, when they spin, and what happens when their CPU goes offline.
 */
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>

#include "../cq/cq.h"
#include "cq/rig.h"
#include "lib/mock.h"

#define PREFIX		"kvcq-kvtm_a/"

/* Number of completions, at a fixed distance in time, in the cases about spinning. */
#define BEATS		200
#define MAX_ROUNDS	20

/* Spin limits: far more than the 50 us between beats, and less than that. */
#define SPIN_LONG_US	200000
#define SPIN_SHORT_US	20

/* Completions pushed at a time, for instance between two hotplug operations. */
#define PORTION		200

/* Those that are about to end are still in the list. */
static int count_threads(const char *name)
{
	struct task_struct *p;
	int n = 0;

	rcu_read_lock();
	for_each_process(p)
		n += !(p->flags & PF_EXITING) && !strncmp(p->comm, name, strlen(name));
	rcu_read_unlock();
	return n;
}

static void one_thread_serves_a_vector(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq[4];
	char name[32];
	int i, n, vectors = m->ibdev->num_comp_vectors;

	KUNIT_EXPECT_EQ(test, 0, count_threads(PREFIX));
	for (n = 0; n < 4; n++) {
		cq[n] = ib_alloc_cq(m->ibdev, NULL, 16, n % vectors, IB_POLL_THREAD);
		if (IS_ERR(cq[n]))
			break;
	}
	KUNIT_EXPECT_EQ(test, 4, n);
	KUNIT_EXPECT_EQ(test, min(4, vectors), count_threads(PREFIX));
	for (i = 0; i < min(n, vectors); i++) {
		snprintf(name, sizeof(name), PREFIX "%d", i);
		KUNIT_EXPECT_EQ(test, 1, count_threads(name));
	}
	while (n--)
		ib_free_cq(cq[n]);
	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, 0, count_threads(PREFIX));
}

static void no_thread_without_need(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq = KVT_PTR(test, ib_alloc_cq(m->ibdev, NULL, 16, 0, IB_POLL_SOFTIRQ));

	KUNIT_EXPECT_EQ(test, 0, count_threads(PREFIX));
	ib_free_cq(cq);
}

/* The CPU that done() ran on last, and how often this changed. */
struct place {
	int cpu;
	int moves;
};

static void note_cpu(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct place *p = rec->arg;
	int cpu = raw_smp_processor_id();

	p->moves += cpu != p->cpu;
	WRITE_ONCE(p->cpu, cpu);
}

static void thread_runs_on_the_cpu_of_its_vector(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct recorder *rec;
	struct item *items;
	struct place p;
	int vector;

	for (vector = 0; vector < m->ibdev->num_comp_vectors; vector++) {
		rec = recorder_up(test, m, IB_POLL_THREAD, vector);
		items = items_new(test, rec, PORTION);
		p.cpu = vector;
		p.moves = 0;
		recorder_expect_calls(rec, PORTION, note_cpu, &p);
		items_push_each(test, items, PORTION, NULL);
		KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
		KUNIT_EXPECT_EQ(test, 0, p.moves);
		KUNIT_EXPECT_EQ(test, vector, p.cpu);
		recorder_free(rec);
	}
}

/* --- spinning ---------------------------------------------------------------- */

/*
 * Pushes one completion at a time, each @us microseconds after the one before was handled; if that is
 * long, when the thread sleeps, however long that takes.
 */
static void beat(struct kunit *test, struct recorder *rec, unsigned int us)
{
	struct item *items = items_new(test, rec, BEATS);
	int i;

	for (i = 0; i < BEATS; i++) {
		item_init(&items[i], rec, 0, rec->next[0]);
		rec->expect = atomic_read(&rec->seen) + 1;
		KUNIT_ASSERT_TRUE(test, item_push(&items[i]));
		KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
		if (us < USEC_PER_MSEC) {
			udelay(us);
			continue;
		}
		msleep(us / USEC_PER_MSEC);
		KUNIT_ASSERT_TRUE(test, kvt_until(READ_ONCE(rec->cq->lane->thread.asleep)));
	}
	KUNIT_ASSERT_TRUE(test, cq_rig_rest(rec->cq));
}

static struct recorder *beaten_up(struct kunit *test, struct ib_cq_lane_stats **stats)
{
	struct recorder *rec;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	rec = recorder_up(test, mock_up(test, "kvtm_a"), IB_POLL_THREAD, kvt_other_cpu());
	*stats = &rec->cq->lane->stats;
	return rec;
}

static void thread_spins_for_what_comes_soon(struct kunit *test)
{
	struct ib_cq_lane_stats *stats;
	struct recorder *rec = beaten_up(test, &stats);
	int rounds = MAX_ROUNDS;

	cq_rig_tune(test, "cq_spin_us", SPIN_LONG_US);
	/* Where a CPU may stand still at any time, much of what is pushed soon comes late. */
	do
		beat(test, rec, 50);
	while (stats->spin_hits < BEATS / 2 && --rounds);
	kunit_info(test, "%llu spins, %llu hits, %llu sleeps", stats->spins, stats->spin_hits,
		   stats->sleeps);
	KUNIT_EXPECT_GE(test, stats->spin_hits, BEATS / 2);
	KUNIT_EXPECT_GE(test, stats->spins, stats->spin_hits);
}

static void thread_does_not_spin_for_what_comes_late(struct kunit *test)
{
	struct ib_cq_lane_stats *stats;
	struct recorder *rec = beaten_up(test, &stats);

	cq_rig_tune(test, "cq_spin_us", SPIN_SHORT_US);
	beat(test, rec, 2000);
	kunit_info(test, "%llu spins, %llu hits, %llu sleeps", stats->spins, stats->spin_hits,
		   stats->sleeps);
	/* It spins only until it has learned that completions come late. */
	KUNIT_EXPECT_LE(test, stats->spins, BEATS / 10);
}

static void thread_does_not_spin_when_told_so(struct kunit *test)
{
	struct ib_cq_lane_stats *stats;
	struct recorder *rec = beaten_up(test, &stats);
	u64 spins;

	cq_rig_tune(test, "cq_spin_us", 0);
	beat(test, rec, 50);
	spins = stats->spins;
	beat(test, rec, 50);
	KUNIT_EXPECT_EQ(test, spins, stats->spins);
	KUNIT_EXPECT_EQ(test, 0, stats->spin_hits);
}

static void thread_sleeps_when_nothing_comes(struct kunit *test)
{
	struct ib_cq_lane_stats *stats;
	struct recorder *rec = beaten_up(test, &stats);
	struct task_struct *task = rec->cq->lane->thread.task;
	u64 spins;
	int i, rounds = MAX_ROUNDS;

	cq_rig_tune(test, "cq_spin_us", SPIN_LONG_US);
	for (i = 0; i < 3; i++) {
		spins = stats->spins;
		/* As long as all of it comes late, it does not spin. */
		do
			beat(test, rec, 50);
		while (stats->spins == spins && --rounds);
		KUNIT_EXPECT_GT(test, stats->spins, spins);
		KUNIT_EXPECT_TRUE(test, kvt_until(READ_ONCE(task->__state) == TASK_IDLE));
	}
}

/* --- hotplug ----------------------------------------------------------------- */

static void plug(void *arg)
{
	unsigned int cpu = (unsigned long)arg;

	if (!cpu_online(cpu))
		add_cpu(cpu);
}

static int unplug_for_the_case(struct kunit *test)
{
	int cpu = kvt_other_cpu();

	if (!cpu)
		kunit_skip(test, "needs two CPUs");
	kvt_stay_on_first_cpu();
	kvt_defer(test, plug, (void *)(unsigned long)cpu);
	return cpu;
}

static void portion(struct kunit *test, struct recorder *rec)
{
	struct item *items = items_new(test, rec, PORTION);
	int i;

	rec->expect = atomic_read(&rec->seen) + PORTION;
	for (i = 0; i < PORTION; i++)
		item_init(&items[i], rec, 0, rec->expect - PORTION + i);
	items_push_each(test, items, PORTION, NULL);
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
}

static void thread_leaves_its_cpu_and_comes_back(struct kunit *test)
{
	struct recorder *rec, *late;
	struct place p = {};
	struct mock *m;
	int cpu = unplug_for_the_case(test);

	m = mock_up(test, "kvtm_a");
	rec = recorder_up(test, m, IB_POLL_THREAD, cpu);
	rec->on_done = note_cpu;
	rec->arg = &p;
	portion(test, rec);
	KUNIT_EXPECT_EQ(test, cpu, p.cpu);

	KUNIT_ASSERT_EQ(test, 0, remove_cpu(cpu));
	portion(test, rec);
	KUNIT_EXPECT_EQ(test, 0, p.cpu);
	/* A CQ that is created meanwhile for the same vector is polled on the first CPU, too. */
	late = recorder_up(test, m, IB_POLL_THREAD, cpu);
	late->on_done = note_cpu;
	late->arg = &p;
	portion(test, late);
	KUNIT_EXPECT_EQ(test, 0, p.cpu);

	KUNIT_ASSERT_EQ(test, 0, add_cpu(cpu));
	portion(test, rec);
	KUNIT_EXPECT_EQ(test, cpu, p.cpu);
	portion(test, late);
	KUNIT_EXPECT_EQ(test, cpu, p.cpu);
}

static void thread_made_while_its_cpu_is_away_goes_there(struct kunit *test)
{
	struct recorder *rec;
	struct place p = {};
	struct mock *m;
	int cpu = unplug_for_the_case(test);

	m = mock_up(test, "kvtm_a");
	KUNIT_ASSERT_EQ(test, 0, remove_cpu(cpu));
	rec = recorder_up(test, m, IB_POLL_THREAD, cpu);
	rec->on_done = note_cpu;
	rec->arg = &p;
	portion(test, rec);
	KUNIT_EXPECT_EQ(test, 0, p.cpu);
	KUNIT_ASSERT_EQ(test, 0, add_cpu(cpu));
	portion(test, rec);
	KUNIT_EXPECT_EQ(test, cpu, p.cpu);
}

struct stream {
	struct recorder *rec;
	struct item items[PORTION];
};

/* Thread: pushes completions; up to half a portion of them are not handled yet. */
static int stream_fn(void *arg)
{
	struct stream *s = arg;
	u32 n = 0;

	while (!kvt_should_stop()) {
		if (n - READ_ONCE(s->rec->next[0]) >= PORTION / 2) {
			schedule();
			continue;
		}
		item_init(&s->items[n % PORTION], s->rec, 0, n);
		if (!item_push(&s->items[n % PORTION]))
			return -ENOSPC;
		n++;
	}
	return n;
}

static void completions_go_on_while_a_cpu_comes_and_goes(struct kunit *test)
{
	struct stream *s = kvt_zalloc(test, sizeof(*s));
	struct kvt_thread *t;
	int i, cpu, seen;

	cpu = unplug_for_the_case(test);
	s->rec = recorder_up(test, mock_up(test, "kvtm_a"), kvt_context(test), cpu);
	t = kvt_thread_start(test, -1, stream_fn, s);
	for (i = 0; i < 6; i++) {
		seen = atomic_read(&s->rec->seen);
		kvt_until(atomic_read(&s->rec->seen) >= seen + PORTION);
		KUNIT_EXPECT_EQ(test, 0, i % 2 ? add_cpu(cpu) : remove_cpu(cpu));
	}
	KUNIT_ASSERT_GT(test, kvt_thread_stop(t), 6 * PORTION);
	kvt_until(atomic_read(&s->rec->seen) >= t->ret);
	s->rec->expect = t->ret;
	recorder_expect_clean(test, s->rec);
	KUNIT_EXPECT_TRUE(test, cq_rig_rest(s->rec->cq));
}

static struct kunit_case cq_thread_cases[] = {
	KUNIT_CASE(one_thread_serves_a_vector),
	KUNIT_CASE(no_thread_without_need),
	KUNIT_CASE(thread_runs_on_the_cpu_of_its_vector),
	KUNIT_CASE(thread_spins_for_what_comes_soon),
	KUNIT_CASE(thread_does_not_spin_for_what_comes_late),
	KUNIT_CASE(thread_does_not_spin_when_told_so),
	KUNIT_CASE(thread_sleeps_when_nothing_comes),
	KUNIT_CASE(thread_leaves_its_cpu_and_comes_back),
	KUNIT_CASE(thread_made_while_its_cpu_is_away_goes_there),
	KUNIT_CASE_PARAM(completions_go_on_while_a_cpu_comes_and_goes, kvt_scheduled_context),
	{}
};
KVT_SUITE(cq_thread);

MODULE_DESCRIPTION("KUnit: the threads of completion vectors");
MODULE_LICENSE("GPL");
