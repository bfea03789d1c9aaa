/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nonsense, and half-right requests, for what a process has mapped from the device; shared by the
 * hostile programs.
 */
#ifndef UVERBS_SCRIBBLE_H
#define UVERBS_SCRIBBLE_H

#include <rdma/rdma_user_rxe.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "uverbs.h"

#define MAX_RINGS	64

/* What is mapped. Whoever changes it sees to it that nobody scribbles meanwhile. */
static struct {
	unsigned char *start;
	size_t bytes;
} rings[MAX_RINGS];
static int nr_rings;

/* Memory that requests may name, and its key. */
static uint64_t addr;
static uint32_t lkey;

static inline uint32_t draw(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return *state >> 33;
}

/* A value that may mean something to the kernel. */
static inline uint32_t value(uint64_t *state)
{
	static const uint32_t some[] = { 0, 1, 2, 3, 4, 5, 33, 0x20, 0xd3, 255, 4096, 0x7fffffff,
					 0x80000000, 0xfffffff0, 0xffffffff };
	uint32_t n = draw(state);

	return n & 1 ? some[(n >> 1) % ARRAY_SIZE(some)] :
	       n & 2 ? lkey : n & 4 ? (uint32_t)addr : n & 8 ? draw(state) : (n >> 4) & 63;
}

/* A request that might be one, but for what others write into it. */
static inline void scribble_request(unsigned char *ring, size_t bytes, uint64_t *state)
{
	size_t room = bytes - sizeof(struct rxe_queue_buf);
	struct rxe_send_wqe *wqe;

	if (room < 512)
		return;
	wqe = (void *)(ring + sizeof(struct rxe_queue_buf) + draw(state) % (room / 512) * 512);
	wqe->wr.opcode = draw(state) % 16;
	wqe->wr.send_flags = draw(state) % 16;
	wqe->wr.wr.rdma.remote_addr = addr;
	wqe->wr.wr.rdma.rkey = draw(state) & 3 ? lkey : 0xd3;
	wqe->dma.length = draw(state) & 1 ? 64 : value(state);
	wqe->dma.num_sge = draw(state) & 3 ? 1 : value(state);
	wqe->dma.sge[0].addr = draw(state) & 3 ? addr : 0x1000000;
	wqe->dma.sge[0].length = draw(state) & 3 ? 64 : value(state);
	wqe->dma.sge[0].lkey = draw(state) & 3 ? lkey : 0xd3;
}

static inline void scribble(uint64_t *state)
{
	int i = draw(state) % nr_rings;
	size_t nr = rings[i].bytes / 4;
	atomic_uint *words = (atomic_uint *)rings[i].start;

	switch (draw(state) % 4) {
	case 0: /* the producer's position, the consumer's, or anything else of the header */
		words[draw(state) & 1 ? 32 : 64] = draw(state) & 1 ? draw(state) % 32 : value(state);
		break;
	case 1:
		words[draw(state) % 96] = value(state);
		break;
	case 2:
		words[draw(state) % nr] = value(state);
		break;
	default:
		scribble_request(rings[i].start, rings[i].bytes, state);
	}
}

#endif
