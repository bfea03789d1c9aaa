// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a GPU with RDMA, from a process's point of view: it is registered like any other,
 * and data move from and to each kind of memory by each operation, on one and on two HCAs; and
 * what happens when the memory goes while RDMA runs. Each byte is checked.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "move_side.h"

#define DEVICE_A	"t-a"
#define DEVICE_B	"t-b"

/* Registered memory begins and ends within pages of the GPU. */
#define SIZE		(3 * GPU_PAGE)
#define BEFORE		0x1238
#define LENGTH		(SIZE - 0x3000)

enum kind { HOST, GPU0, GPU1, KINDS };

static struct ca a, b;
static int gpu[2];

static void setup(void)
{
	emu_make(DEVICE_A, 1);
	emu_make(DEVICE_B, 1);
	a = ca_make(DEVICE_A);
	b = ca_make(DEVICE_B);
	gpu[0] = gpu_open(0);
	gpu[1] = gpu_open(1);
}

/* --- registration ------------------------------------------------------------------- */

static void finds_peer(void)
{
	struct kverbs_ca_mr_attr attr;
	struct region region;
	struct mem mem;
	long long live;

	setup();
	live = peer_count(1, "live_mrs");
	mem = gpu_alloc(gpu[1], SIZE);
	region = must_reg_all(&a, mem.at + BEFORE, LENGTH);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_PEER);
	EXPECT(!strcmp(region.attr.peer, "fake_gpu1"));
	EXPECT(region.attr.host_error < 0);
	EXPECT_EQ(region.attr.peer_error, 0);
	EXPECT_EQ(region.attr.dmabuf_error, 0);
	EXPECT_EQ(region.attr.flags & KVERBS_CA_MR_REVOKED, 0);
	EXPECT_EQ(region.attr.length, LENGTH);
	EXPECT_EQ(region_query(&region, &attr), 0);
	EXPECT(!memcmp(&attr, &region.attr, sizeof(attr)));
	EXPECT_EQ(peer_count(1, "live_mrs"), live + 1);
	EXPECT_EQ(region_dereg(&region), 0);
	EXPECT_EQ(peer_count(1, "live_mrs"), live);
}

static void finds_host(void)
{
	struct region region;

	setup();
	region = must_reg_all(&a, pages(SIZE), SIZE);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_HOST);
	EXPECT_EQ(region.attr.host_error, 0);
	EXPECT_EQ(region.attr.peer_error, 0);
	EXPECT(!*region.attr.peer);
}

/* Only the requested path is used. */
static void path_only(void)
{
	struct region region;
	struct mem mem;
	void *host;

	setup();
	mem = gpu_alloc(gpu[0], SIZE);
	host = pages(SIZE);
	EXPECT(peer_reg_path(&a, mem.at, SIZE, KVERBS_CA_PATH_HOST, &region) < 0);
	EXPECT(!region.attr.object && region.attr.host_error < 0);
	EXPECT_EQ(region.attr.peer_error, 0);
	EXPECT_EQ(peer_reg_path(&a, mem.at, SIZE, KVERBS_CA_PATH_PEER, &region), 0);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_PEER);
	EXPECT_EQ(region.attr.host_error, 0);
	EXPECT(peer_reg_path(&a, host, SIZE, KVERBS_CA_PATH_PEER, &region) < 0);
	EXPECT_EQ(region.attr.peer_error, -ENODEV);
	EXPECT_EQ(peer_reg_path(&a, host, SIZE, KVERBS_CA_PATH_HOST, &region), 0);
}

