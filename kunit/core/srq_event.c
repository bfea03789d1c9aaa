// SPDX-License-Identifier: GPL-2.0-only
/*
 * ib_srq_notify_event(), by which drivers report events of SRQs: the handler runs later, once
 * for each type of event that is pending, and never after the SRQ is destroyed.
 */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <kverbs/completion.h>

#include "lib/mock.h"
#include "lib/objects.h"

/* An SRQ and the events that its handler got. */
struct watched {
	struct ib_srq *srq;		/* the SRQ, NULL once it is destroyed */
	struct ib_device *ibdev;
	atomic_t calls;			/* calls of the handler */
	atomic_t events;		/* bit mask of the event types seen */
	int wrong;			/* events that do not name the SRQ and its device */
	struct completion called;	/* completed by each call of the handler */
	bool linger;			/* stay in the handler until the SRQ is being destroyed */
	struct completion entered;	/* completed in the handler if @linger is set */
	bool early;	/* destroy_srq() was called before the handler had returned */
};

/* Within this time a core that does not wait for the handler calls destroy_srq(). */
#define LINGER_US	2000

/* Runs in hard interrupt context, while the SRQ is being destroyed on another CPU. */
static void linger(struct watched *w)
{
	struct mock *m = mock_of(w->ibdev);
	unsigned int us;

	complete(&w->entered);
	kvt_spin_until(!READ_ONCE(w->srq->res.valid));
	for (us = 0; us < LINGER_US && !mock_calls(m, MOCK_destroy_srq); us++)
		udelay(1);
	w->early = mock_calls(m, MOCK_destroy_srq);
}

static void on_event(struct ib_event *event, void *context)
{
	struct watched *w = context;

	if (event->element.srq != w->srq || event->device != w->ibdev)
		w->wrong++;
	if (w->linger)
		linger(w);
	atomic_or(BIT(event->event), &w->events);
	atomic_inc(&w->calls);
	complete(&w->called);
}

static void watched_end(void *arg)
{
	struct watched *w = arg;

	if (w->srq)
		ib_destroy_srq(w->srq);
}

static struct watched *watched_up(struct kunit *test, struct mock *m)
{
	struct watched *w = kvt_zalloc(test, sizeof(*w));
	struct ib_srq_init_attr init = {
		.event_handler = on_event,
		.srq_context = w,
		.attr = { .max_wr = 8, .max_sge = 1 },
	};
	struct ib_srq *srq;

	init_completion(&w->called);
	init_completion(&w->entered);
	w->ibdev = m->ibdev;
	srq = KVT_PTR(test, ib_create_srq(kvt_pd(test, m->ibdev), &init));
	w->srq = srq;
	kvt_defer(test, watched_end, w);
	return w;
}

static void each_event_reaches_the_handler(struct kunit *test)
{
	static const enum ib_event_type events[] = {
		IB_EVENT_SRQ_LIMIT_REACHED, IB_EVENT_SRQ_ERR,
	};
	struct watched *w = watched_up(test, mock_up(test, "kvtm_a"));
	int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		atomic_set(&w->events, 0);
		ib_srq_notify_event(w->srq, events[i]);
		KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
		KUNIT_EXPECT_EQ(test, BIT(events[i]), atomic_read(&w->events));
		KUNIT_EXPECT_EQ(test, i + 1, atomic_read(&w->calls));
	}
	KUNIT_EXPECT_EQ(test, 0, w->wrong);
}

static void events_are_not_told_in_the_drivers_call(struct kunit *test)
{
	struct watched *w = watched_up(test, mock_up(test, "kvtm_a"));
	unsigned long flags;
	int calls;

	local_irq_save(flags);
	ib_srq_notify_event(w->srq, IB_EVENT_SRQ_LIMIT_REACHED);
	ib_srq_notify_event(w->srq, IB_EVENT_SRQ_LIMIT_REACHED);
	ib_srq_notify_event(w->srq, IB_EVENT_SRQ_ERR);
	calls = atomic_read(&w->calls);
	local_irq_restore(flags);
	KUNIT_EXPECT_EQ(test, 0, calls);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&w->called));
	/* The limit event was reported twice while it was pending: the handler gets one. */
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&w->calls));
	KUNIT_EXPECT_EQ(test, BIT(IB_EVENT_SRQ_LIMIT_REACHED) |
			      BIT(IB_EVENT_SRQ_ERR), atomic_read(&w->events));
}

