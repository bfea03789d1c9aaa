// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions for a process.
 *
 * The CQ of a process works as any other, but is polled by the kernel: whoever has completed an
 * entry copies all completions that can be polled into the ring that the process reads. So a send
 * queue has room again before the process sees the completion, and the data path knows nothing of
 * processes, except that such a CQ is always armed. Nobody else polls it, so a completion is
 * copied straight out of the CQ's own ring: see emu_cq_front().
 *
 * Only the owner of @pump copies. @pump works like the word of a doorbell (doorbell.h): whoever
 * finds it owned writes RERUN and goes on, and the owner then looks again. Nobody waits, so engines
 * may do this in an interrupt. An owner copies at most EMU_PUMP_BUDGET completions, or
 * EMU_PUMP_HARDIRQ in hard interrupt. If there are more, or if it is made to look again and again,
 * it passes the ownership to @work.
 *
 * Only the owner touches @ring, @head, and those positions in the rings of queue pairs by which the
 * process learns that there is room again; but whoever resets a queue pair, or drops its sends, when
 * none of its completions are left. A queue pair that it finds in a completion stays in
 * memory while preemption is off.
 *
 * Only whoever writes a completion knows whether it is solicited, but somebody else may be the one
 * who copies it. So @solicited says that a solicited completion is among those to be copied. The
 * owner clears it, and sets it again if an entry is still being written, which may be the
 * solicited one. So the process may be notified once too early, but then it is notified again. The
 * entry may also be copied before @solicited is set for it; then the next owner finds @solicited
 * set and nothing to copy, and notifies. Pair:
 *
 *   A  emu_user_cq_wake(): full barrier between the producer's position and the look at the
 *	CQ's arm word -
 *	emu_req_notify_cq(): full barrier between that and the process's next poll
 *	either the owner sees the queue armed, or the process finds the completion
 */
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <kverbs/delay.h>
#include <rdma/uverbs_ioctl.h>

#include "ring.h"
#include "user.h"

/* As EMU_PUMP_BUDGET, in hard interrupt. */
#define EMU_PUMP_HARDIRQ	32

/* IBV_WC_WITH_INV, as libibverbs has it: the kernel's bit for an invalidated key is another one. */
#define EMU_UWC_WITH_INV	BIT(3)

enum emu_pump {
	EMU_PUMP_IDLE,
	EMU_PUMP_OWNED,
	EMU_PUMP_RERUN,
};

/**
 * struct emu_user_cq - the process's side of a CQ
 * @cq: the CQ
 * @ring: what the process reads
 * @head: position of the next entry to write
 * @pump: enum emu_pump
 * @solicited: a solicited completion is among those that come next
 * @work: the owner, when there is much to copy
 * @resizing: serialises changes of size
 * @lost: the ring was full, so nothing more is written into it; the owner's
 */
struct emu_user_cq {
	struct emu_cq *cq;
	struct emu_uring *ring;
	u32 head;
	atomic_t pump;
	atomic_t solicited;
	struct work_struct work;
	struct mutex resizing;
	bool lost;
};

static u32 emu_user_wc_flags(u32 flags)
{
	return (flags & (IB_WC_GRH | IB_WC_WITH_IMM)) |
	       (flags & IB_WC_WITH_INVALIDATE ? EMU_UWC_WITH_INV : 0);
}

/* Handles a full ring: the process has not polled, or has written a wrong position. */
static noinline void emu_user_cq_overrun(struct emu_user_cq *ucq, struct emu_qp *qp)
{
	ucq->lost = true;
	emu_cq_overrun(ucq->cq);
	emu_qp_lost(qp);
	kverbs_delay("emu_user_cq_lost");
}

/* Writes an entry for the process, every byte of it, so that no kernel memory leaks. */
static void emu_user_cq_write(struct emu_user_cq *ucq, const struct emu_cqe *cqe,
			      struct emu_qp *qp)
{
	struct emu_uring *ring = ucq->ring;
	struct ib_uverbs_wc *to = emu_uring_entry(ring, ucq->head);
	bool sender = cqe->wc_flags & IB_WC_WITH_SMAC;

