// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of the software HCA: FMRs, regions of user memory, and keys that are invalidated
 * while an access is under way. The second end of the rig owns the memory.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <kverbs/delay.h>

#include "emu/rig.h"
#include "emu/window.h"
#include "lib/objects.h"

#define REMOTE		(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
#define BINDABLE	(IB_ACCESS_LOCAL_WRITE | REMOTE | IB_ACCESS_MW_BIND)
#define MAX_BLOCKS	(SZ_2G / RIG_BLOCK)
#define LONG_BLOCKS	32
#define RACES		200

struct fmr_map {
	struct ib_fmr *fmr;
	u64 page;
	int ret;
};

static struct ib_fmr *fmr_new(struct kunit *test, struct ib_pd *pd,
			      int max_pages, int max_maps, u8 page_shift)
{
	struct ib_fmr_attr attr = { max_pages, max_maps, page_shift };

	return KVT_OWN(test, ib_alloc_fmr(pd, BINDABLE, &attr), kvt_end_fmr);
}

static int fmr_unmap(struct ib_fmr *fmr)
{
	LIST_HEAD(list);
	int ret;

	list_add(&fmr->list, &list);
	ret = ib_unmap_fmr(&list);
	list_del_init(&fmr->list);
	return ret;
}

static void expect_write(struct kunit *test, struct rig *r, u64 remote, u32 len,
			 u32 rkey, enum ib_wc_status status)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 7, 0, len, remote, rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 7, status);
}

static void fmr_maps_pages_in_any_order(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_fmr *fmr = fmr_new(test, r->b.pd, 3, 1, PAGE_SHIFT);
	u64 pages[] = {
		r->b.dma + 2 * PAGE_SIZE, r->b.dma, r->b.dma + PAGE_SIZE,
	};
	u8 *from = r->a.buf;

	rig_fill(from, 3 * PAGE_SIZE, 1);
	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(fmr, pages, 3, 0x70000000));
	expect_write(test, r, 0x70000000, 3 * PAGE_SIZE, fmr->rkey, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, r->b.buf + 2 * PAGE_SIZE, from, PAGE_SIZE);
	KUNIT_EXPECT_MEMEQ(test, r->b.buf, from + PAGE_SIZE, PAGE_SIZE);
	KUNIT_EXPECT_MEMEQ(test, r->b.buf + PAGE_SIZE, from + 2 * PAGE_SIZE, PAGE_SIZE);
	expect_write(test, r, 0x70000000 + 2 * PAGE_SIZE, PAGE_SIZE + 1,
		     fmr->rkey, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + 3 * PAGE_SIZE, RIG_BUF - 3 * PAGE_SIZE, 0xee));
}

static void fmr_serves_local_messages(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_fmr *fmr = fmr_new(test, r->a.pd, 1, 1, PAGE_SHIFT);
	u64 page = r->a.dma + PAGE_SIZE;
	struct ib_send_wr wr;
	struct ib_sge sge;
	struct ib_wc wc;

	rig_fill(r->a.buf, RIG_BUF, 2);
	KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(fmr, &page, 1, 0));
	sge = (struct ib_sge) { 10, 100, fmr->lkey };
	rig_send_wr(&wr, 1, &sge, 1);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 100));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, r->b.buf, r->a.buf + PAGE_SIZE + 10, 100);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
}

static void fmr_is_closed_before_and_after(struct kunit *test)
{
	struct rig *r;
	struct ib_fmr *fmr;
	u64 page;
	int mapped;

	for (mapped = 0; mapped < 2; mapped++) {
		r = rig_up(test, "emu0", "emu1");
		fmr = fmr_new(test, r->b.pd, 1, 1, PAGE_SHIFT);
		page = r->b.dma;
		memset(r->b.buf, 0xee, RIG_BUF);
		if (mapped) {
			KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(fmr, &page, 1, page));
			KUNIT_ASSERT_EQ(test, 0, fmr_unmap(fmr));
		}
		expect_write(test, r, page, 8, fmr->rkey, IB_WC_REM_ACCESS_ERR);
		KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
	}
}

