/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a driver reports completions and asynchronous events of its objects.
 *
 * Consumers are promised that no callback runs inside one of their own verbs
 * calls, and that the completion handler of one completion queue never runs
 * twice at a time. A driver that reports through these calls, and through
 * ib_dispatch_event(), keeps both promises, from whatever context it calls: in a
 * method that a consumer is in, with locks held, in a hard interrupt or an NMI.
 * What it reports is put off to an irq_work or a work item, one at a time for each
 * object.
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

/* Follows the module parameter kverbs.cq_timing. */
DECLARE_STATIC_KEY_FALSE(ib_cq_timed);

/* True while the latency of completions is measured. */
static inline bool ib_cq_timing(void)
{
	return static_branch_unlikely(&ib_cq_timed);
}

/**
 * ib_cq_stamp() - the time at which a completion is written
 *
 * For &ib_wc.timestamp. Drivers that cannot know it leave that 0.
 *
 * Context: Any, NMI included.
 * Return: nanoseconds of ktime_get_mono_fast_ns(), or 0 while nobody measures;
 * then it costs one instruction.
 */
static inline u64 ib_cq_stamp(void)
{
	return ib_cq_timing() ? ktime_get_mono_fast_ns() : 0;
}

#endif
