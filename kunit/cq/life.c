// SPDX-License-Identifier: GPL-2.0-only
/*
 * The life of CQs: freed while completions come from hard interrupt; what a done() may
 * do; and completions, notifications and drivers that break the rules.
 */
#include <linux/hrtimer.h>
#include <linux/tracepoint.h>
#include <kverbs/completion.h>
#include <trace/events/printk.h>

#include "../cq/cq.h"
#include "lib/client.h"
#include "cq/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

#define STORM_CQS	6
#define STORM_NS	(20 * NSEC_PER_USEC)
/* Where the storm shares one CPU with what handles it. */
#define STORM_LONE_NS	(2 * NSEC_PER_MSEC)
#define STORM_BURST	24
#define FREERS		3
#define ROUNDS		40

/* A CQ in a storm. */
struct gust {
	struct ib_cqe cqe;	/* wr_cqe of all its completions */
	struct ib_cq *cq;	/* the CQ */
	bool gone;		/* the CQ was freed */
	atomic_t inside;	/* done() calls that are running */
	atomic_t wrong;	/* how often done() ran beside another one, or after the CQ was freed */
	atomic_t seen;		/* completions handled */
};

/* Completions from hard interrupt. */
struct storm {
	struct mock *m;			/* the device */
	raw_spinlock_t lock;	/* guards @cq; held while a CQ is notified, as a driver would */
	struct ib_cq *cq[STORM_CQS];	/* CQs that the device still notifies */
	struct gust gust[STORM_CQS];	/* the CQs, as the case sees them */
	struct hrtimer timer;		/* hard interrupt that pushes completions */
	bool stop;			/* the timer is to stop */
};

static void gust_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct gust *g = container_of(wc->wr_cqe, struct gust, cqe);

	if (atomic_inc_return(&g->inside) != 1 || READ_ONCE(g->gone))
		atomic_inc(&g->wrong);
	atomic_inc(&g->seen);
	atomic_dec(&g->inside);
}

static ktime_t storm_period(void)
{
	return num_online_cpus() > 1 ? STORM_NS : STORM_LONE_NS;
}

/* Pushes completions to each CQ, and notifies the CQ even if it is not armed. */
static enum hrtimer_restart storm_timer(struct hrtimer *timer)
{
	struct storm *s = container_of(timer, struct storm, timer);
	struct ib_wc wc = {};
	unsigned long flags;
	int i, n;

	raw_spin_lock_irqsave(&s->lock, flags);
	for (i = 0; i < STORM_CQS; i++) {
		if (!s->cq[i])
			continue;
		wc.wr_cqe = &s->gust[i].cqe;
		for (n = 0; n < STORM_BURST; n++)
			mock_cq_push(s->cq[i], &wc, false);
		ib_cq_notify(s->cq[i]);
	}
	raw_spin_unlock_irqrestore(&s->lock, flags);
	if (READ_ONCE(s->stop))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, storm_period());
	return HRTIMER_RESTART;
}

static void storm_forget(struct ib_cq *cq, void *arg)
{
	struct storm *s = arg;
	unsigned long flags;
	int i;

	raw_spin_lock_irqsave(&s->lock, flags);
	for (i = 0; i < STORM_CQS; i++)
		if (s->cq[i] == cq)
			s->cq[i] = NULL;
	raw_spin_unlock_irqrestore(&s->lock, flags);
}

static void storm_free(struct storm *s, int i)
{
	struct gust *g = &s->gust[i];

	if (!g->cq)
		return;
	ib_free_cq(g->cq);
	WRITE_ONCE(g->gone, true);
	g->cq = NULL;
	if (atomic_read(&g->inside))
		atomic_inc(&g->wrong);
}

static void storm_fill(struct kunit *test, struct storm *s, enum ib_poll_context ctx)
{
	struct ib_cq *cq;
	int i;

	for (i = 0; i < STORM_CQS; i++) {
		s->gust[i].cqe.done = gust_done;
		cq = KVT_PTR(test, ib_alloc_cq(s->m->ibdev, NULL, 64, 0, ctx));
		mock_cq_on_destroy(cq, storm_forget, s);
		WRITE_ONCE(s->gust[i].gone, false);
		s->gust[i].cq = cq;
		raw_spin_lock_irq(&s->lock);
		s->cq[i] = cq;
		raw_spin_unlock_irq(&s->lock);
	}
}

