// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reports of the contract checker about clients: objects that they leave on a device, methods
 * that return with interrupts or preemption off, and use of a device that is gone for them.
 */
#include <linux/irqflags.h>
#include <linux/netdevice.h>
#include <linux/preempt.h>
#include <kverbs/upper.h>
#include <rdma/mr_pool.h>

#include "contract/objects.h"

/* A client of this module. */
struct member {
	struct ib_client client;		/* the client as registered with the core */
	struct objects *objects;	/* its device and objects; NULL: the client is not registered */
	/* Called in add(), which returns its result; or NULL. */
	int (*on_add)(struct objects *t);
	void (*on_remove)(struct objects *t);	/* called in remove(); or NULL */
};

static int member_add(struct member *member, struct ib_device *dev)
{
	if (!member->objects || dev != member->objects->m->ibdev)
		return -EOPNOTSUPP;
	return member->on_add ? member->on_add(member->objects) : 0;
}

static void member_remove(struct member *member)
{
	if (member->on_remove)
		member->on_remove(member->objects);
}

static struct member first, second;

static int first_add(struct ib_device *dev)
{
	return member_add(&first, dev);
}

static void first_remove(struct ib_device *dev, void *data)
{
	member_remove(&first);
}

static int second_add(struct ib_device *dev)
{
	return member_add(&second, dev);
}

static void second_remove(struct ib_device *dev, void *data)
{
	member_remove(&second);
}

static struct member first = {
	.client = { .name = "contract_1", .add = first_add, .remove = first_remove },
};

static struct member second = {
	.client = { .name = "contract_2", .add = second_add, .remove = second_remove },
};

static void member_leave(void *arg)
{
	struct member *member = arg;

	if (member->objects)
		ib_unregister_client(&member->client);
	member->objects = NULL;
}

static void member_join(struct kunit *test, struct member *member, struct objects *t,
			int (*on_add)(struct objects *t), void (*on_remove)(struct objects *t))
{
	member->objects = t;
	member->on_add = on_add;
	member->on_remove = on_remove;
	KUNIT_ASSERT_EQ(test, 0, ib_register_client(&member->client));
	kvt_defer(test, member_leave, member);
}

/* The PD, CQ and QP that other objects need are made by the driver's module, not the client's. */
static struct objects *objects_new(struct kunit *test)
{
	struct objects *t = kvt_zalloc(test, sizeof(*t));
	struct ib_qp_init_attr init;

	t->m = mock_up(test, CONTRACT_DEVICE);
	t->pd = kvt_pd(test, t->m->ibdev);
	t->cq = kvt_cq(test, t->m->ibdev, 16, IB_POLL_DIRECT);
	kvt_qp_init(&init, t->cq, t->cq);
	t->qp = kvt_qp(test, t->pd, &init);
	return t;
}

KUNIT_ARRAY_PARAM_DESC(kinds, contract_kinds, name);
KVT_PART_PARAM_DESC(objects, contract_kinds, 0, NR_OBJECTS, name);

/* Rule 7: what a client leaves on a device */

/* Expects a report that @t has a thing of the kind, and frees it. */
static void expect_left(struct kunit *test, const struct kind *kind, struct objects *t,
			const char *when)
{
	char what[64];

	snprintf(what, sizeof(what), "1 %s left when %s", kind->name, when);
	CONTRACT_EXPECT(test, LEFT, SELF, .what = what, .site = kind->site ?: kind->make);
	contract_off(test);
	kind->unmake(t);
}

static void what_a_client_leaves_is_reported(struct kunit *test)
{
	const struct kind *kind = test->param_value;
	struct objects *t = objects_new(test);

	member_join(test, &first, t, kind->make, NULL);
	contract_expect_none(test);
	member_leave(&first);
	expect_left(test, kind, t, "remove() returned");
}

static void what_a_client_takes_along_is_not(struct kunit *test)
{
	const struct kind *kind = test->param_value;
	struct objects *t = objects_new(test);

	member_join(test, &first, t, kind->make, kind->unmake);
	member_leave(&first);
	contract_expect_none(test);
}

static const struct kind *made;

