// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hot path: everything that happens for each message.
 *
 * Protocol. A pair has no lock.
 *  - The sender's fields belong to the context that runs pp_pump(): the run
 *    itself for the first batch, then the initiator's completions, which its CQ
 *    serialises. A context other than these completions hands the fields over
 *    with ib_post_send() and touches nothing of the sender afterwards.
 *  - The receiver's fields belong to the target's completions.
 *  - 'recycled' counts receive requests that were posted again; the receiver
 *    writes it, and it lets the sender proceed, so that a message always finds a
 *    request and no RNR NAK is needed.
 *  - A sender that lacks receive requests and awaits no completion gives its
 *    fields away through 'stalled'. The side that takes 'stalled' back with
 *    xchg(), sender or receiver, is the owner. The store of 'stalled' before the
 *    read of 'recycled' in pp_stall() pairs with the store of 'recycled' before
 *    the read of 'stalled' in pp_recycle(): a full barrier stands between them
 *    on both sides, so at least one of the two sees the other.
 *
 * Code that runs once per batch is kept out of line, away from code that runs
 * per message: the latter checks and counts a completion, and the count tells
 * when there is more to do (tx_wake, rx_wake). Runs that handle each message
 * (run->touch) have their own done handlers.
 *
 * Work requests are built once and linked in a circle. Posting n of them cuts
 * the circle behind the n-th; the cut is closed before the next cut.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/printk.h>
#include <linux/slab.h>

#include "mark.h"
#include "pingpong.h"

/**
 * pp_give_up - handle an error that makes it pointless to go on
 * @run: the run
 * @what: what went wrong
 * @why: and how
 *
 * Context: any.
 */
noinline void pp_give_up(struct pp_run *run, const char *what, const char *why)
{
	atomic64_inc(&run->errors);
	if (pp_run_first_report(run, PP_SAID_STATUS))
		pr_err("%s: %s\n", what, why);
	pp_run_stop(run, -EIO);
}

/**
 * pp_wc_bad - handle a completion in error
 * @run: the run
 * @what: kind of completion
 * @wc: the completion
 *
 * Requests that are flushed because the run ends do not count as errors.
 *
 * Context: any.
 */
noinline void pp_wc_bad(struct pp_run *run, const char *what, const struct ib_wc *wc)
{
	if (wc->status == IB_WC_WR_FLUSH_ERR && READ_ONCE(run->err))
		return;
	pp_give_up(run, what, ib_wc_status_msg(wc->status));
}

/**
 * pp_corrupt - handle a message that is not what was sent
 * @run: the run
 * @seq: number of the message
 * @how: what is wrong with it
 *
 * Context: any.
 */
noinline void pp_corrupt(struct pp_run *run, u32 seq, const char *how)
{
	atomic64_inc(&run->errors);
	if (pp_run_first_report(run, PP_SAID_DATA))
		pr_err("message %u: %s\n", seq, how);
}

/**
 * pp_end_done - one end of a pair has received everything it expects
 * @run: the run, which is over with the last of them
 *
 * Context: any.
 */
void pp_end_done(struct pp_run *run)
{
	if (!atomic_dec_and_test(&run->busy))
		return;
	pp_mark(PP_MARK_END);
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
	u64 word = pair->base + pp_base(seq);
	struct pp_run *run = pair->run;
	const struct pp_layout *l = run->check_layout;
	bool right;

	ib_dma_sync_single_for_cpu(run->check_dev, slot->dma, l->stride,
				   DMA_FROM_DEVICE);
	/* The value of the counter before this message: each value occurs once. */
	if (run->op == PP_FETCH_ADD)
		right = *(u64 *)slot->va == word;
	else
		right = pp_check(l, slot->va, word);
	if (unlikely(!right))
		pp_corrupt(run, seq, "data differs");
	return right;
}

