// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the core caches of a port, so that consumers can query it in any
 * context: the GID table (gid.c), and a snapshot of P_Keys, LMC and state.
 *
 * Lock protocol: a snapshot never changes; a new one replaces it as a whole,
 * and readers see either under RCU. Refreshing calls the driver and may sleep;
 * cache_lock, a mutex, admits one refresh of a device at a time, so that the
 * newest reading wins. The GID table's mutex nests inside it, and RTNL may,
 * in a driver's query_port method. No consumer is called with it held.
 */
#include <linux/export.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <rdma/ib_cache.h>

#include "../contract/contract.h"
#include "../contract/device_priv.h"
#include "../contract/invalid.h"
#include "port.h"

#define PKEY_FULL_MEMBER	0x8000
#define PKEY_NUMBER		0x7fff

struct ib_port_snapshot {
	struct rcu_head rcu;
	u64 subnet_prefix;
	enum ib_port_state state;
	u8 lmc;
	u16 nr_pkeys;
	u16 pkeys[];
};

/*
 * Presets the GID to all ones, which no port has: if that is unchanged, the driver has returned
 * success without a GID.
 */
static int read_gid(struct ib_device *dev, u32 port, int index, union ib_gid *gid,
		    unsigned long site)
{
	int ret;

	memset(gid, 0xff, sizeof(*gid));
	ret = IB_IN_FRAME(dev, NULL, "query_gid", IB_FRAME_METHOD, site,
			  dev->ops.query_gid(dev, port, index, gid));
	if (!ret && !memchr_inv(gid, 0xff, sizeof(*gid))) {
		ib_output_missing(dev, NULL, "query_gid", "returned no GID", site);
		*gid = zgid;
	}
	return ret;
}

static int read_gids(struct ib_device *dev, u32 port, bool *changed, unsigned long site)
{
	int len = dev->port_data[port].immutable.gid_tbl_len;
	bool iwarp = rdma_protocol_iwarp(dev, port);
	struct net_device *ndev = NULL;
	union ib_gid gid = {};
	int i, ret = 0;

	/* A RoCE port's table is made by roce_gid.c. */
	if (rdma_protocol_roce(dev, port) || !dev->ops.query_gid)
		return 0;
	if (iwarp)
		ndev = ib_device_get_netdev(dev, port);
	for (i = 0; i < len && !ret; i++) {
		/*
		 * rdma_cm relies on iWARP GIDs having a network device. Without one the table stays
		 * empty, whether or not the driver can still be asked: an entry holds its device.
		 */
		if (!iwarp || ndev)
			ret = read_gid(dev, port, i, &gid, site);
		if (!ret)
			ret = ib_gid_table_set(dev, port, i, &gid, ndev, changed);
	}
	dev_put(ndev);
	return ret;
}

static int query_pkey(struct ib_device *dev, u32 port, u16 index, u16 *pkey,
		      unsigned long site)
{
	return IB_IN_FRAME(dev, NULL, "query_pkey", IB_FRAME_METHOD, site,
			   dev->ops.query_pkey(dev, port, index, pkey));
}

/*
 * Detects a driver that returns success without setting the P_Key. Any value may be in a table,
 * so this asks again with another initial value if the first came back unchanged. After an error,
 * *@pkey is unchanged.
 */
static int read_pkey(struct ib_device *dev, u32 port, u16 index, u16 *pkey, unsigned long site)
{
	u16 given = PKEY_FULL_MEMBER;
	int ret;

	ret = query_pkey(dev, port, index, &given, site);
	if (!ret && given == PKEY_FULL_MEMBER) {
		given = PKEY_NUMBER;
		ret = query_pkey(dev, port, index, &given, site);
		if (!ret && given == PKEY_NUMBER) {
			ib_output_missing(dev, NULL, "query_pkey", "returned no P_Key", site);
			given = 0;
		}
	}
	if (!ret)
		*pkey = given;
	return ret;
}

