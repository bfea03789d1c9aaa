// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks of an answer that need no knowledge of its contents: its length, its form, and that
 * the kernel leaks nothing in it. See ca_fuzz.c.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ca_fuzz.h"

/* --- what went wrong ------------------------------------------------------------------ */

static void show(const struct attempt *a)
{
	const struct kverbs_ca_request *r = &a->r;

	printf("# op %u fd %d at %p: size %u version %u flags %#x port %u handle %#llx object %#llx in %#llx out %#llx in_len %u out_len %u reserved %#llx\n",
	       a->op, a->fd, a->request, r->size, r->version, r->flags, r->port,
	       (unsigned long long)r->handle, (unsigned long long)r->object,
	       (unsigned long long)r->in, (unsigned long long)r->out, r->in_len,
	       r->out_len, (unsigned long long)r->reserved);
}

void wrong(const struct thread *t, const struct attempt *a, long ret,
	   const char *what, uint64_t value)
{
	if (atomic_fetch_add(&shared->failed, 1) >= 10)
		return;
	printf("not ok seed %llu, thread %u: result %ld: %s (%#llx)\n",
	       (unsigned long long)seed, t->number, ret, what,
	       (unsigned long long)value);
	show(a);
}

/* --- answers ------------------------------------------------------------------------------ */

static uint32_t word(const unsigned char *p)
{
	uint32_t w;

	memcpy(&w, p, sizeof(w));
	return w;
}

static bool is_pattern(uint32_t w)
{
	return w == 0x6b6b6b6b || w == 0x5a5a5a5a || w == 0xa56b6b6b ||
	       w == 0xfefefefe;
}

/* Checks for the upper half of a kernel address. */
static bool is_address(uint32_t w)
{
	return w >= 0xffff8000 && w < 0xffffffff;
}

/* Checks for an object number in a list; its upper half may have any value. */
static bool is_number(const struct attempt *a, const unsigned char *p, uint32_t i)
{
	struct kverbs_ca_list list;
	uint32_t at;

	if ((a->op != KVERBS_CA_LIST && a->op != KVERBS_CA_CLOSE) || i < sizeof(list))
		return false;
	memcpy(&list, p, sizeof(list));
	if (i < list.entry_offset || !list.entry_size)
		return false;
	at = (i - list.entry_offset) % list.entry_size;
	return at == offsetof(struct kverbs_ca_object, object) + 4 ||
	       at == offsetof(struct kverbs_ca_object, parent) + 4;
}

static void look_for_leaks(struct thread *t, const struct attempt *a, long ret,
			   const unsigned char *p, uint32_t len)
{
	/* A region is described as it was requested, wherever it is. */
	bool own = a->op == KVERBS_CA_REG_MR || a->op == KVERBS_CA_QUERY_MR;
	uint32_t i;

	for (i = 0; i + 4 <= len; i += 4) {
		if (is_pattern(word(p + i)) && !is_number(a, p, i)) {
			wrong(t, a, ret, "memory that nobody has set, at", i);
			return;
		}
		if (!own && i % 8 == 4 && is_address(word(p + i)) &&
		    !is_number(a, p, i)) {
			wrong(t, a, ret, "an address of the kernel's, at", i);
			return;
		}
	}
}

static void expect_text(struct thread *t, const struct attempt *a, long ret,
			const char *text, size_t size)
{
	size_t i = strnlen(text, size);

	if (i == size)
		wrong(t, a, ret, "a text has no end", 0);
	for (; i < size; i++) {
		if (text[i])
			wrong(t, a, ret, "bytes behind a text", i);
	}
}

static void look_at_port(struct thread *t, const struct attempt *a, long ret,
			 const unsigned char *p, uint32_t len)
{
	struct kverbs_ca_port_attr port;
	uint32_t i;

	if (len < sizeof(port)) {
		wrong(t, a, ret, "a port is too short", len);
		return;
	}
	memcpy(&port, p, sizeof(port));
	if (port.version != KVERBS_CA_VERSION || port.size > len ||
	    port.attr_size != sizeof(port))
		wrong(t, a, ret, "a port of size", port.size);
	if (port.reserved[0] | port.reserved[1] | port.reserved[2])
		wrong(t, a, ret, "a port's reserved bytes", port.reserved[0]);
	i = port.pkey_offset + 2 * port.pkey_count;
	if (i > port.size || port.gid_offset + port.gid_count * port.gid_size >
	    port.pkey_offset)
		wrong(t, a, ret, "a port's tables end at", i);
	for (; i < port.size && i < len; i++) {
		if (p[i])
			wrong(t, a, ret, "padding, at", i);
	}
}

static void look_at_ca(struct thread *t, const struct attempt *a, long ret,
		       const unsigned char *p, uint32_t len)
{
	struct kverbs_ca_attr attr;
	uint32_t n, at;

	if (len < sizeof(attr)) {
		wrong(t, a, ret, "a CA is too short", len);
		return;
	}
	memcpy(&attr, p, sizeof(attr));
	expect_text(t, a, ret, attr.name, sizeof(attr.name));
	expect_text(t, a, ret, attr.fw_str, sizeof(attr.fw_str));
	expect_text(t, a, ret, attr.node_desc, sizeof(attr.node_desc));
	at = attr.port_offset;
	for (n = 0; n < attr.port_count && at < len; n++) {
		look_at_port(t, a, ret, p + at, len - at);
		at += word(p + at + 4);
	}
	if (at != attr.size)
		wrong(t, a, ret, "the ports end at", at);
}

