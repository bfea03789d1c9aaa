// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mock's memory regions, windows and FMRs: they have keys and remember what
 * they were given, and nothing reaches memory through them.
 */
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "mock.h"

struct mock_mr {
	struct ib_mr ibmr;
	struct ib_umem *umem;
};

struct mock_mw {
	struct ib_mw ibmw;
};

static struct mock_mr *to_mmr(struct ib_mr *mr)
{
	return container_of(mr, struct mock_mr, ibmr);
}

static struct ib_mr *mock_new_mr(struct mock *m, enum mock_op op,
				 struct ib_pd *pd, u64 arg, u64 arg2)
{
	struct mock_mr *mr;
	int ret = mock_enter(m, op, pd, arg, arg2);

	if (ret)
		return ERR_PTR(ret);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->ibmr.lkey = atomic_inc_return(&m->next_key) << 8;
	mr->ibmr.rkey = mr->ibmr.lkey;
	atomic_inc(&m->live[MOCK_MR]);
	return &mr->ibmr;
}

static struct ib_mr *mock_get_dma_mr(struct ib_pd *pd, int access)
{
	return mock_new_mr(mock_of(pd->device), MOCK_get_dma_mr, pd, access, 0);
}

static struct ib_mr *mock_alloc_mr(struct ib_pd *pd, enum ib_mr_type type,
				   u32 max_num_sg)
{
	if (max_num_sg > MOCK_MAX_PAGES)
		return ERR_PTR(-EINVAL);
	return mock_new_mr(mock_of(pd->device), MOCK_alloc_mr, pd, type,
			   max_num_sg);
}

static struct ib_mr *mock_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				      u64 virt_addr, int access,
				      struct ib_udata *udata)
{
	struct mock *m = mock_of(pd->device);
	struct ib_umem *umem;
	struct ib_mr *mr;

	umem = ib_umem_get(pd->device, start, length, access);
	if (IS_ERR(umem))
		return ERR_CAST(umem);
	if (ib_umem_find_best_pgsz(umem, PAGE_SIZE, virt_addr))
		mr = mock_new_mr(m, MOCK_reg_user_mr, pd, start, length);
	else
		mr = ERR_PTR(-EINVAL);
	if (IS_ERR(mr))
		ib_umem_release(umem);
	else
		to_mmr(mr)->umem = umem;
	if (!IS_ERR(mr))
		WRITE_ONCE(m->user_mr, mr);
	return mr;
}

static int mock_set_page(struct ib_mr *mr, u64 addr)
{
	return 0;
}

static int mock_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents,
			  unsigned int *offset)
{
	int ret = mock_enter(mock_of(mr->device), MOCK_map_mr_sg, mr, nents, 0);

	if (ret)
		return ret;
	return ib_sg_to_pages(mr, sg, nents, offset, mock_set_page);
}

static int mock_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	struct mock *m = mock_of(mr->device);
	int ret = mock_enter(m, MOCK_dereg_mr, mr, 0, 0);

	if (ret)
		return ret;
	ib_umem_release(to_mmr(mr)->umem);
	kfree(to_mmr(mr));
	atomic_dec(&m->live[MOCK_MR]);
	return 0;
}

/**
 * mock_mr_umem() - the memory behind a region
 * @mr: of ib_reg_user_mr()
 *
 * Return: the memory, pinned until the region goes.
 */
struct ib_umem *mock_mr_umem(struct ib_mr *mr)
{
	return to_mmr(mr)->umem;
}
EXPORT_SYMBOL_GPL(mock_mr_umem);

static int mock_alloc_mw(struct ib_mw *mw, struct ib_udata *udata)
{
	struct mock *m = mock_of(mw->device);
	int ret = mock_enter(m, MOCK_alloc_mw, mw, mw->type, 0);

	if (ret)
		return ret;
	mw->rkey = atomic_inc_return(&m->next_key) << 8;
	atomic_inc(&m->live[MOCK_MW]);
	return 0;
}

static int mock_dealloc_mw(struct ib_mw *mw)
{
	struct mock *m = mock_of(mw->device);
	int ret = mock_enter(m, MOCK_dealloc_mw, mw, 0, 0);

	if (!ret)
		atomic_dec(&m->live[MOCK_MW]);
	return ret;
}

static struct ib_fmr *mock_alloc_fmr(struct ib_pd *pd, int access,
				     struct ib_fmr_attr *attr)
{
	struct mock *m = mock_of(pd->device);
	struct ib_fmr *fmr;
	int ret = mock_enter(m, MOCK_alloc_fmr, pd, access, attr->max_pages);

	if (ret)
		return ERR_PTR(ret);
	fmr = kzalloc(sizeof(*fmr), GFP_KERNEL);
	if (!fmr)
		return ERR_PTR(-ENOMEM);
	fmr->lkey = atomic_inc_return(&m->next_key) << 8;
	fmr->rkey = fmr->lkey;
	atomic_inc(&m->live[MOCK_FMR]);
	return fmr;
}

static int mock_map_phys_fmr(struct ib_fmr *fmr, u64 *page_list, int list_len,
			     u64 iova)
{
	int ret = mock_enter(mock_of(fmr->device), MOCK_map_phys_fmr, fmr,
			     list_len, iova);

	if (ret)
		return ret;
	fmr->lkey = ib_inc_rkey(fmr->lkey);
	fmr->rkey = fmr->lkey;
	return 0;
}

static int mock_unmap_fmr(struct list_head *fmr_list)
{
	struct ib_fmr *first = list_first_entry(fmr_list, struct ib_fmr, list);

	return mock_enter(mock_of(first->device), MOCK_unmap_fmr, first,
			  list_count_nodes(fmr_list), 0);
}

static int mock_dealloc_fmr(struct ib_fmr *fmr)
{
	struct mock *m = mock_of(fmr->device);
	int ret = mock_enter(m, MOCK_dealloc_fmr, fmr, 0, 0);

	if (ret)
		return ret;
	kfree(fmr);
	atomic_dec(&m->live[MOCK_FMR]);
	return 0;
}

void mock_memory_methods(struct ib_device_ops *ops)
{
	ops->get_dma_mr = mock_get_dma_mr;
	ops->alloc_mr = mock_alloc_mr;
	ops->map_mr_sg = mock_map_mr_sg;
	ops->reg_user_mr = mock_reg_user_mr;
	ops->dereg_mr = mock_dereg_mr;
	ops->alloc_mw = mock_alloc_mw;
	ops->dealloc_mw = mock_dealloc_mw;
	ops->alloc_fmr = mock_alloc_fmr;
	ops->map_phys_fmr = mock_map_phys_fmr;
	ops->unmap_fmr = mock_unmap_fmr;
	ops->dealloc_fmr = mock_dealloc_fmr;
	ops->size_ib_mw = sizeof(struct mock_mw);
}
