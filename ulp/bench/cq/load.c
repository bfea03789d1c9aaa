// SPDX-License-Identifier: GPL-2.0-only
/*
 * mode=load: rate and delay of messages under load.
 *
 * Closed loop (rate=0): done() posts the next message on its queue pair, so that
 * the number of messages outstanding stays the same. The rate is what the machine
 * can sustain.
 *
 * Open loop: messages fall due at times drawn beforehand, with exponentially
 * distributed gaps, each on a queue pair drawn with equal probability; no message
 * waits for those before it. A timer posts the due messages in hard interrupt
 * context, as a device's interrupt handler would, and like a device's interrupt
 * it is moderated: it fires at most once every @tick microseconds. One interrupt
 * posts a bounded number of messages, and some time passes before the next, so
 * that the timer code does not mistake the load for a runaway timer. A message
 * that finds its send queue full is posted when there is room, and the interrupt
 * that found it so counts as a stall.
 *
 * A message is written to once by the poster and then once by its done().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/prandom.h>
#include <linux/printk.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include "cqbench.h"

#define CQB_MAX_COUNT	(1U << 22)
#define CQB_MAX_WINDOW	(1U << 16)
#define CQB_MAX_RATE	100000000
#define CQB_MAX_TICK	100000
#define CQB_OUTSTANDING	8192	/* open loop: messages of all queue pairs */
#define CQB_MIN_DEPTH	64
#define CQB_MAX_DEPTH	4096
#define CQB_BUDGET	64	/* completions polled from a CQ before the next CQ */
#define CQB_START_NS	(100 * NSEC_PER_USEC)
#define CQB_POST_MAX	32	/* messages posted by one interrupt */
#define CQB_REST	4	/* pause after an interrupt: a tick divided by this */

/* 2^16 * ln(2), and the curvature of log2(1 + x) between 0 and 1, within 1%. */
#define CQB_LN2		45426
#define CQB_BEND	22525

struct cqb_msg {
	struct ib_cqe cqe;
	u32 nr;			/* open loop: queue pair to post it on */
	u64 due;		/* due time, in nanoseconds from the start */
	u64 posted;		/* time of the post, then the delay */
	u64 written;		/* delay from its completion, 0 if unknown */
};

/**
 * struct cqb_load - messages of a run
 * @run: the run
 * @msg: the messages
 * @next: open loop: the next message to post
 * @start: time of the first post, in nanoseconds
 * @end: time of the last done()
 * @stalls: see struct cqb_result
 * @timer: open loop: posts the messages
 * @given: closed loop: messages that were assigned to a queue pair
 * @left: messages that are not done yet
 */
struct cqb_load {
	struct cqb_run *run;
	struct cqb_msg *msg;
	u32 next;
	u64 start;
	u64 end;
	u64 stalls;
	struct hrtimer timer;

	atomic_t given ____cacheline_aligned_in_smp;
	atomic_t left ____cacheline_aligned_in_smp;
};

static void cqb_post(struct cqb_load *load, struct cqb_cq *c,
		     struct cqb_msg *msg)
{
	struct ib_rdma_wr wr;
	int ret;

	cqb_wr_init(&wr, &msg->cqe);
	if (load->run->p.delay)
		msg->posted = ktime_get_ns();
	ret = ib_post_send(c->qp, &wr.wr, NULL);
	if (unlikely(ret))
		cqb_stop(load->run, ret);
}

static void cqb_post_next(struct cqb_load *load, struct cqb_cq *c)
{
	u32 i = atomic_inc_return_relaxed(&load->given) - 1;

	if (i < load->run->p.count)
		cqb_post(load, c, &load->msg[i]);
}

/* Computes both delays from one reading of the clock. */
static void cqb_clock(struct cqb_msg *msg, const struct ib_wc *wc)
{
	u64 now = ktime_get_ns();

#ifdef IB_POLL_THREAD
	if (wc->timestamp)
		msg->written = now - wc->timestamp;
#endif
	msg->posted = now - msg->posted;
}

