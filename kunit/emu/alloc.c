// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each allocation of a verb fails in turn, in the emulated HCA and in the core: the verb
 * must return -ENOMEM, leave nothing behind, and work the next time. KASAN and kmemleak
 * detect what the case cannot check.
 *
 * Needs a kernel with fault injection, see kvt_need_injection().
 */
#include <linux/mman.h>

#include "emu/rig.h"
#include "lib/objects.h"

/* More than any verb allocates: if an allocation still fails then, the verb loops. */
#define MAX_ALLOCS	200
#define USER_LEN	(64 * PAGE_SIZE)

/* Sizes of the CQ and the SRQ, before and after they are resized. */
#define CQ_SIZE		100
#define CQ_MORE		200
#define SRQ_SIZE	16
#define SRQ_MORE	32

#define MCAST_LID	0xc123

/* The objects that the victims are called on. */
struct bench {
	struct rig *r;
	unsigned long addr;	/* USER_LEN bytes of user memory */
	struct ib_cq *cq;	/* a CQ of CQ_SIZE entries */
	struct ib_srq *srq;	/* an SRQ of SRQ_SIZE entries */
	struct ib_qp *ud;	/* a UD QP, which can join multicast groups */
	void *object;		/* the object that the last @make of a victim has created */
};

/* Stores @object. Returns 0, or its errno if it is an ERR_PTR. */
static int keep(struct bench *b, void *object)
{
	b->object = object;
	return PTR_ERR_OR_ZERO(object);
}

/* How a victim makes its call, or undoes it by a call that cannot fail. */
#define CALLS(name, call)							\
static int name(struct bench *b)						\
{										\
	return call;								\
}

#define CALLS_VOID(name, call)							\
static int name(struct bench *b)						\
{										\
	call;									\
	return 0;								\
}

CALLS(make_pd, keep(b, ib_alloc_pd(b->r->a.ibdev, 0)))
CALLS_VOID(unmake_pd, ib_dealloc_pd(b->object))

static int make_cq(struct bench *b)
{
	struct ib_cq_init_attr attr = { .cqe = CQ_SIZE };

	return keep(b, ib_create_cq(b->r->a.ibdev, NULL, NULL, NULL, &attr));
}

CALLS_VOID(unmake_cq, ib_destroy_cq(b->object))

static int make_qp(struct bench *b)
{
	struct ib_qp_init_attr init = b->r->init;

	init.send_cq = b->r->a.scq;
	init.recv_cq = b->r->a.rcq;
	return keep(b, ib_create_qp(b->r->a.pd, &init));
}

CALLS(unmake_qp, ib_destroy_qp(b->object))

static int make_srq(struct bench *b)
{
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = SRQ_SIZE, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};

	return keep(b, ib_create_srq(b->r->a.pd, &init));
}

CALLS_VOID(unmake_srq, ib_destroy_srq(b->object))
CALLS(make_mr, keep(b, ib_alloc_mr(b->r->a.pd, IB_MR_TYPE_MEM_REG, 64)))
CALLS(make_user_mr,
	keep(b, ib_reg_user_mr(b->r->a.pd, b->addr, USER_LEN, b->addr, IB_ACCESS_LOCAL_WRITE)))
CALLS(unmake_mr, ib_dereg_mr(b->object))
CALLS(make_mw, keep(b, ib_alloc_mw(b->r->a.pd, IB_MW_TYPE_2)))
CALLS(unmake_mw, ib_dealloc_mw(b->object))

static int make_fmr(struct bench *b)
{
	struct ib_fmr_attr attr = { 64, 8, PAGE_SHIFT };

	return keep(b, ib_alloc_fmr(b->r->a.pd, 0, &attr));
}

CALLS(unmake_fmr, ib_dealloc_fmr(b->object))

static int make_ah(struct bench *b)
{
	struct rdma_ah_attr attr = {};

	rig_set_route(&attr, &b->r->a, &b->r->b);
	return keep(b, rdma_create_ah(b->r->a.pd, &attr, RDMA_CREATE_AH_SLEEPABLE));
}

CALLS_VOID(unmake_ah, rdma_destroy_ah(b->object, RDMA_DESTROY_AH_SLEEPABLE))
CALLS(resize_cq, ib_resize_cq(b->cq, CQ_MORE))
CALLS(resize_cq_back, ib_resize_cq(b->cq, CQ_SIZE))

static int set_srq_size(struct bench *b, u32 max_wr)
{
	struct ib_srq_attr attr = { .max_wr = max_wr };

	return ib_modify_srq(b->srq, &attr, IB_SRQ_MAX_WR);
}

CALLS(resize_srq, set_srq_size(b, SRQ_MORE))
CALLS(resize_srq_back, set_srq_size(b, SRQ_SIZE))

