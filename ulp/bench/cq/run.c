// SPDX-License-Identifier: GPL-2.0-only
/*
 * One run: check the parameters, create the CQs, each with a queue pair that is
 * connected to itself, measure, destroy everything. run->err is set once, with
 * cmpxchg(), by the first one to stop the run.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ipv6.h>
#include <linux/jiffies.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "cqbench.h"

#define CQB_MAX_CQS	4096
#define CQB_MAX_TIMEOUT	3600
#define CQB_SPARE_WR	2	/* for the requests of ib_drain_qp() */

#define CQB_HOP_LIMIT	64
#define CQB_ACK_TIMEOUT	18	/* 4.096 us * 2^18 = 1 s: nothing gets lost */
#define CQB_RETRIES	7

/* Attributes required for the transitions from RESET to INIT, to RTR and to RTS. */
static const int cqb_qp_masks[] = {
	IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
		IB_QP_MAX_QP_RD_ATOMIC,
};

static const struct cqb_mode * const cqb_modes[] = {
	&cqb_burst_mode,
	&cqb_load_mode,
	&cqb_post_mode,
	&cqb_recv_mode,
	&cqb_srq_mode,
};

static const struct {
	const char *name;
	enum ib_poll_context ctx;
	bool bare;
	bool hardirq;
} cqb_contexts[] = {
	{ "bare", IB_POLL_DIRECT, .bare = true },
	{ "hardirq", IB_POLL_DIRECT, .hardirq = true },
	{ "direct", IB_POLL_DIRECT },
	{ "softirq", IB_POLL_SOFTIRQ },
#ifdef IB_POLL_THREAD
	{ "thread", IB_POLL_THREAD },
#endif
	{ "workqueue", IB_POLL_WORKQUEUE },
	{ "unbound", IB_POLL_UNBOUND_WORKQUEUE },
};

/**
 * cqb_range - check a parameter
 * @key: its name
 * @val: its value
 * @low: least value
 * @high: greatest value
 *
 * Return: 0 or -ERANGE.
 */
int cqb_range(const char *key, u32 val, u32 low, u32 high)
{
	if (val >= low && val <= high)
		return 0;
	pr_err("%s=%u: must be %u to %u\n", key, val, low, high);
	return -ERANGE;
}

static int cqb_find_mode(struct cqb_run *run)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cqb_modes); i++) {
		if (!strcmp(run->p.mode, cqb_modes[i]->name)) {
			run->mode = cqb_modes[i];
			return 0;
		}
	}
	pr_err("mode=%s: unknown mode\n", run->p.mode);
	return -EINVAL;
}

static int cqb_find_ctx(struct cqb_run *run)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cqb_contexts); i++) {
		if (!strcmp(run->p.ctx, cqb_contexts[i].name)) {
			run->ctx = cqb_contexts[i].ctx;
			run->bare = cqb_contexts[i].bare;
			run->hardirq = cqb_contexts[i].hardirq;
			return 0;
		}
	}
	pr_err("ctx=%s: unknown context\n", run->p.ctx);
	return -EINVAL;
}

/**
 * cqb_run_prepare - check the parameters of a run
 * @run: the run, with its parameters set and everything else zero
 *
 * Return: 0, or -EINVAL or -ERANGE for a bad one.
 */
int cqb_run_prepare(struct cqb_run *run)
{
	init_completion(&run->done);
	return cqb_find_mode(run) ?: cqb_find_ctx(run) ?:
	       cqb_range("cqs", run->p.cqs, 1, CQB_MAX_CQS) ?:
	       cqb_range("timeout", run->p.timeout, 1, CQB_MAX_TIMEOUT) ?:
	       run->mode->check(run);
}

/**
 * cqb_stop - end a run before all its messages are done
 * @run: the run
 * @err: negative errno; only the first one counts
 *
 * Context: any.
 */
void cqb_stop(struct cqb_run *run, int err)
{
	cmpxchg(&run->err, 0, err);
	complete_all(&run->done);
}

/**
 * cqb_wait - wait until all messages are done
 * @run: the run
 *
 * Context: may sleep.
 * Return: 0, -ETIMEDOUT, -EINTR after a signal, or the errno passed to
 * cqb_stop().
 */
int cqb_wait(struct cqb_run *run)
{
	long left;

	left = wait_for_completion_killable_timeout(&run->done,
						    run->p.timeout * HZ);
	if (left <= 0)
		cqb_stop(run, left ? -EINTR : -ETIMEDOUT);
	return READ_ONCE(run->err);
}

/**
 * cqb_schedules - how often completions have scheduled the polling context
 * @run: the run
 *
 * Return: the sum over all CQs.
 */
u64 cqb_schedules(const struct cqb_run *run)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < run->p.cqs; i++) {
#ifdef IB_POLL_THREAD
		sum += READ_ONCE(run->cqs[i].cq->stats.schedules);
#else
		sum += READ_ONCE(run->cqs[i].rung);
#endif
	}
	return sum;
}

#ifndef IB_POLL_THREAD
/*
 * Mainline's drivers call the CQ's handler, which schedules the polling context.
 * This function comes in between, to count the notifications and to hold them
 * back.
 */
static void cqb_ring(struct ib_cq *cq, void *context)
{
	struct cqb_cq *c = context;

	c->rung++;
	if (READ_ONCE(c->held))
		c->pending = true;
	else
		c->handler(cq, context);
}

static void cqb_interpose(struct cqb_cq *c)
{
	c->handler = c->cq->comp_handler;
	c->cq->comp_handler = cqb_ring;
}
#else
static void cqb_interpose(struct cqb_cq *c)
{
}
#endif

