// SPDX-License-Identifier: GPL-2.0-only
/*
 * The driver's own attributes of a device in sysfs: those that ibstat shows as the type of the
 * channel adapter and as the revision of the hardware. On other devices, too, they come from the
 * driver.
 */
#include <linux/device.h>
#include <linux/sysfs.h>
#include <rdma/ib_verbs.h>

#include "device.h"

static ssize_t hca_type_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", KBUILD_MODNAME);
}
static DEVICE_ATTR_RO(hca_type);

static ssize_t hw_rev_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%x\n", rdma_device_to_ibdev(dev)->attrs.hw_ver);
}
static DEVICE_ATTR_RO(hw_rev);

static struct attribute *emu_attrs[] = {
	&dev_attr_hca_type.attr,
	&dev_attr_hw_rev.attr,
	NULL
};

const struct attribute_group emu_attr_group = { .attrs = emu_attrs };
