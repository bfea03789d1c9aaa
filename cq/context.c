// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polling contexts: what runs the lanes (lane.c).
 *
 *   IB_POLL_DIRECT			nothing: the consumer polls, direct.c
 *   IB_POLL_SOFTIRQ			irq_poll, in softirq on the CPU that was notified
 *   IB_POLL_WORKQUEUE			a bound work queue, on that CPU; both on another one if that
 *					does not come to it while other CQs wait (handover.c)
 *   IB_POLL_UNBOUND_WORKQUEUE		an unbound work queue, on any CPU
 *   IB_POLL_THREAD			a kernel thread on the vector's CPU, thread.c
 *
 * A device has a lane for each vector and context, created for the first CQ
 * that needs it, and kept until the device is unregistered. Each CQ of
 * IB_POLL_DIRECT has its own lane.
 */
#include <linux/cpu.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "cq.h"

static struct workqueue_struct *ib_comp_wq;
static struct workqueue_struct *ib_comp_unbound_wq;

static DEFINE_PER_CPU(atomic_t, ib_cq_softirq_waiting);
static DEFINE_PER_CPU(atomic_t, ib_cq_work_waiting);

/* Counts the lane among those that wait for @cpu, before it is scheduled there. */
static void ib_cq_begin_waiting(struct ib_cq_lane *lane, int cpu)
{
	if (READ_ONCE(lane->waits_on))
		return;
	atomic_inc(per_cpu_ptr(lane->ctx->waiting, cpu));
	/* Pairs with the xchg() in ib_cq_claim(): whoever runs the lane sees what it did before. */
	smp_store_release(&lane->waits_on, cpu + 1);
}

/* Ends that, when the lane runs; perhaps on another CPU, if @cpu went offline. */
static void ib_cq_end_waiting(struct ib_cq_lane *lane)
{
	int cpu = lane->waits_on - 1;

	if (cpu < 0)
		return;
	WRITE_ONCE(lane->waits_on, 0);
	atomic_dec(per_cpu_ptr(lane->ctx->waiting, cpu));
}

/* As ib_cq_end_waiting(), for a lane that may be scheduled on several CPUs: true on the first. */
static bool ib_cq_claim(struct ib_cq_lane *lane)
{
	int cpu = xchg(&lane->waits_on, 0) - 1;

	if (cpu < 0)
		return false;
	atomic_dec(per_cpu_ptr(lane->ctx->waiting, cpu));
	return true;
}

static void ib_cq_softirq_schedule(struct ib_cq_lane *lane)
{
	ib_cq_begin_waiting(lane, raw_smp_processor_id());
	irq_poll_sched(&raw_cpu_ptr(lane->softirq)->iop);
}

static int ib_cq_softirq(struct irq_poll *iop, int weight)
{
	struct ib_cq_lane *lane = container_of(iop, struct ib_cq_softirq, iop)->lane;
	enum ib_cq_ran ran;

	if (!ib_cq_claim(lane)) {
		/* The lane was moved, and another CPU runs it. */
		irq_poll_complete(iop);
		/*
		 * If the lane was scheduled here just before that, irq_poll_sched() has done
		 * nothing: schedule it again. Pairs with the test_and_set_bit() there.
		 */
		smp_mb();
		if (READ_ONCE(lane->waits_on))
			irq_poll_sched(iop);
		return 0;
	}
	ran = ib_cq_lane_run(lane);
	if (ran == IB_CQ_RAN_SPENT) {
		/* irq_poll keeps it scheduled, behind the others. */
		ib_cq_begin_waiting(lane, raw_smp_processor_id());
		return weight;
	}
	irq_poll_complete(iop);
	if (ran == IB_CQ_RAN_YIELD) {
		/* Behind the others, in the same softirq. */
		ib_cq_softirq_schedule(lane);
		return weight / 4;
	}
	if (!ib_cq_lane_idle(lane))
		ib_cq_softirq_schedule(lane);
	return 0;
}

/* Runs on the CPU to which the lane is moved. */
static void ib_cq_softirq_moved(void *info)
{
	struct ib_cq_lane *lane = info;

	irq_poll_sched(&this_cpu_ptr(lane->softirq)->iop);
}

static bool ib_cq_softirq_move(struct ib_cq_lane *lane, int cpu)
{
	/* It stays scheduled on the old CPU, too. Fails if the last move has not arrived yet. */
	return !smp_call_function_single_async(cpu, &lane->mover);
}

