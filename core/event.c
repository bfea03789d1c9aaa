// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous events of a device, from its driver to the consumers.
 *
 * Lock protocol: only the device's work item calls the handlers. They are never called in the
 * context of the driver, which may dispatch an event inside a consumer's own call or with
 * locks held. A copy of the event waits in a llist, so that ib_dispatch_event() takes no lock
 * and may be called in any context; one work item and a FIFO keep the order. For an event of
 * a port the work first refreshes the caches, which takes the cache_lock, and calls the
 * device's port_notifiers, whose lock for reading is held meanwhile: kverbs_ca then rebuilds
 * its answer to queries. Calling the handlers takes no lock; kverbs_ca's, which passes events
 * to processes, is one of them.
 *
 * If there is no memory to read a port again, the event is deferred, and so are later events
 * of the port, to keep their order. After some tries they are delivered nevertheless. Only
 * the work item touches the deferred events.
 *
 * No event is lost for lack of memory. If a copy cannot be allocated, a reserve takes its
 * place in the queue; there is one for each type and port. If the reserve is in the queue
 * already, it is queued and delivered a second time, behind the events that wait then:
 * events of one kind may be merged, but one is delivered after the last of them was
 * dispatched.
 *
 * Something that queries report may change without an event. Then the work item reads iWARP ports
 * again, and calls the port_notifiers. One flag is enough for any number of changes. For want of
 * memory it tries again until it succeeds: meanwhile the GID of such a port may keep a network
 * device that is to go, and the kernel says that it waits for that.
 *
 * An NMI can neither allocate memory nor queue work: the code that it interrupted may hold
 * the locks for that. The event uses a reserve, and an irq_work queues the work item.
 *
 * The list of handlers is under handlers_lock, which is not held while a handler runs: the work
 * item has its own place in the list meanwhile, and says which handler it calls. Whoever takes
 * a handler off the list waits until that handler returns, and for no other. A handler must not
 * sleep; but many were written for a midlayer that lets them, so it runs under nothing that
 * would make the kernel's warning name the midlayer. The contract checker names the handler.
 *
 * events_on is set before the caches are filled for the first time and cleared after the
 * last client has gone; synchronize_rcu() then ensures that no more events are queued.
 * ib_events_stop() waits for what was queued in the order in which one step leads to the
 * next: the irq_work, then the work items.
 */
#include <linux/atomic.h>
#include <linux/export.h>
#include <linux/irq_work.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <kverbs/completion.h>

#include "contract/contract.h"
#include "contract/device_priv.h"
#include "contract/registry.h"
#include "contract/trace.h"
#include "device.h"
#include "port/port.h"

/* When refreshing a port fails with -ENOMEM: deferred events are delivered after two seconds. */
#define RETRY_DELAY	(HZ / 4)
#define RETRIES		8

/**
 * ib_register_event_handler() - ask for the events of a device
 * @event_handler: set up with INIT_IB_EVENT_HANDLER()
 *
 * The handler may be called before this returns. It runs in a work item. It must not sleep:
 * later events, and whoever unregisters it, wait for it. It may receive events that were
 * dispatched earlier.
 *
 * Context: Any but NMI. The device is one that the caller got in add() or holds by
 *	    ib_device_try_get().
 */
void ib_register_event_handler(struct ib_event_handler *event_handler)
{
	struct ib_device_priv *priv = ib_priv(event_handler->device);
	unsigned long flags;

	ib_contract_call(event_handler->device, NULL, "ib_register_event_handler", _RET_IP_);
	spin_lock_irqsave(&priv->handlers_lock, flags);
	list_add_tail(&event_handler->list, &priv->handlers);
	spin_unlock_irqrestore(&priv->handlers_lock, flags);
}
EXPORT_SYMBOL(ib_register_event_handler);

static bool event_handler_returned(const struct ib_device_priv *priv,
				   const struct ib_event_handler *handler)
{
	/* acquire: pairs with the release in event_next_handler(); all that it did is done */
	return smp_load_acquire(&priv->running) != handler;
}

