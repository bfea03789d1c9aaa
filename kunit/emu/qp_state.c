// SPDX-License-Identifier: GPL-2.0-only
/*
 * Row Q1 of the conformance table on a device: every state transition, legal or not, from
 * every state that a QP can be in; with the required attributes, with one of them missing,
 * and with each attribute that is not allowed. The result is compared to the table of
 * core/qp_state.c.
 */
#include "emu/rig.h"
#include "lib/objects.h"
#include "lib/qp_oracle.h"

/* Attributes that IBTA allows, but that the HCA does not support. */
#define NOT_HERE	(IB_QP_ALT_PATH | IB_QP_RATE_LIMIT | IB_QP_CAP)
#define ALL_BITS	((IB_QP_RATE_LIMIT << 1) - 1)

static const enum ib_qp_type types[] = {
	IB_QPT_RC, IB_QPT_UC, IB_QPT_UD, IB_QPT_GSI,
};

static const char *const type_names[] = {
	[IB_QPT_RC] = "RC", [IB_QPT_UC] = "UC", [IB_QPT_UD] = "UD",
	[IB_QPT_GSI] = "GSI",
};

KVT_NAMED_PARAM(type, types, type_names);

/* A QP that is moved from state to state. */
struct walk {
	struct kunit *test;	/* the running case */
	struct rig_end *e;	/* end of the rig that has the QP */
	enum ib_qp_type type;	/* type of the QP */
	struct ib_ah *ah;	/* address handle for sends */
	enum ib_qp_state at;	/* state that the QP should be in */
	u32 moved;		/* changes of state that walk_check() made */
};

static void walk_path(struct walk *w, struct rdma_ah_attr *ah)
{
	rig_set_route(ah, w->e, w->e);
}

/* All attributes have values that the device accepts, so that only @mask matters. */
static int walk_ask(struct walk *w, int to, int mask)
{
	struct ib_qp_attr attr = {
		.qp_state = to,
		.cur_qp_state = w->at,
		.path_mtu = IB_MTU_1024,
		.path_mig_state = IB_MIG_MIGRATED,
		.qkey = 0x1234,
		.rq_psn = 1,
		.sq_psn = 2,
		.dest_qp_num = w->e->qp->qp_num,
		.qp_access_flags = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_MW_BIND,
		.en_sqd_async_notify = 1,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 3,
		.port_num = 1,
		.timeout = 4,
		.retry_cnt = 5,
		.rnr_retry = 6,
		.alt_port_num = 1,
		.cap = { .max_send_wr = RIG_WR },
	};

	walk_path(w, &attr.ah_attr);
	walk_path(w, &attr.alt_ah_attr);
	return ib_modify_qp(w->e->qp, &attr, mask);
}

/* Makes a legal change with only the required attributes. */
static void walk_go(struct walk *w, int to)
{
	int req = 0, opt;

	KUNIT_ASSERT_TRUE(w->test, oracle_move(w->at, to, w->type, &req, &opt));
	KUNIT_ASSERT_EQ_MSG(w->test, 0, walk_ask(w, to, IB_QP_STATE | req),
			    "%s to %s", oracle_state(w->at), oracle_state(to));
	w->at = to;
}

/* Moves the QP to SQE by a send with a bad lkey, which fails before anything is sent. */
static void walk_fail_send(struct walk *w)
{
	struct ib_sge sge = { .addr = 1, .length = 8, .lkey = 0x12345600 };
	struct ib_ud_wr wr = { .ah = w->ah, .remote_qpn = 1 };
	struct ib_wc wc;

	rig_send_wr(&wr.wr, 1, &sge, 1);
	KUNIT_ASSERT_EQ(w->test, 0, ib_post_send(w->e->qp, &wr.wr, NULL));
	RIG_EXPECT_WC(w->test, w->e->scq, &wc, 1, IB_WC_LOC_PROT_ERR);
	KUNIT_ASSERT_EQ(w->test, IB_QPS_SQE, rig_state(w->e->qp));
	w->at = IB_QPS_SQE;
}

