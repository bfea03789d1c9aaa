// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two connected queue pairs of the software HCA, with memory at both ends.
 */
#include <linux/irq_work.h>

#include "emu/rig.h"
#include "lib/objects.h"

/*
 * rig_pairs - test parameters: devices of the two ends
 */
const struct rig_pair rig_pairs[2] = {
	{ "within a device", "emu0", "emu0" },
	{ "between two", "emu0", "emu1" },
};
EXPORT_SYMBOL_GPL(rig_pairs);

static void rig_qp_event(struct ib_event *event, void *context)
{
	struct rig_end *e = context;

	e->event = event->event;
	complete(&e->got_event);
}

static void rig_called(struct ib_cq *cq, void *context)
{
	struct rig_end *e = context;

	atomic_inc(&e->called);
	complete(&e->got_call);
}

static void rig_unmap(void *arg)
{
	struct rig_end *e = arg;

	ib_dma_unmap_single(e->ibdev, e->dma, e->size, DMA_BIDIRECTIONAL);
	kfree(e->buf);
}

static void rig_make_cqs(struct kunit *test, struct rig_end *e)
{
	struct ib_cq_init_attr attr = { .cqe = RIG_CQE };

	e->scq = KVT_OWN(test, ib_create_cq(e->ibdev, rig_called, NULL, e, &attr), kvt_end_cq);
	e->rcq = KVT_OWN(test, ib_create_cq(e->ibdev, rig_called, NULL, e, &attr), kvt_end_cq);
}

/* A buffer that the end of the case frees. */
void rig_make_buf(struct kunit *test, struct rig_end *e, size_t size)
{
	e->size = size;
	e->buf = KVT_PTR(test, kzalloc(e->size, GFP_KERNEL));
	e->dma = ib_dma_map_single(e->ibdev, e->buf, e->size, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(e->ibdev, e->dma)) {
		kfree(e->buf);
		KUNIT_FAIL_AND_ABORT(test, "no DMA mapping");
	}
	kvt_defer(test, rig_unmap, e);
}

/**
 * rig_end_up() - set up an end, except for its queue pair
 * @test: the running case
 * @e: the end, zeroed
 * @name: name of the device
 * @port: port of the device
 *
 * The end has no global route; the case may give it one.
 */
void rig_end_up(struct kunit *test, struct rig_end *e, const char *name, u32 port)
{
	struct ib_port_attr attr = {};

	e->port = port;
	e->gid_index = -1;
	init_completion(&e->got_event);
	init_completion(&e->got_call);
	e->ibdev = kvt_device(test, name);
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(e->ibdev, port, &attr));
	e->lid = attr.lid;
	e->pd = kvt_pd(test, e->ibdev);
	rig_make_cqs(test, e);
	rig_make_buf(test, e, RIG_BUF);
}
EXPORT_SYMBOL_GPL(rig_end_up);

/**
 * rig_alloc() - allocate a rig with default attributes, without its ends
 * @test: the running case
 *
 * Return: the rig; the case may change its attributes.
 */
struct rig *rig_alloc(struct kunit *test)
{
	struct rig *r = kvt_zalloc(test, sizeof(*r));

	r->init.qp_type = IB_QPT_RC;
	r->init.sq_sig_type = IB_SIGNAL_REQ_WR;
	r->init.event_handler = rig_qp_event;
	r->init.cap.max_send_wr = RIG_WR;
	r->init.cap.max_recv_wr = RIG_WR;
	r->init.cap.max_send_sge = RIG_SGE;
	r->init.cap.max_recv_sge = RIG_SGE;
	r->init.cap.max_inline_data = RIG_INLINE;
	r->access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
		    IB_ACCESS_REMOTE_READ;
	r->mtu = IB_MTU_4096;
	r->timeout = 14;
	r->retry_cnt = 7;
	r->rnr_retry = 7;
	r->rnr_timer = 1;
	r->max_rd = 4;
	r->max_dest_rd = 4;
	return r;
}
EXPORT_SYMBOL_GPL(rig_alloc);

