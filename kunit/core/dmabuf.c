// SPDX-License-Identifier: GPL-2.0-only
/*
 * dma-bufs as memory of a device: getting them, pinning or moving, mapping, trimming to
 * the requested range, releasing; and MRs made of them. The exporter is that of
 * lib/dmabuf_rig.h, which has DMA addresses but no memory.
 */
#include <linux/dma-fence.h>
#include <linux/dma-resv.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <rdma/ib_umem.h>

#include "lib/dmabuf_rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

#define ACCESS		IB_ACCESS_LOCAL_WRITE
#define SIZE		SZ_256K
#define ELSEWHERE	0x90000000ULL

#define REGISTRATIONS	4000

struct rig {
	struct mock *m;
	struct ib_pd *pd;
	struct dmabuf_rig *buf;
};

/* @waits: the device has pause_mr, so the core need not pin the memory. */
static void rig_up(struct kunit *test, struct rig *r, bool waits)
{
	struct mock *m = mock_new(test);

	mock_by_umem(m);
	if (!waits)
		m->ops.pause_mr = NULL;
	mock_start(test, m, "kvtm_a");
	mock_log_reset(m);
	r->m = m;
	r->pd = kvt_pd(test, m->ibdev);
	r->buf = dmabuf_rig_new(test, SIZE);
}

static void expect_nothing_left(struct kunit *test, struct rig *r)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->pd->usecnt));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->m->live[MOCK_MR]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->m->wrong_mr));
	DMABUF_EXPECT_IDLE(test, r->buf);
}

/* Memory */

static void moves(struct dma_buf_attachment *attach)
{
}

static const struct dma_buf_attach_ops importer = {
	.allow_peer2peer = true,
	.move_notify = moves,
};

static struct ib_umem_dmabuf *get(struct rig *r, unsigned long offset, size_t size,
				  int fd, int access)
{
	return ib_umem_dmabuf_get(r->m->ibdev, offset, size, fd, access, &importer);
}

/*
 * Without CONFIG_DMABUF_MOVE_NOTIFY the core pins the memory, so it never moves; and so does the
 * kernel, each time it is mapped.
 */
static void need_moves(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY))
		kunit_skip(test, "without CONFIG_DMABUF_MOVE_NOTIFY");
}

static void memory_is_mapped_between_attach_and_detach(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct ib_umem_dmabuf *d;
	struct rig r;
	int i;

	need_moves(test);
	rig_up(test, &r, true);
	r.buf->trace = tr;
	d = KVT_PTR(test, get(&r, SZ_8K, SZ_64K, r.buf->fd, ACCESS));
	KUNIT_EXPECT_TRUE(test, d->umem.is_dmabuf);
	KUNIT_EXPECT_TRUE(test, d->umem.writable);
	KUNIT_EXPECT_EQ(test, SZ_8K, d->umem.address);
	KUNIT_EXPECT_EQ(test, SZ_64K, d->umem.length);
	KUNIT_EXPECT_PTR_EQ(test, d, to_ib_umem_dmabuf(&d->umem));
	KVT_EXPECT_TRACE(test, tr, "attach");
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, 0, dmabuf_rig_map_pages(d));
	KVT_EXPECT_TRACE(test, tr, "attach map");
	for (i = 0; i < 2; i++)
		dmabuf_rig_unmap_pages(d);
	KVT_EXPECT_TRACE(test, tr, "attach map unmap");
	KUNIT_EXPECT_EQ(test, 0, dmabuf_rig_map_pages(d));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_umem_copy_from(&i, &d->umem, 0, 1));
	kvt_trace_reset(tr);
	ib_umem_release(&d->umem);
	KVT_EXPECT_TRACE(test, tr, "unmap detach");
	expect_nothing_left(test, &r);
}

struct piece {
	const char *what;
	unsigned long offset;
	size_t size;
	size_t entry;
};

