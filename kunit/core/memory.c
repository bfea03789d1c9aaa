// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory windows and FMRs: what the core checks and counts around the driver's methods,
 * which are those of the mock device.
 */
#include <linux/list.h>

#include "lib/mock.h"
#include "lib/objects.h"

#define ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

/* Memory windows */

static void mw_is_set_up_and_counted(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct mock_call call = {};
	struct ib_mw *mw;
	int type;

	for (type = IB_MW_TYPE_1; type <= IB_MW_TYPE_2; type++) {
		mw = KVT_PTR(test, ib_alloc_mw(pd, type));
		KUNIT_EXPECT_PTR_EQ(test, mw->pd, pd);
		KUNIT_EXPECT_PTR_EQ(test, mw->device, m->ibdev);
		KUNIT_EXPECT_EQ(test, type, mw->type);
		KUNIT_EXPECT_NE(test, 0, mw->rkey);
		KUNIT_EXPECT_STREQ(test, mw->res.kern_name, pd->res.kern_name);
		KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
		/* The type is set already when alloc_mw() is called. */
		KUNIT_EXPECT_TRUE(test, mock_last(m, MOCK_alloc_mw, &call));
		KUNIT_EXPECT_EQ(test, type, call.arg);
		KUNIT_EXPECT_EQ(test, 0, ib_dealloc_mw(mw));
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
	}
	kvt_pd_put(test, pd);
	MOCK_EXPECT_IDLE(test, m);
}

static int mw_error(struct ib_pd *pd, enum ib_mw_type type)
{
	return PTR_ERR_OR_ZERO(ib_alloc_mw(pd, type));
}

static void mw_that_the_device_lacks_is_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	u64 *caps = &m->ibdev->attrs.device_cap_flags;

	KUNIT_EXPECT_EQ(test, -EINVAL, mw_error(pd, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, mw_error(pd, 3));
	*caps = IB_DEVICE_MEM_WINDOW_TYPE_2A;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, mw_error(pd, IB_MW_TYPE_1));
	*caps = IB_DEVICE_MEM_WINDOW;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, mw_error(pd, IB_MW_TYPE_2));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_alloc_mw));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

static void memory_of_a_device_without_is_not_supported(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1 };
	struct mock *m = mock_new(test);
	struct ib_pd *pd;

	m->ops.dealloc_mw = NULL;
	m->ops.unmap_fmr = NULL;
	m->ops.reg_user_mr = NULL;
	mock_start(test, m, "kvtm_a");
	pd = kvt_pd(test, m->ibdev);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, mw_error(pd, IB_MW_TYPE_1));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, PTR_ERR_OR_ZERO(ib_alloc_fmr(pd, 0, &attr)));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, PTR_ERR_OR_ZERO(ib_reg_user_mr(pd, PAGE_SIZE, 1, 0, 0)));
}

static void mw_failure_leaves_nothing(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_mw *mw;
	u32 id;

	mock_fail(m, MOCK_alloc_mw, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, mw_error(pd, IB_MW_TYPE_1));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
	mock_fail_none(m);
	mw = KVT_PTR(test, ib_alloc_mw(pd, IB_MW_TYPE_1));
	id = mw->res.id;
	mock_fail(m, MOCK_dealloc_mw, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_dealloc_mw(mw));
	kvt_expect_kept(test, m->ibdev, &mw->res, id);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_mw(mw));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

/* An MW and an FMR each keep their PD in use. */
static void pd_with_windows_or_fmrs_is_busy(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1 };
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_fmr *fmr;
	struct ib_mw *mw = KVT_PTR(test, ib_alloc_mw(pd, IB_MW_TYPE_2));

	KUNIT_EXPECT_EQ(test, -EBUSY, ib_dealloc_pd_user(pd, NULL));
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_mw(mw));
	fmr = KVT_PTR(test, ib_alloc_fmr(pd, 0, &attr));
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_dealloc_pd_user(pd, NULL));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_dealloc_pd));
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_fmr(fmr));
}

static struct ib_qp *make_qp(struct kunit *test, struct mock *m, struct ib_pd *pd)
{
	struct ib_cq *cq = kvt_cq(test, m->ibdev, 32, IB_POLL_WORKQUEUE);
	struct ib_qp_init_attr init;

	kvt_qp_init(&init, cq, cq);
	return kvt_qp(test, pd, &init);
}

