// SPDX-License-Identifier: GPL-2.0-only
/*
 * Operations of the software HCA that succeed: completions are checked, and memory is
 * compared byte by byte. If a case stands for a row of the conformance table, its name
 * starts with the row.
 */
#include "emu/rig.h"

#define ALL_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ)
#define TRAFFIC		20000

KUNIT_ARRAY_PARAM_DESC(pair, rig_pairs, name);

static const u32 sizes[] = { 1, 63, 64, 4095, 4096, 4097, 65536 };

static void send_arrives_whole(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		rig_fill(r->a.buf, RIG_BUF, i);
		memset(r->b.buf, 0xee, RIG_BUF);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 100 + i, 0, RIG_BUF));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 200 + i, 0, sizes[i]));
		RIG_EXPECT_WC(test, r->b.rcq, &wc, 100 + i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, IB_WC_RECV, wc.opcode);
		KUNIT_EXPECT_EQ(test, sizes[i], wc.byte_len);
		KUNIT_EXPECT_EQ(test, 0, wc.wc_flags & IB_WC_WITH_IMM);
		KUNIT_EXPECT_EQ(test, r->a.qp->qp_num, wc.src_qp);
		KUNIT_EXPECT_PTR_EQ(test, wc.qp, r->b.qp);
		RIG_EXPECT_WC(test, r->a.scq, &wc, 200 + i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, IB_WC_SEND, wc.opcode);
		KUNIT_EXPECT_PTR_EQ(test, wc.qp, r->a.qp);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, sizes[i], i));
		KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + sizes[i], RIG_BUF - sizes[i], 0xee));
	}
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.rcq));
}

static void c4_send_with_imm_carries_it(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge sge = rig_sge(&r->a, 0, 100);
	struct ib_send_wr wr;
	struct ib_wc wc;

	rig_send_wr(&wr, 1, &sge, 1);
	wr.opcode = IB_WR_SEND_WITH_IMM;
	wr.ex.imm_data = cpu_to_be32(0x12345678);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 1000));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_RECV, wc.opcode);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, 0x12345678, be32_to_cpu(wc.ex.imm_data));
	KUNIT_EXPECT_EQ(test, 100, wc.byte_len);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
}

static void write_reaches_remote_memory_only(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	rig_register(test, &r->b, ALL_ACCESS);
	rig_fill(r->a.buf, 5000, 7);
	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 9, 30000, 100));
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 1, 0, 5000,
					  r->b.mr->iova + 1000, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_RDMA_WRITE, wc.opcode);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, 1000, 0xee));
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + 1000, 5000, 7));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + 6000, RIG_BUF - 6000, 0xee));
	/* A write uses no receive, so the peer has no completion. */
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

static void c5_write_with_imm_uses_a_receive(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge sge = rig_sge(&r->a, 0, 300);
	struct ib_rdma_wr wr = {};
	struct ib_wc wc;

	rig_register(test, &r->b, ALL_ACCESS);
	rig_fill(r->a.buf, 300, 8);
	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 30000, 1000));
	rig_send_wr(&wr.wr, 1, &sge, 1);
	wr.wr.opcode = IB_WR_RDMA_WRITE_WITH_IMM;
	wr.wr.ex.imm_data = cpu_to_be32(0xcafe);
	wr.remote_addr = r->b.mr->iova;
	wr.rkey = r->b.mr->rkey;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_RECV_RDMA_WITH_IMM, wc.opcode);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_IMM);
	KUNIT_EXPECT_EQ(test, 0xcafe, be32_to_cpu(wc.ex.imm_data));
	KUNIT_EXPECT_EQ(test, 300, wc.byte_len);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, 300, 8));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + 300, RIG_BUF - 300, 0xee));
}

static void read_fetches_remote_memory(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	rig_register(test, &r->b, ALL_ACCESS);
	rig_fill(r->b.buf + 777, 9000, 9);
	memset(r->a.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 1, 50, 9000,
					  r->b.mr->iova + 777, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_RDMA_READ, wc.opcode);
	KUNIT_EXPECT_EQ(test, 9000, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf, 50, 0xee));
	KUNIT_EXPECT_TRUE(test, rig_filled(r->a.buf + 50, 9000, 9));
	KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf + 9050, RIG_BUF - 9050, 0xee));
}

