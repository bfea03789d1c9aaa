// SPDX-License-Identifier: GPL-2.0-only
/*
 * Work requests. Each has a slot, which counts its posts minus its completions. A send
 * or receive that succeeds is posted again, until the session ends. After the first
 * messages, receives are posted again only at intervals, and sends wait for them. So
 * there are always sends in flight, and the processors are not kept busy.
 *
 * Lock protocol: hp_queue.lock is held around each post and to set stopping; nothing is
 * posted after that, as a drain requires. It is the innermost lock, and is taken in
 * every polling context, so softirqs are off under it. poll_lock orders the end of the
 * polling with handlers of this module that request polling.
 *
 * Until stopping is set, left is one more than the number of outstanding requests, so
 * idle is completed once, and not before. A handler that has dropped its share of left
 * no longer touches the slot or the queue. Receives of an SRQ have no share, because
 * nothing flushes those that no message consumes. Each completes before the message that
 * consumes it, in the same CQ, so it has been handled by the time that message's
 * completion has.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>

#include "hotplug.h"

#define HP_BATCH	16	/* completions polled at a time */

/* A fault is injected once. */
bool hp_fault_once(enum hp_fault fault)
{
	static atomic_t done;

	return unlikely(hp_fault == fault) && !atomic_xchg(&done, 1);
}

static bool hp_is_traffic(const struct hp_slot *slot)
{
	return slot->qp->queue->kind != HP_STATES;
}

static struct ib_sge hp_sge(const struct hp_slot *slot)
{
	const struct hp_queue *queue = slot->qp->queue;
	const struct hp_session *s = queue->session;
	bool bad = slot->bad;

	if (!slot->recv && hp_is_traffic(slot) && hp_fault_once(HP_ERROR))
		bad = true;

	return (struct ib_sge) {
		.addr = s->dma + hp_area_offset(queue, slot->area),
		.length = !slot->recv && slot->op == HP_ADD ? sizeof(u64) : HP_MSG,
		.lkey = bad ? ~s->pd->local_dma_lkey : s->pd->local_dma_lkey,
	};
}

