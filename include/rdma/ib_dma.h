/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DMA mapping for verbs consumers. Include <rdma/ib_verbs.h>, which includes
 * this.
 *
 * A software device may have no DMA device: then a DMA address is the kernel
 * pointer, and mapping costs nothing. That only works where the kernel maps all
 * memory, so not with CONFIG_HIGHMEM.
 *
 * A scatter list may consist of PCI peer-to-peer memory, if all of it is such memory of
 * one provider: see Documentation/p2pdma.rst. Mapping and unmapping it may sleep.
 */
#ifndef _RDMA_IB_DMA_H
#define _RDMA_IB_DMA_H

#include <linux/dma-mapping.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <rdma/ib_device.h>

int ib_dma_virt_map_sg(struct ib_device *dev, struct scatterlist *sg,
		       int nents);
bool ib_dma_pci_p2p_dma_supported(struct ib_device *dev);
int ib_dma_device_map_sg(struct ib_device *dev, struct scatterlist *sg,
			 int nents, enum dma_data_direction direction,
			 unsigned long dma_attrs);
void ib_dma_device_unmap_sg(struct ib_device *dev, struct scatterlist *sg,
			    int nents, enum dma_data_direction direction,
			    unsigned long dma_attrs);
int ib_dma_device_map_sgtable(struct ib_device *dev, struct sg_table *sgt,
			      enum dma_data_direction direction,
			      unsigned long dma_attrs);
void ib_dma_device_unmap_sgtable(struct ib_device *dev, struct sg_table *sgt,
				 enum dma_data_direction direction,
				 unsigned long dma_attrs);

/**
 * ib_uses_virt_dma() - check whether DMA addresses are kernel pointers
 * @dev: the device
 *
 * Context: Any.
 * Return: true if they are.
 */
static inline bool ib_uses_virt_dma(const struct ib_device *dev)
{
	return !IS_ENABLED(CONFIG_HIGHMEM) && !dev->dma_device;
}

/**
 * ib_virt_dma_to_ptr() - get the kernel pointer of a DMA address
 * @dma_addr: DMA address of a device for which ib_uses_virt_dma() is true
 *
 * Context: Any.
 * Return: the pointer.
 */
static inline void *ib_virt_dma_to_ptr(u64 dma_addr)
{
	return (void *)(uintptr_t)dma_addr;
}

/**
 * ib_virt_dma_to_page() - get the page of a DMA address
 * @dma_addr: DMA address of a device for which ib_uses_virt_dma() is true
 *
 * Context: Any.
 * Return: the page.
 */
static inline struct page *ib_virt_dma_to_page(u64 dma_addr)
{
	return virt_to_page(ib_virt_dma_to_ptr(dma_addr));
}

/**
 * ib_dma_mapping_error() - test the result of a mapping
 * @dev: the device
 * @dma_addr: DMA address that a mapping function returned
 *
 * Context: Any.
 * Return: 0, or -ENOMEM if the mapping failed.
 */
static inline int ib_dma_mapping_error(struct ib_device *dev, u64 dma_addr)
{
	if (ib_uses_virt_dma(dev))
		return 0;
	return dma_mapping_error(dev->dma_device, dma_addr);
}

/**
 * ib_dma_map_single() - map kernel memory
 * @dev: the device
 * @cpu_addr: address of the memory
 * @size: bytes
 * @direction: direction of the transfers
 *
 * Context: Any.
 * Return: DMA address, which the caller tests with ib_dma_mapping_error().
 */
static inline u64 ib_dma_map_single(struct ib_device *dev, void *cpu_addr,
				    size_t size,
				    enum dma_data_direction direction)
{
	if (ib_uses_virt_dma(dev))
		return (uintptr_t)cpu_addr;
	return dma_map_single(dev->dma_device, cpu_addr, size, direction);
}

/**
 * ib_dma_unmap_single() - undo ib_dma_map_single()
 * @dev: the device
 * @addr: DMA address that ib_dma_map_single() returned
 * @size: as it was mapped
 * @direction: as it was mapped
 *
 * Context: Any.
 */
