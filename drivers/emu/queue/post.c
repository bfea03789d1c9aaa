// SPDX-License-Identifier: GPL-2.0-only
/*
 * Posting: from a chain of work requests to ring entries and a doorbell.
 *
 * Any number of callers may post to one queue at a time, from any context. See
 * ring.h for why none waits for another, and doorbell.h for the doorbell. Preemption
 * is off between reserve and publish, because consumers of the queue stop at an
 * entry that is not published, and because a reset, or a change of an SRQ's size,
 * waits for posters by waiting for a grace period.
 */
#include <linux/preempt.h>

#include "../memory/region.h"
#include "doorbell.h"

/* Operations of which only the scatter/gather list needs a check. */
#define EMU_PLAIN_OPS	(BIT_ULL(IB_WR_SEND) | BIT_ULL(IB_WR_SEND_WITH_IMM) |		\
			 BIT_ULL(IB_WR_SEND_WITH_INV) | BIT_ULL(IB_WR_RDMA_WRITE) |	\
			 BIT_ULL(IB_WR_RDMA_WRITE_WITH_IMM))

/* Bytes of an atomic operation's operand. */
#define EMU_ATOMIC_BYTES	8

static noinline u64 emu_sum_lengths(const struct ib_sge *sge, int num_sge)
{
	u64 length = 0;
	int i;

	for (i = 0; i < num_sge; i++)
		length += sge[i].length;
	return length;
}

/* Returns the bytes of the message, or -EINVAL. One element is the common case. */
static __always_inline s64 emu_sge_length(const struct ib_sge *sge, int num_sge)
{
	u64 length = likely(num_sge == 1) ? sge->length : emu_sum_lengths(sge, num_sge);

	return likely(length <= EMU_MAX_MSG_SIZE) ? length : -EINVAL;
}

static int emu_check_reg(const struct emu_qp *qp, const struct ib_reg_wr *wr)
{
	if (wr->wr.num_sge || !wr->mr || wr->mr->device != qp->ibqp.device ||
	    (wr->key ^ wr->mr->lkey) >> EMU_KEY_SHIFT || !is_power_of_2(wr->mr->page_size))
		return -EINVAL;
	return ib_check_mr_access(&qp->edev->ibdev, wr->access);
}

/* The device chooses the index of a window's key, and the consumer its low byte. */
static int emu_check_bind(const struct emu_qp *qp, const struct ib_bind_mw_wr *wr)
{
	const struct ib_mr *mr = wr->bind_info.mr;

	if (mr ? mr->device != qp->ibqp.device : wr->bind_info.length)
		return -EINVAL;
	if (wr->wr.num_sge || !wr->mw || wr->mw->device != qp->ibqp.device ||
	    (wr->rkey ^ wr->mw->rkey) >> EMU_KEY_SHIFT ||
	    (wr->bind_info.mw_access_flags &
	     ~(EMU_WINDOW_ACCESS | IB_ZERO_BASED | IB_ACCESS_OPTIONAL)))
		return -EINVAL;
	return 0;
}

static int emu_check_special(const struct emu_qp *qp, const struct ib_send_wr *wr)
{
	bool is_inline = wr->send_flags & IB_SEND_INLINE;

	switch (wr->opcode) {
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return is_inline || wr->num_sge > qp->edev->ibdev.attrs.max_sge_rd ? -EINVAL : 0;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return is_inline || wr->num_sge != 1 || wr->sg_list->length != EMU_ATOMIC_BYTES ?
		       -EINVAL : 0;
	case IB_WR_LOCAL_INV:
		return wr->num_sge ? -EINVAL : 0;
	case IB_WR_REG_MR:
		return emu_check_reg(qp, reg_wr(wr));
	case IB_WR_BIND_MW:
		return emu_check_bind(qp, bind_mw_wr(wr));
	default:
		return -EINVAL;
	}
}

