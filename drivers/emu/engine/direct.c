// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting sends, and the shortcut for requests that are posted on an idle queue pair.
 *
 * Most consumers post one request a call, and most requests find the queue empty. The poster of
 * such a request becomes the owner of the queue pair first, then reserves the position of the
 * entry, and executes the request from the consumer's memory, if it is simple: see fastpath.h.
 * The ring gets the position, but not the entry; see emu_ring_must_publish(). For the requests of
 * a chain it does so one after the other, as long as each is simple and the budget lasts.
 *
 * emu_post_send() decides whether to try this; the general path is emu_post_sends(), which fills in
 * entries and rings the doorbell. What may happen on the way:
 *
 *   the queue pair has an owner already	the general path
 *   the state, or a freezer, forbids
 *   execution					the general path. It is the owner who looks, so
 *						meanwhile the state can only become the error
 *						state, as for any entry under way
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

/* At most this many requests of a chain are executed here; fewer if they have data. */
#define EMU_CHAIN_MAX	(EMU_INLINE_BUDGET / EMU_ENTRY_COST)
static_assert(EMU_INLINE_BUDGET % EMU_ENTRY_COST == 0);

/*
 * Whether to try the shortcut. Sets *@length to the bytes of the message; a long one must fit into
 * what is @left of the budget. What is checked here is not checked again.
 */
static __always_inline bool emu_is_direct(const struct emu_qp *qp, const struct ib_send_wr *wr,
					  s64 left, u32 *length)
{
	if (static_branch_unlikely(&emu_detour))
		return false;
	/* A process's doorbell posts nothing. */
	if (!wr || wr->num_sge != 1 || (wr->send_flags & IB_SEND_INLINE))
		return false;
	/*
	 * Those of EMU_DIRECT_OPS have even numbers: one comparison tells. Not READ_ONCE(), which
	 * is never an operand of the comparison; it is one word, and either value will do.
	 */
	if (ror32(wr->opcode, 1) >= data_race(qp->nr_direct_ops))
		return false;
	*length = wr->sg_list->length;
	return likely(*length <= EMU_HARDIRQ_BYTES) || (*length <= left && !in_hardirq());
}

/* Goes on as any owner, with what @spent leaves of the budget, until ownership is given up. */
static noinline void emu_direct_serve(struct emu_qp *qp, u32 spent)
{
	emu_qp_look(qp);
	emu_serve(qp, (in_hardirq() ? EMU_HARDIRQ_BUDGET : EMU_INLINE_BUDGET) - (s64)spent, false);
}

/*
 * Leaves the shortcut after @pos was reserved. If nothing was done, the entry is filled in and
 * published, for the owner, who is the caller. If the responder's completion was lost, the entry is
 * the oldest, and nobody else looks at it, so it is ended here. @spent: what was executed before.
 */
static noinline void emu_direct_leave(struct emu_qp *qp, enum emu_shortcut way,
				      const struct ib_send_wr *wr, u32 pos, u32 spent)
{
	struct emu_swqe *wqe = (struct emu_swqe *)emu_ring_slot(&qp->sq, pos);
	struct emu_exec ex = { .qp = qp };

	kverbs_delay("emu_direct_leave");
	emu_fill_reserved(qp, wqe, wr);
	if (way == EMU_SIMPLE_LOST) {
		spent += EMU_ENTRY_COST + wr->sg_list->length;
		emu_lost_recv(&ex, wqe, pos);
	} else {
		emu_ring_publish(&wqe->slot, pos);
	}
	emu_direct_serve(qp, spent);
}

static __always_inline struct emu_simple emu_direct_message(const struct ib_send_wr *wr, u32 length)
{
	return (struct emu_simple) {
		.opcode = wr->opcode,
		.flags = wr->send_flags,
		.length = length,
		.wr_id = &wr->wr_id,
		.remote_addr = &rdma_wr(wr)->remote_addr,
		.rkey = &rdma_wr(wr)->rkey,
	};
}

/* Whether @pos is the oldest entry; others must come first. Only the owner moves the tail. */
static __always_inline bool emu_direct_is_oldest(const struct emu_qp *qp, u32 pos)
{
	return likely(pos == (u32)atomic_read(&qp->sq.tail));
}

