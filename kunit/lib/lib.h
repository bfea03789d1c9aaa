/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Helpers for every suite: an ordered trace of events, threads with a bounded
 * wait for their end, calls in interrupt context, and counts that scale.
 */
#ifndef KVT_LIB_H
#define KVT_LIB_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <kunit/test.h>
#include <kunit/resource.h>

struct net_device;
struct task_struct;
struct tracepoint;

#define KVT_TIMEOUT	kvt_timeout()

unsigned long kvt_timeout(void);

/*
 * Macros, so that the report names the line of the case: zeroed memory that the end of the case
 * frees; a pointer that must be neither NULL nor an error; what the end of the case calls, last
 * in first out.
 */
#define kvt_zalloc(test, size)						\
({									\
	void *__mem = kunit_kzalloc(test, size, GFP_KERNEL);		\
									\
	KUNIT_ASSERT_NOT_NULL(test, __mem);				\
	__mem;								\
})

#define KVT_PTR(test, call)						\
({									\
	__auto_type __kvt_ptr = (call);					\
									\
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, __kvt_ptr);			\
	__kvt_ptr;							\
})

/* An object that the end of the case destroys, by a function of lib/objects.h. */
#define KVT_OWN(test, call, end)					\
({									\
	__auto_type __owned = KVT_PTR(test, call);			\
									\
	kvt_defer(test, end, __owned);					\
	__owned;							\
})

#define kvt_defer(test, fn, arg) \
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fn, arg))

