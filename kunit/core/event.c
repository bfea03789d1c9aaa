// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous events of a device: dispatched from any context and handled in a work item,
 * in order and with the caches already refreshed. No handler runs after it was unregistered.
 */
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <rdma/ib_cache.h>

#include "lib/client.h"
#include "lib/console.h"
#include "lib/mock.h"

#define STORM_EVENTS	20000

/* An event handler that records its calls. */
struct listener {
	struct ib_event_handler handler;	/* the handler that is registered with the core */
	const char *name;			/* its letter in the trace */
	struct kvt_trace *trace;		/* the trace that it writes to, or NULL */
	atomic_t seen;				/* number of calls */
	struct ib_event last;			/* the last event */
	char context;	/* where the handler ran last: 'p' process, 's' softirq, 'h' hardirq */
	struct completion got;			/* completed by each call */
	/* Called in the handler, or NULL. */
	void (*on_event)(struct listener *l, struct ib_event *event);
	void *arg;				/* for @on_event */
	bool listening;				/* @handler is registered */
};

static char context_letter(void)
{
	return in_hardirq() ? 'h' : in_serving_softirq() ? 's' : 'p';
}

static void listen(struct ib_event_handler *handler, struct ib_event *event)
{
	struct listener *l = container_of(handler, struct listener, handler);

	l->last = *event;
	l->context = context_letter();
	if (l->trace)
		kvt_trace_add(l->trace, "%s:%u", l->name, event->event);
	if (l->on_event)
		l->on_event(l, event);
	atomic_inc(&l->seen);
	complete(&l->got);
}

static void listener_stop(void *arg)
{
	struct listener *l = arg;

	if (l->listening)
		ib_unregister_event_handler(&l->handler);
	l->listening = false;
}

static struct listener *listener_new(struct kunit *test, struct mock *m,
				     const char *name, struct kvt_trace *trace)
{
	struct listener *l = kvt_zalloc(test, sizeof(*l));

	l->name = name;
	l->trace = trace;
	init_completion(&l->got);
	INIT_IB_EVENT_HANDLER(&l->handler, m->ibdev, listen);
	return l;
}

static void listener_start(struct kunit *test, struct listener *l)
{
	ib_register_event_handler(&l->handler);
	l->listening = true;
	kvt_defer(test, listener_stop, l);
}

static struct listener *listener_up(struct kunit *test, struct mock *m,
				    const char *name, struct kvt_trace *trace)
{
	struct listener *l = listener_new(test, m, name, trace);

	listener_start(test, l);
	return l;
}

/* A listener in whose handler @on_event is called, with @arg in &listener.arg. */
static struct listener *listener_that(struct kunit *test, struct mock *m,
				      void (*on_event)(struct listener *l, struct ib_event *event),
				      void *arg)
{
	struct listener *l = listener_new(test, m, "A", NULL);

	l->on_event = on_event;
	l->arg = arg;
	listener_start(test, l);
	return l;
}

struct shot {
	struct mock *m;
	enum ib_event_type event;
};

static void shoot(void *arg)
{
	struct shot *s = arg;

	mock_event(s->m, 1, s->event);
}

/* Reports an event, and waits until the listener has heard it. */
static void tell(struct kunit *test, struct mock *m, enum ib_event_type type, struct listener *l)
{
	mock_event(m, 1, type);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&l->got));
}

static void handler_gets_the_event(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct listener *l = listener_up(test, m, "A", NULL);

	tell(test, m, IB_EVENT_DEVICE_FATAL, l);
	KUNIT_ASSERT_EQ(test, 1, atomic_read(&l->seen));
	KUNIT_EXPECT_EQ(test, IB_EVENT_DEVICE_FATAL, l->last.event);
	KUNIT_EXPECT_PTR_EQ(test, l->last.device, m->ibdev);
	KUNIT_EXPECT_EQ(test, 1, l->last.element.port_num);
}

static void handler_hears_its_own_device_only(struct kunit *test)
{
	struct mock *m1 = mock_up(test, "kvtm_a");
	struct mock *m2 = mock_up(test, "kvtm_b");
	struct listener *l = listener_up(test, m1, "A", NULL);
	struct listener *other = listener_up(test, m2, "B", NULL);

	tell(test, m2, IB_EVENT_DEVICE_FATAL, other);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&l->seen));
	tell(test, m1, IB_EVENT_DEVICE_FATAL, l);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&l->seen));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&other->seen));
}

