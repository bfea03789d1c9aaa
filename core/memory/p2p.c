// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI peer-to-peer memory, for devices: memory of a provider that a process has mapped, and
 * scatter lists of such memory.
 *
 * The provider's device can be removed. Then the region is revoked, and the memory unmapped
 * and unpinned at once, even if a consumer still has the region: the provider does not wait
 * for it.
 *
 * Lock protocol: umem_lock() also guards whether the memory is held. A provider that takes
 * it away holds the lock of its device meanwhile; under umem_lock(), nothing waits for a
 * provider. The list stays until the end: if the memory is taken away while a thread makes
 * a region of it, that thread finds out when it opens the region.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/pci.h>
#include <linux/slab.h>
#include <kverbs/p2pdma.h>

#include "../contract/export.h"
#include "umem.h"

/**
 * struct umem_p2p - memory of a provider that a process has mapped
 * @umem: the memory as the device uses it
 * @user: notified when the provider goes
 * @provider: the provider, held by a reference
 * @mapped: it is pinned and mapped; under umem_lock()
 */
struct umem_p2p {
	struct ib_umem umem;
	struct kverbs_p2pdma_user user;
	struct pci_dev *provider;
	bool mapped;
};

static struct umem_p2p *to_p2p(struct ib_umem *umem)
{
	return container_of(umem, struct umem_p2p, umem);
}

/*
 * No other code touches the memory before or after, so there is nothing to hand over. Nor is it
 * ever copied to bounce buffers, so umem_check_reach() has nothing to find: addresses on the bus
 * are not the DMA layer's; dma_map_resource(), by which p2pdma maps through the host bridge,
 * fails where it would have to bounce; and so does dma_map_sgtable() for such pages, which are
 * whole, as an IOMMU wants them.
 */
#define P2P_DMA_ATTRS	DMA_ATTR_SKIP_CPU_SYNC

static void umem_p2p_unmap(struct ib_umem *umem)
{
	kverbs_p2pdma_unmap_sgtable(umem->ibdev->dma_device, &umem->sgt_append.sgt,
				    DMA_BIDIRECTIONAL, P2P_DMA_ATTRS);
}

/* Unmaps and unpins the memory, which the device does not use any more. Its list stays. */
static void umem_p2p_unmap_and_unpin(struct umem_p2p *p)
{
	struct ib_umem *umem = &p->umem;

	lockdep_assert_held(&umem->mr_lock);
	if (!p->mapped)
		return;
	p->mapped = false;
	umem_p2p_unmap(umem);
	umem_unpin_pages(umem, false);
}

static void umem_p2p_revoke(struct kverbs_p2pdma_user *user)
{
	struct umem_p2p *p = container_of(user, struct umem_p2p, user);

	umem_lock(&p->umem);
	umem_revoke(&p->umem);
	umem_p2p_unmap_and_unpin(p);
	umem_unlock(&p->umem);
}

/* p2pdma's -ENODEV means that the provider was removed: the midlayer's error is -ECANCELED. */
static int umem_p2p_error(int error)
{
	return error == -ENODEV ? -ECANCELED : error;
}

/*
 * Maps pinned memory that begins in a provider's, and asks to be notified when the provider
 * is removed.
 */
static int umem_p2p_map(struct umem_p2p *p)
{
	struct ib_umem *umem = &p->umem;
	int ret;

	p->provider = kverbs_p2pdma_page_provider(sg_page(umem->sgt_append.sgt.sgl));
	if (!p->provider)
		return -ECANCELED;
	ret = kverbs_p2pdma_map_sgtable(umem->ibdev->dma_device, &umem->sgt_append.sgt,
					DMA_BIDIRECTIONAL, P2P_DMA_ATTRS);
	if (ret)
		return umem_p2p_error(ret);
	p->mapped = true;
	/* From here on the memory may be taken away. */
	ret = kverbs_p2pdma_user_add(&p->user, p->provider);
	if (ret)
		umem_p2p_unmap(umem);
	return umem_p2p_error(ret);
}

/*
 * Gets memory of a provider that the calling process has mapped. Errors: -EOPNOTSUPP if the
 * device has no DMA addresses or cannot give it back; -ENODEV if it does not begin in such
 * memory; -ECANCELED if its provider goes; -EINVAL if not all of it is of one provider;
 * -EREMOTEIO if the device has no safe way to it; those of umem_check_access(),
 * pin_user_pages_fast() and kverbs_p2pdma_map_sgtable().
 */
struct ib_umem *umem_p2p_get(struct ib_device *device, const struct ib_mem *mem,
			     int access)
{
	struct umem_p2p *p;
	int ret;

	ret = umem_check_access(access);
	if (ret)
		return ERR_PTR(ret);
	/* The device must be able to give the memory back without waiting for the consumer. */
	if (ib_uses_virt_dma(device) || !umem_is_revocable(device))
		return ERR_PTR(-EOPNOTSUPP);
	if (!current->mm)
		return ERR_PTR(-EFAULT);
	p = kzalloc(sizeof(*p), GFP_KERNEL_ACCOUNT);
	if (!p)
		return ERR_PTR(-ENOMEM);
	umem_init(&p->umem, device, mem->start, mem->length, access);
	p->umem.is_p2p = true;
	p->user.revoke = umem_p2p_revoke;
	ret = umem_pin(&p->umem, kv_foll_p2p);
	if (ret)
		goto err_free;
	ret = umem_p2p_map(p);
	if (ret)
		goto err_unpin;
	return &p->umem;

err_unpin:
	umem_unpin(&p->umem, false);
	pci_dev_put(p->provider);
err_free:
	kfree(p);
	return ERR_PTR(ret);
}

