// SPDX-License-Identifier: GPL-2.0-only
/*
 * The scheduler of completion queues.
 *
 * A lane polls the CQs of one completion vector in one context: softirq, a work
 * queue or a kernel thread (context.c). CQs with completions are on its list @ready.
 * Each round gives a CQ a share, its weight times IB_CQ_SHARE completions; a CQ
 * that has more goes to the end of the list (deficit round-robin). A run of the
 * lane ends when its completion budget or its time is used up, to let others use
 * the CPU, and goes on later where it stopped. So a flooded CQ holds up a
 * neighbour for no longer than a share takes, and a CPU for no longer than a run.
 *
 * A CQ that is alone needs no share: it is polled ahead, for IB_CQ_AHEAD completions at a time.
 * They are handed out until another CQ is pending and a share is used up. The rest stays in
 * lane->ahead, for the CQ's next rounds. Only one CQ is polled ahead at a time. Threads that wait
 * for the CQ, or free it, are served once nothing of the rest is left.
 *
 * A CQ that is found empty leaves the list and is armed. On the next completion
 * the driver calls ib_cq_notify(), which schedules the CQ:
 *
 *   wakers, any context		the runner
 *
 *   state |= QUEUED			ready += pending
 *   was it 0?				poll the first of @ready until it is empty
 *     pending += CQ			QUEUED -> BUSY
 *     was @pending empty, and		arm; if completions were missed: |= QUEUED
 *     active = 1, was it 0?		clear BUSY; QUEUED? ready += CQ
 *	 schedule the lane		@ready is empty: active = 0, and look at
 *					@pending again
 *
 * The waker that changes a CQ's state from 0 puts it on @pending, so it is in one place only.
 * While the runner arms it, its state is BUSY: a waker leaves QUEUED there, and the runner
 * puts the CQ back on @ready. The waker that sets @active schedules the context, so a burst costs
 * one call. A CQ is polled by one runner, so done() never runs twice at a time for it.
 * Nothing takes a lock. Documentation/models/cq.pml is a model of this, which scripts/lint
 * has proved.
 *
 * In a work queue, a runner that sleeps in a done() is displaced by another one, which gets
 * @ready, except for the CQ whose done() sleeps. handover.c describes this.
 *
 *   the runner of a lane		one that was displaced
 *
 *   ready: B, C, ...			its own batch of A, no other CQ
 *   @pending, arming, idle		then: A to @pending
 *
 * ib_cq_stop() sets STOP. If the state was 0 the CQ is stopped at once, since no waker
 * finds it 0 again; else the runner completes @stopped when it next comes to the CQ, and
 * does not touch it any more. wait.c describes IB_CQ_WAIT.
 *
 * With IB_POLL_DIRECT there is no runner; the consumer polls: see direct.c.
 */
#include <linux/export.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <kverbs/completion.h>
#include <kverbs/delay.h>

#include "../core/contract/contract.h"
#include "../core/contract/invalid.h"
#include "../core/contract/registry.h"
#include "../core/contract/trace.h"
#include "cq.h"

/*
 * Completions between two readings of the clock, twice as many in the first half of a run's
 * time; and how many a round counts for at least, because a round takes time without any, too.
 */
#define IB_CQ_CLOCK_BATCH		(4 * IB_CQ_SHARE)
#define IB_CQ_CLOCK_ROUND		(IB_CQ_SHARE / 4)

static unsigned int cq_budget = 1024;
module_param(cq_budget, uint, 0644);
MODULE_PARM_DESC(cq_budget,
		 "Max completions handled per run before yielding the CPU; at most 256 in softirq (default: 1024)");

static unsigned int cq_time_us = 1000;
module_param(cq_time_us, uint, 0644);
MODULE_PARM_DESC(cq_time_us, "Max run time in us before yielding the CPU (default: 1000)");

/*
 * ib_cq_timed - the key: the latency of completions is measured
 */
DEFINE_STATIC_KEY_FALSE(ib_cq_timed);
EXPORT_SYMBOL_GPL(ib_cq_timed);

static int ib_cq_timing_set(const char *val, const struct kernel_param *kp)
{
	bool on;
	int err;

	err = kstrtobool(val, &on);
	if (err)
		return err;
	if (on)
		static_branch_enable(&ib_cq_timed);
	else
		static_branch_disable(&ib_cq_timed);
	return 0;
}

static int ib_cq_timing_get(char *buf, const struct kernel_param *kp)
{
	return sysfs_emit(buf, "%c\n", ib_cq_timing() ? 'Y' : 'N');
}

