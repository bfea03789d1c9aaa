/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Address vectors, queue pair attributes, work requests and completions.
 * Include <rdma/ib_verbs.h>, which includes this.
 */
#ifndef _RDMA_IB_WR_H
#define _RDMA_IB_WR_H

#include <rdma/ib_mr.h>
#include <rdma/ib_types.h>

struct ib_ah;

/* Address vectors */

#define IB_QPN_MASK			0xFFFFFF
enum {
	IB_MULTICAST_QPN	= 0xffffff
};

#define IB_LID_PERMISSIVE		cpu_to_be16(0xFFFF)
#define IB_MULTICAST_LID_BASE		cpu_to_be16(0xC000)
#define IB_GRH_FLOWLABEL_MASK		0x000FFFFF

enum ib_ah_flags {
	IB_AH_GRH	= 1
};

/* Static rates, IBTA vol. 1, PathRecord:Rate. */
enum ib_rate {
	IB_RATE_PORT_CURRENT	= 0,
	IB_RATE_2_5_GBPS	= 2,
	IB_RATE_10_GBPS		= 3,
	IB_RATE_30_GBPS		= 4,
	IB_RATE_5_GBPS		= 5,
	IB_RATE_20_GBPS		= 6,
	IB_RATE_40_GBPS		= 7,
	IB_RATE_60_GBPS		= 8,
	IB_RATE_80_GBPS		= 9,
	IB_RATE_120_GBPS	= 10,
	IB_RATE_14_GBPS		= 11,
	IB_RATE_56_GBPS		= 12,
	IB_RATE_112_GBPS	= 13,
	IB_RATE_168_GBPS	= 14,
	IB_RATE_25_GBPS		= 15,
	IB_RATE_100_GBPS	= 16,
	IB_RATE_200_GBPS	= 17,
	IB_RATE_300_GBPS	= 18,
	IB_RATE_28_GBPS		= 19,
	IB_RATE_50_GBPS		= 20,
	IB_RATE_400_GBPS	= 21,
	IB_RATE_600_GBPS	= 22,
	IB_RATE_800_GBPS	= 23,
};

__attribute_const__ int ib_rate_to_mult(enum ib_rate rate);
__attribute_const__ int ib_rate_to_mbps(enum ib_rate rate);
__attribute_const__ enum ib_rate mult_to_ib_rate(int mult);

/**
 * struct ib_global_route - the part of an address that applies beyond the subnet
 * @sgid_attr: source GID, with a reference; NULL until the core looks @sgid_index up
 * @dgid: destination GID
 * @flow_label: 20 bits
 * @sgid_index: index of the source GID in the port's table
 * @hop_limit: number of routers that the packet may pass
 * @traffic_class: 8 bits
 */
struct ib_global_route {
	const struct ib_gid_attr *sgid_attr;
	union ib_gid		dgid;
	u32			flow_label;
	u8			sgid_index;
	u8			hop_limit;
	u8			traffic_class;
};

/**
 * struct ib_grh - global route header as on the wire
 * @version_tclass_flow: version 4 bits, traffic class 8, flow label 20
 * @paylen: number of bytes that follow
 * @next_hdr: 0x1b for IBA
 * @hop_limit: number of routers that the packet may still pass
 * @sgid: source
 * @dgid: destination
 */
struct ib_grh {
	__be32		version_tclass_flow;
	__be16		paylen;
	u8		next_hdr;
	u8		hop_limit;
	union ib_gid	sgid;
	union ib_gid	dgid;
};

/**
 * union rdma_network_hdr - network header in front of a received datagram
 * @ibgrh: for InfiniBand, RoCE v1 and RoCE v2 over IPv6
 * @reserved: unused when the header is IPv4
 * @roce4grh: for RoCE v2 over IPv4: the last 20 of the 40 bytes
 */
union rdma_network_hdr {
	struct ib_grh	ibgrh;
	struct {
		u8		reserved[20];
		struct iphdr	roce4grh;
	};
};

