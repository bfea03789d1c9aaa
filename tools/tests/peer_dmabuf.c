// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registration of dma-bufs that a GPU exports: which path a registration finds and why not
 * another; memory that moves while RDMA runs, if the kernel can notify of that
 * (CONFIG_DMABUF_MOVE_NOTIFY), and that is pinned otherwise; memory that goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "peer_call.h"

#define DEVICE		"t-dmabuf"
#define SIZE		(4 * GPU_PAGE)

static struct ca ca;
static int gpu;
static struct mem mem;
static int buf;

static void setup(void)
{
	emu_make(DEVICE, 1);
	ca = ca_make(DEVICE);
	gpu = gpu_open(0);
	mem = gpu_alloc(gpu, SIZE);
	fill(mem.at, SIZE, 1);
	buf = gpu_export(&mem);
}

static long reg_fd(int fd, uint64_t offset, void *start, size_t length,
		   enum kverbs_ca_path path, struct region *region)
{
	struct kverbs_ca_reg_mr reg;

	peer_fill(&reg, &ca, start, length);
	reg.iova = 0x10000000 + offset % 4096;
	reg.flags = KVERBS_CA_REG_FD;
	reg.fd = fd;
	reg.offset = offset;
	reg.path = path;
	return peer_reg(&ca, &reg, region);
}

static struct region must_reg_fd(uint64_t offset, size_t length)
{
	struct region region;

	EXPECT_EQ(reg_fd(buf, offset, NULL, length, KVERBS_CA_PATH_DMABUF, &region), 0);
	return region;
}

/* --- paths ------------------------------------------------------------------------- */

static void from_fd(void)
{
	struct kverbs_ca_mr_attr attr;
	struct region region;
	long long live;

	setup();
	live = peer_count(0, "num_alloc_mrs");
	region = must_reg_fd(0, SIZE);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_DMABUF);
	EXPECT_EQ(region.attr.length, SIZE);
	EXPECT(!region.attr.host_error && !region.attr.peer_error &&
	       !region.attr.dmabuf_error);
	EXPECT(!*region.attr.peer);
	EXPECT(!(region.attr.flags & KVERBS_CA_MR_REVOKED));
	EXPECT_EQ(region_query(&region, &attr), 0);
	EXPECT(!memcmp(&attr, &region.attr, sizeof(attr)));
	/* The registry of peers is not involved. */
	EXPECT_EQ(peer_count(0, "num_alloc_mrs"), live);
	EXPECT_EQ(region_dereg(&region), 0);
	EXPECT_EQ(reg_fd(buf, 0, NULL, SIZE, KVERBS_CA_PATH_ANY, &region), 0);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_DMABUF);
}

/* Without the descriptor, the dma-buf path is not tried. */
static void no_fd(void)
{
	struct region region;

	setup();
	region = must_reg_all(&ca, mem.at, SIZE);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_PEER);
	EXPECT_EQ(region.attr.dmabuf_error, 0);
	EXPECT_EQ(peer_reg_path(&ca, mem.at, SIZE, KVERBS_CA_PATH_DMABUF, &region),
		  -EINVAL);
}

/* One path after the other is tried, and the answer says why each was not used. */
static void falls_back(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct region region;
	void *host;

	setup();
	host = pages(SIZE);
	EXPECT_EQ(reg_fd(null, 0, mem.at, SIZE, KVERBS_CA_PATH_ANY, &region), 0);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_PEER);
	EXPECT(!strcmp(region.attr.peer, "fake_gpu0"));
	EXPECT_EQ(region.attr.dmabuf_error, -EINVAL);
	EXPECT(region.attr.host_error < 0);
	EXPECT_EQ(region.attr.peer_error, 0);

	EXPECT_EQ(reg_fd(-1, 0, host, SIZE, KVERBS_CA_PATH_ANY, &region), 0);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_HOST);
	EXPECT_EQ(region.attr.dmabuf_error, -EBADF);
	EXPECT_EQ(region.attr.host_error, 0);
	EXPECT_EQ(region.attr.peer_error, 0);

	/* It is a dma-buf, but ends before the range. */
	EXPECT_EQ(reg_fd(buf, GPU_PAGE, mem.at, SIZE, KVERBS_CA_PATH_ANY, &region), 0);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_PEER);
	EXPECT_EQ(region.attr.dmabuf_error, -EINVAL);
}

