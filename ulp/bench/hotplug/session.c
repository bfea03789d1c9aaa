// SPDX-License-Identifier: GPL-2.0-only
/*
 * A session: everything that the client has on a device, from add() to remove().
 *
 * A session ends as follows, no matter what is in flight:
 *  1. queue pairs are moved to ERR with traffic on, in every other session;
 *  2. stopping is set, under the lock, and nothing is posted afterwards. Until then
 *     there is traffic, and each queue has outstanding requests, which are counted;
 *  3. this module's own polling ends and the queues are drained: each request has
 *     completed, except receives of an SRQ that no message has consumed;
 *  4. the accounts are closed and checked: anything else that is outstanding now is
 *     lost;
 *  5. queue pairs, SRQs and regions are destroyed, the CQs are emptied and destroyed: a
 *     completion that arrives now is late;
 *  6. no handler runs any more, so the slots and the memory can be freed.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ipv6.h>
#include <linux/jhash.h>
#include <linux/printk.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_cache.h>

#include "hotplug.h"

#define HP_HOP_LIMIT	64
#define HP_CQE		128
#define HP_MEMORY	(HP_KINDS * HP_AREAS * HP_MSG)

/* Polling contexts for the CQ of the queue pairs in every state. */
static const enum ib_poll_context hp_contexts[] = {
	IB_POLL_SOFTIRQ, IB_POLL_THREAD, IB_POLL_WORKQUEUE, IB_POLL_UNBOUND_WORKQUEUE,
};

static const enum ib_poll_context hp_kinds[] = {
	[HP_DIRECT] = IB_POLL_DIRECT,
	[HP_SOFTIRQ] = IB_POLL_SOFTIRQ,
	[HP_THREAD] = IB_POLL_THREAD,
	[HP_WORKQUEUE] = IB_POLL_WORKQUEUE,
	[HP_UNBOUND] = IB_POLL_UNBOUND_WORKQUEUE,
};

/**
 * hp_choose - pick one of several behaviours for a session
 * @s: the session
 * @choice: the aspect to choose
 * @n: number of alternatives
 *
 * Return: a pseudo-random value below @n that depends only on the session's number and
 * @choice.
 */
u32 hp_choose(const struct hp_session *s, enum hp_choice choice, u32 n)
{
	return jhash_2words(s->nr, choice, 0) % n;
}

/* For an Ethernet port: takes its first GID. */
static int hp_gid_address(struct hp_session *s)
{
	const struct ib_gid_attr *gid;
	int i, ret;

	for (i = 0; i < s->port.gid_tbl_len; i++) {
		gid = rdma_get_gid_attr(s->dev, HP_PORT, i);
		if (IS_ERR(gid))
			continue;
		rdma_ah_set_grh(&s->ah, (union ib_gid *)&gid->gid, 0, gid->index,
				HP_HOP_LIMIT, 0);
		ret = rdma_read_gid_l2_fields(gid, NULL, s->ah.roce.dmac);
		rdma_put_gid_attr(gid);
		return ret;
	}
	return -EADDRNOTAVAIL;
}

static int hp_address(struct hp_session *s)
{
	int ret;

	ret = ib_query_port(s->dev, HP_PORT, &s->port);
	if (ret)
		return ret;
	s->ah.type = rdma_ah_find_type(s->dev, HP_PORT);
	rdma_ah_set_port_num(&s->ah, HP_PORT);
	if (s->ah.type == RDMA_AH_ATTR_TYPE_ROCE)
		return hp_gid_address(s);
	rdma_ah_set_dlid(&s->ah, s->port.lid);
	return 0;
}

/**
 * hp_area_offset - find an area in the session's memory
 * @queue: the queue that owns it
 * @area: its number, below %HP_AREAS
 *
 * Return: offset in bytes from the beginning of the session's memory.
 */
u32 hp_area_offset(const struct hp_queue *queue, u32 area)
{
	return (queue->kind * HP_AREAS + area) * HP_MSG;
}

static int hp_memory(struct hp_session *s)
{
	s->mem = kzalloc(HP_MEMORY, GFP_KERNEL);
	if (!s->mem)
		return -ENOMEM;
	s->dma = ib_dma_map_single(s->dev, s->mem, HP_MEMORY, DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(s->dev, s->dma))
		return 0;
	kfree(s->mem);
	s->mem = NULL;
	return -ENOMEM;
}