static const struct piece pieces[] = {
	{ "all", 0, SIZE, 0 },
	{ "all, in entries", 0, SIZE, SZ_16K },
	{ "the first byte", 0, 1, SZ_16K },
	{ "the last byte", SIZE - 1, 1, SZ_16K },
	{ "not where pages begin", SZ_16K + 100, SZ_32K, SZ_16K },
	{ "within an entry", SZ_64K + SZ_4K, SZ_8K, SZ_64K },
	{ "over the end of an entry", SZ_64K - 1, 2, SZ_64K },
};

/* DMA address of the byte at @offset of the dma-buf. */
static u64 dma_of(const struct piece *p, size_t offset)
{
	if (!p->entry)
		return DMABUF_DMA + offset;
	return DMABUF_DMA + offset / p->entry * 2 * p->entry + offset % p->entry;
}

static void expect_piece(struct kunit *test, struct rig *r, const struct piece *p)
{
	struct ib_umem_dmabuf *d = KVT_PTR(test, get(r, p->offset, p->size, r->buf->fd, ACCESS));
	size_t at = ALIGN_DOWN(p->offset, PAGE_SIZE);
	struct ib_block_iter biter;

	KUNIT_EXPECT_EQ(test, 0, dmabuf_rig_map_pages(d));
	rdma_umem_for_each_dma_block(&d->umem, &biter, PAGE_SIZE) {
		KUNIT_EXPECT_EQ_MSG(test, dma_of(p, at), rdma_block_iter_dma_address(&biter),
				    "%s: %zu", p->what, at);
		at += PAGE_SIZE;
	}
	KUNIT_EXPECT_EQ_MSG(test, ALIGN(p->offset + p->size, PAGE_SIZE), at, "%s", p->what);
	ib_umem_dmabuf_release(d);
}

static void device_gets_the_range_alone(struct kunit *test)
{
	const struct piece *p = pieces;
	struct rig r;

	rig_up(test, &r, true);
	for (; p < pieces + ARRAY_SIZE(pieces); p++) {
		r.buf->piece = p->entry;
		expect_piece(test, &r, p);
	}
	expect_nothing_left(test, &r);
}

static int get_error(struct rig *r, unsigned long offset, size_t size, int fd, int access)
{
	return PTR_ERR_OR_ZERO(get(r, offset, size, fd, access));
}

static void what_is_not_in_a_dmabuf_is_refused(struct kunit *test)
{
	struct rig r;
	int fd;

	rig_up(test, &r, true);
	fd = r.buf->fd;
	KUNIT_EXPECT_EQ(test, -EINVAL, get_error(&r, 0, 0, fd, ACCESS));
	KUNIT_EXPECT_EQ(test, -EINVAL, get_error(&r, 0, SIZE + 1, fd, ACCESS));
	KUNIT_EXPECT_EQ(test, -EINVAL, get_error(&r, 1, SIZE, fd, ACCESS));
	KUNIT_EXPECT_EQ(test, -EINVAL, get_error(&r, SIZE, 1, fd, ACCESS));
	KUNIT_EXPECT_EQ(test, -EINVAL, get_error(&r, -1UL, 1, fd, ACCESS));
	KUNIT_EXPECT_EQ(test, -EINVAL, get_error(&r, SZ_4K, -SZ_4K, fd, ACCESS));
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, get_error(&r, 0, SIZE, fd, IB_ACCESS_ON_DEMAND));
	KUNIT_EXPECT_EQ(test, -EBADF, get_error(&r, 0, SIZE, -1, ACCESS));
	KUNIT_EXPECT_EQ(test, -EBADF, get_error(&r, 0, SIZE, 9999, ACCESS));
	KUNIT_EXPECT_EQ(test, 0, dmabuf_rig_calls(r.buf, DMABUF_ATTACH));
	expect_nothing_left(test, &r);
}

