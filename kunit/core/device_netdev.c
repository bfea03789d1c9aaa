// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network devices that ports are bound to: lookup of a device by them, the state of the port, and
 * what happens when they go.
 */
#include <linux/netdevice.h>
#include <rdma/ib_mad.h>

#include "lib/mock.h"

static void device_is_found_by_its_netdev(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct net_device *got;
	struct ib_device *ibdev;
	struct mock *m = mock_up_eth(test, "kvtm_a", NULL);

	KUNIT_EXPECT_NULL(test, ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN));
	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(m->ibdev, ndev, 1));
	ibdev = ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN);
	KUNIT_EXPECT_PTR_EQ(test, ibdev, m->ibdev);
	if (ibdev)
		ib_device_put(ibdev);
	m->port[1].ndev = ndev;
	got = ib_device_get_netdev(m->ibdev, 1);
	KUNIT_EXPECT_PTR_EQ(test, got, ndev);
	dev_put(got);
	mock_unregister(m);
	KUNIT_EXPECT_NULL(test, ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN));
}

static void device_keeps_a_netdev_that_moves(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", NULL);
	struct ib_device *ibdev;

	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(m->ibdev, ndev, 1));
	kvt_netdev_moves(ndev);
	ibdev = ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN);
	KUNIT_EXPECT_PTR_EQ(test, ibdev, m->ibdev);
	if (ibdev)
		ib_device_put(ibdev);
}

/* As ULPs of older kernels ask. */
static void method_finds_the_netdev_if_the_driver_has_none(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test), *got;
	struct ib_device *ibdev = mock_up(test, "kvtm_a")->ibdev;

	KUNIT_ASSERT_NOT_NULL(test, ibdev->ops.get_netdev);
	KUNIT_EXPECT_NULL(test, ibdev->ops.get_netdev(ibdev, 1));
	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(ibdev, ndev, 1));
	got = ibdev->ops.get_netdev(ibdev, 1);
	KUNIT_EXPECT_PTR_EQ(test, got, ndev);
	dev_put(got);
	KUNIT_EXPECT_NULL(test, ibdev->ops.get_netdev(ibdev, 99));
}

/* ib_srpt announces itself by a capability, which nobody looks for on an Ethernet port. */
static void ethernet_port_takes_any_capability(struct kunit *test)
{
	struct mock *eth = mock_up_eth(test, "kvtm_a", NULL), *ib = mock_up(test, "kvtm_b");
	struct ib_port_modify change = { .set_port_cap_mask = IB_PORT_SM };

	KUNIT_EXPECT_EQ(test, 0, ib_modify_port(eth->ibdev, 1, 0, &change));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, ib_modify_port(ib->ibdev, 1, 0, &change));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_port(eth->ibdev, 99, 0, &change));
}

/* What a driver whose devices are on top of network devices has. */
struct end_watch {
	struct notifier_block nb;
	struct net_device *ndev;
	struct ib_device *found;
};

static int find_device_at_end(struct notifier_block *nb, unsigned long event, void *info)
{
	struct end_watch *watch = container_of(nb, struct end_watch, nb);
	struct ib_device *dev;

	if (event != NETDEV_UNREGISTER || netdev_notifier_info_to_dev(info) != watch->ndev)
		return NOTIFY_DONE;
	dev = ib_device_get_by_netdev(watch->ndev, RDMA_DRIVER_UNKNOWN);
	watch->found = dev;
	if (dev)
		ib_device_put(dev);
	return NOTIFY_DONE;
}

static int query_port_of_cxgb4(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	attr->gid_tbl_len = 1;
	return 0;
}

static void expect_port(struct kunit *test, struct ib_device *ibdev, enum ib_port_state state,
			enum ib_port_phys_state phys_state)
{
	struct ib_port_attr attr;

	KUNIT_ASSERT_EQ(test, 0, ib_query_port(ibdev, 1, &attr));
	KUNIT_EXPECT_EQ(test, state, attr.state);
	KUNIT_EXPECT_EQ(test, phys_state, attr.phys_state);
	KUNIT_EXPECT_EQ(test, IB_MTU_4096, attr.max_mtu);
	KUNIT_EXPECT_EQ(test, IB_MTU_1024, attr.active_mtu);
	KUNIT_EXPECT_EQ(test, 1, attr.gid_tbl_len);
}

