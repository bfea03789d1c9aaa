// SPDX-License-Identifier: GPL-2.0-only
/*
 * The verbs of the limit: queues of any number of producers and consumers.
 *
 * Doorbell. A poster publishes its requests, then exchanges the doorbell for LIM_AGAIN. If it
 * was LIM_IDLE, the poster is the owner, and executes what is published, in order; else the
 * owner sees LIM_AGAIN when it releases the doorbell, and looks again. cmpxchg() and xchg()
 * are full barriers: the release comes after the owner's last look at the ring, or the
 * poster's exchange before it. A single request does it the other way round: it takes the
 * doorbell first, and is executed from the poster's memory if nothing is in front of it.
 */
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "limit.h"

enum {
	LIM_IDLE,
	LIM_OWNED,
	LIM_AGAIN,
};

#define LIM_CLOSED	INT_MIN
#define LIM_COPY	256	/* larger pieces are memcpy()'s */

/* --- rings --- */

void lim_ring_init(struct lim_ring *ring, u32 size)
{
	atomic_set(&ring->head, 0);
	atomic_set(&ring->tail, 0);
	ring->size = size;
	ring->mask = size - 1;
}

#define lim_entries_init(entry, size)				\
	({							\
		u32 __i;					\
								\
		(entry) = kvcalloc(size, sizeof(*(entry)), GFP_KERNEL);	\
		for (__i = 0; (entry) && __i < (size); __i++)	\
			(entry)[__i].pos = __i;			\
		(entry) ? 0 : -ENOMEM;				\
	})

int lim_rq_init(struct lim_rq *rq, u32 size)
{
	lim_ring_init(&rq->ring, size);
	return lim_entries_init(rq->entry, size);
}

int lim_sq_init(struct lim_qp *qp, u32 size)
{
	lim_ring_init(&qp->ring, size);
	return lim_entries_init(qp->sq, size);
}

int lim_cq_init(struct lim_cq *cq, u32 size)
{
	lim_ring_init(&cq->ring, size);
	return lim_entries_init(cq->entry, size);
}

/* Takes a free entry at the head, NULL if there is none. */
#define lim_reserve(ring, entries, at)						\
	({									\
		typeof(entries) __e;						\
		s32 __d;							\
										\
		(at) = atomic_read(&(ring)->head);				\
		do {								\
			__e = &(entries)[(at) & (ring)->mask];			\
			/* Pairs with lim_free(). */				\
			__d = smp_load_acquire(&__e->pos) - (at);		\
			if (__d > 0)						\
				(at) = atomic_read(&(ring)->head);		\
		} while (__d >= 0 && (__d > 0 ||				\
			 !atomic_try_cmpxchg_relaxed(&(ring)->head, (int *)&(at), (at) + 1))); \
		__d < 0 ? NULL : __e;						\
	})

/* Takes a published entry at the tail, NULL if there is none. */
#define lim_take(ring, entries, at)						\
	({									\
		typeof(entries) __e;						\
		s32 __d;							\
										\
		(at) = atomic_read(&(ring)->tail);				\
		do {								\
			__e = &(entries)[(at) & (ring)->mask];			\
			/* Pairs with lim_publish(). */				\
			__d = smp_load_acquire(&__e->pos) - ((at) + 1);		\
			if (__d > 0)						\
				(at) = atomic_read(&(ring)->tail);		\
		} while (__d >= 0 && (__d > 0 ||				\
			 !atomic_try_cmpxchg_relaxed(&(ring)->tail, (int *)&(at), (at) + 1))); \
		__d < 0 ? NULL : __e;						\
	})

/* Pairs with the acquire in lim_take() and lim_run(). */
#define lim_publish(entry, at)		smp_store_release(&(entry)->pos, (at) + 1)
/* Pairs with the acquire in lim_reserve(). */
#define lim_free(ring, entry, at)	smp_store_release(&(entry)->pos, (at) + (ring)->size)

/* --- gates --- */

void lim_gate_init(struct lim_gate *gate)
{
	atomic_set(&gate->users, 0);
	init_completion(&gate->empty);
}

static __always_inline void lim_gate_leave(struct lim_gate *gate)
{
	if (unlikely(atomic_dec_return_release(&gate->users) == LIM_CLOSED))
		complete(&gate->empty);
}

