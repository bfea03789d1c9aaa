// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: WRs and their completions.
 *
 * Completions arrive in any context, while the thread goes on. record() stores what was
 * seen in the x_wr, changes its state from X_POSTED to X_COMPLETED, and counts it. x_settle()
 * waits until as many completions were counted as the model expects, and compares them. The
 * change of state and the counting are full barriers, so what was seen is visible then.
 */
#include "fuzz/fuzz.h"

/* Entries of one ib_poll_cq() call. */
#define X_POLL		8

static bool all_seen(struct x_world *w)
{
	return atomic_read(&w->seen) + atomic_read(&w->lost) >= READ_ONCE(w->expected);
}

static void count(struct x_world *w, atomic_t *what)
{
	/* Full barrier: pairs with wait_for_all(), after @expected was written. */
	atomic_inc_return(what);
	if (all_seen(w))
		wake_up(&w->wait);
}

static void record(struct x_wr *wr, struct ib_cq *cq, const struct ib_wc *wc)
{
	struct x_queue *q = wr->q;
	struct x_world *w = q->w;

	wr->status = wc->status;
	wr->len = wc->byte_len;
	wr->wc = (struct x_whence){
		.qp = wc->qp,
		.cq = cq,
		.opcode = wc->opcode,
		.flags = wc->wc_flags,
		.ex = wc->wc_flags & IB_WC_WITH_IMM ? be32_to_cpu(wc->ex.imm_data) :
						      wc->ex.invalidate_rkey,
		.src = wc->src_qp,
	};
	if (w->lie == X_LIE_CQ && wr->what == X_RECV && wc->qp->send_cq != cq)
		wr->wc.cq = wc->qp->send_cq;
	wr->wc.ex ^= w->lie == X_LIE_IMM;
	wr->order = atomic_inc_return(&q->order);
	if (atomic_cmpxchg(&wr->state, X_POSTED, X_COMPLETED) != X_POSTED)
		atomic_inc(&w->stray);
	count(w, &w->seen);
}

static void x_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct x_wr *wr = container_of(wc->wr_cqe, struct x_wr, cqe);
	enum x_lie lie = wr->q->w->lie;

	if (lie == X_LIE_LOST && wr->what == X_RECV && wc->status == IB_WC_WR_FLUSH_ERR) {
		count(wr->q->w, &wr->q->w->lost);
		return;
	}
	record(wr, cq, wc);
	if (lie == X_LIE_TWICE && wr->what == X_SEND && wc->status == IB_WC_SUCCESS)
		record(wr, cq, wc);
}

/* Polling and arming must not fail; the last error is kept for x_settle(). */
static int note_error(struct x_world *w, int ret)
{
	if (ret < 0)
		WRITE_ONCE(w->poll_error, ret);
	return ret;
}

static int poll_some(struct x_world *w, struct ib_cq *cq)
{
	struct ib_wc wc[X_POLL];
	int i, n = note_error(w, ib_poll_cq(cq, X_POLL, wc));

	if (w->lie == X_LIE_POLL)
		note_error(w, -EIO);
	for (i = 0; i < n; i++)
		wc[i].wr_cqe->done(cq, &wc[i]);
	return n;
}

/* Completion handler of X_CQ_HANDLER: polls until the CQ is empty, and arms it. */
void x_comp_handler(struct ib_cq *cq, void *context)
{
	int flags = IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS;
	struct x_world *w = context;

	do {
		while (poll_some(w, cq) > 0)
			;
	} while (note_error(w, ib_req_notify_cq(cq, flags)) > 0);
}

/* Polls the CQs that only the thread itself polls. */
void x_poll_all(struct x_world *w)
{
	int i;

	for (i = 0; i < X_SLOTS; i++) {
		if (!xm_there(w, X_CQ, i))
			continue;
		if (w->cq_how[i] == X_CQ_DIRECT)
			note_error(w, ib_process_cq_direct(w->ptr[X_CQ][i], -1));
		else if (w->cq_how[i] == X_CQ_POLLED)
			while (poll_some(w, w->ptr[X_CQ][i]) > 0)
				;
	}
}

