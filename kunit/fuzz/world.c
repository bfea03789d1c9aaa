// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: how a world begins, without objects but the shared ones, and how it ends,
 * with all of its objects freed.
 */
#include "fuzz/fuzz.h"

static void share(struct x_world *w, enum x_kind kind, void *ptr)
{
	w->ptr[kind][X_SHARED] = ptr;
	xm_make(w, kind, X_SHARED, 0);
}

/**
 * x_begin_world() - begin an empty world
 * @w: the world; its buffers, its user memory and what belongs to the thread are kept
 * @lie: mistake for the self-test
 * @patience: how long to wait for something that must happen, in jiffies
 */
void x_begin_world(struct x_world *w, enum x_lie lie, unsigned long patience)
{
	struct x_shared *s = w->s;
	unsigned long mem = w->user_mem;
	struct x_own *own = w->own;
	u32 id = w->id;
	u64 dma[X_DEVS];
	u8 *buf[X_DEVS];

	memcpy(dma, w->dma, sizeof(dma));
	memcpy(buf, w->buf, sizeof(buf));
	memset(w, 0, sizeof(*w));
	w->s = s;
	w->id = id;
	w->user_mem = mem;
	w->own = own;
	memcpy(w->buf, buf, sizeof(buf));
	memcpy(w->dma, dma, sizeof(dma));
	w->lie = lie;
	w->patience = patience;
	init_waitqueue_head(&w->wait);
	x_clear_words(w);
	x_clear_user(w);
	x_own_begin(w);
	share(w, X_PD, s->pd);
	share(w, X_CQ, s->cq);
	w->cq_how[X_SHARED] = X_CQ_SOFTIRQ;
	share(w, X_SRQ, s->srq);
}

static void end_qp(struct x_world *w, int slot)
{
	struct x_op op = { .a = slot };

	for (op.b = 0; op.b < X_GROUPS; op.b++) {
		if (w->qp[slot].groups & BIT(op.b))
			x_mcast_leave(w, &op);
	}
	/* Settle first: requests that wait for this QP fail once it is destroyed. */
	if (!*w->why)
		x_settle(w);
	x_want(w, "destroying a QP at the end", 0, ib_destroy_qp(w->ptr[X_QP][slot]));
	x_hear_no_more(&w->heard_qp[slot]);
	xm_queue_clear(&w->qp[slot].sq);
	xm_queue_clear(&w->qp[slot].rq);
	xm_gone(w, X_QP, slot);
	xm_run(w);
}

static void end_cq(struct x_world *w, int slot)
{
	struct ib_cq *cq = w->ptr[X_CQ][slot];

	if (w->cq_how[slot] == X_CQ_POOL)
		ib_cq_pool_put(cq, X_CQE);
	else if (w->cq_how[slot] <= X_CQ_POLLED)
		x_want(w, "destroying a CQ at the end", 0, ib_destroy_cq_user(cq, NULL));
	else
		ib_free_cq(cq);
}

static void end_pd(struct x_world *w, int slot)
{
	int ret = ib_dealloc_pd_user(w->ptr[X_PD][slot], NULL);

	x_want(w, "freeing a PD at the end", 0, ret);
	if (!ret)
		w->ptr[X_PD][slot] = NULL;
}

static void end_obj(struct x_world *w, enum x_kind kind, int slot)
{
	void *ptr = w->ptr[kind][slot];

	switch (kind) {
	case X_QP:
		return end_qp(w, slot);
	case X_MR:
	case X_USER:
		x_want(w, "freeing a region at the end", 0, ib_dereg_mr(ptr));
		break;
	case X_MW:
		x_want(w, "freeing a window at the end", 0, ib_dealloc_mw(ptr));
		break;
	case X_FMR:
		x_want(w, "freeing an FMR at the end", 0, ib_dealloc_fmr(ptr));
		break;
	case X_AH:
		x_want(w, "freeing an address at the end", 0, ib_destroy_ah(ptr));
		break;
	case X_SRQ:
		x_want(w, "freeing an SRQ at the end", 0, ib_destroy_srq_user(ptr, NULL));
		x_hear_no_more(&w->heard_srq[slot]);
		break;
	case X_CQ:
		return end_cq(w, slot);
	default:
		return end_pd(w, slot);
	}
}

static void end_kind(struct x_world *w, enum x_kind kind)
{
	bool shared = kind == X_PD || kind == X_CQ || kind == X_SRQ;
	int slot;

	for (slot = shared; slot < X_SLOTS; slot++) {
		if (w->ptr[kind][slot])
			end_obj(w, kind, slot);
	}
}

/**
 * x_end_world() - free all objects of a world
 * @w: the world
 *
 * May be called after a failure, too: that failure is kept, and all that can be is freed.
 *
 * Return: %X_DONE or %X_FAILED.
 */
enum x_verdict x_end_world(struct x_world *w)
{
	static const u8 order[] = { X_QP, X_MW, X_MR, X_USER, X_FMR, X_AH, X_SRQ, X_CQ, X_PD };
	int i;

	if (!*w->why)
		x_settle(w);
	if (w->listening)
		x_listen(w, &(struct x_op){});
	x_end_ca(w);
	x_end_registry(w);
	for (i = 0; i < ARRAY_SIZE(order); i++)
		end_kind(w, order[i]);
	for (i = 0; i < w->nr_leaked; i++)
		ib_dereg_mr(w->leaked[i]);
	/* PDs that could not be freed while the leaked MRs used them. */
	if (w->nr_leaked)
		end_kind(w, X_PD);
	if (w->s->spoilt)
		x_fail(w, "left behind");
	if (atomic_read(&w->seen) != w->expected)
		x_want(w, "completions at the end", w->expected, atomic_read(&w->seen));
	x_want(w, "completions of nothing at the end", 0, atomic_read(&w->stray));
	x_want(w, "polling or arming a CQ until the end", 0, READ_ONCE(w->poll_error));
	x_want(w, "events of what is gone at the end", 0, atomic_read(&w->stray_events));
	return *w->why ? X_FAILED : X_DONE;
}
