// SPDX-License-Identifier: GPL-2.0-only
/*
 * Creates Ethernet devices with IP addresses, for RoCE ports.
 */
#include <linux/etherdevice.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/socket.h>
#include <net/net_namespace.h>
#include <net/netlink.h>

#include "lib/lib.h"

static netdev_tx_t kvt_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops kvt_netdev_ops = {
	.ndo_start_xmit = kvt_xmit,
};

/**
 * kvt_netdev_setup() - setup function for alloc_netdev(): an Ethernet device that drops packets
 * @ndev: the device
 */
void kvt_netdev_setup(struct net_device *ndev)
{
	ether_setup(ndev);
	ndev->netdev_ops = &kvt_netdev_ops;
	ndev->flags |= IFF_NOARP;
	ndev->needs_free_netdev = true;
	eth_hw_addr_random(ndev);
}
EXPORT_SYMBOL_GPL(kvt_netdev_setup);

KUNIT_DEFINE_ACTION_WRAPPER(kvt_netdev_end, unregister_netdev, struct net_device *);

/**
 * kvt_netdev() - make an Ethernet device that is up
 * @test: the running case
 *
 * The device is removed when the case ends.
 *
 * Context: Process.
 * Return: the device.
 */
struct net_device *kvt_netdev(struct kunit *test)
{
	struct net_device *ndev;
	int err;

	ndev = KVT_PTR(test, alloc_netdev(0, "kvt%d", NET_NAME_ENUM, kvt_netdev_setup));
	err = register_netdev(ndev);
	if (err)
		free_netdev(ndev);
	KUNIT_ASSERT_EQ(test, 0, err);
	kvt_defer(test, kvt_netdev_end, ndev);
	rtnl_lock();
	err = dev_open(ndev, NULL);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, 0, err);
	return ndev;
}
EXPORT_SYMBOL_GPL(kvt_netdev);

/**
 * kvt_netdev_unregister() - remove the device before the case ends
 * @test: the running case
 * @ndev: the device, from kvt_netdev()
 */
void kvt_netdev_unregister(struct kunit *test, struct net_device *ndev)
{
	kunit_release_action(test, kvt_netdev_end, ndev);
}
EXPORT_SYMBOL_GPL(kvt_netdev_unregister);

/**
 * kvt_netdev_moves() - send the notifications of a move to another network namespace and back
 * @ndev: the device
 */
void kvt_netdev_moves(struct net_device *ndev)
{
	rtnl_lock();
	call_netdevice_notifiers(NETDEV_UNREGISTER, ndev);
	call_netdevice_notifiers(NETDEV_REGISTER, ndev);
	rtnl_unlock();
}
EXPORT_SYMBOL_GPL(kvt_netdev_moves);

struct kvt_addr_msg {
	struct nlmsghdr nlh;
	struct ifaddrmsg ifa;
	struct nlattr attr;
	__be32 addr;
};

struct kvt_rtnl_ack {
	struct nlmsghdr nlh;
	struct nlmsgerr err;
	char rest[128];
};

/*
 * Sends an rtnetlink message as ip(8) does, because the functions behind rtnetlink are not
 * exported. The message has a destination address: without one, netlink checks the
 * credentials of the socket's file, and a kernel socket has no file. Returns the answer: 0 or
 * a negative errno.
 */
static int kvt_rtnl(void *request, size_t len)
{
	struct kvec vec = { .iov_base = request, .iov_len = len };
	struct sockaddr_nl to = { .nl_family = AF_NETLINK };
	struct msghdr msg = { .msg_name = &to, .msg_namelen = sizeof(to) };
	struct kvt_rtnl_ack ack = {};
	struct socket *sock;
	int err = sock_create_kern(&init_net, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, &sock);

	if (err)
		return err;
	err = kernel_sendmsg(sock, &msg, &vec, 1, len);
	if (err > 0) {
		msg.msg_name = NULL;
		msg.msg_namelen = 0;
		vec.iov_base = &ack;
		vec.iov_len = sizeof(ack);
		err = kernel_recvmsg(sock, &msg, &vec, 1, sizeof(ack), 0);
	}
	sock_release(sock);
	if (err < 0)
		return err;
	return ack.nlh.nlmsg_type == NLMSG_ERROR ? ack.err.error : -EPROTO;
}

