// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shortcuts of the software HCA, and every way out of them: a request that is posted alone is
 * executed from the poster's memory; the peer, and the region that it accesses, are remembered.
 * While a poster stands still in the middle of that (see kverbs/delay.h), other posters and
 * interrupts come, either end fails, a region goes, somebody wants to change the queue pair. What
 * comes out is what comes out without the shortcuts.
 */
#include <linux/irq_work.h>
#include <kverbs/delay.h>

#include "emu/rig_net.h"
#include "lib/objects.h"

#define LEN		RIG_WARM_LEN

static int direct_rdma(struct rig *r, enum ib_wr_opcode op, u64 id)
{
	return rig_rdma(&r->a, op, id, 0, LEN, r->b.mr->iova, r->b.mr->rkey);
}

static int direct_post(struct rig *r, enum ib_wr_opcode op, u64 id)
{
	return op == IB_WR_SEND ? rig_send(&r->a, id, 0, LEN) : direct_rdma(r, op, id);
}

static void expect_both(struct kunit *test, struct rig *r, u64 sent, u64 received)
{
	struct ib_wc wc;

	RIG_EXPECT_WC(test, r->a.scq, &wc, sent, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_SEND, wc.opcode);
	KUNIT_EXPECT_PTR_EQ(test, r->a.qp, wc.qp);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, received, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_WC_RECV, wc.opcode);
	KUNIT_EXPECT_EQ(test, LEN, wc.byte_len);
	KUNIT_EXPECT_EQ(test, r->a.qp->qp_num, wc.src_qp);
	KUNIT_EXPECT_PTR_EQ(test, r->b.qp, wc.qp);
}

/* The poster stands still there only if it takes the shortcut. */
#define EXPECT_REACHED(test, place, post)				\
do {									\
	kverbs_delay_set(place, kvt_nothing, NULL);				\
	KUNIT_EXPECT_EQ(test, 0, post);					\
	KUNIT_EXPECT_TRUE_MSG(test, kverbs_delay_clear(), place);	\
} while (0)

#define EXPECT_NOT_REACHED(test, place, post)				\
do {									\
	kverbs_delay_set(place, kvt_nothing, NULL);				\
	KUNIT_EXPECT_EQ(test, 0, post);					\
	KUNIT_EXPECT_FALSE_MSG(test, kverbs_delay_clear(), place);	\
} while (0)

/* --- ways in ------------------------------------------------------------------- */

static const struct direct_op {
	enum ib_wr_opcode op;
	enum ib_wc_opcode wc;
	const char *name;
} direct_ops[] = {
	{ IB_WR_SEND, IB_WC_SEND, "send" },
	{ IB_WR_RDMA_WRITE, IB_WC_RDMA_WRITE, "write" },
	{ IB_WR_RDMA_READ, IB_WC_RDMA_READ, "read" },
};

KUNIT_ARRAY_PARAM_DESC(direct_op, direct_ops, name);

static void lone_request_is_executed_where_it_is(struct kunit *test)
{
	const struct direct_op *op = test->param_value;
	struct rig *r = rig_warm(test);
	u64 sent = rig_counter(test, &r->a, "port_xmit_packets");
	u64 received = rig_counter(test, &r->a, "port_rcv_packets");
	bool read = op->op == IB_WR_RDMA_READ;
	struct ib_wc wc;
	int i;

	for (i = 0; i < 3; i++) {
		rig_fill(read ? r->b.buf : r->a.buf, LEN, i);
		if (op->op == IB_WR_SEND)
			KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
		EXPECT_REACHED(test, "emu_direct_execute", direct_post(r, op->op, i));
		RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, op->wc, wc.opcode);
		if (op->op == IB_WR_SEND)
			RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_filled(read ? r->a.buf : r->b.buf, LEN, i));
	}
	KUNIT_EXPECT_EQ(test, sent + (read ? 0 : 3),
			rig_counter(test, &r->a, "port_xmit_packets"));
	KUNIT_EXPECT_EQ(test, received + (read ? 3 : 0),
			rig_counter(test, &r->a, "port_rcv_packets"));
	/* Nothing of it was left to be published. */
	if (op->op == IB_WR_SEND)
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	EXPECT_NOT_REACHED(test, "emu_direct_leave", direct_post(r, op->op, 9));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 9, IB_WC_SUCCESS);
}

