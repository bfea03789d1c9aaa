// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mapping scatter lists of peer-to-peer memory for clients: by bus address, through the host
 * bridge, or not at all, as the route from the client to the provider says.
 */
#include <linux/dma-mapping.h>
#include <linux/kref.h>
#include <linux/platform_device.h>
#include <linux/scatterlist.h>
#include <kverbs/p2pdma.h>

#include "p2p/rig.h"

#define POLICY		"/sys/module/kverbs_p2pdma/parameters/policy"
#define ENTRIES		4

/* A scatter list with an allocation of its own for each entry. */
struct list {
	struct sg_table sgt;			/* the scatter table */
	/* By entry, the provider of its memory; NULL for system memory. */
	struct pci_dev *pdev[ENTRIES];
	struct scatterlist entries[ENTRIES];	/* the entries of @sgt */
};

static void list_end(void *arg)
{
	struct list *list = arg;
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&list->sgt, sg, i) {
		if (list->pdev[i])
			pci_free_p2pmem(list->pdev[i], sg_virt(sg) - sg->offset, PAGE_SIZE);
		else
			__free_page(sg_page(sg));
	}
}

static void *list_memory(struct pci_dev *pdev)
{
	return pdev ? pci_alloc_p2pmem(pdev, PAGE_SIZE) : (void *)__get_free_page(GFP_KERNEL);
}

/* The entries are parts of pages, of providers @a and @b in turn; NULL for system memory. */
static struct list *list_new(struct kunit *test, struct pci_dev *a, struct pci_dev *b)
{
	struct list *list = kvt_zalloc(test, sizeof(*list));
	void *addr;
	int i;

	sg_init_table(list->entries, ENTRIES);
	list->sgt.sgl = list->entries;
	list->sgt.orig_nents = ENTRIES;
	list->sgt.nents = ENTRIES;
	for (i = 0; i < ENTRIES; i++) {
		list->pdev[i] = i % 2 ? b : a;
		addr = KVT_PTR(test, list_memory(list->pdev[i]));
		sg_set_page(&list->entries[i], virt_to_page(addr), PAGE_SIZE - 64 * (i + 1),
			    64 * i);
	}
	kvt_defer(test, list_end, list);
	return list;
}

/* For a list that must be freed before its provider is unbound. */
static void list_free(struct kunit *test, struct list *list)
{
	kunit_release_action(test, list_end, list);
}

static int list_map(struct list *list, struct device *dev)
{
	return kverbs_p2pdma_map_sgtable(dev, &list->sgt, DMA_BIDIRECTIONAL, 0);
}

static void list_unmap(struct list *list, struct device *dev)
{
	kverbs_p2pdma_unmap_sgtable(dev, &list->sgt, DMA_BIDIRECTIONAL, 0);
}

static void expect_by_bus(struct kunit *test, const struct list *list)
{
	struct scatterlist *sg;
	unsigned int i;

	KUNIT_EXPECT_EQ(test, list->sgt.orig_nents, list->sgt.nents);
	for_each_sgtable_dma_sg(&list->sgt, sg, i) {
		KUNIT_EXPECT_EQ(test, sg->length, sg_dma_len(sg));
		KUNIT_EXPECT_EQ(test, pci_p2pmem_virt_to_bus(list->pdev[i], sg_virt(sg)),
				sg_dma_address(sg));
	}
}

/* An unmapped list keeps no bus-address marks, as its next mapping may be of another type. */
static void expect_no_mark(struct kunit *test, const struct list *list)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(&list->sgt, sg, i)
		KUNIT_EXPECT_FALSE(test, kv_sg_is_bus_address(sg));
}

static unsigned int refs(struct pci_dev *pdev)
{
	return kref_read(&pdev->dev.kobj.kref);
}

static u64 dma_bytes(const struct list *list)
{
	struct scatterlist *sg;
	unsigned int i;
	u64 bytes = 0;

	for_each_sgtable_dma_sg(&list->sgt, sg, i)
		bytes += sg_dma_len(sg);
	return bytes;
}

static u64 bytes(const struct list *list)
{
	struct scatterlist *sg;
	unsigned int i;
	u64 bytes = 0;

	for_each_sgtable_sg(&list->sgt, sg, i)
		bytes += sg->length;
	return bytes;
}

static void a_device_reaches_its_own_memory_by_bus_address(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct list *list = list_new(test, pdev, pdev);
	unsigned int before = refs(pdev);
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, 0, list_map(list, &pdev->dev));
		expect_by_bus(test, list);
		list_unmap(list, &pdev->dev);
		expect_no_mark(test, list);
	}
	KUNIT_EXPECT_EQ(test, before, refs(pdev));
}

static void each_pair_is_mapped_as_its_route_says(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_up(test, 2);
	struct kverbs_p2pdma_route route;
	struct device *client;
	struct list *list;
	int i, j, ret;

	for (i = 0; i < rig->nr; i++) {
		list = list_new(test, rig->pdev[i], rig->pdev[i]);
		for (j = 0; j < rig->nr; j++) {
			client = &rig->pdev[j]->dev;
			kverbs_p2pdma_route(rig->pdev[i], client, &route);
			ret = list_map(list, client);
			if (route.map == KVERBS_P2PDMA_REFUSED) {
				KUNIT_EXPECT_EQ(test, -EREMOTEIO, ret);
				continue;
			}
			KUNIT_ASSERT_EQ_MSG(test, 0, ret, "%s to %s", dev_name(client),
					    pci_name(rig->pdev[i]));
			if (route.map == KVERBS_P2PDMA_BUS_ADDR)
				expect_by_bus(test, list);
			KUNIT_EXPECT_EQ(test, bytes(list), dma_bytes(list));
			list_unmap(list, client);
		}
		list_free(test, list);
	}
}

