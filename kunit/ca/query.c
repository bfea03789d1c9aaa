// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queries of a channel adapter: they return what the driver reported, are answered in any
 * context, and fill the caller's buffer as far as its length allows.
 */
#include <linux/netdevice.h>

#include "ca/rig.h"
#include "lib/mock.h"

/* A member that has the same name and meaning in ib_device_attr and kverbs_ca_attr. */
struct same {
	const char *name;
	u32 from;
	u32 from_bytes;
	u32 to;
	u32 to_bytes;
};

#define SAME(member) {							\
	#member,							\
	offsetof(struct ib_device_attr, member),			\
	sizeof_field(struct ib_device_attr, member),			\
	offsetof(struct kverbs_ca_attr, member),			\
	sizeof_field(struct kverbs_ca_attr, member) }

static const struct same same[] = {
	SAME(fw_ver), SAME(max_mr_size), SAME(vendor_id), SAME(max_qp),
	SAME(max_qp_wr), SAME(max_send_sge), SAME(max_recv_sge),
	SAME(max_sge_rd), SAME(max_cq), SAME(max_cqe), SAME(max_mr),
	SAME(max_pd), SAME(max_qp_rd_atom), SAME(max_res_rd_atom),
	SAME(max_qp_init_rd_atom), SAME(max_ee), SAME(max_rdd),
	SAME(max_ee_rd_atom), SAME(max_ee_init_rd_atom), SAME(max_raw_ipv6_qp),
	SAME(max_raw_ethy_qp), SAME(max_mw), SAME(max_fmr),
	SAME(max_map_per_fmr), SAME(max_mcast_grp), SAME(max_mcast_qp_attach),
	SAME(max_total_mcast_qp_attach), SAME(max_ah), SAME(max_srq),
	SAME(max_srq_wr), SAME(max_srq_sge), SAME(max_pkeys),
};

/* Gives each member a different value, so that a mix-up shows. */
static void fill_attrs(struct ib_device_attr *attr)
{
	u64 n, i;

	for (i = 0; i < ARRAY_SIZE(same); i++) {
		n = 1000 + i;
		memcpy((void *)attr + same[i].from, &n, same[i].from_bytes);
	}
	attr->fw_ver = 0x1122334455667788ULL;
	attr->max_mr_size = U64_MAX;
	attr->sys_image_guid = cpu_to_be64(0x0102030405060708ULL);
	attr->page_size_cap = SZ_4K | SZ_2M | BIT_ULL(62);
	attr->vendor_part_id = 71;
	attr->hw_ver = 72;
	attr->max_fast_reg_page_list_len = 73;
	attr->local_ca_ack_delay = 21;
	attr->atomic_cap = IB_ATOMIC_HCA;
	attr->masked_atomic_cap = IB_ATOMIC_GLOB;
	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS |
				 IB_DEVICE_SRQ_RESIZE | IB_DEVICE_XRC |
				 IB_DEVICE_RESIZE_MAX_WR;
}

static void get_fw_str(struct ib_device *ibdev, char *str)
{
	strscpy(str, "17.4-mock", IB_FW_VERSION_NAME_MAX);
}

static struct mock *ports_up(struct kunit *test, u32 nports)
{
	struct mock *m = mock_new(test);

	m->nports = nports;
	m->fill = fill_attrs;
	m->ops.get_dev_fw_str = get_fw_str;
	mock_alloc(test, m);
	strscpy(m->ibdev->node_desc, "of a case", sizeof(m->ibdev->node_desc));
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_a"));
	return m;
}

