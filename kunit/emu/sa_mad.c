// SPDX-License-Identifier: GPL-2.0-only
/*
 * The subnet administrator of the emulated fabric: services, and MADs that nobody should send.
 */
#include "emu/rig_net.h"
#include "emu/sa_rig.h"
#include "lib/objects.h"

/* --- services --- */

#define SERVICE		(IB_SA_SERVICE_REC_SERVICE_ID | IB_SA_SERVICE_REC_SERVICE_GID |	\
			 IB_SA_SERVICE_REC_SERVICE_PKEY)
#define LEASE		IB_SA_SERVICE_REC_SERVICE_LEASE

static void service(struct sa_rig *r, const struct sa_port *p, u64 id, u32 lease)
{
	memset(r->rec, 0, sizeof(r->rec));
	put64(r, SR_ID, id);
	memcpy(r->rec + SR_GID, &p->gid, sizeof(p->gid));
	put16(r, SR_PKEY, 0xffff);
	put32(r, SR_LEASE, lease);
	memset(r->rec + SR_KEY, 0x77, 16);
	strscpy((char *)r->rec + SR_NAME, "echo", 64);
	memset(r->rec + SR_DATA, 0x44, 64);
}

static int ask_service(struct kunit *test, struct sa_rig *r, const struct sa_port *p, u8 method,
		       ib_sa_comp_mask mask)
{
	return sa_ask(test, r, p, IB_SA_ATTR_SERVICE_REC, method, mask);
}

static void sa_knows_services(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	service(r, &r->b, 5, ~0);
	KUNIT_ASSERT_EQ(test, OK, ask_service(test, r, &r->b, IB_MGMT_METHOD_SET, SERVICE | LEASE));
	service(r, &r->b, 5, 0);
	memset(r->rec + SR_GID, 0, 192 - SR_GID);
	KUNIT_ASSERT_EQ(test, OK, ask_service(test, r, &r->a, IB_MGMT_METHOD_GET,
					      IB_SA_SERVICE_REC_SERVICE_ID));
	KUNIT_EXPECT_MEMEQ(test, r->rec + SR_GID, r->b.gid.raw, sizeof(r->b.gid));
	KUNIT_EXPECT_STREQ(test, "echo", (char *)r->rec + SR_NAME);
	KUNIT_EXPECT_TRUE(test, rig_all(r->rec + SR_DATA, 64, 0x44));
	KUNIT_EXPECT_TRUE(test, rig_all(r->rec + SR_KEY, 16, 0));
	service(r, &r->a, 6, ~0);
	KUNIT_ASSERT_EQ(test, OK, ask_service(test, r, &r->a, IB_MGMT_METHOD_SET, SERVICE));
	service(r, &r->a, 0, 0);
	KUNIT_EXPECT_EQ(test, TOO_MANY, ask_service(test, r, &r->a, IB_MGMT_METHOD_GET,
						    IB_SA_SERVICE_REC_SERVICE_NAME));
	service(r, &r->b, 7, 0);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, ask_service(test, r, &r->a, IB_MGMT_METHOD_GET,
						      IB_SA_SERVICE_REC_SERVICE_ID));
}

static void sa_service_is_its_owners(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	service(r, &r->b, 5, ~0);
	KUNIT_ASSERT_EQ(test, OK, ask_service(test, r, &r->b, IB_MGMT_METHOD_SET, SERVICE));
	service(r, &r->b, 5, ~0);
	KUNIT_EXPECT_EQ(test, BAD_GID,
			ask_service(test, r, &r->a, IB_SA_METHOD_DELETE, SERVICE));
	service(r, &r->b, 5, ~0);
	r->rec[SR_KEY] = 0;
	KUNIT_EXPECT_EQ(test, REQ_INVALID,
			ask_service(test, r, &r->b, IB_SA_METHOD_DELETE, SERVICE));
	service(r, &r->b, 5, ~0);
	r->rec[SR_KEY] = 0;
	KUNIT_EXPECT_EQ(test, REQ_INVALID,
			ask_service(test, r, &r->b, IB_MGMT_METHOD_SET, SERVICE));
	service(r, &r->b, 5, ~0);
	KUNIT_EXPECT_EQ(test, INSUFFICIENT, ask_service(test, r, &r->b, IB_SA_METHOD_DELETE,
							IB_SA_SERVICE_REC_SERVICE_ID));
	service(r, &r->b, 5, ~0);
	KUNIT_EXPECT_EQ(test, OK, ask_service(test, r, &r->b, IB_SA_METHOD_DELETE, SERVICE));
	service(r, &r->b, 5, ~0);
	KUNIT_EXPECT_EQ(test, NO_RECORDS,
			ask_service(test, r, &r->b, IB_SA_METHOD_DELETE, SERVICE));
}

