/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a driver reports completions and asynchronous events of its objects, and changes for
 * which there is no event.
 *
 * Consumers are promised that no callback runs inside one of their own verbs
 * calls, and that the completion handler of one completion queue never runs
 * twice at a time. A driver that reports through these calls, and through
 * ib_dispatch_event(), keeps both promises in whatever context it calls them: inside a
 * method that a consumer has called, with locks held, in a hard interrupt, or in an NMI
 * where the architecture's irq_work is NMI-safe. Each report is deferred to an
 * irq_work, to a work item or to what polls the CQ, one at a time for each object.
 *
 * Outside of NMI, ib_cq_notify() and ib_dispatch_event() may wake a thread or queue a
 * work item. So a driver does not call them under a lock of the scheduler or of a
 * workqueue.
 */
#ifndef KVERBS_COMPLETION_H
#define KVERBS_COMPLETION_H

#include <linux/jump_label.h>
#include <linux/ktime.h>
#include <rdma/ib_verbs.h>

void ib_cq_notify(struct ib_cq *cq);
void ib_cq_notify_event(struct ib_cq *cq, enum ib_event_type event);
void ib_qp_notify_event(struct ib_qp *qp, enum ib_event_type event);
void ib_srq_notify_event(struct ib_srq *srq, enum ib_event_type event);
void ib_port_attr_changed(struct ib_device *device, u32 port_num);

/* Set by the module parameter kverbs.cq_timing. */
DECLARE_STATIC_KEY_FALSE(ib_cq_timed);

/* True while the CQ layer measures the latency of completions. */
static inline bool ib_cq_timing(void)
{
	return static_branch_unlikely(&ib_cq_timed);
}

/**
 * ib_cq_stamp() - get the time stamp for a completion that is being written
 *
 * For &ib_wc.timestamp. A driver that cannot know when the completion was written
 * leaves that member 0.
 *
 * Context: Any, NMI included.
 * Return: ktime_get_mono_fast_ns(), in nanoseconds; 0 while latencies are not
 * measured, in which case the call costs one instruction.
 */
static inline u64 ib_cq_stamp(void)
{
	return ib_cq_timing() ? ktime_get_mono_fast_ns() : 0;
}

/**
 * ib_wc_set_stamp() - set the time at which a completion was written
 * @wc: the completion, as a driver hands it to a poller
 * @stamp: what ib_cq_stamp() returned when it was written; 0 if that is not known
 *
 * Context: Any, NMI included.
 */
static inline void ib_wc_set_stamp(struct ib_wc *wc, u64 stamp)
{
	wc->timestamp = stamp;
}

#endif
