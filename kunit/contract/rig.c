// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rig of the contract checker's suites: compares what the checker has reported with what was
 * expected, and provides a device and objects whose methods and callbacks do what a case says.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>

#include "contract/rig.h"

/* Long enough to sleep or be preempted in, short enough to be repeated often. */
#define SPIN_US		200

struct rig {
	enum ib_contract_mode mode;
	u64 counts[IB_RULES];
};

static void look(struct rig *rig)
{
	unsigned int rule;

	for (rule = 0; rule < IB_RULES; rule++)
		rig->counts[rule] = ib_contract_count(rule);
}

static void restore_mode(void *arg)
{
	struct rig *rig = arg;

	ib_contract_set_mode(rig->mode);
}

int contract_init(struct kunit *test)
{
	struct rig *rig;
	int ret;

	kvt_not_with_rt(test, "there is no checker");
	rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);
	if (!rig)
		return -ENOMEM;
	rig->mode = ib_contract_get_mode();
	look(rig);
	test->priv = rig;
	ret = kunit_add_action_or_reset(test, restore_mode, rig);
	return ret ?: ib_contract_set_mode(IB_CONTRACT_WARN);
}

/* Turns the checker off: the case's objects are freed after this, unwatched. */
void contract_exit(struct kunit *test)
{
	if (!test->priv)
		return;
	contract_expect_none(test);
	contract_off(test);
}

void contract_off(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_OFF));
}

/* A site is the address of the function itself, or a return address within it. */
static bool is_in(unsigned long site, const void *function)
{
	char at[KSYM_SYMBOL_LEN], name[KSYM_SYMBOL_LEN];

	if (site == (unsigned long)function)
		return true;
	snprintf(at, sizeof(at), "%pB", (void *)site);
	snprintf(name, sizeof(name), "%ps", function);
	*strchrnul(at, '+') = '\0';
	*strchrnul(name, ' ') = '\0';
	return !strcmp(at, name);
}

static bool is_of_core(unsigned long site)
{
	char at[KSYM_SYMBOL_LEN];

	snprintf(at, sizeof(at), "%pS", (void *)site);
	return strstr(at, " [kverbs]");
}

static void expect_report(struct kunit *test, const struct contract_expected *expected,
			  const struct ib_contract_report *report)
{
	char object[sizeof(report->object)] = "";

	if (expected->object)
		snprintf(object, sizeof(object), "%s %u", expected->object, expected->id);
	KUNIT_EXPECT_EQ(test, expected->rule, report->rule);
	KUNIT_EXPECT_STREQ(test, expected->module, report->module);
	KUNIT_EXPECT_STREQ(test, expected->no_device ? "" : expected->device ?: CONTRACT_DEVICE,
			   report->device);
	KUNIT_EXPECT_STREQ(test, (const char *)object, report->object);
	KUNIT_EXPECT_EQ(test, expected->count ?: 1, report->count);
	KUNIT_EXPECT_TRUE_MSG(test, strstarts(report->what, expected->what),
			      "\"%s\", not \"%s\"", report->what, expected->what);
	if (expected->site)
		KUNIT_EXPECT_TRUE_MSG(test, is_in(report->site, expected->site),
				      "%pS is not in %ps", (void *)report->site,
				      expected->site);
	else
		KUNIT_EXPECT_TRUE_MSG(test, is_of_core(report->site), "%pS is not of the core",
				      (void *)report->site);
}

static void expect_counts(struct kunit *test, const struct contract_expected *expected,
			  unsigned int nr)
{
	struct rig *rig = test->priv;
	unsigned int rule, i;

	for (i = 0; i < nr; i++)
		rig->counts[expected[i].rule]++;
	for (rule = 0; rule < IB_RULES; rule++)
		KUNIT_EXPECT_EQ_MSG(test, rig->counts[rule], ib_contract_count(rule), "rule %u",
				    rule);
	look(rig);
}

void contract_expect_all(struct kunit *test, const struct contract_expected *expected,
			 unsigned int nr)
{
	struct ib_contract_report report;
	unsigned int i;

	expect_counts(test, expected, nr);
	/* No assertions: the case must go on, since it has objects to free. */
	for (i = 0; i < nr; i++) {
		if (ib_contract_read(nr - 1 - i, &report))
			expect_report(test, &expected[i], &report);
		else
			KUNIT_FAIL(test, "there is no report");
	}
}

void contract_expect(struct kunit *test, const struct contract_expected *expected)
{
	contract_expect_all(test, expected, 1);
}

/* For reports that the case has checked by other means. */
void contract_expect_counted(struct kunit *test, enum ib_contract_rule rule, unsigned int nr)
{
	struct rig *rig = test->priv;

	rig->counts[rule] += nr;
	contract_expect_none(test);
}

void contract_expect_none(struct kunit *test)
{
	expect_counts(test, NULL, 0);
}

/* For @in_method and @in_handler: things that a method or callback may do, or must not */

/* For process context. Repeats, for the timer may fire before the task is switched away. */
void contract_sleep(struct contract_scene *scene)
{
	unsigned long before = current->nvcsw;

	while (current->nvcsw == before)
		usleep_range(SPIN_US, 2 * SPIN_US);
}

