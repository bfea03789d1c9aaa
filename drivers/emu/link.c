// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices that are created by netlink, under mainline's core:
 *
 *   rdma link add <device> type emu netdev <netdev>
 *   rdma link delete <device>
 *
 * Such a device has one Ethernet port, on the network device of that name in the caller's
 * network namespace, and no directory in configfs. It goes away by "rdma link delete", with its
 * network device, or with the module, on which it holds no reference.
 *
 * The network device may be unregistered, with RTNL held, while the core moves our device to
 * another network namespace. The notifier must not wait for that, so it leaves the device to a
 * work item, @unregister.
 *
 * Whoever unregisters the device, the core then calls emu_link_dealloc(), and frees the device.
 * That may happen in a thread that holds no reference on this module. So another work item,
 * @reap, waits until that thread has returned to the core, and only then frees the link. The exit
 * of the module waits for these work items.
 *
 * Locks: emu_links_lock guards the list and @unregistered, and is taken inside RTNL. It is never
 * held while waiting for a device to be unregistered.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/netdevice.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <rdma/rdma_netlink.h>

#include "core.h"
#include "device.h"
#include "net/net.h"

/**
 * struct emu_link - a device that was made by netlink
 * @entry: on emu_links
 * @edev: the device; a reference keeps its memory as long as the link exists
 * @pdev: its parent, which outlives its registration
 * @netdev: the network device; only compared, for it may be gone
 * @unregistered: the core has unregistered the device
 * @unregister: unregisters the device
 * @reap: frees the link, once whoever unregistered the device has left this module
 */
struct emu_link {
	struct list_head entry;
	struct emu_device *edev;
	struct platform_device *pdev;
	const struct net_device *netdev;
	bool unregistered;
	struct work_struct unregister;
	struct work_struct reap;
};

static DEFINE_MUTEX(emu_links_lock);
static LIST_HEAD(emu_links);
static struct workqueue_struct *emu_links_wq;

static void emu_link_free(struct emu_link *link)
{
	struct ib_device *ibdev = &link->edev->ibdev;

	mutex_lock(&emu_links_lock);
	list_del(&link->entry);
	mutex_unlock(&emu_links_lock);
	/* It is no longer on the list, so nobody queues the work again. */
	cancel_work_sync(&link->unregister);
	kfree(link);
	put_device(&ibdev->dev);
}

static void emu_link_unregister(struct work_struct *work)
{
	struct emu_link *link = container_of(work, struct emu_link, unregister);

	/* If somebody else has begun to unregister it, this only waits for that. */
	ib_unregister_device(&link->edev->ibdev);
}

static void emu_link_reap(struct work_struct *work)
{
	struct emu_link *link = container_of(work, struct emu_link, reap);
	struct platform_device *pdev = link->pdev;

	/* Returns once whoever is unregistering the device has done so. */
	ib_unregister_device(&link->edev->ibdev);
	emu_link_free(link);
	platform_device_unregister(pdev);
}

static struct emu_link *emu_link_find(const struct emu_device *edev)
{
	struct emu_link *link;

	lockdep_assert_held(&emu_links_lock);
	list_for_each_entry(link, &emu_links, entry) {
		if (link->edev == edev)
			return link;
	}
	return NULL;
}

/* The core has unregistered the device, and frees it when we return. */
static void emu_link_dealloc(struct ib_device *ibdev)
{
	struct emu_device *edev = to_edev(ibdev);
	struct emu_link *link;

	/* The device can no longer be found, so nobody queues the work again. */
	cancel_work_sync(&edev->events);
	mutex_lock(&emu_links_lock);
	link = emu_link_find(edev);
	link->unregistered = true;
	mutex_unlock(&emu_links_lock);
	emu_debugfs_remove(edev);
	emu_device_stop(edev);
	queue_work(emu_links_wq, &link->reap);
}

static const struct ib_device_ops emu_link_ops = {
	.dealloc_driver = emu_link_dealloc,
};

/*
 * Registers the device. The link goes onto the list before that, because the device can be
 * deleted as soon as it is registered, and emu_link_dealloc() expects to find the link.
 */
static int emu_link_register(struct emu_device *edev, const char *name,
			     const struct net_device *netdev)
{
	struct emu_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	int err;

	if (!link)
		return -ENOMEM;
	link->edev = edev;
	link->pdev = edev->pdev;
	link->netdev = netdev;
	INIT_WORK(&link->unregister, emu_link_unregister);
	INIT_WORK(&link->reap, emu_link_reap);
	get_device(&edev->ibdev.dev);
	ib_set_device_ops(&edev->ibdev, &emu_link_ops);
	mutex_lock(&emu_links_lock);
	list_add_tail(&link->entry, &emu_links);
	mutex_unlock(&emu_links_lock);

	err = emu_core_register(edev, name);
	if (err)
		emu_link_free(link);
	return err;
}

