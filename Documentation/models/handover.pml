/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The runners of a lane whose done() sleeps: poll, displace, give back, rest, stop, wait.
 *
 * Run by scripts/models. One step is one atomic operation or one look at what others write,
 * over weak memory (memory.pml). What a CQ and its arming are made of is in cq.pml; here a
 * CQ is a number of completions, and arming it is one step.
 *
 *	here			code
 *	line_up()		ib_cq_enqueue() in cq/cq.h, the contexts' schedule()
 *	runner(), round on	ib_cq_work() in cq/context.c; ib_cq_run(), ib_cq_round()
 *				and ib_cq_poll_batch() in cq/lane.c
 *	runner(), aside on	ib_cq_end_displaced(), ib_cq_return_runner() in cq/handover.c
 *	runner(), pause on	ib_cq_pause()
 *	displace()		ib_cq_displace(); what follows it in watch(), ib_cq_replace_runner()
 *	watch(), look_at()	ib_cq_watch(), ib_cq_watch_on(), ib_cq_stuck_in()
 *	waiter(), freer()	ib_cq_forget_qp_in(), ib_cq_stop()
 *	state[c]		ib_cq.state
 *	woken, turn		ib_cq_lane.pending and .ready
 *	mem[ACTIVE], watched	ib_cq_lane.active, whether its timer is pending
 *	lane_runner, spare	ib_cq_lane.runner and .spare
 *	mem[NR(r)], displaced	ib_cq_runner.nr, of which the batch counts, its IB_CQ_DISPLACED
 *	mem[SW(r)], batch	ib_cq_runner.switches and .batch
 *	mem[CQ(r)]		ib_cq_runner.cq
 *	mem[AHEAD], array_used	ib_cq_lane.ahead_cq is set; somebody uses .ahead
 *	pending[r]		WORK_STRUCT_PENDING
 *	asleep[r], sleeps[r]	the state of its task, and its nvcsw
 *
 * The first done() of CQ 0 sleeps until all other CQs have had a done(), or are freed, as
 * one does that waits for that; with -DSHORT it sleeps for a moment and is awake when
 * the watch looks; with -DSTUCK the watch takes any batch for one that does not end, asleep or
 * not; with -DMOVED, a runner whose work item is queued for one that its CPU does not come to, once;
 * with -DPAUSED, one runner pauses between two rounds, maybe until all CQs have had a done().
 * With -DASIDE it steps aside by itself, and any other one
 * may; else there is a watch.
 *
 * Shown at every step:
 *   - completions of a CQ are handled, and a CQ is polled, by one runner at a time
 *   - only the lane's runner touches its turn; who displaces it takes out the right CQ
 *   - no runner is displaced for a sleep in an earlier batch (not with -DSTUCK)
 *   - a CQ is on one list at most; nobody touches one that was freed
 *   - there is a spare runner for whoever displaces one; a work item is queued once
 *   - who waits for the round to end finds handled what was polled before
 *   - what a runner has polled ahead stays its own until it has handed that out
 * and where nothing can go on (judge()):
 *   - nobody sleeps: so a done() that does let_go no other CQ
 *   - everybody came to the end; a CQ that is not freed is empty, armed and of state 0
 *   - the lane is at rest, the watch is off, and all runners but the lane's are spare
 *
 * -DCQS=n: CQs. -DFREE: the last one is freed when nothing is pushed any more. -DWAITER:
 * CQ 0 is waited for. -DNEVER_AHEAD: nothing is polled ahead. -DBUG_x takes away something that must be missed.
 */
#ifndef CQS
#define CQS		2
#endif
#ifndef PUSHES
#define PUSHES		1	/* to CQ 0; one to each of the others */
#endif
#define RUNNERS		(CQS + 1)
#define CPUS		RUNNERS

#define ACTIVE		0
#define NR(r)		(1 + (r))
#define CQ(r)		(1 + RUNNERS + (r))
#define SW(r)		(1 + 2 * RUNNERS + (r))
#define AHEAD		(1 + 3 * RUNNERS)
#define WORDS		(2 + 3 * RUNNERS)

