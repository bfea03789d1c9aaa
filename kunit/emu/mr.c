// SPDX-License-Identifier: GPL-2.0-only
/*
 * Keys and address ranges of the software HCA: the same rules apply to memory regions of
 * any kind, at any I/O virtual address, and to memory windows, and each operation that
 * invalidates a key has the same effect. The name of a case that covers a row of the
 * conformance table starts with the row's id. The second end of the rig owns the memory.
 */
#include <linux/mman.h>
#include <linux/uaccess.h>

#include "emu/rig.h"
#include "emu/window.h"
#include "lib/objects.h"

#define REMOTE		(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
			 IB_ACCESS_REMOTE_ATOMIC)
#define BINDABLE	(IB_ACCESS_LOCAL_WRITE | REMOTE | IB_ACCESS_MW_BIND)
/* Offset in the owner's buffer and length of the memory that the key names. */
#define AT		(4 * PAGE_SIZE)
#define LEN		(2 * (u32)PAGE_SIZE)
/* Start address of a region that ends with the highest 64-bit address. */
#define TOP		(U64_MAX - LEN + 1)

enum kind_nr {
	KIND_FAST,
	KIND_FAST_AT_0,
	KIND_FAST_AT_TOP,
	KIND_FMR,
	KIND_FMR_AT_TOP,
	KIND_USER,
	KIND_WINDOW_1,
	KIND_WINDOW_2,
	KIND_WINDOW_2_AT_0,
};

/* Memory that a key names. */
struct named {
	struct rig *r;	/* the rig, whose second end owns the memory */
	u64 start;	/* address of the first byte, as the peer has to use it */
	u32 rkey;	/* the key */
	/* Address in the process; 0 if the memory is in the owner's buffer. */
	unsigned long user;
};

/* An address that the consumer does not choose: that of the memory itself. */
#define NOT_CHOSEN	1

/* What a key names. */
struct kind {
	const char *name;
	void (*make)(struct kunit *test, struct named *n, const struct kind *kind);
	u64 at;			/* address of the first byte */
	enum ib_mw_type type;	/* type of the window */
};

static void named_fast(struct kunit *test, struct named *n, const struct kind *kind)
{
	struct rig_end *e = &n->r->b;
	struct ib_wc wc;

	e->mr = rig_mr(test, e->pd);
	KUNIT_ASSERT_EQ(test, 1, rig_map(e, e->mr, AT, LEN));
	/* Consumers may choose any iova that keeps the offset in the page. */
	if (kind->at != NOT_CHOSEN)
		e->mr->iova = kind->at;
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(e, e->mr, 55, BINDABLE));
	RIG_EXPECT_WC(test, e->scq, &wc, 55, IB_WC_SUCCESS);
	n->start = e->mr->iova;
	n->rkey = e->mr->rkey;
}

static void named_fmr(struct kunit *test, struct named *n, const struct kind *kind)
{
	struct ib_fmr_attr attr = { 2, 1, PAGE_SHIFT };
	struct rig_end *e = &n->r->b;
	u64 pages[2] = { e->dma + AT, e->dma + AT + PAGE_SIZE };
	struct ib_fmr *fmr = KVT_OWN(test,
				     ib_alloc_fmr(e->pd, IB_ACCESS_LOCAL_WRITE | REMOTE, &attr),
				     kvt_end_fmr);

	KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(fmr, pages, 2, kind->at));
	n->start = kind->at;
	n->rkey = fmr->rkey;
}

static void named_user(struct kunit *test, struct named *n, const struct kind *kind)
{
	struct rig_end *e = &n->r->b;
	struct ib_mr *mr;

	n->user = kunit_vm_mmap(test, NULL, 0, LEN, PROT_READ | PROT_WRITE,
				MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, 0, n->user);
	mr = KVT_OWN(test,
		     ib_reg_user_mr(e->pd, n->user, LEN, n->user, IB_ACCESS_LOCAL_WRITE | REMOTE),
		     kvt_end_mr);
	n->start = n->user;
	n->rkey = mr->rkey;
}

