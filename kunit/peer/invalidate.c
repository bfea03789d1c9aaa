// SPDX-License-Identifier: GPL-2.0-only
/*
 * A peer memory client invalidates memory that is in use or is being registered. Each case
 * runs for a client that unmaps invalidated memory itself and for one that leaves it to the
 * core, and checks the order of all calls on both sides.
 *
 * To a client that unmaps the memory itself, 0 means that it must do so, so an invalidation
 * returns 0 only once per region. To other clients, 0 means that the core is done with the
 * memory.
 */
#include "peer/rig.h"
#include "peer/scene.h"

/* A wait that is long enough to measure, and short enough to let expire. */
#define SHORT_WAIT_MS	100

/* Regions that are active, or were stopped */

static void memory_in_use_is_revoked(struct kunit *test)
{
	struct scene *s = scene_active(test);

	peer_user_access(s->u);
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(s->u->pin));
	KUNIT_EXPECT_TRUE(test, s->u->revoked);
	KUNIT_EXPECT_EQ(test, PEER_FREED, s->u->pin->state);
	peer_user_stop(s->u);
	peer_user_put(s->u);
	scene_expect(test, s, "invalidate revoke cleanup =0 stop put release",
		     "invalidate revoke dma_unmap put_pages =0 stop put release");
	scene_expect_waits(test, 0, 0);
}

static void second_invalidation_does_nothing(struct kunit *test)
{
	struct scene *s = scene_active(test);

	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(s->u->pin));
	kvt_trace_reset(s->tr);
	peer_pin_invalidate(s->u->pin);
	peer_user_stop(s->u);
	peer_pin_invalidate(s->u->pin);
	peer_user_put(s->u);
	scene_expect(test, s, "invalidate =-2 stop invalidate =-2 put release",
		     "invalidate =0 stop invalidate =0 put release");
}

static void memory_that_was_stopped_is_the_clients(struct kunit *test)
{
	struct scene *s = scene_active(test);

	peer_user_stop(s->u);
	peer_pin_invalidate(s->u->pin);
	peer_user_put(s->u);
	scene_expect(test, s, "stop dma_unmap put_pages invalidate =-2 put release",
		     "stop dma_unmap put_pages invalidate =0 put release");
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->u->revokes));
}

static void number_of_no_region_is_not_found(struct kunit *test)
{
	struct scene *s = scene_active(test);
	u64 number = s->u->pin->number;

	KUNIT_EXPECT_EQ(test, -ENOENT, s->m->invalidate(s->m->handle, 0));
	KUNIT_EXPECT_EQ(test, -ENOENT, s->m->invalidate(s->m->handle, number + 1));
	KUNIT_EXPECT_EQ(test, -ENOENT, s->m->invalidate(s->m->handle, U64_MAX));
	KUNIT_EXPECT_EQ(test, -ENOENT, s->m->invalidate(s->m->handle, number | BIT_ULL(32)));
	peer_user_put(s->u);
	KUNIT_EXPECT_EQ(test, -ENOENT, s->m->invalidate(s->m->handle, number));
	scene_expect(test, s, "put dma_unmap put_pages release", "put dma_unmap put_pages release");
	KUNIT_EXPECT_EQ(test, 5, peer_count(test, "kvt_a", "num_free_callbacks"));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->u->revokes));
}

static void other_regions_live_on(struct kunit *test)
{
	struct scene *s = scene_active(test);
	struct peer_user *other = peer_user_new(test, PEER_BASE(0), SZ_64K);

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(other));
	peer_user_activate(other);
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(s->u->pin));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&other->revokes));
	KUNIT_EXPECT_EQ(test, PEER_MAPPED, other->pin->state);
	peer_user_access(other);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&other->wrong));
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(other->pin));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&other->revokes));
	peer_user_put(other);
	peer_user_put(s->u);
	PEER_EXPECT_IDLE(test, s->m);
}

/* Regions that are not active yet */

static void invalidation_before_activation_waits_for_it(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *t;

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(s->u));
	t = kvt_thread_start(test, -1, scene_invalidate, s);
	scene_until_waiting(test, 1);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	KVT_EXPECT_TRACE(test, s->tr, "acquire get_pages dma_map invalidate");
	peer_user_activate(s->u);
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(t));
	peer_user_put(s->u);
	scene_expect(test, s,
			      "acquire get_pages dma_map invalidate activate revoke cleanup =0 put release",
		     "acquire get_pages dma_map invalidate activate revoke dma_unmap put_pages =0 put release");
	scene_expect_waits(test, 1, 0);
}

static void activation_never_comes(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *t;

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(s->u));
	t = kvt_thread_start(test, -1, scene_invalidate, s);
	scene_until_waiting(test, 1);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	peer_user_put(s->u);
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(t));
	scene_expect(test, s, "acquire get_pages dma_map invalidate put cleanup =0 release",
		     "acquire get_pages dma_map invalidate put dma_unmap put_pages =0 release");
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->u->revokes));
}

