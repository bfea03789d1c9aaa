/* SPDX-License-Identifier: GPL-2.0-only WITH Linux-syscall-note */
/*
 * Requests to a channel adapter (CA): the interface of
 * /dev/infiniband/ca/<device>. Documentation/ca.rst is its manual.
 *
 * A request is a struct kverbs_ca_request. It is passed to ioctl(2) with the
 * command KVERBS_CA_IOCTL(op), or to io_uring as IORING_OP_URING_CMD with that
 * command and a struct kverbs_ca_uring_cmd. Either returns the number of bytes
 * written to the caller's buffer, or an error. Kernel callers find the same
 * requests in <kverbs/ca.h>.
 *
 * Each structure has the same layout for 32-bit and 64-bit callers. Structures
 * that describe something begin with their version and their total size in bytes.
 * They hold no pointers, but offsets in bytes from the structure's start. Later
 * versions add members at the end of structures, and at the end of table entries:
 * rely on the sizes that the structures state, and on KVERBS_CA_HAS().
 */
#ifndef _UAPI_KVERBS_CA_H
#define _UAPI_KVERBS_CA_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* Version of all structures below; other versions get EINVAL. */
#define KVERBS_CA_VERSION	1

/* Tells whether a structure that states its attr_size has a member. */
#define KVERBS_CA_HAS(attr, member)					\
	((attr)->attr_size >= (__u32)((char *)(&(attr)->member + 1) -	\
				      (char *)(attr)))

enum kverbs_ca_op {
	KVERBS_CA_OPEN		= 1,	/* in: data for the HCA; returns handle */
	KVERBS_CA_CLOSE		= 2,	/* out, if busy: kverbs_ca_list */
	KVERBS_CA_QUERY_CA	= 3,	/* out: kverbs_ca_attr */
	KVERBS_CA_QUERY_PORT	= 4,	/* port; out: kverbs_ca_port_attr */
	KVERBS_CA_ALLOC_PD	= 5,	/* returns object */
	KVERBS_CA_DEALLOC_PD	= 6,	/* object */
	/*
	 * in: kverbs_ca_reg_mr; returns object; out, optional: kverbs_ca_mr_attr;
	 * if the buffer is too short for it, as much as fits is written, and that
	 * is no error
	 */
	KVERBS_CA_REG_MR	= 7,
	KVERBS_CA_DEREG_MR	= 8,	/* object */
	KVERBS_CA_QUERY_MR	= 9,	/* object; out: kverbs_ca_mr_attr */
	KVERBS_CA_LIST		= 10,	/* out: kverbs_ca_list */
	KVERBS_CA_SET_PEER	= 11,	/* in: kverbs_ca_peer */
};

/* Flags of a request. */
enum kverbs_ca_request_flags {
	/*
	 * OPEN: whoever has the file may use the handle. Without this flag, only
	 * the process that opened it may, until it calls exec.
	 */
	KVERBS_CA_SHARED	= 1 << 0,
	/*
	 * QUERY_CA, QUERY_PORT: ask the HCA for the attributes of its ports
	 * now. Without this flag, they are as of the last event. Since counters
	 * change without an event, they may be out of date then.
	 */
	KVERBS_CA_FRESH		= 1 << 1,
};

/**
 * struct kverbs_ca_request - a request
 * @size: bytes of this structure as the caller knows it
 * @version: KVERBS_CA_VERSION
 * @flags: enum kverbs_ca_request_flags
 * @port: port number
 * @handle: the open CA; OPEN: result
 * @object: a PD or MR; ALLOC_PD, REG_MR: result
 * @in: address of the input
 * @out: address of the buffer for the output
 * @in_len: bytes at @in
 * @out_len: bytes at @out
 * @reserved: 0
 *
 * Members that an operation does not use must be 0.
 */
struct kverbs_ca_request {
	__u32 size;
	__u32 version;
	__u32 flags;
	__u32 port;
	__aligned_u64 handle;
	__aligned_u64 object;
	__aligned_u64 in;
	__aligned_u64 out;
	__u32 in_len;
	__u32 out_len;
	__aligned_u64 reserved;
};

/* Size of struct kverbs_ca_request in the first version of this interface. */
#define KVERBS_CA_REQUEST_SIZE_MIN	64

