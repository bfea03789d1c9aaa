// SPDX-License-Identifier: GPL-2.0-only
/*
 * Rules of fault injection: exactly the requests that a rule is about go wrong, as it says.
 */
#include "emu/control.h"

#define DEVICE		"emu0"
#define PEER		"emu1"
#define RULES		"/sys/kernel/debug/kverbs_emu/" DEVICE "/faults/rules"
#define SEED		"/sys/kernel/debug/kverbs_emu/" DEVICE "/faults/seed"

/* As drivers/emu/lib/fault_rule.h has it. */
#define MAX_RULES	64

#define SEQUENCE	100

/* Times that a port goes down, of which a request must meet one. */
#define FLAPS		20

static int rule(const char *text)
{
	return control_shell("echo add %s 2>/dev/null >" RULES, text);
}

/* Does the list have a line that ends so? */
static bool listed(const char *end)
{
	return !control_shell("grep -q '%s$' " RULES, end);
}

static void no_rules(void *unused)
{
	control_shell("echo clear >" RULES);
}

static struct rig *rules_rig(struct kunit *test)
{
	struct rig *r = rig_up(test, DEVICE, PEER);

	KUNIT_ASSERT_EQ_MSG(test, 0, control_shell("echo clear >" RULES), "no rules: mount debugfs");
	kvt_defer(test, no_rules, NULL);
	return r;
}

static struct rig *unreliable_rig(struct kunit *test)
{
	struct rig *r = rules_rig(test);

	control_make_unreliable(test, r);
	return r;
}

static void write_as(struct kunit *test, struct rig *r, u64 id, enum ib_wc_status status)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, id, 0, 8, r->b.dma,
					  r->b.mr->rkey));
	RIG_EXPECT_WC(test, r->a.scq, &wc, id, status);
}

static void send_as(struct kunit *test, struct rig *r, u64 id, enum ib_wc_status status)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, id, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, id, status);
}

/* Sends do not count, and after the third write nothing fails any more. */
static void the_nth_of_an_operation_fails(struct kunit *test)
{
	struct rig *r = rules_rig(test);
	struct ib_wc wc;

	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_ASSERT_EQ(test, 0, rule("op=write nth=3 status=rem_access_err"));
	write_as(test, r, 1, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	send_as(test, r, 2, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_SUCCESS);
	write_as(test, r, 3, IB_WC_SUCCESS);
	write_as(test, r, 4, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	rig_reconnect(test, r);
	write_as(test, r, 5, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, listed("status=REM_ACCESS_ERR seen=4 hits=1"));
}

static void other_queue_pairs_are_left_alone(struct kunit *test)
{
	struct rig *r = rules_rig(test);
	char text[48];

	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	snprintf(text, sizeof(text), "qp=%u status=general_err", r->a.qp->qp_num + 1);
	KUNIT_ASSERT_EQ(test, 0, rule(text));
	write_as(test, r, 1, IB_WC_SUCCESS);
	snprintf(text, sizeof(text), "qp=%u status=general_err", r->a.qp->qp_num);
	KUNIT_ASSERT_EQ(test, 0, rule(text));
	write_as(test, r, 2, IB_WC_GENERAL_ERR);
	KUNIT_EXPECT_TRUE(test, listed("seen=0 hits=0"));
	KUNIT_EXPECT_TRUE(test, listed("seen=1 hits=1"));
}

/* Each second attempt, three times; each is tried again, and succeeds. */
static void receives_seem_to_be_missing(struct kunit *test)
{
	struct rig *r = rules_rig(test);
	u64 before = rig_counter(test, &r->a, "rcvd_rnr_err");
	struct ib_wc wc;
	int i;

	KUNIT_ASSERT_EQ(test, 0, rule("op=send,send_imm every=2 count=3 rnr"));
	for (i = 0; i < 8; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, 0, 8));
		send_as(test, r, i, IB_WC_SUCCESS);
		RIG_EXPECT_WC(test, r->b.rcq, &wc, i, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_EQ(test, before + 3, rig_counter(test, &r->a, "rcvd_rnr_err"));
	KUNIT_EXPECT_TRUE(test, listed("count=3 rnr seen=11 hits=3"));
}

static void lost_message_is_sent_again(struct kunit *test)
{
	struct rig *r = rules_rig(test);
	u64 before = rig_counter(test, &r->a, "ack_timeout_err");
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rule("nth=1 drop"));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 8));
	send_as(test, r, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_EXPECT_EQ(test, before + 1, rig_counter(test, &r->a, "ack_timeout_err"));
}

