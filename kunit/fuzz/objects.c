// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: operations on PDs, CQs, SRQs and multicast groups.
 */
#include "fuzz/fuzz.h"

/* Slots of PDs, and the devices of the PDs and CQs in each slot. */
#define X_PDS		3
static const u8 pd_dev[X_PDS] = { 0, 0, 1 };
static const u8 cq_dev[X_SLOTS] = { 0, 0, 0, 1, 1 };
#define X_SRQS		3

enum x_verdict x_pd_alloc(struct x_world *w, const struct x_op *op)
{
	int slot = op->a % X_PDS, bad = op->r % 32 ? 0 : 0x80;
	struct ib_pd *pd;

	if (xm_there(w, X_PD, slot))
		return X_SKIPPED;
	pd = ib_alloc_pd(w->s->dev[pd_dev[slot]], bad);
	if (IS_ERR(pd))
		return x_want(w, "making a PD", bad ? -EINVAL : 0, PTR_ERR(pd));
	w->ptr[X_PD][slot] = pd;
	xm_make(w, X_PD, slot, pd_dev[slot]);
	return x_want(w, "making a PD", bad ? -EINVAL : 0, 0);
}

/* Lies from %X_LIE_OWN on are for the search for a short sequence; they act here. */
static enum x_verdict look_at_shared(struct x_world *w)
{
	switch (w->lie) {
	case X_LIE_OWN:
		/* The 1 stands for the shared SRQ. */
		return x_want(w, "users of the shared PD", 1 + w->obj[X_PD][X_SHARED].users,
			      atomic_read(&w->s->pd->usecnt));
	case X_LIE_KINDS:
		return x_fail(w, xm_there(w, X_PD, 1) ? "two PDs" : "one PD");
	case X_LIE_LEFT:
		w->s->spoilt = true;
		return x_fail(w, "it is left behind");
	default:
		return w->patience < KVT_TIMEOUT ? x_fail(w, "it is late") : X_DONE;
	}
}

enum x_verdict x_pd_free(struct x_world *w, const struct x_op *op)
{
	int slot = op->a % X_PDS, want, ret;

	if (slot == X_SHARED && w->lie >= X_LIE_OWN)
		return look_at_shared(w);
	want = xm_may_destroy(w, X_PD, slot);
	/* Whether other threads use the shared PD is not known. */
	if (!xm_there(w, X_PD, slot) || (slot == X_SHARED && !want))
		return X_SKIPPED;
	/* -EBUSY comes with a warning, and logging is slow: try it rarely. */
	if (want && op->r % 32)
		return X_SKIPPED;
	ret = ib_dealloc_pd_user(w->ptr[X_PD][slot], NULL);
	if (!ret && slot != X_SHARED) {
		w->ptr[X_PD][slot] = NULL;
		xm_gone(w, X_PD, slot);
	}
	return x_want(w, "freeing a PD", want, ret);
}

/* --- completion queues --- */

static struct ib_cq *make_cq(struct x_world *w, int dev, enum x_cq_how how, u32 r)
{
	static const u8 contexts[X_CQ_HOWS] = {
		[X_CQ_DIRECT] = IB_POLL_DIRECT,
		[X_CQ_SOFTIRQ] = IB_POLL_SOFTIRQ,
		[X_CQ_WORKQUEUE] = IB_POLL_WORKQUEUE,
		[X_CQ_UNBOUND] = IB_POLL_UNBOUND_WORKQUEUE,
		[X_CQ_THREAD] = IB_POLL_THREAD,
		[X_CQ_POOL] = IB_POLL_SOFTIRQ,
	};
	struct ib_cq_init_attr attr = { .cqe = X_CQE };
	struct ib_device *ibdev = w->s->dev[dev];
	int vector = r % ibdev->num_comp_vectors;

	switch (how) {
	case X_CQ_HANDLER:
	case X_CQ_POLLED:
		attr.comp_vector = vector;
		return ib_create_cq(ibdev, how == X_CQ_HANDLER ? x_comp_handler : NULL, NULL,
				    w, &attr);
	case X_CQ_POOL:
		return ib_cq_pool_get(ibdev, X_CQE, r & 1 ? vector : -1,
				      r & 2 ? IB_POLL_WORKQUEUE : IB_POLL_SOFTIRQ);
	default:
		if (r & 4)
			return ib_alloc_cq_any(ibdev, w, X_CQE, contexts[how]);
		return ib_alloc_cq(ibdev, w, X_CQE, vector, contexts[how]);
	}
}

enum x_verdict x_cq_make(struct x_world *w, const struct x_op *op)
{
	enum x_cq_how how = op->b % X_CQ_HOWS;
	int dev = cq_dev[op->a];
	struct ib_cq *cq;

