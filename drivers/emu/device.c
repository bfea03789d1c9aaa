// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices and ports: what the emulated adapter says about itself.
 *
 * emu_devices_lock guards the list of devices, and with the RTNL the binding of
 * ports to network devices and the state that follows from it. It is taken inside
 * the RTNL, and not held across a call of the midlayer that may sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_addr.h>

#include "emu.h"

/* A locally administered EUI-64; device and port go into the low bytes. */
#define EMU_GUID_BASE		0x024b560000000000ULL
/* fe80::/64, the subnet prefix of a fabric without a subnet manager. */
#define EMU_SUBNET_PREFIX	0xfe80000000000000ULL
#define EMU_PKEY		0xffff
#define EMU_FW_VER		(1ULL << 32)

static LIST_HEAD(emu_devices);
static DEFINE_MUTEX(emu_devices_lock);

static struct emu_port *emu_port(struct ib_device *ibdev, u32 port_num)
{
	return &to_edev(ibdev)->ports[port_num - 1];
}

static int emu_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	if (udata && (udata->inlen || udata->outlen))
		return -EINVAL;
	*attr = (struct ib_device_attr) {
		.fw_ver = EMU_FW_VER,
		.sys_image_guid = ibdev->node_guid,
		.max_mr_size = U64_MAX,
		.page_size_cap = PAGE_SIZE,
		.max_qp = EMU_MAX_QP,
		.max_qp_wr = EMU_MAX_QP_WR,
		.device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_SYS_IMAGE_GUID |
				    IB_DEVICE_RC_RNR_NAK_GEN | IB_DEVICE_PORT_ACTIVE_EVENT,
		.kernel_cap_flags = IBK_LOCAL_DMA_LKEY,
		.max_send_sge = EMU_MAX_SGE,
		.max_recv_sge = EMU_MAX_SGE,
		.max_sge_rd = EMU_MAX_SGE,
		.max_cq = EMU_MAX_QP,
		.max_cqe = EMU_MAX_CQE,
		.cq_caps.max_cq_moderation_count = EMU_MAX_MOD_COUNT,
		.cq_caps.max_cq_moderation_period = EMU_MAX_MOD_PERIOD,
		.max_mr = (1 << (32 - EMU_KEY_SHIFT)) - 1,
		.max_pd = EMU_MAX_QP,
		.max_qp_rd_atom = EMU_MAX_RD_ATOM,
		.max_res_rd_atom = EMU_MAX_RD_ATOM * EMU_MAX_QP,
		.max_qp_init_rd_atom = EMU_MAX_RD_ATOM,
		.atomic_cap = IB_ATOMIC_NONE,
		.max_ah = INT_MAX,
		.max_fast_reg_page_list_len = EMU_MAX_PAGE_LIST,
		.max_pkeys = EMU_PKEY_TBL_LEN,
	};
	return 0;
}

static int emu_query_port(struct ib_device *ibdev, u32 port_num, struct ib_port_attr *attr)
{
	struct emu_port *port = emu_port(ibdev, port_num);
	enum ib_port_state state = READ_ONCE(port->state);

	/* The midlayer has cleared *attr and filled in what it knows. */
	attr->state = state;
	attr->phys_state = state == IB_PORT_ACTIVE ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = EMU_GID_TBL_LEN;
	attr->pkey_tbl_len = to_edev(ibdev)->ethernet ? 1 : EMU_PKEY_TBL_LEN;
	attr->max_msg_sz = EMU_MAX_MSG_SIZE;
	attr->lid = port->lid;
	attr->sm_lid = port->lid ? 1 : 0;
	attr->max_vl_num = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	return 0;
}

