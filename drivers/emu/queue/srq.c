// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared receive queues.
 *
 * Receives are posted by any number of callers and taken by the engines that act
 * as responder of a queue pair of the SRQ, in any context; none takes a lock. See
 * ring.h. An entry is copied when it is taken, and its slot is free for posters again at
 * once, however long the message takes. So polling a completion retires nothing in an SRQ,
 * and a completion may be polled when its queue pair no longer exists.
 *
 * To change the size, emu_srq_replace() links a new ring behind the one in use.
 * Posters use the new ring from then on. The old ring is sealed a grace period
 * later, when no poster uses it any more, because posters have preemption off.
 * Engines empty the old ring first, and leave it when it is sealed and empty.
 * While it is empty but not sealed, they try again later, because what is in the
 * new ring was posted later. The next change of size, or the end of the SRQ, frees
 * the rings that engines have left, after a grace period. Pairs:
 *
 *   A  emu_srq_replace(): release of @in and @next - emu_post_one_srq_recv(),
 *	emu_srq_claim(): acquire. Whoever sees a new ring sees it set up
 *   B  emu_srq_replace(): release of @sealed - emu_srq_claim(): acquire
 *	whoever finds the ring sealed sees all that was posted to it
 *   C  emu_user_srq_replace_rq(): release of @user_rq - emu_srq_claim_user(), emu_srq_used(): acquire
 *	whoever sees new memory of a process sees it set up
 *
 * @lock serialises changes. The limit is an atomic word: whoever takes it down to
 * 0 raises the event.
 */
#include <linux/slab.h>
#include <kverbs/completion.h>

#include "../lib/limits.h"
#include "recv.h"

static u32 emu_srq_ring_used(const struct emu_srq_ring *ring)
{
	/* acquire: @head is read after @tail, so it is not behind. */
	u32 tail = atomic_read_acquire(&ring->ring.tail);

	return atomic_read(&ring->ring.head) - tail;
}

/* The number of receives that have been posted and not taken yet. */
u32 emu_srq_used(struct emu_srq *srq)
{
	struct emu_srq_ring *ring;
	u32 used = 0;

	rcu_read_lock();
	if (srq->user_rq)
		/* acquire: pair C */
		used = emu_user->used(smp_load_acquire(&srq->user_rq));
	/* acquire: pair A */
	for (ring = smp_load_acquire(&srq->out); ring; ring = smp_load_acquire(&ring->next))
		used += emu_srq_ring_used(ring);
	rcu_read_unlock();
	return used;
}

/*
 * Returns how many of the receives that were posted when this begins have not been taken when it
 * ends. Not emu_srq_used(), which may count a receive that is then taken, and another one that is
 * posted because that has made room; so a resize would be refused although there is room.
 */
static u32 emu_srq_left(struct emu_srq *srq)
{
	/* Engines may leave it meanwhile, but it is freed under @lock only. */
	struct emu_srq_ring *first = READ_ONCE(srq->out), *ring;
	u32 heads = 0, tails = 0;

	lockdep_assert_held(&srq->lock);
	/* acquire: no tail is read before a head. */
	for (ring = first; ring; ring = ring->next)
		heads += atomic_read_acquire(&ring->ring.head);
	kverbs_delay("emu_srq_left");
	for (ring = first; ring; ring = ring->next)
		tails += atomic_read(&ring->ring.tail);
	return max((s32)(heads - tails), 0);
}

/* Raises the limit event, once, if fewer receives than the limit are left. Any context but NMI. */
void emu_srq_check_limit(struct emu_srq *srq)
{
	int limit = atomic_read(&srq->limit);

	if (!limit || emu_srq_used(srq) >= limit)
		return;
	if (atomic_cmpxchg(&srq->limit, limit, 0) == limit)
		ib_srq_notify_event(&srq->ibsrq, IB_EVENT_SRQ_LIMIT_REACHED);
}

