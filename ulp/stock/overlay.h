/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included ahead of each of the kernel's own source files that "make ulps" builds: declarations
 * that the kernel's own rdma headers have and kverbs' lack. The types appear only in prototypes.
 */
#ifndef KVERBS_ULPS_OVERLAY_H
#define KVERBS_ULPS_OVERLAY_H

struct hw_stats_device_data;
struct ib_qp_security;
struct ib_rdmacg_object;
struct workqueue_struct;

/* Provided by kverbs_mad. */
extern struct workqueue_struct *ib_wq;

#endif