static void cqb_load_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct cqb_msg *msg = container_of(wc->wr_cqe, struct cqb_msg, cqe);
	struct cqb_cq *c = cq->cq_context;
	struct cqb_run *run = c->run;
	struct cqb_load *load = run->priv;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		cqb_stop(run, -EIO);
		return;
	}
	if (run->p.delay)
		cqb_clock(msg, wc);
	/* Pairs with the acquire in cqb_has_room(). */
	smp_store_release(&c->completed, c->completed + 1);
	if (unlikely(atomic_dec_and_test(&load->left))) {
		load->end = ktime_get_ns();
		complete_all(&run->done);
	} else if (!run->p.rate && !READ_ONCE(run->err)) {
		cqb_post_next(load, c);
	}
}

static bool cqb_has_room(struct cqb_cq *c)
{
	/* Pairs with the release in cqb_load_done(). */
	return c->posted - smp_load_acquire(&c->completed) < c->run->depth;
}

/* Posts the messages that are due. Returns false once all have been posted. */
static bool cqb_post_due(struct cqb_load *load, u64 now)
{
	struct cqb_run *run = load->run;
	struct cqb_msg *msg;
	struct cqb_cq *c;
	u32 n;

	for (n = 0; load->next < run->p.count; n++, load->next++) {
		msg = &load->msg[load->next];
		if (load->start + msg->due > now || n == CQB_POST_MAX)
			return true;
		c = &run->cqs[msg->nr];
		if (!cqb_has_room(c)) {
			load->stalls++;
			return true;
		}
		c->posted++;
		cqb_post(load, c, msg);
	}
	return false;
}

static enum hrtimer_restart cqb_arrivals(struct hrtimer *timer)
{
	struct cqb_load *load = container_of(timer, struct cqb_load, timer);
	u64 tick = load->run->p.tick * NSEC_PER_USEC;
	u64 now = ktime_get_ns();
	u64 next;

	if (READ_ONCE(load->run->err) || !cqb_post_due(load, now))
		return HRTIMER_NORESTART;
	next = max3(load->start + load->msg[load->next].due, now + tick,
		    ktime_get_ns() + tick / CQB_REST);
	hrtimer_set_expires(timer, ns_to_ktime(next));
	return HRTIMER_RESTART;
}

/* The consumer of IB_POLL_DIRECT: polls until everything is done. */
static int cqb_poll_all(struct cqb_run *run)
{
	unsigned long limit = jiffies + run->p.timeout * HZ;
	u32 i;

	while (!completion_done(&run->done)) {
		for (i = 0; i < run->p.cqs; i++)
			ib_process_cq_direct(run->cqs[i].cq, CQB_BUDGET);
		if (time_after(jiffies, limit))
			cqb_stop(run, -ETIMEDOUT);
		else if (fatal_signal_pending(current))
			cqb_stop(run, -EINTR);
		cond_resched();
	}
	return READ_ONCE(run->err);
}

static int cqb_finish(struct cqb_run *run)
{
	return run->ctx == IB_POLL_DIRECT ? cqb_poll_all(run) : cqb_wait(run);
}

static int cqb_closed_loop(struct cqb_load *load)
{
	struct cqb_run *run = load->run;
	u32 i;

	load->start = ktime_get_ns();
	for (i = 0; i < max(run->p.window, run->p.cqs); i++)
		cqb_post_next(load, &run->cqs[i % run->p.cqs]);
	return cqb_finish(run);
}

