// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams of the software HCA, on InfiniBand and on each kind of RoCE: what the
 * receiver gets, and what is dropped silently. Names of cases that stand for a row of the
 * conformance table begin with the name of the row.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>
#include <kverbs/delay.h>

#include "emu/rig_net.h"
#include "lib/objects.h"

#define LEN		200
/* GRH next header value for InfiniBand transport headers. */
#define NEXT_IBA	0x1b
/* The VLAN of the cases that have one. */
#define VLAN_ID		5

KUNIT_ARRAY_PARAM_DESC(net, rig_nets, name);
KUNIT_ARRAY_PARAM_DESC(few_net, rig_few_nets, name);

static const struct rig_net *net_of(struct kunit *test)
{
	return test->param_value;
}

/* Behind the network header: BTH, DETH, payload, padding and ICRC, with RoCE v2 after UDP. */
static u32 packet_len(const struct rig_net *net, u32 len)
{
	bool udp = net->kind == RIG_NET_ROCE_V2_IP4 || net->kind == RIG_NET_ROCE_V2_IP6;

	return (udp ? 8 : 0) + 12 + 8 + roundup(len, 4) + 4;
}

static void expect_ip4(struct kunit *test, struct rig *r, u32 len)
{
	const struct iphdr *ip = (void *)r->b.buf + 20;

	KUNIT_EXPECT_EQ(test, 0x45, r->b.buf[20]);
	KUNIT_EXPECT_EQ(test, RIG_TCLASS, ip->tos);
	KUNIT_EXPECT_EQ(test, 20 + packet_len(net_of(test), len), be16_to_cpu(ip->tot_len));
	/* The DF bit may be set. */
	KUNIT_EXPECT_EQ(test, 0, be16_to_cpu(ip->frag_off) & ~0x4000);
	KUNIT_EXPECT_EQ(test, RIG_HOPS, ip->ttl);
	KUNIT_EXPECT_EQ(test, IPPROTO_UDP, ip->protocol);
	KUNIT_EXPECT_EQ(test, 0, (__force u16)ip_fast_csum(ip, ip->ihl));
	KUNIT_EXPECT_MEMEQ(test, &ip->saddr, r->a.gid.raw + 12, 4);
	KUNIT_EXPECT_MEMEQ(test, &ip->daddr, r->b.gid.raw + 12, 4);
	KUNIT_EXPECT_EQ(test, 4, ib_get_rdma_header_version((void *)r->b.buf));
}

static void expect_grh(struct kunit *test, struct rig *r, u32 len, u8 next)
{
	const struct ib_grh *grh = (void *)r->b.buf;

	KUNIT_EXPECT_EQ(test, 6U << 28 | RIG_TCLASS << 20 | RIG_FLOW,
			be32_to_cpu(grh->version_tclass_flow));
	KUNIT_EXPECT_EQ(test, packet_len(net_of(test), len), be16_to_cpu(grh->paylen));
	KUNIT_EXPECT_EQ(test, next, grh->next_hdr);
	KUNIT_EXPECT_EQ(test, RIG_HOPS, grh->hop_limit);
	KUNIT_EXPECT_MEMEQ(test, &grh->sgid, &r->a.gid, sizeof(grh->sgid));
	KUNIT_EXPECT_MEMEQ(test, &grh->dgid, &r->b.gid, sizeof(grh->dgid));
	KUNIT_EXPECT_EQ(test, 6, ib_get_rdma_header_version((void *)r->b.buf));
}

/* Checks the 40 bytes of network header at the start of the receive buffer. */
static void expect_header(struct kunit *test, struct rig *r, u32 len)
{
	switch (net_of(test)->kind) {
	case RIG_NET_IB:
		/* Without a GRH the 40 bytes are undefined. */
		break;
	case RIG_NET_IB_GRH:
	case RIG_NET_ROCE_V1:
		expect_grh(test, r, len, NEXT_IBA);
		break;
	case RIG_NET_ROCE_V2_IP6:
		expect_grh(test, r, len, IPPROTO_UDP);
		break;
	case RIG_NET_ROCE_V2_IP4:
		expect_ip4(test, r, len);
		break;
	}
}

static const u8 network_types[] = {
	[RIG_NET_ROCE_V1] = RDMA_NETWORK_ROCE_V1,
	[RIG_NET_ROCE_V2_IP6] = RDMA_NETWORK_IPV6,
	[RIG_NET_ROCE_V2_IP4] = RDMA_NETWORK_IPV4,
};

