// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors on a connection of the software HCA: the completions and events at each
 * end, the QP states that result, and that each posted request completes once. Cases
 * for a row of the conformance table start with the name of the row.
 */
#include <kverbs/delay.h>

#include "emu/rig.h"
#include "lib/objects.h"

#define ALL_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ)
#define DESTROYS	500

KUNIT_ARRAY_PARAM_DESC(pair, rig_pairs, name);

static void expect_states(struct kunit *test, struct rig *r, enum ib_qp_state a, enum ib_qp_state b)
{
	KUNIT_EXPECT_EQ(test, a, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, b, rig_state(r->b.qp));
}

static void r11_send_longer_than_the_receive(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 99));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 100));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_INV_REQ_ERR);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_LOC_LEN_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + 99, RIG_BUF - 99, 0xee));
	expect_states(test, r, IB_QPS_ERR, IB_QPS_ERR);
	rig_expect_no_event(test, &r->b);
}

static void r12_receive_with_a_bad_key(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge sge = rig_sge(&r->b, 0, 100);
	struct ib_recv_wr wr = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
	struct ib_wc wc;

	sge.lkey = 0x12345600;
	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(r->b.qp, &wr, NULL));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 100));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_OP_ERR);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
	expect_states(test, r, IB_QPS_ERR, IB_QPS_ERR);
	rig_expect_no_event(test, &r->b);
}

/* Ways in which a reference to memory is invalid. */
enum bad_key {
	BAD_KEY,
	BAD_STALE,
	BAD_PD,
	BAD_BEFORE,
	BAD_BEHIND,
	BAD_WRAP,
	BAD_ACCESS,
};

static const char *const bad_key_names[] = {
	"no such key", "stale key byte", "other PD", "before the region",
	"behind the region", "address wraps", "access not granted",
};

static const int bad_keys[] = {
	BAD_KEY, BAD_STALE, BAD_PD, BAD_BEFORE, BAD_BEHIND, BAD_WRAP,
	BAD_ACCESS,
};

KVT_NAMED_PARAM(bad_key, bad_keys, bad_key_names);

/* Without BAD_ACCESS: any region may be read locally. */
static const int bad_sources[] = {
	BAD_KEY, BAD_STALE, BAD_PD, BAD_BEFORE, BAD_BEHIND, BAD_WRAP,
};

KVT_NAMED_PARAM(bad_source, bad_sources, bad_key_names);

/*
 * Registers all but the first and the last page of the end's buffer and returns an
 * SGE of 100 bytes of it, made invalid in the way that @bad says.
 */
static struct ib_sge bad_sge(struct kunit *test, struct rig *r,
			     struct rig_end *e, enum bad_key bad, int access)
{
	struct rig_end other = *e;
	struct ib_sge sge = { .length = 100 };
	struct ib_wc wc;

	if (bad == BAD_PD) {
		/* The peer's PD is a different one, even on the same device. */
		struct rig_end *peer = e == &r->a ? &r->b : &r->a;

		other.qp = peer->qp;
		other.pd = peer->pd;
		other.scq = peer->scq;
	}
	e->mr = rig_mr(test, other.pd);
	KUNIT_ASSERT_EQ(test, 1, rig_map(e, e->mr, PAGE_SIZE, RIG_BUF - 2 * PAGE_SIZE));
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&other, e->mr, 55, access));
	RIG_EXPECT_WC(test, other.scq, &wc, 55, IB_WC_SUCCESS);
	sge.addr = e->mr->iova + 8;
	sge.lkey = e->mr->rkey;
	if (bad == BAD_KEY)
		sge.lkey = 0xabcdef00;
	else if (bad == BAD_STALE)
		sge.lkey = ib_inc_rkey(sge.lkey);
	else if (bad == BAD_BEFORE)
		sge.addr = e->mr->iova - 1;
	else if (bad == BAD_BEHIND)
		sge.addr = e->mr->iova + e->mr->length - 99;
	else if (bad == BAD_WRAP)
		sge.addr = U64_MAX - 50;
	return sge;
}