/* The suite @suite with the cases of @suite##_cases; init, exit and the like may follow. */
#define KVT_SUITE(suite, ...)						\
static struct kunit_suite suite##_suite = {				\
	.name = #suite,							\
	.test_cases = suite##_cases,					\
	__VA_ARGS__							\
};									\
kunit_test_suite(suite##_suite)

#define KVT_TRACE_LEN	2048

/* Words in the order in which they were added. */
struct kvt_trace {
	raw_spinlock_t lock;		/* taken with interrupts off, so that any context may add */
	size_t len;			/* bytes used in @buf */
	char buf[KVT_TRACE_LEN];	/* the words, a space between two */
};

struct kvt_trace *kvt_trace_new(struct kunit *test);
void kvt_trace_reset(struct kvt_trace *tr);
__printf(2, 3) void kvt_trace_add(struct kvt_trace *tr, const char *fmt, ...);

#define KVT_EXPECT_TRACE(test, tr, words) \
	KUNIT_EXPECT_STREQ(test, (const char *)(tr)->buf, words)

/* A kernel thread that runs one function. */
struct kvt_thread {
	struct task_struct *task;	/* the thread, with a reference */
	struct completion done;		/* completed when @fn has returned */
	int (*fn)(void *arg);		/* the function */
	void *arg;			/* its argument */
	bool stop;			/* see kvt_should_stop() */
	int ret;			/* what @fn returned, valid once the thread is joined */
};

struct kvt_thread *kvt_thread_new(struct kunit *test, int cpu, int (*fn)(void *arg), void *arg);
void kvt_thread_go(struct kvt_thread *t);
struct kvt_thread *kvt_thread_start(struct kunit *test, int cpu, int (*fn)(void *arg), void *arg);
bool kvt_thread_join(struct kvt_thread *t);
int kvt_thread_result(struct kvt_thread *t);
int kvt_thread_stop(struct kvt_thread *t);
bool kvt_should_stop(void);
bool kvt_thread_running(struct kvt_thread *t);
bool kvt_thread_waits(struct kvt_thread *t);
bool kvt_thread_sleeps(struct kvt_thread *t);

/* Holds up callbacks, until the case has seen what happens meanwhile. */
struct kvt_gate {
	struct completion entered;	/* completed by each callback that comes to the gate */
	struct completion open;		/* completed to let them all go on */
	bool in_time;	/* the gate was opened before the last of them gave up waiting */
};

void kvt_stay_on_first_cpu(void);
void kvt_gate_init(struct kvt_gate *g);
void kvt_gate_pass(struct kvt_gate *g);
void kvt_gate_sleep(struct kvt_gate *g);
void kvt_gate_open(struct kvt_gate *g);

struct tracepoint *kvt_tracepoint(const char *name);
void kvt_run_in_hardirq(void (*fn)(void *arg), void *arg);
void kvt_run_in_softirq(void (*fn)(void *arg), void *arg);
int kvt_other_cpu(void);

/* Contexts in which a function can be called: a parameter of a case. */
struct kvt_run {
	const char *name;
	void (*run)(void (*fn)(void *arg), void *arg);
};

extern const struct kvt_run kvt_runs[3];	/* task, softirq, hardirq */

unsigned long kvt_map(struct kunit *test, size_t len);

/* Pages of the case's thread that are pinned. */
static inline s64 kvt_pinned_pages(void)
{
	return atomic64_read(&current->mm->pinned_vm);
}

bool kvt_wait(struct completion *c);

/*
 * Wait for a condition that nobody signals; false if it is not met within KVT_TIMEOUT.
 * kvt_until() is for process context, and yields the CPU to others; kvt_spin_until() works in any
 * context.
 */
#define kvt_until(cond)		kvt_until_by(cond, kvt_yield())
#define kvt_spin_until(cond)	kvt_until_by(cond, cpu_relax())
#define kvt_until_by(cond, relax)					\
({									\
	u64 __end = ktime_get_ns() + jiffies_to_nsecs(KVT_TIMEOUT);	\
	bool __met;							\
									\
	while (!(__met = (cond)) && ktime_get_ns() < __end)		\
		relax;							\
	__met;								\
})

u64 kvt_count(u64 full);
void kvt_print_length(struct kunit *test, const char *what, u64 count);
u32 kvt_seed(struct kunit *test, const char *what, u64 count);
u32 kvt_rand(u32 *state);

int kvt_read_file(const char *path, char *buf, size_t len);
int kvt_read_debugfs(const char *path, char *buf, size_t len);
int kvt_write_file(const char *path, const char *text);
void kvt_set_file(struct kunit *test, const char *path, const char *text);
void kvt_restore_file(struct kunit *test, const char *path, const char *text);

void kvt_netdev_setup(struct net_device *ndev);
struct net_device *kvt_netdev(struct kunit *test);
void kvt_netdev_unregister(struct kunit *test, struct net_device *ndev);
void kvt_netdev_moves(struct net_device *ndev);
int kvt_netdev_on_top(struct net_device *lower, struct net_device *upper, bool on);
struct net_device *kvt_netdev_vlan(struct kunit *test, struct net_device *lower, u16 id);
int kvt_netdev_ip4(struct net_device *ndev, __be32 addr, bool add);

/*
 * Parameters of KUNIT_CASE_PARAM() from arrays, beside KUNIT_ARRAY_PARAM_DESC(): the entries from
 * @first to before @end; values that are their own name; values that index an array of names.
 */
#define KVT_PART_PARAM_DESC(name, array, first, end, desc_member)	\
static const void *name##_gen_params(const void *prev, char *desc)	\
{									\
	typeof(&(array)[0]) next = prev ? (typeof(next))prev + 1 : &(array)[first]; \
									\
	if (next == &(array)[end])					\
		return NULL;						\
	strscpy(desc, next->desc_member, KUNIT_PARAM_DESC_SIZE);	\
	return next;							\
}

#define KVT_NUMBER_PARAM(name, array, format)				\
static void name##_get_desc(typeof(&(array)[0]) value, char *desc)	\
{									\
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, format, *value);		\
}									\
KUNIT_ARRAY_PARAM(name, array, name##_get_desc)

#define KVT_NAMED_PARAM(name, array, names)				\
static void name##_get_desc(typeof(&(array)[0]) value, char *desc)	\
{									\
	strscpy(desc, (names)[*value], KUNIT_PARAM_DESC_SIZE);		\
}									\
KUNIT_ARRAY_PARAM(name, array, name##_get_desc)

void kvt_fail_nth(unsigned int n);
bool kvt_failed_nth(void);
int kvt_need_injection(struct kunit *test);
void kvt_yield(void);
void kvt_expedite_rcu(struct kunit *test);
void kvt_need_two_cpus(struct kunit *test);
void kvt_need_fine_clock(struct kunit *test);
void kvt_not_with_rt(struct kunit *test, const char *why);

/* For kverbs_delay_set() if only reaching the place matters, and for what needs no undoing. */
static inline void kvt_nothing(void *arg)
{
}

#endif
