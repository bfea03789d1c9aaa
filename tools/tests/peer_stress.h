/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of peer_stress share.
 *
 * peer_stress.c  the process that starts, kills and waits for workers, and takes
 *                clients and HCAs away from them
 * peer_worker.c  a worker
 */
#ifndef KVERBS_PEER_STRESS_H
#define KVERBS_PEER_STRESS_H

#include <stdatomic.h>

#include "peer_call.h"

#define WORKERS		4
#define GPUS		4
#define HCAS		2

/* The GPU whose client never invalidates: what it has lasts as long as regions do. */
#define GPU_LASTING	3

enum op {
	OP_ALLOC, OP_FREE, OP_MOVE, OP_EXPORT, OP_TOUCH, OP_SET_PEER,
	OP_REG, OP_DEREG, OP_QUERY, OP_LIST, OP_WRITE, OP_READ, OP_SEND, OP_FADD, OPS
};

/*
 * A client or an HCA goes through these, again and again. Who looks before and after an
 * operation, and finds the same THERE, knows that it was there all the time.
 */
enum weather { THERE, GOING, ABSENT, COMING, WEATHERS };

/**
 * struct shared - what all processes see
 * @ops: operations done, by all
 * @over: enough
 * @failed: somebody was not content
 * @why: who, and with what
 * @gpu: how often each client has changed; modulo WEATHERS what it is
 * @hca: likewise
 * @good: operations that went well
 * @lost: operations that failed, as they may or must
 * @kills: workers that were killed
 */
struct shared {
	_Atomic uint64_t ops;
	_Atomic bool over;
	_Atomic bool failed;
	char why[512];
	_Atomic uint64_t gpu[GPUS];
	_Atomic uint64_t hca[HCAS];
	_Atomic uint64_t good[OPS];
	_Atomic uint64_t lost[OPS];
	_Atomic uint64_t kills;
};

extern struct shared *shared;
extern const char *const hca_names[HCAS];
extern uint64_t seed;

void complain(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void work(unsigned int number, unsigned int life);

#endif /* KVERBS_PEER_STRESS_H */
