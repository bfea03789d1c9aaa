// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls that must not allocate memory: the first allocation of each would fail, and the case
 * fails if there was one. See QUIET().
 */
#include <linux/etherdevice.h>
#include <linux/if_link.h>
#include <linux/kernfs.h>
#include <linux/scatterlist.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_sysfs.h>
#include <rdma/ib_umem.h>
#include <rdma/mr_pool.h>
#include <rdma/restrack.h>
#include <kverbs/completion.h>
#include <kverbs/contract.h>
#include <kverbs/delay.h>

#include "ca/rig.h"
#include "lib/client.h"
#include "lib/dmabuf_rig.h"
#include "fault/sweep.h"
#include "lib/mock.h"
#include "lib/objects.h"
#include "peer/rig.h"

#define ACCESS		(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE)

#define EXPECT_QUIET(test, expected, call)				\
	KUNIT_EXPECT_EQ(test, expected, QUIET(test, call))

/* --- devices, ports, tables -------------------------------------------------- */

/* The directory that sysfs has for port 1. */
static struct kobject *directory_of_a_port(struct kunit *test, struct ib_device *ibdev)
{
	struct kernfs_node *ports, *port;
	struct kobject *kobj;

	ports = KVT_PTR(test, kernfs_find_and_get(ibdev->dev.kobj.sd, "ports"));
	port = kernfs_find_and_get(ports, "1");
	kernfs_put(ports);
	KUNIT_ASSERT_NOT_NULL(test, port);
	kobj = port->priv;
	kernfs_put(port);
	return kobj;
}

static void queries_of_a_port(struct kunit *test)
{
	struct ib_device *ibdev;
	struct kobject *kobj;
	enum ib_port_state state;
	struct ib_port_attr attr;
	char fw[IB_FW_VERSION_NAME_MAX];
	u16 pkey, index;
	u32 port = 0;
	u8 lmc;

	ibdev = mock_up(test, "kvtm_a")->ibdev;
	kobj = directory_of_a_port(test, ibdev);
	KUNIT_EXPECT_PTR_EQ(test, ibdev, QUIET(test, ib_port_sysfs_get_ibdev_kobj(kobj, &port)));
	KUNIT_EXPECT_EQ(test, 1, port);
	EXPECT_QUIET(test, 0, ib_query_port(ibdev, 1, &attr));
	QUIET_VOID(test, ib_port_attr_changed(ibdev, 1));
	EXPECT_QUIET(test, 0, ib_query_pkey(ibdev, 1, 1, &pkey));
	EXPECT_QUIET(test, 0, ib_find_pkey(ibdev, 1, pkey, &index));
	EXPECT_QUIET(test, 0, ib_get_cached_lmc(ibdev, 1, &lmc));
	EXPECT_QUIET(test, 0, ib_get_cached_port_state(ibdev, 1, &state));
	EXPECT_QUIET(test, 0, ib_get_cached_pkey(ibdev, 1, 1, &pkey));
	EXPECT_QUIET(test, 0, ib_find_cached_pkey(ibdev, 1, pkey, &index));
	EXPECT_QUIET(test, 0, ib_find_exact_cached_pkey(ibdev, 1, pkey, &index));
	EXPECT_QUIET(test, IB_LINK_LAYER_INFINIBAND, rdma_port_get_link_layer(ibdev, 1));
	EXPECT_QUIET(test, RDMA_TRANSPORT_IB, rdma_node_get_transport(RDMA_NODE_IB_CA));
	EXPECT_QUIET(test, true, rdma_dev_access_netns(ibdev, &init_net));
	QUIET_VOID(test, ib_get_device_fw_str(ibdev, fw));
}

static bool any_gid(const union ib_gid *gid, const struct ib_gid_attr *attr, void *context)
{
	return true;
}

