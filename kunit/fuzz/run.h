/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The exerciser: a run of its threads, and the search for a short sequence of operations
 * that fails as a thread did.
 */
#ifndef KVT_EXERCISE_RUN_H
#define KVT_EXERCISE_RUN_H

#include <linux/cache.h>

#include "fuzz/fuzz.h"

struct kunit;
struct kvt_thread;

/* Operations of an episode, including skipped ones. */
#define X_EPISODE	1500
/* Most characters of the text of an operation, including the slash after it. */
#define X_OP_TEXT	40
/* Most characters of the text of a sequence. */
#define X_REPLAY	0x10000
static_assert(X_EPISODE * X_OP_TEXT < X_REPLAY);
/* Upper bound of the number of kinds of operations. */
#define X_OP_KINDS	96

/**
 * struct x_failure - the failure of a thread
 * @there: there was a failure
 * @thread: number of the thread
 * @first: number of the first operation of the episode that failed
 * @at: index of the failed operation in the episode; the number of operations if the end of
 *	the episode failed
 * @why: message
 */
struct x_failure {
	bool there;
	u32 thread;
	u32 first;
	u32 at;
	char why[160];
};

struct x_run;

/**
 * struct x_thread - a thread of a run
 * @run: the run
 * @id: number of the thread
 * @w: its world
 * @done: operations that were done
 * @skipped: operations that did nothing
 * @by_kind: operations that were done, by kind
 * @ended: work requests that completed as expected, by status
 * @failure: its failure, if any
 */
struct x_thread {
	struct x_run *run;
	u32 id;
	struct x_world *w;
	u64 done;
	u64 skipped;
	u64 by_kind[X_OP_KINDS];
	u64 ended[X_STATUSES];
	struct x_failure failure;
} ____cacheline_aligned_in_smp;

/**
 * struct x_search - the search for a short sequence that fails
 * @ops: the sequence
 * @nr: its length
 * @trial: the part of @ops that is tried
 * @thread: number of the thread that the sequence is run as
 * @noise: the other threads, which make operations of their own during the search if @noisy
 * @noisy: the other threads run
 * @noise_from: number of the first operation of the other threads
 * @quiet: tells the other threads to end
 * @runs: how often a sequence is run before it counts as one that does not fail
 * @patience: patience of the thread's world, in jiffies
 * @end: end of the search, in nanoseconds of ktime_get_ns()
 * @like: message of the thread's failure; other failures do not count
 * @seen: message of the last failure, of whichever sequence
 * @why: message of the last failure that is like @like
 * @spoilt: an empty sequence fails as well, because a failure left something behind
 * @confirmed: @ops also fails with the patience of the run's threads
 */
struct x_search {
	struct x_op ops[X_EPISODE];
	u32 nr;
	struct x_op trial[X_EPISODE];
	u32 thread;
	struct kvt_thread *noise[X_MAX_THREADS];
	bool noisy;
	u32 noise_from;
	bool quiet;
	u32 runs;
	unsigned long patience;
	u64 end;
	char like[160];
	char seen[160];
	char why[160];
	bool spoilt;
	bool confirmed;
};

/**
 * struct x_run - a run of the exerciser
 * @s: objects that all threads share
 * @seed: seed of the operations
 * @quota: operations that each thread is to do
 * @lie: mistake for the self-test
 * @stop: threads are to end, for instance because one has failed
 * @threads: number of threads
 * @t: the threads
 * @search: the search after a failure
 */
struct x_run {
	struct x_shared s;
	u32 seed;
	u64 quota;
	enum x_lie lie;
	bool stop;
	u32 threads;
	struct x_thread t[X_MAX_THREADS];
	struct x_search search;
};

/* shrink.c */
int x_run_as(struct x_run *run, u32 thread, const struct x_op *ops, u32 nr);
bool x_shorten(struct kunit *test, struct x_run *run, u32 thread, u32 first, const char *why);
bool x_find_short(struct kunit *test, struct x_run *run, const struct x_failure *f);
void x_report(struct kunit *test, struct x_run *run, const struct x_failure *f);
void x_print_sequence(struct kunit *test, const struct x_run *run);
void x_read_sequence(struct kunit *test, struct x_run *run, const char *text);
int x_replay(struct kunit *test, struct x_run *run, u32 thread, int noise_from);

#endif