static void handlers_are_called_in_order_of_registration(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_trace *tr = kvt_trace_new(test);
	struct listener *b, *c;

	listener_up(test, m, "A", tr);
	b = listener_up(test, m, "B", tr);
	c = listener_up(test, m, "C", tr);
	tell(test, m, IB_EVENT_DEVICE_FATAL, c);
	KVT_EXPECT_TRACE(test, tr, "A:8 B:8 C:8");
	listener_stop(b);
	kvt_trace_reset(tr);
	tell(test, m, IB_EVENT_DEVICE_FATAL, c);
	KVT_EXPECT_TRACE(test, tr, "A:8 C:8");
}

KVT_PART_PARAM_DESC(interrupt, kvt_runs, 1, 3, name);

static void dispatch_works_in_interrupts(struct kunit *test)
{
	const struct kvt_run *in = test->param_value;
	struct mock *m = mock_up(test, "kvtm_a");
	struct listener *l = listener_up(test, m, "A", NULL);
	struct shot fatal = { m, IB_EVENT_DEVICE_FATAL };
	struct shot cached = { m, IB_EVENT_PKEY_CHANGE };

	in->run(shoot, &fatal);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&l->got));
	KUNIT_EXPECT_EQ(test, IB_EVENT_DEVICE_FATAL, l->last.event);
	KUNIT_EXPECT_EQ(test, 'p', l->context);
	in->run(shoot, &cached);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&l->got));
	KUNIT_EXPECT_EQ(test, IB_EVENT_PKEY_CHANGE, l->last.event);
	KUNIT_EXPECT_EQ(test, 'p', l->context);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&l->seen));
}

static void note_thread(struct listener *l, struct ib_event *event)
{
	l->arg = current;
}

/* A driver may dispatch in post_send, in the consumer's thread, which may hold locks. */
static void handlers_do_not_run_inside_dispatch(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct listener *l = listener_that(test, m, note_thread, NULL);

	tell(test, m, IB_EVENT_DEVICE_FATAL, l);
	KUNIT_EXPECT_NOT_NULL(test, l->arg);
	KUNIT_EXPECT_PTR_NE(test, l->arg, (void *)current);
}

static void events_keep_their_order(struct kunit *test)
{
	static const enum ib_event_type order[] = {
		IB_EVENT_PORT_ERR, IB_EVENT_PORT_ACTIVE, IB_EVENT_LID_CHANGE,
		IB_EVENT_DEVICE_FATAL, IB_EVENT_PKEY_CHANGE,
		IB_EVENT_SM_CHANGE, IB_EVENT_CLIENT_REREGISTER,
	};
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_trace *tr = kvt_trace_new(test);
	struct listener *l = listener_up(test, m, "A", tr);
	int i;

	for (i = 0; i < ARRAY_SIZE(order); i++)
		mock_event(m, 1, order[i]);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		KUNIT_ASSERT_TRUE(test, kvt_wait(&l->got));
	KVT_EXPECT_TRACE(test, tr, "A:10 A:9 A:11 A:8 A:12 A:13 A:17");
}

static void look_up_pkey(struct listener *l, struct ib_event *event)
{
	u16 pkey = 0, index = 0;

	ib_get_cached_pkey(event->device, 1, 2, &pkey);
	kvt_trace_add(l->arg, "pkey:%#x", pkey);
	kvt_trace_add(l->arg, "find:%d", ib_find_cached_pkey(event->device, 1, 0x8123, &index));
}

static void pkey_change_is_in_the_cache_when_told(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_trace *tr = kvt_trace_new(test);
	struct listener *l = listener_that(test, m, look_up_pkey, tr);
	u16 pkey;

	m->port[1].pkeys[2] = 0x8123;
	KUNIT_EXPECT_EQ(test, 0, ib_get_cached_pkey(m->ibdev, 1, 2, &pkey));
	KUNIT_EXPECT_EQ(test, 0, pkey);
	tell(test, m, IB_EVENT_PKEY_CHANGE, l);
	KVT_EXPECT_TRACE(test, tr, "pkey:0x8123 find:0");
}

