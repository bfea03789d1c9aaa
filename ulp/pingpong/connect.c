// SPDX-License-Identifier: GPL-2.0-only
/*
 * How the ends of a pair find each other. Both are in this module, so the
 * addresses are simply read from the two ports: LIDs on InfiniBand, GIDs and
 * the MAC address behind them on Ethernet.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <rdma/ib_cache.h>

#include "pingpong.h"

#define PP_HOP_LIMIT	64
#define PP_ACK_TIMEOUT	14	/* 4.096 us * 2^14 = 67 ms */
#define PP_RETRIES	7
#define PP_RNR_TIMER	1	/* 10 us */
#define PP_MAX_RD	16	/* outstanding reads of a queue pair */

static bool pp_is_roce(const struct pp_side *side)
{
	return rdma_port_get_link_layer(side->dev, side->port) ==
	       IB_LINK_LAYER_ETHERNET;
}

static int pp_port_resolve(struct pp_side *side)
{
	const char *name = side->dev->name;
	int ret;

	if (!rdma_is_port_valid(side->dev, side->port)) {
		pr_err("%s has no port %u\n", name, side->port);
		return -EINVAL;
	}
	ret = ib_query_port(side->dev, side->port, &side->attr);
	if (ret)
		return ret;
	if (side->attr.state != IB_PORT_ACTIVE) {
		pr_err("%s port %u is not active\n", name, side->port);
		return -ENETDOWN;
	}
	return 0;
}

/* Two GIDs can communicate if they use the same kind of packet. */
static bool pp_gids_match(const struct ib_gid_attr *a,
			  const struct ib_gid_attr *b)
{
	return a->gid_type == b->gid_type &&
	       rdma_gid_attr_network_type(a) == rdma_gid_attr_network_type(b);
}

/* Tells whether a GID of the initiator is to be tried in this pass. */
static bool pp_gid_wanted(const struct ib_gid_attr *gid, unsigned int pass)
{
	bool v4 = ipv6_addr_v4mapped((struct in6_addr *)gid->gid.raw);

	if (pass == 2)
		return gid->gid_type == IB_GID_TYPE_ROCE;
	return gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP && v4 == !pass;
}

static bool pp_gid_find_peer(struct pp_side *to, const struct ib_gid_attr *own)
{
	const struct ib_gid_attr *gid;
	int i;

	for (i = 0; i < to->attr.gid_tbl_len; i++) {
		gid = rdma_get_gid_attr(to->dev, to->port, i);
		if (IS_ERR(gid))
			continue;
		if (pp_gids_match(own, gid)) {
			to->gid = gid;
			return true;
		}
		rdma_put_gid_attr(gid);
	}
	return false;
}

/* Choose a GID on both sides: prefer RoCE v2 over IPv4, then over IPv6, then v1. */
static int pp_gids_resolve(struct pp_side *from, struct pp_side *to)
{
	const struct ib_gid_attr *gid;
	unsigned int pass;
	int i;

	for (pass = 0; pass < 3; pass++) {
		for (i = 0; i < from->attr.gid_tbl_len; i++) {
			gid = rdma_get_gid_attr(from->dev, from->port, i);
			if (IS_ERR(gid))
				continue;
			if (pp_gid_wanted(gid, pass) &&
			    pp_gid_find_peer(to, gid)) {
				from->gid = gid;
				return 0;
			}
			rdma_put_gid_attr(gid);
		}
	}
	pr_err("%s and %s have no GIDs of the same type\n",
	       from->dev->name, to->dev->name);
	return -EADDRNOTAVAIL;
}

/**
 * pp_sides_resolve - read the addresses of both ports of a run
 * @run: the run, with its devices
 *
 * Context: may sleep.
 * Return: 0, -EINVAL for a port that does not exist, -ENETDOWN for one that is not
 * active, -EPROTOTYPE if one port is InfiniBand and the other Ethernet,
 * -EADDRNOTAVAIL if they have no common kind of GID, or the driver's errno.
 */
int pp_sides_resolve(struct pp_run *run)
{
	struct pp_side *from = &run->side[PP_INITIATOR];
	struct pp_side *to = &run->side[PP_TARGET];
	int ret;

	ret = pp_port_resolve(from);
	if (!ret)
		ret = pp_port_resolve(to);
	if (ret)
		return ret;
	if (pp_is_roce(from) != pp_is_roce(to)) {
		pr_err("the two ports have different link layers\n");
		return -EPROTOTYPE;
	}
	return pp_is_roce(from) ? pp_gids_resolve(from, to) : 0;
}