static void sa_service_lasts_as_long_as_its_lease(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	service(r, &r->b, 5, 0);
	KUNIT_ASSERT_EQ(test, OK, ask_service(test, r, &r->b, IB_MGMT_METHOD_SET, SERVICE | LEASE));
	service(r, &r->b, 5, 0);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, ask_service(test, r, &r->b, IB_MGMT_METHOD_GET, SERVICE));
	service(r, &r->b, 5, 1000);
	KUNIT_ASSERT_EQ(test, OK, ask_service(test, r, &r->b, IB_MGMT_METHOD_SET, SERVICE | LEASE));
	service(r, &r->b, 5, 0);
	KUNIT_ASSERT_EQ(test, OK, ask_service(test, r, &r->b, IB_MGMT_METHOD_GET, SERVICE));
	KUNIT_EXPECT_GT(test, get32(r, SR_LEASE), 0);
	KUNIT_EXPECT_LE(test, get32(r, SR_LEASE), 1000);
	/* And not longer than its port. */
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_b", 1, "../enable", "0"));
	service(r, &r->b, 5, 0);
	KUNIT_EXPECT_EQ(test, NO_RECORDS, ask_service(test, r, &r->a, IB_MGMT_METHOD_GET, SERVICE));
}

/* Both count for the limit of a port. */
static void sa_services_are_as_many_as_memberships(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	u32 i;

	for (i = 1; i < PORT_LIMIT; i++) {
		service(r, &r->b, i, ~0);
		KUNIT_ASSERT_EQ(test, OK,
				ask_service(test, r, &r->b, IB_MGMT_METHOD_SET, SERVICE));
	}
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->b, 1));
	service(r, &r->b, i, ~0);
	KUNIT_EXPECT_EQ(test, NO_RESOURCES,
			ask_service(test, r, &r->b, IB_MGMT_METHOD_SET, SERVICE));
	service(r, &r->b, 1, ~0);
	KUNIT_EXPECT_EQ(test, OK, ask_service(test, r, &r->b, IB_MGMT_METHOD_SET, SERVICE));
}

/* --- MADs --- */

static void sa_tells_what_it_can_do(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	struct ib_class_port_info *info = (void *)r->rec;

	memset(r->rec, 0xff, sizeof(r->rec));
	KUNIT_ASSERT_EQ(test, OK, sa_ask(test, r, &r->b, IB_SA_ATTR_CLASS_PORTINFO,
					 IB_MGMT_METHOD_GET, 0));
	KUNIT_EXPECT_EQ(test, 1, info->base_version);
	KUNIT_EXPECT_EQ(test, 2, info->class_version);
	KUNIT_EXPECT_EQ(test, IB_SA_CAP_MASK2_SENDONLY_FULL_MEM_SUPPORT,
			ib_get_cpi_capmask2(info));
	/* Nothing of the request comes back. */
	KUNIT_EXPECT_TRUE(test, rig_all(r->rec + sizeof(*info), REC_SIZE - sizeof(*info), 0));
}

