// SPDX-License-Identifier: GPL-2.0-only
/*
 * The exerciser: QPs that end with WRs in flight, and CQs that overrun.
 *
 * How far the WRs have got when the QP ends is not known, so the model of the other
 * operations is not used. What can be checked: the WRs of each queue complete once and in
 * order; the first ones succeed, and those after them are flushed. The QP is connected to
 * itself, and destroyed when the operation is over.
 */
#include "fuzz/fuzz.h"

/* A QP slot in which no other operation creates a QP. */
#define X_SLOT		(X_SLOTS - 1)
/* Entries of a CQ that is made to overrun. */
#define X_SMALL		4
/* Limit of the rounds of a busy loop before the QP ends; halved up to seven times. */
#define X_SPIN		32768

enum x_ending {
	X_TO_ERR,
	X_TO_RESET,
	X_DESTROYED,
	X_ENDINGS
};

/* Progress of the WRs of a queue. */
struct flight_queue {
	u32 posted;	/* WRs posted */
	u32 done;	/* completions seen */
	u32 good;	/* successful completions, which must be the first ones */
	/* Status of the first one that failed; IB_WC_SUCCESS while none has. */
	enum ib_wc_status bad;
};

/* A QP with WRs in flight. */
struct flight {
	struct x_world *w;
	int dev;			/* index of the device */
	struct ib_qp *qp;		/* the QP */
	struct ib_cq *scq;		/* its send CQ */
	struct ib_cq *rcq;		/* its receive CQ */
	struct flight_queue sends;	/* its send queue */
	struct flight_queue recvs;	/* its receive queue */
	atomic_t cq_errors;		/* CQ_ERR events of both CQs */
	atomic_t qp_errors;		/* QP_FATAL events of the QP */
	u64 payload[X_FLIGHT];		/* first word of each message */
};

static void flight_cq_event(struct ib_event *event, void *context)
{
	struct flight *f = context;

	if (event->event == IB_EVENT_CQ_ERR)
		atomic_inc(&f->cq_errors);
}

static void flight_qp_event(struct ib_event *event, void *context)
{
	struct flight *f = context;

	if (event->event == IB_EVENT_QP_FATAL)
		atomic_inc(&f->qp_errors);
}

/* --- creation and destruction --- */

static int step_to(struct flight *f, enum ib_qp_state to)
{
	struct x_qp *qp = &f->w->qp[X_SLOT];
	struct ib_qp_attr attr;
	int ret;

	x_fill_attr(f->w, X_SLOT, X_SLOT, &attr);
	attr.qp_state = to;
	ret = ib_modify_qp(f->qp, &attr, IB_QP_STATE | xm_required(qp->state, to, qp->type));
	if (!ret)
		qp->state = to;
	return ret;
}

static int connect(struct flight *f)
{
	struct x_qp *qp = &f->w->qp[X_SLOT];
	int ret;

	qp->state = IB_QPS_RESET;
	qp->type = IB_QPT_RC;
	qp->num = f->qp->qp_num;
	qp->dest = f->qp->qp_num;
	qp->dest_dev = f->dev;
	/* 7: a send that finds no receive is retried for ever. */
	qp->rnr_retry = 7;
	qp->access = IB_ACCESS_LOCAL_WRITE;
	ret = step_to(f, IB_QPS_INIT);
	ret = ret ?: step_to(f, IB_QPS_RTR);
	return ret ?: step_to(f, IB_QPS_RTS);
}

static int make_qp(struct flight *f, struct ib_pd *pd)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.send_cq = f->scq,
		.recv_cq = f->rcq,
		.event_handler = flight_qp_event,
		.qp_context = f,
		.cap = { X_FLIGHT, X_FLIGHT, 1, 1, 0 },
	};
	struct ib_qp *qp = ib_create_qp(pd, &init);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	f->qp = qp;
	return connect(f);
}

static struct ib_cq *make_cq(struct flight *f, int cqe)
{
	struct ib_cq_init_attr attr = { .cqe = cqe };

