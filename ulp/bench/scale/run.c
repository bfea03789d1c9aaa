// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many queue pairs on one device, connected in pairs: the first with the second,
 * the third with the fourth. They share a protection domain, and pairs take the CQs by
 * turns, so the cost of an additional queue pair is only its own. Who sends between the two
 * of a pair polls their CQ itself, and no two CPUs have a CQ in common; there is nothing to
 * lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "scale.h"

#define SCALE_CQE		16
#define SCALE_WARM_QPS		64U
#define SCALE_ACK_TIMEOUT	18	/* 4.096 us * 2^18 = 1 s: nothing gets lost */
#define SCALE_RETRIES		7

/* Attributes required for the transitions from RESET to INIT, to RTR and to RTS. */
static const int scale_qp_masks[] = {
	IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS,
	IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
		IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER,
	IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_SQ_PSN |
		IB_QP_MAX_QP_RD_ATOMIC,
};

static int scale_memory(struct scale_run *run)
{
	size_t size = scale_mem_size(&run->p);

	run->mem = kzalloc(size, GFP_KERNEL | __GFP_NOWARN);
	if (!run->mem)
		return -ENOMEM;
	run->dma = ib_dma_map_single(run->dev, run->mem, size, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(run->dev, run->dma)) {
		kfree(run->mem);
		run->mem = NULL;
		return -ENOMEM;
	}
	return 0;
}

static int scale_alloc_cqs(struct scale_run *run)
{
	struct ib_cq *cq;
	u32 i;

	run->cqs = kcalloc(run->p.cqs, sizeof(*run->cqs), GFP_KERNEL);
	if (!run->cqs)
		return -ENOMEM;
	for (i = 0; i < run->p.cqs; i++) {
		cq = ib_alloc_cq(run->dev, run, SCALE_CQE, 0, IB_POLL_DIRECT);
		if (IS_ERR(cq))
			return PTR_ERR(cq);
		run->cqs[i] = cq;
	}
	return 0;
}

static int scale_setup(struct scale_run *run)
{
	struct ib_pd *pd;
	int ret;

	if (!rdma_is_port_valid(run->dev, run->p.port))
		return -EINVAL;
	ret = ib_query_port(run->dev, run->p.port, &run->port);
	if (ret)
		return ret;
	run->qps = kvcalloc(run->p.qps, sizeof(*run->qps), GFP_KERNEL);
	if (!run->qps)
		return -ENOMEM;
	pd = ib_alloc_pd(run->dev, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	run->pd = pd;
	return scale_alloc_cqs(run) ?: scale_memory(run);
}

/* Destroys queue pairs until there are @nr. */
static void scale_destroy(struct scale_run *run, u32 nr)
{
	while (run->nr > nr) {
		ib_destroy_qp(run->qps[--run->nr]);
		cond_resched();
	}
}

static void scale_teardown(struct scale_run *run)
{
	u32 i;

	scale_destroy(run, 0);
	if (run->mem)
		ib_dma_unmap_single(run->dev, run->dma, scale_mem_size(&run->p),
				    DMA_BIDIRECTIONAL);
	kfree(run->mem);
	for (i = 0; run->cqs && i < run->p.cqs && run->cqs[i]; i++)
		ib_free_cq(run->cqs[i]);
	kfree(run->cqs);
	if (run->pd)
		ib_dealloc_pd(run->pd);
	kvfree(run->qps);
}

/* Creates queue pairs until there are @nr. */
static int scale_create(struct scale_run *run, u32 nr)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {
			.max_send_wr = run->p.depth,
			.max_recv_wr = run->p.depth,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	struct ib_qp *qp;

	for (; run->nr < nr; run->nr++) {
		init.send_cq = scale_cq(run, run->nr / 2);
		init.recv_cq = init.send_cq;
		qp = ib_create_qp(run->pd, &init);
		if (IS_ERR(qp))
			return PTR_ERR(qp);
		run->qps[run->nr] = qp;
		cond_resched();
	}
	return 0;
}

static int scale_connect_one(struct scale_run *run, u32 i)
{
	struct ib_qp_attr attr = {
		.port_num = run->p.port,
		.path_mtu = run->port.active_mtu,
		.dest_qp_num = run->qps[i ^ 1]->qp_num,
		.timeout = SCALE_ACK_TIMEOUT,
		.retry_cnt = SCALE_RETRIES,
		.rnr_retry = SCALE_RETRIES,
	};
	int state, ret = 0;

	attr.ah_attr.type = rdma_ah_find_type(run->dev, run->p.port);
	rdma_ah_set_port_num(&attr.ah_attr, run->p.port);
	rdma_ah_set_dlid(&attr.ah_attr, run->port.lid);
	for (state = 0; !ret && state < ARRAY_SIZE(scale_qp_masks); state++) {
		attr.qp_state = IB_QPS_INIT + state;
		ret = ib_modify_qp(run->qps[i], &attr,
				   scale_qp_masks[state] | IB_QP_STATE);
	}
	return ret;
}

/* Connects the queue pairs from @first on. */
static int scale_connect(struct scale_run *run, u32 first)
{
	int ret = 0;

	for (; !ret && first < run->nr; first++) {
		ret = scale_connect_one(run, first);
		cond_resched();
	}
	return ret;
}

/* Returns the machine's free memory in bytes. */
static u64 scale_free_memory(void)
{
	struct sysinfo info;

	si_meminfo(&info);
	return (u64)info.freeram * info.mem_unit;
}

static u64 scale_per_qp(u64 start, u32 qps)
{
	return div_u64(ktime_get_ns() - start, qps);
}

/* Measures all queue pairs but the first, which exist already. */
static int scale_measure_many(struct scale_run *run, struct scale_result *res)
{
	u32 first = run->nr, more = run->p.qps - run->nr;
	u64 memory = scale_free_memory();
	u64 start = ktime_get_ns();
	int ret;

	ret = scale_create(run, run->p.qps);
	if (ret)
		return ret;
	res->create_ns = scale_per_qp(start, more);

	start = ktime_get_ns();
	ret = scale_connect(run, first);
	if (ret)
		return ret;
	res->connect_ns = scale_per_qp(start, more);
	res->bytes = div_s64(memory - scale_free_memory(), more);

	ret = scale_send(run, &res->random_ns);
	if (ret)
		return ret;

	start = ktime_get_ns();
	scale_destroy(run, first);
	res->destroy_ns = scale_per_qp(start, more);
	return 0;
}

/**
 * scale_run - measure what many queue pairs cost
 * @dev: the device; it stays for the duration of the call
 * @params: parameters of the run
 * @res: filled in if 0 is returned
 *
 * Context: may sleep, for as long as it takes.
 * Return: 0; -ENXIO with fewer CPUs than wanted; -EINVAL for a port that does not exist; -EIO after a completion in
 * error, -ETIMEDOUT without a completion, -ENOMEM, or the error of the verbs layer.
 */
int scale_run(struct ib_device *dev, const struct scale_params *params,
	      struct scale_result *res)
{
	struct scale_run run = { .p = *params, .dev = dev };
	int ret;

	ret = scale_setup(&run);
	if (!ret)
		ret = scale_create(&run, min(run.p.qps, SCALE_WARM_QPS));
	scale_destroy(&run, 0);
	if (!ret)
		ret = scale_create(&run, 2 * run.p.cpus);
	if (!ret)
		ret = scale_connect(&run, 0);
	if (!ret)
		ret = scale_send(&run, &res->only_ns);
	if (!ret)
		ret = scale_measure_many(&run, res);
	scale_teardown(&run);
	return ret;
}