/* The Ethernet address is that of the sender's GID, and there is no VLAN. */
static void expect_sender(struct kunit *test, const struct rig_end *e, const struct ib_wc *wc)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(e->ibdev, e->port, e->gid_index);
	u8 mac[ETH_ALEN];

	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(attr));
	KUNIT_EXPECT_EQ(test, 0, rdma_read_gid_l2_fields(attr, NULL, mac));
	rdma_put_gid_attr(attr);
	KUNIT_EXPECT_FALSE(test, is_zero_ether_addr(mac));
	KUNIT_EXPECT_MEMEQ(test, mac, wc->smac, ETH_ALEN);
	KUNIT_EXPECT_EQ(test, IB_WC_WITH_SMAC, wc->wc_flags & (IB_WC_WITH_SMAC | IB_WC_WITH_VLAN));
	KUNIT_EXPECT_EQ(test, 0, wc->slid);
}

static void expect_origin(struct kunit *test, struct rig *r, const struct ib_wc *wc)
{
	const struct rig_net *net = net_of(test);
	bool roce = rig_net_is_roce(net);

	KUNIT_EXPECT_EQ(test, IB_WC_RECV, wc->opcode);
	KUNIT_EXPECT_PTR_EQ(test, wc->qp, r->b.qp);
	KUNIT_EXPECT_EQ(test, r->a.qp->qp_num, wc->src_qp);
	KUNIT_EXPECT_EQ(test, RIG_SL, wc->sl);
	KUNIT_EXPECT_EQ(test, r->b.port, wc->port_num);
	KUNIT_EXPECT_EQ(test, 0, wc->pkey_index);
	KUNIT_EXPECT_EQ(test, net->kind != RIG_NET_IB, !!(wc->wc_flags & IB_WC_GRH));
	KUNIT_EXPECT_EQ(test, roce, !!(wc->wc_flags & IB_WC_WITH_NETWORK_HDR_TYPE));
	if (roce) {
		KUNIT_EXPECT_EQ(test, network_types[net->kind], wc->network_hdr_type);
		expect_sender(test, &r->a, wc);
	} else {
		KUNIT_EXPECT_EQ(test, r->a.lid, wc->slid);
	}
	KUNIT_EXPECT_EQ(test, 0, wc->vendor_err);
}

static void u1_datagram_comes_with_its_header(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	static const u32 sizes[] = { 0, 1, LEN, 4096 };
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		rig_fill(r->a.buf, sizes[i], i);
		memset(r->b.buf, 0xee, RIG_BUF);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
		KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, sizes[i]));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, IB_WC_SEND, wc.opcode);
		RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, RIG_GRH + sizes[i], wc.byte_len);
		KUNIT_EXPECT_EQ(test, 0, wc.wc_flags & IB_WC_WITH_IMM);
		expect_origin(test, r, &wc);
		expect_header(test, r, sizes[i]);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + RIG_GRH, sizes[i], i));
		KUNIT_EXPECT_EQ(test, 0xee, r->b.buf[RIG_GRH + sizes[i]]);
	}
}

/* Posts one receive with two SGEs, of @head and @rest bytes, which are not adjacent. */
static int recv_in_two(struct rig *r, u64 id, u32 head, u32 rest)
{
	struct ib_sge sge[2] = {
		rig_sge(&r->b, 4096, head), rig_sge(&r->b, 8192, rest),
	};
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = sge, .num_sge = 2 };

	return ib_post_recv(r->b.qp, &wr, NULL);
}

static void u1_header_and_payload_cut_anywhere(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	static const u32 heads[] = { 13, RIG_GRH, 41 };
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(heads); i++) {
		u32 rest = RIG_GRH + LEN - heads[i];

		rig_fill(r->a.buf, LEN, i);
		KUNIT_ASSERT_EQ(test, 0, recv_in_two(r, 2, heads[i], rest));
		KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
		RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
		memcpy(r->b.buf, r->b.buf + 4096, heads[i]);
		memcpy(r->b.buf + heads[i], r->b.buf + 8192, rest);
		expect_header(test, r, LEN);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + RIG_GRH, LEN, i));
	}
}