	return ib_create_cq(f->w->s->dev[f->dev], NULL, flight_cq_event, f, &attr);
}

static int take_off(struct flight *f, struct ib_pd *pd, int scqe, int rcqe)
{
	f->scq = make_cq(f, scqe);
	f->rcq = make_cq(f, rcqe);
	if (IS_ERR(f->scq))
		return PTR_ERR(f->scq);
	if (IS_ERR(f->rcq))
		return PTR_ERR(f->rcq);
	return make_qp(f, pd);
}

static enum x_verdict land(struct flight *f)
{
	int ret = f->qp ? ib_destroy_qp(f->qp) : 0;

	if (!ret && !IS_ERR(f->scq))
		ret = ib_destroy_cq_user(f->scq, NULL);
	if (!ret && !IS_ERR(f->rcq))
		ret = ib_destroy_cq_user(f->rcq, NULL);
	/* @f is leaked on failure: objects that are left may still call the handlers. */
	if (ret)
		return x_want(f->w, "destroying what was under way", 0, ret);
	kfree(f);
	return X_DONE;
}

static struct flight *new_flight(struct x_world *w, int dev)
{
	struct flight *f = kzalloc(sizeof(*f), GFP_KERNEL);

	if (!f)
		return NULL;
	f->w = w;
	f->dev = dev;
	return f;
}

/* --- WRs --- */

/* Buffer @i: those of sends come first, those of receives start at X_FLIGHT. */
static void build_sge(const struct flight *f, u32 i, struct ib_sge *sge)
{
	*sge = (struct ib_sge){
		.addr = f->w->dma[f->dev] + X_FLIGHT_AT + i * X_BYTES,
		.length = X_BYTES,
		.lkey = f->w->s->dev[f->dev]->local_dma_lkey,
	};
}

static u64 *payload_at(const struct flight *f, u32 i)
{
	return (u64 *)(f->w->buf[f->dev] + X_FLIGHT_AT + i * X_BYTES);
}

static int post_receives(struct flight *f, u32 n)
{
	struct ib_recv_wr wr = { .num_sge = 1 };
	struct ib_sge sge;
	int ret;

	wr.sg_list = &sge;
	for (; n; n--) {
		wr.wr_id = X_FLIGHT + f->recvs.posted;
		build_sge(f, wr.wr_id, &sge);
		ret = ib_post_recv(f->qp, &wr, NULL);
		if (ret)
			return ret;
		f->recvs.posted++;
	}
	return 0;
}

static int post_messages(struct flight *f, u32 n)
{
	struct ib_send_wr wr = { .num_sge = 1, .opcode = IB_WR_SEND };
	struct ib_sge sge;
	int ret;

	wr.sg_list = &sge;
	for (; n; n--) {
		wr.wr_id = f->sends.posted;
		build_sge(f, wr.wr_id, &sge);
		f->payload[wr.wr_id] = ++f->w->payload;
		*payload_at(f, wr.wr_id) = f->w->payload;
		ret = ib_post_send(f->qp, &wr, NULL);
		if (ret)
			return ret;
		f->sends.posted++;
	}
	return 0;
}

/* Messages posted first wait for the receives; messages posted later find them there. */
static int post(struct flight *f, u32 messages, u32 receives, bool messages_first)
{
	int ret = 0;

	if (messages_first)
		ret = post_messages(f, messages);
	ret = ret ?: post_receives(f, receives);
	if (!messages_first)
		ret = ret ?: post_messages(f, messages);
	return ret;
}

/* --- completions --- */