/* More than the queue has entries, one by one and in chains, so that laps mix. */
static void both_ways_share_a_ring(struct kunit *test)
{
	struct rig *r = rig_warm(test);
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct ib_send_wr wr[3];
	u32 i, j, n, id = 0;

	for (i = 0; i < 5 * RIG_WR; i++) {
		n = i % 7 ? 1 : ARRAY_SIZE(wr);
		for (j = 0; j < n; j++) {
			KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, id + j, 0, LEN));
			rig_send_wr(&wr[j], id + j, &sge, 1);
			wr[j].next = j + 1 < n ? &wr[j + 1] : NULL;
		}
		KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, wr, NULL));
		for (j = 0; j < n; j++, id++)
			expect_both(test, r, id, id);
	}
	/* Each has given its place back. */
	for (i = 0; i < RIG_WR; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, 0, LEN));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, LEN));
	}
	KUNIT_EXPECT_EQ(test, -ENOMEM, rig_send(&r->a, i, 0, LEN));
	for (i = 0; i < RIG_WR; i++)
		expect_both(test, r, i, i);
}

static void unsignaled_requests_are_retired_with_a_later_one(struct kunit *test)
{
	struct rig *r = rig_warm(test);
	struct ib_sge sge = rig_sge(&r->a, 0, LEN);
	struct ib_send_wr wr;
	struct ib_wc wc;
	u32 i, lap;

	for (lap = 0; lap < 3; lap++) {
		for (i = 0; i < RIG_WR; i++) {
			rig_send_wr(&wr, i, &sge, 1);
			wr.send_flags = i == RIG_WR - 1 ? IB_SEND_SIGNALED : 0;
			KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, 0, LEN));
			KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
			RIG_EXPECT_WC(test, r->b.rcq, &wc, i, IB_WC_SUCCESS);
		}
		KUNIT_EXPECT_EQ(test, -ENOMEM, rig_send(&r->a, 0, 0, LEN));
		RIG_EXPECT_WC(test, r->a.scq, &wc, RIG_WR - 1, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	}
}

/* --- not simple ------------------------------------------------------------------ */

static void request_that_is_not_simple_goes_the_long_way(struct kunit *test)
{
	struct rig *r = rig_warm(test);
	struct ib_sge sge[2] = { rig_sge(&r->a, 0, LEN), rig_sge(&r->a, LEN, LEN) };
	struct ib_recv_wr recv = { .wr_id = 3, .sg_list = sge, .num_sge = 2 };
	struct ib_send_wr wr;
	struct ib_wc wc;

	/* No receive. */
	EXPECT_REACHED(test, "emu_direct_leave", rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RNR_RETRY_EXC_ERR);

	r = rig_warm(test);
	/* A receive in two pieces. */
	sge[0] = rig_sge(&r->b, 0, LEN / 2);
	sge[1] = rig_sge(&r->b, SZ_4K, LEN / 2);
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(r->b.qp, &recv, NULL));
	EXPECT_REACHED(test, "emu_direct_leave", rig_send(&r->a, 2, 0, LEN));
	expect_both(test, r, 2, 3);
	/* Immediate data, inline data and lists are not tried. */
	sge[0] = rig_sge(&r->a, 0, LEN / 2);
	sge[1] = rig_sge(&r->a, LEN, LEN / 2);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 4, 0, LEN));
	rig_send_wr(&wr, 4, sge, 2);
	EXPECT_NOT_REACHED(test, "emu_post_direct", ib_post_send(r->a.qp, &wr, NULL));
	expect_both(test, r, 4, 4);
	/* A key that is not the local one. */
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 5, 0, LEN));
	rig_send_wr(&wr, 5, sge, 1);
	sge[0].lkey = RIG_BAD_KEY;
	EXPECT_REACHED(test, "emu_direct_leave", ib_post_send(r->a.qp, &wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 5, IB_WC_LOC_PROT_ERR);
}

