// SPDX-License-Identifier: GPL-2.0-only
/*
 * Doorbells: who owns a queue pair, and where ownership moves. doorbell.h has the word
 * itself.
 *
 * A poster executes entries inline up to a small budget, then puts the queue pair on
 * the list of a runner, a kernel thread; the list is the owner until the runner comes to it.
 * Each CPU has two runners, one for queue pairs of the kernel and one for those of processes,
 * of which there may be thousands. They run on any CPU: a poster may poll without end, with
 * preemption off, for what the runner is to do. A runner leaves a long message to a work item,
 * so that the other queue pairs on its list, whoever has them, do not wait for that. An
 * owner that must wait, for a receive to be posted or for a peer to come back, arms the
 * queue pair's timer; the timer is then the owner, and passes the queue pair to a runner
 * when it fires.
 *
 * emu_qp_freeze() takes ownership away from whoever has it: from the timer, a list, or a work
 * item that does not run yet, at once, and from others at the next boundary between two entries.
 * It is how modify_qp, destroy_qp, and a doorbell that refuses what a process has written get a
 * queue pair that stands still. A destroyed queue pair stays frozen for good.
 *
 * Lists take no lock, so what is on one stays there until the runner comes to it, the owner or
 * not. Hence the entry is an object of its own, which may outlive its queue pair.
 *
 * After letting go of ownership, a former owner touches the queue pair once more
 * to wake a waiting freezer. It has preemption off until then, and queue pairs
 * are freed a grace period after their destruction.
 */
#include <linux/cpu.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/static_call.h>
#include <linux/workqueue.h>

#include "doorbell.h"

/*
 * The timer fires on the CPU where it was armed, perhaps by a poster who polls there from then
 * on, with bottom halves off or as a real-time task. So it fires in the hard interrupt, and merely
 * wakes a runner, which runs elsewhere.
 */
#define EMU_TIMER_MODE		HRTIMER_MODE_REL_HARD

/**
 * struct emu_runner - a kernel thread that executes queue pairs
 * @queue: entries of queue pairs handed to it, the newest first
 * @task: the thread
 */
struct emu_runner {
	struct llist_head queue;
	struct task_struct *task;
};

/* The runners of a CPU, by whose the queue pairs are. */
enum {
	EMU_RUNNER_KERNEL,
	EMU_RUNNER_USER,
	EMU_NR_RUNNERS,
};

static DEFINE_PER_CPU(struct emu_runner [EMU_NR_RUNNERS], emu_runners);
/* Its runners serve CPUs that came online after the module was loaded, too. */
static int emu_first_cpu;

/* Bits of emu_run.state. */
#define EMU_RUN_LISTED	BIT(0)	/* on a list, or about to be */
#define EMU_RUN_OWNER	BIT(1)	/* the list is the owner of the queue pair */
#define EMU_RUN_ORPHAN	BIT(2)	/* the queue pair is gone: the runner frees the entry */

/**
 * struct emu_run - entry of a queue pair on a runner's list
 * @node: in the list
 * @state: EMU_RUN_*
 * @qp: the queue pair
 */
struct emu_run {
	struct llist_node node;
	atomic_t state;
	struct emu_qp *qp;
};

/*
 * Execute long messages, each about as many at a time as there are CPUs. Those of the kernel
 * do not wait until those of processes, of which there may be thousands, have been copied.
 */
static struct workqueue_struct *emu_long_wq, *emu_user_long_wq;

/* The engine's; a call of it is a direct one. */
DEFINE_STATIC_CALL_NULL(emu_qp_serve, emu_serve_fn);

static struct emu_runner *emu_runner_for(const struct emu_qp *qp)
{
	unsigned int which = qp->user_sq ? EMU_RUNNER_USER : EMU_RUNNER_KERNEL;
	struct emu_runner *runner = &(*raw_cpu_ptr(&emu_runners))[which];

	if (unlikely(!runner->task))
		runner = &(*per_cpu_ptr(&emu_runners, emu_first_cpu))[which];
	return runner;
}

/**
 * emu_qp_hand_over() - let a runner go on with a queue pair
 * @qp: queue pair, owned by the caller until then
 *
 * Context: Any but NMI.
 */
