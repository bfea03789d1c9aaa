// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory windows, MRs for fast registration, and registration in the software HCA: who
 * may access what, from when, and until when. Cases for a row of the conformance table
 * start with the name of the row. The second end owns the memory.
 */
#include <linux/rcupdate.h>
#include <linux/scatterlist.h>

#include "emu/rig.h"
#include "emu/window.h"

#define REMOTE		(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC)
#define BINDABLE	(IB_ACCESS_LOCAL_WRITE | REMOTE | IB_ACCESS_MW_BIND)
/* Offset and length of the window in most cases. */
#define WIN_AT		5000
#define WIN_LEN		3000

KUNIT_ARRAY_PARAM_DESC(pair, rig_pairs, name);

static const enum ib_mw_type mw_types[] = { IB_MW_TYPE_1, IB_MW_TYPE_2 };

KVT_NUMBER_PARAM(mw_type, mw_types, "type %d");

/* Both ends on one device; windows can be bound to the second end's buffer. */
static struct rig *rig_bindable(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu0");

	rig_register(test, &r->b, BINDABLE);
	memset(r->b.buf, 0xee, RIG_BUF);
	rig_fill(r->a.buf, RIG_BUF, 1);
	return r;
}

/* Another connection with the same PDs, CQs and buffers. */
static struct rig *rig_another(struct kunit *test, struct rig *r)
{
	struct rig *other = kvt_zalloc(test, sizeof(*other));

	*other = *r;
	rig_start(test, other);
	return other;
}

static struct ib_mw *window(struct kunit *test, struct rig_end *e, enum ib_mw_type type, int access)
{
	struct ib_mw *mw = win_new(test, e->pd, type);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, win_bind(e, mw, e->mr, WIN_AT, WIN_LEN, access, 0x4d57));
	RIG_EXPECT_WC(test, e->scq, &wc, 0x4d57, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_BIND_MW, wc.opcode);
	return mw;
}

static void expect_write(struct kunit *test, struct rig *r, size_t at, u32 len,
			 u32 rkey, enum ib_wc_status status)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, at, at, len,
					  r->b.mr->iova + at, rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, at, status);
	if (status == IB_WC_SUCCESS)
		KUNIT_EXPECT_MEMEQ(test, r->b.buf + at, r->a.buf + at, len);
	else
		KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + at, len, 0xee));
}

static void expect_inv(struct kunit *test, struct rig_end *e, u32 key, enum ib_wc_status status)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_inv(e, IB_WR_LOCAL_INV, 0x494e56, key));
	RIG_EXPECT_WC(test, e->scq, &wc, 0x494e56, status);
}

static void window_opens_a_part_of_a_region(struct kunit *test)
{
	enum ib_mw_type type = *(const enum ib_mw_type *)test->param_value;
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, type, REMOTE);
	struct ib_wc wc;

	expect_write(test, r, WIN_AT, WIN_LEN, mw->rkey, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, WIN_AT, 0xee));
	memset(r->a.buf, 0, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 2, 0, 700,
					  r->b.mr->iova + WIN_AT + 11,
					  mw->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, r->a.buf, r->b.buf + WIN_AT + 11, 700);
}

static void window_gives_only_the_access_it_was_bound_with(struct kunit *test)
{
	enum ib_mw_type type = *(const enum ib_mw_type *)test->param_value;
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, type, IB_ACCESS_REMOTE_READ);

	expect_write(test, r, WIN_AT, 8, mw->rkey, IB_WC_REM_ACCESS_ERR);
}

static void window_is_not_for_local_use(struct kunit *test)
{
	enum ib_mw_type type = *(const enum ib_mw_type *)test->param_value;
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, type, REMOTE);
	struct ib_sge sge = { r->b.mr->iova + WIN_AT, 8, mw->rkey };
	struct ib_send_wr wr;
	struct ib_wc wc;

	rig_send_wr(&wr, 1, &sge, 1);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->b.qp, &wr, NULL));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
}

