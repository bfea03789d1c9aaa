// SPDX-License-Identifier: GPL-2.0-only
/* What both ends of a connection have: a buffer, and a queue pair of the CM ID's device. */
#include "echo.h"

/* The address of the ID is resolved, or it is that of a request. */
int echo_open(struct echo *echo, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		/* One for a message, one for ib_drain_qp(). */
		.cap = { .max_send_wr = 2, .max_recv_wr = 2,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	int ret = -ENOMEM;

	echo->id = id;
	echo->buf = kzalloc(ECHO_BYTES, GFP_KERNEL);
	if (!echo->buf)
		return ret;
	echo->sge.length = ECHO_BYTES;
	echo->sge.addr = ib_dma_map_single(id->device, echo->buf, ECHO_BYTES, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(id->device, echo->sge.addr))
		goto err_buf;
	echo->pd = ib_alloc_pd(id->device, 0);
	ret = PTR_ERR_OR_ZERO(echo->pd);
	if (ret)
		goto err_map;
	echo->sge.lkey = echo->pd->local_dma_lkey;
	echo->cq = ib_alloc_cq_any(id->device, echo, 4, IB_POLL_WORKQUEUE);
	ret = PTR_ERR_OR_ZERO(echo->cq);
	if (ret)
		goto err_pd;
	attr.send_cq = echo->cq;
	attr.recv_cq = echo->cq;
	ret = rdma_create_qp(id, echo->pd, &attr);
	if (ret)
		goto err_cq;
	return 0;

err_cq:
	ib_free_cq(echo->cq);
err_pd:
	ib_dealloc_pd(echo->pd);
err_map:
	ib_dma_unmap_single(id->device, echo->sge.addr, ECHO_BYTES, DMA_BIDIRECTIONAL);
err_buf:
	kfree(echo->buf);
	return ret;
}

/* The ID stays, for the caller to destroy. */
void echo_close(struct echo *echo)
{
	struct ib_device *dev = echo->id->device;

	rdma_disconnect(echo->id);
	ib_drain_qp(echo->id->qp);
	rdma_destroy_qp(echo->id);
	ib_free_cq(echo->cq);
	ib_dealloc_pd(echo->pd);
	ib_dma_unmap_single(dev, echo->sge.addr, ECHO_BYTES, DMA_BIDIRECTIONAL);
	kfree(echo->buf);
}

int echo_post_recv(struct echo *echo)
{
	struct ib_recv_wr wr = { .wr_cqe = &echo->recv, .sg_list = &echo->sge, .num_sge = 1 };

	ib_dma_sync_single_for_device(echo->id->device, echo->sge.addr, ECHO_BYTES,
				      DMA_FROM_DEVICE);
	return ib_post_recv(echo->id->qp, &wr, NULL);
}

int echo_post_send(struct echo *echo)
{
	struct ib_send_wr wr = { .wr_cqe = &echo->send, .sg_list = &echo->sge, .num_sge = 1,
				 .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED };

	ib_dma_sync_single_for_device(echo->id->device, echo->sge.addr, ECHO_BYTES,
				      DMA_TO_DEVICE);
	return ib_post_send(echo->id->qp, &wr, NULL);
}
