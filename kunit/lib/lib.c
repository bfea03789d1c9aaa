// SPDX-License-Identifier: GPL-2.0-only
/*
 * Helpers that the suites share.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/random.h>
#include <linux/sched/clock.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/smp.h>
#include <linux/tracepoint.h>
#include <linux/uio.h>

#include "lib/lib.h"

/* How long a thread must stay behind a fence for the fence to count as holding. */
#define KVT_GRACE_NS	(50 * NSEC_PER_MSEC)

/* Stress cases run a tenth of their full count by default, all of it with scale=10. */
#define KVT_FULL_SCALE	10
/* In User Mode Linux threads take turns, mostly at the clock's ticks: few counts say as much. */
#define KVT_UML_SHARE	20

static unsigned int scale = 1;
module_param(scale, uint, 0644);
MODULE_PARM_DESC(scale, "tenths of the full stress counts to run");

static unsigned int seed;
module_param(seed, uint, 0644);
MODULE_PARM_DESC(seed, "seed of the stress cases, 0 to draw one");

/* KUnit ends a case after 300 s. */
#define KVT_MAX_PATIENCE	2

static unsigned int patience = 1;
module_param(patience, uint, 0444);
MODULE_PARM_DESC(patience, "how many times as long to wait for anything, on a busy machine: 1 or 2");

/**
 * kvt_timeout() - the timeout for anything that must happen
 *
 * Long, since KASAN under TCG is slow, and the machine may have others to run.
 *
 * Context: any.
 * Return: jiffies.
 */
unsigned long kvt_timeout(void)
{
	return 60UL * HZ * clamp(patience, 1U, KVT_MAX_PATIENCE);
}
EXPORT_SYMBOL_GPL(kvt_timeout);

/**
 * kvt_trace_new() - an empty trace
 * @test: the running case, whose end frees it
 *
 * Return: the trace.
 */
struct kvt_trace *kvt_trace_new(struct kunit *test)
{
	struct kvt_trace *tr = kvt_zalloc(test, sizeof(*tr));

	raw_spin_lock_init(&tr->lock);
	return tr;
}
EXPORT_SYMBOL_GPL(kvt_trace_new);

/**
 * kvt_trace_reset() - forget all words
 * @tr: the trace
 */
void kvt_trace_reset(struct kvt_trace *tr)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&tr->lock, flags);
	tr->len = 0;
	tr->buf[0] = '\0';
	raw_spin_unlock_irqrestore(&tr->lock, flags);
}
EXPORT_SYMBOL_GPL(kvt_trace_reset);

/**
 * kvt_trace_add() - add a word
 * @tr: the trace
 * @fmt: as of printf()
 * @...: for @fmt
 *
 * Context: any.
 */
void kvt_trace_add(struct kvt_trace *tr, const char *fmt, ...)
{
	unsigned long flags;
	va_list args;

	va_start(args, fmt);
	raw_spin_lock_irqsave(&tr->lock, flags);
	if (tr->len)
		tr->len += scnprintf(tr->buf + tr->len,
				     sizeof(tr->buf) - tr->len, " ");
	tr->len += vscnprintf(tr->buf + tr->len, sizeof(tr->buf) - tr->len, fmt, args);
	raw_spin_unlock_irqrestore(&tr->lock, flags);
	va_end(args);
}
EXPORT_SYMBOL_GPL(kvt_trace_add);

static int kvt_thread_main(void *arg)
{
	struct kvt_thread *t = arg;

	t->ret = t->fn(t->arg);
	complete_all(&t->done);
	return 0;
}

static void kvt_thread_end(void *arg)
{
	struct kvt_thread *t = arg;

	/* Returns when the thread has left this module's code. */
	kthread_stop(t->task);
	put_task_struct(t->task);
}

/**
 * kvt_thread_new() - a thread that waits for kvt_thread_go()
 * @test: the running case, which fails if the thread cannot be created
 * @cpu: CPU to run on, or -1 for any
 * @fn: the function
 * @arg: its argument
 *
 * For a thread that is to run while a callback is held up: creating a thread then needs
 * other kernel threads, which may be stuck behind the callback.
 *
 * Context: process; the thread is gone when the case ends.
 * Return: the thread.
 */
struct kvt_thread *kvt_thread_new(struct kunit *test, int cpu, int (*fn)(void *arg), void *arg)
{
	struct kvt_thread *t = kvt_zalloc(test, sizeof(*t));

