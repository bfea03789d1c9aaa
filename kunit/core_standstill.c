// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread stands still in the core, between its look at something and the step that relies
 * on it, while what it looked at goes, comes back and goes on for longer than any number of
 * few bits can count. See kverbs/delay.h, and "Numbers that wrap" in lifetime.rst.
 */
#include <linux/completion.h>
#include <linux/fcntl.h>
#include <linux/inet.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/sched.h>
#include <kunit/test.h>
#include <kverbs/delay.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "ca_rig.h"
#include "lib.h"
#include "mock.h"
#include "objects.h"
#include "suites.h"

/* More often than a table has places, and than any grace period lasts. */
#define ROUNDS		200

/* --- events ------------------------------------------------------------------- */

/**
 * struct listener - counts the events of a device
 * @handler: the handler
 * @calls: its calls
 */
struct listener {
	struct ib_event_handler handler;
	atomic_t calls;
};

static void heard(struct ib_event_handler *handler, struct ib_event *event)
{
	atomic_inc(&container_of(handler, struct listener, handler)->calls);
}

static void dispatch(struct mock *m, enum ib_event_type type, bool memory)
{
	struct ib_event event = {
		.device = m->ibdev,
		.element.port_num = 1,
		.event = type,
	};

	if (!memory)
		kvt_fail_nth(1);
	ib_dispatch_event(&event);
	if (!memory)
		kvt_failed_nth();
}

/*
 * The work item stands still in a method of the driver. Without memory, an event that comes
 * meanwhile is merged with those of its kind that wait; it does not matter how many did.
 */
static void event_is_not_lost_after_any_number_of_others(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_s");
	struct listener *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	int i;

	kvt_need_injection(test);
	KUNIT_ASSERT_NOT_NULL(test, l);
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
	mock_alloc(test, m);
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_s"));
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
	KUNIT_CASE(counter_that_nobody_read_for_long_is_read_again),
	{}
};

static struct kunit_suite core_standstill_suite = {
	.name = "core_standstill",
	.test_cases = core_standstill_cases,
};

kunit_test_suites(&core_standstill_suite, &cq_standstill_suite, &peer_standstill_suite);

MODULE_DESCRIPTION("KUnit: threads that stand still in the core, its CQs and peer memory");
MODULE_LICENSE("GPL");