static void expect_attrs(struct kunit *test, const struct kverbs_ca_attr *got)
{
	struct ib_device_attr want = {};
	u64 i, ours, theirs;

	fill_attrs(&want);
	for (i = 0; i < ARRAY_SIZE(same); i++) {
		ours = 0;
		theirs = 0;
		memcpy(&ours, (void *)got + same[i].to, same[i].to_bytes);
		memcpy(&theirs, (void *)&want + same[i].from, same[i].from_bytes);
		KUNIT_EXPECT_EQ_MSG(test, theirs, ours, "%s", same[i].name);
	}
	KUNIT_EXPECT_EQ(test, be64_to_cpu(want.sys_image_guid), be64_to_cpu(got->sys_image_guid));
	KUNIT_EXPECT_EQ(test, want.page_size_cap, got->page_sizes);
	KUNIT_EXPECT_EQ(test, want.vendor_part_id, got->device_id);
	KUNIT_EXPECT_EQ(test, want.hw_ver, got->hw_rev);
	KUNIT_EXPECT_EQ(test, want.max_fast_reg_page_list_len, got->max_fast_reg_pages);
	KUNIT_EXPECT_EQ(test, want.local_ca_ack_delay, got->ack_delay);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_ATOMIC_HCA, got->atomic_cap);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_ATOMIC_GLOB, got->masked_atomic_cap);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_CAP_MEM_MGT_EXTENSIONS |
			KVERBS_CA_CAP_SRQ_RESIZE | KVERBS_CA_CAP_XRC |
			KVERBS_CA_CAP_RESIZE_MAX_WR, got->cap_flags);
}

static bool padded(const char *text, size_t size)
{
	size_t len = strnlen(text, size);

	return len < size && !memchr_inv(text + len, 0, size - len);
}

static void attributes_are_those_of_the_driver(struct kunit *test)
{
	struct mock *m = ports_up(test, 1);
	const struct kverbs_ca_attr *got = ca_rig_attr(test, m->ibdev, ca_rig_open(test, m->ibdev));

	expect_attrs(test, got);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_VERSION, got->version);
	KUNIT_EXPECT_EQ(test, sizeof(*got), got->attr_size);
	KUNIT_EXPECT_EQ(test, 1, got->first_port);
	KUNIT_EXPECT_EQ(test, 1, got->port_count);
	KUNIT_EXPECT_EQ(test, be64_to_cpu(m->ibdev->node_guid), be64_to_cpu(got->node_guid));
	KUNIT_EXPECT_EQ(test, 1, got->node_type);
	KUNIT_EXPECT_EQ(test, m->ibdev->num_comp_vectors, got->comp_vectors);
	KUNIT_EXPECT_STREQ(test, "kvtm_a", (const char *)got->name);
	KUNIT_EXPECT_STREQ(test, "17.4-mock", (const char *)got->fw_str);
	KUNIT_EXPECT_STREQ(test, "of a case", (const char *)got->node_desc);
	KUNIT_EXPECT_TRUE(test, padded(got->name, sizeof(got->name)));
	KUNIT_EXPECT_TRUE(test, padded(got->fw_str, sizeof(got->fw_str)));
	KUNIT_EXPECT_TRUE(test, padded(got->node_desc, sizeof(got->node_desc)));
}

/* Sets also the capability flags that kverbs_ca_attr does not define. */
static void fill_odd(struct ib_device_attr *attr)
{
	attr->device_cap_flags = U64_MAX;
}

static void get_long_fw_str(struct ib_device *ibdev, char *str)
{
	memset(str, 'f', IB_FW_VERSION_NAME_MAX);
}

static void nothing_unknown_gets_through(struct kunit *test)
{
	struct mock *m = mock_new(test);
	const struct kverbs_ca_attr *got;

	m->fill = fill_odd;
	m->ops.get_dev_fw_str = get_long_fw_str;
	mock_alloc(test, m);
	memset(m->ibdev->node_desc, 'd', sizeof(m->ibdev->node_desc));
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_a"));
	got = ca_rig_attr(test, m->ibdev, ca_rig_open(test, m->ibdev));
	KUNIT_EXPECT_EQ(test, 0, got->cap_flags & BIT_ULL(9));
	KUNIT_EXPECT_EQ(test, 0, got->cap_flags >> 25);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_CAP_RESIZE_MAX_WR,
			got->cap_flags & KVERBS_CA_CAP_RESIZE_MAX_WR);
	KUNIT_EXPECT_EQ(test, sizeof(got->fw_str) - 1, strnlen(got->fw_str, sizeof(got->fw_str)));
	KUNIT_EXPECT_EQ(test, sizeof(got->node_desc) - 1,
			strnlen(got->node_desc, sizeof(got->node_desc)));
}

