// SPDX-License-Identifier: GPL-2.0-only
/*
 * CQs of the software HCA with queue pairs: what an overrun does to both, moderation
 * under traffic, and the CQ pool.
 */
#include <linux/irq_work.h>

#include "emu/rig.h"
#include "../drivers/emu/queue/cq.h"
#include "lib/objects.h"

#define SMALL		4

/* A CQ with few entries. */
struct small {
	struct ib_cq *cq;	/* the CQ */
	atomic_t events;	/* number of its IB_EVENT_CQ_ERR events */
};

static void small_event(struct ib_event *event, void *context)
{
	struct small *s = context;

	if (event->event == IB_EVENT_CQ_ERR)
		atomic_inc(&s->events);
}

static struct small *small_cq(struct kunit *test, struct ib_device *ibdev)
{
	struct ib_cq_init_attr attr = { .cqe = SMALL };
	struct small *s = kvt_zalloc(test, sizeof(*s));

	s->cq = KVT_OWN(test, ib_create_cq(ibdev, NULL, small_event, s, &attr), kvt_end_cq);
	return s;
}

static int small_lost(struct small *s)
{
	return atomic_read(&to_ecq(s->cq)->lost);
}

/* Waits until the CQ has lost this many completions. */
static bool small_loses(struct small *s, int want)
{
	return kvt_until(small_lost(s) >= want) && small_lost(s) == want;
}

/* The CQ and the QP have each raised one event, and the QP is in the error state. */
static void expect_told_once(struct kunit *test, struct small *s, struct rig_end *e)
{
	KUNIT_ASSERT_TRUE(test, kvt_wait(&e->got_event));
	irq_work_sync(&e->qp->notify.work);
	irq_work_sync(&s->cq->notify.work);
	KUNIT_EXPECT_STREQ(test, ib_event_msg(IB_EVENT_QP_FATAL), ib_event_msg(e->event));
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&e->got_event));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(e->qp));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->events));
}

static u64 lost_by_port(const char *dev)
{
	char path[80], text[24];
	u64 n;

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/1/hw_counters/%s", dev,
		 "lost_completions");
	if (kvt_read_file(path, text, sizeof(text)) <= 0 || kstrtou64(text, 0, &n))
		return U64_MAX;
	return n;
}

/* Waits, because sysfs may show cached values. */
static bool lost_by_port_becomes(const char *dev, u64 want)
{
	return kvt_until(lost_by_port(dev) == want);
}

/* The receive queue of the second end holds RIG_WR requests, but its CQ only SMALL. */
static struct rig *rig_small(struct kunit *test, struct small **s)
{
	struct rig *r = rig_new(test, "emu0", "emu1");

	if (!*s)
		*s = small_cq(test, r->b.ibdev);
	r->b.rcq = (*s)->cq;
	rig_start(test, r);
	return r;
}

static void send_until_overrun(struct kunit *test, struct rig *r, int room)
{
	struct ib_wc wc;
	int i;

	rig_recv_many(test, &r->b, 0, RIG_WR, 8);
	for (i = 0; i < room; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, 8));
		RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_SUCCESS);
	}
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 99, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 99, IB_WC_REM_OP_ERR);
}

static void c13_overrun_by_receives_counts_every_loss(struct kunit *test)
{
	u64 before = lost_by_port("emu1");
	struct small *s = NULL;
	struct rig *r = rig_small(test, &s);

	send_until_overrun(test, r, SMALL);
	/* All receives without room in the CQ are counted as lost, flushed ones included. */
	KUNIT_EXPECT_TRUE(test, small_loses(s, RIG_WR - SMALL));
	expect_told_once(test, s, &r->b);
	rig_expect_wcs(test, s->cq, 0, SMALL, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(s->cq));
	KUNIT_EXPECT_TRUE(test, lost_by_port_becomes("emu1", before + RIG_WR - SMALL));
}

static void c13_overrun_ends_the_queue_pairs_that_complete(struct kunit *test)
{
	struct small *s = NULL;
	struct rig *r = rig_small(test, &s);
	struct rig *other = rig_small(test, &s);

	send_until_overrun(test, r, SMALL);
	KUNIT_EXPECT_TRUE(test, small_loses(s, RIG_WR - SMALL));
	/* The other QP has lost no completion yet. */
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(other->b.qp));
	send_until_overrun(test, other, 0);
	KUNIT_EXPECT_TRUE(test, small_loses(s, 2 * RIG_WR - SMALL));
	expect_told_once(test, s, &r->b);
	expect_told_once(test, s, &other->b);
}

