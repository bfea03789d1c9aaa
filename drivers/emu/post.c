// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting: from a chain of work requests to ring entries and a doorbell.
 *
 * Any number of callers may post to one queue pair at a time, from any context.
 * See ring.h for why none waits for another, and engine.c for the doorbell.
 */
#include <linux/preempt.h>

#include "emu.h"


/* Returns the bytes of the message, or -EINVAL. */
static s64 emu_sge_length(const struct ib_sge *sge, int num_sge)
{
	u64 length = 0;
	int i;

	for (i = 0; i < num_sge; i++)
		length += sge[i].length;
	return length <= EMU_MAX_MSG_SIZE ? length : -EINVAL;
}

static int emu_check_reg(const struct emu_qp *qp, const struct ib_reg_wr *wr, int num_sge)
{
	if (num_sge || !wr->mr || !is_power_of_2(wr->mr->page_size))
		return -EINVAL;
	return ib_check_mr_access(&qp->edev->ibdev, wr->access);
}

static int emu_check_send(const struct emu_qp *qp, const struct ib_send_wr *wr)
{
	bool is_inline = wr->send_flags & IB_SEND_INLINE;

	switch (wr->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		break;
	case IB_WR_RDMA_READ:
		if (is_inline || wr->num_sge > qp->edev->ibdev.attrs.max_sge_rd)
			return -EINVAL;
		break;
	case IB_WR_LOCAL_INV:
		return wr->num_sge ? -EINVAL : 0;
	case IB_WR_REG_MR:
		return emu_check_reg(qp, reg_wr(wr), wr->num_sge);
	default:
		return -EINVAL;
	}
	return wr->num_sge < 0 || wr->num_sge > qp->init.cap.max_send_sge ? -EINVAL : 0;
}

static void emu_fill_inline(struct emu_swqe *wqe, const struct ib_send_wr *wr)
{
	void *data = wqe->sge;
	int i;

	wqe->num_sge = 0;
	for (i = 0; i < wr->num_sge; i++) {
		/* Inline data is named by kernel virtual address. */
		memcpy(data, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		data += wr->sg_list[i].length;
	}
}

static __always_inline void emu_fill_sges(struct ib_sge *to, const struct ib_sge *from,
					  int num_sge)
{
	/* One is the common case, and no call. */
	to[0] = from[0];
	if (unlikely(num_sge > 1))
		memcpy(&to[1], &from[1], (num_sge - 1) * sizeof(*to));
}

static void emu_fill_send(struct emu_swqe *wqe, const struct ib_send_wr *wr, u32 length)
{
	wqe->opcode = wr->opcode;
	wqe->send_flags = wr->send_flags;
	wqe->num_sge = wr->num_sge;
	wqe->length = length;
	wqe->wr_id = wr->wr_id;
	wqe->ex.imm_data = wr->ex.imm_data;

	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
		wqe->rdma.remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rdma.rkey = rdma_wr(wr)->rkey;
		break;
	case IB_WR_REG_MR:
		wqe->reg.key = reg_wr(wr)->key;
		wqe->reg.access = reg_wr(wr)->access;
		wqe->reg.iova = reg_wr(wr)->mr->iova;
		wqe->reg.length = reg_wr(wr)->mr->length;
		wqe->reg.page_shift = ilog2(reg_wr(wr)->mr->page_size);
		return;
	default:
		break;
	}
	if (unlikely(wr->send_flags & IB_SEND_INLINE))
		emu_fill_inline(wqe, wr);
	else if (wr->num_sge)
		emu_fill_sges(wqe->sge, wr->sg_list, wr->num_sge);
}

static bool emu_may_post_send(const struct emu_qp *qp)
{
	switch (atomic_read(&qp->state)) {
	case IB_QPS_RESET:
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		return false;
	default:
		return true;
	}
}

static int emu_post_one_send(struct emu_qp *qp, const struct ib_send_wr *wr)
{
	struct emu_swqe *wqe;
	s64 length;
	u32 pos;
	int err;

	err = emu_check_send(qp, wr);
	if (unlikely(err))
		return err;
	length = emu_sge_length(wr->sg_list, wr->num_sge);
	if (unlikely(length < 0))
		return length;
	if (unlikely((wr->send_flags & IB_SEND_INLINE) && length > qp->max_inline))
		return -EINVAL;

	/*
	 * Not to be preempted between reserve and publish, where the owner stops,
	 * nor before the look at the state: a reset waits for us.
	 */
	preempt_disable();
	if (unlikely(!emu_may_post_send(qp))) {
		err = -EINVAL;
		goto enable;
	}
	wqe = emu_ring_reserve(&qp->sq, &pos);
	if (unlikely(!wqe)) {
		err = -ENOMEM;
		goto enable;
	}
	emu_fill_send(wqe, wr, length);
	emu_ring_publish(&wqe->slot, pos);
enable:
	preempt_enable();
	return err;
}

int emu_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr)
{
	struct emu_qp *qp = to_eqp(ibqp);
	const struct ib_send_wr *first = wr;
	int err = 0;

	for (; wr; wr = wr->next) {
		err = emu_post_one_send(qp, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	if (likely(wr != first))
		emu_qp_ring(qp);
	return err;
}

static int emu_post_one_recv(struct emu_qp *qp, const struct ib_recv_wr *wr)
{
	struct emu_rwqe *wqe;
	int err = 0;
	s64 length;
	u32 pos;

	if (unlikely(wr->num_sge < 0 || wr->num_sge > qp->init.cap.max_recv_sge))
		return -EINVAL;
	length = emu_sge_length(wr->sg_list, wr->num_sge);
	if (unlikely(length < 0))
		return length;

	/* As for sends: senders stop at what is reserved, a reset waits for us. */
	preempt_disable();
	if (unlikely(atomic_read(&qp->state) == IB_QPS_RESET)) {
		err = -EINVAL;
		goto enable;
	}
	wqe = emu_ring_reserve(&qp->rq, &pos);
	if (unlikely(!wqe)) {
		err = -ENOMEM;
		goto enable;
	}
	wqe->num_sge = wr->num_sge;
	wqe->wr_id = wr->wr_id;
	wqe->length = length;
	if (wr->num_sge)
		emu_fill_sges(wqe->sge, wr->sg_list, wr->num_sge);
	emu_ring_publish(&wqe->slot, pos);
enable:
	preempt_enable();
	return err;
}

int emu_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr)
{
	struct emu_qp *qp = to_eqp(ibqp);
	int err = 0;

	for (; wr; wr = wr->next) {
		err = emu_post_one_recv(qp, wr);
		if (unlikely(err)) {
			*bad_wr = wr;
			break;
		}
	}
	/*
	 * The queue pair may have gone to error before the entries were there to
	 * be flushed. Full barrier, pairs with those of the atomic operations that
	 * set the error state, in emu_qp_fail() and emu_qp_move(): either we see
	 * the error, or the flush sees our entries.
	 */
	smp_mb();
	if (unlikely(atomic_read(&qp->state) == IB_QPS_ERR))
		emu_qp_ring(qp);
	return err;
}