static noinline enum emu_outcome emu_srq_claim_user(struct emu_srq *srq, u64 room,
						    struct emu_rwqe *copy)
{
	enum emu_outcome outcome;

	/* acquire: pair C */
	outcome = emu_user->claim(smp_load_acquire(&srq->user_rq), room, copy);
	if (outcome == EMU_DONE)
		emu_srq_taken(srq);
	return outcome;
}

/**
 * emu_srq_claim() - take the oldest receive of an SRQ
 * @srq: the SRQ
 * @room: bytes it must have room for, or it is left where it is
 * @copy: where to copy it; has room for EMU_MAX_SGE elements
 *
 * Context: Any; called by an engine, preemption off, which keeps the rings.
 * Return: EMU_DONE; EMU_RNR if there is none; EMU_AGAIN while the size changes, or
 * the oldest is being posted; EMU_FAILED if it is too short.
 */
enum emu_outcome emu_srq_claim(struct emu_srq *srq, u64 room, struct emu_rwqe *copy)
{
	enum emu_outcome outcome;
	struct emu_srq_ring *ring, *next;
	bool too_short = false, taken;

	if (unlikely(srq->user_rq))
		return emu_srq_claim_user(srq, room, copy);
	/* acquire: pair A */
	ring = smp_load_acquire(&srq->out);
	for (;;) {
		taken = emu_recv_ring_claim(&ring->ring, room, copy, &too_short);
		if (taken || too_short)
			break;
		/* acquire: pair A */
		next = smp_load_acquire(&ring->next);
		if (likely(!next)) {
			outcome = emu_recv_ring_none(&ring->ring);
			break;
		}
		/* acquire: pair B */
		if (!smp_load_acquire(&ring->sealed)) {
			outcome = EMU_AGAIN;
			break;
		}
		/*
		 * More may have been posted after we found it empty and before
		 * it was sealed: look again.
		 */
		if (emu_srq_ring_used(ring))
			continue;
		cmpxchg(&srq->out, ring, next);
		ring = next;
	}

	if (too_short)
		return EMU_FAILED;
	if (!taken)
		return outcome;
	emu_srq_taken(srq);
	return EMU_DONE;
}

static struct emu_srq_ring *emu_srq_ring_alloc(u32 max_wr, u32 max_sge)
{
	struct emu_srq_ring *ring = kzalloc(sizeof(*ring), GFP_KERNEL_ACCOUNT);

	if (!ring)
		return NULL;
	if (emu_ring_init(&ring->ring, max_wr, emu_rwqe_size(max_sge))) {
		kfree(ring);
		return NULL;
	}
	return ring;
}

static void emu_srq_ring_free(struct emu_srq_ring *ring)
{
	emu_ring_destroy(&ring->ring);
	kfree(ring);
}

/*
 * Frees the rings before @end, which engines have left. Expedited, because consumers destroy many
 * in a row.
 */
static void emu_srq_reclaim(struct emu_srq *srq, const struct emu_srq_ring *end)
{
	struct emu_srq_ring *ring;

	if (srq->rings == end)
		return;
	synchronize_rcu_expedited();
	while (srq->rings != end) {
		ring = srq->rings;
		srq->rings = ring->next;
		emu_srq_ring_free(ring);
	}
}

/* Moves srq->out past sealed rings that are empty, as an engine would. */
static void emu_srq_advance(struct emu_srq *srq)
{
	struct emu_srq_ring *ring = srq->out;

	lockdep_assert_held(&srq->lock);
	while (ring->next && !emu_srq_ring_used(ring)) {
		/* All but the newest are sealed: nobody else changes the size. */
		cmpxchg(&srq->out, ring, ring->next);
		ring = ring->next;
	}
}

