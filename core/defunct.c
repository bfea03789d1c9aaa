// SPDX-License-Identifier: GPL-2.0-only
/*
 * The methods of a device that was freed with objects left on it.
 *
 * The driver has given the device up, and its code and hardware may be gone. The module
 * that left the objects may still use them: then the memory must still exist, so that the
 * contract checker can report it, and no method of the driver may be called. So the memory
 * is never freed, and each call fails.
 *
 * A caller that has just checked that a method exists calls it next. So each method that an
 * object or a caller can reach has a replacement here, and only those that the device never
 * had are NULL.
 *
 * While the contract checker is on, the last few devices that were freed stay for a while
 * too, although nothing is left on them: a module that kept only a pointer to the device,
 * and uses it, is then reported as well.
 *
 * Lock protocol: kept_lock (a mutex, innermost) guards the list of devices that stay for a
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
#define KEPT_DEVICES	16

static DEFINE_MUTEX(kept_lock);
static struct ib_device *kept_devices[KEPT_DEVICES];
static unsigned int next_kept;

#define GONE(method, ...)						\
static int gone_##method(__VA_ARGS__)					\
{									\
	return -ENODEV;							\
}

#define GONE_MAKER(type, method, ...)					\
static type *gone_##method(__VA_ARGS__)					\
{									\
	return ERR_PTR(-ENODEV);					\
}

/* For a method that returns nothing. */
#define GONE_QUIET(method, ...)						\
static void gone_##method(__VA_ARGS__)					\
{									\
}

static int gone_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	*bad = wr;
	return -ENODEV;
}

static int gone_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	*bad = wr;
	return -ENODEV;
}

static int gone_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
			      const struct ib_recv_wr **bad)
{
	*bad = wr;
	return -ENODEV;
}

GONE_QUIET(drain_rq, struct ib_qp *qp)
GONE_QUIET(drain_sq, struct ib_qp *qp)
GONE(poll_cq, struct ib_cq *cq, int nr, struct ib_wc *wc)
GONE(peek_cq, struct ib_cq *cq, int limit)
GONE(req_notify_cq, struct ib_cq *cq, enum ib_cq_notify_flags flags)
GONE(query_device, struct ib_device *device, struct ib_device_attr *attr, struct ib_udata *udata)
GONE(modify_device, struct ib_device *device, int mask, struct ib_device_modify *modify)
GONE(query_port, struct ib_device *device, u32 port, struct ib_port_attr *attr)
GONE(modify_port, struct ib_device *device, u32 port, int mask, struct ib_port_modify *modify)
GONE(get_port_immutable, struct ib_device *device, u32 port, struct ib_port_immutable *immutable)
GONE_MAKER(struct net_device, alloc_rdma_netdev, struct ib_device *device, u32 port,
	   enum rdma_netdev_t type, const char *name, unsigned char name_assign_type,
	   void (*setup)(struct net_device *ndev))
GONE(rdma_netdev_get_params, struct ib_device *device, u32 port, enum rdma_netdev_t type,
	struct rdma_netdev_alloc_params *params)
GONE(query_gid, struct ib_device *device, u32 port, int index, union ib_gid *gid)
GONE(add_gid, const struct ib_gid_attr *attr, void **context)
GONE(del_gid, const struct ib_gid_attr *attr, void **context)
GONE(query_pkey, struct ib_device *device, u32 port, u16 index, u16 *pkey)
GONE(open_ca, struct ib_ca *ca, const void *vendor, size_t len)
GONE_QUIET(close_ca, struct ib_ca *ca)
GONE(alloc_pd, struct ib_pd *pd, struct ib_udata *udata)
GONE(dealloc_pd, struct ib_pd *pd, struct ib_udata *udata)
GONE(create_ah, struct ib_ah *ah, struct rdma_ah_init_attr *attr, struct ib_udata *udata)
GONE(modify_ah, struct ib_ah *ah, struct rdma_ah_attr *attr)
GONE(query_ah, struct ib_ah *ah, struct rdma_ah_attr *attr)
GONE(destroy_ah, struct ib_ah *ah, u32 flags)
GONE(create_srq, struct ib_srq *srq, struct ib_srq_init_attr *attr, struct ib_udata *udata)
GONE(modify_srq, struct ib_srq *srq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
	struct ib_udata *udata)
