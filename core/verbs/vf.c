// SPDX-License-Identifier: GPL-2.0-only
/*
 * Virtual functions: calls to configure them. Each needs an optional method of the driver.
 */
#include <linux/export.h>
#include <rdma/ib_verbs.h>

#include "../contract/contract.h"

/**
 * ib_set_vf_link_state() - set the link policy of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @state: IFLA_VF_LINK_STATE_*
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_set_vf_link_state(struct ib_device *device, int vf, u32 port, int state)
{
	if (!device->ops.set_vf_link_state)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "set_vf_link_state",
			 device->ops.set_vf_link_state(device, vf, port, state));
}
EXPORT_SYMBOL(ib_set_vf_link_state);

/**
 * ib_get_vf_config() - read the configuration of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @info: filled in
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_get_vf_config(struct ib_device *device, int vf, u32 port,
		     struct ifla_vf_info *info)
{
	if (!device->ops.get_vf_config)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "get_vf_config",
			 device->ops.get_vf_config(device, vf, port, info));
}
EXPORT_SYMBOL(ib_get_vf_config);

/**
 * ib_get_vf_stats() - read the counters of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @stats: filled in
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_get_vf_stats(struct ib_device *device, int vf, u32 port,
		    struct ifla_vf_stats *stats)
{
	if (!device->ops.get_vf_stats)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "get_vf_stats",
			 device->ops.get_vf_stats(device, vf, port, stats));
}
EXPORT_SYMBOL(ib_get_vf_stats);

/**
 * ib_get_vf_guid() - read the GUIDs of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @node_guid: filled in
 * @port_guid: filled in
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_get_vf_guid(struct ib_device *device, int vf, u32 port,
		   struct ifla_vf_guid *node_guid,
		   struct ifla_vf_guid *port_guid)
{
	if (!device->ops.get_vf_guid)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "get_vf_guid",
			 device->ops.get_vf_guid(device, vf, port, node_guid, port_guid));
}
EXPORT_SYMBOL(ib_get_vf_guid);

/**
 * ib_set_vf_guid() - set a GUID of a virtual function
 * @device: the device
 * @vf: number of the function
 * @port: port
 * @guid: the GUID
 * @type: IFLA_VF_IB_NODE_GUID or IFLA_VF_IB_PORT_GUID
 *
 * Context: Process.
 * Return: 0, -EOPNOTSUPP if the driver has no such method, or an error of the driver.
 */
int ib_set_vf_guid(struct ib_device *device, int vf, u32 port, u64 guid,
		   int type)
{
	if (!device->ops.set_vf_guid)
		return -EOPNOTSUPP;
	return IB_METHOD(device, NULL, "set_vf_guid",
			 device->ops.set_vf_guid(device, vf, port, guid, type));
}
EXPORT_SYMBOL(ib_set_vf_guid);
