/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The transport: how the engine reaches the peers of a queue pair.
 *
 * The engine knows when an entry is executed, how often it is tried, what it costs, and in
 * which state. What happens to it then is up to the transport of the queue pair's port: it
 * finds the peer, moves the data, and completes the entry. engine/in_memory.c is the one for
 * peers in this machine's memory. Documentation/emu.rst says what another one has to provide.
 */
#ifndef KVERBS_EMU_TRANSPORT_H
#define KVERBS_EMU_TRANSPORT_H

#include "../lib/outcome.h"

struct emu_exec;
struct emu_qp;
struct emu_swqe;

/**
 * struct emu_transport - functions of a transport
 * @fastpath: the engine need not ask for connected queue pairs: it calls the functions of
 *	engine/in_memory.c, which sets this, directly, or does what they do
 * @send: execute a SEND, with immediate data or an invalidation or without, over a connection
 * @write: execute an RDMA WRITE, with immediate data or without
 * @read: execute an RDMA READ, with an invalidation or without
 * @atomic: execute a CMP_SWP, FETCH_ADD or ATOMIC WRITE
 * @datagram: execute a SEND of a UD or GSI queue pair, to one queue pair or to a multicast
 *	group
 * @leave: the owner stops executing: let go of what was kept from entry to entry
 * @forget: the path has changed, or ends: forget what is known of the peer
 *
 * The first five execute the oldest entry of a send queue. The owner of the queue pair's
 * doorbell calls them with preemption off, from any context but NMI; if ex->may_sleep, they may
 * enable preemption for a while. They neither sleep nor wait. They return, with the entry complete
 * and gone,
 *
 *   EMU_DONE		if the next one may follow
 *   EMU_FAILED		if the queue pair has failed, or its send queue
 *
 * or, with the entry where it was, to be called for it again
 *
 *   EMU_DELAYED	after ex->delay_ns nanoseconds, or when emu_qp_unpark() ends the wait
 *   EMU_RNR		after the time that ex->rnr_timer stands for, as often as rnr_retry says
 *   EMU_NO_RESPONSE	after the timeout, as often as retry_cnt says
 *   EMU_AGAIN		by a runner, soon
 *   EMU_RUNNER		the same, but the entry was not tried
 *
 * @leave is called by the owner, too. @forget is called in process context, with the queue pair
 * frozen: no entry is being executed, and none will be before the call returns.
 */
struct emu_transport {
	bool fastpath;
	enum emu_outcome (*send)(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
	enum emu_outcome (*write)(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
	enum emu_outcome (*read)(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
	enum emu_outcome (*atomic)(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
	enum emu_outcome (*datagram)(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
	void (*leave)(struct emu_exec *ex);
	void (*forget)(struct emu_qp *qp);
};

#endif
