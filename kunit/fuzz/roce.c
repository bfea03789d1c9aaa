// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: network devices of the ports of a thread's own device, the GIDs that
 * their addresses give, and address vectors that hold a reference to such a GID.
 *
 * A work item of the core follows the network devices of all devices. After each change,
 * the thread calls rdma_roce_rescan_device() for its own device; from then on the work item
 * has nothing to do there, and the thread can compare the GID tables to the model.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ethtool.h>
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_cache.h>

#include "fuzz/mock_device.h"

/* A port number that no device has. */
#define X_NO_PORT	99
/* Entries of each GID, one of each RoCE type; and of the default GID of a port. */
#define X_TYPES		2
#define X_DEFAULTS	X_TYPES

/* Private data of the network devices. */
struct x_netdev {
	u32 mbps;
};

static int get_settings(struct net_device *ndev, struct ethtool_link_ksettings *cmd)
{
	struct x_netdev *priv = netdev_priv(ndev);

	cmd->base.speed = priv->mbps;
	return 0;
}

static const struct ethtool_ops ndev_ethtool_ops = {
	.get_link_ksettings = get_settings,
};

/* The network devices stay down, so that IPv6 assigns no addresses to them. */
static void setup(struct net_device *ndev)
{
	kvt_netdev_setup(ndev);
	ndev->ethtool_ops = &ndev_ethtool_ops;
}

static struct net_device *new_netdev(void)
{
	struct net_device *ndev;

	ndev = alloc_netdev(sizeof(struct x_netdev), "kvtx%d", NET_NAME_ENUM, setup);
	if (ndev && register_netdev(ndev)) {
		free_netdev(ndev);
		ndev = NULL;
	}
	return ndev;
}

/**
 * x_roce_new() - make the network devices of a thread
 * @test: the running case
 * @own: state of the thread's own device
 */
void x_roce_new(struct kunit *test, struct x_own *own)
{
	int i;

	for (i = 0; i < X_NDEVS; i++) {
		own->ndev[i] = KVT_PTR(test, new_netdev());
		own->fresh[i] = netdev_refcnt_read(own->ndev[i]);
	}
	own->idle = alloc_netdev(sizeof(struct x_netdev), "kvtx%d", NET_NAME_ENUM, setup);
	KUNIT_EXPECT_NOT_NULL(test, own->idle);
}

/*
 * unregister_netdev() would wait for ever for a reference that was lost in a failure: then
 * the device stays, and this module with it.
 */
static void end_netdev(struct net_device *ndev, int fresh)
{
	if (netdev_refcnt_read(ndev) == fresh) {
		unregister_netdev(ndev);
		return;
	}
	pr_err("%s is held still, and stays\n", ndev->name);
	__module_get(THIS_MODULE);
}

/**
 * x_roce_end() - free the network devices of a thread
 * @own: state of the thread's own device
 */
void x_roce_end(struct x_own *own)
{
	int i;

	for (i = 0; i < X_NDEVS; i++) {
		if (own->ndev[i])
			end_netdev(own->ndev[i], own->fresh[i]);
	}
	if (own->idle)
		free_netdev(own->idle);
}

/* --- GIDs: what the tables must hold --- */

static __be32 ip_of(const struct x_world *w, int ndev, int addr)
{
	return htonl(10U << 24 | (w->id + 1) << 16 | (ndev * X_ADDRS + addr + 1) << 8 | 1);
}

/* GID of an IPv4 address, or if @addr is -1, of the MAC: EUI-64 with the local bit flipped. */
static void gid_of(const struct x_world *w, int ndev, int addr, union ib_gid *gid)
{
	const u8 *mac = w->own->ndev[ndev]->dev_addr;
	__be32 ip = ip_of(w, ndev, addr);

	memset(gid, 0, sizeof(*gid));
	if (addr >= 0) {
		gid->raw[10] = 0xff;
		gid->raw[11] = 0xff;
		memcpy(&gid->raw[12], &ip, sizeof(ip));
		return;
	}
	gid->raw[0] = 0xfe;
	gid->raw[1] = 0x80;
	memcpy(&gid->raw[8], mac, 3);
	gid->raw[8] ^= 2;
	gid->raw[11] = 0xff;
	gid->raw[12] = 0xfe;
	memcpy(&gid->raw[13], mac + 3, 3);
}

