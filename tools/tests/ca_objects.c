// SPDX-License-Identifier: GPL-2.0-only
/*
 * Handles, protection domains and regions: the result of each request about them, and what
 * LIST, QUERY_MR and CLOSE do with them. Also built for 32 bits.
 */
#include <errno.h>
#include <fcntl.h>
#include <kverbs/emu.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ca_call.h"

#define DEVICE	"t-objects"
#define LENGTH	16384
#define EMU_CAS	"/sys/kernel/debug/kverbs_emu/" DEVICE "/ca"

static int fd;
static uint64_t handle, pd;
static char *memory;

static void setup(void)
{
	emu_make(DEVICE, 1);
	fd = node_open(DEVICE, O_RDWR);
	handle = must_open(fd, 0);
	pd = must_alloc_pd(fd, handle);
	memory = pages(LENGTH);
}

/* --- handles ------------------------------------------------------------------ */

static void handles_differ(void)
{
	uint64_t h[32];
	int i, j, round;

	setup();
	for (round = 0; round < 4; round++) {
		for (i = 0; i < 32; i++) {
			h[i] = must_open(fd, 0);
			EXPECT(h[i] != handle);
			for (j = 0; j < i; j++)
				EXPECT(h[i] != h[j]);
		}
		for (i = 0; i < 32; i++)
			EXPECT_EQ(ca_close(fd, h[i]), 0);
		for (i = 0; i < 32; i++)
			EXPECT_EQ(ca_close(fd, h[i]), -ENOENT);
	}
}

static void handles_not_reused(void)
{
	uint64_t old, now;
	int i;

	setup();
	old = must_open(fd, 0);
	EXPECT_EQ(ca_close(fd, old), 0);
	for (i = 0; i < 1000; i++) {
		now = must_open(fd, 0);
		EXPECT(now != old);
		EXPECT_EQ(ca_close(fd, old), -ENOENT);
		EXPECT_EQ(ca_close(fd, now), 0);
	}
}

/* Performs an operation on a handle, with valid buffers. */
static long operate(unsigned int op, uint64_t h, uint64_t object)
{
	static char out[4096];
	struct kverbs_ca_peer peer = {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(peer),
	};
	struct kverbs_ca_reg_mr reg;
	struct kverbs_ca_request r = { .handle = h };

	switch (op) {
	case KVERBS_CA_REG_MR:
		ca_fill_reg(&reg, object, memory, LENGTH);
		r.in = (uintptr_t)&reg;
		r.in_len = sizeof(reg);
		break;
	case KVERBS_CA_SET_PEER:
		r.in = (uintptr_t)&peer;
		r.in_len = sizeof(peer);
		break;
	case KVERBS_CA_LIST:
	case KVERBS_CA_QUERY_MR:
		r.out = (uintptr_t)out;
		r.out_len = sizeof(out);
		break;
	}
	if (op == KVERBS_CA_DEALLOC_PD || op == KVERBS_CA_DEREG_MR ||
	    op == KVERBS_CA_QUERY_MR)
		r.object = object;
	return ca_do(fd, op, &r);
}

static const unsigned int on_handle[] = {
	KVERBS_CA_CLOSE, KVERBS_CA_ALLOC_PD, KVERBS_CA_DEALLOC_PD,
	KVERBS_CA_REG_MR, KVERBS_CA_DEREG_MR, KVERBS_CA_QUERY_MR,
	KVERBS_CA_LIST, KVERBS_CA_SET_PEER,
};

static void bad_handles(void)
{
	uint64_t bad[] = { 0, 1, ~0ULL, 1ULL << 63, 0, 0, 0, 0 };
	unsigned int i, j;

	setup();
	bad[4] = handle + 1;
	bad[5] = handle + (1ULL << 32);
	bad[6] = handle ^ 1ULL << 63;
	bad[7] = pd;
	for (i = 0; i < TEST_COUNT(bad); i++) {
		if (bad[i] == handle)
			continue;
		for (j = 0; j < TEST_COUNT(on_handle); j++)
			EXPECT_EQ(operate(on_handle[j], bad[i], pd), -ENOENT);
	}
}