static void unbound_window_gives_nothing(struct kunit *test)
{
	enum ib_mw_type type = *(const enum ib_mw_type *)test->param_value;
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = win_new(test, r->b.pd, type);

	expect_write(test, r, WIN_AT, 8, mw->rkey, IB_WC_REM_ACCESS_ERR);
}

static void type_1_is_bound_again_under_a_new_key(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_1, REMOTE);
	u32 old = mw->rkey;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, win_bind(&r->b, mw, r->b.mr, 100, 50, REMOTE, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, old, mw->rkey);
	expect_write(test, r, 100, 50, mw->rkey, IB_WC_SUCCESS);
	expect_write(test, r, WIN_AT, 8, old, IB_WC_REM_ACCESS_ERR);
}

static void type_1_is_unbound_by_length_0(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_1, REMOTE);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, win_bind(&r->b, mw, NULL, 0, 0, 0, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
	expect_inv(test, &r->b, r->b.mr->rkey, IB_WC_SUCCESS);
	expect_write(test, r, WIN_AT, 8, mw->rkey, IB_WC_REM_ACCESS_ERR);
}

static void failed_binding_leaves_the_one_before(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct rig *other = rig_another(test, r);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_1, REMOTE);
	u32 old = mw->rkey;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, win_bind(&other->b, mw, r->b.mr, RIG_BUF - 9, 10, REMOTE, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_MW_BIND_ERR);
	expect_write(test, r, WIN_AT, 8, old, IB_WC_SUCCESS);
}

static void type_2_is_bound_when_it_is_free(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_2, REMOTE);
	u32 old = mw->rkey;
	struct ib_wc wc;

	expect_inv(test, &r->b, mw->rkey, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, win_bind(&r->b, mw, r->b.mr, 100, 50, REMOTE, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
	expect_write(test, r, 100, 50, mw->rkey, IB_WC_SUCCESS);
	expect_write(test, r, WIN_AT, 8, old, IB_WC_REM_ACCESS_ERR);
}

static void type_2_is_not_bound_twice(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct rig *other = rig_another(test, r);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_2, REMOTE);
	u32 key = mw->rkey;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, win_bind(&other->b, mw, r->b.mr, 200, 50, REMOTE, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_MW_BIND_ERR);
	expect_write(test, r, WIN_AT, 8, key, IB_WC_SUCCESS);
}

static void type_2_may_count_from_0(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_2, REMOTE | IB_ZERO_BASED);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 1, 0, WIN_LEN - 5, 5, mw->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, WIN_AT + 5, 0xee));
	KUNIT_EXPECT_MEMEQ(test, r->b.buf + WIN_AT + 5, r->a.buf, WIN_LEN - 5);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + WIN_AT + WIN_LEN,
					RIG_BUF - WIN_AT - WIN_LEN, 0xee));
	memset(r->b.buf, 0xee, RIG_BUF);
	expect_write(test, r, WIN_AT, 8, mw->rkey, IB_WC_REM_ACCESS_ERR);
}

static void type_1_cannot_count_from_0(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = win_new(test, r->b.pd, IB_MW_TYPE_1);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, win_bind(&r->b, mw, r->b.mr, 0, 8, REMOTE | IB_ZERO_BASED, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_MW_BIND_ERR);
}

static void send_with_inv_frees_type_2(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_2, REMOTE);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_inv(&r->a, IB_WR_SEND_WITH_INV, 1, mw->rkey));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, mw->rkey, wc.ex.invalidate_rkey);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	/* Nothing is bound to the region any more. */
	expect_inv(test, &r->b, r->b.mr->rkey, IB_WC_SUCCESS);
	expect_write(test, r, WIN_AT, 8, mw->rkey, IB_WC_REM_ACCESS_ERR);
}

static void freeing_a_window_ends_its_binding(struct kunit *test)
{
	enum ib_mw_type type = *(const enum ib_mw_type *)test->param_value;
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, type, REMOTE);
	u32 key = mw->rkey;

	win_free(test, mw);
	expect_inv(test, &r->b, r->b.mr->rkey, IB_WC_SUCCESS);
	expect_write(test, r, WIN_AT, 8, key, IB_WC_REM_ACCESS_ERR);
}

