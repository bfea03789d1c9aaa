// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subnet administrator of the emulated fabric: paths and multicast groups, as the MAD layer
 * asks for them, and what ends them.
 */
#include "emu/rig_net.h"
#include "emu/sa_rig.h"
#include "lib/objects.h"

/* With a value of one more field, of a byte or, if @field is PR_PKEY, of two. */
static int ask_path_with(struct kunit *test, struct sa_rig *r, ib_sa_comp_mask mask, int field,
			 u16 value)
{
	sa_path_of(r, &r->b, &r->a);
	if (field == PR_PKEY)
		put16(r, field, value);
	else
		r->rec[field] = value;
	return sa_ask_path(test, r, BY_GID | mask);
}

static void sa_knows_the_path_between_two_ports(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	sa_path_of(r, &r->b, &r->a);
	memset(r->rec + PR_SLID - 2, 0, 4);
	KUNIT_ASSERT_EQ(test, OK, sa_ask_path(test, r, BY_GID));
	sa_expect_path(test, r);
	sa_path_of(r, &r->b, &r->a);
	memset(r->rec + PR_DGID, 0, 2 * sizeof(union ib_gid));
	KUNIT_ASSERT_EQ(test, OK, sa_ask_path(test, r, BY_LID));
	sa_expect_path(test, r);
	/* The GID of one port, the LID of the other. */
	sa_path_of(r, &r->b, &r->a);
	put16(r, PR_DLID, r->b.lid);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, sa_ask_path(test, r, BY_GID | BY_LID));
	sa_path_of(r, &r->b, &r->a);
	KUNIT_EXPECT_EQ(test, INSUFFICIENT, sa_ask_path(test, r, IB_SA_PATH_REC_SGID));
	KUNIT_EXPECT_EQ(test, INSUFFICIENT, sa_ask_path(test, r, IB_SA_PATH_REC_DLID));
}

static void sa_knows_no_path_of_an_absent_port(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	struct sa_port none = r->a;

	none.gid.raw[15] ^= 0x55;
	none.lid = 0xbfff;
	sa_path_of(r, &r->b, &none);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, sa_ask_path(test, r, BY_GID));
	sa_path_of(r, &none, &r->a);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, sa_ask_path(test, r, BY_GID));
	sa_path_of(r, &r->b, &none);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, sa_ask_path(test, r, BY_LID));
	sa_path_of(r, &none, &r->a);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, sa_ask_path(test, r, BY_LID));
}

static void sa_knows_no_path_of_a_port_that_is_down(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "state", "down"));
	sa_path_of(r, &r->a, &r->b);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, sa_ask_path(test, r, BY_GID));
	sa_path_of(r, &r->b, &r->a);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, sa_ask_path(test, r, BY_LID));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "state", "active"));
	sa_path_of(r, &r->a, &r->b);
	KUNIT_EXPECT_EQ(test, OK, sa_ask_path(test, r, BY_GID));
}

/* A path can do what both of its ports can. */
static void sa_path_is_as_good_as_its_worse_end(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "mtu", "1024"));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "width", "1x"));
	sa_path_of(r, &r->b, &r->a);
	KUNIT_ASSERT_EQ(test, OK, sa_ask_path(test, r, BY_GID));
	KUNIT_EXPECT_EQ(test, EXACTLY(IB_MTU_1024), r->rec[PR_MTU]);
	KUNIT_EXPECT_EQ(test, EXACTLY(IB_RATE_25_GBPS), r->rec[PR_RATE]);
}

/* A field of a path record, with its selector, and the answer. */
struct wanted {
	const char *name;
	int field;
	u8 value;
	int status;
};