/* Both ends on one device, so that for BAD_PD nothing but the PD is wrong. */
static struct rig *rig_of_one_device(struct kunit *test)
{
	return rig_up(test, "emu0", "emu0");
}

static int recv_in_region(struct rig *r, u64 id, size_t offset, u32 len)
{
	struct ib_sge sge = { r->b.mr->iova + offset, len, r->b.mr->lkey };
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(r->b.qp, &wr, NULL);
}

/* As long as the message does not reach what is no memory. IBTA does not say; HCAs agree. */
static void r12_receive_beyond_its_region(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE);
	rig_fill(r->a.buf, RIG_BUF, 7);
	KUNIT_ASSERT_EQ(test, 0, recv_in_region(r, 2, 0, RIG_BUF + 32));
	KUNIT_ASSERT_EQ(test, 0, recv_in_region(r, 3, 0, RIG_BUF + 32));
	KUNIT_ASSERT_EQ(test, 0, recv_in_region(r, 4, RIG_BUF - 8, 32));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 64));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, 64, 7));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, RIG_BUF));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 3);
	KUNIT_EXPECT_EQ(test, RIG_BUF, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, RIG_BUF, 7));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 9));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_OP_ERR);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 4, IB_WC_LOC_PROT_ERR);
}

static void r13_send_from_bad_memory(struct kunit *test)
{
	enum bad_key bad = *(const int *)test->param_value;
	struct rig *r = rig_of_one_device(test);
	struct ib_send_wr wr;
	struct ib_sge sge;
	struct ib_wc wc;

	sge = bad_sge(test, r, &r->a, bad, ALL_ACCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 9, 0, 100));
	rig_send_wr(&wr, 1, &sge, 1);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
	/* The failed send does not reach the peer. */
	expect_states(test, r, IB_QPS_ERR, IB_QPS_RTS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

static const u32 connected_types[] = { IB_QPT_RC, IB_QPT_UC };

KVT_NUMBER_PARAM(connected_type, connected_types, "type %u");

/* The second element's region is invalidated when the first one's data is about to be copied. */
static void r13_send_from_memory_that_goes_meanwhile(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct rig_meanwhile m;
	struct ib_send_wr wr;
	struct ib_sge sge[2];
	struct ib_wc wc;

	r->init.qp_type = *(const u32 *)test->param_value;
	rig_start(test, r);
	m = (struct rig_meanwhile) { .r = rig_beside(test, r), .err = -1 };
	sge[0] = rig_sge(&r->a, 0, 8);
	sge[1] = (struct ib_sge) { m.r->b.mr->iova, 8, m.r->b.mr->lkey };
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 9, 0, 100));
	rig_send_wr(&wr, 1, sge, 2);
	kverbs_delay_set("emu_copy", rig_invalidate, &m);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, m.err);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	/* The peer hears nothing, and its receive is there for the next message. */
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(r->b.qp));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 9, IB_WC_WR_FLUSH_ERR);
}

static void r14_rdma_to_bad_memory(struct kunit *test, enum ib_wr_opcode op)
{
	enum bad_key bad = *(const int *)test->param_value;
	struct rig *r = rig_of_one_device(test);
	int access = ALL_ACCESS;
	struct ib_sge there;
	struct ib_wc wc;

	if (bad == BAD_ACCESS)
		access &= op == IB_WR_RDMA_READ ? ~IB_ACCESS_REMOTE_READ :
						  ~IB_ACCESS_REMOTE_WRITE;
	there = bad_sge(test, r, &r->b, bad, access);
	memset(r->a.buf, 0xaa, RIG_BUF);
	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 9, 0, 100));
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, op, 1, 0, 100, there.addr, there.lkey));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_ACCESS_ERR);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
	rig_expect_event(test, &r->b, IB_EVENT_QP_ACCESS_ERR);
	rig_expect_no_event(test, &r->a);
	/* The RDMA operation has consumed no receive: it is flushed. */
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 9, IB_WC_WR_FLUSH_ERR);
	expect_states(test, r, IB_QPS_ERR, IB_QPS_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf, RIG_BUF, 0xaa));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
}

