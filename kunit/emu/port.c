// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports of the software HCA: partitions, devices with several ports, ports that are down,
 * and loopback. Names of cases begin with the row of the conformance table, if there is one.
 */
#include <linux/ethtool.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "emu/rig_net.h"
#include "lib/objects.h"

#define LEN		100

KUNIT_ARRAY_PARAM_DESC(net, rig_nets, name);
KUNIT_ARRAY_PARAM_DESC(few_net, rig_few_nets, name);

/* P_Keys of the two ends, and whether packets with them are accepted. */
struct partition {
	u16 from;
	u16 to;
	bool heard;
};

static const struct partition partitions[] = {
	{ 0x8123, 0x8123, true },
	{ 0x8123, 0x0123, true },
	{ 0x0123, 0x8123, true },
	{ 0x0123, 0x0123, false },
	{ 0x8123, 0x8124, false },
	{ 0x8123, 0x0124, false },
	{ 0x7fff, 0xffff, true },
	{ 0x8000, 0x8000, false },
	{ 0x8123, 0x0000, false },
};

static void partition_name(const struct partition *p, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%04x to %04x", p->from, p->to);
}

KUNIT_ARRAY_PARAM(partition, partitions, partition_name);

static void set_pkey(struct kunit *test, const char *name, u16 pkey)
{
	char text[16];

	snprintf(text, sizeof(text), "1 %#x", pkey);
	KUNIT_ASSERT_EQ(test, 0, rig_port_write(name, 1, "pkeys", text));
}

/* Two devices whose P_Key index 1, which their QPs use, holds the P_Keys of the case. */
static struct rig *rig_of_partition(struct kunit *test)
{
	const struct partition *p = test->param_value;
	struct rig *r = rig_alloc(test);

	rig_device(test, "kvr_a", 1, NULL);
	rig_device(test, "kvr_b", 1, NULL);
	set_pkey(test, "kvr_a", p->from);
	set_pkey(test, "kvr_b", p->to);
	rig_end_up(test, &r->a, "kvr_a", 1);
	rig_end_up(test, &r->b, "kvr_b", 1);
	r->a.pkey_index = 1;
	r->b.pkey_index = 1;
	return r;
}

static void r25_datagrams_stay_in_their_partition(struct kunit *test)
{
	const struct partition *p = test->param_value;
	struct rig *r = rig_of_partition(test);
	struct ib_port_attr before = {}, after = {};
	struct ib_ah *ah;
	struct ib_wc wc;

	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	ah = rig_ah(test, &r->a, &r->b);
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(r->b.ibdev, 1, &before));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(r->b.ibdev, 1, &after));
	KUNIT_EXPECT_EQ(test, before.bad_pkey_cntr + !p->heard, after.bad_pkey_cntr);
	if (!p->heard) {
		KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
		return;
	}
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, wc.pkey_index);
}

static void r25_connections_stay_in_their_partition(struct kunit *test)
{
	const struct partition *p = test->param_value;
	struct rig *r = rig_of_partition(test);
	struct ib_wc wc;

	r->timeout = 2;
	r->retry_cnt = 2;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, p->heard ? IB_WC_SUCCESS : IB_WC_RETRY_EXC_ERR);
	if (!p->heard) {
		KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
		KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
		return;
	}
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 1, wc.pkey_index);
}

static const struct partition moves[] = { { 0x8123, 0x8123 } };

KUNIT_ARRAY_PARAM(move, moves, partition_name);

static void r25_partitions_change_at_run_time(struct kunit *test)
{
	struct rig *r = rig_of_partition(test);
	struct ib_ah *ah;
	struct ib_wc wc;
	int i;

	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	ah = rig_ah(test, &r->a, &r->b);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	for (i = 0; i < 4; i++) {
		set_pkey(test, i & 1 ? "kvr_b" : "kvr_a", 0x8200 + i / 2);
		KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		/* After even steps only the sender has the new P_Key, after odd ones both. */
		if (!(i & 1)) {
			KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
			continue;
		}
		RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	}
}

/* Two ports of one device. */
static struct rig *rig_of_two_ports(struct kunit *test)
{
	struct rig *r = rig_alloc(test);

	rig_device(test, "kvr_a", 2, NULL);
	rig_end_up(test, &r->a, "kvr_a", 1);
	rig_end_up(test, &r->b, "kvr_a", 2);
	return r;
}