static const struct kernel_param_ops ib_cq_timing_ops = {
	.set = ib_cq_timing_set,
	.get = ib_cq_timing_get,
};
module_param_cb(cq_timing, &ib_cq_timing_ops, NULL, 0644);
MODULE_PARM_DESC(cq_timing, "Measure the latency of completions, shown in debugfs (default: N)");

/* For drivers that call the handler directly, instead of ib_cq_notify(). */
static void ib_cq_call_notify(struct ib_cq *cq, void *cq_context)
{
	ib_cq_notify(cq);
}

/* Before the driver sees @cq. */
void ib_cq_lane_init_cq(struct ib_cq *cq, struct ib_cq_lane *lane)
{
	cq->lane = lane;
	cq->comp_handler = ib_cq_call_notify;
	cq->weight = 1;
	atomic_set(&cq->state, 0);
	init_llist_head(&cq->waiters);
	INIT_LIST_HEAD(&cq->flushing);
	init_completion(&cq->stopped);
}

static void ib_cq_schedule(struct ib_cq *cq, int reason)
{
	struct ib_cq_lane *lane = cq->lane;

	/*
	 * ib_cq_stop() called from within the lane spins until a waker has left this
	 * section.
	 */
	preempt_disable();
	if (!atomic_fetch_or(reason, &cq->state)) {
		trace_ib_cq_schedule(cq);
		cq->stats.schedules++;
		ib_cq_enqueue(lane, cq);
	}
	preempt_enable();
}

/* Schedules @cq for polling. Any context but NMI; the driver must not have destroyed the CQ. */
void ib_cq_wake(struct ib_cq *cq)
{
	if (likely(!ib_cq_is_direct(cq)))
		ib_cq_schedule(cq, IB_CQ_QUEUED);
	else if (atomic_fetch_or(IB_CQ_NOTIFIED, &cq->state) & IB_CQ_WAIT)
		wake_up_var(&cq->state);
}

/* As ib_cq_wake(), and makes the runner look at cq->waiters. Not for IB_POLL_DIRECT. */
void ib_cq_wake_waiting(struct ib_cq *cq)
{
	ib_cq_schedule(cq, IB_CQ_QUEUED | IB_CQ_WAIT);
}

/* Moves @pending to the end of @ready, in reverse order: @pending has the latest one first. */
static void ib_cq_collect_pending(struct ib_cq_lane *lane)
{
	struct llist_node *latest;

	if (llist_empty(&lane->pending))
		return;
	latest = llist_del_all(&lane->pending);
	*lane->ready_end = llist_reverse_order(latest);
	lane->ready_end = &latest->next;
}

static noinline void ib_cq_report_undone(struct ib_cq *cq, struct ib_wc *wc)
{
	static DEFINE_RATELIMIT_STATE(limit, DEFAULT_RATELIMIT_INTERVAL, DEFAULT_RATELIMIT_BURST);
	const struct ib_qp *qp = wc->qp;

	/*
	 * An error without a wr_cqe may go unreported, but a success that no done() sees
	 * must not.
	 */
	if ((wc->status != IB_WC_SUCCESS && !wc->wr_cqe) || !__ratelimit(&limit))
		return;
	rcu_read_lock();
	/* It may be going, or gone: rdma_rxe leaves the completions of a QP that is destroyed. */
	if (qp && !rdma_restrack_lists(cq->device, RDMA_RESTRACK_QP, &qp->res))
		qp = NULL;
	ibdev_warn(cq->device, "%s: dropping a completion of qp %u without %s\n",
		   (qp ? qp->res.kern_name : cq->res.kern_name) ?: "?", qp ? qp->res.id : 0,
		   wc->wr_cqe ? "done()" : "wr_cqe");
	rcu_read_unlock();
}

static noinline void ib_cq_account_latency(struct ib_cq *cq, const struct ib_wc *wc)
{
	u64 now = ktime_get_mono_fast_ns();

	if (wc->timestamp && now >= wc->timestamp)
		cq->stats.latency[min(fls64(now - wc->timestamp), IB_CQ_LATENCIES - 1)]++;
}