/* Fills in what cannot be built beforehand; pair->posted is the message's number. */
static void pp_touch(struct pp_pair *pair, u32 i, u64 now)
{
	struct pp_run *run = pair->run;
	struct pp_tx *tx = &pair->tx[i];

	if (run->p.verify && run->op != PP_FETCH_ADD)
		pp_fill_slot(pair, i);
	tx->stamp = now;
	if (run->two_sided)
		tx->wr.ex.imm_data = cpu_to_be32(pair->posted);
	if (++pair->unsignaled == run->p.sig ||
	    pair->posted + 1 == run->p.iters) {
		tx->covers = pair->unsignaled;
		tx->wr.send_flags = IB_SEND_SIGNALED;
		pair->unsignaled = 0;
	} else {
		tx->wr.send_flags = 0;
	}
}

static noinline void pp_touch_chain(struct pp_pair *pair, u32 n)
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
 * The caller owns the sender; unless it runs in one of the initiator's completions,
 * it loses ownership when it calls ib_post_send().
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
	last = &pair->tx[(next ?: run->slots) - 1].wr;
	pair->tx_cut->next = &first->wr;
	last->next = NULL;
	pair->tx_cut = last;
	pair->tx_head = next;
	pair->tx_wake = pair->completed + 1;

	if (unlikely(ib_post_send(pair->end[PP_INITIATOR].qp, &first->wr,
				  &bad)))
		pp_give_up(run, "ib_post_send", "refused");
}

/* Returns the number of messages that have a receive request waiting for them. */
static u32 pp_credits(const struct pp_pair *pair)
{
	/* Pairs with the release in pp_recycle(): the requests are posted. */
	return smp_load_acquire(&pair->recycled) + pair->run->slots -
	       pair->posted;
}

/*
 * No further completion will run the sender. Leave the sender to the receiver,
 * unless the receiver has just made room. Returns true if the caller still owns the
 * sender.
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

/* Nothing is to be done until @until messages are complete. */
static void pp_doze(struct pp_pair *pair, u32 until)
{
	/* Those that are not signaled complete with a later one. */
	pair->tx_wake = min(until, pair->posted - pair->unsignaled);
}

/*
 * Post one batch if the window has room for it. If no signaled message is
 * outstanding, nothing will run the sender again, so the chain must contain one, or
 * wait for room through pp_stall(). pp_batch_choose() ensures that the window always
 * has room for that. Returns true if a batch was posted.
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
	if (!todo || unlikely(READ_ONCE(run->err))) {
		pp_doze(pair, run->p.iters);
		return false;
	}
	if (outstanding > run->p.window - need) {
		pp_doze(pair, pair->posted + need - run->p.window);
		return false;
	}
	if (run->two_sided && unlikely(pp_credits(pair) < need)) {
		if (!silent) {
			pp_doze(pair, pair->completed + run->p.batch);
			return false;
		}
		if (!pp_stall(pair, need))
			return false;
	}
	pp_post(pair, need);
	return true;
}

/* Called when pair->tx_wake messages are complete. */
static noinline void pp_sent_enough(struct pp_pair *pair)
{
	if (unlikely(pair->completed == pair->run->p.iters))
		pp_end_done(pair->run);
	else
		while (pp_pump(pair))
			;
}

static __always_inline void pp_sent_count(struct pp_pair *pair, u32 n)
{
	u32 completed = pair->completed + n;

	WRITE_ONCE(pair->completed, completed);
	if (completed >= pair->tx_wake)
		pp_sent_enough(pair);
}

static noinline void pp_sent_wrong(struct pp_run *run, const struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS)
		pp_wc_bad(run, "send completion", wc);
	else
		pp_give_up(run, "send completion", "out of order");
}

/* Messages are only required to complete, one by one. */
static void pp_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct pp_tx *tx = container_of(wc->wr_cqe, struct pp_tx, cqe);
	struct pp_pair *pair = cq->cq_context;

	if (unlikely(wc->status != IB_WC_SUCCESS || tx != pair->tx_due)) {
		pp_sent_wrong(pair->run, wc);
		return;
	}
	pair->tx_due = tx->next;
	pp_sent_count(pair, 1);
}