static __always_inline bool lim_gate_enter(struct lim_gate *gate)
{
	if (likely(atomic_inc_return_acquire(&gate->users) > 0))
		return true;
	lim_gate_leave(gate);
	return false;
}

/* Returns when nobody is inside, and nobody will be. */
void lim_gate_close(struct lim_gate *gate)
{
	if (atomic_add_return(LIM_CLOSED, &gate->users) != LIM_CLOSED)
		wait_for_completion(&gate->empty);
}

/* --- completions --- */

static __always_inline void lim_complete(struct lim_cq *cq, struct lim_qp *qp,
					 struct ib_cqe *done, enum ib_wc_status status,
					 enum ib_wc_opcode opcode, u32 len)
{
	struct lim_cqe *e;
	u32 at;

	e = lim_reserve(&cq->ring, cq->entry, at);
	if (unlikely(!e)) {
		WRITE_ONCE(cq->lost, true);
		return;
	}
	e->cqe = done;
	e->qp = &qp->ib;
	e->status = status;
	e->opcode = opcode;
	e->byte_len = len;
	lim_publish(e, at);
	/* Pairs with the xchg() in lim_req_notify_cq(): one of the two sees the other. */
	smp_mb();
	if (unlikely(READ_ONCE(cq->armed)) && xchg(&cq->armed, 0))
		WRITE_ONCE(cq->due, true);
}

static bool lim_cq_empty(const struct lim_cq *cq)
{
	u32 at = atomic_read(&cq->ring.tail);

	return (s32)(READ_ONCE(cq->entry[at & cq->ring.mask].pos) - (at + 1)) < 0;
}

int lim_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct lim_cq *cq = container_of(ibcq, struct lim_cq, ib);

	/* Pairs with the barrier in lim_complete(). */
	xchg(&cq->armed, 1);
	return (flags & IB_CQ_REPORT_MISSED_EVENTS) && !lim_cq_empty(cq);
}

/* Takes a run of published entries with one exchange. Returns how many, up to @n. */
static int lim_take_run(struct lim_cq *cq, int n, u32 *at)
{
	u32 tail = atomic_read(&cq->ring.tail);
	int run;

	do {
		run = 0;
		/* Pairs with lim_publish(). */
		while (run < n && smp_load_acquire(&cq->entry[(tail + run) & cq->ring.mask].pos) ==
				  tail + run + 1)
			run++;
	} while (run && !atomic_try_cmpxchg_relaxed(&cq->ring.tail, (int *)&tail, tail + run));
	*at = tail;
	return run;
}

int lim_poll_cq(struct ib_cq *ibcq, int n, struct ib_wc *wc)
{
	struct lim_cq *cq = container_of(ibcq, struct lim_cq, ib);
	struct lim_cqe *e;
	int i, run;
	u32 at;

	run = lim_take_run(cq, n, &at);
	for (i = 0; i < run; i++, wc++, at++) {
		e = &cq->entry[at & cq->ring.mask];
		wc->wr_cqe = e->cqe;
		wc->status = e->status;
		wc->opcode = e->opcode;
		wc->vendor_err = 0;
		wc->byte_len = e->byte_len;
		wc->qp = e->qp;
		wc->wc_flags = 0;
		lim_free(&cq->ring, e, at);
	}
	return run;
}

/* --- receives --- */

static __always_inline int lim_rq_post(struct lim_rq *rq, const struct ib_recv_wr *wr)
{
	struct lim_rqe *e;
	u32 at;

	if (unlikely(wr->num_sge != 1))
		return -EINVAL;
	e = lim_reserve(&rq->ring, rq->entry, at);
	if (unlikely(!e))
		return -ENOMEM;
	e->cqe = wr->wr_cqe;
	e->sge = wr->sg_list[0];
	lim_publish(e, at);
	return 0;
}

static __always_inline int lim_rq_post_all(struct lim_rq *rq, const struct ib_recv_wr *wr,
					   const struct ib_recv_wr **bad)
{
	int ret = 0;

	for (; wr; wr = wr->next) {
		ret = lim_rq_post(rq, wr);
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	return ret;
}

int lim_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad)
{
	return lim_rq_post_all(container_of(ibqp, struct lim_qp, ib)->rq, wr, bad);
}

int lim_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	return lim_rq_post_all(&container_of(ibsrq, struct lim_srq, ib)->rq, wr, bad);
}

/* --- execution --- */

