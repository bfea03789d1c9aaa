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

/* Legal: the QP is in state ERR. */
static noinline void post(struct contract_scene *scene)
{
	struct ib_send_wr wr = { .opcode = IB_WR_SEND };

	CONTRACT_CALL(ib_post_send(scene->qp, &wr, NULL));
}

static void post_here(void *scene)
{
	post(scene);
}

/*
 * Breaks rule 3, once. If a frame is left in the chain of this context, more is reported: what
 * comes next is then inside it.
 */
static void break_the_chain_rule(void *arg)
{
	struct contract_scene *scene = arg;

	scene->in_handler = NULL;
	contract_call_comp_handler(scene);
	scene->in_method = contract_call_comp_handler;
	post(scene);
	scene->in_method = NULL;
}

static void expect_broken(struct kunit *test, struct contract_scene *scene, unsigned int times)
{
	struct contract_expected expected[3];
	unsigned int i;

	for (i = 0; i < times; i++)
		expected[i] = (struct contract_expected) {
			.rule = IB_RULE_CHAIN, .module = CONTRACT_DRIVER,
			.what = "completion handler inside post_send",
			.object = "cq", .id = scene->qp->send_cq->res.id, .site = post };
	contract_expect_all(test, expected, times);
}

/**
 * struct look - for threads to see whether the checker still sees what they do
 * @scene: with whose objects
 * @quiet: completed by a thread when it has nothing more to do, and after its look
 * @go: lets one thread look
 */
struct look {
	struct contract_scene *scene;
	struct completion quiet;
	struct completion go;
};

static void look_init(struct look *l, struct contract_scene *scene)
{
	l->scene = scene;
	init_completion(&l->quiet);
	init_completion(&l->go);
}

static void look_from_each_context(struct look *l)
{
	complete(&l->quiet);
	wait_for_completion(&l->go);
	break_the_chain_rule(l->scene);
	kvt_run_in_softirq(break_the_chain_rule, l->scene);
	kvt_run_in_hardirq(break_the_chain_rule, l->scene);
	complete(&l->quiet);
}

/* Switched on again, if it is off: one thread after the other, of each, each context. */
static void expect_it_still_sees(struct kunit *test, struct look *l, unsigned int threads)
{
	unsigned int i;

	for (i = 0; i < threads; i++)
		KUNIT_EXPECT_TRUE(test, kvt_wait(&l->quiet));
	contract_expect_none(test);
	KUNIT_EXPECT_EQ(test, 0, ib_contract_set_mode(IB_CONTRACT_WARN));
	while (threads--) {
		complete(&l->go);
		KUNIT_EXPECT_TRUE(test, kvt_wait(&l->quiet));
		expect_broken(test, l->scene, 3);
	}
}

/**
 * struct traffic - what goes on while the checker is switched
 * @look: what its threads do in the end
 * @stop: set when it is to end
 * @posts: posts of the task
 * @irq_posts: posts in hard interrupt
 * @softirq_posts: posts in softirq
 * @handlers: handlers called
 */
struct traffic {
	struct look look;
	bool stop;
	unsigned long posts;
	unsigned long irq_posts;
	unsigned long softirq_posts;
	unsigned long handlers;
};

/* Task, softirq and hard interrupt, one on top of the other. */
static int post_in_each_context(void *arg)
{
	struct traffic *t = arg;
	struct contract_scene *scene = t->look.scene;

	while (!READ_ONCE(t->stop)) {
		post(scene);
		t->posts++;
		kvt_run_in_softirq(post_here, scene);
		t->softirq_posts++;
		kvt_run_in_hardirq(post_here, scene);
		t->irq_posts++;
		cond_resched();
	}
	look_from_each_context(&t->look);
	return 0;
}

/* Handlers that post. */
static int call_handlers(void *arg)
{
	struct traffic *t = arg;

	while (!READ_ONCE(t->stop)) {
		contract_call_comp_handler(t->look.scene);
		t->handlers++;
		cond_resched();
	}
	look_from_each_context(&t->look);
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

static void it_is_switched_under_traffic(struct kunit *test)
{
	struct contract_scene *scene = contract_scene_up(test);
	struct kvt_thread *poster, *caller;
	struct traffic t = {};
	unsigned int i;

	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(scene->qp));
	look_init(&t.look, scene);
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
	expect_it_still_sees(test, &t.look, 2);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(poster));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(caller));
	KUNIT_EXPECT_LE(test, kvt_count(SWITCHES) / 8, t.irq_posts);
	KUNIT_EXPECT_LE(test, kvt_count(SWITCHES) / 8, t.handlers);
}

