// SPDX-License-Identifier: GPL-2.0-only
/*
 * One run: check the parameters, set up, start every pair, wait for the end,
 * tear down. run->err is set once, with cmpxchg(), by the first event that
 * stops the run (an error completion, a removed device, a signal, the time
 * limit); from then on nothing is posted and the waiter wakes up.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "mark.h"
#include "pingpong.h"

#define PP_MAX_MEM	(256ULL << 20)	/* bytes of one side of a run */
#define PP_MAX_BATCH	16U	/* larger ones save next to nothing */
#define PP_MAX_TIMEOUT	3600
#define PP_POLL_BUDGET	64	/* completions of a CQ before the next CQ */

static const char * const pp_ops[] = {
	[PP_SEND] = "send",
	[PP_SEND_IMM] = "send_imm",
	[PP_WRITE] = "write",
	[PP_WRITE_IMM] = "write_imm",
	[PP_READ] = "read",
	[PP_FETCH_ADD] = "fetch_add",
	[PP_MEMCPY] = "memcpy",
};

static const struct {
	const char *name;
	enum ib_poll_context ctx;
} pp_contexts[] = {
	{ "direct", IB_POLL_DIRECT },
	{ "softirq", IB_POLL_SOFTIRQ },
#ifdef IB_POLL_THREAD
	{ "thread", IB_POLL_THREAD },
#endif
	{ "workqueue", IB_POLL_WORKQUEUE },
	{ "unbound", IB_POLL_UNBOUND_WORKQUEUE },
};

static int pp_find_ctx(struct pp_run *run)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(pp_contexts); i++)
		if (!strcmp(run->p.ctx, pp_contexts[i].name)) {
			run->ctx = pp_contexts[i].ctx;
			return 0;
		}
	pr_err("ctx=%s: unknown context\n", run->p.ctx);
	return -EINVAL;
}

static int pp_find_op(struct pp_run *run)
{
	int op = match_string(pp_ops, ARRAY_SIZE(pp_ops), run->p.op);

	if (op < 0) {
		pr_err("op=%s: unknown operation\n", run->p.op);
		return -EINVAL;
	}
	run->op = op;
	run->two_sided = op == PP_SEND || op == PP_SEND_IMM ||
			 op == PP_WRITE_IMM;
	return 0;
}

static int pp_range(const char *key, u32 val, u32 low, u32 high)
{
	if (val >= low && val <= high)
		return 0;
	pr_err("%s=%u: must be %u to %u\n", key, val, low, high);
	return -ERANGE;
}

static int pp_ranges_check(const struct pp_params *p)
{
	return pp_range("size", p->size, 1, PP_MAX_SIZE) ?:
	       pp_range("window", p->window, 1, PP_MAX_WINDOW) ?:
	       pp_range("iters", p->iters, 1, INT_MAX) ?:
	       pp_range("sges", p->sges, 1, min(PP_MAX_SGES, p->size)) ?:
	       pp_range("pairs", p->pairs, 1, PP_MAX_PAIRS) ?:
	       pp_range("sig", p->sig, 1, p->window) ?:
	       pp_range("batch", p->batch, 0, p->window) ?:
	       pp_range("cpus", p->cpus, 0, num_online_cpus()) ?:
	       pp_range("timeout", p->timeout, 1, PP_MAX_TIMEOUT);
}

/* Checks what an operation requires of its messages. */
static int pp_shape_check(const struct pp_run *run)
{
	if (run->op == PP_FETCH_ADD &&
	    pp_range("size", run->p.size, sizeof(u64), sizeof(u64)))
		return -ERANGE;
	if (run->op == PP_FETCH_ADD || run->op == PP_MEMCPY)
		return pp_range("sges", run->p.sges, 1, 1);
	return 0;
}

