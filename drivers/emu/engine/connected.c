// SPDX-License-Identifier: GPL-2.0-only
/*
 * Connections: RC and UC.
 *
 * The owner of the requester's doorbell acts for both sides: it finds the
 * responder, enters its gate, and moves the data in one copy. While it is in the
 * gate the responder can neither be flushed, nor reset, nor destroyed. When the
 * responder fails, its gate is closed and its own owner flushes it, after all
 * engines have left.
 *
 * On an unreliable connection, the requester does not learn the fate of a
 * message. A message that the responder cannot take is dropped, and the
 * requester's entry succeeds.
 */
#include <kverbs/completion.h>
#include <kverbs/delay.h>

#include "fastpath.h"

/*
 * Returns the memory of a message that fastpath.h does not handle, if that is inline data or one
 * element in a region; the caller is inside that region's gate until it calls
 * emu_close_source(). NULL: the message needs a cursor.
 */
static inline void *emu_open_source(struct emu_exec *ex, struct emu_swqe *wqe, int access)
{
	struct emu_qp *qp = ex->qp;
	void *mem;

	if (wqe->length > EMU_SHORT_BYTES)
		return NULL;
	if (wqe->send_flags & IB_SEND_INLINE)
		return wqe->sge;
	mem = emu_target_open(&qp->source, qp->ibqp.pd, wqe->sge, wqe->num_sge, wqe->length,
			      access);
	if (mem)
		ex->source = qp->source.region;
	return mem;
}

/*
 * To be called, like emu_cursor_end(), before a message that has been delivered or dropped
 * completes: the consumer may free or invalidate the region, or map an FMR anew, as soon as it
 * sees the completion. What completes in error may do so earlier.
 */
static inline void emu_close_source(struct emu_exec *ex)
{
	if (!ex->source)
		return;
	emu_target_leave(ex->source);
	ex->source = NULL;
}

static bool emu_is_reliable(const struct emu_exec *ex)
{
	return ex->qp->ibqp.qp_type == IB_QPT_RC;
}

/* Completes the requester's entry with success, even if an unreliable message was dropped. */
static inline enum emu_outcome emu_succeed_send(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	emu_complete_send(ex->qp, wqe, pos, IB_WC_SUCCESS, EMU_SYN_NONE);
	return EMU_DONE;
}

/*
 * The responder cannot take the message now. Returns an outcome that makes a reliable connection
 * try again; on an unreliable one the message is dropped, and the entry completed.
 */
static noinline enum emu_outcome
emu_retry_or_drop(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos, enum emu_outcome outcome)
{
	if (outcome == EMU_RNR) {
		ex->rnr_timer = READ_ONCE(ex->peer->rnr_timer);
		if (emu_is_reliable(ex))
			emu_port_count(ex->peer->port, EMU_CNT_RNR_SENT, 1);
	}
	if (emu_is_reliable(ex) || outcome == EMU_AGAIN)
		return outcome;
	if (ex->peer)
		emu_port_count(ex->peer->port, EMU_CNT_DROPPED, 1);
	return emu_succeed_send(ex, wqe, pos);
}

/*
 * The responder found the requester at fault, and completes no receive. Returns EMU_FAILED; or
 * EMU_DROPPED on an unreliable connection, whose requester does not learn of it.
 */
static noinline enum emu_outcome
emu_refuse_message(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos, enum ib_wc_status status,
		   enum emu_syndrome why)
{
	if (!emu_is_reliable(ex)) {
		emu_retry_or_drop(ex, wqe, pos, EMU_RNR);
		return EMU_DROPPED;
	}
	emu_qp_fail(ex->peer);
	ib_qp_notify_event(&ex->peer->ibqp, status == IB_WC_REM_ACCESS_ERR ?
			   IB_EVENT_QP_ACCESS_ERR : IB_EVENT_QP_REQ_ERR);
	return emu_fail_local(ex, wqe, pos, status, why);
}

