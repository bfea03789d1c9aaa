/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Completions: from the end of an entry to the CQ.
 */
#ifndef KVERBS_EMU_COMPLETE_H
#define KVERBS_EMU_COMPLETE_H

#include "qp.h"

void emu_complete_send(struct emu_qp *qp, const struct emu_swqe *wqe, u32 pos,
		       enum ib_wc_status status, enum emu_syndrome why);

/*
 * Fills in the part of a completion that describes an incoming message, where
 * there was none.
 */
static __always_inline void emu_cqe_no_message(struct emu_cqe *cqe, const struct emu_qp *qp)
{
	cqe->ex.imm_data = 0;
	cqe->src_qp = 0;
	cqe->slid = 0;
	cqe->wc_flags = 0;
	cqe->pkey_index = 0;
	cqe->sl = 0;
	cqe->dlid_path_bits = 0;
	cqe->port_num = qp->attr.port_num;
	cqe->network_hdr_type = 0;
}

/* See emu_complete_send(). */
static __always_inline void __emu_complete_send(struct emu_qp *qp, const struct emu_swqe *wqe,
						u32 pos, u8 opcode, enum ib_wc_status status,
						enum emu_syndrome why)
{
	struct emu_cq *cq = to_ecq(qp->ibqp.send_cq);
	u64 wr_id = wqe->wr_id;
	u32 length = wqe->length;
	bool signaled = qp->sig_all || (wqe->send_flags & IB_SEND_SIGNALED);
	struct emu_cqe *cqe;
	u32 cq_pos;

	emu_ring_advance(&qp->sq, pos);
	qp->unretired++;
	if (!signaled && status == IB_WC_SUCCESS)
		return;
	cqe = emu_cq_begin(cq, &cq_pos);
	if (unlikely(!cqe)) {
		emu_qp_lost(qp);
		return;
	}
	cqe->wr_id = wr_id;
	cqe->status = status;
	cqe->opcode = opcode;
	cqe->vendor_err = why;
	cqe->byte_len = length;
	cqe->qp = &qp->ibqp;
	cqe->retires = qp->unretired;
	qp->unretired = 0;
	emu_cqe_no_message(cqe, qp);
	emu_cq_end(cq, cqe, cq_pos, status != IB_WC_SUCCESS);
}

/* Starts a completion of a receive; emu_cq_end() ends it. NULL if it is lost. */
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
	cqe->retires = 1;
	return cqe;
}

#endif
