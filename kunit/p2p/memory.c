// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer-to-peer memory of a PCI device is allocated and freed, directly and as scatter lists.
 */
#include <linux/scatterlist.h>
#include <kverbs/p2pdma.h>

#include "p2p/rig.h"

#define PAGES	(P2P_RIG_SIZE / PAGE_SIZE)

static u64 offset_of(struct pci_dev *pdev, void *addr)
{
	return virt_to_phys(addr) - pci_resource_start(pdev, P2P_RIG_BAR);
}

static void every_page_is_allocated_once(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	unsigned long *seen = kunit_kcalloc(test, BITS_TO_LONGS(PAGES), sizeof(*seen), GFP_KERNEL);
	void **mem = kunit_kcalloc(test, PAGES, sizeof(*mem), GFP_KERNEL);
	u64 page;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_ASSERT_NOT_NULL(test, mem);
	for (i = 0; i < PAGES; i++) {
		mem[i] = pci_alloc_p2pmem(pdev, PAGE_SIZE);
		KUNIT_ASSERT_NOT_NULL_MSG(test, mem[i], "page %d", i);
		page = offset_of(pdev, mem[i]) / PAGE_SIZE;
		KUNIT_ASSERT_LT(test, page, PAGES);
		KUNIT_ASSERT_FALSE(test, __test_and_set_bit(page, seen));
	}
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, 1));
	for (i = 0; i < PAGES; i++)
		pci_free_p2pmem(pdev, mem[i], PAGE_SIZE);
}

static void what_is_freed_is_in_one_piece_again(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	void *a, *b, *c;

	a = pci_alloc_p2pmem(pdev, P2P_RIG_SIZE / 2);
	b = pci_alloc_p2pmem(pdev, P2P_RIG_SIZE / 2);
	KUNIT_ASSERT_NOT_NULL(test, a);
	KUNIT_ASSERT_NOT_NULL(test, b);
	pci_free_p2pmem(pdev, a, P2P_RIG_SIZE / 2);
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, P2P_RIG_SIZE));
	pci_free_p2pmem(pdev, b, P2P_RIG_SIZE / 2);
	c = pci_alloc_p2pmem(pdev, P2P_RIG_SIZE);
	KUNIT_EXPECT_NOT_NULL(test, c);
	if (c)
		pci_free_p2pmem(pdev, c, P2P_RIG_SIZE);
}

static void whole_pages_are_allocated(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	void *rest, *addr;

	rest = KVT_PTR(test, pci_alloc_p2pmem(pdev, P2P_RIG_SIZE - 2 * PAGE_SIZE));
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, 0));
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, 2 * PAGE_SIZE + 1));
	addr = KVT_PTR(test, pci_alloc_p2pmem(pdev, PAGE_SIZE + 1));
	KUNIT_EXPECT_TRUE(test, PAGE_ALIGNED(addr));
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, 1));
	pci_free_p2pmem(pdev, addr, PAGE_SIZE + 1);
	pci_free_p2pmem(pdev, rest, P2P_RIG_SIZE - 2 * PAGE_SIZE);
}

/* Checks a page of the BAR through a new mapping, when its memory has no struct pages any more. */
static void expect_on_device(struct kunit *test, struct pci_dev *pdev, u64 offset, u8 byte)
{
	u8 *seen = memremap(pci_resource_start(pdev, P2P_RIG_BAR) + offset, PAGE_SIZE, MEMREMAP_WC);

	KUNIT_ASSERT_NOT_NULL(test, seen);
	KUNIT_EXPECT_NULL(test, memchr_inv(seen, byte, PAGE_SIZE));
	memunmap(seen);
}

static void it_is_the_memory_of_the_device(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	u8 *addr = KVT_PTR(test, pci_alloc_p2pmem(pdev, 2 * PAGE_SIZE));
	u64 offset = offset_of(pdev, addr);

	memset(addr, 0xa5, PAGE_SIZE);
	memset(addr + PAGE_SIZE, 0x5a, PAGE_SIZE);
	pci_free_p2pmem(pdev, addr, 2 * PAGE_SIZE);
	p2p_rig_unbind(pdev);
	expect_on_device(test, pdev, offset, 0xa5);
	expect_on_device(test, pdev, offset + PAGE_SIZE, 0x5a);
}

