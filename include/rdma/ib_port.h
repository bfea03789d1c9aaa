/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kind and capabilities of a port, and accessors of address vectors, which
 * depend on the kind of port. Include <rdma/ib_verbs.h>, which includes this.
 *
 * All of these functions may be called in any context, for a valid port of a
 * device whose registration has begun.
 */
#ifndef _RDMA_IB_PORT_H
#define _RDMA_IB_PORT_H

#include <rdma/ib_device.h>

static inline bool rdma_cap_ib_switch(const struct ib_device *device)
{
	return device->is_switch;
}

/* A switch has one port, number 0; other devices count from 1. */
static inline u32 rdma_start_port(const struct ib_device *device)
{
	return rdma_cap_ib_switch(device) ? 0 : 1;
}

static inline u32 rdma_end_port(const struct ib_device *device)
{
	return rdma_cap_ib_switch(device) ? 0 : device->phys_port_cnt;
}

/**
 * rdma_for_each_port() - iterate over the ports of a device
 * @device: the device
 * @iter: u32 that takes the port numbers
 */
#define rdma_for_each_port(device, iter)				\
	for (iter = rdma_start_port(device) +				\
		    BUILD_BUG_ON_ZERO(!__same_type(u32, iter));		\
	     iter <= rdma_end_port(device); iter++)

static inline int rdma_is_port_valid(const struct ib_device *device,
				     unsigned int port)
{
	return port >= rdma_start_port(device) && port <= rdma_end_port(device);
}

/* Kind of port */

static inline u32 rdma_core_cap_flags(const struct ib_device *device,
				      u32 port_num)
{
	return device->port_data[port_num].immutable.core_cap_flags;
}

static inline bool rdma_protocol_ib(const struct ib_device *device,
				    u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_PROT_IB;
}

static inline bool rdma_protocol_roce(const struct ib_device *device,
				      u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) &
	       (RDMA_CORE_CAP_PROT_ROCE | RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP);
}

static inline bool rdma_protocol_roce_udp_encap(const struct ib_device *device,
						u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) &
	       RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP;
}

static inline bool rdma_protocol_roce_eth_encap(const struct ib_device *device,
						u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_PROT_ROCE;
}

static inline bool rdma_protocol_iwarp(const struct ib_device *device,
				       u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_PROT_IWARP;
}

static inline bool rdma_protocol_raw_packet(const struct ib_device *device,
					    u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) &
	       RDMA_CORE_CAP_PROT_RAW_PACKET;
}

static inline bool rdma_protocol_usnic(const struct ib_device *device,
				       u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_PROT_USNIC;
}

static inline bool rdma_ib_or_roce(const struct ib_device *device, u32 port_num)
{
	return rdma_protocol_ib(device, port_num) ||
	       rdma_protocol_roce(device, port_num);
}

static inline bool rdma_core_cap_opa_port(struct ib_device *device,
					  u32 port_num)
{
	return (rdma_core_cap_flags(device, port_num) &
		RDMA_CORE_PORT_INTEL_OPA) == RDMA_CORE_PORT_INTEL_OPA;
}

/* Capabilities */

static inline bool rdma_is_grh_required(const struct ib_device *device,
					u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) &
	       RDMA_CORE_PORT_IB_GRH_REQUIRED;
}

static inline bool rdma_cap_ib_mad(const struct ib_device *device, u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_IB_MAD;
}

static inline bool rdma_cap_opa_mad(struct ib_device *device, u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_OPA_MAD;
}

static inline bool rdma_cap_ib_smi(const struct ib_device *device, u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_IB_SMI;
}

static inline bool rdma_cap_ib_cm(const struct ib_device *device, u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_IB_CM;
}

static inline bool rdma_cap_iw_cm(const struct ib_device *device, u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_IW_CM;
}

static inline bool rdma_cap_ib_sa(const struct ib_device *device, u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_IB_SA;
}

/* Multicast groups are joined through the subnet administrator. */
static inline bool rdma_cap_ib_mcast(const struct ib_device *device,
				     u32 port_num)
{
	return rdma_cap_ib_sa(device, port_num);
}

static inline bool rdma_cap_af_ib(const struct ib_device *device, u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_AF_IB;
}

static inline bool rdma_cap_eth_ah(const struct ib_device *device, u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_ETH_AH;
}

static inline bool rdma_cap_opa_ah(struct ib_device *device, u32 port_num)
{
	return rdma_core_cap_flags(device, port_num) & RDMA_CORE_CAP_OPA_AH;
}

