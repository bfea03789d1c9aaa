// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions of a process. The midlayer pins and maps the pages; they are let
 * go by emu_dereg_mr(), when nobody is inside the region any more.
 */
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "region.h"

/* Makes the region's page list from the pinned memory, and opens it. */
static int emu_user_set(struct emu_mr *mr, struct ib_umem *umem, unsigned long page_size,
			int access)
{
	struct emu_region *region = &mr->region;
	struct ib_block_iter iter;

	rdma_umem_for_each_dma_block(umem, &iter, page_size) {
		if (WARN_ON_ONCE(region->nr_pages == region->max_pages))
			return -EINVAL;
		region->pages[region->nr_pages++] = rdma_block_iter_dma_address(&iter);
	}

	emu_region_seize(region, EMU_REGION_FREE);
	region->page_shift = ilog2(page_size);
	region->access = access;
	if (!emu_region_set_range(region, umem->iova, umem->length)) {
		emu_region_settle(region, EMU_REGION_FREE);
		return -EINVAL;
	}
	emu_region_publish(region);
	return 0;
}

static struct emu_mr *emu_user_create(struct ib_pd *pd, struct ib_umem *umem, u64 iova,
				      int access)
{
	unsigned long page_size;
	struct emu_mr *mr;
	size_t nr;
	int err;

	page_size = ib_umem_find_best_pgsz(umem, EMU_PAGE_SIZES, iova);
	if (!page_size)
		return ERR_PTR(-EINVAL);
	nr = ib_umem_num_dma_blocks(umem, page_size);
	if (!nr || nr > U32_MAX)
		return ERR_PTR(-EINVAL);

	mr = emu_mr_create(pd, EMU_REGION_USER, nr);
	if (IS_ERR(mr))
		return mr;
	err = emu_user_set(mr, umem, page_size, access);
	if (err) {
		emu_dereg_mr(&mr->ibmr, NULL);
		return ERR_PTR(err);
	}
	mr->ibmr.iova = iova;
	mr->ibmr.length = umem->length;
	mr->ibmr.page_size = page_size;
	mr->umem = umem;
	return mr;
}

struct ib_mr *emu_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
			      int access, struct ib_udata *udata)
{
	struct ib_umem *umem;
	struct emu_mr *mr;

	umem = ib_umem_get(pd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	mr = emu_user_create(pd, umem, virt_addr, access);
	if (!IS_ERR(mr))
		return &mr->ibmr;
	ib_umem_release(umem);
	return ERR_CAST(mr);
}