static void exporter_that_does_not_attach(struct kunit *test)
{
	struct rig r;

	rig_up(test, &r, true);
	r.buf->ret[DMABUF_ATTACH] = -EXFULL;
	KUNIT_EXPECT_EQ(test, -EXFULL, get_error(&r, 0, SIZE, r.buf->fd, ACCESS));
	KUNIT_EXPECT_EQ(test, 0, dmabuf_rig_calls(r.buf, DMABUF_DETACH));
	expect_nothing_left(test, &r);
}

/* The exporter returns an error, or a table that is too short or not of whole pages. */
static void table_that_is_wrong_is_not_used(struct kunit *test)
{
	struct ib_umem_dmabuf *d;
	struct rig r;

	rig_up(test, &r, true);
	d = KVT_PTR(test, get(&r, SIZE - SZ_8K, SZ_8K, r.buf->fd, ACCESS));
	r.buf->ret[DMABUF_MAP] = -EXFULL;
	KUNIT_EXPECT_EQ(test, -EXFULL, dmabuf_rig_map_pages(d));
	r.buf->ret[DMABUF_MAP] = 0;
	r.buf->missing = SZ_4K;
	KUNIT_EXPECT_EQ(test, -EINVAL, dmabuf_rig_map_pages(d));
	r.buf->missing = SZ_32K;
	KUNIT_EXPECT_EQ(test, -EINVAL, dmabuf_rig_map_pages(d));
	r.buf->missing = 0;
	r.buf->skew = 512;
	KUNIT_EXPECT_EQ(test, -EINVAL, dmabuf_rig_map_pages(d));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r.buf->maps));
	r.buf->skew = 0;
	KUNIT_EXPECT_EQ(test, 0, dmabuf_rig_map_pages(d));
	ib_umem_dmabuf_release(d);
	expect_nothing_left(test, &r);
}

/* Memory that is pinned */

static struct ib_umem_dmabuf *get_pinned(struct rig *r)
{
	return ib_umem_dmabuf_get_pinned(r->m->ibdev, SZ_4K, SZ_64K, r->buf->fd, ACCESS);
}

static void memory_is_pinned_and_mapped(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct ib_umem_dmabuf *d;
	struct rig r;

	need_moves(test);
	rig_up(test, &r, true);
	r.buf->trace = tr;
	d = KVT_PTR(test, get_pinned(&r));
	KUNIT_EXPECT_TRUE(test, d->pinned);
	KUNIT_EXPECT_EQ(test, DMABUF_DMA + SZ_4K, sg_dma_address(d->umem.sgt_append.sgt.sgl));
	KVT_EXPECT_TRACE(test, tr, "attach pin map");
	kvt_trace_reset(tr);
	ib_umem_dmabuf_release(d);
	KVT_EXPECT_TRACE(test, tr, "unmap unpin detach");
	expect_nothing_left(test, &r);
}

static void pinning_that_fails_leaves_nothing(struct kunit *test)
{
	static const enum dmabuf_call steps[] = { DMABUF_ATTACH, DMABUF_PIN, DMABUF_MAP };
	struct rig r;
	int i;

	rig_up(test, &r, true);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		r.buf->ret[steps[i]] = -EXFULL;
		KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(get_pinned(&r)));
		r.buf->ret[steps[i]] = 0;
		DMABUF_EXPECT_IDLE(test, r.buf);
	}
	r.buf->missing = SIZE - SZ_64K;
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(get_pinned(&r)));
	expect_nothing_left(test, &r);
}

static void dmabuf_that_never_moves_is_as_good(struct kunit *test)
{
	struct ib_umem_dmabuf *d;
	struct rig r;
	int i;

	rig_up(test, &r, true);
	r.buf = dmabuf_rig_new_static(test, SIZE);
	for (i = 0; i < 2; i++) {
		d = KVT_PTR(test, i ? get_pinned(&r) : get(&r, SZ_4K, SZ_64K, r.buf->fd, ACCESS));
		KUNIT_EXPECT_EQ(test, 0, dmabuf_rig_map_pages(d));
		KUNIT_EXPECT_EQ(test, DMABUF_DMA + SZ_4K,
				sg_dma_address(d->umem.sgt_append.sgt.sgl));
		ib_umem_dmabuf_release(d);
	}
	expect_nothing_left(test, &r);
}

