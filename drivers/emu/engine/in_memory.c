// SPDX-License-Identifier: GPL-2.0-only
/*
 * The transport for peers in this machine's memory: how a peer is found, entered and left.
 * What is done while it is entered is in connected.c and datagram.c.
 *
 * The owner of the requester's doorbell acts for both sides. From one entry to the next it
 * stays in the gate of the responder, which can neither be flushed, nor reset, nor
 * destroyed meanwhile.
 *
 * When it has left the gate, it remembers the peer, which need not be found and checked again as
 * long as the fabric's generation is the same. emu_reenter_peer() reads the generation twice.
 * Preemption is off from before the first time until the gate is left. Pairs:
 *
 *   A  emu_fabric_changed(): full barrier - emu_fabric_generation(): acquire
 *	a peer that is destroyed changes the generation, and is freed a grace period later:
 *	whoever finds the generation as it was may touch the peer. Also, whoever looks for
 *	the peer in a new generation sees what has changed.
 *   B  emu_fabric_changed(), then emu_gate_open() - emu_gate_enter(): full barrier, then the
 *	second look at the generation
 *	whoever enters after the peer was changed sees another generation
 */
#include <kverbs/completion.h>

#include "in_memory.h"

/* Leaves the peer, which is entered, and counts the messages that went there. */
void emu_leave_peer(struct emu_exec *ex)
{
	struct emu_qp *peer = ex->peer;

	if (ex->messages) {
		emu_count_messages(ex->qp->port, peer->port, ex->messages, ex->bytes);
		ex->messages = 0;
		ex->bytes = 0;
	}
	ex->peer = NULL;
	emu_qp_leave(peer);
}

/* Whether the attributes of @peer make it the other end of @qp. Inside the peer's gate; RCU. */
static bool emu_is_connected(const struct emu_qp *qp, const struct emu_qp *peer)
{
	if (peer->ibqp.qp_type != qp->ibqp.qp_type || peer->dest_qpn != qp->ibqp.qp_num)
		return false;
	/* UC takes any number at the start of a message. IBTA vol. 1, 9.7.4.1 and 9.8.2.2.2 */
	if (qp->ibqp.qp_type == IB_QPT_RC && peer->attr.rq_psn != qp->attr.sq_psn)
		return false;
	if (!emu_pkeys_match(emu_port_pkey(qp->port, qp->attr.pkey_index),
			     emu_port_pkey(peer->port, peer->attr.pkey_index))) {
		emu_port_count(peer->port, EMU_CNT_PKEY, 1);
		return false;
	}
	if (qp->edev->ethernet &&
	    (peer->av.gid_type != qp->av.gid_type ||
	     memcmp(&peer->av.dgid, &qp->av.sgid, sizeof(qp->av.sgid)) ||
	     memcmp(&peer->av.sgid, &qp->av.dgid, sizeof(qp->av.dgid))))
		return false;
	/* Several ports may have the address: the responses go to one of them. */
	return emu_fabric_find(&peer->av) == qp->port;
}

/*
 * Finds the peer, enters it, and remembers it. EMU_NO_RESPONSE if nobody answers; EMU_AGAIN
 * if the peer cannot be entered at this moment.
 */
static enum emu_outcome emu_look_for_peer(struct emu_exec *ex)
{
	/* acquire: pair A. Read first, so that any later change makes it stale. */
	unsigned long gen = emu_fabric_generation();
	struct emu_qp *qp = ex->qp;
	struct emu_port *port;
	struct emu_qp *peer;

	if (READ_ONCE(qp->port->state) != IB_PORT_ACTIVE)
		return EMU_NO_RESPONSE;
	port = emu_fabric_find(&qp->av);
	if (!port || READ_ONCE(port->state) != IB_PORT_ACTIVE)
		return EMU_NO_RESPONSE;
	peer = xa_load(&port->edev->qps, qp->dest_qpn);
	if (!peer)
		return EMU_NO_RESPONSE;
	if (!emu_gate_enter(&peer->gate)) {
		/* acquire: whoever sees the end of the change sees the gate open again. */
		return smp_load_acquire(&peer->changing) || !emu_gate_is_closed(&peer->gate) ?
		       EMU_AGAIN : EMU_NO_RESPONSE;
	}
	if (unlikely(peer->port != port || !emu_is_connected(qp, peer))) {
		emu_qp_leave(peer);
		return EMU_NO_RESPONSE;
	}
	qp->peer = peer;
	qp->peer_gen = gen;
	/* These refer to the old peer, which may be of another device. */
	qp->target.gen = 0;
	qp->sink.gen = 0;
	qp->origin = (struct emu_cqe_origin) {
		.src_qp = qp->ibqp.qp_num,
		.slid = READ_ONCE(qp->port->lid),
		.pkey_index = peer->attr.pkey_index,
		.retires = 1,
		.port_num = peer->attr.port_num,
	};
	ex->peer = peer;
	return EMU_DONE;
}

/**
 * emu_enter_peer() - make sure that the responder of a connection is entered, as ex->peer
 * @ex: the owner at work
 *
 * Context: The owner of the queue pair's doorbell, preemption off.
 * Return: EMU_DONE; EMU_NO_RESPONSE if nobody answers; EMU_AGAIN while the
 * responder is being changed.
 */
enum emu_outcome emu_enter_peer(struct emu_exec *ex)
{
	enum emu_outcome outcome;
	struct emu_qp *peer;

	if (likely(emu_enter_same_peer(ex)))
		return EMU_DONE;
	if (unlikely(ex->peer))
		emu_leave_peer(ex);
	rcu_read_lock();
	outcome = emu_look_for_peer(ex);
	rcu_read_unlock();

	peer = ex->peer;
	if (peer && unlikely(!atomic_read(&peer->comm_est)) &&
	    !atomic_xchg(&peer->comm_est, 1) && atomic_read(&peer->state) == IB_QPS_RTR)
		ib_qp_notify_event(&peer->ibqp, IB_EVENT_COMM_EST);
	return outcome;
}

/* Makes the next entry look for the peer again, after the path has changed. */
static void emu_forget_peer(struct emu_qp *qp)
{
	qp->peer_gen = 0;
}

const struct emu_transport emu_in_memory = {
	.fastpath = true,
	.send = emu_exec_send,
	.write = emu_exec_write,
	.read = emu_exec_read,
	.atomic = emu_exec_atomic,
	.datagram = emu_exec_datagram,
	.leave = emu_leave_peer,
	.forget = emu_forget_peer,
};
