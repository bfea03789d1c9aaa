// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that a process posts.
 *
 * The owner of the queue pair's doorbell takes them, one at a time, as it executes them; see
 * queue/user.h. Nobody else reads the ring, so there is nothing to be locked. An entry is copied
 * into the queue pair's own ring, whose positions are those of the process's: entry @base of the
 * ring is position 0. A reset begins with what the process posts next.
 *
 * A queue pair that cannot send yet takes no requests, as IBTA vol. 1, C10-96, wants it: its
 * doorbell refuses what has been written, and drops it, as a reset does.
 *
 * An entry counts until its completion can be polled, as it does for consumers in the kernel:
 * emu_user_retired_sends() tells the process.
 *
 * The process can be told of an error by a completion only.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "ring.h"
#include "user.h"

/* IB_SEND_* that mean something here. */
#define EMU_USER_SEND_FLAGS	(IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | \
				 IB_SEND_INLINE)
/*
 * Not IB_WR_REG_MR, nor anything else that is for the kernel: IB_WR_RDMA_READ_WITH_INV is another
 * opcode to libibverbs.
 */
#define EMU_USER_SENDS		(BIT(IB_WR_SEND) | BIT(IB_WR_SEND_WITH_IMM) |		\
				 BIT(IB_WR_SEND_WITH_INV))
#define EMU_USER_WRITES		(BIT(IB_WR_RDMA_WRITE) | BIT(IB_WR_RDMA_WRITE_WITH_IMM))
#define EMU_USER_READS		BIT(IB_WR_RDMA_READ)
#define EMU_USER_ATOMICS	(BIT(IB_WR_ATOMIC_CMP_AND_SWP) | BIT(IB_WR_ATOMIC_FETCH_AND_ADD))
#define EMU_USER_KEYS		(BIT(IB_WR_LOCAL_INV) | BIT(IB_WR_BIND_MW))
#define EMU_USER_OPS		(EMU_USER_SENDS | EMU_USER_WRITES | EMU_USER_READS |	\
				 EMU_USER_ATOMICS | EMU_USER_KEYS)

/* The part of a key that its consumer chooses. */
#define EMU_USER_KEY_MASK	(BIT(EMU_KEY_SHIFT) - 1)

/* What is read of a request; behind that is the address that librxe has for rdma_rxe. */
#define EMU_USER_WR_BYTES	offsetof(struct rxe_send_wr, wr.ud.av)

/* Bytes of an atomic operation's operand. */
#define EMU_ATOMIC_BYTES	8

/* What a window can be bound with; all else means nothing. */
#define EMU_BIND_ACCESS		(EMU_WINDOW_ACCESS | IB_ZERO_BASED)

/**
 * struct emu_user_sq - where a process posts requests
 * @ring: the ring
 * @base: entry of the ring that is position 0 of the queue pair's
 * @wr: copy of the request that the owner of the doorbell takes; on its stack it would be cleared
 *	each time, by kernels that are built so
 */
struct emu_user_sq {
	struct emu_uring *ring;
	u32 base;
	struct rxe_send_wr wr;
};

static void emu_user_refuse(struct emu_refusal *refusal, enum ib_wc_status status,
			    enum emu_syndrome why)
{
	if (refusal->status != IB_WC_SUCCESS)
		return;
	refusal->status = status;
	refusal->why = why;
}

/* Does this queue pair execute @opcode, which may be any number, for a process? */
static bool emu_user_may_post(const struct emu_qp *qp, u32 opcode)
{
	u64 ops = emu_send_ops(qp->ibqp.qp_type) & EMU_USER_OPS;

	if (qp->ibqp.qp_type == IB_QPT_RC)
		ops |= BIT(IB_WR_ATOMIC_WRITE);
	return opcode < 32 && (BIT(opcode) & ops);
}

static void emu_user_fill_inline(const struct emu_qp *qp, struct emu_swqe *wqe,
				 const struct rxe_send_wqe *from, u32 length,
				 struct emu_refusal *refusal)
{
	if (!(BIT(wqe->opcode) & (EMU_USER_SENDS | EMU_USER_WRITES))) {
		emu_user_refuse(refusal, IB_WC_LOC_QP_OP_ERR, EMU_SYN_REQUEST);
		return;
	}
	if (length > qp->max_inline) {
		emu_user_refuse(refusal, IB_WC_LOC_LEN_ERR, EMU_SYN_LENGTH);
		return;
	}
	/* Nobody looks at the data before it is sent, so it may change while it is copied. */
	memcpy(wqe->sge, from->dma.inline_data, length);
	wqe->length = length;
}

