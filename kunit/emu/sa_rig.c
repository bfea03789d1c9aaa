// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests to the subnet administrator: see sa_rig.h.
 */
#include <rdma/ib_cache.h>

#include "emu/rig_net.h"
#include "emu/sa_rig.h"
#include "lib/objects.h"

void sa_look_up(struct kunit *test, struct sa_port *p, const char *name, u32 num)
{
	struct ib_device *ibdev = KVT_PTR(test, ib_device_get_by_name(name,
								      RDMA_DRIVER_UNKNOWN));
	struct ib_port_attr attr;

	strscpy(p->name, name, sizeof(p->name));
	p->num = num;
	KUNIT_EXPECT_EQ(test, 0, ib_query_port(ibdev, num, &attr));
	KUNIT_EXPECT_EQ(test, 0, rdma_query_gid(ibdev, num, 0, &p->gid));
	p->lid = attr.lid;
	ib_device_put(ibdev);
}

struct sa_rig *sa_new(struct kunit *test)
{
	struct sa_rig *r = kvt_zalloc(test, sizeof(*r));

	rig_device(test, "kvr_a", 1, NULL);
	rig_device(test, "kvr_b", 1, NULL);
	KUNIT_ASSERT_EQ(test, 0, rig_port_write("kvr_a", 1, "sm", "1"));
	sa_look_up(test, &r->a, "kvr_a", 1);
	sa_look_up(test, &r->b, "kvr_b", 1);
	r->sm = kvt_device(test, "kvr_a");
	return r;
}

/* As the MAD layer has it processed: by the port that is the subnet manager's. */
int sa_process(struct sa_rig *r, u16 slid)
{
	struct ib_wc wc = {
		.slid = slid, .src_qp = 1, .port_num = 1,
		.byte_len = sizeof(struct ib_grh) + sizeof(r->in),
	};
	size_t size = sizeof(r->out);
	u16 pkey_index = 0;

	memset(&r->out, 0x5a, sizeof(r->out));
	return r->sm->ops.process_mad(r->sm, 0, 1, &wc, NULL, (struct ib_mad *)&r->in,
				      (struct ib_mad *)&r->out, &size, &pkey_index);
}

void sa_fill(struct sa_rig *r, u16 attr, u8 method, ib_sa_comp_mask mask)
{
	memset(&r->in, 0, sizeof(r->in));
	r->in.mad_hdr.base_version = IB_MGMT_BASE_VERSION;
	r->in.mad_hdr.mgmt_class = IB_MGMT_CLASS_SUBN_ADM;
	r->in.mad_hdr.class_version = IB_SA_CLASS_VERSION;
	r->in.mad_hdr.method = method;
	r->in.mad_hdr.attr_id = cpu_to_be16(attr);
	r->in.mad_hdr.tid = cpu_to_be64(0x1122334455667788);
	r->in.sa_hdr.comp_mask = mask;
	memcpy(r->in.data, r->rec, sizeof(r->in.data));
}

/* The status of the answer to a request of @from, whose record is r->rec, as it is after it. */
int sa_ask(struct kunit *test, struct sa_rig *r, const struct sa_port *from, u16 attr,
		  u8 method, ib_sa_comp_mask mask)
{
	u8 answer = method == IB_MGMT_METHOD_SET ? IB_MGMT_METHOD_GET_RESP :
						   method | IB_MGMT_METHOD_RESP;

	sa_fill(r, attr, method, mask);
	KUNIT_EXPECT_EQ(test, REPLIED, sa_process(r, from->lid));
	KUNIT_EXPECT_EQ(test, answer, r->out.mad_hdr.method);
	KUNIT_EXPECT_EQ(test, 0x1122334455667788, be64_to_cpu(r->out.mad_hdr.tid));
	memcpy(r->rec, r->out.data, sizeof(r->rec));
	return be16_to_cpu(r->out.mad_hdr.status);
}

/* A request for the path from one port to another. */
void sa_path_of(struct sa_rig *r, const struct sa_port *from, const struct sa_port *to)
{
	memset(r->rec, 0, sizeof(r->rec));
	memcpy(r->rec + PR_SGID, &from->gid, sizeof(from->gid));
	memcpy(r->rec + PR_DGID, &to->gid, sizeof(to->gid));
	put16(r, PR_SLID, from->lid);
	put16(r, PR_DLID, to->lid);
}

int sa_ask_path(struct kunit *test, struct sa_rig *r, ib_sa_comp_mask mask)
{
	return sa_ask(test, r, &r->b, IB_SA_ATTR_PATH_REC, IB_MGMT_METHOD_GET, mask);
}

void sa_expect_path(struct kunit *test, struct sa_rig *r)
{
	KUNIT_EXPECT_EQ(test, r->b.lid, get16(r, PR_SLID));
	KUNIT_EXPECT_EQ(test, r->a.lid, get16(r, PR_DLID));
	KUNIT_EXPECT_MEMEQ(test, r->rec + PR_SGID, r->b.gid.raw, sizeof(r->b.gid));
	KUNIT_EXPECT_MEMEQ(test, r->rec + PR_DGID, r->a.gid.raw, sizeof(r->a.gid));
	KUNIT_EXPECT_EQ(test, 0x81, r->rec[PR_NUMB_PATH]);
	KUNIT_EXPECT_EQ(test, 0xffff, get16(r, PR_PKEY));
	KUNIT_EXPECT_EQ(test, EXACTLY(IB_MTU_4096), r->rec[PR_MTU]);
	KUNIT_EXPECT_EQ(test, EXACTLY(EDR_4X), r->rec[PR_RATE]);
}

/* A request of @p about the broadcast group of IP over InfiniBand, */
void sa_broadcast(struct sa_rig *r, const struct sa_port *p, u8 state)
{
	static const u8 mgid[16] = {
		0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff
	};

	memset(r->rec, 0, sizeof(r->rec));
	memcpy(r->rec + MC_MGID, mgid, sizeof(mgid));
	memcpy(r->rec + MC_PORT_GID, &p->gid, sizeof(p->gid));
	put16(r, MC_PKEY, 0xffff);
	r->rec[MC_SCOPE_STATE] = state;
}

/* and about another one, the @n-th. */
void sa_group_rec(struct sa_rig *r, const struct sa_port *p, u32 n, u8 state)
{
	sa_broadcast(r, p, state);
	put32(r, MC_MGID + 8, n);
	put32(r, MC_QKEY, 0x1234);
}

int sa_set_member(struct kunit *test, struct sa_rig *r, const struct sa_port *p,
		      ib_sa_comp_mask mask)
{
	return sa_ask(test, r, p, IB_SA_ATTR_MC_MEMBER_REC, IB_MGMT_METHOD_SET, mask);
}

int sa_join_group(struct kunit *test, struct sa_rig *r, const struct sa_port *p, u32 n)
{
	sa_group_rec(r, p, n, FULL);
	return sa_set_member(test, r, p, MAKE);
}
