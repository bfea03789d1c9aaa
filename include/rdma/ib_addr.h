/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Conversions between IP addresses, Ethernet addresses and GIDs. RoCE GIDs
 * are IPv6 addresses, or IPv4 addresses mapped into IPv6 (IBTA annex A17).
 */
#ifndef IB_ADDR_H
#define IB_ADDR_H

#include <linux/if_vlan.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <net/ipv6.h>
#include <rdma/ib_pack.h>
#include <rdma/ib_verbs.h>

/**
 * rdma_vlan_dev_vlan_id() - VLAN number of a network device
 * @dev: network device
 *
 * Context: Any.
 * Return: the VLAN number, or 0xffff if @dev is not a VLAN device.
 */
static inline u16 rdma_vlan_dev_vlan_id(const struct net_device *dev)
{
	return is_vlan_dev(dev) ? vlan_dev_vlan_id(dev) : 0xffff;
}

/**
 * rdma_vlan_dev_real_dev() - the device below a VLAN device
 * @dev: network device
 *
 * Context: Any, while @dev is held.
 * Return: the lower device, or NULL if @dev is not a VLAN device.
 */
static inline struct net_device *
rdma_vlan_dev_real_dev(const struct net_device *dev)
{
	return is_vlan_dev(dev) ? vlan_dev_real_dev(dev) : NULL;
}

/**
 * rdma_ip2gid() - GID of an IP address
 * @addr: IPv4 or IPv6 socket address
 * @gid: result
 *
 * Context: Any.
 * Return: 0, or -EINVAL for another address family.
 */
static inline int rdma_ip2gid(struct sockaddr *addr, union ib_gid *gid)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in4 = (const struct sockaddr_in *)addr;
	struct in6_addr ip;

	switch (addr->sa_family) {
	case AF_INET:
		ipv6_addr_set_v4mapped(in4->sin_addr.s_addr, &ip);
		break;
	case AF_INET6:
		ip = in6->sin6_addr;
		break;
	default:
		return -EINVAL;
	}
	memcpy(gid->raw, &ip, sizeof(gid->raw));
	return 0;
}

/**
 * rdma_gid2ip() - IP address of a RoCE GID
 * @out: result; must have room for a struct sockaddr_in6
 * @gid: the GID
 *
 * Context: Any.
 */
static inline void rdma_gid2ip(struct sockaddr *out, const union ib_gid *gid)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
	struct sockaddr_in *in4 = (struct sockaddr_in *)out;

	if (ipv6_addr_v4mapped((const struct in6_addr *)gid)) {
		memset(in4, 0, sizeof(*in4));
		in4->sin_family = AF_INET;
		memcpy(&in4->sin_addr, &gid->raw[12], sizeof(in4->sin_addr));
		return;
	}
	memset(in6, 0, sizeof(*in6));
	in6->sin6_family = AF_INET6;
	memcpy(&in6->sin6_addr, gid->raw, sizeof(in6->sin6_addr));
}

/**
 * rdma_link_local_addr() - check whether an address is in fe80::/64
 * @addr: IPv6 address
 *
 * Context: Any.
 * Return: non-zero if @addr is in fe80::/64.
 */
static inline int rdma_link_local_addr(struct in6_addr *addr)
{
	return addr->s6_addr32[0] == htonl(0xfe800000) && !addr->s6_addr32[1];
}

/**
 * rdma_is_multicast_addr() - check whether a GID is a multicast address
 * @addr: RoCE GID
 *
 * Context: Any.
 * Return: non-zero for IPv6 multicast and mapped IPv4 multicast.
 */
static inline int rdma_is_multicast_addr(struct in6_addr *addr)
{
	if (ipv6_addr_v4mapped(addr))
		return ipv4_is_multicast(addr->s6_addr32[3]);
	return addr->s6_addr[0] == 0xff;
}

/**
 * rdma_get_ll_mac() - Ethernet address in a link-local GID
 * @addr: GID with a modified EUI-64 interface identifier
 * @mac: result, ETH_ALEN bytes
 *
 * Context: Any.
 */
static inline void rdma_get_ll_mac(struct in6_addr *addr, u8 *mac)
{
	mac[0] = addr->s6_addr[8] ^ 2;
	mac[1] = addr->s6_addr[9];
	mac[2] = addr->s6_addr[10];
	mac[3] = addr->s6_addr[13];
	mac[4] = addr->s6_addr[14];
	mac[5] = addr->s6_addr[15];
}

/**
 * rdma_get_mcast_mac() - Ethernet group address of a multicast GID
 * @addr: multicast GID
 * @mac: result, ETH_ALEN bytes
 *
 * Context: Any.
 */
static inline void rdma_get_mcast_mac(struct in6_addr *addr, u8 *mac)
{
	mac[0] = 0x33;
	mac[1] = 0x33;
	memcpy(&mac[2], &addr->s6_addr[12], 4);
}

/**
 * iboe_get_mtu() - largest path MTU for a network device's MTU
 * @mtu: MTU of the network device in bytes
 *
 * Context: Any.
 * Return: the largest &enum ib_mtu that leaves room for all headers; 0 if none does.
 */
static inline enum ib_mtu iboe_get_mtu(int mtu)
{
	mtu -= IB_GRH_BYTES + IB_UDP_BYTES + IB_BTH_BYTES + IB_EXT_XRC_BYTES +
	       IB_EXT_ATOMICETH_BYTES + IB_ICRC_BYTES;

	return mtu < 256 ? 0 : ib_mtu_int_to_enum(mtu);
}

#endif /* IB_ADDR_H */
