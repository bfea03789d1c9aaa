// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows of the conformance table about data transfer on RC connections and its limits:
 * message lengths, atomics, limits on outstanding reads, fences. The name of a case begins
 * with that of its row.
 */
#include "emu/rig.h"
#include "lib/objects.h"

#define ALL_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)
#define RACE		20000

static const enum ib_wr_opcode moves[] = {
	IB_WR_SEND, IB_WR_SEND_WITH_IMM, IB_WR_SEND_WITH_INV, IB_WR_RDMA_WRITE,
	IB_WR_RDMA_WRITE_WITH_IMM, IB_WR_RDMA_READ, IB_WR_RDMA_READ_WITH_INV,
};

static const char *const op_names[] = {
	[IB_WR_SEND] = "SEND",
	[IB_WR_SEND_WITH_IMM] = "SEND_WITH_IMM",
	[IB_WR_SEND_WITH_INV] = "SEND_WITH_INV",
	[IB_WR_RDMA_WRITE] = "RDMA_WRITE",
	[IB_WR_RDMA_WRITE_WITH_IMM] = "RDMA_WRITE_WITH_IMM",
	[IB_WR_RDMA_READ] = "RDMA_READ",
	[IB_WR_RDMA_READ_WITH_INV] = "RDMA_READ_WITH_INV",
	[IB_WR_ATOMIC_FETCH_AND_ADD] = "FETCH_AND_ADD",
	[IB_WR_ATOMIC_CMP_AND_SWP] = "CMP_AND_SWP",
};

KVT_NAMED_PARAM(move, moves, op_names);

/* Reads move data to the requester, all other operations to the responder. */
static bool is_read(enum ib_wr_opcode op)
{
	return op == IB_WR_RDMA_READ || op == IB_WR_RDMA_READ_WITH_INV;
}

static bool uses_receive(enum ib_wr_opcode op)
{
	return op == IB_WR_SEND || op == IB_WR_SEND_WITH_IMM ||
	       op == IB_WR_SEND_WITH_INV || op == IB_WR_RDMA_WRITE_WITH_IMM;
}

/* Connects the QPs, and registers the second end's buffer with all access rights. */
static struct rig *rig_open(struct kunit *test, struct rig *r)
{
	r->access = ALL_ACCESS;
	rig_start(test, r);
	rig_register(test, &r->b, ALL_ACCESS);
	return r;
}

static struct rig *rig_open_between_two(struct kunit *test)
{
	return rig_open(test, rig_new(test, "emu0", "emu1"));
}

/* Builds a WR for any operation; its remote address is the start of the peer's buffer. */
static void op_wr(struct kunit *test, struct rig *r, struct ib_rdma_wr *wr,
		  enum ib_wr_opcode op, struct ib_sge *sge, int num)
{
	struct rig_end inv = op == IB_WR_SEND_WITH_INV ? r->b : r->a;

	memset(wr, 0, sizeof(*wr));
	rig_send_wr(&wr->wr, op, sge, num);
	wr->wr.opcode = op;
	wr->wr.ex.imm_data = cpu_to_be32(op);
	wr->remote_addr = r->b.mr->iova;
	wr->rkey = r->b.mr->rkey;
	if (op != IB_WR_SEND_WITH_INV && op != IB_WR_RDMA_READ_WITH_INV)
		return;
	/* The key to be invalidated is that of another registration. */
	rig_register(test, &inv, ALL_ACCESS);
	wr->wr.ex.invalidate_rkey = inv.mr->rkey;
}

/* Both ends' completions of an operation posted by op_wr(). */
static void op_expect_done(struct kunit *test, struct rig *r, enum ib_wr_opcode op, u32 len)
{
	struct ib_wc wc;

	RIG_EXPECT_WC(test, r->a.scq, &wc, op, IB_WC_SUCCESS);
	if (!uses_receive(op))
		return;
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 77, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, len, wc.byte_len);
	KUNIT_EXPECT_EQ(test, op == IB_WR_RDMA_WRITE_WITH_IMM ?
			IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV, wc.opcode);
	KUNIT_EXPECT_EQ(test, op == IB_WR_SEND_WITH_INV, !!(wc.wc_flags & IB_WC_WITH_INVALIDATE));
	KUNIT_EXPECT_EQ(test, op == IB_WR_SEND_WITH_IMM ||
			op == IB_WR_RDMA_WRITE_WITH_IMM,
			!!(wc.wc_flags & IB_WC_WITH_IMM));
}

