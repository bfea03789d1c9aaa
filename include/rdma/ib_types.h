/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Constants and plain data of the verbs interface: addresses, ports, device
 * limits, events. Include <rdma/ib_verbs.h>, which includes this.
 *
 * Values follow IBTA vol. 1 where it defines them, else Linux 6.12. Those that
 * are part of the kernel's user interface too have the same values there. They
 * are spelled out here because the headers of older kernels lack some.
 */
#ifndef _RDMA_IB_TYPES_H
#define _RDMA_IB_TYPES_H

#include <linux/bits.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/list.h>
#include <linux/types.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_netlink.h>
#include <rdma/signature.h>

struct ib_cq;
struct ib_cqe;
struct ib_device;
struct ib_qp;
struct ib_srq;
struct ib_wq;
struct net_device;

/* Devices */

enum rdma_transport_type {
	RDMA_TRANSPORT_IB,
	RDMA_TRANSPORT_IWARP,
	RDMA_TRANSPORT_USNIC,
	RDMA_TRANSPORT_USNIC_UDP,
	RDMA_TRANSPORT_UNSPECIFIED,
};

enum ib_device_cap_flags {
	IB_DEVICE_RESIZE_MAX_WR			= BIT_ULL(0),
	IB_DEVICE_BAD_PKEY_CNTR			= BIT_ULL(1),
	IB_DEVICE_BAD_QKEY_CNTR			= BIT_ULL(2),
	IB_DEVICE_RAW_MULTI			= BIT_ULL(3),
	IB_DEVICE_AUTO_PATH_MIG			= BIT_ULL(4),
	IB_DEVICE_CHANGE_PHY_PORT		= BIT_ULL(5),
	IB_DEVICE_UD_AV_PORT_ENFORCE		= BIT_ULL(6),
	IB_DEVICE_CURR_QP_STATE_MOD		= BIT_ULL(7),
	IB_DEVICE_SHUTDOWN_PORT			= BIT_ULL(8),
	IB_DEVICE_PORT_ACTIVE_EVENT		= BIT_ULL(10),
	IB_DEVICE_SYS_IMAGE_GUID		= BIT_ULL(11),
	IB_DEVICE_RC_RNR_NAK_GEN		= BIT_ULL(12),
	IB_DEVICE_SRQ_RESIZE			= BIT_ULL(13),
	IB_DEVICE_N_NOTIFY_CQ			= BIT_ULL(14),
	IB_DEVICE_MEM_WINDOW			= BIT_ULL(17),
	IB_DEVICE_UD_IP_CSUM			= BIT_ULL(18),
	IB_DEVICE_XRC				= BIT_ULL(20),
	/* Fast registration, local invalidate and send with invalidate. */
	IB_DEVICE_MEM_MGT_EXTENSIONS		= BIT_ULL(21),
	IB_DEVICE_MEM_WINDOW_TYPE_2A		= BIT_ULL(23),
	IB_DEVICE_MEM_WINDOW_TYPE_2B		= BIT_ULL(24),
	IB_DEVICE_RC_IP_CSUM			= BIT_ULL(25),
	IB_DEVICE_RAW_IP_CSUM			= BIT_ULL(26),
	IB_DEVICE_MANAGED_FLOW_STEERING		= BIT_ULL(29),
	IB_DEVICE_RAW_SCATTER_FCS		= BIT_ULL(34),
	IB_DEVICE_PCI_WRITE_END_PADDING		= BIT_ULL(36),
	IB_DEVICE_FLUSH_GLOBAL			= BIT_ULL(38),
	IB_DEVICE_FLUSH_PERSISTENT		= BIT_ULL(39),
	IB_DEVICE_ATOMIC_WRITE			= BIT_ULL(40),
};

/* Capabilities that only matter to kernel callers. */
enum ib_kernel_cap_flags {
	/* ib_device.local_dma_lkey is valid. ULPs always use ib_pd.local_dma_lkey. */
	IBK_LOCAL_DMA_LKEY			= BIT(0),
	/* IB_QP_CREATE_INTEGRITY_EN works. */
	IBK_INTEGRITY_HANDOVER			= BIT(1),
	IBK_ON_DEMAND_PAGING			= BIT(2),
	/* IB_MR_TYPE_SG_GAPS works. */
	IBK_SG_GAPS_REG				= BIT(3),
	IBK_ALLOW_USER_UNREG			= BIT(4),
	IBK_BLOCK_MULTICAST_LOOPBACK		= BIT(5),
	IBK_UD_TSO				= BIT(6),
	IBK_VIRTUAL_FUNCTION			= BIT(7),
	IBK_RDMA_NETDEV_OPA			= BIT(8),
};

