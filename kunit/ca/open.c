// SPDX-License-Identifier: GPL-2.0-only
/*
 * Opening and closing channel adapters: the driver sees each open and close, a
 * handle is valid until it is closed, and nothing outlives the device.
 */
#include "ca/rig.h"
#include "lib/client.h"
#include "lib/console.h"
#include "lib/mock.h"

#define TEXT_LEN	4096
#define MANY		60

/* Added to a handle: the same index, with the next sequence number. */
#define ONE_LATER	BIT_ULL(32)

static void driver_sees_open_and_close(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_ca_request req = CA_REQ(OPEN);
	struct mock_call call;

	KUNIT_ASSERT_EQ(test, 0, ib_ca_call(m->ibdev, &req));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_open_ca));
	KUNIT_EXPECT_EQ(test, req.handle, m->opened.handle);
	KUNIT_EXPECT_FALSE(test, m->opened.user);
	KUNIT_EXPECT_FALSE(test, m->opened.vendor);
	KUNIT_EXPECT_EQ(test, 0, m->opened.len);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_close_ca));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, req.handle));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_close_ca));
	KUNIT_ASSERT_TRUE(test, mock_last(m, MOCK_close_ca, &call));
	KUNIT_EXPECT_EQ(test, req.handle, call.arg2);
	MOCK_EXPECT_IDLE(test, m);
}

static ssize_t open_with(struct mock *m, const void *in, u32 len)
{
	struct ib_ca_request req = CA_REQ(OPEN, .in = in, .in_len = len);
	ssize_t ret = ib_ca_call(m->ibdev, &req);

	return ret ? : ca_rig_close(m->ibdev, req.handle);
}

static void what_is_for_the_driver_reaches_it(struct kunit *test)
{
	static const u32 lengths[] = { 1, 7, 8, 100, KVERBS_CA_VENDOR_MAX };
	struct mock *m = mock_up(test, "kvtm_a");
	u8 *in = KVT_PTR(test, kunit_kmalloc(test, KVERBS_CA_VENDOR_MAX + 1, GFP_KERNEL));
	u32 i, len;

	memset(in, 0x5a, KVERBS_CA_VENDOR_MAX + 1);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		len = lengths[i];
		KUNIT_EXPECT_EQ(test, 0, open_with(m, in, len));
		KUNIT_EXPECT_TRUE(test, m->opened.vendor);
		KUNIT_EXPECT_EQ(test, len, m->opened.len);
		KUNIT_EXPECT_MEMEQ(test, m->opened.head, in, min_t(u32, len, MOCK_VENDOR));
	}
	mock_log_reset(m);
	KUNIT_EXPECT_EQ(test, -E2BIG, open_with(m, in, KVERBS_CA_VENDOR_MAX + 1));
	KUNIT_EXPECT_EQ(test, -E2BIG, open_with(m, in, U32_MAX));
	KUNIT_EXPECT_EQ(test, -EINVAL, open_with(m, in, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, open_with(m, NULL, 1));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_open_ca));
	MOCK_EXPECT_IDLE(test, m);
}

static void driver_gets_a_copy(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	char in[] = "for the driver";
	struct mock_call call;

	KUNIT_ASSERT_EQ(test, 0, open_with(m, in, sizeof(in)));
	KUNIT_ASSERT_TRUE(test, mock_last(m, MOCK_open_ca, &call));
	KUNIT_EXPECT_EQ(test, sizeof(in), call.arg);
	KUNIT_EXPECT_STREQ(test, in, (const char *)m->opened.head);
}

static void error_of_the_driver_is_told(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_ca_request req = CA_REQ(OPEN);

	mock_fail_nth(m, MOCK_open_ca, 1, -EUSERS);
	KUNIT_EXPECT_EQ(test, -EUSERS, ib_ca_call(m->ibdev, &req));
	KUNIT_EXPECT_EQ(test, 0, req.handle);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_close_ca));
	KUNIT_EXPECT_EQ(test, 0, open_with(m, NULL, 0));
	MOCK_EXPECT_IDLE(test, m);
}

/* lib/mock_ca.c marks its part of each ib_ca at open, and counts mismatches in wrong_ca. */
static void driver_keeps_what_it_likes_with_an_opening(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u64 h[8];
	int i;

	for (i = 0; i < ARRAY_SIZE(h); i++)
		h[i] = ca_rig_open(test, m->ibdev);
	KUNIT_EXPECT_EQ(test, 8, atomic_read(&m->live[MOCK_CA]));
	for (i = 0; i < ARRAY_SIZE(h); i++)
		KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, h[i ^ 5]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->wrong_ca));
	MOCK_EXPECT_IDLE(test, m);
}

