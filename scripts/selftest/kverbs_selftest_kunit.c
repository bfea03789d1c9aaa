// SPDX-License-Identifier: GPL-2.0-only
/* A suite with one case that passes and one that fails. */
#include <kunit/test.h>

static void passes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1, 1);
}

static void fails(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 1, 2);
}

static struct kunit_case cases[] = {
	KUNIT_CASE(passes),
	KUNIT_CASE(fails),
	{}
};

static struct kunit_suite suite = {
	.name = "kverbs_selftest",
	.test_cases = cases,
};
kunit_test_suite(suite);

MODULE_DESCRIPTION("A KUnit case that fails, which the harness must notice");
MODULE_LICENSE("GPL");
