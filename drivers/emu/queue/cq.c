// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completion queues.
 *
 * Producers (cq.h) are the owners of the queue pairs attached to the queue, and the
 * engines that act as responder of such a queue pair, on any CPU and in any
 * context. Consumers are the callers of ib_poll_cq(), any number of them. Neither
 * side takes a lock.
 *
 * A producer reserves a position by moving @head, which it may do while the ring
 * has room. It fills in the entry, and publishes it by writing its sequence number,
 * position + 1. A poller copies published entries from @tail on, as many in a row as belong
 * to one work queue, so that it can retire all of them there at once. It then moves @tail past
 * them. If another poller was faster, the copies may be garbage, but then the cmpxchg of @tail
 * fails, and it starts again. A process's queue has one poller, which reads an entry in place,
 * and then moves @tail: emu_cq_front(), emu_cq_pop().
 *
 * To change the size, emu_resize_cq() links a new ring behind the one in use.
 * Producers use the new ring from then on. The old ring is sealed a grace period
 * later, when no producer uses it any more, because producers have preemption off.
 * Pollers empty the old ring first, and leave it when it is sealed and empty. A
 * ring that they have left is freed at the next change of size, or with the queue.
 * Pairs:
 *
 *   A  emu_cq_end(): release of @seq - emu_cq_take_run(), emu_cq_front(): acquire
 *	a poller that sees the number sees the entry
 *   B  emu_cq_take_run(): release in the cmpxchg of @tail; emu_cq_pop(): release -
 *	emu_cq_begin(): acquire
 *	an entry is copied before it is overwritten
 *   C  emu_cq_end(): full barrier between @seq and the look at @arm -
 *	emu_req_notify_cq(): full barrier between @arm and the look at @seq
 *	either the producer sees the queue armed, or the consumer is told that
 *	it missed an entry
 *   E  emu_cq_replace(): release of @in and @next - emu_cq_begin(), emu_cq_next():
 *	acquire. Whoever sees a new ring sees it set up
 *   F  emu_cq_replace(): release of @sealed - emu_cq_next(): acquire
 *	whoever finds the ring sealed sees all that was written into it
 *
 * If both happen in C, the arm word decides for a CQ that the core polls: whoever clears it, acts.
 * Either the producer notifies, or the consumer takes its arming back and is told. Any other CQ
 * stays armed, so that its consumer may be told, and notified as well.
 *
 * An entry has a pointer to its queue pair. Pollers have preemption off while they use the
 * pointer, and while they use a ring, so at most for a batch of entries. When a queue pair is
 * destroyed, emu_cq_forget_qp() strikes out its entries, and the queue pair is freed a grace
 * period later (those of a process's CQ are waited for instead). In an entry that is struck
 * out, a number takes the place of the pointer: how many entries in a row, from this one on,
 * are struck out. Pollers may have interrupts off, and so step over all of them at once. The
 * number stays right until a poller has passed the entry, because an entry that is struck out
 * remains so until then, and only the holder of @resize_lock changes the number.
 * emu_cq_forget_qp() itself steps over those at @tail, so that they take no room from
 * completions of other queue pairs.
 */
#include <linux/slab.h>
#include <kverbs/completion.h>

#include "qp.h"

/* At most this many entries are copied before @tail is moved, and again if that fails. */
#define EMU_POLL_BATCH		64
/* Number of entries that emu_cq_forget_qp() looks at before it lets others use the CPU. */
#define EMU_FORGET_BATCH	1024

static bool emu_cq_published(const struct emu_cq_ring *ring, u32 pos)
{
	/* acquire: pair A */
	return smp_load_acquire(&emu_cq_entry(ring, pos)->seq) == pos + 1;
}

/* Puts a queue in error for good, and raises the event, once. Any context but NMI. */
void emu_cq_fail(struct emu_cq *cq)
{
	struct emu_cq_ring *ring;

	/* Full barrier, pairs with the one in emu_cq_replace(). */
	if (xchg(&cq->overrun, true))
		return;
	rcu_read_lock();
	ring = READ_ONCE(cq->in);
	/* Under an older mainline's core, debugfs may reach a CQ that is being destroyed. */
	if (ring)
		WRITE_ONCE(ring->room, 0);
	rcu_read_unlock();
	ib_cq_notify_event(&cq->ibcq, IB_EVENT_CQ_ERR);
}

/* A completion found no room, or the queue in error. */
void emu_cq_overrun(struct emu_cq *cq)
{
	atomic_inc(&cq->lost);
	emu_cq_fail(cq);
}

/*
 * Notifies if the entry at @pos, which was published while the queue was armed, is one to notify
 * for. Entries behind it may have been published earlier. Then a consumer may have polled up to
 * this one, which was still missing, and armed the queue for solicited completions: it has not
 * seen those behind, and one of them may be solicited. So this notifies in that case; and to be
 * safe, always while there are two rings.
 */
void emu_cq_wake(struct emu_cq *cq, u32 pos, bool solicited)
{
	struct emu_cq_ring *ring;
	int wanted, arm;
	bool any;

	if (unlikely(cq->user)) {
		emu_user->completed(cq, solicited);
		return;
	}
	ring = READ_ONCE(cq->in);
	any = solicited || READ_ONCE(cq->out) != ring || emu_cq_published(ring, pos + 1);
	wanted = EMU_ARM_NEXT | (any ? EMU_ARM_SOLICITED : 0);
	arm = atomic_read(&cq->arm);
	while (arm & wanted) {
		if (unlikely(READ_ONCE(cq->moderation)) && !any && emu_cq_defer(cq, pos, &arm))
			return;
		if (atomic_try_cmpxchg(&cq->arm, &arm, arm & EMU_ARM_TIMER)) {
			if (!emu_cq_fault_notify(cq))
				ib_cq_notify(&cq->ibcq);
			return;
		}
	}
}

/*
 * The full time at which an entry was written, or 0 if it has no stamp. Its low half tells it,
 * because no entry waits in a queue for four seconds.
 */
static u64 emu_cq_time(u32 stamp)
{
	u64 now = ktime_get_mono_fast_ns();

	return stamp ? now - ((u32)now - stamp) : 0;
}

/* What replaces the pointer to the queue pair in the first of @run entries struck out in a row. */
static struct ib_qp *emu_cq_struck(u32 run)
{
	return (struct ib_qp *)((uintptr_t)run << 1 | 1);
}

static __always_inline bool emu_cq_is_struck(const struct ib_qp *qp)
{
	return (uintptr_t)qp & 1;
}

static u32 emu_cq_struck_run(const struct ib_qp *qp)
{
	return (uintptr_t)qp >> 1;
}

/**
 * struct emu_cq_kind - what the entries of a run have in common
 * @qp: the queue pair, or what replaces it in an entry that is struck out
 * @word: status and opcode
 */
struct emu_cq_kind {
	struct ib_qp *qp;
	u64 word;
};

#define EMU_CQ_WORD(n)		READ_ONCE(((const u64 *)cqe)[n])
#define EMU_CQ_COPY(n, value)	(((u64 *)to)[n] = (value))

static __always_inline struct emu_cq_kind emu_cq_kind(const struct emu_cqe *cqe)
{
	return (struct emu_cq_kind) { .qp = READ_ONCE(cqe->qp), .word = EMU_CQ_WORD(1) };
}

/*
 * Copies an entry word by word, because it may change meanwhile; see the top of
 * this file. The first words are laid out as those of struct ib_wc; the two that make up @kind
 * have been read.
 */
static __always_inline void emu_cq_read(const struct emu_cqe *cqe, struct emu_cq_kind kind,
					struct ib_wc *to)
{
	BUILD_BUG_ON(EMU_WC_PREFIX != 6 * sizeof(u64) + sizeof(u32));
	BUILD_BUG_ON(offsetof(struct emu_cqe, status) != sizeof(u64));
	BUILD_BUG_ON(offsetof(struct emu_cqe, vendor_err) != 2 * sizeof(u64));
	BUILD_BUG_ON(offsetof(struct emu_cqe, origin) != 3 * sizeof(u64) + sizeof(to->qp));
	to->wr_id = READ_ONCE(cqe->wr_id);
	EMU_CQ_COPY(1, kind.word);
	EMU_CQ_COPY(2, EMU_CQ_WORD(2));
	to->qp = kind.qp;
	EMU_CQ_COPY(4, EMU_CQ_WORD(4));
	EMU_CQ_COPY(5, EMU_CQ_WORD(5));
	*(u32 *)&((u64 *)to)[6] = READ_ONCE(((const u32 *)cqe)[12]);
	to->port_num = READ_ONCE(cqe->port_num);
	to->network_hdr_type = READ_ONCE(cqe->network_hdr_type);
	ib_wc_set_stamp(to, ib_cq_timing() ? emu_cq_time(READ_ONCE(cqe->stamp)) : 0);
}

/* The completions from @wc to @end are of datagrams: adds the senders' addresses. */
static noinline void emu_cq_get_senders(struct ib_wc *wc, const struct ib_wc *end)
{
	for (; wc != end; wc++) {
		if (wc->wc_flags & IB_WC_WITH_SMAC)
			emu_wc_get_sender(wc);
	}
}

/* Makes room in a work queue for as many entries as the completions polled in a row retire. */
static __always_inline void emu_cq_retire(struct ib_qp *ibqp, u32 opcode, u32 count)
{
	struct emu_qp *qp = to_eqp(ibqp);

	kverbs_delay("emu_cq_retire");
	if (!(opcode & IB_WC_RECV))
		emu_ring_retire(&qp->sq, count);
	else if (!qp->srq)
		emu_ring_retire(&qp->rq, count);
}

/* Steps over the entries that are struck out in a row from @tail on, if nobody was faster. */
static noinline void emu_cq_skip(struct emu_cq_ring *ring, u32 tail, const struct ib_qp *struck)
{
	/* release: pair B */
	(void)atomic_cmpxchg_release(&ring->tail, tail, tail + emu_cq_struck_run(struck));
}

/**
 * struct emu_cq_run - what a poller got
 * @got: number of entries
 * @empty: nothing was published behind them
 */
struct emu_cq_run {
	int got;
	bool empty;
};

/*
 * Polls at most @max entries in a row that are of one work queue, and have the same status and
 * opcode. If it returns no entries, but not @empty either, it has lost a race or stepped over
 * entries that are struck out, and is called again. Not inline: the loop needs all the registers.
 */
static noinline struct emu_cq_run emu_cq_take_run(struct emu_cq_ring *ring, u32 max,
						  struct ib_wc *wc)
{
	u32 tail = atomic_read(&ring->tail), seq = tail + 1, count = 0;
	const struct emu_cqe *cqe = emu_cq_entry(ring, tail);
	struct emu_cq_kind kind, next;
	struct ib_wc *to = wc;
	bool empty = true;
	int got;

	/* acquire: pair A */
	if (smp_load_acquire(&cqe->seq) != seq)
		return (struct emu_cq_run) { .empty = true };
	kind = emu_cq_kind(cqe);
	next = kind;
	do {
		emu_cq_read(cqe, next, to++);
		count += READ_ONCE(cqe->retires);
		empty = false;
		if (to == wc + max)
			break;
		cqe = emu_cq_entry(ring, seq++);
		/* acquire: pair A */
		if (smp_load_acquire(&cqe->seq) != seq) {
			empty = true;
			break;
		}
		next = emu_cq_kind(cqe);
	} while (likely(next.qp == kind.qp && next.word == kind.word));

	kverbs_delay("emu_cq_take");
	if (unlikely(emu_cq_is_struck(kind.qp))) {
		emu_cq_skip(ring, tail, kind.qp);
		return (struct emu_cq_run) {};
	}
	got = to - wc;
	/* release: pair B */
	if (unlikely(!atomic_try_cmpxchg(&ring->tail, (int *)&tail, tail + got)))
		return (struct emu_cq_run) {};
	if (unlikely(emu_qp_is_datagram(to_eqp(kind.qp))))
		emu_cq_get_senders(wc, to);
	emu_cq_retire(kind.qp, wc->opcode, count);
	return (struct emu_cq_run) { .got = got, .empty = empty };
}

/* Polls at most @max entries, at most EMU_POLL_BATCH, from one ring. Returns their number. */
static __always_inline int emu_cq_take(struct emu_cq_ring *ring, int max, struct ib_wc *wc)
{
	struct emu_cq_run run;
	int got = 0;

	do {
		run = emu_cq_take_run(ring, max - got, wc + got);
		got += run.got;
	} while (!run.empty && got < max);
	return got;
}

/*
 * Returns the ring in which a poller that has found nothing published in @ring goes on: @ring
 * again if it is sealed but not empty; the next one if it is sealed and empty; NULL if there is
 * no next one, or @ring may still be written. Preemption is off, or @resize_lock held.
 */
static struct emu_cq_ring *emu_cq_next(struct emu_cq *cq, struct emu_cq_ring *ring)
{
	/* acquire: pair E */
	struct emu_cq_ring *next = smp_load_acquire(&ring->next);

	/* acquire: pair F */
	if (likely(!next) || !smp_load_acquire(&ring->sealed))
		return NULL;
	if (atomic_read(&ring->head) != atomic_read(&ring->tail))
		return ring;
	cmpxchg(&cq->out, ring, next);
	return next;
}

/* Polls at most @max entries, at most EMU_POLL_BATCH, from all rings. Fewer: it is empty. */
static int emu_cq_poll(struct emu_cq *cq, int max, struct ib_wc *wc)
{
	/* acquire: pair E */
	struct emu_cq_ring *ring = smp_load_acquire(&cq->out);
	int got = 0;

	do {
		got += emu_cq_take(ring, max - got, wc + got);
		if (got == max)
			break;
		ring = emu_cq_next(cq, ring);
	} while (ring);
	return got;
}

/* Polls up to @num_entries in batches, after the first @done of them. Returns their number. */
static noinline int emu_cq_poll_more(struct emu_cq *cq, int num_entries, struct ib_wc *wc, int done)
{
	int wanted, got;

	while (done < num_entries) {
		wanted = min(num_entries - done, EMU_POLL_BATCH);
		preempt_disable();
		got = emu_cq_poll(cq, wanted, wc + done);
		preempt_enable();
		done += got;
		if (got < wanted)
			break;
	}
	return done;
}

/* One run is enough for most polls: it has as many entries as asked for, or all there are. */
int emu_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc)
{
	struct emu_cq *cq = to_ecq(ibcq);
	struct emu_cq_ring *ring;
	struct emu_cq_run run;

	if (unlikely(num_entries <= 0))
		return 0;
	preempt_disable();
	/* acquire: pair E */
	ring = smp_load_acquire(&cq->out);
	run = emu_cq_take_run(ring, min(num_entries, EMU_POLL_BATCH), wc);
	/* If there is another ring, that need not be empty. */
	run.empty = run.empty && !READ_ONCE(ring->next);
	preempt_enable();
	if (likely(run.empty || run.got == num_entries))
		return run.got;
	return emu_cq_poll_more(cq, num_entries, wc, run.got);
}

