// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices: what the emulated adapter reports about itself, and how devices are
 * created and destroyed. Ports are in ports.c.
 *
 * Lock protocol: @making, a rwsem, is held for reading while a queue pair or a CQ is made
 * or destroyed, and for writing by emu_device_quiesce(), which walks all of them. It is
 * taken before the locks of queue pairs and CQs. Engines, completions and timers never take
 * it, so its holder may wait for them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/rcupdate.h>
#include <linux/rwsem.h>
#include <kverbs/delay.h>
#include <rdma/ib_mad.h>

#include "core.h"
#include "device.h"
#include "engine/engine.h"
#include "lib/fault.h"
#include "lib/limits.h"
#include "memory/memory.h"
#include "memory/region.h"
#include "net/net.h"
#include "queue/cq.h"
#include "queue/qp.h"

#define EMU_FW_VER		(1ULL << 32)
#define EMU_PART_ID		1
#define EMU_HW_VER		1

#define EMU_DEVICE_CAPS							\
	(IB_DEVICE_BAD_PKEY_CNTR | IB_DEVICE_BAD_QKEY_CNTR |		\
	 IB_DEVICE_CHANGE_PHY_PORT |					\
	 IB_DEVICE_CURR_QP_STATE_MOD | IB_DEVICE_PORT_ACTIVE_EVENT |	\
	 IB_DEVICE_SYS_IMAGE_GUID | IB_DEVICE_RC_RNR_NAK_GEN |		\
	 IB_DEVICE_UD_AV_PORT_ENFORCE | IB_DEVICE_SRQ_RESIZE |		\
	 IB_DEVICE_MEM_WINDOW |						\
	 IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_MEM_WINDOW_TYPE_2B)

struct emu_pd {
	struct ib_pd ibpd;
};

static int emu_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;
	*attr = (struct ib_device_attr) {
		.fw_ver = EMU_FW_VER,
		.sys_image_guid = ibdev->node_guid,
		.max_mr_size = U64_MAX,
		.page_size_cap = EMU_PAGE_SIZES,
		.vendor_id = EMU_VENDOR_ID,
		.vendor_part_id = EMU_PART_ID,
		.hw_ver = EMU_HW_VER,
		.max_qp = EMU_MAX_QP,
		.max_qp_wr = EMU_MAX_QP_WR,
		.device_cap_flags = EMU_DEVICE_CAPS,
		.kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_BLOCK_MULTICAST_LOOPBACK,
		.max_send_sge = EMU_MAX_SGE,
		.max_recv_sge = EMU_MAX_SGE,
		.max_sge_rd = EMU_MAX_SGE,
		.max_cq = EMU_MAX_CQ,
		.max_cqe = EMU_MAX_CQE,
		.max_mr = EMU_MAX_MR,
		.max_mw = EMU_MAX_MW,
		.max_pd = EMU_MAX_PD,
		.max_qp_rd_atom = EMU_MAX_RD_ATOM,
		.max_res_rd_atom = EMU_MAX_RD_ATOM * EMU_MAX_QP,
		.max_qp_init_rd_atom = EMU_MAX_RD_ATOM,
		.atomic_cap = IB_ATOMIC_HCA,
		.max_ah = EMU_MAX_AH,
		.max_srq = EMU_MAX_SRQ,
		.max_srq_wr = EMU_MAX_SRQ_WR,
		.max_srq_sge = EMU_MAX_SGE,
		.max_mcast_grp = EMU_MAX_MCAST_GROUPS,
		.max_mcast_qp_attach = EMU_MAX_MCAST_QPS,
		.max_total_mcast_qp_attach = EMU_MAX_MCAST_QPS * EMU_MAX_MCAST_GROUPS,
		.max_fast_reg_page_list_len = EMU_MAX_PAGE_LIST,
		.max_pkeys = emu_pkey_tbl_len(to_edev(ibdev)),
		.local_ca_ack_delay = EMU_DELAY,
	};
	emu_core_query_device(to_edev(ibdev), attr);
	return 0;
}

static enum rdma_link_layer emu_get_link_layer(struct ib_device *ibdev, u32 port_num)
{
	return to_edev(ibdev)->ethernet ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

/*
 * A port has queue pair 1, but no queue pair 0: there is no subnet manager to talk to, and what
 * it would set is set in configfs.
 */
static int emu_get_port_immutable(struct ib_device *ibdev, u32 port_num,
				  struct ib_port_immutable *immutable)
{
	struct ib_port_attr attr = {};
	int err;