static const struct wanted wanted[] = {
	{ "MTU above 2048", PR_MTU, IB_SA_GT << 6 | IB_MTU_2048, OK },
	{ "MTU above 4096", PR_MTU, IB_SA_GT << 6 | IB_MTU_4096, NO_RECORDS },
	{ "MTU below 4096", PR_MTU, IB_SA_LT << 6 | IB_MTU_4096, NO_RECORDS },
	{ "MTU of 4096", PR_MTU, EXACTLY(IB_MTU_4096), OK },
	{ "MTU of 256", PR_MTU, EXACTLY(IB_MTU_256), NO_RECORDS },
	{ "the largest MTU", PR_MTU, IB_SA_BEST << 6, OK },
	{ "MTU that is none", PR_MTU, IB_SA_LT << 6 | 0x3f, NO_RECORDS },
	{ "rate above 56", PR_RATE, IB_SA_GT << 6 | IB_RATE_56_GBPS, OK },
	{ "rate above 800", PR_RATE, IB_SA_GT << 6 | IB_RATE_800_GBPS, NO_RECORDS },
	{ "rate below 200", PR_RATE, IB_SA_LT << 6 | IB_RATE_200_GBPS, OK },
	{ "rate of 100", PR_RATE, EXACTLY(IB_RATE_100_GBPS), OK },
	{ "rate that is none", PR_RATE, IB_SA_GT << 6 | 0x3f, NO_RECORDS },
};

KUNIT_ARRAY_PARAM_DESC(wanted, wanted, name);

static void sa_path_is_what_is_asked_for(struct kunit *test)
{
	const struct wanted *want = test->param_value;
	struct sa_rig *r = sa_new(test);

	KUNIT_EXPECT_EQ(test, want->status,
			ask_path_with(test, r, want->field == PR_MTU ?
				      IB_SA_PATH_REC_MTU_SELECTOR | IB_SA_PATH_REC_MTU :
				      IB_SA_PATH_REC_RATE_SELECTOR | IB_SA_PATH_REC_RATE,
				      want->field, want->value));
}

static void sa_path_is_within_a_partition(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "pkeys", "1 0x8005"));
	KUNIT_EXPECT_EQ(test, NO_RECORDS,
			ask_path_with(test, r, IB_SA_PATH_REC_PKEY, PR_PKEY, 0x8005));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "pkeys", "2 0x0005"));
	KUNIT_EXPECT_EQ(test, OK, ask_path_with(test, r, IB_SA_PATH_REC_PKEY, PR_PKEY, 0x8005));
	KUNIT_EXPECT_EQ(test, 0x0005, get16(r, PR_PKEY));
	/* Two limited members do not hear each other. */
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "pkeys", "1 0x0005"));
	KUNIT_EXPECT_EQ(test, NO_RECORDS,
			ask_path_with(test, r, IB_SA_PATH_REC_PKEY, PR_PKEY, 0x8005));
	KUNIT_EXPECT_EQ(test, NO_RECORDS, ask_path_with(test, r, IB_SA_PATH_REC_PKEY, PR_PKEY, 0));
}

/* --- multicast groups --- */

static int del_member(struct kunit *test, struct sa_rig *r, const struct sa_port *p)
{
	return sa_ask(test, r, p, IB_SA_ATTR_MC_MEMBER_REC, IB_SA_METHOD_DELETE, JOIN);
}

static int leave_group(struct kunit *test, struct sa_rig *r, const struct sa_port *p, u32 n)
{
	sa_group_rec(r, p, n, FULL);
	return del_member(test, r, p);
}

static int get_group(struct kunit *test, struct sa_rig *r, u32 n)
{
	sa_group_rec(r, &r->b, n, 0);
	return sa_ask(test, r, &r->b, IB_SA_ATTR_MC_MEMBER_REC, IB_MGMT_METHOD_GET,
		      IB_SA_MCMEMBER_REC_MGID);
}

