// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine: who executes a queue pair, when, and for how long.
 *
 * A queue pair is executed by the owner of its doorbell, one at a time:
 *
 *   EMU_DB_IDLE	nobody
 *   EMU_DB_OWNED	an owner is at work, or on its way
 *   EMU_DB_RERUN	the same, and there is news since it last looked
 *
 * Whoever has news - a poster, a responder that failed the queue pair - writes
 * RERUN. If the word was IDLE before, the writer is now the owner; if not, the
 * owner will look again, and the writer goes on: nobody waits. The owner writes
 * OWNED, looks at everything there is to do, and at the end replaces OWNED by
 * IDLE, which fails if the word is RERUN again. Each of these is a fully ordered
 * atomic operation, and they pair with each other: either the owner's look comes
 * after the news, or the word is RERUN when the owner wants to leave.
 *
 * Ownership moves. A poster executes inline up to a small budget, then puts the
 * queue pair on the list of a runner, a kernel thread, which is the owner from then
 * on. Each CPU has a list, but its runner runs on any CPU: a poster may poll without
 * end, with preemption off, for what the runner is to do. An owner that must wait,
 * for a receive to be posted or for a peer to come back, arms the queue pair's timer;
 * the timer is then the owner, and passes the queue pair to a runner when it fires.
 *
 * emu_qp_freeze() takes ownership away from whoever has it, at the next boundary
 * between two entries. It is how modify_qp and destroy_qp get a queue pair that
 * stands still. A destroyed queue pair stays frozen for ever.
 *
 * After letting go of ownership, a former owner touches the queue pair once more
 * to wake a waiting freezer. It does so under rcu_read_lock(), and queue pairs
 * are freed a grace period after their destruction.
 */
#include <linux/cpu.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/wait_bit.h>

#include "fastpath.h"

/*
 * What an owner may do before it hands over, in bytes of messages. Each entry costs
 * EMU_ENTRY_COST in addition to its bytes, and small pieces of memory count as if they
 * had EMU_PIECE_COST bytes. The last entry may exceed the budget.
 *
 * Inline: about 16 entries, so that a request and its completion need no other
 * thread but post_send stays short; or one message of 64 KiB, because copying it
 * takes less time than waking another thread and coming back. In hard interrupt:
 * one small message from one piece of memory, which costs less than handing over; its
 * budget only says that it is the first. A runner: the work that it does for one queue
 * pair, with preemption off, before it turns to the next.
 */
#define EMU_INLINE_BUDGET	SZ_64K
#define EMU_HARDIRQ_BUDGET	1
#define EMU_HARDIRQ_BYTES	SZ_256
#define EMU_RUNNER_BUDGET	SZ_256K

/* Local ACK timeout: 4.096 us times two to the given power (IBTA 9.7.6.1.3). */
#define EMU_TIMEOUT_UNIT_NS	4096
/* How often a queue pair that never times out looks for its peer. */
#define EMU_PROBE_NS		NSEC_PER_SEC
/*
 * The timer fires on the CPU where it was armed, perhaps by a poster who polls there from then
 * on, with bottom halves off or before all other tasks. So it fires in the hard interrupt, and
 * merely wakes a runner, which runs elsewhere.
 */
#define EMU_TIMER_MODE		HRTIMER_MODE_REL_HARD
/* The rnr_retry value that means: for ever. */
#define EMU_RNR_FOREVER		7

/**
 * struct emu_runner - a kernel thread that executes queue pairs
 * @queue: queue pairs handed to it, the newest first
 * @task: the thread
 */
struct emu_runner {
	struct llist_head queue;
	struct task_struct *task;
};

static DEFINE_PER_CPU(struct emu_runner, emu_runners);
/* Its runner serves CPUs that came online after the module was loaded, too. */
static int emu_first_cpu;

/* What became of a queue pair that an owner worked on. */
enum emu_service {
	EMU_IDLE,	/* nothing is left to do */
	EMU_MOVED,	/* a runner or the timer is the owner now */
};

