// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unregistration of a device or client that has to wait logs what it waits for: the uses of
 * a device and a remove() that does not return repeatedly, a callback that it waits for once.
 */
#include "lib/client.h"
#include "lib/console.h"
#include "cq/rig.h"
#include "lib/mock.h"

static int unregister_device(void *arg)
{
	mock_unregister(arg);
	return 0;
}

static int unregister_client(void *arg)
{
	kvt_client_unregister(arg);
	return 0;
}

static int register_client(void *arg)
{
	return kvt_client_register(arg);
}

static void uses_that_are_left_are_told_in_each_round(struct kunit *test)
{
	struct kvt_console *two = kvt_console_watch(test, "unregister waiting for 2 references");
	struct kvt_console *one = kvt_console_watch(test, "unregister waiting for 1 references");
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_thread *t;
	bool in_time;

	cq_rig_warn_soon(test);
	KUNIT_ASSERT_TRUE(test, ib_device_try_get(m->ibdev));
	KUNIT_ASSERT_TRUE(test, ib_device_try_get(m->ibdev));
	t = kvt_thread_start(test, -1, unregister_device, m);
	in_time = kvt_console_wait(two) && kvt_console_wait(two);
	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_EQ(test, 0, kvt_console_times(one));
	ib_device_put(m->ibdev);
	in_time = kvt_console_wait(one);
	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(t));
	ib_device_put(m->ibdev);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
}

static void unregistration_that_waits_for_nobody_tells_nothing(struct kunit *test)
{
	struct kvt_console *device = kvt_console_watch(test, "kvtm_a: unregister waiting");
	struct kvt_console *client = kvt_console_watch(test, "kvtm_a: removing client");
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_trace *tr = kvt_trace_new(test);

	cq_rig_warn_soon(test);
	kvt_client_up(test, "A", tr);
	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, 0, kvt_console_times(device));
	KUNIT_EXPECT_EQ(test, 0, kvt_console_times(client));
}

/* Holds up a callback of a client. */
static void at_the_gate(struct kvt_client *c, struct ib_device *ibdev)
{
	if (!strcmp(dev_name(&ibdev->dev), "kvtm_a"))
		kvt_gate_sleep(c->arg);
}

/*
 * Waits for @nr warning periods, as counted by warnings about another device. Unlike a delay,
 * these do not run ahead of the core when a CPU is held up.
 */
static void let_rounds_pass(struct kunit *test, unsigned int nr)
{
	struct kvt_console *c = kvt_console_watch(test, "kvtm_b: unregister waiting");
	struct mock *m = mock_up(test, "kvtm_b");
	struct kvt_thread *t;
	bool in_time = true;

	KUNIT_ASSERT_TRUE(test, ib_device_try_get(m->ibdev));
	t = kvt_thread_start(test, -1, unregister_device, m);
	while (nr--)
		in_time &= kvt_console_wait(c);
	KUNIT_EXPECT_TRUE(test, in_time);
	ib_device_put(m->ibdev);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
}

/* @busy is held up in a callback of client A while @waits unregisters the device or A. */
static void waits_for_a_client(struct kunit *test, struct kvt_client *client, struct kvt_gate *g,
			       struct kvt_thread *busy, struct kvt_thread *waits)
{
	struct kvt_console *c = kvt_console_watch(test,
		"kvtm_a: removing client A: waiting for its ");
	bool in_time;

	kvt_gate_init(g);
	client->arg = g;
	cq_rig_warn_soon(test);
	kvt_thread_go(busy);
	in_time = kvt_wait(&g->entered);
	KUNIT_EXPECT_TRUE(test, in_time);
	kvt_thread_go(waits);
	in_time = kvt_console_wait(c);
	KUNIT_EXPECT_TRUE(test, in_time);
	let_rounds_pass(test, 3);
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(c));
	kvt_gate_open(g);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(busy));
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(waits));
}

static void device_that_waits_for_a_client_tells_its_name_once(struct kunit *test)
{
	struct kvt_client *client = kvt_client_new(test, "A", kvt_trace_new(test));
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_gate g;

	client->on_add = at_the_gate;
	waits_for_a_client(test, client, &g,
			   kvt_thread_new(test, -1, register_client, client),
			   kvt_thread_new(test, -1, unregister_device, m));
}

static void client_that_waits_for_its_remove_tells_its_name_once(struct kunit *test)
{
	struct kvt_client *client = kvt_client_new(test, "A", kvt_trace_new(test));
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_gate g;

	client->on_remove = at_the_gate;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(client));
	waits_for_a_client(test, client, &g,
			   kvt_thread_new(test, -1, unregister_device, m),
			   kvt_thread_new(test, -1, unregister_client, client));
}

/* Also if the unregistering thread itself is in remove(), so that it does not wait. */
static void remove_that_does_not_return_is_logged_in_each_round(struct kunit *test)
{
	struct kvt_console *said = kvt_console_watch(test,
						     "kvtm_a: client A: remove() has run for ");
	struct kvt_client *client = kvt_client_new(test, "A", kvt_trace_new(test));
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_thread *t;
	struct kvt_gate g;
	bool in_time;

	client->on_remove = at_the_gate;
	client->arg = &g;
	kvt_gate_init(&g);
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(client));
	cq_rig_warn_soon(test);
	t = kvt_thread_start(test, -1, unregister_device, m);
	in_time = kvt_wait(&g.entered) && kvt_console_wait(said) && kvt_console_wait(said);
	KUNIT_EXPECT_TRUE(test, in_time);
	kvt_gate_open(&g);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	kvt_client_unregister(client);
}

static struct kunit_case core_device_wait_cases[] = {
	KUNIT_CASE(uses_that_are_left_are_told_in_each_round),
	KUNIT_CASE(unregistration_that_waits_for_nobody_tells_nothing),
	KUNIT_CASE(device_that_waits_for_a_client_tells_its_name_once),
	KUNIT_CASE(client_that_waits_for_its_remove_tells_its_name_once),
	KUNIT_CASE(remove_that_does_not_return_is_logged_in_each_round),
	{}
};
KVT_SUITE(core_device_wait);
