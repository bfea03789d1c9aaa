// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a call says that is answered with -EINVAL: which attribute was wrong, its value and the
 * limit. Read from the tracepoint, because the log has a limited rate.
 */
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/tracepoint.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_umem.h>

#include "lib/console.h"
#include "lib/dmabuf_rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

/* As in core/contract/invalid.c: lines that the log takes of one storm. */
#define LOG_BURST	10

/* The last refusal. */
struct said {
	struct tracepoint *tp;
	unsigned int times;	/* how many there were */
	char client[32];	/* the client that it names */
	char object[32];	/* the object */
	char text[192];		/* the rest */
};

static void probe(void *data, const struct ib_device *dev, const char *client,
		  const char *object, const char *text)
{
	struct said *said = data;

	said->times++;
	strscpy(said->client, client, sizeof(said->client));
	strscpy(said->object, object, sizeof(said->object));
	strscpy(said->text, text, sizeof(said->text));
}

static void unwatch(void *arg)
{
	struct said *said = arg;

	tracepoint_probe_unregister(said->tp, probe, said);
	tracepoint_synchronize_unregister();
}

static struct said *watch(struct kunit *test)
{
	struct said *said = kvt_zalloc(test, sizeof(*said));

	said->tp = KVT_PTR(test, kvt_tracepoint("ib_invalid"));
	KUNIT_ASSERT_EQ(test, 0, tracepoint_probe_register(said->tp, probe, said));
	kvt_defer(test, unwatch, said);
	return said;
}

/* The last call was refused, and said @text once. */
static void expect_said(struct kunit *test, struct said *said, long ret, const char *text)
{
	KUNIT_EXPECT_EQ(test, -EINVAL, ret);
	KUNIT_EXPECT_EQ(test, 1, said->times);
	KUNIT_EXPECT_STREQ(test, text, said->text);
	said->times = 0;
	said->text[0] = '\0';
}

struct rig {
	struct mock *m;
	struct said *said;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp_init_attr init;
	struct ib_qp *qp;
};

static void rig_up(struct kunit *test, struct rig *r)
{
	r->m = mock_up(test, "kvtm_a");
	r->pd = kvt_pd(test, r->m->ibdev);
	r->cq = kvt_cq(test, r->m->ibdev, 64, IB_POLL_SOFTIRQ);
	kvt_qp_init(&r->init, r->cq, r->cq);
	r->qp = kvt_qp(test, r->pd, &r->init);
	r->said = watch(test);
}

/* Attributes of which every one is legal. */
static const struct ib_qp_attr legal = {
	.qp_state = IB_QPS_RESET, .cur_qp_state = IB_QPS_RESET, .path_mtu = IB_MTU_1024,
	.dest_qp_num = 1, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .min_rnr_timer = 12,
	.max_rd_atomic = 1, .max_dest_rd_atomic = 1, .port_num = 1,
};

#define CHECKED	(IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_TIMEOUT | \
		 IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_MIN_RNR_TIMER |			   \
		 IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_PORT | IB_QP_PKEY_INDEX)

struct attr_case {
	const char *name;
	size_t offset;
	size_t size;
	int bit;
	u32 value;
	const char *text;
};

#define ATTR(field, bit, value, text)							\
	{ #field, offsetof(struct ib_qp_attr, field),					\
	  sizeof_field(struct ib_qp_attr, field), bit, value, text }

static const struct attr_case attrs[] = {
	ATTR(qp_state, IB_QP_STATE, 7, "RESET to ?: qp_state 7: must be at most 6"),
	ATTR(cur_qp_state, IB_QP_CUR_STATE, 9, "RESET to RESET: cur_qp_state 9: must be at most 6"),
	ATTR(path_mtu, IB_QP_PATH_MTU, 0, "RESET to RESET: path_mtu 0: must be at least 1"),
	ATTR(path_mtu, IB_QP_PATH_MTU, 6, "RESET to RESET: path_mtu 6: must be at most 5"),
	ATTR(dest_qp_num, IB_QP_DEST_QPN, 0x1000000,
	     "RESET to RESET: dest_qp_num 16777216: must be at most 16777215"),
	ATTR(timeout, IB_QP_TIMEOUT, 32, "RESET to RESET: timeout 32: must be at most 31"),
	ATTR(retry_cnt, IB_QP_RETRY_CNT, 8, "RESET to RESET: retry_cnt 8: must be at most 7"),
	ATTR(rnr_retry, IB_QP_RNR_RETRY, 9, "RESET to RESET: rnr_retry 9: must be at most 7"),
	ATTR(min_rnr_timer, IB_QP_MIN_RNR_TIMER, 33,
	     "RESET to RESET: min_rnr_timer 33: must be at most 31"),
	ATTR(max_rd_atomic, IB_QP_MAX_QP_RD_ATOMIC, 9,
	     "RESET to RESET: max_rd_atomic 9: must be at most 7"),
	ATTR(max_dest_rd_atomic, IB_QP_MAX_DEST_RD_ATOMIC, 17,
	     "RESET to RESET: max_dest_rd_atomic 17: must be at most 8"),
	ATTR(port_num, IB_QP_PORT, 0, "RESET to RESET: port_num 0: must be at least 1"),
	ATTR(port_num, IB_QP_PORT, 2, "RESET to RESET: port_num 2: must be at most 1"),
	/* Its limit is that of the port. */
	ATTR(pkey_index, IB_QP_PKEY_INDEX | IB_QP_PORT, 4,
	     "RESET to RESET: pkey_index 4: must be at most 3"),
};