static void its_bus_address_is_that_of_the_bar(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	u8 *addr = KVT_PTR(test, pci_alloc_p2pmem(pdev, PAGE_SIZE));

	KUNIT_EXPECT_EQ(test, pci_bus_address(pdev, P2P_RIG_BAR) + offset_of(pdev, addr),
			pci_p2pmem_virt_to_bus(pdev, addr));
	KUNIT_EXPECT_EQ(test, 0, pci_p2pmem_virt_to_bus(pdev, NULL));
	pci_free_p2pmem(pdev, addr, PAGE_SIZE);
}

struct irq_alloc {
	struct pci_dev *pdev;
	void *addr;
};

static void alloc_there(void *arg)
{
	struct irq_alloc *a = arg;

	a->addr = pci_alloc_p2pmem(a->pdev, PAGE_SIZE);
}

static void free_there(void *arg)
{
	struct irq_alloc *a = arg;

	pci_free_p2pmem(a->pdev, a->addr, PAGE_SIZE);
}

static void interrupts_allocate_and_free(struct kunit *test)
{
	struct irq_alloc a = { .pdev = p2p_rig_provider(test) };

	kvt_run_in_hardirq(alloc_there, &a);
	KUNIT_ASSERT_NOT_NULL(test, a.addr);
	kvt_run_in_hardirq(free_there, &a);
	kvt_run_in_softirq(alloc_there, &a);
	KUNIT_ASSERT_NOT_NULL(test, a.addr);
	kvt_run_in_softirq(free_there, &a);
}

static void nothing_comes_of_what_is_no_provider(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_new(test, 1)->pdev[0];
	unsigned int nents = 7;

	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, PAGE_SIZE));
	KUNIT_EXPECT_NULL(test, pci_p2pmem_alloc_sgl(pdev, &nents, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, 7, nents);
	KUNIT_EXPECT_EQ(test, 0, pci_p2pmem_virt_to_bus(pdev, NULL));
}

static const u32 lengths[] = {
	1, PAGE_SIZE - 1, PAGE_SIZE, PAGE_SIZE + 1, 3 * PAGE_SIZE + 512, SZ_1M - 1,
	P2P_RIG_SIZE - 1, P2P_RIG_SIZE,
};

KVT_NUMBER_PARAM(length, lengths, "%u bytes");

static void a_list_is_as_long_as_asked(struct kunit *test)
{
	u32 length = *(const u32 *)test->param_value, sum = 0;
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct scatterlist *sgl, *sg;
	unsigned int nents = 0, i;
	void *all;

	sgl = KVT_PTR(test, pci_p2pmem_alloc_sgl(pdev, &nents, length));
	KUNIT_EXPECT_EQ(test, nents, sg_nents(sgl));
	for_each_sg(sgl, sg, nents, i) {
		KUNIT_EXPECT_TRUE(test, is_pci_p2pdma_page(sg_page(sg)));
		sum += sg->length;
	}
	KUNIT_EXPECT_EQ(test, length, sum);
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, P2P_RIG_SIZE));
	pci_p2pmem_free_sgl(pdev, sgl);
	all = pci_alloc_p2pmem(pdev, P2P_RIG_SIZE);
	KUNIT_EXPECT_NOT_NULL(test, all);
	if (all)
		pci_free_p2pmem(pdev, all, P2P_RIG_SIZE);
}

static void no_list_is_longer_than_there_is_memory(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	unsigned int nents;

	KUNIT_EXPECT_NULL(test, pci_p2pmem_alloc_sgl(pdev, &nents, P2P_RIG_SIZE + 1));
	KUNIT_EXPECT_NULL(test, pci_p2pmem_alloc_sgl(pdev, &nents, U32_MAX));
	KUNIT_EXPECT_NULL(test, pci_p2pmem_alloc_sgl(pdev, &nents, 0));
}

static struct kunit_case p2p_memory_cases[] = {
	KUNIT_CASE(every_page_is_allocated_once),
	KUNIT_CASE(what_is_freed_is_in_one_piece_again),
	KUNIT_CASE(whole_pages_are_allocated),
	KUNIT_CASE(it_is_the_memory_of_the_device),
	KUNIT_CASE(its_bus_address_is_that_of_the_bar),
	KUNIT_CASE(interrupts_allocate_and_free),
	KUNIT_CASE(nothing_comes_of_what_is_no_provider),
	KUNIT_CASE_PARAM(a_list_is_as_long_as_asked, length_gen_params),
	KUNIT_CASE(no_list_is_longer_than_there_is_memory),
	{}
};
KVT_SUITE(p2p_memory);
