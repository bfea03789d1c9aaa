// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices, clients and arguments that the core must refuse. A refused registration must
 * leave nothing behind: the next one, of the same name, succeeds.
 */
#include <linux/netdevice.h>
#include <rdma/ib_cache.h>

#include "lib/client.h"
#include "lib/mock.h"

/* The name is free again: another device can be registered with it. */
static void expect_next_try_works(struct kunit *test)
{
	struct mock *m;

	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm_a"));
	m = mock_up(test, "kvtm_a");
	KUNIT_EXPECT_TRUE(test, mock_exists("kvtm_a"));
	mock_unregister(m);
}

static void duplicate_device_name_is_refused(struct kunit *test)
{
	struct mock *first = mock_up(test, "kvtm_a");
	struct mock *second = mock_new(test);
	struct ib_device *ibdev;

	mock_alloc(test, second);
	KUNIT_EXPECT_EQ(test, -ENFILE, mock_register(second, "kvtm_a"));
	ibdev = ib_device_get_by_name("kvtm_a", RDMA_DRIVER_UNKNOWN);
	KUNIT_EXPECT_PTR_EQ(test, ibdev, first->ibdev);
	if (ibdev)
		ib_device_put(ibdev);
	mock_dealloc(second);
	mock_unregister(first);
	mock_dealloc(first);
	expect_next_try_works(test);
}

static void bad_device_name_is_refused(struct kunit *test)
{
	static const char * const names[] = {
		"", ".", "..", "kvtm/a", "kvtm a", "kvtm\n", "kvtm\x1b", " ",
		"kvtm%s", "kvtm%d%d", "kvtm %d",
	};
	struct mock *m = mock_new(test);
	int i;

	mock_alloc(test, m);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		KUNIT_EXPECT_EQ_MSG(test, -EINVAL, mock_register(m, names[i]), "name %d", i);
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_a"));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_device_rename(m->ibdev, ".."));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_device_rename(m->ibdev, "kvtm b"));
	KUNIT_EXPECT_TRUE(test, mock_exists("kvtm_a"));
}

static void rename_at_add(struct kvt_client *c, struct ib_device *ibdev)
{
	*(int *)c->arg = ib_device_rename(ibdev, "kvtm_new");
}

/* It would wait for itself. */
static void rename_in_a_method_of_a_client_is_refused(struct kunit *test)
{
	struct kvt_client *c = kvt_client_new(test, "A", kvt_trace_new(test));
	int ret = 0;

	c->on_add = rename_at_add;
	c->arg = &ret;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	mock_up(test, "kvtm_a");
	KUNIT_EXPECT_EQ(test, -EINVAL, ret);
	KUNIT_EXPECT_TRUE(test, mock_exists("kvtm_a"));
}

static void duplicate_client_name_is_refused(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *a, *b;

	mock_up(test, "kvtm_a");
	a = kvt_client_up(test, "A", tr);
	b = kvt_client_new(test, "A", tr);
	KUNIT_EXPECT_EQ(test, -EEXIST, kvt_client_register(b));
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a");

	kvt_client_unregister(a);
	KUNIT_EXPECT_EQ(test, 0, kvt_client_register(b));
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a A-kvtm_a A+kvtm_a");
}

struct method {
	const char *name;
	size_t offset;
};

#define METHOD(op) { #op, offsetof(struct ib_device_ops, op) }
static const struct method mandatory[] = {
	METHOD(query_device), METHOD(query_port), METHOD(get_port_immutable),
	METHOD(query_gid), METHOD(query_pkey),
	METHOD(alloc_pd), METHOD(dealloc_pd),
	METHOD(create_qp), METHOD(modify_qp), METHOD(destroy_qp),
	METHOD(post_send), METHOD(post_recv),
	METHOD(create_cq), METHOD(destroy_cq), METHOD(poll_cq),
	METHOD(req_notify_cq), METHOD(get_dma_mr), METHOD(dereg_mr),
};

KUNIT_ARRAY_PARAM_DESC(mandatory, mandatory, name);

static void missing_mandatory_method_is_refused(struct kunit *test)
{
	const struct method *method = test->param_value;
	struct mock *m = mock_new(test);

	*(void **)((void *)&m->ops + method->offset) = NULL;
	mock_alloc(test, m);
	KUNIT_EXPECT_EQ(test, -EINVAL, mock_register(m, "kvtm_a"));
	mock_unregister(m);
	mock_dealloc(m);
	expect_next_try_works(test);
}

struct failing {
	enum mock_op op;
	unsigned int nth;
};

static const struct failing failing[] = {
	{ MOCK_query_device, 1 },
	{ MOCK_get_port_immutable, 1 }, { MOCK_get_port_immutable, 2 },
	{ MOCK_query_port, 1 }, { MOCK_query_port, 2 },
	{ MOCK_query_gid, 1 }, { MOCK_query_gid, MOCK_GIDS + 1 },
	{ MOCK_query_pkey, 1 }, { MOCK_query_pkey, MOCK_PKEYS + 1 },
	{ MOCK_enable_driver, 1 },
};

static void failing_name(const struct failing *f, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s call %u", mock_op_name(f->op), f->nth);
}

KUNIT_ARRAY_PARAM(failing, failing, failing_name);

static void driver_failure_ends_registration(struct kunit *test)
{
	const struct failing *f = test->param_value;
	struct kvt_trace *tr = kvt_trace_new(test);
	struct mock *m = mock_new(test);

	kvt_client_up(test, "A", tr);
	m->nports = 2;
	mock_alloc(test, m);
	/* An errno that the core itself never returns. */
	mock_fail_nth(m, f->op, f->nth, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, mock_register(m, "kvtm_a"));
	KVT_EXPECT_TRACE(test, tr, "");
	mock_unregister(m);
	mock_dealloc(m);
	expect_next_try_works(test);
}

