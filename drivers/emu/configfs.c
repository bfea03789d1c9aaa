// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices at run time: /sys/kernel/config/kverbs_emu/<name>/
 *
 *   ports	number of ports, 1 to 4 (default 1); of an Ethernet device, as many
 *		as netdev names
 *   netdev	empty for InfiniBand; or the network device of each port,
 *		separated by commas, for Ethernet
 *   adaptive_moderation	1 lets the moderation of CQs follow their load (default 0)
 *   enable	1 creates the device <name>, 0 destroys it
 *
 * A directory is made with mkdir; the attributes may be changed while the device
 * is not enabled, else they refuse with -EBUSY. rmdir destroys the device too.
 * The directories hold the module: it can be unloaded when none is left.
 */
#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "emu.h"

/**
 * struct emu_config - a directory
 * @item: in configfs
 * @lock: guards all below
 * @spec: what the device is to be
 * @edev: the device, while it is enabled
 */
struct emu_config {
	struct config_item item;
	struct mutex lock;
	struct emu_device_spec spec;
	struct emu_device *edev;
};

static struct emu_config *to_config(struct config_item *item)
{
	return container_of(item, struct emu_config, item);
}

static ssize_t emu_config_ports_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", READ_ONCE(to_config(item)->spec.nr_ports));
}

static ssize_t emu_config_ports_store(struct config_item *item, const char *page, size_t len)
{
	struct emu_config *config = to_config(item);
	u32 ports;
	int err;

	err = kstrtou32(page, 0, &ports);
	if (err)
		return err;
	if (!ports || ports > EMU_MAX_PORTS)
		return -EINVAL;
	mutex_lock(&config->lock);
	if (config->edev)
		err = -EBUSY;
	else if (config->spec.ethernet && ports != config->spec.nr_ports)
		err = -EINVAL;
	else
		config->spec.nr_ports = ports;
	mutex_unlock(&config->lock);
	return err ?: len;
}
CONFIGFS_ATTR(emu_config_, ports);

static ssize_t emu_config_netdev_show(struct config_item *item, char *page)
{
	struct emu_config *config = to_config(item);
	ssize_t len = 0;
	u32 i;

	mutex_lock(&config->lock);
	for (i = 0; config->spec.ethernet && i < config->spec.nr_ports; i++)
		len += sysfs_emit_at(page, len, "%s%s", i ? "," : "", config->spec.netdev[i]);
	mutex_unlock(&config->lock);
	len += sysfs_emit_at(page, len, "\n");
	return len;
}

/* Sets link layer, network devices and with them the number of ports. */
static int emu_config_parse_netdev(struct emu_device_spec *spec, char *list)
{
	struct emu_device_spec new = {
		.name = spec->name,
		.nr_ports = spec->nr_ports,
		.adaptive = spec->adaptive,
	};
	char *name;
	u32 n = 0;

	if (*list) {
		new.ethernet = true;
		while ((name = strsep(&list, ","))) {
			if (n == EMU_MAX_PORTS || !*name ||
			    strscpy(new.netdev[n], name, IFNAMSIZ) < 0)
				return -EINVAL;
			n++;
		}
		new.nr_ports = n;
	}
	*spec = new;
	return 0;
}

static ssize_t emu_config_netdev_store(struct config_item *item, const char *page, size_t len)
{
	struct emu_config *config = to_config(item);
	char *copy;
	int err;

	copy = kstrdup(page, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	mutex_lock(&config->lock);
	if (config->edev)
		err = -EBUSY;
	else
		err = emu_config_parse_netdev(&config->spec, strim(copy));
	mutex_unlock(&config->lock);
	kfree(copy);
	return err ?: len;
}
CONFIGFS_ATTR(emu_config_, netdev);

static ssize_t emu_config_adaptive_moderation_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(to_config(item)->spec.adaptive));
}

