/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The objects of the verbs interface. Include <rdma/ib_verbs.h>, which includes this.
 *
 * Consumers and drivers may read the first part of an object; the rest is
 * private to the core, or to its CQ layer. Comments in the structures mark where
 * the private part begins.
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
#include <rdma/ib_user.h>
#include <rdma/ib_wr.h>
#include <rdma/restrack.h>

struct dim;
struct ib_cq_lane;
struct ib_device;
struct ib_rwq_ind_table;
struct ib_ucq_object;
struct ib_uobject;
struct ib_uqp_object;
struct ib_usrq_object;
struct ib_xrcd;
struct rdma_counter;

/* Objects */

/**
 * struct ib_pd - protection domain
 * @local_dma_lkey: key for local access to all of memory, by DMA address
 * @flags: &enum ib_pd_flags
 * @device: device of the PD
 * @uobject: of a process's object, what the process knows it by; else NULL
 * @usecnt: number of objects in the PD
 * @unsafe_global_rkey: key for remote access to all of memory; only valid with
 *	%IB_PD_UNSAFE_GLOBAL_RKEY
 * @__internal_mr: private to the core
 * @res: private to the core
 */
struct ib_pd {
	u32			local_dma_lkey;
	u32			flags;
	struct ib_device	*device;
	struct ib_uobject	*uobject;
	atomic_t		usecnt;
	u32			unsafe_global_rkey;

	/* Private to the core. */
	struct ib_mr		*__internal_mr;
	struct rdma_restrack_entry res;
};

/**
 * struct ib_ah - address handle
 * @device: device of the handle
 * @pd: its PD
 * @uobject: of a process's object, what the process knows it by; else NULL
 * @sgid_attr: source GID, on which the handle holds a reference; or NULL
 * @type: kind of address
 * @on_device: link in the device's list of handles whose @site is known
 * @site: where the handle was made; only known if the contract checker was on
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
	IB_POLL_DIRECT,			/* the consumer's calls of ib_process_cq_direct() */
	/* Netlink shows the numbers: behind all of mainline's. */
	IB_POLL_THREAD,			/* a kernel thread of the completion vector */
	/* CQs of the pool may have any but IB_POLL_DIRECT. */
	IB_POLL_LAST_POOL_TYPE = IB_POLL_THREAD,
};

/* Mainline lacks this context: sources for both can test for it with #ifdef. */
#define IB_POLL_THREAD IB_POLL_THREAD

/**
 * struct ib_notify - defers the callbacks of an object
 * @work: runs the callbacks
 * @state: which callbacks are due, and whether they are running; see cq/notify.c
 */
struct ib_notify {
	struct irq_work		work;
	atomic_t		state;
};

/* Latencies are counted in buckets whose bounds are powers of two, in nanoseconds. */
#define IB_CQ_LATENCIES		32