static void what_is_refused_goes_through_the_host_bridge_by_policy(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_up(test, 2);
	struct pci_dev *provider = rig->pdev[0];
	struct kverbs_p2pdma_route route;
	struct device *client = NULL;
	struct list *list;
	int i;

	if (!p2p_rig_is_own(provider))
		kunit_skip(test, "the kernel has no such policy");
	for (i = 1; i < rig->nr && !client; i++)
		if (kverbs_p2pdma_route(provider, &rig->pdev[i]->dev, &route) == -EREMOTEIO)
			client = &rig->pdev[i]->dev;
	if (!client)
		kunit_skip(test, "all devices reach each other");
	kvt_restore_file(test, POLICY, "deny");
	list = list_new(test, provider, provider);
	KUNIT_EXPECT_EQ(test, -EREMOTEIO, list_map(list, client));
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(POLICY, "force"));
	KUNIT_ASSERT_EQ(test, 0, list_map(list, client));
	KUNIT_EXPECT_EQ(test, bytes(list), dma_bytes(list));
	list_unmap(list, client);
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(POLICY, "deny"));
	KUNIT_EXPECT_EQ(test, -EREMOTEIO, list_map(list, client));
	list_free(test, list);
}

static void other_lists_are_not_mapped(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_up(test, 2);
	struct device *dev = &rig->pdev[0]->dev;
	struct pci_dev *a = rig->pdev[0], *b = rig->pdev[1];

	KUNIT_EXPECT_EQ(test, -EINVAL, list_map(list_new(test, NULL, NULL), dev));
	KUNIT_EXPECT_EQ(test, -EINVAL, list_map(list_new(test, a, NULL), dev));
	KUNIT_EXPECT_EQ(test, -EINVAL, list_map(list_new(test, NULL, a), dev));
	KUNIT_EXPECT_EQ(test, -EINVAL, list_map(list_new(test, a, b), dev));
	KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_map_sg(dev, list_new(test, a, b)->entries, ENTRIES,
						   DMA_TO_DEVICE));
}

static void a_list_without_a_table_is_mapped(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct list *list = list_new(test, pdev, pdev);

	KUNIT_ASSERT_EQ(test, ENTRIES, pci_p2pdma_map_sg(&pdev->dev, list->entries, ENTRIES,
							 DMA_TO_DEVICE));
	expect_by_bus(test, list);
	pci_p2pdma_unmap_sg(&pdev->dev, list->entries, ENTRIES, DMA_TO_DEVICE);
}

KUNIT_DEFINE_ACTION_WRAPPER(child_end, platform_device_unregister, struct platform_device *);

/* Registers a device that is not a PCI function; @parent may be one, or NULL. */
static struct device *child_new(struct kunit *test, struct device *parent, u64 mask)
{
	struct platform_device_info info = {
		.parent = parent, .name = "kvt_p2p_child", .id = PLATFORM_DEVID_AUTO,
		.dma_mask = mask,
	};
	struct platform_device *child = KVT_PTR(test, platform_device_register_full(&info));

	kvt_defer(test, child_end, child);
	return &child->dev;
}

static void a_device_below_a_function_is_where_that_is(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct device *child = child_new(test, &pdev->dev, DMA_BIT_MASK(64));
	struct list *list = list_new(test, pdev, pdev);

	KUNIT_ASSERT_EQ(test, 0, list_map(list, child));
	expect_by_bus(test, list);
	list_unmap(list, child);
}

static void a_device_elsewhere_has_no_way(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct device *child = child_new(test, NULL, DMA_BIT_MASK(64));
	struct list *list = list_new(test, pdev, pdev);

	KUNIT_EXPECT_EQ(test, -EREMOTEIO, list_map(list, child));
	KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_map_sg(child, list->entries, ENTRIES, DMA_TO_DEVICE));
}

static void an_address_has_bits_that_the_device_has_not(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct device *child = child_new(test, &pdev->dev, DMA_BIT_MASK(24));
	struct list *list = list_new(test, pdev, pdev);

	KUNIT_EXPECT_EQ(test, -EIO, list_map(list, child));
}

static int unbind(void *arg)
{
	p2p_rig_unbind(arg);
	return 0;
}

static void what_goes_is_not_mapped_any_more(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct list *list = list_new(test, pdev, pdev);
	struct kvt_thread *thread;

	if (!p2p_rig_is_own(pdev))
		kunit_skip(test, "the kernel has its own way");
	KUNIT_ASSERT_EQ(test, 0, list_map(list, &pdev->dev));
	thread = kvt_thread_start(test, -1, unbind, pdev);
	kvt_until(!pci_has_p2pmem(pdev));
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(thread));
	list_unmap(list, &pdev->dev);
	KUNIT_EXPECT_EQ(test, -ENODEV, list_map(list, &pdev->dev));
	list_free(test, list);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(thread));
}

static struct kunit_case p2p_map_cases[] = {
	KUNIT_CASE(a_device_reaches_its_own_memory_by_bus_address),
	KUNIT_CASE(each_pair_is_mapped_as_its_route_says),
	KUNIT_CASE(what_is_refused_goes_through_the_host_bridge_by_policy),
	KUNIT_CASE(other_lists_are_not_mapped),
	KUNIT_CASE(a_list_without_a_table_is_mapped),
	KUNIT_CASE(a_device_below_a_function_is_where_that_is),
	KUNIT_CASE(a_device_elsewhere_has_no_way),
	KUNIT_CASE(an_address_has_bits_that_the_device_has_not),
	KUNIT_CASE(what_goes_is_not_mapped_any_more),
	{}
};
KVT_SUITE(p2p_map);