static void methods_are_optional(struct kunit *test)
{
	struct mock *m = mock_new(test);
	u64 word = 0, h;

	m->ops.open_ca = NULL;
	m->ops.close_ca = NULL;
	m->ops.size_ib_ca = 0;
	mock_start(test, m, "kvtm_a");
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, open_with(m, &word, sizeof(word)));
	h = ca_rig_open(test, m->ibdev);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(m->ibdev, h, ca_rig_pd(test, m->ibdev, h)));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, h));
	MOCK_EXPECT_IDLE(test, m);
}

static void handles_differ(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u64 first = ca_rig_open(test, m->ibdev);
	u64 second = ca_rig_open(test, m->ibdev);

	KUNIT_EXPECT_NE(test, first, second);
	KUNIT_EXPECT_NE(test, 0, upper_32_bits(first));
	KUNIT_EXPECT_NE(test, upper_32_bits(first), upper_32_bits(second));
	KUNIT_EXPECT_NE(test, lower_32_bits(first), lower_32_bits(second));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, first));
	KUNIT_EXPECT_NE(test, first, ca_rig_open(test, m->ibdev));
}

static const struct ib_ca_request on_a_handle[] = {
	CA_REQ(CLOSE), CA_REQ(QUERY_CA), CA_REQ(QUERY_PORT, .port = 1),
	CA_REQ(QUERY_CA, .flags = KVERBS_CA_FRESH), CA_REQ(ALLOC_PD),
	CA_REQ(DEALLOC_PD), CA_REQ(REG_MR), CA_REQ(DEREG_MR),
	CA_REQ(QUERY_MR), CA_REQ(LIST),
};

static bool has_answer(u32 op)
{
	return op == KVERBS_CA_QUERY_CA || op == KVERBS_CA_QUERY_PORT ||
	       op == KVERBS_CA_QUERY_MR || op == KVERBS_CA_LIST;
}

static void expect_refused(struct kunit *test, struct mock *m, u64 handle, ssize_t want)
{
	struct ib_ca_request req;
	u64 word;
	int i;

	for (i = 0; i < ARRAY_SIZE(on_a_handle); i++) {
		req = on_a_handle[i];
		req.handle = handle;
		if (has_answer(req.op)) {
			req.out = &word;
			req.out_len = sizeof(word);
		}
		KUNIT_EXPECT_EQ_MSG(test, want, ib_ca_call(m->ibdev, &req),
				    "operation %u, handle %#llx", req.op,
				    handle);
	}
}

static void unknown_handle_is_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u64 h = ca_rig_open(test, m->ibdev);

	expect_refused(test, m, 0, -ENOENT);
	expect_refused(test, m, lower_32_bits(h), -ENOENT);
	expect_refused(test, m, h - lower_32_bits(h), -ENOENT);
	expect_refused(test, m, h + 1, -ENOENT);
	expect_refused(test, m, h + ONE_LATER, -ENOENT);
	expect_refused(test, m, U64_MAX, -ENOENT);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, h));
}

static void closed_handle_is_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u64 h = ca_rig_open(test, m->ibdev);

	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, h));
	expect_refused(test, m, h, -ENOENT);
	ca_rig_open(test, m->ibdev);
	expect_refused(test, m, h, -ENOENT);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_close_ca));
}

static ssize_t ask(struct mock *m, u64 handle)
{
	u64 word;
	struct ib_ca_request req = CA_REQ(QUERY_CA, .handle = handle,
					  .out = &word, .out_len = sizeof(word));

	return ib_ca_submit(m->ibdev, &req);
}

/* A handle stays valid while others are closed and opened. */
static void many_handles_are_told_apart(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u64 h[MANY];
	int i, round;

	for (i = 0; i < MANY; i++)
		h[i] = ca_rig_open(test, m->ibdev);
	for (round = 2; round < 6; round++) {
		for (i = 0; i < MANY; i += round) {
			KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, h[i]));
			KUNIT_EXPECT_EQ(test, -ENOENT, ask(m, h[i]));
			h[i] = 0;
		}
		for (i = 0; i < MANY; i++)
			KUNIT_EXPECT_EQ_MSG(test, h[i] ? -EOVERFLOW : -ENOENT,
					    ask(m, h[i]), "handle %d", i);
		for (i = 0; i < MANY; i++)
			h[i] = h[i] ? : ca_rig_open(test, m->ibdev);
	}
	for (i = 0; i < MANY; i++)
		KUNIT_EXPECT_EQ(test, -EOVERFLOW, ask(m, h[i]));
}