static void each_mapping_has_a_key_of_its_own(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_fmr *fmr = fmr_new(test, r->b.pd, 1, 2, PAGE_SHIFT);
	u64 page = r->b.dma;
	u32 old;

	KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(fmr, &page, 1, page));
	expect_write(test, r, page, 8, fmr->rkey, IB_WC_SUCCESS);
	old = fmr->rkey;
	KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(fmr, &page, 1, page));
	KUNIT_EXPECT_NE(test, old, fmr->rkey);
	KUNIT_EXPECT_EQ(test, fmr->lkey, fmr->rkey);
	expect_write(test, r, page, 8, fmr->rkey, IB_WC_SUCCESS);
	expect_write(test, r, page, 8, old, IB_WC_REM_ACCESS_ERR);
}

/* Ways in which a message uses an FMR. */
enum fmr_use {
	FMR_WRITTEN_FROM,
	FMR_SENT_FROM,
	FMR_GATHERED_FROM,
	FMR_WRITTEN_TO,
	FMR_REFUSED,
};

static const char *const fmr_use_names[] = {
	[FMR_WRITTEN_FROM] = "source of a write",
	[FMR_SENT_FROM] = "source of a send",
	[FMR_GATHERED_FROM] = "part of the source of a send",
	[FMR_WRITTEN_TO] = "target of a write with immediate data",
	[FMR_REFUSED] = "source of a write on UC that is refused",
};

static const enum fmr_use fmr_uses[] = {
	FMR_WRITTEN_FROM, FMR_SENT_FROM, FMR_GATHERED_FROM, FMR_WRITTEN_TO,
	FMR_REFUSED,
};

KVT_NAMED_PARAM(fmr_use, fmr_uses, fmr_use_names);

/* The consumer has seen the completion, and the HCA does not go on before this returns. */
static void map_again(void *arg)
{
	struct fmr_map *map = arg;

	map->ret = ib_map_phys_fmr(map->fmr, &map->page, 1, 0);
}

static int fmr_post(struct rig *r, const struct ib_fmr *fmr, enum fmr_use use)
{
	struct ib_sge sge[] = { { 0, 64, fmr->lkey }, { 64, 64, fmr->lkey } };
	struct ib_rdma_wr wr = {};

	rig_send_wr(&wr.wr, 1, sge, use == FMR_GATHERED_FROM ? 2 : 1);
	if (use == FMR_WRITTEN_FROM || use == FMR_WRITTEN_TO || use == FMR_REFUSED) {
		wr.wr.opcode = IB_WR_RDMA_WRITE;
		wr.remote_addr = r->b.mr->iova;
		wr.rkey = use == FMR_REFUSED ? RIG_BAD_KEY : r->b.mr->rkey;
	}
	/* In two pieces. */
	sge[0].length = use == FMR_WRITTEN_FROM ? 2 * PAGE_SIZE : sge[0].length;
	if (use == FMR_WRITTEN_TO) {
		wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
		sge[0] = rig_sge(&r->a, 0, 64);
		wr.remote_addr = 0;
		wr.rkey = fmr->rkey;
	}
	return ib_post_send(r->a.qp, &wr.wr, NULL);
}

static void fmr_is_free_as_soon_as_its_message_completes(struct kunit *test)
{
	enum fmr_use use = *(const enum fmr_use *)test->param_value;
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct rig_end *e = use == FMR_WRITTEN_TO ? &r->b : &r->a;
	struct ib_fmr *fmr = fmr_new(test, e->pd, 2, 2, PAGE_SHIFT);
	struct ib_cq *cq = e == &r->b ? e->rcq : e->scq;
	u64 pages[] = { e->dma + PAGE_SIZE, e->dma };
	struct fmr_map map = { .fmr = fmr, .page = pages[0], .ret = 1 };
	struct ib_wc wc;

	if (use == FMR_REFUSED)
		r->init.qp_type = IB_QPT_UC;
	rig_start(test, r);
	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | REMOTE);
	KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(fmr, pages, 2, 0));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 128));
	/* For the place that is in moderation; the second completion would end it. */
	KUNIT_ASSERT_EQ(test, 0, rdma_set_cq_moderation(cq, 2, 0));
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP));
	kverbs_delay_set("emu_cq_defer", map_again, &map);
	KUNIT_EXPECT_EQ(test, 0, fmr_post(r, fmr, use));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, map.ret);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
}

