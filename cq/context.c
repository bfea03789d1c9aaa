// SPDX-License-Identifier: GPL-2.0-only
/*
 * Polling contexts: where the completions of a CQ of ib_alloc_cq() are polled.
 *
 * Each context is a struct ib_cq_context_ops. Scheduling a CQ that is scheduled
 * does nothing, and none of the kernel facilities used here runs one work on two
 * CPUs at a time: so `done` never runs concurrently for one CQ.
 *
 *   IB_POLL_DIRECT			the consumer, by ib_process_cq_direct()
 *   IB_POLL_SOFTIRQ			irq_poll, in softirq on the CPU that was notified
 *   IB_POLL_WORKQUEUE			a bound work queue, on that CPU
 *   IB_POLL_UNBOUND_WORKQUEUE		an unbound one, wherever the scheduler likes
 *   IB_POLL_THREAD			a kernel thread of the completion vector,
 *					pinned to the vector's CPU
 *
 * Vector threads are made when the first CQ of the vector asks for one, and stay
 * until the device is unregistered. ib_cq_vectors.lock guards their making.
 */
#include <linux/cpu.h>
#include <linux/irq_poll.h>
#include <linux/kthread.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "cq.h"

/*
 * Completions that one round may handle before others get their turn: of
 * softirq work, and of threads, which may be preempted besides.
 */
#define IB_CQ_BUDGET_SOFTIRQ	256
#define IB_CQ_BUDGET_THREAD	1024

/**
 * struct ib_cq_vectors - the vector threads of a device
 * @lock: guards the making of threads
 * @nr: number of vectors
 * @workers: their threads, or NULL
 */
struct ib_cq_vectors {
	struct mutex lock;
	unsigned int nr;
	struct kthread_worker *workers[];
};

static struct workqueue_struct *ib_comp_wq;
static struct workqueue_struct *ib_comp_unbound_wq;

static void ib_cq_schedule_direct(struct ib_cq *cq)
{
	/* It was never armed. */
	ibdev_warn_ratelimited(cq->device, "completion event for a CQ that is polled directly\n");
}

static int ib_cq_softirq(struct irq_poll *iop, int budget)
{
	struct ib_cq *cq = container_of(iop, struct ib_cq, iop);
	int completed;

	completed = ib_cq_poll(cq, budget, cq->wc, IB_CQ_BATCH);
	if (completed >= budget)
		return budget; /* irq_poll keeps it scheduled */
	irq_poll_complete(iop);
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0)
		irq_poll_sched(iop);
	return completed;
}

static int ib_cq_init_softirq(struct ib_cq *cq)
{
	irq_poll_init(&cq->iop, IB_CQ_BUDGET_SOFTIRQ, ib_cq_softirq);
	return 0;
}

static void ib_cq_schedule_softirq(struct ib_cq *cq)
{
	irq_poll_sched(&cq->iop);
}

static void ib_cq_stop_softirq(struct ib_cq *cq)
{
	irq_poll_disable(&cq->iop);
	/*
	 * It stays scheduled, so nothing polls any more; but the last round may
	 * still be between irq_poll_complete() and its return. Softirqs are RCU
	 * read-side sections.
	 */
	synchronize_rcu();
}

static void ib_cq_schedule_work(struct ib_cq *cq)
{
	queue_work(cq->comp_wq, &cq->work);
}

static void ib_cq_work(struct work_struct *work)
{
	struct ib_cq *cq = container_of(work, struct ib_cq, work);

	if (ib_cq_poll_and_arm(cq, IB_CQ_BUDGET_THREAD))
		ib_cq_schedule_work(cq);
}

static int ib_cq_init_bound_work(struct ib_cq *cq)
{
	INIT_WORK(&cq->work, ib_cq_work);
	cq->comp_wq = ib_comp_wq;
	return 0;
}

static int ib_cq_init_unbound_work(struct ib_cq *cq)
{
	INIT_WORK(&cq->work, ib_cq_work);
	cq->comp_wq = ib_comp_unbound_wq;
	return 0;
}

static void ib_cq_stop_work(struct ib_cq *cq)
{
	cancel_work_sync(&cq->work);
}

static int ib_cq_vector_cpu(struct ib_device *dev, unsigned int vector)
{
	const struct cpumask *mask = ib_get_vector_affinity(dev, vector);
	int cpu;

	if (mask) {
		cpu = cpumask_any_and(mask, cpu_online_mask);
		if (cpu < nr_cpu_ids)
			return cpu;
	}
	return cpumask_nth(vector % num_online_cpus(), cpu_online_mask);
}

/* The thread of a vector, made if need be. */
static struct kthread_worker *ib_cq_get_worker(struct ib_device *dev, unsigned int vector)
{
	struct ib_cq_vectors *vectors = dev->cq_vectors;
	struct kthread_worker *worker;