static void r14_write_to_bad_memory(struct kunit *test)
{
	r14_rdma_to_bad_memory(test, IB_WR_RDMA_WRITE);
}

static void r14_read_of_bad_memory(struct kunit *test)
{
	r14_rdma_to_bad_memory(test, IB_WR_RDMA_READ);
}

/* It is not the peer's, or not there at all: an access error, and not a key of the wrong kind. */
static void r14_key_that_names_nothing_is_not_invalidated(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_inv(&r->a, IB_WR_SEND_WITH_INV, 1, RIG_BAD_KEY));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_ACCESS_ERR);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, IB_WC_RECV, wc.opcode);
	KUNIT_EXPECT_EQ(test, 0, wc.wc_flags);
	expect_states(test, r, IB_QPS_ERR, IB_QPS_ERR);
}

static void r14_local_key_is_not_for_peers(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 1, 0, 100,
					  r->b.dma, r->b.pd->local_dma_lkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
}

static void r15_queue_pair_forbids_the_operation(struct kunit *test)
{
	static const enum ib_wr_opcode ops[] = {
		IB_WR_RDMA_WRITE, IB_WR_RDMA_READ,
	};
	struct ib_wc wc;
	int i;

	for (i = 0; i < 2; i++) {
		struct rig *r = rig_new(test, "emu0", "emu1");

		r->access = i ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_REMOTE_READ;
		rig_start(test, r);
		rig_register(test, &r->b, ALL_ACCESS);
		memset(r->b.buf, 0xee, RIG_BUF);
		KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, ops[i], 1, 0, 100,
						  r->b.mr->iova,
						  r->b.mr->rkey));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_INV_REQ_ERR);
		rig_expect_event(test, &r->b, IB_EVENT_QP_REQ_ERR);
		KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
		expect_states(test, r, IB_QPS_ERR, IB_QPS_ERR);
	}
}

static void r18_read_into_memory_that_is_not_writable(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_rdma_wr wr = {};
	struct ib_sge sge;
	struct ib_wc wc;

	rig_register(test, &r->a, 0);
	rig_register(test, &r->b, ALL_ACCESS);
	memset(r->a.buf, 0xaa, RIG_BUF);
	sge = (struct ib_sge) { r->a.mr->iova, 100, r->a.mr->lkey };
	rig_send_wr(&wr.wr, 1, &sge, 1);
	wr.wr.opcode = IB_WR_RDMA_READ;
	wr.remote_addr = r->b.mr->iova;
	wr.rkey = r->b.mr->rkey;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf, RIG_BUF, 0xaa));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
}

static void r19_responder_without_read_resources(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	r->max_dest_rd = 0;
	rig_start(test, r);
	rig_register(test, &r->b, ALL_ACCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 1, 0, 100,
					  r->b.mr->iova, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_INV_REQ_ERR);
	expect_states(test, r, IB_QPS_ERR, IB_QPS_ERR);
}

static void r8_nobody_at_the_destination(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	/* An ACK timeout of 4 * 4.096 us, and three attempts. */
	r->timeout = 2;
	r->retry_cnt = 2;
	rig_start(test, r);
	rig_destroy_qp(test, &r->b);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RETRY_EXC_ERR);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
}

static void r10_receiver_never_ready(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	r->rnr_retry = 2;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RNR_RETRY_EXC_ERR);
	expect_states(test, r, IB_QPS_ERR, IB_QPS_RTS);
}

static void r10_receiver_ready_after_a_while(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	rig_fill(r->a.buf, 100, 5);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 100));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 100));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, 100, 5));
}

static void m1_invalidated_region_is_closed_to_peers(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	rig_register(test, &r->b, ALL_ACCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_inv(&r->b, IB_WR_LOCAL_INV, 5, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 5, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 1, 0, 8,
					  r->b.mr->iova, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_ACCESS_ERR);
}

static void m3_registering_twice_fails(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	rig_register(test, &r->b, ALL_ACCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, r->b.mr, 5, ALL_ACCESS));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 5, IB_WC_MW_BIND_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
}