static enum ib_gid_type type_of(int i)
{
	return i ? IB_GID_TYPE_ROCE_UDP_ENCAP : IB_GID_TYPE_ROCE;
}

static bool is_wanted(const struct x_own *own, u32 port, int ndev, int addr)
{
	return own->eth && own->bound[port] == ndev &&
	       (addr < 0 || own->addrs[ndev] & BIT(addr));
}

/*
 * Number of table entries, default ones or others, whose GID is gone but which address
 * vectors keep occupied.
 */
static int kept(const struct x_own *own, u32 port, bool defaults)
{
	const struct x_av *av;
	int i, j, n = 0;

	for (i = 0; i < X_AVS; i++) {
		av = &own->av[i];
		if (!av->there || av->live || av->port != port || (av->addr < 0) != defaults)
			continue;
		for (j = 0; j < i && own->av[j].entry != av->entry; j++)
			;
		n += j == i;
	}
	return n;
}

/* Number of entries of a GID in the table, or -1 if one has a wrong port or index. */
static int count_found(struct x_world *w, u32 port, int ndev, int addr)
{
	const struct ib_gid_attr *attr;
	union ib_gid gid;
	int i, n = 0;
	bool right;

	gid_of(w, ndev, addr, &gid);
	for (i = 0; i < X_TYPES; i++) {
		attr = rdma_find_gid_by_port(w->own->dev, &gid, type_of(i), port,
					     w->own->ndev[ndev]);
		if (IS_ERR(attr))
			continue;
		right = attr->port_num == port && (attr->index < X_DEFAULTS) == (addr < 0);
		rdma_put_gid_attr(attr);
		if (!right)
			return -1;
		n++;
	}
	return n;
}

/* The table must hold as many of the wanted GIDs as it has room for, and no others. */
static enum x_verdict check_table(struct x_world *w, u32 port)
{
	struct x_own *own = w->own;
	int want[2] = {}, got[2] = {}, ndev, addr, n;

	for (ndev = 0; ndev < X_NDEVS; ndev++) {
		for (addr = -1; addr < X_ADDRS; addr++) {
			n = count_found(w, port, ndev, addr);
			if (n < 0)
				return x_fail(w, "a GID is at a wrong place");
			if (n && !is_wanted(own, port, ndev, addr))
				return x_fail(w, "a GID that is not to be there");
			got[addr < 0] += n;
			want[addr < 0] += is_wanted(own, port, ndev, addr) ? X_TYPES : 0;
		}
	}
	want[1] = min(want[1], X_DEFAULTS - kept(own, port, true));
	want[0] = min(want[0], MOCK_GIDS - X_DEFAULTS - kept(own, port, false));
	if (x_want(w, "default GIDs of a port", want[1], got[1]) ||
	    x_want(w, "GIDs of a port's addresses", want[0], got[0]))
		return X_FAILED;
	return x_want(w, "GIDs that the driver has", want[0] + want[1],
		      hweight_long(READ_ONCE(own->mock->port[port].valid)));
}

static enum x_verdict check_bound(struct x_world *w, u32 port)
{
	int slot = w->own->bound[port];
	struct net_device *ndev = ib_device_get_netdev(w->own->dev, port);
	bool right = ndev == (slot < 0 ? NULL : w->own->ndev[slot]);

	dev_put(ndev);
	return x_want(w, "the network device of a port", true, right);
}