static void storm_end(void *arg)
{
	struct storm *s = arg;
	int i;

	WRITE_ONCE(s->stop, true);
	hrtimer_cancel(&s->timer);
	for (i = 0; i < STORM_CQS; i++)
		storm_free(s, i);
	mock_unregister(s->m);
}

static struct storm *storm_new(struct kunit *test)
{
	struct storm *s = kvt_zalloc(test, sizeof(*s));

	s->m = mock_up(test, "kvtm_a");
	raw_spin_lock_init(&s->lock);
	hrtimer_init(&s->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	s->timer.function = storm_timer;
	kvt_defer(test, storm_end, s);
	return s;
}

static void storm_begin(struct storm *s)
{
	hrtimer_start(&s->timer, storm_period(), HRTIMER_MODE_REL_HARD);
}

/* Waits until each CQ has handled @more further completions. */
static bool storm_felt(struct storm *s, int more)
{
	int i;

	for (i = 0; i < STORM_CQS; i++) {
		int from = atomic_read(&s->gust[i].seen);

		if (!kvt_until(atomic_read(&s->gust[i].seen) - from >= more))
			return false;
	}
	return true;
}

static void expect_calm(struct kunit *test, struct storm *s)
{
	int i;

	for (i = 0; i < STORM_CQS; i++)
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->gust[i].wrong));
}

struct freer {
	struct storm *s;
	int first;
};

static int freer_fn(void *arg)
{
	struct freer *f = arg;
	int i;

	for (i = f->first; i < STORM_CQS; i += FREERS)
		storm_free(f->s, i);
	return 0;
}

static void cqs_of_a_lane_are_freed_in_a_storm(struct kunit *test)
{
	struct storm *s = storm_new(test);
	struct kvt_thread *t[FREERS];
	struct freer f[FREERS];
	u64 n, rounds = kvt_count(ROUNDS);
	int i;

	storm_begin(s);
	for (n = 0; n < rounds; n++) {
		storm_fill(test, s, kvt_context(test));
		KUNIT_ASSERT_TRUE(test, storm_felt(s, n % 4 ? 100 : 0));
		for (i = 0; i < FREERS; i++) {
			f[i].s = s;
			f[i].first = i;
			t[i] = kvt_thread_start(test, i % 2 ? kvt_other_cpu() : 0, freer_fn, &f[i]);
		}
		for (i = 0; i < FREERS; i++)
			KUNIT_ASSERT_TRUE(test, kvt_thread_join(t[i]));
	}
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->m->live[MOCK_CQ]));
	expect_calm(test, s);
}

static void remove_frees(struct kvt_client *c, struct ib_device *ibdev)
{
	struct storm *s = c->arg;
	int i;

	for (i = 0; i < STORM_CQS; i++)
		storm_free(s, i);
}

static void cqs_are_freed_while_the_device_goes(struct kunit *test)
{
	struct kvt_client *c = kvt_client_new(test, "free", kvt_trace_new(test));
	struct storm *s = storm_new(test);

	c->on_remove = remove_frees;
	c->arg = s;
	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	storm_fill(test, s, kvt_context(test));
	storm_begin(s);
	KUNIT_EXPECT_TRUE(test, storm_felt(s, 1000));
	mock_unregister(s->m);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->m->live[MOCK_CQ]));
	expect_calm(test, s);
}

/* --- what a done() may do -------------------------------------------------- */

static void free_other(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	recorder_free(rec->arg);
}

static void done_may_free_another_cq_of_its_lane(struct kunit *test)
{
	struct cq_hold *h = cq_hold_of_param(test);
	struct recorder *rec = recorder_held(test, h);
	struct recorder *idle = recorder_held(test, h);
	struct recorder *full = recorder_held(test, h);
	struct item *items = items_new(test, rec, 2);
	struct item *others = items_new(test, full, 40);

	recorder_expect_calls(rec, 1, free_other, idle);
	KUNIT_ASSERT_TRUE(test, item_push(&items[0]));
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	KUNIT_EXPECT_NULL(test, idle->cq);

	/* Both CQs are queued when the lane goes on; the one whose done() frees comes first. */
	rec->arg = full;
	rec->expect = 2;
	KUNIT_EXPECT_TRUE(test, cq_hold_begin(h));
	KUNIT_EXPECT_TRUE(test, item_push(&items[1]));
	items_push_each(test, others, 40, NULL);
	KUNIT_EXPECT_TRUE(test, cq_hold_end(h));
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	KUNIT_EXPECT_NULL(test, full->cq);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&full->seen));
	recorder_expect_clean(test, rec);
}