static void handle_is_good_for_its_device_only(struct kunit *test)
{
	struct mock *a = mock_up(test, "kvtm_a");
	struct mock *b = mock_up(test, "kvtm_b");
	u64 h = ca_rig_open(test, a->ibdev), other;

	expect_refused(test, b, h, -ENOENT);
	other = ca_rig_open(test, b->ibdev);
	if (other != h)
		expect_refused(test, b, h, -ENOENT);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(a->ibdev, h));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(b, MOCK_close_ca));
}

static void busy_close_tells_what_is_left(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u64 h = ca_rig_open(test, m->ibdev), pd = ca_rig_pd(test, m->ibdev, h);
	struct {
		struct kverbs_ca_list list;
		struct kverbs_ca_object object;
	} left = {};

	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_close(m->ibdev, h));
	KUNIT_EXPECT_EQ(test, -EBUSY,
			CA_CALL(m->ibdev, CLOSE, .handle = h, .out = &left,
				.out_len = sizeof(left)));
	KUNIT_EXPECT_EQ(test, 1, left.list.count);
	KUNIT_EXPECT_EQ(test, sizeof(left), left.list.size);
	KUNIT_EXPECT_EQ(test, sizeof(left.list), left.list.entry_offset);
	KUNIT_EXPECT_EQ(test, pd, left.object.object);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_OBJECT_PD, left.object.type);
	memset(&left, 0, sizeof(left));
	KUNIT_EXPECT_EQ(test, -EBUSY,
			CA_CALL(m->ibdev, CLOSE, .handle = h, .out = &left,
				.out_len = 8));
	KUNIT_EXPECT_EQ(test, sizeof(left), left.list.size);
	KUNIT_EXPECT_EQ(test, 0, left.list.attr_size);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_close_ca));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(m->ibdev, h, pd));
	KUNIT_EXPECT_EQ(test, 0,
			CA_CALL(m->ibdev, CLOSE, .handle = h, .out = &left,
				.out_len = sizeof(left)));
	MOCK_EXPECT_IDLE(test, m);
}

/* A PD that is still being allocated keeps the CA open, too, but is not listed yet. */
static void close_is_busy_while_something_is_made(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u64 h = ca_rig_open(test, m->ibdev);
	struct kverbs_ca_list list = {};
	struct ca_async *pd;

	mock_hold(m, MOCK_alloc_pd);
	pd = ca_async_new(test, &CA_REQ(ALLOC_PD, .handle = h));
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &pd->req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));
	KUNIT_EXPECT_EQ(test, -EBUSY,
			CA_CALL(m->ibdev, CLOSE, .handle = h, .out = &list,
				.out_len = sizeof(list)));
	KUNIT_EXPECT_EQ(test, sizeof(list), list.size);
	KUNIT_EXPECT_EQ(test, 0, list.count);
	mock_hold_end(m);
	KUNIT_ASSERT_EQ(test, 0, ca_async_wait(pd));
	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_close(m->ibdev, h));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(m->ibdev, h, pd->req.object));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, h));
	MOCK_EXPECT_IDLE(test, m);
}

static void handle_that_is_being_closed_is_gone(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u64 h = ca_rig_open(test, m->ibdev);
	struct ca_async *close;

	mock_hold(m, MOCK_close_ca);
	close = ca_async_new(test, &CA_REQ(CLOSE, .handle = h));
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &close->req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));
	expect_refused(test, m, h, -ENOENT);
	KUNIT_EXPECT_NE(test, lower_32_bits(h), lower_32_bits(ca_rig_open(test, m->ibdev)));
	mock_hold_end(m);
	KUNIT_EXPECT_EQ(test, 0, ca_async_wait(close));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_close_ca));
}

static void handle_that_is_being_opened_is_not_there(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ca_async *open;
	struct mock_call call;

	mock_hold(m, MOCK_open_ca);
	open = ca_async_new(test, &CA_REQ(OPEN));
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &open->req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));
	KUNIT_ASSERT_TRUE(test, mock_last(m, MOCK_open_ca, &call));
	expect_refused(test, m, call.arg2, -ENOENT);
	mock_hold_end(m);
	KUNIT_ASSERT_EQ(test, 0, ca_async_wait(open));
	KUNIT_EXPECT_EQ(test, call.arg2, open->req.handle);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, open->req.handle));
}

