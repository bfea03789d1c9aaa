// SPDX-License-Identifier: GPL-2.0-only
/*
 * Execution of one work queue entry: what all transports share, and operations
 * that only concern the queue pair itself.
 *
 * When something is wrong, what each end sees follows the IBTA's rules for the
 * requester's and the responder's completion, which the names of the status codes
 * reflect. Documentation/conformance.rst has the table, and kunit/ has a case for
 * each row.
 */
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include "../memory/region.h"
#include "../net/net.h"
#include "capture.h"
#include "in_memory.h"

/* Bytes copied between two checks whether someone else wants the CPU, or the memory. */
#define EMU_COPY_CHUNK	SZ_64K

/*
 * Ends an entry that the requester itself cannot execute. Queue pairs of
 * unreliable transports go on receiving: IBTA vol. 1, 10.3.1.5, the SQE state. The
 * state changes first, so whoever sees the completion finds it changed.
 */
enum emu_outcome emu_fail_local(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				enum ib_wc_status status, enum emu_syndrome why)
{
	if (ex->qp->ibqp.qp_type == IB_QPT_RC)
		emu_qp_fail(ex->qp);
	else
		emu_qp_fail_sends(ex->qp);
	emu_complete_send(ex->qp, wqe, pos, status, why);
	ex->status = status;
	return EMU_FAILED;
}

/*
 * Ends an entry whose own memory cannot be used. If the memory merely cannot be
 * used yet, the entry waits instead.
 */
enum emu_outcome emu_fail_memory(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
				 enum emu_syndrome why)
{
	if (why == EMU_SYN_PAUSED)
		return emu_retry_soon(ex);
	return emu_fail_local(ex, wqe, pos, IB_WC_LOC_PROT_ERR, why);
}

/*
 * Copies @length bytes, or until one side fails; the caller checks ->why of both.
 * A long message does not keep others from the CPU. If memory is being taken
 * away, the copy leaves it after one more chunk at the latest.
 */
void emu_copy(struct emu_exec *ex, struct emu_cursor *to, struct emu_cursor *from, u32 length)
{
	bool yield = ex->may_sleep && length > EMU_SHORT_BYTES;
	size_t len;

	kverbs_delay("emu_copy");
	if (yield) {
		preempt_enable();
		kverbs_delay("emu_copy_long");
	}
	while (length && emu_cursor_next(from) && emu_cursor_next(to)) {
		if (emu_cursor_must_leave(from) || emu_cursor_must_leave(to))
			break;
		len = min3(from->len, to->len, (size_t)min_t(u32, length, EMU_COPY_CHUNK));
		memcpy(to->addr, from->addr, len);
		to->addr += len;
		to->len -= len;
		from->addr += len;
		from->len -= len;
		length -= len;
		if (likely(!length))
			break;
		if (unlikely(len < EMU_PIECE_COST))
			ex->cost += EMU_PIECE_COST - len;
		if (yield)
			cond_resched_tasks_rcu_qs();
	}
	if (yield)
		preempt_disable();
}

/*
 * Opens the requester's own buffers, before the peer is involved. Returns false
 * with the reason in @local->why if they are not usable.
 */
bool emu_open_local(struct emu_exec *ex, struct emu_swqe *wqe, int access,
		    struct emu_cursor *local)
{
	if (unlikely(wqe->send_flags & IB_SEND_INLINE)) {
		emu_cursor_init_inline(local, &ex->qp->ibqp, wqe->sge, wqe->length);
		return true;
	}
	if (unlikely(wqe->num_sge > 1))
		ex->cost += (wqe->num_sge - 1) * EMU_CHECK_COST;
	emu_cursor_init(local, &ex->qp->ibqp, ex->qp->ibqp.pd, wqe->sge, wqe->num_sge, access);
	if (likely(emu_cursor_check(local)))
		return true;
	emu_cursor_end(local);
	return false;
}

