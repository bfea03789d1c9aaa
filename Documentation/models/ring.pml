/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A completion queue as drivers/emu has it, for the models of what polls it, and
 * the state word that ib_cq has for that.
 *
 *	here				code
 *	reserve(), publish()		emu_cq_begin(), emu_cq_end()
 *	take_arm()			emu_cq_wake()
 *	req_notify()			emu_req_notify_cq()
 *	head[c], tail[c]		emu_cq.head and .tail
 *	mem[SEQ(c, n)]			the entry at position n is published
 *	mem[ARM(c)]			emu_cq.arm
 *	state[c]			ib_cq.state
 *
 * The includer defines CQS, CPUS, MORE_WORDS, notify(c, old) for ib_cq_notify(),
 * and polls: entries from tail[c] on for as long as they are published.
 *
 * Not modelled: positions that wrap, for a queue gets TOTAL completions at most;
 * overrun, for producers wait for room; solicited arming; moderation.
 */
#ifndef PRODUCERS
#define PRODUCERS	2
#endif
#ifndef PUSHES
#define PUSHES		2	/* of each producer */
#endif
#ifndef BATCH
#define BATCH		2	/* completions polled at a time */
#endif
#define CQE		2	/* entries of a CQ */
#define TOTAL		(PRODUCERS * PUSHES)

#define SEQ(c, n)	((c) * (TOTAL + BATCH) + (n))
#define ARM(c)		(CQS * (TOTAL + BATCH) + (c))
#define CQ_WORDS	(CQS * (TOTAL + BATCH + 1))
#define WORDS		(CQ_WORDS + MORE_WORDS)

#include "memory.pml"

byte head[CQS];
byte tail[CQS];
byte state[CQS];	/* ib_cq.state */

/* What is watched. */
byte handled[CQS];
bool handler[CQS];
bool freed[CQS];
byte owed[CQS];		/* requests for a notification, less what they led to */
byte producers_gone;

#define touch(c)	assert(!freed[c])

inline fetch_or(c, bits, old)
{
	atomic { drained -> touch(c); old = state[c]; state[c] = state[c] | (bits) }
}

inline fetch_andnot(c, bits, old)
{
	atomic { drained -> touch(c); old = state[c]; state[c] = state[c] & ~(bits) }
}

/* As ib_alloc_cq() leaves it, or with armed 0 as for IB_POLL_DIRECT. */
inline create_cq(c, armed)
{
	mem[ARM(c)] = armed;
	owed[c] = armed
}

inline take_arm(c, old)
{
	atomic {
		drained ->
		touch(c);
		old = mem[ARM(c)];
		mem[ARM(c)] = 0;
		owed[c] = owed[c] - old
	}
	if
	:: old -> notify(c, old)
	:: else
	fi
}

/* emu_cq_begin() */
inline reserve(c, pos)
{
	drained && head[c] - tail[c] < CQE ->
	touch(c);
	pos = head[c];
	head[c]++
}

/* emu_cq_end() */
inline publish(c, pos, old)
{
	store(SEQ(c, pos), 1);
#ifndef BUG_PUSH_NO_BARRIER
	full_barrier();
#endif
	if
	:: atomic { load(ARM(c)) -> touch(c) }
		take_arm(c, old)
	:: atomic { !load(ARM(c)) -> touch(c) }
	fi
}

/*
 * missed: there is a completion, and the caller sees to it. A request that finds
 * the queue armed is met by what the earlier one leads to.
 */
inline req_notify(c, old, missed)
{
	atomic {
#ifndef BUG_ARM_NO_BARRIER
		drained ->
#endif
		touch(c);
		old = mem[ARM(c)];
		owed[c] = owed[c] + !old;
#ifdef BUG_ARM_NO_BARRIER
		store(ARM(c), 1)
#else
		mem[ARM(c)] = 1
#endif
	}
#ifndef BUG_NO_MISSED
	if
	:: atomic { load(SEQ(c, tail[c])) && old -> touch(c); missed = 1 }
	:: atomic { load(SEQ(c, tail[c])) && !old && drained ->
		touch(c);
#ifdef BUG_NO_TAKE_BACK
		missed = 1;
#else
		missed = mem[ARM(c)];
		mem[ARM(c)] = 0;
#endif
		owed[c] = owed[c] - missed
		}
	:: atomic { !load(SEQ(c, tail[c])) -> touch(c) }
	fi
#endif
}

/*
 * At any time: one notification for each request that nothing was missed by, and
 * no other. So requests = missed + notifications, and one more while armed.
 */
#define requests_add_up(c)	(owed[c] == mem[ARM(c)])
