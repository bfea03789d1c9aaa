// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_cost <device> <messages> [<window>]: what a SEND of 64 bytes costs a process, in
 * nanoseconds, which under -icount are instructions.
 *
 * The process is both ends. It posts as many SENDs as the window says by one call, and so by one
 * system call, with their receives, and polls all completions: the figure has the posts, the
 * doorbell, what the device does, and the polling. A tenth of the messages goes ahead unmeasured.
 */
#include "uverbs.h"

#define MESSAGE_BYTES	64
#define MAX_WINDOW	DEPTH

/* Posts @window messages, and polls the two completions of each. */
static void round_of(struct pair *p, int window)
{
	struct ibv_sge sge = sge_of(p, 0, MESSAGE_BYTES);
	struct ibv_send_wr wr[MAX_WINDOW], *bad;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < window; i++) {
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
			.sg_list = &sge, .num_sge = 1, .next = i + 1 < window ? &wr[i + 1] : NULL,
		};
		if (post_recv(p, 1, i, sge_of(p, 4096, MESSAGE_BYTES)))
			die("cannot post a receive");
	}
	if (ibv_post_send(p->qp[0], wr, &bad))
		die("cannot post");
	for (i = 0; i < 2 * window; i++) {
		if (!poll_wc(p->cq, &wc) || wc.status != IBV_WC_SUCCESS)
			die("a message did not arrive");
	}
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	int window = argc > 3 ? atoi(argv[3]) : 1;
	long rounds, i;
	struct pair *p;
	uint64_t begin;

	if (argc < 3 || window < 1 || window > MAX_WINDOW) {
		fprintf(stderr, "usage: uverbs_cost <device> <messages> [<window>]\n");
		return 2;
	}
	rounds = atol(argv[2]) / window;
	p = make_pair(open_device(argv[1]), 2 * DEPTH, false);
	if (connect_pair(p))
		die("cannot connect");
	for (i = 0; i < rounds / 10; i++)
		round_of(p, window);
	begin = now();
	for (i = 0; i < rounds; i++)
		round_of(p, window);
	printf("%llu\n", (unsigned long long)((now() - begin) / (rounds * window)));
	free_pair(p);
	return 0;
}
