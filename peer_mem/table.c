// SPDX-License-Identifier: GPL-2.0-only
/*
 * The part of a mapped scatter list that a device gets.
 *
 * A client's list consists of the client's pages, for example of 64 KiB, and must be
 * given back unchanged. So the device gets a list of its own, which covers the range
 * that was asked for, in pages of the system and in as few entries as possible.
 */
#include <linux/align.h>
#include <linux/export.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <kverbs/peer_region.h>

/* The longest entry: lengths have 32 bits, and large pages should not be cut. */
#define TABLE_MAX_ENTRY	SZ_2G

/**
 * struct table_walk - a walk over the range
 * @sg: the next entry to look at
 * @nents: entries left, including @sg
 * @skip: bytes from here to the range
 * @length: bytes of the range that are still to come
 * @addr: address of the next of these bytes
 * @avail: how many of them are there, in the entry before @sg
 */
struct table_walk {
	struct scatterlist *sg;
	unsigned int nents;
	u64 skip;
	u64 length;
	u64 addr;
	u64 avail;
};

/* Finds the next bytes of the range. Returns 0, or -EINVAL if the list is bad. */
static int walk_entry(struct table_walk *walk)
{
	u64 skip;

	while (!walk->avail) {
		if (!walk->nents || !walk->sg)
			return -EINVAL;
		walk->addr = sg_dma_address(walk->sg);
		walk->avail = sg_dma_len(walk->sg);
		if (!walk->avail || walk->addr + walk->avail - 1 < walk->addr)
			return -EINVAL;
		walk->nents--;
		walk->sg = sg_next(walk->sg);

		skip = min(walk->skip, walk->avail);
		walk->skip -= skip;
		walk->addr += skip;
		walk->avail -= skip;
	}
	walk->avail = min(walk->avail, walk->length);
	return PAGE_ALIGNED(walk->addr | walk->avail) ? 0 : -EINVAL;
}

/*
 * Finds the next contiguous piece of the range. Returns its length in bytes, 0 at
 * the end of the range, or -EINVAL.
 */
static s64 walk_piece(struct table_walk *walk, u64 *addr)
{
	u64 length = 0, n;
	int err;

	while (walk->length && length < TABLE_MAX_ENTRY) {
		err = walk_entry(walk);
		if (err)
			return err;
		if (!length)
			*addr = walk->addr;
		else if (walk->addr != *addr + length)
			break;
		n = min(walk->avail, TABLE_MAX_ENTRY - length);
		length += n;
		walk->addr += n;
		walk->avail -= n;
		walk->length -= n;
	}
	return length;
}

/* Returns the number of pieces, or -EINVAL. */
static s64 walk_count(struct table_walk walk)
{
	s64 count = 0, length;
	u64 addr;

	while ((length = walk_piece(&walk, &addr)) > 0)
		count++;
	return length < 0 ? length : count;
}

/**
 * peer_table_trim() - make a table of a part of a mapped list
 * @to: the table, which is set up here; sg_free_table() frees it
 * @from: the list, which is not changed; its page pointers are not used
 * @nents: number of its mapped entries
 * @skip: bytes from its beginning to the part, whole pages
 * @length: bytes of the part, whole pages, not 0
 *
 * Entries of the result have a DMA address and a DMA length, both of whole pages,
 * and nothing else. Pieces that follow each other without a gap become one entry, of
 * up to 2 GiB.
 *
 * Context: Process, may sleep.
 * Return: 0; -EINVAL if the list ends before the part does, wraps, or is not made of
 * whole pages; -ENOMEM.
 */
int peer_table_trim(struct sg_table *to, struct scatterlist *from, unsigned int nents,
		    u64 skip, u64 length)
{
	struct table_walk walk = {
		.sg = from, .nents = nents, .skip = skip, .length = length,
	};
	struct scatterlist *sg;
	s64 count;
	u64 addr;
	int err, i;

	if (!length || !PAGE_ALIGNED(skip | length))
		return -EINVAL;
	count = walk_count(walk);
	if (count < 0 || count > UINT_MAX)
		return -EINVAL;
	err = sg_alloc_table(to, count, GFP_KERNEL_ACCOUNT);
	if (err)
		return err;
	for_each_sgtable_dma_sg(to, sg, i) {
		sg_dma_len(sg) = walk_piece(&walk, &addr);
		sg_dma_address(sg) = addr;
	}
	return 0;
}
EXPORT_SYMBOL_GPL(peer_table_trim);
