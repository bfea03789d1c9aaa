/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs' header, plus the types that the kernel's own ib_uverbs uses and kverbs' core knows only
 * as pointers: objects that only a driver's methods can create. They have just the members that
 * those sources access; no driver of kverbs creates any. And the declarations that IP over
 * InfiniBand needs for network devices of drivers.
 */
#ifndef KVERBS_ULPS_IB_VERBS_H
#define KVERBS_ULPS_IB_VERBS_H

#include_next <rdma/ib_verbs.h>

#include <linux/cgroup_rdma.h>
#include <linux/mmu_notifier.h>
#include <linux/rwsem.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_counter.h>
#include <rdma/rdma_netlink.h>

struct ib_uverbs_file;
struct ib_uwq_object;
struct uverbs_attr_bundle;

/* Functions provided for these sources alone. */
#include <kverbs/upper.h>

/* Marks objects that are listed only in detail: kverbs has none. */
#define RESTRACK_DD XA_MARK_1

int rdma_restrack_count(struct ib_device *dev, enum rdma_restrack_type type, bool show_details);
ssize_t rdma_query_gid_table(struct ib_device *device, struct ib_uverbs_gid_entry *entries,
			     size_t max_entries);
int ib_add_sub_device(struct ib_device *parent, enum rdma_nl_dev_type type, const char *name);
int ib_del_sub_device_and_put(struct ib_device *sub);
struct ib_ucontext *ib_uverbs_get_ucontext_file(struct ib_uverbs_file *ufile);
int uverbs_destroy_def_handler(struct uverbs_attr_bundle *attrs);
void rdma_user_mmap_disassociate(struct ib_device *device);

/* --- network devices on top of a port ----------------------------------------- */

struct net_device *rdma_alloc_netdev(struct ib_device *device, u32 port_num,
				     enum rdma_netdev_t type, const char *name,
				     unsigned char name_assign_type,
				     void (*setup)(struct net_device *netdev));
int rdma_init_netdev(struct ib_device *device, u32 port_num, enum rdma_netdev_t type,
		     const char *name, unsigned char name_assign_type,
		     void (*setup)(struct net_device *netdev), struct net_device *netdev);

/* --- extended reliable connections (XRC) ------------------------------------- */

struct ib_xrcd {
	struct ib_device	*device;
	atomic_t		usecnt;
	struct inode		*inode;
};

struct ib_qp_open_attr {
	void			(*event_handler)(struct ib_event *event, void *qp_context);
	void			*qp_context;
	u32			qp_num;
	enum ib_qp_type		qp_type;
};

struct ib_xrcd *ib_alloc_xrcd_user(struct ib_device *device, struct inode *inode,
				   struct ib_udata *udata);
int ib_dealloc_xrcd_user(struct ib_xrcd *xrcd, struct ib_udata *udata);
struct ib_qp *ib_open_qp(struct ib_xrcd *xrcd, struct ib_qp_open_attr *attr);
int ib_close_qp(struct ib_qp *qp);

/* --- receive work queues (WQs) ------------------------------------------------- */

enum ib_wq_type { IB_WQT_RQ = IB_UVERBS_WQT_RQ };

enum ib_wq_state { IB_WQS_RESET, IB_WQS_RDY, IB_WQS_ERR };

enum ib_wq_flags {
	IB_WQ_FLAGS_CVLAN_STRIPPING		= IB_UVERBS_WQ_FLAGS_CVLAN_STRIPPING,
	IB_WQ_FLAGS_SCATTER_FCS			= IB_UVERBS_WQ_FLAGS_SCATTER_FCS,
	IB_WQ_FLAGS_DELAY_DROP			= IB_UVERBS_WQ_FLAGS_DELAY_DROP,
	IB_WQ_FLAGS_PCI_WRITE_END_PADDING	= IB_UVERBS_WQ_FLAGS_PCI_WRITE_END_PADDING,
};

struct ib_wq {
	struct ib_device	*device;
	struct ib_pd		*pd;
	struct ib_cq		*cq;
	struct ib_uwq_object	*uobject;
	void			(*event_handler)(struct ib_event *event, void *wq_context);
	void			*wq_context;
	enum ib_wq_type		wq_type;
	enum ib_wq_state	state;
	u32			wq_num;
	atomic_t		usecnt;
};

