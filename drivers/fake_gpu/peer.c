// SPDX-License-Identifier: GPL-2.0-only
/*
 * The peer-memory client: objects under RDMA.
 *
 * acquire() creates a region, which is passed to the other functions. Its reference to
 * the object keeps the pages in place until release(). Between get_pages() and
 * put_pages() it is in the object's list, unless FREE has removed it from there, to
 * invalidate it with no lock held.
 *
 * FREE may come at any moment of a region's life:
 *  before get_pages()	get_pages() then fails;
 *  before activation	the invalidation waits until dma_map() has returned;
 *  in use		the invalidation ends the use;
 *  in dma_unmap() or put_pages()	the invalidation leaves the region to them, and
 *			does not wait;
 *  in release()	release() waits until the invalidation has returned, because that
 *			uses the region. So when the client is unregistered, which waits
 *			for release(), no invalidation is still using the client's handle.
 */
#include "fake_gpu.h"

/**
 * struct peer_region - a range under RDMA, or on the way to it
 * @list: entry in fake_gpu_mem.regions
 * @mem: the object, with a reference
 * @first: page of the object that has the first byte
 * @nr: number of pages that have bytes of the range
 * @writable: the process may write
 * @core_context: the name of the region for the registry
 * @sgt: the addresses that a device has; NULL if none has any
 * @dev: the device
 * @invalidating: FREE has taken it out of the list
 * @invalidated: completed when FREE is done with it
 */
struct peer_region {
	struct list_head list;
	struct fake_gpu_mem *mem;
	u32 first;
	u32 nr;
	bool writable;
	u64 core_context;
	struct sg_table *sgt;
	struct device *dev;
	bool invalidating;
	struct completion invalidated;
};

/*
 * Returns 1 if the range is ours, else 0. It must be in one mapping of one object of this
 * device, and the mapping must have pages at multiples of their size, as the registry
 * expects. The mapping need not stay, because it is the memory that is registered.
 */
int fake_gpu_peer_acquire(struct fake_gpu *gpu, unsigned long addr, size_t size, void **context)
{
	struct peer_region *region = NULL;
	struct vm_area_struct *vma;
	struct fake_gpu_mem *mem;
	u64 offset;

	/* A kernel thread registers memory: it has no mapping of ours. */
	if (!current->mm)
		return 0;
	mmap_read_lock(current->mm);
	vma = vma_lookup(current->mm, addr);
	mem = vma && vma->vm_ops == &fake_gpu_vm_ops ? vma->vm_private_data : NULL;
	if (mem && mem->gpu == gpu && size <= vma->vm_end - addr &&
	    IS_ALIGNED(vma->vm_start - (vma->vm_pgoff << PAGE_SHIFT), FAKE_GPU_PAGE))
		region = kzalloc(sizeof(*region), GFP_KERNEL);
	if (region) {
		offset = addr - vma->vm_start + ((u64)vma->vm_pgoff << PAGE_SHIFT);
		region->first = offset / FAKE_GPU_PAGE;
		region->nr = DIV_ROUND_UP(offset + size, FAKE_GPU_PAGE) - region->first;
		region->writable = vma->vm_flags & VM_WRITE;
		region->mem = mem;
		init_completion(&region->invalidated);
		get_dma_buf(mem->dmabuf);
		*context = region;
	}
	mmap_read_unlock(current->mm);
	return !!region;
}

/* Fails if FREE has come before. From here on, FREE finds the region, and invalidates it. */
static int peer_get_pages(unsigned long addr, size_t size, int write, int force,
			  struct sg_table *sgt, void *context, peer_core_context_t core_context)
{
	struct peer_region *region = context;
	struct fake_gpu_mem *mem = region->mem;
	int ret = 0;

	if (write && !region->writable)
		return -EACCES;
	region->core_context = core_context;
	dma_resv_lock(mem->dmabuf->resv, NULL);
	if (mem->freed)
		ret = -ENODEV;
	else
		list_add(&region->list, &mem->regions);
	dma_resv_unlock(mem->dmabuf->resv);
	return ret;
}

/*
 * Even if FREE has come already, it waits until this function has returned, or leaves the
 * region to dma_unmap().
 */