static int make_and_fail(struct objects *t)
{
	return made->make(t) ?: -ENODEV;
}

static int make_and_decline(struct objects *t)
{
	return made->make(t) ?: -EOPNOTSUPP;
}

static void left_by_add(struct kunit *test, int (*add)(struct objects *t))
{
	const struct kind *kind = test->param_value;
	struct objects *t = objects_new(test);

	made = kind;
	member_join(test, &first, t, add, NULL);
	expect_left(test, kind, t, "add() failed");
}

static void what_a_failed_add_leaves_is_reported(struct kunit *test)
{
	left_by_add(test, make_and_fail);
}

static void what_a_declining_add_leaves_is_reported(struct kunit *test)
{
	left_by_add(test, make_and_decline);
}

/* The device is unregistered, rather than the client. */
static void what_is_left_on_a_device_that_goes_is_reported(struct kunit *test)
{
	const struct kind *kind = test->param_value;
	struct objects *t = objects_new(test);

	member_join(test, &first, t, kind->make, NULL);
	mock_unregister(t->m);
	expect_left(test, kind, t, "remove() returned");
}

static noinline int make_three_qps(struct objects *t)
{
	struct ib_qp_init_attr init;
	int i;

	for (i = 1; i < 4; i++) {
		kvt_qp_init(&init, t->cq, t->cq);
		t->qps[i] = CONTRACT_CALL(ib_create_qp(t->pd, &init));
		if (IS_ERR(t->qps[i]))
			return PTR_ERR(t->qps[i]);
	}
	return 0;
}

static int make_four_qps(struct objects *t)
{
	return make_three_qps(t) ?: thing_make_qp(t);
}

static void objects_left_are_counted_by_site(struct kunit *test)
{
	const struct contract_expected expected[] = {
		{ .rule = IB_RULE_LEFT, .module = CONTRACT_SELF, .count = 3,
		  .what = "3 qp left when remove() returned", .site = make_three_qps },
		{ .rule = IB_RULE_LEFT, .module = CONTRACT_SELF, .count = 1,
		  .what = "1 qp left when remove() returned", .site = thing_make_qp },
	};
	struct objects *t = objects_new(test);
	int i;

	member_join(test, &first, t, make_four_qps, NULL);
	member_leave(&first);
	contract_expect_all(test, expected, ARRAY_SIZE(expected));
	contract_off(test);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(t->qps[i]));
}

/* Clients of a module may share objects: these are left only when the last client has gone. */
static void the_last_client_of_a_module_leaves(struct kunit *test)
{
	struct objects *t = objects_new(test);

	member_join(test, &first, t, thing_make_pd, NULL);
	member_join(test, &second, t, NULL, NULL);
	member_leave(&first);
	contract_expect_none(test);
	KUNIT_EXPECT_EQ(test, 0, thing_make_mr(t));
	contract_expect_none(test);
	thing_unmake_mr(t);
	member_leave(&second);
	CONTRACT_EXPECT(test, LEFT, SELF, .site = thing_make_pd,
			.what = "1 pd left when remove() returned");
	contract_off(test);
	thing_unmake_pd(t);
}

/* Rule 6: context in which callbacks return */

static int add_with_interrupts_off(struct objects *t)
{
	local_irq_disable();
	return 0;
}

static void remove_with_interrupts_off(struct objects *t)
{
	local_irq_disable();
}

static int add_with_preemption_off(struct objects *t)
{
	preempt_disable();
	return 0;
}

static void remove_with_preemption_off(struct objects *t)
{
	preempt_disable();
}

static void expect_context(struct kunit *test, const char *what, const void *method)
{
	KUNIT_EXPECT_FALSE(test, irqs_disabled());
	CONTRACT_EXPECT(test, CALLBACK_CONTEXT, SELF, .what = what, .site = method);
}

static void interrupts_left_off_by_a_client_are_reported(struct kunit *test)
{
	struct objects *t = objects_new(test);

	member_join(test, &first, t, add_with_interrupts_off, remove_with_interrupts_off);
	expect_context(test, "add() changed interrupts", first_add);
	member_leave(&first);
	expect_context(test, "remove() changed interrupts", first_remove);
}

