// SPDX-License-Identifier: GPL-2.0-only
/*
 * QP1, the GSI QP, of each port of the software HCA, and address handles, which are created
 * and used in any context.
 */
#include "emu/rig_net.h"
#include "lib/objects.h"

#define LEN		256	/* bytes of a MAD */
#define GSI_QPN		1
#define GSI_QKEY	0x80010000

KUNIT_ARRAY_PARAM_DESC(net, rig_nets, name);
KUNIT_ARRAY_PARAM_DESC(few_net, rig_few_nets, name);

static void make_gsi(struct kunit *test, struct rig *r, struct rig_end *e)
{
	r->init.qp_type = IB_QPT_GSI;
	r->init.port_num = e->port;
	e->qkey = GSI_QKEY;
	rig_make_qp(test, r, e);
	rig_connect_end(test, r, e, NULL);
}

/* Two ports of one device, each with its QP1. */
static struct rig *gsi_of_two_ports(struct kunit *test)
{
	struct rig *r = rig_alloc(test);

	rig_device(test, "kvr_a", 2, NULL);
	rig_end_up(test, &r->a, "kvr_a", 1);
	rig_end_up(test, &r->b, "kvr_a", 2);
	make_gsi(test, r, &r->a);
	make_gsi(test, r, &r->b);
	return r;
}

/* Sends a MAD from @from to @to, whose receive @id must complete with it. */
static void expect_arrival(struct kunit *test, struct rig_end *from,
			   struct rig_end *to, struct ib_ah *ah, u64 id,
			   struct ib_wc *wc)
{
	rig_fill(from->buf, LEN, 7);
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(from, ah, to, 71, 0, LEN));
	RIG_EXPECT_WC(test, from->scq, wc, 71, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, to->rcq, wc, id, IB_WC_SUCCESS);
	KUNIT_EXPECT_PTR_EQ(test, wc->qp, to->qp);
	KUNIT_EXPECT_EQ(test, from->qp->qp_num, wc->src_qp);
	KUNIT_EXPECT_EQ(test, to->port, wc->port_num);
	KUNIT_EXPECT_EQ(test, RIG_GRH + LEN, wc->byte_len);
	KUNIT_EXPECT_TRUE(test, rig_filled(to->buf + 8192 + RIG_GRH, LEN, 7));
}

static int gsi_recv(struct rig_end *e, u64 id)
{
	return rig_recv(e, id, 8192, RIG_GRH + LEN);
}

static void gsi_is_queue_pair_1_of_its_port(struct kunit *test)
{
	struct rig *r = gsi_of_two_ports(test);
	struct ib_ah *there = rig_ah(test, &r->a, &r->b);
	struct ib_ah *here = rig_ah(test, &r->a, &r->a);
	struct ib_ah *back = rig_ah(test, &r->b, &r->a);
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, GSI_QPN, r->a.qp->qp_num);
	KUNIT_EXPECT_EQ(test, GSI_QPN, r->b.qp->qp_num);
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->a, 1));
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 2));
	expect_arrival(test, &r->a, &r->b, there, 2, &wc);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.rcq));
	expect_arrival(test, &r->b, &r->a, back, 1, &wc);
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->a, 3));
	expect_arrival(test, &r->a, &r->a, here, 3, &wc);
}

static void gsi_serves_each_network(struct kunit *test)
{
	const struct rig_net *net = test->param_value;
	struct rig *r = rig_net_new(test, net);
	struct ib_wc wc;

	/* The ends may be on one port, which has one QP1: the other end is an ordinary UD QP. */
	r->a.qkey = GSI_QKEY;
	rig_make_ud(test, r, &r->a);
	make_gsi(test, r, &r->b);
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 2));
	expect_arrival(test, &r->a, &r->b, rig_ah(test, &r->a, &r->b), 2, &wc);
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->a, 3));
	expect_arrival(test, &r->b, &r->a, rig_ah(test, &r->b, &r->a), 3, &wc);
}

static void gsi_is_one_of_a_kind(struct kunit *test)
{
	struct rig *r = gsi_of_two_ports(test);
	struct ib_qp_init_attr init = r->init;
	struct rig_end again = r->a;

	init.send_cq = r->a.scq;
	init.recv_cq = r->a.rcq;
	init.port_num = 1;
	KUNIT_EXPECT_EQ(test, -EBUSY, PTR_ERR_OR_ZERO(ib_create_qp(r->a.pd, &init)));
	init.port_num = 2;
	KUNIT_EXPECT_EQ(test, -EBUSY, PTR_ERR_OR_ZERO(ib_create_qp(r->a.pd, &init)));
	init.port_num = 3;
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(ib_create_qp(r->a.pd, &init)));
	/* After QP1 of a port is destroyed, another one can be created. */
	rig_destroy_qp(test, &r->a);
	make_gsi(test, r, &again);
	KUNIT_EXPECT_EQ(test, GSI_QPN, again.qp->qp_num);
}

