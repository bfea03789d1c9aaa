// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel-adapter requests submitted with ib_ca_submit(), from any context. Each is called
 * back exactly once, cancelled or not, with the result that ib_ca_call() would return, and
 * the device's unregistration waits for all callbacks.
 */
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>

#include "ca/rig.h"
#include "lib/client.h"
#include "lib/mock.h"

/* More requests than the workqueue executes at a time. */
#define FLOOD		600
#define IN_FLIGHT	20000
#define CHAIN		20000
#define ANSWER_LEN	1024

KUNIT_ARRAY_PARAM_DESC(context, kvt_runs, name);

/* A request that is submitted or cancelled in some context. */
struct submission {
	struct mock *m;		/* the device */
	const struct kvt_run *ctx;
	struct ca_async *a;	/* the request */
	ssize_t ret;		/* what ib_ca_submit() or ib_ca_cancel() returned */
};

static void do_submit(void *arg)
{
	struct submission *s = arg;

	s->ret = ib_ca_submit(s->m->ibdev, &s->a->req);
}

static void do_cancel(void *arg)
{
	struct submission *s = arg;

	s->ret = ib_ca_cancel(&s->a->req);
}

/* Submits the request and waits for its one callback. Returns the result. */
static ssize_t submitted(struct kunit *test, struct submission *s, const struct ib_ca_request *req)
{
	ssize_t ret;

	s->a = ca_async_new(test, req);
	s->ctx->run(do_submit, s);
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, s->ret);
	ret = ca_async_wait(s->a);
	KUNIT_ASSERT_NE(test, -ETIMEDOUT, ret);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->a->calls));
	return ret;
}

static void expect_as_called(struct kunit *test, struct submission *s,
			     const struct ib_ca_request *what)
{
	struct ib_ca_request req = *what;
	u8 *one = kvt_zalloc(test, ANSWER_LEN);
	u8 *other = kvt_zalloc(test, ANSWER_LEN);
	ssize_t ret;

	if (req.out_len)
		req.out = one;
	ret = submitted(test, s, &req);
	if (req.out_len)
		req.out = other;
	KUNIT_EXPECT_EQ_MSG(test, ib_ca_call(s->m->ibdev, &req), ret, "operation %u", req.op);
	KUNIT_EXPECT_MEMEQ(test, one, other, ANSWER_LEN);
}

static void result_is_that_of_a_call(struct kunit *test)
{
	struct submission s = {
		.m = mock_up(test, "kvtm_a"),
		.ctx = test->param_value,
	};
	u64 h, pd;

	KUNIT_ASSERT_EQ(test, 0, submitted(test, &s, &CA_REQ(OPEN)));
	h = s.a->req.handle;
	KUNIT_EXPECT_EQ(test, h, s.m->opened.handle);
	KUNIT_ASSERT_EQ(test, 0, submitted(test, &s, &CA_REQ(ALLOC_PD, .handle = h)));
	pd = s.a->req.object;
	expect_as_called(test, &s, &CA_REQ(LIST, .handle = h, .out_len = ANSWER_LEN));
	expect_as_called(test, &s, &CA_REQ(LIST, .handle = h, .out_len = 9));
	expect_as_called(test, &s, &CA_REQ(QUERY_CA, .handle = h,
					   .flags = KVERBS_CA_FRESH,
					   .out_len = ANSWER_LEN));
	expect_as_called(test, &s, &CA_REQ(QUERY_PORT, .handle = h, .port = 2,
					   .flags = KVERBS_CA_FRESH,
					   .out_len = ANSWER_LEN));
	expect_as_called(test, &s, &CA_REQ(DEREG_MR, .handle = h, .object = pd));
	expect_as_called(test, &s, &CA_REQ(CLOSE, .handle = h));
	KUNIT_EXPECT_EQ(test, 0, submitted(test, &s,
					   &CA_REQ(DEALLOC_PD, .handle = h,
						   .object = pd)));
	KUNIT_EXPECT_EQ(test, 0, submitted(test, &s, &CA_REQ(CLOSE, .handle = h)));
	MOCK_EXPECT_IDLE(test, s.m);
}

