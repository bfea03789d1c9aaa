/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of devices, and what else is at the top.
 */
#ifndef KVERBS_EMU_DEVICE_H
#define KVERBS_EMU_DEVICE_H

#include "lib/emu.h"

struct emu_port_config;
struct pci_dev;
struct seq_file;

/* device.c */

/**
 * struct emu_device_spec - description of a device to create
 * @name: device name; %d stands for the smallest free number
 * @nr_ports: 1 to EMU_MAX_PORTS
 * @ethernet: link layer of all ports; else InfiniBand
 * @adaptive: the moderation of CQs follows their load
 * @place: the PCI function that becomes its parent, or NULL
 * @ports: settings of the @nr_ports ports; only used during the creation
 */
struct emu_device_spec {
	const char *name;
	u32 nr_ports;
	bool ethernet;
	bool adaptive;
	struct pci_dev *place;
	const struct emu_port_config *ports;
};

struct emu_device *emu_device_create(const struct emu_device_spec *spec);
void emu_device_destroy(struct emu_device *edev);

/* ca.c */
int emu_open_ca(struct ib_ca *ibca, const void *vendor, size_t len);
void emu_close_ca(struct ib_ca *ibca);
void emu_ca_show(struct emu_device *edev, struct seq_file *s);

/* configfs.c */
int emu_configfs_add(const struct emu_device_spec *spec, const char *pci);
int emu_configfs_init(void);
void emu_configfs_exit(void);
void emu_configfs_drop(void);

/* pci_parent.c */
int emu_place_init(void);
void emu_place_exit(void);

/* sysfs.c */
extern const struct attribute_group emu_attr_group;

/* debugfs.c */
void emu_debugfs_init(void);
void emu_debugfs_exit(void);
void emu_debugfs_add(struct emu_device *edev);
void emu_debugfs_remove(struct emu_device *edev);

#endif
