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
 * queue pair on the list of its CPU's runner, a kernel thread, which is owner
 * from there on. An owner that must wait, for a receive to be posted or for a
 * peer to come back, arms the queue pair's timer; the timer is then the owner,
 * and passes the queue pair to a runner when it fires.
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

#include "cqring.h"

/*
 * What a poster executes itself. Enough that a request and its completion need
 * no other thread, little enough that post_send stays short.
 */
#define EMU_INLINE_WQES		16
#define EMU_INLINE_BYTES	SZ_16K
/* In hard interrupt: one small message, which costs less than the hand-over. */
#define EMU_HARDIRQ_WQES	1
#define EMU_HARDIRQ_BYTES	256
/*
 * What a runner does for one queue pair before it looks after the next. Short
 * messages are executed with preemption off, so this bounds that too.
 */
#define EMU_RUNNER_WQES		64
#define EMU_RUNNER_BYTES	SZ_128K

/* Local ACK timeout: 4.096 us times two to the given power (IBTA 9.7.6.1.3). */
#define EMU_TIMEOUT_UNIT_NS	4096
/* How often a queue pair that never times out looks for its peer. */
#define EMU_PROBE_NS		NSEC_PER_SEC
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
/* For CPUs that came online later than the module. */
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

/* The last thing that happens to a queue pair; it is frozen. */
void emu_qp_engine_exit(struct emu_qp *qp)
{
	/* The callback hands over as its last step, but may not have returned. */
	hrtimer_cancel(&qp->timer);
}

void emu_qp_engine_init(struct emu_qp *qp)
{
	atomic_set(&qp->doorbell, EMU_DB_IDLE);
	hrtimer_init(&qp->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL);
	qp->timer.function = emu_qp_timer;
}

/* Completes a send and gives its slot back. The owner. */
void emu_complete_send(struct emu_qp *qp, const struct emu_swqe *wqe, u32 pos,
		       enum ib_wc_status status, enum emu_syndrome why)
{
	static const u8 opcodes[] = {
		[IB_WR_SEND] = IB_WC_SEND,
		[IB_WR_SEND_WITH_IMM] = IB_WC_SEND,
		[IB_WR_SEND_WITH_INV] = IB_WC_SEND,
		[IB_WR_RDMA_WRITE] = IB_WC_RDMA_WRITE,
		[IB_WR_RDMA_WRITE_WITH_IMM] = IB_WC_RDMA_WRITE,
		[IB_WR_RDMA_READ] = IB_WC_RDMA_READ,
		[IB_WR_LOCAL_INV] = IB_WC_LOCAL_INV,
		[IB_WR_REG_MR] = IB_WC_REG_MR,
	};
	struct emu_cq *cq = to_ecq(qp->ibqp.send_cq);
	struct emu_completion *wc;
	u64 wr_id = wqe->wr_id;
	u32 length = wqe->length;
	u8 opcode = opcodes[wqe->opcode];
	bool signaled = qp->sig_all || (wqe->send_flags & IB_SEND_SIGNALED);
	u32 cq_pos;

	emu_ring_advance(&qp->sq, (struct emu_slot *)&wqe->slot, pos);
	if (!signaled && status == IB_WC_SUCCESS)
		return;
	wc = emu_cq_begin(cq, &cq_pos);
	if (unlikely(!wc)) {
		emu_qp_lost(qp);
		return;
	}
	wc->wr_id = wr_id;
	wc->qp = qp;
	wc->wqe_pos = pos;
	wc->byte_len = length;
	wc->ex.imm_data = 0;
	wc->src_qp = 0;
	wc->wc_flags = 0;
	wc->slid = 0;
	wc->pkey_index = 0;
	wc->vendor_err = why;
	wc->opcode = opcode;
	wc->status = status;
	wc->port_num = qp->attr.port_num;
	wc->recv = false;
	emu_cq_end(cq, wc, cq_pos, status != IB_WC_SUCCESS);
}