static void u1_inline_with_immediate_data(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_sge sge = { (uintptr_t)r->a.buf, RIG_INLINE, 0x666 };
	struct ib_ud_wr wr;
	struct ib_wc wc;

	rig_fill(r->a.buf, RIG_INLINE, 3);
	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	wr.wr.opcode = IB_WR_SEND_WITH_IMM;
	wr.wr.ex.imm_data = cpu_to_be32(0x12345678);
	wr.wr.send_flags |= IB_SEND_INLINE;
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_EQ(test, RIG_GRH + RIG_INLINE, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, 0x12345678, be32_to_cpu(wc.ex.imm_data));
	expect_origin(test, r, &wc);
	expect_header(test, r, RIG_INLINE + sizeof(wr.wr.ex.imm_data));
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + RIG_GRH, RIG_INLINE, 3));
}

/* An AH made from the completion and the GRH reaches the sender. */
static void u10_receiver_answers_by_the_completion(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *back, *ah = rig_ah(test, &r->a, &r->b);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	back = KVT_PTR(test, ib_create_ah_from_wc(r->b.pd, &wc, (void *)r->b.buf, r->b.port));
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&r->a, 4, 0, RIG_BUF));
	KUNIT_EXPECT_EQ(test, 0, rig_ud_send(&r->b, back, &r->a, 3, 4096, LEN));
	rdma_destroy_ah(back, 0);
	RIG_EXPECT_WC(test, r->b.scq, &wc, 3, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->a.rcq, &wc, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, r->b.qp->qp_num, wc.src_qp);
}

static const enum ib_gid_type vlan_types[] = { IB_GID_TYPE_ROCE, IB_GID_TYPE_ROCE_UDP_ENCAP };

static void vlan_type_name(const enum ib_gid_type *type, char *desc)
{
	strscpy(desc, *type == IB_GID_TYPE_ROCE ? "RoCE v1" : "RoCE v2", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(vlan_type, vlan_types, vlan_type_name);

/* Is it the link-local GID of a VLAN? A VLAN has the Ethernet address of the device below it. */
static bool is_of_vlan(const struct ib_gid_attr *attr, int type)
{
	u16 vlan_id = VLAN_N_VID;

	return attr->gid_type == type &&
	       rdma_link_local_addr((struct in6_addr *)&attr->gid) &&
	       !rdma_read_gid_l2_fields(attr, &vlan_id, NULL) && vlan_id == VLAN_ID;
}

/* An end whose GID is that of a VLAN, and the same but for the VLAN as its port's first. */
static void vlan_end_up(struct kunit *test, struct rig_end *e, const char *name)
{
	enum ib_gid_type type = *(const enum ib_gid_type *)test->param_value;
	struct net_device *ndev = kvt_netdev(test);
	union ib_gid gid;

	kvt_netdev_vlan(test, ndev, VLAN_ID);
	rig_device(test, name, 1, netdev_name(ndev));
	rig_end_up(test, e, name, 1);
	rig_wait_gid(test, e, is_of_vlan, type);
	KUNIT_ASSERT_EQ(test, 0, rdma_query_gid(e->ibdev, e->port, 0, &gid));
	KUNIT_EXPECT_MEMEQ(test, &gid, &e->gid, sizeof(gid));
}

static void expect_from_vlan(struct kunit *test, const struct rig_end *from, const struct ib_wc *wc)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(from->ibdev, from->port,
							   from->gid_index);
	u8 mac[ETH_ALEN];

	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(attr));
	KUNIT_EXPECT_EQ(test, 0, rdma_read_gid_l2_fields(attr, NULL, mac));
	rdma_put_gid_attr(attr);
	KUNIT_EXPECT_EQ(test, IB_WC_WITH_SMAC | IB_WC_WITH_VLAN,
			wc->wc_flags & (IB_WC_WITH_SMAC | IB_WC_WITH_VLAN));
	KUNIT_EXPECT_EQ(test, VLAN_ID, wc->vlan_id);
	KUNIT_EXPECT_MEMEQ(test, mac, wc->smac, ETH_ALEN);
}

