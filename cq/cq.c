// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues: their creation and destruction, both of those that the
 * consumer polls and of those that it leaves to us.
 *
 * ib_create_cq() makes a CQ that the consumer polls, with a completion handler
 * of its own. ib_alloc_cq() makes one that is polled by a lane (lane.c), in the
 * context that the consumer chose (context.c), and whose completions reach
 * wr_cqe->done().
 *
 * Order of life: the handler and the polling context are in place before the driver sees
 * the CQ; when it is destroyed, the callbacks are stopped before the driver is called.
 */
#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <kverbs/upper.h>

#include "../core/contract/contract.h"
#include "../core/contract/export.h"
#include "../core/contract/invalid.h"
#include "../core/contract/restrack.h"
#include "cq.h"
#include "notify.h"

static struct ib_cq *ib_cq_new(struct ib_device *dev, const struct ib_cq_init_attr *attr,
			       const char *caller, unsigned long site)
{
	const struct ib_verb_call call = { .dev = dev, .client = caller, .what = "create_cq" };
	struct ib_cq *cq;
	int err;

	err = ib_check_range(&call, "cqe", attr->cqe, 1, dev->attrs.max_cqe) ?:
	      ib_check_range(&call, "comp_vector", attr->comp_vector, 0,
			     max(dev->num_comp_vectors, 1) - 1);
	if (err)
		return ERR_PTR(err);
	cq = rdma_zalloc_drv_obj(dev, ib_cq);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->device = dev;
	cq->comp_vector = attr->comp_vector;
	atomic_set(&cq->usecnt, 0);
	ib_notify_init_cq(cq);
	rdma_restrack_new(&cq->res, RDMA_RESTRACK_CQ);
	rdma_restrack_set_maker(&cq->res, caller, site);
	return cq;
}

/*
 * On return no handler of the CQ runs, it is not being polled, and neither will happen
 * again.
 */
static void ib_cq_end_callbacks(struct ib_cq *cq)
{
	ib_notify_quiesce(&cq->notify);
	if (cq->lane)
		ib_cq_stop(cq);
}

static int ib_cq_make(struct ib_cq *cq, const struct ib_cq_init_attr *attr)
{
	struct ib_device *dev = cq->device;
	const struct ib_verb_call call = {
		.dev = dev, .client = cq->res.kern_name, .site = cq->res.site, .what = "create_cq",
	};
	int err;

	err = IB_IN_FRAME(dev, NULL, "create_cq", IB_FRAME_METHOD, cq->res.site,
			  dev->ops.create_cq(cq, attr, NULL));
	if (!err && !cq->cqe)
		ib_output_missing(dev, NULL, "create_cq", "returned no size", cq->res.site);
	/* The driver may have reported something before it failed. */
	if (err)
		ib_cq_end_callbacks(cq);
	return ib_refused(&call, err, "cqe %u, comp_vector %u, flags %#x", attr->cqe,
			  attr->comp_vector, attr->flags);
}

static int ib_cq_unmake(struct ib_cq *cq, struct ib_udata *udata, unsigned long site)
{
	return IB_IN_FRAME(cq->device, &cq->res, "destroy_cq", IB_FRAME_METHOD, site,
			   cq->device->ops.destroy_cq(cq, udata));
}

static void ib_cq_free(struct ib_cq *cq)
{
	if (cq->lane)
		ib_cq_put_lane(cq->lane);
	ib_notify_free_cq(cq);
}

