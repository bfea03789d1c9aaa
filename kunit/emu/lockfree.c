// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting, polling and arming take no lock and allocate nothing.
 *
 * Messages are sent while lib/lock_watch.c counts each lock and each allocation; kvt_count()
 * scales their number. The code of kverbs and kverbs_emu itself must cause none at all,
 * in any context: in verbs calls, in the threads that execute and poll, in interrupts.
 *
 * Kernel functions that this code calls may take locks, such as the scheduler's to wake
 * a thread. Only the functions in the table below may be called; the locks they take
 * are printed, and their number is bounded.
 */
#include <linux/list.h>
#include <linux/mutex.h>

#include "emu/rig.h"
#include "lib/lock_watch.h"
#include "lib/objects.h"

/* Messages of each case, before they are scaled. */
#define MESSAGES	1000000ULL
#define SRQ_MESSAGES	500000ULL
#define LAYER_MESSAGES	200000ULL

/* Deep enough that the posting thread leaves some of the requests to a runner. */
#define DEPTH		64
#define BURST		(DEPTH / 2)
/* Completions polled at a time. */
#define POLL		8
#define LEN		64
/* Locks that the kernel may take for a message: two wake-ups and their timers. */
#define MAX_LOCKS	8

#define SENDER		0
#define RECEIVER	1

/* Kernel functions that may be called, by the beginning of their names, and why. */
static const struct {
	const char *name;
	const char *why;
} allowed[] = {
	{ "wake_up_process", "wakes a runner, or the thread of a queue" },
	{ "hrtimer_start_range_ns", "a requester that waits; moderation" },
	{ "hrtimer_try_to_cancel", "a requester that waits no more" },
	{ "irq_work_queue", "tells a consumer, from any context" },
	{ "queue_work_on", "starts a queue that is polled from a workqueue" },
	{ "mod_timer", "looks after a runner that may fall asleep, while another queue waits" },
	{ "irq_poll_sched", "starts a queue that is polled in softirq" },
	{ "irq_poll_complete", "the end of that" },
	{ "__wake_up", "tells who waits for news of a queue" },
	{ "wake_up_var", "tells who waits for a queue pair to stand still" },
	{ "complete", "tells who waits for a queue to be emptied" },
	{ "schedule", "a thread has nothing to do" },
	{ "__cond_resched", "a thread lets others run" },
	{ "__SCT__might_resched", "the same" },
	{ "__local_bh_enable_ip", "softirqs that waited run" },
	{ "__rcu_read_unlock", "after a preemption within a section" },
	{ "ret_from_", "the start of a thread" },
};

struct lockfree {
	struct watch w;
	struct rig *r;
	u64 count;
	u64 sent;
	u64 completed;
	u64 received;
	u64 failed;
};

KUNIT_DEFINE_ACTION_WRAPPER(watch_end, watch_stop, struct watch *);

/* Returns the module of this name that this one depends on, or NULL. */
static struct module *module_used(const char *name)
{
	struct module_use *use;

	list_for_each_entry(use, &THIS_MODULE->target_list, target_list)
		if (!strcmp(use->target->name, name))
			return use->target;
	return NULL;
}

static const char *why_allowed(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(allowed); i++)
		if (!strncmp(name, allowed[i].name, strlen(allowed[i].name)))
			return allowed[i].why;
	return NULL;
}

/* Checks and prints what the called kernel functions did. Returns their number of locks. */
static u64 report_places(struct kunit *test, struct watch *w)
{
	char name[KSYM_SYMBOL_LEN];
	struct watch_place *p;
	u64 locks = 0;

	for (p = w->place; p < w->place + WATCH_PLACES && p->addr; p++) {
		int n = atomic_read(&p->count[WATCH_LOCK]);
		const char *why;

		snprintf(name, sizeof(name), "%ps", (void *)p->addr);
		why = why_allowed(name);
		KUNIT_EXPECT_TRUE_MSG(test, why, "%s was called and took %d locks", name, n);
		KUNIT_EXPECT_EQ_MSG(test, 0, atomic_read(&p->count[WATCH_ALLOC]),
				    "%s was called and allocated", name);
		kunit_info(test, "%s: %d locks, %d of them waited for: %s", name, n,
			   atomic_read(&p->count[WATCH_CONTENDED]), why ?: "no reason");
		locks += n;
	}
	return locks;
}

