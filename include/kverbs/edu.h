/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What kverbs_edu.ko offers to other modules: the DMA engine of QEMU's edu device. Its
 * driver is a client of peer-to-peer memory that the author of a driver can read in an hour.
 * The engine copies memory through a buffer in the device: it fetches each chunk, then
 * stores it.
 */
#ifndef KVERBS_EDU_H
#define KVERBS_EDU_H

#include <linux/dma-direction.h>
#include <linux/list.h>
#include <linux/pci.h>
#include <linux/scatterlist.h>

struct edu_engine;

/**
 * struct edu_pos - position of a copy in one of its scatter lists
 * @sg: mapped entry
 * @offset: bytes of @sg that have been copied
 *
 * Private to the driver.
 */
struct edu_pos {
	struct scatterlist *sg;
	unsigned int offset;
};

/**
 * struct edu_copy - a request to copy memory
 * @from: memory to copy from: of the system, or peer-to-peer memory of one provider.
 *	The driver maps and unmaps it
 * @to: memory to copy to, likewise
 * @len: bytes to copy; not 0, and no more than either list has
 * @done: called when the request has ended, in process context, in the order of
 *	submission. It may sleep, which delays later requests, and may call edu_submit()
 * @status: result, for @done: 0; -ENODEV if the device is being removed; -EIO if it does
 *	not respond; or the error of mapping the memory
 * @copied: bytes that were stored, also if @status is an error
 * @pos_from: private to the driver
 * @pos_to: private to the driver
 * @chunk: private to the driver
 * @entry: private to the driver
 *
 * The whole structure belongs to the driver from edu_submit() until @done is called.
 */
struct edu_copy {
	struct sg_table *from;
	struct sg_table *to;
	size_t len;
	void (*done)(struct edu_copy *copy);
	int status;
	size_t copied;
	struct edu_pos pos_from;
	struct edu_pos pos_to;
	unsigned int chunk;
	struct list_head entry;
};

struct edu_engine *edu_engine_get(struct pci_dev *pdev);
void edu_engine_put(struct edu_engine *edu);
int edu_submit(struct edu_engine *edu, struct edu_copy *copy);
int edu_copy(struct edu_engine *edu, struct sg_table *from, struct sg_table *to, size_t len);

#endif
