/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Internals of the completion queue layer, and what it offers to the core.
 *
 *   lane	the CQs of a completion vector and polling context, polled by one runner
 *   runner	polls a lane; in a work queue, another one may displace it (handover.c)
 *   pending	CQs that were scheduled, and that the runner has not seen yet
 *   ready	CQs that the runner polls, one round each, in this order
 *   schedule	a CQ: make it pending; a lane: make its context run it
 *   idle	a lane without pending and ready CQs, which need not run
 */
#ifndef KVERBS_CQ_H
#define KVERBS_CQ_H

#include <linux/hrtimer.h>
#include <linux/irq_poll.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

/* Completions polled at a time, while other CQs wait; and from a CQ that is alone. */
#define IB_CQ_BATCH		16
#define IB_CQ_AHEAD		64

/* A CQ's share at weight 1: completions in its round while others wait. */
#define IB_CQ_SHARE		16

#define IB_CQ_WEIGHT_MAX	64

/* Completions that a run in softirq may handle: as many as irq_poll allows a poller. */
#define IB_CQ_SOFTIRQ_BUDGET	256

/* The polling contexts, for arrays. */
#define IB_CQ_CONTEXTS		(IB_POLL_THREAD + 1)

/*
 * ib_cq.state, see lane.c.
 */
#define IB_CQ_QUEUED	BIT(0)	/* scheduled, or being polled */
#define IB_CQ_BUSY	BIT(1)	/* being armed; IB_POLL_DIRECT: being polled */
#define IB_CQ_STOP	BIT(2)	/* being freed */
#define IB_CQ_WAIT	BIT(3)	/* a thread waits for it */
#define IB_CQ_NOTIFIED	BIT(4)	/* IB_POLL_DIRECT: a completion came */

/* ib_cq_runner.nr: number of completions in the batch, in bits 0 to 6, or IB_CQ_PAUSE; and */
#define IB_CQ_PAUSE	BIT(7)	/* the runner pauses between two rounds */
#define IB_CQ_DISPLACED	BIT(8)	/* another runner has taken its place */
#define IB_CQ_BATCH_ID	BIT(9)	/* from here on: tells this batch or pause from earlier ones */

struct ib_cq_lane;
struct ib_cq_runner;
struct ib_ref_source;
struct seq_file;

/**
 * struct ib_cq_context - where the CQs of a lane are polled
 * @name: name in debugfs and messages
 * @may_sleep: whether done() may sleep
 * @waiting: for each CPU, how many lanes were scheduled there and do not run yet, if each waits
 *	until the one before has run; else NULL
 * @init: sets up what runs the lane. Returns 0 or -errno. NULL: nothing runs it
 * @schedule: makes the context call ib_cq_lane_run() soon, until that returns
 *	IB_CQ_RAN_EMPTY, and then ib_cq_lane_idle(), and start over if the latter returns false.
 *	Called once each time that an idle lane gets work. Any context but NMI.
 * @start: makes the context call ib_cq_runner_run() for a spare runner soon; on the given CPU if
 *	the context is bound to CPUs. Any context but NMI. NULL if runners cannot be displaced,
 *	see handover.c
 * @move: makes the context run a lane on another CPU, if it was scheduled and does not run.
 *	Returns false if that is not possible, or it runs by now. Hard interrupt, with
 *	lane->lock held. NULL unless the lane runs on the CPU where it was scheduled
 * @exit: undoes @init; the lane is idle and serves no CQ
 */
struct ib_cq_context {
	const char *name;
	bool may_sleep;
	atomic_t __percpu *waiting;
	int (*init)(struct ib_cq_lane *lane);
	void (*schedule)(struct ib_cq_lane *lane);
	void (*start)(struct ib_cq_runner *runner, int cpu);
	bool (*move)(struct ib_cq_lane *lane, int cpu);
	void (*exit)(struct ib_cq_lane *lane);
};

/* How a run of a lane ended. */
enum ib_cq_ran {
	IB_CQ_RAN_EMPTY,	/* no CQ is ready */
	IB_CQ_RAN_SPENT,	/* its budget or time is spent, and there is more to do */
	IB_CQ_RAN_YIELD,	/* likewise, but other lanes wait for this CPU */
	IB_CQ_RAN_DISPLACED,	/* the runner was displaced, and is a spare one again */
};

/**
 * struct ib_cq_thread - what runs a lane of IB_POLL_THREAD, see thread.c
 * @task: the thread
 * @cpu: where it is meant to run now
 * @asleep: it sleeps, or is about to: schedule() must wake it
 * @gap: mean time that the lane is idle, in nanoseconds
 */
