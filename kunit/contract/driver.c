// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker on drivers: methods that sleep, callbacks inside verbs calls, and
 * concurrent completion handlers must be reported, legal behaviour must not.
 */
#include <linux/scatterlist.h>
#include <kverbs/completion.h>

#include "contract/rig.h"

/*
 * A verbs call. @call is the function that the report must give as the call site. With
 * @under_rcu the method runs in an RCU section, and cannot really sleep.
 */
struct verb {
	const char *name;
	int (*call)(struct contract_scene *scene);
	const char *object;
	bool under_rcu;
};

CONTRACT_CALLER(call_post_send, struct contract_scene *scene, CONTRACT_SEND(scene->qp))
CONTRACT_CALLER(call_post_recv, struct contract_scene *scene,
	CONTRACT_RECV(ib_post_recv, scene->qp))
CONTRACT_CALLER(call_post_srq_recv, struct contract_scene *scene,
	CONTRACT_RECV(ib_post_srq_recv, scene->srq))
CONTRACT_CALLER(call_poll_cq, struct contract_scene *scene,
	ib_poll_cq(scene->cq, 1, &(struct ib_wc) {}))
CONTRACT_CALLER(call_req_notify_cq, struct contract_scene *scene,
	ib_req_notify_cq(scene->cq, IB_CQ_NEXT_COMP))

static void ah_attr_init(struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_dlid(attr, 0x23);
}

static __always_inline int remake_ah(struct contract_scene *scene, u32 flags)
{
	struct rdma_ah_attr attr;
	struct ib_ah *ah;

	ah_attr_init(&attr);
	ah = rdma_create_ah(scene->pd, &attr, flags);
	if (IS_ERR(ah))
		return PTR_ERR(ah);
	scene->in_method = NULL;
	return rdma_destroy_ah_user(ah, 0, NULL);
}

static noinline int call_create_ah(struct contract_scene *scene)
{
	return remake_ah(scene, 0);
}

static noinline int call_create_ah_sleepable(struct contract_scene *scene)
{
	return remake_ah(scene, RDMA_CREATE_AH_SLEEPABLE);
}

static noinline int call_modify_ah(struct contract_scene *scene)
{
	struct rdma_ah_attr attr;

	ah_attr_init(&attr);
	return CONTRACT_CALL(rdma_modify_ah(scene->ah, &attr));
}

CONTRACT_CALLER(call_query_ah, struct contract_scene *scene,
	rdma_query_ah(scene->ah, &(struct rdma_ah_attr) {}))

static noinline int call_destroy_ah(struct contract_scene *scene)
{
	int ret = CONTRACT_CALL(rdma_destroy_ah_user(scene->ah, 0, NULL));

	scene->ah = NULL;
	return ret;
}

CONTRACT_CALLER(call_map_phys_fmr, struct contract_scene *scene,
	ib_map_phys_fmr(scene->fmr, &(u64) { 0 }, 1, 0))

static noinline int call_map_mr_sg(struct contract_scene *scene)
{
	struct scatterlist sg;

	sg_init_one(&sg, scene, sizeof(*scene));
	return CONTRACT_CALL(ib_map_mr_sg(scene->mr, &sg, 1, NULL, PAGE_SIZE)) != 1;
}

/* ib_map_mr_sg_pi() takes only MRs of type IB_MR_TYPE_INTEGRITY. */
static noinline int call_map_mr_sg_pi(struct contract_scene *scene)
{
	enum ib_mr_type type = scene->mr->type;
	struct scatterlist sg;
	int ret;

	sg_init_one(&sg, scene, sizeof(*scene));
	scene->mr->type = IB_MR_TYPE_INTEGRITY;
	ret = ib_map_mr_sg_pi(scene->mr, &sg, 1, NULL, NULL, 0, NULL, PAGE_SIZE);
	scene->mr->type = type;
	return ret;
}

CONTRACT_CALLER(call_check_mr_status, struct contract_scene *scene,
	ib_check_mr_status(scene->mr, IB_MR_CHECK_SIG_STATUS, &(struct ib_mr_status) {}))

