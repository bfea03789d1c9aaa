/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * When to map a dma-buf again after a move, for importers: the core, or the software HCA under
 * mainline's core.
 */
#ifndef KVERBS_REMAP_H
#define KVERBS_REMAP_H

#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/types.h>

/* How often to try that, and the time between two tries: 1 s in all. */
#define KV_REMAP_TRIES	50
#define KV_REMAP_DELAY	msecs_to_jiffies(20)

/*
 * Whether to try again later after @err. Meanwhile the region is paused, and requests for it wait,
 * so there is time until memory becomes free, or a busy exporter becomes ready.
 */
static inline bool kv_remap_later(int err, unsigned int *tries)
{
	if (err != -ENOMEM && err != -EAGAIN && err != -EBUSY && err != -EINTR)
		return false;
	return *tries && (*tries)--;
}

#endif
