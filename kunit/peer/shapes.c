// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer clients written like those of real drivers go through the life of a region, with and
 * without invalidation. Whatever a client assumes of the interface, what it pins is unpinned
 * exactly once.
 */
#include <linux/scatterlist.h>

#include "peer/rig.h"
#include "peer/shapes.h"

#define RACES		2000

/* A range of the size of a client's page, but spread over two of its pages. */
#define OFFSET		0x8000UL
#define SIZE		SZ_64K

/* Longer than any case takes: invalidations that wait for a region must not time out. */
#define LONG_WAIT_MS	60000

atomic_t shape_wrong;
void *shape_handle;
/* Client contexts, and pinned ranges. */
static atomic_t shape_contexts;
static atomic_t shape_pinned;

/* Pins the pages that a range touches. */
struct shape_pages *shape_pin(unsigned long addr, size_t size)
{
	struct shape_pages *pages = kzalloc(sizeof(*pages), GFP_KERNEL);

	if (!pages)
		return NULL;
	pages->first = ALIGN_DOWN(addr, SHAPE_PAGE);
	pages->count = (ALIGN(addr + size, SHAPE_PAGE) - pages->first) / SHAPE_PAGE;
	atomic_inc(&shape_pinned);
	return pages;
}

/* Unpinning the same pages twice is a double free, and so caught by KASAN. */
void shape_unpin(struct shape_pages *pages)
{
	atomic_dec(&shape_pinned);
	kfree(pages);
}

/* Fills in a table that has an entry for each page. */
void shape_fill(struct sg_table *sgt, const struct shape_pages *pages)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(sgt, sg, i) {
		sg_set_page(sg, NULL, SHAPE_PAGE, 0);
		sg_dma_address(sg) = shape_dma(pages) + (u64)i * SHAPE_PAGE;
		sg_dma_len(sg) = SHAPE_PAGE;
	}
}

/* Makes a zeroed context for a range that is the shape's; returns what acquire() does. */
int shape_acquire(unsigned long addr, size_t size, void **client_context, size_t context_size)
{
	void *context;

	if (!shape_has(addr, size))
		return 0;
	context = kzalloc(context_size, GFP_KERNEL);
	if (!context)
		return 0;
	atomic_inc(&shape_contexts);
	*client_context = context;
	return 1;
}

/* Frees a context; @left are the pages of it that are still pinned: there must be none. */
void shape_free(void *context, const struct shape_pages *left)
{
	if (left)
		atomic_inc(&shape_wrong);
	kfree(context);
	atomic_dec(&shape_contexts);
}

unsigned long shape_get_page_size(void *client_context)
{
	return SHAPE_PAGE;
}

static const struct peer_shape * const shapes[] = {
	&shape_unmaps, &shape_legacy, &shape_persistent, &shape_by_symbol, &shape_early,
	&shape_pointer,
};

static void shape_name(const struct peer_shape * const *shape, char *desc)
{
	strscpy(desc, (*shape)->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(shape, shapes, shape_name);

static void shape_end(void *arg)
{
	const struct peer_shape *shape = arg;

	if (shape->down)
		shape->down();
	else
		ib_unregister_peer_memory_client(shape_handle);
}

static const struct peer_shape *shape_up(struct kunit *test)
{
	const struct peer_shape *shape = *(const struct peer_shape * const *)
					 test->param_value;

	atomic_set(&shape_wrong, 0);
	shape_handle = shape->up();
	KUNIT_ASSERT_NOT_NULL(test, shape_handle);
	kvt_defer(test, shape_end, (void *)shape);
	return shape;
}

/* Registers the case's client, and skips the case if that client never invalidates. */
static const struct peer_shape *invalidating_shape_up(struct kunit *test)
{
	const struct peer_shape *shape = shape_up(test);

	if (!shape->take_away)
		kunit_skip(test, "it never invalidates");
	return shape;
}

static struct peer_user *user_up(struct kunit *test)
{
	struct peer_user *u = peer_user_new(test, SHAPE_BASE + OFFSET, SIZE);

	u->any_caller = true;
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	return u;
}

static void expect_nothing_left(struct kunit *test, struct peer_user *u, int revokes)
{
	KUNIT_EXPECT_EQ(test, revokes, atomic_read(&u->revokes));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&u->wrong));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&shape_wrong));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&shape_pinned));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&shape_contexts));
}

static void region_lives(struct kunit *test)
{
	const struct peer_shape *shape = shape_up(test);
	struct peer_user *u = user_up(test);
	const struct sg_table *sgt = peer_region_table(u->region);

	KUNIT_EXPECT_STREQ(test, shape->name, peer_region_client(u->region));
	KUNIT_EXPECT_EQ(test, 1, sgt->nents);
	KUNIT_EXPECT_EQ(test, SHAPE_DMA + OFFSET, sg_dma_address(sgt->sgl));
	KUNIT_EXPECT_EQ(test, SIZE, sg_dma_len(sgt->sgl));
	peer_user_activate(u);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&shape_pinned));
	peer_user_stop(u);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&shape_pinned));
	peer_user_put(u);
	expect_nothing_left(test, u, 0);
}