/* All attempts are lost, one more than retry_cnt says; there is no other. */
static void nothing_arrives(struct kunit *test)
{
	struct rig *r = rules_rig(test);

	KUNIT_ASSERT_EQ(test, 7, r->retry_cnt);
	KUNIT_ASSERT_EQ(test, 0, rule("count=8 drop"));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 8));
	send_as(test, r, 1, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

/* An unreliable sender gets no error; the message after it arrives. */
static void unreliable_message_is_lost(struct kunit *test)
{
	struct rig *r = unreliable_rig(test);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rule("nth=1 drop"));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 1, 0, 16));
	send_as(test, r, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 2, 0, 16));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 2, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 16, wc.byte_len);
}

static void request_is_late(struct kunit *test)
{
	struct rig *r = rules_rig(test);
	ktime_t begin = ktime_get();

	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_ASSERT_EQ(test, 0, rule("nth=1 delay=20000"));
	write_as(test, r, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_GE(test, ktime_us_delta(ktime_get(), begin), 20000);
}

/* Two writes, the port going down before the second. Returns whether that one has met it down. */
static bool second_is_lost(struct kunit *test, struct rig *r)
{
	u64 before = rig_counter(test, &r->a, "ack_timeout_err");

	KUNIT_ASSERT_EQ(test, 0, control_shell("echo clear >" RULES));
	KUNIT_ASSERT_EQ(test, 0, rule("nth=2 flap=100"));
	write_as(test, r, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, before, rig_counter(test, &r->a, "ack_timeout_err"));
	write_as(test, r, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, listed("flap=100 seen=[0-9]* hits=1"));
	return rig_counter(test, &r->a, "ack_timeout_err") > before;
}

static void port_goes_down_before_a_request(struct kunit *test)
{
	struct rig *r = rules_rig(test);
	bool lost = false;
	int i;

	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	/* On a busy machine the port may be up again before the HCA gets from the rule to the write. */
	for (i = 0; i < FLAPS && !lost; i++)
		lost = second_is_lost(test, r);
	KUNIT_EXPECT_TRUE(test, lost);
}

static void completion_finds_its_queue_full(struct kunit *test)
{
	struct rig *r = rules_rig(test);

	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_ASSERT_EQ(test, 0, rule("nth=2 overflow"));
	write_as(test, r, 1, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 2, 0, 8, r->b.dma,
					  r->b.mr->rkey));
	rig_expect_event(test, &r->a, IB_EVENT_QP_FATAL);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

static void draw(struct kunit *test, struct rig *r, unsigned int seed, unsigned long *failed)
{
	struct ib_wc wc;
	int i;

	bitmap_zero(failed, SEQUENCE);
	KUNIT_ASSERT_EQ(test, 0, control_shell("echo %u >" SEED, seed));
	for (i = 0; i < SEQUENCE; i++) {
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, i, 0, 8));
		KUNIT_ASSERT_TRUE(test, rig_poll(r->a.scq, &wc));
		if (wc.status == IB_WC_SUCCESS)
			continue;
		__set_bit(i, failed);
		rig_reconnect(test, r);
	}
}

static void rate_is_drawn_by_the_seed(struct kunit *test)
{
	DECLARE_BITMAP(first, SEQUENCE);
	DECLARE_BITMAP(again, SEQUENCE);
	DECLARE_BITMAP(other, SEQUENCE);
	struct rig *r = unreliable_rig(test);

	KUNIT_ASSERT_EQ(test, 0, rule("rate=200000 status=general_err"));
	draw(test, r, 7, first);
	draw(test, r, 7, again);
	draw(test, r, 8, other);
	KUNIT_EXPECT_TRUE(test, bitmap_equal(first, again, SEQUENCE));
	KUNIT_EXPECT_FALSE(test, bitmap_equal(first, other, SEQUENCE));
	KUNIT_EXPECT_GE(test, bitmap_weight(first, SEQUENCE), SEQUENCE / 20);
	KUNIT_EXPECT_LE(test, bitmap_weight(first, SEQUENCE), SEQUENCE / 2);
}

