// SPDX-License-Identifier: GPL-2.0-only
/*
 * Completions by the CQ layer, which polls, arms, and calls a function for
 * each. cq_before.c does the same by hand.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/completion.h>
#include <linux/module.h>
#include "loopback.h"

#define FLOW_MESSAGES	64

struct flow {
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_cqe sent;
	struct ib_cqe came;
	int received;
	int left;		/* done() never runs twice at a time for a CQ */
	struct completion idle;
};

static void flow_completed(struct flow *flow, const struct ib_wc *wc)
{
	if (wc->status != IB_WC_SUCCESS)
		pr_warn("%s\n", ib_wc_status_msg(wc->status));
	if (!--flow->left)
		complete(&flow->idle);
}

static void flow_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	flow_completed(container_of(wc->wr_cqe, struct flow, sent), wc);
}

static void flow_came(struct ib_cq *cq, struct ib_wc *wc)
{
	struct flow *flow = container_of(wc->wr_cqe, struct flow, came);

	flow->received += wc->status == IB_WC_SUCCESS;
	flow_completed(flow, wc);
}

static int flow_post(struct flow *flow)
{
	struct ib_recv_wr recv = { .wr_cqe = &flow->came };
	struct ib_send_wr send = { .wr_cqe = &flow->sent, .opcode = IB_WR_SEND };
	int i, ret = 0;

	for (i = 0; !ret && i < 2 * FLOW_MESSAGES; i++) {
		if (i < FLOW_MESSAGES)
			ret = ib_post_recv(flow->qp, &recv, NULL);
		else
			ret = ib_post_send(flow->qp, &send, NULL);
	}
	return ret;
}

static int flow_run(struct flow *flow)
{
	int ret = flow_post(flow);

	if (!ret)
		wait_for_completion(&flow->idle);
	ib_drain_qp(flow->qp);
	return ret;
}

static int flow_open(struct flow *flow, struct ib_pd *pd)
{
	int ret;

	flow->sent.done = flow_sent;
	flow->came.done = flow_came;
	flow->left = 2 * FLOW_MESSAGES;
	init_completion(&flow->idle);
	/* One more each way for ib_drain_qp(). */
	flow->cq = ib_alloc_cq(pd->device, flow, 2 * FLOW_MESSAGES + 2, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(flow->cq))
		return PTR_ERR(flow->cq);
	flow->qp = loopback_create(pd, flow->cq, FLOW_MESSAGES);
	ret = PTR_ERR_OR_ZERO(flow->qp);
	if (!ret) {
		ret = flow_run(flow);
		ib_destroy_qp(flow->qp);
	}
	ib_free_cq(flow->cq);
	return ret;
}

static int after_add(struct ib_device *dev)
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

static struct ib_client after = { .name = "cq_after", .add = after_add };
module_driver(after, ib_register_client, ib_unregister_client);
MODULE_DESCRIPTION("Completions by the CQ layer");
MODULE_LICENSE("GPL");
