// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rows of the conformance table about completions and the states of a QP that can be
 * checked only with an HCA. The name of a case starts with its row.
 */

#include "emu/rig.h"
#include "lib/console.h"

#define ALL_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ)
#define NOT_READY	"rcvd_rnr_err"
#define MOVES		10
#define MOVE_MESSAGES	200

KUNIT_ARRAY_PARAM_DESC(pair, rig_pairs, name);

static void p2_send_in_sqe_is_flushed_in_order(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_send_wr wr;
	struct ib_sge sge;
	struct ib_wc wc;

	r->init.qp_type = IB_QPT_UC;
	rig_start(test, r);
	sge = rig_sge(&r->a, 0, 8);
	sge.lkey = 0x12345600;
	rig_send_wr(&wr, 100, &sge, 1);
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 100, IB_WC_LOC_PROT_ERR);
	KUNIT_ASSERT_EQ(test, IB_QPS_SQE, rig_state(r->a.qp));
	rig_send_many(test, &r->a, 0, RIG_WR, 8);
	rig_expect_wcs(test, r->a.scq, 0, RIG_WR, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_EQ(test, IB_QPS_SQE, rig_state(r->a.qp));
}

static void c1_unsignaled_send_that_fails_completes(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_sge good = rig_sge(&r->a, 0, 8), bad = good;
	struct ib_send_wr wr[3];
	struct ib_wc wc;
	int i;

	bad.lkey = 0x12345600;
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 9, 0, 8));
	for (i = 0; i < 3; i++) {
		rig_send_wr(&wr[i], i, i == 1 ? &bad : &good, 1);
		wr[i].send_flags = 0;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	KUNIT_ASSERT_EQ(test, 0, ib_post_send(r->a.qp, wr, NULL));
	/* The first send succeeds and is unsignaled, so it has no completion. */
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_WR_FLUSH_ERR);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 9, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

/* Polling must set all of these fields, whatever the ib_wc holds before. */
static void expect_error(struct kunit *test, struct ib_qp *qp, struct ib_cq *cq, u64 wr_id,
			 enum ib_wc_status status)
{
	struct ib_wc wc;

	memset(&wc, 0xff, sizeof(wc));
	RIG_EXPECT_WC(test, cq, &wc, wr_id, status);
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, qp);
	KUNIT_EXPECT_NE(test, 0, wc.vendor_err);
	KUNIT_EXPECT_NE(test, U32_MAX, wc.vendor_err);
}

static void c3_error_names_request_queue_pair_and_cause(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	int i;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 20, 0, 4));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 21, 0, 4));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 10, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 11, 0, 8));
	for (i = 0; i < 2; i++) {
		expect_error(test, r->a.qp, r->a.scq, 10 + i,
			     i ? IB_WC_WR_FLUSH_ERR : IB_WC_REM_INV_REQ_ERR);
		expect_error(test, r->b.qp, r->b.rcq, 20 + i,
			     i ? IB_WC_WR_FLUSH_ERR : IB_WC_LOC_LEN_ERR);
	}
}