/* An address vector keeps its source GID, whether that is still in the table or not. */
static enum x_verdict check_av(struct x_world *w, struct x_av *av)
{
	const struct ib_gid_attr *entry = av->attr.grh.sgid_attr, *now;
	u16 vlan = 0;
	u8 mac[ETH_ALEN];
	int ret;

	if (!av->there)
		return x_want(w, "an address vector that is empty", true, !entry);
	if (entry != av->entry || entry->index != av->index || entry->port_num != av->port ||
	    memcmp(&entry->gid, &av->gid, sizeof(av->gid)))
		return x_fail(w, "the source of an address vector is another one");
	if (av->attr.grh.sgid_index != av->index)
		return x_want(w, "its place", av->index, av->attr.grh.sgid_index);
	if (rdma_ah_get_sl(&av->attr) != av->sl)
		return x_want(w, "service level of an address vector", av->sl,
			      rdma_ah_get_sl(&av->attr));
	ret = rdma_read_gid_l2_fields(entry, &vlan, mac);
	if (ret || !av->live)
		return x_want(w, "network device of a source", av->live ? 0 : -ENODEV, ret);
	if (!ether_addr_equal(mac, w->own->ndev[av->ndev]->dev_addr) || vlan != 0xffff)
		return x_fail(w, "Ethernet address of a source");
	now = rdma_get_gid_attr(w->own->dev, av->port, av->index);
	if (!IS_ERR(now))
		rdma_put_gid_attr(now);
	return x_want(w, "a source that is in the table", true, now == entry);
}

/* If the source GID is no longer in the table, its index must stay empty. */
static enum x_verdict check_place(struct x_world *w, const struct x_av *av)
{
	const struct ib_gid_attr *now;

	if (!av->there || av->live)
		return X_DONE;
	now = rdma_get_gid_attr(w->own->dev, av->port, av->index);
	if (!IS_ERR(now))
		rdma_put_gid_attr(now);
	return x_want(w, "a place that is kept", -ENODATA, PTR_ERR_OR_ZERO(now));
}

/**
 * x_roce_check() - compare the ports of the thread's device to the model
 * @w: the world; the device is registered
 *
 * Return: %X_DONE or %X_FAILED.
 */
enum x_verdict x_roce_check(struct x_world *w)
{
	u32 port;
	int i;

	rdma_roce_rescan_device(w->own->dev);
	for (port = 1; port <= w->own->ports; port++) {
		if (check_bound(w, port) || check_table(w, port))
			return X_FAILED;
	}
	for (i = 0; i < X_AVS; i++) {
		if (check_av(w, &w->own->av[i]) || check_place(w, &w->own->av[i]))
			return X_FAILED;
	}
	return X_DONE;
}

/* --- changes --- */

/* One or all GIDs of a network device are removed: address vectors that hold them go stale. */
static void forget(struct x_own *own, int port, int ndev, int addr)
{
	struct x_av *av;
	int i;

	for (i = 0; i < X_AVS; i++) {
		av = &own->av[i];
		if ((port < 0 || av->port == port) && av->ndev == ndev &&
		    (addr < 0 || av->addr == addr))
			av->live = false;
	}
}

static int bind_port(struct x_own *own, u32 port, int slot)
{
	struct net_device *ndev = slot < 0 ? NULL : own->ndev[slot];
	int was = own->bound[port], ret = 0;

	if (own->asks)
		WRITE_ONCE(own->mock->port[port].ndev, ndev);
	else
		ret = ib_device_set_netdev(own->dev, ndev, port);
	if (ret)
		return ret;
	if (was >= 0 && was != slot)
		forget(own, port, was, -1);
	own->bound[port] = slot;
	return 0;
}

/**
 * x_roce_prepare() - set the network devices of the ports before registration
 * @w: the world
 * @r: random bits that choose the network devices
 */
