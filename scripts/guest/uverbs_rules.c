// SPDX-License-Identifier: GPL-2.0-only
/*
 * uverbs_rules <device> [<case>]: rules of verbs that devices are known to break: domains, limits,
 * full queues, messages without data, what a process must not get to see.
 */
#include "uverbs_case.h"

#include <unistd.h>

/* As many requests as a process posts at a time, and as many as it wants under way. */
#define BATCH		10
#define UNDER_WAY	100

static int post_rdma(struct ibv_qp *qp, enum ibv_wr_opcode opcode, struct ibv_sge *sge,
		     uint64_t remote_addr, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = opcode, .send_flags = IBV_SEND_SIGNALED, .sg_list = sge,
		.num_sge = 1,
	}, *bad;

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = remote_addr;
		wr.wr.atomic.rkey = rkey;
	} else {
		wr.wr.rdma.remote_addr = remote_addr;
		wr.wr.rdma.rkey = rkey;
	}
	return ibv_post_send(qp, &wr, &bad);
}

/* --- domains -------------------------------------------------------------------------- */

static bool is_refused(struct pair *p, enum ibv_wr_opcode opcode, uint32_t lkey, uint32_t rkey,
		       enum ibv_wc_status status)
{
	struct ibv_sge sge = sge_of(p, 0, 8);

	sge.lkey = lkey;
	NEED(!connect_pair(p));
	memset(p->buf, 0x11, 8);
	memset(p->buf + BUF_BYTES / 2, 0x22, 8);
	NEED(!post_rdma(p->qp[0], opcode, &sge, (uintptr_t)p->buf + BUF_BYTES / 2, rkey));
	NEED(status_is(p, 1, status) && p->buf[0] == 0x11 && p->buf[BUF_BYTES / 2] == 0x22);
	NEED(!to_state(p->qp[0], IBV_QPS_RESET) && !to_state(p->qp[1], IBV_QPS_RESET));
	return true;
}

/* The key of a region is of no use in another domain, at either end. */
static bool regions_of_another_domain(struct pair *p)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	struct ibv_pd *pd = ibv_alloc_pd(p->ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, p->buf, BUF_BYTES, access);
	size_t i;

	NEED(pd && mr);
	for (i = 0; i < ARRAY_SIZE(opcodes) - 1; i++)
		NEED(is_refused(p, opcodes[i], mr->lkey, p->mr->rkey, IBV_WC_LOC_PROT_ERR));
	for (i = 0; i < ARRAY_SIZE(opcodes); i++)
		NEED(is_refused(p, opcodes[i], p->mr->lkey, mr->rkey, IBV_WC_REM_ACCESS_ERR));
	NEED(ibv_dealloc_pd(pd) == EBUSY && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	return true;
}

/* The receives of an SRQ are in its domain, whatever that of the queue pair. */
static bool srq_of_another_domain(struct pair *p)
{
	struct ibv_pd *pd = ibv_alloc_pd(p->ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, p->buf, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };
	struct ibv_srq *own = p->srq, *srq = ibv_create_srq(pd, &init);
	struct ibv_sge sge = sge_of(p, 0, 64);

	NEED(pd && mr && srq && !ibv_destroy_qp(p->qp[1]));
	p->srq = srq;
	p->qp[1] = make_qp(p, IBV_QPT_RC);
	sge.lkey = mr->lkey;
	NEED(p->qp[1] && !connect_pair(p) && !post_recv(p, 1, 2, sge));
	NEED(!post_send(p, 1, IBV_WR_SEND, sge_of(p, 64, 64)));
	NEED(status_is(p, 2, IBV_WC_SUCCESS) && status_is(p, 1, IBV_WC_SUCCESS));
	NEED(!post_recv(p, 1, 3, sge_of(p, 0, 64)));
	NEED(!post_send(p, 1, IBV_WR_SEND, sge_of(p, 64, 64)));
	NEED(status_is(p, 3, IBV_WC_LOC_PROT_ERR) && status_is(p, 1, IBV_WC_REM_OP_ERR));
	p->srq = own;
	NEED(!ibv_destroy_qp(p->qp[1]));
	p->qp[1] = make_qp(p, IBV_QPT_RC);
	NEED(p->qp[1] && !ibv_destroy_srq(srq) && !ibv_dereg_mr(mr) && !ibv_dealloc_pd(pd));
	return true;
}

/* --- datagrams ------------------------------------------------------------------------- */

