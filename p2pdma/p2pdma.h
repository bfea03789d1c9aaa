/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Within kverbs_p2pdma.ko. The files:
 *
 * provider.c	memory of devices, where the kernel does not keep it: pools, teardown
 * pool.c	what is free of it
 * memory.c	the calls for memory, whoever keeps it
 * sysfs.c	p2pmem/ of our providers
 * user.c	those who want to know that a provider goes
 * route.c	the way from a client to a provider
 * client.c	lists of clients: find, bind
 * map.c	scatter lists
 * debugfs.c	what is there, and who gets at what
 */
#ifndef KVERBS_P2PDMA_PRIV_H
#define KVERBS_P2PDMA_PRIV_H

#define KVERBS_P2PDMA_NO_NAMES
#include <kverbs/p2pdma.h>

extern bool p2p_own_provider;

/* Is it us who keep the memory of providers, rather than the kernel? */
static inline bool p2p_is_own(void)
{
	return !IS_ENABLED(CONFIG_PCI_P2PDMA) || p2p_own_provider;
}

/* --- provider.c: only if p2p_is_own() --- */

int p2p_provider_add(struct pci_dev *pdev, int bar, size_t size, u64 offset);
void p2p_provider_publish(struct pci_dev *pdev, bool publish);
bool p2p_provider_is_published(struct pci_dev *pdev);
void *p2p_provider_alloc(struct pci_dev *pdev, size_t size);
void p2p_provider_free(struct pci_dev *pdev, void *addr, size_t size);
pci_bus_addr_t p2p_provider_bus(struct pci_dev *pdev, void *addr);

/* --- memory.c --- */

/**
 * struct p2p_memory - what a provider has
 * @size: bytes
 * @available: of these, not allocated
 * @published: anybody may allocate
 */
struct p2p_memory {
	size_t size;
	size_t available;
	bool published;
};

/* False if @pdev is no provider. Any kernel. */
bool p2p_memory_of(struct pci_dev *pdev, struct p2p_memory *mem);
bool p2p_memory_is_there(struct pci_dev *pdev);
/* The memory BAR of @pdev with that address, or -1. */
int p2p_bar_of(struct pci_dev *pdev, phys_addr_t addr);

/*
 * All devices that provide memory, or have published it, at this moment, each with a
 * reference, in no order. Returns how many or -ENOMEM; p2p_providers_put() ends it.
 */
int p2p_providers_get(struct pci_dev ***providers, bool published);
void p2p_providers_put(struct pci_dev **providers, int nr);

/* --- user.c --- */

int p2p_user_init(void);
void p2p_user_exit(void);
void p2p_users_revoke(struct pci_dev *pdev);

/* --- route.c --- */

/* Ports from a function to its root bus; deeper trees there are not. */
#define P2P_MAX_DEPTH	32
/* Those of two functions. */
#define P2P_MAX_PORTS	(2 * P2P_MAX_DEPTH)

/**
 * struct p2p_host - a host bridge
 * @bridge: which; only to be compared
 * @vendor: of the function that stands for it; 0 if none does
 * @device: likewise
 * @bus: likewise
 * @devfn: likewise
 */
struct p2p_host {
	const struct pci_host_bridge *bridge;
	u16 vendor;
	u16 device;
	u8 bus;
	u8 devfn;
};

/**
 * struct p2p_path - a function and the bridges above it
 * @dev: the function, then its bridge, and so on; no references: whoever has the
 *	path has one to the function
 * @redirects: it redirects by ACS
 * @nr: entries
 * @host: the host bridge
 */
struct p2p_path {
	struct pci_dev *dev[P2P_MAX_DEPTH];
	bool redirects[P2P_MAX_DEPTH];
	int nr;
	struct p2p_host host;
};

void p2p_route_init(void);
void p2p_path_init(struct p2p_path *path, struct pci_dev *pdev);
void p2p_path_route(const struct p2p_path *provider, const struct p2p_path *client,
		    struct kverbs_p2pdma_route *route);
int p2p_path_use(const struct p2p_path *provider, const struct p2p_path *client,
		 struct kverbs_p2pdma_route *route);
int p2p_path_redirecting(const struct p2p_path *provider, const struct p2p_path *client,
			 struct pci_dev **ports);
/* With a reference, or NULL. */
struct pci_dev *p2p_pci_ancestor(struct device *dev);

/* --- client.c --- */

struct seq_file;
void p2p_lists_show(struct seq_file *m);
/* Is it on any list? */
bool p2p_is_client(const struct pci_dev *pdev);

/* --- debugfs.c --- */

void p2p_debugfs_init(void);
void p2p_debugfs_exit(void);

#endif
