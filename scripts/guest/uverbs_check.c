// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_check <device> [<case>]: what processes can do with the software HCA beyond what
 * the programs of rdma-core show, and what it does with entries that are none. Prints a line
 * for each case; the exit status is 0 if all are right.
 */
#include "uverbs_case.h"
#include "uverbs_dmabuf.h"

#include <fcntl.h>
#include <linux/dma-heap.h>
#include <poll.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* A key of the kernel's, by which a physical address can be named. */
#define LOCAL_DMA_LKEY	0xd3
/* Where kernels begin, in physical memory. */
#define KERNEL_TEXT	0x1000000
/* IB_WR_REG_MR, which only the kernel may post. */
#define WR_REG_MR	0x20

/* --- what is right ------------------------------------------------------------------- */

static bool rdma(struct pair *p)
{
	uint64_t *there = (uint64_t *)(p->buf + BUF_BYTES / 2);
	struct ibv_sge sge = sge_of(p, 8, 8);
	struct ibv_send_wr wr = {
		.wr_id = 3, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = { .remote_addr = (uintptr_t)there, .rkey = p->mr->rkey,
			       .compare_add = 5 },
	}, *bad;

	NEED(!connect_pair(p));
	*(uint64_t *)p->buf = 42;
	NEED(!post_send(p, 1, IBV_WR_RDMA_WRITE, sge_of(p, 0, 8)));
	NEED(status_is(p, 1, IBV_WC_SUCCESS) && *there == 42);
	*there = 43;
	NEED(!post_send(p, 2, IBV_WR_RDMA_READ, sge_of(p, 0, 8)));
	NEED(status_is(p, 2, IBV_WC_SUCCESS) && *(uint64_t *)p->buf == 43);
	NEED(!ibv_post_send(p->qp[0], &wr, &bad));
	NEED(status_is(p, 3, IBV_WC_SUCCESS) && *there == 48 && *(uint64_t *)(p->buf + 8) == 43);
	return true;
}

/* A queue pair whose requests are composed by calls. */
static struct ibv_qp *make_qp_ex(struct pair *p)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RC, .send_cq = p->cq, .recv_cq = p->cq, .pd = p->pd,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
	};

	return ibv_create_qp_ex(p->ctx, &init);
}

static int post_atomic_write(struct pair *p, uint64_t wr_id, void *there, const void *value)
{
	struct ibv_qp_ex *qpx = ibv_qp_to_qp_ex(p->qp[0]);

	ibv_wr_start(qpx);
	qpx->wr_id = wr_id;
	qpx->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qpx, p->mr->rkey, (uintptr_t)there, value);
	return ibv_wr_complete(qpx);
}

/* Eight bytes at an address that is a multiple of eight. */
static bool atomic_write(struct pair *p)
{
	uint64_t *there = (uint64_t *)(p->buf + BUF_BYTES / 2), value = 0x0123456789abcdef;

	NEED(!ibv_destroy_qp(p->qp[0]));
	p->qp[0] = make_qp_ex(p);
	NEED(p->qp[0] && !connect_pair(p));
	NEED(!post_atomic_write(p, 1, there + 1, &value) && status_is(p, 1, IBV_WC_SUCCESS));
	NEED(!there[0] && there[1] == value && !there[2]);
	NEED(!post_atomic_write(p, 2, (char *)there + 4, &value));
	NEED(status_is(p, 2, IBV_WC_REM_INV_REQ_ERR) && !there[0]);
	return event_is(p, IBV_EVENT_QP_REQ_ERR);
}

