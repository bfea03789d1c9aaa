// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software HCA's completion queue in isolation: the driver's source is included here and
 * runs on a mock device, and the cases write the entries themselves.
 */
#include <linux/hrtimer.h>
#include <linux/irq_work.h>

#include "lib/mock.h"
#include "../drivers/emu/queue/cq.c"
#include "../drivers/emu/queue/moderation.c"

/* No process has a queue here. */
const struct emu_user_ops *emu_user;

/* Whether the CQ layer arms the CQ, and not its consumer. */
static bool layer_arms;

static int queue_req_notify(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	return emu_req_notify_cq(ibcq, flags, layer_arms);
}

/* No faults are injected here. */
DEFINE_STATIC_KEY_FALSE(emu_faulty);

bool emu_fault_in_cqe(struct emu_device *edev)
{
	return false;
}

bool emu_fault_in_notify(struct emu_device *edev)
{
	return false;
}

bool emu_fault_in_alloc(struct emu_device *edev)
{
	return false;
}

#define QUEUE_SIZE	64
#define TIMING		"/sys/module/kverbs/parameters/cq_timing"

#define INTERRUPTS	50000
/* Fewer, as each race needs two CPUs at once, which the host may not provide. */
#define RACES		25000
#define FLOOD		200000
/* Moderation period, in microseconds. */
#define PERIOD		20000
/* A period that must not end during the case; emu_modify_cq() would refuse it. */
#define LONG_PERIOD	U16_MAX

/* A CQ and its consumer. */
struct queue {
	struct mock *m;		/* the device */
	struct ib_cq *cq;	/* the CQ */
	struct emu_cq *emu;	/* the driver's structure of @cq */
	struct emu_qp *qp;	/* QP that all entries are of */
	atomic_t calls;		/* calls of the completion handler */
	struct completion called;	/* completed by each call */
	ktime_t at;		/* time of the last call */
	atomic_t events;	/* IB_EVENT_CQ_ERR events of the CQ */
	bool poll;		/* the handler polls the CQ until it is empty, and arms it again */
	atomic_t polled;	/* entries that the handler has polled */
};