static void receive_that_is_too_short_is_found_out(struct kunit *test)
{
	struct rig *r = rig_warm(test);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN - 1));
	EXPECT_REACHED(test, "emu_direct_leave", rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_INV_REQ_ERR);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_LOC_LEN_ERR);
}

/* The completion queue of the receiver is full: the sender gets an error. */
static void lost_receive_completion_fails_the_sender(struct kunit *test)
{
	struct rig *r = rig_warm(test);
	u64 sent = rig_counter(test, &r->a, "port_xmit_packets");
	u64 received = rig_counter(test, &r->b, "port_rcv_packets");
	struct ib_wc wc;
	u32 i;

	KUNIT_ASSERT_EQ(test, 0, ib_resize_cq(r->b.rcq, 2));
	rig_recv_many(test, &r->b, 0, 4, LEN);
	for (i = 0; i < 3; i++)
		EXPECT_REACHED(test, "emu_direct_execute", rig_send(&r->a, i, 0, LEN));
	for (i = 0; i < 2; i++)
		expect_both(test, r, i, i);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_REM_OP_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
	/* The message itself has arrived. */
	KUNIT_EXPECT_EQ(test, sent + 3, rig_counter(test, &r->a, "port_xmit_packets"));
	KUNIT_EXPECT_EQ(test, received + 3, rig_counter(test, &r->b, "port_rcv_packets"));
	EXPECT_NOT_REACHED(test, "emu_direct_execute", rig_send(&r->a, 3, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 3, IB_WC_WR_FLUSH_ERR);
}

/* --- others come ----------------------------------------------------------------- */

static void post_second(void *arg)
{
	struct rig_meanwhile *m = arg;

	m->hardirq = in_hardirq();
	m->err = rig_send(&m->r->a, 2, 0, LEN);
}

static void irq_post_second(struct irq_work *work)
{
	post_second(container_of(work, struct rig_meanwhile, irq));
}

static void interrupt(void *arg)
{
	struct rig_meanwhile *m = arg;

	m->irq = IRQ_WORK_INIT_HARD(irq_post_second);
	irq_work_queue(&m->irq);
	while (irq_work_is_busy(&m->irq))
		cpu_relax();
}

/* @first and @second: the order in which the two are executed. */
static void expect_order(struct kunit *test, const char *place, void (*fn)(void *arg),
			 u64 first, u64 second)
{
	struct rig_meanwhile m = { .r = rig_warm(test) };
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&m.r->b, 1, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&m.r->b, 2, 0, LEN));
	kverbs_delay_set(place, fn, &m);
	KUNIT_EXPECT_EQ(test, 0, rig_send(&m.r->a, 1, 0, LEN));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, m.err);
	KUNIT_EXPECT_EQ(test, fn == interrupt, m.hardirq);
	/* Neither has left anything to a runner. */
	KUNIT_ASSERT_EQ(test, 1, ib_poll_cq(m.r->a.scq, 1, &wc));
	KUNIT_EXPECT_EQ(test, first, wc.wr_id);
	KUNIT_ASSERT_EQ(test, 1, ib_poll_cq(m.r->a.scq, 1, &wc));
	KUNIT_EXPECT_EQ(test, second, wc.wr_id);
	RIG_EXPECT_WC(test, m.r->b.rcq, &wc, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, m.r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	/* The doorbell is idle. */
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&m.r->b, 3, 0, LEN));
	EXPECT_REACHED(test, "emu_direct_execute", rig_send(&m.r->a, 3, 0, LEN));
	expect_both(test, m.r, 3, 3);
}

