/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A shortcut for most messages.
 *
 * It takes SENDs, RDMA WRITEs and RDMA READs over a connection, up to EMU_SHORT_BYTES long, of
 * one range of RAM under the local DMA key. A SEND goes into a receive that is such a range too,
 * of the responder's own queue or of its SRQ; the others access a region, not a window, where it
 * is contiguous. Everything else goes through exec.c, which does the same and more: each
 * function here returns without having done anything if a message is not that simple, or if
 * anything is wrong with it.
 *
 * emu_exec_simple() decides whether an entry of a send queue takes the shortcut; direct.c does, for
 * a request that is not in a queue yet. connected.c uses parts of this for a message that is
 * inline, or one range of a region.
 */
#ifndef KVERBS_EMU_FASTPATH_H
#define KVERBS_EMU_FASTPATH_H

#include "../memory/target.h"
#include "in_memory.h"

/* Up to this length, a few words at a time cost less than a call of memcpy(). */
#define EMU_WORDS_BYTES	256

/**
 * struct emu_simple - a request, wherever it is
 * @opcode: IB_WR_SEND, IB_WR_RDMA_WRITE or IB_WR_RDMA_READ
 * @flags: IB_SEND_*
 * @length: bytes of the message, at most EMU_SHORT_BYTES
 * @wr_id: where the consumer's identifier is
 * @remote_addr: where the address at the peer is; only followed for RDMA
 * @rkey: where the key is; likewise
 *
 * Only passed to functions that are always inline, so that the compiler keeps it in registers.
 */
struct emu_simple {
	u32 opcode;
	u32 flags;
	u32 length;
	const u64 *wr_id;
	const u64 *remote_addr;
	const u32 *rkey;
};

/* Returns the request in an entry of a send queue. */
static __always_inline struct emu_simple emu_simple_of(const struct emu_swqe *wqe)
{
	return (struct emu_simple) {
		.opcode = wqe->opcode,
		.flags = wqe->send_flags,
		.length = wqe->length,
		.wr_id = &wqe->wr_id,
		.remote_addr = &wqe->rdma.remote_addr,
		.rkey = &wqe->rdma.rkey,
	};
}

/**
 * enum emu_shortcut - result of trying the shortcut
 * @EMU_NOT_SIMPLE: nothing was done; exec.c knows what to do
 * @EMU_SIMPLE: both sides have their completions
 * @EMU_SIMPLE_LOST: the responder's completion was lost, and the request has none yet
 */
enum emu_shortcut {
	EMU_NOT_SIMPLE,
	EMU_SIMPLE,
	EMU_SIMPLE_LOST,
};

struct emu_words {
	u64 word[2];
} __packed;

struct emu_block {
	u64 word[8];
} __packed;

/* Lengths that are not a multiple of the block size. */
static noinline void emu_copy_odd(void *to, const void *from, u32 length)
{
	const struct emu_words *source = from;
	struct emu_words *target = to;

	if (length > EMU_WORDS_BYTES || length % sizeof(*target)) {
		memcpy(to, from, length);
		return;
	}
	for (; length; length -= sizeof(*target))
		*target++ = *source++;
}

static __always_inline void emu_copy_simple(void *to, const void *from, u32 length)
{
	const struct emu_block *source = from, *end = from + length;
	struct emu_block *target = to;

	if (unlikely(length > EMU_WORDS_BYTES || length % sizeof(*target))) {
		emu_copy_odd(to, from, length);
		return;
	}
	while (source != end)
		*target++ = *source++;
}

static __always_inline bool emu_is_simple_op(u32 opcode)
{
	return opcode == IB_WR_SEND || opcode == IB_WR_RDMA_WRITE || opcode == IB_WR_RDMA_READ;
}

/*
 * The memory of a list that is one element in RAM, good for EMU_SHORT_BYTES bytes
 * from the element's address on; NULL for any other list.
 */
static __always_inline void *emu_short_span(const struct ib_sge *sge, u32 num_sge)
{
	u64 offset;

	if (unlikely(num_sge != 1 || sge->lkey != EMU_LOCAL_DMA_LKEY))
		return NULL;
	offset = sge->addr - emu_main_ram.start;
	if (unlikely(offset >= emu_main_ram.short_size))
		return NULL;
	return emu_main_ram.mem + offset;
}

/* Takes the next receive of a ring, if it is simple and has room. Returns its memory, or NULL. */
static __always_inline void *emu_simple_claim(struct emu_ring *ring, u32 length, u64 *wr_id)
{
	u32 pos = atomic_read(&ring->tail);
	struct emu_rwqe *rwqe = (struct emu_rwqe *)emu_ring_slot(ring, pos);
	void *to;

	if (unlikely(!emu_ring_is_published(&rwqe->slot, pos)))
		return NULL;
	/*
	 * In an SRQ, another engine may take the entry, and a poster refill the slot, while this
	 * reads it: then what was read is garbage, but emu_ring_take() fails.
	 */
	to = data_race(emu_short_span(rwqe->sge, READ_ONCE(rwqe->num_sge)));
	/* May be garbage, too. Read after @to: if entries have no elements, there is no sge[0]. */
	if (unlikely(!to || length > data_race(rwqe->sge[0].length)))
		return NULL;
	/* May be garbage, too. Read before the entry is taken: then posters may overwrite it. */
	*wr_id = data_race(rwqe->wr_id);
	if (unlikely(!emu_ring_take(ring, pos)))
		return NULL;
	return to;
}

