/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A dma-buf whose exporter does what a case says, and looks at how it is called.
 * There is no memory behind it, only DMA addresses.
 */
#ifndef KVT_DMABUF_RIG_H
#define KVT_DMABUF_RIG_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/dma-buf.h>
#include <kunit/test.h>

struct kvt_trace;

/* Where a device sees the first page, until it moves. */
#define DMABUF_DMA	0x80000000ULL

/* The functions of an exporter. */
enum dmabuf_call {
	DMABUF_ATTACH,
	DMABUF_DETACH,
	DMABUF_PIN,
	DMABUF_UNPIN,
	DMABUF_MAP,
	DMABUF_UNMAP,
	DMABUF_CALLS,
};

/**
 * struct dmabuf_rig - a dma-buf
 * @dmabuf: it
 * @fd: its file, of this thread
 * @base: DMA address of its first page
 * @piece: bytes of an entry of its table; between two is a gap as long. 0 for one
 *	entry.
 * @missing: bytes that the table is shorter than it should be
 * @skew: bytes by which its entries are not where pages begin
 * @ret: what a function returns instead of its result, if it is not 0
 * @trace: gets a word for each call; may be NULL
 * @calls: how often each function was called
 * @maps: mappings
 * @pins: pins
 * @wrong: what must not be: a function without the reservation lock, a move of what
 *	is mapped, an end without a beginning
 * @released: by its last user
 */
struct dmabuf_rig {
	struct dma_buf *dmabuf;
	int fd;
	u64 base;
	size_t piece;
	size_t missing;
	size_t skew;
	int ret[DMABUF_CALLS];
	struct kvt_trace *trace;
	atomic_t calls[DMABUF_CALLS];
	atomic_t maps;
	atomic_t pins;
	atomic_t wrong;
	struct completion released;
};

struct dmabuf_rig *dmabuf_rig_new(struct kunit *test, size_t size);
struct dmabuf_rig *dmabuf_rig_new_static(struct kunit *test, size_t size);
int dmabuf_rig_calls(const struct dmabuf_rig *rig, enum dmabuf_call call);
void dmabuf_rig_move(struct dmabuf_rig *rig, u64 base);

/* Nobody uses it, and nothing was as it must not be. */
#define DMABUF_EXPECT_IDLE(test, rig)					\
do {									\
	KUNIT_EXPECT_TRUE(test, list_empty(&(rig)->dmabuf->attachments)); \
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(rig)->maps));		\
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(rig)->pins));		\
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(rig)->wrong));		\
} while (0)

#endif
