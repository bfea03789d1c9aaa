// SPDX-License-Identifier: GPL-2.0-only
/*
 * The image of a channel adapter: the answer to QUERY_CA, ready to be copied.
 * Behind the attributes of the CA, each port has its position, which holds a
 * complete answer to QUERY_PORT: attributes, GID table, P_Key table.
 *
 * Lock protocol: an image never changes; a new one replaces it as a whole. image_lock, a
 * mutex, admits one refresh at a time, so that the newest reading wins. Methods of the
 * driver run under it, and may take RTNL: so it is never taken under RTNL or
 * ib_registry_lock. Plain queries of the kernel copy under RCU, in any context. A copy to a
 * user's buffer may fault and wait for a long time: it holds a reference. ca_device.image
 * has one, too; the last put frees the image after a grace period.
 *
 * Network namespaces: what belongs to a network device is visible only in the namespace of
 * that network device: entries of GID tables, and the interface index of a port. An image
 * lists its secrets by position. Readers in other namespaces get zeros there, and no byte
 * of a secret is ever in their buffer. A namespace is identified by its cookie, which is
 * never 0 and never reused.
 */
#include <linux/mm.h>
#include <linux/netdevice.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <kverbs/delay.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>

#include "../port/port.h"
#include "ca.h"

/* Version and size, which begin every answer. */
#define CA_LEADING	offsetof(struct kverbs_ca_attr, attr_size)
/* Each structure in an image starts at a multiple of this. */
#define CA_ALIGN	sizeof(u64)

/* Flags that have a meaning in this version; others may get one later. */
#define CA_CAP_FLAGS							\
	(KVERBS_CA_CAP_RESIZE_MAX_WR | KVERBS_CA_CAP_BAD_PKEY_CNTR |	\
	 KVERBS_CA_CAP_BAD_QKEY_CNTR | KVERBS_CA_CAP_RAW_MULTI |	\
	 KVERBS_CA_CAP_AUTO_PATH_MIG | KVERBS_CA_CAP_CHANGE_PHY_PORT |	\
	 KVERBS_CA_CAP_UD_AV_PORT_ENFORCE |				\
	 KVERBS_CA_CAP_CURR_QP_STATE_MOD | KVERBS_CA_CAP_SHUTDOWN_PORT | \
	 KVERBS_CA_CAP_PORT_ACTIVE_EVENT | KVERBS_CA_CAP_SYS_IMAGE_GUID | \
	 KVERBS_CA_CAP_RC_RNR_NAK_GEN | KVERBS_CA_CAP_SRQ_RESIZE |	\
	 KVERBS_CA_CAP_N_NOTIFY_CQ | KVERBS_CA_CAP_MEM_WINDOW |		\
	 KVERBS_CA_CAP_UD_IP_CSUM | KVERBS_CA_CAP_XRC |			\
	 KVERBS_CA_CAP_MEM_MGT_EXTENSIONS |				\
	 KVERBS_CA_CAP_MEM_WINDOW_TYPE_2A |				\
	 KVERBS_CA_CAP_MEM_WINDOW_TYPE_2B)

/**
 * struct ca_secret - bytes of an image that belong to one namespace
 * @net: cookie of the namespace
 * @offset: where they are in the image
 * @len: how many; at most the size of a struct kverbs_ca_gid
 */
struct ca_secret {
	u64 net;
	u32 offset;
	u32 len;
};

/**
 * struct ca_port_pos - where a port is in an image
 * @offset: where its attributes begin
 * @secret: index of the first of its secrets
 */
struct ca_port_pos {
	u32 offset;
	u32 secret;
};

/**
 * struct ca_image - an answer to QUERY_CA
 * @rcu: freed after a grace period
 * @refs: one of ca_device.image, and one of each reader that may fault
 * @first_port: number of the first port
 * @nr_ports: number of ports
 * @nr_secrets: entries of @secrets
 * @mixed: there are secrets of more than one namespace
 * @net: cookie of the secrets' namespace, unless @mixed; 0: no secrets
 * @positions: positions of the ports, by port number minus @first_port; an extra one at the end
 * @secrets: in the order of their positions
 * @size: bytes of @data
 * @data: the answer
 */