static void c14_resize_below_what_is_there(struct kunit *test)
{
	struct rig *r = rig_of_param(test);

	rig_recv_many(test, &r->b, 0, RIG_WR, 8);
	rig_send_many(test, &r->a, 0, RIG_WR, 8);
	/* What was sent has been received: the CQ holds RIG_WR entries. */
	rig_expect_wcs(test, r->a.scq, 0, RIG_WR, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_resize_cq(r->b.rcq, RIG_WR / 2));
	KUNIT_EXPECT_EQ(test, 0, ib_resize_cq(r->b.rcq, RIG_WR));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_resize_cq(r->b.rcq, RIG_WR / 2));
	rig_expect_wcs(test, r->b.rcq, 0, RIG_WR, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

/* Q3 */

static void q3_reset_forgets_what_was_set(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	struct ib_wc wc;
	int round;

	r->psn = 77;
	rig_make_qps(test, r);
	for (round = 0; round < 2; round++) {
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->a));
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
		KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->a, &r->b));
		KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
		KUNIT_ASSERT_EQ(test, 0, rig_to_rts(r, &r->a));
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
		RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
		/* Each connection raises COMM_EST, as RESET forgets the one before. */
		rig_expect_event(test, &r->b, IB_EVENT_COMM_EST);
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RESET));
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
	}
	KUNIT_ASSERT_EQ(test, 0, ib_query_qp(r->a.qp, &attr, 0, &init));
	KUNIT_EXPECT_EQ(test, IB_QPS_RESET, attr.qp_state);
	KUNIT_EXPECT_EQ(test, 0, attr.sq_psn);
	KUNIT_EXPECT_EQ(test, 0, attr.rq_psn);
	KUNIT_EXPECT_EQ(test, 0, attr.dest_qp_num);
	KUNIT_EXPECT_EQ(test, 0, attr.max_rd_atomic);
	KUNIT_EXPECT_EQ(test, 0, attr.max_dest_rd_atomic);
	KUNIT_EXPECT_EQ(test, 0, attr.retry_cnt);
	KUNIT_EXPECT_EQ(test, 0, attr.qp_access_flags);
	KUNIT_EXPECT_EQ(test, RIG_WR, attr.cap.max_send_wr);
}

/* Q4 */

static int to_sqd(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_SQD, .en_sqd_async_notify = 1,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY);
}

static u8 sq_draining(struct ib_qp *qp)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};

	return ib_query_qp(qp, &attr, IB_QP_STATE, &init) ? 255 :
							    attr.sq_draining;
}

static void q4_message_under_way_is_finished(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	u64 before = rig_counter(test, &r->a, NOT_READY);
	struct ib_wc wc;
	int i;

	rig_send_many(test, &r->a, 0, 3, 8);
	KUNIT_ASSERT_TRUE(test, rig_counts_to(test, &r->a, NOT_READY, before + 1));
	KUNIT_ASSERT_EQ(test, 0, to_sqd(r->a.qp));
	/* The first send has begun: the SQ is not drained while it is being retried. */
	KUNIT_EXPECT_EQ(test, 1, sq_draining(r->a.qp));
	rig_expect_no_event(test, &r->a);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 10, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 11, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 0, IB_WC_SUCCESS);
	rig_expect_event(test, &r->a, IB_EVENT_SQ_DRAINED);
	KUNIT_EXPECT_EQ(test, 0, sq_draining(r->a.qp));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 10, IB_WC_SUCCESS);
	/* There is a receive for the second send, too, but that send waits for RTS. */
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 12, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
	for (i = 1; i < 3; i++)
		RIG_EXPECT_DELIVERED(test, r, &wc, i, 10 + i);
	rig_expect_no_event(test, &r->a);
}

static void q4_drained_is_told_once_each_time(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	int i;

	for (i = 0; i < 5; i++) {
		KUNIT_ASSERT_EQ(test, 0, to_sqd(r->a.qp));
		rig_expect_event(test, &r->a, IB_EVENT_SQ_DRAINED);
		/* A change from SQD to SQD raises no event. */
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
		rig_expect_no_event(test, &r->a);
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
		rig_expect_no_event(test, &r->a);
	}
}

static void q4_drained_is_told_if_that_move_asks_for_it(struct kunit *test)
{
	struct rig *r = rig_of_param(test);

	KUNIT_ASSERT_EQ(test, 0, to_sqd(r->a.qp));
	rig_expect_event(test, &r->a, IB_EVENT_SQ_DRAINED);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	rig_expect_no_event(test, &r->a);
	KUNIT_EXPECT_FALSE(test, sq_draining(r->a.qp));
}

static void q4_receives_go_on_in_sqd(struct kunit *test)
{
	struct rig *r = rig_of_param(test);
	struct ib_wc wc;

	rig_register(test, &r->a, ALL_ACCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 2, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->b, 1, 0, 8));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->a.rcq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->b, IB_WR_RDMA_READ, 3, 0, 8,
					  r->a.mr->iova, r->a.mr->rkey));
	RIG_EXPECT_WC(test, r->b.scq, &wc, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, IB_QPS_SQD, rig_state(r->a.qp));
}