/* One request a call, and nothing but that. */
static int pp_plain_shape(const struct pp_run *run)
{
	const struct pp_params *p = &run->p;

	if (!p->plain)
		return pp_range("srq", p->srq, 0, 0);
	if (run->op != PP_SEND && run->op != PP_WRITE && run->op != PP_READ) {
		pr_err("op=%s: with plain=1, only send, write and read are supported\n", p->op);
		return -EINVAL;
	}
	return pp_range("plain", p->plain, 1, 1) ?:
	       pp_range("srq", p->srq, 0, run->op == PP_SEND) ?:
	       pp_range("verify", p->verify, 0, 0) ?:
	       pp_range("lat", p->lat, 0, 0) ?:
	       pp_range("sig", p->sig, 1, 1) ?:
	       pp_range("sges", p->sges, 1, 1) ?:
	       pp_range("batch", p->batch, 0, 1) ?:
	       pp_range("iters", p->iters, p->window, INT_MAX);
}

/* Memory for how many messages. Twice the window, so that requests can be recycled in batches. */
static u32 pp_slots(const struct pp_run *run)
{
	if (!run->two_sided)
		return run->p.window;
	return run->p.plain ? plain_receives(run->p.window) : 2 * run->p.window;
}

/*
 * A batch that is waited for while unsignaled messages hold the rest of the
 * window would wait forever: keep room for both.
 */
static void pp_batch_choose(struct pp_params *p)
{
	u32 batch = p->batch ?: clamp(p->window / 4, 1U, PP_MAX_BATCH);

	p->batch = min(batch, p->window - p->sig + 1);
}

static int pp_prepare(struct pp_run *run)
{
	struct pp_params *p = &run->p;
	int ret;

	ret = pp_ranges_check(p) ?: pp_find_op(run) ?: pp_find_ctx(run) ?:
	      pp_shape_check(run) ?: pp_plain_shape(run);
	if (ret)
		return ret;
	if (p->plain)
		p->batch = 1;
	pp_batch_choose(p);
	run->slots = pp_slots(run);
	pp_layout_init(&run->linear, p->size, 1);
	pp_layout_init(&run->scattered, p->size, p->sges);
	if ((u64)run->scattered.stride * run->slots * p->pairs > PP_MAX_MEM) {
		pr_err("size * window * pairs exceeds %llu bytes\n",
		       PP_MAX_MEM);
		return -ERANGE;
	}
	run->touch = p->verify || p->lat || p->sig > 1 ||
		     run->op == PP_SEND_IMM || run->op == PP_WRITE_IMM;
	run->fill_layout = run->op == PP_READ ? &run->linear : &run->scattered;
	run->check_layout = run->op == PP_WRITE || run->op == PP_WRITE_IMM ?
			    &run->linear : &run->scattered;
	init_completion(&run->done);
	atomic_set(&run->busy, p->pairs * (run->two_sided ? 2 : 1));
	return 0;
}

static void pp_devices_assign(struct pp_run *run)
{
	bool read = run->op == PP_READ || run->op == PP_FETCH_ADD;

	run->side[PP_INITIATOR].dev = run->side[PP_INITIATOR].pdev->ibdev;
	run->side[PP_INITIATOR].port = run->p.iport;
	run->side[PP_TARGET].dev = run->side[PP_TARGET].pdev->ibdev;
	run->side[PP_TARGET].port = run->p.tport;
	run->fill_dev = run->side[read ? PP_TARGET : PP_INITIATOR].dev;
	run->check_dev = run->side[read ? PP_INITIATOR : PP_TARGET].dev;
}

/**
 * pp_run_stop - end a run before all its messages are done
 * @run: the run
 * @err: negative errno; only the first one counts
 *
 * Context: any.
 */
void pp_run_stop(struct pp_run *run, int err)
{
	cmpxchg(&run->err, 0, err);
	complete_all(&run->done);
}

/**
 * pp_run_first_report - check whether an error may be printed
 * @run: the run
 * @kind: PP_SAID_DATA or PP_SAID_STATUS
 *
 * Context: any.
 * Return: true once per run and kind.
 */
