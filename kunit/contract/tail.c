// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker, with consumer functions that end in a tail call of the core, which
 * then returns to their caller. Kernels with frame pointers are built without tail calls;
 * this file is built with them (see Kbuild). With KCSAN there are none: each function ends
 * in a call of KCSAN.
 */
#include "contract/rig.h"

/* For the callbacks below, which get no context. */
static struct contract_scene *scene;
static struct completion handled;

static struct ib_client nobody = { .name = "contract_tail" };

static void end_in_destruction(struct ib_event_handler *handler, struct ib_event *event)
{
	complete(&handled);
	ib_dealloc_pd_user(scene->pd, NULL);
}

static void end_in_unregistration(struct ib_event_handler *handler, struct ib_event *event)
{
	complete(&handled);
	ib_unregister_client(&nobody);
}

static void forget_scene(void *arg)
{
	scene = NULL;
}

static void make_scene(struct kunit *test)
{
	scene = contract_scene_up(test);
	kvt_defer(test, forget_scene, NULL);
}

/* Expects exactly one report, which blames this module though its site is elsewhere. */
static void expect_tail(struct kunit *test, enum ib_contract_rule rule, const char *what)
{
	struct ib_contract_report report = {};

	KUNIT_ASSERT_TRUE(test, ib_contract_read(0, &report));
	KUNIT_EXPECT_EQ(test, rule, report.rule);
	KUNIT_EXPECT_STREQ(test, CONTRACT_SELF, report.module);
	KUNIT_EXPECT_TRUE_MSG(test, strstarts(report.what, what), "\"%s\"", report.what);
	KUNIT_EXPECT_FALSE(test, within_module(report.site, THIS_MODULE));
	contract_expect_counted(test, rule, 1);
}

/* Calls @function as an event handler. */
static void call(struct kunit *test, void (*function)(struct ib_event_handler *handler,
						      struct ib_event *event))
{
	struct ib_event_handler handler;

	if (IS_ENABLED(CONFIG_KCSAN))
		kunit_skip(test, "functions end in calls of KCSAN");
	make_scene(test);
	init_completion(&handled);
	INIT_IB_EVENT_HANDLER(&handler, scene->m->ibdev, function);
	ib_register_event_handler(&handler);
	mock_event(scene->m, 1, IB_EVENT_DEVICE_FATAL);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&handled));
	/* Waits until the handler has returned. */
	ib_unregister_event_handler(&handler);
}

/* Rule 11. */
static void callback_that_ends_in_a_destruction_is_to_blame(struct kunit *test)
{
	call(test, end_in_destruction);
	expect_tail(test, IB_RULE_BUSY, "destroyed while in use");
}

/* Rule 10. */
static void callback_that_ends_in_an_unregistration_is_to_blame(struct kunit *test)
{
	call(test, end_in_unregistration);
	expect_tail(test, IB_RULE_REGISTER, "unregisters a client in an event handler");
}

static struct kunit_case contract_tail_cases[] = {
	KUNIT_CASE(callback_that_ends_in_a_destruction_is_to_blame),
	KUNIT_CASE(callback_that_ends_in_an_unregistration_is_to_blame),
	{}
};
KVT_SUITE(contract_tail, .init = contract_init, .exit = contract_exit);
