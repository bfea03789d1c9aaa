// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hot path: everything that happens for each message.
 *
 * Protocol. A pair has no lock.
 *  - The sender's fields belong to whoever runs pp_pump(): the run itself for
 *    the first batch, then the initiator's completions, which its CQ
 *    serialises. To others than these, ib_post_send() is the hand-over:
 *    nothing of the sender is touched after it.
 *  - The receiver's fields belong to the target's completions.
 *  - 'recycled' counts receive requests that were posted again; it is written
 *    by the receiver and lets the sender on, so that a message always finds a
 *    request and no RNR NAK is needed.
 *  - A sender that lacks receive requests and awaits no completion gives its
 *    fields away through 'stalled'. Whoever takes it back by xchg(),
 *    sender or receiver, is the owner. The store of 'stalled' before the read
 *    of 'recycled' in pp_stall() pairs with the store of 'recycled' before
 *    the read of 'stalled' in pp_recycle(): a full barrier stands between
 *    them on both sides, so at least one of the two sees the other.
 *
 * What runs once a batch is kept out of line, away from what runs per message.
 * Work requests are built once and linked in a circle. Posting n of them cuts
 * the circle behind the n-th; the cut is closed before the next one is made.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/slab.h>

#include "pingpong.h"

/* Something is wrong that makes going on pointless. */
static noinline void pp_give_up(struct pp_run *run, const char *what,
				const char *why)
{
	atomic64_inc(&run->errors);
	if (pp_run_first_report(run, PP_SAID_STATUS))
		pr_err("%s: %s\n", what, why);
	pp_run_stop(run, -EIO);
}

/* Requests that are flushed because the run ends are no errors. */
static noinline void pp_wc_bad(struct pp_run *run, const char *what,
			       const struct ib_wc *wc)
{
	if (wc->status == IB_WC_WR_FLUSH_ERR && READ_ONCE(run->err))
		return;
	pp_give_up(run, what, ib_wc_status_msg(wc->status));
}

static noinline void pp_corrupt(struct pp_run *run, u32 seq, const char *how)
{
	atomic64_inc(&run->errors);
	if (pp_run_first_report(run, PP_SAID_DATA))
		pr_err("message %u: %s\n", seq, how);
}

/* An end of a pair has got all it expects. */
static void pp_end_done(struct pp_run *run)
{
	if (!atomic_dec_and_test(&run->busy))
		return;
	run->end = ktime_get_ns();
	complete_all(&run->done);
}

static void pp_fill_slot(struct pp_pair *pair, u32 i)
{
	const struct pp_slot *slot = &pair->fill[i];
	struct pp_run *run = pair->run;
	const struct pp_layout *l = run->fill_layout;

	pp_fill(l, slot->va, pair->base + pp_base(pair->posted));
	ib_dma_sync_single_for_device(run->fill_dev, slot->dma, l->stride,
				      DMA_TO_DEVICE);
}

static bool pp_check_slot(struct pp_pair *pair, u32 i, u32 seq)
{
	const struct pp_slot *slot = &pair->check[i];
	struct pp_run *run = pair->run;
	const struct pp_layout *l = run->check_layout;

	ib_dma_sync_single_for_cpu(run->check_dev, slot->dma, l->stride,
				   DMA_FROM_DEVICE);
	if (likely(pp_check(l, slot->va, pair->base + pp_base(seq))))
		return true;
	pp_corrupt(run, seq, "data differs");
	return false;
}

/* What cannot be built beforehand; pair->posted is the message's number. */
static void pp_touch(struct pp_pair *pair, u32 i, u64 now)
{
	struct pp_run *run = pair->run;
	struct pp_tx *tx = &pair->tx[i];

	if (run->p.verify)
		pp_fill_slot(pair, i);
	tx->stamp = now;
	tx->wr.wr.ex.imm_data = cpu_to_be32(pair->posted);
	if (++pair->unsignaled == run->p.sig ||
	    pair->posted + 1 == run->p.iters) {
		tx->covers = pair->unsignaled;
		tx->wr.wr.send_flags = IB_SEND_SIGNALED;
		pair->unsignaled = 0;
	} else {
		tx->wr.wr.send_flags = 0;
	}
}

