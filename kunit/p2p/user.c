// SPDX-License-Identifier: GPL-2.0-only
/*
 * Long-term users of a provider's memory: revoke() of each struct kverbs_p2pdma_user is called
 * before the memory goes away.
 */
#include <linux/device.h>
#include <linux/notifier.h>
#include <kverbs/p2pdma.h>

#include "lib/console.h"
#include "p2p/rig.h"

/* A user of memory. */
struct holder {
	struct kverbs_p2pdma_user u;	/* its registration */
	struct pci_dev *pdev;		/* the provider */
	const char *name;		/* word that revoke() adds to @trace */
	struct kvt_trace *trace;	/* records calls of revoke() and of the driver's remove */
	void *mem;			/* a page, which revoke() frees; or NULL */
	/* Gate that revoke() passes before it does anything else; or NULL. */
	struct kvt_gate *gate;
	bool dies;			/* revoke() deletes the registration */
	int times;			/* calls of revoke() */
	int again;			/* result of adding another user in revoke() */
};

static int add_other(struct holder *user)
{
	struct kverbs_p2pdma_user other = { .revoke = user->u.revoke };
	int ret = kverbs_p2pdma_user_add(&other, user->pdev);

	if (!ret)
		kverbs_p2pdma_user_del(&other);
	return ret;
}

static void holder_told(struct kverbs_p2pdma_user *u)
{
	struct holder *user = container_of(u, struct holder, u);

	user->times++;
	kvt_trace_add(user->trace, "%s", user->name);
	if (user->gate)
		kvt_gate_sleep(user->gate);
	user->again = add_other(user);
	if (user->mem)
		pci_free_p2pmem(user->pdev, user->mem, PAGE_SIZE);
	user->mem = NULL;
	if (user->dies)
		kverbs_p2pdma_user_del(u);
}

static struct holder *holder_new(struct kunit *test, struct pci_dev *pdev, const char *name,
			     struct kvt_trace *trace)
{
	struct holder *user = kvt_zalloc(test, sizeof(*user));

	user->u.revoke = holder_told;
	user->pdev = pdev;
	user->name = name;
	user->trace = trace;
	KUNIT_ASSERT_EQ(test, 0, kverbs_p2pdma_user_add(&user->u, pdev));
	return user;
}

static void say_remove(struct p2p_rig *rig, struct pci_dev *pdev)
{
	kvt_trace_add(rig->arg, "remove");
}

static void users_are_told_before_the_driver_is(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_up(test, 1);
	struct kvt_trace *tr = kvt_trace_new(test);
	struct holder *a = holder_new(test, rig->pdev[0], "a", tr);
	struct holder *b = holder_new(test, rig->pdev[0], "b", tr);

	rig->on_remove = say_remove;
	rig->arg = tr;
	p2p_rig_unbind(rig->pdev[0]);
	KVT_EXPECT_TRACE(test, tr, "a b remove");
	kverbs_p2pdma_user_del(&a->u);
	kverbs_p2pdma_user_del(&b->u);
	rig->on_remove = NULL;
}

static void who_is_told_may_delete_itself(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct kvt_trace *tr = kvt_trace_new(test);
	struct holder *a = holder_new(test, pdev, "a", tr);
	struct holder *b = holder_new(test, pdev, "b", tr);

	a->dies = true;
	b->dies = true;
	p2p_rig_unbind(pdev);
	KVT_EXPECT_TRACE(test, tr, "a b");
}

static void who_has_deleted_itself_is_not_told(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct kvt_trace *tr = kvt_trace_new(test);
	struct holder *a = holder_new(test, pdev, "a", tr);
	struct holder *b = holder_new(test, pdev, "b", tr);

	kverbs_p2pdma_user_del(&a->u);
	p2p_rig_unbind(pdev);
	KVT_EXPECT_TRACE(test, tr, "b");
	kverbs_p2pdma_user_del(&b->u);
}

