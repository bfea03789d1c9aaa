// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs: life, states and attributes.
 *
 * ->lock serialises modify, query and destroy. modify and destroy also freeze
 * the queue pair (see engine.c), so nothing of it is executed while they change
 * it. What others use at the same time is:
 *
 *   ->state	engines set it to IB_QPS_ERR on an error, hence the cmpxchg in
 *		emu_qp_move(). Posters only read it.
 *   ->gate	open from RTR on until an error or a reset. What a responder uses
 *		(peer, path, limits) is written while it is closed and drained;
 *		->access and ->rnr_timer may change under it and are read once.
 *
 * A queue pair that is destroyed can still be reached by: an engine that is its
 * responder (the gate is drained), its owner or its timer (it is frozen for good),
 * pollers that hold one of its completions (struck out; a grace period passes
 * before the midlayer frees the memory) and lookups by number (likewise).
 */
#include <linux/slab.h>
#include <kverbs/completion.h>

#include "emu.h"

/* Numbers below are the management queue pairs' and a margin. */
#define EMU_QPN_LIMIT	XA_LIMIT(16, EMU_MAX_QP + 15)

#define EMU_QP_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)

/**
 * emu_qp_fail() - put a queue pair in the error state
 * @qp: queue pair
 *
 * Its owner flushes it, a runner if there is none; receives, after engines that
 * act as its responder have left. Does nothing in states that cannot fail, or
 * twice.
 *
 * Context: Any but NMI. The owner of @qp, or someone inside its gate.
 */
void emu_qp_fail(struct emu_qp *qp)
{
	int state = atomic_read(&qp->state);

	do {
		if (state == IB_QPS_RESET || state == IB_QPS_INIT || state == IB_QPS_ERR)
			return;
	} while (!atomic_try_cmpxchg(&qp->state, &state, IB_QPS_ERR));
	emu_gate_close(&qp->gate);
	emu_qp_ring_deferred(qp);
	/* Full barriers above, paired with the one in emu_park(). */
	emu_qp_unpark(qp);
}

/**
 * emu_qp_fatal() - put a queue pair in the error state, and say so
 * @qp: queue pair
 *
 * As emu_qp_fail(). The consumer is told once between two resets.
 *
 * Context: Any but NMI. The owner of @qp, or someone inside its gate.
 */
void emu_qp_fatal(struct emu_qp *qp)
{
	if (!atomic_xchg(&qp->fatal, 1))
		ib_qp_notify_event(&qp->ibqp, IB_EVENT_QP_FATAL);
	emu_qp_fail(qp);
}

/**
 * emu_qp_lost() - a completion of a queue pair found no room
 * @qp: queue pair
 *
 * Context: Any but NMI. The owner of @qp, or someone inside its gate.
 */
void emu_qp_lost(struct emu_qp *qp)
{
	/* One that went from RESET to the error state has no port yet. */
	if (qp->port)
		emu_count(qp->port, EMU_CNT_LOST, 1);
	emu_qp_fatal(qp);
}

static int emu_qp_alloc_rings(struct emu_qp *qp, const struct ib_qp_cap *cap)
{
	size_t send_data = max_t(size_t, cap->max_send_sge * sizeof(struct ib_sge),
				 cap->max_inline_data);
	int err;

	err = emu_ring_init(&qp->sq, cap->max_send_wr, sizeof(struct emu_swqe) + send_data);
	if (err)
		return err;
	err = emu_ring_init(&qp->rq, cap->max_recv_wr,
			    struct_size((struct emu_rwqe *)NULL, sge, cap->max_recv_sge));
	if (err)
		emu_ring_destroy(&qp->sq);
	return err;
}

