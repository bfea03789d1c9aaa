// SPDX-License-Identifier: GPL-2.0-only
/*
 * The measurements. One runs at a time, with the device held. Each region is made and freed
 * by one thread.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#include "../two_cpus.h"
#include "peerbench.h"

/* --- what regions cost ----------------------------------------------------------- */

#define COST_MAX_BATCH	8U

/**
 * struct bench_cost - nanoseconds for each region
 * @up: time to register it
 * @down: time to deregister it
 */
struct bench_cost {
	u64 up;
	u64 down;
};

/*
 * Batches are small enough that among many of them, the allocator has everything at hand for
 * at least one. This does not matter for large regions, which take much memory.
 */
static const struct {
	u64 size;
	u32 batch;
	u32 batches;
} cost_sizes[] = {
	{ BENCH_SMALL, COST_MAX_BATCH, 256 },
	{ BENCH_MIDDLE, COST_MAX_BATCH, 256 },
	{ BENCH_LARGE, 4, 8 },
};

static void cost_best(struct bench_cost *best, u64 start, u64 middle, u64 end, u32 nr)
{
	best->up = min(best->up, div_u64(middle - start, nr));
	best->down = min(best->down, div_u64(end - middle, nr));
}

static int cost_batch(struct ib_pd *pd, u64 size, u32 nr, struct bench_cost *best)
{
	struct ib_mr *mrs[COST_MAX_BATCH];
	u64 start, middle;
	u32 made = 0, i;
	int ret = 0;

	start = ktime_get_ns();
	for (; made < nr; made++) {
		mrs[made] = bench_reg(pd, BENCH_QUICK_ADDR, size);
		if (IS_ERR(mrs[made]))
			break;
	}
	middle = ktime_get_ns();
	for (i = 0; i < made; i++)
		ret = ib_dereg_mr(mrs[i]) ? : ret;
	if (!ret && made == nr)
		cost_best(best, start, middle, ktime_get_ns(), nr);
	cond_resched();
	return made < nr ? PTR_ERR(mrs[made]) : ret;
}

/* Measures only the client's functions, called in the same way. */
static int cost_client_batch(u64 size, struct bench_cost *best)
{
	u64 start, middle;
	u32 i;

	start = ktime_get_ns();
	for (i = 0; i < COST_MAX_BATCH; i++) {
		if (bench_client_up(size))
			return -EIO;
	}
	middle = ktime_get_ns();
	for (i = 0; i < COST_MAX_BATCH; i++)
		bench_client_down();
	cost_best(best, start, middle, ktime_get_ns(), COST_MAX_BATCH);
	return 0;
}

static int cost_size(struct ib_pd *pd, int which, struct bench_cost *all,
		     struct bench_cost *client)
{
	u64 size = cost_sizes[which].size;
	u32 i;
	int ret = 0;

	*all = (struct bench_cost) { .up = U64_MAX, .down = U64_MAX };
	*client = *all;
	for (i = 0; !ret && i < cost_sizes[which].batches; i++)
		ret = cost_batch(pd, size, cost_sizes[which].batch, all) ? :
		      cost_client_batch(size, client);
	return ret;
}

/* Returns 0, or an error of ib_reg_mem() or ib_dereg_mr(). */
int bench_cost(struct seq_file *s, struct ib_pd *pd, unsigned int live)
{
	struct bench_cost all, client;
	int i, ret = 0;

	for (i = 0; i < ARRAY_SIZE(cost_sizes); i++) {
		ret = cost_size(pd, i, &all, &client);
		if (ret)
			return ret;
		seq_printf(s, "live=%u bytes=%llu pages=%llu reg_ns=%llu dereg_ns=%llu client_reg_ns=%llu client_dereg_ns=%llu\n",
			   live, cost_sizes[i].size, cost_sizes[i].size / SZ_64K,
			   all.up, all.down, client.up, client.down);
	}
	return 0;
}

/* --- on two CPUs -------------------------------------------------------------------- */

