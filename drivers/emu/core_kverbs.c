// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the software HCA has for kverbs' own core only: FMRs, channel adapters that are
 * opened, and regions of memory that the core gets, moves and takes away.
 *
 * The core calls no handler of an object that is being destroyed, and frees the memory of a queue
 * a grace period after the method. The memory that a process shares with a queue must stay as
 * long. Destroying a CQ waits for a grace period anyway, for its rings; for queue pairs and SRQs
 * of processes, and only for these, the method waits.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <rdma/uverbs_ioctl.h>

#include "ca.h"
#include "core.h"
#include "device.h"
#include "lib/limits.h"
#include "memory/fmr.h"
#include "memory/memory.h"
#include "queue/cq.h"
#include "queue/qp.h"
#include "uobject.h"
#include "user/user.h"

static int emu_own_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
			     struct uverbs_attr_bundle *attrs)
{
	/* The core sets it for the CQs that it makes. */
	ibcq->comp_vector = attr->comp_vector;
	if (attrs)
		return emu_user_create_cq(ibcq, attr, &attrs->driver_udata);
	return emu_device_create_cq(ibcq, attr, NULL);
}

int emu_core_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct emu_cq *cq = to_ecq(ibcq);

	emu_user_quiesce_cq(cq);
	/* Waits for a grace period. */
	emu_device_destroy_cq(ibcq, udata);
	emu_user_free_cq(cq);
	return 0;
}

static int emu_own_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
			     struct ib_udata *udata)
{
	if (udata)
		return emu_user_create_qp(ibqp, init, udata);
	return emu_device_create_qp(ibqp, init, NULL);
}

int emu_core_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct emu_qp *qp = to_eqp(ibqp);

	emu_device_destroy_qp(ibqp, udata);
	if (qp->user_sq) {
		synchronize_rcu_expedited();
		emu_user_free_qp(qp);
	}
	return 0;
}

static int emu_own_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *init,
			      struct ib_udata *udata)
{
	if (udata)
		return emu_user_create_srq(ibsrq, init, udata);
	return emu_create_srq(ibsrq, init, NULL);
}

int emu_core_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct emu_srq *srq = to_esrq(ibsrq);

	emu_destroy_srq(ibsrq, udata);
	if (srq->user_rq) {
		synchronize_rcu_expedited();
		emu_user_free_rq(srq->user_rq);
	}
	return 0;
}

static struct ib_mr *emu_own_reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt_addr,
					 int access, struct ib_udata *udata)
{
	if (!length)
		return emu_user_reg_empty_mr(pd, virt_addr, access);
	return ib_umem_reg_user_mr(pd, start, length, virt_addr, access, udata);
}

static int emu_own_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	return emu_user_dereg_error(emu_dereg_mr(ibmr, udata), udata);
}

/* A CQ of a lane is armed by the core. */
static int emu_kverbs_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	return emu_req_notify_cq(ibcq, flags, ibcq->lane);
}

/*
 * The limits of moderation are for the kernel only, which does not ask the device: processes, which
 * do, have no moderation.
 */
static int emu_enable_driver(struct ib_device *ibdev)
{
	ibdev->attrs.cq_caps.max_cq_moderation_count = EMU_MAX_MOD_COUNT;
	ibdev->attrs.cq_caps.max_cq_moderation_period = EMU_MAX_MOD_PERIOD;
	return 0;
}

static const struct ib_device_ops emu_core_ops = {
	.req_notify_cq = emu_kverbs_req_notify_cq,
	.alloc_fmr = emu_alloc_fmr,
	.close_ca = emu_close_ca,
	.create_cq = emu_own_create_cq,
	.create_qp = emu_own_create_qp,
	.create_srq = emu_own_create_srq,
	.dealloc_fmr = emu_dealloc_fmr,
	.dereg_mr = emu_own_dereg_mr,
	.destroy_cq = emu_core_destroy_cq,
	.destroy_qp = emu_core_destroy_qp,
	.destroy_srq = emu_core_destroy_srq,
	.enable_driver = emu_enable_driver,
	.map_phys_fmr = emu_map_phys_fmr,
	.modify_cq = emu_user_modify_cq,
	.modify_srq = emu_user_modify_srq,
	.open_ca = emu_open_ca,
	.open_mr = emu_open_mr,
	.pause_mr = emu_pause_mr,
	.reg_umem_mr = emu_reg_umem_mr,
	.reg_user_mr = emu_own_reg_user_mr,
	.reg_user_mr_dmabuf = ib_umem_reg_user_mr_dmabuf,
	.resize_cq = emu_user_change_cq,
	.resume_mr = emu_resume_mr,
	.revoke_mr = emu_revoke_mr,
	.unmap_fmr = emu_unmap_fmr,

	INIT_RDMA_OBJ_SIZE(ib_ca, emu_ca, ibca),
};

int emu_core_start(void)
{
	return 0;
}

void emu_core_stop(void)
{
}

void emu_core_release(struct emu_device *edev)
{
}

void emu_core_setup(struct ib_device *ibdev)
{
	emu_user_setup(ibdev);
	ib_set_device_ops(ibdev, &emu_core_ops);
}

int emu_core_init(void)
{
	return emu_user_init();
}

void emu_core_exit(void)
{
	emu_user_exit();
}

void emu_core_query_device(const struct emu_device *edev, struct ib_device_attr *attr)
{
	/* For processes only: the kernel has no consumers of it, and would be refused. */
	attr->device_cap_flags |= IB_DEVICE_ATOMIC_WRITE;
	attr->max_fmr = EMU_MAX_MR;
	attr->max_map_per_fmr = EMU_MAX_FMR_MAPS;
}

int emu_core_register(struct emu_device *edev, const char *name)
{
	return ib_register_device(&edev->ibdev, name, &edev->pdev->dev);
}

void emu_core_unregister(struct emu_device *edev)
{
	ib_unregister_device(&edev->ibdev);
}

bool emu_core_can_rebind(void)
{
	return true;
}

static int emu_opens_show(struct seq_file *s, void *unused)
{
	emu_ca_show(s->private, s);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(emu_opens);

void emu_core_debugfs(struct emu_device *edev, struct dentry *dir)
{
	debugfs_create_file("ca", 0400, dir, edev, &emu_opens_fops);
}

/* After "kverbs switch on", modprobe's configuration redirects the name kverbs_emu. */
MODULE_ALIAS("kverbs_hca_own");