struct ib_cq_thread {
	struct task_struct *task;
	int cpu;
	bool asleep;
	u64 gap;
};

/**
 * struct ib_cq_softirq - what runs a lane of IB_POLL_SOFTIRQ on one CPU
 * @iop: polls the lane, if that waits
 * @lane: the lane
 */
struct ib_cq_softirq {
	struct irq_poll iop;
	struct ib_cq_lane *lane;
};

/**
 * struct ib_cq_watch - looks after a lane with several CQs, see handover.c
 * @timer: a tick
 * @progress: what the lane had done at the last tick: a sum of its counters
 * @nr: @nr of its runner at that time
 * @still: ticks since these changed
 * @patience: if it waits to run, ticks until it is moved to another CPU
 * @cpu: where it was moved last
 */
struct ib_cq_watch {
	struct hrtimer timer;
	unsigned long progress;
	int nr;
	unsigned int still;
	unsigned int patience;
	int cpu;
};

/**
 * struct ib_cq_lane_stats - what a lane did; written by the context that runs or wakes it
 * @schedules: times that it was scheduled when idle
 * @runs: calls of ib_cq_lane_run()
 * @rounds: rounds of CQs
 * @completions: completions handed to done()
 * @budget_spent: runs that ended with their completion budget used up
 * @time_spent: runs that ended with their time used up
 * @gave_way: runs that ended because another lane waited for the CPU
 * @spins: idle times that a thread began by spinning
 * @spin_hits: those in which work came before the spinning ended
 * @sleeps: idle times in which a thread slept
 * @handovers: times that another runner took over, since a done() did not return
 * @moves: times that it was moved to another CPU, since it did not run where it was scheduled
 */
struct ib_cq_lane_stats {
	u64 schedules;
	u64 runs;
	u64 rounds;
	u64 completions;
	u64 budget_spent;
	u64 time_spent;
	u64 gave_way;
	u64 spins;
	u64 spin_hits;
	u64 sleeps;
	u64 handovers;
	u64 moves;
};

/**
 * struct ib_cq_runner - polls the CQs of a lane, or one of them that was slow
 * @work: what runs it, with the work queue contexts
 * @lane: the lane
 * @node: link in lane->busy or lane->spare
 * @cq: CQ whose completions it hands out now, or did last
 * @at: the completion that is being handed out now, in @wc or the lane's @ahead
 * @end: where its batch ends
 * @nr: where runners may be displaced: number of completions in its batch, 0 when all were
 *	handed out, or IB_CQ_PAUSE; which batch that is, and IB_CQ_DISPLACED
 * @batch: what @nr was set to when its last batch or pause began
 * @poller: task that runs it now, in contexts that may sleep
 * @switches: where runners may be displaced: times that @poller had gone to sleep before its batch
 * @parked: @poller waits for another runner from within a done()
 * @wc: completions being handed out, unless they were polled ahead
 */
struct ib_cq_runner {
	struct work_struct work;
	struct ib_cq_lane *lane;
	struct list_head node;
	struct ib_cq *cq;
	struct ib_wc *at;
	struct ib_wc *end;
	atomic_t nr;
	unsigned int batch;
	struct task_struct *poller;
	unsigned long switches;
	bool parked;
	struct ib_wc wc[IB_CQ_BATCH];
};

/**
 * struct ib_cq_lane - polls the CQs of a completion vector in one context
 * @device: device of the CQs
 * @vector: completion vector of the CQs
 * @ctx: the context
 * @list: link among all lanes
 * @users: number of its CQs
 * @softirq: what runs it, with IB_POLL_SOFTIRQ
 * @mover: schedules that on another CPU
 * @thread: what runs it, with IB_POLL_THREAD
 * @lock: guards @runner, @busy, @spare and @paused; see handover.c
 * @runner: the runner that polls the CQs in @ready
 * @busy: that one, and those that were displaced
 * @spare: the others
 * @paused: number of runners that were displaced in a pause, and have not returned
 * @runners: number of runners; more than there are CQs where runners may be displaced.
 *	Guarded by ib_cq_vectors.lock
 * @watch: looks for a runner that does not go on
 * @watched: @watch is to be started when a CQ becomes pending beside others, and may act
 * @active: 1 if it runs or was scheduled; 0 if it is idle
 * @waits_on: 1 + the CPU where it counts as waiting, see struct ib_cq_context; 0 while it does
 *	not
 * @pending: CQs that were scheduled, and that the runner has not seen yet
 * @ready: the first of the CQs with completions, in the order in which they are polled;
 *	linked by ib_cq.link
 * @ready_end: where the link to the next one goes
 * @ahead_cq: the CQ that was polled ahead, until all of that is handed out; or NULL. See lane.c
 * @ahead: completions polled ahead, room for IB_CQ_AHEAD; NULL for IB_POLL_DIRECT
 * @ahead_at: the first of them that belongs to no batch yet
 * @ahead_end: where they end
 * @stats: what it did
 * @own: its first runner, and the only one where runners are not displaced
 */