/* Looks up GID table entry 0 of an InfiniBand port by each function. */
static void lookups_of_a_gid(struct kunit *test)
{
	const struct ib_gid_attr *attr;
	struct ib_device *ibdev;
	union ib_gid gid;
	u16 index;
	u32 port;

	ibdev = mock_up(test, "kvtm_a")->ibdev;
	EXPECT_QUIET(test, 0, rdma_query_gid(ibdev, 1, 0, &gid));
	EXPECT_QUIET(test, false, rdma_is_zero_gid(&gid));
	EXPECT_QUIET(test, 0, ib_find_gid(ibdev, &gid, &port, &index));
	attr = KVT_PTR(test, QUIET(test, rdma_find_gid(ibdev, &gid, IB_GID_TYPE_IB, NULL)));
	QUIET_VOID(test, rdma_put_gid_attr(attr));
	attr = KVT_PTR(test, QUIET(test, rdma_find_gid_by_port(ibdev, &gid, IB_GID_TYPE_IB, 1,
							       NULL)));
	rdma_put_gid_attr(attr);
	attr = KVT_PTR(test, QUIET(test, rdma_find_gid_by_filter(ibdev, &gid, 1, any_gid, NULL)));
	rdma_put_gid_attr(attr);
	attr = KVT_PTR(test, QUIET(test, rdma_get_gid_attr(ibdev, 1, 0)));
	QUIET_VOID(test, rdma_hold_gid_attr(attr));
	KUNIT_EXPECT_NULL(test, QUIET(test, rdma_read_gid_hw_context(attr)));
	rdma_put_gid_attr(attr);
	rdma_put_gid_attr(attr);
}

static void lookups_of_a_network_device(struct kunit *test)
{
	const struct ib_gid_attr *attr;
	struct net_device *ndev, *got;
	struct ib_device *ibdev;
	u8 width, mac[ETH_ALEN];
	u16 speed, vlan;

	ndev = kvt_netdev(test);
	ibdev = mock_up_eth(test, "kvtm_a", ndev)->ibdev;
	KUNIT_ASSERT_EQ(test, 0, ib_device_set_netdev(ibdev, ndev, 1));
	got = QUIET(test, ib_device_get_netdev(ibdev, 1));
	KUNIT_EXPECT_PTR_EQ(test, ndev, got);
	dev_put(got);
	KUNIT_EXPECT_PTR_EQ(test, ibdev,
			    QUIET(test, ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN)));
	QUIET_VOID(test, ib_device_put(ibdev));
	KUNIT_EXPECT_PTR_EQ(test, ibdev,
			    QUIET(test, ib_device_get_by_name("kvtm_a",
							      RDMA_DRIVER_UNKNOWN)));
	ib_device_put(ibdev);
	attr = KVT_PTR(test, rdma_get_gid_attr(ibdev, 1, 0));
	EXPECT_QUIET(test, 0, rdma_read_gid_l2_fields(attr, &vlan, mac));
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, ndev, QUIET(test, rdma_read_gid_attr_ndev_rcu(attr)));
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	EXPECT_QUIET(test, 0, ib_get_eth_speed(ibdev, 1, &speed, &width));
}

static void ignore(struct ib_event_handler *handler, struct ib_event *event)
{
}

static void event_handlers_and_client_data(struct kunit *test)
{
	struct ib_event_handler handler;
	struct ib_device *ibdev;
	struct kvt_client *c;

	ibdev = mock_up(test, "kvtm_a")->ibdev;
	INIT_IB_EVENT_HANDLER(&handler, ibdev, ignore);
	QUIET_VOID(test, ib_register_event_handler(&handler));
	QUIET_VOID(test, ib_unregister_event_handler(&handler));
	c = kvt_client_up(test, "A", kvt_trace_new(test));
	QUIET_VOID(test, ib_set_client_data(ibdev, &c->client, NULL));
	QUIET_VOID(test, ib_set_client_data(ibdev, &c->client, c->data));
}

static void words(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");

	QUIET_VOID(test, ibdev_printk(KERN_DEBUG, m->ibdev, "a few\n"));
	KUNIT_EXPECT_NOT_NULL(test, QUIET(test, ib_event_msg(IB_EVENT_CQ_ERR)));
	KUNIT_EXPECT_NOT_NULL(test, QUIET(test, ib_wc_status_msg(IB_WC_SUCCESS)));
	EXPECT_QUIET(test, 1, ib_rate_to_mult(IB_RATE_2_5_GBPS));
	EXPECT_QUIET(test, IB_RATE_2_5_GBPS, mult_to_ib_rate(1));
	EXPECT_QUIET(test, 2500, ib_rate_to_mbps(IB_RATE_2_5_GBPS));
	EXPECT_QUIET(test, true, ib_modify_qp_is_ok(IB_QPS_RESET, IB_QPS_INIT, IB_QPT_RC,
						    IB_QP_STATE | IB_QP_PKEY_INDEX |
						    IB_QP_PORT | IB_QP_ACCESS_FLAGS));
}

