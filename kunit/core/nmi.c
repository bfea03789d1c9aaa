// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions and events of each kind that a driver reports from hard interrupts and NMIs:
 * they reach their handlers, once, and never inside the call that reported them.
 */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <kverbs/completion.h>

#include "cq/rig.h"
#include "lib/mock.h"
#include "lib/nmi.h"
#include "lib/objects.h"

#define CQ_SIZE		64

/* NMIs sent to a CPU that is reporting itself. */
#define STORM_NMIS	5000
/* CQs that are created and destroyed while NMIs report on them. */
#define LIFE_ROUNDS	1000

/* A completion or an event that a driver reports, and its handler. */
struct report {
	void (*fire)(struct report *r);	/* reports it */
	struct mock *m;			/* the device */
	struct ib_cq *cq;		/* the CQ that @fire needs, if it does */
	struct ib_qp *qp;		/* the QP, likewise */
	struct ib_srq *srq;		/* the SRQ, likewise */
	struct ib_cqe cqe;		/* completes in @cq */
	struct ib_event_handler handler;	/* handler of the device's events */
	enum ib_event_type type;	/* type of the device's event */
	int cpu;			/* the CPU on which @fire is running, or -1 */
	atomic_t heard;			/* calls of the handler */
	struct completion got;		/* completed by each call of the handler */
	atomic_t inside;		/* handlers that are running */
	int concurrent;			/* calls of the handler while another call was running */
	int nested;	/* calls of the handler while @fire was running on the same CPU */
	int in_nmi;			/* calls of the handler in NMI */
	u32 sent;			/* reports made by NMIs */
	u32 last;			/* @sent at the last call of the handler */
};

/* Called by the handlers of all kinds. */
static void heard(struct report *r)
{
	if (atomic_inc_return(&r->inside) != 1)
		r->concurrent++;
	/* @fire runs in hardirq or NMI: a handler on the same CPU was called within it. */
	if (READ_ONCE(r->cpu) == raw_smp_processor_id())
		r->nested++;
	if (in_nmi())
		r->in_nmi++;
	WRITE_ONCE(r->last, READ_ONCE(r->sent));
	atomic_dec(&r->inside);
	atomic_inc(&r->heard);
	complete(&r->got);
}

static void on_device_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct report *r = container_of(handler, struct report, handler);

	if (event->event == r->type)
		heard(r);
}

static void on_object_event(struct ib_event *event, void *context)
{
	heard(context);
}

static void on_comp(struct ib_cq *cq, void *context)
{
	heard(context);
}

static void on_done(struct ib_cq *cq, struct ib_wc *wc)
{
	heard(container_of(wc->wr_cqe, struct report, cqe));
}

static void fire_device_event(struct report *r)
{
	mock_event(r->m, 1, r->type);
}

static void fire_comp(struct report *r)
{
	ib_cq_notify(r->cq);
}

static void fire_cq_event(struct report *r)
{
	ib_cq_notify_event(r->cq, IB_EVENT_CQ_ERR);
}

static void fire_qp_event(struct report *r)
{
	ib_qp_notify_event(r->qp, IB_EVENT_QP_FATAL);
}

static void fire_srq_event(struct report *r)
{
	ib_srq_notify_event(r->srq, IB_EVENT_SRQ_LIMIT_REACHED);
}

static struct report *report_new(struct kunit *test, void (*fire)(struct report *r))
{
	struct report *r = kvt_zalloc(test, sizeof(*r));

	r->fire = fire;
	r->cpu = -1;
	r->cqe.done = on_done;
	init_completion(&r->got);
	r->m = test->priv;
	return r;
}

static struct report *report_of_device(struct kunit *test, enum ib_event_type type)
{
	struct report *r = report_new(test, fire_device_event);

	r->type = type;
	INIT_IB_EVENT_HANDLER(&r->handler, r->m->ibdev, on_device_event);
	ib_register_event_handler(&r->handler);
	kvt_defer(test, kvt_end_handler, &r->handler);
	return r;
}

static struct report *report_of_cq(struct kunit *test, void (*fire)(struct report *r))
{
	struct ib_cq_init_attr attr = { .cqe = CQ_SIZE };
	struct report *r = report_new(test, fire);

	r->cq = KVT_OWN(test, ib_create_cq(r->m->ibdev, on_comp, on_object_event, r, &attr),
			kvt_end_cq);
	return r;
}