bool pp_run_first_report(struct pp_run *run, int kind)
{
	return !(atomic_fetch_or(kind, &run->reported) & kind);
}

static u64 pp_progress(const struct pp_run *run)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < run->p.pairs; i++)
		sum += (u64)READ_ONCE(run->pairs[i].completed) +
		       READ_ONCE(run->pairs[i].received) +
		       READ_ONCE(run->pairs[i].plain.sent) +
		       READ_ONCE(run->pairs[i].plain.received);
	return sum;
}

static void pp_timed_out(struct pp_run *run)
{
	u64 all = (u64)run->p.iters * run->p.pairs * (run->two_sided ? 2 : 1);

	if (pp_run_first_report(run, PP_SAID_STATUS))
		pr_err("no completion for %u s, %llu of %llu messages done\n",
		       run->p.timeout, pp_progress(run), all);
	pp_run_stop(run, -ETIMEDOUT);
}

static void pp_wait_all(struct pp_run *run)
{
	unsigned long limit = run->p.timeout * HZ;
	u64 before, now = 0;
	long left;

	do {
		before = now;
		left = wait_for_completion_killable_timeout(&run->done, limit);
		now = pp_progress(run);
	} while (!left && now != before);

	if (left < 0)
		pp_run_stop(run, -EINTR);
	else if (!left)
		pp_timed_out(run);
}

static int pp_poll_once(struct pp_run *run)
{
	int n = 0;
	u32 i, k;

	for (i = 0; i < run->p.pairs; i++)
		for (k = 0; k < PP_SIDES; k++)
			n += ib_process_cq_direct(run->pairs[i].end[k].cq,
						  PP_POLL_BUDGET);
	return n;
}

static void pp_poll_all(struct pp_run *run)
{
	unsigned long limit = jiffies + run->p.timeout * HZ;

	while (atomic_read(&run->busy) && !READ_ONCE(run->err)) {
		if (pp_poll_once(run))
			limit = jiffies + run->p.timeout * HZ;
		else if (time_after(jiffies, limit))
			pp_timed_out(run);
		else if (fatal_signal_pending(current))
			pp_run_stop(run, -EINTR);
		cond_resched();
	}
}

static void pp_start_pair(struct pp_pair *pair)
{
	if (pair->run->op == PP_MEMCPY)
		pp_traffic_copy(pair);
	else
		pp_traffic_start(pair);
}

/* A pair that a certain CPU is to start. */
struct pp_start {
	struct work_struct work;
	struct pp_pair *pair;
};

static void pp_start_work(struct work_struct *work)
{
	pp_start_pair(container_of(work, struct pp_start, work)->pair);
}

/*
 * No CPU goes offline between its choice and the queueing; if it does later, another one takes
 * the work over. So the lock need not be held for as long as the pair takes, which is the whole
 * run with op=memcpy. Returns 0, or -ENXIO if there are not that many CPUs any more.
 */
static int pp_start_on(struct pp_pair *pair, u32 nth)
{
	struct pp_start start = { .pair = pair };
	unsigned int cpu;

	INIT_WORK_ONSTACK(&start.work, pp_start_work);
	cpus_read_lock();
	cpu = cpumask_nth(nth, cpu_online_mask);
	if (cpu < nr_cpu_ids)
		schedule_work_on(cpu, &start.work);
	cpus_read_unlock();
	flush_work(&start.work);
	destroy_work_on_stack(&start.work);
	return cpu < nr_cpu_ids ? 0 : -ENXIO;
}

/*
 * Completions of a bound context are handled on the CPU where the message was
 * executed or its packet arrived: with a device that is a program, the one that
 * posts the first message.
 */
