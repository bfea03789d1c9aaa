// SPDX-License-Identifier: GPL-2.0-only
/*
 * Finds the contiguous kernel memory that scatter/gather elements name: everything
 * but the common cases, which are in memory.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/ioport.h>
#include <linux/mem_encrypt.h>
#include <linux/memory.h>
#include <linux/mm.h>

#include "memory.h"

/* Firmware leaves a handful of ranges; hot-plugged memory adds some. */
#define EMU_MAX_RAMS	64

/*
 * The ranges of RAM. Ranges are only ever added, by the module's initialisation
 * and by the memory notifier, which the kernel serialises; readers take no lock
 * and see emu_nr_rams complete ranges. Memory that goes offline stays listed: it
 * can only go when nothing is mapped for DMA in it.
 *
 * DMA addresses are those of a device without an IOMMU and without an offset, as
 * the parents of all our devices are: they are physical addresses, with the bit of
 * the memory encryption set where there is one. Addresses of buffers that must not
 * be encrypted lack that bit, so an address that is in no range is looked up once
 * more with the bit set.
 */
static struct emu_ram emu_rams[EMU_MAX_RAMS];
static unsigned int emu_nr_rams;
struct emu_ram emu_main_ram;

static void emu_ram_add(phys_addr_t start, u64 size)
{
	struct emu_ram *ram = &emu_rams[emu_nr_rams];

	if (emu_nr_rams == EMU_MAX_RAMS) {
		pr_warn_once("more than %u ranges of RAM, ignoring the rest for DMA\n", EMU_MAX_RAMS);
		return;
	}
	*ram = (struct emu_ram) {
		.start = __sme_set(start),
		.size = size,
		.mem = phys_to_virt(start),
	};
	/* release: pairs with the acquire in emu_ram_find() */
	smp_store_release(&emu_nr_rams, emu_nr_rams + 1);
}

static void *emu_ram_find(u64 addr, u64 len)
{
	/* acquire: pairs with the release in emu_ram_add() */
	unsigned int i, nr = smp_load_acquire(&emu_nr_rams);
	void *mem = NULL;

	for (i = 0; i < nr && !mem; i++)
		mem = emu_ram_span(&emu_rams[i], addr, len);
	return mem;
}

static int emu_ram_found(struct resource *res, void *arg)
{
	emu_ram_add(res->start, resource_size(res));
	return 0;
}

static int emu_ram_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	struct memory_notify *plugged = data;

	phys_addr_t start = PFN_PHYS(plugged->start_pfn);
	u64 size = PFN_PHYS(plugged->nr_pages);

	/* Memory that was only offline for a while is listed already. */
	if (action == MEM_ONLINE && !emu_ram_find(__sme_set(start), size))
		emu_ram_add(start, size);
	return NOTIFY_OK;
}

static struct notifier_block emu_ram_nb = {
	.notifier_call = emu_ram_notify,
};

int emu_ram_init(void)
{
	unsigned int i;

	walk_iomem_res_desc(IORES_DESC_NONE, IORESOURCE_SYSTEM_RAM | IORESOURCE_BUSY,
			    0, -1, NULL, emu_ram_found);
#ifdef CONFIG_FLATMEM
	/* User Mode Linux has no resources for its memory. */
	if (!emu_nr_rams)
		emu_ram_add(PFN_PHYS(ARCH_PFN_OFFSET),
			    PFN_PHYS((u64)max_mapnr - ARCH_PFN_OFFSET));
#endif
	for (i = 0; i < emu_nr_rams; i++) {
		if (emu_rams[i].size > emu_main_ram.size)
			emu_main_ram = emu_rams[i];
	}
	emu_main_ram.short_size = emu_main_ram.size - min_t(u64, emu_main_ram.size,
							    EMU_SHORT_BYTES);
	return register_memory_notifier(&emu_ram_nb);
}

void emu_ram_exit(void)
{
	unregister_memory_notifier(&emu_ram_nb);
}

/* Does @dev have the DMA addresses that are assumed here, and see what CPUs see? */
bool emu_ram_reached_by(struct device *dev)
{
	return dev_is_dma_coherent(dev) &&
	       dma_to_phys(dev, emu_main_ram.start) == virt_to_phys(emu_main_ram.mem);
}

/*
 * As emu_dma_span(), but the memory may extend over the border of two adjoining
 * ranges, which adjoin in the kernel's mapping too.
 */
void *emu_ram_run(struct emu_device *edev, u64 addr, u64 len)
{
	void *first = emu_dma_span(edev, addr, 1);
	void *last = emu_dma_span(edev, addr + len - 1, 1);

	return first && last == first + len - 1 ? first : NULL;
}

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
