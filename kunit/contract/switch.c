// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: switching it on and off, reading its reports, and rule 10, which
 * forbids registration in atomic context.
 */
#include <linux/irqflags.h>
#include <linux/lockdep.h>
#include <linux/preempt.h>
#include <linux/tracepoint.h>

#include "contract/rig.h"

#define PARAMETER	"/sys/module/kverbs/parameters/contract"

/* Breaks rule 12 once: no sends may be posted to a QP in INIT. */
CONTRACT_CALLER(send_in_init, struct contract_scene *scene, CONTRACT_SEND(scene->qp))

static void expect_send(struct kunit *test, struct contract_scene *scene)
{
	CONTRACT_EXPECT(test, STATE, SELF, .what = "post_send in state INIT", .object = "qp",
			.id = scene->qp->res.id, .site = send_in_init);
}

static void nothing_is_reported_while_it_is_off(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct ib_contract_report before = {}, after = {};

	ib_contract_read(0, &before);
	KUNIT_ASSERT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_OFF));
	KUNIT_EXPECT_EQ(test, IB_CONTRACT_OFF, ib_contract_get_mode());
	scene->in_method = contract_sleep;
	KUNIT_EXPECT_EQ(test, 0, send_in_init(scene));
	scene->in_method = NULL;
	scene->in_handler = contract_sleep;
	contract_call_comp_handler(scene);
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_dealloc_pd_user(scene->pd, NULL));
	contract_expect_none(test);
	ib_contract_read(0, &after);
	KUNIT_EXPECT_EQ(test, before.nr, after.nr);

	KUNIT_ASSERT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_WARN));
	KUNIT_EXPECT_EQ(test, 0, send_in_init(scene));
	expect_send(test, scene);
}

/*
 * A method that is running when the checker is switched on or off is not reported, although
 * it sleeps here, and its return does not confuse the checker.
 */
static void switch_on(struct contract_scene *scene)
{
	ib_contract_set_mode(IB_CONTRACT_WARN);
	contract_sleep(scene);
}

static void switch_off(struct contract_scene *scene)
{
	ib_contract_set_mode(IB_CONTRACT_OFF);
	contract_sleep(scene);
}

static void it_is_switched_while_a_method_runs(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(scene->qp));
	scene->in_method = switch_off;
	KUNIT_EXPECT_EQ(test, 0, send_in_init(scene));
	contract_expect_none(test);
	scene->in_method = switch_on;
	KUNIT_EXPECT_EQ(test, 0, send_in_init(scene));
	contract_expect_none(test);
	scene->in_method = NULL;
	KUNIT_EXPECT_EQ(test, 0, send_in_init(scene));
	contract_expect_none(test);
	/* No method may be taken for still running, which would make this callback a chain. */
	contract_call_comp_handler(scene);
	contract_expect_none(test);
}

static void set_mode_refuses_what_is_no_mode(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_contract_set_mode(IB_CONTRACT_MODES));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_contract_set_mode(-1));
	KUNIT_EXPECT_EQ(test, IB_CONTRACT_WARN, ib_contract_get_mode());
	KUNIT_EXPECT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_WARN));
	KUNIT_EXPECT_EQ(test, IB_CONTRACT_WARN, ib_contract_get_mode());
}

static void the_parameter_is_the_switch(struct kunit *test)
{
	static const struct {
		const char *text;
		enum ib_contract_mode mode;
	} modes[] = {
		/* No rule is broken in this mode, as the kernel would panic. */
		{ "panic", IB_CONTRACT_PANIC }, { "off", IB_CONTRACT_OFF },
		{ "warn", IB_CONTRACT_WARN },
	};
	static const char * const others[] = { "on", "1", "warning", "of" };
	char text[16];
	int i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		KUNIT_EXPECT_EQ(test, 0, kvt_write_file(PARAMETER, modes[i].text));
		KUNIT_EXPECT_EQ(test, modes[i].mode, ib_contract_get_mode());
		KUNIT_EXPECT_LT(test, 0, kvt_read_file(PARAMETER, text, sizeof(text)));
		KUNIT_EXPECT_STREQ(test, modes[i].text, (const char *)text);
	}
	for (i = 0; i < ARRAY_SIZE(others); i++)
		KUNIT_EXPECT_EQ(test, -EINVAL, kvt_write_file(PARAMETER, others[i]));
	KUNIT_EXPECT_EQ(test, IB_CONTRACT_WARN, ib_contract_get_mode());
}