static void preemption_left_off_by_a_client_is_reported(struct kunit *test)
{
	struct objects *t = objects_new(test);

	if (!IS_ENABLED(CONFIG_PREEMPT_COUNT))
		kunit_skip(test, "the kernel does not count");
	member_join(test, &first, t, add_with_preemption_off, remove_with_preemption_off);
	expect_context(test, "add() changed preemption", first_add);
	member_leave(&first);
	expect_context(test, "remove() changed preemption", first_remove);
}

/* Rule 8: use of a device that is gone */

CONTRACT_CALLER(use_post_send, struct objects *t, CONTRACT_SEND(t->qp))
CONTRACT_CALLER(use_poll_cq, struct objects *t, ib_poll_cq(t->cq, 1, &(struct ib_wc) {}))
CONTRACT_CALLER(use_modify_qp, struct objects *t,
	ib_modify_qp(t->qp, &(struct ib_qp_attr) { .qp_state = IB_QPS_ERR }, IB_QP_STATE))
CONTRACT_CALLER(use_query_port, struct objects *t,
	ib_query_port(t->m->ibdev, 1, &(struct ib_port_attr) {}))

static noinline int use_fw_str(struct objects *t)
{
	char version[IB_FW_VERSION_NAME_MAX];

	ib_get_device_fw_str(t->m->ibdev, version);
	barrier();
	return 0;
}

static noinline int use_netdev(struct objects *t)
{
	struct net_device *ndev = CONTRACT_CALL(ib_device_get_netdev(t->m->ibdev, 1));

	dev_put(ndev);
	return 0;
}

CONTRACT_CALLER(use_pool_init, struct objects *t,
	ib_mr_pool_init(t->qp, &t->qp->rdma_mrs, 0, IB_MR_TYPE_MEM_REG, 1, 0))

static noinline int use_pool_destroy(struct objects *t)
{
	ib_mr_pool_destroy(t->qp, &t->qp->rdma_mrs);
	barrier();
	return 0;
}

/* A verbs call that a client may not make any more. */
struct use {
	const char *name;		/* of the method that the report names */
	int (*call)(struct objects *t);	/* makes the call */
	const char *object;		/* kind of its object in the report, or NULL */
};

static const struct use uses[] = {
	{ "post_send", use_post_send, "qp" },
	{ "poll_cq", use_poll_cq, "cq" },
	{ "modify_qp", use_modify_qp, "qp" },
	{ "query_port", use_query_port },
	{ "ib_get_device_fw_str", use_fw_str },
	{ "ib_device_get_netdev", use_netdev },
	{ "ib_mr_pool_init", use_pool_init, "qp" },
	{ "ib_mr_pool_destroy", use_pool_destroy, "qp" },
	{ "alloc_pd", thing_make_pd },
	{ "alloc_mr", thing_make_mr },
	{ "create_cq", thing_make_cq },
	{ "create_qp", thing_make_qp },
};

KUNIT_ARRAY_PARAM_DESC(uses, uses, name);

static void undo(const struct use *use, struct objects *t)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(contract_kinds); i++)
		if (contract_kinds[i].make == use->call)
			contract_kinds[i].unmake(t);
}

static void free_what_use_made(struct kunit *test, const struct use *use, struct objects *t)
{
	contract_off(test);
	undo(use, t);
}

/* In the error state, the QP accepts posted requests. */
static struct objects *objects_in_error(struct kunit *test)
{
	struct objects *t = objects_new(test);

	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(t->qp, 1));
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(t->qp));
	return t;
}

static void expect_gone(struct kunit *test, struct objects *t, const char *after)
{
	const struct use *use = test->param_value;
	char what[64];
	u32 id = 0;

	snprintf(what, sizeof(what), "%s after %s", use->name, after);
	if (use->object && !strcmp(use->object, "pd"))
		id = t->pd->res.id;
	else if (use->object)
		id = !strcmp(use->object, "qp") ? t->qp->res.id : t->cq->res.id;
	CONTRACT_EXPECT(test, GONE, SELF, .what = what, .object = use->object, .id = id,
			.site = use->call);
}

