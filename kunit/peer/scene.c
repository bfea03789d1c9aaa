// SPDX-License-Identifier: GPL-2.0-only
/*
 * Scene of the invalidation cases: one peer client and one user of its memory.
 */
#include "peer/scene.h"

/* Longer than any case takes: invalidations that wait for a region must not time out. */
#define LONG_WAIT_MS	60000

static const enum peer_kind kinds[] = { PEER_UNMAPS, PEER_CORE };

static void kind_name(const enum peer_kind *kind, char *desc)
{
	strscpy(desc, *kind == PEER_UNMAPS ? "client unmaps" : "core unmaps",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kind, kinds, kind_name);

/**
 * scene_kinds() - for KUNIT_CASE_PARAM(): a client that unmaps its memory itself, and one
 *	for which the core does
 * @prev: the previous kind, NULL to get the first one
 * @desc: buffer for the name of the returned kind
 *
 * Return: the next kind, NULL after the last one.
 */
const void *scene_kinds(const void *prev, char *desc)
{
	return kind_gen_params(prev, desc);
}

/**
 * scene_unmaps() - whether the client of the running case unmaps its memory itself
 * @test: the running case, of a KUNIT_CASE_PARAM() with scene_kinds()
 *
 * Return: true if the client does, false if the core unmaps for it.
 */
bool scene_unmaps(struct kunit *test)
{
	return *(const enum peer_kind *)test->param_value == PEER_UNMAPS;
}

/**
 * scene_up() - set up a registered client and a user without a region
 * @test: the running case
 *
 * Return: the scene, whose client and user share a trace; valid until the end of the case.
 */
struct scene *scene_up(struct kunit *test)
{
	struct scene *s = kvt_zalloc(test, sizeof(*s));

	s->tr = kvt_trace_new(test);
	s->m = peer_mock_up(test, 0, "kvt_a", *(const enum peer_kind *)test->param_value);
	s->m->trace = s->tr;
	s->m->arg = s;
	s->u = peer_user_new(test, PEER_BASE(0), SZ_64K);
	s->u->trace = s->tr;
	s->u->arg = s;
	kvt_gate_init(&s->hold);
	peer_set_wait(test, LONG_WAIT_MS);
	return s;
}

/**
 * scene_active() - set up a client and a user with an active region of its memory
 * @test: the running case
 *
 * Return: the scene, with an empty trace.
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
 * scene_expect() - check the trace, and that no region is left
 * @test: the running case
 * @s: the scene
 * @unmaps: the expected trace if the client unmaps its memory itself
 * @core: the expected trace if the core does
 */
void scene_expect(struct kunit *test, struct scene *s, const char *unmaps, const char *core)
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

	kvt_gate_sleep(&s->hold);
}

/**
 * scene_hold_revoke() - hold up the revoke callback; for &peer_user.on_revoke
 * @u: the user
 */
void scene_hold_revoke(struct peer_user *u)
{
	struct scene *s = u->arg;

	kvt_gate_sleep(&s->hold);
}

/**
 * scene_invalidate() - thread function: the client invalidates its newest pin
 * @arg: the scene
 *
 * Return: what the core's invalidate function returned.
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
 * scene_get() - thread function: the user gets a region
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
 * scene_stop() - thread function: the user stops using the region
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
 * scene_put() - thread function: the user puts the region
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
 * scene_held_in() - start a thread and hold it up in a callback of the client
 * @test: the running case
 * @s: the scene
 * @call: the callback
 * @fn: the thread's function
 *
 * Return: the thread, inside the callback.
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
 * scene_let_go() - let a thread that is held up go on, and join it
 * @test: the running case
 * @s: the scene
 * @t: the thread
 *
 * Return: what the thread's function returned.
 */
int scene_let_go(struct kunit *test, struct scene *s, struct kvt_thread *t)
{
	kvt_gate_open(&s->hold);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_TRUE(test, s->hold.in_time);
	return t->ret;
}

/**
 * scene_until_waiting() - wait until invalidations wait for a region that is being made
 * @test: the running case, which fails if they do not in time
 * @waits: number of such invalidations since the client was registered
 */
void scene_until_waiting(struct kunit *test, u64 waits)
{
	kvt_until(peer_count(test, "kvt_a", "num_invalidate_waits") >= waits);
	KUNIT_ASSERT_EQ(test, waits, peer_count(test, "kvt_a", "num_invalidate_waits"));
}

static bool has_word(struct scene *s, const char *word)
{
	bool has;

	raw_spin_lock_irq(&s->tr->lock);
	has = strstr(s->tr->buf, word);
	raw_spin_unlock_irq(&s->tr->lock);
	return has;
}

/**
 * scene_until_word() - wait until another thread has added a word to the trace
 * @test: the running case, which fails if that does not happen in time
 * @s: the scene
 * @word: the word
 */
void scene_until_word(struct kunit *test, struct scene *s, const char *word)
{
	KUNIT_ASSERT_TRUE_MSG(test, kvt_until(has_word(s, word)), "%s", word);
}

/**
 * scene_expect_waits() - check how many invalidations have waited
 * @test: the running case
 * @waits: expected number of invalidations that waited
 * @timeouts: expected number of those that timed out
 */
void scene_expect_waits(struct kunit *test, int waits, int timeouts)
{
	KUNIT_EXPECT_EQ(test, waits, peer_count(test, "kvt_a", "num_invalidate_waits"));
	KUNIT_EXPECT_EQ(test, timeouts, peer_count(test, "kvt_a", "num_invalidate_timeouts"));
}