static void only_the_users_of_what_goes_are_told(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_up(test, 2);
	struct kvt_trace *tr = kvt_trace_new(test);
	struct holder *a = holder_new(test, rig->pdev[0], "a", tr);
	struct holder *b = holder_new(test, rig->pdev[1], "b", tr);

	p2p_rig_unbind(rig->pdev[1]);
	KVT_EXPECT_TRACE(test, tr, "b");
	p2p_rig_unbind(rig->pdev[0]);
	KVT_EXPECT_TRACE(test, tr, "b a");
	kverbs_p2pdma_user_del(&a->u);
	kverbs_p2pdma_user_del(&b->u);
}

static void who_frees_its_memory_holds_nobody_up(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct holder *a = holder_new(test, pdev, "a", kvt_trace_new(test));

	a->mem = KVT_PTR(test, pci_alloc_p2pmem(pdev, PAGE_SIZE));
	p2p_rig_unbind(pdev);
	KUNIT_EXPECT_NULL(test, a->mem);
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(pdev));
	kverbs_p2pdma_user_del(&a->u);
}

/* As a work item does that the driver is about to wait for. */
static void provide(struct p2p_rig *rig, struct pci_dev *pdev)
{
	struct holder user = { .u.revoke = holder_told, .pdev = pdev };
	int *added = rig->arg;

	if (!pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0))
		*added = add_other(&user);
}

static void nobody_becomes_a_user_of_what_comes_as_it_goes(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_new(test, 1);
	int added = 0;

	rig->on_remove = provide;
	rig->arg = &added;
	p2p_rig_unbind(rig->pdev[0]);
	rig->on_remove = NULL;
	KUNIT_EXPECT_EQ(test, -ENODEV, added);
}

static void nobody_becomes_a_user_of_what_goes(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_new(test, 1);
	struct pci_dev *pdev = rig->pdev[0];
	struct holder user = { .u.revoke = holder_told, .pdev = pdev };
	struct holder *a;

	KUNIT_EXPECT_EQ(test, -ENODEV, add_other(&user));
	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0));
	a = holder_new(test, pdev, "a", kvt_trace_new(test));
	p2p_rig_unbind(pdev);
	KUNIT_EXPECT_EQ(test, -ENODEV, a->again);
	KUNIT_EXPECT_EQ(test, -ENODEV, add_other(a));
	kverbs_p2pdma_user_del(&a->u);

	KUNIT_ASSERT_TRUE(test, p2p_rig_bind(pdev));
	KUNIT_EXPECT_EQ(test, -ENODEV, add_other(a));
	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0));
	KUNIT_EXPECT_EQ(test, 0, add_other(a));
}

static int unbind(void *arg)
{
	p2p_rig_unbind(arg);
	return 0;
}

static int delete(void *arg)
{
	struct holder *user = arg;

	kverbs_p2pdma_user_del(&user->u);
	return 0;
}

static void deletion_waits_while_it_is_told(struct kunit *test)
{
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct kvt_trace *tr = kvt_trace_new(test);
	struct holder *a = holder_new(test, pdev, "a", tr);
	struct holder *b = holder_new(test, pdev, "b", tr);
	struct kvt_thread *unbinds, *deletes;
	struct kvt_gate gate;

	kvt_gate_init(&gate);
	a->gate = &gate;
	kvt_stay_on_first_cpu();
	deletes = kvt_thread_new(test, 0, delete, a);
	unbinds = kvt_thread_start(test, kvt_other_cpu(), unbind, pdev);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&gate.entered));
	kvt_thread_go(deletes);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(deletes));
	/* The deletion of another user does not wait. */
	kverbs_p2pdma_user_del(&b->u);
	kvt_gate_open(&gate);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(deletes));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(unbinds));
	KUNIT_EXPECT_TRUE(test, gate.in_time);
	KVT_EXPECT_TRACE(test, tr, "a");
}

static void log_names_the_revoke_that_a_deletion_waits_for(struct kunit *test)
{
	struct kvt_console *waiting = kvt_console_watch(test, "waiting to delete a user of");
	struct pci_dev *pdev = p2p_rig_provider(test);
	struct holder *a = holder_new(test, pdev, "a", kvt_trace_new(test));
	struct kvt_thread *unbinds, *deletes;
	struct kvt_gate gate;

	kvt_gate_init(&gate);
	a->gate = &gate;
	unbinds = kvt_thread_start(test, -1, unbind, pdev);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&gate.entered));
	deletes = kvt_thread_start(test, -1, delete, a);
	KUNIT_EXPECT_TRUE(test, kvt_console_wait(waiting));
	kvt_gate_open(&gate);
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(deletes));
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(unbinds));
}

