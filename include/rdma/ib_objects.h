/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the verbs interface, the methods of a driver, the device and
 * its clients. Include <rdma/ib_verbs.h>, which includes this.
 *
 * An object has a part that consumers and drivers may read and a part that is
 * the core's; comments in the structures tell where the latter begins.
 */
#ifndef _RDMA_IB_OBJECTS_H
#define _RDMA_IB_OBJECTS_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/irq_work.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <rdma/ib_mr.h>
#include <rdma/ib_wr.h>
#include <rdma/restrack.h>

struct attribute_group;
struct dim;
struct ib_ca;
struct ib_cq_lane;
struct ib_cq_pool;
struct ib_mad;
struct ib_ucq_object;
struct ib_umem;
struct ib_uobject;
struct ib_uqp_object;
struct ib_uverbs_file;
struct ib_usrq_object;
struct rdma_netdev_alloc_params;
struct uverbs_attr_bundle;

/* User contexts. No caller makes them; drivers' methods have them as types. */

/**
 * struct ib_ucontext - a process that has opened a device
 * @device: the device
 * @res: the core's
 */
struct ib_ucontext {
	struct ib_device		*device;
	struct rdma_restrack_entry	res;
};

/**
 * struct ib_udata - what a driver's user library and the driver exchange
 * @inbuf: from the library
 * @outbuf: to the library
 * @inlen: bytes at @inbuf
 * @outlen: bytes at @outbuf
 */
struct ib_udata {
	const void __user	*inbuf;
	void __user		*outbuf;
	size_t			inlen;
	size_t			outlen;
};

/* Objects */

/**
 * struct ib_pd - protection domain
 * @local_dma_lkey: key for all of memory, by DMA address, local access only
 * @flags: &enum ib_pd_flags
 * @device: device of the PD
 * @uobject: NULL
 * @usecnt: objects in the PD
 * @unsafe_global_rkey: key for remote access to all of memory, with
 *	%IB_PD_UNSAFE_GLOBAL_RKEY
 * @__internal_mr: the core's
 * @res: the core's
 */
struct ib_pd {
	u32			local_dma_lkey;
	u32			flags;
	struct ib_device	*device;
	struct ib_uobject	*uobject;
	atomic_t		usecnt;
	u32			unsafe_global_rkey;

	/* The core's. */
	struct ib_mr		*__internal_mr;
	struct rdma_restrack_entry res;
};

/**
 * struct ib_ah - address handle
 * @device: device of the handle
 * @pd: its PD
 * @uobject: NULL
 * @sgid_attr: source GID, referenced, or NULL
 * @type: kind of address
 * @on_device: among those of the device whose @site is known
 * @site: where it was made, if the contract checker was on
 */
struct ib_ah {
	struct ib_device	*device;
	struct ib_pd		*pd;
	struct ib_uobject	*uobject;
	const struct ib_gid_attr *sgid_attr;
	enum rdma_ah_attr_type	type;
	struct list_head	on_device;
	unsigned long		site;
};

typedef void (*ib_comp_handler)(struct ib_cq *cq, void *cq_context);

enum ib_poll_context {
	IB_POLL_SOFTIRQ,
	IB_POLL_WORKQUEUE,
	IB_POLL_UNBOUND_WORKQUEUE,
	IB_POLL_THREAD,			/* the vector's kernel thread */
	IB_POLL_LAST_POOL_TYPE = IB_POLL_THREAD,

	IB_POLL_DIRECT,			/* the consumer's own calls */
};

/* Mainline has no such context: lets sources for both ask with #ifdef. */
#define IB_POLL_THREAD IB_POLL_THREAD

/**
 * struct ib_notify - defers the callbacks of an object
 * @work: runs the callbacks
 * @state: which are due, and whether they run; see cq/notify.c
 */
struct ib_notify {
	struct irq_work		work;
	atomic_t		state;
};

/* Powers of two of nanoseconds that latencies are counted by. */
#define IB_CQ_LATENCIES		32

/**
 * struct ib_cq_stats - what the CQ layer did for a CQ
 * @schedules: how often a notification, or a waiter, put it up for polling
 * @rounds: how often it was polled until it was empty, its share was used up, or
 *	the run of its lane had to look at the clock
 * @polls: calls of the driver's poll_cq method
 * @empty_polls: those that found nothing
 * @completions: completions handed to done()
 * @rearms: requests for a notification
 * @missed: those that found that completions had come meanwhile
 * @exhausted: rounds that ended with the share used up, before it was empty
 * @errors: asynchronous errors of the CQ
 * @latency: time from the completion to done(), while kverbs.cq_timing is on:
 *	element n counts those below 2^n ns, and not below half of that
 *
 * Who polls the CQ writes all but @schedules and @errors; readers may see values
 * of different moments.
 */
