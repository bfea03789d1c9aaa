// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verbs objects of a run. pp_setup() may stop anywhere; pp_teardown() takes
 * down whatever exists, in the reverse order:
 *  1. drained queue pairs have no completion left to deliver,
 *  2. so the CQs can go, and with them the last caller of a done handler,
 *  3. so work requests, memory and keys have no users any more.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/jiffies.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "pingpong.h"

/* Room in addition to the messages: for a registration, and for ib_drain_qp(). */
#define PP_SPARE_WR	2

static int pp_limit(const struct pp_side *side, const char *what, u32 want,
		    int have)
{
	if (want <= have)
		return 0;
	pr_err("%s: needs %u %s, supports %d\n", side->dev->name, want, what, have);
	return -EINVAL;
}

static int pp_limits_check(struct pp_run *run)
{
	const struct pp_side *from = &run->side[PP_INITIATOR];
	const struct pp_side *to = &run->side[PP_TARGET];
	int ret;

	ret = pp_limit(from, "outstanding sends", run->p.window + PP_SPARE_WR,
		       from->dev->attrs.max_qp_wr);
	if (!ret && run->op == PP_FETCH_ADD)
		ret = pp_limit(to, "bytes atomically", sizeof(u64),
			       to->dev->attrs.atomic_cap == IB_ATOMIC_NONE ?
			       0 : sizeof(u64));
	if (!ret && run->op == PP_READ)
		ret = pp_limit(from, "SGEs of a read", run->p.sges,
			       from->dev->attrs.max_sge_rd);
	if (!ret)
		ret = pp_limit(from, "send SGEs", run->p.sges,
			       from->dev->attrs.max_send_sge);
	if (!ret && run->two_sided)
		ret = pp_limit(to, "receives", run->slots + PP_SPARE_WR,
			       run->p.srq ? to->dev->attrs.max_srq_wr :
					    to->dev->attrs.max_qp_wr);
	if (!ret && run->two_sided)
		ret = pp_limit(to, "receive SGEs", run->p.sges,
			       to->dev->attrs.max_recv_sge);
	return ret;
}

static bool pp_is_remote(const struct pp_run *run)
{
	return run->op != PP_SEND && run->op != PP_SEND_IMM;
}

/* Only the target's memory is ever addressed by the other side. */
static int pp_pd_alloc(struct pp_run *run, enum pp_side_nr nr)
{
	struct pp_side *side = &run->side[nr];
	unsigned int flags = 0;
	struct ib_pd *pd;

	side->frwr = side->dev->attrs.device_cap_flags &
		     IB_DEVICE_MEM_MGT_EXTENSIONS;
	if (nr == PP_TARGET && pp_is_remote(run) && !side->frwr)
		flags = IB_PD_UNSAFE_GLOBAL_RKEY;
	pd = ib_alloc_pd(side->dev, flags);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	side->pd = pd;
	return 0;
}

static int pp_cq_alloc(struct pp_run *run, struct pp_pair *pair,
		       enum pp_side_nr nr)
{
	struct ib_device *dev = run->side[nr].dev;
	int nr_cqe = run->p.window + run->slots + 2 * PP_SPARE_WR;
	u32 i = pair - run->pairs;
	u32 vector = run->p.cpus ? i % run->p.cpus : PP_SIDES * i + nr;
	void *context = run->p.plain ? (void *)&pair->plain : pair;
	struct ib_cq *cq;

	cq = ib_alloc_cq(dev, context, nr_cqe, vector % dev->num_comp_vectors,
			 run->ctx);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	pair->end[nr].cq = cq;
	return 0;
}

static int pp_srq_create(struct pp_run *run, struct pp_pair *pair)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = run->slots, .max_sge = 1 },
	};
	struct ib_srq *srq;

	srq = ib_create_srq(run->side[PP_TARGET].pd, &init);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	pair->srq = srq;
	return 0;
}

static int pp_qp_create(struct pp_run *run, struct pp_pair *pair,
			enum pp_side_nr nr)
{
	struct ib_qp_init_attr init = {
		.send_cq = pair->end[nr].cq,
		.recv_cq = pair->end[nr].cq,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = PP_SPARE_WR,
			.max_recv_wr = PP_SPARE_WR,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_qp *qp;

