/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two connected queue pairs of the software HCA, with memory at both ends.
 */
#ifndef KVT_EMU_RIG_H
#define KVT_EMU_RIG_H

#include <linux/irq_work.h>
#include <rdma/ib_verbs.h>

#include "lib/lib.h"

#define RIG_WR		16
#define RIG_SGE		4
#define RIG_INLINE	64
#define RIG_CQE		256
#define RIG_BUF		SZ_64K
/* A long buffer. As the page of a region it makes the longest of them. */
#define RIG_BLOCK	SZ_4M

/* One end of the connection. */
struct rig_end {
	struct ib_device *ibdev;	/* the device, with a reference */
	struct ib_pd *pd;		/* PD, whose local_dma_lkey is for all memory */
	struct ib_cq *scq;		/* completions of sends, polled by the case */
	struct ib_cq *rcq;		/* completions of receives, polled by the case */
	struct ib_qp *qp;		/* the queue pair */
	u8 *buf;			/* buffer of @size bytes */
	size_t size;			/* size of @buf, in bytes */
	u64 dma;			/* DMA address of @buf */
	struct ib_mr *mr;		/* registration of @buf, after rig_register() */
	u32 port;			/* port of @qp */
	u16 lid;			/* LID of @port */
	union ib_gid gid;	/* GID of this end, the destination of global routes to it */
	int gid_index;	/* index of the source GID of routes from this end; -1: no global routes */
	u16 pkey_index;			/* P_Key index of @qp */
	u32 qkey;			/* Q_Key of @qp, if that is a datagram QP */
	struct ib_srq *srq;		/* SRQ of @qp, or NULL; to be set before rig_make_qps() */
	enum ib_event_type event;	/* last event of @qp */
	struct completion got_event;	/* completed by each event */
	atomic_t called;		/* calls of the completion handler of @scq and @rcq */
	struct completion got_call;	/* completed by each of these calls */
};

/* A connection, and its attributes. */
struct rig {
	struct rig_end a;		/* first end */
	struct rig_end b;		/* second end */
	struct ib_qp_init_attr init;	/* creation attributes of both queue pairs */
	int access;			/* remote access that both queue pairs grant */
	enum ib_mtu mtu;		/* path MTU */
	u32 psn;			/* first PSN, both ways */
	u8 timeout;			/* local ACK timeout, for modify_qp to RTS */
	u8 retry_cnt;			/* retry count, for modify_qp to RTS */
	u8 rnr_retry;			/* RNR retry count, for modify_qp to RTS */
	u8 rnr_timer;			/* minimum RNR NAK timer, for modify_qp to RTR */
	u8 max_dest_rd;			/* responder resources, for modify_qp to RTR */
	u8 max_rd;			/* initiator depth, for modify_qp to RTS */
};

void rig_make_buf(struct kunit *test, struct rig_end *e, size_t size);
void rig_end_up(struct kunit *test, struct rig_end *e, const char *name, u32 port);
struct rig *rig_alloc(struct kunit *test);
struct rig *rig_new(struct kunit *test, const char *dev_a, const char *dev_b);
void rig_make_qp(struct kunit *test, struct rig *r, struct rig_end *e);
void rig_make_qps(struct kunit *test, struct rig *r);
void rig_connect(struct kunit *test, struct rig *r);
void rig_reconnect(struct kunit *test, struct rig *r);
void rig_connect_end(struct kunit *test, struct rig *r, struct rig_end *e, struct rig_end *peer);
void rig_start(struct kunit *test, struct rig *r);
struct rig *rig_up(struct kunit *test, const char *dev_a, const char *dev_b);

#define RIG_WARM_LEN	64
#define RIG_WARM_ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
#define RIG_BAD_KEY	0xabcdef00
struct rig *rig_warm(struct kunit *test);

/* What happens while the poster of a connection stands still, see kverbs/delay.h. */
struct rig_meanwhile {
	struct rig *r;			/* the connection; its first end posts */
	struct irq_work irq;		/* posts in a hard interrupt */
	struct kvt_thread *thread;	/* changes the queue pair */
	int err;			/* result of what was done */
	bool hardirq;			/* the post was in a hard interrupt */
	bool waits;			/* @thread waits for the poster */
};

void rig_fail_us(void *meanwhile);
void rig_fail_peer(void *meanwhile);
void rig_invalidate(void *meanwhile);
struct rig *rig_beside(struct kunit *test, struct rig *r);
int rig_freeze_us(void *meanwhile);
void rig_wait_for_freezer(void *meanwhile);

