// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread stands still where it reports on, polls or arms a CQ, or creates one for the
 * pool, while others do so more often than a counter of few bits can count. See
 * kverbs/delay.h.
 */
#include <linux/sizes.h>
#include <kverbs/completion.h>
#include <kverbs/delay.h>

#include "../cq/cq.h"
#include "cq/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

#define OTHERS		(SZ_64K + 1)

/* --- reports of a driver ------------------------------------------------------- */

/* A driver that reports events of a QP. */
struct reporter {
	struct ib_qp *qp;	/* the QP, with an SRQ */
	atomic_t last;		/* calls of its handler for the last WQE */
	atomic_t fatal;		/* calls of its handler for another event */
	int ret;		/* result of the reset */
};

static void qp_event(struct ib_event *event, void *context)
{
	struct reporter *r = context;

	if (event->event == IB_EVENT_QP_LAST_WQE_REACHED)
		atomic_inc(&r->last);
	else
		atomic_inc(&r->fatal);
}

/*
 * Other CPUs of the driver report, too, but only the one that stands still would queue the
 * irq_work. So the consumer's reset, which waits for the event, has to queue it.
 */
static void others_report_and_reset(void *arg)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct reporter *r = arg;
	u32 i;

	for (i = 0; i < OTHERS; i++) {
		ib_qp_notify_event(r->qp, IB_EVENT_QP_LAST_WQE_REACHED);
		ib_qp_notify_event(r->qp, IB_EVENT_QP_FATAL);
	}
	r->ret = ib_modify_qp(r->qp, &attr, IB_QP_STATE);
}

static void report_that_is_late_is_told_once(struct kunit *test)
{
	struct ib_srq_init_attr srq_init = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct mock *m = mock_up(test, "kvtm_s");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_cq *cq = kvt_cq(test, m->ibdev, 16, IB_POLL_SOFTIRQ);
	struct reporter r = {};
	struct ib_qp_init_attr init;
	struct ib_srq *srq = KVT_OWN(test, ib_create_srq(pd, &srq_init), kvt_end_srq);

	kvt_qp_init(&init, cq, cq);
	init.srq = srq;
	init.event_handler = qp_event;
	init.qp_context = &r;
	r.qp = kvt_qp(test, pd, &init);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(r.qp, 1));
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(r.qp));

	kverbs_delay_set("ib_notify_raise", others_report_and_reset, &r);
	ib_qp_notify_event(r.qp, IB_EVENT_QP_LAST_WQE_REACHED);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, r.ret);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.last));
	/* By the end of the QP, every report has been delivered or dropped. */
	kvt_qp_put(test, r.qp);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.last));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.fatal));
}

/* --- the count of errors -------------------------------------------------------- */

static void cq_that_has_failed_does_not_recover(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_s");
	struct ib_cq *cq, *other;

	cq = KVT_PTR(test, ib_cq_pool_get(m->ibdev, 1, 0, IB_POLL_WORKQUEUE));
	/* As after the errors of some minutes of an overrun. */
	atomic_set(&cq->stats.errors, -1);
	ib_cq_notify_event(cq, IB_EVENT_CQ_ERR);
	other = ib_cq_pool_get(m->ibdev, 1, 0, IB_POLL_WORKQUEUE);
	KUNIT_EXPECT_EQ(test, 0, PTR_ERR_OR_ZERO(other));
	KUNIT_EXPECT_PTR_NE(test, cq, other);
	if (!IS_ERR(other))
		ib_cq_pool_put(other, 1);
	ib_cq_pool_put(cq, 1);
}

/* --- IB_POLL_DIRECT --------------------------------------------------------------- */

/* A thread that drains a QP, and what others do meanwhile. */
struct drainer {
	struct recorder *rec;	/* the CQ */
	struct item *item;	/* a completion that arrives */
	u32 polled;		/* completions that others have handled */
};

/*
 * It has found the CQ empty, and not armed it yet. A completion arrives without a
 * notification; others may not poll, because it owns the CQ.
 */
static void completion_arrives(void *arg)
{
	struct drainer *d = arg;
	u32 i;

	while (!mock_cq_pending(d->rec->cq))
		schedule();
	for (i = 0; i < OTHERS; i++)
		d->polled += ib_process_cq_direct(d->rec->cq, -1);
}

static void drain_that_arms_late_sees_its_completion(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_s");
	struct recorder *rec = recorder_up(test, m, IB_POLL_DIRECT, 0);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_qp *qp = cq_rig_qp(test, pd, rec->cq, rec->cq, NULL);
	struct drainer d = { .rec = rec };
	struct mock_cq_counts counts;

	/* Late enough that the first poll finds nothing. */
	m->flush_ns = 20 * NSEC_PER_MSEC;
	kverbs_delay_set("ib_cq_direct_arm", completion_arrives, &d);
	ib_drain_sq(qp);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, d.polled);
	mock_cq_count(rec->cq, &counts);
	KUNIT_EXPECT_EQ(test, 1, counts.missed);
	KUNIT_EXPECT_EQ(test, 0, mock_cq_pending(rec->cq));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