static void use_after_remove_is_reported(struct kunit *test)
{
	const struct use *use = test->param_value;
	struct objects *t = objects_in_error(test);

	member_join(test, &first, t, NULL, NULL);
	member_leave(&first);
	contract_expect_none(test);
	KUNIT_EXPECT_LE(test, 0, use->call(t));
	expect_gone(test, t, "its remove() returned");
	free_what_use_made(test, use, t);
}

static void use_after_failed_add_is_reported(struct kunit *test)
{
	const struct use *use = test->param_value;
	struct objects *t = objects_in_error(test);
	static const struct kind nothing = { "nothing", use_query_port };

	made = &nothing;
	member_join(test, &first, t, make_and_fail, NULL);
	contract_expect_none(test);
	KUNIT_EXPECT_LE(test, 0, use->call(t));
	expect_gone(test, t, "its add() failed");
	free_what_use_made(test, use, t);
}

static int decline(struct objects *t)
{
	return -EOPNOTSUPP;
}

/* Declining a device is ordinary: the checker does not remember clients that did. */
static void use_of_a_device_that_was_declined_is_not(struct kunit *test)
{
	const struct use *use = test->param_value;
	struct objects *t = objects_in_error(test);

	member_join(test, &first, t, decline, NULL);
	KUNIT_EXPECT_LE(test, 0, use->call(t));
	contract_expect_none(test);
	free_what_use_made(test, use, t);
}

static void use_after_unregistration_is_reported(struct kunit *test)
{
	const struct use *use = test->param_value;
	struct objects *t = objects_in_error(test);

	mock_unregister(t->m);
	contract_expect_none(test);
	KUNIT_EXPECT_LE(test, 0, use->call(t));
	expect_gone(test, t, "ib_unregister_device() returned");
	free_what_use_made(test, use, t);
}

/* Freeing the device reports the objects left on it, and keeps its memory for later reports. */
static void free_device(struct kunit *test, struct objects *t)
{
	const struct contract_expected expected[] = {
		{ .rule = IB_RULE_LEFT, .module = CONTRACT_DRIVER, .object = "pd",
		  .id = t->pd->res.id, .what = "left when the device was freed", .site = kvt_pd },
		{ .rule = IB_RULE_LEFT, .module = CONTRACT_DRIVER, .object = "cq",
		  .id = t->cq->res.id, .what = "left when the device was freed", .site = kvt_cq },
		{ .rule = IB_RULE_LEFT, .module = CONTRACT_DRIVER, .object = "qp",
		  .id = t->qp->res.id, .what = "left when the device was freed", .site = kvt_qp },
	};
	struct ib_device *dev = t->m->ibdev;

	mock_unregister(t->m);
	contract_expect_none(test);
	mock_dealloc(t->m);
	contract_expect_all(test, expected, ARRAY_SIZE(expected));
	/* mock_dealloc() has cleared the pointer, which the cases still use. */
	t->m->ibdev = dev;
}

/* Restores the driver's methods and frees all objects and the device. */
static void free_for_good(struct kunit *test, struct objects *t, const struct ib_device_ops *ops)
{
	struct ib_device *dev = t->m->ibdev;

	contract_off(test);
	dev->ops = *ops;
	kvt_qp_put(test, t->qp);
	kvt_cq_put(test, t->cq);
	kvt_pd_put(test, t->pd);
	t->m->ibdev = NULL;
	put_device(&dev->dev);
}

static void use_of_a_device_that_was_freed_is_reported(struct kunit *test)
{
	const struct use *use = test->param_value;
	struct objects *t = objects_in_error(test);
	struct ib_device_ops *ops = KVT_PTR(test, kunit_kmalloc(test, sizeof(*ops), GFP_KERNEL));

	*ops = t->m->ibdev->ops;
	free_device(test, t);
	mock_log_reset(t->m);
	use->call(t);
	expect_gone(test, t, "ib_unregister_device() returned");
	KUNIT_EXPECT_EQ(test, 0, t->m->ncalls);
	free_for_good(test, t, ops);
}

