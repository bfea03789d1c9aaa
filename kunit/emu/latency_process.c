// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads that could keep preemption or interrupts off for long: what a process can cause by one
 * system call, and a device that goes with many objects on it. See latency.c.
 */
#include <linux/sizes.h>

#include "emu/latency.h"
#include "emu/process.h"
#include "emu/rig_net.h"
#include "lib/objects.h"

#define NAME		"emulat"

/* The longest rings of a process, one entry of which stays empty. */
#define LAT_RING	(SZ_16K - 1)
#define LAT_SRQ_RING	(SZ_32K - 1)
/* A device that goes has so many queue pairs, with work as long as this in each queue. */
#define LAT_QPS		1000
#define LAT_WORK	32

/* A process whose two queue pairs are connected, and complete into one CQ. */
struct lat_process {
	struct rig *r;
	struct process *process;
	struct emu_uring *cq;
	struct process_rings a, b;
	int depth;
};

static struct lat_process *lat_process_new(struct kunit *test, int depth)
{
	struct lat_process *l = kvt_zalloc(test, sizeof(*l));
	struct rig *r = rig_new(test, "emu0", "emu0");

	l->r = r;
	l->depth = depth;
	rig_register_apart(test, &r->a, IB_ACCESS_LOCAL_WRITE);
	rig_register_apart(test, &r->b, IB_ACCESS_LOCAL_WRITE);
	l->process = process_new(test, r->a.ibdev);
	r->a.scq = process_cq(test, l->process, 2 * depth, &r->a, &l->cq);
	r->a.rcq = r->a.scq;
	r->b.scq = r->a.scq;
	r->b.rcq = r->a.scq;
	r->init.cap.max_send_wr = depth;
	r->init.cap.max_recv_wr = depth;
	r->init.cap.max_send_sge = LAT_SGE;
	r->init.cap.max_recv_sge = LAT_SGE;
	/* 640 us: nobody gives up, and no time is spent on looking. */
	r->rnr_timer = 12;
	return l;
}

static void lat_process_start(struct kunit *test, struct lat_process *l)
{
	process_make_qp(test, l->process, l->r, &l->r->a, &l->a);
	process_make_qp(test, l->process, l->r, &l->r->b, &l->b);
	rig_connect(test, l->r);
}

/* Fills the send queue of the first end, with @len bytes in @num elements each. */
static void lat_process_fill_sends(struct kunit *test, struct lat_process *l, int num, u32 len)
{
	struct ib_sge sge[LAT_SGE];
	int i;

	lat_scatter(&l->r->a, sge, num, len);
	for (i = 0; i < l->depth; i++)
		KUNIT_ASSERT_TRUE(test, process_send(l->a.sq, i, sge, num));
}

static void lat_process_fill_receives(struct kunit *test, struct emu_uring *ring,
				      struct rig_end *e, int nr, int num, u32 len)
{
	struct ib_sge sge[LAT_SGE];
	int i;

	lat_scatter(e, sge, num, len);
	for (i = 0; i < nr; i++)
		KUNIT_ASSERT_TRUE(test, process_recv(ring, i, sge, num));
}

/* Does the process have @nr completions, each with @status? It polls when all are there. */
static bool lat_process_collect(struct lat_process *l, int nr, enum ib_wc_status status)
{
	struct ib_uverbs_wc wc;
	int i, bad = 0;

	if (!kvt_until(process_used(l->cq) == nr))
		return false;
	lat_end();
	for (i = 0; i < nr; i++)
		bad += !process_poll(l->cq, &wc) || wc.status != status;
	return !bad;
}

/* All that a process has posted, by one system call. */
static void one_doorbell(struct kunit *test, int num, u32 len)
{
	struct lat_process *l = lat_process_new(test, lat_scaled(LAT_RING));

	lat_process_start(test, l);
	lat_process_fill_receives(test, l->b.rq, &l->r->b, l->depth, num, len);
	lat_process_fill_sends(test, l, num, len);
	lat_begin();
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->a.qp));
	KUNIT_EXPECT_TRUE(test, lat_process_collect(l, 2 * l->depth, IB_WC_SUCCESS));
	lat_end();
}

static void doorbell_of_longest_ring(struct kunit *test)
{
	one_doorbell(test, 1, SZ_256);
}

static void doorbell_of_longest_scattered_ring(struct kunit *test)
{
	one_doorbell(test, LAT_SGE, SZ_256);
}

