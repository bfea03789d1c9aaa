// SPDX-License-Identifier: GPL-2.0-only
/*
 * Asynchronous events of QPs and SRQs, for the handlers that their consumers gave. See
 * cq/notify.c for how they are deferred.
 */
#include <linux/export.h>
#include <linux/irq_work.h>
#include <linux/slab.h>
#include <kverbs/completion.h>
#include <rdma/ib_verbs.h>

#include "../../cq/notify.h"
#include "verbs.h"

#define QP_EVENTS	(BIT(IB_EVENT_QP_FATAL) | BIT(IB_EVENT_QP_REQ_ERR) |	\
			 BIT(IB_EVENT_QP_ACCESS_ERR) | BIT(IB_EVENT_COMM_EST) |	\
			 BIT(IB_EVENT_SQ_DRAINED) | BIT(IB_EVENT_PATH_MIG) |	\
			 BIT(IB_EVENT_PATH_MIG_ERR) |				\
			 BIT(IB_EVENT_QP_LAST_WQE_REACHED))
#define SRQ_EVENTS	(BIT(IB_EVENT_SRQ_ERR) | BIT(IB_EVENT_SRQ_LIMIT_REACHED))

static void ib_notify_qp_work(struct irq_work *work)
{
	struct ib_qp *qp = container_of(work, struct ib_qp, notify.work);
	struct ib_event event = { .device = qp->device, .element.qp = qp };

	ib_notify_events(&qp->notify, &event, qp->event_handler, qp->qp_context);
}

static void ib_notify_srq_work(struct irq_work *work)
{
	struct ib_srq *srq = container_of(work, struct ib_srq, notify.work);
	struct ib_event event = { .device = srq->device, .element.srq = srq };

	ib_notify_events(&srq->notify, &event, srq->event_handler, srq->srq_context);
}

void ib_notify_init_qp(struct ib_qp *qp)
{
	ib_notify_init(&qp->notify, ib_notify_qp_work);
}

void ib_notify_init_srq(struct ib_srq *srq)
{
	ib_notify_init(&srq->notify, ib_notify_srq_work);
}

static void ib_notify_qp_rcu(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct ib_qp, rcu));
}

static void ib_notify_srq_rcu(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct ib_srq, rcu));
}

void ib_notify_free_qp(struct ib_qp *qp)
{
	ib_notify_free(qp, ib_notify_qp_rcu);
}

void ib_notify_free_srq(struct ib_srq *srq)
{
	ib_notify_free(srq, ib_notify_srq_rcu);
}

/**
 * ib_qp_notify_event() - report an asynchronous event of a QP
 * @qp: the QP
 * @event: the event, one that names a QP; others are dropped with a warning
 *
 * The consumer's event handler runs later. An event reported again before that
 * is delivered once; different events are delivered in the order of their
 * numbers.
 *
 * A driver must not call this once its destroy_qp method has returned, nor for
 * %IB_EVENT_QP_LAST_WQE_REACHED once its modify_qp method has put the QP into RESET: an
 * event of the QP's previous life would end the wait of ib_drain_qp() in the next one.
 *
 * Context: Any, NMI included.
 */
void ib_qp_notify_event(struct ib_qp *qp, enum ib_event_type event)
{
	ib_notify_raise_event(&qp->notify, qp->device, event, QP_EVENTS);
}
EXPORT_SYMBOL_GPL(ib_qp_notify_event);

/**
 * ib_srq_notify_event() - report an asynchronous event of an SRQ
 * @srq: the SRQ
 * @event: %IB_EVENT_SRQ_LIMIT_REACHED or %IB_EVENT_SRQ_ERR; others are dropped with
 *	a warning
 *
 * The consumer's event handler runs later. An event reported again before that
 * is delivered once; different events are delivered in the order of their
 * numbers.
 *
 * A driver must not call this once its destroy_srq method has returned.
 *
 * Context: Any, NMI included.
 */
void ib_srq_notify_event(struct ib_srq *srq, enum ib_event_type event)
{
	ib_notify_raise_event(&srq->notify, srq->device, event, SRQ_EVENTS);
}
EXPORT_SYMBOL_GPL(ib_srq_notify_event);
