// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two connected queue pairs of the emulated HCA, with memory at both ends.
 */
#include <linux/ktime.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <kunit/resource.h>

#include "emu_rig.h"
#include "lib.h"
#include "objects.h"

const struct rig_pair rig_pairs[2] = {
	{ "within a device", "emu0", "emu0" },
	{ "between two", "emu0", "emu1" },
};

void rig_pair_name(const struct rig_pair *pair, char *desc)
{
	strscpy(desc, pair->name, KUNIT_PARAM_DESC_SIZE);
}

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

static void rig_put_device(void *arg)
{
	ib_device_put(arg);
}

static void rig_destroy_cq(void *arg)
{
	ib_destroy_cq(arg);
}

static void rig_unmap(void *arg)
{
	struct rig_end *e = arg;

	ib_dma_unmap_single(e->ibdev, e->dma, e->size, DMA_BIDIRECTIONAL);
	kfree(e->buf);
}

static void rig_defer(struct kunit *test, void (*fn)(void *arg), void *arg)
{
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, fn, arg));
}

static void rig_make_cqs(struct kunit *test, struct rig_end *e)
{
	struct ib_cq_init_attr attr = { .cqe = RIG_CQE };

	e->scq = ib_create_cq(e->ibdev, rig_called, NULL, e, &attr);
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(e->scq));
	rig_defer(test, rig_destroy_cq, e->scq);
	e->rcq = ib_create_cq(e->ibdev, rig_called, NULL, e, &attr);
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(e->rcq));
	rig_defer(test, rig_destroy_cq, e->rcq);
}

static void rig_make_buf(struct kunit *test, struct rig_end *e)
{
	e->size = RIG_BUF;
	e->buf = kzalloc(e->size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, e->buf);
	e->dma = ib_dma_map_single(e->ibdev, e->buf, e->size,
				   DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(e->ibdev, e->dma)) {
		kfree(e->buf);
		KUNIT_FAIL_AND_ABORT(test, "no DMA mapping");
	}
	rig_defer(test, rig_unmap, e);
}

static void rig_make_end(struct kunit *test, struct rig_end *e,
			 const char *name)
{
	struct ib_port_attr port = {};

	init_completion(&e->got_event);
	init_completion(&e->got_call);
	e->ibdev = ib_device_get_by_name(name, RDMA_DRIVER_UNKNOWN);
	KUNIT_ASSERT_NOT_NULL_MSG(test, e->ibdev,
				  "no device %s: load kverbs_emu", name);
	rig_defer(test, rig_put_device, e->ibdev);
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(e->ibdev, 1, &port));
	e->lid = port.lid;
	e->pd = kvt_pd(test, e->ibdev);
	rig_make_cqs(test, e);
	rig_make_buf(test, e);
}

/**
 * rig_new() - everything but the queue pairs
 * @test: the running case
 * @dev_a: device of the first end
 * @dev_b: device of the second end
 *
 * Return: the rig; the case may change its attributes before rig_make_qps().
 */
struct rig *rig_new(struct kunit *test, const char *dev_a, const char *dev_b)
{
	struct rig *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, r);
	rig_make_end(test, &r->a, dev_a);
	rig_make_end(test, &r->b, dev_b);
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
	r->timeout = 14;
	r->retry_cnt = 7;
	r->rnr_retry = 7;
	r->rnr_timer = 1;
	r->max_dest_rd = 4;
	return r;
}

static void rig_make_qp(struct kunit *test, struct rig *r, struct rig_end *e)
{
	struct ib_qp_init_attr init = r->init;

	init.send_cq = e->scq;
	init.recv_cq = e->rcq;
	init.qp_context = e;
	e->qp = kvt_qp(test, e->pd, &init);
}

void rig_make_qps(struct kunit *test, struct rig *r)
{
	rig_make_qp(test, r, &r->a);
	rig_make_qp(test, r, &r->b);
}

void rig_destroy_qp(struct kunit *test, struct rig_end *e)
{
	kvt_qp_put(test, e->qp);
	e->qp = NULL;
}

int rig_to_init(struct rig *r, struct rig_end *e)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = r->access,
	};

	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			    IB_QP_PORT | IB_QP_ACCESS_FLAGS);
}

int rig_to_rtr(struct rig *r, struct rig_end *e, struct rig_end *peer)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.path_mtu = IB_MTU_4096,
		.dest_qp_num = peer->qp->qp_num,
		.max_dest_rd_atomic = r->max_dest_rd,
		.min_rnr_timer = r->rnr_timer,
	};

	attr.ah_attr.type = rdma_ah_find_type(e->ibdev, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_dlid(&attr.ah_attr, peer->lid);
	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_AV |
			    IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			    IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

int rig_to_rts(struct rig *r, struct rig_end *e)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTS,
		.timeout = r->timeout,
		.retry_cnt = r->retry_cnt,
		.rnr_retry = r->rnr_retry,
		.max_rd_atomic = 4,
	};

	return ib_modify_qp(e->qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
			    IB_QP_MAX_QP_RD_ATOMIC);
}

