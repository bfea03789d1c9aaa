/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Iterators over DMA-mapped memory, in blocks of one size.
 */
#ifndef _RDMA_ITER_H_
#define _RDMA_ITER_H_

#include <linux/bits.h>
#include <linux/scatterlist.h>
#include <linux/types.h>

/**
 * struct ib_block_iter - position in a DMA-mapped scatter list
 * @__sg: entry that the next block begins in
 * @__sg_nents: number of entries from @__sg on
 * @__sg_advance: bytes of @__sg before the next block
 * @__sg_numblocks: number of blocks to come, for rdma_umem_for_each_dma_block()
 * @__dma_addr: address of the current block; of the first block, the address at which
 *	the walk begins, which may be within the block
 * @__pg_bit: log2 of the bytes in a block
 */
struct ib_block_iter {
	struct scatterlist	*__sg;
	unsigned int		__sg_nents;
	unsigned int		__sg_advance;
	size_t			__sg_numblocks;
	dma_addr_t		__dma_addr;
	unsigned int		__pg_bit;
};

void __rdma_block_iter_start(struct ib_block_iter *biter,
			     struct scatterlist *sglist, unsigned int nents,
			     unsigned long pgsz);
bool __rdma_block_iter_next(struct ib_block_iter *biter);

/**
 * rdma_block_iter_dma_address() - address of the current block
 * @biter: the iterator
 *
 * Context: Any.
 * Return: DMA address of the block's first byte, a multiple of the block size.
 */
static inline dma_addr_t
rdma_block_iter_dma_address(struct ib_block_iter *biter)
{
	return biter->__dma_addr & ~(BIT_ULL(biter->__pg_bit) - 1);
}

/**
 * rdma_for_each_block - iterate over the blocks of a scatter list
 * @sglist: DMA-mapped list
 * @biter: &struct ib_block_iter, which need not be initialised
 * @nents: number of entries, as ib_dma_map_sg() returned it
 * @pgsz: bytes in a block, a power of two
 */
#define rdma_for_each_block(sglist, biter, nents, pgsz)			\
	for (__rdma_block_iter_start(biter, sglist, nents, pgsz);	\
	     __rdma_block_iter_next(biter);)

/* Last: its iterators need the declarations above. */
#include <rdma/ib_umem.h>

#endif /* _RDMA_ITER_H_ */