static int hp_post_recv(struct hp_slot *slot)
{
	struct ib_sge sge = hp_sge(slot);
	struct ib_recv_wr wr = {
		.wr_cqe = &slot->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	if (slot->shared)
		return ib_post_srq_recv(slot->qp->queue->srq, &wr, NULL);
	return ib_post_recv(slot->qp->qp, &wr, NULL);
}

static const enum ib_wr_opcode hp_opcodes[] = {
	[HP_SEND] = IB_WR_SEND,
	[HP_WRITE] = IB_WR_RDMA_WRITE_WITH_IMM,
	[HP_READ] = IB_WR_RDMA_READ,
	[HP_ADD] = IB_WR_ATOMIC_FETCH_AND_ADD,
	[HP_REG] = IB_WR_REG_MR,
};

static struct ib_send_wr hp_send_wr(struct hp_slot *slot, struct ib_sge *sge)
{
	return (struct ib_send_wr) {
		.wr_cqe = &slot->cqe,
		.sg_list = sge,
		.num_sge = sge ? 1 : 0,
		.opcode = hp_opcodes[slot->op],
		.send_flags = IB_SEND_SIGNALED,
	};
}

static int hp_post_reg(struct hp_slot *slot)
{
	struct ib_mr *mr = slot->qp->queue->mr;
	struct ib_reg_wr reg = {
		.wr = hp_send_wr(slot, NULL),
		.mr = mr,
		.key = mr->rkey,
		.access = HP_ACCESS,
	};

	return ib_post_send(slot->qp->qp, &reg.wr, NULL);
}

static int hp_post_add(struct hp_slot *slot)
{
	const struct ib_mr *mr = slot->qp->queue->mr;
	struct ib_sge sge = hp_sge(slot);
	struct ib_atomic_wr add = {
		.wr = hp_send_wr(slot, &sge),
		.remote_addr = mr->iova,
		.compare_add = 1,
		.rkey = mr->rkey,
	};

	return ib_post_send(slot->qp->qp, &add.wr, NULL);
}

static int hp_post_rdma(struct hp_slot *slot)
{
	const struct ib_mr *mr = slot->qp->queue->mr;
	struct ib_sge sge = hp_sge(slot);
	struct ib_rdma_wr rdma = {
		.wr = hp_send_wr(slot, &sge),
		.remote_addr = mr->iova,
		.rkey = mr->rkey,
	};

	return ib_post_send(slot->qp->qp, &rdma.wr, NULL);
}

static int hp_post_send(struct hp_slot *slot)
{
	struct ib_sge sge = hp_sge(slot);
	struct ib_send_wr wr = hp_send_wr(slot, &sge);

	return ib_post_send(slot->qp->qp, &wr, NULL);
}

static int hp_post_one(struct hp_slot *slot)
{
	if (slot->recv)
		return hp_post_recv(slot);
	switch (slot->op) {
	case HP_REG:
		return hp_post_reg(slot);
	case HP_ADD:
		return hp_post_add(slot);
	case HP_READ:
	case HP_WRITE:
		return hp_post_rdma(slot);
	default:
		return hp_post_send(slot);
	}
}

static void hp_get_left(const struct hp_slot *slot)
{
	if (!slot->shared)
		atomic_inc(&slot->qp->queue->left);
}

/* Nothing waits for receives that an SRQ may keep. */
static void hp_put_left(struct hp_slot *slot)
{
	struct hp_queue *queue = slot->qp->queue;

	if (!slot->shared && atomic_dec_and_test(&queue->left))
		complete(&queue->idle);
}

/* Returns 0, even if stopping prevents the post, or the errno of the post. */
static int hp_post(struct hp_slot *slot)
{
	struct hp_queue *queue = slot->qp->queue;
	int ret = 0;

	spin_lock_bh(&queue->lock);
	if (queue->stopping)
		goto unlock;
	hp_get_left(slot);
	atomic_inc(&slot->out);
	ret = hp_post_one(slot);
	if (ret) {
		atomic_dec(&slot->out);
		hp_put_left(slot);
		goto unlock;
	}
	atomic_inc(&hp_stats.posted);
unlock:
	spin_unlock_bh(&queue->lock);
	return ret;
}

/**
 * hp_post_all - post every request of a queue pair
 * @q: the queue pair
 *
 * Return: 0 or the errno of a post.
 */
int hp_post_all(struct hp_qp *q)
{
	int ret = 0;
	u32 i;

	if (hp_fault == HP_IDLE)
		return 0;
	for (i = 0; !ret && i < q->nr; i++)
		ret = hp_post(&q->slots[i]);
	return ret;
}

static void hp_account(struct hp_slot *slot, enum ib_wc_status status)
{
	if (READ_ONCE(slot->qp->queue->closed))
		atomic_inc(&hp_stats.late);
	if (atomic_dec_return(&slot->out) < 0)
		atomic_inc(&hp_stats.doubled);

	if (hp_links && status == IB_WC_RETRY_EXC_ERR) {
		atomic_inc(&hp_stats.retries);
		return;
	}
	if (slot->held && status != IB_WC_WR_FLUSH_ERR)
		atomic_inc(&hp_stats.wrong);
	if (status == IB_WC_SUCCESS)
		atomic_inc(&hp_stats.completed);
	else if (status == IB_WC_WR_FLUSH_ERR)
		atomic_inc(&hp_stats.flushed);
	else if (slot->bad && status == IB_WC_LOC_PROT_ERR)
		atomic_inc(&hp_stats.bad);
	else
		atomic_inc(&hp_stats.errors);
}

static void hp_post_again(struct hp_slot *slot)
{
	int ret = hp_post(slot);

	if (ret) {
		pr_err("cannot post a work request (%d)\n", ret);
		atomic_inc(&hp_stats.errors);
	}
}

static void hp_succeeded(struct hp_slot *slot)
{
	struct hp_queue *queue = slot->qp->queue;

	if (slot->shared) {
		atomic_inc(&hp_stats.shared);
		atomic_dec(&queue->owed);
	}
	if (slot->recv && atomic_dec_if_positive(&queue->budget) < 0) {
		/* Pairs with hp_queue_pace(): the slot is done with. */
		smp_store_release(&slot->rests, true);
		return;
	}
	if (!slot->recv) {
		/* The region stays valid: register it only once. */
		if (slot->op == HP_REG)
			return;
		if (slot->op == HP_SEND || slot->op == HP_WRITE)
			atomic_inc(&queue->owed);
		atomic_inc(&hp_stats.done[slot->op]);
		atomic_inc(&hp_stats.moved[queue->kind]);
		if (atomic_dec_and_test(&queue->warm))
			complete_all(&queue->moves);
	}
	hp_post_again(slot);
}

/* Marks the end of traffic. */
static void hp_failed(struct hp_queue *queue)
{
	WRITE_ONCE(queue->failed, true);
	atomic_set(&queue->budget, 0);
	complete_all(&queue->moves);
}

static void hp_queue_pace(struct hp_queue *queue)
{
	struct hp_qp *to = &queue->qps[1];
	u32 i;

	for (i = 0; i < to->nr; i++) {
		/* Pairs with hp_succeeded(). */
		if (!smp_load_acquire(&to->slots[i].rests))
			continue;
		WRITE_ONCE(to->slots[i].rests, false);
		hp_post_again(&to->slots[i]);
	}
	if (queue->kind == HP_DIRECT)
		hp_queue_poll_again(queue);
}

/* Runs at intervals, for each session that is set up. */
void hp_pace_work(struct work_struct *work)
{
	struct hp_session *s = container_of(to_delayed_work(work), struct hp_session, pace);
	enum hp_kind kind;

	for (kind = 0; kind < HP_STATES; kind++)
		hp_queue_pace(&s->queues[kind]);
	queue_delayed_work(hp_wq, &s->pace, msecs_to_jiffies(HP_PACE_MS));
}

/**
 * hp_slot_done - handle the completion of a request
 * @cq: its CQ
 * @wc: the completion
 *
 * Context: the polling context of the queue.
 */
void hp_slot_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hp_slot *slot = container_of(wc->wr_cqe, struct hp_slot, cqe);
	struct hp_queue *queue = slot->qp->queue;

	if (hp_fault_once(HP_LOSE)) {
		hp_put_left(slot);
		return;
	}
	hp_account(slot, wc->status);
	if (hp_fault_once(HP_DOUBLE))
		hp_account(slot, wc->status);
	if (wc->status == IB_WC_SUCCESS)
		hp_succeeded(slot);
	else
		hp_failed(queue);
	hp_put_left(slot);
}