static int read_pkeys(struct ib_device *dev, u32 port, struct ib_port_snapshot *snap,
		      unsigned long site)
{
	u16 i;
	int ret;

	for (i = 0; i < snap->nr_pkeys; i++) {
		ret = read_pkey(dev, port, i, &snap->pkeys[i], site);
		if (ret)
			return ret;
	}
	return 0;
}

static int read_port(struct ib_device *dev, u32 port, struct ib_port_snapshot *snap,
		     unsigned long site)
{
	struct ib_port_attr attr;
	union ib_gid gid;
	int ret;

	ret = ib_query_port(dev, port, &attr);
	if (ret)
		return ret;
	snap->state = attr.state;
	snap->lmc = attr.lmc;
	if (!rdma_protocol_roce(dev, port) &&
	    !rdma_query_gid(dev, port, 0, &gid))
		snap->subnet_prefix = be64_to_cpu(gid.global.subnet_prefix);
	return read_pkeys(dev, port, snap, site);
}

static int replace_snapshot(struct ib_device *dev, u32 port, unsigned long site)
{
	u16 nr = dev->port_data[port].immutable.pkey_tbl_len;
	struct ib_port_snapshot *snap, *old;
	int ret;

	snap = kzalloc(struct_size(snap, pkeys, nr), GFP_KERNEL);
	if (!snap)
		return -ENOMEM;
	snap->nr_pkeys = nr;
	ret = read_port(dev, port, snap, site);
	if (ret) {
		kfree(snap);
		return ret;
	}
	old = rcu_replace_pointer(ib_port(dev, port)->snapshot, snap,
				  lockdep_is_held(&ib_priv(dev)->cache_lock));
	if (old)
		kfree_rcu(old, rcu);
	return 0;
}

/*
 * Read everything again. If something fails, its old contents stay. Returns -ENOMEM if GIDs
 * or P_Keys could not be read for lack of memory, else the first error. @site is where the
 * refresh was asked for.
 */
int ib_cache_refresh(struct ib_device *dev, u32 port, bool *gids_changed, unsigned long site)
{
	struct ib_device_priv *priv = ib_priv(dev);
	int gids_ret, ret;

	mutex_lock(&priv->cache_lock);
	gids_ret = read_gids(dev, port, gids_changed, site);
	ret = replace_snapshot(dev, port, site);
	mutex_unlock(&priv->cache_lock);
	if (ret == -ENOMEM)
		return ret;
	return gids_ret ? : ret;
}

static void release_port(struct ib_device *dev, u32 port)
{
	struct ib_port_priv *p = ib_port(dev, port);
	struct ib_port_snapshot *snap;

	ib_gid_table_release(dev, port);
	snap = rcu_replace_pointer(p->snapshot, NULL, true);
	if (snap)
		kfree_rcu(snap, rcu);
}

/* The device structure is being freed; setup may have failed or never run. */
void ib_cache_release(struct ib_device *dev)
{
	u32 port;

	if (!ib_priv(dev)->ports)
		return;
	/* The driver may have changed its number of ports since. */
	for (port = 0; port <= ib_priv(dev)->last_port; port++)
		release_port(dev, port);
}

/*
 * No consumer is left. The empty tables stay until the structure is freed: a
 * leaked reference on a GID must stay safe to put.
 */
void ib_cache_cleanup(struct ib_device *dev)
{
	u32 port;

	rdma_for_each_port(dev, port)
		ib_gid_table_clear(dev, port);
}

/*
 * Reads the tables of all ports. Called while the device is being registered, by the driver
 * at @site, after its events have started: they refresh what is read here.
 */
int ib_cache_fill(struct ib_device *dev, unsigned long site)
{
	bool changed = false;
	u32 port;
	int ret;

	rdma_for_each_port(dev, port) {
		ret = ib_cache_refresh(dev, port, &changed, site);
		if (ret) {
			ibdev_warn(dev, "port %u: cannot read GID and P_Key tables (%d)\n",
				   port, ret);
			return ret;
		}
	}
	return 0;
}