static void done_may_free_another_cq_of_its_own(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct recorder *other = recorder_up(test, rec->m, IB_POLL_DIRECT, 0);

	recorder_call_once(test, rec, free_other, other);
	KUNIT_EXPECT_NULL(test, other->cq);
}

/* A completion whose memory done() frees. */
struct parcel {
	struct ib_cqe cqe;	/* wr_cqe of the completion */
	struct recorder *rec;	/* recorder that counts it */
};

static void parcel_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct parcel *p = container_of(wc->wr_cqe, struct parcel, cqe);
	struct recorder *rec = p->rec;

	memset(p, 0x6b, sizeof(*p));
	kfree(p);
	if (atomic_inc_return(&rec->seen) == rec->expect)
		complete(&rec->all);
}

static void done_may_free_what_completed(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct ib_wc wc = {};
	struct parcel *p;
	int i;

	rec->expect = 100;
	for (i = 0; i < 100; i++) {
		p = KVT_PTR(test, kmalloc(sizeof(*p), GFP_KERNEL));
		p->cqe.done = parcel_done;
		p->rec = rec;
		wc.wr_cqe = &p->cqe;
		KUNIT_ASSERT_TRUE(test, mock_cq_push(rec->cq, &wc, false));
	}
	KUNIT_ASSERT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
}

static void post_next(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc)
{
	struct item *it = container_of(wc->wr_cqe, struct item, cqe);
	struct ib_send_wr wr = { .wr_cqe = &it->cqe, .opcode = IB_WR_SEND };

	if (++it->n < rec->expect && ib_post_send(rec->arg, &wr, NULL))
		rec->disorder++;
}

static void done_may_post_again(struct kunit *test)
{
	struct recorder *rec = recorder_of_param(test);
	struct ib_qp *qp = recorder_qp(test, rec);
	struct item *it = items_new(test, rec, 1);

	KUNIT_EXPECT_EQ(test, 0, kvt_qp_to_err(qp));
	recorder_expect_calls(rec, 1000, post_next, qp);
	KUNIT_EXPECT_TRUE(test, item_push(it));
	KUNIT_EXPECT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

/* --- invalid completions, failed creation, drivers that err ----------------- */

/* Counts lines of the kernel log that contain two strings. */
struct lines {
	const char *a;	/* one string */
	const char *b;	/* the other string */
	atomic_t seen;	/* number of such lines */
};

static void lines_probe(void *data, const char *text, size_t len)
{
	struct lines *l = data;

	if (strnstr(text, l->a, len) && strnstr(text, l->b, len))
		atomic_inc(&l->seen);
}

static void lines_end(void *arg)
{
	unregister_trace_console(lines_probe, arg);
	tracepoint_synchronize_unregister();
}

static struct lines *lines_watch(struct kunit *test, const char *a, const char *b)
{
	struct lines *l = kvt_zalloc(test, sizeof(*l));

	l->a = a;
	l->b = b;
	KUNIT_ASSERT_EQ(test, 0, register_trace_console(lines_probe, l));
	kvt_defer(test, lines_end, l);
	return l;
}

static void undone(struct kunit *test, enum ib_poll_context ctx, struct ib_cqe *cqe,
		   enum ib_wc_status status, const char *what, int reports)
{
	struct recorder *rec = recorder_up(test, mock_up(test, "kvtm_a"), ctx, 0);
	struct ib_qp *qp = recorder_qp(test, rec);
	struct ib_wc wc = { .wr_cqe = cqe, .status = status, .qp = qp };
	struct item *items = items_new(test, rec, 1);
	struct lines *with_qp, *with_owner;
	char *text = kvt_zalloc(test, 32);

	snprintf(text, 32, "qp %u", qp->res.id);
	with_qp = lines_watch(test, what, text);
	/* The CQ is allocated in rig.c, so its owner is the module kverbs_kunit. */
	with_owner = lines_watch(test, what, "kverbs_kunit");
	rec->expect = 1;
	KUNIT_EXPECT_TRUE(test, mock_cq_push(rec->cq, &wc, false));
	KUNIT_EXPECT_TRUE(test, item_push(&items[0]));
	KUNIT_EXPECT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, reports, atomic_read(&with_qp->seen));
	KUNIT_EXPECT_EQ(test, reports, atomic_read(&with_owner->seen));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
}