static void q4_error_ends_what_sqd_holds(struct kunit *test)
{
	struct rig *r = rig_of_param(test);

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	rig_send_many(test, &r->a, 0, RIG_WR, 8);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_ERR));
	rig_expect_wcs(test, r->a.scq, 0, RIG_WR, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

/*
 * A thread that sends without a pause while the path changes. Each message is its number,
 * sent inline and checked by the receiver.
 */
struct stream {
	struct rig *r;
	u64 sent;
	u64 completed;
	u64 received;
	u64 failed;
};

static int stream_post(struct stream *s)
{
	struct ib_sge sge = { (uintptr_t)&s->sent, sizeof(s->sent), 0 };
	struct ib_send_wr wr;

	rig_send_wr(&wr, s->sent, &sge, 1);
	wr.send_flags |= IB_SEND_INLINE;
	return ib_post_send(s->r->a.qp, &wr, NULL);
}

/* Polls what there is. Returns whether all that was sent has completed and arrived. */
static bool stream_reap(struct stream *s)
{
	struct rig *r = s->r;
	struct ib_wc wc;

	while (ib_poll_cq(r->a.scq, 1, &wc) == 1) {
		if (wc.status != IB_WC_SUCCESS || wc.wr_id != s->completed)
			s->failed++;
		WRITE_ONCE(s->completed, s->completed + 1);
	}
	while (ib_poll_cq(r->b.rcq, 1, &wc) == 1) {
		u64 n = *(u64 *)(r->b.buf + wc.wr_id * 8);

		if (wc.status != IB_WC_SUCCESS || n != s->received)
			s->failed++;
		WRITE_ONCE(s->received, s->received + 1);
		if (rig_recv(&r->b, wc.wr_id, wc.wr_id * 8, 8))
			s->failed++;
	}
	return s->received >= s->sent && s->completed >= s->sent;
}

static int stream_fn(void *arg)
{
	struct stream *s = arg;

	while (!kvt_should_stop()) {
		if (s->sent - s->completed < RIG_WR && !stream_post(s))
			s->sent++;
		stream_reap(s);
		kvt_yield();
	}
	return 0;
}

static bool stream_flows(struct stream *s, u64 more)
{
	u64 want = READ_ONCE(s->received) + more;

	return kvt_until(READ_ONCE(s->received) >= want);
}

/* A kind of path change: the peer's LID changes, or the sender's port. */
struct move {
	int (*change)(struct rig *r, int round);
	void (*prepare)(struct kunit *test);
	const char *name;
};

/* Sets the path of @e to @peer from the current LIDs and port. */
static int move_path(struct rig_end *e, struct rig_end *peer)
{
	struct ib_qp_attr attr = { .port_num = e->port };

	rig_set_route(&attr.ah_attr, e, peer);
	return ib_modify_qp(e->qp, &attr, IB_QP_AV | IB_QP_PORT);
}

static int move_lid_to(struct rig *r, u16 lid)
{
	char text[8];

	snprintf(text, sizeof(text), "%u", lid);
	r->b.lid = lid;
	return kvt_write_file("/sys/kernel/config/kverbs_emu/emu1/port1/lid", text);
}

static int move_lid(struct rig *r, int round)
{
	return move_lid_to(r, 1000 + round);
}

static void lid_prepare(struct kunit *test)
{
	kvt_restore_file(test, "/sys/kernel/config/kverbs_emu/emu1/port1/lid", "0");
}

static int move_port(struct rig *r, int round)
{
	struct ib_port_attr attr = {};
	int ret;

	r->a.port = round % 2 ? 1 : 2;
	ret = ib_query_port(r->a.ibdev, r->a.port, &attr);
	r->a.lid = attr.lid;
	return ret;
}

static int set_ports(const char *ports)
{
	return kvt_write_file("/sys/kernel/config/kverbs_emu/emu0/enable", "0") ?:
	       kvt_write_file("/sys/kernel/config/kverbs_emu/emu0/ports", ports) ?:
	       kvt_write_file("/sys/kernel/config/kverbs_emu/emu0/enable", "1");
}

static void ports_restore(void *arg)
{
	set_ports("1");
}

static void ports_prepare(struct kunit *test)
{
	kvt_defer(test, ports_restore, NULL);
	KUNIT_ASSERT_EQ(test, 0, set_ports("2"));
}

static const struct move all_moves[] = {
	{ move_lid, lid_prepare, "LID of the peer" },
	{ move_port, ports_prepare, "port of the device" },
};

KUNIT_ARRAY_PARAM_DESC(move, all_moves, name);

static void move_once(struct kunit *test, struct rig *r, const struct move *m, int round)
{
	KUNIT_ASSERT_EQ(test, 0, to_sqd(r->a.qp));
	rig_expect_event(test, &r->a, IB_EVENT_SQ_DRAINED);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_SQD));
	KUNIT_ASSERT_EQ(test, 0, m->change(r, round));
	KUNIT_ASSERT_EQ(test, 0, move_path(&r->b, &r->a));
	KUNIT_ASSERT_EQ(test, 0, move_path(&r->a, &r->b));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RTS));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
}

