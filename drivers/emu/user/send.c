// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that a process posts.
 *
 * The owner of the queue pair's doorbell takes them, one at a time, as it executes them; see
 * queue/user.h. Nobody else reads the ring, so no lock is needed. An entry is copied into the
 * queue pair's own ring, at the same position: entry @base of the process's ring is position 0. A
 * reset moves @base to the entry that the process writes next.
 *
 * A queue pair that cannot send yet takes no requests (IBTA vol. 1, C10-96): its doorbell refuses
 * what has been written, and drops it, as a reset does.
 *
 * As for consumers in the kernel, an entry occupies its queue until its completion can be polled.
 * emu_user_retired_sends() then tells the process that there is room.
 *
 * Writing to the ring returns no error, so an invalid request is reported by a completion.
 */
#include <linux/slab.h>
#include <rdma/uverbs_ioctl.h>

#include "ring.h"
#include "user.h"

/* The flags of a request that are supported; all others are ignored. */
#define EMU_USER_SEND_FLAGS	(IB_SEND_FENCE | IB_SEND_SIGNALED | IB_SEND_SOLICITED | \
				 IB_SEND_INLINE)
/*
 * The operations that a process may post. IB_WR_REG_MR and others are for the kernel only, and to
 * libibverbs the number of IB_WR_RDMA_READ_WITH_INV is another opcode.
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

/* The part of a request that is read. An address follows, which only rdma_rxe needs. */
#define EMU_USER_WR_BYTES	offsetof(struct rxe_send_wr, wr.ud.av)

/* Bytes of an atomic operation's operand. */
#define EMU_ATOMIC_BYTES	8

/* The flags of a bind that are supported; all others are ignored. */
#define EMU_BIND_ACCESS		(EMU_WINDOW_ACCESS | IB_ZERO_BASED)

/**
 * struct emu_user_sq - where a process posts requests
 * @ring: the ring
 * @base: entry of the ring that is position 0 of the queue pair's
 * @wr: copy of the request that the owner of the doorbell takes; not on the stack, because with
 *	CONFIG_INIT_STACK_ALL_* it would be initialised each time
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

/* Whether a process may post @opcode, which may be any number, to this queue pair. */
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
	wqe->send_flags |= IB_SEND_INLINE;
	/* The process may change the data during the copy: the kernel does not interpret it. */
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
	 * An atomic has one data segment for its result (IBTA vol. 1), although some HCAs allow
	 * more. A queue pair may have been created with none.
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

	/* A packet has room for 24 bits. */
	wqe->ud.qpn = wr->wr.ud.remote_qpn & IB_QPN_MASK;
	/* IBTA vol. 1, 10.2.5: the highest bit asks for the Q_Key of the queue pair. */
	wqe->ud.qkey = qkey & BIT(31) ? READ_ONCE(qp->qkey) : qkey;
	wqe->ud.pkey_index = 0;
	if (!emu_user_find_av(wr->wr.ud.ah_num, qp->ibqp.pd, av) ||
	    av->port != qp->port)
		emu_user_refuse(refusal, IB_WC_LOC_QP_OP_ERR, EMU_SYN_REQUEST);
}

/* The operand is where inline data would be, but is copied to the field for a swap value. */
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
	/* The process chooses the low byte of the new key only, but librxe passes a whole key. */
	wqe->bind.new_key = (wr->wr.mw.mw_rkey & ~EMU_USER_KEY_MASK) |
			    (wr->wr.mw.rkey & EMU_USER_KEY_MASK);
	wqe->bind.mr_key = wr->wr.mw.mr_lkey;
	wqe->bind.access = wr->wr.mw.access & EMU_BIND_ACCESS;
	wqe->bind.addr = wr->wr.mw.addr;
	wqe->bind.length = wr->wr.mw.length;
}

/* Fills in the fields that depend on the operation. */
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

/*
 * Whether the data is in the entry. librxe's ibv_wr_set_inline_data() sets the length alone:
 * programs need not set the flag then (ibv_wr_post(3)). Elements have a number.
 */
static bool emu_user_has_inline(const struct emu_swqe *wqe, u32 num_sge, u32 length)
{
	if (wqe->send_flags & IB_SEND_INLINE)
		return true;
	return (BIT(wqe->opcode) & (EMU_USER_SENDS | EMU_USER_WRITES)) && !num_sge && length;
}

/* Fills in @wqe from @wr, a copy of the request in the process's entry at @from. */
static void emu_user_fill_swqe(struct emu_qp *qp, struct emu_swqe *wqe,
			       const struct rxe_send_wr *wr, const struct rxe_send_wqe *from,
			       struct emu_refusal *refusal)
{
	u32 num_sge = READ_ONCE(from->dma.num_sge), length = READ_ONCE(from->dma.length);
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
	else if (emu_user_has_inline(wqe, num_sge, length))
		emu_user_fill_inline(qp, wqe, from, length, refusal);
	else
		emu_user_fill_sges(qp, wqe, from, num_sge, refusal);
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
	emu_user_fill_swqe(qp, wqe, &sq->wr, from, refusal);
	/* The slot is free even if nothing was retired yet: the entry in it has been executed. */
	atomic_set(&qp->sq.head, pos + 1);
	emu_ring_publish(&wqe->slot, pos);
	return true;
}

/* Tells the process how many requests have been retired. Called by the owner of the CQ's pump. */
void emu_user_retired_sends(const struct emu_qp *qp)
{
	const struct emu_user_sq *sq = qp->user_sq;

	emu_uring_consumed(sq->ring, sq->base + (u32)atomic_read(&qp->sq.retired));
}

u32 emu_user_sends_end(const struct emu_qp *qp)
{
	return emu_uring_producer(qp->user_sq->ring);
}

/* See @drop_sends of struct emu_user_ops. None of the queue pair's completions are left. */
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

/* Creates the ring of a queue pair's requests. Sets the size in @init to that of the ring. */
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