static void fmr_does_not_count_from_0(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu0");
	struct ib_fmr_attr attr = { 1, 1, PAGE_SHIFT };

	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR_OR_ZERO(ib_alloc_fmr(r->b.pd, BINDABLE | IB_ZERO_BASED, &attr)));
}

static void max_maps_counts_from_unmap_to_unmap(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu0");
	struct ib_fmr *fmr = fmr_new(test, r->b.pd, 1, 3, PAGE_SHIFT);
	u64 page = r->b.dma;
	int round, i;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, 0, ib_map_phys_fmr(fmr, &page, 1, page));
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_map_phys_fmr(fmr, &page, 1, page));
		KUNIT_EXPECT_EQ(test, 0, fmr_unmap(fmr));
	}
}

static void fmr_refuses_bad_lists(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu0");
	struct ib_fmr *fmr = fmr_new(test, r->b.pd, 2, 3, PAGE_SHIFT);
	u64 pages[] = { r->b.dma, r->b.dma, r->b.dma };
	u32 key = fmr->rkey;

	KUNIT_EXPECT_EQ(test, -EINVAL, ib_map_phys_fmr(fmr, pages, 3, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_map_phys_fmr(fmr, pages, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_map_phys_fmr(fmr, pages, -1, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_map_phys_fmr(fmr, pages, 1, 8));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_map_phys_fmr(fmr, pages, 2, U64_MAX & PAGE_MASK));
	pages[1]++;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_map_phys_fmr(fmr, pages, 2, 0));
	KUNIT_EXPECT_EQ(test, key, fmr->rkey);
	KUNIT_EXPECT_EQ(test, 0, ib_map_phys_fmr(fmr, pages, 1, U64_MAX & PAGE_MASK));
}

static void fmr_refuses_bad_sizes(struct kunit *test)
{
	static const struct ib_fmr_attr bad[] = {
		{ 513, 1, PAGE_SHIFT }, { 1, 256, PAGE_SHIFT }, { 1, 1, 11 },
		{ 1, 1, 32 }, { 1, 1, 200 }, { 0, 1, PAGE_SHIFT },
		{ 1, 0, PAGE_SHIFT },
	};
	struct rig *r = rig_new(test, "emu0", "emu0");
	struct ib_fmr_attr attr;
	struct ib_fmr *fmr;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		attr = bad[i];
		fmr = ib_alloc_fmr(r->b.pd, BINDABLE, &attr);
		KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(fmr));
	}
}

static void map_it(void *arg)
{
	struct fmr_map *map = arg;

	map->ret = ib_map_phys_fmr(map->fmr, &map->page, 1, map->page);
}

static void fmr_is_mapped_in_any_context(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct fmr_map map = {
		.fmr = fmr_new(test, r->b.pd, 1, 2, PAGE_SHIFT),
		.page = r->b.dma,
		.ret = 1,
	};

	kvt_run_in_hardirq(map_it, &map);
	KUNIT_EXPECT_EQ(test, 0, map.ret);
	expect_write(test, r, map.page, 8, map.fmr->rkey, IB_WC_SUCCESS);
	map.ret = 1;
	kvt_run_in_softirq(map_it, &map);
	KUNIT_EXPECT_EQ(test, 0, map.ret);
	expect_write(test, r, map.page, 8, map.fmr->rkey, IB_WC_SUCCESS);
}

