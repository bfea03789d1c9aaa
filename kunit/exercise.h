/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The randomised exerciser: threads make random calls of the verbs interface over the
 * emulated HCA, and a model says what each of them must do.
 *
 *	exercise.c		threads, the suite
 *	exercise_shrink.c	how a failure is made short, and run again
 *	exercise_world.c	how a world begins and ends
 *	exercise_ops.c		the table of operations, how they are drawn and written
 *	exercise_objects.c	operations on PDs, CQs, SRQs and multicast groups
 *	exercise_qp.c		operations on queue pairs
 *	exercise_post.c		work requests and their completions
 *	exercise_event.c	asynchronous events of queue pairs and SRQs
 *	exercise_also.c		requests that take a receive, or invalidate a region, besides
 *	exercise_flight.c	queue pairs that end with requests under way; overruns of CQs
 *	exercise_atomic.c	atomic operations
 *	exercise_memory.c	operations on regions, windows and addresses
 *	exercise_user.c		regions of user memory
 *	exercise_mcast.c	datagrams to groups
 *	exercise_query.c	queries, events, requests that a thread waits for
 *	exercise_more.c		draining one queue, moderation, pools, what there is not
 *	exercise_lookup.c	GIDs, senders of datagrams, objects by their number
 *	exercise_registry.c	a client and a device of each thread
 *	exercise_own.c		what only such a device has: virtual functions, integrity
 *	exercise_roce.c		its network devices and GIDs, address vectors
 *	exercise_ca.c		requests to channel adapters that take time, PDs lent
 *	exercise_model.c	the model; calls nothing of the interface
 *
 * A thread has a world: objects of its own, in slots, and what the model knows of
 * them. Slot 0 of PDs, CQs and SRQs is shared by all threads. A world lives for an
 * episode, a bounded number of operations, so that a failure is to be looked for in
 * few. What an operation does is drawn from the seed, the thread and its number alone;
 * one that refers to what is not there does nothing. So any part of an episode can be
 * run by itself; or, where a failure takes two threads, while others run theirs.
 */
#ifndef KVT_EXERCISE_H
#define KVT_EXERCISE_H

#include <linux/wait.h>
#include <kverbs/ca.h>
#include <rdma/ib_verbs.h>

/* Devices, and slots of each kind of object. */
#define X_DEVS		2
#define X_SLOTS		5
#define X_MAX_THREADS	16
/* Slot of what all threads share. */
#define X_SHARED	0

#define X_PORT		1
/* Each thread has its own, from here on: it hears nothing of the others. */
#define X_QKEY		0x11223344
/* Nobody has this one, nor this number. */
#define X_NO_QKEY	(X_QKEY - 1)
#define X_NOBODY	0xfffff0

/* Depth of queues of a queue pair and of SRQs. */
#define X_DEPTH		8
#define X_SRQ_DEPTH	16
/* The same of those that end with requests under way. */
#define X_FLIGHT	16
/* Requests in a chain. */
#define X_CHAIN		4
/*
 * Requests remembered of each: an SRQ has room for as many again after its size was
 * changed, and more are tried.
 */
#define X_WRS		40
static_assert(X_WRS >= 2 * X_SRQ_DEPTH + X_CHAIN);
/* Bytes of a window. */
#define X_WINDOW	256
/* Bytes of a message and its header, and of a buffer for one. */
#define X_BYTES		128
#define X_GRH		40
/* All can complete at once in one queue, several times. */
#define X_CQE		256

/* Pages of a region. */
#define X_PAGES		4
#define X_FMR_MAPS	3
/* Regions in a pool. */
#define X_POOL		3
/* Words for atomics in a region of each device, from this byte on. */
#define X_WORDS		4
#define X_WORDS_AT	128
/* User memory: pages of a thread, bytes from the start of a region to the next one's. */
#define X_USER_PAGES	3
/* Where the structures of a thread's requests are, behind all regions. */
#define X_USER_ROOM	(2 * PAGE_SIZE)
#define X_USER_AT	256
/* Multicast groups of a thread. */
#define X_GROUPS	2

