/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The core's private part of a device, shared by all of its files.
 */
#ifndef KVERBS_DEVICE_PRIV_H
#define KVERBS_DEVICE_PRIV_H

#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/ratelimit.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "restrack.h"

struct ca_device;
struct dentry;
struct ib_gid_table;
struct ib_port_snapshot;

/**
 * enum ib_dev_state - state of a device's life; ib_dev_move() has the legal moves
 * @IB_DEV_ALLOCATED: ib_alloc_device() made it
 * @IB_DEV_SETUP: ib_register_device() prepares it; lookups cannot find it
 * @IB_DEV_ENABLING: visible; the registering thread adds the clients
 * @IB_DEV_REGISTERED: ib_register_client() adds new clients to it
 * @IB_DEV_DISABLING: one thread removes the clients and takes it down
 * @IB_DEV_UNREGISTERED: only the memory is left
 * @IB_DEV_RELEASED: ib_dealloc_device() gave it up
 * @IB_DEV_STATES: number of states
 */
enum ib_dev_state {
	IB_DEV_ALLOCATED,
	IB_DEV_SETUP,
	IB_DEV_ENABLING,
	IB_DEV_REGISTERED,
	IB_DEV_DISABLING,
	IB_DEV_UNREGISTERED,
	IB_DEV_RELEASED,
	IB_DEV_STATES
};

/**
 * enum ib_caller - whose call is refused
 * @IB_CALLER_KERNEL: of a module
 * @IB_CALLER_PROCESS: of a process, by a module that passes it on
 * @IB_CALLERS: number of kinds
 */
enum ib_caller {
	IB_CALLER_KERNEL,
	IB_CALLER_PROCESS,
	IB_CALLERS
};

/**
 * struct ib_queued_event - an event on its way to the handlers
 * @node: in ib_device_priv.events
 * @event: the event
 * @waiting: of a reserve: 0: it is free; 1: it is queued; 2: it is queued, and the event
 *	     was dispatched again since
 * @is_reserve: it is part of the device or port, not allocated
 */
struct ib_queued_event {
	struct llist_node node;
	struct ib_event event;
	atomic_t waiting;
	bool is_reserve;
};

/**
 * struct ib_port_priv - what the core keeps for a port
 * @gids: the GID table; set while the device is registered
 * @snapshot: P_Keys, LMC and state; replaced as a whole
 * @netdev: network device of an Ethernet port, held
 * @event_reserve: by type of event: used if there is no memory
 * @deferred: types of events that wait for memory to read the port again, in the order of
 *	the last event of each; only the event work uses this and the following
 * @nr_deferred: entries of @deferred
 * @tries: attempts so far that found no memory
 */
struct ib_port_priv {
	struct ib_gid_table *gids;
	struct ib_port_snapshot __rcu *snapshot;
	struct net_device __rcu *netdev;
	struct ib_queued_event event_reserve[IB_EVENT_WQ_FATAL + 1];
	u8 deferred[IB_EVENT_WQ_FATAL + 1];
	unsigned int nr_deferred;
	unsigned int tries;
};

