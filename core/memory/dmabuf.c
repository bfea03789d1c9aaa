// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a dma-buf, for devices.
 *
 * If the kernel supports importers whose memory moves, and the device can wait for that,
 * the memory may move: its exporter announces it, and from then on, until the memory is
 * mapped again in its new place, the device's accesses wait. Else it is pinned.
 *
 * Lock protocol: the reservation lock of the dma-buf, which is also umem_lock(), guards the
 * mapping and what happens to the region; the exporter holds it while it moves the memory.
 * The work item that maps the memory again takes it; the thread that releases the memory
 * waits for that item without it.
 */
#include <linux/dma-buf.h>
#include <linux/dma-resv.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <kverbs/peer_region.h>
#include <kverbs/remap.h>

#include "../contract/export.h"
#include "../contract/invalid.h"
#include "umem.h"

MODULE_IMPORT_NS(DMA_BUF);

static void dmabuf_remap_work(struct work_struct *work);

static bool dmabuf_has_range(const struct dma_buf *dmabuf, size_t offset, size_t length)
{
	size_t end;

	return !check_add_overflow(offset, length, &end) && end <= dmabuf->size;
}

/* Logs why dmabuf_umem_new() or mapping its memory has failed with -EINVAL. */
static void dmabuf_log_einval(const struct ib_verb_call *call, u64 offset, u64 length, int fd)
{
	struct dma_buf *dmabuf = dma_buf_get(fd);

	if (PTR_ERR(dmabuf) == -EINVAL)
		ib_invalid(call, "fd %d is not a dma-buf", fd);
	if (IS_ERR(dmabuf))
		return;
	if (!dmabuf_has_range(dmabuf, offset, length))
		ib_invalid(call, "fd_offset %#llx + length %llu > %zu, the dma-buf's size",
			   offset, length, dmabuf->size);
	else
		ib_invalid(call, "refused by the exporter or a driver (fd_offset %#llx, length %llu)",
			   offset, length);
	dma_buf_put(dmabuf);
}

/* Allocates a umem and attaches it to the dma-buf. The caller has checked the range. */
static struct ib_umem_dmabuf *
dmabuf_umem_new(struct ib_device *device, unsigned long offset, size_t size, int fd, int access,
		const struct dma_buf_attach_ops *ops)
{
	struct dma_buf_attachment *attach;
	struct ib_umem_dmabuf *d;
	struct dma_buf *dmabuf;
	int ret;

	ret = umem_check_access(access);
	if (!ret && ib_uses_virt_dma(device))
		ret = -EOPNOTSUPP;
	if (ret)
		return ERR_PTR(ret);
	dmabuf = dma_buf_get(fd);
	if (IS_ERR(dmabuf))
		return ERR_CAST(dmabuf);
	d = kzalloc(sizeof(*d), GFP_KERNEL_ACCOUNT);
	if (!d) {
		ret = -ENOMEM;
		goto err_put;
	}
	umem_init(&d->umem, device, offset, size, access);
	d->umem.is_dmabuf = true;
	INIT_DELAYED_WORK(&d->remap, dmabuf_remap_work);
	attach = ERR_PTR(-EINVAL);
	if (dmabuf_has_range(dmabuf, offset, size))
		attach = dma_buf_dynamic_attach(dmabuf, device->dma_device, ops, d);
	if (IS_ERR(attach)) {
		ret = PTR_ERR(attach);
		goto err_free;
	}
	d->attach = attach;
	return d;

err_free:
	kfree(d);
err_put:
	dma_buf_put(dmabuf);
	return ERR_PTR(ret);
}

/* For drivers, to which nobody else explains an -EINVAL. */
static struct ib_umem_dmabuf *
dmabuf_umem_new_logged(struct ib_device *device, unsigned long offset, size_t size, int fd,
		       int access, const struct dma_buf_attach_ops *ops, unsigned long site)
{
	const struct ib_verb_call call = {
		.dev = device, .site = site, .process = true, .what = "umem_dmabuf_get",
	};
	struct ib_umem_dmabuf *d;

	if (umem_check_range(&call, "fd_offset", offset, size))
		return ERR_PTR(-EINVAL);
	d = dmabuf_umem_new(device, offset, size, fd, access, ops);
	if (PTR_ERR(d) == -EINVAL)
		dmabuf_log_einval(&call, offset, size, fd);
	return d;
}

