// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watched forms of the data path calls.
 *
 * ib_post_send() and its like test one static key and call the driver. While
 * somebody watches - a tracepoint is enabled - the key sends them here.
 */
#include <linux/export.h>
#include <linux/jump_label.h>
#include <linux/rcupdate.h>

#include "core_priv.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

/*
 * ib_verbs_watched - the key: somebody watches
 */
DEFINE_STATIC_KEY_FALSE(ib_verbs_watched);
EXPORT_SYMBOL(ib_verbs_watched);

/* Called when the first user of a tracepoint comes. */
int ib_verbs_watch(void)
{
	static_branch_inc(&ib_verbs_watched);
	return 0;
}

/* Called after the last one went. */
void ib_verbs_unwatch(void)
{
	static_branch_dec(&ib_verbs_watched);
}

static unsigned int nr_send_wrs(const struct ib_send_wr *wr)
{
	unsigned int nr = 0;

	for (; wr; wr = wr->next)
		nr++;
	return nr;
}

static unsigned int nr_recv_wrs(const struct ib_recv_wr *wr)
{
	unsigned int nr = 0;

	for (; wr; wr = wr->next)
		nr++;
	return nr;
}

/*
 * Once posted, a request belongs to whoever reaps its completion and may be
 * gone, so what the tracepoints show of it is copied first.
 */

/**
 * ib_post_send_watched() - ib_post_send() while somebody watches
 * @qp: the QP
 * @wr: chain of work requests
 * @bad_wr: the first request that was not accepted; may be %NULL
 *
 * Context: Any.
 * Return: what the driver's post_send method returns.
 */
int ib_post_send_watched(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad_wr)
{
	const struct ib_send_wr first = wr ? *wr : (struct ib_send_wr) {};
	unsigned int nr = nr_send_wrs(wr);
	const struct ib_send_wr *dummy;
	int ret;

	ret = qp->device->ops.post_send(qp, wr, bad_wr ? : &dummy);
	trace_ib_post_send(qp, &first, nr, ret);
	return ret;
}
EXPORT_SYMBOL(ib_post_send_watched);

/**
 * ib_post_recv_watched() - ib_post_recv() while somebody watches
 * @qp: the QP
 * @wr: chain of work requests
 * @bad_wr: the first request that was not accepted; may be %NULL
 *
 * Context: Any.
 * Return: what the driver's post_recv method returns.
 */
int ib_post_recv_watched(struct ib_qp *qp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr)
{
	const struct ib_recv_wr first = wr ? *wr : (struct ib_recv_wr) {};
	unsigned int nr = nr_recv_wrs(wr);
	const struct ib_recv_wr *dummy;
	int ret;

	ret = qp->device->ops.post_recv(qp, wr, bad_wr ? : &dummy);
	trace_ib_post_recv(qp->device, "qp", qp->qp_num, &first, nr, ret);
	return ret;
}
EXPORT_SYMBOL(ib_post_recv_watched);

/**
 * ib_post_srq_recv_watched() - ib_post_srq_recv() while somebody watches
 * @srq: the SRQ
 * @wr: chain of work requests
 * @bad_wr: the first request that was not accepted; may be %NULL
 *
 * Context: Any.
 * Return: what the driver's post_srq_recv method returns.
 */
int ib_post_srq_recv_watched(struct ib_srq *srq, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad_wr)
{
	const struct ib_recv_wr first = wr ? *wr : (struct ib_recv_wr) {};
	unsigned int nr = nr_recv_wrs(wr);
	const struct ib_recv_wr *dummy;
	int ret;

	ret = srq->device->ops.post_srq_recv(srq, wr, bad_wr ? : &dummy);
	trace_ib_post_recv(srq->device, "srq", srq->res.id, &first, nr, ret);
	return ret;
}
EXPORT_SYMBOL(ib_post_srq_recv_watched);

/**
 * ib_poll_cq_watched() - ib_poll_cq() while somebody watches
 * @cq: the CQ
 * @num_entries: completions that fit into @wc
 * @wc: where to put them
 *
 * Context: Any.
 * Return: what the driver's poll_cq method returns.
 */
int ib_poll_cq_watched(struct ib_cq *cq, int num_entries, struct ib_wc *wc)
{
	int i, ret;

	/*
	 * The QP of a completion may be destroyed as soon as it has been
	 * polled. Its memory goes a grace period later, see ib_qp.rcu.
	 */
	rcu_read_lock();
	ret = cq->device->ops.poll_cq(cq, num_entries, wc);
	trace_ib_poll_cq(cq, num_entries, ret);
	for (i = 0; i < ret; i++)
		trace_ib_completion(cq, &wc[i]);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(ib_poll_cq_watched);

/**
 * ib_req_notify_cq_watched() - ib_req_notify_cq() while somebody watches
 * @cq: the CQ
 * @flags: which completions to be told of
 *
 * Context: Any.
 * Return: what the driver's req_notify_cq method returns.
 */
int ib_req_notify_cq_watched(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	int ret = cq->device->ops.req_notify_cq(cq, flags);

	trace_ib_req_notify_cq(cq, flags, ret);
	return ret;
}
EXPORT_SYMBOL(ib_req_notify_cq_watched);