/* A caller may be between its check of a method and the call: a method never becomes NULL. */
static void methods_of_a_device_that_was_freed_are_others(struct kunit *test)
{
	const size_t first = offsetof(struct ib_device_ops, post_send) / sizeof(void *);
	const size_t end = offsetof(struct ib_device_ops, enable_driver) / sizeof(void *);
	struct objects *t = objects_in_error(test);
	struct ib_device_ops *ops = &t->m->ibdev->ops, *before;
	void **now = (void **)ops, **had;
	size_t i, methods = 0;

	mock_optional_methods(ops);
	before = KVT_PTR(test, kunit_kmalloc(test, sizeof(*before), GFP_KERNEL));
	*before = *ops;
	had = (void **)before;
	free_device(test, t);
	for (i = first; i < end; i++) {
		methods += !!had[i];
		KUNIT_EXPECT_EQ_MSG(test, !had[i], !now[i], "method %zu", i - first);
		KUNIT_EXPECT_FALSE_MSG(test, had[i] && now[i] == had[i], "method %zu", i - first);
	}
	KUNIT_EXPECT_GT(test, methods, 40);
	free_for_good(test, t, before);
}

/* Objects are kept, as when a driver refuses to destroy them. */
static void objects_of_a_device_that_was_freed_are_kept(struct kunit *test)
{
	struct objects *t = objects_in_error(test);
	struct ib_device_ops *ops = kvt_zalloc(test, sizeof(*ops));

	*ops = t->m->ibdev->ops;
	free_device(test, t);
	contract_off(test);
	KUNIT_EXPECT_EQ(test, -ENODEV, ib_destroy_qp(t->qp));
	kvt_expect_kept(test, t->m->ibdev, &t->qp->res, t->qp->res.id);
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_dealloc_pd_user(t->pd, NULL));
	free_for_good(test, t, ops);
}

/* One misuse makes one report: the methods that the request calls are not reported again. */
static void request_after_remove_is_reported_once(struct kunit *test)
{
	struct objects *t = objects_new(test);

	member_join(test, &first, t, NULL, NULL);
	member_leave(&first);
	KUNIT_EXPECT_EQ(test, 0, thing_make_ca(t));
	CONTRACT_EXPECT(test, GONE, SELF, .site = thing_make_ca,
			.what = "ib_ca_call after its remove() returned");
	contract_off(test);
	thing_unmake_ca(t);
}

static noinline void drain(struct objects *t)
{
	ib_drain_qp(t->qp);
	barrier();
}

static void drain_after_remove_is_reported_once(struct kunit *test)
{
	struct objects *t = objects_new(test);

	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(t->qp, 1));
	member_join(test, &first, t, NULL, NULL);
	member_leave(&first);
	drain(t);
	CONTRACT_EXPECT(test, GONE, SELF, .site = drain, .object = "qp", .id = t->qp->res.id,
			.what = "ib_drain_qp after its remove() returned");
}

/* It may have looked the device up before, as far as anybody knows. */
static void module_that_looks_devices_up_may_use_them(struct kunit *test)
{
	struct objects *t = objects_new(test);

	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(t->qp, 1));
	ib_contract_looks_up(THIS_MODULE, true);
	member_join(test, &first, t, NULL, NULL);
	member_leave(&first);
	ib_contract_looks_up(THIS_MODULE, false);
	drain(t);
	contract_expect_none(test);
}

static struct ib_device_ops whole;

static int sleep_and_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	current->nvcsw++;
	return whole.post_send(qp, wr, bad);
}

/* Reports about the methods that a drain calls have the site of the caller's ib_drain_qp(). */
static void drain_by_one_that_is_back_has_its_place(struct kunit *test)
{
	struct objects *t = objects_new(test);
	struct ib_device *dev = t->m->ibdev;

	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(t->qp, 1));
	member_join(test, &first, t, NULL, NULL);
	member_leave(&first);
	KUNIT_ASSERT_PTR_EQ(test, dev, ib_device_get_by_name(CONTRACT_DEVICE, RDMA_DRIVER_UNKNOWN));
	ib_device_put(dev);
	whole = dev->ops;
	dev->ops.post_send = sleep_and_send;
	drain(t);
	dev->ops = whole;
	CONTRACT_EXPECT(test, SLEEP, DRIVER, .site = drain, .object = "qp", .id = t->qp->res.id,
			.what = "post_send slept");
}

