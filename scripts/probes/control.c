// SPDX-License-Identifier: GPL-2.0-only
/* Compiles on every kernel: shows that compiling works at all. */
#include <linux/module.h>
#include <linux/device.h>
