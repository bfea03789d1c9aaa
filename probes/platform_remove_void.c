// SPDX-License-Identifier: GPL-2.0-only
/* platform_driver.remove returns nothing (6.11). */
#include <linux/platform_device.h>

static void remove(struct platform_device *pdev)
{
}

static struct platform_driver __used probe = { .remove = remove };