static noinline int call_get_link_layer(struct contract_scene *scene)
{
	return CONTRACT_CALL(rdma_port_get_link_layer(scene->m->ibdev, 1)) ==
	       IB_LINK_LAYER_UNSPECIFIED;
}

static noinline int call_get_vector_affinity(struct contract_scene *scene)
{
	return CONTRACT_CALL(ib_get_vector_affinity(scene->m->ibdev, 0)) != cpu_possible_mask;
}

static noinline int call_modify_qp(struct contract_scene *scene)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return CONTRACT_CALL(ib_modify_qp(scene->qp, &attr, IB_QP_STATE));
}

static noinline int call_destroy_qp(struct contract_scene *scene)
{
	int ret = CONTRACT_CALL(ib_destroy_qp(scene->qp));

	scene->qp = NULL;
	return ret;
}

static noinline int call_destroy_cq(struct contract_scene *scene)
{
	int ret = CONTRACT_CALL(ib_destroy_cq_user(scene->cq, NULL));

	scene->cq = NULL;
	return ret;
}

static noinline int call_drain_sq(struct contract_scene *scene)
{
	ib_drain_sq(scene->qp);
	return CONTRACT_CALL(0);
}

static noinline int call_drain_rq(struct contract_scene *scene)
{
	ib_drain_rq(scene->qp);
	return CONTRACT_CALL(0);
}

static __always_inline int request(struct contract_scene *scene, u32 op, u64 *handle)
{
	struct ib_ca_request req = {
		.op = op, .version = KVERBS_CA_VERSION, .handle = *handle,
	};
	int ret = ib_ca_call(scene->m->ibdev, &req);

	*handle = req.handle;
	return ret;
}

static noinline int call_open_ca(struct contract_scene *scene)
{
	u64 handle = 0;
	int ret = request(scene, KVERBS_CA_OPEN, &handle);

	scene->in_method = NULL;
	return ret ?: request(scene, KVERBS_CA_CLOSE, &handle);
}

static noinline int call_close_ca(struct contract_scene *scene)
{
	void (*in_method)(struct contract_scene *scene) = scene->in_method;
	u64 handle = 0;
	int ret;

	scene->in_method = NULL;
	ret = request(scene, KVERBS_CA_OPEN, &handle);
	scene->in_method = in_method;
	return ret ?: CONTRACT_CALL(request(scene, KVERBS_CA_CLOSE, &handle));
}

/* In state ERR both send and receive requests may be posted. */
static void to_error(struct kunit *test, struct contract_scene *scene)
{
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(scene->qp));
}

/* Rule 1: methods that must not sleep */

#define VERB(verb, kind)	{ .name = #verb, .call = call_##verb, .object = kind }
static const struct verb atomic_verbs[] = {
	VERB(post_send, "qp"), VERB(post_recv, "qp"), VERB(post_srq_recv, "srq"),
	{ .name = "poll_cq", .call = call_poll_cq, .object = "cq", .under_rcu = true },
	VERB(req_notify_cq, "cq"), VERB(create_ah, "pd"), VERB(modify_ah, "pd"),
	VERB(query_ah, "pd"), VERB(destroy_ah, "pd"), VERB(map_phys_fmr, "fmr"),
	VERB(map_mr_sg, "mr"), VERB(map_mr_sg_pi, "mr"), VERB(check_mr_status, "mr"),
	VERB(get_link_layer, NULL), VERB(get_vector_affinity, NULL),
};

KUNIT_ARRAY_PARAM_DESC(atomic_verbs, atomic_verbs, name);

static void sleep_in_atomic_method_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	const struct verb *verb = test->param_value;
	char what[32];

	snprintf(what, sizeof(what), "%s slept", verb->name);
	to_error(test, scene);
	scene->in_method = verb->under_rcu ? contract_count_as_sleep : contract_sleep;
	KUNIT_EXPECT_EQ(test, 0, verb->call(scene));
	scene->in_method = NULL;
	CONTRACT_EXPECT(test, SLEEP, DRIVER, .what = what, .object = verb->object,
			.id = verb->object ? contract_object_id(scene, verb->object) : 0,
			.site = verb->call);
}