/**
 * pp_sides_release - put the references pp_sides_resolve() took
 * @run: the run
 */
void pp_sides_release(struct pp_run *run)
{
	unsigned int i;

	for (i = 0; i < PP_SIDES; i++) {
		if (run->side[i].gid)
			rdma_put_gid_attr(run->side[i].gid);
		run->side[i].gid = NULL;
	}
}

static int pp_ah_init(struct rdma_ah_attr *ah, const struct pp_side *own,
		      const struct pp_side *peer)
{
	memset(ah, 0, sizeof(*ah));
	ah->type = rdma_ah_find_type(own->dev, own->port);
	rdma_ah_set_port_num(ah, own->port);
	if (!own->gid) {
		rdma_ah_set_dlid(ah, peer->attr.lid);
		return 0;
	}
	rdma_ah_set_grh(ah, (union ib_gid *)&peer->gid->gid, 0,
			own->gid->index, PP_HOP_LIMIT, 0);
	return rdma_read_gid_l2_fields(peer->gid, NULL, ah->roce.dmac);
}

static int pp_to_init(struct pp_run *run, struct ib_qp *qp, u32 port)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE,
	};

	if (run->op == PP_READ)
		attr.qp_access_flags |= IB_ACCESS_REMOTE_READ;
	if (run->op == PP_WRITE || run->op == PP_WRITE_IMM)
		attr.qp_access_flags |= IB_ACCESS_REMOTE_WRITE;
	if (run->op == PP_FETCH_ADD)
		attr.qp_access_flags |= IB_ACCESS_REMOTE_ATOMIC;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			    IB_QP_PORT | IB_QP_ACCESS_FLAGS);
}

static u8 pp_rd_atomic(const struct pp_side *from, const struct pp_side *to)
{
	int depth = min(from->dev->attrs.max_qp_init_rd_atom,
			to->dev->attrs.max_qp_rd_atom);

	return clamp(depth, 1, PP_MAX_RD);
}

static int pp_to_rtr(struct pp_run *run, struct pp_pair *pair, u32 psn,
		     enum pp_side_nr nr)
{
	const struct pp_side *own = &run->side[nr];
	const struct pp_side *peer = &run->side[!nr];
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = min(own->attr.active_mtu, peer->attr.active_mtu),
		.dest_qp_num = pair->end[!nr].qp->qp_num,
		.rq_psn = psn,
		.max_dest_rd_atomic = pp_rd_atomic(peer, own),
		.min_rnr_timer = PP_RNR_TIMER,
	};
	int ret;

	ret = pp_ah_init(&attr.ah_attr, own, peer);
	if (ret)
		return ret;
	return ib_modify_qp(pair->end[nr].qp, &attr, IB_QP_STATE | IB_QP_AV |
			    IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			    IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

static int pp_to_rts(struct pp_run *run, struct pp_pair *pair, u32 psn,
		     enum pp_side_nr nr)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = PP_ACK_TIMEOUT,
		.retry_cnt = PP_RETRIES,
		.rnr_retry = PP_RETRIES,
		.sq_psn = psn,
		.max_rd_atomic = pp_rd_atomic(&run->side[nr],
					      &run->side[!nr]),
	};

	return ib_modify_qp(pair->end[nr].qp, &attr, IB_QP_STATE |
			    IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			    IB_QP_MAX_QP_RD_ATOMIC);
}

/**
 * pp_connect - bring both queue pairs of a pair to RTS
 * @run: the run
 * @pair: the pair, with its queue pairs
 * @psn: first packet sequence number, 24 bits
 *
 * Context: may sleep.
 * Return: 0 or the error of ib_modify_qp() or rdma_read_gid_l2_fields().
 */
int pp_connect(struct pp_run *run, struct pp_pair *pair, u32 psn)
{
	unsigned int i;
	int ret = 0;

	for (i = 0; !ret && i < PP_SIDES; i++) {
		ret = pp_to_init(run, pair->end[i].qp, run->side[i].port);
		pair->end[i].drain = true;
	}
	for (i = 0; !ret && i < PP_SIDES; i++)
		ret = pp_to_rtr(run, pair, psn, i);
	for (i = 0; !ret && i < PP_SIDES; i++)
		ret = pp_to_rts(run, pair, psn, i);
	if (ret)
		pr_err("cannot connect the queue pairs (%d)\n", ret);
	return ret;
}
