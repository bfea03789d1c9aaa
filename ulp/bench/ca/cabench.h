/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * The interface between kverbs_cabench and its callers in user space.
 */
#ifndef KVERBS_CABENCH_H
#define KVERBS_CABENCH_H

#include <linux/ioctl.h>

#define CABENCH_NODE		"kverbs_cabench"

/* The largest size that an ioctl number can hold. */
#define CABENCH_MAX_COPY	((1 << _IOC_SIZEBITS) - 1)

/* Copies @bytes bytes to the argument, and does nothing else. */
#define CABENCH_COPY(bytes)	_IOC(_IOC_READ, 0xCA, 1, bytes)

#endif /* KVERBS_CABENCH_H */