static bool inline_and_lists(struct pair *p)
{
	struct ibv_sge from[3], to[2] = { sge_of(p, 4096, 50), sge_of(p, 8192, 100) };
	struct ibv_recv_wr recv = { .wr_id = 1, .sg_list = to, .num_sge = 2 }, *bad_recv;
	struct ibv_send_wr wr = {
		.wr_id = 2, .opcode = IBV_WR_SEND_WITH_IMM, .imm_data = 0x12345678,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE, .sg_list = from, .num_sge = 3,
	}, *bad;
	struct ibv_wc wc;
	int i, round;

	NEED(!connect_pair(p));
	for (i = 0; i < 120; i++)
		p->buf[i] = i;
	for (i = 0; i < 3; i++)
		from[i] = sge_of(p, i * 40, 40);
	for (round = 0; round < 2; round++) {
		memset(p->buf + 4096, 0, 8192);
		NEED(!ibv_post_recv(p->qp[1], &recv, &bad_recv));
		NEED(!ibv_post_send(p->qp[0], &wr, &bad));
		NEED(poll_wc(p->cq, &wc) && wc.wr_id == 1 && wc.status == IBV_WC_SUCCESS);
		NEED(wc.byte_len == 120 && wc.imm_data == 0x12345678 &&
		     (wc.wc_flags & IBV_WC_WITH_IMM) && wc.opcode == IBV_WC_RECV &&
		     wc.qp_num == p->qp[1]->qp_num && wc.src_qp == p->qp[0]->qp_num);
		NEED(status_is(p, 2, IBV_WC_SUCCESS));
		NEED(!memcmp(p->buf, p->buf + 4096, 50) && !memcmp(p->buf + 50, p->buf + 8192, 70));
		wr.send_flags &= ~IBV_SEND_INLINE;
	}
	return true;
}

/* Windows of both types; the key that a window had is of no use. */
static bool windows(struct pair *p)
{
	struct ibv_mw *mw1 = ibv_alloc_mw(p->pd, IBV_MW_TYPE_1);
	struct ibv_mw *mw2 = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = {
		.mr = p->mr, .addr = (uintptr_t)p->buf + BUF_BYTES / 2, .length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_mw_bind bind = {
		.wr_id = 1, .send_flags = IBV_SEND_SIGNALED, .bind_info = info,
	};
	struct ibv_sge sge = sge_of(p, 0, 64);
	struct ibv_send_wr wr = {
		.wr_id = 2, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1, .wr.rdma.remote_addr = info.addr,
	}, wr2, *bad;

	NEED(mw1 && mw2 && !connect_pair(p));
	NEED(!ibv_bind_mw(p->qp[1], mw1, &bind) && status_is(p, 1, IBV_WC_SUCCESS));
	memset(p->buf, 0x31, 64);
	wr.wr.rdma.rkey = mw1->rkey;
	NEED(!ibv_post_send(p->qp[0], &wr, &bad) && status_is(p, 2, IBV_WC_SUCCESS));
	NEED(p->buf[BUF_BYTES / 2 + 63] == 0x31);
	NEED(ibv_dereg_mr(p->mr) == EBUSY);

	wr2 = (struct ibv_send_wr) {
		.wr_id = 3, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw2, .rkey = ibv_inc_rkey(mw2->rkey), .bind_info = info },
	};
	NEED(!ibv_post_send(p->qp[1], &wr2, &bad) && status_is(p, 3, IBV_WC_SUCCESS));
	mw2->rkey = wr2.bind_mw.rkey;
	memset(p->buf, 0x32, 64);
	wr.wr.rdma.rkey = mw2->rkey;
	NEED(!ibv_post_send(p->qp[0], &wr, &bad) && status_is(p, 2, IBV_WC_SUCCESS));
	NEED(p->buf[BUF_BYTES / 2] == 0x32);
	wr2 = (struct ibv_send_wr) {
		.wr_id = 4, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = mw2->rkey,
	};
	NEED(!ibv_post_send(p->qp[1], &wr2, &bad) && status_is(p, 4, IBV_WC_SUCCESS));
	NEED(!ibv_post_send(p->qp[0], &wr, &bad) && status_is(p, 2, IBV_WC_REM_ACCESS_ERR));
	NEED(!ibv_dealloc_mw(mw1) && !ibv_dealloc_mw(mw2));
	return true;
}

static bool bind_ends(struct pair *p, struct ibv_mw *mw, uint32_t rkey, int access,
		      enum ibv_wc_status status)
{
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = { .mw = mw, .rkey = rkey,
			     .bind_info = { .mr = p->mr, .addr = (uintptr_t)p->buf + BUF_BYTES / 2,
					    .length = 64, .mw_access_flags = access } },
	}, *bad;

	NEED(!ibv_post_send(p->qp[1], &wr, &bad) && status_is(p, 1, status));
	return true;
}

static bool binds(struct pair *p, struct ibv_mw *mw, uint32_t rkey, int access)
{
	return bind_ends(p, mw, rkey, access, IBV_WC_SUCCESS);
}

