// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions.
 *
 * A region is found by the index in its key under RCU and entered through its
 * gate, which is open while the region is valid. What describes the region is
 * written while the gate is closed and empty: by IB_WR_REG_MR, which has the
 * region to itself in state EMU_MR_BUSY, before it opens the gate. Invalidation
 * closes the gate; it is complete when those inside have left.
 */
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "memory.h"

/* Key indices that fit above the consumer's byte. Index 0 is the local DMA key's. */
#define EMU_MR_LIMIT	XA_LIMIT(1, (1 << (32 - EMU_KEY_SHIFT)) - 1)

/*
 * Enters the region that the key of @sge names, having checked that it covers
 * @sge and grants @access. Returns NULL with the reason in @why. Any context.
 */
struct emu_mr *emu_mr_enter(struct emu_qp *qp, const struct ib_sge *sge, int access,
			    enum emu_syndrome *why)
{
	struct emu_mr *mr;
	u64 offset;

	rcu_read_lock();
	mr = xa_load(&qp->edev->mrs, sge->lkey >> EMU_KEY_SHIFT);
	if (mr && !emu_gate_enter(&mr->gate))
		mr = NULL;
	rcu_read_unlock();
	if (!mr) {
		*why = EMU_SYN_KEY;
		return NULL;
	}

	offset = sge->addr - mr->iova;
	if (mr->key != sge->lkey)
		*why = EMU_SYN_KEY;
	else if (mr->ibmr.pd != qp->ibqp.pd)
		*why = EMU_SYN_KEY_PD;
	else if ((mr->access & access) != access)
		*why = EMU_SYN_KEY_ACCESS;
	else if (sge->addr < mr->iova || offset > mr->length ||
		 sge->length > mr->length - offset)
		*why = EMU_SYN_KEY_RANGE;
	else
		return mr;
	emu_mr_leave(mr);
	return NULL;
}

void emu_mr_leave(struct emu_mr *mr)
{
	rcu_read_lock();
	emu_gate_leave(&mr->gate);
	rcu_read_unlock();
}

/*
 * Memory behind @addr of an entered region. @len is the wanted length, and is
 * cut to what is contiguous. Returns NULL if it is not memory.
 */
void *emu_mr_span(struct emu_mr *mr, u64 addr, size_t *len)
{
	struct emu_device *edev = to_edev(mr->ibmr.device);
	u64 page_size, offset;

	if (mr->kind == EMU_MR_DMA)
		return emu_dma_span(edev, addr, *len);

	/* The list starts at the page that holds the first byte of the region. */
	page_size = 1ULL << mr->page_shift;
	offset = (mr->iova & (page_size - 1)) + (addr - mr->iova);
	/* Consumers may change the address and length that the list was made for. */
	if (unlikely(offset >> mr->page_shift >= mr->nr_pages))
		return NULL;
	addr = mr->pages[offset >> mr->page_shift] + (offset & (page_size - 1));
	*len = min_t(u64, *len, page_size - (offset & (page_size - 1)));
	return emu_dma_span(edev, addr, *len);
}

static struct emu_mr *emu_mr_create(struct ib_pd *pd, enum emu_mr_kind kind, u32 max_pages)
{
	struct emu_device *edev = to_edev(pd->device);
	struct emu_mr *mr;
	u32 index;
	int err;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	emu_gate_init(&mr->gate);
	mr->kind = kind;
	mr->max_pages = max_pages;
	mr->ibmr.device = pd->device;
	mr->ibmr.pd = pd;
	if (max_pages) {
		mr->pages = kvcalloc(max_pages, sizeof(*mr->pages), GFP_KERNEL);
		if (!mr->pages) {
			err = -ENOMEM;
			goto free_mr;
		}
	}
	err = xa_alloc_cyclic(&edev->mrs, &index, mr, EMU_MR_LIMIT, &edev->next_mr, GFP_KERNEL);
	if (err < 0)
		goto free_pages;

	mr->key = index << EMU_KEY_SHIFT;
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	return mr;

free_pages:
	kvfree(mr->pages);
free_mr:
	kfree(mr);
	return ERR_PTR(err);
}

struct ib_mr *emu_get_dma_mr(struct ib_pd *pd, int access)
{
	struct emu_mr *mr = emu_mr_create(pd, EMU_MR_DMA, 0);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->access = access;
	mr->length = U64_MAX;
	atomic_set(&mr->state, EMU_MR_VALID);
	emu_gate_open(&mr->gate);
	return &mr->ibmr;
}

struct ib_mr *emu_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct emu_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > EMU_MAX_PAGE_LIST)
		return ERR_PTR(-EINVAL);
	mr = emu_mr_create(pd, EMU_MR_FAST, max_num_sg);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ibmr;
}

