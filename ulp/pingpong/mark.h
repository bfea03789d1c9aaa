/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Marks for scripts/bench profile, which counts what the CPU executes between them: its
 * plugin for QEMU knows them by their bytes. Otherwise they are no operation.
 */
#ifndef KVERBS_PINGPONG_MARK_H
#define KVERBS_PINGPONG_MARK_H

#include <linux/compiler.h>
#include <linux/types.h>

#define PP_MARK_BEGIN	0x6b76b001
#define PP_MARK_END	0x6b76b002

static __always_inline void pp_mark(const u32 which)
{
#ifdef CONFIG_X86_64
	/* An address that nobody looks at. */
	asm volatile("nopl %c0(%%rax)" : : "i" (which) : "memory");
#endif
}

#endif
