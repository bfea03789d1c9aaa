/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The scheduler of completion queues: push, arm, notify, poll, rest, flush, free.
 *
 * Run by scripts/models. One step is one atomic operation or one look at what
 * others write, over weak memory (memory.pml), with CQs as in ring.pml.
 *
 *	here			code
 *	put_up(), kick()	ib_cq_schedule() in cq/lane.c, ib_cq_enqueue(),
 *				the contexts' schedule()
 *	runner(), round on	ib_cq_lane_run(), ib_cq_round()
 *	rest[c]			what is polled ahead and not handed out: ib_cq_lane.ahead
 *	runner(), idle on	ib_cq_lane_idle(), and after it what is in
 *				cq/context.c and cq/thread.c
 *	attend(), arm()		ib_cq_attend(), ib_cq_arm()
 *	waiter()		ib_cq_flush(), ib_cq_waiter_add() in cq/wait.c
 *	progress_of_flush()	ib_cq_flush_progress()
 *	freer()			ib_cq_stop()
 *	state[c]		ib_cq.state
 *	woken, turn		ib_cq_lane.pending and .ready
 *	mem[ACTIVE]		ib_cq_lane.active
 *	mem[ASLEEP], runnable	ib_cq_thread.asleep, the task state of the thread
 *	mem[SCHED], on_cpu	IRQ_POLL_F_SCHED, and on which CPU's list it is
 *	pending			WORK_STRUCT_PENDING
 *
 * Budget, time and share are choices: they may be spent after any batch. So this
 * holds for whatever they are; that the shares are fair is not shown. Likewise, any
 * batch may be cut short after its first completion, as one that is polled ahead is when
 * a neighbour comes; a single CQ has such a rest at a time. Softirqs
 * and preemption are other processes, which may run between any two steps.
 *
 * Not modelled: notification from NMI, hotplug, spinning before sleep (which only
 * looks), a done() that calls back, lanes that go away. A done() that sleeps in a work
 * queue is in handover.pml, IB_POLL_DIRECT in direct.pml.
 *
 * Shown at every step:
 *   - a lane runs, and completions of a CQ are handled, once at a time
 *   - a CQ is on one list at most
 *   - a kick is never lost in a context that is not ready for it
 *   - nobody touches a CQ that was freed; a waiter is completed once
 *   - a flush returns after what was pushed before it was handled
 * and where nothing can go on (judge()):
 *   - everybody came to the end; besides, no run goes on for ever (pan -l)
 *   - a CQ that is not freed is empty, armed and of state 0, its lane at rest
 *   - requests for a notification = missed + notifications + still armed
 *
 * -DSOFTIRQ, -DWORKQUEUE or -DTHREAD: the context. -DCQS=2: two CQs in the lane.
 * -DWAITERS=n: CQ 0 is flushed, with 2 also waited for. -DFREE: CQ 0 is freed when
 * nothing is pushed any more, be it empty or not. -DBUG_x takes away something
 * that must be missed.
 */
#ifndef CQS
#define CQS		1
#endif
#ifndef WAITERS
#define WAITERS		0
#endif
#ifndef PRODUCERS
#define PRODUCERS	2
#endif

#ifdef SOFTIRQ
#define RUNNERS		2	/* CPUs that may run the softirq */
#else
#define RUNNERS		1
#endif

#define CPUS		(PRODUCERS + RUNNERS)

#define MORE_WORDS	3
#define ACTIVE		CQ_WORDS
#define SCHED		(CQ_WORDS + 1)
#define ASLEEP		(CQ_WORDS + 2)

#include "ring.pml"

#define QUEUED		1
#ifdef BUG_NO_BUSY
#define BUSY		0
#else
#define BUSY		2
#endif
#define STOP		4
#define WAIT		8

/* The CQs. Waiters are masks. */
byte waiters[CQS];
byte flushing[CQS];
bool stopped[CQS];

/* The waiters, of CQ 0: completions still to handle; completion. */
byte lacking[WAITERS + 1];
bool done[WAITERS + 1];

/* The lane. Reversing the llist gives the order in which CQs came. */
chan woken = [CQS] of { byte };
chan turn = [CQS] of { byte };

/* Polled, and left for a later round. */
byte rest[CQS];
#define any_rest	(rest[0] || rest[CQS - 1])

/* What runs it. */
bool pending;
bool on_cpu[RUNNERS];
bool runnable = true;

/* For the assertions. */
bool running;
bool listed[CQS];
byte waiters_gone;

/* --- Wakers ---------------------------------------------------------------- */

/* Called on the CPU of runner number `cpu`, if there are several. */
inline kick(cpu)
{
#if defined(SOFTIRQ)
	atomic {
		drained ->
		if
		:: !mem[SCHED] -> mem[SCHED] = 1; on_cpu[cpu] = true
		:: else
		fi
	}
#elif defined(WORKQUEUE)
	atomic { drained -> assert(!pending); pending = true }
#else
	if
	:: load(ASLEEP) -> runnable = true
	:: !load(ASLEEP)
	fi
#endif
}