static int cqb_open_loop(struct cqb_load *load)
{
	int ret;

	hrtimer_init(&load->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	load->timer.function = cqb_arrivals;
	load->start = ktime_get_ns() + CQB_START_NS;
	hrtimer_start(&load->timer, ns_to_ktime(load->start),
		      HRTIMER_MODE_ABS_PINNED_HARD);
	ret = cqb_finish(load->run);
	hrtimer_cancel(&load->timer);
	return ret;
}

/* Returns -ln(x) * 2^16 for a random x, uniform in 0..1. */
static u64 cqb_exponential(struct rnd_state *rnd)
{
	u32 x = prandom_u32_state(rnd) | 1;
	u32 top = fls(x) - 1;
	u64 frac = ((u64)x << (32 - top) >> 16) & 0xffff;
	u64 log2 = frac + ((frac * (65536 - frac) >> 16) * CQB_BEND >> 16);

	return (((32 - top) << 16) - log2) * CQB_LN2 >> 16;
}

static void cqb_draw(struct cqb_load *load)
{
	struct cqb_run *run = load->run;
	u64 mean = run->p.rate ? div_u64(NSEC_PER_SEC << 8, run->p.rate) : 0;
	struct rnd_state rnd;
	u64 at = 0;
	u32 i;

	prandom_seed_state(&rnd, run->p.seed);
	for (i = 0; i < run->p.count; i++) {
		load->msg[i].cqe.done = cqb_load_done;
		load->msg[i].nr = prandom_u32_state(&rnd) % run->p.cqs;
		load->msg[i].due = at >> 8;
		at += mean * cqb_exponential(&rnd) >> 16;
	}
}

static int cqb_compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a;
	u32 y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static void cqb_ranks(u32 *sorted, u32 n, u32 *rank)
{
	sort(sorted, n, sizeof(*sorted), cqb_compare, NULL);
	rank[CQB_P50] = sorted[n / 2];
	rank[CQB_P99] = sorted[n - 1 - n / 100];
	rank[CQB_P999] = sorted[n - 1 - n / 1000];
	rank[CQB_MAX] = sorted[n - 1];
}

static int cqb_delays(const struct cqb_load *load, struct cqb_result *res)
{
	u32 n = load->run->p.count;
	u32 *sorted = kvmalloc_array(n, sizeof(*sorted), GFP_KERNEL);
	u32 i;

	if (!sorted)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		sorted[i] = min_t(u64, load->msg[i].posted, U32_MAX);
	cqb_ranks(sorted, n, res->delay_ns);
	for (i = 0; i < n; i++)
		sorted[i] = min_t(u64, load->msg[i].written, U32_MAX);
	cqb_ranks(sorted, n, res->cqe_ns);
	kvfree(sorted);
	return 0;
}

static int cqb_load_measure(struct cqb_run *run, struct cqb_result *res)
{
	struct cqb_load *load;
	int ret;

	load = kzalloc(sizeof(*load), GFP_KERNEL);
	if (!load)
		return -ENOMEM;
	run->priv = load;
	load->run = run;
	load->msg = kvcalloc(run->p.count, sizeof(*load->msg), GFP_KERNEL);
	if (!load->msg)
		return -ENOMEM;
	cqb_draw(load);
	atomic_set(&load->left, run->p.count);
	ret = run->p.rate ? cqb_open_loop(load) : cqb_closed_loop(load);
	res->schedules = cqb_schedules(run);
	res->stalls = load->stalls;
	res->done = run->p.count - atomic_read(&load->left);
	if (ret)
		return ret;
	res->ns = load->end - load->start;
	res->each_ps = div_u64(res->ns * 1000, run->p.count);
	return run->p.delay ? cqb_delays(load, res) : 0;
}

static void cqb_load_free(struct cqb_run *run)
{
	struct cqb_load *load = run->priv;

	if (load)
		kvfree(load->msg);
	kfree(load);
}

static int cqb_load_check(struct cqb_run *run)
{
	struct cqb_params *p = &run->p;
	u32 all = p->rate ? CQB_OUTSTANDING : max(p->window, p->cqs);

	if (run->bare || run->hardirq) {
		pr_err("ctx=%s does not work with mode=load\n", p->ctx);
		return -EINVAL;
	}
	run->depth = clamp_t(u32, DIV_ROUND_UP(all, p->cqs ?: 1),
			     p->rate ? CQB_MIN_DEPTH : 1, CQB_MAX_DEPTH);
	return cqb_range("count", p->count, 2, CQB_MAX_COUNT) ?:
	       cqb_range("window", p->window, 1, CQB_MAX_WINDOW) ?:
	       cqb_range("rate", p->rate, 0, CQB_MAX_RATE) ?:
	       cqb_range("tick", p->tick, 1, CQB_MAX_TICK);
}

const struct cqb_mode cqb_load_mode = {
	.name = "load",
	.check = cqb_load_check,
	.measure = cqb_load_measure,
	.free = cqb_load_free,
};
