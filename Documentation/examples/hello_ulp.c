// SPDX-License-Identifier: GPL-2.0-only
/* Hello, verbs: on every device a queue pair sends itself a number. */
#include <linux/module.h>
#include <rdma/ib_verbs.h>
#include "loopback.h"

/* The CQ layer polls, and calls this for each completion. */
static void hello_done(struct ib_cq *cq, struct ib_wc *wc)
{
	pr_info("hello from %s: %s, %u\n", dev_name(&cq->device->dev),
		ib_wc_status_msg(wc->status), be32_to_cpu(wc->ex.imm_data));
	complete(cq->cq_context);
}

static int hello_add(struct ib_device *dev)
{
	DECLARE_COMPLETION_ONSTACK(done);
	struct ib_cqe cqe = { .done = hello_done };
	struct ib_recv_wr recv = { .wr_cqe = &cqe };
	struct ib_send_wr send = { .wr_cqe = &cqe, .opcode = IB_WR_SEND_WITH_IMM,
				   .ex.imm_data = cpu_to_be32(42) };
	struct ib_pd *pd = ib_alloc_pd(dev, 0);
	struct ib_cq *cq = ib_alloc_cq(dev, &done, 8, 0, IB_POLL_WORKQUEUE);
	struct ib_qp_init_attr attr = { .qp_type = IB_QPT_RC, .send_cq = cq, .recv_cq = cq,
					.cap = { .max_send_wr = 2, .max_recv_wr = 2 } };
	struct ib_qp *qp = IS_ERR(pd) || IS_ERR(cq) ? ERR_PTR(-ENOMEM) : ib_create_qp(pd, &attr);
	int ret = PTR_ERR_OR_ZERO(qp);

	if (!ret) {
		ret = loopback_connect(qp, 1) ?: ib_post_recv(qp, &recv, NULL) ?:
		      ib_post_send(qp, &send, NULL);
		if (!ret)
			wait_for_completion(&done);
		ib_drain_qp(qp);	/* nothing refers to cqe any more */
		ib_destroy_qp(qp);
	}
	if (!IS_ERR(cq))
		ib_free_cq(cq);
	if (!IS_ERR(pd))
		ib_dealloc_pd(pd);
	return ret;
}

static struct ib_client hello = { .name = "hello", .add = hello_add };
module_driver(hello, ib_register_client, ib_unregister_client);
MODULE_DESCRIPTION("Hello, verbs");
MODULE_LICENSE("GPL");
