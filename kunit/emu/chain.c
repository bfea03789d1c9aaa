// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests that are posted in a chain, and executed one after the other from the poster's memory:
 * as those that are posted alone, see direct.c. Between two of them, other posters and interrupts
 * come, either end fails, a region goes, somebody wants to change the queue pair. What comes out
 * is what comes out if they take the way through the queue.
 */
#include <linux/irq_work.h>
#include <kverbs/delay.h>

#include "emu/rig.h"
#include "lib/objects.h"

#define LEN		RIG_WARM_LEN
#define CHAIN		4
#define OTHER_ID	77

/* Where the poster stands still, after the first request of a chain was executed. */
#define BETWEEN		"emu_direct_executed"

/* Requests numbered from 0 on, and what happens while their poster stands still. */
struct chain {
	struct rig_meanwhile m;		/* first, so that functions for that take the chain, too */
	struct ib_sge sge[RIG_WR + 1];	/* piece i of the buffer */
	struct ib_rdma_wr wr[RIG_WR + 1];
	struct ib_sge two[2];		/* a piece in two */
	const struct ib_send_wr *bad;	/* the request that was refused */
	u32 passed;			/* how often the poster has passed by */
	u32 executed;			/* before the post has returned */
};

static const struct chain_op {
	enum ib_wr_opcode op;
	enum ib_wc_opcode wc;
	const char *name;
} chain_ops[] = {
	{ IB_WR_SEND, IB_WC_SEND, "send" },
	{ IB_WR_RDMA_WRITE, IB_WC_RDMA_WRITE, "write" },
	{ IB_WR_RDMA_READ, IB_WC_RDMA_READ, "read" },
};
KUNIT_ARRAY_PARAM_DESC(chain_op, chain_ops, name);

/* A chain of @nr requests, each with its own piece of both buffers, and as many receives. */
static struct chain *chain_new(struct kunit *test, enum ib_wr_opcode op, u32 nr)
{
	struct chain *c = KVT_PTR(test, kunit_kzalloc(test, sizeof(*c), GFP_KERNEL));
	u32 i;

	c->m.r = rig_warm(test);
	for (i = 0; i < nr; i++) {
		c->sge[i] = rig_sge(&c->m.r->a, i * LEN, LEN);
		rig_send_wr(&c->wr[i].wr, i, &c->sge[i], 1);
		c->wr[i].wr.opcode = op;
		c->wr[i].wr.next = i + 1 < nr ? &c->wr[i + 1].wr : NULL;
		c->wr[i].remote_addr = c->m.r->b.mr->iova + i * LEN;
		c->wr[i].rkey = c->m.r->b.mr->rkey;
		if (op == IB_WR_SEND && i < RIG_WR)
			KUNIT_ASSERT_EQ(test, 0, rig_recv(&c->m.r->b, i, i * LEN, LEN));
	}
	return c;
}

static int chain_post(struct chain *c)
{
	return ib_post_send(c->m.r->a.qp, &c->wr[0].wr, &c->bad);
}

static void count_passed(void *arg)
{
	struct chain *c = arg;

	c->passed++;
	kverbs_delay_set(BETWEEN, count_passed, c);
}

/* Posts it. @tried: how many of its requests the shortcut has tried. */
static void chain_post_counted(struct kunit *test, struct chain *c, u32 tried)
{
	c->passed = 0;
	kverbs_delay_set(BETWEEN, count_passed, c);
	KUNIT_EXPECT_EQ(test, 0, chain_post(c));
	kverbs_delay_clear();
	KUNIT_EXPECT_EQ(test, tried, c->passed);
}

/* Posts it, with @fn called after the first request. */
static void chain_post_meanwhile(struct kunit *test, struct chain *c, void (*fn)(void *arg))
{
	kverbs_delay_set(BETWEEN, fn, c);
	KUNIT_EXPECT_EQ(test, 0, chain_post(c));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, c->m.err);
}

/* The requests from @from to @to have ended so, in this order. */
static void expect_ended(struct kunit *test, struct chain *c, u32 from, u32 to,
			 enum ib_wc_status status)
{
	rig_expect_wcs(test, c->m.r->a.scq, from, to - from, status);
}

static void expect_received(struct kunit *test, struct chain *c, u32 from, u32 to)
{
	rig_expect_wcs(test, c->m.r->b.rcq, from, to - from, IB_WC_SUCCESS);
}

