/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The driver in wire.c: its structures, and the methods that only report attributes or
 * do next to nothing.
 *
 * Locking: wire_lock guards all queues and states. It is taken with interrupts off,
 * because consumers post and poll in any context; the core's functions in
 * <kverbs/completion.h> may be called under it.
 */
#ifndef KVERBS_EXAMPLES_WIRE_H
#define KVERBS_EXAMPLES_WIRE_H

#include <linux/slab.h>
#include <linux/spinlock.h>
#include <kverbs/completion.h>
#include <rdma/ib_verbs.h>

#define WIRE_CQES	1024		/* entries per CQ: a power of two, since indices wrap */
#define WIRE_WRS	256		/* entries per receive queue: likewise */
#define WIRE_KEY	0x77697265	/* key of all memory */

/* begin objects */
struct wire {
	struct ib_device ibdev;
};

struct wire_pd {
	struct ib_pd ibpd;
};

struct wire_cq {
	struct ib_cq ibcq;
	struct ib_wc ring[WIRE_CQES];
	u32 head, tail;			/* written at head, polled from tail */
	int armed;			/* notification requested by wire_req_notify_cq() */
	bool overrun;			/* a completion found no room: it takes no more */
};

struct wire_qp {
	struct ib_qp ibqp;
	enum ib_qp_state state;
	bool signal_all;
	u32 head, tail;			/* of the receive queue; sends are never queued */
	struct {
		u64 wr_id;
		struct ib_sge sge;
	} rq[WIRE_WRS];
};
/* end objects */

#define to_wcq(cq)	container_of(cq, struct wire_cq, ibcq)
#define to_wqp(qp)	container_of(qp, struct wire_qp, ibqp)

/* A driver for several devices would have these in struct wire. */
static DEFINE_SPINLOCK(wire_lock);
static bool wire_up = true;

/* begin device */
static int wire_query_device(struct ib_device *dev, struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	attr->max_qp = INT_MAX;
	attr->max_qp_wr = WIRE_WRS;
	attr->max_send_sge = 1;
	attr->max_recv_sge = 1;
	attr->max_cq = INT_MAX;
	attr->max_cqe = WIRE_CQES;
	attr->max_pd = INT_MAX;
	attr->max_mr = INT_MAX;
	return 0;
}

static int wire_query_port(struct ib_device *dev, u32 port, struct ib_port_attr *attr)
{
	attr->state = READ_ONCE(wire_up) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->max_msg_sz = SZ_64K;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	return 0;
}

static int wire_get_port_immutable(struct ib_device *dev, u32 port, struct ib_port_immutable *imm)
{
	imm->core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	imm->gid_tbl_len = 1;
	imm->pkey_tbl_len = 1;
	return 0;
}

static int wire_query_gid(struct ib_device *dev, u32 port, int index, union ib_gid *gid)
{
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid->global.interface_id = dev->node_guid;
	return 0;
}

static int wire_query_pkey(struct ib_device *dev, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}
/* end device */

/* begin memory */
static int wire_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int wire_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static struct ib_mr *wire_get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->lkey = WIRE_KEY;
	return mr;
}

static int wire_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	kfree(mr);
	return 0;
}
/* end memory */

static int wire_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			  struct uverbs_attr_bundle *attrs)
{
	cq->cqe = WIRE_CQES;
	return attr->flags ? -EOPNOTSUPP : 0;
}

static int wire_destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	return 0;
}

static const struct ib_device_ops wire_told_ops = {
	.query_device = wire_query_device,
	.query_port = wire_query_port,
	.get_port_immutable = wire_get_port_immutable,
	.query_gid = wire_query_gid,
	.query_pkey = wire_query_pkey,
	.alloc_pd = wire_alloc_pd,
	.dealloc_pd = wire_dealloc_pd,
	.get_dma_mr = wire_get_dma_mr,
	.dereg_mr = wire_dereg_mr,
	.create_cq = wire_create_cq,
	.destroy_cq = wire_destroy_cq,
	INIT_RDMA_OBJ_SIZE(ib_pd, wire_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_cq, wire_cq, ibcq),
};

#endif
