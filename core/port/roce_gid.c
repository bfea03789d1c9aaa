// SPDX-License-Identifier: GPL-2.0-only
/*
 * GID tables of RoCE ports follow the addresses of the network devices.
 *
 * For each RoCE type that a port supports, it has the link-local GID made from
 * the Ethernet address of its network device, in reserved places at the start
 * of the table; and a GID for each IPv4 and IPv6 address of that device and of the devices
 * on top of it: VLANs, macvlans, bridges, bonds. A GID belongs to one port: what is on top of
 * several network devices with a port, to that of the slave that carries the traffic, if it
 * is a bond that has chosen one, else to that of the first of them. A slave that is idle
 * has no GIDs.
 *
 * The notifiers do not pass on what has changed; they only queue one work item, which
 * compares what each table holds with what it should hold now. That way no change is lost
 * or applied in the wrong order, whatever the sequence of events, and after a failure for
 * lack of memory the work runs again.
 *
 * Lock protocol: the notifiers run under RTNL or in softirq; they take no lock
 * but port.c's netdev_lock. A device's roce_lock, a mutex, is held while the
 * addresses are listed and the tables changed, so that the tables end up with
 * what was listed last. It also guards roce_on, without which neither the tables change nor
 * ports are read again: ib_roce_stop() clears it under the lock.
 *
 * A driver may hold RTNL while it unregisters its device. Hence RTNL is not taken inside
 * roce_lock, nor is any lock inside which others take RTNL, such as cache_lock; and
 * ib_roce_stop() does not wait for the work, which may be busy with another driver's
 * device. The works therefore find the devices under RCU and hold a reference on the one
 * that they look at. The driver's add_gid, del_gid and get_netdev methods are called inside
 * roce_lock. Inside it come the tables' mutexes (gid.c).
 */
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <net/addrconf.h>
#include <net/bonding.h>
#include <net/if_inet6.h>
#include <kverbs/upper.h>
#include <rdma/ib_addr.h>

#include "../contract/device_priv.h"
#include "../contract/export.h"
#include "../contract/registry.h"
#include "port.h"

/* After a lack of memory. */
#define RETRY_DELAY	HZ

/* A port's addresses are counted first; some may be added before they are read. */
#define SPARE_ADDRS	8

static void sync_all(struct work_struct *work);
static DECLARE_DELAYED_WORK(sync_work, sync_all);

/* As passed to ib_roce_init(). */
static struct workqueue_struct *sync_wq;
static void (*gids_changed)(struct ib_device *dev, u32 port);
static void (*attr_changed)(struct ib_device *dev, u32 port);

/* The GIDs that a port should have. */
struct gid_list {
	struct ib_gid_want *want;
	unsigned int nr;
	unsigned int room;
	unsigned long types;
};

/**
 * ib_roce_gid_types() - the types of GIDs that a RoCE port has
 * @dev: the device
 * @port: port number
 *
 * Context: Any.
 * Return: bit mask of &enum ib_gid_type; 0 if it is no RoCE port.
 */
unsigned long ib_roce_gid_types(const struct ib_device *dev, u32 port)
{
	unsigned long types = 0;

	if (rdma_protocol_roce_eth_encap(dev, port))
		types |= BIT(IB_GID_TYPE_ROCE);
	if (rdma_protocol_roce_udp_encap(dev, port))
		types |= BIT(IB_GID_TYPE_ROCE_UDP_ENCAP);
	return types;
}
IB_EXPORT_INTERNAL(ib_roce_gid_types);

/* If the list is full, only counts, so that the next attempt makes enough room. */
static void list_gid(struct gid_list *list, const union ib_gid *gid,
		     struct net_device *ndev, bool is_default)
{
	struct ib_gid_want want = {
		.gid = *gid, .ndev = ndev, .is_default = is_default,
	};
	unsigned long type;

