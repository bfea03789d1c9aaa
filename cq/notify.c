// SPDX-License-Identifier: GPL-2.0-only
/*
 * Deferral of callbacks.
 *
 * Consumers are promised that no handler runs inside one of their verbs calls, and that the
 * completion handler of a CQ never runs twice at a time. A driver reports from any context,
 * often from inside ib_post_send(). Each report becomes a bit in the object's state word,
 * and an irq_work, which runs once interrupts are enabled, calls the handlers.
 *
 * The state word holds the bits that are due, and
 *
 *   IB_NOTIFY_RUNNING	the irq_work is calling handlers
 *   IB_NOTIFY_DEAD	the object is being destroyed: nothing is called any more
 *
 * The reporter that changes the word from 0 queues the irq_work. The irq_work takes all
 * bits that are due and leaves RUNNING in their place; if bits are set meanwhile, it queues
 * itself again at the end, so that a busy device does not keep it in hard interrupt. Hence
 * it is queued or running at most once at a time, which serialises the handlers: the
 * irq_work of one object could otherwise run on two CPUs at once.
 *
 * ib_notify_quiesce() marks the object dead and waits for the irq_work. A driver may go on
 * reporting until its destroy method returns. By then any thread that was about to queue
 * the irq_work has done so, and ib_notify_fence() waits for that run too.
 *
 * irq_work_sync() alone is enough for neither. After a CPU has called our function, it marks
 * the irq_work as idle if the flags are what they were when it began. But they are the same if
 * another CPU has claimed the irq_work since, and is in our function now: then it is marked
 * idle too early. So RUNNING tells whether handlers are being called; and because of the CPU
 * that has yet to write the mark, objects are freed a grace period later: interrupts are RCU
 * readers. With PREEMPT_RT, irq_works run in threads, which are not: there, ib_notify_free()
 * waits for a grace period of RCU tasks, which such a thread holds up until it sleeps.
 */
#include <linux/export.h>
#include <linux/irq_work.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait_bit.h>
#include <kverbs/completion.h>
#include <kverbs/delay.h>

#include "cq.h"
#include "notify.h"

#define IB_NOTIFY_RUNNING	BIT(0)
#define IB_NOTIFY_DEAD		BIT(1)
#define IB_NOTIFY_COMP		BIT(2)
#define IB_NOTIFY_EVENT(event)	BIT(3 + (event))
#define IB_NOTIFY_EVENTS(due)	((due) >> 3)

#define CQ_EVENTS	BIT(IB_EVENT_CQ_ERR)

/* Any context, NMI included. */
static void ib_notify_raise(struct ib_notify *notify, int bit)
{
	if (atomic_fetch_or(bit, &notify->state))
		return;
	kverbs_delay("ib_notify_raise");
	irq_work_queue(&notify->work);
}

/* Whether @event is among @events; if not, the log says so. Any context, NMI included. */
static bool ib_notify_is_event(const struct ib_device *device, enum ib_event_type event,
			       unsigned long events)
{
	if (likely((unsigned int)event < BITS_PER_LONG && (events & BIT(event))))
		return true;
	ibdev_warn_ratelimited(device, "event %d (%s) dropped: invalid for this object type\n",
			       event, ib_event_msg(event));
	return false;
}

/**
 * ib_notify_raise_event() - have an event handler called
 * @notify: of the object
 * @device: its device
 * @event: the event
 * @events: a bit for each event that such an object may have; others are dropped with a warning
 *
 * Context: Any, NMI included.
 */
void ib_notify_raise_event(struct ib_notify *notify, const struct ib_device *device,
			   enum ib_event_type event, unsigned long events)
{
	if (ib_notify_is_event(device, event, events))
		ib_notify_raise(notify, IB_NOTIFY_EVENT(event));
}

/* Returns the bits that are due, or 0 if no handler may be called. */
static int ib_notify_begin(struct ib_notify *notify)
{
	int due = atomic_read(&notify->state);

	do {
		/* Perhaps nothing is due: not only reporters queue the irq_work. */
		if (!due || (due & (IB_NOTIFY_DEAD | IB_NOTIFY_RUNNING)))
			return 0;
	} while (!atomic_try_cmpxchg(&notify->state, &due, IB_NOTIFY_RUNNING));
	return due;
}

