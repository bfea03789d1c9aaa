// SPDX-License-Identifier: GPL-2.0-only
/*
 * Captures: what is recorded of a message, by the owner that executes it.
 *
 * Nothing here is called unless emu_detour is true: while somebody captures, on any device, or
 * faults are injected. Every message of every device then goes through exec.c.
 *
 * A record is reserved before the message is executed, in the buffer of the sender's device and
 * in that of the device that it goes to, if somebody captures there. It then has all that is
 * sent: what has been executed may have been changed by its owner. It is published afterwards,
 * with the answer; or it is skipped, if nothing was sent because the entry waits, or is invalid.
 * The fabric has no packets, hence no acknowledgments: what one would say is derived from how
 * the execution ended. READs and atomics are executed in two steps, between which their answers
 * are recorded.
 *
 * Nobody waits: a record that finds the buffer full is lost, and counted. The buffer is a ring
 * as of work requests (ring.h): whoever makes a record holds up those behind it until it is
 * published, but only towards the reader.
 */
#include <linux/ktime.h>

#include "../net/net.h"
#include "capture.h"
#include "in_memory.h"

#define EMU_PSN_MASK	0xffffff

/* Syndromes of an AETH: IBTA vol. 1, 9.7.5.2.1 and 9.7.5.2.4. */
#define EMU_AETH_ACK		0x1f
#define EMU_AETH_RNR_NAK	0x20
#define EMU_AETH_NAK_REQUEST	0x61
#define EMU_AETH_NAK_ACCESS	0x62
#define EMU_AETH_NAK_OPERATION	0x63

static bool emu_is_read(const struct emu_swqe *wqe)
{
	return wqe->opcode == IB_WR_RDMA_READ || wqe->opcode == IB_WR_RDMA_READ_WITH_INV;
}

static bool emu_is_write(const struct emu_swqe *wqe)
{
	return wqe->opcode == IB_WR_RDMA_WRITE || wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
}

/* Whether the answer to the request is the previous value of the memory. */
static bool emu_is_atomic(const struct emu_swqe *wqe)
{
	return wqe->opcode == IB_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == IB_WR_ATOMIC_FETCH_AND_ADD;
}

/* Bytes of data in a packet. Datagrams have one. */
static u32 emu_packet_bytes(const struct emu_qp *qp)
{
	int mtu = -1;

	if (!emu_qp_is_datagram(qp))
		mtu = ib_mtu_enum_to_int(qp->attr.path_mtu);
	return mtu > 0 ? mtu : ib_mtu_enum_to_int(READ_ONCE(qp->port->mtu));
}

/* Whether the operand is in the entry itself, so that no data is sent. */
static bool emu_has_operand(const struct emu_swqe *wqe)
{
	return emu_is_atomic(wqe) || wqe->opcode == IB_WR_ATOMIC_WRITE;
}

/* Whether executing the entry sends a message, and not only ends what was sent at an earlier try. */
static bool emu_is_sent(const struct emu_qp *qp, const struct emu_swqe *wqe)
{
	if (READ_ONCE(qp->port->state) != IB_PORT_ACTIVE)
		return false;
	/* Other operations have no address, and fail. */
	if (emu_qp_is_datagram(qp))
		return emu_is_datagram(wqe) && wqe->length <= emu_packet_bytes(qp);
	if (emu_is_read(wqe))
		return !wqe->rdma.data_done;
	if (emu_has_operand(wqe))
		return !wqe->atomic.done;
	switch (wqe->opcode) {
	case IB_WR_SEND:
	case IB_WR_SEND_WITH_IMM:
	case IB_WR_SEND_WITH_INV:
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return true;
	default:
		return false;
	}
}

/* --- the records of a message -------------------------------------------------- */

/* Reserves a record in the buffer of a device, if somebody captures there. Under RCU. */
static void emu_capture_at(struct emu_device *edev, u32 src_qpn, u32 dest_qpn,
			   struct emu_captured *done)
{
	struct emu_capture *capture = rcu_dereference(edev->capture);
	struct emu_capture_slot *slot;
	u32 pos;

	if (!capture || (capture->qpn && capture->qpn != src_qpn && capture->qpn != dest_qpn) ||
	    !emu_gate_enter(&capture->gate))
		return;
	slot = emu_ring_reserve_shared(&capture->ring, &pos);
	if (!slot) {
		atomic64_inc(&capture->lost);
		emu_gate_leave(&capture->gate);
		return;
	}
	memset(&slot->rec, 0, sizeof(slot->rec));
	slot->rec.lost = atomic64_read(&capture->lost);
	done->end[done->nr].capture = capture;
	done->end[done->nr].slot = slot;
	done->end[done->nr++].pos = pos;
}

