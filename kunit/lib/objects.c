// SPDX-License-Identifier: GPL-2.0-only
/*
 * Verbs objects that are freed when the case ends, in the reverse order of their
 * creation.
 */
#include <rdma/ib_cache.h>
#include <rdma/restrack.h>

#include "lib/objects.h"

/**
 * kvt_end_device() - put a reference to a device
 * @ibdev: the device
 */
void kvt_end_device(void *ibdev)
{
	ib_device_put(ibdev);
}
EXPORT_SYMBOL_GPL(kvt_end_device);

/**
 * kvt_end_handler() - unregister an event handler
 * @handler: the handler
 */
void kvt_end_handler(void *handler)
{
	ib_unregister_event_handler(handler);
}
EXPORT_SYMBOL_GPL(kvt_end_handler);

/**
 * kvt_end_pd() - free a PD
 * @pd: the PD
 */
void kvt_end_pd(void *pd)
{
	ib_dealloc_pd(pd);
}
EXPORT_SYMBOL_GPL(kvt_end_pd);

/**
 * kvt_end_ah() - destroy an address handle
 * @ah: the address handle
 */
void kvt_end_ah(void *ah)
{
	rdma_destroy_ah(ah, 0);
}
EXPORT_SYMBOL_GPL(kvt_end_ah);

/**
 * kvt_end_alloc_cq() - free a CQ of ib_alloc_cq()
 * @cq: the CQ
 */
void kvt_end_alloc_cq(void *cq)
{
	ib_free_cq(cq);
}
EXPORT_SYMBOL_GPL(kvt_end_alloc_cq);

/**
 * kvt_end_cq() - destroy a CQ of ib_create_cq()
 * @cq: the CQ
 */
void kvt_end_cq(void *cq)
{
	ib_destroy_cq(cq);
}
EXPORT_SYMBOL_GPL(kvt_end_cq);

/**
 * kvt_end_srq() - destroy an SRQ
 * @srq: the SRQ
 */
void kvt_end_srq(void *srq)
{
	ib_destroy_srq(srq);
}
EXPORT_SYMBOL_GPL(kvt_end_srq);

/**
 * kvt_end_qp() - destroy a queue pair
 * @qp: the queue pair
 */
void kvt_end_qp(void *qp)
{
	ib_destroy_qp(qp);
}
EXPORT_SYMBOL_GPL(kvt_end_qp);

/**
 * kvt_end_mr() - free a memory region
 * @mr: the region
 */
void kvt_end_mr(void *mr)
{
	ib_dereg_mr(mr);
}
EXPORT_SYMBOL_GPL(kvt_end_mr);

/**
 * kvt_end_mw() - free a memory window
 * @mw: the window
 */
void kvt_end_mw(void *mw)
{
	ib_dealloc_mw(mw);
}
EXPORT_SYMBOL_GPL(kvt_end_mw);

/**
 * kvt_end_fmr() - free an FMR
 * @fmr: the FMR
 */
void kvt_end_fmr(void *fmr)
{
	ib_dealloc_fmr(fmr);
}
EXPORT_SYMBOL_GPL(kvt_end_fmr);

/**
 * kvt_complete_context() - a completion handler in the mock driver's own module
 * @cq: a CQ of ib_create_cq()
 * @context: struct completion that the handler completes
 */
void kvt_complete_context(struct ib_cq *cq, void *context)
{
	complete(context);
}
EXPORT_SYMBOL_GPL(kvt_complete_context);

/**
 * kvt_pd() - allocate a PD
 * @test: the running case, which is aborted on failure
 * @ibdev: the device
 *
 * Return: the PD.
 */
struct ib_pd *kvt_pd(struct kunit *test, struct ib_device *ibdev)
{
	return KVT_OWN(test, ib_alloc_pd(ibdev, 0), kvt_end_pd);
}
EXPORT_SYMBOL_GPL(kvt_pd);

/**
 * kvt_pd_put() - free the PD before the case ends
 * @test: the running case
 * @pd: from kvt_pd()
 */
void kvt_pd_put(struct kunit *test, struct ib_pd *pd)
{
	kunit_release_action(test, kvt_end_pd, pd);
}
EXPORT_SYMBOL_GPL(kvt_pd_put);

