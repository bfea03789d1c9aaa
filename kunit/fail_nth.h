/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each allocation of a call fails in turn; see sweep.c.
 */
#ifndef KVT_FAIL_NTH_H
#define KVT_FAIL_NTH_H

#include <kunit/test.h>

#include "lib.h"
#include "mock.h"

/**
 * enum undo - what undoing a call does
 * @UNDO_SURVIVES: it may ask for memory, and does without
 * @UNDO_QUIET: it asks for none
 * @UNDO_MAKES: it makes something, too, which may fail: it is left alone
 */
enum undo {
	UNDO_SURVIVES,
	UNDO_QUIET,
	UNDO_MAKES,
};

/**
 * struct victim - a call whose allocations fail in turn
 * @name: for messages
 * @make: the call; returns 0 or a negative errno
 * @unmake: undoes a @make that worked
 * @undo: what that does
 * @held: what the call might leave behind, besides objects of the device; or NULL
 * @survives: it does without whatever it does not get; else some failure must make it fail
 * @work: not its own allocations fail, but those of the work item that it has run, and
 *	waits for: the function's name. For cases that have called work_fail_begin()
 */
struct victim {
	const char *name;
	int (*make)(void *arg);
	void (*unmake)(void *arg);
	enum undo undo;
	int (*held)(void *arg);
	bool survives;
	const char *work;
};

/**
 * enum sweep_verdict - what is wrong with a call
 * @SWEEP_GOOD: nothing
 * @SWEEP_ERRNO: it failed with something else than -ENOMEM
 * @SWEEP_LEFT: it left something behind, or took something away
 * @SWEEP_BROKEN: it failed though it had all memory that it asked for
 * @SWEEP_ENDLESS: it always asks for more
 * @SWEEP_NEVER_ASKS: it asks for none
 * @SWEEP_HIDES: no failure made it fail
 * @SWEEP_REFUSES: a failure made it fail, though it survives
 * @SWEEP_UNDO_ASKS: undoing it asks for memory
 * @SWEEP_NO_WORK: the work item whose allocations were to fail did not run
 */
enum sweep_verdict {
	SWEEP_GOOD,
	SWEEP_ERRNO,
	SWEEP_LEFT,
	SWEEP_BROKEN,
	SWEEP_ENDLESS,
	SWEEP_NEVER_ASKS,
	SWEEP_HIDES,
	SWEEP_REFUSES,
	SWEEP_UNDO_ASKS,
	SWEEP_NO_WORK,
};

/**
 * struct sweep - the course of it
 * @m: whose objects are counted
 * @v: the call
 * @arg: for @v
 * @held: what was there before
 * @n: the allocation that fails
 * @hit: it did
 * @ran: there was something whose allocations could fail
 * @ret: what the call returned
 * @refused: failures that made the call fail
 * @survived: those that did not
 */
struct sweep {
	struct mock *m;
	const struct victim *v;
	void *arg;
	int held;
	unsigned int n;
	bool hit;
	bool ran;
	int ret;
	unsigned int refused;
	unsigned int survived;
};

void sweep_init(struct sweep *s, struct mock *m, const struct victim *v, void *arg);
enum sweep_verdict sweep_make(struct sweep *s);
enum sweep_verdict sweep_unmake(struct sweep *s);

void sweep(struct kunit *test, struct mock *m, const struct victim *v,
	   void *arg);
void sweep_undo(struct kunit *test, struct mock *m, const struct victim *v,
		void *arg);

void work_fail_begin(struct kunit *test);
void work_fail_nth(const char *function, unsigned int n);
bool work_failed_nth(bool *hit);

const void *quiet_gen_params(const void *prev, char *desc);
void quiet_begin(struct kunit *test);
void quiet_end(struct kunit *test, const char *call);

/*
 * A call that asks for no memory. What it returns is the expression's value. For cases
 * with quiet_gen_params(), or calls that free nothing.
 */
#define QUIET(test, call)						\
({									\
	typeof(call) _result;						\
									\
	quiet_begin(test);						\
	_result = call;							\
	quiet_end(test, #call);						\
	_result;							\
})

/* Likewise one that returns nothing. */
#define QUIET_VOID(test, call)						\
do {									\
	quiet_begin(test);						\
	call;								\
	quiet_end(test, #call);						\
} while (0)

#endif
