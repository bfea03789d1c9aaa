/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of sysfs share.
 */
#ifndef KVERBS_SYSFS_PORT_H
#define KVERBS_SYSFS_PORT_H

#include <linux/types.h>

struct attribute_group;
struct ib_device;
struct ib_stats;
struct rdma_hw_stats;

/* sysfs_stats.c */
struct ib_stats *ib_stats_create(struct ib_device *dev, u32 port);
const struct attribute_group **ib_stats_groups(struct ib_stats *stats);
struct rdma_hw_stats *ib_stats_values(struct ib_stats *stats);
void ib_stats_free(struct ib_stats *stats);

/* sysfs_port.c */
int ib_sysfs_add_ports(struct ib_device *dev);
void ib_sysfs_remove_ports(struct ib_device *dev);

#endif