static bool polls_itself(const struct x_world *w)
{
	int i;

	for (i = 0; i < X_SLOTS; i++) {
		if (xm_there(w, X_CQ, i) && w->obj[X_CQ][i].users &&
		    (w->cq_how[i] == X_CQ_DIRECT || w->cq_how[i] == X_CQ_POLLED))
			return true;
	}
	return false;
}

static void wait_for_all(struct x_world *w)
{
	u64 end = ktime_get_ns() + jiffies_to_nsecs(w->patience);

	/* Full barrier, with the loads that follow: pairs with count(). */
	smp_mb();
	if (!polls_itself(w)) {
		wait_event_timeout(w->wait, all_seen(w), w->patience);
		return;
	}
	do {
		x_poll_all(w);
		if (all_seen(w))
			return;
		cond_resched();
	} while (ktime_get_ns() < end);
}

static u64 received(struct x_world *w, const struct x_queue *q, u32 pos, u32 header)
{
	return *(u64 *)(w->buf[q->dev] + q->base + (pos % X_WRS) * X_BYTES + header);
}

static enum x_verdict check_receive(struct x_world *w, struct x_queue *q, u32 pos)
{
	struct x_wr *wr = xm_wr(q, pos);
	/* Messages are multiples of 16 bytes: any other length includes a datagram's GRH. */
	u32 header = wr->want_len % 16 ? X_GRH : 0;

	if (wr->len != wr->want_len)
		return x_want(w, "bytes received", wr->want_len, wr->len);
	if (wr->want_wc.flags & (IB_WC_WITH_IMM | IB_WC_WITH_INVALIDATE) &&
	    wr->wc.ex != wr->want_wc.ex)
		return x_want(w, "what comes with a message", wr->want_wc.ex, wr->wc.ex);
	if (header && wr->wc.src != wr->want_wc.src)
		return x_want(w, "sender of a datagram", wr->want_wc.src, wr->wc.src);
	if (wr->no_data)
		return X_DONE;
	if (received(w, q, pos, header) != wr->want_payload)
		return x_want(w, "message received", wr->want_payload, received(w, q, pos, header));
	return X_DONE;
}

/* A failed completion is compared by QP and CQ only; the rest is undefined. */
static enum x_verdict check_whence(struct x_world *w, const struct x_queue *q,
				   const struct x_wr *wr)
{
	const struct x_whence *want = &wr->want_wc, *saw = &wr->wc;

	if (saw->qp != want->qp)
		return x_fail(w, "a completion of the %s queue is another QP's", q->name);
	if (saw->cq != want->cq)
		return x_fail(w, "a completion of the %s queue comes from another CQ", q->name);
	if (wr->want != IB_WC_SUCCESS)
		return X_DONE;
	if (saw->opcode != want->opcode)
		return x_want(w, "opcode of a completion", want->opcode, saw->opcode);
	return x_want(w, "flags of a completion", want->flags, saw->flags);
}

static enum x_verdict check_wr(struct x_world *w, struct x_queue *q, u32 pos)
{
	struct x_wr *wr = xm_wr(q, pos);
	int state = atomic_xchg(&wr->state, X_IDLE);

	if (state != (wr->completes ? X_COMPLETED : X_POSTED))
		return x_fail(w, "%s request %u: %s completion", q->name, pos,
			      wr->completes ? "no" : "unexpected");
	if (!wr->completes)
		return X_DONE;
	if (wr->status != wr->want)
		return x_fail(w, "%s request %u: expected '%s', saw '%s'", q->name, pos,
			      ib_wc_status_msg(wr->want), ib_wc_status_msg(wr->status));
	if (!q->shared && wr->order != wr->want_order)
		return x_want(w, "order of completions", wr->want_order, wr->order);
	if (check_whence(w, q, wr))
		return X_FAILED;
	w->ended[wr->want]++;
	if (wr->what == X_RECV && wr->want == IB_WC_SUCCESS)
		return check_receive(w, q, pos);
	if (wr->want == IB_WC_SUCCESS &&
	    (wr->what == X_ATOMIC || (wr->what == X_READ && wr->user >= 0)))
		return x_want(w, "what was found there", wr->want_payload, received(w, q, pos, 0));
	return X_DONE;
}