/**
 * rig_new() - make a rig, except for its queue pairs
 * @test: the running case
 * @dev_a: device of the first end
 * @dev_b: device of the second end
 *
 * Return: the rig; the case may change its attributes before rig_make_qps().
 */
struct rig *rig_new(struct kunit *test, const char *dev_a, const char *dev_b)
{
	struct rig *r = rig_alloc(test);

	rig_end_up(test, &r->a, dev_a, 1);
	rig_end_up(test, &r->b, dev_b, 1);
	return r;
}
EXPORT_SYMBOL_GPL(rig_new);

/**
 * rig_make_qp() - make the queue pair of one end, in RESET
 * @test: the running case
 * @r: the rig, which has the attributes
 * @e: the end
 */
void rig_make_qp(struct kunit *test, struct rig *r, struct rig_end *e)
{
	struct ib_qp_init_attr init = r->init;

	/* The end may be a copy of another one, but for @got_call, which is that of the CQ's end. */
	init_completion(&e->got_event);
	init.send_cq = e->scq;
	init.recv_cq = e->rcq;
	init.srq = e->srq;
	init.qp_context = e;
	e->qp = kvt_qp(test, e->pd, &init);
}
EXPORT_SYMBOL_GPL(rig_make_qp);

/**
 * rig_make_qps() - make both queue pairs, in RESET
 * @test: the running case
 * @r: from rig_new()
 */
void rig_make_qps(struct kunit *test, struct rig *r)
{
	rig_make_qp(test, r, &r->a);
	rig_make_qp(test, r, &r->b);
}
EXPORT_SYMBOL_GPL(rig_make_qps);

/**
 * rig_destroy_qp() - destroy an end's queue pair before the case ends
 * @test: the running case
 * @e: the end
 */
void rig_destroy_qp(struct kunit *test, struct rig_end *e)
{
	kvt_qp_put(test, e->qp);
	e->qp = NULL;
}
EXPORT_SYMBOL_GPL(rig_destroy_qp);

static bool rig_is_datagram(const struct rig_end *e)
{
	return e->qp->qp_type == IB_QPT_UD || e->qp->qp_type == IB_QPT_GSI;
}

/**
 * rig_to_init() - move one end from RESET to INIT
 * @r: the rig
 * @e: one of its ends
 *
 * Return: the result of ib_modify_qp().
 */
int rig_to_init(struct rig *r, struct rig_end *e)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = e->port,
		.pkey_index = e->pkey_index,
		.qp_access_flags = r->access,
		.qkey = e->qkey,
	};
	int mask = IB_QP_STATE | IB_QP_PKEY_INDEX;

	/* A GSI QP has a fixed port. */
	if (e->qp->qp_type != IB_QPT_GSI)
		mask |= IB_QP_PORT;
	mask |= rig_is_datagram(e) ? IB_QP_QKEY : IB_QP_ACCESS_FLAGS;
	return ib_modify_qp(e->qp, &attr, mask);
}
EXPORT_SYMBOL_GPL(rig_to_init);

/**
 * rig_set_route() - fill in the route from one end to another
 * @attr: filled in
 * @from: source of the route
 * @to: destination of the route
 */
void rig_set_route(struct rdma_ah_attr *attr, const struct rig_end *from, const struct rig_end *to)
{
	attr->type = rdma_ah_find_type(from->ibdev, from->port);
	rdma_ah_set_port_num(attr, from->port);
	if (attr->type == RDMA_AH_ATTR_TYPE_IB)
		rdma_ah_set_dlid(attr, to->lid);
	if (from->gid_index >= 0)
		rdma_ah_set_grh(attr, (union ib_gid *)&to->gid, 0, from->gid_index, 64, 0);
}
EXPORT_SYMBOL_GPL(rig_set_route);

