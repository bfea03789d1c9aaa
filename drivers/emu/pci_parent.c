// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parents of devices on the PCI bus. A device that has one is a child of the named PCI
 * function: it can reach the memory of other devices if that function could. When the function
 * is removed, so is the device.
 *
 * Locks: emu_pci_parents_lock guards the list. emu_pci_parent.pdev belongs to the configuration,
 * and does not change while the parent is on the list. Whoever has emu_pci_parents_lock takes
 * no other lock. A function is looked up and put onto the list in one critical section,
 * so that when a function goes away, either it is no longer found, or its devices are
 * found. The lock of a configuration, which is held while its device is created or
 * destroyed, is taken outside emu_pci_parents_lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/pci.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "configfs.h"

static DEFINE_MUTEX(emu_pci_parents_lock);
static LIST_HEAD(emu_pci_parents);

/*
 * Only destroying the queue waits for the very end of an eviction's work: flushing the work in
 * the notifier would make lockdep mix up the locks that are explained below.
 */
static struct workqueue_struct *emu_pci_parent_wq;

/**
 * struct emu_eviction - the removal of a PCI function
 * @work: removes the devices whose parent it is
 * @dev: the function
 * @done: these devices have gone
 */
struct emu_eviction {
	struct work_struct work;
	struct device *dev;
	struct completion done;
};

/**
 * emu_pci_parent_parse() - read the address of a PCI function
 * @parent: set to the address; an empty string means no parent
 * @name: as lspci prints it, with or without a domain
 *
 * Context: Any.
 * Return: 0, or -EINVAL.
 */
int emu_pci_parent_parse(struct emu_pci_parent *parent, const char *name)
{
	unsigned int domain = 0, bus, slot, func;
	int end = 0;

	if (!*name) {
		parent->is_set = false;
		return 0;
	}
	/* sscanf() would also accept signs and 0x. */
	if (name[strspn(name, "0123456789abcdefABCDEF:.")])
		return -EINVAL;
	if (sscanf(name, "%x:%x:%x.%x%n", &domain, &bus, &slot, &func, &end) != 4) {
		domain = 0;
		if (sscanf(name, "%x:%x.%x%n", &bus, &slot, &func, &end) != 3)
			return -EINVAL;
	}
	if (name[end] || domain > INT_MAX || bus > 0xff || slot > 0x1f || func > 7)
		return -EINVAL;
	parent->is_set = true;
	parent->domain = domain;
	parent->bus = bus;
	parent->devfn = PCI_DEVFN(slot, func);
	return 0;
}

/* The counterpart of emu_pci_parent_parse(). The text ends with a newline. */
ssize_t emu_pci_parent_show(const struct emu_pci_parent *parent, char *page)
{
	if (!parent->is_set)
		return sysfs_emit(page, "\n");
	return sysfs_emit(page, "%04x:%02x:%02x.%u\n", parent->domain, parent->bus,
			  PCI_SLOT(parent->devfn), PCI_FUNC(parent->devfn));
}

/* Looks up the function, if one is set. Returns 0, or -ENODEV if there is none. */
int emu_pci_parent_enter(struct emu_config *config)
{
	struct emu_pci_parent *parent = &config->pci_parent;

	lockdep_assert_held(&config->lock);
	if (!parent->is_set)
		return 0;
	mutex_lock(&emu_pci_parents_lock);
	parent->pdev = pci_get_domain_bus_and_slot(parent->domain, parent->bus, parent->devfn);
	if (parent->pdev)
		list_add(&parent->entry, &emu_pci_parents);
	mutex_unlock(&emu_pci_parents_lock);
	return parent->pdev ? 0 : -ENODEV;
}

/* The device has been destroyed, or could not be created. */
void emu_pci_parent_leave(struct emu_config *config)
{
	struct emu_pci_parent *parent = &config->pci_parent;

	lockdep_assert_held(&config->lock);
	if (!parent->pdev)
		return;
	mutex_lock(&emu_pci_parents_lock);
	list_del(&parent->entry);
	mutex_unlock(&emu_pci_parents_lock);
	pci_dev_put(parent->pdev);
	parent->pdev = NULL;
}

/* Returns a configuration whose parent is @dev, with a reference; or NULL. */
static struct emu_config *emu_pci_parent_find(struct device *dev)
{
	struct emu_config *config, *found = NULL;

	mutex_lock(&emu_pci_parents_lock);
	list_for_each_entry(config, &emu_pci_parents, pci_parent.entry) {
		if (&config->pci_parent.pdev->dev == dev) {
			config_group_get(&config->group);
			found = config;
			break;
		}
	}
	mutex_unlock(&emu_pci_parents_lock);
	return found;
}

static void emu_pci_parent_evict(struct work_struct *work)
{
	struct emu_eviction *eviction = container_of(work, typeof(*eviction), work);
	struct emu_config *config;

	while ((config = emu_pci_parent_find(eviction->dev))) {
		emu_config_evict(config, eviction->dev);
		config_group_put(&config->group);
	}
	complete(&eviction->done);
}

/*
 * The children of a function must go away before the function does: during this call, but
 * in another thread. This thread holds the lock of the notifiers of the PCI bus; the bus
 * of our devices has a lock of the same kind, which lockdep takes for the same lock.
 */
static int emu_pci_parent_notify(struct notifier_block *nb, unsigned long event, void *data)
{
	struct emu_eviction eviction = { .dev = data };

	/*
	 * The second event comes when the function can no longer be found. It is for
	 * devices that found it after the first.
	 */
	if (event != BUS_NOTIFY_DEL_DEVICE && event != BUS_NOTIFY_REMOVED_DEVICE)
		return NOTIFY_DONE;
	init_completion(&eviction.done);
	INIT_WORK_ONSTACK(&eviction.work, emu_pci_parent_evict);
	queue_work(emu_pci_parent_wq, &eviction.work);
	wait_for_completion(&eviction.done);
	destroy_work_on_stack(&eviction.work);
	return NOTIFY_OK;
}

static struct notifier_block emu_pci_parent_nb = {
	.notifier_call = emu_pci_parent_notify,
};

int emu_pci_parent_init(void)
{
	int err;

	emu_pci_parent_wq = alloc_workqueue("kverbs_emu_pci", WQ_UNBOUND, 0);
	if (!emu_pci_parent_wq)
		return -ENOMEM;
	err = bus_register_notifier(&pci_bus_type, &emu_pci_parent_nb);
	if (err)
		destroy_workqueue(emu_pci_parent_wq);
	return err;
}

void emu_pci_parent_exit(void)
{
	bus_unregister_notifier(&pci_bus_type, &emu_pci_parent_nb);
	destroy_workqueue(emu_pci_parent_wq);
}