static void queue_poll_and_arm(struct queue *q)
{
	struct ib_wc wc[8];
	int n;

	do {
		do {
			n = ib_poll_cq(q->cq, ARRAY_SIZE(wc), wc);
			atomic_add(n, &q->polled);
		} while (n);
	} while (ib_req_notify_cq(q->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

static void queue_called(struct ib_cq *cq, void *context)
{
	struct queue *q = context;

	q->at = ktime_get();
	atomic_inc(&q->calls);
	if (q->poll)
		queue_poll_and_arm(q);
	complete(&q->called);
}

static void queue_event(struct ib_event *event, void *context)
{
	struct queue *q = context;

	if (event->event == IB_EVENT_CQ_ERR)
		atomic_inc(&q->events);
}

static void queue_end(void *arg)
{
	struct queue *q = arg;

	if (q->cq)
		ib_destroy_cq(q->cq);
	q->cq = NULL;
}

static struct mock *queue_device(struct kunit *test)
{
	struct mock *m = mock_new(test);

	m->ops.create_cq = emu_create_cq;
	m->ops.destroy_cq = emu_destroy_cq;
	m->ops.poll_cq = emu_poll_cq;
	m->ops.peek_cq = emu_peek_cq;
	m->ops.req_notify_cq = queue_req_notify;
	m->ops.modify_cq = emu_modify_cq;
	m->ops.resize_cq = emu_resize_cq;
	m->ops.size_ib_cq = sizeof(struct emu_cq);
	mock_start(test, m, "kvtm_q");
	return m;
}

static struct queue *queue_new(struct kunit *test, int size)
{
	struct ib_cq_init_attr attr = { .cqe = size };
	struct queue *q = kvt_zalloc(test, sizeof(*q));

	init_completion(&q->called);
	q->m = queue_device(test);
	q->qp = kvt_zalloc(test, sizeof(*q->qp));
	q->cq = KVT_PTR(test, ib_create_cq(q->m->ibdev, queue_called, queue_event, q, &attr));
	q->emu = to_ecq(q->cq);
	kvt_defer(test, queue_end, q);
	return q;
}

/* Writes an entry, as the driver's engine does. Returns false if there is no room. */
static bool queue_push(struct queue *q, u64 id, bool solicited)
{
	struct emu_cqe *cqe;
	u32 pos;

	preempt_disable();
	cqe = emu_cq_begin(q->emu, &pos);
	if (cqe) {
		cqe->wr_id = id;
		cqe->status = IB_WC_SUCCESS;
		cqe->opcode = IB_WC_RECV;
		cqe->qp = &q->qp->ibqp;
		emu_cq_end(q->emu, cqe, pos, solicited);
	}
	preempt_enable();
	return cqe;
}

static void queue_push_arg(void *arg)
{
	queue_push(arg, 0, false);
}

/* Expects that the handler was called @want times, and that no further call is pending. */
static void queue_expect_calls(struct kunit *test, struct queue *q, int want)
{
	irq_work_sync(&q->cq->notify.work);
	KUNIT_EXPECT_EQ(test, want, atomic_read(&q->calls));
}

static int queue_arm(struct queue *q)
{
	return ib_req_notify_cq(q->cq, IB_CQ_NEXT_COMP);
}

static int queue_arm_missed(struct queue *q)
{
	return ib_req_notify_cq(q->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS);
}

/* As the CQ layer arms what it polls. */
static int queue_layer_arms(struct queue *q, enum ib_cq_notify_flags how)
{
	int missed;

	layer_arms = true;
	missed = ib_req_notify_cq(q->cq, how | IB_CQ_REPORT_MISSED_EVENTS);
	layer_arms = false;
	return missed;
}

static int queue_layer_arms_next(struct queue *q)
{
	return queue_layer_arms(q, IB_CQ_NEXT_COMP);
}

static int queue_drain(struct queue *q)
{
	struct ib_wc wc;
	int n = 0;

	while (ib_poll_cq(q->cq, 1, &wc) == 1)
		n++;
	return n;
}

/* Arming */

static void armed_queue_notifies_once(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	queue_expect_calls(test, q, 0);
	KUNIT_EXPECT_EQ(test, 1, queue_drain(q));
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	kvt_run_in_hardirq(queue_push_arg, q);
	kvt_run_in_hardirq(queue_push_arg, q);
	queue_expect_calls(test, q, 1);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&q->emu->arm));
}

static void what_is_missed_is_told_and_not_notified(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	KUNIT_EXPECT_GT(test, queue_layer_arms(q, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&q->emu->arm));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 2, true));
	queue_expect_calls(test, q, 0);
	KUNIT_EXPECT_GT(test, queue_layer_arms(q, IB_CQ_SOLICITED), 0);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&q->emu->arm));
	KUNIT_EXPECT_EQ(test, 2, queue_drain(q));
	KUNIT_EXPECT_EQ(test, 0, queue_layer_arms(q, IB_CQ_NEXT_COMP));
	KUNIT_EXPECT_EQ(test, EMU_ARM_NEXT, atomic_read(&q->emu->arm));
}

static void consumer_that_ignores_what_it_missed_is_notified(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	KUNIT_EXPECT_GT(test, queue_arm_missed(q), 0);
	KUNIT_ASSERT_TRUE(test, queue_push(q, 2, false));
	queue_expect_calls(test, q, 1);
	KUNIT_EXPECT_GT(test, ib_req_notify_cq(q->cq, IB_CQ_SOLICITED |
					       IB_CQ_REPORT_MISSED_EVENTS), 0);
	KUNIT_ASSERT_TRUE(test, queue_push(q, 3, true));
	queue_expect_calls(test, q, 2);
}

