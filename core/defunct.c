// SPDX-License-Identifier: GPL-2.0-only
/*
 * The methods of a device that was freed with objects left on it.
 *
 * The driver has given the device up, and its code and hardware may be gone. The module
 * that left the objects may still use them: then the memory must still exist, so that the
 * contract checker can report it, and no method of the driver may be called. So the memory
 * is never freed, and each call fails.
 *
 * A caller that has just found that a method exists will call it next. So each method has a
 * replacement here, and only those that the device never had are NULL. Except for
 * enable_driver and dealloc_driver, which the core alone calls, for a device that is registered or
 * about to be; this one is neither.
 *
 * While the contract checker is on, the last few devices that were freed stay for a while
 * too, although nothing is left on them: a module that kept only a pointer to the device,
 * and uses it, is then reported as well.
 *
 * Lock protocol: defunct_lock (a mutex, innermost) guards the list of devices that stay for a
 * while.
 */
#include <linux/build_bug.h>
#include <linux/device.h>
#include <linux/err.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/numa.h>
#include <linux/stddef.h>

#include "contract/contract.h"
#include "device.h"

/* A late use is reported if fewer devices than this were freed in between. */
#define DEFUNCT_DEVICES	16

static DEFINE_MUTEX(defunct_lock);
static struct ib_device *defunct_devices[DEFUNCT_DEVICES];
static unsigned int next_defunct;

#define DEFUNCT(method, ...)						\
static int defunct_##method(__VA_ARGS__)				\
{									\
	return -ENODEV;							\
}

#define DEFUNCT_MAKER(type, method, ...)				\
static type *defunct_##method(__VA_ARGS__)				\
{									\
	return ERR_PTR(-ENODEV);					\
}

/* For a method that returns nothing. */
#define DEFUNCT_VOID(method, ...)					\
static void defunct_##method(__VA_ARGS__)				\
{									\
}

static int defunct_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			     const struct ib_send_wr **bad)
{
	*bad = wr;
	return -ENODEV;
}

static int defunct_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad)
{
	*bad = wr;
	return -ENODEV;
}

static int defunct_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
				 const struct ib_recv_wr **bad)
{
	*bad = wr;
	return -ENODEV;
}

DEFUNCT_VOID(drain_rq, struct ib_qp *qp)
DEFUNCT_VOID(drain_sq, struct ib_qp *qp)
DEFUNCT(poll_cq, struct ib_cq *cq, int nr, struct ib_wc *wc)
DEFUNCT(peek_cq, struct ib_cq *cq, int limit)
DEFUNCT(req_notify_cq, struct ib_cq *cq, enum ib_cq_notify_flags flags)
DEFUNCT(query_device, struct ib_device *device, struct ib_device_attr *attr, struct ib_udata *udata)
DEFUNCT(modify_device, struct ib_device *device, int mask, struct ib_device_modify *modify)
DEFUNCT(query_port, struct ib_device *device, u32 port, struct ib_port_attr *attr)
DEFUNCT(modify_port, struct ib_device *device, u32 port, int mask, struct ib_port_modify *modify)
DEFUNCT(get_port_immutable, struct ib_device *device, u32 port, struct ib_port_immutable *immutable)
DEFUNCT_MAKER(struct net_device, alloc_rdma_netdev, struct ib_device *device, u32 port,
	      enum rdma_netdev_t type, const char *name, unsigned char name_assign_type,
	      void (*setup)(struct net_device *ndev))
DEFUNCT(rdma_netdev_get_params, struct ib_device *device, u32 port, enum rdma_netdev_t type,
	struct rdma_netdev_alloc_params *params)
