/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Deferral of the callbacks of CQs, QPs and SRQs; see notify.c.
 */
#ifndef KVERBS_CQ_NOTIFY_H
#define KVERBS_CQ_NOTIFY_H

#include <linux/irq_work.h>
#include <linux/rcupdate.h>
#include <rdma/ib_verbs.h>

void ib_notify_init(struct ib_notify *notify, void (*work)(struct irq_work *work));
void ib_notify_raise_event(struct ib_notify *notify, const struct ib_device *device,
			   enum ib_event_type event, unsigned long events);
void ib_notify_events(struct ib_notify *notify, const struct ib_event *event,
		      void (*handler)(struct ib_event *event, void *context), void *context);
void ib_notify_quiesce(struct ib_notify *notify);
void ib_notify_settle(struct ib_notify *notify, enum ib_event_type event);
void ib_notify_fence(struct ib_notify *notify);
void ib_notify_revive(struct ib_notify *notify);

/*
 * Frees an object whose callbacks have ended, once no irq_work touches it any more: after a
 * grace period, of tasks with PREEMPT_RT. @free is the function that does it there.
 */
#define ib_notify_free(object, free)					\
do {									\
	if (IS_ENABLED(CONFIG_PREEMPT_RT))				\
		call_rcu_tasks(&(object)->rcu, free);			\
	else								\
		kfree_rcu(object, rcu);					\
} while (0)

#endif