	if (xm_there(w, X_CQ, op->a))
		return X_SKIPPED;
	cq = make_cq(w, dev, how, op->r);
	if (IS_ERR(cq))
		return x_want(w, "making a CQ", 0, PTR_ERR(cq));
	w->ptr[X_CQ][op->a] = cq;
	w->cq_how[op->a] = how;
	xm_make(w, X_CQ, op->a, dev);
	if (how == X_CQ_HANDLER)
		return x_want(w, "arming a CQ", 0, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP));
	return X_DONE;
}

/* Frees a CQ by the call for its kind or, if @wrong, always by ib_destroy_cq_user(). */
static int destroy_cq(struct x_world *w, int slot, bool wrong, int *want)
{
	struct ib_cq *cq = w->ptr[X_CQ][slot];
	enum x_cq_how how = w->cq_how[slot];
	bool raw = how == X_CQ_HANDLER || how == X_CQ_POLLED;

	if (raw || wrong) {
		*want = how == X_CQ_POOL ? -EOPNOTSUPP : xm_may_destroy(w, X_CQ, slot);
		return ib_destroy_cq_user(cq, NULL);
	}
	*want = 0;
	if (how == X_CQ_POOL)
		ib_cq_pool_put(cq, X_CQE);
	else
		ib_free_cq(cq);
	return 0;
}

enum x_verdict x_cq_free(struct x_world *w, const struct x_op *op)
{
	bool wrong = !(op->r % 64);
	int want, ret;

	if (op->a == X_SHARED || !xm_there(w, X_CQ, op->a))
		return X_SKIPPED;
	/* ib_free_cq() of a CQ in use returns no error, and the warning of -EBUSY is slow. */
	if (xm_may_destroy(w, X_CQ, op->a) && !wrong)
		return X_SKIPPED;
	ret = destroy_cq(w, op->a, wrong, &want);
	if (!ret) {
		w->ptr[X_CQ][op->a] = NULL;
		xm_gone(w, X_CQ, op->a);
	}
	return x_want(w, "freeing a CQ", want, ret);
}

enum x_verdict x_cq_poll(struct x_world *w, const struct x_op *op)
{
	x_poll_all(w);
	return op->r & 1 ? X_DONE : x_settle(w);
}

enum x_verdict x_cq_arm(struct x_world *w, const struct x_op *op)
{
	int ret, flags = op->r & 1 ? IB_CQ_SOLICITED : IB_CQ_NEXT_COMP;

	/* The core itself arms the CQs that it polls. */
	if (!xm_there(w, X_CQ, op->a) || w->cq_how[op->a] > X_CQ_POLLED)
		return X_SKIPPED;
	if (w->cq_how[op->a] == X_CQ_HANDLER)
		flags = IB_CQ_NEXT_COMP;
	ret = ib_req_notify_cq(w->ptr[X_CQ][op->a], flags);
	if (w->cq_how[op->a] == X_CQ_HANDLER && ret >= 0)
		return X_DONE;
	return x_want(w, "arming a CQ", 0, ret);
}

enum x_verdict x_cq_resize(struct x_world *w, const struct x_op *op)
{
	int cqe = op->r % 16 ? X_CQE << (op->r >> 4 & 1) : 0, want = cqe ? 0 : -EINVAL;

	if (op->a == X_SHARED || !xm_there(w, X_CQ, op->a))
		return X_SKIPPED;
	if (w->cq_how[op->a] == X_CQ_POOL)
		want = -EOPNOTSUPP;
	return x_want(w, "resizing a CQ", want, ib_resize_cq(w->ptr[X_CQ][op->a], cqe));
}

/* Flushes a CQ, or sets its weight. */
enum x_verdict x_cq_tune(struct x_world *w, const struct x_op *op)
{
	struct ib_cq *cq = w->ptr[X_CQ][op->a];
	bool raw;

	if (op->a == X_SHARED || !xm_there(w, X_CQ, op->a))
		return X_SKIPPED;
	raw = w->cq_how[op->a] <= X_CQ_POLLED;
	if (op->c & 1)
		return x_want(w, "flushing a CQ", raw ? -EINVAL : 0, ib_cq_flush(cq));
	return x_want(w, "weight of a CQ", raw || !(op->r % 8) ? -EINVAL : 0,
		      ib_cq_set_weight(cq, op->r % 8));
}

/* --- shared receive queues --- */

enum x_verdict x_srq_make(struct x_world *w, const struct x_op *op)
{
	struct ib_srq_init_attr init = { .event_handler = x_srq_event };
	int slot = op->a % X_SRQS, pd = x_pd_of(op), want;
	struct x_heard *heard = &w->heard_srq[slot];
	struct ib_srq *srq;