	init_completion(&t->done);
	t->fn = fn;
	t->arg = arg;
	t->task = KVT_PTR(test, kthread_create(kvt_thread_main, t, "kvt"));
	get_task_struct(t->task);
	if (cpu >= 0)
		kthread_bind(t->task, cpu);
	kvt_defer(test, kvt_thread_end, t);
	return t;
}
EXPORT_SYMBOL_GPL(kvt_thread_new);

/**
 * kvt_thread_go() - let a thread of kvt_thread_new() run
 * @t: the thread
 */
void kvt_thread_go(struct kvt_thread *t)
{
	wake_up_process(t->task);
}
EXPORT_SYMBOL_GPL(kvt_thread_go);

/**
 * kvt_thread_start() - run a function in a thread of its own
 * @test: the running case, which fails if the thread cannot be created
 * @cpu: CPU to run on, or -1 for any
 * @fn: the function
 * @arg: its argument
 *
 * Context: process; the thread is gone when the case ends.
 * Return: the thread.
 */
struct kvt_thread *kvt_thread_start(struct kunit *test, int cpu, int (*fn)(void *arg), void *arg)
{
	struct kvt_thread *t = kvt_thread_new(test, cpu, fn, arg);

	kvt_thread_go(t);
	return t;
}
EXPORT_SYMBOL_GPL(kvt_thread_start);

/**
 * kvt_thread_join() - wait for the end of a thread's function
 * @t: the thread
 *
 * The timeout grows with the scale of the stress cases.
 *
 * Return: true if it ended in time.
 */
bool kvt_thread_join(struct kvt_thread *t)
{
	return wait_for_completion_timeout(&t->done, KVT_TIMEOUT * max(scale, 1U));
}
EXPORT_SYMBOL_GPL(kvt_thread_join);

/**
 * kvt_thread_result() - wait for the end of a thread's function
 * @t: the thread
 *
 * Return: what the function returned, or -ETIMEDOUT if it did not end in time.
 */
int kvt_thread_result(struct kvt_thread *t)
{
	return kvt_thread_join(t) ? t->ret : -ETIMEDOUT;
}
EXPORT_SYMBOL_GPL(kvt_thread_result);

/**
 * kvt_should_stop() - whether the current thread, one of kvt_thread_new(), is to end
 *
 * Return: true once kvt_thread_stop() was called, or the case has ended.
 */
bool kvt_should_stop(void)
{
	struct kvt_thread *t = kthread_data(current);

	return READ_ONCE(t->stop) || kthread_should_stop();
}
EXPORT_SYMBOL_GPL(kvt_should_stop);

/**
 * kvt_thread_stop() - end a thread that runs until kvt_should_stop()
 * @t: the thread
 *
 * Return: what its function returned, or -ETIMEDOUT if it did not end in time.
 */
int kvt_thread_stop(struct kvt_thread *t)
{
	WRITE_ONCE(t->stop, true);
	return kvt_thread_result(t);
}
EXPORT_SYMBOL_GPL(kvt_thread_stop);

/**
 * kvt_thread_running() - whether a thread's function has yet to return
 * @t: the thread
 *
 * Return: true if so.
 */
bool kvt_thread_running(struct kvt_thread *t)
{
	return !completion_done(&t->done);
}
EXPORT_SYMBOL_GPL(kvt_thread_running);

/**
 * kvt_thread_sleeps() - wait until a thread that was let run sleeps, or has ended
 * @t: the thread, on another CPU
 *
 * For a caller who holds up what the thread waits for, and may not sleep itself.
 *
 * Context: any.
 * Return: true if it sleeps; false if its function has returned, or does not sleep for seconds.
 */
bool kvt_thread_sleeps(struct kvt_thread *t)
{
	u64 end = ktime_get_mono_fast_ns() + 20ULL * NSEC_PER_SEC;

	while (kvt_thread_running(t) && ktime_get_mono_fast_ns() < end) {
		if (READ_ONCE(t->task->__state) == TASK_UNINTERRUPTIBLE)
			return true;
		cpu_relax();
	}
	return false;
}
EXPORT_SYMBOL_GPL(kvt_thread_sleeps);

/**
 * kvt_thread_waits() - whether a thread keeps waiting at a fence
 * @t: the thread
 *
 * Gives the thread some time to get past a fence that does not hold. No case depends on the
 * length of that time: a fence that holds gives the same answer after no time at all. With
 * several CPUs this polls, because timers cannot be relied on: the CPU that is held up may be
 * the timekeeper. With one it sleeps: in User Mode Linux, each look at the clock costs time.
 *
 * Context: process.
 * Return: true if the thread's function has not returned.
 */
