/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The randomised exerciser: threads make random calls of the verbs interface on the
 * software HCA, and a model predicts the result of each call.
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
 *	query.c		queries, events
 *	optional.c	draining one queue, moderation, pools, unsupported methods
 *	lookup.c	lookup of GIDs, of senders of datagrams, of objects by number
 *	registry.c	a client and a device of each thread
 *	mock_device.c	features of that device only: virtual functions, integrity
 *	roce.c		network devices and GIDs of that device, address vectors
 *	ca.c		requests to channel adapters, PDs lent
 *	model.c		the model, which calls nothing of the interface
 *
 * Each thread has a world: objects of its own, in slots, and the model's state of them.
 * Slot 0 of PDs, CQs and SRQs is shared by all threads. A world lives for an episode, a
 * bounded number of operations, so that a failure needs to be looked for in few operations.
 * An operation is drawn from the seed, the thread and the operation's number alone; an
 * operation on an object that does not exist does nothing. So any part of an episode can be
 * run by itself.
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

/* An operation. */
struct x_op {
	u8 kind;	/* index in the table of operations */
	u8 a;		/* first argument, mostly a slot */
	u8 b;		/* second argument */
	u8 c;		/* third argument */
	u32 r;		/* random bits */
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

/* Origin and further fields of a completion. */
struct x_whence {
	struct ib_qp *qp;	/* the QP */
	struct ib_cq *cq;	/* the CQ in which it was polled */
	int opcode;		/* its opcode */
	int flags;		/* its wc_flags */
	u32 ex;			/* immediate data, or the rkey that was invalidated */
	u32 src;		/* of a datagram: QP number of the sender */
};

/* A work request. */
struct x_wr {
	struct ib_cqe cqe;	/* its done() is x_done() */
	struct x_queue *q;
	/* X_IDLE, X_POSTED or X_COMPLETED; exchanged by the context that gets the completion. */
	atomic_t state;
	int status;	/* status of the completion */
	u32 len;	/* byte_len of the completion */
	u32 order;	/* number of the completion among those of the queue */
	struct x_whence wc;	/* other fields of the completion */