/* Reports are read from the newest to the oldest; only the last 32 are kept. */
static void reports_are_read_from_the_last(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct ib_contract_report report, next;
	unsigned int i, kept;

	for (i = 0; i < 40; i++) {
		KUNIT_EXPECT_EQ(test, 0, send_in_init(scene));
		expect_send(test, scene);
	}
	KUNIT_ASSERT_EQ(test, -EBUSY, ib_dealloc_pd_user(scene->pd, NULL));
	KUNIT_ASSERT_TRUE(test, ib_contract_read(0, &next));
	KUNIT_EXPECT_EQ(test, IB_RULE_BUSY, next.rule);
	for (kept = 1; ib_contract_read(kept, &report); kept++) {
		KUNIT_EXPECT_EQ(test, next.nr - 1, report.nr);
		KUNIT_EXPECT_EQ(test, IB_RULE_STATE, report.rule);
		next = report;
	}
	KUNIT_EXPECT_EQ(test, 32, kept);
	KUNIT_EXPECT_FALSE(test, ib_contract_read(UINT_MAX, &report));
	contract_expect_counted(test, IB_RULE_BUSY, 1);
}

static void there_is_no_count_of_what_is_no_rule(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, ib_contract_count(0));
	KUNIT_EXPECT_EQ(test, 0, ib_contract_count(IB_RULES));
	KUNIT_EXPECT_EQ(test, 0, ib_contract_count(-1));
}

/* Rule 10: nothing is registered or unregistered in atomic context. */

static int nothing_to_add(struct ib_device *dev)
{
	return -EOPNOTSUPP;
}

static struct ib_client client = { .name = "contract_3", .add = nothing_to_add };
static struct mock *mock;

static noinline int call_register_client(void)
{
	return CONTRACT_CALL(ib_register_client(&client));
}

static noinline int call_unregister_client(void)
{
	ib_unregister_client(&client);
	return CONTRACT_CALL(-EINVAL);
}

static noinline int call_register_device(void)
{
	return CONTRACT_CALL(ib_register_device(mock->ibdev, CONTRACT_DEVICE, NULL));
}

static noinline int call_unregister_device(void)
{
	ib_unregister_device(mock->ibdev);
	return CONTRACT_CALL(-EINVAL);
}

static noinline int call_unregister_driver(void)
{
	/* No device has this driver ID, so this call unregisters nothing. */
	ib_unregister_driver(RDMA_DRIVER_OCRDMA);
	return CONTRACT_CALL(-EINVAL);
}

/* A function that may not be called in atomic context. */
struct call {
	const char *name;	/* name of the function */
	/* Calls the function; -EINVAL means refused, and is always returned for void functions. */
	int (*call)(void);
	const char *what;	/* how the report begins */
	/*
	 * Device name in the report, "?" if the device has none yet; NULL if the report is not
	 * about a device.
	 */
	const char *device;
};

/* In this order, all calls are legal in process context. */
static const struct call calls[] = {
	{ "ib_register_client", call_register_client, "registers a client in atomic" },
	{ "ib_unregister_client", call_unregister_client, "unregisters a client in atomic" },
	{ "ib_register_device", call_register_device, "registers a device in atomic", "?" },
	{ "ib_unregister_device", call_unregister_device, "unregisters a device in atomic", "?" },
	{ "ib_unregister_driver", call_unregister_driver, "unregisters its devices in atomic" },
};

KUNIT_ARRAY_PARAM_DESC(calls, calls, name);

static void mock_for_calls(struct kunit *test)
{
	mock = mock_new(test);
	mock_alloc(test, mock);
}

static void expect_refused(struct kunit *test, const struct call *call, int ret)
{
	KUNIT_EXPECT_EQ(test, -EINVAL, ret);
	CONTRACT_EXPECT(test, REGISTER, SELF, .what = call->what, .site = call->call,
			.no_device = !call->device, .device = call->device);
}

static void registration_with_interrupts_off_is_reported(struct kunit *test)
{
	const struct call *call = test->param_value;
	int ret;

	mock_for_calls(test);
	local_irq_disable();
	ret = call->call();
	local_irq_enable();
	expect_refused(test, call, ret);
}