#define KVERBS_CA_IOCTL(op)		_IO(0xCA, 0xC0 + (op))

/**
 * struct kverbs_ca_uring_cmd - in the cmd field of an SQE; cmd_op is
 *	KVERBS_CA_IOCTL(op)
 * @request: address of a struct kverbs_ca_request, which must stay valid until the
 *	CQE
 * @reserved: 0
 */
struct kverbs_ca_uring_cmd {
	__aligned_u64 request;
	__aligned_u64 reserved;
};

/* Maximum bytes of data for the HCA that OPEN takes. */
#define KVERBS_CA_VENDOR_MAX	4096

/* kverbs_ca_attr.cap_flags, with the same values as in the verbs. */
#define KVERBS_CA_CAP_RESIZE_MAX_WR		(1ULL << 0)
#define KVERBS_CA_CAP_BAD_PKEY_CNTR		(1ULL << 1)
#define KVERBS_CA_CAP_BAD_QKEY_CNTR		(1ULL << 2)
#define KVERBS_CA_CAP_RAW_MULTI			(1ULL << 3)
#define KVERBS_CA_CAP_AUTO_PATH_MIG		(1ULL << 4)
#define KVERBS_CA_CAP_CHANGE_PHY_PORT		(1ULL << 5)
#define KVERBS_CA_CAP_UD_AV_PORT_ENFORCE	(1ULL << 6)
#define KVERBS_CA_CAP_CURR_QP_STATE_MOD		(1ULL << 7)
#define KVERBS_CA_CAP_SHUTDOWN_PORT		(1ULL << 8)
#define KVERBS_CA_CAP_PORT_ACTIVE_EVENT		(1ULL << 10)
#define KVERBS_CA_CAP_SYS_IMAGE_GUID		(1ULL << 11)
#define KVERBS_CA_CAP_RC_RNR_NAK_GEN		(1ULL << 12)
#define KVERBS_CA_CAP_SRQ_RESIZE		(1ULL << 13)
#define KVERBS_CA_CAP_N_NOTIFY_CQ		(1ULL << 14)
#define KVERBS_CA_CAP_MEM_WINDOW		(1ULL << 17)
#define KVERBS_CA_CAP_UD_IP_CSUM		(1ULL << 18)
#define KVERBS_CA_CAP_XRC			(1ULL << 20)
#define KVERBS_CA_CAP_MEM_MGT_EXTENSIONS	(1ULL << 21)
#define KVERBS_CA_CAP_MEM_WINDOW_TYPE_2A	(1ULL << 23)
#define KVERBS_CA_CAP_MEM_WINDOW_TYPE_2B	(1ULL << 24)

/* kverbs_ca_attr.atomic_cap */
enum kverbs_ca_atomic {
	KVERBS_CA_ATOMIC_NONE	= 0,
	KVERBS_CA_ATOMIC_HCA	= 1,	/* among the QPs of this HCA */
	KVERBS_CA_ATOMIC_GLOB	= 2,	/* also with the CPUs and other devices */
};

