// SPDX-License-Identifier: GPL-2.0-only
/*
 * Protection domains and shared receive queues.
 *
 * Lock protocol: none. ib_pd.usecnt and ib_srq.usecnt count the objects that
 * use a PD or an SRQ; it cannot be destroyed while they are not 0. A caller
 * that destroys an object ensures that no other thread is about to use it; the
 * counts catch mistakes, they do not provide ordering.
 *
 * While it is being destroyed, an SRQ can be reached by
 *  1. readers of the object lists: rdma_restrack_del() waits for them;
 *  2. the irq_work that calls the event handler: ib_notify_quiesce() ends it;
 *  3. the driver's data path, until its destroy_srq returns;
 *  4. whoever is about to queue that irq_work: ib_notify_fence() waits for it;
 *  5. a driver's lookup under RCU: the memory is freed a grace period later.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <kverbs/upper.h>
#include <rdma/ib_verbs.h>

#include "../../cq/notify.h"
#include "../contract/contract.h"
#include "../contract/invalid.h"
#include "../contract/export.h"
#include "verbs.h"

/* Protection domains */

static int pd_map_all_memory(struct ib_pd *pd, int access)
{
	unsigned long site = pd->res.site;
	struct ib_mr *mr;

	mr = IB_IN_FRAME(pd->device, NULL, "get_dma_mr", IB_FRAME_METHOD, site,
			 pd->device->ops.get_dma_mr(pd, access));
	mr = IB_OUTPUT(pd->device, "get_dma_mr", site, mr);
	if (IS_ERR(mr))
		return PTR_ERR(mr);

	ib_mr_need_key(pd->device, mr, "get_dma_mr", site);
	ib_mr_fill(mr, pd, IB_MR_TYPE_DMA, NULL);
	pd->__internal_mr = mr;
	return 0;
}

static int pd_unmap_all_memory(struct ib_pd *pd, unsigned long site)
{
	struct ib_mr *mr = pd->__internal_mr;
	bool own_lkey;
	int ret;

	if (!mr)
		return 0;
	own_lkey = !(pd->device->attrs.kernel_cap_flags & IBK_LOCAL_DMA_LKEY);
	ret = IB_IN_FRAME(pd->device, &pd->res, "dereg_mr", IB_FRAME_METHOD, site,
			  pd->device->ops.dereg_mr(mr, NULL));
	if (ret)
		return ret;
	pd->__internal_mr = NULL;
	pd->unsafe_global_rkey = 0;
	if (own_lkey)
		pd->local_dma_lkey = 0;
	return 0;
}

/* Sets the keys of a PD, taken from the device or from a region of its own. */
static int pd_get_keys(struct ib_pd *pd)
{
	struct ib_device *device = pd->device;
	bool own_lkey = !(device->attrs.kernel_cap_flags & IBK_LOCAL_DMA_LKEY);
	int ret, access = 0;

	if (own_lkey)
		access |= IB_ACCESS_LOCAL_WRITE;
	if (pd->flags & IB_PD_UNSAFE_GLOBAL_RKEY) {
		ibdev_warn(device, "%s allows peers to access all memory (IB_PD_UNSAFE_GLOBAL_RKEY)\n",
			   pd->res.kern_name);
		access |= IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
			  IB_ACCESS_REMOTE_WRITE;
	}

	pd->local_dma_lkey = device->local_dma_lkey;
	if (!access)
		return 0;
	ret = pd_map_all_memory(pd, access);
	if (ret)
		return ret;
	if (own_lkey)
		pd->local_dma_lkey = pd->__internal_mr->lkey;
	if (pd->flags & IB_PD_UNSAFE_GLOBAL_RKEY)
		pd->unsafe_global_rkey = pd->__internal_mr->rkey;
	return 0;
}

static struct ib_pd *alloc_pd(struct ib_device *device, unsigned int flags,
			      const char *caller, unsigned long site,
			      bool with_keys)
{
	struct ib_pd *pd;
	int ret;

	pd = rdma_zalloc_drv_obj(device, ib_pd);
	if (!pd)
		return ERR_PTR(-ENOMEM);
	pd->device = device;
	pd->flags = flags;
	rdma_restrack_new(&pd->res, RDMA_RESTRACK_PD);
	rdma_restrack_set_maker(&pd->res, caller, site);

	ret = IB_IN_FRAME(device, NULL, "alloc_pd", IB_FRAME_METHOD, site,
			  device->ops.alloc_pd(pd, NULL));
	if (ret)
		goto err_free;
	ret = with_keys ? pd_get_keys(pd) : 0;
	if (ret)
		goto err_dealloc;
	rdma_restrack_add(&pd->res);
	return pd;

err_dealloc:
	device->ops.dealloc_pd(pd, NULL);
err_free:
	kfree(pd);
	return ERR_PTR(ret);
}

/* For processes: they can reach only the memory that they register. */
struct ib_pd *ib_alloc_pd_without_keys(struct ib_device *device,
				       const char *caller)
{
	return alloc_pd(device, 0, caller, _RET_IP_, false);
}
IB_EXPORT_INTERNAL(ib_alloc_pd_without_keys);