enum ib_atomic_cap {
	IB_ATOMIC_NONE,
	IB_ATOMIC_HCA,		/* atomic among the QPs of this device */
	IB_ATOMIC_GLOB		/* atomic with CPUs and other devices too */
};

enum ib_odp_general_cap_bits {
	IB_ODP_SUPPORT				= BIT(0),
	IB_ODP_SUPPORT_IMPLICIT			= BIT(1),
};

enum ib_odp_transport_cap_bits {
	IB_ODP_SUPPORT_SEND			= BIT(0),
	IB_ODP_SUPPORT_RECV			= BIT(1),
	IB_ODP_SUPPORT_WRITE			= BIT(2),
	IB_ODP_SUPPORT_READ			= BIT(3),
	IB_ODP_SUPPORT_ATOMIC			= BIT(4),
	IB_ODP_SUPPORT_SRQ_RECV			= BIT(5),
};

/**
 * struct ib_odp_caps - operations that a device can do on memory that is not pinned
 * @general_caps: &enum ib_odp_general_cap_bits
 * @per_transport_caps: &enum ib_odp_transport_cap_bits, by transport
 * @per_transport_caps.rc_odp_caps: for RC
 * @per_transport_caps.uc_odp_caps: for UC
 * @per_transport_caps.ud_odp_caps: for UD
 * @per_transport_caps.xrc_odp_caps: for XRC
 */
struct ib_odp_caps {
	u64	general_caps;
	struct {
		u32	rc_odp_caps;
		u32	uc_odp_caps;
		u32	ud_odp_caps;
		u32	xrc_odp_caps;
	} per_transport_caps;
};

/**
 * struct ib_cq_caps - limits of CQ moderation
 * @max_cq_moderation_count: maximum number of completions to hold back
 * @max_cq_moderation_period: maximum microseconds to hold them back
 */
struct ib_cq_caps {
	u16	max_cq_moderation_count;
	u16	max_cq_moderation_period;
};

/**
 * struct ib_rss_caps - receive side scaling (RSS) of a device
 * @supported_qpts: bit mask of types of QPs; 0: nothing
 * @max_rwq_indirection_tables: number of tables
 * @max_rwq_indirection_table_size: entries of one
 */
struct ib_rss_caps {
	u32	supported_qpts;
	u32	max_rwq_indirection_tables;
	u32	max_rwq_indirection_table_size;
};

/**
 * struct ib_tm_caps - tag-matching SRQs of a device
 * @max_rndv_hdr_size: bytes of a header
 * @max_num_tags: entries of a tag list; 0: not supported
 * @flags: further capabilities
 * @max_ops: outstanding changes of the list
 * @max_sge: scatter entries of a tag
 */
struct ib_tm_caps {
	u32	max_rndv_hdr_size;
	u32	max_num_tags;
	u32	flags;
	u32	max_ops;
	u32	max_sge;
};