/* The tracepoint and the contract checker share one key, tested in the caller. */
static noinline void ib_cq_done_watched(struct ib_cq *cq, struct ib_wc *wc)
{
	bool may_sleep = ib_cq_is_direct(cq) ? !ib_in_atomic() : cq->lane->ctx->may_sleep;
	void (*done)(struct ib_cq *cq, struct ib_wc *wc) = wc->wr_cqe ? wc->wr_cqe->done : NULL;

	trace_ib_cq_done(cq, wc);
	if (!done)
		ib_cq_report_undone(cq, wc);
	else
		IB_CALL_BACK(cq->device, &cq->res, "done()",
			     may_sleep ? IB_FRAME_DONE_TASK : IB_FRAME_DONE, done,
			     done(cq, wc));
}

static __always_inline void ib_cq_call_done(struct ib_cq_runner *runner, struct ib_cq *cq,
					    struct ib_wc *wc)
{
	struct ib_cqe *cqe = wc->wr_cqe;

	runner->at = wc;
	/* Neither @cqe nor wc->qp may be touched after done(). */
	if (likely(cqe && cqe->done))
		cqe->done(cq, wc);
	else
		ib_cq_report_undone(cq, wc);
}

static __always_inline bool ib_cq_is_watched(void)
{
	return ib_cq_timing() || static_branch_unlikely(&ib_verbs_watched);
}

/* As ib_cq_hand_out(), while ib_cq_is_watched(). */
static noinline void ib_cq_hand_out_watched(struct ib_cq_runner *runner, struct ib_cq *cq,
					    struct ib_wc *wc, struct ib_wc *end)
{
	for (; wc < end; wc++) {
		if (ib_cq_timing())
			ib_cq_account_latency(cq, wc);
		runner->at = wc;
		if (static_branch_unlikely(&ib_verbs_watched))
			ib_cq_done_watched(cq, wc);
		else
			ib_cq_call_done(runner, cq, wc);
	}
}

static __always_inline void ib_cq_call_done_8(struct ib_cq_runner *runner, struct ib_cq *cq,
					      struct ib_wc *wc)
{
	ib_cq_call_done(runner, cq, wc);
	ib_cq_call_done(runner, cq, wc + 1);
	ib_cq_call_done(runner, cq, wc + 2);
	ib_cq_call_done(runner, cq, wc + 3);
	ib_cq_call_done(runner, cq, wc + 4);
	ib_cq_call_done(runner, cq, wc + 5);
	ib_cq_call_done(runner, cq, wc + 6);
	ib_cq_call_done(runner, cq, wc + 7);
}

/*
 * Calls done() for the completions from @wc to @end, eight at a time: the static keys and the end
 * are then tested once for all of them.
 */
static noinline void ib_cq_hand_out(struct ib_cq_runner *runner, struct ib_cq *cq,
				    struct ib_wc *wc, struct ib_wc *end)
{
	if (ib_cq_is_watched()) {
		ib_cq_hand_out_watched(runner, cq, wc, end);
		return;
	}
	for (; wc + 8 <= end; wc += 8)
		ib_cq_call_done_8(runner, cq, wc);
	for (; unlikely(wc < end); wc++)
		ib_cq_call_done(runner, cq, wc);
}

/* As ib_cq_hand_out(), for a whole batch, in runner->wc. */
static __always_inline void ib_cq_hand_out_whole(struct ib_cq_runner *runner, struct ib_cq *cq)
{
	BUILD_BUG_ON(IB_CQ_BATCH != 16);
	if (ib_cq_is_watched()) {
		ib_cq_hand_out_watched(runner, cq, runner->wc, runner->wc + IB_CQ_BATCH);
		return;
	}
	ib_cq_call_done_8(runner, cq, runner->wc);
	ib_cq_call_done_8(runner, cq, runner->wc + 8);
}

/*
 * As ib_cq_hand_out(), but stops after a share when another CQ is pending. Returns where it has
 * stopped. If the runner was displaced meanwhile, the caller hands out the rest nevertheless.
 */
static noinline struct ib_wc *ib_cq_hand_out_alone(struct ib_cq_runner *runner, struct ib_cq *cq,
						   struct ib_wc *wc, struct ib_wc *end)
{
	const struct llist_head *pending = &runner->lane->pending;

	BUILD_BUG_ON(IB_CQ_SHARE != 16);
	while (wc + IB_CQ_SHARE <= end) {
		if (ib_cq_is_watched()) {
			ib_cq_hand_out_watched(runner, cq, wc, wc + IB_CQ_SHARE);
		} else {
			ib_cq_call_done_8(runner, cq, wc);
			ib_cq_call_done_8(runner, cq, wc + 8);
		}
		wc += IB_CQ_SHARE;
		if (!llist_empty(pending))
			return wc;
	}
	if (wc < end)
		ib_cq_hand_out(runner, cq, wc, end);
	return end;
}