#include "memory.pml"

#define QUEUED		1
#define BUSY		2
#define STOP		4
#define WAIT		8

#define LAST		(CQS - 1)

#define PAUSE		128	/* in mem[NR(r)], beside the batch */

/* The CQs. */
byte state[CQS];
byte there[CQS];	/* completions to be polled */
bool armed[CQS] = true;
bool let_go[CQS];
bool waited;		/* for the round of CQ 0 */
bool waiter_done;

/* The lane. */
chan woken = [CQS] of { byte };
chan turn = [CQS] of { byte };
chan spare = [RUNNERS] of { byte };
byte lane_runner;
bool watched;
bool lock;
bool moved;		/* once is enough */
bool paused;		/* likewise */

/* The runners. */
bool displaced[RUNNERS];
bool pending[RUNNERS];
bool asleep[RUNNERS];
byte sleeps[RUNNERS];

/* For the assertions. */
byte handled[CQS];
byte polled;		/* of CQ 0 */
bool handler[CQS];
bool freed[CQS];
bool listed[CQS];
byte wakers_gone;
bool array_used;
bool early;
bool slept[RUNNERS];	/* in this batch */

#define touch(c)	assert(!freed[c])

inline fetch_or(c, bits, old)
{
	atomic { drained -> touch(c); old = state[c]; state[c] = state[c] | (bits) }
}

inline fetch_andnot(c, bits, old)
{
	atomic { drained -> touch(c); old = state[c]; state[c] = state[c] & ~(bits) }
}

/* --- Wakers ---------------------------------------------------------------- */

inline start(r)
{
	assert(!pending[r]);
	pending[r] = true
}

inline line_up(c, old)
{
	atomic {
		drained ->
		touch(c);
		assert(!listed[c]);
		listed[c] = true;
		old = len(woken);
		woken ! c
	}
	if
	:: old == 0 -> xchg(ACTIVE, 1, old)
	:: else -> old = 1
	fi;
	if
	:: old == 0 -> start(lane_runner)
#if defined(ASIDE) || defined(BUG_NO_WATCH)
	:: else
#else
	:: else -> watched = true
#endif
	fi
}

proctype waker(byte c)
{
	byte me = NOBODY;
	byte n, old;

	n = (c -> 1 : PUSHES);
	do
	:: n ->
		/* The completion, and whether the CQ was armed. */
		atomic {
			touch(c);
			there[c]++;
			n--;
			old = armed[c];
			armed[c] = false
		}
		if
		:: old ->
			fetch_or(c, QUEUED, old);
			if
			:: old == 0 -> line_up(c, old)
			:: else
			fi
		:: else
		fi
	:: else -> break
	od;
	atomic { old = 0; wakers_gone++ }
}

#ifdef WAITER
proctype waiter()
{
	byte me = NOBODY;
	byte old, wanted;

	/* As the freer: it races with runners, not with wakers, which cq.pml shows. */
	atomic { wakers_gone == CQS -> wanted = polled; waited = true }
	fetch_or(0, QUEUED | WAIT, old);
	if
	:: old == 0 -> line_up(0, old)
	:: else
	fi;
	atomic { waiter_done -> assert(handled[0] >= wanted); wanted = 0; old = 0 }
}
#endif

#ifdef FREE
proctype freer()
{
	byte me = NOBODY;
	byte old;

	atomic { wakers_gone == CQS -> fetch_or(LAST, STOP, old) }
	atomic {
#ifdef BUG_FREE_NO_WAIT
		!(old & BUSY) || let_go[LAST] ->
#else
		!(old & (QUEUED | BUSY)) || let_go[LAST] ->
#endif
		freed[LAST] = true;
		old = 0
	}
}
#endif

/* --- Handing over ---------------------------------------------------------- */

inline lock_lane()	{ atomic { !lock -> lock = true } }

#ifdef PAUSED
#define is_pause(b)	((b) & PAUSE)
#ifdef BUG_PAUSE_KEEPS
#define may_displace(b)	((b) && !is_pause(b))
#else
#define may_displace(b)	((b) && len(spare))
#endif
#else
#define is_pause(b)	false
#define may_displace(b)	(b)
#endif