static ssize_t emu_config_adaptive_moderation_store(struct config_item *item, const char *page,
						    size_t len)
{
	struct emu_config *config = to_config(item);
	bool adaptive;
	int err;

	err = kstrtobool(page, &adaptive);
	if (err)
		return err;
	mutex_lock(&config->lock);
	if (config->edev)
		err = -EBUSY;
	else
		config->spec.adaptive = adaptive;
	mutex_unlock(&config->lock);
	return err ?: len;
}
CONFIGFS_ATTR(emu_config_, adaptive_moderation);

static ssize_t emu_config_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(to_config(item)->edev));
}

static int emu_config_enable(struct emu_config *config)
{
	struct emu_device *edev;

	if (config->edev)
		return 0;
	edev = emu_device_create(&config->spec);
	if (IS_ERR(edev))
		return PTR_ERR(edev);
	WRITE_ONCE(config->edev, edev);
	return 0;
}

static void emu_config_disable(struct emu_config *config)
{
	if (config->edev)
		emu_device_destroy(config->edev);
	WRITE_ONCE(config->edev, NULL);
}

static ssize_t emu_config_enable_store(struct config_item *item, const char *page, size_t len)
{
	struct emu_config *config = to_config(item);
	bool enable;
	int err;

	err = kstrtobool(page, &enable);
	if (err)
		return err;
	mutex_lock(&config->lock);
	if (enable)
		err = emu_config_enable(config);
	else
		emu_config_disable(config);
	mutex_unlock(&config->lock);
	return err ?: len;
}
CONFIGFS_ATTR(emu_config_, enable);

static struct configfs_attribute *emu_config_attrs[] = {
	&emu_config_attr_ports,
	&emu_config_attr_netdev,
	&emu_config_attr_adaptive_moderation,
	&emu_config_attr_enable,
	NULL,
};

static void emu_config_release(struct config_item *item)
{
	struct emu_config *config = to_config(item);

	kfree(config->spec.name);
	kfree(config);
}

static struct configfs_item_operations emu_config_item_ops = {
	.release = emu_config_release,
};

static const struct config_item_type emu_config_type = {
	.ct_item_ops = &emu_config_item_ops,
	.ct_attrs = emu_config_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_item *emu_config_make(struct config_group *group, const char *name)
{
	struct emu_config *config;

	/* A directory is one device; patterns are for the module parameters. */
	if (strlen(name) >= IB_DEVICE_NAME_MAX || strchr(name, '%'))
		return ERR_PTR(-EINVAL);
	config = kzalloc(sizeof(*config), GFP_KERNEL);
	if (!config)
		return ERR_PTR(-ENOMEM);
	config->spec.name = kstrdup(name, GFP_KERNEL);
	if (!config->spec.name) {
		kfree(config);
		return ERR_PTR(-ENOMEM);
	}
	config->spec.nr_ports = 1;
	mutex_init(&config->lock);
	config_item_init_type_name(&config->item, name, &emu_config_type);
	return &config->item;
}

static void emu_config_drop(struct config_group *group, struct config_item *item)
{
	struct emu_config *config = to_config(item);

	mutex_lock(&config->lock);
	emu_config_disable(config);
	mutex_unlock(&config->lock);
	config_item_put(item);
}

static struct configfs_group_operations emu_config_group_ops = {
	.make_item = emu_config_make,
	.drop_item = emu_config_drop,
};

static const struct config_item_type emu_config_root_type = {
	.ct_group_ops = &emu_config_group_ops,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem emu_config_subsys = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = KBUILD_MODNAME,
			.ci_type = &emu_config_root_type,
		},
	},
};

int emu_configfs_init(void)
{
	config_group_init(&emu_config_subsys.su_group);
	mutex_init(&emu_config_subsys.su_mutex);
	return configfs_register_subsystem(&emu_config_subsys);
}

void emu_configfs_exit(void)
{
	configfs_unregister_subsystem(&emu_config_subsys);
}
