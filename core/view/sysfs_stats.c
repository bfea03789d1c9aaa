// SPDX-License-Identifier: GPL-2.0-only
/*
 * hw_counters/ and counters/ in sysfs, from the statistics of the driver.
 *
 * hw_counters/ has all of a driver's counters and "lifespan", the milliseconds for which a
 * value is shown again before the driver is asked. counters/ has those that IBTA defines
 * for every port (PortCounters and PortCountersExtended, vol. 1, 16.1.3), if the driver
 * counts them, under the names that user space knows from mainline.
 *
 * Lock protocol: rdma_hw_stats.lock, a mutex, guards values, timestamp and
 * lifespan, and is held around the driver's get_hw_stats method.
 */
#include <linux/device.h>
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <rdma/ib_sysfs.h>
#include <rdma/ib_verbs.h>

#include "sysfs_port.h"

#define MAX_LIFESPAN_MS	10000

/* The first member of both kinds is a struct attribute. */
struct stat_attr {
	union {
		struct device_attribute dev;
		struct ib_port_attribute port;
	};
	struct ib_stats *owner;
	int index;
};

struct ib_stats {
	struct ib_device *dev;
	u32 port;
	struct rdma_hw_stats *values;
	struct attribute **all;
	struct attribute **ibta;
	struct attribute_group groups[2];
	const struct attribute_group *group_list[3];
	struct stat_attr attrs[];
};

/**
 * rdma_alloc_hw_stats_struct() - allocate a structure for a driver's counters
 * @descs: the counters; must outlive the result
 * @num_counters: how many
 * @lifespan: milliseconds for which values stay valid
 *
 * For drivers' alloc_hw_device_stats and alloc_hw_port_stats methods.
 *
 * Context: Process, may sleep.
 * Return: the structure, which the core frees, or %NULL.
 */
struct rdma_hw_stats *
rdma_alloc_hw_stats_struct(const struct rdma_stat_desc *descs,
			   int num_counters, unsigned long lifespan)
{
	struct rdma_hw_stats *stats;

	stats = kzalloc(struct_size(stats, value, num_counters), GFP_KERNEL);
	if (!stats)
		return NULL;
	stats->is_disabled = bitmap_zalloc(num_counters, GFP_KERNEL);
	if (!stats->is_disabled) {
		kfree(stats);
		return NULL;
	}
	mutex_init(&stats->lock);
	stats->num_counters = num_counters;
	stats->descs = descs;
	stats->lifespan = msecs_to_jiffies(lifespan);
	/* Old enough that the first read asks the driver. */
	stats->timestamp = jiffies - stats->lifespan - 1;
	return stats;
}
EXPORT_SYMBOL(rdma_alloc_hw_stats_struct);

/**
 * rdma_free_hw_stats_struct() - free what rdma_alloc_hw_stats_struct() made
 * @stats: the structure, or %NULL
 *
 * Context: Process.
 */
void rdma_free_hw_stats_struct(struct rdma_hw_stats *stats)
{
	if (!stats)
		return;
	bitmap_free(stats->is_disabled);
	kfree(stats);
}
EXPORT_SYMBOL(rdma_free_hw_stats_struct);

static int update_stats(struct ib_stats *stats, int index)
{
	struct rdma_hw_stats *values = stats->values;
	int ret;

	lockdep_assert_held(&values->lock);
	/* A value that was read very long ago must not seem to be one of the future. */
	if (time_in_range(jiffies, values->timestamp, values->timestamp + values->lifespan))
		return 0;
	ret = stats->dev->ops.get_hw_stats(stats->dev, values, stats->port,
					   index);
	if (ret == values->num_counters)
		values->timestamp = jiffies;
	return min(ret, 0);
}

static ssize_t show_stat(const struct stat_attr *attr, char *buf)
{
	struct ib_stats *stats = attr->owner;
	u64 value = 0;
	int ret;

	mutex_lock(&stats->values->lock);
	ret = update_stats(stats, attr->index);
	if (!ret)
		value = stats->values->value[attr->index];
	mutex_unlock(&stats->values->lock);
	return ret ? : sysfs_emit(buf, "%llu\n", value);
}

static ssize_t dev_stat_show(struct device *d, struct device_attribute *attr,
			     char *buf)
{
	return show_stat(container_of(attr, struct stat_attr, dev), buf);
}

static ssize_t port_stat_show(struct ib_device *dev, u32 port,
			      struct ib_port_attribute *attr, char *buf)
{
	return show_stat(container_of(attr, struct stat_attr, port), buf);
}

static ssize_t show_lifespan(const struct stat_attr *attr, char *buf)
{
	struct rdma_hw_stats *values = attr->owner->values;
	unsigned int ms;

	mutex_lock(&values->lock);
	ms = jiffies_to_msecs(values->lifespan);
	mutex_unlock(&values->lock);
	return sysfs_emit(buf, "%u\n", ms);
}

static ssize_t store_lifespan(const struct stat_attr *attr, const char *buf,
			      size_t count)
{
	struct rdma_hw_stats *values = attr->owner->values;
	unsigned int ms;
	int ret;

	ret = kstrtouint(buf, 10, &ms);
	if (ret)
		return ret;
	if (ms > MAX_LIFESPAN_MS)
		return -EINVAL;
	mutex_lock(&values->lock);
	values->lifespan = msecs_to_jiffies(ms);
	mutex_unlock(&values->lock);
	return count;
}

static ssize_t dev_lifespan_show(struct device *d,
				 struct device_attribute *attr, char *buf)
{
	return show_lifespan(container_of(attr, struct stat_attr, dev), buf);
}

static ssize_t dev_lifespan_store(struct device *d,
				  struct device_attribute *attr,
				  const char *buf, size_t count)
{
	return store_lifespan(container_of(attr, struct stat_attr, dev), buf,
			      count);
}