static int ib_cq_softirq_init(struct ib_cq_lane *lane)
{
	struct ib_cq_softirq *softirq;
	int cpu;

	lane->softirq = alloc_percpu(struct ib_cq_softirq);
	if (!lane->softirq)
		return -ENOMEM;
	for_each_possible_cpu(cpu) {
		softirq = per_cpu_ptr(lane->softirq, cpu);
		softirq->lane = lane;
		/* An unfinished run uses up the softirq's budget, so that others get the CPU. */
		irq_poll_init(&softirq->iop, IB_CQ_SOFTIRQ_BUDGET, ib_cq_softirq);
	}
	INIT_CSD(&lane->mover, ib_cq_softirq_moved, lane);
	return 0;
}

static void ib_cq_softirq_exit(struct ib_cq_lane *lane)
{
	int cpu;

	ib_cq_stop_watch(lane);
	/* Nothing moves the lane any more. Wait until the last mover has arrived. */
	kick_all_cpus_sync();
	for_each_possible_cpu(cpu)
		irq_poll_disable(&per_cpu_ptr(lane->softirq, cpu)->iop);
	/* The mover, and the last run, may not have returned yet. Both are RCU readers. */
	synchronize_rcu();
	free_percpu(lane->softirq);
}

/* The work item of a runner. */
void ib_cq_work(struct work_struct *work)
{
	struct ib_cq_runner *runner = container_of(work, struct ib_cq_runner, work);
	struct ib_cq_lane *lane = runner->lane;

	ib_cq_end_waiting(lane);
	for (;;) {
		switch (ib_cq_runner_run(runner)) {
		case IB_CQ_RAN_EMPTY:
			if (ib_cq_lane_idle(lane))
				return;
			break;
		case IB_CQ_RAN_SPENT:
		case IB_CQ_RAN_YIELD:
			lane->ctx->schedule(lane);
			return;
		case IB_CQ_RAN_DISPLACED:
			return;
		}
		/* While idle, the lane may have been scheduled, moved, and become idle again. */
		if (READ_ONCE(lane->runner) != runner) {
			lane->ctx->schedule(lane);
			return;
		}
		WRITE_ONCE(runner->poller, current);
		if (!ib_cq_pause(runner, true))
			return;
		WRITE_ONCE(runner->poller, NULL);
	}
}

static void ib_cq_bound_schedule(struct ib_cq_lane *lane)
{
	/* On this CPU; and what waits, but is not queued yet, cannot be moved. */
	preempt_disable();
	ib_cq_begin_waiting(lane, smp_processor_id());
	/*
	 * The item is not queued, but cancel_work() in ib_cq_bound_move(), on another CPU, makes it
	 * look queued for a moment.
	 */
	while (!queue_work(ib_comp_wq, &READ_ONCE(lane->runner)->work))
		cpu_relax();
	preempt_enable();
}

static void ib_cq_bound_start(struct ib_cq_runner *runner, int cpu)
{
	/* The lane is active: nobody schedules it meanwhile. */
	ib_cq_begin_waiting(runner->lane, cpu);
	/* If the CPU is offline, another one takes it. */
	queue_work_on(cpu, ib_comp_wq, &runner->work);
}

static bool ib_cq_bound_move(struct ib_cq_lane *lane, int cpu)
{
	/* If this cancels the item, nobody else runs the lane. */
	if (!work_pending(&lane->runner->work) || !cancel_work(&lane->runner->work))
		return false;
	ib_cq_end_waiting(lane);
	ib_cq_begin_waiting(lane, cpu);
	/*
	 * Another runner, because an item whose last run has not returned is queued on the CPU of
	 * that run.
	 */
	ib_cq_replace_runner(lane);
	queue_work_on(cpu, ib_comp_wq, &lane->runner->work);
	return true;
}

static void ib_cq_unbound_schedule(struct ib_cq_lane *lane)
{
	queue_work(ib_comp_unbound_wq, &READ_ONCE(lane->runner)->work);
}

static void ib_cq_unbound_start(struct ib_cq_runner *runner, int cpu)
{
	queue_work(ib_comp_unbound_wq, &runner->work);
}

