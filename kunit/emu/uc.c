// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unreliable connections of the software HCA, and how QPs of both unreliable transports
 * recover from a failed send. The name of a case that covers a row of the conformance table
 * starts with the row's id.
 */
#include <kverbs/delay.h>

#include "emu/rig_net.h"
#include "lib/objects.h"

#define ALL_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ)
#define LEN		100

KUNIT_ARRAY_PARAM_DESC(few_net, rig_few_nets, name);

static struct rig *uc_of_param(struct kunit *test)
{
	struct rig *r = rig_net_new(test, test->param_value);

	r->init.qp_type = IB_QPT_UC;
	rig_start(test, r);
	return r;
}

static void expect_both_in_rts(struct kunit *test, struct rig *r)
{
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
}

/* Sends a message, which must arrive in the receive that was posted with ID @id. */
static void expect_arrival(struct kunit *test, struct rig *r, u64 id)
{
	struct ib_wc wc;

	rig_fill(r->a.buf, LEN, id);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 71, 0, LEN));
	RIG_EXPECT_DELIVERED(test, r, &wc, 71, id);
	KUNIT_EXPECT_EQ(test, LEN, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, LEN, id));
	expect_both_in_rts(test, r);
}

static void u5_no_receive_posted_on_uc(struct kunit *test)
{
	struct rig *r = uc_of_param(test);
	u64 dropped = rig_counter(test, &r->b, "rx_dropped");
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, dropped + 1, rig_counter(test, &r->b, "rx_dropped"));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	expect_arrival(test, r, 2);
}

static void u5_nobody_at_the_other_end_of_uc(struct kunit *test)
{
	struct rig *r = uc_of_param(test);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	rig_destroy_qp(test, &r->b);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
}

/*
 * The HCA does not segment messages into packets, so the test cannot make a gap in the PSNs.
 * It checks what a gap would lead to: the message is dropped as a whole, and its receive
 * serves the next message.
 */
static void u6_dropped_message_leaves_its_receive(struct kunit *test)
{
	struct rig *r = uc_of_param(test);
	u64 dropped = rig_counter(test, &r->b, "rx_dropped");
	struct ib_wc wc;
	int i;

	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	for (i = 0; i < 2; i++) {
		/* Too long for the receive, by one byte and by many packets. */
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, i ? 20000 : LEN + 1));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	}
	KUNIT_EXPECT_EQ(test, dropped + 2, rig_counter(test, &r->b, "rx_dropped"));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
	expect_arrival(test, r, 2);
}

static void u6_connection_goes_on_after_a_reset_of_the_peer(struct kunit *test)
{
	struct rig *r = uc_of_param(test);
	struct ib_wc wc;
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		rig_connect_end(test, r, &r->b, &r->a);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, 0, LEN));
		expect_arrival(test, r, i);
	}
}

/* Why an RC responder would refuse a request. */
enum refused {
	REFUSED_KEY,
	REFUSED_RANGE,
	REFUSED_QP_ACCESS,
};

static const char *const refused_names[] = {
	"no such key", "behind the region", "queue pair forbids it",
};

static const int refuseds[] = {
	REFUSED_KEY, REFUSED_RANGE, REFUSED_QP_ACCESS,
};

KVT_NAMED_PARAM(refused, refuseds, refused_names);

static void u6_refused_write_is_dropped(struct kunit *test)
{
	int refused = *(const int *)test->param_value;
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;
	u32 rkey, i;
	u64 at;

	r->init.qp_type = IB_QPT_UC;
	if (refused == REFUSED_QP_ACCESS)
		r->access = IB_ACCESS_LOCAL_WRITE;
	rig_start(test, r);
	rig_register(test, &r->b, ALL_ACCESS);
	memset(r->b.buf, 0xee, RIG_BUF);
	rkey = r->b.mr->rkey ^ (refused == REFUSED_KEY ? 0x100000 : 0);
	at = r->b.mr->iova + (refused == REFUSED_RANGE ? RIG_BUF - LEN + 1 : 0);

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, i ?
				IB_WR_RDMA_WRITE_WITH_IMM : IB_WR_RDMA_WRITE,
				1, 0, LEN, at, rkey));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
	KUNIT_EXPECT_FALSE(test, completion_done(&r->b.got_event));
	expect_arrival(test, r, 2);
}

