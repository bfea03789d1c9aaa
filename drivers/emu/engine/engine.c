// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine: what the owner of a queue pair does, until there is nothing left to do.
 * doorbell.h explains ownership, transport.h how the peer is reached.
 */
#include <linux/percpu.h>
#include <linux/sched/clock.h>

#include "../queue/flush.h"
#include "fastpath.h"

/* Local ACK timeout: 4.096 us times two to the given power (IBTA 9.7.6.1.3). */
#define EMU_TIMEOUT_UNIT_NS	4096
/* The interval at which a queue pair without a timeout looks for its peer. */
#define EMU_PROBE_NS		NSEC_PER_SEC
/* The rnr_retry value for an unlimited number of retries. */
#define EMU_RNR_FOREVER		7
/* After this many rings of the doorbell, an owner hands the queue pair over to a runner. */
#define EMU_MAX_LOOKS		64
/*
 * The mean time between retries on a CPU: 32 a millisecond, each of which takes some us. Without
 * this limit, a process could leave so many queue pairs waiting for a receive that their retries
 * keep the runner busy for ever.
 */
#define EMU_RETRY_NS		(NSEC_PER_MSEC / 32)
/* But no queue pair waits longer than this: 16384 of them that wait take half of it. */
#define EMU_RETRY_MAX_NS	NSEC_PER_SEC

/**
 * struct emu_pace - retries on a CPU
 * @next: when the next retry may run, by the clock of the CPU: one time for the kernel's queue
 *	pairs, and one for those of processes, so that these cannot delay the kernel's
 */
struct emu_pace {
	u64 next[2];
};

static DEFINE_PER_CPU(struct emu_pace, emu_pace);

/* How long the responder asks the requester to wait: IBTA table 45, by code. */
static u64 emu_rnr_delay_ns(u8 code)
{
	static const u32 delay_10us[32] = {
		65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
		256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192,
		12288, 16384, 24576, 32768, 49152,
	};

	return delay_10us[code & 31] * 10ULL * NSEC_PER_USEC;
}

/*
 * Reserves the next free slot for a retry of @qp, and returns the time until then. Not atomic: an
 * interrupt that reserves one at the same moment does little harm.
 */
static u64 emu_pace_ns(const struct emu_qp *qp)
{
	u64 *next = &this_cpu_ptr(&emu_pace)->next[!!qp->user_sq];
	u64 now = local_clock(), slot = max(*next, now);

	/* The slot is not given back, even if the wait ends early, as after each change. */
	*next = min_t(u64, slot + EMU_RETRY_NS, now + EMU_RETRY_MAX_NS);
	return slot - now;
}

/* Parks the queue pair, to try the entry under way again later. Preemption is off. */
static enum emu_service emu_retry_after(struct emu_exec *ex, u64 delay_ns)
{
	emu_exec_end(ex);
	ex->qp->retrying = true;
	return emu_qp_park(ex->qp, max(delay_ns, emu_pace_ns(ex->qp)));
}

/* The peer has no receive posted: tries again after a while, or fails the entry. */
static enum emu_service emu_wait_receive(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	struct emu_qp *qp = ex->qp;
	u64 delay_ns = emu_rnr_delay_ns(ex->rnr_timer);

	emu_port_count(qp->port, EMU_CNT_RNR, 1);
	if (qp->attr.rnr_retry != EMU_RNR_FOREVER && !qp->rnr_retries--) {
		emu_port_count(qp->port, EMU_CNT_RNR_EXCEEDED, 1);
		emu_exec_end(ex);
		emu_fail_local(ex, wqe, pos, IB_WC_RNR_RETRY_EXC_ERR, EMU_SYN_RNR);
		return EMU_IDLE;
	}
	/* An RNR NAK is an answer: the peer is alive, so the timeouts are counted anew. */
	qp->retries = qp->attr.retry_cnt;
	return emu_retry_after(ex, delay_ns);
}

static enum emu_service emu_wait_peer(struct emu_exec *ex)
{
	struct emu_qp *qp = ex->qp;

