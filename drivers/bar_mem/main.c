// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_bar_mem: turns a device that has memory behind a BAR, but no driver that
 * offers it, into a provider of peer-to-peer memory: accelerators, NVMe controllers
 * with a controller memory buffer, QEMU's ivshmem.
 *
 * It binds to no device by itself. Either
 *
 *	echo kverbs_bar_mem >/sys/bus/pci/devices/<address>/driver_override
 *	echo <address> >/sys/bus/pci/drivers_probe
 *
 * or, for all devices of a kind,
 *
 *	echo <vendor> <device> >/sys/bus/pci/drivers/kverbs_bar_mem/new_id
 *
 * The memory must be plain memory: see pci_p2pmem_publish().
 */
#include <kverbs/p2pdma.h>
#include <linux/module.h>

#include "bar_mem.h"

#define BAR_CHOOSE	-1

static int bar = BAR_CHOOSE;
module_param(bar, int, 0644);
MODULE_PARM_DESC(bar,
	"BAR with the memory; -1: an NVMe controller's memory buffer, else the largest BAR (default: -1)");

static unsigned long long offset;
module_param(offset, ullong, 0644);
MODULE_PARM_DESC(offset, "Offset of the memory in its BAR, in bytes, a multiple of 2 MiB (default: 0)");

static unsigned long long size;
module_param(size, ullong, 0644);
MODULE_PARM_DESC(size, "Size of the memory in bytes, a multiple of 2 MiB; 0: up to the end of the BAR (default: 0)");

static bool publish = true;
module_param(publish, bool, 0644);
MODULE_PARM_DESC(publish, "Let any orchestrator find the memory (default: Y)");

/* Returns the largest memory BAR; or, if there is none, BAR 0, which is refused later. */
static int bar_mem_largest(struct pci_dev *pdev)
{
	int i, largest = 0;

	for (i = 0; i < PCI_STD_NUM_BARS; i++) {
		if (pci_resource_flags(pdev, i) & IORESOURCE_MEM &&
		    pci_resource_len(pdev, i) > pci_resource_len(pdev, largest))
			largest = i;
	}
	return largest;
}

/*
 * Chooses the memory of a device. The parameters are read at probe: a change applies to
 * devices that are bound later.
 */
static int bar_mem_choose(struct pci_dev *pdev, struct bar_mem_range *range)
{
	int wanted = READ_ONCE(bar);

	*range = (struct bar_mem_range) {
		.bar = wanted,
		.offset = READ_ONCE(offset),
		.size = READ_ONCE(size),
	};
	if (wanted != BAR_CHOOSE)
		return wanted >= 0 && wanted < PCI_STD_NUM_BARS ? 0 : -EINVAL;
	if (bar_mem_is_nvme(pdev))
		return bar_mem_cmb(pdev, range);
	range->bar = bar_mem_largest(pdev);
	return 0;
}

static int bar_mem_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct bar_mem_range range;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = bar_mem_choose(pdev, &range);
	if (ret)
		return dev_err_probe(&pdev->dev, ret, "no memory BAR to provide\n");
	ret = pci_request_region(pdev, range.bar, KBUILD_MODNAME);
	if (ret)
		return ret;
	ret = pci_p2pdma_add_resource(pdev, range.bar, range.size, range.offset);
	if (ret)
		return dev_err_probe(&pdev->dev, ret,
				     "cannot provide %llu bytes of BAR %d from %llu on%s\n",
				     range.size, range.bar, range.offset, ret == -EINVAL ?
				     ": size and offset must be multiples of 2 MiB" : "");
	if (READ_ONCE(publish))
		pci_p2pmem_publish(pdev, true);
	return 0;
}

/* No remove(): devres takes the memory away, and waits until it is free. */
static struct pci_driver bar_mem_driver = {
	.name = KBUILD_MODNAME,
	.probe = bar_mem_probe,
};
module_pci_driver(bar_mem_driver);

MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Provides a BAR of any PCI device as peer-to-peer memory");
