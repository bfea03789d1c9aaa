/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Directories of devices (configfs.c) and of their ports (configfs_port.c).
 */
#ifndef KVERBS_EMU_CONFIGFS_H
#define KVERBS_EMU_CONFIGFS_H

#include <linux/configfs.h>
#include <linux/list.h>
#include <linux/mutex.h>

#include "emu.h"

struct emu_config_port;

/**
 * struct emu_config - the directory of a device
 * @group: in configfs
 * @entry: on the list of devices of the module parameters
 * @name: of the device, or a pattern
 * @lock: guards all below
 * @nr_ports: ports that the device is to have
 * @adaptive: the moderation of CQs follows their load
 * @edev: the device, while it is enabled
 * @dirs: of its ports, as far as there are directories
 * @ports: what they are to be like
 */
struct emu_config {
	struct config_group group;
	struct list_head entry;
	char *name;
	struct mutex lock;
	u32 nr_ports;
	bool adaptive;
	struct emu_device *edev;
	struct emu_config_port *dirs[EMU_MAX_PORTS];
	struct emu_port_config ports[EMU_MAX_PORTS];
};

/**
 * struct emu_config_port - the directory of a port
 * @group: in configfs
 * @config: of its device; holds a reference
 * @num: port number, from 1
 */
struct emu_config_port {
	struct config_group group;
	struct emu_config *config;
	u32 num;
};

/* configfs_port.c */
struct emu_config_port *emu_config_port_new(struct emu_config *config, u32 num);

#endif
