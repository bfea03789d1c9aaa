// SPDX-License-Identifier: GPL-2.0-only
/*
 * CQ moderation in the core: what rdma_set_cq_moderation() and ib_resize_cq() pass to the
 * driver, and adaptive moderation that follows the load.
 */
#include "cq/rig.h"
#include "lib/mock.h"

#define MAX_COUNT	100
#define MAX_PERIOD	50
/* Rounds after which moderation must have followed the load; dimlib samples every 64. */
#define MAX_ROUNDS	20000

/* Last arguments of modify_cq() for any CQ, period in the upper half, and number of calls. */
static atomic_t mod_last;
static atomic_t mod_calls;

static int mod_modify_cq(struct ib_cq *cq, u16 count, u16 period)
{
	atomic_set(&mod_last, count | period << 16);
	atomic_inc(&mod_calls);
	return 0;
}

static void mod_register(struct kunit *test, struct mock *m, bool adaptive)
{
	mock_alloc(test, m);
	m->ibdev->use_cq_dim = adaptive;
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_m"));
	m->ibdev->attrs.cq_caps.max_cq_moderation_count = MAX_COUNT;
	m->ibdev->attrs.cq_caps.max_cq_moderation_period = MAX_PERIOD;
	mock_log_reset(m);
}

static struct mock *mod_device(struct kunit *test, bool adaptive)
{
	struct mock *m = mock_new(test);

	atomic_set(&mod_last, 0);
	atomic_set(&mod_calls, 0);
	if (adaptive)
		m->ops.modify_cq = mod_modify_cq;
	mod_register(test, m, adaptive);
	return m;
}

static void moderation_reaches_the_driver(struct kunit *test)
{
	struct mock *m = mod_device(test, false);
	struct recorder *rec = recorder_up(test, m, IB_POLL_SOFTIRQ, 0);
	struct mock_call call;

	KUNIT_EXPECT_EQ(test, 0, rdma_set_cq_moderation(rec->cq, 7, 9));
	KUNIT_ASSERT_TRUE(test, mock_last(m, MOCK_modify_cq, &call));
	KUNIT_EXPECT_PTR_EQ(test, (const void *)rec->cq, call.obj);
	KUNIT_EXPECT_EQ(test, 7, call.arg);
	KUNIT_EXPECT_EQ(test, 9, call.arg2);
	KUNIT_EXPECT_EQ(test, 0, rdma_set_cq_moderation(rec->cq, 0, 0));
	mock_fail(m, MOCK_modify_cq, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, rdma_set_cq_moderation(rec->cq, 7, 9));
}

static void moderation_is_within_the_devices_limits(struct kunit *test)
{
	struct mock *m = mod_device(test, false);
	struct recorder *rec = recorder_up(test, m, IB_POLL_SOFTIRQ, 0);

	KUNIT_EXPECT_EQ(test, -EINVAL, rdma_set_cq_moderation(rec->cq, MAX_COUNT + 1, 1));
	KUNIT_EXPECT_EQ(test, -EINVAL, rdma_set_cq_moderation(rec->cq, 1, MAX_PERIOD + 1));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_modify_cq));
	KUNIT_EXPECT_EQ(test, 0, rdma_set_cq_moderation(rec->cq, MAX_COUNT, MAX_PERIOD));
	/* If the driver reports no limits, the core passes every value on. */
	memset(&m->ibdev->attrs.cq_caps, 0, sizeof(m->ibdev->attrs.cq_caps));
	KUNIT_EXPECT_EQ(test, 0, rdma_set_cq_moderation(rec->cq, U16_MAX, U16_MAX));
}

static void driver_without_moderation_is_left_alone(struct kunit *test)
{
	struct mock *m = mock_new(test);
	struct recorder *rec;

	m->ops.modify_cq = NULL;
	m->ops.resize_cq = NULL;
	mock_alloc(test, m);
	m->ibdev->use_cq_dim = true;
	KUNIT_ASSERT_EQ(test, 0, mock_register(m, "kvtm_m"));
	rec = recorder_up(test, m, IB_POLL_SOFTIRQ, 0);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, rdma_set_cq_moderation(rec->cq, 2, 2));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, ib_resize_cq(rec->cq, 2));
	KUNIT_EXPECT_NULL(test, rec->cq->dim);
}

