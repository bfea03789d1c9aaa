// SPDX-License-Identifier: GPL-2.0-only
/*
 * Ports at run time: /sys/kernel/config/kverbs_emu/<device>/port<n>/
 *
 *   state	down, init, armed or active (default)
 *   lid	1 to 49151; 0 (default) takes the smallest free one
 *   sm_lid	LID of the subnet manager (default 1), 0 for none
 *   sm		InfiniBand: 1 if this port is the subnet manager's, and answers what others
 *		ask it for: paths, multicast groups, services; 0 (default) if not
 *   gids	InfiniBand: reading shows "index GID" lines; writing "index GID" sets an
 *		entry, and writing "index" clears it, or makes index 0 the default GID
 *		again. The table of an Ethernet port follows its network device
 *   pkeys	likewise, with P_Keys (default: 0xffff at index 0)
 *   mtu	active MTU: 256, 512, 1024, 2048 or 4096; auto (default): what the network
 *		device allows, or 4096 where there is none
 *   width	1x, 2x, 4x, 8x or 12x; auto (default): with speed, the speed of the network
 *		device, or 4x where there is none
 *   speed	of a lane: sdr, ddr, qdr, fdr10, fdr, edr, hdr, ndr or xdr; auto (default):
 *		likewise, or edr
 *   netdev	network device of an Ethernet port; empty for none. A disabled port
 *		remembers the network device by its current name, or the last name before
 *		it was removed
 *
 * While the device is enabled, reading shows the current values, and writing changes
 * them and raises the event of the change, if it has one. Otherwise the files hold the
 * settings that the port starts with. Either way, the value written last is used when the
 * device is enabled the next time.
 *
 * Writes fail with -EINVAL for a value that no port, or no port of this link layer, can have;
 * with -EBUSY for a LID or network device of another port and, under mainline's core, for
 * another network device while the device is enabled; and with -ENODEV for a network device
 * that does not exist.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_cache.h>

#include "configfs.h"
#include "core.h"

struct emu_config_name {
	const char *name;
	unsigned int value;
};

static const struct emu_config_name emu_state_names[] = {
	{ "down", IB_PORT_DOWN },
	{ "init", IB_PORT_INIT },
	{ "armed", IB_PORT_ARMED },
	{ "active", IB_PORT_ACTIVE },
	{ }
};

static const struct emu_config_name emu_width_names[] = {
	{ "auto", 0 },
	{ "1x", IB_WIDTH_1X },
	{ "2x", IB_WIDTH_2X },
	{ "4x", IB_WIDTH_4X },
	{ "8x", IB_WIDTH_8X },
	{ "12x", IB_WIDTH_12X },
	{ }
};

static const struct emu_config_name emu_speed_names[] = {
	{ "auto", 0 },
	{ "sdr", IB_SPEED_SDR },
	{ "ddr", IB_SPEED_DDR },
	{ "qdr", IB_SPEED_QDR },
	{ "fdr10", IB_SPEED_FDR10 },
	{ "fdr", IB_SPEED_FDR },
	{ "edr", IB_SPEED_EDR },
	{ "hdr", IB_SPEED_HDR },
	{ "ndr", IB_SPEED_NDR },
	{ "xdr", IB_SPEED_XDR },
	{ }
};

static const struct emu_config_name emu_mtu_names[] = {
	{ "auto", 0 },
	{ "256", IB_MTU_256 },
	{ "512", IB_MTU_512 },
	{ "1024", IB_MTU_1024 },
	{ "2048", IB_MTU_2048 },
	{ "4096", IB_MTU_4096 },
	{ }
};

static struct emu_config_port *to_config_port(struct config_item *item)
{
	return container_of(to_config_group(item), struct emu_config_port, group);
}

/* Takes the lock. Returns the settings that the port starts with. */
static struct emu_port_config *emu_config_port_lock(struct emu_config_port *dir)
{
	mutex_lock(&dir->config->lock);
	return &dir->config->ports[dir->num - 1];
}

/* Returns the port, or NULL if the device is not enabled. */
static struct emu_port *emu_config_port_live(const struct emu_config_port *dir)
{
	lockdep_assert_held(&dir->config->lock);
	return dir->config->edev ? &dir->config->edev->ports[dir->num - 1] : NULL;
}

