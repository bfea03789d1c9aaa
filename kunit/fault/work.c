// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each allocation of a work item of the core fails in turn. If a consumer waits for the
 * result, it must get the error; if nobody does, the work must be done nonetheless, later.
 */
#include <linux/inet.h>
#include <linux/mm.h>

#include "ca/rig.h"
#include "fault/sweep.h"
#include "lib/mock.h"

/* Pages of user memory; too many for one piece of a scatter list. */
#define USER_PAGES	300UL

/* --- requests ---------------------------------------------------------------- */

/* A device, and the request that is submitted to it. */
struct target {
	struct mock *m;			/* the device */
	u64 h;				/* handle of an open CA */
	u64 pd;				/* a PD of @h */
	struct ca_async a;		/* the request */
	struct kverbs_ca_reg_mr reg;	/* input of REG_MR */
	u8 vendor[MOCK_VENDOR];		/* input of OPEN, which is for the driver */
};

/*
 * Returns 0 or the error that done() got; -EPROTO if done() was not called exactly once, or
 * the request was not taken.
 */
static int submit(struct target *t, const struct ib_ca_request *req)
{
	ssize_t ret;

	ca_async_init(&t->a, req);
	ret = ib_ca_submit(t->m->ibdev, &t->a.req);
	if (ret != -EINPROGRESS)
		return -EPROTO;
	ret = ca_async_wait(&t->a);
	if (atomic_read(&t->a.calls) != 1)
		return -EPROTO;
	return min_t(ssize_t, ret, 0);
}

MAKES(make_open, target, t, submit(t, &CA_REQ(OPEN, .in = t->vendor, .in_len = sizeof(t->vendor))))
UNMAKES(unmake_open, target, t, ca_rig_close(t->m->ibdev, t->a.req.handle))
MAKES(make_pd, target, t, submit(t, &CA_REQ(ALLOC_PD, .handle = t->h)))
UNMAKES(unmake_pd, target, t, ca_rig_dealloc(t->m->ibdev, t->h, t->a.req.object))
MAKES(make_mr, target, t,
	submit(t, &CA_REQ(REG_MR, .handle = t->h, .in = &t->reg, .in_len = sizeof(t->reg))))
UNMAKES(unmake_mr, target, t, ca_rig_dereg(t->m->ibdev, t->h, t->a.req.object))

static int count_pinned(void *arg)
{
	return kvt_pinned_pages();
}

static void requests_that_are_submitted(struct kunit *test)
{
	static const struct victim victims[] = {
		{ "OPEN, later", make_open, unmake_open, UNDO_MAKES,
		  .work = "request_work" },
		{ "ALLOC_PD, later", make_pd, unmake_pd, UNDO_MAKES,
		  .work = "request_work" },
		{ "REG_MR, later", make_mr, unmake_mr, UNDO_MAKES, count_pinned,
		  .work = "request_work" },
	};
	struct target *t = kvt_zalloc(test, sizeof(*t));
	unsigned long addr;
	int i;

	work_fail_begin(test);
	addr = kvt_map(test, USER_PAGES * PAGE_SIZE);
	t->m = mock_up(test, "kvtm_a");
	t->h = ca_rig_open(test, t->m->ibdev);
	t->pd = ca_rig_pd(test, t->m->ibdev, t->h);
	t->reg = ca_rig_reg_of(t->pd, addr, USER_PAGES << PAGE_SHIFT);
	for (i = 0; i < ARRAY_SIZE(victims); i++)
		sweep(test, t->m, &victims[i], t);
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&t->m->wrong_ca));
	KUNIT_EXPECT_EQ(test, 1, ca_rig_list(test, t->m->ibdev, t->h)->count);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(t->m->ibdev, t->h, t->pd));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(t->m->ibdev, t->h));
}

/* --- addresses --------------------------------------------------------------- */

/* An address of a network device, and the GIDs that follow it. */
struct address {
	struct mock *m;			/* the RDMA device of @ndev */
	struct net_device *ndev;	/* the network device */
	/* Bitmap of valid entries of the GID table while @ndev has no address. */
	unsigned long without;
};

static bool has_gids_of(const struct address *a)
{
	return READ_ONCE(a->m->port[1].valid) != a->without;
}

static int change_address(struct address *a, bool add)
{
	int ret = kvt_netdev_ip4(a->ndev, htonl(0x0a000001), add);

	if (ret)
		return ret;
	return kvt_until(has_gids_of(a) == add) ? 0 : -ETIMEDOUT;
}

static int make_address(void *arg)
{
	return change_address(arg, true);
}

static void unmake_address(void *arg)
{
	WARN_ON(change_address(arg, false));
}

static void gids_follow_an_address(struct kunit *test)
{
	static const struct victim victim = {
		"GIDs, later", make_address, unmake_address, UNDO_MAKES,
		.survives = true, .work = "sync_all",
	};
	struct address a = {};

	work_fail_begin(test);
	a.ndev = kvt_netdev(test);
	a.m = mock_up_eth(test, "kvtm_a", a.ndev);
	a.without = a.m->port[1].valid;
	sweep(test, a.m, &victim, &a);
}

static struct kunit_case fail_nth_work_cases[] = {
	KUNIT_CASE(requests_that_are_submitted),
	KUNIT_CASE(gids_follow_an_address),
	{}
};
KVT_SUITE(fail_nth_work, .init = kvt_need_injection);