	emu_port_count(qp->port, EMU_CNT_TIMEOUT, 1);
	/* A timeout of 0 means none: check now and then whether the peer is there. */
	if (!qp->attr.timeout)
		return emu_retry_after(ex, EMU_PROBE_NS);
	/*
	 * After the last attempt this is -1, and the timer is armed once more, as the last attempt
	 * has its full timeout, too; then emu_end_unanswered() fails the entry.
	 */
	qp->retries--;
	return emu_retry_after(ex, (u64)EMU_TIMEOUT_UNIT_NS << (qp->attr.timeout & 31));
}

/* An entry that was retried has ended: the next one has all its retries again. */
static noinline void emu_retry_done(struct emu_qp *qp)
{
	qp->retrying = false;
	emu_qp_reset_retries(qp);
	if (qp->finishing)
		emu_qp_drained(qp);
}

static enum emu_service emu_hand_over(struct emu_exec *ex, bool is_long)
{
	emu_exec_end(ex);
	if (is_long)
		emu_qp_hand_over_long(ex->qp);
	else
		emu_qp_hand_over(ex->qp);
	return EMU_MOVED;
}

/* In SQD, only the entry that was under way is still finished. */
static inline bool emu_may_execute(const struct emu_qp *qp)
{
	return emu_may_send(qp) || unlikely(!READ_ONCE(qp->freezing) && qp->finishing &&
					    atomic_read(&qp->state) == IB_QPS_SQD);
}

/*
 * Whether the rest of the budget is enough for the entry. A runner executes a message of up to
 * EMU_RUNNER_BYTES while any budget is left.
 */
static bool emu_budget_covers(s64 budget, const struct emu_swqe *wqe, const struct emu_exec *ex)
{
	if (budget == EMU_HARDIRQ_BUDGET)
		return wqe->length <= EMU_HARDIRQ_BYTES && wqe->num_sge <= 1;
	if (!ex->may_sleep || wqe->length > EMU_RUNNER_BYTES)
		return budget > 0 && (budget >= wqe->length || budget == EMU_LONG_BUDGET);
	return budget > 0;
}

/*
 * The queue pair's ring is empty: fetches an entry that a process has posted. One that must not
 * be executed ends in error. Returns false if there is none.
 */
static noinline bool emu_execute_fetch(struct emu_exec *ex)
{
	struct emu_refusal refusal = {};
	struct emu_swqe *wqe;
	u32 pos;

	if (!emu_user->fetch(ex->qp, &refusal))
		return false;
	wqe = emu_ring_peek(&ex->qp->sq, &pos);
	if (!wqe)
		return false;
	if (unlikely(refusal.status != IB_WC_SUCCESS)) {
		ibdev_warn_ratelimited(&ex->qp->edev->ibdev,
				       "qp %u: invalid request from a process: wr_id 0x%llx, operation %u, %s\n",
				       ex->qp->ibqp.qp_num, wqe->wr_id, refusal.opcode,
				       ib_wc_status_msg(refusal.status));
		emu_fail_local(ex, wqe, pos, refusal.status, refusal.why);
	}
	return true;
}

/*
 * Executes entries in order, until the queue is empty, the budget is spent, an entry has to wait,
 * or the state forbids it. Returns EMU_DONE if nothing is left that this state lets it execute.
 */
static inline enum emu_outcome emu_execute(struct emu_exec *ex, s64 *budget,
					   struct emu_swqe **pwqe, u32 *pos)
{
	struct emu_qp *qp = ex->qp;
	enum emu_outcome outcome;
	struct emu_swqe *wqe;
	u32 length;