struct ib_wq_init_attr {
	void			*wq_context;
	void			(*event_handler)(struct ib_event *event, void *wq_context);
	struct ib_cq		*cq;
	enum ib_wq_type		wq_type;
	u32			max_wr;
	u32			max_sge;
	u32			create_flags;
};

enum ib_wq_attr_mask {
	IB_WQ_STATE		= BIT(0),
	IB_WQ_CUR_STATE		= BIT(1),
	IB_WQ_FLAGS		= BIT(2),
};

struct ib_wq_attr {
	enum ib_wq_state	wq_state;
	enum ib_wq_state	curr_wq_state;
	u32			flags;
	u32			flags_mask;
};

int ib_destroy_wq_user(struct ib_wq *wq, struct ib_udata *udata);

struct ib_rwq_ind_table {
	struct ib_device	*device;
	struct ib_uobject	*uobject;
	struct ib_wq		**ind_tbl;
	u32			ind_tbl_num;
	u32			log_ind_tbl_size;
	atomic_t		usecnt;
};

struct ib_rwq_ind_table_init_attr {
	struct ib_wq		**ind_tbl;
	u32			log_ind_tbl_size;
};

/* --- device memory ----------------------------------------------------------------- */

struct ib_dm {
	struct ib_device	*device;
	struct ib_uobject	*uobject;
	u32			length;
	u32			flags;
	atomic_t		usecnt;
};

struct ib_dm_alloc_attr {
	u64			length;
	u32			alignment;
	u32			flags;
};

struct ib_dm_mr_attr {
	u64			offset;
	u64			length;
	u32			access_flags;
};

/* --- packet counters ---------------------------------------------------------------- */

struct ib_counters {
	struct ib_device	*device;
	struct ib_uobject	*uobject;
	atomic_t		usecnt;
};

struct ib_counters_read_attr {
	u64			*counters_buff;
	u32			ncounters;
	u32			flags;
};

/* --- flow steering --------------------------------------------------------------------- */

enum ib_flow_attr_type {
	IB_FLOW_ATTR_NORMAL,
	IB_FLOW_ATTR_ALL_DEFAULT,
	IB_FLOW_ATTR_MC_DEFAULT,
	IB_FLOW_ATTR_SNIFFER,
};

enum ib_flow_flags {
	IB_FLOW_ATTR_FLAGS_DONT_TRAP	= BIT(1),
	IB_FLOW_ATTR_FLAGS_EGRESS	= BIT(2),
	IB_FLOW_ATTR_FLAGS_RESERVED	= BIT(3),
};

/* Values of the ABI: the high digit is the network layer. */
enum ib_flow_spec_type {
	IB_FLOW_SPEC_ETH		= 0x20,
	IB_FLOW_SPEC_IB			= 0x22,
	IB_FLOW_SPEC_IPV4		= 0x30,
	IB_FLOW_SPEC_IPV6		= 0x31,
	IB_FLOW_SPEC_ESP		= 0x34,
	IB_FLOW_SPEC_TCP		= 0x40,
	IB_FLOW_SPEC_UDP		= 0x41,
	IB_FLOW_SPEC_VXLAN_TUNNEL	= 0x50,
	IB_FLOW_SPEC_GRE		= 0x51,
	IB_FLOW_SPEC_MPLS		= 0x60,
	IB_FLOW_SPEC_INNER		= 0x100,
	IB_FLOW_SPEC_ACTION_TAG		= 0x1000,
	IB_FLOW_SPEC_ACTION_DROP	= 0x1001,
	IB_FLOW_SPEC_ACTION_HANDLE	= 0x1002,
	IB_FLOW_SPEC_ACTION_COUNT	= 0x1003,
};

#define IB_FLOW_SPEC_LAYER_MASK		0xf0
#define IB_FLOW_SPEC_SUPPORT_LAYERS	10

