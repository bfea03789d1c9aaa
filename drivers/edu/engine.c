// SPDX-License-Identifier: GPL-2.0-only
/*
 * The queue of requests of an engine, and how one is carried out: chunk by chunk, from
 * memory to the buffer, from there to memory.
 *
 * One work item does all that is done with the device. It is started by submitters, by
 * interrupts and, if no interrupt comes, by a timeout. So the request under way needs no
 * lock; edu_engine.lock guards the queue and the state, and is not held across callbacks.
 *
 * The device does not report failed transfers: reads that fail return all ones, and
 * writes that fail are lost. The only failure that can be detected is that the device
 * does not respond.
 */
#include <kverbs/p2pdma.h>
#include <linux/completion.h>
#include <linux/dma-mapping.h>
#include <linux/jiffies.h>
#include <linux/module.h>

#include "edu.h"

/* A transfer takes 0.1 s of the guest's time, but a busy host may hold up the guest for longer. */
#define EDU_TIMEOUT	(20 * HZ)

/* --- memory ----------------------------------------------------------------------- */

/*
 * Maps a list. For peer-to-peer memory there are functions of its own, so a list must
 * consist of such memory entirely, or not at all.
 */
static int edu_map(struct edu_engine *edu, struct sg_table *sgt, enum dma_data_direction dir)
{
	struct device *dev = &edu->pdev->dev;

	if (is_pci_p2pdma_page(sg_page(sgt->sgl)))
		return kverbs_p2pdma_map_sgtable(dev, sgt, dir, 0);
	return dma_map_sgtable(dev, sgt, dir, 0);
}

static void edu_unmap(struct edu_engine *edu, struct sg_table *sgt,
		      enum dma_data_direction dir)
{
	struct device *dev = &edu->pdev->dev;

	if (is_pci_p2pdma_page(sg_page(sgt->sgl)))
		kverbs_p2pdma_unmap_sgtable(dev, sgt, dir, 0);
	else
		dma_unmap_sgtable(dev, sgt, dir, 0);
}

static int edu_copy_map(struct edu_engine *edu, struct edu_copy *copy)
{
	int ret;

	ret = edu_map(edu, copy->from, DMA_TO_DEVICE);
	if (ret)
		return ret;
	ret = edu_map(edu, copy->to, DMA_FROM_DEVICE);
	if (ret) {
		edu_unmap(edu, copy->from, DMA_TO_DEVICE);
		return ret;
	}
	copy->pos_from = (struct edu_pos) { .sg = copy->from->sgl };
	copy->pos_to = (struct edu_pos) { .sg = copy->to->sgl };
	edu->mapped = true;
	return 0;
}

static void edu_copy_unmap(struct edu_engine *edu, struct edu_copy *copy)
{
	edu_unmap(edu, copy->to, DMA_FROM_DEVICE);
	edu_unmap(edu, copy->from, DMA_TO_DEVICE);
	edu->mapped = false;
}

static dma_addr_t edu_pos_addr(const struct edu_pos *pos)
{
	return sg_dma_address(pos->sg) + pos->offset;
}

static unsigned int edu_pos_left(const struct edu_pos *pos)
{
	return sg_dma_len(pos->sg) - pos->offset;
}

static void edu_pos_advance(struct edu_pos *pos, unsigned int len)
{
	pos->offset += len;
	if (edu_pos_left(pos))
		return;
	pos->sg = sg_next(pos->sg);
	pos->offset = 0;
}

/* --- transfers -------------------------------------------------------------------- */

static void edu_move(struct edu_engine *edu, u64 source, u64 target, unsigned int len,
		     u32 direction)
{
	edu->moving = true;
	edu->deadline = jiffies + EDU_TIMEOUT;
	writeq(source, edu->regs + EDU_DMA_SOURCE);
	writeq(target, edu->regs + EDU_DMA_TARGET);
	writeq(len, edu->regs + EDU_DMA_COUNT);
	writel(EDU_DMA_RUN | EDU_DMA_IRQ | direction, edu->regs + EDU_DMA_COMMAND);
}

