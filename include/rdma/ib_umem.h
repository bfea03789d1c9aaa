/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory for regions, DMA-mapped for a device: memory of a process, pinned; memory of
 * another device, obtained through its driver; of a dma-buf; or of a PCI device, for
 * peer-to-peer DMA. See core/memory/umem.c.
 *
 * The driver of a channel adapter is handed the memory in its reg_umem_mr method, or
 * obtains it by itself in its reg_user_mr method, with the functions below.
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
 * @owning_mm: the process's memory in which the pages are counted as pinned; NULL for
 *	other kinds of memory
 * @iova: address by which the device refers to the first byte; the same as @address
 *	until ib_umem_find_best_pgsz() sets it
 * @length: bytes
 * @address: address of the first byte in the process; for a dma-buf, its offset there
 * @writable: the device may write
 * @is_peer: the memory is another device's, obtained through its driver
 * @is_dmabuf: the memory is a dma-buf's: this is part of a &struct ib_umem_dmabuf
 * @is_p2p: the memory is a PCI device's peer-to-peer memory, mapped by a process
 * @sgt_append: list of the memory, in whole pages, DMA-mapped. Only pinned memory of a
 *	process and peer-to-peer memory have struct pages in the list.
 * @peer: the registry's object, with @is_peer
 * @invalidate: function passed to ib_umem_activate_invalidation_notifier()
 * @invalidate_priv: argument passed to it
 *
 * The members below are private to the midlayer, for memory that it makes a region
 * of, see core/verbs/reg_mem.c.
 *
 * @mr_lock: guards the following members, and orders what happens to the region; for a
 *	dma-buf its reservation lock does that
 * @mr: the region, while there is one
 * @revoked: the region has lost its memory for good
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
 * @umem: the part that all kinds of memory have; its list is only valid while the
 *	dma-buf is mapped
 * @attach: attachment of the device to the dma-buf
 * @sgt: mapping of the whole dma-buf; NULL while it is not mapped
 * @private: for the use of whoever obtained the memory
 * @pinned: the memory is pinned: it does not move
 * @remap: private to the midlayer: maps the memory again after a move
 * @remap_tries: private to the midlayer: how often to try that again
 */
struct ib_umem_dmabuf {
	struct ib_umem umem;
	struct dma_buf_attachment *attach;
	struct sg_table *sgt;
	void *private;
	bool pinned;
	struct delayed_work remap;
	unsigned int remap_tries;
};

static inline struct ib_umem_dmabuf *to_ib_umem_dmabuf(struct ib_umem *umem)
{
	return container_of(umem, struct ib_umem_dmabuf, umem);
}

/* Flags for ib_umem_get_peer(). */
enum {
	IB_PEER_MEM_ALLOW	= 1,	/* also look for memory of other devices */
	IB_PEER_MEM_INVAL_SUPP	= 2,	/* the caller will activate the notifier */
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
int ib_umem_check_rereg(struct ib_umem *umem, int flags, int new_access_flags);

/* Offset of the first byte in its page. */
static inline int ib_umem_offset(struct ib_umem *umem)
{
	return offset_in_page(umem->address);
}

/* Offset of the first byte's DMA address in its block of @pgsz bytes. */
static inline unsigned long ib_umem_dma_offset(struct ib_umem *umem,
					       unsigned long pgsz)
{
	return (sg_dma_address(umem->sgt_append.sgt.sgl) +
		ib_umem_offset(umem)) & (pgsz - 1);
}

/* Number of blocks of @pgsz bytes that the memory touches if it begins at umem->iova. */
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
 * ib_umem_find_best_pgoff() - find the largest blocks by which the memory can be mapped
 * @umem: the memory
 * @pgsz_bitmap: sizes of blocks that the device supports: bit n is 2^n bytes
 * @pgoff_bitmask: bits that the offset can have
 *
 * As ib_umem_find_best_pgsz(), but for devices that take an offset into the first block
 * instead of an address.
 *
 * Context: Any.
 * Return: bytes in a block; 0 if none of the sizes fits.
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
	/* If blocks are smaller than a page, the first one may begin within the page. */
	biter->__sg_advance = ALIGN_DOWN((unsigned long)ib_umem_offset(umem),
					 pgsz);
	biter->__sg_numblocks = ib_umem_num_dma_blocks(umem, pgsz);
}

static inline bool __rdma_umem_block_iter_next(struct ib_block_iter *biter)
{
	return biter->__sg_numblocks-- && __rdma_block_iter_next(biter);
}

/**
 * rdma_umem_for_each_dma_block - iterate over the blocks of an ib_umem
 * @umem: the memory
 * @biter: &struct ib_block_iter, which need not be initialised
 * @pgsz: bytes in a block: the result of ib_umem_find_best_pgsz(), or any power of two
 *	up to %PAGE_SIZE
 *
 * There are ib_umem_num_dma_blocks() blocks. rdma_block_iter_dma_address() returns
 * the address of the current one.
 */
#define rdma_umem_for_each_dma_block(umem, biter, pgsz)			\
	for (__rdma_umem_block_iter_start(biter, umem, pgsz);		\
	     __rdma_umem_block_iter_next(biter);)

#endif /* IB_UMEM_H */
