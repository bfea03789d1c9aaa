// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each allocation of a call fails in turn, until none does: the call must
 * report -ENOMEM, leave nothing behind, and work the next time. KASAN and
 * kmemleak see what this cannot.
 *
 * Needs CONFIG_FAILSLAB, and /sys/kernel/debug/failslab/ignore-gfp-wait set to
 * N; "verbose" had better be 0.
 */
#include <linux/export.h>
#include <kunit/test.h>

#include "fail_nth.h"
#include "lib.h"
#include "mock.h"

/* No call here allocates as often: if one still fails, something is stuck. */
#define MAX_ALLOCS	2000

/**
 * sweep() - let each allocation of a call fail
 * @test: the running case
 * @m: whose objects are counted
 * @v: the call
 * @arg: for @v
 *
 * Some failures may be survived: then the call works, and is undone.
 */
void sweep(struct kunit *test, struct mock *m, const struct victim *v,
	   void *arg)
{
	int live = mock_live(m), survived = 0;
	unsigned int n;

	for (n = 1; n < MAX_ALLOCS; n++) {
		bool hit;
		int ret;

		kvt_fail_nth(n);
		ret = v->make(arg);
		hit = kvt_failed_nth();
		if (!ret) {
			v->unmake(arg);
			survived += hit;
		} else {
			KUNIT_EXPECT_EQ_MSG(test, -ENOMEM, ret, "%s, n=%u",
					    v->name, n);
		}
		KUNIT_ASSERT_EQ_MSG(test, live, mock_live(m), "%s, n=%u",
				    v->name, n);
		if (!hit)
			break;
	}
	kunit_info(test, "%s: %u allocations failed, %d of them survived",
		   v->name, n - 1, survived);
	KUNIT_EXPECT_GT(test, n, 1);
	KUNIT_EXPECT_LT(test, n, MAX_ALLOCS);
	KUNIT_ASSERT_EQ(test, 0, v->make(arg));
	v->unmake(arg);
	KUNIT_EXPECT_EQ(test, live, mock_live(m));
}
EXPORT_SYMBOL_GPL(sweep);