/* R1: the fabric has no packets, so messages of any length around the MTU arrive whole. */

static const enum ib_mtu mtus[] = {
	IB_MTU_256, IB_MTU_512, IB_MTU_1024, IB_MTU_2048, IB_MTU_4096,
};

static void mtu_name(const enum ib_mtu *mtu, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "MTU %d", ib_mtu_enum_to_int(*mtu));
}

KUNIT_ARRAY_PARAM(mtu, mtus, mtu_name);

static void r1_one_length(struct kunit *test, struct rig *r, enum ib_wr_opcode op, u32 len)
{
	struct ib_sge sge = rig_sge(&r->a, 0, len);
	struct rig_end *from = is_read(op) ? &r->b : &r->a;
	struct rig_end *to = is_read(op) ? &r->a : &r->b;
	struct ib_rdma_wr wr;

	op_wr(test, r, &wr, op, &sge, 1);
	rig_fill(from->buf, len, len);
	memset(to->buf, 0xee, len + 64);
	if (uses_receive(op))
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 77, 0, len));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	op_expect_done(test, r, op, len);
	KUNIT_EXPECT_TRUE(test, rig_filled(to->buf, len, len));
	KUNIT_EXPECT_TRUE(test, rig_all(to->buf + len, 64, 0xee));
}

static void r1_messages_around_the_mtu_arrive_whole(struct kunit *test)
{
	static const enum ib_wr_opcode ops[] = {
		IB_WR_SEND, IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM,
		IB_WR_RDMA_READ,
	};
	enum ib_mtu mtu = *(const enum ib_mtu *)test->param_value;
	int len = ib_mtu_enum_to_int(mtu);
	int i, packets, more;
	struct rig *r = rig_new(test, "emu0", "emu1");

	r->mtu = mtu;
	rig_open(test, r);
	for (i = 0; i < ARRAY_SIZE(ops); i++)
		for (packets = 1; packets <= 4; packets++)
			for (more = -1; more <= 1; more++)
				r1_one_length(test, r, ops[i], packets * len + more);
}

static void r6_packet_numbers_wrap(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	int i;

	/* The PSN of the third packet in each direction is 0. */
	r->psn = 0xfffffe;
	rig_open(test, r);
	KUNIT_ASSERT_EQ(test, 0, ib_query_qp(r->a.qp, &attr, IB_QP_SQ_PSN | IB_QP_RQ_PSN, &init));
	KUNIT_EXPECT_EQ(test, 0xfffffe, attr.sq_psn);
	KUNIT_EXPECT_EQ(test, 0xfffffe, attr.rq_psn);
	for (i = 0; i < 10; i++) {
		r1_one_length(test, r, IB_WR_SEND, 5000 + i);
		r1_one_length(test, r, IB_WR_RDMA_READ, 5000 + i);
	}
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
}

/* P7, P8: with inline data, and without any. */

static void p7_inline_of_each_operation(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	struct rig *r = rig_open_between_two(test);
	struct ib_sge sge = { (uintptr_t)r->a.buf, RIG_INLINE, 0x666 };
	struct ib_rdma_wr wr;

	op_wr(test, r, &wr, op, &sge, 1);
	wr.wr.send_flags |= IB_SEND_INLINE;
	if (is_read(op)) {
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
		return;
	}
	rig_fill(r->a.buf, RIG_INLINE, op);
	if (uses_receive(op))
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 77, 0, RIG_INLINE));
	/* In SQD, the WR is not sent yet, so that the buffer can be overwritten before. */
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	memset(r->a.buf, 0, RIG_INLINE);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
	op_expect_done(test, r, op, RIG_INLINE);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, RIG_INLINE, op));
}