/**
 * __ib_alloc_pd() - make a protection domain; called through ib_alloc_pd()
 * @device: the device
 * @flags: &enum ib_pd_flags
 * @caller: KBUILD_MODNAME of the caller
 *
 * Each PD has a key for local access to all memory, ib_pd.local_dma_lkey.
 * With %IB_PD_UNSAFE_GLOBAL_RKEY it has one for remote access too, which is
 * logged.
 *
 * Context: Process.
 * Return: the PD; -EINVAL for unknown @flags, -ENOMEM, or an error of the
 * driver.
 */
struct ib_pd *__ib_alloc_pd(struct ib_device *device, unsigned int flags,
			    const char *caller)
{
	/* Here and not below, which the compiler may make a function of its own. */
	const struct ib_verb_call call = {
		.dev = device, .client = caller, .what = "alloc_pd", .site = _RET_IP_,
	};

	if (flags & ~IB_PD_UNSAFE_GLOBAL_RKEY)
		return ERR_PTR(ib_invalid(&call, "flags %#x are unknown", flags));
	return alloc_pd(device, flags, caller, call.site, true);
}
EXPORT_SYMBOL(__ib_alloc_pd);

/**
 * ib_dealloc_pd_user() - free a protection domain
 * @pd: the PD
 * @udata: the process's request, or NULL
 *
 * Context: Process.
 * Return: 0; -EBUSY, with a warning unless it is a process's, while something is left in the PD; or an
 * error of the driver, with a warning. After an error the PD still exists, but
 * keys that the core had registered for it may be gone: they read as 0.
 */
int ib_dealloc_pd_user(struct ib_pd *pd, struct ib_udata *udata)
{
	struct ib_device *device = pd->device;
	struct ib_tracked tracked;
	int ret;

	ret = ib_object_unused(device, &pd->res, &pd->usecnt, _RET_IP_);
	if (ret)
		return ret;

	tracked = rdma_restrack_del(&pd->res);
	ret = pd_unmap_all_memory(pd, _RET_IP_);
	if (!ret)
		ret = IB_METHOD(device, &pd->res, "dealloc_pd",
				device->ops.dealloc_pd(pd, udata));
	if (ret) {
		rdma_restrack_readd(&pd->res);
		ibdev_warn(device, "driver failed to free PD %u of %s (%d)\n",
			   pd->res.id, pd->res.kern_name, ret);
		return ret;
	}
	rdma_restrack_forget(device, RDMA_RESTRACK_PD, tracked);
	kfree(pd);
	return 0;
}
EXPORT_SYMBOL(ib_dealloc_pd_user);

/* Shared receive queues */

static int srq_check_attr(const struct ib_verb_call *call, struct ib_device *device,
			  const struct ib_srq_init_attr *init)
{
	const struct ib_device_ops *ops = &device->ops;

	if (!ops->create_srq || !ops->destroy_srq || !ops->post_srq_recv)
		return -EOPNOTSUPP;
	if (init->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	return ib_check_range(call, "max_wr", init->attr.max_wr, 1, device->attrs.max_srq_wr) ?:
	       ib_check_range(call, "max_sge", init->attr.max_sge, 0, device->attrs.max_srq_sge);
}

/**
 * ib_create_srq_user() - make a shared receive queue; called through
 *	ib_create_srq()
 * @pd: PD of the queue
 * @srq_init_attr: what the caller wants; holds the real sizes on return
 * @uobject: what the process knows the queue by; NULL for callers in the kernel
 * @udata: the process's request; NULL for callers in the kernel
 *
 * Context: Process.
 * Return: the queue; -EOPNOTSUPP if the device has no SRQs or none of this
 * type, -EINVAL for a max_wr of 0 or sizes beyond the device's limits, -ENOMEM, or
 * an error of the driver.
 */
struct ib_srq *ib_create_srq_user(struct ib_pd *pd,
				  struct ib_srq_init_attr *srq_init_attr,
				  struct ib_usrq_object *uobject,
				  struct ib_udata *udata)
{
	struct ib_device *device = pd->device;
	const struct ib_verb_call call = {
		.dev = device, .res = &pd->res, .what = "create_srq",
	};
	struct ib_srq *srq;
	int ret;

	ret = srq_check_attr(&call, device, srq_init_attr);
	if (ret)
		return ERR_PTR(ret);

	srq = rdma_zalloc_drv_obj(device, ib_srq);
	if (!srq)
		return ERR_PTR(-ENOMEM);
	srq->device = device;
	srq->pd = pd;
	srq->uobject = uobject;
	srq->registered_event_handler = srq_init_attr->event_handler;
	if (srq->registered_event_handler)
		srq->event_handler = ib_call_srq_event_handler;
	srq->srq_context = srq_init_attr->srq_context;
	srq->srq_type = srq_init_attr->srq_type;
	ib_notify_init_srq(srq);
	rdma_restrack_new(&srq->res, RDMA_RESTRACK_SRQ);
	rdma_restrack_set_maker(&srq->res, pd->res.kern_name, _RET_IP_);
	if (udata)
		ib_track_set_user(&srq->res, current, _RET_IP_);

	ret = IB_METHOD(device, NULL, "create_srq",
			device->ops.create_srq(srq, srq_init_attr, udata));
	if (ret) {
		ib_refused(&call, ret, "max_wr %u, max_sge %u", srq_init_attr->attr.max_wr,
			   srq_init_attr->attr.max_sge);
		ib_notify_quiesce(&srq->notify);
		ib_track_drop_user(&srq->res);
		ib_notify_free_srq(srq);
		return ERR_PTR(ret);
	}
	if (!srq_init_attr->attr.max_wr)
		ib_output_missing(device, NULL, "create_srq", "returned no size", _RET_IP_);
	atomic_inc(&pd->usecnt);
	rdma_restrack_add(&srq->res);
	return srq;
}
EXPORT_SYMBOL(ib_create_srq_user);

/**
 * ib_modify_srq() - change size or limit of a shared receive queue
 * @srq: the queue
 * @srq_attr: the new values
 * @srq_attr_mask: which of them to set
 *
 * With %IB_SRQ_LIMIT the device raises %IB_EVENT_SRQ_LIMIT_REACHED once, as
 * soon as fewer requests than the limit are left.
 *
 * Context: Process.
 * Return: 0; -EOPNOTSUPP if the driver has no such method, -EINVAL for an
 * unknown mask or a size beyond the device's limit, or an error of the driver.
 */
int ib_modify_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
		  enum ib_srq_attr_mask srq_attr_mask)
{
	struct ib_device *device = srq->device;
	const struct ib_verb_call call = {
		.dev = device, .res = &srq->res, .what = "modify_srq",
	};
	int ret;

