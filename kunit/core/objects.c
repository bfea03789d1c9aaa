// SPDX-License-Identifier: GPL-2.0-only
/*
 * PDs, CQs, address handles, SRQs and memory regions: what the core does before and after
 * the driver's methods, above all when a method fails.
 */
#include <linux/dma-mapping.h>
#include <linux/scatterlist.h>

#include "lib/mock.h"
#include "lib/objects.h"

static void pd_has_the_devices_local_key(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);

	KUNIT_EXPECT_EQ(test, MOCK_LKEY, pd->local_dma_lkey);
	KUNIT_EXPECT_EQ(test, 0, pd->unsafe_global_rkey);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_get_dma_mr));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
	KUNIT_EXPECT_PTR_EQ(test, pd->device, m->ibdev);
	kvt_pd_put(test, pd);
	MOCK_EXPECT_IDLE(test, m);
}

/* What the method below was called with, and returns. */
static struct {
	u32 flags, lkey;
	int calls;
} advice;

static int take_advice(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice kind, u32 flags,
		       struct ib_sge *sge, u32 num_sge, struct uverbs_attr_bundle *attrs)
{
	advice.calls++;
	advice.flags = flags;
	advice.lkey = sge[num_sge - 1].lkey;
	return kind == IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH ? 0 : -EXFULL;
}

static void advice_is_taken_or_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_sge sge[] = { { .lkey = 1 }, { .lkey = 2 } };

	memset(&advice, 0, sizeof(advice));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			ib_advise_mr(pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 2));
	m->ibdev->ops.advise_mr = take_advice;
	KUNIT_EXPECT_EQ(test, 0, ib_advise_mr(pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH, 0, sge, 0));
	KUNIT_EXPECT_EQ(test, 0, advice.calls);
	KUNIT_EXPECT_EQ(test, 0, ib_advise_mr(pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH,
					      IB_UVERBS_ADVISE_MR_FLAG_FLUSH, sge, 2));
	KUNIT_EXPECT_EQ(test, IB_UVERBS_ADVISE_MR_FLAG_FLUSH, advice.flags);
	KUNIT_EXPECT_EQ(test, 2, advice.lkey);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_advise_mr(pd, IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE,
						    0, sge, 1));
}

static struct mock *mock_without_local_key(struct kunit *test)
{
	struct mock *m = mock_new(test);

	m->no_local_lkey = true;
	mock_start(test, m, "kvtm_a");
	return m;
}

static void pd_gets_a_region_where_the_device_has_no_key(struct kunit *test)
{
	struct mock *m = mock_without_local_key(test);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct mock_call call = {};

	KUNIT_EXPECT_TRUE(test, mock_last(m, MOCK_get_dma_mr, &call));
	KUNIT_EXPECT_EQ(test, IB_ACCESS_LOCAL_WRITE, call.arg);
	KUNIT_EXPECT_NE(test, 0, pd->local_dma_lkey);
	KUNIT_EXPECT_NE(test, MOCK_LKEY, pd->local_dma_lkey);
	KUNIT_EXPECT_EQ(test, 0, pd->unsafe_global_rkey);
	kvt_pd_put(test, pd);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_dereg_mr));
	MOCK_EXPECT_IDLE(test, m);
}

static void pd_gives_a_global_rkey_when_asked(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = KVT_PTR(test, ib_alloc_pd(m->ibdev, IB_PD_UNSAFE_GLOBAL_RKEY));
	struct mock_call call = {};

	KUNIT_EXPECT_TRUE(test, mock_last(m, MOCK_get_dma_mr, &call));
	KUNIT_EXPECT_EQ(test, IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
			call.arg & ~(u64)IB_ACCESS_LOCAL_WRITE);
	KUNIT_EXPECT_NE(test, 0, pd->unsafe_global_rkey);
	KUNIT_EXPECT_EQ(test, MOCK_LKEY, pd->local_dma_lkey);
	ib_dealloc_pd(pd);
	MOCK_EXPECT_IDLE(test, m);
}

