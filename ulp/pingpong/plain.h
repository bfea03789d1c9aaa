/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ULP as most are: done() of a message builds the next request on the stack and posts
 * it, one request a call. kverbs_pingpong runs it over a device, kverbs_limit over a loop
 * that is no device; each gets these handlers compiled into it.
 *
 * There is no lock. The sender's fields belong to whom the sender's CQ runs, which is one
 * at a time; plain_start() gives them away as it posts the first message. The receiver's
 * belong to whom the receiver's CQ runs.
 */
#ifndef KVERBS_PINGPONG_PLAIN_H
#define KVERBS_PINGPONG_PLAIN_H

#include <linux/cache.h>
#include <rdma/ib_verbs.h>

struct plain_tx {
	struct ib_cqe cqe;
	u64 addr;
	u64 remote_addr;
	u32 rkey;
};

struct plain_rx {
	struct ib_cqe cqe;
	u64 addr;
};

/**
 * struct plain - messages between two queue pairs, whose CQs have it as cq_context
 * @from: queue pair that posts the messages
 * @to: queue pair that receives them, if @opcode is IB_WR_SEND
 * @srq: where to post receives instead, or NULL
 * @opcode: IB_WR_SEND, IB_WR_RDMA_WRITE or IB_WR_RDMA_READ
 * @size: bytes of a message
 * @window: messages outstanding
 * @iters: number of messages, at least @window
 * @tx_lkey: key of the memory at @from
 * @rx_lkey: key of the memory at @to
 * @tx: array of @window
 * @rx: array of @receives
 * @receives: receive requests
 * @over: called once by each end that has completed all its messages
 * @wrong: called for what must not be: a failed completion, or one of another length; or
 *	with NULL for a post that was refused
 * @posted: messages posted
 * @sent: messages completed at @from
 * @received: messages completed at @to
 */
struct plain {
	struct ib_qp *from;
	struct ib_qp *to;
	struct ib_srq *srq;
	enum ib_wr_opcode opcode;
	u32 size;
	u32 window;
	u32 iters;
	u32 tx_lkey;
	u32 rx_lkey;
	struct plain_tx *tx;
	struct plain_rx *rx;
	u32 receives;
	void (*over)(struct plain *p);
	void (*wrong)(struct plain *p, const struct ib_wc *wc);

	u32 posted ____cacheline_aligned_in_smp;
	u32 sent;

	u32 received ____cacheline_aligned_in_smp;
};

static void plain_post_send(struct plain *p, struct plain_tx *tx)
{
	struct ib_sge sge = {
		.addr = tx->addr,
		.length = p->size,
		.lkey = p->tx_lkey,
	};
	struct ib_send_wr wr = {
		.wr_cqe = &tx->cqe,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IB_WR_SEND,
		.send_flags = IB_SEND_SIGNALED,
	};

	if (unlikely(ib_post_send(p->from, &wr, NULL)))
		p->wrong(p, NULL);
}

static void plain_post_rdma(struct plain *p, struct plain_tx *tx)
{
	struct ib_sge sge = {
		.addr = tx->addr,
		.length = p->size,
		.lkey = p->tx_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr.wr_cqe = &tx->cqe,
		.wr.sg_list = &sge,
		.wr.num_sge = 1,
		.wr.opcode = p->opcode,
		.wr.send_flags = IB_SEND_SIGNALED,
		.remote_addr = tx->remote_addr,
		.rkey = tx->rkey,
	};

	if (unlikely(ib_post_send(p->from, &wr.wr, NULL)))
		p->wrong(p, NULL);
}

static void plain_post(struct plain *p, struct plain_tx *tx)
{
	p->posted++;
	if (p->opcode == IB_WR_SEND)
		plain_post_send(p, tx);
	else
		plain_post_rdma(p, tx);
}

static int plain_post_recv(struct plain *p, struct plain_rx *rx)
{
	struct ib_sge sge = {
		.addr = rx->addr,
		.length = p->size,
		.lkey = p->rx_lkey,
	};
	struct ib_recv_wr wr = {
		.wr_cqe = &rx->cqe,
		.sg_list = &sge,
		.num_sge = 1,
	};

	if (p->srq)
		return ib_post_srq_recv(p->srq, &wr, NULL);
	return ib_post_recv(p->to, &wr, NULL);
}

static void plain_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct plain_tx *tx = container_of(wc->wr_cqe, struct plain_tx, cqe);
	struct plain *p = cq->cq_context;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		p->wrong(p, wc);
		return;
	}
	WRITE_ONCE(p->sent, p->sent + 1);
	if (likely(p->posted < p->iters))
		plain_post(p, tx);
	else if (p->sent == p->iters)
		p->over(p);
}

/* Fills the window. */
static void plain_sent_first(struct ib_cq *cq, struct ib_wc *wc)
{
	struct plain *p = cq->cq_context;
	u32 i;

	p->tx[0].cqe.done = plain_sent;
	if (likely(wc->status == IB_WC_SUCCESS))
		for (i = 1; i < p->window; i++)
			plain_post(p, &p->tx[i]);
	plain_sent(cq, wc);
}

static void plain_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct plain_rx *rx = container_of(wc->wr_cqe, struct plain_rx, cqe);
	struct plain *p = cq->cq_context;

	if (unlikely(wc->status != IB_WC_SUCCESS || wc->byte_len != p->size ||
		     plain_post_recv(p, rx))) {
		p->wrong(p, wc);
		return;
	}
	WRITE_ONCE(p->received, p->received + 1);
	if (unlikely(p->received == p->iters))
		p->over(p);
}

/*
 * plain_receives - number of receive requests that a window of messages gets
 *
 * A multiple of the window, so that a receive always gets what the same slot of the
 * sender holds; and twice as many at least, as both ends take turns.
 */
static inline u32 plain_receives(u32 window)
{
	return window * max(2U, DIV_ROUND_UP(64U, window));
}

/* plain_listen - post all receive requests. Return: 0 or the error of the post. */
static inline int plain_listen(struct plain *p)
{
	int ret = 0;
	u32 i;

	for (i = 0; i < p->receives && !ret; i++) {
		p->rx[i].cqe.done = plain_received;
		ret = plain_post_recv(p, &p->rx[i]);
	}
	return ret;
}

/* plain_start - post the first message; the sender's fields are filled in. */
static inline void plain_start(struct plain *p)
{
	u32 i;

	for (i = 0; i < p->window; i++)
		p->tx[i].cqe.done = plain_sent;
	p->tx[0].cqe.done = plain_sent_first;
	plain_post(p, &p->tx[0]);
}

#endif
