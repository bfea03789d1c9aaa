// SPDX-License-Identifier: GPL-2.0-only
/*
 * A fake GPU from a process's point of view, without RDMA: memory is allocated, mapped,
 * moved, exported and freed, and processes that have lost it are notified.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer_call.h"
#include "test.h"

static int gpu;
static struct fake_gpu_info info;

static void setup(void)
{
	gpu = gpu_open(0);
	EXPECT_EQ(ioctl(gpu, FAKE_GPU_INFO, &info), 0);
	EXPECT_EQ(info.page_size, GPU_PAGE);
}

/* --- SIGBUS -------------------------------------------------------------------- */

static sigjmp_buf bus;

static void on_bus(int sig)
{
	siglongjmp(bus, sig);
}

/* Tells whether reading the byte raises SIGBUS. */
static bool is_gone(const volatile char *at)
{
	struct sigaction action = { .sa_handler = on_bus }, old;
	volatile bool gone = true;

	EXPECT_EQ(sigaction(SIGBUS, &action, &old), 0);
	if (!sigsetjmp(bus, 1)) {
		(void)*at;
		gone = false;
	}
	EXPECT_EQ(sigaction(SIGBUS, &old, NULL), 0);
	return gone;
}

/* --- allocating ------------------------------------------------------------------- */

static long alloc_bytes(uint64_t size, uint32_t reserved)
{
	struct fake_gpu_alloc alloc = { .size = size, .reserved = reserved };

	return ioctl(gpu, FAKE_GPU_ALLOC, &alloc) ? -errno : (long)alloc.size;
}

static void sizes_are_rounded(void)
{
	setup();
	EXPECT_EQ(alloc_bytes(1, 0), GPU_PAGE);
	EXPECT_EQ(alloc_bytes(GPU_PAGE, 0), GPU_PAGE);
	EXPECT_EQ(alloc_bytes(GPU_PAGE + 1, 0), 2 * GPU_PAGE);
	EXPECT_EQ(gpu_used(gpu), 4 * GPU_PAGE);
}

static void nonsense_is_refused(void)
{
	setup();
	EXPECT_EQ(alloc_bytes(0, 0), -EINVAL);
	EXPECT_EQ(alloc_bytes(GPU_PAGE, 1), -EINVAL);
	EXPECT_EQ(alloc_bytes(info.size + 1, 0), -ENOMEM);
	EXPECT_EQ(alloc_bytes(UINT64_MAX, 0), -ENOMEM);
	EXPECT_EQ(ioctl(gpu, FAKE_GPU_ALLOC, NULL), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_EQ(ioctl(gpu, FAKE_GPU_FREE, 0), -1);
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(ioctl(gpu, _IO('g', 99), 0), -1);
	EXPECT_EQ(errno, ENOTTY);
	EXPECT_EQ(gpu_used(gpu), 0);
}

/* An allocation that cannot be reported to the process is not left behind. */
static void answer_must_be_writable(void)
{
	static const struct fake_gpu_alloc fixed = { .size = GPU_PAGE };
	struct fake_gpu_alloc *alloc;

	setup();
	alloc = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		     -1, 0);
	EXPECT(alloc != MAP_FAILED);
	*alloc = fixed;
	EXPECT_EQ(mprotect(alloc, 4096, PROT_READ), 0);
	EXPECT_EQ(ioctl(gpu, FAKE_GPU_ALLOC, alloc), -1);
	EXPECT_EQ(errno, EFAULT);
	EXPECT_SOON(!gpu_used(gpu));
}

static void all_can_be_had(void)
{
	struct mem mem, more;

	setup();
	mem = gpu_alloc(gpu, info.size);
	EXPECT_EQ(gpu_try_alloc(gpu, 1, &more), -ENOMEM);
	EXPECT_EQ(gpu_used(gpu), info.size);
	EXPECT_EQ(munmap(mem.at, mem.size), 0);
	EXPECT_EQ(gpu_free(&mem), 0);
	EXPECT_SOON(!gpu_used(gpu));
	gpu_alloc(gpu, info.size);
}

