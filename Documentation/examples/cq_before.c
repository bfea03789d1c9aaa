// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions by hand: a handler, a work item that polls and arms, a count of
 * outstanding requests. cq_after.c does the same without these.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include "loopback.h"

#define FLOW_MESSAGES	64
#define FLOW_BATCH	16	/* completions polled at a time */
#define FLOW_BUDGET	256	/* and handled before others may run */

enum { FLOW_SEND, FLOW_RECV };

struct flow {
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_wc wc[FLOW_BATCH];
	int received;
	atomic_t pending;	/* requests, plus one for the poster */
	struct completion idle;	/* none is pending */
	struct work_struct work;
	spinlock_t lock;	/* guards what follows, and the queueing of work */
	bool closing;
};

static void flow_put(struct flow *flow)
{
	if (atomic_dec_and_test(&flow->pending))
		complete(&flow->idle);
}

static void flow_completed(struct flow *flow, const struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS)
		pr_warn("%s\n", ib_wc_status_msg(wc->status));
	else if (wc->wr_id == FLOW_RECV)
		flow->received++;
	flow_put(flow);
}

/* A work item never runs twice at a time, so nothing else polls. */
static void flow_poll(struct work_struct *work)
{
	struct flow *flow = container_of(work, struct flow, work);
	int i, n, left = FLOW_BUDGET;

	do {
		while ((n = ib_poll_cq(flow->cq, FLOW_BATCH, flow->wc)) > 0) {
			for (i = 0; i < n; i++)
				flow_completed(flow, &flow->wc[i]);
			left -= n;
			if (left <= 0) {
				queue_work(system_highpri_wq, work);
				return;
			}
		}
		/*
		 * A completion between the last poll and this call causes no
		 * notification.
		 */
	} while (ib_req_notify_cq(flow->cq, IB_CQ_NEXT_COMP | IB_CQ_REPORT_MISSED_EVENTS) > 0);
}

/* Runs in any context, perhaps with interrupts off. */
static void flow_handler(struct ib_cq *cq, void *context)
{
	struct flow *flow = context;
	unsigned long flags;

	spin_lock_irqsave(&flow->lock, flags);
	if (!flow->closing)
		queue_work(system_highpri_wq, &flow->work);
	spin_unlock_irqrestore(&flow->lock, flags);
}

static int flow_post(struct flow *flow)
{
	struct ib_recv_wr recv = { .wr_id = FLOW_RECV };
	struct ib_send_wr send = { .wr_id = FLOW_SEND, .opcode = IB_WR_SEND };
	int i, ret = 0;

	for (i = 0; !ret && i < 2 * FLOW_MESSAGES; i++) {
		atomic_inc(&flow->pending);
		if (i < FLOW_MESSAGES)
			ret = ib_post_recv(flow->qp, &recv, NULL);
		else
			ret = ib_post_send(flow->qp, &send, NULL);
		if (ret)
			flow_put(flow);
	}
	return ret;
}

static int flow_run(struct flow *flow)
{
	struct ib_qp_attr error = { .qp_state = IB_QPS_ERR };
	int ret;

	ret = ib_req_notify_cq(flow->cq, IB_CQ_NEXT_COMP) ?: flow_post(flow);
	/*
	 * Some requests may never complete by themselves; now they complete in
	 * error.
	 */
	if (ret)
		ib_modify_qp(flow->qp, &error, IB_QP_STATE);
	flow_put(flow);
	wait_for_completion(&flow->idle);
	return ret;
}

/* The handler may be about to queue work; the CQ must outlive that. */
static void flow_close(struct flow *flow)
{
	spin_lock_irq(&flow->lock);
	flow->closing = true;
	spin_unlock_irq(&flow->lock);
	cancel_work_sync(&flow->work);
	ib_destroy_cq(flow->cq);
}

static int flow_open(struct flow *flow, struct ib_pd *pd)
{
	struct ib_cq_init_attr attr = { .cqe = 2 * FLOW_MESSAGES };
	int ret;

	atomic_set(&flow->pending, 1);
	init_completion(&flow->idle);
	INIT_WORK(&flow->work, flow_poll);
	spin_lock_init(&flow->lock);
	flow->cq = ib_create_cq(pd->device, flow_handler, NULL, flow, &attr);
	if (IS_ERR(flow->cq))
		return PTR_ERR(flow->cq);
	flow->qp = loopback_create(pd, flow->cq, FLOW_MESSAGES);
	ret = PTR_ERR_OR_ZERO(flow->qp);
	if (!ret) {
		ret = flow_run(flow);
		ib_destroy_qp(flow->qp);
	}
	flow_close(flow);
	return ret;
}

static int before_add(struct ib_device *dev)
{
	struct flow *flow = kzalloc(sizeof(*flow), GFP_KERNEL);
	struct ib_pd *pd = ib_alloc_pd(dev, 0);
	int ret = flow ? PTR_ERR_OR_ZERO(pd) : -ENOMEM;

	if (!ret)
		ret = flow_open(flow, pd);
	if (!ret)
		pr_info("%d messages on %s\n", flow->received, dev_name(&dev->dev));
	if (!IS_ERR(pd))
		ib_dealloc_pd(pd);
	kfree(flow);
	return ret;
}

static struct ib_client before = { .name = "cq_before", .add = before_add };
module_driver(before, ib_register_client, ib_unregister_client);
MODULE_DESCRIPTION("Completions by hand");
MODULE_LICENSE("GPL");
