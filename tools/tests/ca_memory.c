// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which memory a registration accepts, on which paths it looks for it, and why the other
 * paths failed: system memory, memory of peers, of which there are none here, and
 * dma-bufs, which the kernel makes from a memory file. Also built for 32 bits.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ca_call.h"

#define DEVICE	"t-memory"
#define LENGTH	65536

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

static struct kverbs_ca_reg_mr reg_of(void *start, uint32_t path)
{
	struct kverbs_ca_reg_mr reg;

	ca_fill_reg(&reg, pd, start, LENGTH);
	reg.path = path;
	return reg;
}

static struct kverbs_ca_reg_mr reg_of_fd(void *start, uint32_t path, int file)
{
	struct kverbs_ca_reg_mr reg = reg_of(start, path);

	reg.flags = KVERBS_CA_REG_FD;
	reg.fd = file;
	return reg;
}

/* Makes a REG_MR with an answer, which must be untouched if there was none. */
static long reg_mr(struct kverbs_ca_reg_mr reg, struct kverbs_ca_mr_attr *attr,
		   uint64_t *mr)
{
	struct kverbs_ca_request r = {
		.handle = handle,
		.in = (uintptr_t)&reg,
		.in_len = sizeof(reg),
		.out = (uintptr_t)attr,
		.out_len = sizeof(*attr),
	};
	long ret;

	memset(attr, UNTOUCHED, sizeof(*attr));
	ret = ca_do(fd, KVERBS_CA_REG_MR, &r);
	*mr = r.object;
	return ret;
}

static void query_mr(uint64_t mr, struct kverbs_ca_mr_attr *attr)
{
	struct kverbs_ca_request r = {
		.handle = handle,
		.object = mr,
		.out = (uintptr_t)attr,
		.out_len = sizeof(*attr),
	};

	EXPECT_EQ(ca_do(fd, KVERBS_CA_QUERY_MR, &r), sizeof(*attr));
}

static bool untouched(const void *p, size_t len)
{
	const unsigned char *b = p;

	while (len && *b == UNTOUCHED) {
		b++;
		len--;
	}
	return !len;
}

static void expect_errors(const struct kverbs_ca_mr_attr *attr, int host, int peer,
			  int dmabuf)
{
	EXPECT_EQ(attr->host_error, host);
	EXPECT_EQ(attr->peer_error, peer);
	EXPECT_EQ(attr->dmabuf_error, dmabuf);
	EXPECT_EQ(attr->p2p_error, 0);
}

/*
 * Checks that the region is made on the expected path and that QUERY_MR agrees; then
 * frees it.
 */
static struct kverbs_ca_mr_attr made(struct kverbs_ca_reg_mr reg, uint32_t path)
{
	struct kverbs_ca_mr_attr attr, asked;
	uint64_t mr;

	EXPECT_EQ(reg_mr(reg, &attr, &mr), sizeof(attr));
	query_mr(mr, &asked);
	EXPECT(!memcmp(&attr, &asked, sizeof(attr)));
	EXPECT_EQ(attr.object, mr);
	EXPECT_EQ(attr.path, path);
	EXPECT(attr.lkey && attr.rkey);
	EXPECT(!attr.peer[0]);
	EXPECT_EQ(ca_dereg(fd, handle, mr), 0);
	return attr;
}

/* Checks that the region is not made, and that the answer says why. */
static struct kverbs_ca_mr_attr not_made(struct kverbs_ca_reg_mr reg, long error)
{
	struct kverbs_ca_mr_attr attr;
	uint64_t mr;

	EXPECT_EQ(reg_mr(reg, &attr, &mr), error);
	EXPECT_EQ(mr, 0);
	EXPECT_EQ(attr.version, KVERBS_CA_VERSION);
	EXPECT_EQ(attr.size, sizeof(attr));
	EXPECT_EQ(attr.object, 0);
	EXPECT_EQ(attr.pd, pd);
	EXPECT_EQ(attr.length, reg.length);
	EXPECT_EQ(attr.iova, reg.iova);
	EXPECT_EQ(attr.access, reg.access);
	EXPECT_EQ(attr.path, KVERBS_CA_PATH_ANY);
	EXPECT(!attr.lkey && !attr.rkey && !attr.flags && !attr.peer[0]);
	return attr;
}

/* Checks that the request is refused at once, without an answer. */
static void refused(struct kverbs_ca_reg_mr reg, long error)
{
	struct kverbs_ca_mr_attr attr;
	uint64_t mr;

	EXPECT_EQ(reg_mr(reg, &attr, &mr), error);
	EXPECT_EQ(mr, 0);
	EXPECT(untouched(&attr, sizeof(attr)));
}

