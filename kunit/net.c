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

#include "lib.h"

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

static void kvt_netdev_end(void *arg)
{
	unregister_netdev(arg);
}

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

	ndev = alloc_netdev(0, "kvt%d", NET_NAME_ENUM, kvt_netdev_setup);
	KUNIT_ASSERT_NOT_NULL(test, ndev);
	err = register_netdev(ndev);
	if (err)
		free_netdev(ndev);
	KUNIT_ASSERT_EQ(test, 0, err);
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, kvt_netdev_end,
							    ndev));
	rtnl_lock();
	err = dev_open(ndev, NULL);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, 0, err);
	return ndev;
}
EXPORT_SYMBOL_GPL(kvt_netdev);

/**
 * kvt_netdev_gone() - remove the device before the case ends
 * @test: the running case
 * @ndev: the device, from kvt_netdev()
 */
void kvt_netdev_gone(struct kunit *test, struct net_device *ndev)
{
	kunit_release_action(test, kvt_netdev_end, ndev);
}
EXPORT_SYMBOL_GPL(kvt_netdev_gone);

struct kvt_addr_msg {
	struct nlmsghdr nlh;
	struct ifaddrmsg ifa;
	struct nlattr attr;
	__be32 addr;
};

struct kvt_addr_ack {
	struct nlmsghdr nlh;
	struct nlmsgerr err;
	char rest[64];
};

/**
 * kvt_netdev_ip4() - add or remove an IPv4 address
 * @ndev: the device
 * @addr: the address
 * @add: true to add the address, false to remove it
 *
 * Sends an rtnetlink message as ip(8) does, because the functions behind rtnetlink are not
 * exported. The message has a destination address: without one, netlink checks the
 * credentials of the socket's file, and a kernel socket has no file.
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
	struct kvec vec = { .iov_base = &m, .iov_len = sizeof(m) };
	struct sockaddr_nl to = { .nl_family = AF_NETLINK };
	struct msghdr msg = { .msg_name = &to, .msg_namelen = sizeof(to) };
	struct kvt_addr_ack ack = {};
	struct socket *sock;
	int err;

	err = sock_create_kern(&init_net, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE,
			       &sock);
	if (err)
		return err;
	err = kernel_sendmsg(sock, &msg, &vec, 1, sizeof(m));
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
EXPORT_SYMBOL_GPL(kvt_netdev_ip4);