/* The case does not end before the checker has its mode again. */
static void contract_checker(struct kunit *test)
{
	struct ib_contract_report report;
	enum ib_contract_mode mode = QUIET(test, ib_contract_get_mode());

	kvt_not_with_rt(test, "there is no checker");
	EXPECT_QUIET(test, 0, ib_contract_set_mode(IB_CONTRACT_OFF));
	EXPECT_QUIET(test, 0, ib_contract_set_mode(IB_CONTRACT_WARN));
	KUNIT_EXPECT_EQ(test, 0, ib_contract_set_mode(mode));
	EXPECT_QUIET(test, 0, ib_contract_count(IB_RULES));
	EXPECT_QUIET(test, false, ib_contract_read(UINT_MAX, &report));
}

static void stand_still(void *arg)
{
	++*(int *)arg;
}

static void places_to_stand_still(struct kunit *test)
{
	int stood = 0;

	QUIET_VOID(test, kverbs_delay_set("here", stand_still, &stood));
	QUIET_VOID(test, kverbs_delay("here"));
	EXPECT_QUIET(test, true, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 1, stood);
}

/* --- objects ----------------------------------------------------------------- */

/* The objects that the calls are made on. */
struct objects {
	struct mock *m;		/* the device */
	struct ib_pd *pd;	/* PD */
	struct ib_cq *cq;	/* CQ */
	struct ib_qp *qp;	/* QP */
};

static void objects_up(struct kunit *test, struct objects *o, enum ib_poll_context ctx)
{
	struct ib_qp_init_attr init;

	o->m = mock_up(test, "kvtm_a");
	o->pd = kvt_pd(test, o->m->ibdev);
	o->cq = kvt_cq(test, o->m->ibdev, 32, ctx);
	kvt_qp_init(&init, o->cq, o->cq);
	o->qp = kvt_qp(test, o->pd, &init);
}

static void queue_pairs(struct kunit *test)
{
	const struct ib_send_wr *bad_send;
	const struct ib_recv_wr *bad_recv;
	struct ib_qp_init_attr init;
	struct ib_send_wr send = {};
	struct ib_recv_wr recv = {};
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1,
	};
	struct objects o;

	objects_up(test, &o, IB_POLL_DIRECT);
	EXPECT_QUIET(test, 0, ib_modify_qp(o.qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
						     IB_QP_PORT | IB_QP_ACCESS_FLAGS));
	EXPECT_QUIET(test, 0, ib_query_qp(o.qp, &attr, IB_QP_STATE, &init));
	EXPECT_QUIET(test, 0, ib_post_send_watched(o.qp, &send, &bad_send));
	EXPECT_QUIET(test, 0, ib_post_recv_watched(o.qp, &recv, &bad_recv));
	QUIET_VOID(test, ib_post_send_failed(o.qp, &send, -EINVAL));
	QUIET_VOID(test, ib_post_recv_failed(o.qp, &recv, -EINVAL));
	QUIET_VOID(test, ib_qp_notify_event(o.qp, IB_EVENT_COMM_EST));
}

static void drains(struct kunit *test)
{
	struct objects o;

	objects_up(test, &o, IB_POLL_DIRECT);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(o.qp, 1));
	QUIET_VOID(test, ib_drain_sq(o.qp));
	QUIET_VOID(test, ib_drain_rq(o.qp));
	QUIET_VOID(test, ib_drain_qp(o.qp));
	KUNIT_EXPECT_EQ(test, 2, mock_calls(o.m, MOCK_post_send));
	KUNIT_EXPECT_EQ(test, 2, mock_calls(o.m, MOCK_post_recv));
}

static void shared_receive_queues(struct kunit *test)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = 8, .max_sge = 1 },
	};
	const struct ib_recv_wr *bad;
	struct ib_recv_wr wr = {};
	struct ib_srq *srq;
	struct objects o;

	objects_up(test, &o, IB_POLL_DIRECT);
	srq = KVT_PTR(test, ib_create_srq(o.pd, &init));
	EXPECT_QUIET(test, 0, ib_query_srq(srq, &init.attr));
	init.attr.srq_limit = 2;
	EXPECT_QUIET(test, 0, ib_modify_srq(srq, &init.attr, IB_SRQ_LIMIT));
	EXPECT_QUIET(test, 0, ib_post_srq_recv_watched(srq, &wr, &bad));
	QUIET_VOID(test, ib_post_srq_recv_failed(srq, &wr, -EINVAL));
	QUIET_VOID(test, ib_srq_notify_event(srq, IB_EVENT_SRQ_LIMIT_REACHED));
	ib_destroy_srq(srq);
}