static enum x_verdict check_queue(struct x_world *w, struct x_queue *q, bool sends)
{
	for (; q->checked != q->next; q->checked++) {
		if (check_wr(w, q, q->checked))
			return X_FAILED;
	}
	xm_queue_retire(q, sends);
	return X_DONE;
}

/* Waits for all completions that the model expects, and compares them with the model. */
enum x_verdict x_settle(struct x_world *w)
{
	int i, seen;

	if (!all_seen(w))
		wait_for_all(w);
	w->async = false;
	seen = atomic_read(&w->seen);
	if (seen != w->expected)
		return x_want(w, "completions", w->expected, seen);
	if (atomic_read(&w->stray))
		return x_want(w, "completions of nothing", 0, atomic_read(&w->stray));
	if (READ_ONCE(w->poll_error))
		return x_want(w, "polling or arming a CQ", 0, w->poll_error);
	for (i = 0; i < X_SLOTS; i++) {
		if (xm_there(w, X_QP, i) && (check_queue(w, &w->qp[i].sq, true) ||
					     check_queue(w, &w->qp[i].rq, false)))
			return X_FAILED;
		if (xm_there(w, X_SRQ, i) && check_queue(w, &w->srq[i], false))
			return X_FAILED;
	}
	return x_check_events(w);
}

enum x_verdict x_settle_if(struct x_world *w, bool needed)
{
	return needed ? x_settle(w) : X_DONE;
}

/* Sets up the WR @ahead places behind the head of the queue. */
struct x_wr *x_new_wr(struct x_world *w, struct x_queue *q, u32 ahead, enum x_what what,
		      struct ib_sge *sge, u32 bytes)
{
	u32 pos = q->head + ahead;
	struct x_wr *wr = xm_wr(q, pos);
	u32 offset = q->base + (pos % X_WRS) * X_BYTES;

	wr->cqe.done = x_done;
	wr->q = q;
	wr->what = what;
	wr->bytes = bytes;
	wr->signaled = true;
	wr->bad_key = false;
	wr->mr = -1;
	wr->mw = -1;
	wr->user = -1;
	wr->dest = -1;
	wr->imm = false;
	wr->inv = -1;
	wr->no_data = false;
	memset(&wr->want_wc, 0, sizeof(wr->want_wc));
	wr->ended = false;
	wr->payload = ++w->payload;
	*(u64 *)(w->buf[q->dev] + offset) = wr->payload;
	*sge = (struct ib_sge){
		.addr = w->dma[q->dev] + offset,
		.length = bytes,
		.lkey = w->s->dev[q->dev]->local_dma_lkey,
	};
	atomic_set(&wr->state, X_POSTED);
	return wr;
}

/* Sets @room to how many of @n WRs the queue takes; settles first if it seems too full. */
enum x_verdict x_make_room(struct x_world *w, struct x_queue *q, u32 n, u32 *room)
{
	bool full = xm_queue_used(q) + n > q->depth;

	if (x_settle_if(w, full || q->head + n - q->checked > X_WRS))
		return X_FAILED;
	*room = min(n, q->depth - min(q->depth, xm_queue_used(q)));
	return X_DONE;
}

/* Accounts for a chain of @n WRs of which the first @posted were posted. */
static void posted(struct x_world *w, struct x_queue *q, u32 posted, u32 n)
{
	u32 i;

	for (i = posted; i < n; i++)
		atomic_set(&xm_wr(q, q->head + i)->state, X_IDLE);
	q->head += posted;
	xm_run(w);
}

/* --- receives --- */

