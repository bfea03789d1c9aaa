/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peers in this machine's memory: what the files share that act for both sides.
 */
#ifndef KVERBS_EMU_IN_MEMORY_H
#define KVERBS_EMU_IN_MEMORY_H

#include <kverbs/delay.h>

#include "../net/net.h"
#include "exec.h"

/* in_memory.c */
enum emu_outcome emu_enter_peer(struct emu_exec *ex);
void emu_leave_peer(struct emu_exec *ex);

/* connected.c */
enum emu_outcome emu_lost_recv(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_outcome emu_exec_send(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_outcome emu_exec_write(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_outcome emu_exec_read(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_outcome emu_exec_atomic(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_outcome emu_exec_read_data(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_outcome emu_exec_atomic_data(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);

/* datagram.c */
enum emu_outcome emu_exec_datagram(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
bool emu_datagram_needs_runner(const struct emu_exec *ex, struct emu_swqe *wqe);

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

/* Whether a datagram queue pair can execute it, and has an address for it. */
static inline bool emu_is_datagram(const struct emu_swqe *wqe)
{
	return wqe->opcode == IB_WR_SEND || wqe->opcode == IB_WR_SEND_WITH_IMM;
}

/* The P_Key that a message is sent with. */
static inline u16 emu_send_pkey(const struct emu_qp *qp, const struct emu_swqe *wqe)
{
	u16 index = qp->ibqp.qp_type == IB_QPT_GSI ? wqe->ud.pkey_index : qp->attr.pkey_index;

	return emu_port_pkey(qp->port, index);
}

/* Counts messages of @bytes bytes in total that went from one port to another. */
static __always_inline void emu_count_messages(struct emu_port *from, struct emu_port *to,
					       u32 messages, u64 bytes)
{
	/* Read once: the compiler does not know that they stay the same. */
	struct emu_counters __percpu *sent = from->counters, *received = to->counters;

	this_cpu_add(sent->value[EMU_CNT_XMIT_DATA], bytes);
	this_cpu_add(sent->value[EMU_CNT_XMIT_PACKETS], messages);
	this_cpu_add(received->value[EMU_CNT_RCV_DATA], bytes);
	this_cpu_add(received->value[EMU_CNT_RCV_PACKETS], messages);
}

/* A message went to ex->peer; emu_leave_peer() counts it with the others. */
static __always_inline void emu_exec_sent(struct emu_exec *ex, u32 length)
{
	ex->bytes += length;
	ex->messages++;
}

/* Whether the gate of @peer, which was entered, is still open for more messages. */
static __always_inline bool emu_peer_is_open(const struct emu_qp *peer)
{
	return likely(!emu_gate_is_closed(&peer->gate));
}

/*
 * Enters @peer, the peer that was found last, if nothing has changed since; in_memory.c tells why
 * the generation is read twice. False if the peer has to be looked for. Preemption is off.
 */
static __always_inline bool emu_reenter_peer(const struct emu_qp *qp, struct emu_qp *peer)
{
	/* acquire: pair A */
	if (unlikely(qp->peer_gen != emu_fabric_generation()))
		return false;
	kverbs_delay("emu_reenter_peer");
	/* full barrier: pair B */
	if (unlikely(!emu_gate_enter(&peer->gate)))
		return false;
	if (likely(qp->peer_gen == emu_fabric_generation()))
		return true;
	emu_qp_leave(peer);
	return false;
}

/*
 * Makes sure that the responder of a connection is entered, as ex->peer, unless it has to be looked
 * for: then returns false. Shortcuts leave that to emu_enter_peer(), because it may count an error,
 * or raise COMM_EST at the peer.
 */
static __always_inline bool emu_enter_same_peer(struct emu_exec *ex)
{
	struct emu_qp *peer = ex->qp->peer;

	if (ex->peer)
		return emu_peer_is_open(ex->peer);
	if (unlikely(!emu_reenter_peer(ex->qp, peer)))
		return false;
	ex->peer = peer;
	return true;
}

/*
 * Gives the responder @peer of a connection its completion of the receive @wr_id, with success.
 * @flags: IB_SEND_* of the message. Returns false if the completion was lost; then the responder
 * is in error.
 */
static __always_inline bool emu_complete_recv(const struct emu_qp *qp, struct emu_qp *peer,
					      u64 wr_id, u32 length, u32 flags)
{
	struct emu_cqe *cqe;
	u32 pos;

	cqe = emu_recv_begin(peer, wr_id, &pos);
	if (unlikely(!cqe))
		return false;
	cqe->status = IB_WC_SUCCESS;
	cqe->opcode = IB_WC_RECV;
	cqe->vendor_err = EMU_SYN_NONE;
	cqe->byte_len = length;
	cqe->origin = qp->origin;
	emu_cq_end(to_ecq(peer->ibqp.recv_cq), cqe, pos, flags & IB_SEND_SOLICITED);
	return true;
}

/* The owner stops executing: leaves the peer. */
static __always_inline void emu_exec_end(struct emu_exec *ex)
{
	if (ex->peer)
		emu_leave_peer(ex);
	else if (unlikely(ex->qp->transport != &emu_in_memory))
		ex->qp->transport->leave(ex);
}

#endif
