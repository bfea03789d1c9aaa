// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects of memory, which are dma-bufs: how they are exported, taken away, and freed.
 *
 * The reservation lock orders those who want the memory and those who take it away.
 * Users that have the memory lose it, and learn of that by a page fault, by move_notify()
 * or by an invalidation; but importers keep it while one of them has it pinned. Users
 * that come later find that it was freed, or moved.
 */
#include "fake_gpu.h"

/* Importers must work without struct pages, and declare that they do. */
static int buf_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	return attach->peer2peer ? 0 : -EOPNOTSUPP;
}

/* Called with the lock held, like the next three functions. */
static int buf_pin(struct dma_buf_attachment *attach)
{
	struct fake_gpu_mem *mem = attach->dmabuf->priv;

	if (mem->freed)
		return -ENODEV;
	mem->pins++;
	return 0;
}

static void buf_unpin(struct dma_buf_attachment *attach)
{
	struct fake_gpu_mem *mem = attach->dmabuf->priv;

	mem->pins--;
}

static struct sg_table *buf_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct fake_gpu_mem *mem = attach->dmabuf->priv;

	return mem->freed ? ERR_PTR(-ENODEV) : fake_gpu_map(mem, 0, mem->nr_pages, attach->dev);
}

static void buf_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		      enum dma_data_direction dir)
{
	fake_gpu_unmap(sgt, attach->dev);
}

static void mem_destroy(struct fake_gpu_mem *mem)
{
	fake_gpu_pages_put(mem->gpu, mem->page, mem->nr_pages);
	fake_gpu_put(mem->gpu);
	kvfree(mem);
}

/*
 * Frees the pages when the last reference is gone. Checks that nobody has written to them
 * since FREE, unless a user was allowed to keep them.
 */
static void buf_release(struct dma_buf *dmabuf)
{
	struct fake_gpu_mem *mem = dmabuf->priv;

	if (mem->kept)
		fake_gpu_pages_fill(mem->gpu, mem->page, mem->nr_pages, FAKE_GPU_POISON);
	else
		fake_gpu_pages_check(mem->gpu, mem->page, mem->nr_pages);
	mem_destroy(mem);
}

static const struct dma_buf_ops buf_ops = {
	.attach = buf_attach,
	.pin = buf_pin,
	.unpin = buf_unpin,
	.map_dma_buf = buf_map,
	.unmap_dma_buf = buf_unmap,
	.mmap = fake_gpu_mmap,
	.release = buf_release,
};

/*
 * Returns an object of @nr pages, which are zeroed, or an ERR_PTR: -ENOMEM, or what
 * dma_buf_export() returned. The caller gets the only reference, and must put it after
 * fake_gpu_mem_free().
 */
struct dma_buf *fake_gpu_mem_create(struct fake_gpu *gpu, u32 nr)
{
	struct fake_gpu_mem *mem = kvzalloc(struct_size(mem, page, nr), GFP_KERNEL);
	struct dma_buf *dmabuf = ERR_PTR(-ENOMEM);
	DEFINE_DMA_BUF_EXPORT_INFO(info);

	if (!mem)
		return dmabuf;
	mem->gpu = gpu;
	fake_gpu_get(gpu);
	mem->nr_pages = fake_gpu_pages_get(gpu, mem->page, nr);
	INIT_LIST_HEAD(&mem->regions);
	info.ops = &buf_ops;
	info.size = (u64)nr * FAKE_GPU_PAGE;
	info.flags = O_RDWR;
	info.priv = mem;
	if (mem->nr_pages == nr)
		dmabuf = dma_buf_export(&info);
	if (IS_ERR(dmabuf)) {
		mem_destroy(mem);
		return dmabuf;
	}
	mem->dmabuf = dmabuf;
	fake_gpu_pages_fill(gpu, mem->page, nr, 0);
	return dmabuf;
}

/*
 * Takes the memory away from processes and importers. If they want it again, they must
 * wait for the lock.
 */
void fake_gpu_mem_withdraw(struct fake_gpu_mem *mem)
{
	dma_resv_assert_held(mem->dmabuf->resv);
	unmap_mapping_range(mem->dmabuf->file->f_mapping, 0, 0, 1);
	/* Importers that have it pinned need not give it up: references keep the memory. */
	if (mem->pins)
		return;
	dma_buf_move_notify(mem->dmabuf);
	dma_resv_wait_timeout(mem->dmabuf->resv, DMA_RESV_USAGE_BOOKKEEP, false,
			      MAX_SCHEDULE_TIMEOUT);
}

/* FREE: takes the memory away from all users. Called once for each object, with a reference. */
void fake_gpu_mem_free(struct fake_gpu_mem *mem)
{
	dma_resv_lock(mem->dmabuf->resv, NULL);
	mem->freed = true;
	mem->kept = mem->pins || !mem->gpu->revocable;
	fake_gpu_mem_withdraw(mem);
	dma_resv_unlock(mem->dmabuf->resv);

	fake_gpu_peer_invalidate(mem);
	fake_gpu_pages_fill(mem->gpu, mem->page, mem->nr_pages, FAKE_GPU_POISON);
}