/**
 * struct ib_cq_stats - statistics of the CQ layer for a CQ
 * @schedules: how often a notification or a waiter queued the CQ for polling
 * @rounds: rounds of the CQ; a round ends when the CQ is empty, when its share is used
 *	up and others wait, or when the run of its lane ends or has to look at the clock
 * @polls: calls of the driver's poll_cq method
 * @empty_polls: polls that found no completion
 * @completions: completions handed to done()
 * @rearms: requests for a notification
 * @missed: requests that found that completions had come in the meantime
 * @exhausted: rounds that ended with the share used up, before the CQ was empty
 * @errors: asynchronous errors of the CQ
 * @latency: histogram of the times from completion to done(), counted while
 *	kverbs.cq_timing is on: element n counts times below 2^n ns and not below
 *	half of that; the last element also counts all longer times
 *
 * Whoever polls the CQ writes all members but @schedules and @errors. A reader may
 * see values from different moments.
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
 * @uobject: of a process's object, what the process knows it by; else NULL
 * @comp_handler: function that a driver which does not use ib_cq_notify() calls, once
 *	for each time that the CQ was armed and got a completion; NULL if nobody listens
 * @event_handler: function that is called for events of the CQ, after
 *	ib_cq_notify_event() or by the driver itself; NULL if nobody listens
 * @cq_context: passed to both
 * @cqe: number of entries
 * @cqe_used: number of entries that the pool has given out
 * @usecnt: number of send and receive queues that complete here
 * @poll_ctx: where the core polls the CQ, if ib_alloc_cq() made it
 * @comp_vector: completion vector; of a process's CQ, the driver's create_cq sets it
 * @lane: what polls the CQ; NULL if ib_create_cq() made it
 * @state: see cq/lane.c, also for the following members up to @stopped
 * @link: link among the CQs that were scheduled, and then among those that the runner polls
 * @deficit: completions left of the CQ's share in this round
 * @weight: determines the CQ's share, see ib_cq_set_weight()
 * @waiters: threads that wait for the CQ
 * @flushing: list of those waiters that wait until the CQ is empty
 * @stopped: completed when the CQ is no longer polled
 * @stats: statistics
 * @notify: defers the handlers
 * @dim: adaptive moderation, or NULL
 * @pool_entry: private to the pool
 * @shared: the CQ belongs to the pool
 * @registered_comp_handler: the consumer's handler; only the core calls it
 * @registered_event_handler: the consumer's handler of events; only the core calls it; must
 *	not sleep
 * @handlers: number of completion handlers running now, while the contract checker
 *	is on
 * @res: private to the core
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

	/* Private to the CQ layer. */
	enum ib_poll_context	poll_ctx;
	unsigned int		comp_vector;
	struct ib_cq_lane	*lane;
	atomic_t		state;
	struct llist_node	link;
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

	/* Private to the core. */
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
 * @uobject: of a process's object, what the process knows it by; else NULL
 * @event_handler: function that is called for events of the SRQ, after
 *	ib_srq_notify_event() or by the driver itself; NULL if nobody listens
 * @srq_context: passed to it
 * @srq_type: %IB_SRQT_BASIC
 * @usecnt: number of QPs that use the SRQ
 * @ext: for other types
 * @ext.cq: completion queue
 * @ext.xrc: for an XRC SRQ, which no QP here can use
 * @ext.xrc.xrcd: its domain
 * @ext.xrc.srq_num: its number
 * @registered_event_handler: the consumer's handler; only the core calls it; must
 *	not sleep
 * @res: private to the core
 * @notify: defers the event handler
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
		struct {
			struct ib_xrcd	*xrcd;
			u32		srq_num;
		} xrc;
	} ext;

	/* Private to the core. */
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
 * @mrs_used: number of regions taken from the pools
 * @rdma_mrs: pool of regions for RDMA
 * @sig_mrs: pool of regions with integrity
 * @srq: shared receive queue, or NULL
 * @usecnt: number of multicast groups that the QP is attached to; it cannot be
 *	destroyed before it is detached
 * @real_qp: the QP itself
 * @uobject: of a process's object, what the process knows it by; else NULL
 * @event_handler: function that is called for events of the QP, after
 *	ib_qp_notify_event() or by the driver itself; NULL if nobody listens
 * @registered_event_handler: the consumer's handler; only the core calls it; must
 *	not sleep
 * @srq_completion: completed when the device has taken its last request from @srq
 * @qp_context: passed to both
 * @av_sgid_attr: source GID of the path, on which the QP holds a reference; or NULL
 * @alt_path_sgid_attr: same for the alternate path
 * @qp_num: number, set by the driver
 * @max_write_sge: maximum gather entries of an RDMA WRITE
 * @max_read_sge: maximum scatter entries of an RDMA READ
 * @qp_type: transport
 * @port: port, once it is known
 * @integrity_en: made with %IB_QP_CREATE_INTEGRITY_EN
 * @xrcd: NULL, as the following: domain of extended connections
 * @rwq_ind_tbl: RSS indirection table
 * @counter: counter that the QP is bound to
 * @known_state: &enum ib_qp_state that the consumer set last, and above it the number of
 *	changes; see ib_qp_known_state()
 * @res: private to the core
 * @notify: defers the event handler
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
	struct ib_xrcd		*xrcd;
	struct ib_rwq_ind_table	*rwq_ind_tbl;
	struct rdma_counter	*counter;

	/* Private to the core. */
	unsigned long		known_state;
	struct rdma_restrack_entry res;
	struct ib_notify	notify;
	struct rcu_head		rcu;
};

/**
 * struct ib_port_data - a port: element of ib_device.port_data, by port number
 * @ib_dev: its device
 * @immutable: properties that do not change while the device is registered
 */
struct ib_port_data {
	struct ib_device	*ib_dev;
	struct ib_port_immutable immutable;
};

#endif /* _RDMA_IB_OBJECTS_H */
