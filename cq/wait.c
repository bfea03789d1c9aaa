// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting for a CQ that the core polls.
 *
 * A waiter puts itself on cq->waiters, sets IB_CQ_WAIT and wakes the CQ. The CQ's runner takes the
 * waiters when it begins a round with nothing polled ahead: by then all that was polled before has
 * been handed out, and some waiters need no more. The others wait until the CQ has been empty once
 * after that, or as many completions as it can hold have been handled; until then they are on
 * cq->flushing, and the CQ stays ready.
 *
 * A drain waits for the done() of one completion, which wakes it, as does a failure of the
 * CQ. With IB_POLL_DIRECT it also polls, see direct.c.
 *
 * ib_destroy_qp() promises that no done() of the QP runs any more when it returns. Completions of
 * the QP that a runner has polled but not handed out yet are in its batch, and those polled ahead
 * of its CQ are in lane->ahead. If ib_destroy_qp() is called from within a done() that this runner
 * has called, it strikes them out; else it waits for the round to end. To avoid a cycle of runners
 * that wait for each other in their done(), a runner that waits like this is parked, and other
 * runners may strike out completions in a parked one. Only then can a done() of the QP that began
 * before still be running on return. ib_cq_lanes_lock guards all this, and is taken before
 * lane->lock, which keeps a runner what it is (handover.c).
 *
 * In a work queue, whoever is about to wait for a CQ in a done() hands over first, so that
 * another runner polls that CQ, be it in the same lane.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include "../core/contract/contract.h"
#include "../core/contract/invalid.h"
#include "../core/contract/registry.h"
#include "cq.h"

/**
 * struct ib_cq_waiter - a thread that waits for a CQ
 * @node: link in cq->waiters
 * @list: link in cq->flushing
 * @left: the most completions to handle before @done; 0 to wait for the round only
 * @done: completed when it is over
 */
struct ib_cq_waiter {
	struct llist_node node;
	struct list_head list;
	int left;
	struct completion done;
};

static DEFINE_MUTEX(ib_cq_lanes_lock);
static LIST_HEAD(ib_cq_lanes);

void ib_cq_lane_list(struct ib_cq_lane *lane)
{
	mutex_lock(&ib_cq_lanes_lock);
	list_add(&lane->list, &ib_cq_lanes);
	mutex_unlock(&ib_cq_lanes_lock);
}

void ib_cq_lane_unlist(struct ib_cq_lane *lane)
{
	mutex_lock(&ib_cq_lanes_lock);
	list_del(&lane->list);
	mutex_unlock(&ib_cq_lanes_lock);
}

/* The most completions that may be in @cq now: after a resize, perhaps more than its size. */
int ib_cq_max_completions(struct ib_cq *cq)
{
	return max(cq->cqe, ib_cq_peek(cq, INT_MAX));
}

/* Called by the runner, between rounds. */
void ib_cq_collect_waiters(struct ib_cq *cq)
{
	struct ib_cq_waiter *waiter, *next;

	llist_for_each_entry_safe(waiter, next, llist_del_all(&cq->waiters), node) {
		if (waiter->left)
			list_add_tail(&waiter->list, &cq->flushing);
		else
			complete(&waiter->done);
	}
}

/* Called by the runner, after a round. */
void ib_cq_flush_progress(struct ib_cq *cq, int completions, bool emptied)
{
	struct ib_cq_waiter *waiter, *next;

	/* A completion may be hidden behind one that is still being written. */
	if (emptied)
		emptied = ib_cq_peek(cq, 1) <= 0;
	list_for_each_entry_safe(waiter, next, &cq->flushing, list) {
		waiter->left -= completions;
		if (emptied || waiter->left <= 0) {
			list_del(&waiter->list);
			complete(&waiter->done);
		}
	}
}

/* Called by the runner: @cq is being freed. */
void ib_cq_release_waiters(struct ib_cq *cq)
{
	ib_cq_collect_waiters(cq);
	ib_cq_flush_progress(cq, INT_MAX, false);
}

static void ib_cq_waiter_add(struct ib_cq *cq, struct ib_cq_waiter *waiter, int left)
{
	waiter->left = left;
	init_completion(&waiter->done);
	llist_add(&waiter->node, &cq->waiters);
	ib_cq_wake_waiting(cq);
}

/**
 * ib_cq_flush() - wait until the completions that a CQ has now are handled
 * @cq: a CQ of ib_alloc_cq() or ib_cq_pool_get()
 *
 * Completions that are added meanwhile may be handled too. With %IB_POLL_DIRECT
 * the caller polls.
 *
 * Context: Process. In a done() of another CQ it waits for a done() of this one: if two
 * done() wait for each other's CQ, or vector with %IB_POLL_THREAD, they wait for ever.
 * Return: 0; -EINVAL for a CQ that the core does not poll; -EDEADLK from within a
 * done() of the CQ, or of one of the same vector with %IB_POLL_THREAD.
 */
