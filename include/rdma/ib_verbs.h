/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel verbs interface. What it declares is source-compatible with the
 * header of this name in Linux 6.12; what it does not declare does not exist.
 * Exported functions are documented where they are defined, inline ones here.
 *
 *	ib_types.h	addresses, ports, device limits, events
 *	ib_wr.h		address vectors, attributes, requests, completions
 *	ib_mr.h		memory regions and windows
 *	ib_user.h	contexts, requests and shared memory of processes
 *	ib_objects.h	other objects
 *	ib_device.h	driver methods, device
 *	ib_client.h	client
 *	ib_port.h	kind and capabilities of a port
 *	ib_dma.h	DMA mapping
 */
#ifndef IB_VERBS_H
#define IB_VERBS_H

#include <linux/err.h>
#include <linux/jump_label.h>
#include <linux/printk.h>
#include <linux/ratelimit.h>
#include <linux/uaccess.h>
#include <rdma/ib_client.h>
#include <rdma/ib_types.h>
#include <rdma/ib_wr.h>
#include <rdma/ib_objects.h>
#include <rdma/ib_device.h>
#include <rdma/ib_port.h>
#include <rdma/ib_dma.h>

/* Messages */

__printf(3, 4) __cold
void ibdev_printk(const char *level, const struct ib_device *ibdev,
		  const char *format, ...);