static ssize_t emu_config_port_unlock(struct emu_config_port *dir, ssize_t ret)
{
	mutex_unlock(&dir->config->lock);
	return ret;
}

static ssize_t emu_config_show_value(char *page, const struct emu_config_name *names,
				     unsigned int value)
{
	if (!names)
		return sysfs_emit(page, "%u\n", value);
	while (names->name && names->value != value)
		names++;
	return sysfs_emit(page, "%s\n", names->name ?: "?");
}

static int emu_config_parse_lid(const char *page)
{
	u16 lid;
	int err = kstrtou16(page, 0, &lid);

	return err ?: lid > EMU_MAX_LID ? -EINVAL : lid;
}

/* Parses one of @names or, if that is NULL, a LID. The text may end in a newline. */
static int emu_config_parse_value(const char *page, const struct emu_config_name *names)
{
	if (!names)
		return emu_config_parse_lid(page);
	while (names->name && !sysfs_streq(page, names->name))
		names++;
	return names->name ? names->value : -EINVAL;
}

static void emu_config_query_port(struct emu_port *port, struct ib_port_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	emu_query_port(&port->edev->ibdev, port->num, attr);
}

/*
 * Defines the file @_name: a value that emu_port_set_...() sets, and emu_query_port() reports as
 * @_attr. It is written as one of @_names or, if that is NULL, as a LID.
 */
#define EMU_CONFIG_VALUE(_name, _attr, _names)						\
static ssize_t emu_config_port_##_name##_show(struct config_item *item, char *page)	\
{											\
	struct emu_config_port *dir = to_config_port(item);				\
	struct emu_port_config *config = emu_config_port_lock(dir);			\
	struct emu_port *port = emu_config_port_live(dir);				\
	struct ib_port_attr attr;							\
											\
	if (port)									\
		emu_config_query_port(port, &attr);					\
	return emu_config_port_unlock(dir, emu_config_show_value(page, _names,		\
				   port ? attr._attr : config->_name));			\
}											\
											\
static ssize_t emu_config_port_##_name##_store(struct config_item *item,		\
					       const char *page, size_t len)		\
{											\
	struct emu_config_port *dir = to_config_port(item);				\
	int value = emu_config_parse_value(page, _names);				\
	struct emu_port_config *config;							\
	struct emu_port *port;								\
	int err = 0;									\
											\
	if (value < 0)									\
		return value;								\
	config = emu_config_port_lock(dir);						\
	port = emu_config_port_live(dir);						\
	if (port)									\
		err = emu_port_set_##_name(port, value);				\
	if (!err)									\
		config->_name = value;							\
	return emu_config_port_unlock(dir, err ?: len);					\
}											\
CONFIGFS_ATTR(emu_config_port_, _name)

EMU_CONFIG_VALUE(state, state, emu_state_names);
EMU_CONFIG_VALUE(lid, lid, NULL);
EMU_CONFIG_VALUE(sm_lid, sm_lid, NULL);
EMU_CONFIG_VALUE(mtu, active_mtu, emu_mtu_names);
EMU_CONFIG_VALUE(width, active_width, emu_width_names);
EMU_CONFIG_VALUE(speed, active_speed, emu_speed_names);

static ssize_t emu_config_port_sm_show(struct config_item *item, char *page)
{
	struct emu_config_port *dir = to_config_port(item);
	struct emu_port_config *config = emu_config_port_lock(dir);

	return emu_config_port_unlock(dir, sysfs_emit(page, "%d\n", config->sm));
}

static ssize_t emu_config_port_sm_store(struct config_item *item, const char *page, size_t len)
{
	struct emu_config_port *dir = to_config_port(item);
	struct emu_port_config *config;
	struct emu_port *port;
	bool on;
	int err;

	err = kstrtobool(page, &on);
	if (err)
		return err;
	config = emu_config_port_lock(dir);
	port = emu_config_port_live(dir);
	if (port)
		err = emu_port_set_sm(port, on);
	if (!err)
		config->sm = on;
	return emu_config_port_unlock(dir, err ?: len);
}
CONFIGFS_ATTR(emu_config_port_, sm);