void emu_qp_hand_over(struct emu_qp *qp)
{
	struct emu_runner *runner = emu_runner_for(qp);
	struct emu_run *run = qp->run;

	/*
	 * The next owner may destroy the queue pair. And one that takes it back and hands it over
	 * again finds it listed, and relies on us to list it soon.
	 */
	preempt_disable();
	/*
	 * Full barrier, pairs with that in emu_qp_freeze(): either the freezer sees who the
	 * owner is, or we see the freezer.
	 */
	if (!(atomic_fetch_or(EMU_RUN_LISTED | EMU_RUN_OWNER, &run->state) & EMU_RUN_LISTED) &&
	    llist_add(&run->node, &runner->queue))
		wake_up_process(runner->task);
	if (unlikely(READ_ONCE(qp->freezing)))
		emu_qp_wake_freezer(qp);
	preempt_enable();
}

/* Takes a queue pair back from a runner's list. Returns false if the list is not its owner. */
static bool emu_run_cancel(struct emu_run *run)
{
	/* Full barrier: what the last owner has done is seen. */
	return atomic_read(&run->state) & EMU_RUN_OWNER &&
	       atomic_fetch_andnot(EMU_RUN_OWNER, &run->state) & EMU_RUN_OWNER;
}

/**
 * emu_qp_hand_over_long() - let a work item go on with a queue pair, for a message that is longer
 *	than EMU_RUNNER_BYTES
 * @qp: queue pair, owned by the caller until then
 *
 * Context: Process context, preemption off.
 */
void emu_qp_hand_over_long(struct emu_qp *qp)
{
	/*
	 * Only the owner queues the item. If that fails, somebody is in cancel_work() at this
	 * moment who has not found the item queued, and so does not become the owner.
	 */
	if (!queue_work(qp->user_sq ? emu_user_long_wq : emu_long_wq, &qp->work)) {
		emu_qp_hand_over(qp);
		return;
	}
	/*
	 * Full barrier, pairs with that in emu_qp_freeze(): either the freezer finds the item
	 * queued, or we see the freezer. It must not have to wait for the long messages of others
	 * that are queued before. Whoever cancels the item is the owner.
	 */
	smp_mb();
	if (READ_ONCE(qp->freezing) && cancel_work(&qp->work))
		emu_qp_hand_over(qp);
}

/* Executes a queue pair that was handed over to this thread. */
static void emu_qp_run(struct emu_qp *qp, s64 budget)
{
	preempt_disable();
	emu_qp_look(qp);
	static_call(emu_qp_serve)(qp, budget, true);
	preempt_enable();
}

static void emu_qp_work(struct work_struct *work)
{
	emu_qp_run(container_of(work, struct emu_qp, work), EMU_LONG_BUDGET);
}

static enum hrtimer_restart emu_qp_timer(struct hrtimer *timer)
{
	emu_qp_hand_over(container_of(timer, struct emu_qp, timer));
	return HRTIMER_NORESTART;
}

/* The queue pair is frozen for good: nobody comes to its doorbell any more. */
void emu_qp_exit_doorbell(struct emu_qp *qp)
{
	/* It is not armed, but its callback may not have returned yet. */
	hrtimer_cancel(&qp->timer);
}

int emu_qp_init_doorbell(struct emu_qp *qp)
{
	qp->run = kzalloc(sizeof(*qp->run), qp->user_sq ? GFP_KERNEL_ACCOUNT : GFP_KERNEL);
	if (!qp->run)
		return -ENOMEM;
	qp->run->qp = qp;
	atomic_set(&qp->doorbell, EMU_DB_IDLE);
	hrtimer_init(&qp->timer, CLOCK_MONOTONIC, EMU_TIMER_MODE);
	qp->timer.function = emu_qp_timer;
	INIT_WORK(&qp->work, emu_qp_work);
	return 0;
}

/* The last step: after emu_qp_exit_doorbell(), or if the queue pair was not created. */
void emu_qp_free_doorbell(struct emu_qp *qp)
{
	if (!(atomic_fetch_or(EMU_RUN_ORPHAN, &qp->run->state) & EMU_RUN_LISTED))
		kfree(qp->run);
}

/*
 * Takes ownership from the timer. Returns false if the timer was not the owner. If the callback
 * is running, it may be that of an earlier arming, which tells nothing about the present owner;
 * so this spins until it has returned, which takes only a moment.
 */
static bool emu_timer_cancel(struct emu_qp *qp)
{
	int ret;

	while ((ret = hrtimer_try_to_cancel(&qp->timer)) < 0)
		cpu_relax();
	return ret;
}

