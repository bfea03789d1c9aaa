// SPDX-License-Identifier: GPL-2.0-only
/*
 * Draining queues: move the QP to the error state, post a last request and
 * wait until its completion has been handled. Requests complete in order, so
 * all others have been handled by then.
 *
 * Lock protocol: none. The caller ensures that no other thread posts. The CQ is
 * polled as always; with IB_POLL_DIRECT, by the draining thread.
 *
 * A QP with an SRQ has no receive queue to post to; according to IBTA vol. 1,
 * 10.3.1, the device raises an event when it has taken its last receive request
 * from the SRQ.
 */
#include <linux/completion.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <rdma/ib_verbs.h>

#include "../../cq/cq.h"
#include "../contract/contract.h"
#include "verbs.h"

/* A device that has not raised that event by then is considered broken. */
#define DRAIN_SRQ_TIMEOUT	(60 * HZ)

struct drain_cqe {
	struct ib_cqe cqe;
	struct completion done;
};

static void drain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct drain_cqe *drain = container_of(wc->wr_cqe, struct drain_cqe,
					       cqe);

	complete(&drain->done);
	ib_cq_wake_waiters_done(cq);
}

static const char *drain_why(int err)
{
	switch (err) {
	case -EINVAL:
		return "the QP is in RESET, or its CQ is not of ib_alloc_cq()";
	case -EDEADLK:
		return "called from a done() that it would wait for";
	case -EOPNOTSUPP:
		return "the QP has an SRQ, so call ib_drain_qp()";
	case -ENOMEM:
		return "no room for one more request in the queue, or no memory";
	case -ETIMEDOUT:
		return "no IB_EVENT_QP_LAST_WQE_REACHED from the device";
	default:
		return "the device failed";
	}
}

static void drain_failed(struct ib_qp *qp, const char *queue, int err)
{
	ibdev_warn(qp->device,
		   "cannot drain the %s queue of qp %u of %s: %s (%d); its requests may be in progress until it is destroyed\n",
		   queue, qp->res.id, qp->res.kern_name, drain_why(err), err);
}

/*
 * Moves @qp to the error state, unless the wait for @cq would not end: a CQ of
 * ib_create_cq() dispatches no struct ib_cqe, so nothing would wake us; nor
 * would anything if we are in a done() that the CQ waits for.
 */
static int drain_begin(struct ib_qp *qp, struct ib_cq *cq, unsigned long site)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	if (!cq || !cq->lane)
		return -EINVAL;
	if (ib_cq_polled_by_caller(cq))
		return -EDEADLK;
	return ib_modify_qp_for(qp, &attr, IB_QP_STATE, NULL, site);
}

static int drain_send_queue(struct ib_qp *qp, unsigned long site)
{
	struct drain_cqe drain = { .cqe.done = drain_done };
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &drain.cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	int ret;

	ret = drain_begin(qp, qp->send_cq, site);
	if (ret)
		return ret;

	init_completion(&drain.done);
	/* A failed CQ would lose the completion; those that it has are still handled. */
	if (!ib_cq_failed(qp->send_cq))
		ret = ib_post_send_for(qp, &wr.wr, site);
	return ret ?: ib_cq_wait_done(qp->send_cq, &drain.done);
}

static int drain_recv_queue(struct ib_qp *qp, unsigned long site)
{
	struct drain_cqe drain = { .cqe.done = drain_done };
	struct ib_recv_wr wr = { .wr_cqe = &drain.cqe };
	int ret;

	if (qp->srq)
		return -EOPNOTSUPP;
	ret = drain_begin(qp, qp->recv_cq, site);
	if (ret)
		return ret;

	init_completion(&drain.done);
	/* A failed CQ would lose the completion; those that it has are still handled. */
	if (!ib_cq_failed(qp->recv_cq))
		ret = ib_post_recv_for(qp, &wr, site);
	return ret ?: ib_cq_wait_done(qp->recv_cq, &drain.done);
}

/* Waits until the device has taken its last request from the SRQ. */
static int drain_leave_srq(struct ib_qp *qp, unsigned long site)
{
	int ret;

	ret = drain_begin(qp, qp->recv_cq, site);
	if (ret)
		return ret;
	if (!wait_for_completion_timeout(&qp->srq_completion,
					 DRAIN_SRQ_TIMEOUT))
		return -ETIMEDOUT;
	return 0;
}

