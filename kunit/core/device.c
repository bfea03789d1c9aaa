// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registration of devices and clients: lookup, names, client data, sysfs, and the order in
 * which add(), remove() and rename() of clients are called.
 */

#include "lib/client.h"
#include "lib/mock.h"

/* Rounds of registering and unregistering, for each client of the stress case. */
#define CHURN_ROUNDS	1000

static void device_is_found_by_name_while_registered(struct kunit *test)
{
	struct mock *m = mock_new(test);

	mock_alloc(test, m);
	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm_a"));
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_a"));
	KUNIT_EXPECT_TRUE(test, mock_exists("kvtm_a"));
	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm_"));
	mock_unregister(m);
	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm_a"));
}

static void device_is_found_only_with_its_driver_id(struct kunit *test)
{
	struct mock *m = mock_new(test);
	struct ib_device *ibdev;

	m->ops.driver_id = RDMA_DRIVER_MLX4;
	mock_start(test, m, "kvtm_a");
	KUNIT_EXPECT_NULL(test, ib_device_get_by_name("kvtm_a", RDMA_DRIVER_MLX5));
	ibdev = ib_device_get_by_name("kvtm_a", RDMA_DRIVER_MLX4);
	KUNIT_EXPECT_PTR_EQ(test, ibdev, m->ibdev);
	if (ibdev)
		ib_device_put(ibdev);
}

static void register_asks_for_attributes_and_each_port(struct kunit *test)
{
	struct mock *m = mock_new(test);
	int first, second;

	m->nports = 2;
	mock_start(test, m, "kvtm_a");

	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_query_device));
	KUNIT_EXPECT_EQ(test, MOCK_MAX_QP_WR, m->ibdev->attrs.max_qp_wr);
	first = mock_log_find(m, MOCK_get_port_immutable, 0);
	KUNIT_ASSERT_GE(test, first, 0);
	second = mock_log_find(m, MOCK_get_port_immutable, first + 1);
	KUNIT_ASSERT_GE(test, second, 0);
	KUNIT_EXPECT_EQ(test, 1, m->calls[first].arg);
	KUNIT_EXPECT_EQ(test, 2, m->calls[second].arg);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_enable_driver));
}

static void enabled_at_add(struct kvt_client *c, struct ib_device *ibdev)
{
	kvt_trace_add(c->trace, "enabled:%u", mock_calls(mock_of(ibdev), MOCK_enable_driver));
}

static void driver_is_enabled_before_clients_are_told(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *c = kvt_client_new(test, "A", tr);

	c->on_add = enabled_at_add;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	mock_up(test, "kvtm_a");
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a enabled:1");
}

static void pattern_takes_the_lowest_free_number(struct kunit *test)
{
	struct mock *m0 = mock_up(test, "kvtm%d");
	struct mock *m1 = mock_up(test, "kvtm%d");
	struct mock *m2 = mock_up(test, "kvtm%d");
	struct mock *again;

	KUNIT_EXPECT_STREQ(test, dev_name(&m0->ibdev->dev), "kvtm0");
	KUNIT_EXPECT_STREQ(test, dev_name(&m1->ibdev->dev), "kvtm1");
	KUNIT_EXPECT_STREQ(test, dev_name(&m2->ibdev->dev), "kvtm2");
	KUNIT_EXPECT_STREQ(test, (const char *)m1->ibdev->name, "kvtm1");

	mock_unregister(m1);
	mock_dealloc(m1);
	again = mock_up(test, "kvtm%d");
	KUNIT_EXPECT_STREQ(test, dev_name(&again->ibdev->dev), "kvtm1");
}

static void clients_are_added_in_order_of_registration(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);

	kvt_client_up(test, "A", tr);
	kvt_client_up(test, "B", tr);
	kvt_client_up(test, "C", tr);
	KVT_EXPECT_TRACE(test, tr, "");
	mock_up(test, "kvtm_a");
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a B+kvtm_a C+kvtm_a");
}