/* Hands ownership to a runner. Any context. */
static void emu_runner_queue(struct emu_qp *qp)
{
	struct emu_runner *runner = raw_cpu_ptr(&emu_runners);

	if (unlikely(!runner->task))
		runner = per_cpu_ptr(&emu_runners, emu_first_cpu);
	if (llist_add(&qp->run, &runner->queue))
		wake_up_process(runner->task);
}

static enum hrtimer_restart emu_qp_timer(struct hrtimer *timer)
{
	emu_runner_queue(container_of(timer, struct emu_qp, timer));
	return HRTIMER_NORESTART;
}

/* Called last in the life of a queue pair, which is frozen. */
void emu_qp_engine_exit(struct emu_qp *qp)
{
	/* The callback hands over as its last step, but may not have returned. */
	hrtimer_cancel(&qp->timer);
}

void emu_qp_engine_init(struct emu_qp *qp)
{
	atomic_set(&qp->doorbell, EMU_DB_IDLE);
	hrtimer_init(&qp->timer, CLOCK_MONOTONIC, EMU_TIMER_MODE);
	qp->timer.function = emu_qp_timer;
}

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
	emu_cqe_no_message(cqe, qp);
	emu_cq_end(to_ecq(qp->ibqp.recv_cq), cqe, pos, true);
}

/* Ends the oldest entry of either queue. Returns false if there is none. */
static bool emu_flush_one(struct emu_qp *qp)
{
	struct emu_rwqe *recv = qp->taken;
	struct emu_swqe *wqe;
	bool too_short;
	u32 pos;

	wqe = emu_ring_peek(&qp->sq, &pos);
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
	if (emu_claim_held(qp, 0, recv) == EMU_DONE ||
	    emu_recv_ring_claim(&qp->rq, 0, recv, &too_short)) {
		emu_flush_one_recv(qp, recv);
		return true;
	}
	/*
	 * The receives in an SRQ are not flushed; this queue pair takes none of
	 * them any more.
	 */
	if (qp->srq && !atomic_xchg(&qp->last_wqe, 1))
		ib_qp_notify_event(&qp->ibqp, IB_EVENT_QP_LAST_WQE_REACHED);
	return false;
}

/* In an error state: completes everything that is queued, in order. Called by the owner. */
static enum emu_service emu_flush(struct emu_qp *qp, s64 *budget)
{
	enum emu_service service = EMU_IDLE;

	preempt_disable();
	while (!READ_ONCE(qp->freezing)) {
		if (*budget <= 0) {
			emu_runner_queue(qp);
			service = EMU_MOVED;
			break;
		}
		if (!emu_flush_one(qp))
			break;
		*budget -= EMU_ENTRY_COST;
	}
	preempt_enable();
	return service;
}

/* Flushes entries before @end, as many as a poster would. Returns false if none is left. */
static bool emu_flush_some_sends(struct emu_qp *qp, u32 end)
{
	s64 budget = EMU_INLINE_BUDGET;
	struct emu_swqe *wqe = NULL;
	u32 pos;

	preempt_disable();
	for (; budget > 0; budget -= EMU_ENTRY_COST) {
		wqe = emu_ring_peek(&qp->sq, &pos);
		if (!wqe || pos == end)
			break;
		emu_complete_send(qp, wqe, pos, IB_WC_WR_FLUSH_ERR, EMU_SYN_FLUSHED);
	}
	preempt_enable();
	return budget <= 0;
}

/**
 * emu_qp_flush_sends() - complete everything in the send queue with a flush error
 * @qp: queue pair, frozen, in SQE
 *
 * Context: Process context; @qp->lock held.
 */
void emu_qp_flush_sends(struct emu_qp *qp)
{
	u32 end = atomic_read(&qp->sq.head);

	while (emu_flush_some_sends(qp, end))
		cond_resched();
}

/*
 * Takes ownership from the timer. Returns false if the timer was not the owner. The
 * callback of an earlier turn may still be about to return, which says nothing
 * about the present owner: that takes only a moment, so this waits for it.
 */