int ib_cq_flush(struct ib_cq *cq)
{
	const struct ib_verb_call call = {
		.dev = cq->device, .res = &cq->res, .what = "cq_flush",
	};
	struct ib_cq_waiter waiter;

	ib_contract_call(cq->device, &cq->res, "ib_cq_flush", _RET_IP_);
	if (!cq->lane)
		return ib_invalid(&call, "the consumer polls this CQ");
	if (ib_cq_polled_by_caller(cq))
		return -EDEADLK;
	ib_cq_hand_over_all();
	if (ib_cq_is_direct(cq)) {
		ib_cq_direct_flush(cq);
		return 0;
	}
	ib_cq_waiter_add(cq, &waiter, ib_cq_max_completions(cq));
	while (!wait_for_completion_timeout(&waiter.done, ib_wait_warn_timeout()))
		ibdev_warn(cq->device,
			   "%s: flushing CQ %u: waiting for a done() of it to return; does it need a lock that the caller holds?\n",
			   cq->res.kern_name, cq->res.id);
	return 0;
}
EXPORT_SYMBOL_GPL(ib_cq_flush);

/* Whether the device writes no more completions, or lost some: see ib_cq_notify_event(). */
bool ib_cq_failed(const struct ib_cq *cq)
{
	return atomic_read(&cq->stats.errors);
}

/*
 * Wakes the threads in ib_cq_wait_done(). Called by the done() that they wait for, after its
 * complete(); and when @cq has failed.
 */
void ib_cq_wake_waiters_done(struct ib_cq *cq)
{
	/* The waiter checks its condition again with the lock of its wait queue held. */
	smp_mb();
	wake_up_var(&cq->state);
}

/* Whether ib_cq_wait_done() has to go on; if not, it will be woken when it has. */
static bool ib_cq_wait_is_over(struct ib_cq *cq, struct completion *done)
{
	return (ib_cq_is_direct(cq) && ib_cq_direct_is_due(cq)) || completion_done(done) ||
	       ib_cq_failed(cq);
}

/*
 * Waits for @done, which a done() of @cq completes. Process context. Returns 0, or
 * -EIO if @cq has failed and that done() will not be called.
 */
int ib_cq_wait_done(struct ib_cq *cq, struct completion *done)
{
	ib_cq_hand_over_all();
	/* Poll it at once. */
	if (ib_cq_is_direct(cq))
		atomic_or(IB_CQ_NOTIFIED, &cq->state);
	for (;;) {
		while (!wait_var_event_timeout(&cq->state, ib_cq_wait_is_over(cq, done),
					       ib_wait_warn_timeout()))
			ibdev_warn(cq->device,
				   "%s: draining: still no completion in CQ %u; is one of its done() stuck, or does the device not flush?\n",
				   cq->res.kern_name, cq->res.id);
		if (completion_done(done))
			return 0;
		if (ib_cq_failed(cq))
			break;
		ib_cq_direct_empty_and_arm(cq);
	}
	/*
	 * After this, completions that were being written when the CQ failed have been
	 * written.
	 */
	synchronize_rcu();
	ib_cq_flush(cq);
	return completion_done(done) ? 0 : -EIO;
}

static void ib_cq_struck_done(struct ib_cq *cq, struct ib_wc *wc)
{
}

static void ib_cq_strike_out(struct ib_wc *from, struct ib_wc *end, struct ib_qp *qp)
{
	static struct ib_cqe struck = { .done = ib_cq_struck_done };
	struct ib_wc *wc;

	for (wc = from; wc < end; wc++) {
		if (wc->qp == qp) {
			wc->qp = NULL;
			wc->wr_cqe = &struck;
		}
	}
}

/* @runner is run by the caller, or parked, so it does not advance meanwhile. */
static void ib_cq_strike_batch(struct ib_cq_runner *runner, struct ib_cq *cq, struct ib_qp *qp)
{
	if (runner->cq == cq)
		ib_cq_strike_out(runner->at + 1, runner->end, qp);
}

/*
 * Strikes out what was polled ahead. Nobody hands it out meanwhile: the next round of @cq begins
 * only after the caller, or a parked runner, has returned from its done().
 */
static void ib_cq_strike_ahead(struct ib_cq_lane *lane, struct ib_cq *cq, struct ib_qp *qp)
{
	if (READ_ONCE(lane->ahead_cq) == cq)
		ib_cq_strike_out(lane->ahead_at, lane->ahead_end, qp);
}

/* For a caller in a done() before whose return @cq is not polled again. */
static void ib_cq_strike_own(struct ib_cq *cq, struct ib_qp *qp)
{
	struct ib_cq_lane *lane = cq->lane;
	struct ib_cq_runner *runner;

	raw_spin_lock_irq(&lane->lock);
	list_for_each_entry(runner, &lane->busy, node) {
		if (READ_ONCE(runner->poller) == current)
			ib_cq_strike_batch(runner, cq, qp);
	}
	ib_cq_strike_ahead(lane, cq, qp);
	raw_spin_unlock_irq(&lane->lock);
}

