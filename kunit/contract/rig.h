/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Expectations on the reports of the contract checker, and objects to break the contract with.
 *
 * Reports blame modules: the mock device's driver is kverbs_kunit; the files of these suites
 * are in kunit_contract, which is the client.
 */
#ifndef KVT_CONTRACT_RIG_H
#define KVT_CONTRACT_RIG_H

#include <kverbs/ca.h>
#include <kverbs/contract.h>

#include "lib/mock.h"
#include "lib/objects.h"

#define CONTRACT_DEVICE	"kvtc_a"
#define CONTRACT_DRIVER	"kverbs_kunit"
#define CONTRACT_SELF	"kunit_contract"

/* A report that must have been made. */
struct contract_expected {
	enum ib_contract_rule rule;	/* the rule that was broken */
	const char *module;	/* module that is to blame */
	const char *object;	/* kind of the object; NULL: the report names no object */
	u32 id;			/* number of the object */
	const char *what;	/* beginning of the report's text */
	const void *site;	/* function that the site is in; NULL: some function of the core */
	unsigned int count;	/* count in the report; 0 stands for 1 */
	bool no_device;		/* the report names no device */
	const char *device;	/* name of the device; NULL: CONTRACT_DEVICE */
};

/* Init and exit of the suites: turn the checker on for each case; its mode is restored after. */
int contract_init(struct kunit *test);
void contract_exit(struct kunit *test);

/* Expect exactly these reports, in this order, since the last call of these functions. */
void contract_expect_all(struct kunit *test, const struct contract_expected *expected,
			 unsigned int nr);
void contract_expect(struct kunit *test, const struct contract_expected *expected);
#define CONTRACT_EXPECT(test, broken, blamed, ...)			\
	contract_expect(test, &(struct contract_expected) {		\
		.rule = IB_RULE_##broken, .module = CONTRACT_##blamed, ##__VA_ARGS__ })
void contract_expect_none(struct kunit *test);
void contract_expect_counted(struct kunit *test, enum ib_contract_rule rule, unsigned int nr);
/* Turns the checker off, to clean up after deliberate misuse. */
void contract_off(struct kunit *test);

/* Prevents a tail call, so that the call's site is in the function that makes it. */
#define CONTRACT_CALL(call)						\
({									\
	typeof(call) __contract_ret = (call);				\
									\
	OPTIMIZER_HIDE_VAR(__contract_ret);				\
	__contract_ret;							\
})

/* A function that only makes a call; the report must give it as the call site. */
#define CONTRACT_CALLER(name, arg, call)				\
static noinline int name(arg)						\
{									\
	return CONTRACT_CALL(call);					\
}

#define CONTRACT_SEND(qp)						\
	ib_post_send(qp, &(struct ib_send_wr) { .opcode = IB_WR_SEND }, NULL)
#define CONTRACT_RECV(post, queue)	post(queue, &(struct ib_recv_wr) {}, NULL)

/*
 * A device with one object of each kind.
 *
 * A case that destroys an object sets it to NULL.
 */
struct contract_scene {
	struct mock *m;			/* the device */
	struct ib_pd *pd;		/* the PD */
	struct ib_cq *cq;		/* CQ of ib_create_cq(), with the handlers below */
	struct ib_srq *srq;		/* SRQ with an event handler; no QP uses it */
	struct ib_qp *qp;		/* QP with an event handler */
	struct ib_mr *mr;		/* MR for fast registration */
	struct ib_fmr *fmr;		/* an FMR */
	struct ib_ah *ah;		/* an AH */
	/* Called in each driver method that rig.c replaces. */
	void (*in_method)(struct contract_scene *scene);
	/* Called at the end of the modify_qp method. */
	void (*after_modify_qp)(struct contract_scene *scene);
	void (*in_handler)(struct contract_scene *scene);	/* called in each handler */
	struct completion handled;	/* completed by each handler, before @in_handler */
};

struct contract_scene *contract_scene_new(struct kunit *test);
void contract_scene_device(struct kunit *test, struct contract_scene *scene);
void contract_scene_objects(struct kunit *test, struct contract_scene *scene);
struct contract_scene *contract_scene_up(struct kunit *test);
u32 contract_object_id(const struct contract_scene *scene, const char *kind);

void contract_request_done(struct ib_ca_request *req);
void contract_comp_handler(struct ib_cq *cq, void *context);
void contract_event_handler(struct ib_event *event, void *context);

/* Call a handler of the scene's object directly, as a driver may from a thread of its own. */
void contract_call_comp_handler(struct contract_scene *scene);
void contract_call_cq_event_handler(struct contract_scene *scene);
void contract_call_qp_event_handler(struct contract_scene *scene);
void contract_call_srq_event_handler(struct contract_scene *scene);

void contract_sleep(struct contract_scene *scene);
void contract_count_as_sleep(struct contract_scene *scene);
void contract_stay_awake(struct contract_scene *scene);

#endif
