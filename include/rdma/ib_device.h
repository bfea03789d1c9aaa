/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The methods of a driver, and the device. Include <rdma/ib_verbs.h>, which includes this.
 */
#ifndef _RDMA_IB_DEVICE_H
#define _RDMA_IB_DEVICE_H

#include <linux/completion.h>
#include <linux/device.h>
#include <linux/mutex.h>
#include <linux/netdevice.h>
#include <linux/refcount.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>
#include <rdma/ib_objects.h>

struct attribute_group;
struct ib_ca;
struct ib_counters;
struct ib_counters_read_attr;
struct ib_cq_pool;
struct ib_dm;
struct ib_dm_alloc_attr;
struct ib_dm_mr_attr;
struct ib_flow;
struct ib_flow_action;
struct ib_flow_attr;
struct ib_mad;
struct ib_rwq_ind_table;
struct ib_rwq_ind_table_init_attr;
struct ib_umem;
struct ib_wq;
struct ib_wq_attr;
struct ib_wq_init_attr;
struct ib_xrcd;
struct iw_cm_conn_param;
struct iw_cm_id;
struct rdma_cm_id;
struct rdma_netdev_alloc_params;
struct rdma_restrack_root;
struct sk_buff;
struct uapi_definition;
struct uverbs_attr_bundle;

/* Counters of hardware */

enum ib_stat_flag {
	IB_STAT_FLAG_OPTIONAL	= BIT(0),
};

/**
 * struct rdma_stat_desc - a counter
 * @name: its name
 * @flags: &enum ib_stat_flag
 * @priv: for the driver's use
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
 * @timestamp: time of the last update of all values, in jiffies
 * @lifespan: jiffies after that before the driver is asked again
 * @descs: the counters
 * @is_disabled: bitmap of the counters that are switched off
 * @num_counters: number of entries of @descs and @value
 * @value: values of the counters
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
	 * networks only; the log has a warning for each such PD.
	 */
	IB_PD_UNSAFE_GLOBAL_RKEY	= 0x01,
};

/* The core's object must be the first member of the driver's structure. */
#define INIT_RDMA_OBJ_SIZE(ib_struct, drv_struct, member)		\
	.size_##ib_struct = sizeof(struct drv_struct) +			\
		BUILD_BUG_ON_ZERO(offsetof(struct drv_struct, member)) + \
		BUILD_BUG_ON_ZERO(!__same_type(				\
			((struct drv_struct *)NULL)->member, struct ib_struct))

/**
 * struct ib_device_ops - the methods of a driver
 *
 * Methods marked [atomic] are called in any context, hard interrupt included, and
 * must not sleep; all others may sleep. The core does not serialise calls, except
 * where a method says so. Methods marked [required] must be set when the device is
 * registered. Members marked [user] are for processes: the modules of scripts/ulps call or
 * read them, not the core. Members marked [source] only exist for driver sources to compile:
 * nothing calls or reads them.
 */
struct ib_device_ops {
	/** @owner: module of the driver; it unregisters its devices before it is unloaded */
	struct module *owner;
	/** @driver_id: identifies the driver */
	enum rdma_driver_id driver_id;
	/** @uverbs_abi_ver: [user] version of what the driver and its library exchange */
	u32 uverbs_abi_ver;
	/** @uverbs_no_driver_id_binding: [user] libraries find the device by its name alone */
	unsigned int uverbs_no_driver_id_binding:1;
	/** @device_group: the driver's own attributes of the device in sysfs */
	const struct attribute_group *device_group;
	/** @port_groups: the driver's own attributes of each port in sysfs */
	const struct attribute_group **port_groups;