/* --- paths ------------------------------------------------------------------------ */

static void host(void)
{
	struct kverbs_ca_mr_attr attr;

	setup();
	attr = made(reg_of(memory, KVERBS_CA_PATH_ANY), KVERBS_CA_PATH_HOST);
	EXPECT_EQ(attr.flags, KVERBS_CA_MR_PINNED);
	expect_errors(&attr, 0, 0, 0);
	attr = made(reg_of(memory, KVERBS_CA_PATH_HOST), KVERBS_CA_PATH_HOST);
	expect_errors(&attr, 0, 0, 0);
}

static void no_memory(void)
{
	struct kverbs_ca_mr_attr attr;
	long long pinned;

	setup();
	pinned = pinned_pages();
	attr = not_made(reg_of(NULL, KVERBS_CA_PATH_ANY), -EFAULT);
	expect_errors(&attr, -EFAULT, -ENODEV, 0);
	attr = not_made(reg_of(NULL, KVERBS_CA_PATH_HOST), -EFAULT);
	expect_errors(&attr, -EFAULT, 0, 0);
	attr = not_made(reg_of(NULL, KVERBS_CA_PATH_PEER), -EFAULT);
	expect_errors(&attr, 0, -ENODEV, 0);
	/* System memory belongs to no peer. */
	attr = not_made(reg_of(memory, KVERBS_CA_PATH_PEER), -EFAULT);
	expect_errors(&attr, 0, -ENODEV, 0);
	EXPECT_EQ(attr.start, (uintptr_t)memory);
	expect_pinned(pinned);
}

static void bad_regions(void)
{
	struct kverbs_ca_reg_mr reg;
	unsigned int bit;

	setup();
	refused(reg_of(memory, KVERBS_CA_PATH_P2P + 1), -EINVAL);
	for (bit = 1; bit < 32; bit++) {
		reg = reg_of(memory, KVERBS_CA_PATH_ANY);
		reg.flags = 1U << bit;
		refused(reg, -EINVAL);
	}
	reg = reg_of(memory, KVERBS_CA_PATH_ANY);
	reg.fd = 1;
	refused(reg, -EINVAL);
	reg.fd = 0;
	reg.offset = 4096;
	refused(reg, -EINVAL);
	reg = reg_of(memory, KVERBS_CA_PATH_ANY);
	reg.pd++;
	refused(reg, -ENOENT);
	/* The missing dma-buf is found only on closer inspection. */
	not_made(reg_of(memory, KVERBS_CA_PATH_DMABUF), -EINVAL);
	reg = reg_of_fd(memory, KVERBS_CA_PATH_ANY, 0);
	reg.offset = ~0ULL;
	not_made(reg, -EINVAL);
}

/* Answers of a failing REG_MR, of any length. */
static void short_answers(void)
{
	unsigned char full[sizeof(struct kverbs_ca_mr_attr)], got[256];
	struct kverbs_ca_reg_mr reg;
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_request r;
	uint32_t len, told;

	setup();
	reg = reg_of(NULL, KVERBS_CA_PATH_ANY);
	attr = not_made(reg, -EFAULT);
	memcpy(full, &attr, sizeof(full));
	for (len = 8; len <= sizeof(full) + 16; len++) {
		r = (struct kverbs_ca_request) {
			.handle = handle,
			.in = (uintptr_t)&reg,
			.in_len = sizeof(reg),
			.out = (uintptr_t)got,
			.out_len = len,
		};
		memset(got, UNTOUCHED, sizeof(got));
		told = len < sizeof(full) ? len : sizeof(full);
		EXPECT_EQ(ca_do(fd, KVERBS_CA_REG_MR, &r), -EFAULT);
		EXPECT(!memcmp(got, full, told));
		EXPECT(untouched(got + told, sizeof(got) - told));
	}
}

/* --- peers ------------------------------------------------------------------------- */

static long set_peer_with(const void *in, uint32_t len)
{
	struct kverbs_ca_request r = {
		.handle = handle,
		.in = (uintptr_t)in,
		.in_len = len,
	};

	return ca_do(fd, KVERBS_CA_SET_PEER, &r);
}

static long set_peer(const char *name, const char *data)
{
	struct kverbs_ca_peer peer = {
		.version = KVERBS_CA_VERSION,
		.size = sizeof(peer),
	};

	memcpy(peer.name, name, strlen(name));
	memcpy(peer.data, data, strlen(data));
	return set_peer_with(&peer, sizeof(peer));
}

