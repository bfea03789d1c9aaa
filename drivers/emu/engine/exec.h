/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Execution of work queue entries: what the engine, exec.c, connected.c and
 * datagram.c share.
 */
#ifndef KVERBS_EMU_EXEC_H
#define KVERBS_EMU_EXEC_H

#include "../memory/memory.h"
#include "../queue/qp.h"

/**
 * struct emu_exec - an owner at work on one queue pair
 * @qp: the queue pair, as requester
 * @peer: its responder, whose gate is entered; NULL if none is entered. Only used
 *	by connected queue pairs
 * @slid: LID of the requester's port; valid with @peer
 * @may_sleep: the owner is a runner, which may sleep
 * @messages: messages sent to @peer and not counted yet
 * @bytes: bytes of these messages
 * @delay_ns: with EMU_DELAYED, how long to wait
 * @cost: what entries have cost besides their own bytes: further copies of a multicast, and
 *	memory in many pieces. In bytes, to count against the budget
 *
 * Preemption is off while an owner executes, except now and then while a runner copies a
 * long message or delivers a multicast. Each message wakes a consumer, which would otherwise
 * preempt the owner after every message.
 */
struct emu_exec {
	struct emu_qp *qp;
	struct emu_qp *peer;
	u16 slid;
	bool may_sleep;
	u32 messages;
	u64 bytes;
	u64 delay_ns;
	u32 cost;
};

/*
 * What an entry costs in addition to its bytes, and the least that each piece of its memory
 * costs but the last.
 */
#define EMU_ENTRY_COST	SZ_4K
#define EMU_PIECE_COST	SZ_2K

/* What it costs to check the key of each further piece, whether it is copied then or not. */
#define EMU_CHECK_COST	SZ_1K

/* How long an entry waits before it checks again whether its memory has arrived. */
#define EMU_MOVE_NS	(100 * NSEC_PER_USEC)

/*
 * Memory that the entry needs, at either end, is on the move: the entry is tried
 * again later.
 */
static inline enum emu_verdict emu_wait_memory(struct emu_exec *ex)
{
	ex->delay_ns = EMU_MOVE_NS;
	return EMU_DELAYED;
}

