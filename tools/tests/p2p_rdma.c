// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer-to-peer memory with RDMA, from a process's point of view: memory of a PCI device is
 * mapped and registered like any other, and data move from and to each kind of memory by each
 * operation, on one and on two HCAs; and what happens when the device loses its driver while
 * RDMA runs. Each byte is checked.
 *
 * The environment holds the PCI addresses of the devices, see scripts/p2p-machine: hca0 reaches
 * the providers iv0 and pair0, but not iv1.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "move_side.h"
#include "p2p_call.h"

#define DEVICE_A	"t-a"
#define DEVICE_B	"t-b"
#define DEVICE_OFF	"t-off"		/* not on the PCI bus */

/* Registered memory begins and ends within pages. */
#define PAGE		4096
#define SIZE		(64 * PAGE)
#define BEFORE		0x238
#define LENGTH		(SIZE - 0x800)

enum kind { HOST, NEAR, NEXT, KINDS };

static struct ca a, b;
static const char *near, *next;

static void setup(void)
{
	near = p2p_name("iv0");
	next = p2p_name("pair0");
	emu_make_at(DEVICE_A, p2p_name("hca0"));
	emu_make_at(DEVICE_B, p2p_name("hca0"));
	a = ca_make(DEVICE_A);
	b = ca_make(DEVICE_B);
}

/* Unmapped or deregistered memory returns to the provider after a moment. */
static void expect_all_free(const char *provider)
{
	while (p2p_count(provider, "available") < p2p_count(provider, "size"))
		sched_yield();
}

/* --- registration ------------------------------------------------------------------- */

static void finds_provider(void)
{
	struct kverbs_ca_mr_attr attr;
	struct region region;
	char *at;

	setup();
	at = p2p_map(near, SIZE);
	EXPECT_EQ(p2p_count(near, "available"), p2p_count(near, "size") - SIZE);
	region = must_reg_all(&a, at + BEFORE, LENGTH);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_P2P);
	EXPECT(!strcmp(region.attr.peer, near));
	EXPECT_EQ(region.attr.host_error, -EREMOTEIO);
	EXPECT_EQ(region.attr.p2p_error, 0);
	EXPECT_EQ(region.attr.peer_error, 0);
	EXPECT_EQ(region.attr.flags, KVERBS_CA_MR_PINNED);
	EXPECT_EQ(region.attr.length, LENGTH);
	EXPECT_EQ(region_query(&region, &attr), 0);
	EXPECT(!memcmp(&attr, &region.attr, sizeof(attr)));
	EXPECT_EQ(munmap(at, SIZE), 0);
	EXPECT_EQ(p2p_count(near, "available"), p2p_count(near, "size") - SIZE);
	EXPECT_EQ(region_dereg(&region), 0);
	expect_all_free(near);
}

/* Only the requested path is used. */
static void path_only(void)
{
	struct region region;
	char *at, *host;

	setup();
	at = p2p_map(near, SIZE);
	host = pages(SIZE);
	EXPECT_EQ(peer_reg_path(&a, at, SIZE, KVERBS_CA_PATH_HOST, &region), -EREMOTEIO);
	EXPECT_EQ(region.attr.p2p_error, 0);
	EXPECT_EQ(peer_reg_path(&a, at, SIZE, KVERBS_CA_PATH_P2P, &region), 0);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_P2P);
	EXPECT_EQ(region.attr.host_error, 0);
	EXPECT_EQ(region_dereg(&region), 0);
	EXPECT_EQ(peer_reg_path(&a, host, SIZE, KVERBS_CA_PATH_P2P, &region), -EFAULT);
	EXPECT_EQ(region.attr.p2p_error, -ENODEV);
	EXPECT_EQ(peer_reg_path(&a, host, SIZE, KVERBS_CA_PATH_ANY, &region), 0);
	EXPECT_EQ(region.attr.path, KVERBS_CA_PATH_HOST);
	EXPECT_EQ(region.attr.p2p_error, 0);
}