/* Fills in those fields of the receive completion that depend on the opcode of the message. */
static void emu_cqe_set_opcode(struct emu_cqe *cqe, const struct emu_swqe *wqe)
{
	cqe->opcode = IB_WC_RECV;
	switch (wqe->opcode) {
	case IB_WR_RDMA_WRITE_WITH_IMM:
		cqe->opcode = IB_WC_RECV_RDMA_WITH_IMM;
		fallthrough;
	case IB_WR_SEND_WITH_IMM:
		cqe->wc_flags |= IB_WC_WITH_IMM;
		cqe->ex.imm_data = wqe->ex.imm_data;
		break;
	case IB_WR_SEND_WITH_INV:
		cqe->wc_flags |= IB_WC_WITH_INVALIDATE;
		cqe->ex.invalidate_rkey = wqe->ex.invalidate_rkey;
		break;
	}
}

/*
 * Completes the responder's receive, with any status and for any opcode; emu_complete_recv() is
 * for the common case. Returns false if the completion was lost.
 */
static bool emu_complete_recv_as(struct emu_exec *ex, const struct emu_swqe *wqe,
				 const struct emu_rwqe *recv, enum ib_wc_status status,
				 enum emu_syndrome why)
{
	struct emu_qp *peer = ex->peer;
	struct emu_cqe *cqe;
	u32 pos;

	cqe = emu_recv_begin(peer, recv->wr_id, &pos);
	if (unlikely(!cqe))
		return false;
	cqe->status = status;
	cqe->vendor_err = why;
	cqe->byte_len = wqe->length;
	cqe->origin = ex->qp->origin;
	emu_cqe_set_opcode(cqe, wqe);
	if (unlikely(status != IB_WC_SUCCESS))
		cqe->wc_flags = 0;
	emu_cq_end(to_ecq(peer->ibqp.recv_cq), cqe, pos,
		   status != IB_WC_SUCCESS || (wqe->send_flags & IB_SEND_SOLICITED));
	return true;
}

/*
 * Ends both sides: the responder's receive with @status and, if the requester
 * learns of it, the requester's entry with @rstatus.
 */
static noinline enum emu_outcome emu_fail_recv(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					       const struct emu_rwqe *recv,
					       enum ib_wc_status status,
					       enum ib_wc_status rstatus, enum emu_syndrome why)
{
	/*
	 * This completion tells the cause, so it comes before those of the peer's send queue, which
	 * is flushed as soon as the peer has failed.
	 */
	emu_complete_recv_as(ex, wqe, recv, status, why);
	emu_qp_fail(ex->peer);
	if (!emu_is_reliable(ex))
		return emu_succeed_send(ex, wqe, pos);
	return emu_fail_local(ex, wqe, pos, rstatus, EMU_SYN_REMOTE);
}

/* The responder's completion found no room in its queue, so the responder is in error. */
noinline enum emu_outcome emu_lost_recv(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	if (!emu_is_reliable(ex))
		return emu_succeed_send(ex, wqe, pos);
	return emu_fail_local(ex, wqe, pos, IB_WC_REM_OP_ERR, EMU_SYN_REMOTE);
}

/* The message has arrived: counts it, and completes both sides. */
static enum emu_outcome emu_complete_both(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					  const struct emu_rwqe *recv)
{
	emu_exec_sent(ex, wqe->length);
	if (unlikely(!emu_complete_recv_as(ex, wqe, recv, IB_WC_SUCCESS, EMU_SYN_NONE)))
		return emu_lost_recv(ex, wqe, pos);
	return emu_succeed_send(ex, wqe, pos);
}

/*
 * The responder cannot invalidate the key. If the key names nothing of the responder's, this is an
 * access violation as for RDMA, reported at both ends. If it names something that cannot be
 * invalidated (IBTA vol. 1, 9.9.6.3, class J), the receive completes in error, and the requester
 * gets no answer.
 */
static noinline enum emu_outcome emu_refuse_inv(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
						struct emu_rwqe *recv, enum emu_syndrome why)
{
	struct emu_qp *peer = ex->peer;

	if (!emu_region_is_named(&peer->ibqp, wqe->ex.invalidate_rkey))
		return emu_fail_recv(ex, wqe, pos, recv, IB_WC_REM_ACCESS_ERR,
				     IB_WC_REM_ACCESS_ERR, why);
	emu_complete_recv_as(ex, wqe, recv, IB_WC_MW_BIND_ERR, why);
	emu_qp_fail(peer);
	ib_qp_notify_event(&peer->ibqp, IB_EVENT_QP_ACCESS_ERR);
	return EMU_NO_RESPONSE;
}

