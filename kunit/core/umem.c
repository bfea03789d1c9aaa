// SPDX-License-Identifier: GPL-2.0-only
/*
 * User memory is pinned, charged to its process, mapped and released, and divided
 * into DMA blocks of the best size. Each case that maps user memory has an mm of its
 * own, which ends with the case.
 */
#include <linux/cred.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sizes.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>

#include "lib/mock.h"
#include "lib/objects.h"

#define RW	(PROT_READ | PROT_WRITE)

/* More pages than are pinned in one batch, and not a multiple of a batch. */
#define MANY_PAGES	(2 * PAGE_SIZE / sizeof(struct page *) + 3)

static unsigned long map_pages(struct kunit *test, unsigned long nr, int prot)
{
	unsigned long addr = kunit_vm_mmap(test, NULL, 0, nr << PAGE_SHIFT, prot,
					   MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_NE(test, 0, addr);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	return addr;
}

/* Writes a different word to the beginning of each page. */
static void fill_pages(struct kunit *test, unsigned long addr, unsigned long nr)
{
	unsigned long i, odd;

	/* Fault in every other page first, so that neighbours are apart in physical memory. */
	for (odd = 0; odd < 2; odd++)
		for (i = odd; i < nr; i += 2)
			KUNIT_ASSERT_EQ(test, 0, put_user(0xfeed0000 + i, (u64 __user *)
							  (addr + i * PAGE_SIZE)));
}

static bool is_pinned(struct page *page)
{
	return folio_maybe_dma_pinned(page_folio(page));
}

static struct page *first_page(struct ib_umem *umem)
{
	return sg_page(umem->sgt_append.sgt.sgl);
}

static int umem_error(struct mock *m, unsigned long addr, size_t size, int access)
{
	struct ib_umem *umem = ib_umem_get(m->ibdev, addr, size, access);

	if (IS_ERR(umem))
		return PTR_ERR(umem);
	ib_umem_release(umem);
	return 0;
}

static void memory_is_pinned_and_mapped_in_order(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr = map_pages(test, MANY_PAGES, RW), i = 0;
	struct ib_block_iter biter;
	struct ib_umem *umem;
	struct page *page;

	fill_pages(test, addr, MANY_PAGES);
	umem = KVT_PTR(test, ib_umem_get(m->ibdev, addr + 100, (MANY_PAGES << PAGE_SHIFT) - 200,
					 IB_ACCESS_LOCAL_WRITE));
	KUNIT_EXPECT_EQ(test, addr + 100, umem->address);
	KUNIT_EXPECT_EQ(test, addr + 100, umem->iova);
	KUNIT_EXPECT_EQ(test, 100, ib_umem_offset(umem));
	KUNIT_EXPECT_TRUE(test, umem->writable);
	KUNIT_EXPECT_PTR_EQ(test, umem->owning_mm, current->mm);
	KUNIT_EXPECT_EQ(test, MANY_PAGES, ib_umem_num_pages(umem));
	KUNIT_EXPECT_EQ(test, MANY_PAGES, kvt_pinned_pages());

	rdma_umem_for_each_dma_block(umem, &biter, PAGE_SIZE) {
		u64 *p = ib_virt_dma_to_ptr(rdma_block_iter_dma_address(&biter));

		KUNIT_ASSERT_EQ(test, 0xfeed0000 + i, *p);
		KUNIT_ASSERT_TRUE(test, is_pinned(virt_to_page(p)));
		i++;
	}
	KUNIT_EXPECT_EQ(test, MANY_PAGES, i);

	page = first_page(umem);
	ib_umem_release(umem);
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	KUNIT_EXPECT_FALSE(test, is_pinned(page));
}

static void release_of_nothing_is_fine(struct kunit *test)
{
	ib_umem_release(NULL);
}

static void memory_is_read(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr = map_pages(test, 3, RW);
	struct ib_umem *umem;
	u64 word = 0;

	fill_pages(test, addr, 3);
	umem = KVT_PTR(test, ib_umem_get(m->ibdev, addr + 8, 3 * PAGE_SIZE - 8, 0));
	KUNIT_EXPECT_EQ(test, 0, ib_umem_copy_from(&word, umem, PAGE_SIZE - 8, 8));
	KUNIT_EXPECT_EQ(test, 0xfeed0001, word);
	KUNIT_EXPECT_EQ(test, 0, ib_umem_copy_from(&word, umem, 3 * PAGE_SIZE - 16, 8));
	KUNIT_EXPECT_EQ(test, 0, word);
	KUNIT_EXPECT_EQ(test, 0, ib_umem_copy_from(&word, umem, umem->length, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_umem_copy_from(&word, umem, umem->length - 7, 8));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_umem_copy_from(&word, umem, umem->length + 1, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_umem_copy_from(&word, umem, 8, SIZE_MAX));
	ib_umem_release(umem);
}

static void new_access_must_suit_the_memory(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr = map_pages(test, 1, RW);
	struct ib_umem *umem = KVT_PTR(test, ib_umem_get(m->ibdev, addr, PAGE_SIZE, 0));
	const int both = IB_MR_REREG_ACCESS | IB_MR_REREG_TRANS;
	const int writes = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE;

	KUNIT_EXPECT_EQ(test, -EACCES, ib_umem_check_rereg(umem, IB_MR_REREG_ACCESS, writes));
	KUNIT_EXPECT_EQ(test, -EACCES, ib_umem_check_rereg(umem, IB_MR_REREG_ACCESS,
							   IB_ACCESS_REMOTE_ATOMIC));
	KUNIT_EXPECT_EQ(test, 0, ib_umem_check_rereg(umem, IB_MR_REREG_ACCESS,
						     IB_ACCESS_REMOTE_READ));
	KUNIT_EXPECT_EQ(test, 0, ib_umem_check_rereg(umem, both, writes));
	KUNIT_EXPECT_EQ(test, 0, ib_umem_check_rereg(umem, IB_MR_REREG_PD, writes));
	KUNIT_EXPECT_EQ(test, 0, ib_umem_check_rereg(NULL, IB_MR_REREG_ACCESS, writes));
	ib_umem_release(umem);

	umem = KVT_PTR(test, ib_umem_get(m->ibdev, addr, PAGE_SIZE, IB_ACCESS_LOCAL_WRITE));
	KUNIT_EXPECT_EQ(test, 0, ib_umem_check_rereg(umem, IB_MR_REREG_ACCESS, writes));
	ib_umem_release(umem);
}

/* A read-only pin of an untouched page must pin the process's own page, not the zero page. */
static void device_sees_what_is_written_later(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr = map_pages(test, 1, RW);
	struct ib_umem *umem = KVT_PTR(test, ib_umem_get(m->ibdev, addr, PAGE_SIZE, 0));
	u64 word = 0;

	KUNIT_EXPECT_FALSE(test, umem->writable);
	fill_pages(test, addr, 1);
	KUNIT_EXPECT_EQ(test, 0, ib_umem_copy_from(&word, umem, 0, 8));
	KUNIT_EXPECT_EQ(test, 0xfeed0000, word);
	ib_umem_release(umem);
}

static void check_dirty(struct kunit *test, struct mock *m, int access, bool dirty)
{
	unsigned long addr = map_pages(test, 1, RW);
	struct ib_umem *umem;
	struct page *page;

	fill_pages(test, addr, 1);
	umem = KVT_PTR(test, ib_umem_get(m->ibdev, addr, 1, access));
	page = first_page(umem);
	ClearPageDirty(page);
	ib_umem_release(umem);
	KUNIT_EXPECT_EQ_MSG(test, dirty, !!PageDirty(page), "access %#x", access);
}

static void pages_are_dirty_if_the_device_may_write(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");

	check_dirty(test, m, 0, false);
	check_dirty(test, m, IB_ACCESS_REMOTE_READ, false);
	check_dirty(test, m, IB_ACCESS_LOCAL_WRITE, true);
	check_dirty(test, m, IB_ACCESS_MW_BIND, true);
}

static void bad_addresses_are_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr;

	/* A kernel thread has no mm. */
	KUNIT_EXPECT_EQ(test, -EFAULT, umem_error(m, PAGE_SIZE, 1, 0));
	addr = map_pages(test, 3, RW);
	fill_pages(test, addr, 3);
	KUNIT_EXPECT_EQ(test, 0, umem_error(m, addr, 3 * PAGE_SIZE, 0));
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(addr + 2 * PAGE_SIZE, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, 0, umem_error(m, addr, 2 * PAGE_SIZE, 0));
	KUNIT_EXPECT_EQ(test, -EFAULT, umem_error(m, addr, 2 * PAGE_SIZE + 1, 0));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());

	addr = map_pages(test, 1, PROT_READ);
	KUNIT_EXPECT_EQ(test, 0, umem_error(m, addr, 1, 0));
	KUNIT_EXPECT_EQ(test, -EFAULT, umem_error(m, addr, 1, IB_ACCESS_LOCAL_WRITE));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
}

