// SPDX-License-Identifier: GPL-2.0-only
/*
 * Controller memory buffers (CMB) of NVMe controllers: memory behind one of the
 * controller's BARs, for queues and data of hosts. The registers are those of the NVM
 * Express Base Specification, "Controller Properties". If CAP.CMBS is set, the other
 * registers must be enabled before they contain anything; on older controllers, which
 * have a CMB but not that bit, they always do.
 */
#include <linux/bitfield.h>
#include <linux/io.h>
#include <linux/io-64-nonatomic-hi-lo.h>
#include <linux/minmax.h>
#include <linux/sizes.h>

#include "bar_mem.h"

#define CMB_REGISTERS_BAR	0
#define CMB_REGISTERS_SIZE	SZ_4K

#define CMB_CAP			0x00
#define CMB_CAP_SUPPORTED	BIT_ULL(57)

#define CMB_LOC			0x38
#define CMB_LOC_BAR		GENMASK(2, 0)
#define CMB_LOC_OFFSET		GENMASK(31, 12)	/* in units of the size */

#define CMB_SIZE		0x3c
#define CMB_SIZE_READ_DATA	BIT(3)
#define CMB_SIZE_WRITE_DATA	BIT(4)
#define CMB_SIZE_UNIT		GENMASK(11, 8)	/* 4 KiB * 16^this */
#define CMB_SIZE_UNIT_MAX	6
#define CMB_SIZE_UNITS		GENMASK(31, 12)

#define CMB_CONTROL		0x50
#define CMB_CONTROL_REGISTERS	BIT_ULL(0)	/* the registers above are valid */
#define CMB_CONTROL_MEMORY	BIT_ULL(1)	/* the controller knows its own memory */

/*
 * Finds the CMB by its registers, and limits it to its BAR, since it may be larger than
 * that.
 */
static int cmb_locate(struct pci_dev *pdev, void __iomem *regs, struct bar_mem_range *range)
{
	u32 size = readl(regs + CMB_SIZE);
	u32 loc = readl(regs + CMB_LOC);
	u32 unit = FIELD_GET(CMB_SIZE_UNIT, size);
	u64 bar_size;

	if (!FIELD_GET(CMB_SIZE_UNITS, size))
		return -ENODEV;
	/* Clients need memory for data, not only for queues. */
	if (!(size & CMB_SIZE_READ_DATA) || !(size & CMB_SIZE_WRITE_DATA))
		return -EOPNOTSUPP;
	range->bar = FIELD_GET(CMB_LOC_BAR, loc);
	if (unit > CMB_SIZE_UNIT_MAX || range->bar >= PCI_STD_NUM_BARS)
		return -EINVAL;
	range->offset = (u64)FIELD_GET(CMB_LOC_OFFSET, loc) * SZ_4K << 4 * unit;
	range->size = (u64)FIELD_GET(CMB_SIZE_UNITS, size) * SZ_4K << 4 * unit;
	bar_size = pci_resource_len(pdev, range->bar);
	if (range->offset >= bar_size)
		return -EINVAL;
	range->size = min(range->size, bar_size - range->offset);
	return 0;
}

/*
 * Makes the controller recognise bus addresses of its own memory, which its clients may
 * give it in commands.
 */
static void cmb_enable_memory(struct pci_dev *pdev, void __iomem *regs,
			      const struct bar_mem_range *range)
{
	u64 base = pci_bus_address(pdev, range->bar) + range->offset;

	hi_lo_writeq(base | CMB_CONTROL_MEMORY | CMB_CONTROL_REGISTERS, regs + CMB_CONTROL);
}

/**
 * bar_mem_cmb() - find and enable an NVMe controller's memory buffer
 * @pdev: the controller: enabled, and not bound to another driver
 * @range: set to the location of the buffer, if 0 is returned
 *
 * The buffer stays enabled when the driver is unbound, because its memory may be in use
 * for longer. The next driver does the same again.
 *
 * Context: may sleep.
 * Return: 0; -ENODEV: the controller has no buffer; -EOPNOTSUPP: its buffer is not for
 * data; -EINVAL: its description of the buffer is invalid; -ENOMEM.
 */
int bar_mem_cmb(struct pci_dev *pdev, struct bar_mem_range *range)
{
	void __iomem *regs;
	bool supported;
	int ret;

	if (pci_resource_len(pdev, CMB_REGISTERS_BAR) < CMB_REGISTERS_SIZE)
		return -EINVAL;
	regs = pci_iomap(pdev, CMB_REGISTERS_BAR, CMB_REGISTERS_SIZE);
	if (!regs)
		return -ENOMEM;
	supported = hi_lo_readq(regs + CMB_CAP) & CMB_CAP_SUPPORTED;
	if (supported)
		hi_lo_writeq(CMB_CONTROL_REGISTERS, regs + CMB_CONTROL);
	ret = cmb_locate(pdev, regs, range);
	if (supported && !ret)
		cmb_enable_memory(pdev, regs, range);
	pci_iounmap(pdev, regs);
	return ret;
}