/*
 * Executes the invalidation that the message, on RC, asks the responder for. The receive is taken:
 * without one, nothing would be invalidated. It comes before the data, so the message can neither
 * be read from the memory that it invalidates nor be written there. If the message is tried again,
 * the key is already invalid, which is no error then.
 */
static noinline enum emu_outcome emu_exec_send_inv(struct emu_exec *ex, struct emu_swqe *wqe,
						   u32 pos, struct emu_rwqe *recv)
{
	enum emu_syndrome why = EMU_SYN_NONE;
	enum emu_outcome outcome;

	kverbs_delay("emu_send_inv");
	outcome = emu_region_invalidate(&ex->peer->ibqp, wqe->ex.invalidate_rkey, &why);
	if (outcome == EMU_FAILED)
		return emu_refuse_inv(ex, wqe, pos, recv, why);
	/* There is room for it, but where the address of the requester moves to another port. */
	if (outcome == EMU_AGAIN && unlikely(!emu_park_recv(ex->peer, recv)))
		return emu_fail_recv(ex, wqe, pos, recv, IB_WC_LOC_QP_OP_ERR, IB_WC_REM_OP_ERR,
				     EMU_SYN_MR_STATE);
	return outcome;
}

/*
 * Copies a message into a receive with cursors, and completes both sides. Not inline, like all
 * that has cursors and is not needed for simple messages: with CONFIG_INIT_STACK_ALL_*, an inlined
 * cursor would be initialised for each of these, too.
 */
static noinline enum emu_outcome emu_scatter(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					     struct emu_rwqe *recv, struct emu_cursor *from)
{
	struct emu_cursor to;
	u32 num_sge, cut;

	num_sge = emu_rwqe_clip(recv, wqe->length, &cut);
	emu_cursor_init(&to, &ex->peer->ibqp, emu_recv_pd(ex->peer), recv->sge, num_sge,
			IB_ACCESS_LOCAL_WRITE);
	emu_copy(ex, &to, from, wqe->length);
	emu_cursor_end(&to);
	emu_cursor_end(from);
	emu_close_source(ex);
	emu_rwqe_unclip(recv, num_sge, cut);
	/*
	 * Park the receive for the next try if the responder's memory is being moved; or for the
	 * next message if the requester's memory failed, which is none of the responder's business.
	 */
	if (unlikely(to.why == EMU_SYN_PAUSED || (!to.why && from->why)) &&
	    emu_park_recv(ex->peer, recv))
		return emu_fail_memory(ex, wqe, pos, to.why ?: from->why);
	if (unlikely(to.why))
		return emu_fail_recv(ex, wqe, pos, recv, IB_WC_LOC_PROT_ERR, IB_WC_REM_OP_ERR,
				     to.why);
	/*
	 * Reached only if the receive could not be parked: a connection has one requester, but
	 * while the address of that moves to another port, there may be two for a moment.
	 */
	if (unlikely(from->why))
		return emu_fail_recv(ex, wqe, pos, recv, IB_WC_LOC_QP_OP_ERR, IB_WC_LOC_PROT_ERR,
				     from->why);
	return emu_complete_both(ex, wqe, pos, recv);
}

/* Copies a simple message into a receive that is not simple. */
static noinline enum emu_outcome emu_scatter_simple(struct emu_exec *ex, struct emu_swqe *wqe,
						    u32 pos, struct emu_rwqe *recv, void *simple)
{
	struct emu_cursor from;

	emu_cursor_init_inline(&from, &ex->qp->ibqp, simple, wqe->length);
	return emu_scatter(ex, wqe, pos, recv, &from);
}

/* Copies a simple message into a receive in a region: most are contiguous, and need no cursor. */
static noinline enum emu_outcome emu_exec_send_to_region(struct emu_exec *ex,
							 struct emu_swqe *wqe, u32 pos,
							 struct emu_rwqe *recv, void *simple)
{
	struct emu_target *sink = &ex->qp->sink;
	void *to;

	to = emu_target_open(sink, emu_recv_pd(ex->peer), recv->sge, recv->num_sge, wqe->length,
			     IB_ACCESS_LOCAL_WRITE);
	if (unlikely(!to))
		return emu_scatter_simple(ex, wqe, pos, recv, simple);
	emu_copy_simple(to, simple, wqe->length);
	emu_target_leave(sink->region);
	emu_close_source(ex);
	return emu_complete_both(ex, wqe, pos, recv);
}