static void resize_checks_the_size(struct kunit *test)
{
	struct mock *m = mod_device(test, false);
	struct recorder *rec = recorder_up(test, m, IB_POLL_SOFTIRQ, 0);

	KUNIT_EXPECT_EQ(test, -EINVAL, ib_resize_cq(rec->cq, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_resize_cq(rec->cq, -1));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_resize_cq(rec->cq, MOCK_MAX_CQE + 1));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_resize_cq));
	KUNIT_EXPECT_EQ(test, 0, ib_resize_cq(rec->cq, MOCK_MAX_CQE));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_resize_cq));
}

/* Adaptive moderation needs the kernel's dimlib. */
#ifdef HAVE_RDMA_DIM
static void need_library(struct kunit *test) { }
#else
static void need_library(struct kunit *test)
{
	kunit_skip(test, "the kernel has no CONFIG_DIMLIB");
}
#endif

static void only_polled_cqs_of_willing_devices_follow_their_load(struct kunit *test)
{
	struct mock *m;

	need_library(test);
	m = mod_device(test, true);
	KUNIT_EXPECT_NULL(test, recorder_up(test, m, IB_POLL_DIRECT, 0)->cq->dim);
	KUNIT_EXPECT_NOT_NULL(test, recorder_up(test, m, IB_POLL_SOFTIRQ, 0)->cq->dim);
	KUNIT_EXPECT_NOT_NULL(test, recorder_up(test, m, IB_POLL_THREAD, 0)->cq->dim);
	KUNIT_EXPECT_NOT_NULL(test, recorder_up(test, m, IB_POLL_WORKQUEUE, 0)->cq->dim);
	/* CQs begin without moderation. */
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&mod_calls));
}

static void cqs_are_not_moderated_unless_the_device_wants(struct kunit *test)
{
	struct mock *m = mod_device(test, false);

	KUNIT_EXPECT_NULL(test, recorder_up(test, m, IB_POLL_SOFTIRQ, 0)->cq->dim);
}

/* Puts a load on a CQ, notification by notification. */
struct load {
	struct recorder *rec;	/* recorder of the CQ */
	struct item *items;	/* completions, used in a ring */
	u32 next;		/* number of the next completion to push */
};

static void load_init(struct kunit *test, struct load *l, struct mock *m)
{
	l->rec = recorder_up(test, m, IB_POLL_WORKQUEUE, 0);
	l->items = items_new(test, l->rec, CQ_RIG_SIZE);
	l->next = 0;
}

/* One notification for @nr completions. Returns false if they are not all handled in time. */
static bool load_round(struct load *l, u32 nr)
{
	struct ib_wc wc = {};
	u32 i;

	l->rec->expect = l->next + nr;
	for (i = 0; i < nr; i++, l->next++) {
		struct item *it = &l->items[l->next % CQ_RIG_SIZE];

		item_init(it, l->rec, 0, l->next);
		wc.wr_cqe = &it->cqe;
		/* Only the last one notifies, when the others are in the CQ already. */
		if (i + 1 < nr ? !mock_cq_push_quiet(l->rec->cq, &wc) :
				 !mock_cq_push(l->rec->cq, &wc, false))
			return false;
	}
	return kvt_wait(&l->rec->all) && cq_rig_rest(l->rec->cq);
}

/* Rounds of @nr completions until the CQ is moderated or, without @moderated, is not. */
static bool load_until(struct load *l, u32 nr, bool moderated)
{
	u32 i;

	for (i = 0; i < MAX_ROUNDS && !!atomic_read(&mod_last) != moderated; i++)
		if (!load_round(l, nr))
			return false;
	return !!atomic_read(&mod_last) == moderated;
}

