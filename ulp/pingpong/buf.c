// SPDX-License-Identifier: GPL-2.0-only
/*
 * Message memory. A buffer is a ring of equal slots, one message each, in
 * chunks that are contiguous for the CPU and for the device. A slot holds its
 * message either in one piece or in pieces that are out of order and not
 * adjacent, so that a device that ignores the SGEs fails the check.
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "pingpong.h"

/* Small slots share a chunk; one memory region covers a chunk. */
#define PP_CHUNK	((u32)SZ_64K)

/* Odd, so that every word of a message differs, and not PP_SEQ_STEP. */
#define PP_WORD_STEP	0xd1b54a32d192ed03ULL

static void pp_seg_init(struct pp_seg *s, u32 off, u32 len)
{
	s->len = len;
	s->first = off / sizeof(u64);
	s->skip = off % sizeof(u64);
	s->head = s->skip ? min_t(u32, sizeof(u64) - s->skip, len) : 0;
	s->words = (len - s->head) / sizeof(u64);
	s->tail = (len - s->head) % sizeof(u64);
}

/*
 * A piece starts at the same position modulo 8 in memory as in the message,
 * so that the pattern is read and written in aligned words.
 */
void pp_layout_init(struct pp_layout *l, u32 size, u32 nseg)
{
	u32 gap = nseg > 1 ? sizeof(u64) : 0;
	u32 room = ALIGN(DIV_ROUND_UP(size, nseg) + sizeof(u64) - 1,
			 sizeof(u64)) + gap;
	u32 i, off = 0;

	l->nseg = nseg;
	l->stride = ALIGN(nseg > 1 ? room * nseg : size, SMP_CACHE_BYTES);
	for (i = 0; i < nseg; i++) {
		u32 end = div_u64((u64)size * (i + 1), nseg);

		pp_seg_init(&l->seg[i], off, end - off);
		l->seg[i].place = (nseg - 1 - i) * room + l->seg[i].skip;
		off = end;
	}
}

static void pp_chunk_free(struct pp_buf *buf, struct pp_chunk *c)
{
	if (c->mr)
		ib_dereg_mr(c->mr);
	if (!c->va)
		return;
	ib_dma_unmap_sg(buf->dev, &c->sg, 1, buf->dir);
	free_pages_exact(c->va, c->len);
}

void pp_buf_free(struct pp_buf *buf)
{
	u32 i;

	for (i = 0; i < buf->nr_chunks; i++)
		pp_chunk_free(buf, &buf->chunk[i]);
	kvfree(buf->chunk);
	kvfree(buf->slot);
	buf->chunk = NULL;
	buf->slot = NULL;
	buf->nr_chunks = 0;
}

static int pp_chunk_alloc(struct pp_buf *buf, struct pp_chunk *c, size_t len)
{
	void *va = alloc_pages_exact(len, GFP_KERNEL | __GFP_ZERO |
				     __GFP_NOWARN);

	if (!va)
		return -ENOMEM;
	sg_init_one(&c->sg, va, len);
	if (ib_dma_map_sg(buf->dev, &c->sg, 1, buf->dir) != 1) {
		free_pages_exact(va, len);
		return -ENOMEM;
	}
	c->va = va;
	c->len = len;
	return 0;
}

/**
 * pp_buf_alloc - get memory for a ring of messages and map it for a device
 * @buf: zeroed by the caller; filled in here
 * @dev: the device that reads or writes the memory
 * @dir: direction in which @dev accesses it
 * @layout: how a message lies in a slot
 * @slots: number of messages
 *
 * Context: may sleep.
 * Return: 0, or -ENOMEM with nothing left behind.
 */
int pp_buf_alloc(struct pp_buf *buf, struct ib_device *dev,
		 enum dma_data_direction dir, const struct pp_layout *layout,
		 u32 slots)
{
	u32 stride = layout->stride;
	u32 per_chunk = clamp(PP_CHUNK / stride, 1U, slots);
	u32 i, nr = DIV_ROUND_UP(slots, per_chunk);

	buf->dev = dev;
	buf->dir = dir;
	buf->per_chunk = per_chunk;
	buf->chunk = kvcalloc(nr, sizeof(*buf->chunk), GFP_KERNEL);
	buf->slot = kvcalloc(slots, sizeof(*buf->slot), GFP_KERNEL);
	if (!buf->chunk || !buf->slot)
		goto err_free;

	for (; buf->nr_chunks < nr; buf->nr_chunks++)
		if (pp_chunk_alloc(buf, &buf->chunk[buf->nr_chunks],
				   (size_t)per_chunk * stride))
			goto err_free;

	for (i = 0; i < slots; i++) {
		struct pp_chunk *c = &buf->chunk[i / per_chunk];
		size_t at = (size_t)(i % per_chunk) * stride;

		buf->slot[i].va = c->va + at;
		buf->slot[i].dma = sg_dma_address(&c->sg) + at;
	}
	return 0;

err_free:
	pp_buf_free(buf);
	return -ENOMEM;
}

/*
 * The message is the little-endian bytes of word, word + PP_WORD_STEP, ...;
 * a piece that begins or ends inside a word holds a part of it.
 */
static void pp_fill_bytes(u8 *to, u64 word, u32 skip, u32 len)
{
	for (word >>= 8 * skip; len; len--, word >>= 8)
		*to++ = word;
}

static u64 pp_diff_bytes(const u8 *from, u64 word, u32 skip, u32 len)
{
	u64 diff = 0;

	for (word >>= 8 * skip; len; len--, word >>= 8)
		diff |= *from++ ^ (word & 0xff);
	return diff;
}

static void pp_fill_seg(const struct pp_seg *s, u8 *to, u64 word)
{
	u32 i;

	word += s->first * PP_WORD_STEP;
	if (s->head) {
		pp_fill_bytes(to, word, s->skip, s->head);
		to += s->head;
		word += PP_WORD_STEP;
	}
	for (i = s->words; i; i--, to += sizeof(u64), word += PP_WORD_STEP)
		*(__le64 *)to = cpu_to_le64(word);
	if (s->tail)
		pp_fill_bytes(to, word, 0, s->tail);
}

static u64 pp_diff_seg(const struct pp_seg *s, const u8 *from, u64 word)
{
	u64 diff = 0;
	u32 i;

	word += s->first * PP_WORD_STEP;
	if (s->head) {
		diff = pp_diff_bytes(from, word, s->skip, s->head);
		from += s->head;
		word += PP_WORD_STEP;
	}
	for (i = s->words; i; i--, from += sizeof(u64), word += PP_WORD_STEP)
		diff |= le64_to_cpu(*(const __le64 *)from) ^ word;
	if (s->tail)
		diff |= pp_diff_bytes(from, word, 0, s->tail);
	return diff;
}

/**
 * pp_fill - write a message
 * @l: layout of the slot
 * @slot: the slot to write to
 * @word: first word of its pattern
 *
 * Context: any.
 */
void pp_fill(const struct pp_layout *l, void *slot, u64 word)
{
	u32 i;

	for (i = 0; i < l->nseg; i++)
		pp_fill_seg(&l->seg[i], slot + l->seg[i].place, word);
}

/**
 * pp_check - compare a message with its expected contents
 * @l: layout of the slot
 * @slot: the slot that holds it
 * @word: first word of its pattern
 *
 * Context: any.
 * Return: true if every byte is right.
 */
bool pp_check(const struct pp_layout *l, const void *slot, u64 word)
{
	u64 diff = 0;
	u32 i;

	for (i = 0; i < l->nseg; i++)
		diff |= pp_diff_seg(&l->seg[i], slot + l->seg[i].place, word);
	return !diff;
}
