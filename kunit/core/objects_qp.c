// SPDX-License-Identifier: GPL-2.0-only
/*
 * QPs on the mock device: capability limits, reference counts of the objects that a QP uses,
 * driver failures, events, state changes, draining, and pools of MRs.
 */
#include <linux/irqflags.h>
#include <kverbs/completion.h>
#include <rdma/mr_pool.h>

#include "lib/mock.h"
#include "lib/objects.h"

struct rig {
	struct mock *m;
	struct ib_pd *pd;
	struct ib_cq *scq;
	struct ib_cq *rcq;
	struct ib_qp_init_attr init;
};

static void rig_up(struct kunit *test, struct rig *r, enum ib_poll_context ctx)
{
	r->m = mock_up(test, "kvtm_a");
	r->pd = kvt_pd(test, r->m->ibdev);
	r->scq = kvt_cq(test, r->m->ibdev, 64, ctx);
	r->rcq = kvt_cq(test, r->m->ibdev, 64, ctx);
	kvt_qp_init(&r->init, r->scq, r->rcq);
}

static void expect_unused(struct kunit *test, struct rig *r)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->pd->usecnt));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->scq->usecnt));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->rcq->usecnt));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->m->live[MOCK_QP]));
}

static int no_qp(struct rig *r)
{
	struct ib_qp *qp = ib_create_qp(r->pd, &r->init);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	ib_destroy_qp(qp);
	return 0;
}

static void qp_takes_and_drops_its_references(struct kunit *test)
{
	struct rig r;
	struct ib_qp *qp;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	r.init.qp_context = &r;
	qp = kvt_qp(test, r.pd, &r.init);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.pd->usecnt));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.scq->usecnt));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.rcq->usecnt));
	KUNIT_EXPECT_PTR_EQ(test, qp->pd, r.pd);
	KUNIT_EXPECT_PTR_EQ(test, qp->send_cq, r.scq);
	KUNIT_EXPECT_PTR_EQ(test, qp->recv_cq, r.rcq);
	KUNIT_EXPECT_PTR_EQ(test, qp->qp_context, (void *)&r);
	KUNIT_EXPECT_EQ(test, IB_QPT_RC, qp->qp_type);
	kvt_qp_put(test, qp);
	expect_unused(test, &r);
}

struct cap_case {
	const char *name;
	size_t offset;
	u32 value;
};

#define CAP(field, value) \
	{ #field, offsetof(struct ib_qp_cap, field), value }
static const struct cap_case caps[] = {
	CAP(max_send_wr, MOCK_MAX_QP_WR + 1), CAP(max_send_wr, U32_MAX),
	CAP(max_recv_wr, MOCK_MAX_QP_WR + 1), CAP(max_recv_wr, U32_MAX),
	CAP(max_send_sge, MOCK_MAX_SGE + 1), CAP(max_send_sge, U32_MAX),
	CAP(max_recv_sge, MOCK_MAX_SGE + 1), CAP(max_recv_sge, U32_MAX),
};

static void cap_name(const struct cap_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %u", c->name, c->value);
}

KUNIT_ARRAY_PARAM(cap, caps, cap_name);

static void oversized_cap_is_refused(struct kunit *test)
{
	const struct cap_case *c = test->param_value;
	struct rig r;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	*(u32 *)((void *)&r.init.cap + c->offset) = c->value;
	KUNIT_EXPECT_EQ(test, -EINVAL, no_qp(&r));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_create_qp));
	expect_unused(test, &r);
}

static void largest_caps_are_taken(struct kunit *test)
{
	struct rig r;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	r.init.cap.max_send_wr = MOCK_MAX_QP_WR;
	r.init.cap.max_recv_wr = MOCK_MAX_QP_WR;
	r.init.cap.max_send_sge = MOCK_MAX_SGE;
	r.init.cap.max_recv_sge = MOCK_MAX_SGE;
	KUNIT_EXPECT_EQ(test, 0, no_qp(&r));
	expect_unused(test, &r);
}