static void attr_name(const struct attr_case *c, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s %u", c->name, c->value);
}

KUNIT_ARRAY_PARAM(attr, attrs, attr_name);

static void set_field(struct ib_qp_attr *attr, const struct attr_case *c)
{
	void *field = (void *)attr + c->offset;

	if (c->size == sizeof(u8))
		*(u8 *)field = c->value;
	else if (c->size == sizeof(u16))
		*(u16 *)field = c->value;
	else
		*(u32 *)field = c->value;
}

/* Alone, and among all others, which are right. */
static void modify_qp_names_the_wrong_attribute(struct kunit *test)
{
	const struct attr_case *c = test->param_value;
	struct ib_qp_attr attr = legal;
	struct rig r;

	rig_up(test, &r);
	set_field(&attr, c);
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, c->bit), c->text);
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, CHECKED), c->text);
	KUNIT_EXPECT_STREQ(test, "kverbs_kunit", r.said->client);
	KUNIT_EXPECT_STREQ(test, "qp 257: ", r.said->object);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_modify_qp));
}

/* A value counts only if its bit is set. */
static void a_value_that_is_not_given_is_not_blamed(struct kunit *test)
{
	const struct attr_case *c = test->param_value;
	struct ib_qp_attr attr = legal;
	struct rig r;

	rig_up(test, &r);
	set_field(&attr, c);
	ib_modify_qp(r.qp, &attr, CHECKED & ~c->bit);
	KUNIT_EXPECT_STRNEQ(test, c->text, r.said->text);
	KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_modify_qp));
}

static void unknown_bits_of_the_mask_are_named(struct kunit *test)
{
	struct ib_qp_attr attr = legal;
	struct rig r;

	rig_up(test, &r);
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, IB_QP_STATE | BIT(30)),
		    "RESET to RESET: attr_mask 0x40000001 has unknown bits 0x40000000");
}

/* A PSN that is too long is not refused. One that is not given is neither named nor changed. */
static void a_psn_that_is_trimmed_is_named(struct kunit *test)
{
	struct kvt_console *rq = kvt_console_watch(test, "qp 257: rq_psn 0x1000005 exceeds 24 bits");
	struct kvt_console *sq = kvt_console_watch(test, "qp 257: sq_psn 0x2000006 exceeds 24 bits");
	struct ib_qp_attr attr = legal;
	struct rig r;

	rig_up(test, &r);
	attr.rq_psn = 0x1000005;
	attr.sq_psn = 0x2000006;
	ib_modify_qp(r.qp, &attr, IB_QP_RQ_PSN);
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(rq));
	KUNIT_EXPECT_EQ(test, 0, kvt_console_times(sq));
	KUNIT_EXPECT_EQ(test, 5, attr.rq_psn);
	KUNIT_EXPECT_EQ(test, 0x2000006, attr.sq_psn);
	ib_modify_qp(r.qp, &attr, IB_QP_SQ_PSN);
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(rq));
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(sq));
	KUNIT_EXPECT_EQ(test, 6, attr.sq_psn);
}

/* Paths */

#define TO_RTR	(IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN | \
		 IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER)

static void path_up(struct ib_device *dev, struct rdma_ah_attr *ah)
{
	ah->type = rdma_ah_find_type(dev, 1);
	rdma_ah_set_port_num(ah, 1);
	rdma_ah_set_dlid(ah, 0x12);
	rdma_ah_set_grh(ah, NULL, 0, 1, 64, 0);
}