/* As ib_uverbs does it. Returns whether a grace period passed while the driver freed the window. */
static bool free_window_of_process(struct kunit *test, struct ib_pd *pd, struct ib_uobject *owner)
{
	struct ib_mw *mw = rdma_zalloc_drv_obj(pd->device, ib_mw);
	struct rcu_gp_oldstate before;
	bool waited;

	KUNIT_ASSERT_NOT_NULL(test, mw);
	mw->device = pd->device;
	mw->pd = pd;
	mw->type = IB_MW_TYPE_2;
	mw->uobject = owner;
	KUNIT_EXPECT_EQ(test, 0, pd->device->ops.alloc_mw(mw, NULL));
	get_state_synchronize_rcu_full(&before);
	KUNIT_EXPECT_EQ(test, 0, pd->device->ops.dealloc_mw(mw));
	waited = poll_state_synchronize_rcu_full(&before);
	kfree(mw);
	return waited;
}

/* One may pass by chance. */
static void windows_of_a_process_go_without_waiting(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	int i, waited = 0;

	for (i = 0; i < 64; i++)
		waited += free_window_of_process(test, r->b.pd, kvt_zalloc(test, 64));
	KUNIT_EXPECT_LT(test, waited, 32);
}

static void m2_stale_key_is_refused(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_2, REMOTE);

	expect_write(test, r, WIN_AT, 8, mw->rkey - 1, IB_WC_REM_ACCESS_ERR);
}

/* Keys that LOCAL_INV must refuse. */
enum bad_inv {
	INV_UNKNOWN,
	INV_STALE,
	INV_OTHER_PD,
	INV_TYPE_1,
	INV_OTHER_QP,
	NR_BAD_INVS,
};

static void m3_local_inv_of_what_cannot_be(struct kunit *test)
{
	struct rig *r;
	int bad;

	for (bad = 0; bad < NR_BAD_INVS; bad++) {
		u32 key = 0xabcdef00;

		r = rig_bindable(test);
		if (bad == INV_STALE)
			key = ib_inc_rkey(r->b.mr->rkey);
		else if (bad == INV_OTHER_PD)
			key = rig_mr(test, r->a.pd)->rkey;
		else if (bad == INV_TYPE_1)
			key = window(test, &r->b, IB_MW_TYPE_1, REMOTE)->rkey;
		else if (bad == INV_OTHER_QP)
			key = window(test, &rig_another(test, r)->b, IB_MW_TYPE_2, REMOTE)->rkey;
		expect_inv(test, &r->b, key, IB_WC_MW_BIND_ERR);
		KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
		KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
	}
}

static void m4_remote_write_needs_local_write(struct kunit *test)
{
	static const int rights[] = {
		IB_ACCESS_REMOTE_WRITE, IB_ACCESS_REMOTE_ATOMIC,
	};
	struct ib_fmr_attr attr = { 1, 1, PAGE_SHIFT };
	struct rig *r = rig_up(test, "emu0", "emu0");
	struct ib_mr *mr = rig_mr(test, r->b.pd);
	struct ib_fmr *fmr;
	int i;

	KUNIT_ASSERT_EQ(test, 1, rig_map(&r->b, mr, 0, 100));
	for (i = 0; i < ARRAY_SIZE(rights); i++) {
		KUNIT_EXPECT_EQ(test, -EINVAL, rig_post_reg(&r->b, mr, 1, rights[i]));
		fmr = ib_alloc_fmr(r->b.pd, rights[i], &attr);
		KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(fmr));
	}
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.scq));
}

/* REG_MR of a range that exceeds the mapped pages, or wraps around. */
static void m5_registration_of_more_than_the_pages(struct kunit *test)
{
	struct rig *r;
	struct ib_mr *mr;
	struct ib_wc wc;
	int i;

	for (i = 0; i < 3; i++) {
		r = rig_up(test, "emu0", "emu0");
		mr = rig_mr(test, r->b.pd);
		KUNIT_ASSERT_EQ(test, 1, rig_map(&r->b, mr, 0, 2 * PAGE_SIZE));
		if (i == 0)
			mr->length++;
		else if (i == 1)
			mr->iova++;
		else
			mr->iova = U64_MAX & PAGE_MASK;
		KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, mr, 1, BINDABLE));
		RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_MW_BIND_ERR);
	}
}