static void pd_failure_leaves_nothing(struct kunit *test)
{
	struct mock *m = mock_without_local_key(test);

	mock_fail(m, MOCK_alloc_pd, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(ib_alloc_pd(m->ibdev, 0)));
	mock_fail_none(m);
	mock_fail(m, MOCK_get_dma_mr, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(ib_alloc_pd(m->ibdev, 0)));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_dealloc_pd));
	MOCK_EXPECT_IDLE(test, m);
	mock_fail_none(m);
	kvt_pd(test, m->ibdev);
}

static void pd_that_the_driver_keeps_is_still_there(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = KVT_PTR(test, ib_alloc_pd(m->ibdev, 0));
	u32 id = pd->res.id;

	mock_fail(m, MOCK_dealloc_pd, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_dealloc_pd_user(pd, NULL));
	kvt_expect_kept(test, m->ibdev, &pd->res, id);
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_pd_user(pd, NULL));
	MOCK_EXPECT_IDLE(test, m);
}

static void pd_that_the_driver_keeps_has_no_dead_keys(struct kunit *test)
{
	struct mock *m = mock_without_local_key(test);
	struct ib_pd *pd = KVT_PTR(test, ib_alloc_pd(m->ibdev, IB_PD_UNSAFE_GLOBAL_RKEY));

	KUNIT_EXPECT_NE(test, 0, pd->local_dma_lkey);
	mock_fail(m, MOCK_dealloc_pd, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_dealloc_pd_user(pd, NULL));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->live[MOCK_MR]));
	KUNIT_EXPECT_EQ(test, 0, pd->local_dma_lkey);
	KUNIT_EXPECT_EQ(test, 0, pd->unsafe_global_rkey);
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_pd_user(pd, NULL));
	MOCK_EXPECT_IDLE(test, m);
}

/* The string may be in a module that is unloaded before the object is destroyed. */
static void object_keeps_a_copy_of_its_makers_name(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	char name[] = "some_ulp";
	struct ib_pd *pd = KVT_PTR(test, __ib_alloc_pd(m->ibdev, 0, name));

	memset(name, 'x', sizeof(name) - 1);
	KUNIT_EXPECT_STREQ(test, pd->res.kern_name, "some_ulp");
	ib_dealloc_pd(pd);
}

/* A process may be called anything; its name appears in debugfs, among fields of the same form. */
static void name_of_a_process_is_no_field(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = KVT_PTR(test, __ib_alloc_pd(m->ibdev, 0, "x errors=9\n\x1b[2J\xff-y"));

	KUNIT_EXPECT_STREQ(test, pd->res.kern_name, "x_errors_9__[2J_-y");
	ib_dealloc_pd(pd);
}

static void pd_in_use_is_busy(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_mr *mr = KVT_PTR(test, ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4));

	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_dealloc_pd_user(pd, NULL));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_dealloc_pd));
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

static struct ib_cq *make_cq(struct mock *m, int cqe, int vector)
{
	struct ib_cq_init_attr attr = { .cqe = cqe, .comp_vector = vector };

	return ib_create_cq(m->ibdev, NULL, NULL, m, &attr);
}

static void cq_is_made_as_asked(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	int vector = m->ibdev->num_comp_vectors - 1;
	struct mock_call call = {};
	struct ib_cq *cq = KVT_PTR(test, make_cq(m, 100, vector));

	KUNIT_EXPECT_TRUE(test, mock_last(m, MOCK_create_cq, &call));
	KUNIT_EXPECT_EQ(test, 100, call.arg);
	KUNIT_EXPECT_EQ(test, vector, call.arg2);
	KUNIT_EXPECT_EQ(test, 100, cq->cqe);
	KUNIT_EXPECT_PTR_EQ(test, cq->cq_context, (void *)m);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&cq->usecnt));
	ib_destroy_cq(cq);
	MOCK_EXPECT_IDLE(test, m);
}

