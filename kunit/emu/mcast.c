// SPDX-License-Identifier: GPL-2.0-only
/*
 * Multicast groups of the software HCA: which QPs get a copy of a message, and which do not.
 * The name of a case starts with the row of the conformance table that it checks.
 */
#include <linux/inet.h>
#include <net/ipv6.h>

#include "emu/rig_net.h"
#include "lib/objects.h"

#define LEN		100
#define MEMBERS		4
#define GROUP_LID	0xc123
#define CHANGES		100

/* Multicast needs a global route: the networks without a GRH are left out. */
KVT_PART_PARAM_DESC(mc_net, rig_nets, 2, ARRAY_SIZE(rig_nets), name);
KVT_PART_PARAM_DESC(few_mc_net, rig_few_nets, 1, ARRAY_SIZE(rig_few_nets), name);

/* A multicast group, its sender and its members. */
struct group {
	/* The rig; the QP of &rig.a sends, and is no member unless the case attaches it. */
	struct rig *r;
	union ib_gid gid;	/* MGID of the group */
	/* Destination of messages: &rig_end.gid and &rig_end.lid are the group's. */
	struct rig_end to;
	struct ib_ah *ah;	/* AH of the group */
	/* QPs attached to the group, alternately on the devices of @r->a and @r->b. */
	struct rig_end member[MEMBERS];
	struct ib_wc wc;	/* completion of a send, if that was there when the post returned */
	bool at_once;		/* it was */
};

/* With RoCE v2 over IPv4 the MGID is a mapped IPv4 address. */
static void group_gid(union ib_gid *gid, enum rig_net_kind kind, u8 last)
{
	memset(gid, 0, sizeof(*gid));
	if (kind == RIG_NET_ROCE_V2_IP4) {
		ipv6_addr_set_v4mapped(in_aton("239.1.2.3"), (struct in6_addr *)gid);
	} else {
		gid->raw[0] = 0xff;
		gid->raw[1] = 0x12;
	}
	gid->raw[15] = last;
}

static struct group *group_new(struct kunit *test, const struct rig_net *net)
{
	struct group *g = kvt_zalloc(test, sizeof(*g));

	g->r = rig_net_new(test, net);
	group_gid(&g->gid, net->kind, 3);
	return g;
}

static void group_up(struct kunit *test, struct group *g)
{
	struct rig *r = g->r;
	int i;

	rig_make_ud(test, r, &r->a);
	for (i = 0; i < MEMBERS; i++) {
		g->member[i] = i % 2 ? r->b : r->a;
		rig_make_ud(test, r, &g->member[i]);
		rig_attach(test, g->member[i].qp, &g->gid, GROUP_LID);
	}
	g->to = r->a;
	g->to.gid = g->gid;
	g->to.lid = GROUP_LID;
	g->ah = rig_ah(test, &r->a, &g->to);
}

static struct group *group_of_param(struct kunit *test)
{
	struct group *g = group_new(test, test->param_value);

	group_up(test, g);
	return g;
}

static struct group *group_between_two(struct kunit *test)
{
	struct group *g = group_new(test, &rig_nets[3]);

	group_up(test, g);
	return g;
}

static void group_wr(struct group *g, struct ib_ud_wr *wr, u64 id, struct ib_sge *sge)
{
	*sge = rig_sge(&g->r->a, 0, LEN);
	rig_ud_wr(wr, id, sge, 1, g->ah, &g->to);
	wr->remote_qpn = IB_MULTICAST_QPN;
	wr->remote_qkey = RIG_QKEY;
}

static void group_send(struct kunit *test, struct group *g)
{
	struct ib_ud_wr wr;
	struct ib_sge sge;
	struct ib_wc wc;

	group_wr(g, &wr, 1, &sge);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(g->r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, g->r->a.scq, &wc, 1, IB_WC_SUCCESS);
}

static size_t member_offset(int i)
{
	return 4096 * (i + 1);
}

static void member_recv(struct kunit *test, struct group *g, int i)
{
	struct rig_end *e = &g->member[i];

	memset(e->buf + member_offset(i), 0xee, 4096);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(e, 10 + i, member_offset(i), 1024));
}