/*
 * Finds the oldest completion of a process's queue, which only the caller polls; false if there is
 * none. It stays where it is, and preemption off, until emu_cq_pop(). None is struck out in these.
 */
bool emu_cq_front(struct emu_cq *cq, struct emu_cq_place *at)
{
	/* acquire: pair E */
	struct emu_cq_ring *ring = smp_load_acquire(&cq->out);
	u32 tail = atomic_read(&ring->tail);

	while (unlikely(!emu_cq_published(ring, tail))) {
		ring = emu_cq_next(cq, ring);
		if (!ring)
			return false;
		tail = atomic_read(&ring->tail);
	}
	at->ring = ring;
	at->cqe = emu_cq_entry(ring, tail);
	at->qp = to_eqp(READ_ONCE(at->cqe->qp));
	return true;
}

/* Takes the completion that emu_cq_front() found. */
void emu_cq_pop(const struct emu_cq_place *at)
{
	u32 opcode = at->cqe->opcode, retires = at->cqe->retires;

	/* release: pair B. Nobody else moves it. */
	atomic_set_release(&at->ring->tail, atomic_read(&at->ring->tail) + 1);
	emu_cq_retire(&at->qp->ibqp, opcode, retires);
}

/* Whether there is something to poll. */
static bool emu_cq_has_entries(struct emu_cq *cq)
{
	struct emu_cq_ring *ring;
	bool found;

	preempt_disable();
	/* acquire: pair E */
	ring = smp_load_acquire(&cq->out);
	do {
		found = emu_cq_published(ring, atomic_read(&ring->tail));
		if (found)
			break;
		ring = emu_cq_next(cq, ring);
	} while (unlikely(ring));
	preempt_enable();
	return found;
}