static void emu_flush_one_recv(struct emu_qp *qp, struct emu_rwqe *wqe, u32 pos)
{
	struct emu_cq *cq = to_ecq(qp->ibqp.recv_cq);
	struct emu_completion *wc;
	u64 wr_id = wqe->wr_id;
	u32 cq_pos;

	emu_ring_free(&qp->rq, &wqe->slot, pos);
	wc = emu_cq_begin(cq, &cq_pos);
	if (unlikely(!wc)) {
		emu_qp_lost(qp);
		return;
	}
	*wc = (struct emu_completion) {
		.wr_id = wr_id,
		.qp = qp,
		.wqe_pos = pos,
		.vendor_err = EMU_SYN_FLUSHED,
		.opcode = IB_WC_RECV,
		.status = IB_WC_WR_FLUSH_ERR,
		.port_num = qp->attr.port_num,
		.recv = true,
	};
	emu_cq_end(cq, wc, cq_pos, true);
}

/* Ends the oldest entry of either queue. Returns false if there is none. */
static bool emu_flush_one(struct emu_qp *qp)
{
	struct emu_swqe *wqe;
	struct emu_rwqe *rwqe;
	u32 pos;

	wqe = emu_ring_peek(&qp->sq, &pos);
	if (wqe) {
		emu_complete_send(qp, wqe, pos, IB_WC_WR_FLUSH_ERR, EMU_SYN_FLUSHED);
		return true;
	}
	/*
	 * An engine that acts as our responder may still complete a receive that
	 * comes before the ones to flush. The last one to leave rings.
	 */
	if (!emu_gate_is_drained(&qp->gate))
		return false;
	rwqe = emu_ring_claim(&qp->rq, &pos);
	if (!rwqe)
		return false;
	emu_flush_one_recv(qp, rwqe, pos);
	return true;
}

/* In the error state: everything that is queued completes in order. The owner. */
static enum emu_service emu_flush(struct emu_qp *qp, struct emu_budget *budget)
{
	while (!READ_ONCE(qp->freezing)) {
		if (budget->wqes <= 0) {
			emu_runner_queue(qp);
			return EMU_MOVED;
		}
		if (!emu_flush_one(qp))
			break;
		budget->wqes--;
	}
	return EMU_IDLE;
}

/* Is the entry within what is left? A runner takes a message of any length. */
static bool emu_budget_covers(const struct emu_budget *budget, const struct emu_swqe *wqe,
			      bool may_sleep)
{
	return budget->wqes > 0 && budget->bytes >= (may_sleep ? 1 : (s64)wqe->length);
}

/*
 * Makes the timer the owner. Returns EMU_IDLE if a freezer or an error came at
 * that moment and ownership is still ours.
 */
static enum emu_service emu_park(struct emu_qp *qp, u64 delay_ns)
{
	enum emu_service service = EMU_MOVED;

	rcu_read_lock();
	hrtimer_start(&qp->timer, ns_to_ktime(delay_ns), HRTIMER_MODE_REL);
	/*
	 * Full barrier, pairs with those in emu_qp_freeze() and emu_qp_fail():
	 * either they see the timer armed, or we see them. Of all that cancel the
	 * timer, the one who found it armed is the owner.
	 */
	smp_mb();
	if ((READ_ONCE(qp->freezing) || atomic_read(&qp->state) == IB_QPS_ERR) &&
	    hrtimer_try_to_cancel(&qp->timer) == 1)
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

static enum emu_service emu_wait_receive(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	struct emu_qp *qp = ex->qp;
	u64 delay_ns = emu_rnr_delay_ns(READ_ONCE(ex->peer->rnr_timer));

	emu_exec_end(ex);
	emu_count(qp->port, EMU_CNT_RNR, 1);
	if (qp->attr.rnr_retry != EMU_RNR_FOREVER && !qp->rnr_retries--) {
		emu_complete_send(qp, wqe, pos, IB_WC_RNR_RETRY_EXC_ERR, EMU_SYN_RNR);
		emu_qp_fail(qp);
		return EMU_IDLE;
	}
	return emu_park(qp, delay_ns);
}

static enum emu_service emu_wait_peer(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	struct emu_qp *qp = ex->qp;

	emu_exec_end(ex);
	emu_count(qp->port, EMU_CNT_TIMEOUT, 1);
	/* A timeout of 0 is none; look now and then whether the peer is there. */
	if (!qp->attr.timeout)
		return emu_park(qp, EMU_PROBE_NS);
	if (!qp->retries--) {
		emu_complete_send(qp, wqe, pos, IB_WC_RETRY_EXC_ERR, EMU_SYN_NO_RESPONSE);
		emu_qp_fail(qp);
		return EMU_IDLE;
	}
	return emu_park(qp, (u64)EMU_TIMEOUT_UNIT_NS << (qp->attr.timeout & 31));
}

static void emu_reset_retries(struct emu_qp *qp)
{
	qp->retries = qp->attr.retry_cnt;
	qp->rnr_retries = qp->attr.rnr_retry;
}

static enum emu_service emu_hand_over(struct emu_exec *ex)
{
	emu_exec_end(ex);
	emu_runner_queue(ex->qp);
	return EMU_MOVED;
}

/*
 * Executes one entry, and says what that means for the owner. A runner executes
 * short messages with preemption off: each wakes a consumer that would otherwise
 * preempt it, message by message.
 */
static enum emu_verdict emu_service_one(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					struct emu_budget *budget, bool *pinned)
{
	enum emu_verdict verdict;
	u32 length = wqe->length;
	bool pin = ex->may_sleep && length <= EMU_INLINE_BYTES;