/* Waits until the work item has left a handler that is off the list. */
static void event_wait_handler(struct ib_device_priv *priv, struct ib_event_handler *handler)
{
	while (!wait_event_timeout(priv->handler_returned, event_handler_returned(priv, handler),
				   ib_wait_warn_timeout()))
		ibdev_warn(handler->device,
			   "unregistering an event handler: waiting for %ps to return\n",
			   handler->handler);
}

/**
 * ib_unregister_event_handler() - stop receiving the events of a device
 * @event_handler: a registered handler
 *
 * On return, the handler is not running and will not be called again. The call waits for this
 * handler only; if that takes long, the log says so each wait_warn_ms (a module parameter). If
 * the caller may not sleep, or is itself called by an event handler, there is a warning: the
 * handler is not called for later events, but may still be running.
 *
 * Context: Process, may sleep; not from an event handler.
 */
void ib_unregister_event_handler(struct ib_event_handler *event_handler)
{
	struct ib_device_priv *priv = ib_priv(event_handler->device);
	unsigned long flags;

	ib_contract_call(event_handler->device, NULL, "ib_unregister_event_handler", _RET_IP_);
	spin_lock_irqsave(&priv->handlers_lock, flags);
	list_del(&event_handler->list);
	spin_unlock_irqrestore(&priv->handlers_lock, flags);
	/* An event handler would wait for itself, and the device's removal for it. */
	if (!ib_called_atomic(event_handler->device, "unregisters an event handler",
			      __builtin_return_address(0)))
		event_wait_handler(priv, event_handler);
}
EXPORT_SYMBOL(ib_unregister_event_handler);

static void event_handlers_for_each(struct ib_device *dev, u64 until,
				    void (*visit)(void *context, unsigned long *site),
				    void *context)
{
	struct ib_device_priv *priv = ib_priv(dev);
	struct ib_event_handler *handler;
	unsigned long function;

	spin_lock_irq(&priv->handlers_lock);
	list_for_each_entry(handler, &priv->handlers, list) {
		if (&handler->list == &priv->handlers_place)
			continue;
		function = (unsigned long)handler->handler;
		visit(context, &function);
	}
	spin_unlock_irq(&priv->handlers_lock);
}

/*
 * For the contract checker, which knows a handler by the address of its function: that must
 * not be called once the module that it is in has been unloaded.
 */
struct ib_ref_source ib_event_handler_source = {
	.kind = "event handler",
	.for_each = event_handlers_for_each,
};

/*
 * Returns the handler behind the work item's place in the list, and moves the place past it;
 * NULL at the end of the list.
 */
static struct ib_event_handler *event_next_handler(struct ib_device_priv *priv)
{
	struct list_head *place = &priv->handlers_place;
	struct ib_event_handler *handler = NULL;

	spin_lock_irq(&priv->handlers_lock);
	if (list_is_last(place, &priv->handlers)) {
		list_del(place);
	} else {
		handler = list_entry(place->next, struct ib_event_handler, list);
		list_move(place, &handler->list);
	}
	/* release: pairs with the acquire in event_handler_returned() */
	smp_store_release(&priv->running, handler);
	spin_unlock_irq(&priv->handlers_lock);
	wake_up(&priv->handler_returned);
	return handler;
}

static void event_deliver(struct ib_device_priv *priv, struct ib_event *event)
{
	struct ib_event_handler *handler;
	struct ib_event_caller self;

	ib_event_call_begin(&self);
	spin_lock_irq(&priv->handlers_lock);
	list_add(&priv->handlers_place, &priv->handlers);
	spin_unlock_irq(&priv->handlers_lock);
	while ((handler = event_next_handler(priv)))
		IB_CALL_BACK(event->device, NULL, "event handler", IB_FRAME_CALLBACK,
			     handler->handler, handler->handler(handler, event));
	ib_event_call_end(&self);
}

/* Whether the event may change what the caches hold. */
static bool event_is_of_port(const struct ib_event *event)
{
	switch (event->event) {
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_PKEY_CHANGE:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
	case IB_EVENT_GID_CHANGE:
		return true;
	default:
		return false;
	}
}

/* Events of a CQ, QP or SRQ are for the handler of that object. */
static bool event_is_valid(const struct ib_event *event)
{
	if (event_is_of_port(event))
		return rdma_is_port_valid(event->device,
					  event->element.port_num);
	return event->event == IB_EVENT_DEVICE_FATAL;
}

