// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client invalidates its memory while the memory is being released or revoked, from
 * within its own functions and revoke(), from several threads, and with a lock of its own
 * held. See also invalidate.c.
 */
#include <linux/mutex.h>

#include "lib/console.h"
#include "peer/rig.h"
#include "peer/scene.h"

#define THREADS		4

/* Limit of the wait for a registration: long enough to notice, short enough for a test. */
#define SHORT_WAIT_MS	100

/* Invalidation while the region ends */

static const enum peer_call last_calls[] = { PEER_DMA_UNMAP, PEER_PUT_PAGES };

static void expect_no_wait_for_the_end(struct kunit *test, enum peer_call call,
				       int (*fn)(void *arg), const char *trace)
{
	struct scene *s = scene_active(test);
	struct kvt_thread *t = scene_held_in(test, s, call, fn);

	KUNIT_EXPECT_EQ(test, -EINPROGRESS, scene_invalidate(s));
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(t));
	scene_let_go(test, s, t);
	if (s->u->region)
		peer_user_put(s->u);
	scene_expect(test, s, trace, trace);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->u->revokes));
	scene_expect_waits(test, 0, 0);
}

static void invalidation_does_not_wait_for_dma_unmap(struct kunit *test)
{
	expect_no_wait_for_the_end(test, PEER_DMA_UNMAP, scene_stop,
				   "stop dma_unmap invalidate =-115 put_pages put release");
}

static void invalidation_does_not_wait_for_put_pages(struct kunit *test)
{
	expect_no_wait_for_the_end(test, PEER_PUT_PAGES, scene_stop,
				   "stop dma_unmap put_pages invalidate =-115 put release");
}

static void invalidation_does_not_wait_for_put_pages_of_put(struct kunit *test)
{
	expect_no_wait_for_the_end(test, PEER_PUT_PAGES, scene_put,
				   "put dma_unmap put_pages invalidate =-115 release");
}

static void invalidation_does_not_wait_for_release(struct kunit *test)
{
	struct scene *s = scene_active(test);
	struct kvt_thread *t = scene_held_in(test, s, PEER_RELEASE, scene_put);

	KUNIT_EXPECT_EQ(test, scene_unmaps(test) ? -ENOENT : 0, scene_invalidate(s));
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(t));
	scene_let_go(test, s, t);
	scene_expect(test, s, "put dma_unmap put_pages release invalidate =-2",
		     "put dma_unmap put_pages release invalidate =0");
}

static void invalidation_from_within_the_last_calls(struct kunit *test)
{
	struct scene *s = scene_active(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(last_calls); i++)
		s->m->on[last_calls[i]] = peer_pin_invalidate_here;
	peer_user_put(s->u);
	scene_expect(test, s,
			      "put dma_unmap invalidate =-115 put_pages invalidate =-115 release",
		     "put dma_unmap invalidate =-115 put_pages invalidate =-115 release");
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->u->revokes));
}

static void invalidation_from_within_release(struct kunit *test)
{
	struct scene *s = scene_active(test);

	s->m->on[PEER_RELEASE] = peer_pin_invalidate_here;
	peer_user_put(s->u);
	scene_expect(test, s, "put dma_unmap put_pages release invalidate =-2",
		     "put dma_unmap put_pages release invalidate =0");
}

/* Recursion: dma_unmap() and put_pages(), called by an invalidation, invalidate again. */
static void invalidation_from_within_itself(struct kunit *test)
{
	struct scene *s = scene_active(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(last_calls); i++)
		s->m->on[last_calls[i]] = peer_pin_invalidate_here;
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(s->u->pin));
	peer_user_put(s->u);
	scene_expect(test, s, "invalidate revoke cleanup =0 put release",
		     "invalidate revoke dma_unmap invalidate =-115 put_pages invalidate =-115 =0 put release");
}

/* Invalidation, stop and put during revoke() */

