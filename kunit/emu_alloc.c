// SPDX-License-Identifier: GPL-2.0-only
/*
 * Each allocation of a verb fails in turn, in the emulated HCA and above it: the
 * verb reports -ENOMEM, leaves nothing behind, and works the next time. KASAN
 * and kmemleak see what this cannot.
 *
 * Needs what fail_nth.c needs.
 */
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <kunit/test.h>
#include <rdma/ib_verbs.h>

#include "emu_rig.h"
#include "lib.h"
#include "objects.h"
#include "suites.h"

/* No verb allocates as often: if one still fails, something is stuck. */
#define MAX_ALLOCS	200
#define USER_LEN	(64 * PAGE_SIZE)

/**
 * struct bench - where the victims live
 * @r: a connection
 * @addr: USER_LEN bytes of the process
 * @object: what was made
 */
struct bench {
	struct rig *r;
	unsigned long addr;
	void *object;
};

/* Keeps @object, or tells why there is none. */
static int keep(struct bench *b, void *object)
{
	b->object = object;
	return PTR_ERR_OR_ZERO(object);
}

static int make_pd(struct bench *b)
{
	return keep(b, ib_alloc_pd(b->r->a.ibdev, 0));
}

static int unmake_pd(struct bench *b)
{
	ib_dealloc_pd(b->object);
	return 0;
}

static int make_cq(struct bench *b)
{
	struct ib_cq_init_attr attr = { .cqe = 100 };

	return keep(b, ib_create_cq(b->r->a.ibdev, NULL, NULL, NULL, &attr));
}

static int unmake_cq(struct bench *b)
{
	ib_destroy_cq(b->object);
	return 0;
}

static int make_qp(struct bench *b)
{
	struct ib_qp_init_attr init = b->r->init;

	init.send_cq = b->r->a.scq;
	init.recv_cq = b->r->a.rcq;
	return keep(b, ib_create_qp(b->r->a.pd, &init));
}

static int unmake_qp(struct bench *b)
{
	return ib_destroy_qp(b->object);
}

static int make_srq(struct bench *b)
{
	struct ib_srq_init_attr init = {
		.attr = { .max_wr = 16, .max_sge = 1 },
		.srq_type = IB_SRQT_BASIC,
	};

	return keep(b, ib_create_srq(b->r->a.pd, &init));
}

static int unmake_srq(struct bench *b)
{
	ib_destroy_srq(b->object);
	return 0;
}

static int make_mr(struct bench *b)
{
	return keep(b, ib_alloc_mr(b->r->a.pd, IB_MR_TYPE_MEM_REG, 64));
}

static int make_user_mr(struct bench *b)
{
	return keep(b, ib_reg_user_mr(b->r->a.pd, b->addr, USER_LEN, b->addr,
				      IB_ACCESS_LOCAL_WRITE));
}

static int unmake_mr(struct bench *b)
{
	return ib_dereg_mr(b->object);
}

static int make_mw(struct bench *b)
{
	return keep(b, ib_alloc_mw(b->r->a.pd, IB_MW_TYPE_2));
}

static int unmake_mw(struct bench *b)
{
	return ib_dealloc_mw(b->object);
}

static int make_fmr(struct bench *b)
{
	struct ib_fmr_attr attr = { 64, 8, PAGE_SHIFT };

	return keep(b, ib_alloc_fmr(b->r->a.pd, 0, &attr));
}

static int unmake_fmr(struct bench *b)
{
	return ib_dealloc_fmr(b->object);
}

/**
 * struct victim - a verb whose allocations fail in turn
 * @name: for messages
 * @make: the verb; returns 0 or a negative errno
 * @unmake: undoes a @make that worked
 */
struct victim {
	const char *name;
	int (*make)(struct bench *b);
	int (*unmake)(struct bench *b);
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
};

static void victim_name(const struct victim *v, char *desc)
{
	strscpy(desc, v->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(victim, victims, victim_name);

/* Some failures may be survived: then the verb works, and is undone. */
static void verb_without_memory(struct kunit *test)
{
	const struct victim *v = test->param_value;
	struct bench b = {};
	unsigned int n;
	bool hit;
	int ret;

	kvt_need_injection(test);
	b.r = rig_up(test, "emu0", "emu0");
	b.addr = kunit_vm_mmap(test, NULL, 0, USER_LEN, PROT_READ | PROT_WRITE,
			       MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, 0, b.addr);
	for (n = 1; n < MAX_ALLOCS; n++) {
		kvt_fail_nth(n);
		ret = v->make(&b);
		hit = kvt_failed_nth();
		if (ret)
			KUNIT_EXPECT_EQ_MSG(test, -ENOMEM, ret, "n=%u", n);
		else
			KUNIT_EXPECT_EQ(test, 0, v->unmake(&b));
		if (!hit)
			break;
	}
	kunit_info(test, "%u allocations failed", n - 1);
	KUNIT_EXPECT_GT(test, n, 1);
	KUNIT_EXPECT_LT(test, n, MAX_ALLOCS);
	KUNIT_ASSERT_EQ(test, 0, v->make(&b));
	KUNIT_EXPECT_EQ(test, 0, v->unmake(&b));
}

static struct kunit_case emu_alloc_cases[] = {
	KUNIT_CASE_PARAM(verb_without_memory, victim_gen_params),
	{}
};

struct kunit_suite emu_alloc_suite = {
	.name = "kverbs-emu-alloc",
	.test_cases = emu_alloc_cases,
};