static void wrong_request_is_answered_at_once(struct kunit *test)
{
	struct submission s = {
		.m = mock_up(test, "kvtm_a"),
		.ctx = test->param_value,
	};
	u64 h = ca_rig_open(test, s.m->ibdev);

	s.a = ca_async_new(test, &CA_REQ(ALLOC_PD, .handle = h, .object = 1));
	s.ctx->run(do_submit, &s);
	KUNIT_EXPECT_EQ(test, -EINVAL, s.ret);
	s.a->req = CA_REQ(ALLOC_PD, .handle = h);
	s.ctx->run(do_submit, &s);
	/* A request without done() is refused. */
	KUNIT_EXPECT_EQ(test, -EINVAL, s.ret);
	s.a->req = CA_REQ(QUERY_CA, .handle = h, .flags = KVERBS_CA_FRESH,
			  .out = &s.ret, .out_len = sizeof(s.ret));
	s.ctx->run(do_submit, &s);
	KUNIT_EXPECT_EQ(test, -EINVAL, s.ret);
	s.a->req = CA_REQ(LIST, .handle = h, .out = &s.ret, .out_len = 7);
	s.ctx->run(do_submit, &s);
	KUNIT_EXPECT_EQ(test, -ENOSPC, s.ret);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s.a->calls));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(s.m, MOCK_alloc_pd));
}

static void interrupt_has_no_memory_to_register(struct kunit *test)
{
	unsigned long addr = kvt_map(test, PAGE_SIZE);
	struct submission s = {
		.m = mock_up(test, "kvtm_a"),
		.ctx = &kvt_runs[2],
	};
	u64 h = ca_rig_open(test, s.m->ibdev);
	struct kverbs_ca_reg_mr reg = ca_rig_reg_of(ca_rig_pd(test, s.m->ibdev, h), addr, 1);
	const struct ib_ca_request req = CA_REQ(REG_MR, .handle = h, .in = &reg,
						.in_len = sizeof(reg));

	KUNIT_EXPECT_EQ(test, -EFAULT, submitted(test, &s, &req));
	s.ctx = &kvt_runs[0];
	KUNIT_EXPECT_EQ(test, 0, submitted(test, &s, &req));
}

static void memory_of_the_submitter_is_registered(struct kunit *test)
{
	unsigned long addr = kvt_map(test, 2 * PAGE_SIZE);
	struct submission s = {
		.m = mock_up(test, "kvtm_a"),
		.ctx = &kvt_runs[0],
	};
	u64 h = ca_rig_open(test, s.m->ibdev), word = 0;
	struct kverbs_ca_reg_mr reg =
		ca_rig_reg_of(ca_rig_pd(test, s.m->ibdev, h), addr, PAGE_SIZE);
	struct kverbs_ca_mr_attr attr;

	KUNIT_ASSERT_EQ(test, 0, put_user(0xfeedULL, (u64 __user *)(addr + 8)));
	KUNIT_ASSERT_EQ(test, (ssize_t)sizeof(attr),
			submitted(test, &s, &CA_REQ(REG_MR, .handle = h, .in = &reg,
						    .in_len = sizeof(reg), .out = &attr,
						    .out_len = sizeof(attr))));
	KUNIT_EXPECT_EQ(test, s.a->req.object, attr.object);
	KUNIT_EXPECT_EQ(test, 0, ib_umem_copy_from(&word, mock_mr_umem(s.m->user_mr), 8, 8));
	KUNIT_EXPECT_EQ(test, 0xfeedULL, word);
	KUNIT_EXPECT_EQ(test, 1, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 0, submitted(test, &s,
					   &CA_REQ(DEREG_MR, .handle = h,
						   .object = attr.object)));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(s.m->ibdev, h, reg.pd));
}

/* More requests than are executed at a time, held up in the driver. */
struct flood {
	struct mock *m;		/* the device, whose alloc_pd is held */
	u64 h;			/* handle of an open CA */
	struct ca_async *a;	/* the requests, ALLOC_PD each */
};

static void free_flood(void *arg)
{
	struct flood *f = arg;

	/* If the case failed, requests may still be in flight. */
	mock_hold_end(f->m);
	mock_unregister(f->m);
	kvfree(f->a);
}

static struct flood *flood_up(struct kunit *test, u32 count)
{
	struct flood *f = kvt_zalloc(test, sizeof(*f));
	u32 i;

