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

/**
 * struct item - one completion
 * @cqe: wr_cqe of the completion
 * @rec: recorder of the CQ
 * @n: position among the completions of its producer
 * @producer: index of its producer
 * @dones: how often done() was called
 */
struct item {
	struct ib_cqe cqe;
	struct recorder *rec;
	u32 n;
	u8 producer;
	u8 dones;
};

/**
 * struct recorder - records the completions of one CQ
 * @m: the device
 * @cq: the CQ
 * @ctx: its polling context
 * @inside: done() calls that are running
 * @concurrent: how often done() was called while another was running
 * @disorder: how often a completion was not the next of its producer
 * @wrong_context: how often done() ran in a context other than that of @ctx
 * @next: position of the next completion, by producer
 * @seen: completions handled
 * @expect: value of @seen at which @all is completed
 * @all: completed when @expect completions were handled
 * @rearmed: completed when the CQ is armed after @expect was reached
 * @on_done: called in done()
 * @arg: for @on_done
 */
struct recorder {
	struct mock *m;
	struct ib_cq *cq;
	enum ib_poll_context ctx;
	atomic_t inside;
	int concurrent;
	int disorder;
	int wrong_context;
	u32 next[CQ_RIG_PRODUCERS];
	atomic_t seen;
	int expect;
	struct completion all;
	struct completion rearmed;
	void (*on_done)(struct recorder *rec, struct ib_cq *cq, struct ib_wc *wc);
	void *arg;
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
bool item_push_of(struct item *it, struct ib_qp *qp);

/**
 * struct cq_gate - holds up a done(), which sleeps if its context may sleep
 * @gate: holds up done() in softirq; tells in all contexts that done() is inside
 * @go: holds up done() in other contexts, until it is completed
 */
struct cq_gate {
	struct kvt_gate gate;
	struct completion go;
};

void cq_gate_init(struct cq_gate *g);
void cq_gate_pass(struct cq_gate *g);
bool cq_gate_entered(struct cq_gate *g);
void cq_gate_open(struct cq_gate *g);

/**
 * struct cq_hold - keeps a lane busy in a done()
 * @g: gate that holds up the done()
 * @rec: CQ of the lane, on the vector of the other CPU
 * @item: completion whose done() is held up
 * @pusher: thread on the other CPU that pushes @item
 */
struct cq_hold {
	struct cq_gate g;
	struct recorder *rec;
	struct item *item;
	struct kvt_thread *pusher;
};

struct cq_hold *cq_hold_new(struct kunit *test, struct mock *m, enum ib_poll_context ctx);
bool cq_hold_begin(struct cq_hold *h);
bool cq_hold_end(struct cq_hold *h);

struct ib_qp *cq_rig_qp(struct kunit *test, struct ib_pd *pd, struct ib_cq *scq,
			struct ib_cq *rcq, struct ib_srq *srq);
bool cq_rig_rest(struct ib_cq *cq);
int cq_rig_tune(const char *name, unsigned int value);
void cq_rig_warn_soon(struct kunit *test);

#endif