/* The AH's device need not be checked: the PD is the queue pair's, and so of its device. */
static int emu_check_ud(const struct emu_qp *qp, const struct ib_ud_wr *wr)
{
	if (!wr->ah || wr->ah->pd != qp->ibqp.pd || wr->remote_qpn > IB_QPN_MASK ||
	    (qp->port && to_eah(wr->ah)->av.port != qp->port))
		return -EINVAL;
	if (qp->ibqp.qp_type == IB_QPT_GSI && wr->pkey_index >= emu_pkey_tbl_len(qp->edev))
		return -EINVAL;
	return 0;
}

/*
 * Whether this is what ib_drain_sq() posts in the error state: an empty RDMA write, whatever the
 * type of the queue pair. It will be flushed, so it need not be an operation that the type has.
 */
static bool emu_is_drain_wr(const struct emu_qp *qp, const struct ib_send_wr *wr)
{
	return !qp->user_sq && atomic_read(&qp->state) == IB_QPS_ERR &&
	       wr->opcode == IB_WR_RDMA_WRITE && !wr->num_sge;
}

/* Refuses an operation; logs its name if it is one that other HCAs support. */
static noinline int emu_refuse_op(const struct emu_qp *qp, u32 opcode)
{
	static const char * const names[] = {
		[IB_WR_LSO] = "LSO",
		[IB_WR_MASKED_ATOMIC_CMP_AND_SWP] = "masked CMP_SWP",
		[IB_WR_MASKED_ATOMIC_FETCH_AND_ADD] = "masked FETCH_ADD",
		[IB_WR_FLUSH] = "FLUSH",
		[IB_WR_ATOMIC_WRITE] = "ATOMIC_WRITE",
	};

	if (opcode < ARRAY_SIZE(names) && names[opcode])
		ibdev_warn_ratelimited(&qp->edev->ibdev,
				       "qp %u: %s is not supported, see the device's capabilities\n",
				       qp->ibqp.qp_num, names[opcode]);
	return -EINVAL;
}

/*
 * The full check of a request, for those that emu_send_is_plain() does not pass. Returns the bytes
 * of the message, or -EINVAL.
 */
static noinline s64 emu_check_send(const struct emu_qp *qp, const struct ib_send_wr *wr)
{
	s64 length;
	u64 op;
	int err;

	if ((u32)wr->opcode > IB_WR_REG_MR)
		return -EINVAL;
	op = BIT_ULL(wr->opcode);
	if (!(qp->send_ops & op)) {
		if (!emu_is_drain_wr(qp, wr))
			return emu_refuse_op(qp, wr->opcode);
		/* From here on, the queue pair may be reset, and made ready again. */
		kverbs_delay("emu_drain_wr");
		return 0;
	}
	if ((u32)wr->num_sge > qp->max_send_sge)
		return -EINVAL;
	if (emu_qp_is_datagram(qp))
		err = emu_check_ud(qp, ud_wr(wr));
	else
		err = op & EMU_PLAIN_OPS ? 0 : emu_check_special(qp, wr);
	if (err)
		return err;
	length = emu_sge_length(wr->sg_list, wr->num_sge);
	if ((wr->send_flags & IB_SEND_INLINE) && length > qp->max_inline)
		return -EINVAL;
	return length;
}

/* A SEND, RDMA WRITE or RDMA READ over a connection, of one element, needs no other check. */
static __always_inline bool emu_send_is_plain(const struct emu_qp *qp,
					      const struct ib_send_wr *wr)
{
	return (u32)wr->opcode <= IB_WR_RDMA_READ && (BIT(wr->opcode) & qp->plain_ops) &&
	       wr->num_sge == 1 && !(wr->send_flags & IB_SEND_INLINE) &&
	       wr->sg_list->length <= EMU_MAX_MSG_SIZE;
}