static bool unbinds(struct pair *p, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = 2, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	}, *bad;

	NEED(!ibv_post_send(p->qp[1], &wr, &bad) && status_is(p, 2, IBV_WC_SUCCESS));
	return true;
}

static bool writes(struct pair *p, uint32_t rkey, enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_of(p, 0, 64);
	struct ibv_send_wr wr = {
		.wr_id = 3, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = (uintptr_t)p->buf + BUF_BYTES / 2, .rkey = rkey },
	}, *bad;

	NEED(!ibv_post_send(p->qp[0], &wr, &bad) && status_is(p, 3, status));
	return true;
}

/*
 * librxe does not write the new key of a window of type 2 into its description. A process that
 * relies on that can use the first key, until it has bound the window by another one. Bits of
 * access that say nothing of a window are no error.
 */
static bool window_keys(struct pair *p)
{
	struct ibv_mw *mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_2);
	uint32_t first, second;

	NEED(mw && !connect_pair(p));
	first = mw->rkey;
	second = (first & ~0xffU) | 0xba;
	NEED(binds(p, mw, 0xba, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	NEED(writes(p, first, IBV_WC_SUCCESS) && writes(p, second, IBV_WC_SUCCESS));
	NEED(unbinds(p, first) && binds(p, mw, 0xbb, IBV_ACCESS_REMOTE_WRITE));
	NEED(writes(p, first, IBV_WC_SUCCESS) && unbinds(p, first));
	mw->rkey = second + 1;
	NEED(binds(p, mw, 0xbc, IBV_ACCESS_REMOTE_WRITE) && writes(p, second + 2, IBV_WC_SUCCESS));
	mw->rkey = second + 2;
	NEED(unbinds(p, second + 2) && binds(p, mw, 0xbd, IBV_ACCESS_REMOTE_WRITE));
	NEED(writes(p, second + 3, IBV_WC_SUCCESS) && writes(p, first, IBV_WC_REM_ACCESS_ERR));
	/* A key of the past does not name the window any more. */
	NEED(!to_state(p->qp[0], IBV_QPS_RESET) && !to_state(p->qp[1], IBV_QPS_RESET));
	NEED(!connect_pair(p) && unbinds(p, second + 3));
	NEED(bind_ends(p, mw, 0xbe, IBV_ACCESS_REMOTE_WRITE, IBV_WC_MW_BIND_ERR));
	NEED(!ibv_dealloc_mw(mw));
	return true;
}

/* A window of another domain cannot be bound. */
static bool foreign_window(struct pair *p)
{
	struct ibv_pd *pd = ibv_alloc_pd(p->ctx);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw.bind_info = { .mr = p->mr, .addr = (uintptr_t)p->buf, .length = 64,
				       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
	}, *bad;

	NEED(pd && mw && !connect_pair(p));
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	NEED(!ibv_post_send(p->qp[0], &wr, &bad) && status_is(p, 1, IBV_WC_MW_BIND_ERR));
	NEED(!ibv_dealloc_mw(mw) && !ibv_dealloc_pd(pd));
	return true;
}

/* A queue pair that cannot send yet takes receives, but refuses requests. */
static bool posted_before_rts(struct pair *p)
{
	struct ibv_wc wc;
	int i;

	NEED(post_send(p, 2, IBV_WR_SEND, sge_of(p, 64, 64)) == EINVAL);
	NEED(!to_init(p->qp[0]) && !to_init(p->qp[1]));
	NEED(!post_recv(p, 1, 1, sge_of(p, 0, 64)));
	for (i = 0; i < 5; i++)
		NEED(post_send(p, 3 + i, IBV_WR_SEND, sge_of(p, 64, 64)) == EINVAL);
	NEED(!to_rtr(p->qp[0], p->qp[1]->qp_num) && !to_rtr(p->qp[1], p->qp[0]->qp_num));
	NEED(post_send(p, 8, IBV_WR_SEND, sge_of(p, 64, 64)) == EINVAL);
	NEED(!to_rts(p->qp[0]) && !to_rts(p->qp[1]));
	for (i = 0; i < 2 * DEPTH; i++)
		NEED(!post_send(p, 10 + i, IBV_WR_RDMA_WRITE, sge_of(p, 64, 64)) &&
		     status_is(p, 10 + i, IBV_WC_SUCCESS));
	NEED(!ibv_poll_cq(p->cq, 1, &wc) && !post_send(p, 9, IBV_WR_SEND, sge_of(p, 64, 64)));
	return status_is(p, 1, IBV_WC_SUCCESS) && status_is(p, 9, IBV_WC_SUCCESS);
}

/* Nobody tells the kernel of receives that are posted in the error state, but they are flushed. */
static bool receives_in_error(struct pair *p)
{
	int i;

	NEED(!connect_pair(p) && !to_state(p->qp[1], IBV_QPS_ERR));
	for (i = 0; i < 3; i++) {
		NEED(!post_recv(p, 1, 2 * i, sge_of(p, 0, 64)));
		NEED(!post_recv(p, 1, 2 * i + 1, sge_of(p, 0, 64)));
		NEED(status_is(p, 2 * i, IBV_WC_WR_FLUSH_ERR));
		NEED(status_is(p, 2 * i + 1, IBV_WC_WR_FLUSH_ERR));
		/* The next ones come when it looks seldom. */
		usleep(i * 300000);
	}
	NEED(!post_recv(p, 1, 7, sge_of(p, 0, 64)) && !to_state(p->qp[1], IBV_QPS_RESET));
	NEED(!to_init(p->qp[1]) && !post_recv(p, 1, 8, sge_of(p, 0, 64)));
	return !to_state(p->qp[1], IBV_QPS_ERR) && status_is(p, 8, IBV_WC_WR_FLUSH_ERR);
}

/* A key that cannot be invalidated fails the receiver; the sender is left without an answer. */
static bool bad_invalidation(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 64);
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1, .invalidate_rkey = p->mr->rkey,
	}, *bad;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;

	NEED(!connect_pair(p) && !post_recv(p, 1, 2, sge_of(p, 64, 64)));
	NEED(!ibv_post_send(p->qp[0], &wr, &bad) && status_is(p, 2, IBV_WC_MW_BIND_ERR));
	NEED(event_is(p, IBV_EVENT_QP_ACCESS_ERR));
	NEED(!ibv_query_qp(p->qp[1], &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_ERR);
	NEED(status_is(p, 1, IBV_WC_RETRY_EXC_ERR));
	return true;
}

