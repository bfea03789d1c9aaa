// SPDX-License-Identifier: GPL-2.0-only
/*
 * Functions that the kernel's own RDMA netlink expects from the kernel's own core, implemented on
 * kverbs' core.
 *
 * They are private to the kernel's core, which declares them in core_priv.h and rdma_counter.h.
 * Requests for what kverbs does not support are refused: moving devices between network
 * namespaces, binding QPs to counters, and sub-devices.
 */
#include <linux/device.h>
#include <linux/export.h>
#include <linux/netlink.h>
#include <net/sock.h>

#include "core_priv.h"

/* Devices are visible in all network namespaces. */
bool ib_devices_shared_netns = true;

/* @enable: they shall be visible in all, as they are; else each in one only. */
int rdma_compatdev_set(u8 enable)
{
	return enable ? 0 : -EOPNOTSUPP;
}

/* Drops the caller's reference on the device, as the netlink code expects. */
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

/* Returns the device with that index and a reference on it, or NULL. */
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

/* The caller has to put the character device. */
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
 * @dev: NULL for a character device that all devices share. The kernel's own core would ask
 * modprobe for a missing client; here that would load the kernel's own module of that name.
 */
int ib_get_client_nl_info(struct ib_device *dev, const char *name, struct ib_client_nl_info *res)
{
	int ret = ib_call_client(dev, name, ask_client, res);

	/* The error that the kernel's own core returns. */
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

/* The counts of bound counters, in addition to the port's own. */
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

static int switch_counter(struct ib_device *dev, u32 port, struct rdma_hw_stats *stats,
			  unsigned int index, bool enable)
{
	int ret;

	lockdep_assert_held(&stats->lock);
	if (enable != test_bit(index, stats->is_disabled))
		return 0;
	ret = dev->ops.modify_hw_stat(dev, port, index, enable);
	if (!ret)
		assign_bit(index, stats->is_disabled, !enable);
	return ret;
}

/* Switches an optional counter on or off; the driver is asked only if that changes it. */
int rdma_counter_modify(struct ib_device *dev, u32 port, unsigned int index, bool enable)
{
	struct rdma_hw_stats *stats = ib_port_stats(dev, port);
	int ret;

	if (!dev->ops.modify_hw_stat)
		return -EOPNOTSUPP;
	if (!stats || index >= stats->num_counters ||
	    !(stats->descs[index].flags & IB_STAT_FLAG_OPTIONAL))
		return -EINVAL;
	mutex_lock(&stats->lock);
	ret = switch_counter(dev, port, stats, index, enable);
	mutex_unlock(&stats->lock);
	return ret;
}

/* --- sub-devices ---------------------------------------------------------------------------- */

int ib_add_sub_device(struct ib_device *parent, enum rdma_nl_dev_type type, const char *name)
{
	return -EOPNOTSUPP;
}

int ib_del_sub_device_and_put(struct ib_device *sub)
{
	ib_device_put(sub);
	return -EOPNOTSUPP;
}
