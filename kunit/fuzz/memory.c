// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: operations on MRs, MWs, FMRs and address handles.
 */
#include <linux/scatterlist.h>

#include "fuzz/fuzz.h"

static u64 page_at(const struct x_world *w, int dev, int page)
{
	return w->dma[dev] + X_PAGES_AT + page * PAGE_SIZE;
}

/* --- regions --- */

enum x_verdict x_mr_alloc(struct x_world *w, const struct x_op *op)
{
	int pd = x_pd_of(op), max = op->r % 16 ? 1 + op->r % X_PAGES : 0;
	int want = max ? 0 : -EINVAL;
	struct ib_mr *mr;

	if (xm_there(w, X_MR, op->a) || !xm_there(w, X_PD, pd))
		return X_SKIPPED;
	mr = ib_alloc_mr(w->ptr[X_PD][pd], IB_MR_TYPE_MEM_REG, max);
	if (IS_ERR(mr))
		return x_want(w, "making a region", want, PTR_ERR(mr));
	w->ptr[X_MR][op->a] = mr;
	w->mr[op->a] = (struct x_mr){ .pd = pd, .key = mr->rkey, .max = max };
	xm_make(w, X_MR, op->a, xm_dev(w, X_PD, pd));
	xm_use(w, X_MR, op->a, X_PD, pd);
	return x_want(w, "making a region", want, 0);
}

enum x_verdict x_mr_map(struct x_world *w, const struct x_op *op)
{
	int i, n = 1 + op->r % X_PAGES, dev = xm_dev(w, X_MR, op->a), want, ret;
	struct x_mr *mr = &w->mr[op->a];
	struct scatterlist sg[X_PAGES];

	if (!xm_there(w, X_MR, op->a))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	/* The model has one list. That the next may be made earlier is for the suite of regions. */
	if (mr->valid)
		return X_SKIPPED;
	sg_init_table(sg, n);
	for (i = 0; i < n; i++) {
		sg_set_buf(&sg[i], w->buf[dev] + X_PAGES_AT + i * PAGE_SIZE, PAGE_SIZE);
		sg_dma_address(&sg[i]) = page_at(w, dev, i);
		sg_dma_len(&sg[i]) = PAGE_SIZE;
	}
	want = min_t(int, n, mr->max);
	ret = ib_map_mr_sg(w->ptr[X_MR][op->a], sg, n, NULL, PAGE_SIZE);
	if (ret > 0)
		mr->mapped = ret * PAGE_SIZE;
	return x_want(w, "mapping a region", want, ret);
}

static int free_mr(struct x_world *w, struct ib_mr *mr)
{
	if (w->lie != X_LIE_LEAK || w->nr_leaked == ARRAY_SIZE(w->leaked))
		return ib_dereg_mr(mr);
	w->leaked[w->nr_leaked++] = mr;
	return 0;
}

enum x_verdict x_mr_free(struct x_world *w, const struct x_op *op)
{
	int want, ret;

	if (!xm_there(w, X_MR, op->a))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	want = w->mr[op->a].windows ? -EINVAL : 0;
	ret = free_mr(w, w->ptr[X_MR][op->a]);
	if (!ret) {
		w->ptr[X_MR][op->a] = NULL;
		xm_gone(w, X_MR, op->a);
	}
	return x_want(w, "freeing a region", want, ret);
}

/* --- windows --- */

enum x_verdict x_mw_alloc(struct x_world *w, const struct x_op *op)
{
	static const u8 types[4] = { IB_MW_TYPE_1, IB_MW_TYPE_2, IB_MW_TYPE_2, 77 };
	int pd = x_pd_of(op), type = types[op->r & 3], want = type == 77 ? -EINVAL : 0;
	struct ib_mw *mw;