enum rdma_ah_attr_type {
	RDMA_AH_ATTR_TYPE_UNDEFINED,
	RDMA_AH_ATTR_TYPE_IB,
	RDMA_AH_ATTR_TYPE_ROCE,
	RDMA_AH_ATTR_TYPE_OPA,
};

/**
 * struct ib_ah_attr - address within an InfiniBand subnet
 * @dlid: destination LID
 * @src_path_bits: added to the port's base LID
 */
struct ib_ah_attr {
	u16	dlid;
	u8	src_path_bits;
};

/**
 * struct roce_ah_attr - address within an Ethernet
 * @dmac: destination, or the next hop towards it
 */
struct roce_ah_attr {
	u8	dmac[ETH_ALEN];
};

/**
 * struct opa_ah_attr - address within an Omni-Path fabric
 * @dlid: destination LID
 * @src_path_bits: added to the port's base LID
 * @make_grd: the driver is to make a global route
 */
struct opa_ah_attr {
	u32	dlid;
	u8	src_path_bits;
	bool	make_grd;
};

/**
 * struct rdma_ah_attr - an address vector
 * @grh: global route, valid when @ah_flags has %IB_AH_GRH
 * @sl: service level
 * @static_rate: &enum ib_rate
 * @port_num: local port
 * @ah_flags: &enum ib_ah_flags
 * @type: says which of the last members is valid
 * @ib: for %RDMA_AH_ATTR_TYPE_IB
 * @roce: for %RDMA_AH_ATTR_TYPE_ROCE
 * @opa: for %RDMA_AH_ATTR_TYPE_OPA
 */
struct rdma_ah_attr {
	struct ib_global_route	grh;
	u8			sl;
	u8			static_rate;
	u32			port_num;
	u8			ah_flags;
	enum rdma_ah_attr_type	type;
	union {
		struct ib_ah_attr	ib;
		struct roce_ah_attr	roce;
		struct opa_ah_attr	opa;
	};
};

/**
 * struct rdma_ah_init_attr - argument of ib_device_ops.create_ah
 * @ah_attr: the address vector
 * @flags: &enum rdma_create_ah_flags
 * @xmit_slave: network device to send through; NULL if it does not matter
 */
struct rdma_ah_init_attr {
	struct rdma_ah_attr	*ah_attr;
	u32			flags;
	struct net_device	*xmit_slave;
};

enum rdma_create_ah_flags {
	RDMA_CREATE_AH_SLEEPABLE	= BIT(0),
};

enum rdma_destroy_ah_flags {
	RDMA_DESTROY_AH_SLEEPABLE	= BIT(0),
};

/* Completions */

enum ib_wc_status {
	IB_WC_SUCCESS,
	IB_WC_LOC_LEN_ERR,
	IB_WC_LOC_QP_OP_ERR,
	IB_WC_LOC_EEC_OP_ERR,
	IB_WC_LOC_PROT_ERR,
	IB_WC_WR_FLUSH_ERR,
	IB_WC_MW_BIND_ERR,
	IB_WC_BAD_RESP_ERR,
	IB_WC_LOC_ACCESS_ERR,
	IB_WC_REM_INV_REQ_ERR,
	IB_WC_REM_ACCESS_ERR,
	IB_WC_REM_OP_ERR,
	IB_WC_RETRY_EXC_ERR,
	IB_WC_RNR_RETRY_EXC_ERR,
	IB_WC_LOC_RDD_VIOL_ERR,
	IB_WC_REM_INV_RD_REQ_ERR,
	IB_WC_REM_ABORT_ERR,
	IB_WC_INV_EECN_ERR,
	IB_WC_INV_EEC_STATE_ERR,
	IB_WC_FATAL_ERR,
	IB_WC_RESP_TIMEOUT_ERR,
	IB_WC_GENERAL_ERR
};

const char *__attribute_const__ ib_wc_status_msg(enum ib_wc_status status);

