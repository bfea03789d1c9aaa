// SPDX-License-Identifier: GPL-2.0-only
/* A thread that stands still at a place of kverbs_delay(), while the case looks. */
#include <kverbs/delay.h>

#include "emu/rig.h"

static void rig_pause(void *arg)
{
	struct rig_pause *pause = arg;

	strscpy(pause->thread, current->comm, sizeof(pause->thread));
	kvt_gate_sleep(&pause->gate);
}

/**
 * rig_pause_at() - let the next thread that comes to a place stand still there
 * @test: the case
 * @place: the place, as named to kverbs_delay(), at which a thread may sleep
 *
 * Context: process context.
 * Return: the pause, whose gate tells that a thread has come.
 */
struct rig_pause *rig_pause_at(struct kunit *test, const char *place)
{
	struct rig_pause *pause = kvt_zalloc(test, sizeof(*pause));

	kvt_gate_init(&pause->gate);
	kverbs_delay_set_any(place, rig_pause, pause);
	return pause;
}
EXPORT_SYMBOL_GPL(rig_pause_at);

/**
 * rig_pause_over() - let the thread go on
 * @test: the case, which fails if no thread came, or if one gave up waiting
 * @pause: the pause
 *
 * Context: process context.
 */
void rig_pause_over(struct kunit *test, struct rig_pause *pause)
{
	kvt_gate_open(&pause->gate);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	/* It has to run for that. */
	KUNIT_EXPECT_TRUE(test, kvt_until(READ_ONCE(pause->gate.in_time)));
}
EXPORT_SYMBOL_GPL(rig_pause_over);
