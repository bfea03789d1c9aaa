/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The part of the user verbs interface that drivers' methods use, to find the context of the
 * process that made the request. Modules of scripts/ulps have the kernel's own header in place
 * of this one; the beginning of the structure is the same there, which ulp/stock/uverbs/ checks.
 */
#ifndef _UVERBS_IOCTL_
#define _UVERBS_IOCTL_

#include <linux/build_bug.h>
#include <linux/container_of.h>
#include <linux/stddef.h>
#include <rdma/ib_verbs.h>

/**
 * struct uverbs_attr_bundle - attributes of one user call
 * @driver_udata: the driver's part of the call
 * @ucore: the core's part of the call
 * @ufile: the file that the process has opened
 * @context: context of the calling process
 */
struct uverbs_attr_bundle {
	struct ib_udata		driver_udata;
	struct ib_udata		ucore;
	struct ib_uverbs_file	*ufile;
	struct ib_ucontext	*context;
};

static_assert(offsetof(struct uverbs_attr_bundle, context) == IB_UDATA_TO_CONTEXT);

static inline struct uverbs_attr_bundle *
rdma_udata_to_uverbs_attr_bundle(struct ib_udata *udata)
{
	return container_of(udata, struct uverbs_attr_bundle, driver_udata);
}

/**
 * rdma_udata_to_drv_context() - find the driver's context of a user call
 * @udata: as the driver's method got it; NULL for kernel callers
 * @drv_dev_struct: type of the driver's context
 * @member: its member of type struct ib_ucontext
 *
 * Context: Any.
 * Return: the driver's structure, or NULL if @udata is NULL.
 */
#define rdma_udata_to_drv_context(udata, drv_dev_struct, member)	\
	((udata) ?							\
	 container_of(rdma_udata_to_uverbs_attr_bundle(udata)->context,	\
		      drv_dev_struct, member) : (drv_dev_struct *)NULL)

#endif /* _UVERBS_IOCTL_ */