/* Another runner takes the place of r, unless batch or pause b has ended. */
inline displace(r, b, c)
{
	if
	:: atomic {
		drained && may_displace(b) && mem[NR(r)] == b ->
#ifndef STUCK
		assert(slept[r]);
#endif
		displaced[r] = true;
		c = mem[CQ(r)]
		}
		if
#ifdef BUG_KEEP_IN_TURN
		:: true
#else
#ifndef BUG_PAUSE_TAKES
		:: is_pause(b)
#endif
		:: atomic {
#ifndef BUG_PAUSE_TAKES
			!is_pause(b) ->
#endif
			assert(turn ? [eval(c)]);
			turn ?? eval(c);
			listed[c] = false
			}
#endif
		fi;
		atomic { assert(nempty(spare)); spare ? c; lane_runner = c }
		start(lane_runner)
	:: atomic { drained && !(may_displace(b) && mem[NR(r)] == b) }
	fi;
	atomic { lock = false; c = 0 }
}

#ifndef ASIDE
#ifdef STUCK
#define has_slept(r)	true
#elif defined(SHORT) && !defined(BUG_NO_SWITCHES)
#define has_slept(r)	(asleep[r] || sleeps[r] != mem[SW(r)])
#else
#define has_slept(r)	asleep[r]
#endif

/* May look a moment too early, once. A look that finds nothing to do changes nothing. */
#ifdef MOVED
#define to_be_moved	(pending[lane_runner] && !moved)
#else
#define to_be_moved	false
#endif
#define DUE	((has_slept(lane_runner) && may_displace(mem[NR(lane_runner)])) || to_be_moved || \
		 !mem[ACTIVE])
#define FIRES	(DUE || !early)

/* Sets b to the batch in which r sleeps or has slept, or 0. */
inline look_at(r, b, n)
{
	b = mem[NR(r)];
	if
#ifdef STUCK
	:: true
#else
	:: asleep[r]
	:: !asleep[r] ->
#if defined(SHORT) && !defined(BUG_NO_SWITCHES)
		n = sleeps[r];
		if
		:: n == mem[SW(r)] -> b = 0
		:: n != mem[SW(r)]
		fi
#else
		b = 0
#endif
#endif
	fi;
	n = 0
}

proctype watch()
{
	byte me = NOBODY;
	byte r, b, c;

end:
	atomic {
		watched && FIRES ->
		watched = false;
		early = early || !DUE
	}
#ifdef BUG_WATCH_LATE_LOOK
	if
	:: load(ACTIVE) -> goto look
	:: !load(ACTIVE)
	fi;
#endif
#ifndef BUG_WATCH_NO_LOOK
	if
	:: nempty(woken) -> goto look
	:: empty(woken)
	fi;
#endif
#ifdef BUG_WATCH_LATE_LOOK
	goto end;
#else
	if
	:: load(ACTIVE)
	:: !load(ACTIVE) -> goto end
	fi;
#endif
look:
	r = lane_runner;
	look_at(r, b, c);
	if
	:: b ->
		lock_lane();
		r = lane_runner;
		look_at(r, b, c);
		displace(r, b, c)
#ifdef MOVED
	:: !b ->
		lock_lane();
		atomic {
			if
			:: to_be_moved && len(spare) ->
				moved = true;
				pending[lane_runner] = false;
				spare ! lane_runner;
				spare ? c;
				lane_runner = c;
				start(c)
			:: else
			fi;
			lock = false;
			c = 0
		}
#else
	:: !b
#endif
	fi;
	atomic { r = 0; b = 0; watched = true; goto end }
}
#endif

/* --- A runner -------------------------------------------------------------- */

/* What only the lane's runner may do. */
#define own()		assert(lane_runner == me && !displaced[me])

inline to_tail(c)
{
	touch(c);
	assert(!listed[c]);
	listed[c] = true;
	turn ! c
}

inline off_list(c)
{
	turn ?? eval(c);
	listed[c] = false
}

