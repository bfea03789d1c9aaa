/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_peer_move: what its files share.
 *
 * main.c  module, sessions, their commands
 * move.c  two connected queue pairs, and what moves between them
 */
#ifndef KVERBS_PEERMOVE_H
#define KVERBS_PEERMOVE_H

#include <kverbs/ca.h>
#include <linux/completion.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#define MOVE_SIDES	2
/* Work requests of an operation that may be under way. */
#define MOVE_DEPTH	64

/**
 * struct move_op - what a session is to do
 * @opcode: SEND, RDMA_WRITE, RDMA_READ or one of the atomics
 * @side: who does it
 * @laddr: where its own memory is
 * @lkey: key of that
 * @raddr: where the other side's memory is
 * @rkey: key of that: of SEND the local one, of all others the remote one
 * @len: bytes of a message
 * @count: messages, all from the same memory to the same memory
 * @compare: COMP_SWAP: to compare with; FETCH_ADD: to add
 * @swap: COMP_SWAP: to swap in
 */
struct move_op {
	enum ib_wr_opcode opcode;
	unsigned int side;
	u64 laddr;
	u32 lkey;
	u64 raddr;
	u32 rkey;
	u32 len;
	u32 count;
	u64 compare;
	u64 swap;
};

/**
 * struct move_result - what came of it
 * @send: status of the first request that failed, else success
 * @recv: likewise of those that receive
 * @done: messages that were sent, or what else they are, with success
 */
struct move_result {
	enum ib_wc_status send;
	enum ib_wc_status recv;
	u32 done;
};

/**
 * struct move_side - one of the two ends
 * @ca: PD of the process, or NULL
 * @port: what the port says of itself
 * @cq: of the queue pair
 * @qp: in that PD; NULL between the times of being connected
 */
struct move_side {
	struct ib_ca_pd *ca;
	struct ib_port_attr port;
	struct ib_cq *cq;
	struct ib_qp *qp;
};

/**
 * struct move_pair - two sides
 * @side: they
 * @send_cqe: of requests that send
 * @recv_cqe: of those that receive
 * @posted: work requests of the operation under way
 * @stopping: a device goes, which waits for the operation
 * @lock: guards @result and @ended
 * @result: of the operation under way
 * @ended: work requests that had a completion
 * @news: there is another completion
 */
struct move_pair {
	struct move_side side[MOVE_SIDES];
	struct ib_cqe send_cqe;
	struct ib_cqe recv_cqe;
	u32 posted;
	bool stopping;
	spinlock_t lock;
	struct move_result result;
	u32 ended;
	struct completion news;
};

/* move.c */
void move_pair_init(struct move_pair *pair);
int move_pair_run(struct move_pair *pair, const struct move_op *op,
		  struct move_result *res);
void move_pair_disconnect(struct move_pair *pair);

static inline struct ib_device *move_device(const struct move_side *side)
{
	return side->ca->pd->device;
}

#endif