static void c13_overrun_by_sends_ends_the_sender(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct small *s = small_cq(test, r->a.ibdev);

	r->a.scq = s->cq;
	rig_start(test, r);
	rig_recv_many(test, &r->b, 0, RIG_WR, 8);
	rig_send_many(test, &r->a, 0, RIG_WR, 8);
	KUNIT_EXPECT_TRUE(test, small_loses(s, RIG_WR - SMALL));
	expect_told_once(test, s, &r->a);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
}

static void c13_flush_that_finds_no_room_is_told(struct kunit *test)
{
	struct small *s = NULL;
	struct rig *r = rig_small(test, &s);

	rig_recv_many(test, &r->b, 0, RIG_WR, 8);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
	KUNIT_EXPECT_TRUE(test, small_loses(s, RIG_WR - SMALL));
	expect_told_once(test, s, &r->b);
}

static void queue_pair_is_told_again_after_a_reset(struct kunit *test)
{
	struct small *s = NULL;
	struct rig *r = rig_small(test, &s);

	send_until_overrun(test, r, SMALL);
	KUNIT_EXPECT_TRUE(test, small_loses(s, RIG_WR - SMALL));
	expect_told_once(test, s, &r->b);
	rig_reconnect(test, r);
	send_until_overrun(test, r, 0);
	KUNIT_EXPECT_TRUE(test, small_loses(s, 2 * RIG_WR - SMALL));
	expect_told_once(test, s, &r->b);
}

static void traffic_is_moderated(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_wc wc;
	int i;

	KUNIT_EXPECT_EQ(test, -EINVAL, rdma_set_cq_moderation(r->b.rcq, U16_MAX, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, rdma_set_cq_moderation(r->b.rcq, 0, U16_MAX));
	KUNIT_ASSERT_EQ(test, 0, rdma_set_cq_moderation(r->b.rcq, SMALL, 0));
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP));
	for (i = 0; i < SMALL; i++) {
		irq_work_sync(&r->b.rcq->notify.work);
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->b.called));
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, 0, 8));
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, 8));
		RIG_EXPECT_WC(test, r->b.rcq, &wc, i, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_TRUE(test, kvt_wait(&r->b.got_call));
	/* Moderation does not delay the notification of a flush. */
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 0, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&r->b.got_call));
	irq_work_sync(&r->b.rcq->notify.work);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&r->b.called));
}

static void expect_pool_size(struct kunit *test, struct ib_device *ibdev, unsigned int nr, int cqe)
{
	struct ib_cq *cq = KVT_PTR(test, ib_cq_pool_get(ibdev, nr, 0, IB_POLL_UNBOUND_WORKQUEUE));

	KUNIT_EXPECT_EQ(test, cqe, cq->cqe);
	ib_cq_pool_put(cq, nr);
}

static void pool_makes_cqs_for_several(struct kunit *test)
{
	struct ib_device *ibdev = rig_new(test, "emu0", "emu0")->a.ibdev;
	struct ib_cq *cq;

	expect_pool_size(test, ibdev, 100, 4096);
	expect_pool_size(test, ibdev, 5000, 8192);
	expect_pool_size(test, ibdev, EMU_MAX_CQE, EMU_MAX_CQE);
	cq = ib_cq_pool_get(ibdev, EMU_MAX_CQE + 1, 0, IB_POLL_UNBOUND_WORKQUEUE);
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(cq));
}

static struct kunit_case emu_cq_cases[] = {
	KUNIT_CASE(c13_overrun_by_receives_counts_every_loss),
	KUNIT_CASE(c13_overrun_ends_the_queue_pairs_that_complete),
	KUNIT_CASE(c13_overrun_by_sends_ends_the_sender),
	KUNIT_CASE(c13_flush_that_finds_no_room_is_told),
	KUNIT_CASE(queue_pair_is_told_again_after_a_reset),
	KUNIT_CASE(traffic_is_moderated),
	KUNIT_CASE(pool_makes_cqs_for_several),
	{}
};
KVT_SUITE(emu_cq);