enum ib_wc_opcode {
	IB_WC_SEND			= 0,
	IB_WC_RDMA_WRITE		= 1,
	IB_WC_RDMA_READ			= 2,
	IB_WC_COMP_SWAP			= 3,
	IB_WC_FETCH_ADD			= 4,
	IB_WC_BIND_MW			= 5,
	IB_WC_LOCAL_INV			= 6,
	IB_WC_LSO			= 7,
	IB_WC_FLUSH			= 8,
	IB_WC_ATOMIC_WRITE		= 9,
	IB_WC_REG_MR			= 10,
	IB_WC_MASKED_COMP_SWAP		= 11,
	IB_WC_MASKED_FETCH_ADD		= 12,
	/* This bit is set in all completions of a receive queue. */
	IB_WC_RECV			= BIT(7),
	IB_WC_RECV_RDMA_WITH_IMM
};

enum ib_wc_flags {
	IB_WC_GRH			= BIT(0),
	IB_WC_WITH_IMM			= BIT(1),
	IB_WC_WITH_INVALIDATE		= BIT(2),
	IB_WC_IP_CSUM_OK		= BIT(3),
	IB_WC_WITH_SMAC			= BIT(4),
	IB_WC_WITH_VLAN			= BIT(5),
	IB_WC_WITH_NETWORK_HDR_TYPE	= BIT(6),
};

/**
 * struct ib_wc - a completion
 * @wr_id: as in the work request
 * @wr_cqe: as in the work request
 * @status: result of the request; after an error, the only other valid members are
 *	@wr_id, @qp and @vendor_err
 * @opcode: operation that was completed
 * @vendor_err: the device's own error code
 * @byte_len: bytes received or read
 * @qp: queue pair of the work request
 * @ex: @wc_flags says which member is valid
 * @ex.imm_data: immediate data, with %IB_WC_WITH_IMM
 * @ex.invalidate_rkey: invalidated key, with %IB_WC_WITH_INVALIDATE
 * @src_qp: sender of a datagram
 * @slid: LID that the datagram came from
 * @wc_flags: &enum ib_wc_flags
 * @pkey_index: index of the datagram's P_Key, on a GSI QP
 * @sl: service level of the datagram
 * @dlid_path_bits: low bits of the LID that the datagram was sent to
 * @port_num: port that the datagram arrived at, for directed-route SMPs on a switch
 * @smac: sender's Ethernet address, with %IB_WC_WITH_SMAC
 * @vlan_id: VLAN, with %IB_WC_WITH_VLAN
 * @network_hdr_type: &enum rdma_network_type, with
 *	%IB_WC_WITH_NETWORK_HDR_TYPE
 * @timestamp: when the device wrote the completion, see ib_cq_stamp(); 0 if
 *	unknown. Only for drivers and the CQ layer
 */
struct ib_wc {
	union {
		u64		wr_id;
		struct ib_cqe	*wr_cqe;
	};
	enum ib_wc_status	status;
	enum ib_wc_opcode	opcode;
	u32			vendor_err;
	u32			byte_len;
	struct ib_qp		*qp;
	union {
		__be32		imm_data;
		u32		invalidate_rkey;
	} ex;
	u32			src_qp;
	u32			slid;
	int			wc_flags;
	u16			pkey_index;
	u8			sl;
	u8			dlid_path_bits;
	u32			port_num;
	u8			smac[ETH_ALEN];
	u16			vlan_id;
	u8			network_hdr_type;
	u64			timestamp;
};

enum ib_cq_notify_flags {
	IB_CQ_SOLICITED			= BIT(0),
	IB_CQ_NEXT_COMP			= BIT(1),
	IB_CQ_SOLICITED_MASK		= IB_CQ_SOLICITED | IB_CQ_NEXT_COMP,
	IB_CQ_REPORT_MISSED_EVENTS	= BIT(2),
};

enum ib_cq_attr_mask {
	IB_CQ_MODERATE			= BIT(0),
};

/**
 * struct ib_cq_init_attr - how to make a CQ
 * @cqe: entries wanted
 * @comp_vector: completion vector
 * @flags: 0
 */
