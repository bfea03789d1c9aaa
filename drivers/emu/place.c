// SPDX-License-Identifier: GPL-2.0-only
/*
 * Where devices are on the PCI bus. A device that is to have a place there is a child
 * of the PCI function that is named: from there it reaches the memory of others, or
 * not, as that function would. When the function goes, so does the device.
 *
 * Locks: emu_places_lock guards the list; emu_place.pdev is the configuration's, and
 * stays while the place is on the list. Whoever has emu_places_lock takes no other; under
 * it a function is looked for and put onto the list, so that a function that goes is not
 * found any more, or its devices are. The lock of a configuration, which is held while
 * its device is made and destroyed, is taken outside.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/pci.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "configfs.h"

static DEFINE_MUTEX(emu_places_lock);
static LIST_HEAD(emu_places);

/**
 * struct emu_vacation - a function goes
 * @work: makes its devices go
 * @dev: the function
 * @done: they have gone
 */
struct emu_vacation {
	struct work_struct work;
	struct device *dev;
	struct completion done;
};

/**
 * emu_place_parse() - read the address of a PCI function
 * @place: is set; to no place by an empty string
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
	/* No signs, and no 0x, which sscanf() takes, too. */
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

/* The counterpart of emu_place_parse(), as text that ends a line. */
ssize_t emu_place_show(const struct emu_place *place, char *page)
{
	if (!place->is_set)
		return sysfs_emit(page, "\n");
	return sysfs_emit(page, "%04x:%02x:%02x.%u\n", place->domain, place->bus,
			  PCI_SLOT(place->devfn), PCI_FUNC(place->devfn));
}

/* Finds the function. Returns 0, or -ENODEV without one. */
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

/* The device has gone, or did not come. */
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

/* A configuration whose device is a child of @dev, with a reference; or NULL. */
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
 * What is a child of a function must go before that does: in this call, but by
 * another thread. Here the lock of the bus's notifiers is held, and the bus of the
 * devices has one of the same kind, which lockdep takes for the same.
 */
static int emu_place_notify(struct notifier_block *nb, unsigned long event, void *data)
{
	struct emu_vacation vacation = { .dev = data };

	/* The second event, after which it is not found, is for those who found it late. */
	if (event != BUS_NOTIFY_DEL_DEVICE && event != BUS_NOTIFY_REMOVED_DEVICE)
		return NOTIFY_DONE;
	init_completion(&vacation.done);
	INIT_WORK_ONSTACK(&vacation.work, emu_place_vacate);
	queue_work(system_unbound_wq, &vacation.work);
	wait_for_completion(&vacation.done);
	destroy_work_on_stack(&vacation.work);
	return NOTIFY_OK;
}

static struct notifier_block emu_place_nb = {
	.notifier_call = emu_place_notify,
};

int emu_place_init(void)
{
	return bus_register_notifier(&pci_bus_type, &emu_place_nb);
}

void emu_place_exit(void)
{
	bus_unregister_notifier(&pci_bus_type, &emu_place_nb);
}