/**
 * emu_qp_park() - let a queue pair wait: its timer is the owner for a while
 * @qp: queue pair, owned by the caller
 * @delay_ns: for how long
 *
 * The timer passes it to a runner, as does emu_qp_unpark() if it comes earlier.
 *
 * Context: Any but NMI.
 * Return: EMU_MOVED; or EMU_IDLE if a freezer or an error came at that moment, and
 * the caller is the owner, who will have to look again.
 */
enum emu_service emu_qp_park(struct emu_qp *qp, u64 delay_ns)
{
	enum emu_service service = EMU_MOVED;

	rcu_read_lock();
	kverbs_delay("emu_qp_park");
	hrtimer_start(&qp->timer, ns_to_ktime(delay_ns), EMU_TIMER_MODE);
	/*
	 * Full barrier, pairs with those in emu_qp_freeze() and emu_qp_fail():
	 * either they see the timer armed, or we see them. Of all those who cancel
	 * the timer, the one who finds it armed is the owner.
	 */
	smp_mb();
	if (READ_ONCE(qp->freezing) || atomic_read(&qp->state) == IB_QPS_ERR) {
		kverbs_delay("emu_qp_take_back");
		/*
		 * By now others may have been the owner, found the same to wait for, and parked:
		 * so this may be their wait, with nothing else that goes on with it.
		 */
		if (emu_timer_cancel(qp)) {
			atomic_xchg(&qp->doorbell, EMU_DB_RERUN);
			service = EMU_IDLE;
		}
	}
	rcu_read_unlock();
	return service;
}

/* For an owner that is not a runner, after emu_qp_own() or emu_qp_look(). Preemption is off. */
static __always_inline void emu_qp_serve_inline(struct emu_qp *qp, u32 spent)
{
	s64 budget = unlikely(in_hardirq()) ? EMU_HARDIRQ_BUDGET : EMU_INLINE_BUDGET;

	static_call(emu_qp_serve)(qp, budget - spent, false);
}

/**
 * emu_qp_ring_after() - ring the doorbell of a queue pair; execute it here if it has
 *	no owner
 * @qp: queue pair
 * @spent: what the caller has executed of it already, which counts against the
 *	budget
 *
 * Context: Any but NMI.
 */
void emu_qp_ring_after(struct emu_qp *qp, u32 spent)
{
	preempt_disable();
	if (likely(emu_qp_own_or_signal(qp)))
		emu_qp_serve_inline(qp, spent);
	preempt_enable();
}

/**
 * emu_qp_ring_deferred() - ring the doorbell of a queue pair; a runner executes
 *	it
 * @qp: queue pair
 *
 * For engines: they may be executing another queue pair, and must not nest.
 *
 * Context: Any but NMI.
 */
void emu_qp_ring_deferred(struct emu_qp *qp)
{
	if (atomic_xchg(&qp->doorbell, EMU_DB_RERUN) == EMU_DB_IDLE)
		emu_qp_hand_over(qp);
}

/**
 * emu_qp_unpark() - end a wait of the queue pair's owner
 * @qp: queue pair
 *
 * If the timer was the owner, a runner is now.
 *
 * Context: Any but NMI. The queue pair is held by its gate, or the caller is
 * its owner or serialises its destruction.
 */
void emu_qp_unpark(struct emu_qp *qp)
{
	if (emu_timer_cancel(qp))
		emu_qp_hand_over(qp);
}

/**
 * emu_qp_freeze() - take a queue pair away from its owner
 * @qp: queue pair
 *
 * Returns when no entry is being executed and the timer is not armed. Waits at
 * most for the entry under way, that is, for one copy of a message, or for a multicast.
 *
 * Context: Process context; @qp->lock held.
 */
void emu_qp_freeze(struct emu_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	WRITE_ONCE(qp->freezing, true);
	/*
	 * Full barrier: pairs with emu_qp_park(), emu_qp_hand_over(), emu_qp_hand_over_long() and
	 * emu_qp_release().
	 */
	smp_mb();
	if (emu_timer_cancel(qp) || cancel_work(&qp->work))
		return;
	emu_wait_event(&qp->doorbell,
		       emu_run_cancel(qp->run) ||
		       atomic_cmpxchg(&qp->doorbell, EMU_DB_IDLE, EMU_DB_OWNED) == EMU_DB_IDLE);
}

/* The caller has let go of a queue pair that a freezer waits for. Preemption is off. */
void emu_qp_wake_freezer(struct emu_qp *qp)
{
	emu_wake(&qp->doorbell);
}