static void qp_without_a_cq_is_refused(struct kunit *test)
{
	struct rig r;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	r.init.send_cq = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, no_qp(&r));
	r.init.send_cq = r.scq;
	r.init.recv_cq = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, no_qp(&r));
	/* One for sending needs none, where there is such a type. */
	r.init.qp_type = IB_QPT_XRC_INI;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, no_qp(&r));
	expect_unused(test, &r);
}

static void cq_of_another_device_is_refused(struct kunit *test)
{
	struct mock *other;
	struct rig r;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	other = mock_up(test, "kvtm_b");
	r.init.recv_cq = kvt_cq(test, other->ibdev, 64, IB_POLL_SOFTIRQ);
	KUNIT_EXPECT_EQ(test, -EINVAL, no_qp(&r));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r.init.recv_cq->usecnt));
	expect_unused(test, &r);
}

static void qp_failure_leaves_nothing(struct kunit *test)
{
	struct rig r;
	struct ib_qp *qp;
	u32 id;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	mock_fail(r.m, MOCK_create_qp, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, no_qp(&r));
	expect_unused(test, &r);
	mock_fail_none(r.m);

	qp = kvt_qp(test, r.pd, &r.init);
	id = qp->res.id;
	mock_fail(r.m, MOCK_destroy_qp, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_destroy_qp(qp));
	kvt_expect_kept(test, r.m->ibdev, &qp->res, id);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.pd->usecnt));
	mock_fail_none(r.m);
	kvt_qp_put(test, qp);
	expect_unused(test, &r);
}

static void qp_holds_its_srq(struct kunit *test)
{
	struct ib_srq_init_attr srq_init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = 16, .max_sge = 1 },
	};
	struct ib_srq *srq;
	struct ib_qp *qp;
	struct rig r;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	srq = KVT_PTR(test, ib_create_srq(r.pd, &srq_init));
	r.init.srq = srq;
	qp = ib_create_qp(r.pd, &r.init);
	KUNIT_EXPECT_EQ(test, 0, PTR_ERR_OR_ZERO(qp));
	if (!IS_ERR(qp)) {
		KUNIT_EXPECT_EQ(test, 1, atomic_read(&srq->usecnt));
		KUNIT_EXPECT_EQ(test, -EBUSY, ib_destroy_srq_user(srq, NULL));
		ib_destroy_qp(qp);
	}
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_srq_user(srq, NULL));
	expect_unused(test, &r);
}

/* --- numbers ------------------------------------------------------------------------- */

static void expect_found_by(struct kunit *test, u32 id, struct ib_qp *qp)
{
	struct rdma_restrack_entry *found = rdma_restrack_get_byid(qp->device, RDMA_RESTRACK_QP, id);

	KUNIT_EXPECT_PTR_EQ(test, &qp->res, found);
	if (!IS_ERR(found))
		rdma_restrack_put(found);
}

static void expect_none_by(struct kunit *test, struct mock *m, u32 id)
{
	struct rdma_restrack_entry *found = rdma_restrack_get_byid(m->ibdev, RDMA_RESTRACK_QP, id);

	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-ENOENT), found);
	if (!IS_ERR(found))
		rdma_restrack_put(found);
}

static void qp_is_found_by_its_number(struct kunit *test)
{
	struct ib_qp *qp[4];
	u32 gone;
	struct rig r;
	int i;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	for (i = 0; i < ARRAY_SIZE(qp); i++)
		qp[i] = kvt_qp(test, r.pd, &r.init);
	gone = qp[1]->qp_num;
	kvt_qp_put(test, qp[0]);
	kvt_qp_put(test, qp[1]);
	expect_none_by(test, r.m, gone);
	expect_found_by(test, qp[2]->qp_num, qp[2]);
	expect_found_by(test, qp[3]->qp_num, qp[3]);
}

static int make_qp_1(struct ib_qp *qp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	qp->qp_num = 1;
	return 0;
}

static int destroy_qp_1(struct ib_qp *qp, struct ib_udata *udata)
{
	return 0;
}

