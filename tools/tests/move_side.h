/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Both sides of operations that move data, with a model of what must be in their memory;
 * and operations that go on until something happens to it. For tests of whatever kind of
 * memory. Whatever cannot fail in a test ends the case when it does.
 */
#ifndef KVERBS_MOVE_SIDE_H
#define KVERBS_MOVE_SIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "peer_call.h"

/**
 * struct side_range - the part of a side's memory that is registered
 * @size: of the memory, bytes
 * @before: bytes before the part
 * @length: bytes of the part
 */
struct side_range {
	size_t size;
	size_t before;
	size_t length;
};

/**
 * struct side - memory of one side, and what must be in it
 * @at: all of the memory, of which a part is registered
 * @mem: the GPU's, if it is such
 * @model: what must be in it
 * @range: which part
 * @region: the part
 */
struct side {
	char *at;
	struct mem mem;
	char *model;
	const struct side_range *range;
	struct region region;
};

/* @at: what is mapped for it; @path: where a registration must find it. */
void side_init(struct side *side, const struct ca *ca, char *at,
	       const struct side_range *range, uint32_t seed, enum kverbs_ca_path path);
/* Each byte is as in the model. */
void side_expect(const struct side *side, const char *op);
void side_drop(struct side *side);

bool is_atomic(const char *op);
/* The operation once for each length, from @own's HCA, and what it must have done. */
void side_move(const char *op, const struct ca *ca, const struct ca *peer, struct side *own,
	       struct side *other, const uint32_t *lens, unsigned int count);

/**
 * struct traffic - the same operation again and again, by a thread
 * @rounds: how often it was done
 * @stop: once more, and no more
 * @mover: where
 * @move: what
 * @thread: the thread
 * @ret: how it ended
 */
struct traffic {
	_Atomic unsigned int rounds;
	_Atomic bool stop;
	int mover;
	struct move move;
	pthread_t thread;
	long ret;
};

/* Returns when it runs. */
void traffic_start(struct traffic *t);
long traffic_end(struct traffic *t);

#endif /* KVERBS_MOVE_SIDE_H */
