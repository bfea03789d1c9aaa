// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two connected queue pairs, each in a PD of a process, and the transfers between
 * them. These use keys and addresses given by the process, which may be wrong, or
 * become so at any time. After a completion in error, the next operation replaces the
 * queue pairs with new ones.
 *
 * Locks: the caller serialises calls for a pair with its own lock. The pair's @lock is
 * for completions, which run in a workqueue.
 */
#include <linux/jiffies.h>
#include <linux/sched/signal.h>

#include "peermove.h"

#define MOVE_PORT		1
#define MOVE_TIMEOUT		(60 * HZ)	/* limit without any completion */
#define MOVE_ACK_TIMEOUT	18	/* 4.096 us * 2^18 = 1 s: nothing gets lost */
#define MOVE_RETRIES		7
#define MOVE_RNR_TIMER		1	/* 10 us */
#define MOVE_MAX_RD		16	/* outstanding reads of a queue pair */

/* --- completions --------------------------------------------------------------- */

static void move_ended(struct move_pair *pair, enum ib_wc_status *first,
		       const struct ib_wc *wc)
{
	spin_lock(&pair->lock);
	pair->ended++;
	if (*first == IB_WC_SUCCESS)
		*first = wc->status;
	if (wc->status == IB_WC_SUCCESS && first == &pair->result.send)
		pair->result.done++;
	spin_unlock(&pair->lock);
	complete(&pair->news);
}

static void move_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct move_pair *pair = container_of(wc->wr_cqe, struct move_pair, send_cqe);

	move_ended(pair, &pair->result.send, wc);
}

static void move_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct move_pair *pair = container_of(wc->wr_cqe, struct move_pair, recv_cqe);

	move_ended(pair, &pair->result.recv, wc);
}

void move_pair_init(struct move_pair *pair)
{
	pair->send_cqe.done = move_sent;
	pair->recv_cqe.done = move_received;
	spin_lock_init(&pair->lock);
	init_completion(&pair->news);
}

/* --- queue pairs ---------------------------------------------------------------- */

static int move_create(struct move_side *side)
{
	struct ib_device *dev = move_device(side);
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {
			/* Draining takes one work request on each queue. */
			.max_send_wr = MOVE_DEPTH + 1,
			.max_recv_wr = MOVE_DEPTH + 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_qp *qp;
	struct ib_cq *cq;
	int ret;

	ret = ib_query_port(dev, MOVE_PORT, &side->port);
	if (ret)
		return ret;
	cq = ib_alloc_cq(dev, NULL, 2 * (MOVE_DEPTH + 1), 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	side->cq = cq;
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(side->ca->pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	side->qp = qp;
	return 0;
}

static void move_destroy(struct move_side *side)
{
	if (side->qp)
		ib_destroy_qp(side->qp);
	if (side->cq)
		ib_free_cq(side->cq);
	side->qp = NULL;
	side->cq = NULL;
}

static u8 move_rd_atomic(const struct move_side *from, const struct move_side *to)
{
	int depth = min(move_device(from)->attrs.max_qp_init_rd_atom,
			move_device(to)->attrs.max_qp_rd_atom);

	return clamp(depth, 1, MOVE_MAX_RD);
}

static int move_to_init(struct move_side *side)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = MOVE_PORT,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC,
	};

	return ib_modify_qp(side->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			    IB_QP_PORT | IB_QP_ACCESS_FLAGS);
}

static int move_to_rtr(struct move_side *own, const struct move_side *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = min(own->port.active_mtu, peer->port.active_mtu),
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = move_rd_atomic(peer, own),
		.min_rnr_timer = MOVE_RNR_TIMER,
	};

	attr.ah_attr.type = rdma_ah_find_type(move_device(own), MOVE_PORT);
	rdma_ah_set_port_num(&attr.ah_attr, MOVE_PORT);
	rdma_ah_set_dlid(&attr.ah_attr, peer->port.lid);
	return ib_modify_qp(own->qp, &attr, IB_QP_STATE | IB_QP_AV |
			    IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			    IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

static int move_to_rts(struct move_side *own, const struct move_side *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = MOVE_ACK_TIMEOUT,
		.retry_cnt = MOVE_RETRIES,
		.rnr_retry = MOVE_RETRIES,
		.max_rd_atomic = move_rd_atomic(own, peer),
	};

	return ib_modify_qp(own->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			    IB_QP_MAX_QP_RD_ATOMIC);
}

static int move_connect(struct move_pair *pair)
{
	struct move_side *side = pair->side;
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < MOVE_SIDES; i++)
		ret = move_create(&side[i]);
	for (i = 0; !ret && i < MOVE_SIDES; i++)
		ret = move_to_init(&side[i]);
	for (i = 0; !ret && i < MOVE_SIDES; i++)
		ret = move_to_rtr(&side[i], &side[!i]);
	for (i = 0; !ret && i < MOVE_SIDES; i++)
		ret = move_to_rts(&side[i], &side[!i]);
	if (ret)
		move_pair_disconnect(pair);
	return ret;
}

