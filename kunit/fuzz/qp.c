// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: operations on QPs.
 */
#include "fuzz/fuzz.h"

/* Access rights of every QP; most have atomics, too. */
#define X_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
/* Code of 2.56 ms, so that a sender that waits for a receive does not keep a CPU busy. */
#define X_RNR_TIMER	16
/* 8 us and one retry: no responder here is slow. */
#define X_TIMEOUT	1
#define X_RETRY		1

/* Attributes that x_qp_modify() may add to, or take from, the required ones. */
static const int some_attrs[] = {
	IB_QP_CUR_STATE, IB_QP_EN_SQD_ASYNC_NOTIFY, IB_QP_ACCESS_FLAGS, IB_QP_PKEY_INDEX,
	IB_QP_PORT, IB_QP_QKEY, IB_QP_PATH_MTU, IB_QP_TIMEOUT, IB_QP_RETRY_CNT,
	IB_QP_RNR_RETRY, IB_QP_RQ_PSN, IB_QP_MAX_QP_RD_ATOMIC, IB_QP_MIN_RNR_TIMER,
	IB_QP_SQ_PSN, IB_QP_MAX_DEST_RD_ATOMIC, IB_QP_DEST_QPN,
};

/* Slots of the CQs of each device. */
static const u8 cqs_of[X_DEVS][4] = { { 0, 1, 2, 0 }, { 3, 4, 3, 4 } };

static int make_want(const struct x_world *w, int dev, int scq, int rcq, int srq, bool many)
{
	if (xm_dev(w, X_CQ, scq) != dev || xm_dev(w, X_CQ, rcq) != dev ||
	    (srq >= 0 && xm_dev(w, X_SRQ, srq) != dev) || many)
		return -EINVAL;
	return 0;
}

static void made(struct x_world *w, const struct x_op *op, struct ib_qp *ibqp,
		 const struct x_qp *is)
{
	struct x_qp *qp = &w->qp[op->a];
	int dev = xm_dev(w, X_PD, is->pd);
	u32 base = 2 * op->a * X_QUEUE_BYTES;

	w->ptr[X_QP][op->a] = ibqp;
	xm_make(w, X_QP, op->a, dev);
	xm_use(w, X_QP, op->a, X_PD, is->pd);
	xm_use(w, X_QP, op->a, X_CQ, is->scq);
	xm_use(w, X_QP, op->a, X_CQ, is->rcq);
	if (is->srq >= 0)
		xm_use(w, X_QP, op->a, X_SRQ, is->srq);
	qp->state = IB_QPS_RESET;
	qp->type = is->type;
	qp->num = ibqp->qp_num;
	qp->pd = is->pd;
	qp->srq = is->srq;
	qp->scq = is->scq;
	qp->rcq = is->rcq;
	qp->dest_dev = -1;
	qp->rnr_retry = is->rnr_retry;
	qp->sig_all = is->sig_all;
	qp->access = is->access;
	qp->groups = 0;
	qp->notify = false;
	qp->told = 0;
	memset(qp->events, 0, sizeof(qp->events));
	WRITE_ONCE(w->heard_qp[op->a].num, qp->num);
	xm_queue_init(&qp->sq, w, "send", dev, base, X_DEPTH);
	xm_queue_init(&qp->rq, w, "receive", dev, base + X_QUEUE_BYTES, X_DEPTH);
}

enum x_verdict x_qp_make(struct x_world *w, const struct x_op *op)
{
	/* By slot: 0 and 1 are mostly connected to each other, 2 and 3 mostly to themselves. */
	static const u8 types[X_SLOTS][8] = {
		{ IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_RC,
		  IB_QPT_UC },
		{ IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_RC,
		  IB_QPT_UD },
		{ IB_QPT_RC, IB_QPT_RC, IB_QPT_RC, IB_QPT_UC, IB_QPT_UC, IB_QPT_UC, IB_QPT_UC,
		  IB_QPT_UD },
		{ IB_QPT_UD, IB_QPT_UD, IB_QPT_UD, IB_QPT_UD, IB_QPT_UD, IB_QPT_UD, IB_QPT_RC,
		  IB_QPT_UC },
	};
	struct x_qp is = { .pd = x_pd_of(op), .type = types[op->a][op->r & 7], .srq = -1 };
	int dev = xm_dev(w, X_PD, is.pd), want;
	struct ib_qp_init_attr init = {};
	struct ib_qp *qp;