static void expect_lock_free(struct kunit *test, struct lockfree *l)
{
	struct watch *w = &l->w;
	u64 locks;

	watch_stop(w);
	KUNIT_EXPECT_EQ_MSG(test, 0, atomic_read(&w->direct[WATCH_LOCK]), "the last by %ps",
			    (void *)w->direct_addr[WATCH_LOCK]);
	KUNIT_EXPECT_EQ_MSG(test, 0, atomic_read(&w->direct[WATCH_ALLOC]), "the last by %ps",
			    (void *)w->direct_addr[WATCH_ALLOC]);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->crowded));
	/* RCU read sections are seen by the probe for locks: this shows that it was active. */
	KUNIT_EXPECT_GT(test, atomic_read(&w->rcu), l->count / BURST);
	locks = report_places(test, w);
	kunit_info(test, "%llu messages: %d locks and %d allocations of ours, %llu locks of the kernel",
		   l->received, atomic_read(&w->direct[WATCH_LOCK]),
		   atomic_read(&w->direct[WATCH_ALLOC]), locks);
	KUNIT_EXPECT_LE(test, locks, MAX_LOCKS * l->count);
}

static struct lockfree *lockfree_new(struct kunit *test, u64 full)
{
	struct lockfree *l;

	if (!watch_possible(test))
		return NULL;
	l = kvt_zalloc(test, sizeof(*l));
	kvt_defer(test, watch_end, &l->w);
	l->count = kvt_count(full);
	l->r = rig_new(test, "emu0", "emu1");
	l->r->init.cap.max_send_wr = DEPTH;
	l->r->init.cap.max_recv_wr = DEPTH;
	l->w.mod[0] = module_used("kverbs");
	l->w.mod[1] = l->r->a.ibdev->ops.owner;
	KUNIT_ASSERT_NOT_NULL(test, l->w.mod[0]);
	KUNIT_ASSERT_NOT_NULL(test, l->w.mod[1]);
	return l;
}

/* --- the watch itself --- */

static DEFINE_SPINLOCK(seeded_lock);
static DEFINE_MUTEX(seeded_mutex);

static void own_spinlock(void)
{
	unsigned long flags;

	spin_lock_irqsave(&seeded_lock, flags);
	spin_unlock_irqrestore(&seeded_lock, flags);
}

static void own_mutex(void)
{
	mutex_lock(&seeded_mutex);
	mutex_unlock(&seeded_mutex);
}

static void own_allocation(void)
{
	kfree(kmalloc(LEN, GFP_ATOMIC));
}

static void in_hardirq_fn(void *arg)
{
	own_spinlock();
}

static void seeded_locks_and_allocations_are_seen(struct kunit *test)
{
	struct watch *w;

	if (!watch_possible(test))
		return;
	w = kvt_zalloc(test, sizeof(*w));
	kvt_defer(test, watch_end, w);
	w->mod[0] = THIS_MODULE;
	watch_start(test, w);
	own_spinlock();
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->direct[WATCH_LOCK]));
	own_mutex();
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&w->direct[WATCH_LOCK]));
	kvt_run_in_hardirq(in_hardirq_fn, NULL);
	KUNIT_EXPECT_EQ(test, 3, atomic_read(&w->direct[WATCH_LOCK]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->direct[WATCH_ALLOC]));
	own_allocation();
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->direct[WATCH_ALLOC]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&w->rcu));
	rcu_read_lock();
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&w->rcu));
	watch_stop(w);
}

/* In this thread, the kernel's locks are counted only from watch_enter() to watch_leave(). */
static void the_kernel_s_locks_are_seen_in_sections(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(c);
	struct watch *w;

	if (!watch_possible(test))
		return;
	w = kvt_zalloc(test, sizeof(*w));
	kvt_defer(test, watch_end, w);
	w->mod[0] = THIS_MODULE;
	watch_start(test, w);
	complete(&c);
	KUNIT_EXPECT_EQ(test, 0, w->place[0].addr);
	watch_enter(w, SENDER);
	complete(&c);
	watch_leave(w, SENDER);
	watch_stop(w);
	KUNIT_ASSERT_NE(test, 0, w->place[0].addr);
	KUNIT_EXPECT_GT(test, atomic_read(&w->place[0].count[WATCH_LOCK]), 0);
	KUNIT_EXPECT_GT(test, report_places(test, w), 0);
}

/* --- messages --- */

