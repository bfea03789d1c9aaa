// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions of a rig's ends, and buffers for long messages.
 */
#include <linux/scatterlist.h>

#include "emu/rig.h"
#include "lib/objects.h"

/**
 * rig_mr() - allocate an MR for fast registration of an end's buffer
 * @test: the running case
 * @pd: PD of the MR
 *
 * Return: the MR.
 */
struct ib_mr *rig_mr(struct kunit *test, struct ib_pd *pd)
{
	return kvt_mr(test, pd, RIG_BUF / PAGE_SIZE + 1);
}
EXPORT_SYMBOL_GPL(rig_mr);

/**
 * rig_map() - map a part of the buffer into a region
 * @e: the end
 * @mr: the region
 * @offset: bytes from the start of the buffer
 * @len: bytes
 *
 * Return: 1 if all of it was mapped.
 */
int rig_map(struct rig_end *e, struct ib_mr *mr, size_t offset, u32 len)
{
	struct scatterlist sg;

	sg_init_one(&sg, e->buf + offset, len);
	sg_dma_address(&sg) = e->dma + offset;
	sg_dma_len(&sg) = len;
	return ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE);
}
EXPORT_SYMBOL_GPL(rig_map);

/**
 * rig_post_reg() - post a signaled REG_MR
 * @e: the end
 * @mr: a region that is mapped
 * @id: wr_id
 * @access: IB_ACCESS_*
 *
 * Return: the result of ib_post_send().
 */
int rig_post_reg(struct rig_end *e, struct ib_mr *mr, u64 id, int access)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_id = id,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	return ib_post_send(e->qp, &wr.wr, NULL);
}
EXPORT_SYMBOL_GPL(rig_post_reg);

/**
 * rig_register() - register the end's whole buffer as its region
 * @test: the running case
 * @e: end of a connected rig
 * @access: IB_ACCESS_*
 */
void rig_register(struct kunit *test, struct rig_end *e, int access)
{
	struct ib_wc wc;

	e->mr = rig_mr(test, e->pd);
	KUNIT_ASSERT_EQ(test, 1, rig_map(e, e->mr, 0, e->size));
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(e, e->mr, 0x4d52, access));
	RIG_EXPECT_WC(test, e->scq, &wc, 0x4d52, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_REG_MR, wc.opcode);
}
EXPORT_SYMBOL_GPL(rig_register);

/**
 * rig_register_apart() - rig_register() of an end whose queue pair may be unable to do that
 * @test: the running case
 * @e: the end, which need not have a queue pair
 * @access: IB_ACCESS_*
 *
 * A connection in the end's domain, with its completion queues, is made for it.
 */
void rig_register_apart(struct kunit *test, struct rig_end *e, int access)
{
	struct rig *r = rig_alloc(test);

	r->a = *e;
	r->a.srq = NULL;
	r->b = r->a;
	rig_start(test, r);
	rig_register(test, &r->a, access);
	e->mr = r->a.mr;
}
EXPORT_SYMBOL_GPL(rig_register_apart);

/**
 * rig_swapped_pages() - register two pages of an end's buffer the wrong way round
 * @test: the running case
 * @e: end of a connected rig, whose buffer's first two pages they are
 * @access: IB_ACCESS_*
 *
 * Return: the region.
 */
struct ib_mr *rig_swapped_pages(struct kunit *test, struct rig_end *e, int access)
{
	struct ib_mr *mr = rig_mr(test, e->pd);
	struct scatterlist sg[2];
	struct ib_wc wc;
	int i;

	sg_init_table(sg, 2);
	for (i = 0; i < 2; i++) {
		sg_set_buf(&sg[i], e->buf + (1 - i) * PAGE_SIZE, PAGE_SIZE);
		sg_dma_address(&sg[i]) = e->dma + (1 - i) * PAGE_SIZE;
		sg_dma_len(&sg[i]) = PAGE_SIZE;
	}
	KUNIT_ASSERT_EQ(test, 2, ib_map_mr_sg(mr, sg, 2, NULL, PAGE_SIZE));
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(e, mr, 0x4d52, access));
	RIG_EXPECT_WC(test, e->scq, &wc, 0x4d52, IB_WC_SUCCESS);
	return mr;
}
EXPORT_SYMBOL_GPL(rig_swapped_pages);

/**
 * rig_block() - make a long buffer
 * @test: the running case
 * @e: the end that the buffer is for
 * @fill: what the buffer is filled with
 *
 * Return: an end with a buffer of RIG_BLOCK bytes, which shares everything else with @e.
 */
struct rig_end *rig_block(struct kunit *test, const struct rig_end *e, u8 fill)
{
	struct rig_end *block = kvt_zalloc(test, sizeof(*block));

	*block = *e;
	rig_make_buf(test, block, RIG_BLOCK);
	memset(block->buf, fill, RIG_BLOCK);
	return block;
}
EXPORT_SYMBOL_GPL(rig_block);

/**
 * rig_register_blocks() - register blocks in a row as the region of the first
 * @test: the running case
 * @block: from rig_block(): all of the row but the last, which takes little memory
 * @nr: number of blocks in the row
 * @last: the last one, which may be @block, too
 * @access: IB_ACCESS_*
 */
void rig_register_blocks(struct kunit *test, struct rig_end *block, u32 nr,
			 const struct rig_end *last, int access)
{
	struct scatterlist *sg = KVT_PTR(test, kunit_kcalloc(test, nr, sizeof(*sg), GFP_KERNEL));
	const struct rig_end *at;
	struct ib_wc wc;
	u32 i;

	sg_init_table(sg, nr);
	for (i = 0; i < nr; i++) {
		at = i < nr - 1 ? block : last;
		sg_set_buf(&sg[i], at->buf, RIG_BLOCK);
		sg_dma_address(&sg[i]) = at->dma;
		sg_dma_len(&sg[i]) = RIG_BLOCK;
	}
	block->mr = kvt_mr(test, block->pd, nr);
	KUNIT_ASSERT_EQ(test, nr, ib_map_mr_sg(block->mr, sg, nr, NULL, RIG_BLOCK));
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(block, block->mr, 0x4d52, access));
	RIG_EXPECT_WC(test, block->scq, &wc, 0x4d52, IB_WC_SUCCESS);
}
EXPORT_SYMBOL_GPL(rig_register_blocks);