struct ib_cq_init_attr {
	unsigned int	cqe;
	u32		comp_vector;
	u32		flags;
};

/**
 * struct ib_cqe - what to do on completion; embedded in the consumer's request
 * @done: called by the CQ layer for each completion of the request
 */
struct ib_cqe {
	void (*done)(struct ib_cq *cq, struct ib_wc *wc);
};

/* Shared receive queues */

enum ib_srq_type {
	IB_SRQT_BASIC,
	IB_SRQT_XRC,
	IB_SRQT_TM,
};

static inline bool ib_srq_has_cq(enum ib_srq_type srq_type)
{
	return srq_type == IB_SRQT_XRC || srq_type == IB_SRQT_TM;
}

enum ib_srq_attr_mask {
	IB_SRQ_MAX_WR	= BIT(0),
	IB_SRQ_LIMIT	= BIT(1),
};

/**
 * struct ib_srq_attr - size and limit of an SRQ
 * @max_wr: maximum number of work requests in the queue
 * @max_sge: maximum scatter entries of a work request
 * @srq_limit: when fewer requests than this are left, %IB_EVENT_SRQ_LIMIT_REACHED is
 *	raised, once; 0: never
 */
struct ib_srq_attr {
	u32	max_wr;
	u32	max_sge;
	u32	srq_limit;
};

/**
 * struct ib_srq_init_attr - how to make an SRQ
 * @event_handler: called for events of the SRQ; must not sleep
 * @srq_context: passed to @event_handler
 * @attr: size and limit that are wanted; the actual ones on return
 * @srq_type: %IB_SRQT_BASIC, the only type that kernel callers can have
 * @ext: for the other types
 * @ext.cq: completion queue
 * @ext.xrc: for an XRC SRQ
 * @ext.xrc.xrcd: its domain
 * @ext.tag_matching: for a tag-matching SRQ
 * @ext.tag_matching.max_num_tags: size of its list
 */
struct ib_srq_init_attr {
	void			(*event_handler)(struct ib_event *event,
						 void *srq_context);
	void			*srq_context;
	struct ib_srq_attr	attr;
	enum ib_srq_type	srq_type;
	struct {
		struct ib_cq	*cq;
		union {
			struct {
				struct ib_xrcd	*xrcd;
			} xrc;
			struct {
				u32		max_num_tags;
			} tag_matching;
		};
	} ext;
};

/* Queue pairs */

/**
 * struct ib_qp_cap - sizes of a QP
 * @max_send_wr: maximum outstanding work requests in the send queue
 * @max_recv_wr: maximum outstanding work requests in the receive queue
 * @max_send_sge: maximum gather entries of a send work request
 * @max_recv_sge: maximum scatter entries of a receive work request
 * @max_inline_data: maximum bytes of an %IB_SEND_INLINE message
 * @max_rdma_ctxs: rdma_rw contexts, which the module kverbs_mad has (Documentation/ulps.rst);
 *	0 without it
 */
struct ib_qp_cap {
	u32	max_send_wr;
	u32	max_recv_wr;
	u32	max_send_sge;
	u32	max_recv_sge;
	u32	max_inline_data;
	u32	max_rdma_ctxs;
};

enum ib_sig_type {
	IB_SIGNAL_ALL_WR,
	IB_SIGNAL_REQ_WR
};

enum ib_qp_type {
	IB_QPT_SMI		= 0,
	IB_QPT_GSI		= 1,
	IB_QPT_RC		= 2,
	IB_QPT_UC		= 3,
	IB_QPT_UD		= 4,
	IB_QPT_RAW_IPV6		= 5,
	IB_QPT_RAW_ETHERTYPE	= 6,
	IB_QPT_RAW_PACKET	= 8,
	IB_QPT_XRC_INI		= 9,
	IB_QPT_XRC_TGT		= 10,
	IB_QPT_MAX,
	IB_QPT_DRIVER		= 0xff,
	/* For a driver's internal use. */
	IB_QPT_RESERVED1	= 0x1000,
	IB_QPT_RESERVED2,
	IB_QPT_RESERVED3,
	IB_QPT_RESERVED4,
	IB_QPT_RESERVED5,
	IB_QPT_RESERVED6,
	IB_QPT_RESERVED7,
	IB_QPT_RESERVED8,
	IB_QPT_RESERVED9,
	IB_QPT_RESERVED10,
};

