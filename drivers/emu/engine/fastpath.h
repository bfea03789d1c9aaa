/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A shortcut for most messages.
 *
 * It takes a SEND over a connection, from one range of RAM under the local DMA
 * key into another. Everything else goes through exec.c, which does the same and
 * more.
 */
#ifndef KVERBS_EMU_FASTPATH_H
#define KVERBS_EMU_FASTPATH_H

#include "in_memory.h"

/* Up to this length, two words at a time cost less than a call of memcpy(). */
#define EMU_WORDS_BYTES	128

struct emu_words {
	u64 word[2];
} __packed;

static __always_inline void emu_copy_simple(void *to, const void *from, u32 length)
{
	const struct emu_words *source = from;
	struct emu_words *target = to;

	if (unlikely(length > EMU_WORDS_BYTES || length % sizeof(*target))) {
		memcpy(to, from, length);
		return;
	}
	for (; length; length -= sizeof(*target))
		*target++ = *source++;
}

/*
 * Returns the responder if its receives are those of its own queue, in order;
 * else NULL. Enters it first, if it has not been entered.
 */
static __always_inline struct emu_qp *emu_simple_peer(struct emu_exec *ex, struct emu_qp *qp)
{
	struct emu_qp *peer;

	if (unlikely(!qp->fastpath || emu_enter_peer(ex) != EMU_DONE))
		return NULL;
	peer = ex->peer;
	return likely(!atomic_read(&peer->recv_from)) ? peer : NULL;
}

/*
 * The memory of a list that is one element in RAM, good for EMU_SHORT_BYTES bytes
 * from the element's address on; NULL for any other list.
 */
static __always_inline void *emu_short_span(const struct ib_sge *sge, int num_sge)
{
	u64 offset;

	if (unlikely(num_sge != 1 || sge->lkey != EMU_LOCAL_DMA_LKEY))
		return NULL;
	offset = sge->addr - emu_main_ram.start;
	if (unlikely(offset >= emu_main_ram.short_size))
		return NULL;
	return emu_main_ram.mem + offset;
}

/**
 * emu_exec_simple() - execute the oldest entry of a send queue, if it is simple
 * @ex: the owner at work
 * @qp: its queue pair
 * @wqe: the entry
 * @pos: its position
 *
 * Context: The owner of the queue pair's doorbell, preemption off.
 * Return: true if the entry was executed, and is gone; false if nothing was done.
 */
static __always_inline bool emu_exec_simple(struct emu_exec *ex, struct emu_qp *qp,
					    struct emu_swqe *wqe, u32 pos)
{
	u32 length = wqe->length, rpos;
	struct emu_rwqe *rwqe;
	struct emu_qp *peer;
	void *from, *to;
	u64 wr_id;

	if (static_branch_unlikely(&emu_faulty))
		return false;
	if (wqe->opcode != IB_WR_SEND || length > EMU_SHORT_BYTES)
		return false;
	/* First: who is entered hears of the connection, and this may be all there is. */
	from = emu_short_span(wqe->sge, wqe->num_sge);
	if (unlikely(!from))
		return false;
	peer = emu_simple_peer(ex, qp);
	if (unlikely(!peer))
		return false;
	rwqe = emu_ring_peek(&peer->rq, &rpos);
	if (unlikely(!rwqe || length > rwqe->length))
		return false;
	to = emu_short_span(rwqe->sge, rwqe->num_sge);
	/* Not after that: the entry belongs to posters again. */
	wr_id = rwqe->wr_id;
	if (unlikely(!to || !emu_ring_take(&peer->rq, rpos)))
		return false;

	emu_copy_simple(to, from, length);
	emu_exec_sent(ex, length);
	if (likely(emu_complete_recv(ex, wqe, wr_id, IB_WC_RECV, 0, IB_WC_SUCCESS, EMU_SYN_NONE)))
		__emu_complete_send(qp, wqe, pos, IB_WC_SEND, IB_WC_SUCCESS, EMU_SYN_NONE);
	else
		emu_lost_recv(ex, wqe, pos);
	return true;
}

#endif