static void who_registers_cannot_wait_for_itself(struct kunit *test)
{
	struct scene *s = scene_up(test);

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(s->u));
	KUNIT_EXPECT_EQ(test, -EINPROGRESS, peer_pin_invalidate(s->u->pin));
	peer_user_activate(s->u);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->u->revokes));
	peer_user_put(s->u);
	/* -EINPROGRESS means that the core unmaps the memory, whichever kind the client is. */
	scene_expect(test, s,
			      "acquire get_pages dma_map invalidate =-115 activate revoke dma_unmap put_pages put release",
		     "acquire get_pages dma_map invalidate =-115 activate revoke dma_unmap put_pages put release");
	scene_expect_waits(test, 0, 0);
}

static void who_registers_may_give_up_what_it_invalidated(struct kunit *test)
{
	struct scene *s = scene_up(test);

	KUNIT_ASSERT_EQ(test, 0, peer_user_get(s->u));
	KUNIT_EXPECT_EQ(test, -EINPROGRESS, peer_pin_invalidate(s->u->pin));
	KUNIT_EXPECT_EQ(test, -EINPROGRESS, peer_pin_invalidate(s->u->pin));
	peer_user_put(s->u);
	scene_expect(test, s,
			      "acquire get_pages dma_map invalidate =-115 invalidate =-115 put dma_unmap put_pages release",
		     "acquire get_pages dma_map invalidate =-115 invalidate =-115 put dma_unmap put_pages release");
}

/* Regions that are being registered */

static void invalidation_from_within_get_pages(struct kunit *test)
{
	struct scene *s = scene_up(test);

	s->m->on[PEER_GET_PAGES] = peer_pin_invalidate_here;
	KUNIT_EXPECT_EQ(test, -ECANCELED, peer_user_get(s->u));
	scene_expect(test, s, "acquire get_pages invalidate =-115 put_pages release",
		     "acquire get_pages invalidate =-115 put_pages release");
	scene_expect_waits(test, 0, 0);
}

static const char made_here[] =
	"acquire get_pages dma_map invalidate =-115 dma_unmap put_pages release";

static void invalidation_from_within_dma_map(struct kunit *test)
{
	struct scene *s = scene_up(test);

	s->m->on[PEER_DMA_MAP] = peer_pin_invalidate_here;
	KUNIT_EXPECT_EQ(test, -ECANCELED, peer_user_get(s->u));
	scene_expect(test, s, made_here, made_here);
	scene_expect_waits(test, 0, 0);
}

static void invalidation_from_within_get_page_size(struct kunit *test)
{
	struct scene *s = scene_up(test);

	s->m->on[PEER_PAGE_SIZE] = peer_pin_invalidate_here;
	KUNIT_EXPECT_EQ(test, -ECANCELED, peer_user_get(s->u));
	scene_expect(test, s, made_here, made_here);
}

/*
 * The memory is never mapped, so a client that unmaps memory itself has nothing to unmap:
 * the registering thread puts the pages, before or after the invalidation returns. As the
 * order may vary, invalidations are not in the trace of such a client.
 */
static struct scene *scene_unmapped(struct kunit *test)
{
	struct scene *s = scene_up(test);

	s->m->quiet = scene_unmaps(test);
	return s;
}

static void expect_unmapped(struct kunit *test, struct scene *s, struct kvt_thread *t,
			    const char *unmaps, const char *core)
{
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	if (!scene_unmaps(test))
		KUNIT_EXPECT_EQ(test, 0, t->ret);
	else if (t->ret != -EINPROGRESS)
		KUNIT_EXPECT_EQ(test, -ENOENT, t->ret);
	scene_expect(test, s, unmaps, core);
	scene_expect_waits(test, 1, 0);
}

/*
 * Holds the registering thread up in @call until an invalidation waits for it, then lets it
 * go on: the registration must return @err. Returns the invalidating thread.
 */
static struct kvt_thread *waited_for(struct kunit *test, struct scene *s,
				     enum peer_call call, int err)
{
	struct kvt_thread *get = scene_held_in(test, s, call, scene_get), *t;

	t = kvt_thread_start(test, -1, scene_invalidate, s);
	scene_until_waiting(test, 1);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	KUNIT_EXPECT_EQ(test, err, scene_let_go(test, s, get));
	return t;
}

static void invalidation_waits_for_get_pages(struct kunit *test)
{
	struct scene *s = scene_unmapped(test);
	struct kvt_thread *t = waited_for(test, s, PEER_GET_PAGES, -ECANCELED);

	expect_unmapped(test, s, t, "acquire get_pages put_pages release",
			"acquire get_pages invalidate put_pages =0 release");
}

static void invalidation_waits_for_dma_map(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *t = waited_for(test, s, PEER_DMA_MAP, -ECANCELED);

	KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(t));
	scene_expect(test, s, "acquire get_pages dma_map invalidate cleanup =0 release",
		     "acquire get_pages dma_map invalidate dma_unmap put_pages =0 release");
	scene_expect_waits(test, 1, 0);
}

