// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: requests with a side effect: a SEND that invalidates an MR of the peer, an
 * RDMA WRITE with immediate data, which consumes a receive, and an RDMA READ that invalidates
 * a local MR.
 */
#include "fuzz/fuzz.h"

/* Slots of MRs that these requests use. */
#define X_MRS		3
/* Bytes that are written or read. */
#define X_RDMA_BYTES	64

/* Is there an MR on the device of the QP? An invalid one is accepted for one @r in eight. */
static bool has_region(const struct x_world *w, int slot, const struct x_qp *qp, u32 r)
{
	/* The device matters, for MRs of two devices may have the same key. */
	return xm_there(w, X_MR, slot) &&
	       xm_dev(w, X_MR, slot) == xm_dev(w, X_QP, qp - w->qp) &&
	       (w->mr[slot].valid || !(r % 8));
}

static void set_invalidated(const struct x_world *w, struct x_wr *wr, int slot)
{
	wr->inv = slot;
	wr->inv_key = w->mr[slot].key;
}

enum x_verdict x_send_inv(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a], *peer = x_responder(w, op);
	struct ib_send_wr send = { .opcode = IB_WR_SEND_WITH_INV, .num_sge = 1 };
	struct ib_sge sge;
	struct x_wr *wr;
	u32 room;

	/* If the peer has no receive for the SEND, it is posted one time in eight only. */
	if (!peer || !has_region(w, op->b % X_MRS, peer, op->r) ||
	    (!x_receives_for(w, qp) && op->r >> 3 & 7))
		return X_SKIPPED;
	if (x_settle(w) || x_make_room(w, &qp->sq, 1, &room))
		return X_FAILED;
	wr = x_new_wr(w, &qp->sq, 0, X_SEND, &sge, op->r & 0x40 ? 64 : 16);
	set_invalidated(w, wr, op->b % X_MRS);
	send.sg_list = &sge;
	send.ex.invalidate_rkey = wr->inv_key;
	return x_post_one(w, op->a, &send, wr, room ? 0 : -ENOMEM);
}

/* @own: slot of the MR that a READ invalidates, or -1 for a WRITE with immediate data. */
static enum x_verdict post(struct x_world *w, const struct x_op *op, int own)
{
	struct x_qp *qp = &w->qp[op->a];
	struct ib_rdma_wr rdma = {};
	int mr = op->b % X_MRS;
	struct ib_sge sge;
	struct x_wr *wr;
	u32 room;

	if (x_settle(w) || x_make_room(w, &qp->sq, 1, &room))
		return X_FAILED;
	wr = x_new_wr(w, &qp->sq, 0, own < 0 ? X_WRITE : X_READ, &sge, X_RDMA_BYTES);
	wr->mr = mr;
	wr->key = w->mr[mr].key;
	wr->imm = own < 0;
	rdma.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	rdma.wr.ex.imm_data = cpu_to_be32(wr->payload);
	if (own >= 0) {
		set_invalidated(w, wr, own);
		rdma.wr.opcode = IB_WR_RDMA_READ_WITH_INV;
		rdma.wr.ex.invalidate_rkey = wr->inv_key;
	}
	rdma.wr.sg_list = &sge;
	rdma.wr.num_sge = 1;
	rdma.rkey = wr->key;
	rdma.remote_addr = ((struct ib_mr *)w->ptr[X_MR][mr])->iova;
	return x_post_one(w, op->a, &rdma.wr, wr, room ? 0 : -ENOMEM);
}

enum x_verdict x_write_imm(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a], *peer = x_responder(w, op);
	int mr = op->b % X_MRS;

	if (!peer || !has_region(w, mr, peer, op->r) || !w->mr[mr].mapped)
		return X_SKIPPED;
	/* The model does not know when a WRITE that waits for a receive checks the MR again. */
	if (!x_executes(qp) || (!x_receives_for(w, qp) && (qp->rnr_retry == 7 || op->r & 0x70)))
		return X_SKIPPED;
	return post(w, op, -1);
}

enum x_verdict x_read_inv(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a], *peer = x_responder(w, op);
	int mr = op->b % X_MRS, own = op->c % X_MRS;

	if (!peer || !has_region(w, mr, peer, op->r) || !w->mr[mr].mapped ||
	    !has_region(w, own, qp, op->r >> 3))
		return X_SKIPPED;
	return post(w, op, own);
}