	f->m = mock_up(test, "kvtm_a");
	f->h = ca_rig_open(test, f->m->ibdev);
	f->a = KVT_PTR(test, kvcalloc(count, sizeof(*f->a), GFP_KERNEL));
	kvt_defer(test, free_flood, f);
	mock_hold(f->m, MOCK_alloc_pd);
	for (i = 0; i < count; i++) {
		ca_async_init(&f->a[i], &CA_REQ(ALLOC_PD, .handle = f->h));
		KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(f->m->ibdev, &f->a[i].req));
	}
	return f;
}

/* The case has set req.context of those requests that it cancelled. */
static void expect_ended(struct kunit *test, struct ca_async *a)
{
	KUNIT_ASSERT_NE(test, -ETIMEDOUT, ca_async_wait(a));
	KUNIT_ASSERT_EQ(test, 1, atomic_read(&a->calls));
	KUNIT_ASSERT_EQ(test, a->req.context ? -ECANCELED : 0, a->req.result);
}

static u32 drain_flood(struct kunit *test, struct flood *f, u32 count)
{
	u32 i, made = 0;

	mock_hold_end(f->m);
	for (i = 0; i < count; i++)
		expect_ended(test, &f->a[i]);
	for (i = 0; i < count; i++) {
		if (f->a[i].req.context)
			continue;
		made++;
		KUNIT_ASSERT_EQ(test, 0, ca_rig_dealloc(f->m->ibdev, f->h, f->a[i].req.object));
	}
	return made;
}

/* A request that has not begun cannot begin while the others occupy the workqueue. */
static void what_has_not_begun_is_cancelled(struct kunit *test)
{
	struct flood *f = flood_up(test, FLOOD);
	struct submission s = { .m = f->m, .ctx = test->param_value };
	u32 i, cancelled = 0;

	KUNIT_ASSERT_TRUE(test, kvt_wait(&f->m->hold.entered));
	for (i = 0; i < FLOOD; i++) {
		s.a = &f->a[FLOOD - 1 - i];
		s.ctx->run(do_cancel, &s);
		if (s.ret) {
			KUNIT_ASSERT_EQ(test, -EALREADY, s.ret);
			continue;
		}
		s.a->req.context = f;
		cancelled++;
		KUNIT_ASSERT_EQ(test, -EALREADY, ib_ca_cancel(&s.a->req));
	}
	/* The request inside alloc_pd cannot be cancelled. */
	KUNIT_EXPECT_LT(test, cancelled, FLOOD);
	KUNIT_EXPECT_GT(test, cancelled, 0);
	KUNIT_EXPECT_EQ(test, FLOOD - cancelled, drain_flood(test, f, FLOOD));
	KUNIT_EXPECT_EQ(test, FLOOD - cancelled, mock_calls(f->m, MOCK_alloc_pd));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(f->m->ibdev, f->h));
}

static void what_has_begun_is_not_cancelled(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ca_async *a = ca_async_new(test, &CA_REQ(OPEN));

	KUNIT_EXPECT_EQ(test, -EALREADY, ib_ca_cancel(&a->req));
	mock_hold(m, MOCK_open_ca);
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &a->req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));
	KUNIT_EXPECT_EQ(test, -EALREADY, ib_ca_cancel(&a->req));
	mock_hold_end(m);
	KUNIT_ASSERT_EQ(test, 0, ca_async_wait(a));
	KUNIT_EXPECT_EQ(test, -EALREADY, ib_ca_cancel(&a->req));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&a->calls));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, a->req.handle));
}

static void memory_of_a_process_that_has_ended_is_gone(struct kunit *test)
{
	unsigned long addr = kvt_map(test, PAGE_SIZE);
	struct mm_struct *mm = current->mm;
	struct kverbs_ca_reg_mr reg;
	struct submission s = {};
	struct flood *f = flood_up(test, FLOOD);

	/* PD 1 need not exist: the memory is looked up before the PD. */
	reg = ca_rig_reg_of(1, addr, 1);
	s.a = ca_async_new(test, &CA_REQ(REG_MR, .handle = f->h, .in = &reg,
					 .in_len = sizeof(reg)));
	s.m = f->m;
	do_submit(&s);
	KUNIT_EXPECT_EQ(test, -EINPROGRESS, s.ret);
	kthread_unuse_mm(mm);
	mmput(mm);
	drain_flood(test, f, FLOOD);
	KUNIT_EXPECT_EQ(test, -EFAULT, ca_async_wait(s.a));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s.a->calls));
}