	/* Model: what the WR does. */
	u8 what;
	u8 bytes;	/* model: bytes of the message, or of the receive buffer */
	bool signaled;	/* model: the WR completes even if it succeeds */
	bool bad_key;	/* model: the lkey is wrong */
	s8 mr;		/* model: slot of the MR, or -1 for none */
	/* Model: key of the MR when the WR was posted; of a datagram: destination QP number. */
	u32 key;
	s8 mw;		/* model: slot of the MW, or -1 for none */
	s8 user;	/* model: slot of an MR of user memory, or -1 for none */
	/*
	 * Model: slot of the QP that a datagram goes to, or number of the multicast group; -1 if no
	 * QP receives it.
	 */
	s8 dest;
	/*
	 * Model: of an atomic: index of the word, -1 for a misaligned address, or X_WORDS for an
	 * address outside the MR.
	 */
	s8 word;
	bool swaps;	/* model: of an atomic: it is a compare and swap, not a fetch and add */
	u64 operand;	/* model: of an atomic: the value to compare, or to add */
	int access;	/* model: access rights of a registration or binding */
	bool imm;	/* model: the WR has immediate data, the low bits of @payload */
	s8 inv;		/* model: slot of an MR that the WR also invalidates, or -1 */
	u32 inv_key;	/* model: key of that MR */
	bool ended;	/* model: the WR has ended */
	bool completes;	/* model: there is a completion */
	int want;	/* model: expected status */
	u32 want_len;	/* model: expected byte_len, of a receive that succeeds */
	u32 want_order;	/* model: expected @order */
	struct x_whence want_wc;	/* model: expected other fields of the completion */
	bool no_data;	/* model: of a receive: no data is written to the buffer */
	u64 payload;	/* first bytes of the message; of a compare and swap: the new value */
	/* Model: first bytes of the data received or read; of an atomic: the old value. */
	u64 want_payload;
};

/* A send queue, a receive queue, or an SRQ. */
struct x_queue {
	struct x_world *w;
	const char *name;	/* name for messages */
	u32 base;		/* offset of the queue's buffers in the device's buffer */
	int dev;		/* index of its device */
	u32 depth;		/* number of WRs that it has room for */
	u32 head;		/* number of WRs posted */
	u32 next;		/* model: number of WRs that have ended */
	u32 checked;		/* number of WRs that were compared with the model */
	u32 retired;		/* model: number of WRs that do not take room any more */
	/*
	 * Model: WRs before this number take no room, though they are in the queue: they were there
	 * when an SRQ was resized.
	 */
	u32 floor;
	atomic_t order;		/* number of completions seen */
	u32 completions;	/* model: number of completions so far */
	bool shared;	/* order of completions is not checked, as several QPs may use the queue */
	struct x_wr wr[X_WRS];	/* the WRs, by number modulo X_WRS */
};

/* Model: an object. */
struct x_obj {
	bool there;	/* it exists */
	u8 dev;		/* index of its device */
	u8 users;	/* number of objects that use it */
	u8 nr;		/* number of objects that it uses: entries of @kind and @slot */
	u8 kind[4];	/* kinds of the objects that it uses */
	u8 slot[4];	/* slots of the objects that it uses */
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

/* Events seen of a QP or an SRQ. */
struct x_heard {
	struct x_world *w;
	bool open;			/* the object exists, so events may come */
	u32 num;			/* QP number, once it is known */
	atomic_t count[X_EVENTS];	/* number of events, by enum x_event */
};

/* Model: a queue pair. */
struct x_qp {
	enum ib_qp_state state;
	enum ib_qp_type type;
	u32 num;		/* its number */
	u8 pd;			/* slot of its PD */
	s8 srq;			/* slot of its SRQ, or -1 */
	u8 scq;			/* slot of its send CQ */
	u8 rcq;			/* slot of its receive CQ */
	s8 dest_dev;		/* index of the peer's device, or -1 */
	u32 dest;		/* QP number of the peer */
	u8 rnr_retry;		/* RNR retry count; 7 is infinite */
	bool sig_all;		/* all sends are signaled */
	int access;		/* remote access rights */
	u8 groups;		/* bitmap of the multicast groups that it has joined */
	bool notify;		/* it gets an event when its send queue is drained */
	/* Bitmap of enum x_event: events that come once between two resets, and have come. */
	u8 told;
	u8 events[X_EVENTS];	/* number of events expected so far, by enum x_event */
	struct x_queue sq;	/* its send queue */
	struct x_queue rq;	/* its receive queue */
};

/* Model: a region. */
struct x_mr {
	u8 pd;		/* slot of its PD */
	u32 key;	/* its key */
	u8 max;		/* most pages that it can map */
	u32 mapped;	/* bytes that are mapped; 0 if it was never mapped */
	bool valid;	/* it is registered */
	int access;	/* access rights */
	u8 windows;	/* number of windows bound to it */
};

/* Model: a window. */
struct x_mw {
	u8 pd;		/* slot of its PD */
	bool two;	/* it is of type 2 */
	s8 mr;		/* slot of the region that it is bound to, or -1 */
	u32 qpn;	/* of type 2: number of the QP that it is bound to */
	int access;	/* access rights */
	/* Of type 1: the consumer's rkey is not that of the binding, as the last bind failed. */
	bool stale;
};

struct x_fmr {
	u8 maps;
};

/* Model: a region of user memory. */
struct x_user {
	u8 pd;		/* slot of its PD */
	u32 key;	/* its key */
	int access;	/* access rights */
};

/* Number of an object that was looked up. */
struct x_number {
	u32 id;	/* the number, or 0 */
	u8 dev;	/* index of its device */
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

/* Objects that all threads share. */
struct x_shared {
	struct ib_device *dev[X_DEVS];	/* the devices */
	u16 lid[X_DEVS];		/* LID of port X_PORT, by device */
	union ib_gid gid[X_DEVS];	/* first GID of port X_PORT, by device */
	struct ib_pd *pd;		/* the PD in slot 0 */
	struct ib_cq *cq;		/* the CQ in slot 0 */
	struct ib_srq *srq;		/* the SRQ in slot 0 */
	struct mm_struct *mm;		/* address space of the threads' user memory */
	bool spoilt;			/* set by %X_LIE_LEFT: each world fails at its end */
};

/* Objects of a thread, and the model of them. */
struct x_world {
	struct x_shared *s;		/* objects shared by all threads */
	enum x_lie lie;			/* mistake for the self-test */
	unsigned long patience;		/* jiffies to wait for completions and events */
	u32 id;				/* number of the thread */
	void *ptr[X_KINDS][X_SLOTS];	/* the objects */
	struct x_obj obj[X_KINDS][X_SLOTS];	/* model: the objects */
	struct x_qp qp[X_SLOTS];	/* model: queue pairs */
	struct x_queue srq[X_SLOTS];	/* model: SRQs */
	struct x_mr mr[X_SLOTS];	/* model: regions */
	struct x_mw mw[X_SLOTS];	/* model: windows */
	struct x_fmr fmr[X_SLOTS];	/* model: FMRs */
	struct x_user user[X_SLOTS];	/* model: regions of user memory */
	struct rdma_ah_attr ah[X_SLOTS];	/* model: attributes of address handles */
	u8 cq_how[X_SLOTS];		/* of CQs: how they are created and polled, enum x_cq_how */

