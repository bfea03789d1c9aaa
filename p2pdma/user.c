// SPDX-License-Identifier: GPL-2.0-only
/*
 * Users: those who use a provider's memory for a long time, and want to know when it
 * goes away. They are told before its driver loses the device, whoever keeps the
 * memory.
 *
 * Lock protocol: users_lock guards the three lists below and the entries of the users
 * in them. It is not held while a user's revoke() runs. A user is in the list of
 * users until it is deleted or its revoke() is called. The task that calls revoke()
 * is in the list of revokers until revoke() has returned. A user may be deleted, and
 * freed, within its revoke(), so it is not touched afterwards.
 *
 * From the beginning of a device's unbinding to its end, and after a probe that failed until
 * another begins, the device is in the list of those that are going away: nobody may become
 * its user then, because that user would not be told.
 */
#include <linux/device.h>
#include <linux/export.h>
#include <linux/notifier.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include "p2pdma.h"
#include "trace.h"

/**
 * struct p2p_revoker - a task that calls revoke() of a user
 * @user: the user
 * @task: the task
 * @entry: entry in the list of revokers
 */
struct p2p_revoker {
	const struct kverbs_p2pdma_user *user;
	struct task_struct *task;
	struct list_head entry;
};

/**
 * struct p2p_going - a device whose users have been told
 * @pdev: the device; only compared, never dereferenced
 * @entry: entry in the list of these devices
 */
struct p2p_going {
	const struct pci_dev *pdev;
	struct list_head entry;
};

static DEFINE_SPINLOCK(users_lock);
static LIST_HEAD(users);
static LIST_HEAD(revokers);
static LIST_HEAD(going);
static DECLARE_WAIT_QUEUE_HEAD(revoked);

static struct p2p_going *going_find(const struct pci_dev *pdev)
{
	struct p2p_going *g;

	lockdep_assert_held(&users_lock);
	list_for_each_entry(g, &going, entry)
		if (g->pdev == pdev)
			return g;
	return NULL;
}

/**
 * kverbs_p2pdma_user_add() - ask to be notified before a provider is removed
 * @user: the user, whose revoke() is set
 * @provider: the provider whose memory it uses, or is going to use
 *
 * Every user that is added must also be deleted, even if its revoke() has been
 * called. revoke() may be called before this returns.
 *
 * Context: Process, may sleep.
 * Return: 0, or -ENODEV if @provider is going away already, or has no memory.
 */