int rig_to_init(struct rig *r, struct rig_end *e);
int rig_to_rtr(struct rig *r, struct rig_end *e, struct rig_end *peer);
int rig_to_rts(struct rig *r, struct rig_end *e);
int rig_to(struct ib_qp *qp, enum ib_qp_state state);
enum ib_qp_state rig_state(struct ib_qp *qp);

void rig_set_route(struct rdma_ah_attr *attr, const struct rig_end *from, const struct rig_end *to);

struct ib_sge rig_sge(struct rig_end *e, size_t offset, u32 len);
int rig_recv(struct rig_end *e, u64 id, size_t offset, u32 len);
int rig_send(struct rig_end *e, u64 id, size_t offset, u32 len);
void rig_recv_many(struct kunit *test, struct rig_end *e, u64 id, u32 nr, u32 len);
void rig_send_many(struct kunit *test, struct rig_end *e, u64 id, u32 nr, u32 len);
int rig_rdma(struct rig_end *e, enum ib_wr_opcode op, u64 id, size_t offset,
	     u32 len, u64 remote, u32 rkey);
int rig_inv(struct rig_end *e, enum ib_wr_opcode op, u64 id, u32 key);
int rig_atomic(struct rig_end *e, enum ib_wr_opcode op, u64 id, size_t offset,
	       const struct ib_atomic_wr *target);
void rig_send_wr(struct ib_send_wr *wr, u64 id, struct ib_sge *sge, int num);

struct ib_mr *rig_mr(struct kunit *test, struct ib_pd *pd);
int rig_map(struct rig_end *e, struct ib_mr *mr, size_t offset, u32 len);
int rig_post_reg(struct rig_end *e, struct ib_mr *mr, u64 id, int access);
void rig_register(struct kunit *test, struct rig_end *e, int access);
void rig_register_apart(struct kunit *test, struct rig_end *e, int access);
struct ib_mr *rig_swapped_pages(struct kunit *test, struct rig_end *e, int access);
struct rig_end *rig_block(struct kunit *test, const struct rig_end *e, u8 fill);
void rig_register_blocks(struct kunit *test, struct rig_end *block, u32 nr,
			 const struct rig_end *last, int access);
void rig_destroy_qp(struct kunit *test, struct rig_end *e);

void rig_expect_event(struct kunit *test, struct rig_end *e, enum ib_event_type want);
void rig_expect_no_event(struct kunit *test, struct rig_end *e);
u64 rig_counter(struct kunit *test, struct rig_end *e, const char *name);
bool rig_counts_to(struct kunit *test, struct rig_end *e, const char *name, u64 value);

bool rig_poll(struct ib_cq *cq, struct ib_wc *wc);
bool rig_empty(struct ib_cq *cq);
void rig_expect_wcs(struct kunit *test, struct ib_cq *cq, u64 id, u32 nr,
		    enum ib_wc_status want);

#define RIG_EXPECT_WC(test, cq, wc, id, want)				\
do {									\
	KUNIT_ASSERT_TRUE_MSG(test, rig_poll(cq, wc),			\
			      "no completion of %llu", (u64)(id));	\
	KUNIT_EXPECT_EQ(test, (u64)(id), (wc)->wr_id);			\
	KUNIT_EXPECT_STREQ(test, ib_wc_status_msg((wc)->status),	\
			   ib_wc_status_msg(want));			\
} while (0)

/* A send of the first end and the receive that it arrives in; @wc is that of the receive. */
#define RIG_EXPECT_DELIVERED(test, r, wc, send_id, recv_id)		\
do {									\
	RIG_EXPECT_WC(test, (r)->a.scq, wc, send_id, IB_WC_SUCCESS);	\
	RIG_EXPECT_WC(test, (r)->b.rcq, wc, recv_id, IB_WC_SUCCESS);	\
} while (0)

void rig_fill(u8 *buf, size_t len, u32 seed);
bool rig_filled(const u8 *buf, size_t len, u32 seed);
bool rig_all(const u8 *buf, size_t len, u8 value);

/* Test parameter: the devices of the two ends, which are one device or two. */
struct rig_pair {
	const char *name;
	const char *a;
	const char *b;
};

extern const struct rig_pair rig_pairs[2];
struct rig *rig_of_param(struct kunit *test);

/* A thread that stands still at a place. */
struct rig_pause {
	struct kvt_gate gate;
	char thread[TASK_COMM_LEN];	/* who came to the place */
};

struct rig_pause *rig_pause_at(struct kunit *test, const char *place);
void rig_pause_over(struct kunit *test, struct rig_pause *pause);

#endif
