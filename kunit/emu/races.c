// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events at an unlucky moment: recovery from SQE in the middle of a flush, a
 * SEND_WITH_INV that finds no receive, QPs that are destroyed while another QP uses their
 * CQ. The name of a case starts with its row of the conformance table.
 */
#include <kverbs/delay.h>

#include "emu/rig.h"
#include "lib/objects.h"

#define CHAIN		60
#define ROUNDS		40
#define PASSERS		300

/* Posts a list of CHAIN sends in one call; the first one has a bad lkey and fails. */
static void post_chain(struct kunit *test, struct rig_end *e)
{
	struct ib_send_wr *wr = KVT_PTR(test, kunit_kcalloc(test, CHAIN, sizeof(*wr), GFP_KERNEL));
	struct ib_sge bad = rig_sge(e, 0, 64), good = bad;
	int i;

	bad.lkey = 0xabcdef00;
	for (i = 0; i < CHAIN; i++) {
		rig_send_wr(&wr[i], i, i ? &good : &bad, 1);
		wr[i].next = i + 1 < CHAIN ? &wr[i + 1] : NULL;
	}
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(e->qp, wr, NULL));
	kunit_kfree(test, wr);
}

static void u7_recovery_flushes_what_was_posted_before(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;
	int round;

	r->init.qp_type = IB_QPT_UC;
	r->init.cap.max_send_wr = CHAIN;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1000, 0, 64));

	/* Keeps the runner thread from ending the flush before the QP is moved to RTS. */
	sched_set_fifo(current);
	for (round = 0; round < ROUNDS; round++) {
		post_chain(test, &r->a);
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 0, IB_WC_LOC_PROT_ERR);
		rig_expect_wcs(test, r->a.scq, 1, CHAIN - 1, IB_WC_WR_FLUSH_ERR);
	}
	sched_set_normal(current, 0);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 64));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 1000);
}

static void c6_key_outlives_a_message_that_finds_no_receive(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_send_wr wr;
	struct ib_sge sge;
	struct ib_wc wc;

	r->rnr_retry = 0;
	r->b.srq = kvt_srq(test, r->b.pd, 4, 1);
	rig_start(test, r);
	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);

	sge = rig_sge(&r->a, 0, 64);
	rig_send_wr(&wr, 1, &sge, 1);
	wr.opcode = IB_WR_SEND_WITH_INV;
	wr.ex.invalidate_rkey = r->b.mr->rkey;
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RNR_RETRY_EXC_ERR);
	/* The MR is still valid, so that registering it again fails. */
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, r->b.mr, 2, IB_ACCESS_LOCAL_WRITE));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 2, IB_WC_MW_BIND_ERR);
	rig_destroy_qp(test, &r->a);
	rig_destroy_qp(test, &r->b);
}

static void post_one_receive(struct kunit *test, struct rig_end *e, u64 id)
{
	struct ib_sge sge = rig_sge(e, 0, 64);
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	KUNIT_ASSERT_EQ(test, 0, e->srq ? ib_post_srq_recv(e->srq, &wr, NULL) :
					  ib_post_recv(e->qp, &wr, NULL));
}

/* Another connection between the same devices, to a queue pair that is a twin of @r->b's. */
static struct rig *rig_to_twin(struct kunit *test, struct rig *r, struct rig_end *twin)
{
	struct rig *other = rig_new(test, "emu0", "emu1");

	*twin = r->b;
	other->rnr_retry = 0;
	rig_make_qp(test, other, &other->a);
	rig_make_qp(test, other, twin);
	rig_connect_end(test, other, &other->a, twin);
	rig_connect_end(test, other, twin, &other->a);
	return other;
}

static void expect_invalidated(struct kunit *test, struct rig *r)
{
	struct ib_wc wc;

	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 1000, IB_WC_SUCCESS);
	KUNIT_EXPECT_PTR_EQ(test, r->b.qp, wc.qp);
	KUNIT_EXPECT_TRUE(test, wc.wc_flags & IB_WC_WITH_INVALIDATE);
}

static void send_inv(void *arg)
{
	struct rig *r = arg;

	rig_inv(&r->a, IB_WR_SEND_WITH_INV, 1, r->b.mr->rkey);
}

/*
 * Another queue pair is writing to the region that the message is to invalidate: the message waits
 * for that, and the receive that it has taken with it.
 */