static void windows_are_not_bound_to_fmrs(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_fmr *fmr = fmr_new(test, r->b.pd, 1, 1, PAGE_SHIFT);
	struct ib_mw *mw = win_new(test, r->b.pd, IB_MW_TYPE_2);
	u64 page = r->b.dma;
	struct ib_mr mr = {};
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(fmr, &page, 1, page));
	mr.device = r->b.ibdev;
	mr.lkey = fmr->lkey;
	mr.iova = page;
	KUNIT_ASSERT_EQ(test, 0, win_bind(&r->b, mw, &mr, 0, 8, IB_ACCESS_REMOTE_READ, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_MW_BIND_ERR);
}

/* Memory of a process */

#define USER_LEN	(5 * PAGE_SIZE)

/* Registers the mapping without its first 100 bytes and its last page, to begin at @iova. */
static struct ib_mr *user_mr(struct kunit *test, struct rig_end *e,
			     unsigned long start, u64 iova, int access)
{
	return KVT_OWN(test, ib_reg_user_mr(e->pd, start + 100, USER_LEN - PAGE_SIZE - 100, iova,
					    access), kvt_end_mr);
}

static unsigned long user_map(struct kunit *test)
{
	unsigned long start = kunit_vm_mmap(test, NULL, 0, USER_LEN,
					    PROT_READ | PROT_WRITE,
					    MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_NE(test, 0, start);
	KUNIT_ASSERT_EQ(test, 0, clear_user((void __user *)start, USER_LEN));
	return start;
}

/* The region of user_mr() has what the other end sent, and what is around it is as it was. */
static void expect_region_has(struct kunit *test, struct rig *r, unsigned long start)
{
	u32 len = USER_LEN - PAGE_SIZE - 100;

	KUNIT_ASSERT_EQ(test, 0, copy_from_user(r->b.buf, (void __user *)start, USER_LEN));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, 100, 0));
	KUNIT_EXPECT_MEMEQ(test, r->b.buf + 100, r->a.buf, len);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + 100 + len, PAGE_SIZE, 0));
}

static void user_memory_is_reached_by_its_address(struct kunit *test)
{
	unsigned long start = user_map(test);
	u64 iovas[] = { start + 100, 0x123456000 + 100, 100 };
	u32 len = USER_LEN - PAGE_SIZE - 100;
	struct rig *r;
	int i;

	for (i = 0; i < ARRAY_SIZE(iovas); i++) {
		r = rig_up(test, "emu0", "emu1");
		r->b.mr = user_mr(test, &r->b, start, iovas[i], IB_ACCESS_LOCAL_WRITE | REMOTE);
		KUNIT_EXPECT_EQ(test, IB_MR_TYPE_USER, r->b.mr->type);
		rig_fill(r->a.buf, RIG_BUF, i);
		expect_write(test, r, iovas[i], len, r->b.mr->rkey, IB_WC_SUCCESS);
		expect_region_has(test, r, start);
		expect_write(test, r, iovas[i] + len - 7, 8, r->b.mr->rkey, IB_WC_REM_ACCESS_ERR);
		kunit_release_action(test, kvt_end_mr, r->b.mr);
	}
}

/* The first byte, which is not the first of its page, is at address 0. */
static void m12_addresses_of_a_region_can_be_offsets(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	unsigned long start = user_map(test);
	u32 len = USER_LEN - PAGE_SIZE - 100;
	struct ib_mr *mr = user_mr(test, &r->b, start, start + 100,
				   IB_ACCESS_LOCAL_WRITE | REMOTE | IB_ZERO_BASED);

	KUNIT_EXPECT_EQ(test, 0, mr->iova);
	rig_fill(r->a.buf, len, 3);
	expect_write(test, r, 0, len, mr->rkey, IB_WC_SUCCESS);
	expect_region_has(test, r, start);
	/* A part that crosses pages of the memory, but not of the addresses. */
	rig_fill(r->a.buf, 200, 4);
	expect_write(test, r, PAGE_SIZE - 200, 200, mr->rkey, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, copy_from_user(r->b.buf, (void __user *)start, USER_LEN));
	KUNIT_EXPECT_MEMEQ(test, r->b.buf + PAGE_SIZE - 100, r->a.buf, 200);
	expect_write(test, r, len - 7, 8, mr->rkey, IB_WC_REM_ACCESS_ERR);
}

