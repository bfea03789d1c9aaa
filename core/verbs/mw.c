// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory windows, IBTA vol. 1, 10.6.7: parts of a region that peers have access
 * to, under keys that come and go with a work request.
 *
 * Lock protocol: none. A window belongs to its consumer, which must not bind it
 * twice at a time; the count of its PD is atomic. Drivers may look windows up
 * under RCU: the memory is freed a grace period after the driver's dealloc_mw.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "../contract/contract.h"
#include "../contract/invalid.h"
#include "verbs.h"

static int mw_check_type(const struct ib_verb_call *call, const struct ib_device *device,
			 enum ib_mw_type type)
{
	u64 caps = device->attrs.device_cap_flags, wanted;

	switch (type) {
	case IB_MW_TYPE_1:
		wanted = IB_DEVICE_MEM_WINDOW;
		break;
	case IB_MW_TYPE_2:
		wanted = IB_DEVICE_MEM_WINDOW_TYPE_2A |
			 IB_DEVICE_MEM_WINDOW_TYPE_2B;
		break;
	default:
		return ib_invalid(call, "type %d: no such type of window", type);
	}
	if (!device->ops.alloc_mw || !device->ops.dealloc_mw || !(caps & wanted))
		return -EOPNOTSUPP;
	return 0;
}

/**
 * ib_alloc_mw() - make a memory window
 * @pd: PD of the window
 * @type: decides who binds it, and how
 *
 * The window gives no access until it is bound: with ib_bind_mw() if it is of
 * type 1, with %IB_WR_BIND_MW if it is of type 2.
 *
 * Context: Process.
 * Return: the window; -EINVAL for an unknown type, -EOPNOTSUPP if the device
 * has no windows of it, -ENOMEM, or an error of the driver.
 */
struct ib_mw *ib_alloc_mw(struct ib_pd *pd, enum ib_mw_type type)
{
	struct ib_device *device = pd->device;
	const struct ib_verb_call call = {
		.dev = device, .res = &pd->res, .what = "alloc_mw",
	};
	struct ib_mw *mw;
	int ret;

	ret = mw_check_type(&call, device, type);
	if (ret)
		return ERR_PTR(ret);

	mw = rdma_zalloc_drv_obj(device, ib_mw);
	if (!mw)
		return ERR_PTR(-ENOMEM);
	mw->device = device;
	mw->pd = pd;
	mw->type = type;
	rdma_restrack_new(&mw->res, RDMA_RESTRACK_MW);
	rdma_restrack_set_maker(&mw->res, pd->res.kern_name, _RET_IP_);

	ret = IB_METHOD(device, NULL, "alloc_mw", device->ops.alloc_mw(mw, NULL));
	if (ret) {
		ib_refused(&call, ret, "type %d", type);
		kfree_rcu(mw, rcu);
		return ERR_PTR(ret);
	}
	if (!mw->rkey)
		ib_output_missing(device, NULL, "alloc_mw", "returned no key", _RET_IP_);
	atomic_inc(&pd->usecnt);
	rdma_restrack_add(&mw->res);
	return mw;
}
EXPORT_SYMBOL(ib_alloc_mw);

static __cold int bad_bind(const struct ib_qp *qp, const struct ib_mw *mw)
{
	const struct ib_verb_call call = {
		.dev = qp->device, .res = &qp->res, .what = "bind_mw",
	};

	if (mw->device != qp->device)
		return ib_invalid(&call, "the window is of another device");
	return ib_invalid(&call, "the window has type %d: post IB_WR_BIND_MW", mw->type);
}

/**
 * ib_bind_mw() - bind a memory window of type 1
 * @qp: QP to post the request to, of the window's PD
 * @mw: the window
 * @mw_bind: the request; may be gone when the call returns
 *
 * Posts %IB_WR_BIND_MW under the next key of the window. On return that is
 * ib_mw.rkey; the completion may have come before that. Earlier keys give no
 * access from the completion on. Binding with a length of 0 unbinds the window.
 *
 * Context: Any.
 * Return: 0 if the request is posted; -EINVAL for a window of another type or device; or an
 * error of ib_post_send(), which leaves the key as it was. If the device finds the binding
 * wrong, the completion has the status %IB_WC_MW_BIND_ERR.
 */
int ib_bind_mw(struct ib_qp *qp, struct ib_mw *mw, struct ib_mw_bind *mw_bind)
{
	struct ib_bind_mw_wr wr = {
		.wr = {
			.wr_id = mw_bind->wr_id,
			.opcode = IB_WR_BIND_MW,
			.send_flags = mw_bind->send_flags,
		},
		.mw = mw,
		.rkey = ib_inc_rkey(mw->rkey),
		.bind_info = mw_bind->bind_info,
	};
	int ret;

	if (mw->type != IB_MW_TYPE_1 || mw->device != qp->device)
		return bad_bind(qp, mw);

	ret = ib_post_send_for(qp, &wr.wr, _RET_IP_);
	if (!ret)
		mw->rkey = wr.rkey;
	return ret;
}
EXPORT_SYMBOL(ib_bind_mw);

/**
 * ib_dealloc_mw() - free a memory window
 * @mw: the window, bound or not; no request that names it is outstanding
 *
 * Context: Process.
 * Return: 0, or an error of the driver, with a warning. After an error the window still
 * exists.
 */
int ib_dealloc_mw(struct ib_mw *mw)
{
	struct ib_pd *pd = mw->pd;
	struct ib_tracked tracked;
	int ret;

	tracked = rdma_restrack_del(&mw->res);
	ret = IB_METHOD(mw->device, &mw->res, "dealloc_mw", mw->device->ops.dealloc_mw(mw));
	if (ret) {
		rdma_restrack_readd(&mw->res);
		ibdev_warn(mw->device,
			   "driver failed to free memory window %u of %s (%d)\n",
			   mw->res.id, mw->res.kern_name, ret);
		return ret;
	}
	rdma_restrack_forget(mw->device, RDMA_RESTRACK_MW, tracked);
	kfree_rcu(mw, rcu);
	atomic_dec(&pd->usecnt);
	return 0;
}
EXPORT_SYMBOL(ib_dealloc_mw);
