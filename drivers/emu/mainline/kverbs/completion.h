/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How the software HCA reports completions and asynchronous events to mainline's core: by
 * the calls that kverbs' own core has for that, with the same promises to consumers. See
 * core_mainline.c.
 */
#ifndef KVERBS_COMPLETION_H
#define KVERBS_COMPLETION_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

void ib_cq_notify(struct ib_cq *cq);
void ib_cq_notify_event(struct ib_cq *cq, enum ib_event_type event);
void ib_qp_notify_event(struct ib_qp *qp, enum ib_event_type event);
void ib_srq_notify_event(struct ib_srq *srq, enum ib_event_type event);
void ib_port_attr_changed(struct ib_device *device, u32 port_num);

/* Mainline's completions tell no time. */
static inline bool ib_cq_timing(void)
{
	return false;
}

static inline u64 ib_cq_stamp(void)
{
	return 0;
}

static inline void ib_wc_set_stamp(struct ib_wc *wc, u64 stamp)
{
}

#endif