static void bind_posts_the_next_key(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_qp *qp = make_qp(test, m, pd);
	struct ib_mw *mw = KVT_PTR(test, ib_alloc_mw(pd, IB_MW_TYPE_1));
	struct ib_mr *mr = kvt_mr(test, pd, 4);
	struct ib_mw_bind bind = {
		.wr_id = 77,
		.send_flags = IB_SEND_SIGNALED | IB_SEND_FENCE,
		.bind_info = { .mr = mr, .addr = 0x1234, .length = 99,
			       .mw_access_flags = IB_ACCESS_REMOTE_READ },
	};
	u32 key;

	mw->rkey |= 0xff;
	key = mw->rkey;
	KUNIT_EXPECT_EQ(test, 0, ib_bind_mw(qp, mw, &bind));
	KUNIT_EXPECT_EQ(test, key & ~0xff, mw->rkey);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, IB_WR_BIND_MW, m->bind.wr.opcode);
	KUNIT_EXPECT_EQ(test, 77, m->bind.wr.wr_id);
	KUNIT_EXPECT_EQ(test, bind.send_flags, m->bind.wr.send_flags);
	KUNIT_EXPECT_NULL(test, m->bind.wr.next);
	KUNIT_EXPECT_EQ(test, 0, m->bind.wr.num_sge);
	KUNIT_EXPECT_PTR_EQ(test, m->bind.mw, mw);
	KUNIT_EXPECT_EQ(test, mw->rkey, m->bind.rkey);
	KUNIT_EXPECT_MEMEQ(test, &m->bind.bind_info, &bind.bind_info, sizeof(bind.bind_info));
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_mw(mw));
}

static void bind_that_is_not_posted_keeps_the_key(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_qp *qp = make_qp(test, m, pd);
	struct ib_mw *mw = KVT_PTR(test, ib_alloc_mw(pd, IB_MW_TYPE_1));
	struct ib_mw_bind bind = {};
	u32 key = mw->rkey;

	mock_fail(m, MOCK_post_send, -ENOMEM);
	KUNIT_EXPECT_EQ(test, -ENOMEM, ib_bind_mw(qp, mw, &bind));
	KUNIT_EXPECT_EQ(test, key, mw->rkey);
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_mw(mw));
}

static void bind_call_is_for_windows_of_type_1(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct mock *other = mock_up(test, "kvtm_b");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_qp *qp = make_qp(test, m, pd);
	struct ib_mw *mw = KVT_PTR(test, ib_alloc_mw(pd, IB_MW_TYPE_2));
	struct ib_mw_bind bind = {};
	u32 key = mw->rkey;

	KUNIT_EXPECT_EQ(test, -EINVAL, ib_bind_mw(qp, mw, &bind));
	KUNIT_EXPECT_EQ(test, key, mw->rkey);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_mw(mw));

	mw = KVT_PTR(test, ib_alloc_mw(kvt_pd(test, other->ibdev), IB_MW_TYPE_1));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_bind_mw(qp, mw, &bind));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_mw(mw));
}

/* FMRs */

static void fmr_lives_and_is_counted(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 8, .max_maps = MOCK_MAX_MAPS,
				    .page_shift = PAGE_SHIFT };
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_fmr *fmr = KVT_PTR(test, ib_alloc_fmr(pd, ACCESS, &attr));
	struct mock_call call = {};
	u64 pages[2] = {};
	LIST_HEAD(list);
	u32 key;

	KUNIT_EXPECT_PTR_EQ(test, fmr->pd, pd);
	KUNIT_EXPECT_PTR_EQ(test, fmr->device, m->ibdev);
	KUNIT_EXPECT_STREQ(test, fmr->res.kern_name, pd->res.kern_name);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	KUNIT_EXPECT_TRUE(test, mock_last(m, MOCK_alloc_fmr, &call));
	KUNIT_EXPECT_EQ(test, ACCESS, call.arg);
	KUNIT_EXPECT_EQ(test, 8, call.arg2);

	key = fmr->rkey;
	KUNIT_EXPECT_EQ(test, 0, ib_map_phys_fmr(fmr, pages, 2, 0x5000));
	KUNIT_EXPECT_NE(test, key, fmr->rkey);
	KUNIT_EXPECT_TRUE(test, mock_last(m, MOCK_map_phys_fmr, &call));
	KUNIT_EXPECT_EQ(test, 2, call.arg);
	KUNIT_EXPECT_EQ(test, 0x5000, call.arg2);

	list_add(&fmr->list, &list);
	KUNIT_EXPECT_EQ(test, 0, ib_unmap_fmr(&list));
	KUNIT_EXPECT_TRUE(test, list_is_singular(&list));
	list_del(&fmr->list);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_fmr(fmr));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
	kvt_pd_put(test, pd);
	MOCK_EXPECT_IDLE(test, m);
}

struct fmr_row {
	const char *what;
	struct ib_fmr_attr attr;
	int access;
	int ret;
};

static const struct fmr_row fmr_rows[] = {
	{ "no pages", { 0, 1, PAGE_SHIFT }, 0, -EINVAL },
	{ "fewer than no pages", { -1, 1, PAGE_SHIFT }, 0, -EINVAL },
	{ "no mappings", { 1, 0, PAGE_SHIFT }, 0, -EINVAL },
	{ "most mappings", { 1, MOCK_MAX_MAPS, PAGE_SHIFT }, 0, 0 },
	{ "too many mappings", { 1, MOCK_MAX_MAPS + 1, PAGE_SHIFT }, 0,
	  -EINVAL },
	{ "remote write without local", { 1, 1, PAGE_SHIFT },
	  IB_ACCESS_REMOTE_WRITE, -EINVAL },
	{ "unknown access", { 1, 1, PAGE_SHIFT }, BIT(30), -EINVAL },
	{ "on demand", { 1, 1, PAGE_SHIFT }, IB_ACCESS_ON_DEMAND, -EINVAL },
};

