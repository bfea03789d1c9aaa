/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Both sides of operations that move data, with a model of what must be in their memory;
 * and operations that go on until something happens to it. For tests of any kind of
 * memory. A failure of something that a test relies on ends the case.
 */
#ifndef KVERBS_MOVE_SIDE_H
#define KVERBS_MOVE_SIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "peer_call.h"

/**
 * struct side_range - the part of a side's memory that is registered
 * @size: size of the memory in bytes
 * @before: bytes before the part
 * @length: size of the part in bytes
 */
struct side_range {
	size_t size;
	size_t before;
	size_t length;
};

/**
 * struct side - memory of one side, and its expected contents
 * @at: all of the memory, of which a part is registered
 * @mem: the GPU's memory, if it is that
 * @model: expected contents
 * @range: the part that is registered
 * @region: the region of that part
 */
struct side {
	char *at;
	struct mem mem;
	char *model;
	const struct side_range *range;
	struct region region;
};

/* @at: its mapping; @path: the path on which a registration must find it. */
void side_init(struct side *side, const struct ca *ca, char *at,
	       const struct side_range *range, uint32_t seed, enum kverbs_ca_path path);
/* Checks that each byte is as in the model. */
void side_expect(const struct side *side, const char *op);
void side_drop(struct side *side);

bool is_atomic(const char *op);

/**
 * struct side_kinds - the kinds of memory that a test has, and the HCAs
 * @ca: HCA that performs the operations
 * @peer: another one
 * @make: makes a side of the HCA with memory of a kind
 * @count: number of kinds
 * @lens: lengths of operations
 * @nr_lens: number of lengths
 */
struct side_kinds {
	const struct ca *ca;
	const struct ca *peer;
	void (*make)(struct side *side, const struct ca *ca, unsigned int kind, uint32_t seed);
	unsigned int count;
	const uint32_t *lens;
	unsigned int nr_lens;
};

/* Performs the operation between each two kinds of memory, with one HCA and with two. */
void side_move_all(const char *op, const struct side_kinds *kinds);

/**
 * struct traffic - the same operation again and again, by a thread
 * @rounds: number of rounds done
 * @stop: end after the next round
 * @mover: where to run it
 * @move: the operation
 * @thread: the thread
 * @ret: result of the last round
 */
struct traffic {
	_Atomic unsigned int rounds;
	_Atomic bool stop;
	int mover;
	struct move move;
	pthread_t thread;
	long ret;
};

/* Returns once the traffic runs. */
void traffic_start(struct traffic *t);
long traffic_end(struct traffic *t);

#endif /* KVERBS_MOVE_SIDE_H */
