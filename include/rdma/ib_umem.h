/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory of a process, pinned and DMA-mapped for a device: what a driver's
 * reg_user_mr method is made of. See core/umem.c.
 */
#ifndef IB_UMEM_H
#define IB_UMEM_H

#include <linux/align.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <rdma/ib_verbs.h>
#include <rdma/iter.h>

/**
 * struct ib_umem - pinned and DMA-mapped memory of a process
 * @ibdev: the device
 * @owning_mm: whose memory it is
 * @iova: address of the first byte as the device counts; @address until
 *	ib_umem_find_best_pgsz() sets it
 * @length: bytes
 * @address: address of the first byte in the process
 * @writable: the device may write
 * @sgt_append: the memory, whole pages, DMA-mapped
 */
struct ib_umem {
	struct ib_device	*ibdev;
	struct mm_struct	*owning_mm;
	u64			iova;
	size_t			length;
	unsigned long		address;
	u32			writable:1;
	struct sg_append_table	sgt_append;
};

struct ib_umem *ib_umem_get(struct ib_device *device, unsigned long addr,
			    size_t size, int access);
void ib_umem_release(struct ib_umem *umem);
int ib_umem_copy_from(void *dst, struct ib_umem *umem, size_t offset,
		      size_t length);
unsigned long ib_umem_find_best_pgsz(struct ib_umem *umem,
				     unsigned long pgsz_bitmap, u64 virt);

/* Place of the first byte in its page. */
static inline int ib_umem_offset(struct ib_umem *umem)
{
	return offset_in_page(umem->address);
}

/* Place of the first byte in its block of @pgsz bytes, by DMA address. */
static inline unsigned long ib_umem_dma_offset(struct ib_umem *umem,
					       unsigned long pgsz)
{
	return (sg_dma_address(umem->sgt_append.sgt.sgl) +
		ib_umem_offset(umem)) & (pgsz - 1);
}

/* Blocks of @pgsz bytes that the memory touches, by address of the device. */
static inline size_t ib_umem_num_dma_blocks(struct ib_umem *umem,
					    unsigned long pgsz)
{
	u64 end = umem->iova + umem->length;

	return (ALIGN(end, (u64)pgsz) - ALIGN_DOWN(umem->iova, (u64)pgsz)) /
	       pgsz;
}

static inline size_t ib_umem_num_pages(struct ib_umem *umem)
{
	return ib_umem_num_dma_blocks(umem, PAGE_SIZE);
}

/**
 * ib_umem_find_best_pgoff() - as ib_umem_find_best_pgsz(), for devices that take
 *	an offset into the first block instead of an address
 * @umem: the memory
 * @pgsz_bitmap: sizes of blocks that the device has
 * @pgoff_bitmask: bits that the offset can have
 *
 * Context: Any.
 * Return: bytes in a block; 0 if no size will do.
 */
static inline unsigned long ib_umem_find_best_pgoff(struct ib_umem *umem,
						    unsigned long pgsz_bitmap,
						    u64 pgoff_bitmask)
{
	dma_addr_t start = sg_dma_address(umem->sgt_append.sgt.sgl) +
			   ib_umem_offset(umem);

	return ib_umem_find_best_pgsz(umem, pgsz_bitmap,
				      start & pgoff_bitmask);
}

static inline void __rdma_umem_block_iter_start(struct ib_block_iter *biter,
						struct ib_umem *umem,
						unsigned long pgsz)
{
	__rdma_block_iter_start(biter, umem->sgt_append.sgt.sgl,
				umem->sgt_append.sgt.nents, pgsz);
	/* Blocks smaller than a page need not begin with the first page. */
	biter->__sg_advance = ALIGN_DOWN((unsigned long)ib_umem_offset(umem),
					 pgsz);
	biter->__sg_numblocks = ib_umem_num_dma_blocks(umem, pgsz);
}

static inline bool __rdma_umem_block_iter_next(struct ib_block_iter *biter)
{
	return biter->__sg_numblocks-- && __rdma_block_iter_next(biter);
}

/**
 * rdma_umem_for_each_dma_block - walk through pinned memory
 * @umem: the memory
 * @biter: &struct ib_block_iter, not set up
 * @pgsz: bytes in a block: ib_umem_find_best_pgsz()'s, or any power of two up to
 *	%PAGE_SIZE
 *
 * rdma_block_iter_dma_address() tells where each block is. There are
 * ib_umem_num_dma_blocks() of them.
 */
#define rdma_umem_for_each_dma_block(umem, biter, pgsz)			\
	for (__rdma_umem_block_iter_start(biter, umem, pgsz);		\
	     __rdma_umem_block_iter_next(biter);)

#endif /* IB_UMEM_H */