static void only_ones_own_arming_is_taken_back(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	/* This arms for completions to come: the one that is there already does not notify. */
	KUNIT_EXPECT_EQ(test, 0, queue_arm(q));
	KUNIT_EXPECT_GT(test, queue_layer_arms(q, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_GT(test, queue_layer_arms(q, IB_CQ_SOLICITED), 0);
	KUNIT_EXPECT_EQ(test, EMU_ARM_NEXT, atomic_read(&q->emu->arm));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 2, false));
	queue_expect_calls(test, q, 1);
}

/* A producer whose completions race with the arming of the CQ. */
struct race {
	struct queue *q;	/* the CQ */
	u64 rounds;		/* number of rounds */
	u64 turn;		/* the last round that the producer may begin */
	u64 done;		/* the last round that the producer has ended */
};

static int race_fn(void *arg)
{
	struct race *r = arg;
	u64 i;

	for (i = 1; i <= r->rounds; i++) {
		/* Pairs with the release in the case. */
		if (!kvt_until(smp_load_acquire(&r->turn) >= i))
			return -ETIMEDOUT;
		if (!queue_push(r->q, i, false))
			return -ENOSPC;
		/* Pairs with the acquire in the case. */
		smp_store_release(&r->done, i);
	}
	return 0;
}

/* Who arms, and how. */
static const struct armer {
	const char *name;
	int (*arm)(struct queue *q);
	bool both;	/* may be told of a completion, and notified of it as well */
} armers[] = {
	{ "the CQ layer", queue_layer_arms_next, false },
	{ "a consumer", queue_arm_missed, true },
};

KUNIT_ARRAY_PARAM_DESC(armer, armers, name);

/* Outcomes of completions that raced with an arming. */
struct meeting {
	const struct armer *by;
	u64 both;	/* reported as missed, and notified as well */
	u64 neither;	/* neither reported as missed nor notified: wrong */
	u64 told;	/* reported as missed */
};

static void meeting_add(struct meeting *m, struct queue *q, int missed, int calls_before)
{
	int calls;

	irq_work_sync(&q->cq->notify.work);
	calls = atomic_read(&q->calls) - calls_before;
	m->both += missed && calls;
	m->neither += !missed && !calls;
	m->told += !!missed;
	queue_drain(q);
	/* What a consumer was told of is armed for the next completion: that is not this round's. */
	atomic_set(&q->emu->arm, 0);
}

static void meeting_expect(struct kunit *test, struct meeting *m, struct queue *q)
{
	kunit_info(test, "%llu told, %d notified", m->told, atomic_read(&q->calls));
	if (!m->by->both)
		KUNIT_EXPECT_EQ(test, 0, m->both);
	KUNIT_EXPECT_EQ(test, 0, m->neither);
}

/* A producer in hard interrupt context. */
struct interrupt {
	struct hrtimer timer;	/* timer whose callback writes an entry */
	struct queue *q;	/* the CQ */
	bool done;		/* the entry was written */
};

static enum hrtimer_restart interrupt_fn(struct hrtimer *timer)
{
	struct interrupt *in = container_of(timer, struct interrupt, timer);

	queue_push(in->q, 0, false);
	WRITE_ONCE(in->done, true);
	return HRTIMER_NORESTART;
}