/**
 * __ib_create_cq() - make a CQ that the consumer polls; see ib_create_cq()
 * @device: the device
 * @comp_handler: called once for each time that the CQ was armed and got a
 *	completion; in an unspecified context, not from within a verbs call, one
 *	call at a time. May poll and arm; must not sleep. May be NULL.
 * @event_handler: called on %IB_EVENT_CQ_ERR, in an unspecified context; may be NULL
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

	cq = ib_cq_new(device, cq_attr, caller, _RET_IP_);
	if (IS_ERR(cq))
		return cq;
	cq->registered_comp_handler = comp_handler;
	if (comp_handler)
		cq->comp_handler = ib_call_comp_handler;
	cq->registered_event_handler = event_handler;
	if (event_handler)
		cq->event_handler = ib_call_cq_event_handler;
	cq->cq_context = cq_context;

	err = ib_cq_make(cq, cq_attr);
	if (err) {
		ib_cq_free(cq);
		return ERR_PTR(err);
	}
	rdma_restrack_add(&cq->res);
	return cq;
}
EXPORT_SYMBOL(__ib_create_cq);

/* A CQ that ib_cq_adopt() took, and that the driver did not make, is freed by its maker. */
static void ib_cq_abandon(struct rdma_restrack_entry *res)
{
	struct ib_cq *cq = container_of(res, struct ib_cq, res);

	ib_cq_end_callbacks(cq);
	ib_notify_fence(&cq->notify);
	/* What kfree_rcu() does for the others. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		synchronize_rcu_tasks();
	else
		synchronize_rcu_expedited();
	ib_track_drop_user(res);
}

/**
 * ib_cq_adopt() - start tracking a CQ that is made for a process, but not by the core
 * @cq: the CQ, with its device, handlers and their context, before its driver sees it
 *
 * From now on its handlers are called as those of ib_create_cq(). The caller lists it by
 * ib_track_add(), and ib_destroy_cq_user() destroys it; or, if the driver has not made it, the
 * caller gives it up by rdma_restrack_put(), and may free it then.
 *
 * Context: Process.
 */
void ib_cq_adopt(struct ib_cq *cq)
{
	cq->registered_comp_handler = cq->comp_handler;
	if (cq->comp_handler)
		cq->comp_handler = ib_call_comp_handler;
	cq->registered_event_handler = cq->event_handler;
	if (cq->event_handler)
		cq->event_handler = ib_call_cq_event_handler;
	ib_notify_init_cq(cq);
	ib_track_new(&cq->res, RDMA_RESTRACK_CQ);
	cq->res.abandon = ib_cq_abandon;
}
IB_EXPORT_INTERNAL(ib_cq_adopt);

/**
 * ib_destroy_cq_user() - destroy a CQ of ib_create_cq()
 * @cq: the CQ
 * @udata: the process's request, or NULL
 *
 * When it returns 0, no handler of the CQ runs and none will. A CQ of ib_alloc_cq() is destroyed
 * too, with a warning, as ib_free_cq() does it.
 *
 * Context: Process context; not from a handler or done() of the CQ.
 * Return: 0; -EBUSY while a QP uses the CQ, or in its done(); -EOPNOTSUPP for one of the pool; or
 * the driver's error, after which the CQ works as before. A CQ of ib_alloc_cq() is lost then: its
 * memory is never freed, and it must not be used any more.
 */
int ib_destroy_cq_user(struct ib_cq *cq, struct ib_udata *udata)
{
	struct ib_tracked tracked;
	int err;

	if (cq->shared)
		return -EOPNOTSUPP;
	err = ib_object_unused(cq->device, &cq->res, &cq->usecnt, _RET_IP_);
	if (err)
		return err;
	if (cq->lane) {
		/* ksmbd's error path does not look at the result: the CQ would be lost. */
		ibdev_warn(cq->device, "%s: a CQ of ib_alloc_cq() is to be freed with ib_free_cq()\n",
			   cq->res.kern_name);
		return ib_cq_destroy(cq, _RET_IP_);
	}
	tracked = rdma_restrack_del(&cq->res);
	ib_notify_quiesce(&cq->notify);
	err = ib_cq_unmake(cq, udata, _RET_IP_);
	if (err) {
		ib_notify_revive(&cq->notify);
		rdma_restrack_readd(&cq->res);
		ibdev_warn(cq->device, "driver failed to destroy a CQ of %s (%d)\n",
			   cq->res.kern_name, err);
		return err;
	}
	rdma_restrack_forget(cq->device, RDMA_RESTRACK_CQ, tracked);
	ib_notify_fence(&cq->notify);
	ib_cq_free(cq);
	return 0;
}
EXPORT_SYMBOL(ib_destroy_cq_user);

/* Number of completions that @cq has, counted up to @limit; 0 if its device cannot tell. */
int ib_cq_peek(struct ib_cq *cq, int limit)
{
	if (!cq->device->ops.peek_cq)
		return 0;
	return IB_ATOMIC_METHOD(cq->device, &cq->res, "peek_cq",
				cq->device->ops.peek_cq(cq, limit));
}

static struct ib_cq *ib_cq_alloc(struct ib_device *dev, void *private, int nr_cqe, int comp_vector,
				 enum ib_poll_context poll_ctx, const char *caller,
				 unsigned long site)
{
	struct ib_cq_init_attr attr = {
		.cqe = nr_cqe,
		.comp_vector = comp_vector,
	};
	const struct ib_verb_call call = { .dev = dev, .client = caller, .what = "create_cq" };
	struct ib_cq_lane *lane;
	struct ib_cq *cq;
	int err;

	err = ib_check_range(&call, "poll_ctx", poll_ctx, 0, IB_CQ_CONTEXTS - 1) ?:
	      ib_check_range(&call, "nr_cqe", nr_cqe, 1, dev->attrs.max_cqe);
	if (err)
		return ERR_PTR(err);
	cq = ib_cq_new(dev, &attr, caller, site);
	if (IS_ERR(cq))
		return cq;
	cq->cq_context = private;
	cq->poll_ctx = poll_ctx;

	lane = ib_cq_get_lane(dev, comp_vector, poll_ctx);
	if (IS_ERR(lane)) {
		ib_contract_call(dev, NULL, "create_cq", site);
		err = PTR_ERR(lane);
		goto free_cq;
	}
	ib_cq_lane_init_cq(cq, lane);
	err = ib_cq_make(cq, &attr);
	if (err)
		goto free_cq;
	ib_cq_dim_init(cq);
	rdma_restrack_add(&cq->res);
	if (!ib_cq_is_direct(cq)) {
		cq->stats.rearms++;
		ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	}
	return cq;

free_cq:
	ib_cq_free(cq);
	return ERR_PTR(err);
}

/**
 * __ib_alloc_cq() - make a CQ that is polled for the consumer; see ib_alloc_cq()
 * @dev: the device
 * @private: for the consumer, as cq->cq_context
 * @nr_cqe: number of entries, 1 to attrs.max_cqe
 * @comp_vector: completion vector, below num_comp_vectors
 * @poll_ctx: where done() is called, see cq/context.c
 * @caller: KBUILD_MODNAME of the consumer
 *
 * Context: Process context.
 * Return: the CQ, or an ERR_PTR: -EINVAL for arguments out of range, -ENODEV before
 * the device is registered, -ENOMEM, -EINTR if the caller is killed, or the driver's
 * error.
 */
struct ib_cq *__ib_alloc_cq(struct ib_device *dev, void *private, int nr_cqe, int comp_vector,
			    enum ib_poll_context poll_ctx, const char *caller)
{
	return ib_cq_alloc(dev, private, nr_cqe, comp_vector, poll_ctx, caller, _RET_IP_);
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
 * The vectors are used in turn, at most as many as there are CPUs online.
 *
 * Context: Process context.
 * Return: as __ib_alloc_cq().
 */
struct ib_cq *__ib_alloc_cq_any(struct ib_device *dev, void *private, int nr_cqe,
				enum ib_poll_context poll_ctx, const char *caller)
{
	static atomic_t next_vector;
	unsigned int vectors = clamp(dev->num_comp_vectors, 1, (int)num_online_cpus());

	return ib_cq_alloc(dev, private, nr_cqe, (u32)atomic_inc_return(&next_vector) % vectors,
			   poll_ctx, caller, _RET_IP_);
}
EXPORT_SYMBOL(__ib_alloc_cq_any);

/*
 * Destroys a CQ of __ib_alloc_cq(), or one of the pool. Returns 0; -EBUSY, with a warning, if it is in
 * use, and stays as it is; or the driver's error, with a warning, if the driver refuses to destroy
 * it, which is then never freed.
 */
int ib_cq_destroy(struct ib_cq *cq, unsigned long site)
{
	int err;

	if (WARN(ib_cq_in_done_of(cq),
		 "%s frees a CQ from a done() of that CQ\n", cq->res.kern_name))
		return -EBUSY;
	err = ib_object_unused(cq->device, &cq->res, &cq->usecnt, site);
	if (err)
		return err;
	rdma_restrack_forget(cq->device, RDMA_RESTRACK_CQ, rdma_restrack_del(&cq->res));
	ib_cq_end_callbacks(cq);
	ib_cq_dim_exit(cq);
	err = ib_cq_unmake(cq, NULL, site);
	/* The driver may still write to it: never free the memory. */
	if (WARN_ONCE(err, "%s: driver failed to destroy a CQ (%d)\n", cq->res.kern_name, err))
		return err;
	ib_notify_fence(&cq->notify);
	ib_cq_free(cq);
	return 0;
}

/**
 * ib_cq_set_weight() - set the share of a CQ among those of its vector
 * @cq: a CQ of ib_alloc_cq(); one of ib_cq_pool_get() is shared by others, and so is its weight
 * @weight: 1 to 64; 1 in a new CQ. In each round, a CQ of weight 2 may handle
 *	twice as many completions as one of weight 1.
 *
 * Takes effect from the next round on. For a CQ of %IB_POLL_DIRECT, which shares its lane
 * with no other, it makes no difference.
 *
 * Context: Any.
 * Return: 0; -EINVAL for a weight out of range or a CQ that is not polled by
 * the core.
 */
int ib_cq_set_weight(struct ib_cq *cq, unsigned int weight)
{
	const struct ib_verb_call call = {
		.dev = cq->device, .res = &cq->res, .what = "cq_set_weight",
	};
	int err;

	if (!cq->lane)
		return ib_invalid(&call, "the consumer polls this CQ");
	err = ib_check_range(&call, "weight", weight, 1, IB_CQ_WEIGHT_MAX);
	if (err)
		return err;
	WRITE_ONCE(cq->weight, weight);
	return 0;
}
EXPORT_SYMBOL_GPL(ib_cq_set_weight);

/**
 * ib_free_cq() - destroy a CQ of ib_alloc_cq()
 * @cq: the CQ; all QPs that complete to it are destroyed
 *
 * When it returns, no done() of the CQ runs and none will. Completions that were not polled
 * are dropped. If the CQ is in use, it stays as it is, with a warning.
 *
 * Context: Process context; not from a done() of the CQ. In a done() of another CQ it waits
 * for a done() of this one: if two done() free CQs of each other, or of each other's vector
 * with %IB_POLL_THREAD, they wait for ever.
 */
void ib_free_cq(struct ib_cq *cq)
{
	if (!cq->lane || cq->shared) {
		ibdev_warn(cq->device, "%s: a CQ of %s\n", cq->res.kern_name, cq->shared ?
			   "ib_cq_pool_get() must be returned with ib_cq_pool_put()" :
			   "ib_create_cq() must be freed with ib_destroy_cq()");
		return;
	}
	ib_cq_destroy(cq, _RET_IP_);
}
EXPORT_SYMBOL(ib_free_cq);

/**
 * ib_resize_cq() - change the number of entries of a CQ
 * @cq: the CQ
 * @cqe: number of entries that the caller wants, 1 to attrs.max_cqe
 *
 * Completions that are in the CQ stay, in their order, and others may be added
 * and polled meanwhile. ib_cq.cqe is the real number on return. Calls for the
 * same CQ must not run at the same time.
 *
 * Context: Process.
 * Return: 0; -EOPNOTSUPP if the driver has no such method, or the CQ is of the pool;
 * -EINVAL for a number out of range; or an error of the driver, for instance -EINVAL if the
 * CQ holds more completions than that. After an error the CQ is as it was.
 */
int ib_resize_cq(struct ib_cq *cq, int cqe)
{
	const struct ib_verb_call call = {
		.dev = cq->device, .res = &cq->res, .what = "resize_cq",
	};
	int ret;

	if (cq->shared || !cq->device->ops.resize_cq)
		return -EOPNOTSUPP;
	ret = ib_check_range(&call, "cqe", cqe, 1, cq->device->attrs.max_cqe);
	if (ret)
		return ret;
	ret = IB_METHOD(cq->device, &cq->res, "resize_cq",
			cq->device->ops.resize_cq(cq, cqe, NULL));
	if (!ret && cq->cqe < cqe)
		ib_output_missing(cq->device, &cq->res, "resize_cq",
				  "returned fewer entries than asked for", _RET_IP_);
	return ib_refused(&call, ret, "cqe %d", cqe);
}
EXPORT_SYMBOL(ib_resize_cq);