static void user_memory_takes_windows(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	unsigned long start = user_map(test);
	struct ib_mr *mr = user_mr(test, &r->b, start, start + 100, BINDABLE);
	struct ib_mw *mw = win_new(test, r->b.pd, IB_MW_TYPE_1);
	struct ib_wc wc;

	mr->iova = start + 100;
	KUNIT_ASSERT_EQ(test, 0, win_bind(&r->b, mw, mr, 1000, 8, REMOTE, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_dereg_mr(mr));
	rig_fill(r->a.buf, 8, 9);
	expect_write(test, r, start + 1100, 8, mw->rkey, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, copy_from_user(r->b.buf, (void __user *)start + 1100, 8));
	KUNIT_EXPECT_MEMEQ(test, r->b.buf, r->a.buf, 8);
	win_free(test, mw);
	/* Of MRs, LOCAL_INV takes only those for fast registration. */
	KUNIT_ASSERT_EQ(test, 0, rig_inv(&r->b, IB_WR_LOCAL_INV, 2, mr->rkey));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 2, IB_WC_MW_BIND_ERR);
}

/* Registers a mapped region; its addresses are 0 to PAGE_SIZE, and the first is at 24 of the buffer. */
static void expect_page_from_24(struct kunit *test, struct rig *r, struct ib_mr *mr, int access)
{
	struct ib_wc wc;

	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, mr, 1, IB_ACCESS_LOCAL_WRITE | REMOTE | access));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
	expect_write(test, r, 8, 16, mr->rkey, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, 32, 0xee));
	KUNIT_EXPECT_MEMEQ(test, r->b.buf + 32, r->a.buf, 16);
	expect_write(test, r, PAGE_SIZE - 8, 8, mr->rkey, IB_WC_SUCCESS);
	expect_write(test, r, PAGE_SIZE - 7, 8, mr->rkey, IB_WC_REM_ACCESS_ERR);
}

/* The first page of the list need not begin with the region. */
static void m12_addresses_of_a_registered_region_can_be_offsets(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_mr *mr = rig_mr(test, r->b.pd);

	KUNIT_ASSERT_EQ(test, 1, rig_map(&r->b, mr, 24, PAGE_SIZE));
	expect_page_from_24(test, r, mr, IB_ZERO_BASED);
}

/* By whatever means: this is the other way to say so. */
static void m12_zero_based_list_begins_with_its_first_byte(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_mr *mr = rig_mr(test, r->b.pd);
	struct scatterlist sg;
	unsigned int skip = 4;

	sg_init_one(&sg, r->b.buf + 20, PAGE_SIZE + 4);
	sg_dma_address(&sg) = r->b.dma + 20;
	sg_dma_len(&sg) = PAGE_SIZE + 4;
	KUNIT_ASSERT_EQ(test, 1, ib_map_mr_sg_zbva(mr, &sg, 1, &skip, PAGE_SIZE));
	expect_page_from_24(test, r, mr, 0);
}

