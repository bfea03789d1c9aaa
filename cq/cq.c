// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues: their making and unmaking, and the polling of those that
 * the consumer leaves to us.
 *
 * ib_create_cq() makes a CQ that the consumer polls, with a completion handler
 * of its own. ib_alloc_cq() makes one that is polled here, in the context that
 * the consumer chose (context.c), and whose completions reach wr_cqe->done().
 *
 * A polling context repeats: poll in batches, call done(); when the queue is
 * found empty, arm it; if completions came between the last poll and the arming,
 * the driver says so and polling goes on. So there is one request for a
 * notification for each time the queue goes idle, and none is missed.
 *
 * Order of life: the handler and the polling context are in place before the
 * driver sees the CQ; on the way out the callbacks are stopped before the driver
 * destroys it.
 */
#include <linux/export.h>
#include <linux/slab.h>

#include "../core/restrack.h"
#include "../core/verbs.h"
#include "cq.h"

/* What ib_process_cq_direct() takes at a time, on the caller's stack. */
#define IB_CQ_BATCH_DIRECT	8

static void ib_cq_dispatch(struct ib_cq *cq, struct ib_wc *wc)
{
	struct ib_cqe *cqe = wc->wr_cqe;

	if (likely(cqe && cqe->done)) {
		cqe->done(cq, wc);
		return;
	}
	/* A request that nobody waits for may fail, but not succeed unseen. */
	if (wc->status == IB_WC_SUCCESS || cqe)
		ibdev_warn_ratelimited(cq->device,
				       "%s: completion without %s, QP %u\n",
				       cq->res.kern_name ?: "?", cqe ? "done()" : "wr_cqe",
				       wc->qp ? wc->qp->qp_num : 0);
}

/*
 * Polls and dispatches until the queue is empty or @budget is spent; -1 is no
 * limit. Returns how many completions there were.
 */
int ib_cq_poll(struct ib_cq *cq, int budget, struct ib_wc *wcs, int batch)
{
	int i, n, wanted, completed = 0;

	do {
		wanted = min_t(unsigned int, batch, (unsigned int)budget - completed);
		n = ib_poll_cq(cq, wanted, wcs);
		if (n <= 0)
			break;
		for (i = 0; i < n; i++)
			ib_cq_dispatch(cq, &wcs[i]);
		completed += n;
	} while (n == wanted && completed != budget);

	return completed;
}

/*
 * A round of a context that may be scheduled again. Returns true if it must be:
 * the budget was spent, or completions came while the queue was armed.
 */
bool ib_cq_poll_and_arm(struct ib_cq *cq, int budget)
{
	if (ib_cq_poll(cq, budget, cq->wc, IB_CQ_BATCH) >= budget)
		return true;
	return ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0;
}

/**
 * ib_process_cq_direct() - poll a CQ of %IB_POLL_DIRECT in the caller's context
 * @cq: the CQ
 * @budget: completions to handle at most, or -1 for all there are
 *
 * The caller sees to it that this runs once at a time for a CQ.
 *
 * Context: Any that the done() functions may be called in.
 * Return: number of completions handled.
 */
int ib_process_cq_direct(struct ib_cq *cq, int budget)
{
	struct ib_wc wcs[IB_CQ_BATCH_DIRECT];

	return ib_cq_poll(cq, budget, wcs, IB_CQ_BATCH_DIRECT);
}
EXPORT_SYMBOL(ib_process_cq_direct);

static void ib_cq_schedule_handler(struct ib_cq *cq, void *context)
{
	cq->ctx->schedule(cq);
}

static struct ib_cq *ib_cq_new(struct ib_device *dev, const struct ib_cq_init_attr *attr,
			       const char *caller)
{
	struct ib_cq *cq;

	if (!attr->cqe || attr->cqe > dev->attrs.max_cqe ||
	    attr->comp_vector >= max(dev->num_comp_vectors, 1))
		return ERR_PTR(-EINVAL);
	cq = rdma_zalloc_drv_obj(dev, ib_cq);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->device = dev;
	cq->comp_vector = attr->comp_vector;
	atomic_set(&cq->usecnt, 0);
	ib_notify_init_cq(cq);
	rdma_restrack_new(&cq->res, RDMA_RESTRACK_CQ);
	rdma_restrack_set_name(&cq->res, caller);
	return cq;
}

