// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: it must report consumers that sleep in callbacks (rule 5), destroy
 * objects in use (rule 11) or post in a QP state that forbids it (rule 12), and no others.
 */
#include <linux/bottom_half.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <kverbs/delay.h>
#include <rdma/mr_pool.h>
#include <rdma/restrack.h>

#include "contract/callbacks.h"

/* Rule 5: callbacks must not sleep */

KUNIT_ARRAY_PARAM_DESC(callbacks, contract_callbacks, name);

static void e1_callback_sleeps_only_where_it_may(struct kunit *test)
{
	const struct contract_callback *callback = test->param_value;
	bool softirq = callback->in == CONTRACT_IN_SOFTIRQ;
	u32 id = callback->run(test, callback, softirq ? contract_count_as_sleep : contract_sleep);
	char what[64];

	if (callback->may_sleep) {
		contract_expect_none(test);
		return;
	}
	snprintf(what, sizeof(what), "%s slept", callback->what);
	CONTRACT_EXPECT(test, CALLBACK_SLEEP, SELF, .what = what, .object = callback->object,
			.id = id, .site = callback->function);
}

static void callback_may_take_time(struct kunit *test)
{
	const struct contract_callback *callback = test->param_value;

	callback->run(test, callback, contract_stay_awake);
	contract_expect_none(test);
}

/* IB_POLL_DIRECT: done() runs in the context of the caller that polls */

static void poll_direct(void *cq)
{
	ib_process_cq_direct(cq, -1);
}

static void poll_under_rcu(struct ib_cq *cq)
{
	rcu_read_lock();
	poll_direct(cq);
	rcu_read_unlock();
}

static void poll_with_preemption_off(struct ib_cq *cq)
{
	preempt_disable();
	poll_direct(cq);
	preempt_enable();
}

static void poll_with_bh_off(struct ib_cq *cq)
{
	local_bh_disable();
	poll_direct(cq);
	local_bh_enable();
}

static void poll_with_interrupts_off(struct ib_cq *cq)
{
	local_irq_disable();
	poll_direct(cq);
	local_irq_enable();
}

static void poll_in_softirq(struct ib_cq *cq)
{
	kvt_run_in_softirq(poll_direct, cq);
}

/* A context in which a direct CQ is polled. */
struct poller {
	const char *name;		/* description, the name of the test parameter */
	void (*poll)(struct ib_cq *cq);	/* polls the CQ in that context */
	bool counted;	/* this kernel configuration can tell that the context must not sleep */
};

static const struct poller pollers[] = {
	{ "RCU", poll_under_rcu,
	  IS_ENABLED(CONFIG_PREEMPT_RCU) || IS_ENABLED(CONFIG_PREEMPT_COUNT) },
	{ "preemption off", poll_with_preemption_off, IS_ENABLED(CONFIG_PREEMPT_COUNT) },
	{ "BH off", poll_with_bh_off, true },
	{ "interrupts off", poll_with_interrupts_off, true },
	{ "softirq", poll_in_softirq, true },
};

KUNIT_ARRAY_PARAM_DESC(pollers, pollers, name);

static void sleep_in_done_of_a_poller_that_may_not_is_reported(struct kunit *test)
{
	struct contract_done *dc = contract_done_up(test, IB_POLL_DIRECT);
	const struct poller *poller = test->param_value;

	contract_push_done(test, dc, contract_count_as_sleep);
	poller->poll(dc->cq);
	KUNIT_EXPECT_TRUE(test, completion_done(&dc->handled));
	if (poller->counted)
		CONTRACT_EXPECT(test, CALLBACK_SLEEP, SELF, .what = "done() slept", .object = "cq",
				.id = dc->cq->res.id, .site = contract_done_fn);
	else
		contract_expect_none(test);
}