	for_each_set_bit(type, &list->types, IB_GID_TYPE_SIZE) {
		if (list->nr < list->room) {
			dev_hold(ndev);
			want.type = type;
			want.order = list->nr;
			list->want[list->nr] = want;
		}
		list->nr++;
	}
}

static void list_default_gid(struct gid_list *list, struct net_device *ndev)
{
	union ib_gid gid = {
		.global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL),
	};

	/* Others, such as tunnels, have no MAC address to make one of. */
	if (!addrconf_ifid_eui48(&gid.raw[8], ndev))
		list_gid(list, &gid, ndev, true);
}

static void list_ipv4_gids(struct gid_list *list, struct net_device *ndev)
{
	struct in_device *in_dev = __in_dev_get_rcu(ndev);
	const struct in_ifaddr *ifa;
	union ib_gid gid;

	if (!in_dev)
		return;
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		ipv6_addr_set_v4mapped(ifa->ifa_local,
				       (struct in6_addr *)gid.raw);
		list_gid(list, &gid, ndev, false);
	}
}

static void list_ipv6_gids(struct gid_list *list, struct net_device *ndev)
{
	struct inet6_dev *in6_dev;
	struct inet6_ifaddr *ifa;
	union ib_gid gid;

	if (!IS_ENABLED(CONFIG_IPV6))
		return;
	in6_dev = __in6_dev_get(ndev);
	if (!in6_dev)
		return;
	list_for_each_entry_rcu(ifa, &in6_dev->addr_list, if_list) {
		memcpy(gid.raw, &ifa->addr, sizeof(gid.raw));
		list_gid(list, &gid, ndev, false);
	}
}

/*
 * A network device that has begun to unregister counts as having no addresses. Its last
 * notifier comes after the state has changed, so the work runs again and sees that.
 */
static bool netdev_is_alive(const struct net_device *ndev)
{
	return READ_ONCE(ndev->reg_state) == NETREG_REGISTERED;
}

static void list_addrs(struct gid_list *list, struct net_device *ndev)
{
	list_ipv4_gids(list, ndev);
	list_ipv6_gids(list, ndev);
}

/* The slave that carries the traffic of the bond that @ndev is part of, or NULL. */
static struct net_device *active_slave(struct net_device *ndev)
{
	struct net_device *bond = netif_is_bond_slave(ndev) ?
				  netdev_master_upper_dev_get_rcu(ndev) : NULL;

	if (!bond || !netif_is_bond_master(bond))
		return NULL;
	return bond_option_active_slave_get_rcu(netdev_priv(bond));
}

/* Ends the walk at the first device that is @data, or that a port is bound to. */
static int is_first_bound(struct net_device *lower, struct netdev_nested_priv *priv)
{
	const struct net_device **ndev = priv->data;

	if (lower == *ndev) {
		*ndev = NULL;
		return 1;
	}
	return ib_netdev_has_port(lower);
}

/*
 * Whether the GIDs of @upper belong to the port of @ndev: @upper may be on top of several
 * network devices with a port, and then it is the first of them that counts.
 */
static bool upper_belongs_to(struct net_device *upper, const struct net_device *ndev)
{
	struct netdev_nested_priv priv = { .data = &ndev };

	netdev_walk_all_lower_dev_rcu(upper, is_first_bound, &priv);
	return !ndev;
}

/**
 * struct uppers - a walk through what is on top of a network device
 * @list: the GIDs found
 * @ndev: the network device
 * @active: it is the active slave of a bond, so all that is on top belongs to it
 */
struct uppers {
	struct gid_list *list;
	struct net_device *ndev;
	bool active;
};

static int list_upper_addrs(struct net_device *upper, struct netdev_nested_priv *priv)
{
	struct uppers *u = priv->data;

	if (netdev_is_alive(upper) && (u->active || upper_belongs_to(upper, u->ndev)))
		list_addrs(u->list, upper);
	return 0;
}