static void p8_each_operation_without_data(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	struct rig *r = rig_open_between_two(test);
	struct ib_sge none = { .addr = 0xdeadbeef, .lkey = 0x666 };
	struct ib_rdma_wr wr;
	int i;

	memset(r->a.buf, 0xaa, RIG_BUF);
	memset(r->b.buf, 0xee, RIG_BUF);
	for (i = 0; i < 4; i++) {
		/* No SGE, or one of length 0; inline or not. */
		op_wr(test, r, &wr, op, &none, i & 1);
		if ((i & 2) && !is_read(op))
			wr.wr.send_flags |= IB_SEND_INLINE;
		wr.remote_addr = 0xdeadbeef;
		wr.rkey = 0x66666;
		if (uses_receive(op))
			KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 77, 0, 0));
		KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
		op_expect_done(test, r, op, 0);
	}
	KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf, RIG_BUF, 0xaa));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
}

/* P9, R16: 2 GiB, of 8 MiB of memory. */

/* A region of the same block again and again, and another one at its end. */
struct huge {
	struct rig_end *first;	/* all but the last of the blocks; has the region */
	struct rig_end *last;	/* the last */
};

static struct huge huge_new(struct kunit *test, struct rig_end *e)
{
	struct huge h = { rig_block(test, e, 0), rig_block(test, e, 0) };

	rig_register_blocks(test, h.first, SZ_2G / RIG_BLOCK, h.last, ALL_ACCESS);
	KUNIT_ASSERT_EQ(test, SZ_2G, h.first->mr->length);
	return h;
}

/* The first and last word of the first and of the last block, numbered from 0 to 3. */
static u64 *huge_word(const struct huge *h, int i)
{
	u64 *words = (u64 *)(i / 2 ? h->last : h->first)->buf;

	return i % 2 ? &words[RIG_BLOCK / sizeof(u64) - 1] : words;
}

static void huge_move(struct kunit *test, enum ib_wr_opcode op)
{
	struct rig *r = rig_open_between_two(test);
	struct huge from = huge_new(test, &r->a), to = huge_new(test, &r->b);
	struct ib_mr *local = from.first->mr, *remote = to.first->mr;
	struct ib_sge sge = { local->iova, SZ_2G, local->lkey };
	struct ib_sge rsge = { remote->iova, SZ_2G, remote->lkey };
	struct ib_recv_wr rwr = { .wr_id = 77, .sg_list = &rsge, .num_sge = 1 };
	struct ib_rdma_wr wr;
	int i;

	for (i = 0; i < 4; i++)
		*huge_word(&from, i) = 0x1000 + i;
	op_wr(test, r, &wr, op, &sge, 1);
	wr.remote_addr = remote->iova;
	wr.rkey = remote->rkey;
	if (uses_receive(op))
		KUNIT_ASSERT_EQ(test, 0, ib_post_recv(r->b.qp, &rwr, NULL));
	ib_req_notify_cq(r->a.scq, IB_CQ_NEXT_COMP);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	/* Copying takes seconds on an emulated CPU. */
	wait_for_completion_timeout(&r->a.got_call, 10 * KVT_TIMEOUT);
	op_expect_done(test, r, op, SZ_2G);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, 0x1000 + i, *huge_word(&to, i));
}

static void huge_is_slow(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_KASAN))
		kunit_skip(test, "slow: left to kernels without sanitizers");
}

static void p9_send_of_2_gib_arrives(struct kunit *test)
{
	huge_is_slow(test);
	huge_move(test, IB_WR_SEND);
}

static void r16_write_of_2_gib_arrives(struct kunit *test)
{
	huge_is_slow(test);
	huge_move(test, IB_WR_RDMA_WRITE);
}

/* R14, R15, R19: atomics and reads that the responder refuses. */

static const enum ib_wr_opcode atomics[] = {
	IB_WR_ATOMIC_FETCH_AND_ADD, IB_WR_ATOMIC_CMP_AND_SWP,
};

KVT_NAMED_PARAM(atomic, atomics, op_names);

static const enum ib_wr_opcode limited[] = {
	IB_WR_RDMA_READ, IB_WR_RDMA_READ_WITH_INV, IB_WR_ATOMIC_FETCH_AND_ADD,
	IB_WR_ATOMIC_CMP_AND_SWP,
};

KVT_NAMED_PARAM(limited, limited, op_names);

