// SPDX-License-Identifier: GPL-2.0-only
/*
 * The registry of peer memory, which connects RDMA and the drivers of devices that
 * have memory of their own. It knows nothing of RDMA, so that those drivers depend
 * on a small module which seldom changes. Both sides hold it through the symbols
 * that they use; so at exit there are neither clients nor regions.
 */
#include <linux/module.h>

#include "peer.h"

static int __init peer_mem_init(void)
{
	int ret = peer_sysfs_init();

	if (ret)
		return ret;
	peer_debugfs_init();
	return 0;
}

static void __exit peer_mem_exit(void)
{
	peer_debugfs_exit();
	peer_sysfs_exit();
}

module_init(peer_mem_init);
module_exit(peer_mem_exit);

MODULE_DESCRIPTION("Registry of peer memory clients, for RDMA to memory of other devices");
MODULE_AUTHOR("The kverbs authors");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