static struct ib_cq *hp_cq_create(struct hp_queue *queue)
{
	struct hp_session *s = queue->session;
	u32 vectors = s->dev->num_comp_vectors;
	struct ib_cq_init_attr attr = {
		.cqe = HP_CQE,
		.comp_vector = (hp_choose(s, HP_VECTOR, vectors) + queue->kind) % vectors,
	};
	enum ib_poll_context ctx;

	if (queue->kind == HP_PLAIN)
		return ib_create_cq(s->dev, hp_plain_handler, NULL, queue, &attr);
	if (queue->kind == HP_STATES)
		ctx = hp_contexts[hp_choose(s, HP_CONTEXT, ARRAY_SIZE(hp_contexts))];
	else
		ctx = hp_kinds[queue->kind];
	return ib_alloc_cq(s->dev, queue, HP_CQE, attr.comp_vector, ctx);
}

static int hp_queue_create(struct hp_queue *queue)
{
	struct ib_cq *cq;
	u32 nr_qps = queue->kind == HP_STATES ? HP_QP_STATES : 2;

	queue->qps = kcalloc(nr_qps, sizeof(*queue->qps), GFP_KERNEL);
	if (!queue->qps)
		return -ENOMEM;
	queue->nr_qps = nr_qps;
	cq = hp_cq_create(queue);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	queue->cq = cq;
	return queue->kind == HP_PLAIN ? ib_req_notify_cq(cq, IB_CQ_NEXT_COMP) : 0;
}

static int hp_srq_create(struct hp_queue *queue)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = HP_RECVS, .max_sge = 1 } };
	struct ib_srq *srq;

	if (!hp_choose(queue->session, HP_SHARED, 2))
		return 0;
	srq = ib_create_srq(queue->session->pd, &init);
	if (IS_ERR(srq))
		return PTR_ERR(srq);
	queue->srq = srq;
	return 0;
}

/* Creates a region of the queue's last area; an HP_REG request will make it valid. */
static int hp_mr_create(struct hp_queue *queue)
{
	struct hp_session *s = queue->session;
	u32 offset = hp_area_offset(queue, HP_AREAS - 1);
	struct scatterlist sg;
	struct ib_mr *mr;
	int n;

	mr = ib_alloc_mr(s->pd, IB_MR_TYPE_MEM_REG, 1);
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	queue->mr = mr;
	sg_init_one(&sg, s->mem + offset, HP_MSG);
	sg_dma_address(&sg) = s->dma + offset;
	sg_dma_len(&sg) = HP_MSG;
	n = ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE);
	return n == 1 ? 0 : n < 0 ? n : -EINVAL;
}

/*
 * The registration comes first, then one request of each kind; the device executes them
 * in order. Their areas follow those of the receives.
 */
static void hp_choose_ops(struct hp_qp *from)
{
	u32 i;

	for (i = 0; i < from->nr; i++) {
		from->slots[i].op = i ? i - 1 : HP_REG;
		from->slots[i].area = HP_RECVS + i;
	}
}

/* The first queue pair sends, the second receives. */
static int hp_traffic_setup(struct hp_queue *queue)
{
	struct hp_qp *from = &queue->qps[0], *to = &queue->qps[1];
	int ret;

	ret = hp_mr_create(queue);
	if (!ret)
		ret = hp_qp_create(queue, from, IB_QPT_RC, 1 + HP_WINDOW, 0);
	if (!ret)
		hp_choose_ops(from);
	if (!ret)
		ret = hp_srq_create(queue);
	if (!ret)
		ret = hp_qp_create(queue, to, IB_QPT_RC, 0, HP_RECVS);
	if (!ret)
		ret = hp_qp_bring(to, IB_QPS_RTS, from->qp->qp_num);
	if (!ret)
		ret = hp_qp_bring(from, IB_QPS_RTS, to->qp->qp_num);
	if (!ret)
		ret = hp_post_all(to);
	if (!ret)
		ret = hp_post_all(from);
	if (!ret && queue->kind == HP_DIRECT)
		hp_queue_poll_again(queue);
	return ret;
}

static void hp_queue_init(struct hp_session *s, enum hp_kind kind)
{
	struct hp_queue *queue = &s->queues[kind];

	queue->session = s;
	queue->kind = kind;
	spin_lock_init(&queue->lock);
	spin_lock_init(&queue->poll_lock);
	atomic_set(&queue->budget, hp_messages);
	atomic_set(&queue->warm, HP_WARM);
	atomic_set(&queue->left, 1);
	init_completion(&queue->moves);
	init_completion(&queue->idle);
	INIT_WORK(&queue->work, hp_poll_work);
}