static void by_name(void)
{
	struct region region;
	struct mem mem;

	setup();
	mem = gpu_alloc(gpu[0], SIZE);
	EXPECT_EQ(peer_set(&a, "fake_gpu0", NULL), 0);
	region = must_reg_all(&a, mem.at, SIZE);
	EXPECT_EQ(peer_set(&a, "fake_gpu1", NULL), 0);
	EXPECT(peer_reg_path(&a, mem.at, SIZE, KVERBS_CA_PATH_ANY, &region) < 0);
	EXPECT_EQ(region.attr.peer_error, -ENODEV);
	EXPECT_EQ(peer_set(&a, "nobody", NULL), 0);
	EXPECT(peer_reg_path(&a, mem.at, SIZE, KVERBS_CA_PATH_ANY, &region) < 0);
	EXPECT_EQ(region.attr.peer_error, -ENOENT);
	/* Another handle has its own setting. */
	region = must_reg_all(&b, mem.at, SIZE);
	EXPECT_EQ(peer_set(&a, "", NULL), 0);
	region = must_reg_all(&a, mem.at, SIZE);
}

/* Memory that is only partly a GPU's, or that does not exist. */
static void not_all_of_it(void)
{
	struct region region;
	struct mem mem;
	char *at;

	setup();
	mem = gpu_alloc(gpu[0], SIZE);
	at = mmap(gpu_place(2 * SIZE), 2 * SIZE, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	EXPECT(at != MAP_FAILED);
	EXPECT(mremap(mem.at, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
	EXPECT_EQ(peer_reg_path(&a, at, SIZE, KVERBS_CA_PATH_ANY, &region), 0);
	EXPECT(peer_reg_path(&a, at + GPU_PAGE, SIZE, KVERBS_CA_PATH_ANY, &region) < 0);
	EXPECT(!region.attr.object && region.attr.host_error < 0 &&
	       region.attr.peer_error < 0);
	EXPECT_EQ(munmap(at, 2 * SIZE), 0);
	EXPECT(peer_reg_path(&a, at, SIZE, KVERBS_CA_PATH_ANY, &region) < 0);
}

/* --- data ---------------------------------------------------------------------------- */

static void side_make(struct side *side, const struct ca *ca, unsigned int what,
		      uint32_t seed)
{
	static const struct side_range range = { SIZE, BEFORE, LENGTH };

	side->mem = (struct mem) { 0 };
	if (what != HOST)
		side->mem = gpu_alloc(gpu[what - GPU0], SIZE);
	side_init(side, ca, what == HOST ? pages(SIZE) : side->mem.at, &range, seed,
		  what == HOST ? KVERBS_CA_PATH_HOST : KVERBS_CA_PATH_PEER);
}

static void move_all(const char *op)
{
	static const uint32_t lens[] = {
		1, 7, 64, 4096, 4097, GPU_PAGE, GPU_PAGE + 4095, LENGTH,
	};
	const struct side_kinds kinds = {
		.ca = &a, .peer = &b, .make = side_make, .count = KINDS,
		.lens = lens, .nr_lens = TEST_COUNT(lens),
	};

	setup();
	side_move_all(op, &kinds);
}

static void sends(void) { move_all("send"); }
static void writes(void) { move_all("write"); }
static void reads(void) { move_all("read"); }
static void swaps(void) { move_all("cas"); }
static void adds(void) { move_all("fadd"); }

/* --- traffic --------------------------------------------------------------------------- */

/* Checks the statuses of a request whose own memory, or the other side's, is gone. */
static void expect_gone(int mover, const char *op, bool own)
{
	struct moved moved = mover_result(mover);

	if (own)
		EXPECT_EQ(moved.send, WC_LOC_PROT_ERR);
	else if (strcmp(op, "send"))
		EXPECT_EQ(moved.send, WC_REM_ACCESS_ERR);
	else
		EXPECT(moved.recv == WC_LOC_PROT_ERR || moved.send == WC_REM_OP_ERR);
}

/* Checks that each byte is either the old one or one that arrived. */
static void expect_no_poison(const char *at, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if ((unsigned char)at[i] == FAKE_GPU_POISON || !at[i])
			test_fail(__FILE__, __LINE__, "byte %zu is %#x", i, at[i] & 0xff);
	}
}

/*
 * The GPU's memory is freed while an operation uses it, and allocated anew afterwards.
 * @own: it belongs to the side that performs the operation.
 */
static void free_under(const char *op, const struct ca *peer, bool own)
{
	struct traffic t = { .move.op = op, .move.len = is_atomic(op) ? 8 : GPU_PAGE,
			     .move.count = 8 };
	struct side host, device, next;
	struct mem rest;

	side_make(&host, own ? peer : &a, HOST, 1);
	side_make(&device, own ? &a : peer, GPU0, 2);
	/* So that the next allocation gets the same memory. */
	rest = gpu_alloc(gpu[0], gpu_unused(gpu[0]));
	t.mover = mover_open(&a, peer);
	t.move.own = own ? &device.region : &host.region;
	t.move.other = own ? &host.region : &device.region;
	/* At the end, but aligned: the other pages are poisoned first. */
	t.move.own_at = t.move.other_at = (LENGTH - t.move.len) & ~7UL;
	traffic_start(&t);
	EXPECT(!region_revoked(&device.region));
	EXPECT_EQ(gpu_free(&device.mem), 0);
	EXPECT(region_revoked(&device.region));
	EXPECT_EQ(traffic_end(&t), -EIO);
	expect_gone(t.mover, op, own);
	EXPECT_EQ(mover_do(t.mover, &t.move), -EIO);
	expect_gone(t.mover, op, own);
	if (!is_atomic(op))
		expect_no_poison(host.at, SIZE);
	EXPECT_EQ(region_dereg(&device.region), 0);
	EXPECT_EQ(munmap(device.at, SIZE), 0);
	free(device.model);

	/* The keys are no longer valid. */
	side_make(&next, own ? &a : peer, GPU0, 3);
	EXPECT(next.region.attr.rkey != device.region.attr.rkey);
	EXPECT_EQ(mover_do(t.mover, &t.move), -EIO);
	expect_gone(t.mover, op, own);
	side_expect(&next, op);
	*(own ? &t.move.own : &t.move.other) = &next.region;
	must_move(t.mover, &t.move);

	close(t.mover);
	side_drop(&host);
	side_drop(&next);
	EXPECT_EQ(munmap(rest.at, rest.size), 0);
	EXPECT_EQ(gpu_free(&rest), 0);
}

static void free_all(const char *op)
{
	setup();
	free_under(op, &a, true);
	free_under(op, &b, true);
	free_under(op, &a, false);
	free_under(op, &b, false);
}

static void free_under_send(void) { free_all("send"); }
static void free_under_write(void) { free_all("write"); }
static void free_under_read(void) { free_all("read"); }
static void free_under_cas(void) { free_all("cas"); }
static void free_under_fadd(void) { free_all("fadd"); }

/* A region stays when another one of the same memory goes. */
static void dereg_under_traffic(void)
{
	struct region twice;
	struct traffic t = { .move.op = "write", .move.len = GPU_PAGE };
	struct side host, device;

	setup();
	side_make(&host, &a, HOST, 1);
	side_make(&device, &b, GPU0, 2);
	twice = must_reg_all(&b, device.at + BEFORE, LENGTH);
	t.mover = mover_open(&a, &b);
	t.move.own = &host.region;
	t.move.other = &twice;
	traffic_start(&t);
	EXPECT_EQ(region_dereg(&twice), 0);
	EXPECT_EQ(traffic_end(&t), -EIO);
	t.move.other = &device.region;
	must_move(t.mover, &t.move);
	EXPECT(!memcmp(device.at + BEFORE, host.at + BEFORE, GPU_PAGE));
}

/* Traffic of others does not notice. */
static void others_live_on(void)
{
	struct traffic t = { .move.op = "write", .move.len = 4096, .move.count = 16 };
	struct side host, device, victim;
	unsigned int i, rounds;

	setup();
	side_make(&host, &a, HOST, 1);
	side_make(&device, &b, GPU0, 2);
	t.mover = mover_open(&a, &b);
	t.move.own = &host.region;
	t.move.other = &device.region;
	traffic_start(&t);
	for (i = 0; i < 20; i++) {
		side_make(&victim, i % 2 ? &a : &b, GPU0, 3);
		EXPECT_EQ(gpu_free(&victim.mem), 0);
		EXPECT(region_revoked(&victim.region));
		EXPECT_EQ(region_dereg(&victim.region), 0);
		munmap(victim.at, SIZE);
	}
	rounds = t.rounds;
	while (t.rounds < rounds + 2 && !t.ret)
		sched_yield();
	t.stop = true;
	EXPECT_EQ(traffic_end(&t), 0);
	EXPECT(!region_revoked(&device.region));
}

/* --- memory that goes in other ways ----------------------------------------------------- */

/* Mappings of freed memory cannot be accessed. */
static sigjmp_buf bus;

static void on_bus(int sig)
{
	(void)sig;
	siglongjmp(bus, 1);
}

static void touched_after_free(void)
{
	struct mem mem;
	bool died = true;

	setup();
	mem = gpu_alloc(gpu[0], SIZE);
	fill(mem.at, SIZE, 1);
	EXPECT_EQ(gpu_free(&mem), 0);
	signal(SIGBUS, on_bus);
	if (!sigsetjmp(bus, 1)) {
		*(volatile char *)mem.at = 1;
		died = false;
	}
	EXPECT(died);
	EXPECT(gpu_free(&mem) < 0);
}

/* The file is closed, and none of its memory is mapped any more. */
static void file_closed(void)
{
	struct side device;
	uint64_t used;

	setup();
	used = gpu_used(gpu[1]);
	side_make(&device, &a, GPU0, 1);
	EXPECT_EQ(munmap(device.at, SIZE), 0);
	EXPECT(!region_revoked(&device.region));
	close(gpu[0]);
	EXPECT(region_revoked(&device.region));
	gpu[0] = gpu_open(0);
	EXPECT_EQ(region_dereg(&device.region), 0);
	EXPECT_EQ(gpu_used(gpu[0]), 0);
	EXPECT_EQ(gpu_used(gpu[1]), used);
}

/* A child process passes its region here. */
static struct region *told;
static int told_mover;

static void child_has_region(void *unused)
{
	struct side device;

	(void)unused;
	b = ca_make(DEVICE_B);
	gpu[0] = gpu_open(0);
	side_make(&device, &b, GPU0, 2);
	EXPECT_EQ(mover_join(told_mover, 1, &b), 0);
	*told = device.region;
	atomic_thread_fence(memory_order_release);
	*(volatile bool *)(told + 1) = true;
	for (;;)
		pause();
}

/* A process is killed while another writes into its memory. */
static void process_killed(void)
{
	struct traffic t = { .move.op = "write", .move.len = GPU_PAGE, .move.count = 8 };
	struct side host;
	int pid, status;

	setup();
	EXPECT_EQ(gpu_used(gpu[0]), 0);
	side_make(&host, &a, HOST, 1);
	told = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	EXPECT(told != MAP_FAILED);
	t.mover = told_mover = mover_open(&a, &a);
	pid = test_spawn(child_has_region, NULL);
	while (!*(volatile bool *)(told + 1))
		moment();
	t.move.own = &host.region;
	t.move.other = told;
	traffic_start(&t);
	kill(pid, SIGKILL);
	EXPECT_EQ(waitpid(pid, &status, 0), pid);
	EXPECT_EQ(traffic_end(&t), -EIO);
	EXPECT_EQ(mover_result(t.mover).send, WC_REM_ACCESS_ERR);
	EXPECT_SOON(!gpu_used(gpu[0]));
	EXPECT_SOON(!peer_count(0, "live_mrs"));
}

/* The HCA goes while it accesses the memory. */
static void hca_unplugged(void)
{
	struct traffic t = { .move.op = "read", .move.len = GPU_PAGE, .move.count = 8 };
	struct side host, device;

	setup();
	side_make(&host, &a, HOST, 1);
	side_make(&device, &b, GPU1, 2);
	t.mover = mover_open(&a, &b);
	t.move.own = &host.region;
	t.move.other = &device.region;
	traffic_start(&t);
	emu_enable(DEVICE_B, false);
	EXPECT(traffic_end(&t) < 0);
	EXPECT_EQ(mover_do(t.mover, &t.move), -ENODEV);
	EXPECT_SOON(!peer_count(1, "live_mrs"));
	EXPECT_EQ(gpu_free(&device.mem), 0);
	emu_enable(DEVICE_B, true);
}

/* --- clients that want to go -------------------------------------------------------------- */

static void unregister(void *number)
{
	gpu_set((uintptr_t)number, "registered", "0");
}

/* Opens the kernel's log for messages from now on. */
static int log_open(void)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	EXPECT(fd >= 0);
	EXPECT(lseek(fd, 0, SEEK_END) >= 0);
	return fd;
}

/* Collects messages until a line contains the word. */
static void log_await(int fd, char *all, size_t size, const char *word)
{
	size_t len = 0;
	ssize_t ret;
	int tries;

	for (tries = 0; tries < 1500; tries++) {
		ret = read(fd, all + len, size - len - 1);
		if (ret <= 0) {
			moment();
			continue;
		}
		len += ret;
		all[len] = 0;
		if (strstr(all, word) || len > size - 1024)
			return;
	}
	test_fail(__FILE__, __LINE__, "the kernel did not say '%s'", word);
}

static void unload_waits(void)
{
	static char all[65536];
	char who[64];
	struct region late;
	struct side device;
	int log, pid;

	setup();
	side_make(&device, &a, GPU1, 1);
	log = log_open();
	pid = test_spawn(unregister, (void *)1);
	/* The client is not asked any more, while its existing regions live on. */
	while (!peer_reg_path(&a, device.at, SIZE, KVERBS_CA_PATH_ANY, &late))
		EXPECT_EQ(region_dereg(&late), 0);
	EXPECT_EQ(late.attr.peer_error, -ENODEV);
	EXPECT(!region_revoked(&device.region));
	snprintf(who, sizeof(who), "of " DEVICE_A ", process %d (peer_e2e): %d bytes",
		 getpid(), LENGTH);
	log_await(log, all, sizeof(all), who);
	EXPECT(strstr(all, "fake_gpu1"));
	EXPECT_EQ(waitpid(pid, NULL, WNOHANG), 0);
	EXPECT_EQ(region_dereg(&device.region), 0);
	test_join(pid);
	EXPECT(access(PEERS_DIR "fake_gpu1", F_OK));
	gpu_set(1, "registered", "1");
	EXPECT_EQ(peer_count(1, "num_alloc_mrs"), 0);
	EXPECT_EQ(peer_reg_path(&a, device.at, SIZE, KVERBS_CA_PATH_ANY, &late), 0);
}

static void tidy(void)
{
	emu_tidy();
	if (access(PEERS_DIR "fake_gpu1", F_OK))
		gpu_set(1, "registered", "1");
}

static const struct test_case cases[] = {
	{ "a GPU's memory is registered as any other", finds_peer },
	{ "memory of the system stays that", finds_host },
	{ "a path that is asked for is the only one", path_only },
	{ "the client whose name is set is the only one", by_name },
	{ "what is not all of one GPU's is not its", not_all_of_it },
	{ "SEND between all kinds of memory", sends },
	{ "WRITE between all kinds of memory", writes },
	{ "READ between all kinds of memory", reads },
	{ "compare and swap between all kinds of memory", swaps },
	{ "fetch and add between all kinds of memory", adds },
	{ "memory is freed while SEND runs", free_under_send },
	{ "memory is freed while WRITE runs", free_under_write },
	{ "memory is freed while READ runs", free_under_read },
	{ "memory is freed while compare and swap runs", free_under_cas },
	{ "memory is freed while fetch and add runs", free_under_fadd },
	{ "one of two regions of the same memory goes", dereg_under_traffic },
	{ "regions that come and go do not disturb others", others_live_on },
	{ "freed memory cannot be touched", touched_after_free },
	{ "memory goes with the GPU's file", file_closed },
	{ "a process is killed while others write to its memory", process_killed },
	{ "the HCA is unplugged at work", hca_unplugged },
	{ "a client that goes waits, and says for whom", unload_waits },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, TEST_COUNT(cases), tidy);
}