struct x_recvs {
	struct ib_recv_wr wr[X_CHAIN];
	struct ib_sge sge[X_CHAIN];
};

static void build_recvs(struct x_world *w, struct x_queue *q, struct x_recvs *chain, u32 n, u32 r)
{
	struct x_wr *wr;
	u32 i;

	for (i = 0; i < n; i++, r >>= 4) {
		wr = x_new_wr(w, q, i, X_RECV, &chain->sge[i], r & 15 ? X_BYTES : 16);
		chain->wr[i] = (struct ib_recv_wr){
			.next = i + 1 < n ? &chain->wr[i + 1] : NULL,
			.wr_cqe = &wr->cqe,
			.sg_list = &chain->sge[i],
			.num_sge = 1,
		};
	}
}

/* Is a peer blocked on a receive of @q? One at most: @q has one QP, which has one peer. */
static bool is_waited_for(struct x_world *w, const struct x_queue *q)
{
	struct x_qp *peer;
	int i;

	for (i = 0; i < X_SLOTS; i++) {
		if (!xm_there(w, X_QP, i) || !xm_is_blocked(&w->qp[i]))
			continue;
		peer = xm_peer(w, &w->qp[i]);
		if (peer && xm_receives(w, peer) == q)
			return true;
	}
	return false;
}

/* @may: 0, or the errno that posting must return, whatever room there is. */
static enum x_verdict post_recvs(struct x_world *w, const struct x_op *op, struct x_queue *q,
				 struct ib_qp *qp, struct ib_srq *srq, int may)
{
	const struct ib_recv_wr *bad = NULL;
	u32 n = 1 + op->c % X_CHAIN, room, was;
	struct x_recvs chain;
	int want, ret;

	if (x_settle_if(w, w->async) || x_make_room(w, q, n, &room))
		return X_FAILED;
	/* The peer may consume the first WR before the last is posted, which then fits. */
	if (room < n && is_waited_for(w, q))
		return X_SKIPPED;
	if (may)
		room = 0;
	want = may ?: room < n ? -ENOMEM : 0;
	build_recvs(w, q, &chain, n, op->r);
	ret = qp ? ib_post_recv(qp, chain.wr, &bad) : ib_post_srq_recv(srq, chain.wr, &bad);
	was = q->next;
	posted(w, q, room, n);
	/* A peer that waited for these receives retries when its RNR timer expires. */
	w->async |= q->next != was;
	if (ret != want)
		return x_want(w, "posting receives", want, ret);
	if (ret && bad != &chain.wr[room])
		return x_want(w, "bad_wr of receives", room, bad - chain.wr);
	return X_DONE;
}

enum x_verdict x_qp_recv(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a];
	int may = 0;

	if (!xm_there(w, X_QP, op->a))
		return X_SKIPPED;
	if (qp->srq >= 0 || qp->state == IB_QPS_RESET) {
		/* Posting must fail: try it rarely. */
		if (op->r % 8)
			return X_SKIPPED;
		may = -EINVAL;
	}
	return post_recvs(w, op, &qp->rq, w->ptr[X_QP][op->a], NULL, may);
}

enum x_verdict x_srq_recv(struct x_world *w, const struct x_op *op)
{
	/* Which receives of the shared SRQ are consumed depends on the other threads. */
	if (op->a == X_SHARED || !xm_there(w, X_SRQ, op->a))
		return X_SKIPPED;
	return post_recvs(w, op, &w->srq[op->a], NULL, w->ptr[X_SRQ][op->a], 0);
}

/* --- sends --- */

struct x_sends {
	struct ib_ud_wr wr[X_CHAIN];
	struct ib_sge sge[X_CHAIN];
};

bool x_may_send(const struct x_qp *qp)
{
	return qp->state != IB_QPS_RESET && qp->state != IB_QPS_INIT &&
	       qp->state != IB_QPS_RTR;
}

/* Is a WR that is posted executed or flushed at once, rather than held up? */
bool x_executes(const struct x_qp *qp)
{
	return qp->state != IB_QPS_SQD && !xm_is_blocked(qp);
}

