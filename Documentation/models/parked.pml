/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The parked receive of a queue pair: engines that take it or park another one, and
 * whoever flushes or resets the queue pair.
 *
 * Run by scripts/models. One step is one atomic operation, one look at what others
 * write, or half a copy, over weak memory (memory.pml).
 *
 *	here			code, drivers/emu
 *	engine()		emu_deliver() and emu_not_delivered(); of a
 *				connection, emu_exec_send_data() and emu_scatter().
 *				What becomes of a message is a choice
 *	claim, in engine()	emu_claim()
 *	begin_claim(),		emu_claim_parked()
 *	put_back(), end_claim()
 *	park()			emu_park_recv()
 *	ask()			emu_has_receive()
 *	closer()		emu_flush_next_recv() and emu_qp_reset(), whose
 *				callers take turns (doorbell.pml)
 *	recv_from		emu_qp.recv_from, without the bits that never change
 *	mem[WR_ID], mem[SGE]	emu_qp.parked: two halves, each of which says of which
 *				receive it is
 *	wr_id, sge		emu_qp.taken of the engine's own queue pair
 *	open, inside		emu_qp.gate: see gate-leave.litmus, gate-closed.litmus
 *
 * Receives come out of the queue in one step, and in any order: the ring is in
 * wq.pml. Their consumer posts them again when they are completed, or dropped by a
 * reset, so engines may go on for ever, and everybody may stand still between any two
 * steps while the others take and park any number of receives. A message comes at any
 * time, may be too long for the receive that is next, and may not get into the one that
 * was taken for it, because memory is on the move. The gate is closed at any time, which
 * may be by an engine that is inside. The closer waits until it is empty: the last engine
 * to leave rings the doorbell.
 *
 * A connection has one engine at a time, which may be on another CPU for each message.
 *
 * Loads are in order in memory.pml, so nothing depends here on the barrier behind the
 * copy of a parked receive; hence in BUG_FREE_EARLY the copy is made late.
 *
 * Not modelled: receives that are posted in the error state, which ring the doorbell; an
 * SRQ, where a flush ends only the receive that is parked.
 *
 * Shown at every step:
 *   - a receive is taken from the queue when it is there, or from the place of the parked
 *     one when it is there, and by one; who has it completes it or parks it
 *   - the copy of the parked receive is whole
 *   - never more than one is parked
 *   - on a connection, there is room to park, what is parked is next, and who has seen
 *     that there is a receive gets one
 * and where nothing can go on (judge()): all engines came to the end; each receive is in
 * the queue, parked, or with its consumer; and if the gate stays closed, all are with
 * their consumer. With -DHALT, one engine stands still at any step until nothing else
 * can go on, and the others came to the end by then. Names in -ends: there is no infinite
 * run in which no message comes.
 *
 * -DFLUSH: the gate is closed, and the closer flushes. -DRESET: after any number of
 * receives it may also reset, and open the gate again. -DCONNECTION, else a datagram
 * queue pair. -DENGINES=n. -DBUG_x takes away something that must be missed.
 */
#ifndef ENGINES
#define ENGINES		2
#endif
#define RECVS		3

#ifdef RESET
#define FLUSH
#endif
#ifdef HALT
#define HALTS		1
#else
#define HALTS		0
#endif

#define WR_ID		0
#define SGE		1
#define WORDS		2
#define CPUS		ENGINES

#include "memory.pml"

/* recv_from; 0 if none is parked. */
#define PARKED		2
#define BUSY		4

/* Where a receive is. */
#define USED		0	/* completed or dropped: with its consumer */
#define POSTED		1
#define TAKEN		2
#define SET_ASIDE	3	/* parked */

byte recv_from;
bool open = true;
byte inside;
bool at_work;		/* the engine of a connection */
byte halted;		/* the process that stands still */

/* What is watched. Receives are numbered from 1. */
byte where[RECVS + 1];
byte parked;		/* which one is, also while somebody takes it; 0 for none */
byte engines_gone;
bool closer_gone;

inline move(recv, from, to)
{
	assert(where[recv] == from);
	where[recv] = to
}

