// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client modelled on a GPU driver's bridge, which learns from a callback that pages go
 * away. It registers in three ways:
 *
 *	- with an extended structure and PEER_MEM_INVALIDATE_UNMAPS;
 *	- with the same code and an extended structure of size 0, for cores that know no
 *	  flags: the core calls put_pages() from within its invalidate function, which
 *	  put_pages() recognises by the thread;
 *	- with a plain structure and without invalidate function, for pages that stay.
 *
 * The callback unpins the pages when the core's invalidate function has returned, and
 * ignores its return value.
 */
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <rdma/peer_mem.h>

#include "peer/shapes.h"

#ifndef PEER_MEM_U64_CORE_CONTEXT
#error "this client wants numbers"
#endif

/* A registration. */
struct bridge_context {
	struct list_head entry;		/* entry in the list of all contexts */
	/* References: the core's until release(), and that of a running callback. */
	struct kref ref;
	u64 number;			/* core context */
	struct shape_pages *pages;	/* pinned pages; NULL when they are unpinned */
	/* Copy of the table passed to the core; its entries live until release(). */
	struct sg_table table;
	bool has_table;			/* @table is valid */
	struct task_struct *task;	/* thread that runs the callback, or NULL */
};

static LIST_HEAD(contexts);
static DEFINE_SPINLOCK(contexts_lock);
static invalidate_peer_memory invalidate;

static void context_free(struct kref *ref)
{
	struct bridge_context *ctx = container_of(ref, struct bridge_context, ref);

	shape_free(ctx, ctx->pages);
}

static int bridge_acquire(unsigned long addr, size_t size, void *data, char *name,
			  void **client_context)
{
	struct bridge_context *ctx;

	if (!shape_acquire(addr, size, client_context, sizeof(*ctx)))
		return 0;
	ctx = *client_context;
	kref_init(&ctx->ref);
	return 1;
}

static int bridge_get_pages(unsigned long addr, size_t size, int write, int force,
			    struct sg_table *sg_head, void *client_context,
			    u64 core_context)
{
	struct bridge_context *ctx = client_context;

	ctx->number = core_context;
	ctx->pages = shape_pin(addr, size);
	if (!ctx->pages)
		return -ENOMEM;
	spin_lock(&contexts_lock);
	list_add(&ctx->entry, &contexts);
	spin_unlock(&contexts_lock);
	return 0;
}

static int bridge_dma_map(struct sg_table *sg_head, void *client_context,
			  struct device *dma_device, int dmasync, int *nmap)
{
	struct bridge_context *ctx = client_context;
	int ret = sg_alloc_table(sg_head, ctx->pages->count, GFP_KERNEL);

	if (ret)
		return ret;
	ctx->table = *sg_head;
	ctx->has_table = true;
	shape_fill(sg_head, ctx->pages);
	*nmap = sg_head->nents;
	return 0;
}

static bool is_table_of(struct bridge_context *ctx, struct sg_table *sg_head)
{
	return !memcmp(sg_head, &ctx->table, sizeof(*sg_head));
}

static int bridge_dma_unmap(struct sg_table *sg_head, void *client_context,
			    struct device *dma_device)
{
	struct bridge_context *ctx = client_context;

	if (!is_table_of(ctx, sg_head))
		atomic_inc(&shape_wrong);
	return 0;
}

/* Unpins the pages unless put_pages() or the callback has already done so. */
static void unpin_once(struct bridge_context *ctx)
{
	struct shape_pages *pages = xchg(&ctx->pages, NULL);

	if (pages)
		shape_unpin(pages);
}

static void forget(struct bridge_context *ctx)
{
	spin_lock(&contexts_lock);
	list_del_init(&ctx->entry);
	spin_unlock(&contexts_lock);
}

static void bridge_put_pages(struct sg_table *sg_head, void *client_context)
{
	struct bridge_context *ctx = client_context;

	if (READ_ONCE(ctx->task) == current)
		return;
	if (ctx->has_table && !is_table_of(ctx, sg_head))
		atomic_inc(&shape_wrong);
	forget(ctx);
	unpin_once(ctx);
}

static void bridge_release(void *client_context)
{
	struct bridge_context *ctx = client_context;

	if (ctx->has_table)
		sg_free_table(&ctx->table);
	kref_put(&ctx->ref, context_free);
}

/* Takes the next context off the list, so that it gets one callback only. */
static struct bridge_context *next_context(void)
{
	struct bridge_context *ctx;

	spin_lock(&contexts_lock);
	ctx = list_first_entry_or_null(&contexts, struct bridge_context, entry);
	if (ctx) {
		list_del_init(&ctx->entry);
		kref_get(&ctx->ref);
	}
	spin_unlock(&contexts_lock);
	return ctx;
}

/* The pages go away: ends their use in the core, then unpins them. */
static void bridge_callback(struct bridge_context *ctx)
{
	WRITE_ONCE(ctx->task, current);
	(*invalidate)(shape_handle, ctx->number);
	WRITE_ONCE(ctx->task, NULL);
	unpin_once(ctx);
}

static void bridge_take_away(void)
{
	struct bridge_context *ctx;

	while ((ctx = next_context())) {
		bridge_callback(ctx);
		kref_put(&ctx->ref, context_free);
	}
}

static struct peer_memory_client_ex bridge_ex = { .client = {
	.acquire = bridge_acquire,
	.get_pages = bridge_get_pages,
	.dma_map = bridge_dma_map,
	.dma_unmap = bridge_dma_unmap,
	.put_pages = bridge_put_pages,
	.get_page_size = shape_get_page_size,
	.release = bridge_release,
} };

static void *bridge_register(const char *name, bool invalidates)
{
	struct peer_memory_client *client = &bridge_ex.client;

	strscpy(client->name, name, sizeof(client->name));
	strscpy(client->version, "2.0", sizeof(client->version));
	/* The last byte of the version tells the core whether the structure is an extended one. */
	client->version[IB_PEER_MEMORY_VER_MAX - 1] = invalidates;
	return ib_register_peer_memory_client(client, invalidates ? &invalidate : NULL);
}

static void *unmaps_up(void)
{
	bridge_ex.ex_size = sizeof(bridge_ex);
	bridge_ex.flags = PEER_MEM_INVALIDATE_UNMAPS;
	return bridge_register("kvt_bridge", true);
}

static void *legacy_up(void)
{
	bridge_ex.ex_size = 0;
	bridge_ex.flags = PEER_MEM_INVALIDATE_UNMAPS;
	return bridge_register("kvt_bridge_legacy", true);
}

static void *persistent_up(void)
{
	return bridge_register("kvt_bridge_nc", false);
}

const struct peer_shape shape_unmaps = {
	.name = "kvt_bridge",
	.up = unmaps_up,
	.take_away = bridge_take_away,
};

const struct peer_shape shape_legacy = {
	.name = "kvt_bridge_legacy",
	.up = legacy_up,
	.take_away = bridge_take_away,
};

const struct peer_shape shape_persistent = {
	.name = "kvt_bridge_nc",
	.up = persistent_up,
};
