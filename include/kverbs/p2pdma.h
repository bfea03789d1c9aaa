/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PCI peer-to-peer DMA on kernels with and without CONFIG_PCI_P2PDMA: the calls that
 * kernels with that option have, and the lists of clients that orchestrators work with.
 * Documentation/p2pdma.rst explains providers, clients and orchestrators.
 *
 * On a kernel with CONFIG_PCI_P2PDMA, the kernel manages the memory, so that providers
 * which do not know this header are found too. Else, or with the module parameter
 * own_provider, kverbs_p2pdma.ko does. The end of this file maps the kernel's names,
 * pci_*, to ours, because the kernel itself defines some of them. Calls that the kernel
 * does not have only have a name that begins with kverbs_p2pdma_.
 */
#ifndef KVERBS_P2PDMA_H
#define KVERBS_P2PDMA_H

#include <linux/list.h>
#include <linux/memremap.h>
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/pci-p2pdma.h>
#include <linux/scatterlist.h>

/* dev_pagemap.owner of pages that kverbs_p2pdma.ko manages. */
#define KVERBS_P2PDMA_OWNER	((void *)0x6b763270UL)

/**
 * kverbs_is_p2pdma_page() - check whether a page is peer-to-peer memory
 * @page: any page
 *
 * Works on all kernels, for memory that the kernel manages and for memory that
 * kverbs_p2pdma.ko manages.
 *
 * Context: Any.
 * Return: true if it is.
 */
static inline bool kverbs_is_p2pdma_page(const struct page *page)
{
	return is_zone_device_page(page) &&
	       (page->pgmap->type == MEMORY_DEVICE_PCI_P2PDMA ||
		page->pgmap->owner == KVERBS_P2PDMA_OWNER);
}

/* --- routing ------------------------------------------------------------------- */

/* How a client accesses a provider's memory. */
enum kverbs_p2pdma_map {
	KVERBS_P2PDMA_REFUSED,		/* not at all */
	KVERBS_P2PDMA_BUS_ADDR,		/* by bus address, below the host bridge */
	KVERBS_P2PDMA_HOST_BRIDGE,	/* by host address or IOVA, through the host bridge */
};

/* The reason for that: the way of access, and what decided it. */
enum kverbs_p2pdma_why {
	KVERBS_P2PDMA_NOT_PCI,		/* refused: no PCI ancestor */
	KVERBS_P2PDMA_SAME_FUNCTION,	/* bus address: client and provider are one */
	KVERBS_P2PDMA_COMMON_BRIDGE,	/* bus address: a bridge is above both */
	KVERBS_P2PDMA_ZEN,		/* host bridge: AMD's forward requests, from Zen on */
	KVERBS_P2PDMA_LISTED,		/* host bridge: listed as forwarding such requests */
	KVERBS_P2PDMA_ACS,		/* refused: ACS redirects, host bridge not known */
	KVERBS_P2PDMA_NOT_LISTED,	/* refused: no common bridge, host bridge not known */
	KVERBS_P2PDMA_NOT_SAME_HOST,	/* refused: host bridges only forward within one */
	KVERBS_P2PDMA_BY_POLICY,	/* host bridge: not known to work, policy allows it */
	KVERBS_P2PDMA_WHYS
};

/**
 * struct kverbs_p2pdma_route - the way from a client to a provider's memory
 * @map: how the client accesses the memory
 * @why: the reason for that
 * @hops: distance, in ports passed: 0 for the same function, 2 for two functions of a
 *	slot, 4 for two slots of a switch; set even if the access is refused. -1 without
 *	a PCI ancestor
 * @acs_ports: how many of these ports, and of the common bridge, redirect because of
 *	ACS; 0 without a common bridge
 * @domain: PCI domain of @bus and @devfn
 * @has_bridge: @bus and @devfn are set
 * @bus: bus number of the first bridge that redirects, as seen from the provider; else of
 *	the common bridge; else of the device that stands for the provider's host bridge
 * @devfn: device and function number of that bridge or device
 */
struct kverbs_p2pdma_route {
	enum kverbs_p2pdma_map map;
	enum kverbs_p2pdma_why why;
	int hops;
	unsigned int acs_ports;
	int domain;
	bool has_bridge;
	u8 bus;
	u8 devfn;
};

int kverbs_p2pdma_route(struct pci_dev *provider, struct device *client,
			struct kverbs_p2pdma_route *route);
const char *kverbs_p2pdma_why_msg(enum kverbs_p2pdma_why why);
const char *kverbs_p2pdma_map_msg(enum kverbs_p2pdma_map map);

/* --- providers ----------------------------------------------------------------- */

int kverbs_p2pdma_add_resource(struct pci_dev *pdev, int bar, size_t size, u64 offset);
void kverbs_p2pmem_publish(struct pci_dev *pdev, bool publish);
bool kverbs_has_p2pmem(struct pci_dev *pdev);

/**
 * struct kverbs_p2pdma_user - a long-term user of a provider's memory
 * @revoke: called when the provider goes away: it must stop the use of the memory at
 *	once, and free the memory. Called at most once, in process context, before the
 *	provider's driver loses the device, and with that device locked: it may sleep, but
 *	must not wait for that driver
 * @provider: set by kverbs_p2pdma_user_add()
 * @entry: set by kverbs_p2pdma_user_add()
 */
struct kverbs_p2pdma_user {
	void (*revoke)(struct kverbs_p2pdma_user *user);
	struct pci_dev *provider;
	struct list_head entry;
};

