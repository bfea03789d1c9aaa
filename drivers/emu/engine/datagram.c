// SPDX-License-Identifier: GPL-2.0-only
/*
 * Datagrams: UD, and GSI, which is queue pair 1 of each port.
 *
 * The sender's entry succeeds as soon as its own part is right. Only the receiver
 * can know the fate of the message: it is dropped and counted if there is no such
 * queue pair, if the P_Key or the Q_Key does not match, or if the oldest receive
 * has no room for it; that receive stays where it is. IBTA vol. 1, 9.8.3 and
 * 10.2.4.
 *
 * The sender waits for its own memory if that is on the move. It waits neither for a receiver's
 * memory, whose receive is then used for the next message, nor while the size of its SRQ changes:
 * either may last for as long as the receiver likes. But it waits for a receive that is just being
 * posted, which hides those behind it.
 */
#include <linux/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_pack.h>

#include "../net/net.h"
#include "in_memory.h"

/* Next header of a global route header: IBA transport, or UDP with RoCE v2. */
#define EMU_NEXT_IBA	0x1b

/*
 * A poster delivers a multicast itself if the group has at most this many members; in hard
 * interrupt it never does, because a copy may take long, depending on its receiver.
 */
#define EMU_MCAST_INLINE	8
/* After this much of a multicast, a runner enables preemption for a moment; as of a budget. */
#define EMU_MCAST_BUDGET	SZ_64K

/**
 * struct emu_datagram - a message on its way
 * @ex: the owner at work
 * @wqe: the entry
 * @av: address of the destination
 * @port: the port where it arrives; NULL for a multicast, which arrives at many
 * @pkey: P_Key of the sender
 * @why: what went wrong with the sender's memory on the way
 * @paused: ex->cost when a runner last enabled preemption
 * @again: its receiver's next receive is being posted
 * @delivered: it was delivered to at least one receiver
 */
struct emu_datagram {
	struct emu_exec *ex;
	struct emu_swqe *wqe;
	const struct emu_av *av;
	struct emu_port *port;
	u16 pkey;
	enum emu_syndrome why;
	u32 paused;
	bool delivered;
	bool again;
};

/* GSI queue pairs take any P_Key of the port; returns the index, or -1. */
static int emu_recv_pkey(const struct emu_qp *qp, u16 pkey)
{
	u32 i;

	if (qp->ibqp.qp_type != IB_QPT_GSI)
		return emu_pkeys_match(emu_port_pkey(qp->port, qp->attr.pkey_index), pkey) ?
		       qp->attr.pkey_index : -1;
	for (i = 0; i < emu_pkey_tbl_len(qp->edev); i++) {
		if (emu_pkeys_match(emu_port_pkey(qp->port, i), pkey))
			return i;
	}
	return -1;
}

static bool emu_is_ipv4(const struct emu_av *av)
{
	return av->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP &&
	       ipv6_addr_v4mapped((struct in6_addr *)&av->sgid);
}