static void atomic_method_may_take_time(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	const struct verb *verb = test->param_value;

	to_error(test, scene);
	scene->in_method = contract_stay_awake;
	KUNIT_EXPECT_EQ(test, 0, verb->call(scene));
	scene->in_method = NULL;
	contract_expect_none(test);
}

static void methods_that_may_sleep_may(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	scene->in_method = contract_sleep;
	KUNIT_EXPECT_EQ(test, 0, call_create_ah_sleepable(scene));
	scene->in_method = contract_sleep;
	KUNIT_EXPECT_EQ(test, 0, rdma_destroy_ah_user(scene->ah, RDMA_DESTROY_AH_SLEEPABLE, NULL));
	scene->ah = NULL;
	KUNIT_EXPECT_EQ(test, 0, call_modify_qp(scene));
	KUNIT_EXPECT_EQ(test, 0, call_destroy_qp(scene));
	KUNIT_EXPECT_EQ(test, 0, call_destroy_cq(scene));
	contract_expect_none(test);
}

static int peek_cq(struct ib_cq *cq, int limit)
{
	return 0;
}

static int peek_cq_and_sleep(struct ib_cq *cq, int limit)
{
	current->nvcsw++;
	return 0;
}

/* ib_cq_flush() asks twice: how many completions there are, and whether none is left. */
static void sleep_in_peek_cq_is_reported(struct kunit *test)
{
	struct contract_expected expected[2] = {
		{ .rule = IB_RULE_SLEEP, .module = CONTRACT_DRIVER, .what = "peek_cq slept",
		  .object = "cq" },
	};
	struct mock *m = mock_up(test, CONTRACT_DEVICE);
	struct ib_cq *cq = kvt_cq(test, m->ibdev, 16, IB_POLL_DIRECT);

	m->ibdev->ops.peek_cq = peek_cq;
	KUNIT_EXPECT_EQ(test, 0, ib_cq_flush(cq));
	contract_expect_none(test);
	m->ibdev->ops.peek_cq = peek_cq_and_sleep;
	KUNIT_EXPECT_EQ(test, 0, ib_cq_flush(cq));
	expected[0].id = cq->res.id;
	expected[1] = expected[0];
	contract_expect_all(test, expected, ARRAY_SIZE(expected));
}

static void post_once(struct contract_scene *scene)
{
	scene->in_handler = NULL;
	call_post_send(scene);
}

static void sleep_of_a_post_by(struct kunit *test, struct contract_scene *scene,
			       void (*call)(struct contract_scene *scene),
			       void (*sleep)(struct contract_scene *scene))
{
	scene->in_handler = post_once;
	scene->in_method = sleep;
	call(scene);
	scene->in_method = NULL;
	CONTRACT_EXPECT(test, SLEEP, DRIVER, .what = "post_send slept", .object = "qp",
			.id = scene->qp->res.id, .site = call_post_send);
}

/* The handler only called the method that slept: one report, which blames the driver. */
static void sleep_in_method_is_not_the_callers(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	to_error(test, scene);
	sleep_of_a_post_by(test, scene, contract_call_comp_handler, contract_sleep);
}

static void call_here(void *scene)
{
	contract_call_comp_handler(scene);
}

static void call_in_softirq(struct contract_scene *scene)
{
	kvt_run_in_softirq(call_here, scene);
}

static void call_in_hardirq(struct contract_scene *scene)
{
	kvt_run_in_hardirq(call_here, scene);
}

static void post_in_softirq_is_watched(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	to_error(test, scene);
	sleep_of_a_post_by(test, scene, call_in_softirq, contract_count_as_sleep);
	/* Again: the checker's frame of the first post must be free. */
	sleep_of_a_post_by(test, scene, call_in_softirq, contract_count_as_sleep);
}

static void post_in_hardirq_is_watched(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	to_error(test, scene);
	sleep_of_a_post_by(test, scene, call_in_hardirq, contract_count_as_sleep);
	sleep_of_a_post_by(test, scene, call_in_hardirq, contract_count_as_sleep);
}

