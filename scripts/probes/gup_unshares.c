// SPDX-License-Identifier: GPL-2.0-only
/*
 * Pinning for reading unshares copy-on-write pages (6.2). No name came with it;
 * these moved to another header in the next release.
 */
#include <linux/mm_types.h>

static unsigned int __used probe = FOLL_WRITE | FOLL_LONGTERM;
