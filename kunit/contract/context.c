// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: callbacks that return in another context than they were called in.
 * Each callback changes each part of the context.
 *
 * A probe of the checker's tracepoint looks at the context right after the checker has
 * restored it, and releases the locks that the callback kept.
 */
#include <linux/bottom_half.h>
#include <linux/debug_locks.h>
#include <linux/interrupt.h>
#include <linux/irqflags.h>
#include <linux/mutex.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/tracepoint.h>

#include "contract/callbacks.h"

/* What a callback does to its context */

static DEFINE_MUTEX(kept_mutex);
static DEFINE_SPINLOCK(kept_spinlock);
static bool mutex_is_kept, spinlock_is_kept;

/* Whether the tasklet, scheduled while bottom halves were off, has run. */
static bool raised_has_run;

static void raised(struct tasklet_struct *tasklet)
{
	WRITE_ONCE(raised_has_run, true);
}

static DECLARE_TASKLET(tasklet, raised);

static void keep_preemption_off(struct contract_scene *scene)
{
	preempt_disable();
}

static void keep_interrupts_off(struct contract_scene *scene)
{
	local_irq_disable();
}

static void keep_bh_off(struct contract_scene *scene)
{
	local_bh_disable();
	tasklet_schedule(&tasklet);
}

/* Interrupts stay off as well, but the report names only bottom halves. */
static void keep_bh_and_interrupts_off(struct contract_scene *scene)
{
	keep_bh_off(scene);
	local_irq_disable();
}

static void keep_rcu(struct contract_scene *scene)
{
	rcu_read_lock();
	/* For sparse: the RCU section is left open on purpose. */
	__release(RCU);
}

/* A trylock, because lockdep would complain about a lock that is taken in several contexts. */
static void keep_mutex(struct contract_scene *scene)
{
	mutex_is_kept = mutex_trylock(&kept_mutex);
	WARN_ON(!mutex_is_kept);
}

static void keep_spinlock(struct contract_scene *scene)
{
	if (!spin_trylock(&kept_spinlock)) {
		WARN_ON(1);
		return;
	}
	spinlock_is_kept = true;
	/* The checker turns preemption on before it is given back, which has to be on this CPU. */
	migrate_disable();
	/* For sparse: the lock is kept on purpose. */
	__release(&kept_spinlock);
}

static void change_all_and_back(struct contract_scene *scene)
{
	unsigned long flags;

	preempt_disable();
	if (!irqs_disabled())
		local_bh_disable();
	local_irq_save(flags);
	local_irq_restore(flags);
	rcu_read_lock();
	rcu_read_unlock();
	if (spin_trylock(&kept_spinlock))
		spin_unlock(&kept_spinlock);
	if (!irqs_disabled())
		local_bh_enable();
	preempt_enable();
}

/* A change of one part of the context. */
struct change {
	const char *name;	/* name of the change in the case's description */
	contract_fn inside;	/* makes the change in a callback */
	contract_fn inside_atomic;	/* likewise, in a callback that must not sleep */
	const char *what;	/* last words of the report */
	bool (*possible)(void);	/* whether this kernel's configuration keeps track of this part */
};

static bool always(void)
{
	return true;
}

static bool preemption_is_counted(void)
{
	return IS_ENABLED(CONFIG_PREEMPT_COUNT);
}

static bool rcu_is_counted(void)
{
	return IS_ENABLED(CONFIG_PREEMPT_RCU);
}

static bool locks_are_counted(void)
{
	return IS_ENABLED(CONFIG_LOCKDEP) && debug_locks;
}

static const struct change changes[] = {
	{ "preemption", keep_preemption_off, keep_preemption_off, "preemption",
	  preemption_is_counted },
	{ "interrupts", keep_interrupts_off, keep_interrupts_off, "interrupts", always },
	{ "BH", keep_bh_off, keep_bh_off, "bottom halves", always },
	{ "BH, irqs", keep_bh_and_interrupts_off, keep_bh_and_interrupts_off, "bottom halves",
	  always },
	{ "RCU", keep_rcu, keep_rcu, "RCU sections", rcu_is_counted },
	{ "lock", keep_mutex, keep_spinlock, "locks", locks_are_counted },
};

