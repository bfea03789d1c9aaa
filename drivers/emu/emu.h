/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The software HCA: what its files share.
 *
 * Objects and who owns what:
 *
 *   emu_device	owns its ports, the table of its queue pairs and of its memory
 *		keys. Lives from emu_device_create() to emu_device_destroy().
 *   emu_port	an address in the fabric. Found there by LID or GID under RCU.
 *   emu_qp	found in its device's table under RCU. See qp.c for its life and
 *		engine.c for who executes it.
 *   emu_cq	filled by the owners of the queue pairs attached to it, emptied
 *		by ib_poll_cq(). See cq.c.
 *   emu_mr	found in its device's table under RCU, guarded by a gate.
 */
#ifndef KVERBS_EMU_H
#define KVERBS_EMU_H

#include <linux/hrtimer.h>
#include <linux/if.h>
#include <linux/irq_work.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/platform_device.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#include "gate.h"
#include "ring.h"

struct net_device;

#define EMU_MAX_PORTS		4
#define EMU_MAX_SGE		32
#define EMU_MAX_INLINE		512
#define EMU_MAX_QP_WR		16384
#define EMU_MAX_CQE		(1 << 20)
/* Of CQ moderation: completions, and microseconds. */
#define EMU_MAX_MOD_COUNT	EMU_MAX_QP_WR
#define EMU_MAX_MOD_PERIOD	32767
#define EMU_MAX_QP		(1 << 20)
#define EMU_MAX_RD_ATOM		128
/* A page list of this length covers 2 MiB with 4 KiB pages. */
#define EMU_MAX_PAGE_LIST	512
#define EMU_MAX_MSG_SIZE	(1U << 31)
#define EMU_GID_TBL_LEN		64
#define EMU_PKEY_TBL_LEN	16

/*
 * The device-wide local key. Memory keys are an index from 1 on, shifted, with
 * the consumer's byte below, so index 0 is free to mean: no translation.
 */
#define EMU_LOCAL_DMA_LKEY	0xd3
#define EMU_KEY_SHIFT		8

/* How a doorbell is owned; see engine.c. */
enum emu_doorbell {
	EMU_DB_IDLE,
	EMU_DB_OWNED,
	EMU_DB_RERUN,
};

/**
 * enum emu_counter - what a port counts
 * @EMU_CNT_XMIT_DATA: bytes sent
 * @EMU_CNT_XMIT_PACKETS: messages sent; the fabric has no packets
 * @EMU_CNT_RCV_DATA: bytes received
 * @EMU_CNT_RCV_PACKETS: messages received
 * @EMU_CNT_RNR: attempts that found no receive posted
 * @EMU_CNT_TIMEOUT: attempts that nobody answered
 * @EMU_CNT_LOST: completions that found no room in their queue
 * @EMU_NR_COUNTERS: number of counters
 */
enum emu_counter {
	EMU_CNT_XMIT_DATA,
	EMU_CNT_XMIT_PACKETS,
	EMU_CNT_RCV_DATA,
	EMU_CNT_RCV_PACKETS,
	EMU_CNT_RNR,
	EMU_CNT_TIMEOUT,
	EMU_CNT_LOST,
	EMU_NR_COUNTERS
};

struct emu_counters {
	u64 value[EMU_NR_COUNTERS];
};

/**
 * struct emu_port - one port of a device
 * @edev: its device
 * @num: port number, from 1
 * @lid: local identifier on an InfiniBand port, else 0
 * @subnet_prefix: upper half of the default GID on an InfiniBand port
 * @guid: lower half of the default GID
 * @netdev: the network device that an Ethernet port is bound to, which the
 *	midlayer holds; to know it again, not to look into
 * @state: %IB_PORT_ACTIVE or %IB_PORT_DOWN
 * @counters: per CPU
 */
struct emu_port {
	struct emu_device *edev;
	u32 num;
	u16 lid;
	__be64 subnet_prefix;
	__be64 guid;
	const struct net_device *netdev;
	enum ib_port_state state;
	struct emu_counters __percpu *counters;
};