static void first_rule_that_hits_decides(struct kunit *test)
{
	struct rig *r = rules_rig(test);

	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_ASSERT_EQ(test, 0, rule("nth=2 status=rem_op_err"));
	KUNIT_ASSERT_EQ(test, 0, rule("status=general_err"));
	write_as(test, r, 1, IB_WC_GENERAL_ERR);
	rig_reconnect(test, r);
	write_as(test, r, 2, IB_WC_REM_OP_ERR);
	KUNIT_EXPECT_TRUE(test, listed("status=GENERAL_ERR seen=1 hits=1"));
}

static void rules_are_deleted(struct kunit *test)
{
	struct rig *r = rules_rig(test);

	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_ASSERT_EQ(test, 0, rule("status=general_err"));
	KUNIT_ASSERT_EQ(test, 0, control_shell("echo del $(cut -d \" \" -f 1 " RULES ") >" RULES));
	write_as(test, r, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, listed("hits=0"));
	KUNIT_EXPECT_NE(test, 0, control_shell("echo del 1 2>/dev/null >" RULES));
	KUNIT_ASSERT_EQ(test, 0, rule("status=general_err"));
	KUNIT_ASSERT_EQ(test, 0, control_shell("echo clear >" RULES));
	write_as(test, r, 2, IB_WC_SUCCESS);
}

static void there_is_a_limit(struct kunit *test)
{
	rules_rig(test);
	KUNIT_EXPECT_EQ(test, 0, control_shell("for i in $(seq %d); do echo add rnr >" RULES " || exit 1; done",
				       MAX_RULES));
	KUNIT_EXPECT_NE(test, 0, rule("rnr"));
	KUNIT_EXPECT_EQ(test, 0, control_shell("[ $(wc -l <" RULES ") = %d ]", MAX_RULES));
}

static const char *const refused[] = {
	"", "qp=1", "status", "status=success", "status=99", "drop=1", "delay", "delay=0",
	"delay=10000001", "flap=60001", "qp=0 drop", "qp=16777216 drop", "nth=0 drop",
	"every=-1 drop", "rate=1000001 drop", "count=x drop", "op=fly drop", "op= drop",
	"op=reg_mr drop", "op=read rnr", "drop rnr", "speed=1 drop",
};

static void text_of(const char *const *text, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "'%s'", *text);
}

KUNIT_ARRAY_PARAM(refused, refused, text_of);

static void rule_is_refused(struct kunit *test)
{
	const char *const *text = test->param_value;

	rules_rig(test);
	KUNIT_EXPECT_NE(test, 0, rule(*text));
	KUNIT_EXPECT_FALSE(test, listed("hits=0"));
}

static struct kunit_case emu_fault_rule_cases[] = {
	KUNIT_CASE(the_nth_of_an_operation_fails),
	KUNIT_CASE(other_queue_pairs_are_left_alone),
	KUNIT_CASE(receives_seem_to_be_missing),
	KUNIT_CASE(lost_message_is_sent_again),
	KUNIT_CASE(nothing_arrives),
	KUNIT_CASE(unreliable_message_is_lost),
	KUNIT_CASE(request_is_late),
	KUNIT_CASE(port_goes_down_before_a_request),
	KUNIT_CASE(completion_finds_its_queue_full),
	KUNIT_CASE(rate_is_drawn_by_the_seed),
	KUNIT_CASE(first_rule_that_hits_decides),
	KUNIT_CASE(rules_are_deleted),
	KUNIT_CASE(there_is_a_limit),
	KUNIT_CASE_PARAM(rule_is_refused, refused_gen_params),
	{}
};
KVT_SUITE(emu_fault_rule);
