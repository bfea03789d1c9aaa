// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two things must not hold up the other CQs of a lane: in a work queue, a done() that does not
 * return; and the CPU on which one of the CQs was notified, if it is kept busy.
 *
 * A lane of a work queue context has a runner that polls its CQs (lane.c), and a spare runner for
 * each of them. When the runner sleeps in a done(), it is displaced: a spare one takes its place,
 * and the lane goes on without the CQ whose done() sleeps. The displaced runner keeps that CQ
 * until it has handed out its batch; then it makes the CQ pending again and becomes a spare one.
 * A displaced runner holds one CQ, so there is a spare one for each that is not held.
 *
 *   the runner				who displaces it, with lane->lock held
 *
 *   poll a batch of n completions
 *   nr = n, batch b (release)		nr = n, b: nr |= IB_CQ_DISPLACED
 *   call done() n times			 take the CQ out of @ready
 *   nr = n, b -> 0			 lane->runner = a spare one
 *   or else it was displaced:		 start that
 *	become a spare one
 *	pending += CQ, as a waker
 *
 * So all that only the runner may touch, such as @ready, changes hands at the moment when @nr is
 * marked. The CQ is QUEUED all the time: wakers need not do anything, and threads that stop it or
 * wait for it are served when its next round begins.
 *
 * A runner may be displaced between two rounds, too, while it lets other tasks have the CPU:
 * ib_cq_pause(). It holds no CQ then, so there might not be a spare runner for each CQ any more;
 * hence the last spare one does not displace a runner that pauses if another one does already.
 * Others may still use up the spare runners by sleeping in a done(); but then each CQ has a runner,
 * unless several of them pause.
 *
 * Who displaces a runner:
 *
 *   - it does so itself, when it is about to wait for a CQ: ib_cq_hand_over_all();
 *   - the watch, for sleeps of other kinds. A waker that makes a CQ pending beside others starts
 *     it. It checks every jiffy until the lane is idle, and displaces a runner that sleeps in a
 *     done(), or has slept in this batch: a done() that waits by short sleeps may be awake
 *     whenever the watch looks. Sleeps before this batch do not count, so that a CQ whose
 *     done() does not sleep is not polled in parallel with others. The watch need not know
 *     whether another CQ is ready: if none is, the next runner finds that out, and the lane
 *     becomes idle;
 *   - the watch, if the batch or pause is the same for IB_CQ_STUCK jiffies: a done() keeps its CPU
 *     busy, or a task of higher priority does.
 *
 * In softirq and in the bound work queue, a lane runs where the first of its CQs was notified. The
 * others must not depend on that CPU: a task there, which has preemption off or is a real-time one,
 * may be waiting for just what they do. So if the lane was scheduled and does not run, the watch
 * has another CPU run it: after 2 jiffies, and again after 4, 8, 16 more. The intervals grow
 * because each move puts the lane at the end of another CPU's queue, which may merely be long.
 *
 * The watch is a timer that expires in hard interrupt, since whoever started it may have
 * softirqs off until a done() is called.
 *
 * lane->lock guards lane->runner, @busy, @spare and @paused; it is taken with interrupts off,
 * because the watch takes it. ib_cq_lanes_lock (wait.c) may be held around it. Two read
 * lane->runner without the lock: the schedule() of an idle lane, since only a runner inside a
 * batch or pause is displaced, and ib_cq_replace_runner() only replaces one whose work item is
 * queued; and the watch, to find out whether it needs the lock. Documentation/models/handover.pml
 * is a model of this.
 */
#include <linux/cpumask.h>
#include <linux/hrtimer.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <kverbs/delay.h>

#include "cq.h"

/* Interval of the watch, in jiffies. */
#define IB_CQ_WATCH	1

/* Ticks of the watch until a lane that waits for a CPU is moved for the first time. */
#define IB_CQ_PATIENCE	2

/* Ticks until a done() that does not sleep is taken for one that does not return. */
#define IB_CQ_STUCK	(HZ / 4)

static enum hrtimer_restart ib_cq_watch(struct hrtimer *timer);

