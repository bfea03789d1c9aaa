/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fuzzer of channel-adapter requests: declarations that its files share.
 *
 *	ca_fuzz.c		makes requests, and causes concurrent events
 *	ca_fuzz_draw.c		draws the requests
 *	ca_fuzz_look.c		checks the answers
 */
#ifndef KVERBS_CA_FUZZ_H
#define KVERBS_CA_FUZZ_H

#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>

#include "ca_call.h"
#include "chance.h"

#define BATCH		16	/* requests in a ring */
#define OPS		(KVERBS_CA_SET_PEER + 1)
#define PATHS		(KVERBS_CA_PATH_P2P + 1)
#define ERRNOS		256

#define FILES		8
#define HANDLES		8	/* handles remembered per file */
#define OBJECTS		8	/* objects remembered per handle */
#define FDS		8	/* descriptors to try as dma-bufs */

#define PAGE		4096
#define ARENA		(4 * PAGE)	/* private room for an answer */
#define COMMON		(8 * PAGE)	/* rewritten all the time */
#define SPACE		256		/* for a request and the bytes behind it */
#define DMABUF_SIZE	(16 * PAGE)

struct handle {
	uint64_t id;
	uint64_t pds[OBJECTS];
	uint64_t mrs[OBJECTS];
};

/*
 * Threads read and write these without synchronisation: stale values are just as
 * good.
 */
struct file {
	_Atomic int fd;
	struct handle handles[HANDLES];
};

/* Counters of all threads and forked processes. */
struct shared {
	_Atomic uint64_t requests;
	_Atomic uint64_t answers;
	_Atomic uint64_t good[OPS];
	_Atomic uint64_t paths[PATHS];
	_Atomic uint64_t errors[ERRNOS];
	_Atomic int failed;
};

extern struct shared *shared;
extern uint64_t seed;
extern struct file files[FILES];
extern int fds[FDS];

/*
 * Memory that is constantly rewritten; that does not exist; that is read-only;
 * to register.
 */
extern char *common, *nothing, *constant, *memory;

/**
 * struct attempt - a request
 * @op: operation
 * @file: file it goes to
 * @fd: its descriptor at that time
 * @handle: index of the handle with which it was drawn
 * @request: address passed to the kernel
 * @r: the request as drawn
 * @space: usual place of @request; two pages, followed by an unmapped one
 * @reg: input of REG_MR; likewise
 * @peer: input of SET_PEER
 * @room: private memory, followed by an unmapped page
 * @watched: nothing else writes where the answer goes
 * @from: first byte that has the pattern
 * @to: end of the pattern
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
	struct kverbs_ca_peer *peer;
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

uint64_t draw(struct thread *t);
uint32_t below(struct thread *t, uint32_t n);
bool one_in(struct thread *t, uint32_t n);
uint64_t strange(struct thread *t);
uint64_t draw_address(struct thread *t, const struct attempt *a);
void draw_attempt(struct thread *t, struct attempt *a);

void wrong(const struct thread *t, const struct attempt *a, long ret,
	   const char *what, uint64_t value);
void look_at_answer(struct thread *t, const struct attempt *a, long ret);

#endif /* KVERBS_CA_FUZZ_H */
