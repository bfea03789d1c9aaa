// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mock's MRs, MWs and FMRs: they have keys and remember what they were given, but
 * nothing accesses memory through them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <rdma/ib_umem.h>

#include "lib/mock.h"

/* An MR. */
struct mock_mr {
	struct ib_mr ibmr;	/* the core's part */
	struct ib_umem *umem;	/* memory that reg_user_mr got; NULL for other MRs */
	/* State of an MR of reg_umem_mr, whose memory the core got. */
	enum mock_mr_state state;
	atomic_t busy;	/* number of methods of the MR that are running; more than one is wrong */
	u64 dma;	/* DMA address of the memory that the core got, as last told */
	u32 max_data;	/* MR with integrity: entries of data that it holds */
	u32 max_meta;	/* MR with integrity: entries of protection information that it holds */
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

static struct ib_mr *mock_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	if (max_num_sg > MOCK_MAX_PAGES)
		return ERR_PTR(-EINVAL);
	return mock_new_mr(mock_of(pd->device), MOCK_alloc_mr, pd, type, max_num_sg);
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

static int mock_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	int ret = mock_enter(mock_of(mr->device), MOCK_map_mr_sg, mr, nents, 0);

	if (ret)
		return ret;
	return ib_sg_to_pages(mr, sg, nents, offset, mock_set_page);
}

static struct ib_mr *mock_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset,
					     u64 length, u64 virt_addr, int fd,
					     int access,
					     struct uverbs_attr_bundle *attrs)
{
	return mock_new_mr(mock_of(pd->device), MOCK_reg_user_mr_dmabuf, pd, offset, fd);
}

/* MRs whose memory the core got */

static void mock_mr_wrong(struct mock *m, const char *what)
{
	if (atomic_inc_return(&m->wrong_mr) == 1)
		pr_info("wrong: %s\n", what);
}

static int mock_mr_enter(struct ib_mr *mr, enum mock_op op)
{
	struct mock *m = mock_of(mr->device);

	if (atomic_inc_return(&to_mmr(mr)->busy) != 1)
		mock_mr_wrong(m, "two methods of a region at a time");
	return mock_enter(m, op, mr, 0, 0);
}

static void mock_mr_leave(struct ib_mr *mr)
{
	atomic_dec(&to_mmr(mr)->busy);
}

/*
 * Notes the DMA address of the memory. The table must be mapped and hold just the pages of
 * the memory.
 */
static void mock_mr_place(struct mock *m, struct ib_mr *mr, struct ib_umem *umem)
{
	struct sg_table *sgt = &umem->sgt_append.sgt;
	struct scatterlist *sg;
	u64 length = 0;
	unsigned int i;

	for_each_sgtable_dma_sg(sgt, sg, i)
		length += sg_dma_len(sg);
	if (length != PAGE_ALIGN(umem->length + ib_umem_offset(umem)))
		mock_mr_wrong(m, "memory that is not mapped, or more than that");
	else
		to_mmr(mr)->dma = sg_dma_address(sgt->sgl);
}

static struct ib_mr *mock_reg_umem_mr(struct ib_pd *pd, struct ib_umem *umem,
				      u64 virt_addr, int access)
{
	struct mock *m = mock_of(pd->device);
	struct ib_mr *mr = mock_new_mr(m, MOCK_reg_umem_mr, pd, umem->length, virt_addr);

	if (IS_ERR(mr))
		return mr;
	mock_mr_place(m, mr, umem);
	WRITE_ONCE(m->user_mr, mr);
	return mr;
}

static void mock_open_mr(struct ib_mr *mr)
{
	mock_mr_enter(mr, MOCK_open_mr);
	if (to_mmr(mr)->state != MOCK_MR_MADE)
		mock_mr_wrong(mock_of(mr->device), "opening of what is open");
	to_mmr(mr)->state = MOCK_MR_LIVE;
	mock_mr_leave(mr);
}

static void mock_revoke_mr(struct ib_mr *mr)
{
	mock_mr_enter(mr, MOCK_revoke_mr);
	if (to_mmr(mr)->state == MOCK_MR_MADE)
		mock_mr_wrong(mock_of(mr->device), "revocation of what is not open");
	to_mmr(mr)->state = MOCK_MR_REVOKED;
	mock_mr_leave(mr);
}

static void mock_pause_mr(struct ib_mr *mr)
{
	mock_mr_enter(mr, MOCK_pause_mr);
	if (to_mmr(mr)->state != MOCK_MR_LIVE)
		mock_mr_wrong(mock_of(mr->device), "pause of what is not live");
	to_mmr(mr)->state = MOCK_MR_PAUSED;
	mock_mr_leave(mr);
}

static int mock_resume_mr(struct ib_mr *mr, struct ib_umem *umem)
{
	struct mock *m = mock_of(mr->device);
	int ret = mock_mr_enter(mr, MOCK_resume_mr);

	if (to_mmr(mr)->state != MOCK_MR_PAUSED)
		mock_mr_wrong(m, "resumption of what is not paused");
	mock_mr_place(m, mr, umem);
	if (!ret)
		to_mmr(mr)->state = MOCK_MR_LIVE;
	mock_mr_leave(mr);
	return ret;
}

/**
 * mock_by_umem() - make the core get the device's memory, of any kind, and pass a umem
 * @m: the mock, before mock_alloc()
 */