/* The context that the checker has restored, as seen when it reports */

static struct {
	struct tracepoint *tp;
	int preempt;
	int rcu;
	bool interrupts;
	bool softirqs;
	bool raised_has_run;
} after;

static void give_back(void)
{
	if (spinlock_is_kept) {
		__acquire(&kept_spinlock);
		/* The checker has undone what spin_trylock() added to the preempt count. */
		preempt_disable();
		spin_unlock(&kept_spinlock);
		migrate_enable();
	}
	if (mutex_is_kept)
		mutex_unlock(&kept_mutex);
	spinlock_is_kept = false;
	mutex_is_kept = false;
}

static void probe_report(void *data, const struct ib_contract_report *report)
{
	/* The probe itself is called with preemption off. */
	after.preempt = preempt_count() & ~PREEMPT_MASK;
	after.rcu = rcu_preempt_depth();
	after.interrupts = !irqs_disabled();
	after.softirqs = lockdep_softirqs_enabled(current);
	after.raised_has_run = READ_ONCE(raised_has_run);
	give_back();
}

static void unwatch_reports(void *arg)
{
	tracepoint_probe_unregister(after.tp, probe_report, NULL);
	tracepoint_synchronize_unregister();
	tasklet_kill(&tasklet);
}

static void watch_reports(struct kunit *test)
{
	raised_has_run = false;
	after.preempt = -1;
	after.tp = KVT_PTR(test, kvt_tracepoint("ib_contract"));
	KUNIT_ASSERT_EQ(test, 0, tracepoint_probe_register(after.tp, probe_report, NULL));
	kvt_defer(test, unwatch_reports, NULL);
}

/* Each callback with each change */

#define NR_PAIRS	(CONTRACT_CALLBACKS * ARRAY_SIZE(changes))

/* A pair of a callback and a change is the address of its element; the contents are unused. */
static const char pairs[NR_PAIRS];

static const struct contract_callback *callback_of(const char *pair)
{
	return &contract_callbacks[(pair - pairs) / ARRAY_SIZE(changes)];
}

static const struct change *change_of(const char *pair)
{
	return &changes[(pair - pairs) % ARRAY_SIZE(changes)];
}

static const void *pairs_gen_params(const void *prev, char *desc)
{
	const char *pair = prev ? (const char *)prev + 1 : pairs;

	if (pair == pairs + NR_PAIRS)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %s", callback_of(pair)->name,
		 change_of(pair)->name);
	return pair;
}

/* Checks whether lockdep believed softirqs to be enabled at the report. */
static void expect_softirqs(struct kunit *test, bool on)
{
	if (IS_ENABLED(CONFIG_TRACE_IRQFLAGS))
		KUNIT_EXPECT_EQ(test, on, after.softirqs);
}

static void expect_context_put_right(struct kunit *test, const struct change *change, bool softirq)
{
	bool raises = change->inside == keep_bh_off ||
		      change->inside == keep_bh_and_interrupts_off;

	KUNIT_EXPECT_EQ(test, softirq ? SOFTIRQ_OFFSET : 0, after.preempt);
	KUNIT_EXPECT_TRUE(test, after.interrupts);
	/* A softirq raised within a softirq runs only after that has ended. */
	expect_softirqs(test, !softirq);
	KUNIT_EXPECT_EQ(test, raises && !softirq, after.raised_has_run);
}

static void changed_context_is_reported(struct kunit *test)
{
	const struct contract_callback *callback = callback_of(test->param_value);
	const struct change *change = change_of(test->param_value);
	bool softirq = callback->in == CONTRACT_IN_SOFTIRQ;
	bool atomic = softirq || callback->in == CONTRACT_IN_RCU;
	char what[64];
	u32 id;

	if (!change->possible())
		kunit_skip(test, "the kernel does not count");
	snprintf(what, sizeof(what), "%s changed %s", callback->what, change->what);
	watch_reports(test);
	id = callback->run(test, callback, atomic ? change->inside_atomic : change->inside);
	expect_context_put_right(test, change, softirq);
	CONTRACT_EXPECT(test, CALLBACK_CONTEXT, SELF, .what = what, .object = callback->object,
			.id = id, .site = callback->function);
}