/* Binds a window inside a region that extends beyond it on both sides. */
static void named_window(struct kunit *test, struct named *n, const struct kind *kind)
{
	int access = kind->at == NOT_CHOSEN ? REMOTE : REMOTE | IB_ZERO_BASED;
	struct rig_end *e = &n->r->b;
	struct ib_mw *mw;
	struct ib_wc wc;

	rig_register(test, e, BINDABLE);
	mw = win_new(test, e->pd, kind->type);
	KUNIT_ASSERT_EQ(test, 0, win_bind(e, mw, e->mr, AT, LEN, access, 56));
	RIG_EXPECT_WC(test, e->scq, &wc, 56, IB_WC_SUCCESS);
	n->start = access & IB_ZERO_BASED ? 0 : e->mr->iova + AT;
	n->rkey = mw->rkey;
}

static const struct kind kinds[] = {
	[KIND_FAST] = { "fast region", named_fast, NOT_CHOSEN },
	[KIND_FAST_AT_0] = { "fast region at 0", named_fast, 0 },
	[KIND_FAST_AT_TOP] = { "fast region at the top", named_fast, TOP },
	[KIND_FMR] = { "FMR", named_fmr, 0x70000 },
	[KIND_FMR_AT_TOP] = { "FMR at the top", named_fmr, TOP },
	[KIND_USER] = { "user memory", named_user },
	[KIND_WINDOW_1] = { "window of type 1", named_window, NOT_CHOSEN, IB_MW_TYPE_1 },
	[KIND_WINDOW_2] = { "window of type 2", named_window, NOT_CHOSEN, IB_MW_TYPE_2 },
	[KIND_WINDOW_2_AT_0] = { "window of type 2 at 0", named_window, 0, IB_MW_TYPE_2 },
};

KUNIT_ARRAY_PARAM_DESC(kind, kinds, name);

static struct named *named_up(struct kunit *test, const struct kind *kind)
{
	struct named *n = kvt_zalloc(test, sizeof(*n));

	n->r = rig_new(test, "emu0", "emu1");
	n->r->access = IB_ACCESS_LOCAL_WRITE | REMOTE;
	rig_start(test, n->r);
	kind->make(test, n, kind);
	return n;
}

/* Returns the bytes that the key names; user memory is copied to the owner's buffer. */
static u8 *named_bytes(struct kunit *test, struct named *n)
{
	u8 *at = n->r->b.buf + AT;

	if (n->user)
		KUNIT_ASSERT_EQ(test, 0, copy_from_user(at, (void __user *)n->user, LEN));
	return at;
}

static void expect_write(struct kunit *test, struct named *n, u64 offset, u32 len,
			 u32 rkey, enum ib_wc_status status)
{
	struct rig *r = n->r;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 7, 0, len,
					  n->start + offset, rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 7, status);
}

/* Parts of the memory are written and read, up to the last byte. */
static void m5_every_byte_is_reached(struct kunit *test)
{
	struct named *n = named_up(test, test->param_value);
	static const u32 parts[][2] = {
		{ 0, LEN }, { 0, 1 }, { LEN - 1, 1 }, { PAGE_SIZE - 3, 7 },
		{ 1, LEN - 1 },
	};
	struct rig *r = n->r;
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		u32 at = parts[i][0], len = parts[i][1];

		rig_fill(r->a.buf, len, i);
		expect_write(test, n, at, len, n->rkey, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_filled(named_bytes(test, n) + at, len, i));
		memset(r->a.buf, 0, len);
		KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 8, 0,
						  len, n->start + at, n->rkey));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 8, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->a.buf, len, i));
	}
	/* At the end of the memory, a write of zero bytes is allowed. */
	expect_write(test, n, LEN, 0, n->rkey, IB_WC_SUCCESS);
}

