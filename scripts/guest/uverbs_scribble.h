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

#include "chance.h"
#include "uverbs.h"

#define MAX_RINGS	64
/* The key of all memory, which only the kernel may use. */
#define KERNEL_LKEY	0xd3

/* What is mapped. Whoever changes it sees to it that nobody scribbles meanwhile. */
static struct {
	unsigned char *start;
	size_t bytes;
} rings[MAX_RINGS];
static int nr_rings;

/* Memory that requests may name, and its key. */
static uint64_t addr;
static uint32_t lkey;

/* A value that may mean something to the kernel. */
static inline uint32_t value(uint64_t *state)
{
	switch (chance_below(state, 8)) {
	case 0:
		return lkey;
	case 1:
		return addr;
	case 2:
		return chance_draw(state);
	case 3:
		return chance_below(state, 64);
	case 4:
		return KERNEL_LKEY;
	default:
		return chance_edge(state);
	}
}

/* A request that might be one, but for what others write into it. */
static inline void scribble_request(unsigned char *ring, size_t bytes, uint64_t *state)
{
	size_t room = bytes - sizeof(struct rxe_queue_buf);
	struct rxe_send_wqe *wqe;

	if (room < 512)
		return;
	wqe = (void *)(ring + sizeof(struct rxe_queue_buf) + chance_below(state, room / 512) * 512);
	wqe->wr.opcode = chance_below(state, 16);
	wqe->wr.send_flags = chance_below(state, 16);
	wqe->wr.wr.rdma.remote_addr = addr;
	wqe->wr.wr.rdma.rkey = chance_one_in(state, 4) ? KERNEL_LKEY : lkey;
	wqe->dma.length = chance_one_in(state, 2) ? 64 : value(state);
	wqe->dma.num_sge = chance_one_in(state, 4) ? value(state) : 1;
	wqe->dma.sge[0].addr = chance_one_in(state, 4) ? 0x1000000 : addr;
	wqe->dma.sge[0].length = chance_one_in(state, 4) ? value(state) : 64;
	wqe->dma.sge[0].lkey = chance_one_in(state, 4) ? KERNEL_LKEY : lkey;
}

static inline void scribble(uint64_t *state)
{
	int i = chance_below(state, nr_rings);
	size_t nr = rings[i].bytes / 4;
	atomic_uint *words = (atomic_uint *)rings[i].start;

	switch (chance_below(state, 4)) {
	case 0: /* the producer's position, the consumer's, or anything else of the header */
		words[chance_one_in(state, 2) ? 32 : 64] =
			chance_one_in(state, 2) ? chance_below(state, 32) : value(state);
		break;
	case 1:
		words[chance_below(state, 96)] = value(state);
		break;
	case 2:
		words[chance_below(state, nr)] = value(state);
		break;
	default:
		scribble_request(rings[i].start, rings[i].bytes, state);
	}
}

#endif
