/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * PCI devices with memory for the suites about peer-to-peer DMA: ivshmem devices of QEMU,
 * which have nothing but memory, with a driver that calls hooks of the case.
 */
#ifndef KVT_P2P_RIG_H
#define KVT_P2P_RIG_H

#include <linux/pci.h>
#include <linux/sizes.h>

#include "lib/lib.h"

#define P2P_RIG_MAX	8
/* The BAR with the memory. */
#define P2P_RIG_BAR	2
/* Bytes of memory that each device has at least. */
#define P2P_RIG_SIZE	SZ_16M

/* The driver, and its devices. */
struct p2p_rig {
	int nr;		/* number of devices */
	/* The devices, of which the rig holds references while the case runs. */
	struct pci_dev *pdev[P2P_RIG_MAX];
	/* Called at the end of each probe, which returns its result; may be NULL. */
	int (*on_probe)(struct p2p_rig *rig, struct pci_dev *pdev);
	/* Called in each remove; may be NULL. */
	void (*on_remove)(struct p2p_rig *rig, struct pci_dev *pdev);
	void *arg;	/* for use by the case */
};

struct p2p_rig *p2p_rig_new(struct kunit *test, int nr);
struct p2p_rig *p2p_rig_up(struct kunit *test, int nr);
struct pci_dev *p2p_rig_provider(struct kunit *test);
void p2p_rig_unbind(struct pci_dev *pdev);
bool p2p_rig_bind(struct pci_dev *pdev);
bool p2p_rig_is_own(struct pci_dev *provider);
bool p2p_rig_can_alloc(struct pci_dev *pdev, size_t size);

#endif
