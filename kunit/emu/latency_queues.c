// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads that could keep preemption or interrupts off for long: many queue pairs, long queues
 * of work or of completions, and entries that cost as much as entries can. See latency.c.
 */
#include <linux/delay.h>
#include <linux/sizes.h>

#include "emu/latency.h"
#include "emu/rig_net.h"
#include "lib/objects.h"

/* Queue pairs that have work at the same time, and the work of each. */
#define LAT_QPS		1000
#define LAT_SENDS	32
/* The longest send and receive queues. */
#define LAT_DEPTH	16383

KUNIT_ARRAY_PARAM_DESC(lat_run, kvt_runs, name);

/* Queue pairs that are connected to themselves, with room for a chain of @sends. */
static struct lat_load *crowd_new(struct kunit *test, int nr, int sends, u32 len)
{
	struct rig *r = rig_new(test, "emu0", "emu0");
	struct lat_load *load;

	lat_resize(test, r->a.scq, nr * sends);
	lat_resize(test, r->a.rcq, nr * sends);
	r->init.cap.max_send_wr = sends;
	r->init.cap.max_recv_wr = sends;
	/* 640 us: nobody gives up, and no time is spent on looking. */
	r->rnr_timer = 12;
	load = lat_load_new(test, r, nr, sends);
	load->sge[0].length = len;
	lat_add_rc(test, load);
	return load;
}

static void crowd_fill_receives(struct kunit *test, struct lat_load *load)
{
	int i;

	for (i = 0; i < load->nr; i++)
		rig_recv_many(test, &load->end[i], 0, load->nr_wr, load->sge[0].length);
}

static void crowd_expect(struct kunit *test, struct lat_load *load, enum ib_wc_status status)
{
	int wanted = load->nr * load->nr_wr;
	int received = lat_collect(load->r->a.rcq, wanted, status);
	int sent = lat_collect(load->r->a.scq, wanted, status);

	lat_end();
	KUNIT_EXPECT_EQ(test, 0, load->err);
	KUNIT_EXPECT_EQ(test, wanted, received);
	KUNIT_EXPECT_EQ(test, wanted, sent);
}

static void crowd_sends(struct kunit *test, u32 len)
{
	const struct kvt_run *run = lat_run_of_param(test);
	struct lat_load *load = crowd_new(test, lat_scaled(LAT_QPS), LAT_SENDS, len);

	crowd_fill_receives(test, load);
	lat_begin();
	lat_post_all(load, run);
	crowd_expect(test, load, IB_WC_SUCCESS);
}

static void sends_of_1000_qps(struct kunit *test)
{
	crowd_sends(test, SZ_4K);
}

static void short_sends_of_1000_qps(struct kunit *test)
{
	crowd_sends(test, SZ_256);
}

/* They wait for receives, all for the same time, and go on one by one. */
static void waits_of_1000_qps(struct kunit *test)
{
	const struct kvt_run *run = lat_run_of_param(test);
	struct lat_load *load = crowd_new(test, lat_scaled(LAT_QPS), 1, SZ_256);

	lat_begin();
	lat_post_all(load, run);
	msleep(20);
	crowd_fill_receives(test, load);
	crowd_expect(test, load, IB_WC_SUCCESS);
}

/* Each end names its memory by a region's key, in so many elements. */
static void region_sends(struct kunit *test, int sends, int from, int to, u32 len)
{
	const struct kvt_run *run = lat_run_of_param(test);
	struct rig *r = rig_new(test, "emu0", "emu0");
	struct ib_sge sge[LAT_SGE];
	struct ib_recv_wr recv = { .sg_list = sge, .num_sge = to };
	struct lat_load *load;
	int sent, i;

	lat_resize(test, r->a.scq, sends);
	lat_resize(test, r->a.rcq, sends);
	r->init.cap.max_send_wr = sends;
	r->init.cap.max_recv_wr = sends;
	r->init.cap.max_send_sge = LAT_SGE;
	r->init.cap.max_recv_sge = LAT_SGE;
	load = lat_load_new(test, r, 1, sends);
	lat_add_rc(test, load);
	rig_register_apart(test, &r->a, IB_ACCESS_LOCAL_WRITE);
	lat_scatter(&r->a, load->sge, from, len);
	lat_scatter(&r->a, sge, to, len);
	for (i = 0; i < sends; i++) {
		load->wr[i].wr.num_sge = from;
		KUNIT_ASSERT_EQ(test, 0, ib_post_recv(load->end[0].qp, &recv, NULL));
	}
	lat_begin();
	lat_post_all(load, run);
	sent = lat_collect(r->a.scq, sends, IB_WC_SUCCESS);
	lat_end();
	KUNIT_EXPECT_EQ(test, 0, load->err);
	KUNIT_EXPECT_EQ(test, sends, sent);
}

