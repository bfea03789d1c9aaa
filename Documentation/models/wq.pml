/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The work queue ring: posters, one of which interrupts another, consumers, and
 * pollers that retire entries.
 *
 * Run by scripts/models. One step is one atomic operation or one look at what
 * others write, over weak memory (memory.pml). That posters move the head is no
 * barrier here, as in the code.
 *
 *	here			code, drivers/emu
 *	post()			emu_ring_reserve(), emu_ring_publish(); of an SRQ,
 *				emu_ring_reserve_shared()
 *	owner()			emu_ring_peek(), __emu_complete_send(): a send queue
 *	claimer()		emu_recv_ring_claim(), emu_exec_simple(): a receive
 *				queue, or an SRQ
 *	poller()		emu_cq_retire(), emu_ring_retire()
 *	mem[SEQ(pos)]		emu_slot.seq, of the slot at this position
 *	mem[DATA(pos)]		the rest of the entry
 *	head, tail, retired	the same
 *	ended			emu_qp.unretired
 *	completed		emu_cqe.retires, in the completion queue: see cqring.pml
 *
 * Positions are counted modulo WRAP, as those of the code are modulo 2^32. Posters
 * post as often as they like, so positions wrap without end, and everybody may stand
 * still between any two steps while the others go round any number of times: a
 * poster that has read the head, a consumer that has copied an entry, a poller that
 * has taken a completion. There is one limit, which the code has too: a cmpxchg
 * cannot tell a position that has not moved from one that has gone round exactly.
 * Here it can; head_moved and tail_moved are for that.
 *
 * The interrupt comes at any step of the poster on CPU 0, any number of times, and
 * that poster does not go on before it has returned. The interrupt drops what finds
 * no room; other posters wait for room. The owner of a send queue writes into the
 * entry as well (emu_swqe.data_done). It signals any entries, but at least one in
 * DEPTH, which users of a queue have to see to. A claimer may find an entry too
 * short, and then leaves it where it is.
 *
 * In memory.pml, a store becomes visible to all CPUs at once. Nothing would depend
 * on the release of emu_ring_retire() then, so a completion can be polled here before
 * all CPUs see what its owner wrote earlier. Loads are in order there: hence in
 * BUG_TAKE_NO_RELEASE the copy is made late, and nothing depends on the acquire of
 * emu_ring_reserve(). The litmus tests have all of pair B.
 *
 * Not modelled: a reset, which nobody runs beside; several owners, who take turns
 * (doorbell.pml); receives that are parked (parked.pml).
 *
 * Shown at every step:
 *   - a position has one poster, and is consumed once
 *   - who consumes an entry finds there what was posted, or has a copy of that
 *   - a slot is not reserved while somebody uses it
 *   - never more than DEPTH entries count
 *   - what is retired neither passes the head nor goes back
 *   - a poster is refused if DEPTH entries count, and a consumer finds nothing if
 *     nothing is published at the tail; else only if it stood still for about half of
 *     WRAP positions, or more
 * and where nothing can go on (judge()): all posters, the interrupt among them,
 * came to the end; all that was posted was consumed; and no entry counts but those
 * that the next signaled one is to retire. Names in -ends: there is no infinite run
 * in which nothing is posted.
 *
 * -DDATAGRAM or -DSRQ: that, else a send queue. -DINTERRUPT. -DBUG_x takes away
 * something that must be missed.
 */
#ifndef POSTERS
#define POSTERS		1	/* besides the interrupt */
#endif
#ifndef CLAIMERS
#define CLAIMERS	2
#endif
#ifndef DEPTH
#define DEPTH		2
#endif
#if DEPTH > 2
#define SLOTS		4
#else
#define SLOTS		2
#endif
/* A power of two, at least 2 * SLOTS and more than 2 * DEPTH: differences have a sign. */
#define WRAP		8

#define SEQ(pos)	((pos) % SLOTS)
#define DATA(pos)	(SLOTS + (pos) % SLOTS)
#define WORDS		(2 * SLOTS)
#if defined(DATAGRAM) || defined(SRQ)
#define CPUS		POSTERS
#else
#define CPUS		(POSTERS + 1)
#endif

#include "memory.pml"

#define plus(pos, n)		(((pos) + (n)) % WRAP)
#define next(pos)		plus(pos, 1)
#define distance(to, from)	(((to) + WRAP - (from)) % WRAP)
#define is_before(a, b)		(distance(a, b) >= WRAP / 2)

/* What the poster of a position writes there. The owner of a send queue writes 0. */
#define message(pos)		(1 + (pos))

byte head;
byte tail;
byte retired;
byte ended;		/* since the last completion */
chan completed = [DEPTH] of { byte };
bool interrupted;	/* the poster on CPU 0 */

/* Has it moved since this one read it? True for whoever has not read it. */
bool head_moved[POSTERS + 1] = true;
bool tail_moved[CLAIMERS] = true;

