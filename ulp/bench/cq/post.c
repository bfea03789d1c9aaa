// SPDX-License-Identifier: GPL-2.0-only
/*
 * mode=post: what a call to ib_post_send() costs, including what the device does in it.
 * mode=recv: the same for ib_post_recv(); mode=srq: for ib_post_srq_recv().
 *
 * The clock is read before the first and after the last post of a round; completions
 * are polled between the rounds. With ctx=bare the driver's method is called instead, so
 * the difference is what the midlayer adds. With ctx=direct and ctx=bare a task posts, with
 * ctx=hardirq a hard interrupt handler; with any other context, the done() of a first
 * message posts, in that context. To complete the receives, the task sends as many messages
 * after the last reading of the clock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bottom_half.h>
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "cqbench.h"

#define CQB_MAX_POSTS	16000
#define CQB_MAX_ROUNDS	1000

enum cqb_verb {
	CQB_SEND,
	CQB_RECV,
	CQB_SRQ_RECV,
};

/**
 * struct cqb_posts - rounds of posts
 * @cqe: shared by all messages
 * @first: CQE of the message that precedes them
 * @irq: posts in hard interrupt context
 * @run: the run
 * @verb: the verb that is timed
 * @due: completions expected in a round
 * @seen: completions of this round so far
 * @ns: time that the posts of this round took
 * @ret: return value of the posts
 * @over: completed when the round is over, or the part of it that done() posts
 * @wr: the work request
 * @recv: the receive
 */
struct cqb_posts {
	struct ib_cqe cqe;
	struct ib_cqe first;
	struct irq_work irq;
	struct cqb_run *run;
	enum cqb_verb verb;
	u32 due;
	u32 seen;
	u64 ns;
	int ret;
	struct completion over;
	struct ib_rdma_wr wr;
	struct ib_recv_wr recv;
};

static void cqb_post_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct cqb_posts *p = container_of(wc->wr_cqe, struct cqb_posts, cqe);

	if (wc->status != IB_WC_SUCCESS)
		cqb_stop(p->run, -EIO);
	if (++p->seen == p->due)
		complete(&p->over);
}

static __always_inline int cqb_post_one(struct cqb_posts *p, struct ib_qp *qp,
					enum cqb_verb verb, bool bare)
{
	const struct ib_recv_wr *bad_recv;
	const struct ib_send_wr *bad;

	switch (verb) {
	case CQB_RECV:
		return bare ? qp->device->ops.post_recv(qp, &p->recv, &bad_recv) :
			      ib_post_recv(qp, &p->recv, &bad_recv);
	case CQB_SRQ_RECV:
		return bare ? qp->device->ops.post_srq_recv(qp->srq, &p->recv, &bad_recv) :
			      ib_post_srq_recv(qp->srq, &p->recv, &bad_recv);
	default:
		return bare ? qp->device->ops.post_send(qp, &p->wr.wr, &bad) :
			      ib_post_send(qp, &p->wr.wr, &bad);
	}
}

/* Callers pass constants for @verb and @bare: no branch falls into the measured time. */
static __always_inline void cqb_post_timed(struct cqb_posts *p, struct ib_qp *qp,
					   enum cqb_verb verb, bool bare)
{
	u64 start = ktime_get_ns();
	int ret = 0;
	u32 i;

	for (i = 0; i < p->run->p.count && !ret; i++)
		ret = cqb_post_one(p, qp, verb, bare);
	p->ns = ktime_get_ns() - start;
	p->ret = ret;
}

static __always_inline void cqb_post_verb(struct cqb_posts *p, enum cqb_verb verb)
{
	struct ib_qp *qp = p->run->cqs[0].qp;

	if (p->run->bare)
		cqb_post_timed(p, qp, verb, true);
	else
		cqb_post_timed(p, qp, verb, false);
}

static void cqb_post_round(struct cqb_posts *p)
{
	switch (p->verb) {
	case CQB_SEND:
		cqb_post_verb(p, CQB_SEND);
		break;
	case CQB_RECV:
		cqb_post_verb(p, CQB_RECV);
		break;
	case CQB_SRQ_RECV:
		cqb_post_verb(p, CQB_SRQ_RECV);
		break;
	}
}

static enum cqb_verb cqb_verb_of(const struct cqb_run *run)
{
	if (run->mode == &cqb_recv_mode)
		return CQB_RECV;
	return run->mode == &cqb_srq_mode ? CQB_SRQ_RECV : CQB_SEND;
}

static void cqb_post_first_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct cqb_posts *p = container_of(wc->wr_cqe, struct cqb_posts, first);

	if (wc->status != IB_WC_SUCCESS)
		cqb_stop(p->run, -EIO);
	p->wr.wr.wr_cqe = &p->cqe;
	cqb_post_round(p);
	/* Receives do not complete before the task has sent something. */
	if (p->ret || p->verb != CQB_SEND)
		complete(&p->over);
}

static void cqb_post_in_irq(struct irq_work *irq)
{
	cqb_post_round(container_of(irq, struct cqb_posts, irq));
}