/* In half of the sessions, add() returns only once traffic moves. */
static int hp_wait_moves(struct hp_session *s)
{
	enum hp_kind kind;

	if (!hp_choose(s, HP_WAIT, 2) || hp_fault == HP_IDLE)
		return 0;
	for (kind = 0; kind < HP_STATES; kind++) {
		if (!wait_for_completion_timeout(&s->queues[kind].moves, HP_TIMEOUT))
			return -ETIMEDOUT;
	}
	return 0;
}

static int hp_session_setup(struct hp_session *s)
{
	enum hp_kind kind;
	struct ib_pd *pd;
	int ret;

	ret = hp_address(s);
	if (ret)
		return ret;
	pd = ib_alloc_pd(s->dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	s->pd = pd;
	ret = hp_memory(s);
	for (kind = 0; !ret && kind < HP_KINDS; kind++) {
		ret = hp_queue_create(&s->queues[kind]);
		if (ret)
			break;
		if (kind == HP_STATES)
			ret = hp_states_setup(&s->queues[kind]);
		else
			ret = hp_traffic_setup(&s->queues[kind]);
	}
	if (ret)
		return ret;
	queue_delayed_work(hp_wq, &s->pace, msecs_to_jiffies(HP_PACE_MS));
	return hp_wait_moves(s);
}

/* A concurrent post either precedes the transition or finds the queue pair in ERR. */
static void hp_queue_break(struct hp_queue *queue)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	u32 i;

	for (i = 0; i < queue->nr_qps; i++) {
		if (queue->qps[i].at != IB_QPS_RESET)
			ib_modify_qp(queue->qps[i].qp, &attr, IB_QP_STATE);
	}
}

static u32 hp_qp_out(const struct hp_qp *q)
{
	u32 i, n = 0;

	for (i = 0; i < q->nr; i++)
		n += atomic_read(&q->slots[i].out) > 0;
	return n;
}

/* Checks that the device goes while it has work, unless a link went down before. */
static void hp_queue_count_out(struct hp_queue *queue)
{
	u32 i, n = hp_qp_out(&queue->qps[0]);

	if (hp_links && queue->kind != HP_STATES && READ_ONCE(queue->failed))
		return;
	for (i = 1; queue->kind == HP_STATES && i < queue->nr_qps; i++)
		n += hp_qp_out(&queue->qps[i]);
	atomic_add(n, &hp_stats.out[queue->kind]);
	if (!n)
		atomic_inc(&hp_stats.idle);
}

static void hp_queue_stop(struct hp_queue *queue)
{
	spin_lock_bh(&queue->lock);
	queue->stopping = true;
	spin_unlock_bh(&queue->lock);
}

/* Afterwards no work item polls the queue, but the CQ's own handler may still be called. */
static void hp_queue_unwatch(struct hp_queue *queue)
{
	spin_lock_irq(&queue->poll_lock);
	queue->unwatched = true;
	spin_unlock_irq(&queue->poll_lock);
	cancel_work_sync(&queue->work);
}

/*
 * Does what ib_drain_qp() does for the other queues. A receive of an SRQ is in the CQ
 * before the completion of the message that consumed it.
 */
static void hp_plain_drain(struct hp_queue *queue)
{
	hp_queue_break(queue);
	if (!atomic_dec_and_test(&queue->left))
		wait_for_completion_timeout(&queue->idle, HP_TIMEOUT);
	hp_queue_unwatch(queue);
}

static void hp_queue_drain(struct hp_queue *queue)
{
	u32 i;

	if (!queue->cq || hp_fault == HP_NO_DRAIN) {
		hp_queue_unwatch(queue);
		return;
	}
	if (queue->kind == HP_PLAIN) {
		hp_plain_drain(queue);
		return;
	}
	hp_queue_unwatch(queue);
	for (i = 0; i < queue->nr_qps; i++) {
		if (queue->qps[i].at != IB_QPS_RESET)
			ib_drain_qp(queue->qps[i].qp);
	}
}

/* An SRQ keeps the receives that no message has consumed: they are not lost. */
static void hp_slot_check(const struct hp_slot *slot)
{
	int out = max(atomic_read(&slot->out), 0);

	if (slot->shared)
		atomic_sub(out, &hp_stats.posted);
	else
		atomic_add(out, &hp_stats.lost);
}