const struct ib_cq_context ib_cq_contexts[IB_CQ_CONTEXTS] = {
	[IB_POLL_DIRECT] = {
		.name = "direct",
	},
	[IB_POLL_SOFTIRQ] = {
		.name = "softirq",
		.waiting = &ib_cq_softirq_waiting,
		.init = ib_cq_softirq_init,
		.schedule = ib_cq_softirq_schedule,
		.move = ib_cq_softirq_move,
		.exit = ib_cq_softirq_exit,
	},
	[IB_POLL_WORKQUEUE] = {
		.name = "workqueue",
		.may_sleep = true,
		.waiting = &ib_cq_work_waiting,
		.schedule = ib_cq_bound_schedule,
		.start = ib_cq_bound_start,
		.move = ib_cq_bound_move,
		.exit = ib_cq_runners_exit,
	},
	[IB_POLL_UNBOUND_WORKQUEUE] = {
		.name = "unbound",
		.may_sleep = true,
		.schedule = ib_cq_unbound_schedule,
		.start = ib_cq_unbound_start,
		.exit = ib_cq_runners_exit,
	},
	[IB_POLL_THREAD] = {
		.name = "thread",
		.may_sleep = true,
		.init = ib_cq_thread_init,
		.schedule = ib_cq_thread_schedule,
		.exit = ib_cq_thread_exit,
	},
};

/*
 * Returns the CPU that serves a vector: one that gets its interrupt, if the driver tells;
 * else the vectors are spread over all CPUs. It is always the same CPU while that is
 * online. @except is a CPU that is about to go offline, or -1.
 */
int ib_cq_vector_cpu(struct ib_device *dev, unsigned int vector, int except)
{
	const struct cpumask *mask = ib_get_vector_affinity(dev, vector);
	unsigned int cpu;

	if (!mask || cpumask_empty(mask)) {
		cpu = cpumask_nth(vector % num_possible_cpus(), cpu_possible_mask);
		mask = cpumask_of(cpu);
	}
	for_each_cpu_and(cpu, mask, cpu_online_mask) {
		if (cpu != except)
			return cpu;
	}
	return except < 0 ? cpumask_any(cpu_online_mask) : cpumask_any_but(cpu_online_mask, except);
}

static struct ib_cq_lane *ib_cq_lane_new(struct ib_device *dev, unsigned int vector,
					 enum ib_poll_context poll_ctx)
{
	struct ib_cq_lane *lane;
	int err;

	lane = kzalloc(sizeof(*lane), GFP_KERNEL);
	if (!lane)
		return ERR_PTR(-ENOMEM);
	lane->device = dev;
	lane->vector = vector;
	lane->ctx = &ib_cq_contexts[poll_ctx];
	init_llist_head(&lane->pending);
	ib_cq_ready_init(lane);
	/* A CQ of IB_POLL_DIRECT has no neighbours, and its lane is to be small. */
	if (poll_ctx != IB_POLL_DIRECT) {
		err = -ENOMEM;
		lane->ahead = kcalloc(IB_CQ_AHEAD, sizeof(*lane->ahead), GFP_KERNEL);
		if (!lane->ahead)
			goto err_free;
	}
	ib_cq_runners_init(lane);
	err = lane->ctx->init ? lane->ctx->init(lane) : 0;
	if (err)
		goto err_free;
	ib_cq_lane_list(lane);
	return lane;

err_free:
	kfree(lane->ahead);
	kfree(lane);
	return ERR_PTR(err);
}

static void ib_cq_lane_free(struct ib_cq_lane *lane)
{
	ib_cq_lane_unlist(lane);
	if (lane->ctx->exit)
		lane->ctx->exit(lane);
	/* It may have been scheduled in vain, and not have run since. */
	ib_cq_end_waiting(lane);
	kfree(lane->ahead);
	kfree(lane);
}

/* Returns the lane that polls the CQs of @vector in @poll_ctx, or an ERR_PTR. */
struct ib_cq_lane *ib_cq_get_lane(struct ib_device *dev, unsigned int vector,
				  enum ib_poll_context poll_ctx)
{
	struct ib_cq_vectors *vectors = dev->cq_vectors;
	struct ib_cq_lane *lane;
	int err;

	if (!vectors)
		return ERR_PTR(-ENODEV);
	if (vector >= vectors->nr)
		return ERR_PTR(-EINVAL);
	if (poll_ctx == IB_POLL_DIRECT)
		return ib_cq_lane_new(dev, vector, poll_ctx);

