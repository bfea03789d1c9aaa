// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool of shared CQs: which CQ a consumer gets, and when CQs are created and destroyed.
 */
#include <linux/cpumask.h>
#include <kverbs/completion.h>

#include "cq/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

#define VECTORS		4
#define FOREVER		1000000
#define CHURN		10000

/* CPUs that each completion vector of the device interrupts. */
static struct cpumask vector_cpus[VECTORS];

static const struct cpumask *pool_vector_affinity(struct ib_device *ibdev, int vector)
{
	return &vector_cpus[vector];
}

/* Sets how long an idle CQ is kept, until the case ends. */
static void pool_idle(struct kunit *test, unsigned int ms)
{
	cq_rig_tune(test, "cq_pool_idle_ms", ms);
}

/* A device with VECTORS vectors, whose affinity masks are empty at first. */
static struct mock *pool_device(struct kunit *test)
{
	struct mock *m = mock_new(test);
	int i;

	for (i = 0; i < VECTORS; i++)
		cpumask_clear(&vector_cpus[i]);
	m->ops.get_vector_affinity = pool_vector_affinity;
	mock_alloc(test, m);
	m->ibdev->num_comp_vectors = VECTORS;
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_p"));
	mock_log_reset(m);
	pool_idle(test, FOREVER);
	return m;
}

static struct ib_cq *pool_get(struct kunit *test, struct mock *m, unsigned int nr, int hint)
{
	struct ib_cq *cq = KVT_PTR(test, ib_cq_pool_get(m->ibdev, nr, hint, IB_POLL_WORKQUEUE));

	return cq;
}

static int pool_error(struct mock *m, unsigned int nr, enum ib_poll_context ctx)
{
	struct ib_cq *cq = ib_cq_pool_get(m->ibdev, nr, 0, ctx);

	if (IS_ERR(cq))
		return PTR_ERR(cq);
	ib_cq_pool_put(cq, nr);
	return 0;
}

static void get_checks_its_arguments(struct kunit *test)
{
	struct mock *m = pool_device(test);

	KUNIT_EXPECT_EQ(test, -EINVAL, pool_error(m, 0, IB_POLL_SOFTIRQ));
	KUNIT_EXPECT_EQ(test, -EINVAL, pool_error(m, MOCK_MAX_CQE + 1, IB_POLL_SOFTIRQ));
	KUNIT_EXPECT_EQ(test, -EINVAL, pool_error(m, UINT_MAX, IB_POLL_SOFTIRQ));
	KUNIT_EXPECT_EQ(test, -EINVAL, pool_error(m, 1, IB_POLL_DIRECT));
	KUNIT_EXPECT_EQ(test, -EINVAL, pool_error(m, 1, -1));
	MOCK_EXPECT_IDLE(test, m);
	KUNIT_EXPECT_EQ(test, 0, pool_error(m, MOCK_MAX_CQE, IB_POLL_THREAD));
}

static void consumers_share_a_cq(struct kunit *test)
{
	struct mock *m = pool_device(test);
	struct ib_cq *a, *b, *other;

	a = pool_get(test, m, 100, 1);
	KUNIT_EXPECT_EQ(test, MOCK_MAX_CQE, a->cqe);
	KUNIT_EXPECT_EQ(test, 100, a->cqe_used);
	KUNIT_EXPECT_EQ(test, 1, a->comp_vector);
	KUNIT_EXPECT_EQ(test, IB_POLL_WORKQUEUE, a->poll_ctx);
	b = pool_get(test, m, 200, 1);
	KUNIT_EXPECT_PTR_EQ(test, a, b);
	KUNIT_EXPECT_EQ(test, 300, a->cqe_used);
	other = KVT_PTR(test, ib_cq_pool_get(m->ibdev, 10, 1, IB_POLL_SOFTIRQ));
	KUNIT_EXPECT_PTR_NE(test, a, other);
	ib_cq_pool_put(other, 10);
	ib_cq_pool_put(b, 200);
	KUNIT_EXPECT_EQ(test, 100, a->cqe_used);
	ib_cq_pool_put(a, 100);
	KUNIT_EXPECT_EQ(test, 0, a->cqe_used);
	/* An idle CQ is given to the next consumer. */
	KUNIT_EXPECT_PTR_EQ(test, a, pool_get(test, m, MOCK_MAX_CQE, 1));
	ib_cq_pool_put(a, MOCK_MAX_CQE);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_destroy_cq));
}