/* Runs in hard interrupt or NMI. */
static void fire(void *arg)
{
	struct report *r = arg;

	WRITE_ONCE(r->cpu, smp_processor_id());
	r->fire(r);
	WRITE_ONCE(r->cpu, -1);
}

/*
 * Sends the NMI to this CPU with interrupts disabled, so that deferred work does not run on
 * this CPU before the calls of the handler are counted: there must be none yet.
 */
static void fire_in_nmi(struct kunit *test, struct report *r, int before)
{
	int early;
	bool ran;

	local_irq_disable();
	ran = kvt_run_in_nmi(smp_processor_id(), fire, r);
	early = atomic_read(&r->heard) - before;
	local_irq_enable();
	KUNIT_ASSERT_TRUE(test, ran);
	KUNIT_EXPECT_EQ(test, 0, early);
}

static void expect_heard(struct kunit *test, struct report *r, int times)
{
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->got));
	KUNIT_EXPECT_EQ(test, times, atomic_read(&r->heard));
	KUNIT_EXPECT_EQ(test, 0, r->nested);
	KUNIT_EXPECT_EQ(test, 0, r->in_nmi);
}

/* Reports from NMI and hardirq, twice each: the first round must leave no stale state. */
static void reach_handler(struct kunit *test, struct report *r, void (*prepare)(struct report *r))
{
	int i;

	for (i = 0; i < 4; i++) {
		if (prepare)
			prepare(r);
		if (i % 2)
			kvt_run_in_hardirq(fire, r);
		else
			fire_in_nmi(test, r, i);
		expect_heard(test, r, i + 1);
	}
}

static void device_event_reaches_its_handler(struct kunit *test)
{
	reach_handler(test, report_of_device(test, IB_EVENT_DEVICE_FATAL), NULL);
}

static void port_event_reaches_its_handler(struct kunit *test)
{
	reach_handler(test, report_of_device(test, IB_EVENT_PKEY_CHANGE), NULL);
}

static void completion_reaches_its_handler(struct kunit *test)
{
	reach_handler(test, report_of_cq(test, fire_comp), NULL);
}

static void cq_event_reaches_its_handler(struct kunit *test)
{
	reach_handler(test, report_of_cq(test, fire_cq_event), NULL);
}

/* The lock of the mock's CQ may not be taken in NMI: the completion is pushed before. */
static void push_quiet(struct report *r)
{
	struct ib_wc wc = { .wr_cqe = &r->cqe };

	mock_cq_push_quiet(r->cq, &wc);
}

static void completion_reaches_done(struct kunit *test)
{
	struct report *r = report_new(test, fire_comp);

	r->cq = kvt_cq(test, r->m->ibdev, CQ_SIZE, kvt_context(test));
	reach_handler(test, r, push_quiet);
}

static void qp_event_reaches_its_handler(struct kunit *test)
{
	struct report *r = report_new(test, fire_qp_event);
	struct ib_cq *cq = kvt_cq(test, r->m->ibdev, CQ_SIZE, IB_POLL_SOFTIRQ);
	struct ib_qp_init_attr init;

	kvt_qp_init(&init, cq, cq);
	init.event_handler = on_object_event;
	init.qp_context = r;
	r->qp = kvt_qp(test, kvt_pd(test, r->m->ibdev), &init);
	reach_handler(test, r, NULL);
}

static void srq_event_reaches_its_handler(struct kunit *test)
{
	struct report *r = report_new(test, fire_srq_event);
	struct ib_srq_init_attr init = {
		.event_handler = on_object_event,
		.srq_context = r,
		.attr = { .max_wr = 8, .max_sge = 1 },
	};

	r->srq = KVT_OWN(test, ib_create_srq(kvt_pd(test, r->m->ibdev), &init), kvt_end_srq);
	reach_handler(test, r, NULL);
}

/* After the device is unregistered, an event from an NMI is dropped. */
static void event_of_a_dead_device_goes_nowhere(struct kunit *test)
{
	struct report *r = report_new(test, fire_device_event);

	r->type = IB_EVENT_PKEY_CHANGE;
	mock_unregister(r->m);
	mock_log_reset(r->m);
	fire_in_nmi(test, r, 0);
	KUNIT_EXPECT_FALSE(test, mock_event_is_taken(r->m));
}

