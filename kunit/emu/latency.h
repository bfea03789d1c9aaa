/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Loads that could keep preemption or interrupts off for long: what the suite emu_latency
 * shares between its files.
 */
#ifndef KVT_EMU_LATENCY_H
#define KVT_EMU_LATENCY_H

#include "emu/rig.h"

/* The longest list of SGEs. */
#define LAT_SGE		32
/* The longest chain that is posted at a time. */
#define LAT_CHAIN	16

/* Where a post comes from that is not what the case is about. */
#define LAT_TASK	(&kvt_runs[0])

/* A work request of any kind. */
union lat_wr {
	struct ib_send_wr wr;
	struct ib_ud_wr ud;
	struct ib_rdma_wr rdma;
};

/* Queue pairs of one device, and what is posted to one of them at a time. */
struct lat_load {
	struct rig *r;	/* the rig that they are made of; all have the CQs of its first end */
	struct rig_end *end;	/* the queue pairs */
	int nr;			/* their number */
	union lat_wr *wr;	/* @nr_wr work requests, in chains of LAT_CHAIN, for any of them */
	int nr_wr;		/* entries of @wr */
	struct ib_sge sge[LAT_SGE];	/* what each of @wr sends */
	int next;		/* the one to post to next */
	int at;			/* the work request to post next */
	int err;		/* what the last post returned */
};

void lat_begin(void);
void lat_end(void);
const struct kvt_run *lat_run_of_param(struct kunit *test);

int lat_scaled(int full);
void lat_resize(struct kunit *test, struct ib_cq *cq, int cqe);
struct lat_load *lat_load_new(struct kunit *test, struct rig *r, int nr, int nr_wr);
void lat_add_rc(struct kunit *test, struct lat_load *load);
void lat_scatter(struct rig_end *e, struct ib_sge *sge, int num, u32 len);
void lat_post(void *arg);
void lat_post_all(struct lat_load *load, const struct kvt_run *run);
int lat_collect(struct ib_cq *cq, int wanted, enum ib_wc_status status);

#endif