static enum x_verdict take(struct flight *f, struct flight_queue *q, const char *name,
			   const struct ib_wc *wc)
{
	u32 i = q->done++;

	if (wc->wr_id % X_FLIGHT != i || i >= q->posted)
		return x_fail(f->w, "%s under way: expected request %u, saw %llu", name, i,
			      wc->wr_id % X_FLIGHT);
	if (wc->status == IB_WC_SUCCESS && !q->bad) {
		q->good++;
		if (q == &f->recvs && *payload_at(f, wc->wr_id) != f->payload[i])
			return x_want(f->w, "message under way", f->payload[i],
				      *payload_at(f, wc->wr_id));
		return X_DONE;
	}
	if (!q->bad)
		q->bad = wc->status;
	else if (wc->status != IB_WC_WR_FLUSH_ERR)
		return x_fail(f->w, "%s %u under way, after '%s': saw '%s'", name, i,
			      ib_wc_status_msg(q->bad), ib_wc_status_msg(wc->status));
	return X_DONE;
}

/* Takes all completions that both CQs have. */
static enum x_verdict poll(struct flight *f)
{
	struct ib_wc wc;

	while (ib_poll_cq(f->scq, 1, &wc) > 0) {
		if (take(f, &f->sends, "send", &wc))
			return X_FAILED;
	}
	while (ib_poll_cq(f->rcq, 1, &wc) > 0) {
		if (take(f, &f->recvs, "receive", &wc))
			return X_FAILED;
	}
	return X_DONE;
}

/* Polls until so many sends and receives have completed; fails on timeout. */
static enum x_verdict poll_all(struct flight *f, u32 sends, u32 recvs)
{
	u64 end = ktime_get_ns() + jiffies_to_nsecs(f->w->patience);

	do {
		if (poll(f))
			return X_FAILED;
		if (f->sends.done >= sends && f->recvs.done >= recvs)
			return X_DONE;
		cond_resched();
	} while (ktime_get_ns() < end);
	return x_fail(f->w, "under way: completions of %u sends of %u, %u receives of %u",
		      f->sends.done, sends, f->recvs.done, recvs);
}

static bool is_bad(const struct flight_queue *q, enum ib_wc_status status)
{
	return q->bad && q->bad != status;
}

/* --- QPs that end --- */

/* The send of a message that has arrived may be flushed: its ACK may not have come yet. */
static enum x_verdict check_flushed(struct flight *f)
{
	if (is_bad(&f->sends, IB_WC_WR_FLUSH_ERR) || is_bad(&f->recvs, IB_WC_WR_FLUSH_ERR))
		return x_fail(f->w, "under way: a send ended with '%s', a receive with '%s'",
			      ib_wc_status_msg(f->sends.bad), ib_wc_status_msg(f->recvs.bad));
	if (f->recvs.good < f->sends.good)
		return x_want(f->w, "receives of messages that arrived", f->sends.good,
			      f->recvs.good);
	f->w->ended[IB_WC_WR_FLUSH_ERR] += f->sends.done - f->sends.good;
	return X_DONE;
}

static enum x_verdict end_flight(struct flight *f, enum x_ending how)
{
	int ret;

	switch (how) {
	case X_TO_ERR:
		ret = step_to(f, IB_QPS_ERR);
		if (ret)
			return x_want(f->w, "ending what is under way", 0, ret);
		if (poll_all(f, f->sends.posted, f->recvs.posted))
			return X_FAILED;
		break;
	case X_TO_RESET:
		ret = step_to(f, IB_QPS_RESET);
		if (ret)
			return x_want(f->w, "ending what is under way", 0, ret);
		break;
	default:
		ret = ib_destroy_qp(f->qp);
		if (ret)
			return x_want(f->w, "destroying what is under way", 0, ret);
		f->qp = NULL;
		if (poll(f))
			return X_FAILED;
		return x_want(f->w, "completions of a QP that is gone", 0,
			      f->sends.done + f->recvs.done);
	}
	/* After RESET, take the completions from before it; after ERR, none may be left. */
	return poll(f) ? X_FAILED : check_flushed(f);
}

/* Ends a QP with WRs in flight, which another CPU may be executing. */
enum x_verdict x_flight(struct x_world *w, const struct x_op *op)
{
	u32 messages = 1 + (op->r & 15), receives = op->r >> 4 & 15, i;
	enum x_verdict verdict;
	struct flight *f;
	int ret;

