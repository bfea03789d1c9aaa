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

/* Whatever is there before a call and must be there again after it. */
static int count_held(const struct sweep *s)
{
	return mock_live(s->m) + (s->v->held ? s->v->held(s->arg) : 0);
}

/**
 * sweep_init() - look at how things are before the first call
 * @s: is filled in
 * @m: whose objects are counted
 * @v: the call
 * @arg: for @v
 */
void sweep_init(struct sweep *s, struct mock *m, const struct victim *v, void *arg)
{
	*s = (struct sweep) { .m = m, .v = v, .arg = arg };
	s->held = count_held(s);
}
EXPORT_SYMBOL_GPL(sweep_init);

static void fail_begin(const struct sweep *s)
{
	if (s->v->work)
		work_fail_nth(s->v->work, s->n);
	else
		kvt_fail_nth(s->n);
}

static void fail_end(struct sweep *s)
{
	s->ran = true;
	if (s->v->work)
		s->ran = work_failed_nth(&s->hit);
	else
		s->hit = kvt_failed_nth();
}

/* Calls once; the n-th allocation fails, if there are so many. */
static enum sweep_verdict make_once(struct sweep *s)
{
	fail_begin(s);
	s->ret = s->v->make(s->arg);
	fail_end(s);
	if (!s->ret)
		s->v->unmake(s->arg);
	if (!s->ran)
		return SWEEP_NO_WORK;
	if (count_held(s) != s->held)
		return SWEEP_LEFT;
	if (s->ret && !s->hit)
		return SWEEP_BROKEN;
	if (s->ret && s->ret != -ENOMEM)
		return SWEEP_ERRNO;
	s->refused += !!s->ret;
	s->survived += !s->ret && s->hit;
	return SWEEP_GOOD;
}

/**
 * sweep_make() - let each allocation of a call fail
 * @s: the call
 *
 * Some failures may be survived: then the call works, and is undone, as it is the last
 * time, when none fails.
 *
 * Return: what is wrong with the call.
 */
enum sweep_verdict sweep_make(struct sweep *s)
{
	enum sweep_verdict verdict;

	for (s->n = 1; s->n < MAX_ALLOCS; s->n++) {
		verdict = make_once(s);
		if (verdict != SWEEP_GOOD)
			return verdict;
		if (!s->hit)
			break;
	}
	if (s->hit)
		return SWEEP_ENDLESS;
	if (s->n == 1)
		return SWEEP_NEVER_ASKS;
	if (s->v->survives)
		return s->refused ? SWEEP_REFUSES : SWEEP_GOOD;
	return s->refused ? SWEEP_GOOD : SWEEP_HIDES;
}
EXPORT_SYMBOL_GPL(sweep_make);

/*
 * What undoes the call asks for nothing. KASAN does, when it sees a call chain free
 * something for the first time, and that chain begins at our very call: so it is made
 * twice, in one place, and watched the second time.
 */
static enum sweep_verdict unmake_quietly(struct sweep *s)
{
	unsigned int pass, passes = 2;

	OPTIMIZER_HIDE_VAR(passes);
	for (pass = 0; pass < passes; pass++) {
		s->ret = s->v->make(s->arg);
		if (s->ret)
			return SWEEP_BROKEN;
		kvt_fail_nth(pass ? 1 : MAX_ALLOCS);
		s->v->unmake(s->arg);
		s->hit = kvt_failed_nth();
	}
	return s->hit ? SWEEP_UNDO_ASKS : SWEEP_GOOD;
}

/**
 * sweep_unmake() - let each allocation fail that undoing a call makes
 * @s: the call
 *
 * Who frees something cannot be told that there is no memory: it is freed.
 *
 * Return: what is wrong with that, or with the call, of which none fails.
 */
enum sweep_verdict sweep_unmake(struct sweep *s)
{
	s->hit = true;
	for (s->n = 1; s->hit && s->n < MAX_ALLOCS; s->n++) {
		s->ret = s->v->make(s->arg);
		if (s->ret)
			return SWEEP_BROKEN;
		fail_begin(s);
		s->v->unmake(s->arg);
		fail_end(s);
		if (!s->ran)
			return SWEEP_NO_WORK;
		if (count_held(s) != s->held)
			return SWEEP_LEFT;
	}
	if (s->hit)
		return SWEEP_ENDLESS;
	return s->v->undo == UNDO_QUIET ? unmake_quietly(s) : SWEEP_GOOD;
}
EXPORT_SYMBOL_GPL(sweep_unmake);

static const char * const verdicts[] = {
	[SWEEP_GOOD] = "nothing is wrong",
	[SWEEP_ERRNO] = "it fails with something else than -ENOMEM",
	[SWEEP_LEFT] = "something is left or gone",
	[SWEEP_BROKEN] = "it fails undisturbed",
	[SWEEP_ENDLESS] = "it asks for memory without end",
	[SWEEP_NEVER_ASKS] = "it asks for no memory",
	[SWEEP_HIDES] = "no failure makes it fail",
	[SWEEP_REFUSES] = "it does not survive each failure",
	[SWEEP_UNDO_ASKS] = "undoing it asks for memory",
	[SWEEP_NO_WORK] = "its work item did not run",
};

static void must_be_good(struct kunit *test, const struct sweep *s, const char *what,
			 enum sweep_verdict verdict)
{
	KUNIT_ASSERT_EQ_MSG(test, SWEEP_GOOD, verdict, "%s%s, n=%u, returns %d, %d held of %d: %s",
			    s->v->name, what, s->n, s->ret, count_held(s), s->held,
			    verdicts[verdict]);
}

/**
 * sweep_undo() - let each allocation fail that undoing a call makes
 * @test: the running case
 * @m: whose objects are counted
 * @v: the call
 * @arg: for @v
 */
void sweep_undo(struct kunit *test, struct mock *m, const struct victim *v,
		void *arg)
{
	struct sweep s;

	sweep_init(&s, m, v, arg);
	must_be_good(test, &s, " undone", sweep_unmake(&s));
	kunit_info(test, "%s: undone, %u allocations failed", v->name, s.n - 2);
}
EXPORT_SYMBOL_GPL(sweep_undo);

/**
 * sweep() - let each allocation of a call fail
 * @test: the running case
 * @m: whose objects are counted
 * @v: the call
 * @arg: for @v
 *
 * Then it is undone with failures.
 */
void sweep(struct kunit *test, struct mock *m, const struct victim *v,
	   void *arg)
{
	struct sweep s;

	sweep_init(&s, m, v, arg);
	must_be_good(test, &s, "", sweep_make(&s));
	kunit_info(test, "%s: %u allocations failed, %u of them survived", v->name,
		   s.refused + s.survived, s.survived);
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
