// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs: those with traffic, and one in each state, with requests that only a
 * flush completes:
 *
 *  RESET  no requests, as none can be posted
 *  INIT   receives
 *  RTR    receives; connected to itself, which sends nothing
 *  RTS    sends, to itself, which has no receive for them: the device retries them
 *	   again and again
 *  SQD    sends, which wait for RTS, and receives
 *  SQE    a send from memory that does not exist, which moves the queue pair to
 *	   SQE; sends after that one, and receives
 *  ERR    sends and receives
 */
#include <linux/slab.h>

#include "hotplug.h"

#define HP_ACK_TIMEOUT	18	/* 4.096 us * 2^18 = 1.1 s: a link may be down briefly */
#define HP_RETRIES	7	/* RNR retries: for ever */
#define HP_RNR_TIMER	23	/* 30.72 ms: sends often wait for receives */

/* Attributes required for the transitions from RESET to INIT, to RTR and to RTS. */
static const int hp_rc_masks[] = {
	IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
		IB_QP_MAX_QP_RD_ATOMIC,
};

static const int hp_uc_masks[] = {
	IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN,
	IB_QP_SQ_PSN,
};

/* For each state that can be requested, the transitions that lead to it from RESET. */
static const enum ib_qp_state hp_ways[HP_QP_STATES][4] = {
	[IB_QPS_INIT] = { IB_QPS_INIT },
	[IB_QPS_RTR] = { IB_QPS_INIT, IB_QPS_RTR },
	[IB_QPS_RTS] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS },
	[IB_QPS_SQD] = { IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS, IB_QPS_SQD },
	[IB_QPS_ERR] = { IB_QPS_INIT, IB_QPS_ERR },
};

/**
 * hp_qp_create - make a queue pair and its slots
 * @queue: the queue on which its requests complete
 * @q: the queue pair to set up
 * @type: RC or UC
 * @nr_sends: number of its sends
 * @nr_recvs: number of its receives, from the queue's SRQ if there is one
 *
 * Return: 0 or an errno; in either case @q refers to whatever was created.
 */