static void m6_region_with_windows_stays(struct kunit *test)
{
	enum ib_mw_type type = *(const enum ib_mw_type *)test->param_value;
	struct rig *r = rig_bindable(test);
	struct rig *other = rig_another(test, r);
	struct ib_mw *mw = window(test, &r->b, type, REMOTE);
	struct ib_mw *more = window(test, &r->b, type, REMOTE);

	KUNIT_EXPECT_EQ(test, -EINVAL, ib_dereg_mr(r->b.mr));
	expect_inv(test, &other->b, r->b.mr->rkey, IB_WC_MW_BIND_ERR);
	win_free(test, mw);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_dereg_mr(r->b.mr));
	expect_write(test, r, WIN_AT, 8, more->rkey, IB_WC_SUCCESS);
	win_free(test, more);
	expect_inv(test, &r->b, r->b.mr->rkey, IB_WC_SUCCESS);
}

/* Bindings that IBTA vol. 1, C10-72 to C10-75 forbid. */
static const struct bad_bind {
	const char *name;
	int access;		/* of the region; 0 if it is not registered */
	bool window_pd;		/* the window is of another PD */
	bool region_pd;		/* the region is */
	u64 at, len;		/* what is bound of it */
} bad_binds[] = {
	{ "window of another PD", BINDABLE, .window_pd = true, .len = 8 },
	{ "region of another PD", BINDABLE, .region_pd = true, .len = 8 },
	{ "no right to bind", BINDABLE & ~IB_ACCESS_MW_BIND, .len = 8 },
	{ "no local write", IB_ACCESS_REMOTE_READ | IB_ACCESS_MW_BIND, .len = 8 },
	{ "region not valid", .len = 8 },
	{ "before the region", BINDABLE, .at = -1, .len = 8 },
	{ "behind the region", BINDABLE, .at = RIG_BUF - 7, .len = 8 },
	{ "address wraps", BINDABLE, .at = 8, .len = U64_MAX },
	{ "longer than the region", BINDABLE, .len = RIG_BUF + 1 },
};

KUNIT_ARRAY_PARAM_DESC(bad_bind, bad_binds, name);

static void m7_illegal_binding(struct kunit *test, enum ib_mw_type type)
{
	const struct bad_bind *bad = test->param_value;
	struct rig *r = rig_up(test, "emu0", "emu0");
	struct rig_end *owner = bad->region_pd ? &r->a : &r->b;
	struct ib_mw *mw = win_new(test, bad->window_pd ? r->a.pd : r->b.pd, type);
	struct ib_wc wc;

	if (bad->access)
		rig_register(test, owner, bad->access);
	else
		owner->mr = rig_mr(test, owner->pd);
	KUNIT_ASSERT_EQ(test, 0, win_bind(&r->b, mw, owner->mr, bad->at, bad->len,
					  IB_ACCESS_REMOTE_WRITE, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_MW_BIND_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
}

static void m7_illegal_binding_of_type_1(struct kunit *test)
{
	m7_illegal_binding(test, IB_MW_TYPE_1);
}

static void m7_illegal_binding_of_type_2(struct kunit *test)
{
	m7_illegal_binding(test, IB_MW_TYPE_2);
}

static void m7_type_2_cannot_be_bound_to_nothing(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct ib_mw *mw = win_new(test, r->b.pd, IB_MW_TYPE_2);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, win_bind(&r->b, mw, r->b.mr, 0, 0, REMOTE, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_MW_BIND_ERR);
}

static void m7_windows_without_local_write_can_be_read(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu0");
	struct ib_mw *mw;
	struct ib_wc wc;

	rig_register(test, &r->b, IB_ACCESS_MW_BIND);
	mw = window(test, &r->b, IB_MW_TYPE_2, IB_ACCESS_REMOTE_READ);
	rig_fill(r->b.buf, RIG_BUF, 3);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 1, 0, 8,
					  r->b.mr->iova + WIN_AT, mw->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, r->a.buf, r->b.buf + WIN_AT, 8);
}

static void m8_outside_the_window_inside_the_region(struct kunit *test)
{
	enum ib_mw_type type = *(const enum ib_mw_type *)test->param_value;
	static const size_t at[] = {
		WIN_AT - 1, WIN_AT + WIN_LEN - 7, WIN_AT + WIN_LEN, 0,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		struct rig *r = rig_bindable(test);
		struct ib_mw *mw = window(test, &r->b, type, REMOTE);

		expect_write(test, r, at[i], 8, mw->rkey, IB_WC_REM_ACCESS_ERR);
		KUNIT_ASSERT_TRUE(test, kvt_wait(&r->b.got_event));
		KUNIT_EXPECT_EQ(test, IB_EVENT_QP_ACCESS_ERR, r->b.event);
	}
}

static void m9_type_2_is_for_one_queue_pair(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct rig *other = rig_another(test, r);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_2, REMOTE);

	expect_write(test, other, WIN_AT, 8, mw->rkey, IB_WC_REM_ACCESS_ERR);
	expect_write(test, r, WIN_AT, 8, mw->rkey, IB_WC_SUCCESS);
}