/* The doorbell is idle, and the shortcut is taken again. */
static void expect_idle(struct kunit *test, struct chain *c)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&c->m.r->b, 99, 0, LEN));
	kverbs_delay_set(BETWEEN, kvt_nothing, NULL);
	KUNIT_EXPECT_EQ(test, 0, rig_send(&c->m.r->a, 98, 0, LEN));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	RIG_EXPECT_DELIVERED(test, c->m.r, &wc, 98, 99);
	KUNIT_EXPECT_TRUE(test, rig_empty(c->m.r->a.scq));
}

/* --- all of it ------------------------------------------------------------------- */

static void chain_is_executed_where_it_is(struct kunit *test)
{
	const struct chain_op *op = test->param_value;
	bool read = op->op == IB_WR_RDMA_READ;
	struct chain *c = chain_new(test, op->op, RIG_WR);
	struct rig_end *from = read ? &c->m.r->b : &c->m.r->a, *to = read ? &c->m.r->a : &c->m.r->b;
	u64 sent = rig_counter(test, &c->m.r->a, "port_xmit_packets");
	u64 bytes = rig_counter(test, &c->m.r->a, "port_xmit_data");
	u64 received = rig_counter(test, &c->m.r->a, "port_rcv_packets");
	struct ib_wc wc;
	u32 i;

	rig_fill(from->buf, RIG_WR * LEN, 3);
	chain_post_counted(test, c, RIG_WR);
	KUNIT_EXPECT_TRUE(test, rig_filled(to->buf, RIG_WR * LEN, 3));
	for (i = 0; i < RIG_WR; i++) {
		RIG_EXPECT_WC(test, c->m.r->a.scq, &wc, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, op->wc, wc.opcode);
	}
	if (op->op == IB_WR_SEND)
		expect_received(test, c, 0, RIG_WR);
	KUNIT_EXPECT_EQ(test, sent + (read ? 0 : RIG_WR),
			rig_counter(test, &c->m.r->a, "port_xmit_packets"));
	/* The counter's unit is four bytes. */
	KUNIT_EXPECT_EQ(test, bytes + (read ? 0 : RIG_WR * LEN / 4),
			rig_counter(test, &c->m.r->a, "port_xmit_data"));
	KUNIT_EXPECT_EQ(test, received + (read ? RIG_WR : 0),
			rig_counter(test, &c->m.r->a, "port_rcv_packets"));
	expect_idle(test, c);
}

/* Only the last one is signaled, and gives back all places. */
static void unsignaled_chain_is_retired_at_its_end(struct kunit *test)
{
	struct chain *c = chain_new(test, IB_WR_RDMA_WRITE, RIG_WR);
	u32 i, lap;

	for (i = 0; i < RIG_WR - 1; i++)
		c->wr[i].wr.send_flags = 0;
	for (lap = 0; lap < 3; lap++) {
		KUNIT_ASSERT_EQ(test, 0, chain_post(c));
		KUNIT_EXPECT_EQ(test, -ENOMEM, rig_send(&c->m.r->a, 0, 0, LEN));
		expect_ended(test, c, RIG_WR - 1, RIG_WR, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, rig_empty(c->m.r->a.scq));
	}
	expect_idle(test, c);
}

/* Unsignaled ones keep their places meanwhile. */
static void chain_that_is_longer_than_the_queue_is_cut(struct kunit *test)
{
	struct chain *c = chain_new(test, IB_WR_RDMA_WRITE, CHAIN);
	u32 i;

	for (i = 0; i < CHAIN; i++)
		c->wr[i].wr.send_flags = 0;
	for (i = 0; i < RIG_WR / CHAIN - 1; i++)
		chain_post_counted(test, c, CHAIN);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&c->m.r->a, 9, 0, 0));
	for (i = 0; i < CHAIN; i++)
		c->wr[i].wr.send_flags = IB_SEND_SIGNALED;
	KUNIT_EXPECT_EQ(test, -ENOMEM, chain_post(c));
	KUNIT_EXPECT_PTR_EQ(test, &c->wr[CHAIN - 1].wr, c->bad);
}

/* What is remembered of the peer is out of date: the peer is looked up first. */
static void chain_over_a_new_connection(struct kunit *test)
{
	const struct chain_op *op = test->param_value;
	struct chain *c = chain_new(test, op->op, CHAIN);

	rig_reconnect(test, c->m.r);
	rig_recv_many(test, &c->m.r->b, 0, CHAIN, LEN);
	chain_post_counted(test, c, 0);
	expect_ended(test, c, 0, CHAIN, IB_WC_SUCCESS);
}