/* @by_core: the core polls the CQ, and does so again if it is told that it missed something */
int emu_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags, bool by_core)
{
	bool solicited = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	int how = solicited ? EMU_ARM_SOLICITED : EMU_ARM_NEXT;
	struct emu_cq *cq = to_ecq(ibcq);
	bool mine;

	if (unlikely(READ_ONCE(cq->moderation)) && !(atomic_read(&cq->arm) & how))
		WRITE_ONCE(cq->armed_at, atomic_read(&READ_ONCE(cq->in)->head));
	/* full barrier: pair C */
	mine = !(atomic_fetch_or(how, &cq->arm) & how);
	if (!(flags & IB_CQ_REPORT_MISSED_EVENTS) || likely(!emu_cq_has_entries(cq)))
		return 0;
	/*
	 * The arming is taken back only from who polls again, whatever others have armed meanwhile.
	 * Other consumers may ignore that something was missed; or another thread has found the CQ
	 * empty since, and was told that it is armed.
	 */
	if (!mine || !by_core)
		return 1;
	if (solicited)
		return !!(atomic_fetch_andnot(how, &cq->arm) & how);
	return !!(atomic_fetch_andnot(EMU_ARM_NEXT | EMU_ARM_DEFERRED | EMU_ARM_DUE, &cq->arm) & how);
}