/**
 * ib_umem_dmabuf_get() - get memory of a dma-buf for a device
 * @device: the device
 * @offset: where the memory begins in the dma-buf, in bytes
 * @size: bytes
 * @fd: the dma-buf, a file of the calling process
 * @access: &enum ib_access_flags
 * @ops: functions that the exporter calls when the memory moves
 *
 * It is not mapped yet: ib_umem_dmabuf_map_pages() does that.
 *
 * Context: Process, with its files.
 * Return: the memory; -EINVAL for a range that is not in the dma-buf, or a file that is no
 * dma-buf; -EBADF if there is no such file; -EOPNOTSUPP for %IB_ACCESS_ON_DEMAND, or if the
 * device has no DMA addresses; -ENOMEM; or another error of dma_buf_dynamic_attach().
 */
struct ib_umem_dmabuf *
ib_umem_dmabuf_get(struct ib_device *device, unsigned long offset, size_t size,
		   int fd, int access, const struct dma_buf_attach_ops *ops)
{
	return dmabuf_umem_new_logged(device, offset, size, fd, access, ops, _RET_IP_);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_get);

/* Another device may still be writing the contents of the memory. */
static int dmabuf_wait_fences(struct ib_umem_dmabuf *d)
{
	long ret;

	ret = dma_resv_wait_timeout(d->attach->dmabuf->resv,
				    DMA_RESV_USAGE_KERNEL, false,
				    MAX_SCHEDULE_TIMEOUT);
	return min(ret, 0L);
}

/**
 * ib_umem_dmabuf_map_pages() - map memory of a dma-buf, unless it is mapped already
 * @umem_dmabuf: the memory
 *
 * ib_umem.sgt_append holds the mapping until it is unmapped.
 *
 * Context: Process; the dma-buf's reservation lock held.
 * Return: 0; -EINVAL if the exporter's table ends before the region does, or is not of
 * whole pages; -EIO if the device would get a copy of the memory; -ENOMEM; or an error of
 * dma_buf_map_attachment().
 */
int ib_umem_dmabuf_map_pages(struct ib_umem_dmabuf *umem_dmabuf)
{
	struct ib_umem_dmabuf *d = umem_dmabuf;
	struct sg_table *sgt;
	int ret;

	dma_resv_assert_held(d->attach->dmabuf->resv);
	if (d->sgt)
		return dmabuf_wait_fences(d);
	sgt = dma_buf_map_attachment(d->attach, DMA_BIDIRECTIONAL);
	if (IS_ERR(sgt))
		return PTR_ERR(sgt);
	ret = umem_check_reach(&d->umem, sgt);
	/* The whole dma-buf is mapped; the device gets a part of it. */
	if (!ret)
		ret = peer_table_trim(&d->umem.sgt_append.sgt, sgt->sgl, sgt->nents,
				      d->umem.address & PAGE_MASK, umem_span(&d->umem));
	if (ret) {
		dma_buf_unmap_attachment(d->attach, sgt, DMA_BIDIRECTIONAL);
		return ret;
	}
	d->sgt = sgt;
	ret = dmabuf_wait_fences(d);
	if (ret)
		ib_umem_dmabuf_unmap_pages(d);
	return ret;
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_map_pages);

/**
 * ib_umem_dmabuf_unmap_pages() - unmap memory of a dma-buf, if it is mapped
 * @umem_dmabuf: the memory, which the device does not use
 *
 * Context: Process; the dma-buf's reservation lock held.
 */