/* Expects exactly one copy at each member in the bit mask @which, and none elsewhere. */
static void expect_copies(struct kunit *test, struct group *g, u32 which)
{
	u32 seen = 0;
	struct ib_wc wc;
	int i, side;

	for (side = 0; side < 2; side++) {
		struct rig_end *e = side ? &g->r->b : &g->r->a;

		while (ib_poll_cq(e->rcq, 1, &wc) == 1) {
			i = wc.wr_id - 10;
			KUNIT_ASSERT_LT(test, i, MEMBERS + 1);
			KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
			KUNIT_EXPECT_FALSE(test, seen & BIT(i));
			seen |= BIT(i);
			KUNIT_EXPECT_EQ(test, RIG_GRH + LEN, wc.byte_len);
			KUNIT_EXPECT_EQ(test, g->r->a.qp->qp_num, wc.src_qp);
			KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_GRH);
			KUNIT_EXPECT_TRUE(test, rig_filled(e->buf +
					  member_offset(i) + RIG_GRH, LEN, 9));
		}
	}
	KUNIT_EXPECT_EQ(test, which, seen);
}

#define ALL_MEMBERS	(BIT(MEMBERS) - 1)

static void recv_all(struct kunit *test, struct group *g)
{
	int i;

	rig_fill(g->r->a.buf, LEN, 9);
	for (i = 0; i < MEMBERS; i++)
		member_recv(test, g, i);
}

/* Expects the group's address as the destination in the header that member @i received. */
static void expect_group(struct kunit *test, struct group *g, int i)
{
	const struct rig_net *net = test->param_value;
	union rdma_network_hdr *hdr = (void *)g->member[i].buf +
				      member_offset(i);

	if (net->kind == RIG_NET_ROCE_V2_IP4)
		KUNIT_EXPECT_MEMEQ(test, &hdr->roce4grh.daddr, g->gid.raw + 12, 4);
	else
		KUNIT_EXPECT_MEMEQ(test, &hdr->ibgrh.dgid, &g->gid, sizeof(g->gid));
}

static void u8_each_member_gets_one_copy(struct kunit *test)
{
	struct group *g = group_of_param(test);
	int round, i;

	/* Each member has one receive more than it gets copies: a second copy would show. */
	recv_all(test, g);
	for (round = 0; round < 3; round++) {
		recv_all(test, g);
		/* The sender is no member: it must not get a copy. */
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&g->r->a, 10 + MEMBERS, 0, 1024));
		rig_fill(g->r->a.buf, LEN, 9);
		group_send(test, g);
		expect_copies(test, g, ALL_MEMBERS);
		for (i = 0; i < MEMBERS; i++)
			expect_group(test, g, i);
	}
}

static void u8_sender_that_is_a_member_gets_a_copy(struct kunit *test)
{
	struct group *g = group_of_param(test);

	rig_attach(test, g->r->a.qp, &g->gid, GROUP_LID);
	recv_all(test, g);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&g->r->a, 10 + MEMBERS, member_offset(MEMBERS), 1024));
	group_send(test, g);
	expect_copies(test, g, ALL_MEMBERS | BIT(MEMBERS));
}

static void u8_sender_can_block_its_own_copy(struct kunit *test)
{
	struct group *g = group_new(test, test->param_value);
	struct rig_end *e;

	/* Set for all QPs: members must still get what another QP sends. */
	g->r->init.create_flags = IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	group_up(test, g);
	rig_attach(test, g->r->a.qp, &g->gid, GROUP_LID);
	e = &g->r->a;
	recv_all(test, g);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(e, 10 + MEMBERS, member_offset(MEMBERS), 1024));
	group_send(test, g);
	expect_copies(test, g, ALL_MEMBERS);
}

static void u8_other_groups_are_not_heard(struct kunit *test)
{
	struct group *g = group_of_param(test);
	const struct rig_net *net = test->param_value;
	struct rig_end to = g->to;
	struct ib_ah *ah = g->ah;

	recv_all(test, g);
	group_gid(&to.gid, net->kind, 4);
	g->ah = rig_ah(test, &g->r->a, &to);
	group_send(test, g);
	expect_copies(test, g, 0);
	if (!rig_net_is_roce(net)) {
		/* The same MGID with another LID is another group. */
		to = g->to;
		to.lid++;
		g->ah = rig_ah(test, &g->r->a, &to);
		group_send(test, g);
		expect_copies(test, g, 0);
	}
	g->ah = ah;
	group_send(test, g);
	expect_copies(test, g, ALL_MEMBERS);
}

