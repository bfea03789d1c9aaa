// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows of the conformance table about packets. Messages between software HCAs
 * are moved by memory copies: there are no packets, hence none that could be lost,
 * repeated, reordered or malformed. Each case checks what the QPs at both ends of such
 * a row can observe, if anything, and is then skipped with the reason.
 */
#include "emu/rig.h"

#define ALL_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)
#define NO_ANSWER	"ack_timeout_err"
#define LINK		"/sys/kernel/config/kverbs_emu/emu1/port1/state"

/* Skips the case, for the rest of the row cannot be observed; a failed case stays failed. */
static void packets_only(struct kunit *test, const char *why)
{
	if (READ_ONCE(test->status) != KUNIT_FAILURE)
		kunit_skip(test, "wire: %s", why);
}

/*
 * Connected QPs; the second end's buffer is open to remote access. The ACK timeout is 1.07 s (18),
 * with seven retries: a case has seconds to bring the link back.
 */
static struct rig *rig_linked(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");

	kvt_restore_file(test, LINK, "active");
	r->access = ALL_ACCESS;
	r->timeout = 18;
	rig_start(test, r);
	rig_register(test, &r->b, ALL_ACCESS);
	return r;
}

/* Waits until the pending request was retried with the link down; it must not complete. */
static void expect_tried(struct kunit *test, struct rig *r, u64 before)
{
	KUNIT_ASSERT_TRUE(test, rig_counts_to(test, &r->a, NO_ANSWER, before + 2));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

static void r2_nothing_overtakes_or_is_missing(struct kunit *test)
{
	struct rig *r = rig_linked(test);
	u64 before = rig_counter(test, &r->a, NO_ANSWER);
	struct ib_wc wc;
	int i;

	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(LINK, "down"));
	for (i = 0; i < RIG_WR; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, i * 100, 100));
		rig_fill(r->a.buf + i * 100, 100, i);
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, i * 100, 100));
	}
	expect_tried(test, r, before);
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(LINK, "active"));
	for (i = 0; i < RIG_WR; i++) {
		RIG_EXPECT_DELIVERED(test, r, &wc, i, i);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + i * 100, 100, i));
	}
	packets_only(test, "no packet comes ahead of another, so no gap is there to NAK");
}

static void r3_message_tried_again_arrives_once(struct kunit *test)
{
	struct rig *r = rig_linked(test);
	u64 before = rig_counter(test, &r->a, NO_ANSWER);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 10, 0, 100));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 11, 0, 100));
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(LINK, "down"));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 100));
	expect_tried(test, r, before);
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(LINK, "active"));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 10);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	packets_only(test, "a message has no packet that could come twice, and no ACK");
}

static void r4_read_tried_again_checks_its_key_again(struct kunit *test)
{
	struct rig *r = rig_linked(test);
	u64 before = rig_counter(test, &r->a, NO_ANSWER);
	struct ib_wc wc;

	memset(r->a.buf, 0xaa, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(LINK, "down"));
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_READ, 1, 0, 5000,
					  r->b.mr->iova, r->b.mr->rkey));
	expect_tried(test, r, before);
	KUNIT_ASSERT_EQ(test, 0, rig_inv(&r->b, IB_WR_LOCAL_INV, 2, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(LINK, "active"));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_ACCESS_ERR);
	rig_expect_event(test, &r->b, IB_EVENT_QP_ACCESS_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->a.buf, RIG_BUF, 0xaa));
	packets_only(test, "a read is one copy: no part of it is asked for again");
}