/* Offsets name the memory of a window's region, and of requests, too. */
static void m12_offsets_are_for_windows_and_requests(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	unsigned long start = user_map(test);
	struct ib_mr *mr = user_mr(test, &r->b, start, start + 100, BINDABLE | IB_ZERO_BASED);
	struct ib_mw *mw = win_new(test, r->b.pd, IB_MW_TYPE_1);
	struct ib_sge sge = { .addr = 1000, .length = 8, .lkey = mr->lkey };
	struct ib_send_wr wr;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, win_bind(&r->b, mw, mr, 1000, 8, REMOTE, 1));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
	rig_fill(r->a.buf, 8, 9);
	expect_write(test, r, 1000, 8, mw->rkey, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, copy_from_user(r->b.buf, (void __user *)start + 1100, 8));
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, 8, 9));
	memset(r->a.buf, 0, 8);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 3, 0, 8));
	rig_send_wr(&wr, 2, &sge, 1);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->b.qp, &wr, NULL));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 2, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->a.rcq, &wc, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->a.buf, 8, 9));
	win_free(test, mw);
}

/* Keys that end while an access is under way */

static int block_write(struct rig_end *from, u32 len, u64 remote, u32 rkey)
{
	struct ib_sge sge = { from->mr->iova, len, from->mr->lkey };
	struct ib_rdma_wr wr = {};

	rig_send_wr(&wr.wr, 0x77, &sge, 1);
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	wr.remote_addr = remote;
	wr.rkey = rkey;
	return ib_post_send(from->qp, &wr.wr, NULL);
}

static void two_gigabytes_in_one_message(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct rig_end *a = rig_block(test, &r->a, 0x11);
	struct rig_end *b = rig_block(test, &r->b, 0xee);
	struct ib_wc wc;
	int i;

	rig_register_blocks(test, a, MAX_BLOCKS, a, BINDABLE);
	rig_register_blocks(test, b, MAX_BLOCKS, b, BINDABLE);
	KUNIT_ASSERT_EQ(test, 0, block_write(a, MAX_BLOCKS * RIG_BLOCK, b->mr->iova, b->mr->rkey));
	for (i = 0; i < 10 && !rig_poll(a->scq, &wc); i++)
		;
	KUNIT_ASSERT_LT(test, i, 10);
	KUNIT_EXPECT_EQ(test, 0x77, wc.wr_id);
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, wc.status);
	KUNIT_EXPECT_TRUE(test, rig_all(b->buf, RIG_BLOCK, 0x11));
}

/* The ways a key ends. */
enum ending {
	END_INV,
	END_DEREG,
	END_WINDOW_INV,
	END_WINDOW_FREE,
	END_WINDOW_REBIND,
	END_FMR_UNMAP,
	END_FMR_FREE,
};

static const char *const ending_names[] = {
	"LOCAL_INV", "ib_dereg_mr", "LOCAL_INV of a window", "ib_dealloc_mw",
	"ib_bind_mw", "ib_unmap_fmr", "ib_dealloc_fmr",
};

static const int endings[] = {
	END_INV, END_DEREG, END_WINDOW_INV, END_WINDOW_FREE, END_WINDOW_REBIND,
	END_FMR_UNMAP, END_FMR_FREE,
};

KVT_NAMED_PARAM(ending, endings, ending_names);

/* A key that is to end. */
struct ended {
	enum ending how;	/* the way it ends */
	struct rig_end *b;	/* end that owns the memory */
	struct ib_mw *mw;	/* window that the key is of, or NULL */
	struct ib_fmr *fmr;	/* FMR that the key is of, or NULL */
	u64 iova;		/* first address that the key covers */
	u32 key;		/* the key */
};

static void ended_fmr(struct kunit *test, struct ended *end)
{
	u64 pages[LONG_BLOCKS];
	int i;

	for (i = 0; i < LONG_BLOCKS; i++)
		pages[i] = end->b->dma;
	end->fmr = fmr_new(test, end->b->pd, LONG_BLOCKS, 2, ilog2(RIG_BLOCK));
	end->iova = 0;
	KUNIT_ASSERT_EQ(test, 0, ib_map_phys_fmr(end->fmr, pages, LONG_BLOCKS, end->iova));
	end->key = end->fmr->rkey;
}