/* To the port itself; NULL where librxe makes no address handle, as on an InfiniBand port. */
static struct ibv_ah *make_ah(struct ibv_pd *pd)
{
	struct ibv_ah_attr attr = { .port_num = 1, .is_global = 1, .grh.hop_limit = 1 };

	if (ibv_query_gid(pd->context, 1, 0, &attr.grh.dgid))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

static int ud_to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7 };

	if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY) ||
	    to_state(qp, IBV_QPS_RTR))
		return -1;
	attr.qp_state = IBV_QPS_RTS;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int send_datagram(struct pair *p, struct ibv_qp *qp, struct ibv_ah *ah, uint32_t length)
{
	struct ibv_sge sge = sge_of(p, 0, length);
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .sg_list = &sge,
		.num_sge = 1, .wr.ud = { .ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = 7 },
	}, *bad;

	return ibv_post_send(qp, &wr, &bad);
}

/* One that is too long, or whose address is of another domain, fails, and uses no receive. */
static bool ud(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, BUF_BYTES / 2, 8192);
	struct ibv_recv_wr recv = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_qp *qp = make_qp(p, IBV_QPT_UD);
	struct ibv_pd *pd = ibv_alloc_pd(p->ctx);
	struct ibv_ah *ah = make_ah(p->pd), *other = make_ah(pd);
	struct ibv_port_attr port;
	uint32_t mtu;

	NEED(qp && pd && !ibv_query_port(p->ctx, 1, &port));
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET) {
		printf("    no datagrams here\n");
		return !ibv_destroy_qp(qp) && !ibv_dealloc_pd(pd);
	}
	mtu = 128U << port.active_mtu;
	/* Before RTS it is refused, and does not come later. */
	NEED(ah && other && send_datagram(p, qp, ah, 64) == EINVAL);
	NEED(!ud_to_rts(qp) && !ibv_post_recv(qp, &recv, &bad));
	NEED(!send_datagram(p, qp, ah, mtu + 10) && status_is(p, 1, IBV_WC_LOC_LEN_ERR));
	NEED(!to_state(qp, IBV_QPS_RTS));
	NEED(!send_datagram(p, qp, other, 64) && status_is(p, 1, IBV_WC_LOC_QP_OP_ERR));
	NEED(!to_state(qp, IBV_QPS_RTS) && !send_datagram(p, qp, ah, mtu));
	NEED(status_is(p, 2, IBV_WC_SUCCESS) && status_is(p, 1, IBV_WC_SUCCESS));
	return !ibv_destroy_ah(ah) && !ibv_destroy_ah(other) && !ibv_destroy_qp(qp) &&
	       !ibv_dealloc_pd(pd);
}

/* --- sizes ----------------------------------------------------------------------------- */

/* Without data there is no memory to look at, and so no key. A region may be empty, too. */
static bool no_data(struct pair *p)
{
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf, 0, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
	struct ibv_sge empty = sge_of(p, 0, 0), one = sge_of(p, 0, 1);
	uint64_t there = (uintptr_t)p->buf;

	NEED(mr && !connect_pair(p));
	NEED(!post_rdma(p->qp[0], IBV_WR_RDMA_WRITE, &empty, there, 0x7777700));
	NEED(status_is(p, 1, IBV_WC_SUCCESS));
	NEED(!post_rdma(p->qp[0], IBV_WR_RDMA_READ, &empty, 1, 0x7777700));
	NEED(status_is(p, 1, IBV_WC_SUCCESS));
	NEED(!post_rdma(p->qp[0], IBV_WR_RDMA_WRITE, &empty, there, mr->rkey));
	NEED(status_is(p, 1, IBV_WC_SUCCESS));
	NEED(!post_rdma(p->qp[0], IBV_WR_RDMA_WRITE, &one, there, mr->rkey));
	NEED(status_is(p, 1, IBV_WC_REM_ACCESS_ERR) && !ibv_dereg_mr(mr));
	return true;
}