static void emu_fill_inline(struct emu_swqe *wqe, const struct ib_send_wr *wr)
{
	void *data = wqe->sge;
	int i;

	wqe->num_sge = 0;
	for (i = 0; i < wr->num_sge; i++) {
		/* Inline data is named by kernel virtual address. */
		memcpy(data, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
		data += wr->sg_list[i].length;
	}
}

static noinline void emu_fill_more_sges(struct ib_sge *to, const struct ib_sge *from, int num_sge)
{
	memcpy(to, from, num_sge * sizeof(*to));
}

static __always_inline void emu_fill_sges(struct ib_sge *to, const struct ib_sge *from,
					  int num_sge)
{
	/* One element is the common case, and needs no call. */
	if (likely(num_sge == 1))
		*to = *from;
	else
		emu_fill_more_sges(to, from, num_sge);
}

static void emu_fill_ud(const struct emu_qp *qp, struct emu_swqe *wqe, const struct ib_ud_wr *wr)
{
	*emu_swqe_av(qp, wqe) = to_eah(wr->ah)->av;
	wqe->ud.qpn = wr->remote_qpn;
	/* IBTA vol. 1, 10.2.5: the highest bit asks for the queue pair's own. */
	wqe->ud.qkey = wr->remote_qkey & BIT(31) ? READ_ONCE(qp->qkey) : wr->remote_qkey;
	wqe->ud.pkey_index = wr->pkey_index;
}

static __always_inline void emu_fill_rdma(struct emu_swqe *wqe, const struct ib_send_wr *wr)
{
	wqe->rdma.remote_addr = rdma_wr(wr)->remote_addr;
	wqe->rdma.rkey = rdma_wr(wr)->rkey;
	wqe->rdma.data_done = false;
}

/* Fills in everything but the scatter/gather list of a request that is not plain. */
static void emu_fill_special(const struct emu_qp *qp, struct emu_swqe *wqe,
			     const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		emu_fill_rdma(wqe, wr);
		break;
	case IB_WR_ATOMIC_CMP_AND_SWP:
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		wqe->atomic.remote_addr = atomic_wr(wr)->remote_addr;
		wqe->atomic.rkey = atomic_wr(wr)->rkey;
		wqe->atomic.done = false;
		wqe->atomic.compare_add = atomic_wr(wr)->compare_add;
		wqe->atomic.swap = atomic_wr(wr)->swap;
		break;
	case IB_WR_REG_MR:
		wqe->reg.key = reg_wr(wr)->key;
		wqe->reg.access = reg_wr(wr)->access;
		wqe->reg.iova = reg_wr(wr)->mr->iova;
		wqe->reg.length = reg_wr(wr)->mr->length;
		wqe->reg.page_shift = ilog2(reg_wr(wr)->mr->page_size);
		break;
	case IB_WR_BIND_MW:
		wqe->bind.mw_key = bind_mw_wr(wr)->mw->rkey;
		wqe->bind.new_key = bind_mw_wr(wr)->rkey;
		wqe->bind.mr_key = bind_mw_wr(wr)->bind_info.length ?
				   bind_mw_wr(wr)->bind_info.mr->lkey : 0;
		wqe->bind.access = bind_mw_wr(wr)->bind_info.mw_access_flags;
		wqe->bind.addr = bind_mw_wr(wr)->bind_info.addr;
		wqe->bind.length = bind_mw_wr(wr)->bind_info.length;
		break;
	default:
		if (emu_qp_is_datagram(qp))
			emu_fill_ud(qp, wqe, ud_wr(wr));
		break;
	}
}

static __always_inline void emu_fill_send(const struct emu_qp *qp, struct emu_swqe *wqe,
					  const struct ib_send_wr *wr, u32 length, bool plain)
{
	wqe->opcode = wr->opcode;
	wqe->send_flags = wr->send_flags;
	wqe->num_sge = wr->num_sge;
	wqe->length = length;
	wqe->wr_id = wr->wr_id;
	wqe->ex.imm_data = wr->ex.imm_data;
	if (likely(plain)) {
		wqe->sge[0] = wr->sg_list[0];
		if (wr->opcode != IB_WR_SEND)
			emu_fill_rdma(wqe, wr);
		return;
	}
	emu_fill_special(qp, wqe, wr);
	if (wr->send_flags & IB_SEND_INLINE)
		emu_fill_inline(wqe, wr);
	else
		emu_fill_sges(wqe->sge, wr->sg_list, wr->num_sge);
}

