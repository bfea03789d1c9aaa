// SPDX-License-Identifier: GPL-2.0-only
/*
 * The connection of a session: two queue pairs on InfiniBand ports of this machine,
 * one work request at a time. The session's lock is held throughout; completions only
 * wake the task that waits for them.
 */
#include <linux/completion.h>

#include "offload.h"

#define OFFLOAD_PORT		1
#define OFFLOAD_WRS		2	/* one request, and one to drain */
#define OFFLOAD_ACK_TIMEOUT	18	/* 4.096 us * 2^18 = 1 s: nothing gets lost */
#define OFFLOAD_RETRIES		7
#define OFFLOAD_RNR_TIMER	1	/* 10 us */

/* --- one work request ------------------------------------------------------------- */

struct offload_wait {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void offload_completed(struct ib_cq *cq, struct ib_wc *wc)
{
	struct offload_wait *wait = container_of(wc->wr_cqe, struct offload_wait, cqe);

	wait->status = wc->status;
	complete(&wait->done);
}

/* Every request completes: with success, in error, or flushed. */
static int offload_do(struct offload_side *side, struct ib_send_wr *wr)
{
	struct offload_wait wait = { .cqe.done = offload_completed };
	int ret;

	init_completion(&wait.done);
	wr->wr_cqe = &wait.cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	ret = ib_post_send(side->qp, wr, NULL);
	if (ret)
		return ret;
	wait_for_completion(&wait.done);
	return wait.status == IB_WC_SUCCESS ? 0 : -EIO;
}

/**
 * offload_rdma() - have the peer read or write a piece
 * @session: the session, connected
 * @opcode: IB_WR_RDMA_WRITE or IB_WR_RDMA_READ
 * @offset: offset in the peer's own memory, in bytes
 * @piece: the piece, registered
 *
 * Context: may sleep.
 * Return: 0; -EIO: it failed; or what ib_post_send() returned.
 */
int offload_rdma(struct offload_session *session, enum ib_wr_opcode opcode, u32 offset,
		 const struct offload_piece *piece)
{
	struct offload_side *peer = &session->side[OFFLOAD_PEER];
	struct ib_sge sge = {
		.addr = session->buf_dma + offset,
		.length = session->params.bytes,
		.lkey = peer->pd->local_dma_lkey,
	};
	struct ib_rdma_wr wr = {
		.wr = {
			.opcode = opcode,
			.sg_list = &sge,
			.num_sge = 1,
		},
		.remote_addr = piece->mr->iova,
		.rkey = piece->mr->rkey,
	};

	return offload_do(peer, &wr.wr);
}

/**
 * offload_register() - register a piece for the peer
 * @session: the session, connected
 * @piece: the piece, mapped for the target's device
 *
 * Context: may sleep.
 * Return: 0; -EIO: it failed; or what the driver returned.
 */
int offload_register(struct offload_session *session, struct offload_piece *piece)
{
	struct offload_side *target = &session->side[OFFLOAD_TARGET];
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			  IB_ACCESS_REMOTE_READ,
	};
	struct ib_mr *mr;
	int nents;

	mr = ib_alloc_mr(target->pd, IB_MR_TYPE_MEM_REG,
			 DIV_ROUND_UP(session->params.bytes, PAGE_SIZE));
	if (IS_ERR(mr))
		return PTR_ERR(mr);
	piece->mr = mr;
	nents = ib_map_mr_sg(mr, piece->sgt.sgl, piece->sgt.nents, NULL, PAGE_SIZE);
	if (nents != piece->sgt.nents)
		return nents < 0 ? nents : -EINVAL;
	wr.mr = mr;
	wr.key = mr->rkey;
	return offload_do(target, &wr.wr);
}

/* --- queue pairs ------------------------------------------------------------------ */

static int offload_create(struct offload_side *side)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = OFFLOAD_WRS,
			.max_recv_wr = OFFLOAD_WRS,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_qp *qp;
	struct ib_pd *pd;
	struct ib_cq *cq;

	if (rdma_port_get_link_layer(side->dev, OFFLOAD_PORT) != IB_LINK_LAYER_INFINIBAND)
		return -EPROTONOSUPPORT;
	pd = ib_alloc_pd(side->dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	side->pd = pd;
	cq = ib_alloc_cq(side->dev, NULL, 2 * OFFLOAD_WRS, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	side->cq = cq;
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ib_create_qp(pd, &init);
	if (IS_ERR(qp))
		return PTR_ERR(qp);
	side->qp = qp;
	return ib_query_port(side->dev, OFFLOAD_PORT, &side->port);
}

static void offload_destroy(struct offload_side *side)
{
	if (side->qp) {
		ib_drain_qp(side->qp);
		ib_destroy_qp(side->qp);
	}
	if (side->cq)
		ib_free_cq(side->cq);
	side->qp = NULL;
	side->cq = NULL;
}

static int offload_to_init(struct offload_side *side)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = OFFLOAD_PORT,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ,
	};

	return ib_modify_qp(side->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS);
}

static int offload_to_rtr(struct offload_side *own, const struct offload_side *other)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = min(own->port.active_mtu, other->port.active_mtu),
		.dest_qp_num = other->qp->qp_num,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = OFFLOAD_RNR_TIMER,
	};

	attr.ah_attr.type = rdma_ah_find_type(own->dev, OFFLOAD_PORT);
	rdma_ah_set_port_num(&attr.ah_attr, OFFLOAD_PORT);
	rdma_ah_set_dlid(&attr.ah_attr, other->port.lid);
	return ib_modify_qp(own->qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU |
			    IB_QP_DEST_QPN | IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC |
			    IB_QP_MIN_RNR_TIMER);
}

static int offload_to_rts(struct offload_side *side)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = OFFLOAD_ACK_TIMEOUT,
		.retry_cnt = OFFLOAD_RETRIES,
		.rnr_retry = OFFLOAD_RETRIES,
		.max_rd_atomic = 1,
	};

	return ib_modify_qp(side->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/**
 * offload_connect() - create and connect the queue pairs
 * @session: the session, with its devices
 *
 * Context: may sleep.
 * Return: 0; -EPROTONOSUPPORT: a port is not an InfiniBand port; or the driver's error.
 * The caller calls offload_disconnect() in any case.
 */
int offload_connect(struct offload_session *session)
{
	struct offload_side *side = session->side;
	int i, ret = 0;

	for (i = 0; !ret && i < OFFLOAD_SIDES; i++)
		ret = offload_create(&side[i]);
	for (i = 0; !ret && i < OFFLOAD_SIDES; i++)
		ret = offload_to_init(&side[i]);
	for (i = 0; !ret && i < OFFLOAD_SIDES; i++)
		ret = offload_to_rtr(&side[i], &side[!i]);
	for (i = 0; !ret && i < OFFLOAD_SIDES; i++)
		ret = offload_to_rts(&side[i]);
	return ret;
}

/**
 * offload_disconnect() - destroy the queue pairs that exist
 * @session: the session, in any state
 *
 * Context: may sleep. No RDMA request reads or writes the pieces afterwards.
 */
void offload_disconnect(struct offload_session *session)
{
	int i;

	for (i = 0; i < OFFLOAD_SIDES; i++)
		offload_destroy(&session->side[i]);
}