inline put_up(c, reason, old, cpu)
{
	fetch_or(c, reason, old);
	if
#ifdef BUG_WAKE_BUSY
	:: !(old & QUEUED) ->
#else
	:: old == 0 ->
#endif
		atomic {
			drained ->
			touch(c);
			assert(!listed[c]);
			listed[c] = true;
			old = len(woken);
			woken ! c
		}
		if
		:: old == 0 ->
			xchg(ACTIVE, 1, old);
			if
			:: old == 0 -> kick(cpu)
			:: else
			fi
		:: else
		fi
	:: else
	fi
}

inline notify(c, old)
{
	put_up(c, QUEUED, old, me)
}

proctype producer(byte me)
{
	byte n, c, pos, old;

	do
	:: n < PUSHES ->
		atomic { c = (me + n) % CQS; reserve(c, pos) }
		publish(c, pos, old);
		atomic { n++; c = 0; pos = 0; old = 0 }
	:: else -> break
	od;
	atomic { drained -> n = 0; producers_gone++ }
}

/* Number 0 flushes CQ 0. Number 1 waits for the round to end, as does who destroys
 * a queue pair.
 */
proctype waiter(byte w)
{
	byte me = NOBODY;
	byte old, wanted;

	d_step {
		if
		:: w == 0 ->
			/* Up to the last that is published. */
			wanted = TOTAL;
			do
			:: wanted && !mem[SEQ(0, wanted - 1)] -> wanted--
			:: else -> break
			od;
#ifdef BUG_FLUSH_SHORT
			lacking[w] = CQE - 1
#else
			lacking[w] = CQE
#endif
		:: else ->
			/* All that done() was called for. */
			wanted = tail[0]
		fi;
		waiters[0] = waiters[0] | (1 << w)
	}
	put_up(0, QUEUED | WAIT, old, RUNNERS - 1);
	atomic {
		done[w] ->
		assert(handled[0] >= wanted);
		wanted = 0;
		old = 0;
		waiters_gone++
	}
}

/* Nothing is pushed any more, and nobody waits. */
proctype freer()
{
	byte me = NOBODY;
	byte old;

	atomic {
		producers_gone == PRODUCERS && waiters_gone == WAITERS ->
		fetch_or(0, STOP, old)
	}
	atomic {
#ifdef BUG_FREE_NO_WAIT
		!(old & QUEUED) || stopped[0] ->
#else
		!(old & (QUEUED | BUSY)) || stopped[0] ->
#endif
		freed[0] = true
	}
}

/* --- The runner ------------------------------------------------------------ */

/* turn is the runner's own: changes of it go with the step before. */
inline to_tail(c)
{
	touch(c);
	assert(!listed[c]);
	listed[c] = true;
	turn ! c
}

inline off_list(c)
{
	touch(c);
	turn ?? eval(c);
	listed[c] = false
}

inline release(c, w)
{
	if
	:: flushing[c] & (1 << w) ->
		assert(!done[w]);
		flushing[c] = flushing[c] & ~(1 << w);
		done[w] = true
	:: else
	fi
}

/* Waiter w sees n completions handled. */
inline count(c, w, n)
{
	if
	:: flushing[c] & (1 << w) -> lacking[w] = (lacking[w] > n -> lacking[w] - n : 0)
	:: else
	fi
}

/* All is emptied, or has been handled: the waiters may be gone from here on. */
inline release_those(c, emptied)
{
#if WAITERS > 0
	if
	:: emptied || lacking[0] == 0 -> release(c, 0)
	:: else
	fi;
#endif
#if WAITERS > 1
	if
	:: emptied || lacking[1] == 0 -> release(c, 1)
	:: else
	fi;
#endif
	skip
}

/* Somebody waits for the CQ, or frees it. Leaves its state before that in old. */
inline attend(c, old)
{
#ifdef BUG_WAIT_LATE
	atomic { drained -> flushing[c] = flushing[c] | waiters[c]; waiters[c] = 0 }
	fetch_andnot(c, WAIT, old);
#else
	fetch_andnot(c, WAIT, old);
	if
	:: atomic {
		!(old & STOP) && drained ->
		flushing[c] = flushing[c] | waiters[c];
		waiters[c] = 0;
#ifdef BUG_FLUSH_EARLY
		release_those(c, true)
#else
		release_those(c, false)
#endif
		}
	:: old & STOP
	fi
#endif
}

inline progress_of_flush(c, emptied)
{
	if
	:: flushing[c] ->
#ifdef BUG_FLUSH_NO_PEEK
		atomic { touch(c); release_those(c, emptied) }
#else
		/* An entry may be published behind one that is being written. */
		atomic { touch(c); release_those(c, (emptied && head[c] == tail[c])) }
#endif
	:: else
	fi
}