static __always_inline int emu_post_one_send(struct emu_qp *qp, const struct ib_send_wr *wr)
{
	bool plain = likely(emu_send_is_plain(qp, wr));
	struct emu_swqe *wqe;
	s64 length;
	u32 pos;
	int err = 0;

	length = plain ? wr->sg_list->length : emu_check_send(qp, wr);
	if (unlikely(length < 0))
		return length;

	preempt_disable();
	if (unlikely(atomic_read(&qp->state) <= IB_QPS_RTR)) {
		err = -EINVAL;
		goto enable;
	}
	wqe = emu_ring_reserve(&qp->sq, &pos);
	if (unlikely(!wqe)) {
		err = -ENOMEM;
		goto enable;
	}
	emu_fill_send(qp, wqe, wr, length, plain);
	kverbs_delay("emu_send_reserved");
	emu_ring_publish(&wqe->slot, pos);
	kverbs_delay("emu_send_posted");
enable:
	preempt_enable();
	return err;
}

/*
 * Fills in an entry that was reserved for a request which needs no check: see emu_is_direct().
 * The caller publishes it.
 */
void emu_fill_reserved(const struct emu_qp *qp, struct emu_swqe *wqe, const struct ib_send_wr *wr)
{
	emu_fill_send(qp, wqe, wr, wr->sg_list->length, true);
}

/* Whether the queue pair is in a state in which a process must not post sends yet. */
static bool emu_user_may_not_send(const struct emu_qp *qp)
{
	return atomic_read(&qp->state) < IB_QPS_RTS;
}

/*
 * Drops the requests that a process has written into its ring before RTS; they get no completion.
 * Returns false, with nothing dropped, if the queue pair has reached a state in which it may send.
 *
 * Under @qp->lock the state can only become ERR, set by an engine or a CQ that fails. The end of
 * the ring is read before the state, so requests that are written after such a change stay. The
 * ring does not tell which thread wrote an entry: so those of another thread that has not rung yet
 * are dropped, too, although its doorbell may then succeed.
 */
static bool emu_drop_for_user(struct emu_qp *qp)
{
	bool refused = true;
	u32 end;

	mutex_lock(&qp->lock);
	if (!qp->ended) {
		emu_qp_freeze(qp);
		end = emu_user->sends_end(qp);
		kverbs_delay("emu_drop_for_user");
		refused = emu_user_may_not_send(qp);
		if (refused)
			emu_user->drop_sends(qp, end);
		emu_qp_thaw(qp);
	}
	mutex_unlock(&qp->lock);
	return refused;
}

/*
 * The doorbell of a process: a post without requests, as the process has written them into the
 * ring that it shares with us. May sleep.
 *
 * IBTA vol. 1, C10-96, wants requests refused on a queue pair that cannot send yet, and this call
 * is the only place where that can be returned.
 */
static noinline int emu_user_doorbell(struct emu_qp *qp)
{
	if (!qp->user_sq)
		return -EINVAL;
	if (emu_user_may_not_send(qp) && emu_drop_for_user(qp))
		return -EINVAL;
	emu_qp_ring(qp);
	return 0;
}

/**
 * emu_post_sends() - put requests into the send queue, and ring the doorbell
 * @qp: queue pair
 * @wr: the first request; NULL: a process's are where it writes them
 * @bad_wr: set on failure, to the request that was refused; those before it are posted
 * @spent: what was executed in the same call already, see emu_qp_ring_after()
 *
 * Context: Any but NMI; with @wr NULL process context, and may sleep.
 * Return: 0; -EINVAL for a request that is not allowed, or not in this state; -ENOMEM if the
 * queue is full.
 */