static void fire_plain(void *arg)
{
	struct report *r = arg;

	r->fire(r);
}

/* Called in NMI only, so @sent has one writer. */
static void fire_counted(void *arg)
{
	struct report *r = arg;

	WRITE_ONCE(r->sent, r->sent + 1);
	r->fire(r);
}

/* Reports from a thread and from hardirq, for NMIs to interrupt. */
struct storm {
	struct report *r;	/* what is reported */
	u32 count;	/* reports made */
	u32 ahead;	/* limit of reports that the handler has not seen yet, 0 for no limit */
};

static int storm_fn(void *arg)
{
	struct storm *s = arg;

	while (!kvt_should_stop()) {
		cond_resched();
		if (s->ahead && s->count - atomic_read(&s->r->heard) >= s->ahead)
			continue;
		if (s->count++ % 2)
			kvt_run_in_hardirq(fire_plain, s->r);
		else
			fire_plain(s->r);
	}
	return 0;
}

/* The handler must run after the last NMI; reports of earlier NMIs may be merged. */
static u32 send_nmis(struct kunit *test, struct storm *s, struct report *r)
{
	u32 i, nmis = kvt_count(STORM_NMIS);
	struct kvt_thread *t;
	bool ran = true;

	kvt_print_length(test, "NMIs upon a CPU that reports", nmis);
	t = kvt_thread_start(test, kvt_other_cpu(), storm_fn, s);
	for (i = 0; i < nmis && ran; i++) {
		ran = kvt_run_in_nmi(kvt_other_cpu(), fire_counted, r);
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_stop(t));
	KUNIT_EXPECT_TRUE(test, ran);
	while (READ_ONCE(r->last) != nmis)
		KUNIT_ASSERT_TRUE(test, kvt_wait(&r->got));
	KUNIT_EXPECT_EQ(test, 0, r->concurrent);
	KUNIT_EXPECT_EQ(test, 0, r->in_nmi);
	return nmis;
}

static void events_from_nmis_are_not_lost_among_others(struct kunit *test)
{
	struct report *r = report_of_device(test, IB_EVENT_DEVICE_FATAL);
	struct report *other = report_of_device(test, IB_EVENT_PKEY_CHANGE);
	/* The limit keeps the queued events few, so that allocating them does not fail. */
	struct storm s = { .r = other, .ahead = 64 };
	u32 nmis;

	kvt_not_with_rt(test, "events from hard interrupts are merged");
	nmis = send_nmis(test, &s, r);
	KUNIT_EXPECT_LE(test, atomic_read(&r->heard), nmis);
	/* Events that were not reported from NMI are not merged. */
	while (atomic_read(&other->heard) < s.count)
		KUNIT_ASSERT_TRUE(test, kvt_wait(&other->got));
	KUNIT_EXPECT_EQ(test, s.count, atomic_read(&other->heard));
	KUNIT_EXPECT_EQ(test, 0, other->concurrent);
}

static void completions_from_nmis_are_not_lost_among_others(struct kunit *test)
{
	struct report *r = report_of_cq(test, fire_comp);
	struct storm s = { .r = r };
	u32 nmis = send_nmis(test, &s, r);

	KUNIT_EXPECT_LE(test, atomic_read(&r->heard), s.count + nmis);
}

/* CQs that are created and destroyed while NMIs report on them. */
struct life {
	struct ib_cq *cq;	/* the CQ that NMIs report on, or NULL */
	atomic_t inside;	/* NMIs that are reporting */
	bool there;		/* handlers may be called */
	int late;		/* calls of handlers while @there was false */
	atomic_t heard;		/* calls of handlers */
	int sent;		/* NMIs that found a CQ */
};

static void life_heard(struct life *l)
{
	if (!READ_ONCE(l->there))
		l->late++;
	atomic_inc(&l->heard);
}

static void life_comp(struct ib_cq *cq, void *context)
{
	life_heard(context);
}

static void life_event(struct ib_event *event, void *context)
{
	life_heard(context);
}

static void life_fire(void *arg)
{
	struct life *l = arg;
	struct ib_cq *cq;

	atomic_inc(&l->inside);
	/* Pairs with the barrier in life_end(): it sees @inside, or the CQ is not found here. */
	smp_mb__after_atomic();
	cq = READ_ONCE(l->cq);
	if (cq) {
		ib_cq_notify(cq);
		ib_cq_notify_event(cq, IB_EVENT_CQ_ERR);
		WRITE_ONCE(l->sent, l->sent + 1);
	}
	atomic_dec(&l->inside);
}

