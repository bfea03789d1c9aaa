// SPDX-License-Identifier: GPL-2.0-only
/*
 * Execution of one work queue entry of a reliable connection.
 *
 * The owner of the requester's doorbell acts for both sides: it finds the
 * responder, enters its gate, and moves the data in one copy. While it is in the
 * gate the responder can neither be flushed, nor reset, nor destroyed. When the
 * responder fails, its gate is closed and its own owner flushes it, after all
 * engines have left.
 *
 * Which end sees what when something is wrong follows the IBTA's rules for the
 * requester's and the responder's completion, as the names of the status codes
 * give them; kunit/ has a case for each.
 */
#include <kverbs/completion.h>

#include "cqring.h"
#include "memory.h"

/* Bytes copied between two looks at whether someone else wants the CPU. */
#define EMU_COPY_CHUNK	SZ_64K

/* Under RCU. The last one out of a closed gate lets the flush of receives begin. */
static void emu_leave_peer(struct emu_qp *peer)
{
	if (emu_gate_leave(&peer->gate))
		emu_qp_ring_deferred(peer);
}

void emu_exec_end(struct emu_exec *ex)
{
	struct emu_qp *peer = ex->peer;

	if (!peer)
		return;
	ex->peer = NULL;
	rcu_read_lock();
	emu_leave_peer(peer);
	rcu_read_unlock();
}

/* Is @peer connected to @qp, as @qp is to @peer? In the peer's gate. */
static bool emu_is_connected(const struct emu_qp *qp, const struct emu_qp *peer)
{
	if (peer->ibqp.qp_type != qp->ibqp.qp_type || peer->dest_qpn != qp->ibqp.qp_num)
		return false;
	if (qp->edev->ethernet)
		return peer->gid_type == qp->gid_type &&
		       !memcmp(&peer->dgid, &qp->sgid, sizeof(qp->sgid)) &&
		       !memcmp(&peer->sgid, &qp->dgid, sizeof(qp->dgid));
	return peer->dlid == qp->port->lid;
}

static struct emu_qp *emu_find_peer(struct emu_qp *qp)
{
	struct emu_port *port;
	struct emu_qp *peer;

	if (READ_ONCE(qp->port->state) != IB_PORT_ACTIVE)
		return NULL;
	port = emu_fabric_route(qp);
	if (!port || READ_ONCE(port->state) != IB_PORT_ACTIVE)
		return NULL;
	peer = xa_load(&port->edev->qps, qp->dest_qpn);
	if (!peer || !emu_gate_enter(&peer->gate))
		return NULL;
	if (likely(emu_is_connected(qp, peer) && peer->port == port))
		return peer;
	emu_leave_peer(peer);
	return NULL;
}

/* The responder, entered, or NULL if nobody answers. */
static struct emu_qp *emu_exec_peer(struct emu_exec *ex)
{
	if (likely(ex->peer && !emu_gate_is_closed(&ex->peer->gate)))
		return ex->peer;
	emu_exec_end(ex);
	rcu_read_lock();
	ex->peer = emu_find_peer(ex->qp);
	rcu_read_unlock();

	if (ex->peer && unlikely(!atomic_read(&ex->peer->comm_est)) &&
	    !atomic_xchg(&ex->peer->comm_est, 1) &&
	    atomic_read(&ex->peer->state) == IB_QPS_RTR)
		ib_qp_notify_event(&ex->peer->ibqp, IB_EVENT_COMM_EST);
	return ex->peer;
}

/* Ends the requester's entry in error, and with it the queue pair's work. */
static enum emu_verdict emu_fail(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				 enum ib_wc_status status, enum emu_syndrome why)
{
	emu_complete_send(ex->qp, wqe, pos, status, why);
	emu_qp_fail(ex->qp);
	return EMU_FAILED;
}

/* The responder found the requester at fault. Nothing of its own completes. */
static enum emu_verdict emu_refuse(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				   enum ib_wc_status status, enum emu_syndrome why)
{
	ib_qp_notify_event(&ex->peer->ibqp, status == IB_WC_REM_ACCESS_ERR ?
			   IB_EVENT_QP_ACCESS_ERR : IB_EVENT_QP_REQ_ERR);
	emu_qp_fail(ex->peer);
	return emu_fail(ex, wqe, pos, status, why);
}

/* Copies @length bytes, or until one side fails; the caller looks at ->why of both. */
static void emu_copy(struct emu_cursor *to, struct emu_cursor *from, u32 length, bool may_sleep)
{
	size_t len;

	while (length && emu_cursor_next(from) && emu_cursor_next(to)) {
		len = min(from->len, to->len);
		len = min_t(size_t, len, min_t(u32, length, EMU_COPY_CHUNK));
		memcpy(to->addr, from->addr, len);
		to->addr += len;
		to->len -= len;
		from->addr += len;
		from->len -= len;
		length -= len;
		/* A short message is not worth a reschedule of its own. */
		if (len == EMU_COPY_CHUNK && may_sleep)
			cond_resched();
	}
}