static __always_inline void emu_direct_count(struct emu_qp *qp, struct emu_qp *peer,
					     const struct emu_simple *msg)
{
	if (msg->opcode == IB_WR_RDMA_READ)
		emu_count_messages(peer->port, qp->port, 1, msg->length);
	else
		emu_count_messages(qp->port, peer->port, 1, msg->length);
}

/* Executes the request, which has the position @pos, as emu_simple_execute() does. */
static __always_inline enum emu_shortcut emu_direct_execute(struct emu_qp *qp,
							    const struct ib_send_wr *wr, u32 length,
							    u32 pos)
{
	struct emu_simple msg = emu_direct_message(wr, length);
	struct emu_qp *peer = qp->peer;
	enum emu_shortcut way;
	void *local;

	if (!emu_direct_is_oldest(qp, pos) || unlikely(emu_ring_must_publish(&qp->sq, pos, 1)))
		return EMU_NOT_SIMPLE;
	local = emu_short_span(wr->sg_list, 1);
	if (unlikely(!local || !emu_reenter_peer(qp, peer)))
		return EMU_NOT_SIMPLE;
	way = emu_simple_execute(qp, peer, &msg, local, pos);
	/* A branch of its own: the compiler then knows the result, and drops the caller's test. */
	if (likely(way == EMU_SIMPLE)) {
		emu_direct_count(qp, peer, &msg);
		emu_qp_leave(peer);
		return EMU_SIMPLE;
	}
	/* The message has arrived. */
	if (way == EMU_SIMPLE_LOST)
		emu_direct_count(qp, peer, &msg);
	emu_qp_leave(peer);
	return way;
}

/*
 * Posts a request for which emu_is_direct() is true. False if nothing was done. Preemption is off.
 * The consumer may free the request as soon as it is complete, perhaps before this returns.
 */
static __always_inline bool emu_post_direct(struct emu_qp *qp, const struct ib_send_wr *wr,
					    u32 length)
{
	enum emu_shortcut way;
	u32 pos;

	if (unlikely(!emu_qp_own(qp)))
		return false;
	kverbs_delay("emu_post_direct");
	/* The owner may use all that the doorbell guards. */
	if (unlikely(!emu_may_send(qp) || !emu_ring_reserve_position(&qp->sq, &pos))) {
		emu_direct_serve(qp, 0);
		return false;
	}
	kverbs_delay("emu_direct_execute");
	way = emu_direct_execute(qp, wr, length, pos);
	kverbs_delay("emu_direct_executed");
	if (unlikely(way != EMU_SIMPLE))
		emu_direct_leave(qp, way, wr, pos, 0);
	else if (unlikely(!emu_qp_release(qp)))
		emu_direct_serve(qp, EMU_ENTRY_COST + length);
	return true;
}

/**
 * struct emu_reads - the RDMA READs of a chain
 * @messages: number of messages
 * @bytes: their bytes
 */
struct emu_reads {
	u32 messages;
	u64 bytes;
};

/* As emu_direct_execute(), of a request of a chain; @peer is entered. The caller counts it. */
static __always_inline enum emu_shortcut emu_chain_execute(struct emu_qp *qp, struct emu_qp *peer,
							   const struct ib_send_wr *wr, u32 length,
							   u32 pos, struct emu_reads *reads)
{
	struct emu_simple msg = emu_direct_message(wr, length);
	enum emu_shortcut way;
	void *local;

	if (!emu_direct_is_oldest(qp, pos) || !emu_peer_is_open(peer))
		return EMU_NOT_SIMPLE;
	local = emu_short_span(wr->sg_list, 1);
	if (unlikely(!local))
		return EMU_NOT_SIMPLE;
	way = emu_simple_execute(qp, peer, &msg, local, pos);
	if (unlikely(msg.opcode == IB_WR_RDMA_READ) && way == EMU_SIMPLE) {
		reads->messages++;
		reads->bytes += msg.length;
	}
	return way;
}

