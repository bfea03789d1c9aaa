// SPDX-License-Identifier: GPL-2.0-only
/*
 * Networks of software HCAs, and datagrams across them.
 *
 * InfiniBand ends use the devices that kverbs_emu makes when it is loaded. A case
 * that needs RoCE, or ports with other settings, makes devices of its own through
 * configfs; they are removed when the case ends.
 */
#include <linux/inet.h>
#include <linux/netdevice.h>
#include <linux/umh.h>
#include <net/ipv6.h>
#include <rdma/ib_cache.h>

#include "emu/rig_net.h"
#include "lib/objects.h"

#define CONFIG_DIR	"/sys/kernel/config/kverbs_emu/"

/*
 * rig_nets - every kind of network, within a device and between two
 */
const struct rig_net rig_nets[10] = {
	{ "IB within a device", RIG_NET_IB },
	{ "IB between two", RIG_NET_IB, true },
	{ "IB with GRH within a device", RIG_NET_IB_GRH },
	{ "IB with GRH between two", RIG_NET_IB_GRH, true },
	{ "RoCE v1 within a device", RIG_NET_ROCE_V1 },
	{ "RoCE v1 between two", RIG_NET_ROCE_V1, true },
	{ "RoCE v2 IPv6 within a device", RIG_NET_ROCE_V2_IP6 },
	{ "RoCE v2 IPv6 between two", RIG_NET_ROCE_V2_IP6, true },
	{ "RoCE v2 IPv4 within a device", RIG_NET_ROCE_V2_IP4 },
	{ "RoCE v2 IPv4 between two", RIG_NET_ROCE_V2_IP4, true },
};
EXPORT_SYMBOL_GPL(rig_nets);

/*
 * rig_few_nets - networks that differ in more than their addresses, for cases in which
 * addresses do not matter: making a RoCE device takes a while
 */
const struct rig_net rig_few_nets[4] = {
	{ "IB between two", RIG_NET_IB, true },
	{ "IB with GRH within a device", RIG_NET_IB_GRH },
	{ "RoCE v1 within a device", RIG_NET_ROCE_V1 },
	{ "RoCE v2 IPv4 between two", RIG_NET_ROCE_V2_IP4, true },
};
EXPORT_SYMBOL_GPL(rig_few_nets);

static int rig_config_write(const char *name, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), CONFIG_DIR "%s/%s", name, file);
	return kvt_write_file(path, text);
}

/* Makes or removes a directory as an administrator does, with mkdir(1) or rmdir(1). */
static int rig_config_dir(const char *tool, const char *path)
{
	char *argv[3] = { (char *)tool, (char *)path, NULL };
	static char *envp[2] = { "PATH=/bin:/usr/bin", NULL };

	return call_usermodehelper(tool, argv, envp, UMH_WAIT_PROC);
}

/* A device that is removed when the case ends. */
struct rig_device {
	u32 ports;	/* highest port whose directory the rig made; 0 if it made none */
	char name[IB_DEVICE_NAME_MAX];	/* name of the device */
};

static void rig_device_end(void *arg)
{
	struct rig_device *dev = arg;
	char path[128];

	rig_config_write(dev->name, "enable", "0");
	for (; dev->ports > 1; dev->ports--) {
		snprintf(path, sizeof(path), CONFIG_DIR "%s/port%u", dev->name, dev->ports);
		rig_config_dir("/bin/rmdir", path);
	}
	snprintf(path, sizeof(path), CONFIG_DIR "%s", dev->name);
	rig_config_dir("/bin/rmdir", path);
}

/* Makes the device's directories; the caller enables the device. */
static void rig_device_make(struct kunit *test, const char *name, u32 ports)
{
	struct rig_device *dev = kvt_zalloc(test, sizeof(*dev));
	char path[128];
	u32 port;

	strscpy(dev->name, name, sizeof(dev->name));
	snprintf(path, sizeof(path), CONFIG_DIR "%s", name);
	KUNIT_ASSERT_EQ_MSG(test, 0, rig_config_dir("/bin/mkdir", path),
			    "cannot make %s: mount configfs, load kverbs_emu",
			    path);
	kvt_defer(test, rig_device_end, dev);
	for (port = 2; port <= ports; port++) {
		snprintf(path, sizeof(path), CONFIG_DIR "%s/port%u", name, port);
		KUNIT_ASSERT_EQ(test, 0, rig_config_dir("/bin/mkdir", path));
		dev->ports = port;
	}
}