struct ib_cq_stats {
	u64			schedules;
	u64			rounds;
	u64			polls;
	u64			empty_polls;
	u64			completions;
	u64			rearms;
	u64			missed;
	u64			exhausted;
	atomic_t		errors;
	u32			latency[IB_CQ_LATENCIES];
};

/**
 * struct ib_cq - completion queue
 * @device: device of the CQ
 * @uobject: NULL
 * @comp_handler: what a driver that does not use ib_cq_notify() calls once for each
 *	time the CQ was armed and completed; NULL if nobody listens
 * @event_handler: what a driver calls on events of the CQ; NULL if nobody listens
 * @cq_context: passed to both
 * @cqe: entries it has
 * @cqe_used: entries given out by the pool
 * @usecnt: work queues that complete here
 * @poll_ctx: where ib_alloc_cq()'s CQs are polled
 * @comp_vector: completion vector
 * @lane: what polls it, NULL for CQs of ib_create_cq()
 * @state: see cq/lane.c, as for all up to @stopped
 * @woken: link among those that want to be polled
 * @turn: link among those that are polled in turn
 * @deficit: completions left of its share in this turn
 * @weight: its share
 * @waiters: who waits for it
 * @flushing: those who wait for it to become empty
 * @stopped: completed when it is polled no more
 * @stats: what was done for it
 * @notify: deferral of the handlers
 * @dim: adaptive moderation, or NULL
 * @pool_entry: the pool's
 * @shared: belongs to the pool
 * @registered_comp_handler: what the consumer gave; only the core calls it
 * @registered_event_handler: likewise; must not sleep
 * @handlers: completion handlers that run now, while the contract is watched
 * @res: the core's
 * @rcu: the core frees the CQ a grace period after the driver's destroy_cq
 */
struct ib_cq {
	struct ib_device	*device;
	struct ib_ucq_object	*uobject;
	ib_comp_handler		comp_handler;
	void			(*event_handler)(struct ib_event *event,
						 void *cq_context);
	void			*cq_context;
	int			cqe;
	unsigned int		cqe_used;
	atomic_t		usecnt;

	/* The CQ layer's. */
	enum ib_poll_context	poll_ctx;
	unsigned int		comp_vector;
	struct ib_cq_lane	*lane;
	atomic_t		state;
	struct llist_node	woken;
	struct list_head	turn;
	unsigned int		deficit;
	unsigned int		weight;
	struct llist_head	waiters;
	struct list_head	flushing;
	struct completion	stopped;
	struct ib_cq_stats	stats;
	struct ib_notify	notify;
	struct dim		*dim;
	struct list_head	pool_entry;
	u8			shared:1;

	/* The core's. */
	ib_comp_handler		registered_comp_handler;
	void			(*registered_event_handler)(struct ib_event *event,
							    void *cq_context);
	atomic_t		handlers;
	struct rdma_restrack_entry res;
	struct rcu_head		rcu;
};

/**
 * struct ib_srq - shared receive queue
 * @device: device of the SRQ
 * @pd: its PD
 * @uobject: NULL
 * @event_handler: what a driver calls on events of the SRQ; NULL if nobody listens
 * @srq_context: passed to it
 * @srq_type: %IB_SRQT_BASIC
 * @usecnt: QPs that use it
 * @ext: for other types
 * @ext.cq: completion queue
 * @registered_event_handler: what the consumer gave; only the core calls it; must
 *	not sleep
 * @res: the core's
 * @notify: deferral of the event handler
 * @rcu: the core frees the SRQ a grace period after the driver's destroy_srq,
 *	so that a driver can look SRQs up under RCU
 */
struct ib_srq {
	struct ib_device	*device;
	struct ib_pd		*pd;
	struct ib_usrq_object	*uobject;
	void			(*event_handler)(struct ib_event *event,
						 void *srq_context);
	void			*srq_context;
	enum ib_srq_type	srq_type;
	atomic_t		usecnt;
	struct {
		struct ib_cq	*cq;
	} ext;

	/* The core's. */
	void			(*registered_event_handler)(struct ib_event *event,
							    void *srq_context);
	struct rdma_restrack_entry res;
	struct ib_notify	notify;
	struct rcu_head		rcu;
};

