// SPDX-License-Identifier: GPL-2.0-only
/*
 * A client of peer memory invalidates a region, and stands still in the call, while the
 * region goes and others come. See kverbs/delay.h.
 */
#include <linux/sizes.h>
#include <kverbs/delay.h>

/* The rig has a function of this name, too. */
#define peer_count	core_peer_count
#include "../peer_mem/peer.h"
#undef peer_count
#include "peer/rig.h"

#define OTHERS		1000

/* An invalidation that is late. */
struct slow_call {
	struct peer_user *u;		/* the user of the region */
	/* A user of one that is made meanwhile, the 2^32nd after it if @wraps. */
	struct peer_user *next;
	struct peer_user *other;	/* user of those in between */
	struct peer_mock *m;		/* the client */
	bool wraps;			/* as many regions have been made since as 32 bits count */
	u32 failed;			/* regions that could not be made */
};

static bool get(struct slow_call *c, struct peer_user *u)
{
	if (peer_user_get(u)) {
		c->failed++;
		return false;
	}
	peer_user_activate(u);
	return true;
}

static void regions_come_and_go(void *arg)
{
	struct slow_call *c = arg;
	struct peer_client *client = c->m->handle;
	unsigned long number = c->u->pin->number;
	int i;

	peer_user_put(c->u);
	for (i = 0; i < OTHERS; i++)
		if (get(c, c->other))
			peer_user_put(c->other);
	if (c->wraps)
		atomic_long_set(&client->last_number, number + U32_MAX);
	get(c, c->next);
}

static struct slow_call *slow_call_new(struct kunit *test, const enum peer_kind *kind)
{
	struct slow_call *c = kvt_zalloc(test, sizeof(*c));

	c->m = peer_mock_up(test, 0, "kvt_a", *kind);
	c->u = peer_user_new(test, PEER_BASE(0), SZ_64K);
	c->next = peer_user_new(test, PEER_BASE(0) + SZ_1M, SZ_64K);
	c->other = peer_user_new(test, PEER_BASE(0) + SZ_2M, SZ_64K);
	KUNIT_ASSERT_TRUE(test, get(c, c->u));
	return c;
}

static const enum peer_kind kinds[] = { PEER_UNMAPS, PEER_CORE };

static void kind_name(const enum peer_kind *kind, char *desc)
{
	strscpy(desc, *kind == PEER_UNMAPS ? "client unmaps" : "core unmaps",
		KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(kind, kinds, kind_name);

static void expect_next_is_untouched(struct kunit *test, struct slow_call *c)
{
	KUNIT_EXPECT_EQ(test, 0, c->failed);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&c->u->revokes));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&c->next->revokes));
	peer_user_access(c->next);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&c->next->wrong));
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(c->next->pin));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&c->next->revokes));
	peer_user_put(c->next);
	PEER_EXPECT_IDLE(test, c->m);
}

/* The region's number is not that of another, although its low 32 bits are. */
static void late_invalidation_does_not_hit_another_region(struct kunit *test)
{
	struct slow_call *c = slow_call_new(test, test->param_value);
	u64 number = c->u->pin->number;

	if (!IS_ENABLED(CONFIG_64BIT))
		kunit_skip(test, "numbers have 32 bits here");
	c->wraps = true;
	kverbs_delay_set("peer_invalidate", regions_come_and_go, c);
	KUNIT_EXPECT_EQ(test, -ENOENT, c->m->invalidate(c->m->handle, number));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, lower_32_bits(number), lower_32_bits(c->next->pin->number));
	expect_next_is_untouched(test, c);
}

/* It has found the region, which is put before it goes on. */
static void invalidation_of_a_region_that_was_put_does_nothing(struct kunit *test)
{
	struct slow_call *c = slow_call_new(test, test->param_value);
	bool unmaps = *(const enum peer_kind *)test->param_value == PEER_UNMAPS;

	kverbs_delay_set("peer_invalidate_found", regions_come_and_go, c);
	KUNIT_EXPECT_EQ(test, unmaps ? -ENOENT : 0,
			c->m->invalidate(c->m->handle, c->u->pin->number));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	expect_next_is_untouched(test, c);
}

static struct kunit_case peer_standstill_cases[] = {
	KUNIT_CASE_PARAM(late_invalidation_does_not_hit_another_region, kind_gen_params),
	KUNIT_CASE_PARAM(invalidation_of_a_region_that_was_put_does_nothing, kind_gen_params),
	{}
};
KVT_SUITE(peer_standstill);