static void registration_with_preemption_off_is_reported(struct kunit *test)
{
	const struct call *call = test->param_value;
	int ret;

	if (!IS_ENABLED(CONFIG_PREEMPT_COUNT))
		kunit_skip(test, "the kernel does not count");
	mock_for_calls(test);
	preempt_disable();
	ret = call->call();
	preempt_enable();
	expect_refused(test, call, ret);
}

/*
 * The calls may wait for a grace period, which cannot end before this read-side section
 * does.
 */
static void registration_under_rcu_is_reported(struct kunit *test)
{
	const struct call *call = test->param_value;
	int ret;

	if (!IS_ENABLED(CONFIG_PREEMPT_RCU) && !IS_ENABLED(CONFIG_PREEMPT_COUNT))
		kunit_skip(test, "the kernel does not count");
	mock_for_calls(test);
	rcu_read_lock();
	ret = call->call();
	rcu_read_unlock();
	expect_refused(test, call, ret);
}

/*
 * The call is refused in atomic context, but still puts the caller's reference, so that the
 * device can be unregistered later.
 */
static noinline void call_unregister_and_put(struct ib_device *dev)
{
	ib_unregister_device_and_put(dev);
	barrier();
}

static void unregistering_a_used_device_is_reported(struct kunit *test)
{
	struct mock *m = mock_up(test, CONTRACT_DEVICE);
	unsigned int users = refcount_read(&m->ibdev->refcount);

	KUNIT_ASSERT_TRUE(test, ib_device_try_get(m->ibdev));
	local_irq_disable();
	call_unregister_and_put(m->ibdev);
	local_irq_enable();
	CONTRACT_EXPECT(test, REGISTER, SELF, .what = "unregisters a device in atomic",
			.site = call_unregister_and_put);
	KUNIT_EXPECT_EQ(test, users, refcount_read(&m->ibdev->refcount));
}

/* Completed by an event handler that unregisters itself as soon as it is called. */
static struct completion called;

static void unregister_myself(struct ib_event_handler *handler, struct ib_event *event)
{
	ib_unregister_event_handler(handler);
	complete(&called);
}

/*
 * The handler is not called again, and the call does not wait for a grace period, which could
 * not end before the handler returns.
 */
static void handler_that_unregisters_itself_is_reported(struct kunit *test)
{
	struct mock *m = mock_up(test, CONTRACT_DEVICE);
	struct ib_event_handler *handler = kvt_zalloc(test, sizeof(*handler));

	init_completion(&called);
	INIT_IB_EVENT_HANDLER(handler, m->ibdev, unregister_myself);
	ib_register_event_handler(handler);
	mock_event(m, 1, IB_EVENT_DEVICE_FATAL);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&called));
	CONTRACT_EXPECT(test, REGISTER, SELF,
			.what = "unregisters an event handler in an event handler",
			.site = unregister_myself);
	mock_event(m, 1, IB_EVENT_DEVICE_FATAL);
	/* Waits until the second event was delivered. */
	mock_unregister(m);
	KUNIT_EXPECT_FALSE(test, completion_done(&called));
	contract_expect_none(test);
}

static void handler_unregistered_by_a_process_is_not(struct kunit *test)
{
	struct mock *m = mock_up(test, CONTRACT_DEVICE);
	struct ib_event_handler *handler = kvt_zalloc(test, sizeof(*handler));

	INIT_IB_EVENT_HANDLER(handler, m->ibdev, unregister_myself);
	ib_register_event_handler(handler);
	ib_unregister_event_handler(handler);
	contract_expect_none(test);
}

static void registration_from_a_process_is_not(struct kunit *test)
{
	unsigned int i;

	mock_for_calls(test);
	for (i = 0; i < ARRAY_SIZE(calls); i++)
		calls[i].call();
	contract_expect_none(test);
}

/*
 * Breaking rule 10 by holding a lock is left to lockdep: registration and unregistration
 * write-acquire the lockdep map "kverbs_client_method", which clients' methods hold for
 * reading. A probe on the lock_acquire tracepoint counts these acquisitions.
 */
static struct {
	struct tracepoint *tp;
	struct task_struct *task;
	unsigned int writes, reads;
} method_class;