	if (!device->ops.modify_srq)
		return -EOPNOTSUPP;
	if (srq_attr_mask & ~(IB_SRQ_MAX_WR | IB_SRQ_LIMIT))
		return ib_invalid(&call, "attr_mask %#x: has bits other than MAX_WR (%#x) and LIMIT (%#x)",
				  srq_attr_mask, IB_SRQ_MAX_WR, IB_SRQ_LIMIT);
	if (srq_attr_mask & IB_SRQ_MAX_WR) {
		ret = ib_check_range(&call, "max_wr", srq_attr->max_wr, 0,
				     device->attrs.max_srq_wr);
		if (ret)
			return ret;
	}
	ret = IB_METHOD(device, &srq->res, "modify_srq",
			device->ops.modify_srq(srq, srq_attr, srq_attr_mask, NULL));
	return ib_refused(&call, ret, "srq_limit %u, max_wr %u",
			  srq_attr_mask & IB_SRQ_LIMIT ? srq_attr->srq_limit : 0,
			  srq_attr_mask & IB_SRQ_MAX_WR ? srq_attr->max_wr : 0);
}
EXPORT_SYMBOL(ib_modify_srq);

/**
 * ib_query_srq() - read size and limit of a shared receive queue
 * @srq: the queue
 * @srq_attr: filled in
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_query_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr)
{
	int ret;

	if (!srq->device->ops.query_srq)
		return -EOPNOTSUPP;
	srq_attr->max_wr = 0;
	ret = IB_METHOD(srq->device, &srq->res, "query_srq",
			srq->device->ops.query_srq(srq, srq_attr));
	if (!ret && !srq_attr->max_wr)
		ib_output_missing(srq->device, &srq->res, "query_srq", "returned no size", _RET_IP_);
	return ret;
}
EXPORT_SYMBOL(ib_query_srq);

/**
 * ib_destroy_srq_user() - free a shared receive queue
 * @srq: the queue
 * @udata: the process's request, or NULL
 *
 * On return the event handler does not run, and is not called any more.
 *
 * Context: Process.
 * Return: 0; -EBUSY, with a warning, while a QP uses the queue; or an error of
 * the driver, with a warning. After an error the queue still exists.
 */
int ib_destroy_srq_user(struct ib_srq *srq, struct ib_udata *udata)
{
	struct ib_pd *pd = srq->pd;
	struct ib_tracked tracked;
	int ret;

	ret = ib_object_unused(srq->device, &srq->res, &srq->usecnt, _RET_IP_);
	if (ret)
		return ret;

	tracked = rdma_restrack_del(&srq->res);
	ib_notify_quiesce(&srq->notify);
	ret = IB_METHOD(srq->device, &srq->res, "destroy_srq",
			srq->device->ops.destroy_srq(srq, udata));
	if (ret) {
		ib_notify_revive(&srq->notify);
		rdma_restrack_readd(&srq->res);
		ibdev_warn(srq->device,
			   "driver failed to destroy SRQ %u of %s (%d)\n",
			   srq->res.id, srq->res.kern_name, ret);
		return ret;
	}
	rdma_restrack_forget(srq->device, RDMA_RESTRACK_SRQ, tracked);
	atomic_dec(&pd->usecnt);
	ib_notify_fence(&srq->notify);
	ib_notify_free_srq(srq);
	return 0;
}
EXPORT_SYMBOL(ib_destroy_srq_user);
