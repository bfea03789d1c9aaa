// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs: life, states and attributes.
 *
 * ->lock serialises modify, query, destroy, and the doorbell of a process that is refused. All
 * but query, and a change within RTS, also freeze the queue pair (see doorbell.c), so that none of
 * its entries is executed while they change it. At the same time, others use:
 *
 *   ->state	engines set it to IB_QPS_ERR on an error, hence the cmpxchg in
 *		emu_qp_move(). Posters only read it.
 *   ->gate	open from RTR on until an error or a reset. What a responder uses
 *		(peer, path, limits) is written while it is closed and drained;
 *		in SQD it is closed for that, with ->changing set to say that it
 *		will be open again in a moment, and the fabric's generation changes
 *		before it opens. ->access, ->qkey and ->rnr_timer may change while
 *		it is open, and are read once.
 *
 * A queue pair that is destroyed can still be reached by: an engine that is its
 * responder (the gate is drained), its owner or its timer (it is frozen for good),
 * pollers that hold one of its completions (struck out; a grace period passes
 * before the midlayer frees the memory), lookups by number (likewise) and engines that
 * remember it as their peer (likewise, after a change of the fabric's generation).
 */
#include <linux/slab.h>
#include <kverbs/completion.h>
#include <rdma/ib_addr.h>

#include "../net/net.h"
#include "../net/transport.h"
#include "doorbell.h"
#include "flush.h"
#include "recv.h"

/*
 * Lower numbers are for the management queue pairs, and a margin. There are many more numbers than
 * queue pairs, so that one is not reused soon.
 */
#define EMU_QPN_LIMIT	XA_LIMIT(16, (1 << 20) + 15)

/* The Q_Key of queue pair 1: IBTA vol. 1, 3.5.3. */
#define EMU_GSI_QKEY	0x80010000

#define EMU_SEND_OPS	(BIT_ULL(IB_WR_SEND) | BIT_ULL(IB_WR_SEND_WITH_IMM))
#define EMU_UC_OPS	(EMU_SEND_OPS | BIT_ULL(IB_WR_RDMA_WRITE) |		\
			 BIT_ULL(IB_WR_RDMA_WRITE_WITH_IMM) |			\
			 BIT_ULL(IB_WR_LOCAL_INV) | BIT_ULL(IB_WR_REG_MR) |	\
			 BIT_ULL(IB_WR_BIND_MW))
#define EMU_RC_OPS	(EMU_UC_OPS | BIT_ULL(IB_WR_SEND_WITH_INV) |		\
			 BIT_ULL(IB_WR_RDMA_READ) |				\
			 BIT_ULL(IB_WR_RDMA_READ_WITH_INV) |			\
			 BIT_ULL(IB_WR_ATOMIC_CMP_AND_SWP) |			\
			 BIT_ULL(IB_WR_ATOMIC_FETCH_AND_ADD))

/* See user.h. */
const struct emu_user_ops *emu_user;

/* The attributes that engines look at when they act as our responder. */
#define EMU_PEER_ATTRS	(IB_QP_AV | IB_QP_PORT | IB_QP_PKEY_INDEX | IB_QP_MAX_DEST_RD_ATOMIC)

#define EMU_QP_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND)

/**
 * emu_qp_fail() - put a queue pair in the error state
 * @qp: queue pair
 *
 * Its owner flushes it, or a runner if it has no owner; receives are flushed after
 * the engines that act as its responder have left. Does nothing in states that
 * cannot fail, or if the queue pair is in the error state already.
 *
 * Context: Any but NMI. The owner of @qp, someone inside its gate, or whoever has polled one of
 * its completions and keeps preemption off since.
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
	/* Full barriers above, paired with the one in emu_qp_park(). */
	emu_qp_unpark(qp);
}

/**
 * emu_qp_fail_sends() - put a queue pair in the SQE state
 * @qp: queue pair of an unreliable transport
 *
 * It goes on receiving. Its owner, the caller, flushes its send queue.
 *
 * Context: Any but NMI. The owner of @qp.
 */