static bool emu_timer_cancel(struct emu_qp *qp)
{
	int ret;

	while ((ret = hrtimer_try_to_cancel(&qp->timer)) < 0)
		cpu_relax();
	return ret;
}

/*
 * Makes the timer the owner. Returns EMU_IDLE if a freezer or an error came at
 * that moment and ownership is still ours.
 */
static enum emu_service emu_park(struct emu_qp *qp, u64 delay_ns)
{
	enum emu_service service = EMU_MOVED;

	rcu_read_lock();
	hrtimer_start(&qp->timer, ns_to_ktime(delay_ns), EMU_TIMER_MODE);
	/*
	 * Full barrier, pairs with those in emu_qp_freeze() and emu_qp_fail():
	 * either they see the timer armed, or we see them. Of all those who cancel
	 * the timer, the one who finds it armed is the owner.
	 */
	smp_mb();
	if ((READ_ONCE(qp->freezing) || atomic_read(&qp->state) == IB_QPS_ERR) &&
	    emu_timer_cancel(qp))
		service = EMU_IDLE;
	rcu_read_unlock();
	return service;
}

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

/* The entry under way is tried again after a while. */
static enum emu_service emu_retry_after(struct emu_exec *ex, u64 delay_ns)
{
	emu_exec_end(ex);
	ex->qp->retrying = true;
	return emu_park(ex->qp, delay_ns);
}

/* The entry under way has been tried often enough. */
static enum emu_service emu_give_up(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				    enum ib_wc_status status, enum emu_syndrome why)
{
	emu_exec_end(ex);
	emu_fail_local(ex, wqe, pos, status, why);
	return EMU_IDLE;
}

static enum emu_service emu_wait_receive(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	struct emu_qp *qp = ex->qp;
	u64 delay_ns = emu_rnr_delay_ns(READ_ONCE(ex->peer->rnr_timer));

	emu_count(qp->port, EMU_CNT_RNR, 1);
	if (qp->attr.rnr_retry != EMU_RNR_FOREVER && !qp->rnr_retries--)
		return emu_give_up(ex, wqe, pos, IB_WC_RNR_RETRY_EXC_ERR, EMU_SYN_RNR);
	return emu_retry_after(ex, delay_ns);
}

static enum emu_service emu_wait_peer(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	struct emu_qp *qp = ex->qp;

	emu_count(qp->port, EMU_CNT_TIMEOUT, 1);
	/*
	 * A timeout of 0 means none: the owner checks now and then whether the peer
	 * is there.
	 */
	if (!qp->attr.timeout)
		return emu_retry_after(ex, EMU_PROBE_NS);
	if (!qp->retries--)
		return emu_give_up(ex, wqe, pos, IB_WC_RETRY_EXC_ERR, EMU_SYN_NO_RESPONSE);
	return emu_retry_after(ex, (u64)EMU_TIMEOUT_UNIT_NS << (qp->attr.timeout & 31));
}

static void emu_reset_retries(struct emu_qp *qp)
{
	qp->retries = qp->attr.retry_cnt;
	qp->rnr_retries = qp->attr.rnr_retry;
}

/* An entry that had been tried before is done. */
static noinline void emu_retried(struct emu_qp *qp)
{
	qp->retrying = false;
	emu_reset_retries(qp);
	if (qp->finishing)
		emu_qp_drained(qp);
}

static enum emu_service emu_hand_over(struct emu_exec *ex)
{
	emu_exec_end(ex);
	emu_runner_queue(ex->qp);
	return EMU_MOVED;
}

/* In SQD, only the entry that was under way is still finished. */
static inline bool emu_may_execute(const struct emu_qp *qp)
{
	if (unlikely(READ_ONCE(qp->freezing)))
		return false;
	return likely(atomic_read(&qp->state) == IB_QPS_RTS) ||
	       (atomic_read(&qp->state) == IB_QPS_SQD && qp->finishing);
}

/*
 * Is the rest of the budget enough? A runner takes a message of any length while
 * there is a rest.
 */