/* What is queued when a queue pair fails, and what is posted then. After a reset it works again. */
static bool flushed(struct pair *p)
{
	NEED(!connect_pair(p) && !post_recv(p, 0, 1, sge_of(p, 0, 64)));
	NEED(!to_state(p->qp[0], IBV_QPS_ERR) && status_is(p, 1, IBV_WC_WR_FLUSH_ERR));
	NEED(!post_send(p, 2, IBV_WR_SEND, sge_of(p, 0, 64)));
	NEED(status_is(p, 2, IBV_WC_WR_FLUSH_ERR));
	NEED(!to_state(p->qp[0], IBV_QPS_RESET) && !to_state(p->qp[1], IBV_QPS_RESET));
	NEED(!connect_pair(p) && !post_recv(p, 1, 3, sge_of(p, 0, 64)));
	NEED(!post_send(p, 4, IBV_WR_SEND, sge_of(p, 64, 64)));
	return status_is(p, 3, IBV_WC_SUCCESS) && status_is(p, 4, IBV_WC_SUCCESS);
}

/* The size changes while completions wait, and they stay. */
static bool cq_resized(struct pair *p)
{
	int round, i, n = 0;

	NEED(!connect_pair(p));
	for (round = 0; round < 5; round++) {
		for (i = 0; i < 6; i++)
			NEED(!post_send(p, n + i, IBV_WR_RDMA_WRITE, sge_of(p, 0, 8)));
		NEED(!ibv_resize_cq(p->cq, round & 1 ? 7 : 200));
		for (i = 0; i < 6; i++)
			NEED(status_is(p, n + i, IBV_WC_SUCCESS));
		n += 6;
	}
	NEED(!ibv_resize_cq(p->cq, 31));
	for (i = 0; i < 10; i++)
		NEED(!post_send(p, i, IBV_WR_RDMA_WRITE, sge_of(p, 0, 8)));
	/* What counts is not the power of two that it would become. */
	NEED(ibv_resize_cq(p->cq, 9) == EINVAL);
	for (i = 0; i < 10; i++)
		NEED(status_is(p, i, IBV_WC_SUCCESS));
	return true;
}