/* It has the doorbell and no position yet: the other one is first. */
static void other_poster_comes_before(struct kunit *test)
{
	expect_order(test, "emu_post_direct", post_second, 2, 1);
	expect_order(test, "emu_post_direct", interrupt, 2, 1);
}

static void other_poster_comes_behind(struct kunit *test)
{
	expect_order(test, "emu_direct_execute", post_second, 1, 2);
	expect_order(test, "emu_direct_execute", interrupt, 1, 2);
	expect_order(test, "emu_reenter_peer", post_second, 1, 2);
	expect_order(test, "emu_reenter_peer", interrupt, 1, 2);
}

/* It has let go already: the other one is on its own. */
static void other_poster_comes_after(struct kunit *test)
{
	expect_order(test, "emu_qp_release", post_second, 1, 2);
	expect_order(test, "emu_qp_release", interrupt, 1, 2);
}

/* --- errors ---------------------------------------------------------------------- */

static struct ib_wc stand_still(struct kunit *test, struct rig_meanwhile *m, const char *place,
				void (*fn)(void *arg), enum ib_wr_opcode op)
{
	struct ib_wc wc = {};

	kverbs_delay_set(place, fn, m);
	KUNIT_EXPECT_EQ(test, 0, direct_post(m->r, op, 1));
	KUNIT_EXPECT_TRUE_MSG(test, kverbs_delay_clear(), place);
	KUNIT_EXPECT_EQ(test, 0, m->err);
	KUNIT_EXPECT_TRUE(test, rig_poll(m->r->a.scq, &wc));
	KUNIT_EXPECT_EQ(test, 1, wc.wr_id);
	return wc;
}

static void we_fail_before_we_look(struct kunit *test)
{
	const struct direct_op *op = test->param_value;
	struct rig_meanwhile m = { .r = rig_warm(test) };

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&m.r->b, 2, 0, LEN));
	KUNIT_EXPECT_EQ(test, IB_WC_WR_FLUSH_ERR,
			stand_still(test, &m, "emu_post_direct", rig_fail_us, op->op).status);
}

/* The request under way is executed, or fails because the peer has; what comes later is flushed. */
static void we_fail_with_a_request_under_way(struct kunit *test)
{
	const struct direct_op *op = test->param_value;
	struct rig_meanwhile m = { .r = rig_warm(test) };
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&m.r->b, 2, 0, LEN));
	wc = stand_still(test, &m, "emu_direct_execute", rig_fail_us, op->op);
	KUNIT_EXPECT_EQ(test, IB_WC_WR_FLUSH_ERR, wc.status);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(m.r->a.qp));
	EXPECT_NOT_REACHED(test, "emu_direct_execute", direct_post(m.r, op->op, 2));
	RIG_EXPECT_WC(test, m.r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
}

static void peer_fails(struct kunit *test)
{
	static const char * const places[] = {
		"emu_post_direct", "emu_direct_execute", "emu_reenter_peer",
	};
	const struct direct_op *op = test->param_value;
	struct rig_meanwhile m;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(places); i++) {
		m = (struct rig_meanwhile) { .r = rig_warm(test) };
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&m.r->b, 2, 0, LEN));
		KUNIT_EXPECT_EQ(test, IB_WC_RETRY_EXC_ERR,
				stand_still(test, &m, places[i], rig_fail_peer, op->op).status);
	}
}

/* --- regions --------------------------------------------------------------------- */

/* The region is there again, but its key is another. */
static void register_anew(void *arg)
{
	struct rig_meanwhile *m = arg;
	struct ib_mr *mr = m->r->b.mr;

	rig_invalidate(m);
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey) & 0xff);
	m->err = m->err ?: rig_post_reg(&m->r->b, mr, 8, RIG_WARM_ACCESS);
}

KVT_PART_PARAM_DESC(rdma_op, direct_ops, 1, ARRAY_SIZE(direct_ops), name);

