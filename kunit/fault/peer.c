// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the peer-memory registry, repeated with each of their allocations failing in
 * turn; and calls that must not allocate at all.
 */
#include "fault/sweep.h"
#include "peer/rig.h"

/* Memory of more pages than one chunk of a scatterlist has entries. */
#define SIZE		(300UL * SZ_64K)

static int make_client(void *arg)
{
	/* Failure is reported as NULL, without an errno; here it can only be lack of memory. */
	return peer_mock_register(arg) ? -ENOMEM : 0;
}

static void unmake_client(void *arg)
{
	peer_mock_unregister(arg);
}

static void registration_of_a_client(struct kunit *test)
{
	static const struct victim client = {
		"ib_register_peer_memory_client", make_client, unmake_client,
	};
	struct peer_mock *m;
	char text[16];

	m = peer_mock_new(test, 0, "kvt_a", PEER_UNMAPS);
	sweep(test, mock_new(test), &client, m);
	KUNIT_EXPECT_EQ(test, -ENOENT, peer_read("kvt_a", "version", text, sizeof(text)));
}

static int make_region(void *arg)
{
	return peer_user_get(arg);
}

static void unmake_region(void *arg)
{
	peer_user_put(arg);
}

static const enum peer_kind kinds[] = { PEER_UNMAPS, PEER_CORE, PEER_NEVER };

KVT_NUMBER_PARAM(kind, kinds, "kind %d");

static const struct victim victim_region = {
	"peer_region_get", make_region, unmake_region,
};

static void memory_of_a_client(struct kunit *test)
{
	struct peer_mock *m;
	struct peer_user *u;

	m = peer_mock_up(test, 0, "kvt_a", *(const enum peer_kind *)test->param_value);
	u = peer_user_new(test, PEER_BASE(0), SIZE);
	sweep(test, mock_new(test), &victim_region, u);
	m->fill_early = true;
	u->req.name = "kvt_a";
	sweep(test, mock_new(test), &victim_region, u);
	PEER_EXPECT_IDLE(test, m);
	KUNIT_EXPECT_EQ(test, 0, peer_count(test, "kvt_a", "live_mrs"));
	KUNIT_EXPECT_EQ(test, peer_count(test, "kvt_a", "num_alloc_mrs"),
			peer_count(test, "kvt_a", "num_dealloc_mrs"));
}

/*
 * Activating, invalidating and stopping a region must not allocate memory, because a device
 * or a client waits for them. Freeing the region is left out: kfree_rcu() tries to allocate,
 * but works without.
 */
static void taking_away_needs_no_memory(struct kunit *test)
{
	struct peer_mock *m;
	struct peer_user *u;
	int ret;

	m = peer_mock_up(test, 0, "kvt_a", PEER_CORE);
	u = peer_user_new(test, PEER_BASE(0), SIZE);
	KUNIT_ASSERT_EQ(test, 0, peer_user_get(u));
	KUNIT_EXPECT_NOT_NULL(test, QUIET(test, peer_region_table(u->region)));
	KUNIT_EXPECT_STREQ(test, "kvt_a", QUIET(test, peer_region_client(u->region)));
	quiet_begin(test);
	peer_user_activate(u);
	ret = peer_pin_invalidate(u->pin);
	peer_user_stop(u);
	quiet_end(test, "what a device waits for");
	peer_user_put(u);
	KUNIT_EXPECT_EQ(test, 0, ret);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&u->revokes));
	PEER_EXPECT_IDLE(test, m);
}

/* A part of a mapped scatterlist. */
struct part {
	/* The list, with gaps between the DMA addresses of its entries. */
	struct scatterlist *list;
	struct sg_table table;	/* table of the part */
};

#define ENTRIES		300

MAKES(make_part, part, p,
	peer_table_trim(&p->table, p->list, ENTRIES, PAGE_SIZE, (ENTRIES - 2) * PAGE_SIZE))
UNMAKES(unmake_part, part, p, sg_free_table(&p->table))

static void part_of_a_list(struct kunit *test)
{
	static const struct victim part = {
		"peer_table_trim", make_part, unmake_part, UNDO_QUIET,
	};
	struct part p = {};
	int i;

	p.list = KVT_PTR(test, kunit_kcalloc(test, ENTRIES, sizeof(*p.list), GFP_KERNEL));
	sg_init_table(p.list, ENTRIES);
	for (i = 0; i < ENTRIES; i++) {
		sg_dma_address(&p.list[i]) = PEER_DMA + 2 * i * PAGE_SIZE;
		sg_dma_len(&p.list[i]) = PAGE_SIZE;
	}
	sweep(test, mock_new(test), &part, &p);
}

static struct kunit_case peer_fail_nth_cases[] = {
	KUNIT_CASE(part_of_a_list),
	KUNIT_CASE(registration_of_a_client),
	KUNIT_CASE_PARAM(memory_of_a_client, kind_gen_params),
	KUNIT_CASE_PARAM(taking_away_needs_no_memory, quiet_gen_params),
	{}
};
KVT_SUITE(peer_fail_nth, .init = kvt_need_injection);
