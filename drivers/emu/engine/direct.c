// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting sends, and the shortcut for a request that is posted alone on an idle queue pair.
 *
 * Most consumers post one request a call, and most requests find the queue empty. The poster of
 * such a request becomes the owner of the queue pair first, then reserves the position of the
 * entry, and executes the request from the consumer's memory, if it is simple: see fastpath.h.
 * The ring gets the position, but not the entry; see emu_ring_must_publish().
 *
 * emu_post_send() is where the two ways are told apart; the other one is emu_post_sends(), which
 * fills in entries and rings the doorbell. What may happen on the way:
 *
 *   somebody is the owner, and executes it	the other way
 *   the state, or a freezer, is found to
 *   forbid execution				the other way; looked at by the owner, so the
 *						queue pair moves no further than to the error
 *						state meanwhile, as for any entry under way
 *   older entries are there, or reserved	the entry is filled in and published, where its
 *						place was reserved, and the owner goes on with
 *						the oldest
 *   the message is not simple, or anything
 *   is wrong					the same; the entry is the oldest
 *   the responder's completion is lost		the entry is filled in, and ends as it does in
 *						the engine
 *   another poster comes, maybe in an
 *   interrupt					it reserves a place behind, publishes, and tells
 *						the owner to look again, as always; nobody waits
 *
 * What is executed counts against the budget of an inline owner, or is what a poster in hard
 * interrupt may execute: see doorbell.h.
 */
#include <linux/bitops.h>

#include "fastpath.h"

/* Is it worth a try? What is checked here need not be checked again. */
static __always_inline bool emu_is_direct(const struct emu_qp *qp, const struct ib_send_wr *wr)
{
	u32 length;

	if (static_branch_unlikely(&emu_detour))
		return false;
	/* A process's doorbell posts nothing. */
	if (!wr || wr->next || wr->num_sge != 1 || (wr->send_flags & IB_SEND_INLINE))
		return false;
	/*
	 * Those of EMU_DIRECT_OPS have even numbers: one comparison tells. Not READ_ONCE(), which
	 * is never an operand of the comparison; it is one word, and either value will do.
	 */
	if (ror32(wr->opcode, 1) >= data_race(qp->nr_direct_ops))
		return false;
	length = wr->sg_list->length;
	return likely(length <= EMU_HARDIRQ_BYTES) || (length <= EMU_SHORT_BYTES && !in_hardirq());
}

/* The owner goes on as owners do; @spent counts against the budget. */
static noinline void emu_direct_serve(struct emu_qp *qp, u32 spent)
{
	emu_qp_look(qp);
	emu_serve(qp, (in_hardirq() ? EMU_HARDIRQ_BUDGET : EMU_INLINE_BUDGET) - (s64)spent, false);
}

/* The shortcut was left after the entry at @pos had been reserved. */
static noinline void emu_direct_publish(struct emu_qp *qp, const struct ib_send_wr *wr, u32 pos)
{
	struct emu_swqe *wqe = (struct emu_swqe *)emu_ring_slot(&qp->sq, pos);

	kverbs_delay("emu_direct_publish");
	emu_fill_reserved(qp, wqe, wr);
	emu_ring_publish(&wqe->slot, pos);
	emu_direct_serve(qp, 0);
}

/* The responder's completion was lost. The entry at @pos is the oldest, and ours alone. */
static noinline void emu_direct_lost(struct emu_qp *qp, const struct ib_send_wr *wr, u32 pos)
{
	struct emu_swqe *wqe = (struct emu_swqe *)emu_ring_slot(&qp->sq, pos);
	struct emu_exec ex = { .qp = qp };
	u32 length = wr->sg_list->length;

	emu_fill_reserved(qp, wqe, wr);
	emu_lost_recv(&ex, wqe, pos);
	emu_direct_serve(qp, EMU_ENTRY_COST + length);
}

/* Executes the request, which has the position @pos, as emu_simple() does. */
static __always_inline enum emu_shortcut emu_direct_execute(struct emu_qp *qp,
							    const struct ib_send_wr *wr, u32 pos)
{
	struct emu_simple msg = {
		.opcode = wr->opcode,
		.flags = wr->send_flags,
		.length = wr->sg_list->length,
		.wr_id = &wr->wr_id,
		.remote_addr = &rdma_wr(wr)->remote_addr,
		.rkey = &rdma_wr(wr)->rkey,
	};
	struct emu_qp *peer = qp->peer;
	enum emu_shortcut way;
	void *local;

	/* Older entries come first. Only the owner moves the tail. */
	if (unlikely(pos != (u32)atomic_read(&qp->sq.tail) || emu_ring_must_publish(&qp->sq, pos)))
		return EMU_NOT_SIMPLE;
	local = emu_short_span(wr->sg_list, 1);
	if (unlikely(!local))
		return EMU_NOT_SIMPLE;
	if (unlikely(!emu_reenter_peer(qp, peer)))
		return EMU_NOT_SIMPLE;
	way = emu_simple(qp, peer, &msg, local, pos);
	if (likely(way != EMU_NOT_SIMPLE)) {
		if (msg.opcode == IB_WR_RDMA_READ)
			emu_count_messages(peer->port, qp->port, 1, msg.length);
		else
			emu_count_messages(qp->port, peer->port, 1, msg.length);
	}
	emu_leave(peer);
	return way;
}

/* Posts a request that emu_is_direct(). False if nothing was done. Preemption is off. */
static __always_inline bool emu_post_direct(struct emu_qp *qp, const struct ib_send_wr *wr)
{
	/* Once it is complete, the consumer may free the request. */
	u32 length = wr->sg_list->length;
	enum emu_shortcut way;
	u32 pos;

	if (unlikely(!emu_qp_own(qp)))
		return false;
	kverbs_delay("emu_post_direct");
	/* From here on it is known what the doorbell guards. */
	if (unlikely(!emu_may_send(qp) || !emu_ring_reserve_position(&qp->sq, &pos))) {
		emu_direct_serve(qp, 0);
		return false;
	}
	kverbs_delay("emu_direct_execute");
	way = emu_direct_execute(qp, wr, pos);
	kverbs_delay("emu_direct_executed");
	if (unlikely(way == EMU_NOT_SIMPLE))
		emu_direct_publish(qp, wr, pos);
	else if (unlikely(way == EMU_SIMPLE_LOST))
		emu_direct_lost(qp, wr, pos);
	else if (unlikely(!emu_qp_release(qp)))
		emu_direct_serve(qp, EMU_ENTRY_COST + length);
	return true;
}

int emu_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr)
{
	struct emu_qp *qp = to_eqp(ibqp);
	bool posted = false;

	if (likely(emu_is_direct(qp, wr))) {
		preempt_disable();
		posted = emu_post_direct(qp, wr);
		preempt_enable();
	}
	return likely(posted) ? 0 : emu_post_sends(qp, wr, bad_wr);
}