static void ended_new(struct kunit *test, struct ended *end)
{
	enum ib_mw_type type = end->how == END_WINDOW_INV ? IB_MW_TYPE_2 :
							    IB_MW_TYPE_1;
	struct ib_wc wc;

	if (end->how >= END_FMR_UNMAP) {
		ended_fmr(test, end);
		return;
	}
	rig_register_blocks(test, end->b, LONG_BLOCKS, end->b, BINDABLE);
	end->iova = end->b->mr->iova;
	end->key = end->b->mr->rkey;
	if (end->how < END_WINDOW_INV)
		return;
	end->mw = win_new(test, end->b->pd, type);
	KUNIT_ASSERT_EQ(test, 0, win_bind(end->b, end->mw, end->b->mr, 0,
					  LONG_BLOCKS * RIG_BLOCK, REMOTE, 2));
	RIG_EXPECT_WC(test, end->b->scq, &wc, 2, IB_WC_SUCCESS);
	end->key = end->mw->rkey;
}

/* Ends the key. When this returns, no access is under way, and none can begin. */
static void ended_end(struct kunit *test, struct ended *end)
{
	struct rig_end *b = end->b;
	struct ib_wc wc;

	switch (end->how) {
	case END_DEREG:
		kunit_release_action(test, kvt_end_mr, b->mr);
		return;
	case END_WINDOW_FREE:
		win_free(test, end->mw);
		return;
	case END_FMR_UNMAP:
		KUNIT_EXPECT_EQ(test, 0, fmr_unmap(end->fmr));
		return;
	case END_FMR_FREE:
		kunit_release_action(test, kvt_end_fmr, end->fmr);
		return;
	case END_WINDOW_REBIND:
		KUNIT_ASSERT_EQ(test, 0, win_bind(b, end->mw, b->mr, 0, 8, REMOTE, 3));
		break;
	default:
		KUNIT_ASSERT_EQ(test, 0, rig_inv(b, IB_WR_LOCAL_INV, 3, end->key));
	}
	RIG_EXPECT_WC(test, b->scq, &wc, 3, IB_WC_SUCCESS);
}

/* Waits until a long write has begun. */
static void block_wait(struct kunit *test, struct rig_end *b, u8 was)
{
	/* The engine writes with plain accesses. */
	KUNIT_ASSERT_TRUE(test, kvt_until(data_race(READ_ONCE(b->buf[0])) != was));
}

static void key_ends_when_accesses_are_out(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct rig_end *a = rig_block(test, &r->a, 0x11);
	struct ended end = {
		.how = *(const int *)test->param_value,
		.b = rig_block(test, &r->b, 0xee),
	};
	struct ib_wc wc;

	rig_register_blocks(test, a, LONG_BLOCKS, a, BINDABLE);
	ended_new(test, &end);
	KUNIT_ASSERT_EQ(test, 0, block_write(a, LONG_BLOCKS * RIG_BLOCK, end.iova, end.key));
	block_wait(test, end.b, 0xee);
	ended_end(test, &end);
	/* From here on the device must not write to the memory. */
	memset(end.b->buf, 0xdd, RIG_BLOCK);
	RIG_EXPECT_WC(test, a->scq, &wc, 0x77, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_all(end.b->buf, RIG_BLOCK, 0xdd));

	KUNIT_ASSERT_EQ(test, 0, block_write(a, 8, end.iova, end.key));
	RIG_EXPECT_WC(test, a->scq, &wc, 0x77, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(end.b->buf, RIG_BLOCK, 0xdd));
}

