/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Peer-memory clients of the shapes that drivers have. Each shape includes or declares the
 * client interface in its own way, so this header must not.
 */
#ifndef KVT_PEER_SHAPES_H
#define KVT_PEER_SHAPES_H

#include <linux/atomic.h>
#include <linux/sizes.h>
#include <linux/types.h>

struct sg_table;

#define SHAPE_PAGE	SZ_64K

/* The address range of all shapes, of which only one is registered at a time. */
#define SHAPE_BASE	(1UL << 40)
#define SHAPE_SPAN	(1UL << 39)

/* DMA address of the byte at SHAPE_BASE. */
#define SHAPE_DMA	0x80000000ULL

/* Pinned pages of a GPU. */
struct shape_pages {
	unsigned long first;	/* address of the first page */
	unsigned int count;	/* number of pages */
};

struct shape_pages *shape_pin(unsigned long addr, size_t size);
void shape_unpin(struct shape_pages *pages);
void shape_fill(struct sg_table *sgt, const struct shape_pages *pages);

static inline u64 shape_dma(const struct shape_pages *pages)
{
	return SHAPE_DMA + (pages->first - SHAPE_BASE);
}

static inline bool shape_has(unsigned long addr, size_t size)
{
	return addr >= SHAPE_BASE && size <= SHAPE_SPAN;
}

/* Parts of methods that most shapes have in common. */
int shape_acquire(unsigned long addr, size_t size, void **client_context, size_t context_size);
void shape_free(void *context, const struct shape_pages *left);
unsigned long shape_get_page_size(void *client_context);

/* Wrong calls and states found. */
extern atomic_t shape_wrong;
/* Handle of the client that is registered. */
extern void *shape_handle;

/* A client. */
struct peer_shape {
	const char *name;	/* name of the client */
	void *(*up)(void);	/* registers the client; returns its handle, or NULL */
	void (*down)(void);	/* unregisters the client; NULL if that takes only the handle */
	/* Invalidates registered memory, if any; NULL if the client never does. */
	void (*take_away)(void);
};

extern const struct peer_shape shape_unmaps;
extern const struct peer_shape shape_legacy;
extern const struct peer_shape shape_persistent;
extern const struct peer_shape shape_by_symbol;
extern const struct peer_shape shape_early;
extern const struct peer_shape shape_pointer;

#endif
