// SPDX-License-Identifier: GPL-2.0-only
/*
 * Turns a range of addresses into a region: finds the client that has the memory, and
 * calls its functions until there is a table for the device.
 *
 * Lock protocol: none. A walk over the clients holds a reference to the one that it
 * asks. So a slow client holds up only those who ask for memory, and whoever unregisters
 * it. What an invalidation does meanwhile is in region.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/align.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/string.h>
#include <kverbs/peer_region.h>

#include "peer.h"
#include "trace.h"

/* Reports that a function of a client has done something that it must not do. */
#define region_err(region, fmt, ...)						\
	pr_err_ratelimited("client '%s': region of %zu bytes at %#lx: " fmt,	\
			   peer_client_name((region)->client), (region)->size,	\
			   (region)->addr, ##__VA_ARGS__)

/* Turns what a client's function has returned into an error that can be passed on. */
static int region_errno(struct peer_region *region, const char *function, int ret)
{
	if (!ret || IS_ERR_VALUE((long)ret))
		return ret;
	region_err(region, "%s returned %d, must be 0 or a negative errno\n", function, ret);
	return -EINVAL;
}

static int region_pin(struct peer_region *region, bool writable)
{
	const struct peer_memory_client *ops = region->client->ops;
	int err;

	err = ops->get_pages(region->addr, region->size, writable, 0, &region->sgt,
			     region->context, region->number);
	err = region_errno(region, "get_pages", err);
	region->pinned = !err;
	return err;
}

static int region_map(struct peer_region *region, int *nmap)
{
	const struct peer_memory_client *ops = region->client->ops;
	int err;

	err = ops->dma_map(&region->sgt, region->context, region->dma_device, 0, nmap);
	err = region_errno(region, "dma_map", err);
	region->mapped = !err;
	return err;
}

/* Returns the size of the client's pages in bytes, or 0 if it is not valid. */
static unsigned long region_page_size(struct peer_region *region)
{
	const struct peer_memory_client *ops = region->client->ops;
	unsigned long size = PAGE_SIZE;

	if (ops->get_page_size)
		size = ops->get_page_size(region->context);
	if (size >= PAGE_SIZE && is_power_of_2(size))
		return size;
	region_err(region, "get_page_size returned %lu, must be a power of two of at least %lu\n",
		   size, PAGE_SIZE);
	return 0;
}

/* Makes the table that the device gets: the pages of the system that the range touches. */
static int region_trim(struct peer_region *region, int nmap)
{
	unsigned long page_size = region_page_size(region);
	unsigned long first = region->addr & PAGE_MASK;
	unsigned long end = PAGE_ALIGN(region->addr + region->size);
	int err;

	if (!page_size)
		return -EINVAL;
	if (nmap <= 0 || nmap > region->sgt.orig_nents) {
		region_err(region, "dma_map set nmap to %d, but its table has %u entries\n",
			   nmap, region->sgt.orig_nents);
		return -EINVAL;
	}
	err = peer_table_trim(&region->table, region->sgt.sgl, nmap,
			      first - ALIGN_DOWN(region->addr, page_size), end - first);
	if (err == -EINVAL)
		region_err(region, "dma_map returned %d entries that do not cover the region in pages of %lu bytes from %#lx\n",
			   nmap, page_size, ALIGN_DOWN(region->addr, page_size));
	return err;
}

static void region_count(struct peer_region *region, unsigned int entries)
{
	struct peer_client *client = region->client;

	WRITE_ONCE(region->entries, entries);
	peer_count(client, PEER_STAT_ALLOC_MRS, 1);
	peer_count(client, PEER_STAT_REG_PAGES, entries);
	peer_count(client, PEER_STAT_REG_BYTES, region->size);
	peer_count(client, PEER_STAT_LIVE_MRS, 1);
}

/* Gets the memory. After an error, peer_region_put() gives back what was got. */
static int region_fill(struct peer_region *region, bool writable)
{
	int err, nmap = 0;

	err = region_pin(region, writable);
	if (err)
		return err;
	if (peer_region_is_doomed(region))
		return -ECANCELED;
	err = region_map(region, &nmap);
	if (err)
		return err;
	err = region_trim(region, nmap);
	if (err)
		return err;
	region_count(region, nmap);
	return peer_region_is_doomed(region) ? -ECANCELED : 0;
}

/* Makes a region of memory that the client says is its own. */
static struct peer_region *region_make(struct peer_client *client, void *context,
				       const struct peer_request *req)
{
	struct peer_region *region;
	u64 start = ktime_get_ns();
	unsigned long number;
	int err;

	region = peer_region_alloc(client, context, req);
	if (IS_ERR(region)) {
		if (client->ops->release)
			client->ops->release(context);
		return region;
	}
	number = region->number;
	err = region_fill(region, req->writable);
	if (err)
		peer_region_put(region);
	trace_peer_region_get(client, req, number, err, ktime_get_ns() - start);
	return err ? ERR_PTR(err) : region;
}

/*
 * Returns 1 if the range is the client's; -ENODEV if it is not; -EOPNOTSUPP if the
 * client was not asked.
 */
static int client_acquire(struct peer_client *client, const struct peer_request *req,
			  void **context)
{
	void *data = req->name ? (void *)req->data : NULL;
	int ret;

	if (client->invalidates && !req->revocable)
		return -EOPNOTSUPP;
	ret = client->ops->acquire(req->addr, req->size, data, (char *)req->name, context);
	return ret == 1 ? 1 : -ENODEV;
}

/**
 * peer_region_get() - get memory for a device, from whichever client has it
 * @req: which memory, and for whom
 *
 * If @req->revocable, the caller must call peer_region_activate() next. In any case it
 * must call peer_region_put() in the end. No lock is held while a client's functions
 * run.
 *
 * Context: The process whose memory it is; may sleep, for as long as the client takes.
 * Return: the region, with its table; or an ERR_PTR: -ENOENT if no client has that
 * name; -ENODEV if no client has the memory; -EOPNOTSUPP if none of those asked has
 * it, but some were not asked, because they invalidate and the caller cannot be
 * revoked; -ECANCELED if the client invalidated it in the meantime; -EINVAL if what
 * the client mapped is not what was asked for; -ENOMEM; or what get_pages() or
 * dma_map() returned.
 */
struct peer_region *peer_region_get(const struct peer_request *req)
{
	int why = req->name ? -ENOENT : -ENODEV;
	struct peer_region *region = NULL;
	struct peer_client *client;
	unsigned long id;
	void *context;
	int ret;

	for (id = 0; !region && (client = peer_client_next(&id)); id++) {
		if (!req->name || !strcmp(req->name, peer_client_name(client))) {
			context = NULL;
			ret = client_acquire(client, req, &context);
			if (ret > 0)
				region = region_make(client, context, req);
			else if (why != -EOPNOTSUPP)
				why = ret;
		}
		peer_client_put(client);
	}
	return region ? : ERR_PTR(why);
}
EXPORT_SYMBOL_GPL(peer_region_get);
