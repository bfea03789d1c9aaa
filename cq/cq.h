/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the completion queue layer gives the core.
 */
#ifndef KVERBS_CQ_H
#define KVERBS_CQ_H

#include <rdma/ib_verbs.h>

/**
 * struct ib_cq_context_ops - where the completions of a queue are polled
 * @name: for people
 * @armed: the queue asks for notifications
 * @init: prepares @cq; nothing can be scheduled yet. Returns 0 or -errno.
 *	Optional.
 * @schedule: makes the context poll @cq soon. Any context but NMI. Does nothing
 *	if it is scheduled already; if it is being polled, it is polled again.
 * @stop: returns when @cq is not polled and will not be, whatever is scheduled.
 *	Process context. Optional.
 */
struct ib_cq_context_ops {
	const char *name;
	bool armed;
	int (*init)(struct ib_cq *cq);
	void (*schedule)(struct ib_cq *cq);
	void (*stop)(struct ib_cq *cq);
};

/* Completions taken from a queue at a time. */
#define IB_CQ_BATCH	16

/* cq.c */
int ib_cq_poll(struct ib_cq *cq, int budget, struct ib_wc *wcs, int batch);
bool ib_cq_poll_and_arm(struct ib_cq *cq, int budget);

/* context.c */
int ib_cq_init(void);
void ib_cq_exit(void);
int ib_cq_device_init(struct ib_device *dev);
void ib_cq_device_cleanup(struct ib_device *dev);
const struct ib_cq_context_ops *ib_cq_context(enum ib_poll_context poll_ctx);

/* notify.c */
void ib_notify_init_cq(struct ib_cq *cq);
void ib_notify_init_qp(struct ib_qp *qp);
void ib_notify_quiesce(struct ib_notify *notify);
void ib_notify_fence(struct ib_notify *notify);
void ib_notify_revive(struct ib_notify *notify);

#endif