int emu_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct emu_device *edev = to_edev(ibqp->device);
	struct emu_qp *qp = to_eqp(ibqp);
	struct ib_qp_cap *cap = &init->cap;
	int err;

	if (init->qp_type != IB_QPT_RC || init->create_flags || init->srq)
		return -EOPNOTSUPP;
	if (cap->max_send_wr > EMU_MAX_QP_WR || cap->max_recv_wr > EMU_MAX_QP_WR ||
	    cap->max_send_sge > EMU_MAX_SGE || cap->max_recv_sge > EMU_MAX_SGE ||
	    cap->max_inline_data > EMU_MAX_INLINE || !init->send_cq || !init->recv_cq)
		return -EINVAL;

	qp->edev = edev;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->max_inline = cap->max_inline_data;
	qp->init = *init;
	atomic_set(&qp->state, IB_QPS_RESET);
	emu_gate_init(&qp->gate);
	mutex_init(&qp->lock);
	emu_qp_engine_init(qp);

	err = emu_qp_alloc_rings(qp, cap);
	if (err)
		return err;
	err = xa_alloc_cyclic(&edev->qps, &ibqp->qp_num, qp, EMU_QPN_LIMIT, &edev->next_qpn,
			      GFP_KERNEL);
	if (err < 0)
		goto free_rings;
	return 0;

free_rings:
	emu_ring_destroy(&qp->sq);
	emu_ring_destroy(&qp->rq);
	return err;
}

/* Nobody completes anything for the queue pair any more; forget what it completed. */
static void emu_qp_forget_completions(struct emu_qp *qp)
{
	emu_cq_forget_qp(to_ecq(qp->ibqp.send_cq), qp);
	if (qp->ibqp.recv_cq != qp->ibqp.send_cq)
		emu_cq_forget_qp(to_ecq(qp->ibqp.recv_cq), qp);
}

int emu_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct emu_qp *qp = to_eqp(ibqp);

	xa_erase(&qp->edev->qps, ibqp->qp_num);
	mutex_lock(&qp->lock);
	emu_qp_freeze(qp);
	atomic_set(&qp->state, IB_QPS_RESET);
	emu_gate_drain(&qp->gate);
	emu_qp_forget_completions(qp);
	emu_qp_engine_exit(qp);
	mutex_unlock(&qp->lock);

	emu_ring_destroy(&qp->sq);
	emu_ring_destroy(&qp->rq);
	return 0;
}

static int emu_check_path(const struct emu_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	u32 own = mask & IB_QP_PORT ? attr->port_num : qp->attr.port_num;
	const struct rdma_ah_attr *ah = &attr->ah_attr;

	if (rdma_ah_get_port_num(ah) && rdma_ah_get_port_num(ah) != own)
		return -EINVAL;
	if (qp->edev->ethernet)
		return rdma_ah_read_grh(ah)->sgid_attr ? 0 : -EINVAL;
	return rdma_ah_get_dlid(ah) ? 0 : -EINVAL;
}

/* What the midlayer cannot know; it has checked ranges and the device's limits. */
static int emu_check_attr(const struct emu_qp *qp, const struct ib_qp_attr *attr,
			  enum ib_qp_state from, int mask)
{
	if (mask & (IB_QP_ALT_PATH | IB_QP_PATH_MIG_STATE | IB_QP_RATE_LIMIT | IB_QP_CAP))
		return -EOPNOTSUPP;
	/* Peers look at these while we are their responder. */
	if (from == IB_QPS_SQD && (mask & (IB_QP_AV | IB_QP_PORT | IB_QP_PKEY_INDEX |
					   IB_QP_MAX_DEST_RD_ATOMIC)))
		return -EOPNOTSUPP;
	if ((mask & IB_QP_ACCESS_FLAGS) && (attr->qp_access_flags & ~EMU_QP_ACCESS))
		return -EINVAL;
	if (mask & IB_QP_AV)
		return emu_check_path(qp, attr, mask);
	return 0;
}

static void emu_apply_path(struct emu_qp *qp, const struct rdma_ah_attr *ah)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(ah);

	/* A copy without the reference that the midlayer holds for the call. */
	qp->attr.ah_attr = *ah;
	qp->attr.ah_attr.grh.sgid_attr = NULL;
	WRITE_ONCE(qp->route, NULL);
	if (qp->edev->ethernet) {
		qp->sgid = grh->sgid_attr->gid;
		qp->gid_type = grh->sgid_attr->gid_type;
		qp->dgid = grh->dgid;
	} else {
		qp->dlid = rdma_ah_get_dlid(ah);
	}
}