/* Messages are measured or checked, or one completion stands for several. */
static void pp_sent_touch(struct ib_cq *cq, struct ib_wc *wc)
{
	struct pp_tx *tx = container_of(wc->wr_cqe, struct pp_tx, cqe);
	struct pp_pair *pair = cq->cq_context;
	struct pp_run *run = pair->run;
	bool check = run->p.verify && !run->two_sided;
	struct pp_tx *last, *next = pair->tx_due;
	u32 n = 0;

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		pp_sent_wrong(run, wc);
		return;
	}
	if (run->p.lat)
		pp_hist_add(pair->hist, ktime_get_ns() - tx->stamp);

	do {
		last = next;
		if (check)
			pair->tx_verified += pp_check_slot(pair, last - pair->tx,
							   pair->completed + n);
		next = last->next;
	} while (++n < tx->covers);
	if (unlikely(last != tx)) {
		pp_sent_wrong(run, wc);
		return;
	}
	pair->tx_due = next;
	pp_sent_count(pair, n);
}

/* Post the spent receive requests again and let the sender know. */
static void pp_recycle(struct pp_pair *pair, struct pp_rx *last)
{
	struct pp_rx *first = pair->rx_first;
	const struct ib_recv_wr *bad;

	pair->rx_cut->next = &first->wr;
	last->wr.next = NULL;
	pair->rx_cut = &last->wr;
	pair->rx_first = last->next;
	if (unlikely(ib_post_recv(pair->end[PP_TARGET].qp, &first->wr,
				  &bad))) {
		pp_give_up(pair->run, "ib_post_recv", "refused");
		return;
	}
	/* Pairs with the acquire in pp_credits(). */
	smp_store_release(&pair->recycled, pair->received);

	/* Pairs with the barrier in pp_stall(). */
	smp_mb();
	if (unlikely(READ_ONCE(pair->stalled)) && xchg(&pair->stalled, 0))
		pp_pump(pair);
}

static void pp_rx_doze(struct pp_pair *pair)
{
	pair->rx_wake = min(pair->recycled + pair->run->p.batch,
			    pair->run->p.iters);
}

/* Called when pair->rx_wake messages have arrived; @rx is the last one. */
static noinline void pp_received_enough(struct pp_pair *pair, struct pp_rx *rx)
{
	struct pp_run *run = pair->run;

	if (pair->received - pair->recycled >= run->p.batch &&
	    !READ_ONCE(run->err))
		pp_recycle(pair, rx);
	pp_rx_doze(pair);
	if (unlikely(pair->received == run->p.iters))
		pp_end_done(run);
}

static __always_inline void pp_received_count(struct pp_pair *pair,
					      struct pp_rx *rx)
{
	u32 received = pair->received + 1;

	pair->rx_due = rx->next;
	WRITE_ONCE(pair->received, received);
	if (received >= pair->rx_wake)
		pp_received_enough(pair, rx);
}

static noinline void pp_received_wrong(struct pp_run *run,
				       const struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS)
		pp_wc_bad(run, "receive completion", wc);
	else
		pp_give_up(run, "receive completion", "out of order");
}

/* The fields of the completion itself must be right as well. */
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

static noinline void pp_received_odd(struct pp_pair *pair, struct pp_rx *rx)
{
	pp_corrupt(pair->run, pair->received, "wrong length or immediate");
	pp_received_count(pair, rx);
}

/* A plain SEND whose bytes are not checked. */
static void pp_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct pp_rx *rx = container_of(wc->wr_cqe, struct pp_rx, cqe);
	struct pp_pair *pair = cq->cq_context;

	if (unlikely(wc->status != IB_WC_SUCCESS || rx != pair->rx_due)) {
		pp_received_wrong(pair->run, wc);
		return;
	}
	if (unlikely(wc->byte_len != pair->run->p.size ||
		     (wc->wc_flags & IB_WC_WITH_IMM))) {
		pp_received_odd(pair, rx);
		return;
	}
	pp_received_count(pair, rx);
}