static void done_of_a_poller_may_take_time(struct kunit *test)
{
	struct contract_done *dc = contract_done_up(test, IB_POLL_DIRECT);
	const struct poller *poller = test->param_value;

	contract_push_done(test, dc, contract_stay_awake);
	poller->poll(dc->cq);
	KUNIT_EXPECT_TRUE(test, completion_done(&dc->handled));
	contract_expect_none(test);
}

/* Rule 11: objects must not be destroyed while in use */

CONTRACT_CALLER(destroy_pd, struct contract_scene *scene, ib_dealloc_pd_user(scene->pd, NULL))
CONTRACT_CALLER(destroy_cq, struct contract_scene *scene, ib_destroy_cq_user(scene->cq, NULL))
CONTRACT_CALLER(destroy_srq, struct contract_scene *scene, ib_destroy_srq_user(scene->srq, NULL))
CONTRACT_CALLER(destroy_qp, struct contract_scene *scene, ib_destroy_qp(scene->qp))
CONTRACT_CALLER(dereg_mr, struct contract_scene *scene, ib_dereg_mr(scene->mr))

static void expect_busy(struct kunit *test, const char *object, u32 id, unsigned int users,
			const void *site)
{
	CONTRACT_EXPECT(test, BUSY, SELF, .what = "destroyed while in use", .object = object,
			.id = id, .count = users, .site = site);
}

/* The PD has five users: a QP, an SRQ, an MR, an FMR and an AH. */
static void pd_in_use_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	KUNIT_EXPECT_EQ(test, -EBUSY, destroy_pd(scene));
	expect_busy(test, "pd", scene->pd->res.id, 5, destroy_pd);
}

/* The QP counts as two users of the CQ, for sends and for receives. */
static void cq_in_use_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	KUNIT_EXPECT_EQ(test, -EBUSY, destroy_cq(scene));
	expect_busy(test, "cq", scene->cq->res.id, 2, destroy_cq);
}

static void srq_in_use_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct ib_qp_init_attr init;
	struct ib_qp *qp;

	kvt_qp_init(&init, scene->cq, scene->cq);
	init.srq = scene->srq;
	init.cap.max_recv_wr = 0;
	init.cap.max_recv_sge = 0;
	qp = KVT_PTR(test, ib_create_qp(scene->pd, &init));
	KUNIT_EXPECT_EQ(test, -EBUSY, destroy_srq(scene));
	expect_busy(test, "srq", scene->srq->res.id, 1, destroy_srq);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(qp));
	KUNIT_EXPECT_EQ(test, 0, destroy_srq(scene));
	scene->srq = NULL;
	contract_expect_none(test);
}

static int mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	return 0;
}

static void attached_qp_is_reported(struct kunit *test)
{
	union ib_gid gid = { .raw = { 0xff, 0x12 } };
	struct contract_scene *scene = contract_scene_up(test);
	struct ib_qp_init_attr init;

	scene->m->ibdev->ops.attach_mcast = mcast;
	scene->m->ibdev->ops.detach_mcast = mcast;
	KUNIT_ASSERT_EQ(test, 0, destroy_qp(scene));
	kvt_qp_init(&init, scene->cq, scene->cq);
	init.qp_type = IB_QPT_UD;
	scene->qp = KVT_PTR(test, ib_create_qp(scene->pd, &init));
	KUNIT_ASSERT_EQ(test, 0, ib_attach_mcast(scene->qp, &gid, 0xc001));
	KUNIT_EXPECT_EQ(test, -EBUSY, destroy_qp(scene));
	expect_busy(test, "qp", scene->qp->res.id, 1, destroy_qp);
	KUNIT_ASSERT_EQ(test, 0, ib_detach_mcast(scene->qp, &gid, 0xc001));
	KUNIT_EXPECT_EQ(test, 0, destroy_qp(scene));
	scene->qp = NULL;
	contract_expect_none(test);
}

/* Set by look_and_refuse(): error of a lookup of the MR by its number, or 0. */
static long found_meanwhile;

