// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events dispatched from hard interrupts on two CPUs while event handlers are registered
 * and unregistered: no event is lost, duplicated or reordered, and none reaches a handler
 * that was unregistered.
 *
 * The core does not act on DEVICE_FATAL and passes on the event's element unchanged, so
 * these events carry the number of their source and a sequence number there. Port events,
 * for which the core reads the port's tables again, are mixed in and only counted.
 *
 * The core may merge events if it cannot allocate memory, so each source stops while AHEAD
 * of its events are pending.
 *
 * Locking: the timer of a source writes its @sent and @ports; the timer of the first source
 * writes @pause. A listener's counters are written by its handler, and the core calls one
 * handler at a time. The thread that unregisters a listener reads its counters after that;
 * those of &stress.all are also read while events are delivered.
 */
#include <linux/hrtimer.h>
#include <linux/wait.h>

#include "lib/mock.h"

/* Ten million events in a full run, split into rounds so that no case takes too long. */
#define ROUNDS		10
#define ROUND_EVENTS	1000000ULL

/* With KASAN or KCSAN an event takes longer: send fewer of them, at a lower rate. */
#define DEBUG_SHARE	(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ? 10 : 1)

/* Timers that dispatch, and threads that register handlers: on CPU 0 and another in turn. */
#define SOURCES		2
#define CHURNERS	4

/* Limits of a timer: events dispatched in one burst, and events not handled yet. */
#define BURST		128
#define AHEAD		1024

/* Average time between two bursts; longer if the timer had to wait for the handlers. */
#define TIMER_NS	(50 * NSEC_PER_USEC * DEBUG_SHARE)
#define HELD_NS		(4 * TIMER_NS)

/*
 * After one in PAUSE bursts of the first timer, both timers pause until all events are
 * handled, so that no later event can hide a wake-up that was lost.
 */
#define PAUSE		4

/* One in PORT_PART events is a port event. */
#define PORT_PART	64

/* A churner unregisters its handler after 1 to STAY events; more may come until then. */
#define STAY		256

/* The bits of port_num above this shift are the source, the others the event's number. */
#define SOURCE_SHIFT	30
#define NUMBER_MASK	(BIT(SOURCE_SHIFT) - 1)

struct stress;

/* An event handler. */
struct listener {
	struct ib_event_handler handler;	/* the handler registered with the core */
	struct stress *s;	/* the running case */
	bool listening;		/* the handler is not unregistered yet */
	u32 heard;		/* events received */
	u32 stay;		/* number of events that the registering thread waits for */
	u32 ports;		/* port events received */
	u32 first[SOURCES];	/* by source, the number of the first event received */
	/* By source, the number after that of the last event; 0 if there was none. */
	u32 next[SOURCES];
	u32 wrong;		/* events out of sequence */
	u32 late;	/* calls of the handler that were still running after it was unregistered */
};

/* A timer that dispatches events. */
struct source {
	struct stress *s;	/* the running case */
	u32 id;			/* number of the source */
	u32 rng;		/* state of the random number generator */
	u64 left;		/* events still to be dispatched */
	u32 sent;		/* numbered events, counted before they are dispatched */
	u32 ports;		/* port events, counted likewise */
	struct hrtimer timer;	/* expires in hard interrupt context */
	struct completion done;	/* completed when @left is 0, or after &stress.stop was set */
};

/* A thread that registers and unregisters handlers. */
struct churner {
	struct stress *s;	/* the running case */
	u32 rng;	/* state of the random number generator */
	/* A listener that is reused and not freed, so that late calls can be counted in it. */
	struct listener slot;
	u32 turns;	/* handlers registered and unregistered */
	u64 heard;	/* events that they received */
	u32 wrong;	/* events that they received out of sequence */
	u32 late;	/* calls that were still running after their handler was unregistered */
	u32 missed;	/* handlers that missed an event delivered while they were registered */
};