/**
 * struct emu_device - one emulated channel adapter
 * @ibdev: what the midlayer sees; first, as ib_alloc_device() asks
 * @pdev: the parent, which gives a DMA mask
 * @entry: on the list of devices in device.c
 * @ethernet: link layer of all ports
 * @nr_ports: number of @ports
 * @qps: queue pairs by number; readers under RCU
 * @next_qpn: where the search for the next number starts
 * @mrs: memory regions by key index; readers under RCU
 * @next_mr: where the search for the next index starts
 * @ports: the ports, port number 1 first
 */
struct emu_device {
	struct ib_device ibdev;
	struct platform_device *pdev;
	struct list_head entry;
	bool ethernet;
	u32 nr_ports;
	struct xarray qps;
	u32 next_qpn;
	struct xarray mrs;
	u32 next_mr;
	struct emu_port ports[EMU_MAX_PORTS];
};

struct emu_pd {
	struct ib_pd ibpd;
};

struct emu_ah {
	struct ib_ah ibah;
	struct rdma_ah_attr attr;
};

/**
 * struct emu_completion - what a completion queue entry tells
 * @wr_id: consumer's identifier
 * @qp: the queue pair; NULL when it was destroyed meanwhile
 * @wqe_pos: position of the work queue entry that completed
 * @byte_len: bytes received or read
 * @ex: immediate data or invalidated key, as in struct ib_wc
 * @src_qp: sender's queue pair number
 * @wc_flags: IB_WC_*
 * @vendor_err: where in the engine an error was found, see enum emu_syndrome
 * @slid: sender's LID
 * @pkey_index: index of the P_Key
 * @opcode: enum ib_wc_opcode
 * @status: enum ib_wc_status
 * @port_num: port the message came in by
 * @recv: completes a receive
 * @stamp: when it was written, or 0; see ib_cq_stamp()
 */
struct emu_completion {
	u64 wr_id;
	struct emu_qp *qp;
	u32 wqe_pos;
	u32 byte_len;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
	u32 src_qp;
	u32 wc_flags;
	u16 slid;
	u16 pkey_index;
	u8 vendor_err;
	u8 opcode;
	u8 status;
	u8 port_num;
	bool recv;
	u64 stamp;
};

/**
 * struct emu_cqe - an entry of a completion queue, one cache line
 * @wc: what happened
 * @seq: position + 1 once the entry is valid; see cq.c
 */
struct emu_cqe {
	struct emu_completion wc;
	u32 seq;
} __aligned(64);
static_assert(sizeof(struct emu_cqe) == 64);

/* Told in ib_wc.vendor_err: what the engine found wrong. */
enum emu_syndrome {
	EMU_SYN_NONE,
	EMU_SYN_KEY,		/* no such memory key, or not valid */
	EMU_SYN_KEY_PD,		/* the key belongs to another protection domain */
	EMU_SYN_KEY_ACCESS,	/* the key does not grant this access */
	EMU_SYN_KEY_RANGE,	/* outside the memory region */
	EMU_SYN_ADDRESS,	/* not an address of this machine's memory */
	EMU_SYN_LENGTH,		/* message longer than the receive buffer */
	EMU_SYN_QP_ACCESS,	/* the responder's queue pair does not allow it */
	EMU_SYN_NO_RESPONSE,	/* nobody answers at the destination */
	EMU_SYN_RNR,		/* the responder had no receive posted */
	EMU_SYN_MR_STATE,	/* registration of a region that is not free */
	EMU_SYN_FLUSHED,	/* ended by the queue pair's error state */
	EMU_SYN_REMOTE,		/* the responder failed */
};

/**
 * struct emu_cq - a completion queue
 * @ibcq: what the midlayer sees
 * @ring: the entries; their number is a power of two
 * @mask: number of entries, less one
 * @overrun: an entry was lost; nothing is taken in any more
 * @moderation: completions, and from bit 16 on microseconds, to wait for before
 *	a notification; 0 for no waiting
 * @head: position of the next entry to reserve
 * @tail: position of the next entry to poll
 * @arm: EMU_ARM_* bits
 * @armed_at: @head when it was armed; with @moderation
 * @due: when to notify of what is held back, in nanoseconds of CLOCK_MONOTONIC
 * @timer: notifies then
 * @lost: completions that found no room
 */
