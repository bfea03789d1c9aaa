// SPDX-License-Identifier: GPL-2.0-only
/*
 * IB_POLL_DIRECT: CQs that the consumer polls when it likes, by
 * ib_process_cq_direct().
 *
 * A caller claims the CQ by IB_CQ_BUSY before it polls it, so that done() never runs twice
 * at a time here either: while another caller polls, ib_process_cq_direct() has nothing to
 * do. A caller that must have the CQ, to drain or to free it, sets IB_CQ_WAIT and sleeps
 * until it is released.
 *
 * A drain waits for one completion. Between polls it arms the CQ and sleeps until
 * ib_cq_wake() sets IB_CQ_NOTIFIED, or another caller has polled. A CQ that is not armed
 * and may have completions is NOTIFIED, for all waiters. Documentation/models/direct.pml is
 * a model of this.
 */
#include <linux/export.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>
#include <kverbs/delay.h>

#include "../core/contract/contract.h"
#include "../core/contract/registry.h"
#include "cq.h"

static bool ib_cq_claim_or_wait(struct ib_cq *cq)
{
	return !(atomic_fetch_or(IB_CQ_BUSY | IB_CQ_WAIT, &cq->state) & IB_CQ_BUSY);
}

/* Process context. */
void ib_cq_direct_claim(struct ib_cq *cq)
{
	while (!wait_var_event_timeout(&cq->state, ib_cq_claim_or_wait(cq), ib_wait_warn_timeout()))
		ibdev_warn(cq->device,
			   "%s: CQ %u: waiting for ib_process_cq_direct() to return; does a done() need a lock that the caller holds?\n",
			   cq->res.kern_name, cq->res.id);
}

void ib_cq_direct_release(struct ib_cq *cq)
{
	if (!(atomic_fetch_andnot(IB_CQ_BUSY | IB_CQ_WAIT, &cq->state) & IB_CQ_WAIT))
		return;
	/* The waiter may claim and free the CQ now: wake_up_var() only uses the address. */
	kverbs_delay("ib_cq_direct_release");
	wake_up_var(&cq->state);
}

/* The caller has claimed @cq. */
static int ib_cq_direct_poll(struct ib_cq *cq, int budget)
{
	struct ib_cq_lane *lane = cq->lane;
	unsigned int completed = 0;
	int wanted, n;

	if (in_task())
		WRITE_ONCE(lane->own.poller, current);
	lane->own.cq = cq;
	do {
		/* A budget of -1 becomes UINT_MAX, which is never reached. */
		wanted = min_t(unsigned int, IB_CQ_BATCH, (unsigned int)budget - completed);
		n = ib_cq_poll_direct(lane, cq, wanted);
		completed += n;
	} while (n == wanted && completed != budget);
	WRITE_ONCE(lane->own.poller, NULL);
	return completed;
}

/**
 * ib_process_cq_direct() - poll a CQ of %IB_POLL_DIRECT in the caller's context
 * @cq: the CQ
 * @budget: completions to handle at most, or -1 for all there are
 *
 * If the CQ is already being polled, on another CPU or further up in the call
 * chain, this returns 0 at once.
 *
 * Context: Any but NMI in which the done() functions may be called.
 * Return: number of completions handled.
 */
int ib_process_cq_direct(struct ib_cq *cq, int budget)
{
	int completed;

	ib_contract_call(cq->device, &cq->res, "ib_process_cq_direct", _RET_IP_);
	if (unlikely(!cq->lane || !ib_cq_is_direct(cq))) {
		ibdev_warn_ratelimited(cq->device,
				       "%s: %s() works only on CQs of IB_POLL_DIRECT\n",
				       cq->res.kern_name, __func__);
		return 0;
	}
	if (!budget || (atomic_fetch_or(IB_CQ_BUSY, &cq->state) & IB_CQ_BUSY))
		return 0;
	completed = ib_cq_direct_poll(cq, budget);
	ib_cq_direct_release(cq);
	return completed;
}
EXPORT_SYMBOL(ib_process_cq_direct);

/*
 * Handles what is in @cq now: until it is empty, or as many completions as it can hold have
 * been handled. The caller has claimed it. Process context.
 */
static void ib_cq_direct_empty(struct ib_cq *cq)
{
	int n, left = ib_cq_max_completions(cq);

	do {
		n = ib_cq_direct_poll(cq, min(left, IB_CQ_BATCH));
		left -= n;
		cond_resched();
		/* A completion may be hidden behind another that is still being written. */
	} while (left > 0 && (n || ib_cq_peek(cq, 1) > 0));
}

/* Handles what is in @cq now. Process context. */
void ib_cq_direct_flush(struct ib_cq *cq)
{
	ib_cq_direct_claim(cq);
	ib_cq_direct_empty(cq);
	ib_cq_direct_release(cq);
}

/* Empties @cq, and arms it for the next completion. */
void ib_cq_direct_empty_and_arm(struct ib_cq *cq)
{
	ib_cq_direct_claim(cq);
	atomic_andnot(IB_CQ_NOTIFIED, &cq->state);
	ib_cq_direct_empty(cq);
	kverbs_delay("ib_cq_direct_arm");
	cq->stats.rearms++;
	/* Every waiter must poll again, not only this one. */
	if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0) {
		cq->stats.missed++;
		atomic_or(IB_CQ_NOTIFIED, &cq->state);
	}
	ib_cq_direct_release(cq);
}

/*
 * Returns whether there may be completions to poll. Sets IB_CQ_WAIT: if there are none, the
 * next caller that polls wakes this one.
 */
bool ib_cq_direct_is_due(struct ib_cq *cq)
{
	return atomic_fetch_or(IB_CQ_WAIT, &cq->state) & IB_CQ_NOTIFIED;
}