/* A batch is short enough that the machine's other work misses some batches. */
#define CPUS_REGIONS	16U
#define CPUS_MIN_BATCHES	64
#define CPUS_LONG_BATCHES	1000
#define CPUS_MAX_BATCHES	4000
/* Nearly enough: per cent of the gain of threads that share nothing. */
#define CPUS_NEARLY	95

static int bench_make_and_free(struct ib_pd *pd, u64 addr)
{
	struct ib_mr *mr = bench_reg(pd, addr, BENCH_SMALL);

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

static int cpus_turn(void *pd)
{
	return bench_make_and_free(pd, BENCH_QUICK_ADDR);
}

/* Takes about as long as a region does. */
static int cpus_turn_apart(void *pd)
{
	return two_cpus_apart(TWO_CPUS_SLOTS);
}

/*
 * Measures until the gain is @enough per cent, or, after many batches, nearly the gain of
 * threads that share nothing. Returns 0; -ENXIO with one CPU, also if there were two at first;
 * or an error of two_cpus_batches(), as bench_cost() does.
 */
int bench_cpus(struct seq_file *s, struct ib_pd *pd, u32 enough)
{
	struct two_cpus work = {
		.turn = cpus_turn, .arg = pd, .turns = CPUS_REGIONS, .each = 1,
		.ns = { U64_MAX, U64_MAX },
	};
	struct two_cpus apart = work;
	u64 gain = 0, most = 0;
	int i, ret = 0;

	if (num_online_cpus() < 2)
		return -ENXIO;
	apart.turn = cpus_turn_apart;
	for (i = 0; !ret && i < CPUS_MAX_BATCHES; i++) {
		ret = two_cpus_batches(&work) ?: two_cpus_batches(&apart);
		gain = two_cpus_gain(&work);
		most = two_cpus_gain(&apart);
		if (i >= CPUS_MIN_BATCHES && gain >= enough)
			break;
		if (i >= CPUS_LONG_BATCHES && gain * 100 >= most * CPUS_NEARLY)
			break;
	}
	if (!ret)
		seq_printf(s, "batches=%d one_ns=%llu two_ns=%llu apart_ns=%llu apart_gain=%llu percent=%llu\n",
			   i, work.ns[0], work.ns[1], apart.ns[0], most, gain);
	return ret;
}

/* --- beside a slow client -------------------------------------------------------------- */

/**
 * struct bench_held - a region of the slow client's memory, for which one call is held up
 *	until other regions have been made and freed
 * @work: makes and frees the region
 * @pd: its protection domain
 * @ret: error
 */
struct bench_held {
	struct work_struct work;
	struct ib_pd *pd;
	int ret;
};

static void slow_make_and_free(struct work_struct *work)
{
	struct bench_held *held = container_of(work, struct bench_held, work);

	held->ret = bench_make_and_free(held->pd, BENCH_SLOW_ADDR);
	/* In case the call was never reached. */
	complete(&bench_hold.entered);
}

static void slow_hold(struct seq_file *s, struct ib_pd *pd, enum bench_call call)
{
	struct bench_held held = { .pd = pd };
	int quick, same;

	init_completion(&bench_hold.entered);
	init_completion(&bench_hold.leave);
	bench_hold.in_time = false;
	bench_hold.call = call;

	INIT_WORK_ONSTACK(&held.work, slow_make_and_free);
	queue_work(system_unbound_wq, &held.work);
	wait_for_completion(&bench_hold.entered);
	quick = bench_make_and_free(pd, BENCH_QUICK_ADDR);
	same = bench_make_and_free(pd, BENCH_SLOW_ADDR);
	complete(&bench_hold.leave);
	flush_work(&held.work);
	destroy_work_on_stack(&held.work);
	bench_hold.call = BENCH_CALLS;
	seq_printf(s, "call=%s quick=%d same=%d held=%d waited=%d\n", bench_call_names[call],
		   quick, same, held.ret, !bench_hold.in_time);
}

int bench_slow(struct seq_file *s, struct ib_pd *pd)
{
	enum bench_call call;

	for (call = 0; call < BENCH_CALLS; call++)
		slow_hold(s, pd, call);
	return 0;
}