static void either_told_or_notified_by_an_interrupt(struct kunit *test)
{
	u64 i, rounds = kvt_count(INTERRUPTS);
	struct meeting m = { .by = test->param_value };
	struct interrupt in = {};
	u32 seed = kvt_seed(test, "completions that interrupt the arming", rounds);

	kvt_stay_on_first_cpu();
	in.q = queue_new(test, QUEUE_SIZE);
	hrtimer_init_on_stack(&in.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	in.timer.function = interrupt_fn;
	for (i = 0; i < rounds; i++) {
		int missed, calls = atomic_read(&in.q->calls);

		in.done = false;
		hrtimer_start(&in.timer, ns_to_ktime(kvt_rand(&seed) % 65536),
			      HRTIMER_MODE_REL_PINNED_HARD);
		ndelay(kvt_rand(&seed) % 65536);
		missed = m.by->arm(in.q);
		while (!READ_ONCE(in.done))
			cpu_relax();
		meeting_add(&m, in.q, missed, calls);
	}
	hrtimer_cancel(&in.timer);
	destroy_hrtimer_on_stack(&in.timer);
	meeting_expect(test, &m, in.q);
}

static void either_told_or_notified(struct kunit *test)
{
	struct race r = { .rounds = kvt_count(RACES) };
	struct queue *q = queue_new(test, QUEUE_SIZE);
	struct meeting m = { .by = test->param_value };
	struct kvt_thread *t;
	u64 i;

	kvt_need_two_cpus(test);
	kvt_print_length(test, "completions that race with the arming", r.rounds);
	kvt_stay_on_first_cpu();
	r.q = q;
	t = kvt_thread_start(test, kvt_other_cpu(), race_fn, &r);
	for (i = 1; i <= r.rounds && kvt_thread_running(t); i++) {
		int missed, calls = atomic_read(&q->calls);

		/* Pairs with the acquire in race_fn(). */
		smp_store_release(&r.turn, i);
		ndelay(i % 4096);
		missed = m.by->arm(q);
		/* Pairs with the release in race_fn(). */
		while (smp_load_acquire(&r.done) < i && kvt_thread_running(t))
			cpu_relax();
		meeting_add(&m, q, missed, calls);
	}
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(t));
	meeting_expect(test, &m, q);
}

/* Peeking */

static void peek_counts_what_is_being_written(struct kunit *test)
{
	struct queue *q = queue_new(test, 4);
	struct emu_cqe *cqe;
	u32 pos;

	KUNIT_EXPECT_EQ(test, 0, emu_peek_cq(q->cq, 10));
	cqe = emu_cq_begin(q->emu, &pos);
	KUNIT_EXPECT_EQ(test, 1, emu_peek_cq(q->cq, 10));
	KUNIT_EXPECT_EQ(test, 0, queue_drain(q));
	cqe->qp = &q->qp->ibqp;
	cqe->opcode = IB_WC_RECV;
	emu_cq_end(q->emu, cqe, pos, false);
	KUNIT_EXPECT_EQ(test, 1, emu_peek_cq(q->cq, 10));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 2, false));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 3, false));
	KUNIT_EXPECT_EQ(test, 3, emu_peek_cq(q->cq, 10));
	KUNIT_EXPECT_EQ(test, 2, emu_peek_cq(q->cq, 2));
	KUNIT_EXPECT_EQ(test, 0, emu_peek_cq(q->cq, -1));
	KUNIT_EXPECT_EQ(test, 3, queue_drain(q));
	KUNIT_EXPECT_EQ(test, 0, emu_peek_cq(q->cq, 10));
}

/* Overrun */

static void overrun_is_told_once_and_each_loss_counted(struct kunit *test)
{
	struct queue *q = queue_new(test, 4);
	struct ib_wc wc;
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_TRUE(test, queue_push(q, i, false));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&q->emu->lost));
	for (i = 1; i <= 3; i++) {
		KUNIT_EXPECT_FALSE(test, queue_push(q, 9, false));
		irq_work_sync(&q->cq->notify.work);
		KUNIT_EXPECT_EQ(test, i, atomic_read(&q->emu->lost));
		KUNIT_EXPECT_EQ(test, 1, atomic_read(&q->events));
	}
	/* Entries written before the overrun can be polled, but no new ones can be written. */
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, 1, ib_poll_cq(q->cq, 1, &wc));
		KUNIT_EXPECT_EQ(test, i, wc.wr_id);
	}
	KUNIT_EXPECT_FALSE(test, queue_push(q, 9, false));
	KUNIT_EXPECT_EQ(test, 4, atomic_read(&q->emu->lost));
	irq_work_sync(&q->cq->notify.work);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&q->events));
}

/* No producer spins, whatever has happened to a ring. */
static void producer_of_a_broken_ring_gives_up(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	atomic_set(&q->emu->in->tail, 1);
	KUNIT_EXPECT_FALSE(test, queue_push(q, 1, false));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&q->emu->lost));
	irq_work_sync(&q->cq->notify.work);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&q->events));
	atomic_set(&q->emu->in->tail, 0);
}

