/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Directories of devices (configfs.c) and of their ports (configfs_port.c).
 */
#ifndef KVERBS_EMU_CONFIGFS_H
#define KVERBS_EMU_CONFIGFS_H

#include <linux/configfs.h>
#include <linux/list.h>
#include <linux/mutex.h>

#include "device.h"
#include "net/net.h"

struct emu_config_port;
struct pci_dev;

/**
 * struct emu_pci_parent - the PCI function that is the parent of a device
 * @is_set: a function is set
 * @domain: PCI domain of the function
 * @bus: bus number of the function
 * @devfn: device and function number of the function
 * @pdev: the function, referenced, while the device is enabled; else NULL
 * @entry: entry on the list of parents in use; see pci_parent.c
 */
struct emu_pci_parent {
	bool is_set;
	int domain;
	u8 bus;
	u8 devfn;
	struct pci_dev *pdev;
	struct list_head entry;
};

/**
 * struct emu_config - the directory of a device
 * @group: in configfs
 * @entry: on the list of devices of the module parameters
 * @name: name of the device, or a pattern for it
 * @lock: guards all below
 * @nr_ports: number of ports of the device
 * @adaptive: the moderation of CQs follows their load
 * @pci_parent: the PCI function that is the parent of the device
 * @edev: the device, while it is enabled
 * @depended: the port whose directory the device depends on while it is enabled, or 0
 * @dirs: directories of its ports; NULL for a port without one
 * @ports: settings of the ports
 */
struct emu_config {
	struct config_group group;
	struct list_head entry;
	char *name;
	struct mutex lock;
	u32 nr_ports;
	bool adaptive;
	struct emu_pci_parent pci_parent;
	struct emu_device *edev;
	u32 depended;
	struct emu_config_port *dirs[EMU_MAX_PORTS];
	struct emu_port_config ports[EMU_MAX_PORTS];
};

/**
 * struct emu_config_port - the directory of a port
 * @group: in configfs
 * @config: configuration of its device, referenced
 * @num: port number, from 1
 */
struct emu_config_port {
	struct config_group group;
	struct emu_config *config;
	u32 num;
};

/* configfs.c */
void emu_config_evict(struct emu_config *config, const struct device *parent);

/* configfs_port.c */
struct emu_config_port *emu_config_port_new(struct emu_config *config, u32 num);

/* pci_parent.c */
int emu_pci_parent_parse(struct emu_pci_parent *parent, const char *name);
ssize_t emu_pci_parent_show(const struct emu_pci_parent *parent, char *page);
int emu_pci_parent_enter(struct emu_config *config);
void emu_pci_parent_leave(struct emu_config *config);

#endif