/* The caller was the last one to leave the closed gate of a queue pair. Under RCU. */
void emu_qp_left(struct emu_qp *qp)
{
	emu_gate_wake(&qp->gate);
	emu_qp_ring_deferred(qp);
}

/**
 * emu_qp_thaw() - let a frozen queue pair go on
 * @qp: queue pair
 *
 * Context: Process context; @qp->lock held, by the caller of emu_qp_freeze().
 */
void emu_qp_thaw(struct emu_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	emu_qp_reset_retries(qp);
	preempt_disable();
	WRITE_ONCE(qp->freezing, false);
	emu_qp_look(qp);
	emu_qp_serve_inline(qp, 0);
	preempt_enable();
}

/* A runner has come to an entry of its list. */
static void emu_run_begin(struct emu_run *run)
{
	int state;

	kverbs_delay("emu_run_begin");
	/* Full barrier: what the last owner has done is seen. Then the entry may be listed again. */
	state = atomic_fetch_andnot(EMU_RUN_LISTED | EMU_RUN_OWNER, &run->state);
	if (state & EMU_RUN_ORPHAN)
		kfree(run);
	else if (state & EMU_RUN_OWNER)
		emu_qp_run(run->qp, EMU_RUNNER_BUDGET);
}

static int emu_runner_thread(void *data)
{
	struct emu_runner *runner = data;
	struct emu_run *run, *next;
	struct llist_node *batch;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (llist_empty(&runner->queue)) {
			if (kthread_should_stop())
				break;
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);

		batch = llist_reverse_order(llist_del_all(&runner->queue));
		llist_for_each_entry_safe(run, next, batch, node) {
			emu_run_begin(run);
			/* A quiescent state for RCU tasks: the list may never become empty. */
			cond_resched_tasks_rcu_qs();
		}
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

static struct workqueue_struct *emu_create_long_wq(const char *name)
{
	return alloc_workqueue("%s", WQ_UNBOUND | WQ_MEM_RECLAIM,
			       min_t(unsigned int, num_possible_cpus(), WQ_MAX_ACTIVE), name);
}

static int emu_start_runners(int cpu)
{
	static const char *const names[] = {
		[EMU_RUNNER_KERNEL] = "kverbs_emu/%d",
		[EMU_RUNNER_USER] = "kverbs_user/%d",
	};
	struct emu_runner *runner = *per_cpu_ptr(&emu_runners, cpu);
	struct task_struct *task;
	unsigned int i;

	for (i = 0; i < EMU_NR_RUNNERS; i++, runner++) {
		init_llist_head(&runner->queue);
		task = kthread_create_on_node(emu_runner_thread, runner, cpu_to_node(cpu),
					      names[i], cpu);
		if (IS_ERR(task))
			return PTR_ERR(task);
		runner->task = task;
		wake_up_process(task);
	}
	return 0;
}

/**
 * emu_doorbell_start() - start the runners, before any queue pair exists
 * @serve: executes a queue pair
 *
 * Context: Process context.
 * Return: 0, -ENOMEM, or what kthread_create_on_node() returned.
 */
int emu_doorbell_start(emu_serve_fn *serve)
{
	int cpu, err;

	emu_long_wq = emu_create_long_wq("kverbs-emu-long");
	if (!emu_long_wq)
		return -ENOMEM;
	emu_user_long_wq = emu_create_long_wq("kverbs-emu-user");
	if (!emu_user_long_wq) {
		destroy_workqueue(emu_long_wq);
		return -ENOMEM;
	}
	static_call_update(emu_qp_serve, serve);
	emu_first_cpu = -1;
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		err = emu_start_runners(cpu);
		if (err) {
			cpus_read_unlock();
			emu_doorbell_stop();
			return err;
		}
		if (emu_first_cpu < 0)
			emu_first_cpu = cpu;
	}
	cpus_read_unlock();
	return 0;
}

/* No queue pair exists any more. */
void emu_doorbell_stop(void)
{
	struct emu_runner *runner;
	unsigned int i;
	int cpu;

	/* Whoever hands over may be about to list an entry that was cancelled at once. */
	synchronize_rcu();
	for_each_possible_cpu(cpu) {
		for (i = 0; i < EMU_NR_RUNNERS; i++) {
			runner = &(*per_cpu_ptr(&emu_runners, cpu))[i];
			if (runner->task)
				kthread_stop(runner->task);
			runner->task = NULL;
		}
	}
	destroy_workqueue(emu_user_long_wq);
	destroy_workqueue(emu_long_wq);
}
