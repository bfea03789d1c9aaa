// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subnet administrator: multicast groups, IBTA vol. 1, 15.2.5.17. A group is created by the
 * first port to join it, which states all of its properties, except for the broadcast groups of
 * IP over InfiniBand, whose properties the administrator knows (RFC 4391, 5).
 *
 * Queue pairs receive once they are attached to the LID that is assigned here, and to the GID:
 * engine/mcast.c.
 */
#include <linux/slab.h>

#include "sa.h"

#define EMU_SA_FIRST_MLID	0xc000

/* Join states; only EMU_SA_MAKERS create a group that does not exist. */
#define EMU_SA_JOIN_STATES	(BIT(NUM_JOIN_MEMBERSHIP_TYPES) - 1)
#define EMU_SA_MAKERS		(BIT(FULLMEMBER_JOIN) | BIT(SENDONLY_FULLMEMBER_JOIN))

/* The fields that a join must have, and those that it needs to create a group. */
#define EMU_SA_JOIN_FIELDS						\
	(IB_SA_MCMEMBER_REC_MGID | IB_SA_MCMEMBER_REC_PORT_GID |	\
	 IB_SA_MCMEMBER_REC_JOIN_STATE)
#define EMU_SA_MAKE_FIELDS						\
	(IB_SA_MCMEMBER_REC_QKEY | IB_SA_MCMEMBER_REC_PKEY |		\
	 IB_SA_MCMEMBER_REC_TRAFFIC_CLASS | IB_SA_MCMEMBER_REC_SL |	\
	 IB_SA_MCMEMBER_REC_FLOW_LABEL)

/* The signature of IPv4 in an MGID, and the Q_Key that such groups have by tradition. */
#define EMU_SA_IPV4		0x401b
#define EMU_SA_IPOIB_QKEY	0x0b1b

/* sl_flow_hop of a record: SL, flow label, hop limit. */
#define EMU_SA_SL_FIELD		0xf0000000
#define EMU_SA_FLOW_FIELD	0x0fffff00
#define EMU_SA_HOP_FIELD	0x000000ff

/**
 * struct emu_sa_group - a multicast group
 * @sa: its administrator
 * @mlid: its LID
 * @rec: its properties: all fields but those of a member, and without selectors
 * @members: &struct emu_sa_member
 */
struct emu_sa_group {
	struct emu_sa *sa;
	u16 mlid;
	struct emu_sa_mcmember_rec rec;
	struct list_head members;
};

/**
 * struct emu_sa_member - a port that has joined a group
 * @in_group: in group->members
 * @in_port: in port->sa_joins
 * @group: the group
 * @port: the port
 * @gid: its GID, by which it has joined
 * @state: join state, a bit for each of &enum ib_sa_mc_join_states
 */
struct emu_sa_member {
	struct list_head in_group;
	struct list_head in_port;
	struct emu_sa_group *group;
	struct emu_port *port;
	union ib_gid gid;
	u8 state;
};

static u8 emu_sa_join_state(const struct emu_sa_mcmember_rec *rec)
{
	return rec->scope_state & EMU_SA_JOIN_STATES;
}

static struct emu_sa_group *emu_sa_find_group(struct emu_sa *sa, const union ib_gid *mgid)
{
	struct emu_sa_group *group;
	unsigned long mlid;

	lockdep_assert_held(&emu_sa_lock);
	xa_for_each(&sa->groups, mlid, group) {
		if (!memcmp(&group->rec.mgid, mgid, sizeof(*mgid)))
			return group;
	}
	return NULL;
}

static struct emu_sa_member *emu_sa_find_member(struct emu_sa_group *group, const union ib_gid *gid)
{
	struct emu_sa_member *member;

	list_for_each_entry(member, &group->members, in_group) {
		if (!memcmp(&member->gid, gid, sizeof(*gid)))
			return member;
	}
	return NULL;
}

/* Frees a group that has no members. */
static void emu_sa_free_if_empty(struct emu_sa_group *group)
{
	if (!list_empty(&group->members))
		return;
	xa_erase(&group->sa->groups, group->mlid);
	kfree(group);
}

static void emu_sa_free_member(struct emu_sa_member *member)
{
	lockdep_assert_held(&emu_sa_lock);
	list_del(&member->in_group);
	list_del(&member->in_port);
	member->port->sa_records--;
	kfree(member);
}