static int post_recv(struct lockfree *l, u64 n)
{
	struct rig_end *e = &l->r->b;
	struct ib_sge sge = rig_sge(e, n % DEPTH * LEN, LEN);
	struct ib_recv_wr wr = { .wr_id = n, .sg_list = &sge, .num_sge = 1 };

	if (e->srq)
		return WATCHED(&l->w, RECEIVER, ib_post_srq_recv(e->srq, &wr, NULL));
	return WATCHED(&l->w, RECEIVER, ib_post_recv(e->qp, &wr, NULL));
}

static int post_send(struct lockfree *l)
{
	struct ib_sge sge = rig_sge(&l->r->a, l->sent % DEPTH * LEN, LEN);
	struct ib_send_wr wr;

	rig_send_wr(&wr, l->sent, &sge, 1);
	return WATCHED(&l->w, SENDER, ib_post_send(l->r->a.qp, &wr, NULL));
}

static int poll(struct lockfree *l, int who, struct ib_cq *cq, struct ib_wc *wc)
{
	int got = WATCHED(&l->w, who, ib_poll_cq(cq, POLL, wc));
	int i;

	for (i = 0; i < got; i++)
		if (wc[i].status != IB_WC_SUCCESS)
			l->failed++;
	if (!got)
		WATCHED(&l->w, who, ib_req_notify_cq(cq, IB_CQ_NEXT_COMP |
						     IB_CQ_REPORT_MISSED_EVENTS));
	return got;
}

static int sender_fn(void *arg)
{
	struct lockfree *l = arg;
	struct ib_wc wc[POLL];

	while (l->completed < l->count && !kvt_should_stop()) {
		while (l->sent < l->count && l->sent - l->completed < DEPTH &&
		       l->sent - READ_ONCE(l->received) < DEPTH && !post_send(l))
			l->sent++;
		l->completed += poll(l, SENDER, l->r->a.scq, wc);
		cond_resched();
	}
	return 0;
}

static int receiver_fn(void *arg)
{
	struct lockfree *l = arg;
	struct ib_wc wc[POLL];
	int i, got;

	while (l->received < l->count && !kvt_should_stop()) {
		got = poll(l, RECEIVER, l->r->b.rcq, wc);
		for (i = 0; i < got; i++)
			if (post_recv(l, wc[i].wr_id))
				l->failed++;
		WRITE_ONCE(l->received, l->received + got);
		cond_resched();
	}
	return 0;
}

/* Joins a thread, waiting for as long as *@progress changes. */
static bool finished(struct kvt_thread *t, const u64 *progress)
{
	u64 before;

	do {
		before = READ_ONCE(*progress);
		if (kvt_thread_join(t))
			return true;
	} while (READ_ONCE(*progress) != before);
	return false;
}

static void run_messages(struct kunit *test, struct lockfree *l)
{
	struct kvt_thread *sender, *receiver;
	int i;

	rig_start(test, l->r);
	for (i = 0; i < DEPTH; i++)
		KUNIT_ASSERT_EQ(test, 0, post_recv(l, i));
	watch_start(test, &l->w);
	receiver = kvt_thread_start(test, kvt_other_cpu(), receiver_fn, l);
	sender = kvt_thread_start(test, 0, sender_fn, l);
	KUNIT_EXPECT_TRUE(test, finished(receiver, &l->received));
	KUNIT_EXPECT_TRUE(test, finished(sender, &l->completed));
	expect_lock_free(test, l);
	KUNIT_EXPECT_EQ(test, 0, l->failed);
	KUNIT_EXPECT_EQ(test, l->count, l->received);
}

static void queue_pairs_are_lock_free(struct kunit *test)
{
	struct lockfree *l = lockfree_new(test, MESSAGES);

	if (l)
		run_messages(test, l);
}

static void shared_receive_queues_are_lock_free(struct kunit *test)
{
	struct lockfree *l = lockfree_new(test, SRQ_MESSAGES);

	if (!l)
		return;
	l->r->b.srq = kvt_srq(test, l->r->b.pd, DEPTH, 1);
	run_messages(test, l);
}

/* --- CQs of ib_alloc_cq(), polled by the core --- */

/* Messages whose completions are handled by done() callbacks. */
struct layer {
	struct lockfree l;	/* counts of the messages; @l.w is the watch */
	struct ib_cqe send;	/* cqe of the sends */
	struct ib_cqe recv;	/* cqe of the receives */
	struct completion done;	/* completed when all sends have completed */
};

static int layer_send(struct layer *y)
{
	struct ib_sge sge = rig_sge(&y->l.r->a, 0, LEN);
	struct ib_send_wr wr;

	rig_send_wr(&wr, 0, &sge, 1);
	wr.wr_cqe = &y->send;
	return ib_post_send(y->l.r->a.qp, &wr, NULL);
}