	if (unlikely(pin != *pinned)) {
		if (pin)
			preempt_disable();
		else
			preempt_enable();
		*pinned = pin;
	}
	verdict = emu_exec_wqe(ex, wqe, pos);
	if (likely(verdict == EMU_DONE))
		emu_reset_retries(ex->qp);
	budget->wqes--;
	budget->bytes -= length;
	return verdict;
}

/* Executes entries in order until the queue, the budget or the state ends it. */
static enum emu_service emu_service_sends(struct emu_qp *qp, struct emu_budget *budget,
					  bool may_sleep)
{
	struct emu_exec ex = { .qp = qp, .may_sleep = may_sleep };
	enum emu_service service = EMU_IDLE;
	enum emu_verdict verdict = EMU_DONE;
	struct emu_swqe *wqe = NULL;
	bool pinned = false;
	u32 pos;

	while (verdict == EMU_DONE && !READ_ONCE(qp->freezing) &&
	       atomic_read(&qp->state) == IB_QPS_RTS) {
		wqe = emu_ring_peek(&qp->sq, &pos);
		if (!wqe)
			break;
		if (likely(emu_budget_covers(budget, wqe, may_sleep)))
			verdict = emu_service_one(&ex, wqe, pos, budget, &pinned);
		else
			verdict = EMU_AGAIN;
	}
	if (pinned)
		preempt_enable();

	switch (verdict) {
	case EMU_DONE:
	case EMU_FAILED:
		emu_exec_end(&ex);
		break;
	case EMU_RNR:
		service = emu_wait_receive(&ex, wqe, pos);
		break;
	case EMU_NO_RESPONSE:
		service = emu_wait_peer(&ex, wqe, pos);
		break;
	case EMU_AGAIN:
		service = emu_hand_over(&ex);
		break;
	}
	return service;
}

static enum emu_service emu_service(struct emu_qp *qp, struct emu_budget *budget, bool may_sleep)
{
	enum emu_service service;

	service = emu_service_sends(qp, budget, may_sleep);
	if (service == EMU_IDLE && unlikely(atomic_read(&qp->state) == IB_QPS_ERR))
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
static void emu_qp_own(struct emu_qp *qp, struct emu_budget *budget, bool may_sleep)
{
	bool released;

	do {
		/* Full barrier: news before this is seen by the look that follows. */
		atomic_xchg(&qp->doorbell, EMU_DB_OWNED);
		if (emu_service(qp, budget, may_sleep) == EMU_MOVED)
			return;
		rcu_read_lock();
		released = emu_qp_release(qp);
		rcu_read_unlock();
	} while (!released);
}

static void emu_qp_own_inline(struct emu_qp *qp)
{
	struct emu_budget budget = {
		.wqes = EMU_INLINE_WQES,
		.bytes = EMU_INLINE_BYTES,
	};

	if (unlikely(in_hardirq())) {
		budget.wqes = EMU_HARDIRQ_WQES;
		budget.bytes = EMU_HARDIRQ_BYTES;
	}
	emu_qp_own(qp, &budget, false);
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
 * For engines: execution does not nest.
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
	if (hrtimer_try_to_cancel(&qp->timer) == 1)
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
			struct emu_budget budget = {
				.wqes = EMU_RUNNER_WQES,
				.bytes = EMU_RUNNER_BYTES,
			};

			emu_qp_own(qp, &budget, true);
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
		kthread_bind(task, cpu);
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
