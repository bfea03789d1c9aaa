// SPDX-License-Identifier: GPL-2.0-only
/*
 * A dma-buf exporter for the suites; see dmabuf_rig.h.
 *
 * Locking: the reservation lock of a dma-buf that can move guards its address, its pins and
 * its mappings, as in any such exporter. A static dma-buf is never moved, and its functions
 * may be called without the lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-resv.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/scatterlist.h>
#include <rdma/ib_umem.h>

#include "lib/dmabuf_rig.h"
#include "lib/lib.h"

MODULE_IMPORT_NS(DMA_BUF);

static const char * const call_names[DMABUF_CALLS] = {
	"attach", "detach", "pin", "unpin", "map", "unmap",
};

static void rig_wrong(struct dmabuf_rig *rig, const char *what)
{
	if (atomic_inc_return(&rig->wrong) == 1)
		pr_info("dma-buf: wrong: %s\n", what);
}

static bool can_move(const struct dma_buf *dmabuf)
{
	return dmabuf->ops->pin;
}

/* Accounts for a call. Returns the error that the case has set for the function, or 0. */
static int rig_enter(struct dma_buf *dmabuf, enum dmabuf_call call)
{
	struct dmabuf_rig *rig = dmabuf->priv;

	atomic_inc(&rig->calls[call]);
	if (call >= DMABUF_PIN && can_move(dmabuf) && !dma_resv_is_locked(dmabuf->resv))
		rig_wrong(rig, "called without the reservation lock");
	if (rig->trace)
		kvt_trace_add(rig->trace, "%s", call_names[call]);
	return rig->ret[call];
}

static int rig_attach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	return rig_enter(dmabuf, DMABUF_ATTACH);
}

static void rig_detach(struct dma_buf *dmabuf, struct dma_buf_attachment *attach)
{
	rig_enter(dmabuf, DMABUF_DETACH);
}

static int rig_pin(struct dma_buf_attachment *attach)
{
	struct dmabuf_rig *rig = attach->dmabuf->priv;
	int ret = rig_enter(attach->dmabuf, DMABUF_PIN);

	if (!ret)
		atomic_inc(&rig->pins);
	return ret;
}

static void rig_unpin(struct dma_buf_attachment *attach)
{
	struct dmabuf_rig *rig = attach->dmabuf->priv;

	rig_enter(attach->dmabuf, DMABUF_UNPIN);
	if (atomic_dec_return(&rig->pins) < 0)
		rig_wrong(rig, "unpinned, and was not pinned");
}

static void fill_table(const struct dmabuf_rig *rig, struct sg_table *sgt, size_t piece)
{
	size_t left = rig->dmabuf->size - rig->missing;
	struct scatterlist *sg;
	unsigned int i;

	for_each_sgtable_sg(sgt, sg, i) {
		sg->length = min(left, piece);
		sg_dma_address(sg) = rig->base + rig->skew + 2 * i * piece;
		sg_dma_len(sg) = sg->length;
		left -= sg->length;
	}
}

static struct sg_table *rig_map(struct dma_buf_attachment *attach, enum dma_data_direction dir)
{
	struct dmabuf_rig *rig = attach->dmabuf->priv;
	size_t piece = rig->piece ?: rig->dmabuf->size;
	int ret = rig_enter(attach->dmabuf, DMABUF_MAP);
	struct sg_table *sgt;

	if (ret)
		return ERR_PTR(ret);
	sgt = kzalloc(sizeof(*sgt), GFP_KERNEL);
	if (!sgt)
		return ERR_PTR(-ENOMEM);
	ret = sg_alloc_table(sgt, DIV_ROUND_UP(rig->dmabuf->size - rig->missing,
					       piece), GFP_KERNEL);
	if (ret) {
		kfree(sgt);
		return ERR_PTR(ret);
	}
	fill_table(rig, sgt, piece);
	atomic_inc(&rig->maps);
	return sgt;
}

static void rig_unmap(struct dma_buf_attachment *attach, struct sg_table *sgt,
		      enum dma_data_direction dir)
{
	struct dmabuf_rig *rig = attach->dmabuf->priv;

	rig_enter(attach->dmabuf, DMABUF_UNMAP);
	if (atomic_dec_return(&rig->maps) < 0)
		rig_wrong(rig, "unmapped, and was not mapped");
	sg_free_table(sgt);
	kfree(sgt);
}

static void rig_release(struct dma_buf *dmabuf)
{
	struct dmabuf_rig *rig = dmabuf->priv;

	complete(&rig->released);
}

static const struct dma_buf_ops moving_ops = {
	.attach = rig_attach,
	.detach = rig_detach,
	.pin = rig_pin,
	.unpin = rig_unpin,
	.map_dma_buf = rig_map,
	.unmap_dma_buf = rig_unmap,
	.release = rig_release,
};