/* State of a running case. */
struct stress {
	struct mock *m;	/* the device */
	u64 count;	/* events to dispatch */
	struct listener all;	/* a listener that stays registered and receives all events */
	struct source src[SOURCES];	/* the timers that dispatch */
	/* The threads that register and unregister handlers. */
	struct churner churner[CHURNERS];
	/* Woken when a listener has received the events waited for, and when @stop is set. */
	wait_queue_head_t moved;
	struct completion began;	/* completed by each churner that has its first handler */
	bool pause;	/* no event is dispatched until all those before have been handled */
	int stop;	/* timers and threads are to end */
};

static void hear_number(struct listener *l, u32 id, u32 number)
{
	if (!l->next[id])
		l->first[id] = number;
	else if (l->next[id] != number)
		l->wrong++;
	/* Read concurrently, for s->all, by too_far_ahead() and span_end(). */
	WRITE_ONCE(l->next[id], number + 1);
}

static void listen(struct ib_event_handler *handler, struct ib_event *event)
{
	struct listener *l = container_of(handler, struct listener, handler);
	u32 port = event->element.port_num;

	if (event->event == IB_EVENT_DEVICE_FATAL)
		hear_number(l, port >> SOURCE_SHIFT, port & NUMBER_MASK);
	else
		l->ports++;
	WRITE_ONCE(l->heard, l->heard + 1);
	if (l->heard == l->stay)
		wake_up_all(&l->s->moved);
	/* Checked last: unregistration must not return before the handler does. */
	if (!READ_ONCE(l->listening))
		l->late++;
}

static void listener_start(void *arg)
{
	struct listener *l = arg;

	WRITE_ONCE(l->listening, true);
	ib_register_event_handler(&l->handler);
}

static void listener_stop(struct listener *l)
{
	ib_unregister_event_handler(&l->handler);
	WRITE_ONCE(l->listening, false);
}

static void listener_init(struct listener *l, struct stress *s)
{
	memset(l, 0, sizeof(*l));
	l->s = s;
	INIT_IB_EVENT_HANDLER(&l->handler, s->m->ibdev, listen);
}

static void dispatch_number(struct source *src)
{
	struct ib_event event = {
		.device = src->s->m->ibdev,
		.element.port_num = src->id << SOURCE_SHIFT | src->sent,
		.event = IB_EVENT_DEVICE_FATAL,
	};

	/*
	 * A handler whose registration was followed by a read of the old count must receive
	 * this event. Pairs with span_begin().
	 */
	smp_store_mb(src->sent, src->sent + 1);
	ib_dispatch_event(&event);
}

static void dispatch_port(struct source *src)
{
	WRITE_ONCE(src->ports, src->ports + 1);
	mock_event(src->s->m, 1, IB_EVENT_PKEY_CHANGE);
}

static bool too_far_ahead(struct source *src)
{
	return src->sent - READ_ONCE(src->s->all.next[src->id]) >= AHEAD;
}

/* Read the number of handled events first: more may be sent in the meantime. */
static bool all_heard(struct stress *s)
{
	u32 heard = READ_ONCE(s->all.heard);
	u32 sent = 0;
	int i;

	smp_rmb(); /* Pairs with the llist's full barrier between counting and handling. */
	for (i = 0; i < SOURCES; i++)
		sent += READ_ONCE(s->src[i].sent) + READ_ONCE(s->src[i].ports);
	return heard == sent;
}

static bool paused(struct source *src)
{
	if (!READ_ONCE(src->s->pause))
		return false;
	if (src->id || !all_heard(src->s))
		return true;
	WRITE_ONCE(src->s->pause, false);
	return false;
}

static void dispatch_burst(struct source *src)
{
	u32 n = 1 + kvt_rand(&src->rng) % BURST;

	for (; n && src->left && !too_far_ahead(src); n--, src->left--) {
		if (kvt_rand(&src->rng) % PORT_PART)
			dispatch_number(src);
		else
			dispatch_port(src);
	}
	if (!src->id && src->left && !(kvt_rand(&src->rng) % PAUSE))
		WRITE_ONCE(src->s->pause, true);
}

static enum hrtimer_restart source_fn(struct hrtimer *timer)
{
	struct source *src = container_of(timer, struct source, timer);
	bool held = paused(src) || too_far_ahead(src);
	u32 ns = held ? HELD_NS : TIMER_NS;