	cpus_read_lock();
	mutex_lock(&vectors->lock);
	lane = vectors->lane[vector][poll_ctx];
	if (!lane) {
		lane = ib_cq_lane_new(dev, vector, poll_ctx);
		if (!IS_ERR(lane))
			vectors->lane[vector][poll_ctx] = lane;
	}
	if (!IS_ERR(lane)) {
		err = ib_cq_add_runner(lane, atomic_read(&lane->users) + 1);
		if (err)
			lane = ERR_PTR(err);
		else
			atomic_inc(&lane->users);
	}
	mutex_unlock(&vectors->lock);
	cpus_read_unlock();
	return lane;
}

/* Called when a CQ is freed; undoes ib_cq_get_lane(). */
void ib_cq_put_lane(struct ib_cq_lane *lane)
{
	if (lane->ctx == &ib_cq_contexts[IB_POLL_DIRECT])
		ib_cq_lane_free(lane);
	else
		atomic_dec(&lane->users);
}

/* Before the device becomes visible. Returns 0 or -ENOMEM. */
int ib_cq_device_init(struct ib_device *dev)
{
	unsigned int nr = max(dev->num_comp_vectors, 1);
	struct ib_cq_vectors *vectors;
	int err;

	err = ib_cq_pool_init(dev);
	if (err)
		return err;
	vectors = kzalloc(struct_size(vectors, lane, nr), GFP_KERNEL);
	if (!vectors) {
		ib_cq_pool_cleanup(dev);
		return -ENOMEM;
	}
	mutex_init(&vectors->lock);
	vectors->device = dev;
	vectors->nr = nr;
	dev->cq_vectors = vectors;
	ib_cq_hotplug_add(vectors);
	return 0;
}

/* Returns false if a CQ that was left behind still needs the lane. */
static bool ib_cq_lane_cleanup(struct ib_cq_vectors *vectors, unsigned int vector,
			       enum ib_poll_context ctx)
{
	struct ib_cq_lane *lane = vectors->lane[vector][ctx];

	if (!lane)
		return true;
	if (atomic_read(&lane->users)) {
		ibdev_warn(vectors->device, "%d CQs of vector %u (%s) were not freed: kverbs cannot be unloaded any more\n",
			   atomic_read(&lane->users), vector, lane->ctx->name);
		/* The context that runs the lane still needs this module's code. */
		__module_get(THIS_MODULE);
		return false;
	}
	ib_cq_lane_free(lane);
	return true;
}

/* Call this after the clients and their CQs have gone. */
void ib_cq_device_cleanup(struct ib_device *dev)
{
	struct ib_cq_vectors *vectors = dev->cq_vectors;
	unsigned int vector, ctx;
	bool all = true;

	ib_cq_pool_cleanup(dev);
	if (!vectors)
		return;
	ib_cq_hotplug_del(vectors);
	for (vector = 0; vector < vectors->nr; vector++) {
		for (ctx = 0; ctx < IB_CQ_CONTEXTS; ctx++)
			all &= ib_cq_lane_cleanup(vectors, vector, ctx);
	}
	dev->cq_vectors = NULL;
	if (!all)
		return;
	mutex_destroy(&vectors->lock);
	kfree(vectors);
}

int ib_cq_init(void)
{
	int err = -ENOMEM;

	/* Each done() that sleeps keeps an item active. */
	ib_comp_wq = alloc_workqueue("kverbs-comp", WQ_HIGHPRI | WQ_MEM_RECLAIM | WQ_SYSFS,
				     WQ_MAX_ACTIVE);
	if (!ib_comp_wq)
		return err;
	ib_comp_unbound_wq = alloc_workqueue("kverbs-comp-unbound",
					     WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM | WQ_SYSFS,
					     WQ_UNBOUND_MAX_ACTIVE);
	if (!ib_comp_unbound_wq)
		goto err_bound;
	err = ib_cq_hotplug_init();
	if (err)
		goto err_unbound;
	return 0;

err_unbound:
	destroy_workqueue(ib_comp_unbound_wq);
err_bound:
	destroy_workqueue(ib_comp_wq);
	return err;
}

void ib_cq_exit(void)
{
	ib_cq_hotplug_exit();
	destroy_workqueue(ib_comp_unbound_wq);
	destroy_workqueue(ib_comp_wq);
}
