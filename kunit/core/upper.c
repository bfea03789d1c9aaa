// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the core has for the kernel's own connection manager: clients' network devices, QPs
 * with rdma_rw contexts, Ethernet addresses that the IP stack knows, lists of objects that are
 * not the core's, files of ports.
 */
#include <linux/etherdevice.h>
#include <kverbs/upper.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sysfs.h>
#include <rdma/mr_pool.h>

#include "lib/client.h"
#include "lib/mock.h"
#include "lib/objects.h"

/* --- network devices of clients --------------------------------------------------- */

/* What the clients were asked. It serves one case at a time. */
static struct {
	char order[8];
	int nr;
	struct net_device *answer;
	struct kvt_gate gate;
	bool removed_in_time;
} asked;

static struct net_device *ask(char who, struct net_device *answer)
{
	if (asked.nr < sizeof(asked.order) - 1)
		asked.order[asked.nr++] = who;
	return answer;
}

static struct net_device *ask_a(struct ib_device *dev, u32 port, u16 pkey,
				const union ib_gid *gid, const struct sockaddr *addr, void *data)
{
	return ask('a', NULL);
}

static struct net_device *ask_b(struct ib_device *dev, u32 port, u16 pkey,
				const union ib_gid *gid, const struct sockaddr *addr, void *data)
{
	return ask(port == 1 && pkey == 0xffff ? 'b' : '?', asked.answer);
}

static struct net_device *ask_c(struct ib_device *dev, u32 port, u16 pkey,
				const union ib_gid *gid, const struct sockaddr *addr, void *data)
{
	return ask('c', NULL);
}

static struct net_device *ask_slowly(struct ib_device *dev, u32 port, u16 pkey,
				     const union ib_gid *gid, const struct sockaddr *addr,
				     void *data)
{
	kvt_gate_sleep(&asked.gate);
	return ask('s', NULL);
}

static struct kvt_client *client_up(struct kunit *test, const char *name,
				    struct kvt_trace *trace, typeof(ask_a) *method)
{
	struct kvt_client *c = kvt_client_new(test, name, trace);

	c->client.get_net_dev_by_params = method;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	return c;
}

static void three_clients_up(struct kunit *test)
{
	struct kvt_trace *trace = kvt_trace_new(test);

	memset(&asked, 0, sizeof(asked));
	client_up(test, "kvtc_a", trace, ask_a);
	client_up(test, "kvtc_none", trace, NULL);
	client_up(test, "kvtc_b", trace, ask_b);
	client_up(test, "kvtc_c", trace, ask_c);
}

static void clients_are_asked_in_order_until_one_answers(struct kunit *test)
{
	struct sockaddr addr = { .sa_family = AF_INET };
	/* Only compared. */
	struct net_device *ndev = kvt_zalloc(test, 64);
	struct mock *m = mock_up(test, "kvtm_a");

	three_clients_up(test);
	KUNIT_EXPECT_NULL(test, ib_get_net_dev_by_params(m->ibdev, 1, 0xffff, NULL, &addr));
	KUNIT_EXPECT_STREQ(test, "abc", asked.order);
	memset(&asked, 0, sizeof(asked));
	asked.answer = ndev;
	KUNIT_EXPECT_PTR_EQ(test, ndev,
			    ib_get_net_dev_by_params(m->ibdev, 1, 0xffff, NULL, &addr));
	KUNIT_EXPECT_STREQ(test, "ab", asked.order);
}

static void nobody_is_asked_about_an_ethernet_port(struct kunit *test)
{
	struct sockaddr addr = { .sa_family = AF_INET };
	struct mock *m = mock_up_eth(test, "kvtm_a", kvt_netdev(test));

	three_clients_up(test);
	KUNIT_EXPECT_NULL(test, ib_get_net_dev_by_params(m->ibdev, 1, 0xffff, NULL, &addr));
	KUNIT_EXPECT_EQ(test, 0, asked.nr);
}