/* Operations on the memory keys of the queue pair's own device. */
static noinline enum emu_outcome emu_exec_local(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	enum emu_syndrome why = EMU_SYN_NONE;
	enum emu_outcome outcome;

	switch (wqe->opcode) {
	case IB_WR_REG_MR:
		outcome = emu_region_register(&ex->qp->ibqp, &wqe->reg, &why);
		break;
	case IB_WR_BIND_MW:
		outcome = emu_region_bind(&ex->qp->ibqp, &wqe->bind, ex->qp->user_sq, &why);
		break;
	default:
		outcome = emu_region_invalidate(&ex->qp->ibqp, wqe->ex.invalidate_rkey, &why);
	}
	if (why == EMU_SYN_PAUSED)
		return emu_retry_soon(ex);
	if (outcome == EMU_FAILED)
		return emu_fail_local(ex, wqe, pos, IB_WC_MW_BIND_ERR, why);
	if (outcome == EMU_DONE)
		emu_complete_send(ex->qp, wqe, pos, IB_WC_SUCCESS, EMU_SYN_NONE);
	return outcome;
}

/* An injected RNR NAK asks for the shortest wait, 0.01 ms: IBTA table 45. */
#define EMU_RNR_SHORTEST	1

/* Loses the message on its way, for a fault. Only RC notices, as it waits for an answer. */
static enum emu_outcome emu_exec_lose(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	if (ex->qp->ibqp.qp_type == IB_QPT_RC)
		return EMU_NO_RESPONSE;
	emu_port_count(ex->qp->port, EMU_CNT_DROPPED, 1);
	emu_complete_send(ex->qp, wqe, pos, IB_WC_SUCCESS, EMU_SYN_NONE);
	return EMU_DROPPED;
}

/*
 * Injects the faults that were asked for in debugfs, instead of executing the entry or before
 * that. Returns EMU_DONE if it is to be executed.
 */
static noinline enum emu_outcome emu_exec_fault(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	struct emu_qp *qp = ex->qp;
	const struct emu_fault_site site = {
		.qpn = qp->ibqp.qp_num,
		.opcode = wqe->opcode,
		.retrying = qp->retrying,
	};
	u64 value = 0;
	u32 ms = 0;

	if (!site.retrying && !atomic_read(&qp->port->flap))
		ms = emu_fault_in_link(qp->edev, qp->port->num);
	if (ms)
		emu_port_flap(qp->port, ms);
	switch (emu_fault_in_exec(qp->edev, &site, &value)) {
	case EMU_FAULT_STATUS:
		return emu_fail_local(ex, wqe, pos, value, EMU_SYN_INJECTED);
	case EMU_FAULT_DELAYED:
		ex->delay_ns = value * NSEC_PER_USEC;
		return EMU_DELAYED;
	case EMU_FAULT_DROP:
		return emu_exec_lose(ex, wqe, pos);
	case EMU_FAULT_NO_RECEIVE:
		ex->rnr_timer = EMU_RNR_SHORTEST;
		return qp->ibqp.qp_type == IB_QPT_RC ? EMU_RNR : emu_exec_lose(ex, wqe, pos);
	case EMU_FAULT_FLAP:
		if (!atomic_read(&qp->port->flap))
			emu_port_flap(qp->port, value);
		return EMU_DONE;
	case EMU_FAULT_OVERFLOW:
		emu_cq_overflow_next(to_ecq(qp->ibqp.send_cq));
		return EMU_DONE;
	case EMU_FAULT_NONE:
		break;
	}
	return EMU_DONE;
}