bool kvt_thread_waits(struct kvt_thread *t)
{
	u64 end;

	if (num_online_cpus() == 1) {
		wait_for_completion_timeout(&t->done, nsecs_to_jiffies(KVT_GRACE_NS) + 1);
		return kvt_thread_running(t);
	}
	end = ktime_get_ns() + KVT_GRACE_NS;
	while (kvt_thread_running(t) && ktime_get_ns() < end)
		schedule();
	return kvt_thread_running(t);
}
EXPORT_SYMBOL_GPL(kvt_thread_waits);

/**
 * kvt_map() - map memory of a process, giving the case's thread an mm if it has none
 * @test: the running case, whose end unmaps it
 * @len: bytes
 *
 * Context: process.
 * Return: the address of the memory.
 */
unsigned long kvt_map(struct kunit *test, size_t len)
{
	unsigned long addr = kunit_vm_mmap(test, NULL, 0, len, PROT_READ | PROT_WRITE,
					   MAP_ANONYMOUS | MAP_PRIVATE, 0);

	KUNIT_ASSERT_NE(test, 0, addr);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(addr));
	return addr;
}
EXPORT_SYMBOL_GPL(kvt_map);

/**
 * kvt_wait() - wait for something that must happen
 * @c: completed when it happens
 *
 * Context: process.
 * Return: true if it happened in time.
 */
bool kvt_wait(struct completion *c)
{
	return wait_for_completion_timeout(c, KVT_TIMEOUT);
}
EXPORT_SYMBOL_GPL(kvt_wait);

/**
 * kvt_stay_on_first_cpu() - bind the case to CPU 0
 *
 * To be called before something is held up on another CPU, where the case could not go on.
 *
 * Context: the thread of the case.
 */
void kvt_stay_on_first_cpu(void)
{
	set_cpus_allowed_ptr(current, cpumask_of(0));
}
EXPORT_SYMBOL_GPL(kvt_stay_on_first_cpu);

/**
 * kvt_gate_init() - initialise a gate, closed
 * @g: the gate
 */
void kvt_gate_init(struct kvt_gate *g)
{
	init_completion(&g->entered);
	init_completion(&g->open);
	g->in_time = false;
}
EXPORT_SYMBOL_GPL(kvt_gate_init);

/**
 * kvt_gate_pass() - to be called in the callback: wait until the gate opens
 * @g: the gate
 *
 * Spins, because many callbacks must not sleep.
 *
 * Context: any.
 */
void kvt_gate_pass(struct kvt_gate *g)
{
	complete(&g->entered);
	g->in_time = kvt_spin_until(completion_done(&g->open));
}
EXPORT_SYMBOL_GPL(kvt_gate_pass);

/**
 * kvt_gate_sleep() - kvt_gate_pass() for callbacks that may sleep
 * @g: the gate
 */
void kvt_gate_sleep(struct kvt_gate *g)
{
	complete(&g->entered);
	g->in_time = kvt_wait(&g->open);
}
EXPORT_SYMBOL_GPL(kvt_gate_sleep);

/**
 * kvt_gate_open() - let the callbacks at the gate continue, and those that come to it later
 * @g: the gate
 *
 * Context: any.
 */
void kvt_gate_open(struct kvt_gate *g)
{
	complete_all(&g->open);
}
EXPORT_SYMBOL_GPL(kvt_gate_open);

struct kvt_irq_call {
	struct irq_work work;
	struct tasklet_struct tasklet;
	void (*fn)(void *arg);
	void *arg;
};

static void kvt_irq_call_work(struct irq_work *work)
{
	struct kvt_irq_call *call = container_of(work, struct kvt_irq_call, work);

	call->fn(call->arg);
}

/**
 * kvt_run_in_hardirq() - call a function in hard interrupt context
 * @fn: the function
 * @arg: its argument
 *
 * Context: process; returns after @fn did.
 */
void kvt_run_in_hardirq(void (*fn)(void *arg), void *arg)
{
	struct kvt_irq_call call = { .fn = fn, .arg = arg };

	call.work = IRQ_WORK_INIT_HARD(kvt_irq_call_work);
	irq_work_queue(&call.work);
	irq_work_sync(&call.work);
}
EXPORT_SYMBOL_GPL(kvt_run_in_hardirq);

static void kvt_irq_call_tasklet(struct tasklet_struct *t)
{
	struct kvt_irq_call *call = container_of(t, struct kvt_irq_call, tasklet);

	call->fn(call->arg);
}

