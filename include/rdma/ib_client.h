/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Clients: consumers of all devices. Include <rdma/ib_verbs.h>, which includes this.
 */
#ifndef _RDMA_IB_CLIENT_H
#define _RDMA_IB_CLIENT_H

#include <linux/types.h>

struct ib_client_nl_info;
struct ib_device;
struct net_device;
struct sockaddr;
union ib_gid;

/**
 * struct ib_client - a consumer of all devices
 */
struct ib_client {
	/** @name: unique among the clients */
	const char *name;
	/**
	 * @add: called for each device, which the client may use from then on. If
	 * it returns an error, the client does not use the device, and none of the
	 * other methods is called for it.
	 */
	int (*add)(struct ib_device *ibdev);
	/**
	 * @remove: the device is being unregistered, or the client is. When this
	 * returns, the client no longer uses the device.
	 */
	void (*remove)(struct ib_device *ibdev, void *client_data);
	/** @rename: the device has a new name */
	void (*rename)(struct ib_device *ibdev, void *client_data);
	/**
	 * @get_nl_info: called by RDMA netlink, a module of scripts/ulps, to get the character
	 * device that the client has for this device. Calls for one device do not overlap
	 */
	int (*get_nl_info)(struct ib_device *ibdev, void *client_data,
			   struct ib_client_nl_info *res);
	/**
	 * @get_global_nl_info: the same for a character device that all devices share; must
	 * not sleep
	 */
	int (*get_global_nl_info)(struct ib_client_nl_info *res);
	/**
	 * @get_net_dev_by_params: the client's network device that a connection request
	 * is for, with a reference for the caller, or NULL: see ib_get_net_dev_by_params().
	 * Calls for one device do not overlap. It must not unregister the device or the client.
	 */
	struct net_device *(*get_net_dev_by_params)(struct ib_device *dev,
						    u32 port, u16 pkey,
						    const union ib_gid *gid,
						    const struct sockaddr *addr,
						    void *client_data);

	/** @client_id: private to the core: index in its table of clients */
	u32 client_id;
	/**
	 * @no_kverbs_req: has no effect: kernel consumers can use each device, and
	 * each is offered to all clients
	 */
	u8 no_kverbs_req:1;
};

#endif /* _RDMA_IB_CLIENT_H */
