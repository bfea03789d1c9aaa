// SPDX-License-Identifier: GPL-2.0-only
/*
 * Replaces peer.c under mainline's core, which has no registry of peer memory: there, RDMA regions
 * can get an object's memory only by importing the dma-buf.
 */
#include "fake_gpu.h"

/* No range is found as peer memory. */
int fake_gpu_peer_acquire(struct fake_gpu *gpu, unsigned long addr, size_t size, void **context)
{
	return 0;
}

void fake_gpu_peer_invalidate(struct fake_gpu_mem *mem)
{
	WARN_ON_ONCE(!list_empty(&mem->regions));
}

bool fake_gpu_peer_client(struct fake_gpu *gpu)
{
	return false;
}

int fake_gpu_peer_register(struct fake_gpu *gpu)
{
	return 0;
}

void fake_gpu_peer_unregister(struct fake_gpu *gpu)
{
}