static inline void ib_dma_unmap_single(struct ib_device *dev, u64 addr,
				       size_t size,
				       enum dma_data_direction direction)
{
	if (!ib_uses_virt_dma(dev))
		dma_unmap_single(dev->dma_device, addr, size, direction);
}

/**
 * ib_dma_map_page() - map a page or a part of it
 * @dev: the device
 * @page: the page
 * @offset: bytes to skip at its start
 * @size: bytes to map
 * @direction: direction of the transfers
 *
 * Context: Any.
 * Return: DMA address, which the caller tests with ib_dma_mapping_error().
 */
static inline u64 ib_dma_map_page(struct ib_device *dev, struct page *page,
				  unsigned long offset, size_t size,
				  enum dma_data_direction direction)
{
	if (ib_uses_virt_dma(dev))
		return (uintptr_t)page_address(page) + offset;
	return dma_map_page(dev->dma_device, page, offset, size, direction);
}

/**
 * ib_dma_unmap_page() - undo ib_dma_map_page()
 * @dev: the device
 * @addr: DMA address that ib_dma_map_page() returned
 * @size: as it was mapped
 * @direction: as it was mapped
 *
 * Context: Any.
 */
static inline void ib_dma_unmap_page(struct ib_device *dev, u64 addr,
				     size_t size,
				     enum dma_data_direction direction)
{
	if (!ib_uses_virt_dma(dev))
		dma_unmap_page(dev->dma_device, addr, size, direction);
}

/**
 * ib_dma_map_sg_attrs() - map a scatter list
 * @dev: the device
 * @sg: the list
 * @nents: number of its entries
 * @direction: direction of the transfers
 * @dma_attrs: DMA_ATTR_*
 *
 * Context: Process, may sleep, for PCI peer-to-peer memory; else any.
 * Return: number of mapped entries, which may be fewer than @nents; 0 on failure.
 */
static inline int ib_dma_map_sg_attrs(struct ib_device *dev,
				      struct scatterlist *sg, int nents,
				      enum dma_data_direction direction,
				      unsigned long dma_attrs)
{
	if (ib_uses_virt_dma(dev))
		return ib_dma_virt_map_sg(dev, sg, nents);
	if (unlikely(is_zone_device_page(sg_page(sg))))
		return ib_dma_device_map_sg(dev, sg, nents, direction,
					    dma_attrs);
	return dma_map_sg_attrs(dev->dma_device, sg, nents, direction,
				dma_attrs);
}

/**
 * ib_dma_unmap_sg_attrs() - undo ib_dma_map_sg_attrs()
 * @dev: the device
 * @sg: the list
 * @nents: number of its entries before it was mapped
 * @direction: as it was mapped
 * @dma_attrs: as it was mapped
 *
 * Context: Process, may sleep, for PCI peer-to-peer memory; else any.
 */
static inline void ib_dma_unmap_sg_attrs(struct ib_device *dev,
					 struct scatterlist *sg, int nents,
					 enum dma_data_direction direction,
					 unsigned long dma_attrs)
{
	if (ib_uses_virt_dma(dev))
		return;
	if (unlikely(is_zone_device_page(sg_page(sg))))
		ib_dma_device_unmap_sg(dev, sg, nents, direction, dma_attrs);
	else
		dma_unmap_sg_attrs(dev->dma_device, sg, nents, direction,
				   dma_attrs);
}

/**
 * ib_dma_map_sg() - map a scatter list
 * @dev: the device
 * @sg: the list
 * @nents: number of its entries
 * @direction: direction of the transfers
 *
 * Context: Process, may sleep, for PCI peer-to-peer memory; else any.
 * Return: number of mapped entries, which may be fewer than @nents; 0 on failure.
 */
static inline int ib_dma_map_sg(struct ib_device *dev, struct scatterlist *sg,
				int nents, enum dma_data_direction direction)
{
	return ib_dma_map_sg_attrs(dev, sg, nents, direction, 0);
}