static inline size_t rdma_max_mad_size(const struct ib_device *device,
				       u32 port_num)
{
	return device->port_data[port_num].immutable.max_mad_size;
}

/* True if the core tells the driver of changes to the port's GID table. */
static inline bool rdma_cap_roce_gid_table(const struct ib_device *device,
					   u32 port_num)
{
	return rdma_protocol_roce(device, port_num) && device->ops.add_gid &&
	       device->ops.del_gid;
}

/* Only iWARP has a READ that invalidates the local key that it reads into. */
static inline bool rdma_cap_read_inv(struct ib_device *dev, u32 port_num)
{
	return rdma_protocol_iwarp(dev, port_num);
}

static inline int rdma_mtu_enum_to_int(struct ib_device *device, u32 port,
				       int mtu)
{
	if (rdma_core_cap_opa_port(device, port))
		return opa_mtu_enum_to_int((enum opa_mtu)mtu);
	return ib_mtu_enum_to_int((enum ib_mtu)mtu);
}

static inline int rdma_mtu_from_attr(struct ib_device *device, u32 port,
				     struct ib_port_attr *attr)
{
	if (rdma_core_cap_opa_port(device, port))
		return attr->phys_mtu;
	return ib_mtu_enum_to_int(attr->max_mtu);
}

/* Address vectors */

static inline enum rdma_ah_attr_type rdma_ah_find_type(struct ib_device *dev,
						       u32 port_num)
{
	if (rdma_protocol_roce(dev, port_num))
		return RDMA_AH_ATTR_TYPE_ROCE;
	if (!rdma_protocol_ib(dev, port_num))
		return RDMA_AH_ATTR_TYPE_UNDEFINED;
	return rdma_cap_opa_ah(dev, port_num) ? RDMA_AH_ATTR_TYPE_OPA :
						RDMA_AH_ATTR_TYPE_IB;
}

static inline u8 *rdma_ah_retrieve_dmac(struct rdma_ah_attr *attr)
{
	return attr->type == RDMA_AH_ATTR_TYPE_ROCE ? attr->roce.dmac : NULL;
}

static inline void rdma_ah_set_dlid(struct rdma_ah_attr *attr, u32 dlid)
{
	if (attr->type == RDMA_AH_ATTR_TYPE_IB)
		attr->ib.dlid = dlid;
	else if (attr->type == RDMA_AH_ATTR_TYPE_OPA)
		attr->opa.dlid = dlid;
}

static inline u32 rdma_ah_get_dlid(const struct rdma_ah_attr *attr)
{
	if (attr->type == RDMA_AH_ATTR_TYPE_IB)
		return attr->ib.dlid;
	return attr->type == RDMA_AH_ATTR_TYPE_OPA ? attr->opa.dlid : 0;
}

static inline void rdma_ah_set_path_bits(struct rdma_ah_attr *attr,
					 u8 src_path_bits)
{
	if (attr->type == RDMA_AH_ATTR_TYPE_IB)
		attr->ib.src_path_bits = src_path_bits;
	else if (attr->type == RDMA_AH_ATTR_TYPE_OPA)
		attr->opa.src_path_bits = src_path_bits;
}

static inline u8 rdma_ah_get_path_bits(const struct rdma_ah_attr *attr)
{
	if (attr->type == RDMA_AH_ATTR_TYPE_IB)
		return attr->ib.src_path_bits;
	return attr->type == RDMA_AH_ATTR_TYPE_OPA ? attr->opa.src_path_bits : 0;
}

static inline void rdma_ah_set_make_grd(struct rdma_ah_attr *attr,
					bool make_grd)
{
	if (attr->type == RDMA_AH_ATTR_TYPE_OPA)
		attr->opa.make_grd = make_grd;
}

static inline bool rdma_ah_get_make_grd(const struct rdma_ah_attr *attr)
{
	return attr->type == RDMA_AH_ATTR_TYPE_OPA && attr->opa.make_grd;
}

static inline void rdma_ah_set_sl(struct rdma_ah_attr *attr, u8 sl)
{
	attr->sl = sl;
}

static inline u8 rdma_ah_get_sl(const struct rdma_ah_attr *attr)
{
	return attr->sl;
}

static inline void rdma_ah_set_port_num(struct rdma_ah_attr *attr, u32 port_num)
{
	attr->port_num = port_num;
}

static inline u32 rdma_ah_get_port_num(const struct rdma_ah_attr *attr)
{
	return attr->port_num;
}

