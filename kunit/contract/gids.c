// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: GID references that are put by another caller than the one that
 * took them, as far as the checker can tell. objects.c has the functions that take
 * them. Like tail.c, this file is built with sibling-call optimization, so that its
 * functions may end in a tail call into the midlayer.
 */
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>

#include "contract/objects.h"
#include "lib/objects.h"

/* The objects of the client below; NULL while the client is not registered. */
static struct objects *objects;
static void (*on_remove)(struct objects *t);

static int gids_add(struct ib_device *dev)
{
	return objects && dev == objects->m->ibdev ? 0 : -EOPNOTSUPP;
}

static void gids_remove(struct ib_device *dev, void *data)
{
	if (on_remove)
		on_remove(objects);
}

static struct ib_client gids_client = {
	.name = "contract_gids", .add = gids_add, .remove = gids_remove,
};

static void leave(void *arg)
{
	if (objects)
		ib_unregister_client(&gids_client);
	objects = NULL;
}

static struct objects *join(struct kunit *test, void (*remove)(struct objects *t))
{
	struct objects *t = kvt_zalloc(test, sizeof(*t));

	t->m = mock_up(test, CONTRACT_DEVICE);
	on_remove = remove;
	objects = t;
	KUNIT_ASSERT_EQ(test, 0, ib_register_client(&gids_client));
	kvt_defer(test, leave, NULL);
	return t;
}

static void expect_left(struct kunit *test, const char *what, unsigned int count, const void *site)
{
	CONTRACT_EXPECT(test, LEFT, SELF, .count = count, .what = what, .site = site);
}

static void references_left_are_counted(struct kunit *test)
{
	struct objects *t = join(test, NULL);
	int i;

	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
	thing_unmake_gid(t);
	leave(NULL);
	expect_left(test, "2 gid reference left when remove() returned", 2, thing_make_gid);
	contract_off(test);
	thing_unmake_gid(t);
	thing_unmake_gid(t);
}

/* One more than the call sites that the checker tells apart, IB_REF_ENTRIES. */
#define PLACES	17

static noinline void take_in_many_places(struct ib_device *dev, const struct ib_gid_attr **taken)
{
#define TAKE	rdma_get_gid_attr(dev, 1, 1)
	const struct ib_gid_attr *here[PLACES] = {
		TAKE, TAKE, TAKE, TAKE, TAKE, TAKE, TAKE, TAKE, TAKE,
		TAKE, TAKE, TAKE, TAKE, TAKE, TAKE, TAKE, TAKE,
	};
#undef TAKE

	memcpy(taken, here, sizeof(here));
}

static void expect_report(struct kunit *test, unsigned int back, const char *what,
			  unsigned int count, bool has_site)
{
	struct ib_contract_report report = {};

	KUNIT_EXPECT_TRUE(test, ib_contract_read(back, &report));
	KUNIT_EXPECT_STREQ(test, CONTRACT_SELF, report.module);
	KUNIT_EXPECT_STREQ(test, what, report.what);
	KUNIT_EXPECT_EQ(test, count, report.count);
	KUNIT_EXPECT_EQ(test, has_site, within_module(report.site, THIS_MODULE));
}

/*
 * The checker notes references of 16 call sites. It reports eight of these sites one by one,
 * and the other eight in one report.
 */
static void references_of_many_places_are_told_of_in_nine_reports(struct kunit *test)
{
	struct objects *t = join(test, NULL);
	const struct ib_gid_attr *taken[PLACES];
	int i;

	take_in_many_places(t->m->ibdev, taken);
	for (i = 0; i < PLACES; i++)
		KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(taken[i]));
	leave(NULL);
	contract_expect_counted(test, IB_RULE_LEFT, 9);
	expect_report(test, 0, "8 more gid reference left when remove() returned", 8, false);
	for (i = 1; i <= 8; i++)
		expect_report(test, i, "1 gid reference left when remove() returned", 1, true);
	contract_off(test);
	for (i = 0; i < PLACES; i++)
		rdma_put_gid_attr(taken[i]);
}

/* A reference that was put also frees its entry in the checker's table of 16. */
static void references_given_back_are_not(struct kunit *test)
{
	struct objects *t = join(test, NULL);
	int i;

	for (i = 0; i < 100; i++) {
		KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
		thing_unmake_gid(t);
	}
	leave(NULL);
	contract_expect_none(test);
}

/*
 * These functions end in a tail call of rdma_put_gid_attr(), so the call seems to come from
 * their caller.
 */

static void put_in_remove(struct objects *t)
{
	rdma_put_gid_attr(t->gid);
}

static void put_anywhere(void *arg)
{
	rdma_put_gid_attr(arg);
}

struct put_work {
	struct work_struct work;
	const struct ib_gid_attr *gid;
};

