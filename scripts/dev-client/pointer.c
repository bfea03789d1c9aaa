// SPDX-License-Identifier: GPL-2.0-only
/*
 * The header as seen by drivers from the time when the context was a pointer.
 */
#define PEER_MEM_VOID_CORE_CONTEXT
#include <rdma/peer_mem.h>

static int get_pages(unsigned long addr, size_t size, int write, int force,
		     struct sg_table *sg_head, void *client_context, void *core_context)
{
	return -EINVAL;
}

static const struct peer_memory_client __maybe_unused client = {
	.get_pages = get_pages,
};