/* Queues the work item that polls, unless polling has been stopped. */
void hp_queue_poll_again(struct hp_queue *queue)
{
	unsigned long flags;

	spin_lock_irqsave(&queue->poll_lock, flags);
	if (!queue->unwatched)
		queue_work(hp_wq, &queue->work);
	spin_unlock_irqrestore(&queue->poll_lock, flags);
}

/* Runs in any context, for the CQ that this module polls: leaves that to a work item. */
void hp_plain_handler(struct ib_cq *cq, void *context)
{
	hp_queue_poll_again(context);
}

/* Returns true if there may be more. */
static bool hp_plain_poll(struct hp_queue *queue)
{
	struct ib_wc wc[HP_BATCH];
	int i, n;

	n = ib_poll_cq(queue->cq, HP_BATCH, wc);
	for (i = 0; i < n; i++)
		wc[i].wr_cqe->done(queue->cq, &wc[i]);
	return n == HP_BATCH || ib_req_notify_cq(queue->cq, IB_CQ_NEXT_COMP |
						 IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

/* Nothing notifies of completions: keep polling while messages follow back to back. */
static bool hp_direct_poll(struct hp_queue *queue)
{
	ib_process_cq_direct(queue->cq, HP_BATCH);
	return atomic_read(&queue->budget) > 0;
}

/* The work item that polls a queue. */
void hp_poll_work(struct work_struct *work)
{
	struct hp_queue *queue = container_of(work, struct hp_queue, work);
	bool again;

	if (queue->kind == HP_PLAIN)
		again = hp_plain_poll(queue);
	else
		again = hp_direct_poll(queue);
	if (again)
		hp_queue_poll_again(queue);
}