static void ib_cq_free(struct ib_cq *cq)
{
	kfree(cq->wc);
	kfree(cq);
}

/**
 * __ib_create_cq() - make a CQ that the consumer polls; see ib_create_cq()
 * @device: the device
 * @comp_handler: called once for each time the CQ was armed and got a
 *	completion; in undefined context, not from within a verbs call, one call
 *	at a time. May poll and arm; must not sleep. May be NULL.
 * @event_handler: called on %IB_EVENT_CQ_ERR, in undefined context; may be NULL
 * @cq_context: passed to both
 * @cq_attr: number of entries, 1 to attrs.max_cqe; completion vector, below
 *	num_comp_vectors
 * @caller: KBUILD_MODNAME of the consumer
 *
 * Context: Process context.
 * Return: the CQ, whose cqe says how many entries it got, or an ERR_PTR: -EINVAL
 * for attributes out of range, -ENOMEM, or the driver's error.
 */
struct ib_cq *__ib_create_cq(struct ib_device *device, ib_comp_handler comp_handler,
			     void (*event_handler)(struct ib_event *event, void *cq_context),
			     void *cq_context, const struct ib_cq_init_attr *cq_attr,
			     const char *caller)
{
	struct ib_cq *cq;
	int err;

	cq = ib_cq_new(device, cq_attr, caller);
	if (IS_ERR(cq))
		return cq;
	cq->comp_handler = comp_handler;
	cq->event_handler = event_handler;
	cq->cq_context = cq_context;

	err = device->ops.create_cq(cq, cq_attr, NULL);
	if (err) {
		ib_cq_free(cq);
		return ERR_PTR(err);
	}
	rdma_restrack_add(&cq->res);
	return cq;
}
EXPORT_SYMBOL(__ib_create_cq);

/**
 * ib_destroy_cq_user() - destroy a CQ of ib_create_cq()
 * @cq: the CQ
 * @udata: NULL
 *
 * When it returns 0, no handler of the CQ runs and none will.
 *
 * Context: Process context; not from a handler of the CQ.
 * Return: 0; -EBUSY while a QP or SRQ uses the CQ; -EINVAL for a CQ of
 * ib_alloc_cq(); -EOPNOTSUPP for one of the pool; or the driver's error. Unless it returns 0 the CQ works as before.
 */
int ib_destroy_cq_user(struct ib_cq *cq, struct ib_udata *udata)
{
	int err;

	if (cq->shared)
		return -EOPNOTSUPP;
	if (cq->ctx) {
		ibdev_warn(cq->device, "%s: a CQ of ib_alloc_cq() is freed by ib_free_cq()\n",
			   cq->res.kern_name);
		return -EINVAL;
	}
	err = ib_object_unused(cq->device, &cq->res, &cq->usecnt);
	if (err)
		return err;
	rdma_restrack_del(&cq->res);
	ib_notify_quiesce(&cq->notify);
	err = cq->device->ops.destroy_cq(cq, udata);
	if (err) {
		ib_notify_revive(&cq->notify);
		ib_restrack_readd(&cq->res);
		ibdev_warn(cq->device, "the driver does not free a CQ of %s: %d\n",
			   cq->res.kern_name, err);
		return err;
	}
	ib_notify_fence(&cq->notify);
	ib_cq_free(cq);
	return 0;
}
EXPORT_SYMBOL(ib_destroy_cq_user);

/**
 * __ib_alloc_cq() - make a CQ that is polled for the consumer; see ib_alloc_cq()
 * @dev: the device
 * @private: for the consumer, as cq->cq_context
 * @nr_cqe: number of entries, 1 to attrs.max_cqe
 * @comp_vector: completion vector, below num_comp_vectors
 * @poll_ctx: where done() is called, see context.c
 * @caller: KBUILD_MODNAME of the consumer
 *
 * Context: Process context.
 * Return: the CQ, or an ERR_PTR: -EINVAL for arguments out of range, -ENOMEM, or
 * the driver's error.
 */