	/** @post_send: posts a list of send requests; [required], [atomic] */
	int (*post_send)(struct ib_qp *qp, const struct ib_send_wr *send_wr,
			 const struct ib_send_wr **bad_send_wr);
	/** @post_recv: posts a list of receive requests; [required], [atomic] */
	int (*post_recv)(struct ib_qp *qp, const struct ib_recv_wr *recv_wr,
			 const struct ib_recv_wr **bad_recv_wr);
	/** @drain_rq: drains the receive queue, instead of the core's way */
	void (*drain_rq)(struct ib_qp *qp);
	/** @drain_sq: drains the send queue, instead of the core's way */
	void (*drain_sq)(struct ib_qp *qp);
	/** @poll_cq: takes completions out of a CQ; [required], [atomic] */
	int (*poll_cq)(struct ib_cq *cq, int num_entries, struct ib_wc *wc);
	/** @peek_cq: counts the completions in a CQ, up to @wc_cnt; [atomic] */
	int (*peek_cq)(struct ib_cq *cq, int wc_cnt);
	/** @req_notify_cq: arms a CQ; [required], [atomic] */
	int (*req_notify_cq)(struct ib_cq *cq, enum ib_cq_notify_flags flags);
	/** @post_srq_recv: posts a list of receive requests to an SRQ; [atomic] */
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
	/** @get_dev_fw_str: writes the firmware version as text */
	void (*get_dev_fw_str)(struct ib_device *device, char *str);
	/** @get_vector_affinity: CPUs of a completion vector; [atomic] */
	const struct cpumask *(*get_vector_affinity)(struct ib_device *ibdev,
						     int comp_vector);
	/** @query_port: reads the attributes of a port; [required] */
	int (*query_port)(struct ib_device *device, u32 port_num,
			  struct ib_port_attr *port_attr);
	/** @modify_port: changes attributes of a port */
	int (*modify_port)(struct ib_device *device, u32 port_num,
			   int port_modify_mask,
			   struct ib_port_modify *port_modify);
	/**
	 * @get_port_immutable: fills in a port's fixed properties; called once for each
	 * port when the device is registered; [required]
	 */
	int (*get_port_immutable)(struct ib_device *device, u32 port_num,
				  struct ib_port_immutable *immutable);
	/** @get_link_layer: link layer of a port; [atomic] */
	enum rdma_link_layer (*get_link_layer)(struct ib_device *device,
					       u32 port_num);
	/**
	 * @get_netdev: returns the network device of a port, with a reference for
	 * the caller; NULL if there is none or it is being unregistered. Set by
	 * ib_register_device() if the driver has none
	 */
	struct net_device *(*get_netdev)(struct ib_device *device,
					 u32 port_num);
	/** @alloc_rdma_netdev: [source] */
	struct net_device *(*alloc_rdma_netdev)(struct ib_device *device,
						u32 port_num,
						enum rdma_netdev_t type,
						const char *name,
						unsigned char name_assign_type,
						void (*setup)(struct net_device *ndev));
	/** @rdma_netdev_get_params: [source] */
	int (*rdma_netdev_get_params)(struct ib_device *device, u32 port_num,
				      enum rdma_netdev_t type,
				      struct rdma_netdev_alloc_params *params);
	/**
	 * @query_gid: reads an entry of the GID table; not called for RoCE ports;
	 * [required] on IB ports with a GID table
	 */
	int (*query_gid)(struct ib_device *device, u32 port_num, int index,
			 union ib_gid *gid);
	/**
	 * @add_gid: a GID is being added to a RoCE port's table. What @context points
	 * to belongs to the entry, and is the driver's to use until @del_gid. Calls
	 * of the two methods for one port do not overlap.
	 */
	int (*add_gid)(const struct ib_gid_attr *attr, void **context);
	/** @del_gid: a GID is being taken out of the table */
	int (*del_gid)(const struct ib_gid_attr *attr, void **context);
	/**
	 * @query_pkey: reads an entry of the P_Key table; [required] on ports with
	 * such a table, which IB and RoCE ports need for their QPs
	 */
	int (*query_pkey)(struct ib_device *device, u32 port_num, u16 index,
			  u16 *pkey);
	/** @alloc_ucontext: [user] a process opens the device */
	int (*alloc_ucontext)(struct ib_ucontext *context,
			      struct ib_udata *udata);
	/**
	 * @dealloc_ucontext: [user] the process has closed the device; all of its objects
	 * are gone
	 */
	void (*dealloc_ucontext)(struct ib_ucontext *context);
	/**
	 * @open_ca: a kernel caller or a process opens the channel adapter. @vendor is
	 * the caller's data for the HCA, a process's as a copy in kernel memory; or
	 * NULL. It is valid during the call.
	 */
	int (*open_ca)(struct ib_ca *ca, const void *vendor, size_t len);
	/**
	 * @close_ca: the handle is closed, and what was made under it is freed, except
	 * a PD that a ULP still borrows, and regions that its windows are bound to
	 */
	void (*close_ca)(struct ib_ca *ca);
	/** @mmap: [user] the process maps memory, see rdma_user_mmap_entry_get() */
	int (*mmap)(struct ib_ucontext *context, struct vm_area_struct *vma);
	/** @mmap_free: frees what @mmap maps, when its last user is gone */
	void (*mmap_free)(struct rdma_user_mmap_entry *entry);
	/**
	 * @disassociate_ucontext: [user] the device is being unregistered: the process must
	 * not reach its registers any more. Without it, unregistration waits for all processes
	 */
	void (*disassociate_ucontext)(struct ib_ucontext *ibcontext);
	/**
	 * @query_ucontext: [user] returns the driver's data to a process that was passed
	 * the open file
	 */
	int (*query_ucontext)(struct ib_ucontext *context, struct uverbs_attr_bundle *attrs);
	/** @alloc_pd: sets up a PD; [required] */
	int (*alloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	/** @dealloc_pd: tears a PD down; [required] */
	int (*dealloc_pd)(struct ib_pd *pd, struct ib_udata *udata);
	/** @create_ah: sets up a handle; [atomic], unless the flags allow it to sleep */
	int (*create_ah)(struct ib_ah *ah, struct rdma_ah_init_attr *attr,
			 struct ib_udata *udata);
	/** @create_user_ah: sets up a process's handle; may sleep */
	int (*create_user_ah)(struct ib_ah *ah, struct rdma_ah_init_attr *attr,
			      struct ib_udata *udata);
	/** @modify_ah: changes the address of a handle; [atomic] */
	int (*modify_ah)(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
	/** @query_ah: reads the address of a handle; [atomic] */
	int (*query_ah)(struct ib_ah *ah, struct rdma_ah_attr *ah_attr);
	/** @destroy_ah: tears it down; [atomic], unless the flags allow it to sleep */
	int (*destroy_ah)(struct ib_ah *ah, u32 flags);
	/** @create_srq: sets up an SRQ */
	int (*create_srq)(struct ib_srq *srq,
			  struct ib_srq_init_attr *srq_init_attr,
			  struct ib_udata *udata);
	/** @modify_srq: sets the size or limit of an SRQ */
	int (*modify_srq)(struct ib_srq *srq, struct ib_srq_attr *srq_attr,
			  enum ib_srq_attr_mask srq_attr_mask,
			  struct ib_udata *udata);
	/** @query_srq: reads the size and limit of an SRQ */
	int (*query_srq)(struct ib_srq *srq, struct ib_srq_attr *srq_attr);
	/** @destroy_srq: tears an SRQ down */
	int (*destroy_srq)(struct ib_srq *srq, struct ib_udata *udata);
	/** @create_qp: sets up a QP and gives it a number; [required] */
	int (*create_qp)(struct ib_qp *qp, struct ib_qp_init_attr *qp_init_attr,
			 struct ib_udata *udata);
	/** @modify_qp: sets attributes and state of a QP; [required] */
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *qp_attr,
			 int qp_attr_mask, struct ib_udata *udata);
	/** @query_qp: reads attributes of a QP */
	int (*query_qp)(struct ib_qp *qp, struct ib_qp_attr *qp_attr,
			int qp_attr_mask, struct ib_qp_init_attr *qp_init_attr);
	/** @destroy_qp: tears a QP down; it completes nothing afterwards; [required] */
	int (*destroy_qp)(struct ib_qp *qp, struct ib_udata *udata);
	/** @create_cq: sets up a CQ; [required] */
	int (*create_cq)(struct ib_cq *cq, const struct ib_cq_init_attr *attr,
			 struct uverbs_attr_bundle *attrs);
	/** @modify_cq: sets the moderation of a CQ */
	int (*modify_cq)(struct ib_cq *cq, u16 cq_count, u16 cq_period);
	/** @destroy_cq: tears a CQ down; [required] */
	int (*destroy_cq)(struct ib_cq *cq, struct ib_udata *udata);
	/** @resize_cq: changes the size of a CQ */
	int (*resize_cq)(struct ib_cq *cq, int cqe, struct ib_udata *udata);
	/** @pre_destroy_cq: [source] */
	int (*pre_destroy_cq)(struct ib_cq *cq);
	/** @post_destroy_cq: [source] */
	void (*post_destroy_cq)(struct ib_cq *cq);
	/** @get_dma_mr: makes a region of all memory; [required] */
	struct ib_mr *(*get_dma_mr)(struct ib_pd *pd, int mr_access_flags);
	/**
	 * @reg_user_mr: makes a region of the calling process's memory, which the
	 * driver pins with ib_umem_get(); @udata is NULL for callers in the kernel
	 */
	struct ib_mr *(*reg_user_mr)(struct ib_pd *pd, u64 start, u64 length,
				     u64 virt_addr, int mr_access_flags,
				     struct ib_udata *udata);
	/**
	 * @reg_umem_mr: makes a region of memory of any kind, which the midlayer
	 * has obtained and DMA-mapped. If a driver has this method, it is used
	 * instead of @reg_user_mr and @reg_user_mr_dmabuf. If there is an @open_mr,
	 * nobody may access the region before it. With %IB_ZERO_BASED, addresses of
	 * the region count from 0, and @virt_addr only has the offset in a page of its
	 * first byte; a driver without such regions returns -EOPNOTSUPP. The midlayer
	 * sets ib_mr.iova. The midlayer releases @umem after
	 * @dereg_mr. For a dma-buf, this and the other methods of the region are
	 * called with its reservation lock held.
	 */
	struct ib_mr *(*reg_umem_mr)(struct ib_pd *pd, struct ib_umem *umem,
				     u64 virt_addr, int mr_access_flags);
	/** @open_mr: makes the keys of such a region valid; must not wait for anything */
	void (*open_mr)(struct ib_mr *mr);
	/**
	 * @revoke_mr: ends the device's access to the memory of a region for good.
	 * When it returns, no access is under way, and later ones fail as with an
	 * invalid key. It may be called several times and by any thread, but never
	 * at the same time as @open_mr, @pause_mr, @resume_mr or @dereg_mr of the
	 * region. It may wait for accesses under way, but for nothing else, not even
	 * for memory. Devices that lack it or @open_mr get no memory that can go
	 * away.
	 */
	void (*revoke_mr)(struct ib_mr *mr);
	/**
	 * @pause_mr: as @revoke_mr, but accesses wait until one of @resume_mr,
	 * @revoke_mr and @dereg_mr follows
	 */
	void (*pause_mr)(struct ib_mr *mr);
	/**
	 * @resume_mr: ends @pause_mr; the umem's list has other addresses now. After
	 * an error, @resume_mr or @revoke_mr follows.
	 */
	int (*resume_mr)(struct ib_mr *mr, struct ib_umem *umem);
	/**
	 * @reg_user_mr_dmabuf: as @reg_user_mr, but for a dma-buf; @attrs is NULL for
	 * callers in the kernel
	 */
	struct ib_mr *(*reg_user_mr_dmabuf)(struct ib_pd *pd, u64 offset,
					    u64 length, u64 virt_addr, int fd,
					    int mr_access_flags,
					    struct uverbs_attr_bundle *attrs);
	/**
	 * @rereg_user_mr: [user] changes a process's region, and returns NULL; or makes
	 * another in its place
	 */
	struct ib_mr *(*rereg_user_mr)(struct ib_mr *mr, int flags, u64 start,
				       u64 length, u64 virt_addr,
				       int mr_access_flags, struct ib_pd *pd,
				       struct ib_udata *udata);
	/** @dereg_mr: frees a region; [required] */
	int (*dereg_mr)(struct ib_mr *mr, struct ib_udata *udata);
	/** @alloc_mr: makes a region for fast registration */
	struct ib_mr *(*alloc_mr)(struct ib_pd *pd, enum ib_mr_type mr_type,
				  u32 max_num_sg);
	/** @alloc_mr_integrity: makes such a region with protection information */
	struct ib_mr *(*alloc_mr_integrity)(struct ib_pd *pd,
					    u32 max_num_data_sg,
					    u32 max_num_meta_sg);
	/** @advise_mr: takes advice on what memory will be used */
	int (*advise_mr)(struct ib_pd *pd,
			 enum ib_uverbs_advise_mr_advice advice, u32 flags,
			 struct ib_sge *sg_list, u32 num_sge,
			 struct uverbs_attr_bundle *attrs);
	/** @map_mr_sg: fills a region with a DMA-mapped list; [atomic] */
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
	/** @alloc_mw: sets up a memory window and gives it a key */
	int (*alloc_mw)(struct ib_mw *mw, struct ib_udata *udata);
	/**
	 * @dealloc_mw: tears a window down, bound or not. The memory of a process's window,
	 * which has a &ib_mw.uobject, is freed when it returns, not a grace period later
	 */
	int (*dealloc_mw)(struct ib_mw *mw);
	/** @alloc_fmr: makes an FMR and its keys */
	struct ib_fmr *(*alloc_fmr)(struct ib_pd *pd, int mr_access_flags,
				    struct ib_fmr_attr *fmr_attr);
	/** @map_phys_fmr: maps pages, under new keys; [atomic] */
	int (*map_phys_fmr)(struct ib_fmr *fmr, u64 *page_list, int list_len,
			    u64 iova);
	/** @unmap_fmr: invalidates all keys of the listed FMRs */
	int (*unmap_fmr)(struct list_head *fmr_list);
	/** @dealloc_fmr: frees an FMR */
	int (*dealloc_fmr)(struct ib_fmr *fmr);
	/** @attach_mcast: adds a QP to a multicast group */
	int (*attach_mcast)(struct ib_qp *qp, union ib_gid *gid, u16 lid);
	/** @detach_mcast: takes a QP out of a multicast group */
	int (*detach_mcast)(struct ib_qp *qp, union ib_gid *gid, u16 lid);
	/** @alloc_xrcd: [user] creates an XRC domain */
	int (*alloc_xrcd)(struct ib_xrcd *xrcd, struct ib_udata *udata);
	/** @dealloc_xrcd: [user] frees it */
	int (*dealloc_xrcd)(struct ib_xrcd *xrcd, struct ib_udata *udata);
	/** @create_flow: [user] steers packets to a QP */
	struct ib_flow *(*create_flow)(struct ib_qp *qp, struct ib_flow_attr *flow_attr,
				       struct ib_udata *udata);
	/** @destroy_flow: [user] undoes @create_flow */
	int (*destroy_flow)(struct ib_flow *flow_id);
	/** @destroy_flow_action: [user] frees what is done to steered packets */
	int (*destroy_flow_action)(struct ib_flow_action *action);
	/** @create_wq: [user] creates a work queue (WQ) */
	struct ib_wq *(*create_wq)(struct ib_pd *pd, struct ib_wq_init_attr *init_attr,
				   struct ib_udata *udata);
	/** @destroy_wq: [user] frees it */
	int (*destroy_wq)(struct ib_wq *wq, struct ib_udata *udata);
	/** @modify_wq: [user] changes its state */
	int (*modify_wq)(struct ib_wq *wq, struct ib_wq_attr *attr, u32 wq_attr_mask,
			 struct ib_udata *udata);
	/** @create_rwq_ind_table: [user] creates an RSS indirection table of WQs */
	int (*create_rwq_ind_table)(struct ib_rwq_ind_table *ib_rwq_ind_table,
				    struct ib_rwq_ind_table_init_attr *init_attr,
				    struct ib_udata *udata);
	/** @destroy_rwq_ind_table: [user] frees it */
	int (*destroy_rwq_ind_table)(struct ib_rwq_ind_table *wq_ind_table);
	/** @alloc_dm: [user] allocates memory of the device */
	struct ib_dm *(*alloc_dm)(struct ib_device *device, struct ib_ucontext *context,
				  struct ib_dm_alloc_attr *attr,
				  struct uverbs_attr_bundle *attrs);
	/** @dealloc_dm: [user] frees it */
	int (*dealloc_dm)(struct ib_dm *dm, struct uverbs_attr_bundle *attrs);
	/** @reg_dm_mr: [user] registers a region of it */
	struct ib_mr *(*reg_dm_mr)(struct ib_pd *pd, struct ib_dm *dm,
				   struct ib_dm_mr_attr *attr,
				   struct uverbs_attr_bundle *attrs);
	/** @create_counters: [user] creates counters of steered packets */
	int (*create_counters)(struct ib_counters *counters, struct uverbs_attr_bundle *attrs);
	/** @destroy_counters: [user] frees them */
	int (*destroy_counters)(struct ib_counters *counters);
	/** @read_counters: [user] reads them */
	int (*read_counters)(struct ib_counters *counters,
			     struct ib_counters_read_attr *counters_read_attr,
			     struct uverbs_attr_bundle *attrs);
	/** @set_vf_link_state: sets the link policy of a virtual function */
	int (*set_vf_link_state)(struct ib_device *device, int vf, u32 port,
				 int state);
	/** @get_vf_config: reads the configuration of a virtual function */
	int (*get_vf_config)(struct ib_device *device, int vf, u32 port,
			     struct ifla_vf_info *ivf);
	/** @get_vf_stats: reads the counters of a virtual function */
	int (*get_vf_stats)(struct ib_device *device, int vf, u32 port,
			    struct ifla_vf_stats *stats);
	/** @get_vf_guid: reads the GUIDs of a virtual function */
	int (*get_vf_guid)(struct ib_device *device, int vf, u32 port,
			   struct ifla_vf_guid *node_guid,
			   struct ifla_vf_guid *port_guid);
	/** @set_vf_guid: sets a GUID of a virtual function */
	int (*set_vf_guid)(struct ib_device *device, int vf, u32 port, u64 guid,
			   int type);
	/** @alloc_hw_device_stats: makes the device's counters; the core frees them */
	struct rdma_hw_stats *(*alloc_hw_device_stats)(struct ib_device *device);
	/** @alloc_hw_port_stats: makes a port's counters; the core frees them */
	struct rdma_hw_stats *(*alloc_hw_port_stats)(struct ib_device *device,
						     u32 port_num);
	/**
	 * @get_hw_stats: updates counter @index, or all counters, as it must if @index
	 * is their number. Returns the number of counters if it updated all, which are
	 * good for the lifespan then; else @index, or an error. @port is 0 for the
	 * counters of the device.
	 */
	int (*get_hw_stats)(struct ib_device *device,
			    struct rdma_hw_stats *stats, u32 port, int index);
	/** @modify_hw_stat: [user] switches an optional counter on or off */
	int (*modify_hw_stat)(struct ib_device *device, u32 port,
			      unsigned int counter_index, bool enable);
	/** @fill_res_mr_entry: [user] adds what the driver knows of a region to an answer */
	int (*fill_res_mr_entry)(struct sk_buff *msg, struct ib_mr *ibmr);
	/** @fill_res_mr_entry_raw: [user] the same, as the device has it */
	int (*fill_res_mr_entry_raw)(struct sk_buff *msg, struct ib_mr *ibmr);
	/** @fill_res_cq_entry: [user] adds what the driver knows of a CQ to an answer */
	int (*fill_res_cq_entry)(struct sk_buff *msg, struct ib_cq *ibcq);
	/** @fill_res_cq_entry_raw: [user] the same, as the device has it */
	int (*fill_res_cq_entry_raw)(struct sk_buff *msg, struct ib_cq *ibcq);
	/** @fill_res_qp_entry: [user] adds what the driver knows of a QP to an answer */
	int (*fill_res_qp_entry)(struct sk_buff *msg, struct ib_qp *ibqp);
	/** @fill_res_qp_entry_raw: [user] the same, as the device has it */
	int (*fill_res_qp_entry_raw)(struct sk_buff *msg, struct ib_qp *ibqp);
	/** @fill_res_cm_id_entry: [user] adds what the driver knows of a CM ID to an answer */
	int (*fill_res_cm_id_entry)(struct sk_buff *msg, struct rdma_cm_id *id);
	/** @fill_res_srq_entry: [user] adds what the driver knows of an SRQ to an answer */
	int (*fill_res_srq_entry)(struct sk_buff *msg, struct ib_srq *ib_srq);
	/** @fill_res_srq_entry_raw: [user] the same, as the device has it */
	int (*fill_res_srq_entry_raw)(struct sk_buff *msg, struct ib_srq *ib_srq);
	/** @fill_stat_mr_entry: [user] adds counters of a region to an answer */
	int (*fill_stat_mr_entry)(struct sk_buff *msg, struct ib_mr *ibmr);
	/** @enable_driver: last step of the registration before clients are added */
	int (*enable_driver)(struct ib_device *dev);
	/** @dealloc_driver: called first by ib_dealloc_device() */
	void (*dealloc_driver)(struct ib_device *dev);
	/** @get_numa_node: returns the NUMA node to allocate QPs from */
	int (*get_numa_node)(struct ib_device *dev);
	/**
	 * @iw_add_ref: iWARP: takes a reference on a QP; only iw_cm calls this and the next
	 * ones
	 */
	void (*iw_add_ref)(struct ib_qp *qp);
	/** @iw_rem_ref: drops it */
	void (*iw_rem_ref)(struct ib_qp *qp);
	/** @iw_get_qp: finds a QP by its number, without a reference */
	struct ib_qp *(*iw_get_qp)(struct ib_device *device, int qpn);
	/** @iw_connect: begins to connect a QP */
	int (*iw_connect)(struct iw_cm_id *cm_id, struct iw_cm_conn_param *conn_param);
	/** @iw_accept: accepts a connection */
	int (*iw_accept)(struct iw_cm_id *cm_id, struct iw_cm_conn_param *conn_param);
	/** @iw_reject: refuses a connection */
	int (*iw_reject)(struct iw_cm_id *cm_id, const void *pdata, u8 pdata_len);
	/** @iw_create_listen: begins to listen */
	int (*iw_create_listen)(struct iw_cm_id *cm_id, int backlog);
	/** @iw_destroy_listen: stops listening */
	int (*iw_destroy_listen)(struct iw_cm_id *cm_id);

	/* Set these with INIT_RDMA_OBJ_SIZE(). */
	/** @size_ib_ah: bytes of the driver's structure for an address handle */
	size_t size_ib_ah;
	/** @size_ib_ca: bytes of the driver's structure for an open CA */
	size_t size_ib_ca;
	/** @size_ib_counters: bytes of the driver's structure for counters of packets */
	size_t size_ib_counters;
	/** @size_ib_cq: bytes of the driver's structure for a CQ */
	size_t size_ib_cq;
	/** @size_ib_mw: bytes of the driver's structure for a memory window */
	size_t size_ib_mw;
	/** @size_ib_pd: bytes of the driver's structure for a PD */
	size_t size_ib_pd;
	/** @size_ib_qp: bytes of the driver's structure for a QP */
	size_t size_ib_qp;
	/**
	 * @size_ib_rwq_ind_table: bytes of the driver's structure for an RSS indirection
	 * table
	 */
	size_t size_ib_rwq_ind_table;
	/** @size_ib_srq: bytes of the driver's structure for an SRQ */
	size_t size_ib_srq;
	/** @size_ib_ucontext: bytes of the driver's structure for a user context */
	size_t size_ib_ucontext;
	/** @size_ib_xrcd: bytes of the driver's structure for an XRC domain */
	size_t size_ib_xrcd;
};

/* The device */

/**
 * struct ib_core_device - a device as one network namespace sees it
 * @dev: must be the first member, see &struct ib_device
 * @rdma_net: the namespace
 * @ports_kobj: directory of the ports
 * @port_list: the ports
 * @owner: the RDMA device
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
 * A driver embeds it in a structure of its own, which it allocates with
 * ib_alloc_device(). Before ib_register_device() it sets @node_type,
 * @phys_port_cnt, @num_comp_vectors, @node_guid and the methods. Members marked
 * [source] only exist for driver sources to compile: nothing reads them.
 */
struct ib_device {
	/** @dma_device: does the DMA; NULL: DMA addresses are kernel pointers */
	struct device		*dma_device;
	/** @ops: methods, see ib_set_device_ops() */
	struct ib_device_ops	ops;
	/** @name: name, valid from registration on */
	char			name[IB_DEVICE_NAME_MAX];
	/** @client_data: pointers of ib_set_client_data(), by &ib_client.client_id */
	struct xarray		client_data;