int kverbs_p2pdma_user_add(struct kverbs_p2pdma_user *user, struct pci_dev *provider)
{
	int ret = -ENODEV;

	user->provider = provider;
	INIT_LIST_HEAD(&user->entry);
	spin_lock(&users_lock);
	if (p2p_memory_is_there(provider) && !going_find(provider)) {
		list_add_tail(&user->entry, &users);
		ret = 0;
	}
	spin_unlock(&users_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_user_add);

static struct p2p_revoker *revoker_find(const struct kverbs_p2pdma_user *user)
{
	struct p2p_revoker *revoker;

	lockdep_assert_held(&users_lock);
	list_for_each_entry(revoker, &revokers, entry)
		if (revoker->user == user)
			return revoker;
	return NULL;
}

/* Whether another task is in the user's revoke(). */
static bool user_is_revoked_now(const struct kverbs_p2pdma_user *user)
{
	struct p2p_revoker *revoker;
	bool now;

	spin_lock(&users_lock);
	revoker = revoker_find(user);
	now = revoker && revoker->task != current;
	spin_unlock(&users_lock);
	return now;
}

static void user_warn(const struct kverbs_p2pdma_user *user)
{
	struct p2p_revoker *revoker;

	spin_lock(&users_lock);
	revoker = revoker_find(user);
	/* The task that is in revoke() keeps the provider until that has returned. */
	if (revoker && revoker->task != current)
		pci_warn(user->provider, "waiting to delete a user of its memory: revoke() (%ps), called by process %d (%s), has not returned\n",
			 user->revoke, task_pid_nr(revoker->task), revoker->task->comm);
	spin_unlock(&users_lock);
}

/**
 * kverbs_p2pdma_user_del() - undo kverbs_p2pdma_user_add()
 * @user: from kverbs_p2pdma_user_add()
 *
 * When this returns, revoke() is not running and will not be called, unless revoke()
 * is the caller.
 *
 * Context: Process, may sleep.
 */
void kverbs_p2pdma_user_del(struct kverbs_p2pdma_user *user)
{
	spin_lock(&users_lock);
	list_del_init(&user->entry);
	spin_unlock(&users_lock);
	while (!wait_event_timeout(revoked, !user_is_revoked_now(user), P2P_WARN_INTERVAL))
		user_warn(user);
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_user_del);

/* Takes the next user of @pdev out of the list. */
static struct kverbs_p2pdma_user *user_take(const struct pci_dev *pdev)
{
	struct kverbs_p2pdma_user *user;

	lockdep_assert_held(&users_lock);
	list_for_each_entry(user, &users, entry) {
		if (user->provider != pdev)
			continue;
		list_del_init(&user->entry);
		return user;
	}
	return NULL;
}

static void users_revoke(struct pci_dev *pdev)
	__must_hold(&users_lock)
{
	struct p2p_revoker self = { .task = current };
	struct kverbs_p2pdma_user *user;

	lockdep_assert_held(&users_lock);
	while ((user = user_take(pdev))) {
		self.user = user;
		list_add(&self.entry, &revokers);
		spin_unlock(&users_lock);
		trace_p2p_provider(pdev, "revoke", 0);
		user->revoke(user);
		spin_lock(&users_lock);
		list_del(&self.entry);
		wake_up_all(&revoked);
	}
}

/* Tells all users of @pdev that it is going away. */
void p2p_users_revoke(struct pci_dev *pdev)
{
	spin_lock(&users_lock);
	users_revoke(pdev);
	spin_unlock(&users_lock);
}

/*
 * As p2p_users_revoke(), and lets nobody become a user until device_unbound(); also not of memory
 * that comes meanwhile, from a work item of the driver's.
 */
static void device_unbinding(struct pci_dev *pdev)
{
	struct p2p_going *g;

	/* The removal of a device cannot be refused, so this must not fail. */
	g = kmalloc(sizeof(*g), GFP_KERNEL | __GFP_NOFAIL);
	g->pdev = pdev;
	spin_lock(&users_lock);
	if (!going_find(pdev)) {
		list_add(&g->entry, &going);
		g = NULL;
	}
	users_revoke(pdev);
	spin_unlock(&users_lock);
	kfree(g);
}

static void device_unbound(struct pci_dev *pdev)
{
	struct p2p_going *g;

	spin_lock(&users_lock);
	g = going_find(pdev);
	if (g)
		list_del(&g->entry);
	spin_unlock(&users_lock);
	kfree(g);
}

static int device_notify(struct notifier_block *nb, unsigned long event, void *data)
{
	struct device *dev = data;
	struct pci_dev *pdev = to_pci_dev(dev);

	switch (event) {
	case BUS_NOTIFY_UNBIND_DRIVER:
		device_unbinding(pdev);
		break;
	case BUS_NOTIFY_DEL_DEVICE:
		/* If it has a driver, that will be unbound, which does the same. */
		if (!dev->driver)
			device_unbinding(pdev);
		break;
	case BUS_NOTIFY_DRIVER_NOT_BOUND:
		/*
		 * Memory that its probe has published, or is about to, is removed right after this,
		 * without another event.
		 */
		device_unbinding(pdev);
		break;
	case BUS_NOTIFY_BIND_DRIVER:
	case BUS_NOTIFY_UNBOUND_DRIVER:
	case BUS_NOTIFY_REMOVED_DEVICE:
		device_unbound(pdev);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block device_nb = {
	.notifier_call = device_notify,
};

int p2p_user_init(void)
{
	return bus_register_notifier(&pci_bus_type, &device_nb);
}

void p2p_user_exit(void)
{
	struct p2p_going *g, *next;

	bus_unregister_notifier(&pci_bus_type, &device_nb);
	WARN_ON(!list_empty(&users));
	list_for_each_entry_safe(g, next, &going, entry)
		kfree(g);
}
