/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A dma-buf whose exporter behaves as a test case tells it to, and checks how its functions
 * are called. It has no memory, only DMA addresses.
 */
#ifndef KVT_DMABUF_RIG_H
#define KVT_DMABUF_RIG_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/dma-buf.h>
#include <kunit/test.h>

struct ib_mr;
struct ib_umem_dmabuf;
struct kvt_trace;

/* DMA address of the first page, until the buffer moves. */
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
 * @dmabuf: the dma-buf
 * @fd: its descriptor, in the file table of the case's thread
 * @base: DMA address of its first page
 * @piece: size in bytes of each entry of the scatter table, with a gap of the same size
 *	between entries; 0 for a single entry
 * @missing: bytes by which the table is shorter than the buffer
 * @skew: offset in bytes of all entries from where they should begin
 * @ret: by function, what it returns instead of doing its work, if not 0
 * @trace: gets a word for each call; may be NULL
 * @calls: by function, how often it was called
 * @maps: mappings that exist
 * @pins: pins that exist
 * @wrong: errors of the importer: a function called without the reservation lock, a buffer
 *	still mapped when it moves, an unpin or unmap too many
 * @released: completed when the last reference is put
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
int dmabuf_rig_map_pages(struct ib_umem_dmabuf *d);
void dmabuf_rig_unmap_pages(struct ib_umem_dmabuf *d);
void dmabuf_rig_move(struct dmabuf_rig *rig, u64 base);
void dmabuf_rig_settle(struct ib_mr *mr);

/* The buffer is not attached, mapped or pinned, and no error was counted. */
#define DMABUF_EXPECT_IDLE(test, rig)					\
do {									\
	KUNIT_EXPECT_TRUE(test, list_empty(&(rig)->dmabuf->attachments)); \
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(rig)->maps));		\
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(rig)->pins));		\
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&(rig)->wrong));		\
} while (0)

#endif
