/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_hotplug: what its files share.
 *
 * main.c     module, parameters, debugfs, the client
 * session.c  its time on one device: objects, and what is found when they go
 * qp.c       queue pairs, in every state
 * traffic.c  work requests, each in a slot, and their completions
 * gate.c     a second client, which is held up in one of its callbacks
 * provider.c a device that anybody can unregister
 */
#ifndef KVERBS_HOTPLUG_H
#define KVERBS_HOTPLUG_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>

#define HP_PORT		1
#define HP_WINDOW	HP_OPS	/* requests under way of a queue pair with traffic */
#define HP_RECVS	(2 * HP_WINDOW)
#define HP_HELD		3	/* requests of each kind on others */
#define HP_WARM		(2 * HP_WINDOW)	/* requests done: traffic moves */
#define HP_PACE_MS	50	/* from when on receives are posted again at intervals */
#define HP_SPARE_WR	2	/* a drain's own */
#define HP_MSG		64	/* bytes of a message */
#define HP_AREAS	16	/* of that size, of each queue */
#define HP_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)
#define HP_TIMEOUT	(30 * HZ)	/* of what must come soon */

#define HP_QP_STATES	(IB_QPS_ERR + 1)

/**
 * enum hp_kind - completion queues of a session
 * @HP_DIRECT: polled by a work item of ours; the next four by the core
 * @HP_SOFTIRQ: in softirq
 * @HP_THREAD: by a thread
 * @HP_WORKQUEUE: by a work item
 * @HP_UNBOUND: by a work item that has no CPU
 * @HP_PLAIN: of ib_create_cq(), with a handler of ours
 * @HP_STATES: of the queue pairs in every state; polled in one of the core's ways
 * @HP_KINDS: how many there are
 */
enum hp_kind {
	HP_DIRECT,
	HP_SOFTIRQ,
	HP_THREAD,
	HP_WORKQUEUE,
	HP_UNBOUND,
	HP_PLAIN,
	HP_STATES,
	HP_KINDS,
};

/**
 * enum hp_op - what the requests of a queue pair with traffic do
 * @HP_SEND: takes a receive of the peer
 * @HP_WRITE: as well, for its immediate data, and writes to the region
 * @HP_READ: reads from there
 * @HP_ADD: adds to a word there
 * @HP_OPS: how many are posted again and again
 * @HP_REG: makes the region valid, before all others
 */
enum hp_op {
	HP_SEND,
	HP_WRITE,
	HP_READ,
	HP_ADD,
	HP_OPS,
	HP_REG = HP_OPS,
};

/**
 * enum hp_fault - bugs of this module, one of which can be asked for
 * @HP_NO_FAULT: none
 * @HP_LOSE: a completion is not accounted for
 * @HP_DOUBLE: one is, twice
 * @HP_LATE: the accounts are closed before the queues are drained
 * @HP_NO_DRAIN: the queues are not drained
 * @HP_FORGET: queue pairs are left
 * @HP_SLOW: remove() takes longer than allowed
 * @HP_IDLE: no work is posted
 * @HP_WRONG: a send that nothing should complete finds a receive
 * @HP_ERROR: a send is from memory that is not there
 * @HP_OPEN: the gate does not wait
 * @HP_FAULTS: how many there are
 */
enum hp_fault {
	HP_NO_FAULT,
	HP_LOSE,
	HP_DOUBLE,
	HP_LATE,
	HP_NO_DRAIN,
	HP_FORGET,
	HP_SLOW,
	HP_IDLE,
	HP_WRONG,
	HP_ERROR,
	HP_OPEN,
	HP_FAULTS,
};

/**
 * enum hp_choice - what is not the same in each session
 * @HP_WAIT: add() waits for traffic, or does not
 * @HP_BREAK: queue pairs are moved to ERR before posting stops, or are not
 * @HP_CONTEXT: what polls the queue pairs in every state
 * @HP_VECTOR: the completion vector of the first queue
 * @HP_SHARED: receives of the queue pairs with traffic are those of an SRQ, or their own
 */
enum hp_choice {
	HP_WAIT,
	HP_BREAK,
	HP_CONTEXT,
	HP_VECTOR,
	HP_SHARED,
};

struct hp_queue;
struct hp_session;

/**
 * struct hp_slot - a work request, posted again when it is done
 * @cqe: its completion
 * @qp: where it is posted
 * @op: of a send: what it does
 * @area: its memory, of its queue's
 * @recv: a receive
 * @shared: a receive of an SRQ, which nothing flushes
 * @held: nothing completes it but a flush
 * @bad: a send from memory that is not there
 * @rests: a receive that has completed, and is posted again by and by
 * @out: times that it was posted, less completions: 0 or 1
 */
struct hp_slot {
	struct ib_cqe cqe;
	struct hp_qp *qp;
	enum hp_op op;
	u32 area;
	bool recv;
	bool shared;
	bool held;
	bool bad;
	bool rests;
	atomic_t out;
};

/**
 * struct hp_qp - a queue pair
 * @queue: where its requests complete
 * @qp: the queue pair
 * @at: the state it was brought to
 * @slots: its requests
 * @nr: how many
 */
struct hp_qp {
	struct hp_queue *queue;
	struct ib_qp *qp;
	enum ib_qp_state at;
	struct hp_slot *slots;
	u32 nr;
};