/* Copies the data in the requester's memory to each record, up to the capture's snaplen. */
static void emu_capture_data(struct emu_exec *ex, struct emu_swqe *wqe, struct emu_captured *done)
{
	struct emu_cursor from, to;
	unsigned int i;
	u32 length;

	for (i = 0; i < done->nr; i++) {
		struct emu_capture_slot *slot = done->end[i].slot;

		length = min(wqe->length, done->end[i].capture->snaplen);
		if (!length || !emu_open_local(ex, wqe, 0, &from))
			continue;
		emu_cursor_init_inline(&to, &ex->qp->ibqp, slot->data, length);
		emu_copy(ex, &to, &from, length);
		emu_cursor_end(&from);
		slot->rec.data_size = (u8 *)to.addr - slot->data;
	}
}

static void emu_record_address(struct kverbs_emu_capture_record *rec, const struct emu_qp *qp,
			       const struct emu_av *av)
{
	rec->slid = READ_ONCE(qp->port->lid);
	rec->dlid = av->dlid;
	rec->sl = av->sl;
	rec->vlan_id = av->vlan_id;
	memcpy(rec->smac, av->smac, sizeof(rec->smac));
	if (!av->grh)
		return;
	rec->flags |= KVERBS_EMU_CAPTURE_GRH;
	rec->flow = av->flow;
	rec->hop_limit = av->hop_limit;
	memcpy(rec->sgid, &av->sgid, sizeof(rec->sgid));
	memcpy(rec->dgid, &av->dgid, sizeof(rec->dgid));
}

static void emu_record_datagram(struct kverbs_emu_capture_record *rec, const struct emu_qp *qp,
				struct emu_swqe *wqe)
{
	rec->transport = KVERBS_EMU_CAPTURE_UD;
	rec->dest_qpn = wqe->ud.qpn;
	rec->qkey = wqe->ud.qkey;
	rec->pkey = emu_send_pkey(qp, wqe);
	emu_record_address(rec, qp, emu_swqe_av(qp, wqe));
}

static void emu_record_connected(struct kverbs_emu_capture_record *rec, const struct emu_qp *qp,
				 const struct emu_swqe *wqe)
{
	rec->transport = qp->ibqp.qp_type == IB_QPT_RC ? KVERBS_EMU_CAPTURE_RC :
							 KVERBS_EMU_CAPTURE_UC;
	rec->dest_qpn = qp->dest_qpn;
	rec->pkey = emu_send_pkey(qp, wqe);
	if (qp->edev->ethernet)
		memcpy(rec->dmac, qp->attr.ah_attr.roce.dmac, sizeof(rec->dmac));
	emu_record_address(rec, qp, &qp->av);
	if (emu_has_operand(wqe)) {
		rec->remote_addr = wqe->atomic.remote_addr;
		rec->rkey = wqe->atomic.rkey;
		rec->swap = wqe->atomic.swap;
		if (emu_is_atomic(wqe))
			rec->compare_add = wqe->atomic.compare_add;
	} else if (emu_is_read(wqe) || emu_is_write(wqe)) {
		rec->remote_addr = wqe->rdma.remote_addr;
		rec->rkey = wqe->rdma.rkey;
	}
}