static int ask_fn(void *arg)
{
	struct sockaddr addr = { .sa_family = AF_INET };
	struct mock *m = arg;

	return ib_get_net_dev_by_params(m->ibdev, 1, 0xffff, NULL, &addr) ? -EEXIST : 0;
}

static int unregister_fn(void *arg)
{
	kvt_client_unregister(arg);
	return 0;
}

/* Else requests that follow each other closely would keep the client for ever. */
static void client_whose_removal_waits_is_not_asked(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_thread *first, *unreg;
	struct kvt_client *c;

	memset(&asked, 0, sizeof(asked));
	kvt_gate_init(&asked.gate);
	c = client_up(test, "kvtc_s", kvt_trace_new(test), ask_slowly);
	first = kvt_thread_start(test, -1, ask_fn, m);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&asked.gate.entered));
	unreg = kvt_thread_start(test, -1, unregister_fn, c);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(unreg));
	KUNIT_EXPECT_EQ(test, 0, ask_fn(m));
	kvt_gate_open(&asked.gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(first));
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(unreg));
	KUNIT_EXPECT_TRUE(test, asked.gate.in_time);
	KUNIT_EXPECT_STREQ(test, "s", asked.order);
}

static struct completion answered;

static void remove_waits_for_request(struct kvt_client *c, struct ib_device *ibdev)
{
	kvt_gate_sleep(&asked.gate);
	asked.removed_in_time = kvt_wait(&answered);
}

static int ask_and_tell(void *arg)
{
	int ret = ask_fn(arg);

	complete(&answered);
	return ret;
}

static int rename_fn(void *arg)
{
	struct mock *m = arg;

	return ib_device_rename(m->ibdev, "kvtm_new");
}

/*
 * As rdma_destroy_id() of a listener waits for a request that is being handled. The rename
 * waits for the remove(); the request must not wait for the rename.
 */
static void removal_and_rename_let_requests_go_on(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_trace *trace = kvt_trace_new(test);
	struct kvt_thread *unreg, *rename, *request;
	struct kvt_client *c;

	memset(&asked, 0, sizeof(asked));
	kvt_gate_init(&asked.gate);
	init_completion(&answered);
	c = client_up(test, "kvtc_r", trace, NULL);
	c->on_remove = remove_waits_for_request;
	client_up(test, "kvtc_a", trace, ask_a);
	unreg = kvt_thread_start(test, -1, unregister_fn, c);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&asked.gate.entered));
	rename = kvt_thread_start(test, -1, rename_fn, m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(rename));
	request = kvt_thread_start(test, -1, ask_and_tell, m);
	kvt_gate_open(&asked.gate);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(unreg));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(request));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(rename));
	KUNIT_EXPECT_TRUE(test, asked.gate.in_time);
	KUNIT_EXPECT_TRUE(test, asked.removed_in_time);
	KUNIT_EXPECT_STREQ(test, "kvtm_new", dev_name(&m->ibdev->dev));
}

/* Of a few threads that take turns on one CPU. */
struct removal {
	struct mock *m;
	struct kvt_client *c;
	struct completion first_over;
};

static struct net_device *ask_slowly_first(struct ib_device *dev, u32 port, u16 pkey,
					   const union ib_gid *gid, const struct sockaddr *addr,
					   void *data)
{
	if (asked.nr)
		return NULL;
	kvt_gate_sleep(&asked.gate);
	return ask('s', asked.answer);
}

static int first_request_fn(void *arg)
{
	struct removal *rm = arg;
	int ret;

	sched_set_fifo(current);
	ret = ask_fn(rm->m);
	complete(&rm->first_over);
	return ret;
}

static int second_request_fn(void *arg)
{
	struct removal *rm = arg;

	sched_set_fifo(current);
	return ask_and_tell(rm->m);
}

static int remove_fn(void *arg)
{
	struct removal *rm = arg;

	sched_set_fifo(current);
	wait_for_completion(&rm->first_over);
	return unregister_fn(rm->c);
}

static void remove_waits_for_second(struct kvt_client *c, struct ib_device *ibdev)
{
	asked.removed_in_time = kvt_wait(&answered);
}

