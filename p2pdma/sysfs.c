// SPDX-License-Identifier: GPL-2.0-only
/*
 * p2pmem/ of a device whose memory we manage: the same files as on kernels with
 * CONFIG_PCI_P2PDMA. Documentation/ABI/testing/sysfs-bus-pci of the kernel describes
 * their contents.
 *
 * Readers look the provider up, because the files exist before the provider does
 * and, while it is going away, until nobody else uses it. It is not freed before the
 * files are removed.
 */
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/sysfs.h>

#include "p2pdma.h"
#include "provider.h"

static ssize_t size_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct p2p_memory mem = {};

	p2p_provider_memory(to_pci_dev(dev), &mem);
	return sysfs_emit(buf, "%zu\n", mem.size);
}
static DEVICE_ATTR_RO(size);

static ssize_t available_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	struct p2p_memory mem = {};

	p2p_provider_settle(to_pci_dev(dev));
	p2p_provider_memory(to_pci_dev(dev), &mem);
	return sysfs_emit(buf, "%zu\n", mem.available);
}
static DEVICE_ATTR_RO(available);

static ssize_t published_show(struct device *dev, struct device_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%d\n", p2p_provider_is_published(to_pci_dev(dev)));
}
static DEVICE_ATTR_RO(published);

/*
 * Makes each page an allocation of its own, whose last reference is that of the
 * mapping. For pages that could not be mapped, the last reference is ours.
 */
static int allocate_map(struct pci_dev *pdev, void *addr, struct vm_area_struct *vma)
{
	unsigned long at;
	int err = 0;

	p2p_provider_split(addr, vma->vm_end - vma->vm_start);
	for (at = vma->vm_start; at < vma->vm_end; at += PAGE_SIZE, addr += PAGE_SIZE) {
		if (!err)
			err = vm_insert_page(vma, at, virt_to_page(addr));
		if (err)
			p2p_provider_free(pdev, addr, PAGE_SIZE);
		else
			put_page(virt_to_page(addr));
	}
	return err;
}

static int allocate_mmap(struct file *filp, struct kobject *kobj,
			 struct bin_attribute *attr, struct vm_area_struct *vma)
{
	struct pci_dev *pdev = to_pci_dev(kobj_to_dev(kobj));
	size_t size = vma->vm_end - vma->vm_start;
	void *addr;

	/* This is memory, not a file: offsets mean nothing, and there are no private copies. */
	if (!(vma->vm_flags & VM_MAYSHARE) || vma->vm_pgoff)
		return -EINVAL;
	addr = p2p_provider_alloc(pdev, size);
	if (!addr) {
		/* Pages that were unmapped just now may not be free yet. */
		p2p_provider_settle(pdev);
		addr = p2p_provider_alloc(pdev, size);
	}
	if (!addr)
		return -ENOMEM;
	/*
	 * Mapped in the same way as our own mapping, which depends on the type of the
	 * pages: see where the provider sets pgmap.type.
	 */
	if (!IS_ENABLED(CONFIG_PCI_P2PDMA))
		vma->vm_page_prot = pgprot_noncached(vma->vm_page_prot);
	kv_vm_flags_set(vma, VM_DONTEXPAND | VM_DONTDUMP);
	return allocate_map(pdev, addr, vma);
}

/* It has a size, because some programs map no more of a file than that. */
static struct bin_attribute bin_attr_allocate = {
	.attr = { .name = "allocate", .mode = 0600 },
	.size = SZ_1T,
	.mmap = allocate_mmap,
};

static struct attribute *p2pmem_attrs[] = {
	&dev_attr_size.attr,
	&dev_attr_available.attr,
	&dev_attr_published.attr,
	NULL
};

static struct bin_attribute *p2pmem_bin_attrs[] = {
	&bin_attr_allocate,
	NULL
};

static const struct attribute_group p2pmem_group = {
	.name = "p2pmem",
	.attrs = p2pmem_attrs,
	.bin_attrs = p2pmem_bin_attrs,
};

int p2p_sysfs_add(struct pci_dev *pdev)
{
	return sysfs_create_group(&pdev->dev.kobj, &p2pmem_group);
}

/* Unmaps all pages of user space, and prevents new mappings. Waits for a running mmap(). */
void p2p_sysfs_stop(struct pci_dev *pdev)
{
	sysfs_remove_file_from_group(&pdev->dev.kobj, &bin_attr_allocate.attr,
				     p2pmem_group.name);
}

/* Removes the files. Waits for their readers. */
void p2p_sysfs_remove(struct pci_dev *pdev)
{
	sysfs_remove_group(&pdev->dev.kobj, &p2pmem_group);
}