static void sa_makes_broadcast_groups_by_itself(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	u16 mlid;

	sa_broadcast(r, &r->b, FULL);
	KUNIT_ASSERT_EQ(test, OK, sa_set_member(test, r, &r->b, JOIN_IPOIB));
	mlid = get16(r, MC_MLID);
	KUNIT_EXPECT_GE(test, mlid, 0xc000);
	KUNIT_EXPECT_EQ(test, 0x0b1b, get32(r, MC_QKEY));
	KUNIT_EXPECT_EQ(test, EXACTLY(IB_MTU_4096), r->rec[MC_MTU]);
	KUNIT_EXPECT_EQ(test, EXACTLY(EDR_4X), r->rec[MC_RATE]);
	KUNIT_EXPECT_EQ(test, 0x2 << 4 | FULL, r->rec[MC_SCOPE_STATE]);
	KUNIT_EXPECT_MEMEQ(test, r->rec + MC_PORT_GID, r->b.gid.raw, sizeof(r->b.gid));
	sa_broadcast(r, &r->a, FULL);
	KUNIT_ASSERT_EQ(test, OK, sa_set_member(test, r, &r->a, JOIN_IPOIB));
	KUNIT_EXPECT_EQ(test, mlid, get16(r, MC_MLID));
	/* The broadcast group of a partition that the port is not in. */
	sa_broadcast(r, &r->a, FULL);
	put16(r, MC_PKEY, 0x8009);
	put16(r, MC_MGID + 4, 0x8009);
	KUNIT_EXPECT_EQ(test, REQ_INVALID, sa_set_member(test, r, &r->a, JOIN_IPOIB));
}

static void sa_makes_other_groups_as_described(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	u16 mlid;

	sa_group_rec(r, &r->b, 1, FULL);
	KUNIT_EXPECT_EQ(test, INSUFFICIENT, sa_set_member(test, r, &r->b, JOIN_IPOIB));
	sa_group_rec(r, &r->b, 1, FULL);
	KUNIT_EXPECT_EQ(test, INSUFFICIENT,
			sa_set_member(test, r, &r->b, MAKE & ~IB_SA_MCMEMBER_REC_JOIN_STATE));
	KUNIT_EXPECT_EQ(test, NO_RECORDS, get_group(test, r, 1));
	sa_group_rec(r, &r->b, 1, FULL);
	r->rec[MC_MTU] = EXACTLY(IB_MTU_2048);
	put32(r, MC_SL_FLOW_HOP, 0x30012300);
	KUNIT_ASSERT_EQ(test, OK, sa_set_member(test, r, &r->b, MAKE | MTU));
	mlid = get16(r, MC_MLID);
	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 2));
	KUNIT_EXPECT_NE(test, mlid, get16(r, MC_MLID));
	KUNIT_ASSERT_EQ(test, OK, get_group(test, r, 1));
	KUNIT_EXPECT_EQ(test, 0x1234, get32(r, MC_QKEY));
	KUNIT_EXPECT_EQ(test, EXACTLY(IB_MTU_2048), r->rec[MC_MTU]);
	KUNIT_EXPECT_EQ(test, 0x30012300, get32(r, MC_SL_FLOW_HOP));
	/* Nobody is told who has joined. */
	KUNIT_EXPECT_TRUE(test, rig_all(r->rec + MC_PORT_GID, 16, 0));
	/* By its LID. */
	memset(r->rec, 0, sizeof(r->rec));
	put16(r, MC_MLID, mlid);
	KUNIT_EXPECT_EQ(test, OK, sa_ask(test, r, &r->b, IB_SA_ATTR_MC_MEMBER_REC,
					 IB_MGMT_METHOD_GET, IB_SA_MCMEMBER_REC_MLID));
	KUNIT_EXPECT_EQ(test, 1, get32(r, MC_MGID + 8));
	KUNIT_EXPECT_EQ(test, INSUFFICIENT, sa_ask(test, r, &r->b, IB_SA_ATTR_MC_MEMBER_REC,
						   IB_MGMT_METHOD_GET, 0));
}