static void u10_answer_goes_out_from_the_same_vlan(struct kunit *test)
{
	struct rig *r = rig_alloc(test);
	struct ib_ah *back, *ah;
	struct ib_wc wc;

	vlan_end_up(test, &r->a, "kvr_a");
	vlan_end_up(test, &r->b, "kvr_b");
	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	ah = rig_ah(test, &r->a, &r->b);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	expect_from_vlan(test, &r->a, &wc);
	back = KVT_PTR(test, ib_create_ah_from_wc(r->b.pd, &wc, (void *)r->b.buf, r->b.port));
	KUNIT_EXPECT_EQ(test, r->b.gid_index, back->sgid_attr->index);
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&r->a, 4, 0, RIG_BUF));
	KUNIT_EXPECT_EQ(test, 0, rig_ud_send(&r->b, back, &r->a, 3, 4096, LEN));
	rdma_destroy_ah(back, 0);
	RIG_EXPECT_WC(test, r->b.scq, &wc, 3, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->a.rcq, &wc, 4, IB_WC_SUCCESS);
	expect_from_vlan(test, &r->b, &wc);
}

static void u1_a_queue_pair_sends_to_itself(struct kunit *test)
{
	struct rig *r = rig_ud(test, "emu0", "emu1");
	struct ib_ah *ah = rig_ah(test, &r->a, &r->a);
	struct ib_wc wc;

	rig_fill(r->a.buf, LEN, 5);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 2, 4096, RIG_GRH + LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->a.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, r->a.qp->qp_num, wc.src_qp);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->a.buf + 4096 + RIG_GRH, LEN, 5));
}

/* Sends a datagram, which must complete the receive @id. */
static void expect_arrival(struct kunit *test, struct rig *r, struct ib_ah *ah, u64 id, u32 len)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 71, 0, len));
	RIG_EXPECT_DELIVERED(test, r, &wc, 71, id);
	KUNIT_EXPECT_EQ(test, RIG_GRH + len, wc.byte_len);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
}

/*
 * Sends a datagram that must be dropped: the send succeeds, no receive completes, and
 * @counter of @at, if that is not NULL, is incremented.
 */
static void expect_drop(struct kunit *test, struct rig *r,
			const struct ib_ud_wr *wr, struct rig_end *at,
			const char *counter)
{
	u64 before = at ? rig_counter(test, at, counter) : 0;
	struct ib_wc wc;

	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr->wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, wr->wr.wr_id, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
	if (at)
		KUNIT_EXPECT_EQ(test, before + 1, rig_counter(test, at, counter));
}

static void u2_short_receive_waits_for_a_short_message(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	static const u32 rooms[] = { RIG_GRH + LEN - 1, RIG_GRH };
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct ib_ud_wr wr;
	int i;

	for (i = 0; i < ARRAY_SIZE(rooms); i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, rooms[i]));
		rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
		expect_drop(test, r, &wr, &r->b, "rx_dropped");
		expect_drop(test, r, &wr, &r->b, "rx_dropped");
		expect_arrival(test, r, ah, 2, rooms[i] - RIG_GRH);
	}
}

static void u2_receive_without_room_for_a_header(struct kunit *test)
{
	struct rig *r = rig_ud(test, "emu0", "emu1");
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_ud_wr wr;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_GRH - 1));
	rig_ud_wr(&wr, 1, NULL, 0, ah, &r->b);
	expect_drop(test, r, &wr, &r->b, "rx_dropped");
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
}

static void u11_address_handle_of_another_pd_is_refused(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct rig_end other = r->a;
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	const struct ib_send_wr *bad = NULL;
	struct ib_ud_wr wr;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	other.pd = kvt_pd(test, r->a.ibdev);
	rig_ud_wr(&wr, 1, &sge, 1, rig_ah(test, &other, &r->b), &r->b);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr.wr);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	expect_arrival(test, r, ah, 2, LEN);
}

static void u3_wrong_q_key_is_dropped_and_counted(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct ib_port_attr before = {}, after = {};
	struct ib_ud_wr wr;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(r->b.ibdev, r->b.port, &before));
	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	wr.remote_qkey = RIG_QKEY + 1;
	expect_drop(test, r, &wr, &r->b, "qkey_viol_cntr");
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(r->b.ibdev, r->b.port, &after));
	KUNIT_EXPECT_EQ(test, before.qkey_viol_cntr + 1, after.qkey_viol_cntr);
	expect_arrival(test, r, ah, 2, LEN);
}

