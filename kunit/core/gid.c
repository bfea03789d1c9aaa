// SPDX-License-Identifier: GPL-2.0-only
/*
 * The GID and P_Key caches: what readers see, how long an entry that they hold stays valid,
 * and how the tables of RoCE ports follow the addresses of a network device.
 */
#include <linux/etherdevice.h>
#include <linux/inet.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "lib/console.h"
#include "lib/mock.h"

#define FLIPS		4000

/* An event handler that wakes the case on each GID_CHANGE. */
struct gid_events {
	struct ib_event_handler handler;
	struct completion got;
};

static void gid_event(struct ib_event_handler *handler, struct ib_event *event)
{
	if (event->event == IB_EVENT_GID_CHANGE)
		complete(&container_of(handler, struct gid_events, handler)->got);
}

static void gid_events_end(void *arg)
{
	struct gid_events *ev = arg;

	ib_unregister_event_handler(&ev->handler);
}

static struct gid_events *gid_events_up(struct kunit *test, struct mock *m)
{
	struct gid_events *ev = kvt_zalloc(test, sizeof(*ev));

	init_completion(&ev->got);
	INIT_IB_EVENT_HANDLER(&ev->handler, m->ibdev, gid_event);
	ib_register_event_handler(&ev->handler);
	kvt_defer(test, gid_events_end, ev);
	return ev;
}

static union ib_gid make_gid(u64 id)
{
	union ib_gid gid;

	gid.global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid.global.interface_id = cpu_to_be64(id);
	return gid;
}

/* Changes an entry as a driver would, and waits until the core has read the table. */
static bool change_gid(struct mock *m, struct gid_events *ev, int index, union ib_gid gid)
{
	m->port[1].gids[index] = gid;
	mock_event(m, 1, IB_EVENT_GID_CHANGE);
	return kvt_wait(&ev->got);
}

static int find(struct ib_device *ibdev, const union ib_gid *gid,
		enum ib_gid_type type, struct net_device *ndev)
{
	const struct ib_gid_attr *attr = rdma_find_gid(ibdev, gid, type, ndev);
	int index;

	if (IS_ERR(attr))
		return PTR_ERR(attr);
	index = attr->index;
	rdma_put_gid_attr(attr);
	return index;
}

static void table_is_read_at_registration(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	union ib_gid gid;
	int i;

	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, 0, rdma_query_gid(m->ibdev, 1, i, &gid));
		KUNIT_EXPECT_MEMEQ(test, &gid, &m->port[1].gids[i], sizeof(gid));
	}
	/* A zero GID reported by the driver makes an empty entry. */
	KUNIT_EXPECT_EQ(test, -ENOENT, rdma_query_gid(m->ibdev, 1, 2, &gid));
	KUNIT_EXPECT_EQ(test, -ENODATA, PTR_ERR_OR_ZERO(rdma_get_gid_attr(m->ibdev, 1, 2)));
	/* Readers do not ask the driver. */
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_query_gid));
}

static void attr_tells_what_the_entry_is(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	const struct ib_gid_attr *attr = KVT_PTR(test, rdma_get_gid_attr(m->ibdev, 1, 1));

	KUNIT_EXPECT_PTR_EQ(test, attr->device, m->ibdev);
	KUNIT_EXPECT_EQ(test, 1, attr->port_num);
	KUNIT_EXPECT_EQ(test, 1, attr->index);
	KUNIT_EXPECT_EQ(test, IB_GID_TYPE_IB, attr->gid_type);
	KUNIT_EXPECT_MEMEQ(test, &attr->gid, &m->port[1].gids[1], sizeof(attr->gid));
	rcu_read_lock();
	KUNIT_EXPECT_EQ(test, -ENODEV, PTR_ERR_OR_ZERO(rdma_read_gid_attr_ndev_rcu(attr)));
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
}

static bool is_index(const union ib_gid *gid, const struct ib_gid_attr *attr, void *context)
{
	return attr->index == *(int *)context;
}