#if CQS > 2
#define others_had_theirs	((handled[1] || freed[1]) && (handled[2] || freed[2]))
#else
#define others_had_theirs	(handled[1] || freed[1])
#endif

/* The batch is handed out. */
inline end_ahead(ahead)
{
	if
	:: atomic { ahead -> array_used = false; ahead = false }
		store_release(AHEAD, 0)
	:: !ahead
	fi
}

proctype runner(byte me)
{
	byte c, n, old, next, batch;
	bool ahead;

end:
	atomic { pending[me] -> pending[me] = false; own(); assert(mem[ACTIVE]) }
round:
	if
	:: atomic { nempty(woken) && drained ->
		own();
		do
		:: nempty(woken) -> woken ? c; turn ! c
		:: empty(woken) -> break
		od
		}
	:: empty(woken)
	fi;
	if
	:: atomic { nempty(turn) -> own(); turn ? <c>; touch(c); old = state[c] }
	:: atomic { empty(turn) -> goto idle }
	fi;
	if
	:: old != QUEUED ->
		fetch_andnot(c, WAIT, old);
		if
		:: atomic { old & STOP -> own(); off_list(c); let_go[c] = true; goto next_round }
		:: atomic { !(old & STOP) ->
			if
			:: c == 0 && waited -> waited = false; waiter_done = true
			:: else
			fi
			}
		fi
	:: else
	fi;

poll:
	/* It may be alone, or not. */
	if
#ifndef NEVER_AHEAD
	:: atomic { !load(AHEAD) -> own(); assert(!array_used); array_used = true; ahead = true }
#endif
	:: true
	fi;
	atomic {
		own();
		touch(c);
		assert(!handler[c]);
		n = there[c];
		there[c] = 0;
		polled = polled + (c -> 0 : n)
	}
	if
	:: atomic {
		n == 0 ->
		array_used = array_used && !ahead;
		ahead = false;
		goto arm
		}
	:: else
	fi;
	store(CQ(me), c);
#ifndef BUG_AHEAD_LATE
	if
	:: ahead -> store(AHEAD, 1)
	:: !ahead
	fi;
#endif
	atomic {
		slept[me] = false;
#ifdef BUG_NO_BATCH
		batch = 1
#else
		batch++
#endif
	}
#if defined(SHORT) && !defined(BUG_SWITCHES_LATE)
	store(SW(me), sleeps[me]);
#endif
#ifdef BUG_MARK_NO_RELEASE
	store(NR(me), batch);
#else
	store_release(NR(me), batch);
#endif
#ifdef BUG_SWITCHES_LATE
	store(SW(me), sleeps[me]);
#endif
#ifdef BUG_AHEAD_LATE
	if
	:: ahead -> store(AHEAD, 1)
	:: !ahead
	fi;
#endif

	/* done() */
	atomic { touch(c); assert(!handler[c]); handler[c] = true }
	if
#ifdef ASIDE
	:: lock_lane(); slept[me] = true; displace(me, batch, next)
	:: c || handled[0]
#else
	:: atomic { c == 0 && !handled[0] -> asleep[me] = true; slept[me] = true }
#ifdef SHORT
		atomic { asleep[me] = false; sleeps[me]++ }
#endif
	:: c || handled[0]
#endif
	fi;
	if
	:: c == 0 && !handled[0] -> others_had_theirs
	:: else
	fi;
	atomic {
		asleep[me] = false;
		touch(c);
		handler[c] = false;
		handled[c] = handled[c] + n;
		n = 0
	}

#ifdef BUG_CLEAR_STORED
	atomic { drained -> old = displaced[me] }
	atomic { mem[NR(me)] = 0 }
#else
	atomic {
		drained ->
		old = displaced[me];
		mem[NR(me)] = 0
	}
#endif
	end_ahead(ahead);
	if
	:: old -> goto aside
	:: else
	fi;
	if
	:: goto poll
	:: atomic { own(); off_list(c); to_tail(c); goto next_round }
	fi;

arm:
	atomic {
		drained ->
		own();
		touch(c);
		off_list(c);
		if
		:: state[c] == QUEUED -> state[c] = BUSY
		:: else -> to_tail(c); goto next_round
		fi
	}
	/* Unless that finds completions that were missed. */
	atomic {
		drained ->
		touch(c);
		armed[c] = !there[c];
		state[c] = state[c] | (there[c] -> QUEUED : 0)
	}
	atomic {
		fetch_andnot(c, BUSY, old);
		own();
		if
		:: old & STOP -> let_go[c] = true
		:: !(old & STOP) && (old & QUEUED) -> to_tail(c)
		:: else
		fi
	}

next_round:
	atomic { c = 0; n = 0; old = 0 }
	if
	:: goto round
#ifdef PAUSED
	:: atomic { !paused -> paused = true; goto pause }
#endif
	:: atomic { nempty(turn) || nempty(woken) ->
		/* Budget or time is spent. */
		own();
		start(me);
		goto end
		}
	fi;

#ifdef PAUSED
pause:
	batch++;
	store_release(NR(me), batch | PAUSE);
	if
	:: true -> handled[0] && others_had_theirs
	:: true
	fi;
	atomic {
		drained ->
		old = displaced[me];
		mem[NR(me)] = 0
	}
	if
	:: old
#ifdef BUG_PAUSE_GOES_ON
		-> goto round
#endif
	:: !old -> goto round
	fi;
	atomic { !lock -> displaced[me] = false; spare ! me }
	atomic { old = 0; goto end }
#endif

aside:
#ifdef BUG_SPARE_LATE
	line_up(c, old);
	atomic { !lock -> displaced[me] = false; spare ! me }
#else
	atomic { !lock -> displaced[me] = false; spare ! me }
#ifdef BUG_BACK_NO_KICK
	atomic { touch(c); listed[c] = true; woken ! c }
#else
	line_up(c, old);
#endif
#endif
	atomic { c = 0; old = 0; goto end }

idle:
	own();
	store_release(ACTIVE, 0);
	full_barrier();
	if
	:: nempty(woken) -> xchg(ACTIVE, 1, old)
	:: empty(woken) -> old = 1
	fi;
	if
#ifndef BUG_STALE_RUNNER
	/* It was replaced, since the lane was scheduled again. */
	:: atomic { old == 0 && lane_runner != me -> c = 0; start(lane_runner); goto end }
	:: atomic { old == 0 && lane_runner == me -> c = 0; goto round }
#else
	:: atomic { old == 0 -> c = 0; goto round }
#endif
	:: atomic { old -> c = 0; old = 0; goto end }
	fi
}

