/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_bar_mem: what its files share.
 *
 * main.c  the driver: chooses the part of a BAR, and makes the device a provider
 * cmb.c   controller memory buffers of NVMe controllers
 */
#ifndef KVERBS_BAR_MEM_H
#define KVERBS_BAR_MEM_H

#include <linux/pci.h>

/**
 * struct bar_mem_range - a range of memory of a device
 * @bar: number of its BAR
 * @offset: bytes from the start of the BAR
 * @size: bytes, 0 for the rest of the BAR
 */
struct bar_mem_range {
	int bar;
	u64 offset;
	u64 size;
};

/* cmb.c */
static inline bool bar_mem_is_nvme(const struct pci_dev *pdev)
{
	return pdev->class == PCI_CLASS_STORAGE_EXPRESS;
}

int bar_mem_cmb(struct pci_dev *pdev, struct bar_mem_range *range);

#endif