static void scatter_and_gather_cut_where_they_like(struct kunit *test)
{
	static const u32 from[RIG_SGE] = { 10, 0, 4000, 90 };
	static const u32 to[RIG_SGE] = { 1, 2000, 2099, 1000 };
	struct rig *r = rig_of_param(test);
	struct ib_sge ssge[RIG_SGE], rsge[RIG_SGE];
	struct ib_recv_wr rwr = { .wr_id = 2, .sg_list = rsge,
				  .num_sge = RIG_SGE };
	u32 i, pos = 0, taken;
	struct ib_send_wr swr;
	struct ib_wc wc;
	u8 *all = kvt_zalloc(test, 4100);

	rig_fill(all, 4100, 11);
	memset(r->b.buf, 0xee, RIG_BUF);
	for (i = 0; i < RIG_SGE; i++) {
		ssge[i] = rig_sge(&r->a, i * 8192 + i, from[i]);
		rsge[i] = rig_sge(&r->b, i * 8192 + 5, to[i]);
		memcpy(r->a.buf + i * 8192 + i, all + pos, from[i]);
		pos += from[i];
	}
	rig_send_wr(&swr, 1, ssge, RIG_SGE);
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(r->b.qp, &rwr, NULL));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &swr, NULL));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 4100, wc.byte_len);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	for (i = 0, pos = 0; i < RIG_SGE; i++, pos += taken) {
		u8 *there = r->b.buf + i * 8192 + 5;

		taken = min(to[i], 4100 - pos);
		KUNIT_EXPECT_MEMEQ(test, there, all + pos, taken);
		KUNIT_EXPECT_EQ(test, 0xee, there[taken]);
		KUNIT_EXPECT_EQ(test, 0xee, there[-1]);
	}
}

static void p8_empty_message_uses_a_receive(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge none = { .addr = 0xdeadbeef, .lkey = 0x666 };
	struct ib_recv_wr rwr = { .wr_id = 3 };
	struct ib_send_wr wr;
	struct ib_wc wc;
	int i;

	memset(r->b.buf, 0xee, RIG_BUF);
	for (i = 0; i < 2; i++) {
		/* No SGE at all, then an SGE of length 0 with a bad key. */
		rig_send_wr(&wr, 1, &none, i);
		rwr.sg_list = &none;
		rwr.num_sge = i;
		KUNIT_ASSERT_EQ(test, 0, ib_post_recv(r->b.qp, &rwr, NULL));
		KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
		RIG_EXPECT_WC(test, r->b.rcq, &wc, 3, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, 0, wc.byte_len);
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
}

static void r17_empty_rdma_looks_at_no_key(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 1, 0, 0, 0xdeadbeef, 0x66666));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 2, 0, 0, 0xdeadbeef, 0x66666));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
}

static void p7_inline_data_is_taken_at_post(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge sge[2];
	struct ib_send_wr wr;
	struct ib_wc wc;

	rig_fill(r->a.buf, RIG_INLINE, 3);
	/* Inline data is given by its kernel address; the lkey is ignored. */
	sge[0] = (struct ib_sge) { (uintptr_t)r->a.buf, 20, 0x666 };
	sge[1] = (struct ib_sge) { (uintptr_t)r->a.buf + 20, RIG_INLINE - 20,
				   0x667 };
	rig_send_wr(&wr, 1, sge, 2);
	wr.send_flags |= IB_SEND_INLINE;
	/* The peer has no receive, so the message waits while its buffer is overwritten. */
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
	memset(r->a.buf, 0, RIG_INLINE);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, RIG_BUF));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, RIG_INLINE, wc.byte_len);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, RIG_INLINE, 3));
}

static void inline_write_needs_no_key_either(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge sge = { (uintptr_t)r->a.buf, 40, 0x666 };
	struct ib_rdma_wr wr = {};
	struct ib_wc wc;

	rig_register(test, &r->b, ALL_ACCESS);
	rig_fill(r->a.buf, 40, 4);
	rig_send_wr(&wr.wr, 1, &sge, 1);
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	wr.wr.send_flags |= IB_SEND_INLINE;
	wr.remote_addr = r->b.mr->iova + 3;
	wr.rkey = r->b.mr->rkey;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + 3, 40, 4));
}

