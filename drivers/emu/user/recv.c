// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receives that a process posts, to a queue pair or to an SRQ.
 *
 * No doorbell announces them: an engine that needs a receive looks whether there is one. Any
 * number of engines may do so at a time, in any context: each copies the oldest entry, and then
 * moves @taken. If somebody was faster, it drops its copy. What the process does to the entry
 * meanwhile harms the process only.
 *
 * A receive of a queue pair counts until its completion can be polled, and one of an SRQ until it
 * is taken. If several engines take receives of an SRQ, each writes the position for the process;
 * as each looks again after it has written, the last one to write has the latest position.
 *
 * In the error state a queue pair's receives are flushed, and so are those that are posted then.
 * Nothing announces them: librxe writes the entry and the position, and makes no system call, nor
 * does a process that polls for the flush. So the kernel has to poll for them. A work item does,
 * at growing intervals while none come, until the queue pair leaves the error state or is
 * destroyed. It must not end before: the process would wait for ever. The total cost of this
 * polling is bounded, however many queue pairs a process leaves in that state: see
 * EMU_RQ_LOOKS_PER_MS.
 *
 * An entry that an engine takes may be invalid: it is treated as a receive whose memory cannot be
 * used.
 *
 * To change the size of an SRQ, emu_user_resize_srq() seals the old ring, which ends all taking,
 * moves what is left in it, and puts a new one in its place. Engines come again later meanwhile.
 */
#include <linux/jiffies.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <kverbs/delay.h>
#include <rdma/uverbs_ioctl.h>

#include "../queue/doorbell.h"
#include "ring.h"
#include "user.h"

/* Set in @taken when nothing may be taken from the ring any more. */
#define EMU_RQ_SEALED	BIT(31)

/* The interval of polling for receives that are posted in the error state, in ms. */
#define EMU_RQ_WATCH_MIN_MS	1
#define EMU_RQ_WATCH_MAX_MS	256
/*
 * The limit of polls per ms, on average, for all queues of the machine together; each takes one or
 * two us. With more queues, the interval grows.
 */
#define EMU_RQ_LOOKS_PER_MS	4

/**
 * struct emu_user_rq - where a process posts receives
 * @ring: the ring
 * @base: entry of the ring that is position 0
 * @taken: position of the next entry to take; or with EMU_RQ_SEALED
 * @max_sge: maximum number of elements of an entry
 * @qp: the queue pair; NULL with an SRQ
 * @watch: polls for receives in the error state
 * @watch_ms: its interval, in ms
 */
struct emu_user_rq {
	struct emu_uring *ring;
	u32 base;
	atomic_t taken;
	u32 max_sge;
	struct emu_qp *qp;
	struct delayed_work watch;
	u32 watch_ms;
};

/*
 * Copies an entry, whose contents cannot be trusted. @head is a copy of its head, since the process
 * may change the entry at any time.
 */
static void emu_user_fill_recv(const struct emu_user_rq *rq, struct emu_rwqe *to,
			       const struct rxe_recv_wqe *head, const struct rxe_recv_wqe *from)
{
	u32 i;

	to->wr_id = head->wr_id;
	to->num_sge = head->dma.num_sge;
	to->length = 0;
	if (unlikely(to->num_sge > rq->max_sge)) {
		/* No region has this key. */
		to->num_sge = 1;
		to->sge[0] = (struct ib_sge) { .length = U32_MAX };
	} else {
		emu_uring_copy_sges(to->sge, from->dma.sge, to->num_sge);
	}
	for (i = 0; i < to->num_sge; i++)
		to->length += to->sge[i].length;
}

/* Writes the position up to which the process may reuse entries of an SRQ. */
static void emu_user_publish_taken(struct emu_user_rq *rq)
{
	u32 taken;

	do {
		taken = atomic_read(&rq->taken);
		kverbs_delay("emu_user_publish_taken");
		emu_uring_consumed(rq->ring, rq->base + taken);
		/* Full barrier, pairs with the cmpxchg in emu_user_claim() by others. */
		smp_mb();
	} while ((u32)atomic_read(&rq->taken) != taken);
}

/* See struct emu_user_ops. */
enum emu_outcome emu_user_claim(struct emu_user_rq *rq, u64 room, struct emu_rwqe *copy)
{
	u32 taken = atomic_read(&rq->taken);
	const struct rxe_recv_wqe *from;
	struct rxe_recv_wqe head;
	u32 at, next;