static void peers(void)
{
	struct kverbs_ca_mr_attr attr;
	uint64_t other;

	setup();
	EXPECT_EQ(set_peer("nobody", "to say"), 0);
	attr = not_made(reg_of(NULL, KVERBS_CA_PATH_ANY), -EFAULT);
	expect_errors(&attr, -EFAULT, -ENOENT, 0);
	attr = not_made(reg_of(NULL, KVERBS_CA_PATH_PEER), -ENOENT);
	expect_errors(&attr, 0, -ENOENT, 0);
	/* SET_PEER says which peer is asked, not which memory is used. */
	made(reg_of(memory, KVERBS_CA_PATH_ANY), KVERBS_CA_PATH_HOST);
	/* Each handle has its own setting. */
	other = handle;
	handle = must_open(fd, 0);
	pd = must_alloc_pd(fd, handle);
	attr = not_made(reg_of(NULL, KVERBS_CA_PATH_PEER), -EFAULT);
	expect_errors(&attr, 0, -ENODEV, 0);
	handle = other;
	EXPECT_EQ(set_peer("", ""), 0);
}

static void everybody_again(void)
{
	struct kverbs_ca_mr_attr attr;

	setup();
	EXPECT_EQ(set_peer("nobody", ""), 0);
	not_made(reg_of(NULL, KVERBS_CA_PATH_PEER), -ENOENT);
	EXPECT_EQ(set_peer("", ""), 0);
	attr = not_made(reg_of(NULL, KVERBS_CA_PATH_PEER), -EFAULT);
	expect_errors(&attr, 0, -ENODEV, 0);
}

static void bad_peers(void)
{
	struct {
		struct kverbs_ca_peer peer;
		char tail[64];
	} in = {
		.peer = { .version = KVERBS_CA_VERSION, .name = "somebody" },
	};
	const uint32_t size = sizeof(in.peer);
	uint32_t len;

	setup();
	EXPECT_EQ(set_peer("", "x"), -EINVAL);
	EXPECT_EQ(set_peer("0123456789012345678901234567890123456789012345678901234567890123",
			   ""), -EINVAL);
	EXPECT_EQ(set_peer("012345678901234567890123456789012345678901234567890123456789012",
			   ""), 0);
	for (len = 0; len < size; len++) {
		in.peer.size = len;
		EXPECT_EQ(set_peer_with(&in, len), -EINVAL);
	}
	EXPECT_EQ(set_peer_with(&in, size), -EINVAL);
	for (len = size; len <= sizeof(in); len++) {
		in.peer.size = len;
		EXPECT_EQ(set_peer_with(&in, len), 0);
	}
	in.tail[40] = 1;
	EXPECT_EQ(set_peer_with(&in, sizeof(in)), -E2BIG);
	in.peer.size = size;
	in.peer.version = 2;
	EXPECT_EQ(set_peer_with(&in, size), -EINVAL);
	EXPECT_EQ(set_peer_with(NULL, size), -EINVAL);
	EXPECT_EQ(set_peer_with((void *)8, size), -EFAULT);
	fd = node_open(DEVICE, O_RDONLY);
	handle = must_open(fd, 0);
	EXPECT_EQ(set_peer("somebody", ""), -EBADF);
}

/* --- dma-bufs ---------------------------------------------------------------------- */

/* Makes a dma-buf of LENGTH bytes. */
static int dmabuf(void)
{
	struct udmabuf_create create = { .flags = UDMABUF_FLAGS_CLOEXEC, .size = LENGTH };
	int maker = open("/dev/udmabuf", O_RDWR | O_CLOEXEC), file;

	if (maker < 0)
		test_skip("no /dev/udmabuf");
	file = memfd_create("ca_memory", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	EXPECT(file >= 0 && !ftruncate(file, LENGTH));
	EXPECT(!fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK));
	create.memfd = file;
	file = ioctl(maker, UDMABUF_CREATE, &create);
	EXPECT(file >= 0);
	close(create.memfd);
	close(maker);
	return file;
}

static void dmabufs(void)
{
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_reg_mr reg;
	int file;

	setup();
	file = dmabuf();
	reg = reg_of_fd(NULL, KVERBS_CA_PATH_DMABUF, file);
	attr = made(reg, KVERBS_CA_PATH_DMABUF);
	expect_errors(&attr, 0, 0, 0);
	EXPECT_EQ(attr.length, LENGTH);
	EXPECT_EQ(attr.start, 0);
	reg.start = ~0ULL;
	EXPECT_EQ(made(reg, KVERBS_CA_PATH_DMABUF).start, 0);
	reg.offset = 4096;
	not_made(reg, -EINVAL);
	reg.length = LENGTH - 4096;
	made(reg, KVERBS_CA_PATH_DMABUF);
	reg.offset = LENGTH;
	attr = not_made(reg, -EINVAL);
	expect_errors(&attr, 0, 0, -EINVAL);
	/* The dma-buf is tried first, whatever is at the address. */
	attr = made(reg_of_fd(memory, KVERBS_CA_PATH_ANY, file), KVERBS_CA_PATH_DMABUF);
	EXPECT_EQ(attr.start, (uintptr_t)memory);
	/* But not if another path is requested. */
	made(reg_of_fd(memory, KVERBS_CA_PATH_HOST, file), KVERBS_CA_PATH_HOST);
	close(file);
}