static void only_the_persistent_one_goes_without_revocation(struct kunit *test)
{
	const struct peer_shape *shape = shape_up(test);
	struct peer_user *u = peer_user_new(test, SHAPE_BASE + OFFSET, SIZE);

	u->req.revocable = false;
	KUNIT_EXPECT_EQ(test, shape->take_away ? -EOPNOTSUPP : 0, peer_user_get(u));
	if (u->region)
		peer_user_put(u);
	expect_nothing_left(test, u, 0);
}

static void region_in_use_is_taken_away(struct kunit *test)
{
	const struct peer_shape *shape = invalidating_shape_up(test);
	struct peer_user *u = user_up(test);

	peer_user_activate(u);
	shape->take_away();
	KUNIT_EXPECT_TRUE(test, u->revoked);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&shape_pinned));
	shape->take_away();
	peer_user_stop(u);
	shape->take_away();
	peer_user_put(u);
	shape->take_away();
	expect_nothing_left(test, u, 1);
}

static int take_away_fn(void *arg)
{
	const struct peer_shape *shape = arg;

	shape->take_away();
	return 0;
}

static void region_is_taken_away_before_activation(struct kunit *test)
{
	const struct peer_shape *shape = invalidating_shape_up(test);
	struct peer_user *u = user_up(test);
	struct kvt_thread *t = kvt_thread_start(test, -1, take_away_fn, (void *)shape);

	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	peer_user_activate(u);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	KUNIT_EXPECT_TRUE(test, u->revoked);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&shape_pinned));
	peer_user_put(u);
	expect_nothing_left(test, u, 1);
}

static void region_is_taken_away_and_never_activated(struct kunit *test)
{
	const struct peer_shape *shape = invalidating_shape_up(test);
	struct peer_user *u = user_up(test);
	struct kvt_thread *t = kvt_thread_start(test, -1, take_away_fn, (void *)shape);

	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	peer_user_put(u);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	expect_nothing_left(test, u, 0);
}

static void registering_thread_takes_it_away(struct kunit *test)
{
	const struct peer_shape *shape = invalidating_shape_up(test);
	struct peer_user *u = user_up(test);

	shape->take_away();
	peer_user_activate(u);
	KUNIT_EXPECT_TRUE(test, u->revoked);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&shape_pinned));
	peer_user_put(u);
	expect_nothing_left(test, u, 1);
}

/* Invalidates the regions that another thread makes and puts. */
static int race_fn(void *arg)
{
	const struct peer_shape *shape = arg;

	while (!kvt_should_stop()) {
		shape->take_away();
		cond_resched();
	}
	return 0;
}

/* Makes a region and puts it; bits of @rand choose whether to activate and stop it between. */
static void run_race(struct kunit *test, struct peer_user *u, u32 rand)
{
	int ret = peer_user_get(u);

	if (ret) {
		KUNIT_ASSERT_EQ(test, -ECANCELED, ret);
		return;
	}
	if (rand & 1)
		peer_user_activate(u);
	if (rand & 2)
		cond_resched();
	if (rand & 4)
		peer_user_stop(u);
	peer_user_put(u);
	KUNIT_ASSERT_LE(test, atomic_read(&u->revokes), rand & 1);
}

static void region_is_taken_away_at_any_time(struct kunit *test)
{
	const struct peer_shape *shape = invalidating_shape_up(test);
	struct peer_user *u = peer_user_new(test, SHAPE_BASE + OFFSET, SIZE);
	u64 i, count = kvt_count(RACES);
	u32 rand = kvt_seed(test, "regions", count);
	struct kvt_thread *t;

	u->any_caller = true;
	/* The clients rely on it that no invalidation returns while the region is being made. */
	peer_set_wait(test, LONG_WAIT_MS);
	t = kvt_thread_start(test, kvt_other_cpu(), race_fn, (void *)shape);
	for (i = 0; i < count; i++)
		run_race(test, u, kvt_rand(&rand) >> 8);
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_stop(t));
	atomic_set(&u->revokes, 0);
	expect_nothing_left(test, u, 0);
}

static struct kunit_case peer_shapes_cases[] = {
	KUNIT_CASE_PARAM(region_lives, shape_gen_params),
	KUNIT_CASE_PARAM(only_the_persistent_one_goes_without_revocation, shape_gen_params),
	KUNIT_CASE_PARAM(region_in_use_is_taken_away, shape_gen_params),
	KUNIT_CASE_PARAM(region_is_taken_away_before_activation, shape_gen_params),
	KUNIT_CASE_PARAM(region_is_taken_away_and_never_activated, shape_gen_params),
	KUNIT_CASE_PARAM(registering_thread_takes_it_away, shape_gen_params),
	KUNIT_CASE_PARAM_ATTR(region_is_taken_away_at_any_time, shape_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	{}
};
KVT_SUITE(peer_shapes);
