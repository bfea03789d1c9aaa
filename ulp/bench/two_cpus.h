/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The same work on one CPU and on two: for modules that measure what it gains from the
 * second. A batch of each by turns, so that whatever else the machine does meets both;
 * the best one counts.
 */
#ifndef KVERBS_TWO_CPUS_H
#define KVERBS_TWO_CPUS_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/topology.h>

/**
 * struct two_cpus - work that is timed
 * @turn: does some; returns 0 or an error, which ends it
 * @arg: for @turn
 * @turns: of a thread in a batch
 * @each: things done in a turn
 * @ns: nanoseconds for a thing, of one thread and of two, in the best batches
 */
struct two_cpus {
	int (*turn)(void *arg);
	void *arg;
	u32 turns;
	u32 each;
	u64 ns[2];
};

/**
 * struct two_cpus_thread - one that does it
 * @work: what
 * @task: it
 * @ready: completed when it is about to wait for @go
 * @go: of all of them
 * @away: threads that have not come to the start yet
 * @start: when it has begun, in nanoseconds
 * @end: when it was done
 */
struct two_cpus_thread {
	const struct two_cpus *work;
	struct task_struct *task;
	struct completion ready;
	struct completion *go;
	atomic_t *away;
	u64 start;
	u64 end;
};

static inline int two_cpus_thread(void *arg)
{
	struct two_cpus_thread *t = arg;
	int ret = 0;
	u32 i;

	complete(&t->ready);
	wait_for_completion(t->go);
	/* One wakes up before the other, and is not to have the machine alone. */
	atomic_dec(t->away);
	while (atomic_read(t->away)) {
		cpu_relax();
		/* The kernel may want to stop both CPUs before the other wakes up. */
		cond_resched();
	}
	t->start = ktime_get_ns();
	for (i = 0; !ret && i < t->work->turns; i++)
		ret = t->work->turn(t->work->arg);
	t->end = ktime_get_ns();
	return ret;
}

static inline int two_cpus_begin(struct two_cpus_thread *t, unsigned int cpu)
{
	/* One has gone offline since they were counted. */
	if (cpu >= nr_cpu_ids)
		return -ENXIO;
	init_completion(&t->ready);
	t->task = kthread_create_on_node(two_cpus_thread, t, cpu_to_node(cpu),
					 KBUILD_MODNAME "/%u", cpu);
	if (IS_ERR(t->task))
		return PTR_ERR(t->task);
	get_task_struct(t->task);
	kthread_bind(t->task, cpu);
	wake_up_process(t->task);
	wait_for_completion(&t->ready);
	return 0;
}

static inline int two_cpus_end(struct two_cpus_thread *t)
{
	int ret = kthread_stop(t->task);

	put_task_struct(t->task);
	return ret;
}

/* @nr threads, each on a CPU of its own. */
static inline int two_cpus_batch(struct two_cpus *work, u32 nr)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);
	u64 start = U64_MAX, end = 0;
	DECLARE_COMPLETION_ONSTACK(go);
	struct two_cpus_thread t[2];
	int ret = 0, ended;
	u32 made = 0, i;
	atomic_t away;

	for (; made < nr; made++) {
		t[made] = (struct two_cpus_thread) { .work = work, .go = &go, .away = &away };
		ret = two_cpus_begin(&t[made], cpu);
		if (ret)
			break;
		cpu = cpumask_next(cpu, cpu_online_mask);
	}
	atomic_set(&away, made);
	complete_all(&go);
	for (i = 0; i < made; i++) {
		ended = two_cpus_end(&t[i]);
		ret = ret ?: ended;
		start = min(start, t[i].start);
		end = max(end, t[i].end);
	}
	if (!ret)
		work->ns[nr - 1] = min(work->ns[nr - 1],
				       div_u64(end - start, nr * work->turns * work->each));
	return ret;
}

/*
 * A batch of one thread, and one of two; @work->ns is U64_MAX before the first. Returns 0;
 * -ENXIO with fewer than two CPUs; or an error of kthread_create() or @work->turn.
 */
static inline int two_cpus_batches(struct two_cpus *work)
{
	return two_cpus_batch(work, 1) ?: two_cpus_batch(work, 2);
}

#define TWO_CPUS_SLOTS	32

/*
 * A turn that shares nothing with the other thread's, of atomic operations on its own stack:
 * what such threads gain is what the machine has to give. @slots: at most TWO_CPUS_SLOTS, of
 * which a turn takes and frees each so often.
 */
static inline int two_cpus_apart(unsigned int slots)
{
	void *slot[TWO_CPUS_SLOTS] = {};
	unsigned int i, k;

	for (k = 0; k < slots; k++) {
		for (i = 0; i < slots; i++)
			cmpxchg(&slot[i], NULL, &slot);
		for (i = 0; i < slots; i++)
			if (xchg(&slot[i], NULL) != &slot)
				return -EIO;
	}
	return 0;
}

/* The rate of two threads, in per cent of that of one. */
static inline u64 two_cpus_gain(const struct two_cpus *work)
{
	return div64_u64(100 * work->ns[0], max(work->ns[1], 1ULL));
}

#endif /* KVERBS_TWO_CPUS_H */