/* A probe that adds a user and then fails. */
static int add_user_and_fail(struct p2p_rig *rig, struct pci_dev *pdev)
{
	struct holder *user = rig->arg;
	int err = pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0);

	return err ?: kverbs_p2pdma_user_add(&user->u, pdev) ?: -EIO;
}

static void users_are_told_when_a_probe_fails(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_new(test, 1);
	struct holder user = {
		.u.revoke = holder_told, .pdev = rig->pdev[0], .name = "a",
		.trace = kvt_trace_new(test),
	};

	p2p_rig_unbind(rig->pdev[0]);
	rig->on_probe = add_user_and_fail;
	rig->arg = &user;
	KUNIT_EXPECT_FALSE(test, p2p_rig_bind(rig->pdev[0]));
	KUNIT_EXPECT_EQ(test, 1, user.times);
	kverbs_p2pdma_user_del(&user.u);
}

/* Wants to become a user while the memory of a failed probe still is there. */
struct latecomer {
	/* Called after kverbs_p2pdma was told that the probe has failed. */
	struct notifier_block nb;
	struct holder user;	/* the user */
	bool there;		/* the memory was there */
	int ret;		/* result of adding the user */
};

static int come_late(struct notifier_block *nb, unsigned long event, void *dev)
{
	struct latecomer *late = container_of(nb, struct latecomer, nb);

	if (event != BUS_NOTIFY_DRIVER_NOT_BOUND || dev != &late->user.pdev->dev)
		return NOTIFY_DONE;
	late->there = pci_has_p2pmem(late->user.pdev);
	late->ret = add_other(&late->user);
	return NOTIFY_OK;
}

static int publish_and_fail(struct p2p_rig *rig, struct pci_dev *pdev)
{
	int err = pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0);

	pci_p2pmem_publish(pdev, true);
	return err ?: -EIO;
}

static void nobody_becomes_a_user_when_a_probe_has_failed(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_new(test, 1);
	struct pci_dev *pdev = rig->pdev[0];
	struct latecomer late = {
		.nb.notifier_call = come_late,
		.user = { .u.revoke = holder_told, .pdev = pdev },
	};

	p2p_rig_unbind(pdev);
	rig->on_probe = publish_and_fail;
	KUNIT_ASSERT_EQ(test, 0, bus_register_notifier(&pci_bus_type, &late.nb));
	KUNIT_EXPECT_FALSE(test, p2p_rig_bind(pdev));
	bus_unregister_notifier(&pci_bus_type, &late.nb);
	KUNIT_EXPECT_TRUE(test, late.there);
	KUNIT_EXPECT_EQ(test, -ENODEV, late.ret);
	KUNIT_EXPECT_EQ(test, -ENODEV, add_other(&late.user));
	KUNIT_EXPECT_EQ(test, 0, late.user.times);

	/* The next probe starts over. */
	rig->on_probe = NULL;
	KUNIT_ASSERT_TRUE(test, p2p_rig_bind(pdev));
	KUNIT_ASSERT_EQ(test, 0, pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0));
	KUNIT_EXPECT_EQ(test, 0, add_other(&late.user));
}

static struct kunit_case p2p_user_cases[] = {
	KUNIT_CASE(users_are_told_before_the_driver_is),
	KUNIT_CASE(who_is_told_may_delete_itself),
	KUNIT_CASE(who_has_deleted_itself_is_not_told),
	KUNIT_CASE(only_the_users_of_what_goes_are_told),
	KUNIT_CASE(who_frees_its_memory_holds_nobody_up),
	KUNIT_CASE(nobody_becomes_a_user_of_what_comes_as_it_goes),
	KUNIT_CASE(nobody_becomes_a_user_of_what_goes),
	KUNIT_CASE(deletion_waits_while_it_is_told),
	KUNIT_CASE(log_names_the_revoke_that_a_deletion_waits_for),
	KUNIT_CASE(users_are_told_when_a_probe_fails),
	KUNIT_CASE(nobody_becomes_a_user_when_a_probe_has_failed),
	{}
};
KVT_SUITE(p2p_user);