static unsigned long map_at(struct kunit *test, unsigned long at, int prot, int flags)
{
	unsigned long addr = kunit_vm_mmap(test, NULL, at, PAGE_SIZE, prot,
					   MAP_ANONYMOUS | flags | (at ? MAP_FIXED : 0), 0);

	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	return addr;
}

static void m11_memory_is_pinned_as_it_may_be_accessed(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	static const int kinds[] = { MAP_PRIVATE, MAP_SHARED };
	unsigned long addr;
	int i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		addr = map_at(test, 0, PROT_READ, kinds[i]);
		KUNIT_EXPECT_EQ(test, 0, umem_error(m, addr, PAGE_SIZE, 0));
		KUNIT_EXPECT_EQ(test, 0, umem_error(m, addr, PAGE_SIZE, IB_ACCESS_REMOTE_READ));
		KUNIT_EXPECT_EQ(test, -EFAULT,
				umem_error(m, addr, PAGE_SIZE, IB_ACCESS_LOCAL_WRITE));
	}
	addr = map_pages(test, 3, RW);
	fill_pages(test, addr, 3);
	/* Guard pages, at either end. */
	map_at(test, addr, PROT_NONE, MAP_PRIVATE);
	map_at(test, addr + 2 * PAGE_SIZE, PROT_NONE, MAP_PRIVATE);
	KUNIT_EXPECT_EQ(test, -EFAULT, umem_error(m, addr, 1, 0));
	KUNIT_EXPECT_EQ(test, -EFAULT, umem_error(m, addr, 2 * PAGE_SIZE, IB_ACCESS_REMOTE_READ));
	KUNIT_EXPECT_EQ(test, 0, umem_error(m, addr + PAGE_SIZE, PAGE_SIZE, IB_ACCESS_LOCAL_WRITE));
	KUNIT_EXPECT_EQ(test, -EFAULT, umem_error(m, addr + PAGE_SIZE, PAGE_SIZE + 1, 0));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
}