static void gid_is_found_by_device_port_and_filter(struct kunit *test)
{
	struct mock *m = mock_new(test);
	const struct ib_gid_attr *attr;
	union ib_gid gid, none = make_gid(0xdead);
	u16 index = 0xffff;
	int wanted = 1;
	u32 port = 0;

	m->nports = 2;
	mock_start(test, m, "kvtm_a");
	gid = m->port[2].gids[1];

	KUNIT_EXPECT_EQ(test, 0, ib_find_gid(m->ibdev, &gid, &port, &index));
	KUNIT_EXPECT_EQ(test, 2, port);
	KUNIT_EXPECT_EQ(test, 1, index);
	KUNIT_EXPECT_EQ(test, 1, find(m->ibdev, &gid, IB_GID_TYPE_IB, NULL));
	KUNIT_EXPECT_EQ(test, -ENOENT, find(m->ibdev, &none, IB_GID_TYPE_IB, NULL));
	KUNIT_EXPECT_EQ(test, -ENOENT, find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL));

	attr = rdma_find_gid_by_port(m->ibdev, &gid, IB_GID_TYPE_IB, 1, NULL);
	KUNIT_EXPECT_EQ(test, -ENOENT, PTR_ERR_OR_ZERO(attr));
	attr = KVT_PTR(test, rdma_find_gid_by_port(m->ibdev, &gid, IB_GID_TYPE_IB, 2, NULL));
	KUNIT_EXPECT_EQ(test, 2, attr->port_num);
	rdma_put_gid_attr(attr);

	attr = KVT_PTR(test, rdma_find_gid_by_filter(m->ibdev, &gid, 2, is_index, &wanted));
	KUNIT_EXPECT_EQ(test, 1, attr->index);
	rdma_put_gid_attr(attr);
	wanted = 0;
	attr = rdma_find_gid_by_filter(m->ibdev, &gid, 2, is_index, &wanted);
	KUNIT_EXPECT_EQ(test, -ENOENT, PTR_ERR_OR_ZERO(attr));
}

static void held_entry_outlives_its_deletion(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct gid_events *ev = gid_events_up(test, m);
	union ib_gid old = m->port[1].gids[1], zero = {}, gid;
	const struct ib_gid_attr *attr = KVT_PTR(test, rdma_get_gid_attr(m->ibdev, 1, 1));

	KUNIT_EXPECT_TRUE(test, change_gid(m, ev, 1, zero));
	KUNIT_EXPECT_EQ(test, -ENOENT, rdma_query_gid(m->ibdev, 1, 1, &gid));
	KUNIT_EXPECT_EQ(test, -ENOENT, find(m->ibdev, &old, IB_GID_TYPE_IB, NULL));
	KUNIT_EXPECT_MEMEQ(test, &attr->gid, &old, sizeof(old));
	/* The holder of a reference may take another one. */
	rdma_hold_gid_attr(attr);
	rdma_put_gid_attr(attr);
	KUNIT_EXPECT_MEMEQ(test, &attr->gid, &old, sizeof(old));
	rdma_put_gid_attr(attr);
}

static void held_entry_outlives_its_replacement(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct gid_events *ev = gid_events_up(test, m);
	union ib_gid old = m->port[1].gids[1], new = make_gid(0x77);
	const struct ib_gid_attr *attr, *next;

	attr = KVT_PTR(test, rdma_get_gid_attr(m->ibdev, 1, 1));
	KUNIT_EXPECT_TRUE(test, change_gid(m, ev, 1, new));
	next = rdma_get_gid_attr(m->ibdev, 1, 1);
	KUNIT_EXPECT_EQ(test, 0, PTR_ERR_OR_ZERO(next));
	if (!IS_ERR(next)) {
		KUNIT_EXPECT_PTR_NE(test, next, attr);
		KUNIT_EXPECT_MEMEQ(test, &next->gid, &new, sizeof(new));
		rdma_put_gid_attr(next);
	}
	KUNIT_EXPECT_MEMEQ(test, &attr->gid, &old, sizeof(old));
	rdma_put_gid_attr(attr);
}

struct racer {
	struct ib_device *ibdev;
	union ib_gid a;
	union ib_gid b;
	struct completion begun;
	u64 reads;
	u64 misses;
	u64 bad;
};

