// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports: their fixed properties, their network devices, and queries.
 *
 * Lock protocol: the memory for the ports is allocated with the first network
 * device or with registration, and then stays as long as the device;
 * alloc_lock, a mutex, ensures that this happens once. Readers that cannot know
 * that the device is registered use ib_port_or_null().
 *
 * ib_port_priv.netdev is read under RCU; netdev_lock, a spinlock, orders the
 * writers of all devices and guards the list of devices that may have one. A
 * port holds a reference on its network device. It puts it when the network
 * device unregisters (roce_gid.c handles that), when the driver sets another,
 * and when the device is removed. A network device that has begun to unregister
 * is refused, so the unregistering thread, which waits for a grace period after
 * its notifiers, protects the readers under RCU.
 */
#include <linux/ethtool.h>
#include <linux/export.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <kverbs/upper.h>
#include <rdma/ib_mad.h>

#include "../contract/contract.h"
#include "../contract/device_priv.h"
#include "../contract/invalid.h"
#include "../contract/export.h"
#include "../contract/registry.h"
#include "port.h"

/* IBTA vol. 1: PortNum has 8 bits; indexes of P_Keys and of GIDs have 16. */
#define MAX_PORTS	255
#define MAX_TABLE_LEN	U16_MAX

/* A port has exactly one of them. */
#define PROTOCOLS	(RDMA_CORE_CAP_PROT_IB | RDMA_CORE_CAP_PROT_ROCE |		\
			 RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_PROT_IWARP |	\
			 RDMA_CORE_CAP_PROT_RAW_PACKET | RDMA_CORE_CAP_PROT_USNIC)

static DEFINE_MUTEX(alloc_lock);
static DEFINE_SPINLOCK(netdev_lock);
static LIST_HEAD(netdev_owners);

/*
 * @nb is called, in process context, when the caches of @dev, or what it reports about
 * itself and its ports, have changed. If an event reported the change, @nb is called before
 * the handlers of the event. It may call methods of the driver.
 */
void ib_register_port_notifier(struct ib_device *dev, struct notifier_block *nb)
{
	blocking_notifier_chain_register(&ib_priv(dev)->port_notifiers, nb);
}
IB_EXPORT_INTERNAL(ib_register_port_notifier);

/* Waits for calls in progress. */
void ib_unregister_port_notifier(struct ib_device *dev, struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&ib_priv(dev)->port_notifiers, nb);
}
IB_EXPORT_INTERNAL(ib_unregister_port_notifier);

void ib_ports_changed(struct ib_device *dev)
{
	blocking_notifier_call_chain(&ib_priv(dev)->port_notifiers, 0, NULL);
}

static int alloc_ports(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);
	size_t nr = rdma_end_port(dev) + 1;
	struct ib_port_priv *ports;
	u32 port;

	lockdep_assert_held(&alloc_lock);
	ports = kcalloc(nr, sizeof(*ports), GFP_KERNEL);
	if (!ports)
		return -ENOMEM;
	dev->port_data = kcalloc(nr, sizeof(*dev->port_data), GFP_KERNEL);
	if (!dev->port_data) {
		kfree(ports);
		return -ENOMEM;
	}
	rdma_for_each_port(dev, port)
		dev->port_data[port].ib_dev = dev;
	priv->last_port = rdma_end_port(dev);
	/* Pairs with the acquire in ib_port_or_null(). */
	smp_store_release(&priv->ports, ports);
	return 0;
}

/**
 * ib_port_data_alloc() - allocate the data of each port
 * @dev: device with its number of ports set
 *
 * Called before registration if the driver sets a network device that early.
 *
 * Context: Process, may sleep.
 * Return: 0; -EINVAL for a number of ports that is bad, or not what it was the
 *	   first time; or -ENOMEM.
 */
