/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Queue pairs, shared receive queues, and their entries.
 */
#ifndef KVERBS_EMU_QP_H
#define KVERBS_EMU_QP_H

#include <linux/hrtimer.h>
#include <linux/llist.h>
#include <linux/mutex.h>

#include "../lib/emu.h"
#include "../lib/gate.h"
#include "../lib/outcome.h"
#include "../memory/region.h"
#include "cq.h"
#include "ring.h"
#include "user.h"

/* Number of the GSI queue pair of each port. */
#define EMU_GSI_QPN	1

/* How a doorbell is owned; see doorbell.h. */
enum emu_doorbell {
	EMU_DB_IDLE,
	EMU_DB_OWNED,
	EMU_DB_RERUN,
};

/**
 * struct emu_swqe - an entry of a send queue
 * @slot: sequence number, first
 * @opcode: enum ib_wr_opcode
 * @num_sge: entries of @sge, 0 with inline data
 * @send_flags: IB_SEND_*
 * @length: bytes of the message
 * @ex: immediate data or key to invalidate
 * @wr_id: consumer's identifier
 * @rdma: for RDMA operations. data_done, which belongs to the owner: the data was
 *	moved, but the rest of the work is not done
 * @atomic: for atomic operations. done, which belongs to the owner: the operation
 *	was executed, and @swap is the value that it found
 * @reg: for IB_WR_REG_MR: the region's values at the time of posting
 * @bind: for IB_WR_BIND_MW: keys, access, address and length of the window
 * @ud: for datagrams; emu_swqe_av() says where the address vector is
 * @sge: the local buffers, or the inline data
 */
struct emu_swqe {
	struct emu_slot slot;
	u8 opcode;
	u8 num_sge;
	u16 send_flags;
	u32 length;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
	u64 wr_id;
	union {
		struct {
			u64 remote_addr;
			u32 rkey;
			bool data_done;
		} rdma;
		struct {
			u64 remote_addr;
			u32 rkey;
			bool done;
			u64 compare_add;
			u64 swap;
		} atomic;
		struct emu_reg reg;
		struct emu_bind bind;
		struct {
			u32 qpn;
			u32 qkey;
			u16 pkey_index;
		} ud;
	};
	struct ib_sge sge[];
};

/**
 * struct emu_rwqe - an entry of a receive queue
 * @slot: sequence number, first
 * @num_sge: entries of @sge
 * @wr_id: consumer's identifier
 * @length: sum of the lengths of @sge
 * @sge: the buffers
 */
struct emu_rwqe {
	struct emu_slot slot;
	u32 num_sge;
	u64 wr_id;
	u64 length;
	struct ib_sge sge[];
};

/* Bytes of an entry with room for @max_sge buffers. */
static inline size_t emu_rwqe_size(u32 max_sge)
{
	return struct_size((struct emu_rwqe *)NULL, sge, max_sge);
}

/*
 * Makes a receive, which is the caller's copy, as short as the message that goes into it: what is
 * behind that is not accessed, so it need not be memory. Returns the number of elements, and in
 * @cut by how much the last one is shorter.
 */
static inline u32 emu_rwqe_clip(struct emu_rwqe *recv, u32 length, u32 *cut)
{
	u32 i;

	*cut = 0;
	for (i = 0; i < recv->num_sge; i++) {
		if (length <= recv->sge[i].length) {
			*cut = recv->sge[i].length - length;
			recv->sge[i].length = length;
			return i + 1;
		}
		length -= recv->sge[i].length;
	}
	return i;
}

static inline void emu_rwqe_unclip(struct emu_rwqe *recv, u32 num_sge, u32 cut)
{
	if (cut)
		recv->sge[num_sge - 1].length += cut;
}

/*
 * Copies an entry that others may take as well. It may change meanwhile, and the copy be of
 * no use then; but each number of elements that is ever there is one that fits.
 */
static inline void emu_rwqe_copy(struct emu_rwqe *to, const struct emu_rwqe *from)
{
	u32 num_sge = READ_ONCE(from->num_sge);

	/* Overwritten meanwhile, the copy is dropped. */
	data_race(memcpy(to, from, emu_rwqe_size(num_sge)));
	to->num_sge = num_sge;
}

/**
 * struct emu_srq_ring - the entries of an SRQ between two changes of its size
 * @ring: the entries
 * @sealed: nobody posts to it any more
 * @next: the ring that took its place, or NULL
 */
struct emu_srq_ring {
	struct emu_ring ring;
	bool sealed;
	struct emu_srq_ring *next;
};

