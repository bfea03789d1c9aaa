/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files of a device in sysfs and debugfs.
 */
#ifndef KVERBS_VIEW_H
#define KVERBS_VIEW_H

#include <linux/types.h>

struct dentry;
struct device;
struct ib_device;
struct seq_file;

/* sysfs.c */
int ib_sysfs_init(void);
void ib_sysfs_exit(void);
void ib_sysfs_prepare(struct ib_device *dev,
		      void (*release)(struct device *dev));
int ib_sysfs_add(struct ib_device *dev, bool *was_added);
void ib_sysfs_announce(struct ib_device *dev);
void ib_sysfs_remove(struct ib_device *dev);

/* debugfs.c */
void ib_debugfs_init(void (*clients)(struct ib_device *dev, struct seq_file *s));
void ib_debugfs_exit(void);
void ib_debugfs_add(struct ib_device *dev);
struct dentry *ib_debugfs_dir(struct ib_device *dev);
void ib_debugfs_rename(struct ib_device *dev);
void ib_debugfs_remove(struct ib_device *dev);

#endif