static void pp_received_touch(struct ib_cq *cq, struct ib_wc *wc)
{
	struct pp_rx *rx = container_of(wc->wr_cqe, struct pp_rx, cqe);
	struct pp_pair *pair = cq->cq_context;
	struct pp_run *run = pair->run;

	if (unlikely(wc->status != IB_WC_SUCCESS || rx != pair->rx_due)) {
		pp_received_wrong(run, wc);
		return;
	}
	if (unlikely(!pp_wc_as_expected(pair, wc)))
		pp_corrupt(run, pair->received, "wrong length or immediate");
	if (run->p.verify)
		pair->rx_verified += pp_check_slot(pair, rx - pair->rx,
						   pair->received);
	pp_received_count(pair, rx);
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
	case PP_FETCH_ADD:
		return IB_WR_ATOMIC_FETCH_AND_ADD;
	default:
		return IB_WR_SEND;
	}
}

/* The target of every atomic operation of a pair. */
static const struct pp_slot *pp_counter(const struct pp_pair *pair)
{
	return &pair->end[PP_TARGET].buf.slot[0];
}

/*
 * The counter goes up from pair->base in steps of PP_SEQ_STEP, so that the value
 * that a message finds there equals the first word of the pattern of the message
 * with that number.
 */
static void pp_atomic_init(const struct pp_pair *pair, struct pp_tx *tx)
{
	const struct pp_slot *counter = pp_counter(pair);

	tx->atomic.remote_addr = counter->dma;
	tx->atomic.rkey = counter->rkey;
	tx->atomic.compare_add = pp_base(1);
}

static void pp_tx_init(struct pp_run *run, struct pp_pair *pair, u32 i)
{
	const struct pp_slot *local = &pair->end[PP_INITIATOR].buf.slot[i];
	const struct pp_slot *remote = &pair->end[PP_TARGET].buf.slot[i];
	struct pp_tx *tx = &pair->tx[i];

	tx->cqe.done = run->touch ? pp_sent_touch : pp_sent;
	tx->next = &pair->tx[i + 1 == run->slots ? 0 : i + 1];
	tx->covers = 1;
	tx->sge = &pair->sge_mem[PP_INITIATOR][i * run->p.sges];
	pp_sges_init(tx->sge, &run->scattered, local,
		     run->side[PP_INITIATOR].pd->local_dma_lkey);

	tx->wr.next = &tx->next->wr;
	tx->wr.wr_cqe = &tx->cqe;
	tx->wr.sg_list = tx->sge;
	tx->wr.num_sge = run->scattered.nseg;
	tx->wr.opcode = pp_opcode(run->op);
	tx->wr.send_flags = IB_SEND_SIGNALED;
	if (run->op == PP_FETCH_ADD) {
		pp_atomic_init(pair, tx);
		return;
	}
	tx->rdma.remote_addr = remote->dma;
	tx->rdma.rkey = remote->rkey;
}