static void m9_type_1_is_for_all_of_the_pd(struct kunit *test)
{
	struct rig *r = rig_bindable(test);
	struct rig *other = rig_another(test, r);
	struct ib_mw *mw = window(test, &r->b, IB_MW_TYPE_1, REMOTE);

	expect_write(test, other, WIN_AT, 8, mw->rkey, IB_WC_SUCCESS);
	expect_write(test, r, WIN_AT + 8, 8, mw->rkey, IB_WC_SUCCESS);
}

/* The page size may exceed the machine's memory, as long as the region does not. */
static void large_pages_translate(struct kunit *test)
{
	static const u32 sizes[] = { SZ_64K, SZ_4M, SZ_1G, SZ_2G };
	struct rig *r = rig_of_param(test);
	struct scatterlist sg;
	struct ib_wc wc;
	int i;

	sg_init_one(&sg, r->b.buf, RIG_BUF);
	sg_dma_address(&sg) = r->b.dma + 77;
	sg_dma_len(&sg) = RIG_BUF - 77;
	rig_fill(r->a.buf, RIG_BUF, 5);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		r->b.mr = rig_mr(test, r->b.pd);
		memset(r->b.buf, 0xee, RIG_BUF);
		KUNIT_ASSERT_EQ(test, 1, ib_map_mr_sg(r->b.mr, &sg, 1, NULL, sizes[i]));
		KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, r->b.mr, 1, BINDABLE));
		RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
		KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 2, 0,
						  RIG_BUF - 77, r->b.mr->iova,
						  r->b.mr->rkey));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, 77, 0xee));
		KUNIT_EXPECT_MEMEQ(test, r->b.buf + 77, r->a.buf, RIG_BUF - 77);
	}
}

static void memory_that_is_not_ram_is_refused(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct scatterlist sg;
	struct ib_wc wc;

	r->b.mr = rig_mr(test, r->b.pd);
	sg_init_one(&sg, r->b.buf, RIG_BUF);
	/* Beyond all memory; the lower bits are the address of the local APIC's page on x86. */
	sg_dma_address(&sg) = BIT_ULL(50) | 0xfee00000;
	sg_dma_len(&sg) = PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, 1, ib_map_mr_sg(r->b.mr, &sg, 1, NULL, PAGE_SIZE));
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, r->b.mr, 1, BINDABLE));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 2, 0, 8,
					  r->b.mr->iova, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_REM_ACCESS_ERR);
}

