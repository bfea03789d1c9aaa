// SPDX-License-Identifier: GPL-2.0-only
/*
 * P2PDMA memory of a device: which parts of a BAR are accepted, how its pages are told from
 * others, and when it is released.
 */
#include <linux/memremap.h>
#include <kverbs/p2pdma.h>

#include "p2p/rig.h"

static u64 bar_start(struct pci_dev *pdev)
{
	return pci_resource_start(pdev, P2P_RIG_BAR);
}

/* Whether there are struct pages at @offset in the BAR. */
static bool has_pages(struct pci_dev *pdev, u64 offset)
{
	struct dev_pagemap *pgmap = get_dev_pagemap(PHYS_PFN(bar_start(pdev) + offset), NULL);

	if (pgmap)
		put_dev_pagemap(pgmap);
	return pgmap;
}

static size_t allocatable(struct kunit *test, struct pci_dev *pdev)
{
	static void *mem[P2P_RIG_SIZE / SZ_2M + 1];
	int nr = 0, i;

	while (nr < ARRAY_SIZE(mem) && (mem[nr] = pci_alloc_p2pmem(pdev, SZ_2M)))
		nr++;
	for (i = 0; i < nr; i++)
		pci_free_p2pmem(pdev, mem[i], SZ_2M);
	return (size_t)nr * SZ_2M;
}

/* Memory that pci_p2pdma_add_resource() must refuse. */
struct refusal {
	const char *what;	/* description of the case */
	int bar;		/* argument of pci_p2pdma_add_resource() */
	size_t size;		/* likewise */
	u64 offset;		/* likewise */
};

static const struct refusal refusals[] = {
	{ "no such BAR", -1 },
	{ "behind the last BAR", PCI_STD_NUM_BARS },
	{ "the other half of a BAR", P2P_RIG_BAR + 1 },
	{ "registers", 0 },
	{ "behind the end", P2P_RIG_BAR, SZ_2M, P2P_RIG_SIZE },
	{ "all from the end on", P2P_RIG_BAR, 0, P2P_RIG_SIZE },
	{ "all from behind the end on", P2P_RIG_BAR, 0, P2P_RIG_SIZE + SZ_2M },
	{ "more than there is", P2P_RIG_BAR, P2P_RIG_SIZE + SZ_2M, 0 },
	{ "over the end", P2P_RIG_BAR, P2P_RIG_SIZE, SZ_2M },
	{ "around the end of all addresses", P2P_RIG_BAR, SZ_4M, -(u64)SZ_2M },
	{ "size and offset wrap", P2P_RIG_BAR, -(size_t)SZ_2M, SZ_4M },
	{ "an odd size", P2P_RIG_BAR, SZ_2M + PAGE_SIZE, 0 },
	{ "an odd offset", P2P_RIG_BAR, SZ_2M, PAGE_SIZE },
	{ "all from an odd offset on", P2P_RIG_BAR, 0, SZ_1M },
	{ "a byte", P2P_RIG_BAR, 1, 0 },
};

KUNIT_ARRAY_PARAM_DESC(refusal, refusals, what);

static void what_is_not_memory_of_the_device_is_refused(struct kunit *test)
{
	const struct refusal *r = test->param_value;
	struct pci_dev *pdev = p2p_rig_new(test, 1)->pdev[0];

	KUNIT_EXPECT_EQ(test, -EINVAL, pci_p2pdma_add_resource(pdev, r->bar, r->size, r->offset));
	pci_p2pmem_publish(pdev, true);
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(pdev));
	KUNIT_EXPECT_FALSE(test, has_pages(pdev, 0));
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, PAGE_SIZE));
	/* The refused call has left nothing behind that is in the way. */
	KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0));
}

static void a_whole_bar_is_taken(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_new(test, 1)->pdev[0];

	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0));
	KUNIT_EXPECT_TRUE(test, has_pages(pdev, 0));
	KUNIT_EXPECT_TRUE(test, has_pages(pdev, P2P_RIG_SIZE - PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, P2P_RIG_SIZE, allocatable(test, pdev));
}