static void datagrams_reach_the_port_they_are_for(struct kunit *test)
{
	struct rig *r = rig_of_two_ports(test);
	struct ib_ah *ah, *wrong;
	struct ib_ud_wr wr;
	struct ib_wc wc;

	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	ah = rig_ah(test, &r->a, &r->b);
	KUNIT_EXPECT_NE(test, r->a.lid, r->b.lid);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_EQ(test, 2, wc.port_num);
	KUNIT_EXPECT_EQ(test, r->a.lid, wc.slid);

	/* The destination QP exists, but not at the port that is addressed. */
	wrong = rig_ah(test, &r->a, &r->a);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 3, 0, RIG_BUF));
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, wrong, &r->b, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	/* A QP cannot send with an AH of another port. */
	rig_ud_wr(&wr, 1, NULL, 0, rig_ah(test, &r->b, &r->a), &r->b);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
}

static void connection_joins_two_ports_of_a_device(struct kunit *test)
{
	struct rig *r = rig_of_two_ports(test);
	struct ib_wc wc;
	int i;

	r->timeout = 2;
	r->retry_cnt = 2;
	rig_start(test, r);
	for (i = 0; i < 2; i++) {
		struct rig_end *from = i ? &r->b : &r->a;
		struct rig_end *to = i ? &r->a : &r->b;

		KUNIT_ASSERT_EQ(test, 0, rig_recv(to, 2, 0, LEN));
		KUNIT_ASSERT_EQ(test, 0, rig_send(from, 1, 0, LEN));
		RIG_EXPECT_WC(test, from->scq, &wc, 1, IB_WC_SUCCESS);
		RIG_EXPECT_WC(test, to->rcq, &wc, 2, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, to->port, wc.port_num);
	}
}

static void connection_to_the_wrong_port_has_no_answer(struct kunit *test)
{
	struct rig *r = rig_of_two_ports(test);
	struct ib_wc wc;
	u16 lid;

	r->timeout = 2;
	r->retry_cnt = 2;
	rig_make_qps(test, r);
	lid = r->b.lid;
	/* The first end is connected to the second end's QPN at the first end's LID. */
	r->b.lid = r->a.lid;
	rig_connect_end(test, r, &r->a, &r->b);
	r->b.lid = lid;
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

/* The device whose port goes down. */
static const char *const down_devices[] = { "kvr_a", "kvr_b" };

static void down_name(const char *const *name, char *desc)
{
	strscpy(desc, name == down_devices ? "sender" : "receiver", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(down, down_devices, down_name);

static struct rig *rig_of_own_devices(struct kunit *test)
{
	struct rig *r = rig_alloc(test);

	rig_device(test, "kvr_a", 1, NULL);
	rig_device(test, "kvr_b", 1, NULL);
	rig_end_up(test, &r->a, "kvr_a", 1);
	rig_end_up(test, &r->b, "kvr_b", 1);
	return r;
}

static void port_is(struct kunit *test, const char *state)
{
	const char *const *name = test->param_value;

	KUNIT_ASSERT_EQ(test, 0, rig_port_write(*name, 1, "state", state));
}

static void datagram_is_lost_while_a_port_is_down(struct kunit *test)
{
	struct rig *r = rig_of_own_devices(test);
	static const char *const states[] = { "down", "init", "armed" };
	struct ib_ah *ah;
	struct ib_wc wc;
	int i;

	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	ah = rig_ah(test, &r->a, &r->b);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		port_is(test, states[i]);
		KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 1, 0, LEN));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	}
	port_is(test, "active");
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, ah, &r->b, 3, 0, LEN));
	RIG_EXPECT_DELIVERED(test, r, &wc, 3, 2);
}

static void connection_outlives_a_port_that_is_down(struct kunit *test)
{
	struct rig *r = rig_of_own_devices(test);
	struct ib_wc wc;

	/* The connection never times out. */
	r->timeout = 0;
	rig_start(test, r);
	rig_fill(r->a.buf, LEN, 4);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	port_is(test, "down");
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	port_is(test, "active");
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, LEN, 4));
}

static void connection_fails_if_a_port_stays_down(struct kunit *test)
{
	struct rig *r = rig_of_own_devices(test);
	struct ib_wc wc;

	r->timeout = 2;
	r->retry_cnt = 2;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	port_is(test, "down");
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

static const enum ib_qp_type connected[] = { IB_QPT_RC, IB_QPT_UC };

/* RC and UC connections, on each kind of network. */
static void connection_on_each_network(struct kunit *test)
{
	struct rig *r = rig_net_new(test, test->param_value);
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(connected); i++) {
		r->init.qp_type = connected[i];
		rig_start(test, r);
		rig_fill(r->a.buf, 5000, i);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 5000));
		RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
		KUNIT_EXPECT_EQ(test, 5000, wc.byte_len);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, 5000, i));
	}
}

