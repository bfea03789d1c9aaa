// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lets an allocation of a work item fail, as kvt_fail_nth() does for a call: probes on the
 * workqueue tracepoints switch fault injection on for the worker when the work item starts,
 * and off when it ends.
 *
 * Locking: armed.lock guards @armed. The probes take it with interrupts off; they run in the
 * worker, before and after the work item.
 */
#include <linux/tracepoint.h>
#include <linux/workqueue.h>

#include "fault/sweep.h"

/* Room for the name of a work function with the name of its module. */
#define NAME_LEN	64

enum state {
	IDLE,
	ARMED,
	RUNNING,
	ENDED,
};

static struct {
	spinlock_t lock;
	enum state state;
	const char *function;
	unsigned int nth;
	struct task_struct *worker;
	bool hit;
	struct completion ended;
} armed = { .lock = __SPIN_LOCK_UNLOCKED(armed.lock) };

static bool is_called(work_func_t func, const char *name)
{
	size_t len = strlen(name);
	char text[NAME_LEN];

	snprintf(text, sizeof(text), "%ps", func);
	return !strncmp(text, name, len) && (!text[len] || text[len] == ' ');
}

static void work_starts(void *data, struct work_struct *work)
{
	unsigned long flags;

	if (READ_ONCE(armed.state) != ARMED)
		return;
	spin_lock_irqsave(&armed.lock, flags);
	if (armed.state == ARMED && is_called(work->func, armed.function)) {
		armed.state = RUNNING;
		armed.worker = current;
		kvt_fail_nth(armed.nth);
	}
	spin_unlock_irqrestore(&armed.lock, flags);
}

static void work_ends(void *data, struct work_struct *work, work_func_t func)
{
	unsigned long flags;

	if (READ_ONCE(armed.state) != RUNNING)
		return;
	spin_lock_irqsave(&armed.lock, flags);
	if (armed.state == RUNNING && armed.worker == current) {
		armed.hit = kvt_failed_nth();
		armed.state = ENDED;
		complete(&armed.ended);
	}
	spin_unlock_irqrestore(&armed.lock, flags);
}

static struct {
	const char *name;
	void *probe;
	struct tracepoint *tp;
} hooks[] = {
	{ "workqueue_execute_start", work_starts },
	{ "workqueue_execute_end", work_ends },
};

static void unhook(void *unused)
{
	int i;

	/* An aborted case may have left a work function armed. */
	WRITE_ONCE(armed.state, IDLE);
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		if (hooks[i].tp)
			tracepoint_probe_unregister(hooks[i].tp, hooks[i].probe, NULL);
		hooks[i].tp = NULL;
	}
	tracepoint_synchronize_unregister();
}

/**
 * work_fail_begin() - allow work_fail_nth() until the end of the case
 * @test: the running case
 */
void work_fail_begin(struct kunit *test)
{
	struct tracepoint *tp;
	int i;

	init_completion(&armed.ended);
	kvt_defer(test, unhook, NULL);
	for (i = 0; i < ARRAY_SIZE(hooks); i++) {
		tp = KVT_PTR(test, kvt_tracepoint(hooks[i].name));
		KUNIT_ASSERT_EQ(test, 0, tracepoint_probe_register(tp, hooks[i].probe, NULL));
		hooks[i].tp = tp;
	}
}
EXPORT_SYMBOL_GPL(work_fail_begin);

/**
 * work_fail_nth() - let an allocation fail in the next work item that runs a function
 * @function: name of the function
 * @n: which of the work item's allocations, from 1
 */
void work_fail_nth(const char *function, unsigned int n)
{
	unsigned long flags;

	spin_lock_irqsave(&armed.lock, flags);
	reinit_completion(&armed.ended);
	armed.function = function;
	armed.nth = n;
	armed.hit = false;
	armed.state = ARMED;
	spin_unlock_irqrestore(&armed.lock, flags);
}

/**
 * work_failed_nth() - wait until the work item has ended, if it has started
 * @hit: set to whether the allocation did fail
 *
 * Return: whether the work item has run.
 */
bool work_failed_nth(bool *hit)
{
	unsigned long flags;
	bool ran;

	spin_lock_irqsave(&armed.lock, flags);
	ran = armed.state != ARMED;
	if (!ran)
		armed.state = IDLE;
	spin_unlock_irqrestore(&armed.lock, flags);
	ran = ran && kvt_wait(&armed.ended);
	*hit = armed.hit;
	return ran;
}
