// SPDX-License-Identifier: GPL-2.0-only
/*
 * Maps scatter lists of peer-to-peer memory for a device.
 *
 * The list itself is the only record of a mapping. Kernels that know peer-to-peer memory
 * mark the entries that are mapped by bus address. On other kernels, the address tells:
 * the kernel keeps the bus addresses below a host bridge out of the IOVAs of what is there; and
 * where no IOMMU translates, and the host address equals the bus address, there is nothing to undo.
 *
 * For a PCI function and memory that the kernel keeps, dma_map_sgtable() does
 * everything. It refuses to map such memory for any other device. For devices below a
 * PCI function we map it, as memory without pages if the route leads through the host
 * bridge.
 */
#include <linux/dma-mapping.h>
#include <linux/export.h>

#include "p2pdma.h"
#include "provider.h"
#include "trace.h"

/**
 * struct p2p_transfer - a list to map, and the two devices
 * @dev: the device it is mapped for
 * @provider: the device whose memory it is, with a reference
 * @sgt: the list
 * @dir: as for dma_map_sgtable()
 * @attrs: as for dma_map_sgtable()
 */
struct p2p_transfer {
	struct device *dev;
	struct pci_dev *provider;
	struct sg_table *sgt;
	enum dma_data_direction dir;
	unsigned long attrs;
};

/* Whether dma_map_sgtable() can map the page for the device: one of the kernel's own provider. */
static bool mapped_by_kernel(const struct device *dev, const struct page *page)
{
	return !p2p_resource_of(page) && dev_is_pci(dev);
}

/* Returns the offset from the host address to the bus address of memory of @provider. */
static u64 bus_offset(struct pci_dev *provider, const struct page *page)
{
	struct p2p_resource *res = p2p_resource_of(page);
	int bar;

	if (res)
		return res->bus_offset;
	bar = p2p_bar_of(provider, page_to_phys(page));
	return bar < 0 ? 0 : pci_bus_address(provider, bar) - pci_resource_start(provider, bar);
}

static u64 entry_bus_addr(struct pci_dev *provider, struct scatterlist *sg)
{
	return sg_phys(sg) + bus_offset(provider, sg_page(sg));
}

static bool page_is_of(const struct page *page, const struct dev_pagemap *pgmap)
{
	return kverbs_is_p2pdma_page(page) && page->pgmap == pgmap;
}

/*
 * Whether all pages of a list belong to one resource. Checks each page, because an entry may extend
 * over a border into another device's memory.
 */
static bool list_is_of_one_resource(struct sg_table *sgt)
{
	const struct dev_pagemap *pgmap = sg_page(sgt->sgl)->pgmap;
	struct sg_page_iter piter;

	for_each_sgtable_page(sgt, &piter, 0)
		if (!page_is_of(sg_page_iter_page(&piter), pgmap))
			return false;
	return true;
}

/*
 * Sets @provider to the one provider of all pages of a list, with a reference. Returns 0,
 * or -EINVAL if there is no such provider.
 */
static int list_provider(struct sg_table *sgt, struct pci_dev **provider)
{
	struct pci_dev *all = kverbs_p2pdma_page_provider(sg_page(sgt->sgl)), *pdev;
	const struct dev_pagemap *pgmap = sg_page(sgt->sgl)->pgmap;
	struct sg_page_iter piter;
	struct page *page;

	if (!all)
		return -EINVAL;
	for_each_sgtable_page(sgt, &piter, 0) {
		page = sg_page_iter_page(&piter);
		if (page_is_of(page, pgmap))
			continue;
		pdev = kverbs_p2pdma_page_provider(page);
		pci_dev_put(pdev);
		if (pdev != all) {
			pci_dev_put(all);
			return -EINVAL;
		}
		pgmap = page->pgmap;
	}
	*provider = all;
	return 0;
}

/* Whether the provider's removal has begun. */
static bool provider_is_going(const struct page *page)
{
	struct p2p_resource *res = p2p_resource_of(page);

	return res && percpu_ref_is_dying(&res->provider->users);
}

static bool is_mapped_by_bus(const struct p2p_transfer *t)
{
	struct scatterlist *sg = t->sgt->sgl;

	if (IS_ENABLED(CONFIG_PCI_P2PDMA))
		return kv_sg_is_bus_address(sg);
	return sg_dma_address(sg) == entry_bus_addr(t->provider, sg);
}

static void unmap_by_bus(const struct p2p_transfer *t)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(t->sgt, sg, i)
		sg_dma_unmark_bus_address(sg);
}

static int map_by_bus(const struct p2p_transfer *t)
{
	u64 mask = dma_get_mask(t->dev);
	struct scatterlist *sg;
	unsigned int i;
	u64 addr;

	for_each_sgtable_sg(t->sgt, sg, i) {
		addr = entry_bus_addr(t->provider, sg);
		if (addr + sg->length - 1 > mask) {
			unmap_by_bus(t);
			return -EIO;
		}
		sg_dma_address(sg) = addr;
		sg_dma_len(sg) = sg->length;
		sg_dma_mark_bus_address(sg);
	}
	t->sgt->nents = t->sgt->orig_nents;
	return 0;
}

static void unmap_resources(const struct p2p_transfer *t, unsigned int nents)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sg(t->sgt->sgl, sg, nents, i)
		dma_unmap_resource(t->dev, sg_dma_address(sg), sg_dma_len(sg), t->dir,
				   t->attrs);
}