/* Rule 3: no callback inside a verbs call */

/* Called in a method: calls the QP's event handler, which posts once. */
static void tell_of_qp(struct contract_scene *scene)
{
	scene->in_method = NULL;
	scene->in_handler = post_once;
	contract_call_qp_event_handler(scene);
}

static void handler_inside_a_post_of_a_handler_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	to_error(test, scene);
	scene->in_handler = post_once;
	scene->in_method = tell_of_qp;
	contract_call_comp_handler(scene);
	CONTRACT_EXPECT(test, CHAIN, DRIVER, .what = "event handler inside post_send",
			.object = "qp", .id = scene->qp->res.id, .site = call_post_send);
	/* The frames of both handlers and both posts are gone: only the sleep is reported. */
	sleep_of_a_post_by(test, scene, contract_call_comp_handler, contract_sleep);
}

static const struct verb calling_verbs[] = {
	VERB(post_send, "cq"), VERB(post_recv, "cq"), VERB(post_srq_recv, "cq"),
	VERB(modify_qp, "cq"), VERB(destroy_qp, "cq"), VERB(destroy_cq, "cq"),
	VERB(poll_cq, "cq"), VERB(req_notify_cq, "cq"),
	VERB(drain_sq, "cq"), VERB(drain_rq, "cq"),
	VERB(open_ca, "cq"), VERB(close_ca, "cq"),
};

/* A scene whose objects are in a state in which the verb is legal. */
static struct contract_scene *scene_for(struct kunit *test, const struct verb *verb)
{
	struct contract_scene *scene = contract_scene_up(test);

	if (verb->call == call_destroy_cq)
		KUNIT_ASSERT_EQ(test, 0, call_destroy_qp(scene));
	else if (verb->call != call_modify_qp)
		to_error(test, scene);
	return scene;
}

/*
 * A second CQ, which is polled because of something that the driver does in a method.
 * poll_once() returns @left completions for it; polls of other CQs go to @other.
 */
static struct {
	struct ib_cq *cq;
	struct ib_cqe cqe;
	int (*other)(struct ib_cq *cq, int nr, struct ib_wc *wc);
	unsigned int left;
	unsigned int done;
	struct completion told;
} direct;

static void on_done(struct ib_cq *cq, struct ib_wc *wc)
{
	direct.done++;
	complete(&direct.told);
}

static int poll_once(struct ib_cq *cq, int nr, struct ib_wc *wc)
{
	if (cq != direct.cq)
		return direct.other(cq, nr, wc);
	if (!direct.left)
		return 0;
	direct.left--;
	memset(wc, 0, sizeof(*wc));
	wc->wr_cqe = &direct.cqe;
	return 1;
}

static void poll_direct(struct contract_scene *scene)
{
	direct.left = 1;
	ib_process_cq_direct(direct.cq, 1);
}

static void direct_up(struct kunit *test, struct contract_scene *scene, enum ib_poll_context ctx)
{
	struct ib_device *dev = scene->m->ibdev;

	memset(&direct, 0, sizeof(direct));
	init_completion(&direct.told);
	direct.cq = kvt_cq(test, dev, 16, ctx);
	direct.cqe.done = on_done;
	direct.other = dev->ops.poll_cq;
	dev->ops.poll_cq = poll_once;
}

static void notify_cq(struct contract_scene *scene)
{
	ib_cq_notify(scene->cq);
}

static void notify_cq_event(struct contract_scene *scene)
{
	ib_cq_notify_event(scene->cq, IB_EVENT_CQ_ERR);
}

static void notify_qp_event(struct contract_scene *scene)
{
	ib_qp_notify_event(scene->qp, IB_EVENT_QP_FATAL);
}

static void notify_srq_event(struct contract_scene *scene)
{
	ib_srq_notify_event(scene->srq, IB_EVENT_SRQ_LIMIT_REACHED);
}

/* Only once: arming the CQ after polling it calls a method, which must not notify again. */
static void notify_other(struct contract_scene *scene)
{
	scene->in_method = NULL;
	direct.left = 1;
	ib_cq_notify(direct.cq);
}

