// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lets tests hold up a thread at critical places: see include/kverbs/delay.h. At the place,
 * the thread calls a function of the test, which does what other threads might do meanwhile.
 * So it is held up for as long as the test wants, even on one CPU, and each run is the same.
 *
 * It is in this module because all others may depend on this one.
 *
 * One place at a time is set: tests run one after another, and the function is called once.
 * That function may itself pass through the same place, or set another one.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <kverbs/delay.h>

/* Stands for any thread: the first one that reaches the place. */
#define DELAY_ANY	((struct task_struct *)ERR_PTR(-ESRCH))

static struct {
	const char *place;
	struct task_struct *task;
	void (*fn)(void *arg);
	void *arg;
} delay;

/**
 * kverbs_delay() - mark a place where tests can hold up a thread
 * @place: its name
 *
 * Context: Any.
 */
void kverbs_delay(const char *place)
{
	/* acquire: pairs with the release in delay_set() */
	struct task_struct *task = smp_load_acquire(&delay.task);
	void (*fn)(void *arg);

	if (likely(!task) || (task != current && task != DELAY_ANY) || !in_task() ||
	    strcmp(READ_ONCE(delay.place), place))
		return;
	fn = xchg(&delay.fn, NULL);
	if (fn)
		fn(READ_ONCE(delay.arg));
}
EXPORT_SYMBOL_GPL(kverbs_delay);

static void delay_set(struct task_struct *task, const char *place, void (*fn)(void *arg), void *arg)
{
	WRITE_ONCE(delay.place, place);
	WRITE_ONCE(delay.arg, arg);
	/* release: pairs with the xchg() in kverbs_delay(), where another place was set for any */
	smp_store_release(&delay.fn, fn);
	/* release: pairs with the acquire in kverbs_delay() */
	smp_store_release(&delay.task, task);
}

/**
 * kverbs_delay_set() - call a function when the calling thread reaches a place next
 * @place: the place, by the name that kverbs_delay() gives it there
 * @fn: called when the thread gets there; must do nothing that code at this place may not do
 * @arg: argument to pass to @fn
 *
 * Context: Process context. kverbs_delay_clear() has been called since the last time.
 */
void kverbs_delay_set(const char *place, void (*fn)(void *arg), void *arg)
{
	delay_set(current, place, fn, arg);
}
EXPORT_SYMBOL_GPL(kverbs_delay_set);

/**
 * kverbs_delay_set_any() - call a function when any thread reaches a place next
 * @place: as kverbs_delay_set()
 * @fn: as kverbs_delay_set()
 * @arg: argument to pass to @fn
 *
 * For places that only work items and threads of the modules get to. The function must have
 * returned before the next kverbs_delay_set() or kverbs_delay_set_any(), unless it is what
 * calls that.
 *
 * Context: Process context, or @fn of another place. Otherwise, kverbs_delay_clear() has been
 * called since the last time.
 */
void kverbs_delay_set_any(const char *place, void (*fn)(void *arg), void *arg)
{
	delay_set(DELAY_ANY, place, fn, arg);
}
EXPORT_SYMBOL_GPL(kverbs_delay_set_any);

/**
 * kverbs_delay_clear() - undo kverbs_delay_set() or kverbs_delay_set_any()
 *
 * Context: Process context; the thread that called kverbs_delay_set().
 * Return: true if the place was reached.
 */
bool kverbs_delay_clear(void)
{
	/* From here on nobody calls the function, not even a thread that has seen the place. */
	bool reached = !xchg(&delay.fn, NULL);

	WRITE_ONCE(delay.task, NULL);
	return reached;
}
EXPORT_SYMBOL_GPL(kverbs_delay_clear);
