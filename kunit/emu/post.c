// SPDX-License-Identifier: GPL-2.0-only
/*
 * Which requests ib_post_send() and ib_post_recv() of the software HCA accept and refuse, and
 * posting from interrupts. The name of a case starts with the row of the conformance table
 * that it checks, if there is one.
 */
#include <linux/irq_work.h>
#include <linux/smp.h>

#include "emu/rig.h"

#define IRQ_POSTS	50000

static struct rig *rig_in_reset(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");

	rig_make_qps(test, r);
	return r;
}

/* Moves both ends on from RESET: step 1 to INIT, then step 2 to RTR. Step 0 does nothing. */
static void rig_step(struct kunit *test, struct rig *r, int step)
{
	if (step == 1) {
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->a));
		KUNIT_ASSERT_EQ(test, 0, rig_to_init(r, &r->b));
	} else if (step == 2) {
		KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->a, &r->b));
		KUNIT_ASSERT_EQ(test, 0, rig_to_rtr(r, &r->b, &r->a));
	}
}

static void p1_send_before_rts_is_refused(struct kunit *test)
{
	struct rig *r = rig_in_reset(test);
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	const struct ib_send_wr *bad;
	struct ib_send_wr wr[2];
	struct ib_wc wc;
	int steps;

	for (steps = 0; steps < 3; steps++) {
		rig_step(test, r, steps);
		rig_send_wr(&wr[0], 1, &sge, 1);
		rig_send_wr(&wr[1], 2, &sge, 1);
		wr[0].next = &wr[1];
		bad = NULL;
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, wr, &bad));
		KUNIT_EXPECT_PTR_EQ(test, bad, &wr[0]);
	}
	/* Nothing was queued: the first request posted in RTS completes first. */
	KUNIT_ASSERT_EQ(test, 0, rig_to_rts(r, &r->a));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 3, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 4, 0, 8));
	RIG_EXPECT_DELIVERED(test, r, &wc, 4, 3);
}

static void p2_send_in_error_is_flushed_in_order(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_ERR));
	rig_send_many(test, &r->a, 0, RIG_WR, 8);
	rig_expect_wcs(test, r->a.scq, 0, RIG_WR, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->a.qp));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
}

static void p3_receive_is_taken_from_init_on(struct kunit *test)
{
	struct rig *r = rig_in_reset(test);
	const struct ib_recv_wr *bad = NULL;
	struct ib_sge sge = rig_sge(&r->b, 0, 8);
	struct ib_recv_wr wr = { .wr_id = 1, .sg_list = &sge, .num_sge = 1 };
	struct ib_wc wc;

	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_recv(r->b.qp, &wr, &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr);
	rig_step(test, r, 1);
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&r->b, 3, 0, 8));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 3, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
}

static void p4_chain_stops_at_the_bad_request(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	const struct ib_send_wr *bad;
	struct ib_send_wr wr[5];
	struct ib_wc wc;
	int i, k;

	for (k = 0; k < 5; k++) {
		for (i = 0; i < 5; i++) {
			rig_send_wr(&wr[i], i, &sge, 1);
			wr[i].next = i < 4 ? &wr[i + 1] : NULL;
		}
		wr[k].num_sge = RIG_SGE + 1;
		rig_recv_many(test, &r->b, 0, k, 8);
		bad = NULL;
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, wr, &bad));
		KUNIT_EXPECT_PTR_EQ(test, bad, &wr[k]);
		for (i = 0; i < k; i++)
			RIG_EXPECT_DELIVERED(test, r, &wc, i, i);
		KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	}
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->a.qp));
}

static void p4_receive_chain_stops_at_the_bad_request(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_sge sge = rig_sge(&r->b, 0, 8);
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr wr[3] = {};
	struct ib_wc wc;
	int i;

	for (i = 0; i < 3; i++) {
		wr[i].wr_id = i;
		wr[i].sg_list = &sge;
		wr[i].num_sge = i == 1 ? RIG_SGE + 1 : 1;
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_recv(r->b.qp, wr, &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr[1]);
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 0, IB_WC_WR_FLUSH_ERR);
	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 7, 0, 8));
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 7, IB_WC_WR_FLUSH_ERR);
}

static void p5_full_send_queue_is_usable_again(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	const struct ib_send_wr *bad = NULL;
	struct ib_send_wr wr;
	struct ib_wc wc;
	int i, round;

	for (round = 0; round < 3; round++) {
		/* The peer has no receive: all of these sends wait. */
		rig_send_many(test, &r->a, 0, RIG_WR, 8);
		rig_send_wr(&wr, 99, &sge, 1);
		KUNIT_EXPECT_EQ(test, -ENOMEM, ib_post_send(r->a.qp, &wr, &bad));
		KUNIT_EXPECT_PTR_EQ(test, bad, &wr);
		rig_recv_many(test, &r->b, 0, RIG_WR, 8);
		for (i = 0; i < RIG_WR; i++) {
			RIG_EXPECT_WC(test, r->b.rcq, &wc, i, IB_WC_SUCCESS);
			RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_SUCCESS);
		}
		KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	}
}