static void gsi_stays_at_its_port(struct kunit *test)
{
	struct rig *r = gsi_of_two_ports(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
	rig_connect_end(test, r, &r->b, NULL);
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 2));
	expect_arrival(test, &r->a, &r->b, ah, 2, &wc);
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->a, 3));
	expect_arrival(test, &r->b, &r->a, rig_ah(test, &r->b, &r->a), 3, &wc);
}

static void gsi_has_a_q_key_of_its_own(struct kunit *test)
{
	struct rig *r = gsi_of_two_ports(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	u64 before = rig_counter(test, &r->b, "qkey_viol_cntr");
	struct ib_qp_attr other = { .qkey = 0x1234 };
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct ib_ud_wr wr;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 2));
	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	wr.remote_qkey = 0x1234;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, before + 1, rig_counter(test, &r->b, "qkey_viol_cntr"));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	/* QP1 keeps its Q_Key, whatever modify_qp asks for: IBTA vol. 1, 3.5.3. */
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(r->b.qp, &other, IB_QP_QKEY));
	expect_arrival(test, &r->a, &r->b, ah, 2, &wc);
}

/* P_Key index 1 of port 1 matches index 3 of port 2; the P_Key at index 2 has no match. */
static void gsi_requests_name_their_p_key(struct kunit *test)
{
	struct rig *r = gsi_of_two_ports(test);
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	u64 before = rig_counter(test, &r->b, "bad_pkey_cntr");
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct ib_ud_wr wr;
	struct ib_wc wc;
	int i;

	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "pkeys", "1 0x0001"));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 2, "pkeys", "3 0x8001"));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "pkeys", "2 0x8002"));
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 0));
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 1));
	rig_ud_wr(&wr, 1, &sge, 1, ah, &r->b);
	for (i = 0; i < 2; i++) {
		wr.pkey_index = i;
		KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
		RIG_EXPECT_DELIVERED(test, r, &wc, 1, i);
		KUNIT_EXPECT_EQ(test, i ? 3 : 0, wc.pkey_index);
	}
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 2));
	wr.pkey_index = 2;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_EXPECT_EQ(test, before + 1, rig_counter(test, &r->b, "bad_pkey_cntr"));
	wr.pkey_index = 0xffff;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
}

static void gsi_hears_nothing_before_rtr_and_after_its_end(struct kunit *test)
{
	struct rig *r = gsi_of_two_ports(test);
	struct rig_end to = r->b;
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);
	struct ib_qp to_qp = { .qp_num = GSI_QPN };
	struct ib_wc wc;
	u64 dropped;

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 2));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	rig_destroy_qp(test, &r->b);
	to.qp = &to_qp;
	dropped = rig_counter(test, &to, "rx_dropped");
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &to, 3, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, dropped + 1, rig_counter(test, &to, "rx_dropped"));
}

/* --- address handles --- */

static void ah_call_locked(void (*fn)(void *arg), void *arg)
{
	static DEFINE_SPINLOCK(lock);
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	fn(arg);
	spin_unlock_irqrestore(&lock, flags);
}

static const struct kvt_run ah_contexts[] = {
	{ "under a spin lock", ah_call_locked },
	{ "soft interrupt", kvt_run_in_softirq },
	{ "hard interrupt", kvt_run_in_hardirq },
};

KUNIT_ARRAY_PARAM_DESC(ah_context, ah_contexts, name);

/* Argument of ah_live(), which creates, uses and destroys an AH. */
struct ah_life {
	struct rig *r;
	int wrong;	/* number of unexpected results */
};

static bool ah_is(struct ib_ah *ah, const struct rdma_ah_attr *attr)
{
	struct rdma_ah_attr got = {};

	return !rdma_query_ah(ah, &got) && got.type == attr->type &&
	       rdma_ah_get_port_num(&got) == rdma_ah_get_port_num(attr) &&
	       rdma_ah_get_dlid(&got) == rdma_ah_get_dlid(attr) &&
	       rdma_ah_get_sl(&got) == rdma_ah_get_sl(attr) &&
	       rdma_ah_get_ah_flags(&got) == rdma_ah_get_ah_flags(attr) &&
	       got.grh.flow_label == attr->grh.flow_label &&
	       got.grh.hop_limit == attr->grh.hop_limit &&
	       got.grh.traffic_class == attr->grh.traffic_class &&
	       got.grh.sgid_index == attr->grh.sgid_index &&
	       !memcmp(&got.grh.dgid, &attr->grh.dgid, sizeof(got.grh.dgid));
}

