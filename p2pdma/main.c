// SPDX-License-Identifier: GPL-2.0-only
/*
 * PCI peer-to-peer DMA: connects the drivers of devices that have memory, the
 * drivers of devices that can reach it, and those who bring the two together. It
 * knows nothing of RDMA.
 */
#include <linux/module.h>

#include "p2pdma.h"

static const struct p2p_provider_hooks provider_hooks = {
	.add = p2p_sysfs_add,
	.revoke = p2p_users_revoke,
	.stop = p2p_sysfs_stop,
	.remove = p2p_sysfs_remove,
};

static int __init p2pdma_init(void)
{
	int ret = p2p_user_init();

	if (ret)
		return ret;
	p2p_provider_init(&provider_hooks);
	p2p_route_init();
	p2p_debugfs_init();
	return 0;
}

/*
 * No providers are left, because each holds the module, and no lists, because the modules
 * that made them use this one's symbols.
 */
static void __exit p2pdma_exit(void)
{
	p2p_debugfs_exit();
	p2p_user_exit();
	p2p_provider_exit();
}

module_init(p2pdma_init);
module_exit(p2pdma_exit);

MODULE_DESCRIPTION("PCI peer-to-peer DMA, on kernels with and without it");
MODULE_AUTHOR("The kverbs authors");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