/**
 * struct ib_device_attr - limits and capabilities of a device
 * @fw_ver: firmware version: major, minor, sub-minor in 16 bits each
 * @sys_image_guid: GUID of the system that the device is part of
 * @max_mr_size: bytes in the largest memory region
 * @page_size_cap: bit n is set if pages of 2^n bytes can be mapped
 * @vendor_id: IEEE vendor number
 * @vendor_part_id: the vendor's part number
 * @hw_ver: hardware version
 * @max_qp: number of QPs
 * @max_qp_wr: work requests in one send or receive queue
 * @device_cap_flags: &enum ib_device_cap_flags
 * @kernel_cap_flags: &enum ib_kernel_cap_flags
 * @max_send_sge: scatter/gather entries of a send work request
 * @max_recv_sge: scatter entries of a receive work request
 * @max_sge_rd: scatter entries of an RDMA READ request
 * @max_cq: number of CQs
 * @max_cqe: entries in one CQ
 * @max_mr: number of memory regions
 * @max_pd: number of PDs
 * @max_qp_rd_atom: reads and atomics a QP can serve at a time
 * @max_ee_rd_atom: same for an end-to-end context
 * @max_res_rd_atom: reads and atomics the device can serve at a time
 * @max_qp_init_rd_atom: reads and atomics a QP can have outstanding
 * @max_ee_init_rd_atom: same for an end-to-end context
 * @atomic_cap: scope of atomic operations
 * @masked_atomic_cap: scope of masked atomic operations
 * @max_ee: number of end-to-end contexts
 * @max_rdd: number of reliable datagram domains
 * @max_mw: number of memory windows
 * @max_fmr: number of FMRs
 * @max_map_per_fmr: mappings of an FMR before it must be unmapped; 0: unknown
 * @max_raw_ipv6_qp: number of raw IPv6 QPs
 * @max_raw_ethy_qp: number of raw Ethertype QPs
 * @max_mcast_grp: number of multicast groups
 * @max_mcast_qp_attach: QPs attached to one multicast group
 * @max_total_mcast_qp_attach: QPs attached to multicast groups in all
 * @max_ah: number of address handles
 * @max_srq: number of SRQs
 * @max_srq_wr: work requests in one SRQ
 * @max_srq_sge: scatter entries of an SRQ's work request
 * @max_fast_reg_page_list_len: pages in one fast registration
 * @max_pi_fast_reg_page_list_len: same with integrity metadata
 * @max_pkeys: length of the P_Key tables
 * @local_ca_ack_delay: delay of an acknowledgement, 4.096 us * 2^value
 * @sig_prot_cap: &enum ib_signature_prot_cap
 * @sig_guard_cap: &enum ib_signature_guard_cap
 * @odp_caps: access to memory that is not pinned
 * @timestamp_mask: valid bits of completion timestamps
 * @hca_core_clock: frequency of the timestamp clock in kHz
 * @cq_caps: limits of CQ moderation
 * @max_sgl_rd: entries of a READ's scatter list that still perform well
 * @rss_caps: receive side scaling, for processes
 * @max_wq_type_rq: number of receive WQs, for processes
 * @raw_packet_caps: what raw packet QPs can do, for processes
 * @tm_caps: tag-matching SRQs, for processes
 * @max_dm_size: bytes of the device's own memory, for processes
 */
struct ib_device_attr {
	u64			fw_ver;
	__be64			sys_image_guid;
	u64			max_mr_size;
	u64			page_size_cap;
	u32			vendor_id;
	u32			vendor_part_id;
	u32			hw_ver;
	int			max_qp;
	int			max_qp_wr;
	u64			device_cap_flags;
	u64			kernel_cap_flags;
	int			max_send_sge;
	int			max_recv_sge;
	int			max_sge_rd;
	int			max_cq;
	int			max_cqe;
	int			max_mr;
	int			max_pd;
	int			max_qp_rd_atom;
	int			max_ee_rd_atom;
	int			max_res_rd_atom;
	int			max_qp_init_rd_atom;
	int			max_ee_init_rd_atom;
	enum ib_atomic_cap	atomic_cap;
	enum ib_atomic_cap	masked_atomic_cap;
	int			max_ee;
	int			max_rdd;
	int			max_mw;
	int			max_fmr;
	int			max_map_per_fmr;
	int			max_raw_ipv6_qp;
	int			max_raw_ethy_qp;
	int			max_mcast_grp;
	int			max_mcast_qp_attach;
	int			max_total_mcast_qp_attach;
	int			max_ah;
	int			max_srq;
	int			max_srq_wr;
	int			max_srq_sge;
	unsigned int		max_fast_reg_page_list_len;
	unsigned int		max_pi_fast_reg_page_list_len;
	u16			max_pkeys;
	u8			local_ca_ack_delay;
	int			sig_prot_cap;
	int			sig_guard_cap;
	struct ib_odp_caps	odp_caps;
	u64			timestamp_mask;
	u64			hca_core_clock;
	struct ib_cq_caps	cq_caps;
	u32			max_sgl_rd;
	struct ib_rss_caps	rss_caps;
	u32			max_wq_type_rq;
	u32			raw_packet_caps;
	struct ib_tm_caps	tm_caps;
	u64			max_dm_size;
};

