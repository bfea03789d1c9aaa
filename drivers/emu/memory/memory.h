/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the contiguous kernel memory that scatter/gather elements name.
 *
 * Most lists are one range of the machine's RAM under the local DMA key;
 * emu_simple_span() deals with those, and target.h with many that are one range of a region.
 * Everything else takes a cursor.
 */
#ifndef KVERBS_EMU_MEMORY_H
#define KVERBS_EMU_MEMORY_H

#include "../lib/emu.h"
#include "region.h"

/* A message up to this length is copied in one go, with preemption off. */
#define EMU_SHORT_BYTES	SZ_64K

/**
 * struct emu_ram - a range of RAM
 * @start: DMA address of its first byte
 * @size: bytes
 * @short_size: offsets below this have at least EMU_SHORT_BYTES bytes of the range
 *	behind them
 * @mem: kernel address of its first byte
 */
struct emu_ram {
	u64 start;
	u64 size;
	u64 short_size;
	void *mem;
};

/* The largest range, which contains nearly everything. */
extern struct emu_ram emu_main_ram;

/* ram.c */
int emu_ram_init(void);
void emu_ram_exit(void);
bool emu_ram_reached_by(struct device *dev);
void *emu_ram_find(u64 addr, u64 len);

/* memory.c */
void *emu_dma_span_slow(struct emu_device *edev, u64 addr, u64 len);

/* p2p.c */
void emu_p2p_init(struct emu_device *edev);
void emu_p2p_exit(struct emu_device *edev);
void *emu_p2p_run(struct emu_device *edev, phys_addr_t phys, u64 len);
void *emu_p2p_span(struct emu_device *edev, u64 addr, u64 len);
enum emu_syndrome emu_p2p_syndrome(struct emu_device *edev, u64 addr, u64 len);

/* The memory of a range of DMA addresses, if all of it is in @ram, else NULL. */
static inline void *emu_ram_span(const struct emu_ram *ram, u64 addr, u64 len)
{
	u64 offset = addr - ram->start;

	if (likely(offset < ram->size && len <= ram->size - offset))
		return ram->mem + offset;
	return NULL;
}

/**
 * emu_dma_span() - memory behind a range of DMA addresses
 * @edev: device that the addresses were mapped for
 * @addr: first DMA address
 * @len: bytes, not 0
 *
 * A real adapter would reach the memory over the bus. Here it is reached through the
 * kernel's mapping of all memory, so the whole range must be RAM, or peer-to-peer
 * memory of a PCI device: see p2p.c. Other memory of devices can only be reached
 * through user regions: see umem_pages.c.
 *
 * Context: Any.
 * Return: the kernel address, or NULL if part of the range is not memory;
 * emu_p2p_syndrome() says why.
 */
static inline void *emu_dma_span(struct emu_device *edev, u64 addr, u64 len)
{
	return emu_ram_span(&emu_main_ram, addr, len) ?: emu_dma_span_slow(edev, addr, len);
}

/**
 * struct emu_cursor - walks over the memory that a list of SGEs names
 * @qp: queue pair that uses the keys
 * @pd: protection domain that the keys must belong to
 * @access: what every key must grant; 0 for reading local memory
 * @sge: the next element
 * @num_sge: elements from @sge on
 * @region: region of the current element, entered; NULL without one
 * @dma: address behind the current span
 * @rest: bytes of the current element behind the current span
 * @addr: the current span: contiguous kernel memory
 * @len: bytes of the current span
 * @why: what was wrong, after a failure
 *
 * A cursor is inside the region of its current element from the moment that the element
 * is opened until the next one is opened, or until emu_cursor_end(); an invalidation
 * waits for that. Those who take memory away wait too, so a copying engine must check
 * emu_cursor_must_leave() between pieces of limited length.
 */
struct emu_cursor {
	const struct ib_qp *qp;
	struct ib_pd *pd;
	int access;
	const struct ib_sge *sge;
	int num_sge;
	struct emu_region *region;
	u64 dma;
	u64 rest;
	void *addr;
	size_t len;
	enum emu_syndrome why;
};

bool emu_cursor_next_slow(struct emu_cursor *cur);
bool emu_cursor_check_rest(struct emu_cursor *cur);
void emu_cursor_leave(struct emu_cursor *cur);

static inline void emu_cursor_init(struct emu_cursor *cur, const struct ib_qp *qp,
				   struct ib_pd *pd, const struct ib_sge *sge, int num_sge,
				   int access)
{
	cur->qp = qp;
	cur->pd = pd;
	cur->access = access;
	cur->sge = sge;
	cur->num_sge = num_sge;
	cur->region = NULL;
	cur->rest = 0;
	cur->len = 0;
	cur->why = EMU_SYN_NONE;
}

/* Sets up a cursor over @len bytes of kernel memory. */
static inline void emu_cursor_init_inline(struct emu_cursor *cur, const struct ib_qp *qp,
					  void *data, size_t len)
{
	emu_cursor_init(cur, qp, NULL, NULL, 0, 0);
	cur->addr = data;
	cur->len = len;
}

/* The key that stands for all of memory is for local use only. */
static inline bool emu_cursor_is_dma_key(const struct emu_cursor *cur, const struct ib_sge *sge)
{
	return sge->lkey == EMU_LOCAL_DMA_LKEY && !(cur->access & ~IB_ACCESS_LOCAL_WRITE);
}

/*
 * The memory of a list that is one element of RAM under the local DMA key, as it is for
 * most messages; NULL for any other list.
 */
static inline void *emu_simple_span(const struct ib_sge *sge, int num_sge)
{
	if (num_sge != 1 || sge->lkey != EMU_LOCAL_DMA_LKEY)
		return NULL;
	return emu_ram_span(&emu_main_ram, sge->addr, sge->length);
}

/*
 * Makes the current span non-empty. Returns false at the end of the list; also, with
 * cur->why set, if an element is not usable. An element of length 0 is skipped, and its
 * key is not checked.
 */
static inline bool emu_cursor_next(struct emu_cursor *cur)
{
	return likely(cur->len) || emu_cursor_next_slow(cur);
}

/*
 * Opens the first element and checks all others, so that every error that can be known
 * in advance is known before anything happens. Returns false with cur->why set.
 */
static inline bool emu_cursor_check(struct emu_cursor *cur)
{
	if (!emu_cursor_next(cur))
		return cur->why == EMU_SYN_NONE;
	return !cur->num_sge || emu_cursor_check_rest(cur);
}

/*
 * Must the memory of the current element be left at once, because it is being taken
 * away? Then cur->why is set.
 */
static inline bool emu_cursor_must_leave(struct emu_cursor *cur)
{
	if (likely(!cur->region))
		return false;
	cur->why = emu_region_must_leave(cur->region);
	return unlikely(cur->why);
}

static inline void emu_cursor_end(struct emu_cursor *cur)
{
	if (unlikely(cur->region))
		emu_cursor_leave(cur);
}

#endif