void x_roce_prepare(struct x_world *w, u32 r)
{
	struct x_own *own = w->own;
	u32 port;

	memset(own->av, 0, sizeof(own->av));
	for (port = 1; port <= own->ports; port++, r >>= 2) {
		WRITE_ONCE(own->mock->port[port].ndev, NULL);
		own->bound[port] = -1;
		if (r & 1)
			x_want(w, "a network device for a port to be", 0,
			       bind_port(own, port, r >> 1 & 1));
	}
}

static enum x_verdict set_bad(struct x_world *w, u32 port, u32 r)
{
	int want = r & 1 ? -EINVAL : -ENODEV, ret;

	ret = ib_device_set_netdev(w->own->dev, r & 1 ? w->own->ndev[0] : w->own->idle,
				   r & 1 ? X_NO_PORT : port);
	return x_want(w, "a network device, or port, that there is not", want, ret) ?:
	       x_roce_check(w);
}

static int change_addr(struct x_world *w, int ndev, int addr)
{
	struct x_own *own = w->own;
	bool add = !(own->addrs[ndev] & BIT(addr));
	int ret = kvt_netdev_ip4(own->ndev[ndev], ip_of(w, ndev, addr), add);

	if (ret)
		return ret;
	own->addrs[ndev] ^= BIT(addr);
	if (!add)
		forget(own, -1, ndev, addr);
	return 0;
}

/* Unregisters a network device, perhaps while ports have it, and makes another one. */
static enum x_verdict replug(struct x_world *w, int slot)
{
	struct x_own *own = w->own;
	u32 port;

	for (port = 1; port <= MOCK_MAX_PORTS; port++) {
		if (own->bound[port] != slot)
			continue;
		if (own->asks)
			WRITE_ONCE(own->mock->port[port].ndev, NULL);
		own->bound[port] = -1;
	}
	forget(own, -1, slot, -1);
	unregister_netdev(own->ndev[slot]);
	own->addrs[slot] = 0;
	own->mbps[slot] = 0;
	own->ndev[slot] = new_netdev();
	if (!own->ndev[slot])
		return x_fail(w, "no network device");
	own->fresh[slot] = netdev_refcnt_read(own->ndev[slot]);
	own->before[slot] = own->fresh[slot];
	return own->dev ? x_roce_check(w) : X_DONE;
}

/*
 * Width, shifted by 16, and speed that the core reports for an Ethernet speed: if IBTA has
 * no such speed, the closest one below it.
 */
static u32 ib_speed(u32 mbps)
{
	switch (mbps) {
	case 10000:
		return IB_WIDTH_1X << 16 | IB_SPEED_FDR10;
	case 25000:
	case 30000:
		return IB_WIDTH_1X << 16 | IB_SPEED_EDR;
	case 40000:
		return IB_WIDTH_4X << 16 | IB_SPEED_FDR10;
	case 100000:
		return IB_WIDTH_4X << 16 | IB_SPEED_EDR;
	case 400000:
		return IB_WIDTH_4X << 16 | IB_SPEED_NDR;
	default:
		return IB_WIDTH_1X << 16 | IB_SPEED_SDR;
	}
}

static enum x_verdict check_speed(struct x_world *w, u32 port, bool bad)
{
	int want = 0, slot = w->own->bound[port], ret;
	u16 speed = 0;
	u8 width = 0;

	if (bad || !w->own->eth)
		want = -EINVAL;
	else if (slot < 0)
		want = -ENODEV;
	ret = ib_get_eth_speed(w->own->dev, bad ? X_NO_PORT : port, &speed, &width);
	if (ret || want)
		return x_want(w, "speed of a port", want, ret);
	return x_want(w, "width and speed of a port", ib_speed(w->own->mbps[slot]),
		      (u32)width << 16 | speed);
}

static void set_speed(struct x_own *own, int slot, u32 mbps)
{
	struct x_netdev *priv = netdev_priv(own->ndev[slot]);

	own->mbps[slot] = mbps;
	/* The core reads the speed under RTNL, too. */
	rtnl_lock();
	priv->mbps = mbps;
	rtnl_unlock();
}

