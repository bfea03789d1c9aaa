// SPDX-License-Identifier: GPL-2.0-only
/*
 * ca_cost <device>: the cost of QUERY_CA by ioctl, and of an ioctl that only copies
 * as many bytes (kverbs_cabench).
 *
 * Prints "bytes=<of the answer> query_ns=<each> copy_ns=<each>": the best of several
 * batches. Under -icount, the nanoseconds are instructions. Exit status: 0, or 1
 * after reporting what went wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#include "../../include/uapi/kverbs/ca.h"
#include "../../ulp/bench/ca/cabench.h"

#define BATCHES		16
#define REQUESTS	256

/* Touched before the measurement; both ioctls write to it. */
static char answer[CABENCH_MAX_COPY];

static int fail(const char *what)
{
	fprintf(stderr, "ca_cost: %s: %s\n", what, strerror(errno));
	return 1;
}

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* Nanoseconds of an ioctl that returns @want; -1 if it returns anything else. */
static long long best_of(int fd, unsigned long cmd, void *arg, int want)
{
	long long best = -1, start, each;
	int batch, i;

	for (batch = 0; batch < BATCHES; batch++) {
		start = now();
		for (i = 0; i < REQUESTS; i++)
			if (ioctl(fd, cmd, arg) != want)
				return -1;
		each = (now() - start) / REQUESTS;
		if (best < 0 || each < best)
			best = each;
	}
	return best;
}

static int compare(int ca, int bench, struct kverbs_ca_request *r)
{
	long long query, copy;
	int bytes;

	r->out = (uintptr_t)answer;
	r->out_len = sizeof(answer);
	bytes = ioctl(ca, KVERBS_CA_IOCTL(KVERBS_CA_QUERY_CA), r);
	if (bytes < 0)
		return fail("QUERY_CA");
	query = best_of(ca, KVERBS_CA_IOCTL(KVERBS_CA_QUERY_CA), r, bytes);
	copy = best_of(bench, CABENCH_COPY(bytes), answer, bytes);
	if (query < 0 || copy < 0)
		return fail("not as many bytes as before");
	printf("bytes=%d query_ns=%lld copy_ns=%lld\n", bytes, query, copy);
	return 0;
}

int main(int argc, char **argv)
{
	struct kverbs_ca_request r = {
		.size = sizeof(r),
		.version = KVERBS_CA_VERSION,
	};
	char node[64];
	int ca, bench;

	if (argc != 2) {
		fprintf(stderr, "usage: ca_cost <device>\n");
		return 1;
	}
	snprintf(node, sizeof(node), "/dev/infiniband/ca/%s", argv[1]);
	ca = open(node, O_RDONLY);
	if (ca < 0)
		return fail(node);
	bench = open("/dev/" CABENCH_NODE, O_RDONLY);
	if (bench < 0)
		return fail("/dev/" CABENCH_NODE);
	if (ioctl(ca, KVERBS_CA_IOCTL(KVERBS_CA_OPEN), &r))
		return fail("OPEN");
	return compare(ca, bench, &r);
}