static void u3_highest_bit_means_the_senders_own_q_key(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_sge sge;
	struct ib_ud_wr wr;
	struct ib_ah *ah;
	struct ib_wc wc;

	r->a.qkey = 0x1111;
	r->b.qkey = 0x1111;
	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	ah = rig_ah(test, &r->a, &r->b);
	sge = rig_sge(&r->a, 0, LEN);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 3, 0, RIG_BUF));

	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	wr.remote_qkey = 0x2222;
	expect_drop(test, r, &wr, &r->b, "qkey_viol_cntr");
	wr.remote_qkey = BIT(31) | 0x2222;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	/* The Q_Key of the request is not used, even if the receiver has the same. */
	r->b.qkey = BIT(31) | 0x2222;
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(r->b.qp, &(struct ib_qp_attr) {
					.qkey = BIT(31) | 0x2222 }, IB_QP_QKEY));
	expect_drop(test, r, &wr, &r->b, "qkey_viol_cntr");
}

static const enum ib_mtu mtus[] = { IB_MTU_256, IB_MTU_2048, IB_MTU_4096 };

static void mtu_name(const enum ib_mtu *mtu, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%d", ib_mtu_enum_to_int(*mtu));
}

KUNIT_ARRAY_PARAM(mtu, mtus, mtu_name);

static void u4_more_than_the_mtu_is_not_sent(struct kunit *test)
{
	int mtu = ib_mtu_enum_to_int(*(const enum ib_mtu *)test->param_value);
	struct rig *r = rig_alloc(test);
	struct ib_ud_wr wr;
	struct ib_sge sge;
	struct ib_ah *ah;
	char text[8];
	u64 before;

	rig_device(test, "kvr_a", 1, NULL);
	snprintf(text, sizeof(text), "%d", mtu);
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "mtu", text));
	rig_end_up(test, &r->a, "kvr_a", 1);
	rig_end_up(test, &r->b, "emu0", 1);
	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	ah = rig_ah(test, &r->a, &r->b);
	sge = rig_sge(&r->a, 0, mtu + 1);

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	before = rig_counter(test, &r->a, "port_xmit_packets");
	expect_drop(test, r, &wr, NULL, NULL);
	KUNIT_EXPECT_EQ(test, before, rig_counter(test, &r->a, "port_xmit_packets"));
	expect_arrival(test, r, ah, 2, mtu);
	KUNIT_EXPECT_EQ(test, before + 1, rig_counter(test, &r->a, "port_xmit_packets"));
}

static void u5_no_receive_posted(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct ib_ud_wr wr;

	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	expect_drop(test, r, &wr, &r->b, "rx_dropped");
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	/* A dropped datagram is not delivered later. */
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	expect_arrival(test, r, ah, 2, LEN);
}

/* The request may be on the sender's stack, and the receiver a process. */
static void completion_has_nothing_of_the_sender_but_immediate_data(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_ud_wr wr;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	rig_ud_wr(&wr, 1, NULL, 0, ah, &r->b);
	wr.wr.ex.imm_data = cpu_to_be32(0xfeedbeef);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_FALSE(test, wc.wc_flags & IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, 0, be32_to_cpu(wc.ex.imm_data));
}

static void u5_queue_pair_that_does_not_receive(struct kunit *test)
{
	static const enum ib_qp_state states[] = { IB_QPS_RESET, IB_QPS_INIT, IB_QPS_ERR };
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct ib_ud_wr wr;
	int i;

	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		if (states[i] == IB_QPS_INIT)
			KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
		else
			KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, states[i]));
		expect_drop(test, r, &wr, &r->b, "rx_dropped");
	}
}

static void u5_nobody_at_the_address(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct rig_end gone = r->b;
	struct ib_ud_wr wr;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	/* The QP does not exist, then it is of another type, then the port does not exist. */
	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	wr.remote_qpn = 0xabcdef;
	expect_drop(test, r, &wr, &r->b, "rx_dropped");
	r->init.qp_type = IB_QPT_RC;
	rig_make_qp(test, r, &gone);
	wr.remote_qpn = gone.qp->qp_num;
	expect_drop(test, r, &wr, &r->b, "rx_dropped");
	gone.lid = 0xbffe;
	gone.gid.raw[15] ^= 0x55;
	wr.ah = rig_ah(test, &r->a, &gone);
	wr.remote_qpn = r->b.qp->qp_num;
	expect_drop(test, r, &wr, NULL, NULL);
	expect_arrival(test, r, ah, 2, LEN);
}

static const enum ib_qp_state deaf_states[] = {
	IB_QPS_RESET, IB_QPS_INIT, IB_QPS_ERR,
};

static const char *const state_names[] = { "RESET", "INIT", "RTR", "RTS",
				     "SQD", "SQE", "ERR" };