	if (unlikely(ucq->lost || ((ucq->head + 1) & ring->mask) == emu_uring_consumer(ring))) {
		emu_user_cq_overrun(ucq, qp);
		return;
	}
	to->wr_id = cqe->wr_id;
	to->status = cqe->status;
	to->opcode = cqe->opcode;
	/* In these two fields the CQ may keep the sender's address, which processes do not get. */
	to->vendor_err = sender ? 0 : cqe->vendor_err;
	to->slid = sender ? 0 : cqe->slid;
	to->byte_len = cqe->byte_len;
	to->ex.imm_data = cqe->ex.imm_data;
	to->qp_num = qp->ibqp.qp_num;
	to->src_qp = cqe->src_qp;
	to->wc_flags = emu_user_wc_flags(cqe->wc_flags);
	to->pkey_index = cqe->pkey_index;
	to->sl = cqe->sl;
	to->dlid_path_bits = cqe->dlid_path_bits;
	to->port_num = cqe->port_num;
	to->reserved = 0;
	ucq->head++;
}

static void emu_user_cq_wake(struct emu_user_cq *ucq, bool solicited)
{
	int arm;

	/* full barrier: pair A */
	smp_mb();
	arm = atomic_read(&ucq->cq->arm);
	if (!(arm & EMU_ARM_NEXT) && !((arm & EMU_ARM_SOLICITED) && solicited))
		return;
	arm = atomic_fetch_andnot(EMU_ARM_NEXT | EMU_ARM_SOLICITED, &ucq->cq->arm);
	if ((arm & (EMU_ARM_NEXT | EMU_ARM_SOLICITED)) && !emu_cq_fault_notify(ucq->cq))
		ib_cq_notify(&ucq->cq->ibcq);
}

/*
 * Copies all completions that can be polled. Returns false if that has used up the budget. A call
 * costs at least 1, even if there is nothing to copy, because a process can cause any number of
 * such calls.
 */
static bool emu_user_cq_copy(struct emu_user_cq *ucq, int *budget)
{
	bool solicited = atomic_xchg(&ucq->solicited, 0), again;
	struct emu_cq *cq = ucq->cq;
	struct emu_cq_place at;
	int copied = 0;
	bool recv;

	for (; copied < *budget && emu_cq_front(cq, &at); copied++) {
		emu_user_cq_write(ucq, at.cqe, at.qp);
		recv = at.cqe->opcode & IB_WC_RECV;
		emu_cq_pop(&at);
		/* Lets the process post as many entries again. */
		if (recv)
			emu_user_retired_recvs(at.qp);
		else
			emu_user_retired_sends(at.qp);
		emu_uring_produce(ucq->ring, ucq->head);
	}
	*budget -= max(copied, 1);
	again = solicited && emu_peek_cq(&cq->ibcq, 1);
	if (again)
		atomic_set(&ucq->solicited, 1);
	if (copied || (solicited && !again))
		emu_user_cq_wake(ucq, solicited);
	return *budget > 0;
}

/*
 * Called by the owner, with preemption off. Returns true when it has given up ownership, with
 * nothing left to copy; false if the budget is used up.
 */
static bool emu_user_cq_pump(struct emu_user_cq *ucq)
{
	int budget = in_hardirq() ? EMU_PUMP_HARDIRQ : EMU_PUMP_BUDGET;

	do {
		/* Full barrier: the copying sees each entry whose writer has set RERUN by now. */
		atomic_xchg(&ucq->pump, EMU_PUMP_OWNED);
		if (!emu_user_cq_copy(ucq, &budget))
			return false;
		kverbs_delay("emu_user_cq_copied");
		/* Full barrier: either this sees RERUN, or whoever comes next becomes the owner. */
	} while (atomic_cmpxchg(&ucq->pump, EMU_PUMP_OWNED, EMU_PUMP_IDLE) != EMU_PUMP_OWNED);
	return true;
}