/* Time stamps */

static void completions_are_stamped_while_somebody_measures(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);
	u64 before, after;
	struct ib_wc wc;

	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(TIMING, "Y"));
	before = ktime_get_mono_fast_ns();
	KUNIT_EXPECT_TRUE(test, queue_push(q, 2, false));
	after = ktime_get_mono_fast_ns();
	KUNIT_EXPECT_EQ(test, 1, ib_poll_cq(q->cq, 1, &wc));
	KUNIT_EXPECT_EQ(test, 0, wc.timestamp);
	KUNIT_EXPECT_EQ(test, 1, ib_poll_cq(q->cq, 1, &wc));
	KUNIT_EXPECT_GE(test, wc.timestamp, before);
	KUNIT_EXPECT_LE(test, wc.timestamp, after);
	KUNIT_EXPECT_EQ(test, 0, kvt_write_file(TIMING, "N"));
}

/* Moderation */

static void queue_moderate(struct kunit *test, struct queue *q, u16 count, u16 period)
{
	if (period == LONG_PERIOD)
		WRITE_ONCE(q->emu->moderation, count | (u32)period << 16);
	else
		KUNIT_ASSERT_EQ(test, 0, emu_modify_cq(q->cq, count, period));
}

static void moderation_has_limits(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	KUNIT_EXPECT_EQ(test, -EINVAL, emu_modify_cq(q->cq, EMU_MAX_MOD_COUNT + 1, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, emu_modify_cq(q->cq, 0, EMU_MAX_MOD_PERIOD + 1));
	KUNIT_EXPECT_EQ(test, 0, q->emu->moderation);
	KUNIT_EXPECT_EQ(test, 0, emu_modify_cq(q->cq, EMU_MAX_MOD_COUNT, EMU_MAX_MOD_PERIOD));
}

static void so_many_completions_are_waited_for(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);
	int round, i;

	queue_moderate(test, q, 4, 0);
	for (round = 1; round <= 3; round++) {
		KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
		for (i = 0; i < 3; i++)
			kvt_run_in_hardirq(queue_push_arg, q);
		queue_expect_calls(test, q, round - 1);
		KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
		queue_expect_calls(test, q, round);
		/* The CQ is not armed any more: no notification. */
		KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
		queue_expect_calls(test, q, round);
		KUNIT_EXPECT_EQ(test, 5, queue_drain(q));
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&q->emu->arm));
	}
}

static void completions_before_the_arming_do_not_count(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);
	int i;

	queue_moderate(test, q, 3, 0);
	for (i = 0; i < 5; i++)
		KUNIT_ASSERT_TRUE(test, queue_push(q, i, false));
	KUNIT_EXPECT_EQ(test, 0, queue_arm(q));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 5, false));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 6, false));
	queue_expect_calls(test, q, 0);
	KUNIT_ASSERT_TRUE(test, queue_push(q, 7, false));
	queue_expect_calls(test, q, 1);
}

static void entry_reserved_before_the_arming_is_not_held_back(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);
	struct emu_cqe *cqe;
	u32 pos;

	queue_moderate(test, q, 3, 0);
	cqe = emu_cq_begin(q->emu, &pos);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	cqe->qp = &q->qp->ibqp;
	cqe->opcode = IB_WC_RECV;
	emu_cq_end(q->emu, cqe, pos, false);
	queue_expect_calls(test, q, 1);
}

static void full_queue_waits_for_no_more(struct kunit *test)
{
	struct queue *q = queue_new(test, 4);
	int i;

	queue_moderate(test, q, 100, 0);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_TRUE(test, queue_push(q, i, false));
	queue_expect_calls(test, q, 0);
	KUNIT_ASSERT_TRUE(test, queue_push(q, 3, false));
	queue_expect_calls(test, q, 1);
}