#ifdef CONFIG_LOCKDEP
static bool is_method_class(const struct lockdep_map *lock)
{
	return lock->name && !strcmp(lock->name, "kverbs_client_method");
}
#else
/* Without lockdep there is no lock_acquire tracepoint, so this is never called. */
static bool is_method_class(const struct lockdep_map *lock)
{
	return false;
}
#endif

static void probe_lock_acquire(void *data, struct lockdep_map *lock, unsigned int subclass,
			       int trylock, int read, int check, struct lockdep_map *next,
			       unsigned long ip)
{
	if (current != method_class.task || !is_method_class(lock))
		return;
	if (read)
		method_class.reads++;
	else
		method_class.writes++;
}

static void unwatch_class(void *arg)
{
	tracepoint_probe_unregister(method_class.tp, probe_lock_acquire, NULL);
	tracepoint_synchronize_unregister();
}

static void watch_class(struct kunit *test)
{
	method_class.tp = kvt_tracepoint("lock_acquire");
	if (!method_class.tp)
		kunit_skip(test, "lockdep is not built in");
	method_class.task = current;
	KUNIT_ASSERT_EQ(test, 0, tracepoint_probe_register(method_class.tp, probe_lock_acquire,
							   NULL));
	kvt_defer(test, unwatch_class, NULL);
}

static void registration_has_a_class_for_lockdep(struct kunit *test)
{
	unsigned int i;

	mock_for_calls(test);
	watch_class(test);
	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		method_class.writes = 0;
		calls[i].call();
		KUNIT_EXPECT_NE_MSG(test, 0, method_class.writes, "%s", calls[i].name);
	}
}

/* Acquisitions counted by add(): for reading, before it, and for writing, within it. */
static unsigned int nested_reads, nested_writes;

static int add_registers(struct ib_device *dev)
{
	if (dev != mock->ibdev)
		return -EOPNOTSUPP;
	nested_reads = method_class.reads;
	method_class.writes = 0;
	call_register_client();
	call_unregister_client();
	nested_writes = method_class.writes;
	return -EOPNOTSUPP;
}

/*
 * A client's method holds the map for reading. Registrations made by the method must not
 * acquire it for writing, as lockdep would report a deadlock.
 */
static void methods_have_a_class_for_lockdep(struct kunit *test)
{
	struct ib_client outer = { .name = "contract_outer", .add = add_registers };

	mock_for_calls(test);
	KUNIT_ASSERT_EQ(test, 0, mock_register(mock, CONTRACT_DEVICE));
	watch_class(test);
	method_class.reads = 0;
	nested_reads = 0;
	KUNIT_ASSERT_EQ(test, 0, ib_register_client(&outer));
	KUNIT_EXPECT_NE(test, 0, nested_reads);
	KUNIT_EXPECT_EQ(test, 0, nested_writes);
	ib_unregister_client(&outer);
	contract_expect_none(test);
}

static struct kunit_case contract_switch_cases[] = {
	KUNIT_CASE(nothing_is_reported_while_it_is_off),
	KUNIT_CASE(it_is_switched_while_a_method_runs),
	KUNIT_CASE(set_mode_refuses_what_is_no_mode),
	KUNIT_CASE(the_parameter_is_the_switch),
	KUNIT_CASE(reports_are_read_from_the_last),
	KUNIT_CASE(there_is_no_count_of_what_is_no_rule),
	KUNIT_CASE_PARAM(registration_with_interrupts_off_is_reported, calls_gen_params),
	KUNIT_CASE_PARAM(registration_with_preemption_off_is_reported, calls_gen_params),
	KUNIT_CASE_PARAM(registration_under_rcu_is_reported, calls_gen_params),
	KUNIT_CASE(unregistering_a_used_device_is_reported),
	KUNIT_CASE(handler_that_unregisters_itself_is_reported),
	KUNIT_CASE(handler_unregistered_by_a_process_is_not),
	KUNIT_CASE(registration_from_a_process_is_not),
	KUNIT_CASE(registration_has_a_class_for_lockdep),
	KUNIT_CASE(methods_have_a_class_for_lockdep),
	{}
};
KVT_SUITE(contract_switch, .init = contract_init, .exit = contract_exit);
