/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kverbs_edu.ko offers other modules: the DMA engine of QEMU's edu device, a
 * client of peer-to-peer memory that a driver's author can read in an hour. It copies
 * memory by way of a buffer in the device: each chunk is fetched, then stored.
 */
#ifndef KVERBS_EDU_H
#define KVERBS_EDU_H

#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>

struct edu_engine;

/**
 * struct edu_place - where a copy is within one of its scatter lists
 * @sg: entry as it is mapped
 * @offset: bytes of it that are done with
 *
 * The driver's own.
 */
struct edu_place {
	struct scatterlist *sg;
	unsigned int offset;
};

/**
 * struct edu_copy - a request to copy memory
 * @from: what to copy: memory of the system, or peer-to-peer memory of one provider.
 *	It is mapped and unmapped by the driver
 * @to: where to, likewise
 * @len: bytes, at most what each list has; not 0
 * @done: it has come to its end. In process context, in the order of submission; may
 *	sleep, which holds up the engine; may submit
 * @status: what came of it, for @done: 0; -ENODEV: the device goes; -EIO: it does not
 *	do what it is told
 * @copied: bytes that were stored, also where @status is an error
 * @place_from: the driver's own
 * @place_to: the driver's own
 * @chunk: the driver's own
 * @entry: the driver's own
 *
 * All of it is the driver's until @done.
 */
struct edu_copy {
	struct sg_table *from;
	struct sg_table *to;
	size_t len;
	void (*done)(struct edu_copy *copy);
	int status;
	size_t copied;
	struct edu_place place_from;
	struct edu_place place_to;
	unsigned int chunk;
	struct list_head entry;
};

struct edu_engine *edu_engine_get(struct pci_dev *pdev);
void edu_engine_put(struct edu_engine *edu);
int edu_submit(struct edu_engine *edu, struct edu_copy *copy);
int edu_copy(struct edu_engine *edu, struct sg_table *from, struct sg_table *to, size_t len);

#endif