	if (nr == PP_INITIATOR) {
		init.cap.max_send_wr += run->p.window;
		init.cap.max_send_sge = run->p.sges;
	} else if (pair->srq) {
		init.srq = pair->srq;
		init.cap.max_recv_wr = 0;
		init.cap.max_recv_sge = 0;
	} else if (run->two_sided) {
		init.cap.max_recv_wr += run->slots;
		init.cap.max_recv_sge = run->p.sges;
	}
	qp = ib_create_qp(run->side[nr].pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	pair->end[nr].qp = qp;
	return 0;
}

/* Returns the direction in which a device accesses the memory at its end. */
static enum dma_data_direction pp_direction(const struct pp_run *run,
					    enum pp_side_nr nr)
{
	if (run->op == PP_FETCH_ADD && nr == PP_TARGET)
		return DMA_BIDIRECTIONAL;
	if (run->op == PP_READ || run->op == PP_FETCH_ADD)
		return nr == PP_TARGET ? DMA_TO_DEVICE : DMA_FROM_DEVICE;
	return nr == PP_TARGET ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
}

static int pp_bufs_alloc(struct pp_run *run, struct pp_pair *pair)
{
	int ret;

	ret = pp_buf_alloc(&pair->end[PP_INITIATOR].buf,
			   run->side[PP_INITIATOR].dev,
			   pp_direction(run, PP_INITIATOR), &run->scattered,
			   run->slots);
	if (ret)
		return ret;
	return pp_buf_alloc(&pair->end[PP_TARGET].buf,
			    run->side[PP_TARGET].dev,
			    pp_direction(run, PP_TARGET),
			    pp_is_remote(run) ? &run->linear : &run->scattered,
			    run->slots);
}

static void pp_wait_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct pp_wait *wait = container_of(wc->wr_cqe, struct pp_wait, cqe);

	wait->status = wc->status;
	complete(&wait->done);
}

/* Polls as well with IB_POLL_DIRECT, as nothing else does. */
static bool pp_wait_for(struct pp_run *run, struct ib_cq *cq,
			struct completion *done)
{
	unsigned long end = jiffies + run->p.timeout * HZ;

	if (run->ctx != IB_POLL_DIRECT)
		return wait_for_completion_timeout(done, run->p.timeout * HZ);
	while (!try_wait_for_completion(done)) {
		if (time_after(jiffies, end))
			return false;
		ib_process_cq_direct(cq, -1);
		cond_resched();
	}
	return true;
}

/* Post one request on the target's queue pair and wait for it. */
static int pp_exec(struct pp_run *run, struct pp_pair *pair,
		   struct ib_send_wr *wr)
{
	struct pp_end *end = &pair->end[PP_TARGET];
	int ret;

	pair->wait.cqe.done = pp_wait_done;
	init_completion(&pair->wait.done);
	wr->wr_cqe = &pair->wait.cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	ret = ib_post_send(end->qp, wr, NULL);
	if (ret)
		return ret;
	if (!pp_wait_for(run, end->cq, &pair->wait.done))
		return -ETIMEDOUT;
	if (pair->wait.status == IB_WC_SUCCESS)
		return 0;
	pr_err("REG_MR failed: %s\n", ib_wc_status_msg(pair->wait.status));
	return -EIO;
}

static int pp_remote_access(enum pp_op op)
{
	switch (op) {
	case PP_READ:
		return IB_ACCESS_REMOTE_READ;
	case PP_FETCH_ADD:
		return IB_ACCESS_REMOTE_ATOMIC;
	default:
		return IB_ACCESS_REMOTE_WRITE;
	}
}

static int pp_chunk_register(struct pp_run *run, struct pp_pair *pair,
			     struct pp_chunk *c)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.access = IB_ACCESS_LOCAL_WRITE,
	};
	struct ib_mr *mr;
	int n;

	mr = ib_alloc_mr(run->side[PP_TARGET].pd, IB_MR_TYPE_MEM_REG,
			 DIV_ROUND_UP(c->len, PAGE_SIZE));
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	c->mr = mr;
	n = ib_map_mr_sg(mr, &c->sg, 1, NULL, PAGE_SIZE);
	if (n != 1)
		return n < 0 ? n : -EINVAL;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	wr.mr = mr;
	wr.key = mr->rkey;
	wr.access |= pp_remote_access(run->op);
	return pp_exec(run, pair, &wr.wr);
}

