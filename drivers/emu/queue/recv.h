/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Taking receives: from the queue pair's own queue, from its SRQ, or the parked one.
 */
#ifndef KVERBS_EMU_RECV_H
#define KVERBS_EMU_RECV_H

#include "qp.h"

/* Where receives come from, as long as none is parked. */
static inline int emu_recv_source(const struct emu_qp *qp)
{
	if (qp->srq)
		return EMU_FROM_SRQ;
	return qp->user_rq ? EMU_FROM_USER : 0;
}

/* parked_recv.c */
bool emu_park_recv(struct emu_qp *qp, const struct emu_rwqe *recv);
enum emu_outcome emu_claim_parked(struct emu_qp *qp, u64 room, struct emu_rwqe *copy);
void emu_drop_parked(struct emu_qp *qp);

/* srq.c */
u32 emu_srq_used(struct emu_srq *srq);
enum emu_outcome emu_srq_claim(struct emu_srq *srq, u64 room, struct emu_rwqe *copy);
void emu_srq_check_limit(struct emu_srq *srq);

/*
 * The ring that receives of an SRQ are taken from first. Valid while preemption is off: it is
 * freed a grace period after it was left.
 */
static __always_inline struct emu_ring *emu_srq_front(const struct emu_srq *srq)
{
	/* acquire: pair A of srq.c */
	return &smp_load_acquire(&srq->out)->ring;
}

/* Called after emu_ring_take() of a receive of an SRQ: raises the limit event if it is due. */
static __always_inline void emu_srq_taken(struct emu_srq *srq)
{
	/* Full barrier, pairs with the one in emu_srq_set_limit(). */
	smp_mb__after_atomic();
	if (unlikely(atomic_read(&srq->limit)))
		emu_srq_check_limit(srq);
}

/*
 * Takes the oldest entry of a ring, and copies it. If it has less room than @room bytes, it stays
 * there, and @too_short is set. Returns false if none was taken.
 */
static inline bool emu_recv_ring_claim(struct emu_ring *ring, u64 room, struct emu_rwqe *copy,
				       bool *too_short)
{
	struct emu_rwqe *wqe;
	u32 pos;

	do {
		wqe = emu_ring_front(ring, &pos);
		if (!wqe)
			return false;
		emu_rwqe_copy(copy, wqe);
		/* The length may be garbage, unless the entry is still at the front. */
		if (unlikely(copy->length < room) &&
		    atomic_cmpxchg_release(&ring->tail, pos, pos) == pos) {
			*too_short = true;
			return false;
		}
	} while (!emu_ring_take(ring, pos));
	return true;
}

/*
 * What emu_recv_ring_claim() has found, if it took none: EMU_RNR; or EMU_AGAIN if the oldest is
 * being posted, as others behind it may have been posted before the message was.
 */
static inline enum emu_outcome emu_recv_ring_none(const struct emu_ring *ring)
{
	return atomic_read(&ring->head) == atomic_read(&ring->tail) ? EMU_RNR : EMU_AGAIN;
}

/*
 * Whether emu_claim() has found none because the oldest is being posted: for a moment, as its poster
 * has preemption off. The size of an SRQ may change for longer, and no process can have this state
 * last. Preemption is off.
 */
static inline bool emu_recv_is_being_posted(const struct emu_qp *qp)
{
	const struct emu_ring *ring = qp->srq ? emu_srq_front(qp->srq) : &qp->rq;

	return !qp->user_rq && emu_recv_ring_none(ring) == EMU_AGAIN;
}

/* Takes the oldest receive of a queue pair, and copies it. Outcomes as of emu_srq_claim(). */
static inline enum emu_outcome emu_claim(struct emu_qp *qp, u64 room, struct emu_rwqe *copy)
{
	int from = atomic_read(&qp->recv_from);
	enum emu_outcome outcome;
	bool too_short = false;

	if (unlikely(from & EMU_FROM_PARKED)) {
		outcome = emu_claim_parked(qp, room, copy);
		if (outcome != EMU_RNR)
			return outcome;
	}
	if (unlikely(from & EMU_FROM_SRQ))
		return emu_srq_claim(qp->srq, room, copy);
	if (unlikely(from & EMU_FROM_USER))
		return emu_user->claim(qp->user_rq, room, copy);
	if (likely(emu_recv_ring_claim(&qp->rq, room, copy, &too_short)))
		return EMU_DONE;
	return too_short ? EMU_FAILED : emu_recv_ring_none(&qp->rq);
}

/*
 * Whether there is a receive, maybe one that is being posted; with an SRQ, others may take it at any
 * moment.
 */
static inline bool emu_has_receive(struct emu_qp *qp)
{
	if (unlikely(atomic_read(&qp->recv_from) & EMU_FROM_PARKED))
		return true;
	if (qp->srq)
		return emu_srq_used(qp->srq);
	return qp->user_rq ? emu_user->used(qp->user_rq) : emu_recv_ring_none(&qp->rq) != EMU_RNR;
}

/* The protection domain of a queue pair's receives. */
static inline struct ib_pd *emu_recv_pd(const struct emu_qp *qp)
{
	return qp->srq ? qp->srq->ibsrq.pd : qp->ibqp.pd;
}

#endif
