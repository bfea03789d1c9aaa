// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software HCA's work queue ring by itself: each concurrency rule that
 * drivers/emu/queue/ring.h states is tested here.
 */
#include <linux/irq_work.h>
#include <linux/kthread.h>

#include "lib/lib.h"
#include "../drivers/emu/queue/ring.h"

#define RING_DEPTH	16
/* Deep enough that posters or consumers which lose the CPU do not stall the others. */
#define STRESS_DEPTH	256
#define POSTS		200000
#define POSTERS		2
#define CONSUMERS	2
#define PAYLOAD		6

/* A ring entry; its contents are checked in full. */
struct entry {
	struct emu_slot slot;
	u32 poster;
	u64 n;
	u64 payload[PAYLOAD];
};

static void ring_end(void *arg)
{
	emu_ring_destroy(arg);
}

static struct emu_ring *ring_new(struct kunit *test, u32 depth)
{
	struct emu_ring *ring = kvt_zalloc(test, sizeof(*ring));

	KUNIT_ASSERT_EQ(test, 0, emu_ring_init(ring, depth, sizeof(struct entry)));
	kvt_defer(test, ring_end, ring);
	return ring;
}

static void entry_fill(struct entry *e, u32 poster, u64 n)
{
	int i;

	e->poster = poster;
	e->n = n;
	for (i = 0; i < PAYLOAD; i++)
		e->payload[i] = n * PAYLOAD + i + poster;
}

static bool entry_good(const struct entry *e)
{
	int i;

	for (i = 0; i < PAYLOAD; i++)
		if (e->payload[i] != e->n * PAYLOAD + i + e->poster)
			return false;
	return true;
}

static bool post(struct emu_ring *ring, u32 poster, u64 n)
{
	struct entry *e;
	u32 pos;

	e = emu_ring_reserve(ring, &pos);
	if (!e)
		return false;
	entry_fill(e, poster, n);
	emu_ring_publish(&e->slot, pos);
	return true;
}

/* Takes one entry as the single consumer of a send queue does. */
static bool consume(struct emu_ring *ring, struct entry *copy)
{
	struct entry *e;
	u32 pos;

	e = emu_ring_peek(ring, &pos);
	if (!e)
		return false;
	*copy = *e;
	emu_ring_advance(ring, pos);
	emu_ring_retire(ring, 1);
	return true;
}

/* Takes one entry as the concurrent consumers of a receive queue do. */
static bool take(struct emu_ring *ring, struct entry *copy)
{
	struct entry *e;
	u32 pos;

	do {
		e = emu_ring_front(ring, &pos);
		if (!e)
			return false;
		/* Overwritten meanwhile, the copy is dropped. */
		data_race(memcpy(copy, e, sizeof(*copy)));
	} while (!emu_ring_take(ring, pos));
	return true;
}

static bool claim(struct emu_ring *ring, struct entry *copy)
{
	if (!take(ring, copy))
		return false;
	emu_ring_retire(ring, 1);
	return true;
}

static void empty_ring_gives_nothing(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, RING_DEPTH);
	struct entry e;
	u32 pos;

	KUNIT_EXPECT_NULL(test, emu_ring_peek(ring, &pos));
	KUNIT_EXPECT_NULL(test, emu_ring_front(ring, &pos));
	KUNIT_EXPECT_FALSE(test, consume(ring, &e));
}

static void ring_takes_its_depth_and_no_more(struct kunit *test)
{
	static const u32 depths[] = { 1, 2, 3, 5, 16, 17 };
	struct entry e;
	u32 i, d;

	for (d = 0; d < ARRAY_SIZE(depths); d++) {
		struct emu_ring *ring = ring_new(test, depths[d]);

		for (i = 0; i < depths[d]; i++)
			KUNIT_ASSERT_TRUE(test, post(ring, 0, i));
		KUNIT_EXPECT_FALSE(test, post(ring, 0, i));
		KUNIT_EXPECT_TRUE(test, consume(ring, &e));
		KUNIT_EXPECT_EQ(test, 0, e.n);
		KUNIT_EXPECT_TRUE(test, post(ring, 0, i));
		KUNIT_EXPECT_FALSE(test, post(ring, 0, i));
	}
}

