// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows of the conformance table about responders that do not answer, or answer RNR NAK: how
 * often and how long a requester retries, and how its requests complete.
 */
#include <kverbs/delay.h>

#include "emu/rig_net.h"
#include "lib/objects.h"

#define NO_ANSWER	"ack_timeout_err"
#define NOT_READY	"rcvd_rnr_err"
#define PKEYS		"/sys/kernel/config/kverbs_emu/emu1/port1/pkeys"

static const int retries[] = { 0, 1, 3, 7 };
/* An rnr_retry of 7 means no limit. */
static const int rnr_retries[] = { 0, 1, 3, 6 };

KVT_NUMBER_PARAM(retry, retries, "%d retries");
KVT_NUMBER_PARAM(rnr_retry, rnr_retries, "%d retries");

static struct rig *rig_between_two(struct kunit *test)
{
	return rig_new(test, "emu0", "emu1");
}

/* Brings the first end to RTS, and the second end only to INIT, where it does not answer. */
static void connect_first_only(struct kunit *test, struct rig *r)
{
	rig_make_qps(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
	rig_connect_end(test, r, &r->a, &r->b);
}

static void r8_gives_up_after_so_many_retries(struct kunit *test)
{
	int k = *(const int *)test->param_value;
	struct rig *r = rig_between_two(test);
	struct ib_wc wc;
	u64 before;

	r->timeout = 2;
	r->retry_cnt = k;
	connect_first_only(test, r);
	before = rig_counter(test, &r->a, NO_ANSWER);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RETRY_EXC_ERR);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, k + 1, rig_counter(test, &r->a, NO_ANSWER) - before);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_INIT, rig_state(r->b.qp));
}

/*
 * The RNR NAK timer values of IBTA table 45, in ns. In units of 10 us they double every two
 * codes from code 2 on; code 0 stands for the value that would follow code 31.
 */
static u64 rnr_ns(unsigned int code)
{
	u64 units;

	if (!code)
		code = 32;
	if (code == 1)
		units = 1;
	else if (code % 2)
		units = 3ULL << (code - 3) / 2;
	else
		units = 1ULL << code / 2;
	return units * 10 * NSEC_PER_USEC;
}

/* Changes the first end again and again until its request, the only one, has ended. */
static void change_until_over(struct kunit *test, struct rig *r, const struct ib_qp_attr *attr,
			      int mask, int err, enum ib_wc_status status)
{
	struct ib_wc wc = {};
	bool ended = false;
	int i;

	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	for (i = 0; i < 200 && !ended; i++) {
		struct ib_qp_attr copy = *attr;

		KUNIT_EXPECT_EQ(test, err, ib_modify_qp(r->a.qp, &copy, mask));
		usleep_range(20000, 25000);
		ended = ib_poll_cq(r->a.scq, 1, &wc) == 1;
	}
	KUNIT_EXPECT_TRUE(test, ended);
	KUNIT_EXPECT_EQ(test, status, wc.status);
}

/* Each refused change comes before the timeout of 67 ms is over, which must not begin anew. */
static void r8_refused_change_keeps_the_retries(struct kunit *test)
{
	const struct ib_qp_attr attr = { .qp_state = IB_QPS_RTR };
	struct rig *r = rig_between_two(test);

	r->timeout = 14;
	r->retry_cnt = 1;
	connect_first_only(test, r);
	change_until_over(test, r, &attr, IB_QP_STATE, -EINVAL, IB_WC_RETRY_EXC_ERR);
}

/* What RTS allows to change for a requester's queue pair is of the other direction. */
static void change_in_rts_until_over(struct kunit *test, struct rig *r, enum ib_wc_status status)
{
	const struct ib_qp_attr attr = {
		.qp_access_flags = IB_ACCESS_REMOTE_READ,
		.min_rnr_timer = 3,
	};
	struct ib_qp_init_attr init;
	struct ib_qp_attr now;

	change_until_over(test, r, &attr, IB_QP_ACCESS_FLAGS | IB_QP_MIN_RNR_TIMER, 0, status);
	KUNIT_EXPECT_EQ(test, 0, ib_query_qp(r->a.qp, &now, IB_QP_STATE, &init));
	KUNIT_EXPECT_EQ(test, IB_ACCESS_REMOTE_READ, now.qp_access_flags);
	KUNIT_EXPECT_EQ(test, 3, now.min_rnr_timer);
}

/* Neither ends a wait of 67 ms, of which there are two, nor gives the request more tries. */
static void r8_change_in_rts_keeps_the_retries(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	u64 start;

	r->timeout = 14;
	r->retry_cnt = 1;
	connect_first_only(test, r);
	start = ktime_get_ns();
	change_in_rts_until_over(test, r, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 2ULL * 4096 << 14);
}

