// SPDX-License-Identifier: GPL-2.0-only
/* Memory of fake GPUs, and operations that move data. See peer_call.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peer_call.h"

/* --- memory -------------------------------------------------------------------- */

static long gpu_request(int gpu, unsigned long cmd, void *arg)
{
	int ret = ioctl(gpu, cmd, arg);

	return ret < 0 ? -errno : ret;
}

static long on_memory(const struct mem *mem, unsigned long cmd)
{
	return gpu_request(mem->gpu, cmd, (void *)(uintptr_t)mem->handle);
}

int gpu_open(unsigned int number)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/fake_gpu%u", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
	return fd;
}

void *gpu_place(size_t size)
{
	uintptr_t from = (uintptr_t)mmap(NULL, size + GPU_PAGE, PROT_NONE,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uintptr_t at = (from + GPU_PAGE - 1) & ~(GPU_PAGE - 1UL);

	EXPECT((void *)from != MAP_FAILED);
	if (at > from)
		munmap((void *)from, at - from);
	munmap((void *)(at + size), from + GPU_PAGE - at);
	return (void *)at;
}

long gpu_try_alloc(int gpu, size_t size, struct mem *mem)
{
	struct fake_gpu_alloc alloc = { .size = size };
	long ret = gpu_request(gpu, FAKE_GPU_ALLOC, &alloc);

	*mem = (struct mem) { .gpu = gpu, .handle = alloc.handle, .size = size };
	if (ret)
		return ret;
	mem->at = mmap(gpu_place(size), size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED, gpu, alloc.offset);
	EXPECT(mem->at != MAP_FAILED);
	return 0;
}

struct mem gpu_alloc(int gpu, size_t size)
{
	struct mem mem;

	EXPECT_EQ(gpu_try_alloc(gpu, size, &mem), 0);
	return mem;
}

long gpu_free(const struct mem *mem)
{
	return on_memory(mem, FAKE_GPU_FREE);
}

long gpu_move(const struct mem *mem)
{
	return on_memory(mem, FAKE_GPU_MOVE);
}

int gpu_export(const struct mem *mem)
{
	long fd = on_memory(mem, FAKE_GPU_EXPORT);

	if (fd < 0)
		test_fail(__FILE__, __LINE__, "EXPORT: %s", strerror(-fd));
	return fd;
}

static struct fake_gpu_info gpu_info(int gpu)
{
	struct fake_gpu_info info;

	EXPECT_EQ(gpu_request(gpu, FAKE_GPU_INFO, &info), 0);
	return info;
}

uint64_t gpu_used(int gpu)
{
	return gpu_info(gpu).used;
}

uint64_t gpu_unused(int gpu)
{
	struct fake_gpu_info info = gpu_info(gpu);

	return info.size - info.used;
}

void gpu_set(unsigned int number, const char *file, const char *value)
{
	char path[128];

	snprintf(path, sizeof(path), GPU_DEBUG "fake_gpu%u/%s", number, file);
	if (!file_write(path, value))
		test_fail(__FILE__, __LINE__, "'%s' to %s: %s", value, path,
			  strerror(errno));
}

/* --- channel adapters -------------------------------------------------------------- */

struct ca ca_make(const char *device)
{
	struct ca ca = { .fd = node_open(device, O_RDWR) };

	ca.handle = must_open(ca.fd, 0);
	ca.pd = must_alloc_pd(ca.fd, ca.handle);
	return ca;
}

void peer_fill(struct kverbs_ca_reg_mr *reg, const struct ca *ca, void *at,
	       size_t size)
{
	ca_fill_reg(reg, ca->pd, at, size);
	reg->access = ACCESS_ALL;
}

long peer_reg(const struct ca *ca, struct kverbs_ca_reg_mr *reg,
	      struct region *region)
{
	struct kverbs_ca_request r = {
		.handle = ca->handle,
		.in = (uintptr_t)reg,
		.in_len = sizeof(*reg),
		.out = (uintptr_t)&region->attr,
		.out_len = sizeof(region->attr),
	};
	long ret;

	memset(&region->attr, 0, sizeof(region->attr));
	ret = ca_do(ca->fd, KVERBS_CA_REG_MR, &r);
	region->ca = ca;
	region->mr = r.object;
	region->at = reg->iova;
	return ret < 0 ? ret : 0;
}

long peer_reg_path(const struct ca *ca, void *at, size_t size,
		   enum kverbs_ca_path path, struct region *region)
{
	struct kverbs_ca_reg_mr reg;

	peer_fill(&reg, ca, at, size);
	reg.path = path;
	return peer_reg(ca, &reg, region);
}

struct region must_reg_all(const struct ca *ca, void *at, size_t size)
{
	struct region region;

	EXPECT_EQ(peer_reg_path(ca, at, size, KVERBS_CA_PATH_ANY, &region), 0);
	return region;
}

long region_query(const struct region *region, struct kverbs_ca_mr_attr *attr)
{
	struct kverbs_ca_request r = {
		.handle = region->ca->handle,
		.object = region->mr,
		.out = (uintptr_t)attr,
		.out_len = sizeof(*attr),
	};
	long ret = ca_do(region->ca->fd, KVERBS_CA_QUERY_MR, &r);

	return ret < 0 ? ret : 0;
}

bool region_revoked(const struct region *region)
{
	struct kverbs_ca_mr_attr attr;

	EXPECT_EQ(region_query(region, &attr), 0);
	return attr.flags & KVERBS_CA_MR_REVOKED;
}

long region_dereg(const struct region *region)
{
	return ca_dereg(region->ca->fd, region->ca->handle, region->mr);
}

long peer_set(const struct ca *ca, const char *name, const void *data)
{
	struct kverbs_ca_peer peer = {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(peer),
	};
	struct kverbs_ca_request r = {
		.handle = ca->handle,
		.in = (uintptr_t)&peer,
		.in_len = sizeof(peer),
	};

	snprintf(peer.name, sizeof(peer.name), "%s", name);
	if (data)
		memcpy(peer.data, data, sizeof(peer.data));
	return ca_do(ca->fd, KVERBS_CA_SET_PEER, &r);
}

/* --- moving data ------------------------------------------------------------------------ */

static long mover_write(int mover, const char *text)
{
	ssize_t ret = write(mover, text, strlen(text));

	return ret < 0 ? -errno : 0;
}

long mover_join(int mover, unsigned int side, const struct ca *ca)
{
	char text[128];

	snprintf(text, sizeof(text), "join %u %d %#" PRIx64 " %#" PRIx64, side,
		 ca->fd, ca->handle, ca->pd);
	return mover_write(mover, text);
}

int mover_open(const struct ca *a, const struct ca *b)
{
	int mover = open(MOVE_RUN, O_RDWR | O_CLOEXEC);

	if (mover < 0)
		test_fail(__FILE__, __LINE__, MOVE_RUN ": %s", strerror(errno));
	EXPECT_EQ(mover_join(mover, 0, a), 0);
	EXPECT_EQ(mover_join(mover, 1, b), 0);
	return mover;
}

long mover_do(int mover, const struct move *m)
{
	char text[256];
	int len;

	len = snprintf(text, sizeof(text),
		       "%s %u %#" PRIx64 " %#x %#" PRIx64 " %#x %u %u", m->op,
		       m->side, m->own->at + m->own_at, m->own->attr.lkey,
		       m->other->at + m->other_at,
		       *m->op == 's' ? m->other->attr.lkey : m->other->attr.rkey,
		       m->len, m->count ? m->count : 1);
	if (!strcmp(m->op, "cas"))
		snprintf(text + len, sizeof(text) - len,
			 " %#" PRIx64 " %#" PRIx64, m->a, m->b);
	else if (!strcmp(m->op, "fadd"))
		snprintf(text + len, sizeof(text) - len, " %#" PRIx64, m->a);
	return mover_write(mover, text);
}

struct moved mover_result(int mover)
{
	struct moved moved;
	char text[64];
	ssize_t len = pread(mover, text, sizeof(text) - 1, 0);
	int n;

	EXPECT(len > 0);
	text[len] = 0;
	n = sscanf(text, "send=%d recv=%d done=%u", &moved.send, &moved.recv, &moved.done);
	EXPECT_EQ(n, 3);
	return moved;
}

void must_move(int mover, const struct move *m)
{
	long ret = mover_do(mover, m);
	struct moved moved;

	if (!ret)
		return;
	moved = mover_result(mover);
	test_fail(__FILE__, __LINE__, "%s of %u bytes: %s, send %d, recv %d", m->op,
		  m->len, strerror(-ret), moved.send, moved.recv);
}

/* --- clients' counters ---------------------------------------------------------------------- */

uint64_t random_options(int argc, char **argv, uint64_t *operations, uint64_t *seed)
{
	int i;

	for (i = 1; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--operations"))
			*operations = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--seed"))
			*seed = strtoull(argv[i + 1], NULL, 0);
		else
			break;
	}
	if (i < argc) {
		fprintf(stderr, "usage: %s [--operations N] [--seed S]\n",
			program_invocation_short_name);
		exit(2);
	}
	return (*seed + 1) * 0x9e3779b97f4a7c15ULL;
}

long long peer_count(unsigned int gpu, const char *file)
{
	char path[128], text[64];

	snprintf(path, sizeof(path), PEERS_DIR "fake_gpu%u/%s", gpu, file);
	if (!file_read(path, text, sizeof(text)))
		test_fail(__FILE__, __LINE__, "%s: %s", path, strerror(errno));
	return atoll(text);
}

/* --- bytes ------------------------------------------------------------------------------------ */

/* Never the byte that fills freed memory, nor 0. */
static unsigned char byte_at(size_t i, uint32_t seed)
{
	return 1 + (i * 7 + (i >> 8) * 13 + seed * 31) % (FAKE_GPU_POISON - 1);
}

void fill(void *at, size_t len, uint32_t seed)
{
	unsigned char *to = at;
	size_t i;

	for (i = 0; i < len; i++)
		to[i] = byte_at(i, seed);
}

void expect_filled(const char *file, int line, const void *at, size_t len,
		   uint32_t seed)
{
	const unsigned char *from = at;
	size_t i;

	for (i = 0; i < len; i++) {
		if (from[i] != byte_at(i, seed))
			test_fail(file, line, "byte %zu of %zu: %#x, not %#x", i,
				  len, from[i], byte_at(i, seed));
	}
}

void expect_all(const char *file, int line, const void *at, size_t len, int byte)
{
	const unsigned char *from = at;
	size_t i;

	for (i = 0; i < len; i++) {
		if (from[i] != byte)
			test_fail(file, line, "byte %zu of %zu: %#x, not %#x", i,
				  len, from[i], byte);
	}
}