static void what_asks_for_attention_is_not_held_back(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	queue_moderate(test, q, 10, LONG_PERIOD);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
	queue_expect_calls(test, q, 0);
	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, true));
	queue_expect_calls(test, q, 1);
	/* Armed for solicited completions only: others do not begin a wait. */
	queue_drain(q);
	KUNIT_EXPECT_EQ(test, 0, ib_req_notify_cq(q->cq, IB_CQ_SOLICITED));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 2, false));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&q->emu->arm) & EMU_ARM_DEFERRED);
	KUNIT_ASSERT_TRUE(test, queue_push(q, 3, true));
	queue_expect_calls(test, q, 2);
}

static void expect_after(struct kunit *test, struct queue *q, ktime_t pushed)
{
	KUNIT_ASSERT_TRUE(test, kvt_wait(&q->called));
	KUNIT_EXPECT_GE(test, ktime_us_delta(q->at, pushed), PERIOD);
}

static void period_runs_from_the_first_completion(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);
	ktime_t first, due;

	queue_moderate(test, q, 0, PERIOD);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&q->emu->timer));
	first = ktime_get();
	KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
	due = atomic64_read(&q->emu->due);
	KUNIT_EXPECT_EQ(test, due, hrtimer_get_expires(&q->emu->timer));
	KUNIT_EXPECT_GE(test, ktime_us_delta(due, first), PERIOD);
	KUNIT_EXPECT_LE(test, ktime_us_delta(due, ktime_get()), PERIOD);
	while (ktime_us_delta(ktime_get(), first) < PERIOD / 2)
		cond_resched();
	/* The next completion does not restart the period. */
	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	KUNIT_EXPECT_EQ(test, due, atomic64_read(&q->emu->due));
	expect_after(test, q, first);
	queue_expect_calls(test, q, 1);
	KUNIT_EXPECT_EQ(test, 2, queue_drain(q));
}

static void whichever_comes_first(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);
	ktime_t first, second;

	queue_moderate(test, q, 2, PERIOD);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	first = ktime_get();
	KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&q->called));
	/* The timer is still queued for the first wait, and must not cut the next one short. */
	queue_drain(q);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	while (ktime_us_delta(ktime_get(), first) < PERIOD / 2)
		cond_resched();
	second = ktime_get();
	KUNIT_ASSERT_TRUE(test, queue_push(q, 2, false));
	expect_after(test, q, second);
	queue_expect_calls(test, q, 2);
}

static void timer_finds_nothing_and_ends(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	queue_moderate(test, q, 2, PERIOD / 10);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&q->called));
	queue_drain(q);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	kvt_until(atomic_read(&q->emu->arm) == EMU_ARM_NEXT);
	KUNIT_EXPECT_EQ(test, EMU_ARM_NEXT, atomic_read(&q->emu->arm));
	queue_expect_calls(test, q, 1);
}

static const u16 offs[][2] = { { 0, 0 }, { 1, 0 }, { 1, PERIOD } };

static void off_name(const u16 (*off)[2], char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "count %u, period %u", (*off)[0], (*off)[1]);
}

KUNIT_ARRAY_PARAM(off, offs, off_name);

static void off_notifies_at_once(struct kunit *test)
{
	const u16 *off = test->param_value;
	struct queue *q = queue_new(test, QUEUE_SIZE);

	queue_moderate(test, q, 10, 0);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
	queue_expect_calls(test, q, 0);
	/* The change sends the notification that was deferred. */
	queue_moderate(test, q, off[0], off[1]);
	queue_expect_calls(test, q, 1);
	queue_drain(q);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	queue_expect_calls(test, q, 2);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&q->emu->timer));
}

static void queue_pair_that_goes_leaves_nothing_held_back(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);
	struct ib_wc wc;

	queue_moderate(test, q, 10, LONG_PERIOD);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&q->emu->timer));
	emu_cq_forget_qp(q->emu, q->qp);
	KUNIT_EXPECT_FALSE(test, hrtimer_active(&q->emu->timer));
	queue_expect_calls(test, q, 1);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&q->emu->arm));
	KUNIT_EXPECT_EQ(test, 0, ib_poll_cq(q->cq, 1, &wc));
	/* Moderation still works for the CQ afterwards. */
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&q->emu->timer));
}

