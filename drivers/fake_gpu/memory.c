// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects of memory, which are dma-bufs: mapped by devices, taken away, freed.
 *
 * The reservation lock orders those who want the memory and those who take it away.
 * Those who came first lose the memory, and are told: by a fault, by move_notify() or by
 * an invalidation; but importers keep it while one of them has it pinned. Those who come
 * later find it freed, or moved.
 */
#include "fake_gpu.h"

/*
 * Maps some pages for a device, until fake_gpu_unmap(). The pages do not change
 * meanwhile: the caller holds the lock, or is in the list of regions. A BAR has no
 * struct pages, and is reached as registers are; the system's memory poses as a BAR.
 * Returns the addresses, or an error pointer: -ENOMEM; -EIO if the device cannot reach
 * the memory.
 */
struct sg_table *fake_gpu_map(struct fake_gpu_mem *mem, u32 first, u32 nr, struct device *dev)
{
	struct sg_table *sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	struct scatterlist *sg;
	unsigned int i;

	if (!sgt || sg_alloc_table(sgt, nr, GFP_KERNEL)) {
		kfree(sgt);
		return ERR_PTR(-ENOMEM);
	}
	for_each_sgtable_sg(sgt, sg, i) {
		sg_set_page(sg, NULL, FAKE_GPU_PAGE, 0);
		sg_dma_len(sg) = FAKE_GPU_PAGE;
		sg_dma_address(sg) = dma_map_resource(dev, mem->page[first + i], FAKE_GPU_PAGE,
						      DMA_BIDIRECTIONAL, DMA_ATTR_SKIP_CPU_SYNC);
		if (dma_mapping_error(dev, sg_dma_address(sg))) {
			sgt->nents = i;
			fake_gpu_unmap(sgt, dev);
			return ERR_PTR(-EIO);
		}
	}
	return sgt;
}

void fake_gpu_unmap(struct sg_table *sgt, struct device *dev)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_dma_sg(sgt, sg, i)
		dma_unmap_resource(dev, sg_dma_address(sg), FAKE_GPU_PAGE,
				   DMA_BIDIRECTIONAL, DMA_ATTR_SKIP_CPU_SYNC);
	sg_free_table(sgt);
	kfree(sgt);
}

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

static void buf_release(struct dma_buf *dmabuf)
{
	fake_gpu_inject_release(dmabuf->priv);
	mem_destroy(dmabuf->priv);
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
 * Returns an object of @nr pages, which are zeroed. The caller gets its only reference,
 * and puts it after fake_gpu_mem_free(). Otherwise returns an error pointer: -ENOMEM, or
 * what dma_buf_export() returned.
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
 * Takes the memory away from processes and importers. To have it again, they must wait
 * for the lock.
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

/* Called once for each object, while the caller has a reference. */
void fake_gpu_mem_free(struct fake_gpu_mem *mem)
{
	dma_resv_lock(mem->dmabuf->resv, NULL);
	mem->freed = true;
	fake_gpu_inject_free(mem);
	fake_gpu_mem_withdraw(mem);
	dma_resv_unlock(mem->dmabuf->resv);

	fake_gpu_peer_invalidate(mem);
	fake_gpu_pages_fill(mem->gpu, mem->page, mem->nr_pages, FAKE_GPU_POISON);
}