/* Returns false if no round of @cq waits for a parked runner. */
static bool ib_cq_strike_parked(struct ib_cq *cq, struct ib_qp *qp)
{
	struct ib_cq_lane *lane = cq->lane;
	struct ib_cq_runner *runner;
	bool parked = false;

	lockdep_assert_held(&ib_cq_lanes_lock);
	raw_spin_lock_irq(&lane->lock);
	list_for_each_entry(runner, &lane->busy, node) {
		if (!runner->parked)
			continue;
		ib_cq_strike_batch(runner, cq, qp);
		/* Where runners are displaced, one that waits keeps only its own CQ. */
		parked |= runner->cq == cq || !lane->ctx->start;
	}
	if (parked)
		ib_cq_strike_ahead(lane, cq, qp);
	raw_spin_unlock_irq(&lane->lock);
	return parked;
}

/* Parks, or unparks, the runners of @lane that the caller runs. Returns their number. */
static int ib_cq_park_in(struct ib_cq_lane *lane, bool parked)
{
	struct ib_cq_runner *runner;
	int nr = 0;

	raw_spin_lock_irq(&lane->lock);
	list_for_each_entry(runner, &lane->busy, node) {
		if (READ_ONCE(runner->poller) == current) {
			runner->parked = parked;
			nr++;
		}
	}
	raw_spin_unlock_irq(&lane->lock);
	return nr;
}

/* As ib_cq_park_in(), for all lanes. */
static int ib_cq_park(bool parked)
{
	struct ib_cq_lane *lane;
	int nr = 0;

	lockdep_assert_held(&ib_cq_lanes_lock);
	list_for_each_entry(lane, &ib_cq_lanes, list)
		nr += ib_cq_park_in(lane, parked);
	return nr;
}

/*
 * Called before the caller waits for a CQ. If it is in a done() in a work queue, another runner
 * takes over its lane. Process context.
 */
void ib_cq_hand_over_all(void)
{
	struct ib_cq_lane *lane;

	if (!(current->flags & PF_WQ_WORKER))
		return;
	mutex_lock(&ib_cq_lanes_lock);
	list_for_each_entry(lane, &ib_cq_lanes, list)
		ib_cq_hand_over(lane);
	mutex_unlock(&ib_cq_lanes_lock);
}

static void ib_cq_wait_round(struct ib_cq *cq, struct ib_cq_waiter *waiter, struct ib_qp *qp)
{
	if (!ib_cq_is_direct(cq)) {
		while (!wait_for_completion_timeout(&waiter->done, ib_wait_warn_timeout()))
			ibdev_warn(cq->device,
				   "%s: destroying qp %u: waiting for a done() of its CQ to return; does it need a lock that the caller holds?\n",
				   qp->res.kern_name, qp->res.id);
		return;
	}
	ib_cq_direct_claim(cq);
	ib_cq_direct_release(cq);
}

static void ib_cq_forget_qp_in(struct ib_cq *cq, struct ib_qp *qp)
{
	struct ib_cq_waiter waiter;

	if (ib_cq_polled_by_caller(cq)) {
		ib_cq_strike_own(cq, qp);
		return;
	}
	/* The driver has destroyed the QP, so a round that begins now gets no completion of it. */
	smp_mb();
	/* acquire: what the last done() did is seen */
	if (!(atomic_read_acquire(&cq->state) & (IB_CQ_QUEUED | IB_CQ_BUSY)))
		return;

	mutex_lock(&ib_cq_lanes_lock);
	if (ib_cq_park(true) && ib_cq_strike_parked(cq, qp)) {
		ib_cq_park(false);
		mutex_unlock(&ib_cq_lanes_lock);
		return;
	}
	mutex_unlock(&ib_cq_lanes_lock);

	ib_cq_hand_over_all();
	if (!ib_cq_is_direct(cq))
		ib_cq_waiter_add(cq, &waiter, 0);
	ib_cq_wait_round(cq, &waiter, qp);

	mutex_lock(&ib_cq_lanes_lock);
	ib_cq_park(false);
	mutex_unlock(&ib_cq_lanes_lock);
}

/*
 * The driver has destroyed @qp, but its memory still exists. Ensures that no done() is
 * called for it any more. Process context.
 */
void ib_cq_forget_qp(struct ib_qp *qp)
{
	if (qp->send_cq && qp->send_cq->lane)
		ib_cq_forget_qp_in(qp->send_cq, qp);
	if (qp->recv_cq && qp->recv_cq != qp->send_cq && qp->recv_cq->lane)
		ib_cq_forget_qp_in(qp->recv_cq, qp);
}
