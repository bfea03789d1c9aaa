/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the contract checker has reported, and the objects that its cases break it with.
 *
 * Who is to blame is named by module: the mock device's driver is kverbs_kunit; what is
 * done in these files themselves is done by kunit_contract.
 */
#ifndef KVT_CONTRACT_RIG_H
#define KVT_CONTRACT_RIG_H

#include <linux/completion.h>
#include <kunit/test.h>
#include <kverbs/ca.h>
#include <kverbs/contract.h>
#include <rdma/ib_verbs.h>

#include "lib.h"
#include "mock.h"
#include "objects.h"

#define CONTRACT_DEVICE	"kvtc_a"
#define CONTRACT_DRIVER	"kverbs_kunit"
#define CONTRACT_SELF	"kunit_contract"

/**
 * struct contract_expected - a report that must have been made
 * @rule: the rule
 * @module: who is to blame
 * @object: kind of the object; NULL: the report is about none
 * @id: its number
 * @what: how the report begins
 * @site: function that the site is in; NULL: one of the core's
 * @count: 0 stands for 1
 * @no_device: the report is about none
 * @device: name of the device; NULL: CONTRACT_DEVICE
 */
struct contract_expected {
	enum ib_contract_rule rule;
	const char *module;
	const char *object;
	u32 id;
	const char *what;
	const void *site;
	unsigned int count;
	bool no_device;
	const char *device;
};

/* For the suites: the checker is on in each case, and as it was before after it. */
int contract_init(struct kunit *test);
void contract_exit(struct kunit *test);

/* Since the last look exactly these reports were made, in this order. */
void contract_expect_all(struct kunit *test, const struct contract_expected *expected,
			 unsigned int nr);
void contract_expect(struct kunit *test, const struct contract_expected *expected);
void contract_expect_none(struct kunit *test);
void contract_expect_counted(struct kunit *test, enum ib_contract_rule rule, unsigned int nr);
/* To clean up behind what is wrong on purpose. */
void contract_off(struct kunit *test);

/* A call that is not the last thing that its function does: its site is in there. */
#define CONTRACT_CALL(call)						\
({									\
	typeof(call) __contract_ret = (call);				\
									\
	OPTIMIZER_HIDE_VAR(__contract_ret);				\
	__contract_ret;							\
})

/**
 * struct contract_scene - a device with one object of each kind
 * @m: the device
 * @pd: the PD
 * @cq: of ib_create_cq(), with the handlers below
 * @srq: with a handler; no QP uses it
 * @qp: with a handler
 * @mr: for fast registration
 * @fmr: an FMR
 * @ah: an AH
 * @in_method: called in each method that the rig has
 * @after_modify_qp: called at the end of that method
 * @in_handler: called in each handler
 * @handled: completed by each handler, before @in_handler
 *
 * A case that destroys an object sets it to NULL.
 */
struct contract_scene {
	struct mock *m;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_qp *qp;
	struct ib_mr *mr;
	struct ib_fmr *fmr;
	struct ib_ah *ah;
	void (*in_method)(struct contract_scene *scene);
	void (*after_modify_qp)(struct contract_scene *scene);
	void (*in_handler)(struct contract_scene *scene);
	struct completion handled;
};

struct contract_scene *contract_scene_new(struct kunit *test);
void contract_scene_device(struct kunit *test, struct contract_scene *scene);
void contract_scene_objects(struct kunit *test, struct contract_scene *scene);
struct contract_scene *contract_scene_up(struct kunit *test);

void contract_request_done(struct ib_ca_request *req);
void contract_comp_handler(struct ib_cq *cq, void *context);
void contract_event_handler(struct ib_event *event, void *context);

/* As a driver may do it from a thread of its own. */
void contract_call_comp_handler(struct contract_scene *scene);
void contract_call_cq_event_handler(struct contract_scene *scene);
void contract_call_qp_event_handler(struct contract_scene *scene);
void contract_call_srq_event_handler(struct contract_scene *scene);

void contract_sleep(struct contract_scene *scene);
void contract_count_as_sleep(struct contract_scene *scene);
void contract_stay_awake(struct contract_scene *scene);

#endif