static void no_request_after_unregistration(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u64 h = ca_rig_open(test, m->ibdev);
	struct ib_ca_request req = CA_REQ(OPEN);
	struct ca_async *open;

	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, h));
	mock_unregister(m);
	expect_refused(test, m, h, -ENODEV);
	KUNIT_EXPECT_EQ(test, -ENODEV, ib_ca_call(m->ibdev, &req));
	open = ca_async_new(test, &req);
	KUNIT_EXPECT_EQ(test, -ENODEV, ib_ca_submit(m->ibdev, &open->req));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&open->calls));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_open_ca));
}

/* CA that a client opens in add() and closes in remove(), and the results of its requests. */
struct visit {
	struct kunit *test;
	u64 handle;
	u64 pd;
	ssize_t ret[4];
};

static void open_in_add(struct kvt_client *c, struct ib_device *ibdev)
{
	struct ib_ca_request req = CA_REQ(OPEN);
	struct visit *v = c->arg;
	struct kverbs_ca_attr attr;

	v->ret[0] = ib_ca_call(ibdev, &req);
	v->handle = req.handle;
	v->ret[1] = CA_CALL(ibdev, QUERY_CA, .handle = v->handle, .out = &attr,
			    .out_len = sizeof(attr));
}

static void close_in_remove(struct kvt_client *c, struct ib_device *ibdev)
{
	struct visit *v = c->arg;
	struct kverbs_ca_attr attr;

	v->ret[2] = CA_CALL(ibdev, QUERY_CA, .handle = v->handle, .out = &attr,
			    .flags = KVERBS_CA_FRESH, .out_len = sizeof(attr));
	v->ret[3] = ca_rig_close(ibdev, v->handle);
}

static void client_may_ask_from_add_until_remove(struct kunit *test)
{
	struct kvt_console *warned = kvt_console_watch(test, "left its channel");
	struct kvt_client *c = kvt_client_new(test, "A", kvt_trace_new(test));
	struct visit v = {};
	struct mock *m;

	c->on_add = open_in_add;
	c->on_remove = close_in_remove;
	c->arg = &v;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	m = mock_up(test, "kvtm_a");
	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, 0, v.ret[0]);
	KUNIT_EXPECT_EQ(test, -EOVERFLOW, v.ret[1]);
	KUNIT_EXPECT_EQ(test, -EOVERFLOW, v.ret[2]);
	KUNIT_EXPECT_EQ(test, 0, v.ret[3]);
	KUNIT_EXPECT_EQ(test, 0, kvt_console_times(warned));
	MOCK_EXPECT_IDLE(test, m);
}

/* The core releases MRs first, then PDs, then the CA. */
static void expect_released_in_order(struct kunit *test, struct mock *m)
{
	int mr = mock_log_find(m, MOCK_dereg_mr, 0);
	int pd = mock_log_find(m, MOCK_dealloc_pd, 0);
	int ca = mock_log_find(m, MOCK_close_ca, 0);

	KUNIT_EXPECT_EQ(test, 2, mock_calls(m, MOCK_dereg_mr));
	KUNIT_EXPECT_EQ(test, 2, mock_calls(m, MOCK_dealloc_pd));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_close_ca));
	KUNIT_EXPECT_LT(test, 0, mr);
	KUNIT_EXPECT_LT(test, mock_log_find(m, MOCK_dereg_mr, mr + 1), pd);
	KUNIT_EXPECT_LT(test, mock_log_find(m, MOCK_dealloc_pd, pd + 1), ca);
}

static void what_a_module_leaves_is_closed_with_a_warning(struct kunit *test)
{
	struct kvt_console *warned = kvt_console_watch(test, "module " KBUILD_MODNAME " left");
	unsigned long addr = kvt_map(test, 2 * PAGE_SIZE);
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_ca_request req = CA_REQ(OPEN);
	struct kverbs_ca_reg_mr reg;
	int i;

	KUNIT_ASSERT_EQ(test, 0, ib_ca_call(m->ibdev, &req));
	for (i = 0; i < 2; i++) {
		reg = ca_rig_reg_of(ca_rig_pd(test, m->ibdev, req.handle), addr, PAGE_SIZE);
		ca_rig_reg(test, m->ibdev, req.handle, &reg);
	}
	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(warned));
	expect_released_in_order(test, m);
	MOCK_EXPECT_IDLE(test, m);
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
}

static int unregister_fn(void *arg)
{
	mock_unregister(arg);
	return 0;
}

static void unregistration_waits_for_a_call(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_thread *unreg;
	struct ca_async *open;

	mock_hold(m, MOCK_open_ca);
	open = ca_async_new(test, &CA_REQ(OPEN));
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &open->req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));
	unreg = kvt_thread_start(test, -1, unregister_fn, m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(unreg));
	mock_hold_end(m);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(unreg));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&open->calls));
	KUNIT_EXPECT_EQ(test, 0, open->req.result);
	/* The consumer left the CA open: unregistration has closed it. */
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_close_ca));
	MOCK_EXPECT_IDLE(test, m);
}