/* Calls that fail before they reach the driver are reported, too. */

CONTRACT_CALLER(refused_alloc_cq, struct objects *t,
	PTR_ERR_OR_ZERO(ib_alloc_cq(t->m->ibdev, NULL, 1, 0, IB_POLL_SOFTIRQ)))

static void path_init(struct rdma_ah_attr *attr)
{
	attr->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_grh(attr, NULL, 0, 0, 1, 0);
}

static noinline int refused_create_ah(struct objects *t)
{
	struct rdma_ah_attr attr = {};

	path_init(&attr);
	return CONTRACT_CALL(PTR_ERR_OR_ZERO(rdma_create_ah(t->pd, &attr, 0)));
}

static noinline int refused_modify_qp(struct objects *t)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD };

	path_init(&attr.ah_attr);
	return CONTRACT_CALL(ib_modify_qp(t->qp, &attr, IB_QP_AV));
}

static noinline int refused_ca_call(struct objects *t)
{
	struct ib_ca_request req = { .op = KVERBS_CA_OPEN, .version = KVERBS_CA_VERSION };

	return CONTRACT_CALL(ib_ca_call(t->m->ibdev, &req));
}

static noinline int refused_ca_submit(struct objects *t)
{
	struct ib_ca_request req = { .op = KVERBS_CA_OPEN, .version = KVERBS_CA_VERSION };

	return CONTRACT_CALL(ib_ca_submit(t->m->ibdev, &req));
}

static const struct use refusals[] = {
	{ "create_cq", refused_alloc_cq },
	{ "create_ah", refused_create_ah, "pd" },
	{ "modify_qp", refused_modify_qp, "qp" },
	{ "ib_ca_call", refused_ca_call },
	{ "ib_ca_submit", refused_ca_submit },
};

KUNIT_ARRAY_PARAM_DESC(refusals, refusals, name);

static void refused_use_after_unregistration_is_reported(struct kunit *test)
{
	const struct use *use = test->param_value;
	struct objects *t = objects_in_error(test);

	mock_unregister(t->m);
	KUNIT_EXPECT_GT(test, 0, use->call(t));
	expect_gone(test, t, "ib_unregister_device() returned");
}

static void handler_given_back_after_remove_is_reported(struct kunit *test)
{
	struct objects *t = objects_new(test);

	member_join(test, &first, t, thing_make_handler, NULL);
	member_leave(&first);
	CONTRACT_EXPECT(test, LEFT, SELF, .site = thing_on_event,
			.what = "1 event handler left when remove() returned");
	thing_unmake_handler(t);
	CONTRACT_EXPECT(test, GONE, SELF, .site = thing_unmake_handler,
			.what = "ib_unregister_event_handler after its remove() returned");
}

/* The checker is off when the client leaves, and on when the client uses the device. */
static void use_is_reported_by_a_checker_that_was_off(struct kunit *test)
{
	const struct use *use = test->param_value;
	struct objects *t = objects_in_error(test);

	member_join(test, &first, t, NULL, NULL);
	contract_off(test);
	member_leave(&first);
	KUNIT_ASSERT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_WARN));
	KUNIT_EXPECT_LE(test, 0, use->call(t));
	expect_gone(test, t, "its remove() returned");
	free_what_use_made(test, use, t);
}

static const struct use *used;

static int use_in_add(struct objects *t)
{
	int ret = used->call(t);

	return min(ret, 0);
}

static void use_in_remove(struct objects *t)
{
	used->call(t);
	undo(used, t);
}

static void use_in_remove_is_not(struct kunit *test)
{
	struct objects *t = objects_in_error(test);

	used = test->param_value;
	member_join(test, &first, t, NULL, use_in_remove);
	member_leave(&first);
	contract_expect_none(test);
	/* Likewise when the device is unregistered. */
	member_join(test, &first, t, NULL, use_in_remove);
	mock_unregister(t->m);
	contract_expect_none(test);
}