int emu_post_sends(struct emu_qp *qp, const struct ib_send_wr *wr,
		   const struct ib_send_wr **bad_wr, u32 spent)
{
	const struct ib_send_wr *first = wr, *next;
	int err = 0;

	for (; wr; wr = next) {
		/* Once it is posted, it may be complete, and freed. */
		next = wr->next;
		err = emu_post_one_send(qp, wr);
		if (unlikely(err)) {
			ib_post_send_failed(&qp->ibqp, wr, err);
			*bad_wr = wr;
			break;
		}
	}
	if (likely(wr != first))
		emu_qp_ring_after(qp, spent);
	else if (!first)
		err = emu_user_doorbell(qp);
	return err;
}

/* Preemption is off. @shared: the ring is an SRQ's, whose entries count until they are taken. */
static __always_inline int emu_post_recv_to(struct emu_ring *ring, const struct ib_recv_wr *wr,
					    u64 length, bool shared)
{
	struct emu_rwqe *wqe;
	u32 pos;

	wqe = shared ? emu_ring_reserve_shared(ring, &pos) : emu_ring_reserve(ring, &pos);
	if (unlikely(!wqe))
		return -ENOMEM;
	/* A consumer that was too slow may read this while it is written: see emu_rwqe_copy(). */
	WRITE_ONCE(wqe->num_sge, wr->num_sge);
	wqe->wr_id = wr->wr_id;
	wqe->length = length;
	emu_fill_sges(wqe->sge, wr->sg_list, wr->num_sge);
	kverbs_delay("emu_recv_reserved");
	emu_ring_publish(&wqe->slot, pos);
	kverbs_delay("emu_recv_posted");
	return 0;
}

static __always_inline int emu_post_one_recv(struct emu_qp *qp, const struct ib_recv_wr *wr)
{
	s64 length;
	int err;

	if (unlikely((u32)wr->num_sge > qp->max_recv_sge))
		return -EINVAL;
	length = emu_sge_length(wr->sg_list, wr->num_sge);
	if (unlikely(length < 0))
		return length;

	preempt_disable();
	if (likely(atomic_read(&qp->state) != IB_QPS_RESET))
		err = emu_post_recv_to(&qp->rq, wr, length, false);
	else
		err = -EINVAL;
	preempt_enable();
	return err;
}

/* Has the entries flushed if the queue pair failed before they were published. */
static __always_inline void emu_posted_recv(struct emu_qp *qp)
{
	/*
	 * Full barrier, pairs with those of the atomic operations that
	 * set the error state, in emu_qp_fail() and emu_qp_move(): either we see
	 * the error, or the flush sees our entries.
	 */
	smp_mb();
	if (unlikely(atomic_read(&qp->state) == IB_QPS_ERR))
		emu_qp_ring(qp);
}

/* Whether this is a receive of one element, as most are. @max_sge is 0 with an SRQ. */
static __always_inline bool emu_recv_is_1sge(u32 max_sge, const struct ib_recv_wr *wr)
{
	return wr->num_sge == 1 && max_sge && wr->sg_list->length <= EMU_MAX_MSG_SIZE;
}

/* Preemption is off. @shared as in emu_post_recv_to(). */
static __always_inline bool emu_post_recv_1sge(struct emu_ring *ring,
					       const struct ib_recv_wr *wr, bool shared)
{
	const struct ib_sge *sge = wr->sg_list;
	struct emu_rwqe *wqe;
	u32 pos;

	if (unlikely(!__emu_ring_reserve(ring, shared ? &ring->tail : &ring->retired, &pos)))
		return false;
	wqe = (struct emu_rwqe *)emu_ring_slot(ring, pos);
	WRITE_ONCE(wqe->num_sge, 1);
	wqe->wr_id = wr->wr_id;
	wqe->length = sge->length;
	wqe->sge[0] = *sge;
	kverbs_delay("emu_recv_reserved");
	emu_ring_publish(&wqe->slot, pos);
	kverbs_delay("emu_recv_posted");
	return true;
}

