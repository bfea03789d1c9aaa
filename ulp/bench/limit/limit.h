/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_limit: what posting, executing and polling messages costs at the least, if the
 * device promises what the software HCA promises. It is no device: it has queues for the
 * handlers of ulp/pingpong/plain.h, and nothing else.
 *
 * main.c   module, parameters, debugfs, one run
 * queue.c  the verbs: post, execute, poll, arm
 *
 * Any number of contexts may post to a queue pair, to a receive queue, and poll a CQ, at
 * once, in any context, interrupts included; none of them waits for another. A queue pair
 * is executed by one of them, the owner of its doorbell.
 */
#ifndef KVERBS_LIMIT_H
#define KVERBS_LIMIT_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

/*
 * A ring of entries, each with a position in front. An entry may be written by who has
 * taken its position at the head, when its 'pos' is that position; it is published as
 * position + 1. Who takes it at the tail gives it back as position + size.
 */
struct lim_ring {
	atomic_t head ____cacheline_aligned_in_smp;
	atomic_t tail ____cacheline_aligned_in_smp;
	u32 size ____cacheline_aligned_in_smp;	/* a power of two */
	u32 mask;
};

/* Users of what may go away, and in the top bit that it has. */
struct lim_gate {
	atomic_t users;
	struct completion empty;
};

struct lim_region {
	struct lim_gate gate;
	u32 key;
	u64 start;
	u64 length;
};

struct lim_sqe {
	u32 pos;
	enum ib_wr_opcode opcode;
	struct ib_cqe *cqe;
	struct ib_sge sge;
	u64 remote_addr;
	u32 rkey;
};

struct lim_rqe {
	u32 pos;
	struct ib_cqe *cqe;
	struct ib_sge sge;
};

struct lim_cqe {
	u32 pos;
	enum ib_wc_status status;
	struct ib_cqe *cqe;
	struct ib_qp *qp;
	u32 byte_len;
	enum ib_wc_opcode opcode;
};

/* @due: to be polled; @armed: a completion is to make it so; @lost: it was full once. */
struct lim_cq {
	struct ib_cq ib;
	struct lim_ring ring;
	struct lim_cqe *entry;
	bool lost;
	int armed ____cacheline_aligned_in_smp;
	bool due;
};

struct lim_rq {
	struct lim_ring ring;
	struct lim_rqe *entry;
};

struct lim_srq {
	struct ib_srq ib;
	struct lim_rq rq;
};

/* @doorbell: see queue.c. @broken: a message has failed, and nothing more is executed. */
struct lim_qp {
	struct ib_qp ib;
	u32 local_key;
	struct lim_cq *send_cq;
	struct lim_cq *recv_cq;
	struct lim_rq *rq;
	struct lim_qp *peer;
	struct lim_region *region;	/* the one that @peer grants access to */
	struct lim_sqe *sq;
	bool broken;
	struct lim_gate gate;
	struct lim_ring ring;
	atomic_t doorbell ____cacheline_aligned_in_smp;
	struct lim_rq own_rq;
};

void lim_ring_init(struct lim_ring *ring, u32 size);
int lim_rq_init(struct lim_rq *rq, u32 size);
int lim_sq_init(struct lim_qp *qp, u32 size);
int lim_cq_init(struct lim_cq *cq, u32 size);
void lim_gate_init(struct lim_gate *gate);
void lim_gate_close(struct lim_gate *gate);

int lim_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad);
int lim_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad);
int lim_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);
int lim_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc);
int lim_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);

#endif