static void ring_of_depth_zero_is_always_full(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, 0);
	u32 pos;

	KUNIT_EXPECT_FALSE(test, post(ring, 0, 0));
	KUNIT_EXPECT_NULL(test, emu_ring_front(ring, &pos));
}

static void consumed_entry_counts_until_it_is_retired(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, 4);
	struct entry *e;
	u32 pos;
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_TRUE(test, post(ring, 0, i));
	e = emu_ring_peek(ring, &pos);
	KUNIT_ASSERT_NOT_NULL(test, e);
	emu_ring_advance(ring, pos);
	KUNIT_EXPECT_FALSE(test, post(ring, 0, 4));
	emu_ring_retire(ring, 1);
	KUNIT_EXPECT_TRUE(test, post(ring, 0, 4));
}

/* Pollers come in any order: a signaled entry retires those before it that were not. */
static void retired_in_any_order_is_as_many(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, 8);
	struct entry *e;
	u32 pos;
	int i;

	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_TRUE(test, post(ring, 0, i));
	for (i = 0; i < 8; i++) {
		e = emu_ring_peek(ring, &pos);
		KUNIT_ASSERT_NOT_NULL(test, e);
		emu_ring_advance(ring, pos);
	}
	KUNIT_EXPECT_FALSE(test, post(ring, 0, 8));
	emu_ring_retire(ring, 2);
	emu_ring_retire(ring, 3);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_TRUE(test, post(ring, 0, 8 + i));
	KUNIT_EXPECT_FALSE(test, post(ring, 0, 13));
}

/* More positions than 15 or 16 bits can tell apart. */
static const u32 standstills[] = { 10, BIT(15) + 1, BIT(16) - 1, BIT(16) + 1, 200000 };

/* Others post, and consume what they post, that often. */
static void post_and_consume(struct kunit *test, struct emu_ring *ring, u32 times)
{
	struct entry e;

	while (times--) {
		KUNIT_EXPECT_TRUE(test, post(ring, 0, times));
		KUNIT_EXPECT_TRUE(test, consume(ring, &e));
	}
}

static void late_poller_retires_what_it_polled(struct kunit *test)
{
	struct emu_ring *ring;
	struct entry *e;
	u32 d, i, pos;

	for (d = 0; d < ARRAY_SIZE(standstills); d++) {
		ring = ring_new(test, RING_DEPTH);
		KUNIT_ASSERT_TRUE(test, post(ring, 0, 0));
		e = emu_ring_peek(ring, &pos);
		KUNIT_ASSERT_NOT_NULL(test, e);
		emu_ring_advance(ring, pos);
		/* It has polled the completion, and stands still. */
		post_and_consume(test, ring, standstills[d]);
		emu_ring_retire(ring, 1);
		for (i = 0; i < RING_DEPTH; i++)
			KUNIT_EXPECT_TRUE(test, post(ring, 0, i));
		KUNIT_EXPECT_FALSE(test, post(ring, 0, i));
	}
}

static void entries_come_out_in_order_over_many_laps(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, 3);
	u64 posted = 0, got = 0;
	struct entry e;

	while (got < 1000) {
		while (post(ring, 0, posted))
			posted++;
		KUNIT_ASSERT_EQ(test, 3, posted - got);
		KUNIT_ASSERT_TRUE(test, consume(ring, &e));
		KUNIT_ASSERT_TRUE(test, entry_good(&e));
		KUNIT_ASSERT_EQ(test, got, e.n);
		got++;
	}
}

/* Sets the positions of an empty ring to @to. */
static void ring_move(struct emu_ring *ring, u32 to)
{
	u32 i;

	for (i = 0; i <= ring->mask; i++)
		emu_ring_slot(ring, to + i)->seq = to + i - ring->mask;
	atomic_set(&ring->head, to);
	atomic_set(&ring->tail, to);
	atomic_set(&ring->retired, to);
}

static void positions_wrap_at_32_bits(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, RING_DEPTH);
	u64 posted = 0, got = 0;
	struct entry e;

	ring_move(ring, U32_MAX - 40);
	while (got < 100) {
		while (post(ring, 0, posted))
			posted++;
		KUNIT_ASSERT_EQ(test, RING_DEPTH, posted - got);
		KUNIT_ASSERT_TRUE(test, got % 2 ? consume(ring, &e) : claim(ring, &e));
		KUNIT_ASSERT_TRUE(test, entry_good(&e));
		KUNIT_ASSERT_EQ(test, got, e.n);
		got++;
	}
}