static void shared_cq_is_not_one_consumers_to_change(struct kunit *test)
{
	struct mock *m = pool_device(test);
	struct ib_cq *cq = pool_get(test, m, 1, 0);

	ib_free_cq(cq);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, ib_destroy_cq_user(cq, NULL));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, rdma_set_cq_moderation(cq, 2, 2));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, ib_resize_cq(cq, 2));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_destroy_cq));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_modify_cq));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_resize_cq));
	ib_cq_pool_put(cq, 1);
}

static void hint_is_taken_modulo_the_vectors(struct kunit *test)
{
	struct mock *m = pool_device(test);
	int hint;

	for (hint = 0; hint < 3 * VECTORS; hint++) {
		struct ib_cq *cq = pool_get(test, m, 1, hint);

		KUNIT_EXPECT_EQ(test, hint % VECTORS, cq->comp_vector);
	}
	KUNIT_EXPECT_EQ(test, VECTORS, mock_calls(m, MOCK_create_cq));
	for (hint = 0; hint < 3 * VECTORS; hint++)
		ib_cq_pool_put(pool_get(test, m, 2, hint), 2);
	mock_unregister(m);
	MOCK_EXPECT_IDLE(test, m);
}

/* Gets and keeps CQEs without a hint: the pool must choose the vectors in @want. */
static void expect_vectors(struct kunit *test, struct mock *m, unsigned int nr_cqe,
			   const int *want, int nr)
{
	int i;

	for (i = 0; i < nr; i++)
		KUNIT_EXPECT_EQ_MSG(test, want[i], pool_get(test, m, nr_cqe, -1)->comp_vector,
				    "choice %d", i);
}

static void least_loaded_vector_is_chosen(struct kunit *test)
{
	static const int want[] = { 1, 3, 0, 2, 3, 1, 2, 0 };
	struct mock *m = pool_device(test);
	int i;

	kvt_need_two_cpus(test);
	/* Among equal loads, vectors 1 and 3, which interrupt this CPU, win; then in turn. */
	kvt_stay_on_first_cpu();
	for (i = 0; i < VECTORS; i++)
		cpumask_set_cpu(i % 2 ? 0 : kvt_other_cpu(), &vector_cpus[i]);
	expect_vectors(test, m, 10, want, ARRAY_SIZE(want));
}

static void load_is_what_is_in_use(struct kunit *test)
{
	static const int want[] = { 2, 2, 2 };
	struct mock *m = pool_device(test);
	struct ib_cq *cq[VECTORS], *softirq;
	int i;

	for (i = 0; i < VECTORS; i++) {
		cpumask_copy(&vector_cpus[i], cpu_online_mask);
		cq[i] = pool_get(test, m, 100, i);
	}
	/* CQs of other poll contexts count towards the load of a vector, too. */
	softirq = KVT_PTR(test, ib_cq_pool_get(m->ibdev, 100, 3, IB_POLL_SOFTIRQ));
	ib_cq_pool_put(cq[3], 100);
	ib_cq_pool_put(cq[2], 100);
	expect_vectors(test, m, 30, want, ARRAY_SIZE(want));
	ib_cq_pool_put(softirq, 100);
	KUNIT_EXPECT_EQ(test, 3, pool_get(test, m, 30, -1)->comp_vector);
}

static void vectors_of_the_callers_node_are_chosen(struct kunit *test)
{
	static const int near[] = { 2, 2, 2, 2 };
	struct mock *m = pool_device(test);
	unsigned long used = 0;
	int i;

	/* A vector that interrupts no CPU of this node counts as one of another node. */
	cpumask_copy(&vector_cpus[2], cpu_online_mask);
	expect_vectors(test, m, 10, near, ARRAY_SIZE(near));
	cpumask_clear(&vector_cpus[2]);
	for (i = 0; i < VECTORS; i++)
		used |= BIT(pool_get(test, m, 10, -1)->comp_vector);
	KUNIT_EXPECT_EQ(test, BIT(VECTORS) - 1, used);
}

