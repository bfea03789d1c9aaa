// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completes what is queued when a queue pair fails, with a flush error, in order.
 */
#include <kverbs/completion.h>

#include "complete.h"
#include "flush.h"
#include "recv.h"

static void emu_flush_one_recv(struct emu_qp *qp, const struct emu_rwqe *recv)
{
	struct emu_cqe *cqe;
	u32 pos;

	cqe = emu_recv_begin(qp, recv->wr_id, &pos);
	if (!cqe)
		return;
	cqe->status = IB_WC_WR_FLUSH_ERR;
	cqe->opcode = IB_WC_RECV;
	cqe->vendor_err = EMU_SYN_FLUSHED;
	cqe->byte_len = 0;
	emu_cqe_no_message(cqe, qp, 1);
	emu_cq_end(to_ecq(qp->ibqp.recv_cq), cqe, pos, true);
}

/*
 * The oldest entry of the send queue, whether the kernel's or a process's; NULL if there is
 * none.
 */
static struct emu_swqe *emu_flush_next_send(struct emu_qp *qp, u32 *pos)
{
	struct emu_refusal refusal = {};
	struct emu_swqe *wqe;

	wqe = emu_ring_peek(&qp->sq, pos);
	if (!wqe && qp->user_sq && emu_user->fetch(qp, &refusal))
		wqe = emu_ring_peek(&qp->sq, pos);
	return wqe;
}

/* Takes the oldest receive of the queue pair's own. Returns false if there is none. */
static bool emu_flush_next_recv(struct emu_qp *qp, struct emu_rwqe *recv)
{
	bool too_short;

	if (emu_claim_parked(qp, 0, recv) == EMU_DONE)
		return true;
	if (qp->user_rq)
		return emu_user->claim(qp->user_rq, 0, recv) == EMU_DONE;
	return emu_recv_ring_claim(&qp->rq, 0, recv, &too_short);
}

/* Ends the oldest entry of either queue. Returns false if there is none. */
static bool emu_flush_one(struct emu_qp *qp)
{
	struct emu_rwqe *recv = qp->taken;
	struct emu_swqe *wqe;
	u32 pos;

	wqe = emu_flush_next_send(qp, &pos);
	if (wqe) {
		emu_complete_send(qp, wqe, pos, IB_WC_WR_FLUSH_ERR, EMU_SYN_FLUSHED);
		return true;
	}
	/*
	 * In SQE only sends are flushed. In the error state, an engine that acts as
	 * our responder may still complete a receive that comes before the ones to
	 * flush: the last engine to leave rings the doorbell.
	 */
	if (atomic_read(&qp->state) != IB_QPS_ERR || !emu_gate_is_drained(&qp->gate))
		return false;
	if (emu_flush_next_recv(qp, recv)) {
		emu_flush_one_recv(qp, recv);
		return true;
	}
	if (qp->user_rq)
		emu_user->flushed(qp);
	/*
	 * The receives in an SRQ are not flushed; this queue pair takes none of
	 * them any more.
	 */
	if (qp->srq && !atomic_xchg(&qp->last_wqe, 1))
		ib_qp_notify_event(&qp->ibqp, IB_EVENT_QP_LAST_WQE_REACHED);
	return false;
}

/**
 * emu_qp_flush() - complete everything that is queued with a flush error, in order
 * @qp: queue pair in an error state, owned by the caller
 * @budget: what may be done
 *
 * Context: Any but NMI, preemption off.
 * Return: what is left of the budget, at least 1; 0 if it was not enough, and a runner is the
 * owner now.
 */
s64 emu_qp_flush(struct emu_qp *qp, s64 budget)
{
	while (!READ_ONCE(qp->freezing)) {
		if (budget <= 0) {
			emu_qp_hand_over(qp);
			return 0;
		}
		if (!emu_flush_one(qp))
			break;
		budget -= EMU_ENTRY_COST;
	}
	return max(budget, 1LL);
}

/*
 * Flushes up to *@left sends, but no more than an inline owner would with preemption off, and
 * subtracts their number; *@left is 0 when the queue is empty.
 */
static void emu_flush_some_sends(struct emu_qp *qp, u32 *left)
{
	s64 budget = EMU_INLINE_BUDGET;
	struct emu_swqe *wqe;
	u32 pos;

	preempt_disable();
	for (; *left && budget > 0; budget -= EMU_ENTRY_COST) {
		wqe = emu_flush_next_send(qp, &pos);
		*left = wqe ? *left - 1 : 0;
		if (wqe)
			emu_complete_send(qp, wqe, pos, IB_WC_WR_FLUSH_ERR, EMU_SYN_FLUSHED);
	}
	preempt_enable();
}

/**
 * emu_qp_flush_sends() - complete everything in the send queue with a flush error
 * @qp: queue pair, frozen, in SQE
 *
 * Flushes as many as are posted now, so that posters cannot keep it busy for ever. Those that are
 * posted meanwhile may be among them.
 *
 * Context: Process context; @qp->lock held.
 */
void emu_qp_flush_sends(struct emu_qp *qp)
{
	u32 left = atomic_read(&qp->sq.head) - (u32)atomic_read(&qp->sq.tail);

	/* Besides what was fetched, a process may have a full ring. */
	if (qp->user_sq)
		left += qp->init.cap.max_send_wr;
	while (left) {
		emu_flush_some_sends(qp, &left);
		cond_resched();
	}
}
