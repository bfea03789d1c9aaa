/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Declarations shared by the files of kverbs_peerbench.
 */
#ifndef PEERBENCH_H
#define PEERBENCH_H

#include <linux/completion.h>
#include <linux/sizes.h>
#include <linux/types.h>

struct ib_mr;
struct ib_pd;
struct seq_file;

/* Sizes of registrations in bytes. */
#define BENCH_SMALL	SZ_64K
#define BENCH_MIDDLE	SZ_2M
#define BENCH_LARGE	SZ_1G

/*
 * Addresses of the clients' memory, where no process has memory. Registrations
 * begin at the first address of a client.
 */
#define BENCH_QUICK_ADDR	(1ULL << 44)
#define BENCH_SLOW_ADDR		(1ULL << 45)

/* Functions of a client. */
enum bench_call {
	BENCH_ACQUIRE,
	BENCH_GET_PAGES,
	BENCH_DMA_MAP,
	BENCH_DMA_UNMAP,
	BENCH_PUT_PAGES,
	BENCH_RELEASE,
	BENCH_CALLS
};

/**
 * struct bench_hold - a call to the slow client that is held up
 * @call: the function to hold up; BENCH_CALLS if none, or once a call is held
 * @entered: completed by the held call
 * @leave: lets the call go
 * @in_time: @leave was completed before the call lost patience
 */
struct bench_hold {
	enum bench_call call;
	struct completion entered;
	struct completion leave;
	bool in_time;
};

/* client.c */
extern const char *const bench_call_names[BENCH_CALLS];
extern struct bench_hold bench_hold;

int bench_clients_register(dma_addr_t page);
void bench_clients_unregister(void);
int bench_client_up(u64 size);
void bench_client_down(void);

/* main.c */
struct ib_mr *bench_reg(struct ib_pd *pd, u64 addr, u64 size);

/* run.c */
int bench_cost(struct seq_file *s, struct ib_pd *pd, unsigned int live);
int bench_cpus(struct seq_file *s, struct ib_pd *pd, u32 enough);
int bench_slow(struct seq_file *s, struct ib_pd *pd);

#endif /* PEERBENCH_H */