/* A QP that is connected to itself. */
static void connection_to_itself(struct kunit *test)
{
	struct rig *r = rig_net_new(test, test->param_value);
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(connected); i++) {
		r->init.qp_type = connected[i];
		rig_make_qp(test, r, &r->a);
		rig_connect_end(test, r, &r->a, &r->a);
		rig_fill(r->a.buf, 5000, i);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 2, 8192, 8192));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 5000));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		RIG_EXPECT_WC(test, r->a.rcq, &wc, 2, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, r->a.qp->qp_num, wc.src_qp);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->a.buf + 8192, 5000, i));
		/* The message is too long. With RC, both work requests fail; UC drops it. */
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 4, 8192, 10));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 3, 0, 11));
		if (connected[i] == IB_QPT_RC) {
			RIG_EXPECT_WC(test, r->a.scq, &wc, 3, IB_WC_REM_INV_REQ_ERR);
			RIG_EXPECT_WC(test, r->a.rcq, &wc, 4, IB_WC_LOC_LEN_ERR);
		} else {
			RIG_EXPECT_WC(test, r->a.scq, &wc, 3, IB_WC_SUCCESS);
			KUNIT_EXPECT_TRUE(test, rig_empty(r->a.rcq));
		}
	}
}

static void query(struct kunit *test, const char *name, struct ib_port_attr *attr)
{
	struct ib_device *ibdev = KVT_PTR(test, ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN));

	KUNIT_EXPECT_EQ(test, 0, ib_query_port(ibdev, 1, attr));
	ib_device_put(ibdev);
}

static enum ib_mtu active_mtu(struct kunit *test, const char *name)
{
	struct ib_port_attr attr = {};

	query(test, name, &attr);
	return attr.active_mtu;
}

static void set_netdev_mtu(struct kunit *test, struct net_device *ndev, int mtu)
{
	rtnl_lock();
	ndev->max_mtu = ETH_MAX_MTU;
	KUNIT_EXPECT_EQ(test, 0, dev_set_mtu(ndev, mtu));
	rtnl_unlock();
}

static void n2_mtu_follows_the_network_device(struct kunit *test)
{
	static const struct {
		int mtu;
		enum ib_mtu active;
	} steps[] = {
		{ 1500, IB_MTU_1024 }, { 9000, IB_MTU_4096 }, { 300, IB_MTU_256 },
		{ 2300, IB_MTU_2048 },
	};
	struct net_device *ndev = kvt_netdev(test);
	int i;

	rig_device(test, "kvt_mtu", 1, netdev_name(ndev));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvt_mtu", 1, "mtu", "auto"));
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		set_netdev_mtu(test, ndev, steps[i].mtu);
		KUNIT_EXPECT_EQ(test, steps[i].active, active_mtu(test, "kvt_mtu"));
	}
	/* Set by hand, it stays. */
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvt_mtu", 1, "mtu", "512"));
	set_netdev_mtu(test, ndev, 1500);
	KUNIT_EXPECT_EQ(test, IB_MTU_512, active_mtu(test, "kvt_mtu"));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvt_mtu", 1, "mtu", "auto"));
	KUNIT_EXPECT_EQ(test, IB_MTU_1024, active_mtu(test, "kvt_mtu"));
}

/* What the network device of a test says of its speed. */
static u32 netdev_mbps;

static int netdev_settings(struct net_device *ndev, struct ethtool_link_ksettings *cmd)
{
	cmd->base.speed = netdev_mbps;
	return 0;
}

static const struct ethtool_ops netdev_ethtool_ops = {
	.get_link_ksettings = netdev_settings,
};

static void expect_rate(struct kunit *test, enum ib_port_width width, enum ib_port_speed speed)
{
	struct ib_port_attr attr = {};

	query(test, "kvt_rate", &attr);
	KUNIT_EXPECT_EQ(test, width, attr.active_width);
	KUNIT_EXPECT_EQ(test, speed, attr.active_speed);
}

static void rate_follows_the_network_device(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);

	ndev->ethtool_ops = &netdev_ethtool_ops;
	netdev_mbps = SPEED_40000;
	rig_device(test, "kvt_rate", 1, netdev_name(ndev));
	expect_rate(test, IB_WIDTH_4X, IB_SPEED_FDR10);
	netdev_mbps = SPEED_25000;
	expect_rate(test, IB_WIDTH_1X, IB_SPEED_EDR);
	netdev_mbps = SPEED_UNKNOWN;
	expect_rate(test, IB_WIDTH_1X, IB_SPEED_SDR);
	/* Values that were set by hand stay, even if only one of the two was. */
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvt_rate", 1, "width", "8x"));
	netdev_mbps = SPEED_10000;
	expect_rate(test, IB_WIDTH_8X, IB_SPEED_FDR10);
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvt_rate", 1, "speed", "ndr"));
	expect_rate(test, IB_WIDTH_8X, IB_SPEED_NDR);
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvt_rate", 1, "width", "auto"));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvt_rate", 1, "speed", "auto"));
	expect_rate(test, IB_WIDTH_1X, IB_SPEED_FDR10);
	/* Without a network device there is none to follow. */
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvt_rate", 1, "netdev", "\n"));
	expect_rate(test, IB_WIDTH_4X, IB_SPEED_EDR);
}

