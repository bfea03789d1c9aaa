// SPDX-License-Identifier: GPL-2.0-only
/*
 * Helpers shared by the suites of the CQ layer.
 */
#include <linux/list.h>

#include "../cq/cq.h"
#include "cq/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

static bool in_right_context(enum ib_poll_context ctx)
{
	switch (ctx) {
	case IB_POLL_DIRECT:
		return in_task();
	case IB_POLL_SOFTIRQ:
		return in_serving_softirq() && !in_hardirq();
	case IB_POLL_THREAD:
		return in_task() && (current->flags & PF_KTHREAD) &&
		       !(current->flags & PF_WQ_WORKER);
	default:
		return in_task() && (current->flags & PF_WQ_WORKER);
	}
}

static void item_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct recorder *rec = it->rec;

	if (atomic_inc_return(&rec->inside) != 1)
		rec->concurrent++;
	if (it->n != rec->next[it->producer])
		rec->disorder++;
	/* Producers and waiters read @next and @dones concurrently. */
	WRITE_ONCE(rec->next[it->producer], rec->next[it->producer] + 1);
	if (!in_right_context(rec->ctx))
		rec->wrong_context++;
	WRITE_ONCE(it->dones, it->dones + 1);
	if (rec->on_done)
		rec->on_done(rec, cq, wc);
	atomic_dec(&rec->inside);
	if (atomic_inc_return(&rec->seen) == rec->expect)
		complete(&rec->all);
}

/**
 * recorder_free() - free the CQ before the end of the case
 * @rec: the recorder
 */
void recorder_free(struct recorder *rec)
{
	if (rec->cq)
		ib_free_cq(rec->cq);
	rec->cq = NULL;
}
EXPORT_SYMBOL_GPL(recorder_free);

static void recorder_end(void *arg)
{
	recorder_free(arg);
}

/**
 * recorder_up() - create a CQ whose completions are recorded
 * @test: the running case
 * @m: the device
 * @ctx: the polling context
 * @vector: the completion vector
 *
 * Return: the recorder; the CQ is freed at the end of the case.
 */
struct recorder *recorder_up(struct kunit *test, struct mock *m, enum ib_poll_context ctx,
			     int vector)
{
	struct recorder *rec = kvt_zalloc(test, sizeof(*rec));
	struct ib_cq *cq;

	init_completion(&rec->all);
	init_completion(&rec->rearmed);
	rec->m = m;
	rec->ctx = ctx;
	cq = KVT_PTR(test, ib_alloc_cq(m->ibdev, rec, CQ_RIG_SIZE, vector, ctx));
	rec->cq = cq;
	kvt_defer(test, recorder_end, rec);
	return rec;
}
EXPORT_SYMBOL_GPL(recorder_up);

/**
 * recorder_of_param() - create a device, and a CQ in the case's polling context
 * @test: the running case
 *
 * Return: the recorder.
 */
struct recorder *recorder_of_param(struct kunit *test)
{
	return recorder_up(test, mock_up(test, "kvtm_a"), kvt_context(test), 0);
}
EXPORT_SYMBOL_GPL(recorder_of_param);

/**
 * recorder_settle() - wait until recorder.expect completions have been handled
 * @rec: the recorder
 *
 * Polls the CQ if its context is IB_POLL_DIRECT.
 *
 * Return: true if they have been, in time.
 */
bool recorder_settle(struct recorder *rec)
{
	if (rec->ctx != IB_POLL_DIRECT)
		return kvt_wait(&rec->all);
	while (ib_process_cq_direct(rec->cq, -1) > 0)
		;
	return atomic_read(&rec->seen) == rec->expect;
}
EXPORT_SYMBOL_GPL(recorder_settle);

/**
 * recorder_expect_clean() - expect all completions, once each, in order and in context
 * @test: the running case
 * @rec: the recorder
 */
void recorder_expect_clean(struct kunit *test, struct recorder *rec)
{
	KUNIT_EXPECT_EQ(test, rec->expect, atomic_read(&rec->seen));
	KUNIT_EXPECT_EQ(test, 0, rec->concurrent);
	KUNIT_EXPECT_EQ(test, 0, rec->disorder);
	KUNIT_EXPECT_EQ(test, 0, rec->wrong_context);
}
EXPORT_SYMBOL_GPL(recorder_expect_clean);

