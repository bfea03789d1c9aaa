/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ring in memory that a process and the kernel share.
 *
 * It has the layout of rdma_rxe's, <rdma/rdma_user_rxe.h>: a header of three parts of 128 bytes
 * with a position in the second and in the third, then the entries. The number of entries is a
 * power of two, as is the size of each; one stays empty, so that a full ring differs from an
 * empty one.
 *
 * The process can write all of it, at any time, and may be hostile. Therefore:
 *
 *   - nothing of the header but the position that the process moves is ever read. Number and size
 *     of the entries, and the kernel's own position, are kept in memory of the kernel; the header
 *     has copies for the process;
 *   - the process's position is read once, and masked, for each entry that is taken or written.
 *     What it says is only whether there is one;
 *   - an entry is copied word by word, each of which is read once; only the copy is looked at;
 *   - whoever takes entries as long as there are some does so within a budget, or for at most as
 *     many as the ring has.
 *
 * Pairs, with the code of the process:
 *
 *   A  its write of an entry, then of its position (release) - emu_uring_producer(),
 *	emu_uring_consumer(): acquire
 *   B  emu_uring_produce(), emu_uring_consumed(): release - its read of the position (acquire)
 */
#ifndef KVERBS_EMU_USER_RING_H
#define KVERBS_EMU_USER_RING_H

#include <linux/build_bug.h>
#include <linux/compiler.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_user_rxe.h>

/* Completions copied into a process's ring at most, before whoever copies leaves that to another. */
#define EMU_PUMP_BUDGET		256

/* The least size of an entry, as rdma_rxe has it. */
#define EMU_URING_MIN_SHIFT	6

/**
 * struct emu_uring - a ring in shared memory
 * @entry: by which the process maps it; the memory goes with the last reference to it
 * @buf: the memory, as the kernel sees it
 * @mask: number of entries, less one
 * @shift: log2 of the bytes of an entry
 * @nr_pages: entries of @pages
 * @pages: the memory
 */
struct emu_uring {
	struct rdma_user_mmap_entry entry;
	struct rxe_queue_buf *buf;
	u32 mask;
	u32 shift;
	u32 nr_pages;
	struct page **pages;
};

static inline u32 emu_uring_producer(const struct emu_uring *ring)
{
	/* acquire: pair A */
	return smp_load_acquire(&ring->buf->producer_index) & ring->mask;
}

static inline u32 emu_uring_consumer(const struct emu_uring *ring)
{
	/* acquire: pair A */
	return smp_load_acquire(&ring->buf->consumer_index) & ring->mask;
}

/* Tells the process that entries up to @pos are there. */
static inline void emu_uring_produce(const struct emu_uring *ring, u32 pos)
{
	/* release: pair B */
	smp_store_release(&ring->buf->producer_index, pos & ring->mask);
}

/* Tells the process that entries up to @pos are its own again. */
static inline void emu_uring_consumed(const struct emu_uring *ring, u32 pos)
{
	/* release: pair B */
	smp_store_release(&ring->buf->consumer_index, pos & ring->mask);
}

static inline void *emu_uring_entry(const struct emu_uring *ring, u32 pos)
{
	return ring->buf->data + ((size_t)(pos & ring->mask) << ring->shift);
}

/* Copies @bytes bytes, a multiple of 8, of memory that the process may be writing. */
static inline void emu_uring_copy(void *to, const void *from, size_t bytes)
{
	const u64 *source = from;
	u64 *target = to;
	size_t i;

	for (i = 0; i < bytes / sizeof(u64); i++)
		target[i] = READ_ONCE(source[i]);
}

/* Copies a list of elements. In the domain of a process, there is no local DMA key. */
void emu_uring_copy_sges(struct ib_sge *to, const struct rxe_sge *from, u32 num_sge);

/* mmap.c */
struct emu_uring *emu_uring_create(struct ib_ucontext *ibuc, u32 entries, size_t entry_size);
void emu_uring_destroy(struct emu_uring *ring);
struct mminfo emu_uring_info(const struct emu_uring *ring);

#endif