static void sa_refuses_joins_of_another_kind_of_group(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
	sa_group_rec(r, &r->a, 1, FULL);
	put32(r, MC_QKEY, 0x4321);
	KUNIT_EXPECT_EQ(test, REQ_INVALID, sa_set_member(test, r, &r->a, MAKE));
	sa_group_rec(r, &r->a, 1, FULL);
	put32(r, MC_SL_FLOW_HOP, 0x100);
	KUNIT_EXPECT_EQ(test, REQ_INVALID, sa_set_member(test, r, &r->a, MAKE));
	sa_group_rec(r, &r->a, 1, FULL);
	r->rec[MC_MTU] = EXACTLY(IB_MTU_256);
	KUNIT_EXPECT_EQ(test, REQ_INVALID, sa_set_member(test, r, &r->a, MAKE | MTU));
	/* Messages of the group's size do not fit through the port. */
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "mtu", "1024"));
	KUNIT_EXPECT_EQ(test, REQ_INVALID, sa_join_group(test, r, &r->a, 1));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "mtu", "4096"));
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->a, 1));
	sa_group_rec(r, &r->a, 1, FULL);
	r->rec[MC_MGID] = 0xfe;
	KUNIT_EXPECT_EQ(test, BAD_GID, sa_set_member(test, r, &r->a, MAKE));
	sa_group_rec(r, &r->a, 1, 0);
	KUNIT_EXPECT_EQ(test, REQ_INVALID, sa_set_member(test, r, &r->a, MAKE));
}

static void sa_group_ends_with_its_last_member(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->a, 1));
	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
	/* Again is not once more. */
	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
	KUNIT_EXPECT_EQ(test, OK, leave_group(test, r, &r->a, 1));
	KUNIT_EXPECT_EQ(test, OK, get_group(test, r, 1));
	KUNIT_EXPECT_EQ(test, REQ_INVALID, leave_group(test, r, &r->a, 1));
	KUNIT_EXPECT_EQ(test, OK, leave_group(test, r, &r->b, 1));
	KUNIT_EXPECT_EQ(test, NO_RECORDS, get_group(test, r, 1));
	KUNIT_EXPECT_EQ(test, REQ_INVALID, leave_group(test, r, &r->b, 1));
}

static void sa_keeps_join_states_apart(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	/* A send-only non-member does not create a group; a send-only full member does. */
	sa_group_rec(r, &r->b, 1, SEND_ONLY);
	KUNIT_EXPECT_EQ(test, REQ_INVALID, sa_set_member(test, r, &r->b, MAKE));
	sa_group_rec(r, &r->b, 1, SEND_ONLY_FULL);
	KUNIT_ASSERT_EQ(test, OK, sa_set_member(test, r, &r->b, MAKE));
	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
	KUNIT_EXPECT_EQ(test, FULL | SEND_ONLY_FULL, r->rec[MC_SCOPE_STATE] & 0xf);
	KUNIT_ASSERT_EQ(test, OK, leave_group(test, r, &r->b, 1));
	KUNIT_EXPECT_EQ(test, SEND_ONLY_FULL, r->rec[MC_SCOPE_STATE] & 0xf);
	KUNIT_EXPECT_EQ(test, REQ_INVALID, leave_group(test, r, &r->b, 1));
	sa_group_rec(r, &r->b, 1, SEND_ONLY_FULL);
	KUNIT_ASSERT_EQ(test, OK, del_member(test, r, &r->b));
	KUNIT_EXPECT_EQ(test, NO_RECORDS, get_group(test, r, 1));
}

static void sa_lets_ports_speak_for_themselves_only(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	sa_group_rec(r, &r->b, 1, FULL);
	KUNIT_EXPECT_EQ(test, BAD_GID, sa_set_member(test, r, &r->a, MAKE));
	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
	sa_group_rec(r, &r->b, 1, FULL);
	KUNIT_EXPECT_EQ(test, BAD_GID, del_member(test, r, &r->a));
	KUNIT_EXPECT_EQ(test, OK, get_group(test, r, 1));
	sa_group_rec(r, &r->b, 1, FULL);
	r->rec[MC_PORT_GID + 15] ^= 0x55;
	KUNIT_EXPECT_EQ(test, BAD_GID, sa_set_member(test, r, &r->b, MAKE));
}