inline complete()
{
	move(wr_id, TAKEN, USED);
	wr_id = 0;
	sge = 0
}

/* Any receive that is in the queue. */
inline pick(recv)
{
	if
	:: where[1] == POSTED -> recv = 1
	:: where[2] == POSTED -> recv = 2
	:: where[3] == POSTED -> recv = 3
	fi
}

#define is_posted	(where[1] == POSTED || where[2] == POSTED || where[3] == POSTED)

/* Goes to the label `queue` if there is none, or if somebody is at it. */
inline begin_claim()
{
	if
#if defined(BUG_CLAIM_STORED)
	:: atomic { true -> recv_from = BUSY }
#elif defined(BUG_COPY_FIRST)
	:: recv_from == PARKED
#else
	:: atomic { recv_from == PARKED && drained -> recv_from = BUSY }
#endif
	:: recv_from != PARKED -> goto queue
	fi
}

/* From now on, others may park. The receive that was there is the caller's. */
inline free_place()
{
	recv_from = 0;
	claimed = parked;
	parked = 0
}

inline copy_parked()
{
	wr_id = load(WR_ID);
	sge = load(SGE)
}

inline check_copy()
{
	assert(wr_id == claimed && sge == claimed);
	move(wr_id, SET_ASIDE, TAKEN);
	claimed = 0
}

inline end_claim()
{
#if defined(BUG_FREE_EARLY)
	atomic { drained -> free_place() }
	copy_parked();
	atomic { check_copy() }
#elif defined(BUG_COPY_FIRST)
	copy_parked();
	if
	:: atomic { recv_from != PARKED -> wr_id = 0; sge = 0; goto queue }
	:: atomic { recv_from == PARKED && drained -> free_place(); check_copy() }
	fi
#else
	copy_parked();
	atomic { drained -> assert(recv_from == BUSY); free_place(); check_copy() }
#endif
}

/* The receive is too short for the message. */
inline put_back()
{
	atomic {
		drained ->
#if defined(BUG_SHORT_FREED)
		recv_from = 0;
		parked = 0
#elif !defined(BUG_COPY_FIRST)
		assert(recv_from == BUSY);
		recv_from = PARKED
#endif
	}
}

inline copy_to_place()
{
	store(WR_ID, wr_id);
	store(SGE, sge)
}

inline set_parked()
{
	assert(!parked);
	recv_from = PARKED;
	move(wr_id, TAKEN, SET_ASIDE);
	parked = wr_id;
	wr_id = 0;
	sge = 0
}

/* Goes to the label `refused` if another one has the place. */
inline park()
{
	if
#if defined(BUG_PARK_NO_BUSY)
	:: recv_from == 0
#elif defined(BUG_PARK_OVER)
	:: atomic { recv_from != BUSY && drained -> recv_from = BUSY }
#else
	:: atomic { recv_from == 0 && drained -> recv_from = BUSY }
#endif
#ifdef BUG_WAIT_BUSY
	:: atomic { recv_from == PARKED -> goto refused }
#else
	:: atomic { recv_from != 0 -> goto refused }
#endif
	fi;
	copy_to_place();
#if defined(BUG_PARK_NO_BUSY)
	if
	:: atomic { recv_from == 0 && drained -> set_parked() }
	:: atomic { recv_from != 0 -> goto refused }
	fi
#elif defined(BUG_PARKED_RELAXED)
	atomic { set_parked() }
#else
	atomic { drained -> assert(recv_from == BUSY); set_parked() }
#endif
}

/* Messages that find the gate closed are dropped. */
#ifdef CONNECTION
inline enter()
{
	atomic { open && !at_work && drained -> at_work = true; inside++ }
}

inline leave()
{
	atomic { drained -> at_work = false; asked = false; inside-- }
}

/* Of messages that do something else before they take a receive; others do not ask. */
inline ask()
{
	if
	:: atomic { recv_from == PARKED || is_posted -> asked = true }
	:: true
	fi
}
#else
inline enter()
{
	atomic { open && drained -> inside++ }
}