/* The result of an atomic goes into one element, which has room for it. */
static bool atomics(struct pair *p)
{
	struct ibv_sge sge[2] = { sge_of(p, 0, 4), sge_of(p, 64, 4) };
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = sge, .num_sge = 2,
		.wr.atomic = { .remote_addr = (uintptr_t)p->buf + BUF_BYTES / 2,
			       .compare_add = 1, .rkey = p->mr->rkey },
	}, *bad;

	memset(p->buf + BUF_BYTES / 2, 0x22, 8);
	NEED(!connect_pair(p) && !ibv_post_send(p->qp[0], &wr, &bad));
	NEED(status_is(p, 1, IBV_WC_LOC_QP_OP_ERR) && p->buf[BUF_BYTES / 2] == 0x22);
	NEED(!to_state(p->qp[0], IBV_QPS_RESET) && !to_state(p->qp[1], IBV_QPS_RESET));
	/* Too little is refused by librxe. */
	wr.num_sge = 1;
	sge[0].length = 12;
	NEED(!connect_pair(p) && !ibv_post_send(p->qp[0], &wr, &bad));
	NEED(status_is(p, 1, IBV_WC_LOC_LEN_ERR) && p->buf[BUF_BYTES / 2] == 0x22);
	NEED(!to_state(p->qp[0], IBV_QPS_RESET) && !to_state(p->qp[1], IBV_QPS_RESET));
	sge[0].length = 8;
	NEED(!connect_pair(p) && !ibv_post_send(p->qp[0], &wr, &bad));
	NEED(status_is(p, 1, IBV_WC_SUCCESS) && p->buf[BUF_BYTES / 2] == 0x23 &&
	     p->buf[0] == 0x22);
	return true;
}

static bool unknown_kinds(struct pair *p)
{
	static const int types[] = { 0, 1, 5, 6, 8, 9, 10, 0xf0, 0xff, -1 };
	struct ibv_qp_init_attr init = { .send_cq = p->cq, .recv_cq = p->cq };
	struct ibv_qp_attr attr = { .qp_state = 9 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		init.qp_type = types[i];
		NEED(!ibv_create_qp(p->pd, &init));
	}
	NEED(!ibv_create_cq(p->ctx, 1, NULL, NULL, p->ctx->num_comp_vectors));
	NEED(!ibv_create_cq(p->ctx, 0, NULL, NULL, 0) && !ibv_create_cq(p->ctx, -1, NULL, NULL, 0));
	NEED(!ibv_alloc_mw(p->pd, 0) && !ibv_alloc_mw(p->pd, 3));
	NEED(!ibv_reg_mr(p->pd, p->buf, 64, IBV_ACCESS_REMOTE_WRITE));
	NEED(!ibv_reg_mr(p->pd, p->buf, 64, IBV_ACCESS_REMOTE_ATOMIC));
	NEED(ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE) == EINVAL);
	attr.qp_state = IBV_QPS_RTS;
	NEED(ibv_modify_qp(p->qp[0], &attr, IBV_QP_STATE) == EINVAL);
	return true;
}

/* An opcode of the kernel's that processes do not have harms who posts it, and nobody else. */
static bool unknown_opcode(struct pair *p)
{
	struct ibv_sge sge = sge_of(p, 0, 64);
	struct ibv_send_wr wr = { .wr_id = 1, .opcode = IBV_WR_DRIVER1, .sg_list = &sge, .num_sge = 1 };
	struct ibv_send_wr *bad;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	NEED(!connect_pair(p));
	NEED(!ibv_post_send(p->qp[0], &wr, &bad) && status_is(p, 1, IBV_WC_LOC_QP_OP_ERR));
	NEED(!ibv_query_qp(p->qp[1], &attr, IBV_QP_STATE, &init) && attr.qp_state == IBV_QPS_RTS);
	return true;
}

/* What there is not is not offered, and refused by that name. */
static bool absent(struct pair *p)
{
	struct ibv_modify_cq_attr moderate = {
		.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = { .cq_count = 1, .cq_period = 1 },
	};
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_XRC_SEND, .send_cq = p->cq,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 },
	};
	struct ibv_device_attr_ex dev;

	NEED(!ibv_query_device_ex(p->ctx, NULL, &dev));
	NEED(!dev.cq_mod_caps.max_cq_count && !dev.cq_mod_caps.max_cq_period);
	NEED(ibv_modify_cq(p->cq, &moderate) == EOPNOTSUPP);
	NEED(!ibv_create_qp(p->pd, &init) && errno == EOPNOTSUPP);
	return true;
}