static void p5_send_queue_is_full_until_polled(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_wc wc;

	rig_recv_many(test, &r->b, 0, RIG_WR, 8);
	rig_send_many(test, &r->a, 0, RIG_WR, 8);
	rig_expect_wcs(test, r->b.rcq, 0, RIG_WR, IB_WC_SUCCESS);
	/* All sends were executed, but take room until their completions are polled. */
	KUNIT_EXPECT_EQ(test, -ENOMEM, rig_send(&r->a, 99, 0, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, rig_send(&r->a, 16, 0, 8));
	KUNIT_EXPECT_EQ(test, -ENOMEM, rig_send(&r->a, 99, 0, 8));
}

static void p5_full_receive_queue_is_usable_again(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	const struct ib_recv_wr *bad = NULL;
	struct ib_recv_wr wr = { .wr_id = 99 };
	struct ib_wc wc;

	rig_recv_many(test, &r->b, 0, RIG_WR, 8);
	KUNIT_EXPECT_EQ(test, -ENOMEM, ib_post_recv(r->b.qp, &wr, &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 0);
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&r->b, 16, 0, 8));
	KUNIT_EXPECT_EQ(test, -ENOMEM, ib_post_recv(r->b.qp, &wr, &bad));
}

static void p6_too_many_elements_are_refused(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_sge sge[RIG_SGE + 1];
	const struct ib_send_wr *bad = NULL;
	struct ib_recv_wr rwr = { .sg_list = sge, .num_sge = RIG_SGE + 1 };
	struct ib_send_wr wr;
	int i;

	for (i = 0; i <= RIG_SGE; i++)
		sge[i] = rig_sge(&r->a, 0, 8);
	rig_send_wr(&wr, 1, sge, RIG_SGE + 1);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr, &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, &wr);
	wr.num_sge = -1;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr, &bad));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_recv(r->a.qp, &rwr, NULL));
	rwr.num_sge = -1;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_recv(r->a.qp, &rwr, NULL));
}

static void p7_too_much_inline_data_is_refused(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_sge sge[2] = {
		{ (uintptr_t)r->a.buf, RIG_INLINE, 0 },
		{ (uintptr_t)r->a.buf, 1, 0 },
	};
	struct ib_send_wr wr;

	rig_send_wr(&wr, 1, sge, 2);
	wr.send_flags |= IB_SEND_INLINE;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr, NULL));
	sge[1].length = U32_MAX - RIG_INLINE + 1;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr, NULL));
	wr.num_sge = 1;
	KUNIT_EXPECT_EQ(test, 0, ib_post_send(r->a.qp, &wr, NULL));
}

static void p9_message_beyond_2_gib_is_refused(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_sge sge[3];
	struct ib_recv_wr rwr = { .sg_list = sge, .num_sge = 2 };
	struct ib_send_wr wr;

	/* The second sum wraps to 0 in 32 bits. */
	sge[0] = rig_sge(&r->a, 0, SZ_2G);
	sge[1] = rig_sge(&r->a, 0, 1);
	sge[2] = rig_sge(&r->a, 0, SZ_2G - 1);
	rig_send_wr(&wr, 1, sge, 2);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr, NULL));
	wr.num_sge = 3;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr, NULL));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_recv(r->a.qp, &rwr, NULL));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

/*
 * In row R16 the responder refuses the request. The software HCA has no packet headers that
 * could claim such a length: the request is refused when it is posted, as in row P9.
 */
static void r16_rdma_beyond_2_gib_never_leaves(struct kunit *test)
{
	static const enum ib_wr_opcode ops[] = {
		IB_WR_RDMA_READ, IB_WR_RDMA_WRITE, IB_WR_RDMA_WRITE_WITH_IMM,
	};
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_rdma_wr wr = {};
	struct ib_sge sge[2];
	int i;

	sge[0] = rig_sge(&r->a, 0, SZ_2G);
	sge[1] = rig_sge(&r->a, 0, 1);
	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		rig_send_wr(&wr.wr, 1, sge, 2);
		wr.wr.opcode = ops[i];
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
	}
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
}

static void operations_unknown_to_the_device_are_refused(struct kunit *test)
{
	static const int ops[] = { IB_WR_REG_MR_INTEGRITY, 200, -1 };
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_sge sge = rig_sge(&r->a, 0, 8);
	struct ib_rdma_wr wr = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		rig_send_wr(&wr.wr, 1, &sge, 1);
		wr.wr.opcode = ops[i];
		KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_send(r->a.qp, &wr.wr, NULL));
	}
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
}

