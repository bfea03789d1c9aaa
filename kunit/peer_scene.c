// SPDX-License-Identifier: GPL-2.0-only
/*
 * One client and one user of its memory, for the cases of invalidation.
 */
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "peer_scene.h"

/* Longer than anything here takes. */
#define LONG_WAIT_MS	60000

static const enum peer_kind kinds[] = { PEER_UNMAPS, PEER_CORE };

static void kind_name(const enum peer_kind *kind, char *desc)
{
	strscpy(desc, *kind == PEER_UNMAPS ? "client unmaps" : "core unmaps",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kind, kinds, kind_name);

/**
 * scene_kinds() - for KUNIT_CASE_PARAM(): clients that unmap, and others
 * @prev: the kind before, NULL before the first
 * @desc: gets its name
 *
 * Return: the kind, NULL after the last.
 */
const void *scene_kinds(const void *prev, char *desc)
{
	return kind_gen_params(prev, desc);
}

/**
 * scene_unmaps() - whether the client of the running case unmaps its memory itself
 * @test: the running case, of a KUNIT_CASE_PARAM() with scene_kinds()
 *
 * Return: true if it does.
 */
bool scene_unmaps(struct kunit *test)
{
	return *(const enum peer_kind *)test->param_value == PEER_UNMAPS;
}

/**
 * scene_up() - a client that nobody uses yet
 * @test: the running case
 *
 * Return: the scene, with words of both sides; it lives as long as the case.
 */
struct scene *scene_up(struct kunit *test)
{
	struct scene *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->tr = kvt_trace_new(test);
	s->m = peer_mock_up(test, 0, "kvt_a", *(const enum peer_kind *)test->param_value);
	s->m->trace = s->tr;
	s->m->arg = s;
	s->u = peer_user_new(test, PEER_BASE(0), SZ_64K);
	s->u->trace = s->tr;
	s->u->arg = s;
	peer_hold_init(&s->hold);
	peer_set_wait(test, LONG_WAIT_MS);
	return s;
}

/**
 * scene_active() - a client, and a region of its memory that is in use
 * @test: the running case
 *
 * Return: the scene, without the words that have led to it.
 */
struct scene *scene_active(struct kunit *test)
{
	struct scene *s = scene_up(test);

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(s->u));
	peer_user_activate(s->u);
	kvt_trace_reset(s->tr);
	return s;
}

/**
 * scene_expect() - all is over: this was said, and nothing is left
 * @test: the running case
 * @s: the scene
 * @unmaps: all words, if the client unmaps its memory itself
 * @core: all words, if the core does
 */
void scene_expect(struct kunit *test, struct scene *s, const char *unmaps,
		  const char *core)
{
	if (scene_unmaps(test))
		KVT_EXPECT_TRACE(test, s->tr, unmaps);
	else
		KVT_EXPECT_TRACE(test, s->tr, core);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->u->wrong));
	PEER_EXPECT_IDLE(test, s->m);
	KUNIT_EXPECT_EQ(test, 0, peer_count(test, "kvt_a", "live_mrs"));
	KUNIT_EXPECT_EQ(test, peer_count(test, "kvt_a", "num_alloc_mrs"),
			peer_count(test, "kvt_a", "num_dealloc_mrs"));
	KUNIT_EXPECT_EQ(test, peer_count(test, "kvt_a", "num_reg_bytes"),
			peer_count(test, "kvt_a", "num_dereg_bytes"));
}

static void hold_call(struct peer_pin *pin)
{
	struct scene *s = pin->mock->arg;

	peer_hold_here(&s->hold);
}

/**
 * scene_hold_revoke() - for &peer_user.on_revoke: hold it up
 * @u: the user
 */
void scene_hold_revoke(struct peer_user *u)
{
	struct scene *s = u->arg;

	peer_hold_here(&s->hold);
}

/**
 * scene_invalidate() - thread function: the newest of the client's pins goes away
 * @arg: the scene
 *
 * Return: what the core said.
 */
int scene_invalidate(void *arg)
{
	struct scene *s = arg;
	struct peer_pin *pin = peer_mock_pin(s->m, 0);
	int ret = peer_pin_invalidate(pin);

	peer_pin_put(pin);
	return ret;
}

/**
 * scene_get() - thread function: the user gets memory
 * @arg: the scene
 *
 * Return: 0, or what peer_region_get() failed with.
 */
int scene_get(void *arg)
{
	struct scene *s = arg;

	return peer_user_get(s->u);
}

/**
 * scene_stop() - thread function: the user stops
 * @arg: the scene
 *
 * Return: 0.
 */
int scene_stop(void *arg)
{
	struct scene *s = arg;

	peer_user_stop(s->u);
	return 0;
}

/**
 * scene_put() - thread function: the user gives the memory back
 * @arg: the scene
 *
 * Return: 0.
 */
int scene_put(void *arg)
{
	struct scene *s = arg;

	peer_user_put(s->u);
	return 0;
}

/**
 * scene_held_in() - a thread that is held up in a call of the client's
 * @test: the running case
 * @s: the scene
 * @call: which call
 * @fn: what the thread does
 *
 * Return: the thread.
 */
struct kvt_thread *scene_held_in(struct kunit *test, struct scene *s, enum peer_call call,
				 int (*fn)(void *arg))
{
	struct kvt_thread *t;

	s->m->on[call] = hold_call;
	t = kvt_thread_start(test, -1, fn, s);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->hold.entered));
	s->m->on[call] = NULL;
	return t;
}

/**
 * scene_let_go() - what was held up goes on to its end
 * @test: the running case
 * @s: the scene
 * @t: the thread
 *
 * Return: what it returned.
 */
int scene_let_go(struct kunit *test, struct scene *s, struct kvt_thread *t)
{
	complete(&s->hold.leave);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_TRUE(test, s->hold.in_time);
	return t->ret;
}

/**
 * scene_until_waiting() - invalidations wait for a region that is being made
 * @test: the running case, which fails if they do not in time
 * @waits: so many have, since the client was registered
 */
void scene_until_waiting(struct kunit *test, u64 waits)
{
	unsigned long end = jiffies + KVT_TIMEOUT;

	while (peer_count(test, "kvt_a", "num_invalidate_waits") < waits &&
	       time_before(jiffies, end))
		schedule();
	KUNIT_ASSERT_EQ(test, waits, peer_count(test, "kvt_a", "num_invalidate_waits"));
}

static bool has_word(struct scene *s, const char *word)
{
	bool has;

	spin_lock_irq(&s->tr->lock);
	has = strstr(s->tr->buf, word);
	spin_unlock_irq(&s->tr->lock);
	return has;
}

/**
 * scene_until_word() - another thread is where something is said
 * @test: the running case, which fails if it does not get there in time
 * @s: the scene
 * @word: what is said
 */
void scene_until_word(struct kunit *test, struct scene *s, const char *word)
{
	unsigned long end = jiffies + KVT_TIMEOUT;

	while (!has_word(s, word) && time_before(jiffies, end))
		schedule();
	KUNIT_ASSERT_TRUE_MSG(test, has_word(s, word), "%s", word);
}

/**
 * scene_expect_waits() - so many invalidations have waited
 * @test: the running case
 * @waits: all
 * @timeouts: those that did not get what they waited for
 */
void scene_expect_waits(struct kunit *test, int waits, int timeouts)
{
	KUNIT_EXPECT_EQ(test, waits, peer_count(test, "kvt_a", "num_invalidate_waits"));
	KUNIT_EXPECT_EQ(test, timeouts,
			peer_count(test, "kvt_a", "num_invalidate_timeouts"));
}