/**
 * kvt_run_in_softirq() - call a function in soft interrupt context
 * @fn: the function
 * @arg: its argument
 *
 * Context: process; returns after @fn did.
 */
void kvt_run_in_softirq(void (*fn)(void *arg), void *arg)
{
	struct kvt_irq_call call = { .fn = fn, .arg = arg };

	tasklet_setup(&call.tasklet, kvt_irq_call_tasklet);
	tasklet_schedule(&call.tasklet);
	tasklet_kill(&call.tasklet);
}
EXPORT_SYMBOL_GPL(kvt_run_in_softirq);

static void run_in_task(void (*fn)(void *arg), void *arg)
{
	fn(arg);
}

/*
 * kvt_runs - a task, a soft interrupt, a hard interrupt
 */
const struct kvt_run kvt_runs[] = {
	{ "task", run_in_task },
	{ "softirq", kvt_run_in_softirq },
	{ "hardirq", kvt_run_in_hardirq },
};
EXPORT_SYMBOL_GPL(kvt_runs);

/**
 * kvt_other_cpu() - a CPU that is not the first
 *
 * Return: the CPU's number, or 0 if only one CPU is online.
 */
int kvt_other_cpu(void)
{
	unsigned int cpu = cpumask_next(0, cpu_online_mask);

	return cpu < nr_cpu_ids ? cpu : 0;
}
EXPORT_SYMBOL_GPL(kvt_other_cpu);

/**
 * kvt_need_two_cpus() - skip the case on a machine with one CPU
 * @test: the running case, in which something must happen in the middle of something else
 */
void kvt_need_two_cpus(struct kunit *test)
{
	if (!kvt_other_cpu())
		kunit_skip(test, "needs two CPUs");
}
EXPORT_SYMBOL_GPL(kvt_need_two_cpus);

/**
 * kvt_need_fine_clock() - skip the case where the scheduler's clock stands still for 200 us or more
 * @test: the running case, in which that clock decides how long something may run
 */
void kvt_need_fine_clock(struct kunit *test)
{
	u64 began;
	int i;

	for (i = 0; i < 10; i++) {
		began = local_clock();
		udelay(200);
		if (local_clock() == began)
			kunit_skip(test, "the scheduler's clock is too coarse");
	}
}
EXPORT_SYMBOL_GPL(kvt_need_fine_clock);

/**
 * kvt_not_with_rt() - skip the case on a kernel with PREEMPT_RT
 * @test: the running case
 * @why: what such a kernel lacks
 */
void kvt_not_with_rt(struct kunit *test, const char *why)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		kunit_skip(test, "PREEMPT_RT: %s", why);
}
EXPORT_SYMBOL_GPL(kvt_not_with_rt);

/* A search of kvt_tracepoint(). */
struct kvt_tracepoint_search {
	struct notifier_block nb;
	const char *name;
	struct tracepoint *found;
};

static void kvt_tracepoint_visit(struct tracepoint *tp, void *data)
{
	struct kvt_tracepoint_search *search = data;

	if (!strcmp(tp->name, search->name))
		search->found = tp;
}

/* Registering the notifier reports each loaded module as COMING, unregistering as GOING. */
static int kvt_tracepoint_module(struct notifier_block *nb, unsigned long state, void *data)
{
	struct tp_module *tp_mod = data;
	unsigned int i;

	if (state != MODULE_STATE_COMING)
		return NOTIFY_DONE;
	for (i = 0; i < tp_mod->mod->num_tracepoints; i++)
		kvt_tracepoint_visit(tracepoint_ptr_deref(tp_mod->mod->tracepoints_ptrs + i),
				     container_of(nb, struct kvt_tracepoint_search, nb));
	return NOTIFY_DONE;
}

/**
 * kvt_tracepoint() - find a tracepoint of the kernel or of a module
 * @name: its name
 *
 * Context: process.
 * Return: the tracepoint, or %NULL if there is none. A module's tracepoint is valid as long
 *	as the module is loaded.
 */
struct tracepoint *kvt_tracepoint(const char *name)
{
	struct kvt_tracepoint_search search = {
		.nb.notifier_call = kvt_tracepoint_module, .name = name,
	};

	for_each_kernel_tracepoint(kvt_tracepoint_visit, &search);
	if (!search.found && !register_tracepoint_module_notifier(&search.nb))
		unregister_tracepoint_module_notifier(&search.nb);
	return search.found;
}
EXPORT_SYMBOL_GPL(kvt_tracepoint);

