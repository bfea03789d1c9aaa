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

/* Operations of an episode, including skipped ones. */
#define X_EPISODE	1500
/* Most characters of the text of an operation, including the slash after it. */
#define X_OP_TEXT	40
/* Most characters of the text of a sequence. */
#define X_REPLAY	0x10000
static_assert(X_EPISODE * X_OP_TEXT < X_REPLAY);
/* Upper bound of the number of kinds of operations. */
#define X_OP_KINDS	96

/* The failure of a thread. */
struct x_failure {
	bool there;	/* there was a failure */
	u32 thread;	/* number of the thread */
	u32 first;	/* number of the first operation of the episode that failed */
	/*
	 * Index of the failed operation in the episode; the number of operations if the end of the
	 * episode failed.
	 */
	u32 at;
	char why[160];	/* message */
};

struct x_run;

/* A thread of a run. */
struct x_thread {
	struct x_run *run;
	u32 id;				/* number of the thread */
	struct x_world *w;
	u64 done;			/* operations that were done */
	u64 skipped;			/* operations that did nothing */
	u64 by_kind[X_OP_KINDS];	/* operations that were done, by kind */
	u64 ended[X_STATUSES];		/* work requests that completed as expected, by status */
	struct x_failure failure;	/* its failure, if any */
} ____cacheline_aligned_in_smp;

/* The search for a short sequence that fails. */
struct x_search {
	struct x_op ops[X_EPISODE];	/* the sequence */
	u32 nr;				/* its length */
	struct x_op trial[X_EPISODE];	/* the part of @ops that is tried */
	u32 thread;			/* number of the thread that the sequence is run as */
	u64 end;			/* end of the search, in nanoseconds of ktime_get_ns() */
	char like[160];	/* message of the thread's failure; other failures do not count */
	char why[160];			/* message of the last failure that is like @like */
	/* An empty sequence fails as well, because a failure left something behind. */
	bool spoilt;
	bool confirmed;			/* @ops also fails with the patience of the run's threads */
};

/* A run of the exerciser. */
struct x_run {
	struct x_shared s;	/* objects that all threads share */
	u32 seed;		/* seed of the operations */
	u64 quota;		/* operations that each thread is to do */
	enum x_lie lie;		/* mistake for the self-test */
	bool stop;		/* threads are to end, for instance because one has failed */
	u32 threads;		/* number of threads */
	struct x_thread t[X_MAX_THREADS];	/* the threads */
	struct x_search search;	/* the search after a failure */
};

/* shrink.c */
int x_run_as(struct x_run *run, u32 thread, const struct x_op *ops, u32 nr, unsigned long patience);
bool x_shorten(struct x_run *run, u32 thread, const char *why);
bool x_find_short(struct x_run *run, const struct x_failure *f);
void x_report(struct kunit *test, struct x_run *run, const struct x_failure *f);
void x_print_sequence(struct kunit *test, const struct x_run *run);
void x_read_sequence(struct kunit *test, struct x_run *run, const char *text);

#endif