static void rtr_up(struct kunit *test, struct rig *r, struct ib_qp_attr *attr)
{
	rig_up(test, r);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(r->qp, 1));
	*attr = legal;
	attr->qp_state = IB_QPS_RTR;
	path_up(r->m->ibdev, &attr->ah_attr);
	path_up(r->m->ibdev, &attr->alt_ah_attr);
}

static void modify_qp_names_what_is_wrong_in_the_path(struct kunit *test)
{
	struct ib_qp_attr attr;
	struct rig r;

	rtr_up(test, &r, &attr);
	rdma_ah_set_port_num(&attr.ah_attr, 3);
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, TO_RTR),
		    "INIT to RTR: ah_attr.port_num 3: no such port");
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, TO_RTR),
		    "INIT to RTR: ah_attr.type 2: port 1 is not a RoCE port");
	path_up(r.m->ibdev, &attr.ah_attr);
	rdma_ah_set_grh(&attr.ah_attr, NULL, 0, MOCK_GIDS, 64, 0);
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, TO_RTR),
		    "INIT to RTR: ah_attr.grh.sgid_index 8: not in the GID table of port 1");
}

static void the_alternate_path_is_not_taken_for_the_path(struct kunit *test)
{
	struct ib_qp_attr attr;
	struct rig r;

	rtr_up(test, &r, &attr);
	rdma_ah_set_port_num(&attr.alt_ah_attr, 2);
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, TO_RTR | IB_QP_ALT_PATH),
		    "INIT to RTR: alt_ah_attr.port_num 2: no such port");
	path_up(r.m->ibdev, &attr.alt_ah_attr);
	rdma_ah_set_grh(&attr.alt_ah_attr, NULL, 0, MOCK_GIDS, 64, 0);
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, TO_RTR | IB_QP_ALT_PATH),
		    "INIT to RTR: alt_ah_attr.grh.sgid_index 8: not in the GID table of port 1");
	KUNIT_EXPECT_NULL(test, r.qp->alt_path_sgid_attr);
}

/* What the driver refuses */

struct need_case {
	int bit;
	const char *name;
};

static const struct need_case needs[] = {
	{ IB_QP_AV, "ah_attr" }, { IB_QP_PATH_MTU, "path_mtu" },
	{ IB_QP_DEST_QPN, "dest_qp_num" }, { IB_QP_RQ_PSN, "rq_psn" },
	{ IB_QP_MAX_DEST_RD_ATOMIC, "max_dest_rd_atomic" },
	{ IB_QP_MIN_RNR_TIMER, "min_rnr_timer" },
};

/* Each bit is changed in the mask of a legal change of state. */
static void expect_named(struct kunit *test, const char *what, const struct need_case *c, int nr)
{
	struct ib_qp_attr attr;
	char text[64];
	struct rig r;

	rtr_up(test, &r, &attr);
	mock_fail(r.m, MOCK_modify_qp, -EINVAL);
	for (; nr--; c++) {
		snprintf(text, sizeof(text), "INIT to RTR: %s %s", what, c->name);
		expect_said(test, r.said, ib_modify_qp(r.qp, &attr, TO_RTR ^ c->bit), text);
	}
	mock_fail_none(r.m);
}

static void missing_attribute_is_named(struct kunit *test)
{
	expect_named(test, "lacks", needs, ARRAY_SIZE(needs));
}

static const struct need_case extras[] = {
	{ IB_QP_EN_SQD_ASYNC_NOTIFY, "en_sqd_async_notify" }, { IB_QP_QKEY, "qkey" },
	{ IB_QP_TIMEOUT, "timeout" }, { IB_QP_RETRY_CNT, "retry_cnt" },
	{ IB_QP_RNR_RETRY, "rnr_retry" }, { IB_QP_MAX_QP_RD_ATOMIC, "max_rd_atomic" },
	{ IB_QP_SQ_PSN, "sq_psn" }, { IB_QP_PATH_MIG_STATE, "path_mig_state" },
	{ IB_QP_CAP, "cap" }, { IB_QP_RATE_LIMIT, "rate_limit" }, { IB_QP_PORT, "port_num" },
	{ IB_QP_CUR_STATE, "cur_qp_state" },
};

static void superfluous_attribute_is_named(struct kunit *test)
{
	expect_named(test, "does not take", extras, ARRAY_SIZE(extras));
}