/**
 * rig_to_rtr() - move one end from INIT to RTR
 * @r: the rig
 * @e: one of its ends
 * @peer: the end that it is to be connected to
 *
 * Return: the result of ib_modify_qp().
 */
int rig_to_rtr(struct rig *r, struct rig_end *e, struct rig_end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = r->mtu,
		.rq_psn = r->psn,
		.max_dest_rd_atomic = r->max_dest_rd,
		.min_rnr_timer = r->rnr_timer,
	};
	int mask = IB_QP_STATE;

	if (!rig_is_datagram(e)) {
		attr.dest_qp_num = peer->qp->qp_num;
		rig_set_route(&attr.ah_attr, e, peer);
		mask |= IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN;
	}
	if (e->qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	return ib_modify_qp(e->qp, &attr, mask);
}
EXPORT_SYMBOL_GPL(rig_to_rtr);

/**
 * rig_to_rts() - move one end from RTR to RTS
 * @r: the rig
 * @e: one of its ends
 *
 * Return: the result of ib_modify_qp().
 */
int rig_to_rts(struct rig *r, struct rig_end *e)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = r->timeout,
		.retry_cnt = r->retry_cnt,
		.rnr_retry = r->rnr_retry,
		.sq_psn = r->psn,
		.max_rd_atomic = r->max_rd,
	};
	int mask = IB_QP_STATE | IB_QP_SQ_PSN;

	if (e->qp->qp_type == IB_QPT_RC)
		mask |= IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			IB_QP_MAX_QP_RD_ATOMIC;
	return ib_modify_qp(e->qp, &attr, mask);
}
EXPORT_SYMBOL_GPL(rig_to_rts);

/**
 * rig_to() - change the state of a queue pair, and nothing else
 * @qp: the queue pair
 * @state: the new state
 *
 * Return: the result of ib_modify_qp().
 */
int rig_to(struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}
EXPORT_SYMBOL_GPL(rig_to);

/**
 * rig_state() - the state of a queue pair
 * @qp: the queue pair
 *
 * Return: the state, -1 if it cannot be queried.
 */
enum ib_qp_state rig_state(struct ib_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};

	if (ib_query_qp(qp, &attr, IB_QP_STATE, &init))
		return -1;
	return attr.qp_state;
}
EXPORT_SYMBOL_GPL(rig_state);

/**
 * rig_connect() - bring both queue pairs to RTS
 * @test: the running case
 * @r: rig with queue pairs in RESET
 */
void rig_connect(struct kunit *test, struct rig *r)
{
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->a, &r->b));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rts(r, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rts(r, &r->b));
}
EXPORT_SYMBOL_GPL(rig_connect);

/**
 * rig_reconnect() - connect both queue pairs anew
 * @test: the running case
 * @r: rig with queue pairs in any state
 */
void rig_reconnect(struct kunit *test, struct rig *r)
{
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RESET));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
	rig_connect(test, r);
}
EXPORT_SYMBOL_GPL(rig_reconnect);

/**
 * rig_connect_end() - bring one end from RESET to RTS
 * @test: the running case
 * @r: the rig, which has the attributes
 * @e: the end
 * @peer: what it is connected to, which may be itself; NULL for datagrams
 */
void rig_connect_end(struct kunit *test, struct rig *r, struct rig_end *e, struct rig_end *peer)
{
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, e));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, e, peer));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rts(r, e));
}
EXPORT_SYMBOL_GPL(rig_connect_end);

/**
 * rig_start() - make and connect both queue pairs
 * @test: the running case
 * @r: from rig_new()
 */
void rig_start(struct kunit *test, struct rig *r)
{
	rig_make_qps(test, r);
	rig_connect(test, r);
}
EXPORT_SYMBOL_GPL(rig_start);

/**
 * rig_up() - make a rig and connect its ends
 * @test: the running case
 * @dev_a: device of the first end
 * @dev_b: device of the second end
 *
 * Return: the rig, with both queue pairs in RTS.
 */
