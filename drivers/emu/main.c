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

#include "memory.h"

#define EMU_MAX_PARAM_DEVICES	64

static unsigned int devices = 2;
module_param(devices, uint, 0444);
MODULE_PARM_DESC(devices, "Number of devices to create at load, 0 to 64 (default 2)");

static unsigned int ports = 1;
module_param(ports, uint, 0444);
MODULE_PARM_DESC(ports, "Ports of each InfiniBand device, 1 to 4 (default 1)");

static char *netdev[EMU_MAX_PARAM_DEVICES];
static int nr_netdevs;
module_param_array(netdev, charp, &nr_netdevs, 0444);
MODULE_PARM_DESC(netdev, "Network device for each device in turn, which makes it a one-port Ethernet (RoCE) device; empty or absent: InfiniBand");

static bool cq_dim;
module_param(cq_dim, bool, 0444);
MODULE_PARM_DESC(cq_dim, "Moderate the completion queues of the devices by their load (default no)");

static struct emu_device *emu_param_devices[EMU_MAX_PARAM_DEVICES];

static int emu_netdev_notify(struct notifier_block *nb, unsigned long event, void *info)
{
	emu_netdev_event(netdev_notifier_info_to_dev(info), event);
	return NOTIFY_DONE;
}

static struct notifier_block emu_netdev_nb = {
	.notifier_call = emu_netdev_notify,
};

static void emu_destroy_param_devices(void)
{
	int i;

	for (i = EMU_MAX_PARAM_DEVICES - 1; i >= 0; i--) {
		if (emu_param_devices[i])
			emu_device_destroy(emu_param_devices[i]);
	}
}

static int emu_create_param_device(int i)
{
	struct emu_device_spec spec = {
		.name = "emu%d",
		.nr_ports = ports,
		.adaptive = cq_dim,
	};
	struct emu_device *edev;

	if (i < nr_netdevs && netdev[i][0]) {
		spec.ethernet = true;
		spec.nr_ports = 1;
		if (strscpy(spec.netdev[0], netdev[i], IFNAMSIZ) < 0)
			return -EINVAL;
	}
	edev = emu_device_create(&spec);
	if (IS_ERR(edev))
		return PTR_ERR(edev);
	emu_param_devices[i] = edev;
	return 0;
}

static int emu_check_params(void)
{
	if (devices > EMU_MAX_PARAM_DEVICES) {
		pr_err("devices=%u: at most %d\n", devices, EMU_MAX_PARAM_DEVICES);
		return -EINVAL;
	}
	if (!ports || ports > EMU_MAX_PORTS) {
		pr_err("ports=%u: must be 1 to %d\n", ports, EMU_MAX_PORTS);
		return -EINVAL;
	}
	if (nr_netdevs > devices) {
		pr_err("netdev= names %d network devices for %u devices\n", nr_netdevs, devices);
		return -EINVAL;
	}
	return 0;
}

static int __init emu_init(void)
{
	unsigned int i;
	int err;

	err = emu_check_params();
	if (err)
		return err;
	err = emu_ram_init();
	if (err)
		return err;
	err = emu_engine_init();
	if (err)
		goto exit_ram;
	err = register_netdevice_notifier(&emu_netdev_nb);
	if (err)
		goto exit_engine;
	for (i = 0; i < devices; i++) {
		err = emu_create_param_device(i);
		if (err)
			goto destroy_devices;
	}
	err = emu_configfs_init();
	if (err)
		goto destroy_devices;
	return 0;

destroy_devices:
	emu_destroy_param_devices();
	unregister_netdevice_notifier(&emu_netdev_nb);
exit_engine:
	emu_engine_exit();
exit_ram:
	emu_ram_exit();
	return err;
}

static void __exit emu_exit(void)
{
	emu_configfs_exit();
	emu_destroy_param_devices();
	unregister_netdevice_notifier(&emu_netdev_nb);
	emu_engine_exit();
	emu_ram_exit();
}

module_init(emu_init);
module_exit(emu_exit);

MODULE_DESCRIPTION("kverbs software HCA");
MODULE_LICENSE("GPL");