/* The region keeps the dma-buf alive. */
static void dmabuf_closed(void)
{
	struct kverbs_ca_mr_attr attr;
	uint64_t mr;
	int file;

	setup();
	file = dmabuf();
	EXPECT_EQ(reg_mr(reg_of_fd(NULL, KVERBS_CA_PATH_DMABUF, file), &attr, &mr),
		  sizeof(attr));
	close(file);
	query_mr(mr, &attr);
	EXPECT_EQ(attr.path, KVERBS_CA_PATH_DMABUF);
	EXPECT(!(attr.flags & KVERBS_CA_MR_REVOKED));
	EXPECT_EQ(ca_dereg(fd, handle, mr), 0);
}

static void other_files(void)
{
	struct kverbs_ca_mr_attr attr;
	int files[3], pipes[2];
	unsigned int i;

	setup();
	EXPECT(!pipe(pipes));
	files[0] = pipes[0];
	files[1] = fd;
	files[2] = memfd_create("ca_memory", MFD_CLOEXEC);
	for (i = 0; i < TEST_COUNT(files); i++) {
		attr = not_made(reg_of_fd(memory, KVERBS_CA_PATH_DMABUF, files[i]),
				-EINVAL);
		expect_errors(&attr, 0, 0, -EINVAL);
		attr = made(reg_of_fd(memory, KVERBS_CA_PATH_ANY, files[i]),
			    KVERBS_CA_PATH_HOST);
		expect_errors(&attr, 0, 0, -EINVAL);
	}
	attr = not_made(reg_of_fd(memory, KVERBS_CA_PATH_DMABUF, -1), -EBADF);
	expect_errors(&attr, 0, 0, -EBADF);
	attr = made(reg_of_fd(memory, KVERBS_CA_PATH_ANY, 1000), KVERBS_CA_PATH_HOST);
	expect_errors(&attr, 0, 0, -EBADF);
	attr = not_made(reg_of_fd(NULL, KVERBS_CA_PATH_ANY, -1), -EFAULT);
	expect_errors(&attr, -EFAULT, -ENODEV, -EBADF);
}

/* --- mappings of all kinds -------------------------------------------------------- */

/* For the HCA to read. The region is not freed. */
static void readable(void *start, long error)
{
	static const uint32_t access[] = { 0, KVERBS_CA_ACCESS_REMOTE_READ };
	struct kverbs_ca_reg_mr reg;
	unsigned int i;

	for (i = 0; i < TEST_COUNT(access); i++) {
		reg = reg_of(start, KVERBS_CA_PATH_ANY);
		reg.access = access[i];
		if (error)
			not_made(reg, error);
		else
			made(reg, KVERBS_CA_PATH_HOST);
	}
}

static void *map_readable(int flags, int file)
{
	char *map = mmap(NULL, LENGTH, PROT_READ, flags, file, 0);

	EXPECT(map != MAP_FAILED);
	return map;
}

static void not_writable(void)
{
	int file = memfd_create("ca_memory", MFD_CLOEXEC), read_only;
	char path[64];

	setup();
	EXPECT(file >= 0 && !ftruncate(file, LENGTH));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	read_only = open(path, O_RDONLY | O_CLOEXEC);
	EXPECT(read_only >= 0);
	readable(map_readable(MAP_SHARED, file), 0);
	readable(map_readable(MAP_SHARED, read_only), 0);
	readable(map_readable(MAP_SHARED | MAP_ANONYMOUS, -1), 0);
	readable(map_readable(MAP_PRIVATE, read_only), 0);
	readable(map_readable(MAP_PRIVATE | MAP_ANONYMOUS, -1), 0);
	/* For the HCA to write, it is refused. */
	not_made(reg_of(map_readable(MAP_SHARED, read_only), KVERBS_CA_PATH_ANY), -EFAULT);
}