/*
 * The waiter that it is about to wake has been served by others, many times. It may have the CQ,
 * too: it looks once more before it sleeps.
 */
static void others_have_the_cq(void *arg)
{
	struct drainer *d = arg;
	u32 i;

	for (i = 0; i < OTHERS; i++) {
		item_init(d->item, d->rec, 0, i + 1);
		item_push(d->item);
		if (!kvt_until(ib_process_cq_direct(d->rec->cq, -1) ||
			       atomic_read(&d->rec->seen) == i + 2))
			return;
		d->polled++;
		if (!(i % SZ_1K))
			ib_cq_flush(d->rec->cq);
	}
}

/* A done() of the thread that has the CQ; another thread begins to wait for it. */
static void waiter_comes(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct kvt_thread *waiter = rec->arg;

	rec->on_done = NULL;
	kvt_thread_go(waiter);
	while (!(atomic_read(&cq->state) & IB_CQ_WAIT))
		schedule();
}

static int flush_fn(void *arg)
{
	struct recorder *rec = arg;

	return ib_cq_flush(rec->cq);
}

static void poller_that_wakes_late_has_let_go(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_s");
	struct recorder *rec = recorder_up(test, m, IB_POLL_DIRECT, 0);
	struct drainer d = { .rec = rec, .item = items_new(test, rec, 1) };

	recorder_expect_calls(rec, OTHERS + 1, waiter_comes,
			      kvt_thread_new(test, -1, flush_fn, rec));
	KUNIT_EXPECT_TRUE(test, item_push(d.item));
	kverbs_delay_set("ib_cq_direct_release", others_have_the_cq, &d);
	KUNIT_EXPECT_EQ(test, 1, ib_process_cq_direct(rec->cq, -1));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, OTHERS, d.polled);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(rec->arg));
	recorder_expect_clean(test, rec);
}

/* --- the pool ----------------------------------------------------------------------- */

/* What others do with the pool while a thread makes a CQ for it. */
struct pool_life {
	struct mock *m;	/* the device */
	u32 failed;	/* CQs that they did not get */
	u32 made;	/* CQs that the driver had made by then */
};

static void others_use_the_pool(void *arg)
{
	struct pool_life *l = arg;
	struct ib_cq *cq;
	u32 i;

	l->made = mock_calls(l->m, MOCK_create_cq);
	for (i = 0; i < OTHERS; i++) {
		cq = ib_cq_pool_get(l->m->ibdev, MOCK_MAX_CQE, 0, IB_POLL_WORKQUEUE);
		if (IS_ERR(cq)) {
			l->failed++;
			break;
		}
		ib_cq_pool_put(cq, MOCK_MAX_CQE);
	}
}

static void cq_that_is_made_late_joins_the_pool(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_s");
	struct pool_life l = { .m = m };
	struct ib_cq *cq, *again;

	kverbs_delay_set("ib_cq_pool_grow", others_use_the_pool, &l);
	cq = ib_cq_pool_get(m->ibdev, 7, 0, IB_POLL_WORKQUEUE);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(cq));
	KUNIT_EXPECT_EQ(test, 0, l.failed);
	/* Nobody got the CQ that was not in the pool yet: they created another, once. */
	KUNIT_EXPECT_EQ(test, 1, l.made);
	KUNIT_EXPECT_EQ(test, 2, mock_calls(m, MOCK_create_cq));
	KUNIT_EXPECT_EQ(test, 7, cq->cqe_used);
	again = KVT_PTR(test, ib_cq_pool_get(m->ibdev, MOCK_MAX_CQE - 7, 0, IB_POLL_WORKQUEUE));
	KUNIT_EXPECT_EQ(test, 2, mock_calls(m, MOCK_create_cq));
	ib_cq_pool_put(again, MOCK_MAX_CQE - 7);
	ib_cq_pool_put(cq, 7);
	KUNIT_EXPECT_EQ(test, 0, cq->cqe_used);
}

static struct kunit_case cq_standstill_cases[] = {
	KUNIT_CASE(report_that_is_late_is_told_once),
	KUNIT_CASE(cq_that_has_failed_does_not_recover),
	KUNIT_CASE(drain_that_arms_late_sees_its_completion),
	KUNIT_CASE(poller_that_wakes_late_has_let_go),
	KUNIT_CASE(cq_that_is_made_late_joins_the_pool),
	{}
};
KVT_SUITE(cq_standstill);