static void sa_port_can_have_so_many(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	u32 i;

	for (i = 0; i < PORT_LIMIT; i++)
		KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, i));
	KUNIT_EXPECT_EQ(test, NO_RESOURCES, sa_join_group(test, r, &r->b, i));
	/* Refused requests leave nothing behind, and others have room. */
	KUNIT_EXPECT_EQ(test, NO_RECORDS, get_group(test, r, i));
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->a, i));
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->b, 0));
	KUNIT_EXPECT_EQ(test, OK, leave_group(test, r, &r->b, 0));
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->b, i));
}

static void sa_can_have_so_many_groups(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	struct sa_port port;
	u32 i;

	rig_device(test, "kvr_c", GROUP_LIMIT / PORT_LIMIT, NULL);
	for (i = 0; i < GROUP_LIMIT; i++) {
		if (!(i % PORT_LIMIT))
			sa_look_up(test, &port, "kvr_c", 1 + i / PORT_LIMIT);
		KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &port, i));
	}
	KUNIT_EXPECT_EQ(test, NO_RESOURCES, sa_join_group(test, r, &r->b, i));
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->b, 0));
	KUNIT_EXPECT_EQ(test, OK, leave_group(test, r, &port, i - 1));
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->b, i));
}

/* --- what ends with others --- */

static void sa_members_end_when_their_port_goes_down(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 2));
	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->a, 2));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "state", "down"));
	KUNIT_EXPECT_TRUE(test, kvt_until(get_group(test, r, 1) == NO_RECORDS));
	KUNIT_EXPECT_EQ(test, OK, get_group(test, r, 2));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "state", "active"));
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
}

/* A request may be answered late: what it asks for would be kept. */
static void sa_keeps_nothing_for_a_port_that_is_down(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "state", "down"));
	KUNIT_EXPECT_EQ(test, BAD_GID, sa_join_group(test, r, &r->b, 1));
	KUNIT_EXPECT_EQ(test, NO_RECORDS, get_group(test, r, 1));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "state", "active"));
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
}

static void sa_members_end_when_their_device_goes(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 2));
	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->a, 2));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "../enable", "0"));
	KUNIT_EXPECT_EQ(test, NO_RECORDS, get_group(test, r, 1));
	KUNIT_EXPECT_EQ(test, OK, get_group(test, r, 2));
	KUNIT_EXPECT_EQ(test, BAD_GID, sa_join_group(test, r, &r->b, 1));
}

/* Events of a device: whether its port has been told to register anew. */
struct sa_listener {
	struct ib_event_handler handler;
	struct completion reregister;
};

static void sa_on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct sa_listener *l = container_of(handler, struct sa_listener, handler);

	if (event->event == IB_EVENT_CLIENT_REREGISTER && event->element.port_num == 1)
		complete(&l->reregister);
}

static struct sa_listener *sa_listen(struct kunit *test, const char *name)
{
	struct sa_listener *l = kvt_zalloc(test, sizeof(*l));

	init_completion(&l->reregister);
	INIT_IB_EVENT_HANDLER(&l->handler, kvt_device(test, name), sa_on_event);
	ib_register_event_handler(&l->handler);
	kvt_defer(test, kvt_end_handler, &l->handler);
	return l;
}

static void sa_that_is_new_is_announced(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	char lid[8];
	struct sa_listener *l;

	KUNIT_ASSERT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
	snprintf(lid, sizeof(lid), "%u", r->a.lid);
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "sm_lid", lid));
	l = sa_listen(test, "kvr_b");
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "sm", "0"));
	KUNIT_EXPECT_FALSE(test, completion_done(&l->reregister));
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "sm", "1"));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&l->reregister));
	/* It knows nothing of what the former one did. */
	KUNIT_EXPECT_EQ(test, NO_RECORDS, get_group(test, r, 1));
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
}