static void sa_refuses_what_it_does_not_do(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);

	KUNIT_EXPECT_EQ(test, UNSUPPORTED, sa_ask(test, r, &r->b, IB_SA_ATTR_INFORM_INFO,
						  IB_MGMT_METHOD_SET, 0));
	KUNIT_EXPECT_EQ(test, UNSUPPORTED, sa_ask(test, r, &r->b, IB_SA_ATTR_PATH_REC,
						  IB_SA_METHOD_GET_TABLE, 0));
	KUNIT_EXPECT_EQ(test, UNSUPPORTED, sa_ask(test, r, &r->b, IB_SA_ATTR_MULTI_PATH_REC,
						  IB_SA_METHOD_GET_MULTI, 0));
	KUNIT_EXPECT_EQ(test, UNSUPPORTED, sa_ask(test, r, &r->b, IB_SA_ATTR_NODE_REC,
						  IB_MGMT_METHOD_GET, 0));
	/* The first of several segments, and another version. */
	sa_fill(r, IB_SA_ATTR_CLASS_PORTINFO, IB_MGMT_METHOD_GET, 0);
	r->in.rmpp_hdr.rmpp_rtime_flags = IB_MGMT_RMPP_FLAG_ACTIVE | IB_MGMT_RMPP_FLAG_FIRST;
	KUNIT_EXPECT_EQ(test, REPLIED, sa_process(r, r->b.lid));
	KUNIT_EXPECT_EQ(test, UNSUPPORTED, be16_to_cpu(r->out.mad_hdr.status));
	sa_fill(r, IB_SA_ATTR_CLASS_PORTINFO, IB_MGMT_METHOD_GET, 0);
	r->in.mad_hdr.class_version = 1;
	KUNIT_EXPECT_EQ(test, REPLIED, sa_process(r, r->b.lid));
	KUNIT_EXPECT_EQ(test, BAD_VERSION, be16_to_cpu(r->out.mad_hdr.status));
}

static void sa_leaves_to_others_what_is_not_for_it(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	size_t size = sizeof(r->out) - 1;
	struct ib_wc wc = { .slid = r->b.lid };
	u16 index = 0;

	/* An answer, to this port's own clients, and a MAD of another class. */
	sa_fill(r, IB_SA_ATTR_CLASS_PORTINFO, IB_MGMT_METHOD_GET_RESP, 0);
	KUNIT_EXPECT_EQ(test, IB_MAD_RESULT_SUCCESS, sa_process(r, r->b.lid));
	sa_fill(r, IB_SA_ATTR_CLASS_PORTINFO, IB_MGMT_METHOD_GET, 0);
	r->in.mad_hdr.mgmt_class = IB_MGMT_CLASS_CM;
	KUNIT_EXPECT_EQ(test, IB_MAD_RESULT_SUCCESS, sa_process(r, r->b.lid));
	/* MADs that nobody expects an answer to. */
	sa_fill(r, IB_SA_ATTR_NOTICE, IB_MGMT_METHOD_TRAP, 0);
	KUNIT_EXPECT_EQ(test, CONSUMED, sa_process(r, r->b.lid));
	sa_fill(r, IB_SA_ATTR_NOTICE, IB_MGMT_METHOD_REPORT, 0);
	KUNIT_EXPECT_EQ(test, CONSUMED, sa_process(r, r->b.lid));
	/* The rest of a short one is what its buffer held before. */
	sa_fill(r, IB_SA_ATTR_CLASS_PORTINFO, 0x7f, 0);
	memset(&r->out, 0x5a, sizeof(r->out));
	wc.byte_len = sizeof(struct ib_grh) + sizeof(struct ib_mad_hdr);
	size = sizeof(r->out);
	KUNIT_EXPECT_EQ(test, CONSUMED,
			r->sm->ops.process_mad(r->sm, 0, 1, &wc, NULL, (struct ib_mad *)&r->in,
					       (struct ib_mad *)&r->out, &size, &index));
	size = sizeof(r->out) - 1;
	/* No room for a whole MAD, and none that came from anybody. */
	sa_fill(r, IB_SA_ATTR_CLASS_PORTINFO, IB_MGMT_METHOD_GET, 0);
	memset(&r->out, 0x5a, sizeof(r->out));
	KUNIT_EXPECT_EQ(test, IB_MAD_RESULT_SUCCESS,
			r->sm->ops.process_mad(r->sm, 0, 1, &wc, NULL, (struct ib_mad *)&r->in,
					       (struct ib_mad *)&r->out, &size, &index));
	KUNIT_EXPECT_TRUE(test, rig_all((u8 *)&r->out, sizeof(r->out), 0x5a));
	size = sizeof(r->out);
	KUNIT_EXPECT_EQ(test, IB_MAD_RESULT_SUCCESS,
			r->sm->ops.process_mad(r->sm, 0, 1, NULL, NULL, (struct ib_mad *)&r->in,
					       (struct ib_mad *)&r->out, &size, &index));
}