/* Header fields to match, as laid out by the ABI; used once for values and once for masks. */
struct ib_flow_eth_filter {
	u8			dst_mac[6];
	u8			src_mac[6];
	__be16			ether_type;
	__be16			vlan_tag;
};

struct ib_flow_ib_filter {
	__be16			dlid;
	u8			sl;
};

struct ib_flow_ipv4_filter {
	__be32			src_ip;
	__be32			dst_ip;
	u8			proto;
	u8			tos;
	u8			ttl;
	u8			flags;
};

struct ib_flow_ipv6_filter {
	u8			src_ip[16];
	u8			dst_ip[16];
	__be32			flow_label;
	u8			next_hdr;
	u8			traffic_class;
	u8			hop_limit;
} __packed;

struct ib_flow_tcp_udp_filter {
	__be16			dst_port;
	__be16			src_port;
};

struct ib_flow_tunnel_filter {
	__be32			tunnel_id;
};

struct ib_flow_esp_filter {
	__be32			spi;
	__be32			seq;
};

struct ib_flow_gre_filter {
	__be16			c_ks_res0_ver;
	__be16			protocol;
	__be32			key;
};

struct ib_flow_mpls_filter {
	__be32			tag;
};

#define KVERBS_FLOW_SPEC(name, filter)						\
struct ib_flow_spec_##name {							\
	u32			type;						\
	u16			size;						\
	struct filter		val;						\
	struct filter		mask;						\
}

KVERBS_FLOW_SPEC(eth, ib_flow_eth_filter);
KVERBS_FLOW_SPEC(ib, ib_flow_ib_filter);
KVERBS_FLOW_SPEC(ipv4, ib_flow_ipv4_filter);
KVERBS_FLOW_SPEC(ipv6, ib_flow_ipv6_filter);
KVERBS_FLOW_SPEC(tcp_udp, ib_flow_tcp_udp_filter);
KVERBS_FLOW_SPEC(tunnel, ib_flow_tunnel_filter);
KVERBS_FLOW_SPEC(esp, ib_flow_esp_filter);
KVERBS_FLOW_SPEC(gre, ib_flow_gre_filter);
KVERBS_FLOW_SPEC(mpls, ib_flow_mpls_filter);

struct ib_flow_spec_action_tag {
	enum ib_flow_spec_type	type;
	u16			size;
	u32			tag_id;
};

struct ib_flow_spec_action_drop {
	enum ib_flow_spec_type	type;
	u16			size;
};

struct ib_flow_spec_action_handle {
	enum ib_flow_spec_type	type;
	u16			size;
	struct ib_flow_action	*act;
};

struct ib_flow_spec_action_count {
	enum ib_flow_spec_type	type;
	u16			size;
	struct ib_counters	*counters;
};

union ib_flow_spec {
	struct {
		u32		type;
		u16		size;
	};
	struct ib_flow_spec_eth			eth;
	struct ib_flow_spec_ib			ib;
	struct ib_flow_spec_ipv4		ipv4;
	struct ib_flow_spec_ipv6		ipv6;
	struct ib_flow_spec_tcp_udp		tcp_udp;
	struct ib_flow_spec_tunnel		tunnel;
	struct ib_flow_spec_esp			esp;
	struct ib_flow_spec_gre			gre;
	struct ib_flow_spec_mpls		mpls;
	struct ib_flow_spec_action_tag		flow_tag;
	struct ib_flow_spec_action_drop		drop;
	struct ib_flow_spec_action_handle	action;
	struct ib_flow_spec_action_count	flow_count;
};

struct ib_flow_attr {
	enum ib_flow_attr_type	type;
	u16			size;
	u16			priority;
	u32			flags;
	u8			num_of_specs;
	u32			port;
	union ib_flow_spec	flows[];
};

struct ib_flow {
	struct ib_device	*device;
	struct ib_qp		*qp;
	struct ib_uobject	*uobject;
};

enum ib_flow_action_type { IB_FLOW_ACTION_UNSPECIFIED, IB_FLOW_ACTION_ESP };

struct ib_flow_action {
	struct ib_device	*device;
	struct ib_uobject	*uobject;
	enum ib_flow_action_type type;
	atomic_t		usecnt;
};

#endif
