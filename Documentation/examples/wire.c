// SPDX-License-Identifier: GPL-2.0-only
/*
 * A low-level driver: a device whose one port is plugged into itself. What a queue pair
 * sends comes back to it. Documentation/driver-guide.rst walks through it.
 */
#include <linux/module.h>
#include "wire.h"

static struct wire *the_wire;
static atomic_t wire_last_qpn = ATOMIC_INIT(1);		/* 0 and 1 are reserved */

/* begin complete */
static void wire_complete(struct ib_cq *ibcq, const struct ib_wc *wc, bool solicited)
{
	struct wire_cq *cq = to_wcq(ibcq);

	if (!cq->overrun && cq->head - cq->tail == WIRE_CQES) {
		cq->overrun = true;
		ib_cq_notify_event(ibcq, IB_EVENT_CQ_ERR);
	}
	if (cq->overrun)
		return;
	cq->ring[cq->head++ % WIRE_CQES] = *wc;
	if (cq->armed & IB_CQ_NEXT_COMP || (cq->armed && solicited)) {
		cq->armed = 0;
		ib_cq_notify(ibcq);
	}
}
/* end complete */

/* begin cq */
static int wire_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct wire_cq *cq = to_wcq(ibcq);
	unsigned long flags;
	int n;

	spin_lock_irqsave(&wire_lock, flags);
	for (n = 0; n < num && cq->tail != cq->head; n++)
		wc[n] = cq->ring[cq->tail++ % WIRE_CQES];
	spin_unlock_irqrestore(&wire_lock, flags);
	return n;
}

static int wire_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags how)
{
	struct wire_cq *cq = to_wcq(ibcq);
	unsigned long flags;
	int missed;

	spin_lock_irqsave(&wire_lock, flags);
	missed = how & IB_CQ_REPORT_MISSED_EVENTS && cq->head != cq->tail;
	cq->armed |= how & IB_CQ_SOLICITED_MASK;
	spin_unlock_irqrestore(&wire_lock, flags);
	return missed;
}
/* end cq */

/* begin recv */
static void wire_received(struct wire_qp *qp, struct ib_wc *wc, bool solicited)
{
	wc->wr_id = qp->rq[qp->tail++ % WIRE_WRS].wr_id;
	wc->opcode = IB_WC_RECV;
	wc->qp = &qp->ibqp;
	wire_complete(qp->ibqp.recv_cq, wc, solicited);
}

static void wire_flush(struct wire_qp *qp)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR };

	while (qp->state == IB_QPS_ERR && qp->tail != qp->head)
		wire_received(qp, &wc, true);
}

static int wire_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	struct wire_qp *qp = to_wqp(ibqp);
	unsigned long flags;
	int err = 0;

	spin_lock_irqsave(&wire_lock, flags);
	for (; wr && wr->num_sge <= 1 && qp->state != IB_QPS_RESET &&
	     qp->head - qp->tail < WIRE_WRS; wr = wr->next) {
		qp->rq[qp->head % WIRE_WRS].wr_id = wr->wr_id;
		qp->rq[qp->head++ % WIRE_WRS].sge = wr->num_sge ? *wr->sg_list : (struct ib_sge){};
		wire_flush(qp);
	}
	if (wr)
		err = qp->head - qp->tail == WIRE_WRS ? -ENOMEM : -EINVAL;
	spin_unlock_irqrestore(&wire_lock, flags);
	if (err)
		ib_post_recv_failed(ibqp, wr, err);
	*bad = wr;
	return err;
}
/* end recv */

/* begin send */
static enum ib_wc_status wire_send(struct wire_qp *qp, const struct ib_send_wr *wr)
{
	struct ib_sge from = wr->num_sge ? *wr->sg_list : (struct ib_sge){};
	struct ib_wc wc = { .byte_len = from.length, .src_qp = qp->ibqp.qp_num };
	struct ib_sge *to = &qp->rq[qp->tail % WIRE_WRS].sge;

	if (!READ_ONCE(wire_up))
		return IB_WC_RETRY_EXC_ERR;
	if (qp->tail == qp->head)
		return IB_WC_RNR_RETRY_EXC_ERR;
	if (from.length > to->length)
		return IB_WC_REM_INV_REQ_ERR;
	if (from.length && (from.lkey != WIRE_KEY || to->lkey != WIRE_KEY))
		return IB_WC_LOC_PROT_ERR;
	memcpy((void *)(uintptr_t)to->addr, (void *)(uintptr_t)from.addr, from.length);
	wc.wc_flags = wr->opcode == IB_WR_SEND_WITH_IMM ? IB_WC_WITH_IMM : 0;
	wc.ex.imm_data = wr->ex.imm_data;
	wire_received(qp, &wc, wr->send_flags & IB_SEND_SOLICITED);
	return IB_WC_SUCCESS;
}

static bool wire_can_send(const struct wire_qp *qp, const struct ib_send_wr *wr)
{
	return qp->state == IB_QPS_ERR || (qp->state == IB_QPS_RTS && wr->num_sge <= 1 &&
		(wr->opcode == IB_WR_SEND || wr->opcode == IB_WR_SEND_WITH_IMM));
}

