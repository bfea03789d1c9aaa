// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory behind the pages of a user region: RAM or peer-to-peer memory, which the
 * kernel has mapped already, or other device memory on the bus, which this file maps.
 *
 * A backing is made from the list of a umem, and does not change until it is freed.
 * It belongs to a region; it is given to the region, and taken from it, only while
 * nobody is inside the region.
 */
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "memory.h"
#include "region.h"

/* Makes room for the mappings of other devices' memory: as many as the umem can have runs. */
static int emu_backing_alloc_maps(struct emu_backing *backing, struct ib_umem *umem)
{
	if (backing->maps)
		return 0;
	backing->maps = emu_process_zalloc(array_size(umem->sgt_append.sgt.nents,
						      sizeof(*backing->maps)));
	return backing->maps ? 0 : -ENOMEM;
}

/* Maps a run of memory that is not RAM. Returns the kernel address or an ERR_PTR. */
static void *emu_backing_map(struct emu_backing *backing, struct emu_device *edev,
			     struct ib_umem *umem, u64 addr, u64 len)
{
	phys_addr_t phys = dma_to_phys(&edev->pdev->dev, addr);
	void *mem = emu_p2p_run(edev, phys, len);
	int err;

	if (mem)
		return mem;
	/* Device memory contains no RAM, not even RAM that is not in our table. */
	if (region_intersects(phys, len, IORESOURCE_SYSTEM_RAM, IORES_DESC_NONE) !=
	    REGION_DISJOINT)
		return ERR_PTR(-EFAULT);
	err = emu_backing_alloc_maps(backing, umem);
	if (err)
		return ERR_PTR(err);
	/*
	 * Mapped in the same way as its owner has mapped it: the kernel takes care
	 * that the types agree.
	 */
	mem = memremap(phys, len, MEMREMAP_WB | MEMREMAP_WC);
	if (!mem)
		return ERR_PTR(-ENOMEM);
	backing->maps[backing->nr_maps++] = mem;
	return mem;
}

/*
 * Adds the pages of a run of contiguous memory. The page size was chosen such that
 * every run but the first begins at a page boundary, and every run but the last ends
 * at one.
 */
static int emu_backing_add_run(struct emu_backing *backing, struct emu_device *edev,
			       struct ib_umem *umem, u64 addr, u64 len, u32 *filled)
{
	u64 page_size = 1ULL << backing->page_shift;
	u64 skip = addr & (page_size - 1), offset;
	void *mem = emu_dma_span(edev, addr, len);

	if (!mem)
		mem = emu_backing_map(backing, edev, umem, addr, len);
	if (IS_ERR(mem))
		return PTR_ERR(mem);
	for (offset = 0; offset < skip + len; offset += page_size) {
		if (WARN_ON_ONCE(*filled == backing->nr_pages))
			return -EINVAL;
		backing->pages[(*filled)++] = mem - skip + offset;
	}
	return 0;
}

/**
 * emu_umem_check_copy() - would the HCA get a copy of some of the memory?
 * @ibdev: device that the memory is mapped for
 * @umem: the memory
 *
 * Nobody would keep such a copy, a bounce buffer, up to date. For callers under mainline's core:
 * kverbs' core asks that itself, and never passes on such memory.
 *
 * Context: Process.
 * Return: 0, or -EIO.
 */
int emu_umem_check_copy(struct ib_device *ibdev, struct ib_umem *umem)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, sg, i) {
		/* There may be millions. */
		cond_resched();
		if (!dma_need_sync(ibdev->dma_device, sg_dma_address(sg)))
			continue;
		ibdev_err_ratelimited(ibdev,
				      "cannot register memory: DMA would use bounce buffers, by swiotlb=force or in a confidential guest\n");
		return -EIO;
	}
	return 0;
}

static int emu_backing_fill(struct emu_backing *backing, struct emu_device *edev,
			    struct ib_umem *umem)
{
	struct scatterlist *sg;
	u64 start = 0, len = 0;
	u32 filled = 0;
	unsigned int i;
	int err;

	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, sg, i) {
		cond_resched();
		if (len && sg_dma_address(sg) != start + len) {
			err = emu_backing_add_run(backing, edev, umem, start, len, &filled);
			if (err)
				return err;
			len = 0;
		}
		if (!len)
			start = sg_dma_address(sg);
		len += sg_dma_len(sg);
	}
	err = emu_backing_add_run(backing, edev, umem, start, len, &filled);
	if (err)
		return err;
	return WARN_ON_ONCE(filled != backing->nr_pages) ? -EINVAL : 0;
}

/**
 * emu_backing_create() - make the memory of a umem accessible
 * @edev: device that the memory is mapped for
 * @umem: the memory
 * @virt_addr: an address with the offset in a page that its first byte is to have
 *
 * Context: Process.
 * Return: the backing, or an ERR_PTR: -EINVAL if the first byte cannot have that
 * offset in a page, or if the range wraps around; -EFAULT if some of the memory is
 * neither RAM nor another device's memory; -EREMOTEIO if it is peer-to-peer memory to
 * which the device has no route; -ENODEV if the provider of that memory is going
 * away; -ENOMEM.
 */
struct emu_backing *emu_backing_create(struct emu_device *edev, struct ib_umem *umem,
				       u64 virt_addr)
{
	struct emu_backing *backing;
	unsigned long page_size;
	size_t nr;
	int err;

	page_size = ib_umem_find_best_pgsz(umem, EMU_PAGE_SIZES, virt_addr);
	if (!page_size)
		return ERR_PTR(-EINVAL);
	nr = ib_umem_num_dma_blocks(umem, page_size);
	if (!nr || nr > U32_MAX)
		return ERR_PTR(-EINVAL);
	backing = emu_process_zalloc(struct_size(backing, pages, nr));
	if (!backing)
		return ERR_PTR(-ENOMEM);
	backing->page_shift = ilog2(page_size);
	backing->nr_pages = nr;
	err = emu_backing_fill(backing, edev, umem);
	if (!err)
		return backing;
	emu_backing_free(backing);
	return ERR_PTR(err);
}

/**
 * emu_backing_free() - undo emu_backing_create()
 * @backing: a backing that nobody uses any more, or NULL
 *
 * Context: Process.
 */
void emu_backing_free(struct emu_backing *backing)
{
	if (!backing)
		return;
	while (backing->nr_maps)
		memunmap(backing->maps[--backing->nr_maps]);
	kvfree(backing->maps);
	kvfree(backing);
}