KUNIT_ARRAY_PARAM_DESC(callbacks, contract_callbacks, name);

static void context_left_as_it_was_is_not(struct kunit *test)
{
	const struct contract_callback *callback = test->param_value;

	callback->run(test, callback, change_all_and_back);
	contract_expect_none(test);
}

/* The other way round: the callback enables what its caller had disabled */

static void turn_bh_on(struct contract_scene *scene)
{
	local_bh_enable();
}

static void end_rcu(struct contract_scene *scene)
{
	/* For sparse: the caller began the section. */
	__acquire(RCU);
	rcu_read_unlock();
}

static void turn_interrupts_on(struct contract_scene *scene)
{
	local_irq_enable();
}

static void turn_bh_off(struct contract_scene *scene)
{
	local_bh_disable();
}

static struct contract_scene *scene_with(struct kunit *test, contract_fn inside)
{
	struct contract_scene *scene = contract_scene_up(test);

	watch_reports(test);
	scene->in_handler = inside;
	return scene;
}

static void expect_of_handler(struct kunit *test, struct contract_scene *scene, const char *what)
{
	CONTRACT_EXPECT(test, CALLBACK_CONTEXT, SELF, .what = what, .object = "cq",
			.id = scene->cq->res.id, .site = contract_comp_handler);
}

static void bottom_halves_turned_on_are_reported(struct kunit *test)
{
	struct contract_scene *scene = scene_with(test, turn_bh_on);

	local_bh_disable();
	contract_call_comp_handler(scene);
	KUNIT_EXPECT_EQ(test, SOFTIRQ_DISABLE_OFFSET, (int)softirq_count());
	local_bh_enable();
	expect_softirqs(test, false);
	expect_of_handler(test, scene, "completion handler changed bottom halves");
}

static void interrupts_turned_on_are_reported(struct kunit *test)
{
	struct contract_scene *scene = scene_with(test, turn_interrupts_on);
	bool off;

	local_irq_disable();
	contract_call_comp_handler(scene);
	off = irqs_disabled();
	local_irq_enable();
	KUNIT_EXPECT_TRUE(test, off);
	expect_of_handler(test, scene, "completion handler changed interrupts");
}

/* local_bh_enable() must not be called with interrupts off. */
static void bottom_halves_left_off_with_interrupts_off_are_reported(struct kunit *test)
{
	struct contract_scene *scene = scene_with(test, turn_bh_off);

	local_irq_disable();
	contract_call_comp_handler(scene);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, 0, (int)softirq_count());
	expect_softirqs(test, true);
	expect_of_handler(test, scene, "completion handler changed bottom halves");
}

static void rcu_section_that_is_ended_is_reported(struct kunit *test)
{
	struct contract_scene *scene = scene_with(test, end_rcu);
	int depth;

	if (!rcu_is_counted())
		kunit_skip(test, "the kernel does not count");
	rcu_read_lock();
	contract_call_comp_handler(scene);
	depth = rcu_preempt_depth();
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, 1, depth);
	expect_of_handler(test, scene, "completion handler changed RCU sections");
}

static struct kunit_case contract_context_cases[] = {
	KUNIT_CASE_PARAM(changed_context_is_reported, pairs_gen_params),
	KUNIT_CASE_PARAM(context_left_as_it_was_is_not, callbacks_gen_params),
	KUNIT_CASE(bottom_halves_turned_on_are_reported),
	KUNIT_CASE(interrupts_turned_on_are_reported),
	KUNIT_CASE(bottom_halves_left_off_with_interrupts_off_are_reported),
	KUNIT_CASE(rcu_section_that_is_ended_is_reported),
	{}
};
KVT_SUITE(contract_context, .init = contract_init, .exit = contract_exit);