static void vectors_without_affinity_are_the_cpus_in_turn(struct kunit *test)
{
	struct mock *m = mock_new(test);
	int cpu;

	mock_alloc(test, m);
	m->ibdev->num_comp_vectors = num_possible_cpus();
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_p"));
	/* Downwards: taking vectors in turn would give the same result upwards. */
	for (cpu = nr_cpu_ids - 1; cpu >= 0; cpu--) {
		if (!cpu_online(cpu))
			continue;
		set_cpus_allowed_ptr(current, cpumask_of(cpu));
		KUNIT_EXPECT_EQ(test, cpu, pool_get(test, m, 10, -1)->comp_vector);
	}
}

static void pool_grows_when_no_cq_has_room(struct kunit *test)
{
	struct mock *m = pool_device(test);
	struct ib_cq *a, *b;

	a = pool_get(test, m, 600, 0);
	b = pool_get(test, m, 500, 0);
	KUNIT_EXPECT_PTR_NE(test, a, b);
	/* The least used CQ with room is taken, and can be filled up entirely. */
	KUNIT_EXPECT_PTR_EQ(test, b, pool_get(test, m, 300, 0));
	KUNIT_EXPECT_PTR_EQ(test, a, pool_get(test, m, MOCK_MAX_CQE - 600, 0));
	KUNIT_EXPECT_PTR_EQ(test, b, pool_get(test, m, MOCK_MAX_CQE - 800, 0));
	KUNIT_EXPECT_EQ(test, 2, mock_calls(m, MOCK_create_cq));
	KUNIT_EXPECT_EQ(test, MOCK_MAX_CQE, a->cqe_used);
	KUNIT_EXPECT_EQ(test, MOCK_MAX_CQE, b->cqe_used);
	pool_get(test, m, 1, 0);
	KUNIT_EXPECT_EQ(test, 3, mock_calls(m, MOCK_create_cq));
}

static void cq_that_overran_is_not_given_out(struct kunit *test)
{
	struct mock *m = pool_device(test);
	struct ib_cq *cq = pool_get(test, m, 10, 0);

	ib_cq_notify_event(cq, IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_PTR_NE(test, cq, pool_get(test, m, 10, 0));
}

static void note_destroy(struct ib_cq *cq, void *arg)
{
	complete(arg);
}

static void idle_cq_is_destroyed_after_a_while(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(destroyed);
	struct mock *m = pool_device(test);
	struct ib_cq *cq, *used;

	cq = pool_get(test, m, 10, 0);
	used = pool_get(test, m, 10, 1);
	mock_cq_on_destroy(cq, note_destroy, &destroyed);
	/* A second consumer, so that the first put below leaves the CQ in use. */
	pool_get(test, m, 20, 0);
	pool_idle(test, 1);
	ib_cq_pool_put(cq, 20);
	KUNIT_EXPECT_EQ(test, 10, cq->cqe_used);
	ib_cq_pool_put(cq, 10);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&destroyed));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_destroy_cq));
	/* The next get creates a CQ; the CQ that is in use was not destroyed. */
	pool_get(test, m, 10, 0);
	KUNIT_EXPECT_EQ(test, 3, mock_calls(m, MOCK_create_cq));
	KUNIT_EXPECT_PTR_EQ(test, used, pool_get(test, m, 10, 1));
}

static void shorter_idle_time_counts_at_once(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(destroyed);
	struct mock *m = pool_device(test);
	struct ib_cq *cq, *other;

	cq = pool_get(test, m, 10, 0);
	other = pool_get(test, m, 10, 1);
	mock_cq_on_destroy(other, note_destroy, &destroyed);
	ib_cq_pool_put(cq, 10);
	pool_idle(test, 0);
	ib_cq_pool_put(other, 10);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&destroyed));
}