static void ib_cq_runner_init(struct ib_cq_lane *lane, struct ib_cq_runner *runner,
			      struct list_head *list)
{
	runner->lane = lane;
	runner->at = runner->wc;
	runner->end = runner->wc;
	INIT_WORK(&runner->work, ib_cq_work);
	raw_spin_lock_irq(&lane->lock);
	list_add_tail(&runner->node, list);
	raw_spin_unlock_irq(&lane->lock);
}

void ib_cq_runners_init(struct ib_cq_lane *lane)
{
	raw_spin_lock_init(&lane->lock);
	INIT_LIST_HEAD(&lane->busy);
	INIT_LIST_HEAD(&lane->spare);
	ib_cq_runner_init(lane, &lane->own, &lane->busy);
	lane->runner = &lane->own;
	lane->runners = 1;
	lane->watched = lane->ctx->start || lane->ctx->move;
	lane->watch.patience = IB_CQ_PATIENCE;
	lane->watch.cpu = -1;
	hrtimer_init(&lane->watch.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	lane->watch.timer.function = ib_cq_watch;
}

/* Makes the watch do nothing any more. A waker may still start it, once, in vain. */
void ib_cq_stop_watch(struct ib_cq_lane *lane)
{
	WRITE_ONCE(lane->watched, false);
	hrtimer_cancel(&lane->watch.timer);
}

/*
 * Waits for runners that were displaced in a pause, until only lane->runner is left on @busy, where
 * it is the first.
 */
static void ib_cq_wait_for_paused(struct ib_cq_lane *lane)
{
	struct ib_cq_runner *last;

	for (;;) {
		raw_spin_lock_irq(&lane->lock);
		last = list_last_entry(&lane->busy, struct ib_cq_runner, node);
		raw_spin_unlock_irq(&lane->lock);
		if (last == lane->runner)
			return;
		flush_work(&last->work);
	}
}

/* Called when the lane has no CQ any more: its runners are spare, about to be idle, or pause. */
void ib_cq_runners_exit(struct ib_cq_lane *lane)
{
	struct ib_cq_runner *runner, *next;

	ib_cq_stop_watch(lane);
	ib_cq_wait_for_paused(lane);
	list_splice_init(&lane->busy, &lane->spare);
	/* A runner that has returned its CQ may still schedule the lane, or start the watch. */
	list_for_each_entry(runner, &lane->spare, node)
		cancel_work_sync(&runner->work);
	hrtimer_cancel(&lane->watch.timer);
	list_for_each_entry_safe(runner, next, &lane->spare, node) {
		cancel_work_sync(&runner->work);
		if (runner != &lane->own)
			kfree(runner);
	}
}

/*
 * Adds a runner, for a CQ that is added to @lane, unless there are enough left from CQs that have
 * been freed. Returns 0 or -ENOMEM.
 */
int ib_cq_add_runner(struct ib_cq_lane *lane, unsigned int cqs)
{
	struct ib_cq_runner *runner;

	if (!lane->ctx->start || lane->runners > cqs)
		return 0;
	runner = kzalloc(sizeof(*runner), GFP_KERNEL);
	if (!runner)
		return -ENOMEM;
	ib_cq_runner_init(lane, runner, &lane->spare);
	lane->runners++;
	return 0;
}

/* Makes a spare runner the lane's. */
static void ib_cq_take_spare(struct ib_cq_lane *lane)
{
	struct ib_cq_runner *next = list_first_entry(&lane->spare, struct ib_cq_runner, node);

	list_move(&next->node, &lane->busy);
	WRITE_ONCE(lane->runner, next);
}

/*
 * Displaces @runner, which is the lane's, if it is still in the batch or pause @nr; 0 for none.
 * @cpu: where its successor starts, in a context that is bound to CPUs.
 */
static void ib_cq_displace(struct ib_cq_lane *lane, struct ib_cq_runner *runner, int nr, int cpu)
{
	bool pause = nr & IB_CQ_PAUSE;

	lockdep_assert_held(&lane->lock);
	if (!nr || list_empty(&lane->spare) ||
	    (pause && lane->paused && list_is_singular(&lane->spare)))
		return;
	/* Pairs with the atomic_set_release() in ib_cq_allow_displacing(). */
	if (atomic_cmpxchg(&runner->nr, nr, nr | IB_CQ_DISPLACED) != nr)
		return;

	/* The runner's CQ is the first of @ready, as always while it is polled. */
	if (pause)
		lane->paused++;
	else
		ib_cq_ready_del(lane, &lane->ready);
	ib_cq_take_spare(lane);
	lane->stats.handovers++;
	lane->ctx->start(lane->runner, cpu);
}

/* Replaces the lane's runner, whose work item has been cancelled before it began. */
void ib_cq_replace_runner(struct ib_cq_lane *lane)
{
	lockdep_assert_held(&lane->lock);
	if (list_empty(&lane->spare))
		return;
	list_move_tail(&lane->runner->node, &lane->spare);
	ib_cq_take_spare(lane);
}

/* Displaces the runner of @lane if that is the caller, which is about to wait. */
void ib_cq_hand_over(struct ib_cq_lane *lane)
{
	struct ib_cq_runner *runner;

	if (!lane->ctx->start)
		return;
	raw_spin_lock_irq(&lane->lock);
	runner = lane->runner;
	if (READ_ONCE(runner->poller) == current)
		ib_cq_displace(lane, runner, atomic_read(&runner->nr), raw_smp_processor_id());
	raw_spin_unlock_irq(&lane->lock);
}

/*
 * Called by a runner that was displaced, when it has handed out its batch and done with
 * @cq what is to be done after a round; or after a pause, with NULL.
 */
void ib_cq_return_runner(struct ib_cq_runner *runner, struct ib_cq *cq)
{
	struct ib_cq_lane *lane = runner->lane;

	kverbs_delay("ib_cq_return_runner");
	WRITE_ONCE(runner->poller, NULL);
	atomic_set(&runner->nr, 0);
	/*
	 * First: when @cq is pending, each CQ may want a runner again. If this one is started
	 * before its work item has returned, it is executed after that.
	 */
	raw_spin_lock_irq(&lane->lock);
	list_move_tail(&runner->node, &lane->spare);
	if (!cq)
		lane->paused--;
	raw_spin_unlock_irq(&lane->lock);
	if (!cq)
		return;
	/* Nobody else schedules the lane between the two steps of this. */
	preempt_disable();
	ib_cq_enqueue(lane, cq);
	preempt_enable();
}

/* Returns @runner's @nr if it sleeps, or has slept, in its present batch; else 0. */
static int ib_cq_slept_in(const struct ib_cq_runner *runner, int *cpu)
{
	struct task_struct *task;
	bool slept = false;
	int nr;

	/*
	 * Pairs with the release in ib_cq_allow_displacing(). If @nr is still the same when the
	 * runner is displaced, all that is read here was so in that batch.
	 */
	nr = atomic_read_acquire(&runner->nr);
	rcu_read_lock();
	/* Set while the task executes the runner's work item, so RCU keeps the task. */
	task = READ_ONCE(runner->poller);
	if (task) {
		slept = READ_ONCE(task->__state) != TASK_RUNNING ||
			READ_ONCE(task->nvcsw) != READ_ONCE(runner->switches);
		*cpu = task_cpu(task);
	}
	rcu_read_unlock();
	return slept ? nr : 0;
}

/*
 * Whether a CQ may be pending or ready beside that of the runner. If not, the waker of the next one
 * starts the watch.
 */
static bool ib_cq_watch_on(const struct ib_cq_lane *lane)
{
	/* Pairs with the llist_add() in ib_cq_enqueue(): the waker sees that no watch is on. */
	smp_mb();
	if (!llist_empty(&lane->pending))
		return true;
	/* Pairs with the xchg() of @active: whoever took CQs from @pending did so after that. */
	smp_rmb();
	return atomic_read(&lane->active);
}

/* The next online CPU. */
static int ib_cq_next_cpu(int cpu)
{
	int next = cpumask_next(cpu, cpu_online_mask);

	return next < nr_cpu_ids ? next : cpumask_first(cpu_online_mask);
}

/* Counts for how many ticks the lane has done nothing. */
static void ib_cq_watch_progress(struct ib_cq_lane *lane)
{
	const struct ib_cq_lane_stats *stats = &lane->stats;
	struct ib_cq_watch *watch = &lane->watch;
	/* Whether they change is all that matters. data_race: the runner counts meanwhile */
	unsigned long progress = data_race(stats->runs + stats->rounds + stats->completions);
	int nr = atomic_read_acquire(&READ_ONCE(lane->runner)->nr);

	if (watch->progress == progress && watch->nr == nr) {
		watch->still++;
		return;
	}
	watch->progress = progress;
	watch->nr = nr;
	watch->still = 0;
	watch->patience = IB_CQ_PATIENCE;
	watch->cpu = -1;
}

/* Moves the lane to another CPU if it was scheduled, but has not run for too long. */
static void ib_cq_watch_move(struct ib_cq_lane *lane)
{
	struct ib_cq_watch *watch = &lane->watch;
	int waits_on = READ_ONCE(lane->waits_on);
	bool moved;
	int cpu;

	if (!waits_on || watch->still < watch->patience)
		return;
	cpu = ib_cq_next_cpu(watch->cpu < 0 ? waits_on - 1 : watch->cpu);
	if (cpu == waits_on - 1)
		cpu = ib_cq_next_cpu(cpu);
	if (cpu == waits_on - 1)
		return;
	raw_spin_lock(&lane->lock);
	moved = lane->ctx->move(lane, cpu);
	raw_spin_unlock(&lane->lock);
	if (!moved)
		return;
	lane->stats.moves++;
	watch->cpu = cpu;
	watch->still = 0;
	watch->patience *= 2;
}

/* Returns @runner's @nr if it sleeps, or makes no progress, in its present batch; else 0. */
static int ib_cq_stuck_in(const struct ib_cq_lane *lane, const struct ib_cq_runner *runner, int *cpu)
{
	int nr = ib_cq_slept_in(runner, cpu);

	if (nr || lane->watch.still < IB_CQ_STUCK)
		return nr;
	*cpu = ib_cq_next_cpu(*cpu);
	return lane->watch.nr;
}

static void ib_cq_watch_runner(struct ib_cq_lane *lane)
{
	int nr, cpu = 0;

	/*
	 * Without the lock, because it nearly always goes on; no runner is freed while the
	 * watch is on.
	 */
	if (!ib_cq_stuck_in(lane, READ_ONCE(lane->runner), &cpu))
		return;
	raw_spin_lock(&lane->lock);
	nr = ib_cq_stuck_in(lane, lane->runner, &cpu);
	ib_cq_displace(lane, lane->runner, nr, cpu);
	raw_spin_unlock(&lane->lock);
}

/* Interrupts are off. */
static enum hrtimer_restart ib_cq_watch(struct hrtimer *timer)
{
	struct ib_cq_lane *lane = container_of(timer, struct ib_cq_lane, watch.timer);

	if (!READ_ONCE(lane->watched) || !ib_cq_watch_on(lane))
		return HRTIMER_NORESTART;
	ib_cq_watch_progress(lane);
	if (lane->ctx->start)
		ib_cq_watch_runner(lane);
	if (lane->ctx->move)
		ib_cq_watch_move(lane);
	/* Not HRTIMER_RESTART: a waker may start the timer at the same time. */
	ib_cq_start_watch(lane);
	return HRTIMER_NORESTART;
}

/* A CQ became pending beside others. Any context but NMI. */
void ib_cq_start_watch(struct ib_cq_lane *lane)
{
	hrtimer_start(&lane->watch.timer, ns_to_ktime(jiffies_to_nsecs(IB_CQ_WATCH)),
		      HRTIMER_MODE_REL_HARD);
}

/* Whether the caller is in a done() of @cq. */
bool ib_cq_in_done_of(struct ib_cq *cq)
{
	struct ib_cq_lane *lane = cq->lane;
	struct ib_cq_runner *runner;
	bool found = false;

	raw_spin_lock_irq(&lane->lock);
	list_for_each_entry(runner, &lane->busy, node)
		found |= READ_ONCE(runner->poller) == current && runner->cq == cq;
	raw_spin_unlock_irq(&lane->lock);
	return found;
}

/* Whether @cq is not polled before the caller has returned from a done(). */
bool ib_cq_polled_by_caller(struct ib_cq *cq)
{
	if (cq->lane->ctx->start)
		return ib_cq_in_done_of(cq);
	return READ_ONCE(cq->lane->own.poller) == current;
}