static inline void rdma_ah_set_static_rate(struct rdma_ah_attr *attr,
					   u8 static_rate)
{
	attr->static_rate = static_rate;
}

static inline u8 rdma_ah_get_static_rate(const struct rdma_ah_attr *attr)
{
	return attr->static_rate;
}

static inline void rdma_ah_set_ah_flags(struct rdma_ah_attr *attr,
					enum ib_ah_flags flag)
{
	attr->ah_flags = flag;
}

static inline enum ib_ah_flags
rdma_ah_get_ah_flags(const struct rdma_ah_attr *attr)
{
	return attr->ah_flags;
}

static inline const struct ib_global_route *
rdma_ah_read_grh(const struct rdma_ah_attr *attr)
{
	return &attr->grh;
}

static inline struct ib_global_route *
rdma_ah_retrieve_grh(struct rdma_ah_attr *attr)
{
	return &attr->grh;
}

static inline void rdma_ah_set_dgid_raw(struct rdma_ah_attr *attr, void *dgid)
{
	memcpy(attr->grh.dgid.raw, dgid, sizeof(attr->grh.dgid.raw));
}

static inline void rdma_ah_set_subnet_prefix(struct rdma_ah_attr *attr,
					     __be64 prefix)
{
	attr->grh.dgid.global.subnet_prefix = prefix;
}

static inline void rdma_ah_set_interface_id(struct rdma_ah_attr *attr,
					    __be64 if_id)
{
	attr->grh.dgid.global.interface_id = if_id;
}

/**
 * rdma_ah_set_grh() - give an address vector a global route
 * @attr: the address vector
 * @dgid: destination; NULL: leave the present one
 * @flow_label: 20 bits
 * @sgid_index: index of the source GID in the port's table
 * @hop_limit: number of routers that the packet may pass
 * @traffic_class: 8 bits
 *
 * The call that uses @attr looks the source GID up. If @attr holds a reference
 * on a source GID already, that is lost: call rdma_destroy_ah_attr() before.
 *
 * Context: Any.
 */
static inline void rdma_ah_set_grh(struct rdma_ah_attr *attr,
				   union ib_gid *dgid, u32 flow_label,
				   u8 sgid_index, u8 hop_limit,
				   u8 traffic_class)
{
	struct ib_global_route *grh = &attr->grh;

	attr->ah_flags = IB_AH_GRH;
	if (dgid)
		grh->dgid = *dgid;
	grh->sgid_attr = NULL;
	grh->sgid_index = sgid_index;
	grh->flow_label = flow_label;
	grh->hop_limit = hop_limit;
	grh->traffic_class = traffic_class;
}

/* Network devices on top of a port (IPoIB) */

/**
 * struct rdma_netdev - private data of an accelerated network device
 * @clnt_priv: for the client's use
 * @hca: the RDMA device below
 * @port_num: port of @hca
 * @mtu: MTU in bytes
 * @free_rdma_netdev: frees the network device
 * @set_id: sets the P_Key index
 * @send: sends a packet
 * @attach_mcast: joins a multicast group
 * @detach_mcast: leaves a multicast group
 * @tx_timeout: called when a transmit queue is stuck
 */
struct rdma_netdev {
	void			*clnt_priv;
	struct ib_device	*hca;
	u32			port_num;
	int			mtu;

	void (*free_rdma_netdev)(struct net_device *netdev);
	void (*set_id)(struct net_device *netdev, int id);
	int (*send)(struct net_device *dev, struct sk_buff *skb,
		    struct ib_ah *address, u32 dqpn);
	int (*attach_mcast)(struct net_device *dev, struct ib_device *hca,
			    union ib_gid *gid, u16 mlid, int set_qkey,
			    u32 qkey);
	int (*detach_mcast)(struct net_device *dev, struct ib_device *hca,
			    union ib_gid *gid, u16 mlid);
	void (*tx_timeout)(struct net_device *dev, unsigned int txqueue);
};

/**
 * struct rdma_netdev_alloc_params - how to make an accelerated network device
 * @sizeof_priv: bytes of private data
 * @txqs: number of transmit queues
 * @rxqs: number of receive queues
 * @param: passed to @initialize_rdma_netdev
 * @initialize_rdma_netdev: sets the network device up
 */
struct rdma_netdev_alloc_params {
	size_t			sizeof_priv;
	unsigned int		txqs;
	unsigned int		rxqs;
	void			*param;

	int (*initialize_rdma_netdev)(struct ib_device *device, u32 port_num,
				      struct net_device *netdev, void *param);
};

#endif /* _RDMA_IB_PORT_H */
