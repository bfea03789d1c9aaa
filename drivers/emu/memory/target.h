/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The targets of a queue pair: the region at its peer that it has used last, which most of its
 * RDMA operations use again; and likewise the regions of its own memory, and of the receives that
 * its peer posts. Each is remembered by the index in its key, and need not be looked up again
 * while no region is removed.
 *
 * Only the lookup is saved: each time, its gate is entered, and its key and access rights are
 * checked inside the gate. emu_target_enter() takes regions with one gate; windows, and all
 * errors, are left to emu_region_enter(), which does the same and more. Pair:
 *
 *   A  emu_region_del(): full barrier of emu_keys_changed() - emu_keys_generation(): acquire
 *	a region that is removed changes the generation of keys after it was taken out of its
 *	table, and is freed a grace period later. Preemption is off from before the look at the
 *	generation until the gate is left, so whoever finds it as it was may touch the region.
 */
#ifndef KVERBS_EMU_TARGET_H
#define KVERBS_EMU_TARGET_H

#include <kverbs/delay.h>

#include "memory.h"

/*
 * Enters the region that @key of @edev names, which is @target->region then. False if that takes
 * emu_region_enter(), which also says what is wrong. Preemption is off until emu_target_leave().
 */
static __always_inline bool emu_target_enter(struct emu_target *target, struct emu_device *edev,
					     u32 key)
{
	/* acquire: pair A */
	if (unlikely(target->gen != emu_keys_generation() ||
		     target->index != key >> EMU_KEY_SHIFT))
		return emu_target_find(target, edev, key);
	kverbs_delay("emu_target_enter");
	return likely(emu_gate_enter(&target->region->gate));
}

static __always_inline void emu_target_leave(struct emu_region *region)
{
	emu_gate_leave(&region->gate);
}

/*
 * The memory of a part of a page list, or of a user region; NULL if it is not contiguous, or the
 * CPU has no memory there, or no route to it is known yet.
 */
static __always_inline void *emu_target_page(const struct emu_region *region, u64 addr, u32 length)
{
	/* The list starts at the page that holds the first byte of the region. */
	u64 offset = addr - region->origin;
	u64 page = offset >> region->page_shift;
	u64 page_size = 1ULL << region->page_shift;
	u64 within = offset & (page_size - 1);

	if (unlikely(within + length > page_size))
		return emu_target_pages(region, offset, length);
	if (unlikely(region->backing))
		return region->backing->pages[page] + within;
	return emu_dma_span(region->edev, region->pages[page] + within, length);
}

/* Does @key grant @access to @length bytes at @addr of an entered region? */
static __always_inline bool emu_target_grants(const struct emu_region *region, u32 key,
					      const struct ib_pd *pd, int access, u64 addr,
					      u32 length)
{
	u64 offset = addr - region->iova;

	return likely(region->key == key && region->pd == pd &&
		      (region->access & access) == access &&
		      offset <= region->length && length <= region->length - offset);
}

/* The memory of a part of an entered region, not of length 0; NULL as emu_target_page(). */
static __always_inline void *emu_target_memory(const struct emu_region *region, u64 addr,
					       u32 length)
{
	if (region->kind == EMU_REGION_DMA)
		return emu_dma_span(region->edev, addr, length);
	return emu_target_page(region, addr, length);
}

/*
 * The memory of @length bytes, not 0, at @addr of an entered region; NULL if @key does not grant
 * @access to it, or as emu_target_page().
 */
static __always_inline void *emu_target_span(const struct emu_region *region, u32 key,
					     const struct ib_pd *pd, int access, u64 addr,
					     u32 length)
{
	if (unlikely(!emu_target_grants(region, key, pd, access, addr, length)))
		return NULL;
	return emu_target_memory(region, addr, length);
}

/*
 * Opens the list of a message or of a receive, of which @length bytes are used, if it is one
 * element in a region: returns the memory, and @target->region is entered, until
 * emu_target_leave(). NULL if that takes a cursor. Preemption is off.
 */
static inline void *emu_target_open(struct emu_target *target, const struct ib_pd *pd,
				    const struct ib_sge *sge, int num_sge, u32 length, int access)
{
	struct emu_region *region;
	void *mem = NULL;

	if (num_sge != 1 || !length || length > sge->length ||
	    sge->lkey == EMU_LOCAL_DMA_LKEY ||
	    !emu_target_enter(target, to_edev(pd->device), sge->lkey))
		return NULL;
	region = target->region;
	/* All of the element, whether that is used or not; else a cursor looks at what is used. */
	if (emu_target_grants(region, sge->lkey, pd, access, sge->addr, sge->length))
		mem = emu_target_memory(region, sge->addr, length);
	if (unlikely(!mem))
		emu_target_leave(region);
	return mem;
}

#endif
