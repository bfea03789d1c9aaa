// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_edu: driver of QEMU's edu device (1234:11e8), which is made for teaching. The
 * driver uses only its DMA engine, for peer-to-peer memory among other things. Unless
 * QEMU is told otherwise, the engine reaches only the lowest 256 MiB:
 * -device edu,dma_mask=0xffffffffffffffff
 *
 * edu_mutex guards the list of engines that are bound. An engine is freed with its last
 * reference. After the driver was unbound, edu_submit() returns -ENODEV.
 */
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "edu.h"

static LIST_HEAD(edu_engines);
static DEFINE_MUTEX(edu_mutex);

static struct edu_engine *edu_find_locked(const struct pci_dev *pdev)
{
	struct edu_engine *edu;

	lockdep_assert_held(&edu_mutex);
	list_for_each_entry(edu, &edu_engines, entry) {
		if (edu->pdev == pdev)
			return edu;
	}
	return NULL;
}

/**
 * edu_engine_get() - get the engine of a device
 * @pdev: any device
 *
 * Context: may sleep.
 * Return: the engine, with a reference, or NULL if @pdev is not bound to this driver.
 */
struct edu_engine *edu_engine_get(struct pci_dev *pdev)
{
	struct edu_engine *edu;

	mutex_lock(&edu_mutex);
	edu = edu_find_locked(pdev);
	if (edu)
		kref_get(&edu->ref);
	mutex_unlock(&edu_mutex);
	return edu;
}
EXPORT_SYMBOL_GPL(edu_engine_get);

static void edu_engine_free(struct kref *ref)
{
	kfree(container_of(ref, struct edu_engine, ref));
}

/**
 * edu_engine_put() - give a reference back
 * @edu: from edu_engine_get()
 *
 * Context: Any.
 */
void edu_engine_put(struct edu_engine *edu)
{
	kref_put(&edu->ref, edu_engine_free);
}
EXPORT_SYMBOL_GPL(edu_engine_put);

/* Without MSI, the interrupt may be another device's, with which the line is shared. */
static irqreturn_t edu_interrupt(int irq, void *data)
{
	struct edu_engine *edu = data;
	u32 status = readl(edu->regs + EDU_IRQ_STATUS);

	if (!status)
		return IRQ_NONE;
	/* A device that has gone has nothing to acknowledge, but the work must notice that. */
	if (!PCI_POSSIBLE_ERROR(status))
		writel(status, edu->regs + EDU_IRQ_ACK);
	edu_engine_start(edu);
	return IRQ_HANDLED;
}

static int edu_setup(struct pci_dev *pdev)
{
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	if (pci_resource_len(pdev, EDU_BAR) < EDU_SIZE)
		return -ENODEV;
	ret = pcim_iomap_regions(pdev, BIT(EDU_BAR), KBUILD_MODNAME);
	if (ret)
		return ret;
	ret = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (ret)
		return ret;
	/* The size of a chunk does not depend on how the memory is mapped. */
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	return 0;
}

static int edu_irq_setup(struct edu_engine *edu)
{
	struct pci_dev *pdev = edu->pdev;
	int ret;

	ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_ALL_TYPES);
	if (ret < 0)
		return ret;
	ret = request_irq(pci_irq_vector(pdev, 0), edu_interrupt, IRQF_SHARED,
			  KBUILD_MODNAME, edu);
	if (ret)
		pci_free_irq_vectors(pdev);
	return ret;
}

static void edu_irq_free(struct edu_engine *edu)
{
	free_irq(pci_irq_vector(edu->pdev, 0), edu);
	pci_free_irq_vectors(edu->pdev);
}

static int edu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct edu_engine *edu;
	int ret;

	ret = edu_setup(pdev);
	if (ret)
		return ret;
	edu = kzalloc(sizeof(*edu), GFP_KERNEL);
	if (!edu)
		return -ENOMEM;
	edu_engine_init(edu);
	edu->pdev = pdev;
	edu->regs = pcim_iomap_table(pdev)[EDU_BAR];
	if ((readl(edu->regs + EDU_ID) & EDU_ID_MASK) != EDU_ID_VALUE)
		ret = -ENODEV;
	else
		ret = edu_irq_setup(edu);
	if (ret) {
		edu_engine_put(edu);
		return ret;
	}
	pci_set_master(pdev);
	pci_set_drvdata(pdev, edu);
	mutex_lock(&edu_mutex);
	list_add(&edu->entry, &edu_engines);
	mutex_unlock(&edu_mutex);
	return 0;
}

static void edu_remove(struct pci_dev *pdev)
{
	struct edu_engine *edu = pci_get_drvdata(pdev);

	mutex_lock(&edu_mutex);
	list_del(&edu->entry);
	mutex_unlock(&edu_mutex);
	edu_engine_stop(edu);
	edu_irq_free(edu);
	/* Nothing is queued, and no interrupt can start the work again. */
	cancel_delayed_work_sync(&edu->work);
	edu_engine_put(edu);
}

static const struct pci_device_id edu_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },
	{ }
};
MODULE_DEVICE_TABLE(pci, edu_ids);

static struct pci_driver edu_driver = {
	.name = KBUILD_MODNAME,
	.id_table = edu_ids,
	.probe = edu_probe,
	.remove = edu_remove,
};
module_pci_driver(edu_driver);

MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("QEMU edu device: DMA engine for other modules");