/* The responder asks for 82 ms. */
static void r10_change_in_rts_keeps_the_retries(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	u64 start;

	r->rnr_retry = 1;
	r->rnr_timer = 26;
	rig_start(test, r);
	start = ktime_get_ns();
	change_in_rts_until_over(test, r, IB_WC_RNR_RETRY_EXC_ERR);
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, rnr_ns(r->rnr_timer));
}

static void r8_waits_for_the_timeout_between_two(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	struct ib_wc wc;
	u64 start;

	/* 4.096 us times 2 to the 12th: 16.8 ms. */
	r->timeout = 12;
	r->retry_cnt = 3;
	connect_first_only(test, r);
	start = ktime_get_ns();
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RETRY_EXC_ERR);
	/* The last attempt, too, has its time. */
	KUNIT_EXPECT_GE(test, ktime_get_ns() - start, 4ULL * 4096 << 12);
}

/* A responder that expects another number takes no packet for one of its requester's. */
static void r8_requests_begin_with_the_number_that_is_expected(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	struct ib_wc wc;

	r->timeout = 2;
	r->retry_cnt = 1;
	connect_first_only(test, r);
	r->psn++;
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTR, rig_state(r->b.qp));
}

static void r8_each_message_has_its_retries(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	struct ib_wc wc;
	u64 before;
	int i;

	/* 268 ms. The three messages take more retries in all than one message may have. */
	r->timeout = 16;
	rig_start(test, r);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
		before = rig_counter(test, &r->a, NO_ANSWER);
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
		KUNIT_ASSERT_TRUE(test, rig_counts_to(test, &r->a, NO_ANSWER, before + 3));
		KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
		RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	}
}

static void r9_without_a_timeout_waits_for_ever(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	struct ib_wc wc;
	u64 before;

	r->timeout = 0;
	r->retry_cnt = 0;
	connect_first_only(test, r);
	before = rig_counter(test, &r->a, NO_ANSWER);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	/* One attempt more than a retry_cnt of 0 would allow if there were a timeout. */
	KUNIT_ASSERT_TRUE(test, rig_counts_to(test, &r->a, NO_ANSWER, before + 2));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
}

static void r10_gives_up_after_so_many_retries(struct kunit *test)
{
	int k = *(const int *)test->param_value;
	struct rig *r = rig_between_two(test);
	struct ib_wc wc;
	u64 before;

	r->rnr_retry = k;
	rig_start(test, r);
	before = rig_counter(test, &r->a, NOT_READY);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RNR_RETRY_EXC_ERR);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, k + 1, rig_counter(test, &r->a, NOT_READY) - before);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	/* The responder is not at fault, and stays in RTS. */
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
	rig_expect_no_event(test, &r->b);
}

static void r10_seven_is_without_end(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	struct ib_wc wc;
	u64 before;

	rig_start(test, r);
	before = rig_counter(test, &r->a, NOT_READY);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	KUNIT_ASSERT_TRUE(test, rig_counts_to(test, &r->a, NOT_READY, before + 30));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
}

static void r10_waits_as_long_as_the_responder_asks(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	unsigned int code;
	struct ib_wc wc;
	u64 start;

	r->rnr_retry = 1;
	rig_make_qps(test, r);
	for (code = 0; code < 32; code++) {
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RESET));
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->a));
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
		/* The min_rnr_timer of the requester's QP must not matter. */
		r->rnr_timer = 1;
		KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->a, &r->b));
		r->rnr_timer = code;
		KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
		KUNIT_ASSERT_EQ(test, 0, rig_to_rts(r, &r->a));
		start = ktime_get_ns();
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RNR_RETRY_EXC_ERR);
		KUNIT_EXPECT_GE_MSG(test, ktime_get_ns() - start, rnr_ns(code), "code %u", code);
	}
}

static void r10_write_with_imm_waits_for_a_receive_too(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	struct ib_wc wc;
	u64 before;

	rig_start(test, r);
	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	before = rig_counter(test, &r->a, NOT_READY);
	rig_fill(r->a.buf, 100, 6);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE_WITH_IMM, 1,
					  0, 100, r->b.mr->iova,
					  r->b.mr->rkey));
	KUNIT_ASSERT_TRUE(test, rig_counts_to(test, &r->a, NOT_READY, before + 2));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 0));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_EQ(test, 100, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, 100, 6));
}

/* Where the receive is posted, and what needs it. */
enum late_for { LATE_FOR_SEND, LATE_IN_SRQ, LATE_FOR_WRITE, LATE_FOR_UC, LATE_FOR_UD };

