// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fast memory regions: page lists that are mapped by a call, in any context,
 * instead of by a work request. Linux had them until 5.7; ib_alloc_mr() and
 * %IB_WR_REG_MR took their place.
 *
 * Lock protocol: none. An FMR belongs to its consumer, which must not map it
 * twice at a time; the count of its PD is atomic. The driver allocates and
 * frees FMRs.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/list.h>
#include <rdma/ib_verbs.h>

#include "../contract/contract.h"
#include "../contract/invalid.h"
#include "verbs.h"

static int fmr_check(const struct ib_verb_call *call, struct ib_device *device, int access,
		     const struct ib_fmr_attr *attr)
{
	const struct ib_device_ops *ops = &device->ops;
	int max_maps = device->attrs.max_map_per_fmr ?: INT_MAX;
	int ret;

	if (!ops->alloc_fmr || !ops->map_phys_fmr || !ops->unmap_fmr ||
	    !ops->dealloc_fmr)
		return -EOPNOTSUPP;
	ret = ib_check_range(call, "max_pages", attr->max_pages, 1, INT_MAX) ?:
	      ib_check_range(call, "max_maps", attr->max_maps, 1, max_maps);
	if (ret)
		return ret;
	/* Its pages are given when it is mapped, so there is nothing to fault in. */
	if (access & IB_ACCESS_ON_DEMAND)
		return ib_invalid(call, "access flags %#x: an FMR cannot be IB_ACCESS_ON_DEMAND",
				  access);
	return ib_mr_check_access(call, device, access);
}

/**
 * ib_alloc_fmr() - make a fast memory region
 * @pd: PD of the region
 * @mr_access_flags: &enum ib_access_flags of all its mappings
 * @fmr_attr: its sizes
 *
 * The region gives no access until it is mapped with ib_map_phys_fmr().
 *
 * Context: Process.
 * Return: the region; -EOPNOTSUPP if the device has no FMRs; -EINVAL for sizes
 * that are not positive, more mappings than attrs.max_map_per_fmr, or illegal
 * access flags; or an error of the driver: -EINVAL or -ENOMEM for too many pages
 * or a page size that the device lacks.
 */
struct ib_fmr *ib_alloc_fmr(struct ib_pd *pd, int mr_access_flags,
			    struct ib_fmr_attr *fmr_attr)
{
	struct ib_device *device = pd->device;
	const struct ib_verb_call call = {
		.dev = device, .res = &pd->res, .what = "alloc_fmr",
	};
	struct ib_fmr *fmr;
	int ret;

	ret = fmr_check(&call, device, mr_access_flags, fmr_attr);
	if (ret)
		return ERR_PTR(ret);

	fmr = IB_METHOD(device, NULL, "alloc_fmr",
			device->ops.alloc_fmr(pd, mr_access_flags, fmr_attr));
	fmr = IB_OUTPUT(device, "alloc_fmr", _RET_IP_, fmr);
	if (IS_ERR(fmr)) {
		ib_refused(&call, PTR_ERR(fmr), "max_pages %d, max_maps %d, page_shift %u",
			   fmr_attr->max_pages, fmr_attr->max_maps, fmr_attr->page_shift);
		return fmr;
	}
	fmr->device = device;
	fmr->pd = pd;
	INIT_LIST_HEAD(&fmr->list);
	atomic_inc(&pd->usecnt);

	rdma_restrack_new(&fmr->res, RDMA_RESTRACK_FMR);
	rdma_restrack_set_maker(&fmr->res, pd->res.kern_name, _RET_IP_);
	rdma_restrack_add(&fmr->res);
	return fmr;
}
EXPORT_SYMBOL(ib_alloc_fmr);

/**
 * ib_unmap_fmr() - undo all mappings of FMRs
 * @fmr_list: FMRs, linked by ib_fmr.list, of one device
 *
 * On return none of the FMRs' keys gives access, and they can be mapped as often as new
 * ones. The list stays as it is.
 *
 * Context: Process: the driver may have to wait for the device.
 * Return: 0, also for an empty list; -EINVAL if they are not all of one device;
 * or an error of the driver.
 */
int ib_unmap_fmr(struct list_head *fmr_list)
{
	struct ib_verb_call call = { .what = "unmap_fmr" };
	struct ib_device *device;
	struct ib_fmr *fmr;

	if (list_empty(fmr_list))
		return 0;
	device = list_first_entry(fmr_list, struct ib_fmr, list)->device;
	list_for_each_entry(fmr, fmr_list, list) {
		call.dev = fmr->device;
		call.res = &fmr->res;
		if (fmr->device != device)
			return ib_invalid(&call, "the FMRs belong to different devices");
	}
	return IB_METHOD(device, NULL, "unmap_fmr", device->ops.unmap_fmr(fmr_list));
}
EXPORT_SYMBOL(ib_unmap_fmr);

/**
 * ib_dealloc_fmr() - free a fast memory region
 * @fmr: the region, mapped or not; it is on no list
 *
 * Context: Process.
 * Return: 0, or an error of the driver, with a warning. After an error the region still
 * exists.
 */
int ib_dealloc_fmr(struct ib_fmr *fmr)
{
	struct ib_device *device = fmr->device;
	struct ib_pd *pd = fmr->pd;
	struct ib_tracked tracked;
	int ret;

	tracked = rdma_restrack_del(&fmr->res);
	ret = IB_METHOD(device, &fmr->res, "dealloc_fmr", device->ops.dealloc_fmr(fmr));
	if (ret) {
		rdma_restrack_readd(&fmr->res);
		ibdev_warn(device, "driver failed to free FMR %u of %s (%d)\n",
			   fmr->res.id, fmr->res.kern_name, ret);
		return ret;
	}
	rdma_restrack_forget(device, RDMA_RESTRACK_FMR, tracked);
	atomic_dec(&pd->usecnt);
	return 0;
}
EXPORT_SYMBOL(ib_dealloc_fmr);