static void clients_are_removed_last_in_first_out(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct mock *m;

	kvt_client_up(test, "A", tr);
	kvt_client_up(test, "B", tr);
	m = mock_up(test, "kvtm_a");
	kvt_client_up(test, "C", tr);
	kvt_trace_reset(tr);
	mock_unregister(m);
	KVT_EXPECT_TRACE(test, tr, "C-kvtm_a B-kvtm_a A-kvtm_a");
}

static void late_client_learns_of_devices_that_are_there(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);

	mock_up(test, "kvtm_a");
	mock_up(test, "kvtm_b");
	kvt_client_up(test, "A", tr);
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a A+kvtm_b");
}

static void client_is_removed_from_each_device_when_it_goes(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *a, *b;
	struct mock *m = mock_up(test, "kvtm_a");

	mock_up(test, "kvtm_b");
	a = kvt_client_up(test, "A", tr);
	b = kvt_client_up(test, "B", tr);
	kvt_trace_reset(tr);

	kvt_client_unregister(a);
	KVT_EXPECT_TRACE(test, tr, "A-kvtm_a A-kvtm_b");
	kvt_trace_reset(tr);
	mock_unregister(m);
	KVT_EXPECT_TRACE(test, tr, "B-kvtm_a");
	KUNIT_EXPECT_EQ(test, 0, a->wrong_data);
	KUNIT_EXPECT_EQ(test, 0, b->wrong_data);
}

static void client_can_register_again(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *c;

	mock_up(test, "kvtm_a");
	c = kvt_client_up(test, "A", tr);
	kvt_client_unregister(c);
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a A-kvtm_a A+kvtm_a");
}

static void client_that_failed_to_add_is_left_alone(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *a = kvt_client_new(test, "A", tr);
	struct mock *m;

	a->add_ret = -ENODEV;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(a));
	kvt_client_up(test, "B", tr);
	m = mock_up(test, "kvtm_a");
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a B+kvtm_a");
	KUNIT_EXPECT_NULL(test, ib_get_client_data(m->ibdev, &a->client));

	kvt_trace_reset(tr);
	mock_unregister(m);
	KVT_EXPECT_TRACE(test, tr, "B-kvtm_a");
}

static void late_client_that_fails_to_add_stays_registered(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *a = kvt_client_new(test, "A", tr);

	mock_up(test, "kvtm_a");
	a->add_ret = -ENOMEM;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(a));
	a->add_ret = 0;
	mock_up(test, "kvtm_b");
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a A+kvtm_b");
	kvt_trace_reset(tr);
	kvt_client_unregister(a);
	KVT_EXPECT_TRACE(test, tr, "A-kvtm_b");
}

static void client_data_belongs_to_client_and_device(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct mock *m1 = mock_up(test, "kvtm_a");
	struct mock *m2 = mock_up(test, "kvtm_b");
	struct kvt_client *a = kvt_client_up(test, "A", tr);
	struct kvt_client *b = kvt_client_up(test, "B", tr);
	int other;

	KUNIT_EXPECT_PTR_EQ(test, ib_get_client_data(m1->ibdev, &a->client), a);
	KUNIT_EXPECT_PTR_EQ(test, ib_get_client_data(m1->ibdev, &b->client), b);
	ib_set_client_data(m2->ibdev, &a->client, &other);
	KUNIT_EXPECT_PTR_EQ(test, ib_get_client_data(m1->ibdev, &a->client), a);
	KUNIT_EXPECT_PTR_EQ(test, ib_get_client_data(m2->ibdev, &a->client), (void *)&other);
	ib_set_client_data(m2->ibdev, &a->client, a);
}

static void client_data_is_gone_after_remove(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_client *a = kvt_client_up(test, "A", tr);

	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, 0, a->wrong_data);
	KUNIT_EXPECT_NULL(test, ib_get_client_data(m->ibdev, &a->client));
}

static void rename_is_told_to_clients(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_client *a = kvt_client_up(test, "A", tr);

	KUNIT_ASSERT_EQ(test, 0, ib_device_rename(m->ibdev, "kvtm_new"));
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a A=kvtm_new");
	KUNIT_EXPECT_EQ(test, 0, a->wrong_data);
	KUNIT_EXPECT_TRUE(test, mock_exists("kvtm_new"));
	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm_a"));
	KUNIT_EXPECT_STREQ(test, (const char *)m->ibdev->name, "kvtm_new");
}

