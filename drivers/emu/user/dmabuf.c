// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions of dma-bufs, under mainline's core: memory of another device, which its exporter may
 * move, or take away, at any time.
 *
 * The exporter announces that by move_notify(). When this returns, nobody is inside the region,
 * and its memory is unmapped: requests for it wait. A work item then maps the dma-buf again,
 * wherever it is by then, and the requests go on. If it cannot be mapped, the region is revoked,
 * and they fail as they do for an invalid key. The DMA-buf layer pins the memory of an exporter
 * that cannot move it, which never calls move_notify().
 *
 * Lock protocol: the reservation lock of the dma-buf serialises registration, move_notify(), the
 * work item and deregistration, and guards struct emu_dmabuf. Engines, who use the region, take no
 * lock, so its holder may wait for them.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <kverbs/remap.h>
#include <rdma/ib_umem.h>

#include "../memory/region.h"
#include "user.h"

/**
 * struct emu_dmabuf - a dma-buf that a region consists of
 * @umem: the memory
 * @ibmr: the region; NULL before it is made, and after it was deregistered
 * @map: maps the dma-buf again
 * @tries: how often to try that again if it fails
 */
struct emu_dmabuf {
	struct ib_umem_dmabuf *umem;
	struct ib_mr *ibmr;
	struct delayed_work map;
	unsigned int tries;
};

static struct dma_resv *emu_dmabuf_resv(const struct emu_dmabuf *dmabuf)
{
	return dmabuf->umem->attach->dmabuf->resv;
}

/* Maps the memory. Returns 0 or a negative errno, also for memory that the HCA cannot use. */
static int emu_dmabuf_map_pages(struct emu_dmabuf *dmabuf)
{
	struct ib_umem *umem = &dmabuf->umem->umem;
	int err;

	err = ib_umem_dmabuf_map_pages(dmabuf->umem);
	if (!err)
		err = emu_umem_check_copy(umem->ibdev, umem);
	/* Mainline's core keeps the mapping when it fails to wait for the exporter's fences. */
	if (err)
		ib_umem_dmabuf_unmap_pages(dmabuf->umem);
	return err;
}

/* Maps the memory, and lets requests into the region. On failure, it stays without memory. */
static int emu_dmabuf_resume(struct emu_dmabuf *dmabuf)
{
	int err;

	err = emu_dmabuf_map_pages(dmabuf);
	if (err)
		return err;
	err = emu_resume_mr(dmabuf->ibmr, &dmabuf->umem->umem);
	if (err)
		ib_umem_dmabuf_unmap_pages(dmabuf->umem);
	return err;
}

static void emu_dmabuf_map_work(struct work_struct *work)
{
	struct emu_dmabuf *dmabuf = container_of(to_delayed_work(work), struct emu_dmabuf, map);
	int err;

	dma_resv_lock(emu_dmabuf_resv(dmabuf), NULL);
	if (!dmabuf->ibmr || dmabuf->umem->sgt)
		goto unlock;
	err = emu_dmabuf_resume(dmabuf);
	if (err && kv_remap_later(err, &dmabuf->tries)) {
		queue_delayed_work(system_unbound_wq, &dmabuf->map, KV_REMAP_DELAY);
	} else if (err) {
		ibdev_warn_ratelimited(dmabuf->ibmr->device,
				       "region 0x%x: revoked, because its dma-buf cannot be mapped after a move (%d)\n",
				       dmabuf->ibmr->lkey, err);
		emu_revoke_mr(dmabuf->ibmr);
	}
unlock:
	dma_resv_unlock(emu_dmabuf_resv(dmabuf));
}

static void emu_dmabuf_moved(struct dma_buf_attachment *attach)
{
	struct ib_umem_dmabuf *umem = attach->importer_priv;
	struct emu_dmabuf *dmabuf = umem->private;

	dma_resv_assert_held(attach->dmabuf->resv);
	/* Not mapped yet, or not again since the move before this one. */
	if (!umem->sgt)
		return;
	if (dmabuf->ibmr)
		emu_pause_mr(dmabuf->ibmr);
	ib_umem_dmabuf_unmap_pages(umem);
	if (!dmabuf->ibmr)
		return;
	dmabuf->tries = KV_REMAP_TRIES;
	queue_delayed_work(system_unbound_wq, &dmabuf->map, 0);
}