/* A poster may execute 64 KiB: what does not fit is left to a runner. */
static void long_requests_are_left_to_a_runner(struct kunit *test)
{
	struct chain *c = chain_new(test, IB_WR_RDMA_WRITE, CHAIN);
	u32 i;

	for (i = 0; i < CHAIN; i++) {
		c->sge[i] = rig_sge(&c->m.r->a, 0, RIG_BUF * 5 / 8);
		c->wr[i].remote_addr = c->m.r->b.mr->iova;
	}
	rig_fill(c->m.r->a.buf, RIG_BUF, 6);
	chain_post_counted(test, c, 1);
	expect_ended(test, c, 0, CHAIN, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, c->m.r->a.buf, c->m.r->b.buf, RIG_BUF * 5 / 8);
}

/* The first one is complete: its consumer uses it for something else. */
static void take_back(void *arg)
{
	struct chain *c = arg;
	struct ib_wc wc;

	c->m.err = ib_poll_cq(c->m.r->a.scq, 1, &wc) != 1 || wc.wr_id || wc.status;
	memset(&c->wr[0], 0xff, sizeof(c->wr[0]));
	memset(&c->sge[0], 0xff, sizeof(c->sge[0]));
}

static void request_is_the_consumers_when_it_completes(struct kunit *test)
{
	const struct chain_op *op = test->param_value;
	struct chain *c = chain_new(test, op->op, CHAIN);

	chain_post_meanwhile(test, c, take_back);
	expect_ended(test, c, 1, CHAIN, IB_WC_SUCCESS);
	if (op->op == IB_WR_SEND)
		expect_received(test, c, 0, CHAIN);
	expect_idle(test, c);
}

/* --- a request that is not simple -------------------------------------------------- */

static void make_immediate(struct chain *c, struct ib_send_wr *wr)
{
	wr->opcode = IB_WR_SEND_WITH_IMM;
}

static void make_inline(struct chain *c, struct ib_send_wr *wr)
{
	wr->send_flags |= IB_SEND_INLINE;
	wr->sg_list->addr = (uintptr_t)(c->m.r->a.buf + wr->wr_id * LEN);
}

static void make_two(struct chain *c, struct ib_send_wr *wr)
{
	c->two[0] = rig_sge(&c->m.r->a, wr->wr_id * LEN, LEN / 2);
	c->two[1] = rig_sge(&c->m.r->a, wr->wr_id * LEN + LEN / 2, LEN / 2);
	wr->sg_list = c->two;
	wr->num_sge = 2;
}

static void make_write(struct chain *c, struct ib_send_wr *wr)
{
	/* With no bytes, which the shortcut does not handle. */
	wr->opcode = IB_WR_RDMA_WRITE;
	wr->sg_list->length = 0;
}

static const struct not_simple {
	const char *name;
	void (*make)(struct chain *c, struct ib_send_wr *wr);
	bool receives;
	u32 tried;		/* requests that the shortcut has tried: this one, too? */
} not_simples[] = {
	{ "immediate data", make_immediate, true, 1 },
	{ "inline data", make_inline, true, 1 },
	{ "two elements", make_two, true, 1 },
	{ "write of nothing", make_write, false, 2 },
};
KUNIT_ARRAY_PARAM_DESC(not_simple, not_simples, name);

static void request_in_between_goes_the_long_way(struct kunit *test)
{
	const struct not_simple *not = test->param_value;
	struct chain *c = chain_new(test, IB_WR_SEND, CHAIN);
	u32 i, received = 0;
	struct ib_wc wc;

	not->make(c, &c->wr[1].wr);
	rig_fill(c->m.r->a.buf, CHAIN * LEN, 4);
	chain_post_counted(test, c, not->tried);
	expect_ended(test, c, 0, CHAIN, IB_WC_SUCCESS);
	for (i = 0; i < CHAIN; i++) {
		if (i == 1 && !not->receives)
			continue;
		RIG_EXPECT_WC(test, c->m.r->b.rcq, &wc, received, IB_WC_SUCCESS);
		KUNIT_EXPECT_MEMEQ(test, c->m.r->a.buf + i * LEN,
				   c->m.r->b.buf + received * LEN, LEN);
		received++;
	}
	if (received == CHAIN)
		expect_idle(test, c);
}

/* A key that is wrong ends the chain where it is. */
static void wrong_key_in_between_flushes_the_rest(struct kunit *test)
{
	const struct chain_op *op = test->param_value;
	struct chain *c = chain_new(test, op->op, CHAIN);

	c->sge[1].lkey = RIG_BAD_KEY;
	chain_post_counted(test, c, 2);
	expect_ended(test, c, 0, 1, IB_WC_SUCCESS);
	expect_ended(test, c, 1, 2, IB_WC_LOC_PROT_ERR);
	expect_ended(test, c, 2, CHAIN, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(c->m.r->a.qp));
}