struct rig *rig_up(struct kunit *test, const char *dev_a, const char *dev_b)
{
	struct rig *r = rig_new(test, dev_a, dev_b);

	rig_start(test, r);
	return r;
}
EXPORT_SYMBOL_GPL(rig_up);

/**
 * rig_warm() - make a connection over which a message went, so that the peer is known
 * @test: the running case
 *
 * Both ends grant RIG_WARM_ACCESS, to the second end's registered buffer. They give up soon.
 *
 * Return: the rig.
 */
struct rig *rig_warm(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	r->access = RIG_WARM_ACCESS;
	r->timeout = 1;
	r->retry_cnt = 1;
	r->rnr_retry = 0;
	rig_start(test, r);
	rig_register(test, &r->b, RIG_WARM_ACCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1000, 0, RIG_WARM_LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, RIG_WARM_LEN));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 1000);
	return r;
}
EXPORT_SYMBOL_GPL(rig_warm);

/**
 * rig_fail_us() - let the first end fail: the second makes an illegal access to it
 * @meanwhile: struct rig_meanwhile, whose err is set to what ib_post_send() returned
 *
 * Context: Any but NMI.
 */
void rig_fail_us(void *meanwhile)
{
	struct rig_meanwhile *m = meanwhile;

	m->err = rig_rdma(&m->r->b, IB_WR_RDMA_WRITE, 7, 0, RIG_WARM_LEN, 0, RIG_BAD_KEY);
}
EXPORT_SYMBOL_GPL(rig_fail_us);

/**
 * rig_fail_peer() - let the second end fail by itself
 * @meanwhile: struct rig_meanwhile, whose err is set to what ib_post_send() returned
 *
 * Context: Any but NMI.
 */
void rig_fail_peer(void *meanwhile)
{
	struct rig_meanwhile *m = meanwhile;
	struct ib_sge sge = rig_sge(&m->r->b, 0, RIG_WARM_LEN);
	struct ib_send_wr wr;

	sge.lkey = RIG_BAD_KEY;
	rig_send_wr(&wr, 7, &sge, 1);
	m->err = ib_post_send(m->r->b.qp, &wr, NULL);
}
EXPORT_SYMBOL_GPL(rig_fail_peer);

/**
 * rig_invalidate() - invalidate the key of the second end's registered buffer
 * @meanwhile: struct rig_meanwhile, whose rig has had rig_register() of its second end, and
 *	whose err is set to what ib_post_send() returned
 *
 * Context: Any but NMI.
 */
void rig_invalidate(void *meanwhile)
{
	struct rig_meanwhile *m = meanwhile;

	m->err = rig_inv(&m->r->b, IB_WR_LOCAL_INV, 7, m->r->b.mr->rkey);
}
EXPORT_SYMBOL_GPL(rig_invalidate);

/**
 * rig_beside() - a connection to memory in the domain of another connection's first end
 * @test: the running case
 * @r: the other connection, whose first end is on "emu0"
 *
 * Return: the connection: its second end has a registered buffer, for rig_invalidate().
 */
struct rig *rig_beside(struct kunit *test, struct rig *r)
{
	struct rig *beside = rig_new(test, "emu1", "emu0");

	beside->b.pd = r->a.pd;
	rig_start(test, beside);
	rig_register(test, &beside->b, IB_ACCESS_LOCAL_WRITE);
	return beside;
}
EXPORT_SYMBOL_GPL(rig_beside);

/**
 * rig_freeze_us() - move the first end to SQD: the function of a thread
 * @meanwhile: struct rig_meanwhile, whose err is set to what ib_modify_qp() returned
 *
 * Context: Process, may sleep.
 * Return: 0.
 */
int rig_freeze_us(void *meanwhile)
{
	struct rig_meanwhile *m = meanwhile;

	m->err = rig_to(m->r->a.qp, IB_QPS_SQD);
	return 0;
}
EXPORT_SYMBOL_GPL(rig_freeze_us);