/* The thread that writes through the FMR stands still. */
static void fmr_in_use_is_busy(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct rig_end *a = rig_block(test, &r->a, 0x11);
	struct ended end = {
		.how = END_FMR_UNMAP,
		.b = rig_block(test, &r->b, 0xee),
	};
	struct rig_pause *pause;
	struct ib_wc wc;
	u64 page;

	rig_register_blocks(test, a, LONG_BLOCKS, a, BINDABLE);
	ended_new(test, &end);
	page = end.b->dma;
	pause = rig_pause_at(test, "emu_copy_long");
	KUNIT_EXPECT_EQ(test, 0, block_write(a, LONG_BLOCKS * RIG_BLOCK, end.iova, end.key));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&pause->gate.entered));
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_map_phys_fmr(end.fmr, &page, 1, 0));
	KUNIT_EXPECT_EQ(test, end.key, end.fmr->rkey);
	rig_pause_over(test, pause);
	RIG_EXPECT_WC(test, a->scq, &wc, 0x77, IB_WC_SUCCESS);
	/* The old mapping is intact, and can be replaced once the write has completed. */
	expect_write(test, r, end.iova + RIG_BLOCK, 8, end.key, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, ib_map_phys_fmr(end.fmr, &page, 1, 0));
	expect_write(test, r, end.iova + RIG_BLOCK, 8, end.fmr->rkey, IB_WC_REM_ACCESS_ERR);
}

/* The registration is executed after a long write, while the case deregisters the MR. */
static void deregistration_meets_registration(struct kunit *test)
{
	u32 seed = kvt_seed(test, "dereg", kvt_count(RACES));
	struct rig *r = rig_up(test, "emu0", "emu1");
	u32 i, done = 0, late = 0;
	struct ib_mr *mr;
	struct ib_wc wc;

	rig_register(test, &r->b, BINDABLE);
	for (i = 0; i < kvt_count(RACES); i++) {
		mr = KVT_PTR(test, ib_alloc_mr(r->a.pd, IB_MR_TYPE_MEM_REG, 17));
		KUNIT_EXPECT_EQ(test, 1, rig_map(&r->a, mr, 0, 8));
		KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 1, 0,
						  RIG_BUF, r->b.mr->iova,
						  r->b.mr->rkey));
		KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->a, mr, 2, BINDABLE));
		ndelay(kvt_rand(&seed) % 20000);
		KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		KUNIT_ASSERT_TRUE(test, rig_poll(r->a.scq, &wc));
		if (wc.status == IB_WC_SUCCESS) {
			done++;
			continue;
		}
		KUNIT_EXPECT_EQ(test, IB_WC_MW_BIND_ERR, wc.status);
		late++;
		rig_reconnect(test, r);
	}
	kunit_info(test, "%u registered, %u too late", done, late);
}

static struct kunit_case emu_mapping_cases[] = {
	KUNIT_CASE(fmr_maps_pages_in_any_order),
	KUNIT_CASE(fmr_serves_local_messages),
	KUNIT_CASE(fmr_is_closed_before_and_after),
	KUNIT_CASE(each_mapping_has_a_key_of_its_own),
	KUNIT_CASE_PARAM(fmr_is_free_as_soon_as_its_message_completes, fmr_use_gen_params),
	KUNIT_CASE(fmr_does_not_count_from_0),
	KUNIT_CASE(max_maps_counts_from_unmap_to_unmap),
	KUNIT_CASE(fmr_refuses_bad_lists),
	KUNIT_CASE(fmr_refuses_bad_sizes),
	KUNIT_CASE(fmr_is_mapped_in_any_context),
	KUNIT_CASE(windows_are_not_bound_to_fmrs),
	KUNIT_CASE(user_memory_is_reached_by_its_address),
	KUNIT_CASE(m12_addresses_of_a_region_can_be_offsets),
	KUNIT_CASE(m12_addresses_of_a_registered_region_can_be_offsets),
	KUNIT_CASE(m12_zero_based_list_begins_with_its_first_byte),
	KUNIT_CASE(m12_offsets_are_for_windows_and_requests),
	KUNIT_CASE(user_memory_takes_windows),
	KUNIT_CASE_SLOW(two_gigabytes_in_one_message),
	KUNIT_CASE_PARAM(key_ends_when_accesses_are_out, ending_gen_params),
	KUNIT_CASE(fmr_in_use_is_busy),
	KUNIT_CASE(deregistration_meets_registration),
	{}
};
KVT_SUITE(emu_mapping);