static void emu_apply_attr(struct emu_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_PORT) {
		own->port_num = attr->port_num;
		qp->port = &qp->edev->ports[attr->port_num - 1];
	}
	if (mask & IB_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IB_QP_ACCESS_FLAGS) {
		own->qp_access_flags = attr->qp_access_flags;
		WRITE_ONCE(qp->access, attr->qp_access_flags);
	}
	if (mask & IB_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IB_QP_DEST_QPN) {
		own->dest_qp_num = attr->dest_qp_num;
		qp->dest_qpn = attr->dest_qp_num;
	}
	if (mask & IB_QP_RQ_PSN)
		own->rq_psn = attr->rq_psn & 0xffffff;
	if (mask & IB_QP_SQ_PSN)
		own->sq_psn = attr->sq_psn & 0xffffff;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		own->max_rd_atomic = attr->max_rd_atomic;
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		own->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_TIMEOUT)
		own->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		own->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		own->rnr_retry = attr->rnr_retry;
	if (mask & IB_QP_MIN_RNR_TIMER) {
		own->min_rnr_timer = attr->min_rnr_timer;
		WRITE_ONCE(qp->rnr_timer, attr->min_rnr_timer);
	}
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		own->en_sqd_async_notify = attr->en_sqd_async_notify;
	if (mask & IB_QP_AV)
		emu_apply_path(qp, &attr->ah_attr);
}

static void emu_qp_reset(struct emu_qp *qp)
{
	atomic_set(&qp->state, IB_QPS_RESET);
	emu_gate_drain(&qp->gate);
	emu_qp_forget_completions(qp);
	/* A poller may be about to retire an entry of a ring that starts anew. */
	synchronize_rcu();
	emu_ring_reset(&qp->sq);
	emu_ring_reset(&qp->rq);
	atomic_set(&qp->comm_est, 0);
	atomic_set(&qp->fatal, 0);
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->access = 0;
	qp->port = NULL;
}

/*
 * Frozen. Of all changes of state, to IB_QPS_ERR may come from elsewhere at any
 * time, and then the way back leads through a reset only.
 */
static int emu_qp_move(struct emu_qp *qp, enum ib_qp_state from, enum ib_qp_state to,
		       const struct ib_qp_attr *attr, int mask)
{
	switch (to) {
	case IB_QPS_RESET:
		emu_qp_reset(qp);
		return 0;
	case IB_QPS_ERR:
		/* Full barrier, pairs with the one in emu_post_recv(). */
		atomic_xchg(&qp->state, IB_QPS_ERR);
		emu_gate_close(&qp->gate);
		return 0;
	default:
		break;
	}

	/* Before RTR nobody is let in, but somebody may be on the way out. */
	if (from == IB_QPS_INIT)
		emu_gate_drain(&qp->gate);
	if (atomic_cmpxchg(&qp->state, from, to) != from)
		return -EINVAL;
	emu_apply_attr(qp, attr, mask);
	if (from == IB_QPS_INIT && to == IB_QPS_RTR)
		emu_gate_open(&qp->gate);
	/* Frozen between two entries: nothing is in flight. */
	if (from == IB_QPS_RTS && to == IB_QPS_SQD && attr->en_sqd_async_notify &&
	    (mask & IB_QP_EN_SQD_ASYNC_NOTIFY))
		ib_qp_notify_event(&qp->ibqp, IB_EVENT_SQ_DRAINED);
	return 0;
}

static int emu_modify_frozen(struct emu_qp *qp, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state from = atomic_read(&qp->state);
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;
	int err;

	if ((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != from)
		return -EINVAL;
	if (!ib_modify_qp_is_ok(from, to, qp->ibqp.qp_type, mask))
		return -EINVAL;
	err = emu_check_attr(qp, attr, from, mask);
	return err ?: emu_qp_move(qp, from, to, attr, mask);
}

int emu_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct emu_qp *qp = to_eqp(ibqp);
	int err;

	mutex_lock(&qp->lock);
	emu_qp_freeze(qp);
	err = emu_modify_frozen(qp, attr, mask);
	emu_qp_thaw(qp);
	mutex_unlock(&qp->lock);
	return err;
}

int emu_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init)
{
	struct emu_qp *qp = to_eqp(ibqp);

	mutex_lock(&qp->lock);
	*attr = qp->attr;
	attr->qp_state = atomic_read(&qp->state);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->init.cap;
	*init = qp->init;
	mutex_unlock(&qp->lock);
	return 0;
}
