// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks the counters of peer-memory clients against a model:
 *
 *   peer_sysfs [--operations N] [--seed S]
 *
 * Memory of two GPUs is allocated, registered at two HCAs, deregistered and freed at
 * random, also by processes that are killed; clients go and come. A model predicts the
 * contents of the files in /sys/kernel/mm/memory_peers/. After each operation one of them is
 * read at random, and after each hundredth all of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "peer_call.h"

#define GPUS		2
#define HCAS		2
#define MEMS		16
#define PAGES_MAX	4
#define REGIONS		64

enum count {
	ALLOC_MRS, DEALLOC_MRS, REG_PAGES, DEREG_PAGES, REG_BYTES, DEREG_BYTES,
	FREE_CALLBACKS, LIVE_MRS, REVOKES, WAITS, TIMEOUTS, COUNTS
};

static const char *const files[COUNTS] = {
	[ALLOC_MRS] = "num_alloc_mrs",
	[DEALLOC_MRS] = "num_dealloc_mrs",
	[REG_PAGES] = "num_reg_pages",
	[DEREG_PAGES] = "num_dereg_pages",
	[REG_BYTES] = "num_reg_bytes",
	[DEREG_BYTES] = "num_dereg_bytes",
	[FREE_CALLBACKS] = "num_free_callbacks",
	[LIVE_MRS] = "live_mrs",
	[REVOKES] = "num_revokes",
	[WAITS] = "num_invalidate_waits",
	[TIMEOUTS] = "num_invalidate_timeouts",
};

/* A GPU: the expected contents of its client's files. */
static struct {
	int fd;
	unsigned int regions;
	long long counts[COUNTS];
} gpus[GPUS];

static struct {
	struct mem mem;
	unsigned int gpu;
} mems[MEMS];

static struct {
	struct region region;
	unsigned int gpu;
	unsigned int mem;
	size_t length;
	unsigned int pages;
	bool used;
	bool lost;
} regions[REGIONS];

static struct ca cas[HCAS];
static uint64_t seed = 1, wanted = 10000, chance, done;

/* --- the model --------------------------------------------------------------------- */

static void got(unsigned int r)
{
	long long *c = gpus[regions[r].gpu].counts;

	c[ALLOC_MRS]++;
	c[REG_PAGES] += regions[r].pages;
	c[REG_BYTES] += regions[r].length;
	c[LIVE_MRS]++;
}

/* The region's memory was given back, whether or not the region lives on. */
static void given_back(unsigned int r)
{
	long long *c = gpus[regions[r].gpu].counts;

	c[DEALLOC_MRS]++;
	c[DEREG_PAGES] += regions[r].pages;
	c[DEREG_BYTES] += regions[r].length;
}

static void expect_count(unsigned int gpu, enum count which)
{
	long long told = peer_count(gpu, files[which]), want = gpus[gpu].counts[which];

	if (told != want)
		test_fail(__FILE__, __LINE__,
			  "after %llu operations from seed %llu: fake_gpu%u/%s: %lld, not %lld",
			  (unsigned long long)done, (unsigned long long)seed, gpu,
			  files[which], told, want);
}

static void expect_all_counts(void)
{
	unsigned int gpu, which;

	for (gpu = 0; gpu < GPUS; gpu++) {
		for (which = 0; which < COUNTS; which++)
			expect_count(gpu, which);
	}
}

/* --- operations ------------------------------------------------------------------------ */

static void allocate(unsigned int m)
{
	unsigned int gpu = chance_below(&chance, GPUS);
	size_t size = GPU_PAGE * (1 + chance_below(&chance, PAGES_MAX));
	long ret;

	mems[m].gpu = gpu;
	ret = gpu_try_alloc(gpus[gpu].fd, size, &mems[m].mem);
	/* Regions keep freed memory until they are deregistered. */
	EXPECT(!ret || ret == -ENOMEM);
}

static void release(unsigned int m)
{
	unsigned int r;

	EXPECT_EQ(gpu_free(&mems[m].mem), 0);
	for (r = 0; r < REGIONS; r++) {
		if (!regions[r].used || regions[r].lost || regions[r].mem != m)
			continue;
		EXPECT(region_revoked(&regions[r].region));
		given_back(r);
		gpus[regions[r].gpu].counts[FREE_CALLBACKS]++;
		gpus[regions[r].gpu].counts[REVOKES]++;
		regions[r].lost = true;
	}
	EXPECT_EQ(munmap(mems[m].mem.at, mems[m].mem.size), 0);
	mems[m].mem.handle = 0;
}

/* Registers any part of memory, or a range that fails because part of it does not exist. */
static void register_region(unsigned int r)
{
	unsigned int m = chance_below(&chance, MEMS);
	const struct mem *mem = &mems[m].mem;
	size_t from, len;
	long ret;

	if (!mem->handle)
		return;
	from = chance_below(&chance, mem->size);
	len = 1 + chance_below(&chance, mem->size - from);
	if (!chance_below(&chance, 16))
		len += mem->size;
	ret = peer_reg_path(&cas[chance_below(&chance, HCAS)], mem->at + from, len,
			    KVERBS_CA_PATH_PEER, &regions[r].region);
	/* Adjacent areas of the same GPU are not one area. */
	if (from + len > mem->size) {
		EXPECT(ret < 0);
		return;
	}
	EXPECT_EQ(ret, 0);
	regions[r].used = true;
	regions[r].lost = false;
	regions[r].gpu = mems[m].gpu;
	regions[r].mem = m;
	regions[r].length = len;
	regions[r].pages = (from + len - 1) / GPU_PAGE - from / GPU_PAGE + 1;
	gpus[regions[r].gpu].regions++;
	got(r);
}