static void cq_of_no_or_too_many_entries_is_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");

	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(make_cq(m, 0, 0)));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(make_cq(m, MOCK_MAX_CQE + 1, 0)));
	KUNIT_EXPECT_EQ(test, -EINVAL,
			PTR_ERR_OR_ZERO(ib_alloc_cq(m->ibdev, NULL,
						    MOCK_MAX_CQE + 1, 0,
						    IB_POLL_SOFTIRQ)));
	MOCK_EXPECT_IDLE(test, m);
}

static void cq_failure_leaves_nothing(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq;
	u32 id;

	mock_fail(m, MOCK_create_cq, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(make_cq(m, 10, 0)));
	MOCK_EXPECT_IDLE(test, m);
	mock_fail_none(m);

	cq = KVT_PTR(test, make_cq(m, 10, 0));
	id = cq->res.id;
	mock_fail(m, MOCK_destroy_cq, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_destroy_cq_user(cq, NULL));
	kvt_expect_kept(test, m->ibdev, &cq->res, id);
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_cq_user(cq, NULL));
	MOCK_EXPECT_IDLE(test, m);
}

static void c14_cq_in_use_is_busy(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq = KVT_PTR(test, make_cq(m, 10, 0));
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_qp_init_attr init;
	struct ib_qp *qp;

	kvt_qp_init(&init, cq, cq);
	qp = ib_create_qp(pd, &init);
	KUNIT_EXPECT_EQ(test, 0, PTR_ERR_OR_ZERO(qp));
	if (!IS_ERR(qp)) {
		KUNIT_EXPECT_EQ(test, 2, atomic_read(&cq->usecnt));
		KUNIT_EXPECT_EQ(test, -EBUSY, ib_destroy_cq_user(cq, NULL));
		KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_destroy_cq));
		ib_destroy_qp(qp);
	}
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&cq->usecnt));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_cq_user(cq, NULL));
}

static void ah_attr_init(struct ib_device *ibdev, struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = rdma_ah_find_type(ibdev, 1);
	rdma_ah_set_port_num(attr, 1);
	rdma_ah_set_dlid(attr, 0x22);
	rdma_ah_set_sl(attr, 3);
}

static void ah_lives_and_answers(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct rdma_ah_attr attr, got = {};
	struct ib_ah *ah;

	ah_attr_init(m->ibdev, &attr);
	KUNIT_ASSERT_EQ(test, RDMA_AH_ATTR_TYPE_IB, attr.type);
	ah = KVT_PTR(test, rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_dealloc_pd_user(pd, NULL));
	KUNIT_EXPECT_EQ(test, 0, rdma_query_ah(ah, &got));
	KUNIT_EXPECT_EQ(test, 0x22, rdma_ah_get_dlid(&got));
	rdma_ah_set_dlid(&attr, 0x23);
	KUNIT_EXPECT_EQ(test, 0, rdma_modify_ah(ah, &attr));
	KUNIT_EXPECT_EQ(test, 0, rdma_query_ah(ah, &got));
	KUNIT_EXPECT_EQ(test, 0x23, rdma_ah_get_dlid(&got));
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->live[MOCK_AH]));
}

/* The mock's query_ah returns all attributes, including sgid_attr, which the core clears. */
static void query_ah_gives_no_reference_away(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct rdma_ah_attr attr, got = {};
	struct ib_ah *ah;

	ah_attr_init(m->ibdev, &attr);
	rdma_ah_set_grh(&attr, NULL, 0, 0, 1, 0);
	ah = KVT_PTR(test, rdma_create_ah(pd, &attr, RDMA_CREATE_AH_SLEEPABLE));
	KUNIT_EXPECT_NOT_NULL(test, ah->sgid_attr);
	KUNIT_EXPECT_EQ(test, 0, rdma_query_ah(ah, &got));
	KUNIT_EXPECT_NULL(test, got.grh.sgid_attr);
	rdma_destroy_ah_attr(&got);
	rdma_destroy_ah(ah, RDMA_DESTROY_AH_SLEEPABLE);
}