/* A callback that a driver causes from within a method. */
struct inner {
	const char *name;	/* name of the callback, for the case's description */
	/* Calls the callback directly, which breaks the rule. */
	void (*call)(struct contract_scene *scene);
	/* Has the core call it later, by ib_*_notify*(), as a driver must. */
	void (*notify)(struct contract_scene *scene);
	const char *object;	/* kind of the callback's object; NULL: the CQ in @direct */
	const char *what;	/* name of the callback in the report */
};

static const struct inner inners[] = {
	{ "completion", contract_call_comp_handler, notify_cq, "cq", "completion handler" },
	{ "CQ event", contract_call_cq_event_handler, notify_cq_event, "cq", "event handler" },
	{ "QP event", contract_call_qp_event_handler, notify_qp_event, "qp", "event handler" },
	{ "SRQ event", contract_call_srq_event_handler, notify_srq_event, "srq", "event handler" },
	{ "done()", poll_direct, notify_other, NULL, "done()" },
};

#define NR_INSIDE	(ARRAY_SIZE(calling_verbs) * ARRAY_SIZE(inners))

/* An address in here stands for a verb and a callback inside it; the bytes are not used. */
static const char insides[NR_INSIDE];

static const struct verb *verb_of(const char *inside)
{
	return &calling_verbs[(inside - insides) / ARRAY_SIZE(inners)];
}

static const struct inner *inner_of(const char *inside)
{
	return &inners[(inside - insides) % ARRAY_SIZE(inners)];
}

static const void *insides_gen_params(const void *prev, char *desc)
{
	const char *inside = prev ? (const char *)prev + 1 : insides;

	if (inside == insides + NR_INSIDE)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s: %s", verb_of(inside)->name,
		 inner_of(inside)->name);
	return inside;
}

/* A drain may poll a direct CQ, so done() is legal inside one. */
static bool is_legal(const struct verb *verb, const struct inner *inner)
{
	return inner->call == poll_direct &&
	       (verb->call == call_drain_sq || verb->call == call_drain_rq);
}

static void callback_inside_verb_is_reported(struct kunit *test)
{
	const struct verb *verb = verb_of(test->param_value);
	const struct inner *inner = inner_of(test->param_value);
	struct contract_scene *scene = scene_for(test, verb);
	char what[64];
	u32 id;

	if (inner->call == contract_call_qp_event_handler && !scene->qp)
		kunit_skip(test, "a CQ that is destroyed has no QP");
	direct_up(test, scene, IB_POLL_DIRECT);
	id = inner->object ? contract_object_id(scene, inner->object) : direct.cq->res.id;
	snprintf(what, sizeof(what), "%s inside %s", inner->what, verb->name);
	scene->in_method = inner->call;
	KUNIT_EXPECT_EQ(test, 0, verb->call(scene));
	scene->in_method = NULL;
	if (inner->call == poll_direct)
		KUNIT_EXPECT_EQ(test, 1, direct.done);
	else
		KUNIT_EXPECT_TRUE(test, completion_done(&scene->handled));
	if (is_legal(verb, inner))
		contract_expect_none(test);
	else
		CONTRACT_EXPECT(test, CHAIN, DRIVER, .what = what, .object = inner->object ?: "cq",
				.id = id, .site = verb->call);
}

static bool is_there(struct contract_scene *scene, const struct inner *inner)
{
	if (inner->call == contract_call_qp_event_handler)
		return scene->qp;
	return inner->call == poll_direct || inner->call == contract_call_srq_event_handler ||
	       scene->cq;
}

/* The driver uses ib_*_notify*() within the method, which calls nothing there. */
static void what_is_told_by_notify_is_not(struct kunit *test)
{
	const struct verb *verb = verb_of(test->param_value);
	const struct inner *inner = inner_of(test->param_value);
	struct contract_scene *scene = scene_for(test, verb);

	if (!is_there(scene, inner))
		kunit_skip(test, "a CQ that is destroyed has no QP");
	direct_up(test, scene, IB_POLL_SOFTIRQ);
	scene->in_method = inner->notify;
	KUNIT_EXPECT_EQ(test, 0, verb->call(scene));
	/* The handlers of an object that is being destroyed are not called. */
	if (is_there(scene, inner))
		KUNIT_EXPECT_TRUE(test, kvt_wait(inner->call == poll_direct ? &direct.told :
						 &scene->handled));
	scene->in_method = NULL;
	contract_expect_none(test);
}