static struct ib_device *priv_to_dev(struct ib_device_priv *priv)
{
	return (struct ib_device *)(priv + 1);
}

/* Returns false on -ENOMEM; other errors are logged, and the old contents stay. */
static bool refresh_port(struct ib_device *dev, u32 port, bool notify)
{
	struct ib_event event = {
		.device = dev,
		.element.port_num = port,
		.event = IB_EVENT_GID_CHANGE,
	};
	bool gids_changed = false;
	int ret;

	ret = ib_cache_refresh(dev, port, &gids_changed, _THIS_IP_);
	if (ret && ret != -ENOMEM)
		ibdev_warn(dev, "port %u: cannot refresh caches, GIDs and P_Keys may be stale (%d)\n",
			   port, ret);
	/* Before any handler is called, let those who keep a copy of the caches refresh it. */
	ib_ports_changed(dev);
	if (gids_changed && notify)
		event_deliver(ib_priv(dev), &event);
	return ret != -ENOMEM;
}

static struct ib_queued_event *event_reserve(const struct ib_event *event)
{
	if (!event_is_of_port(event))
		return &ib_priv(event->device)->fatal_reserve;
	return &ib_port(event->device, event->element.port_num)
			->event_reserve[event->event];
}

/*
 * Returns true if the reserve was free: then the caller owns it. It only records that the
 * event came again, not how often: the work item may be late by any number of them. Written
 * each time, for the full barrier; pairs with event_finish().
 */
static bool event_claim(struct ib_queued_event *item)
{
	int waiting = atomic_read(&item->waiting);

	while (!atomic_try_cmpxchg(&item->waiting, &waiting, waiting ? 2 : 1))
		;
	return !waiting;
}

static void event_add_reserve(struct ib_device_priv *priv,
			      const struct ib_event *event)
{
	struct ib_queued_event *item = event_reserve(event);

	if (!event_claim(item))
		return;
	item->event = *event;
	item->is_reserve = true;
	llist_add(&item->node, &priv->events);
}

static void event_add(struct ib_device_priv *priv, const struct ib_event *event)
{
	struct ib_queued_event *item;

	item = kmalloc(sizeof(*item), GFP_ATOMIC | __GFP_NOWARN);
	if (!item) {
		event_add_reserve(priv, event);
		return;
	}
	item->event = *event;
	item->is_reserve = false;
	llist_add(&item->node, &priv->events);
}

/* The item is not needed any more: its event was copied before. */
static void event_finish(struct ib_device_priv *priv,
			 struct ib_queued_event *item,
			 const struct ib_event *event)
{
	if (!item->is_reserve)
		kfree(item);
	/* Full barrier: the next owner writes the item after it was read here. */
	else if (atomic_xchg(&item->waiting, 0) > 1)
		event_add_reserve(priv, event);
}

/*
 * A retry may be queued just when ib_events_stop() has cleared events_on: that is why it
 * flushes the work again after it has cancelled the retry.
 */
static void event_schedule_retry(struct ib_device_priv *priv)
{
	if (READ_ONCE(priv->events_on))
		queue_delayed_work(ib_core_wq, &priv->event_retry, RETRY_DELAY);
}

static void event_retry_work(struct work_struct *work)
{
	struct ib_device_priv *priv =
		container_of(to_delayed_work(work), struct ib_device_priv, event_retry);

	xchg(&priv->deferred_due, true);
	queue_work(ib_core_wq, &priv->event_work);
}

/* Appends the event to those deferred; of each type only the last is kept. */
static void defer_event(struct ib_device_priv *priv, const struct ib_event *event)
{
	struct ib_port_priv *port = ib_port(event->device, event->element.port_num);
	unsigned int i, nr = 0;

	for (i = 0; i < port->nr_deferred; i++)
		if (port->deferred[i] != event->event)
			port->deferred[nr++] = port->deferred[i];
	port->deferred[nr++] = event->event;
	port->nr_deferred = nr;
	event_schedule_retry(priv);
}

