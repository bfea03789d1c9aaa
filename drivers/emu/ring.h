/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The work queue ring: a bounded queue of work queue entries without a lock.
 *
 * What may be called concurrently with what:
 *
 *   emu_ring_reserve() + emu_ring_publish()
 *	any number of posters, in any context, hard interrupt included. A poster
 *	never waits for another, not even for one that it interrupted.
 *   emu_ring_claim() + emu_ring_free()
 *	any number of consumers, along with any number of posters. This is how a
 *	receive queue is consumed. emu_ring_front() + emu_ring_take() are the two
 *	halves of the claim.
 *   emu_ring_peek() + emu_ring_advance()
 *	one consumer at a time, instead of claim and free. This is how a send
 *	queue is consumed: by the owner of the queue pair's doorbell.
 *   emu_ring_retire_to(), emu_ring_retire()
 *	any number of pollers of the completion queue, along with all of the above.
 *   emu_ring_init(), emu_ring_reset(), emu_ring_destroy()
 *	nothing else may run at the same time. Posters may call at any time, so
 *	they keep preemption off from before they look at the queue pair's state,
 *	which comes before reserve, until after publish; and before a reset, the
 *	state is changed and a grace period passes.
 *
 * Each slot starts with a sequence number. For the entry at position pos it is
 *
 *   pos		the slot is free and waits for the poster of pos,
 *   pos + 1		the entry is published,
 *   pos + size		the entry is consumed: free again, one lap later.
 *
 * Positions are free-running 32-bit counts, compared by their difference. Two
 * pairs of accesses carry the data:
 *
 *   A  emu_ring_publish()	release, pairs with the acquire in claim and peek:
 *				a consumer that sees the entry sees its contents
 *   B  emu_ring_free(), advance()	release, pairs with the acquire in reserve():
 *				a poster that reuses the slot overwrites it only
 *				after the consumer is done with it
 *
 * A poster that is stopped between reserve and publish leaves a hole. Consumers stop
 * at a hole as they do at the end of the queue. The late poster rings the doorbell
 * after it has published, so nothing behind the hole is forgotten.
 *
 * The memory of a slot is free as soon as the entry is consumed, but the entry
 * counts against the depth until its completion has been polled: a consumer that
 * never reaps its completions finds the queue full, as on hardware.
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
 * @retired: position behind the last entry whose completion was polled
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
 * A ring of depth 0 is legal, and always full. There are two slots at least: with
 * one, the numbers of a published and of a consumed entry would be the same.
 * Returns 0 or -ENOMEM.
 */
static inline int emu_ring_init(struct emu_ring *ring, u32 depth, size_t entry_size)
{
	u32 size = roundup_pow_of_two(max(depth, 2U));

	ring->stride = ALIGN(entry_size, sizeof(u64));
	ring->mask = size - 1;
	ring->depth = depth;
	ring->slots = kvmalloc_array(size, ring->stride, GFP_KERNEL);
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
 * Reserves the next entry. The caller fills in what follows struct emu_slot, and
 * then publishes the entry. Returns NULL when the ring is full.
 */
static inline void *emu_ring_reserve(struct emu_ring *ring, u32 *ppos)
{
	u32 pos = atomic_read(&ring->head);

	for (;;) {
		struct emu_slot *slot = emu_ring_slot(ring, pos);
		s32 used = pos - (u32)atomic_read(&ring->retired);
		u32 free_for;

		/* Negative: pos is so stale that its entry has been retired already. */
		if (unlikely(used < 0)) {
			pos = atomic_read(&ring->head);
			continue;
		}
		if (used >= ring->depth)
			return NULL;
		/* acquire: pair B */
		free_for = smp_load_acquire(&slot->seq);
		if (free_for == pos) {
			if (atomic_try_cmpxchg_relaxed(&ring->head, (int *)&pos, pos + 1)) {
				*ppos = pos;
				return slot;
			}
			continue; /* the head has moved on; pos is its new value */
		}
		/* Behind: a consumer still holds the slot. Ahead: pos is stale. */
		if ((s32)(free_for - pos) < 0)
			return NULL;
		pos = atomic_read(&ring->head);
	}
}

static inline void emu_ring_publish(struct emu_slot *slot, u32 pos)
{
	/* release: pair A */
	smp_store_release(&slot->seq, pos + 1);
}

/*
 * The oldest published entry, or NULL. As there can be any number of consumers, it
 * may be gone already; see emu_ring_take().
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

/* Takes the entry that emu_ring_front() returned. False if somebody else took it. */
static inline bool emu_ring_take(struct emu_ring *ring, u32 pos)
{
	return atomic_try_cmpxchg_relaxed(&ring->tail, (int *)&pos, pos + 1);
}

/* Takes the oldest published entry, or returns NULL. Any number of consumers. */
static inline void *emu_ring_claim(struct emu_ring *ring, u32 *ppos)
{
	void *slot;

	do {
		slot = emu_ring_front(ring, ppos);
	} while (slot && unlikely(!emu_ring_take(ring, *ppos)));
	return slot;
}

/* Gives a claimed entry's slot back to the posters. */
static inline void emu_ring_free(const struct emu_ring *ring, struct emu_slot *slot, u32 pos)
{
	/* release: pair B */
	smp_store_release(&slot->seq, pos + ring->mask + 1);
}

/* The oldest published entry, left in place; NULL if there is none. One consumer. */
static inline void *emu_ring_peek(const struct emu_ring *ring, u32 *ppos)
{
	u32 pos = atomic_read(&ring->tail);
	struct emu_slot *slot = emu_ring_slot(ring, pos);

	/* acquire: pair A */
	if (smp_load_acquire(&slot->seq) != pos + 1)
		return NULL;
	*ppos = pos;
	return slot;
}

/* Consumes the entry that emu_ring_peek() returned. One consumer. */
static inline void emu_ring_advance(struct emu_ring *ring, struct emu_slot *slot, u32 pos)
{
	atomic_set(&ring->tail, pos + 1);
	emu_ring_free(ring, slot, pos);
}

/*
 * The completion of the entry at @pos was polled, which means that all entries
 * before it have ended too. @pos has only the low bits of the position. Pollers may
 * come here out of order.
 */
static inline void emu_ring_retire_to(struct emu_ring *ring, u16 pos)
{
	u32 old = atomic_read(&ring->retired);
	s16 ahead;

	/* Every ring is less than half as long as the range of these low bits. */
	while ((ahead = (s16)(pos + 1 - old)) > 0) {
		if (atomic_try_cmpxchg(&ring->retired, (int *)&old, old + ahead))
			return;
	}
}

/* @count completions were polled, of a queue whose entries may end in any order. */
static inline void emu_ring_retire(struct emu_ring *ring, u32 count)
{
	atomic_add(count, &ring->retired);
}

#endif