static void what_is_no_event_of_an_srq_is_dropped(struct kunit *test)
{
	struct watched *w = watched_up(test, mock_up(test, "kvtm_a"));

	ib_srq_notify_event(w->srq, IB_EVENT_CQ_ERR);
	ib_srq_notify_event(w->srq, 40);
	ib_srq_notify_event(w->srq, -1);
	ib_srq_notify_event(w->srq, IB_EVENT_SRQ_ERR);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_srq_user(w->srq, NULL));
	w->srq = NULL;
	KUNIT_EXPECT_EQ(test, BIT(IB_EVENT_SRQ_ERR), atomic_read(&w->events));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->calls));
}

static void report_limit(void *arg)
{
	ib_srq_notify_event(arg, IB_EVENT_SRQ_LIMIT_REACHED);
}

static void events_come_from_any_context(struct kunit *test)
{
	struct watched *w = watched_up(test, mock_up(test, "kvtm_a"));

	kvt_run_in_hardirq(report_limit, w->srq);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&w->called));
	kvt_run_in_softirq(report_limit, w->srq);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&w->calls));
}

/* The mock's destroy_srq method, called by one that reports an event first. */
static int (*real_destroy_srq)(struct ib_srq *srq, struct ib_udata *udata);

static int report_and_destroy(struct ib_srq *srq, struct ib_udata *udata)
{
	ib_srq_notify_event(srq, IB_EVENT_SRQ_ERR);
	return real_destroy_srq(srq, udata);
}

static struct mock *mock_that_reports_late(struct kunit *test)
{
	struct mock *m = mock_new(test);

	real_destroy_srq = m->ops.destroy_srq;
	m->ops.destroy_srq = report_and_destroy;
	mock_start(test, m, "kvtm_a");
	return m;
}

static void nothing_is_told_of_a_destroyed_srq(struct kunit *test)
{
	struct mock *m = mock_that_reports_late(test);
	struct watched *w = watched_up(test, m);

	KUNIT_EXPECT_EQ(test, 0, ib_destroy_srq_user(w->srq, NULL));
	w->srq = NULL;
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->calls));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->live[MOCK_SRQ]));
}

static void srq_that_the_driver_keeps_has_its_events(struct kunit *test)
{
	struct mock *m = mock_that_reports_late(test);
	struct watched *w = watched_up(test, m);

	mock_fail(m, MOCK_destroy_srq, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_destroy_srq_user(w->srq, NULL));
	mock_fail_none(m);
	/* The event that destroy_srq() reported is delivered, and so are later ones. */
	KUNIT_EXPECT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, BIT(IB_EVENT_SRQ_ERR), atomic_read(&w->events));
	ib_srq_notify_event(w->srq, IB_EVENT_SRQ_LIMIT_REACHED);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&w->calls));
}

static int report_fn(void *arg)
{
	report_limit(arg);
	return 0;
}

static int destroy_fn(void *arg)
{
	struct watched *w = arg;

	return ib_destroy_srq_user(w->srq, NULL);
}

static void destroy_waits_for_the_handler(struct kunit *test)
{
	struct kvt_thread *reporter, *destroyer;
	struct watched *w;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	w = watched_up(test, mock_up(test, "kvtm_a"));
	w->linger = true;
	destroyer = kvt_thread_new(test, 0, destroy_fn, w);
	reporter = kvt_thread_start(test, kvt_other_cpu(), report_fn, w->srq);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&w->entered));
	kvt_thread_go(destroyer);
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(destroyer));
	w->srq = NULL;
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->calls));
	KUNIT_EXPECT_FALSE(test, w->early);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(reporter));
}

static void srq_without_a_handler_is_fine(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = 8, .max_sge = 1 },
	};
	struct ib_srq *srq = KVT_PTR(test, ib_create_srq(kvt_pd(test, m->ibdev), &init));

	ib_srq_notify_event(srq, IB_EVENT_SRQ_LIMIT_REACHED);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_srq_user(srq, NULL));
}

static struct kunit_case core_srq_event_cases[] = {
	KUNIT_CASE(each_event_reaches_the_handler),
	KUNIT_CASE(events_are_not_told_in_the_drivers_call),
	KUNIT_CASE(what_is_no_event_of_an_srq_is_dropped),
	KUNIT_CASE(events_come_from_any_context),
	KUNIT_CASE(nothing_is_told_of_a_destroyed_srq),
	KUNIT_CASE(srq_that_the_driver_keeps_has_its_events),
	KUNIT_CASE(destroy_waits_for_the_handler),
	KUNIT_CASE(srq_without_a_handler_is_fine),
	{}
};
KVT_SUITE(core_srq_event);