/* The responder has no use for the message now, whose memory is left before it completes. */
static noinline enum emu_outcome emu_send_not_taken(struct emu_exec *ex, struct emu_swqe *wqe,
						    u32 pos, struct emu_cursor *from,
						    enum emu_outcome outcome)
{
	if (from)
		emu_cursor_end(from);
	emu_close_source(ex);
	return emu_retry_or_drop(ex, wqe, pos, outcome);
}

/* The message is in memory at @simple or, if that is NULL, where @from leads. */
static enum emu_outcome emu_exec_send_data(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					   void *simple, struct emu_cursor *from)
{
	u64 room = emu_is_reliable(ex) ? 0 : wqe->length;
	enum emu_outcome outcome;
	struct emu_rwqe *recv = ex->qp->taken;
	void *to;

	outcome = emu_enter_peer(ex);
	if (unlikely(outcome != EMU_DONE))
		return emu_send_not_taken(ex, wqe, pos, from, outcome);
	outcome = emu_claim(ex->peer, room, recv);
	if (unlikely(outcome != EMU_DONE))
		return emu_send_not_taken(ex, wqe, pos, from, outcome);
	/* Not reached by unreliable messages: @room keeps them from taking a short receive. */
	if (unlikely(wqe->length > recv->length))
		return emu_fail_recv(ex, wqe, pos, recv, IB_WC_LOC_LEN_ERR,
				     IB_WC_REM_INV_REQ_ERR, EMU_SYN_LENGTH);
	if (unlikely(wqe->opcode == IB_WR_SEND_WITH_INV)) {
		outcome = emu_exec_send_inv(ex, wqe, pos, recv);
		if (outcome != EMU_DONE)
			return outcome;
	}

	if (unlikely(!simple))
		return emu_scatter(ex, wqe, pos, recv, from);
	to = emu_simple_span(recv->sge, recv->num_sge);
	if (!to)
		return emu_exec_send_to_region(ex, wqe, pos, recv, simple);
	memcpy(to, simple, wqe->length);
	emu_close_source(ex);
	return emu_complete_both(ex, wqe, pos, recv);
}

static noinline enum emu_outcome emu_exec_send_gather(struct emu_exec *ex, struct emu_swqe *wqe,
						      u32 pos)
{
	enum emu_outcome outcome;
	struct emu_cursor from;

	if (unlikely(!emu_open_local(ex, wqe, 0, &from)))
		return emu_fail_memory(ex, wqe, pos, from.why);
	outcome = emu_exec_send_data(ex, wqe, pos, NULL, &from);
	emu_cursor_end(&from);
	return outcome;
}

enum emu_outcome emu_exec_send(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	enum emu_outcome outcome;
	void *simple = NULL;

	if (likely(wqe->length <= EMU_SHORT_BYTES))
		simple = emu_simple_span(wqe->sge, wqe->num_sge) ?:
			 emu_open_source(ex, wqe, 0);
	if (unlikely(!simple))
		return emu_exec_send_gather(ex, wqe, pos);
	outcome = emu_exec_send_data(ex, wqe, pos, simple, NULL);
	emu_close_source(ex);
	return outcome;
}

/* The responder's memory that an RDMA operation names. */
static struct ib_sge emu_remote_sge(const struct emu_swqe *wqe)
{
	return (struct ib_sge) {
		.addr = wqe->rdma.remote_addr,
		.length = wqe->length,
		.lkey = wqe->rdma.rkey,
	};
}

/*
 * Refuses an access to the responder's memory. If the message had immediate data for a receive,
 * that receive reports the error as well: IBTA vol. 1, 11.6.2, local access error.
 */
static noinline enum emu_outcome emu_refuse_access(struct emu_exec *ex, struct emu_swqe *wqe,
						   u32 pos, enum emu_syndrome why)
{
	struct emu_rwqe *recv = ex->qp->taken;
	enum emu_outcome outcome;

	if (wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM && emu_is_reliable(ex)) {
		outcome = emu_claim(ex->peer, 0, recv);
		if (outcome == EMU_AGAIN)
			return outcome;
		if (outcome == EMU_DONE)
			emu_complete_recv_as(ex, wqe, recv, IB_WC_LOC_ACCESS_ERR, why);
	}
	return emu_refuse_message(ex, wqe, pos, IB_WC_REM_ACCESS_ERR, why);
}