static void nowhere(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct region region;

	setup();
	EXPECT_EQ(reg_fd(null, 0, mem.at, SIZE, KVERBS_CA_PATH_DMABUF, &region), -EINVAL);
	EXPECT_EQ(region.attr.dmabuf_error, -EINVAL);
	EXPECT(!region.attr.host_error && !region.attr.peer_error);
	EXPECT_EQ(munmap(mem.at, SIZE), 0);
	EXPECT(reg_fd(null, 0, mem.at, SIZE, KVERBS_CA_PATH_ANY, &region) < 0);
	EXPECT(!region.attr.object && region.attr.dmabuf_error == -EINVAL &&
	       region.attr.host_error < 0 && region.attr.peer_error == -ENODEV);
	EXPECT_EQ(reg_fd(buf, SIZE, NULL, 1, KVERBS_CA_PATH_DMABUF, &region), -EINVAL);
	EXPECT_EQ(reg_fd(buf, ~0ULL, NULL, 2, KVERBS_CA_PATH_DMABUF, &region), -EINVAL);
	EXPECT(reg_fd(buf, 0, NULL, 0, KVERBS_CA_PATH_DMABUF, &region) < 0);
}

/* --- data --------------------------------------------------------------------------- */

/* Moves data in a part of it that neither begins nor ends at a page boundary. */
static void moves_data(void)
{
	const size_t offset = GPU_PAGE + 100, len = 2 * GPU_PAGE - 200;
	struct region region, host;
	struct move m = { .len = len };
	char *at, *model;
	int mover;

	setup();
	at = pages(SIZE);
	model = malloc(SIZE);
	region = must_reg_fd(offset, len);
	host = must_reg_all(&ca, at, SIZE);
	mover = mover_open(&ca, &ca);
	m.op = "read";
	m.own = &host;
	m.other = &region;
	must_move(mover, &m);
	fill(model, SIZE, 1);
	EXPECT(!memcmp(at, model + offset, len));
	fill(at, SIZE, 2);
	m.op = "write";
	must_move(mover, &m);
	memcpy(model + offset, at, len);
	EXPECT(!memcmp(mem.at, model, SIZE));
	m.op = "send";
	m.side = 1;
	m.own = &region;
	m.other = &host;
	m.own_at = 1000;
	m.other_at = 17;
	m.len = 5000;
	must_move(mover, &m);
	EXPECT(!memcmp(at + 17, model + offset + 1000, 5000));
}

static void fd_closed(void)
{
	struct region region, host;
	struct move m = { .op = "read", .len = SIZE };
	char *at;

	setup();
	at = pages(SIZE);
	region = must_reg_fd(0, SIZE);
	host = must_reg_all(&ca, at, SIZE);
	close(buf);
	m.own = &host;
	m.other = &region;
	must_move(mover_open(&ca, &ca), &m);
	EXPECT_FILLED(at, SIZE, 1);
	EXPECT_EQ(region_dereg(&region), 0);
}

/* --- memory that moves ---------------------------------------------------------------- */

static bool pinned(const struct region *region)
{
	return region->attr.flags & KVERBS_CA_MR_PINNED;
}

/* MOVES is 1 if the kernel can notify importers of moves, and 0 otherwise. */
static void moves_or_not(void)
{
	const char *moves = getenv("MOVES");
	struct region region;

	setup();
	EXPECT_EQ(gpu_move(&mem), 0);
	EXPECT_FILLED(mem.at, SIZE, 1);
	region = must_reg_fd(0, SIZE);
	if (moves)
		EXPECT_EQ(pinned(&region), !atoi(moves));
	EXPECT_EQ(gpu_move(&mem), pinned(&region) ? -EBUSY : 0);
	EXPECT_FILLED(mem.at, SIZE, 1);
	EXPECT_EQ(region_dereg(&region), 0);
	EXPECT_EQ(gpu_move(&mem), 0);
	EXPECT_FILLED(mem.at, SIZE, 1);
}

/* Registered as memory of a peer, it can never move. */
static void peer_stays(void)
{
	struct region region;
	char *at;
	struct move m = { .op = "read", .len = SIZE };
	struct region host;
	long ret;

	setup();
	at = pages(SIZE);
	region = must_reg_all(&ca, mem.at, SIZE);
	host = must_reg_all(&ca, at, SIZE);
	m.own = &host;
	m.other = &region;
	ret = gpu_move(&mem);
	EXPECT(ret == -EBUSY);
	must_move(mover_open(&ca, &ca), &m);
	EXPECT_FILLED(at, SIZE, 1);
}

/**
 * struct mover - moves data back and forth, and checks them
 * @rounds: number of rounds
 * @op: the operation
 * @side: 0: the host's memory is its own
 * @host: region of the host's memory
 * @at: address of the host's memory
 * @region: region of the dma-buf
 * @thread: the thread that moves the data
 */
struct mover {
	_Atomic unsigned int rounds;
	const char *op;
	unsigned int side;
	struct region host;
	char *at;
	const struct region *region;
	pthread_t thread;
};

