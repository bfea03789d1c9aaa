/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included ahead of each of the kernel's own source files that "make ulps" builds: declarations
 * that the kernel's own rdma headers have and kverbs' lack, where the types appear only in
 * prototypes; and what kernels before 6.12 lack, by the probes in probes/.
 */
#ifndef KVERBS_ULPS_OVERLAY_H
#define KVERBS_ULPS_OVERLAY_H

#include <kverbs/ulps_config.h>

struct hw_stats_device_data;
struct ib_qp_security;
struct ib_rdmacg_object;
struct workqueue_struct;

/* Provided by kverbs_mad. */
extern struct workqueue_struct *ib_wq;

#ifndef HAVE_DST_RTABLE
#define dst_rtable(entry) container_of(entry, struct rtable, dst)
#endif

#ifndef HAVE_FD_FILE
#define fd_file(f) ((f).file)
#define EMPTY_FD { }
#endif

#ifndef HAVE_TRACE_SK_DATA_READY
#define trace_sk_data_ready(sk) ((void)(sk))
#endif

#endif