/**
 * struct hp_queue - a completion queue with its queue pairs
 * @session: the session
 * @kind: what polls it
 * @cq: the completion queue
 * @srq: where its queue pair that receives has its receives, or NULL
 * @mr: the region that requests write to and read from; of those with traffic
 * @qps: its queue pairs
 * @nr_qps: how many
 * @lock: guards @stopping, and is held around posts: none comes after that
 * @stopping: nothing is posted any more
 * @closed: every completion should have come
 * @poll_lock: guards @unwatched
 * @unwatched: @work is not to be queued any more
 * @failed: a request has failed: there is no traffic any more
 * @budget: receives that may still be posted again at once
 * @owed: with an SRQ: messages that took a receive of it, less those that completed
 * @warm: requests until @moves
 * @moves: completed when traffic moves, or a request has failed
 * @left: requests that are out, but those of an SRQ, and one until @stopping
 * @idle: completed when none is out
 * @work: polls, where the core does not
 */
struct hp_queue {
	struct hp_session *session;
	enum hp_kind kind;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_mr *mr;
	struct hp_qp *qps;
	u32 nr_qps;
	spinlock_t lock;
	bool stopping;
	bool closed;
	bool failed;
	spinlock_t poll_lock;
	bool unwatched;
	atomic_t budget;
	atomic_t owed;
	atomic_t warm;
	struct completion moves;
	atomic_t left;
	struct completion idle;
	struct work_struct work;
};

/**
 * struct hp_session - the client's time on a device
 * @dev: the device
 * @nr: counts sessions; each &enum hp_choice follows it
 * @port: what the port says of itself
 * @ah: the way to the port itself
 * @pd: of all
 * @mem: %HP_AREAS of each queue, mapped at @dma
 * @dma: likewise
 * @pace: posts the receives that rest
 * @queues: by &enum hp_kind
 */
struct hp_session {
	struct ib_device *dev;
	u32 nr;
	struct ib_port_attr port;
	struct rdma_ah_attr ah;
	struct ib_pd *pd;
	void *mem;
	u64 dma;
	struct delayed_work pace;
	struct hp_queue queues[HP_KINDS];
};

/**
 * struct hp_stats - counts of the module, since it was loaded
 * @adds: sessions that began
 * @removes: sessions that ended
 * @failed: sessions that could not begin
 * @posted: requests, but receives that an SRQ has kept to the end
 * @completed: those that succeeded
 * @flushed: those that were flushed
 * @bad: those that failed because they were meant to
 * @retries: those that gave up because the link was down, where it may be
 * @errors: those that failed otherwise
 * @lost: those that did not complete
 * @doubled: completions too many
 * @late: completions after the last one should have come
 * @wrong: requests that nothing should complete but a flush, and something did
 * @idle: times that a queue had nothing under way when its session ended
 * @over: calls of remove() that took too long
 * @longest_us: the longest
 * @shared: receives of SRQs that were done
 * @moved: by &enum hp_kind, requests to a peer that were done
 * @done: by &enum hp_op, those of all kinds
 * @out: by &enum hp_kind, requests under way when sessions ended; of queue pairs with
 *	 traffic, those to the peer
 * @states: by &enum ib_qp_state, queue pairs that were so when remove() came
 */
struct hp_stats {
	atomic_t adds;
	atomic_t removes;
	atomic_t failed;
	atomic_t posted;
	atomic_t completed;
	atomic_t flushed;
	atomic_t bad;
	atomic_t retries;
	atomic_t errors;
	atomic_t lost;
	atomic_t doubled;
	atomic_t late;
	atomic_t wrong;
	atomic_t idle;
	atomic_t over;
	atomic_t longest_us;
	atomic_t shared;
	atomic_t moved[HP_KINDS];
	atomic_t done[HP_OPS];
	atomic_t out[HP_KINDS];
	atomic_t states[HP_QP_STATES];
};

extern struct hp_stats hp_stats;		/* main.c */
extern enum hp_fault hp_fault;
extern unsigned int hp_bound_ms;
extern unsigned int hp_messages;
extern unsigned int hp_first;
extern bool hp_links;
extern struct workqueue_struct *hp_wq;

/* session.c */
struct hp_session *hp_session_begin(struct ib_device *dev);
void hp_session_end(struct hp_session *s);
u32 hp_area_offset(const struct hp_queue *queue, u32 area);
u32 hp_choose(const struct hp_session *s, enum hp_choice choice, u32 n);

/* qp.c */
int hp_qp_create(struct hp_queue *queue, struct hp_qp *q, enum ib_qp_type type,
		 u32 nr_sends, u32 nr_recvs);
int hp_qp_bring(struct hp_qp *q, enum ib_qp_state to, u32 dest);
int hp_states_setup(struct hp_queue *queue);
void hp_states_count(struct hp_queue *queue);

/* traffic.c */
bool hp_fault_once(enum hp_fault fault);
int hp_post_all(struct hp_qp *q);
void hp_pace_work(struct work_struct *work);
void hp_plain_handler(struct ib_cq *cq, void *context);
void hp_poll_work(struct work_struct *work);
void hp_queue_poll_again(struct hp_queue *queue);
void hp_slot_done(struct ib_cq *cq, struct ib_wc *wc);

/* gate.c */
struct dentry;
void hp_gate_init(struct dentry *dir);
void hp_gate_exit(void);

/* provider.c */
bool hp_is_own_device(const struct ib_device *dev);
void hp_provider_init(struct dentry *dir);
void hp_provider_exit(void);

#endif