/* Sends one message for each receive. */
static int cqb_post_sends(struct cqb_posts *p, struct ib_qp *qp)
{
	struct ib_send_wr wr = {
		.wr_cqe = &p->cqe,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};
	int ret = 0;
	u32 i;

	for (i = 0; i < p->run->p.count && !ret; i++)
		ret = ib_post_send(qp, &wr, NULL);
	return ret;
}

static int cqb_post_wait(struct cqb_posts *p)
{
	if (!wait_for_completion_timeout(&p->over, p->run->p.timeout * HZ))
		return -ETIMEDOUT;
	return READ_ONCE(p->run->err) ?: p->ret;
}

/* Posts in the polling context of the CQ. */
static int cqb_post_there(struct cqb_posts *p, struct ib_qp *qp)
{
	int ret;

	p->wr.wr.wr_cqe = &p->first;
	/*
	 * The device may execute the request in the caller's context: return from the post
	 * before done() can run.
	 */
	local_bh_disable();
	ret = ib_post_send(qp, &p->wr.wr, NULL);
	local_bh_enable();
	ret = ret ?: cqb_post_wait(p);
	if (ret || p->verb == CQB_SEND)
		return ret;
	return cqb_post_sends(p, qp) ?: cqb_post_wait(p);
}

/* Nothing else polls the CQ. */
static int cqb_post_poll(struct cqb_posts *p, struct ib_cq *cq)
{
	unsigned long end = jiffies + p->run->p.timeout * HZ;

	while (p->seen < p->due) {
		ib_process_cq_direct(cq, -1);
		if (time_after(jiffies, end))
			return -ETIMEDOUT;
		cond_resched();
	}
	return READ_ONCE(p->run->err);
}

static int cqb_post_here(struct cqb_posts *p, struct cqb_cq *c)
{
	int ret;

	if (p->run->hardirq) {
		irq_work_queue(&p->irq);
		irq_work_sync(&p->irq);
	} else {
		cqb_post_round(p);
	}
	ret = p->ret;
	if (!ret && p->verb != CQB_SEND)
		ret = cqb_post_sends(p, c->qp);
	return ret ?: cqb_post_poll(p, c->cq);
}

static int cqb_post_measure(struct cqb_run *run, struct cqb_result *res)
{
	struct cqb_cq *c = &run->cqs[0];
	struct cqb_posts *p;
	u32 round;
	int ret = 0;

	p = kzalloc(sizeof(*p), GFP_KERNEL);
	if (!p)
		return -ENOMEM;
	run->priv = p;
	p->run = run;
	p->verb = cqb_verb_of(run);
	p->due = p->verb == CQB_SEND ? run->p.count : 2 * run->p.count;
	p->cqe.done = cqb_post_done;
	p->first.done = cqb_post_first_done;
	init_completion(&p->over);
	init_irq_work(&p->irq, cqb_post_in_irq);
	cqb_wr_init(&p->wr, &p->cqe);
	p->recv.wr_cqe = &p->cqe;
	/* The first one warms up. */
	for (round = 0; round <= run->p.rounds && !ret; round++) {
		p->seen = 0;
		reinit_completion(&p->over);
		ret = run->ctx == IB_POLL_DIRECT ? cqb_post_here(p, c) : cqb_post_there(p, c->qp);
		if (round && (!res->ns || p->ns < res->ns))
			res->ns = p->ns;
	}
	res->done = (u64)p->due * run->p.rounds;
	res->each_ps = div_u64(res->ns * 1000, run->p.count);
	return READ_ONCE(run->err) ?: ret;
}

static void cqb_post_free(struct cqb_run *run)
{
	kfree(run->priv);
}

static int cqb_post_check(struct cqb_run *run)
{
	if (num_online_cpus() > 1) {
		pr_err("mode=%s needs a machine with one CPU\n", run->p.mode);
		return -EINVAL;
	}
	/* Room for the first message as well. */
	run->depth = run->p.count + 1;
	if (cqb_verb_of(run) != CQB_SEND)
		run->recv_depth = run->p.count;
	run->shared = cqb_verb_of(run) == CQB_SRQ_RECV;
	return cqb_range("cqs", run->p.cqs, 1, 1) ?:
	       cqb_range("count", run->p.count, 2, CQB_MAX_POSTS) ?:
	       cqb_range("rounds", run->p.rounds, 1, CQB_MAX_ROUNDS);
}

const struct cqb_mode cqb_post_mode = {
	.name = "post",
	.check = cqb_post_check,
	.measure = cqb_post_measure,
	.free = cqb_post_free,
};

const struct cqb_mode cqb_recv_mode = {
	.name = "recv",
	.check = cqb_post_check,
	.measure = cqb_post_measure,
	.free = cqb_post_free,
};

const struct cqb_mode cqb_srq_mode = {
	.name = "srq",
	.check = cqb_post_check,
	.measure = cqb_post_measure,
	.free = cqb_post_free,
};
