/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connects a queue pair to itself, or to another one of the same machine. A real
 * ULP has a peer elsewhere and learns the peer's address, queue pair number and
 * first packet sequence number from it.
 */
#ifndef KVERBS_EXAMPLES_LOOPBACK_H
#define KVERBS_EXAMPLES_LOOPBACK_H

#include <linux/err.h>
#include <linux/kernel.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#define LOOPBACK_TIMEOUT	14	/* 4.096 us * 2^14 */
#define LOOPBACK_RETRIES	7
#define LOOPBACK_HOPS		64

/* Attributes required for the transitions from RESET to INIT, to RTR and to RTS. */
static const int loopback_masks[] = {
	IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
		IB_QP_MAX_QP_RD_ATOMIC,
};

/* On Ethernet a peer is identified by its GID and the MAC address behind it. */
static inline int loopback_roce(struct ib_device *peer, struct rdma_ah_attr *ah)
{
	const struct ib_gid_attr *gid;
	int ret;

	gid = rdma_get_gid_attr(peer, rdma_ah_get_port_num(ah), 0);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	rdma_ah_set_grh(ah, (union ib_gid *)&gid->gid, 0, 0, LOOPBACK_HOPS, 0);
	ret = rdma_read_gid_l2_fields(gid, NULL, ah->roce.dmac);
	rdma_put_gid_attr(gid);
	return ret;
}

static inline int loopback_address(struct ib_device *dev, struct ib_device *peer, u32 lid,
				   struct rdma_ah_attr *ah, u32 port_num)
{
	ah->type = rdma_ah_find_type(dev, port_num);
	rdma_ah_set_port_num(ah, port_num);
	if (ah->type == RDMA_AH_ATTR_TYPE_ROCE)
		return loopback_roce(peer, ah);
	rdma_ah_set_dlid(ah, lid);
	return 0;
}

/**
 * loopback_connect_to() - bring a new RC queue pair to RTS, connected to another one
 * @qp: the queue pair, in the state RESET
 * @peer: the other one, which the peer itself has to connect to this one
 * @port_num: port of both their devices, from 1
 *
 * Context: Process, may sleep.
 * Return: 0, or the errno of the verbs call that failed.
 */
static inline int loopback_connect_to(struct ib_qp *qp, struct ib_qp *peer, u32 port_num)
{
	struct ib_qp_attr attr = {
		.port_num = port_num,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE,
		.dest_qp_num = peer->qp_num,
		.timeout = LOOPBACK_TIMEOUT,
		.retry_cnt = LOOPBACK_RETRIES,
		.rnr_retry = LOOPBACK_RETRIES,
	};
	struct ib_port_attr own, other;
	int i, ret;

	ret = ib_query_port(qp->device, port_num, &own) ?:
	      ib_query_port(peer->device, port_num, &other);
	if (ret)
		return ret;
	attr.path_mtu = min(own.active_mtu, other.active_mtu);
	ret = loopback_address(qp->device, peer->device, other.lid, &attr.ah_attr, port_num);
	for (i = 0; !ret && i < ARRAY_SIZE(loopback_masks); i++) {
		attr.qp_state = IB_QPS_INIT + i;
		ret = ib_modify_qp(qp, &attr, loopback_masks[i] | IB_QP_STATE);
	}
	return ret;
}

/**
 * loopback_connect() - bring a new RC queue pair to RTS, connected to itself
 * @qp: the queue pair, in the state RESET
 * @port_num: port of its device, from 1
 *
 * Context: Process, may sleep.
 * Return: 0, or the errno of the verbs call that failed.
 */
static inline int loopback_connect(struct ib_qp *qp, u32 port_num)
{
	return loopback_connect_to(qp, qp, port_num);
}

/**
 * loopback_create() - create a queue pair that is connected to itself
 * @pd: its PD
 * @cq: CQ for all its completions
 * @nr: requests that can be outstanding, each way
 *
 * Context: Process, may sleep.
 * Return: the queue pair in RTS, or an ERR_PTR of the call that failed.
 */
static inline struct ib_qp *loopback_create(struct ib_pd *pd, struct ib_cq *cq, u32 nr)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.send_cq = cq,
		.recv_cq = cq,
		/* One more each way, to drain the queue pair. */
		.cap = { .max_send_wr = nr + 1, .max_recv_wr = nr + 1 },
	};
	struct ib_qp *qp = ib_create_qp(pd, &attr);
	int ret;

	if (IS_ERR(qp))
		return qp;
	ret = loopback_connect(qp, 1);
	if (!ret)
		return qp;
	ib_destroy_qp(qp);
	return ERR_PTR(ret);
}

#endif