	if (xm_there(w, X_MW, op->a) || !xm_there(w, X_PD, pd))
		return X_SKIPPED;
	mw = ib_alloc_mw(w->ptr[X_PD][pd], type);
	if (IS_ERR(mw))
		return x_want(w, "making a window", want, PTR_ERR(mw));
	w->ptr[X_MW][op->a] = mw;
	w->mw[op->a] = (struct x_mw){ .pd = pd, .two = type == IB_MW_TYPE_2, .mr = -1 };
	xm_make(w, X_MW, op->a, xm_dev(w, X_PD, pd));
	xm_use(w, X_MW, op->a, X_PD, pd);
	return x_want(w, "making a window", want, 0);
}

enum x_verdict x_mw_free(struct x_world *w, const struct x_op *op)
{
	int ret;

	if (!xm_there(w, X_MW, op->a))
		return X_SKIPPED;
	if (x_settle(w))
		return X_FAILED;
	ret = ib_dealloc_mw(w->ptr[X_MW][op->a]);
	if (!ret) {
		xm_unbind(w, op->a);
		w->ptr[X_MW][op->a] = NULL;
		xm_gone(w, X_MW, op->a);
	}
	return x_want(w, "freeing a window", 0, ret);
}

/* --- FMRs --- */

enum x_verdict x_fmr_alloc(struct x_world *w, const struct x_op *op)
{
	struct ib_fmr_attr attr = {
		.max_pages = X_PAGES,
		.max_maps = op->r % 16 ? X_FMR_MAPS : 0,
		.page_shift = PAGE_SHIFT,
	};
	int pd = x_pd_of(op), want = attr.max_maps ? 0 : -EINVAL;
	struct ib_fmr *fmr;

	if (xm_there(w, X_FMR, op->a) || !xm_there(w, X_PD, pd))
		return X_SKIPPED;
	fmr = ib_alloc_fmr(w->ptr[X_PD][pd], IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE, &attr);
	if (IS_ERR(fmr))
		return x_want(w, "making an FMR", want, PTR_ERR(fmr));
	w->ptr[X_FMR][op->a] = fmr;
	w->fmr[op->a].maps = 0;
	xm_make(w, X_FMR, op->a, xm_dev(w, X_PD, pd));
	xm_use(w, X_FMR, op->a, X_PD, pd);
	return x_want(w, "making an FMR", want, 0);
}

enum x_verdict x_fmr_map(struct x_world *w, const struct x_op *op)
{
	int i, n = op->r % (X_PAGES + 2), dev = xm_dev(w, X_FMR, op->a), want, ret;
	struct x_fmr *fmr = &w->fmr[op->a];
	u64 pages[X_PAGES + 1];

	if (!xm_there(w, X_FMR, op->a))
		return X_SKIPPED;
	for (i = 0; i < n; i++)
		pages[i] = page_at(w, dev, i % X_PAGES);
	want = !n || n > X_PAGES || fmr->maps == X_FMR_MAPS ? -EINVAL : 0;
	ret = ib_map_phys_fmr(w->ptr[X_FMR][op->a], pages, n, page_at(w, dev, 0));
	if (!ret)
		fmr->maps++;
	return x_want(w, "mapping an FMR", want, ret);
}

/* Unmaps one FMR, or two at once. If the two are of different devices, that is refused. */
enum x_verdict x_fmr_unmap(struct x_world *w, const struct x_op *op)
{
	int to = op->b % X_SLOTS;
	struct ib_fmr *fmr = w->ptr[X_FMR][op->a], *other = w->ptr[X_FMR][to];
	bool both = op->c & 1 && op->a != to && other;
	int want = 0, ret;
	LIST_HEAD(list);

	if (!fmr)
		return X_SKIPPED;
	list_add_tail(&fmr->list, &list);
	if (both) {
		list_add_tail(&other->list, &list);
		if (xm_dev(w, X_FMR, op->a) != xm_dev(w, X_FMR, to))
			want = -EINVAL;
	}
	ret = ib_unmap_fmr(&list);
	list_del_init(&fmr->list);
	if (both)
		list_del_init(&other->list);
	if (!ret) {
		w->fmr[op->a].maps = 0;
		if (both)
			w->fmr[to].maps = 0;
	}
	return x_want(w, "unmapping FMRs", want, ret);
}

