// SPDX-License-Identifier: GPL-2.0-only
/*
 * Optional methods of the mock: virtual functions, modify_port and modify_device, the
 * firmware's version string, the affinity of completion vectors, counters.
 *
 * Locking: mock->vf has no lock, since only the case calls the methods that use it. Attributes
 * of ports are changed under mock->lock, since the core queries them at any time.
 */
#include <linux/cpumask.h>
#include <linux/if_link.h>

#include "lib/mock.h"

/* Logs the call. Returns the virtual function that it is for, or an ERR_PTR. */
static struct mock_vf *enter_vf(struct ib_device *ibdev, enum mock_op op, int vf, u32 port)
{
	struct mock *m = mock_of(ibdev);
	int ret = mock_enter(m, op, ibdev, port, vf);

	if (ret)
		return ERR_PTR(ret);
	if (vf < 0 || vf >= MOCK_VFS || port < 1 || port > m->nports)
		return ERR_PTR(-EINVAL);
	return &m->vf[port][vf];
}

static int mock_set_vf_link_state(struct ib_device *ibdev, int vf, u32 port, int state)
{
	struct mock_vf *v = enter_vf(ibdev, MOCK_set_vf_link_state, vf, port);

	if (IS_ERR(v))
		return PTR_ERR(v);
	v->link_state = state;
	v->sets++;
	return 0;
}

static int mock_get_vf_config(struct ib_device *ibdev, int vf, u32 port, struct ifla_vf_info *info)
{
	struct mock_vf *v = enter_vf(ibdev, MOCK_get_vf_config, vf, port);

	if (IS_ERR(v))
		return PTR_ERR(v);
	info->vf = vf;
	info->linkstate = v->link_state;
	return 0;
}

/* Reports the number of settings as received packets. */
static int mock_get_vf_stats(struct ib_device *ibdev, int vf, u32 port, struct ifla_vf_stats *stats)
{
	struct mock_vf *v = enter_vf(ibdev, MOCK_get_vf_stats, vf, port);

	if (IS_ERR(v))
		return PTR_ERR(v);
	stats->rx_packets = v->sets;
	return 0;
}

static int mock_get_vf_guid(struct ib_device *ibdev, int vf, u32 port,
			    struct ifla_vf_guid *node_guid, struct ifla_vf_guid *port_guid)
{
	struct mock_vf *v = enter_vf(ibdev, MOCK_get_vf_guid, vf, port);

	if (IS_ERR(v))
		return PTR_ERR(v);
	node_guid->guid = v->node_guid;
	port_guid->guid = v->port_guid;
	return 0;
}

static int mock_set_vf_guid(struct ib_device *ibdev, int vf, u32 port, u64 guid, int type)
{
	struct mock_vf *v = enter_vf(ibdev, MOCK_set_vf_guid, vf, port);

	if (IS_ERR(v))
		return PTR_ERR(v);
	if (type == IFLA_VF_IB_NODE_GUID)
		v->node_guid = guid;
	else
		v->port_guid = guid;
	v->sets++;
	return 0;
}

static int mock_modify_port(struct ib_device *ibdev, u32 port, int mask,
			    struct ib_port_modify *change)
{
	struct mock *m = mock_of(ibdev);
	int ret = mock_enter(m, MOCK_modify_port, ibdev, port, mask);
	unsigned long flags;

	if (ret)
		return ret;
	raw_spin_lock_irqsave(&m->lock, flags);
	m->port[port].attr.port_cap_flags |= change->set_port_cap_mask;
	m->port[port].attr.port_cap_flags &= ~change->clr_port_cap_mask;
	raw_spin_unlock_irqrestore(&m->lock, flags);
	return 0;
}

static int mock_modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *change)
{
	int ret = mock_enter(mock_of(ibdev), MOCK_modify_device, ibdev, mask, 0);

	if (ret)
		return ret;
	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	memcpy(ibdev->node_desc, change->node_desc, sizeof(ibdev->node_desc));
	return 0;
}

static void mock_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "mock %u", READ_ONCE(mock_of(ibdev)->fw));
}

/* All completion vectors interrupt the first CPU. */
static const struct cpumask *mock_get_vector_affinity(struct ib_device *ibdev, int vector)
{
	return cpumask_of(0);
}

/**
 * mock_optional_methods() - set the optional methods
 * @ops: methods of a device
 */
void mock_optional_methods(struct ib_device_ops *ops)
{
	ops->set_vf_link_state = mock_set_vf_link_state;
	ops->get_vf_config = mock_get_vf_config;
	ops->get_vf_stats = mock_get_vf_stats;
	ops->get_vf_guid = mock_get_vf_guid;
	ops->set_vf_guid = mock_set_vf_guid;
	ops->modify_port = mock_modify_port;
	ops->modify_device = mock_modify_device;
	ops->get_dev_fw_str = mock_get_dev_fw_str;
	ops->get_vector_affinity = mock_get_vector_affinity;
}
EXPORT_SYMBOL_GPL(mock_optional_methods);

static const struct rdma_stat_desc mock_counters[] = {
	{ .name = "mock_frames" }, { .name = "mock_drops" },
};

static struct rdma_hw_stats *mock_alloc_hw_device_stats(struct ib_device *ibdev)
{
	return rdma_alloc_hw_stats_struct(mock_counters, ARRAY_SIZE(mock_counters),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

static struct rdma_hw_stats *mock_alloc_hw_port_stats(struct ib_device *ibdev, u32 port)
{
	return mock_alloc_hw_device_stats(ibdev);
}

/* The value of each counter is its index. */
static int mock_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port,
			     int index)
{
	int i;

	for (i = 0; i < stats->num_counters; i++)
		stats->value[i] = i;
	return stats->num_counters;
}

/**
 * mock_counter_methods() - set the methods for counters of a device and its ports
 * @ops: methods of a device
 */
void mock_counter_methods(struct ib_device_ops *ops)
{
	ops->alloc_hw_device_stats = mock_alloc_hw_device_stats;
	ops->alloc_hw_port_stats = mock_alloc_hw_port_stats;
	ops->get_hw_stats = mock_get_hw_stats;
}
EXPORT_SYMBOL_GPL(mock_counter_methods);