void emu_qp_fail_sends(struct emu_qp *qp)
{
	int state = atomic_read(&qp->state);

	do {
		if (state != IB_QPS_RTS && state != IB_QPS_SQD)
			return;
	} while (!atomic_try_cmpxchg(&qp->state, &state, IB_QPS_SQE));
	/* The entry that was under way has ended. */
	qp->retrying = false;
	WRITE_ONCE(qp->finishing, false);
}

/**
 * emu_qp_drained() - report that a send queue in SQD has nothing under way any
 *	more
 * @qp: queue pair
 *
 * Context: Any but NMI. The owner of @qp, or whoever froze it.
 */
void emu_qp_drained(struct emu_qp *qp)
{
	WRITE_ONCE(qp->finishing, false);
	if (qp->attr.en_sqd_async_notify)
		ib_qp_notify_event(&qp->ibqp, IB_EVENT_SQ_DRAINED);
}

/* As emu_qp_fail(), and raises the event, at most once between two resets. */
static void emu_qp_fatal(struct emu_qp *qp)
{
	emu_qp_fail(qp);
	if (!atomic_xchg(&qp->fatal, 1))
		ib_qp_notify_event(&qp->ibqp, IB_EVENT_QP_FATAL);
}

/**
 * emu_qp_lost() - handle a completion of a queue pair that found no room
 * @qp: queue pair
 *
 * Context: As emu_qp_fail().
 */
void emu_qp_lost(struct emu_qp *qp)
{
	/* One that went from RESET to the error state has no port yet. */
	if (qp->port)
		emu_port_count(qp->port, EMU_CNT_LOST, 1);
	emu_qp_fatal(qp);
}

/*
 * Bytes of an entry of the send queue. An entry of a datagram queue pair ends with
 * its address vector.
 */
static size_t emu_swqe_size(struct emu_qp *qp, const struct ib_qp_cap *cap)
{
	size_t size = sizeof(struct emu_swqe) + max_t(size_t, cap->max_inline_data,
						      cap->max_send_sge * sizeof(struct ib_sge));

	if (qp->ibqp.qp_type != IB_QPT_UD && qp->ibqp.qp_type != IB_QPT_GSI)
		return size;
	qp->av_offset = ALIGN(size, __alignof__(struct emu_av));
	return qp->av_offset + sizeof(struct emu_av);
}

static void emu_qp_free_rings(struct emu_qp *qp)
{
	emu_ring_destroy(&qp->sq);
	emu_ring_destroy(&qp->rq);
	kfree(qp->taken);
	kfree(qp->parked);
}

static int emu_qp_alloc_rings(struct emu_qp *qp, const struct ib_qp_cap *cap)
{
	u32 max_sge = qp->srq ? qp->srq->max_sge : qp->max_recv_sge;
	int err;

	/*
	 * @taken has room for a receive from any queue; @parked for one from the
	 * queue pair's own queue or SRQ, or for an empty placeholder.
	 */
	qp->taken = kmalloc(emu_rwqe_size(EMU_MAX_SGE), GFP_KERNEL_ACCOUNT);
	qp->parked = kmalloc(emu_rwqe_size(max(max_sge, 1U)), GFP_KERNEL_ACCOUNT);
	err = qp->taken && qp->parked ? 0 : -ENOMEM;
	if (!err)
		err = emu_ring_init(&qp->sq, qp->user_sq ? 1 : cap->max_send_wr,
				    emu_swqe_size(qp, cap));
	/* When receives come from elsewhere, the ring has depth 0 and so is always full. */
	if (!err)
		err = emu_ring_init(&qp->rq, qp->srq || qp->user_rq ? 0 : cap->max_recv_wr,
				    emu_rwqe_size(qp->max_recv_sge));
	if (err)
		emu_qp_free_rings(qp);
	return err;
}

/* Checks what the midlayer cannot check; it has checked the CQs and the device's limits. */
static int emu_check_init(const struct ib_qp_init_attr *init)
{
	u32 flags = 0;

	if (!emu_has_qp_type(init->qp_type))
		return -EOPNOTSUPP;
	if (init->qp_type == IB_QPT_UD)
		flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	if ((init->create_flags & ~flags) || (init->srq && init->qp_type == IB_QPT_GSI))
		return -EOPNOTSUPP;
	return init->cap.max_inline_data > EMU_MAX_INLINE ? -EINVAL : 0;
}

