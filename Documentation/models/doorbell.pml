/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The doorbell of a queue pair: who executes it, and how it is taken away.
 *
 * Run by scripts/models. One step is one atomic operation or one look at what
 * others write, over weak memory (memory.pml).
 *
 *	here			code, drivers/emu/queue/doorbell.[ch]
 *	try_own(), tell()	emu_qp_own(), emu_qp_own_or_signal()
 *	own()			emu_qp_release() and emu_qp_look(), in the
 *				loop of emu_serve() in drivers/emu/engine/engine.c
 *	direct()		emu_post_direct() in drivers/emu/engine/direct.c: an
 *				entry that is executed before it is published; that
 *				older ones are there is a choice. emu_post_chain()
 *				executes more of them before it lets go, as an owner
 *				may anyway
 *	service()		emu_service(), there: what it finds at each step is a choice,
 *				so it holds whatever the budget is
 *	park()			emu_qp_park()
 *	unpark()		emu_qp_unpark(), hrtimer_try_to_cancel()
 *	hand_over()		emu_qp_hand_over()
 *	runner()		emu_run_begin(), the same for all that hand over; here an entry
 *				is never freed
 *	take_back()		emu_run_cancel()
 *	freezer()		emu_qp_freeze() and emu_qp_thaw()
 *	failer()		emu_qp_fail(), by an engine that is our responder
 *	mem[DB]			emu_qp.doorbell
 *	mem[FREEZING]		emu_qp.freezing
 *	mem[ARMED]		emu_qp.timer is queued
 *	listed, list_owns	EMU_RUN_LISTED, EMU_RUN_OWNER: set and cleared by fully ordered
 *				atomic operations
 *	in_list			after llist_add(), until the runner takes the list
 *	mem[POSTED(i)]		poster i has published its entry, see wq.pml
 *	failed			emu_qp.state is IB_QPS_ERR: set by atomic operations
 *
 * The timer is weaker here than the kernel's, whose lock orders more: it is seen
 * armed when the store is, and a look without the lock may miss it. Entries wait
 * PARKS times at most. -DNO_FIRE: the timer takes for ever, so all depends on those
 * who end the wait; nothing waits again when they are gone. -DNO_RUN: the same for the
 * runner, which has others to serve.
 *
 * Shown at every step:
 *   - one owner at a time: nobody executes beside another, or what is frozen
 *   - a list becomes the owner once, and the timer is not armed by two
 *   - the timer is not armed, and no list is the owner, while it is frozen
 * and where nothing can go on (judge()): everybody came to the end, the doorbell is
 * idle and all entries are executed, or flushed. So no news is lost, and no owner.
 *
 * -DFREEZE, -DFAIL: with a freezer, with a failer. -DDIRECT: posters try the short way first.
 * -DBUG_x takes away something that must be missed.
 */
#ifndef PARKS
#define PARKS		1
#endif
#ifndef HANDOVERS
#define HANDOVERS	1
#endif
#ifndef POSTERS
#define POSTERS		2
#endif

#define IDLE		0
#define OWNED		1
#define RERUN		2

#define POSTED(i)	(i)
#define DB		POSTERS
#define FREEZING	(POSTERS + 1)
#define ARMED		(POSTERS + 2)
#define WORDS		(POSTERS + 3)

#define RUNNER		POSTERS
#define FREEZER		(POSTERS + 1)
#define CPUS		(POSTERS + 2)

#include "memory.pml"

bool failed;
bool listed;		/* on the list of a runner, which may not be the owner; or about to be */
bool in_list;		/* the runner finds it */
bool list_owns;
bool awake = true;	/* the freezer */

/* What is watched. */
bool executed[POSTERS];
bool executing;
bool frozen;
bool thawed;
byte parks;
byte handovers;
byte posters_gone;
bool freezer_gone;
bool failer_gone;

/* The owner is the list from here on; the second step wakes a freezer that has not seen that. */
inline hand_over(flag)
{
	atomic {
		drained -> assert(!list_owns); assert(!frozen);
		flag = !listed;
		listed = true;
		list_owns = true
	}
	if
	:: flag -> assert(!in_list); in_list = true
	:: !flag
	fi;
	flag = false;
#ifndef BUG_HAND_OVER_NO_LOOK
	load_own(FREEZING, flag);
	if
	:: flag -> awake = true
	:: !flag
	fi;
	flag = false
#endif
}

/* The look without the lock, then the attempt with it. */
inline try_to_cancel(cancelled)
{
	load_own(ARMED, cancelled);
	if
	:: cancelled ->
		atomic { drained -> cancelled = mem[ARMED]; mem[ARMED] = 0 }
	:: !cancelled
	fi
}

