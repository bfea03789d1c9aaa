/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The work queue ring: posters, one of which interrupts another, consumers, and
 * pollers that retire entries.
 *
 * Run by scripts/models. One step is one atomic operation or one look at what
 * others write, over weak memory (memory.pml). Atomic operations on the head and
 * the tail are no barriers here, as in the code.
 *
 *	here			code, drivers/emu/ring.h
 *	reserve(), publish()	emu_ring_reserve(), emu_ring_publish()
 *	owner()			emu_ring_peek(), emu_ring_advance(): a send queue
 *	claimer()		emu_ring_claim(), emu_ring_free(): a receive queue
 *	poller()		emu_ring_retire_to() of a send queue, emu_ring_retire()
 *				of a receive queue
 *	mem[SEQ(pos)]		emu_slot.seq, of the slot at this position
 *	mem[DATA(pos)]		the rest of the entry
 *	head, tail, retired	the same
 *	completed		the completion queue: see cqring.pml
 *
 * The interrupt comes at any step of the poster on CPU 0, which does not go on
 * before it has returned; it drops what finds no room. Other posters wait for room.
 * Whoever consumes an entry writes into it as well (emu_swqe.data_done).
 *
 * Not modelled: positions that wrap, for there are TOTAL posts at most; a reset,
 * which nobody runs beside.
 *
 * Shown at every step:
 *   - a position has one poster, and is consumed once
 *   - who consumes an entry finds there what was posted, for as long as it holds it
 *   - a slot is not reserved while somebody holds it
 *   - there are never more than DEPTH entries between the head and what was polled,
 *     and what was polled never goes back
 * and where nothing can go on (judge()): all posters, the interrupt among them, came
 * to the end, and all that was posted was consumed and retired.
 *
 * -DCLAIMERS=2: a receive queue, else a send queue. -DBUG_x takes away something
 * that must be missed.
 */
#ifndef POSTS
#define POSTS		2	/* of each poster */
#endif
#ifndef DEPTH
#define DEPTH		2
#endif
#define POSTERS		2	/* besides the interrupt */
#define SLOTS		2
#define TOTAL		(POSTERS * POSTS + 1)
#ifdef CLAIMERS
#define CONSUMERS	CLAIMERS
#else
#define CONSUMERS	1
#endif

#ifdef BUG_NO_RETIRED
#define ROOM_AT(pos)	true
#else
#define ROOM_AT(pos)	(pos - retired < DEPTH)
#endif

#define SEQ(pos)	((pos) % SLOTS)
#define DATA(pos)	(SLOTS + (pos) % SLOTS)
#define WORDS		(2 * SLOTS)
#define CPUS		(POSTERS + CONSUMERS)

#include "memory.pml"

byte head;
byte tail;
byte retired;
chan completed = [DEPTH + 1] of { byte };

bool interrupted;	/* the poster on CPU 0 */

/* What is watched. */
byte posted[TOTAL];	/* what the poster of a position writes there */
byte held[TOTAL];	/* times that it was taken to be consumed */
bool in_use[SLOTS];
byte consumed;
byte polled;
byte posters_gone;
bool interrupt_gone;