static void receives_run_out_in_between(struct kunit *test)
{
	struct chain *c = chain_new(test, IB_WR_SEND, CHAIN);
	struct ib_wc wc;

	chain_post_counted(test, c, CHAIN);
	expect_ended(test, c, 0, CHAIN, IB_WC_SUCCESS);
	expect_received(test, c, 0, CHAIN);
	/* For one of the second round. */
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&c->m.r->b, 0, 0, LEN));
	chain_post_counted(test, c, 2);
	RIG_EXPECT_DELIVERED(test, c->m.r, &wc, 0, 0);
	expect_ended(test, c, 1, 2, IB_WC_RNR_RETRY_EXC_ERR);
	expect_ended(test, c, 2, CHAIN, IB_WC_WR_FLUSH_ERR);
}

/* The completion queue of the receiver is full: the sender gets an error. */
static void receive_completion_is_lost_in_between(struct kunit *test)
{
	struct chain *c = chain_new(test, IB_WR_SEND, CHAIN);

	KUNIT_ASSERT_EQ(test, 0, ib_resize_cq(c->m.r->b.rcq, 2));
	chain_post_counted(test, c, 3);
	expect_ended(test, c, 0, 2, IB_WC_SUCCESS);
	expect_ended(test, c, 2, 3, IB_WC_REM_OP_ERR);
	expect_ended(test, c, 3, CHAIN, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(c->m.r->b.qp));
}

/* --- others come ----------------------------------------------------------------- */

static void post_other(void *arg)
{
	struct chain *c = arg;

	c->m.err = rig_send(&c->m.r->a, OTHER_ID, 0, LEN);
}

static void irq_post_other(struct irq_work *work)
{
	post_other(container_of(work, struct chain, m.irq));
}

static void irq_post_chain(struct irq_work *work)
{
	struct chain *c = container_of(work, struct chain, m.irq);
	struct ib_wc wc[2];

	c->m.err = in_hardirq() ? chain_post(c) : -EPERM;
	c->executed = ib_poll_cq(c->m.r->a.scq, ARRAY_SIZE(wc), wc);
}

static void interrupt(struct chain *c, void (*fn)(struct irq_work *work))
{
	c->m.irq = IRQ_WORK_INIT_HARD(fn);
	irq_work_queue(&c->m.irq);
	while (irq_work_is_busy(&c->m.irq))
		cpu_relax();
}

static void interrupt_posts_other(void *arg)
{
	interrupt(arg, irq_post_other);
}

/* Its place is between two of the chain, and so is its turn. */
static void other_poster_comes_in_between(struct kunit *test)
{
	static void (* const comes[])(void *arg) = { post_other, interrupt_posts_other };
	struct ib_wc wc;
	struct chain *c;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(comes); i++) {
		c = chain_new(test, IB_WR_SEND, CHAIN);
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&c->m.r->b, CHAIN, 0, LEN));
		chain_post_meanwhile(test, c, comes[i]);
		expect_ended(test, c, 0, 1, IB_WC_SUCCESS);
		RIG_EXPECT_WC(test, c->m.r->a.scq, &wc, OTHER_ID, IB_WC_SUCCESS);
		expect_ended(test, c, 1, CHAIN, IB_WC_SUCCESS);
		expect_received(test, c, 0, CHAIN + 1);
		expect_idle(test, c);
	}
}

/* It may execute one, and a runner does the rest, in order: not before it has the CPU. */
static void chain_is_posted_in_an_interrupt(struct kunit *test)
{
	const struct chain_op *op = test->param_value;
	struct chain *c = chain_new(test, op->op, RIG_WR);

	kvt_stay_on_first_cpu();
	preempt_disable();
	interrupt(c, irq_post_chain);
	preempt_enable();
	KUNIT_EXPECT_EQ(test, 0, c->m.err);
	/* A runner on another CPU may have gone on meanwhile. */
	if (num_online_cpus() == 1)
		KUNIT_EXPECT_EQ(test, 1, c->executed);
	else
		KUNIT_EXPECT_GE(test, c->executed, 1);
	expect_ended(test, c, c->executed, RIG_WR, IB_WC_SUCCESS);
	if (op->op == IB_WR_SEND)
		expect_received(test, c, 0, RIG_WR);
	/* A modify_qp() waits until the runner has let go of the queue pair. */
	KUNIT_ASSERT_EQ(test, 0, rig_to(c->m.r->a.qp, IB_QPS_SQD));
	KUNIT_ASSERT_EQ(test, 0, rig_to(c->m.r->a.qp, IB_QPS_RTS));
	expect_idle(test, c);
}

