// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA WRITE from the first device to the second. The target registers its buffer by a work
 * request (IB_WR_REG_MR), and tells the source the address and the rkey; here they are on the
 * same machine, else a SEND or the connection manager's private data would carry both.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/completion.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/string.h>
#include "loopback.h"

#define WRITE_TEXT	"written from afar"

/* One end of the connection: all that belongs to one device. */
struct end {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
};

static struct end ends[2];
/* Held while devices are used: the removal of one waits for that. */
static DEFINE_MUTEX(ends_lock);

/* A request, and who waits for it. */
struct request {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void request_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct request *request = container_of(wc->wr_cqe, struct request, cqe);

	request->status = wc->status;
	complete(&request->done);
}

/* What was posted always completes, if only because it is flushed: no timeout is needed. */
static int post_and_wait(struct end *end, struct ib_send_wr *wr)
{
	struct request request = { .cqe.done = request_done };
	int ret;

	init_completion(&request.done);
	wr->wr_cqe = &request.cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	ret = ib_post_send(end->qp, wr, NULL);
	if (ret)
		return ret;
	wait_for_completion(&request.done);
	if (request.status == IB_WC_SUCCESS)
		return 0;
	pr_err("%s: %s\n", dev_name(&end->dev->dev), ib_wc_status_msg(request.status));
	return -EIO;
}

/* begin registration */
/* The key is valid from the completion of the request to that of IB_WR_LOCAL_INV. */
static int target_register(struct end *end, struct ib_mr *mr, struct scatterlist *sg)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.mr = mr,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};
	int n = ib_map_mr_sg(mr, sg, 1, NULL, PAGE_SIZE);

	if (n != 1)
		return n < 0 ? n : -EINVAL;
	/* Its low 8 bits are ours: with others each time, a peer's old key does not work. */
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	wr.key = mr->rkey;
	return post_and_wait(end, &wr.wr);
}

static int target_invalidate(struct end *end, struct ib_mr *mr)
{
	struct ib_send_wr wr = { .opcode = IB_WR_LOCAL_INV, .ex.invalidate_rkey = mr->rkey };

	return post_and_wait(end, &wr);
}

/* The source needs no region: local_dma_lkey is good for all that is mapped for DMA. */
static int source_write(struct end *end, void *buf, u32 len, u64 remote_addr, u32 rkey)
{
	u64 addr = ib_dma_map_single(end->dev, buf, len, DMA_TO_DEVICE);
	struct ib_sge sge = { .addr = addr, .length = len, .lkey = end->pd->local_dma_lkey };
	struct ib_rdma_wr wr = {
		.wr = { .opcode = IB_WR_RDMA_WRITE, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = remote_addr,
		.rkey = rkey,
	};
	int ret;

	if (ib_dma_mapping_error(end->dev, addr))
		return -ENOMEM;
	ret = post_and_wait(end, &wr.wr);
	ib_dma_unmap_single(end->dev, addr, len, DMA_TO_DEVICE);
	return ret;
}

static int write_to(struct end *source, struct end *target, struct ib_mr *mr, char *from)
{
	/* A successful WRITE is in the target's memory: the target itself is not told. */
	return source_write(source, from, PAGE_SIZE, mr->iova, mr->rkey) ?:
	       target_invalidate(target, mr);
}

static int transfer(struct end *source, struct end *target, char *from, char *to)
{
	struct ib_mr *mr = ib_alloc_mr(target->pd, IB_MR_TYPE_MEM_REG, 1);
	struct scatterlist sg;
	int ret = -ENOMEM;

	if (IS_ERR(mr))
		return PTR_ERR(mr);
	sg_init_one(&sg, to, PAGE_SIZE);
	if (ib_dma_map_sg(target->dev, &sg, 1, DMA_FROM_DEVICE)) {
		ret = target_register(target, mr, &sg) ?: write_to(source, target, mr, from);
		/* The device may write as long as the queue pair can execute requests. */
		ib_drain_qp(target->qp);
		ib_dma_unmap_sg(target->dev, &sg, 1, DMA_FROM_DEVICE);
	}
	ib_dereg_mr(mr);
	if (!ret)
		pr_info("%s to %s: \"%s\"\n", dev_name(&source->dev->dev),
			dev_name(&target->dev->dev), to);
	return ret;
}

/* end registration */
static void end_close(struct end *end)
{
	if (!IS_ERR_OR_NULL(end->qp))
		ib_destroy_qp(end->qp);
	if (!IS_ERR_OR_NULL(end->cq))
		ib_free_cq(end->cq);
	if (!IS_ERR_OR_NULL(end->pd))
		ib_dealloc_pd(end->pd);
	*end = (struct end) { .dev = end->dev };
}

/* Whatever it returns, end_close() follows. */
static int end_open(struct end *end)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		/* One request at a time, and one more each way to drain. */
		.cap = { .max_send_wr = 2, .max_recv_wr = 1, .max_send_sge = 1 },
	};

	end->pd = ib_alloc_pd(end->dev, 0);
	if (IS_ERR(end->pd))
		return PTR_ERR(end->pd);
	end->cq = ib_alloc_cq(end->dev, end, 3, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(end->cq))
		return PTR_ERR(end->cq);
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	end->qp = ib_create_qp(end->pd, &attr);
	return PTR_ERR_OR_ZERO(end->qp);
}

static int between(struct end *source, struct end *target)
{
	char *from = (char *)get_zeroed_page(GFP_KERNEL);
	char *to = (char *)get_zeroed_page(GFP_KERNEL);
	int ret = from && to ? 0 : -ENOMEM;

	if (!ret) {
		strscpy(from, WRITE_TEXT, PAGE_SIZE);
		ret = end_open(source) ?: end_open(target) ?:
		      loopback_connect_to(source->qp, target->qp, 1) ?:
		      loopback_connect_to(target->qp, source->qp, 1) ?:
		      transfer(source, target, from, to);
	}
	end_close(source);
	end_close(target);
	free_page((unsigned long)to);
	free_page((unsigned long)from);
	return ret;
}

static int write_add(struct ib_device *dev)
{
	struct end *end;

	mutex_lock(&ends_lock);
	end = !ends[0].dev ? &ends[0] : !ends[1].dev ? &ends[1] : NULL;
	if (end)
		end->dev = dev;
	mutex_unlock(&ends_lock);
	return end ? 0 : -EOPNOTSUPP;
}

static void write_remove(struct ib_device *dev, void *client_data)
{
	mutex_lock(&ends_lock);
	ends[ends[0].dev != dev].dev = NULL;
	mutex_unlock(&ends_lock);
}

static struct ib_client write_client = {
	.name = "rdma_write",
	.add = write_add,
	.remove = write_remove,
};

static int __init write_init(void)
{
	/* Afterwards add() has been called for each device that there is. */
	int ret = ib_register_client(&write_client);

	if (ret)
		return ret;
	mutex_lock(&ends_lock);
	ret = ends[0].dev && ends[1].dev ? between(&ends[0], &ends[1]) : -ENODEV;
	mutex_unlock(&ends_lock);
	if (ret)
		ib_unregister_client(&write_client);
	return ret;
}

static void __exit write_exit(void)
{
	ib_unregister_client(&write_client);
}

module_init(write_init);
module_exit(write_exit);
MODULE_DESCRIPTION("RDMA WRITE between two devices");
MODULE_LICENSE("GPL");