DEFUNCT(query_gid, struct ib_device *device, u32 port, int index, union ib_gid *gid)
DEFUNCT(add_gid, const struct ib_gid_attr *attr, void **context)
DEFUNCT(del_gid, const struct ib_gid_attr *attr, void **context)
DEFUNCT(query_pkey, struct ib_device *device, u32 port, u16 index, u16 *pkey)
DEFUNCT(open_ca, struct ib_ca *ca, const void *vendor, size_t len)
DEFUNCT_VOID(close_ca, struct ib_ca *ca)
DEFUNCT(alloc_pd, struct ib_pd *pd, struct ib_udata *udata)
DEFUNCT(dealloc_pd, struct ib_pd *pd, struct ib_udata *udata)
DEFUNCT(create_ah, struct ib_ah *ah, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
DEFUNCT(modify_ah, struct ib_ah *ah, struct rdma_ah_attr *attr)
DEFUNCT(query_ah, struct ib_ah *ah, struct rdma_ah_attr *attr)
DEFUNCT(destroy_ah, struct ib_ah *ah, u32 flags)
DEFUNCT(create_srq, struct ib_srq *srq, struct ib_srq_init_attr *attr, struct ib_udata *udata)
DEFUNCT(modify_srq, struct ib_srq *srq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
	struct ib_udata *udata)
DEFUNCT(query_srq, struct ib_srq *srq, struct ib_srq_attr *attr)
DEFUNCT(destroy_srq, struct ib_srq *srq, struct ib_udata *udata)
DEFUNCT(create_qp, struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
DEFUNCT(modify_qp, struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
DEFUNCT(query_qp, struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
DEFUNCT(destroy_qp, struct ib_qp *qp, struct ib_udata *udata)
DEFUNCT(create_cq, struct ib_cq *cq, const struct ib_cq_init_attr *a, struct uverbs_attr_bundle *b)
DEFUNCT(modify_cq, struct ib_cq *cq, u16 count, u16 period)
DEFUNCT(destroy_cq, struct ib_cq *cq, struct ib_udata *udata)
DEFUNCT(resize_cq, struct ib_cq *cq, int cqe, struct ib_udata *udata)
DEFUNCT(pre_destroy_cq, struct ib_cq *cq)
DEFUNCT_VOID(post_destroy_cq, struct ib_cq *cq)
DEFUNCT_MAKER(struct ib_mr, get_dma_mr, struct ib_pd *pd, int access)
DEFUNCT_MAKER(struct ib_mr, reg_user_mr, struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
	      int access, struct ib_udata *udata)
DEFUNCT_MAKER(struct ib_mr, reg_umem_mr, struct ib_pd *pd, struct ib_umem *umem, u64 virt_addr,
	      int access)
DEFUNCT_MAKER(struct ib_mr, reg_user_mr_dmabuf, struct ib_pd *pd, u64 offset, u64 length,
	      u64 virt_addr, int fd, int access, struct uverbs_attr_bundle *attrs)
/* The device can no longer access any memory, so there is nothing to do. */
DEFUNCT_VOID(open_mr, struct ib_mr *mr)
DEFUNCT_VOID(revoke_mr, struct ib_mr *mr)
DEFUNCT_VOID(pause_mr, struct ib_mr *mr)
DEFUNCT(resume_mr, struct ib_mr *mr, struct ib_umem *umem)
DEFUNCT(dereg_mr, struct ib_mr *mr, struct ib_udata *udata)
DEFUNCT_MAKER(struct ib_mr, alloc_mr, struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
DEFUNCT_MAKER(struct ib_mr, alloc_mr_integrity, struct ib_pd *pd, u32 data_sg, u32 meta_sg)
DEFUNCT(map_mr_sg, struct ib_mr *mr, struct scatterlist *sg, int nents, unsigned int *offset)
DEFUNCT(map_mr_sg_pi, struct ib_mr *mr, struct scatterlist *data, int data_nents,
	unsigned int *data_offset, struct scatterlist *meta, int meta_nents,
	unsigned int *meta_offset)
DEFUNCT(check_mr_status, struct ib_mr *mr, u32 mask, struct ib_mr_status *status)
DEFUNCT(alloc_mw, struct ib_mw *mw, struct ib_udata *udata)
DEFUNCT(dealloc_mw, struct ib_mw *mw)
DEFUNCT_MAKER(struct ib_fmr, alloc_fmr, struct ib_pd *pd, int access, struct ib_fmr_attr *attr)
DEFUNCT(map_phys_fmr, struct ib_fmr *fmr, u64 *pages, int nr, u64 iova)
DEFUNCT(unmap_fmr, struct list_head *fmrs)
DEFUNCT(dealloc_fmr, struct ib_fmr *fmr)
DEFUNCT(attach_mcast, struct ib_qp *qp, union ib_gid *gid, u16 lid)
DEFUNCT(detach_mcast, struct ib_qp *qp, union ib_gid *gid, u16 lid)
DEFUNCT(set_vf_link_state, struct ib_device *device, int vf, u32 port, int state)
DEFUNCT(get_vf_config, struct ib_device *device, int vf, u32 port, struct ifla_vf_info *info)
DEFUNCT(get_vf_stats, struct ib_device *device, int vf, u32 port, struct ifla_vf_stats *stats)
DEFUNCT(get_vf_guid, struct ib_device *device, int vf, u32 port, struct ifla_vf_guid *node_guid,
	struct ifla_vf_guid *port_guid)
DEFUNCT(set_vf_guid, struct ib_device *device, int vf, u32 port, u64 guid, int type)
DEFUNCT_MAKER(struct rdma_hw_stats, alloc_hw_device_stats, struct ib_device *device)
DEFUNCT_MAKER(struct rdma_hw_stats, alloc_hw_port_stats, struct ib_device *device, u32 port)
DEFUNCT(get_hw_stats, struct ib_device *device, struct rdma_hw_stats *stats, u32 port, int index)
DEFUNCT(modify_hw_stat, struct ib_device *device, u32 port, unsigned int index, bool enable)
/* What only processes, or the kernel's own ULPs, call. */
DEFUNCT(alloc_ucontext, struct ib_ucontext *context, struct ib_udata *udata)
DEFUNCT_VOID(dealloc_ucontext, struct ib_ucontext *context)
DEFUNCT(mmap, struct ib_ucontext *context, struct vm_area_struct *vma)
DEFUNCT_VOID(mmap_free, struct rdma_user_mmap_entry *entry)
DEFUNCT_VOID(disassociate_ucontext, struct ib_ucontext *ibcontext)
DEFUNCT(query_ucontext, struct ib_ucontext *context, struct uverbs_attr_bundle *attrs)
DEFUNCT(create_user_ah, struct ib_ah *ah, struct rdma_ah_init_attr *attr,
	struct ib_udata *udata)
DEFUNCT_MAKER(struct ib_mr, rereg_user_mr, struct ib_mr *mr, int flags, u64 start, u64 length,
	      u64 virt_addr, int mr_access_flags, struct ib_pd *pd, struct ib_udata *udata)
DEFUNCT(advise_mr, struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
	struct ib_sge *sg_list, u32 num_sge, struct uverbs_attr_bundle *attrs)
DEFUNCT(alloc_xrcd, struct ib_xrcd *xrcd, struct ib_udata *udata)
DEFUNCT(dealloc_xrcd, struct ib_xrcd *xrcd, struct ib_udata *udata)
DEFUNCT_MAKER(struct ib_flow, create_flow, struct ib_qp *qp, struct ib_flow_attr *flow_attr,
	      struct ib_udata *udata)
DEFUNCT(destroy_flow, struct ib_flow *flow_id)
DEFUNCT(destroy_flow_action, struct ib_flow_action *action)
DEFUNCT_MAKER(struct ib_wq, create_wq, struct ib_pd *pd, struct ib_wq_init_attr *init_attr,
	      struct ib_udata *udata)
DEFUNCT(destroy_wq, struct ib_wq *wq, struct ib_udata *udata)
DEFUNCT(modify_wq, struct ib_wq *wq, struct ib_wq_attr *attr, u32 wq_attr_mask,
	struct ib_udata *udata)
DEFUNCT(create_rwq_ind_table, struct ib_rwq_ind_table *ib_rwq_ind_table,
	struct ib_rwq_ind_table_init_attr *init_attr, struct ib_udata *udata)
DEFUNCT(destroy_rwq_ind_table, struct ib_rwq_ind_table *wq_ind_table)
DEFUNCT_MAKER(struct ib_dm, alloc_dm, struct ib_device *device, struct ib_ucontext *context,
	      struct ib_dm_alloc_attr *attr, struct uverbs_attr_bundle *attrs)
DEFUNCT(dealloc_dm, struct ib_dm *dm, struct uverbs_attr_bundle *attrs)
DEFUNCT_MAKER(struct ib_mr, reg_dm_mr, struct ib_pd *pd, struct ib_dm *dm,
	      struct ib_dm_mr_attr *attr, struct uverbs_attr_bundle *attrs)
DEFUNCT(create_counters, struct ib_counters *counters, struct uverbs_attr_bundle *attrs)
DEFUNCT(destroy_counters, struct ib_counters *counters)
DEFUNCT(read_counters, struct ib_counters *counters,
	struct ib_counters_read_attr *counters_read_attr, struct uverbs_attr_bundle *attrs)
DEFUNCT(fill_res_mr_entry, struct sk_buff *msg, struct ib_mr *ibmr)
DEFUNCT(fill_res_mr_entry_raw, struct sk_buff *msg, struct ib_mr *ibmr)
DEFUNCT(fill_res_cq_entry, struct sk_buff *msg, struct ib_cq *ibcq)
DEFUNCT(fill_res_cq_entry_raw, struct sk_buff *msg, struct ib_cq *ibcq)
DEFUNCT(fill_res_qp_entry, struct sk_buff *msg, struct ib_qp *ibqp)
DEFUNCT(fill_res_qp_entry_raw, struct sk_buff *msg, struct ib_qp *ibqp)
DEFUNCT(fill_res_cm_id_entry, struct sk_buff *msg, struct rdma_cm_id *id)
DEFUNCT(fill_res_srq_entry, struct sk_buff *msg, struct ib_srq *ib_srq)
DEFUNCT(fill_res_srq_entry_raw, struct sk_buff *msg, struct ib_srq *ib_srq)
DEFUNCT(fill_stat_mr_entry, struct sk_buff *msg, struct ib_mr *ibmr)
DEFUNCT_VOID(iw_add_ref, struct ib_qp *qp)
DEFUNCT_VOID(iw_rem_ref, struct ib_qp *qp)
DEFUNCT(iw_connect, struct iw_cm_id *cm_id, struct iw_cm_conn_param *conn_param)
DEFUNCT(iw_accept, struct iw_cm_id *cm_id, struct iw_cm_conn_param *conn_param)
DEFUNCT(iw_reject, struct iw_cm_id *cm_id, const void *pdata, u8 pdata_len)
DEFUNCT(iw_create_listen, struct iw_cm_id *cm_id, int backlog)
DEFUNCT(iw_destroy_listen, struct iw_cm_id *cm_id)

/* Its result is a bit mask, of which this is that of a failure. */
static int defunct_process_mad(struct ib_device *device, int flags, u32 port,
			       const struct ib_wc *in_wc, const struct ib_grh *in_grh,
			       const struct ib_mad *in, struct ib_mad *out, size_t *out_size,
			       u16 *out_pkey_index)
{
	return 0;
}

static struct ib_qp *defunct_iw_get_qp(struct ib_device *device, int qpn)
{
	return NULL;
}

static void defunct_get_dev_fw_str(struct ib_device *device, char *str)
{
	str[0] = '\0';
}

static const struct cpumask *defunct_get_vector_affinity(struct ib_device *device, int comp_vector)
{
	return NULL;
}

static enum rdma_link_layer defunct_get_link_layer(struct ib_device *device, u32 port)
{
	return IB_LINK_LAYER_UNSPECIFIED;
}

static struct net_device *defunct_get_netdev(struct ib_device *device, u32 port)
{
	return NULL;
}

static int defunct_get_numa_node(struct ib_device *device)
{
	return NUMA_NO_NODE;
}

static const struct ib_device_ops defunct_ops = {
	.post_send = defunct_post_send,
	.post_recv = defunct_post_recv,
	.drain_rq = defunct_drain_rq,
	.drain_sq = defunct_drain_sq,
	.poll_cq = defunct_poll_cq,
	.peek_cq = defunct_peek_cq,
	.req_notify_cq = defunct_req_notify_cq,
	.post_srq_recv = defunct_post_srq_recv,
	.query_device = defunct_query_device,
	.modify_device = defunct_modify_device,
	.get_dev_fw_str = defunct_get_dev_fw_str,
	.get_vector_affinity = defunct_get_vector_affinity,
	.query_port = defunct_query_port,
	.modify_port = defunct_modify_port,
	.get_port_immutable = defunct_get_port_immutable,
	.get_link_layer = defunct_get_link_layer,
	.get_netdev = defunct_get_netdev,
	.alloc_rdma_netdev = defunct_alloc_rdma_netdev,
	.rdma_netdev_get_params = defunct_rdma_netdev_get_params,
	.query_gid = defunct_query_gid,
	.add_gid = defunct_add_gid,
	.del_gid = defunct_del_gid,
	.query_pkey = defunct_query_pkey,
	.open_ca = defunct_open_ca,
	.close_ca = defunct_close_ca,
	.alloc_pd = defunct_alloc_pd,
	.dealloc_pd = defunct_dealloc_pd,
	.create_ah = defunct_create_ah,
	.modify_ah = defunct_modify_ah,
	.query_ah = defunct_query_ah,
	.destroy_ah = defunct_destroy_ah,
	.create_srq = defunct_create_srq,
	.modify_srq = defunct_modify_srq,
	.query_srq = defunct_query_srq,
	.destroy_srq = defunct_destroy_srq,
	.create_qp = defunct_create_qp,
	.modify_qp = defunct_modify_qp,
	.query_qp = defunct_query_qp,
	.destroy_qp = defunct_destroy_qp,
	.create_cq = defunct_create_cq,
	.modify_cq = defunct_modify_cq,
	.destroy_cq = defunct_destroy_cq,
	.resize_cq = defunct_resize_cq,
	.pre_destroy_cq = defunct_pre_destroy_cq,
	.post_destroy_cq = defunct_post_destroy_cq,
	.get_dma_mr = defunct_get_dma_mr,
	.reg_user_mr = defunct_reg_user_mr,
	.reg_umem_mr = defunct_reg_umem_mr,
	.open_mr = defunct_open_mr,
	.revoke_mr = defunct_revoke_mr,
	.pause_mr = defunct_pause_mr,
	.resume_mr = defunct_resume_mr,
	.reg_user_mr_dmabuf = defunct_reg_user_mr_dmabuf,
	.dereg_mr = defunct_dereg_mr,
	.alloc_mr = defunct_alloc_mr,
	.alloc_mr_integrity = defunct_alloc_mr_integrity,
	.map_mr_sg = defunct_map_mr_sg,
	.map_mr_sg_pi = defunct_map_mr_sg_pi,
	.check_mr_status = defunct_check_mr_status,
	.alloc_mw = defunct_alloc_mw,
	.dealloc_mw = defunct_dealloc_mw,
	.alloc_fmr = defunct_alloc_fmr,
	.map_phys_fmr = defunct_map_phys_fmr,
	.unmap_fmr = defunct_unmap_fmr,
	.dealloc_fmr = defunct_dealloc_fmr,
	.attach_mcast = defunct_attach_mcast,
	.detach_mcast = defunct_detach_mcast,
	.set_vf_link_state = defunct_set_vf_link_state,
	.get_vf_config = defunct_get_vf_config,
	.get_vf_stats = defunct_get_vf_stats,
	.get_vf_guid = defunct_get_vf_guid,
	.set_vf_guid = defunct_set_vf_guid,
	.alloc_hw_device_stats = defunct_alloc_hw_device_stats,
	.alloc_hw_port_stats = defunct_alloc_hw_port_stats,
	.get_hw_stats = defunct_get_hw_stats,
	.modify_hw_stat = defunct_modify_hw_stat,
	.get_numa_node = defunct_get_numa_node,
	.process_mad = defunct_process_mad,
	.alloc_ucontext = defunct_alloc_ucontext,
	.dealloc_ucontext = defunct_dealloc_ucontext,
	.mmap = defunct_mmap,
	.mmap_free = defunct_mmap_free,
	.disassociate_ucontext = defunct_disassociate_ucontext,
	.query_ucontext = defunct_query_ucontext,
	.create_user_ah = defunct_create_user_ah,
	.rereg_user_mr = defunct_rereg_user_mr,
	.advise_mr = defunct_advise_mr,
	.alloc_xrcd = defunct_alloc_xrcd,
	.dealloc_xrcd = defunct_dealloc_xrcd,
	.create_flow = defunct_create_flow,
	.destroy_flow = defunct_destroy_flow,
	.destroy_flow_action = defunct_destroy_flow_action,
	.create_wq = defunct_create_wq,
	.destroy_wq = defunct_destroy_wq,
	.modify_wq = defunct_modify_wq,
	.create_rwq_ind_table = defunct_create_rwq_ind_table,
	.destroy_rwq_ind_table = defunct_destroy_rwq_ind_table,
	.alloc_dm = defunct_alloc_dm,
	.dealloc_dm = defunct_dealloc_dm,
	.reg_dm_mr = defunct_reg_dm_mr,
	.create_counters = defunct_create_counters,
	.destroy_counters = defunct_destroy_counters,
	.read_counters = defunct_read_counters,
	.fill_res_mr_entry = defunct_fill_res_mr_entry,
	.fill_res_mr_entry_raw = defunct_fill_res_mr_entry_raw,
	.fill_res_cq_entry = defunct_fill_res_cq_entry,
	.fill_res_cq_entry_raw = defunct_fill_res_cq_entry_raw,
	.fill_res_qp_entry = defunct_fill_res_qp_entry,
	.fill_res_qp_entry_raw = defunct_fill_res_qp_entry_raw,
	.fill_res_cm_id_entry = defunct_fill_res_cm_id_entry,
	.fill_res_srq_entry = defunct_fill_res_srq_entry,
	.fill_res_srq_entry_raw = defunct_fill_res_srq_entry_raw,
	.fill_stat_mr_entry = defunct_fill_stat_mr_entry,
	.iw_add_ref = defunct_iw_add_ref,
	.iw_rem_ref = defunct_iw_rem_ref,
	.iw_get_qp = defunct_iw_get_qp,
	.iw_connect = defunct_iw_connect,
	.iw_accept = defunct_iw_accept,
	.iw_reject = defunct_iw_reject,
	.iw_create_listen = defunct_iw_create_listen,
	.iw_destroy_listen = defunct_iw_destroy_listen,
};

static void replace_methods(struct ib_device *dev)
{
	const size_t start = offsetof(struct ib_device_ops, device_group);
	const size_t end = offsetof(struct ib_device_ops, size_ib_ah);
	void * const *from = (void *)&defunct_ops + start;
	void **to = (void *)&dev->ops + start;
	size_t i;

	/* All members from here on are pointers. */
	BUILD_BUG_ON((end - start) % sizeof(*to));
	for (i = 0; i < (end - start) / sizeof(*to); i++)
		if (to[i])
			WRITE_ONCE(to[i], from[i]);
	dev->ops.owner = NULL;
}

/*
 * Turns a device that its driver gives up into one that does nothing and is never freed.
 * The module that left the objects may be making a call at this very moment.
 */
void ib_device_make_defunct(struct ib_device *dev)
{
	replace_methods(dev);
	/* DMA mappings for it are made and undone without calling the driver. */
	get_device(dev->dma_device);
	get_device(&dev->dev);
}

static void put_defunct(struct ib_device *dev)
{
	struct device *dma_device;

	if (!dev)
		return;
	dma_device = dev->dma_device;
	put_device(&dev->dev);
	put_device(dma_device);
}

static struct ib_device *replace_defunct(unsigned int i, struct ib_device *dev)
{
	struct ib_device *old;

	lockdep_assert_held(&defunct_lock);
	old = defunct_devices[i];
	defunct_devices[i] = dev;
	return old;
}

/* Keeps a device that was freed cleanly until DEFUNCT_DEVICES newer ones have replaced it. */
void ib_device_keep_defunct(struct ib_device *dev)
{
	struct ib_device *oldest;

	ib_device_make_defunct(dev);
	mutex_lock(&defunct_lock);
	oldest = replace_defunct(next_defunct++ % DEFUNCT_DEVICES, dev);
	mutex_unlock(&defunct_lock);
	put_defunct(oldest);
}

static void put_all_defunct(void)
{
	struct ib_device *dev;
	unsigned int i;

	for (i = 0; i < DEFUNCT_DEVICES; i++) {
		mutex_lock(&defunct_lock);
		dev = replace_defunct(i, NULL);
		mutex_unlock(&defunct_lock);
		put_defunct(dev);
	}
}

/* Once the checker is off, late uses are not reported any more. */
static int mode_changed(struct notifier_block *nb, unsigned long mode, void *data)
{
	if (mode == IB_CONTRACT_OFF)
		put_all_defunct();
	return NOTIFY_OK;
}

static struct notifier_block mode_notifier = { .notifier_call = mode_changed };

void ib_defunct_init(void)
{
	ib_contract_register_notifier(&mode_notifier);
}

void ib_defunct_exit(void)
{
	ib_contract_unregister_notifier(&mode_notifier);
	put_all_defunct();
}
