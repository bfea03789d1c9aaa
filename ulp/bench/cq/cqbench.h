/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_cqbench: declarations that its files share.
 *
 * main.c   module, parameters, debugfs, ib_client
 * run.c    one run from start to result; its CQs and queue pairs
 * burst.c  mode=burst: what a completion costs
 * load.c   mode=load: rate and delay under load
 * post.c   mode=post: what a post costs
 */
#ifndef KVERBS_CQBENCH_H
#define KVERBS_CQBENCH_H

#include <linux/completion.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#define CQB_STR		IB_DEVICE_NAME_MAX

/**
 * struct cqb_params - parameters of a run, as the user gave them
 * @device: name of the device, empty for the first one
 * @mode: name of the measurement
 * @ctx: polling context by name
 * @port: port of @device, from 1
 * @cqs: completion queues, each with a queue pair
 * @count: messages of a burst, or of the run
 * @rounds: number of bursts to measure
 * @window: messages outstanding in all, with @rate 0
 * @rate: messages per second, 0 for as many as the device takes
 * @delay: measure the delay of every message
 * @tick: minimum number of microseconds between the interrupts that post
 * @seed: seed of the arrival times
 * @timeout: seconds after which a run fails
 */
struct cqb_params {
	char device[CQB_STR];
	char mode[16];
	char ctx[16];
	unsigned int port;
	unsigned int cqs;
	unsigned int count;
	unsigned int rounds;
	unsigned int window;
	unsigned int rate;
	unsigned int delay;
	unsigned int tick;
	unsigned int seed;
	unsigned int timeout;
};

/* The values reported for a set of delays. */
enum cqb_rank {
	CQB_P50,
	CQB_P99,
	CQB_P999,
	CQB_MAX,
	CQB_RANKS,
};

/**
 * struct cqb_result - result of a run
 * @done: completions that were measured
 * @ns: nanoseconds of the fastest burst, or from the first post to the last
 *   done()
 * @each_ps: @ns per completion, in picoseconds
 * @wake_ns: shortest time from the notification to the first done()
 * @schedules: notifications that scheduled the polling context
 * @delay_ns: from post to done(), by &enum cqb_rank; 0 if not measured
 * @cqe_ns: from the writing of the completion to done(), if known
 * @stalls: timer interrupts that found a send queue full
 * @err: 0 or the negative errno that ended the run
 */
struct cqb_result {
	u64 done;
	u64 ns;
	u64 each_ps;
	u64 wake_ns;
	u64 schedules;
	u32 delay_ns[CQB_RANKS];
	u32 cqe_ns[CQB_RANKS];
	u64 stalls;
	int err;
};

struct cqb_mode;
struct cqb_run;

/**
 * struct cqb_cq - a completion queue, with the queue pair that fills it
 * @run: the run it belongs to
 * @cq: the queue, whose cq_context this is
 * @qp: connected to itself, so that each message completes in @cq, once
 * @drain: @qp has been connected
 * @posted: messages posted so far; written by the poster
 * @completed: messages done so far; written by done()
 * @handler: the handler that mainline's drivers call to schedule the polling
 *   context
 * @rung: how often they called it
 * @held: do not schedule the polling context yet
 * @pending: schedule it as soon as @held is cleared
 */
struct cqb_cq {
	struct cqb_run *run;
	struct ib_cq *cq;
	struct ib_qp *qp;
	bool drain;
	u32 posted;
	u32 completed;
	ib_comp_handler handler;
	u32 rung;
	bool held;
	bool pending;
};

/**
 * struct cqb_run - a run under way
 * @p: its parameters
 * @mode: the measurement
 * @ctx: polling context
 * @bare: poll with ib_poll_cq(), without the CQ layer
 * @hardirq: post in hard interrupt
 * @depth: messages that a queue pair can have outstanding
 * @recv_depth: receives that it can have outstanding
 * @shared: it takes its receives from an SRQ
 * @dev: the device
 * @pd: protection domain of all queue pairs
 * @srq: SRQ from which all queue pairs take receives, or NULL
 * @cqs: array of @p.cqs
 * @err: 0 or the errno that stopped the run, set once
 * @done: completed when nothing is left to wait for
 * @priv: private data of the mode
 */
struct cqb_run {
	struct cqb_params p;
	const struct cqb_mode *mode;
	enum ib_poll_context ctx;
	bool bare;
	bool hardirq;
	u32 depth;
	u32 recv_depth;
	bool shared;
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_srq *srq;
	struct cqb_cq *cqs;
	int err;
	struct completion done;
	void *priv;
};

/**
 * struct cqb_mode - a kind of measurement
 * @name: its name, as the user gives it
 * @check: prepares a run: checks its parameters, sets depth, recv_depth and
 *	shared. Returns 0 or -ERANGE
 * @measure: measures, once the queue pairs are connected, and fills in the
 *	result. Returns 0 or the errno of the failure
 * @free: frees what @measure left in priv, when no message is in flight
 */
struct cqb_mode {
	const char *name;
	int (*check)(struct cqb_run *run);
	int (*measure)(struct cqb_run *run, struct cqb_result *res);
	void (*free)(struct cqb_run *run);
};

extern const struct cqb_mode cqb_burst_mode;	/* burst.c */
extern const struct cqb_mode cqb_load_mode;	/* load.c */
extern const struct cqb_mode cqb_post_mode;	/* post.c */
extern const struct cqb_mode cqb_recv_mode;
extern const struct cqb_mode cqb_srq_mode;

/* run.c */
int cqb_run_prepare(struct cqb_run *run);
int cqb_run(struct cqb_run *run, struct cqb_result *res);
void cqb_stop(struct cqb_run *run, int err);
int cqb_wait(struct cqb_run *run);
int cqb_range(const char *key, u32 val, u32 low, u32 high);
u64 cqb_schedules(const struct cqb_run *run);

/* A message is an RDMA WRITE of no bytes: there is nothing to copy or check. */
static inline void cqb_wr_init(struct ib_rdma_wr *wr, struct ib_cqe *cqe)
{
	*wr = (struct ib_rdma_wr) {
		.wr.wr_cqe = cqe,
		.wr.opcode = IB_WR_RDMA_WRITE,
		.wr.send_flags = IB_SEND_SIGNALED,
	};
}

#endif
