// SPDX-License-Identifier: GPL-2.0-only
/*
 * Events dispatched in hard interrupt on two CPUs, while handlers come and go: no
 * event is lost, none comes twice or out of turn, and none reaches a handler that was
 * unregistered.
 *
 * DEVICE_FATAL means nothing to the core, and what stands in element is passed on: there
 * each event carries its CPU and its number. Events of a port, for which the core reads
 * the port's tables, stand among them and are counted.
 *
 * Events may be merged where memory is lacking, hence no more than AHEAD of a CPU wait.
 *
 * Locking: @sent and @ports of a source are written by its timer, @pause by that of the
 * first. What a listener has
 * heard is written by its handler, and the core calls one handler at a time; who
 * unregisters it reads that afterwards. The first listener is looked at meanwhile, too.
 */
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <kunit/test.h>
#include <rdma/ib_verbs.h>

#include "lib.h"
#include "mock.h"

/* Ten million in full, in as many cases as keep each of them short. */
#define ROUNDS		10
#define ROUND_EVENTS	1000000ULL

/* Where instrumentation makes each of them cost so much more. */
#define DEBUG_SHARE	(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ? 10 : 1)

/* Timers that dispatch, and threads whose handlers come and go: by turns of a CPU. */
#define SOURCES		2
#define CHURNERS	4

/* A timer's events: so many at a time at most, and so many not handled yet. */
#define BURST		128
#define AHEAD		1024

/* Between two bursts on average; more where there was none, to leave time to handle them. */
#define TIMER_NS	(50 * NSEC_PER_USEC * DEBUG_SHARE)
#define HELD_NS		(4 * TIMER_NS)

/*
 * Once in so many times that the first timer comes, both hold their events back until all
 * are handled: no later one helps one that nobody was woken for.
 */
#define PAUSE		4

/* One event in so many is of a port. */
#define PORT_PART	64

/* How many a churner's handler hears before it goes, at most as far as that depends on it. */
#define STAY		256

/* Where an event has its source; the rest is its number. */
#define SOURCE_SHIFT	30
#define NUMBER_MASK	(BIT(SOURCE_SHIFT) - 1)

struct stress;

/**
 * struct listener - an event handler
 * @handler: what the core sees
 * @s: the case
 * @listening: not unregistered yet
 * @heard: events
 * @stay: who registered it waits for so many
 * @ports: those of ports
 * @first: by source, the first number
 * @next: the one after the last, 0 where none has come
 * @wrong: numbers that were not the next
 * @late: calls that did not end before it was unregistered
 */
struct listener {
	struct ib_event_handler handler;
	struct stress *s;
	bool listening;
	u32 heard;
	u32 stay;
	u32 ports;
	u32 first[SOURCES];
	u32 next[SOURCES];
	u32 wrong;
	u32 late;
};

/**
 * struct source - a timer that dispatches
 * @s: the case
 * @id: its number
 * @rng: state of the random numbers
 * @left: events to dispatch
 * @sent: numbered events, counted before they are dispatched
 * @ports: events of the port
 * @timer: in hard interrupt
 * @done: completed when @left is 0
 */
struct source {
	struct stress *s;
	u32 id;
	u32 rng;
	u64 left;
	u32 sent;
	u32 ports;
	struct hrtimer timer;
	struct completion done;
};

/**
 * struct churner - a thread whose handlers come and go
 * @s: the case
 * @rng: state of the random numbers
 * @slot: a listener that is used again, so that a late call finds it
 * @turns: handlers that have been
 * @heard: what they have heard
 * @wrong: their numbers that were not the next
 * @late: their calls that did not end in time
 * @missed: those that did not hear all that was delivered in their time
 */
struct churner {
	struct stress *s;
	u32 rng;
	struct listener slot;
	u32 turns;
	u64 heard;
	u32 wrong;
	u32 late;
	u32 missed;
};

/**
 * struct stress - a case
 * @m: the device
 * @count: events
 * @all: hears all of them
 * @src: who dispatches
 * @churner: who comes and goes
 * @moved: woken when a listener has heard enough, and by @stop
 * @pause: nothing is dispatched until all is heard
 * @stop: they are to end
 */
struct stress {
	struct mock *m;
	u64 count;
	struct listener all;
	struct source src[SOURCES];
	struct churner churner[CHURNERS];
	wait_queue_head_t moved;
	bool pause;
	int stop;
};

static void hear_number(struct listener *l, u32 id, u32 number)
{
	if (!l->next[id])
		l->first[id] = number;
	else if (l->next[id] != number)
		l->wrong++;
	/* Those who throttle and who compare look at it. */
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
	/* Last, for who unregisters may not return while it runs either. */
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

	/* Who registers then and finds it uncounted is to hear it. Pairs with span_begin(). */
	smp_store_mb(src->sent, src->sent + 1);
	ib_dispatch_event(&event);
}

static void dispatch_port(struct source *src)
{
	struct ib_event event = {
		.device = src->s->m->ibdev,
		.element.port_num = 1,
		.event = IB_EVENT_PKEY_CHANGE,
	};

	WRITE_ONCE(src->ports, src->ports + 1);
	ib_dispatch_event(&event);
}

static bool too_far_ahead(struct source *src)
{
	return src->sent - READ_ONCE(src->s->all.next[src->id]) >= AHEAD;
}

/* Those heard are counted first: more may be sent meanwhile. */
static bool all_heard(struct stress *s)
{
	u32 heard = READ_ONCE(s->all.heard);
	u32 sent = 0;
	int i;

	smp_rmb(); /* Pairs with the full barrier between counting and hearing: the llist's. */
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

/**
 * struct span - numbers that a listener must have heard
 * @from: by source, the first that was dispatched after it was registered
 * @to: the one after the last that was delivered before it was unregistered
 */
struct span {
	u32 from[SOURCES];
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

/* The last that the first handler has heard is perhaps on its way to the others. */
static void span_end(struct span *span, struct stress *s)
{
	int i;

	for (i = 0; i < SOURCES; i++)
		span->to[i] = max(READ_ONCE(s->all.next[i]), 1U) - 1;
	/* The list is looked at by then, and changed from now on. */
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

/* A late call finds a freed listener with KASAN, and one that is kept without. */
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
	struct stress *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	u64 count = kvt_count(ROUND_EVENTS) / DEBUG_SHARE;
	u32 seed = kvt_seed(test, "events in hard interrupt", count);
	struct source *src;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->m = mock_up(test, "kvtm_a");
	s->count = count;
	init_waitqueue_head(&s->moved);
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
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, stress_end, s));
	return s;
}

/* For as long as there is progress. */
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
	for (i = 0; i < SOURCES; i++)
		start[i] = kvt_thread_start(test, i % 2 ? kvt_other_cpu() : 0, source_start_fn,
					    &s->src[i]);
	for (i = 0; i < SOURCES; i++)
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(start[i]));
	KUNIT_EXPECT_TRUE(test, wait_all(s));
	stress_stop(s);
	for (i = 0; i < SOURCES; i++)
		KUNIT_EXPECT_TRUE(test, kvt_wait(&s->src[i].done));
	for (i = 0; i < CHURNERS; i++) {
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(churn[i]));
		KUNIT_EXPECT_EQ(test, 0, churn[i]->ret);
	}
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
		/* There was something to see. */
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

static struct kunit_suite core_event_stress_suite = {
	.name = "core_event_stress",
	.test_cases = core_event_stress_cases,
};

kunit_test_suite(core_event_stress_suite);

MODULE_DESCRIPTION("KUnit: asynchronous events under load");
MODULE_LICENSE("GPL");