static enum rdma_link_layer emu_get_link_layer(struct ib_device *ibdev, u32 port_num)
{
	return to_edev(ibdev)->ethernet ? IB_LINK_LAYER_ETHERNET : IB_LINK_LAYER_INFINIBAND;
}

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
	/* Without management queue pairs there are no MADs, hence no SA and no CM. */
	if (to_edev(ibdev)->ethernet)
		immutable->core_cap_flags = RDMA_CORE_CAP_PROT_ROCE |
					    RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP |
					    RDMA_CORE_CAP_ETH_AH;
	else
		immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	return 0;
}

static int emu_query_gid(struct ib_device *ibdev, u32 port_num, int index, union ib_gid *gid)
{
	struct emu_port *port = emu_port(ibdev, port_num);

	memset(gid, 0, sizeof(*gid));
	if (!index) {
		gid->global.subnet_prefix = port->subnet_prefix;
		gid->global.interface_id = port->guid;
	}
	return 0;
}

static int emu_query_pkey(struct ib_device *ibdev, u32 port_num, u16 index, u16 *pkey)
{
	if (index >= EMU_PKEY_TBL_LEN)
		return -EINVAL;
	*pkey = index ? 0 : EMU_PKEY;
	return 0;
}

static int emu_add_gid(const struct ib_gid_attr *attr, void **context)
{
	return emu_fabric_add_gid(emu_port(attr->device, attr->port_num), &attr->gid,
				  attr->gid_type);
}

static int emu_del_gid(const struct ib_gid_attr *attr, void **context)
{
	emu_fabric_del_gid(emu_port(attr->device, attr->port_num), &attr->gid, attr->gid_type);
	return 0;
}

static void emu_get_fw_str(struct ib_device *ibdev, char *str)
{
	snprintf(str, IB_FW_VERSION_NAME_MAX, "%u.%u.%u", (u32)(ibdev->attrs.fw_ver >> 32),
		 (u32)(ibdev->attrs.fw_ver >> 16) & 0xffff, (u32)ibdev->attrs.fw_ver & 0xffff);
}

static int emu_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

static int emu_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

static int emu_modify_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	struct emu_ah *ah = container_of(ibah, struct emu_ah, ibah);

	ah->attr = *attr;
	/* The reference is the caller's. */
	ah->attr.grh.sgid_attr = NULL;
	return 0;
}

static int emu_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
			 struct ib_udata *udata)
{
	return emu_modify_ah(ibah, init->ah_attr);
}

static int emu_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	*attr = container_of(ibah, struct emu_ah, ibah)->attr;
	return 0;
}

static int emu_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}

static const struct ib_device_ops emu_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,

	.add_gid = emu_add_gid,
	.alloc_hw_port_stats = emu_alloc_port_stats,
	.alloc_mr = emu_alloc_mr,
	.alloc_pd = emu_alloc_pd,
	.create_ah = emu_create_ah,
	.create_cq = emu_create_cq,
	.create_qp = emu_create_qp,
	.dealloc_pd = emu_dealloc_pd,
	.del_gid = emu_del_gid,
	.dereg_mr = emu_dereg_mr,
	.destroy_ah = emu_destroy_ah,
	.destroy_cq = emu_destroy_cq,
	.destroy_qp = emu_destroy_qp,
	.get_dev_fw_str = emu_get_fw_str,
	.get_dma_mr = emu_get_dma_mr,
	.get_hw_stats = emu_get_stats,
	.get_link_layer = emu_get_link_layer,
	.get_port_immutable = emu_get_port_immutable,
	.map_mr_sg = emu_map_mr_sg,
	.modify_ah = emu_modify_ah,
	.modify_cq = emu_modify_cq,
	.modify_qp = emu_modify_qp,
	.peek_cq = emu_peek_cq,
	.poll_cq = emu_poll_cq,
	.post_recv = emu_post_recv,
	.post_send = emu_post_send,
	.query_ah = emu_query_ah,
	.query_device = emu_query_device,
	.query_gid = emu_query_gid,
	.query_pkey = emu_query_pkey,
	.query_port = emu_query_port,
	.query_qp = emu_query_qp,
	.req_notify_cq = emu_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, emu_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, emu_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, emu_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, emu_qp, ibqp),
};

