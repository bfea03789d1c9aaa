/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Shared by the tests of peer memory: memory of fake GPUs, its registration, and operations
 * that move data. A failure of something that a test relies on ends the case.
 */
#ifndef KVERBS_PEER_CALL_H
#define KVERBS_PEER_CALL_H

#include <kverbs/fake_gpu.h>

#include "ca_call.h"
#include "chance.h"

#define GPU_PAGE	65536
#define PEERS_DIR	"/sys/kernel/mm/memory_peers/"
#define GPU_DEBUG	"/sys/kernel/debug/kverbs_fake_gpu/"
#define MOVE_RUN	"/sys/kernel/debug/kverbs_peer_move/run"

/* --- memory ------------------------------------------------------------------ */

/**
 * struct mem - memory of a GPU, mapped
 * @gpu: file of the GPU
 * @handle: handle for the GPU
 * @at: address where it is mapped
 * @size: its size in bytes
 */
struct mem {
	int gpu;
	uint32_t handle;
	char *at;
	size_t size;
};

int gpu_open(unsigned int number);
/* Where memory can be mapped: addresses are multiples of the GPU's pages, as its own are. */
void *gpu_place(size_t size);
long gpu_try_alloc(int gpu, size_t size, struct mem *mem);
struct mem gpu_alloc(int gpu, size_t size);
long gpu_free(const struct mem *mem);
long gpu_move(const struct mem *mem);
int gpu_export(const struct mem *mem);
uint64_t gpu_used(int gpu);
uint64_t gpu_unused(int gpu);
void gpu_set(unsigned int number, const char *file, const char *value);

/* --- channel adapters ---------------------------------------------------------- */

/**
 * struct ca - an open channel adapter
 * @fd: its file
 * @handle: the handle
 * @pd: a PD
 */
struct ca {
	int fd;
	uint64_t handle;
	uint64_t pd;
};

/**
 * struct region - memory that was registered
 * @ca: the channel adapter
 * @mr: its number
 * @at: address of its first byte, also for the HCA
 * @attr: answer of the registration
 */
struct region {
	const struct ca *ca;
	uint64_t mr;
	uint64_t at;
	struct kverbs_ca_mr_attr attr;
};

#define ACCESS_ALL							\
	(KVERBS_CA_ACCESS_LOCAL_WRITE | KVERBS_CA_ACCESS_REMOTE_WRITE |	\
	 KVERBS_CA_ACCESS_REMOTE_READ | KVERBS_CA_ACCESS_REMOTE_ATOMIC)

struct ca ca_make(const char *device);
void peer_fill(struct kverbs_ca_reg_mr *reg, const struct ca *ca, void *at,
	       size_t size);
long peer_reg(const struct ca *ca, struct kverbs_ca_reg_mr *reg,
	      struct region *region);
long peer_reg_path(const struct ca *ca, void *at, size_t size,
		   enum kverbs_ca_path path, struct region *region);
struct region must_reg_all(const struct ca *ca, void *at, size_t size);
long region_query(const struct region *region, struct kverbs_ca_mr_attr *attr);
bool region_revoked(const struct region *region);
long region_dereg(const struct region *region);
long peer_set(const struct ca *ca, const char *name, const void *data);

/* --- moving data ------------------------------------------------------------------ */

/* values of enum ib_wc_status that are of interest here */
enum {
	WC_LOC_PROT_ERR	= 4,
	WC_REM_ACCESS_ERR = 10,
	WC_REM_OP_ERR	= 11,
};

struct moved {
	int send;
	int recv;
	unsigned int done;
};

int mover_open(const struct ca *a, const struct ca *b);
long mover_join(int mover, unsigned int side, const struct ca *ca);
struct moved mover_result(int mover);

/**
 * struct move - an operation that moves data
 * @op: "send", "write", "read", "cas" or "fadd"
 * @side: the side that performs it
 * @own: its own memory
 * @own_at: offset in @own, in bytes
 * @other: the other side's memory
 * @other_at: offset in @other, in bytes
 * @len: number of bytes
 * @count: how often; 0 means once
 * @a: compare or add
 * @b: swap
 */
struct move {
	const char *op;
	unsigned int side;
	const struct region *own;
	size_t own_at;
	const struct region *other;
	size_t other_at;
	uint32_t len;
	uint32_t count;
	uint64_t a;
	uint64_t b;
};

long mover_do(int mover, const struct move *move);
void must_move(int mover, const struct move *move);

/* --- random operations --------------------------------------------------------------- */

/*
 * Reads [--operations N] [--seed S] into variables that hold the defaults; ends the program
 * for any other argument. Returns a state for chance_draw().
 */
uint64_t random_options(int argc, char **argv, uint64_t *operations, uint64_t *seed);

/* --- clients' counters ---------------------------------------------------------------- */

long long peer_count(unsigned int gpu, const char *file);

/* --- bytes ------------------------------------------------------------------------------ */

void fill(void *at, size_t len, uint32_t seed);
void expect_filled(const char *file, int line, const void *at, size_t len,
		   uint32_t seed);
void expect_all(const char *file, int line, const void *at, size_t len, int byte);

/* Checks that the bytes are those of fill(), or are all the same. */
#define EXPECT_FILLED(at, len, seed)					\
	expect_filled(__FILE__, __LINE__, at, len, seed)
#define EXPECT_ALL(at, len, byte)	expect_all(__FILE__, __LINE__, at, len, byte)

#endif /* KVERBS_PEER_CALL_H */
