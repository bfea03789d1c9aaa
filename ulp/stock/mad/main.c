// SPDX-License-Identifier: GPL-2.0-only
/*
 * kverbs_mad.ko: the kernel's own MAD layer, SA client, address resolution, RDMA netlink and
 * rdma_rw contexts. In the kernel they are part of ib_core; here they sit above kverbs' core,
 * which provides the rest of it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/workqueue.h>
#include <kverbs/upper.h>
#include <rdma/rw.h>

#include "core_priv.h"
#include "mad.h"
#include "sa.h"

/*
 * ib_wq - the workqueue of the users of the MAD layer
 *
 * Only the kernel's own sources use it; kverbs' core has a workqueue of its own.
 */
struct workqueue_struct *ib_wq;
EXPORT_SYMBOL_GPL(ib_wq);

unsigned int rdma_dev_net_id;

/* kverbs' devices are in the initial namespace; each namespace has a netlink socket. */
static int __net_init netlink_init(struct net *net)
{
	struct rdma_dev_net *rnet = rdma_net_to_dev_net(net);

	write_pnet(&rnet->net, net);
	return rdma_nl_net_init(rnet);
}

static void __net_exit netlink_exit(struct net *net)
{
	rdma_nl_net_exit(rdma_net_to_dev_net(net));
}

static struct pernet_operations netlink_ops = {
	.init = netlink_init,
	.exit = netlink_exit,
	.id = &rdma_dev_net_id,
	.size = sizeof(struct rdma_dev_net),
};

/* Handlers of answers from a process, which must have CAP_NET_ADMIN. */
#define FROM_ADMIN(function) { .flags = RDMA_NL_ADMIN_PERM, .doit = (function) }
static const struct rdma_nl_cbs sa_calls[RDMA_NL_LS_NUM_OPS] = {
	[RDMA_NL_LS_OP_IP_RESOLVE] = FROM_ADMIN(ib_nl_handle_ip_res_resp),
	[RDMA_NL_LS_OP_RESOLVE] = FROM_ADMIN(ib_nl_handle_resolve_resp),
	[RDMA_NL_LS_OP_SET_TIMEOUT] = FROM_ADMIN(ib_nl_handle_set_timeout),
};

static const struct ib_rw_ops rw_ops = {
	.owner = THIS_MODULE,
	.init_qp = rdma_rw_init_qp,
	.init_mrs = rdma_rw_init_mrs,
};

static const struct ib_addr_ops addr_ops = {
	.owner = THIS_MODULE,
	.find_mac = rdma_addr_find_l2_eth_by_grh,
};

static int __init kverbs_mad_init(void)
{
	int ret;

	ib_wq = alloc_workqueue("kverbs_mad", 0, 0);
	if (!ib_wq)
		return -ENOMEM;
	ib_contract_looks_up(THIS_MODULE, true);
	rdma_nl_init();
	ret = addr_init();
	if (ret)
		goto err_wq;
	ret = ib_mad_init();
	if (ret)
		goto err_addr;
	ret = ib_sa_init();
	if (ret)
		goto err_mad;
	ret = rdma_cgroup_init();
	if (ret)
		goto err_sa;
	ret = register_pernet_device(&netlink_ops);
	if (ret)
		goto err_cgroup;
	ret = monitor_init();
	if (ret)
		goto err_pernet;
	rdma_nl_register(RDMA_NL_LS, sa_calls);
	nldev_init();
	ib_set_rw_ops(&rw_ops);
	ib_set_addr_ops(&addr_ops);
	return 0;

err_pernet:
	unregister_pernet_device(&netlink_ops);
err_cgroup:
	rdma_cgroup_exit();
err_sa:
	ib_sa_cleanup();
err_mad:
	ib_mad_cleanup();
err_addr:
	addr_cleanup();
err_wq:
	destroy_workqueue(ib_wq);
	return ret;
}

static void __exit kverbs_mad_exit(void)
{
	ib_set_addr_ops(NULL);
	ib_set_rw_ops(NULL);
	nldev_exit();
	rdma_nl_unregister(RDMA_NL_LS);
	monitor_exit();
	unregister_pernet_device(&netlink_ops);
	rdma_cgroup_exit();
	ib_sa_cleanup();
	ib_mad_cleanup();
	addr_cleanup();
	rdma_nl_exit();
	destroy_workqueue(ib_wq);
	rcu_barrier();
}

module_init(kverbs_mad_init);
module_exit(kverbs_mad_exit);

MODULE_DESCRIPTION("The kernel's own RDMA management datagrams, on kverbs");
MODULE_AUTHOR("The kverbs authors");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(KVERBS_INTERNAL);