static u8 emu_network_hdr_type(const struct emu_av *av)
{
	if (av->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return av->gid_type == IB_GID_TYPE_ROCE ? RDMA_NETWORK_ROCE_V1 : RDMA_NETWORK_IB;
	return emu_is_ipv4(av) ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
}

/* The payload length in the network header of a datagram's packet. IBTA vol. 1, 8.3.4 and A17. */
static u32 emu_datagram_paylen(const struct emu_av *av, const struct emu_swqe *wqe)
{
	u32 length = IB_BTH_BYTES + IB_DETH_BYTES + ALIGN(wqe->length, 4) + IB_ICRC_BYTES;

	if (wqe->opcode == IB_WR_SEND_WITH_IMM)
		length += sizeof(wqe->ex.imm_data);
	if (av->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP)
		length += IB_UDP_BYTES;
	return length;
}

/*
 * The 40 bytes in front of the payload: a global route header or, with RoCE v2
 * over IPv4, 20 empty bytes and an IP header. @length: bytes behind it
 */
static void emu_build_grh(union rdma_network_hdr *hdr, const struct emu_av *av, u32 length)
{
	struct iphdr *ip = &hdr->roce4grh;

	memset(hdr, 0, sizeof(*hdr));
	if (emu_is_ipv4(av)) {
		ip->version = 4;
		ip->ihl = sizeof(*ip) / 4;
		ip->tos = av->flow >> 20;
		ip->tot_len = cpu_to_be16(sizeof(*ip) + length);
		ip->ttl = av->hop_limit;
		ip->protocol = IPPROTO_UDP;
		memcpy(&ip->saddr, av->sgid.raw + 12, sizeof(ip->saddr));
		memcpy(&ip->daddr, av->dgid.raw + 12, sizeof(ip->daddr));
		ip->check = ip_fast_csum((u8 *)ip, ip->ihl);
		return;
	}
	hdr->ibgrh.version_tclass_flow = cpu_to_be32(6U << 28 | av->flow);
	hdr->ibgrh.paylen = cpu_to_be16(length);
	hdr->ibgrh.next_hdr = av->gid_type == IB_GID_TYPE_ROCE_UDP_ENCAP ? IPPROTO_UDP :
									   EMU_NEXT_IBA;
	hdr->ibgrh.hop_limit = av->hop_limit;
	hdr->ibgrh.sgid = av->sgid;
	hdr->ibgrh.dgid = av->dgid;
}

static void emu_complete_datagram(struct emu_qp *to, const struct emu_datagram *dg,
				  const struct emu_rwqe *recv, u16 pkey_index,
				  enum ib_wc_status status, enum emu_syndrome why)
{
	struct emu_qp *from = dg->ex->qp;
	bool imm = dg->wqe->opcode == IB_WR_SEND_WITH_IMM;
	struct emu_cqe *cqe;
	u32 pos;

	cqe = emu_recv_begin(to, recv->wr_id, &pos);
	if (!cqe)
		return;
	cqe->status = status;
	cqe->opcode = IB_WC_RECV;
	cqe->vendor_err = why;
	cqe->byte_len = sizeof(union rdma_network_hdr) + dg->wqe->length;
	cqe->ex.imm_data = imm ? dg->wqe->ex.imm_data : 0;
	cqe->src_qp = from->ibqp.qp_num;
	cqe->slid = READ_ONCE(from->port->lid);
	cqe->wc_flags = (dg->av->grh ? IB_WC_GRH : 0) | (imm ? IB_WC_WITH_IMM : 0) |
			(to->edev->ethernet ? IB_WC_WITH_NETWORK_HDR_TYPE : 0);
	cqe->pkey_index = pkey_index;
	cqe->sl = dg->av->sl;
	cqe->dlid_path_bits = 0;
	cqe->retires = 1;
	cqe->port_num = to->port->num;
	cqe->network_hdr_type = emu_network_hdr_type(dg->av);
	if (to->edev->ethernet && status == IB_WC_SUCCESS) {
		cqe->wc_flags |= IB_WC_WITH_SMAC;
		if (dg->av->vlan_id != EMU_NO_VLAN)
			cqe->wc_flags |= IB_WC_WITH_VLAN;
		emu_cqe_set_sender(cqe, dg->av->smac, dg->av->vlan_id);
	}
	emu_cq_end(to_ecq(to->ibqp.recv_cq), cqe, pos,
		   status != IB_WC_SUCCESS || (dg->wqe->send_flags & IB_SEND_SOLICITED));
}

/* Copies header and payload. Returns what was wrong with the receiver's memory. */
static enum emu_syndrome emu_copy_datagram(struct emu_qp *to, struct emu_datagram *dg,
					   struct emu_rwqe *recv)
{
	struct emu_exec *ex = dg->ex;
	struct emu_cursor head, body, local;
	union rdma_network_hdr hdr;
	u32 num_sge, cut;

	num_sge = emu_rwqe_clip(recv, sizeof(hdr) + dg->wqe->length, &cut);
	emu_cursor_init(&local, &to->ibqp, emu_recv_pd(to), recv->sge, num_sge,
			IB_ACCESS_LOCAL_WRITE);
	emu_build_grh(&hdr, dg->av, emu_datagram_paylen(dg->av, dg->wqe));
	emu_cursor_init_inline(&head, &ex->qp->ibqp, &hdr, sizeof(hdr));
	emu_copy(ex, &local, &head, sizeof(hdr));
	if (local.why)
		goto end;
	/* The sender has checked its own memory, but that may have changed since. */
	if (emu_open_local(ex, dg->wqe, 0, &body)) {
		emu_copy(ex, &local, &body, dg->wqe->length);
		emu_cursor_end(&body);
	}
	if (body.why)
		dg->why = body.why;
end:
	emu_cursor_end(&local);
	emu_rwqe_unclip(recv, num_sge, cut);
	return local.why;
}

/*
 * Ends a receive that was taken, but whose memory has failed with @why, or the sender's with
 * dg->why.
 */
static noinline void emu_not_delivered(struct emu_qp *to, struct emu_datagram *dg,
				       const struct emu_rwqe *recv, u16 pkey_index,
				       enum emu_syndrome why)
{
	/* Keep it for the next message if the receiver's memory moves or the sender's failed. */
	if ((why == EMU_SYN_PAUSED || (!why && dg->why)) && emu_park_recv(to, recv)) {
		if (why)
			emu_port_count(to->port, EMU_CNT_DROPPED, 1);
		return;
	}
	if (why && why != EMU_SYN_PAUSED) {
		emu_complete_datagram(to, dg, recv, pkey_index, IB_WC_LOC_PROT_ERR, why);
		emu_qp_fail(to);
		return;
	}
	/* It could not be parked, as another one is: it ends, but not by the receiver's fault. */
	emu_complete_datagram(to, dg, recv, pkey_index, IB_WC_LOC_QP_OP_ERR, EMU_SYN_REMOTE);
}

/* Delivers the message to one queue pair, whose gate is entered. */
static void emu_deliver(struct emu_qp *to, struct emu_datagram *dg)
{
	struct emu_port *from = dg->ex->qp->port;
	int pkey_index = emu_recv_pkey(to, dg->pkey);
	u32 length = dg->wqe->length;
	enum emu_syndrome why;
	struct emu_rwqe *recv = dg->ex->qp->taken;
	enum emu_outcome outcome = EMU_RNR;

	if (pkey_index < 0) {
		emu_port_count(to->port, EMU_CNT_PKEY, 1);
		return;
	}
	if (READ_ONCE(to->qkey) != dg->wqe->ud.qkey) {
		emu_port_count(to->port, EMU_CNT_QKEY, 1);
		return;
	}
	/* dg->why: the sender's memory failed while an earlier receiver's copy was made. */
	if (!dg->why)
		outcome = emu_claim(to, sizeof(union rdma_network_hdr) + length, recv);
	/* Of a multicast, other copies may have been delivered. */
	if (unlikely(outcome == EMU_AGAIN && dg->wqe->ud.qpn != IB_MULTICAST_QPN &&
		     emu_recv_is_being_posted(to))) {
		dg->again = true;
		return;
	}
	if (outcome != EMU_DONE) {
		emu_port_count(to->port, EMU_CNT_DROPPED, 1);
		return;
	}
	why = emu_copy_datagram(to, dg, recv);
	if (unlikely(why || dg->why)) {
		emu_not_delivered(to, dg, recv, pkey_index, why);
		return;
	}
	dg->delivered = true;
	emu_count_messages(from, to->port, 1, length);
	emu_complete_datagram(to, dg, recv, pkey_index, IB_WC_SUCCESS, EMU_SYN_NONE);
}

/* Under rcu_read_lock(). Returns false if the queue pair does not receive at that port. */
static bool emu_deliver_entered(struct emu_qp *to, struct emu_datagram *dg)
{
	bool here;

	/* Only inside the gate are the type and the port of the queue pair known. */
	if (!emu_gate_enter(&to->gate))
		return false;
	here = !dg->port || to->port == dg->port;
	if (here && READ_ONCE(to->port->state) == IB_PORT_ACTIVE)
		emu_deliver(to, dg);
	emu_qp_leave(to);
	return here;
}

/*
 * Delivers one copy of a multicast. A runner enables preemption now and then, so that a large
 * group does not keep others from the CPU.
 */
static void emu_deliver_copy(struct emu_qp *to, void *data)
{
	struct emu_datagram *dg = data;
	struct emu_exec *ex = dg->ex;

	if (to != ex->qp || !to->no_loopback)
		emu_deliver_entered(to, dg);
	ex->cost += EMU_ENTRY_COST + dg->wqe->length;
	if (!ex->may_sleep || ex->cost - dg->paused < EMU_MCAST_BUDGET)
		return;
	dg->paused = ex->cost;
	preempt_enable();
	preempt_disable();
}

/*
 * A multicast is delivered to all in one go, because no receiver may get it twice. So one that may
 * take long, by the number of receivers or by the cost of each copy, is left to a runner.
 */
static bool emu_mcast_needs_runner(const struct emu_exec *ex, const struct emu_swqe *wqe,
				   const struct emu_av *av)
{
	if (ex->may_sleep)
		return false;
	return in_hardirq() || wqe->num_sge > 1 || emu_mcast_is_larger(av, EMU_MCAST_INLINE);
}

/**
 * emu_datagram_needs_runner() - whether an entry is left to a runner before it is tried
 * @ex: the owner at work
 * @wqe: the entry, of a datagram queue pair
 *
 * Context: The owner of the queue pair's doorbell.
 * Return: what emu_exec_datagram() answers with EMU_RUNNER, so that nobody counts it as a try.
 */
bool emu_datagram_needs_runner(const struct emu_exec *ex, struct emu_swqe *wqe)
{
	return emu_is_datagram(wqe) && wqe->ud.qpn == IB_MULTICAST_QPN &&
	       emu_mcast_needs_runner(ex, wqe, emu_swqe_av(ex->qp, wqe));
}

/* Under rcu_read_lock(). */
static void emu_deliver_unicast(struct emu_datagram *dg)
{
	struct emu_qp *to;

	dg->port = emu_fabric_find(dg->av);
	if (!dg->port || READ_ONCE(dg->port->state) != IB_PORT_ACTIVE)
		return;
	if (dg->wqe->ud.qpn == EMU_GSI_QPN)
		to = rcu_dereference(dg->port->gsi);
	else
		to = xa_load(&dg->port->edev->qps, dg->wqe->ud.qpn);
	if (!to || !emu_qp_is_datagram(to) || !emu_deliver_entered(to, dg))
		emu_port_count(dg->port, EMU_CNT_DROPPED, 1);
}

/**
 * emu_exec_datagram() - execute the oldest entry of a datagram queue pair
 * @ex: the owner at work
 * @wqe: the entry
 * @pos: its position
 *
 * Context: The owner of the queue pair's doorbell, preemption off.
 * Return: EMU_DONE or EMU_FAILED: the entry is gone; EMU_DELAYED, EMU_RUNNER, or EMU_AGAIN if
 * a receive for it is being posted: it is still there.
 */
enum emu_outcome emu_exec_datagram(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos)
{
	struct emu_qp *qp = ex->qp;
	struct emu_datagram dg = { .ex = ex, .wqe = wqe, .av = emu_swqe_av(qp, wqe) };
	struct emu_cursor local;
	bool fits;

	/* Only posted in the error state, see emu_is_drain_wr(); but that has been left since. */
	if (unlikely(!emu_is_datagram(wqe)))
		return emu_fail_local(ex, wqe, pos, IB_WC_LOC_QP_OP_ERR, EMU_SYN_NONE);
	if (unlikely(!emu_open_local(ex, wqe, 0, &local)))
		return emu_fail_memory(ex, wqe, pos, local.why);
	emu_cursor_end(&local);

	dg.pkey = emu_send_pkey(qp, wqe);
	/*
	 * What does not fit into a packet is not sent, and that is not an error: IBTA
	 * vol. 1, C10-93.1.1. Processes get an error nevertheless, as from most hardware.
	 */
	fits = wqe->length <= ib_mtu_enum_to_int(READ_ONCE(qp->port->mtu));
	if (unlikely(!fits && qp->user_sq))
		return emu_fail_local(ex, wqe, pos, IB_WC_LOC_LEN_ERR, EMU_SYN_LENGTH);
	if (fits && READ_ONCE(qp->port->state) == IB_PORT_ACTIVE) {
		if (wqe->ud.qpn == IB_MULTICAST_QPN && emu_mcast_needs_runner(ex, wqe, dg.av))
			return EMU_RUNNER;
		rcu_read_lock();
		if (wqe->ud.qpn == IB_MULTICAST_QPN)
			emu_mcast_deliver(dg.av, emu_deliver_copy, &dg);
		else
			emu_deliver_unicast(&dg);
		rcu_read_unlock();
	}
	if (unlikely(dg.again))
		return EMU_AGAIN;
	/* Once it was delivered to somebody, it must not be tried again. */
	if (unlikely(dg.why) && !(dg.why == EMU_SYN_PAUSED && dg.delivered))
		return emu_fail_memory(ex, wqe, pos, dg.why);
	emu_complete_send(qp, wqe, pos, IB_WC_SUCCESS, EMU_SYN_NONE);
	return EMU_DONE;
}
