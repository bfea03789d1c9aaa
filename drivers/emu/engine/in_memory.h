/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peers in this machine's memory: what those share who act for both sides.
 */
#ifndef KVERBS_EMU_IN_MEMORY_H
#define KVERBS_EMU_IN_MEMORY_H

#include "exec.h"

/* in_memory.c */
enum emu_verdict emu_enter_peer(struct emu_exec *ex);
void emu_leave_peer(struct emu_exec *ex);

/* connected.c */
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

/* A message went to ex->peer; emu_leave_peer() counts it with the others. */
static __always_inline void emu_exec_sent(struct emu_exec *ex, u32 length)
{
	ex->bytes += length;
	ex->messages++;
}

/* Is there a @peer, which is that of an emu_exec, and is its gate still open? */
static __always_inline bool emu_is_entered(const struct emu_qp *peer)
{
	return likely(peer && !emu_gate_is_closed(&peer->gate));
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

/* The owner stops for now: nothing of the peer is kept. */
static __always_inline void emu_exec_end(struct emu_exec *ex)
{
	if (ex->peer)
		emu_leave_peer(ex);
	else if (unlikely(ex->qp->transport != &emu_in_memory))
		ex->qp->transport->leave(ex);
}

#endif