static void network_device_that_moves_stays_bound(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test), *second = kvt_netdev(test);
	struct ib_port_attr attr = {};

	rig_device(test, "kvt_moves", 1, netdev_name(ndev));
	kvt_netdev_moves(ndev);
	query(test, "kvt_moves", &attr);
	KUNIT_EXPECT_EQ(test, IB_PORT_ACTIVE, attr.state);
	/* It is still that of this port. */
	rig_device(test, "kvt_second", 1, netdev_name(second));
	KUNIT_EXPECT_EQ(test, -EBUSY,
			rig_port_write("kvt_second", 1, "netdev", netdev_name(ndev)));
	kvt_netdev_unregister(test, ndev);
	query(test, "kvt_moves", &attr);
	KUNIT_EXPECT_EQ(test, IB_PORT_DOWN, attr.state);
}

static void n3_network_device_has_one_port(struct kunit *test)
{
	struct net_device *first = kvt_netdev(test), *second = kvt_netdev(test);

	rig_device(test, "kvt_first", 1, netdev_name(first));
	rig_device(test, "kvt_second", 1, netdev_name(second));
	KUNIT_EXPECT_EQ(test, -EBUSY,
			rig_port_write("kvt_second", 1, "netdev", netdev_name(first)));
	/* To itself it may be given again. */
	KUNIT_EXPECT_EQ(test, 0, rig_port_write("kvt_first", 1, "netdev", netdev_name(first)));
	KUNIT_EXPECT_EQ(test, 0, rig_port_write("kvt_first", 1, "netdev", "\n"));
	KUNIT_EXPECT_EQ(test, 0, rig_port_write("kvt_second", 1, "netdev", netdev_name(first)));
}

/* The network devices of two ports, one on top of the other. */
struct stack {
	struct net_device *lower;
	struct net_device *upper;
};

static void unstack(void *arg)
{
	struct stack *s = arg;

	kvt_netdev_on_top(s->lower, s->upper, false);
	dev_put(s->lower);
	dev_put(s->upper);
}

static void put_on_top(struct kunit *test, struct ib_device *lower, struct ib_device *upper)
{
	struct stack *s = kvt_zalloc(test, sizeof(*s));

	s->lower = ib_device_get_netdev(lower, 1);
	s->upper = ib_device_get_netdev(upper, 1);
	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_on_top(s->lower, s->upper, true));
	kvt_defer(test, unstack, s);
}

/* The second end's network device comes on top of the first one's, which then has its address. */
static void n4_address_leads_to_the_port_that_is_on_its_network_device(struct kunit *test)
{
	const struct rig_net net = { .kind = RIG_NET_ROCE_V2_IP4, .across = true };
	struct rig *r = rig_net_new(test, &net);
	struct ib_wc wc;
	u32 port;

	r->timeout = 8;
	r->retry_cnt = 2;
	put_on_top(test, r->a.ibdev, r->b.ibdev);
	KUNIT_EXPECT_TRUE(test, kvt_until(!ib_find_gid(r->a.ibdev, &r->b.gid, &port, NULL)));
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
}

static struct kunit_case emu_conform_port_cases[] = {
	KUNIT_CASE_PARAM(r25_datagrams_stay_in_their_partition, partition_gen_params),
	KUNIT_CASE_PARAM(r25_connections_stay_in_their_partition, partition_gen_params),
	KUNIT_CASE_PARAM(r25_partitions_change_at_run_time, move_gen_params),
	KUNIT_CASE(datagrams_reach_the_port_they_are_for),
	KUNIT_CASE(connection_joins_two_ports_of_a_device),
	KUNIT_CASE(connection_to_the_wrong_port_has_no_answer),
	KUNIT_CASE_PARAM(datagram_is_lost_while_a_port_is_down, down_gen_params),
	KUNIT_CASE_PARAM(connection_outlives_a_port_that_is_down, down_gen_params),
	KUNIT_CASE_PARAM(connection_fails_if_a_port_stays_down, down_gen_params),
	KUNIT_CASE_PARAM(connection_on_each_network, net_gen_params),
	KUNIT_CASE_PARAM(connection_to_itself, few_net_gen_params),
	KUNIT_CASE(n2_mtu_follows_the_network_device),
	KUNIT_CASE(rate_follows_the_network_device),
	KUNIT_CASE(network_device_that_moves_stays_bound),
	KUNIT_CASE(n3_network_device_has_one_port),
	KUNIT_CASE(n4_address_leads_to_the_port_that_is_on_its_network_device),
	{}
};
KVT_SUITE(emu_conform_port);