static void ib_notify_end(struct ib_notify *notify)
{
	if (atomic_cmpxchg(&notify->state, IB_NOTIFY_RUNNING, 0) == IB_NOTIFY_RUNNING)
		return;
	/* Either more is due; or the object is dead, and ib_notify_quiesce() is to be woken. */
	if (!(atomic_fetch_andnot(IB_NOTIFY_RUNNING, &notify->state) & IB_NOTIFY_DEAD))
		irq_work_queue(&notify->work);
	else
		wake_up_var(&notify->state);
}

/* Calls an object's handler, if it has one, for each event that is due. */
static void ib_notify_call(const struct ib_event *event, int due,
			   void (*handler)(struct ib_event *event, void *context), void *context)
{
	unsigned long events = IB_NOTIFY_EVENTS(due);
	struct ib_event one;
	int bit;

	if (!handler)
		return;
	for_each_set_bit(bit, &events, BITS_PER_LONG) {
		one = *event;
		one.event = bit;
		handler(&one, context);
	}
}

/* For CQs without an event handler, such as those of ib_alloc_cq(). */
static void ib_notify_log_cq_event(struct ib_event *event, void *context)
{
	struct ib_cq *cq = event->element.cq;

	ibdev_err(cq->device, "%s: CQ %u (%d entries) failed: %s\n", cq->res.kern_name, cq->res.id,
		  cq->cqe, ib_event_msg(event->event));
}

static void ib_notify_cq_work(struct irq_work *work)
{
	struct ib_cq *cq = container_of(work, struct ib_cq, notify.work);
	struct ib_event event = { .device = cq->device, .element.cq = cq };
	int due = ib_notify_begin(&cq->notify);

	if (!due)
		return;
	if (due & IB_NOTIFY_COMP) {
		if (cq->lane)
			ib_cq_wake(cq);
		else if (cq->comp_handler)
			cq->comp_handler(cq, cq->cq_context);
	}
	if (IB_NOTIFY_EVENTS(due))
		ib_cq_wake_waiters_done(cq);
	ib_notify_call(&event, due, cq->event_handler ?: ib_notify_log_cq_event, cq->cq_context);
	ib_notify_end(&cq->notify);
}

/**
 * ib_notify_events() - call the event handler of an object that has no other callbacks
 * @notify: of the object; its irq_work runs
 * @event: an event with the device and the object
 * @handler: the handler, or NULL
 * @context: what the handler gets
 */
void ib_notify_events(struct ib_notify *notify, const struct ib_event *event,
		      void (*handler)(struct ib_event *event, void *context), void *context)
{
	int due = ib_notify_begin(notify);

	if (!due)
		return;
	ib_notify_call(event, due, handler, context);
	ib_notify_end(notify);
}

/* @work calls the object's handlers. */
void ib_notify_init(struct ib_notify *notify, void (*work)(struct irq_work *work))
{
	init_irq_work(&notify->work, work);
	atomic_set(&notify->state, 0);
}

void ib_notify_init_cq(struct ib_cq *cq)
{
	ib_notify_init(&cq->notify, ib_notify_cq_work);
}

/**
 * ib_notify_quiesce() - end the callbacks of an object
 * @notify: of the object
 *
 * On return no handler of the object runs, and none will.
 *
 * Context: Process context.
 */
void ib_notify_quiesce(struct ib_notify *notify)
{
	atomic_or(IB_NOTIFY_DEAD, &notify->state);
	irq_work_sync(&notify->work);
	/* acquire: all that the handlers did is done */
	wait_var_event(&notify->state,
		       !(atomic_read_acquire(&notify->state) & IB_NOTIFY_RUNNING));
}

/**
 * ib_notify_settle() - wait until an event of an object has been delivered
 * @notify: of the object, which is not being destroyed
 * @event: one that its driver does not report any more
 *
 * On return the handlers have been called for every such event reported before.
 *
 * Context: Process, may sleep.
 */
