/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * From what scatter/gather elements name to contiguous kernel memory.
 *
 * The common list is one range of the machine's RAM under the local DMA key; it
 * is dealt with by emu_simple_span(). All else takes a cursor.
 */
#ifndef KVERBS_EMU_MEMORY_H
#define KVERBS_EMU_MEMORY_H

#include <linux/dma-direct.h>

#include "emu.h"

/**
 * struct emu_ram - a range of RAM
 * @start: first physical address
 * @end: first one behind it
 */
struct emu_ram {
	phys_addr_t start;
	phys_addr_t end;
};

/* The largest one, where nearly everything is. */
extern struct emu_ram emu_main_ram;

int emu_ram_init(void);
void emu_ram_exit(void);
void *emu_dma_span_slow(phys_addr_t start, u64 len);

static inline bool emu_in_ram(const struct emu_ram *ram, phys_addr_t start, u64 len)
{
	return start >= ram->start && start < ram->end && len <= ram->end - start;
}

/**
 * emu_dma_span() - memory behind a range of DMA addresses
 * @edev: device that the addresses were mapped for
 * @addr: first DMA address
 * @len: bytes, not 0
 *
 * What a real adapter would reach over the bus is reached here through the
 * kernel's mapping of all memory, so a range must be RAM, all of it.
 *
 * Context: Any.
 * Return: the kernel address, or NULL if part of the range is not memory.
 */
static inline void *emu_dma_span(struct emu_device *edev, u64 addr, u64 len)
{
	phys_addr_t start = dma_to_phys(&edev->pdev->dev, addr);

	if (likely(emu_in_ram(&emu_main_ram, start, len)))
		return phys_to_virt(start);
	return emu_dma_span_slow(start, len);
}

/**
 * struct emu_cursor - walks over the memory that a list of SGEs names
 * @qp: whose protection domain and device the keys belong to
 * @access: what every key must grant, 0 for reading local memory
 * @sge: the next element
 * @num_sge: elements from @sge on
 * @mr: region of the current element, entered; NULL without one
 * @dma: address behind the current span
 * @rest: bytes of the current element behind the current span
 * @addr: the current span: contiguous kernel memory
 * @len: bytes of the current span
 * @why: what was wrong, after a failure
 *
 * A cursor has the region of its current element entered, from the moment that
 * the element is opened to the opening of the next one or emu_cursor_end(): an
 * invalidation waits for it.
 */
struct emu_cursor {
	struct emu_qp *qp;
	int access;
	const struct ib_sge *sge;
	int num_sge;
	struct emu_mr *mr;
	u64 dma;
	u64 rest;
	void *addr;
	size_t len;
	enum emu_syndrome why;
};

bool emu_cursor_next_slow(struct emu_cursor *cur);
bool emu_cursor_check_rest(struct emu_cursor *cur);
void emu_cursor_leave(struct emu_cursor *cur);

static inline void emu_cursor_init(struct emu_cursor *cur, struct emu_qp *qp,
				   const struct ib_sge *sge, int num_sge, int access)
{
	cur->qp = qp;
	cur->access = access;
	cur->sge = sge;
	cur->num_sge = num_sge;
	cur->mr = NULL;
	cur->rest = 0;
	cur->len = 0;
	cur->why = EMU_SYN_NONE;
}

static inline void emu_cursor_init_inline(struct emu_cursor *cur, struct emu_qp *qp,
					  void *data, size_t len)
{
	emu_cursor_init(cur, qp, NULL, 0, 0);
	cur->addr = data;
	cur->len = len;
}

/* The key that means all of memory is for local use only. */
static inline bool emu_cursor_is_dma_key(const struct emu_cursor *cur, const struct ib_sge *sge)
{
	return sge->lkey == EMU_LOCAL_DMA_LKEY && !(cur->access & ~IB_ACCESS_LOCAL_WRITE);
}

/*
 * Memory of a list that is one element of RAM under the local DMA key, which is
 * what most messages are made of; NULL for everything else.
 */
static inline void *emu_simple_span(struct emu_qp *qp, const struct ib_sge *sge, int num_sge)
{
	phys_addr_t start;

	if (num_sge != 1 || sge->lkey != EMU_LOCAL_DMA_LKEY)
		return NULL;
	start = dma_to_phys(&qp->edev->pdev->dev, sge->addr);
	return emu_in_ram(&emu_main_ram, start, sge->length) ? phys_to_virt(start) : NULL;
}

/*
 * Makes the current span non-empty. Returns false at the end of the list, and
 * with cur->why set if an element is not usable. An element of length 0 is
 * skipped without a look at its key.
 */
static inline bool emu_cursor_next(struct emu_cursor *cur)
{
	return likely(cur->len) || emu_cursor_next_slow(cur);
}

/*
 * Opens the first element and looks at all others, so that what can be known
 * to be wrong is known before anything happens. Returns false with cur->why set.
 */
static inline bool emu_cursor_check(struct emu_cursor *cur)
{
	if (!emu_cursor_next(cur))
		return cur->why == EMU_SYN_NONE;
	return !cur->num_sge || emu_cursor_check_rest(cur);
}

static inline void emu_cursor_end(struct emu_cursor *cur)
{
	if (unlikely(cur->mr))
		emu_cursor_leave(cur);
}

#endif