static void c6_receive_waits_for_accesses_to_end(struct kunit *test, bool shared)
{
	struct rig *r = rig_new(test, "emu0", "emu1"), *other;
	struct rig_end *to = kvt_zalloc(test, sizeof(*to));
	struct ib_rdma_wr wr = {};
	struct ib_sge sge[2];
	struct ib_wc wc;

	if (shared)
		r->b.srq = kvt_srq(test, r->b.pd, 4, 1);
	rig_start(test, r);
	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	other = rig_to_twin(test, r, to);
	post_one_receive(test, &r->b, 1000);

	sge[0] = rig_sge(&other->a, 0, 8);
	sge[1] = rig_sge(&other->a, 16, 8);
	rig_send_wr(&wr.wr, 2, sge, 2);
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	wr.remote_addr = r->b.mr->iova;
	wr.rkey = r->b.mr->rkey;
	kverbs_delay_set("emu_copy", send_inv, r);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(other->a.qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, other->a.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	expect_invalidated(test, r);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
	rig_destroy_qp(test, to);
	rig_destroy_qp(test, &r->b);
}

static void c6_receive_of_a_queue_waits_for_accesses_to_end(struct kunit *test)
{
	c6_receive_waits_for_accesses_to_end(test, false);
}

static void c6_receive_of_an_srq_waits_for_accesses_to_end(struct kunit *test)
{
	c6_receive_waits_for_accesses_to_end(test, true);
}

static void take_the_receive(void *arg)
{
	struct rig *other = arg;

	rig_send(&other->a, 2, 0, 64);
}

/*
 * Another queue pair wants the only receive of the SRQ as the message is about to invalidate the
 * key. The receive is the message's by then: without one, the key would have to stay.
 */
static void c6_receive_is_taken_before_the_key_goes(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1"), *other;
	struct rig_end *to = kvt_zalloc(test, sizeof(*to));
	struct ib_wc wc;

	r->b.srq = kvt_srq(test, r->b.pd, 4, 1);
	rig_start(test, r);
	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	other = rig_to_twin(test, r, to);
	post_one_receive(test, &r->b, 1000);

	kverbs_delay_set("emu_send_inv", take_the_receive, other);
	send_inv(r);
	expect_invalidated(test, r);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	RIG_EXPECT_WC(test, other->a.scq, &wc, 2, IB_WC_RNR_RETRY_EXC_ERR);
	rig_destroy_qp(test, to);
	rig_destroy_qp(test, &r->b);
}

/* A thread that sends messages over a connection. */
struct busy {
	struct rig *r;	/* the connection */
	bool failed;	/* a message could not be posted, or did not complete with success */
};

static int busy_fn(void *arg)
{
	struct busy *b = arg;
	struct ib_wc wc;

	while (!kvt_should_stop() && !b->failed) {
		b->failed = rig_recv(&b->r->b, 1, 0, 64) || rig_send(&b->r->a, 2, 0, 64) ||
			    !rig_poll(b->r->a.scq, &wc) || wc.status != IB_WC_SUCCESS ||
			    !rig_poll(b->r->b.rcq, &wc) || wc.status != IB_WC_SUCCESS;
		cond_resched();
	}
	return 0;
}

/*
 * Destroying a QP looks through the entries of its CQ, while the connection, which has
 * the same CQ, adds entries to it and polls them.
 */
static void q6_others_go_while_their_cq_is_busy(struct kunit *test)
{
	struct busy b = { .r = rig_up(test, "emu0", "emu1") };
	struct ib_qp_init_attr init = b.r->init;
	struct kvt_thread *thread;
	struct ib_qp *qp;
	int i;

	init.send_cq = b.r->a.scq;
	init.recv_cq = b.r->a.scq;
	thread = kvt_thread_start(test, kvt_other_cpu(), busy_fn, &b);
	for (i = 0; i < PASSERS; i++) {
		qp = ib_create_qp(b.r->a.pd, &init);
		if (IS_ERR(qp))
			break;
		ib_destroy_qp(qp);
	}
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_stop(thread));
	KUNIT_EXPECT_EQ(test, PASSERS, i);
	KUNIT_EXPECT_FALSE(test, b.failed);
}

static struct kunit_case emu_races_cases[] = {
	KUNIT_CASE(u7_recovery_flushes_what_was_posted_before),
	KUNIT_CASE(c6_key_outlives_a_message_that_finds_no_receive),
	KUNIT_CASE(c6_receive_is_taken_before_the_key_goes),
	KUNIT_CASE(c6_receive_of_a_queue_waits_for_accesses_to_end),
	KUNIT_CASE(c6_receive_of_an_srq_waits_for_accesses_to_end),
	KUNIT_CASE(q6_others_go_while_their_cq_is_busy),
	{}
};
KVT_SUITE(emu_races);