static void emu_user_fill_sges(const struct emu_qp *qp, struct emu_swqe *wqe,
			       const struct rxe_send_wqe *from, u32 num_sge,
			       struct emu_refusal *refusal)
{
	u32 max_sge = qp->max_send_sge;
	u64 length = 0;
	u32 i;

	if (BIT(wqe->opcode) & EMU_USER_READS)
		max_sge = min_t(u32, max_sge, qp->edev->ibdev.attrs.max_sge_rd);
	/*
	 * IBTA vol. 1 has one data segment for the result, though some HCAs scatter it. A queue
	 * pair may have none.
	 */
	if (BIT(wqe->opcode) & EMU_USER_ATOMICS)
		max_sge = min_t(u32, max_sge, 1);
	if (num_sge > max_sge) {
		emu_user_refuse(refusal, IB_WC_LOC_QP_OP_ERR, EMU_SYN_REQUEST);
		return;
	}
	emu_uring_copy_sges(wqe->sge, from->dma.sge, num_sge);
	for (i = 0; i < num_sge; i++)
		length += wqe->sge[i].length;
	if (length > EMU_MAX_MSG_SIZE ||
	    ((BIT(wqe->opcode) & EMU_USER_ATOMICS) && length != EMU_ATOMIC_BYTES)) {
		emu_user_refuse(refusal, IB_WC_LOC_LEN_ERR, EMU_SYN_LENGTH);
		return;
	}
	wqe->num_sge = num_sge;
	wqe->length = length;
}

static void emu_user_fill_ud(struct emu_qp *qp, struct emu_swqe *wqe, const struct rxe_send_wr *wr,
			     struct emu_refusal *refusal)
{
	struct emu_av *av = emu_swqe_av(qp, wqe);
	u32 qkey = wr->wr.ud.remote_qkey;

	/* A packet has no room for more. */
	wqe->ud.qpn = wr->wr.ud.remote_qpn & IB_QPN_MASK;
	/* IBTA vol. 1, 10.2.5: the highest bit asks for the queue pair's own. */
	wqe->ud.qkey = qkey & BIT(31) ? READ_ONCE(qp->qkey) : qkey;
	wqe->ud.pkey_index = 0;
	if (!emu_user_find_av(wr->wr.ud.ah_num, qp->ibqp.pd, av) ||
	    av->port != qp->port)
		emu_user_refuse(refusal, IB_WC_LOC_QP_OP_ERR, EMU_SYN_REQUEST);
}

/* The operand is where inline data would be, and in the entry's own memory, too. */
static void emu_user_fill_atomic_write(struct emu_swqe *wqe, const struct rxe_send_wr *wr,
				       const struct rxe_send_wqe *from)
{
	wqe->send_flags &= ~IB_SEND_INLINE;
	wqe->atomic.remote_addr = wr->wr.rdma.remote_addr;
	wqe->atomic.rkey = wr->wr.rdma.rkey;
	wqe->atomic.done = false;
	memcpy(&wqe->atomic.swap, from->dma.inline_data, EMU_ATOMIC_BYTES);
	wqe->length = EMU_ATOMIC_BYTES;
}

static void emu_user_fill_bind(struct emu_swqe *wqe, const struct rxe_send_wr *wr)
{
	wqe->bind.mw_key = wr->wr.mw.mw_rkey;
	/* Of the new key a process chooses the low byte; librxe passes on what it was given. */
	wqe->bind.new_key = (wr->wr.mw.mw_rkey & ~EMU_USER_KEY_MASK) |
			    (wr->wr.mw.rkey & EMU_USER_KEY_MASK);
	wqe->bind.mr_key = wr->wr.mw.mr_lkey;
	wqe->bind.access = wr->wr.mw.access & EMU_BIND_ACCESS;
	wqe->bind.addr = wr->wr.mw.addr;
	wqe->bind.length = wr->wr.mw.length;
}

/* Fills in what the operation needs. @wr is a copy. */
static void emu_user_fill_op(struct emu_qp *qp, struct emu_swqe *wqe,
			     const struct rxe_send_wr *wr, struct emu_refusal *refusal)
{
	u32 op = BIT(wqe->opcode);

	if (emu_qp_is_datagram(qp)) {
		emu_user_fill_ud(qp, wqe, wr, refusal);
	} else if (op & EMU_USER_ATOMICS) {
		wqe->atomic.remote_addr = wr->wr.atomic.remote_addr;
		wqe->atomic.rkey = wr->wr.atomic.rkey;
		wqe->atomic.done = false;
		wqe->atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->atomic.swap = wr->wr.atomic.swap;
	} else if (wqe->opcode == IB_WR_BIND_MW) {
		emu_user_fill_bind(wqe, wr);
	} else {
		wqe->rdma.remote_addr = wr->wr.rdma.remote_addr;
		wqe->rdma.rkey = wr->wr.rdma.rkey;
		wqe->rdma.data_done = false;
	}
}