/* From QUEUED to BUSY. Leaves QUEUED in old; or something else, and nothing done. */
inline make_busy(c, old)
{
	touch(c);
	old = state[c];
	if
#ifdef BUG_ARM_WAITED
	:: !(old & STOP) -> state[c] = (old & ~QUEUED) | BUSY; old = QUEUED
#else
	:: old == QUEUED -> state[c] = BUSY
#endif
	:: else
	fi
}

#if defined(BUG_FORGET_QUEUED)
#define WHEN_QUEUED(old)	false
#elif defined(BUG_STOP_AND_TAIL)
#define WHEN_QUEUED(old)	true
#else
#define WHEN_QUEUED(old)	!((old) & STOP)
#endif

/* Missed: from BUSY to QUEUED, and to the end. Leaves something else than BUSY in old, and
 * nothing done, if a waker was faster or somebody frees the CQ.
 */
inline stay_ready(c, old)
{
	atomic {
		drained ->
		touch(c);
		old = state[c];
		if
		:: old == BUSY ->
			state[c] = QUEUED;
			off_list(c);
			to_tail(c)
		:: else
		fi
	}
}

inline not_busy(c, old)
{
	fetch_andnot(c, BUSY, old);
	if
	:: old & STOP -> stopped[c] = true
	:: else
	fi
}