KVT_NAMED_PARAM(deaf_state, deaf_states, state_names);

static void u5_receiver_is_not_ready(struct kunit *test)
{
	enum ib_qp_state state = *(const enum ib_qp_state *)test->param_value;
	struct rig *r = rig_ud(test, "emu0", "emu1");
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct ib_ud_wr wr;

	if (state == IB_QPS_INIT) {
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	} else {
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, state));
	}
	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	expect_drop(test, r, &wr, NULL, NULL);
}

static void receive_with_a_bad_key_fails_its_queue_pair(struct kunit *test)
{
	struct rig *r = rig_ud_of_param(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_sge sge = rig_sge(&r->b, 0, RIG_BUF);
	struct ib_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
	struct ib_wc wc;

	sge.lkey = 0x12345600;
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(r->b.qp, &wr, NULL));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
	rig_expect_no_event(test, &r->b);
}

static void u7_send_from_memory_that_goes_meanwhile(struct kunit *test)
{
	struct rig *r = rig_ud(test, "emu0", "emu1");
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct rig_meanwhile m = { .r = rig_beside(test, r), .err = -1 };
	struct ib_sge sge = { m.r->b.mr->iova, LEN, m.r->b.mr->lkey };
	struct ib_ud_wr wr;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 9, 0, RIG_GRH + LEN));
	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	kverbs_delay_set("emu_copy", rig_invalidate, &m);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, m.err);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	/* The receive is there for the next message. */
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
	expect_arrival(test, r, ah, 9, LEN);
}

static void bad_address_is_refused_at_once(struct kunit *test)
{
	struct rig *r = rig_ud(test, "emu0", "emu1");
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_ah *other = rig_ah(test, &r->b, &r->a);
	const struct ib_send_wr *bad = NULL;
	struct ib_ud_wr wr;

	rig_ud_wr(&wr, 1, NULL, 0, NULL, &r->b);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr.wr);
	/* An AH of another device. */
	wr.ah = other;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
	wr.ah = ah;
	wr.remote_qpn = 0x1000000;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
	/* UD QPs support sends only. */
	wr.remote_qpn = r->b.qp->qp_num;
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

static struct kunit_case emu_conform_ud_cases[] = {
	KUNIT_CASE_PARAM(u1_datagram_comes_with_its_header, net_gen_params),
	KUNIT_CASE_PARAM(u1_header_and_payload_cut_anywhere, few_net_gen_params),
	KUNIT_CASE_PARAM(u1_inline_with_immediate_data, few_net_gen_params),
	KUNIT_CASE_PARAM(u10_receiver_answers_by_the_completion, net_gen_params),
	KUNIT_CASE_PARAM(u10_answer_goes_out_from_the_same_vlan, vlan_type_gen_params),
	KUNIT_CASE(u1_a_queue_pair_sends_to_itself),
	KUNIT_CASE_PARAM(u2_short_receive_waits_for_a_short_message, few_net_gen_params),
	KUNIT_CASE(u2_receive_without_room_for_a_header),
	KUNIT_CASE_PARAM(u11_address_handle_of_another_pd_is_refused, few_net_gen_params),
	KUNIT_CASE_PARAM(u3_wrong_q_key_is_dropped_and_counted, few_net_gen_params),
	KUNIT_CASE(u3_highest_bit_means_the_senders_own_q_key),
	KUNIT_CASE_PARAM(u4_more_than_the_mtu_is_not_sent, mtu_gen_params),
	KUNIT_CASE_PARAM(u5_no_receive_posted, few_net_gen_params),
	KUNIT_CASE_PARAM(completion_has_nothing_of_the_sender_but_immediate_data, few_net_gen_params),
	KUNIT_CASE_PARAM(u5_queue_pair_that_does_not_receive, few_net_gen_params),
	KUNIT_CASE_PARAM(u5_nobody_at_the_address, few_net_gen_params),
	KUNIT_CASE_PARAM(u5_receiver_is_not_ready, deaf_state_gen_params),
	KUNIT_CASE_PARAM(receive_with_a_bad_key_fails_its_queue_pair, few_net_gen_params),
	KUNIT_CASE(u7_send_from_memory_that_goes_meanwhile),
	KUNIT_CASE(bad_address_is_refused_at_once),
	{}
};
KVT_SUITE(emu_conform_ud);

MODULE_DESCRIPTION("KUnit: datagrams of the software HCA");
MODULE_LICENSE("GPL");
