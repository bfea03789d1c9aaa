// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_emu: a software HCA in memory.
 *
 * The module brings up the devices that its parameters ask for; more come and go
 * through configfs, see configfs.c.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "core.h"
#include "device.h"
#include "engine/engine.h"
#include "memory/memory.h"
#include "net/net.h"

#define EMU_MAX_PARAM_DEVICES	64

static unsigned int devices = 2;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "Devices to create at load, 0 to 64 (default: 2)");

static unsigned int ports = 1;
module_param(ports, uint, 0444);
MODULE_PARM_DESC(ports, "Ports of each InfiniBand device, 1 to 4 (default: 1)");

static char *netdev[EMU_MAX_PARAM_DEVICES];
static int nr_netdevs;
module_param_array(netdev, charp, &nr_netdevs, 0444);
MODULE_PARM_DESC(netdev, "Network devices (comma-separated), one per emulated device, of the network namespace of the process that loads the module; a device that has one has a RoCE port, the others are InfiniBand (default: none)");

static char *pci[EMU_MAX_PARAM_DEVICES];
static int nr_pcis;
module_param_array(pci, charp, &nr_pcis, 0444);
MODULE_PARM_DESC(pci, "Comma-separated PCI functions (0000:01:00.0), one per device, to be its parent; empty: no parent (default: none)");

static bool cq_dim;
module_param(cq_dim, bool, 0444);
MODULE_PARM_DESC(cq_dim, "Moderate completion queues by their load, with DIM (default: N)");

static int emu_netdev_notify(struct notifier_block *nb, unsigned long event, void *info)
{
	emu_netdev_event(netdev_notifier_info_to_dev(info), event);
	return NOTIFY_DONE;
}

static struct notifier_block emu_netdev_nb = {
	.notifier_call = emu_netdev_notify,
};

static int __init emu_create_param_device(int i, struct emu_port_config *configs)
{
	struct emu_device_spec spec = {
		.name = "emu%d",
		.nr_ports = ports,
		.adaptive = cq_dim,
		.ports = configs,
	};
	u32 port;

	for (port = 0; port < EMU_MAX_PORTS; port++)
		emu_port_config_init(&configs[port]);
	if (i < nr_netdevs && netdev[i][0]) {
		spec.ethernet = true;
		spec.nr_ports = 1;
		if (strscpy(configs[0].netdev, netdev[i], IFNAMSIZ) < 0)
			return -EINVAL;
	}
	return emu_configfs_add(&spec, i < nr_pcis ? pci[i] : "");
}

static int __init emu_create_param_devices(void)
{
	struct emu_port_config *configs;
	unsigned int i;
	int err = 0;

	configs = kcalloc(EMU_MAX_PORTS, sizeof(*configs), GFP_KERNEL);
	if (!configs)
		return -ENOMEM;
	for (i = 0; !err && i < devices; i++)
		err = emu_create_param_device(i, configs);
	kfree(configs);
	return err;
}

static int __init emu_check_params(void)
{
	if (devices > EMU_MAX_PARAM_DEVICES) {
		pr_err("devices=%u: must be at most %d\n", devices, EMU_MAX_PARAM_DEVICES);
		return -EINVAL;
	}
	if (!ports || ports > EMU_MAX_PORTS) {
		pr_err("ports=%u: must be 1 to %d\n", ports, EMU_MAX_PORTS);
		return -EINVAL;
	}
	if (nr_netdevs > devices) {
		pr_err("netdev= names %d network devices, but devices=%u; raise devices= or name fewer\n",
		       nr_netdevs, devices);
		return -EINVAL;
	}
	if (nr_pcis > devices) {
		pr_err("pci= names %d PCI functions, but devices=%u; raise devices= or name fewer\n",
		       nr_pcis, devices);
		return -EINVAL;
	}
	return 0;
}

static int __init emu_init(void)
{
	int err;

	err = emu_check_params();
	if (err)
		return err;
	err = emu_core_init();
	if (err)
		return err;
	err = emu_mcast_init();
	if (err)
		goto exit_core;
	err = emu_ram_init();
	if (err)
		goto exit_mcast;
	err = emu_engine_init();
	if (err)
		goto exit_ram;
	err = register_netdevice_notifier(&emu_netdev_nb);
	if (err)
		goto exit_engine;
	err = emu_pci_parent_init();
	if (err)
		goto drop_netdev;
	emu_debugfs_init();
	err = emu_create_param_devices();
	if (err)
		goto drop_devices;
	err = emu_core_start();
	if (err)
		goto drop_devices;
	/*
	 * Last, because whoever makes a directory holds the module: loading it
	 * must not fail after that.
	 */
	err = emu_configfs_init();
	if (err)
		goto stop_core;
	return 0;

stop_core:
	emu_core_stop();
drop_devices:
	emu_configfs_drop();
	emu_debugfs_exit();
	emu_pci_parent_exit();
drop_netdev:
	unregister_netdevice_notifier(&emu_netdev_nb);
exit_engine:
	emu_engine_exit();
exit_ram:
	emu_ram_exit();
exit_mcast:
	emu_mcast_exit();
exit_core:
	emu_core_exit();
	return err;
}

static void __exit emu_exit(void)
{
	emu_configfs_exit();
	emu_core_stop();
	emu_configfs_drop();
	emu_debugfs_exit();
	emu_pci_parent_exit();
	unregister_netdevice_notifier(&emu_netdev_nb);
	emu_engine_exit();
	emu_ram_exit();
	emu_mcast_exit();
	emu_core_exit();
}

module_init(emu_init);
module_exit(emu_exit);

MODULE_DESCRIPTION("Emulated RDMA HCA for InfiniBand and RoCE");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