	/* One in sixteen takes both CQs from a random slot, perhaps of the other device. */
	is.scq = op->r & 0xf0 ? cqs_of[dev][op->c & 3] : op->c % X_SLOTS;
	is.rcq = op->r & 0xf0 ? cqs_of[dev][op->c >> 2 & 3] : op->c % X_SLOTS;
	if (!(op->r >> 8 & 3))
		is.srq = (op->r >> 10) % 3;
	if (xm_there(w, X_QP, op->a) || !xm_there(w, X_PD, is.pd) ||
	    !xm_there(w, X_CQ, is.scq) || !xm_there(w, X_CQ, is.rcq))
		return X_SKIPPED;
	/* If two QPs wait for receives of an SRQ, the model cannot tell which gets the next. */
	if (is.srq >= 0 && (!xm_there(w, X_SRQ, is.srq) ||
			    (is.srq != X_SHARED && w->obj[X_SRQ][is.srq].users)))
		return X_SKIPPED;
	is.sig_all = op->r >> 12 & 1;
	is.access = X_ACCESS | (op->r >> 22 & 7 ? IB_ACCESS_REMOTE_ATOMIC : 0);
	is.rnr_retry = op->r >> 13 & 1 ? 7 : op->r >> 15 & 1;

	init.qp_type = is.type;
	init.sq_sig_type = is.sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init.send_cq = w->ptr[X_CQ][is.scq];
	init.recv_cq = w->ptr[X_CQ][is.rcq];
	init.srq = is.srq < 0 ? NULL : w->ptr[X_SRQ][is.srq];
	init.event_handler = x_qp_event;
	init.qp_context = &w->heard_qp[op->a];
	init.cap = (struct ib_qp_cap){ X_DEPTH, X_DEPTH, 2, 2, 64 };
	if (!(op->r >> 16 & 63))
		init.cap.max_send_wr = INT_MAX;
	want = make_want(w, dev, is.scq, is.rcq, is.srq, !(op->r >> 16 & 63));

	x_hear(w, &w->heard_qp[op->a]);
	qp = ib_create_qp(w->ptr[X_PD][is.pd], &init);
	if (IS_ERR(qp)) {
		x_hear_no_more(&w->heard_qp[op->a]);
		return x_want(w, "making a QP", want, PTR_ERR(qp));
	}
	made(w, op, qp, &is);
	return x_want(w, "making a QP", want, 0);
}

enum x_verdict x_qp_free(struct x_world *w, const struct x_op *op)
{
	int want, ret;

	if (!xm_there(w, X_QP, op->a))
		return X_SKIPPED;
	want = xm_may_destroy(w, X_QP, op->a);
	/* A destruction that is refused is logged, which is slow: try few of them. */
	if (want && op->r % 16)
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	ret = ib_destroy_qp(w->ptr[X_QP][op->a]);
	if (!ret) {
		x_hear_no_more(&w->heard_qp[op->a]);
		xm_queue_clear(&w->qp[op->a].sq);
		xm_queue_clear(&w->qp[op->a].rq);
		xm_gone(w, X_QP, op->a);
		w->ptr[X_QP][op->a] = NULL;
		/* In the model, requests of QPs that are connected to this one can fail. */
		xm_run(w);
	}
	return x_want(w, "destroying a QP", want, ret);
}

/* --- changes of state --- */

/* Fills in all attributes with the QP's present values, so that none changes by accident. */
void x_fill_attr(struct x_world *w, int slot, int peer, struct ib_qp_attr *attr)
{
	struct x_qp *qp = &w->qp[slot];
	int dev = qp->dest_dev;
	u32 num = qp->dest;

	if (dev < 0) {
		dev = xm_there(w, X_QP, peer) ? xm_dev(w, X_QP, peer) : 0;
		num = xm_there(w, X_QP, peer) ? w->qp[peer].num : X_NOBODY;
	}
	*attr = (struct ib_qp_attr){
		.qp_state = qp->state,
		.cur_qp_state = qp->state,
		.path_mtu = IB_MTU_1024,
		.qkey = X_QKEY + w->id,
		.rq_psn = 100,
		.sq_psn = 100,
		.dest_qp_num = num,
		.qp_access_flags = qp->access,
		.pkey_index = 0,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = X_RNR_TIMER,
		.port_num = X_PORT,
		.timeout = X_TIMEOUT,
		.retry_cnt = X_RETRY,
		.rnr_retry = qp->rnr_retry,
		.en_sqd_async_notify = 1,
	};
	attr->ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(&attr->ah_attr, X_PORT);
	rdma_ah_set_dlid(&attr->ah_attr, w->s->lid[dev]);
}

static int modify_want(const struct x_world *w, const struct x_qp *qp, enum ib_qp_state to,
		       int mask)
{
	if (w->lie == X_LIE_STATE && qp->state == IB_QPS_INIT && to == IB_QPS_ERR)
		return -EINVAL;
	return xm_may_modify(qp->state, to, qp->type, mask & ~IB_QP_STATE) ? 0 : -EINVAL;
}

/* Changes the state of the QP, checks the result and updates the model. */
static enum x_verdict modify(struct x_world *w, int slot, int peer, enum ib_qp_state to, int mask)
{
	struct x_qp *qp = &w->qp[slot];
	struct ib_qp_attr attr;
	int want, ret;