/* A request that may be right, of one of two ports; one in two has random bytes in it. */
static void random_mad(struct sa_rig *r, u32 *rng)
{
	static const u8 methods[] = {
		IB_MGMT_METHOD_GET, IB_MGMT_METHOD_SET, IB_MGMT_METHOD_SET, IB_SA_METHOD_DELETE,
		IB_SA_METHOD_GET_TABLE,
	};
	u8 method = methods[kvt_rand(rng) % ARRAY_SIZE(methods)];
	const struct sa_port *p = kvt_rand(rng) % 2 ? &r->a : &r->b;
	u32 n = kvt_rand(rng) % 500, changes = kvt_rand(rng) % 2 * (kvt_rand(rng) % 20), i;

	switch (kvt_rand(rng) % 4) {
	case 0:
		service(r, p, n, kvt_rand(rng));
		sa_fill(r, IB_SA_ATTR_SERVICE_REC, method, SERVICE | LEASE);
		break;
	case 1:
		sa_path_of(r, p, &r->b);
		sa_fill(r, IB_SA_ATTR_PATH_REC, IB_MGMT_METHOD_GET, BY_GID | BY_LID);
		break;
	default:
		sa_group_rec(r, p, n, 1 << kvt_rand(rng) % 4);
		sa_fill(r, IB_SA_ATTR_MC_MEMBER_REC, method, MAKE);
	}
	for (i = 0; i < changes; i++)
		((u8 *)&r->in)[kvt_rand(rng) % sizeof(r->in)] = kvt_rand(rng);
}

/* Whatever comes, by whomever it is sent, the answers to others' requests stay right. */
static void sa_survives_random_mads(struct kunit *test)
{
	struct sa_rig *r = sa_new(test);
	u64 i, count = kvt_count(400000);
	u32 seed = kvt_seed(test, "MADs", count);
	u32 rng = seed ?: 1;
	u64 answered = 0;

	rig_device(test, "kvr_c", 1, NULL);
	for (i = 0; i < count; i++) {
		int ret;

		random_mad(r, &rng);
		ret = sa_process(r, kvt_rand(&rng) % 3 ? r->b.lid : r->a.lid);
		KUNIT_ASSERT_TRUE(test, ret == IB_MAD_RESULT_SUCCESS || ret == CONSUMED ||
				  ret == REPLIED);
		if (ret == REPLIED) {
			answered += r->out.mad_hdr.status == OK;
			KUNIT_ASSERT_TRUE(test, r->out.mad_hdr.method & IB_MGMT_METHOD_RESP);
			KUNIT_ASSERT_TRUE(test, r->in.mad_hdr.tid == r->out.mad_hdr.tid);
		}
	}
	kunit_info(test, "%llu of %llu MADs were granted\n", answered, count);
	KUNIT_EXPECT_GT(test, answered, count / 10);
	sa_look_up(test, &r->b, "kvr_c", 1);
	KUNIT_EXPECT_EQ(test, OK, sa_join_group(test, r, &r->b, 1000));
	sa_path_of(r, &r->b, &r->a);
	KUNIT_ASSERT_EQ(test, OK, sa_ask_path(test, r, BY_GID));
	sa_expect_path(test, r);
}

static struct kunit_case emu_sa_mad_cases[] = {
	KUNIT_CASE(sa_knows_services),
	KUNIT_CASE(sa_service_is_its_owners),
	KUNIT_CASE(sa_service_lasts_as_long_as_its_lease),
	KUNIT_CASE(sa_services_are_as_many_as_memberships),
	KUNIT_CASE(sa_tells_what_it_can_do),
	KUNIT_CASE(sa_refuses_what_it_does_not_do),
	KUNIT_CASE(sa_leaves_to_others_what_is_not_for_it),
	KUNIT_CASE_SLOW(sa_survives_random_mads),
	{}
};
KVT_SUITE(emu_sa_mad);