/**
 * kvt_cq() - allocate a CQ with ib_alloc_cq()
 * @test: the running case, which is aborted on failure
 * @ibdev: the device
 * @cqe: number of entries
 * @ctx: polling context
 *
 * Return: the CQ.
 */
struct ib_cq *kvt_cq(struct kunit *test, struct ib_device *ibdev, int cqe, enum ib_poll_context ctx)
{
	return KVT_OWN(test, ib_alloc_cq(ibdev, NULL, cqe, 0, ctx), kvt_end_alloc_cq);
}
EXPORT_SYMBOL_GPL(kvt_cq);

/**
 * kvt_cq_put() - free the CQ before the case ends
 * @test: the running case
 * @cq: from kvt_cq()
 */
void kvt_cq_put(struct kunit *test, struct ib_cq *cq)
{
	kunit_release_action(test, kvt_end_alloc_cq, cq);
}
EXPORT_SYMBOL_GPL(kvt_cq_put);

/**
 * kvt_srq() - create an SRQ that nobody is told events of
 * @test: the running case, which is aborted on failure
 * @pd: its PD
 * @max_wr: receives in it
 * @max_sge: elements of each
 *
 * Return: the SRQ.
 */
struct ib_srq *kvt_srq(struct kunit *test, struct ib_pd *pd, u32 max_wr, u32 max_sge)
{
	struct ib_srq_init_attr init = { .attr = { .max_wr = max_wr, .max_sge = max_sge } };

	return KVT_OWN(test, ib_create_srq(pd, &init), kvt_end_srq);
}
EXPORT_SYMBOL_GPL(kvt_srq);

/**
 * kvt_mr() - allocate an MR for fast registration
 * @test: the running case, which is aborted on failure
 * @pd: its PD
 * @max_num_sg: pages that it can hold
 *
 * Return: the MR.
 */
struct ib_mr *kvt_mr(struct kunit *test, struct ib_pd *pd, u32 max_num_sg)
{
	return KVT_OWN(test, ib_alloc_mr(pd, IB_MR_TYPE_MEM_REG, max_num_sg), kvt_end_mr);
}
EXPORT_SYMBOL_GPL(kvt_mr);

/**
 * kvt_qp() - create a QP
 * @test: the running case, which is aborted on failure
 * @pd: its PD
 * @init: attributes of the QP
 *
 * Return: the QP.
 */
struct ib_qp *kvt_qp(struct kunit *test, struct ib_pd *pd, struct ib_qp_init_attr *init)
{
	return KVT_OWN(test, ib_create_qp(pd, init), kvt_end_qp);
}
EXPORT_SYMBOL_GPL(kvt_qp);

/**
 * kvt_qp_put() - destroy the QP before the case ends
 * @test: the running case
 * @qp: from kvt_qp()
 */
void kvt_qp_put(struct kunit *test, struct ib_qp *qp)
{
	kunit_release_action(test, kvt_end_qp, qp);
}
EXPORT_SYMBOL_GPL(kvt_qp_put);

/**
 * kvt_qp_init() - fill in the attributes of a small RC QP
 * @init: filled in
 * @scq: CQ for sends
 * @rcq: CQ for receives
 */
void kvt_qp_init(struct ib_qp_init_attr *init, struct ib_cq *scq, struct ib_cq *rcq)
{
	memset(init, 0, sizeof(*init));
	init->qp_type = IB_QPT_RC;
	init->sq_sig_type = IB_SIGNAL_REQ_WR;
	init->send_cq = scq;
	init->recv_cq = rcq;
	init->cap.max_send_wr = 16;
	init->cap.max_recv_wr = 16;
	init->cap.max_send_sge = 2;
	init->cap.max_recv_sge = 2;
}
EXPORT_SYMBOL_GPL(kvt_qp_init);

/**
 * kvt_qp_to_init() - move a QP from RESET to INIT
 * @qp: the QP
 * @port: port number
 *
 * Return: the result of ib_modify_qp().
 */
int kvt_qp_to_init(struct ib_qp *qp, u32 port)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = port,
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE |
				   IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ,
	};

	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
				       IB_QP_PORT | IB_QP_ACCESS_FLAGS);
}
EXPORT_SYMBOL_GPL(kvt_qp_to_init);

/**
 * kvt_qp_to_err() - move a QP to the error state
 * @qp: the QP
 *
 * Return: the result of ib_modify_qp().
 */