/* Posts a read or an atomic on the word at the start of the peer's buffer. */
static int post_limited(struct rig *r, enum ib_wr_opcode op, u64 id)
{
	struct ib_atomic_wr target = {
		.remote_addr = r->b.mr->iova,
		.rkey = r->b.mr->rkey,
		.compare_add = 1,
	};

	if (is_read(op))
		return rig_rdma(&r->a, op, id, 0, 8, target.remote_addr, target.rkey);
	return rig_atomic(&r->a, op, id, 0, &target);
}

static void expect_refused(struct kunit *test, struct rig *r, u64 id,
			   enum ib_wc_status status, enum ib_event_type event)
{
	struct ib_wc wc;

	RIG_EXPECT_WC(test, r->a.scq, &wc, id, status);
	rig_expect_event(test, &r->b, event);
	rig_expect_no_event(test, &r->a);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
	KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf, RIG_BUF, 0xaa));
}

static void fill_both(struct rig *r)
{
	memset(r->a.buf, 0xaa, RIG_BUF);
	memset(r->b.buf, 0xee, RIG_BUF);
}

static void r14_atomic_needs_its_key(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	struct ib_atomic_wr target = { .compare_add = 0xeeeeeeeeeeeeeeee };
	int bad;

	for (bad = 0; bad < 4; bad++) {
		struct rig *r = rig_open_between_two(test);

		if (bad == 0)
			rig_register(test, &r->b, ALL_ACCESS & ~IB_ACCESS_REMOTE_ATOMIC);
		target.remote_addr = r->b.mr->iova;
		target.rkey = r->b.mr->rkey;
		if (bad == 1)
			target.rkey = ib_inc_rkey(target.rkey);
		else if (bad == 2)
			target.remote_addr += r->b.mr->length;
		else if (bad == 3)
			target.remote_addr -= 8;
		fill_both(r);
		KUNIT_ASSERT_EQ(test, 0, rig_atomic(&r->a, op, bad, 0, &target));
		expect_refused(test, r, bad, IB_WC_REM_ACCESS_ERR, IB_EVENT_QP_ACCESS_ERR);
	}
}

static void r15_queue_pair_forbids_what_the_key_grants(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	struct rig *r = rig_new(test, "emu0", "emu1");

	r->access = IB_ACCESS_REMOTE_WRITE;
	rig_start(test, r);
	rig_register(test, &r->b, ALL_ACCESS);
	fill_both(r);
	KUNIT_ASSERT_EQ(test, 0, post_limited(r, op, 1));
	expect_refused(test, r, 1, IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
}

static void r19_responder_without_resources(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	struct rig *r = rig_new(test, "emu0", "emu1");

	r->max_dest_rd = 0;
	rig_open(test, r);
	fill_both(r);
	KUNIT_ASSERT_EQ(test, 0, post_limited(r, op, 1));
	expect_refused(test, r, 1, IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
}

static void r20_requester_that_may_have_none(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	r->max_rd = 0;
	rig_open(test, r);
	fill_both(r);
	KUNIT_ASSERT_EQ(test, 0, post_limited(r, op, 1));
	/* The request may never be sent, so it fails instead of waiting forever. */
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_LOC_QP_OP_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
	KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf, RIG_BUF, 0xaa));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
}

static void r20_one_at_a_time_serves_a_full_queue(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	struct rig *r = rig_new(test, "emu0", "emu1");
	int i;

	if (op == IB_WR_RDMA_READ_WITH_INV)
		op = IB_WR_RDMA_READ;
	r->max_rd = 1;
	r->max_dest_rd = 1;
	rig_open(test, r);
	for (i = 0; i < RIG_WR; i++)
		KUNIT_ASSERT_EQ(test, 0, post_limited(r, op, i));
	rig_expect_wcs(test, r->a.scq, 0, RIG_WR, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
}

/* P10: the operand of an atomic has 8 bytes, in one SGE, and is aligned to 8. */

static void p10_operand_of_another_length_is_refused(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	static const u32 lengths[][2] = {
		{ 0, 0 }, { 4, 0 }, { 7, 0 }, { 9, 0 }, { 16, 0 }, { 8, 8 }, { 3, 5 }, { 8, 0 },
	};
	struct rig *r = rig_open_between_two(test);
	struct ib_atomic_wr wr = {};
	struct ib_sge sge[2];
	struct ib_wc wc;
	int i, nr;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		sge[0] = rig_sge(&r->a, 0, lengths[i][0]);
		sge[1] = rig_sge(&r->a, 64, lengths[i][1]);
		for (nr = 0; nr <= 2; nr++) {
			if (nr == 1 && lengths[i][0] == 8)
				continue;
			rig_send_wr(&wr.wr, 1, sge, nr);
			wr.wr.opcode = op;
			KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
		}
	}
	wr.remote_addr = r->b.mr->iova;
	wr.rkey = r->b.mr->rkey;
	wr.wr.num_sge = 1;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	wr.wr.send_flags |= IB_SEND_INLINE;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
}

