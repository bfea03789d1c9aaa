/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs share that use the software HCA through libibverbs, in a guest.
 */
#ifndef UVERBS_H
#define UVERBS_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ARRAY_SIZE(array)	(sizeof(array) / sizeof((array)[0]))

#define BUF_BYTES	65536
#define DEPTH		16
#define INLINE_BYTES	256
/* Emulated guests are slow. */
#define PATIENCE	20

/* One process's use of a device: two queue pairs that are connected with each other. */
struct pair {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_srq *srq;
	struct ibv_qp *qp[2];
	struct ibv_mr *mr;
	unsigned char *buf;
};

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(1);
}

static inline bool is_filled(const unsigned char *buf, int byte, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (buf[i] != byte)
			return false;
	}
	return true;
}

static inline struct ibv_context *open_device(const char *name)
{
	int i, nr = 0;
	struct ibv_device **list = ibv_get_device_list(&nr);
	struct ibv_context *ctx = NULL;

	for (i = 0; i < nr && !ctx; i++) {
		if (!strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	}
	if (!ctx)
		die(name);
	ibv_free_device_list(list);
	return ctx;
}

static inline int to_init(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX |
			     IBV_QP_ACCESS_FLAGS);
}

static inline int to_rtr(struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = peer,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 1, .ah_attr.port_num = 1,
	};
	struct ibv_port_attr port;

	if (ibv_query_port(qp->context, 1, &port))
		return -1;
	attr.ah_attr.dlid = port.lid;
	if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
		attr.ah_attr.is_global = 1;
		attr.ah_attr.grh.hop_limit = 1;
		if (ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid))
			return -1;
	}
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER);
}

static inline int to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = 1,
	};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline int to_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

static inline int connect_pair(struct pair *p)
{
	return to_init(p->qp[0]) || to_init(p->qp[1]) || to_rtr(p->qp[0], p->qp[1]->qp_num) ||
	       to_rtr(p->qp[1], p->qp[0]->qp_num) || to_rts(p->qp[0]) || to_rts(p->qp[1]);
}

static inline struct ibv_qp *make_qp(struct pair *p, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {
		.qp_type = type, .send_cq = p->cq, .recv_cq = p->cq, .srq = p->srq,
		.cap = { .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 4,
			 .max_recv_sge = 4, .max_inline_data = INLINE_BYTES },
	};

	return ibv_create_qp(p->pd, &init);
}

/* Makes all but the connection. @cqe: size of the CQ; @srq: receives come from an SRQ. */
static inline struct pair *make_pair(struct ibv_context *ctx, int cqe, bool srq)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 4 } };
	struct pair *p = calloc(1, sizeof(*p));
	int i;

	p->ctx = ctx;
	p->pd = ibv_alloc_pd(ctx);
	p->channel = ibv_create_comp_channel(ctx);
	/* The last vector is told from none. */
	p->cq = ibv_create_cq(ctx, cqe, NULL, p->channel, ctx->num_comp_vectors - 1);
	p->buf = aligned_alloc(4096, BUF_BYTES);
	if (!p->pd || !p->channel || !p->cq || !p->buf)
		die("cannot make a CQ");
	memset(p->buf, 0, BUF_BYTES);
	p->mr = ibv_reg_mr(p->pd, p->buf, BUF_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
			   IBV_ACCESS_MW_BIND);
	if (srq)
		p->srq = ibv_create_srq(p->pd, &init);
	for (i = 0; i < 2; i++)
		p->qp[i] = make_qp(p, IBV_QPT_RC);
	if (!p->mr || !p->qp[0] || !p->qp[1] || (srq && !p->srq))
		die("cannot make a queue pair");
	return p;
}

static inline void free_pair(struct pair *p)
{
	if (ibv_destroy_qp(p->qp[0]) || ibv_destroy_qp(p->qp[1]) ||
	    (p->srq && ibv_destroy_srq(p->srq)) || ibv_destroy_cq(p->cq) ||
	    ibv_dereg_mr(p->mr) || ibv_destroy_comp_channel(p->channel) ||
	    ibv_dealloc_pd(p->pd))
		die("cannot destroy");
	free(p->buf);
	free(p);
}

static inline struct ibv_sge sge_of(const struct pair *p, uint32_t offset, uint32_t length)
{
	return (struct ibv_sge) {
		.addr = (uintptr_t)p->buf + offset, .length = length, .lkey = p->mr->lkey,
	};
}

static inline int post_recv(struct pair *p, int side, uint64_t wr_id, struct ibv_sge sge)
{
	struct ibv_recv_wr wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 }, *bad;

	return p->srq ? ibv_post_srq_recv(p->srq, &wr, &bad) :
			ibv_post_recv(p->qp[side], &wr, &bad);
}

static inline int post_send(struct pair *p, uint64_t wr_id, enum ibv_wr_opcode opcode,
			    struct ibv_sge sge)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
		.wr.rdma = { .remote_addr = (uintptr_t)p->buf + BUF_BYTES / 2, .rkey = p->mr->rkey },
	}, *bad;

	return ibv_post_send(p->qp[0], &wr, &bad);
}

/* Polls one completion, of any kind. Returns false if none comes. */
static inline bool poll_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	time_t end = time(NULL) + PATIENCE;
	int got;

	while (!(got = ibv_poll_cq(cq, 1, wc))) {
		if (time(NULL) > end)
			return false;
		sched_yield();
	}
	return got == 1;
}

/* Is there an address of the kernel's, on x86-64? Pointers are aligned. */
static inline bool has_address(const unsigned char *buf, size_t bytes)
{
	uint64_t word;
	size_t i;

	for (i = 0; i + sizeof(word) <= bytes; i += sizeof(word)) {
		memcpy(&word, buf + i, sizeof(word));
		/* Not all ones, nor a small number before ones: those are fields. */
		if (word >> 47 == 0x1ffff && word != UINT64_MAX && (uint32_t)word >> 16) {
			printf("    0x%llx in byte %zu\n", (unsigned long long)word, i);
			return true;
		}
	}
	return false;
}

#endif