static void iwarp_port_has_the_state_of_its_netdev(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_new(test);

	mock_iwarp_methods(&m->ops, false);
	m->ops.query_port = query_port_of_cxgb4;
	mock_alloc(test, m);
	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(m->ibdev, ndev, 1));
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_a"));
	expect_port(test, m->ibdev, IB_PORT_INIT, IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING);
	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, htonl(0xc0000201), true));
	expect_port(test, m->ibdev, IB_PORT_ACTIVE, IB_PORT_PHYS_STATE_LINK_UP);
	netif_carrier_off(ndev);
	expect_port(test, m->ibdev, IB_PORT_DOWN, IB_PORT_PHYS_STATE_DISABLED);
	netif_carrier_on(ndev);
	expect_port(test, m->ibdev, IB_PORT_ACTIVE, IB_PORT_PHYS_STATE_LINK_UP);
}

static void driver_finds_its_device_when_the_netdev_goes(struct kunit *test)
{
	struct end_watch watch = {
		.nb = { .notifier_call = find_device_at_end },
		.ndev = kvt_netdev(test),
	};
	struct mock *m = mock_up_eth(test, "kvtm_a", NULL);

	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(m->ibdev, watch.ndev, 1));
	KUNIT_ASSERT_EQ(test, 0, register_netdevice_notifier(&watch.nb));
	kvt_netdev_unregister(test, watch.ndev);
	unregister_netdevice_notifier(&watch.nb);
	KUNIT_EXPECT_PTR_EQ(test, m->ibdev, watch.found);
	KUNIT_EXPECT_NULL(test, ib_device_get_by_netdev(watch.ndev, RDMA_DRIVER_UNKNOWN));
}

static int register_fn(void *arg)
{
	return mock_register(arg, "kvtm_a");
}

/* A driver that unregisters its device when the network device goes, as rdma_rxe and siw do. */
struct end_later {
	struct notifier_block nb;
	struct kunit *test;
	struct net_device *ndev;
	struct completion told;
	struct completion gone;
	bool found;
};

static int found_at_end(struct notifier_block *nb, unsigned long event, void *info)
{
	struct end_later *end = container_of(nb, struct end_later, nb);
	struct ib_device *dev;

	if (event != NETDEV_UNREGISTER || netdev_notifier_info_to_dev(info) != end->ndev)
		return NOTIFY_DONE;
	dev = ib_device_get_by_netdev(end->ndev, RDMA_DRIVER_UNKNOWN);
	if (dev) {
		end->found = true;
		ib_device_put(dev);
	}
	complete(&end->told);
	return NOTIFY_DONE;
}

static int unregister_ndev_fn(void *arg)
{
	struct end_later *end = arg;

	kvt_netdev_unregister(end->test, end->ndev);
	complete(&end->gone);
	return 0;
}

/*
 * The kernel tells of it again while the port has it, so that the driver finds its device in the
 * end; and when it has been told, the network device goes, of which the port has a GID.
 */
static void netdev_that_goes_during_registration_is_told_of_again(struct kunit *test)
{
	struct end_later *end = kvt_zalloc(test, sizeof(*end));
	struct mock *m = mock_new(test);
	struct kvt_thread *reg, *unreg;

	end->nb.notifier_call = found_at_end;
	end->test = test;
	end->ndev = kvt_netdev(test);
	init_completion(&end->told);
	init_completion(&end->gone);
	mock_iwarp_methods(&m->ops, false);
	mock_alloc(test, m);
	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(m->ibdev, end->ndev, 1));
	KUNIT_ASSERT_EQ(test, 0, register_netdevice_notifier(&end->nb));
	/* It is asked after the GIDs have been read. */
	mock_hold(m, MOCK_query_port);
	reg = kvt_thread_start(test, -1, register_fn, m);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));
	unreg = kvt_thread_start(test, -1, unregister_ndev_fn, end);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&end->told));
	KUNIT_EXPECT_FALSE(test, end->found);
	mock_hold_end(m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(reg));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&end->gone));
	KUNIT_EXPECT_TRUE(test, end->found);
	unregister_netdevice_notifier(&end->nb);
	mock_unregister(m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(unreg));
}

static struct kunit_case core_device_netdev_cases[] = {
	KUNIT_CASE(device_is_found_by_its_netdev),
	KUNIT_CASE(device_keeps_a_netdev_that_moves),
	KUNIT_CASE(method_finds_the_netdev_if_the_driver_has_none),
	KUNIT_CASE(ethernet_port_takes_any_capability),
	KUNIT_CASE(iwarp_port_has_the_state_of_its_netdev),
	KUNIT_CASE(driver_finds_its_device_when_the_netdev_goes),
	KUNIT_CASE_SLOW(netdev_that_goes_during_registration_is_told_of_again),
	{}
};
KVT_SUITE(core_device_netdev);
