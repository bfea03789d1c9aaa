// SPDX-License-Identifier: GPL-2.0-only
/*
 * One connection of the software HCA, posted to and polled concurrently by threads and by
 * timers in hard interrupt on two CPUs. No message and no completion may be lost,
 * duplicated or overtaken by a later one of the same poster.
 *
 * Each message, and the ID of its work request, holds the number of the poster and a
 * sequence number. A bitmap per poster records the numbers that came, and each poller must
 * see the numbers of a poster rise, because it polls completions in their order.
 *
 * Locking: a party is used only by its thread or its timer, except for @taken, which the
 * others read. The bitmaps are shared and changed atomically.
 */
#include <linux/bitmap.h>
#include <linux/hrtimer.h>

#include "emu/rig.h"
#include "lib/objects.h"

/* Messages of a full run. */
#define MESSAGES	10000000ULL
#define RESIZED		1000000ULL

/* Sanitizers make each message much slower, so fewer are sent. */
#define DEBUG_SHARE	(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ? 10 : 1)

/* Depth of the send queue, which the parties may find full, and of the receive queue. */
#define SENDS		32
#define SLOTS		64
/* Most work requests that a thread posts, and most completions polled, at a time. */
#define BURST		8
#define POLL		16

/* The first parties are threads on two CPUs, the others timers on two CPUs. */
#define THREADS		2
#define PARTIES		4

/* The timers post one message in TIMER_PART, at most TIMER_BURST at a time. */
#define TIMER_PART	8
#define TIMER_BURST	4
#define TIMER_NS	(100 * NSEC_PER_USEC)

/* The sequence number of a message; the poster's number is in the bits above. */
#define SEQ_BITS	48
#define SEQ_MASK	(BIT_ULL(SEQ_BITS) - 1)

/* The CQs and the SRQ are resized to between one and four times these sizes. */
#define MIN_CQE		(SENDS + SLOTS)
#define MIN_WR		SLOTS

enum which {
	SENT,
	RECEIVED,
	KINDS
};

struct stress;

/* A thread or a timer that posts and polls. */
struct party {
	struct stress *s;	/* the case */
	int id;			/* number of the party */
	u32 rng;		/* state of the random numbers */
	u64 quota;		/* messages to post */
	u64 posted;		/* messages posted */
	u64 full;		/* how often the send queue was full */
	u64 taken[KINDS];	/* by kind, completions polled */
	/* By kind and poster, the lowest sequence number that may come next. */
	u64 next[KINDS][PARTIES];
	u64 overtaken;		/* completions with a lower number than that */
	u64 doubled;		/* completions with a number that had come before */
	u64 failed;		/* other errors */
	struct hrtimer timer;	/* runs the party in hard interrupt, unless it is a thread */
	struct completion done;	/* completed when the timer has run for the last time */
} ____cacheline_aligned_in_smp;

/* A case. */
struct stress {
	struct rig *r;	/* the QPs: that of the first end sends, that of the second receives */
	u64 count;			/* messages to send */
	struct party p[PARTIES];	/* the parties */
	/* By kind and poster, the sequence numbers that came. */
	unsigned long *seen[KINDS][PARTIES];
	DECLARE_BITMAP(slot, SLOTS);	/* receives that are posted, by their place in the buffer */
	u64 sizes;			/* how often all sizes were changed */
	u64 size_failed;		/* how many changes of a size failed */
	int stop;			/* all parties must end */
};

static u64 stress_taken(const struct stress *s)
{
	u64 sum = 0;
	int i;

	for (i = 0; i < PARTIES; i++)
		sum += READ_ONCE(s->p[i].taken[SENT]) + READ_ONCE(s->p[i].taken[RECEIVED]);
	return sum;
}

static bool stress_ended(const struct stress *s)
{
	/* The case would prove nothing without a resize. */
	if (s->r->b.srq && !READ_ONCE(s->sizes))
		return READ_ONCE(s->stop);
	return READ_ONCE(s->stop) || stress_taken(s) >= KINDS * s->count;
}