/* Picks a RoCE v2 GID over IPv4 if there is one, else the first GID. */
static const struct ib_gid_attr *cqb_gid(struct cqb_run *run, int table_len)
{
	const struct ib_gid_attr *gid;
	int i;

	for (i = 0; i < table_len; i++) {
		gid = rdma_get_gid_attr(run->dev, run->p.port, i);
		if (IS_ERR(gid))
			continue;
		if (gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
		    ipv6_addr_v4mapped((struct in6_addr *)gid->gid.raw))
			return gid;
		rdma_put_gid_attr(gid);
	}
	return rdma_get_gid_attr(run->dev, run->p.port, 0);
}

static int cqb_address(struct cqb_run *run, const struct ib_port_attr *port,
		       struct rdma_ah_attr *ah)
{
	const struct ib_gid_attr *gid;
	int ret;

	ah->type = rdma_ah_find_type(run->dev, run->p.port);
	rdma_ah_set_port_num(ah, run->p.port);
	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE) {
		rdma_ah_set_dlid(ah, port->lid);
		return 0;
	}
	gid = cqb_gid(run, port->gid_tbl_len);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	rdma_ah_set_grh(ah, (union ib_gid *)&gid->gid, 0, gid->index,
			CQB_HOP_LIMIT, 0);
	ret = rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac);
	rdma_put_gid_attr(gid);
	return ret;
}

/* Brings the queue pair to RTS, connected to itself. */
static int cqb_connect(struct cqb_cq *c, const struct ib_port_attr *port)
{
	struct ib_qp_attr attr = {
		.port_num = c->run->p.port,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE,
		.path_mtu = port->active_mtu,
		.dest_qp_num = c->qp->qp_num,
		.timeout = CQB_ACK_TIMEOUT,
		.retry_cnt = CQB_RETRIES,
		.rnr_retry = CQB_RETRIES,
	};
	int i, ret;

	ret = cqb_address(c->run, port, &attr.ah_attr);
	for (i = 0; !ret && i < ARRAY_SIZE(cqb_qp_masks); i++) {
		attr.qp_state = IB_QPS_INIT + i;
		ret = ib_modify_qp(c->qp, &attr,
				   cqb_qp_masks[i] | IB_QP_STATE);
		c->drain = !ret;
	}
	return ret;
}

static int cqb_cq_setup(struct cqb_cq *c, const struct ib_port_attr *port)
{
	struct cqb_run *run = c->run;
	u32 nr = c - run->cqs;
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = run->depth + CQB_SPARE_WR,
			.max_recv_wr = run->recv_depth + CQB_SPARE_WR,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_cq *cq;
	struct ib_qp *qp;

	cq = ib_alloc_cq(run->dev, c, run->depth + run->recv_depth + 2 * CQB_SPARE_WR,
			 nr % max(run->dev->num_comp_vectors, 1), run->ctx);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	c->cq = cq;
	cqb_interpose(c);
	init.send_cq = cq;
	init.recv_cq = cq;
	init.srq = run->srq;
	qp = ib_create_qp(run->pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	c->qp = qp;
	return cqb_connect(c, port);
}

static int cqb_srq_setup(struct cqb_run *run)
{
	struct ib_srq_init_attr init = {
		.attr.max_wr = run->recv_depth,
		.attr.max_sge = 1,
	};
	struct ib_srq *srq = ib_create_srq(run->pd, &init);

	if (IS_ERR(srq))
		return PTR_ERR(srq);
	run->srq = srq;
	return 0;
}

static int cqb_setup(struct cqb_run *run)
{
	struct ib_port_attr port;
	struct ib_pd *pd;
	int ret;
	u32 i;

	if (!rdma_is_port_valid(run->dev, run->p.port))
		return -EINVAL;
	ret = ib_query_port(run->dev, run->p.port, &port);
	if (ret)
		return ret;
	pd = ib_alloc_pd(run->dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	run->pd = pd;
	if (run->shared)
		ret = cqb_srq_setup(run);
	if (ret)
		return ret;
	run->cqs = kvcalloc(run->p.cqs, sizeof(*run->cqs), GFP_KERNEL);
	if (!run->cqs)
		return -ENOMEM;
	for (i = 0; !ret && i < run->p.cqs; i++) {
		run->cqs[i].run = run;
		ret = cqb_cq_setup(&run->cqs[i], &port);
		cond_resched();
	}
	return ret;
}

static void cqb_teardown(struct cqb_run *run)
{
	struct cqb_cq *c;
	u32 i;

	for (i = 0; run->cqs && i < run->p.cqs; i++) {
		c = &run->cqs[i];
		if (c->drain)
			ib_drain_qp(c->qp);
		if (c->qp)
			ib_destroy_qp(c->qp);
		if (c->cq)
			ib_free_cq(c->cq);
		cond_resched();
	}
	kvfree(run->cqs);
	run->cqs = NULL;
	if (run->srq)
		ib_destroy_srq(run->srq);
	run->srq = NULL;
	if (run->pd)
		ib_dealloc_pd(run->pd);
	run->pd = NULL;
	run->mode->free(run);
}

/**
 * cqb_run - perform one run
 * @run: the run, prepared, with its device
 * @res: zeroed by the caller; filled in if 0 is returned
 *
 * Context: may sleep, for as long as the run takes.
 * Return: 0 with the outcome in @res->err. If the run could not be set up:
 * -ENOMEM, -EINVAL for a port that does not exist, or the error of the verbs
 * layer.
 */
int cqb_run(struct cqb_run *run, struct cqb_result *res)
{
	int ret = cqb_setup(run);

	if (!ret)
		res->err = run->mode->measure(run, res);
	cqb_teardown(run);
	return ret;
}