static void emu_sa_del_member(struct emu_sa_member *member)
{
	struct emu_sa_group *group = member->group;

	emu_sa_free_member(member);
	emu_sa_free_if_empty(group);
}

/* Ends all memberships of a port. */
void emu_sa_drop_joins(struct emu_port *port)
{
	struct emu_sa_member *member, *next;

	list_for_each_entry_safe(member, next, &port->sa_joins, in_port)
		emu_sa_del_member(member);
}

/* Frees all groups of an administrator. */
void emu_sa_drop_groups(struct emu_sa *sa)
{
	struct emu_sa_member *member, *next;
	struct emu_sa_group *group;
	unsigned long mlid;

	xa_for_each(&sa->groups, mlid, group) {
		list_for_each_entry_safe(member, next, &group->members, in_group)
			emu_sa_free_member(member);
		emu_sa_free_if_empty(group);
	}
}

/* Whether it is an IPv4 broadcast group: ff1x:401b:<P_Key>::ffff:ffff */
static bool emu_sa_is_broadcast(const struct emu_sa_mcmember_rec *rec)
{
	const u8 *raw = rec->mgid.raw;

	return (raw[1] & 0xf0) == 0x10 && raw[2] == EMU_SA_IPV4 >> 8 &&
	       raw[3] == (EMU_SA_IPV4 & 0xff) && !memcmp(raw + 4, &rec->pkey, sizeof(rec->pkey)) &&
	       !memchr_inv(raw + 6, 0, 6) && !memchr_inv(raw + 12, 0xff, 4);
}

/*
 * Chooses the MTU or rate of a new group: what is asked for, if the port can do that; else @can,
 * the best that the port can do.
 */
static u8 emu_sa_choose_number(bool asked, u8 wanted, u8 can, int (*value)(u8 number))
{
	u8 number = emu_sa_number(wanted);

	if (asked && wanted == emu_sa_exactly(number) && value(number) > 0 &&
	    value(number) <= value(can))
		return number;
	return can;
}

/* Derives the properties of a new group from the request of the port that creates it. */
static enum emu_sa_status emu_sa_init_group_rec(const struct emu_sa_request *rq,
						const struct emu_port *port,
						struct emu_sa_mcmember_rec *rec)
{
	struct emu_sa_link link = emu_sa_query_link(port);
	ib_sa_comp_mask mask = rq->mask;

	*rec = rq->rec.mcmember;
	if (!(emu_sa_join_state(rec) & EMU_SA_MAKERS))
		return EMU_SA_REQ_INVALID;
	if ((mask & IB_SA_MCMEMBER_REC_PKEY) && emu_sa_is_broadcast(rec)) {
		if (!(mask & IB_SA_MCMEMBER_REC_QKEY))
			rec->qkey = cpu_to_be32(EMU_SA_IPOIB_QKEY);
		if (!(mask & IB_SA_MCMEMBER_REC_TRAFFIC_CLASS))
			rec->tclass = 0;
		rec->sl_flow_hop = 0;
	} else if ((mask & EMU_SA_MAKE_FIELDS) != EMU_SA_MAKE_FIELDS) {
		return EMU_SA_INSUFFICIENT;
	}
	if (!(mask & IB_SA_MCMEMBER_REC_HOP_LIMIT))
		rec->sl_flow_hop &= ~cpu_to_be32(EMU_SA_HOP_FIELD);
	rec->mtu = emu_sa_choose_number(mask & IB_SA_MCMEMBER_REC_MTU, rec->mtu, link.mtu,
					emu_sa_mtu_value);
	rec->rate = emu_sa_choose_number(mask & IB_SA_MCMEMBER_REC_RATE, rec->rate, link.rate,
					 emu_sa_rate_value);
	rec->life = EMU_DELAY;
	rec->scope_state = (rec->mgid.raw[1] & 0xf) << NUM_JOIN_MEMBERSHIP_TYPES;
	memset(&rec->port_gid, 0, sizeof(rec->port_gid));
	memset(rec->reserved, 0, sizeof(rec->reserved));
	rec->proxy_join = 0;
	return EMU_SA_OK;
}

/* Creates a group without members, *@made. */
static enum emu_sa_status emu_sa_make_group(const struct emu_sa_request *rq,
					    const struct emu_port *port,
					    struct emu_sa_group **made)
{
	struct emu_sa_group *group = kzalloc(sizeof(*group), GFP_KERNEL);
	enum emu_sa_status status;
	u32 mlid;