static void bad_objects(void)
{
	uint64_t other, bad[8], mr, gone;
	unsigned int i;

	setup();
	mr = must_reg(fd, handle, pd, memory, LENGTH);
	gone = must_alloc_pd(fd, handle);
	EXPECT_EQ(ca_dealloc_pd(fd, handle, gone), 0);
	other = must_open(fd, 0);
	bad[0] = 0;
	bad[1] = ~0ULL;
	bad[2] = gone;
	bad[3] = pd + (1ULL << 32);
	/* Each handle numbers its objects separately. */
	for (i = 0; i < 8; i++)
		bad[4] = must_alloc_pd(fd, other);
	bad[5] = 1ULL << 63;
	bad[6] = mr + 1;
	bad[7] = mr ^ 1ULL << 40;
	for (i = 0; i < TEST_COUNT(bad); i++) {
		EXPECT_EQ(operate(KVERBS_CA_DEALLOC_PD, handle, bad[i]), -ENOENT);
		EXPECT_EQ(operate(KVERBS_CA_DEREG_MR, handle, bad[i]), -ENOENT);
		EXPECT_EQ(operate(KVERBS_CA_QUERY_MR, handle, bad[i]), -ENOENT);
		EXPECT_EQ(operate(KVERBS_CA_REG_MR, handle, bad[i]), -ENOENT);
	}
	EXPECT_EQ(operate(KVERBS_CA_DEALLOC_PD, handle, mr), -ENOENT);
	EXPECT_EQ(operate(KVERBS_CA_DEREG_MR, handle, pd), -ENOENT);
	EXPECT_EQ(operate(KVERBS_CA_QUERY_MR, handle, pd), -ENOENT);
	EXPECT_EQ(operate(KVERBS_CA_REG_MR, handle, mr), -ENOENT);
}

/* --- vendor buffers -------------------------------------------------------------- */

static long open_with(uint64_t in, uint32_t len)
{
	struct kverbs_ca_request r = { .in = in, .in_len = len };
	long ret = ca_do(fd, KVERBS_CA_OPEN, &r);

	if (!ret)
		EXPECT_EQ(ca_close(fd, r.handle), 0);
	return ret;
}

static void vendor_buffers(void)
{
	static char in[KVERBS_CA_VENDOR_MAX + 1];

	setup();
	EXPECT_EQ(open_with(0, 0), 0);
	EXPECT_EQ(open_with(0, 8), -EINVAL);
	EXPECT_EQ(open_with((uintptr_t)in, 0), -EINVAL);
	EXPECT_EQ(open_with((uintptr_t)in, sizeof(in)), -E2BIG);
	EXPECT_EQ(open_with((uintptr_t)in, ~0U), -E2BIG);
	EXPECT_EQ(open_with(1ULL << 63, 64), -EFAULT);
}

/* The software HCA has a tag for each open, and shows the tags. */
static void vendor_tag(void)
{
	struct {
		struct kverbs_emu_open open;
		char tail[16];
	} in = {
		.open = {
			.version = KVERBS_EMU_VERSION,
			.size = sizeof(in.open),
			.tag = "mine",
		},
	};
	struct kverbs_ca_request r = {
		.in = (uintptr_t)&in,
		.in_len = sizeof(in.open),
	};

	setup();
	EXPECT(!file_has(EMU_CAS, "tag=mine"));
	EXPECT_EQ(ca_do(fd, KVERBS_CA_OPEN, &r), 0);
	EXPECT(file_has(EMU_CAS, "tag=mine"));
	EXPECT_EQ(ca_close(fd, r.handle), 0);
	EXPECT(!file_has(EMU_CAS, "tag=mine"));
	EXPECT_EQ(open_with((uintptr_t)&in, sizeof(in)), -EINVAL);
	in.open.size = sizeof(in);
	EXPECT_EQ(open_with((uintptr_t)&in, sizeof(in)), 0);
	in.tail[3] = 1;
	EXPECT_EQ(open_with((uintptr_t)&in, sizeof(in)), -E2BIG);
	in.open.size = sizeof(in.open);
	memset(in.open.tag, 'x', sizeof(in.open.tag));
	EXPECT_EQ(open_with((uintptr_t)&in, sizeof(in.open)), -EINVAL);
}

