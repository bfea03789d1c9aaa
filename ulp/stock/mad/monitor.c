// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tells "rdma monitor", by RDMA netlink, which devices come and go, and which network devices
 * their ports get and lose. In the kernel, ib_core does so itself.
 *
 * A change of a network device is noticed some time after it was made: of several in a row, only
 * the last may be reported. Listeners hear of network devices in the namespace of the RDMA device.
 *
 * Lock protocol: watched.lock, a mutex, guards what has been reported of a device; under it, a
 * message is sent, for which nothing of a device is waited for. The core's port notifiers run in
 * parallel.
 */
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/slab.h>
#include <kverbs/upper.h>
#include <rdma/ib_client.h>
#include <rdma/rdma_netlink.h>

#include "mad.h"

/**
 * struct reported_netdev - a network device that listeners know of
 * @netdev: to compare only; %NULL for none
 * @ifindex: another one may be at the same address later
 * @name: when it was reported
 */
struct reported_netdev {
	const struct net_device *netdev;
	int ifindex;
	char name[IFNAMSIZ];
};

/**
 * struct watched - a device that is reported on
 * @dev: the device
 * @nb: called when its ports may have changed
 * @lock: see the head of this file
 * @reported: what they know, for each port, from 1 on
 */
struct watched {
	struct ib_device *dev;
	struct notifier_block nb;
	struct mutex lock;
	struct reported_netdev reported[];
};

/* Set before the module leaves the devices, which stay. */
static bool leaving;

/* An error is in the log, and devices come and go all the same. */
static void tell(struct watched *w, enum rdma_nl_notify_event_type what)
{
	rdma_nl_notify_event(w->dev, 0, what);
}

static int put_netdev(struct sk_buff *skb, struct ib_device *dev, u32 port,
		      const struct reported_netdev *is)
{
	int type = is->netdev ? RDMA_NETDEV_ATTACH_EVENT : RDMA_NETDEV_DETACH_EVENT;
	int err;

	err = nla_put_u32(skb, RDMA_NLDEV_ATTR_DEV_INDEX, dev->index) ?:
	      nla_put_string(skb, RDMA_NLDEV_ATTR_DEV_NAME, dev->name) ?:
	      nla_put_u32(skb, RDMA_NLDEV_ATTR_PORT_INDEX, port);
	if (is->netdev)
		err = err ?: nla_put_u32(skb, RDMA_NLDEV_ATTR_NDEV_INDEX, is->ifindex) ?:
			     nla_put_string(skb, RDMA_NLDEV_ATTR_NDEV_NAME, is->name);
	return err ?: nla_put_u8(skb, RDMA_NLDEV_ATTR_EVENT_TYPE, type);
}

/*
 * Not by rdma_nl_notify_event(), which looks at the port once more: the network device may have
 * gone since, or be in another namespace, of which the message would then say nothing.
 */
static int send_netdev(struct ib_device *dev, u32 port, const struct reported_netdev *is)
{
	struct sk_buff *skb = nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	struct nlmsghdr *nlh;
	int err;

	if (!skb)
		return -ENOMEM;
	nlh = nlmsg_put(skb, 0, 0, RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_MONITOR), 0, 0);
	if (!nlh || put_netdev(skb, dev, port, is)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	nlmsg_end(skb, nlh);
	err = rdma_nl_multicast(read_pnet(&dev->coredev.rdma_net), skb, RDMA_NL_GROUP_NOTIFY,
				GFP_KERNEL);
	/* Nobody listens. */
	return err == -ESRCH ? 0 : err;
}

static void tell_netdev(struct ib_device *dev, u32 port, const struct reported_netdev *is)
{
	int err = send_netdev(dev, port, is);

	if (err)
		ibdev_warn_ratelimited(dev, "port %u: cannot tell listeners of RDMA netlink of its network device (%d)\n",
				       port, err);
}

static struct reported_netdev netdev_of(struct ib_device *dev, u32 port)
{
	struct net_device *netdev = ib_device_get_netdev(dev, port);
	struct reported_netdev is = {};

	if (netdev && net_eq(dev_net(netdev), read_pnet(&dev->coredev.rdma_net))) {
		is.netdev = netdev;
		is.ifindex = netdev->ifindex;
		strscpy(is.name, netdev->name, sizeof(is.name));
	}
	dev_put(netdev);
	return is;
}

static void look_at(struct watched *w, u32 port)
{
	struct reported_netdev is = netdev_of(w->dev, port), *old = &w->reported[port];

	lockdep_assert_held(&w->lock);
	if (is.netdev == old->netdev && is.ifindex == old->ifindex)
		return;
	*old = is;
	tell_netdev(w->dev, port, &is);
}

static void look_at_all(struct watched *w)
{
	u32 port;

	mutex_lock(&w->lock);
	rdma_for_each_port(w->dev, port)
		look_at(w, port);
	mutex_unlock(&w->lock);
}

static int ports_changed(struct notifier_block *nb, unsigned long unused, void *data)
{
	look_at_all(container_of(nb, struct watched, nb));
	return NOTIFY_OK;
}

static int monitor_add(struct ib_device *dev);
static void monitor_remove(struct ib_device *dev, void *client_data);

static struct ib_client monitor_client = {
	.name = "kverbs_monitor",
	.add = monitor_add,
	.remove = monitor_remove,
};

static int monitor_add(struct ib_device *dev)
{
	struct watched *w = kzalloc(struct_size(w, reported, dev->phys_port_cnt + 1), GFP_KERNEL);

	if (!w)
		return -ENOMEM;
	w->dev = dev;
	mutex_init(&w->lock);
	w->nb.notifier_call = ports_changed;
	ib_set_client_data(dev, &monitor_client, w);
	tell(w, RDMA_REGISTER_EVENT);
	/* First this, so that no change is missed. */
	ib_register_port_notifier(dev, &w->nb);
	look_at_all(w);
	return 0;
}

static void monitor_remove(struct ib_device *dev, void *client_data)
{
	struct watched *w = client_data;

	/* Waits for calls of it. */
	ib_unregister_port_notifier(dev, &w->nb);
	if (!READ_ONCE(leaving))
		tell(w, RDMA_UNREGISTER_EVENT);
	kfree(w);
}

/* Once RDMA netlink is there. Returns 0 or an errno. */
int monitor_init(void)
{
	return ib_register_client(&monitor_client);
}

void monitor_exit(void)
{
	WRITE_ONCE(leaving, true);
	ib_unregister_client(&monitor_client);
}