/* Pretends to sleep, where the kernel itself would complain of a sleep, as under RCU. */
void contract_count_as_sleep(struct contract_scene *scene)
{
	current->nvcsw++;
}

/* Lets others run where that is allowed: a preemption must not count as a sleep. */
void contract_stay_awake(struct contract_scene *scene)
{
	udelay(SPIN_US);
	if (preemptible() && !rcu_preempt_depth())
		cond_resched();
}

/* The driver: methods that call the scene's @in_method, and do little else */

/* The scene whose @in_method the methods call; one scene exists at a time. */
static struct contract_scene *of_methods;

static void in_method(void)
{
	struct contract_scene *scene = of_methods;

	if (scene && scene->in_method)
		scene->in_method(scene);
}

#define METHOD(name, result, ...)						\
static int name(__VA_ARGS__)							\
{										\
	in_method();								\
	return result;								\
}

METHOD(post_send, 0, struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
METHOD(post_recv, 0, struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
METHOD(post_srq_recv, 0, struct ib_srq *srq, const struct ib_recv_wr *wr,
	const struct ib_recv_wr **bad)
METHOD(poll_cq, 0, struct ib_cq *cq, int nr, struct ib_wc *wc)
METHOD(req_notify_cq, 0, struct ib_cq *cq, enum ib_cq_notify_flags flags)
METHOD(create_ah, 0, struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
METHOD(modify_ah, 0, struct ib_ah *ah, struct rdma_ah_attr *attr)
METHOD(destroy_ah, 0, struct ib_ah *ah, u32 flags)
METHOD(map_phys_fmr, 0, struct ib_fmr *fmr, u64 *pages, int nr, u64 iova)
METHOD(map_mr_sg, nr, struct ib_mr *mr, struct scatterlist *sg, int nr, unsigned int *offset)
METHOD(map_mr_sg_pi, 0, struct ib_mr *mr, struct scatterlist *data, int nr_data,
	unsigned int *data_offset, struct scatterlist *meta, int nr_meta, unsigned int *meta_offset)
METHOD(check_mr_status, 0, struct ib_mr *mr, u32 check, struct ib_mr_status *status)

static int query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	in_method();
	rdma_ah_set_port_num(attr, 1);
	return 0;
}

/* The mock's methods, which some of those below call after @in_method. */
static struct ib_device_ops mocks;

static enum rdma_link_layer get_link_layer(struct ib_device *ibdev, u32 port)
{
	in_method();
	return IB_LINK_LAYER_INFINIBAND;
}

static const struct cpumask *get_vector_affinity(struct ib_device *ibdev, int vector)
{
	in_method();
	return cpu_possible_mask;
}

static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct contract_scene *scene = of_methods;
	int ret;

	in_method();
	ret = mocks.modify_qp(qp, attr, mask, udata);
	if (scene && scene->after_modify_qp)
		scene->after_modify_qp(scene);
	return ret;
}

static int destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	in_method();
	return mocks.destroy_qp(qp, udata);
}

static int destroy_cq(struct ib_cq *cq, struct ib_udata *udata)
{
	in_method();
	return mocks.destroy_cq(cq, udata);
}

static void drain(struct ib_qp *qp)
{
	in_method();
}

static int open_ca(struct ib_ca *ca, const void *vendor, size_t len)
{
	in_method();
	return mocks.open_ca(ca, vendor, len);
}

static void close_ca(struct ib_ca *ca)
{
	in_method();
	mocks.close_ca(ca);
}

static void contract_methods(struct ib_device_ops *ops)
{
	mocks = *ops;
	ops->post_send = post_send;
	ops->post_recv = post_recv;
	ops->post_srq_recv = post_srq_recv;
	ops->poll_cq = poll_cq;
	ops->req_notify_cq = req_notify_cq;
	ops->create_ah = create_ah;
	ops->modify_ah = modify_ah;
	ops->query_ah = query_ah;
	ops->destroy_ah = destroy_ah;
	ops->map_phys_fmr = map_phys_fmr;
	ops->map_mr_sg = map_mr_sg;
	ops->map_mr_sg_pi = map_mr_sg_pi;
	ops->check_mr_status = check_mr_status;
	ops->get_link_layer = get_link_layer;
	ops->get_vector_affinity = get_vector_affinity;
	ops->modify_qp = modify_qp;
	ops->destroy_qp = destroy_qp;
	ops->destroy_cq = destroy_cq;
	ops->drain_sq = drain;
	ops->drain_rq = drain;
	ops->open_ca = open_ca;
	ops->close_ca = close_ca;
}

static void scene_end(void *arg)
{
	struct contract_scene *scene = arg;

	scene->in_method = NULL;
	scene->in_handler = NULL;
	if (scene->ah)
		rdma_destroy_ah(scene->ah, 0);
	if (scene->fmr)
		ib_dealloc_fmr(scene->fmr);
	if (scene->mr)
		ib_dereg_mr(scene->mr);
	if (scene->qp)
		ib_destroy_qp(scene->qp);
	if (scene->srq)
		ib_destroy_srq(scene->srq);
	if (scene->cq)
		ib_destroy_cq(scene->cq);
	if (scene->pd)
		ib_dealloc_pd(scene->pd);
	of_methods = NULL;
}