static struct ib_cqe no_done;

/* Reports are limited to ten in five seconds, so only this case runs in every context. */
static void null_done_is_reported_with_qp_and_owner(struct kunit *test)
{
	undone(test, kvt_context(test), &no_done, IB_WC_SUCCESS, "without done()", 1);
}

static void null_done_is_reported_of_an_error_too(struct kunit *test)
{
	undone(test, IB_POLL_SOFTIRQ, &no_done, IB_WC_WR_FLUSH_ERR, "without done()", 1);
}

static void null_wr_cqe_is_reported_with_qp_and_owner(struct kunit *test)
{
	undone(test, IB_POLL_SOFTIRQ, NULL, IB_WC_SUCCESS, "without wr_cqe", 1);
}

static void null_wr_cqe_of_an_error_is_no_news(struct kunit *test)
{
	undone(test, IB_POLL_SOFTIRQ, NULL, IB_WC_WR_FLUSH_ERR, "without", 0);
}

/* A driver that leaves the completions of a QP that is destroyed: they name freed memory. */
static void null_wr_cqe_of_a_qp_that_is_gone_names_the_owner_of_the_cq(struct kunit *test)
{
	struct recorder *rec = recorder_up(test, mock_up(test, "kvtm_a"), IB_POLL_SOFTIRQ, 0);
	struct item *items = items_new(test, rec, 1);
	struct ib_wc wc = { .status = IB_WC_SUCCESS };
	struct lines *reports;

	wc.qp = recorder_qp(test, rec);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(wc.qp));
	rcu_barrier();
	reports = lines_watch(test, "kverbs_kunit: dropping a completion of qp 0", "without wr_cqe");
	rec->expect = 1;
	KUNIT_EXPECT_TRUE(test, mock_cq_push(rec->cq, &wc, false));
	KUNIT_EXPECT_TRUE(test, item_push(&items[0]));
	KUNIT_EXPECT_TRUE(test, recorder_settle(rec));
	recorder_expect_clean(test, rec);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&reports->seen));
}

/* A create_cq method that notifies the CQ and then fails. */
static int notify_and_fail(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			   struct uverbs_attr_bundle *attrs)
{
	ib_cq_notify(cq);
	ib_cq_notify_event(cq, IB_EVENT_CQ_ERR);
	return -EIO;
}

static int poll_nothing(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	return 0;
}

static int arm_nothing(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	return 0;
}

static struct mock *notifier_up(struct kunit *test)
{
	struct mock *m = mock_new(test);

	m->ops.create_cq = notify_and_fail;
	m->ops.poll_cq = poll_nothing;
	m->ops.req_notify_cq = arm_nothing;
	mock_alloc(test, m);
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_a"));
	return m;
}

/* KASAN reports a lane that still polls the CQ after its creation has failed. */
static void cq_that_is_not_made_is_polled_no_more(struct kunit *test)
{
	struct mock *m = notifier_up(test);
	int i;

	for (i = 0; i < ROUNDS; i++)
		KUNIT_ASSERT_EQ(test, -EIO,
				PTR_ERR_OR_ZERO(ib_alloc_cq(m->ibdev, NULL, 4, 0,
							    kvt_context(test))));
}

/* A CQ whose driver claims one completion more than it was asked for. */
struct greedy {
	struct ib_cqe cqe;		/* wr_cqe of all completions */
	int given;			/* completions that poll_cq has filled in */
	atomic_t dones;			/* calls of done() */
	struct completion handled;	/* completed by the last call of done() */
};

static int poll_too_many(struct ib_cq *cq, int num, struct ib_wc *wc)
{
	struct greedy *g = cq->cq_context;
	int i;

	if (g->given)
		return 0;
	g->given = num;
	for (i = 0; i < num; i++)
		wc[i] = (struct ib_wc) { .wr_cqe = &g->cqe };
	return num + 1;
}

static void greedy_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct greedy *g = cq->cq_context;

	if (atomic_inc_return(&g->dones) == g->given)
		complete(&g->handled);
}

