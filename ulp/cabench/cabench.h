/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * What kverbs_cabench and who calls it from user space agree on.
 */
#ifndef KVERBS_CABENCH_H
#define KVERBS_CABENCH_H

#include <linux/ioctl.h>

#define CABENCH_NODE		"kverbs_cabench"

/* The most that the number of an ioctl has room for. */
#define CABENCH_MAX_COPY	((1 << _IOC_SIZEBITS) - 1)

/* Copies so many bytes to the argument, and does nothing else. */
#define CABENCH_COPY(bytes)	_IOC(_IOC_READ, 0xCA, 1, bytes)

#endif /* KVERBS_CABENCH_H */