	if (!held)
		dispatch_burst(src);
	if (!src->left || READ_ONCE(src->s->stop)) {
		complete(&src->done);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(ns / 2 + kvt_rand(&src->rng) % ns));
	return HRTIMER_RESTART;
}

static int source_start_fn(void *arg)
{
	struct source *src = arg;

	hrtimer_start(&src->timer, ns_to_ktime(TIMER_NS), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

/* Event numbers that a listener must have received. */
struct span {
	/* By source, number of the first event dispatched after the registration. */
	u32 from[SOURCES];
	/*
	 * By source, the number after that of the last event that was certainly delivered to all
	 * handlers before the unregistration.
	 */
	u32 to[SOURCES];
};

static void span_begin(struct span *span, struct stress *s)
{
	int i;

	/* Pairs with dispatch_number(). */
	smp_mb();
	for (i = 0; i < SOURCES; i++)
		span->from[i] = READ_ONCE(s->src[i].sent);
}

/* The last event that s->all received may not have reached the other handlers yet. */
static void span_end(struct span *span, struct stress *s)
{
	int i;

	for (i = 0; i < SOURCES; i++)
		span->to[i] = max(READ_ONCE(s->all.next[i]), 1U) - 1;
	/* The numbers are read before the unregistration changes the list of handlers. */
	smp_mb();
}

static bool span_heard(const struct span *span, const struct listener *l)
{
	int i;

	for (i = 0; i < SOURCES; i++) {
		if (span->from[i] >= span->to[i])
			continue;
		if (!l->next[i] || l->first[i] > span->from[i] || l->next[i] < span->to[i])
			return false;
	}
	return true;
}

/*
 * The listener is in turn the churner's slot, which stays and counts late calls without
 * KASAN, and an allocated one, so that KASAN sees a late call as a use after free.
 */
static int churn_fn(void *arg)
{
	struct churner *c = arg;
	struct listener *l;
	struct span span;

	while (!READ_ONCE(c->s->stop)) {
		l = c->turns % 2 ? kmalloc(sizeof(*l), GFP_KERNEL) : &c->slot;
		if (!l)
			return -ENOMEM;
		c->late += c->slot.late;
		listener_init(l, c->s);
		l->stay = 1 + kvt_rand(&c->rng) % STAY;
		if (c->turns % 4 < 2)
			listener_start(l);
		else
			kvt_run_in_hardirq(listener_start, l);
		span_begin(&span, c->s);
		if (!c->turns)
			complete(&c->s->began);
		wait_event(c->s->moved, READ_ONCE(l->heard) >= l->stay || READ_ONCE(c->s->stop));
		span_end(&span, c->s);
		listener_stop(l);
		c->turns++;
		c->heard += l->heard;
		c->wrong += l->wrong;
		c->missed += !span_heard(&span, l);
		if (l != &c->slot)
			kfree(l);
	}
	return 0;
}

static void stress_stop(struct stress *s)
{
	WRITE_ONCE(s->stop, 1);
	wake_up_all(&s->moved);
}

static void stress_end(void *arg)
{
	struct stress *s = arg;
	int i;

	stress_stop(s);
	for (i = 0; i < SOURCES; i++)
		hrtimer_cancel(&s->src[i].timer);
	ib_unregister_event_handler(&s->all.handler);
}

static struct stress *stress_new(struct kunit *test)
{
	struct stress *s = kvt_zalloc(test, sizeof(*s));
	u64 count = kvt_count(ROUND_EVENTS) / DEBUG_SHARE;
	u32 seed = kvt_seed(test, "events in hard interrupt", count);
	struct source *src;
	int i;

	kvt_not_with_rt(test, "events from hard interrupts are merged");
	s->m = mock_up(test, "kvtm_a");
	s->count = count;
	init_waitqueue_head(&s->moved);
	init_completion(&s->began);
	for (i = 0; i < SOURCES; i++) {
		src = &s->src[i];
		src->s = s;
		src->id = i;
		src->rng = (seed + i) ?: 1;
		src->left = i ? count / SOURCES : count - count / SOURCES;
		init_completion(&src->done);
		hrtimer_init(&src->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
		src->timer.function = source_fn;
	}
	for (i = 0; i < CHURNERS; i++) {
		s->churner[i].s = s;
		s->churner[i].rng = (seed + SOURCES + i) ?: 1;
	}
	listener_init(&s->all, s);
	s->all.stay = count;
	listener_start(&s->all);
	kvt_defer(test, stress_end, s);
	return s;
}

/* Returns false if events are missing and none is received for KVT_TIMEOUT. */
static bool wait_all(struct stress *s)
{
	u32 before;

	do {
		before = READ_ONCE(s->all.heard);
		if (wait_event_timeout(s->moved, READ_ONCE(s->all.heard) == s->count, KVT_TIMEOUT))
			return true;
	} while (READ_ONCE(s->all.heard) != before);
	return false;
}

static void stress_run(struct kunit *test, struct stress *s)
{
	struct kvt_thread *churn[CHURNERS], *start[SOURCES];
	int i;

	for (i = 0; i < CHURNERS; i++)
		churn[i] = kvt_thread_start(test, i % 2 ? kvt_other_cpu() : 0, churn_fn,
					    &s->churner[i]);
	/* One that gets a CPU late would miss all events. */
	for (i = 0; i < CHURNERS; i++)
		KUNIT_EXPECT_TRUE(test, kvt_wait(&s->began));
	for (i = 0; i < SOURCES; i++)
		start[i] = kvt_thread_start(test, i % 2 ? kvt_other_cpu() : 0, source_start_fn,
					    &s->src[i]);
	for (i = 0; i < SOURCES; i++)
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(start[i]));
	KUNIT_EXPECT_TRUE(test, wait_all(s));
	stress_stop(s);
	for (i = 0; i < SOURCES; i++)
		KUNIT_EXPECT_TRUE(test, kvt_wait(&s->src[i].done));
	for (i = 0; i < CHURNERS; i++)
		KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(churn[i]));
}

static void expect_all_heard(struct kunit *test, struct stress *s)
{
	u32 ports = 0;
	int i;

	for (i = 0; i < SOURCES; i++) {
		ports += s->src[i].ports;
		KUNIT_EXPECT_EQ(test, 0, s->src[i].left);
		KUNIT_EXPECT_EQ(test, 0, s->all.first[i]);
		KUNIT_EXPECT_EQ(test, s->src[i].sent, s->all.next[i]);
	}
	KUNIT_EXPECT_EQ(test, ports, s->all.ports);
	KUNIT_EXPECT_EQ(test, s->count, s->all.heard);
	KUNIT_EXPECT_EQ(test, 0, s->all.wrong);
}

static void expect_none_late(struct kunit *test, struct stress *s)
{
	u32 turns = 0;
	u64 heard = 0;
	int i;

	for (i = 0; i < CHURNERS; i++) {
		struct churner *c = &s->churner[i];

		KUNIT_EXPECT_EQ(test, 0, c->late + c->slot.late);
		KUNIT_EXPECT_EQ(test, 0, c->wrong);
		KUNIT_EXPECT_EQ(test, 0, c->missed);
		/* The thread did get to register handlers. */
		KUNIT_EXPECT_GT(test, c->turns, 0);
		turns += c->turns;
		heard += c->heard;
	}
	KUNIT_EXPECT_GT(test, heard, 0);
	kunit_info(test, "%u handlers came and went, and heard %llu", turns, heard);
}

static void no_event_is_lost_or_late(struct kunit *test)
{
	struct stress *s = stress_new(test);

	stress_run(test, s);
	expect_all_heard(test, s);
	expect_none_late(test, s);
}

static const void *next_round(const void *prev, char *desc)
{
	static const u8 rounds[ROUNDS];
	const u8 *round = prev ? (const u8 *)prev + 1 : rounds;

	if (round == rounds + ROUNDS)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "round %td", round - rounds + 1);
	return round;
}

static struct kunit_case core_event_stress_cases[] = {
	KUNIT_CASE_PARAM(no_event_is_lost_or_late, next_round),
	{}
};
KVT_SUITE(core_event_stress);

MODULE_DESCRIPTION("KUnit: asynchronous events under load");
MODULE_LICENSE("GPL");