static bool emu_budget_covers(s64 budget, const struct emu_swqe *wqe, const struct emu_exec *ex)
{
	if (budget == EMU_HARDIRQ_BUDGET)
		return wqe->length <= EMU_HARDIRQ_BYTES && wqe->num_sge <= 1;
	return budget > 0 && (ex->may_sleep || budget >= wqe->length);
}

/*
 * Executes entries in order until the queue, the budget or the state ends this.
 * EMU_DONE: there is nothing left, or nothing to be done in this state.
 */
static inline enum emu_verdict emu_execute(struct emu_exec *ex, s64 *budget,
					   struct emu_swqe **pwqe, u32 *pos)
{
	struct emu_qp *qp = ex->qp;
	enum emu_verdict verdict;
	struct emu_swqe *wqe;
	u32 length;

	while (emu_may_execute(qp)) {
		wqe = emu_ring_peek(&qp->sq, pos);
		if (!wqe)
			break;
		*pwqe = wqe;
		length = wqe->length;
		if (unlikely(*budget <= length && !emu_budget_covers(*budget, wqe, ex)))
			return EMU_AGAIN;
		if (!emu_exec_simple(ex, qp, wqe, *pos)) {
			verdict = emu_exec_wqe(ex, wqe, *pos);
			if (unlikely(ex->cost)) {
				*budget -= ex->cost;
				ex->cost = 0;
			}
			/* The entry may be half done, so it must be finished in SQD. */
			if (verdict == EMU_AGAIN)
				qp->retrying = true;
			if (unlikely(verdict != EMU_DONE))
				return verdict;
		}
		if (unlikely(qp->retrying))
			emu_retried(qp);
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

	preempt_disable();
	switch (emu_execute(&ex, budget, &wqe, &pos)) {
	case EMU_RNR:
		service = emu_wait_receive(&ex, wqe, pos);
		break;
	case EMU_NO_RESPONSE:
		service = emu_wait_peer(&ex, wqe, pos);
		break;
	case EMU_DELAYED:
		service = emu_retry_after(&ex, ex.delay_ns);
		break;
	case EMU_AGAIN:
		service = emu_hand_over(&ex);
		break;
	default:
		emu_exec_end(&ex);
		break;
	}
	preempt_enable();
	return service;
}

static enum emu_service emu_service(struct emu_qp *qp, s64 *budget, bool may_sleep)
{
	enum emu_service service;
	int state;