/* A completion is there, but what its owner wrote before may not be visible to all. */
bool unordered;

/* What is watched. */
bool waiting[SLOTS];	/* reserved, and not consumed */
bool in_use[SLOTS];
byte counted;		/* entries that count */
byte posters_gone;
bool interrupt_gone;

/* Up to where entries count no more. */
#if defined(SRQ) || defined(BUG_ROOM_BY_TAIL)
#define OLDEST		tail
#else
#define OLDEST		retired
#endif

#ifdef BUG_NO_RETIRED
#define in_depth(pos)	true
#else
#define in_depth(pos)	(distance(pos, OLDEST) < DEPTH)
#endif
#ifdef BUG_UNSIGNED
#define is_stale(pos)	false
#else
#define is_stale(pos)	is_before(pos, OLDEST)
#endif

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
	assert(!waiting[pos % SLOTS]);
	assert(!in_use[pos % SLOTS]);
	assert(counted < DEPTH);
	head = next(pos);
	head_moved[0] = true;
	head_moved[1] = true;
#if POSTERS > 1
	head_moved[2] = true;
#endif
	waiting[pos % SLOTS] = true;
	counted++
}

/* Goes to the label `refused` if there is no room. */
inline post()
{
	atomic { read_head(pos) }
again:
	if
	:: atomic { !is_stale(pos) && !in_depth(pos) ->
		assert(counted == DEPTH || distance(head, pos) > WRAP / 2);
		forget_head(pos);
		goto refused }
	:: !is_stale(pos) && in_depth(pos)
	:: is_stale(pos) ->
		if
		:: atomic { head == pos ->
			assert(head_moved[who]);
			forget_head(pos);
			goto refused }
		:: atomic { head != pos -> read_head(pos); goto again }
		fi
	fi;
	if
#ifdef BUG_HEAD_STORED
	:: atomic { true -> move_head(pos) }
#else
	:: atomic { head != pos || head_moved[who] -> read_head(pos); goto again }
	:: atomic { head == pos && !head_moved[who] -> move_head(pos) }
#endif
	fi;
progress:
	store(DATA(pos), message(pos));
#ifdef BUG_IN_ORDER
	tail == pos || load(SEQ(plus(pos, WRAP - 1))) == pos;
#endif
	atomic {
#ifdef BUG_PUBLISH_NO_RELEASE
		store(SEQ(pos), next(pos));
#else
		store_release(SEQ(pos), next(pos));
#endif
		forget_head(pos)
	}
}

/* Posts as long as it likes. Whoever is refused waits for room. */
inline post_on()
{
	do
	:: post()
	:: false ->
refused:
		counted < DEPTH
	:: break
	od;
	posters_gone++
}

proctype poster(byte me, who)
{
	byte pos;

	post_on()
}

proctype interrupted_poster(byte me, who) provided (!interrupted)
{
	byte pos;

	post_on()
}

proctype interrupt(byte me, who)
{
	byte pos;

idle:
	if
	:: interrupted = true
	:: goto stop
	fi;
	post();
refused:
	interrupted = false;
	goto idle;
stop:
	interrupt_gone = true
}

#define published(pos)	(load(SEQ(pos)) == next(pos))

inline consume(pos)
{
	assert(waiting[pos % SLOTS]);
	waiting[pos % SLOTS] = false;
	tail = next(pos)
}

/* Reads the entry, and writes into it. */
inline use(pos)
{
	atomic {
		assert(load(DATA(pos)) == message(pos));
		store(DATA(pos), 0)
	}
}

inline end_use(pos)
{
	in_use[pos % SLOTS] = false;
	consume(pos);
	ended++
}

#if defined(BUG_RETIRE_TO)
#define RETIRES		pos
#elif defined(BUG_FORGET_UNSIGNALED)
#define RETIRES		1
#else
#define RETIRES		ended
#endif

/* The owner of the doorbell. */
proctype owner(byte me)
{
	byte pos;

end:
	do
	:: atomic { published(tail) -> pos = tail; in_use[pos % SLOTS] = true }
#ifndef BUG_END_FIRST
		use(pos);
#endif
		if
		:: atomic { ended + 1 < DEPTH -> end_use(pos); pos = 0 }
		:: atomic {
			end_use(pos);
			completed ! RETIRES;
#ifndef BUG_ENDED_KEPT
			ended = 0;
#endif
			unordered = true;
#ifndef BUG_END_FIRST
			pos = 0
#endif
			}
			atomic { full_barrier() -> unordered = false }
#ifdef BUG_END_FIRST
			use(pos)
#endif
		fi
#ifdef BUG_SKIP_HOLE
	:: atomic { !published(tail) && published(next(tail)) -> tail = next(tail) }
#endif
	od
}

inline read_tail(pos)
{
	pos = tail;
	tail_moved[who] = false
}

inline forget_entry(pos)
{
	pos = 0;
	good = false;
	tail_moved[who] = true
}

