/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Devices with memory, for the suites of peer-to-peer DMA: those of QEMU's ivshmem,
 * which have nothing but memory, with a driver that does what a case says.
 */
#ifndef KVT_P2P_RIG_H
#define KVT_P2P_RIG_H

#include <linux/pci.h>
#include <linux/sizes.h>
#include <kunit/test.h>

#define P2P_RIG_MAX	8
/* Where the memory is. */
#define P2P_RIG_BAR	2
/* Cases may count on so much of it. */
#define P2P_RIG_SIZE	SZ_16M

/**
 * struct p2p_rig - the driver, and its devices
 * @nr: how many there are
 * @pdev: they, while the case runs
 * @on_probe: called at the end of each probe, which fails with what it returns; or NULL
 * @on_remove: called at the beginning of each remove; or NULL
 * @arg: for the case
 */
struct p2p_rig {
	int nr;
	struct pci_dev *pdev[P2P_RIG_MAX];
	int (*on_probe)(struct p2p_rig *rig, struct pci_dev *pdev);
	void (*on_remove)(struct p2p_rig *rig, struct pci_dev *pdev);
	void *arg;
};

struct p2p_rig *p2p_rig_new(struct kunit *test, int nr);
struct p2p_rig *p2p_rig_up(struct kunit *test, int nr);
struct pci_dev *p2p_rig_provider(struct kunit *test);
void p2p_rig_unbind(struct pci_dev *pdev);
bool p2p_rig_bind(struct pci_dev *pdev);
bool p2p_rig_is_own(struct pci_dev *provider);
bool p2p_rig_can_alloc(struct pci_dev *pdev, size_t size);

#endif
