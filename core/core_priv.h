/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of the core share.
 */
#ifndef KVERBS_CORE_PRIV_H
#define KVERBS_CORE_PRIV_H

#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "export.h"
#include "restrack.h"

struct dentry;
struct ib_gid_table;
struct ib_port_snapshot;
struct ib_ref_source;
struct module;
struct notifier_block;
struct seq_file;

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
 * @put_off: types of events that wait for memory to read the port again, in the order of
 *	the last event of each; only the event work uses this and the following
 * @nr_put_off: entries of @put_off
 * @tries: attempts so far that found no memory
 */
struct ib_port_priv {
	struct ib_gid_table *gids;
	struct ib_port_snapshot __rcu *snapshot;
	struct net_device __rcu *netdev;
	struct ib_queued_event event_reserve[IB_EVENT_WQ_FATAL + 1];
	u8 put_off[IB_EVENT_WQ_FATAL + 1];
	unsigned int nr_put_off;
	unsigned int tries;
};

/**
 * struct ib_device_priv - the core's part of a device
 * @rcu: the memory is freed after a grace period, for lookups under RCU
 * @state: under ib_registry_lock
 * @by_name: link in the table of names, while the device is in the table of devices
 * @presences: of the clients on the device, in the order of client
 *	registration; under ib_registry_lock
 * @registered_at: ib_registry_now() when it became IB_DEV_REGISTERED
 * @ports: by port number; never changes once it is set
 * @last_port: the greatest port number for which @ports has room
 * @netdev_link: link in the list of devices whose ports may have network devices
 * @cache_lock: serialises refreshes of the caches
 * @roce_lock: serialises comparisons of RoCE GID tables with addresses
 * @roce_on: the RoCE GID tables follow the addresses; under @roce_lock
 * @leavers: modules whose clients have left, read under RCU; under ib_registry_lock
 * @ahs: address handles made while the contract checker was on
 * @ahs_lock: guards @ahs; taken in any context but NMI
 * @contract_suspect: a verbs call may come from a module that must not make one
 * @handlers: event handlers, read under SRCU
 * @handlers_lock: taken by writers of @handlers
 * @events: events that wait for @event_work
 * @fatal_reserve: for DEVICE_FATAL: used if there is no memory
 * @event_irq: queues @event_work, for events from NMI
 * @event_work: refreshes the caches, then calls the handlers
 * @event_again: makes @event_work look at events that were put off
 * @put_off_due: @event_work must do so
 * @refresh_due: @event_work must make the answer to channel-adapter queries anew
 * @events_on: events are accepted
 * @res: the device's objects
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
	u64 registered_at;
	struct ib_port_priv *ports;
	u32 last_port;
	struct list_head netdev_link;
	struct mutex cache_lock;
	struct mutex roce_lock;
	bool roce_on;
	struct list_head leavers;
	struct list_head ahs;
	spinlock_t ahs_lock;
	bool contract_suspect;
	struct list_head handlers;
	spinlock_t handlers_lock;
	struct llist_head events;
	struct ib_queued_event fatal_reserve;
	struct irq_work event_irq;
	struct work_struct event_work;
	struct delayed_work event_again;
	bool put_off_due;
	bool refresh_due;
	bool events_on;
	struct ib_restrack_root res[RDMA_RESTRACK_MAX];
	struct ib_stats *stats;
	struct dentry *debugfs;
} ____cacheline_aligned;

static inline struct ib_device_priv *ib_priv(const struct ib_device *dev)
{
	return (struct ib_device_priv *)dev - 1;
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

/* main.c */
extern struct workqueue_struct *ib_core_wq;
extern struct workqueue_struct *ib_unregister_wq;

/* registry.c */
extern struct mutex ib_registry_lock;
extern struct xarray ib_devices;

#define IB_DEVICE_REGISTERED	XA_MARK_1

void ib_registry_changed(void);
void ib_registry_wait(void);
bool ib_registry_wait_for(unsigned long timeout);
unsigned long ib_patience(void);
u64 ib_registry_now(void);

/* device.c */
bool ib_device_is_going(const struct ib_device *dev);
void ib_device_exit(void);

/* gone.c */
void ib_device_gone(struct ib_device *dev);
void ib_device_keep_gone(struct ib_device *dev);
void ib_gone_init(void);
void ib_gone_exit(void);

/* client.c */
int ib_clients_add(struct ib_device *dev);
void ib_clients_remove(struct ib_device *dev);
void ib_clients_renamed(struct ib_device *dev);
void ib_clients_might_be_called(void);
bool ib_clients_calling_me(struct ib_device *dev);
void ib_clients_show(struct ib_device *dev, struct seq_file *s);
void ib_register_client_notifier(struct notifier_block *nb);
void ib_unregister_client_notifier(struct notifier_block *nb);
void ib_client_exit(void);

