// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread stands still in the core, between reading something and the step that relies on
 * it, while what it has read goes away, comes back, and changes more often than a counter
 * of few bits can count. See kverbs/delay.h, and "Numbers that wrap" in lifetime.rst.
 */
#include <linux/fcntl.h>
#include <linux/inet.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <kverbs/delay.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "ca/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

/* More often than a table has places, and than any grace period lasts. */
#define ROUNDS		200

/* --- events ------------------------------------------------------------------- */

/* Counts the events of a device. */
struct listener {
	struct ib_event_handler handler;
	atomic_t calls;	/* its calls */
};

static void heard(struct ib_event_handler *handler, struct ib_event *event)
{
	atomic_inc(&container_of(handler, struct listener, handler)->calls);
}

static void dispatch(struct mock *m, enum ib_event_type type, bool memory)
{
	if (!memory)
		kvt_fail_nth(1);
	mock_event(m, 1, type);
	if (!memory)
		kvt_failed_nth();
}

/*
 * The work item stands still in a method of the driver. Without memory, an event that is
 * reported meanwhile is merged with pending ones of its kind, however many there are.
 */
static void event_is_not_lost_after_any_number_of_others(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_s");
	struct listener *l = kvt_zalloc(test, sizeof(*l));
	int i;

	kvt_need_injection(test);
	INIT_IB_EVENT_HANDLER(&l->handler, m->ibdev, heard);
	ib_register_event_handler(&l->handler);
	mock_hold(m, MOCK_query_pkey);
	dispatch(m, IB_EVENT_SM_CHANGE, true);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));

	dispatch(m, IB_EVENT_DEVICE_FATAL, false);
	/* As after some minutes of nothing but dispatching. */
	mock_event_has_waited(m, INT_MAX);
	for (i = 0; i < 3; i++)
		dispatch(m, IB_EVENT_DEVICE_FATAL, false);
	mock_hold_end(m);
	mock_events_flush(m);
	/* The one that held up the work; the first of the others; and all others. */
	KUNIT_EXPECT_EQ(test, 3, atomic_read(&l->calls));
	ib_unregister_event_handler(&l->handler);
}

/* --- GIDs --------------------------------------------------------------------- */

static union ib_gid ip4_gid(__be32 addr)
{
	union ib_gid gid;

	ipv6_addr_set_v4mapped(addr, (struct in6_addr *)gid.raw);
	return gid;
}

static void give_address(struct mock *m, __be32 addr, bool add)
{
	kvt_netdev_ip4(m->port[1].ndev, addr, add);
	rdma_roce_rescan_device(m->ibdev);
}

static __be32 other_address(int i)
{
	return htonl(0xc0000280 + i % 64);
}

/* What happens to the table while a thread makes an address handle. */
struct gid_life {
	struct mock *m;	/* the device */
	__be32 addr;	/* the address that goes */
	int index;	/* place of its GID */
	int taken;	/* the place was given to another GID */
};

static void gid_goes_and_others_come(void *arg)
{
	struct gid_life *l = arg;
	int i;

	give_address(l->m, l->addr, false);
	for (i = 0; i < ROUNDS; i++) {
		give_address(l->m, other_address(i), true);
		l->taken += test_bit(l->index, &l->m->port[1].valid);
		give_address(l->m, other_address(i), false);
	}
}

/* The place of a GID that somebody has looked up is not given to another. */
static void address_handle_has_the_gid_that_was_looked_up(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_s", ndev);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct gid_life l = { .m = m, .addr = in_aton("192.0.2.1") };
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	union ib_gid gid = ip4_gid(l.addr);
	const struct ib_gid_attr *sgid;
	struct ib_ah *ah;

	give_address(m, l.addr, true);
	sgid = KVT_PTR(test, rdma_find_gid(m->ibdev, &gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL));
	l.index = sgid->index;
	rdma_put_gid_attr(sgid);

	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_grh(&attr, &gid, 0, l.index, 64, 0);
	kverbs_delay_set("ah_create", gid_goes_and_others_come, &l);
	ah = rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(ah));
	KUNIT_EXPECT_EQ(test, 0, l.taken);
	KUNIT_EXPECT_EQ(test, l.index, ah->sgid_attr->index);
	KUNIT_EXPECT_MEMEQ(test, &ah->sgid_attr->gid, &gid, sizeof(gid));
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	/* With the last reference the place is free. */
	give_address(m, l.addr, true);
	KUNIT_EXPECT_TRUE(test, test_bit(l.index, &m->port[1].valid));
}

/* A thread that changes an entry of the table while another looks at it. */
struct gid_other {
	struct mock *m;		/* the device, of InfiniBand */
	struct completion go;	/* completed when the other thread stands still */
	int done;		/* set when the changes are made */
};

static int change_gids(void *arg)
{
	struct gid_other *o = arg;
	int i, ret = kvt_wait(&o->go) ? 0 : -ETIMEDOUT;

	for (i = 0; !ret && i < ROUNDS; i++) {
		o->m->port[1].gids[1].global.interface_id = cpu_to_be64(i + 2);
		dispatch(o->m, IB_EVENT_GID_CHANGE, true);
		mock_events_flush(o->m);
	}
	WRITE_ONCE(o->done, 1);
	return ret;
}

/* Under RCU, where nothing may sleep. */
static void wait_for_changes(void *arg)
{
	struct gid_other *o = arg;

	complete(&o->go);
	while (!READ_ONCE(o->done))
		cpu_relax();
}