/* --- protection domains ------------------------------------------------------------ */

static void pd_with_regions(void)
{
	uint64_t mr;

	setup();
	mr = must_reg(fd, handle, pd, memory, LENGTH);
	EXPECT_EQ(ca_dealloc_pd(fd, handle, pd), -EBUSY);
	EXPECT_EQ(ca_dereg(fd, handle, mr), 0);
	EXPECT_EQ(ca_dereg(fd, handle, mr), -ENOENT);
	EXPECT_EQ(ca_dealloc_pd(fd, handle, pd), 0);
	EXPECT_EQ(ca_dealloc_pd(fd, handle, pd), -ENOENT);
}

/* --- regions ------------------------------------------------------------------------ */

static struct kverbs_ca_mr_attr query_mr(uint64_t mr)
{
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_request r = {
		.handle = handle,
		.object = mr,
		.out = (uintptr_t)&attr,
		.out_len = sizeof(attr),
	};

	EXPECT_EQ(ca_do(fd, KVERBS_CA_QUERY_MR, &r), sizeof(attr));
	return attr;
}

static void region(void)
{
	struct kverbs_ca_mr_attr attr, given;
	struct kverbs_ca_reg_mr reg;
	struct kverbs_ca_request r = {
		.handle = handle,
		.in = (uintptr_t)&reg,
		.in_len = sizeof(reg),
		.out = (uintptr_t)&given,
		.out_len = sizeof(given),
	};
	unsigned int i;

	setup();
	r.handle = handle;
	ca_fill_reg(&reg, pd, memory + 100, LENGTH - 200);
	reg.iova = 0x123456064ULL;
	reg.access = KVERBS_CA_ACCESS_LOCAL_WRITE | KVERBS_CA_ACCESS_REMOTE_READ |
		     KVERBS_CA_ACCESS_REMOTE_WRITE;
	EXPECT_EQ(ca_do(fd, KVERBS_CA_REG_MR, &r), sizeof(given));
	attr = query_mr(r.object);
	EXPECT(!memcmp(&attr, &given, sizeof(attr)));
	EXPECT_EQ(attr.version, KVERBS_CA_VERSION);
	EXPECT_EQ(attr.size, sizeof(attr));
	EXPECT_EQ(attr.object, r.object);
	EXPECT_EQ(attr.pd, pd);
	EXPECT_EQ(attr.start, reg.start);
	EXPECT_EQ(attr.length, reg.length);
	EXPECT_EQ(attr.iova, reg.iova);
	EXPECT_EQ(attr.access, reg.access);
	EXPECT_EQ(attr.path, KVERBS_CA_PATH_HOST);
	EXPECT(attr.lkey && attr.rkey);
	EXPECT_EQ(attr.flags, KVERBS_CA_MR_PINNED);
	EXPECT(!attr.host_error && !attr.peer_error && !attr.dmabuf_error);
	for (i = 0; i < sizeof(attr.peer); i++)
		EXPECT(!attr.peer[i]);
	EXPECT_EQ(ca_dereg(fd, handle, r.object), 0);
}

/* QUERY_MR with any length. */
static void region_lengths(void)
{
	unsigned char full[sizeof(struct kverbs_ca_mr_attr)], got[256];
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_request r;
	uint32_t len, told, i;
	uint64_t mr;
	long want;

	setup();
	mr = must_reg(fd, handle, pd, memory, LENGTH);
	attr = query_mr(mr);
	memcpy(full, &attr, sizeof(full));
	for (len = 0; len <= sizeof(full) + 16; len++) {
		r = (struct kverbs_ca_request) {
			.handle = handle,
			.object = mr,
			.out = (uintptr_t)got,
			.out_len = len,
		};
		memset(got, UNTOUCHED, sizeof(got));
		told = len < 8 ? 0 : len < sizeof(full) ? len : sizeof(full);
		want = len < 8 ? -ENOSPC :
		       len < sizeof(full) ? -EOVERFLOW : (long)sizeof(full);
		/* A caller compiled with the first version does not miss the rest. */
		if (len == KVERBS_CA_MR_ATTR_SIZE_MIN)
			want = len;
		EXPECT_EQ(ca_do(fd, KVERBS_CA_QUERY_MR, &r), want);
		EXPECT(!memcmp(got, full, told));
		for (i = told; i < sizeof(got); i++)
			EXPECT_EQ(got[i], UNTOUCHED);
	}
}