/**
 * struct kverbs_ca_attr - QUERY_CA: the channel adapter
 * @version: KVERBS_CA_VERSION
 * @size: bytes of the whole answer, ports and tables included
 * @attr_size: bytes of this structure
 * @port_offset: offset of the first struct kverbs_ca_port_attr; each states its
 *	size, after which the next one begins
 * @port_count: number of ports
 * @first_port: number of the first port
 * @generation: differs from that of an earlier answer if anything but counters
 *	has changed since
 * @node_guid: GUID of the node, network order
 * @sys_image_guid: GUID of the system, network order
 * @fw_ver: firmware version, as the vendor numbers them
 * @page_sizes: page sizes for registration: bit n is 2^n bytes
 * @cap_flags: KVERBS_CA_CAP_*
 * @max_mr_size: bytes of a region
 * @vendor_id: IEEE vendor number
 * @device_id: the vendor's part number
 * @hw_rev: hardware revision
 * @node_type: 1 for a channel adapter, 2 for a switch
 * @comp_vectors: completion vectors
 * @atomic_cap: enum kverbs_ca_atomic
 * @masked_atomic_cap: enum kverbs_ca_atomic
 * @ack_delay: local CA ACK delay: 4.096 us * 2^n
 * @max_qp: QPs
 * @max_qp_wr: work requests in a queue
 * @max_send_sge: scatter list entries of a send request
 * @max_recv_sge: scatter list entries of a receive request
 * @max_sge_rd: scatter list entries of an RDMA READ
 * @max_cq: CQs
 * @max_cqe: entries of a CQ
 * @max_mr: regions
 * @max_pd: PDs
 * @max_qp_rd_atom: READs and atomics that a QP serves at a time
 * @max_res_rd_atom: READs and atomics that the CA serves at a time
 * @max_qp_init_rd_atom: READs and atomics that a QP can have outstanding
 * @max_ee: EE contexts
 * @max_rdd: RD domains
 * @max_ee_rd_atom: READs and atomics that an EE context serves at a time
 * @max_ee_init_rd_atom: READs and atomics that it can have outstanding
 * @max_raw_ipv6_qp: raw IPv6 QPs
 * @max_raw_ethy_qp: raw Ethertype QPs
 * @max_mw: memory windows
 * @max_fmr: FMRs
 * @max_map_per_fmr: mappings of an FMR before it must be unmapped
 * @max_mcast_grp: multicast groups
 * @max_mcast_qp_attach: QPs in a group
 * @max_total_mcast_qp_attach: QPs in all groups together
 * @max_ah: address handles
 * @max_srq: SRQs
 * @max_srq_wr: work requests in an SRQ
 * @max_srq_sge: scatter list entries of a request in an SRQ
 * @max_fast_reg_pages: pages of a fast registration
 * @max_pkeys: entries of a P_Key table
 * @name: name of the device, terminated
 * @fw_str: firmware version as text, terminated, perhaps empty
 * @node_desc: description of the node, terminated, perhaps empty
 */
struct kverbs_ca_attr {
	__u32 version;
	__u32 size;
	__u32 attr_size;
	__u32 port_offset;
	__u32 port_count;
	__u32 first_port;
	__aligned_u64 generation;
	__be64 node_guid;
	__be64 sys_image_guid;
	__aligned_u64 fw_ver;
	__aligned_u64 page_sizes;
	__aligned_u64 cap_flags;
	__aligned_u64 max_mr_size;
	__u32 vendor_id;
	__u32 device_id;
	__u32 hw_rev;
	__u32 node_type;
	__u32 comp_vectors;
	__u32 atomic_cap;
	__u32 masked_atomic_cap;
	__u32 ack_delay;
	__u32 max_qp;
	__u32 max_qp_wr;
	__u32 max_send_sge;
	__u32 max_recv_sge;
	__u32 max_sge_rd;
	__u32 max_cq;
	__u32 max_cqe;
	__u32 max_mr;
	__u32 max_pd;
	__u32 max_qp_rd_atom;
	__u32 max_res_rd_atom;
	__u32 max_qp_init_rd_atom;
	__u32 max_ee;
	__u32 max_rdd;
	__u32 max_ee_rd_atom;
	__u32 max_ee_init_rd_atom;
	__u32 max_raw_ipv6_qp;
	__u32 max_raw_ethy_qp;
	__u32 max_mw;
	__u32 max_fmr;
	__u32 max_map_per_fmr;
	__u32 max_mcast_grp;
	__u32 max_mcast_qp_attach;
	__u32 max_total_mcast_qp_attach;
	__u32 max_ah;
	__u32 max_srq;
	__u32 max_srq_wr;
	__u32 max_srq_sge;
	__u32 max_fast_reg_pages;
	__u32 max_pkeys;
	char name[64];
	char fw_str[32];
	char node_desc[64];
};

/* kverbs_ca_port_attr.state */
enum kverbs_ca_port_state {
	KVERBS_CA_PORT_NOP	= 0,
	KVERBS_CA_PORT_DOWN	= 1,
	KVERBS_CA_PORT_INIT	= 2,
	KVERBS_CA_PORT_ARMED	= 3,
	KVERBS_CA_PORT_ACTIVE	= 4,
	KVERBS_CA_PORT_ACTIVE_DEFER = 5,
};