static void invalidate_in_revoke(struct peer_user *u)
{
	peer_pin_invalidate(u->pin);
}

static void invalidation_from_within_revoke(struct kunit *test)
{
	struct scene *s = scene_active(test);

	s->u->on_revoke = invalidate_in_revoke;
	peer_pin_invalidate(s->u->pin);
	peer_user_put(s->u);
	/*
	 * The inner invalidation was told that the core unmaps the memory. So the outer one must
	 * not tell a client that unmaps that the memory is its own to unmap.
	 */
	scene_expect(test, s,
			      "invalidate revoke invalidate =-115 dma_unmap put_pages =-2 put release",
		     "invalidate revoke invalidate =-115 dma_unmap put_pages =0 put release");
}

static void stop_in_revoke(struct peer_user *u)
{
	peer_user_stop(u);
}

static void stop_from_within_revoke_does_not_wait(struct kunit *test)
{
	struct scene *s = scene_active(test);

	s->u->on_revoke = stop_in_revoke;
	peer_pin_invalidate(s->u->pin);
	peer_user_put(s->u);
	scene_expect(test, s, "invalidate revoke stop cleanup =0 put release",
		     "invalidate revoke stop dma_unmap put_pages =0 put release");
}

/* An invalidation, in a thread of its own, whose revoke() is held up until scene_let_go(). */
static struct kvt_thread *hold_up_a_revoke(struct kunit *test, struct scene *s)
{
	struct kvt_thread *t;

	s->u->on_revoke = scene_hold_revoke;
	t = kvt_thread_start(test, -1, scene_invalidate, s);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->hold.entered));
	return t;
}

static void stop_waits_for_revoke(struct kunit *test)
{
	struct scene *s = scene_active(test);
	struct kvt_thread *t, *stop;

	t = hold_up_a_revoke(test, s);
	stop = kvt_thread_start(test, -1, scene_stop, s);
	scene_until_word(test, s, "stop");
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(stop));
	KUNIT_EXPECT_EQ(test, 0, scene_let_go(test, s, t));
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(stop));
	peer_user_put(s->u);
	scene_expect(test, s, "invalidate revoke stop cleanup =0 put release",
		     "invalidate revoke stop dma_unmap put_pages =0 put release");
}

static void put_waits_for_revoke_and_what_follows(struct kunit *test)
{
	struct scene *s = scene_active(test);
	struct kvt_thread *t, *put;

	t = hold_up_a_revoke(test, s);
	put = kvt_thread_start(test, -1, scene_put, s);
	scene_until_word(test, s, "put");
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(put));
	KUNIT_EXPECT_EQ(test, 0, scene_let_go(test, s, t));
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(put));
	scene_expect(test, s, "invalidate revoke put cleanup =0 release",
		     "invalidate revoke put dma_unmap put_pages =0 release");
}

static void log_names_the_revoke_that_a_put_waits_for(struct kunit *test)
{
	struct kvt_console *waiting = kvt_console_watch(test, "revoke() of its user has not returned");
	struct scene *s = scene_active(test);
	struct kvt_thread *t, *put;

	t = hold_up_a_revoke(test, s);
	put = kvt_thread_start(test, -1, scene_put, s);
	KUNIT_EXPECT_TRUE(test, kvt_console_wait(waiting));
	KUNIT_EXPECT_EQ(test, 0, scene_let_go(test, s, t));
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(put));
}

/* Skipped for a client that unmaps: its invalidations do not call put_pages(). */
static void put_waits_for_put_pages_of_an_invalidation(struct kunit *test)
{
	struct scene *s = scene_active(test);
	struct kvt_thread *t, *put;

	if (scene_unmaps(test))
		kunit_skip(test, "the client unmaps the memory");
	t = scene_held_in(test, s, PEER_PUT_PAGES, scene_invalidate);
	put = kvt_thread_start(test, -1, scene_put, s);
	scene_until_word(test, s, "put_pages put");
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(put));
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(s->m, PEER_RELEASE));
	KUNIT_EXPECT_EQ(test, 0, scene_let_go(test, s, t));
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(put));
	scene_expect(test, s, "", "invalidate revoke dma_unmap put_pages put =0 release");
}