static int life_nmis_fn(void *arg)
{
	struct life *l = arg;

	while (!kvt_should_stop()) {
		kvt_run_in_nmi(kvt_other_cpu(), life_fire, l);
		cond_resched();
	}
	return 0;
}

/* Called in the driver's destroy_cq, after which the driver may not report on the CQ. */
static void life_end(struct ib_cq *cq, void *arg)
{
	struct life *l = arg;

	WRITE_ONCE(l->cq, NULL);
	/* Pairs with the barrier in life_fire(). */
	smp_mb();
	while (atomic_read(&l->inside))
		cpu_relax();
}

static struct ib_cq *make_plain(struct kunit *test, struct life *l)
{
	struct ib_cq_init_attr attr = { .cqe = CQ_SIZE };
	struct mock *m = test->priv;

	return ib_create_cq(m->ibdev, life_comp, life_event, l, &attr);
}

static struct ib_cq *make_of_lane(struct kunit *test, struct life *l)
{
	struct mock *m = test->priv;

	return ib_alloc_cq(m->ibdev, l, CQ_SIZE, 0, kvt_context(test));
}

static void come_and_go(struct kunit *test, struct life *l,
			struct ib_cq *(*make)(struct kunit *test, struct life *l))
{
	u32 rounds = kvt_count(LIFE_ROUNDS), i;
	struct kvt_thread *t;
	struct ib_cq *cq;
	int before;

	t = kvt_thread_start(test, kvt_other_cpu(), life_nmis_fn, l);
	for (i = 0; i < rounds; i++) {
		cq = KVT_PTR(test, make(test, l));
		mock_cq_on_destroy(cq, life_end, l);
		WRITE_ONCE(l->there, true);
		before = READ_ONCE(l->sent);
		WRITE_ONCE(l->cq, cq);
		/* Every other CQ is destroyed at about the time when an NMI finds it. */
		if (i % 2)
			KUNIT_EXPECT_TRUE(test, kvt_until(READ_ONCE(l->sent) != before));
		else
			udelay(i % 64);
		if (cq->lane)
			ib_free_cq(cq);
		else
			KUNIT_ASSERT_EQ(test, 0, ib_destroy_cq_user(cq, NULL));
		WRITE_ONCE(l->there, false);
	}
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_stop(t));
	KUNIT_EXPECT_EQ(test, 0, l->late);
	kunit_info(test, "%u CQs, %d reports, %d calls of handlers", rounds, l->sent,
		   atomic_read(&l->heard));
}

static void cqs_come_and_go_under_nmis(struct kunit *test)
{
	struct life *l = kvt_zalloc(test, sizeof(*l));

	come_and_go(test, l, make_plain);
	KUNIT_EXPECT_GT(test, atomic_read(&l->heard), 0);
}

static void polled_cqs_come_and_go_under_nmis(struct kunit *test)
{
	struct life *l = kvt_zalloc(test, sizeof(*l));

	come_and_go(test, l, make_of_lane);
}

static int core_nmi_init(struct kunit *test)
{
	kvt_nmi_up(test);
	test->priv = mock_up(test, "kvtm_a");
	return 0;
}

static struct kunit_case core_nmi_cases[] = {
	KUNIT_CASE(device_event_reaches_its_handler),
	KUNIT_CASE(port_event_reaches_its_handler),
	KUNIT_CASE(completion_reaches_its_handler),
	KUNIT_CASE_PARAM(completion_reaches_done, kvt_scheduled_context),
	KUNIT_CASE(cq_event_reaches_its_handler),
	KUNIT_CASE(qp_event_reaches_its_handler),
	KUNIT_CASE(srq_event_reaches_its_handler),
	KUNIT_CASE(event_of_a_dead_device_goes_nowhere),
	KUNIT_CASE(events_from_nmis_are_not_lost_among_others),
	KUNIT_CASE(completions_from_nmis_are_not_lost_among_others),
	KUNIT_CASE(cqs_come_and_go_under_nmis),
	KUNIT_CASE_PARAM(polled_cqs_come_and_go_under_nmis, kvt_scheduled_context),
	{}
};
KVT_SUITE(core_nmi, .init = core_nmi_init);
