// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each allocation of a call fails in turn, until none does: the call must
 * report -ENOMEM, leave nothing behind, and work the next time. KASAN and
 * kmemleak see what this cannot.
 *
 * Needs CONFIG_FAILSLAB, and /sys/kernel/debug/failslab/ignore-gfp-wait set to
 * N; "verbose" had better be 0.
 */
#include <linux/compiler.h>
#include <linux/export.h>
#include <linux/string.h>
#include <kunit/test.h>

#include "fail_nth.h"
#include "lib.h"
#include "mock.h"

/* No call here allocates as often: if one still fails, something is stuck. */
#define MAX_ALLOCS	2000

/*
 * What undoes the call asks for nothing. KASAN does, when it sees a call chain free
 * something for the first time, and that chain begins at our very call: so it is made
 * twice, in one place, and watched the second time.
 */
static void sweep_quiet_undo(struct kunit *test, const struct victim *v, void *arg)
{
	unsigned int pass, passes = 2;
	bool hit = false;

	OPTIMIZER_HIDE_VAR(passes);
	for (pass = 0; pass < passes; pass++) {
		KUNIT_ASSERT_EQ(test, 0, v->make(arg));
		kvt_fail_nth(pass ? 1 : MAX_ALLOCS);
		v->unmake(arg);
		hit = kvt_failed_nth();
	}
	KUNIT_EXPECT_FALSE_MSG(test, hit, "%s undone", v->name);
}

/* Whatever is there before a call and must be there again after it. */
static int count_held(struct mock *m, const struct victim *v, void *arg)
{
	return mock_live(m) + (v->held ? v->held(arg) : 0);
}

/**
 * sweep_undo() - let each allocation fail that undoing a call makes
 * @test: the running case
 * @m: whose objects are counted
 * @v: the call
 * @arg: for @v
 *
 * Who frees something cannot be told that there is no memory: it is freed.
 */
void sweep_undo(struct kunit *test, struct mock *m, const struct victim *v,
		void *arg)
{
	int held = count_held(m, v, arg);
	bool hit = true;
	unsigned int n;

	for (n = 0; hit && n < MAX_ALLOCS; n++) {
		KUNIT_ASSERT_EQ(test, 0, v->make(arg));
		kvt_fail_nth(n + 1);
		v->unmake(arg);
		hit = kvt_failed_nth();
		KUNIT_ASSERT_EQ_MSG(test, held, count_held(m, v, arg), "%s undone, n=%u",
				    v->name, n + 1);
	}
	KUNIT_EXPECT_LT(test, n, MAX_ALLOCS);
	if (v->undo == UNDO_QUIET)
		sweep_quiet_undo(test, v, arg);
	kunit_info(test, "%s: undone, %u allocations failed", v->name, n - 1);
}
EXPORT_SYMBOL_GPL(sweep_undo);

/**
 * sweep() - let each allocation of a call fail
 * @test: the running case
 * @m: whose objects are counted
 * @v: the call
 * @arg: for @v
 *
 * Some failures may be survived: then the call works, and is undone. In the end
 * it is undone with failures.
 */
void sweep(struct kunit *test, struct mock *m, const struct victim *v,
	   void *arg)
{
	int held = count_held(m, v, arg), survived = 0;
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
		KUNIT_ASSERT_EQ_MSG(test, held, count_held(m, v, arg), "%s, n=%u",
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
	KUNIT_EXPECT_EQ(test, held, count_held(m, v, arg));
	if (v->undo != UNDO_MAKES)
		sweep_undo(test, m, v, arg);
}
EXPORT_SYMBOL_GPL(sweep);

static const char * const quiet_passes[] = { "unseen", "watched" };

/**
 * quiet_gen_params() - let a case run twice, and watch its calls the second time
 * @prev: the pass before, or NULL
 * @desc: what it is called
 *
 * The first time KASAN sees a call chain free something, it may ask for memory.
 *
 * Return: the pass, or NULL after the last one.
 */
const void *quiet_gen_params(const void *prev, char *desc)
{
	const char * const *pass = prev ? (const char * const *)prev + 1 : quiet_passes;

	if (pass == quiet_passes + ARRAY_SIZE(quiet_passes))
		return NULL;
	strscpy(desc, *pass, KUNIT_PARAM_DESC_SIZE);
	return pass;
}
EXPORT_SYMBOL_GPL(quiet_gen_params);

static bool is_watched(const struct kunit *test)
{
	return test->param_value != &quiet_passes[0];
}

/**
 * quiet_begin() - the next allocation fails
 * @test: the running case
 */
void quiet_begin(struct kunit *test)
{
	if (is_watched(test))
		kvt_fail_nth(1);
}
EXPORT_SYMBOL_GPL(quiet_begin);

/**
 * quiet_end() - there was none
 * @test: the running case
 * @call: what was called
 */
void quiet_end(struct kunit *test, const char *call)
{
	if (is_watched(test))
		KUNIT_EXPECT_FALSE_MSG(test, kvt_failed_nth(), "%s asks for memory", call);
}
EXPORT_SYMBOL_GPL(quiet_end);