static void completion_queues(struct kunit *test)
{
	struct ib_cq *cq;
	struct objects o;
	struct ib_wc wc;

	objects_up(test, &o, IB_POLL_DIRECT);
	EXPECT_QUIET(test, 0, ib_process_cq_direct(o.cq, -1));
	EXPECT_QUIET(test, 0, ib_poll_cq_watched(o.cq, 1, &wc));
	EXPECT_QUIET(test, 0, ib_req_notify_cq_watched(o.cq, IB_CQ_NEXT_COMP));
	cq = kvt_cq(test, o.m->ibdev, 32, IB_POLL_WORKQUEUE);
	EXPECT_QUIET(test, 0, ib_cq_set_weight(cq, 2));
	EXPECT_QUIET(test, 0, rdma_set_cq_moderation(cq, 1, 1));
	EXPECT_QUIET(test, 0, ib_resize_cq(cq, 64));
	EXPECT_QUIET(test, 0, ib_cq_flush(cq));
	QUIET_VOID(test, ib_cq_notify(cq));
	QUIET_VOID(test, ib_cq_notify_event(cq, IB_EVENT_CQ_ERR));
}

static void addresses(struct kunit *test)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB };
	struct rdma_ah_attr copy = {}, moved = {};
	const struct ib_wc wc = { .slid = 5, .port_num = 1 };
	const struct ib_gid_attr *gid;
	struct objects o;
	struct ib_ah *ah;

	objects_up(test, &o, IB_POLL_DIRECT);
	EXPECT_QUIET(test, 0, ib_init_ah_attr_from_wc(o.m->ibdev, 1, &wc, NULL, &attr));
	ah = KVT_PTR(test, rdma_create_ah(o.pd, &attr, 0));
	EXPECT_QUIET(test, 0, rdma_modify_ah(ah, &attr));
	EXPECT_QUIET(test, 0, rdma_query_ah(ah, &attr));
	rdma_destroy_ah(ah, 0);
	gid = KVT_PTR(test, rdma_get_gid_attr(o.m->ibdev, 1, 0));
	QUIET_VOID(test, rdma_move_grh_sgid_attr(&attr, NULL, 0, 64, 0, gid));
	QUIET_VOID(test, rdma_copy_ah_attr(&copy, &attr));
	QUIET_VOID(test, rdma_replace_ah_attr(&copy, &attr));
	QUIET_VOID(test, rdma_move_ah_attr(&moved, &copy));
	QUIET_VOID(test, rdma_destroy_ah_attr(&moved));
	rdma_destroy_ah_attr(&attr);
}

/* A GRH whose IP version is 6; all its other fields are zero. */
static void headers_of_a_packet(struct kunit *test)
{
	union rdma_network_hdr hdr = {};
	union ib_gid from, to;

	hdr.ibgrh.version_tclass_flow = cpu_to_be32(6 << 28);
	EXPECT_QUIET(test, 6, ib_get_rdma_header_version(&hdr));
	EXPECT_QUIET(test, 0, ib_get_gids_from_rdma_hdr(&hdr, RDMA_NETWORK_IPV6, &from, &to));
}

static int take_page(struct ib_mr *mr, u64 addr)
{
	return 0;
}

static void regions(struct kunit *test)
{
	struct ib_mr *mr, *pooled;
	struct scatterlist sg;
	struct objects o;
	void *page;

	objects_up(test, &o, IB_POLL_DIRECT);
	page = kvt_zalloc(test, PAGE_SIZE);
	sg_init_one(&sg, page, PAGE_SIZE);
	mr = kvt_mr(test, o.pd, 8);
	EXPECT_QUIET(test, 1, ib_dma_virt_map_sg(o.m->ibdev, &sg, 1));
	EXPECT_QUIET(test, 1, ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE));
	EXPECT_QUIET(test, 1, ib_sg_to_pages(mr, &sg, 1, NULL, take_page));
	KUNIT_ASSERT_EQ(test, 0, ib_mr_pool_init(o.qp, &o.qp->rdma_mrs, 1,
						 IB_MR_TYPE_MEM_REG, 8, 0));
	pooled = QUIET(test, ib_mr_pool_get(o.qp, &o.qp->rdma_mrs));
	KUNIT_EXPECT_NOT_NULL(test, pooled);
	if (pooled)
		QUIET_VOID(test, ib_mr_pool_put(o.qp, &o.qp->rdma_mrs, pooled));
	ib_mr_pool_destroy(o.qp, &o.qp->rdma_mrs);
}