/**
 * ib_dma_unmap_sg() - undo ib_dma_map_sg()
 * @dev: the device
 * @sg: the list
 * @nents: number of its entries before it was mapped
 * @direction: as it was mapped
 *
 * Context: Process, may sleep, for PCI peer-to-peer memory; else any.
 */
static inline void ib_dma_unmap_sg(struct ib_device *dev,
				   struct scatterlist *sg, int nents,
				   enum dma_data_direction direction)
{
	ib_dma_unmap_sg_attrs(dev, sg, nents, direction, 0);
}

/**
 * ib_dma_map_sgtable_attrs() - map a scatter table
 * @dev: the device
 * @sgt: the table; its nents becomes the number of mapped entries
 * @direction: direction of the transfers
 * @dma_attrs: DMA_ATTR_*
 *
 * Context: Process, may sleep, for PCI peer-to-peer memory; else any.
 * Return: 0; -EIO or another error of dma_map_sgtable(); or an error of
 * ib_dma_device_map_sgtable() if the memory belongs to a device.
 */
static inline int ib_dma_map_sgtable_attrs(struct ib_device *dev,
					   struct sg_table *sgt,
					   enum dma_data_direction direction,
					   unsigned long dma_attrs)
{
	int nents;

	if (!ib_uses_virt_dma(dev)) {
		if (unlikely(is_zone_device_page(sg_page(sgt->sgl))))
			return ib_dma_device_map_sgtable(dev, sgt, direction,
							 dma_attrs);
		return dma_map_sgtable(dev->dma_device, sgt, direction,
				       dma_attrs);
	}

	nents = ib_dma_virt_map_sg(dev, sgt->sgl, sgt->orig_nents);
	if (!nents)
		return -EIO;
	sgt->nents = nents;
	return 0;
}

/**
 * ib_dma_unmap_sgtable_attrs() - undo ib_dma_map_sgtable_attrs()
 * @dev: the device
 * @sgt: the table
 * @direction: as it was mapped
 * @dma_attrs: as it was mapped
 *
 * Context: Process, may sleep, for PCI peer-to-peer memory; else any.
 */
static inline void ib_dma_unmap_sgtable_attrs(struct ib_device *dev,
					      struct sg_table *sgt,
					      enum dma_data_direction direction,
					      unsigned long dma_attrs)
{
	if (ib_uses_virt_dma(dev))
		return;
	if (unlikely(is_zone_device_page(sg_page(sgt->sgl))))
		ib_dma_device_unmap_sgtable(dev, sgt, direction, dma_attrs);
	else
		dma_unmap_sgtable(dev->dma_device, sgt, direction, dma_attrs);
}

/**
 * ib_dma_max_seg_size() - get the largest scatter list entry that a device can take
 * @dev: the device
 *
 * Context: Any.
 * Return: bytes.
 */
static inline unsigned int ib_dma_max_seg_size(struct ib_device *dev)
{
	if (ib_uses_virt_dma(dev))
		return UINT_MAX;
	return dma_get_max_seg_size(dev->dma_device);
}

/**
 * ib_dma_sync_single_for_cpu() - let the CPU access mapped memory
 * @dev: the device
 * @addr: its DMA address
 * @size: bytes
 * @dir: as it was mapped
 *
 * Context: Any.
 */
static inline void ib_dma_sync_single_for_cpu(struct ib_device *dev, u64 addr,
					      size_t size,
					      enum dma_data_direction dir)
{
	if (!ib_uses_virt_dma(dev))
		dma_sync_single_for_cpu(dev->dma_device, addr, size, dir);
}

/**
 * ib_dma_sync_single_for_device() - let the device access mapped memory again
 * @dev: the device
 * @addr: its DMA address
 * @size: bytes
 * @dir: as it was mapped
 *
 * Context: Any.
 */
static inline void ib_dma_sync_single_for_device(struct ib_device *dev,
						 u64 addr, size_t size,
						 enum dma_data_direction dir)
{
	if (!ib_uses_virt_dma(dev))
		dma_sync_single_for_device(dev->dma_device, addr, size, dir);
}

#endif /* _RDMA_IB_DMA_H */