static int ib_port_data_alloc(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);
	int ret = 0;

	if (dev->phys_port_cnt < 1 || dev->phys_port_cnt > MAX_PORTS) {
		ibdev_warn(dev, "cannot register: %u ports, must be 1 to %u\n",
			   dev->phys_port_cnt, MAX_PORTS);
		return -EINVAL;
	}
	mutex_lock(&alloc_lock);
	if (!priv->ports) {
		ret = alloc_ports(dev);
	} else if (rdma_end_port(dev) != priv->last_port) {
		ibdev_warn(dev, "cannot register again: last port changed from %u to %u\n",
			   priv->last_port, rdma_end_port(dev));
		ret = -EINVAL;
	}
	mutex_unlock(&alloc_lock);
	return ret;
}

void ib_port_data_free(struct ib_device *dev)
{
	kfree(ib_priv(dev)->ports);
	kfree(dev->port_data);
}

static int check_immutable(const struct ib_device *dev, u32 port)
{
	const struct ib_port_immutable *imm = &dev->port_data[port].immutable;

	if (imm->gid_tbl_len < 0 || imm->gid_tbl_len > MAX_TABLE_LEN ||
	    imm->pkey_tbl_len < 0 || imm->pkey_tbl_len > MAX_TABLE_LEN) {
		ibdev_warn(dev, "port %u: bad table lengths: %d GIDs, %d P_Keys\n",
			   port, imm->gid_tbl_len, imm->pkey_tbl_len);
		return -EINVAL;
	}
	if (imm->pkey_tbl_len && !dev->ops.query_pkey) {
		ibdev_warn(dev, "port %u: driver lacks method query_pkey\n",
			   port);
		return -EINVAL;
	}
	if (imm->gid_tbl_len && rdma_protocol_ib(dev, port) &&
	    !dev->ops.query_gid) {
		ibdev_warn(dev, "port %u: driver lacks method query_gid\n",
			   port);
		return -EINVAL;
	}
	return 0;
}

/* Called while the device is being registered, by the driver at @site. */
int ib_port_data_setup(struct ib_device *dev, unsigned long site)
{
	u32 port;
	int ret;

	ret = ib_port_data_alloc(dev);
	if (ret)
		return ret;
	rdma_for_each_port(dev, port) {
		ret = dev->ops.get_port_immutable(dev, port,
				&dev->port_data[port].immutable);
		if (ret) {
			ibdev_warn(dev, "port %u: get_port_immutable failed (%d)\n",
				   port, ret);
			return ret;
		}
		if (!(dev->port_data[port].immutable.core_cap_flags & PROTOCOLS) &&
		    rdma_node_get_transport(dev->node_type) != RDMA_TRANSPORT_UNSPECIFIED)
			ib_output_missing(dev, NULL, "get_port_immutable", "returned no protocol",
					  site);
		ret = check_immutable(dev, port);
		if (ret)
			return ret;
	}
	return 0;
}

/**
 * rdma_node_get_transport() - transport of a kind of node
 * @node_type: RDMA_NODE_*
 *
 * Context: Any.
 * Return: the transport, %RDMA_TRANSPORT_UNSPECIFIED for an unknown kind.
 */
enum rdma_transport_type rdma_node_get_transport(unsigned int node_type)
{
	switch (node_type) {
	case RDMA_NODE_IB_CA:
	case RDMA_NODE_IB_SWITCH:
	case RDMA_NODE_IB_ROUTER:
		return RDMA_TRANSPORT_IB;
	case RDMA_NODE_RNIC:
		return RDMA_TRANSPORT_IWARP;
	case RDMA_NODE_USNIC:
		return RDMA_TRANSPORT_USNIC;
	case RDMA_NODE_USNIC_UDP:
		return RDMA_TRANSPORT_USNIC_UDP;
	default:
		return RDMA_TRANSPORT_UNSPECIFIED;
	}
}
EXPORT_SYMBOL(rdma_node_get_transport);

static enum rdma_link_layer link_layer_by_node(const struct ib_device *device)
{
	if (rdma_node_get_transport(device->node_type) == RDMA_TRANSPORT_IB)
		return IB_LINK_LAYER_INFINIBAND;
	return IB_LINK_LAYER_ETHERNET;
}

/**
 * rdma_port_get_link_layer() - link layer of a port
 * @device: the device
 * @port_num: the port
 *
 * Context: Any.
 * Return: the link layer: what the driver says, else what the node type implies.
 */