static int wire_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	struct wire_qp *qp = to_wqp(ibqp);
	unsigned long flags;

	spin_lock_irqsave(&wire_lock, flags);
	for (; wr && wire_can_send(qp, wr); wr = wr->next) {
		struct ib_wc wc = { .wr_id = wr->wr_id, .opcode = IB_WC_SEND, .qp = ibqp };

		wc.status = qp->state == IB_QPS_ERR ? IB_WC_WR_FLUSH_ERR : wire_send(qp, wr);
		if (wc.status || qp->signal_all || wr->send_flags & IB_SEND_SIGNALED)
			wire_complete(ibqp->send_cq, &wc, wc.status);
		if (wc.status)
			qp->state = IB_QPS_ERR;
		wire_flush(qp);
	}
	spin_unlock_irqrestore(&wire_lock, flags);
	*bad = wr;
	if (!wr)
		return 0;
	ib_post_send_failed(ibqp, wr, -EINVAL);
	return -EINVAL;
}
/* end send */

/* begin qp */
static int wire_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	if (init->qp_type != IB_QPT_RC || init->srq || init->create_flags)
		return -EOPNOTSUPP;
	to_wqp(qp)->signal_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->qp_num = atomic_inc_return(&wire_last_qpn);
	return 0;
}

static int wire_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	struct wire_qp *qp = to_wqp(ibqp);
	enum ib_qp_state next;
	bool ok;

	spin_lock_irq(&wire_lock);
	next = mask & IB_QP_STATE ? attr->qp_state : qp->state;
	ok = ib_modify_qp_is_ok(qp->state, next, ibqp->qp_type, mask) &&
	     (!(mask & IB_QP_DEST_QPN) || attr->dest_qp_num == ibqp->qp_num);
	if (ok)
		qp->state = next;
	if (qp->state == IB_QPS_RESET)
		qp->tail = qp->head;
	wire_flush(qp);
	spin_unlock_irq(&wire_lock);
	return ok ? 0 : -EINVAL;
}

static void wire_forget(struct wire_cq *cq, const struct ib_qp *qp)
{
	u32 i, to = cq->tail;

	for (i = cq->tail; i != cq->head; i++)
		if (cq->ring[i % WIRE_CQES].qp != qp)
			cq->ring[to++ % WIRE_CQES] = cq->ring[i % WIRE_CQES];
	cq->head = to;
}

static int wire_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	spin_lock_irq(&wire_lock);
	wire_forget(to_wcq(qp->send_cq), qp);
	wire_forget(to_wcq(qp->recv_cq), qp);
	spin_unlock_irq(&wire_lock);
	return 0;
}
/* end qp */

/* begin event */
static ssize_t up_store(struct device *dev, struct device_attribute *a, const char *buf, size_t len)
{
	struct ib_event event = { .device = rdma_device_to_ibdev(dev), .element.port_num = 1 };
	bool up;

	if (kstrtobool(buf, &up))
		return -EINVAL;
	WRITE_ONCE(wire_up, up);
	event.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR;
	ib_dispatch_event(&event);
	return len;
}
static DEVICE_ATTR_WO(up);

static struct attribute *wire_attrs[] = { &dev_attr_up.attr, NULL };
static const struct attribute_group wire_group = { .attrs = wire_attrs };
/* end event */

/* begin module */
static const struct ib_device_ops wire_ops = {
	.owner = THIS_MODULE, .device_group = &wire_group,
	.poll_cq = wire_poll_cq, .req_notify_cq = wire_req_notify_cq,
	.create_qp = wire_create_qp, .modify_qp = wire_modify_qp, .destroy_qp = wire_destroy_qp,
	.post_send = wire_post_send, .post_recv = wire_post_recv,
	INIT_RDMA_OBJ_SIZE(ib_qp, wire_qp, ibqp),
};

static int __init wire_init(void)
{
	int ret;

	the_wire = ib_alloc_device(wire, ibdev);
	if (!the_wire)
		return -ENOMEM;
	the_wire->ibdev.node_type = RDMA_NODE_IB_CA;
	the_wire->ibdev.node_guid = cpu_to_be64(0x0200000000000001ULL);
	the_wire->ibdev.phys_port_cnt = 1;
	ib_set_device_ops(&the_wire->ibdev, &wire_told_ops);
	ib_set_device_ops(&the_wire->ibdev, &wire_ops);
	ret = ib_register_device(&the_wire->ibdev, "wire%d", NULL);
	if (ret)
		ib_dealloc_device(&the_wire->ibdev);
	return ret;
}

static void __exit wire_exit(void)
{
	ib_unregister_device(&the_wire->ibdev);
	ib_dealloc_device(&the_wire->ibdev);
}
/* end module */

module_init(wire_init);
module_exit(wire_exit);
MODULE_DESCRIPTION("A driver to learn from");
MODULE_LICENSE("GPL");