/* As rdma_rw does: the list is made first, and the region invalidated when it is posted. */
static void list_is_made_while_the_region_is_registered(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu0");
	struct ib_wc wc;
	u64 before;

	rig_fill(r->a.buf, RIG_BUF, 5);
	memset(r->b.buf, 0xee, RIG_BUF);
	r->b.mr = rig_mr(test, r->b.pd);
	KUNIT_ASSERT_EQ(test, 1, rig_map(&r->b, r->b.mr, 0, PAGE_SIZE));
	before = r->b.mr->iova;
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, r->b.mr, 1, BINDABLE));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);

	KUNIT_ASSERT_EQ(test, 1, rig_map(&r->b, r->b.mr, 2 * PAGE_SIZE, PAGE_SIZE));
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 2, 0, 64, before,
					  r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, r->b.buf, r->a.buf, 64);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + 2 * PAGE_SIZE, PAGE_SIZE, 0xee));

	KUNIT_ASSERT_EQ(test, 0, rig_inv(&r->b, IB_WR_LOCAL_INV, 3, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 3, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, r->b.mr, 4, BINDABLE));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 4, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 5, 64, 64,
					  r->b.mr->iova, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 5, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, r->b.buf + 2 * PAGE_SIZE, r->a.buf + 64, 64);
}

static void integrity_is_refused(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu0");
	struct ib_qp_init_attr init = r->init;
	struct ib_mr *mr = ib_alloc_mr_integrity(r->a.pd, 4, 4);

	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, PTR_ERR_OR_ZERO(mr));
	init.send_cq = r->a.scq;
	init.recv_cq = r->a.rcq;
	init.create_flags = IB_QP_CREATE_INTEGRITY_EN;
	KUNIT_EXPECT_TRUE(test, IS_ERR(ib_create_qp(r->a.pd, &init)));
}

static struct kunit_case emu_region_cases[] = {
	KUNIT_CASE_PARAM(window_opens_a_part_of_a_region, mw_type_gen_params),
	KUNIT_CASE_PARAM(window_gives_only_the_access_it_was_bound_with, mw_type_gen_params),
	KUNIT_CASE_PARAM(window_is_not_for_local_use, mw_type_gen_params),
	KUNIT_CASE_PARAM(unbound_window_gives_nothing, mw_type_gen_params),
	KUNIT_CASE(type_1_is_bound_again_under_a_new_key),
	KUNIT_CASE(type_1_is_unbound_by_length_0),
	KUNIT_CASE(failed_binding_leaves_the_one_before),
	KUNIT_CASE(type_2_is_bound_when_it_is_free),
	KUNIT_CASE(type_2_is_not_bound_twice),
	KUNIT_CASE(type_2_may_count_from_0),
	KUNIT_CASE(type_1_cannot_count_from_0),
	KUNIT_CASE(send_with_inv_frees_type_2),
	KUNIT_CASE_PARAM(freeing_a_window_ends_its_binding, mw_type_gen_params),
	KUNIT_CASE(windows_of_a_process_go_without_waiting),
	KUNIT_CASE(m2_stale_key_is_refused),
	KUNIT_CASE(m3_local_inv_of_what_cannot_be),
	KUNIT_CASE(m4_remote_write_needs_local_write),
	KUNIT_CASE(m5_registration_of_more_than_the_pages),
	KUNIT_CASE_PARAM(m6_region_with_windows_stays, mw_type_gen_params),
	KUNIT_CASE_PARAM(m7_illegal_binding_of_type_1, bad_bind_gen_params),
	KUNIT_CASE_PARAM(m7_illegal_binding_of_type_2, bad_bind_gen_params),
	KUNIT_CASE(m7_type_2_cannot_be_bound_to_nothing),
	KUNIT_CASE(m7_windows_without_local_write_can_be_read),
	KUNIT_CASE_PARAM(m8_outside_the_window_inside_the_region, mw_type_gen_params),
	KUNIT_CASE(m9_type_2_is_for_one_queue_pair),
	KUNIT_CASE(m9_type_1_is_for_all_of_the_pd),
	KUNIT_CASE_PARAM(large_pages_translate, pair_gen_params),
	KUNIT_CASE_PARAM(memory_that_is_not_ram_is_refused, pair_gen_params),
	KUNIT_CASE(list_is_made_while_the_region_is_registered),
	KUNIT_CASE(integrity_is_refused),
	{}
};
KVT_SUITE(emu_region);

MODULE_DESCRIPTION("kverbs KUnit: memory regions of the software HCA");
MODULE_LICENSE("GPL");