enum ib_device_modify_flags {
	IB_DEVICE_MODIFY_SYS_IMAGE_GUID		= BIT(0),
	IB_DEVICE_MODIFY_NODE_DESC		= BIT(1)
};

#define IB_DEVICE_NODE_DESC_MAX		64

/**
 * struct ib_device_modify - attributes that ib_device_ops.modify_device sets
 * @sys_image_guid: with %IB_DEVICE_MODIFY_SYS_IMAGE_GUID
 * @node_desc: with %IB_DEVICE_MODIFY_NODE_DESC, not necessarily terminated
 */
struct ib_device_modify {
	u64	sys_image_guid;
	char	node_desc[IB_DEVICE_NODE_DESC_MAX];
};

#define IB_FW_VERSION_NAME_MAX		ETHTOOL_FWVERS_LEN

/* GIDs */

/**
 * union ib_gid - a global identifier, the address of a port
 * @raw: its bytes, as on the wire
 * @global: its parts
 * @global.subnet_prefix: the upper half
 * @global.interface_id: the lower half
 */
union ib_gid {
	u8	raw[16];
	struct {
		__be64	subnet_prefix;
		__be64	interface_id;
	} global;
};

extern union ib_gid zgid;

enum ib_gid_type {
	IB_GID_TYPE_IB			= 0,
	IB_GID_TYPE_ROCE		= 1,	/* RoCE v1, Ethertype 0x8915 */
	IB_GID_TYPE_ROCE_UDP_ENCAP	= 2,	/* RoCE v2, UDP */
	IB_GID_TYPE_SIZE
};

#define ROCE_V2_UDP_DPORT		4791

/**
 * struct ib_gid_attr - an entry of a port's GID table
 * @ndev: network device of a RoCE GID, to be read under RCU; becomes NULL when the
 *	GID leaves the table
 * @device: device of the table
 * @gid: the GID
 * @gid_type: type of the GID
 * @index: index in the table
 * @port_num: port of the table
 */
struct ib_gid_attr {
	struct net_device __rcu	*ndev;
	struct ib_device	*device;
	union ib_gid		gid;
	enum ib_gid_type	gid_type;
	u16			index;
	u32			port_num;
};

enum {
	/* Local GUIDs have the universal/local bit set. */
	IB_SA_WELL_KNOWN_GUID		= BIT_ULL(57) | 2,
};

enum rdma_network_type {
	RDMA_NETWORK_IB,
	RDMA_NETWORK_ROCE_V1,
	RDMA_NETWORK_IPV4,
	RDMA_NETWORK_IPV6
};

static inline enum ib_gid_type
ib_network_to_gid_type(enum rdma_network_type network_type)
{
	switch (network_type) {
	case RDMA_NETWORK_IPV4:
	case RDMA_NETWORK_IPV6:
		return IB_GID_TYPE_ROCE_UDP_ENCAP;
	case RDMA_NETWORK_ROCE_V1:
		return IB_GID_TYPE_ROCE;
	default:
		return IB_GID_TYPE_IB;
	}
}

static inline enum rdma_network_type
rdma_gid_attr_network_type(const struct ib_gid_attr *attr)
{
	switch (attr->gid_type) {
	case IB_GID_TYPE_IB:
		return RDMA_NETWORK_IB;
	case IB_GID_TYPE_ROCE:
		return RDMA_NETWORK_ROCE_V1;
	default:
		return ipv6_addr_v4mapped((const struct in6_addr *)&attr->gid) ?
			RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6;
	}
}

/* Ports */

enum rdma_link_layer {
	IB_LINK_LAYER_UNSPECIFIED,
	IB_LINK_LAYER_INFINIBAND,
	IB_LINK_LAYER_ETHERNET,
};

enum ib_mtu {
	IB_MTU_256	= 1,
	IB_MTU_512	= 2,
	IB_MTU_1024	= 3,
	IB_MTU_2048	= 4,
	IB_MTU_4096	= 5
};