static int emu_mr_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct emu_mr *mr = to_emr(ibmr);

	if (mr->nr_pages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->nr_pages++] = addr;
	return 0;
}

int emu_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	struct emu_mr *mr = to_emr(ibmr);

	/* The list belongs to the engines while the region is registered. */
	if (atomic_read(&mr->state) != EMU_MR_FREE)
		return -EINVAL;
	mr->nr_pages = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, emu_mr_set_page);
}

int emu_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct emu_mr *mr = to_emr(ibmr);
	int state;

	/*
	 * Those who can still reach it: engines inside the gate, readers of the
	 * table, and an engine that is about to register it, which is done with
	 * it after a few instructions.
	 */
	xa_erase(&to_edev(ibmr->device)->mrs, mr->key >> EMU_KEY_SHIFT);
	do {
		state = atomic_read(&mr->state);
		if (state == EMU_MR_BUSY)
			cpu_relax();
	} while (state == EMU_MR_BUSY ||
		 atomic_cmpxchg(&mr->state, state, EMU_MR_DEAD) != state);
	emu_gate_drain(&mr->gate);
	kvfree(mr->pages);
	kfree_rcu(mr, rcu);
	return 0;
}

/* The fast region that @key's index names, in the queue pair's PD. Under RCU. */
static struct emu_mr *emu_mr_find(struct emu_qp *qp, u32 key, enum emu_syndrome *why)
{
	struct emu_mr *mr = xa_load(&qp->edev->mrs, key >> EMU_KEY_SHIFT);

	if (!mr || mr->kind != EMU_MR_FAST) {
		*why = EMU_SYN_KEY;
		return NULL;
	}
	if (mr->ibmr.pd != qp->ibqp.pd) {
		*why = EMU_SYN_KEY_PD;
		return NULL;
	}
	return mr;
}

/**
 * emu_mr_register() - execute IB_WR_REG_MR
 * @qp: queue pair that it was posted to
 * @wqe: the entry
 * @why: set on failure
 *
 * Context: The owner of @qp; any.
 * Return: EMU_DONE, or EMU_FAILED.
 */
enum emu_verdict emu_mr_register(struct emu_qp *qp, const struct emu_swqe *wqe,
				 enum emu_syndrome *why)
{
	enum emu_verdict verdict = EMU_FAILED;
	struct emu_mr *mr;

	rcu_read_lock();
	/* Deregistration waits while the region is busy: not to be preempted. */
	preempt_disable();
	mr = emu_mr_find(qp, wqe->reg.key, why);
	if (!mr)
		goto unlock;
	*why = EMU_SYN_MR_STATE;
	if (atomic_cmpxchg(&mr->state, EMU_MR_FREE, EMU_MR_BUSY) != EMU_MR_FREE)
		goto unlock;
	mr->key = wqe->reg.key;
	mr->access = wqe->reg.access;
	mr->iova = wqe->reg.iova;
	mr->length = wqe->reg.length;
	mr->page_shift = wqe->reg.page_shift;
	emu_gate_open(&mr->gate);
	atomic_set_release(&mr->state, EMU_MR_VALID);
	verdict = EMU_DONE;
unlock:
	preempt_enable();
	rcu_read_unlock();
	return verdict;
}

/**
 * emu_mr_invalidate() - take a region out of use
 * @qp: queue pair that asked for it, or whose peer did
 * @key: current key of the region
 * @why: set on failure
 *
 * A region that is free already stays so.
 *
 * Context: The owner of a queue pair; any.
 * Return: EMU_DONE; EMU_FAILED; EMU_AGAIN while accesses are under way: no new
 * ones begin, and the caller comes again.
 */
enum emu_verdict emu_mr_invalidate(struct emu_qp *qp, u32 key, enum emu_syndrome *why)
{
	enum emu_verdict verdict = EMU_FAILED;
	struct emu_mr *mr;

	rcu_read_lock();
	mr = emu_mr_find(qp, key, why);
	if (!mr)
		goto unlock;
	if (READ_ONCE(mr->key) != key) {
		*why = EMU_SYN_KEY;
		goto unlock;
	}
	if (atomic_cmpxchg(&mr->state, EMU_MR_VALID, EMU_MR_INVALIDATING) == EMU_MR_VALID)
		emu_gate_close(&mr->gate);

	switch (atomic_read(&mr->state)) {
	case EMU_MR_INVALIDATING:
		verdict = EMU_AGAIN;
		if (!emu_gate_is_drained(&mr->gate))
			break;
		/* Whoever finds it drained may finish; once is enough. */
		atomic_cmpxchg(&mr->state, EMU_MR_INVALIDATING, EMU_MR_FREE);
		fallthrough;
	default:
		verdict = EMU_DONE;
	}
unlock:
	rcu_read_unlock();
	return verdict;
}