inline unpark(cancelled)
{
	try_to_cancel(cancelled);
	if
	:: cancelled -> hand_over(cancelled)
	:: !cancelled
	fi;
	cancelled = false
}

inline park(moved, flag)
{
	atomic {
		assert(!mem[ARMED] && !list_owns);
		executing = false;
		store(ARMED, 1)
	}
#ifndef BUG_PARK_NO_BARRIER
	full_barrier();
#endif
	load_own(FREEZING, flag);
	moved = true;
#ifndef BUG_PARK_NO_LOOK
	if
	:: flag || failed ->
		try_to_cancel(flag);
		moved = !flag
	:: !flag && !failed
	fi;
#endif
	flag = false
}

#if defined(NO_FIRE) || defined(NO_RUN)
#define may_park	(parks < PARKS && !failed && !thawed)
#else
#define may_park	(parks < PARKS && !failed)
#endif

#ifdef NO_RUN
#define may_hand_over	(handovers < HANDOVERS && !thawed)
#else
#define may_hand_over	(handovers < HANDOVERS)
#endif

#define to_do(i)	(load(POSTED(i)) && !executed[i])
#if POSTERS > 1
#define anything_to_do	(to_do(0) || to_do(1))
#else
#define anything_to_do	to_do(0)
#endif

/* Executes what there is. moved: somebody else is the owner now. */
inline service(moved, flag)
{
	atomic { assert(!executing && !frozen); executing = true }
again:
	load_own(FREEZING, flag);
	if
	:: !flag && to_do(0) -> executed[0] = true; goto again
#if POSTERS > 1
	:: !flag && to_do(1) -> executed[1] = true; goto again
#endif
	:: !flag && anything_to_do && may_park ->
		parks++;
		park(moved, flag);
		if
		:: moved -> goto serviced
		:: !moved ->
#ifndef BUG_PARK_NO_RERUN
			atomic { drained -> mem[DB] = RERUN };
#endif
			goto serviced
		fi
	:: !flag && anything_to_do && may_hand_over ->
		/* The budget is spent. */
		atomic { handovers++; executing = false }
		hand_over(flag);
		moved = true;
		goto serviced
	:: flag || !anything_to_do
	fi;
	atomic { executing = false; moved = false; flag = false }
serviced:
	skip
}

inline try_release(done)
{
	atomic {
		drained ->
		done = (mem[DB] == OWNED);
		mem[DB] = (done -> IDLE : mem[DB])
	}
}

inline release(flag, done)
{
#if defined(BUG_RELEASE_STORED)
	atomic { drained -> mem[DB] = IDLE }
	done = true;
#elif defined(BUG_RELEASE_NO_BARRIER)
	load_own(FREEZING, flag);
	if
	:: flag -> store_release(DB, IDLE); done = true
	:: !flag -> try_release(done)
	fi;
#else
	try_release(done);
	if
	:: !done ->
		load_own(FREEZING, flag);
		if
		:: flag ->
			atomic { drained -> mem[DB] = IDLE }
			done = true
		:: !flag
		fi
	:: done
	fi;
#endif
	if
	:: done ->
		load_own(FREEZING, flag);
		if
		:: flag -> awake = true
		:: !flag
		fi
	:: !done
	fi;
	flag = false
}

inline look()
{
#ifdef BUG_OWN_NO_XCHG
	store(DB, OWNED)
#else
	atomic { drained -> mem[DB] = OWNED }
#endif
}

/* The owner has looked. */
inline own(moved, flag, done)
{
	done = false;
	do
	:: !done ->
		service(moved, flag);
		if
		:: moved -> moved = false; break
		:: !moved ->
			release(flag, done);
			if
			:: !done -> look()
			:: done
			fi
		fi
	:: done -> break
	od;
	done = false
}

inline try_own(old)
{
	atomic { drained -> old = mem[DB]; mem[DB] = (old == IDLE -> OWNED : old) }
}

/* There is news: old is IDLE for the one who is the owner now, and has looked. */
inline tell(old)
{
	try_own(old);
	if
	:: old == IDLE
	:: old != IDLE ->
		xchg(DB, RERUN, old);
		if
		:: old == IDLE -> look()
		:: old != IDLE
		fi
	fi
}