static void pp_touch_chain(struct pp_pair *pair, u32 n)
{
	u32 slots = pair->run->slots;
	u64 now = pair->run->p.lat ? ktime_get_ns() : 0;
	u32 i = pair->tx_head;

	for (; n; n--) {
		pp_touch(pair, i, now);
		pair->posted++;
		if (++i == slots)
			i = 0;
	}
}

/*
 * The caller owns the sender; unless it is one of the initiator's completions
 * it is the owner no longer when ib_post_send() is called.
 */
static noinline void pp_post(struct pp_pair *pair, u32 n)
{
	struct pp_run *run = pair->run;
	struct pp_tx *first = &pair->tx[pair->tx_head];
	const struct ib_send_wr *bad;
	struct ib_send_wr *last;
	u32 next = pair->tx_head + n;

	if (run->touch)
		pp_touch_chain(pair, n);
	else
		pair->posted += n;

	if (next >= run->slots)
		next -= run->slots;
	last = &pair->tx[(next ?: run->slots) - 1].wr.wr;
	pair->tx_cut->next = &pair->tx[pair->tx_head].wr.wr;
	last->next = NULL;
	pair->tx_cut = last;
	pair->tx_head = next;

	if (unlikely(ib_post_send(pair->end[PP_INITIATOR].qp, &first->wr.wr,
				  &bad)))
		pp_give_up(run, "ib_post_send", "refused");
}

/* Messages that have a receive request waiting for them. */
static u32 pp_credits(const struct pp_pair *pair)
{
	/* Pairs with the release in pp_recycle(): the requests are posted. */
	return smp_load_acquire(&pair->recycled) + pair->run->slots -
	       pair->posted;
}

/*
 * No completion will call again. Leave the sender to the receiver, unless that
 * has just made room.
 * Returns true if the caller still owns the sender.
 */
static bool pp_stall(struct pp_pair *pair, u32 need)
{
	u32 enough = pair->posted + need - pair->run->slots;

	WRITE_ONCE(pair->stalled, 1);
	/* Pairs with the barrier in pp_recycle(). */
	smp_mb();
	if ((s32)(READ_ONCE(pair->recycled) - enough) < 0)
		return false;
	return xchg(&pair->stalled, 0);
}

/*
 * Post one batch if the window has room for it. If no signaled message is
 * outstanding nothing will call again, so the chain must have one, or wait for
 * room through pp_stall(). pp_batch_choose() sees to it that the window always
 * has place for that.
 * Returns true if a batch was posted.
 */
static bool pp_pump(struct pp_pair *pair)
{
	struct pp_run *run = pair->run;
	u32 todo = run->p.iters - pair->posted;
	u32 outstanding = pair->posted - pair->completed;
	bool silent = outstanding == pair->unsignaled;
	u32 need = silent ? max(run->p.batch, run->p.sig - outstanding) :
			    run->p.batch;

	need = min(need, todo);
	if (outstanding > run->p.window - need || !todo ||
	    unlikely(READ_ONCE(run->err)))
		return false;
	if (run->two_sided && unlikely(pp_credits(pair) < need) &&
	    (!silent || !pp_stall(pair, need)))
		return false;
	pp_post(pair, need);
	return true;
}

static void pp_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct pp_tx *tx = container_of(wc->wr_cqe, struct pp_tx, cqe);
	struct pp_pair *pair = cq->cq_context;
	struct pp_run *run = pair->run;
	u32 i = pair->tx_tail, left = tx->covers;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		pp_wc_bad(run, "send completion", wc);
		return;
	}
	if (run->p.lat)
		pp_hist_add(pair->hist, ktime_get_ns() - tx->stamp);

	for (;;) {
		if (!run->two_sided && run->p.verify)
			pair->tx_verified += pp_check_slot(pair, i,
							   pair->completed);
		WRITE_ONCE(pair->completed, pair->completed + 1);
		if (!--left)
			break;
		if (++i == run->slots)
			i = 0;
	}
	if (unlikely(tx != &pair->tx[i])) {
		pp_give_up(run, "send completion", "out of order");
		return;
	}
	pair->tx_tail = i + 1 == run->slots ? 0 : i + 1;

	if (unlikely(pair->completed == run->p.iters))
		pp_end_done(run);
	else
		while (pair->posted - pair->completed <= run->room &&
		       pp_pump(pair))
			;
}