struct ib_cq *__ib_alloc_cq(struct ib_device *dev, void *private, int nr_cqe, int comp_vector,
			    enum ib_poll_context poll_ctx, const char *caller)
{
	const struct ib_cq_context_ops *ctx = ib_cq_context(poll_ctx);
	struct ib_cq_init_attr attr = {
		.cqe = nr_cqe,
		.comp_vector = comp_vector,
	};
	struct ib_cq *cq;
	int err;

	if (!ctx || nr_cqe < 0)
		return ERR_PTR(-EINVAL);
	cq = ib_cq_new(dev, &attr, caller);
	if (IS_ERR(cq))
		return cq;
	cq->cq_context = private;
	cq->poll_ctx = poll_ctx;
	cq->ctx = ctx;
	cq->comp_handler = ib_cq_schedule_handler;

	err = -ENOMEM;
	cq->wc = kmalloc_array(IB_CQ_BATCH, sizeof(*cq->wc), GFP_KERNEL);
	if (!cq->wc)
		goto free_cq;
	err = ctx->init ? ctx->init(cq) : 0;
	if (err)
		goto free_cq;
	err = dev->ops.create_cq(cq, &attr, NULL);
	if (err)
		goto free_cq;
	rdma_restrack_add(&cq->res);
	if (ctx->armed)
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	return cq;

free_cq:
	ib_cq_free(cq);
	return ERR_PTR(err);
}
EXPORT_SYMBOL(__ib_alloc_cq);

/**
 * __ib_alloc_cq_any() - __ib_alloc_cq() on a vector of the core's choice
 * @dev: the device
 * @private: for the consumer, as cq->cq_context
 * @nr_cqe: number of entries, 1 to attrs.max_cqe
 * @poll_ctx: where done() is called
 * @caller: KBUILD_MODNAME of the consumer
 *
 * Vectors are given out in turn, as many as there are CPUs online.
 *
 * Context: Process context.
 * Return: as __ib_alloc_cq().
 */
struct ib_cq *__ib_alloc_cq_any(struct ib_device *dev, void *private, int nr_cqe,
				enum ib_poll_context poll_ctx, const char *caller)
{
	static atomic_t turn;
	unsigned int vectors = clamp(dev->num_comp_vectors, 1, (int)num_online_cpus());

	return __ib_alloc_cq(dev, private, nr_cqe, (u32)atomic_inc_return(&turn) % vectors,
			     poll_ctx, caller);
}
EXPORT_SYMBOL(__ib_alloc_cq_any);

/**
 * ib_free_cq() - destroy a CQ of ib_alloc_cq()
 * @cq: the CQ; all QPs that complete to it are destroyed
 *
 * When it returns, no done() of the CQ runs and none will. Completions that were
 * not polled are dropped. In use, the CQ is left as it is, with a warning.
 *
 * Context: Process context; not from a done() of the CQ.
 */
void ib_free_cq(struct ib_cq *cq)
{
	int err;

	if (!cq->ctx || cq->shared) {
		ibdev_warn(cq->device, "%s: a CQ of ib_create_cq() is freed by ib_destroy_cq()\n",
			   cq->res.kern_name);
		return;
	}
	if (ib_object_unused(cq->device, &cq->res, &cq->usecnt))
		return;
	rdma_restrack_del(&cq->res);
	ib_notify_quiesce(&cq->notify);
	if (cq->ctx->stop)
		cq->ctx->stop(cq);
	err = cq->device->ops.destroy_cq(cq, NULL);
	WARN_ONCE(err, "%s: driver refuses to destroy a CQ: %d\n",
		  cq->res.kern_name, err);
	ib_notify_fence(&cq->notify);
	ib_cq_free(cq);
}
EXPORT_SYMBOL(ib_free_cq);