static void q4_path_changes_under_traffic(struct kunit *test)
{
	const struct move *m = test->param_value;
	struct kvt_thread *t;
	struct stream *s;
	int i;

	s = kvt_zalloc(test, sizeof(*s));
	m->prepare(test);
	s->r = rig_up(test, "emu0", "emu1");
	for (i = 0; i < RIG_WR; i++)
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&s->r->b, i, i * 8, 8));
	t = kvt_thread_start(test, kvt_other_cpu(), stream_fn, s);
	for (i = 0; i < MOVES; i++) {
		KUNIT_ASSERT_TRUE(test, stream_flows(s, MOVE_MESSAGES));
		move_once(test, s->r, m, i);
	}
	KUNIT_EXPECT_TRUE(test, stream_flows(s, MOVE_MESSAGES));
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_stop(t));
	KUNIT_EXPECT_TRUE(test, kvt_until(stream_reap(s)));
	KUNIT_EXPECT_EQ(test, 0, s->failed);
	KUNIT_EXPECT_EQ(test, s->sent, s->received);
}

/* The first queue pair is in SQD, with a message under way, which waits for a receive. */
static struct rig *rig_draining(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	u64 before = rig_counter(test, &r->a, NOT_READY);

	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	KUNIT_ASSERT_TRUE(test, rig_counts_to(test, &r->a, NOT_READY, before + 1));
	KUNIT_ASSERT_EQ(test, 0, to_sqd(r->a.qp));
	return r;
}

/* Until the message under way is finished, the queue pair can only fail, or be reset. */
static void q4_draining_is_not_cut_short(struct kunit *test)
{
	struct rig *r = rig_draining(test);
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, -EINVAL, rig_to(r->a.qp, IB_QPS_RTS));
	KUNIT_EXPECT_EQ(test, -EINVAL, move_path(&r->a, &r->b));
	KUNIT_EXPECT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	KUNIT_EXPECT_EQ(test, 1, sq_draining(r->a.qp));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	rig_expect_event(test, &r->a, IB_EVENT_SQ_DRAINED);
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
	KUNIT_EXPECT_EQ(test, 0, move_path(&r->a, &r->b));
	KUNIT_EXPECT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
}

static void q4_draining_may_end_in_error_or_reset(struct kunit *test)
{
	struct rig *r = rig_draining(test);
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_ERR));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RESET));
	rig_expect_no_event(test, &r->a);
}

