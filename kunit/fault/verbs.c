// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls of the core, repeated with each of their allocations failing in turn. See sweep.c.
 */
#include <linux/mman.h>
#include <linux/uaccess.h>
#include <rdma/ib_umem.h>
#include <rdma/mr_pool.h>

#include "lib/client.h"
#include "fault/sweep.h"
#include "lib/mock.h"
#include "lib/objects.h"

/* Pages of user memory: too many for one chunk of a scatterlist. */
#define USER_PAGES	600UL

/* Registration */

struct reg {
	struct kunit *test;
	struct mock *m;
	struct net_device *ndev;
	u32 nports;
	struct ib_cq *cq;
};

static int alloc_ibdev(struct reg *r)
{
	struct mock_ibdev *mib = ib_alloc_device(mock_ibdev, ibdev);

	if (!mib)
		return -ENOMEM;
	mib->mock = r->m;
	r->m->ibdev = &mib->ibdev;
	ib_set_device_ops(&mib->ibdev, &r->m->ops);
	mib->ibdev.node_type = RDMA_NODE_IB_CA;
	mib->ibdev.phys_port_cnt = r->m->nports;
	mib->ibdev.num_comp_vectors = 2;
	return 0;
}

static int make_device(void *arg)
{
	struct reg *r = arg;
	int ret = alloc_ibdev(r);

	if (ret)
		return ret;
	ret = mock_register(r->m, "kvtm%d");
	if (ret)
		mock_dealloc(r->m);
	return ret;
}

static void unmake_device(void *arg)
{
	struct reg *r = arg;

	mock_unregister(r->m);
	mock_dealloc(r->m);
}

static void sweep_registration(struct kunit *test, struct reg *r)
{
	/* mock_alloc() fills in the mock's tables and methods. Its device is not used. */
	r->test = test;
	r->m->nports = r->nports;
	mock_counter_methods(&r->m->ops);
	mock_alloc(test, r->m);
	mock_dealloc(r->m);
	SWEEP(test, r->m, r, "ib_register_device", make_device, unmake_device);
	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm0"));
}

/* The ways to unregister a device that the core then frees. */
static void unmake_and_put(void *arg)
{
	struct reg *r = arg;

	KUNIT_ASSERT_TRUE(r->test, ib_device_try_get(r->m->ibdev));
	ib_unregister_device_and_put(r->m->ibdev);
}

static void unmake_driver(void *arg)
{
	ib_unregister_driver(RDMA_DRIVER_CXGB4);
}

/* ib_unregister_driver() returns only when the queued unregistration has ended. */
static void unmake_queued(void *arg)
{
	struct reg *r = arg;

	ib_unregister_device_queued(r->m->ibdev);
	unmake_driver(arg);
}

/* Waits for the work item, as ib_unregister_driver() would unregister the device itself. */
static void unmake_in_work(void *arg)
{
	struct reg *r = arg;

	ib_unregister_device_queued(r->m->ibdev);
	KUNIT_EXPECT_TRUE(r->test, kvt_until(!mock_exists("kvtm0")));
	unmake_driver(arg);
}

static void device_unregistration(struct kunit *test)
{
	static const struct victim ways[] = {
		{ "ib_unregister_device_and_put", make_device, unmake_and_put },
		{ "ib_unregister_driver", make_device, unmake_driver },
		{ "ib_unregister_device_queued", make_device, unmake_queued },
		{ "ib_unregister_device_queued, later", make_device, unmake_in_work,
		  .work = "unregister_work" },
	};
	struct reg r = { .test = test };
	int i;

	r.m = mock_new(test);
	r.m->ops.driver_id = RDMA_DRIVER_CXGB4;
	mock_dealloc_by_core(r.m, true);
	mock_alloc(test, r.m);
	mock_dealloc(r.m);
	work_fail_begin(test);
	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		sweep_undo(test, r.m, &ways[i], &r);
		KUNIT_EXPECT_FALSE(test, mock_exists("kvtm0"));
	}
}

static void device_registration(struct kunit *test)
{
	struct reg r = { .nports = 1 };
	struct kvt_trace *tr = kvt_trace_new(test);

	kvt_client_up(test, "A", tr);
	r.m = mock_new(test);
	sweep_registration(test, &r);
}

static void roce_device_registration(struct kunit *test)
{
	struct reg r = { .nports = 1 };

	r.m = mock_new(test);
	r.m->eth = true;
	r.m->port[1].ndev = kvt_netdev(test);
	sweep_registration(test, &r);
	KUNIT_EXPECT_EQ(test, 0, r.m->port[1].valid);
}