struct emu_cq {
	struct ib_cq ibcq;
	struct emu_cqe *ring;
	u32 mask;
	bool overrun;
	u32 moderation;
	atomic_t head ____cacheline_aligned_in_smp;
	atomic_t tail ____cacheline_aligned_in_smp;
	atomic_t arm;
	u32 armed_at;
	atomic64_t due;
	struct hrtimer timer;
	atomic_t lost;
};

/**
 * struct emu_swqe - an entry of a send queue
 * @slot: sequence number, first
 * @opcode: enum ib_wr_opcode
 * @num_sge: entries of @sge, 0 with inline data
 * @send_flags: IB_SEND_*
 * @length: bytes of the message
 * @ex: immediate data or key to invalidate
 * @wr_id: consumer's identifier
 * @rdma: of RDMA operations
 * @reg: of IB_WR_REG_MR, as it was when it was posted
 * @sge: the local buffers, or the inline data
 */
struct emu_swqe {
	struct emu_slot slot;
	u8 opcode;
	u8 num_sge;
	u16 send_flags;
	u32 length;
	union {
		__be32 imm_data;
		u32 invalidate_rkey;
	} ex;
	u64 wr_id;
	union {
		struct {
			u64 remote_addr;
			u32 rkey;
		} rdma;
		struct {
			u32 key;
			u32 access;
			u64 iova;
			u64 length;
			u32 page_shift;
		} reg;
	};
	struct ib_sge sge[];
};

/**
 * struct emu_rwqe - an entry of a receive queue
 * @slot: sequence number, first
 * @num_sge: entries of @sge
 * @wr_id: consumer's identifier
 * @length: sum of the lengths of @sge
 * @sge: the buffers
 */
struct emu_rwqe {
	struct emu_slot slot;
	u32 num_sge;
	u64 wr_id;
	u64 length;
	struct ib_sge sge[];
};

/**
 * struct emu_qp - a queue pair
 * @ibqp: what the midlayer sees
 * @edev: its device
 * @max_inline: bytes of inline data an entry of @sq holds
 * @state: enum ib_qp_state; changed by modify_qp and by errors, see qp.c
 * @sig_all: each send is signaled
 * @dest_qpn: the peer's number
 * @port: the port it sends by
 * @rnr_timer: code of the time a requester waits when our receive queue is empty
 * @access: IB_ACCESS_* granted to the peer
 * @dlid: destination, on an InfiniBand port
 * @sgid: source address, on an Ethernet port
 * @dgid: destination, on an Ethernet port
 * @gid_type: of both
 * @route: cached destination port, valid while @route_gen is the fabric's; RCU;
 *	the owner's alone
 * @route_gen: see fabric.c
 * @sq: send queue
 * @rq: receive queue
 * @doorbell: enum emu_doorbell
 * @freezing: modify_qp or destroy_qp waits for the doorbell
 * @run: on a runner's list, while handed to it
 * @timer: wakes a requester that waits; armed by the owner, which it then is
 * @retries: left for a peer that does not answer
 * @rnr_retries: left for a peer without a receive
 * @gate: open while it takes part as a responder
 * @comm_est: the first message in RTR was seen
 * @fatal: IB_EVENT_QP_FATAL was told
 * @lock: serialises modify, query and destroy
 * @attr: what modify_qp set, for query_qp and for the engine
 * @init: what create_qp was given, for query_qp
 */
struct emu_qp {
	struct ib_qp ibqp;
	struct emu_device *edev;
	u32 max_inline;
	atomic_t state;
	bool sig_all;
	u32 dest_qpn;
	struct emu_port *port;
	u8 rnr_timer;
	u32 access;