static void illegal_change_and_refusal_are_told_apart(struct kunit *test)
{
	struct ib_qp_attr attr;
	struct rig r;

	rtr_up(test, &r, &attr);
	mock_fail(r.m, MOCK_modify_qp, -EINVAL);
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, TO_RTR),
		    "INIT to RTR: refused by the driver (attr_mask 0x129181, ah_attr: port_num 1, dlid 18, sl 0, dgid 0000:0000:0000:0000:0000:0000:0000:0000); query the QP's state");
	attr.qp_state = IB_QPS_RTS;
	expect_said(test, r.said, ib_modify_qp(r.qp, &attr, IB_QP_STATE),
		    "INIT to RTS: not a legal change of state");
	mock_fail(r.m, MOCK_modify_qp, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_modify_qp(r.qp, &attr, IB_QP_STATE));
	KUNIT_EXPECT_EQ(test, 0, r.said->times);
	mock_fail_none(r.m);
}

/* What the core finds right, and the driver does not. */
static void refusal_by_the_driver_is_told(struct kunit *test)
{
	struct ib_srq_init_attr srq = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ib_cq_init_attr cq = { .cqe = 16 };
	struct rig r;

	rig_up(test, &r);
	mock_fail(r.m, MOCK_create_srq, -EINVAL);
	expect_said(test, r.said, PTR_ERR_OR_ZERO(ib_create_srq(r.pd, &srq)),
		    "create_srq: refused by the driver (max_wr 4, max_sge 1)");
	mock_fail(r.m, MOCK_create_cq, -EINVAL);
	expect_said(test, r.said,
		    PTR_ERR_OR_ZERO(ib_create_cq(r.m->ibdev, NULL, NULL, NULL, &cq)),
		    "create_cq: refused by the driver (cqe 16, comp_vector 0, flags 0x0)");
	mock_fail(r.m, MOCK_alloc_mw, -EINVAL);
	expect_said(test, r.said, PTR_ERR_OR_ZERO(ib_alloc_mw(r.pd, IB_MW_TYPE_1)),
		    "alloc_mw: refused by the driver (type 1)");
	/* Any other error speaks for itself. */
	mock_fail(r.m, MOCK_alloc_mw, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, PTR_ERR_OR_ZERO(ib_alloc_mw(r.pd, IB_MW_TYPE_1)));
	KUNIT_EXPECT_EQ(test, 0, r.said->times);
	mock_fail_none(r.m);
}

/* Other calls */

static long no_qp(struct rig *r)
{
	return PTR_ERR_OR_ZERO(ib_create_qp(r->pd, &r->init));
}

static void create_qp_names_the_size(struct kunit *test)
{
	struct ib_qp_cap *cap;
	struct rig r;

	rig_up(test, &r);
	cap = &r.init.cap;
	cap->max_send_wr = MOCK_MAX_QP_WR + 1;
	expect_said(test, r.said, no_qp(&r), "create_qp: max_send_wr 129: must be at most 128");
	KUNIT_EXPECT_STREQ(test, "pd 1: ", r.said->object);
	cap->max_send_wr = 1;
	cap->max_recv_sge = MOCK_MAX_SGE + 1;
	expect_said(test, r.said, no_qp(&r), "create_qp: max_recv_sge 5: must be at most 4");
	cap->max_recv_sge = 1;
	r.init.recv_cq = NULL;
	expect_said(test, r.said, no_qp(&r), "create_qp: recv_cq is missing");
	r.init.recv_cq = r.cq;
	r.init.qp_type = 99;
	expect_said(test, r.said, no_qp(&r), "create_qp: qp_type 99: no such type");
}

static void cq_and_srq_name_the_size(struct kunit *test)
{
	struct ib_srq_init_attr init = { .attr.max_wr = MOCK_MAX_SRQ_WR + 1 };
	char text[64];
	struct rig r;

	rig_up(test, &r);
	expect_said(test, r.said, PTR_ERR_OR_ZERO(ib_create_srq(r.pd, &init)),
		    "create_srq: max_wr 65: must be at most 64");
	init.attr.max_wr = 0;
	expect_said(test, r.said, PTR_ERR_OR_ZERO(ib_create_srq(r.pd, &init)),
		    "create_srq: max_wr 0: must be at least 1");
	expect_said(test, r.said,
		    PTR_ERR_OR_ZERO(ib_alloc_cq(r.m->ibdev, NULL, 0, 0, IB_POLL_SOFTIRQ)),
		    "create_cq: nr_cqe 0: must be at least 1");
	KUNIT_EXPECT_STREQ(test, "", r.said->object);
	KUNIT_EXPECT_STREQ(test, KBUILD_MODNAME, r.said->client);
	snprintf(text, sizeof(text), "create_cq: comp_vector %d: must be at most %d",
		 r.m->ibdev->num_comp_vectors, r.m->ibdev->num_comp_vectors - 1);
	expect_said(test, r.said,
		    PTR_ERR_OR_ZERO(ib_alloc_cq(r.m->ibdev, NULL, 1,
						r.m->ibdev->num_comp_vectors, IB_POLL_SOFTIRQ)),
		    text);
}