/* Gives most members a value that no other member has, some also per port. */
static void fill_port(struct ib_port_attr *attr, u32 port)
{
	u32 n = 16 * port;

	attr->state = IB_PORT_ARMED;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_1024;
	attr->phys_mtu = 9000 + port;
	attr->subnet_prefix = 0xfe80000000000000ULL + port;
	attr->port_cap_flags = 0x10000 + n;
	attr->port_cap_flags2 = 0x2000 + n;
	attr->max_msg_sz = SZ_1G + port;
	attr->bad_pkey_cntr = n + 1;
	attr->qkey_viol_cntr = n + 2;
	attr->sm_lid = n + 3;
	attr->lid = n + 4;
	attr->lmc = 2;
	attr->max_vl_num = 3;
	attr->sm_sl = 4;
	attr->subnet_timeout = 18;
	attr->init_type_reply = 5;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
}

static void expect_link(struct kunit *test,
			const struct kverbs_ca_port_attr *got,
			const struct ib_port_attr *want)
{
	KUNIT_EXPECT_EQ(test, KVERBS_CA_PORT_ARMED, got->state);
	KUNIT_EXPECT_EQ(test, 5, got->phys_state);
	KUNIT_EXPECT_EQ(test, want->port_cap_flags, got->cap_flags);
	KUNIT_EXPECT_EQ(test, want->port_cap_flags2, got->cap_flags2);
	KUNIT_EXPECT_EQ(test, 2, got->width);
	KUNIT_EXPECT_EQ(test, 32, got->speed);
	KUNIT_EXPECT_EQ(test, 4096, got->max_mtu);
	KUNIT_EXPECT_EQ(test, 1024, got->active_mtu);
	KUNIT_EXPECT_EQ(test, want->phys_mtu, got->phys_mtu);
	KUNIT_EXPECT_EQ(test, want->max_msg_sz, got->max_msg_size);
	KUNIT_EXPECT_EQ(test, want->max_vl_num, got->max_vls);
	KUNIT_EXPECT_EQ(test, want->bad_pkey_cntr, got->bad_pkeys);
	KUNIT_EXPECT_EQ(test, want->qkey_viol_cntr, got->bad_qkeys);
	KUNIT_EXPECT_FALSE(test, memchr_inv(got->reserved, 0, sizeof(got->reserved)));
}

static void expect_subnet(struct kunit *test,
			  const struct kverbs_ca_port_attr *got,
			  const struct ib_port_attr *want)
{
	KUNIT_EXPECT_EQ(test, KVERBS_CA_LINK_INFINIBAND, got->link_layer);
	KUNIT_EXPECT_EQ(test, 0, got->flags);
	KUNIT_EXPECT_EQ(test, want->subnet_prefix, be64_to_cpu(got->subnet_prefix));
	KUNIT_EXPECT_EQ(test, want->lid, got->lid);
	KUNIT_EXPECT_EQ(test, want->sm_lid, got->sm_lid);
	KUNIT_EXPECT_EQ(test, want->lmc, got->lmc);
	KUNIT_EXPECT_EQ(test, want->sm_sl, got->sm_sl);
	KUNIT_EXPECT_EQ(test, want->subnet_timeout, got->subnet_timeout);
	KUNIT_EXPECT_EQ(test, want->init_type_reply, got->init_type_reply);
	KUNIT_EXPECT_EQ(test, 0, got->netdev);
}