/* Switched while a context is in a method, alone or in a handler */

static void run_in_task(void (*fn)(void *arg), void *arg)
{
	fn(arg);
}

/**
 * struct moment - a moment to switch
 * @name: it
 * @mode: to which mode
 * @run: runs a function in the context
 * @fn: the function: a post, or a handler that posts
 */
struct moment {
	const char *name;
	enum ib_contract_mode mode;
	void (*run)(void (*fn)(void *arg), void *arg);
	void (*fn)(void *scene);
};

static void call_handler_here(void *scene)
{
	contract_call_comp_handler(scene);
}

static const struct moment moments[] = {
	{ "off in task, handler", IB_CONTRACT_OFF, run_in_task, call_handler_here },
	{ "off in softirq, handler", IB_CONTRACT_OFF, kvt_run_in_softirq, call_handler_here },
	{ "off in hardirq, handler", IB_CONTRACT_OFF, kvt_run_in_hardirq, call_handler_here },
	{ "on in task, handler", IB_CONTRACT_WARN, run_in_task, call_handler_here },
	{ "on in softirq, handler", IB_CONTRACT_WARN, kvt_run_in_softirq, call_handler_here },
	{ "on in hardirq, handler", IB_CONTRACT_WARN, kvt_run_in_hardirq, call_handler_here },
	{ "off in task, post", IB_CONTRACT_OFF, run_in_task, post_here },
	{ "off in softirq, post", IB_CONTRACT_OFF, kvt_run_in_softirq, post_here },
	{ "off in hardirq, post", IB_CONTRACT_OFF, kvt_run_in_hardirq, post_here },
	{ "on in task, post", IB_CONTRACT_WARN, run_in_task, post_here },
	{ "on in softirq, post", IB_CONTRACT_WARN, kvt_run_in_softirq, post_here },
	{ "on in hardirq, post", IB_CONTRACT_WARN, kvt_run_in_hardirq, post_here },
};

static void moment_name(const struct moment *moment, char *desc)
{
	strscpy(desc, moment->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(moments, moments, moment_name);

/**
 * struct inside - a context that is in a method while the other CPU switches
 * @moment: which
 * @look: what its thread does then
 * @entered: completed in the method
 * @switched: set when the other CPU has switched
 * @in_time: seen in the method
 */
struct inside {
	const struct moment *moment;
	struct look look;
	struct completion entered;
	bool switched;
	bool in_time;
};

/* The one that there is: a method has no argument of the case's. */
static struct inside *inside;

/* With interrupts off, the other CPU has changed the mode, and waits for this one to go on. */
static bool is_switched(void)
{
	if (irqs_disabled())
		return ib_contract_get_mode() == inside->moment->mode;
	return READ_ONCE(inside->switched);
}

static void be_inside(struct contract_scene *scene)
{
	u64 end = ktime_get_ns() + jiffies_to_nsecs(KVT_TIMEOUT);

	complete(&inside->entered);
	while (!inside->in_time && ktime_get_ns() < end) {
		inside->in_time = is_switched();
		cpu_relax();
	}
}

static int run_inside(void *arg)
{
	struct inside *in = arg;

	in->moment->run(in->moment->fn, in->look.scene);
	look_from_each_context(&in->look);
	return 0;
}

static void it_is_switched_in_each_context(struct kunit *test)
{
	struct inside in = { .moment = test->param_value };
	struct contract_scene *scene;
	struct kvt_thread *thread;

	if (!kvt_other_cpu())
		kunit_skip(test, "it needs two CPUs");
	scene = contract_scene_up(test);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_err(scene->qp));
	kvt_stay_on_first_cpu();
	look_init(&in.look, scene);
	init_completion(&in.entered);
	inside = &in;
	if (in.moment->mode != IB_CONTRACT_OFF)
		contract_off(test);
	scene->in_handler = post;
	scene->in_method = be_inside;
	thread = kvt_thread_start(test, kvt_other_cpu(), run_inside, &in);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&in.entered));
	KUNIT_EXPECT_EQ(test, 0, ib_contract_set_mode(in.moment->mode));
	WRITE_ONCE(in.switched, true);
	expect_it_still_sees(test, &in.look, 1);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(thread));
	KUNIT_EXPECT_TRUE(test, in.in_time);
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
	KUNIT_CASE_PARAM(it_is_switched_in_each_context, moments_gen_params),
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