u64 emu_send_ops(enum ib_qp_type type)
{
	switch (type) {
	case IB_QPT_RC:
		return EMU_RC_OPS;
	case IB_QPT_UC:
		return EMU_UC_OPS;
	default:
		return EMU_SEND_OPS;
	}
}

/*
 * Only RC and UC have plain operations, and only if a request may have an element. A process's
 * requests are checked elsewhere, as user/send.c fetches them.
 */
static u32 emu_plain_ops(const struct emu_qp *qp, const struct ib_qp_init_attr *init)
{
	u32 ops = EMU_DIRECT_OPS;

	if (qp->user_sq || !init->cap.max_send_sge ||
	    (init->qp_type != IB_QPT_RC && init->qp_type != IB_QPT_UC))
		return 0;
	return ops & emu_send_ops(init->qp_type);
}

static void emu_qp_set_transport(struct emu_qp *qp, const struct emu_transport *transport)
{
	if (qp->transport && qp->transport != transport)
		qp->transport->forget(qp);
	qp->transport = transport;
	qp->fastpath = transport->fastpath && !emu_qp_is_datagram(qp);
	WRITE_ONCE(qp->nr_direct_ops, qp->fastpath && qp->ibqp.qp_type == IB_QPT_RC &&
				      qp->plain_ops ? EMU_NR_DIRECT_OPS : 0);
}

static void emu_qp_set_port(struct emu_qp *qp, u32 port_num)
{
	qp->attr.port_num = port_num;
	qp->port = &qp->edev->ports[port_num - 1];
	emu_qp_set_transport(qp, qp->port->transport);
}

/* Each port has one queue pair 1. Returns -EBUSY if it exists. */
static int emu_qp_publish_gsi(struct emu_qp *qp, u32 port_num)
{
	struct emu_port *port = &qp->edev->ports[port_num - 1];

	qp->ibqp.qp_num = EMU_GSI_QPN;
	qp->qkey = EMU_GSI_QKEY;
	emu_qp_set_port(qp, port_num);
	return cmpxchg((struct emu_qp __force **)&port->gsi, NULL, qp) ? -EBUSY : 0;
}

static int emu_qp_publish(struct emu_qp *qp)
{
	struct emu_device *edev = qp->edev;
	int err;

	if (qp->ibqp.qp_type == IB_QPT_GSI)
		return emu_qp_publish_gsi(qp, qp->init.port_num);
	err = xa_alloc_cyclic(&edev->qps, &qp->ibqp.qp_num, qp, EMU_QPN_LIMIT, &edev->next_qpn,
			      GFP_KERNEL);
	return err < 0 ? err : 0;
}

static void emu_qp_unpublish(struct emu_qp *qp)
{
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		RCU_INIT_POINTER(qp->edev->ports[qp->init.port_num - 1].gsi, NULL);
	else
		xa_erase(&qp->edev->qps, qp->ibqp.qp_num);
}

int emu_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct emu_device *edev = to_edev(ibqp->device);
	struct emu_qp *qp = to_eqp(ibqp);
	int err;

	err = emu_check_init(init);
	if (err)
		return err;
	if (emu_fault_alloc(edev))
		return -ENOMEM;

	qp->edev = edev;
	qp->srq = init->srq ? to_esrq(init->srq) : NULL;
	atomic_set(&qp->recv_from, emu_recv_source(qp));
	/*
	 * A process posts through its ring only: a request in its doorbell call is refused, as the
	 * addresses of its inline data would be taken for the kernel's.
	 */
	qp->send_ops = qp->user_sq ? 0 : emu_send_ops(init->qp_type);
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->no_loopback = init->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	qp->max_inline = init->cap.max_inline_data;
	qp->max_send_sge = init->cap.max_send_sge;
	qp->plain_ops = emu_plain_ops(qp, init);
	/* It has no receive queue, and says so. */
	if (qp->srq)
		init->cap.max_recv_wr = init->cap.max_recv_sge = 0;
	qp->max_recv_sge = init->cap.max_recv_sge;
	qp->init = *init;
	atomic_set(&qp->state, IB_QPS_RESET);
	emu_gate_init(&qp->gate);
	mutex_init(&qp->lock);
	err = emu_qp_init_doorbell(qp);
	if (err)
		return err;
	err = emu_qp_alloc_rings(qp, &init->cap);
	if (err)
		goto free_doorbell;
	emu_qp_set_transport(qp, edev->ports[0].transport);
	err = emu_qp_publish(qp);
	if (err)
		goto free_rings;
	return 0;