/**
 * struct ib_qp - queue pair
 * @device: device of the QP
 * @pd: its PD
 * @send_cq: where send completions go
 * @recv_cq: where receive completions go
 * @mr_lock: guards @mrs_used, @rdma_mrs and @sig_mrs
 * @mrs_used: regions taken from the pools
 * @rdma_mrs: pool of regions for RDMA
 * @sig_mrs: pool of regions with integrity
 * @srq: shared receive queue, or NULL
 * @usecnt: references that forbid to destroy the QP
 * @real_qp: the QP itself
 * @uobject: NULL
 * @event_handler: what a driver calls on events of the QP; NULL if nobody listens
 * @registered_event_handler: what the consumer gave; only the core calls it; must
 *	not sleep
 * @srq_completion: the device took its last request from @srq
 * @qp_context: passed to both
 * @av_sgid_attr: source GID of the path, referenced, or NULL
 * @alt_path_sgid_attr: same for the alternate path
 * @qp_num: number, set by the driver
 * @max_write_sge: gather entries of an RDMA WRITE
 * @max_read_sge: scatter entries of an RDMA READ
 * @qp_type: transport
 * @port: port, once it is known
 * @integrity_en: made with %IB_QP_CREATE_INTEGRITY_EN
 * @known_state: &enum ib_qp_state that the consumer set last
 * @res: the core's
 * @notify: deferral of the event handler
 * @rcu: the core frees the QP a grace period after the driver's destroy_qp,
 *	so that a driver can look QPs up under RCU
 */
struct ib_qp {
	struct ib_device	*device;
	struct ib_pd		*pd;
	struct ib_cq		*send_cq;
	struct ib_cq		*recv_cq;
	spinlock_t		mr_lock;
	int			mrs_used;
	struct list_head	rdma_mrs;
	struct list_head	sig_mrs;
	struct ib_srq		*srq;
	atomic_t		usecnt;
	struct ib_qp		*real_qp;
	struct ib_uqp_object	*uobject;
	void			(*event_handler)(struct ib_event *event,
						 void *qp_context);
	void			(*registered_event_handler)(struct ib_event *event,
							    void *qp_context);
	struct completion	srq_completion;
	void			*qp_context;
	const struct ib_gid_attr *av_sgid_attr;
	const struct ib_gid_attr *alt_path_sgid_attr;
	u32			qp_num;
	u32			max_write_sge;
	u32			max_read_sge;
	enum ib_qp_type		qp_type;
	u32			port;
	bool			integrity_en;

	/* The core's. */
	u8			known_state;
	struct rdma_restrack_entry res;
	struct ib_notify	notify;
	struct rcu_head		rcu;
};

/**
 * struct ib_port_data - a port, in ib_device.port_data by port number
 * @ib_dev: its device
 * @immutable: what does not change while the device is registered
 */
struct ib_port_data {
	struct ib_device	*ib_dev;
	struct ib_port_immutable immutable;
};

/* Counters of hardware */

enum ib_stat_flag {
	IB_STAT_FLAG_OPTIONAL	= BIT(0),
};

/**
 * struct rdma_stat_desc - a counter
 * @name: its name
 * @flags: &enum ib_stat_flag
 * @priv: the driver's
 */
struct rdma_stat_desc {
	const char	*name;
	unsigned int	flags;
	const void	*priv;
};

#define RDMA_HW_STATS_DEFAULT_LIFESPAN	10

/**
 * struct rdma_hw_stats - values of counters
 * @lock: guards @timestamp, @lifespan and @value
 * @timestamp: jiffies of the last update
 * @lifespan: jiffies for which values are good
 * @descs: the counters
 * @is_disabled: bitmap of those that are off
 * @num_counters: entries of @descs and @value
 * @value: values
 */
struct rdma_hw_stats {
	struct mutex		lock;
	unsigned long		timestamp;
	unsigned long		lifespan;
	const struct rdma_stat_desc *descs;
	unsigned long		*is_disabled;
	int			num_counters;
	u64			value[];
};

/* Network devices on top of a port (IPoIB) */

enum rdma_netdev_t {
	RDMA_NETDEV_OPA_VNIC,
	RDMA_NETDEV_IPOIB,
};

enum ib_pd_flags {
	/*
	 * Let peers that know the key reach all of memory. For trusted
	 * networks only; each use is logged.
	 */
	IB_PD_UNSAFE_GLOBAL_RKEY	= 0x01,
};