/*
 * P11: a task posts to a send queue, and interrupts that may come at any moment of that post
 * to the same queue. The task and the interrupts number their messages.
 */
struct irq_post {
	struct rig *r;
	struct irq_work work;
	u64 count;
	u64 from_task;
	u64 from_irq;
	u64 refused_irq;
	u64 failed;
	u64 next[2];
	u64 received;
	u64 completed;
	u32 seed;
};

#define FROM_IRQ	BIT_ULL(63)

/* The number is sent inline: the interrupt needs no buffer. */
static int irq_post_one(struct irq_post *p, u64 n)
{
	struct ib_sge sge = { (uintptr_t)&n, sizeof(n), 0 };
	struct ib_send_wr wr;

	rig_send_wr(&wr, n, &sge, 1);
	wr.send_flags |= IB_SEND_INLINE;
	return ib_post_send(p->r->a.qp, &wr, NULL);
}

static void irq_post_work(struct irq_work *work)
{
	struct irq_post *p = container_of(work, struct irq_post, work);
	int ret;

	/* Limit the interrupts' share, or a slow machine does nothing but serve interrupts. */
	if (p->from_irq > 2 * READ_ONCE(p->from_task) + RIG_WR)
		return;
	ret = irq_post_one(p, p->from_irq | FROM_IRQ);
	if (!ret)
		p->from_irq++;
	else if (ret == -ENOMEM)
		p->refused_irq++;
	else
		p->failed++;
}

static void irq_post_reap(struct irq_post *p)
{
	struct ib_wc wc;

	while (ib_poll_cq(p->r->a.scq, 1, &wc) == 1) {
		if (wc.status != IB_WC_SUCCESS)
			p->failed++;
		p->completed++;
	}
	while (ib_poll_cq(p->r->b.rcq, 1, &wc) == 1) {
		u64 n = *(u64 *)(p->r->b.buf + wc.wr_id * 8);

		if (wc.status != IB_WC_SUCCESS || wc.byte_len != 8 ||
		    (n & ~FROM_IRQ) != p->next[!!(n & FROM_IRQ)]++)
			p->failed++;
		p->received++;
		if (rig_recv(&p->r->b, wc.wr_id, wc.wr_id * 8, 8))
			p->failed++;
	}
}

static int irq_post_fn(void *arg)
{
	struct irq_post *p = arg;

	while (p->from_task < p->count && !kvt_should_stop()) {
		int ret, when = kvt_rand(&p->seed) % 64;

		/* The interrupt comes after some delay; a random one here makes it hit anywhere. */
		irq_work_queue(&p->work);
		while (when--)
			cpu_relax();
		ret = irq_post_one(p, p->from_task);
		if (!ret)
			WRITE_ONCE(p->from_task, p->from_task + 1);
		else if (ret != -ENOMEM)
			p->failed++;
		irq_post_reap(p);
		cond_resched();
	}
	irq_work_sync(&p->work);
	return 0;
}

/* Called when nobody posts any more: waits until all messages have arrived and completed. */
static bool irq_post_finish(struct irq_post *p)
{
	u64 end = ktime_get_ns() + jiffies_to_nsecs(KVT_TIMEOUT);
	u64 all = p->from_task + p->from_irq;

	while (p->received < all || p->completed < all) {
		if (ktime_get_ns() > end)
			return false;
		irq_post_reap(p);
		cond_resched();
	}
	return true;
}

/* IPIs of the other CPU hit anywhere in the post, not just after irq_work_queue(). */
static void irq_post_ipi(void *arg)
{
	irq_post_work(&((struct irq_post *)arg)->work);
}

static int ipi_storm_fn(void *arg)
{
	struct irq_post *p = arg;

	while (READ_ONCE(p->from_task) < p->count && !kvt_should_stop()) {
		smp_call_function_single(0, irq_post_ipi, p, 1);
		cond_resched();
	}
	return 0;
}

