// SPDX-License-Identifier: GPL-2.0-only
/*
 * The shape of a driver that allocates the core's table in get_pages(), fills in the DMA
 * addresses in dma_map() and frees the table in put_pages(). When it invalidates a
 * registration, the core calls dma_unmap() and put_pages().
 */
#include <linux/list.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <rdma/peer_mem.h>

#include "peer/shapes.h"

/* A registration. */
struct early {
	struct list_head entry;		/* in the list of registrations that have pages */
	u64 number;			/* core context */
	struct shape_pages *pages;	/* the pinned pages, or NULL */
};

static LIST_HEAD(earlies);
static DEFINE_SPINLOCK(earlies_lock);
static invalidate_peer_memory invalidate;

static int early_acquire(unsigned long addr, size_t size, void *data, char *name,
			 void **client_context)
{
	return shape_acquire(addr, size, client_context, sizeof(struct early));
}

static int early_get_pages(unsigned long addr, size_t size, int write, int force,
			   struct sg_table *sg_head, void *client_context,
			   u64 core_context)
{
	struct early *early = client_context;
	int ret;

	early->pages = shape_pin(addr, size);
	if (!early->pages)
		return -ENOMEM;
	ret = sg_alloc_table(sg_head, early->pages->count, GFP_KERNEL);
	if (ret) {
		shape_unpin(early->pages);
		return ret;
	}
	early->number = core_context;
	spin_lock(&earlies_lock);
	list_add(&early->entry, &earlies);
	spin_unlock(&earlies_lock);
	return 0;
}

static int early_dma_map(struct sg_table *sg_head, void *client_context,
			 struct device *dma_device, int dmasync, int *nmap)
{
	struct early *early = client_context;

	shape_fill(sg_head, early->pages);
	*nmap = sg_head->nents;
	return 0;
}

static int early_dma_unmap(struct sg_table *sg_head, void *client_context,
			   struct device *dma_device)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(sg_head, sg, i)
		if (sg_dma_len(sg) != SHAPE_PAGE)
			atomic_inc(&shape_wrong);
	return 0;
}

static void early_put_pages(struct sg_table *sg_head, void *client_context)
{
	struct early *early = client_context;

	spin_lock(&earlies_lock);
	list_del(&early->entry);
	spin_unlock(&earlies_lock);
	sg_free_table(sg_head);
	shape_unpin(early->pages);
	early->pages = NULL;
}

static void early_release(void *client_context)
{
	struct early *early = client_context;

	shape_free(early, early->pages);
}

/* Invalidates one registration; put_pages() takes it off the list. */
static void early_take_away(void)
{
	struct early *early;
	u64 number = 0;

	spin_lock(&earlies_lock);
	early = list_first_entry_or_null(&earlies, struct early, entry);
	if (early)
		number = early->number;
	spin_unlock(&earlies_lock);
	if (number)
		invalidate(shape_handle, number);
}

static const struct peer_memory_client early_client = {
	.name = "kvt_early",
	.version = "3.141",
	.acquire = early_acquire,
	.get_pages = early_get_pages,
	.dma_map = early_dma_map,
	.dma_unmap = early_dma_unmap,
	.put_pages = early_put_pages,
	.get_page_size = shape_get_page_size,
	.release = early_release,
};

static void *early_up(void)
{
	return ib_register_peer_memory_client(&early_client, &invalidate);
}

const struct peer_shape shape_early = {
	.name = "kvt_early",
	.up = early_up,
	.take_away = early_take_away,
};