static void p10_misaligned_operand_is_refused(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	struct ib_atomic_wr target = {};
	int i;

	for (i = 1; i < 8; i += 3) {
		struct rig *r = rig_open_between_two(test);

		fill_both(r);
		target.remote_addr = r->b.mr->iova + 16 + i;
		target.rkey = r->b.mr->rkey;
		KUNIT_ASSERT_EQ(test, 0, rig_atomic(&r->a, op, i, 0, &target));
		expect_refused(test, r, i, IB_WC_REM_INV_REQ_ERR, IB_EVENT_QP_REQ_ERR);
	}
}

/* R18, R21, R22: results of atomics and reads, fences, atomicity. */

static void r18_result_needs_writable_memory(struct kunit *test)
{
	enum ib_wr_opcode op = *(const enum ib_wr_opcode *)test->param_value;
	struct rig *r = rig_open_between_two(test);
	struct ib_atomic_wr wr = { .compare_add = 0xeeeeeeeeeeeeeeee };
	struct ib_sge sge;
	struct ib_wc wc;

	rig_register(test, &r->a, IB_ACCESS_REMOTE_READ);
	fill_both(r);
	sge = (struct ib_sge) { r->a.mr->iova, 8, r->a.mr->lkey };
	rig_send_wr(&wr.wr, 1, &sge, 1);
	wr.wr.opcode = op;
	wr.remote_addr = r->b.mr->iova;
	wr.rkey = r->b.mr->rkey;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf, RIG_BUF, 0xaa));
	/* The peer had answered before the requester found that it cannot take the answer. */
	KUNIT_EXPECT_FALSE(test, rig_all(r->b.buf, sizeof(u64), 0xee));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf + sizeof(u64), RIG_BUF - sizeof(u64), 0xee));
}

static void r21_fenced_send_carries_what_was_read(struct kunit *test)
{
	struct rig *r = rig_open_between_two(test);
	struct ib_sge sge = rig_sge(&r->a, 0, 5000);
	struct ib_send_wr wr;
	struct ib_wc wc;
	int i;

	for (i = 0; i < 100; i++) {
		rig_fill(r->b.buf, 5000, i);
		memset(r->a.buf, 0, 5000);
		memset(r->b.buf + 10000, 0, 5000);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 77, 10000, 5000));
		KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 1, 0,
						  5000, r->b.mr->iova,
						  r->b.mr->rkey));
		rig_send_wr(&wr, 2, &sge, 1);
		wr.send_flags |= IB_SEND_FENCE;
		KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		RIG_EXPECT_DELIVERED(test, r, &wc, 2, 77);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + 10000, 5000, i));
	}
}

/* Runs an atomic on the word at the start of the peer's buffer. Returns the original value. */
static u64 word_op(struct kunit *test, struct rig *r, enum ib_wr_opcode op,
		   u64 compare_add, u64 swap)
{
	struct ib_atomic_wr target = {
		.remote_addr = r->b.mr->iova,
		.rkey = r->b.mr->rkey,
		.compare_add = compare_add,
		.swap = swap,
	};
	struct ib_wc wc;

	*(u64 *)r->a.buf = 0xa5a5a5a5a5a5a5a5;
	KUNIT_ASSERT_EQ(test, 0, rig_atomic(&r->a, op, 1, 0, &target));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, op == IB_WR_ATOMIC_CMP_AND_SWP ?
			IB_WC_COMP_SWAP : IB_WC_FETCH_ADD, wc.opcode);
	KUNIT_EXPECT_EQ(test, 8, wc.byte_len);
	return *(u64 *)r->a.buf;
}