static void write_on_uc_reaches_remote_memory(struct kunit *test)
{
	struct rig *r = uc_of_param(test);
	struct ib_wc wc;

	rig_register(test, &r->b, ALL_ACCESS);
	rig_fill(r->a.buf, 5000, 6);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 1, 0, 5000,
					  r->b.mr->iova + 7, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_RDMA_WRITE, wc.opcode);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + 7, 5000, 6));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 0));
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE_WITH_IMM, 3, 0,
					  LEN, r->b.mr->iova, r->b.mr->rkey));
	RIG_EXPECT_DELIVERED(test, r, &wc, 3, 2);
	KUNIT_EXPECT_EQ(test, IB_WC_RECV_RDMA_WITH_IMM, wc.opcode);
	KUNIT_EXPECT_EQ(test, LEN, wc.byte_len);
}

static void uc_has_no_reads_atomics_and_remote_invalidation(struct kunit *test)
{
	static const enum ib_wr_opcode ops[] = {
		IB_WR_RDMA_READ, IB_WR_RDMA_READ_WITH_INV,
		IB_WR_ATOMIC_CMP_AND_SWP, IB_WR_ATOMIC_FETCH_AND_ADD,
		IB_WR_SEND_WITH_INV,
	};
	struct rig *r = uc_of_param(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		KUNIT_EXPECT_EQ(test, -EINVAL, rig_rdma(&r->a, ops[i], 1, 0, 8, 0, 0));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

/* For U7: a UC connection, or two UD QPs with an AH for sends of the first; else NULL. */
struct sqe_rig {
	struct rig *r;
	struct ib_ah *ah;
};

static const enum ib_qp_type unreliable[] = { IB_QPT_UC, IB_QPT_UD };

static void type_name(const enum ib_qp_type *type, char *desc)
{
	strscpy(desc, *type == IB_QPT_UC ? "UC" : "UD", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(type, unreliable, type_name);

static void sqe_rig_up(struct kunit *test, struct sqe_rig *s)
{
	if (*(const enum ib_qp_type *)test->param_value == IB_QPT_UD) {
		s->r = rig_ud(test, "emu0", "emu1");
		s->ah = rig_ah(test, &s->r->a, &s->r->b);
		return;
	}
	s->r = rig_new(test, "emu0", "emu1");
	s->r->init.qp_type = IB_QPT_UC;
	rig_start(test, s->r);
	s->ah = NULL;
}

static int sqe_post(struct sqe_rig *s, u64 id, struct ib_sge *sge)
{
	struct ib_ud_wr wr;

	if (s->ah) {
		rig_ud_wr(&wr, id, sge, 1, s->ah, &s->r->b);
	} else {
		memset(&wr, 0, sizeof(wr));
		rig_send_wr(&wr.wr, id, sge, 1);
	}
	return ib_post_send(s->r->a.qp, &wr.wr, NULL);
}

static int sqe_send(struct sqe_rig *s, u64 id)
{
	struct ib_sge sge = rig_sge(&s->r->a, 0, LEN);

	return sqe_post(s, id, &sge);
}

/* Sends a message from the second end to the first, whose own sends have failed. */
static void sqe_expect_receive(struct kunit *test, struct sqe_rig *s)
{
	struct rig *r = s->r;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 30, 8192, RIG_GRH + LEN));
	if (s->ah) {
		struct ib_ah *back = rig_ah(test, &r->b, &r->a);

		KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->b, back, &r->a, 31, 0, LEN));
	} else {
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->b, 31, 0, LEN));
	}
	RIG_EXPECT_WC(test, r->b.scq, &wc, 31, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->a.rcq, &wc, 30, IB_WC_SUCCESS);
}

