// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues.
 *
 * Producers (cqring.h) are the owners of the queue pairs attached to the queue, and the
 * engines that act as responder of such a queue pair, on any CPU and in any
 * context. Consumers are the callers of ib_poll_cq(), any number of them. None
 * takes a lock.
 *
 * A producer reserves a position by moving @head, which it may do while the ring
 * has room, fills the entry and publishes it by writing its sequence number,
 * position + 1. A poller copies the run of published entries from @tail on and
 * then moves @tail behind them; if another poller was faster, it starts again.
 * What a slow poller copied may have been overwritten meanwhile, but then its
 * cmpxchg fails and the copy is dropped. Pairs:
 *
 *   A  emu_cq_end(): release of @seq - emu_cq_take(): acquire
 *	a poller that sees the number sees the entry
 *   B  emu_cq_take(): release in the cmpxchg of @tail - emu_cq_begin(): acquire
 *	an entry is copied before it is overwritten
 *   C  emu_cq_end(): full barrier between @seq and the look at @arm -
 *	emu_req_notify_cq(): full barrier between @arm and the look at @seq
 *	either the producer sees the queue armed, or the consumer is told that
 *	it missed an entry
 *
 * If both, the word decides: whoever clears it, acts. The producer notifies, or
 * the consumer takes its arming back and is told.
 *
 * An entry names its queue pair by pointer. Pollers hold rcu_read_lock() while
 * they use it; a queue pair that goes away has its entries struck out by
 * emu_cq_forget_qp(), and is freed a grace period later.
 */
#include <linux/slab.h>
#include <kverbs/completion.h>

#include "cqring.h"

/* Entries copied before @tail is moved: bounds the work that a lost race wastes. */
#define EMU_POLL_BATCH		16

static bool emu_cq_published(const struct emu_cq *cq, u32 pos)
{
	/* acquire: pair A */
	return smp_load_acquire(&emu_cq_entry(cq, pos)->seq) == pos + 1;
}

/* A completion found no room: counted, told once, and never forgiven. */
void emu_cq_overrun(struct emu_cq *cq)
{
	atomic_inc(&cq->lost);
	if (!xchg(&cq->overrun, true))
		ib_cq_notify_event(&cq->ibcq, IB_EVENT_CQ_ERR);
}

/*
 * The entry at @pos was published while the queue was armed. If entries behind
 * it were published before, a consumer that looked then stopped here, and may
 * have armed the queue again since: a solicited one among them counts now.
 */
void emu_cq_wake(struct emu_cq *cq, u32 pos, bool solicited)
{
	bool any = solicited || emu_cq_published(cq, pos + 1);
	int wanted = EMU_ARM_NEXT | (any ? EMU_ARM_SOLICITED : 0);
	int arm = atomic_read(&cq->arm);

	while (arm & wanted) {
		if (unlikely(READ_ONCE(cq->moderation)) && !any && emu_cq_hold(cq, pos, &arm))
			return;
		if (atomic_try_cmpxchg(&cq->arm, &arm, arm & EMU_ARM_TIMER)) {
			ib_cq_notify(&cq->ibcq);
			return;
		}
	}
}

/**
 * struct emu_reaped - what polling an entry gives back to its work queue
 * @wqe_pos: position of the work queue entry
 * @recv: of the receive queue
 */
struct emu_reaped {
	u32 wqe_pos;
	bool recv;
};

/*
 * Copies every field that consumers may look at; what is valid by flag only, if
 * the flag can be set. Returns false if the entry is struck out.
 */
static __always_inline bool emu_cq_read(const struct emu_completion *from, struct ib_wc *to,
					struct emu_reaped *reaped)
{
	struct emu_qp *qp = READ_ONCE(from->qp);

	if (unlikely(!qp))
		return false;
	to->wr_id = from->wr_id;
	to->status = from->status;
	to->opcode = from->opcode;
	to->vendor_err = from->vendor_err;
	to->byte_len = from->byte_len;
	to->qp = &qp->ibqp;
	to->ex.imm_data = from->ex.imm_data;
	to->src_qp = from->src_qp;
	to->slid = from->slid;
	to->wc_flags = from->wc_flags;
	to->pkey_index = from->pkey_index;
	to->sl = 0;
	to->dlid_path_bits = 0;
	to->port_num = from->port_num;
	to->network_hdr_type = 0;
	to->timestamp = ib_cq_timing() ? from->stamp : 0;
	reaped->wqe_pos = from->wqe_pos;
	reaped->recv = from->recv;
	return true;
}

/* Opens the work queue to as many new entries as were reaped. */
static void emu_cq_retire(struct emu_qp *qp, const struct emu_reaped *reaped)
{
	if (reaped->recv)
		emu_ring_retire_one(&qp->rq);
	else
		emu_ring_retire_to(&qp->sq, reaped->wqe_pos);
}