/*
 * Opens the requester's own buffers, before the peer hears of the message. Returns
 * false with the reason in @local->why if they are not usable.
 */
static bool emu_open_local(struct emu_exec *ex, struct emu_swqe *wqe, int access,
			   struct emu_cursor *local)
{
	if (unlikely(wqe->send_flags & IB_SEND_INLINE)) {
		emu_cursor_init_inline(local, ex->qp, wqe->sge, wqe->length);
		return true;
	}
	emu_cursor_init(local, ex->qp, wqe->sge, wqe->num_sge, access);
	if (likely(emu_cursor_check(local)))
		return true;
	emu_cursor_end(local);
	return false;
}

/* Gives the responder its completion. False if that is lost, and the responder in error. */
static bool emu_complete_recv(struct emu_exec *ex, const struct emu_swqe *wqe,
			      struct emu_rwqe *rwqe, u32 rpos, enum ib_wc_status status,
			      enum emu_syndrome why)
{
	struct emu_qp *peer = ex->peer;
	struct emu_cq *cq = to_ecq(peer->ibqp.recv_cq);
	u64 wr_id = rwqe->wr_id;
	struct emu_completion *wc;
	u32 pos;

	emu_ring_free(&peer->rq, &rwqe->slot, rpos);
	wc = emu_cq_begin(cq, &pos);
	if (unlikely(!wc)) {
		emu_qp_lost(peer);
		return false;
	}
	wc->wr_id = wr_id;
	wc->qp = peer;
	wc->wqe_pos = rpos;
	wc->byte_len = wqe->length;
	wc->ex.imm_data = wqe->ex.imm_data;
	wc->src_qp = ex->qp->ibqp.qp_num;
	wc->wc_flags = peer->edev->ethernet ? IB_WC_GRH : 0;
	wc->slid = ex->qp->port->lid;
	wc->pkey_index = peer->attr.pkey_index;
	wc->vendor_err = why;
	wc->opcode = IB_WC_RECV;
	wc->status = status;
	wc->port_num = peer->port->num;
	wc->recv = true;

	switch (wqe->opcode) {
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wc->opcode = IB_WC_RECV_RDMA_WITH_IMM;
		fallthrough;
	case IB_WR_SEND_WITH_IMM:
		wc->wc_flags |= IB_WC_WITH_IMM;
		break;
	case IB_WR_SEND_WITH_INV:
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
		break;
	}
	emu_cq_end(cq, wc, pos,
		   status != IB_WC_SUCCESS || (wqe->send_flags & IB_SEND_SOLICITED));
	return true;
}

/* Ends both sides: the responder's receive with @status, the requester's with @rstatus. */
static enum emu_verdict emu_fail_recv(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				      struct emu_rwqe *rwqe, u32 rpos,
				      enum ib_wc_status status, enum ib_wc_status rstatus,
				      enum emu_syndrome why)
{
	emu_complete_recv(ex, wqe, rwqe, rpos, status, why);
	emu_qp_fatal(ex->peer);
	return emu_fail(ex, wqe, pos, rstatus, EMU_SYN_REMOTE);
}

/* A message of @length bytes went from one port to another. */
static inline void emu_count_message(struct emu_port *from, struct emu_port *to, u32 length)
{
	emu_count(from, EMU_CNT_XMIT_DATA, length);
	emu_count(from, EMU_CNT_XMIT_PACKETS, 1);
	emu_count(to, EMU_CNT_RCV_DATA, length);
	emu_count(to, EMU_CNT_RCV_PACKETS, 1);
}

/* Both sides have what they wanted; @rwqe is NULL if no receive was used. */
static inline enum emu_verdict emu_succeed(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					   struct emu_rwqe *rwqe, u32 rpos)
{
	if (rwqe && unlikely(!emu_complete_recv(ex, wqe, rwqe, rpos, IB_WC_SUCCESS,
						EMU_SYN_NONE)))
		return emu_fail(ex, wqe, pos, IB_WC_REM_OP_ERR, EMU_SYN_REMOTE);
	emu_complete_send(ex->qp, wqe, pos, IB_WC_SUCCESS, EMU_SYN_NONE);
	return EMU_DONE;
}