enum rdma_link_layer rdma_port_get_link_layer(struct ib_device *device,
					      u32 port_num)
{
	if (device->ops.get_link_layer)
		return IB_ATOMIC_METHOD(device, NULL, "get_link_layer",
					device->ops.get_link_layer(device, port_num));
	return link_layer_by_node(device);
}
EXPORT_SYMBOL(rdma_port_get_link_layer);

/* For callers that are themselves checked: no frame for the contract checker. */
static enum rdma_link_layer unchecked_link_layer(struct ib_device *device, u32 port_num)
{
	if (device->ops.get_link_layer)
		return device->ops.get_link_layer(device, port_num);
	return link_layer_by_node(device);
}

/*
 * What drivers of iWARP devices leave to the core: MTU and state of the port as its network
 * device has them. A connection needs an IPv4 address, so without one the port initializes.
 */
static void fill_in_from_netdev(struct ib_device *device, u32 port_num,
				struct ib_port_attr *attr)
{
	struct net_device *ndev = ib_device_get_netdev(device, port_num);
	const struct in_device *in_dev;

	if (!ndev)
		return;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = ib_mtu_int_to_enum(READ_ONCE(ndev->mtu));
	rcu_read_lock();
	in_dev = __in_dev_get_rcu(ndev);
	if (!netif_carrier_ok(ndev)) {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = IB_PORT_PHYS_STATE_DISABLED;
	} else if (in_dev && rcu_access_pointer(in_dev->ifa_list)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	} else {
		attr->state = IB_PORT_INIT;
		attr->phys_state = IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING;
	}
	rcu_read_unlock();
	dev_put(ndev);
}

/**
 * ib_query_port() - state and limits of a port
 * @device: the device
 * @port_num: the port
 * @port_attr: result
 *
 * Before the driver is asked, an iWARP port gets MTU and state of its network device, if it
 * has one: mainline does so, and drivers (cxgb4) fill in only the rest.
 *
 * Context: Process, may sleep.
 * Return: 0; -EINVAL if there is no such port; or the error of the driver.
 */
int ib_query_port(struct ib_device *device, u32 port_num,
		  struct ib_port_attr *port_attr)
{
	int ret;

	if (!rdma_is_port_valid(device, port_num))
		return ib_invalid_port(device, "query_port", port_num, _RET_IP_);
	memset(port_attr, 0, sizeof(*port_attr));
	if (rdma_protocol_iwarp(device, port_num))
		fill_in_from_netdev(device, port_num, port_attr);
	ret = IB_METHOD(device, NULL, "query_port",
			device->ops.query_port(device, port_num, port_attr));
	if (!ret && !port_attr->max_mtu)
		ib_output_missing(device, NULL, "query_port", "returned no MTU", _RET_IP_);
	if (!ret && !port_attr->subnet_prefix &&
	    unchecked_link_layer(device, port_num) == IB_LINK_LAYER_INFINIBAND)
		port_attr->subnet_prefix = ib_cache_subnet_prefix(device, port_num);
	return ret;
}
EXPORT_SYMBOL(ib_query_port);

/**
 * ib_modify_port() - change a port
 * @device: the device
 * @port_num: the port
 * @port_modify_mask: &enum ib_port_modify_flags
 * @port_modify: values
 *
 * Context: Process, may sleep.
 * Return: 0, also for a RoCE port if the driver has no such method; -EINVAL if there is no
 *	   such port; -EOPNOTSUPP for another port if the driver has no such method; or the
 *	   error of the driver.
 */
int ib_modify_port(struct ib_device *device, u32 port_num,
		   int port_modify_mask, struct ib_port_modify *port_modify)
{
	int ret;

	if (!rdma_is_port_valid(device, port_num))
		return ib_invalid_port(device, "modify_port", port_num, _RET_IP_);
	if (device->ops.modify_port) {
		ret = IB_METHOD(device, NULL, "modify_port",
				device->ops.modify_port(device, port_num, port_modify_mask,
							port_modify));
		/* The driver may report no event for this. */
		if (!ret)
			ib_ports_changed(device);
		return ret;
	}
	/* Only a subnet manager needs what can be modified, and RoCE has none. */
	return rdma_protocol_roce(device, port_num) ? 0 : -EOPNOTSUPP;
}
EXPORT_SYMBOL(ib_modify_port);