/* More completions than there is room for: what is there stays, and the rest is an error. */
static bool cq_overrun(struct pair *p)
{
	struct ibv_wc wc;
	int i;

	NEED(!ibv_resize_cq(p->cq, 3) && !connect_pair(p));
	for (i = 0; i < 4; i++)
		NEED(!post_send(p, i, IBV_WR_RDMA_WRITE, sge_of(p, 0, 8)));
	/* Of two objects, so in any order; each is there once. */
	for (i = 0; i < 2; i++)
		NEED(event_is_either(p, IBV_EVENT_CQ_ERR, IBV_EVENT_QP_FATAL));
	for (i = 0; i < 3; i++)
		NEED(status_is(p, i, IBV_WC_SUCCESS));
	NEED(!ibv_poll_cq(p->cq, 1, &wc));
	return true;
}

static bool srq_limits(struct pair *p)
{
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	int i;

	NEED(!connect_pair(p));
	for (i = 0; i < 4; i++)
		NEED(!post_recv(p, 1, 10 + i, sge_of(p, 0, 64)));
	NEED(!ibv_modify_srq(p->srq, &attr, IBV_SRQ_LIMIT));
	NEED(!post_send(p, 1, IBV_WR_SEND, sge_of(p, 64, 64)));
	NEED(status_is(p, 10, IBV_WC_SUCCESS) && status_is(p, 1, IBV_WC_SUCCESS));
	/* The receives move to a larger ring, and to a smaller one. */
	for (i = 0; i < 2; i++) {
		attr = (struct ibv_srq_attr) { .max_wr = i ? 7 : 100 };
		NEED(!ibv_modify_srq(p->srq, &attr, IBV_SRQ_MAX_WR));
		NEED(!ibv_query_srq(p->srq, &attr) && attr.max_wr == (i ? 7 : 127));
	}
	attr.max_wr = 1;
	NEED(ibv_modify_srq(p->srq, &attr, IBV_SRQ_MAX_WR) == EINVAL);
	NEED(!post_recv(p, 1, 14, sge_of(p, 0, 64)));
	NEED(!post_send(p, 2, IBV_WR_SEND, sge_of(p, 64, 64)));
	NEED(status_is(p, 11, IBV_WC_SUCCESS) && status_is(p, 2, IBV_WC_SUCCESS));
	NEED(!post_send(p, 3, IBV_WR_SEND, sge_of(p, 64, 64)));
	NEED(status_is(p, 12, IBV_WC_SUCCESS) && status_is(p, 3, IBV_WC_SUCCESS));
	NEED(event_is(p, IBV_EVENT_SRQ_LIMIT_REACHED));
	NEED(!to_state(p->qp[1], IBV_QPS_ERR) && event_is(p, IBV_EVENT_QP_LAST_WQE_REACHED));
	return true;
}