static void q2_everything_posted_is_flushed_once_in_order(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;
	int i;

	/* The sends wait for receives of the peer, the receives for sends of the peer. */
	for (i = 0; i < RIG_WR; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, 8));
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 100 + i, 0, 8));
	}
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_ERR));
	for (i = 0; i < RIG_WR; i++) {
		RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_PTR_EQ(test, wc.qp, r->a.qp);
		RIG_EXPECT_WC(test, r->a.rcq, &wc, 100 + i, IB_WC_WR_FLUSH_ERR);
		KUNIT_EXPECT_PTR_EQ(test, wc.qp, r->a.qp);
	}
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.rcq));
	/* Once more, in case the peer's engine still held a request. */
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_ERR));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

static void q2_error_flushes_unsignaled_sends_too(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	struct ib_send_wr wr;
	int i;

	for (i = 0; i < 4; i++) {
		rig_send_wr(&wr, i, &sge, 1);
		wr.send_flags = 0;
		KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
	}
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_ERR));
	rig_expect_wcs(test, r->a.scq, 0, 4, IB_WC_WR_FLUSH_ERR);
}

struct drained {
	struct ib_cqe cqe;
	int *count;
	int place;
	int status;
};

static void drained_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct drained *d = container_of(wc->wr_cqe, struct drained, cqe);

	d->place = ++*d->count;
	d->status = wc->status;
}

KUNIT_DEFINE_ACTION_WRAPPER(drain_end, ib_drain_qp, struct ib_qp *);

static void q2_drain_comes_last(struct kunit *test)
{
	enum ib_poll_context ctx = kvt_context(test);
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct drained d[2 * RIG_WR] = {};
	int i, sends = 0, recvs = 0;
	struct ib_qp_init_attr init;
	struct ib_qp *qp;

	init = r->init;
	init.send_cq = kvt_cq(test, r->a.ibdev, RIG_CQE, ctx);
	init.recv_cq = kvt_cq(test, r->a.ibdev, RIG_CQE, ctx);
	/* One more send and receive for the drain. */
	init.cap.max_send_wr = RIG_WR + 1;
	init.cap.max_recv_wr = RIG_WR + 1;
	init.event_handler = NULL;
	rig_make_qps(test, r);
	qp = r->a.qp;
	r->a.qp = kvt_qp(test, r->a.pd, &init);
	rig_connect(test, r);
	kvt_defer(test, drain_end, r->a.qp);
	for (i = 0; i < 2 * RIG_WR; i++) {
		struct ib_sge sge = rig_sge(&r->a, 0, 8);
		struct ib_recv_wr rwr = { .sg_list = &sge, .num_sge = 1 };
		struct ib_send_wr swr;

		d[i].cqe.done = drained_done;
		d[i].count = i % 2 ? &sends : &recvs;
		rig_send_wr(&swr, 0, &sge, 1);
		swr.wr_cqe = &d[i].cqe;
		rwr.wr_cqe = &d[i].cqe;
		KUNIT_EXPECT_EQ(test, 0, i % 2 ?
				ib_post_send(r->a.qp, &swr, NULL) :
				ib_post_recv(r->a.qp, &rwr, NULL));
	}
	ib_drain_qp(r->a.qp);
	KUNIT_EXPECT_EQ(test, RIG_WR, sends);
	KUNIT_EXPECT_EQ(test, RIG_WR, recvs);
	for (i = 0; i < 2 * RIG_WR; i++) {
		KUNIT_EXPECT_EQ(test, IB_WC_WR_FLUSH_ERR, d[i].status);
		KUNIT_EXPECT_EQ(test, i / 2 + 1, d[i].place);
	}
	kunit_remove_action(test, drain_end, r->a.qp);
	r->a.qp = qp;
}

static void q3_reset_empties_the_queues(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;
	int i;

	for (i = 0; i < RIG_WR; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, 8));
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, i, 0, 8));
	}
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RESET));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.rcq));
	/* After the reset, the queue pairs work again. */
	rig_connect(test, r);
	rig_recv_many(test, &r->b, 50, RIG_WR, 8);
	rig_send_many(test, &r->a, 70, RIG_WR, 8);
	for (i = 0; i < RIG_WR; i++)
		RIG_EXPECT_DELIVERED(test, r, &wc, 70 + i, 50 + i);
}