struct ib_cq_lane {
	struct ib_device *device;
	unsigned int vector;
	const struct ib_cq_context *ctx;
	struct list_head list;
	atomic_t users;
	union {
		struct {
			struct ib_cq_softirq __percpu *softirq;
			call_single_data_t mover;
		};
		struct ib_cq_thread thread;
	};
	raw_spinlock_t lock;
	struct ib_cq_runner *runner;
	struct list_head busy;
	struct list_head spare;
	unsigned int paused;
	unsigned int runners;
	struct ib_cq_watch watch;

	struct llist_head pending ____cacheline_aligned_in_smp;
	atomic_t active;
	int waits_on;
	bool watched;

	struct llist_node *ready ____cacheline_aligned_in_smp;
	struct llist_node **ready_end;
	struct ib_cq *ahead_cq;
	struct ib_wc *ahead;
	struct ib_wc *ahead_at;
	struct ib_wc *ahead_end;
	struct ib_cq_lane_stats stats;
	struct ib_cq_runner own;
};

/**
 * struct ib_cq_vectors - the lanes of a device
 * @hotplug: link among the devices that follow CPU hotplug
 * @device: the device
 * @lock: guards the creation of lanes, and the CPUs of their threads. Taken
 *	within cpus_read_lock().
 * @nr: number of vectors
 * @lane: by vector and context; made when first asked for
 */
struct ib_cq_vectors {
	struct hlist_node hotplug;
	struct ib_device *device;
	struct mutex lock;
	unsigned int nr;
	struct ib_cq_lane *lane[][IB_CQ_CONTEXTS];
};

/* cq.c */
int ib_cq_destroy(struct ib_cq *cq, unsigned long site);
int ib_cq_peek(struct ib_cq *cq, int limit);

/* lane.c */
void ib_cq_lane_init_cq(struct ib_cq *cq, struct ib_cq_lane *lane);
void ib_cq_wake(struct ib_cq *cq);
void ib_cq_wake_waiting(struct ib_cq *cq);
void ib_cq_stop(struct ib_cq *cq);
int ib_cq_poll_direct(struct ib_cq_lane *lane, struct ib_cq *cq, int wanted);
enum ib_cq_ran ib_cq_lane_run(struct ib_cq_lane *lane);
enum ib_cq_ran ib_cq_runner_run(struct ib_cq_runner *runner);
bool ib_cq_lane_idle(struct ib_cq_lane *lane);
bool ib_cq_pause(struct ib_cq_runner *runner, bool handover);

/* handover.c */
void ib_cq_runners_init(struct ib_cq_lane *lane);
void ib_cq_runners_exit(struct ib_cq_lane *lane);
int ib_cq_add_runner(struct ib_cq_lane *lane, unsigned int cqs);
void ib_cq_hand_over(struct ib_cq_lane *lane);
void ib_cq_replace_runner(struct ib_cq_lane *lane);
void ib_cq_return_runner(struct ib_cq_runner *runner, struct ib_cq *cq);
void ib_cq_start_watch(struct ib_cq_lane *lane);
void ib_cq_stop_watch(struct ib_cq_lane *lane);
bool ib_cq_polled_by_caller(struct ib_cq *cq);
bool ib_cq_in_done_of(struct ib_cq *cq);

/* direct.c */
void ib_cq_direct_claim(struct ib_cq *cq);
void ib_cq_direct_release(struct ib_cq *cq);
void ib_cq_direct_flush(struct ib_cq *cq);
void ib_cq_direct_empty_and_arm(struct ib_cq *cq);
bool ib_cq_direct_is_due(struct ib_cq *cq);

/* wait.c */
int ib_cq_max_completions(struct ib_cq *cq);
void ib_cq_collect_waiters(struct ib_cq *cq);
void ib_cq_flush_progress(struct ib_cq *cq, int completions, bool emptied);
void ib_cq_release_waiters(struct ib_cq *cq);
bool ib_cq_failed(const struct ib_cq *cq);
void ib_cq_wake_waiters_done(struct ib_cq *cq);
int ib_cq_wait_done(struct ib_cq *cq, struct completion *done);
void ib_cq_hand_over_all(void);
void ib_cq_forget_qp(struct ib_qp *qp);
void ib_cq_lane_list(struct ib_cq_lane *lane);
void ib_cq_lane_unlist(struct ib_cq_lane *lane);