static void address_and_memory_name_the_argument(struct kunit *test)
{
	struct rdma_ah_attr ah = {};
	struct rig r;

	rig_up(test, &r);
	path_up(r.m->ibdev, &ah);
	rdma_ah_set_port_num(&ah, 0);
	expect_said(test, r.said, PTR_ERR_OR_ZERO(rdma_create_ah(r.pd, &ah, 0)),
		    "create_ah: ah_attr.port_num 0: no such port");
	expect_said(test, r.said,
		    PTR_ERR_OR_ZERO(ib_reg_user_mr(r.pd, 0x1000, 0, 0x1000, 0)),
		    "reg_mr: length 0: must be at least 1");
	expect_said(test, r.said,
		    PTR_ERR_OR_ZERO(ib_reg_user_mr(r.pd, 0x1000, 1, 0x1000,
						   IB_ACCESS_REMOTE_WRITE)),
		    "reg_mr: access flags 0x2: remote write and atomic need local write");
}

/* Each once, whatever calls whatever inside. */
static void range_of_memory_is_named(struct kunit *test)
{
	struct ib_device *dev;
	char text[96];
	struct rig r;

	rig_up(test, &r);
	dev = r.m->ibdev;
	expect_said(test, r.said, PTR_ERR_OR_ZERO(ib_umem_get(dev, SZ_4K, 0, 0)),
		    "umem_get: length 0: must be at least 1");
	KUNIT_EXPECT_STREQ(test, "", r.said->object);
	KUNIT_EXPECT_STREQ(test, KBUILD_MODNAME, r.said->client);
	expect_said(test, r.said, PTR_ERR_OR_ZERO(ib_umem_get(dev, -2, 2, 0)),
		    "umem_get: addr 0xfffffffffffffffe + length 2 overflows");
	snprintf(text, sizeof(text), "umem_get: length %llu: more than 4294967295 pages",
		 BIT_ULL(32 + PAGE_SHIFT));
	expect_said(test, r.said,
		    PTR_ERR_OR_ZERO(ib_umem_get(dev, 0, BIT_ULL(32 + PAGE_SHIFT), 0)), text);
	expect_said(test, r.said,
		    PTR_ERR_OR_ZERO(ib_umem_get_peer(dev, SZ_4K, 0, 0, IB_PEER_MEM_ALLOW)),
		    "umem_get_peer: length 0: must be at least 1");
	/* The last page ends where addresses do. */
	expect_said(test, r.said, PTR_ERR_OR_ZERO(ib_reg_user_mr(r.pd, -11, 5, 0, 0)),
		    "reg_mr: start 0xfffffffffffffff5 + length 5 overflows");
	KUNIT_EXPECT_STREQ(test, "pd 1: ", r.said->object);
}

static void range_of_a_dmabuf_is_named(struct kunit *test)
{
	struct dmabuf_rig *buf = dmabuf_rig_new(test, SZ_64K);
	struct mock *m = mock_new(test);
	struct said *said;

	mock_by_umem(m);
	mock_start(test, m, "kvtm_a");
	said = watch(test);
	expect_said(test, said, PTR_ERR_OR_ZERO(ib_umem_dmabuf_get_pinned(m->ibdev, 0, 0,
									  buf->fd, 0)),
		    "umem_dmabuf_get: length 0: must be at least 1");
	expect_said(test, said, PTR_ERR_OR_ZERO(ib_umem_dmabuf_get_pinned(m->ibdev, SZ_4K, SZ_64K,
									  buf->fd, 0)),
		    "umem_dmabuf_get: fd_offset 0x1000 + length 65536 > 65536, the dma-buf's size");
	KUNIT_EXPECT_STREQ(test, KBUILD_MODNAME, said->client);
}