/* Number of unused receives that the QP's peer has for its messages. */
u32 x_receives_for(struct x_world *w, struct x_qp *qp)
{
	struct x_qp *peer = xm_peer(w, qp);
	struct x_queue *q = peer ? xm_receives(w, peer) : NULL;

	return q ? q->head - q->next : 0;
}

static bool has_bad_key(const struct x_op *op)
{
	return !(op->r >> 8 & 63);
}

/* Do these sends succeed, whatever is still in flight? */
static bool are_plain(struct x_world *w, struct x_qp *qp, const struct x_op *op, u32 n)
{
	struct x_qp *peer = xm_peer(w, qp);
	u32 i;

	if (qp->type != IB_QPT_RC || w->async || has_bad_key(op) || xm_is_blocked(qp) ||
	    peer->srq >= 0)
		return false;
	for (i = 0; i < n; i++) {
		if (xm_wr(&peer->rq, peer->rq.next + i)->bytes != X_BYTES)
			return false;
	}
	return true;
}

/*
 * Returns the slot of the QP that receives a datagram, or -1 if it is none of this world.
 * QP numbers are unique per device only, so the device is compared, too.
 */
static int datagram_dest(const struct x_world *w, u32 num, int ah)
{
	int dev = w->ah[ah].ib.dlid == w->s->lid[0] ? 0 : 1, i;

	for (i = 0; i < X_SLOTS; i++) {
		if (xm_there(w, X_QP, i) && xm_dev(w, X_QP, i) == dev && w->qp[i].num == num)
			return i;
	}
	return -1;
}

static void build_datagram(struct x_world *w, const struct x_op *op, struct ib_ud_wr *ud,
			   struct x_wr *wr, int ah)
{
	int to = op->r >> 26 & 3 ? op->a : op->b % X_SLOTS;
	bool right_key = op->r >> 28;

	ud->ah = xm_there(w, X_AH, ah) ? w->ptr[X_AH][ah] : NULL;
	ud->remote_qpn = xm_there(w, X_QP, to) ? w->qp[to].num : X_NOBODY;
	ud->remote_qkey = right_key ? X_QKEY + w->id : X_NO_QKEY;
	wr->dest = right_key && ud->ah ? datagram_dest(w, ud->remote_qpn, ah) : -1;
	wr->key = ud->remote_qpn;
}

static void build_sends(struct x_world *w, const struct x_op *op, struct x_sends *chain, u32 n)
{
	static const u8 bytes[4] = { 16, 32, 64, 16 };
	struct x_qp *qp = &w->qp[op->a];
	int dev = xm_dev(w, X_QP, op->a);
	u32 i, r = op->r;
	struct x_wr *wr;

	for (i = 0; i < n; i++, r >>= 5) {
		wr = x_new_wr(w, &qp->sq, i, X_SEND, &chain->sge[i], bytes[r & 3]);
		wr->signaled = qp->sig_all || r & 4 || i == n - 1;
		wr->imm = r & 8;
		chain->wr[i] = (struct ib_ud_wr){ .wr = {
			.next = i + 1 < n ? &chain->wr[i + 1].wr : NULL,
			.wr_cqe = &wr->cqe,
			.sg_list = &chain->sge[i],
			.num_sge = 1,
			.opcode = wr->imm ? IB_WR_SEND_WITH_IMM : IB_WR_SEND,
			.ex.imm_data = cpu_to_be32(wr->payload),
			.send_flags = wr->signaled && !qp->sig_all ? IB_SEND_SIGNALED : 0,
		} };
		if (has_bad_key(op) && !i) {
			wr->bad_key = true;
			chain->sge[i].lkey = 0xffffff00;
		} else if (r & 16) {
			chain->sge[i].addr = (uintptr_t)w->buf[dev] + chain->sge[i].addr -
					    w->dma[dev];
			chain->wr[i].wr.send_flags |= IB_SEND_INLINE;
		}
		if (qp->type == IB_QPT_UD)
			build_datagram(w, op, &chain->wr[i], wr, op->c >> 2);
	}
}

