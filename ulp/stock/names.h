/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included ahead of sources of the kernel's that read the names of devices, mostly for processes,
 * without a lock: a rename frees what dev_name() has returned. kverbs keeps each name in the device,
 * where it may be read at any time.
 */
#ifndef KVERBS_ULPS_NAMES_H
#define KVERBS_ULPS_NAMES_H

#include <linux/device/class.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

/* Devices of other classes, such as character devices, are not renamed. */
static inline const char *kv_lasting_name(const struct device *dev)
{
	if (dev->class && !strcmp(dev->class->name, "infiniband"))
		return container_of(dev, struct ib_device, dev)->name;
	return dev_name(dev);
}

#define dev_name(dev) kv_lasting_name(dev)

#endif