/* kverbs_ca_port_attr.link_layer */
enum kverbs_ca_link_layer {
	KVERBS_CA_LINK_UNSPECIFIED = 0,
	KVERBS_CA_LINK_INFINIBAND = 1,
	KVERBS_CA_LINK_ETHERNET	= 2,
};

/* kverbs_ca_port_attr.flags */
#define KVERBS_CA_PORT_IP_GIDS		(1U << 0) /* GIDs are made of IP addresses */
#define KVERBS_CA_PORT_GRH_REQUIRED	(1U << 1) /* every packet has a GRH */

/**
 * struct kverbs_ca_port_attr - QUERY_PORT, and part of QUERY_CA: a port
 * @version: KVERBS_CA_VERSION
 * @size: bytes of the whole answer, tables included
 * @attr_size: bytes of this structure
 * @port: port number
 * @generation: kverbs_ca_attr.generation when this port changed last
 * @guid: GUID of the port, network order; 0 if it has none
 * @subnet_prefix: upper half of its GIDs, network order; 0 on Ethernet
 * @state: enum kverbs_ca_port_state
 * @phys_state: as the IBTA encodes it: 5 is LinkUp
 * @link_layer: enum kverbs_ca_link_layer
 * @flags: KVERBS_CA_PORT_*
 * @cap_flags: CapabilityMask of PortInfo
 * @cap_flags2: CapabilityMask2 of PortInfo
 * @width: LinkWidthActive: 1, 2, 4, 8, 16 for 1, 4, 8, 12, 2 lanes
 * @speed: LinkSpeedActive, as the verbs encode it: 1 SDR, 2 DDR, 4 QDR, 8 FDR10,
 *	16 FDR, 32 EDR, 64 HDR, 128 NDR, 256 XDR
 * @max_mtu: bytes
 * @active_mtu: bytes
 * @phys_mtu: bytes; 0 if it is that of the link layer
 * @max_msg_size: bytes
 * @lid: LID; 0 on Ethernet
 * @sm_lid: LID of the subnet manager
 * @lmc: number of low bits of the LID that name a path
 * @sm_sl: service level of the subnet manager
 * @max_vls: virtual lanes, as VLCap encodes them
 * @subnet_timeout: 4.096 us * 2^n
 * @init_type_reply: InitTypeReply of PortInfo
 * @reserved: 0
 * @bad_pkeys: packets with a P_Key that is not in the table
 * @bad_qkeys: packets with a wrong Q_Key
 * @netdev: index of the port's network device; 0 if it has none, or if the device
 *	is in another network namespace than the file
 * @gid_offset: offset of the GID table
 * @gid_count: entries of the GID table
 * @gid_size: bytes of an entry, which is a struct kverbs_ca_gid
 * @pkey_offset: offset of the P_Key table; each entry is a __u16
 * @pkey_count: entries of the P_Key table
 */
struct kverbs_ca_port_attr {
	__u32 version;
	__u32 size;
	__u32 attr_size;
	__u32 port;
	__aligned_u64 generation;
	__be64 guid;
	__be64 subnet_prefix;
	__u32 state;
	__u32 phys_state;
	__u32 link_layer;
	__u32 flags;
	__u32 cap_flags;
	__u32 cap_flags2;
	__u32 width;
	__u32 speed;
	__u32 max_mtu;
	__u32 active_mtu;
	__u32 phys_mtu;
	__u32 max_msg_size;
	__u32 lid;
	__u32 sm_lid;
	__u8 lmc;
	__u8 sm_sl;
	__u8 max_vls;
	__u8 subnet_timeout;
	__u8 init_type_reply;
	__u8 reserved[3];
	__u32 bad_pkeys;
	__u32 bad_qkeys;
	__u32 netdev;
	__u32 gid_offset;
	__u32 gid_count;
	__u32 gid_size;
	__u32 pkey_offset;
	__u32 pkey_count;
};

/* kverbs_ca_gid.type */
enum kverbs_ca_gid_type {
	KVERBS_CA_GID_NONE	= 0,	/* the entry is empty */
	KVERBS_CA_GID_IB	= 1,
	KVERBS_CA_GID_ROCE_V1	= 2,
	KVERBS_CA_GID_ROCE_V2	= 3,
};