static void windows(struct kunit *test)
{
	struct ib_fmr_attr fmr_attr = { .max_pages = 8, .max_maps = 1 };
	struct ib_mw_bind bind = {};
	struct ib_fmr *fmr;
	struct objects o;
	struct ib_mw *mw;
	u64 page = 0;
	LIST_HEAD(list);

	objects_up(test, &o, IB_POLL_DIRECT);
	mw = KVT_PTR(test, ib_alloc_mw(o.pd, IB_MW_TYPE_1));
	bind.bind_info.mr = kvt_mr(test, o.pd, 4);
	EXPECT_QUIET(test, 0, ib_bind_mw(o.qp, mw, &bind));
	ib_dealloc_mw(mw);
	fmr = KVT_PTR(test, ib_alloc_fmr(o.pd, ACCESS, &fmr_attr));
	EXPECT_QUIET(test, 0, ib_map_phys_fmr_watched(fmr, &page, 1, 0));
	list_add(&fmr->list, &list);
	EXPECT_QUIET(test, 0, ib_unmap_fmr(&list));
	list_del(&fmr->list);
	ib_dealloc_fmr(fmr);
}

static void lists_of_objects(struct kunit *test)
{
	struct rdma_restrack_entry *res;
	struct objects o;

	objects_up(test, &o, IB_POLL_DIRECT);
	res = KVT_PTR(test, QUIET(test, rdma_restrack_get_byid(o.m->ibdev, RDMA_RESTRACK_PD,
							       o.pd->res.id)));
	EXPECT_QUIET(test, 0, rdma_restrack_put(res));
}

/* --- optional driver methods -------------------------------------------------- */

static int take_group(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	return 0;
}

static int set_state(struct ib_device *ibdev, int vf, u32 port, int state)
{
	return 0;
}

static int get_config(struct ib_device *ibdev, int vf, u32 port, struct ifla_vf_info *info)
{
	return 0;
}

static int get_stats(struct ib_device *ibdev, int vf, u32 port, struct ifla_vf_stats *stats)
{
	return 0;
}

static int get_guid(struct ib_device *ibdev, int vf, u32 port, struct ifla_vf_guid *node,
		    struct ifla_vf_guid *of_port)
{
	return 0;
}

static int set_guid(struct ib_device *ibdev, int vf, u32 port, u64 guid, int type)
{
	return 0;
}

static int map_both(struct ib_mr *mr, struct scatterlist *data_sg, int data_sg_nents,
		    unsigned int *data_sg_offset, struct scatterlist *meta_sg,
		    int meta_sg_nents, unsigned int *meta_sg_offset)
{
	return data_sg_nents + meta_sg_nents;
}

static int mr_status(struct ib_mr *mr, u32 check_mask, struct ib_mr_status *status)
{
	return 0;
}

static const struct cpumask *vector_affinity(struct ib_device *ibdev, int vector)
{
	return cpumask_of(0);
}

static const struct ib_device_ops more_ops = {
	.get_vector_affinity = vector_affinity,
	.attach_mcast = take_group,
	.detach_mcast = take_group,
	.set_vf_link_state = set_state,
	.get_vf_config = get_config,
	.get_vf_stats = get_stats,
	.get_vf_guid = get_guid,
	.set_vf_guid = set_guid,
	.map_mr_sg_pi = map_both,
	.check_mr_status = mr_status,
};

