/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_hotplug: declarations that its files share.
 *
 * main.c     module, parameters, debugfs, the client
 * session.c  a session on one device: its objects, and the checks when they go
 * qp.c       queue pairs, in every state
 * traffic.c  work requests, each in a slot, and their completions
 * gate.c     a second client, which can be held up in one of its callbacks
 * provider.c a device that can be unregistered from any context
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
#define HP_WINDOW	HP_OPS	/* outstanding requests of a queue pair with traffic */
#define HP_RECVS	(2 * HP_WINDOW)
#define HP_HELD		3	/* requests of each kind on the other queue pairs */
#define HP_WARM		(2 * HP_WINDOW)	/* completions after which traffic moves */
#define HP_PACE_MS	50	/* interval at which receives are posted again later */
#define HP_SPARE_WR	2	/* for the requests of ib_drain_qp() */
#define HP_MSG		64	/* bytes of a message */
#define HP_AREAS	16	/* memory areas of that size per queue */
#define HP_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
			 IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC)
#define HP_TIMEOUT	(30 * HZ)	/* limit for events that must come soon */

#define HP_QP_STATES	(IB_QPS_ERR + 1)

/**
 * enum hp_kind - completion queues of a session
 * @HP_DIRECT: polled by a work item of this module; the core polls the next four
 * @HP_SOFTIRQ: in softirq
 * @HP_THREAD: by a thread
 * @HP_WORKQUEUE: by a work item
 * @HP_UNBOUND: by a work item that is not bound to a CPU
 * @HP_PLAIN: made by ib_create_cq(), with a handler of this module
 * @HP_STATES: serves the queue pairs in every state; polled in one of the core's ways
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
 * @HP_SEND: consumes a receive of the peer
 * @HP_WRITE: writes to the region, and consumes a receive for its immediate data
 * @HP_READ: reads from the region
 * @HP_ADD: adds to a word of the region
 * @HP_OPS: number of operations that are posted again and again
 * @HP_REG: makes the region valid, before all other requests
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
 * enum hp_fault - deliberate bugs of this module, one of which can be enabled
 * @HP_NO_FAULT: none
 * @HP_LOSE: a completion is not counted
 * @HP_DOUBLE: a completion is counted twice
 * @HP_LATE: the accounts are closed before the queues are drained
 * @HP_NO_DRAIN: the queues are not drained
 * @HP_FORGET: queue pairs are not destroyed
 * @HP_SLOW: remove() takes longer than allowed
 * @HP_IDLE: no work is posted
 * @HP_WRONG: a send that nothing should complete finds a receive
 * @HP_ERROR: a send reads from memory that does not exist
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
 * enum hp_choice - what varies between sessions
 * @HP_WAIT: add() waits for traffic, or does not
 * @HP_BREAK: queue pairs are moved to ERR before posting stops, or are not
 * @HP_CONTEXT: what polls the queue pairs in every state
 * @HP_VECTOR: the completion vector of the first queue
 * @HP_SHARED: queue pairs with traffic take receives from an SRQ, or have their own
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
 * struct hp_slot - a work request, posted again when it has completed
 * @cqe: its completion
 * @qp: where it is posted
 * @op: for a send: its operation
 * @area: its memory, one of its queue's areas
 * @recv: it is a receive
 * @shared: it is a receive of an SRQ, which nothing flushes
 * @held: only a flush completes it
 * @bad: it is a send from memory that does not exist
 * @rests: it is a receive that has completed and waits for @pace of the session
 * @out: number of posts minus number of completions: 0 or 1
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
 * @queue: the queue on which its requests complete
 * @qp: the queue pair
 * @at: the state it was brought to
 * @slots: its requests
 * @nr: number of @slots
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
 * @kind: how it is polled
 * @cq: the completion queue
 * @srq: SRQ with the receives of the queue pair that receives, or NULL
 * @mr: for queue pairs with traffic: the region that requests write to and read from
 * @qps: its queue pairs
 * @nr_qps: number of @qps
 * @lock: guards @stopping, and is held around posts: none follows once it is set
 * @stopping: nothing is posted any more
 * @closed: every completion should have arrived
 * @poll_lock: guards @unwatched
 * @unwatched: @work must not be queued any more
 * @failed: a request has failed, so traffic has ended
 * @budget: number of receives that may still be posted again at once
 * @owed: with an SRQ: messages that consumed a receive minus completed receives
 * @warm: requests left to complete before @moves
 * @moves: completed when traffic moves, or a request has failed
 * @left: outstanding requests other than those of an SRQ, plus one until @stopping
 * @idle: completed when none is outstanding
 * @work: polls the queue if the core does not
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
 * struct hp_session - the client on one device, from add() to remove()
 * @dev: the device
 * @nr: number of the session, which determines each &enum hp_choice
 * @port: attributes of the port
 * @ah: address of the port itself
 * @pd: protection domain of all its objects
 * @mem: %HP_AREAS areas for each queue, mapped at @dma
 * @dma: DMA address of @mem
 * @pace: posts the resting receives again, at intervals
 * @queues: indexed by &enum hp_kind
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
 * struct hp_stats - counters of the module, since it was loaded
 * @adds: sessions that began
 * @removes: sessions that ended
 * @failed: sessions that could not begin
 * @posted: requests posted, except receives that an SRQ kept to the end
 * @completed: requests that succeeded
 * @flushed: requests that were flushed
 * @bad: requests that failed as intended
 * @retries: requests that gave up because the link was down, with links=1
 * @errors: requests that failed in any other way
 * @lost: requests that did not complete
 * @doubled: surplus completions
 * @late: completions that arrived after the last one should have
 * @wrong: requests that only a flush should complete, but something else did
 * @idle: number of times that a queue had nothing outstanding when its session ended
 * @over: calls to remove() that took too long
 * @longest_us: duration of the longest remove()
 * @shared: receives of SRQs that succeeded
 * @moved: by &enum hp_kind, requests to a peer that succeeded
 * @done: by &enum hp_op, the same for all kinds together
 * @out: by &enum hp_kind, requests outstanding when sessions ended; for queue pairs
 *	 with traffic, those to the peer
 * @states: by &enum ib_qp_state, queue pairs that were in that state at remove()
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