#define ibdev_emerg(ibdev, fmt, ...) \
	ibdev_printk(KERN_EMERG, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_alert(ibdev, fmt, ...) \
	ibdev_printk(KERN_ALERT, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_crit(ibdev, fmt, ...) \
	ibdev_printk(KERN_CRIT, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_err(ibdev, fmt, ...) \
	ibdev_printk(KERN_ERR, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_warn(ibdev, fmt, ...) \
	ibdev_printk(KERN_WARNING, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_notice(ibdev, fmt, ...) \
	ibdev_printk(KERN_NOTICE, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_info(ibdev, fmt, ...) \
	ibdev_printk(KERN_INFO, ibdev, fmt, ##__VA_ARGS__)
/*
 * The kernel's __dynamic_ibdev_dbg() expects the kernel's own struct ib_device,
 * so debug messages go through the embedded struct device.
 */
#define ibdev_dbg(ibdev, fmt, ...) \
	dev_dbg(&(ibdev)->dev, fmt, ##__VA_ARGS__)

#define ibdev_level_ratelimited(ibdev_level, ibdev, fmt, ...)		\
do {									\
	static DEFINE_RATELIMIT_STATE(_rs,				\
				      DEFAULT_RATELIMIT_INTERVAL,	\
				      DEFAULT_RATELIMIT_BURST);		\
	if (__ratelimit(&_rs))						\
		ibdev_level(ibdev, fmt, ##__VA_ARGS__);			\
} while (0)

#define ibdev_emerg_ratelimited(ibdev, fmt, ...) \
	ibdev_level_ratelimited(ibdev_emerg, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_alert_ratelimited(ibdev, fmt, ...) \
	ibdev_level_ratelimited(ibdev_alert, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_crit_ratelimited(ibdev, fmt, ...) \
	ibdev_level_ratelimited(ibdev_crit, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_err_ratelimited(ibdev, fmt, ...) \
	ibdev_level_ratelimited(ibdev_err, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_warn_ratelimited(ibdev, fmt, ...) \
	ibdev_level_ratelimited(ibdev_warn, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_notice_ratelimited(ibdev, fmt, ...) \
	ibdev_level_ratelimited(ibdev_notice, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_info_ratelimited(ibdev, fmt, ...) \
	ibdev_level_ratelimited(ibdev_info, ibdev, fmt, ##__VA_ARGS__)
#define ibdev_dbg_ratelimited(ibdev, fmt, ...) \
	dev_dbg_ratelimited(&(ibdev)->dev, fmt, ##__VA_ARGS__)

/* Devices */

struct ib_device *_ib_alloc_device(size_t size);
#define ib_alloc_device(drv_struct, member)				\
	container_of(_ib_alloc_device(sizeof(struct drv_struct) +	\
				      BUILD_BUG_ON_ZERO(offsetof(	\
					      struct drv_struct, member))), \
		     struct drv_struct, member)
void ib_dealloc_device(struct ib_device *device);

void ib_set_device_ops(struct ib_device *device,
		       const struct ib_device_ops *ops);
int ib_register_device(struct ib_device *device, const char *name,
		       struct device *dma_device);
void ib_unregister_device(struct ib_device *device);
void ib_unregister_driver(enum rdma_driver_id driver_id);
void ib_unregister_device_and_put(struct ib_device *device);
void ib_unregister_device_queued(struct ib_device *ib_dev);
int ib_device_rename(struct ib_device *ibdev, const char *name);

/* RDMA_NAME_ASSIGN_TYPE_USER, which 6.1's <rdma/rdma_netlink.h> does not have. */
static inline void ib_mark_name_assigned_by_user(struct ib_device *dev)
{
	dev->name_assign_type = 1;
}

struct ib_device *ib_device_get_by_netdev(struct net_device *ndev,
					  enum rdma_driver_id driver_id);
struct ib_device *ib_device_get_by_name(const char *name,
					enum rdma_driver_id driver_id);
void ib_device_put(struct ib_device *device);

/**
 * ib_device_try_get() - hold off the unregistration of a device
 * @dev: the device, whose memory the caller must keep alive by other means
 *
 * Context: Any.
 * Return: true if the device is registered; the caller must then call
 * ib_device_put(). False if it is not.
 */
static inline bool ib_device_try_get(struct ib_device *dev)
{
	return refcount_inc_not_zero(&dev->refcount);
}

int ib_device_set_netdev(struct ib_device *ib_dev, struct net_device *ndev,
			 unsigned int port);
struct net_device *ib_device_get_netdev(struct ib_device *ib_dev, u32 port);
bool rdma_dev_access_netns(const struct ib_device *device,
			   const struct net *net);
void ib_get_device_fw_str(struct ib_device *device, char *str);
__attribute_const__ enum rdma_transport_type
rdma_node_get_transport(unsigned int node_type);

/**
 * rdma_device_to_ibdev() - find the RDMA device that a struct device belongs to
 * @device: a device of class infiniband, as sysfs callbacks get it
 *
 * Context: Any.
 * Return: the RDMA device.
 */
static inline struct ib_device *rdma_device_to_ibdev(struct device *device)
{
	return container_of(device, struct ib_core_device, dev)->owner;
}

#define rdma_device_to_drv_device(dev, drv_dev_struct, ibdev_member) \
	container_of(rdma_device_to_ibdev(dev), drv_dev_struct, ibdev_member)

/**
 * ibdev_to_node() - NUMA node of a device
 * @ibdev: the device
 *
 * Context: Any.
 * Return: the node of its parent device; NUMA_NO_NODE if it has no parent.
 */
static inline int ibdev_to_node(struct ib_device *ibdev)
{
	struct device *parent = ibdev->dev.parent;

	return parent ? dev_to_node(parent) : NUMA_NO_NODE;
}

static inline void *rdma_zalloc_obj(struct ib_device *dev, size_t size,
				    gfp_t gfp, bool is_numa_aware)
{
	if (WARN_ONCE(!size, "%s: driver lacks INIT_RDMA_OBJ_SIZE() for this type of object\n",
		      dev_name(&dev->dev)))
		return NULL;
	if (is_numa_aware && dev->ops.get_numa_node)
		return kzalloc_node(size, gfp, dev->ops.get_numa_node(dev));
	return kzalloc(size, gfp);
}

/*
 * Allocate a zeroed driver object, whose first member is the core's object. The
 * driver states its size with INIT_RDMA_OBJ_SIZE().
 */
#define rdma_zalloc_drv_obj_gfp(ib_dev, ib_type, gfp)			\
	((struct ib_type *)rdma_zalloc_obj(ib_dev,			\
					   (ib_dev)->ops.size_##ib_type, \
					   gfp, false))
#define rdma_zalloc_drv_obj_numa(ib_dev, ib_type)			\
	((struct ib_type *)rdma_zalloc_obj(ib_dev,			\
					   (ib_dev)->ops.size_##ib_type, \
					   GFP_KERNEL, true))
#define rdma_zalloc_drv_obj(ib_dev, ib_type) \
	rdma_zalloc_drv_obj_gfp(ib_dev, ib_type, GFP_KERNEL)

/* Clients */

int ib_register_client(struct ib_client *client);
void ib_unregister_client(struct ib_client *client);
void ib_set_client_data(struct ib_device *device, struct ib_client *client,
			void *data);
struct net_device *ib_get_net_dev_by_params(struct ib_device *dev, u32 port, u16 pkey,
					    const union ib_gid *gid,
					    const struct sockaddr *addr);

/**
 * ib_get_client_data() - get the pointer stored by ib_set_client_data()
 * @device: the device
 * @client: the client; its remove() for @device has not returned yet
 *
 * Context: Any.
 * Return: the pointer; NULL if none was set.
 */
static inline void *ib_get_client_data(struct ib_device *device,
				       struct ib_client *client)
{
	return xa_load(&device->client_data, client->client_id);
}

/* Events */

void ib_register_event_handler(struct ib_event_handler *event_handler);
void ib_unregister_event_handler(struct ib_event_handler *event_handler);
void ib_dispatch_event(const struct ib_event *event);

/* Ports, GIDs and P_Keys; more in <rdma/ib_cache.h> */

int ib_query_port(struct ib_device *device, u32 port_num,
		  struct ib_port_attr *port_attr);
int ib_modify_port(struct ib_device *device, u32 port_num,
		   int port_modify_mask, struct ib_port_modify *port_modify);
int ib_modify_device(struct ib_device *device, int device_modify_mask,
		     struct ib_device_modify *device_modify);
enum rdma_link_layer rdma_port_get_link_layer(struct ib_device *device,
					      u32 port_num);
int ib_query_pkey(struct ib_device *device, u32 port_num, u16 index, u16 *pkey);
int ib_find_gid(struct ib_device *device, union ib_gid *gid, u32 *port_num,
		u16 *index);
int ib_find_pkey(struct ib_device *device, u32 port_num, u16 pkey, u16 *index);
void rdma_roce_rescan_device(struct ib_device *ibdev);
int ib_get_eth_speed(struct ib_device *dev, u32 port_num, u16 *speed,
		     u8 *width);
struct rdma_hw_stats *
rdma_alloc_hw_stats_struct(const struct rdma_stat_desc *descs,
			   int num_counters, unsigned long lifespan);
void rdma_free_hw_stats_struct(struct rdma_hw_stats *stats);

/* Virtual functions */

int ib_set_vf_link_state(struct ib_device *device, int vf, u32 port, int state);
int ib_get_vf_config(struct ib_device *device, int vf, u32 port,
		     struct ifla_vf_info *info);
int ib_get_vf_stats(struct ib_device *device, int vf, u32 port,
		    struct ifla_vf_stats *stats);
int ib_get_vf_guid(struct ib_device *device, int vf, u32 port,
		   struct ifla_vf_guid *node_guid,
		   struct ifla_vf_guid *port_guid);
int ib_set_vf_guid(struct ib_device *device, int vf, u32 port, u64 guid,
		   int type);

/* Protection domains */

struct ib_pd *__ib_alloc_pd(struct ib_device *device, unsigned int flags,
			    const char *caller);
#define ib_alloc_pd(device, flags) \
	__ib_alloc_pd((device), (flags), KBUILD_MODNAME)
int ib_dealloc_pd_user(struct ib_pd *pd, struct ib_udata *udata);

/**
 * ib_dealloc_pd() - free a protection domain
 * @pd: the PD, which must contain no objects any more
 *
 * A failure is logged as a warning, and the PD stays. If it was the driver that
 * refused, keys that the core had registered for the PD may be gone: they read
 * as 0.
 *
 * Context: Process.
 */
static inline void ib_dealloc_pd(struct ib_pd *pd)
{
	ib_dealloc_pd_user(pd, NULL);
}

/* Address handles */

struct ib_ah *rdma_create_ah(struct ib_pd *pd, struct rdma_ah_attr *ah_attr,
			     u32 flags);
struct ib_ah *rdma_create_user_ah(struct ib_pd *pd, struct rdma_ah_attr *ah_attr,
				  struct ib_udata *udata);
int rdma_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
int rdma_query_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
int rdma_destroy_ah_user(struct ib_ah *ah, u32 flags, struct ib_udata *udata);

/**
 * rdma_destroy_ah() - free an address handle
 * @ah: the handle; no outstanding request uses it
 * @flags: &enum rdma_destroy_ah_flags
 *
 * A failure is logged as a warning, and leaves the handle as it was.
 *
 * Context: Any; process, may sleep, with %RDMA_DESTROY_AH_SLEEPABLE.
 */
static inline void rdma_destroy_ah(struct ib_ah *ah, u32 flags)
{
	rdma_destroy_ah_user(ah, flags, NULL);
}

/* Older names of the calls above. */
static inline struct ib_ah *ib_create_ah(struct ib_pd *pd,
					 struct rdma_ah_attr *ah_attr)
{
	return rdma_create_ah(pd, ah_attr, 0);
}

static inline int ib_modify_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr)
{
	return rdma_modify_ah(ah, ah_attr);
}

static inline int ib_query_ah(struct ib_ah *ah, struct rdma_ah_attr *ah_attr)
{
	return rdma_query_ah(ah, ah_attr);
}

static inline int ib_destroy_ah(struct ib_ah *ah)
{
	return rdma_destroy_ah_user(ah, 0, NULL);
}

int ib_get_rdma_header_version(const union rdma_network_hdr *hdr);
int ib_get_gids_from_rdma_hdr(const union rdma_network_hdr *hdr,
			      enum rdma_network_type net_type,
			      union ib_gid *sgid, union ib_gid *dgid);
int ib_init_ah_attr_from_wc(struct ib_device *device, u32 port_num,
			    const struct ib_wc *wc, const struct ib_grh *grh,
			    struct rdma_ah_attr *ah_attr);
struct ib_ah *ib_create_ah_from_wc(struct ib_pd *pd, const struct ib_wc *wc,
				   const struct ib_grh *grh, u32 port_num);

void rdma_destroy_ah_attr(struct rdma_ah_attr *ah_attr);
void rdma_copy_ah_attr(struct rdma_ah_attr *dest,
		       const struct rdma_ah_attr *src);
void rdma_replace_ah_attr(struct rdma_ah_attr *old,
			  const struct rdma_ah_attr *new);
void rdma_move_ah_attr(struct rdma_ah_attr *dest, struct rdma_ah_attr *src);
void rdma_move_grh_sgid_attr(struct rdma_ah_attr *attr, union ib_gid *dgid,
			     u32 flow_label, u8 hop_limit, u8 traffic_class,
			     const struct ib_gid_attr *sgid_attr);

/* Only Omni-Path has LIDs of more than 16 bits. */
static inline u16 ib_lid_cpu16(u32 lid)
{
	WARN_ON_ONCE(lid >> 16);
	return lid;
}

static inline __be16 ib_lid_be16(u32 lid)
{
	return cpu_to_be16(ib_lid_cpu16(lid));
}

/* UDP source ports of RoCE v2, IBTA annex A17.9.2 */

#define IB_ROCE_UDP_ENCAP_VALID_PORT_MIN	0xC000
#define IB_ROCE_UDP_ENCAP_VALID_PORT_MAX	0xFFFF

/* Folds the upper 6 of the flow label's 20 bits into the lower 14. */
static inline u16 rdma_flow_label_to_udp_sport(u32 fl)
{
	return IB_ROCE_UDP_ENCAP_VALID_PORT_MIN |
	       ((fl ^ (fl & IB_GRH_FLOWLABEL_MASK) >> 14) & 0x3fff);
}

/* Symmetric, so that both ends of a connection compute the same label. */
static inline u32 rdma_calc_flow_label(u32 lqpn, u32 rqpn)
{
	u64 product = (u64)lqpn * rqpn;

	product ^= product >> 20;
	product ^= product >> 40;
	return product & IB_GRH_FLOWLABEL_MASK;
}

static inline u16 rdma_get_udp_sport(u32 fl, u32 lqpn, u32 rqpn)
{
	return rdma_flow_label_to_udp_sport(fl ?: rdma_calc_flow_label(lqpn,
								       rqpn));
}

/*
 * Hot paths. Each of these calls goes straight to the driver's method, unless a
 * tracepoint for posts or polls is enabled or the contract checker is on: then it
 * goes through core/verbs/datapath.c.
 */

DECLARE_STATIC_KEY_FALSE(ib_verbs_watched);

int ib_post_send_watched(struct ib_qp *qp, const struct ib_send_wr *send_wr,
			 const struct ib_send_wr **bad_send_wr);
int ib_post_recv_watched(struct ib_qp *qp, const struct ib_recv_wr *recv_wr,
			 const struct ib_recv_wr **bad_recv_wr);
int ib_post_srq_recv_watched(struct ib_srq *srq,
			     const struct ib_recv_wr *recv_wr,
			     const struct ib_recv_wr **bad_recv_wr);
void ib_post_send_failed(const struct ib_qp *qp, const struct ib_send_wr *bad, int err) __cold;
void ib_post_recv_failed(const struct ib_qp *qp, const struct ib_recv_wr *bad, int err) __cold;
void ib_post_srq_recv_failed(const struct ib_srq *srq, const struct ib_recv_wr *bad,
			     int err) __cold;
int ib_poll_cq_watched(struct ib_cq *cq, int num_entries, struct ib_wc *wc);
int ib_req_notify_cq_watched(struct ib_cq *cq, enum ib_cq_notify_flags flags);
int ib_map_phys_fmr_watched(struct ib_fmr *fmr, u64 *page_list, int list_len,
			    u64 iova);
const struct cpumask *ib_get_vector_affinity_watched(struct ib_device *device, int comp_vector);

/**
 * ib_post_send() - post work requests to a send queue
 * @qp: the QP
 * @send_wr: first request of the list
 * @bad_send_wr: set on an error to the request that failed; may be NULL. The
 *	requests before it are posted, it and those after it are not.
 *
 * Context: Any.
 * Return: 0, or an error of the driver: -EINVAL for a bad request or a QP in
 * the wrong state, -ENOMEM if the queue is full.
 */
static inline int ib_post_send(struct ib_qp *qp,
			       const struct ib_send_wr *send_wr,
			       const struct ib_send_wr **bad_send_wr)
{
	const struct ib_send_wr *unused;

	if (!bad_send_wr)
		bad_send_wr = &unused;
	if (static_branch_unlikely(&ib_verbs_watched))
		return ib_post_send_watched(qp, send_wr, bad_send_wr);
	return qp->device->ops.post_send(qp, send_wr, bad_send_wr);
}

/**
 * ib_post_recv() - post work requests to a receive queue
 * @qp: the QP
 * @recv_wr: first request of the list
 * @bad_recv_wr: set on an error to the request that failed, as by ib_post_send();
 *	may be NULL
 *
 * Context: Any.
 * Return: 0, or an error of the driver: -EINVAL for a bad request or a QP in
 * the wrong state, -ENOMEM if the queue is full.
 */
static inline int ib_post_recv(struct ib_qp *qp,
			       const struct ib_recv_wr *recv_wr,
			       const struct ib_recv_wr **bad_recv_wr)
{
	const struct ib_recv_wr *unused;

	if (!bad_recv_wr)
		bad_recv_wr = &unused;
	if (static_branch_unlikely(&ib_verbs_watched))
		return ib_post_recv_watched(qp, recv_wr, bad_recv_wr);
	return qp->device->ops.post_recv(qp, recv_wr, bad_recv_wr);
}

/**
 * ib_post_srq_recv() - post work requests to a shared receive queue
 * @srq: the SRQ
 * @recv_wr: first request of the list
 * @bad_recv_wr: set on an error to the request that failed, as by ib_post_send();
 *	may be NULL
 *
 * Context: Any.
 * Return: 0, or an error of the driver: -EINVAL for a bad request, -ENOMEM if
 * the queue is full.
 */
static inline int ib_post_srq_recv(struct ib_srq *srq,
				   const struct ib_recv_wr *recv_wr,
				   const struct ib_recv_wr **bad_recv_wr)
{
	const struct ib_recv_wr *unused;

	if (!bad_recv_wr)
		bad_recv_wr = &unused;
	if (static_branch_unlikely(&ib_verbs_watched))
		return ib_post_srq_recv_watched(srq, recv_wr, bad_recv_wr);
	return srq->device->ops.post_srq_recv(srq, recv_wr, bad_recv_wr);
}

/**
 * ib_poll_cq() - take completions out of a CQ
 * @cq: the CQ
 * @num_entries: maximum number of completions to take
 * @wc: array of @num_entries that they are written to
 *
 * Context: Any.
 * Return: the number of completions taken; fewer than @num_entries mean that
 * the CQ is now empty. A negative number is an error of the driver.
 */
static inline int ib_poll_cq(struct ib_cq *cq, int num_entries,
			     struct ib_wc *wc)
{
	if (static_branch_unlikely(&ib_verbs_watched))
		return ib_poll_cq_watched(cq, num_entries, wc);
	return cq->device->ops.poll_cq(cq, num_entries, wc);
}

/**
 * ib_req_notify_cq() - arm a CQ: ask for one call of its completion handler
 * @cq: the CQ
 * @flags: %IB_CQ_SOLICITED or %IB_CQ_NEXT_COMP, optionally with
 *	%IB_CQ_REPORT_MISSED_EVENTS
 *
 * Context: Any.
 * Return: 0 if the CQ is armed. Positive, only with
 * %IB_CQ_REPORT_MISSED_EVENTS, if the CQ may hold completions already: the
 * caller must poll again, as perhaps nobody is notified of these. A CQ of ib_create_cq()
 * is armed all the same. A negative number is an error of the driver.
 */
static inline int ib_req_notify_cq(struct ib_cq *cq,
				   enum ib_cq_notify_flags flags)
{
	if (static_branch_unlikely(&ib_verbs_watched))
		return ib_req_notify_cq_watched(cq, flags);
	return cq->device->ops.req_notify_cq(cq, flags);
}

/* Completion queues */

struct ib_cq *__ib_alloc_cq(struct ib_device *dev, void *private, int nr_cqe,
			    int comp_vector, enum ib_poll_context poll_ctx,
			    const char *caller);
struct ib_cq *__ib_alloc_cq_any(struct ib_device *dev, void *private,
				int nr_cqe, enum ib_poll_context poll_ctx,
				const char *caller);
void ib_free_cq(struct ib_cq *cq);
int ib_cq_flush(struct ib_cq *cq);
int ib_cq_set_weight(struct ib_cq *cq, unsigned int weight);
int ib_process_cq_direct(struct ib_cq *cq, int budget);

static inline struct ib_cq *ib_alloc_cq(struct ib_device *dev, void *private,
					int nr_cqe, int comp_vector,
					enum ib_poll_context poll_ctx)
{
	return __ib_alloc_cq(dev, private, nr_cqe, comp_vector, poll_ctx,
			     KBUILD_MODNAME);
}

static inline struct ib_cq *ib_alloc_cq_any(struct ib_device *dev,
					    void *private, int nr_cqe,
					    enum ib_poll_context poll_ctx)
{
	return __ib_alloc_cq_any(dev, private, nr_cqe, poll_ctx,
				 KBUILD_MODNAME);
}

struct ib_cq *__ib_create_cq(struct ib_device *device,
			     ib_comp_handler comp_handler,
			     void (*event_handler)(struct ib_event *event,
						   void *cq_context),
			     void *cq_context,
			     const struct ib_cq_init_attr *cq_attr,
			     const char *caller);
#define ib_create_cq(device, cmp_hndlr, evt_hndlr, cq_ctxt, cq_attr)	\
	__ib_create_cq((device), (cmp_hndlr), (evt_hndlr), (cq_ctxt),	\
		       (cq_attr), KBUILD_MODNAME)
int ib_destroy_cq_user(struct ib_cq *cq, struct ib_udata *udata);

/**
 * ib_destroy_cq() - free a CQ that ib_create_cq() made
 * @cq: the CQ; no QP uses it any more
 *
 * A failure is logged as a warning, and leaves the CQ as ib_destroy_cq_user() says.
 *
 * Context: Process; not from a handler of the CQ.
 */
static inline void ib_destroy_cq(struct ib_cq *cq)
{
	int ret = ib_destroy_cq_user(cq, NULL);

	WARN_ONCE(ret && ret != -EBUSY, "%s: CQ not freed: %d\n",
		  KBUILD_MODNAME, ret);
}

int rdma_set_cq_moderation(struct ib_cq *cq, u16 cq_count, u16 cq_period);

struct ib_cq *__ib_cq_pool_get(struct ib_device *dev, unsigned int nr_cqe,
			       int comp_vector_hint,
			       enum ib_poll_context poll_ctx,
			       const char *caller);
void __ib_cq_pool_put(struct ib_cq *cq, unsigned int nr_cqe,
		      const char *caller);

static inline struct ib_cq *ib_cq_pool_get(struct ib_device *dev,
					   unsigned int nr_cqe,
					   int comp_vector_hint,
					   enum ib_poll_context poll_ctx)
{
	return __ib_cq_pool_get(dev, nr_cqe, comp_vector_hint, poll_ctx,
				KBUILD_MODNAME);
}

static inline void ib_cq_pool_put(struct ib_cq *cq, unsigned int nr_cqe)
{
	__ib_cq_pool_put(cq, nr_cqe, KBUILD_MODNAME);
}

int ib_resize_cq(struct ib_cq *cq, int cqe);

/* Shared receive queues */

struct ib_srq *ib_create_srq_user(struct ib_pd *pd,
				  struct ib_srq_init_attr *srq_init_attr,
				  struct ib_usrq_object *uobject,
				  struct ib_udata *udata);

static inline struct ib_srq *
ib_create_srq(struct ib_pd *pd, struct ib_srq_init_attr *srq_init_attr)
{
	return ib_create_srq_user(pd, srq_init_attr, NULL, NULL);
}

int ib_modify_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
		  enum ib_srq_attr_mask srq_attr_mask);
int ib_query_srq(struct ib_srq *srq, struct ib_srq_attr *srq_attr);
int ib_destroy_srq_user(struct ib_srq *srq, struct ib_udata *udata);

/**
 * ib_destroy_srq() - free a shared receive queue
 * @srq: the SRQ; no QP uses it any more
 *
 * A failure is logged as a warning, and leaves the SRQ as it was.
 *
 * Context: Process.
 */
static inline void ib_destroy_srq(struct ib_srq *srq)
{
	ib_destroy_srq_user(srq, NULL);
}

/* Queue pairs */

struct ib_qp *ib_create_qp_kernel(struct ib_pd *pd,
				  struct ib_qp_init_attr *qp_init_attr,
				  const char *caller);

static inline struct ib_qp *ib_create_qp(struct ib_pd *pd,
					 struct ib_qp_init_attr *init_attr)
{
	return ib_create_qp_kernel(pd, init_attr, KBUILD_MODNAME);
}

int ib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr,
		 int qp_attr_mask);
int ib_query_qp(struct ib_qp *qp, struct ib_qp_attr *qp_attr, int qp_attr_mask,
		struct ib_qp_init_attr *qp_init_attr);
int ib_destroy_qp_user(struct ib_qp *qp, struct ib_udata *udata);

static inline int ib_destroy_qp(struct ib_qp *qp)
{
	return ib_destroy_qp_user(qp, NULL);
}

bool ib_modify_qp_is_ok(enum ib_qp_state cur_state, enum ib_qp_state next_state,
			enum ib_qp_type type, enum ib_qp_attr_mask mask);

int ib_attach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);
int ib_detach_mcast(struct ib_qp *qp, union ib_gid *gid, u16 lid);

void ib_drain_rq(struct ib_qp *qp);
void ib_drain_sq(struct ib_qp *qp);
void ib_drain_qp(struct ib_qp *qp);

/* Memory regions */

struct ib_mr *ib_alloc_mr(struct ib_pd *pd, enum ib_mr_type mr_type,
			  u32 max_num_sg);
struct ib_mr *ib_alloc_mr_integrity(struct ib_pd *pd, u32 max_num_data_sg,
				    u32 max_num_meta_sg);
struct ib_mr *ib_reg_mem(struct ib_pd *pd, struct ib_mem *mem, u64 virt_addr,
			 int mr_access_flags);
struct ib_mr *ib_reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
			     u64 virt_addr, int access_flags);
struct ib_mr *ib_umem_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
				  int access, struct ib_udata *udata);
struct ib_mr *ib_umem_reg_user_mr_dmabuf(struct ib_pd *pd, u64 offset, u64 length,
					 u64 virt_addr, int fd, int access,
					 struct uverbs_attr_bundle *attrs);
int ib_dereg_mr_user(struct ib_mr *mr, struct ib_udata *udata);

static inline int ib_dereg_mr(struct ib_mr *mr)
{
	return ib_dereg_mr_user(mr, NULL);
}

int ib_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		 struct ib_sge *sg_list, u32 num_sge);

int ib_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int sg_nents,
		 unsigned int *sg_offset, unsigned int page_size);
int ib_map_mr_sg_pi(struct ib_mr *mr, struct scatterlist *data_sg,
		    int data_sg_nents, unsigned int *data_sg_offset,
		    struct scatterlist *meta_sg, int meta_sg_nents,
		    unsigned int *meta_sg_offset, unsigned int page_size);
int ib_sg_to_pages(struct ib_mr *mr, struct scatterlist *sgl, int sg_nents,
		   unsigned int *sg_offset,
		   int (*set_page)(struct ib_mr *mr, u64 addr));
int ib_check_mr_status(struct ib_mr *mr, u32 check_mask,
		       struct ib_mr_status *mr_status);

/**
 * ib_map_mr_sg_zbva() - ib_map_mr_sg() for a region whose addresses start at 0
 * @mr: the region
 * @sg: DMA-mapped scatter list
 * @sg_nents: number of its entries, as ib_dma_map_sg() returned it
 * @sg_offset: bytes to skip at the start, as for ib_map_mr_sg(); may be NULL
 * @page_size: bytes, a power of two
 *
 * Context: Any.
 * Return: as ib_map_mr_sg().
 */
static inline int ib_map_mr_sg_zbva(struct ib_mr *mr, struct scatterlist *sg,
				    int sg_nents, unsigned int *sg_offset,
				    unsigned int page_size)
{
	int ret = ib_map_mr_sg(mr, sg, sg_nents, sg_offset, page_size);

	mr->iova = 0;
	return ret;
}

/* The consumer may choose the low byte of a region's keys. */
static inline void ib_update_fast_reg_key(struct ib_mr *mr, u8 newkey)
{
	mr->lkey = (mr->lkey & ~0xffU) | newkey;
	mr->rkey = (mr->rkey & ~0xffU) | newkey;
}

static inline u32 ib_inc_rkey(u32 rkey)
{
	return (rkey & ~0xffU) | ((rkey + 1) & 0xff);
}

/**
 * ib_check_mr_access() - check the access flags for a new region
 * @ib_dev: the device
 * @flags: &enum ib_access_flags
 *
 * Context: Any.
 * Return: 0; -EINVAL for unknown flags, and for remote write or atomic access
 * without local write access (IBTA vol. 1, 10.6.3.1); -EOPNOTSUPP for flags
 * that the device does not support.
 */
static inline int ib_check_mr_access(struct ib_device *ib_dev,
				     unsigned int flags)
{
	const struct ib_device_attr *attrs = &ib_dev->attrs;

	if (flags & ~IB_ACCESS_SUPPORTED)
		return -EINVAL;
	if ((flags & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)) &&
	    !(flags & IB_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if ((flags & IB_ACCESS_ON_DEMAND) &&
	    !(attrs->kernel_cap_flags & IBK_ON_DEMAND_PAGING))
		return -EOPNOTSUPP;
	if ((flags & IB_ACCESS_FLUSH_GLOBAL) &&
	    !(attrs->device_cap_flags & IB_DEVICE_FLUSH_GLOBAL))
		return -EOPNOTSUPP;
	if ((flags & IB_ACCESS_FLUSH_PERSISTENT) &&
	    !(attrs->device_cap_flags & IB_DEVICE_FLUSH_PERSISTENT))
		return -EOPNOTSUPP;
	return 0;
}

/* A window may grant more access than its region, so IB_ACCESS_MW_BIND counts. */
static inline bool ib_access_writable(int access_flags)
{
	return access_flags & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			       IB_ACCESS_REMOTE_ATOMIC | IB_ACCESS_MW_BIND);
}

/* Memory windows */

struct ib_mw *ib_alloc_mw(struct ib_pd *pd, enum ib_mw_type type);
int ib_bind_mw(struct ib_qp *qp, struct ib_mw *mw, struct ib_mw_bind *mw_bind);
int ib_dealloc_mw(struct ib_mw *mw);

/* Fast memory regions */

struct ib_fmr *ib_alloc_fmr(struct ib_pd *pd, int mr_access_flags,
			    struct ib_fmr_attr *fmr_attr);
int ib_unmap_fmr(struct list_head *fmr_list);
int ib_dealloc_fmr(struct ib_fmr *fmr);

/**
 * ib_map_phys_fmr() - map pages into an FMR, without a work request
 * @fmr: the FMR
 * @page_list: DMA addresses of the pages, which have the FMR's page size
 * @list_len: number of pages
 * @iova: address by which remote peers and SGEs refer to the first byte of the
 *	first page
 *
 * The FMR has new keys afterwards, in ib_fmr.lkey and ib_fmr.rkey. Keys of
 * earlier mappings may still give access until ib_unmap_fmr().
 *
 * Context: Any.
 * Return: 0; -EINVAL if there are no pages or too many, if one is not aligned,
 * or if the FMR has already been mapped the maximum number of times; or another
 * error of the driver.
 */
static inline int ib_map_phys_fmr(struct ib_fmr *fmr, u64 *page_list,
				  int list_len, u64 iova)
{
	if (static_branch_unlikely(&ib_verbs_watched))
		return ib_map_phys_fmr_watched(fmr, page_list, list_len, iova);
	return fmr->device->ops.map_phys_fmr(fmr, page_list, list_len, iova);
}

/**
 * ib_get_vector_affinity() - CPUs that a completion vector interrupts
 * @device: the device
 * @comp_vector: completion vector
 *
 * Context: Any.
 * Return: the CPUs; NULL if the driver does not know them or the vector does
 * not exist.
 */
static inline const struct cpumask *
ib_get_vector_affinity(struct ib_device *device, int comp_vector)
{
	if (comp_vector < 0 || comp_vector >= device->num_comp_vectors ||
	    !device->ops.get_vector_affinity)
		return NULL;
	if (static_branch_unlikely(&ib_verbs_watched))
		return ib_get_vector_affinity_watched(device, comp_vector);
	return device->ops.get_vector_affinity(device, comp_vector);
}

#endif /* IB_VERBS_H */