static const struct outside {
	u64 offset;
	u32 len;
} outsides[] = {
	{ -1ULL, 1 }, { -1ULL, 2 }, { LEN - 1, 2 }, { LEN, 1 }, { 0, LEN + 1 },
	{ 1, LEN }, { -8ULL, LEN }, { -(u64)PAGE_SIZE, PAGE_SIZE },
	{ 1ULL << 32, 8 }, { 1ULL << 63, 8 }, { -(u64)LEN, LEN },
};

static void m5_nothing_outside_is_reached(struct kunit *test)
{
	struct named *n = named_up(test, test->param_value);
	static const enum ib_wr_opcode ops[] = {
		IB_WR_RDMA_WRITE, IB_WR_RDMA_READ, IB_WR_RDMA_WRITE_WITH_IMM,
	};
	struct rig *r = n->r;
	struct ib_wc wc;
	int i;

	memset(r->a.buf, 0xaa, RIG_BUF);
	memset(r->b.buf, 0xee, RIG_BUF);
	for (i = 0; i < ARRAY_SIZE(outsides); i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 3, 0, 0));
		KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, ops[i % 3], 7, 0,
						  outsides[i].len, n->start +
						  outsides[i].offset, n->rkey));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 7, IB_WC_REM_ACCESS_ERR);
		/*
		 * The receive that waits for immediate data completes with the reason why
		 * none comes.
		 */
		RIG_EXPECT_WC(test, r->b.rcq, &wc, 3, ops[i % 3] == IB_WR_RDMA_WRITE_WITH_IMM ?
			      IB_WC_LOC_ACCESS_ERR : IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf, RIG_BUF, 0xaa));
		KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
		rig_reconnect(test, n->r);
	}
}

static void m2_other_bytes_of_the_key_are_refused(struct kunit *test)
{
	struct named *n = named_up(test, test->param_value);
	static const u32 flips[] = { 0x01, 0x80, 0xff };
	int i;

	memset(n->r->b.buf, 0xee, RIG_BUF);
	for (i = 0; i < ARRAY_SIZE(flips); i++) {
		expect_write(test, n, 0, 8, n->rkey ^ flips[i], IB_WC_REM_ACCESS_ERR);
		rig_reconnect(test, n->r);
	}
	KUNIT_EXPECT_TRUE(test, rig_all(n->r->b.buf, RIG_BUF, 0xee));
	expect_write(test, n, 0, 8, n->rkey, IB_WC_SUCCESS);
}

/* Operations that invalidate a key, and what the key names. */
struct inv {
	const char *name;
	enum kind_nr kind;
	enum ib_wr_opcode op;
};

static const struct inv invs[] = {
	{ "region by LOCAL_INV", KIND_FAST, IB_WR_LOCAL_INV },
	{ "window by LOCAL_INV", KIND_WINDOW_2, IB_WR_LOCAL_INV },
	{ "region by SEND_WITH_INV", KIND_FAST, IB_WR_SEND_WITH_INV },
	{ "window by SEND_WITH_INV", KIND_WINDOW_2, IB_WR_SEND_WITH_INV },
	{ "region by READ_WITH_INV", KIND_FAST, IB_WR_RDMA_READ_WITH_INV },
	{ "window by READ_WITH_INV", KIND_WINDOW_2, IB_WR_RDMA_READ_WITH_INV },
};

KUNIT_ARRAY_PARAM_DESC(inv, invs, name);

/*
 * The peer posts a SEND_WITH_INV; the owner posts the others, as a READ_WITH_INV invalidates
 * a key of the reader's.
 */
static void invalidate(struct kunit *test, struct named *n, enum ib_wr_opcode op,
		       u32 key, enum ib_wc_status status)
{
	struct rig_end *by = op == IB_WR_SEND_WITH_INV ? &n->r->a : &n->r->b;
	struct ib_sge sge = rig_sge(by, 0, 100);
	struct ib_rdma_wr wr = {};
	struct ib_wc wc;

	rig_send_wr(&wr.wr, 9, &sge, op == IB_WR_RDMA_READ_WITH_INV);
	wr.wr.opcode = op;
	wr.wr.ex.invalidate_rkey = key;
	if (op == IB_WR_RDMA_READ_WITH_INV) {
		wr.remote_addr = n->r->a.mr->iova;
		wr.rkey = n->r->a.mr->rkey;
	}
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(by->qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, by->scq, &wc, 9, status);
}