static void racer_look(struct racer *r)
{
	const struct ib_gid_attr *attr = rdma_get_gid_attr(r->ibdev, 1, 1);

	r->reads++;
	if (IS_ERR(attr)) {
		r->misses++;
		return;
	}
	if (memcmp(&attr->gid, &r->a, sizeof(r->a)) && memcmp(&attr->gid, &r->b, sizeof(r->b)))
		r->bad++;
	rdma_put_gid_attr(attr);
}

static int racer_fn(void *arg)
{
	struct racer *r = arg;
	const struct ib_gid_attr *attr;
	union ib_gid gid;

	while (!kvt_should_stop()) {
		racer_look(r);
		attr = rdma_find_gid(r->ibdev, &r->a, IB_GID_TYPE_IB, NULL);
		if (!IS_ERR(attr))
			rdma_put_gid_attr(attr);
		if (!rdma_query_gid(r->ibdev, 1, 1, &gid) &&
		    memcmp(&gid, &r->a, sizeof(gid)) &&
		    memcmp(&gid, &r->b, sizeof(gid)))
			r->bad++;
		complete(&r->begun);
		cond_resched();
	}
	return 0;
}

static void readers_race_with_deletion(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct gid_events *ev = gid_events_up(test, m);
	struct racer *r = kvt_zalloc(test, sizeof(*r));
	u64 i, flips = kvt_count(FLIPS);
	union ib_gid zero = {};
	struct kvt_thread *t;

	r->ibdev = m->ibdev;
	r->a = m->port[1].gids[1];
	r->b = make_gid(0x99);
	init_completion(&r->begun);
	kvt_print_length(test, "changes under a reader", flips);
	t = kvt_thread_start(test, kvt_other_cpu(), racer_fn, r);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&r->begun));
	for (i = 0; i < flips; i++) {
		bool ok = change_gid(m, ev, 1, i % 3 == 0 ? zero : i % 3 == 1 ? r->a : r->b);

		KUNIT_EXPECT_TRUE(test, ok);
		if (!ok)
			break;
	}
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_stop(t));
	kunit_info(test, "%llu reads, %llu of an empty entry", r->reads, r->misses);
	KUNIT_EXPECT_EQ(test, 0, r->bad);
	KUNIT_EXPECT_GT(test, r->reads, 0);
}

static void pkey_is_found_by_its_value(struct kunit *test)
{
	struct mock *m = mock_new(test);
	u16 pkey, index;

	m->port[1].pkeys[2] = 0x1234;	/* limited member */
	m->port[1].pkeys[3] = 0x9234;	/* full member of the same */
	mock_start(test, m, "kvtm_a");
	mock_log_reset(m);

	KUNIT_EXPECT_EQ(test, 0, ib_get_cached_pkey(m->ibdev, 1, 1, &pkey));
	KUNIT_EXPECT_EQ(test, 0x8001, pkey);
	/* Full membership wins, whichever of the two was asked for. */
	KUNIT_EXPECT_EQ(test, 0, ib_find_cached_pkey(m->ibdev, 1, 0x1234, &index));
	KUNIT_EXPECT_EQ(test, 3, index);
	KUNIT_EXPECT_EQ(test, 0, ib_find_exact_cached_pkey(m->ibdev, 1, 0x1234, &index));
	KUNIT_EXPECT_EQ(test, 2, index);
	KUNIT_EXPECT_EQ(test, -ENOENT, ib_find_cached_pkey(m->ibdev, 1, 0x4321, &index));
	KUNIT_EXPECT_EQ(test, -ENOENT, ib_find_exact_cached_pkey(m->ibdev, 1, 0x0001, &index));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_query_pkey));

	KUNIT_EXPECT_EQ(test, 0, ib_query_pkey(m->ibdev, 1, 0, &pkey));
	KUNIT_EXPECT_EQ(test, 0xffff, pkey);
	KUNIT_EXPECT_EQ(test, 0, ib_find_pkey(m->ibdev, 1, 0x9234, &index));
	KUNIT_EXPECT_EQ(test, 3, index);
}