static int layer_recv(struct layer *y)
{
	struct ib_sge sge = rig_sge(&y->l.r->b, 0, LEN);
	struct ib_recv_wr wr = { .wr_cqe = &y->recv, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(y->l.r->b.qp, &wr, NULL);
}

static void layer_send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct layer *y = container_of(wc->wr_cqe, struct layer, send);
	struct lockfree *l = &y->l;

	if (wc->status != IB_WC_SUCCESS)
		l->failed++;
	if (l->sent < l->count) {
		l->sent++;
		if (layer_send(y))
			l->failed++;
	}
	WRITE_ONCE(l->completed, l->completed + 1);
	if (l->completed == l->count)
		complete(&y->done);
}

static void layer_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct layer *y = container_of(wc->wr_cqe, struct layer, recv);

	if (wc->status == IB_WC_SUCCESS) {
		WRITE_ONCE(y->l.received, y->l.received + 1);
		if (layer_recv(y))
			y->l.failed++;
	}
}

static struct ib_cq *layer_cq(struct kunit *test, struct layer *y, struct ib_device *ibdev,
			      enum ib_poll_context ctx)
{
	return KVT_OWN(test, ib_alloc_cq(ibdev, y, 2 * DEPTH, 0, ctx), kvt_end_alloc_cq);
}

static void layer_up(struct kunit *test, struct layer *y, enum ib_poll_context ctx)
{
	struct rig *r = y->l.r;
	int i;

	y->send.done = layer_send_done;
	y->recv.done = layer_recv_done;
	init_completion(&y->done);
	r->a.scq = layer_cq(test, y, r->a.ibdev, ctx);
	r->b.rcq = layer_cq(test, y, r->b.ibdev, ctx);
	rig_start(test, r);
	for (i = 0; i < DEPTH; i++)
		KUNIT_ASSERT_EQ(test, 0, layer_recv(y));
}

static void layer_down(struct layer *y)
{
	ib_drain_qp(y->l.r->b.qp);
	ib_drain_qp(y->l.r->a.qp);
}

static void layer_run(struct kunit *test, enum ib_poll_context ctx)
{
	struct lockfree *l = lockfree_new(test, LAYER_MESSAGES);
	struct layer *y;
	u64 before;
	int i;

	if (!l)
		return;
	y = kvt_zalloc(test, sizeof(*y));
	y->l = *l;
	kvt_defer(test, watch_end, &y->l.w);
	layer_up(test, y, ctx);
	watch_start(test, &y->l.w);
	y->l.sent = BURST;
	for (i = 0; i < BURST; i++)
		KUNIT_EXPECT_EQ(test, 0, layer_send(y));
	do {
		before = READ_ONCE(y->l.completed);
	} while (!kvt_wait(&y->done) && READ_ONCE(y->l.completed) != before);
	expect_lock_free(test, &y->l);
	layer_down(y);
	KUNIT_EXPECT_EQ(test, 0, y->l.failed);
	KUNIT_EXPECT_EQ(test, y->l.count, y->l.completed);
	KUNIT_EXPECT_EQ(test, y->l.count, y->l.received);
}

static void polling_in_softirq_is_lock_free(struct kunit *test)
{
	layer_run(test, IB_POLL_SOFTIRQ);
}

static void polling_in_a_workqueue_is_lock_free(struct kunit *test)
{
	layer_run(test, IB_POLL_WORKQUEUE);
}

static void polling_in_a_thread_is_lock_free(struct kunit *test)
{
	layer_run(test, IB_POLL_THREAD);
}

static struct kunit_case emu_lockfree_cases[] = {
	KUNIT_CASE(seeded_locks_and_allocations_are_seen),
	KUNIT_CASE(the_kernel_s_locks_are_seen_in_sections),
	KUNIT_CASE_SLOW(queue_pairs_are_lock_free),
	KUNIT_CASE_SLOW(shared_receive_queues_are_lock_free),
	KUNIT_CASE_SLOW(polling_in_softirq_is_lock_free),
	KUNIT_CASE_SLOW(polling_in_a_workqueue_is_lock_free),
	KUNIT_CASE_SLOW(polling_in_a_thread_is_lock_free),
	{}
};
KVT_SUITE(emu_lockfree);

MODULE_DESCRIPTION("KUnit: posting, polling and arming take no lock");
MODULE_LICENSE("GPL");