enum x_kind {
	X_PD,
	X_CQ,
	X_SRQ,
	X_QP,
	X_MR,
	X_MW,
	X_FMR,
	X_AH,
	X_USER,
	X_KINDS
};

/* Mistakes for the self-test, in the model or between it and the interface. */
enum x_lie {
	X_TRUE,
	X_LIE_COUNT,		/* model: a region does not keep its PD */
	X_LIE_STATE,		/* model: INIT may not go to ERR */
	X_LIE_STATUS,		/* model: what is flushed succeeds */
	X_LIE_EVER,		/* model: a queue is never full */
	X_LIE_LOST,		/* interface: completions of flushed receives are lost */
	X_LIE_TWICE,		/* interface: successful sends complete twice */
	X_LIE_QUERY,		/* interface: a changed address reads as before */
	X_LIE_LEAK,		/* interface: regions are not freed */
	X_LIE_CQ,		/* interface: receives complete in the CQ of sends */
	X_LIE_IMM,		/* interface: immediate data is changed */
	X_LIE_POLL,		/* interface: polling fails */
	X_LIE_EVENT,		/* model: nobody hears that an SRQ is left alone */
	X_LIE_OWN,		/* model: nobody else uses the shared PD */
	X_LIE_KINDS,		/* there is always something wrong, one thing or another */
	X_LIE_LEFT,		/* what is wrong is so from then on */
	X_LIE_LATE,		/* what comes late never comes */
	X_LIES
};

/* Of enum ib_wc_status. */
#define X_STATUSES	(IB_WC_GENERAL_ERR + 1)

/* What came of an operation. */
enum x_verdict {
	X_FAILED = -1,
	X_DONE,
	X_SKIPPED,		/* it refers to what is not there */
};

/**
 * struct x_op - an operation
 * @kind: place in the table of operations
 * @a: a slot, mostly
 * @b: another one
 * @c: another one
 * @r: random bits
 */
struct x_op {
	u8 kind;
	u8 a;
	u8 b;
	u8 c;
	u32 r;
};

/* Slot of the PD that an operation makes something in: often the same. */
static inline int x_pd_of(const struct x_op *op)
{
	static const u8 slots[8] = { 0, 0, 0, 0, 0, 1, 2, 2 };

	return slots[op->b & 7];
}

struct kunit;
struct x_own;
struct x_world;
struct x_queue;

/* Of x_wr.state. */
enum {
	X_IDLE,
	X_POSTED,
	X_COMPLETED,
};

/* What a work request does, as far as the model cares. */
enum x_what {
	X_SEND,
	X_WRITE,
	X_READ,
	X_ATOMIC,
	X_MCAST,
	X_REG,
	X_INV,
	X_BIND,
	X_INV_MW,
	X_RECV,
};

/**
 * struct x_whence - what a completion tells besides, and where it comes from
 * @qp: queue pair
 * @cq: CQ
 * @opcode: what has completed
 * @flags: of &struct ib_wc
 * @ex: immediate data, or the key that was invalidated
 * @src: of a datagram: number of the sender
 */
struct x_whence {
	struct ib_qp *qp;
	struct ib_cq *cq;
	int opcode;
	int flags;
	u32 ex;
	u32 src;
};

/**
 * struct x_wr - a work request
 * @cqe: calls x_done()
 * @q: its queue
 * @state: exchanged by whoever gets the completion
 * @status: seen
 * @len: bytes seen
 * @order: of the queue's completions, which it was
 * @wc: what else was seen
 * @what: model: what it does
 * @bytes: model: of the message, or of the receive
 * @signaled: model: completes even if it succeeds
 * @bad_key: model: the local key is wrong
 * @mr: model: slot of the region, or -1 for none
 * @key: model: of the region, when it was posted; of a datagram: number that it goes to
 * @mw: model: slot of the window
 * @access: model: rights of a binding
 * @user: model: slot of a region of user memory, or -1 for none
 * @dest: model: queue pair that a datagram goes to, a slot, or -1 for nowhere; a group, if
 *	it goes to one, or -1 if nobody takes it
 * @word: model: of an atomic: word, -1 for one that is not aligned, or X_WORDS for one
 *	that is not in the region
 * @swaps: model: of an atomic: compares and swaps, rather than adds
 * @operand: model: of an atomic: compared, or added
 * @imm: model: it has immediate data, which is its payload's
 * @inv: model: slot of a region that it invalidates besides, or -1
 * @inv_key: model: the key of that
 * @ended: model: it has ended
 * @completes: model: there is a completion
 * @want: model: its status
 * @want_len: model: its bytes, if it is a receive that succeeds
 * @want_order: model: its order
 * @want_wc: model: what else is to be seen
 * @no_data: model: of a receive: nothing is put into it
 * @payload: first bytes of the message; of an atomic: swapped
 * @want_payload: model: first bytes of what is received; of an atomic: what was there
 */
