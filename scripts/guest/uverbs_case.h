/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs share that check verbs of processes case by case. Each prints a line for
 * each case; the exit status is 0 if all are right.
 */
#ifndef UVERBS_CASE_H
#define UVERBS_CASE_H

#include <poll.h>

#include "uverbs.h"

#define NEED(what)							\
	do {								\
		if (!(what)) {						\
			printf("    line %d: not %s\n", __LINE__, #what);	\
			return false;					\
		}							\
	} while (0)

struct verbs_case {
	const char *name;
	bool (*run)(struct pair *p);
	bool srq;
};

#define CASE(run, srq)	{ #run, run, srq }

static inline bool status_is(struct pair *p, uint64_t wr_id, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	if (!poll_wc(p->cq, &wc)) {
		printf("    no completion of %llu\n", (unsigned long long)wr_id);
		return false;
	}
	if (wc.wr_id == wr_id && wc.status == status)
		return true;
	printf("    %llu completes with %s, not %llu with %s\n", (unsigned long long)wc.wr_id,
	       ibv_wc_status_str(wc.status), (unsigned long long)wr_id, ibv_wc_status_str(status));
	return false;
}

/* Waits for an event of the device, which must be this one or @other. */
static inline bool event_is_either(struct pair *p, enum ibv_event_type type, enum ibv_event_type other)
{
	struct pollfd fd = { .fd = p->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event event;

	if (poll(&fd, 1, PATIENCE * 1000) != 1 || ibv_get_async_event(p->ctx, &event)) {
		printf("    no event, not even %s\n", ibv_event_type_str(type));
		return false;
	}
	ibv_ack_async_event(&event);
	if (event.event_type == type || event.event_type == other)
		return true;
	printf("    %s, not %s\n", ibv_event_type_str(event.event_type), ibv_event_type_str(type));
	return false;
}

static inline bool event_is(struct pair *p, enum ibv_event_type type)
{
	return event_is_either(p, type, type);
}

/* The program is called with a device, and maybe with a case. */
static inline int run_cases(int argc, char **argv, const struct verbs_case *cases, size_t nr)
{
	size_t i;

	if (argc < 2) {
		fprintf(stderr, "usage: %s <device> [<case>]\n", argv[0]);
		return 2;
	}
	for (i = 0; i < nr; i++) {
		struct ibv_context *ctx;
		struct pair *p;

		if (argc > 2 && strcmp(argv[2], cases[i].name))
			continue;
		ctx = open_device(argv[1]);
		p = make_pair(ctx, 2 * DEPTH, cases[i].srq);
		if (!cases[i].run(p)) {
			/* What it leaves would be in the way of those behind it. */
			printf("FAILED  %s\n", cases[i].name);
			return 1;
		}
		printf("ok      %s\n", cases[i].name);
		free_pair(p);
		if (ibv_close_device(ctx))
			die("cannot close the device");
	}
	return 0;
}

#endif