struct ah_job {
	struct ib_pd *pd;
	struct rdma_ah_attr attr;
	int made;
	int modified;
	int destroyed;
};

static void ah_cycle(void *arg)
{
	struct ah_job *job = arg;
	struct ib_ah *ah = rdma_create_ah(job->pd, &job->attr, 0);

	job->made = PTR_ERR_OR_ZERO(ah);
	if (job->made)
		return;
	job->modified = rdma_modify_ah(ah, &job->attr);
	job->destroyed = rdma_destroy_ah_user(ah, 0, NULL);
}

/* Rule 1 of the contract: address handles are created and destroyed in any context. */
static void ah_works_in_interrupts(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ah_job job = { .pd = kvt_pd(test, m->ibdev) };
	int i;

	ah_attr_init(m->ibdev, &job.attr);
	rdma_ah_set_grh(&job.attr, NULL, 0, 0, 64, 0);
	job.attr.grh.dgid.raw[15] = 1;
	for (i = 0; i < 2; i++) {
		job.made = job.modified = job.destroyed = -1;
		if (i)
			kvt_run_in_softirq(ah_cycle, &job);
		else
			kvt_run_in_hardirq(ah_cycle, &job);
		KUNIT_EXPECT_EQ(test, 0, job.made);
		KUNIT_EXPECT_EQ(test, 0, job.modified);
		KUNIT_EXPECT_EQ(test, 0, job.destroyed);
	}
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&m->live[MOCK_AH]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&job.pd->usecnt));
}

static void ah_failure_leaves_nothing(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct rdma_ah_attr attr;
	struct ib_ah *ah;

	ah_attr_init(m->ibdev, &attr);
	mock_fail(m, MOCK_create_ah, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(rdma_create_ah(pd, &attr, 0)));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
	mock_fail_none(m);

	ah = KVT_PTR(test, rdma_create_ah(pd, &attr, 0));
	mock_fail(m, MOCK_destroy_ah, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, rdma_destroy_ah_user(ah, 0, NULL));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, rdma_destroy_ah_user(ah, 0, NULL));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

static void ah_of_a_bad_address_is_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct rdma_ah_attr attr;

	ah_attr_init(m->ibdev, &attr);
	rdma_ah_set_port_num(&attr, 2);
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(rdma_create_ah(pd, &attr, 0)));
	ah_attr_init(m->ibdev, &attr);
	attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(rdma_create_ah(pd, &attr, 0)));
	ah_attr_init(m->ibdev, &attr);
	rdma_ah_set_grh(&attr, NULL, 0, MOCK_GIDS, 64, 0);
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(rdma_create_ah(pd, &attr, 0)));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_create_ah));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

static struct ib_srq *make_srq(struct ib_pd *pd, u32 wr, u32 sge)
{
	struct ib_srq_init_attr init = {
		.srq_type = IB_SRQT_BASIC,
		.attr = { .max_wr = wr, .max_sge = sge },
	};

	return ib_create_srq(pd, &init);
}

static void srq_lives_and_answers(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_srq_attr attr = { .srq_limit = 5 };
	struct ib_srq *srq = KVT_PTR(test, make_srq(pd, 32, 1));

	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	KUNIT_EXPECT_EQ(test, 0, ib_modify_srq(srq, &attr, IB_SRQ_LIMIT));
	memset(&attr, 0, sizeof(attr));
	KUNIT_EXPECT_EQ(test, 0, ib_query_srq(srq, &attr));
	KUNIT_EXPECT_EQ(test, 32, attr.max_wr);
	KUNIT_EXPECT_EQ(test, 5, attr.srq_limit);
	ib_destroy_srq(srq);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

static void srq_beyond_the_limits_is_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);

	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(make_srq(pd, MOCK_MAX_SRQ_WR + 1, 1)));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(make_srq(pd, 1, MOCK_MAX_SRQ_SGE + 1)));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_create_srq));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