/* Puts a new ring in the place of the one that posters use. */
static void emu_srq_replace(struct emu_srq *srq, struct emu_srq_ring *ring)
{
	struct emu_srq_ring *old = srq->in;

	lockdep_assert_held(&srq->lock);
	/* release: pair A */
	smp_store_release(&old->next, ring);
	/* release: pair A */
	smp_store_release(&srq->in, ring);
	kverbs_delay("emu_srq_replaced");
	synchronize_rcu();
	/* release: pair B */
	smp_store_release(&old->sealed, true);
}

static int emu_srq_resize(struct emu_srq *srq, u32 max_wr)
{
	struct emu_srq_ring *ring;

	if (!max_wr)
		return -EINVAL;
	if (emu_fault_alloc(to_edev(srq->ibsrq.device)))
		return -ENOMEM;
	emu_srq_advance(srq);
	emu_srq_reclaim(srq, READ_ONCE(srq->out));
	if (max_wr < emu_srq_left(srq))
		return -EINVAL;
	ring = emu_srq_ring_alloc(max_wr, srq->max_sge);
	if (!ring)
		return -ENOMEM;
	emu_srq_replace(srq, ring);
	return 0;
}

/* How many receives it can hold. */
static u32 emu_srq_depth(const struct emu_srq *srq)
{
	lockdep_assert_held(&srq->lock);
	return srq->user_rq ? emu_user->depth(srq->user_rq) : srq->in->ring.depth;
}

static int emu_srq_set_limit(struct emu_srq *srq, u32 limit)
{
	lockdep_assert_held(&srq->lock);
	if (limit > emu_srq_depth(srq))
		return -EINVAL;
	atomic_set(&srq->limit, limit);
	/*
	 * There may be fewer receives already, and no engine that would take
	 * another one. Full barrier, pairs with the one in emu_srq_claim().
	 */
	smp_mb();
	emu_srq_check_limit(srq);
	return 0;
}

/* emu_user_modify_srq() has checked a new limit that comes with a new size. */
int emu_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		   struct ib_udata *udata)
{
	struct emu_srq *srq = to_esrq(ibsrq);
	int err = 0;

	mutex_lock(&srq->lock);
	if (mask & IB_SRQ_MAX_WR)
		err = emu_srq_resize(srq, attr->max_wr);
	if (!err && (mask & IB_SRQ_LIMIT))
		err = emu_srq_set_limit(srq, attr->srq_limit);
	mutex_unlock(&srq->lock);
	return err;
}

int emu_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct emu_srq *srq = to_esrq(ibsrq);

	mutex_lock(&srq->lock);
	attr->max_wr = emu_srq_depth(srq);
	attr->max_sge = srq->max_sge;
	attr->srq_limit = atomic_read(&srq->limit);
	mutex_unlock(&srq->lock);
	return 0;
}

int emu_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init, struct ib_udata *udata)
{
	struct emu_device *edev = to_edev(ibsrq->device);
	struct emu_srq *srq = to_esrq(ibsrq);
	int err;

	if (emu_fault_alloc(edev))
		return -ENOMEM;
	err = emu_object_get(edev, EMU_OBJECT_SRQ);
	if (err)
		return err;
	srq->max_sge = init->attr.max_sge;
	/* A process posts to memory of its own, so the ring has depth 0. */
	srq->rings = emu_srq_ring_alloc(srq->user_rq ? 0 : init->attr.max_wr, srq->max_sge);
	if (!srq->rings) {
		emu_object_put(edev, EMU_OBJECT_SRQ);
		return -ENOMEM;
	}
	srq->in = srq->rings;
	srq->out = srq->rings;
	/* Only modify_srq sets the limit: consumers need not initialise srq_limit here. */
	atomic_set(&srq->limit, 0);
	mutex_init(&srq->lock);
	return 0;
}

/* The midlayer has made sure that no queue pair uses it any more. */
int emu_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	emu_srq_reclaim(to_esrq(ibsrq), NULL);
	emu_object_put(to_edev(ibsrq->device), EMU_OBJECT_SRQ);
	return 0;
}