static void hole_stops_consumers_until_it_is_filled(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, RING_DEPTH);
	struct entry *late, copy;
	u32 late_pos, pos;

	KUNIT_ASSERT_TRUE(test, post(ring, 0, 0));
	late = emu_ring_reserve(ring, &late_pos);
	KUNIT_ASSERT_NOT_NULL(test, late);
	KUNIT_ASSERT_TRUE(test, post(ring, 0, 2));
	KUNIT_ASSERT_TRUE(test, consume(ring, &copy));

	KUNIT_EXPECT_NULL(test, emu_ring_peek(ring, &pos));
	KUNIT_EXPECT_NULL(test, emu_ring_front(ring, &pos));
	entry_fill(late, 0, 1);
	emu_ring_publish(&late->slot, late_pos);
	KUNIT_ASSERT_TRUE(test, consume(ring, &copy));
	KUNIT_EXPECT_EQ(test, 1, copy.n);
	KUNIT_ASSERT_TRUE(test, claim(ring, &copy));
	KUNIT_EXPECT_EQ(test, 2, copy.n);
}

/* A shared receive queue: what is taken counts no more, however long it is used. */
static void taken_entry_makes_room_where_that_counts(struct kunit *test)
{
	static const u32 depths[] = { 1, 2, 3, 4 };
	struct entry *e, copies[4];
	struct emu_ring *ring;
	u32 d, i, pos;

	for (d = 0; d < ARRAY_SIZE(depths); d++) {
		ring = ring_new(test, depths[d]);
		for (i = 0; i < 3 * depths[d]; i++) {
			e = emu_ring_reserve_shared(ring, &pos);
			KUNIT_ASSERT_NOT_NULL(test, e);
			entry_fill(e, 0, i);
			emu_ring_publish(&e->slot, pos);
			if (i < depths[d] - 1)
				continue;
			KUNIT_EXPECT_NULL(test, emu_ring_reserve_shared(ring, &pos));
			KUNIT_ASSERT_TRUE(test, take(ring, &copies[i % depths[d]]));
			KUNIT_EXPECT_EQ(test, i - (depths[d] - 1), copies[i % depths[d]].n);
			KUNIT_EXPECT_TRUE(test, entry_good(&copies[i % depths[d]]));
		}
	}
}

/* A datagram queue: of what was taken, those that ended make room, in any order. */
static void slow_consumer_keeps_one_place(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, 4);
	struct entry slow, e;
	u32 i;

	for (i = 0; i < 4; i++)
		KUNIT_ASSERT_TRUE(test, post(ring, 0, i));
	KUNIT_ASSERT_TRUE(test, take(ring, &slow));
	for (i = 0; i < 40; i++) {
		KUNIT_EXPECT_FALSE(test, post(ring, 0, 4 + i));
		KUNIT_ASSERT_TRUE(test, claim(ring, &e));
		KUNIT_EXPECT_EQ(test, 1 + i, e.n);
		KUNIT_EXPECT_TRUE(test, post(ring, 0, 4 + i));
	}
	KUNIT_EXPECT_TRUE(test, entry_good(&slow));
	KUNIT_EXPECT_EQ(test, 0, slow.n);
	emu_ring_retire(ring, 1);
	KUNIT_EXPECT_TRUE(test, post(ring, 0, 0));
	KUNIT_EXPECT_FALSE(test, post(ring, 0, 0));
}

static void reset_empties_the_ring(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, RING_DEPTH);
	struct entry e;
	int i;

	for (i = 0; i < RING_DEPTH; i++)
		KUNIT_ASSERT_TRUE(test, post(ring, 0, i));
	KUNIT_ASSERT_TRUE(test, consume(ring, &e));
	emu_ring_reset(ring);
	KUNIT_EXPECT_FALSE(test, consume(ring, &e));
	for (i = 0; i < RING_DEPTH; i++)
		KUNIT_EXPECT_TRUE(test, post(ring, 0, i));
}

/*
 * Stress. Each poster numbers its entries; each entry must come out intact, exactly
 * once, and in its poster's order. Posters 2 and 3 are interrupts that posters 0 and 1
 * raise.
 */
