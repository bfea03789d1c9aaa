// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/class/infiniband/<device>/: what belongs to the device as a whole, in
 * the layout that user space knows from mainline. Ports are in sysfs_port.c.
 */
#include <linux/device.h>
#include <linux/kobject.h>

#include "../contract/device_priv.h"
#include "sysfs_port.h"
#include "view.h"

static int class_uevent(kv_class_const struct device *dev,
			struct kobj_uevent_env *env)
{
	char name[IB_DEVICE_NAME_MAX];

	/* udev names devices by rules that match this. */
	ib_copy_device_name(name, container_of(dev, struct ib_device, dev));
	return add_uevent_var(env, "NAME=%s", name);
}

static struct class ib_class = {
	.name = "infiniband",
	.dev_uevent = class_uevent,
};

int ib_sysfs_init(void)
{
	return class_register(&ib_class);
}

void ib_sysfs_exit(void)
{
	class_unregister(&ib_class);
}

static const char *node_type_str(unsigned int type)
{
	static const char * const names[] = {
		[RDMA_NODE_IB_CA]	= "CA",
		[RDMA_NODE_IB_SWITCH]	= "switch",
		[RDMA_NODE_IB_ROUTER]	= "router",
		[RDMA_NODE_RNIC]	= "RNIC",
		[RDMA_NODE_USNIC]	= "usNIC",
		[RDMA_NODE_USNIC_UDP]	= "usNIC UDP",
		[RDMA_NODE_UNSPECIFIED]	= "unspecified",
	};

	if (type < ARRAY_SIZE(names) && names[type])
		return names[type];
	return "<unknown>";
}

static ssize_t node_type_show(struct device *d, struct device_attribute *attr,
			      char *buf)
{
	struct ib_device *dev = rdma_device_to_ibdev(d);

	return sysfs_emit(buf, "%u: %s\n", dev->node_type,
			  node_type_str(dev->node_type));
}
static DEVICE_ATTR_RO(node_type);

static ssize_t show_guid(char *buf, __be64 guid)
{
	u64 val = be64_to_cpu(guid);

	return sysfs_emit(buf, "%04x:%04x:%04x:%04x\n",
			  (u16)(val >> 48), (u16)(val >> 32), (u16)(val >> 16),
			  (u16)val);
}

static ssize_t node_guid_show(struct device *d, struct device_attribute *attr,
			      char *buf)
{
	return show_guid(buf, rdma_device_to_ibdev(d)->node_guid);
}
static DEVICE_ATTR_RO(node_guid);

static ssize_t sys_image_guid_show(struct device *d,
				   struct device_attribute *attr, char *buf)
{
	return show_guid(buf, rdma_device_to_ibdev(d)->attrs.sys_image_guid);
}
static DEVICE_ATTR_RO(sys_image_guid);

static ssize_t fw_ver_show(struct device *d, struct device_attribute *attr,
			   char *buf)
{
	char version[IB_FW_VERSION_NAME_MAX] = {};

	ib_get_device_fw_str(rdma_device_to_ibdev(d), version);
	return sysfs_emit(buf, "%s\n", version);
}
static DEVICE_ATTR_RO(fw_ver);

static ssize_t node_desc_show(struct device *d, struct device_attribute *attr,
			      char *buf)
{
	return sysfs_emit(buf, "%.*s\n", IB_DEVICE_NODE_DESC_MAX,
			  rdma_device_to_ibdev(d)->node_desc);
}

static ssize_t node_desc_store(struct device *d, struct device_attribute *attr,
			       const char *buf, size_t count)
{
	struct ib_device_modify modify = {};
	size_t len = min_t(size_t, count, IB_DEVICE_NODE_DESC_MAX);
	int ret;

	memcpy(modify.node_desc, buf, len);
	ret = ib_modify_device(rdma_device_to_ibdev(d),
			       IB_DEVICE_MODIFY_NODE_DESC, &modify);
	return ret ? : count;
}
static DEVICE_ATTR_RW(node_desc);

static struct attribute *device_attrs[] = {
	&dev_attr_node_type.attr,
	&dev_attr_node_guid.attr,
	&dev_attr_sys_image_guid.attr,
	&dev_attr_fw_ver.attr,
	&dev_attr_node_desc.attr,
	NULL
};

static const struct attribute_group device_group = { .attrs = device_attrs };

static struct attribute *no_attrs[] = { NULL };
static const struct attribute_group no_group = { .attrs = no_attrs };

/* A new device: make its struct device one of ours. */
void ib_sysfs_prepare(struct ib_device *dev,
		      void (*release)(struct device *dev))
{
	device_initialize(&dev->dev);
	dev->dev.class = &ib_class;
	dev->dev.release = release;
	dev->dev.groups = dev->groups;
	INIT_LIST_HEAD(&dev->coredev.port_list);
}

static int add_stats(struct ib_device *dev)
{
	struct ib_stats *stats = ib_stats_create(dev, 0);

	if (IS_ERR(stats))
		return PTR_ERR(stats);
	ib_priv(dev)->stats = stats;
	dev->groups[2] = stats ? ib_stats_groups(stats)[0] : NULL;
	return 0;
}

static void free_stats(struct ib_device *dev)
{
	dev->groups[2] = NULL;
	ib_stats_free(ib_priv(dev)->stats);
	ib_priv(dev)->stats = NULL;
}

/*
 * Only ib_sysfs_announce() tells user space, when everything works. Sets
 * was_added when the struct device cannot be used again.
 */
int ib_sysfs_add(struct ib_device *dev, bool *was_added)
{
	struct device *parent = dev->dev.parent;
	int ret;

	if (!parent)
		dev->dev.parent = dev->dma_device;
	dev->groups[0] = &device_group;
	/* The driver's group may be absent; a list ends at the first gap. */
	dev->groups[1] = dev->ops.device_group ? : &no_group;
	ret = add_stats(dev);
	if (ret)
		goto err_parent;
	dev_set_uevent_suppress(&dev->dev, true);
	ret = device_add(&dev->dev);
	if (ret)
		goto err_stats;
	*was_added = true;
	ret = ib_sysfs_add_ports(dev);
	if (ret)
		goto err_del;
	return 0;

err_del:
	device_del(&dev->dev);
err_stats:
	free_stats(dev);
err_parent:
	/* The next attempt may come with another dma_device. */
	dev->dev.parent = parent;
	return ret;
}

void ib_sysfs_announce(struct ib_device *dev)
{
	dev_set_uevent_suppress(&dev->dev, false);
	kobject_uevent(&dev->dev.kobj, KOBJ_ADD);
}

void ib_sysfs_remove(struct ib_device *dev)
{
	ib_sysfs_remove_ports(dev);
	device_del(&dev->dev);
	free_stats(dev);
}