/**
 * item_init() - prepare a completion to be pushed
 * @it: the completion
 * @rec: the recorder of its CQ
 * @producer: number of the producer that pushes it
 * @n: its number among the producer's completions
 */
void item_init(struct item *it, struct recorder *rec, u8 producer, u32 n)
{
	it->cqe.done = item_done;
	it->rec = rec;
	it->producer = producer;
	it->n = n;
	it->dones = 0;
}
EXPORT_SYMBOL_GPL(item_init);

/**
 * items_new() - allocate completions of producer 0
 * @test: the running case
 * @rec: the recorder of their CQ
 * @n: how many
 *
 * Return: an array of @n items, freed at the end of the case.
 */
struct item *items_new(struct kunit *test, struct recorder *rec, u32 n)
{
	struct item *items = KVT_PTR(test, kunit_kcalloc(test, n, sizeof(*items), GFP_KERNEL));
	u32 i;

	for (i = 0; i < n; i++)
		item_init(&items[i], rec, 0, i);
	return items;
}
EXPORT_SYMBOL_GPL(items_new);

/**
 * item_push_of() - push a completion of a QP into the CQ
 * @it: the completion
 * @qp: its QP
 *
 * Context: any.
 * Return: false if the CQ is full.
 */
bool item_push_of(struct item *it, struct ib_qp *qp)
{
	struct ib_wc wc = { .wr_cqe = &it->cqe, .status = IB_WC_SUCCESS, .qp = qp };

	return mock_cq_push(it->rec->cq, &wc, false);
}
EXPORT_SYMBOL_GPL(item_push_of);

/**
 * item_push() - push a completion without a QP into the CQ
 * @it: the completion
 *
 * Context: any.
 * Return: false if the CQ is full.
 */
bool item_push(struct item *it)
{
	return item_push_of(it, NULL);
}
EXPORT_SYMBOL_GPL(item_push);

/**
 * items_push() - push several completions with one notification of the CQ
 * @items: the completions
 * @n: how many
 *
 * Return: false if the CQ had no room for all of them.
 */
bool items_push(struct item *items, u32 n)
{
	struct ib_wc wc = {};
	u32 i;

	for (i = 0; i < n - 1; i++) {
		wc.wr_cqe = &items[i].cqe;
		if (!mock_cq_push_quiet(items[i].rec->cq, &wc))
			return false;
	}
	return item_push(&items[i]);
}
EXPORT_SYMBOL_GPL(items_push);

/**
 * items_push_each() - push several completions, each with a notification of its own
 * @test: the running case, which fails if the CQ has no room
 * @items: the completions
 * @n: how many
 * @qp: their QP, or NULL
 */
void items_push_each(struct kunit *test, struct item *items, u32 n, struct ib_qp *qp)
{
	u32 i;

	for (i = 0; i < n; i++)
		KUNIT_EXPECT_TRUE(test, item_push_of(&items[i], qp));
}
EXPORT_SYMBOL_GPL(items_push_each);

/**
 * cq_gate_pass() - wait in a done() until the gate opens, asleep if its context may sleep
 * @g: the gate
 */
void cq_gate_pass(struct kvt_gate *g)
{
	if (in_serving_softirq())
		kvt_gate_pass(g);
	else
		kvt_gate_sleep(g);
}
EXPORT_SYMBOL_GPL(cq_gate_pass);

static void held_done(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	cq_gate_pass(rec->arg);
}

static int hold_fn(void *arg)
{
	struct cq_hold *h = arg;

	item_push(h->item);
	if (h->rec->ctx == IB_POLL_DIRECT)
		ib_process_cq_direct(h->rec->cq, -1);
	return 0;
}

/**
 * cq_hold_new() - prepare to block a lane inside a done()
 * @test: the running case, which is bound to the first CPU
 * @m: the device
 * @ctx: the polling context
 *
 * Return: the hold. The case is skipped if there is only one CPU.
 */