struct stress {
	struct emu_ring *ring;
	u64 count;
	u64 total;
	u64 posted[2 * POSTERS];
	int consumers;
	u64 bad;
	int stop;
};

struct poster {
	struct stress *s;
	u32 id;
	u32 seed;
	bool irq;
	struct irq_work work;
	u64 irq_posts;
};

static void poster_irq(struct irq_work *work)
{
	struct poster *p = container_of(work, struct poster, work);

	if (post(p->s->ring, POSTERS + p->id, p->irq_posts))
		p->irq_posts++;
}

/* Raises the interrupt, if at all, before or after the entry is filled, or after publish. */
static void post_interrupted(struct poster *p, struct entry *e, u32 pos, u64 n)
{
	u32 when = kvt_rand(&p->seed) % 4;

	if (p->irq && when == 0)
		irq_work_queue(&p->work);
	entry_fill(e, p->id, n);
	if (p->irq && when == 1)
		irq_work_queue(&p->work);
	emu_ring_publish(&e->slot, pos);
	if (p->irq && when == 2)
		irq_work_queue(&p->work);
}

static int poster_fn(void *arg)
{
	struct poster *p = arg;
	struct stress *s = p->s;
	u64 n = 0;

	while (n < s->count && !READ_ONCE(s->stop)) {
		struct entry *e;
		u32 pos;

		preempt_disable();
		e = emu_ring_reserve(s->ring, &pos);
		if (e)
			post_interrupted(p, e, pos, n++);
		preempt_enable();
		if (!e)
			cond_resched();
	}
	irq_work_sync(&p->work);
	s->posted[p->id] = n;
	s->posted[POSTERS + p->id] = p->irq_posts;
	return n == s->count ? 0 : -ETIMEDOUT;
}

/* To be called before a look at the ring: if true, nothing is posted after this call. */
static bool stopped(struct stress *s)
{
	/* Pairs with the release in run_posters(). */
	return smp_load_acquire(&s->stop) || kthread_should_stop();
}

/* A consumer: the numbers that it sees of each poster rise, without a gap if it is alone. */
struct consumer {
	struct stress *s;
	u64 next[2 * POSTERS];	/* by poster, the lowest number that may come */
	u64 got;
	u64 sum;
};

static void consumer_saw(struct consumer *c, const struct entry *e)
{
	bool alone = c->s->consumers == 1;

	if (!entry_good(e) || e->poster >= 2 * POSTERS || e->n < c->next[e->poster] ||
	    (alone && e->n != c->next[e->poster]))
		c->s->bad++;
	else
		c->next[e->poster] = e->n + 1;
	c->sum += e->n;
	c->got++;
}

static int consumer_fn(void *arg)
{
	struct consumer *c = arg;
	struct stress *s = c->s;
	struct entry e;

	for (;;) {
		bool last = stopped(s);

		if (s->consumers == 1 ? consume(s->ring, &e) : claim(s->ring, &e)) {
			consumer_saw(c, &e);
			continue;
		}
		if (last)
			return 0;
		cond_resched();
	}
}

static void run_posters(struct kunit *test, struct stress *s, bool irq)
{
	u32 seed = kvt_seed(test, "posts from each of two CPUs", s->count);
	struct kvt_thread *t[POSTERS];
	struct poster *p;
	int i;

	p = kunit_kcalloc(test, POSTERS, sizeof(*p), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, p);
	for (i = 0; i < POSTERS; i++) {
		p[i].s = s;
		p[i].id = i;
		p[i].seed = seed + i;
		p[i].irq = irq;
		p[i].work = IRQ_WORK_INIT_HARD(poster_irq);
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, poster_fn, &p[i]);
	}
	for (i = 0; i < POSTERS; i++)
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(t[i]));
	/* Pairs with the acquire in stopped(). */
	smp_store_release(&s->stop, 1);
	for (i = 0; i < POSTERS; i++)
		KUNIT_EXPECT_EQ(test, 0, t[i]->ret);
	for (i = 0; i < 2 * POSTERS; i++)
		s->total += s->posted[i];
}

static struct stress *stress_new(struct kunit *test, int consumers)
{
	struct stress *s = kvt_zalloc(test, sizeof(*s));