static void rename_to_a_taken_name_is_refused(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct mock *m = mock_up(test, "kvtm_a");

	mock_up(test, "kvtm_b");
	kvt_client_up(test, "A", tr);
	kvt_trace_reset(tr);
	KUNIT_EXPECT_EQ(test, -EEXIST, ib_device_rename(m->ibdev, "kvtm_b"));
	KVT_EXPECT_TRACE(test, tr, "");
	KUNIT_EXPECT_TRUE(test, mock_exists("kvtm_a"));
}

static void use_device(struct kvt_client *c, struct ib_device *ibdev)
{
	struct ib_pd *pd = ib_alloc_pd(ibdev, 0);
	struct ib_port_attr attr;

	if (IS_ERR(pd)) {
		kvt_trace_add(c->trace, "pd:%ld", PTR_ERR(pd));
		return;
	}
	kvt_trace_add(c->trace, "port:%d", ib_query_port(ibdev, 1, &attr));
	ib_dealloc_pd(pd);
}

static void device_works_within_add_and_remove(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *c = kvt_client_new(test, "A", tr);
	struct mock *m;

	c->on_add = use_device;
	c->on_remove = use_device;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	m = mock_up(test, "kvtm_a");
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a port:0");
	kvt_trace_reset(tr);
	mock_unregister(m);
	KVT_EXPECT_TRACE(test, tr, "A-kvtm_a port:0");
	MOCK_EXPECT_IDLE(test, m);
}

static void find_by_name(struct kvt_client *c, struct ib_device *ibdev)
{
	kvt_trace_add(c->trace, "found:%d", mock_exists(dev_name(&ibdev->dev)));
}

static void device_is_found_by_name_within_add(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *c = kvt_client_new(test, "A", tr);

	c->on_add = find_by_name;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	mock_up(test, "kvtm_a");
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a found:1");
}

static void register_other(struct kvt_client *c, struct ib_device *ibdev)
{
	struct kvt_client *other = c->arg;

	if (!other->registered)
		kvt_trace_add(c->trace, "reg:%d", kvt_client_register(other));
}

static void unregister_other(struct kvt_client *c, struct ib_device *ibdev)
{
	kvt_client_unregister(c->arg);
}

static void client_can_be_registered_in_anothers_add(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *b = kvt_client_new(test, "B", tr);
	struct kvt_client *a = kvt_client_new(test, "A", tr);
	struct mock *m;

	a->on_add = register_other;
	a->arg = b;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(a));
	m = mock_up(test, "kvtm_a");
	KUNIT_EXPECT_TRUE(test, b->registered);
	/* B's add() is called once, by the registration of B or that of the device. */
	KUNIT_EXPECT_PTR_EQ(test, ib_get_client_data(m->ibdev, &b->client), b);
	KUNIT_EXPECT_PTR_EQ(test, strnstr(tr->buf, "B+", tr->len), strrchr(tr->buf, 'B'));
	kvt_trace_reset(tr);
	mock_unregister(m);
	KVT_EXPECT_TRACE(test, tr, "B-kvtm_a A-kvtm_a");
}

static void client_can_register_in_a_late_clients_add(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *b = kvt_client_new(test, "B", tr);
	struct kvt_client *a = kvt_client_new(test, "A", tr);

	mock_up(test, "kvtm_a");
	a->on_add = register_other;
	a->arg = b;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(a));
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a B+kvtm_a reg:0");
}

static void client_can_be_unregistered_in_anothers_remove(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *a = kvt_client_up(test, "A", tr);
	struct kvt_client *b = kvt_client_new(test, "B", tr);
	struct mock *m;

	b->on_remove = unregister_other;
	b->arg = a;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(b));
	m = mock_up(test, "kvtm_a");
	kvt_trace_reset(tr);
	mock_unregister(m);
	KVT_EXPECT_TRACE(test, tr, "B-kvtm_a A-kvtm_a");
	KUNIT_EXPECT_FALSE(test, a->registered);
}

static int unregister_fn(void *arg)
{
	mock_unregister(arg);
	return 0;
}

