// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: draining one queue of a QP, CQ moderation, MR pools, and optional verbs that
 * the software HCA does not support.
 */
#include <linux/if_link.h>
#include <rdma/mr_pool.h>

#include "fuzz/fuzz.h"

/* A port number that no device has. */
#define X_NO_PORT	99
/* Moderation periods in microseconds: one that devices refuse, and a short one. */
#define X_LONG		40000
#define X_BRIEF		20

/* --- draining --- */

static bool may_drain(const struct x_world *w, int cq, const struct x_qp *qp,
		      const struct x_queue *q)
{
	return w->cq_how[cq] > X_CQ_POLLED && qp->state != IB_QPS_RESET &&
	       q->head - q->retired < X_DEPTH;
}

/* Fails unless all completions of requests that have ended were handled. */
static enum x_verdict all_handled(struct x_world *w, struct x_queue *q)
{
	struct x_wr *wr;
	u32 pos;

	for (pos = q->checked; pos != q->next; pos++) {
		wr = xm_wr(q, pos);
		if (wr->completes && atomic_read(&wr->state) != X_COMPLETED)
			return x_fail(w, "%s request %u: not handled after a drain", q->name, pos);
	}
	return X_DONE;
}

/* Waits for one of the queues; the other one is flushed too, but not waited for. */
enum x_verdict x_drain_one(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a];
	bool sends = op->c & 1;
	struct x_queue *q = sends ? &qp->sq : &qp->rq;

	if (!xm_there(w, X_QP, op->a) || (!sends && qp->srq >= 0) ||
	    !may_drain(w, sends ? qp->scq : qp->rcq, qp, q))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	if (sends)
		ib_drain_sq(w->ptr[X_QP][op->a]);
	else
		ib_drain_rq(w->ptr[X_QP][op->a]);
	xm_moved(w, qp, IB_QPS_ERR);
	return all_handled(w, q) ? X_FAILED : x_settle(w);
}

/* --- moderation --- */

enum x_verdict x_cq_moderate(struct x_world *w, const struct x_op *op)
{
	u16 count = op->r >> 3 & 7, period = op->r % 8 ? X_BRIEF : X_LONG;
	int want = period == X_LONG ? -EINVAL : 0;

	if (op->a == X_SHARED || !xm_there(w, X_CQ, op->a))
		return X_SKIPPED;
	if (w->cq_how[op->a] == X_CQ_POOL)
		want = -EOPNOTSUPP;
	return x_want(w, "moderation of a CQ", want,
		      rdma_set_cq_moderation(w->ptr[X_CQ][op->a], count, period));
}

/* --- pools --- */

/*
 * Gets all @nr MRs of a pool, expects that there is no other, and puts them back. The one
 * that was put last must be the next one to be got.
 */
enum x_verdict x_use_pool(struct x_world *w, struct ib_qp *qp, struct list_head *pool, int nr)
{
	struct ib_mr *mr[X_POOL + 1];
	int i;

	for (i = 0; i <= nr; i++) {
		mr[i] = ib_mr_pool_get(qp, pool);
		if (!mr[i] != (i == nr))
			x_want(w, "regions in a pool", nr, i);
	}
	for (i = 0; i <= nr; i++) {
		if (mr[i])
			ib_mr_pool_put(qp, pool, mr[i]);
	}
	if (!nr)
		return X_DONE;
	mr[nr] = ib_mr_pool_get(qp, pool);
	if (mr[nr])
		ib_mr_pool_put(qp, pool, mr[nr]);
	return x_want(w, "the region put last comes first", true, mr[nr] == mr[nr - 1]);
}

enum x_verdict x_pool(struct x_world *w, const struct x_op *op)
{
	enum ib_mr_type type = op->r >> 3 & 7 ? IB_MR_TYPE_MEM_REG : IB_MR_TYPE_INTEGRITY;
	int nr = 1 + op->c % X_POOL, pages = op->r & 7 ? X_PAGES : 0, want, ret;
	struct ib_qp *qp = w->ptr[X_QP][op->a];
	enum x_verdict verdict;

	if (!xm_there(w, X_QP, op->a))
		return X_SKIPPED;
	want = type == IB_MR_TYPE_INTEGRITY ? -EOPNOTSUPP : pages ? 0 : -EINVAL;
	ret = ib_mr_pool_init(qp, &qp->rdma_mrs, nr, type, pages, 1);
	verdict = x_want(w, "filling a pool", want, ret);
	if (!verdict)
		verdict = x_use_pool(w, qp, &qp->rdma_mrs, ret ? 0 : nr);
	ib_mr_pool_destroy(qp, &qp->rdma_mrs);
	if (!list_empty(&qp->rdma_mrs))
		return x_fail(w, "a pool is not empty");
	return verdict;
}

/* --- optional verbs --- */

static int vf_call(struct ib_device *ibdev, int which)
{
	struct ifla_vf_guid node = {}, port = {};
	struct ifla_vf_stats stats = {};
	struct ifla_vf_info info = {};

	switch (which % 5) {
	case 0:
		return ib_get_vf_config(ibdev, 0, X_PORT, &info);
	case 1:
		return ib_get_vf_stats(ibdev, 0, X_PORT, &stats);
	case 2:
		return ib_get_vf_guid(ibdev, 0, X_PORT, &node, &port);
	case 3:
		return ib_set_vf_guid(ibdev, 0, X_PORT, 1, IFLA_VF_IB_NODE_GUID);
	default:
		return ib_set_vf_link_state(ibdev, 0, X_PORT, IFLA_VF_LINK_STATE_AUTO);
	}
}

static int integrity_call(struct x_world *w, const struct x_op *op)
{
	int slot = op->c % 3, pd = x_pd_of(op);
	struct ib_mr_status status;

	if (xm_there(w, X_MR, slot) && op->r & 1)
		return ib_check_mr_status(w->ptr[X_MR][slot], IB_MR_CHECK_SIG_STATUS, &status);
	if (!xm_there(w, X_PD, pd))
		pd = X_SHARED;
	return PTR_ERR_OR_ZERO(ib_alloc_mr_integrity(w->ptr[X_PD][pd], 1, 1));
}

/* Optional verbs that the software HCA does not have. For a device that does: mock_device.c. */
enum x_verdict x_optional(struct x_world *w, const struct x_op *op)
{
	struct ib_device *ibdev = w->s->dev[op->a];
	struct ib_port_modify port = {};
	struct ib_device_modify dev = {};
	bool bad = !(op->r % 8);

	switch (op->b % 4) {
	case 0:
		return x_want(w, "a virtual function", -EOPNOTSUPP, vf_call(ibdev, op->c));
	case 1:
		return x_want(w, "integrity", -EOPNOTSUPP, integrity_call(w, op));
	case 2:
		return x_want(w, "changing a port", bad ? -EINVAL : 0,
			      ib_modify_port(ibdev, bad ? X_NO_PORT : X_PORT, 0, &port));
	default:
		return x_want(w, "changing a device", -EOPNOTSUPP,
			      ib_modify_device(ibdev, IB_DEVICE_MODIFY_NODE_DESC, &dev));
	}
}