/* Polls @cq for @wanted completions. Returns their number; fewer: it was empty. */
static __always_inline int ib_cq_poll(struct ib_cq *cq, int wanted, struct ib_wc *wc)
{
	int n = ib_poll_cq(cq, wanted, wc);

	trace_ib_cq_poll(cq, wanted, n);
	/* Do not trust the driver: @wc has room for @wanted only. */
	n = min(n, wanted);
	cq->stats.polls++;
	if (likely(n > 0))
		return n;
	cq->stats.empty_polls++;
	return 0;
}

/* Starts a batch of @nr completions, or a pause: from here on, the runner may be displaced. */
static __always_inline void ib_cq_allow_displacing(struct ib_cq_runner *runner, int nr)
{
	BUILD_BUG_ON(max(IB_CQ_BATCH, IB_CQ_AHEAD) & ~(int)(IB_CQ_PAUSE - 1));
	BUILD_BUG_ON(IB_CQ_BATCH_ID & (2 * IB_CQ_DISPLACED - 1));
	WRITE_ONCE(runner->switches, current->nvcsw);
	runner->batch = ((runner->batch | (IB_CQ_BATCH_ID - 1)) + 1) | nr;
	/*
	 * Pairs with the acquire in ib_cq_slept_in() and the cmpxchg in ib_cq_displace(): they see
	 * what was done to the lane.
	 */
	atomic_set_release(&runner->nr, runner->batch);
}

/* Called before the runner hands out the @n completions at @wc. */
static __always_inline void ib_cq_begin_batch(struct ib_cq_lane *lane, struct ib_cq_runner *runner,
					      struct ib_cq *cq, struct ib_wc *wc, int n,
					      const bool handover)
{
	runner->end = wc + n;
	cq->stats.completions += n;
	lane->stats.completions += n;
	if (handover)
		ib_cq_allow_displacing(runner, n);
}

/*
 * Ends a batch or pause. Returns false if the runner was displaced in it: then it must not touch
 * the lane.
 */
static __always_inline bool ib_cq_end_batch(struct ib_cq_runner *runner, const bool handover)
{
	return !handover ||
	       likely(atomic_cmpxchg(&runner->nr, runner->batch, 0) == runner->batch);
}

/*
 * Polls @cq once for @wanted completions, IB_CQ_BATCH or fewer, and hands them
 * out. Returns their number; fewer than @wanted means that it was empty. If the
 * runner was displaced meanwhile, which can happen if @handover, returns the number
 * negated.
 */
static __always_inline int ib_cq_poll_batch(struct ib_cq_lane *lane, struct ib_cq_runner *runner,
					    struct ib_cq *cq, int wanted, const bool handover)
{
	int n = ib_cq_poll(cq, wanted, runner->wc);

	if (likely(n == IB_CQ_BATCH)) {
		ib_cq_begin_batch(lane, runner, cq, runner->wc, IB_CQ_BATCH, handover);
		ib_cq_hand_out_whole(runner, cq);
		return ib_cq_end_batch(runner, handover) ? n : -n;
	}
	if (!n)
		return 0;
	ib_cq_begin_batch(lane, runner, cq, runner->wc, n, handover);
	ib_cq_hand_out(runner, cq, runner->wc, runner->wc + n);
	return ib_cq_end_batch(runner, handover) ? n : -n;
}

/* For IB_POLL_DIRECT. */
int ib_cq_poll_direct(struct ib_cq_lane *lane, struct ib_cq *cq, int wanted)
{
	return ib_cq_poll_batch(lane, &lane->own, cq, wanted, false);
}

/* Whether @cq, the first of @ready, was polled ahead and still has completions from that. */
static __always_inline bool ib_cq_has_ahead(const struct ib_cq_lane *lane, const struct ib_cq *cq)
{
	return READ_ONCE(lane->ahead_cq) == cq;
}

/* Called after a batch of what was polled ahead: drops the claim if nothing is left of that. */
static void ib_cq_end_ahead(struct ib_cq_lane *lane)
{
	if (lane->ahead_at != lane->ahead_end)
		return;
	/* Pairs with the acquire in ib_cq_may_poll_ahead(): lane->ahead was read before. */
	smp_store_release(&lane->ahead_cq, NULL);
}

/*
 * As ib_cq_poll_batch(), for a CQ that is alone: polls it ahead for *@wanted completions, at most
 * IB_CQ_AHEAD. If another CQ becomes pending meanwhile, leaves the rest in lane->ahead, and sets
 * *@wanted to what was handed out. If there is such a rest already, hands out from that instead.
 */