static void removed(struct kvt_client *c, struct ib_device *ibdev)
{
	complete(c->arg);
}

static void reference_holds_unregister_back(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *c = kvt_client_new(test, "A", tr);
	DECLARE_COMPLETION_ONSTACK(told);
	struct kvt_thread *t;
	struct ib_device *ibdev;
	struct mock *m;
	bool in_time;

	c->on_remove = removed;
	c->arg = &told;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	m = mock_up(test, "kvtm_a");
	ibdev = ib_device_get_by_name("kvtm_a", RDMA_DRIVER_UNKNOWN);
	KUNIT_ASSERT_PTR_EQ(test, ibdev, m->ibdev);

	t = kvt_thread_start(test, -1, unregister_fn, m);
	in_time = kvt_wait(&told);
	/* Clients were told, lookup by name fails, but the device still works. */
	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm_a"));
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	use_device(c, ibdev);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));

	ib_device_put(ibdev);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a A-kvtm_a port:0");
}

static void try_get_fails_once_unregistered(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	bool got = ib_device_try_get(m->ibdev);

	KUNIT_EXPECT_TRUE(test, got);
	if (got)
		ib_device_put(m->ibdev);
	mock_unregister(m);
	KUNIT_EXPECT_FALSE(test, ib_device_try_get(m->ibdev));
}

static void add_slowly(struct kvt_client *c, struct ib_device *ibdev)
{
	kvt_gate_sleep(c->arg);
	kvt_trace_add(c->trace, "added");
}

static int register_client_fn(void *arg)
{
	return kvt_client_register(arg);
}

static void unregister_waits_for_an_add_under_way(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *c = kvt_client_new(test, "A", tr);
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_thread *reg, *unreg;
	struct kvt_gate gate;
	bool in_time;

	kvt_gate_init(&gate);
	c->on_add = add_slowly;
	c->arg = &gate;
	reg = kvt_thread_start(test, -1, register_client_fn, c);
	in_time = kvt_wait(&gate.entered);
	unreg = kvt_thread_start(test, -1, unregister_fn, m);
	KUNIT_EXPECT_TRUE(test, in_time);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(unreg));
	kvt_gate_open(&gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(reg));
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(unreg));
	KUNIT_EXPECT_EQ(test, 0, reg->ret);
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a added A-kvtm_a");
}

/* Blocks in add() for kvtm_a only. */
static void add_first_slowly(struct kvt_client *c, struct ib_device *ibdev)
{
	if (!strcmp(dev_name(&ibdev->dev), "kvtm_a"))
		add_slowly(c, ibdev);
}

static void device_that_comes_during_an_add_is_added_once(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *c = kvt_client_new(test, "A", tr);
	struct kvt_thread *reg;
	struct kvt_gate gate;
	struct mock *m;

	mock_up(test, "kvtm_a");
	kvt_gate_init(&gate);
	c->on_add = add_first_slowly;
	c->arg = &gate;
	reg = kvt_thread_start(test, -1, register_client_fn, c);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&gate.entered));
	/* No lock is held across add(), so neither of these waits for it. */
	KUNIT_EXPECT_TRUE(test, mock_exists("kvtm_a"));
	m = mock_up(test, "kvtm_b");
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(reg));
	kvt_gate_open(&gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(reg));
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a A+kvtm_b added");
	kvt_trace_reset(tr);
	mock_unregister(m);
	KVT_EXPECT_TRACE(test, tr, "A-kvtm_b");
	KUNIT_EXPECT_EQ(test, 0, c->wrong_data);
}

/* B is added to kvtm_b before A, whose add() for kvtm_a is still running. */
static void overtaken_client_is_removed_in_its_order(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *a = kvt_client_new(test, "A", tr);
	struct kvt_client *b = kvt_client_new(test, "B", tr);
	struct kvt_thread *reg;
	struct kvt_gate gate;
	struct mock *m;

	mock_up(test, "kvtm_a");
	m = mock_up(test, "kvtm_b");
	kvt_gate_init(&gate);
	a->on_add = add_first_slowly;
	a->arg = &gate;
	reg = kvt_thread_start(test, -1, register_client_fn, a);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&gate.entered));
	KUNIT_EXPECT_EQ(test, 0, kvt_client_register(b));
	kvt_gate_open(&gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(reg));
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a B+kvtm_a B+kvtm_b added A+kvtm_b");
	kvt_trace_reset(tr);
	mock_unregister(m);
	KVT_EXPECT_TRACE(test, tr, "B-kvtm_b A-kvtm_b");
}