/* Tries all speeds in turn, beginning with the one numbered @first. */
static enum x_verdict try_speeds(struct x_world *w, int slot, u32 port, u32 first)
{
	static const u32 speeds[] = { 1000, 10000, 25000, 40000, 100000, 400000, 30000,
				      (u32)SPEED_UNKNOWN };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(speeds); i++) {
		set_speed(w->own, slot, speeds[(first + i) % ARRAY_SIZE(speeds)]);
		if (check_speed(w, port, false))
			return X_FAILED;
	}
	return X_DONE;
}

enum x_verdict x_netdev(struct x_world *w, const struct x_op *op)
{
	u32 port = 1 + op->c % 2 % w->own->ports;

	if (!w->own->dev || !w->own->ndev[op->a])
		return X_SKIPPED;
	switch (op->b) {
	case 0:
	case 1:
	case 2:
		return x_want(w, "a network device for a port", 0,
			      bind_port(w->own, port, op->a)) ?: x_roce_check(w);
	case 3:
		return x_want(w, "no network device for a port", 0,
			      bind_port(w->own, port, -1)) ?: x_roce_check(w);
	case 4:
		return set_bad(w, port, op->r);
	case 5:
		return try_speeds(w, op->a, port, op->r & 7);
	case 6:
		if (op->r % 16 == 1)
			return replug(w, op->a);
		fallthrough;
	default:
		return x_want(w, "changing an address", 0,
			      change_addr(w, op->a, op->r >> 4 & 1)) ?: x_roce_check(w);
	}
}

/* --- lookups by network device --- */

static enum x_verdict find_by_netdev(struct x_world *w, int slot, bool other_driver)
{
	struct x_own *own = w->own;
	struct ib_device *want = NULL, *ibdev;
	u32 port;

	/* Only network devices set by ib_device_set_netdev() can be found, not get_netdev's. */
	for (port = 1; own->dev && port <= own->ports; port++) {
		if (own->bound[port] == slot && !own->asks && !other_driver)
			want = own->dev;
	}
	ibdev = ib_device_get_by_netdev(own->ndev[slot], other_driver ? RDMA_DRIVER_MLX5 :
								       RDMA_DRIVER_UNKNOWN);
	if (ibdev)
		ib_device_put(ibdev);
	return x_want(w, "finding the device of a network device", true, ibdev == want);
}

enum x_verdict x_netdev_find(struct x_world *w, const struct x_op *op)
{
	u32 port = 1 + op->c % 2 % w->own->ports;

	if (!w->own->ndev[op->a])
		return X_SKIPPED;
	if (op->b < 3)
		return find_by_netdev(w, op->a, !(op->r % 8));
	if (!w->own->dev)
		return X_SKIPPED;
	if (op->b < 6)
		return check_speed(w, port, !(op->r % 8));
	return x_roce_check(w);
}

/* --- address vectors --- */

static void drop_av(struct x_av *av)
{
	rdma_destroy_ah_attr(&av->attr);
	*av = (struct x_av){};
}

/* Fills an address vector with a source GID from the table. */
static enum x_verdict take_gid(struct x_world *w, struct x_av *av, u32 port, u32 r)
{
	int slot = w->own->bound[port], addr = r & 1 ? (int)(r >> 1 & 1) : -1;
	const struct ib_gid_attr *entry;
	union ib_gid gid, to = {};

	if (slot < 0 || !is_wanted(w->own, port, slot, addr))
		return X_SKIPPED;
	gid_of(w, slot, addr, &gid);
	entry = rdma_find_gid_by_port(w->own->dev, &gid, type_of(r >> 2 & 1), port, NULL);
	/* The table may have been full. */
	if (IS_ERR(entry))
		return x_want(w, "a GID that is not there", -ENOENT, PTR_ERR(entry));
	*av = (struct x_av){
		.there = true, .live = true, .entry = entry, .gid = gid,
		.index = entry->index, .port = port, .ndev = slot, .addr = addr,
		.sl = r >> 3 & 7,
	};
	av->attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&av->attr, port);
	rdma_ah_set_sl(&av->attr, av->sl);
	rdma_move_grh_sgid_attr(&av->attr, &to, 0, 1, 0, entry);
	return X_DONE;
}