static __always_inline void lim_copy_words(u64 *to, const u64 *from)
{
	u64 a = from[0], b = from[1], c = from[2], d = from[3];

	to[0] = a;
	to[1] = b;
	to[2] = c;
	to[3] = d;
}

/* What is small and of whole blocks goes without a call. */
static __always_inline void lim_copy(void *to, const void *from, u32 len)
{
	if (len > LIM_COPY || len % 64) {
		memcpy(to, from, len);
		return;
	}
	for (; len; len -= 64, to += 64, from += 64) {
		lim_copy_words(to, from);
		lim_copy_words(to + 32, from + 32);
	}
}

/* The queue pair at the other end, and its receive. */
static __always_inline enum ib_wc_status lim_send(struct lim_qp *qp,
						  const struct ib_sge *from)
{
	struct lim_qp *peer = qp->peer;
	enum ib_wc_status status = IB_WC_SUCCESS;
	struct ib_cqe *done;
	struct lim_rqe *e;
	u32 at;

	if (unlikely(!lim_gate_enter(&peer->gate)))
		return IB_WC_RETRY_EXC_ERR;
	e = lim_take(&peer->rq->ring, peer->rq->entry, at);
	if (unlikely(!e)) {
		lim_gate_leave(&peer->gate);
		return IB_WC_RNR_RETRY_EXC_ERR;
	}
	done = e->cqe;
	if (unlikely(e->sge.lkey != peer->local_key || e->sge.length < from->length))
		status = IB_WC_LOC_LEN_ERR;
	else
		lim_copy((void *)e->sge.addr, (void *)from->addr, from->length);
	lim_free(&peer->rq->ring, e, at);
	lim_complete(peer->recv_cq, peer, done, status, IB_WC_RECV, from->length);
	lim_gate_leave(&peer->gate);
	return status == IB_WC_SUCCESS ? status : IB_WC_REM_OP_ERR;
}

static __always_inline enum ib_wc_status lim_rdma(struct lim_qp *qp,
						  const struct ib_sge *own,
						  u64 addr, u32 rkey, bool read)
{
	struct lim_region *region = qp->region;
	struct lim_qp *peer = qp->peer;
	enum ib_wc_status status = IB_WC_SUCCESS;

	if (unlikely(!lim_gate_enter(&peer->gate)))
		return IB_WC_RETRY_EXC_ERR;
	if (unlikely(!lim_gate_enter(&region->gate))) {
		lim_gate_leave(&peer->gate);
		return IB_WC_REM_ACCESS_ERR;
	}
	if (unlikely(rkey != region->key || addr < region->start ||
		     own->length > region->length ||
		     addr - region->start > region->length - own->length))
		status = IB_WC_REM_ACCESS_ERR;
	else if (read)
		lim_copy((void *)own->addr, (void *)addr, own->length);
	else
		lim_copy((void *)addr, (void *)own->addr, own->length);
	lim_gate_leave(&region->gate);
	lim_gate_leave(&peer->gate);
	return status;
}

/* The caller owns the doorbell. */
static __always_inline void lim_execute(struct lim_qp *qp, enum ib_wr_opcode opcode,
					struct ib_cqe *done, const struct ib_sge *sge,
					u64 remote_addr, u32 rkey)
{
	enum ib_wc_opcode wc_opcode;
	enum ib_wc_status status;

	if (unlikely(qp->broken || sge->lkey != qp->local_key)) {
		lim_complete(qp->send_cq, qp, done, qp->broken ? IB_WC_WR_FLUSH_ERR :
			     IB_WC_LOC_PROT_ERR, IB_WC_SEND, 0);
		qp->broken = true;
		return;
	}
	if (opcode == IB_WR_SEND) {
		wc_opcode = IB_WC_SEND;
		status = lim_send(qp, sge);
	} else {
		wc_opcode = opcode == IB_WR_RDMA_READ ? IB_WC_RDMA_READ : IB_WC_RDMA_WRITE;
		status = lim_rdma(qp, sge, remote_addr, rkey, opcode == IB_WR_RDMA_READ);
	}
	if (unlikely(status != IB_WC_SUCCESS))
		qp->broken = true;
	lim_complete(qp->send_cq, qp, done, status, wc_opcode, sge->length);
}

