// SPDX-License-Identifier: GPL-2.0-only
/* What both ends of a connection have: two buffers, and a queue pair of the CM ID's device. */
#include "echo.h"

static int map_buffers(struct echo *echo, struct ib_device *dev)
{
	echo->in_addr = ib_dma_map_single(dev, echo->in, ECHO_BYTES, DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(dev, echo->in_addr))
		return -ENOMEM;
	echo->out_addr = ib_dma_map_single(dev, echo->out, ECHO_BYTES, DMA_TO_DEVICE);
	if (!ib_dma_mapping_error(dev, echo->out_addr))
		return 0;
	ib_dma_unmap_single(dev, echo->in_addr, ECHO_BYTES, DMA_FROM_DEVICE);
	return -ENOMEM;
}

static void unmap_buffers(struct echo *echo, struct ib_device *dev)
{
	ib_dma_unmap_single(dev, echo->out_addr, ECHO_BYTES, DMA_TO_DEVICE);
	ib_dma_unmap_single(dev, echo->in_addr, ECHO_BYTES, DMA_FROM_DEVICE);
}

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
	echo->in = kzalloc(ECHO_BYTES, GFP_KERNEL);
	echo->out = kzalloc(ECHO_BYTES, GFP_KERNEL);
	if (!echo->in || !echo->out)
		goto err_bufs;
	ret = map_buffers(echo, id->device);
	if (ret)
		goto err_bufs;
	echo->pd = ib_alloc_pd(id->device, 0);
	ret = PTR_ERR_OR_ZERO(echo->pd);
	if (ret)
		goto err_map;
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
	unmap_buffers(echo, id->device);
err_bufs:
	kfree(echo->out);
	kfree(echo->in);
	return ret;
}

/* In any state of the connection. The ID stays, for the caller to destroy. */
void echo_close(struct echo *echo)
{
	struct ib_device *dev = echo->id->device;

	/* Fails if there was no connection: destroying the ID tells the peer then. */
	rdma_disconnect(echo->id);
	ib_drain_qp(echo->id->qp);
	rdma_destroy_qp(echo->id);
	ib_free_cq(echo->cq);
	ib_dealloc_pd(echo->pd);
	unmap_buffers(echo, dev);
	kfree(echo->out);
	kfree(echo->in);
}

/* Takes the buffer back from the device: what was received can be read until the next post. */
void *echo_in(struct echo *echo)
{
	ib_dma_sync_single_for_cpu(echo->id->device, echo->in_addr, ECHO_BYTES, DMA_FROM_DEVICE);
	return echo->in;
}

/* Likewise: a message can be written when the one before has gone. */
void *echo_out(struct echo *echo)
{
	ib_dma_sync_single_for_cpu(echo->id->device, echo->out_addr, ECHO_BYTES, DMA_TO_DEVICE);
	return echo->out;
}

int echo_post_recv(struct echo *echo)
{
	struct ib_sge sge = { .addr = echo->in_addr, .length = ECHO_BYTES,
			      .lkey = echo->pd->local_dma_lkey };
	struct ib_recv_wr wr = { .wr_cqe = &echo->recv, .sg_list = &sge, .num_sge = 1 };

	ib_dma_sync_single_for_device(echo->id->device, echo->in_addr, ECHO_BYTES,
				      DMA_FROM_DEVICE);
	return ib_post_recv(echo->id->qp, &wr, NULL);
}

int echo_post_send(struct echo *echo, u32 bytes)
{
	struct ib_sge sge = { .addr = echo->out_addr, .length = bytes,
			      .lkey = echo->pd->local_dma_lkey };
	struct ib_send_wr wr = { .wr_cqe = &echo->send, .sg_list = &sge,
				 /* To some devices, a length of 0 is 2 GiB. */
				 .num_sge = bytes ? 1 : 0,
				 .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED };

	ib_dma_sync_single_for_device(echo->id->device, echo->out_addr, ECHO_BYTES,
				      DMA_TO_DEVICE);
	return ib_post_send(echo->id->qp, &wr, NULL);
}
