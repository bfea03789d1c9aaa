// SPDX-License-Identifier: GPL-2.0-only
/*
 * Draws the fuzzer's requests: one that should succeed, some of whose members are then changed,
 * in some kind of memory. See ca_fuzz.c.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "ca_fuzz.h"

/* Bytes that are checked before and behind an answer. */
#define AROUND		16

/* --- chance ------------------------------------------------------------------------- */

uint64_t draw(struct thread *t)
{
	return chance_draw(&t->random);
}

uint32_t below(struct thread *t, uint32_t n)
{
	return chance_below(&t->random, n);
}

bool one_in(struct thread *t, uint32_t n)
{
	return chance_one_in(&t->random, n);
}

uint64_t strange(struct thread *t)
{
	/* Avoids bits of the patterns for which answers are searched. */
	if (one_in(t, 4))
		return draw(t) & 0x0fff0fff0fff0fffULL;
	return chance_edge(&t->random);
}

/* --- drawing requests ----------------------------------------------------------------------- */

/* Favours operations that are cheap for the kernel, so that more are done. */
static unsigned int draw_op(struct thread *t)
{
	static const unsigned char weights[OPS] = {
		[0] = 1,
		[KVERBS_CA_OPEN] = 3,
		[KVERBS_CA_CLOSE] = 3,
		[KVERBS_CA_QUERY_CA] = 26,
		[KVERBS_CA_QUERY_PORT] = 24,
		[KVERBS_CA_ALLOC_PD] = 4,
		[KVERBS_CA_DEALLOC_PD] = 3,
		[KVERBS_CA_REG_MR] = 8,
		[KVERBS_CA_DEREG_MR] = 4,
		[KVERBS_CA_QUERY_MR] = 14,
		[KVERBS_CA_LIST] = 8,
		[KVERBS_CA_SET_PEER] = 2,
	};
	uint32_t at = below(t, 100);
	unsigned int op;

	for (op = 0; op < OPS - 1 && at >= weights[op]; op++)
		at -= weights[op];
	return op;
}

uint64_t draw_address(struct thread *t, const struct attempt *a)
{
	switch (below(t, 10)) {
	case 0:
		return (uintptr_t)nothing + below(t, PAGE);
	case 1:
		return (uintptr_t)nothing - below(t, 400);
	case 2:
		return (uintptr_t)constant + below(t, PAGE);
	case 3:
		return (uintptr_t)a->space + below(t, 64);
	case 4:
		return (uintptr_t)a->reg + below(t, 8);
	case 5:
		return strange(t) | 1ULL << 63;
	case 6:
		return below(t, PAGE);
	case 7:
		return (uintptr_t)a->room + ARENA - below(t, 400);
	default:
		return (uintptr_t)common + below(t, COMMON - PAGE);
	}
}

static uint32_t draw_length(struct thread *t)
{
	switch (below(t, 8)) {
	case 0:
		return below(t, 16);
	case 1:
	case 2:
	case 3:
		return below(t, 256);
	case 4:
		return one_in(t, 2) ? 1690 + below(t, 32) : 3790 + below(t, 32);
	case 5:
		return below(t, 2 * PAGE);
	default:
		return 32 + below(t, 400);
	}
}

/* Places the room for an answer anywhere in the private memory, also right before its end. */
static void place_out(struct thread *t, struct attempt *a)
{
	uint32_t len = draw_length(t);

	if (one_in(t, 4))
		a->r.out = (uintptr_t)a->room + ARENA - len;
	else
		a->r.out = (uintptr_t)a->room + AROUND + below(t, 16);
	a->r.out_len = len;
}

/* Draws an existing object, if some tries find one. */
static uint64_t draw_object(struct thread *t, const uint64_t *ids)
{
	uint64_t id = 0;
	int tries;

	for (tries = 0; tries < OBJECTS && !id; tries++)
		id = ids[below(t, OBJECTS)];
	return id;
}

static bool has_any(const uint64_t *ids)
{
	unsigned int i;

	for (i = 0; i < OBJECTS; i++) {
		if (ids[i])
			return true;
	}
	return false;
}

/* Mostly draws a request that first makes the objects that the operation lacks. */
static void draw_maker(struct thread *t, struct attempt *a,
		       const struct handle *h)
{
	if (!a->op || one_in(t, 8))
		return;
	if (!h->id) {
		a->op = KVERBS_CA_OPEN;
		return;
	}
	/* There is room for only so many. */
	if (a->op == KVERBS_CA_OPEN)
		a->op = KVERBS_CA_QUERY_CA;
	if ((a->op == KVERBS_CA_DEREG_MR || a->op == KVERBS_CA_QUERY_MR) &&
	    !has_any(h->mrs))
		a->op = KVERBS_CA_REG_MR;
	if ((a->op == KVERBS_CA_REG_MR || a->op == KVERBS_CA_DEALLOC_PD) &&
	    !has_any(h->pds))
		a->op = KVERBS_CA_ALLOC_PD;
}