	while (emu_may_execute(qp)) {
		wqe = emu_ring_peek(&qp->sq, pos);
		if (!wqe) {
			if (likely(!qp->user_sq) || !emu_execute_fetch(ex))
				break;
			continue;
		}
		*pwqe = wqe;
		length = wqe->length;
		if (unlikely(*budget <= length && !emu_budget_covers(*budget, wqe, ex)))
			return EMU_AGAIN;
		if (!emu_exec_simple(ex, qp, wqe, *pos)) {
			outcome = emu_exec_wqe(ex, wqe, *pos);
			if (unlikely(ex->cost)) {
				*budget -= ex->cost;
				ex->cost = 0;
			}
			/*
			 * The entry may be half done, so it must be finished even in SQD. Whoever
			 * is in the way may be preempted, perhaps by this runner, so a runner waits
			 * rather than spin.
			 */
			if (unlikely(outcome == EMU_AGAIN)) {
				qp->retrying = true;
				if (ex->may_sleep)
					outcome = emu_retry_soon(ex);
			}
			if (unlikely(outcome != EMU_DONE))
				return outcome;
		}
		if (unlikely(qp->retrying))
			emu_retry_done(qp);
		*budget -= EMU_ENTRY_COST + length;
	}
	return EMU_DONE;
}

static enum emu_service emu_service_sends(struct emu_qp *qp, s64 *budget, bool may_sleep)
{
	struct emu_exec ex = { .qp = qp, .may_sleep = may_sleep };
	enum emu_service service = EMU_IDLE;
	struct emu_swqe *wqe = NULL;
	u32 pos = 0;

	switch (emu_execute(&ex, budget, &wqe, &pos)) {
	case EMU_RNR:
		service = emu_wait_receive(&ex, wqe, pos);
		break;
	case EMU_NO_RESPONSE:
		service = emu_wait_peer(&ex);
		break;
	case EMU_DELAYED:
		service = emu_retry_after(&ex, ex.delay_ns);
		break;
	case EMU_AGAIN:
	case EMU_RUNNER:
		service = emu_hand_over(&ex, may_sleep && wqe->length > EMU_RUNNER_BYTES);
		break;
	default:
		emu_exec_end(&ex);
		break;
	}
	return service;
}

static enum emu_service emu_service(struct emu_qp *qp, s64 *budget, bool may_sleep)
{
	enum emu_service service;
	int state;

	service = emu_service_sends(qp, budget, may_sleep);
	/* Somebody else owns the queue pair by now: do not touch it. */
	if (service == EMU_MOVED)
		return service;
	state = atomic_read(&qp->state);
	if (likely(state != IB_QPS_ERR && state != IB_QPS_SQE))
		return EMU_IDLE;
	*budget = emu_qp_flush(qp, *budget);
	return *budget ? EMU_IDLE : EMU_MOVED;
}

/*
 * Fails the oldest entry, after the timeout of its last attempt. It is the timer that has woken
 * the runner: all else that ends a wait has changed the state or reset the retries.
 */
static noinline void emu_end_unanswered(struct emu_qp *qp)
{
	struct emu_exec ex = { .qp = qp };
	struct emu_swqe *wqe;
	u32 pos;

	wqe = emu_may_execute(qp) ? emu_ring_peek(&qp->sq, &pos) : NULL;
	if (!wqe)
		return;
	emu_port_count(qp->port, EMU_CNT_TIMEOUT_EXCEEDED, 1);
	emu_fail_local(&ex, wqe, pos, IB_WC_RETRY_EXC_ERR, EMU_SYN_NO_RESPONSE);
}

/* See emu_serve_fn. */
void emu_serve(struct emu_qp *qp, s64 budget, bool may_sleep)
{
	unsigned int looks = 0;

	if (may_sleep && unlikely(qp->retries < 0))
		emu_end_unanswered(qp);
	while (emu_service(qp, &budget, may_sleep) == EMU_IDLE && !emu_qp_release(qp)) {
		/* Posters may ring for ever, with work or without: do not stay here for that. */
		if (unlikely(++looks > EMU_MAX_LOOKS)) {
			emu_qp_hand_over(qp);
			return;
		}
		emu_qp_look(qp);
	}
}

int emu_engine_init(void)
{
	return emu_doorbell_start(emu_serve);
}

/* No queue pair exists any more. */
void emu_engine_exit(void)
{
	emu_doorbell_stop();
}