	if (xm_there(w, X_SRQ, slot) || !xm_there(w, X_PD, pd))
		return X_SKIPPED;
	want = op->r % 16 ? 0 : -EINVAL;
	init.attr.max_wr = want ? 0 : X_SRQ_DEPTH;
	init.attr.max_sge = 2;
	init.srq_context = heard;
	x_hear(w, heard);
	srq = ib_create_srq(w->ptr[X_PD][pd], &init);
	if (IS_ERR(srq)) {
		x_hear_no_more(heard);
		return x_want(w, "making an SRQ", want, PTR_ERR(srq));
	}
	w->ptr[X_SRQ][slot] = srq;
	xm_make(w, X_SRQ, slot, pd_dev[pd]);
	xm_use(w, X_SRQ, slot, X_PD, pd);
	xm_queue_init(&w->srq[slot], w, "shared receive", pd_dev[pd],
		      (2 * X_SLOTS + slot) * X_QUEUE_BYTES, X_SRQ_DEPTH);
	w->srq[slot].shared = true;
	return x_want(w, "making an SRQ", want, 0);
}

enum x_verdict x_srq_free(struct x_world *w, const struct x_op *op)
{
	int slot = op->a % X_SRQS, want, ret;

	want = xm_may_destroy(w, X_SRQ, slot);
	if (!xm_there(w, X_SRQ, slot) || (slot == X_SHARED && !want) || (want && op->r % 16))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	ret = ib_destroy_srq_user(w->ptr[X_SRQ][slot], NULL);
	if (!ret && slot != X_SHARED) {
		x_hear_no_more(&w->heard_srq[slot]);
		xm_queue_clear(&w->srq[slot]);
		w->ptr[X_SRQ][slot] = NULL;
		xm_gone(w, X_SRQ, slot);
	}
	return x_want(w, "freeing an SRQ", want, ret);
}

enum x_verdict x_srq_modify(struct x_world *w, const struct x_op *op)
{
	struct ib_srq_attr attr = { .max_wr = op->r % (X_SRQ_DEPTH + 1) };
	struct x_queue *q = &w->srq[op->a];
	int want, ret;

	if (op->a == X_SHARED || !xm_there(w, X_SRQ, op->a))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	want = attr.max_wr && attr.max_wr >= q->head - q->next ? 0 : -EINVAL;
	ret = ib_modify_srq(w->ptr[X_SRQ][op->a], &attr, IB_SRQ_MAX_WR);
	if (!ret) {
		q->depth = attr.max_wr;
		/* The resized SRQ has room for max_wr WRs in addition to those already in it. */
		q->floor = q->head;
		xm_queue_retire(q, false);
	}
	return x_want(w, "resizing an SRQ", want, ret);
}

enum x_verdict x_srq_query(struct x_world *w, const struct x_op *op)
{
	struct ib_srq_attr attr = {};
	int ret;

	if (op->a == X_SHARED || !xm_there(w, X_SRQ, op->a))
		return X_SKIPPED;
	ret = ib_query_srq(w->ptr[X_SRQ][op->a], &attr);
	if (ret)
		return x_want(w, "querying an SRQ", 0, ret);
	return x_want(w, "size of an SRQ", w->srq[op->a].depth, attr.max_wr);
}

/* --- multicast groups --- */

void x_group_gid(const struct x_world *w, int group, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[0] = 0xff;
	gid->raw[1] = 0x12;
	gid->raw[14] = w->id;
	gid->raw[15] = group;
}

u16 x_group_lid(const struct x_world *w, int group)
{
	return 0xc100 + w->id * X_GROUPS + group;
}

enum x_verdict x_mcast_join(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a];
	int group = op->b % X_GROUPS, want = 0, ret;
	union ib_gid gid;

	if (!xm_there(w, X_QP, op->a) || (qp->type != IB_QPT_UD && op->r % 8))
		return X_SKIPPED;
	if (qp->type != IB_QPT_UD || qp->groups & BIT(group))
		want = -EINVAL;
	x_group_gid(w, group, &gid);
	ret = ib_attach_mcast(w->ptr[X_QP][op->a], &gid, x_group_lid(w, group));
	if (!ret)
		qp->groups |= BIT(group);
	return x_want(w, "joining a group", want, ret);
}

enum x_verdict x_mcast_leave(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a];
	int group = op->b % X_GROUPS, want, ret;
	union ib_gid gid;

	if (!xm_there(w, X_QP, op->a) || (!(qp->groups & BIT(group)) && op->r % 16))
		return X_SKIPPED;
	want = qp->groups & BIT(group) ? 0 : -EINVAL;
	x_group_gid(w, group, &gid);
	ret = ib_detach_mcast(w->ptr[X_QP][op->a], &gid, x_group_lid(w, group));
	if (!ret)
		qp->groups &= ~BIT(group);
	return x_want(w, "leaving a group", want, ret);
}