/*
 * Opens the responder's memory. A message of length 0 touches no memory, and its
 * key is not checked. @local: the requester's memory, or NULL. Unless this returns EMU_DONE, it is
 * left here, before the message completes.
 */
static enum emu_outcome emu_open_remote(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					const struct ib_sge *there, int access,
					struct emu_cursor *local, struct emu_cursor *remote)
{
	if (unlikely((READ_ONCE(ex->peer->access) & access) != access)) {
		if (local)
			emu_cursor_end(local);
		return emu_refuse_message(ex, wqe, pos, IB_WC_REM_INV_REQ_ERR, EMU_SYN_QP_ACCESS);
	}
	emu_cursor_init(remote, &ex->peer->ibqp, ex->peer->ibqp.pd, there, 1, access);
	if (likely(emu_cursor_check(remote)))
		return EMU_DONE;
	if (local)
		emu_cursor_end(local);
	emu_cursor_end(remote);
	if (remote->why == EMU_SYN_PAUSED)
		return emu_retry_soon(ex);
	return emu_refuse_access(ex, wqe, pos, remote->why);
}

/* After a copy: whether the memory of either side has failed, or is being moved. */
static enum emu_outcome emu_check_copy(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				       const struct emu_cursor *local,
				       const struct emu_cursor *remote)
{
	if (likely(!remote->why && !local->why))
		return EMU_DONE;
	if (local->why)
		return emu_fail_memory(ex, wqe, pos, local->why);
	if (remote->why == EMU_SYN_PAUSED)
		return emu_retry_soon(ex);
	return emu_refuse_access(ex, wqe, pos, remote->why);
}

/*
 * Called with both sides opened; ends both cursors. The receive for immediate data is taken last,
 * when the data is in place and nothing can be refused any more. If an SRQ has run out of receives
 * by then, or the receive is still being posted, the entry is tried again, and writes the data once
 * more.
 */
static enum emu_outcome emu_write_data(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				       struct emu_cursor *local, struct emu_cursor *remote)
{
	bool imm = wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	enum emu_outcome outcome = EMU_DONE;
	struct emu_rwqe *recv = ex->qp->taken;

	if (likely(!imm || emu_has_receive(ex->peer)))
		emu_copy(ex, remote, local, wqe->length);
	else
		outcome = EMU_RNR;
	emu_cursor_end(local);
	emu_cursor_end(remote);
	if (unlikely(outcome != EMU_DONE))
		return emu_retry_or_drop(ex, wqe, pos, outcome);
	outcome = emu_check_copy(ex, wqe, pos, local, remote);
	if (unlikely(outcome != EMU_DONE))
		return outcome;
	if (unlikely(imm)) {
		outcome = emu_claim(ex->peer, 0, recv);
		if (outcome != EMU_DONE)
			return emu_retry_or_drop(ex, wqe, pos, outcome);
		return emu_complete_both(ex, wqe, pos, recv);
	}
	emu_exec_sent(ex, wqe->length);
	return emu_succeed_send(ex, wqe, pos);
}

/*
 * Executes an RDMA WRITE or READ without cursors. Returns false, with nothing done, if it needs
 * them.
 */
static noinline bool emu_exec_rdma_short(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	bool read = wqe->opcode == IB_WR_RDMA_READ, moved = false;
	struct emu_simple msg = emu_simple_of(wqe);
	void *local;

	if (!emu_enter_same_peer(ex))
		return false;
	local = emu_open_source(ex, wqe, read ? IB_ACCESS_LOCAL_WRITE : 0);
	if (local)
		moved = emu_simple_move(ex->qp, ex->peer, &msg, local, read);
	emu_close_source(ex);
	if (!moved)
		return false;
	emu_simple_moved(ex->qp, &msg, pos, read);
	emu_simple_count(ex, &msg);
	return true;
}