static int look_and_refuse(struct ib_mr *mr, struct ib_udata *udata)
{
	struct rdma_restrack_entry *res;

	res = rdma_restrack_get_byid(mr->device, RDMA_RESTRACK_MR, mr->res.id);
	found_meanwhile = PTR_ERR_OR_ZERO(res);
	if (!IS_ERR(res))
		rdma_restrack_put(res);
	return -EBUSY;
}

/* The driver refuses with -EBUSY, as if a memory window were bound to the MR. */
static void region_that_the_driver_has_in_use_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct ib_device_ops *ops = &scene->m->ibdev->ops;
	int (*dereg)(struct ib_mr *mr, struct ib_udata *udata) = ops->dereg_mr;
	u32 id = scene->mr->res.id;

	found_meanwhile = 0;
	ops->dereg_mr = look_and_refuse;
	KUNIT_EXPECT_EQ(test, -EBUSY, dereg_mr(scene));
	ops->dereg_mr = dereg;
	CONTRACT_EXPECT(test, BUSY, SELF, .object = "mr",
			.what = "destroyed while the driver uses it", .id = id, .site = dereg_mr);
	KUNIT_EXPECT_EQ(test, -ENOENT, found_meanwhile);
	kvt_expect_kept(test, scene->m->ibdev, &scene->mr->res, id);
}

/* As the software HCA and mainline's rdma_rxe refuse. */
static void region_with_windows_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	u32 id = scene->mr->res.id;

	mock_fail(scene->m, MOCK_dereg_mr, -EINVAL);
	KUNIT_EXPECT_EQ(test, -EINVAL, dereg_mr(scene));
	mock_fail_none(scene->m);
	CONTRACT_EXPECT(test, BUSY, SELF, .object = "mr",
			.what = "destroyed while the driver uses it", .id = id, .site = dereg_mr);
}

static void region_that_the_driver_cannot_free_is_not(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	mock_fail(scene->m, MOCK_dereg_mr, -EIO);
	KUNIT_EXPECT_EQ(test, -EIO, dereg_mr(scene));
	mock_fail_none(scene->m);
	contract_expect_none(test);
}

static noinline void destroy_pool(struct ib_qp *qp)
{
	ib_mr_pool_destroy(qp, &qp->rdma_mrs);
	barrier();
}

/* The refused MR stays in the pool, and a second destroy frees it. */
static void pool_region_that_the_driver_has_in_use_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct ib_qp *qp = scene->qp;
	struct ib_mr *mr;
	u32 id;

	KUNIT_ASSERT_EQ(test, 0, ib_mr_pool_init(qp, &qp->rdma_mrs, 3, IB_MR_TYPE_MEM_REG, 1, 0));
	mr = list_first_entry(&qp->rdma_mrs, struct ib_mr, qp_entry);
	id = mr->res.id;
	mock_fail_nth(scene->m, MOCK_dereg_mr, 1, -EBUSY);
	destroy_pool(qp);
	mock_fail_none(scene->m);
	kvt_expect_kept(test, scene->m->ibdev, &mr->res, id);
	KUNIT_ASSERT_PTR_EQ(test, &mr->qp_entry, qp->rdma_mrs.next);
	KUNIT_EXPECT_TRUE(test, list_is_singular(&qp->rdma_mrs));
	CONTRACT_EXPECT(test, BUSY, SELF, .object = "mr",
			.what = "destroyed while the driver uses it", .id = id,
			.site = destroy_pool);
	destroy_pool(qp);
	KUNIT_EXPECT_TRUE(test, list_empty(&qp->rdma_mrs));
	contract_expect_none(test);
}

/* The QP is destroyed nevertheless; the report tells how many pool MRs are in use. */
static void qp_with_pool_regions_in_use_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	u32 id = scene->qp->res.id;

	scene->qp->mrs_used = 3;
	KUNIT_EXPECT_EQ(test, 0, destroy_qp(scene));
	scene->qp = NULL;
	CONTRACT_EXPECT(test, BUSY, SELF, .object = "qp", .id = id,
			.what = "destroyed while 3 MRs of its pool are in use", .count = 3,
			.site = destroy_qp);
}