/* Before a receive is used: what the message asks of the responder besides. */
static enum emu_verdict emu_exec_send_inv(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	enum emu_syndrome why = EMU_SYN_NONE;
	enum emu_verdict verdict;
	u32 rpos;

	/* Nothing is invalidated for a message that will come again. */
	if (!emu_ring_peek(&ex->peer->rq, &rpos))
		return EMU_RNR;
	verdict = emu_mr_invalidate(ex->peer, wqe->ex.invalidate_rkey, &why);
	if (verdict == EMU_FAILED)
		return emu_refuse(ex, wqe, pos, IB_WC_REM_ACCESS_ERR, why);
	return verdict;
}

/*
 * Copies a message into a receive, by cursors. Ends both sides if that fails.
 * Not inline, like all that has cursors and is off the path of simple messages:
 * kernels are built to clear a function's variables on entry.
 */
static noinline enum emu_verdict emu_scatter(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					     struct emu_rwqe *rwqe, u32 rpos,
					     struct emu_cursor *from)
{
	struct emu_cursor to;

	emu_cursor_init(&to, ex->peer, rwqe->sge, rwqe->num_sge, IB_ACCESS_LOCAL_WRITE);
	emu_copy(&to, from, wqe->length, ex->may_sleep);
	emu_cursor_end(&to);
	if (unlikely(to.why))
		return emu_fail_recv(ex, wqe, pos, rwqe, rpos, IB_WC_LOC_PROT_ERR,
				     IB_WC_REM_OP_ERR, to.why);
	if (unlikely(from->why))
		return emu_fail_recv(ex, wqe, pos, rwqe, rpos, IB_WC_LOC_QP_OP_ERR,
				     IB_WC_LOC_PROT_ERR, from->why);
	emu_count_message(ex->qp->port, ex->peer->port, wqe->length);
	return emu_succeed(ex, wqe, pos, rwqe, rpos);
}

/* A simple message into something else. */
static noinline enum emu_verdict emu_scatter_simple(struct emu_exec *ex, struct emu_swqe *wqe,
						    u32 pos, struct emu_rwqe *rwqe, u32 rpos,
						    void *simple)
{
	struct emu_cursor from;

	emu_cursor_init_inline(&from, ex->qp, simple, wqe->length);
	return emu_scatter(ex, wqe, pos, rwqe, rpos, &from);
}

/* The message is in memory at @simple or, if that is NULL, where @from leads. */
static enum emu_verdict emu_exec_send_data(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					   void *simple, struct emu_cursor *from)
{
	enum emu_verdict verdict;
	struct emu_rwqe *rwqe;
	void *to;
	u32 rpos;

	if (unlikely(!emu_exec_peer(ex)))
		return EMU_NO_RESPONSE;
	if (unlikely(wqe->opcode == IB_WR_SEND_WITH_INV)) {
		verdict = emu_exec_send_inv(ex, wqe, pos);
		if (verdict != EMU_DONE)
			return verdict;
	}
	rwqe = emu_ring_claim(&ex->peer->rq, &rpos);
	if (unlikely(!rwqe))
		return EMU_RNR;
	if (unlikely(wqe->length > rwqe->length))
		return emu_fail_recv(ex, wqe, pos, rwqe, rpos, IB_WC_LOC_LEN_ERR,
				     IB_WC_REM_INV_REQ_ERR, EMU_SYN_LENGTH);

	if (unlikely(!simple))
		return emu_scatter(ex, wqe, pos, rwqe, rpos, from);
	to = emu_simple_span(ex->peer, rwqe->sge, rwqe->num_sge);
	if (unlikely(!to))
		return emu_scatter_simple(ex, wqe, pos, rwqe, rpos, simple);
	memcpy(to, simple, wqe->length);
	emu_count_message(ex->qp->port, ex->peer->port, wqe->length);
	return emu_succeed(ex, wqe, pos, rwqe, rpos);
}

static noinline enum emu_verdict emu_exec_send_gather(struct emu_exec *ex, struct emu_swqe *wqe,
						      u32 pos)
{
	enum emu_verdict verdict;
	struct emu_cursor from;

	if (unlikely(!emu_open_local(ex, wqe, 0, &from)))
		return emu_fail(ex, wqe, pos, IB_WC_LOC_PROT_ERR, from.why);
	verdict = emu_exec_send_data(ex, wqe, pos, NULL, &from);
	emu_cursor_end(&from);
	return verdict;
}

static enum emu_verdict emu_exec_send(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	void *simple = NULL;

	if (likely(wqe->length <= EMU_COPY_CHUNK))
		simple = emu_simple_span(ex->qp, wqe->sge, wqe->num_sge);
	if (unlikely(!simple))
		return emu_exec_send_gather(ex, wqe, pos);
	return emu_exec_send_data(ex, wqe, pos, simple, NULL);
}

/*
 * Copies between the requester's buffers and the responder's region. A message
 * of length 0 reaches no memory and its key is not looked at.
 */
