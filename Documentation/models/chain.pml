/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues that change their size: SRQs and CQs as chains of rings.
 *
 * Run by scripts/models. One step is one atomic operation or one look at what
 * others write, over weak memory (memory.pml). What goes on within a ring is in
 * wq.pml and cqring.pml.
 *
 *	here			code
 *	writer()		posters of an SRQ in post.c, emu_cq_begin() and
 *				emu_cq_end() of a CQ; preemption is off
 *	reader(), of an SRQ	emu_srq_claim(). What was taken is a copy, which is
 *				used later, without rcu_read_lock()
 *	reader(), of a CQ	emu_poll_cq() and emu_req_notify_cq()
 *	resizer()		emu_modify_srq(), emu_resize_cq(): the size changes,
 *				and the next time the old ring is freed
 *	mem[IN]			which ring .in is
 *	mem[OUT]		which ring .out is
 *	mem[NEXT], mem[SEALED]	.next and .sealed of the old ring
 *	mem[SETUP]		what the new ring is made of
 *	mem[PUB(r, n)]		the entry at position n of ring r is published
 *	mem[ARM]		emu_cq.arm
 *	grace_period()		synchronize_rcu()
 *
 * Writers wait for room. So do readers of an SRQ that find nothing: their timers
 * and the posters' doorbells are in doorbell.pml. Readers of a CQ arm it and wait
 * for the notification.
 *
 * Shown at every step:
 *   - nobody writes into a sealed ring, or into one that is not seen set up
 *   - an entry is taken once, and those of the old ring before those of the new
 *   - nobody touches a ring that was freed
 * and where nothing can go on (judge()): everybody came to the end, and all that
 * was written was taken. So no entry stays behind in a ring that was left, and no
 * reader sleeps where there is something.
 *
 * -DCQ or -DSRQ. -DREADERS=n. -DBUG_x takes away something that must be missed.
 */
#ifndef WRITES
#define WRITES		2	/* of each writer */
#endif
#ifndef WRITERS
#define WRITERS		2
#endif
#ifndef READERS
#define READERS		2
#endif
#define SIZE		2	/* of either ring */
#define TOTAL		(WRITERS * WRITES)
#define USERS		(WRITERS + READERS)

#define PUB(r, n)	((r) * (TOTAL + 1) + (n))
#define IN		(2 * (TOTAL + 1))
#define OUT		(IN + 1)
#define NEXT		(IN + 2)
#define SEALED		(IN + 3)
#define SETUP		(IN + 4)
#define ARM		(IN + 5)
#define WORDS		(IN + 6)
#define CPUS		(WRITERS + 1)

#include "memory.pml"

byte head[2];
byte tail[2];

/* RCU: who is in a section, and who must leave it for the grace period to end. */
bool inside[USERS];
bool awaited[USERS];

/* Of a CQ: whom a notification wakes. */
bool awake = true;

/* What is watched. */
bool freed;
byte taken;
byte writers_gone;
byte readers_gone;
bool resizer_gone;

#define touch(r)	assert((r) == 1 || !freed)

inline enter(who)
{
	inside[who] = true
}

inline leave(who)
{
	inside[who] = false;
	awaited[who] = false
}

/* Each CPU passes a full barrier outside a section. */
inline grace_period()
{
	d_step {
		drained ->
		i = 0;
		do
		:: i < USERS -> awaited[i] = inside[i]; i++
		:: i == USERS -> break
		od;
		i = 0
	}
	do
	:: i < USERS ->
		atomic {
			!awaited[i] && (i >= WRITERS || len(buffer[i]) == 0) -> i++
		}
	:: i == USERS -> break
	od;
	i = 0
}

inline notify()
{
	atomic {
		drained ->
		if
		:: mem[ARM] -> mem[ARM] = 0; awake = true
		:: else
		fi
	}
}

proctype writer(byte me)
{
	byte n, ring, pos;

	do
	:: n < WRITES ->
		/* Room in the ring of that moment, or something new. */
		atomic { head[mem[IN]] - tail[mem[IN]] < SIZE -> enter(me) }
		ring = load(IN);
		assert(ring == 0 || load(SETUP));
		if
		:: atomic { head[ring] - tail[ring] >= SIZE -> touch(ring); leave(me) }
		:: atomic { head[ring] - tail[ring] < SIZE ->
			touch(ring);
			pos = head[ring];
			head[ring]++
			}
			atomic {
				touch(ring);
				assert(ring == 1 || !mem[SEALED]);
				store(PUB(ring, pos), 1);
				n++
			}
#ifdef CQ
			full_barrier();
			if
			:: load(ARM) -> notify()
			:: !load(ARM)
			fi;
#endif
			leave(me)
		fi;
		atomic { ring = 0; pos = 0 }
	:: n == WRITES -> break
	od;
	atomic { n = 0; writers_gone++ }
}

