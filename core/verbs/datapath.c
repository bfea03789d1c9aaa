// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watched forms of the data path calls.
 *
 * ib_post_send() and the like test one static key and call the driver. While they are
 * watched - a tracepoint is enabled, or the contract checker is on - the key routes
 * them through here.
 */
#include <linux/export.h>

#include "../contract/contract.h"
#include "../contract/device_priv.h"
#include "../contract/invalid.h"
#include "../contract/trace.h"
#include "verbs.h"

static unsigned int count_send_wrs(const struct ib_send_wr *wr)
{
	unsigned int nr = 0;

	for (; wr; wr = wr->next)
		nr++;
	return nr;
}

static unsigned int count_recv_wrs(const struct ib_recv_wr *wr)
{
	unsigned int nr = 0;

	for (; wr; wr = wr->next)
		nr++;
	return nr;
}

/*
 * Whether the consumer has put the QP into a state in which it may not post yet (IBTA vol.
 * 1, 10.8.2 and 10.3.1): requests to send may be posted from RTS on, to receive from INIT
 * on.
 */
static __always_inline bool may_not_send(const struct ib_qp *qp)
{
	return ib_qp_known_state(qp) < IB_QPS_RTS;
}

static __always_inline bool may_not_receive(const struct ib_qp *qp)
{
	return ib_qp_known_state(qp) == IB_QPS_RESET;
}

static noinline void report_bad_state(struct ib_qp *qp, const char *what, unsigned long site)
{
	ib_contract_report(IB_RULE_STATE, qp->device, &qp->res, ib_contract_culprit(site), site, 1,
			   "%s in state %s", what, ib_qp_state_name(ib_qp_known_state(qp)));
}

static noinline int post_send_checked(struct ib_qp *qp, const struct ib_send_wr *wr,
				      const struct ib_send_wr **bad_wr, unsigned long site)
{
	/*
	 * On iWARP it is the driver that moves a QP to RTS, when the connection is established,
	 * so the state that the consumer has set says nothing.
	 */
	if (may_not_send(qp) &&
	    !rdma_protocol_iwarp(qp->device, rdma_start_port(qp->device)))
		report_bad_state(qp, "post_send", site);
	return IB_IN_FRAME(qp->device, &qp->res, "post_send", IB_FRAME_ATOMIC, site,
			   qp->device->ops.post_send(qp, wr, bad_wr));
}

static __always_inline int do_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
					const struct ib_send_wr **bad_wr, unsigned long site)
{
	const struct ib_device *dev = qp->device;

	if (!ib_contract_on())
		return dev->ops.post_send(qp, wr, bad_wr);
	if (unlikely(may_not_send(qp) || ib_contract_suspects(dev)))
		return post_send_checked(qp, wr, bad_wr, site);
	return IB_FAST_METHOD(dev, &qp->res, "post_send", site,
			      dev->ops.post_send(qp, wr, bad_wr),
			      post_send_checked(qp, wr, bad_wr, site));
}

static noinline int post_recv_checked(struct ib_qp *qp, const struct ib_recv_wr *wr,
				      const struct ib_recv_wr **bad_wr, unsigned long site)
{
	if (may_not_receive(qp))
		report_bad_state(qp, "post_recv", site);
	return IB_IN_FRAME(qp->device, &qp->res, "post_recv", IB_FRAME_ATOMIC, site,
			   qp->device->ops.post_recv(qp, wr, bad_wr));
}

static __always_inline int do_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
					const struct ib_recv_wr **bad_wr, unsigned long site)
{
	const struct ib_device *dev = qp->device;

	if (!ib_contract_on())
		return dev->ops.post_recv(qp, wr, bad_wr);
	if (unlikely(may_not_receive(qp) || ib_contract_suspects(dev)))
		return post_recv_checked(qp, wr, bad_wr, site);
	return IB_FAST_METHOD(dev, &qp->res, "post_recv", site,
			      dev->ops.post_recv(qp, wr, bad_wr),
			      post_recv_checked(qp, wr, bad_wr, site));
}

static noinline int post_srq_recv_checked(struct ib_srq *srq, const struct ib_recv_wr *wr,
					  const struct ib_recv_wr **bad_wr, unsigned long site)
{
	return IB_IN_FRAME(srq->device, &srq->res, "post_srq_recv", IB_FRAME_ATOMIC, site,
			   srq->device->ops.post_srq_recv(srq, wr, bad_wr));
}

