// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer memory under stress:
 *
 *   peer_stress [--operations N] [--seed S]
 *
 * Four processes allocate memory of four GPUs, register it at two HCAs, move data in and
 * out, free it and move it, all at random and at the same time; see peer_worker.c.
 * Meanwhile processes are killed, clients are asked to go and come back, and HCAs are unplugged
 * and come back. For each operation the possible outcomes at that moment are known. In the end
 * nothing may be left over.
 *
 * The seed, a worker's number and how often it was killed before determine what it draws, but
 * not how the workers interleave.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "peer_stress.h"

/* Without any progress for this long, something hangs. */
#define HANG_SECONDS	60

/* How often each kind of event happens during the whole test. */
#define KILLS		100
#define UNLOADS		50
#define UNPLUGS		25

struct shared *shared;
const char *const hca_names[HCAS] = { "t-s0", "t-s1" };
uint64_t seed = 1;
static uint64_t wanted = 100000, chance;

/* Only the first complaint is reported. */
void complain(const char *format, ...)
{
	va_list args;

	if (!atomic_exchange(&shared->failed, true)) {
		va_start(args, format);
		vsnprintf(shared->why, sizeof(shared->why), format, args);
		va_end(args);
	}
	_exit(1);
}

/* --- clients and HCAs --------------------------------------------------------------------- */

/* Returns after @n more operations, or when the test is over. */
static void await_operations(uint64_t n)
{
	uint64_t end = shared->ops + n;

	while (shared->ops < end && !shared->over)
		moment();
}

/* Users of the client notice that it wants to go, and let it. */
static void *change_clients(void *unused)
{
	uint64_t state = chance ^ 1;
	unsigned int gpu;

	(void)unused;
	while (!shared->over) {
		gpu = chance_below(&state, GPUS);
		await_operations(wanted / UNLOADS / 2);
		shared->gpu[gpu]++;
		gpu_set(gpu, "registered", "0");
		shared->gpu[gpu]++;
		await_operations(wanted / UNLOADS / 2);
		shared->gpu[gpu]++;
		gpu_set(gpu, "registered", "1");
		shared->gpu[gpu]++;
	}
	return NULL;
}

static void *change_hcas(void *unused)
{
	uint64_t state = chance ^ 2;
	unsigned int hca;

	(void)unused;
	while (!shared->over) {
		hca = chance_below(&state, HCAS);
		await_operations(wanted / UNPLUGS * 3 / 4);
		shared->hca[hca]++;
		emu_enable(hca_names[hca], false);
		shared->hca[hca]++;
		await_operations(wanted / UNPLUGS / 4);
		shared->hca[hca]++;
		emu_enable(hca_names[hca], true);
		shared->hca[hca]++;
	}
	return NULL;
}

/* --- workers --------------------------------------------------------------------------------- */

static struct worker {
	int pid;
	unsigned int number;
	unsigned int life;
} workers[WORKERS];

static void in_worker(void *arg)
{
	const struct worker *w = arg;

	work(w->number, w->life);
}

static void start(struct worker *w)
{
	w->pid = test_spawn(in_worker, w);
	w->life++;
}

/* Handles the end of a worker: killed by this process, or ended by itself after an error. */
static void bury(int pid, int status)
{
	unsigned int i;

	for (i = 0; i < WORKERS; i++) {
		if (workers[i].pid == pid)
			break;
	}
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && i < WORKERS) {
		shared->kills++;
		start(&workers[i]);
		return;
	}
	if (shared->failed)
		test_fail(__FILE__, __LINE__, "%s", shared->why);
	/* The worker has reported the reason. */
	if (WIFEXITED(status) && WEXITSTATUS(status))
		_exit(WEXITSTATUS(status));
	test_fail(__FILE__, __LINE__, "a worker ended with status %#x", status);
}

static void look_after_workers(void)
{
	uint64_t next_kill = wanted / KILLS, ops, before = 0;
	int pid, status;

	alarm(HANG_SECONDS);
	while ((ops = shared->ops) < wanted) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			bury(pid, status);
		if (ops >= next_kill) {
			kill(workers[chance_below(&chance, WORKERS)].pid, SIGKILL);
			next_kill = ops + 1 + chance_below(&chance, 2 * wanted / KILLS);
		}
		if (ops != before)
			alarm(HANG_SECONDS);
		before = ops;
		moment();
	}
}