static void srq_failure_leaves_nothing(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_srq *srq;
	u32 id;

	mock_fail(m, MOCK_create_srq, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(make_srq(pd, 8, 1)));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
	mock_fail_none(m);
	srq = KVT_PTR(test, make_srq(pd, 8, 1));
	id = srq->res.id;
	mock_fail(m, MOCK_destroy_srq, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_destroy_srq_user(srq, NULL));
	kvt_expect_kept(test, m->ibdev, &srq->res, id);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_srq_user(srq, NULL));
}

static void srq_of_a_device_without_is_not_supported(struct kunit *test)
{
	struct mock *m = mock_new(test);

	m->ops.create_srq = NULL;
	m->ops.alloc_mr = NULL;
	mock_start(test, m, "kvtm_a");
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, PTR_ERR_OR_ZERO(make_srq(kvt_pd(test, m->ibdev), 8, 1)));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP,
			PTR_ERR_OR_ZERO(ib_alloc_mr(kvt_pd(test, m->ibdev),
						    IB_MR_TYPE_MEM_REG, 4)));
}

static void mr_is_set_up_and_counted(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_mr *mr = KVT_PTR(test, ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4));
	u32 lkey;

	KUNIT_EXPECT_PTR_EQ(test, mr->pd, pd);
	KUNIT_EXPECT_PTR_EQ(test, mr->device, m->ibdev);
	KUNIT_EXPECT_EQ(test, IB_MR_TYPE_MEM_REG, mr->type);
	lkey = mr->lkey;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	KUNIT_EXPECT_EQ(test, lkey + 1, mr->lkey);
	KUNIT_EXPECT_EQ(test, lkey + 1, mr->rkey);
	KUNIT_EXPECT_EQ(test, 0x1200, ib_inc_rkey(0x12ff));
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
}

static void mr_failure_leaves_nothing(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_mr *mr;
	u32 id;

	mock_fail(m, MOCK_alloc_mr, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4)));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&pd->usecnt));
	mock_fail_none(m);
	mr = KVT_PTR(test, ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, 4));
	id = mr->res.id;
	mock_fail(m, MOCK_dereg_mr, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_dereg_mr(mr));
	kvt_expect_kept(test, m->ibdev, &mr->res, id);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&pd->usecnt));
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
}

/* A scatterlist of DMA addresses without pages behind them. */
static void sg_fake(struct scatterlist *sg, const u64 *addr_len, int n)
{
	int i;

	sg_init_table(sg, n);
	for (i = 0; i < n; i++) {
		sg_dma_address(&sg[i]) = addr_len[2 * i];
		sg[i].length = addr_len[2 * i + 1];
		sg_dma_len(&sg[i]) = addr_len[2 * i + 1];
	}
}

static int map_fake(struct ib_mr *mr, const u64 *addr_len, int n, unsigned int *offset)
{
	struct scatterlist sg[4];

	sg_fake(sg, addr_len, n);
	return ib_map_mr_sg(mr, sg, n, offset, 4096);
}

static void sg_maps_up_to_a_gap_or_the_end(struct kunit *test)
{
	static const u64 whole[] = { 0x10800, 0x800, 0x20000, 0x1000,
				     0x30000, 0x10 };
	static const u64 joined[] = { 0x10000, 0x800, 0x10800, 0x900,
				      0x11100, 0xf00 };
	static const u64 gap[] = { 0x10000, 0x1000, 0x20100, 0x100 };
	static const u64 early[] = { 0x10000, 0x100, 0x20000, 0x100 };
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_mr *mr = kvt_mr(test, kvt_pd(test, m->ibdev), 4);
	unsigned int offset = 0x10;

	KUNIT_EXPECT_EQ(test, 3, map_fake(mr, whole, 3, NULL));
	KUNIT_EXPECT_EQ(test, 0x10800, mr->iova);
	KUNIT_EXPECT_EQ(test, 0x1810, mr->length);
	KUNIT_EXPECT_EQ(test, 3, map_fake(mr, joined, 3, NULL));
	KUNIT_EXPECT_EQ(test, 0x2000, mr->length);
	KUNIT_EXPECT_EQ(test, 1, map_fake(mr, gap, 2, NULL));
	KUNIT_EXPECT_EQ(test, 0x1000, mr->length);
	KUNIT_EXPECT_EQ(test, 1, map_fake(mr, early, 2, NULL));
	KUNIT_EXPECT_EQ(test, 0x100, mr->length);
	KUNIT_EXPECT_EQ(test, 3, map_fake(mr, whole, 3, &offset));
	KUNIT_EXPECT_EQ(test, 0x10810, mr->iova);
	KUNIT_EXPECT_EQ(test, 0x1800, mr->length);
}