/* A request that done() submits again. */
struct chain {
	struct ib_ca_request req;
	struct ib_device *ibdev;
	u64 left;		/* submissions still to be made by done() */
	u64 wrong;		/* unexpected results of submissions, cancellations or requests */
	struct completion over;	/* completed by the last done() */
};

static void chain_done(struct ib_ca_request *req)
{
	struct chain *c = container_of(req, struct chain, req);

	if (req->result != -EOVERFLOW || ib_ca_cancel(req) != -EALREADY)
		c->wrong++;
	if (c->left--) {
		if (ib_ca_submit(c->ibdev, req) != -EINPROGRESS) {
			c->wrong++;
			complete(&c->over);
		}
	} else {
		complete(&c->over);
	}
}

static void callback_may_submit_again(struct kunit *test)
{
	struct chain *c = kvt_zalloc(test, sizeof(*c));
	u64 word, count = kvt_count(CHAIN);
	struct mock *m = mock_up(test, "kvtm_a");

	c->ibdev = m->ibdev;
	c->left = count;
	init_completion(&c->over);
	c->req = CA_REQ(LIST, .handle = ca_rig_open(test, m->ibdev),
			.out = &word, .out_len = sizeof(word),
			.done = chain_done);
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &c->req));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&c->over));
	KUNIT_EXPECT_EQ(test, -1, (s64)c->left);
	KUNIT_EXPECT_EQ(test, 0, c->wrong);
}

struct freed {
	struct ib_ca_request req;
	struct completion *over;
};

static void free_in_done(struct ib_ca_request *req)
{
	struct freed *f = container_of(req, struct freed, req);
	struct completion *over = f->over;

	kfree(f);
	complete(over);
}

static void callback_may_free_the_request(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(over);
	struct mock *m = mock_up(test, "kvtm_a");
	u64 h = ca_rig_open(test, m->ibdev), word;
	struct freed *f;
	int i;

	for (i = 0; i < 100; i++) {
		f = KVT_PTR(test, kzalloc(sizeof(*f), GFP_KERNEL));
		f->over = &over;
		f->req = CA_REQ(LIST, .handle = h, .out = &word,
				.out_len = sizeof(word), .done = free_in_done);
		KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &f->req));
		KUNIT_ASSERT_TRUE(test, kvt_wait(&over));
	}
}

static int unregister_fn(void *arg)
{
	mock_unregister(arg);
	return 0;
}

static void unregistration_waits_for_all_callbacks(struct kunit *test)
{
	u32 i, count = kvt_count(IN_FLIGHT), called = 0;
	struct flood *f = flood_up(test, count);
	struct kvt_thread *unreg = kvt_thread_new(test, -1, unregister_fn, f->m);
	struct ca_async *late = ca_async_new(test, &CA_REQ(OPEN));

	kvt_print_length(test, "requests in flight at the device's end", count);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&f->m->hold.entered));
	kvt_thread_go(unreg);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(unreg));
	for (i = 0; i < count; i += 3)
		if (!ib_ca_cancel(&f->a[i].req))
			f->a[i].req.context = f;
	mock_hold_end(f->m);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(unreg));
	/* The unregistration has waited for every callback. */
	for (i = 0; i < count; i++)
		called += atomic_read(&f->a[i].calls);
	KUNIT_EXPECT_EQ(test, count, called);
	for (i = 0; i < count; i++)
		expect_ended(test, &f->a[i]);
	KUNIT_EXPECT_EQ(test, -ENODEV, ib_ca_submit(f->m->ibdev, &late->req));
	MOCK_EXPECT_IDLE(test, f->m);
}

struct gated {
	struct ib_ca_request req;
	struct kvt_gate gate;
};

/* Consumers may not sleep in done(); the case may, since a work item calls it. */
static void done_at_gate(struct ib_ca_request *req)
{
	kvt_gate_sleep(&container_of(req, struct gated, req)->gate);
}

/* A device, and a request whose callback is held up at the gate. */
static struct gated *gated_up(struct kunit *test, struct mock **m)
{
	struct gated *g = kvt_zalloc(test, sizeof(*g));

	kvt_gate_init(&g->gate);
	*m = mock_up(test, "kvtm_a");
	g->req = CA_REQ(ALLOC_PD, .handle = 1, .done = done_at_gate);
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit((*m)->ibdev, &g->req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&g->gate.entered));
	return g;
}

