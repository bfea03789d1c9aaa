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
 */
struct victim {
	const char *name;
	int (*make)(void *arg);
	void (*unmake)(void *arg);
	enum undo undo;
	int (*held)(void *arg);
};

void sweep(struct kunit *test, struct mock *m, const struct victim *v,
	   void *arg);
void sweep_undo(struct kunit *test, struct mock *m, const struct victim *v,
		void *arg);

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