/* Returns false if posting failed, as on a full queue, or if the quota is used up. */
static bool party_post(struct party *p)
{
	u64 n = (u64)p->id << SEQ_BITS | p->posted;
	struct ib_sge sge = { (uintptr_t)&n, sizeof(n), 0 };
	struct ib_send_wr wr;
	int err;

	if (p->posted == p->quota)
		return false;
	rig_send_wr(&wr, n, &sge, 1);
	wr.send_flags |= IB_SEND_INLINE;
	err = ib_post_send(p->s->r->a.qp, &wr, NULL);
	if (!err)
		p->posted++;
	else if (err == -ENOMEM)
		p->full++;
	else
		p->failed++;
	return !err;
}

static int post_slot(struct stress *s, u64 slot)
{
	struct rig_end *e = &s->r->b;
	struct ib_sge sge = rig_sge(e, slot * sizeof(u64), sizeof(u64));
	struct ib_recv_wr wr = { .wr_id = slot, .sg_list = &sge, .num_sge = 1 };

	if (test_and_set_bit(slot, s->slot))
		return -EEXIST;
	return e->srq ? ib_post_srq_recv(e->srq, &wr, NULL) : ib_post_recv(e->qp, &wr, NULL);
}

static void party_saw(struct party *p, enum which kind, u64 n)
{
	u64 seq = n & SEQ_MASK;
	u64 who = n >> SEQ_BITS;

	if (who >= PARTIES || seq >= p->s->p[who].quota) {
		p->failed++;
		return;
	}
	if (seq < p->next[kind][who])
		p->overtaken++;
	p->next[kind][who] = seq + 1;
	if (test_and_set_bit(seq, p->s->seen[kind][who]))
		p->doubled++;
	WRITE_ONCE(p->taken[kind], p->taken[kind] + 1);
}

static void party_received(struct party *p, const struct ib_wc *wc)
{
	u64 slot = wc->wr_id;

	if (slot >= SLOTS || !test_and_clear_bit(slot, p->s->slot)) {
		p->failed++;
		return;
	}
	p->failed += wc->byte_len != sizeof(u64);
	party_saw(p, RECEIVED, ((u64 *)p->s->r->b.buf)[slot]);
	if (post_slot(p->s, slot))
		p->failed++;
}

static void party_poll(struct party *p, struct ib_cq *cq)
{
	struct ib_wc wc[POLL];
	int i, got = ib_poll_cq(cq, 1 + kvt_rand(&p->rng) % POLL, wc);

	for (i = 0; i < got; i++) {
		p->failed += wc[i].status != IB_WC_SUCCESS;
		if (wc[i].opcode & IB_WC_RECV)
			party_received(p, &wc[i]);
		else
			party_saw(p, SENT, wc[i].wr_id);
	}
	if (got <= 0)
		p->failed += ib_req_notify_cq(cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) < 0;
}

static void party_turn(struct party *p, u32 burst)
{
	struct rig *r = p->s->r;
	u32 n = 1 + kvt_rand(&p->rng) % burst;

	while (n-- && party_post(p))
		;
	party_poll(p, r->a.scq);
	if (r->b.rcq != r->a.scq)
		party_poll(p, r->b.rcq);
}

static int thread_fn(void *arg)
{
	struct party *p = arg;

	while (!stress_ended(p->s)) {
		party_turn(p, BURST);
		cond_resched();
	}
	return 0;
}

static enum hrtimer_restart timer_fn(struct hrtimer *timer)
{
	struct party *p = container_of(timer, struct party, timer);

	party_turn(p, TIMER_BURST);
	if (stress_ended(p->s)) {
		complete(&p->done);
		return HRTIMER_NORESTART;
	}
	hrtimer_forward_now(timer, ns_to_ktime(TIMER_NS / 2 + kvt_rand(&p->rng) % TIMER_NS));
	return HRTIMER_RESTART;
}