/* Counts the messages of a chain, @reads among them, and leaves the peer. */
static __always_inline void emu_chain_end(struct emu_qp *qp, struct emu_qp *peer, u32 messages,
					  u64 bytes, const struct emu_reads *reads)
{
	if (likely(messages != reads->messages))
		emu_count_messages(qp->port, peer->port, messages - reads->messages,
				   bytes - reads->bytes);
	if (unlikely(reads->messages))
		emu_count_messages(peer->port, qp->port, reads->messages, reads->bytes);
	emu_qp_leave(peer);
}

/**
 * struct emu_chained - result of posting a chain
 * @rest: the first request that was not posted, or NULL
 * @spent: what was executed, as it counts against the budget
 */
struct emu_chained {
	const struct ib_send_wr *rest;
	u32 spent;
};

/* As emu_post_direct(), for the requests of a chain, until one does not qualify. */
static __always_inline struct emu_chained emu_chain_direct(struct emu_qp *qp,
							   const struct ib_send_wr *wr, u32 length)
{
	s64 budget = in_hardirq() ? EMU_HARDIRQ_BUDGET : EMU_INLINE_BUDGET, left = budget;
	u32 start, pos, spent, messages;
	const struct ib_send_wr *this = NULL;
	enum emu_shortcut way = EMU_SIMPLE;
	struct emu_reads reads = {};
	struct emu_qp *peer;
	bool arrived;

	if (unlikely(!emu_qp_own(qp)))
		return (struct emu_chained) { .rest = wr };
	kverbs_delay("emu_post_direct");
	/* Only the owner may read this. */
	peer = qp->peer;
	start = atomic_read(&qp->sq.tail);
	if (unlikely(emu_ring_must_publish(&qp->sq, start, EMU_CHAIN_MAX) ||
		     !emu_reenter_peer(qp, peer))) {
		emu_direct_serve(qp, 0);
		return (struct emu_chained) { .rest = wr };
	}
	do {
		if (unlikely(!emu_may_send(qp) || !emu_ring_reserve_position(&qp->sq, &pos)))
			break;
		kverbs_delay("emu_direct_execute");
		/* Read before the request completes, because the consumer may then free it. */
		this = wr;
		wr = wr->next;
		way = emu_chain_execute(qp, peer, this, length, pos, &reads);
		kverbs_delay("emu_direct_executed");
		if (unlikely(way != EMU_SIMPLE))
			break;
		left -= EMU_ENTRY_COST + length;
	} while (likely(wr) && likely(left > 0) && emu_is_direct(qp, wr, left, &length));

	spent = budget - left;
	messages = atomic_read(&qp->sq.tail) - start;
	if (likely(way == EMU_SIMPLE)) {
		emu_chain_end(qp, peer, messages, spent - messages * EMU_ENTRY_COST, &reads);
		if (unlikely(!emu_qp_release(qp)))
			emu_direct_serve(qp, spent);
		return (struct emu_chained) { wr, spent };
	}
	/* A message has arrived even if its completion at the peer is lost. */
	arrived = way == EMU_SIMPLE_LOST;
	emu_chain_end(qp, peer, messages + arrived,
		      spent - messages * EMU_ENTRY_COST + (arrived ? length : 0), &reads);
	emu_direct_leave(qp, way, this, pos, spent);
	return (struct emu_chained) { wr, spent + EMU_ENTRY_COST + length };
}

static noinline int emu_post_chain(struct emu_qp *qp, const struct ib_send_wr *wr, u32 length,
				   const struct ib_send_wr **bad_wr)
{
	struct emu_chained chained;

	preempt_disable();
	chained = emu_chain_direct(qp, wr, length);
	preempt_enable();
	if (likely(!chained.rest))
		return 0;
	return emu_post_sends(qp, chained.rest, bad_wr, chained.spent);
}

int emu_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr)
{
	struct emu_qp *qp = to_eqp(ibqp);
	bool posted = false;
	u32 length;

	if (likely(emu_is_direct(qp, wr, EMU_SHORT_BYTES, &length))) {
		if (unlikely(wr->next))
			return emu_post_chain(qp, wr, length, bad_wr);
		preempt_disable();
		posted = emu_post_direct(qp, wr, length);
		preempt_enable();
	}
	return likely(posted) ? 0 : emu_post_sends(qp, wr, bad_wr, 0);
}
