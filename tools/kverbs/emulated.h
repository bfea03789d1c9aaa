/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files that emulated devices have in debugfs: what capture and fault read and write.
 */
#ifndef KVERBS_EMULATED_H
#define KVERBS_EMULATED_H

#include "kverbs.h"

#define EMULATED_DIR	"/sys/kernel/debug/kverbs_emu"

/* Return: a descriptor, or -1 with errno; ENOENT also for what cannot be a device's name. */
int open_emulated(const char *device, const char *file, int flags);
/*
 * open_emulated() has failed. Reports it, if that is for want of rights or of any emulated
 * device. Return: whether it did.
 */
bool say_no_emulation(int error);

#endif /* KVERBS_EMULATED_H */