static int timer_start_fn(void *arg)
{
	struct party *p = arg;

	hrtimer_start(&p->timer, ns_to_ktime(TIMER_NS), HRTIMER_MODE_REL_PINNED_HARD);
	return 0;
}

static int resize_fn(void *arg)
{
	struct stress *s = arg;
	struct ib_srq_attr attr = {};
	u32 rng = s->p[0].quota | 1;

	while (!stress_ended(s)) {
		attr.max_wr = MIN_WR + kvt_rand(&rng) % (3 * MIN_WR);
		s->size_failed += ib_modify_srq(s->r->b.srq, &attr, IB_SRQ_MAX_WR) != 0;
		s->size_failed += ib_resize_cq(s->r->a.scq,
					       MIN_CQE + kvt_rand(&rng) % (3 * MIN_CQE)) != 0;
		s->size_failed += ib_resize_cq(s->r->b.rcq,
					       MIN_CQE + kvt_rand(&rng) % (3 * MIN_CQE)) != 0;
		WRITE_ONCE(s->sizes, s->sizes + 1);
		cond_resched();
	}
	return 0;
}

/* --- a case --- */

static void stress_stop(void *arg)
{
	struct stress *s = arg;
	int i;

	WRITE_ONCE(s->stop, 1);
	for (i = THREADS; i < PARTIES; i++)
		hrtimer_cancel(&s->p[i].timer);
}

KUNIT_DEFINE_ACTION_WRAPPER(free_bitmap, kvfree, void *);

static unsigned long *stress_bitmap(struct kunit *test, u64 bits)
{
	unsigned long *map = kvcalloc(BITS_TO_LONGS(bits), sizeof(*map), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, map);
	kvt_defer(test, free_bitmap, map);
	return map;
}

static void add_party(struct kunit *test, struct stress *s, int id, u32 seed)
{
	struct party *p = &s->p[id];

	p->s = s;
	p->id = id;
	p->rng = (seed + id) ?: 1;
	p->quota = id < THREADS ? (s->count - s->count / TIMER_PART) / THREADS :
				  s->count / TIMER_PART / (PARTIES - THREADS);
	init_completion(&p->done);
	hrtimer_init(&p->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	p->timer.function = timer_fn;
	s->seen[SENT][id] = stress_bitmap(test, p->quota);
	s->seen[RECEIVED][id] = stress_bitmap(test, p->quota);
}

/* Sets up everything but the QPs. */
static struct stress *stress_new(struct kunit *test, u64 full, const char *peer)
{
	struct stress *s = kvt_zalloc(test, sizeof(*s));
	u32 seed;
	int i;

	/* Can be divided among the parties without a remainder. */
	s->count = round_up(max_t(u64, 1000, kvt_count(full) / DEBUG_SHARE), TIMER_PART * PARTIES);
	seed = kvt_seed(test, "messages", s->count);
	for (i = 0; i < PARTIES; i++)
		add_party(test, s, i, seed);
	s->r = rig_new(test, "emu0", peer);
	s->r->init.cap.max_send_wr = SENDS;
	s->r->init.cap.max_recv_wr = SLOTS;
	return s;
}

/* Waits for a thread for as long as completions are polled. */
static bool stress_join(struct stress *s, struct kvt_thread *t)
{
	u64 before;

	do {
		before = stress_taken(s);
		if (kvt_thread_join(t))
			return true;
	} while (stress_taken(s) != before);
	return false;
}

static void stress_run(struct kunit *test, struct stress *s)
{
	struct kvt_thread *t[PARTIES], *resizer = NULL;
	int i, cpu;

	rig_start(test, s->r);
	for (i = 0; i < SLOTS; i++)
		KUNIT_ASSERT_EQ(test, 0, post_slot(s, i));
	for (i = 0; i < PARTIES; i++) {
		cpu = i % 2 ? kvt_other_cpu() : 0;
		t[i] = kvt_thread_start(test, cpu, i < THREADS ? thread_fn : timer_start_fn,
					&s->p[i]);
	}
	if (s->r->b.srq)
		resizer = kvt_thread_start(test, -1, resize_fn, s);
	kvt_defer(test, stress_stop, s);
	for (i = 0; i < PARTIES; i++)
		KUNIT_ASSERT_TRUE(test, stress_join(s, t[i]));
	for (i = THREADS; i < PARTIES; i++)
		KUNIT_ASSERT_TRUE(test, kvt_wait(&s->p[i].done));
	if (resizer)
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(resizer));
}

