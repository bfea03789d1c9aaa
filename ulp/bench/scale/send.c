// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages between random pairs of queue pairs, one at a time on each CPU. Pairs and CQs
 * are dealt out to the CPUs by turns: CPU n has those whose number leaves the remainder n.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/prandom.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/topology.h>

#include "scale.h"

#define SCALE_SEED	1
#define SCALE_TIMEOUT	(10 * HZ)	/* limit for a message */

/**
 * struct scale_sender - what one CPU does
 * @run: the run
 * @index: which one it is, from 0
 * @qps: queue pairs that it has
 * @sge: the source and the destination of its messages
 * @random: chooses pairs
 * @task: its thread, or NULL if it is the caller
 * @go: completed when all threads exist
 * @over: completed by each thread at its end
 * @away: senders that have not warmed up yet
 * @start: when it began, in nanoseconds
 * @end: when it was done
 */
struct scale_sender {
	struct scale_run *run;
	u32 index;
	u32 qps;
	struct ib_sge sge[2];
	struct rnd_state random;
	struct task_struct *task;
	struct completion *go;
	struct completion *over;
	atomic_t *away;
	u64 start;
	u64 end;
};

/* Waits for both completions of a message. */
static int scale_poll(struct ib_cq *cq)
{
	unsigned long end = jiffies + SCALE_TIMEOUT;
	struct ib_wc wc[2];
	int i, n, left = 2;

	while (left) {
		n = ib_poll_cq(cq, left, wc);
		if (n < 0)
			return n;
		for (i = 0; i < n; i++) {
			if (likely(wc[i].status == IB_WC_SUCCESS))
				continue;
			pr_err("work request failed: %s\n", ib_wc_status_msg(wc[i].status));
			return -EIO;
		}
		left -= n;
		if (left && time_after(jiffies, end))
			return -ETIMEDOUT;
		if (left)
			cond_resched();
	}
	return 0;
}

/* @mine: queue pair that sends, by its place among those of the CPU. */
static int scale_message(struct scale_sender *s, u32 mine)
{
	struct ib_recv_wr recv = { .sg_list = &s->sge[1], .num_sge = 1 };
	struct ib_send_wr send = {
		.sg_list = &s->sge[0],
		.num_sge = 1,
		.opcode = IB_WR_SEND,
	};
	u32 pair = s->index + mine / 2 * s->run->p.cpus;
	u32 from = 2 * pair + mine % 2;
	int ret;

	ret = ib_post_recv(s->run->qps[from ^ 1], &recv, NULL);
	if (!ret)
		ret = ib_post_send(s->run->qps[from], &send, NULL);
	return ret ?: scale_poll(scale_cq(s->run, pair));
}

static int scale_messages(struct scale_sender *s, u32 messages)
{
	int ret = 0;
	u32 i, mine;

	for (i = 0; !ret && i < messages; i++) {
		mine = ((u64)prandom_u32_state(&s->random) * s->qps) >> 32;
		ret = scale_message(s, mine);
		if (need_resched())
			cond_resched();
	}
	return ret;
}

/* The first message of a queue pair finds out what later ones need not. */
static int scale_warm_up(struct scale_sender *s)
{
	int ret = 0;
	u32 i;

	for (i = 0; !ret && i < s->qps; i++) {
		ret = scale_message(s, i);
		if (need_resched())
			cond_resched();
	}
	return ret ?: scale_messages(s, s->run->p.messages / 8 + 1);
}

static int scale_sender_work(struct scale_sender *s)
{
	int ret;

	ret = scale_warm_up(s);
	/* Also after an error, which must not stop the others. */
	atomic_dec(s->away);
	while (atomic_read(s->away)) {
		cpu_relax();
		cond_resched();
	}
	s->start = ktime_get_ns();
	if (!ret)
		ret = scale_messages(s, s->run->p.messages);
	s->end = ktime_get_ns();
	return ret;
}