static void look_up_port(struct listener *l, struct ib_event *event)
{
	enum ib_port_state state = IB_PORT_NOP;
	u8 lmc = 0xff;

	ib_get_cached_port_state(event->device, 1, &state);
	ib_get_cached_lmc(event->device, 1, &lmc);
	kvt_trace_add(l->arg, "state:%u lmc:%u", state, lmc);
}

static void lid_change_is_in_the_cache_when_told(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_trace *tr = kvt_trace_new(test);
	struct listener *l = listener_that(test, m, look_up_port, tr);

	m->port[1].attr.lid = 0x40;
	m->port[1].attr.lmc = 3;
	tell(test, m, IB_EVENT_LID_CHANGE, l);
	m->port[1].attr.state = IB_PORT_DOWN;
	tell(test, m, IB_EVENT_PORT_ERR, l);
	KVT_EXPECT_TRACE(test, tr, "state:4 lmc:3 state:1 lmc:3");
}

static void look_up_gid(struct listener *l, struct ib_event *event)
{
	union ib_gid gid = {};
	int ret = rdma_query_gid(event->device, 1, 3, &gid);

	kvt_trace_add(l->arg, "gid:%d:%llx", ret, be64_to_cpu(gid.global.interface_id));
}

static void gid_change_is_in_the_cache_when_told(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_trace *tr = kvt_trace_new(test);
	struct listener *l = listener_that(test, m, look_up_gid, tr);

	m->port[1].gids[3].global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	m->port[1].gids[3].global.interface_id = cpu_to_be64(0xabcdULL);
	tell(test, m, IB_EVENT_GID_CHANGE, l);
	KVT_EXPECT_TRACE(test, tr, "gid:0:abcd");
}

static void failing_refresh_does_not_lose_the_event(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct listener *l = listener_up(test, m, "A", NULL);
	u16 pkey = 0;

	mock_fail(m, MOCK_query_pkey, -EIO);
	tell(test, m, IB_EVENT_PKEY_CHANGE, l);
	KUNIT_EXPECT_EQ(test, IB_EVENT_PKEY_CHANGE, l->last.event);
	/* The P_Key table that was read before is still cached. */
	KUNIT_EXPECT_EQ(test, 0, ib_get_cached_pkey(m->ibdev, 1, 0, &pkey));
	KUNIT_EXPECT_EQ(test, 0xffff, pkey);
}

/* The event is late, but the cache is right when it is delivered. */
static void refresh_without_memory_is_done_again(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_trace *tr = kvt_trace_new(test);
	struct listener *l = listener_that(test, m, look_up_pkey, tr);

	m->port[1].pkeys[2] = 0x8123;
	mock_log_reset(m);
	mock_fail_nth(m, MOCK_query_pkey, 1, -ENOMEM);
	tell(test, m, IB_EVENT_PKEY_CHANGE, l);
	KVT_EXPECT_TRACE(test, tr, "pkey:0x8123 find:0");
	/* The query that failed, then the whole table. */
	KUNIT_EXPECT_EQ(test, 1 + MOCK_PKEYS, mock_calls(m, MOCK_query_pkey));
}

/* Later events of the port wait, too; of events of one type, only the last is kept. */
static void events_that_wait_for_memory_keep_their_order(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct kvt_trace *tr = kvt_trace_new(test);
	struct listener *l = listener_up(test, m, "A", tr);
	int i;

	mock_fail_nth(m, MOCK_query_pkey, 1, -ENOMEM);
	mock_hold(m, MOCK_query_pkey);
	mock_event(m, 1, IB_EVENT_PORT_ERR);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&m->hold.entered));
	/* The refresh that fails is under way: these wait behind it, however late they come. */
	mock_event(m, 1, IB_EVENT_PORT_ACTIVE);
	mock_event(m, 1, IB_EVENT_LID_CHANGE);
	mock_event(m, 1, IB_EVENT_PORT_ERR);
	mock_event(m, 1, IB_EVENT_PORT_ACTIVE);
	mock_hold_end(m);
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_TRUE(test, kvt_wait(&l->got));
	KVT_EXPECT_TRACE(test, tr, "A:11 A:10 A:9");
}