GONE(query_srq, struct ib_srq *srq, struct ib_srq_attr *attr)
GONE(destroy_srq, struct ib_srq *srq, struct ib_udata *udata)
GONE(create_qp, struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
GONE(modify_qp, struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
GONE(query_qp, struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
GONE(destroy_qp, struct ib_qp *qp, struct ib_udata *udata)
GONE(create_cq, struct ib_cq *cq, const struct ib_cq_init_attr *a, struct uverbs_attr_bundle *b)
GONE(modify_cq, struct ib_cq *cq, u16 count, u16 period)
GONE(destroy_cq, struct ib_cq *cq, struct ib_udata *udata)
GONE(resize_cq, struct ib_cq *cq, int cqe, struct ib_udata *udata)
GONE(pre_destroy_cq, struct ib_cq *cq)
GONE_QUIET(post_destroy_cq, struct ib_cq *cq)
GONE_MAKER(struct ib_mr, get_dma_mr, struct ib_pd *pd, int access)
GONE_MAKER(struct ib_mr, reg_user_mr, struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
	   int access, struct ib_udata *udata)
GONE_MAKER(struct ib_mr, reg_umem_mr, struct ib_pd *pd, struct ib_umem *umem, u64 virt_addr,
	   int access)
GONE_MAKER(struct ib_mr, reg_user_mr_dmabuf, struct ib_pd *pd, u64 offset, u64 length,
	   u64 virt_addr, int fd, int access, struct uverbs_attr_bundle *attrs)
/* The device can no longer access any memory, so there is nothing to do. */
GONE_QUIET(open_mr, struct ib_mr *mr)
GONE_QUIET(revoke_mr, struct ib_mr *mr)
GONE_QUIET(pause_mr, struct ib_mr *mr)
GONE(resume_mr, struct ib_mr *mr, struct ib_umem *umem)
GONE(dereg_mr, struct ib_mr *mr, struct ib_udata *udata)
GONE_MAKER(struct ib_mr, alloc_mr, struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
GONE_MAKER(struct ib_mr, alloc_mr_integrity, struct ib_pd *pd, u32 data_sg, u32 meta_sg)
GONE(map_mr_sg, struct ib_mr *mr, struct scatterlist *sg, int nents, unsigned int *offset)
GONE(map_mr_sg_pi, struct ib_mr *mr, struct scatterlist *data, int data_nents,
	unsigned int *data_offset, struct scatterlist *meta, int meta_nents,
	unsigned int *meta_offset)
GONE(check_mr_status, struct ib_mr *mr, u32 mask, struct ib_mr_status *status)
GONE(alloc_mw, struct ib_mw *mw, struct ib_udata *udata)
GONE(dealloc_mw, struct ib_mw *mw)
GONE_MAKER(struct ib_fmr, alloc_fmr, struct ib_pd *pd, int access, struct ib_fmr_attr *attr)
GONE(map_phys_fmr, struct ib_fmr *fmr, u64 *pages, int nr, u64 iova)
GONE(unmap_fmr, struct list_head *fmrs)
GONE(dealloc_fmr, struct ib_fmr *fmr)
GONE(attach_mcast, struct ib_qp *qp, union ib_gid *gid, u16 lid)
GONE(detach_mcast, struct ib_qp *qp, union ib_gid *gid, u16 lid)
GONE(set_vf_link_state, struct ib_device *device, int vf, u32 port, int state)
GONE(get_vf_config, struct ib_device *device, int vf, u32 port, struct ifla_vf_info *info)
GONE(get_vf_stats, struct ib_device *device, int vf, u32 port, struct ifla_vf_stats *stats)
GONE(get_vf_guid, struct ib_device *device, int vf, u32 port, struct ifla_vf_guid *node_guid,
	struct ifla_vf_guid *port_guid)
GONE(set_vf_guid, struct ib_device *device, int vf, u32 port, u64 guid, int type)
GONE_MAKER(struct rdma_hw_stats, alloc_hw_device_stats, struct ib_device *device)
GONE_MAKER(struct rdma_hw_stats, alloc_hw_port_stats, struct ib_device *device, u32 port)
GONE(get_hw_stats, struct ib_device *device, struct rdma_hw_stats *stats, u32 port, int index)
GONE(modify_hw_stat, struct ib_device *device, u32 port, unsigned int index, bool enable)

static void gone_get_dev_fw_str(struct ib_device *device, char *str)
{
	str[0] = '\0';
}

static const struct cpumask *gone_get_vector_affinity(struct ib_device *device, int comp_vector)
{
	return NULL;
}

static enum rdma_link_layer gone_get_link_layer(struct ib_device *device, u32 port)
{
	return IB_LINK_LAYER_UNSPECIFIED;
}

static struct net_device *gone_get_netdev(struct ib_device *device, u32 port)
{
	return NULL;
}

static int gone_get_numa_node(struct ib_device *device)
{
	return NUMA_NO_NODE;
}

static const struct ib_device_ops gone_ops = {
	.post_send = gone_post_send,
	.post_recv = gone_post_recv,
	.drain_rq = gone_drain_rq,
	.drain_sq = gone_drain_sq,
	.poll_cq = gone_poll_cq,
	.peek_cq = gone_peek_cq,
	.req_notify_cq = gone_req_notify_cq,
	.post_srq_recv = gone_post_srq_recv,
	.query_device = gone_query_device,
	.modify_device = gone_modify_device,
	.get_dev_fw_str = gone_get_dev_fw_str,
	.get_vector_affinity = gone_get_vector_affinity,
	.query_port = gone_query_port,
	.modify_port = gone_modify_port,
	.get_port_immutable = gone_get_port_immutable,
	.get_link_layer = gone_get_link_layer,
	.get_netdev = gone_get_netdev,
	.alloc_rdma_netdev = gone_alloc_rdma_netdev,
	.rdma_netdev_get_params = gone_rdma_netdev_get_params,
	.query_gid = gone_query_gid,
	.add_gid = gone_add_gid,
	.del_gid = gone_del_gid,
	.query_pkey = gone_query_pkey,
	.open_ca = gone_open_ca,
	.close_ca = gone_close_ca,
	.alloc_pd = gone_alloc_pd,
	.dealloc_pd = gone_dealloc_pd,
	.create_ah = gone_create_ah,
	.modify_ah = gone_modify_ah,
	.query_ah = gone_query_ah,
	.destroy_ah = gone_destroy_ah,
	.create_srq = gone_create_srq,
	.modify_srq = gone_modify_srq,
	.query_srq = gone_query_srq,
	.destroy_srq = gone_destroy_srq,
	.create_qp = gone_create_qp,
	.modify_qp = gone_modify_qp,
	.query_qp = gone_query_qp,
	.destroy_qp = gone_destroy_qp,
	.create_cq = gone_create_cq,
	.modify_cq = gone_modify_cq,
	.destroy_cq = gone_destroy_cq,
	.resize_cq = gone_resize_cq,
	.pre_destroy_cq = gone_pre_destroy_cq,
	.post_destroy_cq = gone_post_destroy_cq,
	.get_dma_mr = gone_get_dma_mr,
	.reg_user_mr = gone_reg_user_mr,
	.reg_umem_mr = gone_reg_umem_mr,
	.open_mr = gone_open_mr,
	.revoke_mr = gone_revoke_mr,
	.pause_mr = gone_pause_mr,
	.resume_mr = gone_resume_mr,
	.reg_user_mr_dmabuf = gone_reg_user_mr_dmabuf,
	.dereg_mr = gone_dereg_mr,
	.alloc_mr = gone_alloc_mr,
	.alloc_mr_integrity = gone_alloc_mr_integrity,
	.map_mr_sg = gone_map_mr_sg,
	.map_mr_sg_pi = gone_map_mr_sg_pi,
	.check_mr_status = gone_check_mr_status,
	.alloc_mw = gone_alloc_mw,
	.dealloc_mw = gone_dealloc_mw,
	.alloc_fmr = gone_alloc_fmr,
	.map_phys_fmr = gone_map_phys_fmr,
	.unmap_fmr = gone_unmap_fmr,
	.dealloc_fmr = gone_dealloc_fmr,
	.attach_mcast = gone_attach_mcast,
	.detach_mcast = gone_detach_mcast,
	.set_vf_link_state = gone_set_vf_link_state,
	.get_vf_config = gone_get_vf_config,
	.get_vf_stats = gone_get_vf_stats,
	.get_vf_guid = gone_get_vf_guid,
	.set_vf_guid = gone_set_vf_guid,
	.alloc_hw_device_stats = gone_alloc_hw_device_stats,
	.alloc_hw_port_stats = gone_alloc_hw_port_stats,
	.get_hw_stats = gone_get_hw_stats,
	.modify_hw_stat = gone_modify_hw_stat,
	.get_numa_node = gone_get_numa_node,
};

static void lose_methods(struct ib_device *dev)
{
	const size_t start = offsetof(struct ib_device_ops, device_group);
	const size_t end = offsetof(struct ib_device_ops, size_ib_ah);
	void * const *from = (void *)&gone_ops + start;
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
void ib_device_gone(struct ib_device *dev)
{
	lose_methods(dev);
	/* DMA mappings for it are made and undone without calling the driver. */
	get_device(dev->dma_device);
	get_device(&dev->dev);
}

static void let_go(struct ib_device *dev)
{
	struct device *dma_device;

	if (!dev)
		return;
	dma_device = dev->dma_device;
	put_device(&dev->dev);
	put_device(dma_device);
}

static struct ib_device *replace_kept(unsigned int i, struct ib_device *dev)
{
	struct ib_device *old;

	lockdep_assert_held(&kept_lock);
	old = kept_devices[i];
	kept_devices[i] = dev;
	return old;
}

/*
 * Likewise, but nothing is left on the device: it is freed once others have taken its
 * place.
 */
void ib_device_keep_gone(struct ib_device *dev)
{
	struct ib_device *oldest;

	ib_device_gone(dev);
	mutex_lock(&kept_lock);
	oldest = replace_kept(next_kept++ % KEPT_DEVICES, dev);
	mutex_unlock(&kept_lock);
	let_go(oldest);
}

static void forget_all(void)
{
	struct ib_device *dev;
	unsigned int i;

	for (i = 0; i < KEPT_DEVICES; i++) {
		mutex_lock(&kept_lock);
		dev = replace_kept(i, NULL);
		mutex_unlock(&kept_lock);
		let_go(dev);
	}
}

/* Once the checker is off, late uses are not reported any more. */
static int mode_changed(struct notifier_block *nb, unsigned long mode, void *data)
{
	if (mode == IB_CONTRACT_OFF)
		forget_all();
	return NOTIFY_OK;
}

static struct notifier_block mode_notifier = { .notifier_call = mode_changed };

void ib_gone_init(void)
{
	ib_contract_register_notifier(&mode_notifier);
}

void ib_gone_exit(void)
{
	ib_contract_unregister_notifier(&mode_notifier);
	forget_all();
}
