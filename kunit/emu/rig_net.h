/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rigs on networks of software HCAs, and datagrams between their ends: InfiniBand with
 * and without a GRH, and each kind of RoCE.
 */
#ifndef KVT_EMU_RIG_NET_H
#define KVT_EMU_RIG_NET_H

#include "emu/rig.h"

/* Q_Key and address of a rig's datagrams. */
#define RIG_QKEY	0x11223344
#define RIG_SL		5
#define RIG_FLOW	0x54321
#define RIG_TCLASS	0x2c
#define RIG_HOPS	33
/* Bytes of the GRH in front of each datagram. */
#define RIG_GRH		40

enum rig_net_kind {
	RIG_NET_IB,
	RIG_NET_IB_GRH,
	RIG_NET_ROCE_V1,
	RIG_NET_ROCE_V2_IP6,
	RIG_NET_ROCE_V2_IP4,
};

/* A network with two ends, as the parameter of a case. */
struct rig_net {
	const char *name;	/* name of the parameter */
	enum rig_net_kind kind;	/* kind of the network */
	bool across;		/* the ends are on two devices, rather than on one */
};

extern const struct rig_net rig_nets[10];
extern const struct rig_net rig_few_nets[4];
struct rig *rig_net_new(struct kunit *test, const struct rig_net *net);
void rig_wait_gid(struct kunit *test, struct rig_end *e,
		  bool (*is)(const struct ib_gid_attr *attr, int kind), int kind);
void rig_roce_end(struct kunit *test, struct rig_end *e, const char *name, const char *ip4);
void rig_give_gid(struct kunit *test, struct rig_end *e, enum rig_net_kind kind);
static inline bool rig_net_is_roce(const struct rig_net *net)
{
	return net->kind >= RIG_NET_ROCE_V1;
}

void rig_device(struct kunit *test, const char *name, u32 ports, const char *netdevs);
void rig_device_at(struct kunit *test, const char *name, const char *pci);
int rig_port_write(const char *name, u32 port, const char *file, const char *text);

void rig_make_ud(struct kunit *test, struct rig *r, struct rig_end *e);
struct rig *rig_ud_of_param(struct kunit *test);
struct rig *rig_ud(struct kunit *test, const char *dev_a, const char *dev_b);

void rig_ah_attr(struct rdma_ah_attr *attr, const struct rig_end *from, const struct rig_end *to);
struct ib_ah *rig_ah(struct kunit *test, struct rig_end *from, struct rig_end *to);
void rig_ah_put(struct kunit *test, struct ib_ah *ah);
void rig_ud_wr(struct ib_ud_wr *wr, u64 id, struct ib_sge *sge, int num,
	       struct ib_ah *ah, struct rig_end *to);
int rig_ud_send(struct rig_end *from, struct ib_ah *ah, struct rig_end *to,
		u64 id, size_t offset, u32 len);

/* A queue pair in a multicast group, which it leaves when the case ends. */
struct rig_attachment {
	struct ib_qp *qp;	/* the queue pair; NULL when it has left */
	union ib_gid gid;	/* MGID of the group */
	u16 lid;		/* its MLID */
};

struct rig_attachment *rig_attach(struct kunit *test, struct ib_qp *qp, const union ib_gid *gid,
				  u16 lid);
int rig_detach(struct rig_attachment *at);

#endif