static void region_is_invalidated(struct kunit *test)
{
	static void (* const fns[])(void *arg) = { rig_invalidate, register_anew };
	const struct direct_op *op = test->param_value;
	struct rig_meanwhile m;
	unsigned int i;
	struct ib_wc wc;

	for (i = 0; i < ARRAY_SIZE(fns); i++) {
		m = (struct rig_meanwhile) { .r = rig_warm(test) };
		/* The region is remembered from here on. */
		EXPECT_NOT_REACHED(test, "emu_target_enter", direct_rdma(m.r, op->op, 1));
		RIG_EXPECT_WC(test, m.r->a.scq, &wc, 1, IB_WC_SUCCESS);
		wc = stand_still(test, &m, "emu_target_enter", fns[i], op->op);
		KUNIT_EXPECT_EQ(test, IB_WC_REM_ACCESS_ERR, wc.status);
		KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(m.r->b.qp));
	}
}

/* Wrong uses of a region that is remembered are found out as ever. */
static void remembered_region_is_checked(struct kunit *test)
{
	const struct direct_op *op = test->param_value;
	struct rig *r;
	struct ib_wc wc;
	int i;

	for (i = 0; i < 3; i++) {
		r = rig_warm(test);
		KUNIT_ASSERT_EQ(test, 0, direct_rdma(r, op->op, 1));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
		KUNIT_ASSERT_EQ(test, 0,
				rig_rdma(&r->a, op->op, 2, 0, LEN,
					 i == 0 ? r->b.mr->iova + r->b.size - LEN + 1 :
					 i == 1 ? r->b.mr->iova - 1 : r->b.mr->iova,
					 i == 2 ? r->b.mr->rkey ^ 1 : r->b.mr->rkey));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_REM_ACCESS_ERR);
	}
}

/* A region goes for good, and makes all look for theirs again. */
static void region_goes(struct kunit *test)
{
	const struct direct_op *op = test->param_value;
	struct rig *r = rig_warm(test);
	struct ib_mr *mr;
	struct ib_wc wc;
	u64 iova;
	u32 key;

	mr = KVT_PTR(test, ib_alloc_mr(r->b.pd, IB_MR_TYPE_MEM_REG, RIG_BUF / PAGE_SIZE + 1));
	KUNIT_ASSERT_EQ(test, 1, rig_map(&r->b, mr, 0, r->b.size));
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&r->b, mr, 8, RIG_WARM_ACCESS));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 8, IB_WC_SUCCESS);
	key = mr->rkey;
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, op->op, 1, 0, LEN, mr->iova, key));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	iova = mr->iova;
	KUNIT_ASSERT_EQ(test, 0, ib_dereg_mr(mr));
	/* The other region is found, and remembered; then the one that went is not. */
	KUNIT_ASSERT_EQ(test, 0, direct_rdma(r, op->op, 2));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, op->op, 3, 0, LEN, iova, key));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 3, IB_WC_REM_ACCESS_ERR);
}