static void edu_fetch(struct edu_engine *edu, struct edu_copy *copy)
{
	copy->chunk = min3(edu_pos_left(&copy->pos_from), edu_pos_left(&copy->pos_to),
			   (unsigned int)min_t(size_t, copy->len - copy->copied, EDU_CHUNK));
	edu_move(edu, edu_pos_addr(&copy->pos_from), EDU_BUFFER, copy->chunk, 0);
}

static void edu_store(struct edu_engine *edu, struct edu_copy *copy)
{
	edu_move(edu, EDU_BUFFER, edu_pos_addr(&copy->pos_to), copy->chunk,
		 EDU_DMA_TO_MEMORY);
}

/* Ends the transfer that was under way, and determines which one is next. */
static void edu_end_move(struct edu_engine *edu, struct edu_copy *copy)
{
	edu->moving = false;
	if (edu->storing) {
		edu_pos_advance(&copy->pos_from, copy->chunk);
		edu_pos_advance(&copy->pos_to, copy->chunk);
		copy->copied += copy->chunk;
	}
	edu->storing = !edu->storing;
}

/*
 * Cuts the device off from the bus, because it may still write to the memory after that
 * has been unmapped, and given to others.
 */
static void edu_disable(struct edu_engine *edu)
{
	pci_err(edu->pdev, "DMA engine timed out, disabling it\n");
	pci_clear_master(edu->pdev);
	edu->moving = false;
	spin_lock_irq(&edu->lock);
	edu->state = max(edu->state, EDU_BROKEN);
	spin_unlock_irq(&edu->lock);
}

/* Whether a transfer is still under way. A device that is gone reads as all ones. */
static bool edu_is_busy(struct edu_engine *edu, struct edu_copy *copy)
{
	u32 command;

	if (!edu->moving)
		return false;
	command = readl(edu->regs + EDU_DMA_COMMAND);
	if (!(command & EDU_DMA_RUN))
		edu_end_move(edu, copy);
	else if (PCI_POSSIBLE_ERROR(command) || time_after_eq(jiffies, edu->deadline))
		edu_disable(edu);
	return edu->moving;
}

/* --- the work --------------------------------------------------------------------- */

static int edu_errno(enum edu_state state)
{
	static const int errnos[] = {
		[EDU_WORKS] = 0,
		[EDU_BROKEN] = -EIO,
		[EDU_REMOVED] = -ENODEV,
	};

	return errnos[state];
}

/* Returns the error with which requests end from now on, or 0. */
static int edu_get_status(struct edu_engine *edu)
{
	int ret;

	spin_lock_irq(&edu->lock);
	ret = edu_errno(edu->state);
	spin_unlock_irq(&edu->lock);
	return ret;
}

static struct edu_copy *edu_first_copy(struct edu_engine *edu)
{
	struct edu_copy *copy;

	spin_lock_irq(&edu->lock);
	copy = list_first_entry_or_null(&edu->queue, struct edu_copy, entry);
	spin_unlock_irq(&edu->lock);
	return copy;
}

static void edu_end_copy(struct edu_engine *edu, struct edu_copy *copy, int status)
{
	if (edu->mapped)
		edu_copy_unmap(edu, copy);
	edu->storing = false;
	copy->status = status;
	spin_lock_irq(&edu->lock);
	list_del(&copy->entry);
	spin_unlock_irq(&edu->lock);
	copy->done(copy);
}

/*
 * Starts the next transfer of a request. Returns false if the request has ended, with
 * @status 0 or an errno.
 */
static bool edu_begin_move(struct edu_engine *edu, struct edu_copy *copy, int *status)
{
	*status = edu_get_status(edu);
	if (!*status && !edu->mapped)
		*status = edu_copy_map(edu, copy);
	if (*status || copy->copied == copy->len)
		return false;
	if (edu->storing)
		edu_store(edu, copy);
	else
		edu_fetch(edu, copy);
	return true;
}