static _Atomic bool over;

static void *keep_moving(void *arg)
{
	struct mover *m = arg;
	struct move move = { .op = m->op, .side = m->side, .len = SIZE };
	int fd = mover_open(&ca, &ca);

	move.own = m->side ? m->region : &m->host;
	move.other = m->side ? &m->host : m->region;
	while (!over) {
		must_move(fd, &move);
		EXPECT_FILLED(m->at, SIZE, 1);
		m->rounds++;
	}
	return NULL;
}

/*
 * Tries all operations, with the memory on either side, while it moves. The bytes stay the same
 * all the time, whether in place or in transit.
 */
static void moves_under_traffic(void)
{
	static struct mover movers[] = {
		{ .op = "read" }, { .op = "write" }, { .op = "send" },
		{ .op = "send", .side = 1 }, { .op = "write", .side = 1 },
		{ .op = "read", .side = 1 },
	};
	struct region region;
	unsigned int i, moved;

	setup();
	region = must_reg_fd(0, SIZE);
	if (pinned(&region))
		test_skip("the kernel cannot tell of moves");
	for (i = 0; i < TEST_COUNT(movers); i++) {
		movers[i].at = pages(SIZE);
		fill(movers[i].at, SIZE, 1);
		movers[i].host = must_reg_all(&ca, movers[i].at, SIZE);
		movers[i].region = &region;
		EXPECT_EQ(pthread_create(&movers[i].thread, NULL, keep_moving,
					 &movers[i]), 0);
	}
	for (moved = 0; moved < 200; moved++) {
		EXPECT_EQ(gpu_move(&mem), 0);
		sched_yield();
	}
	for (i = 0; i < TEST_COUNT(movers); i++) {
		moved = movers[i].rounds;
		while (movers[i].rounds < moved + 2) {
			EXPECT_EQ(gpu_move(&mem), 0);
			sched_yield();
		}
	}
	over = true;
	for (i = 0; i < TEST_COUNT(movers); i++)
		pthread_join(movers[i].thread, NULL);
	EXPECT_FILLED(mem.at, SIZE, 1);
	EXPECT(!region_revoked(&region));
}

/* --- memory that goes ---------------------------------------------------------------------- */

struct reader {
	_Atomic unsigned int rounds;
	int mover;
	struct move move;
	long ret;
};

static void *keep_reading(void *arg)
{
	struct reader *r = arg;

	do {
		r->ret = mover_do(r->mover, &r->move);
		r->rounds++;
	} while (!r->ret);
	return NULL;
}

/* Pinned memory stays for its users, though poisoned; other memory is gone. */
static void freed_under_traffic(void)
{
	struct reader r = { .move.op = "read", .move.len = SIZE };
	struct region region, host;
	pthread_t thread;
	char *at;

	setup();
	at = pages(SIZE);
	fill(at, SIZE, 2);
	host = must_reg_all(&ca, at, SIZE);
	region = must_reg_fd(0, SIZE);
	r.mover = mover_open(&ca, &ca);
	r.move.own = &host;
	r.move.other = &region;
	EXPECT_EQ(pthread_create(&thread, NULL, keep_reading, &r), 0);
	while (r.rounds < 3)
		sched_yield();
	EXPECT_EQ(gpu_free(&mem), 0);
	if (pinned(&region))
		EXPECT_EQ(region_dereg(&region), 0);
	else
		EXPECT_SOON(region_revoked(&region));
	pthread_join(thread, NULL);
	EXPECT_EQ(r.ret, -EIO);
	EXPECT_EQ(mover_result(r.mover).send, WC_REM_ACCESS_ERR);
	if (!pinned(&region)) {
		EXPECT_FILLED(at, SIZE, 1);
		EXPECT_EQ(region_dereg(&region), 0);
	}
	EXPECT_EQ(munmap(mem.at, SIZE), 0);
	close(buf);
	EXPECT_SOON(!gpu_used(gpu));
}

static const struct test_case cases[] = {
	{ "a dma-buf is registered by its descriptor", from_fd },
	{ "without a descriptor there is no dma-buf", no_fd },
	{ "other paths follow, with the reasons", falls_back },
	{ "what is nowhere says why for each path", nowhere },
	{ "part of a dma-buf, each byte", moves_data },
	{ "a region outlives the descriptor", fd_closed },
	{ "memory moves, or is pinned", moves_or_not },
	{ "memory of a peer's does not move", peer_stays },
	{ "memory moves while all operations run", moves_under_traffic },
	{ "memory is freed while READ runs", freed_under_traffic },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, TEST_COUNT(cases), emu_tidy);
}