/*
 * Posts a receive of one element. Returns false if nothing was posted, for whatever reason: the
 * caller then tries emu_post_one_recv(), which posts it or says why not.
 */
static __always_inline bool emu_post_recv_fast(struct emu_qp *qp, const struct ib_recv_wr *wr)
{
	bool posted;

	if (unlikely(!emu_recv_is_1sge(qp->max_recv_sge, wr)))
		return false;
	preempt_disable();
	posted = atomic_read(&qp->state) != IB_QPS_RESET &&
		 emu_post_recv_1sge(&qp->rq, wr, false);
	preempt_enable();
	return likely(posted);
}

static noinline int emu_post_recvs(struct emu_qp *qp, const struct ib_recv_wr *wr,
				   const struct ib_recv_wr **bad_wr)
{
	const struct ib_recv_wr *next;
	int err = 0;

	if (unlikely(qp->srq)) {
		ib_post_recv_failed(&qp->ibqp, wr, -EINVAL);
		*bad_wr = wr;
		return -EINVAL;
	}
	for (; wr; wr = next) {
		next = wr->next;
		if (likely(emu_post_recv_fast(qp, wr)))
			continue;
		err = emu_post_one_recv(qp, wr);
		if (unlikely(err)) {
			ib_post_recv_failed(&qp->ibqp, wr, err);
			*bad_wr = wr;
			break;
		}
	}
	emu_posted_recv(qp);
	return err;
}

int emu_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr)
{
	struct emu_qp *qp = to_eqp(ibqp);

	if (unlikely(wr->next || !emu_post_recv_fast(qp, wr)))
		return emu_post_recvs(qp, wr, bad_wr);
	emu_posted_recv(qp);
	return 0;
}

static int emu_post_one_srq_recv(struct emu_srq *srq, const struct ib_recv_wr *wr)
{
	s64 length;
	int err;

	if (unlikely((u32)wr->num_sge > srq->max_sge))
		return -EINVAL;
	length = emu_sge_length(wr->sg_list, wr->num_sge);
	if (unlikely(length < 0))
		return length;

	preempt_disable();
	/* acquire: pair A of srq.c */
	err = emu_post_recv_to(&smp_load_acquire(&srq->in)->ring, wr, length, true);
	preempt_enable();
	return err;
}

/* As emu_post_recv_fast(). */
static __always_inline bool emu_post_srq_recv_fast(struct emu_srq *srq,
						   const struct ib_recv_wr *wr)
{
	bool posted;

	if (unlikely(!emu_recv_is_1sge(srq->max_sge, wr)))
		return false;
	preempt_disable();
	/* acquire: pair A of srq.c */
	posted = emu_post_recv_1sge(&smp_load_acquire(&srq->in)->ring, wr, true);
	preempt_enable();
	return likely(posted);
}

static noinline int emu_post_srq_recvs(struct emu_srq *srq, const struct ib_recv_wr *wr,
				       const struct ib_recv_wr **bad_wr)
{
	const struct ib_recv_wr *next;
	int err;

	for (; wr; wr = next) {
		next = wr->next;
		if (likely(emu_post_srq_recv_fast(srq, wr)))
			continue;
		err = emu_post_one_srq_recv(srq, wr);
		if (unlikely(err)) {
			ib_post_srq_recv_failed(&srq->ibsrq, wr, err);
			*bad_wr = wr;
			return err;
		}
	}
	return 0;
}

/* As emu_post_recv(). */
int emu_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad_wr)
{
	struct emu_srq *srq = to_esrq(ibsrq);

	if (unlikely(wr->next || !emu_post_srq_recv_fast(srq, wr)))
		return emu_post_srq_recvs(srq, wr, bad_wr);
	return 0;
}