/* Out of line before it is not BUSY any more: from then on it may be put up, or freed. */
inline leave_line(c, old)
{
#ifdef BUG_LEAVE_LATE
	not_busy(c, old);
	atomic {
		off_list(c);
#else
	off_list(c);
	atomic {
		not_busy(c, old);
#endif
		if
		:: (old & QUEUED) && WHEN_QUEUED(old) -> to_tail(c)
		:: else
		fi
	}
}

/* The CQ was found empty, and is the first in turn. */
inline arm(c, old, missed)
{
	if
	:: atomic { flushing[c] ->
		/* Goes round until the entry is published. */
		off_list(c);
		to_tail(c)
		}
progress_hole:
		skip
	:: atomic { !flushing[c] && drained ->
		make_busy(c, old);
		if
		:: old != QUEUED -> off_list(c); to_tail(c)
		:: else
		fi
		}
		if
		:: old == QUEUED ->
			req_notify(c, old, missed);
			if
			:: missed ->
				stay_ready(c, old);
				if
				:: old == BUSY -> goto next
				:: else -> fetch_or(c, QUEUED, old)
				fi
			:: else
			fi;
			leave_line(c, old)
		:: else
		fi
	fi
}

/* As it would be without BUSY, in this order. */
inline arm_queued(c, old, missed)
{
	req_notify(c, old, missed);
	if
	:: missed
	:: else ->
		atomic {
			fetch_andnot(c, QUEUED, old);
			off_list(c);
			if
			:: old & STOP -> stopped[c] = true
			:: !(old & STOP) && (old & WAIT) -> to_tail(c)
			:: else
			fi
		}
	fi
}

inline start()
{
	assert(load(ACTIVE));
	assert(!running);
	running = true
}

proctype runner(byte me)
{
	byte c, n, old, missed;
	bool emptied;

#ifdef THREAD
	goto sleep;
#endif

end:
	/* Kicked, or to go on. */
#if defined(SOFTIRQ)
	atomic { on_cpu[me - PRODUCERS] -> start() }
#elif defined(WORKQUEUE)
	atomic { pending -> pending = false; start() }
#else
	start();
#endif

round:
	if
	:: atomic { nempty(woken) && drained ->
		do
		:: nempty(woken) -> woken ? c; turn ! c
		:: empty(woken) -> break
		od
		}
	:: empty(woken)
	fi;
	if
	:: atomic { nempty(turn) -> turn ? <c>; touch(c); old = state[c] }
	:: atomic { empty(turn) -> running = false; goto idle }
	fi;
	if
#ifdef BUG_ATTEND_AHEAD
	:: old != QUEUED ->
#else
	:: old != QUEUED && !rest[c] ->
#endif
		attend(c, old);
		if
		:: atomic { old & STOP -> off_list(c); stopped[c] = true; goto next }
		:: else
		fi
	:: else
	fi;

poll:
	if
	:: atomic {
		rest[c] ->
		touch(c);
		assert(!handler[c]);
		handler[c] = true;
		n = rest[c];
		rest[c] = 0;
		goto hand_out
		}
	:: !rest[c]
	fi;
	do
	:: atomic { n < BATCH && load(SEQ(c, tail[c] + n)) -> touch(c); n++ }
	:: atomic { n < BATCH && !load(SEQ(c, tail[c] + n)) -> touch(c); emptied = true; break }
	:: n == BATCH -> break
	od;
	if
	:: n ->
		atomic {
			drained ->
			touch(c);
			tail[c] = tail[c] + n;
			assert(!handler[c]);
			handler[c] = true
		}
hand_out:
		atomic {
			touch(c);
			if
			:: n > 1 && !any_rest ->
				rest[c] = n - 1;
				n = 1;
				emptied = false
			:: true
			fi;
			handler[c] = false;
			handled[c] = handled[c] + n;
#if WAITERS > 0
			count(c, 0, n);
#endif
#if WAITERS > 1
			count(c, 1, n);
#endif
			n = 0
		}
	:: else
	fi;
	if
	:: emptied ->
		progress_of_flush(c, true);
#ifdef BUG_ARM_QUEUED
		arm_queued(c, old, missed)
#else
		arm(c, old, missed)
#endif
	:: !emptied -> goto poll
	:: !emptied ->
		/* Its share is spent. */
		progress_of_flush(c, false);
		atomic { off_list(c); to_tail(c) }
	:: !emptied ->
		/* The budget is. */
		progress_of_flush(c, false)
	fi;

next:
	atomic { c = 0; n = 0; old = 0; missed = 0; emptied = false }
	if
	:: goto round
#ifndef THREAD
	:: nempty(turn) || nempty(woken) ->
		/* Budget or time is spent. */
		running = false;
#if defined(BUG_FORGET_AGAIN)
		goto idle
#elif defined(WORKQUEUE)
		kick(0);
		goto end
#else
		goto end	/* it stays where it is */
#endif
#endif
	fi;

idle:
#if defined(SOFTIRQ) && !defined(BUG_REST_FIRST)
	/* irq_poll_complete() */
	atomic { on_cpu[me - PRODUCERS] = false; store(SCHED, 0) }
#endif

	/* Rest. */
#ifdef BUG_REST_NO_RELEASE
	store(ACTIVE, 0);
#else
	store_release(ACTIVE, 0);
#endif
#ifndef BUG_REST_NO_BARRIER
	full_barrier();
#endif
#ifdef BUG_REST_NO_LOOK
	old = 1;
#else
	if
	:: nempty(woken) -> xchg(ACTIVE, 1, old)
	:: empty(woken) -> old = 1
	fi;
#endif
#if defined(SOFTIRQ) && defined(BUG_REST_FIRST)
	atomic { on_cpu[me - PRODUCERS] = false; store(SCHED, 0) }
#endif
	if
	:: old == 0 ->
		/* Not at rest. */
#if defined(SOFTIRQ)
		kick(me - PRODUCERS);
		goto end
#elif defined(WORKQUEUE)
		start();
		goto round
#endif
	:: else -> old = 0
	fi;

#ifdef THREAD
sleep:
	load_own(ACTIVE, old);
	if
	:: old -> old = 0; goto end
	:: else
	fi;
	store(ASLEEP, 1);
	do
	#ifdef BUG_SLEEP_NO_BARRIER
	:: runnable = false;
#else
	:: atomic { drained -> runnable = false }
#endif
#ifndef BUG_SLEEP_NO_LOOK
		load_own(ACTIVE, old);
		if
		:: old -> break
		:: else
		fi;
#endif
end_schedule:
		runnable
#ifdef BUG_SLEEP_NO_LOOK
		-> break
#endif
	od;
	atomic { old = 0; runnable = true; store(ASLEEP, 0) }
#endif
	goto end
}

/* --- What must hold in the end --------------------------------------------- */

#ifdef FREE
#define is_freed(c)	((c) == 0)
#else
#define is_freed(c)	false
#endif

proctype judge()
{
	byte c;

	atomic {
		timeout ->
		assert(producers_gone == PRODUCERS);
		assert(waiters_gone == WAITERS);
		assert(empty(woken) && empty(turn));
		assert(!running && !pending && !mem[ACTIVE] && !mem[SCHED]);
		do
		:: c < CQS && is_freed(c) -> assert(freed[c]); c++
		:: c < CQS && !is_freed(c) ->
			assert(state[c] == 0);
			assert(mem[ARM(c)]);
			assert(tail[c] == head[c] && handled[c] == head[c]);
			assert(requests_add_up(c));
			assert(!rest[c]);
			c++
		:: c == CQS -> break
		od
	}
}

init {
	atomic {
		create_cq(0, 1);
#if CQS > 1
		create_cq(1, 1);
#endif
		run producer(0);
#if PRODUCERS > 1
		run producer(1);
#endif
		run runner(PRODUCERS);
#if RUNNERS > 1
		run runner(PRODUCERS + 1);
#endif
#if WAITERS > 0
		run waiter(0);
#endif
#if WAITERS > 1
		run waiter(1);
#endif
#ifdef FREE
		run freer();
#endif
		run judge()
	}
}