static void virtual_functions(struct kunit *test)
{
	struct ifla_vf_guid node, port;
	struct ifla_vf_stats stats;
	struct ifla_vf_info info;
	struct ib_device *ibdev = mock_up(test, "kvtm_a")->ibdev;

	QUIET_VOID(test, ib_set_device_ops(ibdev, &more_ops));
	EXPECT_QUIET(test, 0, ib_set_vf_link_state(ibdev, 0, 1, 0));
	EXPECT_QUIET(test, 0, ib_get_vf_config(ibdev, 0, 1, &info));
	EXPECT_QUIET(test, 0, ib_get_vf_stats(ibdev, 0, 1, &stats));
	EXPECT_QUIET(test, 0, ib_get_vf_guid(ibdev, 0, 1, &node, &port));
	EXPECT_QUIET(test, 0, ib_set_vf_guid(ibdev, 0, 1, 1, 0));
}

static void completion_vectors(struct kunit *test)
{
	struct ib_device *ibdev = mock_up(test, "kvtm_a")->ibdev;

	ib_set_device_ops(ibdev, &more_ops);
	KUNIT_EXPECT_PTR_EQ(test, cpumask_of(0),
			    QUIET(test, ib_get_vector_affinity_watched(ibdev, 0)));
}

static void multicast_groups(struct kunit *test)
{
	union ib_gid gid = { .raw = { 0xff, 0x12 } };
	struct ib_qp_init_attr init;
	struct objects o;
	struct ib_qp *qp;

	objects_up(test, &o, IB_POLL_DIRECT);
	ib_set_device_ops(o.m->ibdev, &more_ops);
	kvt_qp_init(&init, o.cq, o.cq);
	init.qp_type = IB_QPT_UD;
	qp = kvt_qp(test, o.pd, &init);
	EXPECT_QUIET(test, 0, ib_attach_mcast(qp, &gid, 0xc001));
	EXPECT_QUIET(test, 0, ib_detach_mcast(qp, &gid, 0xc001));
}

static void protection_of_a_region(struct kunit *test)
{
	struct ib_mr_status status;
	struct scatterlist sg;
	struct objects o;
	struct ib_mr *mr;
	void *page;

	objects_up(test, &o, IB_POLL_DIRECT);
	ib_set_device_ops(o.m->ibdev, &more_ops);
	page = kvt_zalloc(test, PAGE_SIZE);
	sg_init_one(&sg, page, PAGE_SIZE);
	mr = kvt_mr(test, o.pd, 8);
	mr->type = IB_MR_TYPE_INTEGRITY;
	EXPECT_QUIET(test, 2, ib_map_mr_sg_pi(mr, &sg, 1, NULL, &sg, 1, NULL, PAGE_SIZE));
	EXPECT_QUIET(test, 0, ib_check_mr_status(mr, 0, &status));
	mr->type = IB_MR_TYPE_MEM_REG;
}

/* --- memory ------------------------------------------------------------------ */

static void memory_of_the_process(struct kunit *test)
{
	struct ib_block_iter biter;
	struct ib_umem *umem;
	struct mock *m;
	int word;

	m = mock_up_umem(test, "kvtm_a");
	umem = KVT_PTR(test, ib_umem_get(m->ibdev, kvt_map(test, 2 * PAGE_SIZE), 2 * PAGE_SIZE,
					 ACCESS));
	EXPECT_QUIET(test, 0, ib_umem_copy_from(&word, umem, 0, sizeof(word)));
	EXPECT_QUIET(test, PAGE_SIZE, ib_umem_find_best_pgsz(umem, PAGE_SIZE, umem->address));
	QUIET_VOID(test, __rdma_block_iter_start(&biter, umem->sgt_append.sgt.sgl,
						 umem->sgt_append.sgt.nents, PAGE_SIZE));
	EXPECT_QUIET(test, true, __rdma_block_iter_next(&biter));
	QUIET_VOID(test, ib_umem_release(umem));
}

static void notify(struct ib_umem *umem, void *priv)
{
}

static void memory_of_a_peer(struct kunit *test)
{
	struct peer_mock *client;
	struct ib_umem *umem;
	struct peer_visit v;
	struct mock *m = mock_up_umem(test, "kvtm_a");

	client = peer_mock_up(test, 0, "kvt_gpu", PEER_CORE);
	peer_visit_begin(&v);
	umem = ib_umem_get_peer(m->ibdev, PEER_BASE(0), SZ_1M, ACCESS,
				IB_PEER_MEM_ALLOW | IB_PEER_MEM_INVAL_SUPP);
	peer_visit_end(&v);
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(umem));
	QUIET_VOID(test, ib_umem_activate_invalidation_notifier(umem, notify, NULL));
	peer_visit_begin(&v);
	QUIET_VOID(test, ib_umem_stop_invalidation_notifier(umem));
	ib_umem_release(umem);
	peer_visit_end(&v);
	PEER_EXPECT_IDLE(test, client);
}

