/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sees who takes locks and allocates memory; see lock_watch.c.
 */
#ifndef KVT_LOCK_WATCH_H
#define KVT_LOCK_WATCH_H

#include <linux/atomic.h>
#include <linux/types.h>

struct kunit;
struct module;
struct task_struct;

/* Modules that are watched, and tasks with sections. */
#define WATCH_MODULES	2
#define WATCH_TASKS	2
/* Places in the kernel that are told apart; there are about ten. */
#define WATCH_PLACES	64

/**
 * enum watch_kind - what is counted
 * @WATCH_LOCK: a lock of any kind, tried or taken
 * @WATCH_CONTENDED: somebody waits for one
 * @WATCH_ALLOC: memory is allocated
 * @WATCH_KINDS: number of kinds
 */
enum watch_kind {
	WATCH_LOCK,
	WATCH_CONTENDED,
	WATCH_ALLOC,
	WATCH_KINDS
};

/**
 * struct watch_place - where the watched code entered the kernel
 * @addr: an address in the function of the kernel that was called, or 0
 * @count: by kind, what happened in there
 */
struct watch_place {
	unsigned long addr;
	atomic_t count[WATCH_KINDS];
};

/**
 * struct watch - what was seen between watch_start() and watch_stop()
 * @on: counting
 * @mod: whose code is watched, in all contexts
 * @inside: tasks that are in a section
 * @direct: by kind, what @mod's own code did
 * @direct_addr: by kind, where it did so last
 * @rcu: times that it entered an RCU section, which is no lock
 * @place: what the kernel did for it
 * @crowded: there were more places
 */
struct watch {
	bool on;
	struct module *mod[WATCH_MODULES];
	struct task_struct *inside[WATCH_TASKS];
	atomic_t direct[WATCH_KINDS];
	unsigned long direct_addr[WATCH_KINDS];
	atomic_t rcu;
	struct watch_place place[WATCH_PLACES];
	atomic_t crowded;
};

bool watch_possible(struct kunit *test);
void watch_start(struct kunit *test, struct watch *w);
void watch_stop(struct watch *w);

/* The section of task number @who: a call of the path. */
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