/* Registers a device and takes CQEs from its CQ pool. The pool's CQ is freed with the device. */
static int make_pooled(void *arg)
{
	struct reg *r = arg;
	int ret = make_device(r);

	if (ret)
		return ret;
	r->cq = ib_cq_pool_get(r->m->ibdev, 10, -1, IB_POLL_WORKQUEUE);
	if (IS_ERR(r->cq))
		unmake_device(r);
	return PTR_ERR_OR_ZERO(r->cq);
}

/* __ib_cq_pool_put() */
static void unmake_pooled(void *arg)
{
	struct reg *r = arg;

	ib_cq_pool_put(r->cq, 10);
	unmake_device(r);
}

static void pooled_completion_queue(struct kunit *test)
{
	struct reg r = { .nports = 1 };

	r.test = test;
	r.m = mock_new(test);
	mock_alloc(test, r.m);
	mock_dealloc(r.m);
	SWEEP(test, r.m, &r, "ib_cq_pool_get", make_pooled, unmake_pooled);
}

static int make_client(void *arg)
{
	return kvt_client_register(arg);
}

static void unmake_client(void *arg)
{
	kvt_client_unregister(arg);
}

static void client_registration(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct mock *m = mock_up(test, "kvtm_a");

	SWEEP(test, m, kvt_client_new(test, "A", tr), "ib_register_client",
	      make_client, unmake_client);
}

/* Objects */

struct objects {
	struct mock *m;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_mr *mr;
	struct ib_mw *mw;
	struct ib_fmr *fmr;
	struct ib_ah *ah;
	struct ib_srq *srq;
	enum ib_poll_context ctx;
	unsigned int pd_flags;
	unsigned long addr;
};

MAKES(make_pd, objects, o, KEEP(o, pd, ib_alloc_pd(o->m->ibdev, o->pd_flags)))
UNMAKES(unmake_pd, objects, o, ib_dealloc_pd(o->pd))
MAKES(make_cq, objects, o, KEEP(o, cq, ib_alloc_cq(o->m->ibdev, NULL, 32, 0, o->ctx)))
UNMAKES(unmake_cq, objects, o, ib_free_cq(o->cq))

static int make_user_cq(void *arg)
{
	struct ib_cq_init_attr attr = { .cqe = 32 };
	struct objects *o = arg;

	return KEEP(o, cq, ib_create_cq(o->m->ibdev, NULL, NULL, NULL, &attr));
}

UNMAKES(unmake_user_cq, objects, o, ib_destroy_cq(o->cq))

static int make_qp(void *arg)
{
	struct objects *o = arg;
	struct ib_qp_init_attr init;

	kvt_qp_init(&init, o->cq, o->cq);
	return KEEP(o, qp, ib_create_qp(o->pd, &init));
}

UNMAKES(unmake_qp, objects, o, ib_destroy_qp(o->qp))
MAKES(make_mr, objects, o, KEEP(o, mr, ib_alloc_mr(o->pd, IB_MR_TYPE_MEM_REG, 8)))
UNMAKES(unmake_mr, objects, o, ib_dereg_mr(o->mr))
MAKES(make_mw, objects, o, KEEP(o, mw, ib_alloc_mw(o->pd, IB_MW_TYPE_2)))
UNMAKES(unmake_mw, objects, o, ib_dealloc_mw(o->mw))

static int make_fmr(void *arg)
{
	struct ib_fmr_attr attr = { .max_pages = 8, .max_maps = 1 };
	struct objects *o = arg;

	return KEEP(o, fmr, ib_alloc_fmr(o->pd, 0, &attr));
}

UNMAKES(unmake_fmr, objects, o, ib_dealloc_fmr(o->fmr))
MAKES(make_user_mr, objects, o,
	KEEP(o, mr, ib_reg_user_mr(o->pd, o->addr, USER_PAGES << PAGE_SHIFT, o->addr,
				 IB_ACCESS_LOCAL_WRITE)))
MAKES(make_pool, objects, o, ib_mr_pool_init(o->qp, &o->qp->rdma_mrs, 4, IB_MR_TYPE_MEM_REG, 8, 0))
UNMAKES(unmake_pool, objects, o, ib_mr_pool_destroy(o->qp, &o->qp->rdma_mrs))

static int make_ah(void *arg)
{
	struct objects *o = arg;
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB };

	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_dlid(&attr, 5);
	rdma_ah_set_grh(&attr, NULL, 0, 0, 64, 0);
	attr.grh.dgid.raw[15] = 1;
	return KEEP(o, ah, rdma_create_ah(o->pd, &attr, 0));
}

UNMAKES(unmake_ah, objects, o, rdma_destroy_ah(o->ah, 0))

static int make_srq(void *arg)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = 8, .max_sge = 1 },
	};
	struct objects *o = arg;

	return KEEP(o, srq, ib_create_srq(o->pd, &init));
}