struct x_wr {
	struct ib_cqe cqe;
	struct x_queue *q;
	atomic_t state;
	int status;
	u32 len;
	u32 order;
	struct x_whence wc;

	u8 what;
	u8 bytes;
	bool signaled;
	bool bad_key;
	s8 mr;
	u32 key;
	s8 mw;
	s8 user;
	s8 dest;
	s8 word;
	bool swaps;
	u64 operand;
	int access;
	bool imm;
	s8 inv;
	u32 inv_key;
	bool ended;
	bool completes;
	int want;
	u32 want_len;
	u32 want_order;
	struct x_whence want_wc;
	bool no_data;
	u64 payload;
	u64 want_payload;
};

/**
 * struct x_queue - a send queue, a receive queue, a shared one
 * @w: its world
 * @name: for reports
 * @base: bytes in the device's buffer before those of the queue
 * @dev: of this device
 * @depth: requests it has room for
 * @head: requests that were posted
 * @next: model: those that have ended
 * @checked: those that were compared with the model
 * @retired: model: those that do not take room any more
 * @floor: model: those before do not, though they are in it
 * @order: completions seen
 * @completions: model: completions so far
 * @shared: not in order, for it is of more than one queue pair
 * @wr: the requests, by number
 */
struct x_queue {
	struct x_world *w;
	const char *name;
	u32 base;
	int dev;
	u32 depth;
	u32 head;
	u32 next;
	u32 checked;
	u32 retired;
	u32 floor;
	atomic_t order;
	u32 completions;
	bool shared;
	struct x_wr wr[X_WRS];
};

/**
 * struct x_obj - model: an object
 * @there: it exists
 * @dev: of this device
 * @users: objects that use it
 * @nr: entries of @kind and @slot
 * @kind: what it uses: kinds
 * @slot: what it uses: slots
 */
struct x_obj {
	bool there;
	u8 dev;
	u8 users;
	u8 nr;
	u8 kind[4];
	u8 slot[4];
};

/* What a queue pair of ours can be told of; the last one is all else. */
enum x_event {
	X_COMM_EST,
	X_SQ_DRAINED,
	X_QP_FATAL,
	X_REQ_ERR,
	X_ACCESS_ERR,
	X_LAST_WQE,
	X_OTHER_EVENT,
	X_EVENTS
};

/**
 * struct x_heard - events of a queue pair, or of an SRQ
 * @w: the world
 * @open: they may come
 * @num: number of the queue pair, once it is known
 * @count: seen, by enum x_event
 */
struct x_heard {
	struct x_world *w;
	bool open;
	u32 num;
	atomic_t count[X_EVENTS];
};

/**
 * struct x_qp - model: a queue pair
 * @state: its state
 * @type: its type
 * @num: its number
 * @pd: slot
 * @srq: slot, or -1
 * @scq: slot
 * @rcq: slot
 * @dest_dev: device that it is connected to, or -1
 * @dest: number that it is connected to
 * @rnr_retry: how often it tries again; 7: for ever
 * @sig_all: all requests complete
 * @access: rights of the peer
 * @groups: bits: joined
 * @notify: is told when its send queue is drained
 * @told: bits, by enum x_event, of what is told once between two resets: it was
 * @events: events so far, by enum x_event
 * @sq: its send queue
 * @rq: its receive queue
 */