enum ib_qp_create_flags {
	IB_QP_CREATE_IPOIB_UD_LSO		= BIT(0),
	IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK	= BIT(1),
	IB_QP_CREATE_CROSS_CHANNEL		= BIT(2),
	IB_QP_CREATE_MANAGED_SEND		= BIT(3),
	IB_QP_CREATE_MANAGED_RECV		= BIT(4),
	IB_QP_CREATE_NETIF_QP			= BIT(5),
	IB_QP_CREATE_INTEGRITY_EN		= BIT(6),
	IB_QP_CREATE_NETDEV_USE			= BIT(7),
	IB_QP_CREATE_SCATTER_FCS		= BIT(8),
	IB_QP_CREATE_CVLAN_STRIPPING		= BIT(9),
	IB_QP_CREATE_SOURCE_QPN			= BIT(10),
	IB_QP_CREATE_PCI_WRITE_END_PADDING	= BIT(11),
	/* For a driver's internal use. */
	IB_QP_CREATE_RESERVED_START		= BIT(26),
	IB_QP_CREATE_RESERVED_END		= BIT(31),
};

/**
 * struct ib_qp_init_attr - how to make a QP
 * @event_handler: called for events of the QP; must not sleep, nor destroy the QP
 * @qp_context: passed to @event_handler
 * @send_cq: where send completions go
 * @recv_cq: where receive completions go
 * @srq: shared receive queue, or NULL
 * @xrcd: NULL: XRC is not supported
 * @cap: sizes that are wanted; the actual ones on return
 * @sq_sig_type: which send requests generate a completion when they succeed
 * @qp_type: transport
 * @create_flags: &enum ib_qp_create_flags
 * @port_num: port, for SMI and GSI QPs and for users of rdma_rw
 * @rwq_ind_tbl: NULL: RSS is not supported
 * @source_qpn: source QP number, with %IB_QP_CREATE_SOURCE_QPN
 */
struct ib_qp_init_attr {
	void			(*event_handler)(struct ib_event *event,
						 void *qp_context);
	void			*qp_context;
	struct ib_cq		*send_cq;
	struct ib_cq		*recv_cq;
	struct ib_srq		*srq;
	struct ib_xrcd		*xrcd;
	struct ib_qp_cap	cap;
	enum ib_sig_type	sq_sig_type;
	enum ib_qp_type		qp_type;
	u32			create_flags;
	u32			port_num;
	struct ib_rwq_ind_table	*rwq_ind_tbl;
	u32			source_qpn;
};

/* RNR NAK timer codes: IB_RNR_TIMER_mmm_hh waits mmm.hh milliseconds. */
enum ib_rnr_timeout {
	IB_RNR_TIMER_655_36,
	IB_RNR_TIMER_000_01,
	IB_RNR_TIMER_000_02,
	IB_RNR_TIMER_000_03,
	IB_RNR_TIMER_000_04,
	IB_RNR_TIMER_000_06,
	IB_RNR_TIMER_000_08,
	IB_RNR_TIMER_000_12,
	IB_RNR_TIMER_000_16,
	IB_RNR_TIMER_000_24,
	IB_RNR_TIMER_000_32,
	IB_RNR_TIMER_000_48,
	IB_RNR_TIMER_000_64,
	IB_RNR_TIMER_000_96,
	IB_RNR_TIMER_001_28,
	IB_RNR_TIMER_001_92,
	IB_RNR_TIMER_002_56,
	IB_RNR_TIMER_003_84,
	IB_RNR_TIMER_005_12,
	IB_RNR_TIMER_007_68,
	IB_RNR_TIMER_010_24,
	IB_RNR_TIMER_015_36,
	IB_RNR_TIMER_020_48,
	IB_RNR_TIMER_030_72,
	IB_RNR_TIMER_040_96,
	IB_RNR_TIMER_061_44,
	IB_RNR_TIMER_081_92,
	IB_RNR_TIMER_122_88,
	IB_RNR_TIMER_163_84,
	IB_RNR_TIMER_245_76,
	IB_RNR_TIMER_327_68,
	IB_RNR_TIMER_491_52
};

