/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device whose completions arrive by a virtual clock, to measure the scheduler of
 * completion queues. The scheduler drives the clock: each poll, each done() and each
 * request for a notification advances it by a fixed time. So the same seed gives the same
 * numbers on any machine.
 */
#ifndef KVT_CQ_SIM_H
#define KVT_CQ_SIM_H

#include <linux/completion.h>
#include <rdma/ib_verbs.h>
#include <kunit/test.h>

#define SIM_FLOWS	8

/* Costs, in nanoseconds of the virtual clock. */
#define SIM_WAKE_NS	4000	/* from an arrival at idle CQs to the first poll */
#define SIM_POLL_NS	100
#define SIM_ARM_NS	200
#define SIM_DONE_NS	500

/* Size of each CQ; a flooded CQ is always filled up to it. */
#define SIM_DEPTH	256

struct sim;

/* A CQ, and the completions that arrive at it. */
struct sim_flow {
	struct ib_cqe cqe;	/* wr_cqe of all these completions */
	struct sim *sim;	/* the simulation */
	struct ib_cq *cq;	/* the CQ */
	bool flood;		/* the CQ always has completions */
	u32 gap;		/* mean time between arrivals in ns, unless @flood */
	u32 burst;		/* largest number of completions that arrive at once */
	u64 next;		/* virtual time of the next arrival, U64_MAX if there is none */
	u32 rng;		/* state of the random number generator */
	u32 arrived;		/* completions that have arrived */
	u32 served;		/* completions handled before &sim.end */
	u32 done;		/* completions handled */
	u32 *delay;	/* for each completion, the time from its arrival to its done(), in ns */
	u32 max;		/* number of entries that @delay has room for */
};

/* A run of the simulation. */
struct sim {
	struct mock *m;		/* the device */
	/* Polling context of the CQs, which all have completion vector 0. */
	enum ib_poll_context ctx;
	/*
	 * The virtual clock, in ns; advanced by the context that polls, and by the case while all
	 * CQs are armed.
	 */
	u64 now;
	u64 end;		/* virtual time at which arrivals end */
	u32 wake_ns;		/* SIM_WAKE_NS, unless the case changes it */
	u32 done_ns;		/* SIM_DONE_NS, unless the case changes it */
	u32 seed;		/* seed of the random numbers */
	struct sim_flow flow[SIM_FLOWS];	/* the flows */
	int flows;		/* number of flows */
	struct completion idle;	/* completed when all CQs are armed */
	atomic_t inside;	/* calls of done() that are running */
	int concurrent;		/* calls of done() that began while another one was running */
	int overruns;		/* arrivals at a full CQ */
};

struct sim *sim_new(struct kunit *test, enum ib_poll_context ctx, u64 end, u32 seed);
struct sim_flow *sim_flood(struct sim *s);
struct sim_flow *sim_light(struct sim *s, u32 gap, u32 burst);
void sim_open(struct kunit *test, struct sim *s);
void sim_run(struct kunit *test, struct sim *s);
u32 sim_percentile(struct sim_flow *f, unsigned int percent);
u32 sim_jain(struct sim_flow *flows, int n);

#endif