static void expect_tables(struct kunit *test,
			  const struct kverbs_ca_port_attr *got,
			  const struct mock_port *want)
{
	const struct kverbs_ca_gid *gid;
	int i;

	KUNIT_ASSERT_EQ(test, MOCK_GIDS, got->gid_count);
	KUNIT_ASSERT_EQ(test, MOCK_PKEYS, got->pkey_count);
	for (i = 0; i < MOCK_GIDS; i++) {
		gid = ca_rig_gid(got, i);
		KUNIT_EXPECT_MEMEQ(test, gid->gid, want->gids[i].raw, 16);
		KUNIT_EXPECT_EQ(test, i < 2 ? KVERBS_CA_GID_IB : KVERBS_CA_GID_NONE, gid->type);
		KUNIT_EXPECT_EQ(test, 0, gid->netdev);
	}
	for (i = 0; i < MOCK_PKEYS; i++)
		KUNIT_EXPECT_EQ(test, want->pkeys[i], ca_rig_pkey(got, i));
	KUNIT_EXPECT_EQ(test, be64_to_cpu(want->gids[0].global.interface_id),
			be64_to_cpu(got->guid));
}

static void expect_layout(struct kunit *test, const struct kverbs_ca_port_attr *got)
{
	KUNIT_EXPECT_EQ(test, KVERBS_CA_VERSION, got->version);
	KUNIT_EXPECT_EQ(test, sizeof(*got), got->attr_size);
	KUNIT_EXPECT_EQ(test, sizeof(struct kverbs_ca_gid), got->gid_size);
	KUNIT_EXPECT_GE(test, got->gid_offset, got->attr_size);
	KUNIT_EXPECT_GE(test, got->pkey_offset, got->gid_offset + got->gid_count * got->gid_size);
	KUNIT_EXPECT_GE(test, got->size, got->pkey_offset + got->pkey_count * sizeof(u16));
	KUNIT_EXPECT_EQ(test, 0, got->size % 8);
}

/* Counters are cached at registration and at events, so they are current here. */
static void ports_are_those_of_the_driver(struct kunit *test)
{
	struct mock *m = mock_new(test);
	const struct kverbs_ca_port_attr *got;
	u64 h;
	u32 port;

	m->nports = 2;
	for (port = 1; port <= 2; port++)
		fill_port(&m->port[port].attr, port);
	mock_start(test, m, "kvtm_a");
	h = ca_rig_open(test, m->ibdev);
	for (port = 1; port <= 2; port++) {
		got = ca_rig_port(test, m->ibdev, h, port);
		KUNIT_EXPECT_EQ(test, port, got->port);
		expect_layout(test, got);
		expect_link(test, got, &m->port[port].attr);
		expect_subnet(test, got, &m->port[port].attr);
		expect_tables(test, got, &m->port[port]);
	}
}

static void all_ports_follow_the_attributes(struct kunit *test)
{
	struct mock *m = ports_up(test, 2);
	u64 h = ca_rig_open(test, m->ibdev);
	const struct kverbs_ca_attr *attr = ca_rig_attr(test, m->ibdev, h);
	const struct kverbs_ca_port_attr *port, *alone;
	u32 i, size = attr->port_offset;

	KUNIT_ASSERT_EQ(test, 2, attr->port_count);
	KUNIT_EXPECT_GE(test, attr->port_offset, attr->attr_size);
	KUNIT_EXPECT_EQ(test, 0, attr->port_offset % 8);
	for (i = 1; i <= 2; i++) {
		port = ca_rig_port_in(attr, i);
		alone = ca_rig_port(test, m->ibdev, h, i);
		KUNIT_ASSERT_NOT_NULL(test, port);
		KUNIT_ASSERT_EQ(test, alone->size, port->size);
		KUNIT_EXPECT_MEMEQ(test, port, alone, alone->size);
		size += port->size;
	}
	KUNIT_EXPECT_EQ(test, size, attr->size);
}