/* The CQ is notified as mainline drivers do it: by a call of its comp_handler. */
static void driver_that_gives_too_many_is_not_believed(struct kunit *test)
{
	struct greedy *g = kvt_zalloc(test, sizeof(*g));
	struct mock *m = mock_new(test);
	struct ib_cq *cq;

	g->cqe.done = greedy_done;
	init_completion(&g->handled);
	m->ops.poll_cq = poll_too_many;
	m->ops.req_notify_cq = arm_nothing;
	mock_alloc(test, m);
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_a"));
	cq = KVT_PTR(test, ib_alloc_cq(m->ibdev, g, 64, 0, kvt_context(test)));
	cq->comp_handler(cq, cq->cq_context);
	if (kvt_context(test) == IB_POLL_DIRECT)
		ib_process_cq_direct(cq, -1);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&g->handled));
	KUNIT_EXPECT_EQ(test, g->given, cq->stats.completions);
	ib_free_cq(cq);
	KUNIT_EXPECT_EQ(test, g->given, atomic_read(&g->dones));
}

static void count_call(struct ib_cq *cq, void *calls)
{
	atomic_inc(calls);
}

/* The completion handler is not called after the creation of the CQ has failed. */
static void cq_that_is_not_made_is_told_of_no_more(struct kunit *test)
{
	struct ib_cq_init_attr attr = { .cqe = 4 };
	struct mock *m = notifier_up(test);
	atomic_t calls = ATOMIC_INIT(0);
	int i, before;

	for (i = 0; i < ROUNDS; i++) {
		KUNIT_ASSERT_EQ(test, -EIO,
				PTR_ERR_OR_ZERO(ib_create_cq(m->ibdev, count_call, NULL, &calls,
							     &attr)));
		before = atomic_read(&calls);
		/* Any interrupt handler that was running has returned after this. */
		synchronize_rcu();
		KUNIT_ASSERT_EQ(test, before, atomic_read(&calls));
	}
}

/* As in ksmbd's error path, which does not look at the result. */
static void cq_of_the_layer_is_destroyed_by_the_other_call_too(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = KVT_PTR(test, ib_alloc_pd(m->ibdev, 0));
	struct ib_cq *cq;
	struct ib_qp *qp;

	cq = KVT_PTR(test, ib_alloc_cq(m->ibdev, NULL, 16, 0, kvt_context(test)));
	qp = cq_rig_qp(test, pd, cq, cq, NULL);
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_destroy_cq_user(cq, NULL));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_cq_user(cq, NULL));
	ib_dealloc_pd(pd);
	/* Nothing is left that the device would tell of. */
	mock_unregister(m);
}

static struct kunit_case cq_life_cases[] = {
	KUNIT_CASE_PARAM(cqs_of_a_lane_are_freed_in_a_storm, kvt_scheduled_context),
	KUNIT_CASE_PARAM(cqs_are_freed_while_the_device_goes, kvt_scheduled_context),
	KUNIT_CASE_PARAM(done_may_free_another_cq_of_its_lane, kvt_sleeping_context),
	KUNIT_CASE_PARAM(done_may_free_another_cq_of_its_own, kvt_sleeping_context),
	KUNIT_CASE_PARAM(done_may_free_what_completed, kvt_any_context),
	KUNIT_CASE_PARAM(cq_of_the_layer_is_destroyed_by_the_other_call_too, kvt_any_context),
	KUNIT_CASE_PARAM(cq_that_is_not_made_is_polled_no_more, kvt_any_context),
	KUNIT_CASE(cq_that_is_not_made_is_told_of_no_more),
	KUNIT_CASE_PARAM(driver_that_gives_too_many_is_not_believed, kvt_any_context),
	KUNIT_CASE_PARAM(done_may_post_again, kvt_any_context),
	KUNIT_CASE_PARAM(null_done_is_reported_with_qp_and_owner, kvt_any_context),
	KUNIT_CASE(null_done_is_reported_of_an_error_too),
	KUNIT_CASE(null_wr_cqe_is_reported_with_qp_and_owner),
	KUNIT_CASE(null_wr_cqe_of_an_error_is_no_news),
	KUNIT_CASE(null_wr_cqe_of_a_qp_that_is_gone_names_the_owner_of_the_cq),
	{}
};
KVT_SUITE(cq_life);

MODULE_DESCRIPTION("KUnit: the life of completion queues");
MODULE_LICENSE("GPL");