struct x_qp {
	enum ib_qp_state state;
	enum ib_qp_type type;
	u32 num;
	u8 pd;
	s8 srq;
	u8 scq;
	u8 rcq;
	s8 dest_dev;
	u32 dest;
	u8 rnr_retry;
	bool sig_all;
	int access;
	u8 groups;
	bool notify;
	u8 told;
	u8 events[X_EVENTS];
	struct x_queue sq;
	struct x_queue rq;
};

/**
 * struct x_mr - model: a region
 * @pd: slot
 * @key: its key
 * @max: pages it can hold
 * @mapped: bytes that are mapped; 0 if never
 * @valid: registered
 * @access: rights
 * @windows: that are bound to it
 */
struct x_mr {
	u8 pd;
	u32 key;
	u8 max;
	u32 mapped;
	bool valid;
	int access;
	u8 windows;
};

/**
 * struct x_mw - model: a window
 * @pd: slot
 * @two: it is of type 2
 * @mr: slot of the region that it is bound to, or -1
 * @qpn: of type 2: queue pair that it is bound to
 * @access: rights
 * @stale: the key that the consumer has is not that of the binding
 */
struct x_mw {
	u8 pd;
	bool two;
	s8 mr;
	u32 qpn;
	int access;
	bool stale;
};

struct x_fmr {
	u8 maps;
};

/**
 * struct x_user - model: a region of user memory
 * @pd: slot
 * @key: its key
 * @access: rights
 */
struct x_user {
	u8 pd;
	u32 key;
	int access;
};

/**
 * struct x_number - the number of an object that was there
 * @id: its number, or 0
 * @dev: of this device
 */
struct x_number {
	u32 id;
	u8 dev;
};

enum x_cq_how {
	X_CQ_HANDLER,		/* of ib_create_cq(), polled by its handler */
	X_CQ_POLLED,		/* of ib_create_cq(), polled by the thread */
	X_CQ_DIRECT,
	X_CQ_SOFTIRQ,
	X_CQ_WORKQUEUE,
	X_CQ_UNBOUND,
	X_CQ_THREAD,
	X_CQ_POOL,
	X_CQ_HOWS
};

/**
 * struct x_shared - what all threads have
 * @dev: devices
 * @lid: of their ports
 * @gid: first ones of their ports
 * @pd: slot 0
 * @cq: slot 0
 * @srq: slot 0
 * @mm: what the threads' user memory is in
 * @spoilt: by a lie: no world ends well
 */
struct x_shared {
	struct ib_device *dev[X_DEVS];
	u16 lid[X_DEVS];
	union ib_gid gid[X_DEVS];
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct mm_struct *mm;
	bool spoilt;
};

/**
 * struct x_world - objects of a thread, and the model of them
 * @s: what is shared
 * @lie: mistake for the self-test
 * @patience: jiffies to wait for what must happen
 * @id: unique among the threads
 * @ptr: the objects
 * @obj: model: the objects
 * @qp: model: queue pairs
 * @srq: model: SRQs
 * @mr: model: regions
 * @mw: model: windows
 * @fmr: model: FMRs
 * @user: model: regions of user memory
 * @ah: model: addresses
 * @cq_how: of CQs: who polls them
 * @pool_cqe: of CQs of the pool: entries
 * @async: model: something has ended that may not have happened yet, and on which
 *	more depends than on what was posted after it
 * @expected: model: completions so far
 * @seen: completions
 * @lost: those that %X_LIE_LOST has lost
 * @stray: completions of what was not posted, or was completed before
 * @poll_error: what polling or arming a CQ failed with, if it did
 * @heard_qp: events of queue pairs
 * @heard_srq: events of SRQs
 * @stray_events: events of what is not there any more
 * @wait: woken when @seen and @lost are as expected
 * @user_word: model: first word of each region of user memory
 * @user_mem: address of the user memory
 * @word: model: words that atomics change, by device
 * @ended: requests that completed as expected, by status
 * @payload: number of messages
 * @buf: of each device, for messages, and after that for regions
 * @dma: of @buf, by device
 * @leaked: regions that a lie kept
 * @nr_leaked: entries of @leaked
 * @ca: handles of open channel adapters
 * @ca_pd: PDs that were made by requests
 * @handler: event handler
 * @heard: of @handler: events
 * @listening: @handler may be called
 * @number: of the objects that were looked up last, in each slot
 * @own: the thread's device, and what goes with it
 * @why: why it failed
 */