/* Entries in a row from @pos on that a poller steps over at once. */
static u32 queue_run(struct queue *q, u32 pos)
{
	struct ib_qp *qp = emu_cq_entry(q->emu->in, pos)->qp;

	return emu_cq_is_struck(qp) ? emu_cq_struck_run(qp) : 0;
}

static void what_is_struck_out_is_one_step(struct kunit *test)
{
	static const char order[] = "abccccccccccccccccccccbcccccccca";
	struct queue *q = queue_new(test, QUEUE_SIZE);
	struct emu_qp *own = KVT_PTR(test, kunit_kcalloc(test, 3, sizeof(*own), GFP_KERNEL));
	u32 at, i;
	struct ib_wc wc[4];

	/* So that the ring wraps among them. */
	for (i = 0; i < QUEUE_SIZE - 10; i++)
		KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
	KUNIT_ASSERT_EQ(test, QUEUE_SIZE - 10, queue_drain(q));
	at = atomic_read(&q->emu->in->tail);
	for (i = 0; order[i]; i++) {
		q->qp = &own[order[i] - 'a'];
		KUNIT_ASSERT_TRUE(test, queue_push(q, i, false));
	}

	emu_cq_forget_qp(q->emu, &own[2]);
	KUNIT_EXPECT_EQ(test, 0, queue_run(q, at + 1));
	KUNIT_EXPECT_EQ(test, 20, queue_run(q, at + 2));
	KUNIT_EXPECT_EQ(test, 1, queue_run(q, at + 21));
	KUNIT_EXPECT_EQ(test, 8, queue_run(q, at + 23));
	emu_cq_forget_qp(q->emu, &own[1]);
	KUNIT_EXPECT_EQ(test, 0, queue_run(q, at));
	KUNIT_EXPECT_EQ(test, 30, queue_run(q, at + 1));
	KUNIT_EXPECT_EQ(test, 29, queue_run(q, at + 2));

	KUNIT_ASSERT_EQ(test, 2, ib_poll_cq(q->cq, ARRAY_SIZE(wc), wc));
	KUNIT_EXPECT_EQ(test, 0, wc[0].wr_id);
	KUNIT_EXPECT_EQ(test, 31, wc[1].wr_id);
	KUNIT_EXPECT_PTR_EQ(test, &own[0].ibqp, wc[1].qp);
	KUNIT_EXPECT_EQ(test, 0, ib_poll_cq(q->cq, ARRAY_SIZE(wc), wc));
}

static void missed_takes_back_what_is_held(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	queue_moderate(test, q, 10, PERIOD / 10);
	/* As if the completion had come between the arming and the check for missed ones. */
	atomic_set(&q->emu->arm, EMU_ARM_NEXT);
	KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
	atomic_andnot(EMU_ARM_NEXT, &q->emu->arm);
	KUNIT_EXPECT_GT(test, queue_layer_arms(q, IB_CQ_NEXT_COMP), 0);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&q->emu->arm) & ~EMU_ARM_TIMER);
	queue_drain(q);
	/* The next completion is a first one again, and starts the timer. */
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 1, false));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&q->called));
	queue_expect_calls(test, q, 1);
}

static void destroy_with_a_timer_queued(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);

	queue_moderate(test, q, 0, LONG_PERIOD);
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	KUNIT_ASSERT_TRUE(test, queue_push(q, 0, false));
	KUNIT_EXPECT_TRUE(test, hrtimer_active(&q->emu->timer));
	queue_end(q);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&q->calls));
}

/* Completions while the moderation keeps changing: each must be notified. */
struct flood {
	struct queue *q;
	u64 count;
	u32 seed;
};

/* Sets moderation off, or with a period: with a count alone, a wait may never end. */
static void flood_modify(struct flood *f, u32 r)
{
	if (r & 16)
		emu_modify_cq(f->q->cq, r & 15, 1 + (r >> 5 & 63));
	else
		emu_modify_cq(f->q->cq, 0, 0);
}