static void registration_fails_while_an_invalidation_waits(struct kunit *test)
{
	struct scene *s = scene_unmapped(test);
	struct kvt_thread *t;

	s->m->ret[PEER_GET_PAGES] = -EFAULT;
	t = waited_for(test, s, PEER_GET_PAGES, -EFAULT);
	expect_unmapped(test, s, t, "acquire get_pages release",
			"acquire get_pages invalidate =0 release");
}

static void mapping_fails_while_an_invalidation_waits(struct kunit *test)
{
	struct scene *s = scene_unmapped(test);
	struct kvt_thread *t;

	s->m->ret[PEER_DMA_MAP] = -EIO;
	t = waited_for(test, s, PEER_DMA_MAP, -EIO);
	expect_unmapped(test, s, t, "acquire get_pages dma_map put_pages release",
			"acquire get_pages dma_map invalidate put_pages =0 release");
}

/* The wait for a registration or activation is bounded */

static void wait_for_get_pages_is_bounded(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *get = scene_held_in(test, s, PEER_GET_PAGES, scene_get);
	unsigned long start = jiffies;

	peer_set_wait(test, SHORT_WAIT_MS);
	KUNIT_EXPECT_EQ(test, -EINPROGRESS, scene_invalidate(s));
	KUNIT_EXPECT_GE(test, jiffies - start, msecs_to_jiffies(SHORT_WAIT_MS));
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(get));
	scene_expect_waits(test, 1, 1);
	KUNIT_EXPECT_EQ(test, -ECANCELED, scene_let_go(test, s, get));
	scene_expect(test, s, "acquire get_pages invalidate =-115 put_pages release",
		     "acquire get_pages invalidate =-115 put_pages release");
}

static void wait_for_dma_map_is_bounded(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *get = scene_held_in(test, s, PEER_DMA_MAP, scene_get);

	peer_set_wait(test, SHORT_WAIT_MS);
	KUNIT_EXPECT_EQ(test, -EINPROGRESS, scene_invalidate(s));
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(get));
	scene_expect_waits(test, 1, 1);
	KUNIT_EXPECT_EQ(test, -ECANCELED, scene_let_go(test, s, get));
	scene_expect(test, s, made_here, made_here);
}

static void no_wait_if_none_is_wanted(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *get = scene_held_in(test, s, PEER_DMA_MAP, scene_get);

	peer_set_wait(test, 0);
	KUNIT_EXPECT_EQ(test, -EINPROGRESS, scene_invalidate(s));
	scene_expect_waits(test, 0, 0);
	KUNIT_EXPECT_EQ(test, -ECANCELED, scene_let_go(test, s, get));
	scene_expect(test, s, made_here, made_here);
}

static void wait_for_activation_is_bounded(struct kunit *test)
{
	struct scene *s = scene_up(test);
	struct kvt_thread *t;

	peer_set_wait(test, SHORT_WAIT_MS);
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(s->u));
	t = kvt_thread_start(test, -1, scene_invalidate, s);
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, kvt_thread_result(t));
	peer_user_activate(s->u);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->u->revokes));
	peer_user_put(s->u);
	scene_expect(test, s,
			      "acquire get_pages dma_map invalidate =-115 activate revoke dma_unmap put_pages put release",
		     "acquire get_pages dma_map invalidate =-115 activate revoke dma_unmap put_pages put release");
	scene_expect_waits(test, 1, 1);
}

static struct kunit_case peer_invalidate_cases[] = {
	KUNIT_CASE_PARAM(memory_in_use_is_revoked, scene_kinds),
	KUNIT_CASE_PARAM(second_invalidation_does_nothing, scene_kinds),
	KUNIT_CASE_PARAM(memory_that_was_stopped_is_the_clients, scene_kinds),
	KUNIT_CASE_PARAM(number_of_no_region_is_not_found, scene_kinds),
	KUNIT_CASE_PARAM(other_regions_live_on, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_before_activation_waits_for_it, scene_kinds),
	KUNIT_CASE_PARAM(activation_never_comes, scene_kinds),
	KUNIT_CASE_PARAM(who_registers_cannot_wait_for_itself, scene_kinds),
	KUNIT_CASE_PARAM(who_registers_may_give_up_what_it_invalidated, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_from_within_get_pages, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_from_within_dma_map, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_from_within_get_page_size, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_waits_for_get_pages, scene_kinds),
	KUNIT_CASE_PARAM(invalidation_waits_for_dma_map, scene_kinds),
	KUNIT_CASE_PARAM(registration_fails_while_an_invalidation_waits, scene_kinds),
	KUNIT_CASE_PARAM(mapping_fails_while_an_invalidation_waits, scene_kinds),
	KUNIT_CASE_PARAM(wait_for_get_pages_is_bounded, scene_kinds),
	KUNIT_CASE_PARAM(wait_for_dma_map_is_bounded, scene_kinds),
	KUNIT_CASE_PARAM(no_wait_if_none_is_wanted, scene_kinds),
	KUNIT_CASE_PARAM(wait_for_activation_is_bounded, scene_kinds),
	{}
};
KVT_SUITE(peer_invalidate);
