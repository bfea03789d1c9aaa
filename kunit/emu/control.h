/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the suites of one module share that make things go wrong.
 */
#ifndef KVT_EMU_CONTROL_H
#define KVT_EMU_CONTROL_H

#include "emu/rig.h"

/*
 * Runs a command: debugfs files are written from user memory. Returns 0, an errno, or the
 * shell's wait status: its exit code shifted left by 8.
 */
__printf(1, 2) int control_shell(const char *fmt, ...);
/* Replaces the queue pairs by some of a type whose failures the peer does not see. */
void control_make_unreliable(struct kunit *test, struct rig *r);

#endif