/**
 * rig_device() - make a device that is removed when the case ends
 * @test: the running case
 * @name: name of the device
 * @ports: number of ports
 * @netdevs: for RoCE: network device of each port, separated by commas; NULL for InfiniBand
 */
void rig_device(struct kunit *test, const char *name, u32 ports, const char *netdevs)
{
	u32 port;

	rig_device_make(test, name, ports);
	if (netdevs)
		KUNIT_ASSERT_EQ(test, 0, rig_config_write(name, "netdev", netdevs));
	/* Whatever the network devices allow. */
	for (port = 1; port <= ports; port++)
		KUNIT_ASSERT_EQ(test, 0, rig_port_write(name, port, "mtu", "4096"));
	KUNIT_ASSERT_EQ(test, 0, rig_config_write(name, "enable", "1"));
}
EXPORT_SYMBOL_GPL(rig_device);

/**
 * rig_device_at() - make a device below a PCI function
 * @test: the running case, at whose end the device is removed
 * @name: name of the device
 * @pci: address of the PCI function that is the device's parent
 */
void rig_device_at(struct kunit *test, const char *name, const char *pci)
{
	rig_device_make(test, name, 1);
	KUNIT_ASSERT_EQ(test, 0, rig_config_write(name, "pci", pci));
	KUNIT_ASSERT_EQ(test, 0, rig_config_write(name, "enable", "1"));
}
EXPORT_SYMBOL_GPL(rig_device_at);

/**
 * rig_port_write() - write a setting of a port in configfs, as an administrator does
 * @name: device in configfs
 * @port: port number
 * @file: name of the setting
 * @text: the value
 *
 * Return: 0, or what kvt_write_file() returned.
 */
int rig_port_write(const char *name, u32 port, const char *file, const char *text)
{
	char within[32];

	snprintf(within, sizeof(within), "port%u/%s", port, file);
	return rig_config_write(name, within, text);
}
EXPORT_SYMBOL_GPL(rig_port_write);

static bool rig_gid_is(const struct ib_gid_attr *attr, int kind)
{
	bool ip4 = ipv6_addr_v4mapped((struct in6_addr *)&attr->gid);

	switch (kind) {
	case RIG_NET_ROCE_V1:
		return attr->gid_type == IB_GID_TYPE_ROCE && !ip4;
	case RIG_NET_ROCE_V2_IP6:
		return attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP && !ip4;
	case RIG_NET_ROCE_V2_IP4:
		return attr->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP && ip4;
	default:
		return attr->gid_type == IB_GID_TYPE_IB;
	}
}

static bool rig_find_gid(struct rig_end *e,
			 bool (*is)(const struct ib_gid_attr *attr, int kind), int kind)
{
	const struct ib_gid_attr *attr;
	int i;

	for (i = 0; i < 64 && e->gid_index < 0; i++) {
		attr = rdma_get_gid_attr(e->ibdev, e->port, i);
		if (IS_ERR(attr))
			continue;
		if (is(attr, kind)) {
			e->gid = attr->gid;
			e->gid_index = i;
		}
		rdma_put_gid_attr(attr);
	}
	return e->gid_index >= 0;
}

/**
 * rig_wait_gid() - give an end that has no GID the first one of some kind
 * @test: the running case
 * @e: the end
 * @is: tells whether a GID is of the kind
 * @kind: for @is
 *
 * Waits for it: GIDs follow the addresses of a network device with a delay.
 */
void rig_wait_gid(struct kunit *test, struct rig_end *e,
		  bool (*is)(const struct ib_gid_attr *attr, int kind), int kind)
{
	kvt_until(rig_find_gid(e, is, kind));
	KUNIT_ASSERT_GE_MSG(test, e->gid_index, 0, "no GID of this kind");
}
EXPORT_SYMBOL_GPL(rig_wait_gid);