static void refusal_of_a_region_is_told(struct kunit *test)
{
	unsigned long addr = kvt_map(test, PAGE_SIZE);
	struct ib_mem mem = { .path = IB_MEM_DMABUF, .has_fd = true, .length = SZ_4K };
	struct dmabuf_rig *buf = dmabuf_rig_new(test, SZ_64K);
	struct mock *m = mock_new(test);
	struct ib_pd *pd;
	struct said *said;
	char text[96];

	mock_by_umem(m);
	mock_start(test, m, "kvtm_a");
	pd = kvt_pd(test, m->ibdev);
	said = watch(test);
	mock_fail(m, MOCK_reg_umem_mr, -EINVAL);
	mem.fd = buf->fd;
	expect_said(test, said, PTR_ERR_OR_ZERO(ib_reg_mem(pd, &mem, 0, 0)),
		    "reg_mr: refused by the exporter or a driver (fd_offset 0x0, length 4096)");
	snprintf(text, sizeof(text),
		 "reg_mr: refused by a driver (start %#lx, length 4096, virt_addr 0x7000)", addr);
	expect_said(test, said, PTR_ERR_OR_ZERO(ib_reg_user_mr(pd, addr, SZ_4K, 0x7000, 0)), text);
	mem.fd_offset = SZ_64K;
	expect_said(test, said, PTR_ERR_OR_ZERO(ib_reg_mem(pd, &mem, 0, 0)),
		    "reg_mr: fd_offset 0x10000 + length 4096 > 65536, the dma-buf's size");
	mock_fail_none(m);
}

static void reading_beyond_memory_is_named(struct kunit *test)
{
	struct ib_umem umem = { .length = 8 };
	struct rig r;
	u64 word;

	rig_up(test, &r);
	umem.ibdev = r.m->ibdev;
	expect_said(test, r.said, ib_umem_copy_from(&word, &umem, 1, 8),
		    "umem_copy_from: offset 1 + length 8 > 8, the memory's length");
	umem.is_dmabuf = true;
	expect_said(test, r.said, ib_umem_copy_from(&word, &umem, 0, 8),
		    "umem_copy_from: not system memory, so it cannot be copied from");
	KUNIT_EXPECT_STREQ(test, KBUILD_MODNAME, r.said->client);
}

/* The call names no device. */
static void kind_of_header_is_named(struct kunit *test)
{
	struct said *said = watch(test);
	union rdma_network_hdr hdr = {};
	union ib_gid sgid, dgid;

	expect_said(test, said, ib_get_gids_from_rdma_hdr(&hdr, 9, &sgid, &dgid),
		    "get_gids_from_rdma_hdr: net_type 9: no such type");
	expect_said(test, said, ib_get_gids_from_rdma_hdr(&hdr, RDMA_NETWORK_IB, &sgid, NULL),
		    "get_gids_from_rdma_hdr: dgid is missing");
	KUNIT_EXPECT_STREQ(test, KBUILD_MODNAME, said->client);
}

static void kind_of_header_in_a_completion_is_named(struct kunit *test)
{
	struct mock *m = mock_up_eth(test, "kvtm_a", kvt_netdev(test));
	const struct ib_wc wc = {
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE, .network_hdr_type = 9,
	};
	struct said *said = watch(test);
	struct rdma_ah_attr attr;
	struct ib_grh grh = {};

	expect_said(test, said, ib_init_ah_attr_from_wc(m->ibdev, 1, &wc, &grh, &attr),
		    "init_ah_attr_from_wc: network_hdr_type 9: no such type");
	KUNIT_EXPECT_STREQ(test, KBUILD_MODNAME, said->client);
}

static void port_and_index_are_named(struct kunit *test)
{
	enum ib_port_state state;
	struct ib_port_attr attr;
	struct ib_device *dev;
	union ib_gid gid = {};
	struct rig r;
	char text[96];
	u16 pkey;
	u8 lmc;

	rig_up(test, &r);
	dev = r.m->ibdev;
	snprintf(text, sizeof(text), "query_port: port 99: must be %u to %u",
		 rdma_start_port(dev), rdma_end_port(dev));
	expect_said(test, r.said, ib_query_port(dev, 99, &attr), text);
	KUNIT_EXPECT_STREQ(test, "", r.said->object);
	KUNIT_EXPECT_STREQ(test, KBUILD_MODNAME, r.said->client);
	snprintf(text, sizeof(text), "query_gid: port 1: index -1: the table has %d entries",
		 dev->port_data[1].immutable.gid_tbl_len);
	expect_said(test, r.said, rdma_query_gid(dev, 1, -1, &gid), text);
	snprintf(text, sizeof(text), "get_cached_pkey: port 1: index 999: the table has %d entries",
		 dev->port_data[1].immutable.pkey_tbl_len);
	expect_said(test, r.said, ib_get_cached_pkey(dev, 1, 999, &pkey), text);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_get_cached_lmc(dev, 0, &lmc));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_get_cached_port_state(dev, 99, &state));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_find_cached_pkey(dev, 99, 0xffff, &pkey));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_find_exact_cached_pkey(dev, 99, 0xffff, &pkey));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_query_pkey(dev, 99, 0, &pkey));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_query_pkey(dev, 1, 999, &pkey));
	KUNIT_EXPECT_EQ(test, -EINVAL, rdma_query_gid(dev, 99, 0, &gid));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(rdma_get_gid_attr(dev, 99, 0)));
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(rdma_get_gid_attr(dev, 1, 999)));
	KUNIT_EXPECT_EQ(test, 9, r.said->times);
	r.said->times = 0;
	KUNIT_EXPECT_EQ(test, -ENOENT,
			PTR_ERR_OR_ZERO(rdma_find_gid_by_port(dev, &gid, IB_GID_TYPE_IB, 99, NULL)));
	KUNIT_EXPECT_EQ(test, 1, r.said->times);
	r.said->times = 0;
	/* A missing object is not a violation. */
	KUNIT_EXPECT_EQ(test, -ENOENT, ib_find_cached_pkey(dev, 1, 0x1234, &pkey));
	KUNIT_EXPECT_EQ(test, -ENOENT,
			PTR_ERR_OR_ZERO(rdma_find_gid_by_port(dev, &gid, IB_GID_TYPE_IB, 1, NULL)));
	KUNIT_EXPECT_EQ(test, 0, r.said->times);
}