/* Something to take, or to go on to. */
#define published(r)	load(PUB(r, tail[r]))
#define news		(published(load(OUT)) || \
			 (load(OUT) == 0 && load(NEXT) && load(SEALED)))

#ifdef BUG_LEAVE_UNSEALED
#define may_leave	true
#else
#define may_leave	load(SEALED)
#endif

/* What came between the look at the entry and the look at SEALED. */
#ifdef BUG_LOOK_ONCE
#define left_behind(r)	false
#else
#define left_behind(r)	(head[r] != tail[r])
#endif

/*
 * Nothing was published in the ring. go: look again, there or in the next one, to
 * which `ring` is then set.
 */
inline next_ring(ring, go)
{
	if
	:: atomic { ring == 1 || !load(NEXT) -> touch(ring); go = false }
	:: atomic { ring == 0 && load(NEXT) -> touch(ring) }
		if
		:: atomic { !may_leave -> touch(ring); go = false }
		:: atomic { may_leave -> touch(ring) }
			if
			:: atomic { left_behind(ring) -> touch(ring); go = true }
			:: atomic { !left_behind(ring) -> touch(ring) }
				atomic { mem[OUT] = 1; ring = 1; go = true }
			fi
		fi
	fi
}

inline take(ring, pos)
{
	touch(ring);
	tail[ring]++;
	assert(ring == 0 || (load(SETUP) && tail[0] == head[0]));
	taken++
}

#ifdef SRQ
/* An engine. */
proctype reader(byte who)
{
	byte ring, pos;
	bool go;

end:
	do
	:: atomic { news -> enter(who); ring = load(OUT) }
look:
		if
		:: atomic { published(ring) -> touch(ring); pos = tail[ring] }
			/* The copy. */
			touch(ring);
			if
			:: atomic { tail[ring] != pos -> touch(ring); goto look }
			:: atomic { tail[ring] == pos -> take(ring, pos) }
			fi;
			leave(who);
#ifdef BUG_USE_IN_PLACE
			touch(ring)
#endif
		:: atomic { !published(ring) -> touch(ring) }
			next_ring(ring, go);
			if
			:: go -> goto look
			:: !go -> leave(who)
			fi
		fi;
		atomic { ring = 0; pos = 0; go = false }
	od
}
#else
/* A consumer that polls until it finds nothing, arms, looks again, and sleeps. */
proctype reader(byte who)
{
	byte ring, pos;
	bool go, armed;

poll:
	atomic { enter(who); ring = load(OUT) }
look:
	if
	:: atomic { published(ring) -> touch(ring); pos = tail[ring] }
		if
		:: armed ->
			/* Missed: the request is taken back. */
			atomic { mem[ARM] = 0; awake = true; armed = false }
		:: !armed ->
			if
			:: atomic { tail[ring] != pos -> touch(ring) }
			:: atomic { tail[ring] == pos -> take(ring, pos) }
			fi
		fi;
		goto look
	:: atomic { !published(ring) -> touch(ring) }
		next_ring(ring, go);
		if
		:: go -> goto look
		:: !go -> leave(who)
		fi
	fi;
	atomic { ring = 0; pos = 0; go = false }
	if
	:: !armed ->
		/* emu_req_notify_cq() */
		atomic { awake = false; mem[ARM] = 1; armed = true }
		goto poll
	:: armed
	fi;
end:
	atomic { awake -> armed = false; goto poll }
}
#endif

proctype resizer(byte me)
{
	byte i;

	store(SETUP, 1);
#ifdef BUG_LINK_NO_RELEASE
	store(NEXT, 1);
	store(IN, 1);
#else
	store_release(NEXT, 1);
	store_release(IN, 1);
#endif
#ifndef BUG_SEAL_EARLY
	grace_period();
#endif
	store_release(SEALED, 1);
#ifdef CQ
#ifndef BUG_SEAL_NO_BARRIER
	full_barrier();
#endif
#ifndef BUG_SEAL_SILENT
	if
	:: load(ARM) && (head[0] != tail[0] || head[1] != tail[1]) -> notify()
	:: else
	fi;
#endif
#endif
	/*
	 * The next change of size may come at any time, or not. It leaves the old ring if
	 * that is empty, as if it were a reader: emu_srq_advance(), emu_cq_advance().
	 */
	if
	:: atomic { head[0] == tail[0] -> mem[OUT] = 1 }
#ifndef BUG_FREE_NO_GP
		grace_period();
#endif
		freed = true
	:: true
	fi;
	resizer_gone = true
}

proctype judge()
{
	atomic {
		timeout ->
		assert(writers_gone == WRITERS);
		assert(taken == TOTAL);
		assert(resizer_gone)
	}
}

init {
	atomic {
		run writer(0);
#if WRITERS > 1
		run writer(1);
#endif
		run reader(WRITERS);
#if READERS > 1
		run reader(WRITERS + 1);
#endif
		run resizer(WRITERS);
		run judge()
	}
}
