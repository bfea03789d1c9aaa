// SPDX-License-Identifier: GPL-2.0-only
/*
 * Seeded bugs; the parameter "fault" selects one. Each must turn a run of the test
 * harness red; "none" must leave it green.
 */
#include <linux/completion.h>
#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/kdebug.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *fault = "none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault,
		 "none, leak, uaf, locks, atomic, race, hang, breakpoints, panic, warn, init_good, init_leak, init_left, init_errno or init_deaf");

static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

/* Large, so that no stray value looks like the address. */
static int leak(void)
{
	int i;

	for (i = 0; i < 16; i++) {
		void *lost = kmalloc(3000, GFP_KERNEL);

		if (!lost)
			return -ENOMEM;
		OPTIMIZER_HIDE_VAR(lost);
	}
	return 0;
}

static int use_after_free(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	if (!p)
		return -ENOMEM;
	kfree(p);
	OPTIMIZER_HIDE_VAR(p);
	return READ_ONCE(p[8]) & 0;
}

static int lock_inversion(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);

	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
	return 0;
}

static int sleep_in_atomic(void)
{
	static DEFINE_SPINLOCK(lock);

	spin_lock(&lock);
	might_sleep();
	spin_unlock(&lock);
	return 0;
}

/* Often enough that some accesses are watched. */
#define RACES	2000000

static unsigned long raced;

static int race_counter(void *over)
{
	int i;

	for (i = 0; i < RACES; i++) {
		raced++;
		barrier();
		cond_resched();
	}
	kthread_complete_and_exit(over, 0);
}

/* Two threads count without synchronisation. */
static int race(void)
{
	static struct completion over[2];
	struct task_struct *task;
	int i, ret = 0;

	for (i = 0; i < ARRAY_SIZE(over) && !ret; i++) {
		init_completion(&over[i]);
		task = kthread_run(race_counter, &over[i], "selftest/%d", i);
		ret = PTR_ERR_OR_ZERO(task);
	}
	while (!ret && i--)
		wait_for_completion(&over[i]);
	return ret;
}

static int hang(void)
{
	for (;;)
		cond_resched();
	return 0;
}

#ifdef CONFIG_X86
static int skip_breakpoint(struct notifier_block *nb, unsigned long event, void *data)
{
	return event == DIE_INT3 ? NOTIFY_STOP : NOTIFY_DONE;
}

/* These breakpoints really are in memory: not the emulator's fault. */
static int breakpoints(void)
{
	static struct notifier_block nb = { .notifier_call = skip_breakpoint };

	register_die_notifier(&nb);
	for (;;) {
		asm volatile("int3");
		cond_resched();
	}
	return 0;
}
#else
static int breakpoints(void)
{
	return -EOPNOTSUPP;
}
#endif

/*
 * If its third allocation, or a later one, fails, it calls @wrong and frees what it has.
 * Not exactly the third, because the kernel's own allocations shift the count.
 */
static int fail_late(int ret, int (*wrong)(void))
{
	void *things[12] = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(things); i++) {
		things[i] = kmalloc(64, GFP_KERNEL);
		if (!things[i])
			break;
	}
	if (i >= 2 && i < ARRAY_SIZE(things) && wrong)
		wrong();
	if (i < 2)
		ret = -ENOMEM;
	if (i == ARRAY_SIZE(things))
		ret = 0;
	while (i--)
		kfree(things[i]);
	return ret;
}

static int leave_directory(void)
{
	return PTR_ERR_OR_ZERO(debugfs_create_dir("kverbs_selftest_left", NULL));
}

static int init_good(void)
{
	return fail_late(-ENOMEM, NULL);
}

static int init_leak(void)
{
	return fail_late(-ENOMEM, leak);
}

static int init_left(void)
{
	return fail_late(-ENOMEM, leave_directory);
}

static int init_errno(void)
{
	return fail_late(-EIO, NULL);
}

static int init_deaf(void)
{
	kfree(kmalloc(64, GFP_KERNEL));
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} faults[] = {
	{ "leak", leak },
	{ "uaf", use_after_free },
	{ "locks", lock_inversion },
	{ "atomic", sleep_in_atomic },
	{ "race", race },
	{ "hang", hang },
	{ "breakpoints", breakpoints },
	{ "init_good", init_good },
	{ "init_leak", init_leak },
	{ "init_left", init_left },
	{ "init_errno", init_errno },
	{ "init_deaf", init_deaf },
};

static int __init selftest_init(void)
{
	int i;

	if (!strcmp(fault, "none"))
		return 0;
	if (!strcmp(fault, "panic"))
		panic("asked for by the self-test");
	WARN(!strcmp(fault, "warn"), "asked for by the self-test");
	for (i = 0; i < ARRAY_SIZE(faults); i++)
		if (!strcmp(fault, faults[i].name))
			return faults[i].run();
	return strcmp(fault, "warn") ? -EINVAL : 0;
}
module_init(selftest_init);

static void __exit selftest_exit(void)
{
}
module_exit(selftest_exit);

MODULE_DESCRIPTION("Seeded bugs that the test harness must notice");
MODULE_LICENSE("GPL");
