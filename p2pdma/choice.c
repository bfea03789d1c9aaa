// SPDX-License-Identifier: GPL-2.0-only
/*
 * Parses and prints what a user chooses by a file: a provider, any provider, or none.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ctype.h>
#include <linux/export.h>
#include <linux/kstrtox.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#include "p2pdma.h"

/*
 * Whether the text may be a truth value. kstrtobool() alone would not do: it looks at the first
 * character only, and would take an address that no device has for a number.
 */
static bool choice_is_flag(const char *page)
{
	return !isdigit(page[0]) || !page[1] || page[1] == '\n';
}

static int choice_parse(const char *page, struct pci_dev **p2p_dev, bool *use_p2pdma)
{
	struct device *dev = bus_find_device_by_name(&pci_bus_type, NULL, page);

	if (!dev) {
		if (choice_is_flag(page) && !kstrtobool(page, use_p2pdma))
			return 0;
		pr_err("not a PCI device: %.*s\n", (int)strcspn(page, "\n"), page);
		return -ENODEV;
	}
	if (!kverbs_has_p2pmem(to_pci_dev(dev))) {
		dev_err(dev, "has published no peer-to-peer memory\n");
		put_device(dev);
		return -ENODEV;
	}
	*use_p2pdma = true;
	*p2p_dev = to_pci_dev(dev);
	return 0;
}

/**
 * kverbs_p2pdma_enable_store() - read what a user has chosen
 * @page: the text: a PCI address with its domain; or a truth value, as for kstrtobool(),
 *	of which a digit is the only character
 * @p2p_dev: set to the provider with that address, with a reference for the caller to put
 *	by pci_dev_put(); left as it is for a truth value
 * @use_p2pdma: set to whether the user wants peer-to-peer memory: of that provider or, for
 *	a truth value, of any that kverbs_p2pmem_find() finds
 *
 * For a file in sysfs or configfs, with kverbs_p2pdma_enable_show().
 *
 * Context: Process, may sleep.
 * Return: 0; -ENODEV if the text is neither, or the device has not published any memory.
 */
int kverbs_p2pdma_enable_store(const char *page, struct pci_dev **p2p_dev, bool *use_p2pdma)
{
	if (!p2p_is_own())
		return pci_p2pdma_enable_store(page, p2p_dev, use_p2pdma);
	return choice_parse(page, p2p_dev, use_p2pdma);
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_enable_store);

/**
 * kverbs_p2pdma_enable_show() - print what a user has chosen
 * @page: where to print: a whole page
 * @p2p_dev: the provider that was chosen, or NULL
 * @use_p2pdma: whether the user wants peer-to-peer memory
 *
 * Context: Any.
 * Return: number of characters.
 */
ssize_t kverbs_p2pdma_enable_show(char *page, struct pci_dev *p2p_dev, bool use_p2pdma)
{
	if (use_p2pdma && p2p_dev)
		return sysfs_emit(page, "%s\n", pci_name(p2p_dev));
	return sysfs_emit(page, "%d\n", use_p2pdma);
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_enable_show);