static void walk_to(struct walk *w, int state)
{
	static const enum ib_qp_state up[] = {
		IB_QPS_INIT, IB_QPS_RTR, IB_QPS_RTS,
	};
	int i;

	if (w->at == state)
		return;
	walk_go(w, IB_QPS_RESET);
	if (state == IB_QPS_ERR) {
		walk_go(w, IB_QPS_INIT);
		walk_go(w, IB_QPS_ERR);
		return;
	}
	for (i = 0; i < ARRAY_SIZE(up) && w->at != state; i++)
		walk_go(w, up[i]);
	if (state == IB_QPS_SQD)
		walk_go(w, IB_QPS_SQD);
	if (state == IB_QPS_SQE)
		walk_fail_send(w);
}

/* Tries one change from one state. If it is refused, the state must stay the same. */
static void walk_check(struct walk *w, int from, int to, int mask, int want)
{
	int got;

	walk_to(w, from);
	got = walk_ask(w, to, mask);
	KUNIT_EXPECT_EQ_MSG(w->test, want, got, "%s to %s, mask %#x",
			    oracle_state(from), oracle_state(to), mask);
	if (!got) {
		w->at = to;
		w->moved++;
	}
	KUNIT_EXPECT_EQ_MSG(w->test, w->at, rig_state(w->e->qp),
			    "%s to %s, mask %#x", oracle_state(from),
			    oracle_state(to), mask);
}

static void check_illegal(struct walk *w, int from, int to)
{
	int bit;

	walk_check(w, from, to, IB_QP_STATE, -EINVAL);
	walk_check(w, from, to, ALL_BITS, -EINVAL);
	for (bit = 1; bit < ALL_BITS; bit <<= 1)
		walk_check(w, from, to, IB_QP_STATE | bit, -EINVAL);
}

static void check_legal(struct walk *w, int from, int to, int req, int opt)
{
	int here = opt & ~NOT_HERE;
	int bit;

	for (bit = 1; bit < ALL_BITS; bit <<= 1) {
		if (bit == IB_QP_STATE)
			continue;
		if (bit & req)
			walk_check(w, from, to, (IB_QP_STATE | req | here) & ~bit, -EINVAL);
		else if (!(bit & opt))
			walk_check(w, from, to, IB_QP_STATE | req | bit, -EINVAL);
		else
			walk_check(w, from, to, IB_QP_STATE | req | bit,
				   bit & NOT_HERE ? -EOPNOTSUPP : 0);
	}
	walk_check(w, from, to, IB_QP_STATE | req, 0);
	walk_check(w, from, to, IB_QP_STATE | req | here, 0);
}

static void walk_up(struct kunit *test, struct walk *w)
{
	struct rdma_ah_attr ah = {};
	struct rig *r = rig_new(test, "emu0", "emu0");

	w->test = test;
	w->type = *(const enum ib_qp_type *)test->param_value;
	w->e = &r->a;
	w->at = IB_QPS_RESET;
	r->init.qp_type = w->type;
	r->init.port_num = 1;
	rig_make_qp(test, r, w->e);
	walk_path(w, &ah);
	w->ah = KVT_OWN(test, rdma_create_ah(w->e->pd, &ah, 0), kvt_end_ah);
}

static void q1_device_follows_the_table(struct kunit *test)
{
	int from, to, req, opt;
	struct walk w = {};

	walk_up(test, &w);
	for (from = 0; from < ORACLE_STATES; from++) {
		/* An RC QP is never in SQE. */
		if (from == IB_QPS_SQE && w.type == IB_QPT_RC)
			continue;
		for (to = 0; to < ORACLE_STATES; to++) {
			if (oracle_move(from, to, w.type, &req, &opt))
				check_legal(&w, from, to, req, opt);
			else
				check_illegal(&w, from, to);
		}
	}
	kunit_info(test, "%u changes made", w.moved);
}

static void q1_device_trusts_no_wrong_current_state(struct kunit *test)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_RTS };
	struct walk w = {};

	walk_up(test, &w);
	walk_to(&w, IB_QPS_RTS);
	attr.cur_qp_state = IB_QPS_SQD;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_qp(w.e->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE));
	attr.cur_qp_state = IB_QPS_RTS;
	KUNIT_EXPECT_EQ(test, 0, ib_modify_qp(w.e->qp, &attr, IB_QP_STATE | IB_QP_CUR_STATE));
}

static struct kunit_case emu_qp_state_cases[] = {
	KUNIT_CASE_PARAM_ATTR(q1_device_follows_the_table, type_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE_PARAM(q1_device_trusts_no_wrong_current_state, type_gen_params),
	{}
};
KVT_SUITE(emu_qp_state);