struct attempt {
	struct mock *m;
	int ret;
};

static void register_here(void *arg)
{
	struct attempt *a = arg;

	a->ret = mock_register(a->m, "kvtm_a");
}

static void register_with_preemption_off_is_refused(struct kunit *test)
{
	struct mock *m = mock_new(test);
	int ret;

	if (!IS_ENABLED(CONFIG_PREEMPT_COUNT))
		kunit_skip(test, "the kernel does not count");
	mock_alloc(test, m);
	preempt_disable();
	ret = mock_register(m, "kvtm_a");
	preempt_enable();
	KUNIT_EXPECT_EQ(test, -EINVAL, ret);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_query_device));
	mock_dealloc(m);
	expect_next_try_works(test);
}

static void register_with_interrupts_off_is_refused(struct kunit *test)
{
	struct mock *m = mock_new(test);
	int ret;

	mock_alloc(test, m);
	local_irq_disable();
	ret = mock_register(m, "kvtm_a");
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, -EINVAL, ret);
	mock_dealloc(m);
	expect_next_try_works(test);
}

static void register_from_hardirq_is_refused(struct kunit *test)
{
	struct attempt a = { .m = mock_new(test) };

	mock_alloc(test, a.m);
	kvt_run_in_hardirq(register_here, &a);
	KUNIT_EXPECT_EQ(test, -EINVAL, a.ret);
	mock_dealloc(a.m);
	expect_next_try_works(test);
}

static void port_out_of_range_is_refused(struct kunit *test)
{
	struct mock *m = mock_new(test);
	struct ib_port_attr attr;
	union ib_gid gid;
	u16 pkey;
	u32 port;

	m->nports = 2;
	mock_start(test, m, "kvtm_a");
	mock_log_reset(m);
	for (port = 0; port < 4; port += 3) {
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_query_port(m->ibdev, port, &attr));
		KUNIT_EXPECT_EQ(test, -EINVAL, rdma_query_gid(m->ibdev, port, 0, &gid));
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_query_pkey(m->ibdev, port, 0, &pkey));
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_get_cached_pkey(m->ibdev, port, 0, &pkey));
		KUNIT_EXPECT_EQ(test, -EINVAL,
				PTR_ERR_OR_ZERO(rdma_get_gid_attr(m->ibdev,
								  port, 0)));
		KUNIT_EXPECT_FALSE(test, rdma_is_port_valid(m->ibdev, port));
		KUNIT_EXPECT_NULL(test, ib_device_get_netdev(m->ibdev, port));
	}
	KUNIT_EXPECT_EQ(test, 0, m->ncalls);
	KUNIT_EXPECT_EQ(test, 0, ib_query_port(m->ibdev, 2, &attr));
}

/* ib_device_set_netdev() has allocated the core's port data, for the original number. */
static void changed_number_of_ports_is_refused(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_new(test);

	mock_alloc(test, m);
	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(m->ibdev, ndev, 1));
	m->ibdev->phys_port_cnt = MOCK_MAX_PORTS;
	KUNIT_EXPECT_NULL(test, ib_device_get_netdev(m->ibdev, MOCK_MAX_PORTS));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_device_set_netdev(m->ibdev, ndev, MOCK_MAX_PORTS));
	KUNIT_EXPECT_EQ(test, -EINVAL, mock_register(m, "kvtm_a"));
	m->ibdev->phys_port_cnt = 256;
	KUNIT_EXPECT_EQ(test, -EINVAL, mock_register(m, "kvtm_a"));
	/* The device is freed with the wrong number still set. */
	mock_dealloc(m);
	expect_next_try_works(test);
}

static void index_out_of_range_is_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	union ib_gid gid;
	u16 pkey;

	KUNIT_EXPECT_EQ(test, -EINVAL, rdma_query_gid(m->ibdev, 1, MOCK_GIDS, &gid));
	KUNIT_EXPECT_EQ(test, -EINVAL, rdma_query_gid(m->ibdev, 1, -1, &gid));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(rdma_get_gid_attr(m->ibdev, 1, MOCK_GIDS)));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_get_cached_pkey(m->ibdev, 1, MOCK_PKEYS, &pkey));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_get_cached_pkey(m->ibdev, 1, -1, &pkey));
	KUNIT_EXPECT_EQ(test, 0, rdma_query_gid(m->ibdev, 1, 0, &gid));
}

static struct kunit_case core_device_bad_cases[] = {
	KUNIT_CASE(duplicate_device_name_is_refused),
	KUNIT_CASE(bad_device_name_is_refused),
	KUNIT_CASE(rename_in_a_method_of_a_client_is_refused),
	KUNIT_CASE(duplicate_client_name_is_refused),
	KUNIT_CASE_PARAM(missing_mandatory_method_is_refused, mandatory_gen_params),
	KUNIT_CASE_PARAM(driver_failure_ends_registration, failing_gen_params),
	KUNIT_CASE(register_with_preemption_off_is_refused),
	KUNIT_CASE(register_with_interrupts_off_is_refused),
	KUNIT_CASE(register_from_hardirq_is_refused),
	KUNIT_CASE(port_out_of_range_is_refused),
	KUNIT_CASE(changed_number_of_ports_is_refused),
	KUNIT_CASE(index_out_of_range_is_refused),
	{}
};
KVT_SUITE(core_device_bad);