/* Pages that follow each other are one range; others are left to those who take pieces. */
static void rdma_crosses_pages(struct kunit *test)
{
	const struct direct_op *op = test->param_value;
	bool read = op->op == IB_WR_RDMA_READ;
	struct rig *r = rig_warm(test);
	u32 len = 3 * PAGE_SIZE, at = PAGE_SIZE / 2;
	struct ib_mr *mr;
	struct ib_wc wc;
	u8 *there;

	rig_fill((read ? r->b.buf : r->a.buf) + at, len, 5);
	EXPECT_NOT_REACHED(test, "emu_direct_leave",
			   rig_rdma(&r->a, op->op, 1, at, len, r->b.mr->iova + at, r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_filled((read ? r->a.buf : r->b.buf) + at, len, 5));

	mr = rig_swapped_pages(test, &r->b, RIG_WARM_ACCESS);
	rig_fill(r->a.buf, 2 * LEN, 6);
	memset(r->b.buf, 0, 2 * PAGE_SIZE);
	there = r->b.buf + 2 * PAGE_SIZE - LEN;
	if (read) {
		memcpy(there, r->a.buf, LEN);
		memcpy(r->b.buf, r->a.buf + LEN, LEN);
		memset(r->a.buf, 0, 2 * LEN);
	}
	EXPECT_REACHED(test, "emu_direct_leave",
		       rig_rdma(&r->a, op->op, 2, 0, 2 * LEN, mr->iova + PAGE_SIZE - LEN,
				mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->a.buf, 2 * LEN, 6));
	KUNIT_EXPECT_MEMEQ(test, there, r->a.buf, LEN);
	KUNIT_EXPECT_MEMEQ(test, r->b.buf, r->a.buf + LEN, LEN);
}

/* --- peers ----------------------------------------------------------------------- */

static void peer_is_destroyed(struct kunit *test)
{
	const struct direct_op *op = test->param_value;
	struct rig *r = rig_warm(test);
	struct ib_wc wc;

	rig_destroy_qp(test, &r->b);
	KUNIT_ASSERT_EQ(test, 0, direct_post(r, op->op, 1));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RETRY_EXC_ERR);
}

/* The peer is connected to somebody else now. */
static void peer_is_connected_elsewhere(struct kunit *test)
{
	const struct direct_op *op = test->param_value;
	struct rig *r = rig_warm(test);
	struct rig *other = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	rig_make_qps(test, other);
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(other, &other->a));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
	KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
	KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &other->a));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	memset(r->b.buf, 0, LEN);
	rig_fill(r->a.buf, LEN, 3);
	KUNIT_ASSERT_EQ(test, 0, direct_post(r, op->op, 1));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, LEN, 0));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

/* Changes of a port that a message must not survive. */
static const struct port_change {
	const char *name;
	const char *device;
	const char *file;
	const char *to;
} port_changes[] = {
	{ "our link", "kvd_a", "state", "down" },
	{ "the peer's link", "kvd_b", "state", "down" },
	{ "our P_Key", "kvd_a", "pkeys", "0 0x8123" },
	{ "the peer's P_Key", "kvd_b", "pkeys", "0 0x8123" },
	{ "our LID", "kvd_a", "lid", "0x4321" },
	{ "the peer's LID", "kvd_b", "lid", "0x4321" },
};

KUNIT_ARRAY_PARAM_DESC(port_change, port_changes, name);

static void port_changes_between_two_messages(struct kunit *test)
{
	const struct port_change *change = test->param_value;
	struct rig *r = rig_alloc(test);
	struct ib_wc wc;

	rig_device(test, "kvd_a", 1, NULL);
	rig_device(test, "kvd_b", 1, NULL);
	rig_end_up(test, &r->a, "kvd_a", 1);
	rig_end_up(test, &r->b, "kvd_b", 1);
	r->timeout = 1;
	r->retry_cnt = 1;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	expect_both(test, r, 1, 1);

	KUNIT_ASSERT_EQ(test, 0, rig_port_write(change->device, 1, change->file, change->to));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

/* --- somebody changes the queue pair ------------------------------------------------ */

/* The request is executed, and the freezer is woken; or it waits until the freezer is done. */
static void freezer_comes(struct kunit *test)
{
	static const char * const places[] = {
		"emu_post_direct", "emu_direct_execute", "emu_reenter_peer", "emu_qp_release",
	};
	struct rig_meanwhile m;
	struct ib_wc wc;
	unsigned int i;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		m = (struct rig_meanwhile) { .r = rig_warm(test), .err = 1 };
		m.thread = kvt_thread_new(test, kvt_other_cpu(), rig_freeze_us, &m);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&m.r->b, 2, 0, LEN));
		kverbs_delay_set(places[i], rig_wait_for_freezer, &m);
		KUNIT_EXPECT_EQ(test, 0, rig_send(&m.r->a, 1, 0, LEN));
		KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(m.thread));
		KUNIT_EXPECT_EQ(test, 0, m.err);
		/* At the last place the poster has already let go of the queue pair. */
		KUNIT_EXPECT_EQ(test, i + 1 < ARRAY_SIZE(places), m.waits);
		KUNIT_ASSERT_EQ(test, 0, rig_to(m.r->a.qp, IB_QPS_RTS));
		RIG_EXPECT_DELIVERED(test, m.r, &wc, 1, 2);
	}
}

