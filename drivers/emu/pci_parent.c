// SPDX-License-Identifier: GPL-2.0-only
/*
 * The places of devices on the PCI bus. A device that has a place is a child of the PCI
 * function that was named: it can reach the memory of other devices, or cannot, just as
 * that function could. When the function goes away, so does the device.
 *
 * Locks: emu_places_lock guards the list. emu_place.pdev belongs to the configuration,
 * and does not change while the place is on the list. Whoever has emu_places_lock takes
 * no other lock. A function is looked up and put onto the list in one critical section,
 * so that when a function goes away, either it is no longer found, or its devices are
 * found. The lock of a configuration, which is held while its device is created or
 * destroyed, is taken outside emu_places_lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/pci.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "configfs.h"

static DEFINE_MUTEX(emu_places_lock);
static LIST_HEAD(emu_places);

/*
 * Nobody can wait for the very end of a vacation's work but the queue's destruction: to flush
 * the work in the notifier would tell lockdep of the locks that must not be mixed up there.
 */
static struct workqueue_struct *emu_place_wq;

/**
 * struct emu_vacation - a PCI function is going away
 * @work: removes the devices that have their place there
 * @dev: the function
 * @done: these devices have gone
 */
struct emu_vacation {
	struct work_struct work;
	struct device *dev;
	struct completion done;
};

/**
 * emu_place_parse() - read the address of a PCI function
 * @place: set to the address; an empty string means no place
 * @name: as lspci prints it, with or without a domain
 *
 * Context: Any.
 * Return: 0, or -EINVAL.
 */
int emu_place_parse(struct emu_place *place, const char *name)
{
	unsigned int domain = 0, bus, slot, func;
	int end = 0;

	if (!*name) {
		place->is_set = false;
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
	place->is_set = true;
	place->domain = domain;
	place->bus = bus;
	place->devfn = PCI_DEVFN(slot, func);
	return 0;
}

/* The counterpart of emu_place_parse(). The text ends with a newline. */
ssize_t emu_place_show(const struct emu_place *place, char *page)
{
	if (!place->is_set)
		return sysfs_emit(page, "\n");
	return sysfs_emit(page, "%04x:%02x:%02x.%u\n", place->domain, place->bus,
			  PCI_SLOT(place->devfn), PCI_FUNC(place->devfn));
}

/* Looks up the function, if one is set. Returns 0, or -ENODEV if there is none. */
int emu_place_enter(struct emu_config *config)
{
	struct emu_place *place = &config->place;

	lockdep_assert_held(&config->lock);
	if (!place->is_set)
		return 0;
	mutex_lock(&emu_places_lock);
	place->pdev = pci_get_domain_bus_and_slot(place->domain, place->bus, place->devfn);
	if (place->pdev)
		list_add(&place->entry, &emu_places);
	mutex_unlock(&emu_places_lock);
	return place->pdev ? 0 : -ENODEV;
}

/* The device has been destroyed, or could not be created. */
void emu_place_leave(struct emu_config *config)
{
	struct emu_place *place = &config->place;

	lockdep_assert_held(&config->lock);
	if (!place->pdev)
		return;
	mutex_lock(&emu_places_lock);
	list_del(&place->entry);
	mutex_unlock(&emu_places_lock);
	pci_dev_put(place->pdev);
	place->pdev = NULL;
}

/* Returns a configuration whose place is @dev, with a reference; or NULL. */
static struct emu_config *emu_place_find(struct device *dev)
{
	struct emu_config *config, *found = NULL;

	mutex_lock(&emu_places_lock);
	list_for_each_entry(config, &emu_places, place.entry) {
		if (&config->place.pdev->dev == dev) {
			config_group_get(&config->group);
			found = config;
			break;
		}
	}
	mutex_unlock(&emu_places_lock);
	return found;
}

static void emu_place_vacate(struct work_struct *work)
{
	struct emu_vacation *vacation = container_of(work, typeof(*vacation), work);
	struct emu_config *config;

	while ((config = emu_place_find(vacation->dev))) {
		emu_config_evict(config, vacation->dev);
		config_group_put(&config->group);
	}
	complete(&vacation->done);
}

/*
 * The children of a function must go away before the function does: during this call, but
 * in another thread. This thread holds the lock of the notifiers of the PCI bus; the bus
 * of our devices has a lock of the same kind, which lockdep takes for the same lock.
 */
static int emu_place_notify(struct notifier_block *nb, unsigned long event, void *data)
{
	struct emu_vacation vacation = { .dev = data };

	/*
	 * The second event comes when the function cannot be found any more. It is for
	 * devices that found it after the first.
	 */
	if (event != BUS_NOTIFY_DEL_DEVICE && event != BUS_NOTIFY_REMOVED_DEVICE)
		return NOTIFY_DONE;
	init_completion(&vacation.done);
	INIT_WORK_ONSTACK(&vacation.work, emu_place_vacate);
	queue_work(emu_place_wq, &vacation.work);
	wait_for_completion(&vacation.done);
	destroy_work_on_stack(&vacation.work);
	return NOTIFY_OK;
}

static struct notifier_block emu_place_nb = {
	.notifier_call = emu_place_notify,
};

int emu_place_init(void)
{
	int err;

	emu_place_wq = alloc_workqueue("kverbs_emu_place", WQ_UNBOUND, 0);
	if (!emu_place_wq)
		return -ENOMEM;
	err = bus_register_notifier(&pci_bus_type, &emu_place_nb);
	if (err)
		destroy_workqueue(emu_place_wq);
	return err;
}

void emu_place_exit(void)
{
	bus_unregister_notifier(&pci_bus_type, &emu_place_nb);
	destroy_workqueue(emu_place_wq);
}