static enum x_verdict post_sends(struct x_world *w, const struct x_op *op, u32 n, int may)
{
	struct x_qp *qp = &w->qp[op->a];
	const struct ib_send_wr *bad = NULL;
	struct x_sends chain;
	int want, ret;
	u32 room;

	if (x_make_room(w, &qp->sq, n, &room))
		return X_FAILED;
	if (may)
		room = 0;
	want = may ?: room < n ? -ENOMEM : 0;
	build_sends(w, op, &chain, n);
	ret = ib_post_send(w->ptr[X_QP][op->a], &chain.wr[0].wr, &bad);
	posted(w, &qp->sq, room, n);
	if (ret != want)
		return x_want(w, "posting sends", want, ret);
	if (ret && bad != &chain.wr[room].wr)
		return x_want(w, "bad_wr of sends", room,
			      container_of(bad, typeof(*chain.wr), wr) - chain.wr);
	return X_DONE;
}

static enum x_verdict send_datagrams(struct x_world *w, const struct x_op *op, u32 n)
{
	int ah = op->c >> 2;
	bool good = xm_there(w, X_AH, ah) && w->obj[X_AH][ah].slot[0] == w->qp[op->a].pd;

	if (!good && (op->r >> 20) % 8)
		return X_SKIPPED;
	/* Whether a datagram finds a receive depends on all WRs posted before. */
	if (x_settle(w))
		return X_FAILED;
	return post_sends(w, op, n, good ? 0 : -EINVAL);
}

enum x_verdict x_qp_send(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a];
	u32 n = 1 + op->c % X_CHAIN, ready;

	if (!xm_there(w, X_QP, op->a))
		return X_SKIPPED;
	if (!x_may_send(qp))
		return op->r % 8 ? X_SKIPPED : post_sends(w, op, n, -EINVAL);
	if (qp->type == IB_QPT_UD)
		return send_datagrams(w, op, n);
	if (qp->state == IB_QPS_RTS && (op->r >> 20) % 8) {
		ready = x_receives_for(w, qp);
		if (!ready)
			return X_SKIPPED;
		n = min(n, ready);
		if (are_plain(w, qp, op, n))
			return post_sends(w, op, n, 0);
	}
	return x_settle(w) ? X_FAILED : post_sends(w, op, n, 0);
}

/* Posts one WR of any opcode, which is set up except for wr_cqe and send_flags. */
enum x_verdict x_post_one(struct x_world *w, int slot, struct ib_send_wr *send, struct x_wr *wr,
			  int may)
{
	struct x_qp *qp = &w->qp[slot];
	int ret;

	wr->signaled = true;
	send->wr_cqe = &wr->cqe;
	send->send_flags = IB_SEND_SIGNALED;
	ret = ib_post_send(w->ptr[X_QP][slot], send, NULL);
	posted(w, &qp->sq, may ? 0 : 1, 1);
	return x_want(w, "posting a request", may, ret);
}

/* Posts a REG_MR or a LOCAL_INV of a region. */
enum x_verdict x_mr_post(struct x_world *w, const struct x_op *op)
{
	bool invalidate = op->c & 1;
	struct x_qp *qp = &w->qp[op->a];
	int mr = op->b % 3;
	struct ib_reg_wr reg = {};
	struct ib_sge sge;
	struct x_wr *wr;
	u32 room;
	bool good;