	if (!xm_there(w, X_PD, op->a))
		return X_SKIPPED;
	f = new_flight(w, xm_dev(w, X_PD, op->a));
	if (!f)
		return X_SKIPPED;
	ret = take_off(f, w->ptr[X_PD][op->a], X_CQE, X_CQE);
	ret = ret ?: post(f, messages, receives, op->c & 1);
	verdict = x_want(w, "requests under way", 0, ret);
	for (i = (op->r >> 8) % X_SPIN >> (op->r >> 29); i && !verdict; i--)
		cpu_relax();
	if (!verdict)
		verdict = end_flight(f, op->b % X_ENDINGS);
	if (!verdict && atomic_read(&f->qp_errors) + atomic_read(&f->cq_errors))
		verdict = x_fail(w, "under way: an error is told, and there was none");
	return land(f) ? X_FAILED : verdict;
}

/* --- CQs that overrun --- */

static enum x_verdict wait_for_events(struct flight *f)
{
	u64 end = ktime_get_ns() + jiffies_to_nsecs(f->w->patience);

	while ((!atomic_read(&f->cq_errors) || !atomic_read(&f->qp_errors)) && ktime_get_ns() < end)
		cond_resched();
	if (x_want(f->w, "events of a CQ that overran", 1, atomic_read(&f->cq_errors)))
		return X_FAILED;
	return x_want(f->w, "events of its QP", 1, atomic_read(&f->qp_errors));
}

/* The CQ that overran holds as many completions as it has entries; the other CQ has all. */
static enum x_verdict check_overrun(struct flight *f, bool by_sends)
{
	u32 sends = by_sends ? f->scq->cqe : f->sends.posted;
	u32 recvs = by_sends ? f->recvs.posted : f->rcq->cqe;
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr;

	if (wait_for_events(f) || poll_all(f, sends, recvs) || poll(f))
		return X_FAILED;
	if (f->sends.done != sends || f->recvs.done != recvs)
		return x_fail(f->w, "after an overrun: %u sends of %u, %u receives of %u",
			      f->sends.done, sends, f->recvs.done, recvs);
	if (by_sends ? f->sends.good != sends : f->recvs.good != recvs)
		return x_fail(f->w, "before an overrun, %u sends, %u receives were good",
			      f->sends.good, f->recvs.good);
	if (is_bad(&f->recvs, IB_WC_WR_FLUSH_ERR) ||
	    (is_bad(&f->sends, IB_WC_WR_FLUSH_ERR) && f->sends.bad != IB_WC_REM_OP_ERR))
		return x_fail(f->w, "after an overrun: a send ended with '%s', a receive '%s'",
			      ib_wc_status_msg(f->sends.bad), ib_wc_status_msg(f->recvs.bad));
	return x_want(f->w, "state after an overrun", IB_QPS_ERR,
		      ib_query_qp(f->qp, &attr, IB_QP_STATE, &init) ?: attr.qp_state);
}

enum x_verdict x_overrun(struct x_world *w, const struct x_op *op)
{
	bool by_sends = op->c & 1;
	enum x_verdict verdict;
	struct flight *f;
	int ret;

	if (!xm_there(w, X_PD, op->a))
		return X_SKIPPED;
	f = new_flight(w, xm_dev(w, X_PD, op->a));
	if (!f)
		return X_SKIPPED;
	ret = take_off(f, w->ptr[X_PD][op->a], by_sends ? X_SMALL : X_CQE,
		       by_sends ? X_CQE : X_SMALL);
	/* Post at least one message more than the small CQ has entries. */
	ret = ret ?: post(f, X_SMALL + 1 + op->r % (X_FLIGHT - X_SMALL), X_FLIGHT, op->c & 2);
	verdict = x_want(w, "requests of a CQ that overruns", 0, ret);
	if (!verdict)
		verdict = check_overrun(f, by_sends);
	return land(f) ? X_FAILED : verdict;
}