static void r22_fetch_and_add_wraps(struct kunit *test)
{
	struct rig *r = rig_new(test, rig_pairs[0].a, rig_pairs[0].b);
	u64 *word = (u64 *)r->b.buf;

	rig_open(test, r);
	*word = 0x0123456789abcdef;
	KUNIT_EXPECT_EQ(test, 0x0123456789abcdef,
			word_op(test, r, IB_WR_ATOMIC_FETCH_AND_ADD, 0x11, 0));
	KUNIT_EXPECT_EQ(test, 0x0123456789abce00, *word);
	*word = U64_MAX - 1;
	KUNIT_EXPECT_EQ(test, U64_MAX - 1, word_op(test, r, IB_WR_ATOMIC_FETCH_AND_ADD, 3, 0));
	KUNIT_EXPECT_EQ(test, 1, *word);
	KUNIT_EXPECT_EQ(test, 1, word_op(test, r, IB_WR_ATOMIC_FETCH_AND_ADD, U64_MAX, 0));
	KUNIT_EXPECT_EQ(test, 0, *word);
	KUNIT_EXPECT_EQ(test, 0, word[1]);
}

static void r22_compare_and_swap_swaps_what_is_equal(struct kunit *test)
{
	struct rig *r = rig_new(test, rig_pairs[1].a, rig_pairs[1].b);
	u64 *word = (u64 *)r->b.buf;

	rig_open(test, r);
	*word = 0x0123456789abcdef;
	KUNIT_EXPECT_EQ(test, 0x0123456789abcdef,
			word_op(test, r, IB_WR_ATOMIC_CMP_AND_SWP,
				0x0123456789abcdee, 7));
	KUNIT_EXPECT_EQ(test, 0x0123456789abcdef, *word);
	KUNIT_EXPECT_EQ(test, 0x0123456789abcdef,
			word_op(test, r, IB_WR_ATOMIC_CMP_AND_SWP,
				0x0123456789abcdef, 7));
	KUNIT_EXPECT_EQ(test, 7, *word);
	KUNIT_EXPECT_EQ(test, 0, word[1]);
}

/* A QP that increments the common word. */
struct racer {
	struct rig *r;	/* the rig of the QP */
	u64 count;	/* increments to make */
	bool swap;	/* use CmpSwp instead of FetchAdd */
	u64 failed;	/* errors found */
};

/* Tries to add 1. Returns false if the word did not equal @seen, so that CmpSwp failed. */
static bool racer_step(struct racer *c, u64 *seen)
{
	struct ib_atomic_wr target = {
		.remote_addr = c->r->b.mr->iova,
		.rkey = c->r->b.mr->rkey,
		.compare_add = c->swap ? *seen : 1,
		.swap = *seen + 1,
	};
	u64 expected = *seen;
	struct ib_wc wc;

	if (rig_atomic(&c->r->a, c->swap ? IB_WR_ATOMIC_CMP_AND_SWP :
		       IB_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &target) ||
	    !rig_poll(c->r->a.scq, &wc) || wc.status != IB_WC_SUCCESS)
		c->failed++;
	*seen = *(u64 *)c->r->a.buf;
	/* The word never decreases. */
	if (*seen < expected)
		c->failed++;
	if (!c->swap)
		return true;
	if (*seen != expected)
		return false;
	(*seen)++;
	return true;
}

static int racer_fn(void *arg)
{
	struct racer *c = arg;
	u64 seen = 0, done = 0;

	while (done < c->count && !c->failed && !kvt_should_stop()) {
		done += racer_step(c, &seen);
		kvt_yield();
	}
	return done == c->count ? 0 : -EIO;
}