/* A rig whose QPs all have the number 1. */
static void rig_up_ones(struct kunit *test, struct rig *r)
{
	r->m = mock_new(test);
	r->m->ops.create_qp = make_qp_1;
	r->m->ops.destroy_qp = destroy_qp_1;
	mock_start(test, r->m, "kvtm_a");
	r->pd = kvt_pd(test, r->m->ibdev);
	r->scq = kvt_cq(test, r->m->ibdev, 64, IB_POLL_SOFTIRQ);
	r->rcq = r->scq;
	kvt_qp_init(&r->init, r->scq, r->rcq);
}

static void qp_for_management_is_found_by_its_port_too(struct kunit *test)
{
	struct ib_qp *gsi, *rc;
	struct rig r;

	rig_up_ones(test, &r);
	rc = kvt_qp(test, r.pd, &r.init);
	r.init.qp_type = IB_QPT_GSI;
	r.init.port_num = 1;
	gsi = kvt_qp(test, r.pd, &r.init);
	expect_found_by(test, 1, rc);
	expect_found_by(test, 1 << 24 | 1, gsi);
}

/* The driver is wrong. What is left of the second would still be reported. */
static void second_qp_of_a_number_is_listed_under_another(struct kunit *test)
{
	struct ib_qp *first, *second;
	struct rig r;

	rig_up_ones(test, &r);
	first = kvt_qp(test, r.pd, &r.init);
	second = kvt_qp(test, r.pd, &r.init);
	expect_found_by(test, 1, first);
	KUNIT_EXPECT_GT(test, second->res.id, 1 << 24 | 1);
	expect_found_by(test, second->res.id, second);
	kvt_qp_put(test, first);
	expect_none_by(test, r.m, 1);
	expect_found_by(test, second->res.id, second);
}

/* Set by a case: made when another QP is destroyed. */
static struct rig *heir_of;
static struct ib_qp *heir;

static int destroy_and_make_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	if (heir_of) {
		struct rig *r = heir_of;

		heir_of = NULL;
		heir = ib_create_qp(r->pd, &r->init);
	}
	return 0;
}

/* Its driver has destroyed the old one, but the core has not yet. */
static void number_goes_to_a_new_qp_at_once(struct kunit *test)
{
	struct ib_qp *qp;
	struct rig r;

	rig_up_ones(test, &r);
	r.m->ibdev->ops.destroy_qp = destroy_and_make_qp;
	qp = kvt_qp(test, r.pd, &r.init);
	heir_of = &r;
	kvt_qp_put(test, qp);
	KUNIT_ASSERT_FALSE(test, IS_ERR(heir));
	expect_found_by(test, 1, heir);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp(heir));
	expect_none_by(test, r.m, 1);
}

/* --- events -------------------------------------------------------------------------- */

/* Events that the event handler of a QP received. */
struct told {
	atomic_t count;			/* calls of the handler */
	atomic_t events;		/* bit mask of the event types */
	struct completion called;	/* completed by each call */
};

static void on_event(struct ib_event *event, void *context)
{
	struct told *told = context;

	atomic_inc(&told->count);
	atomic_or(BIT(event->event), &told->events);
	complete(&told->called);
}

static struct ib_qp *watched_qp(struct kunit *test, struct rig *r, struct told *told)
{
	atomic_set(&told->count, 0);
	atomic_set(&told->events, 0);
	init_completion(&told->called);
	r->init.event_handler = on_event;
	r->init.qp_context = told;
	return kvt_qp(test, r->pd, &r->init);
}

static void what_is_no_event_of_a_qp_is_dropped(struct kunit *test)
{
	struct told *told = kvt_zalloc(test, sizeof(*told));
	struct ib_qp *qp;
	struct rig r;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	qp = watched_qp(test, &r, told);
	ib_qp_notify_event(qp, IB_EVENT_SRQ_ERR);
	ib_qp_notify_event(qp, 40);
	ib_qp_notify_event(qp, -1);
	ib_qp_notify_event(qp, IB_EVENT_COMM_EST);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&told->called));
	kvt_qp_put(test, qp);
	KUNIT_EXPECT_EQ(test, BIT(IB_EVENT_COMM_EST), atomic_read(&told->events));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&told->count));
}