/* What the device says that it has can be had, and nobody gets more. */
static bool limits(struct pair *p)
{
	struct ibv_device_attr dev;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr srq_init = {};
	struct ibv_srq_attr attr;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_qp *qp;

	NEED(!ibv_query_device(p->ctx, &dev));
	cq = ibv_create_cq(p->ctx, dev.max_cqe, NULL, NULL, 0);
	NEED(cq && cq->cqe == dev.max_cqe && !ibv_resize_cq(cq, cq->cqe));
	NEED(!ibv_create_cq(p->ctx, dev.max_cqe + 1, NULL, NULL, 0));
	init.send_cq = init.recv_cq = cq;
	init.cap = (struct ibv_qp_cap) {
		.max_send_wr = dev.max_qp_wr, .max_recv_wr = dev.max_qp_wr,
		.max_send_sge = 1, .max_recv_sge = 1,
	};
	qp = ibv_create_qp(p->pd, &init);
	NEED(qp && init.cap.max_send_wr == (uint32_t)dev.max_qp_wr &&
	     init.cap.max_recv_wr == (uint32_t)dev.max_qp_wr);
	init.cap.max_send_wr++;
	NEED(!ibv_create_qp(p->pd, &init) && !ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	srq_init.attr = (struct ibv_srq_attr) { .max_wr = dev.max_srq_wr, .max_sge = 1 };
	srq = ibv_create_srq(p->pd, &srq_init);
	NEED(srq && !ibv_query_srq(srq, &attr) && attr.max_wr == (uint32_t)dev.max_srq_wr);
	NEED(!ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) && !ibv_destroy_srq(srq));
	return true;
}

/* The first byte of a region, which is not the first of its page, is at address 0. */
static bool zero_based(struct pair *p)
{
	struct ibv_mr *mr = ibv_reg_mr(p->pd, p->buf + 100, 8192, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED);
	struct ibv_sge sge = sge_of(p, BUF_BYTES / 2, 200);
	struct ibv_send_wr wr = {
		.wr_id = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = &sge, .num_sge = 1,
	}, *bad;
	static const uint32_t at[] = { 0, 4096 - 100 - 50, 8192 - 200 };
	size_t i;

	NEED(mr && !connect_pair(p));
	wr.wr.rdma.rkey = mr->rkey;
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		memset(p->buf + BUF_BYTES / 2, i + 1, 200);
		wr.wr.rdma.remote_addr = at[i];
		NEED(!ibv_post_send(p->qp[0], &wr, &bad) && status_is(p, 1, IBV_WC_SUCCESS));
		NEED(!memcmp(p->buf + 100 + at[i], p->buf + BUF_BYTES / 2, 200));
	}
	wr.wr.rdma.remote_addr++;
	NEED(!ibv_post_send(p->qp[0], &wr, &bad) && status_is(p, 1, IBV_WC_REM_ACCESS_ERR));
	NEED(!ibv_dereg_mr(mr));
	return true;
}

/* The request behind the last that fits is refused, and named. What was posted is executed. */
static bool full_send_queue(struct pair *p)
{
	struct ibv_send_wr wr[64], *bad = NULL;
	struct ibv_qp_attr attr;
	struct ibv_qp_init_attr init;
	uint32_t i, max;

	NEED(!ibv_query_qp(p->qp[0], &attr, IBV_QP_CAP, &init));
	max = attr.cap.max_send_wr;
	NEED(max >= DEPTH && max < ARRAY_SIZE(wr) && !connect_pair(p));
	for (i = 0; i <= max; i++)
		wr[i] = (struct ibv_send_wr) { .wr_id = i, .next = i < max ? &wr[i + 1] : NULL,
					       .opcode = IBV_WR_RDMA_WRITE,
					       .send_flags = i & 1 ? IBV_SEND_SIGNALED : 0 };
	wr[max - 1].send_flags = IBV_SEND_SIGNALED;
	NEED(ibv_post_send(p->qp[0], wr, &bad) == ENOMEM && bad == &wr[max]);
	for (i = 0; i < max; i++) {
		if (wr[i].send_flags)
			NEED(status_is(p, i, IBV_WC_SUCCESS));
	}
	return true;
}

static bool full_receive_queue(struct pair *p)
{
	int n = 0, err;

	NEED(!connect_pair(p));
	while (!(err = post_recv(p, 1, n, sge_of(p, 0, 64))))
		NEED(++n < 1000);
	NEED(err == ENOMEM && n >= DEPTH);
	NEED(!post_send(p, 999, IBV_WR_SEND, sge_of(p, 64, 64)));
	NEED(status_is(p, 0, IBV_WC_SUCCESS) && status_is(p, 999, IBV_WC_SUCCESS));
	NEED(!post_recv(p, 1, n, sge_of(p, 0, 64)) && post_recv(p, 1, n, sge_of(p, 0, 64)) == ENOMEM);
	return true;
}

/*
 * Who posts in batches, of more than is executed where it is posted, gets ahead of the device:
 * the post does not wait for it.
 */