enum emu_outcome emu_exec_write(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	struct emu_cursor local, remote;
	enum emu_outcome outcome;
	struct ib_sge there;

	if (wqe->opcode == IB_WR_RDMA_WRITE && emu_exec_rdma_short(ex, wqe, pos))
		return EMU_DONE;
	if (unlikely(!emu_open_local(ex, wqe, 0, &local)))
		return emu_fail_memory(ex, wqe, pos, local.why);
	outcome = emu_enter_peer(ex);
	if (likely(outcome == EMU_DONE)) {
		there = emu_remote_sge(wqe);
		outcome = emu_open_remote(ex, wqe, pos, &there, IB_ACCESS_REMOTE_WRITE, &local,
					  &remote);
		if (likely(outcome == EMU_DONE))
			outcome = emu_write_data(ex, wqe, pos, &local, &remote);
	} else {
		emu_cursor_end(&local);
		outcome = emu_retry_or_drop(ex, wqe, pos, outcome);
	}
	return outcome == EMU_DROPPED ? EMU_DONE : outcome;
}

/* Checks that both ends allow RDMA READs and atomics, and enters the responder. */
static enum emu_outcome emu_check_rd_atomic(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	enum emu_outcome outcome;

	if (unlikely(!ex->qp->attr.max_rd_atomic))
		return emu_fail_local(ex, wqe, pos, IB_WC_LOC_QP_OP_ERR, EMU_SYN_RD_ATOMIC);
	outcome = emu_enter_peer(ex);
	if (unlikely(outcome != EMU_DONE))
		return outcome;
	if (unlikely(!ex->peer->attr.max_dest_rd_atomic))
		return emu_refuse_message(ex, wqe, pos, IB_WC_REM_INV_REQ_ERR, EMU_SYN_RD_ATOMIC);
	return EMU_DONE;
}

/* Returns EMU_DONE with the data in place, or else the outcome of the entry. */
static __always_inline enum emu_outcome emu_read_data(struct emu_exec *ex, struct emu_swqe *wqe,
						      u32 pos)
{
	struct ib_sge there = emu_remote_sge(wqe);
	struct emu_cursor local, remote;
	enum emu_outcome outcome;

	outcome = emu_check_rd_atomic(ex, wqe, pos);
	if (likely(outcome == EMU_DONE))
		outcome = emu_open_remote(ex, wqe, pos, &there, IB_ACCESS_REMOTE_READ, NULL,
					  &remote);
	if (unlikely(outcome != EMU_DONE))
		return outcome;
	/* Checked last: on a wire, the requester needs it when the answer arrives. */
	if (unlikely(!emu_open_local(ex, wqe, IB_ACCESS_LOCAL_WRITE, &local))) {
		emu_cursor_end(&remote);
		return emu_fail_memory(ex, wqe, pos, local.why);
	}
	emu_copy(ex, &local, &remote, wqe->length);
	emu_cursor_end(&remote);
	emu_cursor_end(&local);
	outcome = emu_check_copy(ex, wqe, pos, &local, &remote);
	if (likely(outcome == EMU_DONE))
		emu_count_messages(ex->peer->port, ex->qp->port, 1, wqe->length);
	return outcome;
}

/* The first step of emu_exec_read(), for captures, which record the data before it completes. */
enum emu_outcome emu_exec_read_data(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	enum emu_outcome outcome = emu_read_data(ex, wqe, pos);

	/* An entry that failed is complete, and its slot may belong to a poster again. */
	if (outcome == EMU_DONE)
		wqe->rdma.data_done = true;
	return outcome;
}

enum emu_outcome emu_exec_read(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	enum emu_syndrome why = EMU_SYN_NONE;
	enum emu_outcome outcome;

	if (likely(!wqe->rdma.data_done)) {
		if (wqe->opcode == IB_WR_RDMA_READ && emu_exec_rdma_short(ex, wqe, pos))
			return EMU_DONE;
		outcome = emu_read_data(ex, wqe, pos);
		if (outcome != EMU_DONE)
			return outcome;
	}
	if (unlikely(wqe->opcode == IB_WR_RDMA_READ_WITH_INV)) {
		/*
		 * Somebody may be using the key at the moment: then the invalidation is tried
		 * again. The data must not be read again then, as the key may be invalid by that
		 * time.
		 */
		wqe->rdma.data_done = true;
		outcome = emu_region_invalidate(&ex->qp->ibqp, wqe->ex.invalidate_rkey, &why);
		if (outcome == EMU_FAILED)
			return emu_fail_local(ex, wqe, pos, IB_WC_MW_BIND_ERR, why);
		if (outcome != EMU_DONE)
			return outcome;
	}
	return emu_succeed_send(ex, wqe, pos);
}