/* While a device is unregistered, its driver is called only to close what is still open. */
static void no_request_while_the_device_goes(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_ca_request req = CA_REQ(OPEN);
	struct kvt_thread *unreg;

	KUNIT_ASSERT_EQ(test, 0, ib_ca_call(m->ibdev, &req));
	mock_hold(m, MOCK_close_ca);
	unreg = kvt_thread_start(test, -1, unregister_fn, m);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));
	KUNIT_EXPECT_EQ(test, -ENODEV, ask(m, req.handle));
	expect_refused(test, m, req.handle, -ENODEV);
	mock_hold_end(m);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(unreg));
	MOCK_EXPECT_IDLE(test, m);
}

static const char *debugfs_text(struct kunit *test)
{
	char *text = kvt_zalloc(test, TEXT_LEN);

	KUNIT_ASSERT_GT(test, kvt_read_debugfs("/sys/kernel/debug/kverbs/kvtm_a/ca",
					       text, TEXT_LEN), 0);
	return text;
}

static void debugfs_tells_who_has_it_open(struct kunit *test)
{
	unsigned long addr = kvt_map(test, 2 * PAGE_SIZE);
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_ca_request req = CA_REQ(OPEN);
	struct kverbs_ca_reg_mr reg;
	char want[160];
	u64 pd, mr;

	KUNIT_EXPECT_NULL(test, strstr(debugfs_text(test), "handle="));
	KUNIT_ASSERT_EQ(test, 0, ib_ca_call(m->ibdev, &req));
	pd = ca_rig_pd(test, m->ibdev, req.handle);
	reg = ca_rig_reg_of(pd, addr, 5000);
	mr = ca_rig_reg(test, m->ibdev, req.handle, &reg);
	snprintf(want, sizeof(want),
		 "handle=%#llx kernel owner=" KBUILD_MODNAME
		 " pid=0 pds=1 mrs=1 bytes=5000\n", req.handle);
	KUNIT_EXPECT_NOT_NULL(test, strstr(debugfs_text(test), want));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dereg(m->ibdev, req.handle, mr));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(m->ibdev, req.handle, pd));
	KUNIT_EXPECT_NOT_NULL(test, strstr(debugfs_text(test), "pds=0 mrs=0 bytes=0\n"));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, req.handle));
	KUNIT_EXPECT_NULL(test, strstr(debugfs_text(test), "handle="));
}

static void flag_of_a_file_means_nothing(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_ca_request req = CA_REQ(OPEN, .flags = KVERBS_CA_SHARED);

	KUNIT_ASSERT_EQ(test, 0, ib_ca_call(m->ibdev, &req));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, req.handle));
}

static struct kunit_case ca_open_cases[] = {
	KUNIT_CASE(driver_sees_open_and_close),
	KUNIT_CASE(what_is_for_the_driver_reaches_it),
	KUNIT_CASE(driver_gets_a_copy),
	KUNIT_CASE(error_of_the_driver_is_told),
	KUNIT_CASE(driver_keeps_what_it_likes_with_an_opening),
	KUNIT_CASE(methods_are_optional),
	KUNIT_CASE(handles_differ),
	KUNIT_CASE(unknown_handle_is_refused),
	KUNIT_CASE(closed_handle_is_refused),
	KUNIT_CASE(many_handles_are_told_apart),
	KUNIT_CASE(handle_is_good_for_its_device_only),
	KUNIT_CASE(busy_close_tells_what_is_left),
	KUNIT_CASE(close_is_busy_while_something_is_made),
	KUNIT_CASE(handle_that_is_being_closed_is_gone),
	KUNIT_CASE(handle_that_is_being_opened_is_not_there),
	KUNIT_CASE(no_request_after_unregistration),
	KUNIT_CASE(client_may_ask_from_add_until_remove),
	KUNIT_CASE(what_a_module_leaves_is_closed_with_a_warning),
	KUNIT_CASE(unregistration_waits_for_a_call),
	KUNIT_CASE(no_request_while_the_device_goes),
	KUNIT_CASE(debugfs_tells_who_has_it_open),
	KUNIT_CASE(flag_of_a_file_means_nothing),
	{}
};
KVT_SUITE(ca_open);

MODULE_DESCRIPTION("KUnit: open channel adapters, and what is under them");
MODULE_LICENSE("GPL");
