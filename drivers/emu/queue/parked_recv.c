// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parked receives. A receive was taken from its queue for a message, but the message could
 * not be written there, because memory was being moved. It is kept for the next message.
 *
 * A queue pair has room for one. It is parked, and taken, by engines inside
 * the gate, or by whoever has the gate closed and empty. The responder of a
 * connection has one requester, so it has one engine at a time, and it is this
 * engine's message that is tried again. Several engines can come to a datagram queue
 * pair at once, and two to a connected one, while the requester's address moves from one
 * port to another. The bit EMU_FROM_BUSY lets one at a time park or take a receive, and
 * there may be no room to park the receive of another. Nobody waits for the bit, as whoever
 * has set it may have been interrupted by this engine. Documentation/models/parked.pml is a
 * model of this.
 */
#include <kverbs/delay.h>

#include "recv.h"

static bool emu_parked_step(struct emu_qp *qp, int from, int to)
{
	int source = emu_recv_source(qp);

	return atomic_cmpxchg(&qp->recv_from, source | from, source | to) == (source | from);
}

/* Parks a receive for the next message. Returns false if another one is parked already. */
bool emu_park_recv(struct emu_qp *qp, const struct emu_rwqe *recv)
{
	if (!emu_parked_step(qp, 0, EMU_FROM_BUSY))
		return false;
	kverbs_delay("emu_park");
	emu_rwqe_copy(qp->parked, recv);
	/* Full barrier, pairs with the first one in emu_claim_parked(). */
	emu_parked_step(qp, EMU_FROM_BUSY, EMU_FROM_PARKED);
	return true;
}

/**
 * emu_claim_parked() - take the receive that is parked at a queue pair
 * @qp: queue pair
 * @room: bytes it must have room for, or it is left where it is
 * @copy: where to copy it; has room for EMU_MAX_SGE elements
 *
 * Context: Any, inside the gate of @qp; or whoever has it closed and empty.
 * Return: EMU_DONE; EMU_RNR if there is none; EMU_FAILED if it is too short.
 */
enum emu_outcome emu_claim_parked(struct emu_qp *qp, u64 room, struct emu_rwqe *copy)
{
	if (!emu_parked_step(qp, EMU_FROM_PARKED, EMU_FROM_BUSY))
		return EMU_RNR;
	kverbs_delay("emu_claim_parked");
	if (qp->parked->length < room) {
		emu_parked_step(qp, EMU_FROM_BUSY, EMU_FROM_PARKED);
		return EMU_FAILED;
	}
	emu_rwqe_copy(copy, qp->parked);
	emu_parked_step(qp, EMU_FROM_BUSY, 0);
	return EMU_DONE;
}

/* Drops a parked receive, on a reset. Nobody is inside the gate of the queue pair. */
void emu_drop_parked(struct emu_qp *qp)
{
	emu_parked_step(qp, EMU_FROM_PARKED, 0);
}
