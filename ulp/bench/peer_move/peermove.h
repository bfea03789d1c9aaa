/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_peer_move: declarations that its files share.
 *
 * main.c  module, sessions, their commands
 * move.c  two connected queue pairs, and transfers between them
 */
#ifndef KVERBS_PEERMOVE_H
#define KVERBS_PEERMOVE_H

#include <kverbs/ca.h>
#include <linux/completion.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

#define MOVE_SIDES	2
/* Maximum number of outstanding work requests of an operation. */
#define MOVE_DEPTH	64

/**
 * struct move_op - an operation of a session
 * @opcode: SEND, RDMA_WRITE, RDMA_READ or one of the atomics
 * @side: the side that performs it
 * @laddr: address of its own memory
 * @lkey: local key for @laddr
 * @raddr: address of the other side's memory
 * @rkey: key for that memory: with SEND the local key, otherwise the remote key
 * @len: bytes of a message
 * @count: messages, all from the same memory to the same memory
 * @compare: COMP_SWAP: value to compare with; FETCH_ADD: value to add
 * @swap: COMP_SWAP: value to swap in
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
 * struct move_result - result of an operation
 * @send: status of the first request that failed, else success
 * @recv: the same for the requests that receive
 * @done: messages that completed successfully
 */
struct move_result {
	enum ib_wc_status send;
	enum ib_wc_status recv;
	u32 done;
};

/**
 * struct move_side - one of the two ends
 * @ca: PD of the process, or NULL
 * @port: attributes of the port
 * @cq: completion queue of @qp
 * @qp: queue pair in that PD; NULL while not connected
 */
struct move_side {
	struct ib_ca_pd *ca;
	struct ib_port_attr port;
	struct ib_cq *cq;
	struct ib_qp *qp;
};

/**
 * struct move_pair - two sides
 * @side: the sides
 * @send_cqe: CQE of requests that send
 * @recv_cqe: CQE of requests that receive
 * @posted: work requests posted by the current operation
 * @stopping: a device goes, and its removal waits for the operation
 * @lock: guards @result and @ended
 * @result: result of the current operation
 * @ended: work requests that have completed
 * @news: signals another completion
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
