/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sweeps: each allocation of a call fails in turn. See sweep.c, and sweep_work.c for the
 * allocations of work items.
 */
#ifndef KVT_FAIL_NTH_H
#define KVT_FAIL_NTH_H

#include "lib/mock.h"

/* What undoing a call does. */
enum undo {
	UNDO_SURVIVES,		/* it may allocate memory, and works if that fails */
	UNDO_QUIET,		/* it allocates nothing */
	UNDO_MAKES,		/* it also makes something, which may fail, so it is not swept */
};

/* A call whose allocations fail in turn. */
struct victim {
	const char *name;		/* for messages */
	int (*make)(void *arg);		/* makes the call; returns 0 or a negative errno */
	void (*unmake)(void *arg);	/* undoes a @make that succeeded */
	enum undo undo;			/* what @unmake does with respect to memory */
	/* Counts what the call might leave behind, besides objects of the device; or NULL. */
	int (*held)(void *arg);
	/* The call succeeds whichever allocation fails; else some failure must make it fail. */
	bool survives;
	/*
	 * Function name of a work item that the call queues and waits for: allocations of the work
	 * item fail, not those of the call. For cases that have called work_fail_begin(); or NULL.
	 */
	const char *work;
};

/* Stores the object that a call returns, or NULL; yields the error. */
#define KEEP(t, member, call)						\
({									\
	typeof((t)->member) _obj = (call);				\
	int _err = PTR_ERR_OR_ZERO(_obj);				\
									\
	(t)->member = _err ? NULL : _obj;				\
	_err;								\
})

/* How a victim makes its call, or undoes it: in one call, with @o, a struct @type. */
#define MAKES(name, type, o, call)					\
static int name(void *arg)						\
{									\
	struct type *o = arg;						\
									\
	return call;							\
}

#define UNMAKES(name, type, o, call)					\
static void name(void *arg)						\
{									\
	struct type *o = arg;						\
									\
	call;								\
}

/* What is wrong with a call. */
enum sweep_verdict {
	SWEEP_GOOD,		/* nothing */
	SWEEP_ERRNO,		/* it failed with another error than -ENOMEM */
	SWEEP_LEFT,		/* it left something behind, or took something away */
	SWEEP_BROKEN,		/* it failed although no allocation failed */
	SWEEP_ENDLESS,		/* there was no end to its allocations */
	SWEEP_NEVER_ASKS,	/* it allocates nothing */
	SWEEP_HIDES,		/* no failed allocation made it fail */
	SWEEP_REFUSES,	/* a failed allocation made it fail, but @survives of the victim is set */
	SWEEP_UNDO_ASKS,	/* undoing it allocates memory, but must not */
	SWEEP_NO_WORK,		/* the work item whose allocations were to fail did not run */
};

/* State of a sweep. */
struct sweep {
	struct mock *m;		/* the device whose objects are counted */
	const struct victim *v;	/* the call */
	void *arg;		/* argument for @v */
	int held;		/* number of objects and the like before the first call */
	unsigned int n;		/* number of the allocation that fails, from 1 */
	bool hit;		/* allocation @n did occur, and failed */
	bool ran;		/* the code whose allocations are to fail did run */
	int ret;		/* what the call returned */
	unsigned int refused;	/* failed allocations that made the call fail */
	unsigned int survived;	/* failed allocations with which the call succeeded */
};

void sweep_init(struct sweep *s, struct mock *m, const struct victim *v, void *arg);
enum sweep_verdict sweep_make(struct sweep *s);
enum sweep_verdict sweep_unmake(struct sweep *s);

void sweep(struct kunit *test, struct mock *m, const struct victim *v, void *arg);
#define SWEEP(test, m, arg, ...) \
	sweep(test, m, &(const struct victim) { __VA_ARGS__ }, arg)
void sweep_undo(struct kunit *test, struct mock *m, const struct victim *v, void *arg);

void work_fail_begin(struct kunit *test);
void work_fail_nth(const char *function, unsigned int n);
bool work_failed_nth(bool *hit);

const void *quiet_gen_params(const void *prev, char *desc);
void quiet_begin(struct kunit *test);
void quiet_end(struct kunit *test, const char *call);

/*
 * Makes a call that must not allocate memory, and yields its return value. For cases with
 * quiet_gen_params(), or for calls that free nothing: KASAN may allocate when memory is freed.
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

/* The same for a call that returns nothing. */
#define QUIET_VOID(test, call)						\
do {									\
	quiet_begin(test);						\
	call;								\
	quiet_end(test, #call);						\
} while (0)

#endif
