/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The completion ring: producers, one of which interrupts another, pollers that
 * race for the same entries, and the arm word between them.
 *
 * Run by scripts/models. One step is one atomic operation or one look at what
 * others write, over weak memory (memory.pml). That a producer moves the head is no
 * barrier here, as in the code.
 *
 *	here			code, drivers/emu/queue/cq.h and cq.c
 *	push()			emu_cq_begin(), emu_cq_end()
 *	take()			emu_cq_take(), BATCH entries at a time
 *	req_notify()		emu_req_notify_cq(), reporting missed events
 *	notify()		emu_cq_wake()
 *	mem[SEQ(pos)]		emu_cqe.seq, of the entry at this position
 *	mem[DATA(pos)]		the rest of the entry
 *	head, tail, arm		emu_cq_ring.head and .tail, emu_cq.arm
 *
 * Producers wait for room outside; the interrupt, which must not, drops what finds
 * none. Both pollers sleep when there is nothing, and a notification wakes both.
 *
 * ring.pml has the same ring from the side of who polls it alone. Chains of rings
 * are in chain.pml. Not modelled: solicited arming and moderation, which may only
 * delay; positions that wrap.
 *
 * Shown at every step:
 *   - an entry is polled once, in the order of positions, and whole
 *   - an entry that is not polled is not overwritten, and no position has two
 *     producers
 * and where nothing can go on (judge()): all producers came to the end, all that
 * was pushed was polled, and pollers sleep with the queue armed.
 *
 * -DBUG_x takes away something that must be missed.
 */
#ifndef PUSHES
#define PUSHES		2	/* of each producer */
#endif
#ifndef PRODUCERS
#define PRODUCERS	1	/* besides the interrupt */
#endif
#ifndef POLLERS
#define POLLERS		2
#endif
#ifndef BATCH
#define BATCH		2
#endif
#define CQE		2
#define TOTAL		(PRODUCERS * PUSHES + 1)

#define SEQ(pos)	((pos) % CQE)
#define DATA(pos)	(CQE + (pos) % CQE)
#define ARM		(2 * CQE)
#define WORDS		(2 * CQE + 1)
#define CPUS		PRODUCERS

#include "memory.pml"

byte head;
byte tail;
bool awake[POLLERS] = true;
bool interrupted;	/* the producer on CPU 0 */

/* What is watched. */
byte pushed[TOTAL];	/* what the producer of a position writes there */
byte polled;
byte producers_gone;
bool interrupt_gone;

inline notify()
{
	atomic {
		drained ->
		if
		:: mem[ARM] ->
			mem[ARM] = 0;
			awake[0] = true;
#if POLLERS > 1
			awake[1] = true;
#endif
		:: else
		fi
	}
}

/* room: there was some. */
inline push(pos, message, room)
{
	pos = head;
again:
	if
	:: atomic { pos < tail -> pos = head; goto again }
	:: atomic { pos >= tail && pos - tail >= CQE -> room = false; goto dropped }
	:: pos >= tail && pos - tail < CQE
	fi;
	if
#ifdef BUG_BEGIN_STORED
	:: atomic {
#else
	:: atomic { head != pos -> pos = head; goto again }
	:: atomic { head == pos ->
#endif
		head = pos + 1;
		room = true;
		assert(!pushed[pos]);
		assert(pos - tail < CQE);
		pushed[pos] = message
		}
	fi;
	store(DATA(pos), message);
#ifdef BUG_END_NO_RELEASE
	store(SEQ(pos), pos + 1);
#else
	store_release(SEQ(pos), pos + 1);
#endif
#ifndef BUG_END_NO_BARRIER
	full_barrier();
#endif
	if
	:: load(ARM) -> notify()
	:: !load(ARM)
	fi;
dropped:
	skip
}

proctype interrupted_producer(byte me) provided (!interrupted)
{
	byte n, pos;
	bool room;

	do
	:: n < PUSHES && head - tail < CQE ->
		push(pos, 1 + n * PRODUCERS + me, room);
		n = n + room;
		atomic { pos = 0; room = false }
	:: n == PUSHES -> break
	od;
	atomic { n = 0; producers_gone++ }
}

proctype producer(byte me)
{
	byte n, pos;
	bool room;

	do
	:: n < PUSHES && head - tail < CQE ->
		push(pos, 1 + n * PRODUCERS + me, room);
		n = n + room;
		atomic { pos = 0; room = false }
	:: n == PUSHES -> break
	od;
	atomic { n = 0; producers_gone++ }
}

proctype interrupt(byte me)
{
	byte pos;
	bool room;

	interrupted = true;
	push(pos, TOTAL, room);
	atomic { pos = 0; room = false; interrupted = false; interrupt_gone = true }
}

inline copy(pos)
{
	got[(pos) % CQE] = load(DATA(pos))
}

/* Of what was copied nothing is torn, or the tail has moved. */
inline check_copy(pos)
{
	d_step {
		assert(from == polled);
		do
		:: from < pos ->
			assert(got[from % CQE] == pushed[from]);
			from++
		:: from == pos -> break
		od;
		polled = pos
	}
}

/* n: entries polled. */
inline take(pos, n)
{
	n = 0;
again:
	atomic { from = tail; pos = from }
	do
	:: atomic { pos - from < BATCH && load(SEQ(pos)) == pos + 1 -> skip }
#ifndef BUG_TAKE_FIRST
		copy(pos);
#endif
		pos++
	:: pos - from == BATCH -> break
	:: load(SEQ(pos)) != pos + 1 -> break
	od;
	n = pos - from;
	if
	:: n ->
#ifdef BUG_TAKE_FIRST
		if
		:: atomic { tail == from -> tail = pos }
		:: atomic { tail != from -> goto again }
		fi;
		atomic { pos = from }
		do
		:: pos - from < n -> copy(pos); pos++
		:: pos - from == n -> break
		od;
		check_copy(pos)
#else
		if
#ifdef BUG_TAKE_STORED
		:: atomic { tail = pos; check_copy(pos) }
#else
		:: atomic { tail == from -> tail = pos; check_copy(pos) }
		:: atomic { tail != from -> goto again }
#endif
		fi
#endif
	:: !n
	fi;
	atomic { from = 0; pos = 0; got[0] = 0; got[1] = 0 }
}

proctype poller(byte who)
{
	byte me = NOBODY;
	byte pos, n, from, old;
	byte got[CQE];

poll:
	take(pos, n);
	if
	:: n -> n = 0; goto poll
	:: !n
	fi;
	/* Before the request: what comes from here on wakes. */
	awake[who] = false;
	atomic { old = mem[ARM]; mem[ARM] = 1 }
#ifndef BUG_ARM_NO_LOOK
	if
	:: load(SEQ(tail)) == tail + 1 && old -> awake[who] = true
	:: load(SEQ(tail)) == tail + 1 && !old ->
		/* Missed. Who clears the word, acts. */
		atomic { mem[ARM] = 0; awake[who] = true }
	:: load(SEQ(tail)) != tail + 1
	fi;
#endif
	old = 0;
end:
	atomic { awake[who] -> goto poll }
}

proctype judge()
{
	atomic {
		timeout ->
		assert(producers_gone == PRODUCERS);
		assert(interrupt_gone);
		assert(polled == head && tail == head);
		assert(mem[ARM])
	}
}

init {
	atomic {
		mem[SEQ(1)] = 0;
		run interrupted_producer(0);
#if PRODUCERS > 1
		run producer(1);
#endif
		run interrupt(0);
		run poller(0);
#if POLLERS > 1
		run poller(1);
#endif
		run judge()
	}
}