	service = emu_service_sends(qp, budget, may_sleep);
	/* Whoever has handed a queue pair over must not touch it any more. */
	if (service == EMU_MOVED)
		return service;
	state = atomic_read(&qp->state);
	if (unlikely(state == IB_QPS_ERR || state == IB_QPS_SQE))
		service = emu_flush(qp, budget);
	return service;
}

/* Lets go of ownership unless there is news. Under rcu_read_lock(). */
static bool emu_qp_release(struct emu_qp *qp)
{
	/* A freezer looks at everything itself, when it thaws. */
	if (READ_ONCE(qp->freezing))
		atomic_set_release(&qp->doorbell, EMU_DB_IDLE);
	else if (atomic_cmpxchg(&qp->doorbell, EMU_DB_OWNED, EMU_DB_IDLE) != EMU_DB_OWNED)
		return false;
	/* Full barrier, pairs with the one in emu_qp_freeze(). */
	smp_mb();
	if (unlikely(READ_ONCE(qp->freezing)))
		wake_up_var(&qp->doorbell);
	return true;
}

/* The caller is the owner. */
static void emu_qp_own(struct emu_qp *qp, s64 budget, bool may_sleep)
{
	bool released;

	do {
		/* Full barrier: the look that follows sees all news from before this. */
		atomic_xchg(&qp->doorbell, EMU_DB_OWNED);
		if (emu_service(qp, &budget, may_sleep) == EMU_MOVED)
			return;
		rcu_read_lock();
		released = emu_qp_release(qp);
		rcu_read_unlock();
	} while (!released);
}

static void emu_qp_own_inline(struct emu_qp *qp)
{
	emu_qp_own(qp, unlikely(in_hardirq()) ? EMU_HARDIRQ_BUDGET : EMU_INLINE_BUDGET, false);
}

/**
 * emu_qp_ring() - there is news for a queue pair; execute it here if nobody does
 * @qp: queue pair
 *
 * Context: Any but NMI.
 */
void emu_qp_ring(struct emu_qp *qp)
{
	if (atomic_xchg(&qp->doorbell, EMU_DB_RERUN) == EMU_DB_IDLE)
		emu_qp_own_inline(qp);
}

/**
 * emu_qp_ring_deferred() - there is news for a queue pair; a runner executes it
 * @qp: queue pair
 *
 * Called by engines, because execution does not nest.
 *
 * Context: Any but NMI.
 */
void emu_qp_ring_deferred(struct emu_qp *qp)
{
	if (atomic_xchg(&qp->doorbell, EMU_DB_RERUN) == EMU_DB_IDLE)
		emu_runner_queue(qp);
}

/**
 * emu_qp_unpark() - end a wait of the queue pair's owner
 * @qp: queue pair
 *
 * If the timer was the owner, a runner is now.
 *
 * Context: Any but NMI. The queue pair is held by its gate, or the caller is
 * its owner or serialises its destruction.
 */
void emu_qp_unpark(struct emu_qp *qp)
{
	if (emu_timer_cancel(qp))
		emu_runner_queue(qp);
}

/**
 * emu_qp_freeze() - take a queue pair away from its owner
 * @qp: queue pair
 *
 * Returns when no entry is being executed and the timer is not armed. Waits at
 * most for the entry under way, that is, for one copy of a message.
 *
 * Context: Process context; @qp->lock held.
 */
void emu_qp_freeze(struct emu_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	WRITE_ONCE(qp->freezing, true);
	/* Full barrier: pairs with emu_park() and emu_qp_release(). */
	smp_mb();
	emu_qp_unpark(qp);
	wait_var_event(&qp->doorbell,
		       atomic_cmpxchg(&qp->doorbell, EMU_DB_IDLE, EMU_DB_OWNED) == EMU_DB_IDLE);
}

/**
 * emu_qp_thaw() - let a frozen queue pair go on
 * @qp: queue pair
 *
 * Context: Process context; @qp->lock held, by the caller of emu_qp_freeze().
 */
void emu_qp_thaw(struct emu_qp *qp)
{
	lockdep_assert_held(&qp->lock);
	emu_reset_retries(qp);
	WRITE_ONCE(qp->freezing, false);
	emu_qp_own_inline(qp);
}

static int emu_runner_thread(void *data)
{
	struct emu_runner *runner = data;
	struct emu_qp *qp, *next;
	struct llist_node *batch;

	for (;;) {
		set_current_state(TASK_IDLE);
		if (llist_empty(&runner->queue)) {
			if (kthread_should_stop())
				break;
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);

		batch = llist_reverse_order(llist_del_all(&runner->queue));
		llist_for_each_entry_safe(qp, next, batch, run) {
			emu_qp_own(qp, EMU_RUNNER_BUDGET, true);
			cond_resched();
		}
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

int emu_engine_init(void)
{
	struct task_struct *task;
	int cpu;

	emu_first_cpu = -1;
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		struct emu_runner *runner = per_cpu_ptr(&emu_runners, cpu);

		init_llist_head(&runner->queue);
		task = kthread_create_on_node(emu_runner_thread, runner, cpu_to_node(cpu),
					      "kverbs_emu/%d", cpu);
		if (IS_ERR(task)) {
			cpus_read_unlock();
			emu_engine_exit();
			return PTR_ERR(task);
		}
		runner->task = task;
		if (emu_first_cpu < 0)
			emu_first_cpu = cpu;
		wake_up_process(task);
	}
	cpus_read_unlock();
	return 0;
}

/* No queue pair exists any more. */
void emu_engine_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct emu_runner *runner = per_cpu_ptr(&emu_runners, cpu);

		if (runner->task)
			kthread_stop(runner->task);
		runner->task = NULL;
	}
}