static void list_gids(struct gid_list *list, struct net_device *ndev)
{
	struct uppers u = { .list = list, .ndev = ndev };
	struct netdev_nested_priv priv = { .data = &u };
	struct net_device *active;

	rcu_read_lock();
	active = active_slave(ndev);
	u.active = active == ndev;
	/* An idle slave has the address of the bond, which the active one has as well. */
	if (netdev_is_alive(ndev) && (!active || u.active)) {
		list_default_gid(list, ndev);
		list_addrs(list, ndev);
		netdev_walk_all_upper_dev_rcu(ndev, list_upper_addrs, &priv);
	}
	rcu_read_unlock();
}

static void free_gid_list(struct gid_list *list)
{
	unsigned int i;

	for (i = 0; i < min(list->nr, list->room); i++)
		dev_put(list->want[i].ndev);
	kvfree(list->want);
}

static int compare_gids(const void *a, const void *b)
{
	const struct ib_gid_want *x = a, *y = b;

	if (x->ndev != y->ndev)
		return x->ndev < y->ndev ? -1 : 1;
	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	return memcmp(&x->gid, &y->gid, sizeof(x->gid));
}

static int compare_order(const void *a, const void *b)
{
	const struct ib_gid_want *x = a, *y = b;

	return x->order < y->order ? -1 : 1;
}

static int compare_gids_and_order(const void *a, const void *b)
{
	return compare_gids(a, b) ?: compare_order(a, b);
}

/*
 * Keeps the first of GIDs that are listed twice. A default GID that is also an address, as the
 * link-local one usually is, is marked as such. Sorts, because a container with a network device
 * on top of the port's can give it any number of addresses.
 */
static void drop_duplicates(struct gid_list *list)
{
	struct ib_gid_want *want = list->want;
	unsigned int i, nr = 0;

	sort(want, list->nr, sizeof(*want), compare_gids_and_order, NULL);
	for (i = 0; i < list->nr; i++) {
		if (nr && !compare_gids(&want[nr - 1], &want[i])) {
			want[nr - 1].is_address |= !want[i].is_default;
			dev_put(want[i].ndev);
		} else {
			want[nr++] = want[i];
		}
	}
	list->nr = nr;
	sort(want, nr, sizeof(*want), compare_order, NULL);
}

/* Lists the GIDs that a port with @ndev should have; repeats that with more room if needed. */
static int make_gid_list(struct gid_list *list, struct net_device *ndev)
{
	unsigned int room = 2 * SPARE_ADDRS;

	for (;;) {
		list->nr = 0;
		list->room = room;
		list->want = kvcalloc(room, sizeof(*list->want), GFP_KERNEL);
		if (!list->want)
			return -ENOMEM;
		list_gids(list, ndev);
		if (list->nr <= list->room) {
			drop_duplicates(list);
			return 0;
		}
		/* Grow in proportion, else addresses might be added as fast as they are listed. */
		room = list->nr + list->nr / 4 + 2 * SPARE_ADDRS;
		free_gid_list(list);
	}
}

static int sync_port(struct ib_device *dev, u32 port)
{
	struct gid_list list = { .types = ib_roce_gid_types(dev, port) };
	struct net_device *ndev;
	bool changed = false;
	int ret = 0;

	if (!list.types)
		return 0;
	ndev = ib_device_get_netdev(dev, port);
	if (ndev)
		ret = make_gid_list(&list, ndev);
	if (!ret)
		ret = ib_gid_table_sync(dev, port, list.want, list.nr, &changed);
	if (ndev)
		free_gid_list(&list);
	dev_put(ndev);
	if (changed)
		gids_changed(dev, port);
	return ret;
}

static int sync_ports(struct ib_device *dev)
{
	int ret, failed = 0;
	u32 port;

	lockdep_assert_held(&ib_priv(dev)->roce_lock);
	rdma_for_each_port(dev, port) {
		ret = sync_port(dev, port);
		if (ret)
			failed = ret;
	}
	return failed;
}

