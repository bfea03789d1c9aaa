/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations shared by the parts of peer_stress.
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

/* The GPU whose client never invalidates: its memory lasts as long as regions do. */
#define GPU_LASTING	3

enum op {
	OP_ALLOC, OP_FREE, OP_MOVE, OP_EXPORT, OP_TOUCH, OP_SET_PEER,
	OP_REG, OP_DEREG, OP_QUERY, OP_LIST, OP_WRITE, OP_READ, OP_SEND, OP_FADD, OPS
};

/*
 * A client or an HCA goes through these states again and again. If a count is the same
 * before and after an operation and stands for THERE, it was there all the time.
 */
enum weather { THERE, GOING, ABSENT, COMING, WEATHERS };

/**
 * struct shared - data shared by all processes
 * @ops: operations done by all
 * @over: the test is over
 * @failed: a process has found an error
 * @why: its message
 * @gpu: number of state changes of each client; modulo WEATHERS its state
 * @hca: the same for each HCA
 * @good: operations that succeeded
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
