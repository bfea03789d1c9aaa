// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pools of memory regions of a QP.
 *
 * Lock protocol: ib_qp.mr_lock, taken with interrupts off, guards the lists
 * and ib_qp.mrs_used. It is never held across a call of the driver.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/instruction_pointer.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <rdma/mr_pool.h>

#include "../contract/contract.h"
#include "verbs.h"

/* Takes a region out of the list, without counting it as used. */
static struct ib_mr *mr_pool_pop(struct ib_qp *qp, struct list_head *list)
{
	struct ib_mr *mr;

	lockdep_assert_held(&qp->mr_lock);
	mr = list_first_entry_or_null(list, struct ib_mr, qp_entry);
	if (mr)
		list_del(&mr->qp_entry);
	return mr;
}

/**
 * ib_mr_pool_get() - take a region from a pool
 * @qp: the QP
 * @list: the pool: ib_qp.rdma_mrs, ib_qp.sig_mrs or a list of the caller
 *
 * Context: Any.
 * Return: a region, or NULL if none is left.
 */
struct ib_mr *ib_mr_pool_get(struct ib_qp *qp, struct list_head *list)
{
	unsigned long flags;
	struct ib_mr *mr;

	spin_lock_irqsave(&qp->mr_lock, flags);
	mr = mr_pool_pop(qp, list);
	if (mr)
		qp->mrs_used++;
	spin_unlock_irqrestore(&qp->mr_lock, flags);
	return mr;
}
EXPORT_SYMBOL(ib_mr_pool_get);

/**
 * ib_mr_pool_put() - give a region back
 * @qp: the QP
 * @list: the pool that it was taken from
 * @mr: the region
 *
 * ib_mr_pool_get() takes the region that was used last first, while its
 * translations may still be cached.
 *
 * Context: Any.
 */
void ib_mr_pool_put(struct ib_qp *qp, struct list_head *list, struct ib_mr *mr)
{
	unsigned long flags;

	spin_lock_irqsave(&qp->mr_lock, flags);
	list_add(&mr->qp_entry, list);
	qp->mrs_used--;
	spin_unlock_irqrestore(&qp->mr_lock, flags);
}
EXPORT_SYMBOL(ib_mr_pool_put);

/* A region that the driver does not free stays in the pool. */
void ib_mr_pool_empty(struct ib_qp *qp, struct list_head *list, unsigned long site)
{
	LIST_HEAD(stuck);
	struct ib_mr *mr;
	int ret;

	spin_lock_irq(&qp->mr_lock);
	while ((mr = mr_pool_pop(qp, list))) {
		spin_unlock_irq(&qp->mr_lock);
		ret = ib_mr_free(mr, NULL, site);
		if (ret) {
			ibdev_warn(qp->device,
				   "driver failed to free mr %u of the pool of qp %u of %s (%d)\n",
				   mr->res.id, qp->res.id, qp->res.kern_name, ret);
			list_add_tail(&mr->qp_entry, &stuck);
		}
		spin_lock_irq(&qp->mr_lock);
	}
	list_splice_tail(&stuck, list);
	spin_unlock_irq(&qp->mr_lock);
}

/**
 * ib_mr_pool_init() - fill a pool
 * @qp: the QP; regions are made in its PD
 * @list: the pool, empty
 * @nr: number of regions
 * @type: kind of region
 * @max_num_sg: scatter entries of each
 * @max_num_meta_sg: entries for metadata, with %IB_MR_TYPE_INTEGRITY
 *
 * Context: Process.
 * Return: 0, or the error of ib_alloc_mr() or ib_alloc_mr_integrity(); then
 * the pool is empty.
 */
int ib_mr_pool_init(struct ib_qp *qp, struct list_head *list, int nr,
		    enum ib_mr_type type, u32 max_num_sg, u32 max_num_meta_sg)
{
	unsigned long flags;
	struct ib_mr *mr;
	int i;

	ib_contract_call(qp->device, &qp->res, "ib_mr_pool_init", _RET_IP_);
	for (i = 0; i < nr; i++) {
		if (type == IB_MR_TYPE_INTEGRITY)
			mr = ib_alloc_mr_integrity(qp->pd, max_num_sg,
						   max_num_meta_sg);
		else
			mr = ib_alloc_mr(qp->pd, type, max_num_sg);
		if (IS_ERR(mr)) {
			ib_mr_pool_empty(qp, list, _RET_IP_);
			return PTR_ERR(mr);
		}

		/* The caller that wants the pool counts as the maker. */
		WRITE_ONCE(mr->res.site, _RET_IP_);
		spin_lock_irqsave(&qp->mr_lock, flags);
		list_add_tail(&mr->qp_entry, list);
		spin_unlock_irqrestore(&qp->mr_lock, flags);
	}
	return 0;
}
EXPORT_SYMBOL(ib_mr_pool_init);

/**
 * ib_mr_pool_destroy() - empty a pool
 * @qp: the QP
 * @list: the pool; regions taken from it do not belong to it any more
 *
 * A region that the driver does not free, with a warning, is still in the pool.
 *
 * Context: Process.
 */
void ib_mr_pool_destroy(struct ib_qp *qp, struct list_head *list)
{
	ib_contract_call(qp->device, &qp->res, "ib_mr_pool_destroy", _RET_IP_);
	ib_mr_pool_empty(qp, list, _RET_IP_);
}
EXPORT_SYMBOL(ib_mr_pool_destroy);
