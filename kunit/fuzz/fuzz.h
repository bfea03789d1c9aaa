/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The randomised exerciser: threads make random calls of the verbs interface on the
 * emulated HCA, and a model predicts the result of each call.
 *
 *	main.c		threads, the suite
 *	shrink.c	shrinking and replaying a sequence that failed
 *	world.c		beginning and ending a world
 *	ops.c		the table of operations, how they are drawn, and their text
 *	objects.c	operations on PDs, CQs, SRQs and multicast groups
 *	qp.c		operations on queue pairs
 *	post.c		work requests and their completions
 *	event.c		asynchronous events of queue pairs and SRQs
 *	side_effects.c	requests that also take a receive, or invalidate a region
 *	flight.c	queue pairs that end with WRs in flight; overruns of CQs
 *	atomic.c	atomic operations
 *	memory.c	operations on MRs, MWs, FMRs and address handles
 *	user.c		regions of user memory
 *	mcast.c		datagrams to groups
 *	query.c		queries, events, synchronous requests to channel adapters
 *	optional.c	draining one queue, moderation, pools, unsupported methods
 *	lookup.c	lookup of GIDs, of senders of datagrams, of objects by number
 *	registry.c	a client and a device of each thread
 *	own_device.c	features of that device only: virtual functions, integrity
 *	roce.c		network devices and GIDs of that device, address vectors
 *	ca.c		asynchronous requests to channel adapters, PDs lent
 *	model.c		the model, which calls nothing of the interface
 *
 * Each thread has a world: objects of its own, in slots, and the model's state of them.
 * Slot 0 of PDs, CQs and SRQs is shared by all threads. A world lives for an episode, a
 * bounded number of operations, so that a failure needs to be looked for in few operations.
 * An operation is drawn from the seed, the thread and the operation's number alone; an
 * operation on an object that does not exist does nothing. So any part of an episode can be
 * run by itself or, if a failure takes two threads, while other threads run theirs.
 */
#ifndef KVT_EXERCISE_H
#define KVT_EXERCISE_H

#include <linux/wait.h>
#include <kverbs/ca.h>
#include <rdma/ib_verbs.h>

#include "lib/lib.h"

/* Devices, and slots of each kind of object. */
#define X_DEVS		2
#define X_SLOTS		5
#define X_MAX_THREADS	16
/* Slot of the objects that all threads share. */
#define X_SHARED	0

#define X_PORT		1
/* Q_Key of thread 0. Thread n uses X_QKEY + n, so no thread receives another's datagrams. */
#define X_QKEY		0x11223344
/* A Q_Key and a QP number that no QP has. */
#define X_NO_QKEY	(X_QKEY - 1)
#define X_NOBODY	0xfffff0

/* Depth of the queues of a QP, and of SRQs. */
#define X_DEPTH		8
#define X_SRQ_DEPTH	16
/* Depth of the queues of QPs that end with WRs in flight. */
#define X_FLIGHT	16
/* Most WRs in a chain. */
#define X_CHAIN		4
/*
 * WRs remembered of each queue: a resized SRQ has room for a full depth of WRs besides those
 * already in it, and a chain that does not fit is posted on top.
 */
#define X_WRS		40
static_assert(X_WRS >= 2 * X_SRQ_DEPTH + X_CHAIN);
/* Bytes of a window. */
#define X_WINDOW	256
/* Bytes of a receive buffer, and of the GRH at the start of a received datagram. */
#define X_BYTES		128
#define X_GRH		40
/* CQEs of a CQ: several times the WRs that can complete in one CQ at once. */
#define X_CQE		256

/* Most pages of an MR; most maps of an FMR before it is unmapped. */
#define X_PAGES		4
#define X_FMR_MAPS	3
/* Most MRs in a pool. */
#define X_POOL		3
/* Words that atomics change in the MR pages of each device, and offset of the first word. */
#define X_WORDS		4
#define X_WORDS_AT	128
/* Pages of user memory of a thread. */
#define X_USER_PAGES	3
/*
 * Layout of the user memory: structures of CA requests from X_USER_ROOM on, behind all MRs;
 * the MR of slot n begins at n * X_USER_AT.
 */
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

/* Deliberate mistakes for the self-test, in the model or between model and interface. */
enum x_lie {
	X_TRUE,
	X_LIE_COUNT,		/* model: an MR does not count as a user of its PD */
	X_LIE_STATE,		/* model: INIT may not go to ERR */
	X_LIE_STATUS,		/* model: flushed WRs succeed */
	X_LIE_EVER,		/* model: a queue is never full */
	X_LIE_LOST,		/* interface: completions of flushed receives are lost */
	X_LIE_TWICE,		/* interface: successful sends complete twice */
	X_LIE_QUERY,		/* interface: a modified AH reads as before */
	X_LIE_LEAK,		/* interface: MRs are not freed */
	X_LIE_CQ,		/* interface: receives complete in the send CQ */
	X_LIE_IMM,		/* interface: immediate data is changed */
	X_LIE_POLL,		/* interface: polling fails */
	X_LIE_EVENT,		/* model: a QP with an SRQ gets no Last WQE Reached event */
	X_LIE_OWN,		/* model: no other thread uses the shared PD */
	X_LIE_KINDS,		/* always fails, in one of two ways */
	X_LIE_LEFT,		/* after the first failure each world fails */
	X_LIE_LATE,		/* fails with a patience shorter than that of the run */
	X_LIES
};