/* Milliseconds that it may take to reach ib_modify_qp(), and to return if it does not wait. */
#define COME_MS		2000
#define LINGER_MS	50

/* Reports IB_EVENT_QP_LAST_WQE_REACHED of a QP. */
struct reporter {
	struct ib_qp *qp;	/* the QP */
	/* Completed after the report, while interrupts are still off. */
	struct completion reported;
	int resets;		/* set when the QP is about to be reset */
	bool seen;		/* the reporter saw @resets in time */
	int over;		/* set when the call that resets the QP has returned */
};

/* Called with interrupts off, so it spins no longer than necessary. */
static bool spin_until(const int *flag, unsigned int ms)
{
	ktime_t end = ktime_add_ms(ktime_get(), ms);

	while (!READ_ONCE(*flag) && ktime_before(ktime_get(), end))
		cpu_relax();
	return READ_ONCE(*flag);
}

static int report_fn(void *arg)
{
	struct reporter *r = arg;
	unsigned long flags;

	local_irq_save(flags);
	ib_qp_notify_event(r->qp, IB_EVENT_QP_LAST_WQE_REACHED);
	complete(&r->reported);
	r->seen = spin_until(&r->resets, COME_MS);
	if (r->seen)
		spin_until(&r->over, LINGER_MS);
	local_irq_restore(flags);
	return 0;
}

/* If the event came after the reset, the QP's next drain would take it for its own. */
static void reset_waits_for_the_last_event_of_the_srq(struct kunit *test)
{
	struct told *told = kvt_zalloc(test, sizeof(*told));
	struct reporter *reporter = kvt_zalloc(test, sizeof(*reporter));
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RESET };
	struct kvt_thread *t;
	struct rig r;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	rig_up(test, &r, IB_POLL_SOFTIRQ);
	r.init.srq = kvt_srq(test, r.pd, 16, 1);
	reporter->qp = watched_qp(test, &r, told);
	init_completion(&reporter->reported);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(reporter->qp, 1));
	t = kvt_thread_start(test, kvt_other_cpu(), report_fn, reporter);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&reporter->reported));
	WRITE_ONCE(reporter->resets, 1);
	KUNIT_EXPECT_EQ(test, 0, ib_modify_qp(reporter->qp, &attr, IB_QP_STATE));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&told->count));
	WRITE_ONCE(reporter->over, 1);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	if (!reporter->seen)
		kunit_info(test, "the machine is too busy: nothing was shown\n");
	KUNIT_EXPECT_FALSE(test, completion_done(&reporter->qp->srq_completion));
}

static void modify_reaches_the_driver(struct kunit *test)
{
	struct ib_qp_init_attr init = {};
	struct ib_qp_attr attr = {};
	struct mock_call call = {};
	struct ib_qp *qp;
	struct rig r;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	qp = kvt_qp(test, r.pd, &r.init);
	KUNIT_EXPECT_EQ(test, 0, kvt_qp_to_init(qp, 1));
	KUNIT_EXPECT_TRUE(test, mock_last(r.m, MOCK_modify_qp, &call));
	KUNIT_EXPECT_EQ(test, IB_QPS_INIT, call.arg2);
	KUNIT_EXPECT_EQ(test, IB_QPS_INIT, mock_qp_state(qp));
	KUNIT_EXPECT_EQ(test, 0, ib_query_qp(qp, &attr, IB_QP_STATE, &init));
	KUNIT_EXPECT_EQ(test, IB_QPS_INIT, attr.qp_state);
	KUNIT_EXPECT_EQ(test, 16, init.cap.max_send_wr);

	mock_fail(r.m, MOCK_modify_qp, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, kvt_qp_to_err(qp));
	mock_fail_none(r.m);
	KUNIT_EXPECT_EQ(test, IB_QPS_INIT, mock_qp_state(qp));
	KUNIT_EXPECT_EQ(test, 0, kvt_qp_to_err(qp));
}

/* What get_port_immutable of the mock device says of a port, whose kind is then changed. */
static int (*port_of_one_kind)(struct ib_device *dev, u32 port, struct ib_port_immutable *imm);