/**
 * kvt_count() - how often a stress case repeats
 * @full: the count of the full run
 *
 * Return: @full scaled by the module's parameter, and down in User Mode Linux; at least 1.
 */
u64 kvt_count(u64 full)
{
	u64 count = full * scale / KVT_FULL_SCALE;

	if (IS_ENABLED(CONFIG_UML))
		count /= KVT_UML_SHARE;
	return max_t(u64, 1, count);
}
EXPORT_SYMBOL_GPL(kvt_count);

/**
 * kvt_print_length() - print how long a stress case is that draws no random numbers
 * @test: the running case
 * @what: what @count counts
 * @count: length of the run
 */
void kvt_print_length(struct kunit *test, const char *what, u64 count)
{
	kunit_info(test, "%llu %s", count, what);
}
EXPORT_SYMBOL_GPL(kvt_print_length);

/**
 * kvt_seed() - draw the seed of a stress case and print it
 * @test: the running case
 * @what: for the message: what @count counts
 * @count: for the message: length of the run
 *
 * Return: the seed, never 0.
 */
u32 kvt_seed(struct kunit *test, const char *what, u64 count)
{
	u32 s = seed ?: get_random_u32() | 1;

	kunit_info(test, "%llu %s, seed %u", count, what, s);
	return s;
}
EXPORT_SYMBOL_GPL(kvt_seed);

/**
 * kvt_rand() - draw a pseudo-random number, reproducible from the seed
 * @state: initially from kvt_seed(), advanced by each call
 *
 * Context: any.
 * Return: the number.
 */
u32 kvt_rand(u32 *state)
{
	u32 x = *state;

	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	*state = x;
	return x;
}
EXPORT_SYMBOL_GPL(kvt_rand);

/**
 * kvt_read_file() - read a small text file
 * @path: its absolute path
 * @buf: where to put it, ended with a NUL and without the last newline
 * @len: bytes in @buf
 *
 * Return: the length, or what open or read failed with.
 */
int kvt_read_file(const char *path, char *buf, size_t len)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	loff_t pos = 0;
	ssize_t n;

	if (IS_ERR(file))
		return PTR_ERR(file);
	n = kernel_read(file, buf, len - 1, &pos);
	filp_close(file, NULL);
	if (n < 0)
		return n;
	if (n && buf[n - 1] == '\n')
		n--;
	buf[n] = '\0';
	return n;
}
EXPORT_SYMBOL_GPL(kvt_read_file);

/*
 * Does what the file's own read method does, which takes user memory only. Returns the
 * length or -errno.
 */
static int read_open_file(struct file *file, char *buf, size_t len)
{
	struct kiocb kiocb;
	struct iov_iter iter;
	size_t pos = 0;
	ssize_t n;

	init_sync_kiocb(&kiocb, file);
	do {
		struct kvec vec = { .iov_base = buf + pos, .iov_len = len - 1 - pos };

		iov_iter_kvec(&iter, ITER_DEST, &vec, 1, vec.iov_len);
		n = seq_read_iter(&kiocb, &iter);
		if (n < 0)
			return n;
		pos += n;
	} while (n && pos < len - 1);
	buf[pos] = '\0';
	return pos;
}

/**
 * kvt_read_debugfs() - read a file of debugfs that is a seq_file
 * @path: its absolute path
 * @buf: where to put it, ended with a NUL
 * @len: bytes in @buf
 *
 * Return: the length, or what open or read failed with.
 */
int kvt_read_debugfs(const char *path, char *buf, size_t len)
{
	struct file *file = filp_open(path, O_RDONLY, 0);
	int ret;

	if (IS_ERR(file))
		return PTR_ERR(file);
	ret = debugfs_file_get(file->f_path.dentry);
	if (!ret) {
		ret = read_open_file(file, buf, len);
		debugfs_file_put(file->f_path.dentry);
	}
	filp_close(file, NULL);
	return ret;
}
EXPORT_SYMBOL_GPL(kvt_read_debugfs);

/**
 * kvt_write_file() - write a small text file that exists
 * @path: its absolute path
 * @text: what to write
 *
 * Return: 0, or what open or write failed with.
 */
int kvt_write_file(const char *path, const char *text)
{
	struct file *file = filp_open(path, O_WRONLY, 0);
	loff_t pos = 0;
	ssize_t n;

	if (IS_ERR(file))
		return PTR_ERR(file);
	n = kernel_write(file, text, strlen(text), &pos);
	filp_close(file, NULL);
	return n < 0 ? n : 0;
}
EXPORT_SYMBOL_GPL(kvt_write_file);