static noinline int ib_cq_ahead_batch(struct ib_cq_lane *lane, struct ib_cq_runner *runner,
				      struct ib_cq *cq, int *wanted, bool handover)
{
	bool fresh = !ib_cq_has_ahead(lane, cq);
	struct ib_wc *wc, *end;
	int n;

	if (fresh) {
		n = ib_cq_poll(cq, *wanted, lane->ahead);
		if (!n)
			return 0;
		lane->ahead_at = lane->ahead;
		lane->ahead_end = lane->ahead + n;
		WRITE_ONCE(lane->ahead_cq, cq);
	} else {
		n = min_t(int, *wanted, lane->ahead_end - lane->ahead_at);
		*wanted = n;
	}
	wc = lane->ahead_at;
	lane->ahead_at += n;

	ib_cq_begin_batch(lane, runner, cq, wc, n, handover);
	end = wc + n;
	if (fresh)
		end = ib_cq_hand_out_alone(runner, cq, wc, end);
	else
		ib_cq_hand_out(runner, cq, wc, end);
	kverbs_delay("ib_cq_ahead_batch");
	if (!ib_cq_end_batch(runner, handover)) {
		ib_cq_hand_out(runner, cq, end, wc + n);
		ib_cq_end_ahead(lane);
		return -n;
	}
	if (unlikely(end != wc + n)) {
		lane->ahead_at = end;
		cq->stats.completions -= wc + n - end;
		lane->stats.completions -= wc + n - end;
		n = end - wc;
		*wanted = n;
		runner->end = end;
	}
	ib_cq_end_ahead(lane);
	return n;
}

/*
 * Serves the threads that wait for @cq, the first of @ready, or stop it. False: it was stopped.
 */
static noinline bool ib_cq_attend(struct ib_cq_lane *lane, struct ib_cq *cq)
{
	int state = atomic_fetch_andnot(IB_CQ_WAIT, &cq->state);

	if (state & IB_CQ_STOP) {
		ib_cq_ready_del(lane, &lane->ready);
		ib_cq_release_waiters(cq);
		complete(&cq->stopped);
		return false;
	}
	ib_cq_collect_waiters(cq);
	return true;
}

/* Moves @cq, the first of @ready, to the end. */
static __always_inline void ib_cq_ready_rotate(struct ib_cq_lane *lane, struct ib_cq *cq)
{
	struct llist_node *next = cq->link.next;

	if (!next)
		return;
	lane->ready = next;
	ib_cq_ready_add(lane, cq);
}

/*
 * Arms @cq, the first of @ready, which was found empty, for the next completion; but not if it
 * was woken meanwhile, or has waiters: then it stays ready.
 */
static __always_inline void ib_cq_arm(struct ib_cq_lane *lane, struct ib_cq *cq)
{
	bool missed;
	int state;

	if (unlikely(!list_empty(&cq->flushing)) ||
	    unlikely(atomic_cmpxchg(&cq->state, IB_CQ_QUEUED, IB_CQ_BUSY) != IB_CQ_QUEUED)) {
		ib_cq_ready_rotate(lane, cq);
		return;
	}
	missed = ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0;
	trace_ib_cq_rearm(cq, missed);
	cq->stats.rearms++;
	if (missed) {
		cq->stats.missed++;
		/* The common case: nothing else has happened, so it just stays in @ready. */
		if (likely(atomic_cmpxchg(&cq->state, IB_CQ_BUSY, IB_CQ_QUEUED) == IB_CQ_BUSY)) {
			ib_cq_ready_rotate(lane, cq);
			return;
		}
		atomic_or(IB_CQ_QUEUED, &cq->state);
	}

	/* Unlink it first: once it is not BUSY, it may be stopped, and freed. */
	ib_cq_ready_del(lane, &lane->ready);
	state = atomic_fetch_andnot(IB_CQ_BUSY, &cq->state);
	if (unlikely(state & IB_CQ_STOP)) {
		ib_cq_release_waiters(cq);
		complete(&cq->stopped);
	} else if (state & IB_CQ_QUEUED) {
		ib_cq_ready_add(lane, cq);
	}
}

/* Whether no other CQ waits for the lane, and no state bit of @cq needs attention. */
static bool ib_cq_is_alone(const struct ib_cq_lane *lane, const struct ib_cq *cq)
{
	return !cq->link.next && llist_empty(&lane->pending) &&
	       atomic_read(&cq->state) == IB_CQ_QUEUED;
}

