/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The doorbell of a queue pair: who executes it, one at a time.
 *
 *   EMU_DB_IDLE	nobody
 *   EMU_DB_OWNED	an owner is at work, or on its way
 *   EMU_DB_RERUN	the same, and work has been added since it last looked
 *
 * Whoever adds work - a poster, a responder that failed the queue pair - replaces IDLE by
 * OWNED, and is the owner then. If the word is not IDLE, it writes RERUN: the owner will look
 * again, and the writer goes on. Nobody waits; if the owner has left in between, so that RERUN
 * took the place of IDLE, the writer is the owner after all. The owner looks at everything
 * there is to do, and at the end replaces OWNED by IDLE, which fails if the word is RERUN; then
 * it writes OWNED and looks again. Each of these is a fully ordered atomic operation, apart from
 * a replacement that fails, and they pair with each other: either the owner's look comes after
 * the work, or the word is RERUN when the owner wants to leave.
 *
 * What an owner does is up to the engine, which passes down its function emu_qp_serve() when it
 * starts. An owner has preemption off from before it looks until it has let go.
 */
#ifndef KVERBS_EMU_DOORBELL_H
#define KVERBS_EMU_DOORBELL_H

#include <linux/preempt.h>
#include <linux/wait_bit.h>

#include "qp.h"

/*
 * What an owner may do before it hands over, in bytes of messages. Each entry costs
 * EMU_ENTRY_COST in addition to its bytes, and small pieces of memory count as if they
 * had EMU_PIECE_COST bytes. The last entry may exceed the budget.
 *
 * INLINE: about 16 entries, so that a request and its completion need no other thread, but
 * post_send stays short; or one message of 64 KiB, because copying it takes less time than
 * waking another thread and switching back.
 *
 * HARDIRQ: one message of up to EMU_HARDIRQ_BYTES, from one piece of memory, which costs less
 * than handing over. The budget is 1, so that it is spent after the first.
 *
 * RUNNER: what a runner does for one queue pair, with preemption off, before it goes on to the
 * next. It leaves messages of more than EMU_RUNNER_BYTES to a work item, so that its other queue
 * pairs need not wait for them.
 */
#define EMU_INLINE_BUDGET	SZ_64K
#define EMU_HARDIRQ_BUDGET	1
#define EMU_HARDIRQ_BYTES	SZ_256
#define EMU_RUNNER_BUDGET	SZ_256K
#define EMU_RUNNER_BYTES	SZ_1M
/* It may execute a message of any length: see emu_qp_hand_over_long(). */
#define EMU_LONG_BUDGET		(EMU_RUNNER_BUDGET + 1)

/* What an entry costs in addition to its bytes. */
#define EMU_ENTRY_COST	SZ_4K

/* State of a queue pair that an owner has worked on. */
enum emu_service {
	EMU_IDLE,	/* nothing is left to do */
	EMU_MOVED,	/* a runner's list, a work item or the timer is the owner now */
};

/**
 * typedef emu_serve_fn - execute a queue pair, and let go of it or pass it on
 * @qp: queue pair, owned by the caller, which has just called emu_qp_own() or emu_qp_look()
 * @budget: what may be done, see %EMU_INLINE_BUDGET
 * @may_sleep: the caller is a runner or a work item, so preemption may be enabled for a while
 *
 * Context: Any but NMI, preemption off.
 */
typedef void emu_serve_fn(struct emu_qp *qp, s64 budget, bool may_sleep);

int emu_doorbell_start(emu_serve_fn *serve);
void emu_doorbell_stop(void);
int emu_qp_init_doorbell(struct emu_qp *qp);
void emu_qp_exit_doorbell(struct emu_qp *qp);
void emu_qp_free_doorbell(struct emu_qp *qp);
void emu_qp_ring_after(struct emu_qp *qp, u32 spent);
void emu_qp_ring_deferred(struct emu_qp *qp);
void emu_qp_hand_over(struct emu_qp *qp);
void emu_qp_hand_over_long(struct emu_qp *qp);
enum emu_service emu_qp_park(struct emu_qp *qp, u64 delay_ns);
void emu_qp_unpark(struct emu_qp *qp);
void emu_qp_freeze(struct emu_qp *qp);
void emu_qp_thaw(struct emu_qp *qp);
void emu_qp_wake_freezer(struct emu_qp *qp);
void emu_qp_left(struct emu_qp *qp);

/*
 * Rings the doorbell of a queue pair; executes it here if it has no owner. Any context but
 * NMI.
 */
static inline void emu_qp_ring(struct emu_qp *qp)
{
	emu_qp_ring_after(qp, 0);
}

/* Becomes the owner of a queue pair that has none; preemption is off. Returns false if it has. */
static __always_inline bool emu_qp_own(struct emu_qp *qp)
{
	int old = EMU_DB_IDLE;

	/* Full barrier: the look that follows sees all work that was added before this. */
	return likely(atomic_try_cmpxchg(&qp->doorbell, &old, EMU_DB_OWNED));
}

/* Clears RERUN. The owner calls this each time before it looks for work. */
static __always_inline void emu_qp_look(struct emu_qp *qp)
{
	/* Full barrier: the look that follows sees all work that was added before this. */
	atomic_xchg(&qp->doorbell, EMU_DB_OWNED);
}

/* Work was added: leaves it to the owner, or becomes the owner, and then returns true. */
static __always_inline bool emu_qp_own_or_signal(struct emu_qp *qp)
{
	if (emu_qp_own(qp))
		return true;
	kverbs_delay("emu_qp_own_or_signal");
	/* Full barrier: the owner's next look sees the work. */
	if (atomic_xchg(&qp->doorbell, EMU_DB_RERUN) != EMU_DB_IDLE)
		return false;
	emu_qp_look(qp);
	return true;
}

/*
 * Lets go of ownership. Returns false if work has been added: the caller is still the owner.
 * A former owner touches the queue pair once more, to wake a waiting freezer: hence preemption
 * is off, and queue pairs are freed a grace period after their destruction.
 */
static __always_inline bool emu_qp_release(struct emu_qp *qp)
{
	int old = EMU_DB_OWNED;

	/* Full barrier, either way: pairs with the one in emu_qp_freeze(). */
	if (unlikely(!atomic_try_cmpxchg(&qp->doorbell, &old, EMU_DB_IDLE))) {
		if (likely(!READ_ONCE(qp->freezing)))
			return false;
		/* Let the freezer have it: emu_qp_thaw() looks for work again. */
		atomic_xchg(&qp->doorbell, EMU_DB_IDLE);
	}
	kverbs_delay("emu_qp_release");
	if (unlikely(READ_ONCE(qp->freezing)))
		emu_qp_wake_freezer(qp);
	return true;
}

/*
 * Leaves the gate of a queue pair for which the caller acted as responder. Preemption is off, or
 * the caller is under RCU. The last one to leave a closed gate starts the flush of receives.
 */
static inline void emu_qp_leave(struct emu_qp *qp)
{
	if (unlikely(emu_gate_leave_quietly(&qp->gate)))
		emu_qp_left(qp);
}

#endif