	/*
	 * Model: a WR has ended that the device may not have executed yet, with effects on more
	 * than the WRs posted after it.
	 */
	bool async;
	u32 expected;			/* model: number of completions so far */
	atomic_t seen;			/* number of completions seen */
	atomic_t lost;			/* number of completions that %X_LIE_LOST has dropped */
	atomic_t stray;	/* completions of WRs that were not posted, or had completed before */
	int poll_error;			/* last error of polling or arming a CQ, or 0 */
	struct x_heard heard_qp[X_SLOTS];	/* events seen of QPs */
	struct x_heard heard_srq[X_SLOTS];	/* events seen of SRQs */
	atomic_t stray_events;		/* events of objects that were destroyed */
	wait_queue_head_t wait;		/* woken when @seen and @lost together reach @expected */
	u64 user_word[X_SLOTS];		/* model: first word of each region of user memory */
	unsigned long user_mem;		/* address of the user memory */
	u64 word[X_DEVS][X_WORDS];	/* model: words that atomics change, by device */
	u32 ended[X_STATUSES];		/* WRs that completed as expected, by status */
	u64 payload;	/* number of WRs built so far, which is the payload of the last one */
	/* Buffer for each device: messages, then pages of MRs, then WRs in flight. */
	u8 *buf[X_DEVS];
	u64 dma[X_DEVS];		/* DMA address of @buf, by device */

	/* MRs that %X_LIE_LEAK did not free. */
	struct ib_mr *leaked[8];
	int nr_leaked;			/* entries of @leaked */
	struct ib_event_handler handler;	/* device event handler */
	atomic_t heard;			/* number of calls of @handler */
	int listening;			/* @handler is registered, so it may be called */
	/* Numbers of the objects that were looked up last, by kind and slot. */
	struct x_number number[X_KINDS][X_SLOTS];
	struct x_own *own;		/* the thread's own device and related state */
	char why[160];			/* message of the failure */
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
x_op_fn x_query, x_find, x_listen;
x_op_fn x_drain_one, x_cq_moderate, x_pool, x_optional;
x_op_fn x_gid, x_reply, x_restrack;
x_op_fn x_client, x_device;
x_op_fn x_vf, x_modify, x_pi, x_pi_pool;
x_op_fn x_netdev, x_netdev_find, x_av;
x_op_fn x_ca_submit, x_ca_cancel, x_ca_wait, x_ca_file;

#endif