/* Invalidation by several threads */

static void start_threads(struct kunit *test, struct scene *s, struct kvt_thread **t)
{
	int i;

	for (i = 0; i < THREADS; i++)
		t[i] = kvt_thread_start(test, -1, scene_invalidate, s);
	for (i = 0; i < THREADS; i++)
		KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t[i]));
}

/*
 * There is one revoke(). If the client unmaps, just one thread gets 0 and the others find
 * the region gone. If the core unmaps, a thread gets 0 or, if unmapping is still under way,
 * -EINPROGRESS.
 */
static void expect_one(struct kunit *test, struct scene *s, struct kvt_thread **t)
{
	int i, zeros = 0, others = 0;

	for (i = 0; i < THREADS; i++) {
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t[i]));
		zeros += !t[i]->ret;
		others += t[i]->ret == (scene_unmaps(test) ? -ENOENT : -EINPROGRESS);
	}
	KUNIT_EXPECT_EQ(test, THREADS, zeros + others);
	if (scene_unmaps(test))
		KUNIT_EXPECT_EQ(test, 1, zeros);
	else
		KUNIT_EXPECT_GE(test, zeros, 1);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->u->revokes));
	KUNIT_EXPECT_EQ(test, !scene_unmaps(test), peer_mock_calls(s->m, PEER_DMA_UNMAP));
	KUNIT_EXPECT_EQ(test, !scene_unmaps(test), peer_mock_calls(s->m, PEER_PUT_PAGES));
}

static void threads_that_invalidate_wait_for_one_revoke(struct kunit *test)
{
	struct scene *s = scene_active(test);
	struct kvt_thread *t[THREADS];

	s->u->on_revoke = scene_hold_revoke;
	start_threads(test, s, t);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->hold.entered));
	kvt_gate_open(&s->hold);
	expect_one(test, s, t);
	KUNIT_EXPECT_TRUE(test, s->hold.in_time);
	peer_user_put(s->u);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->u->wrong));
	PEER_EXPECT_IDLE(test, s->m);
}

static void threads_that_invalidate_wait_for_activation(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *t[THREADS];

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(s->u));
	start_threads(test, s, t);
	scene_until_waiting(test, THREADS);
	peer_user_activate(s->u);
	expect_one(test, s, t);
	scene_expect_waits(test, THREADS, 0);
	peer_user_put(s->u);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->u->wrong));
	PEER_EXPECT_IDLE(test, s->m);
}

/*
 * A driver with a single lock, which it holds while it invalidates. Its functions take the
 * lock, too, unless they run in the thread that holds it.
 */
static DEFINE_MUTEX(driver_lock);
static struct task_struct *driver_task;

static void take_driver_lock(struct peer_pin *pin)
{
	if (READ_ONCE(driver_task) == current)
		return;
	mutex_lock(&driver_lock);
	mutex_unlock(&driver_lock);
}

static int invalidate_locked(void *arg)
{
	int ret;

	mutex_lock(&driver_lock);
	WRITE_ONCE(driver_task, current);
	ret = scene_invalidate(arg);
	WRITE_ONCE(driver_task, NULL);
	mutex_unlock(&driver_lock);
	return ret;
}

static void driver_up(struct scene *s)
{
	s->m->on[PEER_GET_PAGES] = take_driver_lock;
	s->m->on[PEER_DMA_MAP] = take_driver_lock;
	s->m->on[PEER_DMA_UNMAP] = take_driver_lock;
	s->m->on[PEER_PUT_PAGES] = take_driver_lock;
}

