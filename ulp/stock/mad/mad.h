/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations shared by the files of kverbs_mad.
 */
#ifndef KVERBS_ULPS_MAD_H
#define KVERBS_ULPS_MAD_H

/* cgroup.c */
int rdma_cgroup_init(void);
void rdma_cgroup_exit(void);

/* monitor.c */
int monitor_init(void);
void monitor_exit(void);

#endif
