// SPDX-License-Identifier: GPL-2.0-only
/*
 * Self-test of sweep.c: calls that handle failed allocations wrongly, each in its own way, get
 * the right verdict and fail their case; calls that handle them well pass.
 */
#include <linux/workqueue.h>
#include <kunit/try-catch.h>

#include "fault/sweep.h"
#include "lib/mock.h"

/* State of the calls. */
struct patient {
	int held;	/* calls that were made and not undone */
	bool ill;	/* make_never_again() fails from now on */
	/* Work item that makes or undoes a call on behalf of the thread. */
	struct work_struct work;
	int made;	/* what the call made by @work returned */
};

static bool ask(void)
{
	void *memory = kmalloc(16, GFP_KERNEL);

	kfree(memory);
	return memory;
}

/* --- making ------------------------------------------------------------------ */

static int make_well(void *arg)
{
	struct patient *p = arg;

	if (!ask() || !ask())
		return -ENOMEM;
	p->held++;
	return 0;
}

static int make_with_another_errno(void *arg)
{
	return make_well(arg) ? -EIO : 0;
}

static int make_and_leave(void *arg)
{
	struct patient *p = arg;
	int ret = make_well(p);

	p->held += !!ret;
	return ret;
}

static int make_and_take_away(void *arg)
{
	struct patient *p = arg;
	int ret = make_well(p);

	p->held -= !!ret;
	return ret;
}

static int make_never_again(void *arg)
{
	struct patient *p = arg;

	if (p->ill)
		return -ENOMEM;
	p->ill = make_well(p);
	return p->ill ? -ENOMEM : 0;
}

static int make_whatever_fails(void *arg)
{
	struct patient *p = arg;

	ask();
	p->held++;
	return 0;
}

static int make_without_memory(void *arg)
{
	struct patient *p = arg;

	p->held++;
	return 0;
}

static int make_without_end(void *arg)
{
	kvt_fail_nth(1);
	return make_well(arg);
}

static void patient_work(struct work_struct *work)
{
	struct patient *p = container_of(work, struct patient, work);

	p->made = make_well(p);
}

static int make_in_work(void *arg)
{
	struct patient *p = arg;

	INIT_WORK_ONSTACK(&p->work, patient_work);
	schedule_work(&p->work);
	flush_work(&p->work);
	destroy_work_on_stack(&p->work);
	return p->made;
}

static int make_in_work_and_leave(void *arg)
{
	struct patient *p = arg;
	int ret = make_in_work(p);

	p->held += !!ret;
	return ret;
}

/* --- undoing ----------------------------------------------------------------- */

UNMAKES(unmake_well, patient, p, p->held--)

static void unmake_whatever_fails(void *arg)
{
	ask();
	unmake_well(arg);
}

static void unmake_with_memory(void *arg)
{
	if (ask())
		unmake_well(arg);
}

static void unmake_for_ever(void *arg)
{
	struct patient *p = arg;

	p->ill = true;
	unmake_whatever_fails(p);
}

static void unmake_without_end(void *arg)
{
	kvt_fail_nth(1);
	unmake_whatever_fails(arg);
}

static void undoing_work(struct work_struct *work)
{
	unmake_with_memory(container_of(work, struct patient, work));
}

static void unmake_in_work(void *arg)
{
	struct patient *p = arg;

	INIT_WORK_ONSTACK(&p->work, undoing_work);
	schedule_work(&p->work);
	flush_work(&p->work);
	destroy_work_on_stack(&p->work);
}

MAKES(count_held, patient, p, p->held)

/* --- verdicts ---------------------------------------------------------------- */

/* A call, right or wrong, and the verdicts on it. */
struct fault {
	struct victim v;		/* the call */
	enum sweep_verdict made;	/* verdict of sweep_make() */
	enum sweep_verdict unmade;	/* verdict of sweep_unmake() */
};