int ib_cache_setup(struct ib_device *dev)
{
	u32 port;
	int ret;

	rdma_for_each_port(dev, port) {
		/* Left over from a registration that failed. */
		release_port(dev, port);
		ret = ib_gid_table_create(dev, port);
		if (ret)
			return ret;
	}
	return 0;
}

/* Under RCU. */
static const struct ib_port_snapshot *snapshot_of(struct ib_device *device,
						  u32 port)
{
	struct ib_port_priv *p = ib_port_or_null(device, port);

	return p ? rcu_dereference(p->snapshot) : NULL;
}

u64 ib_cache_subnet_prefix(struct ib_device *dev, u32 port)
{
	const struct ib_port_snapshot *snap;
	u64 prefix = 0;

	rcu_read_lock();
	snap = snapshot_of(dev, port);
	if (snap)
		prefix = snap->subnet_prefix;
	rcu_read_unlock();
	return prefix;
}

/**
 * ib_get_cached_lmc() - number of path bits of a port's LID
 * @device: the device
 * @port_num: the port
 * @lmc: result
 *
 * Context: Any.
 * Return: 0, or -EINVAL if there is no such port.
 */
int ib_get_cached_lmc(struct ib_device *device, u32 port_num, u8 *lmc)
{
	const struct ib_port_snapshot *snap;
	int ret = -EINVAL;

	rcu_read_lock();
	snap = snapshot_of(device, port_num);
	if (snap) {
		*lmc = snap->lmc;
		ret = 0;
	}
	rcu_read_unlock();
	return ret ? ib_invalid_port(device, "get_cached_lmc", port_num, _RET_IP_) : 0;
}
EXPORT_SYMBOL(ib_get_cached_lmc);

/**
 * ib_get_cached_port_state() - logical state of a port
 * @device: the device
 * @port_num: the port
 * @port_active: result
 *
 * Context: Any.
 * Return: 0, or -EINVAL if there is no such port.
 */
int ib_get_cached_port_state(struct ib_device *device, u32 port_num,
			     enum ib_port_state *port_active)
{
	const struct ib_port_snapshot *snap;
	int ret = -EINVAL;

	rcu_read_lock();
	snap = snapshot_of(device, port_num);
	if (snap) {
		*port_active = snap->state;
		ret = 0;
	}
	rcu_read_unlock();
	return ret ? ib_invalid_port(device, "get_cached_port_state", port_num, _RET_IP_) : 0;
}
EXPORT_SYMBOL(ib_get_cached_port_state);

/**
 * ib_get_cached_pkey() - read an entry of a port's P_Key table
 * @device: the device
 * @port_num: the port
 * @index: in the table
 * @pkey: result
 *
 * Context: Any.
 * Return: 0, or -EINVAL if there is no such port or index.
 */
int ib_get_cached_pkey(struct ib_device *device, u32 port_num, int index,
		       u16 *pkey)
{
	const struct ib_port_snapshot *snap;
	int ret = -EINVAL, size = -1;

	rcu_read_lock();
	snap = snapshot_of(device, port_num);
	if (snap && index >= 0 && index < snap->nr_pkeys) {
		*pkey = snap->pkeys[index];
		ret = 0;
	} else if (snap) {
		size = snap->nr_pkeys;
	}
	rcu_read_unlock();
	if (ret)
		ib_invalid_index(device, "get_cached_pkey", port_num, index, size, _RET_IP_);
	return ret;
}
EXPORT_SYMBOL(ib_get_cached_pkey);