int rig_to(struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}

enum ib_qp_state rig_state(struct ib_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};

	if (ib_query_qp(qp, &attr, IB_QP_STATE, &init))
		return -1;
	return attr.qp_state;
}

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

struct rig *rig_up(struct kunit *test, const char *dev_a, const char *dev_b)
{
	struct rig *r = rig_new(test, dev_a, dev_b);

	rig_make_qps(test, r);
	rig_connect(test, r);
	return r;
}

struct rig *rig_of_param(struct kunit *test)
{
	const struct rig_pair *pair = test->param_value;

	return rig_up(test, pair->a, pair->b);
}

struct ib_sge rig_sge(struct rig_end *e, size_t offset, u32 len)
{
	return (struct ib_sge) {
		.addr = e->dma + offset,
		.length = len,
		.lkey = e->pd->local_dma_lkey,
	};
}

int rig_recv(struct rig_end *e, u64 id, size_t offset, u32 len)
{
	struct ib_sge sge = rig_sge(e, offset, len);
	struct ib_recv_wr wr = {
		.wr_id = id, .sg_list = &sge, .num_sge = 1,
	};

	return ib_post_recv(e->qp, &wr, NULL);
}

/* A signaled SEND; the case changes what it wants otherwise. */
void rig_send_wr(struct ib_send_wr *wr, u64 id, struct ib_sge *sge, int num)
{
	memset(wr, 0, sizeof(*wr));
	wr->wr_id = id;
	wr->opcode = IB_WR_SEND;
	wr->send_flags = IB_SEND_SIGNALED;
	wr->sg_list = sge;
	wr->num_sge = num;
}

int rig_send(struct rig_end *e, u64 id, size_t offset, u32 len)
{
	struct ib_sge sge = rig_sge(e, offset, len);
	struct ib_send_wr wr;

	rig_send_wr(&wr, id, &sge, 1);
	return ib_post_send(e->qp, &wr, NULL);
}

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

static void rig_free_mr(void *arg)
{
	ib_dereg_mr(arg);
}

struct ib_mr *rig_mr(struct kunit *test, struct ib_pd *pd)
{
	struct ib_mr *mr = ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG,
				       RIG_BUF / PAGE_SIZE + 1);

	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(mr));
	rig_defer(test, rig_free_mr, mr);
	return mr;
}

/* Puts a part of the buffer into a region. Returns 1 when all of it is in. */
int rig_map(struct rig_end *e, struct ib_mr *mr, size_t offset, u32 len)
{
	struct scatterlist sg;

	sg_init_one(&sg, e->buf + offset, len);
	sg_dma_address(&sg) = e->dma + offset;
	sg_dma_len(&sg) = len;
	return ib_map_mr_sg(mr, &sg, 1, NULL, PAGE_SIZE);
}

int rig_post_reg(struct rig_end *e, struct ib_mr *mr, u64 id, int access)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_id = id,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	return ib_post_send(e->qp, &wr.wr, NULL);
}

/**
 * rig_register() - make the end's whole buffer a region of its own
 * @test: the running case
 * @e: end of a connected rig
 * @access: IB_ACCESS_*
 */
void rig_register(struct kunit *test, struct rig_end *e, int access)
{
	struct ib_wc wc;

	e->mr = rig_mr(test, e->pd);
	KUNIT_ASSERT_EQ(test, 1, rig_map(e, e->mr, 0, e->size));
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(e, e->mr, 0x4d52, access));
	RIG_EXPECT_WC(test, e->scq, &wc, 0x4d52, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_REG_MR, wc.opcode);
}

/**
 * rig_poll() - the next completion
 * @cq: CQ that nobody else polls
 * @wc: filled in
 *
 * Return: true if there was one in time.
 */
bool rig_poll(struct ib_cq *cq, struct ib_wc *wc)
{
	u64 end = ktime_get_ns() + jiffies_to_nsecs(KVT_TIMEOUT);

	while (ib_poll_cq(cq, 1, wc) != 1) {
		if (ktime_get_ns() > end)
			return false;
		cond_resched();
	}
	return true;
}

bool rig_empty(struct ib_cq *cq)
{
	struct ib_wc wc;

	return ib_poll_cq(cq, 1, &wc) == 0;
}

static u8 rig_byte(size_t i, u32 seed)
{
	return (i * 167 + (i >> 8) * 13 + seed * 31) ^ seed;
}

void rig_fill(u8 *buf, size_t len, u32 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		buf[i] = rig_byte(i, seed);
}

bool rig_filled(const u8 *buf, size_t len, u32 seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (buf[i] != rig_byte(i, seed))
			return false;
	return true;
}

bool rig_all(const u8 *buf, size_t len, u8 value)
{
	return !memchr_inv(buf, value, len);
}
