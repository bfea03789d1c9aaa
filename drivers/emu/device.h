/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of devices, and the other files of the top floor.
 */
#ifndef KVERBS_EMU_DEVICE_H
#define KVERBS_EMU_DEVICE_H

#include "lib/emu.h"

struct emu_port_config;
struct net_device;
struct pci_dev;

/* device.c */

/**
 * struct emu_device_spec - description of a device to create
 * @name: device name; %d stands for the smallest free number
 * @nr_ports: 1 to EMU_MAX_PORTS
 * @ethernet: link layer of all ports; else InfiniBand
 * @adaptive: the moderation of CQs follows their load
 * @by_link: made by netlink, and deleted so
 * @netdev: the network device of its only port, which the caller holds; or NULL: those that @ports
 *	name, in the namespace of the caller
 * @pci_parent: the PCI function that becomes its parent, or NULL
 * @ports: settings of the @nr_ports ports; only used during the creation
 */
struct emu_device_spec {
	const char *name;
	u32 nr_ports;
	bool ethernet;
	bool adaptive;
	bool by_link;
	struct net_device *netdev;
	struct pci_dev *pci_parent;
	const struct emu_port_config *ports;
};

struct emu_device *emu_device_create(const struct emu_device_spec *spec);
void emu_device_destroy(struct emu_device *edev);
struct emu_device *emu_device_new(const struct emu_device_spec *spec);
void emu_device_stop(struct emu_device *edev);
void emu_device_free(struct emu_device *edev);
int emu_device_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs);
int emu_device_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int emu_device_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
			 struct ib_udata *udata);
int emu_device_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);

/* configfs.c */
int emu_configfs_add(const struct emu_device_spec *spec, const char *pci);
int emu_configfs_init(void);
void emu_configfs_exit(void);
void emu_configfs_drop(void);

/* pci_parent.c */
int emu_pci_parent_init(void);
void emu_pci_parent_exit(void);

/* sysfs.c */
extern const struct attribute_group emu_attr_group;

/* debugfs.c */
void emu_debugfs_init(void);
void emu_debugfs_exit(void);
void emu_debugfs_add(struct emu_device *edev);
void emu_debugfs_remove(struct emu_device *edev);

#endif
