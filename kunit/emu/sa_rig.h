/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests to the subnet administrator of the emulated fabric. Records are made and read byte by
 * byte: offsets are those of IBTA vol. 1, 15.2.5.
 */
#ifndef KVT_EMU_SA_RIG_H
#define KVT_EMU_SA_RIG_H

#include <rdma/ib_sa.h>

#include "lib/lib.h"

#define REC_SIZE	IB_MGMT_SA_DATA

/* Fields of a PathRecord: bytes from its start. */
enum {
	PR_DGID = 8, PR_SGID = 24, PR_DLID = 40, PR_SLID = 42, PR_NUMB_PATH = 49, PR_PKEY = 50,
	PR_MTU = 54, PR_RATE = 55,
};

/* Fields of an MCMemberRecord. */
enum {
	MC_MGID = 0, MC_PORT_GID = 16, MC_QKEY = 32, MC_MLID = 36, MC_MTU = 38, MC_PKEY = 40,
	MC_RATE = 42, MC_SL_FLOW_HOP = 44, MC_SCOPE_STATE = 48,
};

/* Fields of a ServiceRecord. */
enum {
	SR_ID = 0, SR_GID = 8, SR_PKEY = 24, SR_LEASE = 28, SR_KEY = 32, SR_NAME = 48, SR_DATA = 112,
};

/* The status of an answer. */
enum {
	OK = 0, BAD_VERSION = 0x4, UNSUPPORTED = 0xc, NO_RESOURCES = 0x100, REQ_INVALID = 0x200,
	NO_RECORDS = 0x300, TOO_MANY = 0x400, BAD_GID = 0x500, INSUFFICIENT = 0x600,
};

#define REPLIED		(IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY)
#define CONSUMED	(IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_CONSUMED)

#define FULL		1	/* join states */
#define SEND_ONLY	4
#define SEND_ONLY_FULL	8
#define EXACTLY(n)	(IB_SA_EQ << 6 | (n))
#define EDR_4X		16	/* 100 Gb/s, as records have it */
#define PORT_LIMIT	256	/* what one port can register */
#define GROUP_LIMIT	1024	/* groups of an administrator */

/* A port of the fabric that asks. */
struct sa_port {
	char name[16];		/* of its device */
	u32 num;		/* port number */
	u16 lid;		/* its LID */
	union ib_gid gid;	/* its GID */
};

/* A case: the administrator, its port and another one, and the MAD that goes to it. */
struct sa_rig {
	struct ib_device *sm;	/* the device whose port 1 is the subnet manager's */
	struct sa_port a;	/* that port */
	struct sa_port b;	/* a port of another device */
	struct ib_sa_mad in;	/* the MAD, */
	struct ib_sa_mad out;	/* and the answer to it */
	/* The record of the next MAD, then of the answer. */
	u8 rec[REC_SIZE] __aligned(8);
};

static inline u16 get16(const struct sa_rig *r, int field)
{
	return be16_to_cpup((__be16 *)(r->rec + field));
}

static inline void put16(struct sa_rig *r, int field, u16 value)
{
	*(__be16 *)(r->rec + field) = cpu_to_be16(value);
}

static inline u32 get32(const struct sa_rig *r, int field)
{
	return be32_to_cpup((__be32 *)(r->rec + field));
}

static inline void put32(struct sa_rig *r, int field, u32 value)
{
	*(__be32 *)(r->rec + field) = cpu_to_be32(value);
}

static inline void put64(struct sa_rig *r, int field, u64 value)
{
	*(__be64 *)(r->rec + field) = cpu_to_be64(value);
}

void sa_look_up(struct kunit *test, struct sa_port *p, const char *name, u32 num);
struct sa_rig *sa_new(struct kunit *test);
int sa_process(struct sa_rig *r, u16 slid);
void sa_fill(struct sa_rig *r, u16 attr, u8 method, ib_sa_comp_mask mask);
int sa_ask(struct kunit *test, struct sa_rig *r, const struct sa_port *from, u16 attr, u8 method,
	   ib_sa_comp_mask mask);

#define BY_GID		(IB_SA_PATH_REC_SGID | IB_SA_PATH_REC_DGID)
#define BY_LID		(IB_SA_PATH_REC_SLID | IB_SA_PATH_REC_DLID)

void sa_path_of(struct sa_rig *r, const struct sa_port *from, const struct sa_port *to);
int sa_ask_path(struct kunit *test, struct sa_rig *r, ib_sa_comp_mask mask);
void sa_expect_path(struct kunit *test, struct sa_rig *r);

#define JOIN		(IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |	\
			 IB_SA_MCMEMBER_REC_JOIN_STATE)
#define JOIN_IPOIB	(JOIN | IB_SA_MCMEMBER_REC_PKEY)
#define MAKE		(JOIN_IPOIB | IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_SL |	\
			 IB_SA_MCMEMBER_REC_TRAFFIC_CLASS | IB_SA_MCMEMBER_REC_FLOW_LABEL)
#define MTU		(IB_SA_MCMEMBER_REC_MTU_SELECTOR | IB_SA_MCMEMBER_REC_MTU)

void sa_broadcast(struct sa_rig *r, const struct sa_port *p, u8 state);
void sa_group_rec(struct sa_rig *r, const struct sa_port *p, u32 n, u8 state);
int sa_set_member(struct kunit *test, struct sa_rig *r, const struct sa_port *p,
		  ib_sa_comp_mask mask);
int sa_join_group(struct kunit *test, struct sa_rig *r, const struct sa_port *p, u32 n);

#endif