static void u8_multicast_without_a_global_route(struct kunit *test)
{
	struct group *g = group_between_two(test);
	struct rig_end from = g->r->a;

	recv_all(test, g);
	from.gid_index = -1;
	g->ah = rig_ah(test, &from, &g->to);
	group_send(test, g);
	expect_copies(test, g, 0);
}

static void u8_members_fail_one_by_one(struct kunit *test)
{
	struct group *g = group_of_param(test);
	struct ib_qp_attr other = { .qkey = 1 };
	u64 qkey = rig_counter(test, &g->r->a, "qkey_viol_cntr");
	u64 dropped = rig_counter(test, &g->r->b, "rx_dropped");

	rig_fill(g->r->a.buf, LEN, 9);
	/* Member 0 has another Q_Key, 1 has no receive, 2 is in state ERR. */
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(g->member[0].qp, &other, IB_QP_QKEY));
	KUNIT_ASSERT_EQ(test, 0, rig_to(g->member[2].qp, IB_QPS_ERR));
	member_recv(test, g, 0);
	member_recv(test, g, 3);
	group_send(test, g);
	expect_copies(test, g, BIT(3));
	KUNIT_EXPECT_EQ(test, qkey + 1, rig_counter(test, &g->r->a, "qkey_viol_cntr"));
	KUNIT_EXPECT_EQ(test, dropped + 1, rig_counter(test, &g->r->b, "rx_dropped"));
}

static void u8_member_in_reset_or_init_gets_nothing(struct kunit *test)
{
	struct group *g = group_of_param(test);
	struct rig *r = g->r;

	recv_all(test, g);
	KUNIT_ASSERT_EQ(test, 0, rig_to(g->member[1].qp, IB_QPS_RESET));
	group_send(test, g);
	expect_copies(test, g, ALL_MEMBERS & ~BIT(1));
	/* The QP in RESET is still a member, but does not receive before RTR. */
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &g->member[1]));
	recv_all(test, g);
	group_send(test, g);
	expect_copies(test, g, ALL_MEMBERS & ~BIT(1));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &g->member[1], NULL));
	member_recv(test, g, 0);
	member_recv(test, g, 2);
	member_recv(test, g, 3);
	group_send(test, g);
	expect_copies(test, g, ALL_MEMBERS);
}

static void u8_attach_and_detach_know_their_members(struct kunit *test)
{
	struct rig *r = rig_ud(test, "emu0", "emu1");
	struct rig_end fresh = r->a;
	struct rig_attachment *one, *two;
	union ib_gid gid, other;

	group_gid(&gid, RIG_NET_IB_GRH, 3);
	group_gid(&other, RIG_NET_IB_GRH, 4);
	one = rig_attach(test, r->a.qp, &gid, GROUP_LID);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_attach_mcast(r->a.qp, &gid, GROUP_LID));
	/* A QP can be in many groups, and a group can have many members. */
	two = rig_attach(test, r->a.qp, &other, GROUP_LID);
	rig_attach(test, r->b.qp, &gid, GROUP_LID);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_detach_mcast(r->b.qp, &other, GROUP_LID));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_detach_mcast(r->a.qp, &gid, GROUP_LID + 1));
	KUNIT_EXPECT_EQ(test, 0, rig_detach(one));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_detach_mcast(r->a.qp, &gid, GROUP_LID));
	KUNIT_EXPECT_EQ(test, 0, rig_detach(two));
	/* A QP need not have a port yet, but be UD. */
	rig_make_qp(test, r, &fresh);
	rig_attach(test, fresh.qp, &gid, GROUP_LID);
	r->init.qp_type = IB_QPT_UC;
	rig_make_qp(test, r, &fresh);
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &fresh));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_attach_mcast(fresh.qp, &gid, GROUP_LID));
}

#define GROUPS	4096	/* max_mcast_grp */

/* A QP in groups 1 to @nr, which leaves them all at the end of the case. */
struct joiner {
	struct ib_qp *qp;
	u32 nr;
};

static int join(struct joiner *j)
{
	union ib_gid gid;
	int err;

	group_gid(&gid, RIG_NET_IB_GRH, 0);
	gid.global.interface_id = cpu_to_be64(j->nr + 1);
	err = ib_attach_mcast(j->qp, &gid, GROUP_LID);
	j->nr += !err;
	return err;
}

/* Until there are as many as a device can be in. Returns what the next one says. */
static int join_all(struct joiner *j)
{
	int err;

	do {
		err = join(j);
	} while (!err && j->nr <= GROUPS);
	return err;
}

