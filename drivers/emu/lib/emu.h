/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The software HCA: devices and ports, and what all files share.
 *
 * Objects and who owns what:
 *
 *   emu_device	owns its ports, the table of its queue pairs and of its memory
 *		keys. Lives from emu_device_create() to emu_device_destroy().
 *   emu_port	an address in the fabric. Found there by LID or GID under RCU.
 *   emu_qp	(qp.h) found in its device's table under RCU. See qp.c for its
 *		life and doorbell.h for who executes it.
 *   emu_srq	(qp.h) a receive queue that queue pairs share. See srq.c.
 *   emu_cq	(cq.h) filled by the owners of the queue pairs attached to it,
 *		emptied by ib_poll_cq(). See cq.c.
 *   emu_region	(region.h) what a memory key names: region or window. Found in its
 *		device's table under RCU, guarded by a gate.
 *   emu_ca	(ca.h) one open of the device. In its table while it is open. See ca.c.
 */
#ifndef KVERBS_EMU_H
#define KVERBS_EMU_H

#include <linux/hrtimer.h>
#include <linux/if.h>
#include <linux/if_ether.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/platform_device.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

struct dentry;
struct emu_capture;
struct emu_faults;
struct emu_qp;
struct emu_sa;
struct emu_transport;
struct net_device;

/*
 * For memory whose size a process chooses: if there is no room in its cgroup, it gets an error,
 * instead of an OOM kill or a warning in the log.
 */
#define EMU_GFP_PROCESS	(GFP_KERNEL_ACCOUNT | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/*
 * Zeroed memory of such a size, for kvfree(). kvzalloc() would take __GFP_RETRY_MAYFAIL for a wish
 * that the memory be contiguous, and move and evict that of others to make it so. Here, it is
 * contiguous if there is some at hand.
 */
static inline void *emu_process_zalloc(size_t size)
{
	void *mem;

	if (size <= PAGE_SIZE)
		return kzalloc(size, EMU_GFP_PROCESS);
	mem = kzalloc(size, (GFP_KERNEL_ACCOUNT & ~__GFP_RECLAIM) | __GFP_NOWARN);
	return mem ?: __vmalloc(size, EMU_GFP_PROCESS | __GFP_ZERO);
}

#define EMU_MAX_PORTS		4
#define EMU_MAX_SGE		32
#define EMU_MAX_INLINE		512
/*
 * One less than a power of two, because that is the size of a process's ring, in which one entry
 * stays empty: so the size that is rounded up for a process does not exceed the limit.
 */
#define EMU_MAX_QP_WR		((1 << 14) - 1)
#define EMU_MAX_SRQ_WR		((1 << 15) - 1)
/* libfabric's rdm endpoints ask for 2^18, and for more if told of more peers. */
#define EMU_MAX_CQE		((1 << 20) - 1)
/* Limits of CQ moderation: completions, and microseconds. */
#define EMU_MAX_MOD_COUNT	EMU_MAX_QP_WR
#define EMU_MAX_MOD_PERIOD	32767
#define EMU_MAX_RD_ATOM		128
/* A page list of this length covers 2 MiB with 4 KiB pages. */
#define EMU_MAX_PAGE_LIST	512
#define EMU_MAX_MSG_SIZE	(1U << 31)
#define EMU_GID_TBL_LEN		64
#define EMU_PKEY_TBL_LEN	16
#define EMU_MAX_MCAST_GROUPS	4096
#define EMU_MAX_MCAST_QPS	4096
/* Unicast LIDs end where multicast ones begin. */
#define EMU_MAX_LID		0xbfff
/* A locally administered EUI-64; its low bytes are the numbers of device and port. */
#define EMU_GUID_BASE		0x024b560000000000ULL
/* The company ID in it, which the IEEE has not assigned to anybody. */
#define EMU_VENDOR_ID		(EMU_GUID_BASE >> 40)
/* 4.096 us * 2^n, about a millisecond: the time until the engine's thread has run. */
#define EMU_DELAY		8

