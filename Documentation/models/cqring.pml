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
 * Positions are counted modulo WRAP, as those of the code are modulo 2^32. Producers
 * push as often as they like, so positions wrap without end, and everybody may stand
 * still between any two steps while the others go round any number of times. A cmpxchg
 * cannot tell a position that has not moved from one that has gone round exactly; here
 * it can, as in wq.pml: head_moved and tail_moved are for that.
 *
 * Producers wait for room outside; the interrupt, which comes any number of times and
 * must not wait, drops what finds none. Both pollers sleep when there is nothing, and a
 * notification wakes both.
 *
 * ring.pml has the same ring from the side of who polls it alone. Chains of rings
 * are in chain.pml. Not modelled: solicited arming and moderation, which may only
 * delay.
 *
 * Shown at every step:
 *   - an entry is polled once, in the order of positions, and whole
 *   - an entry that is not polled is not overwritten, and no position has two
 *     producers
 *   - a producer finds no room only if there is none, or if it stood still for about
 *     half of WRAP positions, or more
 * and where nothing can go on (judge()): all producers came to the end, all that
 * was pushed was polled, and pollers sleep with the queue armed. Names in -ends: there is
 * no infinite run in which nothing is pushed.
 *
 * -DINTERRUPT. -DPRODUCERS=n, -DPOLLERS=n, -DBATCH=n, -DCQE=n. -DBUG_x takes away
 * something that must be missed.
 */
#ifndef PRODUCERS
#define PRODUCERS	1	/* besides the interrupt, with -DINTERRUPT */
#endif
#ifndef POLLERS
#define POLLERS		2
#endif
#ifndef BATCH
#define BATCH		2
#endif
#ifndef CQE
#define CQE		2
#endif
/* A power of two, more than 2 * CQE: differences have a sign. */
#define WRAP		(4 * CQE)

#define SEQ(pos)	((pos) % CQE)
#define DATA(pos)	(CQE + (pos) % CQE)
#define ARM		(2 * CQE)
#define WORDS		(2 * CQE + 1)
#define CPUS		PRODUCERS

#include "memory.pml"

#define plus(pos, n)		(((pos) + (n)) % WRAP)
#define next(pos)		plus(pos, 1)
#define distance(to, from)	(((to) + WRAP - (from)) % WRAP)
#define is_before(a, b)		(distance(a, b) >= WRAP / 2)

/* What the producer of a position writes there. */
#define message(pos)		(1 + (pos))
#define published(pos)		(load(SEQ(pos)) == next(pos))
#define has_room		(distance(head, tail) < CQE)

byte head;
byte tail;
bool awake[POLLERS] = true;
bool interrupted;	/* the producer on CPU 0 */

/* Has it moved since this one read it? True for whoever has not read it. */
bool head_moved[PRODUCERS + 1] = true;
bool tail_moved[POLLERS] = true;

/* What is watched. */
bool pushed[CQE];	/* reserved, and not polled */
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

inline read_head(pos)
{
	pos = head;
	head_moved[who] = false
}

inline forget_head(pos)
{
	pos = 0;
	head_moved[who] = true
}

inline move_head(pos)
{
	assert(!pushed[pos % CQE]);
	assert(distance(pos, tail) < CQE);
	head = next(pos);
	head_moved[0] = true;
	head_moved[1] = true;
#if PRODUCERS > 1
	head_moved[2] = true;
#endif
	pushed[pos % CQE] = true
}

#define is_stale(pos)		is_before(pos, tail)

/* Goes to the label `dropped` if there is no room. */
inline push(pos)
{
	atomic { read_head(pos) }
again:
	if
	:: atomic { is_stale(pos) && head != pos -> read_head(pos); goto again }
	:: atomic { is_stale(pos) && head == pos ->
		assert(head_moved[who]);
		forget_head(pos);
		goto dropped }
	:: atomic { !is_stale(pos) && distance(pos, tail) >= CQE ->
		assert(!has_room || distance(head, pos) > WRAP / 2);
		forget_head(pos);
		goto dropped }
	:: !is_stale(pos) && distance(pos, tail) < CQE
	fi;
	if
#ifdef BUG_BEGIN_STORED
	:: atomic { true -> move_head(pos) }
#else
	:: atomic { head != pos || head_moved[who] -> read_head(pos); goto again }
	:: atomic { head == pos && !head_moved[who] -> move_head(pos) }
#endif
	fi;
progress:
	store(DATA(pos), message(pos));
	atomic {
#ifdef BUG_END_NO_RELEASE
		store(SEQ(pos), next(pos));
#else
		store_release(SEQ(pos), next(pos));
#endif
		forget_head(pos)
	}
#ifndef BUG_END_NO_BARRIER
	full_barrier();
#endif
	if
	:: load(ARM) -> notify()
	:: !load(ARM)
	fi
}

