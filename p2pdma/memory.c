// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls for memory of devices, whether the kernel or provider.c manages it.
 */
#include <linux/export.h>
#include <linux/genalloc.h>
#include <linux/kernfs.h>
#include <linux/memremap.h>
#include <linux/overflow.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "p2pdma.h"
#include "provider.h"
#include "trace.h"

/* Memory gets struct pages in units of a subsection, whatever the page size of the kernel. */
#define P2P_ALIGN	((u64)SZ_2M)
#ifdef CONFIG_ZONE_DEVICE
static_assert(P2P_ALIGN == (u64)PAGES_PER_SUBSECTION << PAGE_SHIFT);
#endif

/* Whether no part of the range has struct pages yet. */
static bool range_is_free(u64 start, u64 size)
{
	struct dev_pagemap *pgmap;
	u64 at;

	for (at = start; at < start + size; at += P2P_ALIGN) {
		pgmap = get_dev_pagemap(PHYS_PFN(at), NULL);
		if (pgmap) {
			put_dev_pagemap(pgmap);
			return false;
		}
	}
	return true;
}

static bool bar_is_memory(struct pci_dev *pdev, int bar)
{
	unsigned long flags;

	if (bar < 0 || bar >= PCI_STD_NUM_BARS)
		return false;
	flags = pci_resource_flags(pdev, bar);
	return (flags & IORESOURCE_MEM) && !(flags & IORESOURCE_UNSET) &&
	       pci_resource_len(pdev, bar);
}

/* Checks what the kernel would only warn about, or would detect only halfway through. */
static int resource_check(struct pci_dev *pdev, int bar, size_t size, u64 offset)
{
	u64 end, start;

	if (!bar_is_memory(pdev, bar) || !size ||
	    check_add_overflow(offset, (u64)size, &end) ||
	    end > pci_resource_len(pdev, bar))
		return -EINVAL;
	start = pci_resource_start(pdev, bar) + offset;
	if (!IS_ALIGNED(start, P2P_ALIGN) || !IS_ALIGNED(size, P2P_ALIGN))
		return -EINVAL;
	return range_is_free(start, size) ? 0 : -EBUSY;
}

/**
 * kverbs_p2pdma_add_resource() - offer memory of a driver's device
 * @pdev: the device, which the driver is bound to, or is probing
 * @bar: number of the BAR
 * @size: bytes, a multiple of 2 MiB; 0 for all from @offset on
 * @offset: first byte, such that its address is a multiple of 2 MiB
 *
 * The memory is given struct pages. devres takes it away when the driver is unbound:
 * after the driver's remove(), and before what the driver acquired by devres before
 * this call. This waits for whatever is still allocated.
 *
 * The memory must be regular: reading it has no side effects, and what was written can
 * be read back.
 *
 * Context: Process, may sleep. The caller orders its calls for one device.
 * Return: 0; -EINVAL if it is not a memory BAR, not inside it, or not aligned; -EBUSY
 * if it, or part of it, was added before; -ENOMEM; -EOPNOTSUPP on a kernel without
 * CONFIG_ZONE_DEVICE; or what else memremap_pages() returned.
 */
int kverbs_p2pdma_add_resource(struct pci_dev *pdev, int bar, size_t size, u64 offset)
{
	int err;

	if (!size && bar_is_memory(pdev, bar) && offset < pci_resource_len(pdev, bar))
		size = pci_resource_len(pdev, bar) - offset;
	err = resource_check(pdev, bar, size, offset);
	if (!err && p2p_is_own())
		err = p2p_provider_add(pdev, bar, size, offset);
	else if (!err)
		err = pci_p2pdma_add_resource(pdev, bar, size, offset);
	trace_p2p_provider(pdev, "add", err);
	if (err)
		return err;
	if (!(pci_resource_flags(pdev, bar) & IORESOURCE_PREFETCH))
		pci_notice(pdev, "BAR %d is not prefetchable; publish it only if it behaves like memory\n",
			   bar);
	return 0;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_add_resource);

/**
 * kverbs_p2pmem_publish() - let anybody allocate a device's memory, or stop that
 * @pdev: the device; nothing happens if it has none
 * @publish: whether anybody may allocate it from now on
 *
 * Only publish regular memory: see kverbs_p2pdma_add_resource(). What has been
 * allocated stays allocated.
 *
 * Context: Any.
 */
void kverbs_p2pmem_publish(struct pci_dev *pdev, bool publish)
{
	if (p2p_is_own())
		p2p_provider_publish(pdev, publish);
	else
		pci_p2pmem_publish(pdev, publish);
	trace_p2p_provider(pdev, publish ? "publish" : "unpublish", 0);
}
EXPORT_SYMBOL_GPL(kverbs_p2pmem_publish);