static void pkeys_are_read_where_gids_cannot_be(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct gid_events *ev = gid_events_up(test, m);
	union ib_gid gid, before = m->port[1].gids[1];
	u16 pkey = 0;

	m->port[1].pkeys[2] = 0x8123;
	mock_fail_nth(m, MOCK_query_gid, 1, -EXFULL);
	KUNIT_ASSERT_TRUE(test, change_gid(m, ev, 1, make_gid(0x77)));
	KUNIT_EXPECT_EQ(test, 0, rdma_query_gid(m->ibdev, 1, 1, &gid));
	KUNIT_EXPECT_MEMEQ(test, &gid, &before, sizeof(gid));
	KUNIT_EXPECT_EQ(test, 0, ib_get_cached_pkey(m->ibdev, 1, 2, &pkey));
	KUNIT_EXPECT_EQ(test, 0x8123, pkey);
}

/* RoCE */

static union ib_gid default_gid(struct net_device *ndev)
{
	union ib_gid gid = make_gid(0);

	addrconf_ifid_eui48(&gid.raw[8], ndev);
	return gid;
}

static union ib_gid ip4_gid(__be32 addr)
{
	union ib_gid gid;

	ipv6_addr_set_v4mapped(addr, (struct in6_addr *)gid.raw);
	return gid;
}

/* The connection manager looks for it without asking whether there is one. */
static void iwarp_gid_names_the_netdev_of_its_port(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_new(test);
	const struct ib_gid_attr *attr;

	m->port[1].ndev = ndev;
	mock_iwarp_methods(&m->ops, true);
	mock_start(test, m, "kvtm_a");
	attr = rdma_get_gid_attr(m->ibdev, 1, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(attr));
	KUNIT_EXPECT_PTR_EQ(test, ndev, rcu_access_pointer(attr->ndev));
	rdma_put_gid_attr(attr);
	mock_unregister(m);
}

static void roce_port_has_its_default_gids(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	union ib_gid gid = default_gid(ndev);
	int v1, v2;

	v1 = find(m->ibdev, &gid, IB_GID_TYPE_ROCE, ndev);
	v2 = find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev);
	KUNIT_ASSERT_GE(test, v1, 0);
	KUNIT_ASSERT_GE(test, v2, 0);
	KUNIT_EXPECT_LT(test, v1, 2);
	KUNIT_EXPECT_LT(test, v2, 2);
	KUNIT_EXPECT_NE(test, v1, v2);
	/* The driver was told the same. */
	KUNIT_EXPECT_TRUE(test, test_bit(v1, &m->port[1].valid));
	KUNIT_EXPECT_EQ(test, IB_GID_TYPE_ROCE, m->port[1].added_type[v1]);
	KUNIT_EXPECT_EQ(test, IB_GID_TYPE_ROCE_UDP_ENCAP, m->port[1].added_type[v2]);
	KUNIT_EXPECT_MEMEQ(test, &m->port[1].added[v2], &gid, sizeof(gid));

	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, 0, m->port[1].valid);
	KUNIT_EXPECT_EQ(test, mock_calls(m, MOCK_add_gid), mock_calls(m, MOCK_del_gid));
}

static void roce_attr_names_its_netdev(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	const struct ib_gid_attr *attr;
	u8 mac[ETH_ALEN] = {};
	u16 vlan = 0;

	attr = KVT_PTR(test, rdma_get_gid_attr(m->ibdev, 1, 0));
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, rdma_read_gid_attr_ndev_rcu(attr), ndev);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, 0, rdma_read_gid_l2_fields(attr, &vlan, mac));
	KUNIT_EXPECT_EQ(test, 0xffff, vlan);
	KUNIT_EXPECT_MEMEQ(test, mac, ndev->dev_addr, ETH_ALEN);
	KUNIT_EXPECT_PTR_EQ(test, rdma_read_gid_hw_context(attr), (void *)&m->port[1]);
	rdma_put_gid_attr(attr);
}

static bool wait_for_find(struct gid_events *ev, struct ib_device *ibdev,
			  const union ib_gid *gid, struct net_device *ndev,
			  bool there)
{
	while ((find(ibdev, gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev) >= 0) != there)
		if (!kvt_wait(&ev->got))
			return false;
	return true;
}