static void m1_key_is_of_no_use_any_more(struct kunit *test)
{
	const struct inv *inv = test->param_value;
	struct named *n = named_up(test, &kinds[inv->kind]);
	struct rig *r = n->r;
	struct ib_wc wc;

	rig_register(test, &r->a, BINDABLE);
	rig_fill(r->a.buf, 100, 3);
	expect_write(test, n, 0, 8, n->rkey, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 0));
	invalidate(test, n, inv->op, n->rkey, IB_WC_SUCCESS);
	if (inv->op == IB_WR_SEND_WITH_INV) {
		RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_INVALIDATE);
		KUNIT_EXPECT_EQ(test, n->rkey, wc.ex.invalidate_rkey);
	}
	if (inv->op == IB_WR_RDMA_READ_WITH_INV)
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, 100, 3));
	memset(r->b.buf, 0xee, RIG_BUF);
	expect_write(test, n, 0, 8, n->rkey, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
}

/* Keys that these operations cannot invalidate. */
static const struct inv bad_invs[] = {
	{ "FMR by LOCAL_INV", KIND_FMR, IB_WR_LOCAL_INV },
	{ "user memory by LOCAL_INV", KIND_USER, IB_WR_LOCAL_INV },
	{ "window 1 by LOCAL_INV", KIND_WINDOW_1, IB_WR_LOCAL_INV },
	{ "FMR by SEND_WITH_INV", KIND_FMR, IB_WR_SEND_WITH_INV },
	{ "user memory by SEND_WITH_INV", KIND_USER, IB_WR_SEND_WITH_INV },
	{ "window 1 by SEND_WITH_INV", KIND_WINDOW_1, IB_WR_SEND_WITH_INV },
	{ "FMR by READ_WITH_INV", KIND_FMR, IB_WR_RDMA_READ_WITH_INV },
	{ "window 1 by READ_WITH_INV", KIND_WINDOW_1, IB_WR_RDMA_READ_WITH_INV },
};

KUNIT_ARRAY_PARAM_DESC(bad_inv, bad_invs, name);

static void m3_what_cannot_be_invalidated_stays(struct kunit *test)
{
	const struct inv *inv = test->param_value;
	struct named *n = named_up(test, &kinds[inv->kind]);
	bool remote = inv->op == IB_WR_SEND_WITH_INV;
	struct rig *r = n->r;
	struct ib_wc wc;

	rig_register(test, &r->a, BINDABLE);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 0));
	invalidate(test, n, inv->op, n->rkey, remote ? IB_WC_RETRY_EXC_ERR : IB_WC_MW_BIND_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
	/* The message of a peer uses up the receive that is posted, which else is flushed. */
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, remote ? IB_WC_MW_BIND_ERR : IB_WC_WR_FLUSH_ERR);
	rig_reconnect(test, n->r);
	expect_write(test, n, 0, 8, n->rkey, IB_WC_SUCCESS);
}

static struct kunit_case emu_conform_mr_cases[] = {
	KUNIT_CASE_PARAM(m5_every_byte_is_reached, kind_gen_params),
	KUNIT_CASE_PARAM(m5_nothing_outside_is_reached, kind_gen_params),
	KUNIT_CASE_PARAM(m2_other_bytes_of_the_key_are_refused, kind_gen_params),
	KUNIT_CASE_PARAM(m1_key_is_of_no_use_any_more, inv_gen_params),
	KUNIT_CASE_PARAM(m3_what_cannot_be_invalidated_stays, bad_inv_gen_params),
	{}
};
KVT_SUITE(emu_conform_mr);