/* Prefers a full membership to a limited one. */
static int search_pkey(const struct ib_port_snapshot *snap, u16 pkey)
{
	int limited = -ENOENT;
	int i;

	for (i = 0; i < snap->nr_pkeys; i++) {
		if ((snap->pkeys[i] ^ pkey) & PKEY_NUMBER)
			continue;
		if (snap->pkeys[i] & PKEY_FULL_MEMBER)
			return i;
		if (limited < 0)
			limited = i;
	}
	return limited;
}

/**
 * ib_find_cached_pkey() - find a partition in a port's P_Key table
 * @device: the device
 * @port_num: the port
 * @pkey: the P_Key; its membership bit is ignored
 * @index: set to its index: where the port is a full member, else the first
 *
 * Context: Any.
 * Return: 0; -ENOENT; or -EINVAL if there is no such port.
 */
int ib_find_cached_pkey(struct ib_device *device, u32 port_num, u16 pkey,
			u16 *index)
{
	const struct ib_port_snapshot *snap;
	int ret = -EINVAL;

	rcu_read_lock();
	snap = snapshot_of(device, port_num);
	if (snap)
		ret = search_pkey(snap, pkey);
	rcu_read_unlock();
	if (ret == -EINVAL)
		ib_invalid_port(device, "find_cached_pkey", port_num, _RET_IP_);
	if (ret < 0)
		return ret;
	*index = ret;
	return 0;
}
EXPORT_SYMBOL(ib_find_cached_pkey);

/**
 * ib_find_exact_cached_pkey() - find a P_Key with its membership bit
 * @device: the device
 * @port_num: the port
 * @pkey: the P_Key
 * @index: set to its index
 *
 * Context: Any.
 * Return: 0; -ENOENT; or -EINVAL if there is no such port.
 */
int ib_find_exact_cached_pkey(struct ib_device *device, u32 port_num,
			      u16 pkey, u16 *index)
{
	const struct ib_port_snapshot *snap;
	int ret = -EINVAL;
	u16 i;

	rcu_read_lock();
	snap = snapshot_of(device, port_num);
	if (snap)
		ret = -ENOENT;
	for (i = 0; snap && i < snap->nr_pkeys; i++) {
		if (snap->pkeys[i] != pkey)
			continue;
		*index = i;
		ret = 0;
		break;
	}
	rcu_read_unlock();
	if (ret == -EINVAL)
		ib_invalid_port(device, "find_exact_cached_pkey", port_num, _RET_IP_);
	return ret;
}
EXPORT_SYMBOL(ib_find_exact_cached_pkey);

/**
 * ib_query_pkey() - ask the driver for a P_Key
 * @device: the device
 * @port_num: the port
 * @index: in the table
 * @pkey: result
 *
 * Context: Process, may sleep.
 * Return: 0; -EINVAL if there is no such port or index; -EOPNOTSUPP if the driver has no P_Keys,
 *	   as for iWARP; or the error of the driver.
 */
int ib_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey)
{
	int size;

	if (!rdma_is_port_valid(device, port_num) || !device->port_data)
		return ib_invalid_port(device, "query_pkey", port_num, _RET_IP_);
	if (!device->ops.query_pkey)
		return -EOPNOTSUPP;
	size = device->port_data[port_num].immutable.pkey_tbl_len;
	if (index >= size)
		return ib_invalid_index(device, "query_pkey", port_num, index, size, _RET_IP_);
	return read_pkey(device, port_num, index, pkey, _RET_IP_);
}
EXPORT_SYMBOL(ib_query_pkey);

/**
 * ib_find_pkey() - find a partition in a port's P_Key table
 * @device: the device
 * @port_num: the port
 * @pkey: the P_Key; its membership bit is ignored
 * @index: set to its index: where the port is a full member, else the first
 *
 * The same as ib_find_cached_pkey(): the cache follows the driver's events.
 *
 * Context: Any.
 * Return: 0; -ENOENT; or -EINVAL if there is no such port.
 */
int ib_find_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index)
{
	return ib_find_cached_pkey(device, port_num, pkey, index);
}
EXPORT_SYMBOL(ib_find_pkey);