static enum emu_verdict emu_exec_rdma_data(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					   struct emu_cursor *local, int access)
{
	struct ib_sge there = {
		.addr = wqe->rdma.remote_addr,
		.length = wqe->length,
		.lkey = wqe->rdma.rkey,
	};
	struct emu_cursor remote;

	if (unlikely((READ_ONCE(ex->peer->access) & access) != access))
		return emu_refuse(ex, wqe, pos, IB_WC_REM_INV_REQ_ERR, EMU_SYN_QP_ACCESS);

	emu_cursor_init(&remote, ex->peer, &there, 1, access);
	if (access == IB_ACCESS_REMOTE_READ)
		emu_copy(local, &remote, wqe->length, ex->may_sleep);
	else
		emu_copy(&remote, local, wqe->length, ex->may_sleep);
	emu_cursor_end(&remote);
	if (unlikely(remote.why))
		return emu_refuse(ex, wqe, pos, IB_WC_REM_ACCESS_ERR, remote.why);
	if (unlikely(local->why))
		return emu_fail(ex, wqe, pos, IB_WC_LOC_PROT_ERR, local->why);
	if (access == IB_ACCESS_REMOTE_READ)
		emu_count_message(ex->peer->port, ex->qp->port, wqe->length);
	else
		emu_count_message(ex->qp->port, ex->peer->port, wqe->length);
	return EMU_DONE;
}

static noinline enum emu_verdict emu_exec_write(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	bool imm = wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct emu_rwqe *rwqe = NULL;
	enum emu_verdict verdict;
	struct emu_cursor local;
	u32 rpos;

	if (unlikely(!emu_open_local(ex, wqe, 0, &local)))
		return emu_fail(ex, wqe, pos, IB_WC_LOC_PROT_ERR, local.why);
	if (unlikely(!emu_exec_peer(ex)))
		verdict = EMU_NO_RESPONSE;
	else if (imm && !emu_ring_peek(&ex->peer->rq, &rpos))
		verdict = EMU_RNR;
	else
		verdict = emu_exec_rdma_data(ex, wqe, pos, &local, IB_ACCESS_REMOTE_WRITE);
	emu_cursor_end(&local);
	if (verdict != EMU_DONE)
		return verdict;

	if (imm) {
		rwqe = emu_ring_claim(&ex->peer->rq, &rpos);
		/* The only other taker is the flush, and it waits for the gate. */
		if (WARN_ON_ONCE(!rwqe))
			return EMU_RNR;
	}
	return emu_succeed(ex, wqe, pos, rwqe, rpos);
}

static noinline enum emu_verdict emu_exec_read(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	enum emu_verdict verdict;
	struct emu_cursor local;

	if (unlikely(!emu_open_local(ex, wqe, IB_ACCESS_LOCAL_WRITE, &local)))
		return emu_fail(ex, wqe, pos, IB_WC_LOC_PROT_ERR, local.why);
	if (unlikely(!emu_exec_peer(ex)))
		verdict = EMU_NO_RESPONSE;
	else if (unlikely(!ex->peer->attr.max_dest_rd_atomic))
		verdict = emu_refuse(ex, wqe, pos, IB_WC_REM_INV_REQ_ERR, EMU_SYN_QP_ACCESS);
	else
		verdict = emu_exec_rdma_data(ex, wqe, pos, &local, IB_ACCESS_REMOTE_READ);
	emu_cursor_end(&local);
	return verdict == EMU_DONE ? emu_succeed(ex, wqe, pos, NULL, 0) : verdict;
}

static noinline enum emu_verdict emu_exec_local(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	enum emu_syndrome why = EMU_SYN_NONE;
	enum emu_verdict verdict;

	if (wqe->opcode == IB_WR_REG_MR)
		verdict = emu_mr_register(ex->qp, wqe, &why);
	else
		verdict = emu_mr_invalidate(ex->qp, wqe->ex.invalidate_rkey, &why);
	if (verdict == EMU_FAILED)
		return emu_fail(ex, wqe, pos, IB_WC_MW_BIND_ERR, why);
	return verdict == EMU_DONE ? emu_succeed(ex, wqe, pos, NULL, 0) : verdict;
}

/**
 * emu_exec_wqe() - execute the oldest entry of a send queue
 * @ex: the owner at work
 * @wqe: the entry
 * @pos: its position
 *
 * Context: The owner of the queue pair's doorbell.
 * Return: see enum emu_verdict. With EMU_DONE and EMU_FAILED the entry is gone,
 * else it is where it was.
 */
enum emu_verdict emu_exec_wqe(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	switch (wqe->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
		return emu_exec_send(ex, wqe, pos);
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return emu_exec_write(ex, wqe, pos);
	case IB_WR_RDMA_READ:
		return emu_exec_read(ex, wqe, pos);
	default:
		return emu_exec_local(ex, wqe, pos);
	}
}