/* port.c */
int ib_port_data_setup(struct ib_device *dev, unsigned long site);
void ib_port_data_free(struct ib_device *dev);
void ib_port_put_netdevs(struct ib_device *dev);
bool ib_netdev_has_port(const struct net_device *ndev);
void ib_ports_forget_netdev(struct net_device *ndev);
void ib_register_port_notifier(struct notifier_block *nb);
void ib_unregister_port_notifier(struct notifier_block *nb);
void ib_ports_changed(struct ib_device *dev);

/* event.c */
extern struct ib_ref_source ib_event_handler_source;
void ib_event_gids_changed(struct ib_device *dev, u32 port);
void ib_events_init(struct ib_device *dev);
void ib_events_start(struct ib_device *dev);
void ib_events_stop(struct ib_device *dev);

/* cache.c */
int ib_cache_setup(struct ib_device *dev);
int ib_cache_fill(struct ib_device *dev, unsigned long site);
void ib_cache_cleanup(struct ib_device *dev);
void ib_cache_release(struct ib_device *dev);
int ib_cache_refresh(struct ib_device *dev, u32 port, bool *gids_changed, unsigned long site);
u64 ib_cache_subnet_prefix(struct ib_device *dev, u32 port);

/* gid.c */

/**
 * struct ib_gid_want - a GID that a RoCE port should have
 * @gid: the GID
 * @type: its type
 * @ndev: its network device, held by the caller that fills this
 * @is_default: it belongs in the slots reserved for default GIDs
 * @present: it was found in the table
 */
struct ib_gid_want {
	union ib_gid gid;
	enum ib_gid_type type;
	struct net_device *ndev;
	bool is_default;
	bool present;
};

int ib_gid_table_create(struct ib_device *dev, u32 port);
void ib_gid_table_clear(struct ib_device *dev, u32 port);
void ib_gid_table_release(struct ib_device *dev, u32 port);
int ib_gid_table_set(struct ib_device *dev, u32 port, int index,
		     const union ib_gid *gid, bool *changed);
int ib_gid_table_sync(struct ib_device *dev, u32 port,
		      struct ib_gid_want *want, unsigned int nr, bool *changed);
const char *ib_gid_type_str(enum ib_gid_type type);
const struct ib_gid_attr *ib_gid_get(struct ib_device *device, u32 port, int index);
void ib_gid_hold(const struct ib_gid_attr *attr);
void ib_gid_put(const struct ib_gid_attr *attr);
void ib_gid_given(const struct ib_gid_attr *attr, unsigned long site);
void ib_gid_put_by(const struct ib_gid_attr *attr, unsigned long site);
const struct ib_gid_attr *
ib_gid_find(struct ib_device *device, const union ib_gid *gid, u32 port,
	    bool (*filter)(const union ib_gid *gid, const struct ib_gid_attr *attr,
			   void *context), void *context);
const struct ib_gid_attr *ib_gid_find_type(struct ib_device *device, const union ib_gid *gid,
					   enum ib_gid_type type, u32 port,
					   struct net_device *ndev);
extern struct ib_ref_source ib_gid_source;

/* roce_gid.c */
unsigned long ib_roce_gid_types(const struct ib_device *dev, u32 port);
int ib_roce_start(struct ib_device *dev);
void ib_roce_stop(struct ib_device *dev);
void ib_roce_resync(void);
int ib_roce_init(struct workqueue_struct *wq,
		 void (*gids)(struct ib_device *dev, u32 port),
		 void (*attr)(struct ib_device *dev, u32 port));
void ib_roce_exit(void);

/* strings.c */
const char *ib_qp_state_name(unsigned int state);
void ib_copy_device_name(char *to, const struct ib_device *dev);

/* sysfs.c */
int ib_sysfs_init(void);
void ib_sysfs_exit(void);
void ib_sysfs_prepare(struct ib_device *dev,
		      void (*release)(struct device *dev));
int ib_sysfs_add(struct ib_device *dev, bool *was_added);
void ib_sysfs_announce(struct ib_device *dev);
void ib_sysfs_remove(struct ib_device *dev);

/* debugfs.c */
void ib_debugfs_init(void (*clients)(struct ib_device *dev, struct seq_file *s));
void ib_debugfs_exit(void);
void ib_debugfs_add(struct ib_device *dev);
struct dentry *ib_debugfs_dir(struct ib_device *dev);
void ib_debugfs_rename(struct ib_device *dev);
void ib_debugfs_remove(struct ib_device *dev);

#endif