enum opa_mtu {
	OPA_MTU_8192	= 6,
	OPA_MTU_10240	= 7
};

/* Code n stands for 2^(n + 7) bytes. Returns -1 for a code that enum ib_mtu lacks. */
static inline int ib_mtu_enum_to_int(enum ib_mtu mtu)
{
	return mtu >= IB_MTU_256 && mtu <= IB_MTU_4096 ? 128 << mtu : -1;
}

/* The largest MTU that does not exceed @mtu bytes, but at least IB_MTU_256. */
static inline enum ib_mtu ib_mtu_int_to_enum(int mtu)
{
	enum ib_mtu code = IB_MTU_4096;

	while (code > IB_MTU_256 && ib_mtu_enum_to_int(code) > mtu)
		code--;
	return code;
}

static inline int opa_mtu_enum_to_int(enum opa_mtu mtu)
{
	switch (mtu) {
	case OPA_MTU_8192:
		return 8192;
	case OPA_MTU_10240:
		return 10240;
	default:
		return ib_mtu_enum_to_int((enum ib_mtu)mtu);
	}
}

static inline enum opa_mtu opa_mtu_int_to_enum(int mtu)
{
	if (mtu >= 10240)
		return OPA_MTU_10240;
	if (mtu >= 8192)
		return OPA_MTU_8192;
	return (enum opa_mtu)ib_mtu_int_to_enum(mtu);
}

enum ib_port_state {
	IB_PORT_NOP		= 0,
	IB_PORT_DOWN		= 1,
	IB_PORT_INIT		= 2,
	IB_PORT_ARMED		= 3,
	IB_PORT_ACTIVE		= 4,
	IB_PORT_ACTIVE_DEFER	= 5
};

enum ib_port_phys_state {
	IB_PORT_PHYS_STATE_SLEEP			= 1,
	IB_PORT_PHYS_STATE_POLLING			= 2,
	IB_PORT_PHYS_STATE_DISABLED			= 3,
	IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING	= 4,
	IB_PORT_PHYS_STATE_LINK_UP			= 5,
	IB_PORT_PHYS_STATE_LINK_ERROR_RECOVERY		= 6,
	IB_PORT_PHYS_STATE_PHY_TEST			= 7,
};

enum ib_port_width {
	IB_WIDTH_1X	= 1,
	IB_WIDTH_2X	= 16,
	IB_WIDTH_4X	= 2,
	IB_WIDTH_8X	= 4,
	IB_WIDTH_12X	= 8
};

static inline int ib_width_enum_to_int(enum ib_port_width width)
{
	switch (width) {
	case IB_WIDTH_1X:
		return 1;
	case IB_WIDTH_2X:
		return 2;
	case IB_WIDTH_4X:
		return 4;
	case IB_WIDTH_8X:
		return 8;
	case IB_WIDTH_12X:
		return 12;
	default:
		return -1;
	}
}

enum ib_port_speed {
	IB_SPEED_SDR	= 1,
	IB_SPEED_DDR	= 2,
	IB_SPEED_QDR	= 4,
	IB_SPEED_FDR10	= 8,
	IB_SPEED_FDR	= 16,
	IB_SPEED_EDR	= 32,
	IB_SPEED_HDR	= 64,
	IB_SPEED_NDR	= 128,
	IB_SPEED_XDR	= 256,
};

/**
 * struct ib_port_attr - state and limits of a port
 * @subnet_prefix: upper half of the port's default GID
 * @state: logical state
 * @max_mtu: largest MTU
 * @active_mtu: MTU in use
 * @phys_mtu: MTU of the link in bytes
 * @gid_tbl_len: entries of the GID table
 * @ip_gids: the port's GIDs are made from IP addresses
 * @port_cap_flags: PortInfo:CapabilityMask, bits as in <rdma/ib_mad.h>
 * @max_msg_sz: bytes in the largest message
 * @bad_pkey_cntr: messages dropped for their P_Key
 * @qkey_viol_cntr: messages dropped for their Q_Key
 * @pkey_tbl_len: entries of the P_Key table
 * @sm_lid: LID of the subnet manager
 * @lid: base LID
 * @lmc: number of low bits of the LID that are path bits
 * @max_vl_num: code for the number of virtual lanes
 * @sm_sl: service level of the subnet manager
 * @subnet_timeout: response time of the subnet, 4.096 us * 2^value
 * @init_type_reply: initialization that the subnet manager did
 * @active_width: &enum ib_port_width
 * @active_speed: &enum ib_port_speed
 * @phys_state: &enum ib_port_phys_state
 * @port_cap_flags2: PortInfo:CapabilityMask2
 */