	u16 dlid;
	union ib_gid sgid;
	union ib_gid dgid;
	enum ib_gid_type gid_type;
	struct emu_port *route;
	unsigned long route_gen;

	struct emu_ring sq;
	struct emu_ring rq;

	atomic_t doorbell ____cacheline_aligned_in_smp;
	bool freezing;
	struct llist_node run;
	struct hrtimer timer;
	u8 retries;
	u8 rnr_retries;

	struct emu_gate gate ____cacheline_aligned_in_smp;
	atomic_t comm_est;
	atomic_t fatal;

	struct mutex lock;
	struct ib_qp_attr attr;
	struct ib_qp_init_attr init;
};

/**
 * enum emu_mr_kind - how a memory region translates addresses
 * @EMU_MR_DMA: DMA addresses as they are
 * @EMU_MR_FAST: a page list, set by IB_WR_REG_MR
 */
enum emu_mr_kind {
	EMU_MR_DMA,
	EMU_MR_FAST,
};

/**
 * enum emu_mr_state - life of a memory region
 * @EMU_MR_FREE: not registered
 * @EMU_MR_BUSY: IB_WR_REG_MR is setting it up
 * @EMU_MR_VALID: registered; the gate is open
 * @EMU_MR_INVALIDATING: the gate is closed, accesses are on their way out
 * @EMU_MR_DEAD: deregistered, or about to be
 *
 * FREE -> BUSY -> VALID -> INVALIDATING -> FREE; DEAD from any but BUSY. Each
 * step is a cmpxchg, so of several who want one, one makes it.
 */
enum emu_mr_state {
	EMU_MR_FREE,
	EMU_MR_BUSY,
	EMU_MR_VALID,
	EMU_MR_INVALIDATING,
	EMU_MR_DEAD,
};

/**
 * struct emu_mr - a memory region
 * @ibmr: what the midlayer sees
 * @rcu: for the freeing
 * @gate: open while the region is valid
 * @kind: how it translates
 * @state: enum emu_mr_state
 * @key: current key; written while the gate is closed and empty
 * @access: IB_ACCESS_* granted
 * @iova: first address of the region as consumers name it
 * @length: bytes
 * @page_shift: log2 of the size of the pages in @pages
 * @nr_pages: pages in use, as ib_map_mr_sg() collected them
 * @max_pages: pages there is room for
 * @pages: DMA addresses
 */
struct emu_mr {
	struct ib_mr ibmr;
	struct rcu_head rcu;
	struct emu_gate gate;
	enum emu_mr_kind kind;
	atomic_t state;
	u32 key;
	u32 access;
	u64 iova;
	u64 length;
	u32 page_shift;
	u32 nr_pages;
	u32 max_pages;
	u64 *pages;
};

/**
 * struct emu_budget - what an owner may still do before it hands over
 * @wqes: entries
 * @bytes: payload
 */
struct emu_budget {
	int wqes;
	s64 bytes;
};

static inline struct emu_device *to_edev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct emu_device, ibdev);
}

static inline struct emu_cq *to_ecq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct emu_cq, ibcq);
}

static inline struct emu_qp *to_eqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct emu_qp, ibqp);
}

static inline struct emu_mr *to_emr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct emu_mr, ibmr);
}

static inline void emu_count(struct emu_port *port, enum emu_counter counter, u64 n)
{
	this_cpu_add(port->counters->value[counter], n);
}

/* counters.c */
struct rdma_hw_stats *emu_alloc_port_stats(struct ib_device *ibdev, u32 port_num);
int emu_get_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port_num, int index);

/* device.c */

/**
 * struct emu_device_spec - what a device is to be
 * @name: device name; %d stands for the smallest free number
 * @nr_ports: 1 to EMU_MAX_PORTS
 * @ethernet: link layer of all ports; else InfiniBand
 * @adaptive: the moderation of CQs follows their load
 * @netdev: with @ethernet, the network device that each port is bound to
 */
struct emu_device_spec {
	const char *name;
	u32 nr_ports;
	bool ethernet;
	bool adaptive;
	char netdev[EMU_MAX_PORTS][IFNAMSIZ];
};