static int flood_fn(void *arg)
{
	struct flood *f = arg;
	u32 state = f->seed;
	u64 i;

	for (i = 1; i <= f->count; i++) {
		u32 r = kvt_rand(&state);

		/* As in the case itself, no changes in the second half. */
		if (!(r % 16) && i < f->count / 2)
			flood_modify(f, r >> 4);
		else if (i == f->count / 2)
			emu_modify_cq(f->q->cq, 8, 50);
		/* At most 7 earlier ones are not polled yet, so each depends on a notification. */
		if (!kvt_until(atomic_read(&f->q->polled) >= (int)i - 1 - (int)(r >> 16 & 7)))
			return -ETIMEDOUT;
		if (!queue_push(f->q, i, false))
			return -ENOSPC;
	}
	return 0;
}

static void nothing_is_held_back_for_ever(struct kunit *test)
{
	struct queue *q = queue_new(test, QUEUE_SIZE);
	struct flood f = { .q = q, .count = kvt_count(FLOOD) };
	struct kvt_thread *t;
	u32 state = kvt_seed(test, "completions with changing moderation", f.count);

	f.seed = state;
	q->poll = true;
	KUNIT_EXPECT_EQ(test, 0, queue_arm_missed(q));
	t = kvt_thread_start(test, kvt_other_cpu(), flood_fn, &f);
	/* A change sends what is deferred, so the second half must do without changes. */
	while (kvt_thread_running(t) && atomic_read(&q->polled) < f.count / 4) {
		flood_modify(&f, kvt_rand(&state));
		cond_resched();
	}
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_result(t));
	kvt_until(atomic_read(&q->polled) >= f.count);
	KUNIT_EXPECT_EQ(test, f.count, atomic_read(&q->polled));
	kunit_info(test, "%d notifications", atomic_read(&q->calls));
	KUNIT_EXPECT_LE(test, atomic_read(&q->calls), f.count);
}

static struct kunit_case emu_cq_ring_cases[] = {
	KUNIT_CASE(armed_queue_notifies_once),
	KUNIT_CASE(what_is_missed_is_told_and_not_notified),
	KUNIT_CASE(consumer_that_ignores_what_it_missed_is_notified),
	KUNIT_CASE(only_ones_own_arming_is_taken_back),
	KUNIT_CASE_PARAM(either_told_or_notified_by_an_interrupt, armer_gen_params),
	KUNIT_CASE_PARAM(either_told_or_notified, armer_gen_params),
	KUNIT_CASE(peek_counts_what_is_being_written),
	KUNIT_CASE(overrun_is_told_once_and_each_loss_counted),
	KUNIT_CASE(producer_of_a_broken_ring_gives_up),
	KUNIT_CASE(completions_are_stamped_while_somebody_measures),
	KUNIT_CASE(moderation_has_limits),
	KUNIT_CASE(so_many_completions_are_waited_for),
	KUNIT_CASE(completions_before_the_arming_do_not_count),
	KUNIT_CASE(entry_reserved_before_the_arming_is_not_held_back),
	KUNIT_CASE(full_queue_waits_for_no_more),
	KUNIT_CASE(what_asks_for_attention_is_not_held_back),
	KUNIT_CASE(period_runs_from_the_first_completion),
	KUNIT_CASE(whichever_comes_first),
	KUNIT_CASE(timer_finds_nothing_and_ends),
	KUNIT_CASE_PARAM(off_notifies_at_once, off_gen_params),
	KUNIT_CASE(queue_pair_that_goes_leaves_nothing_held_back),
	KUNIT_CASE(what_is_struck_out_is_one_step),
	KUNIT_CASE(missed_takes_back_what_is_held),
	KUNIT_CASE(destroy_with_a_timer_queued),
	KUNIT_CASE(nothing_is_held_back_for_ever),
	{}
};
KVT_SUITE(emu_cq_ring);

MODULE_DESCRIPTION("KUnit: the software HCA's completion queue alone");
MODULE_LICENSE("GPL");
