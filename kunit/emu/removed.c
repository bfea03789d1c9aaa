// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects that somebody left on a software HCA, and destroys while the device is removed,
 * which is against the rules: the device ends their work, once, and nobody uses freed
 * memory.
 */
#include <kverbs/contract.h>
#include <kverbs/delay.h>

#include "emu/rig_net.h"

#define NAME	"emugone"

/* Two connected queue pairs of a device that goes, and what they use. */
struct left {
	struct kunit *test;	/* the running case */
	struct rig *r;		/* the connection; both ends have the same device, PD and CQs */
	struct kvt_thread *thread;	/* destroys it all */
	bool waits;		/* the thread did not get through in the middle of the walk */
	bool ended;		/* but after that */
};

static int destroy_qp(struct rig_end *e)
{
	struct ib_qp *qp = e->qp;

	e->qp = NULL;
	return IS_ERR_OR_NULL(qp) ? 0 : ib_destroy_qp(qp);
}

static void destroy_cq(struct ib_cq **cq)
{
	if (!IS_ERR_OR_NULL(*cq))
		ib_destroy_cq(*cq);
	*cq = NULL;
}

static int destroy_all(void *arg)
{
	struct rig *r = arg;
	int ret = destroy_qp(&r->a);

	ret = destroy_qp(&r->b) ?: ret;
	destroy_cq(&r->a.scq);
	destroy_cq(&r->a.rcq);
	if (!IS_ERR_OR_NULL(r->a.pd))
		ib_dealloc_pd(r->a.pd);
	r->a.pd = NULL;
	return ret;
}

static void left_end(void *arg)
{
	destroy_all(arg);
}

static void make_objects(struct kunit *test, struct rig *r)
{
	struct ib_cq_init_attr attr = { .cqe = RIG_CQE };

	r->a.pd = KVT_PTR(test, ib_alloc_pd(r->a.ibdev, 0));
	r->a.scq = KVT_PTR(test, ib_create_cq(r->a.ibdev, NULL, NULL, NULL, &attr));
	r->a.rcq = KVT_PTR(test, ib_create_cq(r->a.ibdev, NULL, NULL, NULL, &attr));
	r->init.send_cq = r->a.scq;
	r->init.recv_cq = r->a.rcq;
	r->b = r->a;
	r->a.qp = KVT_PTR(test, ib_create_qp(r->a.pd, &r->init));
	r->b.qp = KVT_PTR(test, ib_create_qp(r->b.pd, &r->init));
}

static void watch_contract(void *arg)
{
	ib_contract_set_mode((uintptr_t)arg);
}

/* What these cases do is against the rules, and they are not about the reports. */
static void break_contract(struct kunit *test)
{
	void *mode = (void *)(uintptr_t)ib_contract_get_mode();

	KUNIT_ASSERT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_OFF));
	kvt_defer(test, watch_contract, mode);
}

/* They hold no reference on the device, as objects of a client would not. */
static struct left *left_new(struct kunit *test)
{
	struct left *l = kvt_zalloc(test, sizeof(*l));
	struct ib_port_attr attr = {};
	struct rig *r = rig_alloc(test);

	l->test = test;
	l->r = r;
	r->init.event_handler = NULL;
	break_contract(test);
	rig_device(test, NAME, 1, NULL);
	kvt_defer(test, left_end, r);
	r->a.port = 1;
	r->a.gid_index = -1;
	r->a.ibdev = KVT_PTR(test, ib_device_get_by_name(NAME, RDMA_DRIVER_UNKNOWN));
	ib_device_put(r->a.ibdev);
	KUNIT_ASSERT_EQ(test, 0, ib_query_port(r->a.ibdev, 1, &attr));
	r->a.lid = attr.lid;
	make_objects(test, r);
	rig_connect(test, r);
	l->thread = kvt_thread_new(test, -1, destroy_all, r);
	return l;
}

/* A send that waits for a receive, for ever, and a receive. */
static void leave_work(struct kunit *test, struct rig *r)
{
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->a, 1, 0, 0));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 0));
	KUNIT_ASSERT_TRUE(test, rig_empty(r->a.scq));
}

static void device_goes(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, 0, kvt_write_file("/sys/kernel/config/kverbs_emu/" NAME "/enable",
						"0"));
}

static void let_thread_end(void *arg)
{
	struct left *l = arg;

	l->ended = kvt_thread_join(l->thread);
}

static void let_thread_try(void *arg)
{
	struct left *l = arg;

	kvt_thread_go(l->thread);
	l->waits = kvt_thread_waits(l->thread);
	kverbs_delay_set("emu_quiesced", let_thread_end, l);
}

/* The walk has found an object of its kind when another thread destroys them all. */
static void destroyed_at(struct kunit *test, const char *place)
{
	struct left *l = left_new(test);

	leave_work(test, l->r);
	kverbs_delay_set(place, let_thread_try, l);
	device_goes(test);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_TRUE(test, l->waits);
	KUNIT_EXPECT_TRUE(test, l->ended);
	KUNIT_EXPECT_EQ(test, 0, l->thread->ret);
}

static void destruction_of_a_qp_waits_for_the_walk(struct kunit *test)
{
	destroyed_at(test, "emu_quiesce_qp");
}

static void destruction_of_a_cq_waits_for_the_walk(struct kunit *test)
{
	destroyed_at(test, "emu_quiesce_cq");
}

/* Nothing is flushed: the queue pair has ended as one that is destroyed does. */
static void use_and_destroy(void *arg)
{
	struct left *l = arg;
	struct kunit *test = l->test;
	struct rig *r = l->r;

	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.rcq));
	KUNIT_EXPECT_EQ(test, -EINVAL, rig_send(&r->a, 3, 0, 0));
	KUNIT_EXPECT_EQ(test, -ENODEV, rig_to(r->a.qp, IB_QPS_ERR));
	KUNIT_EXPECT_EQ(test, 0, destroy_all(r));
	KUNIT_EXPECT_NULL(test, r->a.qp);
}

static void qp_at_work_is_destroyed_after_the_walk(struct kunit *test)
{
	struct left *l = left_new(test);

	leave_work(test, l->r);
	kverbs_delay_set("emu_quiesced", use_and_destroy, l);
	device_goes(test);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
}

static void make_more(void *arg)
{
	struct left *l = arg;
	struct kunit *test = l->test;
	struct rig *r = l->r;
	struct ib_cq_init_attr attr = { .cqe = RIG_CQE };
	struct ib_qp *qp = ib_create_qp(r->a.pd, &r->init);
	struct ib_cq *cq = ib_create_cq(r->a.ibdev, NULL, NULL, NULL, &attr);

	KUNIT_EXPECT_EQ(test, -ENODEV, PTR_ERR_OR_ZERO(qp));
	KUNIT_EXPECT_EQ(test, -ENODEV, PTR_ERR_OR_ZERO(cq));
	if (!IS_ERR(qp))
		ib_destroy_qp(qp);
	if (!IS_ERR(cq))
		ib_destroy_cq(cq);
	destroy_all(r);
}

static void nothing_is_made_after_the_walk(struct kunit *test)
{
	struct left *l = left_new(test);

	kverbs_delay_set("emu_quiesced", make_more, l);
	device_goes(test);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
}

static struct kunit_case emu_removed_cases[] = {
	KUNIT_CASE(destruction_of_a_qp_waits_for_the_walk),
	KUNIT_CASE(destruction_of_a_cq_waits_for_the_walk),
	KUNIT_CASE(qp_at_work_is_destroyed_after_the_walk),
	KUNIT_CASE(nothing_is_made_after_the_walk),
	{}
};
KVT_SUITE(emu_removed);
