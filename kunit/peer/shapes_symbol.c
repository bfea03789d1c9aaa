// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client in the shape of a GPU driver that works with and without RDMA: it looks up the
 * registration functions by symbol_request() when it loads, and has its own declarations of
 * an old interface, in which the core context is a pointer and struct peer_memory_client has
 * two more methods at its end. It has a mutex per process, which it takes in the methods that
 * the core calls, and holds while it invalidates.
 *
 * It takes a return value of invalidate() other than 0 for "somebody else is about to unmap
 * it". It drops the pages in any case, so a later put_pages() finds nothing to do.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "peer/shapes.h"
#include "peer/shapes_symbol.h"

/* Memory of a process. */
struct buffer {
	struct list_head entry;		/* in the list of buffers whose pages are pinned */
	/* One reference is the core's, until release(); symbol_take_away() takes another. */
	struct kref ref;
	void *core_context;		/* the core's context, for invalidate() */
	/* Pinned pages, or NULL after they were invalidated or put. */
	struct shape_pages *pages;
	/* Table of the pages; the core gets a copy of the struct sg_table. */
	struct sg_table sgt;
	struct task_struct *taken_by;	/* thread that is invalidating the buffer, or NULL */
};

static typeof(&ib_register_peer_memory_client) register_client;
static typeof(&ib_unregister_peer_memory_client) unregister_client;
static int (*invalidate)(void *handle, void *core_context);

/* The mutex of the only process. Guards the list and the buffers' pages. */
static DEFINE_MUTEX(process_lock);
static LIST_HEAD(buffers);

static void buffer_free(struct kref *ref)
{
	struct buffer *buf = container_of(ref, struct buffer, ref);

	sg_free_table(&buf->sgt);
	shape_free(buf, buf->pages);
}

static int symbol_acquire(unsigned long addr, size_t size, void *data, char *name,
			  void **client_context)
{
	struct buffer *buf;

	if (!shape_acquire(addr, size, client_context, sizeof(*buf)))
		return 0;
	buf = *client_context;
	kref_init(&buf->ref);
	INIT_LIST_HEAD(&buf->entry);
	return 1;
}

static int symbol_get_pages(unsigned long addr, size_t size, int write, int force,
			    struct sg_table *sg_head, void *client_context,
			    void *core_context)
{
	struct buffer *buf = client_context;
	int ret = -ENOMEM;

	mutex_lock(&process_lock);
	buf->core_context = core_context;
	buf->pages = shape_pin(addr, size);
	if (!buf->pages)
		goto unlock;
	ret = sg_alloc_table(&buf->sgt, buf->pages->count, GFP_KERNEL);
	if (ret) {
		shape_unpin(buf->pages);
		buf->pages = NULL;
		goto unlock;
	}
	shape_fill(&buf->sgt, buf->pages);
	list_add(&buf->entry, &buffers);
unlock:
	mutex_unlock(&process_lock);
	return ret;
}

static int symbol_dma_map(struct sg_table *sg_head, void *client_context,
			  struct device *dma_device, int dmasync, int *nmap)
{
	struct buffer *buf = client_context;

	*sg_head = buf->sgt;
	*nmap = buf->sgt.nents;
	return 0;
}

static int symbol_dma_unmap(struct sg_table *sg_head, void *client_context,
			    struct device *dma_device)
{
	struct buffer *buf = client_context;

	if (sg_head->sgl != buf->sgt.sgl || sg_head->nents != buf->sgt.nents)
		atomic_inc(&shape_wrong);
	return 0;
}

static void drop_pages(struct buffer *buf)
{
	lockdep_assert_held(&process_lock);
	list_del_init(&buf->entry);
	if (buf->pages)
		shape_unpin(buf->pages);
	buf->pages = NULL;
}

static void symbol_put_pages(struct sg_table *sg_head, void *client_context)
{
	struct buffer *buf = client_context;

	/* Called within invalidate(): the caller holds the mutex, and drops the pages later. */
	if (READ_ONCE(buf->taken_by) == current)
		return;
	mutex_lock(&process_lock);
	drop_pages(buf);
	mutex_unlock(&process_lock);
}

static void symbol_release(void *client_context)
{
	struct buffer *buf = client_context;

	kref_put(&buf->ref, buffer_free);
}

static void symbol_take_away(void)
{
	struct buffer *buf;

	mutex_lock(&process_lock);
	while ((buf = list_first_entry_or_null(&buffers, struct buffer, entry))) {
		kref_get(&buf->ref);
		WRITE_ONCE(buf->taken_by, current);
		if (invalidate(shape_handle, buf->core_context))
			pr_debug("somebody else is about to unmap it\n");
		drop_pages(buf);
		WRITE_ONCE(buf->taken_by, NULL);
		kref_put(&buf->ref, buffer_free);
	}
	mutex_unlock(&process_lock);
}

/* Never called: the core does not know this method. */
static void put_nothing(void *context)
{
	atomic_inc(&shape_wrong);
}

static struct peer_memory_client client = {
	.name = "kvt_symbol",
	.version = "1.0",
	.acquire = symbol_acquire,
	.get_pages = symbol_get_pages,
	.dma_map = symbol_dma_map,
	.dma_unmap = symbol_dma_unmap,
	.put_pages = symbol_put_pages,
	.get_page_size = shape_get_page_size,
	.release = symbol_release,
	.get_context_private_data = NULL,
	.put_context_private_data = put_nothing,
};

static void put_symbols(void)
{
	if (register_client)
		symbol_put(ib_register_peer_memory_client);
	if (unregister_client)
		symbol_put(ib_unregister_peer_memory_client);
	register_client = NULL;
	unregister_client = NULL;
}

static void *symbol_up(void)
{
	void *handle = NULL;

	register_client = symbol_request(ib_register_peer_memory_client);
	unregister_client = symbol_request(ib_unregister_peer_memory_client);
	if (register_client && unregister_client)
		handle = register_client(&client, &invalidate);
	if (!handle)
		put_symbols();
	return handle;
}

static void symbol_down(void)
{
	unregister_client(shape_handle);
	put_symbols();
}

const struct peer_shape shape_by_symbol = {
	.name = "kvt_symbol",
	.up = symbol_up,
	.down = symbol_down,
	.take_away = symbol_take_away,
};
