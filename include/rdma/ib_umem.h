/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory for regions: a process's, pinned; another device's, through its driver; a
 * dma-buf's; a PCI device's, for peer-to-peer DMA. DMA-mapped for the device in any
 * case. See core/umem.c.
 *
 * Drivers of channel adapters get it by reg_umem_mr(), or do so themselves in
 * reg_user_mr(), by the functions below.
 */
#ifndef IB_UMEM_H
#define IB_UMEM_H

#include <linux/align.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/iter.h>

struct dma_buf_attachment;
struct dma_buf_attach_ops;
struct peer_region;

/**
 * struct ib_umem - memory that is DMA-mapped for a device
 * @ibdev: the device
 * @owning_mm: whose memory it is, as long as it is a process's; else NULL
 * @iova: address of the first byte as the device counts; @address until
 *	ib_umem_find_best_pgsz() sets it
 * @length: bytes
 * @address: address of the first byte in the process; of a dma-buf, where it
 *	begins in there
 * @writable: the device may write
 * @is_peer: another device's
 * @is_dmabuf: a dma-buf's: part of a &struct ib_umem_dmabuf
 * @is_p2p: a PCI device's, for peer-to-peer DMA, which a process has mapped
 * @sgt_append: the memory, whole pages, DMA-mapped. Only if a process has it
 *	mapped do the entries have pages.
 * @peer: another device's: what the registry knows
 * @invalidate: of ib_umem_activate_invalidation_notifier()
 * @invalidate_priv: likewise
 *
 * What follows is the midlayer's, of memory that it makes a region of, see
 * core/reg_mem.c.
 *
 * @mr_lock: guards the following and what happens to the region; of a dma-buf, its
 *	reservation lock does
 * @mr: the region, while there is one
 * @revoked: it has lost its memory for good
 */
struct ib_umem {
	struct ib_device	*ibdev;
	struct mm_struct	*owning_mm;
	u64			iova;
	size_t			length;
	unsigned long		address;
	u32			writable:1;
	u32			is_peer:1;
	u32			is_dmabuf:1;
	u32			is_p2p:1;
	struct sg_append_table	sgt_append;
	struct peer_region	*peer;
	void (*invalidate)(struct ib_umem *umem, void *priv);
	void			*invalidate_priv;

	struct mutex		mr_lock;
	struct ib_mr		*mr;
	bool			revoked;
};

/**
 * struct ib_umem_dmabuf - memory of a dma-buf
 * @umem: what it is for the device; its list is there while it is mapped
 * @attach: the device's to the dma-buf
 * @sgt: all of the dma-buf, mapped; or NULL
 * @private: whoever has it
 * @pinned: it stays where it is
 * @remap: the midlayer's: makes the region go on after a move
 */
struct ib_umem_dmabuf {
	struct ib_umem umem;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	void *private;
	bool pinned;
	struct work_struct remap;
};

static inline struct ib_umem_dmabuf *to_ib_umem_dmabuf(struct ib_umem *umem)
{
	return container_of(umem, struct ib_umem_dmabuf, umem);
}

/* Of ib_umem_get_peer(). */
enum {
	IB_PEER_MEM_ALLOW	= 1,	/* not only memory of the system */
	IB_PEER_MEM_INVAL_SUPP	= 2,	/* the driver activates the notifier */
};

typedef void (*umem_invalidate_func_t)(struct ib_umem *umem, void *priv);

struct ib_umem *ib_umem_get(struct ib_device *device, unsigned long addr,
			    size_t size, int access);
struct ib_umem *ib_umem_get_peer(struct ib_device *device, unsigned long addr,
				 size_t size, int access,
				 unsigned long peer_mem_flags);
void ib_umem_activate_invalidation_notifier(struct ib_umem *umem,
					    umem_invalidate_func_t func,
					    void *priv);
void ib_umem_stop_invalidation_notifier(struct ib_umem *umem);
void ib_umem_release(struct ib_umem *umem);

struct ib_umem_dmabuf *
ib_umem_dmabuf_get(struct ib_device *device, unsigned long offset, size_t size,
		   int fd, int access, const struct dma_buf_attach_ops *ops);
struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned(struct ib_device *device, unsigned long offset,
			  size_t size, int fd, int access);
int ib_umem_dmabuf_map_pages(struct ib_umem_dmabuf *umem_dmabuf);
void ib_umem_dmabuf_unmap_pages(struct ib_umem_dmabuf *umem_dmabuf);
void ib_umem_dmabuf_release(struct ib_umem_dmabuf *umem_dmabuf);

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