static void c1_c2_unsignaled_sends_complete_silently(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	struct ib_send_wr wr;
	struct ib_wc wc;
	int round, i;

	/* Many times the SQ's depth: polling the signaled send makes room for all of them. */
	for (round = 0; round < 20; round++) {
		rig_recv_many(test, &r->b, 0, RIG_WR, 8);
		for (i = 0; i < RIG_WR; i++) {
			rig_send_wr(&wr, i, &sge, 1);
			if (i != RIG_WR - 1)
				wr.send_flags = 0;
			KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
		}
		RIG_EXPECT_WC(test, r->a.scq, &wc, RIG_WR - 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
		rig_expect_wcs(test, r->b.rcq, 0, RIG_WR, IB_WC_SUCCESS);
	}
}

static void c2_mixed_sends_complete_in_order(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_send_wr wr[RIG_WR];
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	struct ib_wc wc;
	int i;

	for (i = 0; i < RIG_WR; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 100 + i, 0, 8));
		rig_send_wr(&wr[i], i, &sge, 1);
		if (i % 3)
			wr[i].send_flags = 0;
		if (i)
			wr[i - 1].next = &wr[i];
	}
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, wr, NULL));
	for (i = 0; i < RIG_WR; i += 3)
		RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_SUCCESS);
	rig_expect_wcs(test, r->b.rcq, 100, RIG_WR, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

static void sig_all_signals_every_send(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	struct ib_send_wr wr;
	struct ib_wc wc;

	r->init.sq_sig_type = IB_SIGNAL_ALL_WR;
	rig_start(test, r);
	rig_send_wr(&wr, 1, &sge, 1);
	wr.send_flags = 0;
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
}

static void c6_send_with_inv_ends_the_key_first(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	rig_register(test, &r->b, ALL_ACCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_inv(&r->a, IB_WR_SEND_WITH_INV, 1, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, r->b.mr->rkey, wc.ex.invalidate_rkey);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 3, 0, 8,
					  r->b.mr->iova, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 3, IB_WC_REM_ACCESS_ERR);
}

static void region_serves_again_under_a_new_key(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;
	int i;

	rig_register(test, &r->b, ALL_ACCESS);
	for (i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_inv(&r->b, IB_WR_LOCAL_INV, 10, r->b.mr->rkey));
		RIG_EXPECT_WC(test, r->b.scq, &wc, 10, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, IB_WC_LOCAL_INV, wc.opcode);
		ib_update_fast_reg_key(r->b.mr, ib_inc_rkey(r->b.mr->rkey));
		KUNIT_ASSERT_EQ(test, 1, rig_map(&r->b, r->b.mr, i * 100 + i, 5000));
		KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, r->b.mr, 11, ALL_ACCESS));
		RIG_EXPECT_WC(test, r->b.scq, &wc, 11, IB_WC_SUCCESS);
		rig_fill(r->a.buf, 5000, i);
		KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 12, 0,
						  5000, r->b.mr->iova,
						  r->b.mr->rkey));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 12, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + i * 100 + i, 5000, i));
	}
}

static void c7_solicited_arm_waits_for_a_solicited_send(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	struct ib_send_wr wr;
	struct ib_wc wc;
	int i;

	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_SOLICITED));
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
		rig_send_wr(&wr, 1, &sge, 1);
		if (i)
			wr.send_flags |= IB_SEND_SOLICITED;
		KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
		RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		if (i)
			KUNIT_ASSERT_TRUE(test, kvt_wait(&r->b.got_call));
		KUNIT_EXPECT_EQ(test, i, atomic_read(&r->b.called));
	}
}

static void c7_error_fires_a_solicited_arm(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_SOLICITED));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->b.got_call));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_WR_FLUSH_ERR);
}

static void c8_arm_fires_once_and_next_wins(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;
	int i;

	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP));
	/* Arming for solicited completions does not undo arming for all. */
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_SOLICITED));
	for (i = 0; i < 5; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, 0, 8));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, 8));
		RIG_EXPECT_WC(test, r->b.rcq, &wc, i, IB_WC_SUCCESS);
		RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_SUCCESS);
	}
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->b.got_call));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r->b.called));
}

static void c9_arm_tells_of_completions_that_are_there(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	/* Armed after the first completion, which only IB_CQ_REPORT_MISSED_EVENTS reports. */
	KUNIT_EXPECT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP));
	KUNIT_EXPECT_GT(test, ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP |
					       IB_CQ_REPORT_MISSED_EVENTS), 0);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->b.called));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP |
						  IB_CQ_REPORT_MISSED_EVENTS));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 8));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->b.got_call));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
}

/* One direction of the traffic that flows both ways at once, from two CPUs. */
struct flow {
	struct rig_end *from;
	struct rig_end *to;
	u32 seed;
	u64 count;
	u64 sent;
	u64 received;
	u64 bad;
};

#define FLOW_SLOT	512
#define FLOW_RECV	SZ_32K

/* Messages are sent from the lower half of a buffer and received into the upper half. */
static int flow_send(struct flow *f, u64 n)
{
	u32 len = 1 + (n * 37 + f->seed) % (FLOW_SLOT - 1);
	size_t offset = n % RIG_WR * FLOW_SLOT;

	rig_fill(f->from->buf + offset, len, f->seed + n);
	return rig_send(f->from, n, offset, len);
}

