// SPDX-License-Identifier: GPL-2.0-only
/*
 * IB_POLL_THREAD: a kernel thread for each completion vector in use, named
 * kvcq-<device>/<vector>, on the CPU of the vector (ib_cq_vector_cpu()).
 *
 * When its lane has nothing to do, the thread spins for a moment before it sleeps: for
 * twice the mean time that the lane was idle lately. If that is more than cq_spin_us, or
 * another task wants the CPU, it sleeps at once. The CQs are armed while it spins, so a
 * completion costs its producer the same, but finds the thread awake.
 *
 * A thread is the only one of its vector: a done() that sleeps stops the CQs beside its own.
 *
 * When its CPU goes offline the thread is moved to another one, and back when the
 * CPU returns. vectors->lock guards where threads are; it is taken in the
 * callbacks of CPU hotplug, hence within cpus_read_lock() everywhere else.
 */
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/stat.h>

#include "../core/contract/device_priv.h"
#include "cq.h"

/* The weight of the newest idle time in the mean is one part in this many. */
#define IB_CQ_GAP_PARTS	8

static unsigned int cq_spin_us = 20;
module_param(cq_spin_us, uint, 0644);
MODULE_PARM_DESC(cq_spin_us,
		 "Max time in us that the thread of a completion vector spins before it sleeps; 0: never spin (default: 20)");

static int ib_cq_hotplug_state;

/* Whether the lane was scheduled. acquire: CQs that became pending before that are seen. */
static bool ib_cq_thread_due(const struct ib_cq_lane *lane)
{
	return atomic_read_acquire(&lane->active) || kthread_should_stop();
}

static bool ib_cq_thread_spin(struct ib_cq_lane *lane, u64 since)
{
	u64 limit = (u64)READ_ONCE(cq_spin_us) * NSEC_PER_USEC;
	u64 spin = 2 * lane->thread.gap;

	if (!spin || spin > limit || !single_task_running())
		return false;
	lane->stats.spins++;
	do {
		if (ib_cq_thread_due(lane)) {
			lane->stats.spin_hits++;
			return true;
		}
		cpu_relax();
	} while (!need_resched() && local_clock() - since < spin);
	return false;
}

static void ib_cq_thread_sleep(struct ib_cq_lane *lane)
{
	lane->stats.sleeps++;
	WRITE_ONCE(lane->thread.asleep, true);
	for (;;) {
		/* Full barrier: pairs with the xchg() of @active before schedule(). */
		set_current_state(TASK_IDLE);
		if (ib_cq_thread_due(lane))
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	WRITE_ONCE(lane->thread.asleep, false);
}

static void ib_cq_thread_wait(struct ib_cq_lane *lane)
{
	u64 limit = (u64)READ_ONCE(cq_spin_us) * NSEC_PER_USEC;
	u64 since = local_clock();
	u64 gap;

	if (!ib_cq_thread_spin(lane, since))
		ib_cq_thread_sleep(lane);
	/* Limited, so that a long idle time counts, but is not remembered for long. */
	gap = min(local_clock() - since, 4 * limit);
	lane->thread.gap += (s64)(gap - lane->thread.gap) / IB_CQ_GAP_PARTS;
}

static int ib_cq_thread(void *data)
{
	struct ib_cq_lane *lane = data;

	while (!kthread_should_stop()) {
		if (!ib_cq_thread_due(lane)) {
			ib_cq_thread_wait(lane);
			continue;
		}
		while (ib_cq_lane_run(lane) != IB_CQ_RAN_EMPTY)
			cond_resched();
		cond_resched();
		/* Unless the lane is idle now, it is due, and the loop runs it again. */
		ib_cq_lane_idle(lane);
	}
	return 0;
}

/* The caller holds cpus_read_lock() and the lock of the vectors. */
int ib_cq_thread_init(struct ib_cq_lane *lane)
{
	int cpu = ib_cq_vector_cpu(lane->device, lane->vector, -1);
	char name[IB_DEVICE_NAME_MAX];
	struct task_struct *task;

	ib_copy_device_name(name, lane->device);
	task = kthread_create_on_node(ib_cq_thread, lane, cpu_to_node(cpu), "kvcq-%s/%u", name,
				      lane->vector);
	if (IS_ERR(task))
		return PTR_ERR(task);
	kthread_bind(task, cpu);
	set_user_nice(task, MIN_NICE);
	lane->thread.task = task;
	lane->thread.cpu = cpu;
	wake_up_process(task);
	return 0;
}

void ib_cq_thread_schedule(struct ib_cq_lane *lane)
{
	if (READ_ONCE(lane->thread.asleep))
		wake_up_process(lane->thread.task);
}

void ib_cq_thread_exit(struct ib_cq_lane *lane)
{
	kthread_stop(lane->thread.task);
}

static void ib_cq_move_threads(struct ib_cq_vectors *vectors, int except)
{
	struct ib_cq_lane *lane;
	unsigned int vector;
	int cpu;

	mutex_lock(&vectors->lock);
	for (vector = 0; vector < vectors->nr; vector++) {
		lane = vectors->lane[vector][IB_POLL_THREAD];
		if (!lane)
			continue;
		cpu = ib_cq_vector_cpu(vectors->device, vector, except);
		if (cpu >= nr_cpu_ids || cpu == lane->thread.cpu)
			continue;
		set_cpus_allowed_ptr(lane->thread.task, cpumask_of(cpu));
		lane->thread.cpu = cpu;
	}
	mutex_unlock(&vectors->lock);
}

static int ib_cq_cpu_online(unsigned int cpu, struct hlist_node *node)
{
	ib_cq_move_threads(hlist_entry(node, struct ib_cq_vectors, hotplug), -1);
	return 0;
}

static int ib_cq_cpu_offline(unsigned int cpu, struct hlist_node *node)
{
	ib_cq_move_threads(hlist_entry(node, struct ib_cq_vectors, hotplug), cpu);
	return 0;
}

void ib_cq_hotplug_add(struct ib_cq_vectors *vectors)
{
	cpuhp_state_add_instance_nocalls(ib_cq_hotplug_state, &vectors->hotplug);
}

void ib_cq_hotplug_del(struct ib_cq_vectors *vectors)
{
	cpuhp_state_remove_instance_nocalls(ib_cq_hotplug_state, &vectors->hotplug);
}

int ib_cq_hotplug_init(void)
{
	int state;

	state = cpuhp_setup_state_multi(CPUHP_AP_ONLINE_DYN, "rdma/kverbs:online",
					ib_cq_cpu_online, ib_cq_cpu_offline);
	if (state < 0)
		return state;
	ib_cq_hotplug_state = state;
	return 0;
}

void ib_cq_hotplug_exit(void)
{
	cpuhp_remove_multi_state(ib_cq_hotplug_state);
}
