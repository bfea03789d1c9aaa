// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes the n-th allocation of a module's init function fail, but none of the module
 * loader's.
 *
 * A task writes n to the parameter "nth" and inserts a module. While that module's init
 * function runs, the task's fail_nth is n. Afterwards "nth" reads as the rest of the count:
 * 0 if the n-th allocation was made and failed; more if there were fewer allocations; -1 if
 * the function was not called. It works once: the next module is inserted undisturbed.
 *
 * Only the task that armed it touches the rest of @armed, in its own calls.
 */
#include <linux/init.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/pid.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#define NOT_CALLED	-1

static struct {
	pid_t task;
	unsigned int nth;
	int left;
} armed = { .left = NOT_CALLED };

static bool armed_here(void)
{
	return READ_ONCE(armed.task) == task_pid_nr(current);
}

static void init_starts(void *data, initcall_t func)
{
	if (armed_here())
		WRITE_ONCE(current->fail_nth, armed.nth);
}

static void init_ends(void *data, initcall_t func, int err)
{
	if (!armed_here())
		return;
	armed.left = READ_ONCE(current->fail_nth);
	WRITE_ONCE(current->fail_nth, 0);
	WRITE_ONCE(armed.task, 0);
}

static int arm(const char *text, const struct kernel_param *param)
{
	unsigned int nth;
	int err = kstrtouint(text, 0, &nth);

	if (err)
		return err;
	if (!nth || nth > INT_MAX)
		return -ERANGE;
	armed.nth = nth;
	armed.left = NOT_CALLED;
	WRITE_ONCE(armed.task, task_pid_nr(current));
	return 0;
}

static int tell_left(char *text, const struct kernel_param *param)
{
	WRITE_ONCE(armed.task, 0);
	return sysfs_emit(text, "%d\n", armed.left);
}

static const struct kernel_param_ops nth_ops = { .set = arm, .get = tell_left };
module_param_cb(nth, &nth_ops, NULL, 0600);
MODULE_PARM_DESC(nth, "written: which allocation of the next module's init fails; read: what is left");

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} hooks[] = {
	{ "initcall_start", init_starts },
	{ "initcall_finish", init_ends },
};

static void find_hooks(struct tracepoint *tp, void *data)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(hooks); i++)
		if (!strcmp(tp->name, hooks[i].name))
			hooks[i].tp = tp;
}

static void unhook(int count)
{
	while (count--)
		tracepoint_probe_unregister(hooks[count].tp, hooks[count].probe, NULL);
	tracepoint_synchronize_unregister();
}

static int __init initfail_init(void)
{
	int i, err = 0;

	for_each_kernel_tracepoint(find_hooks, NULL);
	for (i = 0; i < ARRAY_SIZE(hooks) && !err; i++)
		err = hooks[i].tp ? tracepoint_probe_register(hooks[i].tp, hooks[i].probe, NULL) :
				    -ENOENT;
	if (err)
		unhook(i - 1);
	return err;
}
module_init(initfail_init);

static void __exit initfail_exit(void)
{
	unhook(ARRAY_SIZE(hooks));
}
module_exit(initfail_exit);

MODULE_DESCRIPTION("Fails the n-th allocation of a module's init function");
MODULE_LICENSE("GPL");