/* It holds an RCU section, so its entry cannot have become another one. */
static void gid_that_went_is_not_taken_for_its_successor(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_s");
	struct gid_other o = { .m = m };
	const struct ib_gid_attr *attr;
	struct kvt_thread *t;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	init_completion(&o.go);
	t = kvt_thread_start(test, kvt_other_cpu(), change_gids, &o);
	kverbs_delay_set("gid_get_entry", wait_for_changes, &o);
	attr = rdma_get_gid_attr(m->ibdev, 1, 1);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, -ENODATA, PTR_ERR_OR_ZERO(attr));
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(t));

	attr = KVT_PTR(test, rdma_get_gid_attr(m->ibdev, 1, 1));
	KUNIT_EXPECT_EQ(test, ROUNDS + 1, be64_to_cpu(attr->gid.global.interface_id));
	rdma_put_gid_attr(attr);
}

/* --- queries ------------------------------------------------------------------ */

static void lid_changes(void *arg)
{
	struct mock *m = arg;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		m->port[1].attr.lid = 0x100 + i;
		dispatch(m, IB_EVENT_LID_CHANGE, true);
		mock_events_flush(m);
	}
}

static long query_port(int fd, unsigned long addr, u64 handle, struct kverbs_ca_port_attr *attr)
{
	struct kverbs_ca_request r = {
		.handle = handle, .port = 1, .out = addr + SZ_1K, .out_len = sizeof(*attr),
	};
	long ret = ca_rig_ioctl(fd, addr, KVERBS_CA_QUERY_PORT, &r);

	if (copy_from_user(attr, (void __user *)(addr + SZ_1K), sizeof(*attr)))
		return -EFAULT;
	return ret;
}

/* The process's memory can make the copy wait for as long as the process likes. */
static void answer_to_a_query_is_of_one_moment(struct kunit *test)
{
	unsigned long addr = kvt_map(test, PAGE_SIZE);
	struct mock *m = mock_up(test, "kvtm_s");
	struct kverbs_ca_request r = { .flags = KVERBS_CA_SHARED };
	struct kverbs_ca_port_attr before, late, after;
	int fd = ca_rig_open_file("kvtm_s", O_RDWR);

	KUNIT_ASSERT_GE(test, fd, 0);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_ioctl(fd, addr, KVERBS_CA_OPEN, &r));
	/* It does not fit with the tables behind it. */
	KUNIT_EXPECT_EQ(test, -EOVERFLOW, query_port(fd, addr, r.handle, &before));
	kverbs_delay_set("ca_image_copy", lid_changes, m);
	KUNIT_EXPECT_EQ(test, -EOVERFLOW, query_port(fd, addr, r.handle, &late));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_MEMEQ(test, &before, &late, sizeof(before));
	KUNIT_EXPECT_EQ(test, -EOVERFLOW, query_port(fd, addr, r.handle, &after));
	KUNIT_EXPECT_EQ(test, 0x100 + ROUNDS - 1, after.lid);
	KUNIT_EXPECT_EQ(test, before.generation + ROUNDS, after.generation);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close_file(fd));
}

/* --- counters ------------------------------------------------------------------- */

#define COUNTER		"/sys/class/infiniband/kvtm_s/hw_counters/asked"

static const struct rdma_stat_desc counters[] = { { .name = "asked" } };

static struct rdma_hw_stats *counter_stats;

static struct rdma_hw_stats *alloc_counter(struct ib_device *ibdev)
{
	counter_stats = rdma_alloc_hw_stats_struct(counters, ARRAY_SIZE(counters),
						   RDMA_HW_STATS_DEFAULT_LIFESPAN);
	return counter_stats;
}

/* The counter counts how often it was read from the device. */
static int get_counter(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port, int index)
{
	stats->value[0]++;
	return stats->num_counters;
}

/* The reader stands still between two reads, for more than half of what jiffies can count. */
static void counter_that_nobody_read_for_long_is_read_again(struct kunit *test)
{
	struct mock *m = mock_new(test);
	char text[16];

	m->ops.alloc_hw_device_stats = alloc_counter;
	m->ops.get_hw_stats = get_counter;
	mock_start(test, m, "kvtm_s");
	KUNIT_ASSERT_GT(test, kvt_read_file(COUNTER, text, sizeof(text)), 0);
	KUNIT_EXPECT_STREQ(test, "1", (const char *)text);
	mutex_lock(&counter_stats->lock);
	counter_stats->timestamp = jiffies + LONG_MAX - 1000 * HZ;
	mutex_unlock(&counter_stats->lock);
	KUNIT_ASSERT_GT(test, kvt_read_file(COUNTER, text, sizeof(text)), 0);
	KUNIT_EXPECT_STREQ(test, "2", (const char *)text);
}

static struct kunit_case core_standstill_cases[] = {
	KUNIT_CASE(event_is_not_lost_after_any_number_of_others),
	KUNIT_CASE(address_handle_has_the_gid_that_was_looked_up),
	KUNIT_CASE(gid_that_went_is_not_taken_for_its_successor),
	KUNIT_CASE(answer_to_a_query_is_of_one_moment),
	KUNIT_CASE(counter_that_nobody_read_for_long_is_read_again),
	{}
};
KVT_SUITE(core_standstill);

MODULE_DESCRIPTION("KUnit: threads that stand still in the core, its CQs and peer memory");
MODULE_LICENSE("GPL");