static const char *const late_for_names[] = {
	[LATE_FOR_SEND] = "SEND",
	[LATE_IN_SRQ] = "SEND, SRQ",
	[LATE_FOR_WRITE] = "RDMA WRITE with immediate data",
	[LATE_FOR_UC] = "SEND, UC",
	[LATE_FOR_UD] = "SEND, UD",
};

static const enum late_for late_fors[] = {
	LATE_FOR_SEND, LATE_IN_SRQ, LATE_FOR_WRITE, LATE_FOR_UC, LATE_FOR_UD,
};

KVT_NAMED_PARAM(late_for, late_fors, late_for_names);

struct late {
	struct rig *r;
	struct ib_ah *ah;		/* of UD */
	enum ib_wr_opcode op;		/* RDMA WRITE or SEND_WITH_INV by @key, or SEND */
	u32 key;
	int err;
};

static int late_recv(struct late *l, u64 id)
{
	struct ib_sge sge = rig_sge(&l->r->b, 0, RIG_GRH + 8);
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	return l->r->b.srq ? ib_post_srq_recv(l->r->b.srq, &wr, NULL) :
			     ib_post_recv(l->r->b.qp, &wr, NULL);
}

/* Posts behind the receive that is being posted, and a message. */
static void post_behind(void *arg)
{
	struct late *l = arg;
	struct rig *r = l->r;

	l->err = late_recv(l, 3);
	if (l->err)
		return;
	switch (l->op) {
	case IB_WR_RDMA_WRITE_WITH_IMM:
		l->err = rig_rdma(&r->a, l->op, 1, 0, 8, r->b.mr->iova, l->key);
		break;
	case IB_WR_SEND_WITH_INV:
		l->err = rig_inv(&r->a, l->op, 1, l->key);
		break;
	default:
		l->err = l->ah ? rig_ud_send(&r->a, l->ah, &r->b, 1, 0, 8) :
				 rig_send(&r->a, 1, 0, 8);
	}
}

static void post_late(struct kunit *test, struct late *l)
{
	kverbs_delay_set("emu_recv_reserved", post_behind, l);
	KUNIT_EXPECT_EQ(test, 0, late_recv(l, 2));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, l->err);
}

/* A receive is being posted; another one, behind it, has been posted when the message is. */
static void r10_receive_behind_one_that_is_being_posted_counts(struct kunit *test)
{
	enum late_for what = *(const enum late_for *)test->param_value;
	struct ib_srq_init_attr init = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct late l = { .op = IB_WR_SEND, .err = -EIO };
	struct rig *r;
	struct ib_wc wc;
	u64 before;

	r = what == LATE_FOR_UD ? rig_ud(test, "emu0", "emu1") : rig_between_two(test);
	l.r = r;
	r->rnr_retry = 0;
	if (what == LATE_IN_SRQ)
		r->b.srq = KVT_OWN(test, ib_create_srq(r->b.pd, &init), kvt_end_srq);
	if (what == LATE_FOR_UC)
		r->init.qp_type = IB_QPT_UC;
	if (what == LATE_FOR_UD)
		l.ah = rig_ah(test, &r->a, &r->b);
	else
		rig_start(test, r);
	if (what == LATE_FOR_WRITE) {
		rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
		l.op = IB_WR_RDMA_WRITE_WITH_IMM;
		l.key = r->b.mr->rkey;
	}
	before = rig_counter(test, &r->a, NOT_READY);
	post_late(test, &l);
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_EQ(test, before, rig_counter(test, &r->a, NOT_READY));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

/* Operations that use up a receive also if their key is refused. */
static const enum ib_wr_opcode refused_ops[] = { IB_WR_RDMA_WRITE_WITH_IMM, IB_WR_SEND_WITH_INV };

static void op_name(const enum ib_wr_opcode *op, char *desc)
{
	strscpy(desc, *op == IB_WR_SEND_WITH_INV ? "SEND with invalidate" :
		"RDMA WRITE with immediate data", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(refused_op, refused_ops, op_name);

static void refusal_completes_the_receive_that_is_being_posted(struct kunit *test)
{
	struct late l = {
		.r = rig_between_two(test),
		.op = *(const enum ib_wr_opcode *)test->param_value,
		.key = RIG_BAD_KEY,
		.err = -EIO,
	};
	struct rig *r = l.r;
	struct ib_wc wc;

	rig_start(test, r);
	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	post_late(test, &l);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_ACCESS_ERR);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, l.op == IB_WR_SEND_WITH_INV ?
		      IB_WC_REM_ACCESS_ERR : IB_WC_LOC_ACCESS_ERR);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 3, IB_WC_WR_FLUSH_ERR);
}

