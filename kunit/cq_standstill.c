// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread stands still where it reports, polls or arms a CQ, or makes one for the pool,
 * while others go on for longer than any number of few bits can count. See kverbs/delay.h.
 */
#include <linux/sched.h>
#include <linux/sizes.h>
#include <kunit/test.h>
#include <kverbs/completion.h>
#include <kverbs/delay.h>
#include <rdma/ib_verbs.h>

#include "../cq/cq.h"
#include "cq_rig.h"
#include "lib.h"
#include "mock.h"
#include "objects.h"
#include "suites.h"

#define OTHERS		(SZ_64K + 1)

/* --- the count of errors -------------------------------------------------------- */

static void cq_that_has_failed_does_not_recover(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_s");
	struct ib_cq *cq, *other;

	cq = ib_cq_pool_get(m->ibdev, 1, 0, IB_POLL_WORKQUEUE);
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(cq));
	/* As after the errors of some minutes of an overrun. */
	atomic_set(&cq->stats.errors, -1);
	ib_cq_notify_event(cq, IB_EVENT_CQ_ERR);
	other = ib_cq_pool_get(m->ibdev, 1, 0, IB_POLL_WORKQUEUE);
	KUNIT_EXPECT_EQ(test, 0, PTR_ERR_OR_ZERO(other));
	KUNIT_EXPECT_PTR_NE(test, cq, other);
	if (!IS_ERR(other))
		ib_cq_pool_put(other, 1);
	ib_cq_pool_put(cq, 1);
}

static struct kunit_case cq_standstill_cases[] = {
	KUNIT_CASE(cq_that_has_failed_does_not_recover),
	{}
};

struct kunit_suite cq_standstill_suite = {
	.name = "cq_standstill",
	.test_cases = cq_standstill_cases,
};