/* Post the spent receive requests again and let the sender know. */
static noinline void pp_recycle(struct pp_pair *pair)
{
	struct pp_rx *first = &pair->rx[pair->rx_first];
	struct pp_rx *last = &pair->rx[(pair->rx_next ?:
					pair->run->slots) - 1];
	const struct ib_recv_wr *bad;

	pair->rx_cut->next = &first->wr;
	last->wr.next = NULL;
	pair->rx_cut = &last->wr;
	if (unlikely(ib_post_recv(pair->end[PP_TARGET].qp, &first->wr,
				  &bad))) {
		pp_give_up(pair->run, "ib_post_recv", "refused");
		return;
	}
	/* Pairs with the acquire in pp_credits(). */
	smp_store_release(&pair->recycled, pair->recycled + pair->rx_spent);
	pair->rx_first = pair->rx_next;
	pair->rx_spent = 0;

	/* Pairs with the barrier in pp_stall(). */
	smp_mb();
	if (unlikely(READ_ONCE(pair->stalled)) && xchg(&pair->stalled, 0))
		pp_pump(pair);
}

/* What the completion itself tells must be right as well. */
static bool pp_wc_as_expected(const struct pp_pair *pair,
			      const struct ib_wc *wc)
{
	const struct pp_run *run = pair->run;

	if (wc->byte_len != run->p.size)
		return false;
	if (run->op == PP_SEND)
		return !(wc->wc_flags & IB_WC_WITH_IMM);
	return (wc->wc_flags & IB_WC_WITH_IMM) &&
	       wc->ex.imm_data == cpu_to_be32(pair->received);
}

static void pp_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct pp_rx *rx = container_of(wc->wr_cqe, struct pp_rx, cqe);
	struct pp_pair *pair = cq->cq_context;
	struct pp_run *run = pair->run;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		pp_wc_bad(run, "receive completion", wc);
		return;
	}
	if (unlikely(rx != &pair->rx[pair->rx_next])) {
		pp_give_up(run, "receive completion", "out of order");
		return;
	}
	if (unlikely(!pp_wc_as_expected(pair, wc)))
		pp_corrupt(run, pair->received, "wrong length or immediate");
	if (run->p.verify)
		pair->rx_verified += pp_check_slot(pair, pair->rx_next,
						   pair->received);

	if (++pair->rx_next == run->slots)
		pair->rx_next = 0;
	WRITE_ONCE(pair->received, pair->received + 1);
	if (++pair->rx_spent == run->p.batch)
		pp_recycle(pair);
	if (unlikely(pair->received == run->p.iters))
		pp_end_done(run);
}

static void pp_sges_init(struct ib_sge *sge, const struct pp_layout *l,
			 const struct pp_slot *slot, u32 lkey)
{
	u32 i;

	for (i = 0; i < l->nseg; i++) {
		sge[i].addr = slot->dma + l->seg[i].place;
		sge[i].length = l->seg[i].len;
		sge[i].lkey = lkey;
	}
}

static enum ib_wr_opcode pp_opcode(enum pp_op op)
{
	switch (op) {
	case PP_SEND_IMM:
		return IB_WR_SEND_WITH_IMM;
	case PP_WRITE:
		return IB_WR_RDMA_WRITE;
	case PP_WRITE_IMM:
		return IB_WR_RDMA_WRITE_WITH_IMM;
	case PP_READ:
		return IB_WR_RDMA_READ;
	default:
		return IB_WR_SEND;
	}
}

static void pp_tx_init(struct pp_run *run, struct pp_pair *pair, u32 i)
{
	const struct pp_slot *local = &pair->end[PP_INITIATOR].buf.slot[i];
	const struct pp_slot *remote = &pair->end[PP_TARGET].buf.slot[i];
	struct pp_tx *tx = &pair->tx[i];

	tx->cqe.done = pp_sent;
	tx->covers = 1;
	tx->sge = &pair->sge_mem[PP_INITIATOR][i * run->p.sges];
	pp_sges_init(tx->sge, &run->scattered, local,
		     run->side[PP_INITIATOR].pd->local_dma_lkey);

	tx->wr.wr.next = &pair->tx[i + 1 == run->slots ? 0 : i + 1].wr.wr;
	tx->wr.wr.wr_cqe = &tx->cqe;
	tx->wr.wr.sg_list = tx->sge;
	tx->wr.wr.num_sge = run->scattered.nseg;
	tx->wr.wr.opcode = pp_opcode(run->op);
	tx->wr.wr.send_flags = IB_SEND_SIGNALED;
	tx->wr.remote_addr = remote->dma;
	tx->wr.rkey = remote->rkey;
}