/* When a page cannot be pinned, all pages pinned before it are unpinned. */
static void failure_in_the_middle_unpins_all(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr = map_pages(test, MANY_PAGES, RW);
	size_t most = (MANY_PAGES - 1) << PAGE_SHIFT;
	struct ib_umem *umem;
	struct page *page;

	fill_pages(test, addr, MANY_PAGES);
	umem = KVT_PTR(test, ib_umem_get(m->ibdev, addr, 1, 0));
	page = first_page(umem);
	ib_umem_release(umem);
	KUNIT_EXPECT_EQ(test, 0, vm_munmap(addr + most, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, -EFAULT, umem_error(m, addr, most + 1, 0));
	KUNIT_EXPECT_FALSE(test, is_pinned(page));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
}

static void bad_ranges_are_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr = map_pages(test, 1, RW);

	KUNIT_EXPECT_EQ(test, -EINVAL, umem_error(m, addr, 0, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, umem_error(m, -PAGE_SIZE, 2 * PAGE_SIZE, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, umem_error(m, addr, SIZE_MAX, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, umem_error(m, ULONG_MAX - 10, 5, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, umem_error(m, 0, BIT_ULL(32 + PAGE_SHIFT), 0));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, umem_error(m, addr, 1, IB_ACCESS_ON_DEMAND));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
}

static void limit_set(unsigned long pages)
{
	current->signal->rlim[RLIMIT_MEMLOCK].rlim_cur = pages << PAGE_SHIFT;
}

/* Kernel threads have all capabilities, so CAP_IPC_LOCK is dropped for the limit to apply. */
static void limit_on_locked_memory_holds(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr = map_pages(test, 4, RW);
	struct cred *weak = KVT_PTR(test, prepare_creds());
	const struct cred *strong;
	struct ib_umem *umem;

	limit_set(3);
	KUNIT_EXPECT_EQ(test, 0, umem_error(m, addr, 4 * PAGE_SIZE, 0));
	cap_lower(weak->cap_effective, CAP_IPC_LOCK);
	strong = override_creds(weak);
	KUNIT_EXPECT_EQ(test, -ENOMEM, umem_error(m, addr, 4 * PAGE_SIZE, 0));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	umem = ib_umem_get(m->ibdev, addr, 3 * PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, 0, PTR_ERR_OR_ZERO(umem));
	/* The limit is for all pinned pages; a page that is pinned twice counts twice. */
	KUNIT_EXPECT_EQ(test, -ENOMEM, umem_error(m, addr, 1, 0));
	if (!IS_ERR(umem))
		ib_umem_release(umem);
	KUNIT_EXPECT_EQ(test, 0, umem_error(m, addr, 1, 0));
	limit_set(0);
	KUNIT_EXPECT_EQ(test, -EPERM, umem_error(m, addr, 1, 0));
	revert_creds(strong);
	put_cred(weak);
	KUNIT_EXPECT_EQ(test, 0, umem_error(m, addr, 1, 0));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
}

/* Release subtracts what was charged, even if a new iova has changed the number of pages. */
static void count_is_the_same_at_release(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr = map_pages(test, 2, RW);
	struct ib_umem *umem = KVT_PTR(test, ib_umem_get(m->ibdev, addr, PAGE_SIZE, 0));

	KUNIT_EXPECT_EQ(test, 1, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 0, ib_umem_find_best_pgsz(umem, PAGE_SIZE, 64));
	KUNIT_EXPECT_EQ(test, 2, ib_umem_num_pages(umem));
	ib_umem_release(umem);
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
}

static void memory_outlives_its_process(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	unsigned long addr = map_pages(test, 2, RW);
	struct mm_struct *mm = current->mm;
	struct ib_umem *umem;
	u64 word = 0;

	fill_pages(test, addr, 2);
	umem = KVT_PTR(test, ib_umem_get(m->ibdev, addr, 2 * PAGE_SIZE, IB_ACCESS_LOCAL_WRITE));
	kthread_unuse_mm(mm);
	mmput(mm);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&umem->owning_mm->mm_users));
	KUNIT_EXPECT_TRUE(test, is_pinned(first_page(umem)));
	KUNIT_EXPECT_EQ(test, 0, ib_umem_copy_from(&word, umem, PAGE_SIZE, 8));
	KUNIT_EXPECT_EQ(test, 0xfeed0001, word);
	ib_umem_release(umem);
}

/* DMA blocks. These umems have scatter lists, but no memory. */

#define RUNS	2

struct blocks_row {
	const char *what;
	unsigned long address;
	size_t length;
	u64 virt;
	struct {
		u64 dma;
		u32 len;
	} run[RUNS];
	unsigned long sizes;
	unsigned long best;
};

static const struct blocks_row blocks_rows[] = {
	{ "one run", 0x200000, SZ_4M, 0x200000,
	  { { SZ_1G, SZ_4M } }, SZ_4K | SZ_2M | SZ_1G, SZ_2M },
	{ "no larger than needed", 0x1000, SZ_4K, 0x1000,
	  { { 0x1000, SZ_4K } }, SZ_4K | SZ_2M | SZ_1G, SZ_4K },
	{ "one block for all", 0x10000, SZ_64K, 0x10000,
	  { { 0x40000, SZ_64K } }, SZ_4K | SZ_64K | SZ_1M, SZ_64K },
	{ "one larger block for all", 0x10000, SZ_64K, 0x10000,
	  { { 0x110000, SZ_64K } }, SZ_4K | SZ_1M, SZ_1M },
	{ "addresses differ at 8 KiB", 0x2000, SZ_64K, 0x2000,
	  { { SZ_1G, SZ_64K } }, SZ_4K | SZ_8K | SZ_16K | SZ_64K, SZ_8K },
	{ "addresses differ within a page", 0x1000, SZ_4K, 0x1800,
	  { { 0x1000, SZ_4K } }, SZ_4K | SZ_64K, 0 },
	{ "second run out of line", 0x100000, SZ_16K, 0x100000,
	  { { 0x100000, SZ_4K }, { 0x300000, 3 * SZ_4K } },
	  SZ_4K | SZ_8K | SZ_16K, SZ_4K },
	{ "gap in the middle of a block", 0x10000, SZ_64K, 0x10000,
	  { { 0x10000, SZ_32K }, { 0x28000, SZ_32K } },
	  SZ_4K | SZ_64K, SZ_4K },
	{ "gap between two blocks", 0x10000, SZ_128K, 0x10000,
	  { { 0x10000, SZ_64K }, { 0x50000, SZ_64K } },
	  SZ_4K | SZ_64K | SZ_1M, SZ_64K },
	{ "two entries without a gap", 0x10000, SZ_64K, 0x10000,
	  { { 0x10000, SZ_32K }, { 0x18000, SZ_32K } },
	  SZ_4K | SZ_64K, SZ_64K },
	{ "start within a page", 0x10a80, SZ_64K - 0xa80, 0x30a80,
	  { { 0x20000, SZ_64K } }, SZ_4K | SZ_64K, SZ_64K },
	{ "start and end within a page", 0x10a80, SZ_32K, 0x30a80,
	  { { 0x20000, SZ_32K }, { 0x90000, SZ_4K } }, SZ_512 | SZ_4K, SZ_4K },
	{ "end of the address space", 0x1000, SZ_4K, U64_MAX - SZ_4K + 1,
	  { { 0x1000, SZ_4K } }, SZ_4K, SZ_4K },
	{ "beyond the address space", 0x1800, SZ_4K, U64_MAX - 0x7ff,
	  { { 0x1000, SZ_8K } }, SZ_4K, 0 },
	{ "no size is small enough", 0x1000, SZ_8K, 0x1000,
	  { { 0x3000, SZ_8K } }, SZ_2M, 0 },
	{ "no sizes", 0x1000, SZ_4K, 0x1000, { { 0x1000, SZ_4K } }, 0, 0 },
};

static void blocks_umem(const struct blocks_row *row, struct ib_umem *umem, struct scatterlist *sg)
{
	int i, nents = row->run[1].len ? 2 : 1;

	memset(umem, 0, sizeof(*umem));
	umem->address = row->address;
	umem->length = row->length;
	sg_init_table(sg, nents);
	for (i = 0; i < nents; i++) {
		sg_dma_address(&sg[i]) = row->run[i].dma;
		sg_dma_len(&sg[i]) = row->run[i].len;
	}
	umem->sgt_append.sgt.sgl = sg;
	umem->sgt_append.sgt.nents = nents;
	umem->sgt_append.sgt.orig_nents = nents;
}

/* DMA address of the byte at an offset from the start of the first page. */
static u64 blocks_dma(const struct blocks_row *row, u64 offset)
{
	if (offset < row->run[0].len)
		return row->run[0].dma + offset;
	return row->run[1].dma + offset - row->run[0].len;
}

/* The address of each block follows from that of its first byte within the memory. */
static void blocks_walk(struct kunit *test, const struct blocks_row *row,
			struct ib_umem *umem, unsigned long size)
{
	u64 skip = offset_in_page(row->address);
	u64 va = ALIGN_DOWN(row->virt, (u64)size), in, dma;
	struct ib_block_iter biter;
	size_t nr = 0;

	rdma_umem_for_each_dma_block(umem, &biter, size) {
		in = max(va, row->virt);
		dma = blocks_dma(row, in - row->virt + skip) - (in - va);
		KUNIT_EXPECT_EQ_MSG(test, dma, rdma_block_iter_dma_address(&biter),
				    "%s: block %zu of %lu", row->what, nr, size);
		va += size;
		nr++;
	}
	KUNIT_EXPECT_EQ_MSG(test, ib_umem_num_dma_blocks(umem, size), nr,
			    "%s: blocks of %lu", row->what, size);
	KUNIT_EXPECT_EQ_MSG(test, row->virt + row->length - 1,
			    clamp(row->virt + row->length - 1, va - size, va - 1),
			    "%s: end with blocks of %lu", row->what, size);
}

static void blocks_are_as_large_as_can_be(struct kunit *test)
{
	const struct blocks_row *row = blocks_rows;
	struct scatterlist sg[RUNS];
	struct ib_umem umem;
	unsigned long best;

	for (; row < blocks_rows + ARRAY_SIZE(blocks_rows); row++) {
		blocks_umem(row, &umem, sg);
		best = ib_umem_find_best_pgsz(&umem, row->sizes, row->virt);
		KUNIT_EXPECT_EQ_MSG(test, row->best, best, "%s", row->what);
		KUNIT_EXPECT_EQ(test, row->virt, umem.iova);
		if (!best)
			continue;
		blocks_walk(test, row, &umem, best);
		blocks_walk(test, row, &umem, SZ_4K);
		blocks_walk(test, row, &umem, SZ_512);
	}
}

static void offset_takes_the_place_of_an_address(struct kunit *test)
{
	const struct blocks_row row = {
		"", 0x10a80, SZ_4K, 0, { { 0x20000, SZ_64K } }, 0, 0
	};
	struct scatterlist sg[RUNS];
	struct ib_umem umem;

	blocks_umem(&row, &umem, sg);
	KUNIT_EXPECT_EQ(test, 0xa80, ib_umem_dma_offset(&umem, SZ_64K));
	KUNIT_EXPECT_EQ(test, 0x80, ib_umem_dma_offset(&umem, SZ_512));
	/* The mask covers the whole offset: one block of the smallest size is enough. */
	KUNIT_EXPECT_EQ(test, SZ_8K, ib_umem_find_best_pgoff(&umem, SZ_8K | SZ_64K, SZ_64K - 1));
	KUNIT_EXPECT_EQ(test, 0xa80, umem.iova);
	/* The mask cuts off low bits of the offset: no block size fits. */
	KUNIT_EXPECT_EQ(test, 0, ib_umem_find_best_pgoff(&umem, SZ_8K | SZ_64K, 0xf00));
}

static void scatter_list_is_walked_to_its_end(struct kunit *test)
{
	static const u64 want[] = { 0x10000, 0x11000, 0x30000 };
	const struct blocks_row row = {
		"", 0, 0, 0, { { 0x10000, SZ_8K }, { 0x30000, SZ_4K } }, 0, 0
	};
	struct scatterlist sg[RUNS];
	struct ib_block_iter biter;
	struct ib_umem umem;
	int i = 0;

	blocks_umem(&row, &umem, sg);
	rdma_for_each_block(sg, &biter, 2, SZ_4K) {
		KUNIT_ASSERT_LT(test, i, ARRAY_SIZE(want));
		KUNIT_EXPECT_EQ(test, want[i++], rdma_block_iter_dma_address(&biter));
	}
	KUNIT_EXPECT_EQ(test, ARRAY_SIZE(want), i);
}

/* User memory regions */

static void user_mr_lives_and_is_counted(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	unsigned long addr = map_pages(test, 2, RW);
	struct ib_mr *mr = ib_reg_user_mr(pd, addr + 8, PAGE_SIZE, 0x40008, IB_ACCESS_LOCAL_WRITE);
	struct page *page;

	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(mr));
	KUNIT_EXPECT_PTR_EQ(test, mr->pd, pd);
	KUNIT_EXPECT_PTR_EQ(test, mr->device, m->ibdev);
	KUNIT_EXPECT_EQ(test, IB_MR_TYPE_USER, mr->type);
	KUNIT_EXPECT_EQ(test, 0x40008, mr->iova);
	KUNIT_EXPECT_EQ(test, PAGE_SIZE, mr->length);
	KUNIT_EXPECT_STREQ(test, mr->res.kern_name, pd->res.kern_name);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_dealloc_pd_user(pd, NULL));
	KUNIT_EXPECT_EQ(test, 2, kvt_pinned_pages());
	page = first_page(mock_mr_umem(mr));
	KUNIT_EXPECT_TRUE(test, is_pinned(page));
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	KUNIT_EXPECT_FALSE(test, is_pinned(page));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