/* As emu_simple_claim(), from where the responder takes its receives. */
static __always_inline void *emu_simple_receive(struct emu_qp *peer, u32 length, u64 *wr_id)
{
	int where = atomic_read(&peer->recv_from);
	void *to;

	if (likely(!where))
		return emu_simple_claim(&peer->rq, length, wr_id);
	if (unlikely(where != EMU_FROM_SRQ))
		return NULL;
	to = emu_simple_claim(emu_srq_front(peer->srq), length, wr_id);
	if (likely(to))
		emu_srq_taken(peer->srq);
	return to;
}

static __always_inline enum emu_shortcut emu_simple_send(struct emu_qp *qp, struct emu_qp *peer,
							 const struct emu_simple *msg,
							 const void *from, u32 pos)
{
	u64 wr_id;
	void *to;

	to = emu_simple_receive(peer, msg->length, &wr_id);
	if (unlikely(!to))
		return EMU_NOT_SIMPLE;
	emu_copy_simple(to, from, msg->length);
	if (unlikely(!emu_complete_recv(qp, peer, wr_id, msg->length, msg->flags)))
		return EMU_SIMPLE_LOST;
	__emu_complete_send(qp, pos, *msg->wr_id, msg->length, msg->flags, IB_WC_SEND,
			    IB_WC_SUCCESS, EMU_SYN_NONE);
	return EMU_SIMPLE;
}

/* Whether the attributes of both queue pairs allow an RDMA READ, or WRITE. */
static __always_inline bool emu_simple_access(const struct emu_qp *qp, const struct emu_qp *peer,
					      bool read)
{
	if (!read)
		return READ_ONCE(peer->access) & IB_ACCESS_REMOTE_WRITE;
	return (READ_ONCE(peer->access) & IB_ACCESS_REMOTE_READ) && qp->attr.max_rd_atomic &&
	       peer->attr.max_dest_rd_atomic;
}

/* Moves the data of an RDMA WRITE or READ. False if nothing was done. */
static __always_inline bool emu_simple_move(struct emu_qp *qp, struct emu_qp *peer,
					    const struct emu_simple *msg, void *local, bool read)
{
	struct emu_region *region;
	u32 rkey = *msg->rkey;
	void *remote;

	/* A message of length 0 is left to the general path: its key is not checked. */
	if (unlikely(!msg->length || !emu_simple_access(qp, peer, read)))
		return false;
	if (unlikely(!emu_target_enter(&qp->target, peer->edev, rkey)))
		return false;
	region = qp->target.region;
	remote = emu_target_span(region, rkey, peer->ibqp.pd,
				 read ? IB_ACCESS_REMOTE_READ : IB_ACCESS_REMOTE_WRITE,
				 *msg->remote_addr, msg->length);
	if (likely(remote))
		emu_copy_simple(read ? local : remote, read ? remote : local, msg->length);
	emu_target_leave(region);
	return likely(remote);
}

static __always_inline void emu_simple_moved(struct emu_qp *qp, const struct emu_simple *msg,
					     u32 pos, bool read)
{
	__emu_complete_send(qp, pos, *msg->wr_id, msg->length, msg->flags,
			    read ? IB_WC_RDMA_READ : IB_WC_RDMA_WRITE,
			    IB_WC_SUCCESS, EMU_SYN_NONE);
}

static __always_inline enum emu_shortcut emu_simple_rdma(struct emu_qp *qp, struct emu_qp *peer,
							 const struct emu_simple *msg,
							 void *local, u32 pos, bool read)
{
	if (unlikely(!emu_simple_move(qp, peer, msg, local, read)))
		return EMU_NOT_SIMPLE;
	emu_simple_moved(qp, msg, pos, read);
	return EMU_SIMPLE;
}

/**
 * emu_simple_execute() - execute a simple message
 * @qp: queue pair that sends it, owned by the caller
 * @peer: its peer, entered
 * @msg: the message
 * @local: its memory
 * @pos: its position in the send queue, which is the oldest
 *
 * The caller counts it.
 *
 * Context: The owner of the queue pair's doorbell, preemption off.
 * Return: see enum emu_shortcut.
 */
static __always_inline enum emu_shortcut emu_simple_execute(struct emu_qp *qp, struct emu_qp *peer,
							    const struct emu_simple *msg,
							    void *local, u32 pos)
{
	if (likely(msg->opcode == IB_WR_SEND))
		return emu_simple_send(qp, peer, msg, local, pos);
	if (likely(msg->opcode == IB_WR_RDMA_WRITE))
		return emu_simple_rdma(qp, peer, msg, local, pos, false);
	return emu_simple_rdma(qp, peer, msg, local, pos, true);
}

/* Counts a message to or from the peer, which is entered. */
static __always_inline void emu_simple_count(struct emu_exec *ex, const struct emu_simple *msg)
{
	if (likely(msg->opcode != IB_WR_RDMA_READ))
		emu_exec_sent(ex, msg->length);
	else
		emu_count_messages(ex->peer->port, ex->qp->port, 1, msg->length);
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
	struct emu_simple msg = emu_simple_of(wqe);
	enum emu_shortcut way;
	void *local;

	if (static_branch_unlikely(&emu_detour))
		return false;
	if (!emu_is_simple_op(msg.opcode) || msg.length > EMU_SHORT_BYTES)
		return false;
	local = emu_short_span(wqe->sge, wqe->num_sge);
	if (unlikely(!local || !qp->fastpath || !emu_enter_same_peer(ex)))
		return false;
	way = emu_simple_execute(qp, ex->peer, &msg, local, pos);
	if (unlikely(way == EMU_NOT_SIMPLE))
		return false;
	emu_simple_count(ex, &msg);
	if (unlikely(way == EMU_SIMPLE_LOST))
		emu_lost_recv(ex, wqe, pos);
	return true;
}

#endif
