/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device's memory, where we manage it, not the kernel.
 */
#ifndef KVERBS_P2PDMA_PROVIDER_H
#define KVERBS_P2PDMA_PROVIDER_H

#include <linux/completion.h>
#include <linux/llist.h>
#include <linux/memremap.h>
#include <linux/percpu-refcount.h>
#include <linux/rcupdate.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct gen_pool;
struct p2p_at_hand;
struct p2p_memory;
struct pci_dev;

/**
 * struct p2p_provider - a device that provides memory
 * @pdev: the device, with a reference
 * @node: entry in the table of providers
 * @published: anybody may allocate its memory
 * @users: a reference for each allocation, and for each page that user space has mapped
 * @idle: completed when @users, which was killed, has dropped to zero
 * @at_hand: free pages at hand, per CPU
 * @resources: list of &struct p2p_resource, which only grows; walked under RCU
 * @returned: pages that user space has let go of, and that are not in their
 *	pool yet
 * @return_work: puts them back into their pool
 */
struct p2p_provider {
	struct pci_dev *pdev;
	struct hlist_node node;
	bool published;
	struct percpu_ref users;
	struct completion idle;
	struct p2p_at_hand __percpu *at_hand;
	struct list_head resources;
	struct llist_head returned;
	struct delayed_work return_work;
};

/**
 * struct p2p_resource - a BAR of a provider, or a part of one
 * @pgmap: its pages
 * @provider: the provider
 * @addr: kernel address of the memory
 * @pool: the part of it that is free, and not at hand for a CPU
 * @bus_offset: offset from a host address to the bus address
 * @entry: entry in the provider's list
 */
struct p2p_resource {
	struct dev_pagemap pgmap;
	struct p2p_provider *provider;
	const void *addr;
	struct gen_pool *pool;
	u64 bus_offset;
	struct list_head entry;
};

/* Returns the resource of a page that we manage; NULL for any other page. */
static inline struct p2p_resource *p2p_resource_of(const struct page *page)
{
	if (!is_zone_device_page(page) || page->pgmap->owner != KVERBS_P2PDMA_OWNER)
		return NULL;
	return container_of(page->pgmap, struct p2p_resource, pgmap);
}

bool p2p_provider_memory(struct pci_dev *pdev, struct p2p_memory *mem);
bool p2p_provider_is_live(struct pci_dev *pdev);
int p2p_provider_list(struct pci_dev **list, int max, bool published);
void p2p_provider_split(void *addr, size_t size);
void p2p_provider_settle(struct pci_dev *pdev);

/* --- pool.c --- */

int p2p_pool_init(struct p2p_provider *provider);
void p2p_pool_exit(struct p2p_provider *provider);
void *p2p_pool_take(struct p2p_provider *provider, size_t size);
void p2p_pool_put(struct p2p_provider *provider, void *addr, size_t size);
void p2p_pool_drain(struct p2p_provider *provider);
void p2p_pool_count(struct p2p_provider *provider, struct p2p_memory *mem);

#endif