/* MRs of ib_reg_mem() */

static struct ib_mem dmabuf_mem(struct rig *r, enum ib_mem_path path)
{
	return (struct ib_mem) {
		.path = path,
		.length = SZ_64K,
		.has_fd = true,
		.fd = r->buf->fd,
		.fd_offset = SZ_16K,
	};
}

static struct ib_mr *reg(struct kunit *test, struct rig *r)
{
	struct ib_mem mem = dmabuf_mem(r, IB_MEM_DMABUF);
	struct ib_mr *mr = KVT_PTR(test, ib_reg_mem(r->pd, &mem, 0x7000000, ACCESS));

	KUNIT_EXPECT_EQ(test, IB_MEM_DMABUF, mem.found);
	KUNIT_EXPECT_TRUE(test, mr->umem->is_dmabuf);
	KUNIT_EXPECT_EQ(test, 0x7000000, mr->iova);
	KUNIT_EXPECT_EQ(test, SZ_64K, mr->length);
	KUNIT_EXPECT_EQ(test, r->buf->base + SZ_16K, mock_mr_dma(mr));
	return mr;
}

static void device_that_cannot_wait_has_it_pinned(struct kunit *test)
{
	struct ib_mr *mr;
	struct rig r;

	need_moves(test);
	rig_up(test, &r, false);
	mr = reg(test, &r);
	KUNIT_EXPECT_TRUE(test, to_ib_umem_dmabuf(mr->umem)->pinned);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.buf->pins));
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	expect_nothing_left(test, &r);
}

static void region_goes_on_where_its_memory_has_moved(struct kunit *test)
{
	struct ib_mr *mr;
	struct rig r;
	int i;

	need_moves(test);
	rig_up(test, &r, true);
	mr = reg(test, &r);
	KUNIT_EXPECT_FALSE(test, to_ib_umem_dmabuf(mr->umem)->pinned);
	KUNIT_EXPECT_EQ(test, 0, dmabuf_rig_calls(r.buf, DMABUF_PIN));
	for (i = 1; i <= 3; i++) {
		dmabuf_rig_move(r.buf, ELSEWHERE + i * SIZE);
		dmabuf_rig_settle(mr);
		KUNIT_EXPECT_EQ(test, MOCK_MR_LIVE, mock_mr_state(mr));
		KUNIT_EXPECT_EQ(test, ELSEWHERE + i * SIZE + SZ_16K, mock_mr_dma(mr));
		KUNIT_EXPECT_EQ(test, i, mock_calls(r.m, MOCK_pause_mr));
		KUNIT_EXPECT_EQ(test, i, mock_calls(r.m, MOCK_resume_mr));
	}
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_revoke_mr));
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	expect_nothing_left(test, &r);
}

/* The memory is not mapped again between the two moves, so the MR is paused only once. */
static void memory_that_moves_again_is_not_told_twice(struct kunit *test)
{
	struct dma_resv *resv;
	struct ib_mr *mr;
	struct rig r;

	need_moves(test);
	rig_up(test, &r, true);
	mr = reg(test, &r);
	resv = r.buf->dmabuf->resv;
	dma_resv_lock(resv, NULL);
	dma_buf_move_notify(r.buf->dmabuf);
	KUNIT_EXPECT_EQ(test, MOCK_MR_PAUSED, mock_mr_state(mr));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r.buf->maps));
	dma_buf_move_notify(r.buf->dmabuf);
	KUNIT_EXPECT_EQ(test, MOCK_MR_PAUSED, mock_mr_state(mr));
	r.buf->base = ELSEWHERE;
	dma_resv_unlock(resv);
	dmabuf_rig_settle(mr);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_pause_mr));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_resume_mr));
	KUNIT_EXPECT_EQ(test, ELSEWHERE + SZ_16K, mock_mr_dma(mr));
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	expect_nothing_left(test, &r);
}