/* As emu_user_cq_pump(), but passes the ownership to @work if the budget is used up. */
static void emu_user_cq_pump_or_queue(struct emu_user_cq *ucq)
{
	if (!emu_user_cq_pump(ucq))
		queue_work(system_unbound_wq, &ucq->work);
}

static void emu_user_cq_work(struct work_struct *work)
{
	struct emu_user_cq *ucq = container_of(work, struct emu_user_cq, work);

	kverbs_delay("emu_user_cq_work");
	/* Queues itself rather than goes on, so that others can wait for what it does now. */
	preempt_disable();
	emu_user_cq_pump_or_queue(ucq);
	preempt_enable();
}

void emu_user_completed(struct emu_cq *cq, bool solicited)
{
	struct emu_user_cq *ucq = cq->user;

	preempt_disable();
	kverbs_delay("emu_user_completed");
	if (solicited)
		atomic_set(&ucq->solicited, 1);
	/* Full barrier, pairs with those in emu_user_cq_pump(): the owner sees the completion. */
	if (atomic_xchg(&ucq->pump, EMU_PUMP_RERUN) == EMU_PUMP_IDLE)
		emu_user_cq_pump_or_queue(ucq);
	preempt_enable();
}

/*
 * For loops that wait for the owner. That may be a thread which is changing the size, and which
 * this one might keep from running if it only yielded to its equals.
 */
static void emu_user_wait_for_owner(struct emu_user_cq *ucq)
{
	if (!flush_work(&ucq->work))
		schedule_timeout_uninterruptible(1);
}

static bool emu_ring_is_behind(const struct emu_cq_ring *ring, u32 head)
{
	return (s32)(head - (u32)atomic_read(&ring->tail)) > 0;
}

/*
 * See @settle of struct emu_user_ops. Until a position rather than until nobody copies: other queue
 * pairs may complete without end.
 */
void emu_user_settle_cq(struct emu_cq *cq)
{
	struct emu_cq_ring *ring;
	u32 head;

	lockdep_assert_held(&cq->resize_lock);
	/* acquire: whoever sees a new ring sees it set up, as in queue/cq.c */
	for (ring = smp_load_acquire(&cq->out); ring; ring = smp_load_acquire(&ring->next)) {
		head = atomic_read(&ring->head);
		while (emu_ring_is_behind(ring, head)) {
			emu_user_completed(cq, false);
			emu_user_wait_for_owner(cq->user);
		}
	}
}

/* Returns the size of the kernel's CQ: at least that of the ring, so the ring fills up first. */
u32 emu_user_cqe(u32 cqe)
{
	return min_t(u32, roundup_pow_of_two(cqe + 1), EMU_MAX_CQE);
}

int emu_user_make_cq(struct emu_cq *cq, u32 cqe, struct ib_udata *udata)
{
	struct emu_user_cq *ucq;

	if (!cqe || cqe > EMU_MAX_CQE)
		return -EINVAL;
	ucq = kzalloc(sizeof(*ucq), GFP_KERNEL_ACCOUNT);
	if (!ucq)
		return -ENOMEM;
	ucq->cq = cq;
	atomic_set(&ucq->pump, EMU_PUMP_IDLE);
	INIT_WORK(&ucq->work, emu_user_cq_work);
	mutex_init(&ucq->resizing);
	ucq->ring = emu_uring_create(emu_user_context(udata), cqe, sizeof(struct ib_uverbs_wc));
	if (IS_ERR(ucq->ring)) {
		int err = PTR_ERR(ucq->ring);

		kfree(ucq);
		return err;
	}
	cq->user = ucq;
	return 0;
}