/* Reports on methods that a drain calls give the caller of the drain as the call site */

static struct ib_device_ops whole;

static void ignore_event(struct ib_event *event, void *context)
{
}

static int tell_and_modify(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			   struct ib_udata *udata)
{
	struct ib_event event = { .device = qp->device, .element.qp = qp };

	qp->event_handler(&event, qp->qp_context);
	return whole.modify_qp(qp, attr, mask, udata);
}

static int sleep_and_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	current->nvcsw++;
	return whole.post_send(qp, wr, bad);
}

static int sleep_and_receive(struct ib_qp *qp, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad)
{
	current->nvcsw++;
	return whole.post_recv(qp, wr, bad);
}

static noinline void drain_sq(struct ib_qp *qp)
{
	ib_drain_sq(qp);
	barrier();
}

static noinline void drain_rq(struct ib_qp *qp)
{
	ib_drain_rq(qp);
	barrier();
}

static noinline void drain_qp(struct ib_qp *qp)
{
	ib_drain_qp(qp);
	barrier();
}

/* A call that drains a QP. */
struct drain {
	const char *name;	/* name of the call */
	void (*call)(struct ib_qp *qp);	/* makes the call */
	const char *posts[2];	/* reports on the posts that it makes, each after a modify_qp */
};

static const struct drain drains[] = {
	{ "ib_drain_sq", drain_sq, { "post_send slept" } },
	{ "ib_drain_rq", drain_rq, { "post_recv slept" } },
	{ "ib_drain_qp", drain_qp, { "post_send slept", "post_recv slept" } },
};

KUNIT_ARRAY_PARAM_DESC(drains, drains, name);

static struct ib_qp *drained_qp(struct kunit *test)
{
	struct mock *m = mock_up(test, CONTRACT_DEVICE);
	struct ib_cq *cq = kvt_cq(test, m->ibdev, 16, IB_POLL_DIRECT);
	struct ib_qp_init_attr init;
	struct ib_qp *qp;

	kvt_qp_init(&init, cq, cq);
	init.event_handler = ignore_event;
	qp = kvt_qp(test, kvt_pd(test, m->ibdev), &init);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(qp, 1));
	whole = m->ibdev->ops;
	m->ibdev->ops.modify_qp = tell_and_modify;
	m->ibdev->ops.post_send = sleep_and_send;
	m->ibdev->ops.post_recv = sleep_and_receive;
	return qp;
}

static void methods_of_a_drain_are_called_by_its_caller(struct kunit *test)
{
	const struct drain *drain = test->param_value;
	struct ib_qp *qp = drained_qp(test);
	struct contract_expected expected[4];
	unsigned int i;

	drain->call(qp);
	for (i = 0; i < ARRAY_SIZE(expected) && drain->posts[i / 2]; i++)
		expected[i] = (struct contract_expected) {
			.rule = i % 2 ? IB_RULE_SLEEP : IB_RULE_CHAIN,
			.module = CONTRACT_DRIVER, .site = drain->call,
			.what = i % 2 ? drain->posts[i / 2] : "event handler inside modify_qp",
			.object = "qp", .id = qp->res.id };
	contract_expect_all(test, expected, i);
}

/* A verbs call inside a handler is legal. */
static void verb_inside_handler_is_not(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	to_error(test, scene);
	scene->in_handler = post_once;
	contract_call_comp_handler(scene);
	contract_expect_none(test);
}

static struct ib_cq *own_cq;

static void call_own_handler(struct contract_scene *scene)
{
	own_cq->comp_handler(own_cq, own_cq->cq_context);
}

