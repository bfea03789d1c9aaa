// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mock's PDs, AHs, SRQs and QPs: they remember what they were given and execute no
 * WRs. A QP in the error state flushes the WRs that are posted to it, so that draining
 * ends.
 */
#include "lib/mock.h"

struct mock_pd {
	struct ib_pd ibpd;
};

struct mock_ah {
	struct ib_ah ibah;
	struct rdma_ah_attr attr;
};

struct mock_srq {
	struct ib_srq ibsrq;
	struct ib_srq_attr attr;
};

static struct mock_qp *to_mqp(struct ib_qp *qp)
{
	return container_of(qp, struct mock_qp, ibqp);
}

static int mock_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	struct mock *m = mock_of(pd->device);
	int ret = mock_enter(m, MOCK_alloc_pd, pd, 0, 0);

	if (!ret)
		atomic_inc(&m->live[MOCK_PD]);
	return ret;
}

static int mock_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	struct mock *m = mock_of(pd->device);
	int ret = mock_enter(m, MOCK_dealloc_pd, pd, 0, 0);

	if (!ret)
		atomic_dec(&m->live[MOCK_PD]);
	return ret;
}

static int mock_create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	struct mock *m = mock_of(ah->device);
	int ret = mock_enter(m, MOCK_create_ah, ah, init->flags, 0);

	if (ret)
		return ret;
	container_of(ah, struct mock_ah, ibah)->attr = *init->ah_attr;
	atomic_inc(&m->live[MOCK_AH]);
	return 0;
}

static int mock_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	int ret = mock_enter(mock_of(ah->device), MOCK_modify_ah, ah, 0, 0);

	if (!ret)
		container_of(ah, struct mock_ah, ibah)->attr = *attr;
	return ret;
}

static int mock_query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	int ret = mock_enter(mock_of(ah->device), MOCK_query_ah, ah, 0, 0);

	if (!ret)
		*attr = container_of(ah, struct mock_ah, ibah)->attr;
	return ret;
}

static int mock_destroy_ah(struct ib_ah *ah, u32 flags)
{
	struct mock *m = mock_of(ah->device);
	int ret = mock_enter(m, MOCK_destroy_ah, ah, flags, 0);

	if (!ret)
		atomic_dec(&m->live[MOCK_AH]);
	return ret;
}

static int mock_create_srq(struct ib_srq *srq, struct ib_srq_init_attr *init,
			   struct ib_udata *udata)
{
	struct mock *m = mock_of(srq->device);
	int ret = mock_enter(m, MOCK_create_srq, srq, init->attr.max_wr, init->attr.max_sge);

	if (ret)
		return ret;
	container_of(srq, struct mock_srq, ibsrq)->attr = init->attr;
	atomic_inc(&m->live[MOCK_SRQ]);
	return 0;
}

static int mock_modify_srq(struct ib_srq *srq, struct ib_srq_attr *attr,
			   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct mock_srq *s = container_of(srq, struct mock_srq, ibsrq);
	int ret = mock_enter(mock_of(srq->device), MOCK_modify_srq, srq, mask, 0);

	if (ret)
		return ret;
	if (mask & IB_SRQ_LIMIT)
		s->attr.srq_limit = attr->srq_limit;
	return 0;
}

static int mock_query_srq(struct ib_srq *srq, struct ib_srq_attr *attr)
{
	int ret = mock_enter(mock_of(srq->device), MOCK_query_srq, srq, 0, 0);

	if (!ret)
		*attr = container_of(srq, struct mock_srq, ibsrq)->attr;
	return ret;
}

static int mock_destroy_srq(struct ib_srq *srq, struct ib_udata *udata)
{
	struct mock *m = mock_of(srq->device);
	int ret = mock_enter(m, MOCK_destroy_srq, srq, 0, 0);

	if (!ret)
		atomic_dec(&m->live[MOCK_SRQ]);
	return ret;
}

static int mock_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
			      const struct ib_recv_wr **bad)
{
	int ret = mock_enter(mock_of(srq->device), MOCK_post_srq_recv, srq, wr->wr_id, wr->num_sge);

	if (ret)
		*bad = wr;
	return ret;
}

static int mock_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct mock *m = mock_of(ibqp->device);
	struct mock_qp *qp = to_mqp(ibqp);
	int ret = mock_enter(m, MOCK_create_qp, ibqp, init->qp_type, 0);

	if (ret)
		return ret;
	qp->init = *init;
	qp->state = IB_QPS_RESET;
	ibqp->qp_num = atomic_inc_return(&m->next_key);
	atomic_inc(&m->live[MOCK_QP]);
	return 0;
}