/* Does not create the device yet, so that the case may change the methods in @m->ops. */
struct contract_scene *contract_scene_new(struct kunit *test)
{
	struct contract_scene *scene = kvt_zalloc(test, sizeof(*scene));

	init_completion(&scene->handled);
	scene->m = mock_new(test);
	contract_methods(&scene->m->ops);
	of_methods = scene;
	return scene;
}

void contract_scene_device(struct kunit *test, struct contract_scene *scene)
{
	mock_start(test, scene->m, CONTRACT_DEVICE);
	kvt_defer(test, scene_end, scene);
}

static void make_ah(struct contract_scene *scene)
{
	struct rdma_ah_attr attr = {};

	attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_dlid(&attr, 0x22);
	scene->ah = rdma_create_ah(scene->pd, &attr, 0);
}

static void make_memory(struct contract_scene *scene)
{
	struct ib_fmr_attr attr = { .max_pages = 1, .max_maps = 1, .page_shift = PAGE_SHIFT };

	scene->mr = ib_alloc_mr(scene->pd, IB_MR_TYPE_MEM_REG, 1);
	scene->fmr = ib_alloc_fmr(scene->pd, 0, &attr);
}

static void make_queues(struct contract_scene *scene)
{
	struct ib_cq_init_attr cq_attr = { .cqe = 16 };
	struct ib_srq_init_attr srq_init = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.event_handler = contract_event_handler,
		.srq_context = scene,
	};
	struct ib_qp_init_attr init;

	scene->cq = ib_create_cq(scene->m->ibdev, contract_comp_handler, contract_event_handler,
				 scene, &cq_attr);
	scene->srq = ib_create_srq(scene->pd, &srq_init);
	kvt_qp_init(&init, scene->cq, scene->cq);
	init.event_handler = contract_event_handler;
	init.qp_context = scene;
	scene->qp = ib_create_qp(scene->pd, &init);
}

static bool bad(const void *object)
{
	return IS_ERR_OR_NULL(object);
}

void contract_scene_objects(struct kunit *test, struct contract_scene *scene)
{
	scene->pd = ib_alloc_pd(scene->m->ibdev, 0);
	KUNIT_ASSERT_FALSE(test, bad(scene->pd));
	make_queues(scene);
	make_memory(scene);
	make_ah(scene);
	KUNIT_ASSERT_FALSE(test, bad(scene->cq) || bad(scene->srq) || bad(scene->qp) ||
				 bad(scene->mr) || bad(scene->fmr) || bad(scene->ah));
}

/* The QP is left in INIT; a case that needs another state modifies the QP itself. */
struct contract_scene *contract_scene_up(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_new(test);

	contract_scene_device(test, scene);
	contract_scene_objects(test, scene);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(scene->qp, 1));
	return scene;
}

/* The number of the scene's object of a kind, as a report gives it. */
u32 contract_object_id(const struct contract_scene *scene, const char *kind)
{
	if (!strcmp(kind, "qp"))
		return scene->qp->res.id;
	if (!strcmp(kind, "srq"))
		return scene->srq->res.id;
	if (!strcmp(kind, "cq"))
		return scene->cq->res.id;
	if (!strcmp(kind, "fmr"))
		return scene->fmr->res.id;
	if (!strcmp(kind, "mr"))
		return scene->mr->res.id;
	/* An AH has no number of its own: the report names its PD. */
	return scene->pd->res.id;
}

/* The consumer */

static void handler(struct contract_scene *scene)
{
	complete(&scene->handled);
	if (scene->in_handler)
		scene->in_handler(scene);
}

void contract_request_done(struct ib_ca_request *req)
{
	handler(req->context);
}

void contract_comp_handler(struct ib_cq *cq, void *context)
{
	handler(context);
}

void contract_event_handler(struct ib_event *event, void *context)
{
	handler(context);
}

void contract_call_comp_handler(struct contract_scene *scene)
{
	scene->cq->comp_handler(scene->cq, scene->cq->cq_context);
	/* Prevents a tail call: the call must return to this function. */
	barrier();
}

void contract_call_cq_event_handler(struct contract_scene *scene)
{
	struct ib_event event = {
		.device = scene->m->ibdev,
		.event = IB_EVENT_CQ_ERR,
		.element.cq = scene->cq,
	};

	scene->cq->event_handler(&event, scene->cq->cq_context);
}

void contract_call_qp_event_handler(struct contract_scene *scene)
{
	struct ib_event event = {
		.device = scene->m->ibdev,
		.event = IB_EVENT_QP_FATAL,
		.element.qp = scene->qp,
	};

	scene->qp->event_handler(&event, scene->qp->qp_context);
}

void contract_call_srq_event_handler(struct contract_scene *scene)
{
	struct ib_event event = {
		.device = scene->m->ibdev,
		.event = IB_EVENT_SRQ_ERR,
		.element.srq = scene->srq,
	};

	scene->srq->event_handler(&event, scene->srq->srq_context);
}