static void r5_atomic_tried_again_works_once(struct kunit *test)
{
	struct rig *r = rig_linked(test);
	u64 before = rig_counter(test, &r->a, NO_ANSWER);
	struct ib_atomic_wr target = { .compare_add = 5 };
	struct ib_wc wc;

	*(u64 *)r->b.buf = 100;
	target.remote_addr = r->b.mr->iova;
	target.rkey = r->b.mr->rkey;
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(LINK, "down"));
	KUNIT_ASSERT_EQ(test, 0, rig_atomic(&r->a, IB_WR_ATOMIC_FETCH_AND_ADD, 1, 0, &target));
	expect_tried(test, r, before);
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(LINK, "active"));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 100, *(u64 *)r->a.buf);
	KUNIT_EXPECT_EQ(test, 105, *(u64 *)r->b.buf);
	packets_only(test, "no request comes twice, so no result is kept for a second one");
}

static void r7_last_of_a_batch_completes_all(struct kunit *test)
{
	struct rig *r = rig_linked(test);
	struct ib_sge sge[RIG_WR];
	struct ib_rdma_wr wr = {};
	struct ib_wc wc;
	int i, round;

	rig_fill(r->a.buf, RIG_BUF, 7);
	for (round = 0; round < 3; round++) {
		memset(r->b.buf, 0, RIG_BUF);
		for (i = 0; i < RIG_WR; i++) {
			sge[i] = rig_sge(&r->a, i * 4096, 4096);
			rig_send_wr(&wr.wr, i, &sge[i], 1);
			wr.wr.opcode = IB_WR_RDMA_WRITE;
			wr.remote_addr = r->b.mr->iova + i * 4096;
			wr.rkey = r->b.mr->rkey;
			if (i < RIG_WR - 1)
				wr.wr.send_flags = 0;
			KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr.wr, NULL));
		}
		RIG_EXPECT_WC(test, r->a.scq, &wc, RIG_WR - 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, RIG_BUF, 7));
	}
	packets_only(test, "each message ends before the next: no ACK speaks for several");
}

static void r23_message_is_never_cut(struct kunit *test)
{
	packets_only(test, "a message is one entry, without FIRST, MIDDLE and LAST");
}

static void r24_responses_are_never_malformed(struct kunit *test)
{
	packets_only(test, "a response is no packet; its status can be injected, see emu.rst");
}

static void r25_packets_have_no_errors(struct kunit *test)
{
	packets_only(test, "no packet has a checksum, version or opcode");
}

static void r27_each_message_counts_once(struct kunit *test)
{
	struct rig *r = rig_linked(test);
	u64 sent, received;
	struct ib_wc wc;
	int i;

	sent = rig_counter(test, &r->a, "port_xmit_packets");
	received = rig_counter(test, &r->b, "port_rcv_packets");
	for (i = 0; i < RIG_WR; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, 0, RIG_BUF));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, i * 4096));
		RIG_EXPECT_DELIVERED(test, r, &wc, i, i);
	}
	KUNIT_EXPECT_TRUE(test, rig_counts_to(test, &r->a, "port_xmit_packets", sent + RIG_WR));
	KUNIT_EXPECT_TRUE(test, rig_counts_to(test, &r->b, "port_rcv_packets", received + RIG_WR));
	KUNIT_EXPECT_EQ(test, sent + RIG_WR, rig_counter(test, &r->a, "port_xmit_packets"));
	KUNIT_EXPECT_EQ(test, received + RIG_WR, rig_counter(test, &r->b, "port_rcv_packets"));
	packets_only(test, "no ACK carries a message sequence number");
}

static struct kunit_case emu_conform_wire_cases[] = {
	KUNIT_CASE(r2_nothing_overtakes_or_is_missing),
	KUNIT_CASE(r3_message_tried_again_arrives_once),
	KUNIT_CASE(r4_read_tried_again_checks_its_key_again),
	KUNIT_CASE(r5_atomic_tried_again_works_once),
	KUNIT_CASE(r7_last_of_a_batch_completes_all),
	KUNIT_CASE(r23_message_is_never_cut),
	KUNIT_CASE(r24_responses_are_never_malformed),
	KUNIT_CASE(r25_packets_have_no_errors),
	KUNIT_CASE(r27_each_message_counts_once),
	{}
};
KVT_SUITE(emu_conform_wire);
