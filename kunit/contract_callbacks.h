/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A consumer's callbacks, each of them called where the midlayer or a driver calls it.
 */
#ifndef KVT_CONTRACT_CALLBACKS_H
#define KVT_CONTRACT_CALLBACKS_H

#include "contract_rig.h"

typedef void (*contract_fn)(struct contract_scene *scene);

/**
 * struct contract_callback - a callback
 * @name: which, and where
 * @run: has it called for a device of its own, with a function inside; returns the number
 *	of its object when the callback is over, and who watched it has looked
 * @what: how the report names it
 * @function: the callback, the place of the report
 * @object: kind of the object in the report; NULL: it is about none
 * @in: where
 * @ctx: of done() of a completion: who polls
 * @call: of a handler of an object: calls it
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
		CONTRACT_IN_TASK,	/* another one */
		CONTRACT_IN_RCU,	/* another one, in an RCU section */
		CONTRACT_IN_SOFTIRQ,
	} in;
	enum ib_poll_context ctx;
	void (*call)(struct contract_scene *scene);
};

#define CONTRACT_CALLBACKS	14

extern const struct contract_callback contract_callbacks[CONTRACT_CALLBACKS];

struct contract_scene *contract_run_request(struct kunit *test, contract_fn inside);
void contract_run_event(struct kunit *test, contract_fn inside);
void contract_on_device_event(struct ib_event_handler *handler, struct ib_event *event);

/**
 * struct contract_done - a completion of a CQ that the core polls
 * @cqe: what it completes
 * @cq: the CQ
 * @qp: a QP that has completions there
 * @inside: called in done()
 * @handled: completed after that
 */
struct contract_done {
	struct ib_cqe cqe;
	struct ib_cq *cq;
	struct ib_qp *qp;
	contract_fn inside;
	struct completion handled;
};

struct contract_done *contract_done_up(struct kunit *test, enum ib_poll_context ctx);
void contract_push_done(struct kunit *test, struct contract_done *dc, contract_fn inside);
void contract_run_done(struct kunit *test, struct contract_done *dc, contract_fn inside);
void contract_done_fn(struct ib_cq *cq, struct ib_wc *wc);

#endif