	/* In SQD, a request that has begun is finished; the model does not know whether it has. */
	if (to == IB_QPS_SQD && xm_is_blocked(qp))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	x_fill_attr(w, slot, peer, &attr);
	want = modify_want(w, qp, to, mask);
	attr.qp_state = to;
	ret = ib_modify_qp(w->ptr[X_QP][slot], &attr, mask);
	if (ret != want)
		return x_fail(w, "QP from state %d to %d, mask %#x: expected %d, saw %d",
			      qp->state, to, mask, want, ret);
	if (ret)
		return X_DONE;
	if (qp->state == IB_QPS_INIT && to == IB_QPS_RTR && qp->type != IB_QPT_UD) {
		qp->dest = attr.dest_qp_num;
		qp->dest_dev = attr.ah_attr.ib.dlid == w->s->lid[0] ? 0 : 1;
	}
	qp->notify = mask & IB_QP_EN_SQD_ASYNC_NOTIFY;
	xm_moved(w, qp, to);
	return X_DONE;
}

/* Moves the QP one step towards RTS. */
enum x_verdict x_qp_up(struct x_world *w, const struct x_op *op)
{
	static const u8 next[] = {
		[IB_QPS_RESET] = IB_QPS_INIT, [IB_QPS_INIT] = IB_QPS_RTR,
		[IB_QPS_RTR] = IB_QPS_RTS, [IB_QPS_RTS] = IB_QPS_RTS,
		[IB_QPS_SQD] = IB_QPS_RTS, [IB_QPS_SQE] = IB_QPS_RTS,
		[IB_QPS_ERR] = IB_QPS_RESET,
	};
	enum ib_qp_state from, to;

	if (!xm_there(w, X_QP, op->a))
		return X_SKIPPED;
	from = w->qp[op->a].state;
	to = next[from];
	if (from == IB_QPS_RTS)
		return X_SKIPPED;
	return modify(w, op->a, (op->a < 2) == !!(op->r % 8) ? op->a ^ 1 : op->a, to,
		      IB_QP_STATE | xm_required(from, to, w->qp[op->a].type));
}

enum x_verdict x_qp_err(struct x_world *w, const struct x_op *op)
{
	if (!xm_there(w, X_QP, op->a))
		return X_SKIPPED;
	return modify(w, op->a, op->a, IB_QPS_ERR, IB_QP_STATE);
}

/* Tries a change to any state, with the required attributes or with a random mask. */
enum x_verdict x_qp_modify(struct x_world *w, const struct x_op *op)
{
	enum ib_qp_state to = op->b % (IB_QPS_ERR + 1);
	struct x_qp *qp = &w->qp[op->a];
	int mask;

	if (!xm_there(w, X_QP, op->a))
		return X_SKIPPED;
	mask = IB_QP_STATE | xm_required(qp->state, to, qp->type);
	if (qp->state == IB_QPS_RTS && to == IB_QPS_SQD && op->r & 2)
		mask |= IB_QP_EN_SQD_ASYNC_NOTIFY;
	if (op->r & 1)
		mask ^= some_attrs[(op->r >> 1) % ARRAY_SIZE(some_attrs)];
	if (op->r & 0x100)
		mask ^= some_attrs[(op->r >> 9) % ARRAY_SIZE(some_attrs)];
	if (to == qp->state && op->r & 0x10000)
		mask &= ~IB_QP_STATE;
	return modify(w, op->a, op->a ^ (op->r >> 17 & 1), to, mask);
}

enum x_verdict x_qp_query(struct x_world *w, const struct x_op *op)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	struct x_qp *qp = &w->qp[op->a];
	int ret;

	if (!xm_there(w, X_QP, op->a))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	ret = ib_query_qp(w->ptr[X_QP][op->a], &attr, IB_QP_STATE, &init);
	if (ret)
		return x_want(w, "querying a QP", 0, ret);
	if (init.send_cq != w->ptr[X_CQ][qp->scq] || init.recv_cq != w->ptr[X_CQ][qp->rcq])
		return x_fail(w, "a QP has other CQs than it was made with");
	if (qp->dest_dev >= 0 && attr.dest_qp_num != qp->dest)
		return x_want(w, "peer of a QP", qp->dest, attr.dest_qp_num);
	return x_want(w, "state of a QP", qp->state, attr.qp_state);
}

/* ib_drain_qp() needs CQs of ib_alloc_cq(), and room for a WR in both queues. */
static bool may_drain(const struct x_world *w, const struct x_qp *qp)
{
	return w->cq_how[qp->scq] > X_CQ_POLLED && w->cq_how[qp->rcq] > X_CQ_POLLED &&
	       qp->state != IB_QPS_RESET && qp->srq < 0 &&
	       qp->sq.head - qp->sq.retired < X_DEPTH && qp->rq.head - qp->rq.retired < X_DEPTH;
}

/* When ib_drain_qp() returns, all posted requests must have completed. */
enum x_verdict x_qp_drain(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a];

	if (!xm_there(w, X_QP, op->a) || !may_drain(w, qp))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	ib_drain_qp(w->ptr[X_QP][op->a]);
	xm_moved(w, qp, IB_QPS_ERR);
	if (atomic_read(&w->seen) < w->expected && !w->async)
		return x_want(w, "completions after a drain", w->expected, atomic_read(&w->seen));
	return x_settle(w);
}
