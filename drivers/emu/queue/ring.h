/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The work queue ring: a bounded queue of work queue entries without a lock.
 *
 * What may be called concurrently with what:
 *
 *   emu_ring_reserve() + emu_ring_publish()
 *	any number of posters, in any context, hard interrupt included. A poster
 *	never waits for another, not even for one that it interrupted.
 *   emu_ring_front() or emu_ring_peek() + emu_ring_take()
 *	any number of consumers, along with any number of posters. This is how a
 *	receive queue is consumed.
 *   emu_ring_peek() + emu_ring_advance()
 *	one consumer at a time, instead of front and take. This is how a send queue
 *	is consumed: by the owner of the queue pair's doorbell.
 *   emu_ring_reserve_position() + emu_ring_advance()
 *	the one consumer, along with any number of posters: see
 *	emu_ring_must_publish().
 *   emu_ring_retire()
 *	any number of pollers of the completion queue, along with all of the above.
 *   emu_ring_init(), emu_ring_reset(), emu_ring_destroy()
 *	nothing else may run at the same time. Posters may call at any time, so
 *	they keep preemption off from before they look at the queue pair's state,
 *	which comes before reserve, until after publish; and before a reset, the
 *	state is changed and a grace period passes.
 *
 * Documentation/models/wq.pml proves this for two posters and one that interrupts, two consumers
 * and two pollers, with positions that wrap. That it holds for more of them is not proved.
 *
 * Three positions move along the ring, in this order and never past each other:
 *
 *   head		the next entry to reserve
 *   tail		the next entry to consume
 *   retired		the number of entries that no longer count against the depth
 *
 * An entry counts until its completion has been polled: a consumer that never reaps
 * its completions finds the queue full, as on hardware. Each completion retires as many
 * entries as have ended since the one before, so it does not matter in which order, or
 * how late, pollers come. In a shared receive queue, an entry counts until it is taken:
 * there the tail does the work of retired.
 *
 * Each slot starts with a sequence number. Once the entry at position pos is published,
 * that is pos + 1; before, it is that of an earlier lap. A slot may be filled again as
 * soon as its entry no longer counts. Two pairs of accesses carry the data:
 *
 *   A  emu_ring_publish()	release, pairs with the acquire in front and peek:
 *				a consumer that sees the entry sees its contents
 *   B  emu_ring_retire(), take()	release, pairs with the acquire in reserve():
 *				a poster that reuses the slot overwrites it only
 *				after the consumer is done with it
 *
 * A consumer that is not the only one copies the entry before it takes it, and uses the copy. If
 * another was faster, the slot may be overwritten during the copy, but then emu_ring_take() fails
 * and the copy is dropped. So a consumer blocks nobody, however long it needs for the entry that
 * it took. An entry of a send queue has one consumer, which may use it in place until it is
 * retired.
 *
 * A poster that is stopped between reserve and publish leaves a hole. Consumers stop
 * at a hole as they do at the end of the queue. In a send queue, the late poster rings the
 * doorbell after it has published, so nothing behind the hole is forgotten. In a receive queue,
 * the consumer tries again, unless the message is a multicast: see emu_recv_ring_none().
 *
 * Positions are free-running 32-bit counts, compared by their difference. A thread that is
 * held up between reading a position and the cmpxchg that relies on it, while 2^31 entries
 * are posted, executed and polled, may find the queue full, or empty, when it is not; and
 * after exactly 2^32 the cmpxchg would wrongly succeed. Preemption is off for these few
 * instructions.
 */
#ifndef KVERBS_EMU_RING_H
#define KVERBS_EMU_RING_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/errno.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <kverbs/delay.h>

#include "../lib/apart.h"

/**
 * struct emu_slot - what each entry of a ring starts with
 * @seq: sequence number, see the top of this file
 */
struct emu_slot {
	u32 seq;
};

/**
 * struct emu_ring - a bounded queue of entries of one size
 * @slots: the entries; their number is a power of two
 * @mask: number of entries, less one
 * @stride: bytes from one entry to the next
 * @depth: how many entries may be outstanding, at most @mask + 1
 * @head: position of the next entry to reserve; written by posters
 * @tail: position of the next entry to consume; written by consumers
 * @retired: number of entries that no longer count; written by pollers
 */
struct emu_ring {
	void *slots;
	u32 mask;
	u32 stride;
	s32 depth;

	atomic_t head ____cacheline_aligned_in_smp;
	atomic_t tail ____cacheline_aligned_in_smp;
	atomic_t retired ____cacheline_aligned_in_smp;
};
emu_apart(struct emu_ring, depth, head);
emu_apart(struct emu_ring, head, tail);
emu_apart(struct emu_ring, tail, retired);

static inline struct emu_slot *emu_ring_slot(const struct emu_ring *ring, u32 pos)
{
	return ring->slots + (size_t)(pos & ring->mask) * ring->stride;
}

/* Empties the ring. Nobody else may use it. */
static inline void emu_ring_reset(struct emu_ring *ring)
{
	u32 pos;

	if (!ring->slots)
		return;
	for (pos = 0; pos <= ring->mask; pos++)
		emu_ring_slot(ring, pos)->seq = pos;
	atomic_set(&ring->head, 0);
	atomic_set(&ring->tail, 0);
	atomic_set(&ring->retired, 0);
}

/*
 * A ring of depth 0 is legal, and always full. Returns 0 or -ENOMEM.
 */
