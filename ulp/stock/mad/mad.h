/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of kverbs_mad share.
 */
#ifndef KVERBS_ULPS_MAD_H
#define KVERBS_ULPS_MAD_H

/* cgroup.c */
int rdma_cgroup_init(void);
void rdma_cgroup_exit(void);

#endif