static int leave(struct joiner *j)
{
	union ib_gid gid;

	group_gid(&gid, RIG_NET_IB_GRH, 0);
	gid.global.interface_id = cpu_to_be64(j->nr--);
	return ib_detach_mcast(j->qp, &gid, GROUP_LID);
}

static void leave_all(void *arg)
{
	struct joiner *j = arg;

	while (j->nr)
		leave(j);
}

static struct joiner *joiner_new(struct kunit *test, struct ib_qp *qp)
{
	struct joiner *j = kvt_zalloc(test, sizeof(*j));

	j->qp = qp;
	kvt_defer(test, leave_all, j);
	return j;
}

/* However many groups a device is in, another one may be in as many, the same or not. */
static void u8_each_device_has_its_own_groups(struct kunit *test)
{
	struct rig *r = rig_ud(test, "emu0", "emu1");
	struct joiner *a = joiner_new(test, r->a.qp), *b = joiner_new(test, r->b.qp);
	struct rig_end beside = r->a;
	struct joiner *c;

	KUNIT_ASSERT_EQ(test, GROUPS, r->a.ibdev->attrs.max_mcast_grp);
	rig_make_ud(test, r, &beside);
	c = joiner_new(test, beside.qp);
	KUNIT_EXPECT_EQ(test, -ENOSPC, join_all(a));
	KUNIT_EXPECT_EQ(test, GROUPS, a->nr);
	KUNIT_EXPECT_EQ(test, -ENOSPC, join_all(b));
	KUNIT_EXPECT_EQ(test, GROUPS, b->nr);
	/* A second QP of the device takes no more groups, nor does it give one back. */
	KUNIT_EXPECT_EQ(test, 0, join(c));
	KUNIT_EXPECT_EQ(test, 0, leave(c));
	KUNIT_EXPECT_EQ(test, -ENOSPC, join(a));
	KUNIT_EXPECT_EQ(test, 0, leave(a));
	KUNIT_EXPECT_EQ(test, 0, join(a));
}

static void q5_member_of_a_group_is_not_destroyed(struct kunit *test)
{
	struct rig *r = rig_ud(test, "emu0", "emu1");
	struct rig_attachment *one, *two;
	union ib_gid gid, other;

	group_gid(&gid, RIG_NET_IB_GRH, 3);
	group_gid(&other, RIG_NET_IB_GRH, 4);
	one = rig_attach(test, r->a.qp, &gid, GROUP_LID);
	two = rig_attach(test, r->a.qp, &other, GROUP_LID);
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_destroy_qp(r->a.qp));
	KUNIT_ASSERT_EQ(test, 0, rig_detach(one));
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_destroy_qp(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
	KUNIT_ASSERT_EQ(test, 0, rig_detach(two));
	/* If this fails, the PD cannot be freed at the end of the case. */
	rig_destroy_qp(test, &r->a);
}

/* Thread: sends to the group until told to stop. Returns the number of messages, or -EIO. */
static int storm(void *arg)
{
	struct group *g = arg;
	struct ib_ud_wr wr;
	struct ib_sge sge;
	struct ib_wc wc;
	int sent = 0;
	int err;

	group_wr(g, &wr, 1, &sge);
	while (!kvt_should_stop() && sent < INT_MAX) {
		err = ib_post_send(g->r->a.qp, &wr.wr, NULL);
		/* The queue is full if a runner of the HCA is late. */
		if (err && err != -ENOMEM)
			return -EIO;
		sent += !err;
		while (ib_poll_cq(g->r->a.scq, 1, &wc) == 1)
			if (wc.status != IB_WC_SUCCESS)
				return -EIO;
		kvt_yield();
	}
	return sent;
}

/* A new QP joins the group, receives a message, leaves and is destroyed at once. */
static void join_and_leave(struct kunit *test, struct group *g)
{
	struct rig_end e = g->r->b;
	struct ib_wc wc;

	rig_make_ud(test, g->r, &e);
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&e, 50, member_offset(8), 1024));
	KUNIT_ASSERT_EQ(test, 0, ib_attach_mcast(e.qp, &g->gid, GROUP_LID));
	if (!rig_poll(e.rcq, &wc))
		KUNIT_FAIL(test, "nothing heard");
	KUNIT_ASSERT_EQ(test, 0, ib_detach_mcast(e.qp, &g->gid, GROUP_LID));
	KUNIT_EXPECT_EQ(test, 50, wc.wr_id);
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, e.qp);
	rig_destroy_qp(test, &e);
}

