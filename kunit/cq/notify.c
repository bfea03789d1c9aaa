// SPDX-License-Identifier: GPL-2.0-only
/*
 * ib_cq_notify(), by which drivers report completions of ib_create_cq() CQs: the
 * completion handler runs after the driver's call, never concurrently with itself, and
 * not after ib_destroy_cq(). Also ib_cq_notify_event().
 */
#include <linux/irqflags.h>
#include <kverbs/completion.h>

#include "lib/mock.h"

#define CQ_SIZE		64
#define NOTIFIES	100000

/* A CQ whose completion and event handlers are watched. */
struct watcher {
	struct ib_cq *cq;		/* the CQ */
	atomic_t calls;			/* calls of the completion handler that have ended */
	atomic_t inside;		/* calls of the completion handler that are running */
	int concurrent;			/* calls that began while another one was running */
	atomic_t polled;		/* completions polled in the handler */
	bool poll;	/* the handler polls all completions, and arms the CQ again */
	struct completion called;	/* completed at the end of each call */
	atomic_t events;		/* calls of the event handler */
	enum ib_event_type event;	/* the last event */
	struct completion got_event;	/* completed by each event */
	void (*on_call)(struct watcher *w);	/* called in the completion handler; may be NULL */
	void *arg;			/* for @on_call */
};

static void poll_and_arm(struct watcher *w, struct ib_cq *cq)
{
	struct ib_wc wc;

	do {
		while (ib_poll_cq(cq, 1, &wc) > 0)
			atomic_inc(&w->polled);
	} while (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static void handler(struct ib_cq *cq, void *context)
{
	struct watcher *w = context;

	if (atomic_inc_return(&w->inside) != 1)
		w->concurrent++;
	if (w->on_call)
		w->on_call(w);
	if (w->poll)
		poll_and_arm(w, cq);
	atomic_dec(&w->inside);
	atomic_inc(&w->calls);
	complete(&w->called);
}

static void event_handler(struct ib_event *event, void *context)
{
	struct watcher *w = context;

	w->event = event->event;
	atomic_inc(&w->events);
	complete(&w->got_event);
}

static void watcher_end(void *arg)
{
	struct watcher *w = arg;

	if (w->cq)
		ib_destroy_cq(w->cq);
}

static struct watcher *watcher_up(struct kunit *test, struct mock *m)
{
	struct ib_cq_init_attr attr = { .cqe = CQ_SIZE };
	struct watcher *w = kvt_zalloc(test, sizeof(*w));
	struct ib_cq *cq;

	init_completion(&w->called);
	init_completion(&w->got_event);
	cq = KVT_PTR(test, ib_create_cq(m->ibdev, handler, event_handler, w, &attr));
	w->cq = cq;
	kvt_defer(test, watcher_end, w);
	return w;
}

static bool push(struct ib_cq *cq)
{
	struct ib_wc wc = { .status = IB_WC_SUCCESS };

	return mock_cq_push(cq, &wc, false);
}

static void push_arg(void *arg)
{
	push(arg);
}

static void c8_handler_is_called_once_for_each_arm(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct watcher *w = watcher_up(test, m);

	push(w->cq);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->calls));
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(w->cq, IB_CQ_NEXT_COMP));
	push(w->cq);
	push(w->cq);
	push(w->cq);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->calls));
	KUNIT_ASSERT_EQ(test, 0, ib_req_notify_cq(w->cq, IB_CQ_NEXT_COMP));
	push(w->cq);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&w->calls));
	KUNIT_EXPECT_FALSE(test, try_wait_for_completion(&w->called));
}

static void c11_handler_is_not_called_in_the_drivers_call(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct watcher *w = watcher_up(test, m);
	int calls;

	ib_req_notify_cq(w->cq, IB_CQ_NEXT_COMP);
	/* With interrupts off, only a direct call could get through. */
	local_irq_disable();
	push(w->cq);
	calls = atomic_read(&w->calls) + atomic_read(&w->inside);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, 0, calls);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->calls));
}

static void notify_works_in_interrupts(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct watcher *w = watcher_up(test, m);

	ib_req_notify_cq(w->cq, IB_CQ_NEXT_COMP);
	kvt_run_in_hardirq(push_arg, w->cq);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
	ib_req_notify_cq(w->cq, IB_CQ_NEXT_COMP);
	kvt_run_in_softirq(push_arg, w->cq);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&w->calls));
}

static void c10_handler_may_poll_and_arm(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct watcher *w = watcher_up(test, m);
	int i;

	w->poll = true;
	ib_req_notify_cq(w->cq, IB_CQ_NEXT_COMP);
	for (i = 1; i <= 10; i++) {
		push(w->cq);
		while (atomic_read(&w->polled) < i)
			KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
		KUNIT_EXPECT_EQ(test, 0, mock_cq_pending(w->cq));
	}
	KUNIT_EXPECT_EQ(test, 0, w->concurrent);
}

struct ringer {
	struct watcher *w;
	u64 count;
	int pushed;
};

/* Notifies whether or not the CQ is armed, as a driver with races may. */
static int ringer_fn(void *arg)
{
	struct ringer *r = arg;
	u64 i;

	for (i = 0; i < r->count; i++) {
		r->pushed += push(r->w->cq);
		ib_cq_notify(r->w->cq);
		if (!(i % 64))
			cond_resched();
	}
	return 0;
}