/* Adjacent memory that does not all belong to one provider, in either order. */
static void no_mixture(void)
{
	struct region region;
	char *at, *other;

	setup();
	at = pages(2 * SIZE);
	other = p2p_map(near, SIZE);
	EXPECT(mremap(other, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at);
	EXPECT_EQ(peer_reg_path(&a, at, SIZE, KVERBS_CA_PATH_ANY, &region), 0);
	EXPECT_EQ(region_dereg(&region), 0);
	EXPECT_EQ(peer_reg_path(&a, at, SIZE + 1, KVERBS_CA_PATH_ANY, &region), -EINVAL);
	EXPECT_EQ(region.attr.host_error, -EREMOTEIO);
	EXPECT_EQ(region.attr.p2p_error, -EINVAL);
	EXPECT_EQ(region.attr.object, 0);

	other = p2p_map(next, SIZE);
	EXPECT(mremap(other, SIZE, SIZE, MREMAP_MAYMOVE | MREMAP_FIXED, at + SIZE) ==
	       at + SIZE);
	EXPECT_EQ(peer_reg_path(&a, at, SIZE + 1, KVERBS_CA_PATH_ANY, &region), -EINVAL);
	EXPECT_EQ(region.attr.p2p_error, -EINVAL);

	EXPECT(mmap(at, SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at);
	EXPECT_EQ(peer_reg_path(&a, at, SIZE + 1, KVERBS_CA_PATH_ANY, &region), -EINVAL);
	EXPECT_EQ(region.attr.host_error, -EREMOTEIO);
	EXPECT_EQ(munmap(at, 2 * SIZE), 0);
	expect_all_free(near);
	expect_all_free(next);
}

static void no_way(void)
{
	const char *far = p2p_name("iv1");
	struct region region;
	struct ca off;
	char *at;

	setup();
	emu_make(DEVICE_OFF, 1);
	off = ca_make(DEVICE_OFF);
	at = p2p_map(near, SIZE);
	EXPECT_EQ(peer_reg_path(&off, at, SIZE, KVERBS_CA_PATH_ANY, &region), -EREMOTEIO);
	EXPECT_EQ(region.attr.p2p_error, -EREMOTEIO);
	EXPECT_EQ(munmap(at, SIZE), 0);
	at = p2p_map(far, SIZE);
	EXPECT_EQ(peer_reg_path(&a, at, SIZE, KVERBS_CA_PATH_ANY, &region), -EREMOTEIO);
	EXPECT_EQ(region.attr.p2p_error, -EREMOTEIO);
	EXPECT_EQ(region.attr.object, 0);
	EXPECT_EQ(munmap(at, SIZE), 0);
	expect_all_free(near);
	expect_all_free(far);
}

/* A caller with a shorter description of a region gets as much as it knows. */
static void older_caller(void)
{
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_request r = {
		.out = (uintptr_t)&attr,
		.out_len = KVERBS_CA_MR_ATTR_SIZE_MIN,
	};
	struct region region;

	setup();
	region = must_reg_all(&a, p2p_map(near, SIZE), SIZE);
	r.handle = a.handle;
	r.object = region.mr;
	memset(&attr, 0x5a, sizeof(attr));
	EXPECT_EQ(ca_do(a.fd, KVERBS_CA_QUERY_MR, &r), KVERBS_CA_MR_ATTR_SIZE_MIN);
	EXPECT_EQ(attr.size, sizeof(attr));
	EXPECT(!strcmp(attr.peer, near));
	EXPECT_EQ(attr.p2p_error, 0x5a5a5a5a);
}

/* --- data ---------------------------------------------------------------------------- */

static void side_make(struct side *side, const struct ca *ca, unsigned int what,
		      uint32_t seed)
{
	static const struct side_range range = { SIZE, BEFORE, LENGTH };

	side->mem = (struct mem) { 0 };
	if (what == HOST)
		side_init(side, ca, pages(SIZE), &range, seed, KVERBS_CA_PATH_HOST);
	else
		side_init(side, ca, p2p_map(what == NEAR ? near : next, SIZE), &range, seed,
			  KVERBS_CA_PATH_P2P);
}

static void move_all(const char *op)
{
	static const uint32_t lens[] = { 1, 7, 64, PAGE, PAGE + 1, 16 * PAGE, LENGTH };
	const struct side_kinds kinds = {
		.ca = &a, .peer = &b, .make = side_make, .count = KINDS,
		.lens = lens, .nr_lens = TEST_COUNT(lens),
	};

	setup();
	side_move_all(op, &kinds);
	expect_all_free(near);
	expect_all_free(next);
}

static void sends(void) { move_all("send"); }
static void writes(void) { move_all("write"); }
static void reads(void) { move_all("read"); }
static void swaps(void) { move_all("cas"); }
static void adds(void) { move_all("fadd"); }

/* --- the provider goes ------------------------------------------------------------------ */

/*
 * The driver is unbound under traffic, without waiting for the region, which still exists; then
 * it is bound again, and its memory is as good as new.
 * @own: the memory belongs to the side that performs the operation.
 */
static void unbind_under(const char *op, const struct ca *peer, bool own)
{
	struct traffic t = { .move.op = op, .move.len = is_atomic(op) ? 8 : 16 * PAGE,
			     .move.count = 8 };
	struct side host, device, again;
	struct moved moved;

	side_make(&host, own ? peer : &a, HOST, 1);
	side_make(&device, own ? &a : peer, NEAR, 2);
	t.mover = mover_open(&a, peer);
	t.move.own = own ? &device.region : &host.region;
	t.move.other = own ? &host.region : &device.region;
	t.move.own_at = t.move.other_at = 8;
	traffic_start(&t);
	EXPECT(!region_revoked(&device.region));
	EXPECT_EQ(p2p_unbind(near), 0);
	EXPECT(region_revoked(&device.region));
	EXPECT_EQ(traffic_end(&t), -EIO);
	moved = mover_result(t.mover);
	EXPECT_EQ(moved.send, own ? WC_LOC_PROT_ERR : WC_REM_ACCESS_ERR);
	EXPECT_EQ(mover_do(t.mover, &t.move), -EIO);
	EXPECT(!p2p_try_map(near, SIZE));
	EXPECT_EQ(region_dereg(&device.region), 0);
	EXPECT_EQ(munmap(device.at, SIZE), 0);
	free(device.model);

	EXPECT_EQ(p2p_bind(near), 0);
	EXPECT_EQ(p2p_count(near, "available"), p2p_count(near, "size"));
	side_make(&again, own ? &a : peer, NEAR, 3);
	*(own ? &t.move.own : &t.move.other) = &again.region;
	must_move(t.mover, &t.move);
	close(t.mover);
	side_drop(&host);
	side_drop(&again);
	expect_all_free(near);
}

static void unbind_all(const char *op)
{
	setup();
	unbind_under(op, &a, true);
	unbind_under(op, &b, true);
	unbind_under(op, &a, false);
	unbind_under(op, &b, false);
}

static void unbind_under_write(void) { unbind_all("write"); }
static void unbind_under_read(void) { unbind_all("read"); }
static void unbind_under_fadd(void) { unbind_all("fadd"); }

/* --- processes ---------------------------------------------------------------------------- */

/* Registers the same memory twice, on one HCA and on two: each region ends independently. */
static void registered_twice(void)
{
	struct region twice[2];
	struct side host, device;
	struct move m = { .op = "write", .len = PAGE };
	unsigned int i;
	int mover;

	setup();
	side_make(&host, &a, HOST, 1);
	side_make(&device, &b, NEAR, 2);
	mover = mover_open(&a, &b);
	twice[0] = must_reg_all(&b, device.at + BEFORE, LENGTH);
	twice[1] = must_reg_all(&a, device.at + BEFORE, LENGTH);
	m.own = &host.region;
	for (i = 0; i < 2; i++) {
		m.other = &twice[0];
		if (!i)
			must_move(mover, &m);
		EXPECT_EQ(region_dereg(&twice[i]), 0);
		m.other = &device.region;
		must_move(mover, &m);
	}
	m.other = &twice[0];
	EXPECT_EQ(mover_do(mover, &m), -EIO);
	EXPECT(!memcmp(device.at + BEFORE, host.at + BEFORE, PAGE));
	close(mover);
	side_drop(&device);
	expect_all_free(near);
}

static void touch(void *at)
{
	fill(at, SIZE, 9);
}

/* A child also has the mapping; the region outlives both mappings. */
static void forked(void)
{
	struct side host, device;
	struct move m = { .op = "read", .len = LENGTH };
	int mover;

	setup();
	side_make(&host, &a, HOST, 1);
	side_make(&device, &a, NEAR, 2);
	mover = mover_open(&a, &a);
	test_join(test_spawn(touch, device.at));
	EXPECT_EQ(munmap(device.at, SIZE), 0);
	EXPECT(p2p_count(near, "available") < p2p_count(near, "size"));
	m.own = &host.region;
	m.other = &device.region;
	must_move(mover, &m);
	fill(host.model, SIZE, 9);
	EXPECT(!memcmp(host.at + BEFORE, host.model + BEFORE, LENGTH));
	EXPECT_EQ(region_dereg(&device.region), 0);
	expect_all_free(near);
}

static void die(void *unused)
{
	struct side device;

	(void)unused;
	b = ca_make(DEVICE_B);
	side_make(&device, &b, NEAR, 2);
	must_reg_all(&b, device.at, PAGE);
	/* Neither deregistered nor unmapped. */
}

static void exited(void)
{
	setup();
	test_join(test_spawn(die, NULL));
	expect_all_free(near);
	EXPECT_EQ(p2p_unbind(near), 0);
	EXPECT_EQ(p2p_bind(near), 0);
}

/*
 * An HCA goes along with its place on the bus only if the place goes; here the HCA itself
 * goes, before the memory does.
 */
static void hca_goes(void)
{
	struct side device;

	setup();
	side_make(&device, &a, NEAR, 1);
	emu_enable(DEVICE_A, false);
	EXPECT_EQ(munmap(device.at, SIZE), 0);
	expect_all_free(near);
}

/*
 * Makes a registration whose @nth allocation fails. Sets @failed if there was such an
 * allocation.
 */
static long reg_fails_nth(int fd, unsigned int nth, char *at, bool *failed)
{
	struct region region;
	char text[16];
	ssize_t len;
	long ret;

	snprintf(text, sizeof(text), "%u", nth);
	EXPECT(pwrite(fd, text, strlen(text), 0) > 0);
	ret = peer_reg_path(&a, at + BEFORE, LENGTH, KVERBS_CA_PATH_P2P, &region);
	/* A remaining count means that there were fewer allocations. */
	len = pread(fd, text, sizeof(text) - 1, 0);
	EXPECT(len > 0);
	text[len] = 0;
	*failed = !atoi(text);
	EXPECT(pwrite(fd, "0", 1, 0) > 0);
	if (!ret)
		EXPECT_EQ(region_dereg(&region), 0);
	return ret;
}

/*
 * The system's allocator and kmemleak occasionally allocate for themselves, which also counts:
 * one sweep may miss an allocation of ours, but several will hardly miss the same one.
 */
static void allocations_fail(void)
{
	enum { SWEEPS = 4 };
	int fd = open("/proc/self/fail-nth", O_RDWR | O_CLOEXEC);
	unsigned int sweep, n, failures = 0;
	bool failed;
	char *at;
	long ret;

	if (fd < 0)
		test_skip("the kernel does not inject failures");
	setup();
	at = p2p_map(near, SIZE);
	for (sweep = 0; sweep < SWEEPS; sweep++) {
		n = 0;
		do {
			ret = reg_fails_nth(fd, ++n, at, &failed);
			EXPECT(!ret || (failed && ret == -ENOMEM));
			failures += !!ret;
		} while (failed);
	}
	/* A sweep usually has four to nine failures. */
	EXPECT(failures > 2 * SWEEPS);
	EXPECT_EQ(munmap(at, SIZE), 0);
	expect_all_free(near);
}

static const struct test_case cases[] = {
	{ "memory of a PCI device is found, and told whose it is", finds_provider },
	{ "the path that is asked for is taken, or none", path_only },
	{ "a region is of one provider's memory, and of no other", no_mixture },
	{ "an HCA without a safe way there is refused", no_way },
	{ "a caller of the first version gets what it knows", older_caller },
	{ "SEND from and to P2P memory, each byte", sends },
	{ "RDMA WRITE from and to P2P memory, each byte", writes },
	{ "RDMA READ from and to P2P memory, each byte", reads },
	{ "CMP_SWAP in P2P memory", swaps },
	{ "FETCH_ADD in P2P memory", adds },
	{ "the provider's driver goes under RDMA WRITE", unbind_under_write },
	{ "the provider's driver goes under RDMA READ", unbind_under_read },
	{ "the provider's driver goes under FETCH_ADD", unbind_under_fadd },
	{ "memory that is registered twice is freed with the last", registered_twice },
	{ "a region outlives the mappings of parent and child", forked },
	{ "what a process leaves behind goes with it", exited },
	{ "regions go with their HCA", hca_goes },
	{ "a registration that lacks memory leaves nothing behind", allocations_fail },
};

int main(int argc, char **argv)
{
	return test_main(argc, argv, cases, TEST_COUNT(cases), emu_tidy);
}
