// SPDX-License-Identifier: GPL-2.0-only
/* struct class callbacks take a const struct device (6.4). */
#include <linux/device.h>

static int uevent(const struct device *dev, struct kobj_uevent_env *env)
{
	return 0;
}

static struct class __used probe = { .name = "probe", .dev_uevent = uevent };
