// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to channel adapters, of whose memory allocations each is made to fail in turn.
 */
#include <linux/fcntl.h>
#include <linux/mm.h>

#include "ca/rig.h"
#include "fault/sweep.h"

/* Pages of user memory: too many for one chunk of a scatter list. */
#define USER_PAGES	300UL

#define VENDOR_LEN	100
#define ANSWER_LEN	2048

/* What the requests are about. */
struct target {
	struct mock *m;		/* the device */
	u64 h;			/* handle of an open CA */
	u64 pd;			/* PD under @h */
	unsigned long addr;	/* user memory of the case's thread */
	u64 handle;		/* handle that OPEN returned */
	u64 object;		/* object that ALLOC_PD or REG_MR returned */
	u8 vendor[VENDOR_LEN];	/* driver-specific input of OPEN */
	u8 answer[ANSWER_LEN];	/* room for an answer */
};

static struct target *target_up(struct kunit *test)
{
	struct target *t = kvt_zalloc(test, sizeof(*t));

	t->addr = kvt_map(test, USER_PAGES * PAGE_SIZE);
	t->m = mock_up(test, "kvtm_a");
	t->h = ca_rig_open(test, t->m->ibdev);
	return t;
}

static int make_open(void *arg)
{
	struct target *t = arg;
	struct ib_ca_request req = CA_REQ(OPEN, .in = t->vendor, .in_len = VENDOR_LEN);
	int ret = ib_ca_call(t->m->ibdev, &req);

	t->handle = req.handle;
	return ret;
}

UNMAKES(unmake_open, target, t, ca_rig_close(t->m->ibdev, t->handle))

static int make_pd(void *arg)
{
	struct target *t = arg;
	struct ib_ca_request req = CA_REQ(ALLOC_PD, .handle = t->h);
	int ret = ib_ca_call(t->m->ibdev, &req);

	t->object = req.object;
	return ret;
}

UNMAKES(unmake_pd, target, t, ca_rig_dealloc(t->m->ibdev, t->h, t->object))

static int make_mr(void *arg)
{
	struct target *t = arg;
	struct kverbs_ca_reg_mr reg = ca_rig_reg_of(t->pd, t->addr, USER_PAGES << PAGE_SHIFT);
	struct ib_ca_request req = CA_REQ(REG_MR, .handle = t->h, .in = &reg,
					  .in_len = sizeof(reg),
					  .out = t->answer,
					  .out_len = ANSWER_LEN);
	ssize_t ret = ib_ca_call(t->m->ibdev, &req);

	t->object = req.object;
	return min_t(ssize_t, ret, 0);
}

UNMAKES(unmake_mr, target, t, ca_rig_dereg(t->m->ibdev, t->h, t->object))

static int answered(struct target *t, struct ib_ca_request *req)
{
	req->out = t->answer;
	req->out_len = ANSWER_LEN;
	return min_t(ssize_t, ib_ca_call(t->m->ibdev, req), 0);
}

MAKES(make_list, target, t, answered(t, &CA_REQ(LIST, .handle = t->h)))
MAKES(make_fresh, target, t,
	answered(t, &CA_REQ(QUERY_CA, .handle = t->h, .flags = KVERBS_CA_FRESH)))

static void opening(struct kunit *test)
{
	struct target *t = target_up(test);

	SWEEP(test, t->m, t, "OPEN", make_open, unmake_open);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&t->m->wrong_ca));
}

static void objects_of_a_handle(struct kunit *test)
{
	static const struct victim victims[] = {
		{ "ALLOC_PD", make_pd, unmake_pd },
		{ "REG_MR", make_mr, unmake_mr },
		{ "LIST", make_list, kvt_nothing },
	};
	struct target *t;
	int i;

	t = target_up(test);
	t->pd = ca_rig_pd(test, t->m->ibdev, t->h);
	for (i = 0; i < ARRAY_SIZE(victims); i++)
		sweep(test, t->m, &victims[i], t);
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 1, ca_rig_list(test, t->m->ibdev, t->h)->count);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(t->m->ibdev, t->h, t->pd));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(t->m->ibdev, t->h));
}