static void in_sqd_requests_wait(struct kunit *test)
{
	const struct direct_op *op = test->param_value;
	struct rig *r = rig_warm(test);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	EXPECT_NOT_REACHED(test, "emu_direct_execute", direct_post(r, op->op, 1));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, op->wc, wc.opcode);
}

/* --- what belongs to the consumer ------------------------------------------------ */

/* A queue pair may take receives without elements: their entries have no room for one. */
static void receive_queue_without_elements(struct kunit *test)
{
	struct ib_recv_wr wr = { .wr_id = 2 };
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	r->init.cap.max_recv_wr = 1;
	r->init.cap.max_recv_sge = 0;
	r->rnr_retry = 0;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(r->b.qp, &wr, NULL));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 0));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(r->b.qp, &wr, NULL));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_REM_INV_REQ_ERR);
}

/* Requests that their completion gives back to the consumer. */
struct owned {
	struct rig *r;			/* the connection */
	/* Sends; the first one is taken back as soon as it is complete. */
	struct ib_send_wr send[2];
	struct ib_recv_wr recv[2];	/* receives, likewise */
	struct ib_sge sge;		/* memory of both */
	int failed;			/* what went wrong */
};

/* Another poster sends: it executes what is posted, and both complete. */
static void first_send_completes(void *arg)
{
	struct owned *o = arg;
	struct ib_wc wc;

	o->failed += !!rig_send(&o->r->a, 10, 0, LEN);
	o->failed += ib_poll_cq(o->r->a.scq, 1, &wc) != 1 || wc.wr_id != 0;
	o->failed += ib_poll_cq(o->r->a.scq, 1, &wc) != 1 || wc.wr_id != 10;
	memset(&o->send[0], 0xff, sizeof(o->send[0]));
}

/* Another poster sends, but the first one is the owner until it is done. */
static void lone_send_completes(void *arg)
{
	struct owned *o = arg;
	struct ib_wc wc;

	o->failed += !!rig_send(&o->r->a, 10, 0, LEN);
	o->failed += ib_poll_cq(o->r->a.scq, 1, &wc) != 1 || wc.wr_id != 0;
	memset(&o->send[0], 0xff, sizeof(o->send[0]));
}

static void first_receive_completes(void *arg)
{
	struct owned *o = arg;
	struct ib_wc wc;

	o->failed += !!rig_send(&o->r->a, 10, 0, LEN);
	o->failed += ib_poll_cq(o->r->b.rcq, 1, &wc) != 1 || wc.wr_id != 20;
	memset(&o->recv[0], 0xff, sizeof(o->recv[0]));
}

static void owned_init(struct kunit *test, struct owned *o)
{
	int i;

	o->r = rig_warm(test);
	o->sge = rig_sge(&o->r->a, 0, LEN);
	for (i = 0; i < 2; i++)
		rig_send_wr(&o->send[i], i, &o->sge, 1);
}

static void chained_send_is_the_consumers_when_it_completes(struct kunit *test)
{
	struct owned o = {};
	struct ib_wc wc;

	owned_init(test, &o);
	rig_recv_many(test, &o.r->b, 0, 3, LEN);
	/* With immediate data, so that it takes the long way. */
	o.send[0].opcode = IB_WR_SEND_WITH_IMM;
	o.send[0].next = &o.send[1];
	kverbs_delay_set("emu_send_posted", first_send_completes, &o);
	KUNIT_EXPECT_EQ(test, 0, ib_post_send(o.r->a.qp, &o.send[0], NULL));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, o.failed);
	RIG_EXPECT_WC(test, o.r->a.scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(o.r->a.scq));
}

