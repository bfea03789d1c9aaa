/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waiting for an engine.
 *
 * Engines run with preemption off, or in hard interrupt. With PREEMPT_RT, the lock of a wait queue
 * sleeps, so engines cannot call wake_up_var(). The lock here is raw, and does not sleep.
 */
#ifndef KVERBS_EMU_WAIT_H
#define KVERBS_EMU_WAIT_H

#include <linux/list.h>
#include <linux/sched.h>

/**
 * struct emu_waiter - a thread that waits, on its stack
 * @node: link in one of the lists of waiters
 * @var: address of what it waits for
 * @task: the thread
 */
struct emu_waiter {
	struct hlist_node node;
	const void *var;
	struct task_struct *task;
};

void emu_wait_begin(struct emu_waiter *waiter, const void *var);
void emu_wait_end(struct emu_waiter *waiter);
void emu_wake(const void *var);

/**
 * emu_wait_event() - wait until a condition holds
 * @var: address that emu_wake() is called with after a change
 * @condition: evaluated before each sleep, perhaps often
 *
 * Context: Process, may sleep.
 */
#define emu_wait_event(var, condition)					\
do {									\
	struct emu_waiter __waiter;					\
									\
	might_sleep();							\
	if (condition)							\
		break;							\
	emu_wait_begin(&__waiter, var);					\
	for (;;) {							\
		/* Full barrier, pairs with the one before emu_wake() */ \
		set_current_state(TASK_UNINTERRUPTIBLE);		\
		if (condition)						\
			break;						\
		schedule();						\
	}								\
	emu_wait_end(&__waiter);					\
} while (0)

#endif