free_rings:
	emu_qp_free_rings(qp);
free_doorbell:
	emu_qp_free_doorbell(qp);
	return err;
}

/* Strikes out the queue pair's completions in its CQs, or lets a process have them. No more come. */
static void emu_qp_forget_completions(struct emu_qp *qp)
{
	emu_cq_forget_qp(to_ecq(qp->ibqp.send_cq), qp);
	if (qp->ibqp.recv_cq != qp->ibqp.send_cq)
		emu_cq_forget_qp(to_ecq(qp->ibqp.recv_cq), qp);
}

/**
 * emu_qp_abandon() - end all that a queue pair does, for good
 * @qp: queue pair
 *
 * Its memory stays: for emu_destroy_qp(), or for a consumer that has left it on a device
 * that is being removed, and may still come to destroy it.
 *
 * Context: Process context.
 */
void emu_qp_abandon(struct emu_qp *qp)
{
	mutex_lock(&qp->lock);
	if (qp->ended)
		goto unlock;
	qp->ended = true;
	emu_qp_freeze(qp);
	/* Only once it is frozen: one connected to itself would not find its peer, and fail. */
	emu_qp_unpublish(qp);
	atomic_set(&qp->state, IB_QPS_RESET);
	emu_gate_drain(&qp->gate);
	/* Others may remember it as their peer: after a grace period, they must not touch it. */
	emu_fabric_changed();
	emu_qp_forget_completions(qp);
	emu_qp_exit_doorbell(qp);
	qp->transport->forget(qp);
unlock:
	mutex_unlock(&qp->lock);
}

int emu_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct emu_qp *qp = to_eqp(ibqp);

	emu_qp_abandon(qp);
	emu_qp_free_rings(qp);
	emu_qp_free_doorbell(qp);
	return 0;
}

static int emu_check_path(const struct emu_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	u32 own = mask & IB_QP_PORT ? attr->port_num : qp->attr.port_num;
	struct emu_av av;
	int err;

	if (rdma_ah_get_port_num(&attr->ah_attr) != own)
		return -EINVAL;
	err = emu_av_init(&av, qp->edev, &attr->ah_attr);
	if (err)
		return err;
	/* The other end of a connection cannot be a multicast group. */
	if (av.grh && rdma_is_multicast_addr((struct in6_addr *)&av.dgid))
		return -EINVAL;
	return av.dlid > EMU_MAX_LID ? -EINVAL : 0;
}

/* Checks what the midlayer cannot check; it has checked ranges and the device's limits. */
static int emu_check_attr(const struct emu_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	if (mask & (IB_QP_ALT_PATH | IB_QP_RATE_LIMIT | IB_QP_CAP))
		return -EOPNOTSUPP;
	/* Without an alternate path, it is always MIGRATED. */
	if ((mask & IB_QP_PATH_MIG_STATE) && attr->path_mig_state != IB_MIG_MIGRATED)
		return -EOPNOTSUPP;
	if ((mask & IB_QP_ACCESS_FLAGS) &&
	    (attr->qp_access_flags & ~(EMU_QP_ACCESS | IB_ACCESS_OPTIONAL)))
		return -EINVAL;
	if (mask & IB_QP_AV)
		return emu_check_path(qp, attr, mask);
	/* The path that it has would go on from another port. */
	if ((mask & IB_QP_PORT) && atomic_read(&qp->state) == IB_QPS_SQD &&
	    attr->port_num != qp->attr.port_num)
		return -EINVAL;
	return 0;
}

static void emu_apply_path(struct emu_qp *qp, const struct rdma_ah_attr *ah)
{
	/* A copy without the reference that the midlayer holds for the call. */
	qp->attr.ah_attr = *ah;
	qp->attr.ah_attr.grh.sgid_attr = NULL;
	emu_av_init(&qp->av, qp->edev, ah);
	qp->transport->forget(qp);
}

