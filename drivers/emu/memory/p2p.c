// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer-to-peer memory of other PCI devices, by DMA address.
 *
 * The kernel has such memory mapped, and its DMA addresses are physical addresses,
 * whichever route leads there; so an address is enough to find the memory. But a real
 * adapter could not reach all of it. So a route is looked for from our device's parent on
 * the PCI bus, even for addresses that someone other than kverbs_p2pdma has mapped. A
 * device without a parent there, or without a safe route, cannot reach the memory.
 *
 * For the memory of user regions, the route was looked for when the midlayer got the memory:
 * see umem_pages.c. In this file, it is an engine that encounters the memory, in any
 * context, and cannot search for a route itself. A work item does that, and the entry is
 * tried again meanwhile, as if the memory were on the move. What was found is a range of
 * addresses, and stays until its provider goes away.
 *
 * Locks: the list of ranges is written by the work item, and by emu_p2p_exit() when the
 * work item does not run any more; engines read the list under RCU. A range whose
 * provider goes away is empty from then on, until one of these two frees it. emu_p2p.lock
 * guards what is asked for and what was refused.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-direct.h>
#include <linux/memremap.h>
#include <linux/pci.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <kverbs/delay.h>
#include <kverbs/p2pdma.h>

#include "../lib/emu.h"
#include "memory.h"

/**
 * struct emu_p2p_range - memory of a provider that the device can reach
 * @entry: entry on the list of the device
 * @user: its revoke() is called when the provider goes away
 * @start: physical address
 * @size: bytes; 0 when the provider has gone
 * @mem: kernel address of its first byte
 * @rcu: for freeing it
 */
struct emu_p2p_range {
	struct list_head entry;
	struct kverbs_p2pdma_user user;
	u64 start;
	u64 size;
	void *mem;
	struct rcu_head rcu;
};

/*
 * The page of a physical address, if it is peer-to-peer memory, or NULL. The page stays
 * until put_dev_pagemap(). Any context.
 */
static struct page *emu_p2p_page(phys_addr_t phys)
{
	struct dev_pagemap *pgmap = get_dev_pagemap(PHYS_PFN(phys), NULL);
	struct page *page;

	if (!pgmap)
		return NULL;
	page = pfn_to_page(PHYS_PFN(phys));
	if (is_pci_p2pdma_page(page))
		return page;
	put_dev_pagemap(pgmap);
	return NULL;
}

/* Is there a route from the device to the memory? Returns 0, -EREMOTEIO or -ENODEV. */
static int emu_p2p_check_route(struct emu_device *edev, struct page *page)
{
	struct pci_dev *provider = kverbs_p2pdma_page_provider(page);
	struct kverbs_p2pdma_route route;
	int err = 0;

	if (!provider)
		return -ENODEV;
	if (kverbs_p2pdma_route(provider, &edev->pdev->dev, &route)) {
		ibdev_warn_ratelimited(&edev->ibdev, "cannot reach peer-to-peer memory of %s: %s\n",
				       pci_name(provider), kverbs_p2pdma_why_msg(route.why));
		err = -EREMOTEIO;
	}
	pci_dev_put(provider);
	return err;
}

/**
 * emu_p2p_run() - find a run of peer-to-peer memory
 * @edev: device that the memory is mapped for
 * @phys: physical address of the first byte
 * @len: bytes
 *
 * Context: Process. The memory stays, because the midlayer has got it.
 * Return: the kernel address; NULL if it is not peer-to-peer memory; or an ERR_PTR:
 * -EREMOTEIO if the device has no route to it, -ENODEV if its provider is going away,
 * -EFAULT if the run does not end in such memory.
 */
void *emu_p2p_run(struct emu_device *edev, phys_addr_t phys, u64 len)
{
	struct page *page = emu_p2p_page(phys), *last;
	int err;

	if (!page)
		return NULL;
	err = emu_p2p_check_route(edev, page);
	last = emu_p2p_page(phys + len - 1);
	if (!err && !last)
		err = -EFAULT;
	if (last)
		put_dev_pagemap(last->pgmap);
	put_dev_pagemap(page->pgmap);
	return err ? ERR_PTR(err) : page_address(page) + offset_in_page(phys);
}

/* --- by address ---------------------------------------------------------------- */

/**
 * emu_p2p_span() - peer-to-peer memory behind a range of DMA addresses
 * @edev: device that the addresses were mapped for
 * @addr: first DMA address
 * @len: bytes, not 0
 *
 * Context: Any. The memory outlives the range, as emu_p2p_revoke() explains.
 * Return: the kernel address; NULL if the range is not such memory, or if no route to it
 * is known: see emu_p2p_syndrome().
 */
void *emu_p2p_span(struct emu_device *edev, u64 addr, u64 len)
{
	phys_addr_t phys = dma_to_phys(&edev->pdev->dev, addr);
	struct emu_p2p_range *range;
	void *mem = NULL;
	u64 offset, size;

	/* The copy of a long message comes here with preemption on. _sched: this is cheaper. */
	rcu_read_lock_sched();
	list_for_each_entry_rcu(range, &edev->p2p.ranges, entry) {
		kverbs_delay("emu_p2p_span");
		offset = phys - range->start;
		size = READ_ONCE(range->size);
		if (offset < size && len <= size - offset) {
			mem = range->mem + offset;
			break;
		}
	}
	rcu_read_unlock_sched();
	return mem;
}

/*
 * Was a route to this memory refused a moment ago? A refusal is reported once, and only
 * within a second.
 */
static bool emu_p2p_was_refused(struct emu_p2p *p2p, phys_addr_t phys)
{
	lockdep_assert_held(&p2p->lock);
	if (phys - p2p->refused >= p2p->refused_size)
		return false;
	p2p->refused_size = 0;
	/* By now there may be a route: ACS and the policy can be changed. */
	return time_before(jiffies, p2p->refused_at + HZ);
}