/* The P_Key of full members of the default partition; Ethernet ports have only this one. */
#define EMU_DEFAULT_PKEY	0xffff
/* Set in the P_Keys of full members; two limited members cannot communicate. */
#define EMU_PKEY_FULL		0x8000

/*
 * The device-wide local key, for which addresses are not translated. Any other memory key consists
 * of an index, which is at least 1, and below that a byte that the consumer chooses. So a key with
 * index 0 cannot be one of these.
 */
#define EMU_LOCAL_DMA_LKEY	0xd3
#define EMU_KEY_SHIFT		8

/**
 * enum emu_counter - what a port counts
 * @EMU_CNT_XMIT_DATA: bytes sent
 * @EMU_CNT_XMIT_PACKETS: messages sent; the fabric has no packets
 * @EMU_CNT_RCV_DATA: bytes received
 * @EMU_CNT_RCV_PACKETS: messages received
 * @EMU_CNT_RNR: attempts that found no receive posted
 * @EMU_CNT_RNR_SENT: attempts of others that found no receive posted here
 * @EMU_CNT_RNR_EXCEEDED: requests that failed because no attempt found one
 * @EMU_CNT_TIMEOUT: attempts that nobody answered
 * @EMU_CNT_TIMEOUT_EXCEEDED: requests that failed because nobody answered any attempt
 * @EMU_CNT_LOST: completions that found no room in their queue
 * @EMU_CNT_DROPPED: unreliable messages that were dropped on arrival
 * @EMU_CNT_QKEY: messages with a wrong Q_Key
 * @EMU_CNT_PKEY: messages with a wrong P_Key
 * @EMU_CNT_LINK_DOWNED: times that the link went down
 * @EMU_NR_COUNTERS: number of counters
 */