#define FAULT(make, unmake, made, unmade, ...)				\
	{ { #make ", " #unmake, make_##make, unmake_##unmake,		\
	    .held = count_held, ##__VA_ARGS__ }, SWEEP_##made, SWEEP_##unmade }

static const struct fault faults[] = {
	FAULT(well, well, GOOD, GOOD, .undo = UNDO_QUIET),
	FAULT(well, whatever_fails, GOOD, GOOD),
	FAULT(whatever_fails, well, GOOD, GOOD, .survives = true),
	FAULT(with_another_errno, well, ERRNO, GOOD),
	FAULT(and_leave, well, LEFT, GOOD),
	FAULT(and_take_away, well, LEFT, GOOD),
	FAULT(never_again, well, BROKEN, GOOD),
	FAULT(without_end, well, ENDLESS, BROKEN),
	FAULT(without_memory, well, NEVER_ASKS, GOOD),
	FAULT(whatever_fails, well, HIDES, GOOD),
	FAULT(well, well, REFUSES, GOOD, .survives = true),
	FAULT(well, whatever_fails, GOOD, UNDO_ASKS, .undo = UNDO_QUIET),
	FAULT(well, with_memory, GOOD, LEFT),
	FAULT(never_again, for_ever, BROKEN, BROKEN),
	FAULT(well, without_end, GOOD, ENDLESS),
	FAULT(in_work, well, GOOD, NO_WORK, .work = "patient_work"),
	FAULT(in_work_and_leave, well, LEFT, NO_WORK, .work = "patient_work"),
	FAULT(well, well, NO_WORK, NO_WORK, .work = "patient_work"),
	FAULT(well, in_work, GOOD, GOOD),
	FAULT(well, in_work, NO_WORK, LEFT, .work = "undoing_work"),
};

KUNIT_ARRAY_PARAM_DESC(fault, faults, v.name);

static void each_fault_is_told(struct kunit *test)
{
	const struct fault *fault = test->param_value;
	struct patient p = {};
	struct sweep s;

	work_fail_begin(test);
	sweep_init(&s, mock_new(test), &fault->v, &p);
	KUNIT_EXPECT_EQ(test, fault->made, sweep_make(&s));
	p = (struct patient) {};
	sweep_init(&s, s.m, &fault->v, &p);
	KUNIT_EXPECT_EQ(test, fault->unmade, sweep_unmake(&s));
}

/* --- results of cases -------------------------------------------------------- */

/* A case within a case. */
struct inner {
	struct kunit test;	/* the inner case's own kunit */
	struct mock *m;		/* the mock whose objects are counted */
	const struct victim *v;	/* the call that is swept */
	/* Sweep() or sweep_undo(). */
	void (*run)(struct kunit *test, struct mock *m, const struct victim *v, void *arg);
	bool through;		/* @run has returned: the inner case was not aborted */
};

static void inner_run(void *arg)
{
	struct inner *inner = arg;
	struct patient p = {};

	inner->run(&inner->test, inner->m, inner->v, &p);
	inner->through = true;
}

static void inner_aborted(void *arg)
{
}

static struct inner *inner_new(struct kunit *test)
{
	struct inner *inner = kvt_zalloc(test, sizeof(*inner));

	kunit_init_test(&inner->test, "a case that is to fail", NULL);
	inner->test.try_catch = (struct kunit_try_catch) {
		.test = &inner->test, .try = inner_run, .catch = inner_aborted,
	};
	return inner;
}

/* Runs an inner case, and returns whether it passed; one that fails must be aborted. */
static bool inner_passes(struct kunit *test, const struct victim *v,
			 typeof_member(struct inner, run) run)
{
	struct inner *inner = inner_new(test);

	inner->m = mock_new(test);
	inner->v = v;
	inner->run = run;
	kunit_try_catch_run(&inner->test.try_catch, inner);
	kunit_cleanup(&inner->test);
	KUNIT_EXPECT_EQ(test, inner->through, inner->test.status == KUNIT_SUCCESS);
	return inner->through;
}

static void case_with_a_fault_fails(struct kunit *test)
{
	const struct fault *fault = test->param_value;
	bool made = fault->made == SWEEP_GOOD, unmade = fault->unmade == SWEEP_GOOD;

	work_fail_begin(test);
	KUNIT_EXPECT_EQ(test, unmade, inner_passes(test, &fault->v, sweep_undo));
	KUNIT_EXPECT_EQ(test, made && unmade, inner_passes(test, &fault->v, sweep));
}

static void call_that_is_not_quiet_fails_its_case(struct kunit *test)
{
	struct kunit *inner = &inner_new(test)->test;

	KUNIT_EXPECT_FALSE(test, QUIET(inner, ask()));
	KUNIT_EXPECT_EQ(test, KUNIT_FAILURE, inner->status);
	kunit_cleanup(inner);

	inner = &inner_new(test)->test;
	KUNIT_EXPECT_FALSE(test, QUIET(inner, strcmp("a", "a")));
	KUNIT_EXPECT_EQ(test, KUNIT_SUCCESS, inner->status);
	kunit_cleanup(inner);
}

static struct kunit_case fail_nth_red_cases[] = {
	KUNIT_CASE_PARAM(each_fault_is_told, fault_gen_params),
	KUNIT_CASE_PARAM(case_with_a_fault_fails, fault_gen_params),
	KUNIT_CASE(call_that_is_not_quiet_fails_its_case),
	{}
};
KVT_SUITE(fail_nth_red, .init = kvt_need_injection);