static void region_may_end_while_its_memory_moves(struct kunit *test)
{
	struct kvt_trace *tr = kvt_trace_new(test);
	struct ib_mr *mr;
	struct rig r;
	int i;

	need_moves(test);
	rig_up(test, &r, true);
	for (i = 0; i < 50; i++) {
		mr = reg(test, &r);
		dmabuf_rig_move(r.buf, ELSEWHERE + i * SIZE);
		KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	}
	r.buf->trace = tr;
	dmabuf_rig_move(r.buf, ELSEWHERE);
	KVT_EXPECT_TRACE(test, tr, "");
	expect_nothing_left(test, &r);
}

/* The moved memory cannot be mapped again, or the device's resume_mr fails. */
/* Neither the exporter nor the driver has memory at first. */
static void region_that_cannot_go_on_yet_goes_on_later(struct kunit *test)
{
	struct ib_mr *mr;
	struct rig r;

	need_moves(test);
	rig_up(test, &r, true);
	mr = reg(test, &r);
	r.buf->ret[DMABUF_MAP] = -ENOMEM;
	dmabuf_rig_move(r.buf, ELSEWHERE);
	flush_delayed_work(&to_ib_umem_dmabuf(mr->umem)->remap);
	KUNIT_EXPECT_EQ(test, MOCK_MR_PAUSED, mock_mr_state(mr));
	r.buf->ret[DMABUF_MAP] = 0;
	mock_fail_nth(r.m, MOCK_resume_mr, 1, -ENOMEM);
	dmabuf_rig_settle(mr);
	KUNIT_EXPECT_EQ(test, 2, mock_calls(r.m, MOCK_resume_mr));
	KUNIT_EXPECT_EQ(test, MOCK_MR_LIVE, mock_mr_state(mr));
	KUNIT_EXPECT_EQ(test, ELSEWHERE + SZ_16K, mock_mr_dma(mr));

	/* But not for ever. */
	r.buf->ret[DMABUF_MAP] = -ENOMEM;
	dmabuf_rig_move(r.buf, DMABUF_DMA);
	dmabuf_rig_settle(mr);
	KUNIT_EXPECT_EQ(test, MOCK_MR_REVOKED, mock_mr_state(mr));
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	expect_nothing_left(test, &r);
}

static void region_that_cannot_go_on_is_revoked(struct kunit *test)
{
	struct ib_mr *mr;
	struct rig r;
	int i;

	need_moves(test);
	for (i = 0; i < 3; i++) {
		rig_up(test, &r, true);
		mr = reg(test, &r);
		if (i == 0)
			r.buf->ret[DMABUF_MAP] = -EXFULL;
		else if (i == 1)
			r.buf->missing = SIZE - SZ_4K;
		else
			mock_fail_nth(r.m, MOCK_resume_mr, 1, -EXFULL);
		dmabuf_rig_move(r.buf, ELSEWHERE);
		dmabuf_rig_settle(mr);
		KUNIT_EXPECT_EQ(test, MOCK_MR_REVOKED, mock_mr_state(mr));
		KUNIT_EXPECT_TRUE(test, mr->umem->revoked);
		KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_revoke_mr));
		r.buf->ret[DMABUF_MAP] = 0;
		r.buf->missing = 0;

		/* A later move does not call pause_mr and resume_mr for a revoked MR. */
		dmabuf_rig_move(r.buf, DMABUF_DMA);
		dmabuf_rig_settle(mr);
		KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_pause_mr));
		KUNIT_EXPECT_EQ(test, i == 2, mock_calls(r.m, MOCK_resume_mr));
		KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_revoke_mr));
		KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
		kvt_pd_put(test, r.pd);
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&r.m->wrong_mr));
		DMABUF_EXPECT_IDLE(test, r.buf);
		mock_free(test, r.m);
	}
}