/* A process that asks for solicited completions is told of those only. */
static bool solicited(struct pair *p)
{
	struct pollfd fd = { .fd = p->channel->fd, .events = POLLIN };
	struct ibv_sge sge = sge_of(p, 64, 64);
	struct ibv_send_wr wr = {
		.wr_id = 3, .opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
	}, *bad;
	struct ibv_cq *cq;
	void *context;

	NEED(!connect_pair(p) && !ibv_req_notify_cq(p->cq, 1));
	NEED(!post_send(p, 1, IBV_WR_RDMA_WRITE, sge_of(p, 0, 8)));
	NEED(status_is(p, 1, IBV_WC_SUCCESS) && poll(&fd, 1, 200) == 0);
	NEED(!post_recv(p, 1, 2, sge_of(p, 0, 64)) && !ibv_post_send(p->qp[0], &wr, &bad));
	NEED(poll(&fd, 1, PATIENCE * 1000) == 1 && !ibv_get_cq_event(p->channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	NEED(cq == p->cq && status_is(p, 2, IBV_WC_SUCCESS) && status_is(p, 3, IBV_WC_SUCCESS));
	return true;
}

/* Memory of a dma-buf, where the kernel has an exporter. */
static bool dma_buf(struct pair *p)
{
	struct dma_heap_allocation_data heap = { .len = 8192, .fd_flags = O_RDWR | O_CLOEXEC };
	int fd = open("/dev/dma_heap/system", O_RDWR);
	struct ibv_sge sge = sge_of(p, 0, 5000);
	struct dmabuf_mr mr;
	void *mem;

	if (fd < 0) {
		printf("    no exporter here\n");
		return true;
	}
	NEED(!ioctl(fd, DMA_HEAP_IOCTL_ALLOC, &heap) && !connect_pair(p));
	mem = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, heap.fd, 0);
	NEED(mem != MAP_FAILED && !reg_dmabuf(p, heap.fd, 8192, IBV_ACCESS_LOCAL_WRITE, &mr));
	sge.lkey = mr.lkey;
	memset(p->buf + BUF_BYTES / 2, 0x77, 5000);
	sge.addr = 100;
	NEED(!post_send(p, 1, IBV_WR_RDMA_READ, sge) && status_is(p, 1, IBV_WC_SUCCESS));
	NEED(((unsigned char *)mem)[100] == 0x77 && ((unsigned char *)mem)[5099] == 0x77 &&
	     !((unsigned char *)mem)[5100]);
	NEED(!dereg_dmabuf(p, &mr) && !munmap(mem, 8192) && !close(heap.fd) && !close(fd));
	return true;
}

/* --- what is wrong ------------------------------------------------------------------- */

/* The @index-th ring of entries of this size. */
static struct rxe_queue_buf *find_ring(uint32_t log2_size, int index)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct rxe_queue_buf *ring, *found = NULL;
	unsigned long start;
	char line[256];

	while (maps && fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/infiniband/uverbs") || sscanf(line, "%lx-", &start) != 1)
			continue;
		ring = (struct rxe_queue_buf *)start;
		if (ring->log2_elem_size == log2_size && index-- == 0)
			found = ring;
	}
	if (maps)
		fclose(maps);
	return found;
}

/* log2 of the bytes of an entry of a send queue that make_qp() makes. */
static uint32_t sq_shift(void)
{
	uint32_t shift = 0;

	while ((1U << shift) < sizeof(struct rxe_send_wqe) + INLINE_BYTES)
		shift++;
	return shift;
}

/* Posts a request, spoiled by @spoil before the kernel sees it. */
static bool spoiled(struct pair *p, void (*spoil)(struct rxe_send_wqe *wqe),
		    enum ibv_wc_status status)
{
	struct rxe_queue_buf *ring[2] = { find_ring(sq_shift(), 0), find_ring(sq_shift(), 1) };
	struct rxe_send_wqe *wqe;
	int i;

	NEED(ring[0] && ring[1] && !to_init(p->qp[0]) && !to_init(p->qp[1]));
	/* While the send queue drains, it waits in the ring. */
	NEED(!to_rtr(p->qp[0], p->qp[1]->qp_num) && !to_rtr(p->qp[1], p->qp[0]->qp_num));
	NEED(!to_rts(p->qp[0]) && !to_state(p->qp[0], IBV_QPS_SQD));
	NEED(!post_send(p, 1, IBV_WR_SEND, sge_of(p, 64, 64)));
	for (i = 0; i < 2; i++) {
		wqe = (struct rxe_send_wqe *)ring[i]->data;
		if (wqe->wr.wr_id == 1)
			spoil(wqe);
	}
	NEED(!to_state(p->qp[0], IBV_QPS_RTS) && status_is(p, 1, status));
	NEED(!post_send(p, 2, IBV_WR_SEND, sge_of(p, 64, 64)));
	NEED(status_is(p, 2, IBV_WC_WR_FLUSH_ERR));
	return true;
}

static void spoil_opcode(struct rxe_send_wqe *wqe)
{
	wqe->wr.opcode = WR_REG_MR;
}

static void spoil_opcode_large(struct rxe_send_wqe *wqe)
{
	wqe->wr.opcode = 0xffffff00;
}

static void spoil_num_sge(struct rxe_send_wqe *wqe)
{
	wqe->dma.num_sge = 5;
}

static void spoil_num_sge_large(struct rxe_send_wqe *wqe)
{
	wqe->dma.num_sge = 0xffffffff;
}

static void spoil_inline(struct rxe_send_wqe *wqe)
{
	wqe->wr.send_flags |= IBV_SEND_INLINE;
	wqe->dma.length = 1 << 20;
}