static void roce_gids_follow_the_addresses(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	struct gid_events *ev = gid_events_up(test, m);
	__be32 addr = in_aton("192.0.2.7");
	union ib_gid gid = ip4_gid(addr);
	int index;

	KUNIT_EXPECT_EQ(test, -ENOENT, find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev));
	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, addr, true));
	KUNIT_ASSERT_TRUE(test, wait_for_find(ev, m->ibdev, &gid, ndev, true));
	index = find(m->ibdev, &gid, IB_GID_TYPE_ROCE, ndev);
	KUNIT_EXPECT_GE(test, index, 2);
	KUNIT_EXPECT_EQ(test, index, find(m->ibdev, &gid, IB_GID_TYPE_ROCE, NULL));

	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, addr, false));
	KUNIT_ASSERT_TRUE(test, wait_for_find(ev, m->ibdev, &gid, ndev, false));
	gid = default_gid(ndev);
	KUNIT_EXPECT_GE(test, find(m->ibdev, &gid, IB_GID_TYPE_ROCE, ndev), 0);
}

static void n1_addresses_of_what_is_on_top_are_gids(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test), *upper = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	struct gid_events *ev = gid_events_up(test, m);
	__be32 addr = in_aton("192.0.2.8");
	union ib_gid gid = ip4_gid(addr);

	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(upper, addr, true));
	KUNIT_EXPECT_EQ(test, -ENOENT, find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL));
	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_on_top(ndev, upper, true));
	KUNIT_EXPECT_TRUE(test, wait_for_find(ev, m->ibdev, &gid, upper, true));
	KUNIT_EXPECT_GE(test, find(m->ibdev, &gid, IB_GID_TYPE_ROCE, upper), 0);
	/* It names what it is an address of, and nothing else. */
	KUNIT_EXPECT_EQ(test, -ENOENT, find(m->ibdev, &gid, IB_GID_TYPE_ROCE, ndev));
	kvt_netdev_on_top(ndev, upper, false);
	KUNIT_EXPECT_TRUE(test, wait_for_find(ev, m->ibdev, &gid, upper, false));
}

static void held_roce_entry_does_not_hold_the_netdev(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	struct gid_events *ev = gid_events_up(test, m);
	union ib_gid gid = default_gid(ndev);
	const struct ib_gid_attr *attr;
	u8 mac[ETH_ALEN];

	attr = KVT_PTR(test, rdma_get_gid_attr(m->ibdev, 1, 0));
	WRITE_ONCE(m->port[1].ndev, NULL);
	/* Returns only when all references to the netdev are gone. */
	kvt_netdev_unregister(test, ndev);
	KUNIT_EXPECT_TRUE(test, wait_for_find(ev, m->ibdev, &gid, NULL, false));
	KUNIT_EXPECT_MEMEQ(test, &attr->gid, &gid, sizeof(gid));
	KUNIT_EXPECT_EQ(test, -ENODEV, rdma_read_gid_l2_fields(attr, NULL, mac));
	KUNIT_EXPECT_EQ(test, 0, m->port[1].valid);
	rdma_put_gid_attr(attr);
}

struct going {
	struct kunit *test;
	struct net_device *ndev;
};

static int unregister_ndev_fn(void *arg)
{
	struct going *g = arg;

	/* Returns only when all references to the netdev are gone. */
	kvt_netdev_unregister(g->test, g->ndev);
	return 0;
}

/* A network device that a port got before its registration begins to go: returns who waits. */
static struct kvt_thread *set_netdev_that_goes(struct mock *m, struct going *g)
{
	struct kunit *test = g->test;
	struct kvt_thread *t;

	mock_alloc(test, m);
	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(m->ibdev, g->ndev, 1));
	t = kvt_thread_start(test, -1, unregister_ndev_fn, g);
	KUNIT_EXPECT_TRUE(test, kvt_until(READ_ONCE(g->ndev->reg_state) != NETREG_REGISTERED));
	return t;
}

/* Its driver would not find the device, so it stays until that is registered: then it can go. */
static void netdev_set_before_registration_goes_after_it(struct kunit *test)
{
	struct going g = { test, kvt_netdev(test) };
	struct mock *m = mock_new(test);
	struct kvt_thread *t = set_netdev_that_goes(m, &g);

	KUNIT_EXPECT_EQ(test, 0, mock_register(m, "kvtm_a"));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_NULL(test, ib_device_get_netdev(m->ibdev, 1));
}