static void a_part_of_a_bar_is_taken(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_new(test, 1)->pdev[0];
	void *addr;

	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, SZ_4M, SZ_2M));
	KUNIT_EXPECT_FALSE(test, has_pages(pdev, 0));
	KUNIT_EXPECT_TRUE(test, has_pages(pdev, SZ_2M));
	KUNIT_EXPECT_FALSE(test, has_pages(pdev, SZ_2M + SZ_4M));
	addr = KVT_PTR(test, pci_alloc_p2pmem(pdev, SZ_4M));
	KUNIT_EXPECT_EQ(test, bar_start(pdev) + SZ_2M, virt_to_phys(addr));
	KUNIT_EXPECT_EQ(test, pci_bus_address(pdev, P2P_RIG_BAR) + SZ_2M + 5,
			pci_p2pmem_virt_to_bus(pdev, addr + 5));
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, 1));
	pci_free_p2pmem(pdev, addr, SZ_4M);
}

static void parts_add_up(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_new(test, 1)->pdev[0];

	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, SZ_2M, 0));
	KUNIT_EXPECT_EQ(test, SZ_2M, allocatable(test, pdev));
	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, SZ_4M, SZ_8M));
	KUNIT_EXPECT_EQ(test, SZ_2M + SZ_4M, allocatable(test, pdev));
}

static void memory_is_taken_once(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_new(test, 1)->pdev[0];

	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, SZ_4M, SZ_4M));
	KUNIT_EXPECT_EQ(test, -EBUSY, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, SZ_4M, SZ_4M));
	KUNIT_EXPECT_EQ(test, -EBUSY, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0));
	KUNIT_EXPECT_EQ(test, -EBUSY, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, SZ_4M, SZ_2M));
	KUNIT_EXPECT_EQ(test, -EBUSY, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, SZ_2M,
							      SZ_2M + SZ_4M));
	KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, SZ_4M, 0));
	KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, SZ_8M));
	KUNIT_EXPECT_EQ(test, P2P_RIG_SIZE, allocatable(test, pdev));
}

static void only_published_memory_is_for_others(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_new(test, 1)->pdev[0];
	struct pci_dev *found;

	pci_p2pmem_publish(pdev, true);
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(pdev));
	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0));
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(pdev));
	KUNIT_EXPECT_NULL(test, pci_p2pmem_find(&pdev->dev));
	/* The driver itself may use memory that is not published. */
	KUNIT_EXPECT_EQ(test, P2P_RIG_SIZE, allocatable(test, pdev));

	pci_p2pmem_publish(pdev, true);
	KUNIT_EXPECT_TRUE(test, pci_has_p2pmem(pdev));
	found = pci_p2pmem_find(&pdev->dev);
	KUNIT_EXPECT_PTR_EQ(test, pdev, found);
	pci_dev_put(found);

	pci_p2pmem_publish(pdev, false);
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(pdev));
	KUNIT_EXPECT_NULL(test, pci_p2pmem_find(&pdev->dev));
}

static void its_pages_are_told_from_others(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_up(test, 1);
	struct page *ram = alloc_page(GFP_KERNEL);
	struct pci_dev *provider;
	void *addr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ram);
	KUNIT_EXPECT_FALSE(test, is_pci_p2pdma_page(ram));
	KUNIT_EXPECT_NULL(test, kverbs_p2pdma_page_provider(ram));
	__free_page(ram);
	for (i = 0; i < rig->nr; i++) {
		addr = KVT_PTR(test, pci_alloc_p2pmem(rig->pdev[i], PAGE_SIZE));
		KUNIT_EXPECT_TRUE(test, is_pci_p2pdma_page(virt_to_page(addr)));
		provider = kverbs_p2pdma_page_provider(virt_to_page(addr));
		KUNIT_EXPECT_PTR_EQ(test, rig->pdev[i], provider);
		pci_dev_put(provider);
		pci_free_p2pmem(rig->pdev[i], addr, PAGE_SIZE);
	}
}