static bool emu_config_port_get_gid(struct emu_config_port *dir, struct emu_port_config *config,
				    int index, union ib_gid *gid)
{
	struct emu_port *port = emu_config_port_live(dir);
	int err = 0;

	if (!port)
		*gid = config->gids[index];
	else if (port->edev->ethernet)
		err = rdma_query_gid(&port->edev->ibdev, port->num, index, gid);
	else
		err = emu_query_gid(&port->edev->ibdev, port->num, index, gid);
	return !err && memchr_inv(gid, 0, sizeof(*gid));
}

static ssize_t emu_config_port_gids_show(struct config_item *item, char *page)
{
	struct emu_config_port *dir = to_config_port(item);
	struct emu_port_config *config = emu_config_port_lock(dir);
	union ib_gid gid;
	ssize_t len = 0;
	int i;

	for (i = 0; i < EMU_GID_TBL_LEN; i++) {
		if (emu_config_port_get_gid(dir, config, i, &gid))
			len += sysfs_emit_at(page, len, "%d %pI6\n", i, gid.raw);
	}
	return emu_config_port_unlock(dir, len);
}

/*
 * Parses "index value", or "index", for which *@value is empty. Returns the string that *@value
 * points into, which the caller must free; or an ERR_PTR.
 */
static char *emu_config_parse_entry(const char *page, unsigned int limit, unsigned int *index,
				    char **value)
{
	char *copy = kstrdup(page, GFP_KERNEL);
	char *word;

	if (!copy)
		return ERR_PTR(-ENOMEM);
	*value = strim(copy);
	word = strsep(value, " \t");
	if (kstrtouint(word, 0, index) || *index >= limit) {
		kfree(copy);
		return ERR_PTR(-EINVAL);
	}
	*value = *value ? strim(*value) : word + strlen(word);
	return copy;
}

static int emu_config_parse_gid(const char *page, unsigned int *index, union ib_gid *gid)
{
	char *copy, *text;
	int err = 0;

	memset(gid, 0, sizeof(*gid));
	copy = emu_config_parse_entry(page, EMU_GID_TBL_LEN, index, &text);
	if (IS_ERR(copy))
		return PTR_ERR(copy);
	if (*text && !in6_pton(text, -1, gid->raw, '\0', NULL))
		err = -EINVAL;
	kfree(copy);
	return err;
}

static ssize_t emu_config_port_gids_store(struct config_item *item, const char *page, size_t len)
{
	struct emu_config_port *dir = to_config_port(item);
	struct emu_port_config *config;
	struct emu_port *port;
	unsigned int index;
	union ib_gid gid;
	int err;

	err = emu_config_parse_gid(page, &index, &gid);
	if (err)
		return err;
	config = emu_config_port_lock(dir);
	port = emu_config_port_live(dir);
	if (port)
		err = emu_port_set_gid(port, index, &gid);
	if (!err)
		config->gids[index] = gid;
	return emu_config_port_unlock(dir, err ?: len);
}
CONFIGFS_ATTR(emu_config_port_, gids);

static ssize_t emu_config_port_pkeys_show(struct config_item *item, char *page)
{
	struct emu_config_port *dir = to_config_port(item);
	struct emu_port_config *config = emu_config_port_lock(dir);
	ssize_t len = 0;
	int i;

	for (i = 0; i < EMU_PKEY_TBL_LEN; i++) {
		if (config->pkeys[i])
			len += sysfs_emit_at(page, len, "%d %#06x\n", i, config->pkeys[i]);
	}
	return emu_config_port_unlock(dir, len);
}

static int emu_config_parse_pkey(const char *page, unsigned int *index, u16 *pkey)
{
	char *copy, *text;
	int err = 0;

	*pkey = 0;
	copy = emu_config_parse_entry(page, EMU_PKEY_TBL_LEN, index, &text);
	if (IS_ERR(copy))
		return PTR_ERR(copy);
	if (*text)
		err = kstrtou16(text, 0, pkey);
	kfree(copy);
	return err;
}