static void region_that_cannot_be_freed_still_moves(struct kunit *test)
{
	struct ib_mr *mr;
	struct rig r;

	need_moves(test);
	rig_up(test, &r, true);
	mr = reg(test, &r);
	mock_fail_nth(r.m, MOCK_dereg_mr, 1, -EBUSY);
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_dereg_mr(mr));
	dmabuf_rig_move(r.buf, ELSEWHERE);
	dmabuf_rig_settle(mr);
	KUNIT_EXPECT_EQ(test, MOCK_MR_LIVE, mock_mr_state(mr));
	KUNIT_EXPECT_EQ(test, ELSEWHERE + SZ_16K, mock_mr_dma(mr));
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	expect_nothing_left(test, &r);
}

static void registration_that_fails_leaves_nothing(struct kunit *test)
{
	struct ib_mem mem;
	struct rig r;
	int i;

	for (i = 0; i < 2; i++) {
		rig_up(test, &r, i);
		mem = dmabuf_mem(&r, IB_MEM_DMABUF);
		r.buf->ret[DMABUF_MAP] = -EXFULL;
		KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(ib_reg_mem(r.pd, &mem, 0, ACCESS)));
		KUNIT_EXPECT_EQ(test, -EXFULL, mem.error[IB_MEM_DMABUF]);
		KUNIT_EXPECT_EQ(test, IB_MEM_ANY, mem.found);
		r.buf->ret[DMABUF_MAP] = 0;
		mock_fail_nth(r.m, MOCK_reg_umem_mr, 1, -EXFULL);
		KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(ib_reg_mem(r.pd, &mem, 0, ACCESS)));
		DMABUF_EXPECT_IDLE(test, r.buf);
		KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_revoke_mr));
		kvt_pd_put(test, r.pd);
		mock_free(test, r.m);
	}
}

/* If the dma-buf fails, other paths are tried; mem.error says why each of them failed. */
static void registration_falls_back_from_a_dmabuf(struct kunit *test)
{
	struct ib_mem mem;
	struct ib_mr *mr;
	struct rig r;

	rig_up(test, &r, true);
	mem = dmabuf_mem(&r, IB_MEM_ANY);
	mem.start = kvt_map(test, SZ_64K);
	mr = KVT_PTR(test, ib_reg_mem(r.pd, &mem, 0, ACCESS));
	KUNIT_EXPECT_EQ(test, IB_MEM_DMABUF, mem.found);
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));

	r.buf->ret[DMABUF_MAP] = -EXFULL;
	mr = KVT_PTR(test, ib_reg_mem(r.pd, &mem, 0, ACCESS));
	KUNIT_EXPECT_EQ(test, IB_MEM_HOST, mem.found);
	KUNIT_EXPECT_EQ(test, -EXFULL, mem.error[IB_MEM_DMABUF]);
	KUNIT_EXPECT_EQ(test, 0, mem.error[IB_MEM_HOST]);
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));

	mem.start = 0;
	mr = ib_reg_mem(r.pd, &mem, 0, ACCESS);
	KUNIT_EXPECT_EQ(test, -EFAULT, PTR_ERR_OR_ZERO(mr));
	KUNIT_EXPECT_EQ(test, -EXFULL, mem.error[IB_MEM_DMABUF]);
	KUNIT_EXPECT_EQ(test, -EFAULT, mem.error[IB_MEM_HOST]);
	KUNIT_EXPECT_EQ(test, -ENODEV, mem.error[IB_MEM_PEER]);
	expect_nothing_left(test, &r);
}

static void count_refusal(void *data, const struct ib_device *dev, const char *client,
			  const char *object, const char *text)
{
	atomic_t *times = data;

	if (strstr(text, "the dma-buf's size"))
		atomic_inc(times);
}

static void unwatch_refusals(void *arg)
{
	tracepoint_probe_unregister(kvt_tracepoint("ib_invalid"), count_refusal, arg);
	tracepoint_synchronize_unregister();
}