enum emu_counter {
	EMU_CNT_XMIT_DATA,
	EMU_CNT_XMIT_PACKETS,
	EMU_CNT_RCV_DATA,
	EMU_CNT_RCV_PACKETS,
	EMU_CNT_RNR,
	EMU_CNT_RNR_SENT,
	EMU_CNT_RNR_EXCEEDED,
	EMU_CNT_TIMEOUT,
	EMU_CNT_TIMEOUT_EXCEEDED,
	EMU_CNT_LOST,
	EMU_CNT_DROPPED,
	EMU_CNT_QKEY,
	EMU_CNT_PKEY,
	EMU_CNT_LINK_DOWNED,
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
 * @sm_lid: LID of the subnet manager
 * @mtu: active MTU, derived from @wanted_mtu and @netdev_mtu
 * @wanted_mtu: as it was set, or 0
 * @netdev_mtu: what the network device allows; 0 without one
 * @wanted_width: active width as it was set, enum ib_port_width, or 0
 * @wanted_speed: active speed as it was set, enum ib_port_speed, or 0
 * @caps: capabilities of an InfiniBand port that consumers have set
 * @pkeys: P_Key table of an InfiniBand port
 * @gids: GID table of an InfiniBand port
 * @fabric_gids: for each GID of @gids that is not zero, its entry in the fabric
 * @netdev: the network device that an Ethernet port is bound to; the midlayer
 *	holds it. Only compared, never dereferenced
 * @core_netdev: the same, with a reference, where the core does not take one; see core_mainline.c
 * @netdev_name: name of the network device, also when that is gone; empty if the port was
 *	bound to none. Written under RTNL
 * @bound: entry in the table of bound ports, see ports.c
 * @wanted: state of the link when nothing keeps it down
 * @link_up: the network device is up; true on an InfiniBand port
 * @flapping: a fault keeps the port down for a while
 * @flap: 1 from the moment that such a fault takes the port down until it is over
 * @flap_timer: lets the port come up again
 * @state: state of the link, derived from @wanted, @link_up and @flapping
 * @sa: the subnet administrator, if the port is the subnet manager's; see sa.c
 * @sa_joins: its memberships in multicast groups, with all administrators; see sa.c
 * @sa_services: its services, with all administrators; see sa.c
 * @sa_records: number of these memberships and services
 * @sa_down: drops them when the port goes down
 * @gsi: queue pair 1, or NULL; written by qp.c, read under RCU
 * @due: events that are yet to be reported to mainline's core, a bit for each; see
 *	core_mainline.c
 * @counters: the counters, per CPU
 * @transport: how its queue pairs reach their peers; set before there are any
 *
 * ports.c writes all other fields that can change, and says under which lock. The
 * engine reads @lid, @pkeys, @mtu and @state with READ_ONCE().
 */
struct emu_port {
	struct emu_device *edev;
	u32 num;
	u16 lid;
	u16 sm_lid;
	enum ib_mtu mtu;
	enum ib_mtu wanted_mtu;
	enum ib_mtu netdev_mtu;
	u8 wanted_width;
	u16 wanted_speed;
	u32 caps;
	u16 pkeys[EMU_PKEY_TBL_LEN];
	union ib_gid gids[EMU_GID_TBL_LEN];
	struct emu_gid *fabric_gids[EMU_GID_TBL_LEN];
	const struct net_device *netdev;
	struct net_device *core_netdev;
	char netdev_name[IFNAMSIZ];
	struct hlist_node bound;
	enum ib_port_state wanted;
	bool link_up;
	bool flapping;
	enum ib_port_state state;
	atomic_t flap;
	struct hrtimer flap_timer;
	atomic_t due;
	struct emu_sa *sa;
	struct list_head sa_joins;
	struct list_head sa_services;
	u32 sa_records;
	struct work_struct sa_down;
	struct emu_qp __rcu *gsi;
	struct emu_counters __percpu *counters;
	const struct emu_transport *transport;
};

/**
 * struct emu_p2p - what a device knows about peer-to-peer memory; see p2p.c
 * @ranges: memory that it can reach
 * @work: looks for a route to @asked
 * @lock: guards the fields below; raw, for engines have preemption off
 * @asked: physical address of the memory to look for a route to; 0 for none
 * @refused: physical address of the last memory to which there was no route
 * @refused_size: bytes of that memory; 0 if there is none, or if the refusal has been reported
 * @refused_at: time at which the route was refused, in jiffies
 */
struct emu_p2p {
	struct list_head ranges;
	struct work_struct work;
	raw_spinlock_t lock;
	u64 asked;
	u64 refused;
	u64 refused_size;
	unsigned long refused_at;
};

/* Kinds of objects that are counted: limits.c */
enum emu_object {
	EMU_OBJECT_PD,
	EMU_OBJECT_CQ,
	EMU_OBJECT_QP,
	EMU_OBJECT_SRQ,
	EMU_OBJECT_AH,
	EMU_OBJECT_MR,
	EMU_OBJECT_MW,
	EMU_OBJECT_MCAST_GROUP,	/* that QPs of the device are attached to */
	EMU_NR_OBJECTS
};

/**
 * struct emu_device - one emulated channel adapter
 * @ibdev: what the midlayer sees; must be first, for ib_alloc_device()
 * @pdev: the parent device, which provides the DMA mask
 * @ethernet: link layer of all ports
 * @by_link: created by netlink, and to be deleted that way
 * @nr_ports: number of @ports
 * @making: held for reading while a queue pair or a CQ is made or destroyed, see device.c
 * @quiet: the device is being removed, and no queue pair or CQ may be made; guarded by @making
 * @cqs: completion queues
 * @qps: queue pairs by number; readers under RCU
 * @next_qpn: where the search for the next number starts
 * @keys: memory regions and windows by key index; readers under RCU
 * @next_key: where the search for the next index starts
 * @cas: its opens, by doorbell number, see ca.c
 * @objects: how many there are of each kind, enum emu_object
 * @events: reports events of the ports to mainline's core
 * @p2p: memory of other PCI devices
 * @faults: faults to inject, see fault.c
 * @capture: who captures its messages, or NULL; see engine/capture_file.c
 * @no_capture: the device is being removed, and nobody may capture any more; see
 *	engine/capture_file.c
 * @debugfs: its directory in debugfs, see debugfs.c
 * @ports: the ports, port number 1 first
 */
struct emu_device {
	struct ib_device ibdev;
	struct platform_device *pdev;
	bool ethernet;
	bool by_link;
	u32 nr_ports;
	struct rw_semaphore making;
	bool quiet;
	struct xarray cqs;
	struct xarray qps;
	u32 next_qpn;
	struct xarray keys;
	u32 next_key;
	struct xarray cas;
	atomic_t objects[EMU_NR_OBJECTS];
	struct work_struct events;
	struct emu_p2p p2p;
	struct emu_faults *faults;
	struct emu_capture __rcu *capture;
	bool no_capture;
	struct dentry *debugfs;
	struct emu_port ports[EMU_MAX_PORTS];
};

/* "No VLAN", as the midlayer writes it. */
#define EMU_NO_VLAN	0xffff

/**
 * struct emu_av - an address vector, as the engine uses it
 * @port: the local port to send through
 * @dlid: destination, on an InfiniBand port
 * @grh: there is a global route; always on an Ethernet port
 * @gid_type: type of both GIDs
 * @sl: service level
 * @hop_limit: of the global route
 * @smac: on an Ethernet port, the address of the source GID's network device
 * @vlan_id: its VLAN, or 0xffff
 * @flow: traffic class and flow label, as in &struct ib_grh
 * @sgid: source, with @grh
 * @dgid: destination, with @grh
 */
struct emu_av {
	struct emu_port *port;
	u16 dlid;
	bool grh;
	u8 gid_type;
	u8 sl;
	u8 hop_limit;
	u8 smac[ETH_ALEN];
	u16 vlan_id;
	u32 flow;
	union ib_gid sgid;
	union ib_gid dgid;
};

/**
 * struct emu_ah - an address handle
 * @ibah: what the midlayer sees
 * @av: the address, as the engine uses it
 * @attr: the attributes that it was made from, for query_ah
 */
struct emu_ah {
	struct ib_ah ibah;
	struct emu_av av;
	struct rdma_ah_attr attr;
};

static inline struct emu_device *to_edev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct emu_device, ibdev);
}