/* Whether the next batch of @cq, of at most @left completions, may be a large one. */
static __always_inline bool ib_cq_may_poll_ahead(const struct ib_cq_lane *lane,
						 const struct ib_cq *cq, int left)
{
	/* acquire: pairs with ib_cq_end_ahead(), called perhaps by a runner that was displaced. */
	return ib_cq_is_alone(lane, cq) && left > IB_CQ_BATCH && !smp_load_acquire(&lane->ahead_cq);
}

/*
 * Ends a round of @completed completions in whose last batch, of @n, the runner was displaced. It
 * does what concerns the CQ only; what needs the lane is left to the next round.
 */
static noinline void ib_cq_end_displaced(struct ib_cq_runner *runner, struct ib_cq *cq, int completed,
					 int n, int wanted)
{
	cq->deficit -= n;
	if (!list_empty(&cq->flushing))
		ib_cq_flush_progress(cq, completed, n < wanted);
	if (n < wanted)
		cq->deficit = 0;
	else if (!cq->deficit)
		cq->stats.exhausted++;
	ib_cq_return_runner(runner, cq);
}

/* Ends a round in which @cq, the first of @ready, has used up its share. */
static __always_inline void ib_cq_end_share(struct ib_cq_lane *lane, struct ib_cq *cq)
{
	cq->stats.exhausted++;
	/* Put it behind those that became pending meanwhile. */
	ib_cq_collect_pending(lane);
	ib_cq_ready_rotate(lane, cq);
}

/*
 * As ib_cq_round(), for the most frequent case beside other CQs: see ib_cq_has_share(). Faster,
 * because the share is one batch.
 */
static __always_inline int ib_cq_round_of_share(struct ib_cq_lane *lane,
						struct ib_cq_runner *runner, struct ib_cq *cq,
						const bool handover)
{
	int n;

	runner->cq = cq;
	lane->stats.rounds++;
	cq->stats.rounds++;
	n = ib_cq_poll_batch(lane, runner, cq, IB_CQ_SHARE, handover);
	if (handover && unlikely(n < 0)) {
		cq->deficit = IB_CQ_SHARE;
		ib_cq_end_displaced(runner, cq, -n, -n, IB_CQ_SHARE);
		return -1;
	}
	if (unlikely(!list_empty(&cq->flushing)))
		ib_cq_flush_progress(cq, n, n < IB_CQ_SHARE);
	if (likely(n == IB_CQ_SHARE)) {
		ib_cq_end_share(lane, cq);
		return IB_CQ_SHARE;
	}
	ib_cq_dim_add(cq);
	ib_cq_arm(lane, cq);
	return n;
}

/* Whether @cq, of weight 1 and beside others, is due a whole share, and nothing else. */
static __always_inline bool ib_cq_has_share(const struct ib_cq_lane *lane, const struct ib_cq *cq,
					    int limit)
{
	return cq->link.next && limit >= IB_CQ_SHARE && !cq->deficit &&
	       READ_ONCE(cq->weight) == 1 && atomic_read(&cq->state) == IB_CQ_QUEUED &&
	       !ib_cq_has_ahead(lane, cq);
}

/*
 * Runs a round of @cq, the first of @ready, with at most @limit completions. Returns how many it
 * handled; -1 if the runner was displaced: it is a spare one then.
 */
static __always_inline int ib_cq_round(struct ib_cq_lane *lane, struct ib_cq_runner *runner,
				       struct ib_cq *cq, int limit, const bool handover)
{
	int wanted, n, left = limit, deficit = cq->deficit;
	int share = READ_ONCE(cq->weight) * IB_CQ_SHARE;

	/* Those who wait for it, or free it, also wait for what was polled ahead. */
	if (unlikely(atomic_read(&cq->state) != IB_CQ_QUEUED) && !ib_cq_has_ahead(lane, cq) &&
	    !ib_cq_attend(lane, cq))
		return 0;
	runner->cq = cq;
	lane->stats.rounds++;
	cq->stats.rounds++;
	if (!deficit)
		deficit = share;
	for (;;) {
		if (unlikely(ib_cq_has_ahead(lane, cq))) {
			wanted = min(deficit, left);
			n = ib_cq_ahead_batch(lane, runner, cq, &wanted, handover);
		} else if (ib_cq_may_poll_ahead(lane, cq, left)) {
			wanted = min(left, IB_CQ_AHEAD);
			n = ib_cq_ahead_batch(lane, runner, cq, &wanted, handover);
			/* It may take more than its share, as no other CQ was pending. */
			deficit = max(deficit, abs(n));
		} else {
			wanted = min3(IB_CQ_BATCH, deficit, left);
			n = ib_cq_poll_batch(lane, runner, cq, wanted, handover);
		}
		if (handover && unlikely(n < 0)) {
			cq->deficit = deficit;
			ib_cq_end_displaced(runner, cq, limit - left - n, -n, wanted);
			return -1;
		}
		deficit -= n;
		left -= n;
		if (n < wanted || !left)
			break;
		if (limit - left >= IB_CQ_CLOCK_BATCH && need_resched())
			break;
		if (deficit)
			continue;
		/* If it is still alone, its next round would come next anyway. */
		if (!ib_cq_is_alone(lane, cq))
			break;
		deficit = share;
	}