/**
 * struct emu_srq - a shared receive queue
 * @ibsrq: what the midlayer sees
 * @in: where receives are posted: the newest ring
 * @out: where they are taken from: the oldest ring that may hold some
 * @max_sge: maximum number of elements of an entry
 * @limit: raise the limit event when fewer receives than this are left; 0 for never
 * @lock: serialises modify and query
 * @rings: the oldest ring that has not been freed
 * @user_rq: where the receives are that a process posts, or NULL; changes with the size
 */
struct emu_srq {
	struct ib_srq ibsrq;
	struct emu_srq_ring *in;
	struct emu_srq_ring *out;
	u32 max_sge;
	atomic_t limit;
	struct mutex lock;
	struct emu_srq_ring *rings;
	struct emu_user_rq *user_rq;
};

/**
 * enum emu_recv_from - where receives come from, if not just from @rq; bits
 * @EMU_FROM_SRQ: from the SRQ; never changes
 * @EMU_FROM_PARKED: one is parked, which is the next
 * @EMU_FROM_BUSY: somebody is parking one, or taking the one that is parked
 * @EMU_FROM_USER: from where a process posts them; never changes
 */
enum emu_recv_from {
	EMU_FROM_SRQ	= 1,
	EMU_FROM_PARKED	= 2,
	EMU_FROM_BUSY	= 4,
	EMU_FROM_USER	= 8,
};

/* What may be executed as it is posted: the operations of the numbers 0, 2 and 4. */
#define EMU_DIRECT_OPS		(BIT(IB_WR_RDMA_WRITE) | BIT(IB_WR_SEND) | BIT(IB_WR_RDMA_READ))
#define EMU_NR_DIRECT_OPS	3
static_assert(EMU_DIRECT_OPS == (BIT(0) | BIT(2) | BIT(4)));

/**
 * struct emu_qp - a queue pair
 * @ibqp: what the midlayer sees
 * @edev: its device
 * @state: enum ib_qp_state; changed by modify_qp and by errors, see qp.c
 * @send_ops: operations that may be posted, a bit for each opcode
 * @plain_ops: those of them of which only one element and its length need a check, see post.c
 * @max_inline: bytes of inline data an entry of @sq holds
 * @max_send_sge: elements an entry of @sq holds
 * @max_recv_sge: elements an entry of @rq holds
 * @av_offset: bytes from an entry of @sq to its address vector; 0 without one
 * @sig_all: each send is signaled
 * @no_loopback: the queue pair does not receive the multicasts that it sends itself
 * @qkey: Q_Key, for datagrams
 * @access: IB_ACCESS_* granted to the peer
 * @rnr_timer: code of the time that a requester waits when our receive queue is
 *	empty
 * @dest_qpn: the peer's number
 * @av: the path, of connected queue pairs
 * @port: the port that it sends through
 * @transport: how it reaches its peers; the port's, or before it has a port, the one
 *	of the device's first port
 * @fastpath: connected, and the transport says that the engine need not ask it
 * @nr_direct_ops: EMU_NR_DIRECT_OPS if that holds, the type is RC, and @plain_ops has
 *	EMU_DIRECT_OPS; else 0: see engine/direct.c
 * @user_sq: where the requests are that a process posts; NULL for the kernel
 * @peer: the peer of a connection, kept under RCU; valid while @peer_gen is the fabric's
 *	generation; like the next four, only for the owner and the transport
 * @peer_gen: see fabric.c; 0 for no peer
 * @origin: what completions at @peer say of where a message came from; valid with @peer
 * @target: the region at @peer that was used last, for RDMA
 * @sink: the region that the last receive at @peer was in
 * @source: the region that the last message was in; belongs to the owner
 * @sq: send queue
 * @rq: receive queue
 * @srq: shared receive queue instead, or NULL
 * @recv_from: enum emu_recv_from
 * @parked: a receive that has been taken and is the next to be used; see parked_recv.c
 * @taken: a receive that the owner has taken, from any queue, and copied
 * @doorbell: enum emu_doorbell
 * @freezing: modify_qp, destroy_qp, or a process's doorbell that is refused waits for the
 *	doorbell, or owns it
 * @finishing: on the way to being drained: the one entry that was under way is still
 *	executed
 * @run: entry on the list of the runner that the queue pair was handed to; see doorbell.c
 * @work: executes it in the place of a runner, for a long message
 * @timer: wakes a requester that waits; the owner arms it, and from then on the
 *	timer is the owner
 * @retries: retries left for a peer that does not answer; -1 once the last of them was made
 * @rnr_retries: retries left for a peer that has no receive posted
 * @retrying: the oldest entry has been tried before
 * @unretired: entries of @sq that have ended since the last completion; belongs to the
 *	owner
 * @psn: PSN of the next message, if it is captured; like @msn, belongs to the owner: see
 *	engine/capture.c
 * @msn: number of messages that were captured
 * @gate: open while the queue pair takes part as a responder
 * @changing: the gate is only closed for a moment
 * @comm_est: the first message in RTR was seen
 * @fatal: IB_EVENT_QP_FATAL was raised
 * @last_wqe: IB_EVENT_QP_LAST_WQE_REACHED was raised
 * @ended: it was abandoned: frozen for good, and out of reach for its peer
 * @lock: serialises modify, query, destroy, and refusals of a process's doorbell
 * @attr: what modify_qp set, for query_qp and for the engine
 * @init: what create_qp was given, for query_qp
 * @user_rq: where the receives are that a process posts; NULL for the kernel, or with an SRQ
 */