static void edu_work(struct work_struct *work)
{
	struct edu_engine *edu = container_of(work, struct edu_engine, work.work);
	struct edu_copy *copy;
	int status;

	while ((copy = edu_first_copy(edu)) && !edu_is_busy(edu, copy)) {
		if (edu_begin_move(edu, copy, &status))
			break;
		edu_end_copy(edu, copy, status);
	}
	/* Does nothing if the interrupt has come already, and queued the work. */
	if (edu->moving)
		queue_delayed_work(system_unbound_wq, &edu->work, EDU_TIMEOUT);
	else
		wake_up(&edu->idle);
}

/* Makes the work run, after something has happened that it must handle. Any context. */
void edu_engine_start(struct edu_engine *edu)
{
	mod_delayed_work(system_unbound_wq, &edu->work, 0);
}

void edu_engine_init(struct edu_engine *edu)
{
	kref_init(&edu->ref);
	spin_lock_init(&edu->lock);
	INIT_LIST_HEAD(&edu->queue);
	init_waitqueue_head(&edu->idle);
	INIT_DELAYED_WORK(&edu->work, edu_work);
}

static bool edu_is_idle(struct edu_engine *edu)
{
	return !edu_first_copy(edu);
}

/*
 * Ends all requests. Waits for the transfer that is under way, which cannot be cancelled,
 * or until that times out.
 */
void edu_engine_stop(struct edu_engine *edu)
{
	spin_lock_irq(&edu->lock);
	edu->state = EDU_REMOVED;
	spin_unlock_irq(&edu->lock);
	edu_engine_start(edu);
	wait_event(edu->idle, edu_is_idle(edu));
}

/* --- requests --------------------------------------------------------------------- */

/* Whether the list has at least @len bytes. */
static bool edu_list_has(const struct sg_table *sgt, size_t len)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(sgt, sg, i) {
		if (sg->length >= len)
			return true;
		len -= sg->length;
	}
	return false;
}

/**
 * edu_submit() - submit a request to copy memory
 * @edu: engine
 * @copy: what to copy, and the function to call afterwards
 *
 * Context: Any.
 * Return: 0: @copy->done will be called; -EINVAL: the length is 0, or more than the
 * lists have; -EIO: the device does not work; -ENODEV: its driver is being unbound.
 */
int edu_submit(struct edu_engine *edu, struct edu_copy *copy)
{
	unsigned long flags;
	bool first;
	int ret;

	if (!copy->len || !edu_list_has(copy->from, copy->len) ||
	    !edu_list_has(copy->to, copy->len))
		return -EINVAL;
	copy->copied = 0;
	spin_lock_irqsave(&edu->lock, flags);
	ret = edu_errno(edu->state);
	first = list_empty(&edu->queue);
	if (!ret)
		list_add_tail(&copy->entry, &edu->queue);
	/* With the lock held: once it is released, the device may be removed, and @edu freed. */
	if (!ret && first)
		edu_engine_start(edu);
	spin_unlock_irqrestore(&edu->lock, flags);
	return ret;
}
EXPORT_SYMBOL_GPL(edu_submit);

struct edu_waiter {
	struct edu_copy copy;
	struct completion done;
};

static void edu_copy_done(struct edu_copy *copy)
{
	complete(&container_of(copy, struct edu_waiter, copy)->done);
}

/**
 * edu_copy() - copy memory, and wait for it
 * @edu: engine
 * @from: what to copy
 * @to: where to copy it
 * @len: bytes
 *
 * Context: may sleep, 0.2 s for each 4 KiB, including those that are queued already.
 * Return: what edu_submit() returned, or &edu_copy.status; or the error of mapping the
 * memory for the device: -EREMOTEIO if the device has no route to the memory.
 */
int edu_copy(struct edu_engine *edu, struct sg_table *from, struct sg_table *to, size_t len)
{
	struct edu_waiter waiter = {
		.copy = {
			.from = from,
			.to = to,
			.len = len,
			.done = edu_copy_done,
		},
	};
	int ret;

	init_completion(&waiter.done);
	ret = edu_submit(edu, &waiter.copy);
	if (ret)
		return ret;
	wait_for_completion(&waiter.done);
	return waiter.copy.status;
}
EXPORT_SYMBOL_GPL(edu_copy);
