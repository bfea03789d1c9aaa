// SPDX-License-Identifier: GPL-2.0-only
/*
 * The waiters: threads that destroy or modify something that an engine is still using. They are in
 * a hash table of lists, by the address of what they wait for, because a process may have
 * thousands of them.
 *
 * Lock protocol: the lock of a list guards it, and keeps its entries from being freed. It is
 * raw, held for a few instructions, and nothing but the locks of the scheduler is taken under it.
 * emu_wake() does not access the object at the address, so that may have been freed.
 */
#include <linux/hash.h>
#include <linux/spinlock.h>

#include "wait.h"

#define EMU_WAIT_BITS		8

static struct emu_wait_list {
	raw_spinlock_t lock;
	struct hlist_head head;
} emu_wait_lists[1 << EMU_WAIT_BITS] = {
	[0 ... (1 << EMU_WAIT_BITS) - 1] = {
		.lock = __RAW_SPIN_LOCK_UNLOCKED(emu_wait_lists.lock),
	},
};

static struct emu_wait_list *emu_wait_list(const void *var)
{
	return &emu_wait_lists[hash_ptr(var, EMU_WAIT_BITS)];
}

/* Use emu_wait_event(). */
void emu_wait_begin(struct emu_waiter *waiter, const void *var)
{
	struct emu_wait_list *list = emu_wait_list(var);

	waiter->var = var;
	waiter->task = current;
	raw_spin_lock_irq(&list->lock);
	hlist_add_head(&waiter->node, &list->head);
	raw_spin_unlock_irq(&list->lock);
}

void emu_wait_end(struct emu_waiter *waiter)
{
	struct emu_wait_list *list = emu_wait_list(waiter->var);

	__set_current_state(TASK_RUNNING);
	raw_spin_lock_irq(&list->lock);
	hlist_del(&waiter->node);
	raw_spin_unlock_irq(&list->lock);
}

/**
 * emu_wake() - wake those who wait for a change
 * @var: address of what has changed, by an operation that is a full barrier
 *
 * Context: Any but NMI.
 */
void emu_wake(const void *var)
{
	struct emu_wait_list *list = emu_wait_list(var);
	struct emu_waiter *waiter;
	unsigned long flags;

	if (hlist_empty(&list->head))
		return;
	raw_spin_lock_irqsave(&list->lock, flags);
	hlist_for_each_entry(waiter, &list->head, node) {
		if (waiter->var == var)
			wake_up_process(waiter->task);
	}
	raw_spin_unlock_irqrestore(&list->lock, flags);
}