/**
 * ib_modify_device() - change a device's own attributes
 * @device: the device
 * @device_modify_mask: &enum ib_device_modify_flags
 * @device_modify: values
 *
 * Context: Process, may sleep.
 * Return: 0; -EOPNOTSUPP if the driver has no such method; or the error of the driver.
 */
int ib_modify_device(struct ib_device *device, int device_modify_mask,
		     struct ib_device_modify *device_modify)
{
	int ret;

	if (!device->ops.modify_device)
		return -EOPNOTSUPP;
	ret = IB_METHOD(device, NULL, "modify_device",
			device->ops.modify_device(device, device_modify_mask, device_modify));
	/* There is no event for this. */
	if (!ret)
		ib_ports_changed(device);
	return ret;
}
EXPORT_SYMBOL(ib_modify_device);

/**
 * ib_get_device_fw_str() - firmware version as text
 * @dev: the device
 * @str: room for %IB_FW_VERSION_NAME_MAX bytes
 *
 * Context: Process, may sleep.
 */
void ib_get_device_fw_str(struct ib_device *dev, char *str)
{
	ib_contract_call(dev, NULL, "ib_get_device_fw_str", _RET_IP_);
	if (dev->ops.get_dev_fw_str)
		dev->ops.get_dev_fw_str(dev, str);
	else
		str[0] = '\0';
}
EXPORT_SYMBOL(ib_get_device_fw_str);

/**
 * rdma_dev_access_netns() - check whether a network namespace may use a device
 * @device: the device
 * @net: the network namespace
 *
 * Context: Any.
 * Return: true: all devices are shared among the namespaces.
 */
bool rdma_dev_access_netns(const struct ib_device *device,
			   const struct net *net)
{
	return true;
}
EXPORT_SYMBOL(rdma_dev_access_netns);

/* Stores the former network device, with its reference, in @old. */
static int replace_netdev(struct ib_device *dev, u32 port,
			  struct net_device *ndev, struct net_device **old)
{
	struct ib_device_priv *priv = ib_priv(dev);
	int ret = -ENODEV;

	spin_lock(&netdev_lock);
	/* Refuse one that unregisters: ib_ports_forget_netdev() may have run already. */
	if (ndev && READ_ONCE(ndev->reg_state) != NETREG_REGISTERED)
		goto out;
	ret = 0;
	dev_hold(ndev);
	*old = rcu_replace_pointer(ib_port(dev, port)->netdev, ndev,
				   lockdep_is_held(&netdev_lock));
	if (list_empty(&priv->netdev_link))
		list_add_tail(&priv->netdev_link, &netdev_owners);
out:
	spin_unlock(&netdev_lock);
	return ret;
}

/**
 * ib_device_set_netdev() - bind a port to a network device
 * @ib_dev: device of the port, registered or with phys_port_cnt set
 * @ndev: registered network device, or %NULL
 * @port: the port
 *
 * The core holds @ndev until it unregisters; a device that is not registered then holds it until it
 * has been, or until it is freed, so that the driver can find it by ib_device_get_by_netdev() when
 * the kernel tells of the end again. The port stays bound when @ndev moves to another network
 * namespace. The GID table of a RoCE port follows its addresses.
 *
 * Context: Process, may sleep; with or without the RTNL lock.
 * Return: 0; -EINVAL if there is no such port, or if the number of ports has
 *	   changed; -ENODEV if @ndev is not registered or unregisters; -ENOMEM.
 */
