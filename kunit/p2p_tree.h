/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trees of PCI functions that are not there: a table says what is where, and the
 * kernel's own PCI core scans it, through config space made of the table. So what it
 * makes of bridges, ACS and references is what it makes of real ones. x86 only, as
 * host bridges are the architecture's. See p2p_tree.c.
 */
#ifndef KVT_P2P_TREE_H
#define KVT_P2P_TREE_H

#include <linux/pci.h>
#include <linux/sizes.h>
#include <kunit/test.h>

#define P2P_TREE_FNS	192
#define P2P_TREE_HOSTS	2
#define P2P_TREE_DOMAIN	0x6b76
/* Ids of what is not to be known by its ids. */
#define P2P_TREE_VENDOR	0x6b76
#define P2P_TREE_DEVICE	0x7670
/* Each endpoint has memory of this size as BAR 0; nothing is behind it. */
#define P2P_TREE_BAR	SZ_2M

enum p2p_kind {
	P2P_INTEGRATED,		/* an endpoint on a root bus, no PCIe */
	P2P_ROOT_PORT,
	P2P_UPSTREAM,
	P2P_DOWNSTREAM,
	P2P_ENDPOINT,
};

/* Instead of a row: on the root bus of a host bridge. */
#define P2P_HOST(n)	(-1 - (n))
/* Instead of bits: the function has no ACS. */
#define P2P_NO_ACS	0x8000

/**
 * struct p2p_fn - a function of the table
 * @up: row of the bridge above; or P2P_HOST()
 * @devfn: its place on the bus
 * @kind: what it is
 * @acs: bits that its ACS control has after the scan; P2P_NO_ACS
 * @vendor: 0: P2P_TREE_VENDOR
 * @device: likewise
 */
struct p2p_fn {
	int up;
	u8 devfn;
	enum p2p_kind kind;
	u16 acs;
	u16 vendor;
	u16 device;
};

struct p2p_config;
struct p2p_tree;

/**
 * struct p2p_tree_host - a host bridge of a tree
 * @bus: its root bus; NULL if nothing is on it
 * @sysdata: what the architecture wants to know of it
 * @tree: whose it is
 * @buses: numbers of its buses
 */
struct p2p_tree_host {
	struct pci_bus *bus;
	struct pci_sysdata sysdata;
	struct p2p_tree *tree;
	struct resource buses;
};

/**
 * struct p2p_tree - a tree that is there
 * @pdev: the function of each row, with a reference; NULL once it was removed
 * @nr: rows
 * @config: config space of each row
 * @places: the same, by bus number and devfn
 * @host: the host bridges
 */
struct p2p_tree {
	struct pci_dev *pdev[P2P_TREE_FNS];
	int nr;
	struct p2p_config *config;
	struct xarray places;
	struct p2p_tree_host host[P2P_TREE_HOSTS];
};

/* Removed at the end of the case, unless that was done before. */
struct p2p_tree *p2p_tree_new(struct kunit *test, const struct p2p_fn *fns, int nr);
void p2p_tree_free(struct kunit *test, struct p2p_tree *tree);
/* As if the function were pulled. */
void p2p_tree_pull(struct p2p_tree *tree, int row);
void p2p_tree_set_acs(struct p2p_tree *tree, int row, u16 acs);
/* Makes a function a provider. */
void p2p_tree_provide(struct kunit *test, struct p2p_tree *tree, int row, bool publish);

/* Does the module under test keep the memory, rather than the kernel? */
bool p2p_tree_own(void);

/* The processor is taken for one of AMD's of this family; for none of AMD's: 0. */
void p2p_tree_amd(struct kunit *test, u8 family);

#endif