/**
 * kverbs_has_p2pmem() - check whether a device has published memory
 * @pdev: the device
 *
 * Context: Any.
 * Return: true if it has.
 */
bool kverbs_has_p2pmem(struct pci_dev *pdev)
{
	if (p2p_is_own())
		return p2p_provider_is_published(pdev);
	return pci_has_p2pmem(pdev);
}
EXPORT_SYMBOL_GPL(kverbs_has_p2pmem);

/**
 * kverbs_alloc_p2pmem() - allocate memory of a device
 * @pdev: the device
 * @size: bytes; whole pages are allocated
 *
 * The memory is contiguous, and not cleared.
 *
 * Context: Any.
 * Return: the kernel address; NULL if there is not as much memory in one piece, or if
 * the device is going away, or has none.
 */
void *kverbs_alloc_p2pmem(struct pci_dev *pdev, size_t size)
{
	void *addr;

	if (p2p_is_own())
		addr = p2p_provider_alloc(pdev, size);
	else
		addr = pci_alloc_p2pmem(pdev, size);
	trace_p2p_alloc(pdev, addr, size);
	return addr;
}
EXPORT_SYMBOL_GPL(kverbs_alloc_p2pmem);

/**
 * kverbs_free_p2pmem() - free memory of a device
 * @pdev: the device
 * @addr: from kverbs_alloc_p2pmem()
 * @size: bytes, as there
 *
 * Context: Any.
 */
void kverbs_free_p2pmem(struct pci_dev *pdev, void *addr, size_t size)
{
	trace_p2p_free(pdev, addr, size);
	if (p2p_is_own())
		p2p_provider_free(pdev, addr, size);
	else
		pci_free_p2pmem(pdev, addr, size);
}
EXPORT_SYMBOL_GPL(kverbs_free_p2pmem);

/**
 * kverbs_p2pmem_virt_to_bus() - get the address of memory of a device on the bus
 * @pdev: the device
 * @addr: from kverbs_alloc_p2pmem(), or within that memory
 *
 * The address only works for devices below the same host bridge, with no redirecting
 * bridge in between: kverbs_p2pdma_map_sgtable() finds out whether that is so.
 *
 * Context: Any.
 * Return: the address on the bus; 0 if @addr is NULL.
 */
pci_bus_addr_t kverbs_p2pmem_virt_to_bus(struct pci_dev *pdev, void *addr)
{
	if (!addr)
		return 0;
	if (p2p_is_own())
		return p2p_provider_bus(pdev, addr);
	return pci_p2pmem_virt_to_bus(pdev, addr);
}
EXPORT_SYMBOL_GPL(kverbs_p2pmem_virt_to_bus);

/**
 * kverbs_p2pmem_alloc_sgl() - allocate memory of a device as a scatter list
 * @pdev: the device
 * @nents: set to the number of entries
 * @length: bytes; the list has this length even if that is not whole pages
 *
 * Context: Process, may sleep.
 * Return: the list, for kverbs_p2pmem_free_sgl(); or NULL.
 */
struct scatterlist *kverbs_p2pmem_alloc_sgl(struct pci_dev *pdev, unsigned int *nents,
					    u32 length)
{
	struct scatterlist *sg = kmalloc(sizeof(*sg), GFP_KERNEL);
	void *addr;

	if (!sg)
		return NULL;
	addr = kverbs_alloc_p2pmem(pdev, length);
	if (!addr) {
		kfree(sg);
		return NULL;
	}
	sg_init_one(sg, addr, length);
	*nents = 1;
	return sg;
}
EXPORT_SYMBOL_GPL(kverbs_p2pmem_alloc_sgl);

/**
 * kverbs_p2pmem_free_sgl() - free a scatter list and its memory
 * @pdev: the device
 * @sgl: from kverbs_p2pmem_alloc_sgl()
 *
 * Context: Any.
 */
void kverbs_p2pmem_free_sgl(struct pci_dev *pdev, struct scatterlist *sgl)
{
	kverbs_free_p2pmem(pdev, sg_virt(sgl), sgl->length);
	kfree(sgl);
}
EXPORT_SYMBOL_GPL(kverbs_p2pmem_free_sgl);

/* --- what there is ----------------------------------------------------------------- */

#ifdef CONFIG_PCI_P2PDMA
static bool kernel_keeps(struct pci_dev *pdev)
{
	return rcu_access_pointer(pdev->p2pdma);
}
#else
static bool kernel_keeps(struct pci_dev *pdev)
{
	return false;
}
#endif

bool p2p_memory_is_there(struct pci_dev *pdev)
{
	return p2p_is_own() ? p2p_provider_is_live(pdev) : kernel_keeps(pdev);
}