/* Without memory to refresh, a FRESH query fails, and others get the old values. */
static void fresh_query(struct kunit *test)
{
	const struct kverbs_ca_attr *before, *now;
	struct target *t = target_up(test);

	before = ca_rig_attr(test, t->m->ibdev, t->h);
	SWEEP(test, t->m, t, "QUERY_CA", make_fresh, kvt_nothing);
	t->m->port[1].attr.lid = 0x99;
	kvt_fail_nth(1);
	KUNIT_EXPECT_EQ(test, -ENOMEM, make_fresh(t));
	KUNIT_EXPECT_TRUE(test, kvt_failed_nth());
	kvt_fail_nth(1);
	KUNIT_EXPECT_EQ(test, 0, answered(t, &CA_REQ(QUERY_CA, .handle = t->h)));
	KUNIT_EXPECT_TRUE(test, kvt_failed_nth());
	KUNIT_EXPECT_MEMEQ(test, t->answer, before, before->size);
	now = ca_rig_attr(test, t->m->ibdev, t->h);
	KUNIT_EXPECT_EQ(test, before->generation + 1, now->generation);
	KUNIT_EXPECT_EQ(test, 0x99, ca_rig_port_in(now, 1)->lid);
}

/* Requests that free must not fail, nor allocate memory. */
static void free_all(struct kunit *test, struct target *t)
{
	static const u32 ops[] = {
		KVERBS_CA_DEREG_MR, KVERBS_CA_DEALLOC_PD, KVERBS_CA_CLOSE,
	};
	u64 objects[] = { t->object, t->pd, 0 };
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		struct ib_ca_request req = {
			.op = ops[i],
			.version = KVERBS_CA_VERSION,
			.handle = t->h,
			.object = objects[i],
		};

		KUNIT_EXPECT_EQ(test, 0, QUIET(test, ib_ca_call(t->m->ibdev, &req)));
	}
}

static void freeing_needs_no_memory(struct kunit *test)
{
	struct target *t = target_up(test);

	t->pd = ca_rig_pd(test, t->m->ibdev, t->h);
	KUNIT_ASSERT_EQ(test, 0, make_mr(t));
	free_all(test, t);
	MOCK_EXPECT_IDLE(test, t->m);
}

/* The one who borrows is the last user of the PD, and frees it. */
static void lending_a_pd_needs_no_memory(struct kunit *test)
{
	struct kverbs_ca_request r = {};
	unsigned long room;
	struct ib_ca_pd *pd;
	struct mock *m;
	int fd;

	room = kvt_map(test, PAGE_SIZE);
	m = mock_up(test, "kvtm_a");
	fd = ca_rig_open_file("kvtm_a", O_RDWR);
	KUNIT_ASSERT_GE(test, fd, 0);
	KUNIT_ASSERT_EQ(test, 0, ca_rig_ioctl(fd, room, KVERBS_CA_OPEN, &r));
	KUNIT_ASSERT_EQ(test, 0, ca_rig_ioctl(fd, room, KVERBS_CA_ALLOC_PD, &r));
	pd = QUIET(test, ib_ca_pd_get(fd, r.handle, r.object));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close_file(fd));
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(pd));
	QUIET_VOID(test, ib_ca_pd_put(pd));
	MOCK_EXPECT_IDLE(test, m);
}

static struct kunit_case fail_nth_ca_cases[] = {
	KUNIT_CASE(opening),
	KUNIT_CASE(objects_of_a_handle),
	KUNIT_CASE(fresh_query),
	KUNIT_CASE_PARAM(freeing_needs_no_memory, quiet_gen_params),
	KUNIT_CASE_PARAM(lending_a_pd_needs_no_memory, quiet_gen_params),
	{}
};
KVT_SUITE(fail_nth_ca, .init = kvt_need_injection);