/* A driver may use its own device: a handler in the driver's module is exempt. */
static void handler_of_the_driver_itself_is_not(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct ib_cq_init_attr attr = { .cqe = 16 };
	struct ib_cq *own;

	own = KVT_PTR(test, ib_create_cq(scene->m->ibdev, kvt_complete_context, NULL,
					 &scene->handled, &attr));
	to_error(test, scene);
	own_cq = own;
	scene->in_method = call_own_handler;
	post_once(scene);
	KUNIT_EXPECT_TRUE(test, completion_done(&scene->handled));
	contract_expect_none(test);
	ib_destroy_cq(own);
}

/* Rule 4: one completion handler of a CQ at a time */

/* Number of handlers entered; each waits for the other one, up to KVT_TIMEOUT. */
static atomic_t inside;

static void meet_the_other(struct contract_scene *scene)
{
	atomic_inc(&inside);
	/* A sleep would be reported, too. */
	kvt_until_by(atomic_read(&inside) == 2, cond_resched());
}

static int call_in_thread(void *arg)
{
	contract_call_comp_handler(arg);
	return 0;
}

static void two_handlers_at_a_time_are_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct kvt_thread *a, *b;

	atomic_set(&inside, 0);
	scene->in_handler = meet_the_other;
	a = kvt_thread_start(test, 0, call_in_thread, scene);
	b = kvt_thread_start(test, kvt_other_cpu(), call_in_thread, scene);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(a));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(b));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&inside));
	CONTRACT_EXPECT(test, ONE_HANDLER, DRIVER, .what = "two completion handlers at a time",
			.object = "cq", .id = scene->cq->res.id,
			.site = contract_call_comp_handler);
}

static void one_handler_after_another_is_not(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct kvt_thread *t;
	int i;

	for (i = 0; i < 2; i++) {
		t = kvt_thread_start(test, i ? kvt_other_cpu() : 0, call_in_thread, scene);
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(t));
		KUNIT_EXPECT_TRUE(test, kvt_wait(&scene->handled));
	}
	contract_expect_none(test);
}

static int notify_in_thread(void *arg)
{
	unsigned int i;

	for (i = 0; i < 100; i++)
		notify_cq(arg);
	return 0;
}

static void handlers_told_by_notify_are_not(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct kvt_thread *a, *b;

	scene->in_handler = contract_stay_awake;
	a = kvt_thread_start(test, 0, notify_in_thread, scene);
	b = kvt_thread_start(test, kvt_other_cpu(), notify_in_thread, scene);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(a));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(b));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&scene->handled));
	contract_expect_none(test);
}

static struct kunit_case contract_driver_cases[] = {
	KUNIT_CASE_PARAM(sleep_in_atomic_method_is_reported, atomic_verbs_gen_params),
	KUNIT_CASE_PARAM(atomic_method_may_take_time, atomic_verbs_gen_params),
	KUNIT_CASE(methods_that_may_sleep_may),
	KUNIT_CASE(sleep_in_peek_cq_is_reported),
	KUNIT_CASE(sleep_in_method_is_not_the_callers),
	KUNIT_CASE(post_in_softirq_is_watched),
	KUNIT_CASE(post_in_hardirq_is_watched),
	KUNIT_CASE(handler_inside_a_post_of_a_handler_is_reported),
	KUNIT_CASE_PARAM(callback_inside_verb_is_reported, insides_gen_params),
	KUNIT_CASE_PARAM(what_is_told_by_notify_is_not, insides_gen_params),
	KUNIT_CASE_PARAM(methods_of_a_drain_are_called_by_its_caller, drains_gen_params),
	KUNIT_CASE(verb_inside_handler_is_not),
	KUNIT_CASE(handler_of_the_driver_itself_is_not),
	KUNIT_CASE(two_handlers_at_a_time_are_reported),
	KUNIT_CASE(one_handler_after_another_is_not),
	KUNIT_CASE(handlers_told_by_notify_are_not),
	{}
};
KVT_SUITE(contract_driver, .init = contract_init, .exit = contract_exit);

MODULE_DESCRIPTION("KUnit: the contract checker");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(KVERBS_INTERNAL);
