// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer-to-peer memory in sysfs: what p2pmem/ says about a provider, and what a process
 * may do with mappings of its memory. The environment holds the PCI address of a
 * provider, iv0, all of whose memory is free. See scripts/p2p-machine.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "p2p_call.h"

#define PAGE		4096
#define SIZE		(64 * PAGE)
#define WORKERS		4
#define ROUNDS		2000

static const char *iv0;
static long long all;

static void setup(void)
{
	p2p_name("iv0");
	all = p2p_count(iv0, "size");
	EXPECT(all >= 4 * SIZE);
}

static long long used(void)
{
	return all - p2p_count(iv0, "available");
}

/* Unmapped memory is free after a moment. */
static void expect_used(long long bytes)
{
	while (used() > bytes)
		sched_yield();
	EXPECT_EQ(used(), bytes);
}

static int allocate_open(void)
{
	char path[128];

	snprintf(path, sizeof(path), PCI_DEVICES "%s/p2pmem/allocate", iv0);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* Returns 0, or a negative errno; unmaps any mapping it made. */
static long try_mmap(size_t size, int flags, off_t offset)
{
	int fd = allocate_open();
	void *at;
	long ret;

	EXPECT(fd >= 0);
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, offset);
	ret = at == MAP_FAILED ? -errno : 0;
	close(fd);
	if (!ret)
		munmap(at, size);
	return ret;
}

/* Each page has its own pattern. */
static void set_pattern(char *at, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i += sizeof(seed))
		*(volatile uint64_t *)(at + i) = seed + i;
}

static bool has_pattern(const char *at, size_t size, uint64_t seed)
{
	for (size_t i = 0; i < size; i += sizeof(seed))
		if (*(const volatile uint64_t *)(at + i) != seed + i)
			return false;
	return true;
}

/* --- the files ---------------------------------------------------------------------- */

static void says_what_there_is(void)
{
	setup();
	EXPECT_EQ(p2p_count(iv0, "available"), all);
	EXPECT_EQ(p2p_count(iv0, "published"), 1);
}

static void open_as_nobody(void *unused)
{
	(void)unused;
	become_nobody();
	EXPECT(allocate_open() < 0 && errno == EACCES);
}

static void only_root_allocates(void)
{
	setup();
	test_join(test_spawn(open_as_nobody, NULL));
}

static void refuses_what_is_no_memory(void)
{
	setup();
	EXPECT_EQ(try_mmap(SIZE, MAP_PRIVATE, 0), -EINVAL);
	EXPECT_EQ(try_mmap(SIZE, MAP_SHARED, PAGE), -EINVAL);
	EXPECT_EQ(try_mmap(all + PAGE, MAP_SHARED, 0), -ENOMEM);
	EXPECT_EQ(used(), 0);
	EXPECT_EQ(try_mmap(SIZE, MAP_SHARED, 0), 0);
	expect_used(0);
}

/* --- mappings ----------------------------------------------------------------------- */

static void mappings_are_memory_of_their_own(void)
{
	char *one, *two;

	setup();
	one = p2p_map(iv0, SIZE);
	EXPECT_EQ(used(), SIZE);
	two = p2p_map(iv0, SIZE);
	EXPECT_EQ(used(), 2 * SIZE);
	set_pattern(one, SIZE, 1ULL << 32);
	set_pattern(two, SIZE, 2ULL << 32);
	EXPECT(has_pattern(one, SIZE, 1ULL << 32));
	EXPECT(has_pattern(two, SIZE, 2ULL << 32));
	EXPECT_EQ(munmap(one, SIZE), 0);
	expect_used(SIZE);
	EXPECT(has_pattern(two, SIZE, 2ULL << 32));
	EXPECT_EQ(munmap(two, SIZE), 0);
	expect_used(0);
}

/* Repeats without waiting for the memory to be returned. */
static void all_of_it_is_mapped(void)
{
	char *at;

	setup();
	for (int i = 0; i < 50; i++) {
		at = p2p_map(iv0, all);
		EXPECT(!p2p_try_map(iv0, PAGE) && errno == ENOMEM);
		set_pattern(at, PAGE, i);
		set_pattern(at + all - PAGE, PAGE, i);
		EXPECT_EQ(munmap(at, all), 0);
	}
	expect_used(0);
}