static void flow_check(struct flow *f, const struct ib_wc *wc)
{
	u32 len = 1 + (f->received * 37 + f->seed) % (FLOW_SLOT - 1);
	size_t offset = FLOW_RECV + f->received % RIG_WR * FLOW_SLOT;

	if (wc->status != IB_WC_SUCCESS || wc->wr_id != f->received ||
	    wc->byte_len != len ||
	    !rig_filled(f->to->buf + offset, len, f->seed + f->received))
		f->bad++;
	f->received++;
}

static int flow_recv(struct flow *f, u64 n)
{
	return rig_recv(f->to, n, FLOW_RECV + n % RIG_WR * FLOW_SLOT, FLOW_SLOT);
}

static int flow_fn(void *arg)
{
	struct flow *f = arg;
	u64 posted = 0, done = 0;
	struct ib_wc wc;
	int ret = 0;

	while (posted < RIG_WR && !ret)
		ret = flow_recv(f, posted++);
	while (!ret && (done < f->count || f->received < f->count)) {
		if (f->sent < f->count && f->sent < done + RIG_WR)
			ret = flow_send(f, f->sent++);
		while (ib_poll_cq(f->from->scq, 1, &wc) == 1) {
			if (wc.status != IB_WC_SUCCESS || wc.wr_id != done)
				ret = -EIO;
			done++;
		}
		while (!ret && ib_poll_cq(f->to->rcq, 1, &wc) == 1) {
			flow_check(f, &wc);
			ret = flow_recv(f, posted++);
		}
		if (kvt_should_stop())
			return -ETIMEDOUT;
		cond_resched();
	}
	return ret;
}

static void traffic_flows_both_ways(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	u64 count = kvt_count(TRAFFIC);
	u32 seed = kvt_seed(test, "messages each way", count);
	struct kvt_thread *t[2];
	struct flow *f;
	int i;

	f = KVT_PTR(test, kunit_kcalloc(test, 2, sizeof(*f), GFP_KERNEL));
	for (i = 0; i < 2; i++) {
		f[i].from = i ? &r->b : &r->a;
		f[i].to = i ? &r->a : &r->b;
		f[i].seed = (seed + i) % 1000;
		f[i].count = count;
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, flow_fn, &f[i]);
	}
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(t[i]));
		KUNIT_EXPECT_EQ(test, count, f[i].received);
		KUNIT_EXPECT_EQ(test, 0, f[i].bad);
	}
}

static struct kunit_case emu_ops_cases[] = {
	KUNIT_CASE_PARAM(send_arrives_whole, pair_gen_params),
	KUNIT_CASE_PARAM(c4_send_with_imm_carries_it, pair_gen_params),
	KUNIT_CASE_PARAM(write_reaches_remote_memory_only, pair_gen_params),
	KUNIT_CASE_PARAM(c5_write_with_imm_uses_a_receive, pair_gen_params),
	KUNIT_CASE_PARAM(read_fetches_remote_memory, pair_gen_params),
	KUNIT_CASE_PARAM(scatter_and_gather_cut_where_they_like, pair_gen_params),
	KUNIT_CASE_PARAM(p8_empty_message_uses_a_receive, pair_gen_params),
	KUNIT_CASE_PARAM(r17_empty_rdma_looks_at_no_key, pair_gen_params),
	KUNIT_CASE_PARAM(p7_inline_data_is_taken_at_post, pair_gen_params),
	KUNIT_CASE_PARAM(inline_write_needs_no_key_either, pair_gen_params),
	KUNIT_CASE_PARAM(c1_c2_unsignaled_sends_complete_silently, pair_gen_params),
	KUNIT_CASE_PARAM(c2_mixed_sends_complete_in_order, pair_gen_params),
	KUNIT_CASE(sig_all_signals_every_send),
	KUNIT_CASE_PARAM(c6_send_with_inv_ends_the_key_first, pair_gen_params),
	KUNIT_CASE_PARAM(region_serves_again_under_a_new_key, pair_gen_params),
	KUNIT_CASE_PARAM(c7_solicited_arm_waits_for_a_solicited_send, pair_gen_params),
	KUNIT_CASE_PARAM(c7_error_fires_a_solicited_arm, pair_gen_params),
	KUNIT_CASE_PARAM(c8_arm_fires_once_and_next_wins, pair_gen_params),
	KUNIT_CASE_PARAM(c9_arm_tells_of_completions_that_are_there, pair_gen_params),
	KUNIT_CASE_PARAM(traffic_flows_both_ways, pair_gen_params),
	{}
};
KVT_SUITE(emu_ops);

MODULE_DESCRIPTION("KUnit: the software HCA at work");
MODULE_LICENSE("GPL");