	if (!xm_there(w, X_QP, op->a) || !xm_there(w, X_MR, mr) || qp->type == IB_QPT_UD)
		return X_SKIPPED;
	/* The region's pages must not be mapped again before its REG_MR is executed. */
	if (!invalidate && !x_executes(qp))
		return X_SKIPPED;
	/* The same key may be valid on both devices. */
	if (invalidate && xm_dev(w, X_QP, op->a) != xm_dev(w, X_MR, mr))
		return X_SKIPPED;
	good = x_may_send(qp) && (invalidate || (w->mr[mr].mapped &&
					       xm_dev(w, X_QP, op->a) == xm_dev(w, X_MR, mr)));
	if (!good && op->r % 8)
		return X_SKIPPED;
	if (x_settle(w) || x_make_room(w, &qp->sq, 1, &room))
		return X_FAILED;
	wr = x_new_wr(w, &qp->sq, 0, invalidate ? X_INV : X_REG, &sge, 8);
	wr->mr = mr;
	wr->key = w->mr[mr].key;
	reg.mr = w->ptr[X_MR][mr];
	reg.key = reg.mr->rkey;
	reg.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_READ |
		     (op->r & 0x30 ? IB_ACCESS_REMOTE_WRITE : 0) |
		     (op->r & 0xc0 ? IB_ACCESS_MW_BIND : 0) |
		     (op->r & 0x300 ? IB_ACCESS_REMOTE_ATOMIC : 0);
	wr->access = reg.access;
	reg.wr.opcode = invalidate ? IB_WR_LOCAL_INV : IB_WR_REG_MR;
	if (invalidate)
		reg.wr.ex.invalidate_rkey = reg.key;
	return x_post_one(w, op->a, &reg.wr, wr, !good ? -EINVAL : room ? 0 : -ENOMEM);
}

/* Binds a window, or unbinds it if @wr->mr is -1. On success, its key is a new one. */
static enum x_verdict bind(struct x_world *w, int slot, int mw_slot, struct x_wr *wr, bool good)
{
	struct ib_mw *mw = w->ptr[X_MW][mw_slot];
	struct ib_bind_mw_wr wr2 = { .wr.opcode = IB_WR_BIND_MW, .mw = mw };
	struct ib_mr *mr = wr->mr < 0 ? NULL : w->ptr[X_MR][wr->mr];
	u32 key = ib_inc_rkey(mw->rkey);
	struct ib_mw_bind one = {};
	enum x_verdict verdict;
	int ret;

	wr2.rkey = key;
	wr2.bind_info.mr = mr;
	wr2.bind_info.addr = mr ? mr->iova : 0;
	wr2.bind_info.length = mr ? X_WINDOW : 0;
	wr2.bind_info.mw_access_flags = wr->access;
	if (mw->type == IB_MW_TYPE_2) {
		verdict = x_post_one(w, slot, &wr2.wr, wr, good ? 0 : -EINVAL);
		if (w->mw[mw_slot].mr >= 0 && wr->want == IB_WC_SUCCESS && wr->ended)
			mw->rkey = key;
		return verdict;
	}
	one.wr_id = (uintptr_t)&wr->cqe;
	one.send_flags = IB_SEND_SIGNALED;
	one.bind_info = wr2.bind_info;
	ret = ib_bind_mw(w->ptr[X_QP][slot], mw, &one);
	posted(w, &w->qp[slot].sq, good ? 1 : 0, 1);
	return x_want(w, "binding a window", good ? 0 : -EINVAL, ret);
}

/* Binds, unbinds or invalidates a window. */
enum x_verdict x_mw_post(struct x_world *w, const struct x_op *op)
{
	int mw = op->c & 1, mr = op->r & 3 ? op->b % 3 : -1;
	bool invalidate = op->c & 8, good;
	struct x_qp *qp = &w->qp[op->a];
	struct ib_send_wr inv = { .opcode = IB_WR_LOCAL_INV };
	struct ib_sge sge;
	struct x_wr *wr;
	u32 room;