static void c15_q3_reset_drops_completions_not_polled(struct kunit *test)
{
	struct rig *r = rig_of_param(test);

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_ERR));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RESET));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.rcq));
}

static void q4_sqd_holds_new_sends_until_rts(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_SQD, .en_sqd_async_notify = 1,
	};
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(r->a.qp, &attr, IB_QP_STATE |
					      IB_QP_EN_SQD_ASYNC_NOTIFY));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->a.got_event));
	KUNIT_EXPECT_EQ(test, IB_EVENT_SQ_DRAINED, r->a.event);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&r->a.got_event));
}

static void c15_destroy_drops_completions_not_polled(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	rig_recv_many(test, &r->b, 100, 4, 8);
	rig_send_many(test, &r->a, 0, 4, 8);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 0, IB_WC_SUCCESS);
	rig_destroy_qp(test, &r->a);
	/* No completion names a queue pair that is gone. */
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	rig_expect_wcs(test, r->b.rcq, 100, 4, IB_WC_SUCCESS);
}

/* Most of a CQ, twice: as if what was dropped had never been in it. */
#define DROPPED	(RIG_CQE - RIG_CQE / 4)

static void send_unpolled(struct kunit *test, struct rig *r)
{
	rig_recv_many(test, &r->b, 0, DROPPED, 8);
	rig_send_many(test, &r->a, 0, DROPPED, 8);
	rig_expect_wcs(test, r->b.rcq, 0, DROPPED, IB_WC_SUCCESS);
}

static void c15_dropped_completions_leave_room_for_others(struct kunit *test)
{
	struct rig *r = rig_of_param(test);

	rig_destroy_qp(test, &r->a);
	rig_destroy_qp(test, &r->b);
	r->init.cap.max_send_wr = DROPPED;
	r->init.cap.max_recv_wr = DROPPED;
	rig_start(test, r);
	send_unpolled(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RESET));
	rig_connect_end(test, r, &r->a, &r->b);
	send_unpolled(test, r);
	rig_expect_wcs(test, r->a.scq, 0, DROPPED, IB_WC_SUCCESS);
	rig_expect_no_event(test, &r->a);
}

static void c13_overrun_is_told_and_loses_nothing_silently(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	int sent = 0, got = 0;
	struct ib_wc wc;
	bool failed;

	r->init.cap.max_recv_wr = 2 * RIG_CQE;
	rig_start(test, r);
	while (sent < 2 * RIG_CQE) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, sent, 0, 8));
		sent++;
	}
	for (sent = 0; sent < 2 * RIG_CQE; sent++) {
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, sent, 0, 8));
		KUNIT_ASSERT_TRUE(test, rig_poll(r->a.scq, &wc));
		if (wc.status != IB_WC_SUCCESS)
			break;
	}
	failed = sent < 2 * RIG_CQE;
	KUNIT_EXPECT_TRUE(test, failed);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->b.got_event));
	KUNIT_EXPECT_EQ(test, IB_EVENT_QP_FATAL, r->b.event);
	expect_states(test, r, IB_QPS_ERR, IB_QPS_ERR);
	/* All completions from before the overrun are in the CQ, in order. */
	while (ib_poll_cq(r->b.rcq, 1, &wc) == 1) {
		KUNIT_EXPECT_EQ(test, got, wc.wr_id);
		got++;
	}
	KUNIT_EXPECT_EQ(test, sent, got);
}

static void r26_comm_est_is_told_once(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;
	int i;

	rig_make_qps(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->a, &r->b));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rts(r, &r->a));
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
		RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	}
	rig_expect_event(test, &r->b, IB_EVENT_COMM_EST);
	rig_expect_no_event(test, &r->a);
}

/* Q6: a sender that keeps posting while the responder is destroyed. */
struct hammer {
	struct rig_end *e;
	u64 posts;
};

