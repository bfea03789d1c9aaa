// SPDX-License-Identifier: GPL-2.0-only
/*
 * All waiters are in one list, for there are few at any time: those who destroy or modify
 * something that an engine is about to leave.
 *
 * Lock protocol: emu_wait_lock guards the list, and keeps the entries in it from going. It is
 * raw, held for a few instructions, and nothing but the locks of the scheduler is taken
 * under it. Whoever wakes uses only the address of what has changed, which may be freed.
 */
#include <linux/spinlock.h>

#include "wait.h"

static DEFINE_RAW_SPINLOCK(emu_wait_lock);
static LIST_HEAD(emu_waiters);

/* Use emu_wait_event(). */
void emu_wait_begin(struct emu_waiter *waiter, const void *var)
{
	waiter->var = var;
	waiter->task = current;
	raw_spin_lock_irq(&emu_wait_lock);
	list_add_tail(&waiter->node, &emu_waiters);
	raw_spin_unlock_irq(&emu_wait_lock);
}

void emu_wait_end(struct emu_waiter *waiter)
{
	__set_current_state(TASK_RUNNING);
	raw_spin_lock_irq(&emu_wait_lock);
	list_del(&waiter->node);
	raw_spin_unlock_irq(&emu_wait_lock);
}

/**
 * emu_wake() - wake those who wait for a change
 * @var: address of what has changed, by an operation that is a full barrier
 *
 * Context: Any but NMI.
 */
void emu_wake(const void *var)
{
	struct emu_waiter *waiter;
	unsigned long flags;

	if (list_empty_careful(&emu_waiters))
		return;
	raw_spin_lock_irqsave(&emu_wait_lock, flags);
	list_for_each_entry(waiter, &emu_waiters, node) {
		if (waiter->var == var)
			wake_up_process(waiter->task);
	}
	raw_spin_unlock_irqrestore(&emu_wait_lock, flags);
}