static void restore_file(void *arg)
{
	const char **restore = arg;

	kvt_write_file(restore[0], restore[1]);
}

/**
 * kvt_restore_file() - write a file when the case ends
 * @test: the running case
 * @path: its absolute path
 * @text: what to write; neither is copied
 */
void kvt_restore_file(struct kunit *test, const char *path, const char *text)
{
	const char **restore = kvt_zalloc(test, 2 * sizeof(*restore));

	restore[0] = path;
	restore[1] = text;
	kvt_defer(test, restore_file, restore);
}
EXPORT_SYMBOL_GPL(kvt_restore_file);

/**
 * kvt_set_file() - change a small text file until the case ends
 * @test: the running case
 * @path: its absolute path
 * @text: what to write
 */
void kvt_set_file(struct kunit *test, const char *path, const char *text)
{
	const size_t size = strlen(path) + 1;
	char *copy = kvt_zalloc(test, size), *old = kvt_zalloc(test, 64);

	strscpy(copy, path, size);
	KUNIT_ASSERT_GT_MSG(test, kvt_read_file(path, old, 64), 0, "%s", path);
	kvt_restore_file(test, copy, old);
	KUNIT_ASSERT_EQ_MSG(test, 0, kvt_write_file(path, text), "%s to %s", text, path);
}
EXPORT_SYMBOL_GPL(kvt_set_file);

/**
 * kvt_yield() - let other threads run, to be called in a loop that is busy for long
 *
 * On one CPU, cond_resched() does nothing until the clock ticks. The time of User Mode Linux is
 * virtual: it ticks little while something runs, and a sleep there costs nothing.
 *
 * Context: process.
 */
void kvt_yield(void)
{
	if (num_online_cpus() > 1)
		cond_resched();
	else
		usleep_range(100, 200);
}
EXPORT_SYMBOL_GPL(kvt_yield);

/* Kernels for one CPU do not have it; their grace periods are short anyway. */
#define RCU_EXPEDITED	"/sys/kernel/rcu_expedited"

static void unexpedite_rcu(void *arg)
{
	kvt_write_file(RCU_EXPEDITED, "0");
}

/**
 * kvt_expedite_rcu() - expedite grace periods until the case ends
 * @test: the running case
 */
void kvt_expedite_rcu(struct kunit *test)
{
	int err = kvt_write_file(RCU_EXPEDITED, "1");

	if (IS_ENABLED(CONFIG_TINY_RCU) && err == -ENOENT)
		return;
	KUNIT_ASSERT_EQ(test, 0, err);
	kvt_defer(test, unexpedite_rcu, NULL);
}
EXPORT_SYMBOL_GPL(kvt_expedite_rcu);

/**
 * kvt_fail_nth() - let an allocation of this thread fail
 * @n: the one to fail, the next one being 1
 */
void kvt_fail_nth(unsigned int n)
{
#ifdef CONFIG_FAULT_INJECTION
	WRITE_ONCE(current->fail_nth, n);
#endif
}
EXPORT_SYMBOL_GPL(kvt_fail_nth);

/**
 * kvt_failed_nth() - stop injecting
 *
 * Return: true if an allocation has failed since kvt_fail_nth().
 */
bool kvt_failed_nth(void)
{
	bool hit = false;

#ifdef CONFIG_FAULT_INJECTION
	hit = !READ_ONCE(current->fail_nth);
	WRITE_ONCE(current->fail_nth, 0);
#endif
	return hit;
}
EXPORT_SYMBOL_GPL(kvt_failed_nth);

/**
 * kvt_need_injection() - skip the case where allocations cannot be made to fail
 * @test: the running case; or, as the .init of a suite, each of its cases
 *
 * Return: 0.
 */
int kvt_need_injection(struct kunit *test)
{
	void *p;

	if (!IS_ENABLED(CONFIG_FAILSLAB))
		kunit_skip(test, "the kernel has no CONFIG_FAILSLAB");
	kvt_fail_nth(1);
	p = kmalloc(64, GFP_KERNEL);
	kvt_failed_nth();
	kfree(p);
	if (p)
		kunit_skip(test, "failslab/ignore-gfp-wait is not N");
	return 0;
}
EXPORT_SYMBOL_GPL(kvt_need_injection);

MODULE_DESCRIPTION("kverbs KUnit helpers and mock device");
MODULE_LICENSE("GPL");
