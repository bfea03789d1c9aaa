/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fuzzer of channel-adapter requests: what its two files give each other.
 *
 *	ca_fuzz.c		draws requests and makes them
 *	ca_fuzz_look.c		looks at the answers
 */
#ifndef KVERBS_CA_FUZZ_H
#define KVERBS_CA_FUZZ_H

#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>

#include "ca_call.h"

#define BATCH		16	/* requests in a ring */
#define OPS		(KVERBS_CA_LIST + 1)
#define ERRNOS		256

/* What is counted by all, forked processes too. */
struct shared {
	_Atomic uint64_t requests;
	_Atomic uint64_t answers;
	_Atomic uint64_t good[OPS];
	_Atomic uint64_t errors[ERRNOS];
	_Atomic int failed;
};

extern struct shared *shared;
extern uint64_t seed;

/**
 * struct attempt - a request
 * @op: operation
 * @file: file it goes to
 * @fd: its descriptor then
 * @handle: place of the handle it was drawn with
 * @request: where the kernel finds it
 * @r: as drawn
 * @space: where @request is, mostly; two pages, and one behind that is not there
 * @reg: what goes in, of REG_MR; likewise
 * @room: private memory, with a page behind it that is not there
 * @watched: nobody else writes where the answer goes
 * @from: first byte that has the pattern
 * @to: behind the last one
 */
struct attempt {
	unsigned int op;
	unsigned int file;
	int fd;
	unsigned int handle;
	void *request;
	struct kverbs_ca_request r;
	unsigned char *space;
	struct kverbs_ca_reg_mr *reg;
	unsigned char *room;
	bool watched;
	unsigned char *from;
	unsigned char *to;
};

struct thread {
	pthread_t id;
	unsigned int number;
	uint64_t random;
	struct attempt attempts[BATCH];
	struct io_uring ring;
	bool has_ring;
};

void wrong(const struct thread *t, const struct attempt *a, long ret,
	   const char *what, uint64_t value);
void look_at_answer(struct thread *t, const struct attempt *a, long ret);

#endif /* KVERBS_CA_FUZZ_H */