/* A light load, as dimlib's reference, and then a heavy one until the CQ is moderated. */
static bool load_rises(struct load *l)
{
	u32 i;

	for (i = 0; i < 200; i++)
		if (!load_round(l, 1))
			return false;
	return load_until(l, 200, true);
}

static void moderation_follows_the_load_and_returns(struct kunit *test)
{
	struct mock *m = mod_device(test, true);
	struct load l;
	u32 last;

	need_library(test);
	m->ibdev->attrs.cq_caps.max_cq_moderation_period = 1;
	load_init(test, &l, m);
	KUNIT_ASSERT_TRUE(test, load_rises(&l));
	last = atomic_read(&mod_last);
	KUNIT_EXPECT_GT(test, last & 0xffff, 1);
	KUNIT_EXPECT_LE(test, last & 0xffff, MAX_COUNT);
	KUNIT_EXPECT_EQ(test, 1, last >> 16);
	KUNIT_EXPECT_TRUE(test, load_until(&l, 1, false));
	recorder_expect_clean(test, l.rec);
}

static void what_the_consumer_sets_stays(struct kunit *test)
{
	struct load l;
	int calls;
	u32 i;

	need_library(test);
	load_init(test, &l, mod_device(test, true));
	KUNIT_ASSERT_TRUE(test, load_rises(&l));
	KUNIT_ASSERT_EQ(test, 0, rdma_set_cq_moderation(l.rec->cq, 33, 44));
	/* An adaptive change that was pending has come before that call, or never comes. */
	KUNIT_EXPECT_EQ(test, 33 | 44 << 16, atomic_read(&mod_last));
	calls = atomic_read(&mod_calls);
	for (i = 0; i < 64 * 20; i++)
		KUNIT_ASSERT_TRUE(test, load_round(&l, i / 64 % 2 ? 200 : 1));
	recorder_free(l.rec);
	KUNIT_EXPECT_EQ(test, calls, atomic_read(&mod_calls));
}

/* A modify_cq() that does not return until the gate opens. */
static struct kvt_gate slow;
static atomic_t slow_inside;

static int slow_modify_cq(struct ib_cq *cq, u16 count, u16 period)
{
	atomic_inc(&slow_inside);
	kvt_gate_sleep(&slow);
	atomic_dec(&slow_inside);
	return 0;
}

static int free_fn(void *arg)
{
	recorder_free(arg);
	return 0;
}

static void free_waits_for_a_change_under_way(struct kunit *test)
{
	struct mock *m = mock_new(test);
	struct kvt_thread *freer;
	struct load l;
	u32 i;

	need_library(test);
	kvt_gate_init(&slow);
	m->ops.modify_cq = slow_modify_cq;
	mod_register(test, m, true);
	load_init(test, &l, m);
	for (i = 0; i < MAX_ROUNDS && !completion_done(&slow.entered); i++)
		KUNIT_ASSERT_TRUE(test, load_round(&l, i / 64 % 2 ? 200 : 1));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&slow.entered));
	freer = kvt_thread_start(test, -1, free_fn, l.rec);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(freer));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_destroy_cq));
	kvt_gate_open(&slow);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(freer));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&slow_inside));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_destroy_cq));
}

static struct kunit_case cq_moderation_cases[] = {
	KUNIT_CASE(moderation_reaches_the_driver),
	KUNIT_CASE(moderation_is_within_the_devices_limits),
	KUNIT_CASE(driver_without_moderation_is_left_alone),
	KUNIT_CASE(resize_checks_the_size),
	KUNIT_CASE(only_polled_cqs_of_willing_devices_follow_their_load),
	KUNIT_CASE(cqs_are_not_moderated_unless_the_device_wants),
	KUNIT_CASE(moderation_follows_the_load_and_returns),
	KUNIT_CASE(what_the_consumer_sets_stays),
	KUNIT_CASE(free_waits_for_a_change_under_way),
	{}
};
KVT_SUITE(cq_moderation);