/* The AH leads to end A itself, is changed to lead to end B, used for a send, destroyed. */
static void ah_live(void *arg)
{
	struct ah_life *life = arg;
	struct rig *r = life->r;
	struct rdma_ah_attr self, peer;
	struct ib_ah *ah;

	rig_ah_attr(&self, &r->a, &r->a);
	rig_ah_attr(&peer, &r->a, &r->b);
	ah = rdma_create_ah(r->a.pd, &self, 0);
	if (IS_ERR(ah)) {
		life->wrong++;
		return;
	}
	life->wrong += !ah_is(ah, &self);
	life->wrong += rdma_modify_ah(ah, &peer) || !ah_is(ah, &peer);
	life->wrong += rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN) != 0;
	rdma_destroy_ah(ah, 0);
}

static void ah_lives_in_any_context(struct kunit *test)
{
	const struct kvt_run *ctx = test->param_value;
	/* Indices: InfiniBand, InfiniBand with a GRH, RoCE. */
	static const int nets[] = { 1, 3, 5 };
	int i, k;

	for (k = 0; k < ARRAY_SIZE(nets); k++) {
		struct ah_life life = {
			.r = rig_net_new(test, &rig_nets[nets[k]]),
		};
		struct rig *r = life.r;
		struct ib_wc wc;

		rig_make_ud(test, r, &r->a);
		rig_make_ud(test, r, &r->b);
		for (i = 0; i < 20; i++) {
			KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, i));
			ctx->run(ah_live, &life);
			RIG_EXPECT_DELIVERED(test, r, &wc, 1, i);
		}
		KUNIT_EXPECT_EQ(test, 0, life.wrong);
	}
}

static void ah_of_a_posted_send_can_change_or_go(struct kunit *test)
{
	struct rig *r = rig_net_new(test, test->param_value);
	struct rdma_ah_attr self;
	struct ib_ah *ah;
	struct ib_wc wc;

	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	ah = rig_ah(test, &r->a, &r->b);
	rig_ah_attr(&self, &r->a, &r->a);
	rdma_ah_set_sl(&self, RIG_SL + 1);
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 2));
	KUNIT_ASSERT_EQ(test, 0, gsi_recv(&r->b, 3));
	/* In state SQD, sends are not executed. */
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rdma_modify_ah(ah, &self));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_EQ(test, RIG_SL, wc.sl);

	rig_ah_put(test, ah);
	ah = rig_ah(test, &r->a, &r->b);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
	rig_ah_put(test, ah);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 3);
}

static int ah_error(struct rig_end *e, struct rdma_ah_attr *attr)
{
	struct ib_ah *ah = rdma_create_ah(e->pd, attr, 0);

	if (IS_ERR(ah))
		return PTR_ERR(ah);
	rdma_destroy_ah(ah, 0);
	return 0;
}

static void ah_refuses_bad_addresses(struct kunit *test)
{
	const struct rig_net *net = test->param_value;
	struct rig *r = rig_net_new(test, net);
	struct rdma_ah_attr good, bad;
	struct ib_ah *ah = rig_ah(test, &r->a, &r->b);

	rig_ah_attr(&good, &r->a, &r->b);
	bad = good;
	rdma_ah_set_port_num(&bad, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, ah_error(&r->a, &bad));
	KUNIT_EXPECT_EQ(test, -EINVAL, rdma_modify_ah(ah, &bad));
	rdma_ah_set_port_num(&bad, 9);
	KUNIT_EXPECT_EQ(test, -EINVAL, ah_error(&r->a, &bad));
	bad = good;
	if (rig_net_is_roce(net))
		bad.ah_flags = 0;
	else
		rdma_ah_set_dlid(&bad, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, ah_error(&r->a, &bad));
	KUNIT_EXPECT_EQ(test, -EINVAL, rdma_modify_ah(ah, &bad));
	if (net->kind != RIG_NET_IB) {
		bad = good;
		bad.grh.sgid_index = 200;
		KUNIT_EXPECT_NE(test, 0, ah_error(&r->a, &bad));
	}
	/* The failed changes have left the AH as it was. */
	KUNIT_EXPECT_TRUE(test, ah_is(ah, &good));
}

static struct kunit_case emu_conform_gsi_cases[] = {
	KUNIT_CASE(gsi_is_queue_pair_1_of_its_port),
	KUNIT_CASE_PARAM(gsi_serves_each_network, net_gen_params),
	KUNIT_CASE(gsi_is_one_of_a_kind),
	KUNIT_CASE(gsi_stays_at_its_port),
	KUNIT_CASE(gsi_has_a_q_key_of_its_own),
	KUNIT_CASE(gsi_requests_name_their_p_key),
	KUNIT_CASE(gsi_hears_nothing_before_rtr_and_after_its_end),
	KUNIT_CASE_PARAM(ah_lives_in_any_context, ah_context_gen_params),
	KUNIT_CASE_PARAM(ah_of_a_posted_send_can_change_or_go, few_net_gen_params),
	KUNIT_CASE_PARAM(ah_refuses_bad_addresses, few_net_gen_params),
	{}
};
KVT_SUITE(emu_conform_gsi);