/* Executes what is published. The tail is the owner's. */
static noinline void lim_run(struct lim_qp *qp)
{
	u32 at = atomic_read(&qp->ring.tail);
	struct lim_sqe *e;

	for (;; at++) {
		e = &qp->sq[at & qp->ring.mask];
		/* Pairs with lim_publish(). */
		if (smp_load_acquire(&e->pos) != at + 1)
			break;
		lim_execute(qp, e->opcode, e->cqe, &e->sge, e->remote_addr, e->rkey);
		lim_free(&qp->ring, e, at);
		atomic_set(&qp->ring.tail, at + 1);
	}
}

/* Releases the doorbell, unless somebody has posted meanwhile. */
static bool lim_release(struct lim_qp *qp)
{
	return likely(atomic_cmpxchg(&qp->doorbell, LIM_OWNED, LIM_IDLE) == LIM_OWNED);
}

static noinline void lim_go_on(struct lim_qp *qp)
{
	do {
		/* Posts that come from here on ask for another look. */
		atomic_xchg(&qp->doorbell, LIM_OWNED);
		lim_run(qp);
	} while (!lim_release(qp));
}

static bool lim_is_rdma(const struct ib_send_wr *wr)
{
	return wr->opcode == IB_WR_RDMA_WRITE || wr->opcode == IB_WR_RDMA_READ;
}

static bool lim_wr_good(const struct ib_send_wr *wr)
{
	return wr->num_sge == 1 && (wr->opcode == IB_WR_SEND || lim_is_rdma(wr));
}

static int lim_queue(struct lim_qp *qp, const struct ib_send_wr *wr)
{
	struct lim_sqe *e;
	u32 at;

	if (unlikely(!lim_wr_good(wr)))
		return -EINVAL;
	e = lim_reserve(&qp->ring, qp->sq, at);
	if (unlikely(!e))
		return -ENOMEM;
	e->opcode = wr->opcode;
	e->cqe = wr->wr_cqe;
	e->sge = wr->sg_list[0];
	if (lim_is_rdma(wr)) {
		e->remote_addr = rdma_wr(wr)->remote_addr;
		e->rkey = rdma_wr(wr)->rkey;
	}
	lim_publish(e, at);
	return 0;
}

static noinline int lim_post_queued(struct lim_qp *qp, const struct ib_send_wr *wr,
				    const struct ib_send_wr **bad)
{
	int ret = 0;

	for (; wr && !ret; wr = ret ? wr : wr->next)
		ret = lim_queue(qp, wr);
	if (ret)
		*bad = wr;
	if (atomic_xchg(&qp->doorbell, LIM_AGAIN) == LIM_IDLE)
		lim_go_on(qp);
	return ret;
}

/* The caller owns the doorbell. Returns false if the request has to queue. */
static __always_inline bool lim_post_direct(struct lim_qp *qp, const struct ib_send_wr *wr)
{
	int at = atomic_read(&qp->ring.tail);
	struct lim_sqe *e = &qp->sq[at & qp->ring.mask];
	int head = at;

	/* Whoever has taken a position in front of it is first. */
	if (unlikely(!atomic_try_cmpxchg_acquire(&qp->ring.head, &head, at + 1)))
		return false;
	if (wr->opcode == IB_WR_SEND)
		lim_execute(qp, IB_WR_SEND, wr->wr_cqe, wr->sg_list, 0, 0);
	else
		lim_execute(qp, wr->opcode, wr->wr_cqe, wr->sg_list,
			    rdma_wr(wr)->remote_addr, rdma_wr(wr)->rkey);
	lim_free(&qp->ring, e, at);
	atomic_set(&qp->ring.tail, at + 1);
	return true;
}

int lim_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad)
{
	struct lim_qp *qp = container_of(ibqp, struct lim_qp, ib);
	int old = LIM_IDLE, ret = 0;

	/* An owner that is not running would keep the others from it. */
	preempt_disable();
	if (unlikely(wr->next || !lim_wr_good(wr) ||
		     !atomic_try_cmpxchg_acquire(&qp->doorbell, &old, LIM_OWNED))) {
		ret = lim_post_queued(qp, wr, bad);
	} else if (unlikely(!lim_post_direct(qp, wr))) {
		ret = lim_queue(qp, wr);
		if (ret)
			*bad = wr;
		lim_go_on(qp);
	} else if (unlikely(!lim_release(qp))) {
		lim_go_on(qp);
	}
	preempt_enable();
	return ret;
}
