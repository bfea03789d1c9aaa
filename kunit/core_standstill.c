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

static struct kunit_case core_standstill_cases[] = {
	KUNIT_CASE(event_is_not_lost_after_any_number_of_others),
	{}
};

static struct kunit_suite core_standstill_suite = {
	.name = "core_standstill",
	.test_cases = core_standstill_cases,
};

kunit_test_suites(&core_standstill_suite);

MODULE_DESCRIPTION("KUnit: threads that stand still in the core");
MODULE_LICENSE("GPL");
