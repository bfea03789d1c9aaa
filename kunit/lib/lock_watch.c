// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts the locks taken and the memory allocated by watched modules.
 *
 * The kernel's tracepoints report each lock, with the address that took it, each wait
 * for a lock, and each allocation. Two things are counted:
 *
 *   direct	the address is in a watched module: its own code took the lock or
 *		allocated, in any context. rcu_read_lock() is a lock for lockdep only,
 *		and counted separately.
 *   by place	the kernel did it on behalf of a watched module: between watch_enter()
 *		and watch_leave() of a task, or in a thread of kverbs or kverbs_emu.
 *		The call stack shows which kernel function the module called. Interrupts
 *		and preemption, which may occur at any instruction, are not counted.
 *
 * So what kernel functions that a module calls do in softirq context is not counted,
 * only what the module's own code does there.
 *
 * There is one watch at a time, @current_watch. Probes run in any context and take no lock.
 */
#include <linux/hash.h>
#include <linux/kallsyms.h>
#include <linux/lockdep.h>
#include <linux/mm_types.h>
#include <linux/preempt.h>
#include <linux/stacktrace.h>
#include <linux/tracepoint.h>

#include "lib/lib.h"
#include "lib/lock_watch.h"

/* Deep enough from a lock in the scheduler up to the watched code. */
#define STACK_DEPTH	32
/* log2 of the number of cached addresses; some hundreds of them occur. */
#define KNOWN_BITS	10

static struct watch *current_watch;
static unsigned long known_addr[1 << KNOWN_BITS];

static bool watch_is_own(const struct watch *w, unsigned long addr)
{
	int i;

	for (i = 0; i < WATCH_MODULES; i++)
		if (w->mod[i] && within_module(addr, w->mod[i]))
			return true;
	return false;
}

/* In task context, after watch_enter() or in a thread of kverbs or kverbs_emu? */
static bool watch_covers(const struct watch *w)
{
	int i;

	if (!in_task())
		return false;
	for (i = 0; i < WATCH_TASKS; i++)
		if (READ_ONCE(w->inside[i]) == current)
			return true;
	/* A runner of the software HCA, or the thread of a CQ. */
	return !strncmp(current->comm, "kverbs_emu/", 11) ||
	       !strncmp(current->comm, "kverbs_user/", 12) || !strncmp(current->comm, "kvcq-", 5);
}

static bool watch_is_detour_name(const char *name)
{
	return !strncmp(name, "asm_", 4) || !strncmp(name, "preempt_schedule", 16);
}

/*
 * Is this address in the entry code of an interrupt, or in preempt_schedule()?
 * Symbol lookup is slow, so results are cached: the address shifted left, with bit 0
 * set for yes. If writers race, an address is merely looked up again.
 */
static bool watch_is_detour(unsigned long addr)
{
	unsigned long *known = &known_addr[hash_long(addr, KNOWN_BITS)];
	unsigned long word = READ_ONCE(*known);
	char name[KSYM_SYMBOL_LEN];

	if (word >> 1 != (addr << 1) >> 1) {
		snprintf(name, sizeof(name), "%ps", (void *)addr);
		word = addr << 1 | watch_is_detour_name(name);
		WRITE_ONCE(*known, word);
	}
	return word & 1;
}

/*
 * Returns an address in the kernel function that watched code called; 0 if it called none
 * or a consumer's handler, or if an interrupt or a preemption is in between.
 */
static unsigned long watch_callee(const struct watch *w)
{
	unsigned long stack[STACK_DEPTH];
	unsigned int i = 0, n;

	n = stack_trace_save(stack, STACK_DEPTH, 0);
	/* Skip the probe's own frames. */
	while (i < n && within_module(stack[i], THIS_MODULE))
		i++;
	for (i++; i < n; i++) {
		if (watch_is_detour(stack[i - 1]))
			return 0;
		if (watch_is_own(w, stack[i]))
			return within_module(stack[i - 1], THIS_MODULE) ? 0 : stack[i - 1];
	}
	return 0;
}

static void watch_count_place(struct watch *w, enum watch_kind kind, unsigned long addr)
{
	struct watch_place *p;

	for (p = w->place; p < w->place + WATCH_PLACES; p++) {
		if (READ_ONCE(p->addr) == addr ||
		    (!READ_ONCE(p->addr) && cmpxchg(&p->addr, 0, addr) == 0) ||
		    READ_ONCE(p->addr) == addr) {
			atomic_inc(&p->count[kind]);
			return;
		}
	}
	atomic_inc(&w->crowded);
}

