/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queues whose entries a process writes, or reads, in memory that it shares with the kernel.
 *
 * Such an object is one like all others, but for where its entries are: the queues of this
 * floor ask user/ for them, by the functions below, which user/ registers before there is such
 * an object.
 *
 *   send queue		the owner of the doorbell fetches an entry when the queue pair's own
 *			ring, which has one slot, is empty: to execute it, or to flush it
 *   receive queue,	whoever needs a receive claims it there; the queue pair's, or the SRQ's,
 *   SRQ		own ring stays empty
 *   completion queue	is armed all the time, by EMU_ARM_USER, so each completion tells user/,
 *			which polls it
 *
 * Objects of the kernel have NULL in place of these pointers.
 */
#ifndef KVERBS_EMU_USER_QUEUE_H
#define KVERBS_EMU_USER_QUEUE_H

#include "../lib/outcome.h"

struct emu_cq;
struct emu_qp;
struct emu_rwqe;
struct emu_user_cq;
struct emu_user_rq;
struct emu_user_sq;

/**
 * struct emu_refusal - what is wrong with an entry that a process wrote
 * @status: status to complete it with; IB_WC_SUCCESS if nothing is
 * @why: the details
 * @opcode: what it asks for, enum ib_uverbs_wr_opcode, or any number
 */
struct emu_refusal {
	enum ib_wc_status status;
	enum emu_syndrome why;
	u32 opcode;
};

/**
 * struct emu_user_ops - what the queues call in user/
 * @fetch: put the oldest entry of a process's send queue into the ring of its queue pair, which is
 *	empty. Returns false if there is none. An entry that must not be executed is put there,
 *	too, with @refusal set. The owner of the doorbell, or whoever has the queue pair frozen,
 *	calls it, with preemption off
 * @claim: take the oldest receive, as emu_claim(): EMU_DONE; EMU_RNR if there is none; EMU_AGAIN
 *	while the size changes; EMU_FAILED if it has less than @room bytes. Any context,
 *	preemption off
 * @used: count the receives that are there. Any context, under RCU
 * @depth: how many receives there can be. Process context
 * @reset: the queue pair, which is frozen and closed, starts anew: what the process has posted is
 *	dropped. Process context
 * @sends_end: how far the process has written requests. Whoever has the queue pair frozen
 *	calls it
 * @drop_sends: what has been posted up to @end is dropped, of a queue pair that has never sent.
 *	Whoever has the queue pair frozen calls it
 * @flushed: the queue pair is in the error state, and no receive is left in it: what the process
 *	posts from now on is to be flushed, too. Any context but NMI, preemption off; never while
 *	the queue pair is frozen
 * @completed: there may be something to poll. Any context but NMI
 * @settle: wait until what is in a process's CQ now has been taken from there; a grace period later,
 *	the process has it. Process context, with the CQ's resize_lock held
 */
struct emu_user_ops {
	bool (*fetch)(struct emu_qp *qp, struct emu_refusal *refusal);
	enum emu_outcome (*claim)(struct emu_user_rq *rq, u64 room, struct emu_rwqe *copy);
	u32 (*used)(struct emu_user_rq *rq);
	u32 (*depth)(const struct emu_user_rq *rq);
	void (*reset)(struct emu_qp *qp);
	u32 (*sends_end)(const struct emu_qp *qp);
	void (*drop_sends)(struct emu_qp *qp, u32 end);
	void (*flushed)(struct emu_qp *qp);
	void (*completed)(struct emu_cq *cq, bool solicited);
	void (*settle)(struct emu_cq *cq);
};

/* Set before there is an object of a process; defined in qp.c. */
extern const struct emu_user_ops *emu_user;

#endif