/*
 * The rename waits for a request, and another one for the rename. When the first is over, the removal
 * begins before the rename gets the CPU: the second must notice.
 */
static void removal_that_begins_before_the_rename_lets_requests_go_on(struct kunit *test)
{
	struct removal *rm = kvt_zalloc(test, sizeof(*rm));
	struct kvt_trace *trace = kvt_trace_new(test);
	struct kvt_thread *first, *unreg, *rename, *second;

	memset(&asked, 0, sizeof(asked));
	kvt_gate_init(&asked.gate);
	init_completion(&answered);
	init_completion(&rm->first_over);
	/* Only compared; the first request is over with it, and asks no other client. */
	asked.answer = kvt_zalloc(test, 64);
	rm->m = mock_up(test, "kvtm_a");
	rm->c = client_up(test, "kvtc_r", trace, NULL);
	rm->c->on_remove = remove_waits_for_second;
	client_up(test, "kvtc_s", trace, ask_slowly_first);
	first = kvt_thread_start(test, 0, first_request_fn, rm);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&asked.gate.entered));
	unreg = kvt_thread_start(test, 0, remove_fn, rm);
	rename = kvt_thread_start(test, 0, rename_fn, rm->m);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(rename));
	second = kvt_thread_start(test, 0, second_request_fn, rm);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(second));
	kvt_gate_open(&asked.gate);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(unreg));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(first));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(second));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(rename));
	KUNIT_EXPECT_TRUE(test, asked.removed_in_time);
}

/* --- rdma_rw contexts -------------------------------------------------------------- */

#define CONTEXTS	4

static int rw_fails;

static void rw_init_qp(struct ib_device *dev, struct ib_qp_init_attr *attr)
{
	attr->cap.max_send_wr += 3 * attr->cap.max_rdma_ctxs;
}

static int rw_init_mrs(struct ib_qp *qp, struct ib_qp_init_attr *attr)
{
	return rw_fails ?: ib_mr_pool_init(qp, &qp->rdma_mrs, attr->cap.max_rdma_ctxs,
					   IB_MR_TYPE_MEM_REG, 4, 0);
}

static const struct ib_rw_ops rw_ops = {
	.owner = THIS_MODULE,
	.init_qp = rw_init_qp,
	.init_mrs = rw_init_mrs,
};

static void forget_rw(void *unused)
{
	ib_set_rw_ops(NULL);
}

static void rw_up(struct kunit *test, int fails)
{
	rw_fails = fails;
	ib_set_rw_ops(&rw_ops);
	kvt_defer(test, forget_rw, NULL);
}

/* The attributes of a QP with contexts on a new device, in a new PD. */
static struct ib_pd *contexts_up(struct kunit *test, struct mock **m, struct ib_qp_init_attr *init)
{
	struct ib_cq *cq;

	*m = mock_up(test, "kvtm_a");
	cq = kvt_cq(test, (*m)->ibdev, 64, IB_POLL_SOFTIRQ);
	kvt_qp_init(init, cq, cq);
	init->cap.max_send_wr = 1;
	init->cap.max_rdma_ctxs = CONTEXTS;
	init->port_num = 1;
	return kvt_pd(test, (*m)->ibdev);
}

static void contexts_are_refused_where_there_are_none(struct kunit *test)
{
	struct ib_qp_init_attr init;
	struct mock *m;
	struct ib_pd *pd = contexts_up(test, &m, &init);

	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EOPNOTSUPP), ib_create_qp(pd, &init));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_create_qp));
}

static void contexts_come_and_go_with_the_qp(struct kunit *test)
{
	struct ib_qp_init_attr init;
	struct mock *m;
	struct ib_pd *pd = contexts_up(test, &m, &init);
	struct ib_qp *qp;

	rw_up(test, 0);
	qp = ib_create_qp(pd, &init);
	KUNIT_ASSERT_FALSE(test, IS_ERR(qp));
	KUNIT_EXPECT_EQ(test, 1 + 3 * CONTEXTS, init.cap.max_send_wr);
	KUNIT_EXPECT_EQ(test, CONTEXTS, atomic_read(&m->live[MOCK_MR]));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->live[MOCK_MR]));
}