static void hp_queue_check(struct hp_queue *queue)
{
	struct hp_qp *q;
	u32 i;

	for (q = queue->qps; q < queue->qps + queue->nr_qps; q++) {
		for (i = 0; i < q->nr; i++)
			hp_slot_check(&q->slots[i]);
	}
	if (queue->srq)
		atomic_add(max(atomic_read(&queue->owed), 0), &hp_stats.lost);
}

/* Polls completions that nothing else would poll any more: they are late. */
static void hp_queue_empty(struct hp_queue *queue)
{
	struct ib_wc wc;

	if (queue->kind == HP_DIRECT)
		ib_process_cq_direct(queue->cq, -1);
	while (queue->kind == HP_PLAIN && ib_poll_cq(queue->cq, 1, &wc) > 0)
		wc.wr_cqe->done(queue->cq, &wc);
}

static void hp_queue_destroy(struct hp_queue *queue)
{
	struct hp_qp *q;

	for (q = queue->qps; q < queue->qps + queue->nr_qps; q++) {
		if (q->qp && hp_fault != HP_FORGET)
			ib_destroy_qp(q->qp);
	}
	if (queue->srq && hp_fault != HP_FORGET)
		ib_destroy_srq(queue->srq);
	if (queue->mr)
		ib_dereg_mr(queue->mr);
	if (queue->cq)
		hp_queue_empty(queue);
	if (queue->cq && queue->kind == HP_PLAIN)
		ib_destroy_cq(queue->cq);
	else if (queue->cq)
		ib_free_cq(queue->cq);
	for (q = queue->qps; q < queue->qps + queue->nr_qps; q++)
		kfree(q->slots);
	kfree(queue->qps);
}

static void hp_session_drain(struct hp_session *s)
{
	enum hp_kind kind;

	for (kind = 0; kind < HP_KINDS && hp_choose(s, HP_BREAK, 2); kind++)
		hp_queue_break(&s->queues[kind]);
	for (kind = 0; kind < HP_KINDS; kind++)
		hp_queue_stop(&s->queues[kind]);
	cancel_delayed_work_sync(&s->pace);
	for (kind = 0; kind < HP_KINDS; kind++) {
		if (hp_fault == HP_LATE)
			WRITE_ONCE(s->queues[kind].closed, true);
		hp_queue_drain(&s->queues[kind]);
		WRITE_ONCE(s->queues[kind].closed, true);
		hp_queue_check(&s->queues[kind]);
	}
}

static void hp_session_free(struct hp_session *s)
{
	enum hp_kind kind;

	hp_session_drain(s);
	for (kind = 0; kind < HP_KINDS; kind++)
		hp_queue_destroy(&s->queues[kind]);
	if (s->mem)
		ib_dma_unmap_single(s->dev, s->dma, HP_MEMORY, DMA_BIDIRECTIONAL);
	kfree(s->mem);
	if (s->pd)
		ib_dealloc_pd(s->pd);
	kfree(s);
}

/**
 * hp_session_begin - create a session and start its traffic
 * @dev: the device
 *
 * Context: process, from add().
 * Return: the session, or an ERR_PTR: -ENOMEM, -EADDRNOTAVAIL for an Ethernet port
 * without GIDs, -ETIMEDOUT if traffic did not start, or an errno of a verbs call.
 */
struct hp_session *hp_session_begin(struct ib_device *dev)
{
	static atomic_t sessions;
	struct hp_session *s = kzalloc(sizeof(*s), GFP_KERNEL);
	enum hp_kind kind;
	int ret;

	if (!s)
		return ERR_PTR(-ENOMEM);
	s->dev = dev;
	s->nr = hp_first + atomic_fetch_inc(&sessions);
	INIT_DELAYED_WORK(&s->pace, hp_pace_work);
	for (kind = 0; kind < HP_KINDS; kind++)
		hp_queue_init(s, kind);
	ret = hp_session_setup(s);
	if (!ret)
		return s;
	hp_session_free(s);
	return ERR_PTR(ret);
}

/**
 * hp_session_end - end and free a session, with or without traffic in flight
 * @s: the session
 *
 * Context: process, from remove().
 */
void hp_session_end(struct hp_session *s)
{
	enum hp_kind kind;

	hp_states_count(&s->queues[HP_STATES]);
	for (kind = 0; kind < HP_KINDS; kind++)
		hp_queue_count_out(&s->queues[kind]);
	hp_session_free(s);
}
