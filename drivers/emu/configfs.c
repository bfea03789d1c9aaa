// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices at run time: /sys/kernel/config/kverbs_emu/<name>/
 *
 *   port1/	settings of the port, see configfs_port.c; mkdir port2, port3 and
 *		port4, in this order, adds ports, and rmdir of the last one removes it
 *   ports	number of ports, 1 to 4 (default 1), whether or not they have directories
 *   netdev	for InfiniBand, empty; for Ethernet, the network device of each port,
 *		separated by commas, which also sets the number of ports. A device is
 *		also Ethernet if the directory of at least one of its ports names a netdev
 *   adaptive_moderation	1 lets the moderation of CQs follow their load (default 0)
 *   pci		empty, or the address of a PCI function, such as 0000:01:00.0, which
 *		becomes the parent of the device; when the function goes away, the
 *		device is disabled
 *   enable	1 creates the device <name>, 0 destroys it
 *
 * mkdir makes the directory of a device. The attributes of the device can be changed only
 * while it is not enabled: otherwise writes to them fail with -EBUSY, and so do mkdir and
 * rmdir of ports. Setting fewer ports than there are directories fails with -EBUSY too.
 * rmdir also destroys the device; ports that were added by mkdir must be removed before
 * that, as in any directory. These directories hold the module: it can be unloaded when
 * none is left.
 *
 * The devices that the module parameters ask for have their directories from the start,
 * with all of their ports. These devices can be disabled, changed and enabled again, but
 * their directories cannot be removed: they belong to the module, do not hold it, and go
 * away with it.
 *
 * Locks: configfs calls the make and drop methods with its su_mutex held. emu_config.lock
 * is taken inside su_mutex, and is held while a device is created or destroyed, and while
 * RTNL is taken. The methods of attributes take none of the locks of configfs, except the
 * spinlock that configfs_depend_item_unlocked() needs.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "configfs.h"

static struct configfs_subsystem emu_config_subsys;
/* Devices of the module parameters. Written while the module is loaded and unloaded. */
static LIST_HEAD(emu_config_params);

static struct emu_config *to_config(struct config_item *item)
{
	return container_of(to_config_group(item), struct emu_config, group);
}

/* Returns the number of ports that have directories. */
static u32 emu_config_nr_dirs(const struct emu_config *config)
{
	u32 n = 0;

	lockdep_assert_held(&config->lock);
	while (n < EMU_MAX_PORTS && config->dirs[n])
		n++;
	return n;
}

static bool emu_config_is_ethernet(const struct emu_config *config)
{
	u32 i;

	lockdep_assert_held(&config->lock);
	for (i = 0; i < config->nr_ports; i++) {
		if (*config->ports[i].netdev)
			return true;
	}
	return false;
}

static ssize_t emu_config_ports_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", READ_ONCE(to_config(item)->nr_ports));
}

/* Sets the number of ports, and resets the settings of those that no longer exist. */
static int emu_config_set_nr_ports(struct emu_config *config, u32 nr_ports)
{
	u32 i;

	lockdep_assert_held(&config->lock);
	if (config->edev || nr_ports < emu_config_nr_dirs(config))
		return -EBUSY;
	for (i = nr_ports; i < config->nr_ports; i++)
		emu_port_config_init(&config->ports[i]);
	WRITE_ONCE(config->nr_ports, nr_ports);
	return 0;
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
	err = emu_config_set_nr_ports(config, ports);
	mutex_unlock(&config->lock);
	return err ?: len;
}
CONFIGFS_ATTR(emu_config_, ports);

/*
 * Updates the names of network devices that were renamed after they were bound. One that has
 * gone keeps the last name that it had.
 */
static void emu_config_refresh_netdevs(struct emu_config *config)
{
	u32 i;

	lockdep_assert_held(&config->lock);
	for (i = 0; config->edev && i < config->nr_ports; i++)
		emu_port_netdev_name(&config->edev->ports[i], config->ports[i].netdev);
}

