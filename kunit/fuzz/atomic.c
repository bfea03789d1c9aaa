// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: atomic operations on words of a region of the peer.
 *
 * All regions of a device map the same pages, and so share the same words, which only
 * atomics change. So the model knows their values, and the value that each atomic returns.
 */
#include <linux/bitops.h>

#include "fuzz/fuzz.h"

/* There are few operands, so that a compare value often equals the word. */
#define X_OPERANDS	4

static u64 *word_at(struct x_world *w, int dev, int word)
{
	return (u64 *)(w->buf[dev] + X_PAGES_AT + X_WORDS_AT) + word;
}

/* Zeroes all words at the start of a world. */
void x_clear_words(struct x_world *w)
{
	int dev;

	for (dev = 0; dev < X_DEVS; dev++) {
		memset(word_at(w, dev, 0), 0, sizeof(w->word[dev]));
		memset(w->word[dev], 0, sizeof(w->word[dev]));
	}
}

/*
 * Draws a word; rarely an invalid one: -1, which is misaligned, or X_WORDS, which is behind
 * the end of the region. The latter only for an atomic that is executed at once, since the
 * region may be mapped larger later.
 */
static int which_word(u32 r, bool at_once)
{
	int bad = r >> 1 & 63;

	if (!bad)
		return -1;
	return bad == 1 && at_once ? X_WORDS : r >> 7 & (X_WORDS - 1);
}

static u64 address_of(const struct x_world *w, const struct x_wr *wr)
{
	const struct ib_mr *mr = w->ptr[X_MR][wr->mr];

	if (wr->word == X_WORDS)
		return mr->iova + w->mr[wr->mr].mapped;
	return mr->iova + X_WORDS_AT + (wr->word < 0 ? 4 : wr->word * sizeof(u64));
}

static void build_atomic(struct x_world *w, const struct x_op *op, struct x_wr *wr,
			 struct ib_sge *sge, u32 r)
{
	bool at_once = x_executes(&w->qp[op->a]);

	wr->mr = op->b % 3;
	wr->key = w->mr[wr->mr].key;
	wr->word = which_word(r, at_once);
	wr->swaps = r & 1;
	wr->payload = r >> 10 & (X_OPERANDS - 1);
	wr->operand = r >> 12 & (X_OPERANDS - 1);
	if (!(r >> 14 & 63)) {
		wr->bad_key = true;
		sge->lkey = 0xffffff00;
	}
}

static enum x_verdict post_atomic(struct x_world *w, const struct x_op *op, u32 r, int may)
{
	struct x_qp *qp = &w->qp[op->a];
	struct ib_atomic_wr atomic = {};
	struct ib_sge sge;
	struct x_wr *wr;
	u32 room;

	if (x_settle(w) || x_make_room(w, &qp->sq, 1, &room))
		return X_FAILED;
	wr = x_new_wr(w, &qp->sq, 0, X_ATOMIC, &sge, sizeof(u64));
	build_atomic(w, op, wr, &sge, r);
	if (may && qp->type == IB_QPT_RC)
		sge.length = sizeof(u32);
	atomic.wr.opcode = wr->swaps ? IB_WR_ATOMIC_CMP_AND_SWP : IB_WR_ATOMIC_FETCH_AND_ADD;
	atomic.wr.sg_list = &sge;
	atomic.wr.num_sge = 1;
	atomic.remote_addr = address_of(w, wr);
	atomic.rkey = ((struct ib_mr *)w->ptr[X_MR][wr->mr])->rkey;
	atomic.compare_add = wr->operand;
	atomic.swap = wr->payload;
	return x_post_one(w, op->a, &atomic.wr, wr, may ?: room ? 0 : -ENOMEM);
}

/* Posts up to four atomics, each a compare-and-swap or a fetch-and-add, until one fails. */
static enum x_verdict post_atomics(struct x_world *w, const struct x_op *op)
{
	u32 n = 1 + (op->c & 3), r = op->r;

	do {
		if (post_atomic(w, op, r, 0))
			return X_FAILED;
		r = ror32(r, 7);
	} while (--n && w->qp[op->a].state == IB_QPS_RTS);
	return X_DONE;
}

enum x_verdict x_atomic(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a], *peer;
	bool often = op->r % 8;
	int mr = op->b % 3;

	if (!xm_there(w, X_MR, mr) || !w->mr[mr].mapped)
		return X_SKIPPED;
	/* Atomics need an RC QP: posting one to a UC QP must fail. */
	if (xm_there(w, X_QP, op->a) && qp->type == IB_QPT_UC && x_may_send(qp))
		return often ? X_SKIPPED : post_atomic(w, op, op->r, -EINVAL);
	peer = x_responder(w, op);
	/* The same key may be valid on both devices; an invalid one is used only rarely. */
	if (!peer || xm_dev(w, X_MR, mr) != xm_dev(w, X_QP, peer - w->qp) ||
	    (!w->mr[mr].valid && often))
		return X_SKIPPED;
	return op->c == 15 ? post_atomic(w, op, op->r, -EINVAL) : post_atomics(w, op);
}