int kvt_qp_to_err(struct ib_qp *qp)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	return ib_modify_qp(qp, &attr, IB_QP_STATE);
}
EXPORT_SYMBOL_GPL(kvt_qp_to_err);

/**
 * kvt_hold_gid() - take a reference on a GID, by a call from this module
 * @attr: the GID table entry, on which the caller has a reference
 */
void kvt_hold_gid(const struct ib_gid_attr *attr)
{
	rdma_hold_gid_attr(attr);
	/* Prevents a tail call, which would make the call one of the caller's module. */
	barrier();
}
EXPORT_SYMBOL_GPL(kvt_hold_gid);

/**
 * kvt_expect_kept() - expect that an object is still tracked, under its old number
 * @test: the running case
 * @ibdev: the device
 * @res: tracking entry of the object, whose destruction the driver has refused
 * @id: number of the object before the refusal
 */
void kvt_expect_kept(struct kunit *test, struct ib_device *ibdev,
		     struct rdma_restrack_entry *res, u32 id)
{
	struct rdma_restrack_entry *found = rdma_restrack_get_byid(ibdev, res->type, id);

	KUNIT_EXPECT_NE(test, 0, id);
	KUNIT_EXPECT_EQ(test, id, res->id);
	KUNIT_EXPECT_PTR_EQ(test, res, found);
	if (!IS_ERR(found))
		rdma_restrack_put(found);
}
EXPORT_SYMBOL_GPL(kvt_expect_kept);

/* Softirq, which may not sleep, is first; direct polling, which nothing schedules, is last. */
static const enum ib_poll_context contexts[] = {
	IB_POLL_SOFTIRQ, IB_POLL_THREAD, IB_POLL_WORKQUEUE,
	IB_POLL_UNBOUND_WORKQUEUE, IB_POLL_DIRECT,
};

static const void *next_context(const enum ib_poll_context *prev, char *desc, int first, int last)
{
	static const char *const names[] = {
		[IB_POLL_DIRECT] = "direct", [IB_POLL_SOFTIRQ] = "softirq",
		[IB_POLL_THREAD] = "thread", [IB_POLL_WORKQUEUE] = "workqueue",
		[IB_POLL_UNBOUND_WORKQUEUE] = "unbound",
	};
	const enum ib_poll_context *ctx = prev ? prev + 1 : &contexts[first];

	if (ctx > &contexts[last])
		return NULL;
	strscpy(desc, names[*ctx], KUNIT_PARAM_DESC_SIZE);
	return ctx;
}

/**
 * kvt_any_context() - parameters of a case that runs in every polling context
 * @prev: the previous context, or NULL
 * @desc: set to the name of the context
 *
 * Return: the next context, or NULL.
 */
const void *kvt_any_context(const void *prev, char *desc)
{
	return next_context(prev, desc, 0, 4);
}
EXPORT_SYMBOL_GPL(kvt_any_context);

/**
 * kvt_scheduled_context() - parameters of a case that runs in every context but direct polling
 * @prev: the previous context, or NULL
 * @desc: set to the name of the context
 *
 * Return: the next context, or NULL.
 */
const void *kvt_scheduled_context(const void *prev, char *desc)
{
	return next_context(prev, desc, 0, 3);
}
EXPORT_SYMBOL_GPL(kvt_scheduled_context);

/**
 * kvt_sleeping_context() - parameters of a case that runs in each context where done() may sleep
 * @prev: the previous context, or NULL
 * @desc: set to the name of the context
 *
 * Return: the next context, or NULL.
 */
const void *kvt_sleeping_context(const void *prev, char *desc)
{
	return next_context(prev, desc, 1, 3);
}
EXPORT_SYMBOL_GPL(kvt_sleeping_context);

/**
 * kvt_queued_context() - parameters of a case that runs in each context of a work queue
 * @prev: the previous context, or NULL
 * @desc: set to the name of the context
 *
 * Return: the next context, or NULL.
 */
const void *kvt_queued_context(const void *prev, char *desc)
{
	return next_context(prev, desc, 2, 3);
}
EXPORT_SYMBOL_GPL(kvt_queued_context);

/**
 * kvt_context() - the polling context that the case runs in
 * @test: the running case
 *
 * Return: the context.
 */
enum ib_poll_context kvt_context(struct kunit *test)
{
	return *(const enum ib_poll_context *)test->param_value;
}
EXPORT_SYMBOL_GPL(kvt_context);