static void idle_cq_with_a_queue_pair_is_kept(struct kunit *test)
{
	DECLARE_COMPLETION_ONSTACK(destroyed);
	DECLARE_COMPLETION_ONSTACK(other);
	struct mock *m = pool_device(test);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_qp_init_attr init;
	struct ib_cq *cq, *cq2;
	struct ib_qp *qp;

	cq = pool_get(test, m, 10, 0);
	cq2 = pool_get(test, m, 10, 1);
	mock_cq_on_destroy(cq, note_destroy, &destroyed);
	mock_cq_on_destroy(cq2, note_destroy, &other);
	kvt_qp_init(&init, cq, cq);
	qp = kvt_qp(test, pd, &init);
	pool_idle(test, 0);
	ib_cq_pool_put(cq, 10);
	/* cq2 is destroyed, though it became idle after cq: so cq was kept. */
	ib_cq_pool_put(cq2, 10);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&other));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_destroy_cq));
	kvt_qp_put(test, qp);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&destroyed));
	kvt_pd_put(test, pd);
	mock_unregister(m);
	MOCK_EXPECT_IDLE(test, m);
}

static void what_was_not_got_is_not_taken_back(struct kunit *test)
{
	struct mock *m = pool_device(test);
	struct ib_cq *own, *cq;

	own = kvt_cq(test, m->ibdev, 10, IB_POLL_WORKQUEUE);
	pool_idle(test, 0);
	ib_cq_pool_put(own, 10);
	cq = pool_get(test, m, 10, 0);
	ib_cq_pool_put(cq, 9);
	ib_cq_pool_put(cq, 11);
	KUNIT_EXPECT_EQ(test, 10, cq->cqe_used);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_destroy_cq));
	/* The number that was got is taken back, but only once. */
	pool_idle(test, FOREVER);
	ib_cq_pool_put(cq, 10);
	ib_cq_pool_put(cq, 10);
	KUNIT_EXPECT_EQ(test, 0, cq->cqe_used);
}

/* A client that uses the pool. */
struct pool_client {
	struct ib_client client;
	struct ib_cq *cq;	/* the CQ that it got from the pool */
	unsigned int destroyed;	/* CQs that were destroyed before the client put @cq */
	struct mock *m;		/* the device */
};

static int pool_client_add(struct ib_device *ibdev)
{
	return 0;
}

static void pool_client_remove(struct ib_device *ibdev, void *data)
{
	struct pool_client *c = data;

	if (!c)
		return;
	c->destroyed = mock_calls(c->m, MOCK_destroy_cq);
	ib_cq_pool_put(c->cq, 10);
}

static void unregister_destroys_the_pool_after_the_clients(struct kunit *test)
{
	struct pool_client *c = kvt_zalloc(test, sizeof(*c));
	struct mock *m = pool_device(test);

	c->m = m;
	c->client.name = "kvt_pool";
	c->client.add = pool_client_add;
	c->client.remove = pool_client_remove;
	KUNIT_ASSERT_EQ(test, 0, ib_register_client(&c->client));
	c->cq = ib_cq_pool_get(m->ibdev, 10, 0, IB_POLL_THREAD);
	ib_set_client_data(m->ibdev, &c->client, c);
	ib_cq_pool_put(pool_get(test, m, 10, 1), 10);
	mock_unregister(m);
	ib_unregister_client(&c->client);
	KUNIT_EXPECT_EQ(test, 0, c->destroyed);
	KUNIT_EXPECT_EQ(test, 2, mock_calls(m, MOCK_destroy_cq));
	MOCK_EXPECT_IDLE(test, m);
}

static void unregister_with_entries_in_use_ends(struct kunit *test)
{
	struct mock *m = pool_device(test);
	struct ib_cq *cq;

	pool_get(test, m, 10, 0);
	pool_get(test, m, 20, 0);
	pool_get(test, m, 10, 1);
	mock_unregister(m);
	KUNIT_EXPECT_EQ(test, 2, mock_calls(m, MOCK_destroy_cq));
	MOCK_EXPECT_IDLE(test, m);
	cq = ib_cq_pool_get(m->ibdev, 1, 0, IB_POLL_SOFTIRQ);
	KUNIT_EXPECT_EQ(test, -ENODEV, PTR_ERR_OR_ZERO(cq));
}