/*
 * Counts the entries that are there, or are being written, up to @wc_cnt. A result
 * of 0 means that the queue was empty at some moment during the call.
 */
int emu_peek_cq(struct ib_cq *ibcq, int wc_cnt)
{
	struct emu_cq *cq = to_ecq(ibcq);
	struct emu_cq_ring *ring;
	u32 tail, count = 0;

	rcu_read_lock();
	/* acquire: pair E */
	for (ring = smp_load_acquire(&cq->out); ring; ring = smp_load_acquire(&ring->next)) {
		/* acquire: @head is read after @tail, so it is not behind. */
		tail = atomic_read_acquire(&ring->tail);
		count += min((u32)atomic_read(&ring->head) - tail, ring->mask + 1);
	}
	rcu_read_unlock();
	return min_t(u32, count, max(wc_cnt, 0));
}

/*
 * Strikes out the entry at @pos if it is of @qp, or was struck out before. @run: how many entries
 * in a row behind it are struck out. Returns @run + 1; or 0 if this entry is not struck out.
 */
static u32 emu_cq_strike(struct emu_cq_ring *ring, u32 pos, struct ib_qp *qp, u32 run)
{
	struct emu_cqe *cqe = emu_cq_entry(ring, pos);
	struct ib_qp *was;

	if (!emu_cq_published(ring, pos))
		return 0;
	/*
	 * The entry may be polled and reused meanwhile, but not by this queue pair, nor
	 * does anybody else strike it out: the comparison is enough.
	 */
	was = READ_ONCE(cqe->qp);
	if (was != qp && !emu_cq_is_struck(was))
		return 0;
	return cmpxchg(&cqe->qp, was, emu_cq_struck(run + 1)) == was ? run + 1 : 0;
}