	mutex_lock(&vectors->lock);
	worker = vectors->workers[vector];
	if (!worker) {
		cpus_read_lock();
		worker = kthread_create_worker_on_cpu(ib_cq_vector_cpu(dev, vector), 0,
						      "kvcq-%s/%u", dev_name(&dev->dev), vector);
		cpus_read_unlock();
		if (!IS_ERR(worker))
			vectors->workers[vector] = worker;
	}
	mutex_unlock(&vectors->lock);
	return worker;
}

static void ib_cq_schedule_thread(struct ib_cq *cq)
{
	struct ib_cq_vectors *vectors = cq->device->cq_vectors;

	kthread_queue_work(vectors->workers[cq->comp_vector], &cq->kwork);
}

static void ib_cq_kthread_work(struct kthread_work *work)
{
	struct ib_cq *cq = container_of(work, struct ib_cq, kwork);

	if (ib_cq_poll_and_arm(cq, IB_CQ_BUDGET_THREAD)) {
		ib_cq_schedule_thread(cq);
		cond_resched();
	}
}

static int ib_cq_init_thread(struct ib_cq *cq)
{
	kthread_init_work(&cq->kwork, ib_cq_kthread_work);
	return PTR_ERR_OR_ZERO(ib_cq_get_worker(cq->device, cq->comp_vector));
}

static void ib_cq_stop_thread(struct ib_cq *cq)
{
	kthread_cancel_work_sync(&cq->kwork);
}

static const struct ib_cq_context_ops ib_cq_contexts[] = {
	[IB_POLL_DIRECT] = {
		.name = "direct",
		.schedule = ib_cq_schedule_direct,
	},
	[IB_POLL_SOFTIRQ] = {
		.name = "softirq",
		.armed = true,
		.init = ib_cq_init_softirq,
		.schedule = ib_cq_schedule_softirq,
		.stop = ib_cq_stop_softirq,
	},
	[IB_POLL_WORKQUEUE] = {
		.name = "workqueue",
		.armed = true,
		.init = ib_cq_init_bound_work,
		.schedule = ib_cq_schedule_work,
		.stop = ib_cq_stop_work,
	},
	[IB_POLL_UNBOUND_WORKQUEUE] = {
		.name = "unbound",
		.armed = true,
		.init = ib_cq_init_unbound_work,
		.schedule = ib_cq_schedule_work,
		.stop = ib_cq_stop_work,
	},
	[IB_POLL_THREAD] = {
		.name = "thread",
		.armed = true,
		.init = ib_cq_init_thread,
		.schedule = ib_cq_schedule_thread,
		.stop = ib_cq_stop_thread,
	},
};

/* The polling context by its number, or NULL. */
const struct ib_cq_context_ops *ib_cq_context(enum ib_poll_context poll_ctx)
{
	if ((unsigned int)poll_ctx >= ARRAY_SIZE(ib_cq_contexts))
		return NULL;
	return &ib_cq_contexts[poll_ctx];
}

/* Before the device becomes visible. Returns 0 or -ENOMEM. */
int ib_cq_device_init(struct ib_device *dev)
{
	unsigned int nr = max(dev->num_comp_vectors, 1);
	struct ib_cq_vectors *vectors;

	vectors = kzalloc(struct_size(vectors, workers, nr), GFP_KERNEL);
	if (!vectors)
		return -ENOMEM;
	mutex_init(&vectors->lock);
	vectors->nr = nr;
	dev->cq_vectors = vectors;
	return 0;
}

/* After the last CQ of the device is gone. */
void ib_cq_device_cleanup(struct ib_device *dev)
{
	struct ib_cq_vectors *vectors = dev->cq_vectors;
	unsigned int i;

	if (!vectors)
		return;
	for (i = 0; i < vectors->nr; i++) {
		if (vectors->workers[i])
			kthread_destroy_worker(vectors->workers[i]);
	}
	kfree(vectors);
	dev->cq_vectors = NULL;
}

int ib_cq_init(void)
{
	ib_comp_wq = alloc_workqueue("kverbs-comp", WQ_HIGHPRI | WQ_MEM_RECLAIM | WQ_SYSFS, 0);
	if (!ib_comp_wq)
		return -ENOMEM;
	ib_comp_unbound_wq = alloc_workqueue("kverbs-comp-unbound",
					     WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM | WQ_SYSFS,
					     WQ_UNBOUND_MAX_ACTIVE);
	if (!ib_comp_unbound_wq) {
		destroy_workqueue(ib_comp_wq);
		return -ENOMEM;
	}
	return 0;
}

void ib_cq_exit(void)
{
	destroy_workqueue(ib_comp_unbound_wq);
	destroy_workqueue(ib_comp_wq);
}
