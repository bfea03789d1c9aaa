// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each allocation of a verb fails in turn, in the software HCA and in the core: see
 * fault/sweep.c.
 */
#include <linux/mman.h>

#include "emu/rig.h"
#include "fault/sweep.h"
#include "lib/objects.h"

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
	void *object;		/* the object that the last call has made */
};

MAKES(make_pd, bench, b, KEEP(b, object, ib_alloc_pd(b->r->a.ibdev, 0)))
UNMAKES(unmake_pd, bench, b, ib_dealloc_pd(b->object))

static struct ib_cq *new_cq(struct rig *r)
{
	struct ib_cq_init_attr attr = { .cqe = CQ_SIZE };

	return ib_create_cq(r->a.ibdev, NULL, NULL, NULL, &attr);
}

MAKES(make_cq, bench, b, KEEP(b, object, new_cq(b->r)))
UNMAKES(unmake_cq, bench, b, ib_destroy_cq(b->object))

static int make_qp(void *arg)
{
	struct bench *b = arg;
	struct ib_qp_init_attr init = b->r->init;

	init.send_cq = b->r->a.scq;
	init.recv_cq = b->r->a.rcq;
	return KEEP(b, object, ib_create_qp(b->r->a.pd, &init));
}

UNMAKES(unmake_qp, bench, b, WARN_ON(ib_destroy_qp(b->object)))

static int make_srq(void *arg)
{
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = SRQ_SIZE, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};
	struct bench *b = arg;

	return KEEP(b, object, ib_create_srq(b->r->a.pd, &init));
}

UNMAKES(unmake_srq, bench, b, ib_destroy_srq(b->object))
MAKES(make_mr, bench, b, KEEP(b, object, ib_alloc_mr(b->r->a.pd, IB_MR_TYPE_MEM_REG, 64)))
MAKES(make_user_mr, bench, b,
	KEEP(b, object, ib_reg_user_mr(b->r->a.pd, b->addr, USER_LEN, b->addr,
				       IB_ACCESS_LOCAL_WRITE)))
UNMAKES(unmake_mr, bench, b, WARN_ON(ib_dereg_mr(b->object)))
MAKES(make_mw, bench, b, KEEP(b, object, ib_alloc_mw(b->r->a.pd, IB_MW_TYPE_2)))
UNMAKES(unmake_mw, bench, b, WARN_ON(ib_dealloc_mw(b->object)))

static int make_fmr(void *arg)
{
	struct ib_fmr_attr attr = { 64, 8, PAGE_SHIFT };
	struct bench *b = arg;

	return KEEP(b, object, ib_alloc_fmr(b->r->a.pd, 0, &attr));
}

UNMAKES(unmake_fmr, bench, b, WARN_ON(ib_dealloc_fmr(b->object)))

static int make_ah(void *arg)
{
	struct rdma_ah_attr attr = {};
	struct bench *b = arg;

	rig_set_route(&attr, &b->r->a, &b->r->b);
	return KEEP(b, object, rdma_create_ah(b->r->a.pd, &attr, RDMA_CREATE_AH_SLEEPABLE));
}

UNMAKES(unmake_ah, bench, b, rdma_destroy_ah(b->object, RDMA_DESTROY_AH_SLEEPABLE))
MAKES(resize_cq, bench, b, ib_resize_cq(b->cq, CQ_MORE))
UNMAKES(resize_cq_back, bench, b, WARN_ON(ib_resize_cq(b->cq, CQ_SIZE)))

static int set_srq_size(struct bench *b, u32 max_wr)
{
	struct ib_srq_attr attr = { .max_wr = max_wr };

	return ib_modify_srq(b->srq, &attr, IB_SRQ_MAX_WR);
}

MAKES(resize_srq, bench, b, set_srq_size(b, SRQ_MORE))
UNMAKES(resize_srq_back, bench, b, WARN_ON(set_srq_size(b, SRQ_SIZE)))

static union ib_gid group = { .raw = { 0xff, 0x12, [15] = 9 } };

MAKES(join, bench, b, ib_attach_mcast(b->ud, &group, MCAST_LID))
UNMAKES(leave, bench, b, WARN_ON(ib_detach_mcast(b->ud, &group, MCAST_LID)))

/* Sum of the use counts of all objects on which a failed verb may leave a reference. */
MAKES(bench_used, bench, b,
	atomic_read(&b->r->a.pd->usecnt) + atomic_read(&b->r->a.scq->usecnt) +
	atomic_read(&b->r->a.rcq->usecnt) + atomic_read(&b->ud->usecnt))

#define VERB(name, make, unmake, undo)	{ name, make, unmake, undo, bench_used }

static const struct victim victims[] = {
	VERB("ib_alloc_pd", make_pd, unmake_pd, UNDO_SURVIVES),
	VERB("ib_create_cq", make_cq, unmake_cq, UNDO_SURVIVES),
	VERB("ib_create_qp", make_qp, unmake_qp, UNDO_SURVIVES),
	VERB("ib_create_srq", make_srq, unmake_srq, UNDO_SURVIVES),
	VERB("ib_alloc_mr", make_mr, unmake_mr, UNDO_SURVIVES),
	VERB("ib_reg_user_mr", make_user_mr, unmake_mr, UNDO_SURVIVES),
	VERB("ib_alloc_mw", make_mw, unmake_mw, UNDO_SURVIVES),
	VERB("ib_alloc_fmr", make_fmr, unmake_fmr, UNDO_SURVIVES),
	VERB("rdma_create_ah", make_ah, unmake_ah, UNDO_SURVIVES),
	VERB("ib_resize_cq", resize_cq, resize_cq_back, UNDO_MAKES),
	VERB("ib_modify_srq", resize_srq, resize_srq_back, UNDO_MAKES),
	VERB("ib_attach_mcast", join, leave, UNDO_SURVIVES),
};

KUNIT_ARRAY_PARAM_DESC(victim, victims, name);

static struct bench *bench_up(struct kunit *test)
{
	struct bench *b = kvt_zalloc(test, sizeof(*b));
	struct ib_qp_init_attr init;

	b->r = rig_up(test, "emu0", "emu0");
	b->cq = KVT_OWN(test, new_cq(b->r), kvt_end_cq);
	b->srq = kvt_srq(test, b->r->a.pd, SRQ_SIZE, 1);
	init = b->r->init;
	init.qp_type = IB_QPT_UD;
	init.send_cq = b->cq;
	init.recv_cq = b->cq;
	b->ud = kvt_qp(test, b->r->a.pd, &init);
	b->addr = kunit_vm_mmap(test, NULL, 0, USER_LEN, PROT_READ | PROT_WRITE,
				MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, 0, b->addr);
	return b;
}

static void verb_without_memory(struct kunit *test)
{
	sweep(test, mock_new(test), test->param_value, bench_up(test));
}

static struct kunit_case emu_alloc_cases[] = {
	KUNIT_CASE_PARAM(verb_without_memory, victim_gen_params),
	{}
};
KVT_SUITE(emu_alloc, .init = kvt_need_injection);