	/* The WR must be executed at once, so that the window's key is known afterwards. */
	if (!xm_there(w, X_QP, op->a) || !xm_there(w, X_MW, mw) || qp->type == IB_QPT_UD ||
	    !x_may_send(qp) || !x_executes(qp))
		return X_SKIPPED;
	good = xm_dev(w, X_QP, op->a) == xm_dev(w, X_MW, mw);
	if (mr >= 0 && !invalidate) {
		if (!xm_there(w, X_MR, mr) || !w->mr[mr].mapped)
			return X_SKIPPED;
		good &= xm_dev(w, X_QP, op->a) == xm_dev(w, X_MR, mr);
	}
	/* The same key may be valid on both devices; an invalid one is used only rarely. */
	if (!good && (invalidate || op->r % 8))
		return X_SKIPPED;
	if (x_settle(w) || x_make_room(w, &qp->sq, 1, &room))
		return X_FAILED;
	if (!room)
		return X_SKIPPED;
	wr = x_new_wr(w, &qp->sq, 0, invalidate ? X_INV_MW : X_BIND, &sge, 8);
	wr->mw = mw;
	wr->mr = mr;
	wr->access = IB_ACCESS_REMOTE_READ | (op->r & 0x10 ? IB_ACCESS_REMOTE_WRITE : 0);
	wr->key = mr < 0 ? 0 : w->mr[mr].key;
	if (!invalidate)
		return bind(w, op->a, mw, wr, good);
	inv.ex.invalidate_rkey = ((struct ib_mw *)w->ptr[X_MW][mw])->rkey;
	return x_post_one(w, op->a, &inv, wr, 0);
}

/* Posts an RDMA write or an RDMA read of a region or a window. */
static enum x_verdict post_rdma(struct x_world *w, const struct x_op *op, int mr, int mw, u32 rkey)
{
	struct x_qp *qp = &w->qp[op->a];
	struct ib_rdma_wr rdma = {};
	bool read = op->c & 2;
	struct ib_sge sge;
	struct x_wr *wr;
	u32 room;

	if (x_settle(w) || x_make_room(w, &qp->sq, 1, &room))
		return X_FAILED;
	wr = x_new_wr(w, &qp->sq, 0, read ? X_READ : X_WRITE, &sge, 64);
	wr->mr = mr;
	wr->key = w->mr[mr].key;
	wr->mw = mw;
	rdma.wr.opcode = read ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE;
	rdma.wr.sg_list = &sge;
	rdma.wr.num_sge = 1;
	rdma.rkey = rkey;
	rdma.remote_addr = ((struct ib_mr *)w->ptr[X_MR][mr])->iova;
	return x_post_one(w, op->a, &rdma.wr, wr, room ? 0 : -ENOMEM);
}

/* The QP that executes RDMA and atomics of the QP in slot @op->a, or NULL. */
struct x_qp *x_responder(struct x_world *w, const struct x_op *op)
{
	struct x_qp *qp = &w->qp[op->a];

	if (!xm_there(w, X_QP, op->a) || qp->type != IB_QPT_RC || !x_may_send(qp))
		return NULL;
	return xm_peer(w, qp);
}

enum x_verdict x_rdma(struct x_world *w, const struct x_op *op)
{
	struct x_qp *peer = x_responder(w, op);
	int mr = op->b % 3;

	/* The same key may be valid on both devices; an invalid one is used only rarely. */
	if (!peer || !xm_there(w, X_MR, mr) || !w->mr[mr].mapped ||
	    xm_dev(w, X_MR, mr) != xm_dev(w, X_QP, peer - w->qp) ||
	    (!w->mr[mr].valid && op->r % 8))
		return X_SKIPPED;
	return post_rdma(w, op, mr, -1, ((struct ib_mr *)w->ptr[X_MR][mr])->rkey);
}

enum x_verdict x_rdma_mw(struct x_world *w, const struct x_op *op)
{
	struct x_qp *peer = x_responder(w, op);
	int mw = op->c & 1;

	/* The WR must be executed at once, before the window can be bound elsewhere. */
	if (!peer || !x_executes(&w->qp[op->a]) || !xm_there(w, X_MW, mw) || w->mw[mw].mr < 0 ||
	    xm_dev(w, X_MW, mw) != xm_dev(w, X_QP, peer - w->qp))
		return X_SKIPPED;
	return post_rdma(w, op, w->mw[mw].mr, mw, ((struct ib_mw *)w->ptr[X_MW][mw])->rkey);
}