static int port_of_two_kinds(struct ib_device *dev, u32 port, struct ib_port_immutable *imm)
{
	int ret = port_of_one_kind(dev, port, imm);

	if (port == 2)
		imm->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE;
	return ret;
}

static int take_group(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	return 0;
}

/*
 * Before INIT any port may become that of the QP, also one without LIDs. What was attached then is
 * detached also if the QP gets a port that has them; else it could never be destroyed.
 */
static void group_without_a_lid_can_be_left(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	union ib_gid gid = { .raw = { 0xff, 0x12 } };
	struct rig r = { .m = mock_new(test) };
	struct ib_qp *qp;

	port_of_one_kind = r.m->ops.get_port_immutable;
	r.m->ops.get_port_immutable = port_of_two_kinds;
	r.m->ops.attach_mcast = take_group;
	r.m->ops.detach_mcast = take_group;
	r.m->nports = 2;
	mock_start(test, r.m, "kvtm_a");
	r.pd = kvt_pd(test, r.m->ibdev);
	r.scq = kvt_cq(test, r.m->ibdev, 64, IB_POLL_SOFTIRQ);
	kvt_qp_init(&r.init, r.scq, r.scq);
	r.init.qp_type = IB_QPT_UD;
	qp = kvt_qp(test, r.pd, &r.init);
	KUNIT_ASSERT_EQ(test, 0, ib_attach_mcast(qp, &gid, 0));
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
						  IB_QP_PORT | IB_QP_QKEY));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_attach_mcast(qp, &gid, 0));
	KUNIT_EXPECT_EQ(test, 0, ib_detach_mcast(qp, &gid, 0));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&qp->usecnt));
}

static void modify_with_a_bad_port_is_refused(struct kunit *test)
{
	struct ib_qp *qp;
	struct rig r;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	qp = kvt_qp(test, r.pd, &r.init);
	KUNIT_EXPECT_EQ(test, -EINVAL, kvt_qp_to_init(qp, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, kvt_qp_to_init(qp, 2));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_modify_qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RESET, mock_qp_state(qp));
}

static int to_rtr(struct ib_qp *qp, u8 sgid_index)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR, .path_mtu = IB_MTU_1024,
		.dest_qp_num = 1, .max_dest_rd_atomic = 1, .min_rnr_timer = 1,
	};

	attr.ah_attr.type = rdma_ah_find_type(qp->device, 1);
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_dlid(&attr.ah_attr, 0x12);
	rdma_ah_set_grh(&attr.ah_attr, NULL, 0, sgid_index, 64, 0);
	attr.ah_attr.grh.dgid.raw[15] = 1;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV |
			    IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			    IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
}

static void path_holds_its_source_gid(struct kunit *test)
{
	struct ib_qp *qp;
	struct rig r;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	qp = kvt_qp(test, r.pd, &r.init);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(qp, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, to_rtr(qp, MOCK_GIDS));
	KUNIT_EXPECT_NULL(test, qp->av_sgid_attr);
	mock_fail(r.m, MOCK_modify_qp, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, to_rtr(qp, 1));
	KUNIT_EXPECT_NULL(test, qp->av_sgid_attr);
	mock_fail_none(r.m);
	KUNIT_EXPECT_EQ(test, 0, to_rtr(qp, 1));
	KUNIT_ASSERT_NOT_NULL(test, qp->av_sgid_attr);
	KUNIT_EXPECT_EQ(test, 1, qp->av_sgid_attr->index);
}

struct flushed {
	struct ib_cqe cqe;
	atomic_t *before;
	int status;
	int place;
};

static void flushed_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct flushed *f = container_of(wc->wr_cqe, struct flushed, cqe);

	f->status = wc->status;
	f->place = atomic_inc_return(f->before);
}

