// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kverbs module: what is set up before the first device is registered, and
 * taken down after the last one has gone. Users of the module hold a reference
 * on it through the symbols that they use, so at exit there are neither devices
 * nor clients.
 */
#include <linux/module.h>
#include <linux/workqueue.h>
#include <kverbs/completion.h>

#include "../cq/cq.h"
#include "contract/contract.h"
#include "device.h"
#include "port/port.h"
#include "view/view.h"

/*
 * For events and GID tables. Unregistration waits for it, perhaps in a driver
 * that must make progress for memory to become free.
 */
struct workqueue_struct *ib_core_wq;

/* Runs clients' remove methods, which may wait for any other queue. */
struct workqueue_struct *ib_unregister_wq;

static int __init kverbs_init(void)
{
	int ret = -ENOMEM;

	ib_core_wq = alloc_workqueue("kverbs", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!ib_core_wq)
		return ret;
	ib_unregister_wq = alloc_workqueue("kverbs_unregister", WQ_UNBOUND, 0);
	if (!ib_unregister_wq)
		goto err_wq;
	ret = ib_contract_init();
	if (ret)
		goto err_unregister_wq;
	ret = ib_sysfs_init();
	if (ret)
		goto err_contract;
	ret = ib_cq_init();
	if (ret)
		goto err_sysfs;
	ret = ib_roce_init(ib_core_wq, ib_event_gids_changed, ib_port_attr_changed);
	if (ret)
		goto err_cq;
	ib_defunct_init();
	ib_contract_add_source(&ib_event_handler_source);
	ib_contract_add_source(&ib_cq_pool_source);
	ib_contract_add_source(&ib_gid_source);
	ib_debugfs_init(ib_clients_show);
	return 0;

err_cq:
	ib_cq_exit();
err_sysfs:
	ib_sysfs_exit();
err_contract:
	ib_contract_exit();
err_unregister_wq:
	destroy_workqueue(ib_unregister_wq);
err_wq:
	destroy_workqueue(ib_core_wq);
	return ret;
}

static void __exit kverbs_exit(void)
{
	destroy_workqueue(ib_unregister_wq);
	ib_debugfs_exit();
	ib_roce_exit();
	ib_cq_exit();
	ib_defunct_exit();
	ib_client_exit();
	ib_device_exit();
	ib_sysfs_exit();
	ib_contract_exit();
	destroy_workqueue(ib_core_wq);
	/* Callbacks of call_rcu(), and of ib_notify_free(), are in our text. */
	rcu_barrier();
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && IS_ENABLED(CONFIG_TASKS_RCU))
		rcu_barrier_tasks();
}

module_init(kverbs_init);
module_exit(kverbs_exit);

MODULE_DESCRIPTION("RDMA midlayer: devices, clients, verbs and completion queues");
MODULE_AUTHOR("The kverbs authors");
MODULE_VERSION(KVERBS_VERSION);
MODULE_LICENSE("GPL");
/* Those who load this module by hand usually want this one next. */
MODULE_SOFTDEP("post: kverbs_ca");