static ssize_t port_lifespan_show(struct ib_device *dev, u32 port,
				  struct ib_port_attribute *attr, char *buf)
{
	return show_lifespan(container_of(attr, struct stat_attr, port), buf);
}

static ssize_t port_lifespan_store(struct ib_device *dev, u32 port,
				   struct ib_port_attribute *attr,
				   const char *buf, size_t count)
{
	return store_lifespan(container_of(attr, struct stat_attr, port), buf,
			      count);
}

static bool is_ibta_counter(const char *name)
{
	static const char * const names[] = {
		"symbol_error", "link_error_recovery", "link_downed",
		"port_rcv_errors", "port_rcv_remote_physical_errors",
		"port_rcv_switch_relay_errors", "port_xmit_discards",
		"port_xmit_constraint_errors", "port_rcv_constraint_errors",
		"local_link_integrity_errors",
		"excessive_buffer_overrun_errors", "VL15_dropped",
		"port_xmit_data", "port_rcv_data", "port_xmit_packets",
		"port_rcv_packets", "port_xmit_wait", "unicast_xmit_packets",
		"unicast_rcv_packets", "multicast_xmit_packets",
		"multicast_rcv_packets",
	};

	return match_string(names, ARRAY_SIZE(names), name) >= 0;
}

static void init_attr(struct ib_stats *stats, struct stat_attr *attr,
		      const char *name, int index)
{
	bool is_lifespan = index < 0;

	sysfs_attr_init(&attr->dev.attr);
	attr->owner = stats;
	attr->index = index;
	attr->dev.attr.name = name;
	attr->dev.attr.mode = is_lifespan ? 0644 : 0444;
	if (!stats->port) {
		attr->dev.show = is_lifespan ? dev_lifespan_show :
					       dev_stat_show;
		attr->dev.store = is_lifespan ? dev_lifespan_store : NULL;
	} else {
		attr->port.show = is_lifespan ? port_lifespan_show :
						port_stat_show;
		attr->port.store = is_lifespan ? port_lifespan_store : NULL;
	}
}

static void fill_groups(struct ib_stats *stats)
{
	int nr = stats->values->num_counters;
	int i, nr_all = 0, nr_ibta = 0;
	const struct rdma_stat_desc *desc;

	for (i = 0; i < nr; i++) {
		desc = &stats->values->descs[i];
		/* Optional ones must be switched on first, by netlink. */
		if (desc->flags & IB_STAT_FLAG_OPTIONAL)
			continue;
		init_attr(stats, &stats->attrs[i], desc->name, i);
		stats->all[nr_all++] = &stats->attrs[i].dev.attr;
		if (stats->port && is_ibta_counter(desc->name))
			stats->ibta[nr_ibta++] = &stats->attrs[i].dev.attr;
	}
	init_attr(stats, &stats->attrs[nr], "lifespan", -1);
	stats->all[nr_all] = &stats->attrs[nr].dev.attr;

	stats->groups[0].name = "hw_counters";
	stats->groups[0].attrs = stats->all;
	stats->group_list[0] = &stats->groups[0];
	if (!nr_ibta)
		return;
	stats->groups[1].name = "counters";
	stats->groups[1].attrs = stats->ibta;
	stats->group_list[1] = &stats->groups[1];
}

static struct rdma_hw_stats *driver_stats(struct ib_device *dev, u32 port)
{
	struct rdma_hw_stats *values;

	if (!dev->ops.get_hw_stats)
		return NULL;
	if (port && dev->ops.alloc_hw_port_stats)
		values = dev->ops.alloc_hw_port_stats(dev, port);
	else if (!port && dev->ops.alloc_hw_device_stats)
		values = dev->ops.alloc_hw_device_stats(dev);
	else
		return NULL;
	if (!values)
		return ERR_PTR(-ENOMEM);
	if (values->descs && values->num_counters > 0)
		return values;
	rdma_free_hw_stats_struct(values);
	return ERR_PTR(-EINVAL);
}

/* Port 0 stands for the device. Returns NULL if the driver has no counters. */
struct ib_stats *ib_stats_create(struct ib_device *dev, u32 port)
{
	struct rdma_hw_stats *values = driver_stats(dev, port);
	struct ib_stats *stats;
	size_t nr;

	if (IS_ERR_OR_NULL(values))
		return ERR_CAST(values);
	/* One more for the lifespan, and one to end the list. */
	nr = values->num_counters + 2;
	stats = kzalloc(struct_size(stats, attrs, nr), GFP_KERNEL);
	if (!stats) {
		rdma_free_hw_stats_struct(values);
		return ERR_PTR(-ENOMEM);
	}
	stats->dev = dev;
	stats->port = port;
	stats->values = values;
	stats->all = kcalloc(nr, sizeof(*stats->all), GFP_KERNEL);
	stats->ibta = kcalloc(nr, sizeof(*stats->ibta), GFP_KERNEL);
	if (!stats->all || !stats->ibta) {
		ib_stats_free(stats);
		return ERR_PTR(-ENOMEM);
	}
	fill_groups(stats);
	return stats;
}

/* Returns a list that ends with NULL, even if there are no counters. */
const struct attribute_group **ib_stats_groups(struct ib_stats *stats)
{
	return stats ? stats->group_list : NULL;
}

/* Returns NULL if there are no counters. */
struct rdma_hw_stats *ib_stats_values(struct ib_stats *stats)
{
	return stats ? stats->values : NULL;
}

void ib_stats_free(struct ib_stats *stats)
{
	if (!stats)
		return;
	kfree(stats->all);
	kfree(stats->ibta);
	rdma_free_hw_stats_struct(stats->values);
	kfree(stats);
}