#ifdef BUG_TAIL_STORED
#define is_tail(pos)	true
#else
#define is_tail(pos)	(tail == pos && !tail_moved[who])
#endif
#ifdef BUG_SHORT_NO_LOOK
#define is_there(pos)	true
#else
#define is_there(pos)	is_tail(pos)
#endif
#ifdef BUG_FRONT_ONCE
#define is_gone(pos)	false
#else
#define is_gone(pos)	(!published(pos) && !is_before(load(SEQ(pos)), next(pos)))
#endif

inline take(pos)
{
	consume(pos);
	tail_moved[0] = true;
#if CLAIMERS > 1
	tail_moved[1] = true;
#endif
#ifdef SRQ
	counted--;
#endif
#ifdef BUG_NO_COPY
	in_use[pos % SLOTS] = true
#endif
}

inline copy(pos)
{
	good = (load(DATA(pos)) == message(pos))
}

/* An engine that acts as responder. good: it has a copy of what was posted. */
proctype claimer(byte who)
{
	byte pos;
	bool good;

end:
	atomic { published(tail) -> read_tail(pos) }
look:
	if
	:: published(pos)
	:: atomic { is_gone(pos) -> read_tail(pos); goto look }
	:: atomic { !published(pos) && !is_gone(pos) ->
		assert(!published(tail) || distance(tail, pos) > WRAP / 2 - DEPTH);
		forget_entry(pos);
		goto end }
	fi;
#if defined(BUG_COPY_LATE) || defined(BUG_NO_COPY)
	if
	:: atomic { !is_tail(pos) -> forget_entry(pos); goto end }
	:: atomic { is_tail(pos) -> take(pos) }
	fi;
	copy(pos);
	atomic { assert(good); good = false }
#else
#ifdef BUG_TAKE_NO_RELEASE
	if
	:: copy(pos)
	:: true
	fi;
#else
	copy(pos);
#endif
	if
	:: atomic { !is_tail(pos) -> forget_entry(pos); goto end }
#ifndef BUG_TAKE_NO_RELEASE
	:: atomic { is_there(pos) -> assert(good) }
		/* Too short. */
progress:
		atomic { forget_entry(pos); goto end }
#endif
	:: atomic {
		is_tail(pos) ->
		take(pos);
#ifndef BUG_TAKE_NO_RELEASE
		assert(good);
		forget_entry(pos)
#endif
		}
#ifdef BUG_TAKE_NO_RELEASE
		if
		:: good
		:: !good -> copy(pos)
		fi;
		atomic { assert(good); forget_entry(pos) }
#endif
	fi;
#endif
#ifdef DATAGRAM
	atomic {
		completed ! 1;
#ifdef BUG_NO_COPY
		in_use[pos % SLOTS] = false
#endif
	}
#endif
	goto end
}

inline retire(count)
{
	retired = plus(retired, count);
	assert(count <= counted && distance(head, retired) <= DEPTH);
	counted = counted - count
}

/* release: what was visible before the completion is visible to all. */
#ifdef BUG_RETIRE_NO_RELEASE
#define release		true
#else
#define release		(!unordered)
#endif

proctype poller()
{
	byte n, old;

end:
	do
	:: completed ? n ->
#if defined(BUG_RETIRE_TO)
		old = retired;
		do
		:: is_before(n, old) -> break
		:: !is_before(n, old) ->
			if
			:: atomic {
				retired == old && release ->
				retire(distance(next(n), old));
				break
				}
			:: atomic { retired != old -> old = retired }
			fi
		od;
		atomic { n = 0; old = 0 }
#elif defined(BUG_RETIRE_STORED)
		old = retired;
		atomic { release -> retired = old; retire(n); n = 0; old = 0 }
#else
		atomic { release -> retire(n); n = 0 }
#endif
	od
}

proctype judge()
{
	atomic {
		timeout ->
		assert(posters_gone == POSTERS);
#ifdef INTERRUPT
		assert(interrupt_gone);
#endif
		assert(tail == head && !waiting[0] && !waiting[1]);
		assert(counted == ended && distance(head, OLDEST) == counted)
	}
}

init {
	byte pos;

	atomic {
		/* As emu_ring_reset() leaves it. */
		do
		:: pos < SLOTS -> mem[SEQ(pos)] = pos; pos++
		:: pos == SLOTS -> break
		od;
		pos = 0;
#ifdef INTERRUPT
		run interrupted_poster(0, 0);
		run interrupt(0, POSTERS);
#else
		run poster(0, 0);
#endif
#if POSTERS > 1
		run poster(1, 1);
#endif
#if defined(DATAGRAM) || defined(SRQ)
		run claimer(0);
#if CLAIMERS > 1
		run claimer(1);
#endif
#else
		run owner(POSTERS);
#endif
#ifndef SRQ
		run poller();
		run poller();
#endif
		run judge()
	}
}