	err = emu_query_port(ibdev, port_num, &attr);
	if (err)
		return err;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB & ~RDMA_CORE_CAP_IB_SMI;
	if (to_edev(ibdev)->ethernet)
		immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE |
					    RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static int emu_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct emu_port *port = emu_port(attr->device, attr->port_num);
	const struct net_device *ndev;
	const struct net *net;
	struct emu_gid *entry;

	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	net = ndev ? dev_net(ndev) : NULL;
	rcu_read_unlock();
	entry = emu_fabric_add_gid(port, &attr->gid, attr->gid_type, net, ndev);
	if (IS_ERR(entry))
		return PTR_ERR(entry);
	*context = entry;
	return 0;
}

static int emu_del_gid(const struct ib_gid_attr *attr, void **context)
{
	emu_fabric_del_gid(*context);
	return 0;
}

static void emu_get_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u", (u32)(ibdev->attrs.fw_ver >> 32),
		 (u32)(ibdev->attrs.fw_ver >> 16) & 0xffff, (u32)ibdev->attrs.fw_ver & 0xffff);
}

static int emu_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct emu_device *edev = to_edev(ibpd->device);

	return emu_fault_alloc(edev) ? -ENOMEM : emu_object_get(edev, EMU_OBJECT_PD);
}

static int emu_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	emu_object_put(to_edev(ibpd->device), EMU_OBJECT_PD);
	return 0;
}

/* Creates a CQ, and lists it in @cqs for emu_device_quiesce(). */
static int emu_device_add_cq(struct emu_device *edev, struct ib_cq *ibcq,
			     const struct ib_cq_init_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	struct emu_cq *cq = to_ecq(ibcq);
	int err;

	err = emu_object_get(edev, EMU_OBJECT_CQ);
	if (err)
		return err;
	err = emu_create_cq(ibcq, attr, attrs);
	if (err)
		goto put;
	err = xa_alloc(&edev->cqs, &cq->index, cq, xa_limit_32b, GFP_KERNEL);
	if (!err)
		return 0;
	emu_destroy_cq(ibcq, NULL);
put:
	emu_object_put(edev, EMU_OBJECT_CQ);
	return err;
}

int emu_device_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs)
{
	struct emu_device *edev = to_edev(ibcq->device);
	int err;

	down_read(&edev->making);
	err = edev->quiet ? -ENODEV : emu_device_add_cq(edev, ibcq, attr, attrs);
	up_read(&edev->making);
	return err;
}

int emu_device_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct emu_device *edev = to_edev(ibcq->device);
	int err;

	down_read(&edev->making);
	xa_erase(&edev->cqs, to_ecq(ibcq)->index);
	err = emu_destroy_cq(ibcq, udata);
	up_read(&edev->making);
	emu_object_put(edev, EMU_OBJECT_CQ);
	return err;
}

int emu_device_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
			 struct ib_udata *udata)
{
	struct emu_device *edev = to_edev(ibqp->device);
	int err;

	err = emu_object_get(edev, EMU_OBJECT_QP);
	if (err)
		return err;
	down_read(&edev->making);
	err = edev->quiet ? -ENODEV : emu_create_qp(ibqp, init, udata);
	up_read(&edev->making);
	if (err)
		emu_object_put(edev, EMU_OBJECT_QP);
	return err;
}

int emu_device_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct emu_device *edev = to_edev(ibqp->device);
	int err;

	down_read(&edev->making);
	err = emu_destroy_qp(ibqp, udata);
	up_read(&edev->making);
	emu_object_put(edev, EMU_OBJECT_QP);
	return err;
}

static const struct ib_device_ops emu_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.device_group = &emu_attr_group,

	.add_gid = emu_add_gid,
	.alloc_hw_port_stats = emu_alloc_port_stats,
	.alloc_mr = emu_alloc_mr,
	.alloc_mw = emu_alloc_mw,
	.alloc_pd = emu_alloc_pd,
	.attach_mcast = emu_attach_mcast,
	.create_ah = emu_create_ah,
	.create_qp = emu_device_create_qp,
	.create_srq = emu_create_srq,
	.dealloc_mw = emu_dealloc_mw,
	.dealloc_pd = emu_dealloc_pd,
	.del_gid = emu_del_gid,
	.dereg_mr = emu_dereg_mr,
	.destroy_ah = emu_destroy_ah,
	.destroy_cq = emu_device_destroy_cq,
	.destroy_qp = emu_device_destroy_qp,
	.destroy_srq = emu_destroy_srq,
	.detach_mcast = emu_detach_mcast,
	.get_dev_fw_str = emu_get_fw_str,
	.get_dma_mr = emu_get_dma_mr,
	.get_hw_stats = emu_get_stats,
	.get_link_layer = emu_get_link_layer,
	.get_port_immutable = emu_get_port_immutable,
	.map_mr_sg = emu_map_mr_sg,
	.modify_ah = emu_modify_ah,
	.modify_qp = emu_modify_qp,
	.peek_cq = emu_peek_cq,
	.poll_cq = emu_poll_cq,
	.post_recv = emu_post_recv,
	.post_send = emu_post_send,
	.post_srq_recv = emu_post_srq_recv,
	.query_ah = emu_query_ah,
	.query_device = emu_query_device,
	.query_gid = emu_query_gid,
	.query_pkey = emu_query_pkey,
	.query_port = emu_query_port,
	.query_qp = emu_query_qp,
	.query_srq = emu_query_srq,
	.resize_cq = emu_resize_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, emu_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, emu_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_mw, emu_mw, ibmw),
	INIT_RDMA_OBJ_SIZE(ib_pd, emu_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, emu_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, emu_srq, ibsrq),
};