/**
 * struct ib_device_priv - the core's part of a device
 * @rcu: the memory is freed after a grace period, for lookups under RCU
 * @state: under ib_registry_lock
 * @by_name: link in the table of names, while the device is in the table of devices
 * @presences: of the clients on the device, in the order of client
 *	registration; under ib_registry_lock
 * @renamers: threads that wait for all methods of clients, to rename the device; under
 *	ib_registry_lock
 * @registered_at: ib_registry_now() when it became IB_DEV_REGISTERED
 * @ports: by port number; never changes once it is set
 * @last_port: the greatest port number for which @ports has room
 * @netdev_link: link in the list of devices whose ports may have network devices
 * @netdev_told: lookups found the device when the notification about a network device that
 *	unregisters began; under RTNL
 * @cache_lock: serialises refreshes of the caches
 * @port_notifiers: called when the caches have changed, see ib_register_port_notifier()
 * @roce_lock: serialises comparisons of RoCE GID tables with addresses
 * @roce_on: RoCE GID tables follow the addresses, and ports their network devices; under @roce_lock
 * @departed_modules: modules whose clients have left, read under RCU; under ib_registry_lock
 * @ahs: address handles made while the contract checker was on
 * @ahs_lock: guards @ahs; taken in any context but NMI
 * @contract_suspect: a verbs call may come from a module that must not make one
 * @handlers: event handlers, and @handlers_place while they are called; under @handlers_lock
 * @handlers_place: how far @event_work has come with an event
 * @handlers_lock: taken in any context but NMI
 * @running: the handler that @event_work calls, or NULL; changed under @handlers_lock
 * @handler_returned: waits for the end of @running
 * @events: events that wait for @event_work
 * @fatal_reserve: for DEVICE_FATAL: used if there is no memory
 * @event_irq: queues @event_work, for events from NMI
 * @event_work: refreshes the caches, then calls the handlers
 * @event_retry: makes @event_work look at deferred events again
 * @deferred_due: @event_work must do so
 * @refresh_due: @event_work must read iWARP ports again, and call @port_notifiers
 * @events_on: events are accepted
 * @res: the device's objects
 * @ca: kverbs_ca's part of the device, which it looks up for each request; read under RCU.
 *	Nothing else uses it
 * @invalid_limits: how often the log may say that a call was refused
 * @stats: hw_counters of the device (sysfs)
 * @debugfs: the device's directory
 *
 * It is allocated in front of the driver's structure, so that ib_device need
 * not change when the core does.
 */
struct ib_device_priv {
	struct rcu_head rcu;
	enum ib_dev_state state;
	struct hlist_node by_name;
	struct list_head presences;
	unsigned int renamers;
	u64 registered_at;
	struct ib_port_priv *ports;
	u32 last_port;
	struct list_head netdev_link;
	bool netdev_told;
	struct mutex cache_lock;
	struct blocking_notifier_head port_notifiers;
	struct mutex roce_lock;
	bool roce_on;
	struct list_head departed_modules;
	struct list_head ahs;
	spinlock_t ahs_lock;
	bool contract_suspect;
	struct list_head handlers;
	struct list_head handlers_place;
	spinlock_t handlers_lock;
	struct ib_event_handler *running;
	wait_queue_head_t handler_returned;
	struct llist_head events;
	struct ib_queued_event fatal_reserve;
	struct irq_work event_irq;
	struct work_struct event_work;
	struct delayed_work event_retry;
	bool deferred_due;
	bool refresh_due;
	bool events_on;
	struct rdma_restrack_root res[RDMA_RESTRACK_MAX];
	struct ca_device __rcu *ca;
	struct ratelimit_state invalid_limits[IB_CALLERS];
	struct ib_stats *stats;
	struct dentry *debugfs;
} ____cacheline_aligned;

static inline struct ib_device_priv *ib_priv(const struct ib_device *dev)
{
	return (struct ib_device_priv *)dev - 1;
}

static inline struct ib_device *ib_device_of(struct ib_device_priv *priv)
{
	return (struct ib_device *)(priv + 1);
}

static inline struct ib_port_priv *ib_port(const struct ib_device *dev,
					   u32 port)
{
	return &ib_priv(dev)->ports[port];
}

/*
 * For callers that cannot know whether the device is set up: NULL if there is
 * no such port, or not yet. Any context.
 */
static inline struct ib_port_priv *ib_port_or_null(const struct ib_device *dev,
						   u32 port)
{
	/* Pairs with the release in ib_port_data_alloc(). */
	struct ib_port_priv *ports = smp_load_acquire(&ib_priv(dev)->ports);

	if (!ports || !rdma_is_port_valid(dev, port) ||
	    port > ib_priv(dev)->last_port)
		return NULL;
	return &ports[port];
}

/* strings.c */
const char *ib_qp_state_name(unsigned int state);
void ib_copy_device_name(char *to, const struct ib_device *dev);

#endif
