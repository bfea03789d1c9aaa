/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trees of emulated PCI functions, described by a table. The PCI core scans config space
 * that is made from the table, and so handles bridges, ACS and references as it does with
 * real functions. See tree.c.
 *
 * Host bridges depend on the architecture, and only x86 is implemented: on others, cases that
 * need a tree are skipped.
 */
#ifndef KVT_P2P_TREE_H
#define KVT_P2P_TREE_H

#include <linux/pci.h>
#include <linux/sizes.h>
#include <kunit/test.h>

#define P2P_TREE_FNS	192
#define P2P_TREE_HOSTS	2
#define P2P_TREE_DOMAIN	0x6b76
/* IDs of functions that need no particular ones. */
#define P2P_TREE_VENDOR	0x6b76
#define P2P_TREE_DEVICE	0x7670
/* Size of BAR 0 of each endpoint; there is no memory behind the BAR. */
#define P2P_TREE_BAR	SZ_2M

enum p2p_kind {
	P2P_INTEGRATED,		/* an endpoint on a root bus, no PCIe */
	P2P_ROOT_PORT,
	P2P_UPSTREAM,
	P2P_DOWNSTREAM,
	P2P_ENDPOINT,
};

/* Value of p2p_fn.up for a function on the root bus of host bridge @n. */
#define P2P_HOST(n)	(-1 - (n))
/* Value of p2p_fn.acs for a function without ACS. */
#define P2P_NO_ACS	0x8000

/* A function of the table. */
struct p2p_fn {
	int up;			/* row of the bridge above, or P2P_HOST() */
	u8 devfn;		/* device and function number */
	enum p2p_kind kind;	/* kind of the function */
	u16 acs;		/* bits of ACS control after the scan, or P2P_NO_ACS */
	u16 vendor;		/* vendor ID; 0 for P2P_TREE_VENDOR */
	u16 device;		/* device ID; 0 for P2P_TREE_DEVICE */
};

struct p2p_config;
struct p2p_tree_host;

/* A tree that was scanned. */
struct p2p_tree {
	/* The function of each row, with a reference; NULL after it was removed. */
	struct pci_dev *pdev[P2P_TREE_FNS];
	int nr;				/* number of rows */
	struct p2p_config *config;	/* config space of each row */
	struct xarray places;		/* entries of @config, by bus number and devfn */
	struct p2p_tree_host *host;	/* the P2P_TREE_HOSTS host bridges */
};

#ifdef CONFIG_X86
/* The tree is removed at the end of the case, or before by p2p_tree_free(). */
struct p2p_tree *p2p_tree_new(struct kunit *test, const struct p2p_fn *fns, int nr);
void p2p_tree_free(struct kunit *test, struct p2p_tree *tree);
/* Removes a function, as a hot unplug does. */
void p2p_tree_pull(struct p2p_tree *tree, int row);
void p2p_tree_set_acs(struct p2p_tree *tree, int row, u16 acs);
/* Makes a function a provider. */
void p2p_tree_provide(struct kunit *test, struct p2p_tree *tree, int row, bool publish);

/* Whether the module under test keeps the memory of providers, rather than the kernel. */
bool p2p_tree_own(void);

/* Makes the CPU look like an AMD CPU of @family, or like one of another vendor if that is 0. */
void p2p_tree_amd(struct kunit *test, u8 family);
#else
static inline struct p2p_tree *p2p_tree_new(struct kunit *test, const struct p2p_fn *fns, int nr)
{
	kunit_skip(test, "trees of PCI functions are made on x86 only");
	return NULL;
}

static inline void p2p_tree_free(struct kunit *test, struct p2p_tree *tree) { }
static inline void p2p_tree_pull(struct p2p_tree *tree, int row) { }
static inline void p2p_tree_set_acs(struct p2p_tree *tree, int row, u16 acs) { }
static inline void p2p_tree_provide(struct kunit *test, struct p2p_tree *tree, int row,
				    bool publish) { }
static inline bool p2p_tree_own(void) { return false; }
static inline void p2p_tree_amd(struct kunit *test, u8 family) { }
#endif

#endif