/* Maps by dma_map_resource(): mapping pages might bounce memory that the DMA API does not know. */
static int map_resources(const struct p2p_transfer *t)
{
	struct scatterlist *sg;
	unsigned int i;
	dma_addr_t addr;

	for_each_sgtable_sg(t->sgt, sg, i) {
		addr = dma_map_resource(t->dev, sg_phys(sg), sg->length, t->dir, t->attrs);
		if (dma_mapping_error(t->dev, addr)) {
			unmap_resources(t, i);
			return -EIO;
		}
		sg_dma_address(sg) = addr;
		sg_dma_len(sg) = sg->length;
	}
	t->sgt->nents = t->sgt->orig_nents;
	return 0;
}

static int map_by_route(const struct p2p_transfer *t)
{
	struct kverbs_p2pdma_route route;
	int err;

	if (provider_is_going(sg_page(t->sgt->sgl)))
		return -ENODEV;
	err = kverbs_p2pdma_route(t->provider, t->dev, &route);
	if (err) {
		dev_warn_ratelimited(t->dev,
				     "cannot map peer-to-peer memory of %s: %s; use a closer provider, or see \"policy\" in Documentation/p2pdma.rst\n",
				     pci_name(t->provider),
				     kverbs_p2pdma_why_msg(route.why));
		err = -EREMOTEIO;
	} else if (route.map == KVERBS_P2PDMA_BUS_ADDR) {
		err = map_by_bus(t);
	} else {
		err = map_resources(t);
	}
	trace_p2p_map(t->provider, t->dev, route.map, t->sgt, err);
	return err;
}

/**
 * kverbs_p2pdma_map_sgtable() - map memory of one provider for a device
 * @dev: a PCI function, or a device below one
 * @sgt: the list. It must have pages of one provider only, and the caller must know
 *	that these stay. Split a list with pages of several providers, or of other
 *	memory, before the call
 * @dir: as for dma_map_sgtable()
 * @attrs: likewise
 *
 * Context: Any, for a PCI function and memory of one BAR or of our own provider; else
 * process.
 * Return: 0, and the list is mapped; -EINVAL if not all pages are of one provider;
 * -EREMOTEIO if @dev does not reach it; -ENODEV if the provider is going away; -EIO if
 * @dev has too few address bits for it; or what else dma_map_sgtable() returned.
 */
int kverbs_p2pdma_map_sgtable(struct device *dev, struct sg_table *sgt,
			      enum dma_data_direction dir, unsigned long attrs)
{
	struct p2p_transfer t = { .dev = dev, .sgt = sgt, .dir = dir, .attrs = attrs };
	bool by_kernel = mapped_by_kernel(dev, sg_page(sgt->sgl));
	int err;

	if (by_kernel && list_is_of_one_resource(sgt))
		return dma_map_sgtable(dev, sgt, dir, attrs);
	err = list_provider(sgt, &t.provider);
	if (err)
		return err;
	err = by_kernel ? dma_map_sgtable(dev, sgt, dir, attrs) : map_by_route(&t);
	pci_dev_put(t.provider);
	return err;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_map_sgtable);

/**
 * kverbs_p2pdma_unmap_sgtable() - undo kverbs_p2pdma_map_sgtable()
 * @dev: as there
 * @sgt: as there; its memory must not have been freed yet
 * @dir: as there
 * @attrs: as there
 *
 * Context: As kverbs_p2pdma_map_sgtable().
 */
void kverbs_p2pdma_unmap_sgtable(struct device *dev, struct sg_table *sgt,
				 enum dma_data_direction dir, unsigned long attrs)
{
	struct p2p_transfer t = { .dev = dev, .sgt = sgt, .dir = dir, .attrs = attrs };
	struct page *page = sg_page(sgt->sgl);

	if (mapped_by_kernel(dev, page)) {
		dma_unmap_sgtable(dev, sgt, dir, attrs);
		return;
	}
	t.provider = kverbs_p2pdma_page_provider(page);
	if (WARN_ON_ONCE(!t.provider))
		return;
	/* As map_by_route() did it. */
	if (is_mapped_by_bus(&t))
		unmap_by_bus(&t);
	else
		unmap_resources(&t, sgt->nents);
	pci_dev_put(t.provider);
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_unmap_sgtable);

/**
 * kverbs_p2pdma_map_sg_attrs() - as kverbs_p2pdma_map_sgtable(), for a list without a table
 * @dev: as there
 * @sg: the list
 * @nents: number of its entries
 * @dir: as there
 * @attrs: as there
 *
 * Context: As kverbs_p2pdma_map_sgtable().
 * Return: the number of mapped entries, or 0 on error.
 */
int kverbs_p2pdma_map_sg_attrs(struct device *dev, struct scatterlist *sg, int nents,
			       enum dma_data_direction dir, unsigned long attrs)
{
	struct sg_table sgt = { .sgl = sg, .nents = nents, .orig_nents = nents };

	if (kverbs_p2pdma_map_sgtable(dev, &sgt, dir, attrs))
		return 0;
	return sgt.nents;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_map_sg_attrs);

/**
 * kverbs_p2pdma_unmap_sg_attrs() - undo kverbs_p2pdma_map_sg_attrs()
 * @dev: as there
 * @sg: as there; its memory must not have been freed yet
 * @nents: the number that was passed there, not the one that was returned
 * @dir: as there
 * @attrs: as there
 *
 * Context: As kverbs_p2pdma_map_sgtable().
 */
void kverbs_p2pdma_unmap_sg_attrs(struct device *dev, struct scatterlist *sg, int nents,
				  enum dma_data_direction dir, unsigned long attrs)
{
	struct sg_table sgt = { .sgl = sg, .nents = nents, .orig_nents = nents };

	kverbs_p2pdma_unmap_sgtable(dev, &sgt, dir, attrs);
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_unmap_sg_attrs);
