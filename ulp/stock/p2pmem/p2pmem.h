/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included ahead of the kernel's own NVMe driver and target, on kernels without
 * CONFIG_PCI_P2PDMA: they use kverbs' provider, as they would use the kernel's.
 *
 * Headers in which the option changes a structure or a function come first, as the kernel itself
 * was built; only the drivers' own code sees the option set.
 */
#ifndef KVERBS_ULPS_P2PMEM_H
#define KVERBS_ULPS_P2PMEM_H

/* As most of these files define it, which would be too late now. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-map-ops.h>
#include <linux/dma-mapping.h>
#include <linux/memremap.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <kverbs/p2pdma.h>

/* The kernel's mappings of scatter lists do not know the memory of kverbs' providers. */
static inline int p2pmem_map_sgtable(struct device *dev, struct sg_table *sgt,
				     enum dma_data_direction dir, unsigned long attrs)
{
	if (is_pci_p2pdma_page(sg_page(sgt->sgl)))
		return kverbs_p2pdma_map_sgtable(dev, sgt, dir, attrs);
	return dma_map_sgtable(dev, sgt, dir, attrs);
}

static inline void p2pmem_unmap_sgtable(struct device *dev, struct sg_table *sgt,
					enum dma_data_direction dir, unsigned long attrs)
{
	if (is_pci_p2pdma_page(sg_page(sgt->sgl)))
		kverbs_p2pdma_unmap_sgtable(dev, sgt, dir, attrs);
	else
		dma_unmap_sgtable(dev, sgt, dir, attrs);
}

#define dma_map_sgtable		p2pmem_map_sgtable
#define dma_unmap_sgtable	p2pmem_unmap_sgtable

#define CONFIG_PCI_P2PDMA	1

#endif
