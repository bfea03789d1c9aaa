// SPDX-License-Identifier: GPL-2.0-only
/*
 * Network devices on top of a port, set up by the driver of the RDMA device. A driver without
 * rdma_netdev_get_params() leaves the network device entirely to its client.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/netdevice.h>
#include <rdma/ib_verbs.h>

static int netdev_params(struct ib_device *device, u32 port, enum rdma_netdev_t type,
			 struct rdma_netdev_alloc_params *params)
{
	if (!device->ops.rdma_netdev_get_params)
		return -EOPNOTSUPP;
	return device->ops.rdma_netdev_get_params(device, port, type, params);
}

/**
 * rdma_alloc_netdev() - allocate a network device as the driver of a port wants it
 * @device: the device
 * @port_num: the port
 * @type: kind of network device
 * @name: its name, or a pattern for it
 * @name_assign_type: who chose the name
 * @setup: sets it up, as for alloc_netdev()
 *
 * Context: Process, may sleep.
 * Return: the network device; or an ERR_PTR: -EOPNOTSUPP if the driver leaves it to the caller,
 * -ENOMEM, or what the driver's rdma_netdev_get_params() returned.
 */
struct net_device *rdma_alloc_netdev(struct ib_device *device, u32 port_num,
				     enum rdma_netdev_t type, const char *name,
				     unsigned char name_assign_type,
				     void (*setup)(struct net_device *netdev))
{
	struct rdma_netdev_alloc_params params = {};
	int ret = netdev_params(device, port_num, type, &params);

	if (ret)
		return ERR_PTR(ret);
	return alloc_netdev_mqs(params.sizeof_priv, name, name_assign_type, setup, params.txqs,
				params.rxqs) ?: ERR_PTR(-ENOMEM);
}
EXPORT_SYMBOL(rdma_alloc_netdev);

/**
 * rdma_init_netdev() - let the driver of a port initialize a network device
 * @device: the device
 * @port_num: the port
 * @type: kind of network device
 * @name: not used
 * @name_assign_type: not used
 * @setup: not used
 * @netdev: the network device, from rdma_alloc_netdev()
 *
 * Context: Process, may sleep.
 * Return: 0; -EOPNOTSUPP if the driver leaves it to the caller; or what the driver returned.
 */
int rdma_init_netdev(struct ib_device *device, u32 port_num, enum rdma_netdev_t type,
		     const char *name, unsigned char name_assign_type,
		     void (*setup)(struct net_device *netdev), struct net_device *netdev)
{
	struct rdma_netdev_alloc_params params = {};
	int ret = netdev_params(device, port_num, type, &params);

	return ret ?: params.initialize_rdma_netdev(device, port_num, netdev, params.param);
}
EXPORT_SYMBOL(rdma_init_netdev);