static void r22_all_queue_pairs_of_the_hca_see_one_word(struct kunit *test)
{
	struct rig *r = rig_open_between_two(test);
	struct rig *other = rig_open(test, rig_new(test, "emu1", "emu1"));
	struct racer c[2] = { { .r = r }, { .r = other, .swap = true } };
	u64 count = kvt_count(RACE);
	struct kvt_thread *t[2];
	struct rig_end alias;
	int i;

	/* Another PD and another key, but the same memory. */
	alias = other->b;
	alias.buf = r->b.buf;
	alias.dma = r->b.dma;
	rig_register(test, &alias, ALL_ACCESS);
	other->b.mr = alias.mr;
	kvt_print_length(test, "additions of each of two", count);
	for (i = 0; i < 2; i++) {
		c[i].count = count;
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, racer_fn, &c[i]);
	}
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(t[i]));
		KUNIT_EXPECT_EQ(test, 0, c[i].failed);
	}
	KUNIT_EXPECT_EQ(test, 2 * count, *(u64 *)r->b.buf);
}

static void read_with_inv_ends_the_local_key(struct kunit *test)
{
	struct rig *r = rig_new(test, rig_pairs[1].a, rig_pairs[1].b);
	struct ib_rdma_wr wr;
	struct ib_sge sge;
	struct ib_wc wc;

	rig_open(test, r);
	rig_register(test, &r->a, ALL_ACCESS);
	sge = (struct ib_sge) { r->a.mr->iova, 5000, r->a.mr->lkey };
	op_wr(test, r, &wr, IB_WR_RDMA_READ_WITH_INV, &sge, 1);
	wr.wr.ex.invalidate_rkey = r->a.mr->rkey;
	rig_fill(r->b.buf, 5000, 3);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, wr.wr.wr_id, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_RDMA_READ, wc.opcode);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->a.buf, 5000, 3));
	/* The read has invalidated the key, so another read must fail. */
	wr.wr.opcode = IB_WR_RDMA_READ;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, wr.wr.wr_id, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
}

static void c6_send_with_inv_of_a_bad_key(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	/* An ACK timeout of 4 * 4.096 us. */
	r->timeout = 2;
	r->retry_cnt = 2;
	rig_open(test, r);
	fill_both(r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_inv(&r->a, IB_WR_SEND_WITH_INV, 1,
					 ib_inc_rkey(r->b.mr->rkey)));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_MW_BIND_ERR);
	expect_refused(test, r, 1, IB_WC_RETRY_EXC_ERR, IB_EVENT_QP_ACCESS_ERR);
}

static struct kunit_case emu_conform_rc_cases[] = {
	KUNIT_CASE_PARAM(r1_messages_around_the_mtu_arrive_whole, mtu_gen_params),
	KUNIT_CASE(r6_packet_numbers_wrap),
	KUNIT_CASE_PARAM(p7_inline_of_each_operation, move_gen_params),
	KUNIT_CASE_PARAM(p8_each_operation_without_data, move_gen_params),
	KUNIT_CASE_SLOW(p9_send_of_2_gib_arrives),
	KUNIT_CASE_SLOW(r16_write_of_2_gib_arrives),
	KUNIT_CASE_PARAM(r14_atomic_needs_its_key, atomic_gen_params),
	KUNIT_CASE_PARAM(r15_queue_pair_forbids_what_the_key_grants, limited_gen_params),
	KUNIT_CASE_PARAM(r18_result_needs_writable_memory, atomic_gen_params),
	KUNIT_CASE_PARAM(r19_responder_without_resources, limited_gen_params),
	KUNIT_CASE_PARAM(r20_requester_that_may_have_none, limited_gen_params),
	KUNIT_CASE_PARAM(r20_one_at_a_time_serves_a_full_queue, limited_gen_params),
	KUNIT_CASE_PARAM(p10_operand_of_another_length_is_refused, atomic_gen_params),
	KUNIT_CASE_PARAM(p10_misaligned_operand_is_refused, atomic_gen_params),
	KUNIT_CASE(r21_fenced_send_carries_what_was_read),
	KUNIT_CASE(r22_fetch_and_add_wraps),
	KUNIT_CASE(r22_compare_and_swap_swaps_what_is_equal),
	KUNIT_CASE(r22_all_queue_pairs_of_the_hca_see_one_word),
	KUNIT_CASE(read_with_inv_ends_the_local_key),
	KUNIT_CASE(c6_send_with_inv_of_a_bad_key),
	{}
};
KVT_SUITE(emu_conform_rc);

MODULE_DESCRIPTION("KUnit: the software HCA against the conformance table");
MODULE_LICENSE("GPL");
