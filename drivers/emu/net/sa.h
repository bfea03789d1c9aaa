/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The subnet administrator: what a port that is the subnet manager's tells others, by MADs, of
 * paths, multicast groups and services. See sa.c for who owns what.
 *
 *   sa.c	MADs: what is well-formed, who asks, and which function answers
 *   sa_path.c	PathRecord
 *   sa_mcast.c	MCMemberRecord
 *   sa_service.c ServiceRecord
 */
#ifndef KVERBS_EMU_SA_H
#define KVERBS_EMU_SA_H

#include <linux/mutex.h>
#include <linux/xarray.h>
#include <rdma/ib_sa.h>

#include "net.h"

/* Multicast LIDs that an administrator gives away, from the first one on. */
#define EMU_SA_MAX_GROUPS	1024
/* Memberships and services that it keeps for one port: more than a thousand ports want. */
#define EMU_SA_MAX_RECORDS	256

/* The status of an answer: IBTA vol. 1, 13.4.7 and table 188. */
enum emu_sa_status {
	EMU_SA_OK		= 0,
	EMU_SA_BAD_VERSION	= IB_MGMT_MAD_STATUS_BAD_VERSION,
	EMU_SA_UNSUPPORTED	= IB_MGMT_MAD_STATUS_UNSUPPORTED_METHOD_ATTRIB,
	EMU_SA_NO_RESOURCES	= 0x0100,
	EMU_SA_REQ_INVALID	= 0x0200,
	EMU_SA_NO_RECORDS	= 0x0300,
	EMU_SA_TOO_MANY		= 0x0400,
	EMU_SA_INVALID_GID	= 0x0500,
	EMU_SA_INSUFFICIENT	= 0x0600,
};

/* Records, as they are in MADs: IBTA vol. 1, 15.2.5. */
struct emu_sa_path_rec {
	__be64 service_id;
	union ib_gid dgid;
	union ib_gid sgid;
	__be16 dlid;
	__be16 slid;
	__be32 flow_hop;	/* raw traffic: 1 bit, reserved: 3, flow label: 20, hop limit: 8 */
	u8 tclass;
	u8 numb_path;		/* reversible: 1 bit, number of paths: 7 */
	__be16 pkey;
	__be16 qos_sl;		/* QoS class: 12 bits, SL: 4 */
	u8 mtu;			/* selector: 2 bits, value: 6; so in the next two */
	u8 rate;
	u8 life;
	u8 preference;
	u8 reserved[6];
};

struct emu_sa_mcmember_rec {
	union ib_gid mgid;
	union ib_gid port_gid;
	__be32 qkey;
	__be16 mlid;
	u8 mtu;			/* selector: 2 bits, value: 6; so in rate and life */
	u8 tclass;
	__be16 pkey;
	u8 rate;
	u8 life;
	__be32 sl_flow_hop;	/* SL: 4 bits, flow label: 20, hop limit: 8 */
	u8 scope_state;		/* scope: 4 bits, join state: 4 */
	u8 proxy_join;
	u8 reserved[2];
};

struct emu_sa_service_rec {
	__be64 id;
	union ib_gid gid;
	__be16 pkey;
	__be16 reserved;
	__be32 lease;		/* in seconds */
	u8 key[16];
	u8 name[64];
	u8 data8[16];
	__be16 data16[8];
	__be32 data32[4];
	__be64 data64[2];
};

union emu_sa_rec {
	struct ib_class_port_info info;
	struct emu_sa_path_rec path;
	struct emu_sa_mcmember_rec mcmember;
	struct emu_sa_service_rec service;
	u8 raw[IB_MGMT_SA_DATA];
};

/**
 * struct emu_sa - a subnet administrator
 * @groups: &struct emu_sa_group by multicast LID
 * @services: &struct emu_sa_service
 */
struct emu_sa {
	struct xarray groups;
	struct list_head services;
};

/**
 * struct emu_sa_request - a MAD that is being answered
 * @sa: whom it asks
 * @slid: LID of the port that sent it
 * @mask: which fields of @rec are meant, as IB_SA_COMP_MASK() has them
 * @rec: what it holds; replaced by what the answer holds
 */
struct emu_sa_request {
	struct emu_sa *sa;
	u16 slid;
	ib_sa_comp_mask mask;
	union emu_sa_rec rec;
};

extern struct mutex emu_sa_lock;

/* sa.c */
struct emu_port *emu_sa_port_of_gid(const union ib_gid *gid);
struct emu_port *emu_sa_requester(const struct emu_sa_request *rq, const union ib_gid *gid);
struct emu_port *emu_sa_port_of_lid(__be16 lid);
bool emu_sa_hears(const struct emu_port *port, u16 pkey);

/* sa_path.c */

/**
 * struct emu_sa_link - what a port can carry
 * @mtu: &enum ib_mtu
 * @rate: &enum ib_rate
 */
struct emu_sa_link {
	u8 mtu;
	u8 rate;
};

struct emu_sa_link emu_sa_query_link(const struct emu_port *port);
bool emu_sa_selects(u8 wanted, int have, int (*value)(u8 number));
u8 emu_sa_exactly(u8 number);
u8 emu_sa_number(u8 selected);
int emu_sa_mtu_value(u8 mtu);
int emu_sa_rate_value(u8 rate);
enum emu_sa_status emu_sa_get_path(struct emu_sa_request *rq);

/* sa_mcast.c */
enum emu_sa_status emu_sa_join(struct emu_sa_request *rq);
enum emu_sa_status emu_sa_leave(struct emu_sa_request *rq);
enum emu_sa_status emu_sa_get_group(struct emu_sa_request *rq);
void emu_sa_drop_groups(struct emu_sa *sa);
void emu_sa_drop_joins(struct emu_port *port);

/* sa_service.c */
enum emu_sa_status emu_sa_add_service(struct emu_sa_request *rq);
enum emu_sa_status emu_sa_del_service(struct emu_sa_request *rq);
enum emu_sa_status emu_sa_get_service(struct emu_sa_request *rq);
void emu_sa_drop_services(struct emu_sa *sa);
void emu_sa_drop_services_of(struct emu_port *port);

#endif