void ib_notify_settle(struct ib_notify *notify, enum ib_event_type event)
{
	int due = IB_NOTIFY_EVENT(event) | IB_NOTIFY_RUNNING;
	int state;

	/* acquire: all that the handlers did is done */
	while ((state = atomic_read_acquire(&notify->state)) & due) {
		/*
		 * A reporter may have set a bit, and been preempted before it queued the
		 * irq_work.
		 */
		if (!(state & IB_NOTIFY_RUNNING))
			irq_work_queue(&notify->work);
		/*
		 * Where irq_work_sync() sleeps, only one thread at a time may: a process can have
		 * several that modify a QP. And the thread that runs the irq_work with PREEMPT_RT
		 * may be on this CPU, and have a lower priority.
		 */
		if (IS_ENABLED(CONFIG_PREEMPT_RT) || IS_ENABLED(CONFIG_UML)) {
			schedule_timeout_uninterruptible(1);
		} else {
			irq_work_sync(&notify->work);
			cpu_relax();
		}
	}
}

/*
 * Call this after the driver has destroyed the object. A grace period later its memory is
 * not used any more.
 */
void ib_notify_fence(struct ib_notify *notify)
{
	irq_work_sync(&notify->work);
}

static void ib_notify_cq_rcu(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct ib_cq, rcu));
}

void ib_notify_free_cq(struct ib_cq *cq)
{
	ib_notify_free(cq, ib_notify_cq_rcu);
}

/* Undoes ib_notify_quiesce() after the driver has refused to destroy the object. */
void ib_notify_revive(struct ib_notify *notify)
{
	if (atomic_fetch_andnot(IB_NOTIFY_DEAD, &notify->state) & ~IB_NOTIFY_DEAD)
		irq_work_queue(&notify->work);
}

/**
 * ib_cq_notify() - report that an armed CQ has a completion
 * @cq: the CQ
 *
 * Drivers call this once for each time that their req_notify_cq method armed
 * the CQ, when the completion that fulfils the condition can be polled. The
 * consumer's handler runs later, never within this call, and never twice at a
 * time. A CQ made by ib_alloc_cq() is scheduled for polling directly.
 *
 * A driver must not call this once its destroy_cq method has returned.
 *
 * Context: Any, NMI included if irq_work is NMI-safe on the architecture. Not under a lock
 * of the scheduler or of a workqueue: outside NMI, scheduling a CQ for polling may wake a
 * thread or queue a work item.
 */
void ib_cq_notify(struct ib_cq *cq)
{
	/* With PREEMPT_RT, what wakes the waiters of IB_POLL_DIRECT may sleep: not here. */
	if (likely(cq->lane && !in_nmi() &&
		   !(IS_ENABLED(CONFIG_PREEMPT_RT) && ib_cq_is_direct(cq))))
		ib_cq_wake(cq);
	else
		ib_notify_raise(&cq->notify, IB_NOTIFY_COMP);
}
EXPORT_SYMBOL_GPL(ib_cq_notify);

/**
 * ib_cq_notify_event() - report an asynchronous event of a CQ
 * @cq: the CQ
 * @event: %IB_EVENT_CQ_ERR; others are dropped with a warning
 *
 * The consumer's event handler runs later. An event reported again before that is delivered
 * once. Drains of QPs on the CQ give up, so after this call the driver must add no
 * completion to the CQ, except ones that it was already writing with preemption disabled.
 *
 * A driver must not call this once its destroy_cq method has returned.
 *
 * Context: Any, NMI included.
 */
void ib_cq_notify_event(struct ib_cq *cq, enum ib_event_type event)
{
	if (!ib_notify_is_event(cq->device, event, CQ_EVENTS))
		return;
	/* Does not wrap to 0, which means that the CQ has not failed. */
	atomic_add_unless(&cq->stats.errors, 1, -1);
	ib_notify_raise(&cq->notify, IB_NOTIFY_EVENT(event));
}
EXPORT_SYMBOL_GPL(ib_cq_notify_event);