/**
 * rig_give_gid() - give an end that has none the first GID of a kind of network
 * @test: the running case
 * @e: the end
 * @kind: the network; without a GRH, the end needs no GID
 */
void rig_give_gid(struct kunit *test, struct rig_end *e, enum rig_net_kind kind)
{
	if (kind != RIG_NET_IB)
		rig_wait_gid(test, e, rig_gid_is, kind);
}
EXPORT_SYMBOL_GPL(rig_give_gid);

/**
 * rig_roce_end() - set up an end on a RoCE device of its own
 * @test: the running case, at whose end both are removed
 * @e: the end
 * @name: name of the device
 * @ip4: address of its network device, which others may have, too
 */
void rig_roce_end(struct kunit *test, struct rig_end *e, const char *name, const char *ip4)
{
	struct net_device *ndev = kvt_netdev(test);

	KUNIT_ASSERT_EQ(test, 0, kvt_netdev_ip4(ndev, in_aton(ip4), true));
	rig_device(test, name, 1, netdev_name(ndev));
	rig_end_up(test, e, name, 1);
}
EXPORT_SYMBOL_GPL(rig_roce_end);

/**
 * rig_net_new() - set up two ends of a network, without queue pairs
 * @test: the running case
 * @net: the network
 *
 * Return: the rig, set up for RC; the case may change its attributes.
 */
struct rig *rig_net_new(struct kunit *test, const struct rig_net *net)
{
	struct rig *r = rig_alloc(test);

	if (!rig_net_is_roce(net)) {
		rig_end_up(test, &r->a, "emu0", 1);
		rig_end_up(test, &r->b, net->across ? "emu1" : "emu0", 1);
	} else {
		rig_roce_end(test, &r->a, "kvr_a", "192.0.2.1");
		if (net->across)
			rig_roce_end(test, &r->b, "kvr_b", "192.0.2.2");
		else
			rig_end_up(test, &r->b, "kvr_a", 1);
	}
	rig_give_gid(test, &r->a, net->kind);
	rig_give_gid(test, &r->b, net->kind);
	return r;
}
EXPORT_SYMBOL_GPL(rig_net_new);

/**
 * rig_make_ud() - make a UD queue pair and move it to RTS
 * @test: the running case
 * @r: the rig, with the QP's attributes; the type is changed to UD
 * @e: the end that gets the QP
 */
void rig_make_ud(struct kunit *test, struct rig *r, struct rig_end *e)
{
	r->init.qp_type = IB_QPT_UD;
	rig_make_qp(test, r, e);
	if (!e->qkey)
		e->qkey = RIG_QKEY;
	rig_connect_end(test, r, e, NULL);
}
EXPORT_SYMBOL_GPL(rig_make_ud);

/**
 * rig_ud_of_param() - set up two UD queue pairs on the network of the case's parameter
 * @test: the running case, whose parameter is a struct rig_net
 *
 * Return: the rig, with both QPs in RTS.
 */
struct rig *rig_ud_of_param(struct kunit *test)
{
	struct rig *r = rig_net_new(test, test->param_value);

	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	return r;
}
EXPORT_SYMBOL_GPL(rig_ud_of_param);

/**
 * rig_ud() - set up two UD queue pairs on InfiniBand
 * @test: the running case
 * @dev_a: device of the first end
 * @dev_b: device of the second end
 *
 * Return: the rig, with both QPs in RTS.
 */
struct rig *rig_ud(struct kunit *test, const char *dev_a, const char *dev_b)
{
	struct rig *r = rig_new(test, dev_a, dev_b);

	rig_make_ud(test, r, &r->a);
	rig_make_ud(test, r, &r->b);
	return r;
}
EXPORT_SYMBOL_GPL(rig_ud);

/**
 * rig_ah_attr() - fill in the address of an end, with distinct values in all fields
 * @attr: the address vector to fill in
 * @from: the end that sends
 * @to: the end that receives
 */
void rig_ah_attr(struct rdma_ah_attr *attr, const struct rig_end *from, const struct rig_end *to)
{
	memset(attr, 0, sizeof(*attr));
	rig_set_route(attr, from, to);
	rdma_ah_set_sl(attr, RIG_SL);
	if (from->gid_index >= 0)
		rdma_ah_set_grh(attr, (union ib_gid *)&to->gid, RIG_FLOW,
				from->gid_index, RIG_HOPS, RIG_TCLASS);
}
EXPORT_SYMBOL_GPL(rig_ah_attr);