/* The core's object must be the first member of the driver's. */
#define INIT_RDMA_OBJ_SIZE(ib_struct, drv_struct, member)		\
	.size_##ib_struct = sizeof(struct drv_struct) +			\
		BUILD_BUG_ON_ZERO(offsetof(struct drv_struct, member)) + \
		BUILD_BUG_ON_ZERO(!__same_type(				\
			((struct drv_struct *)NULL)->member, struct ib_struct))

/**
 * struct ib_device_ops - the methods of a driver
 *
 * Those marked [atomic] are called in any context, hard interrupt included,
 * and must not sleep; all others may sleep. The core serialises none of them.
 * Those marked [required] must be there when the device is registered. Those
 * marked [source] are for drivers' sources to compile; nothing calls them.
 */
struct ib_device_ops {
	/** @owner: module of the driver; it unregisters its devices before it goes */
	struct module *owner;
	/** @driver_id: number of the driver */
	enum rdma_driver_id driver_id;
	/** @uverbs_abi_ver: [source] */
	u32 uverbs_abi_ver;
	/** @uverbs_no_driver_id_binding: [source] */
	unsigned int uverbs_no_driver_id_binding:1;
	/** @device_group: further attributes of the device in sysfs */
	const struct attribute_group *device_group;
	/** @port_groups: further attributes of each port in sysfs */
	const struct attribute_group **port_groups;