static void spoil_length(struct rxe_send_wqe *wqe)
{
	int i;

	wqe->dma.num_sge = 4;
	for (i = 0; i < 4; i++)
		wqe->dma.sge[i].length = 0x80000000;
}

static void spoil_address(struct rxe_send_wqe *wqe)
{
	wqe->dma.sge[0].addr = ~0ULL - 10;
}

static void spoil_lkey(struct rxe_send_wqe *wqe)
{
	wqe->dma.sge[0].lkey = 0xffffff00;
}

static void spoil_lkey_zero(struct rxe_send_wqe *wqe)
{
	wqe->dma.sge[0].lkey = 0;
}

static bool bad_opcode(struct pair *p)
{
	return spoiled(p, spoil_opcode, IBV_WC_LOC_QP_OP_ERR);
}

static bool bad_opcode_large(struct pair *p)
{
	return spoiled(p, spoil_opcode_large, IBV_WC_LOC_QP_OP_ERR);
}

static bool bad_num_sge(struct pair *p)
{
	return spoiled(p, spoil_num_sge, IBV_WC_LOC_QP_OP_ERR);
}

static bool bad_num_sge_large(struct pair *p)
{
	return spoiled(p, spoil_num_sge_large, IBV_WC_LOC_QP_OP_ERR);
}

static bool bad_inline(struct pair *p)
{
	return spoiled(p, spoil_inline, IBV_WC_LOC_LEN_ERR);
}

static bool bad_length(struct pair *p)
{
	return spoiled(p, spoil_length, IBV_WC_LOC_LEN_ERR);
}

static bool bad_address(struct pair *p)
{
	return spoiled(p, spoil_address, IBV_WC_LOC_PROT_ERR);
}

static bool bad_lkey(struct pair *p)
{
	return spoiled(p, spoil_lkey, IBV_WC_LOC_PROT_ERR);
}

static bool bad_lkey_zero(struct pair *p)
{
	return spoiled(p, spoil_lkey_zero, IBV_WC_LOC_PROT_ERR);
}

/* The key that names all of memory reads none of it, */
static bool dma_key_reads(struct pair *p)
{
	struct ibv_sge kernel = { .addr = KERNEL_TEXT, .length = 256, .lkey = LOCAL_DMA_LKEY };

	memset(p->buf, 0xa5, 4096);
	NEED(!connect_pair(p) && !post_recv(p, 1, 1, sge_of(p, 0, 4096)));
	NEED(!post_send(p, 2, IBV_WR_SEND, kernel) && status_is(p, 2, IBV_WC_LOC_PROT_ERR));
	NEED(is_filled(p->buf, 0xa5, 4096));
	return true;
}

/* in a list neither, */
static bool dma_key_in_list(struct pair *p)
{
	struct ibv_sge list[2] = {
		sge_of(p, 8192, 64), { .addr = KERNEL_TEXT, .length = 64, .lkey = LOCAL_DMA_LKEY },
	};
	struct ibv_send_wr wr = {
		.wr_id = 2, .opcode = IBV_WR_RDMA_WRITE, .sg_list = list, .num_sge = 2,
		.wr.rdma = { .remote_addr = (uintptr_t)p->buf, .rkey = p->mr->rkey },
	}, *bad;

	memset(p->buf, 0xa5, 4096);
	NEED(!connect_pair(p) && !ibv_post_send(p->qp[0], &wr, &bad));
	NEED(status_is(p, 2, IBV_WC_LOC_PROT_ERR) && is_filled(p->buf, 0xa5, 4096));
	return true;
}

/* and a receive cannot be in it. */
static bool dma_key_writes(struct pair *p)
{
	struct ibv_sge kernel = { .addr = KERNEL_TEXT, .length = 256, .lkey = LOCAL_DMA_LKEY };

	NEED(!connect_pair(p) && !post_recv(p, 1, 1, kernel));
	NEED(!post_send(p, 2, IBV_WR_SEND, sge_of(p, 0, 256)));
	return status_is(p, 1, IBV_WC_LOC_PROT_ERR) && status_is(p, 2, IBV_WC_REM_OP_ERR);
}