static inline int emu_ring_init(struct emu_ring *ring, u32 depth, size_t entry_size)
{
	u32 size = roundup_pow_of_two(max(depth, 1U));

	ring->stride = ALIGN(entry_size, sizeof(u64));
	ring->mask = size - 1;
	ring->depth = depth;
	ring->slots = kvmalloc_array(size, ring->stride, GFP_KERNEL_ACCOUNT);
	if (!ring->slots)
		return -ENOMEM;
	emu_ring_reset(ring);
	return 0;
}

static inline void emu_ring_destroy(struct emu_ring *ring)
{
	kvfree(ring->slots);
	ring->slots = NULL;
}

/*
 * Reserves the next entry of a ring in which entries count until @oldest, a position, has passed
 * them. As @oldest is read after the head, it may lie beyond it: then the head has moved on, and
 * by pair B the new one is visible.
 */
static __always_inline bool __emu_ring_reserve(struct emu_ring *ring, const atomic_t *oldest,
					       u32 *ppos)
{
	u32 pos = atomic_read(&ring->head);

	for (;;) {
		u32 used, stale = pos;

		kverbs_delay("emu_ring_reserve");
		/* acquire: pair B */
		used = pos - (u32)atomic_read_acquire(oldest);
		/* Unsigned, so one comparison also finds a negative difference. */
		if (unlikely(used >= (u32)ring->depth)) {
			if ((s32)used >= 0)
				return false;
			pos = atomic_read(&ring->head);
			if (pos == stale)
				return false;
			continue;
		}
		if (likely(atomic_try_cmpxchg_relaxed(&ring->head, (int *)&pos, pos + 1)))
			break;
	}
	*ppos = pos;
	return true;
}

/*
 * As emu_ring_reserve(), for a caller that may not need the entry, but only its position. Returns
 * false when the ring is full.
 */
static __always_inline bool emu_ring_reserve_position(struct emu_ring *ring, u32 *ppos)
{
	return __emu_ring_reserve(ring, &ring->retired, ppos);
}

/*
 * Reserves the next entry. The caller fills in what follows struct emu_slot, and
 * then publishes the entry. Returns NULL when the ring is full.
 */
static __always_inline void *emu_ring_reserve(struct emu_ring *ring, u32 *ppos)
{
	return emu_ring_reserve_position(ring, ppos) ? emu_ring_slot(ring, *ppos) : NULL;
}

/* As emu_ring_reserve(), in a ring whose entries count until they are taken. */
static __always_inline void *emu_ring_reserve_shared(struct emu_ring *ring, u32 *ppos)
{
	return __emu_ring_reserve(ring, &ring->tail, ppos) ? emu_ring_slot(ring, *ppos) : NULL;
}

/*
 * The owner of a send queue may reserve a position and consume it without publishing an entry.
 * The slot then keeps the sequence number of an earlier lap. If that went on for 2^32 positions,
 * the number would come round to pos + 1, and a slot that is merely reserved would look published.
 * So in each 2^30 positions, those of one lap must be published. Returns whether any of the @count
 * positions from @pos on is one of these.
 */
static __always_inline bool emu_ring_must_publish(const struct emu_ring *ring, u32 pos, u32 count)
{
	return ((pos + BIT(29) + count - 1) & (BIT(30) - 1)) <= ring->mask + count - 1;
}

static inline void emu_ring_publish(struct emu_slot *slot, u32 pos)
{
	/* release: pair A */
	smp_store_release(&slot->seq, pos + 1);
}

/*
 * The oldest published entry, or NULL. Another consumer may take it at any moment: see
 * emu_ring_take().
 */
static inline void *emu_ring_front(const struct emu_ring *ring, u32 *ppos)
{
	u32 pos = atomic_read(&ring->tail);

	for (;;) {
		struct emu_slot *slot = emu_ring_slot(ring, pos);
		/* acquire: pair A */
		u32 seq = smp_load_acquire(&slot->seq);

		if (likely(seq == pos + 1)) {
			*ppos = pos;
			return slot;
		}
		if ((s32)(seq - (pos + 1)) < 0)
			return NULL; /* empty, or a hole */
		pos = atomic_read(&ring->tail);
	}
}

/*
 * Takes the entry that emu_ring_front() returned. False if another consumer took it; then what
 * was read of the entry must not be used.
 */
static inline bool emu_ring_take(struct emu_ring *ring, u32 pos)
{
	kverbs_delay("emu_ring_take");
	/* release: pair B */
	return atomic_try_cmpxchg_release(&ring->tail, (int *)&pos, pos + 1);
}

/* Whether @slot has the entry at @pos, published. */
static __always_inline bool emu_ring_is_published(const struct emu_slot *slot, u32 pos)
{
	/* acquire: pair A */
	return likely(smp_load_acquire(&slot->seq) == pos + 1);
}

/* The oldest published entry, left in place; NULL if there is none. One consumer. */
static inline void *emu_ring_peek(const struct emu_ring *ring, u32 *ppos)
{
	u32 pos = atomic_read(&ring->tail);
	struct emu_slot *slot = emu_ring_slot(ring, pos);

	if (!emu_ring_is_published(slot, pos))
		return NULL;
	*ppos = pos;
	return slot;
}

/* Consumes the entry that emu_ring_peek() returned. One consumer. */
static inline void emu_ring_advance(struct emu_ring *ring, u32 pos)
{
	atomic_set(&ring->tail, pos + 1);
}

/* @count entries have ended, and their completions were polled. */
static inline void emu_ring_retire(struct emu_ring *ring, u32 count)
{
	/* release: pair B */
	(void)atomic_fetch_add_release(count, &ring->retired);
}

#endif