static int peer_dma_map(struct sg_table *sgt, void *context, struct device *dev, int dmasync,
			int *nmap)
{
	struct peer_region *region = context;
	struct sg_table *table = fake_gpu_map(region->mem, region->first, region->nr, dev);

	if (IS_ERR(table))
		return PTR_ERR(table);
	region->sgt = table;
	region->dev = dev;
	*sgt = *table;
	*nmap = table->nents;
	return 0;
}

/* Does not use @sgt, which is only the registry's copy of the table. */
static int peer_dma_unmap(struct sg_table *sgt, void *context, struct device *dev)
{
	struct peer_region *region = context;

	fake_gpu_unmap(region->sgt, region->dev);
	region->sgt = NULL;
	return 0;
}

static void peer_put_pages(struct sg_table *sgt, void *context)
{
	struct peer_region *region = context;

	dma_resv_lock(region->mem->dmabuf->resv, NULL);
	list_del_init(&region->list);
	dma_resv_unlock(region->mem->dmabuf->resv);
}

static unsigned long peer_page_size(void *context)
{
	return FAKE_GPU_PAGE;
}

static void peer_release(void *context)
{
	struct peer_region *region = context;

	if (region->invalidating)
		wait_for_completion(&region->invalidated);
	dma_buf_put(region->mem->dmabuf);
	kfree(region);
}

/* Returns the next region to invalidate, for which release() then waits; or NULL. */
static struct peer_region *peer_next_region(struct fake_gpu_mem *mem)
{
	struct peer_region *region;

	dma_resv_lock(mem->dmabuf->resv, NULL);
	region = list_first_entry_or_null(&mem->regions, struct peer_region, list);
	if (region) {
		region->invalidating = true;
		list_del_init(&region->list);
	}
	dma_resv_unlock(mem->dmabuf->resv);
	return region;
}

/*
 * Ends RDMA to an object that was freed. No region can be added to the list any more.
 *
 * invalidate() returns 0 if the registry is done with the region. If the region is still
 * mapped then, it is left to us, as PEER_MEM_INVALIDATE_UNMAPS says; after a registration
 * that failed, or without that flag, it is not mapped. invalidate() returns -EINPROGRESS if
 * another thread is about to unmap the region, and -ENOENT if that has been done.
 */
void fake_gpu_peer_invalidate(struct fake_gpu_mem *mem)
{
	struct fake_gpu *gpu = mem->gpu;
	struct peer_region *region;

	if (!gpu->revocable)
		return;
	while ((region = peer_next_region(mem))) {
		if (!gpu->invalidate(gpu->peer, region->core_context) && region->sgt)
			peer_dma_unmap(NULL, region, NULL);
		complete(&region->invalidated);
	}
}

/*
 * Fills in the client before it is registered, except for its name. Returns true: there is a
 * registry, unlike in peer_none.c.
 */
bool fake_gpu_peer_client(struct fake_gpu *gpu)
{
	struct peer_memory_client *client = &gpu->client.client;

	client->get_pages = peer_get_pages;
	client->dma_map = peer_dma_map;
	client->dma_unmap = peer_dma_unmap;
	client->put_pages = peer_put_pages;
	client->get_page_size = peer_page_size;
	client->release = peer_release;
	client->version[0] = '1';
	/* The client is a peer_memory_client_ex. */
	client->version[IB_PEER_MEMORY_VER_MAX - 1] = 1;
	gpu->client.ex_size = sizeof(gpu->client);
	gpu->client.flags = PEER_MEM_INVALIDATE_UNMAPS;
	return true;
}

/*
 * Registers the client. Must be called before processes can allocate memory, because
 * acquire() may be called at once, but @peer is only set later. Returns 0, or -EINVAL after
 * the registry has logged the reason.
 */
int fake_gpu_peer_register(struct fake_gpu *gpu)
{
	gpu->peer = ib_register_peer_memory_client(&gpu->client.client,
						   gpu->revocable ? &gpu->invalidate : NULL);
	return gpu->peer ? 0 : -EINVAL;
}

/* Waits until all regions have been released. */
void fake_gpu_peer_unregister(struct fake_gpu *gpu)
{
	ib_unregister_peer_memory_client(gpu->peer);
	gpu->peer = NULL;
}