static inline struct emu_ah *to_eah(struct ib_ah *ibah)
{
	return container_of(ibah, struct emu_ah, ibah);
}

static inline struct emu_port *emu_port(struct ib_device *ibdev, u32 port_num)
{
	return &to_edev(ibdev)->ports[port_num - 1];
}

static inline void emu_port_count(struct emu_port *port, enum emu_counter counter, u64 n)
{
	this_cpu_add(port->counters->value[counter], n);
}

/* Ethernet ports have the P_Key of the default partition only. */
static inline u32 emu_pkey_tbl_len(const struct emu_device *edev)
{
	return edev->ethernet ? 1 : EMU_PKEY_TBL_LEN;
}

/* Returns the P_Key at @index in the table of @port. */
static inline u16 emu_port_pkey(const struct emu_port *port, u16 index)
{
	return port->edev->ethernet ? EMU_DEFAULT_PKEY : READ_ONCE(port->pkeys[index]);
}

/* Whether ports with these P_Keys can communicate: IBTA vol. 1, 10.9.3. */
static inline bool emu_pkeys_match(u16 a, u16 b)
{
	return ((a ^ b) & ~EMU_PKEY_FULL) == 0 && ((a | b) & EMU_PKEY_FULL) &&
	       (a & ~EMU_PKEY_FULL);
}

/* counters.c */
u64 emu_read_counter(const struct emu_port *port, enum emu_counter counter);
struct rdma_hw_stats *emu_alloc_port_stats(struct ib_device *ibdev, u32 port_num);
int emu_get_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats, u32 port_num, int index);

#endif