static void fmr_beyond_the_limits_is_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	const struct fmr_row *row;
	struct ib_fmr_attr attr;
	struct ib_fmr *fmr;

	for (row = fmr_rows; row < fmr_rows + ARRAY_SIZE(fmr_rows); row++) {
		attr = row->attr;
		fmr = ib_alloc_fmr(pd, row->access, &attr);
		KUNIT_EXPECT_EQ_MSG(test, row->ret, PTR_ERR_OR_ZERO(fmr), "%s", row->what);
		if (!IS_ERR(fmr))
			KUNIT_EXPECT_EQ(test, 0, ib_dealloc_fmr(fmr));
	}
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));

	/* A device that reports no max_map_per_fmr has no limit. */
	m->ibdev->attrs.max_map_per_fmr = 0;
	attr.max_maps = INT_MAX;
	fmr = KVT_PTR(test, ib_alloc_fmr(pd, 0, &attr));
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_fmr(fmr));
}

static void fmr_failure_leaves_nothing(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1 };
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_fmr *fmr;
	u32 id;

	mock_fail(m, MOCK_alloc_fmr, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(ib_alloc_fmr(pd, 0, &attr)));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
	mock_fail_none(m);
	fmr = KVT_PTR(test, ib_alloc_fmr(pd, 0, &attr));
	id = fmr->res.id;
	mock_fail(m, MOCK_dealloc_fmr, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_dealloc_fmr(fmr));
	kvt_expect_kept(test, m->ibdev, &fmr->res, id);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_fmr(fmr));
}

static void unmap_takes_a_list_of_one_device(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1 };
	struct mock *m[2] = { mock_up(test, "kvtm_a"), mock_up(test, "kvtm_b") };
	struct ib_fmr *fmr[3];
	struct mock_call call = {};
	LIST_HEAD(list);
	int i;

	KUNIT_EXPECT_EQ(test, 0, ib_unmap_fmr(&list));
	for (i = 0; i < 3; i++) {
		fmr[i] = KVT_PTR(test, ib_alloc_fmr(kvt_pd(test, m[i / 2]->ibdev), 0, &attr));
		list_add_tail(&fmr[i]->list, &list);
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_unmap_fmr(&list));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m[0], MOCK_unmap_fmr));
	list_del(&fmr[2]->list);
	KUNIT_EXPECT_EQ(test, 0, ib_unmap_fmr(&list));
	KUNIT_EXPECT_TRUE(test, mock_last(m[0], MOCK_unmap_fmr, &call));
	KUNIT_EXPECT_EQ(test, 2, call.arg);
	mock_fail(m[0], MOCK_unmap_fmr, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_unmap_fmr(&list));
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, 0, ib_dealloc_fmr(fmr[i]));
}

struct map_ctx {
	struct ib_fmr *fmr;
	int ret;
};

static void map_in_hardirq(void *arg)
{
	struct map_ctx *ctx = arg;
	u64 page = 0;

	ctx->ret = ib_map_phys_fmr(ctx->fmr, &page, 1, 0);
}

static void fmr_is_mapped_in_interrupts(struct kunit *test)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1 };
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_fmr *fmr = KVT_PTR(test, ib_alloc_fmr(kvt_pd(test, m->ibdev), 0, &attr));
	struct map_ctx ctx = { .fmr = fmr, .ret = -EXFULL };

	kvt_run_in_hardirq(map_in_hardirq, &ctx);
	KUNIT_EXPECT_EQ(test, 0, ctx.ret);
	mock_fail(m, MOCK_map_phys_fmr, -EXFULL);
	kvt_run_in_hardirq(map_in_hardirq, &ctx);
	KUNIT_EXPECT_EQ(test, -EXFULL, ctx.ret);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_fmr(fmr));
}

static struct kunit_case core_memory_cases[] = {
	KUNIT_CASE(mw_is_set_up_and_counted),
	KUNIT_CASE(mw_that_the_device_lacks_is_refused),
	KUNIT_CASE(memory_of_a_device_without_is_not_supported),
	KUNIT_CASE(mw_failure_leaves_nothing),
	KUNIT_CASE(pd_with_windows_or_fmrs_is_busy),
	KUNIT_CASE(bind_posts_the_next_key),
	KUNIT_CASE(bind_that_is_not_posted_keeps_the_key),
	KUNIT_CASE(bind_call_is_for_windows_of_type_1),
	KUNIT_CASE(fmr_lives_and_is_counted),
	KUNIT_CASE(fmr_beyond_the_limits_is_refused),
	KUNIT_CASE(fmr_failure_leaves_nothing),
	KUNIT_CASE(unmap_takes_a_list_of_one_device),
	KUNIT_CASE(fmr_is_mapped_in_interrupts),
	{}
};
KVT_SUITE(core_memory);

MODULE_DESCRIPTION("KUnit: windows, FMRs, user memory, events of SRQs");
MODULE_LICENSE("GPL");