/* Checks that a region is as described, or that the reason for its absence is valid. */
static void look_at_region(struct thread *t, const struct attempt *a, long ret,
			   const unsigned char *p, uint32_t len)
{
	struct kverbs_ca_mr_attr attr;

	if (len < sizeof(attr))
		return;
	memcpy(&attr, p, sizeof(attr));
	expect_text(t, a, ret, attr.peer, sizeof(attr.peer));
	if (attr.path >= PATHS || (ret < 0) != (attr.path == KVERBS_CA_PATH_ANY))
		wrong(t, a, ret, "a region with the path", attr.path);
	else
		atomic_fetch_add(&shared->paths[attr.path], 1);
	if (ret < 0 && (attr.object || attr.lkey || attr.rkey || attr.flags))
		wrong(t, a, ret, "a region that was not made is", attr.object);
	if (attr.flags & ~(KVERBS_CA_MR_REVOKED | KVERBS_CA_MR_PINNED))
		wrong(t, a, ret, "a region with the flags", attr.flags);
	if (attr.host_error > 0 || attr.peer_error > 0 || attr.dmabuf_error > 0 ||
	    attr.p2p_error > 0 || attr.reserved)
		wrong(t, a, ret, "an error that is none", attr.host_error);
}

/* Checks a complete answer. */
static void look_at_all(struct thread *t, const struct attempt *a, long ret,
			const unsigned char *p, uint32_t len)
{
	switch (a->op) {
	case KVERBS_CA_QUERY_CA:
		look_at_ca(t, a, ret, p, len);
		break;
	case KVERBS_CA_QUERY_PORT:
		look_at_port(t, a, ret, p, len);
		break;
	case KVERBS_CA_REG_MR:
	case KVERBS_CA_QUERY_MR:
		look_at_region(t, a, ret, p, len);
		break;
	}
}

/* Length of the answer of a failed REG_MR, which has one if the kernel has tried. */
static long told_of_failure(const struct attempt *a)
{
	const unsigned char *p = (void *)(uintptr_t)a->r.out;
	uint32_t size;

	if (a->r.out_len < 8 || word(p) != KVERBS_CA_VERSION)
		return 0;
	size = word(p + 4);
	return size < a->r.out_len ? size : a->r.out_len;
}

/* Number of bytes in an answer; -1 if any number is valid. */
static long told(struct thread *t, const struct attempt *a, long ret)
{
	const unsigned char *p = (void *)(uintptr_t)a->r.out;
	uint32_t size;

	if (ret >= 0)
		return ret;
	if (a->op == KVERBS_CA_REG_MR)
		return told_of_failure(a);
	switch (ret) {
	case -EFAULT:
		return -1;
	case -EOVERFLOW:
		size = word(p + 4);
		if (size <= a->r.out_len)
			wrong(t, a, ret, "it fits, says its size", size);
		return a->r.out_len;
	case -EBUSY:
		if (a->op != KVERBS_CA_CLOSE || a->r.out_len < 8)
			return 0;
		size = word(p + 4);
		return size < a->r.out_len ? size : a->r.out_len;
	}
	return 0;
}

static void look_untouched(struct thread *t, const struct attempt *a, long ret,
			   const unsigned char *from, const unsigned char *to)
{
	for (; from < to; from++) {
		if (*from != UNTOUCHED) {
			wrong(t, a, ret, "a byte is touched, at",
			      from - (unsigned char *)(uintptr_t)a->r.out);
			return;
		}
	}
}

/* Tells whether the answer may be incomplete. */
static bool may_be_cut(const struct attempt *a, long ret)
{
	return a->op == KVERBS_CA_REG_MR ||
	       (a->op == KVERBS_CA_QUERY_MR && ret == KVERBS_CA_MR_ATTR_SIZE_MIN);
}

void look_at_answer(struct thread *t, const struct attempt *a, long ret)
{
	unsigned char *p = (void *)(uintptr_t)a->r.out;
	long len;

	if (!a->watched)
		return;
	look_untouched(t, a, ret, a->from, p);
	len = told(t, a, ret);
	if (len < 0)
		len = a->r.out_len;
	else if (len > a->r.out_len)
		wrong(t, a, ret, "more than there is room for", len);
	else if (len)
		look_for_leaks(t, a, ret, p, len);
	if (len < a->to - p)
		look_untouched(t, a, ret, p + len, a->to);
	if (ret < 0 && len > 0 && a->op == KVERBS_CA_REG_MR)
		look_at_region(t, a, ret, p, len);
	if (ret <= 0)
		return;
	atomic_fetch_add(&shared->answers, 1);
	if (word(p) != KVERBS_CA_VERSION)
		wrong(t, a, ret, "an answer of version", word(p));
	if (!may_be_cut(a, ret) && word(p + 4) != ret)
		wrong(t, a, ret, "an answer of size", word(p + 4));
	else
		look_at_all(t, a, ret, p, ret);
}
