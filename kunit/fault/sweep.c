// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes each allocation of a call fail in turn, until the call is made without a failed
 * allocation: it must return -ENOMEM or succeed, and leave nothing behind. KASAN and
 * kmemleak find what these checks cannot.
 *
 * Needs CONFIG_FAILSLAB, and /sys/kernel/debug/failslab/ignore-gfp-wait set to
 * N; "verbose" should be 0.
 */
#include <linux/compiler.h>

#include "fault/sweep.h"
#include "lib/mock.h"

/* More allocations than any call makes: a call that reaches it allocates without end. */
#define MAX_ALLOCS	2000

/* Number of objects and the like, which must be the same before and after a call. */
static int count_held(const struct sweep *s)
{
	return mock_live(s->m) + (s->v->held ? s->v->held(s->arg) : 0);
}

/**
 * sweep_init() - set up a sweep, and count objects before the first call
 * @s: the sweep, which is filled in
 * @m: the device whose objects are counted
 * @v: the call
 * @arg: argument for @v
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

/* Makes the call once, and undoes it if it succeeds; its allocation number @n fails. */
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
 * sweep_make() - make each allocation of a call fail in turn
 * @s: the sweep
 *
 * The call may succeed although an allocation failed; then it is undone, as it is after the
 * last round, in which no allocation fails.
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
 * Checks that undoing the call allocates nothing. KASAN allocates memory the first time that
 * it sees a call chain free something, and the chain includes the call site below: so the
 * call is undone twice from the same call site, and allocations are watched the second time.
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
 * sweep_unmake() - make each allocation of undoing a call fail in turn
 * @s: the sweep
 *
 * Undoing has no way to report an error, so it must work without memory. No allocation of
 * the call itself fails.
 *
 * Return: what is wrong with the call, or with undoing it.
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
 * sweep_undo() - check a call whose undoing has each allocation fail in turn
 * @test: the running case, which is aborted if something is wrong
 * @m: the device whose objects are counted
 * @v: the call
 * @arg: argument for @v
 */
void sweep_undo(struct kunit *test, struct mock *m, const struct victim *v, void *arg)
{
	struct sweep s;

	sweep_init(&s, m, v, arg);
	must_be_good(test, &s, " undone", sweep_unmake(&s));
	kunit_info(test, "%s: undone, %u allocations failed", v->name, s.n - 2);
}
EXPORT_SYMBOL_GPL(sweep_undo);

/**
 * sweep() - check a call with each allocation failing in turn
 * @test: the running case, which is aborted if something is wrong
 * @m: the device whose objects are counted
 * @v: the call
 * @arg: argument for @v
 *
 * Then does the same for undoing the call, unless the victim says %UNDO_MAKES.
 */
void sweep(struct kunit *test, struct mock *m, const struct victim *v, void *arg)
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
 * quiet_gen_params() - run a case twice, and watch its calls for allocations the second time
 * @prev: the previous pass, or NULL
 * @desc: where the name of the pass is stored
 *
 * KASAN may allocate memory the first time that it sees a call chain free something.
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
 * quiet_begin() - make the next allocation fail, in the second pass
 * @test: the running case
 */
void quiet_begin(struct kunit *test)
{
	if (is_watched(test))
		kvt_fail_nth(1);
}
EXPORT_SYMBOL_GPL(quiet_begin);

/**
 * quiet_end() - check that there was no allocation since quiet_begin()
 * @test: the running case
 * @call: name of the call, for the message
 */
void quiet_end(struct kunit *test, const char *call)
{
	if (is_watched(test))
		KUNIT_EXPECT_FALSE_MSG(test, kvt_failed_nth(), "%s asks for memory", call);
}
EXPORT_SYMBOL_GPL(quiet_end);