static void end_workers(void)
{
	unsigned int i;
	int status;

	shared->over = true;
	for (i = 0; i < WORKERS; i++) {
		if (waitpid(workers[i].pid, &status, 0) != workers[i].pid || status)
			if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
				bury(workers[i].pid, status);
	}
}

/* --- final checks --------------------------------------------------------- */

static void expect_nothing_left(void)
{
	unsigned int gpu;

	for (gpu = 0; gpu < GPUS; gpu++) {
		EXPECT_SOON(!peer_count(gpu, "live_mrs"));
		EXPECT_EQ(peer_count(gpu, "num_alloc_mrs"),
			  peer_count(gpu, "num_dealloc_mrs"));
		EXPECT_EQ(peer_count(gpu, "num_reg_pages"),
			  peer_count(gpu, "num_dereg_pages"));
		EXPECT_EQ(peer_count(gpu, "num_reg_bytes"),
			  peer_count(gpu, "num_dereg_bytes"));
		EXPECT_EQ(peer_count(gpu, "num_invalidate_timeouts"), 0);
		EXPECT_SOON(!gpu_used(gpu_open(gpu)));
		gpu_set(gpu, "registered", "0");
		gpu_set(gpu, "registered", "1");
	}
}

/* Checks that the random operations have covered everything. */
static void expect_all_reached(void)
{
	static const char *const names[OPS] = {
		"ALLOC", "FREE", "MOVE", "EXPORT", "touch", "SET_PEER", "REG_MR", "DEREG_MR",
		"QUERY_MR", "LIST", "WRITE", "READ", "SEND", "fetch and add",
	};
	unsigned int op;

	for (op = 0; op < OPS; op++) {
		printf("# %s: %llu succeeded, %llu failed as they may\n", names[op],
		       (unsigned long long)shared->good[op],
		       (unsigned long long)shared->lost[op]);
		EXPECT(shared->good[op]);
		EXPECT(shared->lost[op] || op < OP_REG || op == OP_DEREG ||
		       op == OP_QUERY || op == OP_LIST);
	}
	printf("# %llu workers were killed\n", (unsigned long long)shared->kills);
	for (op = 0; op < GPUS; op++)
		printf("# fake_gpu%u was unregistered %llu times\n", op,
		       (unsigned long long)shared->gpu[op] / WEATHERS);
	for (op = 0; op < HCAS; op++)
		printf("# %s was unplugged %llu times\n", hca_names[op],
		       (unsigned long long)shared->hca[op] / WEATHERS);
	EXPECT(shared->kills);
}

static void stress(void)
{
	struct timespec begun, ended;
	pthread_t clients, hcas;
	long long pinned;
	unsigned int i;

	clock_gettime(CLOCK_MONOTONIC, &begun);
	pinned = pinned_pages();
	for (i = 0; i < HCAS; i++)
		emu_make(hca_names[i], 1);
	for (i = 0; i < WORKERS; i++) {
		workers[i].number = i;
		start(&workers[i]);
	}
	EXPECT(!pthread_create(&clients, NULL, change_clients, NULL));
	EXPECT(!pthread_create(&hcas, NULL, change_hcas, NULL));
	look_after_workers();
	end_workers();
	pthread_join(clients, NULL);
	pthread_join(hcas, NULL);
	alarm(HANG_SECONDS);
	expect_nothing_left();
	expect_pinned(pinned);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	printf("# %llu operations in %lld s, seed %llu\n", (unsigned long long)shared->ops,
	       (long long)(ended.tv_sec - begun.tv_sec), (unsigned long long)seed);
	expect_all_reached();
}

int main(int argc, char **argv)
{
	static char what[96];
	const struct test_case cases[] = { { what, stress } };

	chance = random_options(argc, argv, &wanted, &seed);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	snprintf(what, sizeof(what), "%llu operations from seed %llu",
		 (unsigned long long)wanted, (unsigned long long)seed);
	return test_main(1, argv, cases, TEST_COUNT(cases), emu_tidy);
}
