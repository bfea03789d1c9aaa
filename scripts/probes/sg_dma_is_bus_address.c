// SPDX-License-Identifier: GPL-2.0-only
/* The name of the mark that a list's entry is mapped by bus address (6.4). */
#include <linux/scatterlist.h>

static bool __used probe(struct scatterlist *sg)
{
	return sg_dma_is_bus_address(sg);
}