static void sends_of_64_kib(struct kunit *test)
{
	region_sends(test, lat_scaled(SZ_1K), 1, 1, SZ_64K);
}

static void sends_of_many_elements(struct kunit *test)
{
	region_sends(test, lat_scaled(SZ_1K), LAT_SGE, LAT_SGE, SZ_256);
}

static void receives_of_many_elements(struct kunit *test)
{
	region_sends(test, lat_scaled(SZ_1K), 1, LAT_SGE, SZ_256);
}

/* Their peers have no receives: they wait, with everything that was posted. */
static void flush_of_1000_qps(struct kunit *test)
{
	struct lat_load *load = crowd_new(test, lat_scaled(LAT_QPS), LAT_SENDS, SZ_256);
	const struct kvt_run *run = lat_run_of_param(test);
	int wanted = load->nr * LAT_SENDS, flushed, i;

	lat_begin();
	lat_post_all(load, run);
	for (i = 0; i < load->nr; i++)
		KUNIT_EXPECT_EQ(test, 0, kvt_qp_to_err(load->end[i].qp));
	flushed = lat_collect(load->r->a.scq, wanted, IB_WC_WR_FLUSH_ERR);
	lat_end();
	KUNIT_EXPECT_EQ(test, 0, load->err);
	KUNIT_EXPECT_EQ(test, wanted, flushed);
}

/* Posts to a queue pair in the error state are flushed at once. */
static void posts_in_error(struct kunit *test)
{
	const struct kvt_run *run = lat_run_of_param(test);
	struct lat_load *load = crowd_new(test, 1, lat_scaled(LAT_DEPTH) / 16, SZ_256);
	int flushed;

	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(load->end[0].qp));
	lat_begin();
	lat_post_all(load, run);
	flushed = lat_collect(load->r->a.scq, load->nr_wr, IB_WC_WR_FLUSH_ERR);
	lat_end();
	KUNIT_EXPECT_EQ(test, 0, load->err);
	KUNIT_EXPECT_EQ(test, load->nr_wr, flushed);
}

/* A queue pair whose peer never has a receive, with @depth sends and receives posted. */
static struct lat_load *stuck_new(struct kunit *test, struct rig *r, int depth)
{
	struct lat_load *load;

	r->init.cap.max_send_wr = depth;
	r->init.cap.max_recv_wr = depth;
	r->rnr_timer = 12;
	load = lat_load_new(test, r, 1, depth);
	rig_start(test, r);
	load->end[0].qp = r->a.qp;
	return load;
}

/* Completions that a CQ of the core hands out. */
struct counted {
	struct ib_cqe cqe;	/* in each of them */
	int left;		/* how many are to come */
	struct completion all;	/* completed by the last */
};

static void counted_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct counted *counted = container_of(wc->wr_cqe, struct counted, cqe);

	if (!--counted->left)
		complete(&counted->all);
}

/* The longest queues are flushed, and polled in softirq. */
static void flush_of_longest_queues(struct kunit *test)
{
	struct counted counted = { .cqe.done = counted_done };
	struct ib_recv_wr recv = { .wr_cqe = &counted.cqe };
	struct rig *r = rig_new(test, "emu0", "emu1");
	int depth = lat_scaled(LAT_DEPTH), i;
	struct lat_load *load;

	init_completion(&counted.all);
	counted.left = 2 * depth;
	r->a.scq = kvt_cq(test, r->a.ibdev, 2 * depth, IB_POLL_SOFTIRQ);
	r->a.rcq = r->a.scq;
	load = stuck_new(test, r, depth);
	for (i = 0; i < depth; i++) {
		load->wr[i].wr.wr_cqe = &counted.cqe;
		KUNIT_ASSERT_EQ(test, 0, ib_post_recv(load->end[0].qp, &recv, NULL));
	}
	lat_post_all(load, LAT_TASK);
	KUNIT_ASSERT_EQ(test, 0, load->err);
	lat_begin();
	KUNIT_EXPECT_EQ(test, 0, kvt_qp_to_err(load->end[0].qp));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&counted.all));
	lat_end();
	KUNIT_EXPECT_EQ(test, 0, counted.left);
}

static int lat_to_rts_from_sqe(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS, .cur_qp_state = IB_QPS_SQE };

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE);
}