static void switch_has_port_0(struct kunit *test)
{
	struct mock *m = mock_new(test);
	const struct kverbs_ca_attr *attr;
	u64 h;

	m->is_switch = true;
	fill_port(&m->port[0].attr, 3);
	mock_start(test, m, "kvtm_a");
	h = ca_rig_open(test, m->ibdev);
	attr = ca_rig_attr(test, m->ibdev, h);
	KUNIT_EXPECT_EQ(test, 2, attr->node_type);
	KUNIT_EXPECT_EQ(test, 0, attr->first_port);
	KUNIT_EXPECT_EQ(test, 1, attr->port_count);
	KUNIT_ASSERT_NOT_NULL(test, ca_rig_port_in(attr, 0));
	expect_subnet(test, ca_rig_port(test, m->ibdev, h, 0), &m->port[0].attr);
	ca_rig_any_length(test, m->ibdev, &CA_REQ(QUERY_PORT, .handle = h));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			CA_CALL(m->ibdev, QUERY_PORT, .handle = h, .port = 1,
				.out = &h, .out_len = 8));
}

static void ethernet_port_is_of_no_subnet(struct kunit *test)
{
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_new(test);
	const struct kverbs_ca_port_attr *got;

	m->eth = true;
	m->port[1].ndev = ndev;
	fill_port(&m->port[1].attr, 1);
	mock_start(test, m, "kvtm_a");
	got = ca_rig_port(test, m->ibdev, ca_rig_open(test, m->ibdev), 1);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_LINK_ETHERNET, got->link_layer);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_PORT_IP_GIDS | KVERBS_CA_PORT_GRH_REQUIRED, got->flags);
	expect_link(test, got, &m->port[1].attr);
	KUNIT_EXPECT_EQ(test, 0, be64_to_cpu(got->guid));
	KUNIT_EXPECT_EQ(test, 0, be64_to_cpu(got->subnet_prefix));
	KUNIT_EXPECT_EQ(test, 0, got->lid);
	KUNIT_EXPECT_EQ(test, 0, got->sm_lid);
	KUNIT_EXPECT_EQ(test, 0, got->lmc);
	KUNIT_EXPECT_EQ(test, 0, got->sm_sl);
	KUNIT_EXPECT_EQ(test, 0, got->subnet_timeout);
	KUNIT_EXPECT_EQ(test, 0, got->init_type_reply);
	KUNIT_EXPECT_EQ(test, ndev->ifindex, got->netdev);
}

/* Each GID is reported as the core added it to the driver, with its type and netdev. */
static void gids_of_an_ethernet_port_have_types(struct kunit *test)
{
	static const u32 types[] = {
		[IB_GID_TYPE_ROCE] = KVERBS_CA_GID_ROCE_V1,
		[IB_GID_TYPE_ROCE_UDP_ENCAP] = KVERBS_CA_GID_ROCE_V2,
	};
	struct net_device *ndev = kvt_netdev(test);
	struct mock *m = mock_up_eth(test, "kvtm_a", ndev);
	struct mock_port *p = &m->port[1];
	const struct kverbs_ca_port_attr *got;
	int i, seen = 0;

	got = ca_rig_port(test, m->ibdev, ca_rig_open(test, m->ibdev), 1);
	for (i = 0; i < MOCK_GIDS; i++) {
		const struct kverbs_ca_gid *gid = ca_rig_gid(got, i);

		if (!test_bit(i, &p->valid)) {
			KUNIT_EXPECT_FALSE(test, memchr_inv(gid, 0, sizeof(*gid)));
			continue;
		}
		seen++;
		KUNIT_EXPECT_MEMEQ(test, gid->gid, p->added[i].raw, 16);
		KUNIT_EXPECT_EQ(test, types[p->added_type[i]], gid->type);
		KUNIT_EXPECT_EQ(test, ndev->ifindex, gid->netdev);
	}
	KUNIT_EXPECT_GE(test, seen, 2);
}

static void any_length_gets_what_fits(struct kunit *test)
{
	struct mock *m = ports_up(test, 2);
	u64 h = ca_rig_open(test, m->ibdev);

	ca_rig_any_length(test, m->ibdev, &CA_REQ(QUERY_CA, .handle = h));
	ca_rig_any_length(test, m->ibdev, &CA_REQ(QUERY_PORT, .handle = h, .port = 1));
	ca_rig_any_length(test, m->ibdev, &CA_REQ(QUERY_PORT, .handle = h, .port = 2));
}