	s->ring = ring_new(test, STRESS_DEPTH);
	ring_move(s->ring, U32_MAX - 1000);
	s->count = kvt_count(POSTS);
	s->consumers = consumers;
	return s;
}

static struct stress *run_stress(struct kunit *test, int consumers, bool interrupts)
{
	struct stress *s = stress_new(test, consumers);
	struct consumer *c = kvt_zalloc(test, consumers * sizeof(*c));
	struct kvt_thread *t[CONSUMERS];
	u64 got = 0, sum = 0, want = 0;
	int i, cpu;

	for (i = 0; i < consumers; i++) {
		c[i].s = s;
		cpu = consumers == 1 ? -1 : i ? 0 : kvt_other_cpu();
		t[i] = kvt_thread_start(test, cpu, consumer_fn, &c[i]);
	}
	run_posters(test, s, interrupts);
	for (i = 0; i < consumers; i++) {
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t[i]));
		got += c[i].got;
		sum += c[i].sum;
	}
	for (i = 0; i < 2 * POSTERS; i++)
		want += s->posted[i] * (s->posted[i] - 1) / 2;
	KUNIT_EXPECT_EQ(test, 0, s->bad);
	KUNIT_EXPECT_EQ(test, s->total, got);
	KUNIT_EXPECT_EQ(test, want, sum);
	return s;
}

static void two_posters_and_one_consumer(struct kunit *test)
{
	run_stress(test, 1, false);
}

static void interrupts_post_to_the_ring_being_posted(struct kunit *test)
{
	struct stress *s = run_stress(test, 1, true);

	KUNIT_EXPECT_GT(test, s->posted[POSTERS] + s->posted[POSTERS + 1], 0);
	kunit_info(test, "%llu posts from interrupts", s->posted[POSTERS] + s->posted[POSTERS + 1]);
}

static void two_posters_and_two_consumers(struct kunit *test)
{
	run_stress(test, CONSUMERS, true);
}

/*
 * A thread stands still between its look at a position and the step that relies on it,
 * and others go on meanwhile, for more positions than a few bits can tell apart.
 */
struct standstill {
	struct kunit *test;
	struct emu_ring *ring;
	u32 laps;
};

static void others_go_on(void *arg)
{
	struct standstill *s = arg;

	post_and_consume(s->test, s->ring, s->laps);
}

static void overtaken_poster_looks_again(struct kunit *test)
{
	struct standstill s = { test };
	struct entry e;
	u32 d, i;

	for (d = 0; d < ARRAY_SIZE(standstills); d++) {
		s.ring = ring_new(test, RING_DEPTH);
		s.laps = standstills[d];
		kverbs_delay_set("emu_ring_reserve", others_go_on, &s);
		KUNIT_EXPECT_TRUE(test, post(s.ring, 1, 1));
		KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
		KUNIT_EXPECT_EQ(test, s.laps + 1, atomic_read(&s.ring->head));
		KUNIT_ASSERT_TRUE(test, consume(s.ring, &e));
		KUNIT_EXPECT_EQ(test, 1, e.poster);
		for (i = 0; i < RING_DEPTH; i++)
			KUNIT_EXPECT_TRUE(test, post(s.ring, 0, i));
		KUNIT_EXPECT_FALSE(test, post(s.ring, 0, i));
	}
}

static void others_take(void *arg)
{
	struct standstill *s = arg;
	struct entry e;
	u32 i;

	for (i = 0; i < s->laps; i++) {
		KUNIT_EXPECT_TRUE(s->test, claim(s->ring, &e));
		KUNIT_EXPECT_TRUE(s->test, post(s->ring, 0, 2 + i));
	}
}

static void overtaken_consumer_takes_another(struct kunit *test)
{
	struct standstill s = { test };
	struct entry e;
	u32 d;

	for (d = 0; d < ARRAY_SIZE(standstills); d++) {
		s.ring = ring_new(test, 2);
		s.laps = standstills[d];
		KUNIT_ASSERT_TRUE(test, post(s.ring, 0, 0));
		KUNIT_ASSERT_TRUE(test, post(s.ring, 0, 1));
		kverbs_delay_set("emu_ring_take", others_take, &s);
		KUNIT_EXPECT_TRUE(test, claim(s.ring, &e));
		KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
		KUNIT_EXPECT_EQ(test, s.laps, e.n);
		KUNIT_EXPECT_TRUE(test, entry_good(&e));
	}
}