static void failing_create_leaves_no_load(struct kunit *test)
{
	static const int want[] = { 1, 1 };
	struct mock *m = pool_device(test);
	struct ib_cq *cq;
	int i;

	for (i = 0; i < VECTORS; i++) {
		cpumask_copy(&vector_cpus[i], cpu_online_mask);
		pool_get(test, m, i == 1 ? 10 : 50, i);
	}
	mock_fail(m, MOCK_create_cq, -EXFULL);
	cq = ib_cq_pool_get(m->ibdev, MOCK_MAX_CQE, 1, IB_POLL_WORKQUEUE);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(cq));
	mock_fail_none(m);
	expect_vectors(test, m, 10, want, ARRAY_SIZE(want));
}

struct churn {
	struct mock *m;
	u64 rounds;
	u32 seed;
	int failed;
};

static int churn_fn(void *arg)
{
	struct churn *c = arg;
	u32 state = c->seed;
	u64 i;

	for (i = 0; i < c->rounds; i++) {
		unsigned int nr = 1 + kvt_rand(&state) % MOCK_MAX_CQE;
		struct ib_cq *cq = ib_cq_pool_get(c->m->ibdev, nr, kvt_rand(&state) % 2,
						  IB_POLL_WORKQUEUE);

		if (IS_ERR(cq)) {
			c->failed++;
			continue;
		}
		if (!(kvt_rand(&state) % 16))
			schedule_timeout_uninterruptible(1);
		/* The CQ must work until it is put. */
		if (ib_req_notify_cq(cq, IB_CQ_NEXT_COMP) < 0)
			c->failed++;
		ib_cq_pool_put(cq, nr);
		/* Sleep, so that idle CQs are destroyed. */
		if (!(kvt_rand(&state) % 16))
			schedule_timeout_uninterruptible(1);
	}
	return 0;
}

static void get_and_trim_on_two_cpus(struct kunit *test)
{
	u64 rounds = kvt_count(CHURN);
	struct mock *m = pool_device(test);
	struct kvt_thread *t[2];
	struct churn c[2];
	u32 seed;
	int i;

	seed = kvt_seed(test, "gets and puts by each of two", rounds);
	pool_idle(test, 0);
	for (i = 0; i < 2; i++) {
		c[i] = (struct churn){ .m = m, .rounds = rounds, .seed = seed + 2 * i };
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, churn_fn, &c[i]);
	}
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, kvt_thread_join(t[i]));
		KUNIT_EXPECT_EQ(test, 0, c[i].failed);
	}
	kunit_info(test, "%u CQs made", mock_calls(m, MOCK_create_cq));
	mock_unregister(m);
	MOCK_EXPECT_IDLE(test, m);
}

static struct kunit_case cq_pool_cases[] = {
	KUNIT_CASE(get_checks_its_arguments),
	KUNIT_CASE(consumers_share_a_cq),
	KUNIT_CASE(shared_cq_is_not_one_consumers_to_change),
	KUNIT_CASE(hint_is_taken_modulo_the_vectors),
	KUNIT_CASE(least_loaded_vector_is_chosen),
	KUNIT_CASE(load_is_what_is_in_use),
	KUNIT_CASE(vectors_of_the_callers_node_are_chosen),
	KUNIT_CASE(vectors_without_affinity_are_the_cpus_in_turn),
	KUNIT_CASE(pool_grows_when_no_cq_has_room),
	KUNIT_CASE(cq_that_overran_is_not_given_out),
	KUNIT_CASE(idle_cq_is_destroyed_after_a_while),
	KUNIT_CASE(shorter_idle_time_counts_at_once),
	KUNIT_CASE(idle_cq_with_a_queue_pair_is_kept),
	KUNIT_CASE(what_was_not_got_is_not_taken_back),
	KUNIT_CASE(unregister_destroys_the_pool_after_the_clients),
	KUNIT_CASE(unregister_with_entries_in_use_ends),
	KUNIT_CASE(failing_create_leaves_no_load),
	KUNIT_CASE(get_and_trim_on_two_cpus),
	{}
};
KVT_SUITE(cq_pool);

MODULE_DESCRIPTION("KUnit: the pool of completion queues, and moderation");
MODULE_LICENSE("GPL");
