// SPDX-License-Identifier: GPL-2.0-only
/*
 * Mappings of objects, by devices and by processes.
 */
#include "fake_gpu.h"

/*
 * Maps some pages for a device, until fake_gpu_unmap(). The pages cannot change
 * meanwhile, because the caller holds the reservation lock, or the region is in the list.
 * A BAR has no struct pages, so it is mapped as registers are; memory of the system is
 * treated in the same way. Returns a table of addresses, or an ERR_PTR: -ENOMEM; -EIO if
 * the device cannot reach the memory.
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

/* Access to memory that was freed raises SIGBUS. */
static vm_fault_t fake_gpu_fault(struct vm_fault *vmf)
{
	struct fake_gpu_mem *mem = vmf->vma->vm_private_data;
	u64 at = (u64)vmf->pgoff << PAGE_SHIFT;
	vm_fault_t ret = VM_FAULT_SIGBUS;
	phys_addr_t phys;

	dma_resv_lock(mem->dmabuf->resv, NULL);
	if (!mem->freed) {
		phys = mem->page[at / FAKE_GPU_PAGE] + at % FAKE_GPU_PAGE;
		ret = vmf_insert_pfn(vmf->vma, vmf->address, PHYS_PFN(phys));
	}
	dma_resv_unlock(mem->dmabuf->resv);
	return ret;
}

const struct vm_operations_struct fake_gpu_vm_ops = { .fault = fake_gpu_fault };

/* dma_buf_mmap() has checked the range, and holds a reference to the dma-buf for the mapping. */
int fake_gpu_mmap(struct dma_buf *dmabuf, struct vm_area_struct *vma)
{
	struct fake_gpu_mem *mem = dmabuf->priv;

	if (!(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	kv_vm_flags_set(vma, VM_PFNMAP | VM_IO | VM_DONTEXPAND | VM_DONTDUMP);
	if (mem->gpu->bar)
		vma->vm_page_prot = pgprot_writecombine(vma->vm_page_prot);
	vma->vm_private_data = mem;
	vma->vm_ops = &fake_gpu_vm_ops;
	return 0;
}