enum x_verdict x_fmr_free(struct x_world *w, const struct x_op *op)
{
	int ret;

	if (!xm_there(w, X_FMR, op->a))
		return X_SKIPPED;
	ret = ib_dealloc_fmr(w->ptr[X_FMR][op->a]);
	if (!ret) {
		w->ptr[X_FMR][op->a] = NULL;
		xm_gone(w, X_FMR, op->a);
	}
	return x_want(w, "freeing an FMR", 0, ret);
}

/* --- address handles --- */

static void random_ah(const struct x_world *w, u32 r, struct rdma_ah_attr *attr)
{
	*attr = (struct rdma_ah_attr){ .type = RDMA_AH_ATTR_TYPE_IB };
	rdma_ah_set_port_num(attr, X_PORT);
	rdma_ah_set_sl(attr, r & 7);
	/* Sometimes LID 0, which is not valid. */
	rdma_ah_set_dlid(attr, r >> 3 & 15 ? w->s->lid[r >> 7 & 1] : 0);
}

enum x_verdict x_ah_make(struct x_world *w, const struct x_op *op)
{
	int pd = x_pd_of(op), want;
	struct rdma_ah_attr attr;
	struct ib_ah *ah;

	if (xm_there(w, X_AH, op->a) || !xm_there(w, X_PD, pd))
		return X_SKIPPED;
	random_ah(w, op->r, &attr);
	want = attr.ib.dlid ? 0 : -EINVAL;
	ah = rdma_create_ah(w->ptr[X_PD][pd], &attr, op->c & 1 ? RDMA_CREATE_AH_SLEEPABLE : 0);
	if (IS_ERR(ah))
		return x_want(w, "making an address", want, PTR_ERR(ah));
	w->ptr[X_AH][op->a] = ah;
	w->ah[op->a] = attr;
	xm_make(w, X_AH, op->a, xm_dev(w, X_PD, pd));
	xm_use(w, X_AH, op->a, X_PD, pd);
	return x_want(w, "making an address", want, 0);
}

enum x_verdict x_ah_modify(struct x_world *w, const struct x_op *op)
{
	struct rdma_ah_attr attr;
	int want, ret;

	if (!xm_there(w, X_AH, op->a))
		return X_SKIPPED;
	random_ah(w, op->r, &attr);
	want = attr.ib.dlid ? 0 : -EINVAL;
	ret = w->lie == X_LIE_QUERY ? want : ib_modify_ah(w->ptr[X_AH][op->a], &attr);
	if (!ret)
		w->ah[op->a] = attr;
	return x_want(w, "changing an address", want, ret);
}

enum x_verdict x_ah_query(struct x_world *w, const struct x_op *op)
{
	struct rdma_ah_attr attr = {};
	int ret;

	if (!xm_there(w, X_AH, op->a))
		return X_SKIPPED;
	ret = ib_query_ah(w->ptr[X_AH][op->a], &attr);
	if (ret)
		return x_want(w, "querying an address", 0, ret);
	if (attr.sl != w->ah[op->a].sl)
		return x_want(w, "service level of an address", w->ah[op->a].sl, attr.sl);
	return x_want(w, "LID of an address", w->ah[op->a].ib.dlid, attr.ib.dlid);
}

enum x_verdict x_ah_free(struct x_world *w, const struct x_op *op)
{
	int ret;

	if (!xm_there(w, X_AH, op->a))
		return X_SKIPPED;
	ret = ib_destroy_ah(w->ptr[X_AH][op->a]);
	if (!ret) {
		w->ptr[X_AH][op->a] = NULL;
		xm_gone(w, X_AH, op->a);
	}
	return x_want(w, "freeing an address", 0, ret);
}
