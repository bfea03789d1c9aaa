/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tracking of a device's objects.
 */
#ifndef KVERBS_RESTRACK_H
#define KVERBS_RESTRACK_H

#include <linux/atomic.h>
#include <rdma/restrack.h>

struct ib_device;
struct task_struct;

/**
 * struct rdma_restrack_root - the objects of one kind on one device
 * @xa: the entries, by their number
 * @next: where the search for a free number starts
 *
 * The kernel's RDMA netlink, which scripts/ulps builds, uses this structure, too, by a definition
 * of its own. IB_CHECK_RESTRACK_LAYOUT() checks that the two agree.
 */
struct rdma_restrack_root {
	struct xarray xa;
	u32 next;
};

/**
 * struct ib_tracked - what rdma_restrack_forget() must free when an object is gone
 * @id: its number, which stays reserved; 0 if it has none
 * @task: the process that it was made for, on which it has a reference; or NULL
 */
struct ib_tracked {
	u32 id;
	struct task_struct *task;
};

void rdma_restrack_init(struct ib_device *dev);
bool rdma_restrack_clean(struct ib_device *dev);
bool rdma_restrack_lists(struct ib_device *dev, enum rdma_restrack_type type,
			 const struct rdma_restrack_entry *res);
void rdma_restrack_new(struct rdma_restrack_entry *res,
		       enum rdma_restrack_type type);
void rdma_restrack_set_maker(struct rdma_restrack_entry *res,
			     const char *caller, unsigned long site);
void rdma_restrack_add(struct rdma_restrack_entry *res);
struct ib_tracked rdma_restrack_del(struct rdma_restrack_entry *res);
void rdma_restrack_readd(struct rdma_restrack_entry *res);
void rdma_restrack_forget(struct ib_device *dev, enum rdma_restrack_type type,
			  struct ib_tracked tracked);
struct ib_device *rdma_restrack_dev(const struct rdma_restrack_entry *res);
struct rdma_restrack_entry *
rdma_restrack_next(struct ib_device *dev, enum rdma_restrack_type type,
		   unsigned long *id);
const char *rdma_restrack_kind(enum rdma_restrack_type type);
int ib_object_unused(struct ib_device *dev, const struct rdma_restrack_entry *res,
		     const atomic_t *usecnt, unsigned long site);
int rdma_restrack_count(struct ib_device *dev, enum rdma_restrack_type type);

#endif
