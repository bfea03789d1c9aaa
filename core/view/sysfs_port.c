// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/infiniband/<device>/ports/<n>/: state and tables of a port.
 *
 *	state lid lid_mask_count sm_lid sm_sl cap_mask rate phys_state link_layer
 *	gids/<i>  pkeys/<i>  gid_attrs/ndevs/<i>  gid_attrs/types/<i>
 *	counters/<name>  hw_counters/<name>
 *
 * Removing a file waits for its readers, so a port, which is freed after its
 * files are removed, outlives every reader.
 */
#include <linux/device.h>
#include <linux/kobject.h>
#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/sysfs.h>
#include <kverbs/upper.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sysfs.h>

#include "../contract/device_priv.h"
#include "../contract/export.h"
#include "../port/port.h"
#include "sysfs_port.h"

typedef ssize_t (*port_show)(struct ib_device *dev, u32 port,
			     struct ib_port_attribute *attr, char *buf);

/* One file of a table; its name is its index. */
struct table_attr {
	struct ib_port_attribute attr;
	char name[12];
	int index;
};

enum port_table { PORT_GIDS, PORT_PKEYS, PORT_NDEVS, PORT_TYPES, PORT_TABLES };

/**
 * struct ib_port - a port in sysfs
 * @kobj: its directory
 * @gid_attrs: the directory in it for the last two tables
 * @list: in ib_core_device.port_list
 * @dev: its device
 * @num: its number
 * @attrs: the files of the tables
 * @lists: the same files in the form that sysfs needs
 * @groups: one for each table
 * @port_groups: the tables in @kobj
 * @gid_groups: those in @gid_attrs
 * @stats: the counters
 */
struct ib_port {
	struct kobject kobj;
	struct kobject gid_attrs;
	struct list_head list;
	struct ib_device *dev;
	u32 num;
	struct table_attr *attrs[PORT_TABLES];
	struct attribute **lists[PORT_TABLES];
	struct attribute_group groups[PORT_TABLES];
	const struct attribute_group *port_groups[3];
	const struct attribute_group *gid_groups[3];
	struct ib_stats *stats;
};

static ssize_t show_attr(struct ib_port *port, struct attribute *attr,
			 char *buf)
{
	struct ib_port_attribute *pattr =
		container_of(attr, struct ib_port_attribute, attr);

	if (!pattr->show)
		return -EIO;
	return pattr->show(port->dev, port->num, pattr, buf);
}

static ssize_t port_attr_show(struct kobject *kobj, struct attribute *attr,
			      char *buf)
{
	return show_attr(container_of(kobj, struct ib_port, kobj), attr, buf);
}

static ssize_t gid_attr_show(struct kobject *kobj, struct attribute *attr,
			     char *buf)
{
	return show_attr(container_of(kobj, struct ib_port, gid_attrs), attr,
			 buf);
}

static ssize_t port_attr_store(struct kobject *kobj, struct attribute *attr,
			       const char *buf, size_t count)
{
	struct ib_port *port = container_of(kobj, struct ib_port, kobj);
	struct ib_port_attribute *pattr =
		container_of(attr, struct ib_port_attribute, attr);

	if (!pattr->store)
		return -EIO;
	return pattr->store(port->dev, port->num, pattr, buf, count);
}

static const struct sysfs_ops port_sysfs_ops = {
	.show = port_attr_show,
	.store = port_attr_store,
};

static const struct sysfs_ops gid_sysfs_ops = { .show = gid_attr_show };

/**
 * ib_port_sysfs_get_ibdev_kobj() - tell which port a directory stands for
 * @kobj: directory that a port attribute was called for
 * @port_num: number of the port
 *
 * Context: Any.
 * Return: the device.
 */
struct ib_device *ib_port_sysfs_get_ibdev_kobj(struct kobject *kobj,
					       u32 *port_num)
{
	struct ib_port *port = container_of(kobj, struct ib_port, kobj);

	*port_num = port->num;
	return port->dev;
}
EXPORT_SYMBOL(ib_port_sysfs_get_ibdev_kobj);