static int sync_device(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);
	int ret = 0;

	mutex_lock(&priv->roce_lock);
	if (priv->roce_on)
		ret = sync_ports(dev);
	mutex_unlock(&priv->roce_lock);
	return ret;
}

/* Returns the first device at or after an index, with a reference. */
static struct ib_device *get_next_device(unsigned long *index)
{
	struct ib_device *dev;

	rcu_read_lock();
	dev = xa_find(&ib_devices, index, ULONG_MAX, XA_PRESENT);
	while (dev && !kobject_get_unless_zero(&dev->dev.kobj))
		dev = xa_find_after(&ib_devices, index, ULONG_MAX, XA_PRESENT);
	rcu_read_unlock();
	return dev;
}

static void sync_all(struct work_struct *work)
{
	struct ib_device *dev;
	unsigned long index;
	int failed = 0;

	for (index = 0; (dev = get_next_device(&index)); index++) {
		failed |= sync_device(dev);
		put_device(&dev->dev);
	}
	if (failed)
		queue_delayed_work(sync_wq, &sync_work, RETRY_DELAY);
}

static void reread_ports_work(struct work_struct *work);
static DECLARE_WORK(ports_work, reread_ports_work);

/*
 * For changes that no InfiniBand event reports: of a network device's MTU, which is the active
 * MTU of a port, of the network device that a port has, or of its namespace. The events that come
 * close would tell consumers that the link has gone down and up, so there is none, and consumers
 * see the change when they query the port. Answers to channel-adapter queries are prepared in
 * advance, and are rebuilt here.
 *
 * The driver may keep the MTU itself and learn of the change from a notifier that is called after
 * ours. RTNL is held until all notifiers have been called, so taking it waits for the driver. No
 * unregistration may wait for RTNL, see above; so no device is held meanwhile.
 */
static void reread_ports_work(struct work_struct *work)
{
	struct ib_device *dev;
	unsigned long index;
	u32 port;

	rtnl_lock();
	rtnl_unlock();
	for (index = 0; (dev = get_next_device(&index)); index++) {
		mutex_lock(&ib_priv(dev)->roce_lock);
		if (ib_priv(dev)->roce_on)
			rdma_for_each_port(dev, port)
				attr_changed(dev, port);
		mutex_unlock(&ib_priv(dev)->roce_lock);
		put_device(&dev->dev);
	}
}

/* Makes the work compare all tables with the addresses soon. Any context. */
void ib_roce_resync(void)
{
	mod_delayed_work(sync_wq, &sync_work, 0);
}

/* As ib_roce_resync(), and has all ports read again. Any context. */
void ib_roce_netdev_changed(void)
{
	ib_roce_resync();
	/* It takes RTNL, so not on the queue whose work items unregistrations wait for. */
	queue_work(system_unbound_wq, &ports_work);
}

/**
 * rdma_roce_rescan_device() - bring the GID tables of a device up to date
 * @ibdev: registered device
 *
 * For drivers, after the answer of their get_netdev method has changed. The
 * core notices all other changes. Does nothing while the device is not
 * registered.
 *
 * Context: Process, may sleep; under RTNL only if the driver's add_gid, del_gid
 *	    and get_netdev methods do not take it.
 */
void rdma_roce_rescan_device(struct ib_device *ibdev)
{
	if (sync_device(ibdev))
		ib_roce_resync();
}
EXPORT_SYMBOL(rdma_roce_rescan_device);

/* Whether the device has a port that may have a network device. */
static bool has_netdev_port(const struct ib_device *dev)
{
	u32 port;

	rdma_for_each_port(dev, port)
		if (!rdma_protocol_ib(dev, port))
			return true;
	return false;
}

/* Fill the tables and keep them up to date from now on. */
int ib_roce_start(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);
	int ret;

	if (!has_netdev_port(dev))
		return 0;
	mutex_lock(&priv->roce_lock);
	/* Set before the tables are filled: the work then does not miss a change meanwhile. */
	priv->roce_on = true;
	ret = sync_ports(dev);
	mutex_unlock(&priv->roce_lock);
	return ret;
}