/* @by: the address that took the lock or allocated; 0 if the tracepoint does not tell. */
static void watch_see(enum watch_kind kind, unsigned long by)
{
	struct watch *w = READ_ONCE(current_watch);
	unsigned long callee;

	if (!w || !READ_ONCE(w->on))
		return;
	if (by && watch_is_own(w, by)) {
		atomic_inc(&w->direct[kind]);
		WRITE_ONCE(w->direct_addr[kind], by);
		return;
	}
	if (!watch_covers(w))
		return;
	callee = watch_callee(w);
	if (callee)
		watch_count_place(w, kind, callee);
}

#ifdef CONFIG_LOCKDEP
static bool watch_is_rcu(const struct lockdep_map *lock)
{
	return lock->name && !strncmp(lock->name, "rcu_read_lock", 13);
}
#else
/* Never called: without lockdep, watch_possible() finds no tracepoint lock_acquire. */
static bool watch_is_rcu(const struct lockdep_map *lock)
{
	return false;
}
#endif

static void probe_lock_acquire(void *data, struct lockdep_map *lock, unsigned int subclass,
			       int trylock, int read, int check,
			       struct lockdep_map *next, unsigned long ip)
{
	struct watch *w = READ_ONCE(current_watch);

	if (!watch_is_rcu(lock))
		watch_see(WATCH_LOCK, ip);
	else if (w && READ_ONCE(w->on) && watch_is_own(w, ip))
		atomic_inc(&w->rcu);
}

static void probe_contention(void *data, void *lock, unsigned int flags)
{
	watch_see(WATCH_CONTENDED, 0);
}

static void probe_kmalloc(void *data, unsigned long call_site, const void *ptr,
			  size_t requested, size_t allocated, gfp_t gfp, int node)
{
	watch_see(WATCH_ALLOC, call_site);
}

static void probe_cache_alloc(void *data, unsigned long call_site, const void *ptr,
			      struct kmem_cache *cache, gfp_t gfp, int node)
{
	watch_see(WATCH_ALLOC, call_site);
}

static void probe_page_alloc(void *data, struct page *page, unsigned int order, gfp_t gfp,
			     int migratetype)
{
	watch_see(WATCH_ALLOC, 0);
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} probes[] = {
	{ "lock_acquire", probe_lock_acquire },
	{ "contention_begin", probe_contention },
	{ "kmalloc", probe_kmalloc },
	{ "kmem_cache_alloc", probe_cache_alloc },
	{ "mm_page_alloc", probe_page_alloc },
};

/**
 * watch_possible() - check that this kernel has the tracepoints, and skip the case if not
 * @test: the running case
 *
 * Return: false if the case was marked as skipped.
 */
bool watch_possible(struct kunit *test)
{
	int i;

	if (!IS_ENABLED(CONFIG_ARCH_STACKWALK)) {
		kunit_mark_skipped(test, "stack traces of this architecture are guesses");
		return false;
	}
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		probes[i].tp = kvt_tracepoint(probes[i].name);
		if (probes[i].tp)
			continue;
		kunit_mark_skipped(test, "no tracepoint %s: lockdep is not built in",
				   probes[i].name);
		return false;
	}
	return true;
}

static void watch_unregister(int n)
{
	while (n--)
		tracepoint_probe_unregister(probes[n].tp, probes[n].probe, NULL);
	tracepoint_synchronize_unregister();
}

/**
 * watch_start() - start counting
 * @test: the running case, for which watch_possible() has returned true
 * @w: the watch, zeroed except for @w->mod
 */
void watch_start(struct kunit *test, struct watch *w)
{
	int i, err = 0;

	WRITE_ONCE(current_watch, w);
	for (i = 0; i < ARRAY_SIZE(probes) && !err; i++)
		err = tracepoint_probe_register(probes[i].tp, probes[i].probe, NULL);
	if (err)
		watch_unregister(i - 1);
	KUNIT_ASSERT_EQ(test, 0, err);
	WRITE_ONCE(w->on, true);
}

/**
 * watch_stop() - stop counting
 * @w: from watch_start(); a stopped watch may be stopped again
 */
void watch_stop(struct watch *w)
{
	if (!READ_ONCE(w->on))
		return;
	WRITE_ONCE(w->on, false);
	watch_unregister(ARRAY_SIZE(probes));
	WRITE_ONCE(current_watch, NULL);
}
