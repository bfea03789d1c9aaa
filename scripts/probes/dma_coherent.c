// SPDX-License-Identifier: GPL-2.0-only
/* A device may be incoherent: architectures that know such devices have a flag for it. */
#include <linux/device.h>

static bool __used probe(struct device *dev)
{
	return dev->dma_coherent;
}