/* An RDMA write without immediate data needs no receive. */
static void r10_write_does_not_wait(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	struct ib_wc wc;

	r->rnr_retry = 0;
	rig_start(test, r);
	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 1, 0, 100,
					  r->b.mr->iova, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
}

static void expect_unheard(struct kunit *test, struct rig *r)
{
	struct ib_wc wc;

	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTR, rig_state(r->b.qp));
	rig_expect_no_event(test, &r->b);
}

static void r25_peer_of_somebody_else_hears_nothing(struct kunit *test)
{
	struct rig *r = rig_between_two(test);
	struct rig_end other = r->a;

	r->timeout = 2;
	r->retry_cnt = 1;
	connect_first_only(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	/* The second end is connected to another QP of the first end's device. */
	rig_make_qp(test, r, &other);
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &other));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	expect_unheard(test, r);
}

static void rig_wrong_address(struct kunit *test, struct rig *r)
{
	u16 lid = r->a.lid;

	r->timeout = 2;
	r->retry_cnt = 1;
	connect_first_only(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	r->a.lid = lid + 100;
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
	r->a.lid = lid;
}

static void r25_stranger_with_the_right_number_is_not_heard(struct kunit *test)
{
	struct rig *r = rig_between_two(test);

	rig_wrong_address(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	expect_unheard(test, r);
}

static void r25_other_partition_is_not_heard(struct kunit *test)
{
	struct rig *r = rig_between_two(test);

	kvt_restore_file(test, PKEYS, "1");
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(PKEYS, "1 0x8123"));
	r->timeout = 2;
	r->retry_cnt = 1;
	r->b.pkey_index = 1;
	connect_first_only(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	expect_unheard(test, r);
}

/*
 * Two ports have the same address, and on each a queue pair of the same number: a responder has one
 * requester, the one to which its responses go. That is the port that got the address last.
 */
static void r25_twin_to_whom_no_response_goes_is_not_heard(struct kunit *test)
{
	static const struct rig_net net = { "", RIG_NET_ROCE_V2_IP4, true };
	struct rig_end *twin = &rig_alloc(test)->a;
	struct rig *r = rig_net_new(test, &net);
	struct ib_wc wc;

	rig_roce_end(test, twin, "kvr_c", "192.0.2.1");
	rig_give_gid(test, twin, net.kind);
	r->timeout = 2;
	r->retry_cnt = 1;
	connect_first_only(test, r);
	rig_make_qp(test, r, twin);
	KUNIT_ASSERT_EQ(test, twin->qp->qp_num, r->a.qp->qp_num);
	rig_connect_end(test, r, twin, &r->b);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	expect_unheard(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_send(twin, 3, 0, 8));
	RIG_EXPECT_WC(test, twin->scq, &wc, 3, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
}

static struct kunit_case emu_conform_retry_cases[] = {
	KUNIT_CASE_PARAM(r8_gives_up_after_so_many_retries, retry_gen_params),
	KUNIT_CASE(r8_requests_begin_with_the_number_that_is_expected),
	KUNIT_CASE(r8_refused_change_keeps_the_retries),
	KUNIT_CASE(r8_change_in_rts_keeps_the_retries),
	KUNIT_CASE(r8_waits_for_the_timeout_between_two),
	KUNIT_CASE_SLOW(r8_each_message_has_its_retries),
	KUNIT_CASE_SLOW(r9_without_a_timeout_waits_for_ever),
	KUNIT_CASE_PARAM(r10_gives_up_after_so_many_retries, rnr_retry_gen_params),
	KUNIT_CASE(r10_change_in_rts_keeps_the_retries),
	KUNIT_CASE(r10_seven_is_without_end),
	KUNIT_CASE_SLOW(r10_waits_as_long_as_the_responder_asks),
	KUNIT_CASE(r10_write_with_imm_waits_for_a_receive_too),
	KUNIT_CASE_PARAM(r10_receive_behind_one_that_is_being_posted_counts, late_for_gen_params),
	KUNIT_CASE_PARAM(refusal_completes_the_receive_that_is_being_posted, refused_op_gen_params),
	KUNIT_CASE(r10_write_does_not_wait),
	KUNIT_CASE(r25_peer_of_somebody_else_hears_nothing),
	KUNIT_CASE(r25_stranger_with_the_right_number_is_not_heard),
	KUNIT_CASE(r25_other_partition_is_not_heard),
	KUNIT_CASE(r25_twin_to_whom_no_response_goes_is_not_heard),
	{}
};
KVT_SUITE(emu_conform_retry);
