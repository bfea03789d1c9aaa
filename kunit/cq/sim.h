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

/**
 * struct sim_flow - a CQ, and the completions that arrive at it
 * @cqe: wr_cqe of all these completions
 * @sim: the simulation
 * @cq: the CQ
 * @flood: the CQ always has completions
 * @gap: mean time between arrivals in ns, unless @flood
 * @burst: largest number of completions that arrive at once
 * @next: virtual time of the next arrival, U64_MAX if there is none
 * @rng: state of the random number generator
 * @arrived: completions that have arrived
 * @served: completions handled before &sim.end
 * @done: completions handled
 * @delay: for each completion, the time from its arrival to its done(), in ns
 * @max: number of entries that @delay has room for
 */
struct sim_flow {
	struct ib_cqe cqe;
	struct sim *sim;
	struct ib_cq *cq;
	bool flood;
	u32 gap;
	u32 burst;
	u64 next;
	u32 rng;
	u32 arrived;
	u32 served;
	u32 done;
	u32 *delay;
	u32 max;
};

/**
 * struct sim - a run of the simulation
 * @m: the device
 * @ctx: polling context of the CQs, which all have completion vector 0
 * @now: the virtual clock, in ns; advanced by the context that polls, and by the case
 *	while all CQs are armed
 * @end: virtual time at which arrivals end
 * @wake_ns: SIM_WAKE_NS, unless the case changes it
 * @done_ns: SIM_DONE_NS, unless the case changes it
 * @seed: seed of the random numbers
 * @flow: the flows
 * @flows: number of flows
 * @idle: completed when all CQs are armed
 * @inside: calls of done() that are running
 * @concurrent: calls of done() that began while another one was running
 * @overruns: arrivals at a full CQ
 */
struct sim {
	struct mock *m;
	enum ib_poll_context ctx;
	u64 now;
	u64 end;
	u32 wake_ns;
	u32 done_ns;
	u32 seed;
	struct sim_flow flow[SIM_FLOWS];
	int flows;
	struct completion idle;
	atomic_t inside;
	int concurrent;
	int overruns;
};

struct sim *sim_new(struct kunit *test, enum ib_poll_context ctx, u64 end, u32 seed);
struct sim_flow *sim_flood(struct sim *s);
struct sim_flow *sim_light(struct sim *s, u32 gap, u32 burst);
void sim_open(struct kunit *test, struct sim *s);
void sim_run(struct kunit *test, struct sim *s);
u32 sim_percentile(struct sim_flow *f, unsigned int percent);
u32 sim_jain(struct sim_flow *flows, int n);

#endif