static bool posts_ahead(struct pair *p)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 200, .max_send_sge = 1 },
	};
	struct ibv_cq *cq = ibv_create_cq(p->ctx, 255, NULL, NULL, 0);
	struct ibv_sge sge = sge_of(p, 0, 4096);
	struct ibv_qp *qp = p->qp[0];
	struct ibv_send_wr wr[BATCH], *bad;
	struct ibv_wc wc[50];
	int i, got, under_way = 0;
	time_t end = time(NULL) + PATIENCE;

	init.send_cq = init.recv_cq = cq;
	NEED(cq && (p->qp[0] = ibv_create_qp(p->pd, &init)) && !connect_pair(p));
	for (i = 0; i < BATCH; i++)
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i, .next = i < BATCH - 1 ? &wr[i + 1] : NULL,
			.opcode = IBV_WR_RDMA_READ, .send_flags = IBV_SEND_SIGNALED,
			.sg_list = &sge, .num_sge = 1,
			.wr.rdma = { .remote_addr = (uintptr_t)p->buf + BUF_BYTES / 2,
				     .rkey = p->mr->rkey },
		};
	while (under_way + BATCH < UNDER_WAY) {
		NEED(time(NULL) < end && !ibv_post_send(p->qp[0], wr, &bad));
		under_way += BATCH;
		got = ibv_poll_cq(cq, 50, wc);
		NEED(got >= 0);
		under_way -= got;
		for (i = 0; i < got; i++)
			NEED(wc[i].status == IBV_WC_SUCCESS);
	}
	NEED(!ibv_destroy_qp(p->qp[0]) && !ibv_destroy_cq(cq));
	p->qp[0] = qp;
	return true;
}

/* --- what is to be seen ------------------------------------------------------------------ */

/* Of a ring that nothing was posted to, all is zero but the sizes at its start. */
static bool is_fresh(const unsigned char *ring, size_t bytes)
{
	size_t i;

	for (i = 64; i < bytes; i++) {
		if (ring[i]) {
			printf("    byte %zu of a new ring is 0x%x\n", i, ring[i]);
			return false;
		}
	}
	return true;
}

static bool rings_are(bool (*what)(const unsigned char *ring, size_t bytes), bool right)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	char line[256];
	int nr = 0;

	NEED(maps);
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/infiniband/uverbs") || sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		NEED(what((unsigned char *)start, end - start) == right);
		nr++;
	}
	fclose(maps);
	NEED(nr >= 4);
	return true;
}

/* Rings have nothing in them that was somebody else's, and never an address of the kernel's. */
static bool nothing_else_to_see(struct pair *p)
{
	struct ibv_srq_attr attr = { .max_wr = 500 };
	int i;

	for (i = 0; i < 20; i++) {
		NEED(rings_are(is_fresh, true));
		NEED(!ibv_resize_cq(p->cq, 100 + i * 10));
		attr.max_wr += 500;
		NEED(!ibv_modify_srq(p->srq, &attr, IBV_SRQ_MAX_WR));
	}
	NEED(!connect_pair(p));
	for (i = 0; i < 10; i++) {
		NEED(!post_recv(p, 1, 2 * i, sge_of(p, 0, 64)));
		NEED(!post_send(p, 2 * i + 1, IBV_WR_SEND, sge_of(p, 64, i == 9 ? 65 : 64)));
		NEED(status_is(p, 2 * i, i == 9 ? IBV_WC_LOC_LEN_ERR : IBV_WC_SUCCESS));
		NEED(status_is(p, 2 * i + 1, i == 9 ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_SUCCESS));
	}
	NEED(!post_send(p, 30, IBV_WR_SEND, sge_of(p, 64, 64)));
	NEED(status_is(p, 30, IBV_WC_WR_FLUSH_ERR));
	return rings_are(has_address, false);
}

static const struct verbs_case cases[] = {
	CASE(regions_of_another_domain, false),
	CASE(srq_of_another_domain, true),
	CASE(ud, false),
	CASE(no_data, false),
	CASE(atomics, false),
	CASE(unknown_kinds, false),
	CASE(unknown_opcode, false),
	CASE(absent, false),
	CASE(limits, false),
	CASE(zero_based, false),
	CASE(full_send_queue, false),
	CASE(full_receive_queue, false),
	{ "full_srq", full_receive_queue, true },
	CASE(posts_ahead, false),
	CASE(nothing_else_to_see, true),
};

int main(int argc, char **argv)
{
	return run_cases(argc, argv, cases, ARRAY_SIZE(cases));
}