/* A path is one from a port. */
static void q4_port_changes_with_the_path(struct kunit *test)
{
	struct ib_qp_attr attr = { .port_num = 2 };
	struct rig *r;

	ports_prepare(test);
	r = rig_up(test, "emu0", "emu1");
	KUNIT_EXPECT_TRUE(test, r->a.ibdev->attrs.device_cap_flags & IB_DEVICE_CHANGE_PHY_PORT);
	KUNIT_ASSERT_EQ(test, 0, to_sqd(r->a.qp));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_qp(r->a.qp, &attr, IB_QP_PORT));
	attr.port_num = 1;
	KUNIT_EXPECT_EQ(test, 0, ib_modify_qp(r->a.qp, &attr, IB_QP_PORT));
	KUNIT_ASSERT_EQ(test, 0, move_port(r, 0));
	KUNIT_EXPECT_EQ(test, 0, move_path(&r->a, &r->b));
}

static void q5_destroy_while_attached_is_busy(struct kunit *test)
{
	union ib_gid gid = { .raw = { 0xff, 0x12, [15] = 1 } };
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_qp_init_attr init = r->init;
	int ret;

	init.qp_type = IB_QPT_UD;
	init.send_cq = r->a.scq;
	init.recv_cq = r->a.rcq;
	r->a.qp = KVT_PTR(test, ib_create_qp(r->a.pd, &init));
	ret = rig_to_init(r, &r->a) ?: ib_attach_mcast(r->a.qp, &gid, 0xc001);
	KUNIT_EXPECT_EQ(test, 0, ret);
	if (!ret) {
		KUNIT_ASSERT_EQ(test, -EBUSY, ib_destroy_qp(r->a.qp));
		KUNIT_EXPECT_EQ(test, IB_QPS_INIT, rig_state(r->a.qp));
		KUNIT_EXPECT_EQ(test, 0, ib_detach_mcast(r->a.qp, &gid, 0xc001));
	}
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(r->a.qp));
}

static int ask_path(struct rig *r, union ib_gid *dgid, u8 sl, u32 flow_label)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD };

	rig_set_route(&attr.ah_attr, &r->a, &r->b);
	rdma_ah_set_grh(&attr.ah_attr, dgid, flow_label, 0, 64, 0);
	rdma_ah_set_sl(&attr.ah_attr, sl);
	return ib_modify_qp(r->a.qp, &attr, IB_QP_STATE | IB_QP_AV);
}

static void q1_paths_that_no_packet_can_have_are_refused(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	union ib_gid group = { .raw = { 0xff, 0x12 } };
	u16 lid = r->b.lid;

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	KUNIT_EXPECT_EQ(test, -EINVAL, ask_path(r, &r->b.gid, 16, 0));
	/* A connection has one other end. */
	KUNIT_EXPECT_EQ(test, -EINVAL, ask_path(r, &group, 0, 0));
	r->b.lid = 0xc001;
	KUNIT_EXPECT_EQ(test, -EINVAL, ask_path(r, &r->b.gid, 0, 0));
	r->b.lid = lid;
	KUNIT_EXPECT_EQ(test, 0, ask_path(r, &r->b.gid, 15, BIT(20) - 1));
}

/* UCX has no flow label, and sets all bits to say so. */
static void q1_flow_label_is_cut_off(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	KUNIT_EXPECT_EQ(test, 0, ask_path(r, &r->b.gid, 0, U32_MAX));
	KUNIT_EXPECT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_RTS));
}

/* As uverbs has it: to a path that a process sets, it adds the port. */
static void q1_path_may_come_with_its_port(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_SQD, .port_num = 1 };
	struct rig *r = rig_new(test, "emu0", "emu1");

	r->init.qp_type = IB_QPT_UC;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_SQD));
	rig_set_route(&attr.ah_attr, &r->a, &r->b);
	KUNIT_EXPECT_EQ(test, 0, ib_modify_qp(r->a.qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PORT));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_qp(r->a.qp, &attr, IB_QP_STATE | IB_QP_PORT));
}

/* There is one path, and so one state of migration. */
static void q1_migrated_is_the_state_of_a_path(struct kunit *test)
{
	static const enum ib_mig_state states[] = {
		IB_MIG_MIGRATED, IB_MIG_REARM, IB_MIG_ARMED,
	};
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_qp_attr attr = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		attr.path_mig_state = states[i];
		KUNIT_EXPECT_EQ(test, i ? -EOPNOTSUPP : 0,
				ib_modify_qp(r->a.qp, &attr, IB_QP_PATH_MIG_STATE));
	}
}