static void lock_of_the_driver_is_held_across_invalidation(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *t;

	driver_up(s);
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(s->u));
	peer_user_activate(s->u);
	t = kvt_thread_start(test, -1, invalidate_locked, s);
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(t));
	peer_user_put(s->u);
	scene_expect(test, s,
			      "acquire get_pages dma_map activate invalidate revoke cleanup =0 put release",
		     "acquire get_pages dma_map activate invalidate revoke dma_unmap put_pages =0 put release");
}

/* The classic deadlock: dma_unmap(), at the region's end, takes the lock that is held. */
static void lock_of_the_driver_meets_the_end_of_the_region(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *put;

	driver_up(s);
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(s->u));
	peer_user_activate(s->u);
	kvt_trace_reset(s->tr);
	mutex_lock(&driver_lock);
	WRITE_ONCE(driver_task, current);
	put = kvt_thread_start(test, -1, scene_put, s);
	scene_until_word(test, s, "dma_unmap");
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(put));
	KUNIT_EXPECT_EQ(test, -EINPROGRESS, scene_invalidate(s));
	WRITE_ONCE(driver_task, NULL);
	mutex_unlock(&driver_lock);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(put));
	scene_expect(test, s, "put dma_unmap invalidate =-115 put_pages release",
		     "put dma_unmap invalidate =-115 put_pages release");
}

/*
 * get_pages() takes the lock, too. The core cannot know that the registration waits for the
 * invalidating thread, so the invalidation waits only for a limited time.
 */
static void lock_of_the_driver_meets_the_making_of_the_region(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *get;

	driver_up(s);
	peer_set_wait(test, SHORT_WAIT_MS);
	mutex_lock(&driver_lock);
	WRITE_ONCE(driver_task, current);
	get = kvt_thread_start(test, -1, scene_get, s);
	scene_until_word(test, s, "get_pages");
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(get));
	KUNIT_EXPECT_EQ(test, -EINPROGRESS, scene_invalidate(s));
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(get));
	WRITE_ONCE(driver_task, NULL);
	mutex_unlock(&driver_lock);
	KUNIT_ASSERT_EQ(test, -ECANCELED, kvt_thread_result(get));
	scene_expect(test, s, "acquire get_pages invalidate =-115 put_pages release",
		     "acquire get_pages invalidate =-115 put_pages release");
	scene_expect_waits(test, 1, 1);
}

static struct kunit_case peer_revoke_cases[] = {
	KUNIT_CASE_PARAM(invalidation_does_not_wait_for_dma_unmap, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_does_not_wait_for_put_pages, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_does_not_wait_for_put_pages_of_put, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_does_not_wait_for_release, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_from_within_the_last_calls, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_from_within_release, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_from_within_itself, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_from_within_revoke, scene_kinds),
	KUNIT_CASE_PARAM(stop_from_within_revoke_does_not_wait, scene_kinds),
	KUNIT_CASE_PARAM(stop_waits_for_revoke, scene_kinds),
	KUNIT_CASE_PARAM(put_waits_for_revoke_and_what_follows, scene_kinds),
	KUNIT_CASE_PARAM(log_names_the_revoke_that_a_put_waits_for, scene_kinds),
	KUNIT_CASE_PARAM(put_waits_for_put_pages_of_an_invalidation, scene_kinds),
	KUNIT_CASE_PARAM(threads_that_invalidate_wait_for_one_revoke, scene_kinds),
	KUNIT_CASE_PARAM(threads_that_invalidate_wait_for_activation, scene_kinds),
	KUNIT_CASE_PARAM(lock_of_the_driver_is_held_across_invalidation, scene_kinds),
	KUNIT_CASE_PARAM(lock_of_the_driver_meets_the_end_of_the_region, scene_kinds),
	KUNIT_CASE_PARAM(lock_of_the_driver_meets_the_making_of_the_region, scene_kinds),
	{}
};
KVT_SUITE(peer_revoke);