static struct handle *draw_handle(struct thread *t, struct attempt *a)
{
	struct handle *h;

	a->handle = below(t, HANDLES);
	h = &files[a->file].handles[a->handle];
	draw_maker(t, a, h);
	return h;
}

/* Draws a dma-buf, or any other number that may be a file's. */
static void draw_file(struct thread *t, struct attempt *a)
{
	a->reg->flags = KVERBS_CA_REG_FD;
	a->reg->fd = one_in(t, 8) ? (int)strange(t) : fds[below(t, FDS)];
	a->reg->path = one_in(t, 2) ? KVERBS_CA_PATH_DMABUF : KVERBS_CA_PATH_ANY;
	switch (below(t, 6)) {
	case 0:
		a->reg->offset = strange(t);
		break;
	case 1:
		a->reg->offset = below(t, DMABUF_SIZE);
		break;
	case 2:
		a->reg->length = below(t, 2 * DMABUF_SIZE);
		break;
	}
	/* Devices require the offset of a byte in its page to be kept. */
	a->reg->iova = a->reg->offset;
}

static void draw_region(struct thread *t, struct attempt *a, struct handle *h)
{
	char *start = memory + below(t, 8 * PAGE);

	ca_fill_reg(a->reg, draw_object(t, h->pds), start,
		    1 + below(t, PAGE));
	a->reg->access = one_in(t, 4) ? below(t, 32) : 7;
	a->r.in = (uintptr_t)a->reg;
	a->r.in_len = one_in(t, 8) ? KVERBS_CA_REG_MR_SIZE_MIN : sizeof(*a->reg);
	a->reg->size = a->r.in_len;
	if (one_in(t, 4))
		draw_file(t, a);
	switch (below(t, 24)) {
	case 0:
		a->reg->version = strange(t);
		break;
	case 1:
		a->reg->size = strange(t);
		break;
	case 2:
		a->reg->pd = strange(t);
		break;
	case 3:
		a->reg->start = one_in(t, 2) ? strange(t) : draw_address(t, a);
		break;
	case 4:
		/* Long ones take long: draws moderate lengths or impossible ones. */
		a->reg->length = one_in(t, 2) ? below(t, 64 * PAGE) :
			       strange(t) | 1ULL << 47;
		break;
	case 5:
		a->reg->iova = strange(t);
		break;
	case 6:
		a->reg->access = strange(t);
		break;
	case 7:
		a->reg->path = one_in(t, 2) ? below(t, PATHS) : strange(t);
		break;
	case 8:
		a->reg->flags = strange(t);
		break;
	case 9:
		a->reg->fd = strange(t);
		break;
	}
}

static void draw_peer(struct thread *t, struct attempt *a)
{
	static const char *const names[] = { "", "", "nobody", "fake_gpu0", "\xff%s\n" };
	struct kverbs_ca_peer *peer = a->peer;

	memset(peer, 0, sizeof(*peer));
	peer->version = KVERBS_CA_VERSION;
	peer->size = sizeof(*peer);
	snprintf(peer->name, sizeof(peer->name), "%s", names[below(t, TEST_COUNT(names))]);
	if (*peer->name)
		peer->data[below(t, sizeof(peer->data))] = draw(t);
	a->r.in = (uintptr_t)peer;
	a->r.in_len = sizeof(*peer);
	switch (below(t, 12)) {
	case 0:
		peer->version = strange(t);
		break;
	case 1:
		peer->size = strange(t);
		break;
	case 2:
		memset(peer->name, 'x', sizeof(peer->name));
		break;
	case 3:
		peer->data[below(t, sizeof(peer->data))] = 1;
		break;
	}
}