	if (!group)
		return EMU_SA_NO_RESOURCES;
	group->sa = rq->sa;
	INIT_LIST_HEAD(&group->members);
	status = emu_sa_init_group_rec(rq, port, &group->rec);
	if (status == EMU_SA_OK &&
	    xa_alloc(&rq->sa->groups, &mlid, group,
		     XA_LIMIT(EMU_SA_FIRST_MLID, EMU_SA_FIRST_MLID + EMU_SA_MAX_GROUPS - 1),
		     GFP_KERNEL))
		status = EMU_SA_NO_RESOURCES;
	if (status != EMU_SA_OK) {
		kfree(group);
		return status;
	}
	group->mlid = mlid;
	group->rec.mlid = cpu_to_be16(mlid);
	*made = group;
	return EMU_SA_OK;
}

/*
 * Whether the MTU or rate of a group satisfies a request, which asks for one only if the mask has
 * both of @fields: the selector, and the value.
 */
static bool emu_sa_group_selects(ib_sa_comp_mask mask, ib_sa_comp_mask fields, u8 wanted, u8 have,
				 int (*value)(u8 number))
{
	return (mask & fields) != fields || emu_sa_selects(wanted, value(have), value);
}

/* Whether a group has the properties that a request asks for. */
static bool emu_sa_group_suits(const struct emu_sa_request *rq, const struct emu_sa_group *group)
{
	const struct emu_sa_mcmember_rec *want = &rq->rec.mcmember, *have = &group->rec;
	u32 differ = be32_to_cpu(want->sl_flow_hop ^ have->sl_flow_hop);
	ib_sa_comp_mask mask = rq->mask;

	return !((mask & IB_SA_MCMEMBER_REC_QKEY) && want->qkey != have->qkey) &&
	       !((mask & IB_SA_MCMEMBER_REC_MLID) && want->mlid != have->mlid) &&
	       !((mask & IB_SA_MCMEMBER_REC_TRAFFIC_CLASS) && want->tclass != have->tclass) &&
	       !((mask & IB_SA_MCMEMBER_REC_PKEY) && want->pkey != have->pkey) &&
	       !((mask & IB_SA_MCMEMBER_REC_SL) && (differ & EMU_SA_SL_FIELD)) &&
	       !((mask & IB_SA_MCMEMBER_REC_FLOW_LABEL) && (differ & EMU_SA_FLOW_FIELD)) &&
	       !((mask & IB_SA_MCMEMBER_REC_HOP_LIMIT) && (differ & EMU_SA_HOP_FIELD)) &&
	       emu_sa_group_selects(mask, IB_SA_MCMEMBER_REC_MTU_SELECTOR | IB_SA_MCMEMBER_REC_MTU,
				    want->mtu, have->mtu, emu_sa_mtu_value) &&
	       emu_sa_group_selects(mask,
				    IB_SA_MCMEMBER_REC_RATE_SELECTOR | IB_SA_MCMEMBER_REC_RATE,
				    want->rate, have->rate, emu_sa_rate_value);
}

/* Whether the partition and the MTU of a port allow that it joins a group. */
static bool emu_sa_port_suits(const struct emu_port *port, const struct emu_sa_group *group)
{
	return emu_sa_hears(port, be16_to_cpu(group->rec.pkey) | EMU_PKEY_FULL) &&
	       emu_sa_query_link(port).mtu >= group->rec.mtu;
}

static enum emu_sa_status emu_sa_add_member(struct emu_sa_group *group, struct emu_port *port,
					    struct emu_sa_mcmember_rec *rec)
{
	struct emu_sa_member *member = emu_sa_find_member(group, &rec->port_gid);

	/* The GID was another port's before, which cannot leave the group by it any more. */
	if (member && member->port != port) {
		emu_sa_free_member(member);
		member = NULL;
	}
	if (!member) {
		member = port->sa_records < EMU_SA_MAX_RECORDS ?
			 kzalloc(sizeof(*member), GFP_KERNEL) : NULL;
		if (!member)
			return EMU_SA_NO_RESOURCES;
		member->group = group;
		member->port = port;
		member->gid = rec->port_gid;
		list_add_tail(&member->in_group, &group->members);
		list_add_tail(&member->in_port, &port->sa_joins);
		port->sa_records++;
	}
	member->state |= emu_sa_join_state(rec);
	return EMU_SA_OK;
}