static void messages_are_words_for_every_value(struct kunit *test)
{
	int i;

	for (i = IB_WC_SUCCESS; i <= IB_WC_GENERAL_ERR; i++) {
		KUNIT_EXPECT_GT(test, strlen(ib_wc_status_msg(i)), 0);
		KUNIT_EXPECT_NULL(test, strstr(ib_wc_status_msg(i), "unrecog"));
	}
	for (i = IB_EVENT_CQ_ERR; i <= IB_EVENT_GID_CHANGE; i++)
		KUNIT_EXPECT_NULL(test, strstr(ib_event_msg(i), "unrecog"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(ib_wc_status_msg(99), "unrecog"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(ib_wc_status_msg(-1), "unrecog"));
	KUNIT_EXPECT_NOT_NULL(test, strstr(ib_event_msg(99), "unrecog"));
	KUNIT_EXPECT_NE(test, 0, strcmp(ib_wc_status_msg(IB_WC_SUCCESS),
					ib_wc_status_msg(IB_WC_WR_FLUSH_ERR)));
}

static struct kunit_case core_objects_cases[] = {
	KUNIT_CASE(pd_has_the_devices_local_key),
	KUNIT_CASE(advice_is_taken_or_refused),
	KUNIT_CASE(pd_gets_a_region_where_the_device_has_no_key),
	KUNIT_CASE(pd_gives_a_global_rkey_when_asked),
	KUNIT_CASE(pd_failure_leaves_nothing),
	KUNIT_CASE(pd_that_the_driver_keeps_is_still_there),
	KUNIT_CASE(pd_that_the_driver_keeps_has_no_dead_keys),
	KUNIT_CASE(object_keeps_a_copy_of_its_makers_name),
	KUNIT_CASE(name_of_a_process_is_no_field),
	KUNIT_CASE(pd_in_use_is_busy),
	KUNIT_CASE(cq_is_made_as_asked),
	KUNIT_CASE(cq_of_no_or_too_many_entries_is_refused),
	KUNIT_CASE(cq_failure_leaves_nothing),
	KUNIT_CASE(c14_cq_in_use_is_busy),
	KUNIT_CASE(ah_lives_and_answers),
	KUNIT_CASE(query_ah_gives_no_reference_away),
	KUNIT_CASE(ah_works_in_interrupts),
	KUNIT_CASE(ah_failure_leaves_nothing),
	KUNIT_CASE(ah_of_a_bad_address_is_refused),
	KUNIT_CASE(srq_lives_and_answers),
	KUNIT_CASE(srq_beyond_the_limits_is_refused),
	KUNIT_CASE(srq_failure_leaves_nothing),
	KUNIT_CASE(srq_of_a_device_without_is_not_supported),
	KUNIT_CASE(mr_is_set_up_and_counted),
	KUNIT_CASE(mr_failure_leaves_nothing),
	KUNIT_CASE(sg_maps_up_to_a_gap_or_the_end),
	KUNIT_CASE(messages_are_words_for_every_value),
	{}
};
KVT_SUITE(core_objects);

MODULE_DESCRIPTION("KUnit: verbs objects");
MODULE_LICENSE("GPL");