enum ib_qp_attr_mask {
	IB_QP_STATE			= BIT(0),
	IB_QP_CUR_STATE			= BIT(1),
	IB_QP_EN_SQD_ASYNC_NOTIFY	= BIT(2),
	IB_QP_ACCESS_FLAGS		= BIT(3),
	IB_QP_PKEY_INDEX		= BIT(4),
	IB_QP_PORT			= BIT(5),
	IB_QP_QKEY			= BIT(6),
	IB_QP_AV			= BIT(7),
	IB_QP_PATH_MTU			= BIT(8),
	IB_QP_TIMEOUT			= BIT(9),
	IB_QP_RETRY_CNT			= BIT(10),
	IB_QP_RNR_RETRY			= BIT(11),
	IB_QP_RQ_PSN			= BIT(12),
	IB_QP_MAX_QP_RD_ATOMIC		= BIT(13),
	IB_QP_ALT_PATH			= BIT(14),
	IB_QP_MIN_RNR_TIMER		= BIT(15),
	IB_QP_SQ_PSN			= BIT(16),
	IB_QP_MAX_DEST_RD_ATOMIC	= BIT(17),
	IB_QP_PATH_MIG_STATE		= BIT(18),
	IB_QP_CAP			= BIT(19),
	IB_QP_DEST_QPN			= BIT(20),
	IB_QP_RATE_LIMIT		= BIT(25),

	IB_QP_ATTR_STANDARD_BITS	= GENMASK(20, 0),
};

enum ib_qp_state {
	IB_QPS_RESET,
	IB_QPS_INIT,
	IB_QPS_RTR,
	IB_QPS_RTS,
	IB_QPS_SQD,
	IB_QPS_SQE,
	IB_QPS_ERR
};

enum ib_mig_state {
	IB_MIG_MIGRATED,
	IB_MIG_REARM,
	IB_MIG_ARMED
};

/**
 * struct ib_qp_attr - attributes of a QP; &enum ib_qp_attr_mask says which are valid
 * @qp_state: state to move to, or the state that was queried
 * @cur_qp_state: state that the caller assumes the QP is in
 * @path_mtu: MTU of the path
 * @path_mig_state: state of path migration
 * @qkey: Q_Key
 * @rq_psn: first packet number to expect
 * @sq_psn: first packet number to send
 * @dest_qp_num: peer's QP number
 * @qp_access_flags: &enum ib_access_flags that the peer is granted
 * @cap: sizes
 * @ah_attr: path to the peer
 * @alt_ah_attr: alternate path
 * @pkey_index: index of the P_Key in the port's table
 * @alt_pkey_index: same on the alternate path
 * @en_sqd_async_notify: raise %IB_EVENT_SQ_DRAINED
 * @sq_draining: the QP is in state SQD, and not drained yet
 * @max_rd_atomic: maximum outstanding reads and atomics as initiator
 * @max_dest_rd_atomic: maximum reads and atomics served at a time as target
 * @min_rnr_timer: &enum ib_rnr_timeout
 * @port_num: local port
 * @timeout: acknowledgement timeout, 4.096 us * 2^value; 0: none
 * @retry_cnt: number of retries after timeouts
 * @rnr_retry: number of retries after RNR NAKs; 7: no limit
 * @alt_port_num: local port of the alternate path
 * @alt_timeout: timeout on the alternate path
 * @rate_limit: in kbps, with %IB_QP_RATE_LIMIT
 * @xmit_slave: network device to send through, set by the core: always NULL
 */
