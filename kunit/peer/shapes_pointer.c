// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client for the older interface, in which the core context is a pointer. It has only
 * the methods that the interface requires: no get_page_size(), and no release().
 */
#define PEER_MEM_VOID_CORE_CONTEXT

#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <rdma/peer_mem.h>

#include "peer/shapes.h"

#ifdef PEER_MEM_U64_CORE_CONTEXT
#error "this client wants pointers"
#endif

/* The client has room for one registration. */
static struct shape_pages *pinned;
static void *pinned_context;
static DEFINE_SPINLOCK(pinned_lock);
static invalidate_peer_memory invalidate;

static int pointer_acquire(unsigned long addr, size_t size, void *data, char *name,
			   void **client_context)
{
	return shape_has(addr, size);
}

static int pointer_get_pages(unsigned long addr, size_t size, int write, int force,
			     struct sg_table *sg_head, void *client_context,
			     void *core_context)
{
	struct shape_pages *pages = shape_pin(addr, size);

	if (!pages)
		return -ENOMEM;
	spin_lock(&pinned_lock);
	pinned = pages;
	pinned_context = core_context;
	spin_unlock(&pinned_lock);
	return 0;
}

/* Maps from the page of the first byte, and further than the range reaches. */
static int pointer_dma_map(struct sg_table *sg_head, void *client_context,
			   struct device *dma_device, int dmasync, int *nmap)
{
	unsigned int i, count = 2 * SHAPE_PAGE / PAGE_SIZE;
	struct scatterlist *sg;
	int ret = sg_alloc_table(sg_head, count, GFP_KERNEL);

	if (ret)
		return ret;
	for_each_sgtable_sg(sg_head, sg, i) {
		sg_dma_address(sg) = shape_dma(pinned) + SHAPE_PAGE / 2 + i * PAGE_SIZE;
		sg_dma_len(sg) = PAGE_SIZE;
	}
	*nmap = count;
	return 0;
}

static int pointer_dma_unmap(struct sg_table *sg_head, void *client_context,
			     struct device *dma_device)
{
	sg_free_table(sg_head);
	return 0;
}

static void pointer_put_pages(struct sg_table *sg_head, void *client_context)
{
	struct shape_pages *pages;

	spin_lock(&pinned_lock);
	pages = pinned;
	pinned = NULL;
	pinned_context = NULL;
	spin_unlock(&pinned_lock);
	shape_unpin(pages);
}

static void pointer_take_away(void)
{
	void *context;

	spin_lock(&pinned_lock);
	context = pinned_context;
	spin_unlock(&pinned_lock);
	if (context)
		invalidate(shape_handle, context);
}

static struct peer_memory_client pointer_client = {
	.name = "kvt_pointer",
	.version = "1",
	.acquire = pointer_acquire,
	.get_pages = pointer_get_pages,
	.dma_map = pointer_dma_map,
	.dma_unmap = pointer_dma_unmap,
	.put_pages = pointer_put_pages,
};

static void *pointer_up(void)
{
	return ib_register_peer_memory_client(&pointer_client, &invalidate);
}

const struct peer_shape shape_pointer = {
	.name = "kvt_pointer",
	.up = pointer_up,
	.take_away = pointer_take_away,
};