static int rename_fn(void *arg)
{
	struct mock *m = arg;

	return ib_device_rename(m->ibdev, "kvtm_new");
}

/*
 * add() may have read the old name, and what it makes below the device has that in its path: the
 * name changes when add() has returned.
 */
static void rename_waits_for_an_add(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *c = kvt_client_new(test, "A", tr);
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_thread *reg, *renamer;
	struct kvt_gate gate;

	kvt_gate_init(&gate);
	c->on_add = add_slowly;
	c->arg = &gate;
	reg = kvt_thread_start(test, -1, register_client_fn, c);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&gate.entered));
	renamer = kvt_thread_start(test, -1, rename_fn, m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(renamer));
	KUNIT_EXPECT_STREQ(test, dev_name(&m->ibdev->dev), "kvtm_a");
	kvt_gate_open(&gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(reg));
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(renamer));
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a added A=kvtm_new");
	KUNIT_EXPECT_STREQ(test, dev_name(&m->ibdev->dev), "kvtm_new");
	KUNIT_EXPECT_EQ(test, 0, c->wrong_data);
}

static void unregister_driver_takes_all_its_devices(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct mock *m[3];
	int i;

	for (i = 0; i < 3; i++) {
		m[i] = mock_new(test);
		m[i]->ops.driver_id = i < 2 ? RDMA_DRIVER_CXGB4 :
					      RDMA_DRIVER_MLX4;
		mock_dealloc_by_core(m[i], i < 2);
		mock_alloc(test, m[i]);
		KUNIT_ASSERT_EQ(test, 0, mock_register(m[i], "kvtm%d"));
	}
	kvt_client_up(test, "A", tr);
	kvt_trace_reset(tr);
	ib_unregister_driver(RDMA_DRIVER_CXGB4);
	KVT_EXPECT_TRACE(test, tr, "A-kvtm0 A-kvtm1");
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m[0], MOCK_dealloc_driver));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m[1], MOCK_dealloc_driver));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m[2], MOCK_dealloc_driver));
	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm0"));
	KUNIT_EXPECT_TRUE(test, mock_exists("kvtm2"));
}

struct churn {
	struct kunit *test;
	struct kvt_client *client;
	u64 rounds;
	int err;
};

static int churn_clients(void *arg)
{
	struct churn *ch = arg;
	u64 i;

	for (i = 0; i < ch->rounds && !ch->err; i++) {
		ch->err = kvt_client_register(ch->client);
		kvt_client_unregister(ch->client);
	}
	return 0;
}

static void clients_and_devices_come_and_go_at_once(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct churn ch[2] = {};
	struct kvt_thread *t[2];
	u64 rounds = kvt_count(CHURN_ROUNDS);
	int i, err = 0;

	kvt_print_length(test, "rounds of clients and devices", rounds);
	for (i = 0; i < 2; i++) {
		ch[i].client = kvt_client_new(test, i ? "B" : "A", tr);
		ch[i].rounds = rounds;
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, churn_clients, &ch[i]);
	}
	while (!err && (kvt_thread_running(t[0]) || kvt_thread_running(t[1]))) {
		struct mock *m = mock_new(test);

		mock_alloc(test, m);
		err = mock_register(m, "kvtm_a");
		mock_free(test, m);
	}
	KUNIT_EXPECT_EQ(test, 0, err);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t[i]));
		KUNIT_EXPECT_EQ(test, 0, ch[i].err);
		KUNIT_EXPECT_EQ(test, 0, ch[i].client->wrong_data);
	}
}

