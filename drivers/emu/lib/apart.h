/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which fields must not be on a cache line with others, checked while building: it needs no
 * tool, and no debugging information.
 */
#ifndef KVERBS_EMU_APART_H
#define KVERBS_EMU_APART_H

#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/kconfig.h>
#include <linux/stddef.h>

/*
 * Fails the build unless @b of @type begins on a later cache line than @a ends. CPUs that
 * write the one do not take it from those that use the other. A kernel for one CPU has no
 * such need.
 */
#define emu_apart(type, a, b)								\
	static_assert(!IS_ENABLED(CONFIG_SMP) ||					\
		      (offsetofend(type, a) - 1) / SMP_CACHE_BYTES <			\
		      offsetof(type, b) / SMP_CACHE_BYTES)

#endif