static void failing_contexts_leave_no_qp(struct kunit *test)
{
	struct ib_qp_init_attr init;
	struct mock *m;
	struct ib_pd *pd = contexts_up(test, &m, &init);

	rw_up(test, -EXFULL);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EXFULL), ib_create_qp(pd, &init));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_create_qp));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->live[MOCK_QP]));
}

static void contexts_of_no_port_are_refused(struct kunit *test)
{
	struct ib_qp_init_attr init;
	struct mock *m;
	struct ib_pd *pd = contexts_up(test, &m, &init);

	rw_up(test, 0);
	init.port_num = 0;
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EINVAL), ib_create_qp(pd, &init));
}

/* --- Ethernet addresses of peers ------------------------------------------------------ */

static const u8 peer_mac[ETH_ALEN] = { 0x02, 0, 0, 0, 0, 0x77 };
/* The answer of the next look-up; it serves one case at a time. */
static int mac_is_found;

static int find_peer_mac(const union ib_gid *sgid, const union ib_gid *dgid, u8 *mac,
			 const struct ib_gid_attr *sgid_attr, int *hop_limit)
{
	if (memcmp(&sgid_attr->gid, sgid, sizeof(*sgid)))
		return -EILSEQ;
	ether_addr_copy(mac, peer_mac);
	*hop_limit = 3;
	return mac_is_found;
}

static const struct ib_addr_ops addr_ops = {
	.owner = THIS_MODULE,
	.find_mac = find_peer_mac,
};

static void forget_addr(void *unused)
{
	ib_set_addr_ops(NULL);
}

static void addr_up(struct kunit *test, int found)
{
	mac_is_found = found;
	ib_set_addr_ops(&addr_ops);
	kvt_defer(test, forget_addr, NULL);
}

/*
 * The address of the sender of a RoCE v2 datagram, from a device that does not report
 * Ethernet addresses.
 */
static int reply_to(struct kunit *test, struct rdma_ah_attr *attr)
{
	struct mock *m = mock_up_eth(test, "kvtm_a", kvt_netdev(test));
	struct ib_wc wc = {
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE,
		.network_hdr_type = RDMA_NETWORK_IPV6,
	};
	struct ib_grh grh = { .version_tclass_flow = cpu_to_be32(6U << 28) };
	const struct ib_gid_attr *gid;
	int i;

	for (i = 0; i < 16; i++) {
		gid = rdma_get_gid_attr(m->ibdev, 1, i);
		if (IS_ERR(gid))
			continue;
		if (gid->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP)
			grh.dgid = gid->gid;
		rdma_put_gid_attr(gid);
	}
	grh.sgid = grh.dgid;
	grh.sgid.raw[15] ^= 1;
	return ib_init_ah_attr_from_wc(m->ibdev, 1, &wc, &grh, attr);
}

static void address_of_a_sender_is_looked_up(struct kunit *test)
{
	struct rdma_ah_attr attr;

	addr_up(test, 0);
	KUNIT_ASSERT_EQ(test, 0, reply_to(test, &attr));
	KUNIT_EXPECT_MEMEQ(test, peer_mac, attr.roce.dmac, ETH_ALEN);
	KUNIT_EXPECT_EQ(test, 3, attr.grh.hop_limit);
	rdma_destroy_ah_attr(&attr);
}

/* The contract's checker would report a GID that is still held. */
static void sender_without_an_address_gets_no_reply(struct kunit *test)
{
	struct rdma_ah_attr attr;

	addr_up(test, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, reply_to(test, &attr));
}

static void nothing_looks_up_addresses_unless_told_how(struct kunit *test)
{
	struct rdma_ah_attr attr;

	KUNIT_EXPECT_EQ(test, -EHOSTUNREACH, reply_to(test, &attr));
}

/* --- lists of others' objects, and files of ports ------------------------------------ */