	BUILD_BUG_ON(sizeof(head) % sizeof(u64));
	for (;;) {
		if (unlikely(taken & EMU_RQ_SEALED))
			return EMU_AGAIN;
		at = (rq->base + taken) & rq->ring->mask;
		if (emu_uring_producer(rq->ring) == at)
			return EMU_RNR;
		from = emu_uring_entry(rq->ring, at);
		emu_uring_copy(&head, from, sizeof(head));
		emu_user_fill_recv(rq, copy, &head, from);
		kverbs_delay("emu_user_claim");
		/* The copy is good if the entry is still the oldest. */
		next = copy->length < room ? taken : (taken + 1) & ~EMU_RQ_SEALED;
		if (likely(atomic_try_cmpxchg(&rq->taken, (int *)&taken, next)))
			break;
	}
	if (unlikely(next == taken))
		return EMU_FAILED;
	if (!rq->qp)
		emu_user_publish_taken(rq);
	return EMU_DONE;
}

u32 emu_user_used(struct emu_user_rq *rq)
{
	u32 taken = (u32)atomic_read(&rq->taken) & ~EMU_RQ_SEALED;

	return (emu_uring_producer(rq->ring) - rq->base - taken) & rq->ring->mask;
}

u32 emu_user_depth(const struct emu_user_rq *rq)
{
	return rq->ring->mask;
}

/* Tells the process how many receives have been retired; see emu_user_retired_sends(). */
void emu_user_retired_recvs(const struct emu_qp *qp)
{
	const struct emu_user_rq *rq = qp->user_rq;

	if (rq)
		emu_uring_consumed(rq->ring, rq->base + (u32)atomic_read(&qp->rq.retired));
}

/* Number of queues whose @watch is queued. */
static atomic_t emu_rq_looks = ATOMIC_INIT(0);

/* Queues @watch, with its interval as the delay; a longer one if many queues are polled. */
static void emu_user_rq_queue_watch(struct emu_user_rq *rq)
{
	u32 ms = max_t(u32, READ_ONCE(rq->watch_ms),
		       atomic_read(&emu_rq_looks) / EMU_RQ_LOOKS_PER_MS);

	/* First, because the work item decrements it when it runs. */
	atomic_inc(&emu_rq_looks);
	if (!queue_delayed_work(system_unbound_wq, &rq->watch, msecs_to_jiffies(ms)))
		atomic_dec(&emu_rq_looks);
}

/* See @flushed of struct emu_user_ops. */
void emu_user_watch_recvs(struct emu_qp *qp)
{
	emu_user_rq_queue_watch(qp->user_rq);
}

static void emu_user_rq_watch(struct work_struct *work)
{
	struct emu_user_rq *rq = container_of(to_delayed_work(work), struct emu_user_rq, watch);

	atomic_dec(&emu_rq_looks);
	/* True after a reset, and also once the queue pair was abandoned. */
	if (atomic_read(&rq->qp->state) != IB_QPS_ERR)
		return;
	if (emu_user_used(rq)) {
		WRITE_ONCE(rq->watch_ms, EMU_RQ_WATCH_MIN_MS);
		/* The flush calls emu_user_watch_recvs() at its end. */
		emu_qp_ring(rq->qp);
		return;
	}
	WRITE_ONCE(rq->watch_ms, min_t(u32, 2 * rq->watch_ms, EMU_RQ_WATCH_MAX_MS));
	emu_user_rq_queue_watch(rq);
}

/* Ends @watch. It may be queued again when this returns. */
static void emu_user_rq_end_watch(struct emu_user_rq *rq)
{
	if (cancel_delayed_work_sync(&rq->watch))
		atomic_dec(&emu_rq_looks);
}

/*
 * Drops all receives. The queue pair is frozen, its gate closed and empty, and none of its
 * completions are left.
 */
void emu_user_reset_rq(struct emu_qp *qp)
{
	struct emu_user_rq *rq = qp->user_rq;

	/* The next error state begins with a short interval. */
	emu_user_rq_end_watch(rq);
	WRITE_ONCE(rq->watch_ms, EMU_RQ_WATCH_MIN_MS);
	rq->base = emu_uring_producer(rq->ring);
	atomic_set(&rq->taken, 0);
	emu_uring_consumed(rq->ring, rq->base);
}

static struct emu_user_rq *emu_user_rq_create(struct ib_udata *udata, u32 max_wr, u32 max_sge)
{
	struct emu_user_rq *rq = kzalloc(sizeof(*rq), GFP_KERNEL_ACCOUNT);
	int err;

	if (!rq)
		return ERR_PTR(-ENOMEM);
	rq->max_sge = max_sge;
	rq->watch_ms = EMU_RQ_WATCH_MIN_MS;
	INIT_DELAYED_WORK(&rq->watch, emu_user_rq_watch);
	rq->ring = emu_uring_create(emu_user_context(udata), max_wr,
				    sizeof(struct rxe_recv_wqe) + max_sge * sizeof(struct rxe_sge));
	if (!IS_ERR(rq->ring))
		return rq;
	err = PTR_ERR(rq->ring);
	kfree(rq);
	return ERR_PTR(err);
}

