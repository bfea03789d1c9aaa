/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Internal to kverbs_p2pdma.ko. The files:
 *
 * strings.c	texts for routes
 * trace.c	the tracepoints
 * pool.c	the free part of a provider's memory
 * provider.c	memory of devices, where the kernel does not keep it: pools, teardown
 * memory.c	the calls for memory, whoever keeps it
 * route.c	the route from a client to a provider
 * sysfs.c	p2pmem/ of our providers
 * user.c	users who are notified when a provider is removed
 * client.c	lists of clients: find, bind
 * choice.c	a provider that a user chooses
 * map.c	scatter lists
 * debugfs.c	what memory there is, and who can reach it
 * main.c	the module
 *
 * A file calls only those above it in this list; scripts/layers tells.
 */
#ifndef KVERBS_P2PDMA_PRIV_H
#define KVERBS_P2PDMA_PRIV_H

#define KVERBS_P2PDMA_NO_NAMES
#include <kverbs/p2pdma.h>

/* A wait that lasts longer is logged. */
#define P2P_WARN_INTERVAL	(10 * HZ)

extern bool p2p_own_provider;

/* Whether we manage the memory of providers, rather than the kernel. */
static inline bool p2p_is_own(void)
{
	return !IS_ENABLED(CONFIG_PCI_P2PDMA) || p2p_own_provider;
}

/* --- provider.c: only if p2p_is_own() --- */

/**
 * struct p2p_provider_hooks - functions of other files, called when a provider comes or goes
 * @add: called before it has memory; returns 0, or the errno with which adding memory fails
 * @revoke: called when it is going away; tells its users
 * @stop: called after that; when it returns, user space has none of the memory, and gets no more
 * @remove: called when nobody uses the memory any more
 *
 * All may sleep; @add has its counterpart in @remove.
 */
struct p2p_provider_hooks {
	int (*add)(struct pci_dev *pdev);
	void (*revoke)(struct pci_dev *pdev);
	void (*stop)(struct pci_dev *pdev);
	void (*remove)(struct pci_dev *pdev);
};

void p2p_provider_init(const struct p2p_provider_hooks *hooks);
int p2p_provider_add(struct pci_dev *pdev, int bar, size_t size, u64 offset);
void p2p_provider_exit(void);
void p2p_provider_publish(struct pci_dev *pdev, bool publish);
bool p2p_provider_is_published(struct pci_dev *pdev);
void *p2p_provider_alloc(struct pci_dev *pdev, size_t size);
void p2p_provider_free(struct pci_dev *pdev, void *addr, size_t size);
pci_bus_addr_t p2p_provider_bus(struct pci_dev *pdev, void *addr);

/* --- memory.c --- */

/**
 * struct p2p_memory - the memory of a provider
 * @size: bytes
 * @available: bytes of it that are not allocated
 * @published: anybody may allocate it
 */
struct p2p_memory {
	size_t size;
	size_t available;
	bool published;
};

/* Fills in @mem, whoever manages the memory. Returns false if @pdev is not a provider. */
bool p2p_memory_of(struct pci_dev *pdev, struct p2p_memory *mem);
bool p2p_memory_is_there(struct pci_dev *pdev);
/* Returns the number of the memory BAR of @pdev that has @addr, or -1. */
int p2p_bar_of(struct pci_dev *pdev, phys_addr_t addr);

/*
 * Gets all devices that provide memory at this moment or, with @published, have
 * published it; each with a reference, in no particular order. Returns their number
 * or -ENOMEM; p2p_providers_put() gives them back.
 */
int p2p_providers_get(struct pci_dev ***providers, bool published);
void p2p_providers_put(struct pci_dev **providers, int nr);

/* --- sysfs.c --- */

int p2p_sysfs_add(struct pci_dev *pdev);
void p2p_sysfs_stop(struct pci_dev *pdev);
void p2p_sysfs_remove(struct pci_dev *pdev);

/* --- user.c --- */

int p2p_user_init(void);
void p2p_user_exit(void);
void p2p_users_revoke(struct pci_dev *pdev);

/* --- route.c --- */

/* Maximum number of ports from a function to its root bus; no tree is deeper. */
#define P2P_MAX_DEPTH	32
/* The same for two functions. */
#define P2P_MAX_PORTS	(2 * P2P_MAX_DEPTH)

/**
 * struct p2p_host - a host bridge
 * @bridge: the bridge; only compared, never dereferenced
 * @vendor: vendor ID of the function that stands for it; 0 if there is none
 * @device: device ID of that function
 * @bus: bus number of that function
 * @devfn: device and function number of that function
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
 * @dev: the function, then its bridge, and so on; without references: whoever has
 *	the path has a reference to the function
 * @redirects: for each entry of @dev: it redirects by ACS
 * @nr: number of entries
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
/* The PCI function that @dev is, or is below, with a reference; or NULL. */
struct pci_dev *p2p_pci_ancestor(struct device *dev);

/* --- client.c --- */

struct seq_file;
void p2p_lists_show(struct seq_file *m);
/* Whether @pdev is on any list. */
bool p2p_is_client(const struct pci_dev *pdev);

/* --- debugfs.c --- */

void p2p_debugfs_init(void);
void p2p_debugfs_exit(void);

#endif