/* REG_MR with room for the answer that is short, long or missing. */
static void answers_of_reg(void)
{
	struct kverbs_ca_mr_attr attr;
	unsigned char got[256], whole[sizeof(attr)];
	struct kverbs_ca_reg_mr reg;
	struct kverbs_ca_request r;
	uint32_t len, told, i;

	setup();
	for (len = 8; len <= sizeof(attr) + 8; len++) {
		ca_fill_reg(&reg, pd, memory, LENGTH);
		r = (struct kverbs_ca_request) {
			.handle = handle,
			.in = (uintptr_t)&reg,
			.in_len = sizeof(reg),
			.out = (uintptr_t)got,
			.out_len = len,
		};
		memset(got, UNTOUCHED, sizeof(got));
		told = len < sizeof(attr) ? len : sizeof(attr);
		EXPECT_EQ(ca_do(fd, KVERBS_CA_REG_MR, &r), told);
		attr = query_mr(r.object);
		memcpy(whole, &attr, sizeof(attr));
		EXPECT(!memcmp(got, whole, told));
		for (i = told; i < sizeof(got); i++)
			EXPECT_EQ(got[i], UNTOUCHED);
		EXPECT_EQ(ca_dereg(fd, handle, r.object), 0);
	}
}

/* A registration that cannot return its result leaves nothing behind. */
static void answers_that_fault(void)
{
	struct kverbs_ca_reg_mr reg;
	struct kverbs_ca_request r;
	struct kverbs_ca_list list;
	long long pinned;
	uint32_t len;

	setup();
	pinned = pinned_pages();
	for (len = 0; len < 8; len++) {
		ca_fill_reg(&reg, pd, memory, LENGTH);
		r = (struct kverbs_ca_request) {
			.handle = handle,
			.in = (uintptr_t)&reg,
			.in_len = sizeof(reg),
			.out = (uintptr_t)&list,
			.out_len = len,
		};
		EXPECT_EQ(ca_do(fd, KVERBS_CA_REG_MR, &r), -ENOSPC);
	}
	r.out = 1ULL << 63;
	r.out_len = 64;
	EXPECT_EQ(ca_do(fd, KVERBS_CA_REG_MR, &r), -EFAULT);
	EXPECT_EQ(ca_list(fd, handle, &list, sizeof(list)), -EOVERFLOW);
	EXPECT_EQ(list.count, 1);
	expect_pinned(pinned);
}

static long reg_with(struct kverbs_ca_reg_mr *reg, uint32_t len)
{
	struct kverbs_ca_request r = {
		.handle = handle,
		.in = (uintptr_t)reg,
		.in_len = len,
	};

	return ca_do(fd, KVERBS_CA_REG_MR, &r);
}

/* Descriptions of a region by older, newer and faulty callers. */
static void descriptions(void)
{
	struct {
		struct kverbs_ca_reg_mr reg;
		char tail[64];
	} in = { 0 };
	const uint32_t size = sizeof(in.reg);
	uint32_t len;

	setup();
	ca_fill_reg(&in.reg, pd, memory, LENGTH);
	for (len = 0; len < size; len++) {
		in.reg.size = len;
		if (len < KVERBS_CA_REG_MR_SIZE_MIN)
			EXPECT_EQ(reg_with(&in.reg, len), -EINVAL);
		EXPECT_EQ(reg_with(&in.reg, sizeof(in)), -EINVAL);
		in.reg.size = size;
		EXPECT_EQ(reg_with(&in.reg, len), -EINVAL);
	}
	for (len = KVERBS_CA_REG_MR_SIZE_MIN; len <= sizeof(in); len++) {
		in.reg.size = len;
		EXPECT_EQ(reg_with(&in.reg, len), 0);
	}
	in.tail[40] = 1;
	in.reg.size = sizeof(in);
	EXPECT_EQ(reg_with(&in.reg, sizeof(in)), -E2BIG);
	in.reg.size = size;
	in.reg.version = 0;
	EXPECT_EQ(reg_with(&in.reg, size), -EINVAL);
	in.reg.version = 2;
	EXPECT_EQ(reg_with(&in.reg, size), -EINVAL);
	EXPECT_EQ(reg_with(NULL, 0), -EINVAL);
	EXPECT_EQ(reg_with(NULL, size), -EINVAL);
	EXPECT_EQ(reg_with((void *)8, size), -EFAULT);
}