static int scale_thread(void *arg)
{
	struct scale_sender *s = arg;
	int ret;

	wait_for_completion(s->go);
	ret = scale_sender_work(s);
	complete(s->over);
	return ret;
}

static void scale_sender_init(struct scale_sender *s, struct scale_run *run, u32 index)
{
	u32 i;

	s->run = run;
	s->index = index;
	s->qps = run->nr / run->p.cpus;
	for (i = 0; i < 2; i++) {
		s->sge[i].addr = run->dma + (2 * index + i) * (u64)run->p.size;
		s->sge[i].length = run->p.size;
		s->sge[i].lkey = run->pd->local_dma_lkey;
	}
	prandom_seed_state(&s->random, SCALE_SEED + index);
}

static int scale_sender_start(struct scale_sender *s, unsigned int cpu)
{
	struct task_struct *task;

	/* One has gone offline since they were counted. */
	if (cpu >= nr_cpu_ids)
		return -ENXIO;
	task = kthread_create_on_node(scale_thread, s, cpu_to_node(cpu), KBUILD_MODNAME "/%u",
				      cpu);
	if (IS_ERR(task))
		return PTR_ERR(task);
	s->task = get_task_struct(task);
	kthread_bind(task, cpu);
	wake_up_process(task);
	return 0;
}

static int scale_sender_end(struct scale_sender *s)
{
	int ret = kthread_stop(s->task);

	put_task_struct(s->task);
	return ret;
}

/* @senders: one for each CPU. The messages of all of them begin together. */
static int scale_threads(struct scale_run *run, struct scale_sender *senders, atomic_t *away)
{
	unsigned int cpu = cpumask_first(cpu_online_mask);
	DECLARE_COMPLETION_ONSTACK(over);
	DECLARE_COMPLETION_ONSTACK(go);
	u32 i, made = 0;
	int ret = 0, ended;

	for (; made < run->p.cpus; made++) {
		senders[made].go = &go;
		senders[made].over = &over;
		ret = scale_sender_start(&senders[made], cpu);
		if (ret)
			break;
		cpu = cpumask_next(cpu, cpu_online_mask);
	}
	atomic_set(away, made);
	complete_all(&go);
	/* A thread that is stopped before it has run once does nothing. */
	for (i = 0; i < made; i++)
		wait_for_completion(&over);
	for (i = 0; i < made; i++) {
		ended = scale_sender_end(&senders[i]);
		ret = ret ?: ended;
	}
	return ret;
}

/**
 * scale_send - send messages between random pairs of the queue pairs that exist
 * @run: the run; each CPU has at least one pair
 * @ns: set to the time of all CPUs together, divided by all messages
 *
 * One CPU is the caller's; several are those that are online first.
 *
 * Context: may sleep, for as long as it takes.
 * Return: 0; -ENXIO with fewer CPUs than wanted; -EIO after a completion in error,
 * -ETIMEDOUT without a completion, -ENOMEM, or the error of the verbs layer.
 */
int scale_send(struct scale_run *run, u64 *ns)
{
	u64 start = U64_MAX, end = 0;
	struct scale_sender *senders;
	u32 i, cpus = run->p.cpus;
	atomic_t away = ATOMIC_INIT(1);
	int ret;

	if (cpus > num_online_cpus())
		return -ENXIO;
	senders = kcalloc(cpus, sizeof(*senders), GFP_KERNEL);
	if (!senders)
		return -ENOMEM;
	for (i = 0; i < cpus; i++) {
		scale_sender_init(&senders[i], run, i);
		senders[i].away = &away;
	}
	ret = cpus > 1 ? scale_threads(run, senders, &away) : scale_sender_work(senders);
	for (i = 0; i < cpus; i++) {
		start = min(start, senders[i].start);
		end = max(end, senders[i].end);
	}
	*ns = div64_u64(end - start, (u64)cpus * run->p.messages);
	kfree(senders);
	return ret;
}