/* A file that prints something of struct ib_port_attr. */
#define PORT_ATTR(_name, _fmt, ...)					\
static ssize_t _name##_show(struct ib_device *dev, u32 port,		\
			    struct ib_port_attribute *unused, char *buf)\
{									\
	struct ib_port_attr attr;					\
	int ret = ib_query_port(dev, port, &attr);			\
									\
	return ret ? : sysfs_emit(buf, _fmt, __VA_ARGS__);		\
}									\
static IB_PORT_ATTR_RO(_name)

static const char *port_state_str(enum ib_port_state state)
{
	static const char * const names[] = {
		[IB_PORT_NOP]		= "NOP",
		[IB_PORT_DOWN]		= "DOWN",
		[IB_PORT_INIT]		= "INIT",
		[IB_PORT_ARMED]		= "ARMED",
		[IB_PORT_ACTIVE]	= "ACTIVE",
		[IB_PORT_ACTIVE_DEFER]	= "ACTIVE_DEFER",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "UNKNOWN";
}

static const char *phys_state_str(unsigned int state)
{
	static const char * const names[] = {
		[IB_PORT_PHYS_STATE_SLEEP]		= "Sleep",
		[IB_PORT_PHYS_STATE_POLLING]		= "Polling",
		[IB_PORT_PHYS_STATE_DISABLED]		= "Disabled",
		[IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING] =
			"PortConfigurationTraining",
		[IB_PORT_PHYS_STATE_LINK_UP]		= "LinkUp",
		[IB_PORT_PHYS_STATE_LINK_ERROR_RECOVERY] =
			"LinkErrorRecovery",
		[IB_PORT_PHYS_STATE_PHY_TEST]		= "Phy Test",
	};

	if (state < ARRAY_SIZE(names) && names[state])
		return names[state];
	return "<unknown>";
}

PORT_ATTR(state, "%d: %s\n", attr.state, port_state_str(attr.state));
PORT_ATTR(lid, "0x%x\n", attr.lid);
PORT_ATTR(lid_mask_count, "%u\n", attr.lmc);
PORT_ATTR(sm_lid, "0x%x\n", attr.sm_lid);
PORT_ATTR(sm_sl, "%u\n", attr.sm_sl);
PORT_ATTR(cap_mask, "0x%08x\n", attr.port_cap_flags);
PORT_ATTR(phys_state, "%u: %s\n", attr.phys_state,
	  phys_state_str(attr.phys_state));

struct speed {
	const char *name;
	/* The data rate of one lane, in units of 100 Mb/s. */
	int rate;
};

static struct speed speed_of(unsigned int active_speed)
{
	switch (active_speed) {
	case IB_SPEED_DDR:
		return (struct speed) { "DDR", 50 };
	case IB_SPEED_QDR:
		return (struct speed) { "QDR", 100 };
	case IB_SPEED_FDR10:
		return (struct speed) { "FDR10", 100 };
	case IB_SPEED_FDR:
		return (struct speed) { "FDR", 140 };
	case IB_SPEED_EDR:
		return (struct speed) { "EDR", 250 };
	case IB_SPEED_HDR:
		return (struct speed) { "HDR", 500 };
	case IB_SPEED_NDR:
		return (struct speed) { "NDR", 1000 };
	case IB_SPEED_XDR:
		return (struct speed) { "XDR", 2000 };
	default:
		return (struct speed) { "SDR", 25 };
	}
}

static ssize_t rate_show(struct ib_device *dev, u32 port,
			 struct ib_port_attribute *unused, char *buf)
{
	struct ib_port_attr attr;
	struct speed speed;
	int ret, width, rate;

	ret = ib_query_port(dev, port, &attr);
	if (ret)
		return ret;
	width = ib_width_enum_to_int(attr.active_width);
	if (width < 0)
		return -EINVAL;
	speed = speed_of(attr.active_speed);
	rate = speed.rate * width;
	return sysfs_emit(buf, "%d%s Gb/sec (%dX %s)\n", rate / 10,
			  rate % 10 ? ".5" : "", width, speed.name);
}
static IB_PORT_ATTR_RO(rate);

static ssize_t link_layer_show(struct ib_device *dev, u32 port,
			       struct ib_port_attribute *unused, char *buf)
{
	const char *name = "Unknown";

	switch (rdma_port_get_link_layer(dev, port)) {
	case IB_LINK_LAYER_INFINIBAND:
		name = "InfiniBand";
		break;
	case IB_LINK_LAYER_ETHERNET:
		name = "Ethernet";
		break;
	default:
		break;
	}
	return sysfs_emit(buf, "%s\n", name);
}
static IB_PORT_ATTR_RO(link_layer);

static struct attribute *port_default_attrs[] = {
	&ib_port_attr_state.attr,
	&ib_port_attr_lid.attr,
	&ib_port_attr_lid_mask_count.attr,
	&ib_port_attr_sm_lid.attr,
	&ib_port_attr_sm_sl.attr,
	&ib_port_attr_cap_mask.attr,
	&ib_port_attr_rate.attr,
	&ib_port_attr_phys_state.attr,
	&ib_port_attr_link_layer.attr,
	NULL
};
ATTRIBUTE_GROUPS(port_default);

static int table_index(struct ib_port_attribute *attr)
{
	return container_of(attr, struct table_attr, attr)->index;
}

/* An empty entry reads as zero, so that tools can walk the whole table. */
static ssize_t show_gid(struct ib_device *dev, u32 port,
			struct ib_port_attribute *attr, char *buf)
{
	union ib_gid gid;

	if (rdma_query_gid(dev, port, table_index(attr), &gid))
		gid = zgid;
	return sysfs_emit(buf, "%pI6\n", gid.raw);
}

static ssize_t show_pkey(struct ib_device *dev, u32 port,
			 struct ib_port_attribute *attr, char *buf)
{
	u16 pkey;
	int ret;

	ret = ib_query_pkey(dev, port, table_index(attr), &pkey);
	return ret ? : sysfs_emit(buf, "0x%04x\n", pkey);
}

static ssize_t show_ndev(struct ib_device *dev, u32 port,
			 struct ib_port_attribute *attr, char *buf)
{
	const struct ib_gid_attr *gid;
	struct net_device *ndev;
	ssize_t ret = -EINVAL;

	gid = ib_gid_get(dev, port, table_index(attr));
	if (IS_ERR(gid))
		return -EINVAL;
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(gid);
	if (!IS_ERR(ndev))
		ret = sysfs_emit(buf, "%s\n", ndev->name);
	rcu_read_unlock();
	ib_gid_put(gid);
	return ret;
}

static ssize_t show_type(struct ib_device *dev, u32 port,
			 struct ib_port_attribute *attr, char *buf)
{
	const struct ib_gid_attr *gid;
	ssize_t ret;

	gid = ib_gid_get(dev, port, table_index(attr));
	if (IS_ERR(gid))
		return -EINVAL;
	ret = sysfs_emit(buf, "%s\n", ib_gid_type_str(gid->gid_type));
	ib_gid_put(gid);
	return ret;
}

static int make_table(struct ib_port *port, enum port_table which,
		      const char *name, unsigned int len, port_show show)
{
	struct table_attr *attrs;
	struct attribute **list;
	unsigned int i;

	attrs = kvcalloc(len, sizeof(*attrs), GFP_KERNEL);
	list = kvcalloc(len + 1, sizeof(*list), GFP_KERNEL);
	/* Freed with the port. */
	port->attrs[which] = attrs;
	port->lists[which] = list;
	if (!attrs || !list)
		return -ENOMEM;
	for (i = 0; i < len; i++) {
		snprintf(attrs[i].name, sizeof(attrs[i].name), "%u", i);
		sysfs_attr_init(&attrs[i].attr.attr);
		attrs[i].attr.attr.name = attrs[i].name;
		attrs[i].attr.attr.mode = 0444;
		attrs[i].attr.show = show;
		attrs[i].index = i;
		list[i] = &attrs[i].attr.attr;
	}
	port->groups[which].name = name;
	port->groups[which].attrs = list;
	return 0;
}

static int make_tables(struct ib_port *port)
{
	const struct ib_port_immutable *imm =
		&port->dev->port_data[port->num].immutable;
	int ret = 0;

	if (imm->pkey_tbl_len)
		ret = make_table(port, PORT_PKEYS, "pkeys", imm->pkey_tbl_len,
				 show_pkey);
	if (ret || !imm->gid_tbl_len)
		return ret;
	ret = make_table(port, PORT_GIDS, "gids", imm->gid_tbl_len, show_gid);
	if (ret)
		return ret;
	ret = make_table(port, PORT_NDEVS, "ndevs", imm->gid_tbl_len,
			 show_ndev);
	if (ret)
		return ret;
	return make_table(port, PORT_TYPES, "types", imm->gid_tbl_len,
			  show_type);
}

static void list_groups(struct ib_port *port)
{
	int nr = 0;

	if (port->groups[PORT_GIDS].name)
		port->port_groups[nr++] = &port->groups[PORT_GIDS];
	if (port->groups[PORT_PKEYS].name)
		port->port_groups[nr++] = &port->groups[PORT_PKEYS];
	if (port->groups[PORT_NDEVS].name) {
		port->gid_groups[0] = &port->groups[PORT_NDEVS];
		port->gid_groups[1] = &port->groups[PORT_TYPES];
	}
}

static void port_release(struct kobject *kobj)
{
	struct ib_port *port = container_of(kobj, struct ib_port, kobj);
	int i;

	for (i = 0; i < PORT_TABLES; i++) {
		kvfree(port->attrs[i]);
		kvfree(port->lists[i]);
	}
	ib_stats_free(port->stats);
	kfree(port);
}

/* It is part of the port, and so holds a reference on it. */
static void gid_attrs_release(struct kobject *kobj)
{
	kobject_put(&container_of(kobj, struct ib_port, gid_attrs)->kobj);
}

static const struct kobj_type port_type = {
	.release = port_release,
	.sysfs_ops = &port_sysfs_ops,
	.default_groups = port_default_groups,
};

static struct ib_port *find_port(struct ib_device *dev, u32 num)
{
	struct ib_port *port;

	list_for_each_entry(port, &dev->coredev.port_list, list)
		if (port->num == num)
			return port;
	return NULL;
}

/**
 * ib_port_add_groups() - add a client's files to the directory of a port
 * @dev: the device, on which the client is present
 * @port: port number
 * @groups: groups of &struct ib_port_attribute, ended by %NULL
 *
 * Context: Process, may sleep. The caller removes them, with ib_port_remove_groups(), before
 * it returns from its remove().
 * Return: 0; -ENODEV if there is no such port; -ENOMEM; -EEXIST if there are such files.
 */
int ib_port_add_groups(struct ib_device *dev, u32 port, const struct attribute_group **groups)
{
	struct ib_port *p = find_port(dev, port);

	return p ? sysfs_create_groups(&p->kobj, groups) : -ENODEV;
}
IB_EXPORT_INTERNAL(ib_port_add_groups);

/**
 * ib_port_remove_groups() - remove a client's files from the directory of a port
 * @dev: the device
 * @port: port number
 * @groups: as for ib_port_add_groups(), which must have succeeded
 *
 * Returns when nobody reads or writes them any more.
 *
 * Context: Process, may sleep.
 */
void ib_port_remove_groups(struct ib_device *dev, u32 port,
			   const struct attribute_group **groups)
{
	sysfs_remove_groups(&find_port(dev, port)->kobj, groups);
}
IB_EXPORT_INTERNAL(ib_port_remove_groups);

/**
 * ib_port_stats() - the counters that a driver has for a port
 * @dev: the device, registered
 * @port: port number
 *
 * Context: Process. Their values are read under their lock.
 * Return: the counters; %NULL if the driver has none, or there is no such port.
 */
struct rdma_hw_stats *ib_port_stats(struct ib_device *dev, u32 port)
{
	struct ib_port *p = find_port(dev, port);

	return p ? ib_stats_values(p->stats) : NULL;
}
IB_EXPORT_INTERNAL(ib_port_stats);

static const struct kobj_type gid_attrs_type = {
	.release = gid_attrs_release,
	.sysfs_ops = &gid_sysfs_ops,
};

static int add_port_files(struct ib_port *port)
{
	struct ib_device *dev = port->dev;
	int ret;

	ret = kobject_add(&port->kobj, dev->coredev.ports_kobj, "%u",
			  port->num);
	if (ret)
		return ret;
	ret = sysfs_create_groups(&port->kobj, port->port_groups);
	if (ret)
		goto err_del;
	ret = sysfs_create_groups(&port->kobj, ib_stats_groups(port->stats));
	if (ret)
		goto err_groups;
	ret = sysfs_create_groups(&port->kobj, dev->ops.port_groups);
	if (ret)
		goto err_stats;
	ret = kobject_add(&port->gid_attrs, &port->kobj, "gid_attrs");
	if (ret)
		goto err_driver;
	ret = sysfs_create_groups(&port->gid_attrs, port->gid_groups);
	if (ret)
		goto err_gid_attrs;
	return 0;

err_gid_attrs:
	kobject_del(&port->gid_attrs);
err_driver:
	sysfs_remove_groups(&port->kobj, dev->ops.port_groups);
err_stats:
	sysfs_remove_groups(&port->kobj, ib_stats_groups(port->stats));
err_groups:
	sysfs_remove_groups(&port->kobj, port->port_groups);
err_del:
	kobject_del(&port->kobj);
	return ret;
}

static void put_port(struct ib_port *port)
{
	kobject_put(&port->gid_attrs);
	kobject_put(&port->kobj);
}

static int add_port(struct ib_device *dev, u32 num)
{
	struct ib_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	int ret;

	if (!port)
		return -ENOMEM;
	port->dev = dev;
	port->num = num;
	kobject_init(&port->kobj, &port_type);
	kobject_init(&port->gid_attrs, &gid_attrs_type);
	kobject_get(&port->kobj);

	ret = make_tables(port);
	if (ret)
		goto err_put;
	list_groups(port);
	port->stats = num ? ib_stats_create(dev, num) : NULL;
	if (IS_ERR(port->stats)) {
		ret = PTR_ERR(port->stats);
		port->stats = NULL;
		goto err_put;
	}
	ret = add_port_files(port);
	if (ret)
		goto err_put;
	list_add_tail(&port->list, &dev->coredev.port_list);
	return 0;

err_put:
	put_port(port);
	return ret;
}

void ib_sysfs_remove_ports(struct ib_device *dev)
{
	struct ib_port *port, *next;

	list_for_each_entry_safe_reverse(port, next, &dev->coredev.port_list,
					 list) {
		list_del(&port->list);
		sysfs_remove_groups(&port->gid_attrs, port->gid_groups);
		kobject_del(&port->gid_attrs);
		sysfs_remove_groups(&port->kobj, port->dev->ops.port_groups);
		sysfs_remove_groups(&port->kobj, ib_stats_groups(port->stats));
		sysfs_remove_groups(&port->kobj, port->port_groups);
		kobject_del(&port->kobj);
		put_port(port);
	}
	kobject_put(dev->coredev.ports_kobj);
	dev->coredev.ports_kobj = NULL;
}

int ib_sysfs_add_ports(struct ib_device *dev)
{
	u32 num;
	int ret;

	dev->coredev.ports_kobj = kobject_create_and_add("ports",
							 &dev->dev.kobj);
	if (!dev->coredev.ports_kobj)
		return -ENOMEM;
	rdma_for_each_port(dev, num) {
		ret = add_port(dev, num);
		if (ret) {
			ib_sysfs_remove_ports(dev);
			return ret;
		}
	}
	return 0;
}