static void u7_failed_send_stops_sends_only(struct kunit *test)
{
	struct sqe_rig s;
	struct ib_sge bad;
	struct ib_wc wc;
	int i;

	sqe_rig_up(test, &s);
	rig_recv_many(test, &s.r->b, 20, 8, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, sqe_send(&s, 1));
	bad = rig_sge(&s.r->a, 0, LEN);
	bad.lkey = 0xabcdef00;
	KUNIT_ASSERT_EQ(test, 0, sqe_post(&s, 2, &bad));
	for (i = 3; i < 6; i++)
		KUNIT_ASSERT_EQ(test, 0, sqe_send(&s, i));
	RIG_EXPECT_WC(test, s.r->a.scq, &wc, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, s.r->a.scq, &wc, 2, IB_WC_LOC_PROT_ERR);
	rig_expect_wcs(test, s.r->a.scq, 3, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_SQE, rig_state(s.r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(s.r->b.qp));
	KUNIT_EXPECT_FALSE(test, completion_done(&s.r->a.got_event));
	sqe_expect_receive(test, &s);
	KUNIT_EXPECT_TRUE(test, rig_empty(s.r->a.rcq));
	/* Only the first send went out. */
	RIG_EXPECT_WC(test, s.r->b.rcq, &wc, 20, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(s.r->b.rcq));

	KUNIT_ASSERT_EQ(test, 0, rig_to(s.r->a.qp, IB_QPS_RTS));
	KUNIT_ASSERT_EQ(test, 0, sqe_send(&s, 9));
	RIG_EXPECT_DELIVERED(test, s.r, &wc, 9, 21);
	sqe_expect_receive(test, &s);
}

static void u7_sqe_leads_to_error_or_reset_too(struct kunit *test)
{
	struct sqe_rig s;
	struct ib_sge bad;
	struct ib_wc wc;

	sqe_rig_up(test, &s);
	bad = rig_sge(&s.r->a, 0, LEN);
	bad.lkey = 0xabcdef00;
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&s.r->a, 3, 0, RIG_BUF));
	KUNIT_ASSERT_EQ(test, 0, sqe_post(&s, 1, &bad));
	RIG_EXPECT_WC(test, s.r->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_NE(test, 0, rig_to(s.r->a.qp, IB_QPS_SQD));
	KUNIT_EXPECT_TRUE(test, rig_empty(s.r->a.rcq));
	KUNIT_ASSERT_EQ(test, 0, rig_to(s.r->a.qp, IB_QPS_ERR));
	RIG_EXPECT_WC(test, s.r->a.rcq, &wc, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_ASSERT_EQ(test, 0, rig_to(s.r->a.qp, IB_QPS_RESET));
}

/* A thread stands still while it posts in SQE; another request, behind that, has been posted. */
struct half_posted {
	struct sqe_rig s;
	struct kvt_gate gate;
};

static void half_posted(void *arg)
{
	struct half_posted *h = arg;

	kvt_gate_pass(&h->gate);
}

static int half_post_fn(void *arg)
{
	struct half_posted *h = arg;

	return sqe_send(&h->s, 2);
}

static int half_recover_fn(void *arg)
{
	struct half_posted *h = arg;

	return rig_to(h->s.r->a.qp, IB_QPS_RTS);
}

static void u7_what_is_behind_a_request_that_is_being_posted_is_flushed(struct kunit *test)
{
	struct half_posted *h = kvt_zalloc(test, sizeof(*h));
	struct kvt_thread *poster, *recover;
	struct ib_sge bad;
	struct ib_wc wc;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	kvt_gate_init(&h->gate);
	sqe_rig_up(test, &h->s);
	bad = rig_sge(&h->s.r->a, 0, LEN);
	bad.lkey = RIG_BAD_KEY;
	KUNIT_ASSERT_EQ(test, 0, sqe_post(&h->s, 1, &bad));
	RIG_EXPECT_WC(test, h->s.r->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	rig_recv_many(test, &h->s.r->b, 20, 2, RIG_BUF);

	kverbs_delay_set_any("emu_send_reserved", half_posted, h);
	poster = kvt_thread_start(test, kvt_other_cpu(), half_post_fn, h);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&h->gate.entered));
	KUNIT_EXPECT_EQ(test, 0, sqe_send(&h->s, 3));
	recover = kvt_thread_start(test, 0, half_recover_fn, h);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(recover));
	kvt_gate_open(&h->gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(poster));
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(recover));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(poster));
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(recover));
	RIG_EXPECT_WC(test, h->s.r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
	RIG_EXPECT_WC(test, h->s.r->a.scq, &wc, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(h->s.r->b.rcq));
}