static ssize_t emu_config_port_pkeys_store(struct config_item *item, const char *page, size_t len)
{
	struct emu_config_port *dir = to_config_port(item);
	struct emu_port_config *config;
	struct emu_port *port;
	unsigned int index;
	u16 pkey;
	int err;

	err = emu_config_parse_pkey(page, &index, &pkey);
	if (err)
		return err;
	config = emu_config_port_lock(dir);
	port = emu_config_port_live(dir);
	if (port)
		err = emu_port_set_pkey(port, index, pkey);
	if (!err)
		config->pkeys[index] = pkey;
	return emu_config_port_unlock(dir, err ?: len);
}
CONFIGFS_ATTR(emu_config_port_, pkeys);

static ssize_t emu_config_port_netdev_show(struct config_item *item, char *page)
{
	struct emu_config_port *dir = to_config_port(item);
	struct emu_port_config *config = emu_config_port_lock(dir);
	struct emu_port *port = emu_config_port_live(dir);
	char name[IFNAMSIZ] = "";

	if (!port)
		strscpy(name, config->netdev, sizeof(name));
	else if (!emu_port_netdev_name(port, name))
		*name = '\0';
	return emu_config_port_unlock(dir, sysfs_emit(page, "%s\n", name));
}

static ssize_t emu_config_port_netdev_store(struct config_item *item, const char *page, size_t len)
{
	struct emu_config_port *dir = to_config_port(item);
	struct emu_port_config *config;
	char name[IFNAMSIZ];
	struct emu_port *port;
	size_t n = len;
	int err = 0;

	if (n && page[n - 1] == '\n')
		n--;
	if (n >= sizeof(name))
		return -EINVAL;
	memcpy(name, page, n);
	name[n] = '\0';
	config = emu_config_port_lock(dir);
	port = emu_config_port_live(dir);
	if (port && !emu_core_can_rebind()) {
		pr_warn("port %u of %s: cannot bind to another network device while it is enabled; disable the device first\n",
			port->num, port->edev->ibdev.name);
		err = -EBUSY;
	} else if (port) {
		err = emu_port_set_netdev(port, current->nsproxy->net_ns, name);
	}
	if (!err)
		strscpy(config->netdev, name, sizeof(config->netdev));
	return emu_config_port_unlock(dir, err ?: len);
}
CONFIGFS_ATTR(emu_config_port_, netdev);

static struct configfs_attribute *emu_config_port_attrs[] = {
	&emu_config_port_attr_state,
	&emu_config_port_attr_lid,
	&emu_config_port_attr_sm_lid,
	&emu_config_port_attr_sm,
	&emu_config_port_attr_gids,
	&emu_config_port_attr_pkeys,
	&emu_config_port_attr_mtu,
	&emu_config_port_attr_width,
	&emu_config_port_attr_speed,
	&emu_config_port_attr_netdev,
	NULL,
};

static void emu_config_port_release(struct config_item *item)
{
	struct emu_config_port *dir = to_config_port(item);

	config_group_put(&dir->config->group);
	kfree(dir);
}

static struct configfs_item_operations emu_config_port_item_ops = {
	.release = emu_config_port_release,
};

static const struct config_item_type emu_config_port_type = {
	.ct_item_ops = &emu_config_port_item_ops,
	.ct_attrs = emu_config_port_attrs,
	.ct_owner = THIS_MODULE,
};

/**
 * emu_config_port_new() - allocate the directory of a port
 * @config: configuration of its device; the directory holds a reference to it
 * @num: port number
 *
 * Context: Process context.
 * Return: the directory, which the caller adds to configfs; or NULL if out of memory.
 */
struct emu_config_port *emu_config_port_new(struct emu_config *config, u32 num)
{
	struct emu_config_port *dir = kzalloc(sizeof(*dir), GFP_KERNEL);
	char name[16];

	if (!dir)
		return NULL;
	snprintf(name, sizeof(name), "port%u", num);
	config_group_init_type_name(&dir->group, name, &emu_config_port_type);
	config_group_get(&config->group);
	dir->config = config;
	dir->num = num;
	return dir;
}
