/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A CQ of ib_alloc_cq() on a mock device, with a recorder that checks that each
 * completion is handled once, in order, one at a time, and in the right context.
 */
#ifndef KVT_CQ_RIG_H
#define KVT_CQ_RIG_H

#include "lib/objects.h"
#include "lib/mock.h"

#define CQ_RIG_SIZE		256
#define CQ_RIG_PRODUCERS	2

struct recorder;

typedef void recorder_fn(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc);

/* One completion. */
struct item {
	struct ib_cqe cqe;	/* wr_cqe of the completion */
	struct recorder *rec;	/* recorder of the CQ */
	u32 n;			/* position among the completions of its producer */
	u8 producer;		/* index of its producer */
	u8 dones;		/* how often done() was called */
};

/* Records the completions of one CQ. */
struct recorder {
	struct mock *m;		/* the device */
	struct ib_cq *cq;	/* the CQ */
	enum ib_poll_context ctx;	/* its polling context */
	atomic_t inside;	/* done() calls that are running */
	int concurrent;		/* how often done() was called while another was running */
	int disorder;		/* how often a completion was not the next of its producer */
	int wrong_context;	/* how often done() ran in a context other than that of @ctx */
	u32 next[CQ_RIG_PRODUCERS];	/* position of the next completion, by producer */
	atomic_t seen;		/* completions handled */
	int expect;		/* value of @seen at which @all is completed */
	struct completion all;	/* completed when @expect completions were handled */
	/* Completed when the CQ is armed after @expect was reached. */
	struct completion rearmed;
	recorder_fn *on_done;	/* called in done() */
	void *arg;		/* for @on_done */
};

struct recorder *recorder_up(struct kunit *test, struct mock *m, enum ib_poll_context ctx,
			     int vector);
struct recorder *recorder_of_param(struct kunit *test);
void recorder_free(struct recorder *rec);
void recorder_expect_clean(struct kunit *test, struct recorder *rec);
bool recorder_settle(struct recorder *rec);

void item_init(struct item *it, struct recorder *rec, u8 producer, u32 n);
struct item *items_new(struct kunit *test, struct recorder *rec, u32 n);
bool item_push(struct item *it);
bool items_push(struct item *items, u32 n);
void items_push_each(struct kunit *test, struct item *items, u32 n, struct ib_qp *qp);
bool item_push_of(struct item *it, struct ib_qp *qp);

/* Expects @n completions, in whose done() @on_done is called with @arg. */
static inline void recorder_expect_calls(struct recorder *rec, int n, recorder_fn *on_done,
					 void *arg)
{
	rec->expect = n;
	rec->on_done = on_done;
	rec->arg = arg;
}

/* Has one completion handled, the first one, in whose done() @on_done is called with @arg. */
static inline void recorder_call_once(struct kunit *test, struct recorder *rec,
				      recorder_fn *on_done, void *arg)
{
	recorder_expect_calls(rec, 1, on_done, arg);
	KUNIT_EXPECT_TRUE(test, item_push(items_new(test, rec, 1)));
	KUNIT_EXPECT_TRUE(test, recorder_settle(rec));
}

void cq_gate_pass(struct kvt_gate *g);

/* Keeps a lane busy in a done(). */
struct cq_hold {
	struct kvt_gate g;		/* gate that holds up the done() */
	struct recorder *rec;		/* CQ of the lane, on the vector of the other CPU */
	struct item *item;		/* completion whose done() is held up */
	struct kvt_thread *pusher;	/* thread on the other CPU that pushes @item */
};

struct cq_hold *cq_hold_new(struct kunit *test, struct mock *m, enum ib_poll_context ctx);
bool cq_hold_begin(struct cq_hold *h);
bool cq_hold_end(struct cq_hold *h);

/* A hold on a lane of a new device, in the case's polling context. */
static inline struct cq_hold *cq_hold_of_param(struct kunit *test)
{
	return cq_hold_new(test, mock_up(test, "kvtm_a"), kvt_context(test));
}

/* The recorder of another CQ that the lane polls. */
static inline struct recorder *recorder_held(struct kunit *test, struct cq_hold *h)
{
	return recorder_up(test, h->rec->m, h->rec->ctx, kvt_other_cpu());
}

struct ib_qp *cq_rig_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *scq,
			struct ib_cq *rcq, struct ib_srq *srq);
bool cq_rig_rest(struct ib_cq *cq);
void cq_rig_tune(struct kunit *test, const char *name, unsigned int value);
void cq_rig_warn_soon(struct kunit *test);

/* A QP of the recorder's CQ and a PD of its own, in state INIT; the case destroys it. */
static inline struct ib_qp *recorder_qp(struct kunit *test, struct recorder *rec)
{
	return cq_rig_qp(test, kvt_pd(test, rec->m->ibdev), rec->cq, rec->cq, NULL);
}

#endif