void ib_umem_dmabuf_unmap_pages(struct ib_umem_dmabuf *umem_dmabuf)
{
	struct ib_umem_dmabuf *d = umem_dmabuf;

	dma_resv_assert_held(d->attach->dmabuf->resv);
	if (!d->sgt)
		return;
	sg_free_table(&d->umem.sgt_append.sgt);
	dma_buf_unmap_attachment(d->attach, d->sgt, DMA_BIDIRECTIONAL);
	d->sgt = NULL;
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_unmap_pages);

/* Exporters must not move pinned memory: this only warns about one that does. */
static void dmabuf_pinned_move_notify(struct dma_buf_attachment *attach)
{
	struct ib_umem_dmabuf *d = attach->importer_priv;

	ibdev_warn_ratelimited(d->umem.ibdev,
			       "dma-buf exporter %s asked to move a pinned buffer, ignoring it\n",
			       attach->dmabuf->exp_name);
}

static const struct dma_buf_attach_ops dmabuf_pinned_ops = {
	.allow_peer2peer = true,
	.move_notify = dmabuf_pinned_move_notify,
};

static int dmabuf_pin_and_map(struct ib_umem_dmabuf *d)
{
	int ret;

	ret = dma_buf_pin(d->attach);
	if (ret)
		return ret;
	ret = ib_umem_dmabuf_map_pages(d);
	if (ret)
		dma_buf_unpin(d->attach);
	else
		d->pinned = true;
	return ret;
}

/* Maps @d with @map, unless it is an error pointer. If that fails, @d is released. */
static struct ib_umem_dmabuf *dmabuf_map_new(struct ib_umem_dmabuf *d,
					     int (*map)(struct ib_umem_dmabuf *d))
{
	int ret;

	if (IS_ERR(d))
		return d;
	umem_lock(&d->umem);
	ret = map(d);
	umem_unlock(&d->umem);
	if (!ret)
		return d;
	ib_umem_dmabuf_release(d);
	return ERR_PTR(ret);
}

/**
 * ib_umem_dmabuf_get_pinned() - get memory of a dma-buf, pin and map it
 * @device: as of ib_umem_dmabuf_get()
 * @offset: as above
 * @size: as above
 * @fd: as above
 * @access: as above
 *
 * Context: Process, with its files.
 * Return: the memory; or an error of ib_umem_dmabuf_get() or
 * ib_umem_dmabuf_map_pages(), or of the exporter that does not pin it.
 */
struct ib_umem_dmabuf *
ib_umem_dmabuf_get_pinned(struct ib_device *device, unsigned long offset,
			  size_t size, int fd, int access)
{
	struct ib_umem_dmabuf *d;

	d = dmabuf_umem_new_logged(device, offset, size, fd, access, &dmabuf_pinned_ops, _RET_IP_);
	return dmabuf_map_new(d, dmabuf_pin_and_map);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_get_pinned);

/**
 * ib_umem_dmabuf_release() - undo ib_umem_dmabuf_get()
 * @umem_dmabuf: the memory, which the device no longer uses
 *
 * Context: Process; the dma-buf's reservation lock not held.
 */
void ib_umem_dmabuf_release(struct ib_umem_dmabuf *umem_dmabuf)
{
	struct ib_umem_dmabuf *d = umem_dmabuf;
	struct dma_buf *dmabuf = d->attach->dmabuf;

	/* The work uses the attachment. Without a region, a move does not start it again. */
	cancel_delayed_work_sync(&d->remap);
	umem_lock(&d->umem);
	ib_umem_dmabuf_unmap_pages(d);
	if (d->pinned)
		dma_buf_unpin(d->attach);
	umem_unlock(&d->umem);
	dma_buf_detach(dmabuf, d->attach);
	dma_buf_put(dmabuf);
	kfree(d);
}
EXPORT_SYMBOL_GPL(ib_umem_dmabuf_release);

/* --- regions that the core makes ---------------------------------------------- */