/* Frees a queue. Nothing can be taken any more, and a grace period is over. NULL is a no-op. */
void emu_user_free_rq(struct emu_user_rq *rq)
{
	if (!rq)
		return;
	emu_user_rq_end_watch(rq);
	emu_uring_destroy(rq->ring);
	kfree(rq);
}

struct mminfo emu_user_rq_info(const struct emu_user_rq *rq)
{
	return rq ? emu_uring_info(rq->ring) : (struct mminfo) {};
}

/* Creates the ring of a queue pair's receives. Sets the size in @init to that of the ring. */
int emu_user_make_rq(struct emu_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct emu_user_rq *rq;

	rq = emu_user_rq_create(udata, init->cap.max_recv_wr, init->cap.max_recv_sge);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	init->cap.max_recv_wr = rq->ring->mask;
	rq->qp = qp;
	qp->user_rq = rq;
	return 0;
}

/* --- SRQs ------------------------------------------------------------------------ */

/* Creates the ring of an SRQ. Sets the size in @init to that of the ring. */
int emu_user_make_srq(struct emu_srq *srq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct emu_user_rq *rq;

	rq = emu_user_rq_create(udata, init->attr.max_wr, init->attr.max_sge);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	init->attr.max_wr = rq->ring->mask;
	srq->user_rq = rq;
	return 0;
}

/* Responds without a number of the SRQ: only XRC uses it, which is not supported. */
int emu_user_publish_srq(struct emu_srq *srq, struct ib_udata *udata)
{
	struct rxe_create_srq_resp resp = { .mi = emu_user_rq_info(srq->user_rq) };

	return emu_user_respond(udata, &resp, sizeof(resp));
}

/*
 * Moves the entries that are left in a sealed queue to a new one. Returns 0, or -EINVAL if there
 * are more than the @max_wr that were asked for.
 */
static int emu_user_rq_move_entries(struct emu_user_rq *from, struct emu_user_rq *to, u32 max_wr)
{
	u32 count = emu_user_used(from);
	u32 first = from->base + ((u32)atomic_read(&from->taken) & ~EMU_RQ_SEALED);
	u32 i;

	if (count > max_wr)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		/* Entries of both rings have the same size. */
		emu_uring_copy(emu_uring_entry(to->ring, i), emu_uring_entry(from->ring, first + i),
			       1UL << from->ring->shift);
		cond_resched();
	}
	emu_uring_produce(to->ring, count);
	return 0;
}

static int emu_user_srq_replace_rq(struct emu_srq *srq, struct emu_user_rq *rq, u32 max_wr)
{
	struct emu_user_rq *old = srq->user_rq;
	int err;

	lockdep_assert_held(&srq->lock);
	/* Full barrier: from now on @taken does not change. */
	atomic_fetch_or(EMU_RQ_SEALED, &old->taken);
	err = emu_user_rq_move_entries(old, rq, max_wr);
	if (err) {
		atomic_fetch_andnot(EMU_RQ_SEALED, &old->taken);
		return err;
	}
	/* release: whoever sees the new memory sees it set up, see queue/srq.c */
	smp_store_release(&srq->user_rq, rq);
	synchronize_rcu();
	emu_user_free_rq(old);
	return 0;
}

static int emu_user_srq_report_ring(const struct emu_user_rq *rq, struct ib_udata *udata)
{
	struct mminfo info = emu_user_rq_info(rq);
	struct rxe_modify_srq_cmd cmd;
	int err;

	if (udata->inlen < sizeof(cmd))
		return -EINVAL;
	err = ib_copy_from_udata(&cmd, udata, sizeof(cmd));
	if (!err && copy_to_user(u64_to_user_ptr(cmd.mmap_info_addr), &info, sizeof(info)))
		err = -EFAULT;
	return err;
}

/* Resizes an SRQ. The request has an address at which to write how the new ring is mapped. */
int emu_user_resize_srq(struct emu_srq *srq, u32 max_wr, struct ib_udata *udata)
{
	struct emu_user_rq *rq;
	int err;

	if (!max_wr)
		return -EINVAL;
	rq = emu_user_rq_create(udata, max_wr, srq->max_sge);
	if (IS_ERR(rq))
		return PTR_ERR(rq);
	err = emu_user_srq_report_ring(rq, udata);
	if (!err) {
		mutex_lock(&srq->lock);
		err = emu_user_srq_replace_rq(srq, rq, max_wr);
		mutex_unlock(&srq->lock);
	}
	if (err)
		emu_user_free_rq(rq);
	return err;
}
