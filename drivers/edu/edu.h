/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs_edu: what its files share.
 *
 * main.c    the PCI device: binding, interrupt, removal
 * engine.c  the queue of requests, and how one is carried out
 */
#ifndef KVERBS_EDU_PRIV_H
#define KVERBS_EDU_PRIV_H

#include <kverbs/edu.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

/* Registers in BAR 0, from QEMU's docs/specs/edu.txt. */
#define EDU_BAR			0
#define EDU_SIZE		0x100000
#define EDU_ID			0x00
#define EDU_ID_MASK		0x0000ffff
#define EDU_ID_VALUE		0x000000ed
#define EDU_IRQ_STATUS		0x24
#define EDU_IRQ_ACK		0x64
#define EDU_DMA_SOURCE		0x80
#define EDU_DMA_TARGET		0x88
#define EDU_DMA_COUNT		0x90
#define EDU_DMA_COMMAND		0x98
#define EDU_DMA_RUN		BIT(0)
#define EDU_DMA_TO_MEMORY	BIT(1)
#define EDU_DMA_IRQ		BIT(2)

/* The buffer, as the device addresses it. */
#define EDU_BUFFER		0x40000
#define EDU_BUFFER_SIZE		4096
/*
 * Bytes that are moved at a time. Not the whole buffer, because some releases of QEMU
 * take that for a transfer beyond its end, and exit.
 */
#define EDU_CHUNK		(EDU_BUFFER_SIZE - 8)

enum edu_state {
	EDU_WORKS,
	EDU_BROKEN,	/* timed out: it may not use the bus any more */
	EDU_REMOVED,	/* its driver is being unbound */
};

/**
 * struct edu_engine - one device
 * @ref: references
 * @entry: entry in the list of engines that are bound
 * @pdev: the device; only the work and the driver use it, while the device is bound
 * @regs: BAR 0; only the work and the driver use it, while the device is bound
 * @lock: guards @state and @queue
 * @state: only ever gets worse
 * @queue: requests; the first one is under way, and only the work uses it
 * @idle: woken up when @queue has become empty
 * @work: does all that is done with the device; runs after a request was submitted,
 *	after an interrupt, and when an interrupt does not come in time
 * @mapped: the lists of the request under way are mapped; used by the work alone
 * @moving: a chunk is moving between memory and buffer; used by the work alone
 * @storing: the chunk is in the buffer, and is to be stored from there; used by the work
 *	alone
 * @deadline: time, in jiffies, at which a move is taken to have failed; used by the work
 *	alone
 */
struct edu_engine {
	struct kref ref;
	struct list_head entry;
	struct pci_dev *pdev;
	void __iomem *regs;
	spinlock_t lock;
	enum edu_state state;
	struct list_head queue;
	wait_queue_head_t idle;
	struct delayed_work work;
	bool mapped;
	bool moving;
	bool storing;
	unsigned long deadline;
};

/* engine.c */
void edu_engine_init(struct edu_engine *edu);
void edu_engine_start(struct edu_engine *edu);
void edu_engine_stop(struct edu_engine *edu);

#endif