static void memory_is_zeroed(void)
{
	struct mem mem;
	int round;

	setup();
	for (round = 0; round < 3; round++) {
		mem = gpu_alloc(gpu, info.size / 2);
		EXPECT_ALL(mem.at, mem.size, 0);
		memset(mem.at, 0x55, mem.size);
		EXPECT_EQ(munmap(mem.at, mem.size), 0);
		EXPECT_EQ(gpu_free(&mem), 0);
	}
}

/* --- mapping --------------------------------------------------------------------- */

static void mappings_are_shared(void)
{
	struct fake_gpu_alloc alloc = { .size = 2 * GPU_PAGE };
	char *a, *b;

	setup();
	EXPECT_EQ(ioctl(gpu, FAKE_GPU_ALLOC, &alloc), 0);
	a = mmap(NULL, alloc.size, PROT_READ | PROT_WRITE, MAP_SHARED, gpu, alloc.offset);
	EXPECT(a != MAP_FAILED);
	/* The second page only. */
	b = mmap(NULL, GPU_PAGE, PROT_READ, MAP_SHARED, gpu, alloc.offset + GPU_PAGE);
	EXPECT(b != MAP_FAILED);
	fill(a, alloc.size, 7);
	EXPECT(!memcmp(a + GPU_PAGE, b, GPU_PAGE));
}

static void pages_are_aligned(void)
{
	struct fake_gpu_alloc alloc = { .size = 3 * GPU_PAGE };
	uintptr_t at;
	size_t skip;
	int round;

	setup();
	EXPECT_EQ(ioctl(gpu, FAKE_GPU_ALLOC, &alloc), 0);
	for (round = 0; round < 64; round++) {
		/* Other mappings are in the way. */
		EXPECT(mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		       MAP_FAILED);
		skip = round % 32 * 4096;
		at = (uintptr_t)mmap(NULL, GPU_PAGE, PROT_READ, MAP_SHARED, gpu,
				     alloc.offset + skip);
		EXPECT(at != (uintptr_t)MAP_FAILED);
		EXPECT_EQ((at - skip) % GPU_PAGE, 0);
	}
}

