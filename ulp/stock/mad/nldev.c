// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that the kernel's own RDMA netlink expects of its core, by means of kverbs'.
 *
 * They are private to that core, and declared in its core_priv.h and in rdma_counter.h. What
 * kverbs does not have, a request is refused: moving devices between network namespaces, counters
 * that QPs are bound to, and devices that are part of others.
 */
#include <linux/device.h>
#include <linux/export.h>
#include <linux/netlink.h>
#include <net/sock.h>

#include "core_priv.h"

/* Devices are seen in all network namespaces. */
bool ib_devices_shared_netns = true;

int rdma_compatdev_set(u8 enable)
{
	return -EOPNOTSUPP;
}

/* Gives the caller's use of the device back, as the netlink request has it. */
int ib_device_set_netns_put(struct sk_buff *skb, struct ib_device *dev, u32 ns_fd)
{
	ib_device_put(dev);
	return -EOPNOTSUPP;
}

int ib_device_set_dim(struct ib_device *dev, u8 use_dim)
{
	if (use_dim > 1)
		return -EINVAL;
	dev->use_cq_dim = use_dim;
	return 0;
}

/* Returns the device of that number with a use taken, or NULL. */
struct ib_device *ib_device_get_by_index(const struct net *net, u32 index)
{
	u32 found = index;
	struct ib_device *dev = ib_device_get_next(&found);

	if (!dev)
		return NULL;
	if (found == index && rdma_dev_access_netns(dev, net))
		return dev;
	ib_device_put(dev);
	return NULL;
}

int ib_enum_all_devs(nldev_callback call, struct sk_buff *skb, struct netlink_callback *cb)
{
	struct ib_device *dev;
	unsigned int nr = 0;
	int ret = 0;
	u32 index;

	for (index = 0; !ret && (dev = ib_device_get_next(&index)); index++) {
		if (rdma_dev_access_netns(dev, sock_net(skb->sk)))
			ret = call(dev, skb, cb, nr++);
		ib_device_put(dev);
	}
	return ret;
}

/* --- character devices of clients ------------------------------------------------ */

/* The character device stays until the caller puts it. */
static int ask_client(struct ib_client *client, struct ib_device *dev, void *client_data,
		      void *arg)
{
	struct ib_client_nl_info *res = arg;
	int ret = -EOPNOTSUPP;

	if (dev && client->get_nl_info)
		ret = client->get_nl_info(dev, client_data, res);
	else if (!dev && client->get_global_nl_info)
		ret = client->get_global_nl_info(res);
	if (!ret)
		get_device(res->cdev);
	return ret;
}

/*
 * @dev: NULL for a character device that all devices share. The kernel's own core would have
 * modprobe look for the client, and find its own module of that name.
 */
int ib_get_client_nl_info(struct ib_device *dev, const char *name, struct ib_client_nl_info *res)
{
	int ret = ib_call_client(dev, name, ask_client, res);

	/* As the kernel's own core has it. */
	return ret == -ENOENT ? -EOPNOTSUPP : ret;
}

/* --- counters ------------------------------------------------------------------------- */

struct rdma_hw_stats *ib_get_hw_stats_port(struct ib_device *dev, u32 port)
{
	return ib_port_stats(dev, port);
}

int rdma_restrack_count(struct ib_device *dev, enum rdma_restrack_type type, bool show_details)
{
	struct rdma_restrack_root *root = &dev->res[type];
	struct rdma_restrack_entry *res;
	unsigned long id;
	int nr = 0;

	rcu_read_lock();
	xa_for_each(&root->xa, id, res)
		nr++;
	rcu_read_unlock();
	return nr;
}

int rdma_counter_set_auto_mode(struct ib_device *dev, u32 port, enum rdma_nl_counter_mask mask,
			       struct netlink_ext_ack *extack)
{
	return -EOPNOTSUPP;
}

int rdma_counter_query_stats(struct rdma_counter *counter)
{
	return -EOPNOTSUPP;
}

/* What bound counters have counted besides those of the port. */
u64 rdma_counter_get_hwstat_value(struct ib_device *dev, u32 port, u32 index)
{
	return 0;
}

int rdma_counter_bind_qpn(struct ib_device *dev, u32 port, u32 qp_num, u32 counter_id)
{
	return -EOPNOTSUPP;
}

int rdma_counter_bind_qpn_alloc(struct ib_device *dev, u32 port, u32 qp_num, u32 *counter_id)
{
	return -EOPNOTSUPP;
}

int rdma_counter_unbind_qpn(struct ib_device *dev, u32 port, u32 qp_num, u32 counter_id)
{
	return -EOPNOTSUPP;
}

int rdma_counter_get_mode(struct ib_device *dev, u32 port, enum rdma_nl_counter_mode *mode,
			  enum rdma_nl_counter_mask *mask)
{
	*mode = RDMA_COUNTER_MODE_NONE;
	*mask = 0;
	return 0;
}

/* An optional counter. */
int rdma_counter_modify(struct ib_device *dev, u32 port, unsigned int index, bool enable)
{
	struct rdma_hw_stats *stats = ib_port_stats(dev, port);
	int ret;

	if (!dev->ops.modify_hw_stat)
		return -EOPNOTSUPP;
	if (!stats || index >= stats->num_counters)
		return -EINVAL;
	mutex_lock(&stats->lock);
	ret = dev->ops.modify_hw_stat(dev, port, index, enable);
	if (!ret)
		assign_bit(index, stats->is_disabled, !enable);
	mutex_unlock(&stats->lock);
	return ret;
}

/* --- devices that are part of others ------------------------------------------------------ */

int ib_add_sub_device(struct ib_device *parent, enum rdma_nl_dev_type type, const char *name)
{
	return -EOPNOTSUPP;
}

int ib_del_sub_device_and_put(struct ib_device *sub)
{
	ib_device_put(sub);
	return -EOPNOTSUPP;
}