/* Executes the operation on the responder's memory. Returns the previous value. */
static u64 emu_atomic_op(const struct emu_swqe *wqe, atomic64_t *target)
{
	if (wqe->opcode == IB_WR_ATOMIC_FETCH_AND_ADD)
		return atomic64_fetch_add(wqe->atomic.compare_add, target);
	if (unlikely(wqe->opcode == IB_WR_ATOMIC_WRITE))
		return atomic64_xchg(target, wqe->atomic.swap);
	return atomic64_cmpxchg(target, wqe->atomic.compare_add, wqe->atomic.swap);
}

/* Executes an atomic operation, and stores the previous value in the entry. */
static __always_inline enum emu_outcome emu_atomic_data(struct emu_exec *ex,
							struct emu_swqe *wqe, u32 pos)
{
	struct ib_sge there = {
		.addr = wqe->atomic.remote_addr,
		.length = sizeof(u64),
		.lkey = wqe->atomic.rkey,
	};
	int access = IB_ACCESS_REMOTE_ATOMIC;
	enum emu_outcome outcome;
	struct emu_cursor remote;

	outcome = emu_check_rd_atomic(ex, wqe, pos);
	if (unlikely(outcome != EMU_DONE))
		return outcome;
	if (unlikely(wqe->opcode == IB_WR_ATOMIC_WRITE))
		access = IB_ACCESS_REMOTE_WRITE;
	if (unlikely(!IS_ALIGNED(there.addr, sizeof(u64))))
		return emu_refuse_message(ex, wqe, pos, IB_WC_REM_INV_REQ_ERR, EMU_SYN_ALIGNMENT);
	outcome = emu_open_remote(ex, wqe, pos, &there, access, NULL, &remote);
	if (unlikely(outcome != EMU_DONE))
		return outcome;
	/* The operand must not straddle two pages, however the region is mapped. */
	if (likely(IS_ALIGNED((unsigned long)remote.addr, sizeof(u64)) &&
		   remote.len >= sizeof(u64))) {
		wqe->atomic.swap = emu_atomic_op(wqe, remote.addr);
		wqe->atomic.done = true;
		emu_exec_sent(ex, sizeof(u64));
	} else {
		outcome = emu_refuse_message(ex, wqe, pos, IB_WC_REM_INV_REQ_ERR, EMU_SYN_ALIGNMENT);
	}
	emu_cursor_end(&remote);
	return outcome;
}

/*
 * Writes the previous value into the requester's memory. If that is being moved, only this is
 * tried again; if it cannot be used, the entry fails, but the operation is not undone.
 */
static enum emu_outcome emu_atomic_answer(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	struct emu_cursor from, local;

	if (unlikely(!emu_open_local(ex, wqe, IB_ACCESS_LOCAL_WRITE, &local)))
		return emu_fail_memory(ex, wqe, pos, local.why);
	emu_cursor_init_inline(&from, &ex->qp->ibqp, &wqe->atomic.swap, sizeof(u64));
	emu_copy(ex, &local, &from, sizeof(u64));
	emu_cursor_end(&local);
	if (unlikely(local.why))
		return emu_fail_memory(ex, wqe, pos, local.why);
	return emu_succeed_send(ex, wqe, pos);
}

/* The first step of emu_exec_atomic(), for captures as emu_exec_read_data(). */
enum emu_outcome emu_exec_atomic_data(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	return emu_atomic_data(ex, wqe, pos);
}

enum emu_outcome emu_exec_atomic(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	enum emu_outcome outcome;

	if (likely(!wqe->atomic.done)) {
		outcome = emu_atomic_data(ex, wqe, pos);
		if (unlikely(outcome != EMU_DONE))
			return outcome;
	}
	/* ATOMIC WRITE returns no previous value. */
	if (unlikely(wqe->opcode == IB_WR_ATOMIC_WRITE))
		return emu_succeed_send(ex, wqe, pos);
	return emu_atomic_answer(ex, wqe, pos);
}
