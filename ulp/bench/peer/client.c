// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two peer-memory clients, whose memory has pages of 64 KiB. It takes no space: every
 * page is the same page of system memory. The tables are made beforehand, so that the
 * functions of the quick client do next to nothing. Those of the slow client do the
 * same, but one call to one of them can be held up.
 *
 * Lock protocol: none. The tables do not change while the clients are registered;
 * only one measurement runs at a time, and it sets up bench_hold before any call.
 */
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/scatterlist.h>
#include <rdma/peer_mem.h>

#include "peerbench.h"

#define BENCH_PAGE	SZ_64K
/* A call held up for this long is taken to have been forgotten. */
#define BENCH_PATIENCE	(10 * HZ)

/**
 * struct bench_memory - memory of one size
 * @size: its size in bytes
 * @sgt: its pages, mapped
 */
struct bench_memory {
	u64 size;
	struct sg_table sgt;
};

static struct bench_memory bench_memory[] = {
	{ .size = BENCH_SMALL },
	{ .size = BENCH_MIDDLE },
	{ .size = BENCH_LARGE },
};

const char *const bench_call_names[BENCH_CALLS] = {
	[BENCH_ACQUIRE]		= "acquire",
	[BENCH_GET_PAGES]	= "get_pages",
	[BENCH_DMA_MAP]		= "dma_map",
	[BENCH_DMA_UNMAP]	= "dma_unmap",
	[BENCH_PUT_PAGES]	= "put_pages",
	[BENCH_RELEASE]		= "release",
};

struct bench_hold bench_hold = { .call = BENCH_CALLS };

static struct bench_memory *bench_memory_find(u64 size)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bench_memory); i++) {
		if (bench_memory[i].size == size)
			return &bench_memory[i];
	}
	return NULL;
}

/* --- the quick client ---------------------------------------------------------- */

static int quick_acquire(unsigned long addr, size_t size, void *data, char *name,
			 void **context)
{
	*context = addr == BENCH_QUICK_ADDR ? bench_memory_find(size) : NULL;
	return !!*context;
}

static int quick_get_pages(unsigned long addr, size_t size, int write, int force,
			   struct sg_table *sgt, void *context, u64 core_context)
{
	struct bench_memory *memory = context;

	*sgt = memory->sgt;
	return 0;
}

static int quick_dma_map(struct sg_table *sgt, void *context, struct device *device,
			 int dmasync, int *nmap)
{
	*nmap = sgt->nents;
	return 0;
}

static int quick_dma_unmap(struct sg_table *sgt, void *context, struct device *device)
{
	return 0;
}

static void quick_put_pages(struct sg_table *sgt, void *context)
{
}

static unsigned long quick_page_size(void *context)
{
	return BENCH_PAGE;
}

static void quick_release(void *context)
{
}

static const struct peer_memory_client quick_ops = {
	.name = "peerbench_quick",
	.version = "1",
	.acquire = quick_acquire,
	.get_pages = quick_get_pages,
	.dma_map = quick_dma_map,
	.dma_unmap = quick_dma_unmap,
	.put_pages = quick_put_pages,
	.get_page_size = quick_page_size,
	.release = quick_release,
};

/* --- the slow client ----------------------------------------------------------- */

/* Holds up the first call of the selected kind; the others proceed. */
static void slow_at(enum bench_call call)
{
	if (READ_ONCE(bench_hold.call) != call ||
	    cmpxchg(&bench_hold.call, call, BENCH_CALLS) != call)
		return;
	complete(&bench_hold.entered);
	bench_hold.in_time = wait_for_completion_timeout(&bench_hold.leave, BENCH_PATIENCE);
}

static int slow_acquire(unsigned long addr, size_t size, void *data, char *name,
			void **context)
{
	slow_at(BENCH_ACQUIRE);
	*context = addr == BENCH_SLOW_ADDR ? bench_memory_find(size) : NULL;
	return !!*context;
}

static int slow_get_pages(unsigned long addr, size_t size, int write, int force,
			  struct sg_table *sgt, void *context, u64 core_context)
{
	slow_at(BENCH_GET_PAGES);
	return quick_get_pages(addr, size, write, force, sgt, context, core_context);
}