	/** @port_data: by port number */
	struct ib_port_data	*port_data;
	/** @num_comp_vectors: number of completion vectors */
	int			num_comp_vectors;
	/** @cq_vectors: private to the CQ layer */
	void			*cq_vectors;
	/** @cq_pool: private to the CQ layer: CQs of ib_cq_pool_get() */
	struct ib_cq_pool	*cq_pool;

	union {
		/** @dev: the device in sysfs */
		struct device		dev;
		/** @coredev: @dev with the network namespace */
		struct ib_core_device	coredev;
	};

	/** @groups: attributes in sysfs, set by the core */
	const struct attribute_group *groups[4];

	/**
	 * @uverbs_cmd_mask: requests of processes that the device takes, by
	 * IB_USER_VERBS_CMD_*; a new device takes those that every driver has methods for
	 */
	u64			uverbs_cmd_mask;

	/** @node_desc: description of the node, for people */
	char			node_desc[IB_DEVICE_NODE_DESC_MAX];
	/** @node_guid: GUID of the node */
	__be64			node_guid;
	/** @local_dma_lkey: key for all of memory, with %IBK_LOCAL_DMA_LKEY */
	u32			local_dma_lkey;
	/** @is_switch: the device has one port, number 0 */
	u16			is_switch:1;
	/** @kverbs_provider: set by the core for each registered device */
	u16			kverbs_provider:1;
	/** @use_cq_dim: let the moderation of CQs that the core polls follow their load */
	u16			use_cq_dim:1;
	/** @node_type: RDMA_NODE_* */
	u8			node_type;
	/** @phys_port_cnt: number of ports */
	u32			phys_port_cnt;
	/** @attrs: limits and capabilities, valid from registration on */
	struct ib_device_attr	attrs;

	/** @index: number, unique among the existing devices */
	u32			index;
	/** @res: the objects, by kind; private to the core, and to RDMA netlink */
	struct rdma_restrack_root *res;
	/** @driver_def: requests of processes that only this driver has; or NULL */
	const struct uapi_definition *driver_def;
	/** @parent: NULL: no device is a part of another */
	struct ib_device	*parent;
	/** @type: 0, as @parent is NULL */
	int			type;
	/** @name_assign_type: how the device got its name, RDMA_NAME_ASSIGN_TYPE_* */
	int			name_assign_type;

	/** @iw_ifname: iWARP: name of the network device; for iw_cm alone, like the next one */
	char			iw_ifname[IFNAMSIZ];
	/** @iw_driver_flags: iWARP: what the driver does without the port mapper */
	u32			iw_driver_flags;

	/** @refcount: users that hold off unregistration; 0 if not registered */
	refcount_t		refcount;
	/** @unreg_completion: completed when @refcount drops to 0 */
	struct completion	unreg_completion;
	/** @unregistration_work: for ib_unregister_device_queued() */
	struct work_struct	unregistration_work;
};

#endif /* _RDMA_IB_DEVICE_H */