static void event_is_told_though_memory_never_comes(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct listener *l = listener_up(test, m, "A", NULL);

	mock_fail(m, MOCK_query_pkey, -ENOMEM);
	tell(test, m, IB_EVENT_PORT_ERR, l);
	KUNIT_EXPECT_EQ(test, IB_EVENT_PORT_ERR, l->last.event);
	/* The next event is delivered at once again. */
	mock_fail_none(m);
	tell(test, m, IB_EVENT_PORT_ACTIVE, l);
	KUNIT_EXPECT_EQ(test, IB_EVENT_PORT_ACTIVE, l->last.event);
}

/* Events that were put off are dropped when the device is unregistered. */
static void device_goes_while_there_is_no_memory(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");

	mock_fail(m, MOCK_query_pkey, -ENOMEM);
	mock_hold(m, MOCK_query_pkey);
	mock_event(m, 1, IB_EVENT_PKEY_CHANGE);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&m->hold.entered));
	mock_hold_end(m);
	mock_unregister(m);
	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm_a"));
}

struct fence {
	struct kvt_gate gate;
	struct completion unregistering;
	struct listener *l;
};

static void stay_inside(struct listener *l, struct ib_event *event)
{
	struct fence *f = l->arg;

	kvt_gate_pass(&f->gate);
}

static int unregister_handler_fn(void *arg)
{
	struct fence *f = arg;

	complete(&f->unregistering);
	listener_stop(f->l);
	return 0;
}

static void unregister_waits_for_a_running_handler(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct listener *l = listener_new(test, m, "A", NULL);
	struct listener *after;
	struct fence f = { .l = l };
	struct kvt_thread *unreg;

	kvt_need_two_cpus(test);
	kvt_gate_init(&f.gate);
	init_completion(&f.unregistering);
	l->on_event = stay_inside;
	l->arg = &f;
	listener_start(test, l);
	unreg = kvt_thread_new(test, -1, unregister_handler_fn, &f);
	mock_event(m, 1, IB_EVENT_DEVICE_FATAL);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&f.gate.entered));
	kvt_thread_go(unreg);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&f.unregistering));
	/* The handler is still running: the unregistration cannot have returned. */
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&l->seen));
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(unreg));
	kvt_gate_open(&f.gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(unreg));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&l->seen));
	KUNIT_EXPECT_TRUE(test, f.gate.in_time);

	after = listener_up(test, m, "B", NULL);
	tell(test, m, IB_EVENT_DEVICE_FATAL, after);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&l->seen));
}

/* One handler of a device runs, and does not end; others can be unregistered. */
static void unregister_waits_for_no_other_handler(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct listener *before = listener_up(test, m, "A", NULL);
	struct listener *l = listener_new(test, m, "B", NULL);
	struct listener *after = listener_new(test, m, "C", NULL);
	struct fence *f = kvt_zalloc(test, sizeof(*f));
	struct kvt_console *said;
	struct kvt_thread *unreg;

	kvt_need_two_cpus(test);
	f->l = l;
	kvt_gate_init(&f->gate);
	init_completion(&f->unregistering);
	l->on_event = stay_inside;
	l->arg = f;
	listener_start(test, l);
	listener_start(test, after);
	mock_event(m, 1, IB_EVENT_DEVICE_FATAL);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&f->gate.entered));
	/* If these waited for it, they would keep the gate closed until it times out. */
	listener_stop(before);
	listener_stop(after);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&before->seen));

	said = kvt_console_watch(test, "waiting for listen");
	kvt_set_file(test, "/sys/module/kverbs/parameters/wait_warn_ms", "20");
	unreg = kvt_thread_start(test, -1, unregister_handler_fn, f);
	KUNIT_EXPECT_TRUE(test, kvt_console_wait(said));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&l->seen));
	kvt_gate_open(&f->gate);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(unreg));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&l->seen));
	KUNIT_EXPECT_TRUE(test, f->gate.in_time);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&after->seen));
}

static void listen_in_add(struct kvt_client *c, struct ib_device *ibdev)
{
	struct listener *l = c->arg;

	INIT_IB_EVENT_HANDLER(&l->handler, ibdev, listen);
	ib_register_event_handler(&l->handler);
}

static void unlisten_in_remove(struct kvt_client *c, struct ib_device *ibdev)
{
	struct listener *l = c->arg;

	kvt_trace_add(c->trace, "seen:%d", atomic_read(&l->seen));
	mock_event(mock_of(ibdev), 1, IB_EVENT_DEVICE_FATAL);
	kvt_wait(&l->got);
	kvt_trace_add(c->trace, "seen:%d", atomic_read(&l->seen));
	ib_unregister_event_handler(&l->handler);
}