static int slow_dma_map(struct sg_table *sgt, void *context, struct device *device,
			int dmasync, int *nmap)
{
	slow_at(BENCH_DMA_MAP);
	return quick_dma_map(sgt, context, device, dmasync, nmap);
}

static int slow_dma_unmap(struct sg_table *sgt, void *context, struct device *device)
{
	slow_at(BENCH_DMA_UNMAP);
	return quick_dma_unmap(sgt, context, device);
}

static void slow_put_pages(struct sg_table *sgt, void *context)
{
	slow_at(BENCH_PUT_PAGES);
}

static void slow_release(void *context)
{
	slow_at(BENCH_RELEASE);
}

static const struct peer_memory_client slow_ops = {
	.name = "peerbench_slow",
	.version = "1",
	.acquire = slow_acquire,
	.get_pages = slow_get_pages,
	.dma_map = slow_dma_map,
	.dma_unmap = slow_dma_unmap,
	.put_pages = slow_put_pages,
	.get_page_size = quick_page_size,
	.release = slow_release,
};

/* --- the client's share of the cost ---------------------------------------------- */

/*
 * Makes the calls of a registration and of a deregistration as the core does; their time
 * is the client's share. They go through a pointer so that the compiler cannot inline
 * them.
 */
static const struct peer_memory_client *bench_ops = &quick_ops;
static struct sg_table bench_sgt;
static void *bench_context;

int bench_client_up(u64 size)
{
	const struct peer_memory_client *ops = READ_ONCE(bench_ops);
	int nmap = 0;

	if (ops->acquire(BENCH_QUICK_ADDR, size, NULL, NULL, &bench_context) != 1)
		return -ENODEV;
	ops->get_pages(BENCH_QUICK_ADDR, size, 1, 0, &bench_sgt, bench_context, 1);
	ops->dma_map(&bench_sgt, bench_context, NULL, 0, &nmap);
	return ops->get_page_size(bench_context) == BENCH_PAGE && nmap ? 0 : -EIO;
}

void bench_client_down(void)
{
	const struct peer_memory_client *ops = READ_ONCE(bench_ops);

	ops->dma_unmap(&bench_sgt, bench_context, NULL);
	ops->put_pages(&bench_sgt, bench_context);
	ops->release(bench_context);
}

/* --- registration ---------------------------------------------------------------- */

static void *quick_handle;
static void *slow_handle;

static void bench_tables_free(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(bench_memory); i++)
		sg_free_table(&bench_memory[i].sgt);
}

static int bench_tables_make(dma_addr_t page)
{
	struct scatterlist *sg;
	int i, j, ret;

	for (i = 0; i < ARRAY_SIZE(bench_memory); i++) {
		ret = sg_alloc_table(&bench_memory[i].sgt, bench_memory[i].size / BENCH_PAGE,
				     GFP_KERNEL);
		if (ret) {
			bench_tables_free();
			return ret;
		}
		for_each_sgtable_dma_sg(&bench_memory[i].sgt, sg, j) {
			sg_dma_address(sg) = page;
			sg_dma_len(sg) = BENCH_PAGE;
		}
	}
	return 0;
}

/*
 * @page: DMA address of the page that backs all of their memory. The slow client
 * registers first, so the core asks it first. Errors: -ENOMEM; -EINVAL if the registry
 * refuses a client.
 */
int bench_clients_register(dma_addr_t page)
{
	invalidate_peer_memory invalidate;
	int ret;

	ret = bench_tables_make(page);
	if (ret)
		return ret;
	slow_handle = ib_register_peer_memory_client(&slow_ops, &invalidate);
	if (slow_handle)
		quick_handle = ib_register_peer_memory_client(&quick_ops, &invalidate);
	if (quick_handle)
		return 0;
	bench_clients_unregister();
	return -EINVAL;
}

void bench_clients_unregister(void)
{
	if (quick_handle)
		ib_unregister_peer_memory_client(quick_handle);
	if (slow_handle)
		ib_unregister_peer_memory_client(slow_handle);
	quick_handle = NULL;
	slow_handle = NULL;
	bench_tables_free();
}