/* The first of many datagrams fails, and the queue pair is back before the rest is flushed. */
static void return_from_sqe(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu0");
	int depth = lat_scaled(LAT_DEPTH), flushed, i;
	struct lat_load *load;
	struct ib_ah *ah;
	struct ib_wc wc;

	lat_resize(test, r->a.scq, depth);
	r->init.cap.max_send_wr = depth;
	load = lat_load_new(test, r, 1, depth);
	rig_make_ud(test, r, &load->end[0]);
	ah = rig_ah(test, &load->end[0], &load->end[0]);
	for (i = 0; i < depth; i++) {
		load->wr[i].ud.ah = ah;
		load->wr[i].ud.remote_qpn = load->end[0].qp->qp_num;
		load->wr[i].ud.remote_qkey = RIG_QKEY;
	}
	for (i = 0; i < depth - 1; i++)
		load->wr[i].wr.next = &load->wr[i + 1].wr;
	load->sge[0].lkey = 0x66666600;
	lat_begin();
	lat_post(load);
	KUNIT_EXPECT_EQ(test, 0, lat_to_rts_from_sqe(load->end[0].qp));
	KUNIT_EXPECT_EQ(test, 1, lat_collect(r->a.scq, 1, IB_WC_LOC_PROT_ERR));
	flushed = lat_collect(r->a.scq, depth - 1, IB_WC_WR_FLUSH_ERR);
	lat_end();
	KUNIT_EXPECT_EQ(test, 0, load->err);
	KUNIT_EXPECT_EQ(test, depth - 1, flushed);
	KUNIT_EXPECT_EQ(test, 0, ib_poll_cq(r->a.scq, 1, &wc));
}

struct lat_poll {
	struct ib_cq *cq;
	struct ib_wc wc[2];
	int got;
};

static void lat_poll(void *arg)
{
	struct lat_poll *poll = arg;

	poll->got = ib_poll_cq(poll->cq, ARRAY_SIZE(poll->wc), poll->wc);
}

/* Between two completions are many of a queue pair that is gone. */
static void poll_past_forgotten(struct kunit *test)
{
	const struct kvt_run *run = lat_run_of_param(test);
	struct rig *r = rig_new(test, "emu0", "emu1");
	int depth = lat_scaled(LAT_DEPTH);
	struct lat_load *gone, *kept;
	struct lat_poll poll = { .cq = r->a.scq };

	lat_resize(test, r->a.scq, depth + 2);
	gone = stuck_new(test, r, depth);
	kept = stuck_new(test, r, 2);
	kept->wr[0].wr.next = NULL;
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(kept->end[0].qp));
	lat_post(kept);
	lat_post_all(gone, LAT_TASK);
	KUNIT_ASSERT_EQ(test, 0, gone->err ?: kept->err);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(gone->end[0].qp));
	KUNIT_ASSERT_TRUE(test, kvt_until(r->a.ibdev->ops.peek_cq(r->a.scq, depth + 1) > depth));
	lat_begin();
	kvt_qp_put(test, gone->end[0].qp);
	lat_end();
	lat_post(kept);
	lat_begin();
	run->run(lat_poll, &poll);
	lat_end();
	KUNIT_EXPECT_EQ(test, 2, poll.got);
	KUNIT_EXPECT_PTR_EQ(test, poll.wc[0].qp, kept->end[0].qp);
	KUNIT_EXPECT_PTR_EQ(test, poll.wc[1].qp, kept->end[0].qp);
	KUNIT_EXPECT_EQ(test, 0, ib_poll_cq(r->a.scq, 1, poll.wc));
}

static struct kunit_case emu_latency_queues_cases[] = {
	KUNIT_CASE_PARAM(sends_of_1000_qps, lat_run_gen_params),
	KUNIT_CASE_PARAM(short_sends_of_1000_qps, lat_run_gen_params),
	KUNIT_CASE_PARAM(sends_of_64_kib, lat_run_gen_params),
	KUNIT_CASE_PARAM(waits_of_1000_qps, lat_run_gen_params),
	KUNIT_CASE_PARAM(sends_of_many_elements, lat_run_gen_params),
	KUNIT_CASE_PARAM(receives_of_many_elements, lat_run_gen_params),
	KUNIT_CASE_PARAM(flush_of_1000_qps, lat_run_gen_params),
	KUNIT_CASE_PARAM(posts_in_error, lat_run_gen_params),
	KUNIT_CASE(flush_of_longest_queues),
	KUNIT_CASE(return_from_sqe),
	KUNIT_CASE_PARAM(poll_past_forgotten, lat_run_gen_params),
	{}
};
KVT_SUITE(emu_latency_queues);