/* Number of values of enum ib_wc_status. */
#define X_STATUSES	(IB_WC_GENERAL_ERR + 1)

/* Result of an operation. */
enum x_verdict {
	X_FAILED = -1,
	X_DONE,
	X_SKIPPED,		/* it does not apply, e.g. its object does not exist */
};

/**
 * struct x_op - an operation
 * @kind: index in the table of operations
 * @a: first argument, mostly a slot
 * @b: second argument
 * @c: third argument
 * @r: random bits
 */
struct x_op {
	u8 kind;
	u8 a;
	u8 b;
	u8 c;
	u32 r;
};

/* Slot of the PD in which an operation creates an object: often the shared one. */
static inline int x_pd_of(const struct x_op *op)
{
	static const u8 slots[8] = { 0, 0, 0, 0, 0, 1, 2, 2 };

	return slots[op->b & 7];
}

struct kunit;
struct x_own;
struct x_world;
struct x_queue;

/* Values of x_wr.state. */
enum {
	X_IDLE,
	X_POSTED,
	X_COMPLETED,
};

/* What a WR does, as far as the model needs to know. */
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
 * struct x_whence - origin and further fields of a completion
 * @qp: the QP
 * @cq: the CQ in which it was polled
 * @opcode: its opcode
 * @flags: its wc_flags
 * @ex: immediate data, or the rkey that was invalidated
 * @src: of a datagram: QP number of the sender
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
 * @cqe: its done() is x_done()
 * @q: its queue
 * @state: X_IDLE, X_POSTED or X_COMPLETED; exchanged by the context that gets the completion
 * @status: status of the completion
 * @len: byte_len of the completion
 * @order: number of the completion among those of the queue
 * @wc: other fields of the completion
 * @what: model: what the WR does
 * @bytes: model: bytes of the message, or of the receive buffer
 * @signaled: model: the WR completes even if it succeeds
 * @bad_key: model: the lkey is wrong
 * @mr: model: slot of the MR, or -1 for none
 * @key: model: key of the MR when the WR was posted; of a datagram: destination QP number
 * @mw: model: slot of the MW, or -1 for none
 * @access: model: access rights of a registration or binding
 * @user: model: slot of an MR of user memory, or -1 for none
 * @dest: model: slot of the QP that a datagram goes to, or number of the multicast group;
 *	-1 if no QP receives it
 * @word: model: of an atomic: index of the word, -1 for a misaligned address, or X_WORDS for
 *	an address outside the MR
 * @swaps: model: of an atomic: it is a compare and swap, not a fetch and add
 * @operand: model: of an atomic: the value to compare, or to add
 * @imm: model: the WR has immediate data, the low bits of @payload
 * @inv: model: slot of an MR that the WR also invalidates, or -1
 * @inv_key: model: key of that MR
 * @ended: model: the WR has ended
 * @completes: model: there is a completion
 * @want: model: expected status
 * @want_len: model: expected byte_len, of a receive that succeeds
 * @want_order: model: expected @order
 * @want_wc: model: expected other fields of the completion
 * @no_data: model: of a receive: no data is written to the buffer
 * @payload: first bytes of the message; of a compare and swap: the new value
 * @want_payload: model: first bytes of the data received or read; of an atomic: the old value
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
 * struct x_queue - a send queue, a receive queue, or an SRQ
 * @w: its world
 * @name: name for messages
 * @base: offset of the queue's buffers in the device's buffer
 * @dev: index of its device
 * @depth: number of WRs that it has room for
 * @head: number of WRs posted
 * @next: model: number of WRs that have ended
 * @checked: number of WRs that were compared with the model
 * @retired: model: number of WRs that do not take room any more
 * @floor: model: WRs before this number take no room, though they are in the queue: they
 *	were there when an SRQ was resized
 * @order: number of completions seen
 * @completions: model: number of completions so far
 * @shared: order of completions is not checked, as several QPs may use the queue
 * @wr: the WRs, by number modulo X_WRS
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
 * @dev: index of its device
 * @users: number of objects that use it
 * @nr: number of objects that it uses: entries of @kind and @slot
 * @kind: kinds of the objects that it uses
 * @slot: slots of the objects that it uses
 */
struct x_obj {
	bool there;
	u8 dev;
	u8 users;
	u8 nr;
	u8 kind[4];
	u8 slot[4];
};