/* Draws a request that should succeed, if handle and object exist. */
static void draw_right(struct thread *t, struct attempt *a)
{
	struct handle *h = draw_handle(t, a);

	a->r = (struct kverbs_ca_request) {
		.size = sizeof(a->r),
		.version = KVERBS_CA_VERSION,
		.handle = h->id,
	};
	switch (a->op) {
	case KVERBS_CA_OPEN:
		a->r.handle = 0;
		a->r.flags = one_in(t, 4) ? KVERBS_CA_SHARED : 0;
		break;
	case KVERBS_CA_QUERY_PORT:
		a->r.port = 1 + below(t, 2);
		/* fall through */
	case KVERBS_CA_QUERY_CA:
		a->r.flags = one_in(t, 50) ? KVERBS_CA_FRESH : 0;
		/* fall through */
	case KVERBS_CA_LIST:
		place_out(t, a);
		break;
	case KVERBS_CA_CLOSE:
		if (one_in(t, 2))
			place_out(t, a);
		break;
	case KVERBS_CA_DEALLOC_PD:
		a->r.object = draw_object(t, h->pds);
		break;
	case KVERBS_CA_QUERY_MR:
		place_out(t, a);
		/* fall through */
	case KVERBS_CA_DEREG_MR:
		a->r.object = draw_object(t, h->mrs);
		break;
	case KVERBS_CA_REG_MR:
		draw_region(t, a, h);
		if (one_in(t, 2))
			place_out(t, a);
		break;
	case KVERBS_CA_SET_PEER:
		draw_peer(t, a);
		break;
	}
}

static void change_member(struct thread *t, struct attempt *a)
{
	struct file *f = &files[below(t, FILES)];
	struct handle *h = &f->handles[below(t, HANDLES)];

	switch (below(t, 16)) {
	case 0:
		a->r.size = one_in(t, 2) ? 64 + below(t, 200) : strange(t);
		break;
	case 1:
		a->r.version = strange(t);
		break;
	case 2:
		a->r.flags = one_in(t, 2) ? below(t, 4) : strange(t);
		break;
	case 3:
		a->r.port = one_in(t, 2) ? below(t, 5) : strange(t);
		break;
	case 4:
		a->r.handle = one_in(t, 2) ? h->id : strange(t);
		break;
	case 5:
		a->r.handle ^= 1ULL << below(t, 64);
		break;
	case 6:
		a->r.object = one_in(t, 2) ? h->pds[below(t, OBJECTS)] :
			      strange(t);
		break;
	case 7:
		a->r.object ^= 1ULL << below(t, 64);
		break;
	case 8:
		a->r.in = one_in(t, 2) ? draw_address(t, a) : strange(t);
		break;
	case 9:
		a->r.in_len = strange(t);
		break;
	case 10:
		a->r.out_len = strange(t);
		break;
	case 11:
		a->r.reserved = strange(t);
		break;
	case 12:
		a->r.in = a->r.out;
		a->r.in_len = below(t, 100);
		break;
	case 13:
		a->r.out_len = draw_length(t);
		a->r.out = draw_address(t, a);
		break;
	default:
		a->r.out = draw_address(t, a);
	}
}

/* Places the request: aligned or not, at the end of memory, or in rewritten memory. */
static void place_request(struct thread *t, struct attempt *a)
{
	memset(a->space, 0, SPACE);
	if (one_in(t, 8))
		a->space[sizeof(a->r) + below(t, 100)] = below(t, 2);
	switch (below(t, 32)) {
	case 0:
		a->request = common + 8 * below(t, (COMMON - PAGE) / 8);
		break;
	case 1:
		a->request = nothing - below(t, 80);
		return;
	case 2:
		a->request = (void *)(uintptr_t)draw_address(t, a);
		return;
	case 3:
		a->request = constant;
		return;
	case 4:
		a->request = a->space + below(t, 8);
		break;
	default:
		a->request = a->space;
	}
	memcpy(a->request, &a->r, sizeof(a->r));
}

/*
 * Writes the pattern around the room for the answer, if that is private and holds nothing else.
 */
static void watch(struct attempt *a)
{
	unsigned char *end = a->room + ARENA, *out = (void *)(uintptr_t)a->r.out;

	a->watched = out >= a->room && out < end &&
		     a->r.out_len <= (size_t)(end - out) &&
		     (unsigned char *)a->request >= a->space &&
		     (unsigned char *)a->request <= a->space + 8 &&
		     (a->r.in < (uintptr_t)a->room || a->r.in >= (uintptr_t)end);
	if (!a->watched)
		return;
	a->from = out - a->room > AROUND ? out - AROUND : a->room;
	a->to = out + a->r.out_len + AROUND;
	if (a->to > end)
		a->to = end;
	memset(a->from, UNTOUCHED, a->to - a->from);
}

void draw_attempt(struct thread *t, struct attempt *a)
{
	uint32_t changes = below(t, 8);

	a->op = draw_op(t);
	a->file = below(t, FILES);
	a->fd = files[a->file].fd;
	draw_right(t, a);
	for (; changes > 4; changes--)
		change_member(t, a);
	place_request(t, a);
	watch(a);
	if (!a->op)
		a->op = OPS + below(t, 64);
}