static void rule_for_names_of_devices_is_told(struct kunit *test)
{
	struct rig r;

	rig_up(test, &r);
	expect_said(test, r.said, ib_device_rename(r.m->ibdev, "kvtm_%d"),
		    "device_rename: the name must be a word without % and /, shorter than 64 bytes");
	expect_said(test, r.said, ib_device_rename(r.m->ibdev, ".."),
		    "device_rename: the name must be a word without % and /, shorter than 64 bytes");
	KUNIT_EXPECT_STREQ(test, KBUILD_MODNAME, r.said->client);
}

static void port_that_is_no_ethernet_port_is_named(struct kunit *test)
{
	struct rig r;
	u16 speed;
	u8 width;

	rig_up(test, &r);
	expect_said(test, r.said, ib_get_eth_speed(r.m->ibdev, 1, &speed, &width),
		    "get_eth_speed: port 1 is not an Ethernet port");
	KUNIT_EXPECT_STREQ(test, KBUILD_MODNAME, r.said->client);
}

static void post_says_why_it_is_refused(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	const struct ib_send_wr send = { .wr_id = 7, .send_flags = IB_SEND_SIGNALED };
	const struct ib_recv_wr recv = { .wr_id = 8, .num_sge = 1 };
	const struct ib_send_wr unnamed = {};
	struct rig r;

	rig_up(test, &r);
	KUNIT_ASSERT_EQ(test, 0, kvt_qp_to_init(r.qp, 1));
	KUNIT_ASSERT_EQ(test, 0, ib_modify_qp(r.qp, &attr, IB_QP_STATE));
	mock_fail(r.m, MOCK_post_send, -EINVAL);
	mock_fail(r.m, MOCK_post_recv, -EINVAL);
	expect_said(test, r.said, ib_post_send(r.qp, &send, NULL),
		    "post_send: wr_id 0x7: refused by the driver (opcode 0, send_flags 0x2, num_sge 0)");
	KUNIT_EXPECT_STREQ(test, "qp 257: ", r.said->object);
	expect_said(test, r.said, ib_post_recv(r.qp, &recv, NULL),
		    "post_recv: wr_id 0x8: refused by the driver (num_sge 1)");
	mock_fail(r.m, MOCK_post_send, -ENOMEM);
	KUNIT_EXPECT_EQ(test, -ENOMEM, ib_post_send(r.qp, &send, NULL));
	mock_fail_none(r.m);
	KUNIT_EXPECT_EQ(test, 0, ib_post_send(r.qp, &unnamed, NULL));
	KUNIT_EXPECT_EQ(test, 0, r.said->times);
}

static void storm(struct kunit *test, struct rig *r)
{
	struct ib_qp_attr attr = legal;
	int i;

	attr.timeout = 32;
	for (i = 0; i < 10 * LOG_BURST; i++)
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_qp(r->qp, &attr, IB_QP_TIMEOUT));
}

static void a_line_in_the_log_names_client_and_device(struct kunit *test)
{
	struct kvt_console *line = kvt_console_watch(test,
		"kvtm_a: kverbs_kunit: qp 257: RESET to RESET: timeout 32: must be at most 31");
	struct kvt_console *any = kvt_console_watch(test, "timeout 32: must be at most 31");
	struct rig r;

	rig_up(test, &r);
	storm(test, &r);
	KUNIT_EXPECT_EQ(test, 10 * LOG_BURST, r.said->times);
	KUNIT_EXPECT_EQ(test, kvt_console_times(any), kvt_console_times(line));
	/* The rate limit's interval may restart once meanwhile. */
	KUNIT_EXPECT_LE(test, kvt_console_times(any), 2 * LOG_BURST);
}