struct x_world {
	struct x_shared *s;
	enum x_lie lie;
	unsigned long patience;
	u32 id;
	void *ptr[X_KINDS][X_SLOTS];
	struct x_obj obj[X_KINDS][X_SLOTS];
	struct x_qp qp[X_SLOTS];
	struct x_queue srq[X_SLOTS];
	struct x_mr mr[X_SLOTS];
	struct x_mw mw[X_SLOTS];
	struct x_fmr fmr[X_SLOTS];
	struct x_user user[X_SLOTS];
	struct rdma_ah_attr ah[X_SLOTS];
	u8 cq_how[X_SLOTS];
	u32 pool_cqe[X_SLOTS];

	bool async;
	u32 expected;
	atomic_t seen;
	atomic_t lost;
	atomic_t stray;
	int poll_error;
	struct x_heard heard_qp[X_SLOTS];
	struct x_heard heard_srq[X_SLOTS];
	atomic_t stray_events;
	wait_queue_head_t wait;
	u64 user_word[X_SLOTS];
	unsigned long user_mem;
	u64 word[X_DEVS][X_WORDS];
	u32 ended[X_STATUSES];
	u64 payload;
	u8 *buf[X_DEVS];
	u64 dma[X_DEVS];

	struct ib_mr *leaked[8];
	int nr_leaked;
	u64 ca[X_DEVS];
	u64 ca_pd[X_DEVS];
	struct ib_event_handler handler;
	atomic_t heard;
	int listening;
	struct x_number number[X_KINDS][X_SLOTS];
	struct x_own *own;
	char why[160];
};

#define X_QUEUE_BYTES	(X_WRS * X_BYTES)
/* Buffers of all queues, then pages of regions. */
#define X_PAGES_AT	ALIGN((3 * X_SLOTS) * X_QUEUE_BYTES, PAGE_SIZE)
/* Then what exercise_flight.c sends and receives. */
#define X_FLIGHT_AT	(X_PAGES_AT + X_PAGES * PAGE_SIZE)
#define X_BUF		(X_FLIGHT_AT + 2 * X_FLIGHT * X_BYTES)

/* --- the model --- */

bool xm_may_modify(enum ib_qp_state from, enum ib_qp_state to, enum ib_qp_type type, int mask);
int xm_required(enum ib_qp_state from, enum ib_qp_state to, enum ib_qp_type type);
void xm_make(struct x_world *w, enum x_kind kind, int slot, int dev);
void xm_use(struct x_world *w, enum x_kind kind, int slot, enum x_kind used, int used_slot);
int xm_may_destroy(const struct x_world *w, enum x_kind kind, int slot);
void xm_gone(struct x_world *w, enum x_kind kind, int slot);
void xm_queue_init(struct x_queue *q, struct x_world *w, const char *name, int dev, u32 base,
		   u32 depth);
void xm_queue_clear(struct x_queue *q);
u32 xm_queue_used(const struct x_queue *q);
void xm_queue_retire(struct x_queue *q, bool sends);
void xm_unbind(struct x_world *w, int mw);
void xm_moved(struct x_world *w, struct x_qp *qp, enum ib_qp_state to);
struct x_qp *xm_peer(struct x_world *w, struct x_qp *qp);
struct x_queue *xm_receives(struct x_world *w, struct x_qp *qp);
bool xm_is_blocked(const struct x_qp *qp);
void xm_run(struct x_world *w);

static inline struct x_wr *xm_wr(struct x_queue *q, u32 pos)
{
	return &q->wr[pos % X_WRS];
}

static inline bool xm_there(const struct x_world *w, enum x_kind kind, int slot)
{
	return w->obj[kind][slot].there;
}

static inline int xm_dev(const struct x_world *w, enum x_kind kind, int slot)
{
	return w->obj[kind][slot].dev;
}

/* --- operations --- */

