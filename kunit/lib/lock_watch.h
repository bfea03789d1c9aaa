/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counts locks taken and memory allocated by watched code, from tracepoints; see
 * lock_watch.c.
 */
#ifndef KVT_LOCK_WATCH_H
#define KVT_LOCK_WATCH_H

#include <linux/atomic.h>
#include <linux/types.h>

struct kunit;
struct module;
struct task_struct;

/* Most modules that are watched, and most tasks that have sections. */
#define WATCH_MODULES	2
#define WATCH_TASKS	2
/* Most places in the kernel that are told apart; about ten are in use. */
#define WATCH_PLACES	64

/**
 * enum watch_kind - what is counted
 * @WATCH_LOCK: a lock of any kind, tried or taken
 * @WATCH_CONTENDED: a lock has to be waited for
 * @WATCH_ALLOC: memory is allocated
 * @WATCH_KINDS: number of kinds
 */
enum watch_kind {
	WATCH_LOCK,
	WATCH_CONTENDED,
	WATCH_ALLOC,
	WATCH_KINDS
};

/* Where the watched code entered the kernel. */
struct watch_place {
	unsigned long addr;	/* an address in the kernel function that was called, or 0 */
	atomic_t count[WATCH_KINDS];	/* events by kind, during calls of that function */
};

/* What was seen between watch_start() and watch_stop(). */
struct watch {
	bool on;					/* events are counted */
	struct module *mod[WATCH_MODULES];	/* modules whose code is watched, in all contexts */
	struct task_struct *inside[WATCH_TASKS];	/* tasks that are in a section, by number */
	atomic_t direct[WATCH_KINDS];	/* by kind, events caused directly by code of @mod */
	unsigned long direct_addr[WATCH_KINDS];	/* by kind, address of the last direct event */
	/* RCU read-side sections that code of @mod entered, which do not count as locks */
	atomic_t rcu;
	/* events in kernel functions that the watched code called */
	struct watch_place place[WATCH_PLACES];
	atomic_t crowded;	/* events that were not counted because @place was full */
};

bool watch_possible(struct kunit *test);
void watch_start(struct kunit *test, struct watch *w);
void watch_stop(struct watch *w);

/* Begins the section of the current task, as task number @who: a call of the watched path. */
static inline void watch_enter(struct watch *w, int who)
{
	WRITE_ONCE(w->inside[who], current);
	barrier();
}

static inline void watch_leave(struct watch *w, int who)
{
	barrier();
	WRITE_ONCE(w->inside[who], NULL);
}

#define WATCHED(w, who, call)						\
({									\
	typeof(call) __ret;						\
									\
	watch_enter(w, who);						\
	__ret = (call);							\
	watch_leave(w, who);						\
	__ret;								\
})

#endif
