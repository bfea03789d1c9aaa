// SPDX-License-Identifier: GPL-2.0-only
/* A class may be in memory that cannot be written to (6.4). */
#include <linux/device.h>

static const struct class probe_class = { .name = "probe" };

static int __used probe(void)
{
	return class_register(&probe_class);
}