/* Methods that concern subnet management, which Ethernet does not have. */
static const struct ib_device_ops emu_ib_ops = {
	.modify_port = emu_modify_port,
	.process_mad = emu_process_mad,
};

static struct emu_device *emu_device_alloc(const struct emu_device_spec *spec)
{
	const struct platform_device_info info = {
		.parent = spec->pci_parent ? &spec->pci_parent->dev : NULL,
		.name = KBUILD_MODNAME,
		.id = PLATFORM_DEVID_AUTO,
		.dma_mask = DMA_BIT_MASK(64),
	};
	struct platform_device *pdev;
	struct emu_device *edev;

	pdev = platform_device_register_full(&info);
	if (IS_ERR(pdev))
		return ERR_CAST(pdev);
	/*
	 * The HCA reads and writes memory by a CPU. On a device that is not coherent, the DMA API
	 * would invalidate the cache lines of a buffer when it is unmapped, and lose what the HCA
	 * has written. The flag shares a word with flags that the device lock guards.
	 */
	device_lock(&pdev->dev);
	kv_set_dma_coherent(&pdev->dev);
	device_unlock(&pdev->dev);
	edev = NULL;
	if (!WARN_ON_ONCE(!emu_ram_reached_by(&pdev->dev)))
		edev = ib_alloc_device(emu_device, ibdev);
	if (!edev) {
		platform_device_unregister(pdev);
		return ERR_PTR(-ENOMEM);
	}
	/* Messages are copied, so segments may have any length. */
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	edev->pdev = pdev;
	edev->ethernet = spec->ethernet;
	edev->by_link = spec->by_link;
	init_rwsem(&edev->making);
	xa_init_flags(&edev->cqs, XA_FLAGS_ALLOC);
	xa_init_flags(&edev->qps, XA_FLAGS_ALLOC);
	xa_init_flags(&edev->keys, XA_FLAGS_ALLOC);
	xa_init_flags(&edev->cas, XA_FLAGS_ALLOC);
	emu_p2p_init(edev);

	edev->ibdev.node_type = RDMA_NODE_IB_CA;
	edev->ibdev.phys_port_cnt = spec->nr_ports;
	edev->ibdev.num_comp_vectors = num_possible_cpus();
	edev->ibdev.use_cq_dim = spec->adaptive;
	edev->ibdev.local_dma_lkey = EMU_LOCAL_DMA_LKEY;
	edev->ibdev.node_guid = cpu_to_be64(EMU_GUID_BASE | (u64)pdev->id << 8);
	edev->ibdev.dev.parent = &pdev->dev;
	strscpy(edev->ibdev.node_desc, "kverbs software HCA", sizeof(edev->ibdev.node_desc));
	/* ib_set_device_ops() keeps a method that is set already, so those of the core go first. */
	emu_core_setup(&edev->ibdev);
	ib_set_device_ops(&edev->ibdev, &emu_ops);
	if (!spec->ethernet)
		ib_set_device_ops(&edev->ibdev, &emu_ib_ops);
	return edev;
}

static int emu_device_init_ports(struct emu_device *edev, const struct emu_device_spec *spec)
{
	int err = 0;

	while (!err && edev->nr_ports < spec->nr_ports) {
		const struct emu_port_config *config = &spec->ports[edev->nr_ports];
		struct emu_port *port = &edev->ports[edev->nr_ports];

		port->edev = edev;
		port->num = ++edev->nr_ports;
		port->transport = &emu_in_memory;
		err = emu_port_init(port, config);
		if (!err && spec->netdev)
			err = emu_port_bind_netdev(port, spec->netdev);
		else if (!err && edev->ethernet)
			err = emu_port_set_netdev(port, current->nsproxy->net_ns, config->netdev);
	}
	return err;
}

static void emu_device_quiesce_gsi(struct emu_device *edev)
{
	struct emu_qp *qp;
	u32 i;

	for (i = 0; i < edev->nr_ports; i++) {
		qp = rcu_dereference_protected(edev->ports[i].gsi, lockdep_is_held(&edev->making));
		if (qp)
			emu_qp_abandon(qp);
	}
}

