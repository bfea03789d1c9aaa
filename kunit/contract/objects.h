/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects that a client can leave behind on a device. They are made in this module, so that
 * the checker reports the function that makes one as its call site.
 */
#ifndef KVT_CONTRACT_OBJECTS_H
#define KVT_CONTRACT_OBJECTS_H

#include "contract/rig.h"

/* The device, and what a client's module has made on it. */
struct objects {
	struct mock *m;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_pd *own_pd;
	struct ib_cq *own_cq;
	struct ib_srq *srq;
	struct ib_mr *mr;
	struct ib_mw *mw;
	struct ib_fmr *fmr;
	struct ib_ah *ah;
	const struct ib_gid_attr *gid;
	struct rdma_ah_attr path;
	u64 ca;
	struct ib_cq *shared;
	struct ib_qp *qps[4];
	struct ib_event_handler handler;
};

/* A kind of thing that can be left behind. */
struct kind {
	const char *name;			/* name of the kind in the report */
	int (*make)(struct objects *t);		/* makes a thing of this kind */
	void (*unmake)(struct objects *t);	/* frees the thing */
	/* Function that the report gives as the call site; NULL stands for @make. */
	const void *site;
};

#define CONTRACT_KINDS	22
/*
 * The first of the kinds: only the checker complains if such a thing is left on a device that
 * is unregistered.
 */
#define NR_OBJECTS	9

extern const struct kind contract_kinds[CONTRACT_KINDS];

int thing_make_pd(struct objects *t);
void thing_unmake_pd(struct objects *t);
int thing_make_cq(struct objects *t);
int thing_make_qp(struct objects *t);
int thing_make_mr(struct objects *t);
void thing_unmake_mr(struct objects *t);
int thing_make_ca(struct objects *t);
void thing_unmake_ca(struct objects *t);
int thing_make_gid(struct objects *t);
void thing_unmake_gid(struct objects *t);
int thing_make_handler(struct objects *t);
void thing_unmake_handler(struct objects *t);
void thing_on_event(struct ib_event_handler *handler, struct ib_event *event);

#endif