/* Entries that are wrong, each in the last of its elements; all but the first are flushed. */
static void doorbell_of_wrong_requests(struct kunit *test)
{
	struct lat_process *l = lat_process_new(test, lat_scaled(LAT_RING));
	struct ib_sge sge[LAT_SGE];
	struct ib_uverbs_wc wc;
	int i;

	lat_process_start(test, l);
	lat_scatter(&l->r->a, sge, LAT_SGE, SZ_256);
	sge[LAT_SGE - 1].lkey ^= 1;
	for (i = 0; i < l->depth; i++)
		KUNIT_ASSERT_TRUE(test, process_send(l->a.sq, i, sge, LAT_SGE));
	/* To be flushed, too. */
	lat_process_fill_receives(test, l->a.rq, &l->r->a, l->depth, LAT_SGE, SZ_256);
	lat_process_fill_receives(test, l->b.rq, &l->r->b, 1, 1, SZ_256);
	lat_begin();
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->a.qp));
	KUNIT_EXPECT_TRUE(test, kvt_until(process_used(l->cq) == 2 * l->depth));
	lat_end();
	KUNIT_EXPECT_TRUE(test, process_poll(l->cq, &wc));
	KUNIT_EXPECT_EQ(test, (u32)IB_WC_LOC_PROT_ERR, wc.status);
	KUNIT_EXPECT_TRUE(test, lat_process_collect(l, 2 * l->depth - 1, IB_WC_WR_FLUSH_ERR));
}

static void flush_of_longest_rings(struct kunit *test)
{
	struct lat_process *l = lat_process_new(test, lat_scaled(LAT_RING));

	lat_process_start(test, l);
	lat_process_fill_sends(test, l, LAT_SGE, SZ_256);
	/* The peer has no receives. */
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->a.qp));
	lat_process_fill_receives(test, l->a.rq, &l->r->a, l->depth, LAT_SGE, SZ_256);
	lat_begin();
	KUNIT_EXPECT_EQ(test, 0, kvt_qp_to_err(l->r->a.qp));
	KUNIT_EXPECT_TRUE(test, lat_process_collect(l, 2 * l->depth, IB_WC_WR_FLUSH_ERR));
	lat_end();
}

/* A message comes while the receives are moved to a new ring. */
static void resize_of_longest_srq(struct kunit *test)
{
	struct lat_process *l = lat_process_new(test, 1);
	int nr = lat_scaled(LAT_SRQ_RING), i;
	struct ib_srq_attr attr = { .max_wr = nr };
	struct emu_uring *ring;
	struct ib_srq *srq = process_srq(test, l->process, l->r->b.pd, nr, LAT_SGE, &ring);

	l->r->b.srq = srq;
	lat_process_start(test, l);
	lat_process_fill_receives(test, ring, &l->r->b, nr, LAT_SGE, SZ_256);
	lat_process_fill_sends(test, l, LAT_SGE, SZ_256);
	lat_begin();
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, 0, process_modify_srq(l->process, srq, &attr, IB_SRQ_MAX_WR,
							    &ring));
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->a.qp));
	KUNIT_EXPECT_TRUE(test, lat_process_collect(l, 2, IB_WC_SUCCESS));
	lat_end();
	KUNIT_EXPECT_EQ(test, nr - 1, process_used(ring));
	rig_destroy_qp(test, &l->r->b);
}

static int lat_resize_cq(struct lat_process *l, int cqe)
{
	const struct ib_device_ops *ops = &l->process->ibdev->ops;

	return ops->resize_cq(l->r->a.scq, cqe, &l->process->request.driver_udata);
}

/* With as many completions in it as a process can have not polled. */
static void resize_of_longest_cq(struct kunit *test)
{
	struct lat_process *l = lat_process_new(test, lat_scaled(LAT_RING));
	int i;

	lat_process_start(test, l);
	lat_process_fill_receives(test, l->b.rq, &l->r->b, l->depth, 1, SZ_256);
	lat_process_fill_sends(test, l, 1, SZ_256);
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(l->r->a.qp));
	KUNIT_ASSERT_TRUE(test, kvt_until(process_used(l->cq) == 2 * l->depth));
	lat_begin();
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, 0, lat_resize_cq(l, (2 + i % 2 * 2) * l->depth));
	lat_end();
}

/* --- a device that goes --- */

/* A client with many queue pairs on one device. */
struct lat_client {
	struct ib_client client;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp **qp;
	int nr;
};

