// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the contiguous kernel memory that scatter/gather elements name: everything
 * but the common cases, which are in memory.h.
 */
#include <linux/dma-direct.h>
#include <linux/mem_encrypt.h>

#include "memory.h"

/*
 * Addresses of buffers that must not be encrypted lack the bit of the memory encryption: an address
 * that is in no range is looked up once more with the bit set.
 */
static noinline void *emu_ram_find_any(struct emu_device *edev, u64 addr, u64 len)
{
	u64 encrypted = __sme_set(dma_to_phys(&edev->pdev->dev, addr));
	void *mem = emu_ram_find(addr, len);

	if (!mem && encrypted != addr)
		mem = emu_ram_find(encrypted, len);
	return mem;
}

/* The one place that refuses an address that leads to no memory; see emu_dma_span(). */
void *emu_dma_span_slow(struct emu_device *edev, u64 addr, u64 len)
{
	void *mem = NULL;

	if (!list_empty(&edev->p2p.ranges))
		mem = emu_p2p_span(edev, addr, len);
	return mem ?: emu_ram_find_any(edev, addr, len);
}

static struct emu_device *emu_cursor_device(const struct emu_cursor *cur)
{
	return to_edev(cur->qp->device);
}

/* The DMA address of what the current element names by @addr. */
static u64 emu_cursor_dma(const struct emu_cursor *cur, u64 addr)
{
	return cur->region ? emu_region_dma(cur->region, addr) : addr;
}

static bool emu_cursor_open(struct emu_cursor *cur, const struct ib_sge *sge)
{
	emu_cursor_end(cur);
	cur->len = sge->length;
	if (emu_cursor_is_dma_key(cur, sge)) {
		cur->addr = emu_dma_span(emu_cursor_device(cur), sge->addr, sge->length);
	} else {
		cur->region = emu_region_enter(cur->qp, cur->pd, sge, cur->access, &cur->why);
		if (!cur->region) {
			cur->len = 0;
			return false;
		}
		cur->addr = emu_region_span(cur->region, sge->addr, &cur->len);
		cur->dma = sge->addr + cur->len;
		cur->rest = sge->length - cur->len;
	}
	if (cur->addr)
		return true;
	cur->why = emu_p2p_syndrome(emu_cursor_device(cur), emu_cursor_dma(cur, sge->addr), cur->len);
	cur->len = 0;
	cur->rest = 0;
	return false;
}

bool emu_cursor_next_slow(struct emu_cursor *cur)
{
	const struct ib_sge *sge;

	if (cur->rest) {
		cur->len = cur->rest;
		cur->addr = emu_region_span(cur->region, cur->dma, &cur->len);
		if (!cur->addr) {
			cur->why = emu_p2p_syndrome(emu_cursor_device(cur),
						    emu_cursor_dma(cur, cur->dma), cur->len);
			cur->len = 0;
			return false;
		}
		cur->dma += cur->len;
		cur->rest -= cur->len;
		return true;
	}
	while (cur->num_sge) {
		sge = cur->sge++;
		cur->num_sge--;
		if (sge->length)
			return emu_cursor_open(cur, sge);
	}
	return false;
}

/* Is the element usable? Its region is not entered afterwards. */
static bool emu_cursor_check_sge(struct emu_cursor *cur, const struct ib_sge *sge)
{
	struct emu_region *region;

	if (!sge->length)
		return true;
	if (emu_cursor_is_dma_key(cur, sge)) {
		if (emu_dma_span(emu_cursor_device(cur), sge->addr, sge->length))
			return true;
		cur->why = emu_p2p_syndrome(emu_cursor_device(cur), sge->addr, sge->length);
		return false;
	}
	region = emu_region_enter(cur->qp, cur->pd, sge, cur->access, &cur->why);
	if (!region)
		return false;
	emu_region_leave(region);
	return true;
}

bool emu_cursor_check_rest(struct emu_cursor *cur)
{
	int i;

	for (i = 0; i < cur->num_sge; i++) {
		if (!emu_cursor_check_sge(cur, &cur->sge[i]))
			return false;
	}
	return true;
}

void emu_cursor_leave(struct emu_cursor *cur)
{
	emu_region_leave(cur->region);
	cur->region = NULL;
	cur->rest = 0;
}