static void expect_gone(struct kunit *test, struct pci_dev *pdev)
{
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(pdev));
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, PAGE_SIZE));
	KUNIT_EXPECT_FALSE(test, has_pages(pdev, 0));
	/* Publishing has no effect. */
	pci_p2pmem_publish(pdev, true);
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(pdev));
}

static void it_goes_with_its_driver(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);

	p2p_rig_unbind(pdev);
	expect_gone(test, pdev);
	KUNIT_ASSERT_TRUE(test, p2p_rig_bind(pdev));
	expect_gone(test, pdev);
	KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0));
	KUNIT_EXPECT_EQ(test, P2P_RIG_SIZE, allocatable(test, pdev));
}

static int add_and_fail(struct p2p_rig *rig, struct pci_dev *pdev)
{
	int err = pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0);

	pci_p2pmem_publish(pdev, true);
	return err ?: -EIO;
}

static void it_goes_when_the_probe_fails(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_new(test, 1);
	struct pci_dev *pdev = rig->pdev[0];

	p2p_rig_unbind(pdev);
	rig->on_probe = add_and_fail;
	KUNIT_EXPECT_FALSE(test, p2p_rig_bind(pdev));
	expect_gone(test, pdev);
}

/* Called in the driver's remove(): checks that memory can still be allocated. */
static void see_memory(struct p2p_rig *rig, struct pci_dev *pdev)
{
	void *addr = pci_alloc_p2pmem(pdev, PAGE_SIZE);

	*(bool *)rig->arg = addr;
	if (addr)
		pci_free_p2pmem(pdev, addr, PAGE_SIZE);
}

static void its_driver_has_it_until_it_has_been_removed(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_up(test, 1);
	bool seen = false;

	rig->arg = &seen;
	rig->on_remove = see_memory;
	p2p_rig_unbind(rig->pdev[0]);
	rig->on_remove = NULL;
	KUNIT_EXPECT_TRUE(test, seen);
}

static int unbind(void *arg)
{
	p2p_rig_unbind(arg);
	return 0;
}

static void until_unpublished(struct kunit *test, struct pci_dev *pdev)
{
	kvt_until(!pci_has_p2pmem(pdev));
}

static void what_is_allocated_stays_until_it_is_freed(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct kvt_thread *thread;
	u32 *addr;

	if (!p2p_rig_is_own(pdev))
		kunit_skip(test, "the kernel has its own way");
	addr = KVT_PTR(test, pci_alloc_p2pmem(pdev, PAGE_SIZE + 1));
	thread = kvt_thread_start(test, -1, unbind, pdev);
	until_unpublished(test, pdev);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(thread));
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(pdev));
	KUNIT_EXPECT_FALSE(test, p2p_rig_can_alloc(pdev, PAGE_SIZE));
	KUNIT_EXPECT_TRUE(test, has_pages(pdev, 0));
	WRITE_ONCE(*addr, 0x70327032);
	KUNIT_EXPECT_EQ(test, 0x70327032, READ_ONCE(*addr));
	pci_free_p2pmem(pdev, addr, PAGE_SIZE + 1);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(thread));
	expect_gone(test, pdev);
}

static struct kunit_case p2p_provider_cases[] = {
	KUNIT_CASE_PARAM(what_is_not_memory_of_the_device_is_refused, refusal_gen_params),
	KUNIT_CASE(a_whole_bar_is_taken),
	KUNIT_CASE(a_part_of_a_bar_is_taken),
	KUNIT_CASE(parts_add_up),
	KUNIT_CASE(memory_is_taken_once),
	KUNIT_CASE(only_published_memory_is_for_others),
	KUNIT_CASE(its_pages_are_told_from_others),
	KUNIT_CASE(it_goes_with_its_driver),
	KUNIT_CASE(it_goes_when_the_probe_fails),
	KUNIT_CASE(its_driver_has_it_until_it_has_been_removed),
	KUNIT_CASE(what_is_allocated_stays_until_it_is_freed),
	{}
};
KVT_SUITE(p2p_provider);

MODULE_DESCRIPTION("KUnit: memory of devices for peer-to-peer DMA");
MODULE_LICENSE("GPL");