int ib_device_set_netdev(struct ib_device *ib_dev, struct net_device *ndev,
			 unsigned int port)
{
	struct net_device *old;
	int ret;

	if (!rdma_is_port_valid(ib_dev, port))
		return ib_invalid_port(ib_dev, "set_netdev", port, _RET_IP_);
	ret = ib_port_data_alloc(ib_dev);
	if (ret)
		return ret;
	ret = replace_netdev(ib_dev, port, ndev, &old);
	if (ret)
		return ret;
	if (old != ndev)
		ib_roce_netdev_changed();
	dev_put(old);
	return 0;
}
EXPORT_SYMBOL(ib_device_set_netdev);

/* Unbinds the ports from @ndev, or from any network device if that is NULL. */
static void put_netdevs(struct ib_device_priv *priv,
			const struct net_device *ndev)
{
	struct net_device *old;
	u32 port;

	lockdep_assert_held(&netdev_lock);
	/* Not phys_port_cnt: the driver may have changed it. */
	for (port = 0; port <= priv->last_port; port++) {
		old = rcu_dereference_protected(priv->ports[port].netdev,
						lockdep_is_held(&netdev_lock));
		if (ndev && old != ndev)
			continue;
		RCU_INIT_POINTER(priv->ports[port].netdev, NULL);
		dev_put(old);
	}
}

/* Is a port bound to the network device? Any context but interrupts. */
bool ib_netdev_has_port(const struct net_device *ndev)
{
	struct ib_device_priv *priv;
	bool found = false;
	u32 port;

	spin_lock(&netdev_lock);
	list_for_each_entry(priv, &netdev_owners, netdev_link) {
		for (port = 0; port <= priv->last_port; port++)
			found |= rcu_access_pointer(priv->ports[port].netdev) == ndev;
	}
	spin_unlock(&netdev_lock);
	return found;
}

/* Whether lookups have found the device, or can find it now. */
static bool was_visible(struct ib_device_priv *priv)
{
	enum ib_dev_state state = READ_ONCE(priv->state);

	if (state == IB_DEV_ENABLING)
		return xa_get_mark(&ib_devices, ib_device_of(priv)->index, IB_DEVICE_REGISTERED);
	return state > IB_DEV_ENABLING;
}

/*
 * A network device is about to be told of, as one that unregisters: notes which devices their
 * drivers can look up meanwhile. RTNL is held until ib_ports_forget_netdev() has been called.
 */
void ib_ports_forget_begin(void)
{
	struct ib_device_priv *priv;

	ASSERT_RTNL();
	spin_lock(&netdev_lock);
	list_for_each_entry(priv, &netdev_owners, netdev_link)
		priv->netdev_told = was_visible(priv);
	spin_unlock(&netdev_lock);
}

/*
 * The network device unregisters: makes all ports put it. But a driver must have had the
 * opportunity to find its device and to unregister it: a device that is not registered yet keeps
 * the network device, so that the kernel tells of it again, each second.
 */
void ib_ports_forget_netdev(struct net_device *ndev)
{
	struct ib_device_priv *priv;

	spin_lock(&netdev_lock);
	list_for_each_entry(priv, &netdev_owners, netdev_link)
		if (priv->netdev_told)
			put_netdevs(priv, ndev);
	spin_unlock(&netdev_lock);
}

void ib_port_put_netdevs(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);

	spin_lock(&netdev_lock);
	if (!list_empty(&priv->netdev_link)) {
		put_netdevs(priv, NULL);
		list_del_init(&priv->netdev_link);
	}
	spin_unlock(&netdev_lock);
}

static struct net_device *bound_netdev(struct ib_device *dev, u32 port)
{
	struct ib_port_priv *p = ib_port_or_null(dev, port);
	struct net_device *ndev;

	if (!p)
		return NULL;
	rcu_read_lock();
	ndev = rcu_dereference(p->netdev);
	dev_hold(ndev);
	rcu_read_unlock();
	return ndev;
}

/* ULPs of kernels before 6.12 call the driver's method, which need not exist. */
void ib_port_default_method(struct ib_device *dev)
{
	if (!dev->ops.get_netdev)
		dev->ops.get_netdev = bound_netdev;
}

/**
 * ib_device_get_netdev() - network device of a port
 * @ib_dev: the device
 * @port: the port
 *
 * Context: Any but hard interrupt, if the driver has no get_netdev method.
 * Return: the network device, to be released with dev_put(), or %NULL.
 */