static void stress_check(struct kunit *test, struct stress *s)
{
	u64 taken[KINDS] = {}, full = 0;
	struct party *p;
	int i;

	for (i = 0; i < PARTIES; i++) {
		p = &s->p[i];
		KUNIT_EXPECT_EQ(test, p->quota, p->posted);
		KUNIT_EXPECT_EQ(test, 0, p->overtaken);
		KUNIT_EXPECT_EQ(test, 0, p->doubled);
		KUNIT_EXPECT_EQ(test, 0, p->failed);
		KUNIT_EXPECT_TRUE(test, bitmap_full(s->seen[SENT][i], p->quota));
		KUNIT_EXPECT_TRUE(test, bitmap_full(s->seen[RECEIVED][i], p->quota));
		taken[SENT] += p->taken[SENT];
		taken[RECEIVED] += p->taken[RECEIVED];
		full += p->full;
		/* The case proves nothing unless each party polled completions of both kinds. */
		KUNIT_EXPECT_GT(test, p->taken[SENT], 0);
		KUNIT_EXPECT_GT(test, p->taken[RECEIVED], 0);
	}
	KUNIT_EXPECT_EQ(test, s->count, taken[SENT]);
	KUNIT_EXPECT_EQ(test, s->count, taken[RECEIVED]);
	KUNIT_EXPECT_TRUE(test, bitmap_full(s->slot, SLOTS));
	KUNIT_EXPECT_TRUE(test, rig_empty(s->r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(s->r->b.rcq));
	kunit_info(test, "%llu posts found no room; interrupts polled %llu of the completions",
		   full, s->p[2].taken[SENT] + s->p[2].taken[RECEIVED] +
		   s->p[3].taken[SENT] + s->p[3].taken[RECEIVED]);
}

/* P11, C12: sends and receives complete in one CQ. */
static void p11_one_queue_pair_and_queue_lose_nothing(struct kunit *test)
{
	struct stress *s = stress_new(test, MESSAGES, "emu0");

	s->r->b.rcq = s->r->a.scq;
	stress_run(test, s);
	stress_check(test, s);
}

static void queues_that_are_resized_lose_nothing(struct kunit *test)
{
	struct ib_srq *srq;
	struct stress *s;

	kvt_need_two_cpus(test);
	s = stress_new(test, RESIZED, "emu1");
	srq = kvt_srq(test, s->r->b.pd, MIN_WR, 1);
	s->r->b.srq = srq;
	/* A resize waits for grace periods: this makes for more of them. */
	kvt_expedite_rcu(test);
	stress_run(test, s);
	stress_check(test, s);
	kunit_info(test, "%llu times all sizes were changed", s->sizes);
	KUNIT_EXPECT_EQ(test, 0, s->size_failed);
	KUNIT_EXPECT_GT(test, s->sizes, 0);
}

static struct kunit_case emu_stress_cases[] = {
	KUNIT_CASE_SLOW(p11_one_queue_pair_and_queue_lose_nothing),
	KUNIT_CASE_SLOW(queues_that_are_resized_lose_nothing),
	{}
};
KVT_SUITE(emu_stress);

MODULE_DESCRIPTION("KUnit: a queue pair posted to and polled from everywhere");
MODULE_LICENSE("GPL");