/*
 * Unregisters the device if its network device has left @net, or has gone, before the device was
 * registered: the notifier could not do it then.
 */
static void emu_link_check_netdev(const struct net_device *netdev, const struct net *net)
{
	struct emu_link *link;

	rtnl_lock();
	mutex_lock(&emu_links_lock);
	list_for_each_entry(link, &emu_links, entry) {
		if (link->netdev == netdev &&
		    (!link->edev->ports[0].netdev || !net_eq(dev_net(netdev), net)))
			queue_work(emu_links_wq, &link->unregister);
	}
	mutex_unlock(&emu_links_lock);
	rtnl_unlock();
}

/* Adds the files in debugfs, unless somebody has already deleted the device. */
static void emu_link_add_debugfs(struct emu_device *edev)
{
	struct emu_link *link;

	mutex_lock(&emu_links_lock);
	link = emu_link_find(edev);
	if (link && !link->unregistered)
		emu_debugfs_add(edev);
	mutex_unlock(&emu_links_lock);
}

static int emu_link_new(const char *name, struct net_device *netdev)
{
	const struct net *net = dev_net(netdev);
	struct emu_port_config config;
	struct emu_device_spec spec = {
		.name = name,
		.nr_ports = 1,
		.ethernet = true,
		.by_link = true,
		.netdev = netdev,
		.ports = &config,
	};
	struct emu_device *edev;
	struct ib_device *ibdev;
	int err;

	emu_port_config_init(&config);
	edev = emu_device_new(&spec);
	if (IS_ERR(edev))
		return PTR_ERR(edev);
	ibdev = &edev->ibdev;
	get_device(&ibdev->dev);
	err = emu_link_register(edev, name, netdev);
	if (err) {
		ibdev->ops.dealloc_driver = NULL;
		emu_device_free(edev);
	} else {
		emu_link_add_debugfs(edev);
		emu_link_check_netdev(netdev, net);
	}
	put_device(&ibdev->dev);
	return err;
}

static struct rdma_link_ops emu_link_type = {
	.type = "emu",
	.newlink = emu_link_new,
};

/* Also called for each network device when the notifier is unregistered. */
static int emu_link_netdev_event(struct notifier_block *nb, unsigned long event, void *info)
{
	const struct net_device *netdev = netdev_notifier_info_to_dev(info);
	struct emu_link *link;

	if (event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	mutex_lock(&emu_links_lock);
	list_for_each_entry(link, &emu_links, entry) {
		if (link->netdev == netdev)
			queue_work(emu_links_wq, &link->unregister);
	}
	mutex_unlock(&emu_links_lock);
	return NOTIFY_DONE;
}

static struct notifier_block emu_link_nb = {
	.notifier_call = emu_link_netdev_event,
};

/**
 * emu_core_start() - let devices be created by netlink
 *
 * Context: Process, at the end of the module's init.
 * Return: 0, or -ENOMEM.
 */
int emu_core_start(void)
{
	int err;

	emu_links_wq = alloc_workqueue("kverbs_emu_links", WQ_UNBOUND, 0);
	if (!emu_links_wq)
		return -ENOMEM;
	err = register_netdevice_notifier(&emu_link_nb);
	if (err) {
		destroy_workqueue(emu_links_wq);
		return err;
	}
	rdma_link_register(&emu_link_type);
	return 0;
}

/* Returns the first device of the list, which the caller must put_device(); or NULL. */
static struct ib_device *emu_link_get_first(void)
{
	struct emu_link *link;
	struct ib_device *ibdev = NULL;

	mutex_lock(&emu_links_lock);
	link = list_first_entry_or_null(&emu_links, struct emu_link, entry);
	if (link) {
		ibdev = &link->edev->ibdev;
		get_device(&ibdev->dev);
	}
	mutex_unlock(&emu_links_lock);
	return ibdev;
}

/**
 * emu_core_stop() - destroy the devices that were created by netlink
 *
 * Context: Process, in the module's exit.
 */
void emu_core_stop(void)
{
	struct ib_device *ibdev;

	rdma_link_unregister(&emu_link_type);
	unregister_netdevice_notifier(&emu_link_nb);
	while ((ibdev = emu_link_get_first())) {
		ib_unregister_device(ibdev);
		put_device(&ibdev->dev);
		flush_workqueue(emu_links_wq);
	}
	destroy_workqueue(emu_links_wq);
}

MODULE_ALIAS_RDMA_LINK("emu");
