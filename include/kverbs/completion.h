/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a driver reports completions and asynchronous events of its objects.
 *
 * Consumers are promised that no callback runs inside one of their own verbs
 * calls, and that the completion handler of one completion queue never runs
 * twice at a time. A driver that reports through these calls keeps both
 * promises, from whatever context it calls.
 */
#ifndef KVERBS_COMPLETION_H
#define KVERBS_COMPLETION_H

#include <rdma/ib_verbs.h>

void ib_cq_notify(struct ib_cq *cq);
void ib_cq_notify_event(struct ib_cq *cq, enum ib_event_type event);
void ib_qp_notify_event(struct ib_qp *qp, enum ib_event_type event);

#endif