/* All requests posted before the drain have been handled when the drain returns. */
static void drain_returns_after_all_before_it(struct kunit *test)
{
	enum ib_poll_context ctx = kvt_context(test);
	atomic_t count = ATOMIC_INIT(0);
	struct flushed f[4];
	struct ib_qp *qp;
	struct rig r;
	int i;

	rig_up(test, &r, ctx);
	qp = kvt_qp(test, r.pd, &r.init);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(qp, 1));
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(qp));
	for (i = 0; i < 4; i++) {
		struct ib_send_wr swr = { .wr_cqe = &f[i].cqe };
		struct ib_recv_wr rwr = { .wr_cqe = &f[i].cqe };

		f[i].cqe.done = flushed_done;
		f[i].before = &count;
		f[i].place = 0;
		KUNIT_ASSERT_EQ(test, 0, i % 2 ?
				ib_post_send(qp, &swr, NULL) :
				ib_post_recv(qp, &rwr, NULL));
	}
	ib_drain_qp(qp);
	KUNIT_EXPECT_EQ(test, 4, atomic_read(&count));
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, IB_WC_WR_FLUSH_ERR, f[i].status);
	KUNIT_EXPECT_LT(test, f[0].place, f[2].place);
	KUNIT_EXPECT_LT(test, f[1].place, f[3].place);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, mock_qp_state(qp));
}

static void mr_pool_gives_and_takes(struct kunit *test)
{
	struct ib_mr *mr[3];
	struct ib_qp *qp;
	struct rig r;
	int i;

	rig_up(test, &r, IB_POLL_SOFTIRQ);
	qp = kvt_qp(test, r.pd, &r.init);
	mock_fail_nth(r.m, MOCK_alloc_mr, 3, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL,
			ib_mr_pool_init(qp, &qp->rdma_mrs, 3,
					IB_MR_TYPE_MEM_REG, 4, 0));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r.m->live[MOCK_MR]));
	KUNIT_ASSERT_EQ(test, 0, ib_mr_pool_init(qp, &qp->rdma_mrs, 2, IB_MR_TYPE_MEM_REG, 4, 0));
	for (i = 0; i < 3; i++)
		mr[i] = ib_mr_pool_get(qp, &qp->rdma_mrs);
	KUNIT_EXPECT_NOT_NULL(test, mr[0]);
	KUNIT_EXPECT_NOT_NULL(test, mr[1]);
	KUNIT_EXPECT_NULL(test, mr[2]);
	KUNIT_EXPECT_EQ(test, 2, qp->mrs_used);
	for (i = 0; i < 2; i++)
		if (mr[i])
			ib_mr_pool_put(qp, &qp->rdma_mrs, mr[i]);
	KUNIT_EXPECT_EQ(test, 0, qp->mrs_used);
	ib_mr_pool_destroy(qp, &qp->rdma_mrs);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r.m->live[MOCK_MR]));
}

static struct kunit_case core_objects_qp_cases[] = {
	KUNIT_CASE(qp_takes_and_drops_its_references),
	KUNIT_CASE_PARAM(oversized_cap_is_refused, cap_gen_params),
	KUNIT_CASE(largest_caps_are_taken),
	KUNIT_CASE(qp_without_a_cq_is_refused),
	KUNIT_CASE(cq_of_another_device_is_refused),
	KUNIT_CASE(qp_failure_leaves_nothing),
	KUNIT_CASE(qp_holds_its_srq),
	KUNIT_CASE(qp_is_found_by_its_number),
	KUNIT_CASE(qp_for_management_is_found_by_its_port_too),
	KUNIT_CASE(second_qp_of_a_number_is_listed_under_another),
	KUNIT_CASE(number_goes_to_a_new_qp_at_once),
	KUNIT_CASE(what_is_no_event_of_a_qp_is_dropped),
	KUNIT_CASE(reset_waits_for_the_last_event_of_the_srq),
	KUNIT_CASE(modify_reaches_the_driver),
	KUNIT_CASE(group_without_a_lid_can_be_left),
	KUNIT_CASE(modify_with_a_bad_port_is_refused),
	KUNIT_CASE(path_holds_its_source_gid),
	KUNIT_CASE_PARAM(drain_returns_after_all_before_it, kvt_any_context),
	KUNIT_CASE(mr_pool_gives_and_takes),
	{}
};
KVT_SUITE(core_objects_qp);
