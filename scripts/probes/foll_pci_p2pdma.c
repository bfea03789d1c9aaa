// SPDX-License-Identifier: GPL-2.0-only
/* Peer-to-peer memory is pinned only for those who say that they can (6.2). */
#include <linux/mm.h>
#include <linux/mm_types.h>

static unsigned int __used probe = FOLL_PCI_P2PDMA;
