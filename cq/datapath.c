// SPDX-License-Identifier: GPL-2.0-only
/*
 * The watched forms of the calls that poll and arm a CQ; see core/verbs/datapath.c.
 */
#include <linux/export.h>
#include <linux/rcupdate.h>

#include "../core/contract/contract.h"
#include "../core/contract/trace.h"

/**
 * ib_get_vector_affinity_watched() - ib_get_vector_affinity() while it is watched
 * @device: the device, with the method
 * @comp_vector: completion vector of the device
 *
 * Context: Any.
 * Return: what the driver's get_vector_affinity method returns.
 */
const struct cpumask *ib_get_vector_affinity_watched(struct ib_device *device, int comp_vector)
{
	return IB_ATOMIC_METHOD(device, NULL, "get_vector_affinity",
				device->ops.get_vector_affinity(device, comp_vector));
}
EXPORT_SYMBOL(ib_get_vector_affinity_watched);

/* Checks the completions that a driver returned. */
static void check_completions(struct ib_cq *cq, int asked, const struct ib_wc *wc, int got,
			      unsigned long site)
{
	int i;

	if (got > asked) {
		ib_output_missing(cq->device, &cq->res, "poll_cq",
				  "returned more completions than asked for", site);
		return;
	}
	/* No QP uses the CQ, so none could have caused them. */
	if (!atomic_read(&cq->usecnt))
		return;
	for (i = 0; i < got; i++)
		if (!wc[i].qp)
			ib_output_missing(cq->device, &cq->res, "poll_cq",
					  "named no QP of a completion", site);
}

/**
 * ib_poll_cq_watched() - ib_poll_cq() while it is watched
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
	 * The QP of a completion may be destroyed as soon as the completion has
	 * been polled. Its memory is freed a grace period later, see ib_qp.rcu.
	 */
	rcu_read_lock();
	ret = IB_ATOMIC_METHOD(cq->device, &cq->res, "poll_cq",
			       cq->device->ops.poll_cq(cq, num_entries, wc));
	if (ib_contract_on() && ret > 0)
		check_completions(cq, num_entries, wc, ret, _RET_IP_);
	trace_ib_poll_cq(cq, num_entries, ret);
	for (i = 0; i < min(ret, num_entries); i++)
		trace_ib_completion(cq, &wc[i]);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(ib_poll_cq_watched);

/**
 * ib_req_notify_cq_watched() - ib_req_notify_cq() while it is watched
 * @cq: the CQ
 * @flags: which completions to notify of
 *
 * Context: Any.
 * Return: what the driver's req_notify_cq method returns.
 */
int ib_req_notify_cq_watched(struct ib_cq *cq, enum ib_cq_notify_flags flags)
{
	int ret = IB_ATOMIC_METHOD(cq->device, &cq->res, "req_notify_cq",
				   cq->device->ops.req_notify_cq(cq, flags));

	trace_ib_req_notify_cq(cq, flags, ret);
	return ret;
}
EXPORT_SYMBOL(ib_req_notify_cq_watched);
