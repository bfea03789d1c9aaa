// SPDX-License-Identifier: GPL-2.0-only
/*
 * Moderation of completion queues: notifications that are deferred.
 *
 * An armed queue with moderation notifies when a number of completions has come since
 * it was armed, or some time after the first of them. Completions that ask for
 * attention are not deferred: errors, and messages whose sender asked for a solicited
 * event; the IBTA's specification knows no moderation, and an event is all that such
 * messages ask for. A count of 1, or no count and no period, means no moderation.
 *
 * The arm word says what is going on, and each change of it is an atomic operation:
 *
 *   DEFERRED		a completion has come since, and its notification waits. Whoever
 *			sets this writes @due, if there is a period, then sets DUE and
 *			TIMER
 *   DUE		@due is valid
 *   TIMER		the timer is queued. Whoever sets this queues it; its callback
 *			clears this, or has the timer queued again
 *
 * Whoever notifies clears all bits but TIMER; if the timer then fires for a
 * notification that has been sent already, it finds nothing due, or something due
 * later. So completions take no more than one look at the clock and one start of the
 * timer for each time that the queue was armed, and most completions take neither.
 * Pair:
 *
 *   D  emu_modify_cq(): full barrier between @moderation and the look at DEFERRED -
 *	emu_cq_defer(): full barrier between DEFERRED and the look at @moderation
 *	what was deferred by rules that no longer apply is not forgotten
 */
#include <kverbs/completion.h>
#include <kverbs/delay.h>

#include "cq.h"

/* In hard interrupt with PREEMPT_RT, too: a poster with bottom halves off does not delay it. */
#define EMU_MODERATION_MODE		HRTIMER_MODE_ABS_HARD

#define EMU_MOD_COUNT(moderation)	((moderation) & 0xffff)
#define EMU_MOD_PERIOD(moderation)	((moderation) >> 16)

/* Whether the notification for the completion at @pos is to be deferred. */
static bool emu_cq_must_wait(const struct emu_cq *cq, u32 moderation, u32 pos)
{
	s32 came = pos + 1 - READ_ONCE(cq->armed_at);
	s32 count;

	if (!moderation)
		return false;
	/* Reserved before the queue was armed, so it is not among those that are counted. */
	if (came <= 0)
		return false;
	/* If the queue is full before the count is reached, do not wait for more. */
	count = min_t(u32, EMU_MOD_COUNT(moderation), READ_ONCE(cq->in)->mask + 1);
	return !count || came < count;
}

/* Called by whoever has set DEFERRED: starts the period. */
static void emu_cq_start_timer(struct emu_cq *cq, u32 moderation)
{
	ktime_t due = ktime_add_us(ktime_get(), EMU_MOD_PERIOD(moderation));

	kverbs_delay("emu_cq_start_timer");
	atomic64_set(&cq->due, due);
	if (!(atomic_fetch_or(EMU_ARM_DUE | EMU_ARM_TIMER, &cq->arm) & EMU_ARM_TIMER))
		hrtimer_start(&cq->timer, due, EMU_MODERATION_MODE);
}

/*
 * The entry at @pos was published while the queue was armed for any completion; @arm
 * is the arm word. Returns false if the caller must notify; true if the notification
 * is deferred, or somebody else has notified.
 */
bool emu_cq_defer(struct emu_cq *cq, u32 pos, int *arm)
{
	u32 moderation;

	do {
		if (!(*arm & EMU_ARM_NEXT))
			return true;
		moderation = READ_ONCE(cq->moderation);
		if (!emu_cq_must_wait(cq, moderation, pos))
			return false;
		if (*arm & EMU_ARM_DEFERRED)
			return true;
		kverbs_delay("emu_cq_defer");
	} while (!atomic_try_cmpxchg(&cq->arm, arm, *arm | EMU_ARM_DEFERRED));

	*arm |= EMU_ARM_DEFERRED;
	/* full barrier above: pair D */
	if (unlikely(READ_ONCE(cq->moderation) != moderation))
		return false;
	if (EMU_MOD_PERIOD(moderation))
		emu_cq_start_timer(cq, moderation);
	return true;
}

static enum hrtimer_restart emu_cq_timer(struct hrtimer *timer)
{
	struct emu_cq *cq = container_of(timer, struct emu_cq, timer);
	ktime_t due;
	bool deferred;
	int arm;

	do {
		/* acquire: if DUE is set, @due is what was written before DUE was set */
		arm = atomic_read_acquire(&cq->arm);
		due = atomic64_read(&cq->due);
		deferred = (arm & EMU_ARM_DEFERRED) && (arm & EMU_ARM_DUE);
		if (deferred && ktime_after(due, ktime_get())) {
			hrtimer_set_expires(timer, due);
			return HRTIMER_RESTART;
		}
	} while (!atomic_try_cmpxchg(&cq->arm, &arm,
				     deferred ? 0 : arm & ~(EMU_ARM_DUE | EMU_ARM_TIMER)));
	if (deferred && !emu_cq_fault_notify(cq))
		ib_cq_notify(&cq->ibcq);
	return HRTIMER_NORESTART;
}

/*
 * Sends the notification that is deferred, if there is one. When this returns, the
 * timer is not queued, except for what came since; and nobody else who was here has taken the
 * notification and not sent it yet: see emu_cq_forget_qp(). Process context.
 */
void emu_cq_send_deferred(struct emu_cq *cq)
{
	int mine = hrtimer_cancel(&cq->timer) ? EMU_ARM_DUE | EMU_ARM_TIMER : 0;
	int arm = atomic_read(&cq->arm);

	lockdep_assert_held(&cq->resize_lock);
	if (!mine && !(arm & EMU_ARM_DEFERRED))
		return;
	while (!atomic_try_cmpxchg(&cq->arm, &arm,
				   (arm & EMU_ARM_DEFERRED ? arm & EMU_ARM_TIMER : arm) & ~mine))
		;
	if (arm & EMU_ARM_DEFERRED)
		ib_cq_notify(&cq->ibcq);
}

int emu_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct emu_cq *cq = to_ecq(ibcq);

	if (count > EMU_MAX_MOD_COUNT || period > EMU_MAX_MOD_PERIOD)
		return -EINVAL;
	if (count == 1)
		count = period = 0;
	mutex_lock(&cq->resize_lock);
	WRITE_ONCE(cq->moderation, count | (u32)period << 16);
	/* full barrier: pair D */
	smp_mb();
	emu_cq_send_deferred(cq);
	mutex_unlock(&cq->resize_lock);
	return 0;
}

void emu_cq_moderation_init(struct emu_cq *cq)
{
	hrtimer_init(&cq->timer, CLOCK_MONOTONIC, EMU_MODERATION_MODE);
	cq->timer.function = emu_cq_timer;
}

/* No queue pair uses the queue. */
void emu_cq_moderation_exit(struct emu_cq *cq)
{
	hrtimer_cancel(&cq->timer);
}