static void pp_rx_init(struct pp_run *run, struct pp_pair *pair, u32 i)
{
	struct pp_rx *rx = &pair->rx[i];

	rx->cqe.done = run->touch ? pp_received_touch : pp_received;
	rx->next = &pair->rx[i + 1 == run->slots ? 0 : i + 1];
	rx->wr.next = &rx->next->wr;
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

static void pp_counter_init(const struct pp_pair *pair)
{
	const struct pp_slot *counter = pp_counter(pair);

	*(u64 *)counter->va = pair->base;
	ib_dma_sync_single_for_device(pair->run->fill_dev, counter->dma,
				      sizeof(u64), DMA_BIDIRECTIONAL);
}

/**
 * pp_traffic_init - build the work requests of a pair
 * @run: the run
 * @pair: the pair, connected, with memory and remote keys
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int pp_traffic_init(struct pp_run *run, struct pp_pair *pair)
{
	bool fetch = run->op == PP_READ || run->op == PP_FETCH_ADD;
	u32 i;

	if (pp_traffic_alloc(run, pair))
		return -ENOMEM;
	pair->fill = pair->end[fetch ? PP_TARGET : PP_INITIATOR].buf.slot;
	pair->check = pair->end[fetch ? PP_INITIATOR : PP_TARGET].buf.slot;
	if (run->p.plain)
		return pp_plain_init(run, pair);
	for (i = 0; i < run->slots; i++) {
		pp_tx_init(run, pair, i);
		pp_rx_init(run, pair, i);
	}
	pair->tx_due = pair->tx;
	pair->tx_cut = &pair->tx[run->slots - 1].wr;
	pair->rx_due = pair->rx;
	pair->rx_first = pair->rx;
	pair->rx_cut = &pair->rx[run->slots - 1].wr;
	pp_rx_doze(pair);
	if (run->op == PP_FETCH_ADD)
		pp_counter_init(pair);
	return 0;
}

/**
 * pp_traffic_free - free what pp_traffic_init() allocated
 * @pair: the pair, drained or never started
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
	pp_plain_free(pair);
	pair->hist = NULL;
	pair->rx = NULL;
	pair->tx = NULL;
}

/**
 * pp_traffic_listen - post all receive requests of a pair
 * @pair: connected
 *
 * Return: 0 or the error of ib_post_recv().
 */
int pp_traffic_listen(struct pp_pair *pair)
{
	const struct ib_recv_wr *bad;

	if (!pair->run->two_sided)
		return 0;
	if (pair->run->p.plain)
		return pp_plain_listen(pair);
	pair->rx_cut->next = NULL;
	return ib_post_recv(pair->end[PP_TARGET].qp, &pair->rx[0].wr, &bad);
}

/**
 * pp_traffic_start - post the first batch of a pair
 * @pair: the pair, listening
 *
 * Everything else happens in completions, which fill the window first.
 */
void pp_traffic_start(struct pp_pair *pair)
{
	if (pair->run->p.plain)
		pp_plain_start(pair);
	else
		pp_pump(pair);
}

/**
 * pp_traffic_copy - have the CPU copy all messages of a pair
 * @pair: the pair, set up
 *
 * It copies from and to the same memory as a write does, but uses no queue pair. The
 * difference is what the device adds to moving bytes.
 *
 * Context: may sleep.
 */
void pp_traffic_copy(struct pp_pair *pair)
{
	const struct pp_slot *from = pair->end[PP_INITIATOR].buf.slot;
	const struct pp_slot *to = pair->end[PP_TARGET].buf.slot;
	struct pp_run *run = pair->run;
	u32 i = 0;

	while (pair->posted < run->p.iters && !READ_ONCE(run->err)) {
		if (run->p.verify)
			pp_fill_slot(pair, i);
		memcpy(to[i].va, from[i].va, run->p.size);
		if (run->p.verify)
			pair->tx_verified += pp_check_slot(pair, i,
							   pair->posted);
		pair->posted++;
		WRITE_ONCE(pair->completed, pair->posted);
		if (++i == run->slots)
			i = 0;
		cond_resched();
	}
	pp_end_done(run);
}

/**
 * pp_traffic_sum_right - check that a pair's counter has its expected value
 * @pair: a pair of a fetch_add run that has ended without error
 *
 * Context: any.
 * Return: true if every message has added to the counter exactly once.
 */
bool pp_traffic_sum_right(const struct pp_pair *pair)
{
	const struct pp_slot *counter = pp_counter(pair);

	ib_dma_sync_single_for_cpu(pair->run->fill_dev, counter->dma,
				   sizeof(u64), DMA_BIDIRECTIONAL);
	return *(u64 *)counter->va == pair->base + pp_base(pair->completed);
}