static void tracked_object_is_found_until_it_goes(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct rdma_restrack_entry *res = kvt_zalloc(test, sizeof(*res));
	struct rdma_restrack_entry *found;

	kref_init(&res->kref);
	init_completion(&res->comp);
	res->type = RDMA_RESTRACK_CM_ID;
	ib_track_add(m->ibdev, res);
	KUNIT_ASSERT_NE(test, 0, res->id);
	found = rdma_restrack_get_byid(m->ibdev, RDMA_RESTRACK_CM_ID, res->id);
	KUNIT_EXPECT_PTR_EQ(test, res, found);
	if (!IS_ERR(found))
		rdma_restrack_put(found);
	ib_track_del(m->ibdev, res);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-ENOENT),
			    rdma_restrack_get_byid(m->ibdev, RDMA_RESTRACK_CM_ID, res->id));
}

static ssize_t colour_show(struct ib_device *dev, u32 port, struct ib_port_attribute *attr,
			   char *buf)
{
	return sysfs_emit(buf, "red\n");
}

static IB_PORT_ATTR_RO(colour);

static struct attribute *paint[] = { &ib_port_attr_colour.attr, NULL };
static const struct attribute_group paint_group = { .name = "paint", .attrs = paint };
static const struct attribute_group *paints[] = { &paint_group, NULL };

/* Two directories of one name cannot be there at a time. */
static void files_of_a_port_are_gone_when_removed(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	int i;

	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, 0, ib_port_add_groups(m->ibdev, 1, paints));
		ib_port_remove_groups(m->ibdev, 1, paints);
	}
	KUNIT_EXPECT_EQ(test, -ENODEV, ib_port_add_groups(m->ibdev, 99, paints));
}

static void types_of_gids_have_the_names_of_sysfs(struct kunit *test)
{
	struct mock *ib = mock_up(test, "kvtm_a");
	struct mock *eth = mock_up_eth(test, "kvtm_b", kvt_netdev(test));

	KUNIT_EXPECT_STREQ(test, "IB/RoCE v1", ib_gid_type_str(IB_GID_TYPE_IB));
	KUNIT_EXPECT_STREQ(test, "IB/RoCE v1", ib_gid_type_str(IB_GID_TYPE_ROCE));
	KUNIT_EXPECT_STREQ(test, "RoCE v2", ib_gid_type_str(IB_GID_TYPE_ROCE_UDP_ENCAP));
	KUNIT_EXPECT_EQ(test, 0, ib_roce_gid_types(ib->ibdev, 1));
	KUNIT_EXPECT_EQ(test, BIT(IB_GID_TYPE_ROCE) | BIT(IB_GID_TYPE_ROCE_UDP_ENCAP),
			ib_roce_gid_types(eth->ibdev, 1));
}

static struct kunit_case core_upper_cases[] = {
	KUNIT_CASE(clients_are_asked_in_order_until_one_answers),
	KUNIT_CASE(nobody_is_asked_about_an_ethernet_port),
	KUNIT_CASE(client_whose_removal_waits_is_not_asked),
	KUNIT_CASE(removal_and_rename_let_requests_go_on),
	KUNIT_CASE(removal_that_begins_before_the_rename_lets_requests_go_on),
	KUNIT_CASE(contexts_are_refused_where_there_are_none),
	KUNIT_CASE(contexts_come_and_go_with_the_qp),
	KUNIT_CASE(failing_contexts_leave_no_qp),
	KUNIT_CASE(contexts_of_no_port_are_refused),
	KUNIT_CASE(address_of_a_sender_is_looked_up),
	KUNIT_CASE(sender_without_an_address_gets_no_reply),
	KUNIT_CASE(nothing_looks_up_addresses_unless_told_how),
	KUNIT_CASE(tracked_object_is_found_until_it_goes),
	KUNIT_CASE(files_of_a_port_are_gone_when_removed),
	KUNIT_CASE(types_of_gids_have_the_names_of_sysfs),
	{}
};
KVT_SUITE(core_upper);
MODULE_IMPORT_NS(KVERBS_INTERNAL);