static ssize_t emu_config_netdev_show(struct config_item *item, char *page)
{
	struct emu_config *config = to_config(item);
	ssize_t len = 0;
	u32 i;

	mutex_lock(&config->lock);
	emu_config_refresh_netdevs(config);
	if (emu_config_is_ethernet(config)) {
		for (i = 0; i < config->nr_ports; i++)
			len += sysfs_emit_at(page, len, "%s%s", i ? "," : "",
					     config->ports[i].netdev);
	}
	mutex_unlock(&config->lock);
	len += sysfs_emit_at(page, len, "\n");
	return len;
}

/* Splits @list at its commas. Returns the number of names, or -EINVAL. */
static int emu_config_split_netdevs(char *list, const char *names[EMU_MAX_PORTS])
{
	char *name;
	int n = 0;

	if (!*list)
		return 0;
	while ((name = strsep(&list, ","))) {
		if (n == EMU_MAX_PORTS || !*name || strlen(name) >= IFNAMSIZ)
			return -EINVAL;
		names[n++] = name;
	}
	return n;
}

/* Sets the link layer, the network devices and, with these, the number of ports. */
static int emu_config_set_netdev(struct emu_config *config, char *list)
{
	const char *names[EMU_MAX_PORTS];
	int n = emu_config_split_netdevs(list, names);
	int i, err;

	if (n < 0)
		return n;
	err = emu_config_set_nr_ports(config, n ?: config->nr_ports);
	if (err)
		return err;
	for (i = 0; i < EMU_MAX_PORTS; i++)
		strscpy(config->ports[i].netdev, i < n ? names[i] : "", IFNAMSIZ);
	return 0;
}

/* Calls @set with the text that was written, stripped of white space, under the lock. */
static ssize_t emu_config_store_text(struct config_item *item, const char *page, size_t len,
				     int (*set)(struct emu_config *config, char *text))
{
	struct emu_config *config = to_config(item);
	char *copy;
	int err;

	copy = kstrdup(page, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	mutex_lock(&config->lock);
	err = set(config, strim(copy));
	mutex_unlock(&config->lock);
	kfree(copy);
	return err ?: len;
}

static ssize_t emu_config_netdev_store(struct config_item *item, const char *page, size_t len)
{
	return emu_config_store_text(item, page, len, emu_config_set_netdev);
}
CONFIGFS_ATTR(emu_config_, netdev);

static ssize_t emu_config_adaptive_moderation_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(to_config(item)->adaptive));
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
		WRITE_ONCE(config->adaptive, adaptive);
	mutex_unlock(&config->lock);
	return err ?: len;
}
CONFIGFS_ATTR(emu_config_, adaptive_moderation);

static ssize_t emu_config_pci_show(struct config_item *item, char *page)
{
	struct emu_config *config = to_config(item);
	ssize_t len;

	mutex_lock(&config->lock);
	len = emu_pci_parent_show(&config->pci_parent, page);
	mutex_unlock(&config->lock);
	return len;
}

static int emu_config_set_pci(struct emu_config *config, char *name)
{
	lockdep_assert_held(&config->lock);
	return config->edev ? -EBUSY : emu_pci_parent_parse(&config->pci_parent, name);
}

static ssize_t emu_config_pci_store(struct config_item *item, const char *page, size_t len)
{
	return emu_config_store_text(item, page, len, emu_config_set_pci);
}
CONFIGFS_ATTR(emu_config_, pci);

static ssize_t emu_config_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(to_config(item)->edev));
}

/*
 * Keeps the directory of port @num from being removed. A subsystem cannot refuse an rmdir, but
 * configfs itself refuses it for a directory that something depends on. Two things depend on
 * the directory of a port that was added by mkdir: the next port; and, if it is the last one,
 * the device while it is enabled. Returns 0, or -EBUSY if the directory is just being made or
 * removed.
 */
static int emu_config_depend_port(struct emu_config *config, u32 num)
{
	struct emu_config_port *dir = config->dirs[num - 1];

	lockdep_assert_held(&config->lock);
	if (num == 1)
		return 0;
	return configfs_depend_item_unlocked(&emu_config_subsys, &dir->group.cg_item) ? -EBUSY : 0;
}