UNMAKES(unmake_srq, objects, o, ib_destroy_srq(o->srq))

static const struct victim victim_pd = { "ib_alloc_pd", make_pd, unmake_pd, UNDO_QUIET };
static const struct victim victim_cq = { "ib_alloc_cq", make_cq, unmake_cq, UNDO_QUIET };
static const struct victim victim_user_cq = {
	"ib_create_cq", make_user_cq, unmake_user_cq, UNDO_QUIET,
};

static const struct victim victims_in_pd[] = {
	{ "ib_create_qp", make_qp, unmake_qp, UNDO_QUIET },
	{ "ib_alloc_mr", make_mr, unmake_mr, UNDO_QUIET },
	{ "ib_alloc_mw", make_mw, unmake_mw, UNDO_QUIET },
	{ "ib_alloc_fmr", make_fmr, unmake_fmr, UNDO_QUIET },
	{ "rdma_create_ah", make_ah, unmake_ah, UNDO_QUIET },
	{ "ib_create_srq", make_srq, unmake_srq, UNDO_QUIET },
};

static const struct victim victim_user_mr = {
	"ib_reg_user_mr", make_user_mr, unmake_mr, UNDO_QUIET,
};

static const struct victim victim_pool = {
	"ib_mr_pool_init", make_pool, unmake_pool, UNDO_QUIET,
};

static void protection_domain(struct kunit *test)
{
	struct objects o = {};

	o.m = mock_new(test);
	o.m->no_local_lkey = true;
	mock_start(test, o.m, "kvtm_a");
	sweep(test, o.m, &victim_pd, &o);
	o.pd_flags = IB_PD_UNSAFE_GLOBAL_RKEY;
	sweep(test, o.m, &victim_pd, &o);
}

static void completion_queue(struct kunit *test)
{
	struct objects o = {
		.ctx = kvt_context(test),
	};

	o.m = mock_up(test, "kvtm_a");
	sweep(test, o.m, &victim_cq, &o);
	sweep(test, o.m, &victim_user_cq, &o);
}

static void objects_of_a_pd(struct kunit *test)
{
	struct ib_qp_init_attr init;
	struct objects o = {};
	int i;

	o.m = mock_up(test, "kvtm_a");
	o.pd = kvt_pd(test, o.m->ibdev);
	o.cq = kvt_cq(test, o.m->ibdev, 32, IB_POLL_SOFTIRQ);
	for (i = 0; i < ARRAY_SIZE(victims_in_pd); i++) {
		sweep(test, o.m, &victims_in_pd[i], &o);
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&o.pd->usecnt));
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&o.cq->usecnt));
	}
	kvt_qp_init(&init, o.cq, o.cq);
	o.qp = kvt_qp(test, o.pd, &init);
	sweep(test, o.m, &victim_pool, &o);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&o.pd->usecnt));
}

/* Touches every other page first, so that neighbours are not contiguous in physical memory. */
static void touch_pages(struct kunit *test, unsigned long addr)
{
	unsigned long i, odd;

	for (odd = 0; odd < 2; odd++)
		for (i = odd; i < USER_PAGES; i += 2)
			KUNIT_ASSERT_EQ(test, 0, put_user(1, (u8 __user *) (addr + i * PAGE_SIZE)));
}

/* Registers the memory once more to find its pages, and checks that none is left pinned. */
static void expect_unpinned(struct kunit *test, struct objects *o)
{
	struct page **pages = kunit_kcalloc(test, USER_PAGES, sizeof(*pages), GFP_KERNEL);
	struct ib_block_iter biter;
	unsigned long i = 0, pinned = 0;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	KUNIT_ASSERT_EQ(test, 0, make_user_mr(o));
	rdma_umem_for_each_dma_block(mock_mr_umem(o->mr), &biter, PAGE_SIZE)
		pages[i++] = ib_virt_dma_to_page(rdma_block_iter_dma_address(&biter));
	unmake_mr(o);
	while (i--)
		pinned += folio_maybe_dma_pinned(page_folio(pages[i]));
	KUNIT_EXPECT_EQ(test, 0, pinned);
}

static void user_memory(struct kunit *test)
{
	struct objects o = {};

	o.addr = kunit_vm_mmap(test, NULL, 0, USER_PAGES << PAGE_SHIFT,
			       PROT_READ | PROT_WRITE,
			       MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, 0, o.addr);
	KUNIT_ASSERT_FALSE(test, IS_ERR_VALUE(o.addr));
	touch_pages(test, o.addr);
	o.m = mock_up(test, "kvtm_a");
	o.pd = kvt_pd(test, o.m->ibdev);
	sweep(test, o.m, &victim_user_mr, &o);
	expect_unpinned(test, &o);
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&o.pd->usecnt));
}

