// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread stands still while it takes a page from, or puts one into, a CPU's cache of free
 * pages, while others do so more often than a counter of few bits can count. Where they may
 * not sleep, the thread does not either. See kverbs/delay.h.
 */
#include <linux/sizes.h>
#include <kverbs/delay.h>
#include <kverbs/p2pdma.h>

#include "p2p/rig.h"

#define OTHERS		(SZ_64K + 1)
#define PAGES		(P2P_RIG_SIZE / PAGE_SIZE)
/* More than are at hand for a CPU. */
#define HELD		24

/* What others do with the memory. */
struct pool_others {
	struct pci_dev *pdev;	/* its device */
	void *mine;	/* the page that the thread that stands still is about to put; or NULL */
	void *kept;	/* the page that it was about to take, which they took and keep; or NULL */
	u32 failed;	/* pages that they did not get, though there are plenty */
	u32 twice;	/* pages that they got, though another has them */
};

/* Empties all that is at hand and fills it again, with other pages each time. */
static void others_go_on(void *arg)
{
	struct pool_others *o = arg;
	void *page[HELD];
	u32 i, n;

	for (i = 0; i < OTHERS / HELD; i++) {
		for (n = 0; n < HELD; n++) {
			page[n] = pci_alloc_p2pmem(o->pdev, PAGE_SIZE);
			o->failed += !page[n];
			o->twice += page[n] && page[n] == o->mine;
		}
		/* In another order, so that each slot gets another page. */
		for (n = 0; n < HELD; n++)
			if (page[(n + i) % HELD])
				pci_free_p2pmem(o->pdev, page[(n + i) % HELD], PAGE_SIZE);
	}
}

static void others_keep_one(void *arg)
{
	struct pool_others *o = arg;

	/* From the same slot, the first that has one. */
	o->kept = pci_alloc_p2pmem(o->pdev, PAGE_SIZE);
	others_go_on(o);
}

static struct pool_others *others_new(struct kunit *test)
{
	struct pool_others *o = kvt_zalloc(test, sizeof(*o));

	kvt_stay_on_first_cpu();
	o->pdev = p2p_rig_provider(test);
	if (!p2p_rig_is_own(o->pdev))
		kunit_skip(test, "the kernel has its own way");
	return o;
}

/* Each page can be had once: none was lost, none is there twice. */
static void expect_each_page_once(struct kunit *test, struct pool_others *o)
{
	unsigned long *seen = kunit_kcalloc(test, BITS_TO_LONGS(PAGES), sizeof(long), GFP_KERNEL);
	void **page = kunit_kcalloc(test, PAGES, sizeof(*page), GFP_KERNEL);
	u64 start = pci_resource_start(o->pdev, P2P_RIG_BAR), at;
	u32 i, nr = 0, twice = 0;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_ASSERT_NOT_NULL(test, page);
	while (nr < PAGES && (page[nr] = pci_alloc_p2pmem(o->pdev, PAGE_SIZE)))
		nr++;
	for (i = 0; i < nr; i++) {
		at = (virt_to_phys(page[i]) - start) >> PAGE_SHIFT;
		twice += at >= PAGES || __test_and_set_bit(at, seen);
		pci_free_p2pmem(o->pdev, page[i], PAGE_SIZE);
	}
	KUNIT_EXPECT_EQ(test, PAGES, nr);
	KUNIT_EXPECT_EQ(test, 0, twice);
	KUNIT_EXPECT_EQ(test, 0, o->failed);
	KUNIT_EXPECT_EQ(test, 0, o->twice);
}

static void page_that_is_taken_late_is_nobody_elses(struct kunit *test)
{
	struct pool_others *o = others_new(test);
	void *page;

	/* Puts some at hand. */
	pci_free_p2pmem(o->pdev, pci_alloc_p2pmem(o->pdev, PAGE_SIZE), PAGE_SIZE);
	kverbs_delay_set("p2p_slot_take", others_keep_one, o);
	page = pci_alloc_p2pmem(o->pdev, PAGE_SIZE);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_NOT_NULL(test, page);
	KUNIT_EXPECT_NOT_NULL(test, o->kept);
	KUNIT_EXPECT_PTR_NE(test, page, o->kept);
	o->mine = page;
	others_go_on(o);
	o->mine = NULL;
	if (page)
		pci_free_p2pmem(o->pdev, page, PAGE_SIZE);
	if (o->kept && o->kept != page)
		pci_free_p2pmem(o->pdev, o->kept, PAGE_SIZE);
	expect_each_page_once(test, o);
}

static void page_that_is_put_late_is_put_once(struct kunit *test)
{
	struct pool_others *o = others_new(test);
	void *page = KVT_PTR(test, pci_alloc_p2pmem(o->pdev, PAGE_SIZE));

	o->mine = page;
	kverbs_delay_set("p2p_slot_fill", others_go_on, o);
	pci_free_p2pmem(o->pdev, page, PAGE_SIZE);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	o->mine = NULL;
	expect_each_page_once(test, o);
}

static struct kunit_case p2p_standstill_cases[] = {
	KUNIT_CASE(page_that_is_taken_late_is_nobody_elses),
	KUNIT_CASE(page_that_is_put_late_is_put_once),
	{}
};
KVT_SUITE(p2p_standstill);