static const struct dma_buf_attach_ops emu_dmabuf_attach_ops = {
	.allow_peer2peer = true,
	.move_notify = emu_dmabuf_moved,
};

/* Maps the dma-buf for the first time, and makes its region. */
static struct ib_mr *emu_dmabuf_make_mr(struct ib_pd *pd, struct emu_dmabuf *dmabuf,
					u64 virt_addr, int access)
{
	struct ib_mr *ibmr;
	int err;

	dma_resv_assert_held(emu_dmabuf_resv(dmabuf));
	err = emu_dmabuf_map_pages(dmabuf);
	if (err)
		return ERR_PTR(err);
	ibmr = emu_reg_umem_mr(pd, &dmabuf->umem->umem, virt_addr, access);
	if (IS_ERR(ibmr))
		return ibmr;
	to_emr(ibmr)->umem = &dmabuf->umem->umem;
	dmabuf->ibmr = ibmr;
	emu_open_mr(ibmr);
	return ibmr;
}

/**
 * emu_user_reg_dmabuf() - register memory of a dma-buf
 * @pd: protection domain
 * @offset: where the region begins in the dma-buf, in bytes
 * @length: length of the region, in bytes
 * @virt_addr: its address for consumers
 * @fd: file descriptor of the dma-buf
 * @access: enum ib_access_flags
 *
 * Context: Process.
 * Return: the region, or an ERR_PTR: -EINVAL if the dma-buf does not have that range, or the first
 * byte cannot have that address; -EBADF; -EFAULT if the HCA cannot reach the memory; -ENOMEM; or
 * what the exporter returned.
 */
struct ib_mr *emu_user_reg_dmabuf(struct ib_pd *pd, u64 offset, u64 length, u64 virt_addr, int fd,
				  int access)
{
	struct emu_dmabuf *dmabuf = kzalloc(sizeof(*dmabuf), GFP_KERNEL_ACCOUNT);
	struct ib_umem_dmabuf *umem;
	struct ib_mr *ibmr;

	if (!dmabuf)
		return ERR_PTR(-ENOMEM);
	umem = ib_umem_dmabuf_get(pd->device, offset, length, fd, access, &emu_dmabuf_attach_ops);
	if (IS_ERR(umem)) {
		kfree(dmabuf);
		return ERR_CAST(umem);
	}
	INIT_DELAYED_WORK(&dmabuf->map, emu_dmabuf_map_work);
	dmabuf->umem = umem;
	dma_resv_lock(emu_dmabuf_resv(dmabuf), NULL);
	umem->private = dmabuf;
	ibmr = emu_dmabuf_make_mr(pd, dmabuf, virt_addr, access);
	dma_resv_unlock(emu_dmabuf_resv(dmabuf));
	if (IS_ERR(ibmr)) {
		ib_umem_release(&umem->umem);
		kfree(dmabuf);
	}
	return ibmr;
}

/**
 * emu_user_dereg_dmabuf() - undo emu_user_reg_dmabuf()
 * @ibmr: the region
 *
 * Context: Process.
 * Return: 0, or what emu_dereg_mr() returned, in which case the region is unchanged.
 */
int emu_user_dereg_dmabuf(struct ib_mr *ibmr)
{
	struct ib_umem_dmabuf *umem = to_ib_umem_dmabuf(to_emr(ibmr)->umem);
	struct emu_dmabuf *dmabuf = umem->private;
	int err;

	dma_resv_lock(emu_dmabuf_resv(dmabuf), NULL);
	err = emu_dereg_mr(ibmr, NULL);
	if (!err)
		dmabuf->ibmr = NULL;
	dma_resv_unlock(emu_dmabuf_resv(dmabuf));
	if (err)
		return err;
	/* @ibmr is NULL, so nobody queues it again. */
	cancel_delayed_work_sync(&dmabuf->map);
	ib_umem_release(&umem->umem);
	kfree(dmabuf);
	return 0;
}