struct emu_qp {
	struct ib_qp ibqp;
	struct emu_device *edev;
	atomic_t state;
	u64 send_ops;
	u32 plain_ops;
	u32 max_inline;
	u16 max_send_sge;
	u16 max_recv_sge;
	u32 av_offset;
	bool sig_all;
	bool no_loopback;
	u32 qkey;
	u32 access;
	u8 rnr_timer;
	u32 dest_qpn;
	struct emu_av av;
	struct emu_port *port;
	const struct emu_transport *transport;
	bool fastpath;
	u32 nr_direct_ops;
	struct emu_user_sq *user_sq;
	struct emu_qp *peer;
	unsigned long peer_gen;
	struct emu_cqe_origin origin;
	struct emu_target target;
	struct emu_target sink;
	struct emu_target source;

	struct emu_ring sq;
	struct emu_ring rq;
	struct emu_srq *srq;
	atomic_t recv_from;
	struct emu_rwqe *parked;
	struct emu_rwqe *taken;

	atomic_t doorbell ____cacheline_aligned_in_smp;
	bool freezing;
	bool finishing;
	bool retrying;
	s8 retries;
	u8 rnr_retries;
	u16 unretired;
	struct emu_run *run;
	struct work_struct work;
	struct hrtimer timer;
	u32 psn;
	u32 msn;

	struct emu_gate gate ____cacheline_aligned_in_smp;
	bool changing;
	atomic_t comm_est;
	atomic_t fatal;
	atomic_t last_wqe;

	bool ended;
	struct mutex lock;
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
	struct emu_user_rq *user_rq;
};
emu_apart(struct emu_qp, sq.depth, sq.head);
emu_apart(struct emu_qp, sq.retired, rq.slots);
emu_apart(struct emu_qp, rq.retired, srq);
emu_apart(struct emu_qp, taken, doorbell);
emu_apart(struct emu_qp, msn, gate);

static inline struct emu_qp *to_eqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct emu_qp, ibqp);
}

static inline struct emu_srq *to_esrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct emu_srq, ibsrq);
}

static inline bool emu_qp_is_datagram(const struct emu_qp *qp)
{
	return qp->av_offset;
}

static inline void emu_qp_reset_retries(struct emu_qp *qp)
{
	qp->retries = qp->attr.retry_cnt;
	qp->rnr_retries = qp->attr.rnr_retry;
}

static inline struct emu_av *emu_swqe_av(const struct emu_qp *qp, struct emu_swqe *wqe)
{
	return (void *)wqe + qp->av_offset;
}

static inline bool emu_has_qp_type(enum ib_qp_type type)
{
	return type == IB_QPT_RC || type == IB_QPT_UC || type == IB_QPT_UD || type == IB_QPT_GSI;
}

/* qp.c */
int emu_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int emu_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int emu_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
u64 emu_send_ops(enum ib_qp_type type);
void emu_qp_abandon(struct emu_qp *qp);
int emu_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void emu_qp_fail(struct emu_qp *qp);
void emu_qp_fail_sends(struct emu_qp *qp);
void emu_qp_lost(struct emu_qp *qp);
void emu_qp_drained(struct emu_qp *qp);

/* post.c; emu_post_send() is in engine/direct.c */
int emu_post_sends(struct emu_qp *qp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr, u32 spent);
void emu_fill_reserved(const struct emu_qp *qp, struct emu_swqe *wqe, const struct ib_send_wr *wr);
int emu_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr);
int emu_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr);

/* srq.c */
int emu_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata);
int emu_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata);
int emu_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int emu_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
#endif