struct ib_port_attr {
	u64			subnet_prefix;
	enum ib_port_state	state;
	enum ib_mtu		max_mtu;
	enum ib_mtu		active_mtu;
	u32			phys_mtu;
	int			gid_tbl_len;
	unsigned int		ip_gids:1;
	u32			port_cap_flags;
	u32			max_msg_sz;
	u32			bad_pkey_cntr;
	u32			qkey_viol_cntr;
	u16			pkey_tbl_len;
	u32			sm_lid;
	u32			lid;
	u8			lmc;
	u8			max_vl_num;
	u8			sm_sl;
	u8			subnet_timeout;
	u8			init_type_reply;
	u8			active_width;
	u16			active_speed;
	u8			phys_state;
	u16			port_cap_flags2;
};

enum ib_port_modify_flags {
	IB_PORT_SHUTDOWN		= BIT(0),
	IB_PORT_INIT_TYPE		= BIT(2),
	IB_PORT_RESET_QKEY_CNTR		= BIT(3),
	IB_PORT_OPA_MASK_CHG		= BIT(4)
};

/**
 * struct ib_port_modify - changes to a port
 * @set_port_cap_mask: bits of port_cap_flags to set
 * @clr_port_cap_mask: bits of port_cap_flags to clear
 * @init_type: initialization wanted from the subnet manager
 */
struct ib_port_modify {
	u32	set_port_cap_mask;
	u32	clr_port_cap_mask;
	u8	init_type;
};

/* Capabilities of a port: management, address format, protocol. */
#define RDMA_CORE_CAP_IB_MAD			0x00000001
#define RDMA_CORE_CAP_IB_SMI			0x00000002
#define RDMA_CORE_CAP_IB_CM			0x00000004
#define RDMA_CORE_CAP_IW_CM			0x00000008
#define RDMA_CORE_CAP_IB_SA			0x00000010
#define RDMA_CORE_CAP_OPA_MAD			0x00000020

#define RDMA_CORE_CAP_AF_IB			0x00001000
#define RDMA_CORE_CAP_ETH_AH			0x00002000
#define RDMA_CORE_CAP_OPA_AH			0x00004000
#define RDMA_CORE_CAP_IB_GRH_REQUIRED		0x00008000

#define RDMA_CORE_CAP_PROT_IB			0x00100000
#define RDMA_CORE_CAP_PROT_ROCE			0x00200000
#define RDMA_CORE_CAP_PROT_IWARP		0x00400000
#define RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP	0x00800000
#define RDMA_CORE_CAP_PROT_RAW_PACKET		0x01000000
#define RDMA_CORE_CAP_PROT_USNIC		0x02000000

/* The usual sets of capabilities, by kind of port. */
#define RDMA_CORE_PORT_IB_GRH_REQUIRED					\
	(RDMA_CORE_CAP_IB_GRH_REQUIRED | RDMA_CORE_CAP_PROT_ROCE |	\
	 RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP)
#define RDMA_CORE_PORT_IBA_IB						\
	(RDMA_CORE_CAP_PROT_IB | RDMA_CORE_CAP_IB_MAD |			\
	 RDMA_CORE_CAP_IB_SMI | RDMA_CORE_CAP_IB_CM |			\
	 RDMA_CORE_CAP_IB_SA | RDMA_CORE_CAP_AF_IB)
#define RDMA_CORE_PORT_IBA_ROCE						\
	(RDMA_CORE_CAP_PROT_ROCE | RDMA_CORE_CAP_IB_MAD |		\
	 RDMA_CORE_CAP_IB_CM | RDMA_CORE_CAP_AF_IB |			\
	 RDMA_CORE_CAP_ETH_AH)