static void emu_record_message(struct kverbs_emu_capture_record *rec, const struct emu_qp *qp,
			       struct emu_swqe *wqe)
{
	rec->version = KVERBS_EMU_CAPTURE_VERSION;
	rec->kind = KVERBS_EMU_CAPTURE_MESSAGE;
	rec->opcode = wqe->opcode;
	rec->time = ktime_get_real_ns();
	rec->length = wqe->length;
	rec->src_qpn = qp->ibqp.qp_num;
	rec->psn = qp->psn;
	rec->mtu = emu_packet_bytes(qp);
	if (wqe->opcode == IB_WR_SEND_WITH_IMM || wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		rec->imm_data = wqe->ex.imm_data;
	else if (wqe->opcode == IB_WR_SEND_WITH_INV)
		rec->invalidate_rkey = wqe->ex.invalidate_rkey;
	if (wqe->send_flags & IB_SEND_SOLICITED)
		rec->flags |= KVERBS_EMU_CAPTURE_SOLICITED;
	if (qp->retrying)
		rec->flags |= KVERBS_EMU_CAPTURE_RETRIED;
	if (emu_qp_is_datagram(qp))
		emu_record_datagram(rec, qp, wqe);
	else
		emu_record_connected(rec, qp, wqe);
}

/**
 * emu_capture_begin() - record what is sent, where somebody captures
 * @ex: the owner at work
 * @wqe: the entry, not executed yet
 * @done: set to the records; emu_capture_end() must follow
 *
 * Context: The owner of the queue pair's doorbell, preemption off; may enable it for a while if
 * ex->may_sleep.
 */
void emu_capture_begin(struct emu_exec *ex, struct emu_swqe *wqe, struct emu_captured *done)
{
	struct emu_qp *qp = ex->qp;
	bool datagram = emu_qp_is_datagram(qp);
	const struct emu_port *to;
	u32 src_qpn = qp->ibqp.qp_num, dest_qpn;
	unsigned int i;

	done->nr = 0;
	done->answered = false;
	if (!emu_is_sent(qp, wqe))
		return;
	dest_qpn = datagram ? wqe->ud.qpn : qp->dest_qpn;
	rcu_read_lock();
	emu_capture_at(qp->edev, src_qpn, dest_qpn, done);
	/* Multicasts arrive at many ports, so they are captured only where they are sent. */
	to = datagram && dest_qpn == IB_MULTICAST_QPN ? NULL :
	     emu_fabric_find(datagram ? emu_swqe_av(qp, wqe) : &qp->av);
	if (to && to->edev != qp->edev)
		emu_capture_at(to->edev, src_qpn, dest_qpn, done);
	rcu_read_unlock();
	for (i = 0; i < done->nr; i++)
		emu_record_message(&done->end[i].slot->rec, qp, wqe);
	if (!emu_is_read(wqe) && !emu_has_operand(wqe))
		emu_capture_data(ex, wqe, done);
}

/**
 * emu_capture_answer() - record the answer of a READ or an atomic, which has arrived
 * @ex: the owner at work
 * @wqe: the entry, not complete yet
 * @done: the records
 *
 * Context: As of emu_capture_begin().
 */
void emu_capture_answer(struct emu_exec *ex, struct emu_swqe *wqe, struct emu_captured *done)
{
	unsigned int i;

	done->answered = true;
	if (emu_is_read(wqe)) {
		emu_capture_data(ex, wqe, done);
		return;
	}
	for (i = 0; i < done->nr; i++)
		done->end[i].slot->rec.found = wqe->atomic.swap;
}

/* Derives the responder's answer from the outcome. Returns false if nothing was sent. */
static bool emu_record_answer(struct kverbs_emu_capture_record *rec, const struct emu_exec *ex,
			      enum emu_outcome outcome)
{
	rec->syndrome = EMU_AETH_ACK;
	switch (outcome) {
	case EMU_DONE:
		break;
	case EMU_RNR:
		rec->syndrome = EMU_AETH_RNR_NAK | ex->rnr_timer;
		break;
	case EMU_FAILED:
		if (ex->status == IB_WC_REM_INV_REQ_ERR)
			rec->syndrome = EMU_AETH_NAK_REQUEST;
		else if (ex->status == IB_WC_REM_ACCESS_ERR)
			rec->syndrome = EMU_AETH_NAK_ACCESS;
		else if (ex->status == IB_WC_REM_OP_ERR)
			rec->syndrome = EMU_AETH_NAK_OPERATION;
		else
			return false;
		break;
	case EMU_NO_RESPONSE:
	case EMU_DROPPED:
		return true;
	default:
		return false;
	}
	if (rec->transport == KVERBS_EMU_CAPTURE_RC)
		rec->flags |= KVERBS_EMU_CAPTURE_ANSWERED;
	return true;
}

/* Advances the PSN, and the MSN if the responder has completed the message. */
static void emu_capture_count(struct emu_qp *qp, const struct kverbs_emu_capture_record *rec,
			      enum emu_outcome outcome)
{
	u32 packets = rec->length ? DIV_ROUND_UP(rec->length, rec->mtu) : 1;

	qp->psn = (qp->psn + packets) & EMU_PSN_MASK;
	if (outcome == EMU_DONE)
		qp->msn = (qp->msn + 1) & EMU_PSN_MASK;
}

/**
 * emu_capture_end() - record how a message ended, and publish its records
 * @ex: the owner at work
 * @outcome: how the execution of the entry ended
 * @done: the records
 *
 * Context: The owner of the queue pair's doorbell, preemption off.
 */
void emu_capture_end(struct emu_exec *ex, enum emu_outcome outcome, struct emu_captured *done)
{
	unsigned int i;
	u64 now;

	if (!done->nr)
		return;
	now = ktime_get_real_ns();
	if (done->answered)
		outcome = EMU_DONE;
	if (outcome == EMU_DONE || outcome == EMU_DROPPED)
		emu_capture_count(ex->qp, &done->end[0].slot->rec, outcome);
	for (i = 0; i < done->nr; i++) {
		struct emu_capture *capture = done->end[i].capture;
		struct emu_capture_slot *slot = done->end[i].slot;

		slot->dropped = !emu_record_answer(&slot->rec, ex, outcome);
		slot->rec.ended = now;
		slot->rec.msn = ex->qp->msn;
		slot->rec.size = sizeof(slot->rec) + slot->rec.data_size;
		kverbs_delay("emu_capture_end");
		emu_ring_publish(&slot->slot, done->end[i].pos);
		/* full barrier: whoever goes to sleep sees the record */
		if (wq_has_sleeper(&capture->wait))
			irq_work_queue(&capture->wake);
		emu_gate_leave(&capture->gate);
	}
}