static long reg_as(uint64_t start, uint64_t length, uint32_t access, uint32_t path)
{
	struct kverbs_ca_reg_mr reg;

	ca_fill_reg(&reg, pd, memory, LENGTH);
	reg.start = start;
	reg.length = length;
	reg.iova = start;
	reg.access = access;
	reg.path = path;
	return reg_with(&reg, sizeof(reg));
}

static void regions_that_cannot_be(void)
{
	const uint32_t write = KVERBS_CA_ACCESS_LOCAL_WRITE;
	uint64_t at;
	char *ro;

	setup();
	at = (uintptr_t)memory;
	EXPECT_EQ(reg_as(at, 0, write, 0), -EINVAL);
	EXPECT(reg_as(at, ~0ULL, write, 0) < 0);
	EXPECT(reg_as(~0ULL - 8, 4096, write, 0) < 0);
	EXPECT(reg_as(1ULL << 63, 4096, write, 0) < 0);
	EXPECT(reg_as(at, 1ULL << 46, write, 0) < 0);
	EXPECT_EQ(reg_as(0, 4096, write, 0), -EFAULT);
	EXPECT_EQ(reg_as(at, LENGTH, write | 1U << 30, 0), -EINVAL);
	EXPECT_EQ(reg_as(at, LENGTH, KVERBS_CA_ACCESS_REMOTE_WRITE, 0), -EINVAL);
	EXPECT_EQ(reg_as(at, LENGTH, KVERBS_CA_ACCESS_REMOTE_ATOMIC, 0), -EINVAL);
	EXPECT_EQ(reg_as(at, LENGTH, write, KVERBS_CA_PATH_P2P + 1), -EINVAL);
	EXPECT_EQ(reg_as(at, LENGTH, write, ~0U), -EINVAL);
	ro = mmap(NULL, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(ro != MAP_FAILED);
	EXPECT_EQ(reg_as((uintptr_t)ro, LENGTH, write, 0), -EFAULT);
	EXPECT_EQ(reg_as((uintptr_t)ro, LENGTH, 0, 0), 0);
	EXPECT_EQ(reg_as(at, LENGTH, write, KVERBS_CA_PATH_HOST), 0);
}

static void pins(void)
{
	long long before;
	uint64_t mr;

	setup();
	before = pinned_pages();
	mr = must_reg(fd, handle, pd, memory, LENGTH);
	expect_pinned(before + LENGTH / 4096);
	EXPECT_EQ(ca_dereg(fd, handle, mr), 0);
	expect_pinned(before);
}

/* --- lists ----------------------------------------------------------------------------- */

static _Alignas(8) char answer[4096];

static struct kverbs_ca_object *entry(unsigned int n)
{
	struct kverbs_ca_list *list = (void *)answer;

	EXPECT(n < list->count);
	EXPECT(list->entry_size >= sizeof(struct kverbs_ca_object));
	EXPECT(list->entry_offset + (n + 1) * list->entry_size <= list->size);
	return (void *)(answer + list->entry_offset + n * list->entry_size);
}

static struct kverbs_ca_object *find(uint64_t object)
{
	struct kverbs_ca_list *list = (void *)answer;
	unsigned int n;

	for (n = 0; n < list->count; n++) {
		if (entry(n)->object == object)
			return entry(n);
	}
	test_fail(__FILE__, __LINE__, "object %#llx is not in the list",
		  (unsigned long long)object);
}

static void expect_list(uint64_t empty, uint64_t mr)
{
	struct kverbs_ca_list *list = (void *)answer;

	EXPECT_EQ(list->version, KVERBS_CA_VERSION);
	EXPECT_EQ(list->attr_size, sizeof(*list));
	EXPECT_EQ(list->count, 3);
	EXPECT_EQ(list->size, list->entry_offset + 3 * list->entry_size);
	EXPECT(find(pd)->type == KVERBS_CA_OBJECT_PD && !find(pd)->parent &&
	       !find(pd)->length);
	EXPECT_EQ(find(pd)->users, 1);
	EXPECT_EQ(find(empty)->users, 0);
	EXPECT(find(mr)->type == KVERBS_CA_OBJECT_MR && find(mr)->parent == pd &&
	       find(mr)->length == LENGTH);
	EXPECT_EQ(find(mr)->users, 0);
}

static void lists(void)
{
	struct kverbs_ca_list *list = (void *)answer;
	unsigned char full[256];
	uint64_t mr, empty;
	uint32_t len, size;

	setup();
	mr = must_reg(fd, handle, pd, memory, LENGTH);
	empty = must_alloc_pd(fd, handle);
	size = ca_list(fd, handle, answer, sizeof(answer));
	EXPECT_EQ(size, list->size);
	EXPECT(size <= sizeof(full));
	expect_list(empty, mr);
	memcpy(full, answer, size);
	for (len = 0; len < size; len++) {
		memset(answer, UNTOUCHED, sizeof(answer));
		EXPECT_EQ(ca_list(fd, handle, answer, len),
			  len < 8 ? -ENOSPC : -EOVERFLOW);
		EXPECT(len < 8 || !memcmp(answer, full, len));
		EXPECT_EQ((unsigned char)answer[len < 8 ? 0 : len], UNTOUCHED);
	}
	EXPECT_EQ(ca_list(fd, handle, NULL, 0), -EINVAL);
	EXPECT_EQ(ca_list(fd, must_open(fd, 0), answer, sizeof(answer)),
		  sizeof(*list));
	EXPECT_EQ(list->count, 0);
}

static void busy_close(void)
{
	uint64_t mr, empty;

	setup();
	mr = must_reg(fd, handle, pd, memory, LENGTH);
	empty = must_alloc_pd(fd, handle);
	EXPECT_EQ(ca_close(fd, handle), -EBUSY);
	EXPECT_EQ(ca_out(fd, KVERBS_CA_CLOSE, handle, answer, sizeof(answer)),
		  -EBUSY);
	expect_list(empty, mr);
	memset(answer, UNTOUCHED, sizeof(answer));
	EXPECT_EQ(ca_out(fd, KVERBS_CA_CLOSE, handle, answer, 8), -EBUSY);
	EXPECT_EQ(((struct kverbs_ca_list *)answer)->version, KVERBS_CA_VERSION);
	EXPECT_EQ((unsigned char)answer[8], UNTOUCHED);
	EXPECT_EQ(ca_dereg(fd, handle, mr), 0);
	EXPECT_EQ(ca_dealloc_pd(fd, handle, empty), 0);
	EXPECT_EQ(ca_close(fd, handle), -EBUSY);
	EXPECT_EQ(ca_dealloc_pd(fd, handle, pd), 0);
	EXPECT_EQ(ca_close(fd, handle), 0);
	EXPECT_EQ(ca_close(fd, handle), -ENOENT);
}

/* --- readers -------------------------------------------------------------------- */

/* Users who may only read, as many as have handles at all; and one more. */
#define READERS		8
#define FIRST_USER	5000

/* By which they say that they have them, and wait for the others. */
static int ready[2], stay[2];

/* Opens the HCA @n times. */
static void open_times(int file, int n)
{
	while (n--)
		must_open(file, 0);
}

/* A user who may only read has 64 handles at most, through any number of files. */
static void readers(void *unused __attribute__((unused)))
{
	int files[3], i;
	uint64_t other;

	for (i = 0; i < 3; i++)
		files[i] = node_open(DEVICE, O_RDONLY);
	become_nobody();
	open_times(files[0], 40);
	open_times(files[1], 24);
	EXPECT_EQ(ca_open(files[2], 0, &other), -EMFILE);
	close(files[0]);
	open_times(files[2], 40);
	EXPECT_EQ(ca_open(files[2], 0, &other), -EMFILE);
}

/* One of many users, each of whom has as many as he may, until all have tried. */
static void one_reader(void *user)
{
	int file = node_open(DEVICE, O_RDONLY), nr = *(int *)user;
	int another = node_open(DEVICE, O_RDONLY);
	uint64_t other;
	char byte = 0;

	close(stay[1]);
	EXPECT(!setuid(FIRST_USER + nr));
	if (nr < READERS)
		open_times(file, 64);
	EXPECT_EQ(ca_open(another, 0, &other), -EMFILE);
	EXPECT_EQ(write(ready[1], &byte, 1), 1);
	EXPECT_EQ(read(stay[0], &byte, 1), 0);
}

static void many_readers(void)
{
	int pid[READERS + 1], i;
	char byte;

	EXPECT(!pipe(ready) && !pipe(stay));
	for (i = 0; i <= READERS; i++) {
		pid[i] = test_spawn(one_reader, &i);
		EXPECT_EQ(read(ready[0], &byte, 1), 1);
	}
	close(stay[1]);
	for (i = 0; i <= READERS; i++)
		test_join(pid[i]);
}

/* A user who has made a namespace has other numbers there, by which he gets no more. */
static void reader_of_many_numbers(void *unused __attribute__((unused)))
{
	int file = node_open(DEVICE, O_RDONLY), another = node_open(DEVICE, O_RDONLY);
	int go[2], mapped[2], pid;
	char path[64], map[32], byte = 0;
	uint64_t other;

	EXPECT(!pipe(go) && !pipe(mapped));
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		/* Only root may map another user's number. */
		EXPECT_EQ(read(go[0], &byte, 1), 1);
		snprintf(path, sizeof(path), "/proc/%d/uid_map", getppid());
		snprintf(map, sizeof(map), "0 %d 1\n", FIRST_USER);
		EXPECT(file_write(path, map));
		EXPECT_EQ(write(mapped[1], &byte, 1), 1);
		_exit(0);
	}
	become_nobody();
	open_times(file, 64);
	EXPECT(!unshare(CLONE_NEWUSER));
	EXPECT_EQ(write(go[1], &byte, 1), 1);
	EXPECT_EQ(read(mapped[0], &byte, 1), 1);
	EXPECT(!setuid(0));
	EXPECT_EQ(ca_open(another, 0, &other), -EMFILE);
}