static int hammer_fn(void *arg)
{
	struct hammer *h = arg;
	struct ib_wc wc;

	while (!kvt_should_stop()) {
		if (!rig_send(h->e, h->posts, 0, 4096))
			h->posts++;
		while (ib_poll_cq(h->e->scq, 1, &wc) == 1)
			;
		cond_resched();
	}
	return 0;
}

static void q6_destroy_under_traffic_ends(struct kunit *test)
{
	u64 i, rounds = kvt_count(DESTROYS);
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct hammer *h = kvt_zalloc(test, sizeof(*h));

	r->timeout = 1;
	r->retry_cnt = 1;
	h->e = &r->a;
	kvt_print_length(test, "queue pairs destroyed under traffic", rounds);
	for (i = 0; i < rounds; i++) {
		struct kvt_thread *t;

		rig_start(test, r);
		rig_recv_many(test, &r->b, 0, RIG_WR, 4096);
		t = kvt_thread_start(test, kvt_other_cpu(), hammer_fn, h);
		/* Destroy amid traffic: some messages have arrived, others are in flight. */
		rig_expect_wcs(test, r->b.rcq, 0, 4, IB_WC_SUCCESS);
		rig_destroy_qp(test, &r->b);
		KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
		KUNIT_ASSERT_EQ(test, 0, kvt_thread_stop(t));
		rig_destroy_qp(test, &r->a);
		KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	}
}

static struct kunit_case emu_error_cases[] = {
	KUNIT_CASE_PARAM(r11_send_longer_than_the_receive, pair_gen_params),
	KUNIT_CASE_PARAM(r12_receive_with_a_bad_key, pair_gen_params),
	KUNIT_CASE_PARAM(r12_receive_beyond_its_region, pair_gen_params),
	KUNIT_CASE_PARAM(r14_key_that_names_nothing_is_not_invalidated, pair_gen_params),
	KUNIT_CASE_PARAM(r13_send_from_bad_memory, bad_source_gen_params),
	KUNIT_CASE_PARAM(r13_send_from_memory_that_goes_meanwhile, connected_type_gen_params),
	KUNIT_CASE_PARAM(r14_write_to_bad_memory, bad_key_gen_params),
	KUNIT_CASE_PARAM(r14_read_of_bad_memory, bad_key_gen_params),
	KUNIT_CASE_PARAM(r14_local_key_is_not_for_peers, pair_gen_params),
	KUNIT_CASE(r15_queue_pair_forbids_the_operation),
	KUNIT_CASE_PARAM(r18_read_into_memory_that_is_not_writable, pair_gen_params),
	KUNIT_CASE(r19_responder_without_read_resources),
	KUNIT_CASE(r8_nobody_at_the_destination),
	KUNIT_CASE(r10_receiver_never_ready),
	KUNIT_CASE_PARAM(r10_receiver_ready_after_a_while, pair_gen_params),
	KUNIT_CASE_PARAM(m1_invalidated_region_is_closed_to_peers, pair_gen_params),
	KUNIT_CASE_PARAM(m3_registering_twice_fails, pair_gen_params),
	KUNIT_CASE_PARAM(q2_everything_posted_is_flushed_once_in_order, pair_gen_params),
	KUNIT_CASE_PARAM(q2_error_flushes_unsignaled_sends_too, pair_gen_params),
	KUNIT_CASE_PARAM(q2_drain_comes_last, kvt_any_context),
	KUNIT_CASE_PARAM(q3_reset_empties_the_queues, pair_gen_params),
	KUNIT_CASE_PARAM(c15_q3_reset_drops_completions_not_polled, pair_gen_params),
	KUNIT_CASE_PARAM(q4_sqd_holds_new_sends_until_rts, pair_gen_params),
	KUNIT_CASE_PARAM(c15_destroy_drops_completions_not_polled, pair_gen_params),
	KUNIT_CASE_PARAM(c15_dropped_completions_leave_room_for_others, pair_gen_params),
	KUNIT_CASE(c13_overrun_is_told_and_loses_nothing_silently),
	KUNIT_CASE(r26_comm_est_is_told_once),
	KUNIT_CASE(q6_destroy_under_traffic_ends),
	{}
};
KVT_SUITE(emu_error);