/* Asynchronous events that QPs are expected to get; X_OTHER_EVENT is any other. */
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
 * struct x_heard - events seen of a QP or an SRQ
 * @w: the world
 * @open: the object exists, so events may come
 * @num: QP number, once it is known
 * @count: number of events, by enum x_event
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
 * @pd: slot of its PD
 * @srq: slot of its SRQ, or -1
 * @scq: slot of its send CQ
 * @rcq: slot of its receive CQ
 * @dest_dev: index of the peer's device, or -1
 * @dest: QP number of the peer
 * @rnr_retry: RNR retry count; 7 is infinite
 * @sig_all: all sends are signaled
 * @access: remote access rights
 * @groups: bitmap of the multicast groups that it has joined
 * @notify: it gets an event when its send queue is drained
 * @told: bitmap of enum x_event: events that come once between two resets, and have come
 * @events: number of events expected so far, by enum x_event
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
 * @pd: slot of its PD
 * @key: its key
 * @max: most pages that it can map
 * @mapped: bytes that are mapped; 0 if it was never mapped
 * @valid: it is registered
 * @access: access rights
 * @windows: number of windows bound to it
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
 * @pd: slot of its PD
 * @two: it is of type 2
 * @mr: slot of the region that it is bound to, or -1
 * @qpn: of type 2: number of the QP that it is bound to
 * @access: access rights
 * @stale: of type 1: the consumer's rkey is not that of the binding, as the last bind failed
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
 * @pd: slot of its PD
 * @key: its key
 * @access: access rights
 */
struct x_user {
	u8 pd;
	u32 key;
	int access;
};

/**
 * struct x_number - number of an object that was looked up
 * @id: the number, or 0
 * @dev: index of its device
 */
struct x_number {
	u32 id;
	u8 dev;
};

enum x_cq_how {
	X_CQ_HANDLER,		/* from ib_create_cq(), polled by its handler */
	X_CQ_POLLED,		/* from ib_create_cq(), polled by the thread */
	X_CQ_DIRECT,
	X_CQ_SOFTIRQ,
	X_CQ_WORKQUEUE,
	X_CQ_UNBOUND,
	X_CQ_THREAD,
	X_CQ_POOL,
	X_CQ_HOWS
};

/**
 * struct x_shared - objects that all threads share
 * @dev: the devices
 * @lid: LID of port X_PORT, by device
 * @gid: first GID of port X_PORT, by device
 * @pd: the PD in slot 0
 * @cq: the CQ in slot 0
 * @srq: the SRQ in slot 0
 * @mm: address space of the threads' user memory
 * @spoilt: set by %X_LIE_LEFT: each world fails at its end
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
 * @s: objects shared by all threads
 * @lie: mistake for the self-test
 * @patience: jiffies to wait for completions and events
 * @id: number of the thread
 * @ptr: the objects
 * @obj: model: the objects
 * @qp: model: queue pairs
 * @srq: model: SRQs
 * @mr: model: regions
 * @mw: model: windows
 * @fmr: model: FMRs
 * @user: model: regions of user memory
 * @ah: model: attributes of address handles
 * @cq_how: of CQs: how they are created and polled, enum x_cq_how
 * @async: model: a WR has ended that the device may not have executed yet, with effects on
 *	more than the WRs posted after it
 * @expected: model: number of completions so far
 * @seen: number of completions seen
 * @lost: number of completions that %X_LIE_LOST has dropped
 * @stray: completions of WRs that were not posted, or had completed before
 * @poll_error: last error of polling or arming a CQ, or 0
 * @heard_qp: events seen of QPs
 * @heard_srq: events seen of SRQs
 * @stray_events: events of objects that were destroyed
 * @wait: woken when @seen and @lost together reach @expected
 * @user_word: model: first word of each region of user memory
 * @user_mem: address of the user memory
 * @word: model: words that atomics change, by device
 * @ended: WRs that completed as expected, by status
 * @payload: number of WRs built so far, which is the payload of the last one
 * @buf: buffer for each device: messages, then pages of MRs, then WRs in flight
 * @dma: DMA address of @buf, by device
 * @leaked: MRs that %X_LIE_LEAK did not free
 * @nr_leaked: entries of @leaked
 * @ca: handles of open channel adapters, by device
 * @ca_pd: PDs that were allocated by CA requests, by device
 * @handler: device event handler
 * @heard: number of calls of @handler
 * @listening: @handler is registered, so it may be called
 * @number: numbers of the objects that were looked up last, by kind and slot
 * @own: the thread's own device and related state
 * @why: message of the failure
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
/* Offset of the pages of MRs in x_world.buf, behind the buffers of all queues. */
#define X_PAGES_AT	ALIGN((3 * X_SLOTS) * X_QUEUE_BYTES, PAGE_SIZE)
/* Offset of the messages of flight.c, behind those pages; then the total size. */
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