/*
 * Stops the objects that somebody has left on the device. They stay in memory, and the midlayer
 * calls none of our methods for them any more once the device is freed. But a queue pair has
 * timers for its retries, and a CQ has one for a deferred notification: these must not run once
 * the ports, or this module, are gone.
 *
 * Clients have returned from remove() and handles are closed, so whoever still has an object
 * breaks the rules. Such a client may even be destroying the object, or making another one, right
 * now, and must not crash us by that. So @making excludes both during the walk: the objects that
 * it finds stay until it is over; an object that is destroyed later was stopped here, and is only
 * freed; and @quiet makes the creation of others fail, because nobody would stop them.
 */
static void emu_device_quiesce(struct emu_device *edev)
{
	struct emu_qp *qp;
	struct emu_cq *cq;
	unsigned long i;

	down_write(&edev->making);
	edev->quiet = true;
	xa_for_each(&edev->qps, i, qp) {
		kverbs_delay("emu_quiesce_qp");
		emu_qp_abandon(qp);
	}
	emu_device_quiesce_gsi(edev);
	xa_for_each(&edev->cqs, i, cq) {
		kverbs_delay("emu_quiesce_cq");
		emu_cq_moderation_exit(cq);
	}
	up_write(&edev->making);
	kverbs_delay("emu_quiesced");
}

/**
 * emu_device_stop() - end all activity of a device, and free what it holds
 * @edev: a device that is not registered, or not any more
 *
 * Context: Process.
 */
void emu_device_stop(struct emu_device *edev)
{
	u32 i;

	/*
	 * This comes first, because a queue pair that was left behind may still trigger a fault
	 * that takes a port down, or start the search for a route to P2P memory.
	 */
	emu_device_quiesce(edev);
	emu_faults_stop(edev);
	emu_p2p_exit(edev);
	for (i = 0; i < edev->nr_ports; i++)
		emu_port_exit(&edev->ports[i]);
	emu_core_release(edev);
	/*
	 * Engines of other devices may still be reading our ports, under RCU. Expedited, because a
	 * thousand devices may be destroyed one after the other.
	 */
	synchronize_rcu_expedited();
	for (i = 0; i < edev->nr_ports; i++)
		free_percpu(edev->ports[i].counters);
	xa_destroy(&edev->cqs);
	xa_destroy(&edev->qps);
	xa_destroy(&edev->keys);
	xa_destroy(&edev->cas);
	emu_faults_destroy(edev);
}

/**
 * emu_device_free() - undo emu_device_new()
 * @edev: a device that is not registered, or not any more
 *
 * Context: Process.
 */
void emu_device_free(struct emu_device *edev)
{
	struct platform_device *pdev = edev->pdev;

	emu_device_stop(edev);
	ib_dealloc_device(&edev->ibdev);
	platform_device_unregister(pdev);
}

/**
 * emu_device_new() - make a device, which is not registered yet
 * @spec: its ports and settings
 *
 * Context: Process context.
 * Return: the device, or an ERR_PTR: -ENODEV if a network device does not exist,
 * -EBUSY if another port has the LID or the network device, -EINVAL for settings that a port of
 * this link layer cannot have, or -ENOMEM.
 */
struct emu_device *emu_device_new(const struct emu_device_spec *spec)
{
	struct emu_device *edev;
	int err;

	edev = emu_device_alloc(spec);
	if (IS_ERR(edev))
		return edev;
	err = emu_faults_create(edev);
	if (!err)
		err = emu_device_init_ports(edev, spec);
	if (err) {
		emu_device_free(edev);
		return ERR_PTR(err);
	}
	return edev;
}

/**
 * emu_device_create() - make and register a device
 * @spec: its name, which may hold a %d, its ports and settings
 *
 * Context: Process context.
 * Return: the device, or an ERR_PTR: what emu_device_new() or ib_register_device() returned.
 */
struct emu_device *emu_device_create(const struct emu_device_spec *spec)
{
	struct emu_device *edev;
	int err;
	u32 i;

	edev = emu_device_new(spec);
	if (IS_ERR(edev))
		return edev;
	err = emu_core_register(edev, spec->name);
	if (err) {
		emu_device_free(edev);
		return ERR_PTR(err);
	}
	/* Only now, because the ports have just begun to receive MADs. */
	for (i = 0; i < edev->nr_ports; i++)
		emu_port_announce_sm(&edev->ports[i]);
	emu_debugfs_add(edev);
	return edev;
}

/* Unregisters the device, which ends all use of it, and frees it. Process context. */
void emu_device_destroy(struct emu_device *edev)
{
	emu_debugfs_remove(edev);
	emu_core_unregister(edev);
	emu_device_free(edev);
}