/* The exporter holds the reservation lock. */
static void dmabuf_move_notify(struct dma_buf_attachment *attach)
{
	struct ib_umem_dmabuf *d = attach->importer_priv;
	/* A region that is revoked has nothing to wait for. */
	struct ib_mr *mr = d->umem.revoked ? NULL : d->umem.mr;

	if (!d->sgt)
		return;
	if (mr)
		d->umem.ibdev->ops.pause_mr(mr);
	ib_umem_dmabuf_unmap_pages(d);
	if (!mr)
		return;
	d->remap_tries = KV_REMAP_TRIES;
	queue_delayed_work(system_unbound_wq, &d->remap, 0);
}

static const struct dma_buf_attach_ops dmabuf_moving_ops = {
	.allow_peer2peer = true,
	.move_notify = dmabuf_move_notify,
};

static int dmabuf_resume_mr(struct ib_umem_dmabuf *d)
{
	struct ib_umem *umem = &d->umem;
	int err;

	err = ib_umem_dmabuf_map_pages(d);
	if (err)
		return err;
	err = umem->ibdev->ops.resume_mr(umem->mr, umem);
	/* The next try maps it again; and a region that was revoked must hold no mapping. */
	if (err)
		ib_umem_dmabuf_unmap_pages(d);
	return err;
}

static void dmabuf_remap_work(struct work_struct *work)
{
	struct ib_umem_dmabuf *d = container_of(to_delayed_work(work), typeof(*d), remap);
	struct ib_umem *umem = &d->umem;
	int err;

	umem_lock(umem);
	/* By now the region may have been freed or revoked, or the memory mapped. */
	if (!umem->mr || umem->revoked || d->sgt)
		goto unlock;
	err = dmabuf_resume_mr(d);
	if (err && kv_remap_later(err, &d->remap_tries)) {
		queue_delayed_work(system_unbound_wq, &d->remap, KV_REMAP_DELAY);
	} else if (err) {
		ibdev_warn_ratelimited(umem->ibdev,
				       "mr %u: revoked, because its dma-buf cannot be mapped after a move (%d)\n",
				       umem->mr->res.id, err);
		umem_revoke(umem);
	}
unlock:
	umem_unlock(umem);
}

static bool device_can_pause_mr(const struct ib_device *device)
{
	return IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY) &&
	       device->ops.pause_mr && device->ops.resume_mr &&
	       umem_is_revocable(device);
}

/* For a region that the core makes; the memory may move if the device can wait for that. */
struct ib_umem *umem_dmabuf_find(struct ib_device *device,
				 const struct ib_mem *mem, int access)
{
	bool may_move = device_can_pause_mr(device);
	struct ib_umem_dmabuf *d;

	d = dmabuf_umem_new(device, mem->fd_offset, mem->length, mem->fd, access,
			    may_move ? &dmabuf_moving_ops : &dmabuf_pinned_ops);
	/* Map it now, to know whether it can be mapped at all. */
	d = dmabuf_map_new(d, may_move ? ib_umem_dmabuf_map_pages : dmabuf_pin_and_map);
	return IS_ERR(d) ? ERR_CAST(d) : &d->umem;
}

/*
 * Logs why no region could be made of a dma-buf. Called after all kinds of memory have been
 * tried: had another one been found, there would be nothing to log.
 */
void umem_dmabuf_explain(const struct ib_verb_call *call, const struct ib_mem *mem)
{
	if (mem->error[IB_MEM_DMABUF] == -EINVAL)
		dmabuf_log_einval(call, mem->fd_offset, mem->length, mem->fd);
}

/* Maps the memory again if it has moved since it was found. Under its lock. */
int umem_dmabuf_ready(struct ib_umem *umem)
{
	return ib_umem_dmabuf_map_pages(to_ib_umem_dmabuf(umem));
}

/* If the exporter does not support moves, the memory stays, pinned or not. */
bool umem_moves(struct ib_umem *umem)
{
	struct ib_umem_dmabuf *d = to_ib_umem_dmabuf(umem);

	return umem->is_dmabuf && !d->pinned &&
	       dma_buf_is_dynamic(d->attach->dmabuf);
}
IB_EXPORT_INTERNAL(umem_moves);