static void deregister(unsigned int r)
{
	unsigned int gpu = regions[r].gpu;

	EXPECT_EQ(region_dereg(&regions[r].region), 0);
	if (!regions[r].lost)
		given_back(r);
	gpus[gpu].counts[LIVE_MRS]--;
	gpus[gpu].regions--;
	regions[r].used = false;
}

/* The client goes and comes back as a new one. */
static void reregister(unsigned int gpu)
{
	unsigned int r;

	for (r = 0; r < REGIONS; r++) {
		if (regions[r].used && regions[r].gpu == gpu)
			deregister(r);
	}
	gpu_set(gpu, "registered", "0");
	EXPECT(access(gpu ? PEERS_DIR "fake_gpu1" : PEERS_DIR "fake_gpu0", F_OK));
	gpu_set(gpu, "registered", "1");
	memset(gpus[gpu].counts, 0, sizeof(gpus[gpu].counts));
}

static void in_child(void *arg)
{
	unsigned int *r = arg;
	struct ca ca = ca_make("t-a");
	struct region region;

	EXPECT_EQ(peer_reg_path(&ca, mems[regions[*r].mem].mem.at, regions[*r].length,
				KVERBS_CA_PATH_PEER, &region), 0);
	raise(SIGKILL);
}

/* A process registers all of some memory and is killed. */
static void kill_child(unsigned int r)
{
	unsigned int m = chance_below(&chance, MEMS), gpu = mems[m].gpu;
	int tries = 500;

	if (!mems[m].mem.handle)
		return;
	regions[r].gpu = gpu;
	regions[r].mem = m;
	regions[r].length = mems[m].mem.size;
	regions[r].pages = regions[r].length / GPU_PAGE;
	waitpid(test_spawn(in_child, &r), NULL, 0);
	got(r);
	given_back(r);
	gpus[gpu].counts[LIVE_MRS]--;
	while (peer_count(gpu, "live_mrs") != gpus[gpu].counts[LIVE_MRS] && tries--)
		moment();
}

static void operate(void)
{
	unsigned int m = chance_below(&chance, MEMS), r = chance_below(&chance, REGIONS);

	switch (chance_below(&chance, 8)) {
	case 0:
		if (mems[m].mem.handle)
			release(m);
		else
			allocate(m);
		break;
	case 1:
		if (!chance_below(&chance, 100))
			reregister(chance_below(&chance, GPUS));
		else if (!chance_below(&chance, 100) && !regions[r].used)
			kill_child(r);
		break;
	default:
		if (regions[r].used)
			deregister(r);
		else
			register_region(r);
	}
	done++;
}

/* --- all of it --------------------------------------------------------------------------- */

static void set_up(void)
{
	unsigned int gpu;

	emu_make("t-a", 1);
	emu_make("t-b", 1);
	cas[0] = ca_make("t-a");
	cas[1] = ca_make("t-b");
	for (gpu = 0; gpu < GPUS; gpu++) {
		gpus[gpu].fd = gpu_open(gpu);
		/* Start counting from 0. */
		gpu_set(gpu, "registered", "0");
		gpu_set(gpu, "registered", "1");
	}
}

static void counts_are_right(void)
{
	unsigned int gpu, r;

	set_up();
	expect_all_counts();
	while (done < wanted) {
		operate();
		expect_count(chance_below(&chance, GPUS), chance_below(&chance, COUNTS));
		if (!(done % 100))
			expect_all_counts();
		/* A case has a time limit; this one may run as long as it makes progress. */
		if (!(done % 1000))
			alarm(120);
	}
	for (r = 0; r < REGIONS; r++) {
		if (regions[r].used)
			deregister(r);
	}
	expect_all_counts();
	for (gpu = 0; gpu < GPUS; gpu++) {
		EXPECT_EQ(gpus[gpu].counts[LIVE_MRS], 0);
		EXPECT_EQ(gpus[gpu].counts[ALLOC_MRS], gpus[gpu].counts[DEALLOC_MRS]);
		EXPECT_EQ(gpus[gpu].counts[REG_BYTES], gpus[gpu].counts[DEREG_BYTES]);
	}
}

/* Checks that a client has all its files, and no others. */
static void files_are_there(void)
{
	char text[64], path[128];
	unsigned int which;

	for (which = 0; which < COUNTS; which++) {
		snprintf(path, sizeof(path), PEERS_DIR "fake_gpu0/%s", files[which]);
		EXPECT(file_read(path, text, sizeof(text)));
		EXPECT(*text >= '0' && *text <= '9' && strchr(text, '\n'));
		EXPECT(!file_write(path, "0"));
	}
	EXPECT(file_read(PEERS_DIR "fake_gpu0/version", text, sizeof(text)));
	EXPECT(strlen(text) > 1 && strchr(text, '\n'));
	EXPECT(file_read(PEERS_DIR "fake_gpu0/max_revoke_us", text, sizeof(text)));
	EXPECT(access(PEERS_DIR "fake_gpu0/none", F_OK));
}

int main(int argc, char **argv)
{
	static char what[96];
	const struct test_case cases[] = {
		{ "a client has its files", files_are_there },
		{ what, counts_are_right },
	};

	chance = random_options(argc, argv, &wanted, &seed);
	snprintf(what, sizeof(what), "counts after %llu operations from seed %llu",
		 (unsigned long long)wanted, (unsigned long long)seed);
	return test_main(1, argv, cases, TEST_COUNT(cases), emu_tidy);
}