/* Nor is it a peer's. */
static bool dma_key_remote(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 256);
	struct ibv_send_wr wr = {
		.wr_id = 2, .opcode = IBV_WR_RDMA_READ, .sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = KERNEL_TEXT, .rkey = LOCAL_DMA_LKEY },
	}, *bad;

	memset(p->buf, 0xa5, 4096);
	NEED(!connect_pair(p) && !ibv_post_send(p->qp[0], &wr, &bad));
	NEED(status_is(p, 2, IBV_WC_REM_ACCESS_ERR) && is_filled(p->buf, 0xa5, 4096));
	return event_is(p, IBV_EVENT_QP_ACCESS_ERR);
}

/* A request that is passed with the doorbell: inline data would be an address in the kernel. */
static bool post_by_command(struct pair *p)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send cmd;
		struct ib_uverbs_send_wr wr;
		struct ib_uverbs_sge sge;
	} req = {
		.hdr = { .command = IB_USER_VERBS_CMD_POST_SEND, .in_words = sizeof(req) / 4,
			 .out_words = 1 },
		.cmd = { .qp_handle = p->qp[0]->handle, .wr_count = 1, .sge_count = 1,
			 .wqe_size = sizeof(req.wr) },
		.wr = { .wr_id = 1, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED },
		.sge = { .addr = 0xffffffff81000000, .length = 64 },
	};
	struct ib_uverbs_post_send_resp resp;
	struct ibv_wc wc;

	NEED(!connect_pair(p));
	req.cmd.response = (uintptr_t)&resp;
	NEED(write(p->ctx->cmd_fd, &req, sizeof(req)) == -1 && errno == EINVAL);
	NEED(!ibv_poll_cq(p->cq, 1, &wc));
	return true;
}

static bool maps_as(struct pair *p, size_t bytes, int flags, off_t offset)
{
	void *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, p->ctx->cmd_fd, offset);

	if (mem == MAP_FAILED)
		return false;
	munmap(mem, bytes);
	return true;
}

/* A mapping is shared, of a ring, and of all of it. */
static bool mappings(struct pair *p)
{
	int pages = 0;

	/* The CQ's ring is the first. */
	while (!maps_as(p, ++pages * 4096UL, MAP_SHARED, 0))
		NEED(pages < 64);
	NEED(!maps_as(p, pages * 4096UL, MAP_PRIVATE, 0));
	NEED(!maps_as(p, pages * 4096UL + 4096, MAP_SHARED, 0));
	NEED(!maps_as(p, 4096, MAP_SHARED, 1 << 30));
	return true;
}

/* Memory is charged to the process that registers it. */
static bool memory_limit(struct pair *p)
{
	const struct rlimit limit = { 65536, 65536 };
	int status = 1;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		void *mem = malloc(1 << 20);

		if (setrlimit(RLIMIT_MEMLOCK, &limit) || setuid(65534))
			_exit(2);
		_exit(ibv_reg_mr(p->pd, mem, 1 << 20, 0) ? 1 : errno == ENOMEM ? 0 : 3);
	}
	NEED(pid > 0 && waitpid(pid, &status, 0) == pid);
	NEED(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return true;
}

static const struct verbs_case cases[] = {
	CASE(rdma, false),
	CASE(atomic_write, false),
	CASE(inline_and_lists, false),
	CASE(windows, false),
	CASE(foreign_window, false),
	CASE(window_keys, false),
	CASE(bad_invalidation, false),
	CASE(posted_before_rts, false),
	CASE(receives_in_error, false),
	CASE(flushed, false),
	CASE(cq_resized, false),
	CASE(cq_overrun, false),
	CASE(srq_limits, true),
	CASE(solicited, false),
	CASE(dma_buf, false),
	CASE(bad_opcode, false),
	CASE(bad_opcode_large, false),
	CASE(bad_num_sge, false),
	CASE(bad_num_sge_large, false),
	CASE(bad_inline, false),
	CASE(bad_length, false),
	CASE(bad_address, false),
	CASE(bad_lkey, false),
	CASE(bad_lkey_zero, false),
	CASE(dma_key_reads, false),
	CASE(dma_key_in_list, false),
	CASE(dma_key_writes, false),
	CASE(dma_key_remote, false),
	CASE(post_by_command, false),
	CASE(mappings, false),
	CASE(memory_limit, false),
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
