// SPDX-License-Identifier: GPL-2.0-only
/*
 * plain=1: the messages of a pair as an ordinary ULP posts them, see plain.h. The memory
 * is filled before the run, each slot of the sender with a pattern of its own, and each
 * slot that was written to is checked after it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>

#include "pingpong.h"

static void pp_plain_over(struct plain *p)
{
	pp_end_done(container_of(p, struct pp_pair, plain)->run);
}

static void pp_plain_wrong(struct plain *p, const struct ib_wc *wc)
{
	struct pp_run *run = container_of(p, struct pp_pair, plain)->run;

	if (!wc)
		pp_give_up(run, "ib_post_send", "refused");
	else if (wc->status != IB_WC_SUCCESS)
		pp_wc_bad(run, "completion", wc);
	else
		pp_give_up(run, "receive", "of another length, or not posted again");
}

static u64 pp_plain_word(const struct pp_pair *pair, u32 i)
{
	return pair->base + pp_base(i % pair->run->p.window);
}

static void pp_plain_fill(struct pp_run *run, struct pp_pair *pair)
{
	const struct pp_slot *slot;
	u32 i;

	for (i = 0; i < run->p.window; i++) {
		slot = &pair->fill[i];
		pp_fill(run->fill_layout, slot->va, pp_plain_word(pair, i));
		ib_dma_sync_single_for_device(run->fill_dev, slot->dma,
					      run->fill_layout->stride, DMA_TO_DEVICE);
	}
}

/**
 * pp_plain_init - prepare the requests of a pair
 * @run: the run
 * @pair: the pair, connected, with memory and remote keys
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int pp_plain_init(struct pp_run *run, struct pp_pair *pair)
{
	static const enum ib_wr_opcode opcodes[] = {
		[PP_SEND] = IB_WR_SEND,
		[PP_WRITE] = IB_WR_RDMA_WRITE,
		[PP_READ] = IB_WR_RDMA_READ,
	};
	const struct pp_slot *from = pair->end[PP_INITIATOR].buf.slot;
	const struct pp_slot *to = pair->end[PP_TARGET].buf.slot;
	struct plain *p = &pair->plain;
	u32 i;

	p->tx = kvcalloc(run->slots, sizeof(*p->tx), GFP_KERNEL);
	p->rx = kvcalloc(run->slots, sizeof(*p->rx), GFP_KERNEL);
	if (!p->tx || !p->rx)
		return -ENOMEM;
	p->from = pair->end[PP_INITIATOR].qp;
	p->to = pair->end[PP_TARGET].qp;
	p->srq = pair->srq;
	p->opcode = opcodes[run->op];
	p->size = run->p.size;
	p->window = run->p.window;
	p->iters = run->p.iters;
	p->tx_lkey = run->side[PP_INITIATOR].pd->local_dma_lkey;
	p->rx_lkey = run->side[PP_TARGET].pd->local_dma_lkey;
	p->receives = run->two_sided ? run->slots : 0;
	p->over = pp_plain_over;
	p->wrong = pp_plain_wrong;
	for (i = 0; i < run->slots; i++) {
		p->tx[i].addr = from[i].dma;
		p->tx[i].remote_addr = to[i].dma;
		p->tx[i].rkey = to[i].rkey;
		p->rx[i].addr = to[i].dma;
	}
	pp_plain_fill(run, pair);
	return 0;
}

/**
 * pp_plain_free - free what pp_plain_init() allocated
 * @pair: the pair, drained or never started
 */
void pp_plain_free(struct pp_pair *pair)
{
	kvfree(pair->plain.tx);
	kvfree(pair->plain.rx);
	pair->plain.tx = NULL;
	pair->plain.rx = NULL;
}

/**
 * pp_plain_listen - post all receive requests of a pair
 * @pair: connected
 *
 * Return: 0 or the error of the post.
 */
int pp_plain_listen(struct pp_pair *pair)
{
	return plain_listen(&pair->plain);
}

/**
 * pp_plain_start - post the first message of a pair
 * @pair: the pair, listening
 *
 * Its completion fills the window.
 */
void pp_plain_start(struct pp_pair *pair)
{
	plain_start(&pair->plain);
}

/**
 * pp_plain_check - check the memory that the messages of a pair have written
 * @pair: a pair of a run that has ended without error
 *
 * Context: any.
 * Return: number of slots that hold what they should.
 */
u32 pp_plain_check(struct pp_pair *pair)
{
	struct pp_run *run = pair->run;
	const struct pp_slot *slot;
	u32 i, right = 0;

	for (i = 0; i < min(run->slots, run->p.iters); i++) {
		slot = &pair->check[i];
		ib_dma_sync_single_for_cpu(run->check_dev, slot->dma,
					   run->check_layout->stride, DMA_FROM_DEVICE);
		if (pp_check(run->check_layout, slot->va, pp_plain_word(pair, i)))
			right++;
		else
			pp_corrupt(run, i, "data differs in this slot");
	}
	return right;
}
