// SPDX-License-Identifier: GPL-2.0-only
/*
 * mode=burst: what a completion costs.
 *
 * All completions of a burst lie in their CQs before the first one is polled;
 * then they are polled without a pause. The clock is read only at the first and
 * at the last of them, by the same few instructions whether our own loop calls
 * ib_poll_cq() (ctx=bare) or the CQ layer calls done(). So the difference
 * between the two is what the CQ layer adds from the return of ib_poll_cq() to
 * the entry of done().
 *
 * With IB_POLL_DIRECT it is easy to poll nothing early. The other contexts are
 * held back. kverbs's HCA executes posted requests in the caller's context: with
 * bottom halves off, on the only processor, nothing else gets to run. On
 * mainline, run.c withholds the driver's notification while the device works.
 *
 * There is only one processor, hence no lock: the done() functions of two CQs
 * never run at the same time.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bottom_half.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/printk.h>
#include <linux/slab.h>

#include "cqbench.h"

#define CQB_BATCH	16	/* completions polled at a time, as in the CQ layer */
#define CQB_CHAIN	16	/* requests posted at a time: emu executes them at once */
#define CQB_MAX_BURST	16000
#define CQB_MAX_ROUNDS	1000
#define CQB_MESSAGE_US	50	/* generous time for a device to process a message */
#define CQB_IDLE_MS	2	/* time for a context to arm its CQs and go idle */
/* Bursts begin at different moments between two ticks, which are 4 ms apart. */
#define CQB_PHASES	8
#define CQB_PHASE_US	500

/**
 * struct cqb_burst - a burst under way
 * @cqe: shared by all its messages
 * @run: the run
 * @seen: completions so far
 * @count: completions to expect
 * @released: when polling could begin, in nanoseconds
 * @first: time of the first completion
 * @last: time of the last one
 * @wr: work requests
 */
struct cqb_burst {
	struct ib_cqe cqe;
	struct cqb_run *run;
	u32 seen;
	u32 count;
	u64 released;
	u64 first;
	u64 last;
	struct ib_rdma_wr wr[CQB_CHAIN];
};

/* Handles the first completion, the last one, or one in error. */
static noinline void cqb_mark(struct cqb_burst *b, const struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS)
		cqb_stop(b->run, -EIO);
	if (b->seen == 1)
		b->first = ktime_get_ns();
	if (b->seen == b->count) {
		b->last = ktime_get_ns();
		complete_all(&b->run->done);
	}
}

/*
 * All processing of a completion, whichever way it arrives. It is so little that
 * done() saves no register: entering and leaving done() counts as a cost of the
 * CQ layer.
 */
static __always_inline void cqb_consume(struct cqb_burst *b,
					const struct ib_wc *wc)
{
	u32 seen = ++b->seen;

	if (unlikely(wc->status != IB_WC_SUCCESS || seen == 1 ||
		     seen == b->count))
		cqb_mark(b, wc);
}

static notrace void cqb_burst_done(struct ib_cq *cq, struct ib_wc *wc)
{
	cqb_consume(container_of(wc->wr_cqe, struct cqb_burst, cqe), wc);
}

static void cqb_poll_bare(struct cqb_run *run)
{
	struct ib_wc wc[CQB_BATCH];
	u32 nr;
	int i, n;

	for (nr = 0; nr < run->p.cqs; nr++) {
		while ((n = ib_poll_cq(run->cqs[nr].cq, CQB_BATCH, wc)) > 0)
			for (i = 0; i < n; i++)
				cqb_consume(container_of(wc[i].wr_cqe,
							 struct cqb_burst, cqe),
					    &wc[i]);
	}
}

static void cqb_poll_direct(struct cqb_run *run)
{
	u32 nr;

	for (nr = 0; nr < run->p.cqs; nr++)
		ib_process_cq_direct(run->cqs[nr].cq, -1);
}

#ifdef IB_POLL_THREAD
static void cqb_hold(struct cqb_run *run)
{
	local_bh_disable();
}

static void cqb_release(struct cqb_run *run, struct cqb_burst *b)
{
	b->released = ktime_get_ns();
	local_bh_enable();
}
#else
static void cqb_hold(struct cqb_run *run)
{
	u32 i;

	for (i = 0; i < run->p.cqs; i++) {
		run->cqs[i].pending = false;
		WRITE_ONCE(run->cqs[i].held, true);
	}
}