static void pp_start_all(struct pp_run *run)
{
	int ret = 0;
	u32 i;

	for (i = 0; !ret && i < run->p.pairs; i++) {
		if (run->p.cpus)
			ret = pp_start_on(&run->pairs[i], i % run->p.cpus);
		else
			pp_start_pair(&run->pairs[i]);
	}
	if (ret && pp_run_first_report(run, PP_SAID_STATUS))
		pr_err("cpus=%u: one has gone offline\n", run->p.cpus);
	if (ret)
		pp_run_stop(run, ret);
}

static void pp_go(struct pp_run *run)
{
	run->start = ktime_get_ns();
	pp_mark(PP_MARK_BEGIN);
	pp_start_all(run);
	if (run->ctx == IB_POLL_DIRECT)
		pp_poll_all(run);
	else
		pp_wait_all(run);
	if (READ_ONCE(run->err))
		run->end = ktime_get_ns();
}

static void pp_latency(struct pp_run *run, struct pp_result *res)
{
	struct pp_hist *sum = run->pairs[0].hist;
	u32 i;

	for (i = 1; i < run->p.pairs; i++)
		pp_hist_merge(sum, run->pairs[i].hist);
	res->p50 = pp_hist_percentile(sum, 50);
	res->p99 = pp_hist_percentile(sum, 99);
}

/* Checks that every message has added to its pair's counter, once. */
static void pp_sums_check(struct pp_run *run)
{
	u32 i;

	for (i = 0; run->op == PP_FETCH_ADD && i < run->p.pairs; i++) {
		if (pp_traffic_sum_right(&run->pairs[i]))
			continue;
		atomic64_inc(&run->errors);
		if (pp_run_first_report(run, PP_SAID_DATA))
			pr_err("pair %u: FETCH_ADD counter has a wrong value\n", i);
	}
}

static void pp_plain_collect(struct pp_pair *pair, int err)
{
	pair->completed = pair->plain.sent;
	pair->received = pair->plain.received;
	if (!err)
		pair->rx_verified = pp_plain_check(pair);
}

/* Called when the pairs are drained, so nothing writes any more. */
static void pp_collect(struct pp_run *run, struct pp_result *res)
{
	struct pp_pair *pair;
	u32 i;

	for (i = 0; i < run->p.pairs; i++) {
		pair = &run->pairs[i];
		if (run->p.plain)
			pp_plain_collect(pair, res->err);
		res->msgs += run->two_sided ?
			     min(pair->completed, pair->received) :
			     pair->completed;
		res->verified += pair->tx_verified + pair->rx_verified;
	}
	res->batch = run->p.batch;
	res->ns = run->end - run->start;
	if (!res->err)
		pp_sums_check(run);
	res->errors = atomic64_read(&run->errors);
	if (!res->err && res->errors)
		res->err = -EIO;
	pp_latency(run, res);
}

/**
 * pp_run - perform one run
 * @params: parameters of the run; names and numbers are checked here
 * @res: filled in if 0 is returned
 *
 * Context: may sleep, for as long as the run takes; one run at a time.
 * Return: 0 if messages were sent, with the outcome in @res->err. Otherwise the
 * run could not be set up: -EINVAL, -ERANGE for parameters, -ENODEV for a
 * device that does not exist, -ENOMEM, or the error of the verbs layer.
 */
int pp_run(const struct pp_params *params, struct pp_result *res)
{
	struct pp_run *run;
	int ret;

	memset(res, 0, sizeof(*res));
	run = kzalloc(sizeof(*run), GFP_KERNEL);
	if (!run)
		return -ENOMEM;
	run->p = *params;
	ret = pp_prepare(run);
	if (ret)
		goto out_free;
	ret = pp_devs_get(run);
	if (ret)
		goto out_free;
	pp_devices_assign(run);

	ret = pp_setup(run);
	if (!ret) {
		pp_go(run);
		res->err = READ_ONCE(run->err);
		pp_quiesce(run);
		pp_collect(run, res);
	}
	pp_teardown(run);
	pp_devs_put(run);
out_free:
	kfree(run);
	return ret;
}