static void events_reach_the_handler_until_remove_ends(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct kvt_client *c = kvt_client_new(test, "A", tr);
	struct mock *m = mock_new(test);
	struct listener *l;

	mock_alloc(test, m);
	l = listener_new(test, m, "A", NULL);
	c->on_add = listen_in_add;
	c->on_remove = unlisten_in_remove;
	c->arg = l;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_a"));
	mock_event(m, 1, IB_EVENT_DEVICE_FATAL);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&l->got));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&l->seen));
	mock_unregister(m);
	KVT_EXPECT_TRACE(test, tr, "A+kvtm_a A-kvtm_a seen:1 seen:2");
	/* The driver may still dispatch, but the core drops the event and queries no table. */
	mock_log_reset(m);
	mock_event(m, 1, IB_EVENT_DEVICE_FATAL);
	mock_event(m, 1, IB_EVENT_PKEY_CHANGE);
	KUNIT_EXPECT_FALSE(test, mock_event_is_taken(m));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&l->seen));
}

struct storm {
	struct mock *m;
	u64 count;
	struct irq_work work;
};

static void storm_irq(struct irq_work *work)
{
	mock_event(container_of(work, struct storm, work)->m, 1, IB_EVENT_PKEY_CHANGE);
}

static int storm_fn(void *arg)
{
	struct storm *s = arg;
	u64 i;

	for (i = 0; i < s->count; i++) {
		irq_work_queue(&s->work);
		mock_event(s->m, 1, IB_EVENT_PKEY_CHANGE);
		irq_work_sync(&s->work);
		if (!(i % 64))
			cond_resched();
	}
	return 0;
}

static void no_event_of_a_storm_is_lost(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct listener *l = listener_up(test, m, "A", NULL);
	u64 i, count = kvt_count(STORM_EVENTS) / 4 + 1;
	struct storm s[2];
	struct kvt_thread *t[2];

	kvt_not_with_rt(test, "events from hard interrupts are merged");
	kvt_print_length(test, "events from two CPUs and interrupts", 4 * count);
	for (i = 0; i < 2; i++) {
		s[i].m = m;
		s[i].count = count;
		s[i].work = IRQ_WORK_INIT_HARD(storm_irq);
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, storm_fn, &s[i]);
	}
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t[i]));
	for (i = 0; i < 4 * count; i++)
		KUNIT_ASSERT_TRUE_MSG(test, kvt_wait(&l->got), "%llu of %llu", i, 4 * count);
	KUNIT_EXPECT_EQ(test, 4 * count, atomic_read(&l->seen));
}

static struct kunit_case core_event_cases[] = {
	KUNIT_CASE(handler_gets_the_event),
	KUNIT_CASE(handler_hears_its_own_device_only),
	KUNIT_CASE(handlers_are_called_in_order_of_registration),
	KUNIT_CASE_PARAM(dispatch_works_in_interrupts, interrupt_gen_params),
	KUNIT_CASE(handlers_do_not_run_inside_dispatch),
	KUNIT_CASE(events_keep_their_order),
	KUNIT_CASE(pkey_change_is_in_the_cache_when_told),
	KUNIT_CASE(lid_change_is_in_the_cache_when_told),
	KUNIT_CASE(gid_change_is_in_the_cache_when_told),
	KUNIT_CASE(failing_refresh_does_not_lose_the_event),
	KUNIT_CASE(refresh_without_memory_is_done_again),
	KUNIT_CASE(events_that_wait_for_memory_keep_their_order),
	KUNIT_CASE(event_is_told_though_memory_never_comes),
	KUNIT_CASE(device_goes_while_there_is_no_memory),
	KUNIT_CASE(unregister_waits_for_a_running_handler),
	KUNIT_CASE(unregister_waits_for_no_other_handler),
	KUNIT_CASE(events_reach_the_handler_until_remove_ends),
	KUNIT_CASE(no_event_of_a_storm_is_lost),
	{}
};
KVT_SUITE(core_event);

MODULE_DESCRIPTION("KUnit: asynchronous events");
MODULE_LICENSE("GPL");