/* Calls the driver's own drain method, which may poll the CQ. */
static void drain_by_driver(struct ib_qp *qp, const char *what,
			    void (*method)(struct ib_qp *qp), unsigned long site)
{
	IB_IN_FRAME(qp->device, &qp->res, what, IB_FRAME_DRAIN, site, ({ method(qp); 0; }));
}

static void drain_sq(struct ib_qp *qp, unsigned long site)
{
	int ret;

	if (qp->device->ops.drain_sq) {
		drain_by_driver(qp, "drain_sq", qp->device->ops.drain_sq, site);
		return;
	}
	ret = drain_send_queue(qp, site);
	if (ret)
		drain_failed(qp, "send", ret);
}

static void drain_rq(struct ib_qp *qp, unsigned long site)
{
	int ret;

	if (qp->device->ops.drain_rq) {
		drain_by_driver(qp, "drain_rq", qp->device->ops.drain_rq, site);
		return;
	}
	ret = drain_recv_queue(qp, site);
	if (ret)
		drain_failed(qp, "receive", ret);
}

/*
 * Returns the call site for the methods that follow: @site. If the module there may not use
 * the device, that is reported here, once, and not again for each method.
 */
static unsigned long drain_site(struct ib_qp *qp, const char *what, unsigned long site)
{
	if (!ib_contract_on() || likely(!ib_contract_suspects(qp->device)))
		return site;
	return ib_contract_suspect(qp->device, &qp->res, what, site) ? IB_SITE_REPORTED : site;
}

/**
 * ib_drain_sq() - wait until all send completions have been handled
 * @qp: the QP; in the error state on return, unless the call is refused with a warning
 *
 * The CQ must be of ib_alloc_cq(); it and the send queue must have room for
 * one more. No other thread may post meanwhile. The call is refused with another CQ, and in a
 * done() of the same CQ or thread. After a refusal or another failure, as when the CQ
 * has overrun, completions may be missing, and the device may use the memory of requests
 * until the QP is destroyed.
 *
 * Context: Process; not from a done() of the CQ, nor of another one of the same
 * vector with %IB_POLL_THREAD. In any other done() it waits for a done() of the CQ:
 * if two done() wait for each other's CQ, or vector with %IB_POLL_THREAD, they wait
 * for ever.
 */
void ib_drain_sq(struct ib_qp *qp)
{
	drain_sq(qp, drain_site(qp, "ib_drain_sq", _RET_IP_));
}
EXPORT_SYMBOL(ib_drain_sq);

/**
 * ib_drain_rq() - wait until all receive completions have been handled
 * @qp: the QP, without an SRQ; in the error state on return, unless the call is refused
 *	with a warning
 *
 * The CQ must be of ib_alloc_cq(); it and the receive queue must have room
 * for one more. No other thread may post meanwhile. The call is refused with another CQ, and in a
 * done() of the same CQ or thread. After a refusal or another failure, as when the CQ
 * has overrun, completions may be missing, and the device may use the memory of requests
 * until the QP is destroyed.
 *
 * Context: Process; not from a done() of the CQ, nor of another one of the same
 * vector with %IB_POLL_THREAD. In any other done() it waits for a done() of the CQ:
 * if two done() wait for each other's CQ, or vector with %IB_POLL_THREAD, they wait
 * for ever.
 */
void ib_drain_rq(struct ib_qp *qp)
{
	drain_rq(qp, drain_site(qp, "ib_drain_rq", _RET_IP_));
}
EXPORT_SYMBOL(ib_drain_rq);

/* When the event comes, all SRQ requests that the QP took have completions in the CQ. */
static void drain_srq_qp(struct ib_qp *qp, unsigned long site)
{
	int ret;

	ret = drain_leave_srq(qp, site) ?: ib_cq_flush(qp->recv_cq);
	if (ret)
		drain_failed(qp, "shared receive", ret);
	drain_sq(qp, site);
}

/**
 * ib_drain_qp() - wait until all completions of a QP have been handled
 * @qp: the QP; in the error state on return, unless the call is refused with a warning
 *
 * Like ib_drain_sq() and ib_drain_rq() together. If the QP has an SRQ, it waits
 * until the device has taken its last request for the QP from there, and the
 * completions of all of them have been handled.
 *
 * Context: Process; the rules of ib_drain_sq() for calls from a done() apply.
 */
void ib_drain_qp(struct ib_qp *qp)
{
	unsigned long site = drain_site(qp, "ib_drain_qp", _RET_IP_);

	if (qp->srq) {
		drain_srq_qp(qp, site);
		return;
	}
	drain_sq(qp, site);
	drain_rq(qp, site);
}
EXPORT_SYMBOL(ib_drain_qp);