static __always_inline int do_post_srq_recv(struct ib_srq *srq, const struct ib_recv_wr *wr,
					    const struct ib_recv_wr **bad_wr,
					    unsigned long site)
{
	const struct ib_device *dev = srq->device;

	if (!ib_contract_on())
		return dev->ops.post_srq_recv(srq, wr, bad_wr);
	if (unlikely(ib_contract_suspects(dev)))
		return post_srq_recv_checked(srq, wr, bad_wr, site);
	return IB_FAST_METHOD(dev, &srq->res, "post_srq_recv", site,
			      dev->ops.post_srq_recv(srq, wr, bad_wr),
			      post_srq_recv_checked(srq, wr, bad_wr, site));
}

/*
 * Once posted, a request belongs to the code that handles its completion and
 * may be gone, so what the tracepoints show of it is copied first.
 */
static noinline int post_send_traced(struct ib_qp *qp, const struct ib_send_wr *wr,
				     const struct ib_send_wr **bad_wr, unsigned long site)
{
	const struct ib_send_wr first = wr ? *wr : (struct ib_send_wr) {};
	unsigned int nr = count_send_wrs(wr);
	int ret;

	ret = do_post_send(qp, wr, bad_wr, site);
	trace_ib_post_send(qp, &first, nr, ret);
	return ret;
}

static noinline int post_recv_traced(struct ib_qp *qp, const struct ib_recv_wr *wr,
				     const struct ib_recv_wr **bad_wr, unsigned long site)
{
	const struct ib_recv_wr first = wr ? *wr : (struct ib_recv_wr) {};
	unsigned int nr = count_recv_wrs(wr);
	int ret;

	ret = do_post_recv(qp, wr, bad_wr, site);
	trace_ib_post_recv(qp->device, "qp", qp->qp_num, &first, nr, ret);
	return ret;
}

static noinline int post_srq_recv_traced(struct ib_srq *srq, const struct ib_recv_wr *wr,
					 const struct ib_recv_wr **bad_wr, unsigned long site)
{
	const struct ib_recv_wr first = wr ? *wr : (struct ib_recv_wr) {};
	unsigned int nr = count_recv_wrs(wr);
	int ret;

	ret = do_post_srq_recv(srq, wr, bad_wr, site);
	trace_ib_post_recv(srq->device, "srq", srq->res.id, &first, nr, ret);
	return ret;
}

/*
 * Called by drivers, which know what they refuse, and where: a test in ib_post_send() would slow
 * down every post.
 */

/**
 * ib_post_send_failed() - log that a driver's post_send method refuses a request
 * @qp: the QP
 * @bad: the request, not posted
 * @err: what the method is about to return; only -EINVAL is logged
 *
 * Context: Any.
 */
void ib_post_send_failed(const struct ib_qp *qp, const struct ib_send_wr *bad, int err)
{
	const struct ib_verb_call call = {
		.dev = qp->device, .res = &qp->res, .what = "post_send",
	};

	if (err != -EINVAL)
		return;
	if (may_not_send(qp))
		ib_invalid(&call, "the QP is in state %s", ib_qp_state_name(ib_qp_known_state(qp)));
	else if (bad->num_sge < 0 || bad->num_sge > qp->max_write_sge)
		ib_invalid(&call, "wr_id %#llx: num_sge %d: the QP takes %u", bad->wr_id,
			   bad->num_sge, qp->max_write_sge);
	else
		ib_invalid(&call, "wr_id %#llx: refused by the driver (opcode %d, send_flags %#x, num_sge %d)",
			   bad->wr_id, bad->opcode, bad->send_flags, bad->num_sge);
}
EXPORT_SYMBOL(ib_post_send_failed);

static void log_bad_recv(const struct ib_verb_call *call, const struct ib_recv_wr *bad)
{
	ib_invalid(call, "wr_id %#llx: refused by the driver (num_sge %d)", bad->wr_id,
		   bad->num_sge);
}

/**
 * ib_post_recv_failed() - log that a driver's post_recv method refuses a
 *	request
 * @qp: the QP
 * @bad: the request, not posted
 * @err: what the driver's post_recv method is about to return
 *
 * Context: Any.
 */
void ib_post_recv_failed(const struct ib_qp *qp, const struct ib_recv_wr *bad, int err)
{
	const struct ib_verb_call call = {
		.dev = qp->device, .res = &qp->res, .what = "post_recv",
	};

	if (err != -EINVAL)
		return;
	if (may_not_receive(qp))
		ib_invalid(&call, "the QP is in state RESET");
	else
		log_bad_recv(&call, bad);
}
EXPORT_SYMBOL(ib_post_recv_failed);