static void unregistration_waits_for_a_running_callback(struct kunit *test)
{
	struct kvt_thread *unreg;
	struct gated *g;
	struct mock *m;

	g = gated_up(test, &m);
	unreg = kvt_thread_start(test, -1, unregister_fn, m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(unreg));
	kvt_gate_open(&g->gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(unreg));
	KUNIT_EXPECT_EQ(test, -ENOENT, g->req.result);
}

static int client_goes_fn(void *arg)
{
	kvt_client_unregister(arg);
	return 0;
}

/* The running callback may be the departing client's. */
static void client_that_goes_waits_for_a_running_callback(struct kunit *test)
{
	struct kvt_client *c = kvt_client_up(test, "kvt_goes", kvt_trace_new(test));
	struct kvt_thread *goes;
	struct gated *g;
	struct mock *m;

	g = gated_up(test, &m);
	goes = kvt_thread_start(test, -1, client_goes_fn, c);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(goes));
	kvt_gate_open(&g->gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(goes));
	/* This waits until the request has released the device. */
	mock_unregister(m);
}

/* A process can hold up its request for any time, so a departing client must not wait. */
static void client_that_goes_does_not_wait_for_requests(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ca_async *a = ca_async_new(test, &CA_REQ(OPEN));
	struct kvt_client *c = kvt_client_up(test, "kvt_goes", kvt_trace_new(test));
	struct kvt_thread *goes;

	mock_hold(m, MOCK_open_ca);
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &a->req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));
	goes = kvt_thread_start(test, -1, client_goes_fn, c);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(goes));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&a->calls));
	mock_hold_end(m);
	KUNIT_ASSERT_EQ(test, 0, ca_async_wait(a));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, a->req.handle));
}

static void close_with_requests_in_flight_is_safe(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	u32 i, count = kvt_count(CHAIN) / 10 + 50, closed = 0, gone = 0;
	u64 h = ca_rig_open(test, m->ibdev), word;
	struct ca_async **a = KVT_PTR(test, kunit_kcalloc(test, count, sizeof(*a), GFP_KERNEL));

	for (i = 0; i < count; i++) {
		a[i] = ca_async_new(test, i % 16 == 15 ?
				    &CA_REQ(CLOSE, .handle = h) :
				    &CA_REQ(LIST, .handle = h, .out = &word,
					    .out_len = sizeof(word)));
		KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &a[i]->req));
	}
	for (i = 0; i < count; i++) {
		KUNIT_ASSERT_NE(test, -ETIMEDOUT, ca_async_wait(a[i]));
		KUNIT_EXPECT_EQ(test, 1, atomic_read(&a[i]->calls));
		if (a[i]->req.result == -ENOENT)
			gone++;
		else if (i % 16 == 15)
			closed += !a[i]->req.result;
		else
			KUNIT_EXPECT_EQ(test, -EOVERFLOW, a[i]->req.result);
	}
	KUNIT_EXPECT_EQ(test, 1, closed);
	KUNIT_EXPECT_GE(test, gone, count / 16 - 1);
	MOCK_EXPECT_IDLE(test, m);
}

static struct kunit_case ca_async_cases[] = {
	KUNIT_CASE_PARAM(result_is_that_of_a_call, context_gen_params),
	KUNIT_CASE_PARAM(wrong_request_is_answered_at_once, context_gen_params),
	KUNIT_CASE(interrupt_has_no_memory_to_register),
	KUNIT_CASE(memory_of_the_submitter_is_registered),
	KUNIT_CASE_PARAM(what_has_not_begun_is_cancelled, context_gen_params),
	KUNIT_CASE(what_has_begun_is_not_cancelled),
	KUNIT_CASE(memory_of_a_process_that_has_ended_is_gone),
	KUNIT_CASE(callback_may_submit_again),
	KUNIT_CASE(callback_may_free_the_request),
	KUNIT_CASE_SLOW(unregistration_waits_for_all_callbacks),
	KUNIT_CASE(unregistration_waits_for_a_running_callback),
	KUNIT_CASE(client_that_goes_waits_for_a_running_callback),
	KUNIT_CASE(client_that_goes_does_not_wait_for_requests),
	KUNIT_CASE(close_with_requests_in_flight_is_safe),
	{}
};
KVT_SUITE(ca_async);

MODULE_DESCRIPTION("KUnit: channel-adapter requests that are submitted");
MODULE_LICENSE("GPL");