struct ca_image {
	struct rcu_head rcu;
	refcount_t refs;
	u32 first_port;
	u32 nr_ports;
	u32 nr_secrets;
	bool mixed;
	u64 net;
	struct ca_port_pos *positions;
	struct ca_secret *secrets;
	u32 size;
	u8 data[] __aligned(CA_ALIGN);
};

#define CA_SAME(ours, verbs) \
	BUILD_BUG_ON((u64)(KVERBS_CA_##ours) != (u64)(verbs))

static void check_cap_flags(void)
{
	CA_SAME(CAP_RESIZE_MAX_WR, IB_DEVICE_RESIZE_MAX_WR);
	CA_SAME(CAP_BAD_PKEY_CNTR, IB_DEVICE_BAD_PKEY_CNTR);
	CA_SAME(CAP_BAD_QKEY_CNTR, IB_DEVICE_BAD_QKEY_CNTR);
	CA_SAME(CAP_RAW_MULTI, IB_DEVICE_RAW_MULTI);
	CA_SAME(CAP_AUTO_PATH_MIG, IB_DEVICE_AUTO_PATH_MIG);
	CA_SAME(CAP_CHANGE_PHY_PORT, IB_DEVICE_CHANGE_PHY_PORT);
	CA_SAME(CAP_UD_AV_PORT_ENFORCE, IB_DEVICE_UD_AV_PORT_ENFORCE);
	CA_SAME(CAP_CURR_QP_STATE_MOD, IB_DEVICE_CURR_QP_STATE_MOD);
	CA_SAME(CAP_SHUTDOWN_PORT, IB_DEVICE_SHUTDOWN_PORT);
	CA_SAME(CAP_PORT_ACTIVE_EVENT, IB_DEVICE_PORT_ACTIVE_EVENT);
	CA_SAME(CAP_SYS_IMAGE_GUID, IB_DEVICE_SYS_IMAGE_GUID);
	CA_SAME(CAP_RC_RNR_NAK_GEN, IB_DEVICE_RC_RNR_NAK_GEN);
	CA_SAME(CAP_SRQ_RESIZE, IB_DEVICE_SRQ_RESIZE);
	CA_SAME(CAP_N_NOTIFY_CQ, IB_DEVICE_N_NOTIFY_CQ);
	CA_SAME(CAP_MEM_WINDOW, IB_DEVICE_MEM_WINDOW);
	CA_SAME(CAP_UD_IP_CSUM, IB_DEVICE_UD_IP_CSUM);
	CA_SAME(CAP_XRC, IB_DEVICE_XRC);
	CA_SAME(CAP_MEM_MGT_EXTENSIONS, IB_DEVICE_MEM_MGT_EXTENSIONS);
	CA_SAME(CAP_MEM_WINDOW_TYPE_2A, IB_DEVICE_MEM_WINDOW_TYPE_2A);
	CA_SAME(CAP_MEM_WINDOW_TYPE_2B, IB_DEVICE_MEM_WINDOW_TYPE_2B);
}

static void check_values(void)
{
	CA_SAME(ATOMIC_NONE, IB_ATOMIC_NONE);
	CA_SAME(ATOMIC_HCA, IB_ATOMIC_HCA);
	CA_SAME(ATOMIC_GLOB, IB_ATOMIC_GLOB);
	CA_SAME(PORT_NOP, IB_PORT_NOP);
	CA_SAME(PORT_DOWN, IB_PORT_DOWN);
	CA_SAME(PORT_INIT, IB_PORT_INIT);
	CA_SAME(PORT_ARMED, IB_PORT_ARMED);
	CA_SAME(PORT_ACTIVE, IB_PORT_ACTIVE);
	CA_SAME(PORT_ACTIVE_DEFER, IB_PORT_ACTIVE_DEFER);
	CA_SAME(LINK_UNSPECIFIED, IB_LINK_LAYER_UNSPECIFIED);
	CA_SAME(LINK_INFINIBAND, IB_LINK_LAYER_INFINIBAND);
	CA_SAME(LINK_ETHERNET, IB_LINK_LAYER_ETHERNET);
	CA_SAME(EVENT_DEVICE_FATAL, IB_EVENT_DEVICE_FATAL);
	CA_SAME(EVENT_PORT_ACTIVE, IB_EVENT_PORT_ACTIVE);
	CA_SAME(EVENT_PORT_ERR, IB_EVENT_PORT_ERR);
	CA_SAME(EVENT_LID_CHANGE, IB_EVENT_LID_CHANGE);
	CA_SAME(EVENT_PKEY_CHANGE, IB_EVENT_PKEY_CHANGE);
	CA_SAME(EVENT_SM_CHANGE, IB_EVENT_SM_CHANGE);
	CA_SAME(EVENT_CLIENT_REREGISTER, IB_EVENT_CLIENT_REREGISTER);
	CA_SAME(EVENT_GID_CHANGE, IB_EVENT_GID_CHANGE);
}

/*
 * The layout never changes, and has no holes: images are compared by their
 * bytes. Names have the same sizes in these structures as in the verbs.
 */
static void check_layout(void)
{
	BUILD_BUG_ON(sizeof(struct kverbs_ca_attr) != 392);
	BUILD_BUG_ON(sizeof(struct kverbs_ca_port_attr) != 136);
	BUILD_BUG_ON(sizeof(struct kverbs_ca_gid) != 24);
	BUILD_BUG_ON(offsetof(struct kverbs_ca_attr, size) !=
		     offsetof(struct kverbs_ca_port_attr, size));
	BUILD_BUG_ON(CA_LEADING != 2 * sizeof(u32));
	BUILD_BUG_ON(sizeof_field(struct kverbs_ca_attr, name) <
		     IB_DEVICE_NAME_MAX);
	BUILD_BUG_ON(sizeof_field(struct kverbs_ca_attr, fw_str) <
		     IB_FW_VERSION_NAME_MAX);
	BUILD_BUG_ON(sizeof_field(struct kverbs_ca_gid, gid) !=
		     sizeof(union ib_gid));
}

static struct kverbs_ca_attr *image_attr(struct ca_image *image)
{
	return (struct kverbs_ca_attr *)image->data;
}

static struct kverbs_ca_port_attr *image_port(struct ca_image *image, u32 i)
{
	return (struct kverbs_ca_port_attr *)
		(image->data + image->positions[i].offset);
}

static const struct ib_port_immutable *port_fixed(struct ib_device *dev,
						  u32 port)
{
	return &dev->port_data[port].immutable;
}

static u32 port_size(struct ib_device *dev, u32 port)
{
	const struct ib_port_immutable *fixed = port_fixed(dev, port);

	return ALIGN(sizeof(struct kverbs_ca_port_attr) +
		     fixed->gid_tbl_len * sizeof(struct kverbs_ca_gid) +
		     fixed->pkey_tbl_len * sizeof(u16), CA_ALIGN);
}

/* The lengths of the tables never change, so neither does the layout of an image. */
static struct ca_image *image_alloc(struct ib_device *dev)
{
	u32 nr_ports = rdma_end_port(dev) - rdma_start_port(dev) + 1;
	u32 size = ALIGN(sizeof(struct kverbs_ca_attr), CA_ALIGN);
	u32 offset = size, max_secrets = 0, port;
	struct ca_port_pos *pos;
	struct ca_image *image;

	rdma_for_each_port(dev, port) {
		size += port_size(dev, port);
		max_secrets += 1 + port_fixed(dev, port)->gid_tbl_len;
	}
	image = kvzalloc(struct_size(image, data, size) +
			 array_size(max_secrets, sizeof(*image->secrets)) +
			 array_size(nr_ports + 1, sizeof(*image->positions)),
			 GFP_KERNEL);
	if (!image)
		return NULL;
	refcount_set(&image->refs, 1);
	image->first_port = rdma_start_port(dev);
	image->nr_ports = nr_ports;
	image->size = size;
	image->secrets = (struct ca_secret *)(image->data + size);
	image->positions = (struct ca_port_pos *)(image->secrets + max_secrets);
	pos = image->positions;
	rdma_for_each_port(dev, port) {
		pos++->offset = offset;
		offset += port_size(dev, port);
	}
	pos->offset = offset;
	return image;
}

/* Any context. */
void ca_image_put(struct ca_image *image)
{
	if (image && refcount_dec_and_test(&image->refs))
		kvfree_rcu(image, rcu);
}

/* Makes @what, in the image, visible in the namespace @net only. */
static void image_hide(struct ca_image *image, void *what, u32 len, u64 net)
{
	struct ca_secret *secret = &image->secrets[image->nr_secrets++];

	secret->net = net;
	secret->offset = (u8 *)what - image->data;
	secret->len = len;
}

static void fill_limits(struct kverbs_ca_attr *attr,
			const struct ib_device_attr *from)
{
	attr->max_qp = from->max_qp;
	attr->max_qp_wr = from->max_qp_wr;
	attr->max_send_sge = from->max_send_sge;
	attr->max_recv_sge = from->max_recv_sge;
	attr->max_sge_rd = from->max_sge_rd;
	attr->max_cq = from->max_cq;
	attr->max_cqe = from->max_cqe;
	attr->max_mr = from->max_mr;
	attr->max_pd = from->max_pd;
	attr->max_qp_rd_atom = from->max_qp_rd_atom;
	attr->max_res_rd_atom = from->max_res_rd_atom;
	attr->max_qp_init_rd_atom = from->max_qp_init_rd_atom;
	attr->max_ee = from->max_ee;
	attr->max_rdd = from->max_rdd;
	attr->max_ee_rd_atom = from->max_ee_rd_atom;
	attr->max_ee_init_rd_atom = from->max_ee_init_rd_atom;
	attr->max_raw_ipv6_qp = from->max_raw_ipv6_qp;
	attr->max_raw_ethy_qp = from->max_raw_ethy_qp;
	attr->max_mw = from->max_mw;
	attr->max_fmr = from->max_fmr;
	attr->max_map_per_fmr = from->max_map_per_fmr;
	attr->max_mcast_grp = from->max_mcast_grp;
	attr->max_mcast_qp_attach = from->max_mcast_qp_attach;
	attr->max_total_mcast_qp_attach = from->max_total_mcast_qp_attach;
	attr->max_ah = from->max_ah;
	attr->max_srq = from->max_srq;
	attr->max_srq_wr = from->max_srq_wr;
	attr->max_srq_sge = from->max_srq_sge;
	attr->max_fast_reg_pages = from->max_fast_reg_page_list_len;
	attr->max_pkeys = from->max_pkeys;
}

static void fill_names(struct kverbs_ca_attr *attr, struct ib_device *dev)
{
	char fw_str[IB_FW_VERSION_NAME_MAX] = "";

	ib_get_device_fw_str(dev, fw_str);
	strscpy_pad(attr->fw_str, fw_str, sizeof(attr->fw_str));
	/* May be torn: the thread that changes the name asks for a new image afterwards. */
	data_race(strscpy_pad(attr->name, dev->name, sizeof(attr->name)));
	/* May be torn, too. */
	data_race(strscpy_pad(attr->node_desc, dev->node_desc,
			      sizeof(attr->node_desc)));
}

static void fill_ca(struct ca_image *image, struct ib_device *dev)
{
	struct kverbs_ca_attr *attr = image_attr(image);
	const struct ib_device_attr *from = &dev->attrs;

	attr->version = KVERBS_CA_VERSION;
	attr->size = image->size;
	attr->attr_size = sizeof(*attr);
	attr->port_offset = image->positions[0].offset;
	attr->port_count = image->nr_ports;
	attr->first_port = image->first_port;
	attr->node_guid = dev->node_guid;
	attr->sys_image_guid = from->sys_image_guid;
	attr->fw_ver = from->fw_ver;
	attr->page_sizes = from->page_size_cap;
	attr->cap_flags = from->device_cap_flags & CA_CAP_FLAGS;
	attr->max_mr_size = from->max_mr_size;
	attr->vendor_id = from->vendor_id;
	attr->device_id = from->vendor_part_id;
	attr->hw_rev = from->hw_ver;
	attr->node_type = dev->node_type;
	attr->comp_vectors = dev->num_comp_vectors;
	attr->atomic_cap = from->atomic_cap;
	attr->masked_atomic_cap = from->masked_atomic_cap;
	attr->ack_delay = from->local_ca_ack_delay;
	fill_limits(attr, from);
	fill_names(attr, dev);
}

static u32 port_flags(struct ib_device *dev, u32 port,
		      const struct ib_port_attr *from)
{
	bool roce = rdma_protocol_roce(dev, port);
	u32 flags = 0;

	if (roce || from->ip_gids)
		flags |= KVERBS_CA_PORT_IP_GIDS;
	if (roce || rdma_is_grh_required(dev, port))
		flags |= KVERBS_CA_PORT_GRH_REQUIRED;
	return flags;
}

/* The MTU in bytes; 0 for an invalid code. */
static u32 mtu_bytes(struct ib_device *dev, u32 port, int code)
{
	return max(0, rdma_mtu_enum_to_int(dev, port, code));
}

static void fill_link(struct kverbs_ca_port_attr *attr, struct ib_device *dev,
		      const struct ib_port_attr *from)
{
	u32 port = attr->port;

	attr->state = from->state;
	attr->phys_state = from->phys_state;
	attr->link_layer = rdma_port_get_link_layer(dev, port);
	attr->flags = port_flags(dev, port, from);
	attr->cap_flags = from->port_cap_flags;
	attr->cap_flags2 = from->port_cap_flags2;
	attr->width = from->active_width;
	attr->speed = from->active_speed;
	attr->max_mtu = mtu_bytes(dev, port, from->max_mtu);
	attr->active_mtu = mtu_bytes(dev, port, from->active_mtu);
	attr->phys_mtu = from->phys_mtu;
	attr->max_msg_size = from->max_msg_sz;
	attr->max_vls = from->max_vl_num;
	attr->bad_pkeys = from->bad_pkey_cntr;
	attr->bad_qkeys = from->qkey_viol_cntr;
}

/* Fills what a port has on InfiniBand, and not on Ethernet. */
static void fill_subnet(struct kverbs_ca_port_attr *attr,
			struct ib_device *dev, const struct ib_port_attr *from)
{
	union ib_gid gid;

	if (attr->link_layer == KVERBS_CA_LINK_ETHERNET)
		return;
	/* IBTA vol. 1, 4.1.1: GID 0 is made of the port's GUID. */
	if (!rdma_query_gid(dev, attr->port, 0, &gid))
		attr->guid = gid.global.interface_id;
	attr->subnet_prefix = cpu_to_be64(from->subnet_prefix);
	attr->lid = from->lid;
	attr->sm_lid = from->sm_lid;
	attr->lmc = from->lmc;
	attr->sm_sl = from->sm_sl;
	attr->subnet_timeout = from->subnet_timeout;
	attr->init_type_reply = from->init_type_reply;
}

static void fill_netdev(struct ca_image *image,
			struct kverbs_ca_port_attr *attr, struct ib_device *dev)
{
	struct net_device *ndev = ib_device_get_netdev(dev, attr->port);

	if (!ndev)
		return;
	rcu_read_lock();
	attr->netdev = READ_ONCE(ndev->ifindex);
	image_hide(image, &attr->netdev, sizeof(attr->netdev),
		   dev_net(ndev)->net_cookie);
	rcu_read_unlock();
	dev_put(ndev);
}

static u32 gid_type(enum ib_gid_type type)
{
	switch (type) {
	case IB_GID_TYPE_ROCE:
		return KVERBS_CA_GID_ROCE_V1;
	case IB_GID_TYPE_ROCE_UDP_ENCAP:
		return KVERBS_CA_GID_ROCE_V2;
	default:
		return KVERBS_CA_GID_IB;
	}
}

/* Under RCU. */
static void fill_gid(struct ca_image *image, struct kverbs_ca_gid *gid,
		     const struct ib_gid_attr *from)
{
	const struct net_device *ndev = rdma_read_gid_attr_ndev_rcu(from);

	/*
	 * An entry of RoCE or iWARP without a network device has just been removed from the
	 * table, so its namespace is unknown by now. An event follows.
	 */
	if (IS_ERR(ndev) && !rdma_protocol_ib(from->device, from->port_num))
		return;
	memcpy(gid->gid, from->gid.raw, sizeof(gid->gid));
	gid->type = gid_type(from->gid_type);
	if (IS_ERR(ndev))
		return;
	gid->netdev = READ_ONCE(ndev->ifindex);
	image_hide(image, gid, sizeof(*gid), dev_net(ndev)->net_cookie);
}

static void fill_gids(struct ca_image *image, struct kverbs_ca_port_attr *attr,
		      struct ib_device *dev)
{
	struct kverbs_ca_gid *gids = (void *)attr + attr->gid_offset;
	const struct ib_gid_attr *from;
	u32 i;

	for (i = 0; i < attr->gid_count; i++) {
		from = ib_gid_get(dev, attr->port, i);
		if (IS_ERR(from))
			continue;
		rcu_read_lock();
		fill_gid(image, &gids[i], from);
		rcu_read_unlock();
		ib_gid_put(from);
	}
}

static void fill_pkeys(struct kverbs_ca_port_attr *attr, struct ib_device *dev)
{
	u16 *pkeys = (void *)attr + attr->pkey_offset;
	u32 i;

	for (i = 0; i < attr->pkey_count; i++)
		ib_get_cached_pkey(dev, attr->port, i, &pkeys[i]);
}

static int fill_port(struct ca_image *image, u32 i, struct ib_device *dev)
{
	struct kverbs_ca_port_attr *attr = image_port(image, i);
	u32 port = image->first_port + i;
	struct ib_port_attr from;
	int ret;

	ret = ib_query_port(dev, port, &from);
	if (ret)
		return ret;
	image->positions[i].secret = image->nr_secrets;
	attr->version = KVERBS_CA_VERSION;
	attr->size = port_size(dev, port);
	attr->attr_size = sizeof(*attr);
	attr->port = port;
	attr->gid_offset = sizeof(*attr);
	attr->gid_count = port_fixed(dev, port)->gid_tbl_len;
	attr->gid_size = sizeof(struct kverbs_ca_gid);
	attr->pkey_offset = attr->gid_offset +
			    attr->gid_count * attr->gid_size;
	attr->pkey_count = port_fixed(dev, port)->pkey_tbl_len;
	fill_link(attr, dev, &from);
	fill_subnet(attr, dev, &from);
	fill_netdev(image, attr, dev);
	fill_gids(image, attr, dev);
	fill_pkeys(attr, dev);
	return 0;
}

/* Copies a port from the old image, when the driver has failed to report its state. */
static void copy_port(struct ca_image *image, u32 i, const struct ca_image *old)
{
	const struct ca_port_pos *pos = &old->positions[i];
	u32 nr = pos[1].secret - pos[0].secret;

	memcpy(image->data + pos[0].offset, old->data + pos[0].offset,
	       pos[1].offset - pos[0].offset);
	image->positions[i].secret = image->nr_secrets;
	memcpy(&image->secrets[image->nr_secrets],
	       &old->secrets[pos[0].secret], nr * sizeof(*old->secrets));
	image->nr_secrets += nr;
}

static void sum_up_secrets(struct ca_image *image)
{
	u32 i;

	for (i = 0; i < image->nr_secrets; i++) {
		if (i && image->secrets[i].net != image->net)
			image->mixed = true;
		image->net = image->secrets[i].net;
	}
}

/* @old is NULL for the first image, for which nothing may fail. */
static int image_fill(struct ca_image *image, struct ib_device *dev,
		      const struct ca_image *old)
{
	int ret = 0, err;
	u32 i;

	fill_ca(image, dev);
	for (i = 0; i < image->nr_ports; i++) {
		err = fill_port(image, i, dev);
		if (!err)
			continue;
		ret = err;
		if (!old)
			break;
		copy_port(image, i, old);
	}
	image->positions[i].secret = image->nr_secrets;
	sum_up_secrets(image);
	return ret;
}

static bool ca_differs(struct ca_image *a, struct ca_image *b)
{
	struct kverbs_ca_attr ours = *image_attr(a);

	ours.generation = image_attr(b)->generation;
	return memcmp(&ours, image_attr(b), sizeof(ours));
}

/* The namespaces of its secrets matter, too: they decide who sees what of a port. */
static bool secrets_differ(const struct ca_image *a, const struct ca_image *b,
			   u32 i)
{
	u32 nr = a->positions[i + 1].secret - a->positions[i].secret;

	return nr != b->positions[i + 1].secret - b->positions[i].secret ||
	       memcmp(&a->secrets[a->positions[i].secret],
		      &b->secrets[b->positions[i].secret],
		      nr * sizeof(*a->secrets));
}

static bool port_differs(struct ca_image *a, struct ca_image *b, u32 i)
{
	const struct kverbs_ca_port_attr *theirs = image_port(b, i);
	struct kverbs_ca_port_attr ours = *image_port(a, i);

	ours.generation = theirs->generation;
	ours.bad_pkeys = theirs->bad_pkeys;
	ours.bad_qkeys = theirs->bad_qkeys;
	return memcmp(&ours, theirs, sizeof(ours)) ||
	       memcmp(image_port(a, i) + 1, theirs + 1,
		      ours.size - sizeof(ours)) ||
	       secrets_differ(a, b, i);
}

/* Sets the generations: a new one for each part that differs from @old, NULL for the first. */
static void image_date(struct ca_image *image, struct ca_image *old)
{
	u64 before = old ? image_attr(old)->generation : 0;
	bool changed = !old || ca_differs(image, old);
	struct kverbs_ca_port_attr *port;
	u32 i;

	for (i = 0; i < image->nr_ports; i++) {
		port = image_port(image, i);
		if (old && !port_differs(image, old, i)) {
			port->generation = image_port(old, i)->generation;
			continue;
		}
		port->generation = before + 1;
		changed = true;
	}
	image_attr(image)->generation = before + changed;
}

/* Unlike port_differs(), compares counters, too: if all is equal, the old image is kept. */
static bool images_same(const struct ca_image *a, const struct ca_image *b)
{
	return !memcmp(a->data, b->data, a->size) &&
	       a->nr_secrets == b->nr_secrets &&
	       !memcmp(a->secrets, b->secrets,
		       a->nr_secrets * sizeof(*a->secrets)) &&
	       !memcmp(a->positions, b->positions,
		       (a->nr_ports + 1) * sizeof(*a->positions));
}

/*
 * Makes a new image. After a failure, the old contents stay, of the whole image or of a
 * port, and ca_device.image_stale tells that they may be out of date. Process context.
 *
 * Returns 0, -ENOMEM, or what the driver returned.
 */
int ca_image_refresh(struct ca_device *ca)
{
	struct ca_image *image, *old;
	bool published = false;
	int ret = -ENOMEM;

	mutex_lock(&ca->image_lock);
	old = rcu_dereference_protected(ca->image,
					lockdep_is_held(&ca->image_lock));
	image = image_alloc(ca->device);
	if (image)
		ret = image_fill(image, ca->device, old);
	if (image && (!ret || old)) {
		image_date(image, old);
		if (!old || !images_same(image, old)) {
			rcu_assign_pointer(ca->image, image);
			published = true;
		}
	}
	WRITE_ONCE(ca->image_stale, ret);
	mutex_unlock(&ca->image_lock);
	/* Freed at once, so that a reader that keeps asking cannot pile up images under RCU. */
	if (published)
		ca_image_put(old);
	else
		kvfree(image);
	return ret;
}

/*
 * The device's ports and tables are set up: make the first image. Returns as
 * ca_image_refresh().
 */
int ca_image_create(struct ca_device *ca)
{
	check_cap_flags();
	check_values();
	check_layout();
	return ca_image_refresh(ca);
}

/* Called when nothing refreshes the image any more. Readers that hold it may go on. */
void ca_image_free(struct ca_device *ca)
{
	struct ca_image *old;

	mutex_lock(&ca->image_lock);
	old = rcu_replace_pointer(ca->image, NULL,
				  lockdep_is_held(&ca->image_lock));
	mutex_unlock(&ca->image_lock);
	ca_image_put(old);
}

/*
 * Returns the generation that the next query will find, or 0 if there is no
 * image. If the last refresh failed, it counts the image that this query will
 * make, so that a reader that is told of an event queries again. Any context.
 */
u64 ca_image_generation(struct ca_device *ca)
{
	struct ca_image *image;
	u64 generation = 0;

	rcu_read_lock();
	image = rcu_dereference(ca->image);
	if (image)
		generation = image_attr(image)->generation +
			     READ_ONCE(ca->image_stale);
	rcu_read_unlock();
	return generation;
}

/**
 * struct ca_slice - the part of an image that answers a request
 * @offset: where it begins
 * @size: its bytes
 * @copied: how many of them fit
 * @first: index of its first secret
 * @end: index behind its last one
 */
struct ca_slice {
	u32 offset;
	u32 size;
	u32 copied;
	u32 first;
	u32 end;
};

/* Returns the position of a port; that of the next port, or the end, follows it. */
static const struct ca_port_pos *port_pos(const struct ca_image *image,
					  u32 port)
{
	/* Port numbers below the first one wrap. */
	port -= image->first_port;
	if (port >= image->nr_ports)
		return NULL;
	return &image->positions[array_index_nospec(port, image->nr_ports)];
}

static int slice_of_port(struct ca_slice *slice, const struct ca_image *image,
			 u32 port)
{
	const struct ca_port_pos *pos = port_pos(image, port);

	if (!pos)
		return -EINVAL;
	slice->offset = pos[0].offset;
	slice->size = pos[1].offset - pos[0].offset;
	slice->first = pos[0].secret;
	slice->end = pos[1].secret;
	return 0;
}

static int put_bytes(sockptr_t out, u32 at, const void *from, u32 n)
{
	return copy_to_sockptr_offset(out, at, from, n) ? -EFAULT : 0;
}

/* Copies the bytes between the secrets of other namespaces, and zeros in place of these. */
static int copy_hiding(const struct ca_image *image, const struct net *net,
		       const struct ca_slice *slice, sockptr_t out)
{
	static const struct kverbs_ca_gid nothing;
	const u8 *from = image->data + slice->offset;
	u32 i, at, len, done = 0;
	int ret = 0;

	for (i = slice->first; !ret && i < slice->end; i++) {
		at = image->secrets[i].offset - slice->offset;
		if (at >= slice->copied)
			break;
		if (image->secrets[i].net == net->net_cookie)
			continue;
		len = min(image->secrets[i].len, slice->copied - at);
		ret = put_bytes(out, done, from + done, at - done);
		if (!ret)
			ret = put_bytes(out, at, &nothing, len);
		done = at + len;
	}
	return ret ?: put_bytes(out, done, from + done, slice->copied - done);
}

/* Returns the current image, held, or NULL if the device is gone. Any context. */
struct ca_image *ca_image_get(struct ca_device *ca)
{
	struct ca_image *image;

	rcu_read_lock();
	do
		image = rcu_dereference(ca->image);
	while (image && !refcount_inc_not_zero(&image->refs));
	rcu_read_unlock();
	return image;
}

/*
 * Answers QUERY_CA, or QUERY_PORT if @port is not NULL, as readers in the
 * namespace @net may see it; if @net is NULL, with all secrets. The caller
 * holds the image. Any context but NMI if @out is kernel memory, else process
 * context.
 *
 * Returns the number of bytes written; -EOVERFLOW: only as much as fits was written;
 * -EINVAL: no such port; -EFAULT.
 */
ssize_t ca_image_copy(const struct ca_image *image, const struct net *net,
		      const u32 *port, sockptr_t out, u32 out_len)
{
	struct ca_slice slice = {
		.size = image->size,
		.end = image->nr_secrets,
	};
	int ret = 0;

	if (port)
		ret = slice_of_port(&slice, image, *port);
	if (ret)
		return ret;
	slice.copied = min(out_len, slice.size);
	kverbs_delay("ca_image_copy");
	if (net && image->net && (image->mixed || image->net != net->net_cookie))
		ret = copy_hiding(image, net, &slice, out);
	else
		ret = put_bytes(out, 0, image->data + slice.offset,
				slice.copied);
	if (ret)
		return ret;
	return slice.copied < slice.size ? -EOVERFLOW : (ssize_t)slice.copied;
}

/* Kernel callers see the secrets of all namespaces. */
static ssize_t copy_to_kernel(const struct ca_image *image, const u32 *port,
			      void *out, u32 out_len)
{
	const struct ca_port_pos *pos;
	const u8 *from = image->data;
	u32 size = image->size;

	if (port) {
		pos = port_pos(image, *port);
		if (!pos)
			return -EINVAL;
		from += pos[0].offset;
		size = pos[1].offset - pos[0].offset;
	}
	/* The most frequent query takes two instructions here. */
	if (out_len == CA_LEADING)
		memcpy(out, from, CA_LEADING);
	else
		memcpy(out, from, min(out_len, size));
	return out_len < size ? -EOVERFLOW : (ssize_t)size;
}

/*
 * Answers a kernel caller, after a check of its handle, without the steps that only other
 * callers need. Under RCU.
 *
 * Returns as ca_image_copy(); -ENOSPC: not even the two leading fields fit;
 * -ENOENT: no such handle; -ENODEV. @out is not NULL.
 */
ssize_t ca_image_query(struct ca_device *ca, u64 handle, const u32 *port,
		       void *out, u32 out_len)
{
	const struct ca_image *image = rcu_dereference(ca->image);

	if (out_len < CA_LEADING)
		return -ENOSPC;
	if (!ca_handle_is_open(&ca->kernel, handle))
		return -ENOENT;
	return image ? copy_to_kernel(image, port, out, out_len) : -ENODEV;
}