#define RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP				\
	(RDMA_CORE_CAP_PROT_ROCE_UDP_ENCAP | RDMA_CORE_CAP_IB_MAD |	\
	 RDMA_CORE_CAP_IB_CM | RDMA_CORE_CAP_AF_IB |			\
	 RDMA_CORE_CAP_ETH_AH)
#define RDMA_CORE_PORT_IWARP						\
	(RDMA_CORE_CAP_PROT_IWARP | RDMA_CORE_CAP_IW_CM)
#define RDMA_CORE_PORT_INTEL_OPA					\
	(RDMA_CORE_PORT_IBA_IB | RDMA_CORE_CAP_OPA_MAD)
#define RDMA_CORE_PORT_RAW_PACKET	RDMA_CORE_CAP_PROT_RAW_PACKET
#define RDMA_CORE_PORT_USNIC		RDMA_CORE_CAP_PROT_USNIC

/**
 * struct ib_port_immutable - properties of a port that do not change while its
 *	device is registered
 * @pkey_tbl_len: number of entries of the P_Key table
 * @gid_tbl_len: number of entries of the GID table
 * @core_cap_flags: RDMA_CORE_CAP_*
 * @max_mad_size: bytes in a management datagram; 0 if the port has none
 */
struct ib_port_immutable {
	int	pkey_tbl_len;
	int	gid_tbl_len;
	u32	core_cap_flags;
	u32	max_mad_size;
};

/* What ib_device_ops.process_mad has done with a management datagram. */
enum ib_mad_result {
	IB_MAD_RESULT_FAILURE	= 0,
	IB_MAD_RESULT_SUCCESS	= BIT(0),
	IB_MAD_RESULT_REPLY	= BIT(1),	/* there is an answer to send */
	IB_MAD_RESULT_CONSUMED	= BIT(2),	/* no agent is to see it */
};

/* Asynchronous events */

enum ib_event_type {
	IB_EVENT_CQ_ERR,
	IB_EVENT_QP_FATAL,
	IB_EVENT_QP_REQ_ERR,
	IB_EVENT_QP_ACCESS_ERR,
	IB_EVENT_COMM_EST,
	IB_EVENT_SQ_DRAINED,
	IB_EVENT_PATH_MIG,
	IB_EVENT_PATH_MIG_ERR,
	IB_EVENT_DEVICE_FATAL,
	IB_EVENT_PORT_ACTIVE,
	IB_EVENT_PORT_ERR,
	IB_EVENT_LID_CHANGE,
	IB_EVENT_PKEY_CHANGE,
	IB_EVENT_SM_CHANGE,
	IB_EVENT_SRQ_ERR,
	IB_EVENT_SRQ_LIMIT_REACHED,
	IB_EVENT_QP_LAST_WQE_REACHED,
	IB_EVENT_CLIENT_REREGISTER,
	IB_EVENT_GID_CHANGE,
	IB_EVENT_WQ_FATAL,
};

/**
 * struct ib_event - an asynchronous event
 * @device: device of the event
 * @element: the object that it is about; @event says which member is valid
 * @element.cq: for events of a CQ
 * @element.qp: for events of a QP
 * @element.srq: for events of an SRQ
 * @element.wq: for events of a WQ, which no driver here has
 * @element.port_num: for events of a port
 * @event: what happened
 */
struct ib_event {
	struct ib_device	*device;
	union {
		struct ib_cq	*cq;
		struct ib_qp	*qp;
		struct ib_srq	*srq;
		struct ib_wq	*wq;
		u32		port_num;
	} element;
	enum ib_event_type	event;
};

/**
 * struct ib_event_handler - a consumer of a device's events
 * @device: device whose events are wanted
 * @handler: called for each event, from a work item; must not sleep
 * @list: private to the core
 */
struct ib_event_handler {
	struct ib_device	*device;
	void			(*handler)(struct ib_event_handler *handler,
					   struct ib_event *event);
	struct list_head	list;
};

#define INIT_IB_EVENT_HANDLER(_ptr, _device, _handler)	\
	do {						\
		(_ptr)->device = (_device);		\
		(_ptr)->handler = (_handler);		\
		INIT_LIST_HEAD(&(_ptr)->list);		\
	} while (0)

const char *__attribute_const__ ib_event_msg(enum ib_event_type event);

#endif /* _RDMA_IB_TYPES_H */