struct bad {
	const char *name;
	struct ib_ca_request req;
	ssize_t ret;
};

/* The test replaces a handle of 1 with an open one, and supplies a buffer if out_len is set. */
static const struct bad bad_queries[] = {
	{ "no version", { .op = KVERBS_CA_QUERY_CA, .version = 0, .handle = 1,
			  .out_len = 64 }, -EINVAL },
	{ "version 2", { .op = KVERBS_CA_QUERY_CA, .version = 2, .handle = 1,
			 .out_len = 64 }, -EINVAL },
	{ "no buffer", CA_REQ(QUERY_CA, .handle = 1), -EINVAL },
	{ "no operation", { .op = 0, .version = 1, .handle = 1 }, -EINVAL },
	{ "unknown operation", { .op = KVERBS_CA_SET_PEER + 1, .version = 1, .handle = 1 },
	  -EINVAL },
	{ "operation -1", { .op = -1, .version = 1, .handle = 1 }, -EINVAL },
	{ "unknown flag", CA_REQ(QUERY_CA, .handle = 1, .flags = 1 << 2,
				 .out_len = 64), -EINVAL },
	{ "flag of OPEN", CA_REQ(QUERY_CA, .handle = 1,
				 .flags = KVERBS_CA_SHARED, .out_len = 64),
	  -EINVAL },
	{ "port of a CA", CA_REQ(QUERY_CA, .handle = 1, .port = 1,
				 .out_len = 64), -EINVAL },
	{ "object", CA_REQ(QUERY_CA, .handle = 1, .object = 1, .out_len = 64),
	  -EINVAL },
	{ "input length", CA_REQ(QUERY_CA, .handle = 1, .in_len = 1,
				 .out_len = 64), -EINVAL },
	{ "port 0", CA_REQ(QUERY_PORT, .handle = 1, .out_len = 64), -EINVAL },
	{ "port 3", CA_REQ(QUERY_PORT, .handle = 1, .port = 3, .out_len = 64),
	  -EINVAL },
	{ "last port", CA_REQ(QUERY_PORT, .handle = 1, .port = U32_MAX,
			      .out_len = 64), -EINVAL },
	{ "no handle", CA_REQ(QUERY_CA, .out_len = 64), -ENOENT },
	{ "7 bytes", CA_REQ(QUERY_CA, .handle = 1, .out_len = 7), -ENOSPC },
	{ "7 bytes of port 3", CA_REQ(QUERY_PORT, .handle = 1, .port = 3,
				      .out_len = 7), -ENOSPC },
};

KUNIT_ARRAY_PARAM_DESC(bad_query, bad_queries, name);

static void not_called(struct ib_ca_request *req)
{
	req->context = req;
}

static void bad_query_is_refused_at_once(struct kunit *test)
{
	const struct bad *bad = test->param_value;
	struct mock *m = ports_up(test, 2);
	struct ib_ca_request req = bad->req;
	u8 buf[64];

	memset(buf, 0xa5, sizeof(buf));
	if (req.handle)
		req.handle = ca_rig_open(test, m->ibdev);
	if (req.out_len)
		req.out = buf;
	req.done = not_called;
	KUNIT_EXPECT_EQ(test, bad->ret, ib_ca_call(m->ibdev, &req));
	KUNIT_EXPECT_EQ(test, bad->ret, ib_ca_submit(m->ibdev, &req));
	KUNIT_EXPECT_NULL(test, req.context);
	KUNIT_EXPECT_FALSE(test, memchr_inv(buf, 0xa5, sizeof(buf)));
}

static void input_address_is_refused(struct kunit *test)
{
	struct mock *m = ports_up(test, 1);
	u64 h = ca_rig_open(test, m->ibdev), word[8] = {};

	KUNIT_EXPECT_EQ(test, -EINVAL,
			CA_CALL(m->ibdev, QUERY_CA, .handle = h, .in = word,
				.out = word, .out_len = sizeof(word)));
	KUNIT_EXPECT_EQ(test, -EINVAL, CA_CALL(m->ibdev, QUERY_CA, .handle = h, .out_len = 8));
	KUNIT_EXPECT_EQ(test, -ENOSPC, CA_CALL(m->ibdev, QUERY_CA, .handle = h, .out = word));
}