struct cq_hold *cq_hold_new(struct kunit *test, struct mock *m, enum ib_poll_context ctx)
{
	struct cq_hold *h;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	h = kvt_zalloc(test, sizeof(*h));
	kvt_gate_init(&h->g);
	h->rec = recorder_up(test, m, ctx, kvt_other_cpu());
	/* In a work queue, another runner would take over from one that is held up. */
	h->rec->cq->lane->watched = false;
	recorder_expect_calls(h->rec, 1, held_done, &h->g);
	h->item = items_new(test, h->rec, 1);
	h->pusher = kvt_thread_new(test, kvt_other_cpu(), hold_fn, h);
	return h;
}
EXPORT_SYMBOL_GPL(cq_hold_new);

/**
 * cq_hold_begin() - push the completion whose done() blocks the lane, and wait for the done()
 * @h: the hold
 *
 * Return: true if the done() is blocked at the gate.
 */
bool cq_hold_begin(struct cq_hold *h)
{
	kvt_thread_go(h->pusher);
	return kvt_wait(&h->g.entered);
}
EXPORT_SYMBOL_GPL(cq_hold_begin);

/**
 * cq_hold_end() - unblock the lane
 * @h: the hold
 *
 * Return: true if it was still blocked, and its done() has returned.
 */
bool cq_hold_end(struct cq_hold *h)
{
	kvt_gate_open(&h->g);
	/* The pusher polls the CQ itself: it must not be freed before the pusher returns. */
	if (h->rec->ctx == IB_POLL_DIRECT && !kvt_thread_join(h->pusher))
		return false;
	/* Else do not join: the lane may keep the pusher's CPU busy until the case ends. */
	return kvt_wait(&h->rec->all) && h->g.in_time;
}
EXPORT_SYMBOL_GPL(cq_hold_end);

/**
 * cq_rig_qp() - create a QP in state INIT; the case destroys it
 * @test: the running case
 * @pd: its PD
 * @scq: its send CQ
 * @rcq: its receive CQ
 * @srq: its SRQ, or NULL
 *
 * Return: the QP.
 */
struct ib_qp *cq_rig_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *scq,
			struct ib_cq *rcq, struct ib_srq *srq)
{
	struct ib_qp_init_attr init = {
		.send_cq = scq, .recv_cq = rcq, .srq = srq, .qp_type = IB_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = srq ? 0 : 16,
			 .max_send_sge = 1, .max_recv_sge = srq ? 0 : 1 },
	};
	struct ib_qp *qp = KVT_PTR(test, ib_create_qp(pd, &init));

	KUNIT_EXPECT_EQ(test, 0, kvt_qp_to_init(qp, 1));
	return qp;
}
EXPORT_SYMBOL_GPL(cq_rig_qp);

/**
 * cq_rig_rest() - wait until the lane that polls a CQ is at rest
 * @cq: the CQ
 *
 * Context: process.
 * Return: true if it is, in time.
 */
bool cq_rig_rest(struct ib_cq *cq)
{
	/* Pairs with the atomic_set_release() in ib_cq_lane_idle(). */
	return kvt_until(!atomic_read_acquire(&cq->lane->active));
}
EXPORT_SYMBOL_GPL(cq_rig_rest);

/**
 * cq_rig_tune() - set a numeric module parameter of kverbs until the case ends
 * @test: the running case
 * @name: the parameter
 * @value: the new value
 */
void cq_rig_tune(struct kunit *test, const char *name, unsigned int value)
{
	char path[64], text[16];

	snprintf(path, sizeof(path), "/sys/module/kverbs/parameters/%s", name);
	snprintf(text, sizeof(text), "%u", value);
	kvt_set_file(test, path, text);
}
EXPORT_SYMBOL_GPL(cq_rig_tune);

/* wait_warn_ms in cases which wait for the messages rather than for a time. */
#define SOON_MS		20

/**
 * cq_rig_warn_soon() - have the log tell soon what a thread waits for, until the case ends
 * @test: the case
 */
void cq_rig_warn_soon(struct kunit *test)
{
	cq_rig_tune(test, "wait_warn_ms", SOON_MS);
}
EXPORT_SYMBOL_GPL(cq_rig_warn_soon);