static enum ib_port_state emu_netdev_state(const struct net_device *netdev)
{
	return netif_running(netdev) && netif_carrier_ok(netdev) ? IB_PORT_ACTIVE : IB_PORT_DOWN;
}

/* Takes over the state of the port's network device; tells the consumers if it changed. */
static void emu_port_set_state(struct emu_port *port, enum ib_port_state state)
{
	struct ib_event event = {
		.device = &port->edev->ibdev,
		.element.port_num = port->num,
		.event = state == IB_PORT_ACTIVE ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	lockdep_assert_held(&emu_devices_lock);
	if (port->state == state)
		return;
	WRITE_ONCE(port->state, state);
	/* The midlayer passes on nothing before and after the registration. */
	ib_dispatch_event(&event);
}

static void emu_port_netdev_event(struct emu_port *port, struct net_device *netdev,
				  unsigned long event)
{
	if (port->netdev != netdev)
		return;
	switch (event) {
	case NETDEV_UNREGISTER:
		/* The midlayer lets go of it too. */
		port->netdev = NULL;
		emu_port_set_state(port, IB_PORT_DOWN);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		emu_port_set_state(port, emu_netdev_state(netdev));
		break;
	}
}

/* From the network device notifier, under the RTNL. */
void emu_netdev_event(struct net_device *netdev, unsigned long event)
{
	struct emu_device *edev;
	u32 i;

	mutex_lock(&emu_devices_lock);
	list_for_each_entry(edev, &emu_devices, entry) {
		for (i = 0; i < edev->nr_ports; i++)
			emu_port_netdev_event(&edev->ports[i], netdev, event);
	}
	mutex_unlock(&emu_devices_lock);
}

static int emu_device_init_ports(struct emu_device *edev, u32 nr_ports)
{
	u32 i;
	int err;

	for (i = 0; i < nr_ports; i++) {
		struct emu_port *port = &edev->ports[i];

		port->edev = edev;
		port->num = i + 1;
		port->guid = cpu_to_be64(EMU_GUID_BASE | (u64)edev->pdev->id << 8 | port->num);
		port->subnet_prefix = cpu_to_be64(EMU_SUBNET_PREFIX);
		port->state = edev->ethernet ? IB_PORT_DOWN : IB_PORT_ACTIVE;
		port->counters = alloc_percpu(struct emu_counters);
		if (!port->counters)
			return -ENOMEM;
		edev->nr_ports++;
		if (edev->ethernet)
			continue;
		err = emu_fabric_add_lid(port);
		if (err)
			return err;
	}
	return 0;
}

/* Under the RTNL, so that the network device stays until the binding is known. */
static int emu_port_bind(struct emu_port *port, const char *name)
{
	struct net_device *netdev = __dev_get_by_name(&init_net, name);
	int err;

	if (!netdev) {
		pr_warn("there is no network device '%s' for port %u\n", name, port->num);
		return -ENODEV;
	}
	err = ib_device_set_netdev(&port->edev->ibdev, netdev, port->num);
	if (err)
		return err;
	port->netdev = netdev;
	port->state = emu_netdev_state(netdev);
	return 0;
}

/* Binds the ports to their network devices, and begins to follow those. */
static int emu_device_bind(struct emu_device *edev, const struct emu_device_spec *spec)
{
	int err = 0;
	u32 i;

	rtnl_lock();
	for (i = 0; edev->ethernet && !err && i < edev->nr_ports; i++)
		err = emu_port_bind(&edev->ports[i], spec->netdev[i]);
	mutex_lock(&emu_devices_lock);
	list_add_tail(&edev->entry, &emu_devices);
	mutex_unlock(&emu_devices_lock);
	rtnl_unlock();
	return err;
}

static void emu_device_unbind(struct emu_device *edev)
{
	mutex_lock(&emu_devices_lock);
	list_del(&edev->entry);
	mutex_unlock(&emu_devices_lock);
}

static struct emu_device *emu_device_alloc(void)
{
	const struct platform_device_info info = {
		.name = KBUILD_MODNAME,
		.id = PLATFORM_DEVID_AUTO,
		.dma_mask = DMA_BIT_MASK(64),
	};
	struct platform_device *pdev;
	struct emu_device *edev;

	pdev = platform_device_register_full(&info);
	if (IS_ERR(pdev))
		return ERR_CAST(pdev);
	edev = ib_alloc_device(emu_device, ibdev);
	if (!edev) {
		platform_device_unregister(pdev);
		return ERR_PTR(-ENOMEM);
	}
	/* Messages are copied: a segment may be as long as it likes. */
	dma_set_max_seg_size(&pdev->dev, UINT_MAX);
	edev->pdev = pdev;
	INIT_LIST_HEAD(&edev->entry);
	xa_init_flags(&edev->qps, XA_FLAGS_ALLOC);
	xa_init_flags(&edev->mrs, XA_FLAGS_ALLOC);
	return edev;
}

/* Undoes what emu_device_create() did before the registration. */
static void emu_device_free(struct emu_device *edev)
{
	struct platform_device *pdev = edev->pdev;
	u32 i;

	emu_device_unbind(edev);
	for (i = 0; i < edev->nr_ports; i++) {
		if (edev->ports[i].lid)
			emu_fabric_del_lid(&edev->ports[i]);
	}
	/* Engines of other devices may still look at our ports. */
	synchronize_rcu();
	for (i = 0; i < edev->nr_ports; i++)
		free_percpu(edev->ports[i].counters);
	/* Somebody still has objects of it: a leak is better than what follows. */
	if (WARN_ON(!xa_empty(&edev->qps) || !xa_empty(&edev->mrs)))
		return;
	xa_destroy(&edev->qps);
	xa_destroy(&edev->mrs);
	ib_dealloc_device(&edev->ibdev);
	platform_device_unregister(pdev);
}

/**
 * emu_device_create() - make and register a device
 * @spec: its name, which may hold a %d, its ports and settings
 *
 * Context: Process context.
 * Return: the device, or an ERR_PTR: -ENODEV if a network device does not exist,
 * -ENOMEM, or what ib_register_device() returned.
 */
struct emu_device *emu_device_create(const struct emu_device_spec *spec)
{
	struct emu_device *edev;
	int err;

	edev = emu_device_alloc();
	if (IS_ERR(edev))
		return edev;

	edev->ethernet = spec->ethernet;
	edev->ibdev.phys_port_cnt = spec->nr_ports;
	err = emu_device_init_ports(edev, spec->nr_ports);
	if (!err)
		err = emu_device_bind(edev, spec);
	if (err)
		goto free_device;

	edev->ibdev.node_type = RDMA_NODE_IB_CA;
	edev->ibdev.num_comp_vectors = num_possible_cpus();
	edev->ibdev.use_cq_dim = spec->adaptive;
	edev->ibdev.local_dma_lkey = EMU_LOCAL_DMA_LKEY;
	edev->ibdev.node_guid = cpu_to_be64(EMU_GUID_BASE | (u64)edev->pdev->id << 8);
	edev->ibdev.dev.parent = &edev->pdev->dev;
	strscpy(edev->ibdev.node_desc, "kverbs emulated HCA", sizeof(edev->ibdev.node_desc));
	ib_set_device_ops(&edev->ibdev, &emu_ops);

	err = ib_register_device(&edev->ibdev, spec->name, &edev->pdev->dev);
	if (err)
		goto free_device;
	return edev;

free_device:
	emu_device_free(edev);
	return ERR_PTR(err);
}

/* Unregisters the device, which ends all use of it, and frees it. Process context. */
void emu_device_destroy(struct emu_device *edev)
{
	ib_unregister_device(&edev->ibdev);
	emu_device_free(edev);
}