/**
 * ib_post_srq_recv_failed() - log that a driver's post_srq_recv method refuses
 *	a request
 * @srq: the SRQ
 * @bad: the request, not posted
 * @err: what the driver's post_srq_recv method is about to return
 *
 * Context: Any.
 */
void ib_post_srq_recv_failed(const struct ib_srq *srq, const struct ib_recv_wr *bad, int err)
{
	const struct ib_verb_call call = {
		.dev = srq->device, .res = &srq->res, .what = "post_srq_recv",
	};

	if (err == -EINVAL)
		log_bad_recv(&call, bad);
}
EXPORT_SYMBOL(ib_post_srq_recv_failed);

/**
 * ib_post_send_watched() - ib_post_send() while it is watched
 * @qp: the QP
 * @wr: chain of work requests
 * @bad_wr: the first request that was not accepted
 *
 * Context: Any.
 * Return: what the driver's post_send method returns.
 */
int ib_post_send_watched(struct ib_qp *qp, const struct ib_send_wr *wr,
			 const struct ib_send_wr **bad_wr)
{
	if (trace_ib_post_send_enabled())
		return post_send_traced(qp, wr, bad_wr, _RET_IP_);
	return do_post_send(qp, wr, bad_wr, _RET_IP_);
}
EXPORT_SYMBOL(ib_post_send_watched);

/* ib_post_send() on behalf of the caller at @site. */
int ib_post_send_for(struct ib_qp *qp, const struct ib_send_wr *wr, unsigned long site)
{
	const struct ib_send_wr *bad;

	if (trace_ib_post_send_enabled())
		return post_send_traced(qp, wr, &bad, site);
	return do_post_send(qp, wr, &bad, site);
}

/* Likewise. */
int ib_post_recv_for(struct ib_qp *qp, const struct ib_recv_wr *wr, unsigned long site)
{
	const struct ib_recv_wr *bad;

	if (trace_ib_post_recv_enabled())
		return post_recv_traced(qp, wr, &bad, site);
	return do_post_recv(qp, wr, &bad, site);
}

/**
 * ib_post_recv_watched() - ib_post_recv() while it is watched
 * @qp: the QP
 * @wr: chain of work requests
 * @bad_wr: the first request that was not accepted
 *
 * Context: Any.
 * Return: what the driver's post_recv method returns.
 */
int ib_post_recv_watched(struct ib_qp *qp, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad_wr)
{
	if (trace_ib_post_recv_enabled())
		return post_recv_traced(qp, wr, bad_wr, _RET_IP_);
	return do_post_recv(qp, wr, bad_wr, _RET_IP_);
}
EXPORT_SYMBOL(ib_post_recv_watched);

/**
 * ib_post_srq_recv_watched() - ib_post_srq_recv() while it is watched
 * @srq: the SRQ
 * @wr: chain of work requests
 * @bad_wr: the first request that was not accepted
 *
 * Context: Any.
 * Return: what the driver's post_srq_recv method returns.
 */
int ib_post_srq_recv_watched(struct ib_srq *srq, const struct ib_recv_wr *wr,
			     const struct ib_recv_wr **bad_wr)
{
	if (trace_ib_post_recv_enabled())
		return post_srq_recv_traced(srq, wr, bad_wr, _RET_IP_);
	return do_post_srq_recv(srq, wr, bad_wr, _RET_IP_);
}
EXPORT_SYMBOL(ib_post_srq_recv_watched);

/**
 * ib_map_phys_fmr_watched() - ib_map_phys_fmr() while it is watched
 * @fmr: the FMR
 * @page_list: DMA addresses of pages
 * @list_len: pages
 * @iova: address of the first byte
 *
 * Context: Any.
 * Return: what the driver's map_phys_fmr method returns.
 */
int ib_map_phys_fmr_watched(struct ib_fmr *fmr, u64 *page_list, int list_len, u64 iova)
{
	int ret = IB_ATOMIC_METHOD(fmr->device, &fmr->res, "map_phys_fmr",
				   fmr->device->ops.map_phys_fmr(fmr, page_list, list_len, iova));

	if (!ret && !fmr->lkey && !fmr->rkey)
		ib_output_missing(fmr->device, &fmr->res, "map_phys_fmr", "returned no keys", _RET_IP_);
	return ret;
}
EXPORT_SYMBOL(ib_map_phys_fmr_watched);