/*
 * Steps over the entries at @tail that are struck out, as others need the room and nobody may poll
 * soon. If somebody polls now, this may look at a newer entry in the same place, but then @tail
 * has moved, and the step fails.
 */
static void emu_ring_skip_struck(struct emu_cq_ring *ring)
{
	struct ib_qp *was;
	u32 tail;

	do {
		/* As a poller: @tail must not come around between the look and the step. */
		preempt_disable();
		tail = atomic_read(&ring->tail);
		was = emu_cq_published(ring, tail) ? READ_ONCE(emu_cq_entry(ring, tail)->qp) : NULL;
		if (emu_cq_is_struck(was))
			emu_cq_skip(ring, tail, was);
		preempt_enable();
	} while (emu_cq_is_struck(was));
}

/* Goes from the newest entry to the oldest, so that it knows how many behind are struck out. */
static void emu_ring_forget_qp(struct emu_cq_ring *ring, struct ib_qp *qp)
{
	/* acquire: @head is read after @tail, so it is not behind. */
	u32 tail = atomic_read_acquire(&ring->tail);
	u32 pos = atomic_read(&ring->head);
	u32 run = 0;

	while (pos != tail) {
		run = emu_cq_strike(ring, --pos, qp, run);
		if (!(pos % EMU_FORGET_BATCH))
			cond_resched();
	}
}