/* --- either end fails -------------------------------------------------------------- */

static void we_fail_in_between(struct kunit *test)
{
	const struct chain_op *op = test->param_value;
	struct chain *c = chain_new(test, op->op, CHAIN);

	chain_post_meanwhile(test, c, rig_fail_us);
	expect_ended(test, c, 0, 1, IB_WC_SUCCESS);
	expect_ended(test, c, 1, CHAIN, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(c->m.r->a.qp));
}

static void peer_fails_in_between(struct kunit *test)
{
	const struct chain_op *op = test->param_value;
	struct chain *c = chain_new(test, op->op, CHAIN);

	chain_post_meanwhile(test, c, rig_fail_peer);
	expect_ended(test, c, 0, 1, IB_WC_SUCCESS);
	expect_ended(test, c, 1, 2, IB_WC_RETRY_EXC_ERR);
	expect_ended(test, c, 2, CHAIN, IB_WC_WR_FLUSH_ERR);
}

static void region_goes_in_between(struct kunit *test)
{
	struct chain *c = chain_new(test, IB_WR_RDMA_WRITE, CHAIN);

	rig_fill(c->m.r->a.buf, CHAIN * LEN, 5);
	memset(c->m.r->b.buf, 0, CHAIN * LEN);
	chain_post_meanwhile(test, c, rig_invalidate);
	expect_ended(test, c, 0, 1, IB_WC_SUCCESS);
	expect_ended(test, c, 1, 2, IB_WC_REM_ACCESS_ERR);
	expect_ended(test, c, 2, CHAIN, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(c->m.r->b.buf + LEN, (CHAIN - 1) * LEN, 0));
}

/* --- somebody changes the queue pair ------------------------------------------------ */

/* No further request is executed, until the queue pair goes on. */
static void freezer_comes_in_between(struct kunit *test)
{
	const struct chain_op *op = test->param_value;
	struct chain *c;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	c = chain_new(test, op->op, CHAIN);
	c->m.thread = kvt_thread_new(test, kvt_other_cpu(), rig_freeze_us, c);
	chain_post_meanwhile(test, c, rig_wait_for_freezer);
	KUNIT_EXPECT_TRUE(test, c->m.waits);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(c->m.thread));
	KUNIT_EXPECT_EQ(test, 0, c->m.err);
	expect_ended(test, c, 0, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_empty(c->m.r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, rig_to(c->m.r->a.qp, IB_QPS_RTS));
	expect_ended(test, c, 1, CHAIN, IB_WC_SUCCESS);
	if (op->op == IB_WR_SEND)
		expect_received(test, c, 0, CHAIN);
	expect_idle(test, c);
}

static struct kunit_case emu_chain_cases[] = {
	KUNIT_CASE_PARAM(chain_is_executed_where_it_is, chain_op_gen_params),
	KUNIT_CASE(unsignaled_chain_is_retired_at_its_end),
	KUNIT_CASE(chain_that_is_longer_than_the_queue_is_cut),
	KUNIT_CASE_PARAM(chain_over_a_new_connection, chain_op_gen_params),
	KUNIT_CASE(long_requests_are_left_to_a_runner),
	KUNIT_CASE_PARAM(request_is_the_consumers_when_it_completes, chain_op_gen_params),
	KUNIT_CASE_PARAM(request_in_between_goes_the_long_way, not_simple_gen_params),
	KUNIT_CASE_PARAM(wrong_key_in_between_flushes_the_rest, chain_op_gen_params),
	KUNIT_CASE(receives_run_out_in_between),
	KUNIT_CASE(receive_completion_is_lost_in_between),
	KUNIT_CASE(other_poster_comes_in_between),
	KUNIT_CASE_PARAM(chain_is_posted_in_an_interrupt, chain_op_gen_params),
	KUNIT_CASE_PARAM(we_fail_in_between, chain_op_gen_params),
	KUNIT_CASE_PARAM(peer_fails_in_between, chain_op_gen_params),
	KUNIT_CASE(region_goes_in_between),
	KUNIT_CASE_PARAM(freezer_comes_in_between, chain_op_gen_params),
	{}
};
KVT_SUITE(emu_chain);