/* exec.c */
enum emu_verdict emu_exec_wqe(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
void emu_exec_end(struct emu_exec *ex);
void emu_complete_send(struct emu_qp *qp, const struct emu_swqe *wqe, u32 pos,
		       enum ib_wc_status status, enum emu_syndrome why);
enum emu_verdict emu_fail_local(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				enum ib_wc_status status, enum emu_syndrome why);
enum emu_verdict emu_fail_memory(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				 enum emu_syndrome why);
bool emu_open_local(struct emu_exec *ex, struct emu_swqe *wqe, int access,
		    struct emu_cursor *local);
void emu_copy(struct emu_exec *ex, struct emu_cursor *to, struct emu_cursor *from, u32 length);

/* connected.c */
enum emu_verdict emu_enter_peer(struct emu_exec *ex);
enum emu_verdict emu_lost_recv(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_verdict emu_exec_send(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_verdict emu_exec_write(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_verdict emu_exec_read(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_verdict emu_exec_atomic(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);

/* datagram.c */
enum emu_verdict emu_exec_datagram(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);

/* mcast.c */
/**
 * emu_mcast_deliver() - call a function for each member of a multicast group
 * @av: address of the group
 * @deliver: the function
 * @data: argument to pass to it
 *
 * Context: Under rcu_read_lock().
 */
void emu_mcast_deliver(const struct emu_av *av, void (*deliver)(struct emu_qp *qp, void *data),
		       void *data);
bool emu_mcast_is_larger(const struct emu_av *av, u32 limit);

/* Counts messages of @bytes bytes in total that went from one port to another. */
static inline void emu_count_messages(struct emu_port *from, struct emu_port *to, u32 messages,
				      u64 bytes)
{
	emu_count(from, EMU_CNT_XMIT_DATA, bytes);
	emu_count(from, EMU_CNT_XMIT_PACKETS, messages);
	emu_count(to, EMU_CNT_RCV_DATA, bytes);
	emu_count(to, EMU_CNT_RCV_PACKETS, messages);
}

/* A message went to ex->peer; emu_exec_end() counts it with the others. */
static __always_inline void emu_exec_sent(struct emu_exec *ex, u32 length)
{
	ex->bytes += length;
	ex->messages++;
}

/*
 * Leaves the gate of @peer. Under RCU. When the last one leaves a closed gate, the
 * flush of receives can begin.
 */
static inline void emu_leave(struct emu_qp *peer)
{
	if (unlikely(emu_gate_leave(&peer->gate)))
		emu_qp_ring_deferred(peer);
}

/* Is there a @peer, which is that of an emu_exec, and is its gate still open? */
static __always_inline bool emu_is_entered(const struct emu_qp *peer)
{
	return likely(peer && !emu_gate_is_closed(&peer->gate));
}

/*
 * Takes the oldest entry of a ring, and copies it. An entry that is shorter than @room is
 * not taken, and @too_short is set. Returns false if none was taken.
 */
static inline bool emu_recv_ring_claim(struct emu_ring *ring, u64 room, struct emu_rwqe *copy,
				       bool *too_short)
{
	struct emu_rwqe *wqe;
	u32 pos;

	do {
		wqe = emu_ring_front(ring, &pos);
		if (!wqe)
			return false;
		emu_rwqe_copy(copy, wqe);
		/* The copy is good if the entry is still at the front; see emu_ring_take(). */
		if (unlikely(copy->length < room) &&
		    atomic_cmpxchg_release(&ring->tail, pos, pos) == pos) {
			*too_short = true;
			return false;
		}
	} while (!emu_ring_take(ring, pos));
	return true;
}

/* Takes the oldest receive of a queue pair, and copies it. Verdicts as of emu_srq_claim(). */
static inline enum emu_verdict emu_claim(struct emu_qp *qp, u64 room, struct emu_rwqe *copy)
{
	int from = atomic_read(&qp->recv_from);
	enum emu_verdict verdict;
	bool too_short = false;

	if (unlikely(from & EMU_FROM_HELD)) {
		verdict = emu_claim_held(qp, room, copy);
		if (verdict != EMU_RNR)
			return verdict;
	}
	if (unlikely(from & EMU_FROM_SRQ))
		return emu_srq_claim(qp->srq, room, copy);
	if (likely(emu_recv_ring_claim(&qp->rq, room, copy, &too_short)))
		return EMU_DONE;
	return too_short ? EMU_FAILED : EMU_RNR;
}

/* Is there a receive? Others may take it, if the queue is shared. */
static inline bool emu_has_receive(struct emu_qp *qp)
{
	u32 pos;

	if (unlikely(atomic_read(&qp->recv_from) & EMU_FROM_HELD))
		return true;
	return qp->srq ? emu_srq_used(qp->srq) : !!emu_ring_front(&qp->rq, &pos);
}

/* The protection domain of a queue pair's receives. */
static inline struct ib_pd *emu_recv_pd(const struct emu_qp *qp)
{
	return qp->srq ? qp->srq->ibsrq.pd : qp->ibqp.pd;
}

/*
 * Fills in the part of a completion that describes an incoming message, where
 * there was none.
 */
static __always_inline void emu_cqe_no_message(struct emu_cqe *cqe, const struct emu_qp *qp)
{
	cqe->ex.imm_data = 0;
	cqe->src_qp = 0;
	cqe->slid = 0;
	cqe->wc_flags = 0;
	cqe->pkey_index = 0;
	cqe->sl = 0;
	cqe->dlid_path_bits = 0;
	cqe->port_num = qp->attr.port_num;
	cqe->network_hdr_type = 0;
}

/* See emu_complete_send(). */
static __always_inline void __emu_complete_send(struct emu_qp *qp, const struct emu_swqe *wqe,
						u32 pos, u8 opcode, enum ib_wc_status status,
						enum emu_syndrome why)
{
	struct emu_cq *cq = to_ecq(qp->ibqp.send_cq);
	u64 wr_id = wqe->wr_id;
	u32 length = wqe->length;
	bool signaled = qp->sig_all || (wqe->send_flags & IB_SEND_SIGNALED);
	struct emu_cqe *cqe;
	u32 cq_pos;

	emu_ring_advance(&qp->sq, pos);
	qp->unretired++;
	if (!signaled && status == IB_WC_SUCCESS)
		return;
	cqe = emu_cq_begin(cq, &cq_pos);
	if (unlikely(!cqe)) {
		emu_qp_lost(qp);
		return;
	}
	cqe->wr_id = wr_id;
	cqe->status = status;
	cqe->opcode = opcode;
	cqe->vendor_err = why;
	cqe->byte_len = length;
	cqe->qp = &qp->ibqp;
	cqe->retires = qp->unretired;
	qp->unretired = 0;
	emu_cqe_no_message(cqe, qp);
	emu_cq_end(cq, cqe, cq_pos, status != IB_WC_SUCCESS);
}

/* Starts a completion of a receive; emu_cq_end() ends it. NULL if it is lost. */
static __always_inline struct emu_cqe *emu_recv_begin(struct emu_qp *qp, u64 wr_id, u32 *pos)
{
	struct emu_cqe *cqe;

	cqe = emu_cq_begin(to_ecq(qp->ibqp.recv_cq), pos);
	if (unlikely(!cqe)) {
		emu_qp_lost(qp);
		return NULL;
	}
	cqe->wr_id = wr_id;
	cqe->qp = &qp->ibqp;
	cqe->retires = 1;
	return cqe;
}

/*
 * Gives a connected responder its completion of the receive @wr_id. Returns false if the completion was
 * lost; then the responder is in error.
 */
static __always_inline bool emu_complete_recv(struct emu_exec *ex, const struct emu_swqe *wqe,
					      u64 wr_id, u32 opcode, u32 flags,
					      enum ib_wc_status status, enum emu_syndrome why)
{
	struct emu_qp *peer = ex->peer;
	struct emu_cqe *cqe;
	u32 pos;

	cqe = emu_recv_begin(peer, wr_id, &pos);
	if (unlikely(!cqe))
		return false;
	cqe->status = status;
	cqe->opcode = opcode;
	cqe->vendor_err = why;
	cqe->byte_len = wqe->length;
	cqe->ex.imm_data = wqe->ex.imm_data;
	cqe->src_qp = ex->qp->ibqp.qp_num;
	cqe->slid = ex->slid;
	cqe->wc_flags = flags | (peer->av.grh ? IB_WC_GRH : 0);
	cqe->pkey_index = peer->attr.pkey_index;
	cqe->sl = 0;
	cqe->dlid_path_bits = 0;
	cqe->port_num = peer->attr.port_num;
	cqe->network_hdr_type = 0;
	emu_cq_end(to_ecq(peer->ibqp.recv_cq), cqe, pos,
		   status != IB_WC_SUCCESS || (wqe->send_flags & IB_SEND_SOLICITED));
	return true;
}

#endif
