/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ports, their addresses, and the fabric that joins them.
 */
#ifndef KVERBS_EMU_NET_H
#define KVERBS_EMU_NET_H

#include "../lib/emu.h"

/**
 * struct emu_port_config - settings of a port
 * @state: state of the link, %IB_PORT_DOWN to %IB_PORT_ACTIVE; an Ethernet port
 *	can only be in the first or the last of these
 * @lid: 1 to EMU_MAX_LID; 0 for the smallest free one
 * @sm_lid: LID of the subnet manager; 0 without one
 * @sm: the port is the subnet manager's, and has a subnet administrator
 * @mtu: active MTU; 0 for what the network device allows or, without one, 4096
 * @width: active width, enum ib_port_width; 0 for that of the network device
 * @speed: active speed, enum ib_port_speed; 0 likewise
 * @netdev: name of the network device of an Ethernet port; empty for none
 * @pkeys: P_Key table
 * @gids: GID table; a zero at index 0 stands for the default GID
 *
 * Only InfiniBand ports use the LIDs, P_Keys and GIDs.
 */
struct emu_port_config {
	enum ib_port_state state;
	u16 lid;
	u16 sm_lid;
	bool sm;
	enum ib_mtu mtu;
	u8 width;
	u16 speed;
	char netdev[IFNAMSIZ];
	u16 pkeys[EMU_PKEY_TBL_LEN];
	union ib_gid gids[EMU_GID_TBL_LEN];
};

/* ports.c */
void emu_port_config_init(struct emu_port_config *config);
int emu_port_init(struct emu_port *port, const struct emu_port_config *config);
void emu_port_exit(struct emu_port *port);
int emu_query_port(struct ib_device *ibdev, u32 port_num, struct ib_port_attr *attr);
int emu_modify_port(struct ib_device *ibdev, u32 port_num, int mask,
		    struct ib_port_modify *change);
int emu_query_gid(struct ib_device *ibdev, u32 port_num, int index, union ib_gid *gid);
int emu_query_pkey(struct ib_device *ibdev, u32 port_num, u16 index, u16 *pkey);
int emu_port_set_state(struct emu_port *port, enum ib_port_state state);
int emu_port_set_lid(struct emu_port *port, u16 lid);
int emu_port_set_sm_lid(struct emu_port *port, u16 lid);
int emu_port_set_sm(struct emu_port *port, bool on);
void emu_port_announce_sm(struct emu_port *port);
int emu_port_set_gid(struct emu_port *port, unsigned int index, const union ib_gid *gid);
int emu_port_set_pkey(struct emu_port *port, unsigned int index, u16 pkey);
int emu_port_set_mtu(struct emu_port *port, enum ib_mtu mtu);
int emu_port_set_width(struct emu_port *port, enum ib_port_width width);
int emu_port_set_speed(struct emu_port *port, enum ib_port_speed speed);
int emu_port_bind_netdev(struct emu_port *port, struct net_device *netdev);
int emu_port_set_netdev(struct emu_port *port, struct net *net, const char *name);
bool emu_port_netdev_name(struct emu_port *port, char *name);
void emu_port_flap(struct emu_port *port, u32 ms);
void emu_port_dispatch(struct emu_port *port, enum ib_event_type event);
void emu_netdev_event(struct net_device *netdev, unsigned long event);

/* sa.c */
void emu_sa_init(struct emu_port *port);
void emu_sa_exit(struct emu_port *port);
void emu_sa_port_down(struct emu_port *port);
int emu_sa_set(struct emu_port *port, bool on);
int emu_process_mad(struct ib_device *ibdev, int flags, u32 port_num, const struct ib_wc *wc,
		    const struct ib_grh *grh, const struct ib_mad *in, struct ib_mad *out,
		    size_t *out_size, u16 *pkey_index);

/* fabric.c */
int emu_fabric_add_lid(struct emu_port *port, u16 lid);
void emu_fabric_del_lid(struct emu_port *port);
struct emu_gid *emu_fabric_add_gid(struct emu_port *port, const union ib_gid *gid,
				   enum ib_gid_type type, const struct net *net,
				   const struct net_device *ndev);
void emu_fabric_del_gid(struct emu_gid *entry);
void emu_fabric_changed(void);
struct emu_port *emu_fabric_find(const struct emu_av *av);
struct emu_port *emu_fabric_find_lid(u16 lid);
struct emu_port *emu_fabric_find_ib_gid(const union ib_gid *gid);
void emu_fabric_each_ib_port(void (*function)(struct emu_port *port, void *data), void *data);

extern atomic_long_t emu_fabric_gen;

/**
 * emu_fabric_generation() - get the number that each call of emu_fabric_changed() changes
 *
 * Context: Any.
 * Return: the number, never 0. What is looked up after reading the number is
 * valid for as long as the number stays the same.
 */
static __always_inline unsigned long emu_fabric_generation(void)
{
	/* acquire: pairs with emu_fabric_changed() */
	return atomic_long_read_acquire(&emu_fabric_gen);
}

/* ah.c */
int emu_av_init(struct emu_av *av, struct emu_device *edev, const struct rdma_ah_attr *attr);
int emu_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init, struct ib_udata *udata);
int emu_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int emu_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int emu_destroy_ah(struct ib_ah *ibah, u32 flags);

#endif