/**
 * rig_wait_for_freezer() - start a thread, and wait until it waits for the poster, or has ended
 * @meanwhile: struct rig_meanwhile with the thread, whose waits says which of the two
 *
 * Context: Process, may sleep.
 */
void rig_wait_for_freezer(void *meanwhile)
{
	struct rig_meanwhile *m = meanwhile;

	kvt_thread_go(m->thread);
	m->waits = kvt_thread_sleeps(m->thread);
}
EXPORT_SYMBOL_GPL(rig_wait_for_freezer);

/**
 * rig_of_param() - make a connected rig on the devices of the test parameter
 * @test: the running case
 *
 * Return: the rig, with both queue pairs in RTS.
 */
struct rig *rig_of_param(struct kunit *test)
{
	const struct rig_pair *pair = test->param_value;

	return rig_up(test, pair->a, pair->b);
}
EXPORT_SYMBOL_GPL(rig_of_param);

/**
 * rig_counter() - read a counter of an end's port
 * @test: the running case
 * @e: the end
 * @name: name of the counter, as in hw_counters/
 *
 * Return: the current value, which the driver is asked for.
 */
u64 rig_counter(struct kunit *test, struct rig_end *e, const char *name)
{
	const struct ib_device_ops *ops = &e->ibdev->ops;
	struct rdma_hw_stats *stats;
	u64 value = U64_MAX;
	int i;

	stats = KVT_PTR(test, ops->alloc_hw_port_stats(e->ibdev, e->port));
	ops->get_hw_stats(e->ibdev, stats, e->port, 0);
	for (i = 0; i < stats->num_counters; i++)
		if (!strcmp(stats->descs[i].name, name))
			value = stats->value[i];
	rdma_free_hw_stats_struct(stats);
	KUNIT_ASSERT_NE_MSG(test, value, U64_MAX, "no counter %s", name);
	return value;
}
EXPORT_SYMBOL_GPL(rig_counter);

/**
 * rig_sge() - an SGE for a part of an end's buffer, with the local key
 * @e: the end
 * @offset: bytes from the start of the buffer
 * @len: bytes
 *
 * Return: the SGE.
 */
struct ib_sge rig_sge(struct rig_end *e, size_t offset, u32 len)
{
	return (struct ib_sge) {
		.addr = e->dma + offset,
		.length = len,
		.lkey = e->pd->local_dma_lkey,
	};
}
EXPORT_SYMBOL_GPL(rig_sge);

/**
 * rig_recv() - post a receive into an end's buffer
 * @e: the end
 * @id: wr_id
 * @offset: bytes from the start of the buffer
 * @len: bytes
 *
 * Return: the result of ib_post_recv().
 */
int rig_recv(struct rig_end *e, u64 id, size_t offset, u32 len)
{
	struct ib_sge sge = rig_sge(e, offset, len);
	struct ib_recv_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1,
	};

	return ib_post_recv(e->qp, &wr, NULL);
}
EXPORT_SYMBOL_GPL(rig_recv);

/**
 * rig_recv_many() - post receives of one length at the start of an end's buffer
 * @test: the running case
 * @e: the end
 * @id: wr_id of the first, which those of the others follow
 * @nr: how many
 * @len: bytes of each
 */
void rig_recv_many(struct kunit *test, struct rig_end *e, u64 id, u32 nr, u32 len)
{
	u32 i;

	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, 0, rig_recv(e, id + i, 0, len));
}
EXPORT_SYMBOL_GPL(rig_recv_many);

/**
 * rig_send_wr() - fill in a signaled SEND, which the case may change
 * @wr: filled in
 * @id: wr_id
 * @sge: the SGEs
 * @num: number of SGEs
 */
void rig_send_wr(struct ib_send_wr *wr, u64 id, struct ib_sge *sge, int num)
{
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = id;
	wr->opcode = IB_WR_SEND;
	wr->send_flags = IB_SEND_SIGNALED;
	wr->sg_list = sge;
	wr->num_sge = num;
}
EXPORT_SYMBOL_GPL(rig_send_wr);