static void range_is_blamed_only_if_no_other_memory_does(struct kunit *test)
{
	atomic_t *times = kunit_kzalloc(test, sizeof(*times), GFP_KERNEL);
	struct ib_mem mem;
	struct ib_mr *mr;
	struct rig r;

	KUNIT_ASSERT_NOT_NULL(test, times);
	rig_up(test, &r, true);
	KUNIT_ASSERT_EQ(test, 0, tracepoint_probe_register(kvt_tracepoint("ib_invalid"),
							   count_refusal, times));
	KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, unwatch_refusals, times));
	mem = dmabuf_mem(&r, IB_MEM_ANY);
	mem.start = kvt_map(test, SZ_64K);
	mem.fd_offset = SIZE;
	mr = ib_reg_mem(r.pd, &mem, 0, ACCESS);
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(mr));
	KUNIT_EXPECT_EQ(test, IB_MEM_HOST, mem.found);
	KUNIT_EXPECT_EQ(test, -EINVAL, mem.error[IB_MEM_DMABUF]);
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(mr));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(times));

	mem.start = 0;
	KUNIT_EXPECT_EQ(test, -EFAULT, PTR_ERR_OR_ZERO(ib_reg_mem(r.pd, &mem, 0, ACCESS)));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(times));
	mem.path = IB_MEM_DMABUF;
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(ib_reg_mem(r.pd, &mem, 0, ACCESS)));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(times));
	expect_nothing_left(test, &r);
}

/* Fences */

static const char *fence_name(struct dma_fence *fence)
{
	return "kvt";
}

static const struct dma_fence_ops fence_ops = {
	.get_driver_name = fence_name,
	.get_timeline_name = fence_name,
};

static DEFINE_SPINLOCK(fence_lock);

static struct dma_fence *add_fence(struct kunit *test, struct dma_buf *dmabuf)
{
	struct dma_fence *fence = KVT_PTR(test, kzalloc(sizeof(*fence), GFP_KERNEL));

	dma_fence_init(fence, &fence_ops, &fence_lock, dma_fence_context_alloc(1), 1);
	dma_resv_lock(dmabuf->resv, NULL);
	KUNIT_EXPECT_EQ(test, 0, dma_resv_reserve_fences(dmabuf->resv, 1));
	dma_resv_add_fence(dmabuf->resv, fence, DMA_RESV_USAGE_KERNEL);
	dma_resv_unlock(dmabuf->resv);
	return fence;
}

struct waiter {
	struct rig *r;
	struct ib_mr *mr;
};

static int reg_fn(void *arg)
{
	struct waiter *w = arg;
	struct ib_mem mem = dmabuf_mem(w->r, IB_MEM_DMABUF);

	w->mr = ib_reg_mem(w->r->pd, &mem, 0, ACCESS);
	return 0;
}

/* Registration waits for the fences of devices that still write to the memory. */
static void device_gets_memory_when_it_is_there(struct kunit *test)
{
	struct dma_fence *fence;
	struct waiter w = {};
	struct kvt_thread *t;
	struct rig r;

	rig_up(test, &r, true);
	w.r = &r;
	fence = add_fence(test, r.buf->dmabuf);
	t = kvt_thread_start(test, kvt_other_cpu(), reg_fn, &w);
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_reg_umem_mr));
	dma_fence_signal(fence);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(w.mr));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_reg_umem_mr));
	KUNIT_EXPECT_EQ(test, 0, ib_dereg_mr(w.mr));
	dma_fence_put(fence);
	expect_nothing_left(test, &r);
}

/* Moves during registration and deregistration */

struct mover {
	struct dmabuf_rig *buf;
	u64 moves;
};

static int mover_fn(void *arg)
{
	struct mover *m = arg;

	while (!kvt_should_stop()) {
		dmabuf_rig_move(m->buf, ELSEWHERE + (m->moves % 16) * SIZE);
		WRITE_ONCE(m->moves, m->moves + 1);
		cond_resched();
	}
	return 0;
}