/* Sends of the first end fail again and again, while it receives messages. */
static void u7_receives_go_on_while_sends_fail(struct kunit *test)
{
	struct sqe_rig s;
	struct ib_sge bad;
	struct ib_wc wc;
	int i;

	sqe_rig_up(test, &s);
	bad = rig_sge(&s.r->a, 0, LEN);
	bad.lkey = 0xabcdef00;
	for (i = 0; i < 50; i++) {
		KUNIT_ASSERT_EQ(test, 0, sqe_post(&s, 1, &bad));
		KUNIT_ASSERT_EQ(test, 0, sqe_send(&s, 2));
		sqe_expect_receive(test, &s);
		RIG_EXPECT_WC(test, s.r->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
		RIG_EXPECT_WC(test, s.r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
		KUNIT_ASSERT_EQ(test, 0, rig_to(s.r->a.qp, IB_QPS_RTS));
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&s.r->b, 5, 0, RIG_BUF));
		KUNIT_ASSERT_EQ(test, 0, sqe_send(&s, 4));
		RIG_EXPECT_DELIVERED(test, s.r, &wc, 4, 5);
	}
}

static void u2_message_longer_than_the_receive_is_dropped(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	r->init.qp_type = IB_QPT_UC;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 10, 0, 64));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 11, 0, 256));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 128));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 64));
	RIG_EXPECT_DELIVERED(test, r, &wc, 2, 10);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 3, 0, 128));
	RIG_EXPECT_DELIVERED(test, r, &wc, 3, 11);
}

static struct kunit_case emu_conform_uc_cases[] = {
	KUNIT_CASE(u2_message_longer_than_the_receive_is_dropped),
	KUNIT_CASE_PARAM(u5_no_receive_posted_on_uc, few_net_gen_params),
	KUNIT_CASE_PARAM(u5_nobody_at_the_other_end_of_uc, few_net_gen_params),
	KUNIT_CASE_PARAM(u6_dropped_message_leaves_its_receive, few_net_gen_params),
	KUNIT_CASE_PARAM(u6_connection_goes_on_after_a_reset_of_the_peer, few_net_gen_params),
	KUNIT_CASE_PARAM(u6_refused_write_is_dropped, refused_gen_params),
	KUNIT_CASE_PARAM(write_on_uc_reaches_remote_memory, few_net_gen_params),
	KUNIT_CASE_PARAM(uc_has_no_reads_atomics_and_remote_invalidation, few_net_gen_params),
	KUNIT_CASE_PARAM(u7_failed_send_stops_sends_only, type_gen_params),
	KUNIT_CASE_PARAM(u7_sqe_leads_to_error_or_reset_too, type_gen_params),
	KUNIT_CASE_PARAM(u7_receives_go_on_while_sends_fail, type_gen_params),
	KUNIT_CASE_PARAM(u7_what_is_behind_a_request_that_is_being_posted_is_flushed, type_gen_params),
	{}
};
KVT_SUITE(emu_conform_uc);