/**
 * struct kverbs_ca_gid - an entry of a GID table
 * @gid: the GID, as on the wire
 * @type: enum kverbs_ca_gid_type
 * @netdev: index of the GID's network device; 0 if it has none
 *
 * Entries whose network device is not in the file's network namespace look empty.
 */
struct kverbs_ca_gid {
	__u8 gid[16];
	__u32 type;
	__u32 netdev;
};

/* Access to a region, with the same values as in the verbs. */
#define KVERBS_CA_ACCESS_LOCAL_WRITE	(1U << 0)
#define KVERBS_CA_ACCESS_REMOTE_WRITE	(1U << 1)
#define KVERBS_CA_ACCESS_REMOTE_READ	(1U << 2)
#define KVERBS_CA_ACCESS_REMOTE_ATOMIC	(1U << 3)
#define KVERBS_CA_ACCESS_MW_BIND	(1U << 4)
#define KVERBS_CA_ACCESS_RELAXED_ORDERING (1U << 20)

/* Where the memory of a region is, and so how the HCA gets it. */
enum kverbs_ca_path {
	/*
	 * In a registration: try the dma-buf, if there is one, then the system's
	 * memory, then peer-to-peer memory, then peers.
	 */
	KVERBS_CA_PATH_ANY	= 0,
	KVERBS_CA_PATH_HOST	= 1,	/* pages of the system's memory */
	KVERBS_CA_PATH_PEER	= 2,	/* another device's memory, through its driver */
	KVERBS_CA_PATH_DMABUF	= 3,	/* a dma-buf */
	KVERBS_CA_PATH_P2P	= 4,	/* a PCI device's memory, for peer-to-peer DMA */
};

/* kverbs_ca_reg_mr.flags */
#define KVERBS_CA_REG_FD		(1U << 0) /* @fd and @offset are given */

/**
 * struct kverbs_ca_reg_mr - what to register
 * @version: KVERBS_CA_VERSION
 * @size: bytes of this structure as the caller knows it
 * @pd: PD of the same handle
 * @start: address of the first byte in the caller's memory; not used with DMABUF
 * @length: bytes
 * @iova: address by which peers and scatter lists refer to the first byte
 * @access: KVERBS_CA_ACCESS_*
 * @path: enum kverbs_ca_path; DMABUF needs KVERBS_CA_REG_FD
 * @flags: KVERBS_CA_REG_*
 * @fd: file descriptor of a dma-buf
 * @offset: offset of the first byte in the dma-buf
 */
struct kverbs_ca_reg_mr {
	__u32 version;
	__u32 size;
	__aligned_u64 pd;
	__aligned_u64 start;
	__aligned_u64 length;
	__aligned_u64 iova;
	__u32 access;
	__u32 path;
	__u32 flags;
	__s32 fd;
	__aligned_u64 offset;
};

/* Size of struct kverbs_ca_reg_mr in the first version of this interface. */
#define KVERBS_CA_REG_MR_SIZE_MIN	48

/* kverbs_ca_mr_attr.flags */
#define KVERBS_CA_MR_REVOKED	(1U << 0) /* the memory is gone, using the region fails */
#define KVERBS_CA_MR_PINNED	(1U << 1) /* the memory stays where it is */

/**
 * struct kverbs_ca_mr_attr - a region
 * @version: KVERBS_CA_VERSION
 * @size: bytes of this structure
 * @object: the region
 * @pd: PD of the region
 * @start: as it was registered; 0 with DMABUF
 * @length: as it was registered, in bytes
 * @iova: as it was registered
 * @access: as it was registered
 * @path: enum kverbs_ca_path; KVERBS_CA_PATH_ANY only if there is no region
 * @lkey: key for scatter lists
 * @rkey: key for peers
 * @flags: KVERBS_CA_MR_*
 * @host_error: why the memory was not found in the system's: a negative errno; 0
 *	if it was, or if that was not tried
 * @peer_error: same for peers; -ENODEV: no client has the memory
 * @dmabuf_error: same for the dma-buf
 * @peer: PEER: name of the client; P2P: PCI address of the provider
 * @p2p_error: same as @host_error for peer-to-peer memory; -ENODEV: the range does
 *	not begin in such memory; -ECANCELED: its provider is going away
 * @reserved: 0
 *
 * A REG_MR that looked for the memory and failed has an answer too, with an @object
 * of 0 and the errors.
 */