/* The device does not use the memory any more, nor will it: give it back to its provider. */
void umem_p2p_stop(struct ib_umem *umem)
{
	umem_lock(umem);
	umem_p2p_unmap_and_unpin(to_p2p(umem));
	umem_unlock(umem);
}

void umem_p2p_release(struct ib_umem *umem)
{
	struct umem_p2p *p = to_p2p(umem);

	/* If it is being taken away, this waits until that is done. */
	kverbs_p2pdma_user_del(&p->user);
	umem_p2p_stop(umem);
	sg_free_append_table(&umem->sgt_append);
	pci_dev_put(p->provider);
	kfree(p);
}

const char *umem_p2p_provider(struct ib_umem *umem)
{
	return pci_name(to_p2p(umem)->provider);
}
IB_EXPORT_INTERNAL(umem_p2p_provider);

/* --- scatter lists ------------------------------------------------------------- */

/**
 * ib_dma_pci_p2p_dma_supported() - check whether PCI peer-to-peer memory can be mapped
 * @dev: the device
 *
 * To find out whether memory of a given provider can be mapped, call
 * pci_p2pdma_distance() with the device's DMA device.
 *
 * Context: Any.
 * Return: true if it can: the device is on the PCI bus.
 */
bool ib_dma_pci_p2p_dma_supported(struct ib_device *dev)
{
	struct device *parent = dev->dma_device;

	if (ib_uses_virt_dma(dev) || !dma_pci_p2pdma_supported(parent))
		return false;
	while (parent && !dev_is_pci(parent))
		parent = parent->parent;
	return parent;
}
EXPORT_SYMBOL(ib_dma_pci_p2p_dma_supported);

/**
 * ib_dma_device_map_sg() - map a scatter list of a device's memory
 * @dev: the device that it is mapped for, which has DMA addresses
 * @sg: the list
 * @nents: its entries
 * @direction: who writes
 * @dma_attrs: DMA_ATTR_*
 *
 * ib_dma_map_sg() and its like call this for such a device.
 *
 * Context: Process, may sleep, if it is peer-to-peer memory; else any.
 * Return: entries mapped; 0 on failure.
 */
int ib_dma_device_map_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
			 enum dma_data_direction direction, unsigned long dma_attrs)
{
	if (is_pci_p2pdma_page(sg_page(sg)))
		return kverbs_p2pdma_map_sg_attrs(dev->dma_device, sg, nents, direction,
						  dma_attrs);
	return dma_map_sg_attrs(dev->dma_device, sg, nents, direction, dma_attrs);
}
EXPORT_SYMBOL(ib_dma_device_map_sg);

/**
 * ib_dma_device_unmap_sg() - undo ib_dma_device_map_sg()
 * @dev: as before
 * @sg: the list
 * @nents: entries it had before it was mapped
 * @direction: as before
 * @dma_attrs: as before
 *
 * Context: Process, may sleep, if it is peer-to-peer memory; else any.
 */
void ib_dma_device_unmap_sg(struct ib_device *dev, struct scatterlist *sg, int nents,
			    enum dma_data_direction direction, unsigned long dma_attrs)
{
	if (is_pci_p2pdma_page(sg_page(sg)))
		kverbs_p2pdma_unmap_sg_attrs(dev->dma_device, sg, nents, direction,
					     dma_attrs);
	else
		dma_unmap_sg_attrs(dev->dma_device, sg, nents, direction, dma_attrs);
}
EXPORT_SYMBOL(ib_dma_device_unmap_sg);

/**
 * ib_dma_device_map_sgtable() - map a scatter table of a device's memory
 * @dev: the device that it is mapped for, which has DMA addresses
 * @sgt: the table; its nents is set
 * @direction: who writes
 * @dma_attrs: DMA_ATTR_*
 *
 * ib_dma_map_sgtable_attrs() calls this for such a device.
 *
 * Context: Process, may sleep, if it is peer-to-peer memory; else any.
 * Return: 0; an error of kverbs_p2pdma_map_sgtable(), such as -EREMOTEIO if the device has
 * no safe way to the memory, or of dma_map_sgtable().
 */
int ib_dma_device_map_sgtable(struct ib_device *dev, struct sg_table *sgt,
			      enum dma_data_direction direction, unsigned long dma_attrs)
{
	if (is_pci_p2pdma_page(sg_page(sgt->sgl)))
		return kverbs_p2pdma_map_sgtable(dev->dma_device, sgt, direction, dma_attrs);
	return dma_map_sgtable(dev->dma_device, sgt, direction, dma_attrs);
}
EXPORT_SYMBOL(ib_dma_device_map_sgtable);

/**
 * ib_dma_device_unmap_sgtable() - undo ib_dma_device_map_sgtable()
 * @dev: as before
 * @sgt: the table
 * @direction: as before
 * @dma_attrs: as before
 *
 * Context: Process, may sleep, if it is peer-to-peer memory; else any.
 */
void ib_dma_device_unmap_sgtable(struct ib_device *dev, struct sg_table *sgt,
				 enum dma_data_direction direction, unsigned long dma_attrs)
{
	if (is_pci_p2pdma_page(sg_page(sgt->sgl)))
		kverbs_p2pdma_unmap_sgtable(dev->dma_device, sgt, direction, dma_attrs);
	else
		dma_unmap_sgtable(dev->dma_device, sgt, direction, dma_attrs);
}
EXPORT_SYMBOL(ib_dma_device_unmap_sgtable);