static void emu_config_undepend_port(struct emu_config *config, u32 num)
{
	lockdep_assert_held(&config->lock);
	if (num > 1)
		configfs_undepend_item(&config->dirs[num - 1]->group.cg_item);
}

static int emu_config_create_device(struct emu_config *config)
{
	struct emu_device_spec spec = {
		.name = config->name,
		.nr_ports = config->nr_ports,
		.ethernet = emu_config_is_ethernet(config),
		.adaptive = config->adaptive,
		.ports = config->ports,
	};
	struct emu_device *edev;
	int err;

	err = emu_pci_parent_enter(config);
	if (err)
		return err;
	spec.pci_parent = config->pci_parent.pdev;
	edev = emu_device_create(&spec);
	if (IS_ERR(edev)) {
		emu_pci_parent_leave(config);
		return PTR_ERR(edev);
	}
	WRITE_ONCE(config->edev, edev);
	return 0;
}

static void emu_config_destroy_device(struct emu_config *config)
{
	/* Remember their current names: by these they are found when it is enabled again. */
	emu_config_refresh_netdevs(config);
	emu_device_destroy(config->edev);
	WRITE_ONCE(config->edev, NULL);
	emu_pci_parent_leave(config);
}

/* Whether the module parameters asked for the device; then its ports cannot be removed. */
static bool emu_config_is_param(const struct emu_config *config)
{
	return !list_empty(&config->entry);
}

/* Makes the device, which is about to be enabled, depend on the directory of its last port. */
static int emu_config_depend_last_port(struct emu_config *config)
{
	u32 last = emu_config_is_param(config) ? 1 : emu_config_nr_dirs(config);
	int err;

	err = emu_config_depend_port(config, last);
	if (!err)
		config->depended = last;
	return err;
}

static void emu_config_undepend_last_port(struct emu_config *config)
{
	emu_config_undepend_port(config, config->depended);
	config->depended = 0;
}

static void emu_config_disable(struct emu_config *config)
{
	if (!config->edev)
		return;
	emu_config_destroy_device(config);
	emu_config_undepend_last_port(config);
}

/*
 * Takes @su_mutex while it looks for the last port, because configfs adds and removes the
 * directories of ports under it.
 */
static int emu_config_enable(struct emu_config *config)
{
	int err = 0;

	mutex_lock(&emu_config_subsys.su_mutex);
	mutex_lock(&config->lock);
	if (!config->edev)
		err = emu_config_depend_last_port(config);
	mutex_unlock(&emu_config_subsys.su_mutex);
	if (!err && !config->edev) {
		err = emu_config_create_device(config);
		if (err)
			emu_config_undepend_last_port(config);
	}
	mutex_unlock(&config->lock);
	return err;
}

/**
 * emu_config_evict() - disable a device whose parent is being removed
 * @config: its directory
 * @parent: the parent; a device that has another parent by now is left alone
 *
 * Context: Process.
 */
void emu_config_evict(struct emu_config *config, const struct device *parent)
{
	mutex_lock(&config->lock);
	if (config->edev && config->edev->pdev->dev.parent == parent) {
		pr_info("removing %s: its PCI parent %s is going away\n", config->name, dev_name(parent));
		emu_config_disable(config);
	}
	mutex_unlock(&config->lock);
}

static ssize_t emu_config_enable_store(struct config_item *item, const char *page, size_t len)
{
	struct emu_config *config = to_config(item);
	bool enable;
	int err;

	err = kstrtobool(page, &enable);
	if (err)
		return err;
	if (enable) {
		err = emu_config_enable(config);
	} else {
		mutex_lock(&config->lock);
		emu_config_disable(config);
		mutex_unlock(&config->lock);
	}
	return err ?: len;
}
CONFIGFS_ATTR(emu_config_, enable);

static struct configfs_attribute *emu_config_attrs[] = {
	&emu_config_attr_ports,
	&emu_config_attr_netdev,
	&emu_config_attr_adaptive_moderation,
	&emu_config_attr_pci,
	&emu_config_attr_enable,
	NULL,
};

static void emu_config_release(struct config_item *item)
{
	struct emu_config *config = to_config(item);

	kfree(config->name);
	kfree(config);
}