static void pp_rx_init(struct pp_run *run, struct pp_pair *pair, u32 i)
{
	struct pp_rx *rx = &pair->rx[i];

	rx->cqe.done = pp_received;
	rx->wr.next = &pair->rx[i + 1 == run->slots ? 0 : i + 1].wr;
	rx->wr.wr_cqe = &rx->cqe;
	if (run->op == PP_WRITE_IMM)
		return;
	rx->sge = &pair->sge_mem[PP_TARGET][i * run->p.sges];
	pp_sges_init(rx->sge, &run->scattered,
		     &pair->end[PP_TARGET].buf.slot[i],
		     run->side[PP_TARGET].pd->local_dma_lkey);
	rx->wr.sg_list = rx->sge;
	rx->wr.num_sge = run->scattered.nseg;
}

static int pp_traffic_alloc(struct pp_run *run, struct pp_pair *pair)
{
	u32 i, sges = run->slots * run->p.sges;

	pair->tx = kvcalloc(run->slots, sizeof(*pair->tx), GFP_KERNEL);
	pair->rx = kvcalloc(run->slots, sizeof(*pair->rx), GFP_KERNEL);
	pair->hist = pp_hist_alloc();
	for (i = 0; i < PP_SIDES; i++)
		pair->sge_mem[i] = kvcalloc(sges, sizeof(struct ib_sge),
					    GFP_KERNEL);
	if (pair->tx && pair->rx && pair->hist &&
	    pair->sge_mem[PP_INITIATOR] && pair->sge_mem[PP_TARGET])
		return 0;
	pp_traffic_free(pair);
	return -ENOMEM;
}

/**
 * pp_traffic_init - build the work requests of a pair
 * @run: the run
 * @pair: connected, with memory and remote keys
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int pp_traffic_init(struct pp_run *run, struct pp_pair *pair)
{
	bool read = run->op == PP_READ;
	u32 i;

	if (pp_traffic_alloc(run, pair))
		return -ENOMEM;
	pair->fill = pair->end[read ? PP_TARGET : PP_INITIATOR].buf.slot;
	pair->check = pair->end[read ? PP_INITIATOR : PP_TARGET].buf.slot;
	for (i = 0; i < run->slots; i++) {
		pp_tx_init(run, pair, i);
		pp_rx_init(run, pair, i);
	}
	pair->tx_cut = &pair->tx[run->slots - 1].wr.wr;
	pair->rx_cut = &pair->rx[run->slots - 1].wr;
	return 0;
}

/**
 * pp_traffic_free - free what pp_traffic_init() allocated
 * @pair: drained, or never started
 */
void pp_traffic_free(struct pp_pair *pair)
{
	u32 i;

	for (i = 0; i < PP_SIDES; i++) {
		kvfree(pair->sge_mem[i]);
		pair->sge_mem[i] = NULL;
	}
	pp_hist_free(pair->hist);
	kvfree(pair->rx);
	kvfree(pair->tx);
	pair->hist = NULL;
	pair->rx = NULL;
	pair->tx = NULL;
}

/**
 * pp_traffic_listen - post all receive requests of a pair
 * @pair: connected
 *
 * Return: 0 or what ib_post_recv() returned.
 */
int pp_traffic_listen(struct pp_pair *pair)
{
	const struct ib_recv_wr *bad;

	if (!pair->run->two_sided)
		return 0;
	pair->rx_cut->next = NULL;
	return ib_post_recv(pair->end[PP_TARGET].qp, &pair->rx[0].wr, &bad);
}

/**
 * pp_traffic_start - post the first batch of a pair
 * @pair: listening
 *
 * All that follows happens in completions, which fill the window first.
 */
void pp_traffic_start(struct pp_pair *pair)
{
	pp_pump(pair);
}
