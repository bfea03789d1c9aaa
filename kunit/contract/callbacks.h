/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A consumer's callbacks, each run in the context in which the midlayer or a driver calls it.
 */
#ifndef KVT_CONTRACT_CALLBACKS_H
#define KVT_CONTRACT_CALLBACKS_H

#include "contract/rig.h"

typedef void (*contract_fn)(struct contract_scene *scene);

/**
 * struct contract_callback - a callback
 * @name: name of the test parameter: which callback, and where it runs
 * @run: has the callback called on a new device, and @inside called within it; returns
 *	when the callback has returned and the checker has examined it, with the number
 *	of the callback's object, or 0
 * @what: name of the callback in reports
 * @function: the callback, which is the site in reports
 * @object: kind of the object in reports; NULL: the reports name no object
 * @in: context that the callback runs in
 * @may_sleep: the callback may sleep
 * @ctx: for done() of a completion: polling context of the CQ
 * @call: for a completion or event handler of an object: calls the handler
 */
struct contract_callback {
	const char *name;
	u32 (*run)(struct kunit *test, const struct contract_callback *callback,
		   contract_fn inside);
	const char *what;
	const void *function;
	const char *object;
	enum {
		CONTRACT_IN_CALLER,	/* the thread that calls @run */
		CONTRACT_IN_TASK,	/* another thread */
		CONTRACT_IN_RCU,	/* another thread, in an RCU read-side section */
		CONTRACT_IN_SOFTIRQ,
	} in;
	bool may_sleep;
	enum ib_poll_context ctx;
	void (*call)(struct contract_scene *scene);
};

#define CONTRACT_CALLBACKS	14

extern const struct contract_callback contract_callbacks[CONTRACT_CALLBACKS];

/* A completion on a CQ of ib_alloc_cq(). */
struct contract_done {
	struct ib_cqe cqe;		/* wr_cqe of the completion */
	struct ib_cq *cq;		/* the CQ */
	struct ib_qp *qp;		/* QP that the completion names */
	contract_fn inside;		/* called in done() */
	struct completion handled;	/* completed when @inside has returned */
};

struct contract_done *contract_done_up(struct kunit *test, enum ib_poll_context ctx);
void contract_push_done(struct kunit *test, struct contract_done *dc, contract_fn inside);
void contract_done_fn(struct ib_cq *cq, struct ib_wc *wc);

#endif