/* Counts events: one is delivered even if there is no memory for a copy of it. */
struct listener {
	struct ib_event_handler handler;
	atomic_t seen;
	struct completion got;
};

static void listen(struct ib_event_handler *handler, struct ib_event *event)
{
	struct listener *l = container_of(handler, struct listener, handler);

	if (event->event == IB_EVENT_PKEY_CHANGE)
		atomic_inc(&l->seen);
	complete(&l->got);
}

static void event_without_memory_is_delivered(struct kunit *test)
{
	struct listener l = { .got = COMPLETION_INITIALIZER_ONSTACK(l.got) };
	struct ib_event event = {
		.element.port_num = 1,
		.event = IB_EVENT_PKEY_CHANGE,
	};
	struct mock *m;
	unsigned int n;
	bool hit = true;

	m = mock_up(test, "kvtm_a");
	event.device = m->ibdev;
	INIT_IB_EVENT_HANDLER(&l.handler, m->ibdev, listen);
	ib_register_event_handler(&l.handler);
	for (n = 1; n < 20 && hit; n++) {
		kvt_fail_nth(n);
		ib_dispatch_event(&event);
		hit = kvt_failed_nth();
		while (atomic_read(&l.seen) < n)
			if (!kvt_wait(&l.got))
				break;
		KUNIT_EXPECT_EQ(test, n, atomic_read(&l.seen));
	}
	ib_unregister_event_handler(&l.handler);
	KUNIT_EXPECT_GT(test, n, 2);
}

struct held_up {
	struct ib_event_handler handler;
	struct kvt_gate gate;
	struct kvt_trace *trace;
	struct completion got;
	bool entered;
};

/* Holds up the first event until the gate opens; the others are queued behind it. */
static void hold_up(struct ib_event_handler *handler, struct ib_event *event)
{
	struct held_up *h = container_of(handler, struct held_up, handler);

	kvt_trace_add(h->trace, "%u", event->event);
	if (!h->entered) {
		h->entered = true;
		kvt_gate_pass(&h->gate);
	}
	complete(&h->got);
}

/* The last event must tell the state of the port. PORT_ERR is 10, PORT_ACTIVE 9. */
static void events_without_memory_keep_their_order(struct kunit *test)
{
	static const enum ib_event_type types[] = {
		IB_EVENT_DEVICE_FATAL, IB_EVENT_PORT_ERR, IB_EVENT_PORT_ACTIVE,
		IB_EVENT_PORT_ERR, IB_EVENT_PORT_ERR,
	};
	struct held_up h = {
		.got = COMPLETION_INITIALIZER_ONSTACK(h.got),
		.trace = kvt_trace_new(test),
	};
	struct ib_event event = { .element.port_num = 1 };
	int i;

	kvt_need_two_cpus(test);
	kvt_gate_init(&h.gate);
	event.device = mock_up(test, "kvtm_a")->ibdev;
	INIT_IB_EVENT_HANDLER(&h.handler, event.device, hold_up);
	ib_register_event_handler(&h.handler);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		event.event = types[i];
		kvt_fail_nth(1);
		ib_dispatch_event(&event);
		KUNIT_EXPECT_TRUE(test, kvt_failed_nth());
		if (!i)
			KUNIT_EXPECT_TRUE(test, kvt_wait(&h.gate.entered));
	}
	kvt_gate_open(&h.gate);
	/* The three PORT_ERR are merged into two, one of them after PORT_ACTIVE. */
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_TRUE(test, kvt_wait(&h.got));
	ib_unregister_event_handler(&h.handler);
	KVT_EXPECT_TRACE(test, h.trace, "8 10 9 10");
	KUNIT_EXPECT_TRUE(test, h.gate.in_time);
}

static struct kunit_case fail_nth_cases[] = {
	KUNIT_CASE_SLOW(device_registration),
	KUNIT_CASE_SLOW(device_unregistration),
	KUNIT_CASE_SLOW(roce_device_registration),
	KUNIT_CASE_SLOW(pooled_completion_queue),
	KUNIT_CASE(client_registration),
	KUNIT_CASE(protection_domain),
	KUNIT_CASE_PARAM(completion_queue, kvt_any_context),
	KUNIT_CASE(objects_of_a_pd),
	KUNIT_CASE(user_memory),
	KUNIT_CASE(event_without_memory_is_delivered),
	KUNIT_CASE(events_without_memory_keep_their_order),
	{}
};
KVT_SUITE(fail_nth, .init = kvt_need_injection);

MODULE_DESCRIPTION("KUnit: each allocation fails in turn");
MODULE_LICENSE("GPL");
