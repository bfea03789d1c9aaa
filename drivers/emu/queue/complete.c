// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions of sends, off the path of most messages.
 */
#include "complete.h"

static const u8 emu_wc_opcodes[] = {
	[IB_WR_RDMA_WRITE] = IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM] = IB_WC_RDMA_WRITE,
	[IB_WR_SEND] = IB_WC_SEND,
	[IB_WR_SEND_WITH_IMM] = IB_WC_SEND,
	[IB_WR_RDMA_READ] = IB_WC_RDMA_READ,
	[IB_WR_ATOMIC_CMP_AND_SWP] = IB_WC_COMP_SWAP,
	[IB_WR_ATOMIC_FETCH_AND_ADD] = IB_WC_FETCH_ADD,
	[IB_WR_ATOMIC_WRITE] = IB_WC_ATOMIC_WRITE,
	[IB_WR_LOCAL_INV] = IB_WC_LOCAL_INV,
	[IB_WR_BIND_MW] = IB_WC_BIND_MW,
	[IB_WR_SEND_WITH_INV] = IB_WC_SEND,
	[IB_WR_RDMA_READ_WITH_INV] = IB_WC_RDMA_READ,
	[IB_WR_REG_MR] = IB_WC_REG_MR,
};

/* Completes a send. Called by the owner, preemption off. */
void emu_complete_send(struct emu_qp *qp, const struct emu_swqe *wqe, u32 pos,
		       enum ib_wc_status status, enum emu_syndrome why)
{
	__emu_complete_send(qp, pos, wqe->wr_id, wqe->length, wqe->send_flags,
			    emu_wc_opcodes[wqe->opcode], status, why);
}