void x_begin_world(struct x_world *w, enum x_lie lie, unsigned long patience);
enum x_verdict x_end_world(struct x_world *w);

__printf(2, 3) enum x_verdict x_fail(struct x_world *w, const char *format, ...);
enum x_verdict x_want(struct x_world *w, const char *what, long want, long got);

void x_draw(struct x_op *op, u32 seed, u32 thread, u32 number);
enum x_verdict x_run_op(struct x_world *w, const struct x_op *op);
const char *x_op_name(int kind);
int x_write_op(const struct x_op *op, char *buf, size_t len);
int x_read_op(struct x_op *op, const char *text);

enum x_verdict x_settle(struct x_world *w);
enum x_verdict x_settle_if(struct x_world *w, bool needed);
void x_comp_handler(struct ib_cq *cq, void *context);
void x_poll_all(struct x_world *w);
void x_qp_event(struct ib_event *event, void *context);
void x_srq_event(struct ib_event *event, void *context);
void x_hear(struct x_world *w, struct x_heard *heard);
void x_hear_no_more(struct x_heard *heard);
enum x_verdict x_check_events(struct x_world *w);

void x_fill_attr(struct x_world *w, int slot, int peer, struct ib_qp_attr *attr);
void x_clear_words(struct x_world *w);
void x_clear_user(struct x_world *w);
void x_own_new(struct kunit *test, struct x_world *w);
void x_own_begin(struct x_world *w);
void x_end_registry(struct x_world *w);
void x_end_ca(struct x_world *w);
void x_group_gid(const struct x_world *w, int group, union ib_gid *gid);
u16 x_group_lid(const struct x_world *w, int group);
bool x_may_send(const struct x_qp *qp);
bool x_executes(const struct x_qp *qp);
u32 x_receives_for(struct x_world *w, struct x_qp *qp);
struct x_qp *x_responder(struct x_world *w, const struct x_op *op);
struct x_wr *x_new_wr(struct x_world *w, struct x_queue *q, u32 ahead, enum x_what what,
		      struct ib_sge *sge, u32 bytes);
enum x_verdict x_make_room(struct x_world *w, struct x_queue *q, u32 n, u32 *room);
enum x_verdict x_post_one(struct x_world *w, int slot, struct ib_send_wr *send, struct x_wr *wr,
			  int may);

enum x_verdict x_use_pool(struct x_world *w, struct ib_qp *qp, struct list_head *pool, int nr);

typedef enum x_verdict x_op_fn(struct x_world *w, const struct x_op *op);
x_op_fn x_pd_alloc, x_pd_free;
x_op_fn x_cq_make, x_cq_free, x_cq_poll, x_cq_arm, x_cq_resize, x_cq_tune;
x_op_fn x_srq_make, x_srq_free, x_srq_modify, x_srq_query, x_srq_recv;
x_op_fn x_qp_make, x_qp_free, x_qp_up, x_qp_err, x_qp_modify, x_qp_query, x_qp_drain;
x_op_fn x_qp_recv, x_qp_send, x_mr_post, x_mw_post, x_rdma, x_rdma_mw, x_atomic;
x_op_fn x_send_inv, x_write_imm, x_read_inv;
x_op_fn x_flight, x_overrun;
x_op_fn x_mcast_join, x_mcast_leave, x_mcast_send;
x_op_fn x_user_make, x_user_free, x_user_rdma;
x_op_fn x_ah_make, x_ah_modify, x_ah_query, x_ah_free;
x_op_fn x_mr_alloc, x_mr_map, x_mr_free, x_mw_alloc, x_mw_free;
x_op_fn x_fmr_alloc, x_fmr_map, x_fmr_unmap, x_fmr_free;
x_op_fn x_query, x_find, x_listen, x_ca;
x_op_fn x_drain_one, x_cq_moderate, x_pool, x_optional;
x_op_fn x_gid, x_reply, x_restrack;
x_op_fn x_client, x_device;
x_op_fn x_vf, x_modify, x_pi, x_pi_pool;
x_op_fn x_netdev, x_netdev_find, x_av;
x_op_fn x_ca_submit, x_ca_cancel, x_ca_wait, x_ca_file;

#endif