static void cqb_release(struct cqb_run *run, struct cqb_burst *b)
{
	struct cqb_cq *c;
	u32 i;

	/* The device works in the background. */
	msleep(CQB_IDLE_MS + b->count * CQB_MESSAGE_US / USEC_PER_MSEC);
	local_bh_disable();
	b->released = ktime_get_ns();
	for (i = 0; i < run->p.cqs; i++) {
		c = &run->cqs[i];
		WRITE_ONCE(c->held, false);
		if (c->pending)
			c->handler(c->cq, c->cq->cq_context);
	}
	local_bh_enable();
}
#endif

static int cqb_post_chain(struct cqb_burst *b, struct cqb_cq *c, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++) {
		cqb_wr_init(&b->wr[i], &b->cqe);
		if (i)
			b->wr[i - 1].wr.next = &b->wr[i].wr;
	}
	return ib_post_send(c->qp, &b->wr[0].wr, NULL);
}

static int cqb_post(struct cqb_burst *b, struct cqb_cq *c)
{
	u32 left = b->run->p.count;
	int ret = 0;
	u32 n;

	for (; left && !ret; left -= n) {
		n = min_t(u32, left, CQB_CHAIN);
		ret = cqb_post_chain(b, c, n);
	}
	return ret;
}

static int cqb_one_burst(struct cqb_burst *b)
{
	struct cqb_run *run = b->run;
	int ret = 0;
	u32 i;

	b->seen = 0;
	reinit_completion(&run->done);
	cqb_hold(run);
	for (i = 0; i < run->p.cqs && !ret; i++)
		ret = cqb_post(b, &run->cqs[i]);
	cqb_release(run, b);
	if (ret)
		return ret;
	if (run->bare)
		cqb_poll_bare(run);
	else if (run->ctx == IB_POLL_DIRECT)
		cqb_poll_direct(run);
	if (run->ctx == IB_POLL_DIRECT && b->seen < b->count)
		return -EAGAIN;
	ret = cqb_wait(run);
	msleep(CQB_IDLE_MS);
	return ret;
}

/* No timer interrupt hit the fastest burst. */
static void cqb_burst_keep(const struct cqb_burst *b, struct cqb_result *res)
{
	u64 ns = b->last - b->first;
	u64 wake = b->first - b->released;

	if (!res->done || wake < res->wake_ns)
		res->wake_ns = wake;
	if (!res->done || ns < res->ns)
		res->ns = ns;
	res->done += b->count;
	res->each_ps = div_u64(res->ns * 1000, b->count - 1);
}

static int cqb_burst_measure(struct cqb_run *run, struct cqb_result *res)
{
	struct cqb_burst *b;
	u64 schedules = 0;
	u32 round;
	int ret = 0;

	b = kzalloc(sizeof(*b), GFP_KERNEL);
	if (!b)
		return -ENOMEM;
	run->priv = b;
	b->cqe.done = cqb_burst_done;
	b->run = run;
	b->count = run->p.count * run->p.cqs;
	/* The first one warms up. Ticks hit some of the others, but not all. */
	for (round = 0; round <= run->p.rounds && !ret; round++) {
		if (round == 1)
			schedules = cqb_schedules(run);
		udelay(round % CQB_PHASES * CQB_PHASE_US);
		ret = cqb_one_burst(b);
		if (!ret && round)
			cqb_burst_keep(b, res);
	}
	res->schedules = cqb_schedules(run) - schedules;
	return ret;
}

static void cqb_burst_free(struct cqb_run *run)
{
	kfree(run->priv);
}

static int cqb_burst_check(struct cqb_run *run)
{
	if (num_online_cpus() > 1) {
		pr_err("mode=burst needs a machine with one CPU\n");
		return -EINVAL;
	}
	if (run->hardirq) {
		pr_err("ctx=hardirq works only with mode=post\n");
		return -EINVAL;
	}
	run->depth = run->p.count;
	return cqb_range("count", run->p.count, 2, CQB_MAX_BURST) ?:
	       cqb_range("rounds", run->p.rounds, 1, CQB_MAX_ROUNDS);
}

const struct cqb_mode cqb_burst_mode = {
	.name = "burst",
	.check = cqb_burst_check,
	.measure = cqb_burst_measure,
	.free = cqb_burst_free,
};
