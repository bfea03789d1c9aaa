/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A device whose completions come by a virtual clock, which the scheduler of
 * completion queues drives: each poll, each done() and each request for a
 * notification takes its time of that clock and of no other. The same seed gives
 * the same numbers on any machine.
 */
#ifndef KVT_CQ_SIM_H
#define KVT_CQ_SIM_H

#include <linux/completion.h>
#include <rdma/ib_verbs.h>
#include <kunit/test.h>

#define SIM_FLOWS	8

/* What things take, in nanoseconds of the virtual clock. */
#define SIM_WAKE_NS	4000	/* from a notification to the first poll, from rest */
#define SIM_POLL_NS	100
#define SIM_ARM_NS	200
#define SIM_DONE_NS	500

/* Completions that a flooded CQ always has. */
#define SIM_DEPTH	256

struct sim;

/**
 * struct sim_flow - a CQ, and the completions that come to it
 * @cqe: what they complete
 * @sim: the simulation
 * @cq: the CQ
 * @flood: it always has completions
 * @gap: else mean time between arrivals, in ns
 * @burst: most completions that arrive at once
 * @next: time of the next arrival
 * @rng: state of the random numbers
 * @arrived: completions that came
 * @served: completions handled before the end
 * @done: completions handled
 * @delay: of each, from its arrival to its done(), in ns
 * @max: how many @delay has room for
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
 * @ctx: polling context of the CQs, all of one vector
 * @now: the virtual clock, in ns; belongs to who polls, and to the case while
 *	nobody does
 * @end: when arrivals end
 * @wake_ns: as SIM_WAKE_NS
 * @done_ns: as SIM_DONE_NS
 * @seed: of the random numbers
 * @flow: the flows
 * @flows: how many
 * @idle: completed when all CQs are armed
 * @inside: done() that run
 * @concurrent: how often there was another
 * @overruns: arrivals that found no room
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