static void netdev_set_before_registration_goes_without_it(struct kunit *test)
{
	struct going g = { test, kvt_netdev(test) };
	struct mock *m = mock_new(test);
	struct kvt_thread *t = set_netdev_that_goes(m, &g);

	mock_free(test, m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
}

/* Changes the netdev that the driver reports, and updates the GID tables synchronously. */
static void change_netdev(struct mock *m, struct net_device *ndev)
{
	WRITE_ONCE(m->port[1].ndev, ndev);
	rdma_roce_rescan_device(m->ibdev);
}

/* A network device that is down has no link-local address. */
static void gid_without_a_slot_comes_when_one_is_free(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	struct gid_events *ev = gid_events_up(test, m);
	union ib_gid gid = default_gid(ndev);
	const struct ib_gid_attr *attr;

	rtnl_lock();
	dev_close(ndev);
	rtnl_unlock();
	attr = KVT_PTR(test, rdma_find_gid(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev));
	change_netdev(m, NULL);
	change_netdev(m, ndev);
	/* The entry held above still occupies one of the two default slots. */
	KUNIT_EXPECT_GE(test, find(m->ibdev, &gid, IB_GID_TYPE_ROCE, ndev), 0);
	KUNIT_EXPECT_EQ(test, -ENOENT, find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev));
	rdma_put_gid_attr(attr);
	KUNIT_EXPECT_TRUE(test, wait_for_find(ev, m->ibdev, &gid, ndev, true));
}

static void link_local_gid_does_not_wait_for_a_default_slot(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	union ib_gid gid = default_gid(ndev);
	const struct ib_gid_attr *attr;
	int index;

	attr = KVT_PTR(test, rdma_find_gid(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev));
	KUNIT_EXPECT_LT(test, (u32)attr->index, 2);
	change_netdev(m, NULL);
	change_netdev(m, ndev);
	index = find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev);
	KUNIT_EXPECT_GE(test, index, 2);
	KUNIT_EXPECT_LT(test, find(m->ibdev, &gid, IB_GID_TYPE_ROCE, ndev), 2);
	/* There it stays, since consumers know the index, also when the default slot is free. */
	rdma_put_gid_attr(attr);
	attr = KVT_PTR(test, rdma_get_gid_attr(m->ibdev, 1, index));
	rdma_roce_rescan_device(m->ibdev);
	KUNIT_EXPECT_EQ(test, index, find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev));
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, rdma_read_gid_attr_ndev_rcu(attr), ndev);
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
}

static void network_device_of_any_type_has_gids(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", NULL);
	union ib_gid gid = default_gid(ndev), ip4;
	__be32 addr = in_aton("192.0.2.7");

	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, addr, true));
	ip4 = ip4_gid(addr);
	/* As lo; then as a tunnel, which has no MAC address. */
	ndev->type = ARPHRD_LOOPBACK;
	change_netdev(m, ndev);
	KUNIT_EXPECT_GE(test, find(m->ibdev, &ip4, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev), 2);
	KUNIT_EXPECT_GE(test, find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev), 0);
	rtnl_lock();
	dev_close(ndev);
	rtnl_unlock();
	ndev->addr_len = 0;
	change_netdev(m, NULL);
	change_netdev(m, ndev);
	KUNIT_EXPECT_GE(test, find(m->ibdev, &ip4, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev), 2);
	KUNIT_EXPECT_EQ(test, -ENOENT, find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev));
	change_netdev(m, NULL);
	ndev->addr_len = ETH_ALEN;
	ndev->type = ARPHRD_ETHER;
}

/* Whoever gives a network device very many addresses must not fill the log with them. */
static void full_table_keeps_the_first_addresses_and_is_told_once(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", NULL);
	struct kvt_console *told = kvt_console_watch(test, "cannot add GID");
	/* Each takes two slots, as each default GID does. */
	int i, fit = MOCK_GIDS / 2 - 1;
	union ib_gid gid;

	for (i = 0; i < MOCK_GIDS; i++)
		KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, htonl(0xc0000201 + i), true));
	change_netdev(m, ndev);
	for (i = 0; i < MOCK_GIDS; i++) {
		gid = ip4_gid(htonl(0xc0000201 + i));
		KUNIT_EXPECT_EQ(test, i < fit, find(m->ibdev, &gid, IB_GID_TYPE_ROCE, ndev) >= 0);
		KUNIT_EXPECT_EQ(test, i < fit,
				find(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, ndev) >= 0);
	}
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(told));
}

