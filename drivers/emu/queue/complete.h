/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Completions: from the end of an entry to the CQ.
 */
#ifndef KVERBS_EMU_COMPLETE_H
#define KVERBS_EMU_COMPLETE_H

#include "qp.h"

void emu_complete_send(struct emu_qp *qp, const struct emu_swqe *wqe, u32 pos,
		       enum ib_wc_status status, enum emu_syndrome why);

/* Fills in the origin of a completion that is not of a received message. */
static __always_inline void emu_cqe_no_message(struct emu_cqe *cqe, const struct emu_qp *qp,
					       u16 retires)
{
	cqe->origin = (struct emu_cqe_origin) {
		.retires = retires,
		.port_num = qp->attr.port_num,
	};
}

/* As emu_complete_send(), for a request that need not be in the ring. @flags: its IB_SEND_* */
static __always_inline void __emu_complete_send(struct emu_qp *qp, u32 pos, u64 wr_id, u32 length,
						u32 flags, u8 opcode, enum ib_wc_status status,
						enum emu_syndrome why)
{
	struct emu_cq *cq = to_ecq(qp->ibqp.send_cq);
	u16 retires = qp->unretired + 1;
	struct emu_cqe *cqe;
	u32 cq_pos;

	emu_ring_advance(&qp->sq, pos);
	if (!(flags & IB_SEND_SIGNALED) && !qp->sig_all && status == IB_WC_SUCCESS) {
		qp->unretired = retires;
		return;
	}
	cqe = emu_cq_begin(cq, &cq_pos);
	if (unlikely(!cqe)) {
		qp->unretired = retires;
		emu_qp_lost(qp);
		return;
	}
	qp->unretired = 0;
	cqe->wr_id = wr_id;
	cqe->status = status;
	cqe->opcode = opcode;
	cqe->vendor_err = why;
	cqe->byte_len = length;
	cqe->qp = &qp->ibqp;
	emu_cqe_no_message(cqe, qp, retires);
	emu_cq_end(cq, cqe, cq_pos, status != IB_WC_SUCCESS);
}

/*
 * Starts a completion of a receive. The caller fills in the rest, with 1 for @retires, and calls
 * emu_cq_end(). NULL if the CQ is full: the completion is lost, and the queue pair in error.
 */
static __always_inline struct emu_cqe *emu_recv_begin(struct emu_qp *qp, u64 wr_id, u32 *pos)
{
	struct emu_cqe *cqe;

	cqe = emu_cq_begin(to_ecq(qp->ibqp.recv_cq), pos);
	if (unlikely(!cqe)) {
		emu_qp_lost(qp);
		return NULL;
	}
	cqe->wr_id = wr_id;
	cqe->qp = &qp->ibqp;
	return cqe;
}

#endif
