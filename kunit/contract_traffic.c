// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: switched on and off under traffic, and devices that it keeps after
 * they were freed.
 */
#include <linux/device.h>
#include <linux/kref.h>
#include <kunit/test.h>

#include "contract_rig.h"
#include "suites.h"

/* Of each kind of traffic there is something in each of some of them. */
#define SWITCHES	1000

/* As many as the checker keeps, see core/gone.c. */
#define KEPT		16

/**
 * struct traffic - what goes on while the checker is switched
 * @scene: with whose objects
 * @stop: set when it is to end
 * @posts: posts of the task
 * @irq_posts: posts in hard interrupt
 * @softirq_posts: posts in softirq
 * @handlers: handlers called
 */
struct traffic {
	struct contract_scene *scene;
	bool stop;
	unsigned long posts;
	unsigned long irq_posts;
	unsigned long softirq_posts;
	unsigned long handlers;
};

/* Legal: the QP is in state ERR. */
static void post(struct contract_scene *scene)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	ib_post_send(scene->qp, &wr, NULL);
}

static void post_here(void *scene)
{
	post(scene);
}

/* Task, softirq and hard interrupt, one on top of the other. */
static int post_in_each_context(void *arg)
{
	struct traffic *t = arg;

	while (!READ_ONCE(t->stop)) {
		post(t->scene);
		t->posts++;
		kvt_run_in_softirq(post_here, t->scene);
		t->softirq_posts++;
		kvt_run_in_hardirq(post_here, t->scene);
		t->irq_posts++;
		cond_resched();
	}
	return 0;
}

/* Handlers that post. */
static int call_handlers(void *arg)
{
	struct traffic *t = arg;

	while (!READ_ONCE(t->stop)) {
		contract_call_comp_handler(t->scene);
		t->handlers++;
		cond_resched();
	}
	return 0;
}

/* Something of each kind of traffic goes on in between. */
static void wait_for_more(struct traffic *t)
{
	unsigned long posts = READ_ONCE(t->irq_posts), handlers = READ_ONCE(t->handlers);
	unsigned long end = jiffies + KVT_TIMEOUT;

	while ((READ_ONCE(t->irq_posts) == posts || READ_ONCE(t->handlers) == handlers) &&
	       time_before(jiffies, end))
		cond_resched();
}

/* No frame of what was under way is left in a chain: what comes next is no part of it. */
static void expect_it_still_sees(struct kunit *test, struct contract_scene *scene)
{
	struct ib_qp *qp = scene->qp;

	scene->in_handler = NULL;
	contract_call_comp_handler(scene);
	contract_expect_none(test);
	scene->in_method = contract_call_comp_handler;
	post(scene);
	scene->in_method = NULL;
	contract_expect(test, &(struct contract_expected) {
		.rule = IB_RULE_CHAIN, .module = CONTRACT_DRIVER,
		.what = "completion handler inside post_send",
		.object = "cq", .id = qp->send_cq->res.id, .site = post });
}

static void it_is_switched_under_traffic(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct traffic t = { .scene = scene };
	struct kvt_thread *poster, *caller;
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(scene->qp));
	scene->in_handler = post;
	poster = kvt_thread_start(test, 0, post_in_each_context, &t);
	caller = kvt_thread_start(test, kvt_other_cpu(), call_handlers, &t);
	for (i = 0; i < kvt_count(SWITCHES); i++) {
		KUNIT_EXPECT_EQ(test, 0, ib_contract_set_mode(i % 2 ? IB_CONTRACT_WARN :
								      IB_CONTRACT_OFF));
		if (i % 8 < 2)
			wait_for_more(&t);
	}
	ib_contract_set_mode(IB_CONTRACT_WARN);
	wait_for_more(&t);
	WRITE_ONCE(t.stop, true);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(poster));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(caller));
	KUNIT_EXPECT_LE(test, kvt_count(SWITCHES) / 8, t.irq_posts);
	KUNIT_EXPECT_LE(test, kvt_count(SWITCHES) / 8, t.handlers);
	contract_expect_none(test);
	expect_it_still_sees(test, scene);
}

/* Devices that were freed */

static noinline int query(struct ib_device *dev)
{
	struct ib_port_attr attr;

	return CONTRACT_CALL(ib_query_port(dev, 1, &attr));
}

static noinline struct ib_pd *make_pd(struct ib_device *dev)
{
	return CONTRACT_CALL(ib_alloc_pd(dev, 0));
}

static void expect_gone(struct kunit *test, const char *what, const void *site)
{
	contract_expect(test, &(struct contract_expected) {
		.rule = IB_RULE_GONE, .module = CONTRACT_SELF, .what = what, .site = site });
}

/* Who has kept nothing but the pointer. */
static void use_of_a_freed_device_with_nothing_left_is_reported(struct kunit *test)
{
	struct mock *m = mock_up(test, CONTRACT_DEVICE);
	struct ib_device *dev = m->ibdev;

	KUNIT_EXPECT_EQ(test, 0, query(dev));
	mock_unregister(m);
	mock_dealloc(m);
	contract_expect_none(test);
	mock_log_reset(m);
	KUNIT_EXPECT_EQ(test, -ENODEV, query(dev));
	expect_gone(test, "query_port after ib_unregister_device() returned", query);
	KUNIT_EXPECT_EQ(test, -ENODEV, PTR_ERR_OR_ZERO(make_pd(dev)));
	expect_gone(test, "alloc_pd after ib_unregister_device() returned", make_pd);
	KUNIT_EXPECT_EQ(test, 0, m->ncalls);
}

static struct ib_device *freed_device(struct kunit *test)
{
	struct mock *m = mock_up(test, CONTRACT_DEVICE);
	struct ib_device *dev = m->ibdev;

	get_device(&dev->dev);
	mock_unregister(m);
	mock_dealloc(m);
	return dev;
}

static unsigned int references(const struct ib_device *dev)
{
	return kref_read(&dev->dev.kobj.kref);
}

/* Not for good, and none once it is off. */
static void the_last_devices_are_kept_while_it_is_on(struct kunit *test)
{
	struct ib_device *dev[KEPT + 1];
	unsigned int i;

	for (i = 0; i <= KEPT; i++) {
		dev[i] = freed_device(test);
		KUNIT_EXPECT_EQ(test, 2, references(dev[i]));
		KUNIT_EXPECT_EQ(test, i == KEPT ? 1 : 2, references(dev[0]));
	}
	contract_off(test);
	for (i = 0; i <= KEPT; i++) {
		KUNIT_EXPECT_EQ(test, 1, references(dev[i]));
		put_device(&dev[i]->dev);
	}
}

static void no_device_is_kept_while_it_is_off(struct kunit *test)
{
	struct ib_device *dev;

	contract_off(test);
	dev = freed_device(test);
	KUNIT_EXPECT_EQ(test, 1, references(dev));
	put_device(&dev->dev);
}

static struct kunit_case contract_traffic_cases[] = {
	KUNIT_CASE(it_is_switched_under_traffic),
	KUNIT_CASE(use_of_a_freed_device_with_nothing_left_is_reported),
	KUNIT_CASE(the_last_devices_are_kept_while_it_is_on),
	KUNIT_CASE(no_device_is_kept_while_it_is_off),
	{}
};

struct kunit_suite contract_traffic_suite = {
	.name = "contract_traffic",
	.init = contract_init,
	.exit = contract_exit,
	.test_cases = contract_traffic_cases,
};