/* context.c */
extern const struct ib_cq_context ib_cq_contexts[IB_CQ_CONTEXTS];
int ib_cq_init(void);
void ib_cq_exit(void);
int ib_cq_device_init(struct ib_device *dev);
void ib_cq_device_cleanup(struct ib_device *dev);
void ib_cq_work(struct work_struct *work);
struct ib_cq_lane *ib_cq_get_lane(struct ib_device *dev, unsigned int vector,
				  enum ib_poll_context poll_ctx);
void ib_cq_put_lane(struct ib_cq_lane *lane);
int ib_cq_vector_cpu(struct ib_device *dev, unsigned int vector, int except);

/* thread.c */
int ib_cq_thread_init(struct ib_cq_lane *lane);
void ib_cq_thread_schedule(struct ib_cq_lane *lane);
void ib_cq_thread_exit(struct ib_cq_lane *lane);
void ib_cq_hotplug_add(struct ib_cq_vectors *vectors);
void ib_cq_hotplug_del(struct ib_cq_vectors *vectors);
int ib_cq_hotplug_init(void);
void ib_cq_hotplug_exit(void);

/* notify.c */
void ib_notify_init_cq(struct ib_cq *cq);
void ib_notify_free_cq(struct ib_cq *cq);

/* pool.c */
int ib_cq_pool_init(struct ib_device *dev);
void ib_cq_pool_cleanup(struct ib_device *dev);
extern struct ib_ref_source ib_cq_pool_source;
void ib_cq_pool_show(struct ib_device *dev, struct seq_file *s);

/* debugfs.c */
void ib_cq_show(struct ib_cq *cq, struct seq_file *s);
void ib_cq_vectors_show(struct ib_device *dev, struct seq_file *s);

/* moderation.c */
#ifdef HAVE_RDMA_DIM
void ib_cq_dim_init(struct ib_cq *cq);
void ib_cq_dim_exit(struct ib_cq *cq);
void ib_cq_dim_round(struct ib_cq *cq);
#else
static inline void ib_cq_dim_init(struct ib_cq *cq) { }
static inline void ib_cq_dim_exit(struct ib_cq *cq) { }
static inline void ib_cq_dim_round(struct ib_cq *cq) { }
#endif

/* Called by the runner when it has emptied the CQ. */
static inline void ib_cq_dim_add(struct ib_cq *cq)
{
	if (unlikely(cq->dim))
		ib_cq_dim_round(cq);
}

/*
 * The list of CQs that are ready, which only the lane's runner touches. It is singly linked, as
 * CQs leave it at its head, except for one that is freed from within a done() of another one.
 */
static inline void ib_cq_ready_init(struct ib_cq_lane *lane)
{
	lane->ready = NULL;
	lane->ready_end = &lane->ready;
}

/* Returns the first CQ that is ready; the list must not be empty. */
static inline struct ib_cq *ib_cq_ready_first(const struct ib_cq_lane *lane)
{
	return llist_entry(lane->ready, struct ib_cq, link);
}

static inline void ib_cq_ready_add(struct ib_cq_lane *lane, struct ib_cq *cq)
{
	cq->link.next = NULL;
	*lane->ready_end = &cq->link;
	lane->ready_end = &cq->link.next;
}

/* Takes out the CQ to which @link points: the first one, for &lane->ready. */
static inline void ib_cq_ready_del(struct ib_cq_lane *lane, struct llist_node **link)
{
	struct llist_node *node = *link;

	*link = node->next;
	if (lane->ready_end == &node->next)
		lane->ready_end = link;
}

static inline bool ib_cq_is_direct(const struct ib_cq *cq)
{
	return cq->poll_ctx == IB_POLL_DIRECT;
}

/*
 * Makes @cq pending, which is QUEUED and in no list. After the llist_add(), the CQ may be polled,
 * and freed, so only the lane may be touched.
 */
static __always_inline void ib_cq_enqueue(struct ib_cq_lane *lane, struct ib_cq *cq)
{
	if (llist_add(&cq->link, &lane->pending) && !atomic_xchg(&lane->active, 1)) {
		lane->stats.schedules++;
		lane->ctx->schedule(lane);
	} else if (READ_ONCE(lane->watched) && !hrtimer_is_queued(&lane->watch.timer)) {
		ib_cq_start_watch(lane);
	}
}

#endif