/**
 * rig_send() - post a signaled SEND from an end's buffer
 * @e: the end
 * @id: wr_id
 * @offset: bytes from the start of the buffer
 * @len: bytes
 *
 * Return: the result of ib_post_send().
 */
int rig_send(struct rig_end *e, u64 id, size_t offset, u32 len)
{
	struct ib_sge sge = rig_sge(e, offset, len);
	struct ib_send_wr wr;

	rig_send_wr(&wr, id, &sge, 1);
	return ib_post_send(e->qp, &wr, NULL);
}
EXPORT_SYMBOL_GPL(rig_send);

/**
 * rig_send_many() - post signaled SENDs of one length from the start of an end's buffer
 * @test: the running case
 * @e: the end
 * @id: wr_id of the first, which those of the others follow
 * @nr: how many
 * @len: bytes of each
 */
void rig_send_many(struct kunit *test, struct rig_end *e, u64 id, u32 nr, u32 len)
{
	u32 i;

	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_EQ(test, 0, rig_send(e, id + i, 0, len));
}
EXPORT_SYMBOL_GPL(rig_send_many);

/**
 * rig_rdma() - post a signaled RDMA operation
 * @e: the end
 * @op: opcode
 * @id: wr_id
 * @offset: bytes from the start of the local buffer
 * @len: bytes
 * @remote: address at the peer
 * @rkey: key for @remote
 *
 * Return: the result of ib_post_send().
 */
int rig_rdma(struct rig_end *e, enum ib_wr_opcode op, u64 id, size_t offset,
	     u32 len, u64 remote, u32 rkey)
{
	struct ib_sge sge = rig_sge(e, offset, len);
	struct ib_rdma_wr wr = {};

	rig_send_wr(&wr.wr, id, &sge, 1);
	wr.wr.opcode = op;
	wr.remote_addr = remote;
	wr.rkey = rkey;
	return ib_post_send(e->qp, &wr.wr, NULL);
}
EXPORT_SYMBOL_GPL(rig_rdma);

/**
 * rig_inv() - post a signaled request without data that invalidates a key
 * @e: the end
 * @op: %IB_WR_LOCAL_INV for a key of this end, %IB_WR_SEND_WITH_INV for one of its peer
 * @id: wr_id
 * @key: the key
 *
 * Return: the result of ib_post_send().
 */
int rig_inv(struct rig_end *e, enum ib_wr_opcode op, u64 id, u32 key)
{
	struct ib_send_wr wr;

	rig_send_wr(&wr, id, NULL, 0);
	wr.opcode = op;
	wr.ex.invalidate_rkey = key;
	return ib_post_send(e->qp, &wr, NULL);
}
EXPORT_SYMBOL_GPL(rig_inv);

/**
 * rig_atomic() - post a signaled atomic operation
 * @e: the end
 * @op: opcode
 * @id: wr_id
 * @offset: where the original value goes, in bytes from the start of the buffer
 * @target: &struct ib_atomic_wr with address, key and operands
 *
 * Return: the result of ib_post_send().
 */
int rig_atomic(struct rig_end *e, enum ib_wr_opcode op, u64 id, size_t offset,
	       const struct ib_atomic_wr *target)
{
	struct ib_sge sge = rig_sge(e, offset, sizeof(u64));
	struct ib_atomic_wr wr = *target;

	rig_send_wr(&wr.wr, id, &sge, 1);
	wr.wr.opcode = op;
	return ib_post_send(e->qp, &wr.wr, NULL);
}
EXPORT_SYMBOL_GPL(rig_atomic);

/**
 * rig_poll() - wait for the next completion
 * @cq: CQ that nobody else polls
 * @wc: filled in
 *
 * Return: true if there was one in time.
 */