int hp_qp_create(struct hp_queue *queue, struct hp_qp *q, enum ib_qp_type type,
		 u32 nr_sends, u32 nr_recvs)
{
	struct ib_qp_init_attr init = {
		.send_cq = queue->cq,
		.recv_cq = queue->cq,
		.srq = nr_recvs ? queue->srq : NULL,
		.qp_type = type,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = nr_sends + HP_SPARE_WR,
			.max_recv_wr = nr_recvs && queue->srq ? 0 : nr_recvs + HP_SPARE_WR,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_qp *qp;
	u32 i;

	q->queue = queue;
	q->slots = kcalloc(nr_sends + nr_recvs ?: 1, sizeof(*q->slots), GFP_KERNEL);
	if (!q->slots)
		return -ENOMEM;
	q->nr = nr_sends + nr_recvs;
	for (i = 0; i < q->nr; i++) {
		q->slots[i].cqe.done = hp_slot_done;
		q->slots[i].qp = q;
		q->slots[i].area = i;
		q->slots[i].recv = i < nr_recvs;
		q->slots[i].shared = q->slots[i].recv && queue->srq;
	}
	qp = ib_create_qp(queue->session->pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	q->qp = qp;
	return 0;
}

static int hp_qp_move(struct hp_qp *q, enum ib_qp_state to, u32 dest)
{
	const int *masks = q->qp->qp_type == IB_QPT_RC ? hp_rc_masks : hp_uc_masks;
	const struct hp_session *s = q->queue->session;
	struct ib_qp_attr attr = {
		.qp_state = to,
		.port_num = HP_PORT,
		.ah_attr = s->ah,
		.path_mtu = s->port.active_mtu,
		.dest_qp_num = dest,
		.qp_access_flags = HP_ACCESS,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = HP_RNR_TIMER,
		.timeout = HP_ACK_TIMEOUT,
		.retry_cnt = HP_RETRIES,
		.rnr_retry = HP_RETRIES,
		.max_rd_atomic = 1,
	};
	int mask = IB_QP_STATE;

	if (to >= IB_QPS_INIT && to <= IB_QPS_RTS)
		mask |= masks[to - IB_QPS_INIT];
	return ib_modify_qp(q->qp, &attr, mask);
}

/**
 * hp_qp_bring - bring a queue pair to a state
 * @q: the queue pair, in RESET
 * @to: the state; not SQE, which cannot be requested
 * @dest: its peer
 *
 * Return: 0 or the errno of ib_modify_qp().
 */
int hp_qp_bring(struct hp_qp *q, enum ib_qp_state to, u32 dest)
{
	int i, ret = 0;

	for (i = 0; !ret && i < ARRAY_SIZE(hp_ways[to]) && hp_ways[to][i]; i++) {
		ret = hp_qp_move(q, hp_ways[to][i], dest);
		if (!ret)
			q->at = hp_ways[to][i];
	}
	return ret;
}

/* By final state: type, state to request, and number of sends and receives to post. */
static const struct {
	enum ib_qp_type type;
	enum ib_qp_state bring;
	u8 sends;
	u8 recvs;
} hp_states[HP_QP_STATES] = {
	[IB_QPS_RESET] = { IB_QPT_RC, IB_QPS_RESET, 0, 0 },
	[IB_QPS_INIT] = { IB_QPT_RC, IB_QPS_INIT, 0, HP_HELD },
	[IB_QPS_RTR] = { IB_QPT_RC, IB_QPS_RTR, 0, HP_HELD },
	[IB_QPS_RTS] = { IB_QPT_RC, IB_QPS_RTS, HP_HELD, 0 },
	[IB_QPS_SQD] = { IB_QPT_RC, IB_QPS_SQD, HP_HELD, HP_HELD },
	[IB_QPS_SQE] = { IB_QPT_UC, IB_QPS_RTS, HP_HELD, HP_HELD },
	[IB_QPS_ERR] = { IB_QPT_RC, IB_QPS_ERR, HP_HELD, HP_HELD },
};

static int hp_state_setup(struct hp_queue *queue, enum ib_qp_state state)
{
	struct hp_qp *q = &queue->qps[state];
	u32 i, recvs = hp_states[state].recvs;
	int ret;

	if (state == IB_QPS_RTS && hp_fault == HP_WRONG)
		recvs = 1;
	ret = hp_qp_create(queue, q, hp_states[state].type, hp_states[state].sends, recvs);
	if (ret)
		return ret;
	for (i = 0; i < q->nr; i++)
		q->slots[i].held = true;
	if (state == IB_QPS_SQE) {
		q->slots[HP_HELD].held = false;
		q->slots[HP_HELD].bad = true;
	}
	ret = hp_qp_bring(q, hp_states[state].bring, q->qp->qp_num);
	return ret ?: hp_post_all(q);
}

/**
 * hp_states_setup - create a queue pair in every state
 * @queue: their queue
 *
 * Return: 0; -ENOMEM; or an errno of a verbs call.
 */
int hp_states_setup(struct hp_queue *queue)
{
	enum ib_qp_state state;
	int ret = 0;

	for (state = 0; !ret && state < HP_QP_STATES; state++)
		ret = hp_state_setup(queue, state);
	/* Wait until the bad send, or another request, has failed. */
	if (!ret && hp_fault != HP_IDLE &&
	    !wait_for_completion_timeout(&queue->moves, HP_TIMEOUT))
		ret = -ETIMEDOUT;
	return ret;
}

/**
 * hp_states_count - count the queue pairs that are in their intended state
 * @queue: their queue
 */
void hp_states_count(struct hp_queue *queue)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;
	enum ib_qp_state state;

	for (state = 0; state < HP_QP_STATES; state++) {
		if (!queue->qps[state].qp)
			continue;
		if (!ib_query_qp(queue->qps[state].qp, &attr, IB_QP_STATE, &init) &&
		    attr.qp_state == state)
			atomic_inc(&hp_stats.states[state]);
	}
}