/* Waits until a move that began after this call has ended. */
static void await_move(struct mover *m)
{
	u64 enough = READ_ONCE(m->moves) + 2;

	while (READ_ONCE(m->moves) < enough)
		schedule();
}

/* Waits until a region is told to go on, where its memory is by then. */
static bool await_resume(struct rig *r)
{
	unsigned int before = mock_calls(r->m, MOCK_resume_mr);

	return kvt_until(mock_calls(r->m, MOCK_resume_mr) != before);
}

/* Whether the MR is paused or has the DMA address that the memory has now. */
static bool is_in_place(struct rig *r, struct ib_mr *mr)
{
	bool right;

	dma_resv_lock(r->buf->dmabuf->resv, NULL);
	right = mock_mr_state(mr) == MOCK_MR_PAUSED ||
		mock_mr_dma(mr) == r->buf->base + SZ_16K;
	dma_resv_unlock(r->buf->dmabuf->resv);
	return right;
}

static void memory_moves_at_any_time(struct kunit *test)
{
	struct mover mover = {};
	struct kvt_thread *t;
	struct ib_mem mem;
	struct ib_mr *mr;
	u64 i, count = kvt_count(REGISTRATIONS);
	struct rig r;

	need_moves(test);
	rig_up(test, &r, true);
	kvt_print_length(test, "regions of memory that moves", count);
	mover.buf = r.buf;
	t = kvt_thread_start(test, kvt_other_cpu(), mover_fn, &mover);
	for (i = 0; i < count; i++) {
		mem = dmabuf_mem(&r, IB_MEM_DMABUF);
		mr = KVT_PTR(test, ib_reg_mem(r.pd, &mem, 0, ACCESS));
		KUNIT_EXPECT_TRUE(test, is_in_place(&r, mr));
		if (i % 2)
			await_move(&mover);
		if (i % 16 == 0)
			KUNIT_EXPECT_TRUE(test, await_resume(&r));
		KUNIT_EXPECT_TRUE(test, is_in_place(&r, mr));
		KUNIT_ASSERT_EQ(test, 0, ib_dereg_mr(mr));
	}
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_stop(t));
	kunit_info(test, "%llu moves, %u of them of a region", mover.moves,
		   mock_calls(r.m, MOCK_pause_mr));
	KUNIT_EXPECT_GE(test, mock_calls(r.m, MOCK_pause_mr), count / 2);
	expect_nothing_left(test, &r);
}

static struct kunit_case core_dmabuf_cases[] = {
	KUNIT_CASE(memory_is_mapped_between_attach_and_detach),
	KUNIT_CASE(device_gets_the_range_alone),
	KUNIT_CASE(what_is_not_in_a_dmabuf_is_refused),
	KUNIT_CASE(exporter_that_does_not_attach),
	KUNIT_CASE(table_that_is_wrong_is_not_used),
	KUNIT_CASE(memory_is_pinned_and_mapped),
	KUNIT_CASE(pinning_that_fails_leaves_nothing),
	KUNIT_CASE(dmabuf_that_never_moves_is_as_good),
	KUNIT_CASE(device_that_cannot_wait_has_it_pinned),
	KUNIT_CASE(region_goes_on_where_its_memory_has_moved),
	KUNIT_CASE(memory_that_moves_again_is_not_told_twice),
	KUNIT_CASE(region_may_end_while_its_memory_moves),
	KUNIT_CASE(region_that_cannot_go_on_yet_goes_on_later),
	KUNIT_CASE(region_that_cannot_go_on_is_revoked),
	KUNIT_CASE(region_that_cannot_be_freed_still_moves),
	KUNIT_CASE(registration_that_fails_leaves_nothing),
	KUNIT_CASE(registration_falls_back_from_a_dmabuf),
	KUNIT_CASE(range_is_blamed_only_if_no_other_memory_does),
	KUNIT_CASE(device_gets_memory_when_it_is_there),
	KUNIT_CASE(memory_moves_at_any_time),
	{}
};
KVT_SUITE(core_dmabuf);