/**
 * rig_ah() - create an address handle for an end
 * @test: the running case, at whose end the AH is destroyed if rig_ah_put() was not called
 * @from: the end that sends
 * @to: the end that receives
 *
 * Return: the handle.
 */
struct ib_ah *rig_ah(struct kunit *test, struct rig_end *from, struct rig_end *to)
{
	struct rdma_ah_attr attr;

	rig_ah_attr(&attr, from, to);
	return KVT_OWN(test, rdma_create_ah(from->pd, &attr, RDMA_CREATE_AH_SLEEPABLE), kvt_end_ah);
}
EXPORT_SYMBOL_GPL(rig_ah);

/**
 * rig_ah_put() - destroy an AH of rig_ah() before the case ends
 * @test: the running case
 * @ah: the address handle
 */
void rig_ah_put(struct kunit *test, struct ib_ah *ah)
{
	kunit_release_action(test, kvt_end_ah, ah);
}
EXPORT_SYMBOL_GPL(rig_ah_put);

/**
 * rig_ud_wr() - fill in a signaled SEND to the queue pair of an end
 * @wr: the WR to fill in; the case may change it afterwards
 * @id: wr_id
 * @sge: what to send
 * @num: entries of @sge
 * @ah: address handle for @to
 * @to: the end that receives
 */
void rig_ud_wr(struct ib_ud_wr *wr, u64 id, struct ib_sge *sge, int num,
	       struct ib_ah *ah, struct rig_end *to)
{
	memset(wr, 0, sizeof(*wr));
	rig_send_wr(&wr->wr, id, sge, num);
	wr->ah = ah;
	wr->remote_qpn = to->qp->qp_num;
	wr->remote_qkey = to->qkey;
}
EXPORT_SYMBOL_GPL(rig_ud_wr);

/**
 * rig_ud_send() - send a part of an end's buffer to another end
 * @from: the end that sends
 * @ah: address handle for @to
 * @to: the end that receives
 * @id: wr_id
 * @offset: offset of the data in the buffer of @from
 * @len: bytes
 *
 * Return: as ib_post_send().
 */
int rig_ud_send(struct rig_end *from, struct ib_ah *ah, struct rig_end *to,
		u64 id, size_t offset, u32 len)
{
	struct ib_sge sge = rig_sge(from, offset, len);
	struct ib_ud_wr wr;

	rig_ud_wr(&wr, id, &sge, 1, ah, to);
	return ib_post_send(from->qp, &wr.wr, NULL);
}
EXPORT_SYMBOL_GPL(rig_ud_send);

static void rig_attachment_end(void *arg)
{
	struct rig_attachment *at = arg;

	if (at->qp)
		ib_detach_mcast(at->qp, &at->gid, at->lid);
}

/**
 * rig_attach() - let a queue pair join a multicast group
 * @test: the running case
 * @qp: the queue pair
 * @gid: MGID of the group
 * @lid: its MLID
 *
 * Return: what rig_detach() ends before the end of the case does.
 */
struct rig_attachment *rig_attach(struct kunit *test, struct ib_qp *qp, const union ib_gid *gid,
				  u16 lid)
{
	struct rig_attachment *at = kvt_zalloc(test, sizeof(*at));

	at->gid = *gid;
	at->lid = lid;
	KUNIT_ASSERT_EQ(test, 0, ib_attach_mcast(qp, &at->gid, lid));
	at->qp = qp;
	kvt_defer(test, rig_attachment_end, at);
	return at;
}
EXPORT_SYMBOL_GPL(rig_attach);

/**
 * rig_detach() - let a queue pair leave a multicast group
 * @at: from rig_attach()
 *
 * Return: the result of ib_detach_mcast().
 */
int rig_detach(struct rig_attachment *at)
{
	int err = ib_detach_mcast(at->qp, &at->gid, at->lid);

	if (!err)
		at->qp = NULL;
	return err;
}
EXPORT_SYMBOL_GPL(rig_detach);
