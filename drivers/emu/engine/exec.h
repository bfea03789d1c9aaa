/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Execution of work queue entries: what the engine and its transports share.
 */
#ifndef KVERBS_EMU_EXEC_H
#define KVERBS_EMU_EXEC_H

#include "../memory/memory.h"
#include "../queue/complete.h"
#include "../queue/doorbell.h"
#include "../queue/recv.h"
#include "engine.h"

/**
 * struct emu_exec - an owner at work on one queue pair
 * @qp: the queue pair, as requester
 * @peer: in memory, its responder, whose gate is entered; NULL if none is entered. Only
 *	used by connected queue pairs
 * @source: the region of the message's memory, entered, if it takes no cursor to read it; or NULL
 * @may_sleep: the owner is a runner, which may sleep
 * @messages: messages sent to @peer and not counted yet
 * @bytes: bytes of these messages
 * @rnr_timer: with EMU_RNR, code of the time to wait, as the responder told it
 * @status: with EMU_FAILED, the status of the entry
 * @delay_ns: with EMU_DELAYED, how long to wait
 * @cost: what entries have cost besides their own bytes: further copies of a multicast, and
 *	memory in many pieces. In bytes, to count against the budget
 *
 * Preemption is off while an owner executes, except now and then while a runner copies a
 * long message or delivers a multicast. Each message wakes a consumer, which would otherwise
 * preempt the owner after every message.
 */
struct emu_exec {
	struct emu_qp *qp;
	struct emu_qp *peer;
	struct emu_region *source;
	bool may_sleep;
	u8 rnr_timer;
	u8 status;
	u32 messages;
	u64 bytes;
	u64 delay_ns;
	u64 cost;
};

/* What each piece of an entry's memory, except the last, costs at least. */
#define EMU_PIECE_COST	SZ_2K

/* What each piece after the first costs for the check of its key, whether it is copied or not. */
#define EMU_CHECK_COST	SZ_1K

/* The delay before an entry is tried again that waits for something short. */
#define EMU_SOON_NS	(100 * NSEC_PER_USEC)

/*
 * Has the entry tried again a little later: memory that it needs, at either end, is being moved, or
 * somebody is changing what it needs.
 */
static inline enum emu_outcome emu_retry_soon(struct emu_exec *ex)
{
	ex->delay_ns = EMU_SOON_NS;
	return EMU_DELAYED;
}

/*
 * Whether the owner may execute entries: in RTS, while no freezer waits. The owner checks this
 * before each entry. emu_may_execute() also allows one in SQD.
 */
static __always_inline bool emu_may_send(const struct emu_qp *qp)
{
	return likely(!READ_ONCE(qp->freezing) && atomic_read(&qp->state) == IB_QPS_RTS);
}

/* engine.c */
void emu_serve(struct emu_qp *qp, s64 budget, bool may_sleep);

/* exec.c */
enum emu_outcome emu_exec_wqe(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
enum emu_outcome emu_fail_local(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				enum ib_wc_status status, enum emu_syndrome why);
enum emu_outcome emu_fail_memory(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				 enum emu_syndrome why);
bool emu_open_local(struct emu_exec *ex, struct emu_swqe *wqe, int access,
		    struct emu_cursor *local);
void emu_copy(struct emu_exec *ex, struct emu_cursor *to, struct emu_cursor *from, u32 length);

#endif
