/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mapping a dma-buf again after a move, for whoever imports it: the core, or the emulated HCA
 * under mainline's.
 */
#ifndef KVERBS_REMAP_H
#define KVERBS_REMAP_H

#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/types.h>

/* How often to try it, and the time between two tries: 1 s in all. */
#define KV_REMAP_TRIES	50
#define KV_REMAP_DELAY	msecs_to_jiffies(20)

/*
 * Whether to come back after @err. The region is paused, and those who use it try again: so there
 * is time for memory to become free, or for an exporter that is busy.
 */
static inline bool kv_remap_later(int err, unsigned int *tries)
{
	if (err != -ENOMEM && err != -EAGAIN && err != -EBUSY && err != -EINTR)
		return false;
	return *tries && (*tries)--;
}

#endif