static enum emu_syndrome emu_p2p_ask(struct emu_p2p *p2p, phys_addr_t phys)
{
	enum emu_syndrome why = EMU_SYN_PAUSED;
	unsigned long flags;

	raw_spin_lock_irqsave(&p2p->lock, flags);
	if (emu_p2p_was_refused(p2p, phys)) {
		why = EMU_SYN_ROUTE;
	} else if (!p2p->asked) {
		p2p->asked = phys;
		queue_work(system_unbound_wq, &p2p->work);
	}
	raw_spin_unlock_irqrestore(&p2p->lock, flags);
	return why;
}

/**
 * emu_p2p_syndrome() - why is there no memory behind a range of DMA addresses?
 * @edev: device that the addresses were mapped for
 * @addr: first DMA address
 * @len: bytes, not 0
 *
 * Context: Any.
 * Return: EMU_SYN_PAUSED while a route to it is being looked for, and the caller should
 * try again; EMU_SYN_ROUTE if there is none; EMU_SYN_ADDRESS if it is not peer-to-peer
 * memory, or does not end in the same memory.
 */
enum emu_syndrome emu_p2p_syndrome(struct emu_device *edev, u64 addr, u64 len)
{
	phys_addr_t phys = dma_to_phys(&edev->pdev->dev, addr);
	struct page *page = emu_p2p_page(phys);

	if (!page)
		return EMU_SYN_ADDRESS;
	put_dev_pagemap(page->pgmap);
	/* A route may have been found since. */
	if (emu_p2p_span(edev, addr, len))
		return EMU_SYN_PAUSED;
	return emu_p2p_span(edev, addr, 1) ? EMU_SYN_ADDRESS : emu_p2p_ask(&edev->p2p, phys);
}

/*
 * The provider is going away: nobody finds its memory any more. An engine that is copying
 * right now works for a consumer that has the memory allocated, and the provider waits
 * until it is freed.
 */
static void emu_p2p_revoke(struct kverbs_p2pdma_user *user)
{
	struct emu_p2p_range *range = container_of(user, struct emu_p2p_range, user);

	WRITE_ONCE(range->size, 0);
	synchronize_rcu();
}

static void emu_p2p_free(struct emu_p2p_range *range)
{
	list_del_rcu(&range->entry);
	kverbs_p2pdma_user_del(&range->user);
	kfree_rcu(range, rcu);
}

static void emu_p2p_free_revoked(struct emu_p2p *p2p)
{
	struct emu_p2p_range *range, *next;

	list_for_each_entry_safe(range, next, &p2p->ranges, entry) {
		if (!READ_ONCE(range->size))
			emu_p2p_free(range);
	}
}

/*
 * Adds the memory that @page is part of, which can be reached. Returns 0, -ENODEV or
 * -ENOMEM.
 */
static int emu_p2p_add(struct emu_p2p *p2p, struct page *page)
{
	struct pci_dev *provider = kverbs_p2pdma_page_provider(page);
	struct emu_p2p_range *range;
	int err;

	if (!provider)
		return -ENODEV;
	range = kzalloc(sizeof(*range), GFP_KERNEL);
	err = range ? 0 : -ENOMEM;
	if (err)
		goto put;
	range->start = page->pgmap->range.start;
	range->size = range_len(&page->pgmap->range);
	range->mem = page_address(pfn_to_page(PHYS_PFN(range->start)));
	range->user.revoke = emu_p2p_revoke;
	err = kverbs_p2pdma_user_add(&range->user, provider);
	if (err)
		kfree(range);
	else
		list_add_rcu(&range->entry, &p2p->ranges);
put:
	pci_dev_put(provider);
	return err;
}

static void emu_p2p_look(struct emu_device *edev, struct page *page)
{
	struct emu_p2p *p2p = &edev->p2p;
	const struct range *all = &page->pgmap->range;
	int err;

	if (emu_p2p_span(edev, phys_to_dma(&edev->pdev->dev, page_to_phys(page)), 1))
		return;
	err = emu_p2p_check_route(edev, page) ?: emu_p2p_add(p2p, page);
	/* If this ran out of memory, whoever needs the route will ask again. */
	if (!err || err == -ENOMEM)
		return;
	raw_spin_lock_irq(&p2p->lock);
	p2p->refused = all->start;
	p2p->refused_size = range_len(all);
	p2p->refused_at = jiffies;
	raw_spin_unlock_irq(&p2p->lock);
}

static void emu_p2p_work(struct work_struct *work)
{
	struct emu_device *edev = container_of(work, struct emu_device, p2p.work);
	struct emu_p2p *p2p = &edev->p2p;
	struct page *page;

	emu_p2p_free_revoked(p2p);
	page = emu_p2p_page(READ_ONCE(p2p->asked));
	if (page) {
		emu_p2p_look(edev, page);
		put_dev_pagemap(page->pgmap);
	}
	raw_spin_lock_irq(&p2p->lock);
	p2p->asked = 0;
	raw_spin_unlock_irq(&p2p->lock);
}

void emu_p2p_init(struct emu_device *edev)
{
	struct emu_p2p *p2p = &edev->p2p;

	INIT_LIST_HEAD(&p2p->ranges);
	INIT_WORK(&p2p->work, emu_p2p_work);
	raw_spin_lock_init(&p2p->lock);
}

/* No engine uses the device any more. Process context. */
void emu_p2p_exit(struct emu_device *edev)
{
	struct emu_p2p_range *range, *next;

	cancel_work_sync(&edev->p2p.work);
	list_for_each_entry_safe(range, next, &edev->p2p.ranges, entry)
		emu_p2p_free(range);
}