/* Read the port before any handler is called, and keep the order of events. */
static void event_of_port(struct ib_device_priv *priv, struct ib_event *event)
{
	u32 port = event->element.port_num;

	if (ib_port(event->device, port)->nr_deferred) {
		defer_event(priv, event);
	} else if (refresh_port(event->device, port, event->event != IB_EVENT_GID_CHANGE)) {
		event_deliver(priv, event);
	} else {
		ibdev_warn(event->device, "port %u: no memory to refresh caches, delaying events\n",
			   port);
		defer_event(priv, event);
	}
}

static void deliver_deferred(struct ib_device_priv *priv, u32 num)
{
	struct ib_event event = { .device = priv_to_dev(priv), .element.port_num = num };
	struct ib_port_priv *port = ib_port(event.device, num);
	unsigned int i;

	if (!port->nr_deferred)
		return;
	if (!refresh_port(event.device, num, true)) {
		if (++port->tries < RETRIES) {
			event_schedule_retry(priv);
			return;
		}
		ibdev_warn(event.device,
			   "port %u: no memory to refresh caches, GIDs and P_Keys may be stale\n",
			   num);
	}
	for (i = 0; i < port->nr_deferred; i++) {
		event.event = port->deferred[i];
		event_deliver(priv, &event);
	}
	port->nr_deferred = 0;
	port->tries = 0;
}

/*
 * For a change without an event. The GID of an iWARP port names its network device, which may
 * be what has changed, so these ports are read again. Returns false on -ENOMEM.
 */
static bool refresh_silent_change(struct ib_device *dev)
{
	bool done = true;
	u32 port;

	rdma_for_each_port(dev, port)
		if (rdma_protocol_iwarp(dev, port) && !refresh_port(dev, port, true))
			done = false;
	ib_ports_changed(dev);
	return done;
}

static void event_work(struct work_struct *work)
{
	struct ib_device_priv *priv =
		container_of(work, struct ib_device_priv, event_work);
	struct ib_queued_event *item, *next;
	struct llist_node *list;
	struct ib_event event;
	u32 port;

	/* Full barrier: what was changed before the flag was set is read after this. */
	if (xchg(&priv->refresh_due, false) && !refresh_silent_change(priv_to_dev(priv))) {
		xchg(&priv->refresh_due, true);
		event_schedule_retry(priv);
	}
	if (xchg(&priv->deferred_due, false))
		rdma_for_each_port(priv_to_dev(priv), port)
			deliver_deferred(priv, port);
	/* Until it is empty: event_finish() may add to it. */
	while ((list = llist_reverse_order(llist_del_all(&priv->events)))) {
		llist_for_each_entry_safe(item, next, list, node) {
			event = item->event;
			event_finish(priv, item, &event);
			if (event_is_of_port(&event))
				event_of_port(priv, &event);
			else
				event_deliver(priv, &event);
			cond_resched();
		}
	}
}

static void event_irq_work(struct irq_work *work)
{
	struct ib_device_priv *priv = container_of(work, struct ib_device_priv, event_irq);

	queue_work(ib_core_wq, &priv->event_work);
}

/* Queue the event before the work that takes it, which may run at once. */
static void event_queue(struct ib_device_priv *priv, const struct ib_event *event)
{
	/* With PREEMPT_RT, the allocator's locks sleep. */
	if (unlikely(in_nmi() || (IS_ENABLED(CONFIG_PREEMPT_RT) && !preemptible()))) {
		event_add_reserve(priv, event);
		irq_work_queue(&priv->event_irq);
	} else {
		event_add(priv, event);
		queue_work(ib_core_wq, &priv->event_work);
	}
}

/**
 * ib_dispatch_event() - tell the consumers of a device that something happened
 * @event: PORT_ACTIVE, PORT_ERR, LID_CHANGE, PKEY_CHANGE, SM_CHANGE,
 *	   CLIENT_REREGISTER or GID_CHANGE, with the port; or DEVICE_FATAL
 *
 * For drivers. A work item calls the handlers later, in the order in which the events were
 * dispatched; for an event of a port, after the core has read the port's state and tables
 * again. If there is no memory for that, this event and later ones of the port wait, for
 * two seconds at most. No event is lost between the first add() of a client and the return
 * of the last remove(); but without memory, in NMI, and with PREEMPT_RT wherever preemption
 * is off, events of one type and port may be merged: one is delivered after the last of them
 * was dispatched.
 *
 * Events of other types go to the handlers of the objects that they concern,
 * not through this function. They, and events of a port that does not exist,
 * are dropped with a warning.
 *
 * Context: Any, NMI included. No handler is called within this function.
 */