/* --- What must hold in the end --------------------------------------------- */

#ifdef FREE
#define is_freed(c)	((c) == LAST)
#else
#define is_freed(c)	false
#endif

proctype judge()
{
	byte c;

	atomic {
		timeout ->
		do
		:: c < RUNNERS -> assert(!asleep[c] && !pending[c] && !displaced[c]); c++
		:: c == RUNNERS -> c = 0; break
		od;
		assert(wakers_gone == CQS);
#ifdef WAITER
		assert(waiter_done);
#endif
		assert(empty(woken) && empty(turn) && !mem[ACTIVE]);
		assert(len(spare) == RUNNERS - 1);
		assert(!watched);
		assert(!mem[AHEAD] && !array_used);
		do
		:: c < CQS && is_freed(c) -> assert(freed[c]); c++
		:: c < CQS && !is_freed(c) ->
			assert(state[c] == 0 && armed[c] && !there[c]);
			assert(handled[c] == (c -> 1 : PUSHES));
			c++
		:: c == CQS -> break
		od
	}
}

init {
	byte r;

	atomic {
		r = 1;
		do
		:: r < RUNNERS -> spare ! r; r++
		:: r == RUNNERS -> r = 0; break
		od;
		run runner(0);
		run runner(1);
		run runner(2);
#if CQS > 2
		run runner(3);
#endif
		run waker(0);
		run waker(1);
#if CQS > 2
		run waker(2);
#endif
#ifndef ASIDE
		run watch();
#endif
#ifdef WAITER
		run waiter();
#endif
#ifdef FREE
		run freer();
#endif
		run judge()
	}
}