static int user_mr_error(struct ib_pd *pd, u64 start, u64 length, u64 virt, int access)
{
	return PTR_ERR_OR_ZERO(ib_reg_user_mr(pd, start, length, virt, access));
}

static void bad_user_mr_is_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	u64 addr = map_pages(test, 1, RW);

	KUNIT_EXPECT_EQ(test, -EINVAL, user_mr_error(pd, addr, 0, addr, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, user_mr_error(pd, U64_MAX, 2, addr, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, user_mr_error(pd, addr, PAGE_SIZE, -PAGE_SIZE + 1, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, user_mr_error(pd, addr, 1, 0, IB_ACCESS_REMOTE_WRITE));
	KUNIT_EXPECT_EQ(test, -EINVAL, user_mr_error(pd, addr, 1, 0, BIT(30)));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, user_mr_error(pd, addr, 1, 0, IB_ACCESS_ON_DEMAND));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_reg_user_mr));

	KUNIT_EXPECT_EQ(test, -EFAULT, user_mr_error(pd, addr, PAGE_SIZE + 1, addr, 0));
	mock_fail(m, MOCK_reg_user_mr, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, user_mr_error(pd, addr, 1, addr, 0));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

static struct kunit_case core_umem_cases[] = {
	KUNIT_CASE(memory_is_pinned_and_mapped_in_order),
	KUNIT_CASE(release_of_nothing_is_fine),
	KUNIT_CASE(memory_is_read),
	KUNIT_CASE(new_access_must_suit_the_memory),
	KUNIT_CASE(device_sees_what_is_written_later),
	KUNIT_CASE(pages_are_dirty_if_the_device_may_write),
	KUNIT_CASE(bad_addresses_are_refused),
	KUNIT_CASE(m11_memory_is_pinned_as_it_may_be_accessed),
	KUNIT_CASE(failure_in_the_middle_unpins_all),
	KUNIT_CASE(bad_ranges_are_refused),
	KUNIT_CASE(limit_on_locked_memory_holds),
	KUNIT_CASE(count_is_the_same_at_release),
	KUNIT_CASE(memory_outlives_its_process),
	KUNIT_CASE(blocks_are_as_large_as_can_be),
	KUNIT_CASE(offset_takes_the_place_of_an_address),
	KUNIT_CASE(scatter_list_is_walked_to_its_end),
	KUNIT_CASE(user_mr_lives_and_is_counted),
	KUNIT_CASE(bad_user_mr_is_refused),
	{}
};
KVT_SUITE(core_umem);