static void sa_is_where_it_is_told_to_be(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	struct ib_port_attr attr;

	KUNIT_ASSERT_EQ(test, 0, ib_query_port(r->sm, 1, &attr));
	KUNIT_EXPECT_TRUE(test, attr.port_cap_flags & IB_PORT_SM);
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "sm", "0"));
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(r->sm, 1, &attr));
	KUNIT_EXPECT_FALSE(test, attr.port_cap_flags & IB_PORT_SM);
	/* Left to others to answer. */
	sa_fill(r, IB_SA_ATTR_CLASS_PORTINFO, IB_MGMT_METHOD_GET, 0);
	KUNIT_EXPECT_EQ(test, IB_MAD_RESULT_SUCCESS, sa_process(r, r->b.lid));
	KUNIT_EXPECT_NE(test, 0, rig_port_write("kvr_a", 1, "sm", "perhaps"));
}

static void sa_ports_tell_of_other_managers(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	struct ib_port_modify change = { .set_port_cap_mask = IB_PORT_CM_SUP };
	struct ib_port_attr attr;

	KUNIT_EXPECT_EQ(test, 0, ib_modify_port(r->sm, 1, 0, &change));
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(r->sm, 1, &attr));
	KUNIT_EXPECT_TRUE(test, attr.port_cap_flags & IB_PORT_CM_SUP);
	change = (struct ib_port_modify) { .clr_port_cap_mask = IB_PORT_CM_SUP };
	KUNIT_EXPECT_EQ(test, 0, ib_modify_port(r->sm, 1, 0, &change));
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(r->sm, 1, &attr));
	KUNIT_EXPECT_FALSE(test, attr.port_cap_flags & IB_PORT_CM_SUP);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, ib_modify_port(r->sm, 1, IB_PORT_SHUTDOWN, &change));
	/* What the port itself decides. */
	change = (struct ib_port_modify) { .clr_port_cap_mask = IB_PORT_SM };
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_port(r->sm, 1, 0, &change));
}

static void sa_is_on_no_ethernet_port(struct kunit *test)
{
	struct rig *r = rig_net_new(test, &rig_nets[4]);

	KUNIT_EXPECT_NULL(test, r->a.ibdev->ops.process_mad);
	KUNIT_EXPECT_EQ(test, -EINVAL, rig_port_write(dev_name(&r->a.ibdev->dev), 1, "sm", "1"));
	KUNIT_EXPECT_EQ(test, 0, rig_port_write(dev_name(&r->a.ibdev->dev), 1, "sm", "0"));
}

static struct kunit_case emu_sa_cases[] = {
	KUNIT_CASE(sa_knows_the_path_between_two_ports),
	KUNIT_CASE(sa_knows_no_path_of_an_absent_port),
	KUNIT_CASE(sa_knows_no_path_of_a_port_that_is_down),
	KUNIT_CASE(sa_path_is_as_good_as_its_worse_end),
	KUNIT_CASE_PARAM(sa_path_is_what_is_asked_for, wanted_gen_params),
	KUNIT_CASE(sa_path_is_within_a_partition),
	KUNIT_CASE(sa_makes_broadcast_groups_by_itself),
	KUNIT_CASE(sa_makes_other_groups_as_described),
	KUNIT_CASE(sa_refuses_joins_of_another_kind_of_group),
	KUNIT_CASE(sa_group_ends_with_its_last_member),
	KUNIT_CASE(sa_keeps_join_states_apart),
	KUNIT_CASE(sa_lets_ports_speak_for_themselves_only),
	KUNIT_CASE(sa_port_can_have_so_many),
	KUNIT_CASE(sa_can_have_so_many_groups),
	KUNIT_CASE(sa_members_end_when_their_port_goes_down),
	KUNIT_CASE(sa_keeps_nothing_for_a_port_that_is_down),
	KUNIT_CASE(sa_members_end_when_their_device_goes),
	KUNIT_CASE(sa_that_is_new_is_announced),
	KUNIT_CASE(sa_is_where_it_is_told_to_be),
	KUNIT_CASE(sa_ports_tell_of_other_managers),
	KUNIT_CASE(sa_is_on_no_ethernet_port),
	{}
};
KVT_SUITE(emu_sa);

MODULE_DESCRIPTION("KUnit: the subnet administrator of the software HCA");
MODULE_LICENSE("GPL");