static const struct dma_buf_ops static_ops = {
	.attach = rig_attach,
	.detach = rig_detach,
	.map_dma_buf = rig_map,
	.unmap_dma_buf = rig_unmap,
	.release = rig_release,
};

/* The last fput() of a kernel thread is deferred to a work item, so wait for the release. */
static void rig_end(void *arg)
{
	struct dmabuf_rig *rig = arg;

	close_fd(rig->fd);
	WARN_ON(!kvt_wait(&rig->released));
}

static struct dmabuf_rig *rig_new(struct kunit *test, size_t size, const struct dma_buf_ops *ops)
{
	struct dmabuf_rig *rig = kvt_zalloc(test, sizeof(*rig));
	DEFINE_DMA_BUF_EXPORT_INFO(info);

	rig->base = DMABUF_DMA;
	init_completion(&rig->released);
	info.ops = ops;
	info.size = size;
	info.flags = O_RDWR;
	info.priv = rig;
	rig->dmabuf = KVT_PTR(test, dma_buf_export(&info));
	rig->fd = dma_buf_fd(rig->dmabuf, O_CLOEXEC);
	KUNIT_ASSERT_GE(test, rig->fd, 0);
	kvt_defer(test, rig_end, rig);
	return rig;
}

/**
 * dmabuf_rig_new() - a dma-buf that can move
 * @test: the running case
 * @size: bytes
 *
 * Return: the rig of the dma-buf, whose file is open until the case ends.
 */
struct dmabuf_rig *dmabuf_rig_new(struct kunit *test, size_t size)
{
	return rig_new(test, size, &moving_ops);
}
EXPORT_SYMBOL_GPL(dmabuf_rig_new);

/**
 * dmabuf_rig_new_static() - a dma-buf that stays where it is
 * @test: the running case
 * @size: bytes
 *
 * Return: the rig of the dma-buf, whose file is open until the case ends.
 */
struct dmabuf_rig *dmabuf_rig_new_static(struct kunit *test, size_t size)
{
	return rig_new(test, size, &static_ops);
}
EXPORT_SYMBOL_GPL(dmabuf_rig_new_static);

/**
 * dmabuf_rig_calls() - how often a function of the exporter was called
 * @rig: the dma-buf
 * @call: the function
 *
 * Return: calls so far.
 */
int dmabuf_rig_calls(const struct dmabuf_rig *rig, enum dmabuf_call call)
{
	return atomic_read(&rig->calls[call]);
}
EXPORT_SYMBOL_GPL(dmabuf_rig_calls);

/**
 * dmabuf_rig_move() - move the memory, after notifying the importers
 * @rig: the dma-buf, one that can move
 * @base: DMA address of its first page from now on
 *
 * Context: Process.
 */
void dmabuf_rig_move(struct dmabuf_rig *rig, u64 base)
{
	dma_resv_lock(rig->dmabuf->resv, NULL);
	dma_buf_move_notify(rig->dmabuf);
	if (atomic_read(&rig->maps) && !atomic_read(&rig->pins))
		rig_wrong(rig, "moved while it is mapped");
	WRITE_ONCE(rig->base, base);
	dma_resv_unlock(rig->dmabuf->resv);
}
EXPORT_SYMBOL_GPL(dmabuf_rig_move);

/**
 * dmabuf_rig_settle() - wait until the midlayer has mapped the memory again, or given it up
 * @mr: region of a dma-buf that has moved
 */
void dmabuf_rig_settle(struct ib_mr *mr)
{
	struct delayed_work *remap = &to_ib_umem_dmabuf(mr->umem)->remap;

	/* It may try again, on another CPU before flush_delayed_work() has looked. */
	do {
		flush_delayed_work(remap);
	} while (delayed_work_pending(remap));
}
EXPORT_SYMBOL_GPL(dmabuf_rig_settle);

/**
 * dmabuf_rig_map_pages() - ib_umem_dmabuf_map_pages() with its lock
 * @d: the importer's memory
 *
 * Return: its result.
 */
int dmabuf_rig_map_pages(struct ib_umem_dmabuf *d)
{
	int ret;

	dma_resv_lock(d->attach->dmabuf->resv, NULL);
	ret = ib_umem_dmabuf_map_pages(d);
	dma_resv_unlock(d->attach->dmabuf->resv);
	return ret;
}
EXPORT_SYMBOL_GPL(dmabuf_rig_map_pages);

/**
 * dmabuf_rig_unmap_pages() - ib_umem_dmabuf_unmap_pages() with its lock
 * @d: the importer's memory
 */
void dmabuf_rig_unmap_pages(struct ib_umem_dmabuf *d)
{
	dma_resv_lock(d->attach->dmabuf->resv, NULL);
	ib_umem_dmabuf_unmap_pages(d);
	dma_resv_unlock(d->attach->dmabuf->resv);
}
EXPORT_SYMBOL_GPL(dmabuf_rig_unmap_pages);