int kverbs_p2pdma_user_add(struct kverbs_p2pdma_user *user, struct pci_dev *provider);
void kverbs_p2pdma_user_del(struct kverbs_p2pdma_user *user);
/* Returns the provider with a reference, for pci_dev_put(); or NULL. */
struct pci_dev *kverbs_p2pdma_page_provider(struct page *page);

/* --- orchestrators ------------------------------------------------------------- */

int kverbs_p2pdma_add_client(struct list_head *clients, struct device *dev);
void kverbs_p2pdma_remove_client(struct list_head *clients, struct device *dev);
void kverbs_p2pdma_client_list_free(struct list_head *clients);
int kverbs_p2pdma_distance(struct pci_dev *provider, struct list_head *clients, bool verbose);
bool kverbs_p2pdma_assign_provider(struct pci_dev *provider, struct list_head *clients);
struct pci_dev *kverbs_p2pmem_find(struct list_head *clients);

int kverbs_p2pdma_distance_many(struct pci_dev *provider, struct device **clients,
				int num_clients, bool verbose);
struct pci_dev *kverbs_p2pmem_find_many(struct device **clients, int num_clients);

/* For a file in sysfs or configfs by which a user chooses a provider. */
int kverbs_p2pdma_enable_store(const char *page, struct pci_dev **p2p_dev, bool *use_p2pdma);
ssize_t kverbs_p2pdma_enable_show(char *page, struct pci_dev *p2p_dev, bool use_p2pdma);

static inline int kverbs_p2pdma_distance_dev(struct pci_dev *provider, struct device *client,
					     bool verbose)
{
	return kverbs_p2pdma_distance_many(provider, &client, 1, verbose);
}

static inline struct pci_dev *kverbs_p2pmem_find_dev(struct device *client)
{
	return kverbs_p2pmem_find_many(&client, 1);
}

/* --- memory -------------------------------------------------------------------- */

void *kverbs_alloc_p2pmem(struct pci_dev *pdev, size_t size);
void kverbs_free_p2pmem(struct pci_dev *pdev, void *addr, size_t size);
pci_bus_addr_t kverbs_p2pmem_virt_to_bus(struct pci_dev *pdev, void *addr);
struct scatterlist *kverbs_p2pmem_alloc_sgl(struct pci_dev *pdev, unsigned int *nents,
					    u32 length);
void kverbs_p2pmem_free_sgl(struct pci_dev *pdev, struct scatterlist *sgl);

/* --- clients ------------------------------------------------------------------- */

int kverbs_p2pdma_map_sgtable(struct device *dev, struct sg_table *sgt,
			      enum dma_data_direction dir, unsigned long attrs);
void kverbs_p2pdma_unmap_sgtable(struct device *dev, struct sg_table *sgt,
				 enum dma_data_direction dir, unsigned long attrs);
int kverbs_p2pdma_map_sg_attrs(struct device *dev, struct scatterlist *sg, int nents,
			       enum dma_data_direction dir, unsigned long attrs);
void kverbs_p2pdma_unmap_sg_attrs(struct device *dev, struct scatterlist *sg, int nents,
				  enum dma_data_direction dir, unsigned long attrs);

/* --- the kernel's names -------------------------------------------------------- */

#ifndef KVERBS_P2PDMA_NO_NAMES
#define is_pci_p2pdma_page		kverbs_is_p2pdma_page
#define pci_p2pdma_add_resource		kverbs_p2pdma_add_resource
#define pci_p2pmem_publish		kverbs_p2pmem_publish
#define pci_has_p2pmem			kverbs_has_p2pmem
#define pci_p2pdma_add_client		kverbs_p2pdma_add_client
#define pci_p2pdma_remove_client	kverbs_p2pdma_remove_client
#define pci_p2pdma_client_list_free	kverbs_p2pdma_client_list_free
#define pci_p2pdma_assign_provider	kverbs_p2pdma_assign_provider
#define pci_p2pdma_distance_many	kverbs_p2pdma_distance_many
#define pci_p2pmem_find_many		kverbs_p2pmem_find_many
#define pci_p2pdma_enable_store		kverbs_p2pdma_enable_store
#define pci_p2pdma_enable_show		kverbs_p2pdma_enable_show
#define pci_alloc_p2pmem		kverbs_alloc_p2pmem
#define pci_free_p2pmem			kverbs_free_p2pmem
#define pci_p2pmem_virt_to_bus		kverbs_p2pmem_virt_to_bus
#define pci_p2pmem_alloc_sgl		kverbs_p2pmem_alloc_sgl
#define pci_p2pmem_free_sgl		kverbs_p2pmem_free_sgl
#define pci_p2pdma_map_sg_attrs		kverbs_p2pdma_map_sg_attrs
#define pci_p2pdma_unmap_sg_attrs	kverbs_p2pdma_unmap_sg_attrs
#define pci_p2pdma_map_sg(dev, sg, nents, dir) \
	kverbs_p2pdma_map_sg_attrs(dev, sg, nents, dir, 0)
#define pci_p2pdma_unmap_sg(dev, sg, nents, dir) \
	kverbs_p2pdma_unmap_sg_attrs(dev, sg, nents, dir, 0)

/* These take a list of clients or, as in newer kernels, a single device. */
#define kverbs_p2pdma_by_type(clients, of_list, of_device) \
	__builtin_choose_expr(__same_type(clients, struct list_head *), of_list, of_device)
#define pci_p2pdma_distance(provider, clients, verbose) \
	kverbs_p2pdma_by_type(clients, kverbs_p2pdma_distance, \
			      kverbs_p2pdma_distance_dev)(provider, clients, verbose)
#define pci_p2pmem_find(clients) \
	kverbs_p2pdma_by_type(clients, kverbs_p2pmem_find, kverbs_p2pmem_find_dev)(clients)
#endif

#endif