static noinline void free_cq(struct ib_cq *cq)
{
	ib_free_cq(cq);
	barrier();
}

static void polled_cq_in_use_is_reported(struct kunit *test)
{
	struct contract_done *dc = contract_done_up(test, IB_POLL_SOFTIRQ);
	u32 id = dc->cq->res.id;

	free_cq(dc->cq);
	expect_busy(test, "cq", id, 2, free_cq);
}

static void unused_objects_are_not(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	KUNIT_EXPECT_EQ(test, 0, destroy_qp(scene));
	scene->qp = NULL;
	KUNIT_EXPECT_EQ(test, 0, destroy_srq(scene));
	scene->srq = NULL;
	KUNIT_EXPECT_EQ(test, 0, destroy_cq(scene));
	scene->cq = NULL;
	KUNIT_EXPECT_EQ(test, 0, dereg_mr(scene));
	scene->mr = NULL;
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_fmr(scene->fmr));
	scene->fmr = NULL;
	rdma_destroy_ah(scene->ah, 0);
	scene->ah = NULL;
	KUNIT_EXPECT_EQ(test, 0, destroy_pd(scene));
	scene->pd = NULL;
	contract_expect_none(test);
}

/* Rule 12: work requests must not be posted in a state that forbids it */

CONTRACT_CALLER(send, struct contract_scene *scene, CONTRACT_SEND(scene->qp))
CONTRACT_CALLER(receive, struct contract_scene *scene, CONTRACT_RECV(ib_post_recv, scene->qp))

/* Moves the QP to @state; to RTR or RTS it is moved from INIT. */
static void move_to(struct kunit *test, struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .path_mtu = IB_MTU_1024, .min_rnr_timer = 1, .timeout = 1 };
	int rtr = IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		  IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER;
	int rts = IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
		  IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC;

	attr.qp_state = state;
	if (state == IB_QPS_RESET || state == IB_QPS_ERR) {
		KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(qp, &attr, IB_QP_STATE));
		return;
	}
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_dlid(&attr.ah_attr, 0x22);
	attr.qp_state = IB_QPS_RTR;
	if (state != IB_QPS_INIT)
		KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(qp, &attr, rtr));
	attr.qp_state = IB_QPS_RTS;
	if (state == IB_QPS_RTS)
		KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(qp, &attr, rts));
}

/* Whether a QP state allows posting. */
struct posting {
	enum ib_qp_state state;
	const char *send;	/* text of the report on a send; NULL if sends are allowed */
	const char *receive;	/* the same for a receive */
};

static const struct posting postings[] = {
	{ IB_QPS_RESET, "post_send in state RESET", "post_recv in state RESET" },
	{ IB_QPS_INIT, "post_send in state INIT" },
	{ IB_QPS_RTR, "post_send in state RTR" },
	{ IB_QPS_RTS },
	{ IB_QPS_ERR },
};