static void readers_have_a_limit(void)
{
	int pid, file;

	setup();
	pid = test_spawn(readers, NULL);
	test_join(pid);
	pid = test_spawn(reader_of_many_numbers, NULL);
	test_join(pid);
	many_readers();
	/* Who may write has none of it. */
	file = node_open(DEVICE, O_RDWR);
	open_times(file, 70);
}

static const struct test_case cases[] = {
	{ "a user who may only read has so many handles", readers_have_a_limit },
	{ "handles differ", handles_differ },
	{ "a handle that was closed stays so", handles_not_reused },
	{ "handles that are not there", bad_handles },
	{ "objects that are not there, or of another kind", bad_objects },
	{ "what is handed to the HCA", vendor_buffers },
	{ "the HCA sees each open", vendor_tag },
	{ "a domain with regions stays", pd_with_regions },
	{ "a region is what was asked for", region },
	{ "QUERY_MR of any length", region_lengths },
	{ "REG_MR answers as much as fits", answers_of_reg },
	{ "REG_MR that cannot answer makes nothing", answers_that_fault },
	{ "REG_MR by callers older and newer", descriptions },
	{ "regions that cannot be", regions_that_cannot_be },
	{ "a region pins its pages", pins },
	{ "LIST of any length", lists },
	{ "CLOSE says what is left", busy_close },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, TEST_COUNT(cases), emu_tidy);
}