static void pages_are_unmapped_one_by_one(void)
{
	long long left = SIZE;
	char *at;

	setup();
	at = p2p_map(iv0, SIZE);
	set_pattern(at, SIZE, 0);
	for (int i = 1; i < SIZE / PAGE; i += 2) {
		EXPECT_EQ(munmap(at + i * PAGE, PAGE), 0);
		left -= PAGE;
	}
	expect_used(left);
	for (int i = 0; i < SIZE / PAGE; i += 2)
		EXPECT(has_pattern(at + i * PAGE, PAGE, i * PAGE));
	EXPECT_EQ(munmap(at, SIZE), 0);
	expect_used(0);
}

static void moves_to_other_addresses(void)
{
	char *at, *to;

	setup();
	at = p2p_map(iv0, SIZE);
	set_pattern(at, SIZE, 5);
	to = mmap(NULL, SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	EXPECT(to != MAP_FAILED);
	EXPECT(mremap(at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to);
	EXPECT(has_pattern(to, SIZE, 5));
	EXPECT_EQ(used(), SIZE);
	EXPECT_EQ(munmap(to, SIZE), 0);
	expect_used(0);
}

static void child_has_it(void *at)
{
	EXPECT(has_pattern(at, SIZE, 7));
	set_pattern(at, SIZE, 8);
	EXPECT_EQ(munmap(at, SIZE / 2), 0);
	EXPECT_EQ(used(), SIZE);
}

static void child_shares_it(void)
{
	char *at;

	setup();
	at = p2p_map(iv0, SIZE);
	set_pattern(at, SIZE, 7);
	test_join(test_spawn(child_has_it, at));
	EXPECT(has_pattern(at, SIZE, 8));
	EXPECT_EQ(used(), SIZE);
	EXPECT_EQ(munmap(at, SIZE), 0);
	expect_used(0);
}

static void map_and_sleep(void *pipe_end)
{
	set_pattern(p2p_map(iv0, SIZE), SIZE, 9);
	EXPECT_EQ(write(*(int *)pipe_end, "m", 1), 1);
	for (;;)
		pause();
}

static void killed_process_leaves_nothing(void)
{
	int fds[2], pid;
	char mapped;

	setup();
	EXPECT_EQ(pipe(fds), 0);
	pid = test_spawn(map_and_sleep, &fds[1]);
	EXPECT_EQ(read(fds[0], &mapped, 1), 1);
	EXPECT_EQ(used(), SIZE);
	EXPECT_EQ(kill(pid, SIGKILL), 0);
	EXPECT_EQ(waitpid(pid, NULL, 0), pid);
	expect_used(0);
}

/* --- references that outlive the mapping -------------------------------------------- */

/*
 * Afterwards the kernel holds the page, and no process does. Skips the case if that is
 * not possible.
 */
static void page_into_pipe(int fds[2], char *at)
{
	struct iovec page = { .iov_base = at, .iov_len = PAGE };

	EXPECT_EQ(pipe(fds), 0);
	if (vmsplice(fds[1], &page, 1, 0) != PAGE)
		test_skip("the kernel does not take such pages here: %s", strerror(errno));
}

static void last_reference_frees(void)
{
	static char text[PAGE];
	int fds[2];
	char *at;

	setup();
	at = p2p_map(iv0, SIZE);
	set_pattern(at, SIZE, 0);
	page_into_pipe(fds, at + PAGE);
	EXPECT_EQ(munmap(at, SIZE), 0);
	expect_used(PAGE);
	/* No allocation gets that page. */
	at = p2p_map(iv0, SIZE);
	set_pattern(at, SIZE, 1ULL << 40);
	EXPECT_EQ(read(fds[0], text, PAGE), PAGE);
	EXPECT(has_pattern(text, PAGE, PAGE));
	EXPECT_EQ(munmap(at, SIZE), 0);
	expect_used(0);
}

/* --- the provider goes -------------------------------------------------------------- */

/* Tells whether a process that touches it gets SIGBUS. */
static bool is_bus_error(void *at)
{
	pid_t pid = fork();
	int status;

	EXPECT(pid >= 0);
	if (!pid) {
		*(volatile char *)at = 1;
		_exit(0);
	}
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
}

static void mapping_goes_with_the_provider(void)
{
	char *at;
	int fd;

	setup();
	at = p2p_map(iv0, SIZE);
	set_pattern(at, SIZE, 3);
	fd = allocate_open();
	EXPECT(fd >= 0);
	EXPECT_EQ(p2p_unbind(iv0), 0);
	EXPECT(is_bus_error(at));
	EXPECT(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED &&
	       errno == ENODEV);
	EXPECT(allocate_open() < 0 && errno == ENOENT);
	EXPECT_EQ(p2p_bind(iv0), 0);
	expect_used(0);
	/* The old mapping does not reach the new memory. */
	EXPECT(is_bus_error(at));
	EXPECT_EQ(munmap(at, SIZE), 0);
	EXPECT_EQ(try_mmap(all, MAP_SHARED, 0), 0);
}

/* Closes the pipe ends, so that the pipe ends with the case. */
static void unbind(void *pipe_ends)
{
	int *fds = pipe_ends;

	close(fds[0]);
	close(fds[1]);
	EXPECT_EQ(p2p_unbind(iv0), 0);
}

static void provider_waits_for_references(void)
{
	char *at, path[128], text[PAGE];
	int fds[2], pid;

	setup();
	at = p2p_map(iv0, SIZE);
	page_into_pipe(fds, at);
	pid = test_spawn(unbind, fds);
	/* The unbinding has begun when the mapping is gone. */
	while (!is_bus_error(at))
		sched_yield();
	EXPECT(!p2p_try_map(iv0, PAGE));
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	EXPECT_EQ(munmap(at, SIZE), 0);
	expect_used(PAGE);
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	EXPECT_EQ(read(fds[0], text, PAGE), PAGE);
	test_join(pid);
	snprintf(path, sizeof(path), PCI_DEVICES "%s/p2pmem", iv0);
	EXPECT(access(path, F_OK) < 0);
	EXPECT_EQ(p2p_bind(iv0), 0);
	EXPECT_EQ(used(), 0);
}

/* --- many at once ------------------------------------------------------------------- */

static void map_and_unmap(void *number)
{
	uint64_t chance = 1 + *(int *)number;
	size_t size;
	char *at;

	for (int i = 0; i < ROUNDS; i++) {
		size = PAGE * (1 + chance_below(&chance, SIZE / PAGE));
		at = p2p_map(iv0, size);
		for (size_t page = 0; page < size; page += PAGE)
			*(volatile uint64_t *)(at + page) = chance;
		sched_yield();
		for (size_t page = 0; page < size; page += PAGE)
			EXPECT(*(volatile uint64_t *)(at + page) == chance);
		EXPECT_EQ(munmap(at, size), 0);
	}
}

/* If the kernel manages the memory, the group may allocate. */
static bool kernel_keeps(void)
{
	char path[128];
	struct stat st;

	snprintf(path, sizeof(path), PCI_DEVICES "%s/p2pmem/allocate", iv0);
	EXPECT_EQ(stat(path, &st), 0);
	return st.st_mode & 0020;
}

static void processes_do_not_disturb_each_other(void)
{
	int number[WORKERS], pid[WORKERS];

	setup();
	/* Linux 6.12 may hand a page out while its last reference is being dropped. */
	if (kernel_keeps())
		test_skip("the kernel's own provider lets them, at times");
	for (int i = 0; i < WORKERS; i++) {
		number[i] = i;
		pid[i] = test_spawn(map_and_unmap, &number[i]);
	}
	for (int i = 0; i < WORKERS; i++)
		test_join(pid[i]);
	expect_used(0);
}

static const struct test_case cases[] = {
	{ "the files say what there is", says_what_there_is },
	{ "only root allocates", only_root_allocates },
	{ "what is no memory, or too much, is refused", refuses_what_is_no_memory },
	{ "each mapping is memory of its own", mappings_are_memory_of_their_own },
	{ "all of it is mapped, again and again", all_of_it_is_mapped },
	{ "pages are unmapped one by one", pages_are_unmapped_one_by_one },
	{ "a mapping moves to other addresses", moves_to_other_addresses },
	{ "a child shares what its parent has mapped", child_shares_it },
	{ "a process that is killed leaves nothing behind", killed_process_leaves_nothing },
	{ "a page is free when its last reference is dropped", last_reference_frees },
	{ "mappings go with the provider", mapping_goes_with_the_provider },
	{ "a provider waits for references to its pages", provider_waits_for_references },
	{ "processes do not get in each other's way", processes_do_not_disturb_each_other },
};

/* A failed case may have left the provider without its driver. */
static void tidy(void)
{
	if (iv0)
		p2p_bind(iv0);
}

int main(int argc, char **argv)
{
	iv0 = getenv("iv0");
	return test_main(argc, argv, cases, TEST_COUNT(cases), tidy);
}
