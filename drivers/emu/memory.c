// SPDX-License-Identifier: GPL-2.0-only
/*
 * From what scatter/gather elements name to contiguous kernel memory: all but
 * the common cases, which are in memory.h.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ioport.h>
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
 */
static struct emu_ram emu_rams[EMU_MAX_RAMS];
static unsigned int emu_nr_rams;
struct emu_ram emu_main_ram;

static void emu_ram_add(phys_addr_t start, u64 size)
{
	if (emu_nr_rams == EMU_MAX_RAMS) {
		pr_warn_once("more than %u ranges of RAM, the rest takes no DMA\n", EMU_MAX_RAMS);
		return;
	}
	emu_rams[emu_nr_rams] = (struct emu_ram) { start, start + size };
	/* release: pairs with the acquire in emu_dma_span_slow() */
	smp_store_release(&emu_nr_rams, emu_nr_rams + 1);
}

static int emu_ram_found(struct resource *res, void *arg)
{
	emu_ram_add(res->start, resource_size(res));
	if (resource_size(res) > emu_main_ram.end - emu_main_ram.start)
		emu_main_ram = (struct emu_ram) { res->start, res->end + 1 };
	return 0;
}

static int emu_ram_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	struct memory_notify *plugged = data;

	if (action == MEM_ONLINE)
		emu_ram_add(PFN_PHYS(plugged->start_pfn), PFN_PHYS(plugged->nr_pages));
	return NOTIFY_OK;
}

static struct notifier_block emu_ram_nb = {
	.notifier_call = emu_ram_notify,
};

int emu_ram_init(void)
{
	walk_iomem_res_desc(IORES_DESC_NONE, IORESOURCE_SYSTEM_RAM | IORESOURCE_BUSY,
			    0, -1, NULL, emu_ram_found);
	return register_memory_notifier(&emu_ram_nb);
}

void emu_ram_exit(void)
{
	unregister_memory_notifier(&emu_ram_nb);
}

void *emu_dma_span_slow(phys_addr_t start, u64 len)
{
	/* acquire: pairs with the release in emu_ram_add() */
	unsigned int i, nr = smp_load_acquire(&emu_nr_rams);

	for (i = 0; i < nr; i++) {
		if (emu_in_ram(&emu_rams[i], start, len))
			return phys_to_virt(start);
	}
	return NULL;
}

static bool emu_cursor_open(struct emu_cursor *cur, const struct ib_sge *sge)
{
	emu_cursor_end(cur);
	if (emu_cursor_is_dma_key(cur, sge)) {
		cur->addr = emu_dma_span(cur->qp->edev, sge->addr, sge->length);
		cur->len = sge->length;
	} else {
		cur->mr = emu_mr_enter(cur->qp, sge, cur->access, &cur->why);
		if (!cur->mr)
			return false;
		cur->len = sge->length;
		cur->addr = emu_mr_span(cur->mr, sge->addr, &cur->len);
		cur->dma = sge->addr + cur->len;
		cur->rest = sge->length - cur->len;
	}
	if (cur->addr)
		return true;
	cur->why = EMU_SYN_ADDRESS;
	cur->len = 0;
	cur->rest = 0;
	return false;
}

bool emu_cursor_next_slow(struct emu_cursor *cur)
{
	const struct ib_sge *sge;

	if (cur->rest) {
		cur->len = cur->rest;
		cur->addr = emu_mr_span(cur->mr, cur->dma, &cur->len);
		if (!cur->addr) {
			cur->why = EMU_SYN_ADDRESS;
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

/* Is the element usable? Nothing is held afterwards. */
static bool emu_cursor_check_sge(struct emu_cursor *cur, const struct ib_sge *sge)
{
	struct emu_mr *mr;

	if (!sge->length)
		return true;
	if (emu_cursor_is_dma_key(cur, sge)) {
		if (emu_dma_span(cur->qp->edev, sge->addr, sge->length))
			return true;
		cur->why = EMU_SYN_ADDRESS;
		return false;
	}
	mr = emu_mr_enter(cur->qp, sge, cur->access, &cur->why);
	if (!mr)
		return false;
	emu_mr_leave(mr);
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
	emu_mr_leave(cur->mr);
	cur->mr = NULL;
	cur->rest = 0;
}
