// SPDX-License-Identifier: GPL-2.0-only
/*
 * The ranges of the machine's RAM.
 *
 * Lock protocol: emu_rams_lock (a mutex, taken within the kernel's locks of memory hot-plug)
 * serialises those who add ranges, the module's initialisation and the memory notifier. Each
 * makes a new table, in which ranges that touch are one; readers, in any context, see the old
 * one or the new one, under RCU. Memory that goes offline stays listed: it can only go when
 * nothing is mapped for DMA in it.
 *
 * DMA addresses are those of a device without an IOMMU and without an offset, as the parents of
 * all our devices are: they are physical addresses, with the bit of the memory encryption set
 * where there is one.
 */
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/ioport.h>
#include <linux/mem_encrypt.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include "memory.h"

/**
 * struct emu_rams - all ranges
 * @rcu: frees a table that was replaced
 * @nr: number of ranges
 * @ram: the ranges, in any order, of which none touches another
 */
struct emu_rams {
	struct rcu_head rcu;
	unsigned int nr;
	struct emu_ram ram[];
};

static DEFINE_MUTEX(emu_rams_lock);
static struct emu_rams __rcu *emu_rams;
struct emu_ram emu_main_ram;

/* Extends @ram by @other, if they touch: they do in the kernel's mapping of all memory, too. */
static bool emu_ram_join(struct emu_ram *ram, const struct emu_ram *other)
{
	u64 end = ram->start + ram->size, other_end = other->start + other->size;

	if (ram->start > other_end || other->start > end)
		return false;
	if (other->start < ram->start) {
		ram->start = other->start;
		ram->mem = other->mem;
	}
	ram->size = max(end, other_end) - ram->start;
	return true;
}

static int emu_ram_add(phys_addr_t start, u64 size)
{
	struct emu_ram ram = {
		.start = __sme_set(start),
		.size = size,
		.mem = phys_to_virt(start),
	};
	struct emu_rams *old, *new;
	unsigned int i, nr;

	mutex_lock(&emu_rams_lock);
	old = rcu_dereference_protected(emu_rams, lockdep_is_held(&emu_rams_lock));
	nr = old ? old->nr : 0;
	new = kmalloc(struct_size(new, ram, nr + 1), GFP_KERNEL);
	if (!new) {
		mutex_unlock(&emu_rams_lock);
		return -ENOMEM;
	}
	new->nr = 0;
	for (i = 0; i < nr; i++)
		if (!emu_ram_join(&ram, &old->ram[i]))
			new->ram[new->nr++] = old->ram[i];
	new->ram[new->nr++] = ram;
	rcu_assign_pointer(emu_rams, new);
	mutex_unlock(&emu_rams_lock);
	if (old)
		kfree_rcu(old, rcu);
	return 0;
}

/* The kernel address of the range, if it is in one of RAM, else NULL. Any context. */
void *emu_ram_find(u64 addr, u64 len)
{
	const struct emu_rams *rams;
	void *mem = NULL;
	unsigned int i;

	rcu_read_lock();
	rams = rcu_dereference(emu_rams);
	for (i = 0; rams && i < rams->nr && !mem; i++)
		mem = emu_ram_span(&rams->ram[i], addr, len);
	rcu_read_unlock();
	return mem;
}

static int emu_ram_found(struct resource *res, void *arg)
{
	return emu_ram_add(res->start, resource_size(res));
}

static int emu_ram_notify(struct notifier_block *nb, unsigned long action, void *data)
{
	struct memory_notify *plugged = data;
	phys_addr_t start = PFN_PHYS(plugged->start_pfn);
	u64 size = PFN_PHYS(plugged->nr_pages);

	/*
	 * Before it is online: somebody may have a buffer there at once. If it fails to come online,
	 * or was only offline for a while, it is listed all the same.
	 */
	if (action != MEM_GOING_ONLINE || emu_ram_find(__sme_set(start), size))
		return NOTIFY_OK;
	return notifier_from_errno(emu_ram_add(start, size));
}

static struct notifier_block emu_ram_nb = {
	.notifier_call = emu_ram_notify,
};

static int emu_ram_list(void)
{
	int ret = walk_iomem_res_desc(IORES_DESC_NONE, IORESOURCE_SYSTEM_RAM | IORESOURCE_BUSY,
				      0, -1, NULL, emu_ram_found);

#ifdef CONFIG_FLATMEM
	/* User Mode Linux has no resources for its memory, of which the walk has found none. */
	if (!rcu_access_pointer(emu_rams) && ret != -ENOMEM)
		ret = emu_ram_add(PFN_PHYS(ARCH_PFN_OFFSET),
				  PFN_PHYS((u64)max_mapnr - ARCH_PFN_OFFSET));
#endif
	return ret == -ENOMEM ? ret : 0;
}

static void emu_ram_choose_main(void)
{
	const struct emu_rams *rams;
	unsigned int i;

	rcu_read_lock();
	rams = rcu_dereference(emu_rams);
	for (i = 0; rams && i < rams->nr; i++) {
		if (rams->ram[i].size > emu_main_ram.size)
			emu_main_ram = rams->ram[i];
	}
	rcu_read_unlock();
	emu_main_ram.short_size = emu_main_ram.size - min_t(u64, emu_main_ram.size,
							    EMU_SHORT_BYTES);
}

/* The notifier comes first: what is plugged meanwhile may be listed twice, as one range. */
int emu_ram_init(void)
{
	int ret = register_memory_notifier(&emu_ram_nb);

	if (ret)
		return ret;
	ret = emu_ram_list();
	if (ret)
		emu_ram_exit();
	else
		emu_ram_choose_main();
	return ret;
}

/* No device is left that could look for memory. */
void emu_ram_exit(void)
{
	unregister_memory_notifier(&emu_ram_nb);
	kfree(rcu_replace_pointer(emu_rams, NULL, true));
	emu_main_ram = (struct emu_ram) {};
}

/* Does @dev have the DMA addresses that are assumed here, and see what CPUs see? */
bool emu_ram_reached_by(struct device *dev)
{
	return dev_is_dma_coherent(dev) &&
	       dma_to_phys(dev, emu_main_ram.start) == virt_to_phys(emu_main_ram.mem);
}
