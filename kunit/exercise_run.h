/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The exerciser: a run of its threads, and the search for a short sequence that fails
 * as one of them did.
 */
#ifndef KVT_EXERCISE_RUN_H
#define KVT_EXERCISE_RUN_H

#include <linux/cache.h>

#include "exercise.h"

struct kunit;
struct kvt_thread;

/* Operations of an episode, those that do nothing included. */
#define X_EPISODE	1500
/* Characters of an operation's text, at most, with the slash behind it. */
#define X_OP_TEXT	40
/* Of a sequence's. */
#define X_REPLAY	0x10000
static_assert(X_EPISODE * X_OP_TEXT < X_REPLAY);
/* More than there are kinds of operations. */
#define X_OP_KINDS	96

/**
 * struct x_failure - what went wrong
 * @there: something did
 * @thread: in this thread
 * @first: number of the first operation of the episode
 * @at: operation of the episode, or their number if it was at the end
 * @why: what
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
 * struct x_thread - a thread
 * @run: what it is part of
 * @id: its number
 * @w: its world
 * @done: operations that were done
 * @skipped: operations that did nothing
 * @by_kind: the same, by kind
 * @ended: requests, by the status they had
 * @failure: what went wrong
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
 * struct x_search - for a short sequence that fails
 * @ops: the sequence
 * @nr: its length
 * @trial: a part of it
 * @thread: number of the thread that it is run as
 * @noise: the other threads, which make operations of their own meanwhile; or none
 * @noisy: they do
 * @noise_from: number of the first of those
 * @quiet: they are to end
 * @runs: so often a sequence is run, until it fails
 * @patience: of the thread's world
 * @end: nanoseconds: no more is tried then
 * @like: how the thread failed: what fails in another way does not count
 * @seen: how the last sequence that failed did
 * @why: how @ops did
 * @spoilt: an empty sequence fails as well, for something was left behind
 * @confirmed: @ops fails with the patience that the threads have
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
 * struct x_run - some threads that exercise
 * @s: what they share
 * @seed: of their operations
 * @quota: operations of each
 * @lie: mistake for the self-test
 * @stop: one has failed
 * @threads: how many
 * @t: the threads
 * @search: after a failure
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

/* exercise_shrink.c */
int x_run_as(struct x_run *run, u32 thread, const struct x_op *ops, u32 nr);
bool x_shorten(struct kunit *test, struct x_run *run, u32 thread, u32 first, const char *why);
bool x_find_short(struct kunit *test, struct x_run *run, const struct x_failure *f);
void x_report(struct kunit *test, struct x_run *run, const struct x_failure *f);
void x_print_sequence(struct kunit *test, const struct x_run *run);
void x_read_sequence(struct kunit *test, struct x_run *run, const char *text);
int x_replay(struct kunit *test, struct x_run *run, u32 thread, int noise_from);

#endif