/* Polls at most @max entries, EMU_POLL_BATCH or fewer. Returns how many. */
static int emu_cq_take(struct emu_cq *cq, int max, struct ib_wc *wc)
{
	struct emu_reaped reaped[EMU_POLL_BATCH];
	u32 tail = atomic_read(&cq->tail);
	u32 pos;
	int got, i;

	do {
		got = 0;
		for (pos = tail; got < max && emu_cq_published(cq, pos); pos++) {
			/* May be torn when another poller was faster: see the top. */
			if (likely(data_race(emu_cq_read(&emu_cq_entry(cq, pos)->wc, &wc[got],
							 &reaped[got]))))
				got++;
		}
		if (pos == tail)
			return 0;
		/* release: pair B */
	} while (!atomic_try_cmpxchg(&cq->tail, (int *)&tail, pos));

	for (i = 0; i < got; i++)
		emu_cq_retire(to_eqp(wc[i].qp), &reaped[i]);
	return got;
}

int emu_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct emu_cq *cq = to_ecq(ibcq);
	int wanted, got, done = 0;

	rcu_read_lock();
	do {
		wanted = min(num_entries - done, EMU_POLL_BATCH);
		got = emu_cq_take(cq, wanted, wc + done);
		done += got;
	} while (got == wanted && done < num_entries);
	rcu_read_unlock();
	return done;
}

int emu_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	int how = solicited ? EMU_ARM_SOLICITED : EMU_ARM_NEXT;
	struct emu_cq *cq = to_ecq(ibcq);
	bool mine;

	if (unlikely(READ_ONCE(cq->moderation)) && !(atomic_read(&cq->arm) & how))
		WRITE_ONCE(cq->armed_at, atomic_read(&cq->head));
	/* full barrier: pair C */
	mine = !(atomic_fetch_or(how, &cq->arm) & how);
	if (!(flags & IB_CQ_REPORT_MISSED_EVENTS) ||
	    likely(!emu_cq_published(cq, atomic_read(&cq->tail))))
		return 0;
	/* An arming that was there before is somebody else's. */
	if (!mine)
		return 1;
	if (solicited)
		return !!(atomic_fetch_andnot(how, &cq->arm) & how);
	return !!(atomic_fetch_andnot(EMU_ARM_NEXT | EMU_ARM_HELD | EMU_ARM_DUE, &cq->arm) & how);
}

/*
 * Counts the entries that are there, or are being written, up to @wc_cnt. 0 says
 * that the queue was empty at a moment during the call.
 */
int emu_peek_cq(struct ib_cq *ibcq, int wc_cnt)
{
	struct emu_cq *cq = to_ecq(ibcq);
	/* acquire: @head is read after @tail, so it is not behind. */
	u32 tail = atomic_read_acquire(&cq->tail);

	return min3((u32)atomic_read(&cq->head) - tail, cq->mask + 1, (u32)max(wc_cnt, 0));
}

/*
 * Strikes out the entries of a queue pair that completes nothing any more, so
 * that nobody polls a completion of it later on.
 */
void emu_cq_forget_qp(struct emu_cq *cq, struct emu_qp *qp)
{
	u32 head = atomic_read(&cq->head);
	u32 pos;

	for (pos = atomic_read(&cq->tail); pos != head; pos++) {
		/*
		 * The entry may be polled and used again meanwhile, but not by
		 * this queue pair: the comparison is enough.
		 */
		if (emu_cq_published(cq, pos))
			cmpxchg(&emu_cq_entry(cq, pos)->wc.qp, qp, NULL);
	}
	/* Without queue pairs a queue notifies no more. */
	emu_cq_unhold(cq);
}

int emu_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs)
{
	struct emu_cq *cq = to_ecq(ibcq);
	u32 size;

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > EMU_MAX_CQE)
		return -EINVAL;

	size = roundup_pow_of_two(attr->cqe);
	cq->ring = kvcalloc(size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	cq->mask = size - 1;
	atomic_set(&cq->head, 0);
	atomic_set(&cq->tail, 0);
	atomic_set(&cq->arm, 0);
	atomic_set(&cq->lost, 0);
	emu_cq_moderation_init(cq);
	ibcq->cqe = size;
	return 0;
}

/* The midlayer has seen to it that no queue pair uses the queue any more. */
int emu_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct emu_cq *cq = to_ecq(ibcq);

	emu_cq_moderation_exit(cq);
	if (cq->overrun)
		ibdev_warn(ibcq->device, "a completion queue of %s lost %d completions\n",
			   ibcq->res.kern_name, atomic_read(&cq->lost));
	kvfree(cq->ring);
	return 0;
}