bool rig_poll(struct ib_cq *cq, struct ib_wc *wc)
{
	return kvt_until(ib_poll_cq(cq, 1, wc) == 1);
}
EXPORT_SYMBOL_GPL(rig_poll);

/**
 * rig_expect_wcs() - expect the completions of requests of which all end in the same way
 * @test: the running case
 * @cq: CQ that nobody else polls
 * @id: wr_id of the first, which those of the others follow
 * @nr: how many
 * @want: status of each
 */
void rig_expect_wcs(struct kunit *test, struct ib_cq *cq, u64 id, u32 nr, enum ib_wc_status want)
{
	struct ib_wc wc;
	u32 i;

	for (i = 0; i < nr; i++)
		RIG_EXPECT_WC(test, cq, &wc, id + i, want);
}
EXPORT_SYMBOL_GPL(rig_expect_wcs);

/**
 * rig_empty() - check that a CQ has no completion
 * @cq: CQ that nobody else polls
 *
 * Return: true if it has none.
 */
bool rig_empty(struct ib_cq *cq)
{
	struct ib_wc wc;

	return ib_poll_cq(cq, 1, &wc) == 0;
}
EXPORT_SYMBOL_GPL(rig_empty);

/**
 * rig_expect_event() - expect that a queue pair raised exactly one event
 * @test: the running case
 * @e: end whose queue pair raises no further events
 * @want: the event
 */
void rig_expect_event(struct kunit *test, struct rig_end *e, enum ib_event_type want)
{
	KUNIT_ASSERT_TRUE_MSG(test, kvt_wait(&e->got_event), "no event");
	KUNIT_EXPECT_STREQ(test, ib_event_msg(e->event), ib_event_msg(want));
	rig_expect_no_event(test, e);
}
EXPORT_SYMBOL_GPL(rig_expect_event);

/**
 * rig_expect_no_event() - expect that a queue pair raised no further event
 * @test: the running case
 * @e: end whose queue pair raises no further events
 */
void rig_expect_no_event(struct kunit *test, struct rig_end *e)
{
	irq_work_sync(&e->qp->notify.work);
	KUNIT_EXPECT_FALSE_MSG(test, try_wait_for_completion(&e->got_event),
			       "%s", ib_event_msg(e->event));
}
EXPORT_SYMBOL_GPL(rig_expect_no_event);

/**
 * rig_counts_to() - wait until a counter has reached a value
 * @test: the running case
 * @e: the end
 * @name: name of the counter, as in hw_counters/
 * @value: the value, which the counter may exceed
 *
 * Return: true if the counter reached it in time.
 */
bool rig_counts_to(struct kunit *test, struct rig_end *e, const char *name, u64 value)
{
	return kvt_until(rig_counter(test, e, name) >= value);
}
EXPORT_SYMBOL_GPL(rig_counts_to);

static u8 rig_byte(size_t i, u32 seed)
{
	return (i * 167 + (i >> 8) * 13 + seed * 31) ^ seed;
}

/**
 * rig_fill() - fill memory with a pattern
 * @buf: the memory
 * @len: bytes
 * @seed: which pattern
 */
void rig_fill(u8 *buf, size_t len, u32 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = rig_byte(i, seed);
}
EXPORT_SYMBOL_GPL(rig_fill);

/**
 * rig_filled() - check that memory holds a pattern
 * @buf: the memory
 * @len: bytes
 * @seed: which pattern
 *
 * Return: true if all bytes are those of the pattern.
 */
bool rig_filled(const u8 *buf, size_t len, u32 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != rig_byte(i, seed))
			return false;
	return true;
}
EXPORT_SYMBOL_GPL(rig_filled);

/**
 * rig_all() - check that all bytes of memory have one value
 * @buf: the memory
 * @len: bytes
 * @value: the value
 *
 * Return: true if all bytes are @value.
 */
bool rig_all(const u8 *buf, size_t len, u8 value)
{
	return !memchr_inv(buf, value, len);
}
EXPORT_SYMBOL_GPL(rig_all);
