// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_hostile <device> scribble <doorbells> <seed>
 *	makes queue pairs, rings their doorbells that many times, and writes nonsense into all
 *	that is mapped from the device meanwhile, from two threads: positions, sizes, entries.
 *	Whatever comes of it, the process must be able to leave.
 * uverbs_hostile <device> traffic <file>
 *	sends, and checks the data, until the file is gone; nothing may go wrong.
 * uverbs_hostile <device> hold <file>
 *	sends until the device goes, then leaves as usual. The file is there once it sends.
 * uverbs_hostile <device> hoard <entries>
 *	makes CQs of so many entries until none can be made, and prints how many there were, and
 *	why there is no other.
 *
 * Exit status: 0, or 1 after reporting what went wrong.
 */
#include <poll.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uverbs.h"
#include "uverbs_scribble.h"

#define SCRIBBLERS	2
#define ROUND		300

static _Atomic bool scribbling, over;
static int at_work;

static void find_rings(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[256];

	nr_rings = 0;
	while (maps && fgets(line, sizeof(line), maps) && nr_rings < MAX_RINGS) {
		if (!strstr(line, "/infiniband/uverbs") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		rings[nr_rings].start = (unsigned char *)start;
		rings[nr_rings++].bytes = end - start;
	}
	if (maps)
		fclose(maps);
	if (!nr_rings)
		die("nothing is mapped");
}

static void *scribbler(void *seed)
{
	uint64_t state = (uintptr_t)seed;

	while (!over) {
		if (!scribbling) {
			sched_yield();
			continue;
		}
		__atomic_add_fetch(&at_work, 1, __ATOMIC_SEQ_CST);
		while (scribbling)
			scribble(&state);
		__atomic_sub_fetch(&at_work, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static void ring_doorbell(struct ibv_qp *qp)
{
	struct ib_uverbs_post_send_resp resp;
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send cmd;
	} req = {
		.hdr = { .command = IB_USER_VERBS_CMD_POST_SEND, .in_words = sizeof(req) / 4,
			 .out_words = sizeof(resp) / 4 },
		.cmd = { .response = (uintptr_t)&resp, .qp_handle = qp->handle,
			 .wqe_size = sizeof(struct ib_uverbs_send_wr) },
	};

	if (write(qp->context->cmd_fd, &req, sizeof(req)) != sizeof(req))
		die("doorbell");
}

static int scribble_all(struct ibv_context *ctx, long doorbells, uint64_t seed)
{
	pthread_t thread[SCRIBBLERS];
	long rung = 0, pairs = 0;
	struct pair *p;
	int i;

	for (i = 0; i < SCRIBBLERS; i++) {
		if (pthread_create(&thread[i], NULL, scribbler, (void *)(uintptr_t)(seed + i)))
			die("no thread");
	}
	for (; rung < doorbells; pairs++) {
		p = make_pair(ctx, 2 * DEPTH, pairs & 1);
		addr = (uintptr_t)p->buf;
		lkey = p->mr->lkey;
		find_rings();
		if (connect_pair(p))
			die("cannot connect");
		scribbling = true;
		for (i = 0; i < ROUND; i++, rung++) {
			ring_doorbell(p->qp[i & 1]);
			/* Some of what follows is then not just flushed. */
			if (i % 50 == 49)
				to_state(p->qp[0], IBV_QPS_RESET), to_state(p->qp[1], IBV_QPS_RESET),
				connect_pair(p);
		}
		scribbling = false;
		while (__atomic_load_n(&at_work, __ATOMIC_SEQ_CST))
			sched_yield();
		free_pair(p);
	}
	over = true;
	for (i = 0; i < SCRIBBLERS; i++)
		pthread_join(thread[i], NULL);
	printf("%ld doorbells, %ld pairs of queue pairs\n", rung, pairs);
	return 0;
}

/* Sends one message, and checks it. Returns 0; else says what is wrong. */
static int send_one(struct pair *p, uint32_t n)
{
	uint32_t length = 64 + n * 997 % 8000, i;
	struct ibv_wc wc;
	int got;

	for (i = 0; i < length; i++)
		p->buf[i] = n + i * 7;
	if (post_recv(p, 1, n, sge_of(p, BUF_BYTES / 2, 8192)) ||
	    post_send(p, n, IBV_WR_SEND, sge_of(p, 0, length))) {
		fprintf(stderr, "message %u cannot be posted\n", n);
		return 1;
	}
	for (got = 0; got < 2; got++) {
		if (!poll_wc(p->cq, &wc)) {
			fprintf(stderr, "message %u does not complete\n", n);
			return 1;
		}
		if (wc.status != IBV_WC_SUCCESS || wc.wr_id != n) {
			fprintf(stderr, "message %u: %s\n", n, ibv_wc_status_str(wc.status));
			return 1;
		}
	}
	if (memcmp(p->buf, p->buf + BUF_BYTES / 2, length)) {
		fprintf(stderr, "message %u has other data\n", n);
		return 1;
	}
	return 0;
}

static int traffic(struct ibv_context *ctx, const char *file)
{
	struct pair *p = make_pair(ctx, 2 * DEPTH, false);
	uint32_t n = 0;

	if (connect_pair(p))
		die("cannot connect");
	while (!access(file, F_OK)) {
		if (send_one(p, ++n))
			return 1;
	}
	printf("%u messages are right\n", n);
	free_pair(p);
	return !n;
}

static bool device_is_gone(struct ibv_context *ctx)
{
	struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&fd, 1, 0) != 1 || ibv_get_async_event(ctx, &event))
		return false;
	ibv_ack_async_event(&event);
	return event.event_type == IBV_EVENT_DEVICE_FATAL;
}

static int hold(struct ibv_context *ctx, const char *file)
{
	struct pair *p = make_pair(ctx, 2 * DEPTH, true);
	struct ibv_port_attr port;
	struct ibv_wc wc;
	FILE *ready;
	uint32_t n;

	if (connect_pair(p))
		die("cannot connect");
	for (n = 1; !device_is_gone(ctx); n++) {
		/* From some moment on nothing completes, and then nothing can be posted. */
		if (!post_recv(p, 1, n, sge_of(p, BUF_BYTES / 2, 64)))
			post_send(p, n, IBV_WR_SEND, sge_of(p, 0, 64));
		while (ibv_poll_cq(p->cq, 1, &wc))
			;
		if (n == 10) {
			ready = fopen(file, "w");
			if (!ready)
				die(file);
			fclose(ready);
		}
	}
	if (!ibv_query_port(ctx, 1, &port)) {
		fprintf(stderr, "the device is gone, and still has a port\n");
		return 1;
	}
	/* What it has mapped is memory still. */
	find_rings();
	for (n = 0; n < (uint32_t)nr_rings; n++)
		memset(rings[n].start, 0xff, rings[n].bytes);
	free_pair(p);
	return ibv_close_device(ctx) != 0;
}

static int hoard(struct ibv_context *ctx, int entries)
{
	struct ibv_cq *cq[1000];
	int nr = 0, err;

	while (nr < (int)ARRAY_SIZE(cq) && (cq[nr] = ibv_create_cq(ctx, entries, NULL, NULL, 0)))
		nr++;
	err = nr < (int)ARRAY_SIZE(cq) ? errno : 0;
	printf("%d %s\n", nr, err == ENOMEM ? "ENOMEM" : err == EAGAIN ? "EAGAIN" : strerror(err));
	while (nr) {
		if (ibv_destroy_cq(cq[--nr]))
			die("cannot destroy a CQ");
	}
	return ibv_close_device(ctx) != 0;
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx;

	if (argc < 4) {
		fprintf(stderr, "usage: uverbs_hostile <device> scribble|traffic|hold|hoard <what>\n");
		return 2;
	}
	ctx = open_device(argv[1]);
	if (!strcmp(argv[2], "traffic"))
		return traffic(ctx, argv[3]);
	if (!strcmp(argv[2], "hold"))
		return hold(ctx, argv[3]);
	if (!strcmp(argv[2], "hoard"))
		return hoard(ctx, atoi(argv[3]));
	return scribble_all(ctx, atol(argv[3]), argc > 4 ? strtoull(argv[4], NULL, 0) : 1);
}