static struct configfs_item_operations emu_config_item_ops = {
	.release = emu_config_release,
};

/*
 * Checks that @name is that of the next port, and that it may be added now. If so, returns 0,
 * and the port before it can no longer be removed.
 */
static int emu_config_check_new_port(struct emu_config *config, const char *name)
{
	u32 num = emu_config_nr_dirs(config) + 1;
	char next[16];

	if (num > EMU_MAX_PORTS)
		return -EINVAL;
	snprintf(next, sizeof(next), "port%u", num);
	if (strcmp(name, next))
		return -EINVAL;
	if (config->edev)
		return -EBUSY;
	return emu_config_depend_port(config, num - 1);
}

static struct config_group *emu_config_make_port(struct config_group *group, const char *name)
{
	struct emu_config *config = to_config(&group->cg_item);
	struct emu_config_port *dir;
	int err;

	mutex_lock(&config->lock);
	err = emu_config_check_new_port(config, name);
	if (err)
		goto unlock;
	dir = emu_config_port_new(config, emu_config_nr_dirs(config) + 1);
	if (!dir) {
		emu_config_undepend_port(config, emu_config_nr_dirs(config));
		err = -ENOMEM;
		goto unlock;
	}
	config->dirs[dir->num - 1] = dir;
	if (config->nr_ports < dir->num)
		WRITE_ONCE(config->nr_ports, dir->num);
unlock:
	mutex_unlock(&config->lock);
	return err ? ERR_PTR(err) : &dir->group;
}

static void emu_config_drop_port(struct config_group *group, struct config_item *item)
{
	struct emu_config *config = to_config(&group->cg_item);
	u32 num;

	mutex_lock(&config->lock);
	num = emu_config_nr_dirs(config);
	config->dirs[num - 1] = NULL;
	emu_config_set_nr_ports(config, num - 1);
	emu_config_undepend_port(config, num - 1);
	mutex_unlock(&config->lock);
	config_item_put(item);
}

static struct configfs_group_operations emu_config_device_ops = {
	.make_group = emu_config_make_port,
	.drop_item = emu_config_drop_port,
};

static const struct config_item_type emu_config_type = {
	.ct_item_ops = &emu_config_item_ops,
	.ct_group_ops = &emu_config_device_ops,
	.ct_attrs = emu_config_attrs,
	.ct_owner = THIS_MODULE,
};

/* Devices of module parameters have all of their ports already, so mkdir adds none. */
static const struct config_item_type emu_config_param_type = {
	.ct_item_ops = &emu_config_item_ops,
	.ct_attrs = emu_config_attrs,
	.ct_owner = THIS_MODULE,
};

/* Allocates a configuration with one port. The caller initialises its group. */
static struct emu_config *emu_config_new(const char *name)
{
	struct emu_config *config = kzalloc(sizeof(*config), GFP_KERNEL);
	u32 i;

	if (!config)
		return NULL;
	config->name = kstrdup(name, GFP_KERNEL);
	if (!config->name) {
		kfree(config);
		return NULL;
	}
	INIT_LIST_HEAD(&config->entry);
	mutex_init(&config->lock);
	config->nr_ports = 1;
	for (i = 0; i < EMU_MAX_PORTS; i++)
		emu_port_config_init(&config->ports[i]);
	return config;
}

/* Adds directories of ports that cannot be removed. Returns 0 or -ENOMEM. */
static int emu_config_add_default_ports(struct emu_config *config, u32 nr)
{
	struct emu_config_port *dir;
	u32 num;

	for (num = 1; num <= nr; num++) {
		dir = emu_config_port_new(config, num);
		if (!dir)
			return -ENOMEM;
		config->dirs[num - 1] = dir;
		configfs_add_default_group(&dir->group, &config->group);
	}
	return 0;
}

static struct config_group *emu_config_make_device(struct config_group *group, const char *name)
{
	struct emu_config *config;

	/* A directory is one device; patterns are for the module parameters. */
	if (strlen(name) >= IB_DEVICE_NAME_MAX || strchr(name, '%'))
		return ERR_PTR(-EINVAL);
	config = emu_config_new(name);
	if (!config)
		return ERR_PTR(-ENOMEM);
	config_group_init_type_name(&config->group, name, &emu_config_type);
	if (emu_config_add_default_ports(config, 1)) {
		config_group_put(&config->group);
		return ERR_PTR(-ENOMEM);
	}
	return &config->group;
}