int emu_user_publish_cq(struct emu_cq *cq, struct ib_udata *udata)
{
	struct rxe_create_cq_resp resp = { .mi = emu_uring_info(cq->user->ring) };

	cq->ibcq.cqe = cq->user->ring->mask;
	return emu_user_respond(udata, &resp, sizeof(resp));
}

/* Waits until nobody copies any more. Nothing can complete any more. Process context. */
void emu_user_quiesce_cq(struct emu_cq *cq)
{
	struct emu_user_cq *ucq = cq->user;

	if (!ucq)
		return;
	while (atomic_read_acquire(&ucq->pump) != EMU_PUMP_IDLE)
		emu_user_wait_for_owner(ucq);
	flush_work(&ucq->work);
}

void emu_user_free_cq(struct emu_cq *cq)
{
	if (!cq->user)
		return;
	emu_uring_destroy(cq->user->ring);
	mutex_destroy(&cq->user->resizing);
	kfree(cq->user);
}

/*
 * Moves the entries that the process has not polled to a new ring. The caller is the owner of
 * @pump. Returns 0, or -EINVAL if there are more than the @cqe entries that were asked for.
 */
static int emu_user_cq_move_entries(struct emu_user_cq *ucq, struct emu_uring *ring, u32 cqe)
{
	struct emu_uring *old = ucq->ring;
	u32 from = emu_uring_consumer(old);
	u32 count = (ucq->head - from) & old->mask;
	u32 i;

	if (count > cqe)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		emu_uring_copy(emu_uring_entry(ring, i), emu_uring_entry(old, from + i),
			       sizeof(struct ib_uverbs_wc));
		cond_resched();
	}
	emu_uring_produce(ring, count);
	ucq->head = count;
	ucq->ring = ring;
	return 0;
}

/*
 * Becomes the owner, and changes the ring. What completes meanwhile is copied into the new ring
 * at the end. This owner may be preempted, which delays completions of this process only.
 */
static int emu_user_cq_replace_ring(struct emu_user_cq *ucq, struct emu_uring *ring, u32 cqe)
{
	int err;

	while (atomic_cmpxchg(&ucq->pump, EMU_PUMP_IDLE, EMU_PUMP_OWNED) != EMU_PUMP_IDLE)
		emu_user_wait_for_owner(ucq);
	err = emu_user_cq_move_entries(ucq, ring, cqe);
	preempt_disable();
	emu_user_cq_pump_or_queue(ucq);
	preempt_enable();
	return err;
}

static int emu_user_cq_resize(struct emu_user_cq *ucq, struct emu_uring *ring, u32 cqe,
			      struct ib_udata *udata)
{
	struct rxe_resize_cq_resp resp = { .mi = emu_uring_info(ring) };
	struct ib_cq *ibcq = &ucq->cq->ibcq;
	int old = ibcq->cqe, err = 0;

	/* The kernel's CQ grows with the ring, but need not shrink. */
	if (ring->mask > old)
		err = emu_resize_cq(ibcq, emu_user_cqe(cqe), NULL);
	if (!err)
		err = emu_user_respond(udata, &resp, sizeof(resp));
	if (!err)
		err = emu_user_cq_replace_ring(ucq, ring, cqe);
	ibcq->cqe = err ? old : ring->mask;
	return err;
}

int emu_user_resize_cq(struct emu_cq *cq, int cqe, struct ib_udata *udata)
{
	struct emu_user_cq *ucq = cq->user;
	struct emu_uring *ring, *old;
	int err;

	if (cqe < 1 || cqe > EMU_MAX_CQE)
		return -EINVAL;
	ring = emu_uring_create(emu_user_context(udata), cqe, sizeof(struct ib_uverbs_wc));
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	mutex_lock(&ucq->resizing);
	old = ucq->ring;
	err = emu_user_cq_resize(ucq, ring, cqe, udata);
	mutex_unlock(&ucq->resizing);
	emu_uring_destroy(err ? ring : old);
	return err;
}