inline leave()
{
	atomic { drained -> inside-- }
}
#endif

#ifdef HALT
proctype halter(byte which)
{
	halted = which
}
#endif

proctype engine(byte me)
#ifdef HALT
	provided (_pid != halted)
#endif
{
	byte wr_id, sge, claimed;
	bool asked;

	do
	:: break
	:: enter() ->
progress:
#ifdef CONNECTION
		ask();
#endif
		if
		:: recv_from == PARKED ->
			begin_claim();
			if
			:: put_back();
				goto drop
			:: end_claim()
			fi;
			goto taken
#ifdef BUG_SKIP_PARKED
		:: true
#else
		:: recv_from != PARKED
#endif
		fi;
queue:
		if
		:: atomic { !is_posted -> assert(!asked); goto drop }
		:: atomic { is_posted ->
#ifdef CONNECTION
			assert(!parked);
#endif
			pick(wr_id);
			move(wr_id, POSTED, TAKEN);
			sge = wr_id }
		:: goto drop	/* Too short. */
		fi;
taken:
		if
		:: atomic { complete(); goto drop }
		:: true
		fi;
#ifdef BUG_LEAVE_FIRST
		leave();
		park();
		goto next;
refused:
		atomic { complete(); goto next }
#else
		park();
		goto drop;
refused:
#ifdef CONNECTION
		assert(false);
#endif
		atomic { complete() }
#endif
drop:
		leave();
next:
	od;
	engines_gone = engines_gone + (me >= HALTS)
}

#ifdef FLUSH
/* The gate is closed and empty. */
inline reset()
{
#ifndef BUG_RESET_KEEPS
	if
	:: atomic { recv_from == PARKED -> recv_from = 0; where[parked] = USED; parked = 0 }
	:: recv_from != PARKED
	fi;
#endif
	atomic {
		/* The ring is empty, and what was parked is the consumer's again, too. */
		assert(recv_from != BUSY);
		where[1] = USED;
		where[2] = USED;
		where[3] = USED;
		open = true
	}
}

proctype closer(byte me)
{
	byte wr_id, sge, claimed;

close:
	open = false;
#ifndef BUG_FLUSH_BESIDE
	inside == 0;
#endif
	do
	:: true ->
#ifndef BUG_FLUSH_QUEUE_ONLY
		begin_claim();
		end_claim();
		goto taken;
#endif
queue:
		if
		:: atomic { is_posted -> pick(wr_id); move(wr_id, POSTED, TAKEN) }
		:: !is_posted -> break
		fi;
taken:
		atomic { complete() }
#ifdef RESET
	:: reset(); goto close
#endif
	od;
	closer_gone = true
}
#endif

proctype consumer()
{
end:
	do
	:: atomic { open && where[1] == USED -> where[1] = POSTED }
	:: atomic { open && where[2] == USED -> where[2] = POSTED }
	:: atomic { open && where[3] == USED -> where[3] = POSTED }
	od
}

proctype judge()
{
	byte recv, lost, left;

#ifdef HALT
	/* The others needed nothing of the one that stands still, which may go on now. */
	atomic { timeout -> assert(engines_gone == ENGINES - HALTS); halted = 0 }
#endif
	atomic {
		timeout ->
		recv = 1;
		do
		:: recv <= RECVS ->
			lost = lost + (where[recv] == TAKEN ||
				       (where[recv] == SET_ASIDE && parked != recv));
			left = left + (where[recv] != USED);
			recv++
		:: recv > RECVS -> break
		od;
		assert(engines_gone == ENGINES - HALTS);
		assert(!lost);
		assert(recv_from == (parked -> PARKED : 0));
#ifdef FLUSH
		assert(closer_gone && !left)
#endif
	}
}

init {
	byte first;

	atomic {
		first = run engine(0);
#if ENGINES > 1
		run engine(1);
#endif
#if ENGINES > 2
		run engine(2);
#endif
		run consumer();
#ifdef FLUSH
		run closer(NOBODY);
#endif
#ifdef HALT
		run halter(first);
#endif
		run judge()
	}
}