/*
 * Fills in an answer: the properties of a group, and as its member the port with @gid and the
 * join state @state.
 */
static void emu_sa_fill_group(struct emu_sa_mcmember_rec *rec, const struct emu_sa_group *group,
			      const union ib_gid *gid, u8 state)
{
	union ib_gid port_gid = *gid;

	*rec = group->rec;
	rec->port_gid = port_gid;
	rec->mtu = emu_sa_exactly(rec->mtu);
	rec->rate = emu_sa_exactly(rec->rate);
	rec->life = emu_sa_exactly(rec->life);
	rec->scope_state |= state;
}

/* Checks a request to join or leave, whatever the group; *@port is the port that it is for. */
static enum emu_sa_status emu_sa_check_join(const struct emu_sa_request *rq,
					    struct emu_port **port)
{
	const struct emu_sa_mcmember_rec *rec = &rq->rec.mcmember;

	if ((rq->mask & EMU_SA_JOIN_FIELDS) != EMU_SA_JOIN_FIELDS)
		return EMU_SA_INSUFFICIENT;
	*port = emu_sa_requester(rq, &rec->port_gid);
	if (rec->mgid.raw[0] != 0xff || !*port)
		return EMU_SA_INVALID_GID;
	return emu_sa_join_state(rec) ? EMU_SA_OK : EMU_SA_REQ_INVALID;
}

enum emu_sa_status emu_sa_join(struct emu_sa_request *rq)
{
	struct emu_sa_mcmember_rec *rec = &rq->rec.mcmember;
	struct emu_sa_group *group;
	enum emu_sa_status status;
	struct emu_port *port;

	status = emu_sa_check_join(rq, &port);
	if (status != EMU_SA_OK)
		return status;
	group = emu_sa_find_group(rq->sa, &rec->mgid);
	if (!group)
		status = emu_sa_make_group(rq, port, &group);
	if (status != EMU_SA_OK)
		return status;
	if (emu_sa_group_suits(rq, group) && emu_sa_port_suits(port, group))
		status = emu_sa_add_member(group, port, rec);
	else
		status = EMU_SA_REQ_INVALID;
	if (status == EMU_SA_OK)
		emu_sa_fill_group(rec, group, &rec->port_gid,
				  emu_sa_find_member(group, &rec->port_gid)->state);
	else
		emu_sa_free_if_empty(group);
	return status;
}

enum emu_sa_status emu_sa_leave(struct emu_sa_request *rq)
{
	struct emu_sa_mcmember_rec *rec = &rq->rec.mcmember;
	struct emu_sa_member *member;
	struct emu_sa_group *group;
	enum emu_sa_status status;
	struct emu_port *port;
	u8 state;

	status = emu_sa_check_join(rq, &port);
	if (status != EMU_SA_OK)
		return status;
	group = emu_sa_find_group(rq->sa, &rec->mgid);
	member = group ? emu_sa_find_member(group, &rec->port_gid) : NULL;
	if (!member || member->port != port || !(member->state & emu_sa_join_state(rec)))
		return EMU_SA_REQ_INVALID;
	state = member->state & ~emu_sa_join_state(rec);
	emu_sa_fill_group(rec, group, &member->gid, state);
	member->state = state;
	if (!state)
		emu_sa_del_member(member);
	return EMU_SA_OK;
}

/*
 * Answers with the properties of a group, which is found by its GID, its LID or both. Its members
 * are not disclosed.
 */
enum emu_sa_status emu_sa_get_group(struct emu_sa_request *rq)
{
	struct emu_sa_mcmember_rec *rec = &rq->rec.mcmember;
	static const union ib_gid nobody;
	struct emu_sa_group *group;

	if (rq->mask & IB_SA_MCMEMBER_REC_MGID)
		group = emu_sa_find_group(rq->sa, &rec->mgid);
	else if (rq->mask & IB_SA_MCMEMBER_REC_MLID)
		group = xa_load(&rq->sa->groups, be16_to_cpu(rec->mlid));
	else
		return EMU_SA_INSUFFICIENT;
	if (!group || !emu_sa_group_suits(rq, group))
		return EMU_SA_NO_RECORDS;
	emu_sa_fill_group(rec, group, &nobody, 0);
	return EMU_SA_OK;
}