struct kverbs_ca_mr_attr {
	__u32 version;
	__u32 size;
	__aligned_u64 object;
	__aligned_u64 pd;
	__aligned_u64 start;
	__aligned_u64 length;
	__aligned_u64 iova;
	__u32 access;
	__u32 path;
	__u32 lkey;
	__u32 rkey;
	__u32 flags;
	__s32 host_error;
	__s32 peer_error;
	__s32 dmabuf_error;
	char peer[64];
	__s32 p2p_error;
	__u32 reserved;
};

/* Size of struct kverbs_ca_mr_attr in the first version; enough for the buffer of QUERY_MR. */
#define KVERBS_CA_MR_ATTR_SIZE_MIN	144

/**
 * struct kverbs_ca_peer - SET_PEER: which client REG_MR asks for memory of peers
 * @version: KVERBS_CA_VERSION
 * @size: bytes of this structure as the caller knows it
 * @name: name of the only client to ask, terminated; empty: ask all of them
 * @data: private data for that client; 0 without a name
 *
 * Applies to regions that are made under the handle from then on.
 */
struct kverbs_ca_peer {
	__u32 version;
	__u32 size;
	char name[64];
	__u8 data[64];
};

/* kverbs_ca_object.type */
enum kverbs_ca_object_type {
	KVERBS_CA_OBJECT_PD	= 1,
	KVERBS_CA_OBJECT_MR	= 2,
};

/**
 * struct kverbs_ca_object - an entry of LIST
 * @object: the object
 * @parent: MR: its PD; PD: 0
 * @length: MR: bytes; PD: 0
 * @type: enum kverbs_ca_object_type
 * @users: PD: number of MRs in it, and of times that a ULP has borrowed it; MR: 0
 */
struct kverbs_ca_object {
	__aligned_u64 object;
	__aligned_u64 parent;
	__aligned_u64 length;
	__u32 type;
	__u32 users;
};

/**
 * struct kverbs_ca_list - LIST, and CLOSE if it is busy: objects under a handle
 * @version: KVERBS_CA_VERSION
 * @size: bytes of the whole answer, entries included
 * @attr_size: bytes of this structure
 * @entry_offset: offset of the entries, each of which is a struct kverbs_ca_object
 * @entry_size: bytes of an entry
 * @count: number of entries; objects that are being made or freed have none
 */
struct kverbs_ca_list {
	__u32 version;
	__u32 size;
	__u32 attr_size;
	__u32 entry_offset;
	__u32 entry_size;
	__u32 count;
};

/* kverbs_ca_event.type. Events of the HCA and its ports have the same values as in the verbs. */
enum kverbs_ca_event_type {
	KVERBS_CA_EVENT_DEVICE_FATAL	= 8,
	KVERBS_CA_EVENT_PORT_ACTIVE	= 9,
	KVERBS_CA_EVENT_PORT_ERR	= 10,
	KVERBS_CA_EVENT_LID_CHANGE	= 11,
	KVERBS_CA_EVENT_PKEY_CHANGE	= 12,
	KVERBS_CA_EVENT_SM_CHANGE	= 13,
	KVERBS_CA_EVENT_CLIENT_REREGISTER = 17,
	KVERBS_CA_EVENT_GID_CHANGE	= 18,
	KVERBS_CA_EVENT_REMOVED		= 256,	/* the device is gone; no event follows */
	KVERBS_CA_EVENT_OVERFLOW	= 257,	/* events were lost, see @lost */
};

/**
 * struct kverbs_ca_event - an event; read(2) returns as many as fit into the buffer
 * @size: bytes of this event: offset of the next one
 * @type: enum kverbs_ca_event_type
 * @port: port number; 0 for the device
 * @lost: OVERFLOW: number of events lost at this point, since nobody read in time
 * @generation: kverbs_ca_attr.generation after the event
 * @time_ns: time of the event by CLOCK_MONOTONIC
 */
struct kverbs_ca_event {
	__u32 size;
	__u32 type;
	__u32 port;
	__u32 lost;
	__aligned_u64 generation;
	__aligned_u64 time_ns;
};

#endif /* _UAPI_KVERBS_CA_H */
