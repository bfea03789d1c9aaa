/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A gate counts the users that are inside an object, and can be closed.
 *
 * The engine is inside the gate of a queue pair while it acts as that queue pair's
 * responder, and inside the gate of a memory region while it accesses the memory.
 * Entering and leaving take one atomic operation each, and work in any context. A
 * closed gate lets nobody in, but does not wait for those who are inside. There are
 * two ways to learn that they have left: emu_gate_leave() returns true to the last one
 * to leave a closed gate, and emu_gate_drain() waits for them.
 *
 * What the gate guards is written only while it is closed and empty. Pairs:
 *
 *   emu_gate_open()	release, pairs with the full barrier of emu_gate_enter():
 *			whoever gets in sees what was set up before the opening
 *   emu_gate_leave()	full barrier, pairs with emu_gate_is_drained()'s acquire:
 *			whoever finds the gate drained sees all that was done inside
 *
 * The object must outlive the call of emu_gate_leave(): its callers hold
 * rcu_read_lock(), or have preemption off, around the call and around what they do with its
 * result, and objects with a gate are freed only after a grace period.
 */
#ifndef KVERBS_EMU_GATE_H
#define KVERBS_EMU_GATE_H

#include <linux/atomic.h>

#include "wait.h"

#define EMU_GATE_OPEN	0x40000000

/**
 * struct emu_gate - counter of users, with a bit that lets them in
 * @count: users inside, and %EMU_GATE_OPEN; so it is 0 when the gate is closed and empty
 */
struct emu_gate {
	atomic_t count;
};

static inline void emu_gate_init(struct emu_gate *gate)
{
	atomic_set(&gate->count, 0);
}

/* The gate must be closed and empty. */
static inline void emu_gate_open(struct emu_gate *gate)
{
	/* release: see the top */
	smp_mb__before_atomic();
	atomic_or(EMU_GATE_OPEN, &gate->count);
}

static inline bool emu_gate_is_closed(const struct emu_gate *gate)
{
	return !(atomic_read(&gate->count) & EMU_GATE_OPEN);
}

static inline bool emu_gate_is_drained(const struct emu_gate *gate)
{
	return !atomic_read_acquire(&gate->count);
}

/*
 * Leaves the gate. Returns true to the last one to leave a closed gate, who must then call
 * emu_gate_wake(). Under rcu_read_lock(), or with preemption off: see above.
 */
static __always_inline bool emu_gate_leave_quietly(struct emu_gate *gate)
{
	return unlikely(atomic_dec_and_test(&gate->count));
}

/* Wakes those who wait until nobody is inside. */
static inline void emu_gate_wake(struct emu_gate *gate)
{
	emu_wake(&gate->count);
}

/* As emu_gate_leave_quietly(), but wakes those who wait as well. */
static inline bool emu_gate_leave(struct emu_gate *gate)
{
	if (likely(!emu_gate_leave_quietly(gate)))
		return false;
	emu_gate_wake(gate);
	return true;
}

static inline bool emu_gate_enter(struct emu_gate *gate)
{
	int old = atomic_read(&gate->count);

	/*
	 * Incrementing first, and taking that back if the gate turns out to be closed,
	 * would not do: whoever takes it back could become the last one to leave.
	 */
	for (;;) {
		if (unlikely(!(old & EMU_GATE_OPEN))) {
			/*
			 * acquire: whoever finds the gate closed may look at what was
			 * written before it was closed; see emu_look_for_peer() and
			 * emu_region_closed().
			 */
			smp_acquire__after_ctrl_dep();
			return false;
		}
		if (likely(atomic_try_cmpxchg(&gate->count, &old, old + 1)))
			return true;
	}
}

/* Closes the gate, which may be closed already. Returns true if nobody is inside. Any context. */
static inline bool emu_gate_close(struct emu_gate *gate)
{
	return !(atomic_fetch_andnot(EMU_GATE_OPEN, &gate->count) & ~EMU_GATE_OPEN);
}

/* Closes an open gate if nobody is inside. Returns false if somebody is. Any context. */
static inline bool emu_gate_try_close(struct emu_gate *gate)
{
	return atomic_cmpxchg(&gate->count, EMU_GATE_OPEN, 0) == EMU_GATE_OPEN;
}

/* Closes the gate and waits until nobody is inside. May sleep. */
static inline void emu_gate_drain(struct emu_gate *gate)
{
	emu_gate_close(gate);
	emu_wait_event(&gate->count, emu_gate_is_drained(gate));
}

#endif
