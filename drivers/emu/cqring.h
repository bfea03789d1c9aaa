/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Writing completions: the producers' side of a completion queue, see cq.c.
 *
 *	wc = emu_cq_begin(cq, &pos);
 *	if (wc) {
 *		... every field of *wc ...
 *		emu_cq_end(cq, wc, pos, solicited);
 *	}
 *
 * Any number of producers, in any context but NMI. Preemption is off between the
 * two, for pollers stop at an entry that is not published.
 */
#ifndef KVERBS_EMU_CQRING_H
#define KVERBS_EMU_CQRING_H

#include <linux/preempt.h>
#include <kverbs/completion.h>

#include "emu.h"

/* How a queue is armed: for solicited completions, for any. */
#define EMU_ARM_SOLICITED	BIT(0)
#define EMU_ARM_NEXT		BIT(1)
/* A notification is held back; see moderation.c. */
#define EMU_ARM_HELD		BIT(2)
/* emu_cq.due says until when. */
#define EMU_ARM_DUE		BIT(3)
/* The timer is queued, or whoever set this is about to queue it. */
#define EMU_ARM_TIMER		BIT(4)

void emu_cq_overrun(struct emu_cq *cq);
bool emu_cq_hold(struct emu_cq *cq, u32 pos, int *arm);
void emu_cq_unhold(struct emu_cq *cq);
void emu_cq_moderation_init(struct emu_cq *cq);
void emu_cq_moderation_exit(struct emu_cq *cq);
void emu_cq_wake(struct emu_cq *cq, u32 pos, bool solicited);

static inline struct emu_cqe *emu_cq_entry(const struct emu_cq *cq, u32 pos)
{
	return &cq->ring[pos & cq->mask];
}

/*
 * Reserves an entry. Returns NULL if the queue is full: the completion is lost,
 * the queue is in error from then on, and the caller puts the queue pair in
 * error too.
 */
static inline struct emu_completion *emu_cq_begin(struct emu_cq *cq, u32 *ppos)
{
	u32 pos;
	s32 used;

	preempt_disable();
	pos = atomic_read(&cq->head);
	for (;;) {
		/* acquire: pair B */
		used = pos - (u32)atomic_read_acquire(&cq->tail);
		/* Negative: pos is so stale that its entry has been polled already. */
		if (unlikely(used < 0)) {
			pos = atomic_read(&cq->head);
			continue;
		}
		if (unlikely(used > (s32)cq->mask || READ_ONCE(cq->overrun))) {
			preempt_enable();
			emu_cq_overrun(cq);
			return NULL;
		}
		if (likely(atomic_try_cmpxchg_relaxed(&cq->head, (int *)&pos, pos + 1)))
			break;
	}
	*ppos = pos;
	return &emu_cq_entry(cq, pos)->wc;
}

static inline void emu_cq_end(struct emu_cq *cq, struct emu_completion *wc, u32 pos,
			      bool solicited)
{
	wc->stamp = ib_cq_stamp();
	/* release: pair A */
	smp_store_release(&container_of(wc, struct emu_cqe, wc)->seq, pos + 1);
	preempt_enable();

	/* full barrier: pair C */
	smp_mb();
	if (atomic_read(&cq->arm))
		emu_cq_wake(cq, pos, solicited);
}

#endif