/* Pushes as long as it likes. Whoever finds no room waits for some. */
inline push_on()
{
	do
	:: push(pos)
	:: false ->
dropped:
		has_room
	:: break
	od;
	producers_gone++
}

proctype producer(byte me, who)
{
	byte pos;

	push_on()
}

proctype interrupted_producer(byte me, who) provided (!interrupted)
{
	byte pos;

	push_on()
}

proctype interrupt(byte me, who)
{
	byte pos;

idle:
	if
	:: interrupted = true
	:: goto stop
	fi;
	push(pos);
dropped:
	interrupted = false;
	goto idle;
stop:
	interrupt_gone = true
}

inline read_tail(pos)
{
	pos = tail;
	tail_moved[who] = false
}

inline move_tail(to)
{
	assert(from == polled);
	polled = to;
	tail = to;
	tail_moved[0] = true;
#if POLLERS > 1
	tail_moved[1] = true;
#endif
	pushed[from % CQE] = false;
	if
	:: distance(to, from) > 1 -> pushed[next(from) % CQE] = false
	:: else
	fi
}

#ifdef BUG_TAKE_STORED
#define is_tail(pos)	true
#else
#define is_tail(pos)	(tail == pos && !tail_moved[who])
#endif

/* good: of what was copied nothing is torn. Else the tail has moved, which is found out. */
inline copy(pos)
{
	good = good && (load(DATA(pos)) == message(pos))
}

inline forget_entries()
{
	from = 0;
	pos = 0;
	good = true;
	tail_moved[who] = true
}

/* n: entries polled. */
inline take(n)
{
	n = 0;
again:
	atomic { read_tail(from); pos = from }
	do
	:: atomic { distance(pos, from) < BATCH && published(pos) -> skip }
#ifndef BUG_TAKE_FIRST
		copy(pos);
#endif
		pos = next(pos)
	:: distance(pos, from) == BATCH -> break
	:: !published(pos) -> break
	od;
	n = distance(pos, from);
	if
	:: n ->
		if
		:: atomic { is_tail(from) ->
			move_tail(pos);
#ifndef BUG_TAKE_FIRST
			assert(good)
#endif
			}
#ifndef BUG_TAKE_STORED
		:: atomic { !is_tail(from) -> forget_entries(); goto again }
#endif
		fi;
#ifdef BUG_TAKE_FIRST
		copy(from);
		assert(good)
#endif
	:: !n
	fi;
	atomic { forget_entries() }
}

proctype poller(byte who)
{
	byte me = NOBODY;
	byte pos, n, from, old;
	bool good = true;

poll:
	take(n);
	if
	:: n -> n = 0; goto poll
	:: !n
	fi;
	/* Before the request: what comes from here on wakes. */
	awake[who] = false;
	atomic { old = mem[ARM]; mem[ARM] = 1 }
#ifndef BUG_ARM_NO_LOOK
	pos = tail;
	if
	:: published(pos) && old -> awake[who] = true
	:: published(pos) && !old ->
		/* Missed. Who clears the word, acts. */
		atomic { mem[ARM] = 0; awake[who] = true }
	:: !published(pos)
	fi;
#endif
	atomic { old = 0; pos = 0 }
end:
	atomic { awake[who] -> goto poll }
}

proctype judge()
{
	atomic {
		timeout ->
		assert(producers_gone == PRODUCERS);
#ifdef INTERRUPT
		assert(interrupt_gone);
#endif
		assert(polled == head && tail == head);
		assert(mem[ARM])
	}
}

init {
	atomic {
#ifdef INTERRUPT
		run interrupted_producer(0, 0);
		run interrupt(0, PRODUCERS);
#else
		run producer(0, 0);
#endif
#if PRODUCERS > 1
		run producer(1, 1);
#endif
		run poller(0);
#if POLLERS > 1
		run poller(1);
#endif
		run judge()
	}
}