struct net_device *ib_device_get_netdev(struct ib_device *ib_dev, u32 port)
{
	ib_contract_call(ib_dev, NULL, "ib_device_get_netdev", _RET_IP_);
	if (!ib_port_or_null(ib_dev, port))
		return NULL;
	if (ib_dev->ops.get_netdev)
		return ib_dev->ops.get_netdev(ib_dev, port);
	return bound_netdev(ib_dev, port);
}
EXPORT_SYMBOL(ib_device_get_netdev);

/* The width and speed with the largest product that does not exceed a rate in Mb/s. */
static void eth_to_ib_speed(u32 mbps, u16 *speed, u8 *width)
{
	static const struct {
		u32 mbps;
		u8 width;
		u16 speed;
	} rates[] = {
		{ 800000, IB_WIDTH_8X, IB_SPEED_NDR },
		{ 400000, IB_WIDTH_4X, IB_SPEED_NDR },
		{ 200000, IB_WIDTH_4X, IB_SPEED_HDR },
		{ 100000, IB_WIDTH_4X, IB_SPEED_EDR },
		{ 56000, IB_WIDTH_4X, IB_SPEED_FDR },
		{ 50000, IB_WIDTH_2X, IB_SPEED_EDR },
		{ 40000, IB_WIDTH_4X, IB_SPEED_FDR10 },
		{ 25000, IB_WIDTH_1X, IB_SPEED_EDR },
		{ 20000, IB_WIDTH_4X, IB_SPEED_DDR },
		{ 10000, IB_WIDTH_1X, IB_SPEED_FDR10 },
		{ 5000, IB_WIDTH_1X, IB_SPEED_DDR },
	};
	unsigned int i;

	*width = IB_WIDTH_1X;
	*speed = IB_SPEED_SDR;
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		if (mbps < rates[i].mbps)
			continue;
		*width = rates[i].width;
		*speed = rates[i].speed;
		return;
	}
}

/**
 * ib_get_eth_speed() - speed of an Ethernet port in IBTA's terms
 * @dev: the device
 * @port_num: the port
 * @speed: &enum ib_port_speed
 * @width: &enum ib_port_width
 *
 * A network device that does not report its speed is taken to have 1 Gb/s. A
 * driver whose query_port method calls this must not unregister its device
 * under RTNL.
 *
 * Context: Process, may sleep; takes RTNL.
 * Return: 0; -EINVAL if the port is not an Ethernet port; -ENODEV if it has no
 *	   network device.
 */
int ib_get_eth_speed(struct ib_device *dev, u32 port_num, u16 *speed,
		     u8 *width)
{
	const struct ib_verb_call call = { .dev = dev, .site = _RET_IP_, .what = "get_eth_speed" };
	struct ethtool_link_ksettings settings;
	struct net_device *ndev;
	u32 mbps = SPEED_1000;
	bool gone;
	int ret;

	ib_contract_call(dev, NULL, "ib_get_eth_speed", _RET_IP_);
	if (!rdma_is_port_valid(dev, port_num))
		return ib_invalid_port(dev, "get_eth_speed", port_num, _RET_IP_);
	if (rdma_port_get_link_layer(dev, port_num) != IB_LINK_LAYER_ETHERNET)
		return ib_invalid(&call, "port %u is not an Ethernet port", port_num);
	ndev = ib_device_get_netdev(dev, port_num);
	if (!ndev)
		return -ENODEV;
	rtnl_lock();
	/* One that is being unregistered may be referenced still, but its driver's state may be gone. */
	gone = READ_ONCE(ndev->reg_state) != NETREG_REGISTERED;
	ret = gone ? -ENODEV : __ethtool_get_link_ksettings(ndev, &settings);
	rtnl_unlock();
	dev_put(ndev);
	if (gone)
		return ret;
	if (!ret && settings.base.speed != (u32)SPEED_UNKNOWN)
		mbps = settings.base.speed;
	eth_to_ib_speed(mbps, speed, width);
	return 0;
}
EXPORT_SYMBOL(ib_get_eth_speed);