/**
 * kvt_netdev_ip4() - add or remove an IPv4 address
 * @ndev: the device
 * @addr: the address
 * @add: true to add the address, false to remove it
 *
 * Return: 0 or a negative errno.
 */
int kvt_netdev_ip4(struct net_device *ndev, __be32 addr, bool add)
{
	struct kvt_addr_msg m = {
		.nlh = {
			.nlmsg_len = sizeof(m),
			.nlmsg_type = add ? RTM_NEWADDR : RTM_DELADDR,
			.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK |
				       (add ? NLM_F_CREATE | NLM_F_EXCL : 0),
		},
		.ifa = {
			.ifa_family = AF_INET,
			.ifa_prefixlen = 24,
			.ifa_index = ndev->ifindex,
		},
		.attr = {
			.nla_len = NLA_HDRLEN + sizeof(addr),
			.nla_type = IFA_LOCAL,
		},
		.addr = addr,
	};

	return kvt_rtnl(&m, sizeof(m));
}
EXPORT_SYMBOL_GPL(kvt_netdev_ip4);

/* Fills in a request for a VLAN, as "ip link add link <lower> name <name> type vlan id <id>". */
static int kvt_put_vlan(struct sk_buff *skb, const char *name, const struct net_device *lower,
			u16 id)
{
	struct nlmsghdr *nlh = nlmsg_put(skb, 0, 0, RTM_NEWLINK, sizeof(struct ifinfomsg),
					 NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL);
	struct nlattr *info, *data;

	memset(nlmsg_data(nlh), 0, sizeof(struct ifinfomsg));
	if (nla_put_string(skb, IFLA_IFNAME, name) || nla_put_u32(skb, IFLA_LINK, lower->ifindex))
		return -EMSGSIZE;
	info = nla_nest_start(skb, IFLA_LINKINFO);
	if (!info || nla_put_string(skb, IFLA_INFO_KIND, "vlan"))
		return -EMSGSIZE;
	data = nla_nest_start(skb, IFLA_INFO_DATA);
	if (!data || nla_put_u16(skb, IFLA_VLAN_ID, id))
		return -EMSGSIZE;
	nla_nest_end(skb, data);
	nla_nest_end(skb, info);
	nlmsg_end(skb, nlh);
	return 0;
}

/**
 * kvt_netdev_on_top() - put a network device on top of another, as a VLAN or a macvlan is
 * @lower: the device below
 * @upper: the device above
 * @on: true to put it there, false to take it away again, which the case must do
 *
 * Return: 0, or an error of netdev_upper_dev_link().
 */
int kvt_netdev_on_top(struct net_device *lower, struct net_device *upper, bool on)
{
	int err = 0;

	rtnl_lock();
	if (on)
		err = netdev_upper_dev_link(lower, upper, NULL);
	else
		netdev_upper_dev_unlink(lower, upper);
	rtnl_unlock();
	return err;
}
EXPORT_SYMBOL_GPL(kvt_netdev_on_top);

/**
 * kvt_netdev_vlan() - make a VLAN on top of an Ethernet device, which is up
 * @test: the running case
 * @lower: the device, from kvt_netdev(); its removal removes the VLAN
 * @id: number of the VLAN
 *
 * Context: Process.
 * Return: the VLAN's device. The case is skipped if the kernel has no VLANs.
 */
struct net_device *kvt_netdev_vlan(struct kunit *test, struct net_device *lower, u16 id)
{
	struct sk_buff *skb = KVT_PTR(test, nlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL));
	struct net_device *ndev;
	char name[2 * IFNAMSIZ];
	int err;

	snprintf(name, sizeof(name), "%s.%u", netdev_name(lower), id);
	err = kvt_put_vlan(skb, name, lower, id) ?: kvt_rtnl(skb->data, skb->len);
	kfree_skb(skb);
	if (err == -EOPNOTSUPP)
		kunit_skip(test, "the kernel has no VLANs, or they are in a module");
	KUNIT_ASSERT_EQ(test, 0, err);
	ndev = KVT_PTR(test, dev_get_by_name(&init_net, name));
	rtnl_lock();
	err = dev_open(ndev, NULL);
	rtnl_unlock();
	dev_put(ndev);
	KUNIT_ASSERT_EQ(test, 0, err);
	return ndev;
}
EXPORT_SYMBOL_GPL(kvt_netdev_vlan);