	cq->deficit = deficit;
	if (unlikely(!list_empty(&cq->flushing)))
		ib_cq_flush_progress(cq, limit - left, n < wanted);
	if (n < wanted) {
		cq->deficit = 0;
		ib_cq_dim_add(cq);
		ib_cq_arm(lane, cq);
	} else if (!deficit) {
		ib_cq_end_share(lane, cq);
	}
	return limit - left;
}

/*
 * Reads the clock. Returns after how many completions to read it again; 0 if the time of the run
 * is spent.
 */
static int ib_cq_look_at_clock(u64 *deadline)
{
	u64 limit = (u64)READ_ONCE(cq_time_us) * NSEC_PER_USEC;
	u64 now = local_clock();
	s64 left;

	/* The run's time begins at its first reading, which most runs do not reach. */
	if (!*deadline) {
		*deadline = now + limit;
		return IB_CQ_CLOCK_BATCH;
	}
	left = *deadline - now;
	if (left < 0)
		return 0;
	return left > (s64)(limit / 2) ? 2 * IB_CQ_CLOCK_BATCH : IB_CQ_CLOCK_BATCH;
}

/*
 * Lets other tasks have the CPU between two rounds. With @handover, the runner may be displaced if
 * they do not give it back. Then this returns false, and the caller must not touch the lane.
 */
bool ib_cq_pause(struct ib_cq_runner *runner, bool handover)
{
	if (!handover || !need_resched()) {
		/* Even if nobody wants the CPU: it is also a quiescent state for RCU. */
		cond_resched();
		return true;
	}
	ib_cq_allow_displacing(runner, IB_CQ_PAUSE);
	kverbs_delay("ib_cq_pause");
	cond_resched();
	if (likely(ib_cq_end_batch(runner, true)))
		return true;
	ib_cq_return_runner(runner, NULL);
	return false;
}

static __always_inline enum ib_cq_ran ib_cq_run(struct ib_cq_lane *lane,
						struct ib_cq_runner *runner, const bool handover)
{
	bool may_sleep = handover || lane->ctx->may_sleep;
	int left = clamp_t(unsigned int, READ_ONCE(cq_budget), 1,
			   may_sleep ? INT_MAX : IB_CQ_SOFTIRQ_BUDGET);
	int until_clock = min(left, IB_CQ_SHARE), spent = 0, completed;
	enum ib_cq_ran ran = IB_CQ_RAN_EMPTY;
	u64 deadline = 0;
	struct ib_cq *cq;
	bool others;

	if (may_sleep)
		WRITE_ONCE(runner->poller, current);
	lane->stats.runs++;
	for (;;) {
		ib_cq_collect_pending(lane);
		if (!lane->ready)
			break;
		cq = ib_cq_ready_first(lane);
		if (ib_cq_has_share(lane, cq, until_clock))
			completed = ib_cq_round_of_share(lane, runner, cq, handover);
		else
			completed = ib_cq_round(lane, runner, cq, until_clock, handover);
		if (handover && unlikely(completed < 0))
			return IB_CQ_RAN_DISPLACED;
		spent += max(completed, 1);
		/* A round without completions takes time, too. */
		until_clock -= max(completed, IB_CQ_CLOCK_ROUND);
		if (until_clock > 0) {
			if (may_sleep && need_resched() && !ib_cq_pause(runner, handover))
				return IB_CQ_RAN_DISPLACED;
			continue;
		}
		if (!lane->ready && llist_empty(&lane->pending))
			break;
		left -= spent;
		spent = 0;
		if (left <= 0) {
			lane->stats.budget_spent++;
			ran = IB_CQ_RAN_SPENT;
			break;
		}
		/* Whether other lanes wait for this CPU. */
		others = lane->ctx->waiting && atomic_read(raw_cpu_ptr(lane->ctx->waiting));
		/* Not after the first share only: being scheduled again costs more than that. */
		if (deadline && unlikely(others)) {
			lane->stats.gave_way++;
			ran = IB_CQ_RAN_YIELD;
			break;
		}
		until_clock = min(left, ib_cq_look_at_clock(&deadline));
		/* With the first share, the run is then IB_CQ_CLOCK_BATCH long, like a NAPI poll. */
		if (unlikely(others))
			until_clock = min(until_clock, IB_CQ_CLOCK_BATCH - IB_CQ_SHARE);
		if (!until_clock) {
			lane->stats.time_spent++;
			ran = IB_CQ_RAN_SPENT;
			break;
		}
		if (may_sleep && !ib_cq_pause(runner, handover))
			return IB_CQ_RAN_DISPLACED;
	}
	if (may_sleep)
		WRITE_ONCE(runner->poller, NULL);
	return ran;
}

