/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tracking record in each verbs object: its kind, its number and its
 * creator.
 */
#ifndef _RDMA_RESTRACK_H_
#define _RDMA_RESTRACK_H_

#include <linux/completion.h>
#include <linux/kref.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/xarray.h>

struct ib_device;

enum rdma_restrack_type {
	RDMA_RESTRACK_PD,
	RDMA_RESTRACK_CQ,
	RDMA_RESTRACK_QP,
	RDMA_RESTRACK_CM_ID,
	RDMA_RESTRACK_MR,
	RDMA_RESTRACK_CTX,
	RDMA_RESTRACK_COUNTER,
	RDMA_RESTRACK_SRQ,
	RDMA_RESTRACK_MW,
	RDMA_RESTRACK_FMR,
	RDMA_RESTRACK_MAX
};

/**
 * struct rdma_restrack_entry - the tracking part of a verbs object
 * @valid: the entry is listed
 * @no_track: never list this entry
 * @kref: keeps the object while somebody looks at it
 * @comp: completed when the last reference is dropped
 * @task: the process that the object was made for, if it was made for one by ib_uverbs or
 *	rdma_ucm; else NULL
 * @abandon: while such an object is being made: called if that fails
 * @kern_name: name of the module that made the object, or of the process: @maker; or NULL
 * @maker: copy of that name, since a module that leaks objects may be unloaded before
 *	they are freed
 * @type: kind of object
 * @user: the object was made for @task
 * @id: number, unique among objects of the same device and kind
 * @site: where the object was made: address of the call into the midlayer
 */
struct rdma_restrack_entry {
	bool			valid;
	u8			no_track : 1;
	struct kref		kref;
	struct completion	comp;
	struct task_struct	*task;
	void			(*abandon)(struct rdma_restrack_entry *res);
	const char		*kern_name;
	char			maker[MODULE_NAME_LEN];
	enum rdma_restrack_type	type;
	bool			user;
	u32			id;
	unsigned long		site;
};

/**
 * rdma_is_kernel_res() - check whether an object was made through the kernel verbs
 * @res: tracking entry of the object
 *
 * Context: Any.
 * Return: false for an object that ib_uverbs or rdma_ucm has made for a process.
 */
static inline bool rdma_is_kernel_res(const struct rdma_restrack_entry *res)
{
	return !res->user;
}

/**
 * rdma_restrack_no_track() - keep an object out of the lists
 * @res: tracking entry of the object
 *
 * A driver calls this in its create method, for an object that it only uses
 * itself.
 *
 * Context: Any, before the object is added.
 */
static inline void rdma_restrack_no_track(struct rdma_restrack_entry *res)
{
	res->no_track = true;
}

/**
 * rdma_restrack_is_tracked() - check whether an object may be listed
 * @res: tracking entry of the object
 *
 * Context: Any.
 * Return: false after rdma_restrack_no_track().
 */
static inline bool rdma_restrack_is_tracked(struct rdma_restrack_entry *res)
{
	return !res->no_track;
}

struct rdma_restrack_entry *
rdma_restrack_get_byid(struct ib_device *dev, enum rdma_restrack_type type,
		       u32 id);
int __must_check rdma_restrack_get(struct rdma_restrack_entry *res);
int rdma_restrack_put(struct rdma_restrack_entry *res);

#endif /* _RDMA_RESTRACK_H_ */