static const union ib_gid group = { .raw = { 0xff, 0x12, [15] = 9 } };

static int join(struct bench *b)
{
	union ib_gid gid = group;

	return ib_attach_mcast(b->ud, &gid, MCAST_LID);
}

static int leave(struct bench *b)
{
	union ib_gid gid = group;

	return ib_detach_mcast(b->ud, &gid, MCAST_LID);
}

/* Creates the objects that are resized or join a group. */
static void bench_objects(struct kunit *test, struct bench *b)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = b->r->a.port };
	struct ib_qp_init_attr init = b->r->init;

	KUNIT_ASSERT_EQ(test, 0, make_cq(b));
	b->cq = b->object;
	KUNIT_ASSERT_EQ(test, 0, make_srq(b));
	b->srq = b->object;
	init.qp_type = IB_QPT_UD;
	init.send_cq = b->cq;
	init.recv_cq = b->cq;
	b->ud = KVT_PTR(test, ib_create_qp(b->r->a.pd, &init));
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(b->ud, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
					      IB_QP_PORT | IB_QP_QKEY));
}

static void bench_clear(void *arg)
{
	struct bench *b = arg;

	if (!IS_ERR_OR_NULL(b->ud))
		ib_destroy_qp(b->ud);
	if (b->srq)
		ib_destroy_srq(b->srq);
	if (b->cq)
		ib_destroy_cq(b->cq);
}

/* Sum of the use counts of all objects on which a failed verb may leave a reference. */
static int bench_used(const struct bench *b)
{
	return atomic_read(&b->r->a.pd->usecnt) + atomic_read(&b->r->a.scq->usecnt) +
	       atomic_read(&b->r->a.rcq->usecnt) + atomic_read(&b->ud->usecnt);
}

/* A verb whose allocations fail in turn. */
struct victim {
	const char *name;		/* for messages */
	int (*make)(struct bench *b);	/* the verb; returns 0 or a negative errno */
	int (*unmake)(struct bench *b);	/* undoes a @make that worked */
};

static const struct victim victims[] = {
	{ "ib_alloc_pd", make_pd, unmake_pd },
	{ "ib_create_cq", make_cq, unmake_cq },
	{ "ib_create_qp", make_qp, unmake_qp },
	{ "ib_create_srq", make_srq, unmake_srq },
	{ "ib_alloc_mr", make_mr, unmake_mr },
	{ "ib_reg_user_mr", make_user_mr, unmake_mr },
	{ "ib_alloc_mw", make_mw, unmake_mw },
	{ "ib_alloc_fmr", make_fmr, unmake_fmr },
	{ "rdma_create_ah", make_ah, unmake_ah },
	{ "ib_resize_cq", resize_cq, resize_cq_back },
	{ "ib_modify_srq", resize_srq, resize_srq_back },
	{ "ib_attach_mcast", join, leave },
};

KUNIT_ARRAY_PARAM_DESC(victim, victims, name);

/* A verb may succeed in spite of a failed allocation: then it is undone. */
static void verb_without_memory(struct kunit *test)
{
	const struct victim *v = test->param_value;
	struct bench *b = kvt_zalloc(test, sizeof(*b));
	unsigned int n;
	int used, ret;
	bool hit;

	b->r = rig_up(test, "emu0", "emu0");
	kvt_defer(test, bench_clear, b);
	bench_objects(test, b);
	b->addr = kunit_vm_mmap(test, NULL, 0, USER_LEN, PROT_READ | PROT_WRITE,
				MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, 0, b->addr);
	used = bench_used(b);
	for (n = 1; n < MAX_ALLOCS; n++) {
		kvt_fail_nth(n);
		ret = v->make(b);
		hit = kvt_failed_nth();
		if (ret)
			KUNIT_EXPECT_EQ_MSG(test, -ENOMEM, ret, "n=%u", n);
		else
			KUNIT_EXPECT_EQ(test, 0, v->unmake(b));
		KUNIT_EXPECT_EQ_MSG(test, used, bench_used(b), "n=%u", n);
		if (!hit)
			break;
	}
	kunit_info(test, "%u allocations failed", n - 1);
	KUNIT_EXPECT_GT(test, n, 1);
	KUNIT_EXPECT_LT(test, n, MAX_ALLOCS);
	KUNIT_ASSERT_EQ(test, 0, v->make(b));
	KUNIT_EXPECT_EQ(test, 0, v->unmake(b));
}

static struct kunit_case emu_alloc_cases[] = {
	KUNIT_CASE_PARAM(verb_without_memory, victim_gen_params),
	{}
};
KVT_SUITE(emu_alloc, .init = kvt_need_injection);