void mock_by_umem(struct mock *m)
{
	m->dma = true;
	m->ops.reg_user_mr = NULL;
	m->ops.reg_user_mr_dmabuf = NULL;
	m->ops.reg_umem_mr = mock_reg_umem_mr;
	m->ops.open_mr = mock_open_mr;
	m->ops.revoke_mr = mock_revoke_mr;
	m->ops.pause_mr = mock_pause_mr;
	m->ops.resume_mr = mock_resume_mr;
}
EXPORT_SYMBOL_GPL(mock_by_umem);

static int mock_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	struct mock *m = mock_of(mr->device);
	int ret = mock_mr_enter(mr, MOCK_dereg_mr);

	mock_mr_leave(mr);
	if (ret)
		return ret;
	ib_umem_release(to_mmr(mr)->umem);
	kfree(to_mmr(mr));
	atomic_dec(&m->live[MOCK_MR]);
	return 0;
}

/**
 * mock_mr_umem() - get the memory of an MR
 * @mr: MR of ib_reg_user_mr() on a device that gets the memory itself
 *
 * Return: the memory, pinned until the MR is deregistered.
 */
struct ib_umem *mock_mr_umem(struct ib_mr *mr)
{
	return to_mmr(mr)->umem;
}
EXPORT_SYMBOL_GPL(mock_mr_umem);

/**
 * mock_mr_state() - get the state of an MR
 * @mr: MR of ib_reg_mem()
 *
 * Return: the state, which says whether accesses go on.
 */
enum mock_mr_state mock_mr_state(struct ib_mr *mr)
{
	return READ_ONCE(to_mmr(mr)->state);
}
EXPORT_SYMBOL_GPL(mock_mr_state);

/**
 * mock_mr_dma() - get the DMA address of an MR
 * @mr: MR of ib_reg_mem()
 *
 * Return: DMA address of the first page, as the device was last told.
 */
u64 mock_mr_dma(struct ib_mr *mr)
{
	return READ_ONCE(to_mmr(mr)->dma);
}
EXPORT_SYMBOL_GPL(mock_mr_dma);

/* MRs with integrity */

static struct ib_mr *mock_alloc_mr_integrity(struct ib_pd *pd, u32 max_num_data_sg,
					     u32 max_num_meta_sg)
{
	struct ib_mr *mr;

	if (max_num_data_sg > MOCK_MAX_PAGES || max_num_meta_sg > MOCK_MAX_PAGES)
		return ERR_PTR(-EINVAL);
	mr = mock_new_mr(mock_of(pd->device), MOCK_alloc_mr_integrity, pd, max_num_data_sg,
			 max_num_meta_sg);
	if (!IS_ERR(mr)) {
		to_mmr(mr)->max_data = max_num_data_sg;
		to_mmr(mr)->max_meta = max_num_meta_sg;
	}
	return mr;
}

/* The MR's length is that of the data and the protection information together. */
static int mock_map_mr_sg_pi(struct ib_mr *mr, struct scatterlist *data_sg, int data_sg_nents,
			     unsigned int *data_sg_offset, struct scatterlist *meta_sg,
			     int meta_sg_nents, unsigned int *meta_sg_offset)
{
	int i, ret = mock_enter(mock_of(mr->device), MOCK_map_mr_sg_pi, mr, data_sg_nents,
				meta_sg_nents);
	struct scatterlist *sg;

	if (ret)
		return ret;
	if (data_sg_nents > to_mmr(mr)->max_data || meta_sg_nents > to_mmr(mr)->max_meta)
		return -EINVAL;
	ret = ib_sg_to_pages(mr, data_sg, data_sg_nents, data_sg_offset, mock_set_page);
	if (ret < 0)
		return ret;
	if (ret != data_sg_nents)
		return -EINVAL;
	for_each_sg(meta_sg, sg, meta_sg_nents, i)
		mr->length += sg_dma_len(sg);
	return 0;
}

static int mock_check_mr_status(struct ib_mr *mr, u32 check_mask, struct ib_mr_status *status)
{
	struct mock *m = mock_of(mr->device);
	int ret = mock_enter(m, MOCK_check_mr_status, mr, check_mask, 0);

	if (ret)
		return ret;
	*status = (struct ib_mr_status){};
	if (READ_ONCE(m->bad_sig) == mr->rkey) {
		status->fail_status = check_mask;
		status->sig_err.key = mr->rkey;
	}
	return 0;
}

/**
 * mock_integrity_methods() - add the methods for MRs with integrity
 * @ops: methods of the device
 */
void mock_integrity_methods(struct ib_device_ops *ops)
{
	ops->alloc_mr_integrity = mock_alloc_mr_integrity;
	ops->map_mr_sg_pi = mock_map_mr_sg_pi;
	ops->check_mr_status = mock_check_mr_status;
}
EXPORT_SYMBOL_GPL(mock_integrity_methods);

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

static struct ib_fmr *mock_alloc_fmr(struct ib_pd *pd, int access, struct ib_fmr_attr *attr)
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

static int mock_map_phys_fmr(struct ib_fmr *fmr, u64 *page_list, int list_len, u64 iova)
{
	int ret = mock_enter(mock_of(fmr->device), MOCK_map_phys_fmr, fmr, list_len, iova);

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
	ops->reg_user_mr_dmabuf = mock_reg_user_mr_dmabuf;
	ops->dereg_mr = mock_dereg_mr;
	ops->alloc_mw = mock_alloc_mw;
	ops->dealloc_mw = mock_dealloc_mw;
	ops->alloc_fmr = mock_alloc_fmr;
	ops->map_phys_fmr = mock_map_phys_fmr;
	ops->unmap_fmr = mock_unmap_fmr;
	ops->dealloc_fmr = mock_dealloc_fmr;
	ops->size_ib_mw = sizeof(struct mock_mw);
}