/*
 * Called by the context that runs the lane, when that was scheduled. After IB_CQ_RAN_EMPTY, the
 * context must call ib_cq_lane_idle() next.
 */
enum ib_cq_ran ib_cq_lane_run(struct ib_cq_lane *lane)
{
	return ib_cq_run(lane, &lane->own, false);
}

/*
 * As ib_cq_lane_run(), where runners may be displaced: called when the lane was scheduled, or when
 * @runner was started. After IB_CQ_RAN_DISPLACED the context must not touch the lane again.
 */
enum ib_cq_ran ib_cq_runner_run(struct ib_cq_runner *runner)
{
	return ib_cq_run(runner->lane, runner, true);
}

/*
 * Called after ib_cq_lane_run() has returned IB_CQ_RAN_EMPTY, when the context is ready for the
 * next call of its schedule(). Returns true if the lane is idle, or was scheduled again and may be
 * running already; false if a CQ became pending since: the caller must run the lane again.
 */
bool ib_cq_lane_idle(struct ib_cq_lane *lane)
{
	bool idle;

	/*
	 * If a CQ became pending before, nobody else schedules the lane until the xchg(). If that
	 * takes the lane back, it must run again: cq.rst says what of a runner that cannot.
	 */
	preempt_disable();
	atomic_set_release(&lane->active, 0);
	/* Pairs with the llist_add() before the xchg() in ib_cq_enqueue(). */
	smp_mb();
	idle = llist_empty(&lane->pending) || atomic_xchg(&lane->active, 1);
	preempt_enable();
	return idle;
}

/* Takes @cq out of @ready. Returns false if it is not there. */
static bool ib_cq_ready_leave(struct ib_cq_lane *lane, struct ib_cq *cq)
{
	struct llist_node **link;

	for (link = &lane->ready; *link; link = &(*link)->next) {
		if (*link == &cq->link) {
			ib_cq_ready_del(lane, link);
			return true;
		}
	}
	return false;
}

/*
 * Stops a CQ from within a done() of another one of the same lane, which has one runner: so no
 * other thread takes the CQ out of @pending or @ready. A waker may be about to add it.
 */
static void ib_cq_stop_within(struct ib_cq_lane *lane, struct ib_cq *cq)
{
	while (!ib_cq_ready_leave(lane, cq)) {
		ib_cq_collect_pending(lane);
		cpu_relax();
	}
	if (ib_cq_has_ahead(lane, cq))
		WRITE_ONCE(lane->ahead_cq, NULL);
	ib_cq_release_waiters(cq);
}

/*
 * On return @cq is not being polled, and will not be again, whatever wakes it.
 * Process context; not from within a done() of the CQ.
 */
void ib_cq_stop(struct ib_cq *cq)
{
	struct ib_cq_lane *lane = cq->lane;

	if (ib_cq_is_direct(cq)) {
		/* Claim it for good. */
		ib_cq_direct_claim(cq);
		return;
	}
	if (!(atomic_fetch_or(IB_CQ_STOP, &cq->state) & (IB_CQ_QUEUED | IB_CQ_BUSY)))
		return;
	if (ib_cq_polled_by_caller(cq)) {
		ib_cq_stop_within(lane, cq);
		return;
	}
	ib_cq_hand_over_all();
	while (!wait_for_completion_timeout(&cq->stopped, ib_wait_warn_timeout()))
		ibdev_warn(cq->device,
			   "%s: freeing CQ %u: waiting for its done() to return; does it need a lock that the caller holds?\n",
			   cq->res.kern_name, cq->res.id);
}