/*
 * Returns the number in a file of p2pmem/, or 0. These files are the only way to learn of
 * the memory that the kernel manages. They are removed with the driver's managed
 * resources, under the device's lock, which the caller holds; their show() functions check
 * whether there is memory.
 */
static size_t kernel_read_number(struct pci_dev *pdev, struct kernfs_node *dir, const char *name,
				 char *page)
{
	struct kernfs_node *node = kernfs_find_and_get_ns(dir, name, NULL);
	struct device_attribute *attr;
	unsigned long number = 0;

	if (!node)
		return 0;
	attr = container_of((struct attribute *)node->priv, struct device_attribute, attr);
	if (attr->show(&pdev->dev, attr, page) <= 0 || kstrtoul(page, 10, &number))
		number = 0;
	kernfs_put(node);
	return number;
}

static void kernel_numbers(struct pci_dev *pdev, struct p2p_memory *mem)
{
	struct kernfs_node *dir = kernfs_find_and_get_ns(pdev->dev.kobj.sd, "p2pmem", NULL);
	char *page = (char *)get_zeroed_page(GFP_KERNEL);

	if (dir && page) {
		mem->size = kernel_read_number(pdev, dir, "size", page);
		mem->available = kernel_read_number(pdev, dir, "available", page);
	}
	free_page((unsigned long)page);
	kernfs_put(dir);
}

/* Reads the numbers of a device's memory; for a device that is being unbound, there are none. */
static void kernel_read_memory(struct pci_dev *pdev, struct p2p_memory *mem)
{
	*mem = (struct p2p_memory){ .published = pci_has_p2pmem(pdev) };
	if (!device_trylock(&pdev->dev))
		return;
	/* As long as the device has a driver, the directory stays. */
	if (pdev->dev.driver)
		kernel_numbers(pdev, mem);
	device_unlock(&pdev->dev);
}

bool p2p_memory_of(struct pci_dev *pdev, struct p2p_memory *mem)
{
	if (p2p_is_own())
		return p2p_provider_memory(pdev, mem);
	if (!kernel_keeps(pdev))
		return false;
	kernel_read_memory(pdev, mem);
	return true;
}

/* As p2p_provider_list(). */
static int kernel_list_providers(struct pci_dev **list, int max, bool published)
{
	struct pci_dev *pdev = NULL;
	int nr = 0;

	for_each_pci_dev(pdev) {
		if (!(published ? pci_has_p2pmem(pdev) : kernel_keeps(pdev)))
			continue;
		if (nr < max)
			list[nr] = pci_dev_get(pdev);
		nr++;
	}
	return nr;
}

static int provider_list(struct pci_dev **list, int max, bool published)
{
	return p2p_is_own() ? p2p_provider_list(list, max, published) :
			      kernel_list_providers(list, max, published);
}

int p2p_providers_get(struct pci_dev ***providers, bool published)
{
	int max = provider_list(NULL, 0, published);

	*providers = kcalloc(max, sizeof(**providers), GFP_KERNEL);
	if (!*providers)
		return -ENOMEM;
	/* Providers that were added since the count are left out. */
	return min(provider_list(*providers, max, published), max);
}

void p2p_providers_put(struct pci_dev **providers, int nr)
{
	while (nr > 0)
		pci_dev_put(providers[--nr]);
	kfree(providers);
}

/* --- pages ------------------------------------------------------------------------- */

int p2p_bar_of(struct pci_dev *pdev, phys_addr_t addr)
{
	int bar;

	for (bar = 0; bar < PCI_STD_NUM_BARS; bar++)
		if (bar_is_memory(pdev, bar) &&
		    addr >= pci_resource_start(pdev, bar) &&
		    addr <= pci_resource_end(pdev, bar))
			return bar;
	return -1;
}

/*
 * Finds the device that a page belongs to by its address: the kernel does not tell the
 * device of a page, but the BARs of each device are known.
 */
static struct pci_dev *kernel_page_provider(struct page *page)
{
	struct pci_dev *pdev = NULL;

	for_each_pci_dev(pdev)
		if (kernel_keeps(pdev) && p2p_bar_of(pdev, page_to_phys(page)) >= 0)
			break;
	return pdev;
}

/**
 * kverbs_p2pdma_page_provider() - get the device whose memory a page is
 * @page: a page of which the caller knows that it stays, because the caller has a
 *	reference to it, or has allocated it
 *
 * Context: Process, may sleep.
 * Return: the device, with a reference; NULL if it is not a page of peer-to-peer memory.
 */
struct pci_dev *kverbs_p2pdma_page_provider(struct page *page)
{
	struct p2p_resource *res = p2p_resource_of(page);

	if (res)
		return pci_dev_get(res->provider->pdev);
	return kverbs_is_p2pdma_page(page) ? kernel_page_provider(page) : NULL;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_page_provider);
