/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Checks at build time that fields are on different cache lines, without any tool or debugging
 * information.
 */
#ifndef KVERBS_EMU_APART_H
#define KVERBS_EMU_APART_H

#include <linux/build_bug.h>
#include <linux/cache.h>
#include <linux/kconfig.h>
#include <linux/stddef.h>

/*
 * Fails the build unless @b of @type begins on a later cache line than the one on which @a ends,
 * so that CPUs which write one of them do not slow down those that use the other. A kernel for
 * one CPU does not need that.
 */
#define emu_apart(type, a, b)								\
	static_assert(!IS_ENABLED(CONFIG_SMP) ||					\
		      (offsetofend(type, a) - 1) / SMP_CACHE_BYTES <			\
		      offsetof(type, b) / SMP_CACHE_BYTES)

#endif