static void rescan_of_an_unregistered_device_adds_nothing(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);

	KUNIT_EXPECT_NE(test, 0, m->port[1].valid);
	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, 0, m->port[1].valid);
	rdma_roce_rescan_device(m->ibdev);
	KUNIT_EXPECT_EQ(test, 0, m->port[1].valid);
}

static void gid_refused_by_the_driver_is_not_there(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	struct gid_events *ev = gid_events_up(test, m);
	__be32 one = in_aton("192.0.2.1"), two = in_aton("192.0.2.2");
	union ib_gid gid1 = ip4_gid(one), gid2 = ip4_gid(two);

	/* The driver refuses the RoCE v1 entry and accepts the RoCE v2 entry. */
	m->refused = gid1;
	WRITE_ONCE(m->refusing, true);
	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, one, true));
	KUNIT_ASSERT_TRUE(test, wait_for_find(ev, m->ibdev, &gid1, ndev, true));
	KUNIT_EXPECT_EQ(test, -ENOENT, find(m->ibdev, &gid1, IB_GID_TYPE_ROCE, ndev));
	/* The next address change adds the refused entry again. */
	WRITE_ONCE(m->refusing, false);
	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, two, true));
	KUNIT_ASSERT_TRUE(test, wait_for_find(ev, m->ibdev, &gid2, ndev, true));
	KUNIT_EXPECT_GE(test, find(m->ibdev, &gid1, IB_GID_TYPE_ROCE, ndev), 0);
}

static void roce_port_without_a_netdev_has_no_gids(struct kunit *test)
{
	struct mock *m = mock_up_eth(test, "kvtm_a", NULL);
	union ib_gid gid;
	int i;

	for (i = 0; i < MOCK_GIDS; i++)
		KUNIT_EXPECT_NE(test, 0, rdma_query_gid(m->ibdev, 1, i, &gid));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_add_gid));
	KUNIT_EXPECT_EQ(test, IB_LINK_LAYER_ETHERNET, rdma_port_get_link_layer(m->ibdev, 1));
	KUNIT_EXPECT_TRUE(test, rdma_protocol_roce(m->ibdev, 1));
}

static struct kunit_case core_gid_cases[] = {
	KUNIT_CASE(table_is_read_at_registration),
	KUNIT_CASE(attr_tells_what_the_entry_is),
	KUNIT_CASE(gid_is_found_by_device_port_and_filter),
	KUNIT_CASE(held_entry_outlives_its_deletion),
	KUNIT_CASE(held_entry_outlives_its_replacement),
	KUNIT_CASE(readers_race_with_deletion),
	KUNIT_CASE(pkey_is_found_by_its_value),
	KUNIT_CASE(pkeys_are_read_where_gids_cannot_be),
	KUNIT_CASE(iwarp_gid_names_the_netdev_of_its_port),
	KUNIT_CASE(roce_port_has_its_default_gids),
	KUNIT_CASE(roce_attr_names_its_netdev),
	KUNIT_CASE(roce_gids_follow_the_addresses),
	KUNIT_CASE(n1_addresses_of_what_is_on_top_are_gids),
	KUNIT_CASE(held_roce_entry_does_not_hold_the_netdev),
	KUNIT_CASE_SLOW(netdev_set_before_registration_goes_after_it),
	KUNIT_CASE_SLOW(netdev_set_before_registration_goes_without_it),
	KUNIT_CASE(gid_without_a_slot_comes_when_one_is_free),
	KUNIT_CASE(link_local_gid_does_not_wait_for_a_default_slot),
	KUNIT_CASE(network_device_of_any_type_has_gids),
	KUNIT_CASE(full_table_keeps_the_first_addresses_and_is_told_once),
	KUNIT_CASE(rescan_of_an_unregistered_device_adds_nothing),
	KUNIT_CASE(gid_refused_by_the_driver_is_not_there),
	KUNIT_CASE(roce_port_without_a_netdev_has_no_gids),
	{}
};
KVT_SUITE(core_gid);

MODULE_DESCRIPTION("KUnit: GID and P_Key caches");
MODULE_LICENSE("GPL");