/* posted: the entry was executed, or is published, and nothing is left to do for it. */
inline direct(posted, moved, flag, done, old)
{
	try_own(old);
	if
	:: old == IDLE ->
		load_own(FREEZING, flag);
		if
		:: !flag && !failed ->
			/* The oldest, and simple. */
			atomic { assert(!executing && !frozen); executing = true }
			atomic { executed[me] = true; executing = false; posted = true }
			release(flag, done);
			if
			:: !done -> look(); own(moved, flag, done)
			:: done
			fi
		:: !flag && !failed ->
			/* Neither: published where it was reserved. */
			store_release(POSTED(me), 1);
			posted = true;
			look();
			own(moved, flag, done)
		:: flag || failed ->
			flag = false;
			look();
			own(moved, flag, done)
		:: flag || failed ->
			/* emu_post_chain() leaves it to whoever has news. */
			flag = false;
			release(flag, done);
			if
			:: !done -> look(); own(moved, flag, done)
			:: done
			fi
		fi;
		done = false
	:: old != IDLE
	fi;
	old = 0
}

proctype poster(byte me)
{
	bool moved, flag, done, posted;
	byte old;

#ifdef DIRECT
	direct(posted, moved, flag, done, old);
#endif
	if
	:: !posted ->
		store_release(POSTED(me), 1);
		tell(old);
		if
		:: old == IDLE -> own(moved, flag, done)
		:: old != IDLE
		fi
	:: posted
	fi;
	atomic { old = 0; posters_gone++ }
}

#ifndef NO_RUN
proctype runner(byte me)
{
	bool moved, flag, done;

end:
	do
	:: in_list ->
		in_list = false;
		atomic {
			drained ->
#ifdef BUG_RUNNER_OWNS_ALL
			moved = true;
#else
			moved = list_owns;
#endif
			listed = false;
			list_owns = false
		}
		if
		:: moved ->
			moved = false;
			look();
			own(moved, flag, done)
		:: !moved
		fi
	od
}
#endif

#ifndef NO_FIRE
/* By atomic operations alone. */
proctype timer()
{
	byte me = NOBODY;
	bool flag;

end:
	do
	:: atomic { mem[ARMED] -> mem[ARMED] = 0 }
		hand_over(flag)
	od
}
#endif

#ifdef FREEZE
inline take_back(taken)
{
#ifndef BUG_FREEZE_NO_TAKE_BACK
	atomic { drained -> taken = list_owns; list_owns = false }
#else
	skip
#endif
}

proctype freezer(byte me)
{
	bool moved, flag, done;
	byte old;

	store(FREEZING, 1);
#ifndef BUG_FREEZE_NO_BARRIER
	full_barrier();
#endif
#ifndef BUG_FREEZE_NO_UNPARK
	try_to_cancel(flag);
#endif
	/* wait_var_event() */
	do
	:: flag -> break
	:: !flag ->
		atomic { drained -> awake = false }
		take_back(flag);
		if
		:: flag -> break
		:: !flag
		fi;
		atomic {
			drained ->
			old = mem[DB];
#ifdef BUG_FREEZE_STEALS
			old = IDLE;
#endif
			mem[DB] = (old == IDLE -> OWNED : old)
		}
		if
		:: old == IDLE -> break
		:: old != IDLE -> awake
		fi
	od;
	atomic {
		awake = true;
		flag = false;
		assert(!executing && !list_owns && !mem[ARMED]);
		frozen = true
	}
	/* Whatever wants a queue pair that stands still. */
	atomic { assert(!executing && !list_owns && !mem[ARMED]); frozen = false }
	atomic { thawed = true; store(FREEZING, 0) }
#ifdef BUG_THAW_NO_LOOK
	xchg(DB, IDLE, old);
#else
	look();
	own(moved, flag, done);
#endif
	atomic { old = 0; freezer_gone = true }
}
#endif

#ifdef FAIL
/* By atomic operations alone. */
proctype failer()
{
	byte me = NOBODY;
	bool flag;
	byte old;

	failed = true;
	xchg(DB, RERUN, old);
	if
	:: old == IDLE -> hand_over(flag)
	:: old != IDLE
	fi;
#ifndef BUG_FAIL_NO_UNPARK
	unpark(flag);
#endif
	atomic { old = 0; failer_gone = true }
}
#endif

proctype judge()
{
	atomic {
		timeout ->
		assert(posters_gone == POSTERS);
#ifdef FREEZE
		assert(freezer_gone);
#endif
#ifdef FAIL
		assert(failer_gone);
#endif
		assert(executed[0] && executed[POSTERS - 1]);
		assert(mem[DB] == IDLE && !mem[ARMED] && !list_owns && !executing)
	}
}

init {
	atomic {
		run poster(0);
#if POSTERS > 1
		run poster(1);
#endif
#ifndef NO_RUN
		run runner(RUNNER);
#endif
#ifndef NO_FIRE
		run timer();
#endif
#ifdef FREEZE
		run freezer(FREEZER);
#endif
#ifdef FAIL
		run failer();
#endif
		run judge()
	}
}
