// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: switching it on and off while methods and handlers run, after which
 * it must still see each violation once; and freed devices that it keeps to report late use.
 */
#include <linux/device.h>
#include <linux/kref.h>

#include "contract/rig.h"

/* Mode switches. After two of each eight the case waits for more traffic of each kind. */
#define SWITCHES	1000

/* Freed devices that the checker keeps: DEFUNCT_DEVICES in core/defunct.c. */
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
 * Breaks rule 3 once, after a legal call of the handler. If the checker has left a frame in
 * the chain of this context, the legal call seems to be inside it and is reported, too.
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

/* Expects the reports of a thread that has broken the rule in each of its three contexts. */
static void expect_broken(struct kunit *test, struct contract_scene *scene)
{
	struct contract_expected expected[3];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(expected); i++)
		expected[i] = (struct contract_expected) {
			.rule = IB_RULE_CHAIN, .module = CONTRACT_DRIVER,
			.what = "completion handler inside post_send",
			.object = "cq", .id = scene->qp->send_cq->res.id, .site = post };
	contract_expect_all(test, expected, ARRAY_SIZE(expected));
}

/* Has threads break rule 3, to see whether the checker still works. */
struct look {
	struct contract_scene *scene;	/* the objects that they use */
	/* Completed by a thread when its traffic has ended, and after it broke the rule. */
	struct completion quiet;
	struct completion go;		/* lets one thread break the rule */
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

/*
 * Expects no report so far, and switches the checker on. Then one thread after the other
 * breaks the rule in task, softirq and hard interrupt context: three reports from each.
 */
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
		expect_broken(test, l->scene);
	}
}

/* Posts and handler calls while the checker is switched. */
struct traffic {
	struct look look;	/* for its threads, after the traffic */
	bool stop;		/* set when the traffic is to end */
	/* Posts in hard interrupt, each after one in task and one in softirq context. */
	unsigned long irq_posts;
	unsigned long handlers;	/* calls of the completion handler */
};

/* Thread: posts in task, softirq and hard interrupt context in turn. */
static int post_in_each_context(void *arg)
{
	struct traffic *t = arg;
	struct contract_scene *scene = t->look.scene;

	while (!READ_ONCE(t->stop)) {
		post(scene);
		kvt_run_in_softirq(post_here, scene);
		kvt_run_in_hardirq(post_here, scene);
		t->irq_posts++;
		cond_resched();
	}
	look_from_each_context(&t->look);
	return 0;
}

/* Thread: calls the completion handler, which posts. */
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

/* Waits until the posting thread and the one that calls handlers have both made progress. */
static void wait_for_more(struct traffic *t)
{
	unsigned long posts = READ_ONCE(t->irq_posts), handlers = READ_ONCE(t->handlers);

	kvt_until(READ_ONCE(t->irq_posts) != posts && READ_ONCE(t->handlers) != handlers);
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
	poster = kvt_thread_new(test, 0, post_in_each_context, &t);
	caller = kvt_thread_new(test, kvt_other_cpu(), call_handlers, &t);
	kvt_thread_go(poster);
	kvt_thread_go(caller);
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

/* Switched while a context is in a method, called directly or by a handler */

static void run_in_task(void (*fn)(void *arg), void *arg)
{
	fn(arg);
}

/* When the mode is switched. */
struct moment {
	const char *name;				/* description of the case */
	enum ib_contract_mode mode;			/* the mode to switch to */
	void (*run)(void (*fn)(void *arg), void *arg);	/* runs a function in the context */
};

static const struct moment moments[] = {
	{ "off in task", IB_CONTRACT_OFF, run_in_task },
	{ "off in softirq", IB_CONTRACT_OFF, kvt_run_in_softirq },
	{ "off in hardirq", IB_CONTRACT_OFF, kvt_run_in_hardirq },
	{ "on in task", IB_CONTRACT_WARN, run_in_task },
	{ "on in softirq", IB_CONTRACT_WARN, kvt_run_in_softirq },
	{ "on in hardirq", IB_CONTRACT_WARN, kvt_run_in_hardirq },
};

KUNIT_ARRAY_PARAM_DESC(moments, moments, name);

/* A context that is in a method while the other CPU switches the mode. */
struct inside {
	const struct moment *moment;	/* the parameter of the case */
	void (*fn)(void *scene);	/* posts, or calls a handler that posts */
	struct look look;		/* for its thread, after the method */
	struct completion entered;	/* completed in the method */
	bool switched;			/* set when the other CPU has switched the mode */
	bool in_time;			/* the method saw the switch before it gave up */
};

/* The running case's: be_inside() gets no argument of the case. */
static struct inside *inside;

/*
 * While interrupts are off here, ib_contract_set_mode() sets the mode, and then waits for this
 * CPU before it changes the code. So look at the mode itself; the method is left with the code
 * still as it was, unlike in the other contexts.
 */
static bool is_switched(void)
{
	if (irqs_disabled())
		return ib_contract_get_mode() == inside->moment->mode;
	return READ_ONCE(inside->switched);
}

static void be_inside(struct contract_scene *scene)
{
	complete(&inside->entered);
	inside->in_time = kvt_spin_until(is_switched());
}

static int run_inside(void *arg)
{
	struct inside *in = arg;

	in->moment->run(in->fn, in->look.scene);
	look_from_each_context(&in->look);
	return 0;
}

static void switch_inside(struct kunit *test, void (*fn)(void *scene))
{
	struct inside in = { .moment = test->param_value, .fn = fn };
	struct contract_scene *scene;
	struct kvt_thread *thread;

	kvt_need_two_cpus(test);
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

static void it_is_switched_in_a_post(struct kunit *test)
{
	switch_inside(test, post_here);
}

static void call_handler_here(void *scene)
{
	contract_call_comp_handler(scene);
}

static void it_is_switched_in_a_handler(struct kunit *test)
{
	switch_inside(test, call_handler_here);
}

/* Devices that were freed */

CONTRACT_CALLER(query, struct ib_device *dev, ib_query_port(dev, 1, &(struct ib_port_attr) {}))

static noinline struct ib_pd *make_pd(struct ib_device *dev)
{
	return CONTRACT_CALL(ib_alloc_pd(dev, 0));
}

static void expect_gone(struct kunit *test, const char *what, const void *site)
{
	CONTRACT_EXPECT(test, GONE, SELF, .what = what, .site = site);
}

/* The caller has kept only a pointer to the device: no object is left on it. */
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

/* The oldest one is dropped for each new one, and all are when the checker is switched off. */
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
	KUNIT_CASE_PARAM(it_is_switched_in_a_post, moments_gen_params),
	KUNIT_CASE_PARAM(it_is_switched_in_a_handler, moments_gen_params),
	KUNIT_CASE(use_of_a_freed_device_with_nothing_left_is_reported),
	KUNIT_CASE(the_last_devices_are_kept_while_it_is_on),
	KUNIT_CASE(no_device_is_kept_while_it_is_off),
	{}
};
KVT_SUITE(contract_traffic, .init = contract_init, .exit = contract_exit);