static int lat_client_add(struct ib_device *ibdev)
{
	return strcmp(dev_name(&ibdev->dev), NAME) ? -EOPNOTSUPP : 0;
}

static void lat_client_remove(struct ib_device *ibdev, void *data)
{
	struct lat_client *c = data;

	while (c->nr)
		ib_destroy_qp(c->qp[--c->nr]);
	if (!IS_ERR_OR_NULL(c->cq))
		ib_destroy_cq(c->cq);
	if (!IS_ERR_OR_NULL(c->pd))
		ib_dealloc_pd(c->pd);
}

static void lat_client_end(void *arg)
{
	ib_unregister_client(arg);
}

/* It waits, with all that was posted, for an answer of the second end. */
static void lat_client_make_qp(struct kunit *test, struct lat_client *c, struct rig *r,
			       struct rig_end *e)
{
	struct ib_recv_wr recv = {};
	int i;

	e->qp = ib_create_qp(c->pd, &r->init);
	KUNIT_ASSERT_FALSE(test, IS_ERR(e->qp));
	c->qp[c->nr++] = e->qp;
	rig_connect_end(test, r, e, &r->b);
	for (i = 0; i < LAT_WORK; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_send(e, i, 0, 0));
		KUNIT_ASSERT_EQ(test, 0, ib_post_recv(e->qp, &recv, NULL));
	}
}

static void lat_client_fill(struct kunit *test, struct lat_client *c, int nr)
{
	struct ib_cq_init_attr attr = { .cqe = nr * LAT_WORK * 2 };
	struct rig *r = rig_alloc(test);
	struct ib_port_attr port = {};
	struct ib_device *ibdev = KVT_PTR(test, ib_device_get_by_name(NAME, RDMA_DRIVER_UNKNOWN));

	ib_device_put(ibdev);
	ib_set_client_data(ibdev, &c->client, c);
	c->qp = KVT_PTR(test, kunit_kcalloc(test, nr + 1, sizeof(*c->qp), GFP_KERNEL));
	c->pd = KVT_PTR(test, ib_alloc_pd(ibdev, 0));
	c->cq = KVT_PTR(test, ib_create_cq(ibdev, NULL, NULL, NULL, &attr));
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(ibdev, 1, &port));
	r->init.event_handler = NULL;
	r->init.send_cq = c->cq;
	r->init.recv_cq = c->cq;
	r->init.cap.max_send_wr = LAT_WORK;
	r->init.cap.max_recv_wr = LAT_WORK;
	/* 2.4 hours. */
	r->timeout = 31;
	r->a = (struct rig_end) {
		.ibdev = ibdev, .pd = c->pd, .port = 1, .gid_index = -1, .lid = port.lid,
	};
	r->b = r->a;
	/* The one that does not answer: none of the others' sends ends. */
	r->b.qp = KVT_PTR(test, ib_create_qp(c->pd, &r->init));
	c->qp[c->nr++] = r->b.qp;
	while (nr--)
		lat_client_make_qp(test, c, r, &r->a);
}

static void unplug_of_1000_qps(struct kunit *test)
{
	struct lat_client *c = kvt_zalloc(test, sizeof(*c));

	rig_device(test, NAME, 1, NULL);
	c->client = (struct ib_client) {
		.name = "kvt_latency", .add = lat_client_add, .remove = lat_client_remove,
	};
	KUNIT_ASSERT_EQ(test, 0, ib_register_client(&c->client));
	kvt_defer(test, lat_client_end, &c->client);
	lat_client_fill(test, c, lat_scaled(LAT_QPS));
	lat_begin();
	KUNIT_EXPECT_EQ(test, 0, kvt_write_file("/sys/kernel/config/kverbs_emu/" NAME "/enable",
						"0"));
	lat_end();
	KUNIT_EXPECT_EQ(test, 0, c->nr);
}

static struct kunit_case emu_latency_process_cases[] = {
	KUNIT_CASE(doorbell_of_longest_ring),
	KUNIT_CASE(doorbell_of_longest_scattered_ring),
	KUNIT_CASE(doorbell_of_wrong_requests),
	KUNIT_CASE(flush_of_longest_rings),
	KUNIT_CASE(resize_of_longest_srq),
	KUNIT_CASE(resize_of_longest_cq),
	KUNIT_CASE(unplug_of_1000_qps),
	{}
};
KVT_SUITE(emu_latency_process);