void ib_dispatch_event(const struct ib_event *event)
{
	struct ib_device_priv *priv = ib_priv(event->device);

	rcu_read_lock();
	/* Pairs with the smp_store_release() in ib_events_start(). */
	if (!smp_load_acquire(&priv->events_on))
		goto out;
	if (WARN_ONCE(!event_is_valid(event), "%s: dropping invalid event: %s\n",
		      dev_name(&event->device->dev),
		      ib_event_msg(event->event)))
		goto out;
	trace_ib_event(event);
	event_queue(priv, event);
out:
	rcu_read_unlock();
}
EXPORT_SYMBOL(ib_dispatch_event);

/**
 * ib_port_attr_changed() - have a port read again after a change for which there is no event
 * @device: the device
 * @port_num: the port
 *
 * For drivers: the active MTU, width or speed has changed, and the port has not gone down for
 * it. A moment later channel-adapter queries give the new values. Consumers are not told.
 * Drivers need not call this if a port has been given another network device, or if that has
 * another MTU or is in another network namespace, which the core notices.
 *
 * Context: Any but NMI.
 */
void ib_port_attr_changed(struct ib_device *device, u32 port_num)
{
	struct ib_device_priv *priv = ib_priv(device);

	if (WARN_ON_ONCE(!rdma_is_port_valid(device, port_num)))
		return;
	rcu_read_lock();
	/* Pairs with the smp_store_release() in ib_events_start(). */
	if (smp_load_acquire(&priv->events_on)) {
		/* Full barrier, pairs with the one in event_work(). */
		xchg(&priv->refresh_due, true);
		queue_work(ib_core_wq, &priv->event_work);
	}
	rcu_read_unlock();
}
EXPORT_SYMBOL_GPL(ib_port_attr_changed);

/* The core has changed the GIDs of a RoCE port. */
void ib_event_gids_changed(struct ib_device *dev, u32 port)
{
	struct ib_event event = {
		.device = dev,
		.element.port_num = port,
		.event = IB_EVENT_GID_CHANGE,
	};

	ib_dispatch_event(&event);
}

void ib_events_init(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);

	INIT_LIST_HEAD(&priv->handlers);
	spin_lock_init(&priv->handlers_lock);
	init_waitqueue_head(&priv->handler_returned);
	init_llist_head(&priv->events);
	INIT_WORK(&priv->event_work, event_work);
	INIT_DELAYED_WORK(&priv->event_retry, event_retry_work);
	/* Hard: with PREEMPT_RT, a thread might still be on its way when the device is freed. */
	priv->event_irq = IRQ_WORK_INIT_HARD(event_irq_work);
}

/* The ports are set up: accept events. */
void ib_events_start(struct ib_device *dev)
{
	/* Pairs with the smp_load_acquire() in ib_dispatch_event(). */
	smp_store_release(&ib_priv(dev)->events_on, true);
}

/*
 * Call this after the last client has gone. The driver may still dispatch
 * events; they are dropped.
 */
void ib_events_stop(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);
	u32 port;

	WRITE_ONCE(priv->events_on, false);
	/* Expedited: this is rare, and a machine's shutdown waits for each of its devices. */
	synchronize_rcu_expedited();
	/*
	 * irq_work_sync() may miss a run in progress, see cq/notify.c; the grace period
	 * does not.
	 */
	irq_work_sync(&priv->event_irq);
	synchronize_rcu_expedited();
	/* The two queue each other, but not any more after this sequence. */
	flush_work(&priv->event_work);
	cancel_delayed_work_sync(&priv->event_retry);
	flush_work(&priv->event_work);
	/* After a failed registration, the device may be registered again. */
	priv->deferred_due = false;
	priv->refresh_due = false;
	for (port = 0; priv->ports && port <= priv->last_port; port++) {
		priv->ports[port].nr_deferred = 0;
		priv->ports[port].tries = 0;
	}
	WARN_ONCE(!list_empty(&priv->handlers),
		  "%s: device freed with event handlers registered\n",
		  dev_name(&dev->dev));
}