/* Maps system memory; see p2p.c for memory of a PCI device. */
static void scatter_lists(struct kunit *test)
{
	struct scatterlist sg;
	struct sg_table sgt = { .sgl = &sg, .nents = 1, .orig_nents = 1 };
	struct ib_device *ibdev;
	void *page;

	ibdev = mock_up_umem(test, "kvtm_a")->ibdev;
	page = kvt_zalloc(test, PAGE_SIZE);
	sg_init_one(&sg, page, PAGE_SIZE);
	EXPECT_QUIET(test, false, ib_dma_pci_p2p_dma_supported(ibdev));
	EXPECT_QUIET(test, 1, ib_dma_device_map_sg(ibdev, &sg, 1, DMA_TO_DEVICE, 0));
	QUIET_VOID(test, ib_dma_device_unmap_sg(ibdev, &sg, 1, DMA_TO_DEVICE, 0));
	EXPECT_QUIET(test, 0, ib_dma_device_map_sgtable(ibdev, &sgt, DMA_TO_DEVICE, 0));
	QUIET_VOID(test, ib_dma_device_unmap_sgtable(ibdev, &sgt, DMA_TO_DEVICE, 0));
}

/* --- requests ---------------------------------------------------------------- */

/* Submission itself; the work item that executes the request allocates as ib_ca_call() does. */
static void requests_that_are_submitted(struct kunit *test)
{
	struct ca_async *a;
	struct mock *m = mock_up(test, "kvtm_a");

	a = ca_async_new(test, &CA_REQ(OPEN));
	EXPECT_QUIET(test, -EINPROGRESS, ib_ca_submit(m->ibdev, &a->req));
	KUNIT_EXPECT_EQ(test, 0, ca_async_wait(a));
	EXPECT_QUIET(test, -EALREADY, ib_ca_cancel(&a->req));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(m->ibdev, a->req.handle));
}

static struct kunit_case fail_nth_none_cases[] = {
	KUNIT_CASE_PARAM(queries_of_a_port, quiet_gen_params),
	KUNIT_CASE_PARAM(lookups_of_a_gid, quiet_gen_params),
	KUNIT_CASE_PARAM(lookups_of_a_network_device, quiet_gen_params),
	KUNIT_CASE_PARAM(event_handlers_and_client_data, quiet_gen_params),
	KUNIT_CASE_PARAM(words, quiet_gen_params),
	KUNIT_CASE_PARAM(contract_checker, quiet_gen_params),
	KUNIT_CASE_PARAM(places_to_stand_still, quiet_gen_params),
	KUNIT_CASE_PARAM(queue_pairs, quiet_gen_params),
	KUNIT_CASE_PARAM(drains, quiet_gen_params),
	KUNIT_CASE_PARAM(shared_receive_queues, quiet_gen_params),
	KUNIT_CASE_PARAM(completion_queues, quiet_gen_params),
	KUNIT_CASE_PARAM(addresses, quiet_gen_params),
	KUNIT_CASE_PARAM(headers_of_a_packet, quiet_gen_params),
	KUNIT_CASE_PARAM(regions, quiet_gen_params),
	KUNIT_CASE_PARAM(windows, quiet_gen_params),
	KUNIT_CASE_PARAM(lists_of_objects, quiet_gen_params),
	KUNIT_CASE_PARAM(virtual_functions, quiet_gen_params),
	KUNIT_CASE_PARAM(completion_vectors, quiet_gen_params),
	KUNIT_CASE_PARAM(multicast_groups, quiet_gen_params),
	KUNIT_CASE_PARAM(protection_of_a_region, quiet_gen_params),
	KUNIT_CASE_PARAM(memory_of_the_process, quiet_gen_params),
	KUNIT_CASE_PARAM(memory_of_a_peer, quiet_gen_params),
	KUNIT_CASE_PARAM(scatter_lists, quiet_gen_params),
	KUNIT_CASE_PARAM(requests_that_are_submitted, quiet_gen_params),
	{}
};
KVT_SUITE(fail_nth_none, .init = kvt_need_injection);