struct ib_qp_attr {
	enum ib_qp_state	qp_state;
	enum ib_qp_state	cur_qp_state;
	enum ib_mtu		path_mtu;
	enum ib_mig_state	path_mig_state;
	u32			qkey;
	u32			rq_psn;
	u32			sq_psn;
	u32			dest_qp_num;
	int			qp_access_flags;
	struct ib_qp_cap	cap;
	struct rdma_ah_attr	ah_attr;
	struct rdma_ah_attr	alt_ah_attr;
	u16			pkey_index;
	u16			alt_pkey_index;
	u8			en_sqd_async_notify;
	u8			sq_draining;
	u8			max_rd_atomic;
	u8			max_dest_rd_atomic;
	u8			min_rnr_timer;
	u32			port_num;
	u8			timeout;
	u8			retry_cnt;
	u8			rnr_retry;
	u32			alt_port_num;
	u8			alt_timeout;
	u32			rate_limit;
	struct net_device	*xmit_slave;
};

/* Work requests */

enum ib_wr_opcode {
	IB_WR_RDMA_WRITE			= 0,
	IB_WR_RDMA_WRITE_WITH_IMM		= 1,
	IB_WR_SEND				= 2,
	IB_WR_SEND_WITH_IMM			= 3,
	IB_WR_RDMA_READ				= 4,
	IB_WR_ATOMIC_CMP_AND_SWP		= 5,
	IB_WR_ATOMIC_FETCH_AND_ADD		= 6,
	IB_WR_LOCAL_INV				= 7,
	IB_WR_BIND_MW				= 8,
	IB_WR_SEND_WITH_INV			= 9,
	IB_WR_LSO				= 10,
	IB_WR_RDMA_READ_WITH_INV		= 11,
	IB_WR_MASKED_ATOMIC_CMP_AND_SWP		= 12,
	IB_WR_MASKED_ATOMIC_FETCH_AND_ADD	= 13,
	IB_WR_FLUSH				= 14,
	IB_WR_ATOMIC_WRITE			= 15,

	IB_WR_REG_MR				= 0x20,
	IB_WR_REG_MR_INTEGRITY,

	/* For a driver's internal use. */
	IB_WR_RESERVED1				= 0xf0,
	IB_WR_RESERVED2,
	IB_WR_RESERVED3,
	IB_WR_RESERVED4,
	IB_WR_RESERVED5,
	IB_WR_RESERVED6,
	IB_WR_RESERVED7,
	IB_WR_RESERVED8,
	IB_WR_RESERVED9,
	IB_WR_RESERVED10,
};

enum ib_send_flags {
	IB_SEND_FENCE			= BIT(0),
	IB_SEND_SIGNALED		= BIT(1),
	IB_SEND_SOLICITED		= BIT(2),
	IB_SEND_INLINE			= BIT(3),
	IB_SEND_IP_CSUM			= BIT(4),
	/* For a driver's internal use. */
	IB_SEND_RESERVED_START		= BIT(26),
	IB_SEND_RESERVED_END		= BIT(31),
};

/**
 * struct ib_sge - a piece of local memory
 * @addr: its DMA address; its virtual address with %IB_SEND_INLINE
 * @length: bytes
 * @lkey: key of the memory region
 */
struct ib_sge {
	u64	addr;
	u32	length;
	u32	lkey;
};

/**
 * struct ib_send_wr - a request to the send queue
 * @next: next request of the list, or NULL
 * @wr_id: returned in the completion
 * @wr_cqe: same, for CQs of ib_alloc_cq()
 * @sg_list: local memory; the array may be reused after the post
 * @num_sge: number of entries of @sg_list
 * @opcode: operation
 * @send_flags: &enum ib_send_flags
 * @ex: @opcode says which member is used
 * @ex.imm_data: immediate data
 * @ex.invalidate_rkey: key to invalidate
 */