/* They are hints: what means nothing to the HCA is no error. */
static void q8_optional_access_flags_are_ignored(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	r->access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_RELAXED_ORDERING;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, ib_query_qp(r->a.qp, &attr, IB_QP_ACCESS_FLAGS, &init));
	KUNIT_EXPECT_EQ(test, IB_ACCESS_REMOTE_WRITE, attr.qp_access_flags);
}

/* What the HCA does not have is refused, and nothing is queued; what others have, by its name. */
static void p14_operations_that_it_lacks_are_refused(struct kunit *test)
{
	static const char * const names[] = {
		"LSO is not supported", "masked CMP_SWP is not supported",
		"masked FETCH_ADD is not supported", "FLUSH is not supported",
		"ATOMIC_WRITE is not supported",
	};
	struct kvt_console *said[ARRAY_SIZE(names)];
	static const enum ib_wr_opcode ops[] = {
		IB_WR_LSO, IB_WR_MASKED_ATOMIC_CMP_AND_SWP, IB_WR_MASKED_ATOMIC_FETCH_AND_ADD,
		IB_WR_FLUSH, IB_WR_ATOMIC_WRITE, IB_WR_REG_MR_INTEGRITY, IB_WR_RESERVED1, -1,
	};
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	const struct ib_send_wr *bad;
	struct ib_rdma_wr wr = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		said[i] = kvt_console_watch(test, names[i]);
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		rig_send_wr(&wr.wr, i, &sge, 1);
		wr.wr.opcode = ops[i];
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, &bad));
		KUNIT_EXPECT_PTR_EQ(test, &wr.wr, (struct ib_send_wr *)bad);
	}
	for (i = 0; i < ARRAY_SIZE(names); i++)
		KUNIT_EXPECT_EQ_MSG(test, 1, kvt_console_times(said[i]), "%s", names[i]);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
}

static struct kunit_case emu_conform_qp_cases[] = {
	KUNIT_CASE(p2_send_in_sqe_is_flushed_in_order),
	KUNIT_CASE_PARAM(c1_unsignaled_send_that_fails_completes, pair_gen_params),
	KUNIT_CASE_PARAM(c3_error_names_request_queue_pair_and_cause, pair_gen_params),
	KUNIT_CASE_PARAM(c14_resize_below_what_is_there, pair_gen_params),
	KUNIT_CASE(q3_reset_forgets_what_was_set),
	KUNIT_CASE(q4_draining_is_not_cut_short),
	KUNIT_CASE(q4_draining_may_end_in_error_or_reset),
	KUNIT_CASE(q4_port_changes_with_the_path),
	KUNIT_CASE_PARAM(q4_message_under_way_is_finished, pair_gen_params),
	KUNIT_CASE_PARAM(q4_drained_is_told_once_each_time, pair_gen_params),
	KUNIT_CASE_PARAM(q4_drained_is_told_if_that_move_asks_for_it, pair_gen_params),
	KUNIT_CASE_PARAM(q4_receives_go_on_in_sqd, pair_gen_params),
	KUNIT_CASE_PARAM(q4_error_ends_what_sqd_holds, pair_gen_params),
	KUNIT_CASE_PARAM(q4_path_changes_under_traffic, move_gen_params),
	KUNIT_CASE(q5_destroy_while_attached_is_busy),
	KUNIT_CASE(q1_paths_that_no_packet_can_have_are_refused),
	KUNIT_CASE(q1_path_may_come_with_its_port),
	KUNIT_CASE(q1_flow_label_is_cut_off),
	KUNIT_CASE(q1_migrated_is_the_state_of_a_path),
	KUNIT_CASE(q8_optional_access_flags_are_ignored),
	KUNIT_CASE(p14_operations_that_it_lacks_are_refused),
	{}
};
KVT_SUITE(emu_conform_qp);