static void expect_file(struct kunit *test, const char *file, const char *want)
{
	char path[128], buf[128] = "";

	snprintf(path, sizeof(path), "/sys/class/infiniband/kvtm_a/%s", file);
	KUNIT_EXPECT_GT_MSG(test, kvt_read_file(path, buf, sizeof(buf)), 0, "%s", path);
	KUNIT_EXPECT_STREQ_MSG(test, (const char *)buf, want, "%s", path);
}

static void sysfs_is_laid_out_as_in_mainline(struct kunit *test)
{
	struct mock *m;
	char buf[8];

	if (kvt_read_file("/sys/kernel/uevent_seqnum", buf, sizeof(buf)) < 0)
		kunit_skip(test, "/sys is not mounted");
	m = mock_up(test, "kvtm_a");
	expect_file(test, "node_guid", "0200:4d4f:434b:0000");
	expect_file(test, "node_type", "1: CA");
	expect_file(test, "ports/1/state", "4: ACTIVE");
	expect_file(test, "ports/1/phys_state", "5: LinkUp");
	expect_file(test, "ports/1/lid", "0x11");
	expect_file(test, "ports/1/sm_lid", "0x1");
	expect_file(test, "ports/1/lid_mask_count", "0");
	expect_file(test, "ports/1/rate", "100 Gb/sec (4X EDR)");
	expect_file(test, "ports/1/link_layer", "InfiniBand");
	expect_file(test, "ports/1/gids/0", "fe80:0000:0000:0000:0200:0000:0000:0100");
	expect_file(test, "ports/1/gids/7", "0000:0000:0000:0000:0000:0000:0000:0000");
	expect_file(test, "ports/1/pkeys/0", "0xffff");
	expect_file(test, "ports/1/pkeys/1", "0x8001");
	expect_file(test, "ports/1/gid_attrs/types/0", "IB/RoCE v1");

	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, -ENOENT,
			kvt_read_file("/sys/class/infiniband/kvtm_a/node_guid",
				      buf, sizeof(buf)));
}

static struct kunit_case core_device_cases[] = {
	KUNIT_CASE(device_is_found_by_name_while_registered),
	KUNIT_CASE(device_is_found_only_with_its_driver_id),
	KUNIT_CASE(register_asks_for_attributes_and_each_port),
	KUNIT_CASE(driver_is_enabled_before_clients_are_told),
	KUNIT_CASE(pattern_takes_the_lowest_free_number),
	KUNIT_CASE(clients_are_added_in_order_of_registration),
	KUNIT_CASE(clients_are_removed_last_in_first_out),
	KUNIT_CASE(late_client_learns_of_devices_that_are_there),
	KUNIT_CASE(client_is_removed_from_each_device_when_it_goes),
	KUNIT_CASE(client_can_register_again),
	KUNIT_CASE(client_that_failed_to_add_is_left_alone),
	KUNIT_CASE(late_client_that_fails_to_add_stays_registered),
	KUNIT_CASE(client_data_belongs_to_client_and_device),
	KUNIT_CASE(client_data_is_gone_after_remove),
	KUNIT_CASE(rename_is_told_to_clients),
	KUNIT_CASE(rename_to_a_taken_name_is_refused),
	KUNIT_CASE(device_works_within_add_and_remove),
	KUNIT_CASE(device_is_found_by_name_within_add),
	KUNIT_CASE(client_can_be_registered_in_anothers_add),
	KUNIT_CASE(client_can_register_in_a_late_clients_add),
	KUNIT_CASE(client_can_be_unregistered_in_anothers_remove),
	KUNIT_CASE(reference_holds_unregister_back),
	KUNIT_CASE(try_get_fails_once_unregistered),
	KUNIT_CASE(unregister_waits_for_an_add_under_way),
	KUNIT_CASE(device_that_comes_during_an_add_is_added_once),
	KUNIT_CASE(overtaken_client_is_removed_in_its_order),
	KUNIT_CASE(rename_waits_for_an_add),
	KUNIT_CASE(unregister_driver_takes_all_its_devices),
	KUNIT_CASE(clients_and_devices_come_and_go_at_once),
	KUNIT_CASE(sysfs_is_laid_out_as_in_mainline),
	{}
};
KVT_SUITE(core_device);

MODULE_DESCRIPTION("KUnit: life of devices and clients");
MODULE_LICENSE("GPL");