static void emu_cq_strike_out(struct emu_cq *cq, struct ib_qp *qp)
{
	struct emu_cq_ring *ring;

	/* acquire: pair E */
	for (ring = smp_load_acquire(&cq->out); ring; ring = smp_load_acquire(&ring->next)) {
		emu_ring_forget_qp(ring, qp);
		emu_ring_skip_struck(ring);
	}
}

/*
 * Strikes out the entries of a queue pair that completes nothing any more, so that nobody polls a
 * completion of it later on. A process gets those that are there: it may know by an event that
 * there are no more, and destroy the queue pair. Process context.
 */
void emu_cq_forget_qp(struct emu_cq *cq, struct emu_qp *qp)
{
	/* Keeps the rings, too. */
	mutex_lock(&cq->resize_lock);
	if (cq->user)
		emu_user->settle(cq);
	else
		emu_cq_strike_out(cq, &qp->ibqp);
	/*
	 * Once no queue pair is left, no completion comes that would notify: send
	 * now what is deferred.
	 */
	emu_cq_send_deferred(cq);
	mutex_unlock(&cq->resize_lock);
}

static void emu_cq_ring_free(struct emu_cq_ring *ring)
{
	kvfree(ring->entries);
	kfree(ring);
}

static struct emu_cq_ring *emu_cq_ring_alloc(u32 size)
{
	struct emu_cq_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);

	if (!ring)
		return NULL;
	ring->entries = emu_process_zalloc(array_size(size, sizeof(*ring->entries)));
	if (!ring->entries) {
		kfree(ring);
		return NULL;
	}
	ring->mask = size - 1;
	ring->room = size;
	return ring;
}

/*
 * Frees the rings before @end, which pollers have left. Expedited, because consumers destroy many
 * in a row.
 */
static void emu_cq_reclaim(struct emu_cq *cq, const struct emu_cq_ring *end)
{
	struct emu_cq_ring *ring;

	if (cq->rings == end)
		return;
	synchronize_rcu_expedited();
	while (cq->rings != end) {
		ring = cq->rings;
		cq->rings = ring->next;
		emu_cq_ring_free(ring);
	}
}

/* Moves @cq->out past sealed rings that are empty, as a poller would. */
static void emu_cq_advance(struct emu_cq *cq)
{
	struct emu_cq_ring *ring;

	lockdep_assert_held(&cq->resize_lock);
	rcu_read_lock();
	ring = READ_ONCE(cq->out);
	/* All but the newest are sealed: nobody else changes the size. */
	while (ring->next && atomic_read(&ring->head) == atomic_read(&ring->tail)) {
		cmpxchg(&cq->out, ring, ring->next);
		ring = ring->next;
	}
	rcu_read_unlock();
}

/*
 * Returns how many of the entries that were reserved when this begins have not been polled when it
 * ends. Not emu_peek_cq(), which may count an entry that is then polled, and another one that is
 * written because that has made room; so a resize would be refused although there is room.
 */
static u32 emu_cq_left(struct emu_cq *cq)
{
	/* Pollers may leave it meanwhile, but it is freed under @resize_lock only. */
	struct emu_cq_ring *first = READ_ONCE(cq->out), *ring;
	u32 heads = 0, tails = 0;

	lockdep_assert_held(&cq->resize_lock);
	/* acquire: no tail is read before a head. */
	for (ring = first; ring; ring = ring->next)
		heads += atomic_read_acquire(&ring->head);
	kverbs_delay("emu_cq_left");
	for (ring = first; ring; ring = ring->next)
		tails += atomic_read(&ring->tail);
	return max((s32)(heads - tails), 0);
}