static void mappings_keep_within(void)
{
	struct fake_gpu_alloc alloc = { .size = GPU_PAGE };
	char *at;

	setup();
	EXPECT_EQ(ioctl(gpu, FAKE_GPU_ALLOC, &alloc), 0);
	EXPECT(mmap(NULL, 2 * GPU_PAGE, PROT_READ, MAP_SHARED, gpu, alloc.offset) ==
	       MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	EXPECT(mmap(NULL, GPU_PAGE, PROT_READ, MAP_PRIVATE, gpu, alloc.offset) ==
	       MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	EXPECT(mmap(NULL, GPU_PAGE, PROT_READ, MAP_SHARED, gpu, 4096) == MAP_FAILED);
	EXPECT_EQ(errno, ENOENT);
	at = mmap(NULL, GPU_PAGE, PROT_READ, MAP_SHARED, gpu, alloc.offset);
	EXPECT(at != MAP_FAILED);
	EXPECT(mremap(at, GPU_PAGE, 2 * GPU_PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
}

static char *map_new(size_t size, int flags)
{
	return mmap(NULL, size, PROT_READ | PROT_WRITE, flags, gpu, 0);
}

/* As programs do that do not know these devices: open, map, close. */
static void mappings_allocate(void)
{
	char *a, *b;

	setup();
	a = map_new(GPU_PAGE + 4096, MAP_SHARED);
	b = map_new(GPU_PAGE, MAP_SHARED);
	EXPECT(a != MAP_FAILED && b != MAP_FAILED);
	EXPECT_EQ(gpu_used(gpu), 3 * GPU_PAGE);
	EXPECT_ALL(a, GPU_PAGE + 4096, 0);
	fill(a, GPU_PAGE + 4096, 7);
	EXPECT_ALL(b, GPU_PAGE, 0);
	EXPECT(map_new(GPU_PAGE, MAP_PRIVATE) == MAP_FAILED);
	EXPECT_EQ(errno, EINVAL);
	EXPECT(map_new(info.size + GPU_PAGE, MAP_SHARED) == MAP_FAILED);
	EXPECT_EQ(errno, ENOMEM);
	EXPECT(map_new(info.size - 2 * GPU_PAGE, MAP_SHARED) == MAP_FAILED);
	EXPECT_EQ(errno, ENOMEM);
	/* A part of the mapping keeps all of it. */
	EXPECT_EQ(munmap(a, GPU_PAGE), 0);
	EXPECT_EQ(munmap(b, GPU_PAGE), 0);
	EXPECT_SOON(gpu_used(gpu) == 2 * GPU_PAGE);
	EXPECT_EQ(close(gpu), 0);
	EXPECT(!is_gone(a + GPU_PAGE));
	EXPECT_EQ(munmap(a + GPU_PAGE, 4096), 0);
	gpu = gpu_open(0);
	EXPECT_SOON(!gpu_used(gpu));
}

/* Each open file has objects of its own. */
static void files_are_apart(void)
{
	struct mem mem;
	int other;

	setup();
	other = gpu_open(0);
	mem = gpu_alloc(gpu, GPU_PAGE);
	EXPECT_EQ(ioctl(other, FAKE_GPU_FREE, mem.handle), -1);
	EXPECT_EQ(errno, ENOENT);
	EXPECT_EQ(ioctl(other, FAKE_GPU_EXPORT, mem.handle), -1);
	EXPECT_EQ(errno, ENOENT);
}

/* --- freeing --------------------------------------------------------------------- */

static void freed_memory_is_gone(void)
{
	struct mem mem, kept;

	setup();
	mem = gpu_alloc(gpu, 4 * GPU_PAGE);
	kept = gpu_alloc(gpu, 4 * GPU_PAGE);
	fill(mem.at, mem.size, 1);
	fill(kept.at, kept.size, 2);
	EXPECT_EQ(gpu_free(&mem), 0);
	EXPECT(is_gone(mem.at));
	EXPECT(is_gone(mem.at + mem.size - 1));
	EXPECT_FILLED(kept.at, kept.size, 2);
	EXPECT_EQ(gpu_free(&mem), -ENOENT);
	EXPECT_EQ(gpu_move(&mem), -ENOENT);
	EXPECT_EQ(munmap(mem.at, mem.size), 0);
	EXPECT_SOON(gpu_used(gpu) == kept.size);
}

static void goes_with_the_file(void)
{
	struct mem mem;
	int again;

	setup();
	mem = gpu_alloc(gpu, GPU_PAGE);
	again = gpu_open(0);
	mem.at[0] = 1;
	EXPECT_EQ(close(gpu), 0);
	EXPECT(is_gone(mem.at));
	EXPECT_EQ(munmap(mem.at, mem.size), 0);
	EXPECT_SOON(!gpu_used(again));
}

static void fork_loses_it_too(void)
{
	struct mem mem;
	int status, pid, here[2], go[2];
	char c;

	setup();
	mem = gpu_alloc(gpu, GPU_PAGE);
	mem.at[0] = 1;
	EXPECT_EQ(pipe(here), 0);
	EXPECT_EQ(pipe(go), 0);
	pid = fork();
	EXPECT(pid >= 0);
	if (!pid) {
		if (write(here[1], mem.at, 1) != 1 || read(go[0], &c, 1) != 1)
			_exit(1);
		_exit(is_gone(mem.at) ? 0 : 2);
	}
	EXPECT_EQ(read(here[0], &c, 1), 1);
	EXPECT_EQ(c, 1);
	EXPECT_EQ(gpu_free(&mem), 0);
	EXPECT_EQ(write(go[1], "", 1), 1);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(status, 0);
}

/* --- moving ---------------------------------------------------------------------- */

static void moved_memory_is_the_same(void)
{
	struct mem mem, rest;
	int i;

	setup();
	mem = gpu_alloc(gpu, 4 * GPU_PAGE);
	fill(mem.at, mem.size, 3);
	for (i = 0; i < 100; i++) {
		EXPECT_EQ(gpu_move(&mem), 0);
		EXPECT_FILLED(mem.at, mem.size, 3 + i);
		fill(mem.at, mem.size, 4 + i);
	}
	EXPECT_EQ(gpu_used(gpu), mem.size);
	rest = gpu_alloc(gpu, gpu_unused(gpu));
	EXPECT_EQ(gpu_move(&mem), -ENOMEM);
	EXPECT_FILLED(mem.at, mem.size, 3 + i);
	EXPECT_ALL(rest.at, rest.size, 0);
}

/* A process writes meanwhile; none of its writes is lost. */
static void write_all_along(void *arg)
{
	volatile uint64_t *word = arg;
	uint64_t i;

	for (i = 1; i <= 200000; i++) {
		word[0] = i;
		word[GPU_PAGE / sizeof(*word)] = i;
		if (word[0] != i || word[GPU_PAGE / sizeof(*word)] != i)
			test_fail(__FILE__, __LINE__, "lost what was written");
	}
}

static void moves_under_writes(void)
{
	struct mem mem;
	int pid, i;

	setup();
	mem = gpu_alloc(gpu, 2 * GPU_PAGE);
	pid = test_spawn(write_all_along, mem.at);
	for (i = 0; i < 2000; i++)
		EXPECT_EQ(gpu_move(&mem), 0);
	test_join(pid);
}

/* --- exporting ------------------------------------------------------------------- */

static void dmabuf_is_the_memory(void)
{
	struct mem mem;
	char *at;
	int fd;

	setup();
	mem = gpu_alloc(gpu, 2 * GPU_PAGE);
	fill(mem.at, mem.size, 5);
	fd = gpu_export(&mem);
	EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	EXPECT_EQ(lseek(fd, 0, SEEK_END), mem.size);
	at = mmap(NULL, mem.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT(at != MAP_FAILED);
	EXPECT_FILLED(at, mem.size, 5);
	EXPECT_EQ(gpu_move(&mem), 0);
	EXPECT_FILLED(at, mem.size, 5);
	EXPECT_EQ(gpu_free(&mem), 0);
	EXPECT(is_gone(at));
	EXPECT(is_gone(mem.at));
	/* Remaining references: two mappings and the descriptor. */
	EXPECT_EQ(gpu_used(gpu), mem.size);
	EXPECT_EQ(munmap(at, mem.size), 0);
	EXPECT_EQ(munmap(mem.at, mem.size), 0);
	EXPECT_EQ(gpu_used(gpu), mem.size);
	EXPECT_EQ(close(fd), 0);
	EXPECT_SOON(!gpu_used(gpu));
}

static const struct test_case cases[] = {
	{ "sizes are rounded up to pages", sizes_are_rounded },
	{ "nonsense is refused", nonsense_is_refused },
	{ "an answer that cannot be given leaves nothing", answer_must_be_writable },
	{ "all of the memory can be had, again and again", all_can_be_had },
	{ "memory is zeroed", memory_is_zeroed },
	{ "mappings of one object are of the same memory", mappings_are_shared },
	{ "pages are mapped at multiples of their size", pages_are_aligned },
	{ "mappings keep within an object, and are shared", mappings_keep_within },
	{ "a mapping at offset 0 allocates its memory", mappings_allocate },
	{ "open files have nothing in common", files_are_apart },
	{ "freed memory raises SIGBUS", freed_memory_is_gone },
	{ "memory goes with its file", goes_with_the_file },
	{ "a child loses the memory, too", fork_loses_it_too },
	{ "memory that moves keeps what it has", moved_memory_is_the_same },
	{ "memory moves while a process writes", moves_under_writes },
	{ "a dma-buf is the same memory", dmabuf_is_the_memory },
};

/* Nothing to do: the memory of a process goes with it. */
static void tidy(void)
{
}

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, TEST_COUNT(cases), tidy);
}