static void u8_members_come_and_go_under_traffic(struct kunit *test)
{
	struct group *g = group_between_two(test);
	u64 i, count = kvt_count(CHANGES);
	struct kvt_thread *t = kvt_thread_start(test, kvt_other_cpu(), storm, g);

	for (i = 0; i < count; i++)
		join_and_leave(test, g);
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(t));
}

/* More members than a poster makes copies for, in any context: a runner does it. */
static const u32 sizes[] = { 1, 8, 9, 200 };

KVT_NUMBER_PARAM(size, sizes, "%u");

static void post_to_group(void *arg)
{
	struct group *g = arg;
	struct ib_ud_wr wr;
	struct ib_sge sge;

	group_wr(g, &wr, 1, &sge);
	ib_post_send(g->r->a.qp, &wr.wr, NULL);
	g->at_once = ib_poll_cq(g->r->a.scq, 1, &g->wc) == 1;
}

static void u8_large_groups_get_a_copy_each(struct kunit *test)
{
	u32 size = *(const u32 *)test->param_value, i, round, got;
	struct group *g = group_new(test, &rig_nets[3]);
	struct rig *r = g->r;
	struct rig_end *member = kunit_kcalloc(test, size, sizeof(*member), GFP_KERNEL);
	struct ib_wc wc;

	KUNIT_ASSERT_NOT_NULL(test, member);
	rig_make_ud(test, r, &r->a);
	g->to = r->a;
	g->to.gid = g->gid;
	g->to.lid = GROUP_LID;
	g->ah = rig_ah(test, &r->a, &g->to);
	for (i = 0; i < size; i++) {
		member[i] = r->b;
		rig_make_ud(test, r, &member[i]);
		rig_attach(test, member[i].qp, &g->gid, GROUP_LID);
	}
	for (round = 0; round < 3; round++) {
		for (i = 0; i < size; i++)
			KUNIT_ASSERT_EQ(test, 0, rig_recv(&member[i], i, SZ_4K, 1024));
		if (round == 1)
			kvt_run_in_hardirq(post_to_group, g);
		else if (round == 2)
			kvt_run_in_softirq(post_to_group, g);
		else
			post_to_group(g);
		/* A runner on another CPU may be fast. */
		if (round != 1 && size <= 8)
			KUNIT_EXPECT_TRUE(test, g->at_once);
		else if (!kvt_other_cpu())
			KUNIT_EXPECT_FALSE(test, g->at_once);
		if (!g->at_once)
			KUNIT_ASSERT_TRUE(test, rig_poll(r->a.scq, &g->wc));
		KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, g->wc.status);
		for (got = 0; got < size && rig_poll(r->b.rcq, &wc); got++)
			KUNIT_EXPECT_PTR_EQ(test, wc.qp, member[wc.wr_id].qp);
		KUNIT_EXPECT_EQ(test, size, got);
		KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	}
}

static struct kunit_case emu_conform_mcast_cases[] = {
	KUNIT_CASE_PARAM(u8_each_member_gets_one_copy, mc_net_gen_params),
	KUNIT_CASE_PARAM(u8_sender_that_is_a_member_gets_a_copy, few_mc_net_gen_params),
	KUNIT_CASE_PARAM(u8_sender_can_block_its_own_copy, few_mc_net_gen_params),
	KUNIT_CASE_PARAM(u8_other_groups_are_not_heard, few_mc_net_gen_params),
	KUNIT_CASE(u8_multicast_without_a_global_route),
	KUNIT_CASE_PARAM(u8_members_fail_one_by_one, few_mc_net_gen_params),
	KUNIT_CASE_PARAM(u8_member_in_reset_or_init_gets_nothing, few_mc_net_gen_params),
	KUNIT_CASE(u8_attach_and_detach_know_their_members),
	KUNIT_CASE(u8_each_device_has_its_own_groups),
	KUNIT_CASE(q5_member_of_a_group_is_not_destroyed),
	KUNIT_CASE(u8_members_come_and_go_under_traffic),
	KUNIT_CASE_PARAM(u8_large_groups_get_a_copy_each, size_gen_params),
	{}
};
KVT_SUITE(emu_conform_mcast);