static void emu_apply_attr(struct emu_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct ib_qp_attr *own = &qp->attr;

	if (mask & IB_QP_PORT)
		emu_qp_set_port(qp, attr->port_num);
	if (mask & IB_QP_PKEY_INDEX)
		own->pkey_index = attr->pkey_index;
	if (mask & IB_QP_ACCESS_FLAGS) {
		own->qp_access_flags = attr->qp_access_flags & EMU_QP_ACCESS;
		WRITE_ONCE(qp->access, own->qp_access_flags);
	}
	if (mask & IB_QP_PATH_MTU)
		own->path_mtu = attr->path_mtu;
	if (mask & IB_QP_DEST_QPN) {
		own->dest_qp_num = attr->dest_qp_num;
		qp->dest_qpn = attr->dest_qp_num;
	}
	if (mask & IB_QP_RQ_PSN)
		own->rq_psn = attr->rq_psn & 0xffffff;
	if (mask & IB_QP_SQ_PSN) {
		own->sq_psn = attr->sq_psn & 0xffffff;
		qp->psn = own->sq_psn;
		qp->msn = 0;
	}
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
	if (mask & IB_QP_QKEY) {
		own->qkey = attr->qkey;
		if (qp->ibqp.qp_type != IB_QPT_GSI)
			WRITE_ONCE(qp->qkey, attr->qkey);
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
	/* A poller may be about to retire an entry; wait for it before the rings start anew. */
	synchronize_rcu();
	emu_drop_parked(qp);
	qp->unretired = 0;
	emu_ring_reset(&qp->sq);
	emu_ring_reset(&qp->rq);
	if (qp->user_sq)
		emu_user->reset(qp);
	atomic_set(&qp->comm_est, 0);
	atomic_set(&qp->fatal, 0);
	atomic_set(&qp->last_wqe, 0);
	qp->retrying = false;
	qp->finishing = false;
	memset(&qp->attr, 0, sizeof(qp->attr));
	memset(&qp->av, 0, sizeof(qp->av));
	qp->transport->forget(qp);
	qp->access = 0;
	/* Queue pair 1 keeps the port that it was created for. */
	if (qp->ibqp.qp_type == IB_QPT_GSI)
		emu_qp_set_port(qp, qp->init.port_num);
	else
		qp->port = NULL;
}

/*
 * Called after a change of state, with the queue pair frozen: it is between two entries, or has
 * one that waits to be tried again, which in SQD must still be finished.
 */
static void emu_qp_moved(struct emu_qp *qp, enum ib_qp_state from, enum ib_qp_state to)
{
	if (to == IB_QPS_RTS)
		qp->finishing = false;
	if (from != IB_QPS_RTS || to != IB_QPS_SQD)
		return;
	if (qp->retrying)
		qp->finishing = true;
	else
		emu_qp_drained(qp);
}

/*
 * Called with the queue pair frozen. At the same time, others may only change the state to
 * IB_QPS_ERR, which this must not undo: a reset is the only way back from there.
 */
static int emu_qp_move(struct emu_qp *qp, enum ib_qp_state from, enum ib_qp_state to,
		       const struct ib_qp_attr *attr, int mask)
{
	bool closed;

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

	/*
	 * Before RTR the gate lets nobody in, but somebody may not have left it yet. In SQD it is
	 * open; engines that find it closed meanwhile try again later.
	 */
	closed = from == IB_QPS_INIT || (from == IB_QPS_SQD && (mask & EMU_PEER_ATTRS));
	if (closed) {
		WRITE_ONCE(qp->changing, from == IB_QPS_SQD);
		emu_gate_drain(&qp->gate);
	}
	/*
	 * What was posted in SQE is flushed, not executed in RTS. Posters, with preemption off, that
	 * are half done would hide what others have posted behind them.
	 */
	if (from == IB_QPS_SQE && to == IB_QPS_RTS) {
		synchronize_rcu();
		emu_qp_flush_sends(qp);
	}
	if (atomic_cmpxchg(&qp->state, from, to) != from) {
		WRITE_ONCE(qp->changing, false);
		return -EINVAL;
	}
	/* The request for the event holds for one drain only: forget an earlier one. */
	if (from == IB_QPS_RTS && to == IB_QPS_SQD)
		qp->attr.en_sqd_async_notify = 0;
	emu_apply_attr(qp, attr, mask);
	if (closed && to != IB_QPS_INIT) {
		/* Others may remember it as their peer: they must check the new attributes. */
		emu_fabric_changed();
		emu_gate_open(&qp->gate);
		/*
		 * Full barrier, pairs with the cmpxchg in emu_qp_fail(): whoever finds the ring of
		 * a process's CQ full fails the queue pair, frozen or not.
		 */
		smp_mb();
		if (atomic_read(&qp->state) == IB_QPS_ERR)
			emu_gate_close(&qp->gate);
	}
	/* release: pairs with the acquire in emu_look_for_peer() */
	smp_store_release(&qp->changing, false);
	emu_qp_moved(qp, from, to);
	return 0;
}

/*
 * In SQD, a message under way must be finished as it began, and whoever asked to be told when it is
 * waits for that: until then the queue pair can only fail or be reset.
 */
static bool emu_qp_must_finish(const struct emu_qp *qp, enum ib_qp_state from,
			       enum ib_qp_state to, int mask)
{
	return from == IB_QPS_SQD && READ_ONCE(qp->finishing) &&
	       to != IB_QPS_RESET && to != IB_QPS_ERR &&
	       (to != from || (mask & ~(IB_QP_STATE | IB_QP_CUR_STATE)));
}

/* What a modify asks for. */
struct emu_change {
	enum ib_qp_state from, to;
	int mask;
};

/* Whether @qp can be changed so from the state that it is in at this moment. */
static int emu_check_change(struct emu_qp *qp, const struct ib_qp_attr *attr, int mask,
			    struct emu_change *change)
{
	enum ib_qp_state from = atomic_read(&qp->state);
	enum ib_qp_state to = mask & IB_QP_STATE ? attr->qp_state : from;

	/* uverbs sets IB_QP_PORT with each path, but it is not allowed for UC in SQD. */
	if (to == IB_QPS_SQD && qp->ibqp.qp_type == IB_QPT_UC && (mask & IB_QP_AV) &&
	    attr->port_num == qp->attr.port_num)
		mask &= ~IB_QP_PORT;
	if ((mask & IB_QP_CUR_STATE) && attr->cur_qp_state != from)
		return -EINVAL;
	if (!ib_modify_qp_is_ok(from, to, qp->ibqp.qp_type, mask) ||
	    emu_qp_must_finish(qp, from, to, mask))
		return -EINVAL;
	*change = (struct emu_change) { .from = from, .to = to, .mask = mask };
	return emu_check_attr(qp, attr, mask);
}

static int emu_modify_frozen(struct emu_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	struct emu_change change;
	int err;

	emu_qp_freeze(qp);
	/* Before it was frozen, engines may have changed the state, or begun what must be finished. */
	err = emu_check_change(qp, attr, mask, &change);
	if (!err)
		err = emu_qp_move(qp, change.from, change.to, attr, change.mask);
	emu_qp_thaw(qp);
	return err;
}

int emu_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct emu_qp *qp = to_eqp(ibqp);
	struct emu_change change;
	int err = -ENODEV;

	mutex_lock(&qp->lock);
	if (qp->ended)
		goto unlock;
	/*
	 * A request that waits to be tried again is tried when the queue pair thaws, and has all its
	 * tries again. That must not happen for a change that is refused; nor for one within RTS,
	 * which can be repeated at will, and is of nothing that the send queue uses.
	 */
	err = emu_check_change(qp, attr, mask, &change);
	if (err)
		goto unlock;
	if (change.from == IB_QPS_RTS && change.to == IB_QPS_RTS)
		emu_apply_attr(qp, attr, change.mask);
	else
		err = emu_modify_frozen(qp, attr, mask);
unlock:
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
	attr->sq_draining = attr->qp_state == IB_QPS_SQD && READ_ONCE(qp->finishing);
	attr->cap = qp->init.cap;
	*init = qp->init;
	mutex_unlock(&qp->lock);
	return 0;
}