/* The module's client has left, and another client of the module has the device. */
static void use_by_a_client_that_is_back_is_not(struct kunit *test)
{
	struct objects *t = objects_in_error(test);

	used = test->param_value;
	member_join(test, &first, t, NULL, NULL);
	member_leave(&first);
	member_join(test, &second, t, use_in_add, NULL);
	contract_expect_none(test);
	free_what_use_made(test, used, t);
}

/* The module's client has left, but the module has found the device by its name. */
static void use_of_a_device_that_was_found_is_not(struct kunit *test)
{
	const struct use *use = test->param_value;
	struct objects *t = objects_in_error(test);
	struct ib_device *dev;

	member_join(test, &first, t, NULL, NULL);
	member_leave(&first);
	dev = ib_device_get_by_name(CONTRACT_DEVICE, RDMA_DRIVER_UNKNOWN);
	KUNIT_ASSERT_PTR_EQ(test, t->m->ibdev, dev);
	KUNIT_EXPECT_LE(test, 0, use->call(t));
	contract_expect_none(test);
	free_what_use_made(test, use, t);
	ib_device_put(dev);
}

/* The calls are made by the driver's module, on its own device. */
static void use_by_the_driver_is_not(struct kunit *test)
{
	struct objects *t = objects_in_error(test);

	mock_unregister(t->m);
	KUNIT_EXPECT_EQ(test, 0, kvt_qp_to_err(t->qp));
	kvt_qp_put(test, t->qp);
	contract_expect_none(test);
}

static struct kunit_case contract_client_cases[] = {
	KUNIT_CASE_PARAM(what_a_client_leaves_is_reported, kinds_gen_params),
	KUNIT_CASE_PARAM(what_a_client_takes_along_is_not, kinds_gen_params),
	KUNIT_CASE_PARAM(what_a_failed_add_leaves_is_reported, kinds_gen_params),
	KUNIT_CASE_PARAM(what_a_declining_add_leaves_is_reported, kinds_gen_params),
	KUNIT_CASE_PARAM(what_is_left_on_a_device_that_goes_is_reported, objects_gen_params),
	KUNIT_CASE(objects_left_are_counted_by_site),
	KUNIT_CASE(the_last_client_of_a_module_leaves),
	KUNIT_CASE(interrupts_left_off_by_a_client_are_reported),
	KUNIT_CASE(preemption_left_off_by_a_client_is_reported),
	KUNIT_CASE_PARAM(use_after_remove_is_reported, uses_gen_params),
	KUNIT_CASE_PARAM(use_after_failed_add_is_reported, uses_gen_params),
	KUNIT_CASE_PARAM(use_of_a_device_that_was_declined_is_not, uses_gen_params),
	KUNIT_CASE_PARAM(use_after_unregistration_is_reported, uses_gen_params),
	KUNIT_CASE_PARAM(refused_use_after_unregistration_is_reported, refusals_gen_params),
	KUNIT_CASE_PARAM(use_of_a_device_that_was_freed_is_reported, uses_gen_params),
	KUNIT_CASE(methods_of_a_device_that_was_freed_are_others),
	KUNIT_CASE(objects_of_a_device_that_was_freed_are_kept),
	KUNIT_CASE(request_after_remove_is_reported_once),
	KUNIT_CASE(drain_after_remove_is_reported_once),
	KUNIT_CASE(module_that_looks_devices_up_may_use_them),
	KUNIT_CASE(drain_by_one_that_is_back_has_its_place),
	KUNIT_CASE(handler_given_back_after_remove_is_reported),
	KUNIT_CASE_PARAM(use_is_reported_by_a_checker_that_was_off, uses_gen_params),
	KUNIT_CASE_PARAM(use_in_remove_is_not, uses_gen_params),
	KUNIT_CASE_PARAM(use_by_a_client_that_is_back_is_not, uses_gen_params),
	KUNIT_CASE_PARAM(use_of_a_device_that_was_found_is_not, uses_gen_params),
	KUNIT_CASE(use_by_the_driver_is_not),
	{}
};
KVT_SUITE(contract_client, .init = contract_init, .exit = contract_exit);