static void a_process_does_not_silence_the_kernels_clients(struct kunit *test)
{
	struct kvt_console *line = kvt_console_watch(test, "timeout 33: must be at most 31");
	struct ib_qp_attr attr = legal;
	struct rig r;

	rig_up(test, &r);
	r.qp->res.user = true;
	storm(test, &r);
	r.qp->res.user = false;
	attr.timeout = 33;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_qp(r.qp, &attr, IB_QP_TIMEOUT));
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(line));
}

static void a_process_with_bad_memory_silences_nobody(struct kunit *test)
{
	struct kvt_console *line = kvt_console_watch(test, "query_port: port 99");
	struct ib_port_attr attr;
	struct rig r;
	int i;

	rig_up(test, &r);
	for (i = 0; i < 10 * LOG_BURST; i++)
		KUNIT_EXPECT_EQ(test, -EINVAL,
				PTR_ERR_OR_ZERO(ib_umem_get(r.m->ibdev, SZ_4K, 0, 0)));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_query_port(r.m->ibdev, 99, &attr));
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(line));
}

/* A region in a PD of kverbs_ca, which is no object of the process. */
static void a_process_with_bad_regions_silences_nobody(struct kunit *test)
{
	struct kvt_console *line = kvt_console_watch(test, "query_port: port 99");
	struct ib_mem mem = { .for_process = true };
	struct ib_port_attr attr;
	struct rig r;
	int i;

	rig_up(test, &r);
	for (i = 0; i < 10 * LOG_BURST; i++)
		KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(ib_reg_mem(r.qp->pd, &mem, 0, 0)));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_query_port(r.m->ibdev, 99, &attr));
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(line));
}

static void callers_do_not_silence_those_of_another_device(struct kunit *test)
{
	struct kvt_console *line = kvt_console_watch(test, "query_port: port 99");
	struct ib_port_attr attr;
	struct mock *other;
	struct rig r;

	rig_up(test, &r);
	other = mock_up(test, "kvtm_b");
	storm(test, &r);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_query_port(other->ibdev, 99, &attr));
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(line));
}

static struct kunit_case core_invalid_cases[] = {
	KUNIT_CASE_PARAM(modify_qp_names_the_wrong_attribute, attr_gen_params),
	KUNIT_CASE_PARAM(a_value_that_is_not_given_is_not_blamed, attr_gen_params),
	KUNIT_CASE(unknown_bits_of_the_mask_are_named),
	KUNIT_CASE(a_psn_that_is_trimmed_is_named),
	KUNIT_CASE(modify_qp_names_what_is_wrong_in_the_path),
	KUNIT_CASE(the_alternate_path_is_not_taken_for_the_path),
	KUNIT_CASE(missing_attribute_is_named),
	KUNIT_CASE(superfluous_attribute_is_named),
	KUNIT_CASE(illegal_change_and_refusal_are_told_apart),
	KUNIT_CASE(refusal_by_the_driver_is_told),
	KUNIT_CASE(create_qp_names_the_size),
	KUNIT_CASE(cq_and_srq_name_the_size),
	KUNIT_CASE(address_and_memory_name_the_argument),
	KUNIT_CASE(range_of_memory_is_named),
	KUNIT_CASE(range_of_a_dmabuf_is_named),
	KUNIT_CASE(refusal_of_a_region_is_told),
	KUNIT_CASE(reading_beyond_memory_is_named),
	KUNIT_CASE(kind_of_header_is_named),
	KUNIT_CASE(kind_of_header_in_a_completion_is_named),
	KUNIT_CASE(port_and_index_are_named),
	KUNIT_CASE(rule_for_names_of_devices_is_told),
	KUNIT_CASE(port_that_is_no_ethernet_port_is_named),
	KUNIT_CASE(post_says_why_it_is_refused),
	KUNIT_CASE(a_line_in_the_log_names_client_and_device),
	KUNIT_CASE(a_process_does_not_silence_the_kernels_clients),
	KUNIT_CASE(a_process_with_bad_memory_silences_nobody),
	KUNIT_CASE(a_process_with_bad_regions_silences_nobody),
	KUNIT_CASE(callers_do_not_silence_those_of_another_device),
	{}
};
KVT_SUITE(core_invalid);