/* First it can be written, then only be read. */
static void huge_page(void)
{
	size_t size = 2 << 20;
	char *map;

	if (access("/proc/sys/vm/nr_hugepages", F_OK))
		test_skip("the kernel has no huge pages");
	map = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	EXPECT(map != MAP_FAILED);
	setup();
	memset(map, 1, size);
	readable(map, 0);
	EXPECT(!mprotect(map, size, PROT_READ));
	readable(map, 0);
}

static void guard_pages(void)
{
	char *map;
	int i;

	setup();
	for (i = 0; i < 3; i++) {
		map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		EXPECT(map != MAP_FAILED);
		memset(map, 1, LENGTH);
		/* All of it, its first page, its last one. */
		EXPECT(!mprotect(map + (i == 2 ? LENGTH - 4096 : 0), i ? 4096 : LENGTH, PROT_NONE));
		readable(map, -EFAULT);
		EXPECT(!mprotect(map, LENGTH, PROT_READ));
		readable(map, 0);
	}
}

/**
 * struct giver - a thread that gives the pages of a range when they are asked for
 * @file: the userfaultfd
 * @pages: how many it gives
 */
struct giver {
	int file;
	int pages;
};

static void *give_pages(void *arg)
{
	struct giver *g = arg;
	struct uffd_msg message;

	for (; g->pages; g->pages--) {
		struct uffdio_zeropage zero = { .range.len = 4096 };

		if (read(g->file, &message, sizeof(message)) != sizeof(message))
			break;
		zero.range.start = message.arg.pagefault.address & ~4095UL;
		if (ioctl(g->file, UFFDIO_ZEROPAGE, &zero))
			break;
	}
	return NULL;
}

static void given_later(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct giver g = { .pages = LENGTH / 4096 - 1 };
	pthread_t thread;
	char *map;

	g.file = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (g.file < 0)
		test_skip("no userfaultfd");
	setup();
	map = mmap(NULL, LENGTH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(map != MAP_FAILED);
	map[0] = 1;
	range.range.start = (uintptr_t)map;
	range.range.len = LENGTH;
	EXPECT(!ioctl(g.file, UFFDIO_API, &api) && !ioctl(g.file, UFFDIO_REGISTER, &range));
	EXPECT(!pthread_create(&thread, NULL, give_pages, &g));
	made(reg_of(map, KVERBS_CA_PATH_ANY), KVERBS_CA_PATH_HOST);
	EXPECT(!pthread_join(thread, NULL));
	EXPECT_EQ(g.pages, 0);
}

/* --- memory that the HCA does not reach ------------------------------------------- */

/* The kernel was told to give copies to all devices. */
static bool bounces(void)
{
	char line[4096] = "";
	int file = open("/proc/cmdline", O_RDONLY | O_CLOEXEC);

	EXPECT(file >= 0 && read(file, line, sizeof(line) - 1) > 0);
	close(file);
	return strstr(line, "swiotlb=force");
}

static void bounced(void)
{
	struct kverbs_ca_mr_attr attr;
	long long pinned;

	if (!bounces())
		test_skip("memory is not copied for devices here");
	setup();
	pinned = pinned_pages();
	memset(memory, 0x5a, LENGTH);
	attr = not_made(reg_of(memory, KVERBS_CA_PATH_ANY), -EIO);
	expect_errors(&attr, -EIO, -ENODEV, 0);
	expect_pinned(pinned);
	EXPECT(memory[0] == 0x5a && memory[LENGTH - 1] == 0x5a);
}

static void dmabuf_bounced(void)
{
	struct kverbs_ca_mr_attr attr;

	if (!bounces())
		test_skip("memory is not copied for devices here");
	setup();
	attr = not_made(reg_of_fd(NULL, KVERBS_CA_PATH_DMABUF, dmabuf()), -EIO);
	expect_errors(&attr, 0, 0, -EIO);
}

static const struct test_case cases[] = {
	{ "memory that cannot be written", not_writable },
	{ "a huge page", huge_page },
	{ "memory that cannot be read", guard_pages },
	{ "memory that is given only when it is asked for", given_later },
	{ "no region is a copy", bounced },
	{ "nor is one of a dma-buf a copy", dmabuf_bounced },
	{ "memory of the system", host },
	{ "REG_MR that fails says of each path why", no_memory },
	{ "registrations that cannot be", bad_regions },
	{ "REG_MR that fails answers as much as fits", short_answers },
	{ "peers are asked by name", peers },
	{ "no name is everybody", everybody_again },
	{ "SET_PEER of what cannot be", bad_peers },
	{ "dma-bufs", dmabufs },
	{ "a dma-buf that its owner closes", dmabuf_closed },
	{ "files that are no dma-bufs", other_files },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, TEST_COUNT(cases), emu_tidy);
}