static void c12_handler_is_never_concurrent(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct watcher *w = watcher_up(test, m);
	u64 count = kvt_count(NOTIFIES);
	struct kvt_thread *t[2];
	struct ringer r[2] = {};
	int i;

	kvt_print_length(test, "notifications from each of two CPUs", count);
	w->poll = true;
	ib_req_notify_cq(w->cq, IB_CQ_NEXT_COMP);
	for (i = 0; i < 2; i++) {
		r[i].w = w;
		r[i].count = count;
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, ringer_fn, &r[i]);
	}
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t[i]));
	while (atomic_read(&w->polled) < r[0].pushed + r[1].pushed)
		KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, 0, w->concurrent);
	KUNIT_EXPECT_EQ(test, r[0].pushed + r[1].pushed, atomic_read(&w->polled));
}

/* A notification while the handler runs makes it run once more afterwards. */
static void notify_in_handler(struct watcher *w)
{
	if (atomic_read(&w->calls) < 3)
		ib_cq_notify(w->cq);
}

static void notify_within_the_handler_calls_it_again(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct watcher *w = watcher_up(test, m);
	int i;

	w->on_call = notify_in_handler;
	ib_cq_notify(w->cq);
	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_TRUE(test, kvt_wait(&w->called));
	KUNIT_EXPECT_EQ(test, 4, atomic_read(&w->calls));
	KUNIT_EXPECT_EQ(test, 0, w->concurrent);
}

static void stay_inside(struct watcher *w)
{
	kvt_gate_pass(w->arg);
}

static int notify_fn(void *arg)
{
	ib_cq_notify(arg);
	return 0;
}

static int destroy_fn(void *arg)
{
	struct watcher *w = arg;

	ib_destroy_cq(w->cq);
	w->cq = NULL;
	return 0;
}

static void destroy_waits_for_the_handler(struct kunit *test)
{
	struct kvt_thread *notifier, *destroyer;
	struct kvt_gate g;
	struct watcher *w;
	struct mock *m;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	kvt_gate_init(&g);
	m = mock_up(test, "kvtm_a");
	w = watcher_up(test, m);
	w->on_call = stay_inside;
	w->arg = &g;
	destroyer = kvt_thread_new(test, 0, destroy_fn, w);
	notifier = kvt_thread_start(test, kvt_other_cpu(), notify_fn, w->cq);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&g.entered));
	kvt_thread_go(destroyer);
	/* Not kvt_thread_waits(): the destroyer may spin on this CPU, the only free one. */
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(destroyer));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_destroy_cq));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->calls));
	kvt_gate_open(&g);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(destroyer));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->calls));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(notifier));
	KUNIT_EXPECT_TRUE(test, g.in_time);
	MOCK_EXPECT_IDLE(test, m);
}

static void cq_without_a_handler_is_fine(struct kunit *test)
{
	struct ib_cq_init_attr attr = { .cqe = CQ_SIZE };
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq = KVT_PTR(test, ib_create_cq(m->ibdev, NULL, NULL, NULL, &attr));

	ib_req_notify_cq(cq, IB_CQ_NEXT_COMP);
	push(cq);
	ib_cq_notify_event(cq, IB_EVENT_CQ_ERR);
	ib_destroy_cq(cq);
	MOCK_EXPECT_IDLE(test, m);
}

static void cq_event_reaches_its_handler(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct watcher *w = watcher_up(test, m);

	ib_cq_notify_event(w->cq, IB_EVENT_CQ_ERR);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&w->got_event));
	KUNIT_EXPECT_EQ(test, IB_EVENT_CQ_ERR, w->event);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->events));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->calls));
}

static void what_is_no_event_of_a_cq_is_dropped(struct kunit *test)
{
	struct watcher *w = watcher_up(test, mock_up(test, "kvtm_a"));

	ib_cq_notify_event(w->cq, IB_EVENT_PORT_ERR);
	ib_cq_notify_event(w->cq, 40);
	ib_cq_notify_event(w->cq, -1);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->cq->stats.errors));
	/* If one of those were delivered, it would be before this one, or together with it. */
	ib_cq_notify_event(w->cq, IB_EVENT_CQ_ERR);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&w->got_event));
	ib_destroy_cq(w->cq);
	w->cq = NULL;
	KUNIT_EXPECT_EQ(test, IB_EVENT_CQ_ERR, w->event);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->events));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->calls));
}

static struct kunit_case cq_notify_cases[] = {
	KUNIT_CASE(c8_handler_is_called_once_for_each_arm),
	KUNIT_CASE(c11_handler_is_not_called_in_the_drivers_call),
	KUNIT_CASE(notify_works_in_interrupts),
	KUNIT_CASE(c10_handler_may_poll_and_arm),
	KUNIT_CASE(c12_handler_is_never_concurrent),
	KUNIT_CASE(notify_within_the_handler_calls_it_again),
	KUNIT_CASE(destroy_waits_for_the_handler),
	KUNIT_CASE(cq_without_a_handler_is_fine),
	KUNIT_CASE(cq_event_reaches_its_handler),
	KUNIT_CASE(what_is_no_event_of_a_cq_is_dropped),
	{}
};
KVT_SUITE(cq_notify);