/* Give the initiator keys for the target's memory. */
static int pp_keys_alloc(struct pp_run *run, struct pp_pair *pair)
{
	struct pp_side *side = &run->side[PP_TARGET];
	struct pp_buf *buf = &pair->end[PP_TARGET].buf;
	u32 i;
	int ret;

	if (!pp_is_remote(run))
		return 0;
	for (i = 0; side->frwr && i < buf->nr_chunks; i++) {
		ret = pp_chunk_register(run, pair, &buf->chunk[i]);
		if (ret)
			return ret;
	}
	for (i = 0; i < run->slots; i++)
		buf->slot[i].rkey = side->frwr ?
				    buf->chunk[i / buf->per_chunk].mr->rkey :
				    side->pd->unsafe_global_rkey;
	return 0;
}

static int pp_pair_setup(struct pp_run *run, struct pp_pair *pair)
{
	u32 nr = pair - run->pairs;
	unsigned int i;
	int ret;

	pair->run = run;
	pair->base = pp_base(run->p.seed) + ((u64)nr << 48);
	ret = pp_bufs_alloc(run, pair);
	if (!ret && run->p.srq)
		ret = pp_srq_create(run, pair);
	for (i = 0; !ret && i < PP_SIDES; i++) {
		ret = pp_cq_alloc(run, pair, i);
		if (!ret)
			ret = pp_qp_create(run, pair, i);
	}
	if (!ret)
		ret = pp_connect(run, pair, (run->p.seed + nr) & 0xffffff);
	if (!ret)
		ret = pp_keys_alloc(run, pair);
	if (!ret)
		ret = pp_traffic_init(run, pair);
	if (!ret)
		ret = pp_traffic_listen(pair);
	return ret;
}

static void pp_end_teardown(struct pp_end *end)
{
	if (end->qp)
		ib_destroy_qp(end->qp);
	if (end->cq)
		ib_free_cq(end->cq);
	pp_buf_free(&end->buf);
}

static void pp_pair_teardown(struct pp_pair *pair)
{
	unsigned int i;

	for (i = 0; i < PP_SIDES; i++)
		pp_end_teardown(&pair->end[i]);
	if (pair->srq)
		ib_destroy_srq(pair->srq);
	pp_traffic_free(pair);
}

/**
 * pp_setup - create everything that a run needs, up to listening queue pairs
 * @run: the run, with its devices and parameters
 *
 * Context: may sleep.
 * Return: 0 or a negative errno; the caller calls pp_teardown() in any case.
 */
int pp_setup(struct pp_run *run)
{
	unsigned int i;
	int ret;

	ret = pp_sides_resolve(run);
	if (!ret)
		ret = pp_limits_check(run);
	for (i = 0; !ret && i < PP_SIDES; i++)
		ret = pp_pd_alloc(run, i);
	if (ret)
		return ret;
	run->pairs = kvcalloc(run->p.pairs, sizeof(*run->pairs), GFP_KERNEL);
	if (!run->pairs)
		return -ENOMEM;
	for (i = 0; !ret && i < run->p.pairs; i++)
		ret = pp_pair_setup(run, &run->pairs[i]);
	return ret;
}

/**
 * pp_quiesce - let every request of a run complete and post no more
 * @run: the run, set up completely or in part
 *
 * Requests that are flushed here do not count as errors. May be called again.
 *
 * Context: may sleep; on return no done handler runs or will run.
 */
void pp_quiesce(struct pp_run *run)
{
	struct pp_end *end;
	u32 i;

	pp_run_stop(run, -ESHUTDOWN);
	for (i = 0; run->pairs && i < PP_SIDES * run->p.pairs; i++) {
		end = &run->pairs[i / PP_SIDES].end[i % PP_SIDES];
		if (end->drain)
			ib_drain_qp(end->qp);
		end->drain = false;
	}
}

/**
 * pp_teardown - undo pp_setup(), wherever it stopped
 * @run: the run
 *
 * Context: may sleep.
 */
void pp_teardown(struct pp_run *run)
{
	unsigned int i;

	pp_quiesce(run);
	for (i = 0; run->pairs && i < run->p.pairs; i++)
		pp_pair_teardown(&run->pairs[i]);
	kvfree(run->pairs);
	run->pairs = NULL;
	for (i = 0; i < PP_SIDES; i++) {
		if (run->side[i].pd)
			ib_dealloc_pd(run->side[i].pd);
		run->side[i].pd = NULL;
	}
	pp_sides_release(run);
}
