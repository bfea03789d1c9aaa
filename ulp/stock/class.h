/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included ahead of those of the kernel's source files that define a struct class.
 *
 * Kernels before 6.4 pass the callbacks of a class pointers that are not const, and write to the
 * class. If a file says that its class is const, a copy is registered in its place. For files
 * with one class.
 */
#ifndef KVERBS_ULPS_CLASS_H
#define KVERBS_ULPS_CLASS_H

#ifndef HAVE_CLASS_REGISTER_CONST
#pragma GCC diagnostic ignored "-Wincompatible-pointer-types"
#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers"

#ifdef KV_CONST_CLASS
#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/slab.h>

/* Set from registration to unregistration of the class, as the module is loaded and unloaded. */
static struct class *kv_class;

static void kv_class_release(struct class *class)
{
	kfree(class);
}

static inline int kv_class_register(const struct class *class)
{
	int ret;

	kv_class = kmemdup(class, sizeof(*class), GFP_KERNEL);
	if (!kv_class)
		return -ENOMEM;
	kv_class->class_release = kv_class_release;
	ret = class_register(kv_class);
	if (ret)
		kfree(kv_class);
	return ret;
}

static inline void kv_class_unregister(const struct class *class)
{
	class_unregister(kv_class);
}

static inline int kv_class_create_file(const struct class *class,
				       const struct class_attribute *attr)
{
	return class_create_file(kv_class, attr);
}

/* A device's class is that of its source file until it is added. */
static inline int kv_cdev_device_add(struct cdev *cdev, struct device *dev)
{
	dev->class = kv_class;
	return cdev_device_add(cdev, dev);
}

#undef class_register
#define class_register(class) kv_class_register(class)
#define class_unregister(class) kv_class_unregister(class)
#define class_create_file(class, attr) kv_class_create_file(class, attr)
#define cdev_device_add(cdev, dev) kv_cdev_device_add(cdev, dev)
#endif /* KV_CONST_CLASS */
#endif /* HAVE_CLASS_REGISTER_CONST */

#endif