	/** @post_send: posts a list; [required], [atomic] */
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *send_wr,
			 const struct ib_send_wr **bad_send_wr);
	/** @post_recv: posts a list; [required], [atomic] */
	int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *recv_wr,
			 const struct ib_recv_wr **bad_recv_wr);
	/** @drain_rq: own way to drain the receive queue */
	void (*drain_rq)(struct ib_qp *qp);
	/** @drain_sq: own way to drain the send queue */
	void (*drain_sq)(struct ib_qp *qp);
	/** @poll_cq: takes completions; [required], [atomic] */
	int (*poll_cq)(struct ib_cq *cq, int num_entries, struct ib_wc *wc);
	/** @peek_cq: counts completions up to a limit; [atomic] */
	int (*peek_cq)(struct ib_cq *cq, int wc_cnt);
	/** @req_notify_cq: arms a CQ; [required], [atomic] */
	int (*req_notify_cq)(struct ib_cq *cq, enum ib_cq_notify_flags flags);
	/** @post_srq_recv: posts a list; [atomic] */
	int (*post_srq_recv)(struct ib_srq *srq,
			     const struct ib_recv_wr *recv_wr,
			     const struct ib_recv_wr **bad_recv_wr);
	/** @process_mad: [source] */
	int (*process_mad)(struct ib_device *device, int process_mad_flags,
			   u32 port_num, const struct ib_wc *in_wc,
			   const struct ib_grh *in_grh,
			   const struct ib_mad *in_mad, struct ib_mad *out_mad,
			   size_t *out_mad_size, u16 *out_mad_pkey_index);
	/** @query_device: fills in ib_device.attrs; [required] */
	int (*query_device)(struct ib_device *device,
			    struct ib_device_attr *device_attr,
			    struct ib_udata *udata);
	/** @modify_device: changes attributes of the device */
	int (*modify_device)(struct ib_device *device, int device_modify_mask,
			     struct ib_device_modify *device_modify);
	/** @get_dev_fw_str: prints the firmware version */
	void (*get_dev_fw_str)(struct ib_device *device, char *str);
	/** @get_vector_affinity: CPUs of a completion vector; [atomic] */
	const struct cpumask *(*get_vector_affinity)(struct ib_device *ibdev,
						     int comp_vector);
	/** @query_port: attributes of a port; [required] */
	int (*query_port)(struct ib_device *device, u32 port_num,
			  struct ib_port_attr *port_attr);
	/** @modify_port: changes attributes of a port */
	int (*modify_port)(struct ib_device *device, u32 port_num,
			   int port_modify_mask,
			   struct ib_port_modify *port_modify);
	/** @get_port_immutable: once for each port; [required] */
	int (*get_port_immutable)(struct ib_device *device, u32 port_num,
				  struct ib_port_immutable *immutable);
	/** @get_link_layer: link layer of a port; [atomic] */
	enum rdma_link_layer (*get_link_layer)(struct ib_device *device,
					       u32 port_num);
	/**
	 * @get_netdev: network device of a port, with a reference for the
	 * caller; NULL without one and once it is being unregistered
	 */
	struct net_device *(*get_netdev)(struct ib_device *device,
					 u32 port_num);
	/** @alloc_rdma_netdev: makes an accelerated network device */
	struct net_device *(*alloc_rdma_netdev)(struct ib_device *device,
						u32 port_num,
						enum rdma_netdev_t type,
						const char *name,
						unsigned char name_assign_type,
						void (*setup)(struct net_device *ndev));
	/** @rdma_netdev_get_params: tells how to make one */
	int (*rdma_netdev_get_params)(struct ib_device *device, u32 port_num,
				      enum rdma_netdev_t type,
				      struct rdma_netdev_alloc_params *params);
	/** @query_gid: an entry of the GID table, for ports that are not RoCE */
	int (*query_gid)(struct ib_device *device, u32 port_num, int index,
			 union ib_gid *gid);
	/**
	 * @add_gid: a RoCE port got a GID; @context of a table entry is the
	 * driver's until @del_gid. Calls for one port do not overlap.
	 */
	int (*add_gid)(const struct ib_gid_attr *attr, void **context);
	/** @del_gid: a GID is no longer used */
	int (*del_gid)(const struct ib_gid_attr *attr, void **context);
	/** @query_pkey: an entry of the P_Key table; [required] on IB ports */
	int (*query_pkey)(struct ib_device *device, u32 port_num, u16 index,
			  u16 *pkey);
	/** @alloc_ucontext: [source] */
	int (*alloc_ucontext)(struct ib_ucontext *context,
			      struct ib_udata *udata);
	/** @dealloc_ucontext: [source] */
	void (*dealloc_ucontext)(struct ib_ucontext *context);
	/**
	 * @open_ca: somebody opens the channel adapter, the kernel or a process;
	 * @vendor is a copy of what the caller gave for the HCA, or NULL
	 */
	int (*open_ca)(struct ib_ca *ca, const void *vendor, size_t len);
	/** @close_ca: nothing is left of what was opened and made under it */
	void (*close_ca)(struct ib_ca *ca);
	/** @mmap: [source] */
	int (*mmap)(struct ib_ucontext *context, struct vm_area_struct *vma);
	/** @disassociate_ucontext: [source] */
	void (*disassociate_ucontext)(struct ib_ucontext *ibcontext);
	/** @alloc_pd: sets up a PD; [required] */
	int (*alloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	/** @dealloc_pd: tears it down; [required] */
	int (*dealloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	/** @create_ah: sets up an address handle; [atomic] */
	int (*create_ah)(struct ib_ah *ah, struct rdma_ah_init_attr *attr,
			 struct ib_udata *udata);
	/** @create_user_ah: [source] */
	int (*create_user_ah)(struct ib_ah *ah, struct rdma_ah_init_attr *attr,
			      struct ib_udata *udata);
	/** @modify_ah: changes the address; [atomic] */
	int (*modify_ah)(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
	/** @query_ah: reads the address; [atomic] */
	int (*query_ah)(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
	/** @destroy_ah: tears it down; [atomic] */
	int (*destroy_ah)(struct ib_ah *ah, u32 flags);
	/** @create_srq: sets up an SRQ */
	int (*create_srq)(struct ib_srq *srq,
			  struct ib_srq_init_attr *srq_init_attr,
			  struct ib_udata *udata);
	/** @modify_srq: sets its size or limit */
	int (*modify_srq)(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
			  enum ib_srq_attr_mask srq_attr_mask,
			  struct ib_udata *udata);
	/** @query_srq: reads them */
	int (*query_srq)(struct ib_srq *srq, struct ib_srq_attr *srq_attr);
	/** @destroy_srq: tears it down */
	int (*destroy_srq)(struct ib_srq *srq, struct ib_udata *udata);
	/** @create_qp: sets up a QP and its number; [required] */
	int (*create_qp)(struct ib_qp *qp, struct ib_qp_init_attr *qp_init_attr,
			 struct ib_udata *udata);
	/** @modify_qp: sets attributes and state; [required] */
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *qp_attr,
			 int qp_attr_mask, struct ib_udata *udata);
	/** @query_qp: reads attributes */
	int (*query_qp)(struct ib_qp *qp, struct ib_qp_attr *qp_attr,
			int qp_attr_mask, struct ib_qp_init_attr *qp_init_attr);
	/** @destroy_qp: tears it down; it completes nothing after; [required] */
	int (*destroy_qp)(struct ib_qp *qp, struct ib_udata *udata);
	/** @create_cq: sets up a CQ; [required] */
	int (*create_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs);
	/** @modify_cq: sets moderation */
	int (*modify_cq)(struct ib_cq *cq, u16 cq_count, u16 cq_period);
	/** @destroy_cq: tears it down; [required] */
	int (*destroy_cq)(struct ib_cq *cq, struct ib_udata *udata);
	/** @resize_cq: changes its size */
	int (*resize_cq)(struct ib_cq *cq, int cqe, struct ib_udata *udata);
	/** @pre_destroy_cq: stops completions, before @destroy_cq */
	int (*pre_destroy_cq)(struct ib_cq *cq);
	/** @post_destroy_cq: frees what @pre_destroy_cq left */
	void (*post_destroy_cq)(struct ib_cq *cq);
	/** @get_dma_mr: region of all memory; [required] */
	struct ib_mr *(*get_dma_mr)(struct ib_pd *pd, int mr_access_flags);
	/**
	 * @reg_user_mr: makes a region of the calling process's memory, which
	 * ib_umem_get() pins; @udata is NULL
	 */
	struct ib_mr *(*reg_user_mr)(struct ib_pd *pd, u64 start, u64 length,
				     u64 virt_addr, int mr_access_flags,
				     struct ib_udata *udata);
	/**
	 * @reg_umem_mr: makes a region of memory that the midlayer has got and
	 * mapped, of whatever kind; used instead of @reg_user_mr where there is
	 * one. Nobody can get into it before @open_mr. The midlayer releases
	 * @umem after @dereg_mr.
	 */
	struct ib_mr *(*reg_umem_mr)(struct ib_pd *pd, struct ib_umem *umem,
				     u64 virt_addr, int mr_access_flags);
	/** @open_mr: makes the keys of such a region valid; waits for nothing */
	void (*open_mr)(struct ib_mr *mr);
	/**
	 * @revoke_mr: ends the device's access to the memory of a region for
	 * good: when it returns there is none, and later ones fail as with a key
	 * that is not valid. Comes once or more, from any thread, never at the
	 * same time as another of these methods of the region. May wait for
	 * accesses under way, and for nothing else, not even for memory. Devices
	 * without it, or @open_mr, get no memory that can go away.
	 */
	void (*revoke_mr)(struct ib_mr *mr);
	/**
	 * @pause_mr: as @revoke_mr, but accesses wait: @resume_mr or @revoke_mr or
	 * @dereg_mr follows
	 */
	void (*pause_mr)(struct ib_mr *mr);
	/**
	 * @resume_mr: after @pause_mr, the umem's list has other addresses; on an
	 * error @revoke_mr follows
	 */
	int (*resume_mr)(struct ib_mr *mr, struct ib_umem *umem);
	/** @reg_user_mr_dmabuf: as @reg_user_mr, of a dma-buf; @attrs is NULL */
	struct ib_mr *(*reg_user_mr_dmabuf)(struct ib_pd *pd, u64 offset,
					    u64 length, u64 virt_addr, int fd,
					    int mr_access_flags,
					    struct uverbs_attr_bundle *attrs);
	/** @rereg_user_mr: [source] */
	struct ib_mr *(*rereg_user_mr)(struct ib_mr *mr, int flags, u64 start,
				       u64 length, u64 virt_addr,
				       int mr_access_flags, struct ib_pd *pd,
				       struct ib_udata *udata);
	/** @dereg_mr: frees a region; [required] */
	int (*dereg_mr)(struct ib_mr *mr, struct ib_udata *udata);
	/** @alloc_mr: makes a region for fast registration */
	struct ib_mr *(*alloc_mr)(struct ib_pd *pd, enum ib_mr_type mr_type,
				  u32 max_num_sg);
	/** @alloc_mr_integrity: makes one with protection information */
	struct ib_mr *(*alloc_mr_integrity)(struct ib_pd *pd,
					    u32 max_num_data_sg,
					    u32 max_num_meta_sg);
	/** @advise_mr: [source] */
	int (*advise_mr)(struct ib_pd *pd,
			 enum ib_uverbs_advise_mr_advice advice, u32 flags,
			 struct ib_sge *sg_list, u32 num_sge,
			 struct uverbs_attr_bundle *attrs);
	/** @map_mr_sg: puts a DMA-mapped list into a region; [atomic] */
	int (*map_mr_sg)(struct ib_mr *mr, struct scatterlist *sg, int sg_nents,
			 unsigned int *sg_offset);
	/** @map_mr_sg_pi: same with protection information; [atomic] */
	int (*map_mr_sg_pi)(struct ib_mr *mr, struct scatterlist *data_sg,
			    int data_sg_nents, unsigned int *data_sg_offset,
			    struct scatterlist *meta_sg, int meta_sg_nents,
			    unsigned int *meta_sg_offset);
	/** @check_mr_status: reports integrity errors; [atomic] */
	int (*check_mr_status)(struct ib_mr *mr, u32 check_mask,
			       struct ib_mr_status *mr_status);
	/** @alloc_mw: sets up a memory window and its key */
	int (*alloc_mw)(struct ib_mw *mw, struct ib_udata *udata);
	/** @dealloc_mw: tears it down, bound or not */
	int (*dealloc_mw)(struct ib_mw *mw);
	/** @alloc_fmr: makes an FMR and its keys */
	struct ib_fmr *(*alloc_fmr)(struct ib_pd *pd, int mr_access_flags,
				    struct ib_fmr_attr *fmr_attr);
	/** @map_phys_fmr: maps pages, under new keys; [atomic] */
	int (*map_phys_fmr)(struct ib_fmr *fmr, u64 *page_list, int list_len,
			    u64 iova);
	/** @unmap_fmr: takes all keys of the listed FMRs back */
	int (*unmap_fmr)(struct list_head *fmr_list);
	/** @dealloc_fmr: frees an FMR */
	int (*dealloc_fmr)(struct ib_fmr *fmr);
	/** @attach_mcast: adds a QP to a multicast group */
	int (*attach_mcast)(struct ib_qp *qp, union ib_gid *gid, u16 lid);
	/** @detach_mcast: takes it out */
	int (*detach_mcast)(struct ib_qp *qp, union ib_gid *gid, u16 lid);
	/** @set_vf_link_state: link policy of a virtual function */
	int (*set_vf_link_state)(struct ib_device *device, int vf, u32 port,
				 int state);
	/** @get_vf_config: configuration of a virtual function */
	int (*get_vf_config)(struct ib_device *device, int vf, u32 port,
			     struct ifla_vf_info *ivf);
	/** @get_vf_stats: counters of a virtual function */
	int (*get_vf_stats)(struct ib_device *device, int vf, u32 port,
			    struct ifla_vf_stats *stats);
	/** @get_vf_guid: GUIDs of a virtual function */
	int (*get_vf_guid)(struct ib_device *device, int vf, u32 port,
			   struct ifla_vf_guid *node_guid,
			   struct ifla_vf_guid *port_guid);
	/** @set_vf_guid: sets one */
	int (*set_vf_guid)(struct ib_device *device, int vf, u32 port, u64 guid,
			   int type);
	/** @alloc_hw_device_stats: counters of the device; the core frees them */
	struct rdma_hw_stats *(*alloc_hw_device_stats)(struct ib_device *device);
	/** @alloc_hw_port_stats: counters of a port; the core frees them */
	struct rdma_hw_stats *(*alloc_hw_port_stats)(struct ib_device *device,
						     u32 port_num);
	/**
	 * @get_hw_stats: updates counter @index, or all if it is the number
	 * of counters; returns @index, the number of counters, or an error
	 */
	int (*get_hw_stats)(struct ib_device *device,
			    struct rdma_hw_stats *stats, u32 port, int index);
	/** @modify_hw_stat: switches an optional counter */
	int (*modify_hw_stat)(struct ib_device *device, u32 port,
			      unsigned int counter_index, bool enable);
	/** @enable_driver: last step of the registration, before clients */
	int (*enable_driver)(struct ib_device *dev);
	/** @dealloc_driver: called by ib_dealloc_device() */
	void (*dealloc_driver)(struct ib_device *dev);
	/** @get_numa_node: node to allocate objects from */
	int (*get_numa_node)(struct ib_device *dev);

	/* Set these with INIT_RDMA_OBJ_SIZE(). */
	/** @size_ib_ah: bytes of the driver's structure for an address handle */
	size_t size_ib_ah;
	/** @size_ib_ca: bytes of the driver's structure for an open CA */
	size_t size_ib_ca;
	/** @size_ib_cq: bytes of the driver's structure for a CQ */
	size_t size_ib_cq;
	/** @size_ib_mw: bytes of the driver's structure for a memory window */
	size_t size_ib_mw;
	/** @size_ib_pd: bytes of the driver's structure for a PD */
	size_t size_ib_pd;
	/** @size_ib_qp: bytes of the driver's structure for a QP */
	size_t size_ib_qp;
	/** @size_ib_srq: bytes of the driver's structure for an SRQ */
	size_t size_ib_srq;
	/** @size_ib_ucontext: bytes of the driver's structure for a user context */
	size_t size_ib_ucontext;
};

/* The device */

/**
 * struct ib_core_device - a device as one network namespace sees it
 * @dev: must be the first member, see &struct ib_device
 * @rdma_net: the namespace
 * @ports_kobj: directory of the ports
 * @port_list: the ports
 * @owner: the device
 */
struct ib_core_device {
	struct device		dev;
	possible_net_t		rdma_net;
	struct kobject		*ports_kobj;
	struct list_head	port_list;
	struct ib_device	*owner;
};

/**
 * struct ib_device - an RDMA device
 *
 * Drivers embed it, allocate with ib_alloc_device() and set @node_type,
 * @phys_port_cnt, @num_comp_vectors, @node_guid and the methods before
 * ib_register_device(). Members marked [source] are for drivers' sources to
 * compile; nothing reads them.
 */
struct ib_device {
	/** @dma_device: for DMA mapping; NULL: DMA addresses are pointers */
	struct device		*dma_device;
	/** @ops: methods, see ib_set_device_ops() */
	struct ib_device_ops	ops;
	/** @name: name, from registration on */
	char			name[IB_DEVICE_NAME_MAX];
	/** @client_data: by client number */
	struct xarray		client_data;

	/** @port_data: by port number */
	struct ib_port_data	*port_data;
	/** @num_comp_vectors: completion vectors */
	int			num_comp_vectors;
	/** @cq_vectors: the CQ layer's */
	void			*cq_vectors;
	/** @cq_pool: the CQ layer's: CQs of ib_cq_pool_get() */
	struct ib_cq_pool	*cq_pool;

	union {
		/** @dev: the device in sysfs */
		struct device		dev;
		/** @coredev: same, with the network namespace */
		struct ib_core_device	coredev;
	};

	/** @groups: attributes in sysfs */
	const struct attribute_group *groups[4];

	/** @uverbs_cmd_mask: [source] */
	u64			uverbs_cmd_mask;

	/** @node_desc: text to recognise the node by */
	char			node_desc[IB_DEVICE_NODE_DESC_MAX];
	/** @node_guid: GUID */
	__be64			node_guid;
	/** @local_dma_lkey: with %IBK_LOCAL_DMA_LKEY */
	u32			local_dma_lkey;
	/** @is_switch: ports are numbered from 0 */
	u16			is_switch:1;
	/** @kverbs_provider: set for each registered device; the core's */
	u16			kverbs_provider:1;
	/** @use_cq_dim: moderate CQs */
	u16			use_cq_dim:1;
	/** @node_type: RDMA_NODE_* */
	u8			node_type;
	/** @phys_port_cnt: number of ports */
	u32			phys_port_cnt;
	/** @attrs: limits and capabilities, from registration on */
	struct ib_device_attr	attrs;

	/** @index: number, unique among the devices there are */
	u32			index;

	/** @refcount: users that hold off unregistration; 0: not registered */
	refcount_t		refcount;
	/** @unreg_completion: @refcount is 0 */
	struct completion	unreg_completion;
	/** @unregistration_work: for ib_unregister_device_queued() */
	struct work_struct	unregistration_work;
};

/**
 * struct ib_client - a consumer of all devices
 */
struct ib_client {
	/** @name: unique among the clients */
	const char *name;
	/**
	 * @add: a device is there. The client may use it from here on. An
	 * error means that the client does not want the device.
	 */
	int (*add)(struct ib_device *ibdev);
	/** @remove: the device goes; on return the client no longer uses it */
	void (*remove)(struct ib_device *ibdev, void *client_data);
	/** @rename: the device has a new name */
	void (*rename)(struct ib_device *ibdev, void *client_data);
	/**
	 * @get_net_dev_by_params: finds the network device that the client
	 * runs over a port, with a reference for the caller
	 */
	struct net_device *(*get_net_dev_by_params)(struct ib_device *dev,
						    u32 port, u16 pkey,
						    const union ib_gid *gid,
						    const struct sockaddr *addr,
						    void *client_data);

	/** @client_id: the core's: place in the table of clients */
	u32 client_id;
	/**
	 * @no_kverbs_req: no effect: each device is one that kernel
	 * consumers can use, and is offered to all clients
	 */
	u8 no_kverbs_req:1;
};

#endif /* _RDMA_IB_OBJECTS_H */