/* room: there was some, and pos is the caller's. */
inline reserve(pos, message, room)
{
	pos = head;
again:
	if
#ifndef BUG_NO_RETIRED
	:: atomic { pos >= retired && pos - retired >= DEPTH -> room = false; goto reserved }
#endif
	:: atomic { pos < retired -> pos = head; goto again }
	:: atomic { pos >= retired && ROOM_AT(pos) -> skip }
	fi;
	if
	:: atomic { load(SEQ(pos)) < pos -> room = false; goto reserved }
	:: atomic { load(SEQ(pos)) > pos -> pos = head; goto again }
	:: load(SEQ(pos)) == pos
	fi;
	if
#ifdef BUG_HEAD_STORED
	:: atomic {
#else
	:: atomic { head != pos -> pos = head; goto again }
	:: atomic { head == pos ->
#endif
		head = pos + 1;
		room = true;
		assert(!posted[pos]);
		assert(pos - retired < DEPTH);
		assert(!in_use[pos % SLOTS]);
		posted[pos] = message
		}
	fi;
reserved:
	skip
}

inline publish(pos, message)
{
	store(DATA(pos), message);
#ifdef BUG_IN_ORDER
	if
	:: pos == 0
	:: pos > 0 && load(SEQ(pos - 1)) > pos - 1
	fi;
#endif
#ifdef BUG_PUBLISH_NO_RELEASE
	store(SEQ(pos), pos + 1)
#else
	store_release(SEQ(pos), pos + 1)
#endif
}

inline post(n)
{
	reserve(pos, 1 + n * POSTERS + me, room);
	if
	:: room -> publish(pos, 1 + n * POSTERS + me); n++
	:: !room -> head - retired < DEPTH && load(SEQ(head)) >= head
	fi;
	atomic { pos = 0; room = false }
}

proctype interrupted_poster(byte me) provided (!interrupted)
{
	byte n, pos;
	bool room;

	do
	:: n < POSTS -> post(n)
	:: n == POSTS -> break
	od;
	atomic { n = 0; posters_gone++ }
}

proctype poster(byte me)
{
	byte n, pos;
	bool room;

	do
	:: n < POSTS -> post(n)
	:: n == POSTS -> break
	od;
	atomic { n = 0; posters_gone++ }
}

proctype interrupt(byte me)
{
	byte pos;
	bool room;

	interrupted = true;
	reserve(pos, TOTAL, room);
	if
	:: room -> publish(pos, TOTAL)
	:: !room
	fi;
	atomic { pos = 0; room = false; interrupted = false; interrupt_gone = true }
}

inline take(pos)
{
	held[pos]++;
	assert(held[pos] == 1);
	in_use[pos % SLOTS] = true
}

/* Reads the entry, and writes into it. */
inline use(pos)
{
	assert(load(DATA(pos)) == posted[pos]);
	store(DATA(pos), 0)
}

inline give_back(pos)
{
	atomic {
#ifndef BUG_FREE_NO_RELEASE
		drained ->
#endif
		in_use[pos % SLOTS] = false;
		store(SEQ(pos), pos + SLOTS);
		consumed++
	}
}

/* The owner of the doorbell. Only it writes the tail. */
proctype owner(byte me)
{
	byte pos;

end:
	do
	:: atomic { load(SEQ(pos)) == pos + 1 -> take(pos) }
		use(pos);
		give_back(pos);
		/* emu_cq_end() */
		atomic { completed ! pos; pos++ }
#ifdef BUG_SKIP_HOLE
	:: atomic { load(SEQ(pos)) == pos && load(SEQ(pos + 1)) == pos + 2 -> pos++ }
#endif
	od
}

/* An engine that acts as responder. */
proctype claimer(byte me)
{
	byte pos;

end:
	do
	:: atomic { load(SEQ(tail)) == tail + 1 -> pos = tail }
		/* Somebody may be faster, and somebody else may have posted again. */
		if
		:: load(SEQ(pos)) != pos + 1 -> goto end
		:: load(SEQ(pos)) == pos + 1
		fi;
		if
#ifdef BUG_TAIL_STORED
		:: atomic {
#else
		:: tail != pos -> goto end
		:: atomic { tail == pos ->
#endif
			tail = pos + 1; take(pos) }
		fi;
#ifdef BUG_FREE_FIRST
		give_back(pos);
		use(pos);
#else
		use(pos);
		give_back(pos);
#endif
		completed ! pos
	od
}

proctype poller()
{
	byte pos, old;

end:
	do
	:: completed ?? pos ->
#ifdef CLAIMERS
		atomic { retired++; polled++; assert(retired <= consumed) }
#else
		old = retired;
		do
		:: pos + 1 <= old -> break
		:: pos + 1 > old ->
#ifdef BUG_RETIRED_STORED
			atomic { assert(pos + 1 > retired); retired = pos + 1; break }
#else
			if
			:: atomic { retired == old -> retired = pos + 1; break }
			:: retired != old -> old = retired
			fi
#endif
		od;
		atomic { polled++; old = 0; assert(retired <= consumed) }
#endif
	od
}

proctype judge()
{
	byte pos;

	atomic {
		timeout ->
		assert(posters_gone == POSTERS);
		assert(interrupt_gone);
		assert(consumed == head && polled == head && retired == head);
		do
		:: pos < head -> assert(posted[pos] && held[pos] == 1); pos++
		:: pos == head -> break
		od
	}
}

init {
	atomic {
		mem[SEQ(1)] = 1;
		run interrupted_poster(0);
		run interrupt(0);
		run poster(1);
#ifdef CLAIMERS
		run claimer(POSTERS);
#if CLAIMERS > 1
		run claimer(POSTERS + 1);
#endif
#else
		run owner(POSTERS);
#endif
		run poller();
		run poller();
		run judge()
	}
}