/*
 * An entry may be consumed before it is published; what an earlier lap left in its slot must not
 * be taken for the number of a later one, even after all positions have come round. Most of the
 * laps, in which nothing is written, are left out.
 */
static void consumed_before_published(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, RING_DEPTH);
	u32 lap, i, start, pos, published;
	struct emu_slot *slot;

	for (lap = 0; lap < 6; lap++) {
		start = lap * BIT(30) + BIT(29) - RING_DEPTH;
		atomic_set(&ring->head, start);
		atomic_set(&ring->tail, start);
		atomic_set(&ring->retired, start);
		published = 0;
		for (i = 0; i < 3 * RING_DEPTH; i++) {
			KUNIT_ASSERT_TRUE(test, emu_ring_reserve_position(ring, &pos));
			KUNIT_ASSERT_EQ(test, start + i, pos);
			KUNIT_EXPECT_NULL(test, emu_ring_peek(ring, &pos));
			slot = emu_ring_slot(ring, pos);
			if (emu_ring_must_publish(ring, pos, 1) || !lap) {
				emu_ring_publish(slot, pos);
				KUNIT_EXPECT_PTR_EQ(test, slot, emu_ring_peek(ring, &pos));
				published++;
			}
			emu_ring_advance(ring, pos);
			emu_ring_retire(ring, 1);
		}
		KUNIT_EXPECT_EQ(test, lap ? RING_DEPTH : 3 * RING_DEPTH, published);
	}
}

/* Asked of several positions, it is what it is asked of one by one. */
static void some_of_a_row_must_be_published(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, RING_DEPTH);
	u32 lap, pos, count, i;
	bool any;

	for (lap = 0; lap < 4; lap++) {
		u32 start = lap * BIT(30) + BIT(29);

		for (pos = start - 2 * RING_DEPTH; pos != start + 2 * RING_DEPTH; pos++) {
			for (count = 1; count <= RING_DEPTH + 1; count++) {
				any = false;
				for (i = 0; i < count; i++)
					any |= pos + i - start < RING_DEPTH;
				KUNIT_ASSERT_EQ_MSG(test, any,
						    emu_ring_must_publish(ring, pos, count),
						    "%u from 0x%x on", count, pos);
			}
		}
	}
}

/* No poster spins, whatever has happened to a ring. */
static void poster_of_a_broken_ring_gives_up(struct kunit *test)
{
	struct emu_ring *ring = ring_new(test, RING_DEPTH);

	atomic_set(&ring->retired, 1);
	KUNIT_EXPECT_FALSE(test, post(ring, 0, 0));
}

static struct kunit_case emu_ring_cases[] = {
	KUNIT_CASE(taken_entry_makes_room_where_that_counts),
	KUNIT_CASE(slow_consumer_keeps_one_place),
	KUNIT_CASE(late_poller_retires_what_it_polled),
	KUNIT_CASE(overtaken_consumer_takes_another),
	KUNIT_CASE(poster_of_a_broken_ring_gives_up),
	KUNIT_CASE(empty_ring_gives_nothing),
	KUNIT_CASE(ring_takes_its_depth_and_no_more),
	KUNIT_CASE(ring_of_depth_zero_is_always_full),
	KUNIT_CASE(consumed_entry_counts_until_it_is_retired),
	KUNIT_CASE(retired_in_any_order_is_as_many),
	KUNIT_CASE(entries_come_out_in_order_over_many_laps),
	KUNIT_CASE(positions_wrap_at_32_bits),
	KUNIT_CASE(consumed_before_published),
	KUNIT_CASE(some_of_a_row_must_be_published),
	KUNIT_CASE(hole_stops_consumers_until_it_is_filled),
	KUNIT_CASE(reset_empties_the_ring),
	KUNIT_CASE(two_posters_and_one_consumer),
	KUNIT_CASE(interrupts_post_to_the_ring_being_posted),
	KUNIT_CASE(two_posters_and_two_consumers),
	KUNIT_CASE(overtaken_poster_looks_again),
	{}
};
KVT_SUITE(emu_ring);

MODULE_DESCRIPTION("KUnit: rings of the software HCA");
MODULE_LICENSE("GPL");