struct ib_send_wr {
	struct ib_send_wr	*next;
	union {
		u64		wr_id;
		struct ib_cqe	*wr_cqe;
	};
	struct ib_sge		*sg_list;
	int			num_sge;
	enum ib_wr_opcode	opcode;
	int			send_flags;
	union {
		__be32		imm_data;
		u32		invalidate_rkey;
	} ex;
};

/**
 * struct ib_rdma_wr - RDMA READ or WRITE
 * @wr: part that all requests have
 * @remote_addr: address in the peer's memory region
 * @rkey: key of that region
 */
struct ib_rdma_wr {
	struct ib_send_wr	wr;
	u64			remote_addr;
	u32			rkey;
};

static inline const struct ib_rdma_wr *rdma_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_rdma_wr, wr);
}

/**
 * struct ib_atomic_wr - atomic operation on 8 bytes of the peer's memory
 * @wr: part that all requests have
 * @remote_addr: address in the peer's memory region, 8-byte aligned
 * @compare_add: operand to compare with, or to add to, the value there
 * @swap: the new value
 * @compare_add_mask: bits to compare; for an addition, the top bit of each field, out
 *	of which nothing is carried
 * @swap_mask: bits to replace
 * @rkey: key of the memory region
 */
struct ib_atomic_wr {
	struct ib_send_wr	wr;
	u64			remote_addr;
	u64			compare_add;
	u64			swap;
	u64			compare_add_mask;
	u64			swap_mask;
	u32			rkey;
};

static inline const struct ib_atomic_wr *atomic_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_atomic_wr, wr);
}

/**
 * struct ib_ud_wr - datagram
 * @wr: part that all requests have
 * @ah: destination
 * @header: for %IB_WR_LSO: header of each segment
 * @hlen: bytes of @header
 * @mss: bytes of a segment
 * @remote_qpn: number of the receiving QP
 * @remote_qkey: its Q_Key
 * @pkey_index: index of the P_Key, on a GSI QP
 * @port_num: port to send through, for directed-route SMPs on a switch
 */
struct ib_ud_wr {
	struct ib_send_wr	wr;
	struct ib_ah		*ah;
	void			*header;
	int			hlen;
	int			mss;
	u32			remote_qpn;
	u32			remote_qkey;
	u16			pkey_index;
	u32			port_num;
};

static inline const struct ib_ud_wr *ud_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_ud_wr, wr);
}

/**
 * struct ib_reg_wr - registration of a region that ib_map_mr_sg() has filled
 * @wr: part that all requests have
 * @mr: the region
 * @key: its new lkey and rkey
 * @access: &enum ib_access_flags
 */
struct ib_reg_wr {
	struct ib_send_wr	wr;
	struct ib_mr		*mr;
	u32			key;
	int			access;
};

static inline const struct ib_reg_wr *reg_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_reg_wr, wr);
}

/**
 * struct ib_bind_mw_wr - binding of a memory window
 * @wr: part that all requests have
 * @mw: the window
 * @rkey: its new key: the current one with another low byte
 * @bind_info: what to bind it to
 */
struct ib_bind_mw_wr {
	struct ib_send_wr	wr;
	struct ib_mw		*mw;
	u32			rkey;
	struct ib_mw_bind_info	bind_info;
};

static inline const struct ib_bind_mw_wr *
bind_mw_wr(const struct ib_send_wr *wr)
{
	return container_of(wr, struct ib_bind_mw_wr, wr);
}

/**
 * struct ib_recv_wr - a request to a receive queue
 * @next: next request of the list, or NULL
 * @wr_id: returned in the completion
 * @wr_cqe: same, for CQs of ib_alloc_cq()
 * @sg_list: local memory; the array may be reused after the post
 * @num_sge: number of entries of @sg_list
 */
struct ib_recv_wr {
	struct ib_recv_wr	*next;
	union {
		u64		wr_id;
		struct ib_cqe	*wr_cqe;
	};
	struct ib_sge		*sg_list;
	int			num_sge;
};

#endif /* _RDMA_IB_WR_H */