static void p11_interrupts_post_to_the_queue_being_posted(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct kvt_thread *poster, *storm = NULL;
	struct irq_post *p;
	int i;

	p = kvt_zalloc(test, sizeof(*p));
	p->r = r;
	p->count = kvt_count(IRQ_POSTS);
	p->seed = kvt_seed(test, "posts under interrupts that post", p->count);
	p->work = IRQ_WORK_INIT_HARD(irq_post_work);
	for (i = 0; i < RIG_WR; i++)
		KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, i, i * 8, 8));
	poster = kvt_thread_start(test, 0, irq_post_fn, p);
	if (kvt_other_cpu())
		storm = kvt_thread_start(test, kvt_other_cpu(), ipi_storm_fn, p);
	KUNIT_ASSERT_TRUE_MSG(test, kvt_thread_join(poster),
			      "task %llu irq %llu done %llu received %llu",
			      p->from_task, p->from_irq, p->completed,
			      p->received);
	if (storm)
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(storm));
	KUNIT_EXPECT_TRUE(test, irq_post_finish(p));
	kunit_info(test, "%llu posts from interrupts, %llu refused", p->from_irq, p->refused_irq);
	KUNIT_EXPECT_EQ(test, 0, p->failed);
	KUNIT_EXPECT_EQ(test, p->count, p->next[0]);
	KUNIT_EXPECT_EQ(test, p->from_irq, p->next[1]);
	KUNIT_EXPECT_GT(test, p->from_irq, 0);
}

struct irq_recv {
	struct rig *r;
	struct ib_wc wc;
	int posted;
	int armed;
	int polled;
};

static void recv_poll_arm_in_irq(void *arg)
{
	struct irq_recv *i = arg;

	i->posted = rig_recv(&i->r->b, 77, 0, 8);
	i->armed = ib_req_notify_cq(i->r->a.scq, IB_CQ_NEXT_COMP);
	i->polled = ib_poll_cq(i->r->a.scq, 1, &i->wc);
}

static void p11_receive_poll_and_arm_work_in_hardirq(struct kunit *test)
{
	struct irq_recv i = { .r = rig_up(test, "emu0", "emu1") };
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&i.r->b, 76, 0, 8));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&i.r->a, 1, 0, 8));
	RIG_EXPECT_WC(test, i.r->b.rcq, &wc, 76, IB_WC_SUCCESS);
	kvt_run_in_hardirq(recv_poll_arm_in_irq, &i);
	KUNIT_EXPECT_EQ(test, 0, i.posted);
	KUNIT_EXPECT_EQ(test, 0, i.armed);
	KUNIT_ASSERT_EQ(test, 1, i.polled);
	KUNIT_EXPECT_EQ(test, 1, i.wc.wr_id);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&i.r->a, 2, 0, 8));
	RIG_EXPECT_WC(test, i.r->b.rcq, &wc, 77, IB_WC_SUCCESS);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&i.r->a.got_call));
	RIG_EXPECT_WC(test, i.r->a.scq, &wc, 2, IB_WC_SUCCESS);
}

/* C11: with interrupts off, only a direct call could reach the handler. */
static void c11_handler_is_not_called_in_a_verbs_call(struct kunit *test)
{
	struct rig *r = rig_up(test, "emu0", "emu1");
	struct ib_wc wc;
	int during;

	KUNIT_ASSERT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	ib_req_notify_cq(r->a.scq, IB_CQ_NEXT_COMP);
	ib_req_notify_cq(r->b.rcq, IB_CQ_NEXT_COMP);
	local_irq_disable();
	rig_send(&r->a, 1, 0, 8);
	during = atomic_read(&r->a.called) + atomic_read(&r->b.called);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, 0, during);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->a.got_call));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->b.got_call));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);

	/* The same for a request that is flushed within the call. */
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->a.qp, IB_QPS_ERR));
	ib_req_notify_cq(r->a.scq, IB_CQ_NEXT_COMP);
	local_irq_disable();
	rig_send(&r->a, 3, 0, 8);
	during = atomic_read(&r->a.called);
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, 1, during);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r->a.got_call));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 3, IB_WC_WR_FLUSH_ERR);
}

static struct kunit_case emu_post_cases[] = {
	KUNIT_CASE(p1_send_before_rts_is_refused),
	KUNIT_CASE(p2_send_in_error_is_flushed_in_order),
	KUNIT_CASE(p3_receive_is_taken_from_init_on),
	KUNIT_CASE(p4_chain_stops_at_the_bad_request),
	KUNIT_CASE(p4_receive_chain_stops_at_the_bad_request),
	KUNIT_CASE(p5_full_send_queue_is_usable_again),
	KUNIT_CASE(p5_send_queue_is_full_until_polled),
	KUNIT_CASE(p5_full_receive_queue_is_usable_again),
	KUNIT_CASE(p6_too_many_elements_are_refused),
	KUNIT_CASE(p7_too_much_inline_data_is_refused),
	KUNIT_CASE(p9_message_beyond_2_gib_is_refused),
	KUNIT_CASE(r16_rdma_beyond_2_gib_never_leaves),
	KUNIT_CASE(operations_unknown_to_the_device_are_refused),
	KUNIT_CASE(p11_interrupts_post_to_the_queue_being_posted),
	KUNIT_CASE(p11_receive_poll_and_arm_work_in_hardirq),
	KUNIT_CASE(c11_handler_is_not_called_in_a_verbs_call),
	{}
};
KVT_SUITE(emu_post);