/* As emu_exec_wqe(), of a queue pair whose peers are not in memory. */
static noinline enum emu_outcome emu_exec_elsewhere(struct emu_exec *ex, struct emu_swqe *wqe,
						    u32 pos)
{
	const struct emu_transport *transport = ex->qp->transport;

	if (emu_qp_is_datagram(ex->qp))
		return transport->datagram(ex, wqe, pos);
	switch (wqe->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
		return transport->send(ex, wqe, pos);
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return transport->write(ex, wqe, pos);
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return transport->read(ex, wqe, pos);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
	case IB_WR_ATOMIC_WRITE:
		return transport->atomic(ex, wqe, pos);
	default:
		return emu_exec_local(ex, wqe, pos);
	}
}

/* Executes an entry, without faults or captures. */
static __always_inline enum emu_outcome emu_exec_entry(struct emu_exec *ex, struct emu_swqe *wqe,
						       u32 pos)
{
	if (unlikely(!ex->qp->fastpath)) {
		/* Only queue pairs for datagrams are not on the fast path of this transport. */
		if (likely(ex->qp->transport == &emu_in_memory))
			return emu_exec_datagram(ex, wqe, pos);
		return emu_exec_elsewhere(ex, wqe, pos);
	}
	switch (wqe->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
		return emu_exec_send(ex, wqe, pos);
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return emu_exec_write(ex, wqe, pos);
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return emu_exec_read(ex, wqe, pos);
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
	case IB_WR_ATOMIC_WRITE:
		return emu_exec_atomic(ex, wqe, pos);
	default:
		return emu_exec_local(ex, wqe, pos);
	}
}

/*
 * Executes an entry that is being recorded. The answer of a peer in memory is recorded before
 * the entry completes, because its memory may be reused from then on.
 */
static enum emu_outcome emu_exec_recorded(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos,
					  struct emu_captured *done)
{
	enum emu_outcome outcome = EMU_DONE;

	if (!ex->qp->fastpath)
		return emu_exec_entry(ex, wqe, pos);
	switch (wqe->opcode) {
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		outcome = emu_exec_read_data(ex, wqe, pos);
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		outcome = emu_exec_atomic_data(ex, wqe, pos);
		break;
	default:
		return emu_exec_entry(ex, wqe, pos);
	}
	if (outcome != EMU_DONE)
		return outcome;
	emu_capture_answer(ex, wqe, done);
	return emu_exec_entry(ex, wqe, pos);
}

/* As emu_exec_wqe(), while faults are injected or messages captured on any device. */
static noinline enum emu_outcome emu_exec_detour(struct emu_exec *ex, struct emu_swqe *wqe,
						 u32 pos)
{
	enum emu_outcome outcome = EMU_DONE;
	struct emu_captured done;

	if (!ex->qp->fastpath && ex->qp->transport == &emu_in_memory &&
	    emu_datagram_needs_runner(ex, wqe))
		return EMU_RUNNER;
	emu_capture_begin(ex, wqe, &done);
	if (static_branch_unlikely(&emu_faulty)) {
		outcome = emu_exec_fault(ex, wqe, pos);
		/* Leave the peer: the fault may have taken a port down. */
		if (outcome == EMU_DONE)
			emu_exec_end(ex);
	}
	if (outcome == EMU_DONE)
		outcome = done.nr ? emu_exec_recorded(ex, wqe, pos, &done) :
				    emu_exec_entry(ex, wqe, pos);
	emu_capture_end(ex, outcome, &done);
	return outcome == EMU_DROPPED ? EMU_DONE : outcome;
}

/**
 * emu_exec_wqe() - execute the oldest entry of a send queue
 * @ex: the owner at work
 * @wqe: the entry
 * @pos: its position
 *
 * Context: The owner of the queue pair's doorbell, preemption off; may enable it
 * for a while if ex->may_sleep.
 * Return: see enum emu_outcome. With EMU_DONE and EMU_FAILED the entry is gone;
 * otherwise it is where it was.
 */
enum emu_outcome emu_exec_wqe(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	if (static_branch_unlikely(&emu_detour))
		return emu_exec_detour(ex, wqe, pos);
	return emu_exec_entry(ex, wqe, pos);
}