/* Copies the model of @from to @to, but not the rdma_ah_attr, which the core has copied. */
static void same_model(struct x_av *to, const struct x_av *from)
{
	struct rdma_ah_attr attr = to->attr;

	*to = *from;
	to->attr = attr;
}

static enum x_verdict change_av(struct x_world *w, struct x_av *av, struct x_av *next,
				const struct x_op *op)
{
	u32 port = 1 + op->c % 2 % w->own->ports;

	switch (op->b) {
	case 0:
	case 1:
	case 2:
		drop_av(av);
		return take_gid(w, av, port, op->r);
	case 3:
	case 4:
		drop_av(next);
		rdma_copy_ah_attr(&next->attr, &av->attr);
		same_model(next, av);
		return X_DONE;
	case 5:
		/* Sometimes replace an attribute by itself. */
		if (op->r % 4 == 1)
			next = av;
		rdma_replace_ah_attr(&next->attr, &av->attr);
		same_model(next, av);
		return X_DONE;
	case 6:
		rdma_move_ah_attr(&next->attr, &av->attr);
		same_model(next, av);
		same_model(av, &(struct x_av){});
		return X_DONE;
	default:
		drop_av(av);
		return X_DONE;
	}
}

enum x_verdict x_av(struct x_world *w, const struct x_op *op)
{
	struct x_own *own = w->own;
	struct x_av *av = &own->av[op->a];
	enum x_verdict verdict;

	if (!own->dev || !own->eth || (op->b > 2 && !av->there))
		return X_SKIPPED;
	verdict = change_av(w, av, &own->av[(op->a + 1) % X_AVS], op);
	return verdict == X_FAILED ? verdict : x_roce_check(w) ?: verdict;
}

/**
 * x_roce_leave() - drop address vectors and addresses before the thread's device goes
 * @w: the world
 */
void x_roce_leave(struct x_world *w)
{
	struct x_own *own = w->own;
	int i, addr;

	for (i = 0; i < X_AVS; i++)
		drop_av(&own->av[i]);
	for (i = 0; i < X_NDEVS; i++) {
		for (addr = 0; addr < X_ADDRS; addr++) {
			if (own->addrs[i] & BIT(addr))
				x_want(w, "an address that goes", 0, change_addr(w, i, addr));
		}
	}
}

/* References on a network device; if they are not @want, read again after rcu_barrier(). */
static int references(const struct net_device *ndev, int want)
{
	/* A GID that is gone holds its network device for a grace period. */
	if (netdev_refcnt_read(ndev) != want)
		rcu_barrier();
	return netdev_refcnt_read(ndev);
}

/**
 * x_roce_begin() - note the references on the network devices when a world begins
 * @own: state of the thread's own device, which is not there at this time
 */
void x_roce_begin(struct x_own *own)
{
	int i;

	/* A failure in an earlier world may have leaked references. */
	for (i = 0; i < X_NDEVS; i++) {
		if (own->ndev[i])
			own->before[i] = references(own->ndev[i], own->fresh[i]);
	}
}

/**
 * x_roce_gone() - check that nothing holds the network devices once the device is gone
 * @w: the world
 *
 * Return: %X_DONE or %X_FAILED.
 */
enum x_verdict x_roce_gone(struct x_world *w)
{
	struct x_own *own = w->own;
	int i;

	for (i = 0; i < X_NDEVS; i++) {
		if (own->ndev[i] && x_want(w, "references on a network device", own->before[i],
					   references(own->ndev[i], own->before[i])))
			return X_FAILED;
	}
	return X_DONE;
}