/*
 * Puts a new ring in the place of the one that producers write into. Returns 0, or -EINVAL if there
 * are more entries than the @cqe that were asked for.
 */
static int emu_cq_replace(struct emu_cq *cq, struct emu_cq_ring *ring, u32 cqe)
{
	struct emu_cq_ring *old = cq->in;

	lockdep_assert_held(&cq->resize_lock);
	emu_cq_advance(cq);
	emu_cq_reclaim(cq, READ_ONCE(cq->out));
	if (emu_cq_left(cq) > cqe)
		return -EINVAL;
	/* release: pair E */
	smp_store_release(&old->next, ring);
	/* release: pair E */
	smp_store_release(&cq->in, ring);
	/* Full barrier, pairs with the xchg in emu_cq_fail(): an error lasts. */
	smp_mb();
	if (READ_ONCE(cq->overrun))
		WRITE_ONCE(ring->room, 0);
	synchronize_rcu();
	/* release: pair F */
	smp_store_release(&old->sealed, true);
	/*
	 * A consumer that armed the queue before may have found nothing in the
	 * rings that it could see. Full barrier, pairs with the one of C in
	 * emu_req_notify_cq().
	 */
	smp_mb();
	if (emu_peek_cq(&cq->ibcq, 1))
		emu_cq_wake(cq, 0, true);
	/* With fewer entries, the count that a deferred notification waits for may never come. */
	emu_cq_send_deferred(cq);
	emu_cq_advance(cq);
	return 0;
}

/* The size to report: rounded up to a power of two, but not beyond the device's limit. */
static int emu_cq_cqe(const struct emu_cq_ring *ring)
{
	return min_t(u32, ring->mask + 1, EMU_MAX_CQE);
}

/* The new size must hold the entries that are in the queue; they stay. */
int emu_resize_cq(struct ib_cq *ibcq, int cqe, struct ib_udata *udata)
{
	struct emu_cq *cq = to_ecq(ibcq);
	struct emu_cq_ring *ring;
	int err;

	if (cqe < 1 || cqe > EMU_MAX_CQE)
		return -EINVAL;
	if (emu_fault_alloc(to_edev(ibcq->device)))
		return -ENOMEM;
	ring = emu_cq_ring_alloc(roundup_pow_of_two(cqe));
	if (!ring)
		return -ENOMEM;
	mutex_lock(&cq->resize_lock);
	err = emu_cq_replace(cq, ring, cqe);
	if (err)
		emu_cq_ring_free(ring);
	else
		ibcq->cqe = emu_cq_cqe(ring);
	mutex_unlock(&cq->resize_lock);
	return err;
}

int emu_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs)
{
	struct emu_cq *cq = to_ecq(ibcq);

	if (attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > EMU_MAX_CQE)
		return -EINVAL;
	if (emu_fault_alloc(to_edev(ibcq->device)))
		return -ENOMEM;

	cq->rings = emu_cq_ring_alloc(roundup_pow_of_two(attr->cqe));
	if (!cq->rings)
		return -ENOMEM;
	cq->in = cq->rings;
	cq->out = cq->rings;
	mutex_init(&cq->resize_lock);
	atomic_set(&cq->arm, cq->user ? EMU_ARM_USER : 0);
	atomic_set(&cq->lost, 0);
	emu_cq_moderation_init(cq);
	ibcq->cqe = emu_cq_cqe(cq->rings);
	return 0;
}

/*
 * The midlayer has made sure that no queue pair uses the queue any more. There is always a ring to
 * free, so emu_cq_reclaim() waits for a grace period. The callers rely on that: on return, nobody
 * who has found the queue before still uses it.
 */
int emu_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct emu_cq *cq = to_ecq(ibcq);

	emu_cq_moderation_exit(cq);
	if (atomic_read(&cq->lost))
		ibdev_warn_ratelimited(ibcq->device,
				       "CQ overrun: a CQ of %s lost %d completions\n",
				       ibcq->res.kern_name ?: "a process", atomic_read(&cq->lost));
	WRITE_ONCE(cq->in, NULL);
	/* After a grace period, so emu_cq_fail() has left the ring. */
	emu_cq_reclaim(cq, NULL);
	return 0;
}