static void put_in_work(struct work_struct *work)
{
	rdma_put_gid_attr(container_of(work, struct put_work, work)->gid);
}

static void reference_that_remove_gives_back_last_is_not(struct kunit *test)
{
	struct objects *t = join(test, put_in_remove);

	KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
	leave(NULL);
	contract_expect_none(test);
}

/* After the tail call, rdma_put_gid_attr() returns to another module, kverbs_kunit. */
static void reference_that_another_module_gives_back_is_not(struct kunit *test)
{
	struct objects *t = join(test, NULL);

	KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
	kvt_run_in_hardirq(put_anywhere, (void *)t->gid);
	leave(NULL);
	contract_expect_none(test);
}

/* After the tail call, rdma_put_gid_attr() returns to the kernel's workqueue code. */
static void put_by_work(struct objects *t)
{
	struct put_work put = { .gid = t->gid };

	INIT_WORK_ONSTACK(&put.work, put_in_work);
	schedule_work(&put.work);
	flush_work(&put.work);
	destroy_work_on_stack(&put.work);
}

static void reference_that_work_gives_back_is_not(struct kunit *test)
{
	struct objects *t = join(test, NULL);

	KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
	put_by_work(t);
	leave(NULL);
	contract_expect_none(test);
}

/*
 * Two modules hold a reference on the GID, kverbs_kunit's being the later one. The checker
 * cannot tell whose reference the work item puts, so it must not blame either module.
 */
static void reference_that_work_gives_back_is_not_taken_for_anothers(struct kunit *test)
{
	struct objects *t = join(test, NULL);

	KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
	kvt_hold_gid(t->gid);
	put_by_work(t);
	leave(NULL);
	contract_expect_none(test);
	contract_off(test);
	thing_unmake_gid(t);
}

static void reference_that_the_checker_did_not_see_taken_is_not(struct kunit *test)
{
	struct objects *t = join(test, NULL);

	contract_off(test);
	KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
	KUNIT_ASSERT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_WARN));
	/* The checker has noted no reference that this put could be deducted from. */
	thing_unmake_gid(t);
	KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
	leave(NULL);
	expect_left(test, "1 gid reference left when remove() returned", 1, thing_make_gid);
	contract_off(test);
	thing_unmake_gid(t);
}

static void reference_that_is_given_back_while_it_is_off_is_not(struct kunit *test)
{
	struct objects *t = join(test, NULL);

	KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
	contract_off(test);
	thing_unmake_gid(t);
	KUNIT_ASSERT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_WARN));
	leave(NULL);
	contract_expect_none(test);
}

static noinline struct ib_ah *make_ah_with_grh(struct ib_pd *pd)
{
	struct rdma_ah_attr attr = { .type = RDMA_AH_ATTR_TYPE_IB };

	rdma_ah_set_port_num(&attr, 1);
	rdma_ah_set_grh(&attr, NULL, 0, 1, 1, 0);
	return CONTRACT_CALL(rdma_create_ah(pd, &attr, 0));
}

/* A reference that the midlayer holds for a client's AH is not counted for the client. */
static void reference_of_an_object_is_not(struct kunit *test)
{
	struct objects *t = join(test, NULL);
	struct ib_pd *pd = kvt_pd(test, t->m->ibdev);
	struct ib_ah *ah = KVT_PTR(test, make_ah_with_grh(pd));

	KUNIT_EXPECT_NOT_NULL(test, ah->sgid_attr);
	/* When the AH puts its reference, the client's own reference stays counted. */
	KUNIT_ASSERT_EQ(test, 0, thing_make_gid(t));
	rdma_destroy_ah(ah, 0);
	leave(NULL);
	expect_left(test, "1 gid reference left when remove() returned", 1, thing_make_gid);
	contract_off(test);
	thing_unmake_gid(t);
}

static struct kunit_case contract_gids_cases[] = {
	KUNIT_CASE(references_left_are_counted),
	KUNIT_CASE(references_of_many_places_are_told_of_in_nine_reports),
	KUNIT_CASE(references_given_back_are_not),
	KUNIT_CASE(reference_that_remove_gives_back_last_is_not),
	KUNIT_CASE(reference_that_another_module_gives_back_is_not),
	KUNIT_CASE(reference_that_work_gives_back_is_not),
	KUNIT_CASE(reference_that_work_gives_back_is_not_taken_for_anothers),
	KUNIT_CASE(reference_that_the_checker_did_not_see_taken_is_not),
	KUNIT_CASE(reference_that_is_given_back_while_it_is_off_is_not),
	KUNIT_CASE(reference_of_an_object_is_not),
	{}
};
KVT_SUITE(contract_gids, .init = contract_init, .exit = contract_exit);