static void posting_name(const struct posting *posting, char *desc)
{
	static const char * const names[] = {
		[IB_QPS_RESET] = "RESET", [IB_QPS_INIT] = "INIT", [IB_QPS_RTR] = "RTR",
		[IB_QPS_RTS] = "RTS", [IB_QPS_ERR] = "ERR",
	};

	strscpy(desc, names[posting->state], KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(postings, postings, posting_name);

static void expect_of_post(struct kunit *test, struct contract_scene *scene, const char *what,
			   const void *site)
{
	if (!what)
		contract_expect_none(test);
	else
		CONTRACT_EXPECT(test, STATE, SELF, .what = what, .object = "qp",
				.id = scene->qp->res.id, .site = site);
}

static void post_where_the_state_forbids_it_is_reported(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	const struct posting *posting = test->param_value;

	move_to(test, scene->qp, posting->state);
	KUNIT_EXPECT_EQ(test, 0, send(scene));
	expect_of_post(test, scene, posting->send, send);
	KUNIT_EXPECT_EQ(test, 0, receive(scene));
	expect_of_post(test, scene, posting->receive, receive);
}

/*
 * Stands for another thread whose change of state comes after the driver's modify_qp of the
 * first change and before the end of that ib_modify_qp().
 */
static void overtake(struct contract_scene *scene)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	scene->after_modify_qp = NULL;
	ib_modify_qp(scene->qp, &attr, IB_QP_STATE);
}

static void changes_of_state_at_a_time_accuse_nobody(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);

	scene->after_modify_qp = overtake;
	move_to(test, scene->qp, IB_QPS_RTR);
	KUNIT_EXPECT_NULL(test, scene->after_modify_qp);
	KUNIT_EXPECT_EQ(test, 0, send(scene));
	contract_expect_none(test);
	/* The next change, which is not overtaken, makes the state known again. */
	move_to(test, scene->qp, IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, 0, send(scene));
	expect_of_post(test, scene, "post_send in state RESET", send);
}

/* A thread that resets a QP, and stands still when the driver has done it. */
struct reset {
	struct kunit *test;	/* the running case */
	struct contract_scene *scene;
};

/* Others saw, by a query, that it was reset; they lead it back to the state it had before. */
static void lead_back(void *arg)
{
	struct reset *r = arg;

	KUNIT_EXPECT_EQ(r->test, 0, kvt_qp_to_init(r->scene->qp, 1));
	move_to(r->test, r->scene->qp, IB_QPS_RTS);
}

static void change_of_state_that_ends_late_accuses_nobody(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct reset r = { .test = test, .scene = scene };

	move_to(test, scene->qp, IB_QPS_RTS);
	kverbs_delay_set("qp_modified", lead_back, &r);
	move_to(test, scene->qp, IB_QPS_RESET);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, send(scene));
	contract_expect_none(test);
	/* After the next modify_qp() without a concurrent one, the state is known again. */
	move_to(test, scene->qp, IB_QPS_RESET);
	KUNIT_EXPECT_EQ(test, 0, send(scene));
	expect_of_post(test, scene, "post_send in state RESET", send);
}

static struct kunit_case contract_consumer_cases[] = {
	KUNIT_CASE_PARAM(e1_callback_sleeps_only_where_it_may, callbacks_gen_params),
	KUNIT_CASE_PARAM(callback_may_take_time, callbacks_gen_params),
	KUNIT_CASE_PARAM(sleep_in_done_of_a_poller_that_may_not_is_reported, pollers_gen_params),
	KUNIT_CASE_PARAM(done_of_a_poller_may_take_time, pollers_gen_params),
	KUNIT_CASE(pd_in_use_is_reported),
	KUNIT_CASE(cq_in_use_is_reported),
	KUNIT_CASE(srq_in_use_is_reported),
	KUNIT_CASE(attached_qp_is_reported),
	KUNIT_CASE(region_that_the_driver_has_in_use_is_reported),
	KUNIT_CASE(region_with_windows_is_reported),
	KUNIT_CASE(region_that_the_driver_cannot_free_is_not),
	KUNIT_CASE(pool_region_that_the_driver_has_in_use_is_reported),
	KUNIT_CASE(qp_with_pool_regions_in_use_is_reported),
	KUNIT_CASE(polled_cq_in_use_is_reported),
	KUNIT_CASE(unused_objects_are_not),
	KUNIT_CASE_PARAM(post_where_the_state_forbids_it_is_reported, postings_gen_params),
	KUNIT_CASE(changes_of_state_at_a_time_accuse_nobody),
	KUNIT_CASE(change_of_state_that_ends_late_accuses_nobody),
	{}
};
KVT_SUITE(contract_consumer, .init = contract_init, .exit = contract_exit);
