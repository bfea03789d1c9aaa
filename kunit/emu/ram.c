// SPDX-License-Identifier: GPL-2.0-only
/*
 * The software HCA's table of RAM, whose source is included here: as memory is plugged, blocks
 * arrive one by one, in any order. Nothing is read or written at their addresses.
 */
#include "lib/lib.h"
#include "../drivers/emu/memory/ram.c"

/* Far above any memory of the guest. */
#define BASE		(1ULL << 40)
#define BLOCK		SZ_128M
#define BLOCKS		100

static void forget_ram(struct kunit *test)
{
	kfree(rcu_replace_pointer(emu_rams, NULL, true));
}

static void plug(struct kunit *test, unsigned int block)
{
	struct memory_notify block_of = {
		.start_pfn = PHYS_PFN(BASE + (u64)block * BLOCK),
		.nr_pages = PHYS_PFN(BLOCK),
	};

	KUNIT_EXPECT_EQ(test, NOTIFY_OK, emu_ram_notify(NULL, MEM_GOING_ONLINE, &block_of));
}

static unsigned int ranges(void)
{
	return rcu_dereference_protected(emu_rams, true)->nr;
}

static void *span(u64 offset, u64 len)
{
	return emu_ram_find(__sme_set(BASE) + offset, len);
}

static void expect_one_range(struct kunit *test, u64 size)
{
	KUNIT_EXPECT_EQ(test, 1, ranges());
	KUNIT_EXPECT_PTR_EQ(test, phys_to_virt(BASE), span(0, size));
	KUNIT_EXPECT_PTR_EQ(test, phys_to_virt(BASE + BLOCK - 1), span(BLOCK - 1, 2));
	KUNIT_EXPECT_NULL(test, span(0, size + 1));
	KUNIT_EXPECT_NULL(test, span(-1ULL, 1));
}

static void blocks_that_adjoin_are_one_range(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < BLOCKS; i++)
		plug(test, i);
	expect_one_range(test, (u64)BLOCKS * BLOCK);
}

static void so_are_those_that_arrive_from_the_top(struct kunit *test)
{
	unsigned int i;

	for (i = BLOCKS; i-- > 0;)
		plug(test, i);
	expect_one_range(test, (u64)BLOCKS * BLOCK);
}

static void hole_is_not_ram_until_it_is_filled(struct kunit *test)
{
	plug(test, 0);
	plug(test, 2);
	KUNIT_EXPECT_EQ(test, 2, ranges());
	KUNIT_EXPECT_NOT_NULL(test, span(2 * (u64)BLOCK, BLOCK));
	KUNIT_EXPECT_NULL(test, span(BLOCK - 1, 2));
	KUNIT_EXPECT_NULL(test, span(0, 3 * (u64)BLOCK));
	plug(test, 1);
	expect_one_range(test, 3 * (u64)BLOCK);
}

/* It went offline and came back, or was plugged while the module looked for RAM. */
static void block_that_is_listed_again_changes_nothing(struct kunit *test)
{
	plug(test, 0);
	plug(test, 1);
	plug(test, 0);
	KUNIT_EXPECT_EQ(test, 0, emu_ram_add(BASE + BLOCK / 2, BLOCK));
	expect_one_range(test, 2 * (u64)BLOCK);
}

static struct kunit_case emu_ram_cases[] = {
	KUNIT_CASE(blocks_that_adjoin_are_one_range),
	KUNIT_CASE(so_are_those_that_arrive_from_the_top),
	KUNIT_CASE(hole_is_not_ram_until_it_is_filled),
	KUNIT_CASE(block_that_is_listed_again_changes_nothing),
	{}
};
KVT_SUITE(emu_ram, .exit = forget_ram);

MODULE_DESCRIPTION("KUnit: the software HCA's table of RAM");
MODULE_LICENSE("GPL");