struct question {
	struct ib_device *ibdev;
	struct ib_ca_request req;
	ssize_t ret;
	spinlock_t lock;
};

static void ask(void *arg)
{
	struct question *q = arg;

	q->ret = ib_ca_submit(q->ibdev, &q->req);
}

static void ask_under_a_lock(struct question *q)
{
	unsigned long flags;

	spin_lock_irqsave(&q->lock, flags);
	ask(q);
	spin_unlock_irqrestore(&q->lock, flags);
}

static void expect_answer(struct kunit *test, struct question *q, const struct kverbs_ca_attr *want)
{
	KUNIT_EXPECT_EQ(test, want->size, q->ret);
	KUNIT_EXPECT_MEMEQ(test, q->req.out, want, want->size);
	memset(q->req.out, 0, want->size);
	q->ret = 0;
}

static void query_is_answered_at_once_in_any_context(struct kunit *test)
{
	struct mock *m = ports_up(test, 2);
	u64 h = ca_rig_open(test, m->ibdev);
	const struct kverbs_ca_attr *want = ca_rig_attr(test, m->ibdev, h);
	struct question q = {
		.ibdev = m->ibdev,
		.req = CA_REQ(QUERY_CA, .handle = h, .done = not_called),
	};

	spin_lock_init(&q.lock);
	q.req.out = kvt_zalloc(test, want->size);
	q.req.out_len = want->size;
	ask(&q);
	expect_answer(test, &q, want);
	kvt_run_in_softirq(ask, &q);
	expect_answer(test, &q, want);
	kvt_run_in_hardirq(ask, &q);
	expect_answer(test, &q, want);
	ask_under_a_lock(&q);
	expect_answer(test, &q, want);
	KUNIT_EXPECT_NULL(test, q.req.context);
}

static void handle_of_nobody_is_refused_in_any_context(struct kunit *test)
{
	struct mock *m = ports_up(test, 1);
	u64 h = ca_rig_open(test, m->ibdev), word;
	struct question q = {
		.ibdev = m->ibdev,
		.req = CA_REQ(QUERY_CA, .handle = h + BIT_ULL(32),
			      .out = &word, .out_len = sizeof(word)),
	};

	kvt_run_in_hardirq(ask, &q);
	KUNIT_EXPECT_EQ(test, -ENOENT, q.ret);
	q.req.handle = h + 1;
	kvt_run_in_hardirq(ask, &q);
	KUNIT_EXPECT_EQ(test, -ENOENT, q.ret);
	q.req.handle = h;
	kvt_run_in_hardirq(ask, &q);
	KUNIT_EXPECT_EQ(test, -EOVERFLOW, q.ret);
}

static struct kunit_case ca_query_cases[] = {
	KUNIT_CASE(attributes_are_those_of_the_driver),
	KUNIT_CASE(nothing_unknown_gets_through),
	KUNIT_CASE(ports_are_those_of_the_driver),
	KUNIT_CASE(all_ports_follow_the_attributes),
	KUNIT_CASE(switch_has_port_0),
	KUNIT_CASE(ethernet_port_is_of_no_subnet),
	KUNIT_CASE(gids_of_an_ethernet_port_have_types),
	KUNIT_CASE(any_length_gets_what_fits),
	KUNIT_CASE_PARAM(bad_query_is_refused_at_once, bad_query_gen_params),
	KUNIT_CASE(input_address_is_refused),
	KUNIT_CASE(query_is_answered_at_once_in_any_context),
	KUNIT_CASE(handle_of_nobody_is_refused_in_any_context),
	{}
};
KVT_SUITE(ca_query);

MODULE_DESCRIPTION("KUnit: queries of a channel adapter");
MODULE_LICENSE("GPL");