/* @wr is a copy of what is asked for by the entry at @from. */
static void emu_user_fill(struct emu_qp *qp, struct emu_swqe *wqe, const struct rxe_send_wr *wr,
			  const struct rxe_send_wqe *from, struct emu_refusal *refusal)
{
	bool known = emu_user_may_post(qp, wr->opcode);

	wqe->opcode = known ? wr->opcode : IB_WR_SEND;
	wqe->num_sge = 0;
	wqe->send_flags = wr->send_flags & EMU_USER_SEND_FLAGS;
	wqe->length = 0;
	wqe->ex.imm_data = wr->ex.imm_data;
	wqe->wr_id = wr->wr_id;
	refusal->opcode = wr->opcode;
	if (!known) {
		emu_user_refuse(refusal, IB_WC_LOC_QP_OP_ERR, EMU_SYN_REQUEST);
		return;
	}
	if (wqe->opcode == IB_WR_ATOMIC_WRITE) {
		emu_user_fill_atomic_write(wqe, wr, from);
		return;
	}
	emu_user_fill_op(qp, wqe, wr, refusal);
	if (BIT(wqe->opcode) & EMU_USER_KEYS)
		wqe->send_flags &= ~IB_SEND_INLINE;
	else if (wqe->send_flags & IB_SEND_INLINE)
		emu_user_fill_inline(qp, wqe, from, READ_ONCE(from->dma.length), refusal);
	else
		emu_user_fill_sges(qp, wqe, from, READ_ONCE(from->dma.num_sge), refusal);
}

/* See struct emu_user_ops. */
bool emu_user_fetch(struct emu_qp *qp, struct emu_refusal *refusal)
{
	struct emu_user_sq *sq = qp->user_sq;
	u32 pos = atomic_read(&qp->sq.head);
	u32 at = (sq->base + pos) & sq->ring->mask;
	struct emu_swqe *wqe = (struct emu_swqe *)emu_ring_slot(&qp->sq, pos);
	const struct rxe_send_wqe *from = emu_uring_entry(sq->ring, at);

	BUILD_BUG_ON(EMU_USER_WR_BYTES % sizeof(u64));
	if (emu_uring_producer(sq->ring) == at)
		return false;
	emu_uring_copy(&sq->wr, &from->wr, EMU_USER_WR_BYTES);
	emu_user_fill(qp, wqe, &sq->wr, from, refusal);
	/* The slot is free, whatever has been retired: the entry before it has ended. */
	atomic_set(&qp->sq.head, pos + 1);
	emu_ring_publish(&wqe->slot, pos);
	return true;
}

/* The owner of the pump of its CQ calls it: see cq.c. */
void emu_user_retired_sends(const struct emu_qp *qp)
{
	const struct emu_user_sq *sq = qp->user_sq;

	emu_uring_consumed(sq->ring, sq->base + (u32)atomic_read(&qp->sq.retired));
}

u32 emu_user_sends_end(const struct emu_qp *qp)
{
	return emu_uring_producer(qp->user_sq->ring);
}

/* See @drop_sends of struct emu_user_ops: the queue pair has no completions. */
void emu_user_drop_sends(struct emu_qp *qp, u32 end)
{
	struct emu_user_sq *sq = qp->user_sq;

	sq->base = end;
	emu_uring_consumed(sq->ring, end);
}

static size_t emu_user_swqe_size(const struct ib_qp_cap *cap)
{
	size_t data = max_t(size_t, cap->max_inline_data, EMU_ATOMIC_BYTES);

	return sizeof(struct rxe_send_wqe) + max(data, cap->max_send_sge * sizeof(struct rxe_sge));
}

/* Sets the size in @init to what it becomes. */
int emu_user_make_sq(struct emu_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct emu_user_sq *sq = kzalloc(sizeof(*sq), GFP_KERNEL_ACCOUNT);
	struct emu_uring *ring;

	if (!sq)
		return -ENOMEM;
	ring = emu_uring_create(emu_user_context(udata), init->cap.max_send_wr,
				emu_user_swqe_size(&init->cap));
	if (IS_ERR(ring)) {
		kfree(sq);
		return PTR_ERR(ring);
	}
	sq->ring = ring;
	qp->user_sq = sq;
	init->cap.max_send_wr = ring->mask;
	return 0;
}

void emu_user_free_sq(struct emu_qp *qp)
{
	if (!qp->user_sq)
		return;
	emu_uring_destroy(qp->user_sq->ring);
	kfree(qp->user_sq);
}

struct mminfo emu_user_sq_info(const struct emu_qp *qp)
{
	return emu_uring_info(qp->user_sq->ring);
}