static void lone_send_is_the_consumers_when_it_completes(struct kunit *test)
{
	struct owned o = {};
	struct ib_wc wc;

	owned_init(test, &o);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&o.r->b, 0, 0, LEN));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&o.r->b, 1, 0, LEN));
	kverbs_delay_set("emu_direct_executed", lone_send_completes, &o);
	KUNIT_EXPECT_EQ(test, 0, ib_post_send(o.r->a.qp, &o.send[0], NULL));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, o.failed);
	RIG_EXPECT_WC(test, o.r->a.scq, &wc, 10, IB_WC_SUCCESS);
}

static void chained_receive_is_the_consumers_when_it_completes(struct kunit *test)
{
	struct ib_sge sge;
	struct owned o = {};
	struct ib_wc wc;

	owned_init(test, &o);
	sge = rig_sge(&o.r->b, 0, LEN);
	o.recv[0] = (struct ib_recv_wr){ &o.recv[1], { .wr_id = 20 }, &sge, 1 };
	o.recv[1] = (struct ib_recv_wr){ NULL, { .wr_id = 21 }, &sge, 1 };
	kverbs_delay_set("emu_recv_posted", first_receive_completes, &o);
	KUNIT_EXPECT_EQ(test, 0, ib_post_recv(o.r->b.qp, &o.recv[0], NULL));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, o.failed);
	RIG_EXPECT_WC(test, o.r->a.scq, &wc, 10, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&o.r->a, 11, 0, LEN));
	RIG_EXPECT_WC(test, o.r->b.rcq, &wc, 21, IB_WC_SUCCESS);
}

static struct kunit_case emu_direct_cases[] = {
	KUNIT_CASE(receive_queue_without_elements),
	KUNIT_CASE(chained_send_is_the_consumers_when_it_completes),
	KUNIT_CASE(lone_send_is_the_consumers_when_it_completes),
	KUNIT_CASE(chained_receive_is_the_consumers_when_it_completes),
	KUNIT_CASE_PARAM(lone_request_is_executed_where_it_is, direct_op_gen_params),
	KUNIT_CASE(both_ways_share_a_ring),
	KUNIT_CASE(unsignaled_requests_are_retired_with_a_later_one),
	KUNIT_CASE(request_that_is_not_simple_goes_the_long_way),
	KUNIT_CASE(receive_that_is_too_short_is_found_out),
	KUNIT_CASE(lost_receive_completion_fails_the_sender),
	KUNIT_CASE(other_poster_comes_before),
	KUNIT_CASE(other_poster_comes_behind),
	KUNIT_CASE(other_poster_comes_after),
	KUNIT_CASE_PARAM(we_fail_before_we_look, direct_op_gen_params),
	KUNIT_CASE_PARAM(we_fail_with_a_request_under_way, direct_op_gen_params),
	KUNIT_CASE_PARAM(peer_fails, direct_op_gen_params),
	KUNIT_CASE_PARAM(region_is_invalidated, rdma_op_gen_params),
	KUNIT_CASE_PARAM(remembered_region_is_checked, rdma_op_gen_params),
	KUNIT_CASE_PARAM(region_goes, rdma_op_gen_params),
	KUNIT_CASE_PARAM(rdma_crosses_pages, rdma_op_gen_params),
	KUNIT_CASE_PARAM(peer_is_destroyed, direct_op_gen_params),
	KUNIT_CASE_PARAM(peer_is_connected_elsewhere, direct_op_gen_params),
	KUNIT_CASE_PARAM(port_changes_between_two_messages, port_change_gen_params),
	KUNIT_CASE(freezer_comes),
	KUNIT_CASE_PARAM(in_sqd_requests_wait, direct_op_gen_params),
	{}
};
KVT_SUITE(emu_direct);

MODULE_DESCRIPTION("KUnit: shortcuts of the software HCA, and the ways out of them");
MODULE_LICENSE("GPL");