struct emu_device *emu_device_create(const struct emu_device_spec *spec);
void emu_device_destroy(struct emu_device *edev);
void emu_netdev_event(struct net_device *netdev, unsigned long event);

/* fabric.c */
int emu_fabric_add_lid(struct emu_port *port);
void emu_fabric_del_lid(struct emu_port *port);
int emu_fabric_add_gid(struct emu_port *port, const union ib_gid *gid, enum ib_gid_type type);
void emu_fabric_del_gid(struct emu_port *port, const union ib_gid *gid, enum ib_gid_type type);
struct emu_port *emu_fabric_route(struct emu_qp *qp);

/* configfs.c */
int emu_configfs_init(void);
void emu_configfs_exit(void);

/* cq.c */
int emu_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		  struct uverbs_attr_bundle *attrs);
int emu_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int emu_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int emu_peek_cq(struct ib_cq *ibcq, int wc_cnt);
int emu_poll_cq(struct ib_cq *ibcq, int num_entries, struct ib_wc *wc);
int emu_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void emu_cq_forget_qp(struct emu_cq *cq, struct emu_qp *qp);

/* qp.c */
int emu_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int emu_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int emu_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		 struct ib_qp_init_attr *init);
int emu_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void emu_qp_fail(struct emu_qp *qp);
void emu_qp_fatal(struct emu_qp *qp);
void emu_qp_lost(struct emu_qp *qp);

/* post.c */
int emu_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		  const struct ib_send_wr **bad_wr);
int emu_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad_wr);

/* engine.c */
int emu_engine_init(void);
void emu_engine_exit(void);
void emu_qp_engine_init(struct emu_qp *qp);
void emu_qp_engine_exit(struct emu_qp *qp);
void emu_qp_ring(struct emu_qp *qp);
void emu_qp_ring_deferred(struct emu_qp *qp);
void emu_qp_unpark(struct emu_qp *qp);
void emu_qp_freeze(struct emu_qp *qp);
void emu_qp_thaw(struct emu_qp *qp);
void emu_complete_send(struct emu_qp *qp, const struct emu_swqe *wqe, u32 pos,
		       enum ib_wc_status status, enum emu_syndrome syndrome);

/* exec.c */

/**
 * enum emu_verdict - how the execution of a work queue entry ended
 * @EMU_DONE: it has its completion
 * @EMU_FAILED: it has its completion in error, and the queue pair is in error
 * @EMU_NO_RESPONSE: the peer does not answer; try again after the timeout
 * @EMU_RNR: the peer has no receive posted; try again after its timer
 * @EMU_AGAIN: something is in use for a moment; try again from a runner
 */
enum emu_verdict {
	EMU_DONE,
	EMU_FAILED,
	EMU_NO_RESPONSE,
	EMU_RNR,
	EMU_AGAIN,
};

/**
 * struct emu_exec - an owner at work on one queue pair
 * @qp: the queue pair, as requester
 * @peer: its responder, whose gate is entered; NULL before the first use
 * @may_sleep: runs on a runner
 */
struct emu_exec {
	struct emu_qp *qp;
	struct emu_qp *peer;
	bool may_sleep;
};

enum emu_verdict emu_exec_wqe(struct emu_exec *ex, struct emu_swqe *wqe, u32 pos);
void emu_exec_end(struct emu_exec *ex);

/* mr.c */
struct emu_mr *emu_mr_enter(struct emu_qp *qp, const struct ib_sge *sge, int access,
			    enum emu_syndrome *why);
void emu_mr_leave(struct emu_mr *mr);
void *emu_mr_span(struct emu_mr *mr, u64 addr, size_t *len);
struct ib_mr *emu_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *emu_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg);
int emu_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset);
int emu_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
enum emu_verdict emu_mr_register(struct emu_qp *qp, const struct emu_swqe *wqe,
				 enum emu_syndrome *why);
enum emu_verdict emu_mr_invalidate(struct emu_qp *qp, u32 key, enum emu_syndrome *why);

#endif
