// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions: all of memory, and page lists for fast registration. See
 * region.c for how they are found and used, and by whom.
 */
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "region.h"

/* Returns a region that is not valid yet, or an ERR_PTR: -ENOMEM. */
struct emu_mr *emu_mr_create(struct ib_pd *pd, enum emu_region_kind kind, u32 max_pages)
{
	struct emu_mr *mr;
	int err;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL_ACCOUNT);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	err = emu_region_add(&mr->region, pd, kind, max_pages);
	if (err) {
		kfree(mr);
		return ERR_PTR(err);
	}
	mr->ibmr.lkey = mr->region.key;
	mr->ibmr.rkey = mr->region.key;
	return mr;
}

struct ib_mr *emu_get_dma_mr(struct ib_pd *pd, int access)
{
	struct emu_mr *mr = emu_mr_create(pd, EMU_REGION_DMA, 0);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	emu_region_seize(&mr->region, EMU_REGION_FREE);
	mr->region.access = access;
	mr->region.length = U64_MAX;
	emu_region_publish(&mr->region);
	return &mr->ibmr;
}

struct ib_mr *emu_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct emu_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > EMU_MAX_PAGE_LIST)
		return ERR_PTR(-EINVAL);
	mr = emu_mr_create(pd, EMU_REGION_FAST, max_num_sg);
	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->next = kvcalloc(max_num_sg, sizeof(*mr->next), GFP_KERNEL);
	if (!mr->next) {
		emu_dereg_mr(&mr->ibmr, NULL);
		return ERR_PTR(-ENOMEM);
	}
	return &mr->ibmr;
}

static int emu_mr_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct emu_mr *mr = to_emr(ibmr);

	if (mr->nr_next == mr->region.max_pages)
		return -ENOMEM;
	mr->next[mr->nr_next++] = addr;
	return 0;
}

int emu_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	struct emu_mr *mr = to_emr(ibmr);
	int mapped;

	if (mr->region.kind != EMU_REGION_FAST || !(ibmr->page_size & EMU_PAGE_SIZES))
		return -EINVAL;
	mr->nr_next = 0;
	mr->mapped = true;
	mapped = ib_sg_to_pages(ibmr, sg, nents, offset, emu_mr_set_page);
	/* The consumer may change @iova. */
	mr->virt_addr = ibmr->iova;
	return mapped;
}

int emu_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct emu_mr *mr = to_emr(ibmr);
	int err;

	err = emu_region_del(&mr->region);
	if (err)
		return err;
	kvfree(mr->next);
	kfree_rcu(mr, region.rcu);
	return 0;
}