/* On return, the tables do not change any more. */
void ib_roce_stop(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);

	mutex_lock(&priv->roce_lock);
	priv->roce_on = false;
	mutex_unlock(&priv->roce_lock);
}

static int netdev_event(struct notifier_block *nb, unsigned long event,
			void *info)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(info);
	bool bound;

	switch (event) {
	case NETDEV_REGISTER:
	case NETDEV_UNREGISTER:
		bound = ib_netdev_has_port(ndev);
		/* It may only be on its way to another network namespace. */
		if (READ_ONCE(ndev->reg_state) != NETREG_REGISTERED)
			ib_ports_forget_netdev(ndev);
		if (bound)
			ib_roce_netdev_changed();
		else
			ib_roce_resync();
		break;
	case NETDEV_CHANGEMTU:
		ib_roce_netdev_changed();
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGEADDR:
	case NETDEV_CHANGEUPPER:
	case NETDEV_POST_TYPE_CHANGE:
	case NETDEV_BONDING_FAILOVER:
	case NETDEV_CHANGEINFODATA:
	case NETDEV_CHANGELOWERSTATE:
		ib_roce_resync();
		break;
	}
	return NOTIFY_DONE;
}

static int netdev_event_begins(struct notifier_block *nb, unsigned long event, void *info)
{
	if (event == NETDEV_UNREGISTER)
		ib_ports_forget_begin();
	return NOTIFY_DONE;
}

static int addr_event(struct notifier_block *nb, unsigned long event,
		      void *info)
{
	ib_roce_resync();
	return NOTIFY_DONE;
}

/*
 * Priority INT_MIN: while a driver's own notifier handles the unregistration of a network device,
 * it can still look up its device by that.
 */
static struct notifier_block netdev_nb = { .notifier_call = netdev_event, .priority = INT_MIN };
/* Before the drivers' own, but for those that listen to one namespace. */
static struct notifier_block first_nb = {
	.notifier_call = netdev_event_begins, .priority = INT_MAX,
};
static struct notifier_block inetaddr_nb = { .notifier_call = addr_event };
static struct notifier_block inet6addr_nb = { .notifier_call = addr_event };

/*
 * Tables are compared on @wq. In process context, @gids is called for each that differed, and
 * @attr for each port whose network device, or its MTU, may be another one.
 */
int ib_roce_init(struct workqueue_struct *wq,
		 void (*gids)(struct ib_device *dev, u32 port),
		 void (*attr)(struct ib_device *dev, u32 port))
{
	int ret;

	sync_wq = wq;
	gids_changed = gids;
	attr_changed = attr;
	ret = register_inetaddr_notifier(&inetaddr_nb);
	if (ret)
		return ret;
	if (IS_ENABLED(CONFIG_IPV6)) {
		ret = register_inet6addr_notifier(&inet6addr_nb);
		if (ret)
			goto err_inet;
	}
	ret = register_netdevice_notifier(&first_nb);
	if (ret)
		goto err_inet6;
	ret = register_netdevice_notifier(&netdev_nb);
	if (ret)
		goto err_first;
	return 0;

err_first:
	unregister_netdevice_notifier(&first_nb);
err_inet6:
	if (IS_ENABLED(CONFIG_IPV6))
		unregister_inet6addr_notifier(&inet6addr_nb);
err_inet:
	unregister_inetaddr_notifier(&inetaddr_nb);
	return ret;
}

void ib_roce_exit(void)
{
	unregister_netdevice_notifier(&netdev_nb);
	unregister_netdevice_notifier(&first_nb);
	if (IS_ENABLED(CONFIG_IPV6))
		unregister_inet6addr_notifier(&inet6addr_nb);
	unregister_inetaddr_notifier(&inetaddr_nb);
	cancel_work_sync(&ports_work);
	cancel_delayed_work_sync(&sync_work);
}