static int mock_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr,
			  int mask, struct ib_udata *udata)
{
	struct mock *m = mock_of(ibqp->device);
	struct mock_qp *qp = to_mqp(ibqp);
	enum ib_qp_state cur, next;
	int ret;

	ret = mock_enter(m, MOCK_modify_qp, ibqp, mask,
			 mask & IB_QP_STATE ? attr->qp_state : qp->state);
	if (ret)
		return ret;
	cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, ibqp->qp_type, mask))
		return -EINVAL;
	qp->state = next;
	qp->attr = *attr;
	if (next == IB_QPS_ERR && cur != IB_QPS_ERR && m->on_error)
		m->on_error(ibqp, m->on_error_arg);
	return 0;
}

static int mock_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			 struct ib_qp_init_attr *init)
{
	struct mock_qp *qp = to_mqp(ibqp);
	int ret = mock_enter(mock_of(ibqp->device), MOCK_query_qp, ibqp, mask, 0);

	if (ret)
		return ret;
	*attr = qp->attr;
	attr->qp_state = qp->state;
	*init = qp->init;
	return 0;
}

static int mock_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct mock *m = mock_of(ibqp->device);
	int ret = mock_enter(m, MOCK_destroy_qp, ibqp, 0, 0);

	if (ret)
		return ret;
	mock_cq_purge(ibqp->send_cq, ibqp);
	mock_cq_purge(ibqp->recv_cq, ibqp);
	atomic_dec(&m->live[MOCK_QP]);
	return 0;
}

static void mock_flush(struct ib_qp *qp, struct ib_cq *cq, u64 wr_id, enum ib_wc_opcode opcode)
{
	struct ib_wc wc = {
		.wr_id = wr_id,
		.status = IB_WC_WR_FLUSH_ERR,
		.opcode = opcode,
		.qp = qp,
	};
	struct mock *m = mock_of(qp->device);
	u64 delay = m->flush_ns;

	if (m->flush_lost)
		return;
	if (delay)
		mock_cq_push_late(cq, &wc, delay);
	else
		mock_cq_push(cq, &wc, true);
}

static int mock_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	struct mock_qp *qp = to_mqp(ibqp);
	int ret;

	for (; wr; wr = wr->next) {
		ret = mock_enter(mock_of(ibqp->device), MOCK_post_send, ibqp,
				 wr->wr_id, wr->opcode);
		if (ret) {
			ib_post_send_failed(ibqp, wr, ret);
			*bad = wr;
			return ret;
		}
		if (wr->opcode == IB_WR_BIND_MW)
			mock_of(ibqp->device)->bind = *bind_mw_wr(wr);
		if (qp->state == IB_QPS_ERR)
			mock_flush(ibqp, ibqp->send_cq, wr->wr_id, IB_WC_SEND);
	}
	return 0;
}

static int mock_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	struct mock_qp *qp = to_mqp(ibqp);
	int ret;

	for (; wr; wr = wr->next) {
		ret = mock_enter(mock_of(ibqp->device), MOCK_post_recv, ibqp,
				 wr->wr_id, wr->num_sge);
		if (ret) {
			ib_post_recv_failed(ibqp, wr, ret);
			*bad = wr;
			return ret;
		}
		if (qp->state == IB_QPS_ERR)
			mock_flush(ibqp, ibqp->recv_cq, wr->wr_id, IB_WC_RECV);
	}
	return 0;
}

/**
 * mock_qp_state() - get the state of a QP, as the driver knows it
 * @qp: a QP of a mock device
 *
 * Return: the state.
 */
enum ib_qp_state mock_qp_state(struct ib_qp *qp)
{
	return to_mqp(qp)->state;
}
EXPORT_SYMBOL_GPL(mock_qp_state);

void mock_object_methods(struct ib_device_ops *ops)
{
	static const struct ib_device_ops mock_object_ops = {
		.alloc_pd = mock_alloc_pd,
		.dealloc_pd = mock_dealloc_pd,
		.create_ah = mock_create_ah,
		.modify_ah = mock_modify_ah,
		.query_ah = mock_query_ah,
		.destroy_ah = mock_destroy_ah,
		.create_srq = mock_create_srq,
		.modify_srq = mock_modify_srq,
		.query_srq = mock_query_srq,
		.destroy_srq = mock_destroy_srq,
		.post_srq_recv = mock_post_srq_recv,
		.create_qp = mock_create_qp,
		.modify_qp = mock_modify_qp,
		.query_qp = mock_query_qp,
		.destroy_qp = mock_destroy_qp,
		.post_send = mock_post_send,
		.post_recv = mock_post_recv,
		INIT_RDMA_OBJ_SIZE(ib_pd, mock_pd, ibpd),
		INIT_RDMA_OBJ_SIZE(ib_ah, mock_ah, ibah),
		INIT_RDMA_OBJ_SIZE(ib_srq, mock_srq, ibsrq),
		INIT_RDMA_OBJ_SIZE(ib_qp, mock_qp, ibqp),
	};

	*ops = mock_object_ops;
}
