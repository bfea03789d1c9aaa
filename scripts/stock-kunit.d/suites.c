// SPDX-License-Identifier: GPL-2.0-only
/*
 * The suites of a module, for a kernel that was built without KUnit, and so has not looked at them.
 *
 * One module with suites at a time: it runs them while it is inserted, and is removed then. Its
 * notifier is called by one process at a time, that which inserts or removes it.
 */

#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/umh.h>
#include <kunit/test.h>
#include "suites.h"

#define MAX_SUITES	32

/* What kunit_test_suites() calls its array, up to a number. */
#define ARRAY_NAME	"__UNIQUE_ID_array"

static struct kunit_suite *suites[MAX_SUITES];
static struct kunit_module now;

/* The module's own list of its symbols is the only one with static ones that modules can read. */
static unsigned int find_suites(struct module *mod)
{
	struct mod_kallsyms *syms;
	unsigned int i, n = 0;

	rcu_read_lock_sched();
	syms = rcu_dereference_sched(mod->kallsyms);
	for (i = 0; i < syms->num_symtab && n < MAX_SUITES; i++)
		if (strstarts(syms->strtab + syms->symtab[i].st_name, ARRAY_NAME))
			suites[n++] = *(struct kunit_suite **)syms->symtab[i].st_value;
	rcu_read_unlock_sched();
	WARN(n == MAX_SUITES, "%s: more suites than KUnit here has room for\n", mod->name);
	return n;
}

/**
 * kunit_module_of() - the suites of a module that comes or goes
 * @mod: the module
 * @state: MODULE_STATE_LIVE finds them, any other state has what was found
 *
 * Context: the notifier of modules.
 * Return: its suites, or none.
 */
struct kunit_module *kunit_module_of(struct module *mod, unsigned long state)
{
	static struct kunit_module none;
	unsigned int n;

	if (state != MODULE_STATE_LIVE)
		return mod == now.mod ? &now : &none;
	n = find_suites(mod);
	if (!n)
		return &none;
	now = (struct kunit_module){ .mod = mod, .kunit_suites = suites, .num_kunit_suites = n };
	return &now;
}

static int remember(struct subprocess_info *info, struct cred *new)
{
	struct task_struct **task = info->data;

	*task = get_task_struct(current);
	return 0;
}

/**
 * kunit_new_mm() - memory for a case
 *
 * mm_alloc() is not exported there: it is that of a process that has ended.
 *
 * Context: may sleep.
 * Return: the memory, with the only reference, or NULL.
 */
struct mm_struct *kunit_new_mm(void)
{
	char *argv[4] = { "/bin/busybox", "sleep", "10000", NULL };
	char *envp[1] = { NULL };
	struct task_struct *task = NULL;
	struct subprocess_info *info;
	struct mm_struct *mm = NULL;

	info = call_usermodehelper_setup(argv[0], argv, envp, GFP_KERNEL, remember, NULL, &task);
	if (info && !call_usermodehelper_exec(info, UMH_WAIT_EXEC))
		mm = get_task_mm(task);
	if (!task)
		return NULL;
	send_sig(SIGKILL, task, 1);
	put_task_struct(task);
	while (mm && atomic_read(&mm->mm_users) > 1)
		schedule_timeout_uninterruptible(1);
	return mm;
}