/**
 * move_pair_disconnect - destroy both queue pairs, if they exist
 * @pair: the pair; both sides have their PDs, or there are no queue pairs
 *
 * Context: may sleep. Nothing of the pair is in flight afterwards.
 */
void move_pair_disconnect(struct move_pair *pair)
{
	unsigned int i;

	for (i = 0; i < MOVE_SIDES; i++) {
		if (pair->side[i].qp)
			ib_drain_qp(pair->side[i].qp);
	}
	for (i = 0; i < MOVE_SIDES; i++)
		move_destroy(&pair->side[i]);
}

/* --- operations ------------------------------------------------------------------ */

static int move_post_recv(struct move_pair *pair, const struct move_op *op)
{
	struct ib_sge sge = {
		.addr = op->raddr,
		.length = op->len,
		.lkey = op->rkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &pair->recv_cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	return ib_post_recv(pair->side[!op->side].qp, &wr, NULL);
}

static bool move_is_atomic(const struct move_op *op)
{
	return op->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       op->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

static int move_post_send(struct move_pair *pair, const struct move_op *op)
{
	struct ib_qp *qp = pair->side[op->side].qp;
	struct ib_sge sge = {
		.addr = op->laddr,
		.length = op->len,
		.lkey = op->lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &pair->send_cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = op->opcode,
	};
	struct ib_rdma_wr rdma = {
		.wr = wr,
		.remote_addr = op->raddr,
		.rkey = op->rkey,
	};
	struct ib_atomic_wr atomic = {
		.wr = wr,
		.remote_addr = op->raddr,
		.rkey = op->rkey,
		.compare_add = op->compare,
		.swap = op->swap,
	};

	if (op->opcode == IB_WR_SEND)
		return ib_post_send(qp, &wr, NULL);
	return ib_post_send(qp, move_is_atomic(op) ? &atomic.wr : &rdma.wr, NULL);
}

/* Posts one message. */
static int move_post(struct move_pair *pair, const struct move_op *op)
{
	int ret;

	if (op->opcode == IB_WR_SEND) {
		ret = move_post_recv(pair, op);
		if (ret)
			return ret;
		pair->posted++;
	}
	ret = move_post_send(pair, op);
	if (!ret)
		pair->posted++;
	return ret;
}

/* Waits until no more than @left requests are outstanding. */
static int move_wait(struct move_pair *pair, u32 left)
{
	bool over, failed;
	long ret;

	for (;;) {
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
		if (READ_ONCE(pair->stopping))
			return -ENODEV;
		spin_lock(&pair->lock);
		over = pair->posted - pair->ended <= left;
		failed = pair->result.send != IB_WC_SUCCESS ||
			 pair->result.recv != IB_WC_SUCCESS;
		spin_unlock(&pair->lock);
		if (over || failed)
			return failed ? -EIO : 0;
		ret = wait_for_completion_killable_timeout(&pair->news, MOVE_TIMEOUT);
		if (ret < 0)
			return -EINTR;
		if (!ret)
			return -ETIMEDOUT;
	}
}

static void move_begin(struct move_pair *pair)
{
	pair->result = (struct move_result) { IB_WC_SUCCESS, IB_WC_SUCCESS, 0 };
	pair->posted = 0;
	pair->ended = 0;
	reinit_completion(&pair->news);
}

/**
 * move_pair_run - carry out an operation
 * @pair: the pair, with a PD on each side; connected here if it is not yet
 * @op: the operation
 * @res: the result; on error, that of the part carried out
 *
 * Context: may sleep, until it is done or the process is killed.
 * Return: 0; -EIO if a request failed; -ETIMEDOUT if there was no completion for a
 * minute; -EINTR; -ENODEV if a device goes; or what the verbs layer returned.
 */
int move_pair_run(struct move_pair *pair, const struct move_op *op,
		  struct move_result *res)
{
	/* A SEND message takes two requests; those outstanding may all be of one kind. */
	u32 room = MOVE_DEPTH - 1 - (op->opcode == IB_WR_SEND);
	int ret = 0;
	u32 i;

	move_begin(pair);
	if (!pair->side[0].qp)
		ret = move_connect(pair);
	for (i = 0; !ret && i < op->count; i++) {
		ret = move_post(pair, op);
		if (!ret)
			ret = move_wait(pair, room);
	}
	if (!ret)
		ret = move_wait(pair, 0);
	/* This also completes the requests that were posted after the failed one. */
	if (ret)
		move_pair_disconnect(pair);
	*res = pair->result;
	return ret;
}
