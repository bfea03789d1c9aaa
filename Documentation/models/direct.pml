/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * IB_POLL_DIRECT: consumers that poll when they like, drain, free.
 *
 * Run by scripts/models. One step is one atomic operation or one look at what
 * others write, over weak memory (memory.pml), with the CQ as in ring.pml.
 *
 *	here			code
 *	notify()		ib_cq_wake()
 *	claim(), release()	ib_cq_direct_claim(), ib_cq_direct_release()
 *	poll()			ib_cq_direct_poll()
 *	consumer()		ib_process_cq_direct() with a budget of 1
 *	drainer()		ib_cq_wait_done()
 *	freer()			ib_cq_stop()
 *	prepare_to_wait(),	wait_var_event(), wake_up_var(); awake[me] stands
 *	awake[me], wake_up()	for the task state; the look before preparing, which
 *				only saves time, is left out
 *	done[me]		the completion that a done() of the CQ completes
 *
 * What a producer pushes last is what the drainer of its number waits for. The
 * freer comes when all others are gone.
 *
 * Shown at every step: completions are handled, once at a time; nobody touches the
 * CQ after it was freed. And where nothing can go on, everybody came to the end:
 * so no drainer sleeps that should not. No run goes on for ever (pan -l).
 *
 * -DDRAINERS, 1 or 2; -DPOLLS, of the consumer; -DBUG_x takes away something that
 * must be missed.
 */
#define CQS		1
#define PRODUCERS	2
#ifndef DRAINERS
#define DRAINERS	2
#endif
#ifndef POLLS
#define POLLS		1	/* of the consumer */
#endif
#define BATCH		1
#define CPUS		PRODUCERS
#define MORE_WORDS	0

#include "ring.pml"

#define BUSY		2
#define WAIT		8
#define NOTIFIED	16

#define FREER		DRAINERS
#define SLEEPERS	(DRAINERS + 1)

byte last[PRODUCERS];	/* position behind what the drainer waits for */
bool done[PRODUCERS];
bool awake[SLEEPERS] = true;
byte consumers_gone;
byte drainers_gone;

/* The driver looks at nothing that the CQ holds. */
inline wake_up()
{
	d_step {
		awake[0] = true;
#if DRAINERS > 1
		awake[1] = true;
#endif
		awake[FREER] = true
	}
}

inline notify(c, old)
{
	fetch_or(c, NOTIFIED, old);
	if
	:: old & WAIT -> wake_up()
	:: else
	fi
}

proctype producer(byte me)
{
	byte n, pos, old;

	do
	:: n < PUSHES ->
		atomic {
			reserve(0, pos);
			if
			:: n == PUSHES - 1 -> last[me] = pos + 1
			:: else
			fi
		}
		publish(0, pos, old);
		atomic { n++; pos = 0; old = 0 }
	:: else -> break
	od;
	atomic { drained -> n = 0; producers_gone++ }
}

#define try_claim(bits, old)	fetch_or(0, BUSY | bits, old)

inline release(old)
{
	fetch_andnot(0, BUSY | WAIT, old);
#ifndef BUG_RELEASE_NO_WAKE
	if
	:: old & WAIT -> wake_up()
	:: else
	fi
#endif
}

/* Sleeps until it has the CQ. */
inline claim(who, old)
{
#ifdef BUG_NO_CLAIM
	skip;
#else
	do
	:: atomic { awake[who] = false; try_claim(WAIT, old) }
		if
		:: !(old & BUSY) -> break
		:: else -> awake[who]
		fi
	od;
#endif
	atomic { awake[who] = true; old = 0 }
}

/* Until it is empty, or the budget is spent. */
inline poll(budget, n)
{
	n = 0;
	do
	:: n < budget ->
		if
		:: atomic { load(SEQ(0, tail[0])) ->
			touch(0);
			assert(!handler[0]);
			handler[0] = true;
			tail[0]++
			}
			atomic {
				touch(0);
				handler[0] = false;
				handled[0]++;
				done[0] = done[0] || handled[0] == last[0];
				done[1] = done[1] || handled[0] == last[1];
				n++
			}
		:: atomic { !load(SEQ(0, tail[0])) -> touch(0) }
			break
		fi
	:: n == budget -> break
	od
}

/* Polls now and then. */
proctype consumer()
{
	byte me = NOBODY;
	byte i, n, old;

	do
	:: i < POLLS ->
		try_claim(0, old);
		if
		:: !(old & BUSY) -> poll(1, n); release(old)
		:: else
		fi;
		atomic { n = 0; old = 0; i++ }
	:: i == POLLS -> break
	od;
	atomic { i = 0; consumers_gone++ }
}

/* Sleeps until there is news: the CQ was notified, or all is done. */
inline wait_for_news(who, old)
{
	do
	:: atomic {
		awake[who] = false;
#ifdef BUG_NEWS_NO_WAIT
		old = state[0]
#else
		/* WAIT is set before the look at what it says. */
		fetch_or(0, WAIT, old)
#endif
		}
		if
		:: old & NOTIFIED -> break
		:: else
		fi;
		if
		:: done[who] -> break
		:: !done[who]
		fi;
		awake[who]
	od;
	atomic { awake[who] = true; old = 0 }
}

proctype drainer(byte who)
{
	byte me = NOBODY;
	byte old, n, missed;

	fetch_or(0, NOTIFIED, old);
	do
	:: wait_for_news(who, old);
		claim(who, old);
#ifndef BUG_CLEAR_LATE
		fetch_andnot(0, NOTIFIED, old);
#endif
		poll(CQE, n);
		req_notify(0, old, missed);
#ifdef BUG_CLEAR_LATE
		fetch_andnot(0, NOTIFIED, old);
#endif
#ifndef BUG_KEEP_MISSED
		/* Another drainer may have to see to it. */
		if
		:: missed -> fetch_or(0, NOTIFIED, old)
		:: else
		fi;
#endif
		release(old);
		if
		:: atomic { done[who] -> n = 0; old = 0; missed = 0; break }
#ifdef BUG_KEEP_MISSED
		:: atomic { !done[who] && missed -> fetch_or(0, NOTIFIED, old); missed = 0 }
#endif
		:: atomic { !done[who] -> n = 0; old = 0; missed = 0 }
		fi
	od;
	drainers_gone++
}

/* Nobody uses the CQ any more. */
proctype freer()
{
	byte me = NOBODY;
	byte old;

	producers_gone == PRODUCERS && drainers_gone == DRAINERS && consumers_gone == 1;
	claim(FREER, old);
	freed[0] = true
}

proctype judge()
{
	atomic {
		timeout ->
		assert(freed[0]);
		assert(!handler[0]);
		assert(tail[0] == handled[0]);
		assert(requests_add_up(0))
	}
}

init {
	atomic {
		create_cq(0, 0);
		run producer(0);
		run producer(1);
		run consumer();
		run drainer(0);
#if DRAINERS > 1
		run drainer(1);
#endif
		run freer();
		run judge()
	}
}