static void emu_config_drop_device(struct config_group *group, struct config_item *item)
{
	struct emu_config *config = to_config(item);

	mutex_lock(&config->lock);
	if (config->edev)
		emu_config_destroy_device(config);
	mutex_unlock(&config->lock);
	configfs_remove_default_groups(&config->group);
	config_item_put(item);
}

static struct configfs_group_operations emu_config_group_ops = {
	.make_group = emu_config_make_device,
	.drop_item = emu_config_drop_device,
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
		.default_groups = LIST_HEAD_INIT(emu_config_subsys.su_group.default_groups),
	},
	.su_mutex = __MUTEX_INITIALIZER(emu_config_subsys.su_mutex),
};

static void emu_config_put_param(struct emu_config *config)
{
	mutex_lock(&config->lock);
	if (config->edev)
		emu_config_destroy_device(config);
	mutex_unlock(&config->lock);
	configfs_remove_default_groups(&config->group);
	config_group_put(&config->group);
}

/* Renames the directory after the device, because the name so far may have been a pattern. */
static int emu_config_adopt_name(struct emu_config *config)
{
	char *name = kstrdup(config->edev->ibdev.name, GFP_KERNEL);

	if (!name)
		return -ENOMEM;
	kfree(config->name);
	config->name = name;
	return config_item_set_name(&config->group.cg_item, "%s", name);
}

static int emu_config_start_param(struct emu_config *config)
{
	int err;

	mutex_lock(&config->lock);
	err = emu_config_create_device(config);
	if (!err)
		err = emu_config_adopt_name(config);
	if (!err)
		err = emu_config_add_default_ports(config, config->nr_ports);
	mutex_unlock(&config->lock);
	return err;
}

/**
 * emu_configfs_add() - create a device that has a directory from the start
 * @spec: the device to create
 * @pci: address of the PCI function that becomes its parent, or empty
 *
 * Context: Process context, before emu_configfs_init().
 * Return: 0; -EINVAL if @pci is not a PCI address; -ENODEV if there is no such
 * function; -ENOMEM; or what emu_device_create() returned.
 */
int emu_configfs_add(const struct emu_device_spec *spec, const char *pci)
{
	struct emu_config *config = emu_config_new(spec->name);
	int err;

	if (!config)
		return -ENOMEM;
	config_group_init_type_name(&config->group, spec->name, &emu_config_param_type);
	config->nr_ports = spec->nr_ports;
	config->adaptive = spec->adaptive;
	memcpy(config->ports, spec->ports, spec->nr_ports * sizeof(*spec->ports));
	err = emu_pci_parent_parse(&config->pci_parent, pci);
	if (!err)
		err = emu_config_start_param(config);
	if (err)
		emu_config_put_param(config);
	else
		list_add(&config->entry, &emu_config_params);
	return err;
}

/* Makes the directories visible. Returns 0, or an error of configfs. */
int emu_configfs_init(void)
{
	struct emu_config *config;

	config_group_init(&emu_config_subsys.su_group);
	list_for_each_entry_reverse(config, &emu_config_params, entry) {
		config_group_get(&config->group);
		configfs_add_default_group(&config->group, &emu_config_subsys.su_group);
	}
	return configfs_register_subsystem(&emu_config_subsys);
}

/*
 * Removes the directories. After that, nobody is in a method of an attribute any more, so
 * emu_configfs_drop() can free the devices of the module parameters.
 */
void emu_configfs_exit(void)
{
	configfs_unregister_subsystem(&emu_config_subsys);
}

/* Destroys the devices that emu_configfs_add() created, in reverse order. */
void emu_configfs_drop(void)
{
	struct emu_config *config, *next;

	configfs_remove_default_groups(&emu_config_subsys.su_group);
	list_for_each_entry_safe(config, next, &emu_config_params, entry) {
		list_del_init(&config->entry);
		emu_config_put_param(config);
	}
}
