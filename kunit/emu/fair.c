// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queue pairs of the software HCA that have much to do, or wait, leave the CPU to others.
 */
#include <linux/math64.h>
#include <kverbs/delay.h>

#include "emu/process.h"

/* 32 times the same memory. */
#define LONG_SIZE	RIG_BLOCK
#define LONG_SGES	32
/* More than a poster copies itself. */
#define BESIDE_SIZE	SZ_128K

/* Of messages that a work item executes. */
#define LONG_SENDS	100
#define LONG_LEN	SZ_2M

#define WAITING		128
#define RETRIES		8000
/* What is promised: EMU_RETRY_NS, and no retry is owed to a queue pair for the time before. */
#define RETRIES_PER_MS	32

/* Allocated before the queue pairs that use it, for it is freed after them. Returns its address. */
static u64 long_memory(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu0");

	return rig_block(test, &r->a, 0)->dma;
}

static struct rig *long_rig(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu0");

	r->init.cap.max_send_sge = LONG_SGES;
	r->init.cap.max_recv_sge = LONG_SGES;
	rig_start(test, r);
	return r;
}

/* Posts a receive and a SEND of @nr times the @len bytes at @dma, where they also go to. */
static int long_send(struct rig *r, u64 dma, int nr, u32 len)
{
	struct ib_sge to[LONG_SGES], from[LONG_SGES];
	struct ib_recv_wr recv = { .sg_list = to, .num_sge = nr };
	struct ib_send_wr send;
	int i;

	for (i = 0; i < nr; i++) {
		to[i] = (struct ib_sge) { dma, len, r->b.pd->local_dma_lkey };
		from[i] = (struct ib_sge) { dma, len, r->a.pd->local_dma_lkey };
	}
	rig_send_wr(&send, 1, from, nr);
	return ib_post_recv(r->b.qp, &recv, NULL) ?: ib_post_send(r->a.qp, &send, NULL);
}

/*
 * The thread that copies the long message stands still, and another queue pair of the same CPU
 * sends a message that is handed over, too.
 */
static void long_message_holds_up_no_other_queue_pair(struct kunit *test)
{
	u64 dma = long_memory(test);
	struct rig *far, *near;
	struct rig_pause *pause;
	struct ib_wc wc;

	kvt_stay_on_first_cpu();
	far = long_rig(test);
	near = long_rig(test);
	pause = rig_pause_at(test, "emu_copy_long");
	KUNIT_EXPECT_EQ(test, 0, long_send(far, dma, LONG_SGES, LONG_SIZE));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&pause->gate.entered));
	KUNIT_EXPECT_EQ(test, 0, long_send(near, dma, 1, BESIDE_SIZE));
	RIG_EXPECT_DELIVERED(test, near, &wc, 1, 0);
	KUNIT_EXPECT_TRUE(test, rig_empty(far->a.scq));
	rig_pause_over(test, pause);
	RIG_EXPECT_WC(test, far->a.scq, &wc, 1, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, far->b.rcq, &wc, 0, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, LONG_SGES * LONG_SIZE, wc.byte_len);
}

/* The runner stands still, as behind thousands of others, with all of them on its list. */
static void queue_pair_on_a_list_can_be_changed_and_destroyed(struct kunit *test)
{
	u64 dma = long_memory(test);
	struct rig *first, *moved, *failed, *destroyed;
	struct rig_pause *pause;
	struct ib_wc wc;

	kvt_stay_on_first_cpu();
	first = long_rig(test);
	moved = long_rig(test);
	failed = long_rig(test);
	destroyed = long_rig(test);
	pause = rig_pause_at(test, "emu_run_begin");
	KUNIT_EXPECT_EQ(test, 0, long_send(first, dma, 1, BESIDE_SIZE));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&pause->gate.entered));
	KUNIT_EXPECT_EQ(test, 0, long_send(moved, dma, 1, BESIDE_SIZE));
	KUNIT_EXPECT_EQ(test, 0, long_send(failed, dma, 1, BESIDE_SIZE));
	KUNIT_EXPECT_EQ(test, 0, long_send(destroyed, dma, 1, BESIDE_SIZE));
	/* Taken back, and handed over once more. */
	KUNIT_EXPECT_EQ(test, 0, rig_to(moved->a.qp, IB_QPS_SQD));
	KUNIT_EXPECT_EQ(test, 0, rig_to(moved->a.qp, IB_QPS_RTS));
	KUNIT_EXPECT_EQ(test, 0, rig_to(failed->a.qp, IB_QPS_ERR));
	RIG_EXPECT_WC(test, failed->a.scq, &wc, 1, IB_WC_WR_FLUSH_ERR);
	rig_destroy_qp(test, &destroyed->a);
	KUNIT_EXPECT_TRUE(test, rig_empty(first->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(moved->a.scq));
	rig_pause_over(test, pause);
	RIG_EXPECT_DELIVERED(test, first, &wc, 1, 0);
	RIG_EXPECT_DELIVERED(test, moved, &wc, 1, 0);
	KUNIT_EXPECT_TRUE(test, rig_empty(failed->b.rcq));
	KUNIT_EXPECT_TRUE(test, rig_empty(destroyed->b.rcq));
}

/* A process's message is tried again by a runner, which stands still, until there is a receive. */
static void processes_hold_up_no_message_of_the_kernel(struct kunit *test)
{
	u64 dma = long_memory(test);
	struct process_rings rings;
	struct emu_uring *polled;
	struct rig_pause *pause;
	struct rig *r, *near;
	struct process *p;
	struct ib_wc wc;

	kvt_stay_on_first_cpu();
	r = rig_new(test, "emu0", "emu0");
	r->rnr_retry = 7;
	r->rnr_timer = 1;
	p = process_new(test, r->b.ibdev);
	r->b.scq = process_cq(test, p, 16, &r->b, &polled);
	r->b.rcq = r->b.scq;
	rig_make_qp(test, r, &r->a);
	process_make_qp(test, p, r, &r->b, &rings);
	rig_connect(test, r);
	near = long_rig(test);
	pause = rig_pause_at(test, "emu_run_begin");
	KUNIT_EXPECT_TRUE(test, process_send(rings.sq, 1, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, process_doorbell(r->b.qp));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&pause->gate.entered));
	KUNIT_EXPECT_STREQ(test, "kverbs_user/0", pause->thread);
	KUNIT_EXPECT_EQ(test, 0, long_send(near, dma, 1, BESIDE_SIZE));
	RIG_EXPECT_DELIVERED(test, near, &wc, 1, 0);
	rig_pause_over(test, pause);
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&r->a, 2, 0, 8));
	RIG_EXPECT_WC(test, r->a.rcq, &wc, 2, IB_WC_SUCCESS);
}

static int modify_all_the_time(void *arg)
{
	struct rig *r = arg;
	int err = 0;

	while (!err && !kvt_should_stop()) {
		err = rig_to(r->a.qp, IB_QPS_SQD);
		/* Not before a message under way is finished. */
		if (!err && !kvt_until(!rig_to(r->a.qp, IB_QPS_RTS)))
			err = -ETIMEDOUT;
	}
	return err;
}

/* Each change takes the queue pair away from its owner, who is about to hand it over. */
static void long_message_survives_any_number_of_changes(struct kunit *test)
{
	u64 dma = long_memory(test);
	struct kvt_thread *changes;
	struct ib_wc wc;
	struct rig *r;
	int i;

	kvt_need_two_cpus(test);
	r = long_rig(test);
	changes = kvt_thread_start(test, 1, modify_all_the_time, r);
	for (i = 0; i < LONG_SENDS; i++) {
		KUNIT_EXPECT_EQ(test, 0, long_send(r, dma, 1, LONG_LEN));
		RIG_EXPECT_DELIVERED(test, r, &wc, 1, 0);
	}
	KUNIT_EXPECT_EQ(test, 0, kvt_thread_stop(changes));
}

/* A poster that arms the timer just as the queue pair is being changed, and is late to take it back. */
struct late_owner {
	struct rig_meanwhile change;
	bool longer;	/* waits of the queue pair are longer from now on */
	bool ended;
};

static int change_queue_pair(void *arg)
{
	struct ib_qp_attr longest = { .min_rnr_timer = 0 };
	struct late_owner *late = arg;
	struct rig *r = late->change.r;

	late->change.err = ib_modify_qp(r->b.qp, &longest, IB_QP_MIN_RNR_TIMER);
	/* release: pairs with the acquire in change_comes() */
	smp_store_release(&late->longer, true);
	/* The message under way is still tried then. */
	if (!late->change.err)
		late->change.err = rig_to(r->a.qp, IB_QPS_SQD);
	return 0;
}

static void owner_is_late(void *arg)
{
	struct late_owner *late = arg;

	late->ended = kvt_spin_until(!kvt_thread_running(late->change.thread));
}

static void change_comes(void *arg)
{
	struct late_owner *late = arg;

	kvt_thread_go(late->change.thread);
	/* acquire: pairs with the release in change_queue_pair(), which may sleep before as well */
	kvt_spin_until(smp_load_acquire(&late->longer));
	late->change.waits = kvt_thread_sleeps(late->change.thread);
	kverbs_delay_set_any("emu_qp_take_back", owner_is_late, late);
}

/*
 * Its own wait ends meanwhile, and so does the change, after which the queue pair waits anew: that is
 * the wait that it takes back.
 */
static void owner_that_ends_a_later_wait_looks_again(struct kunit *test)
{
	struct late_owner *late = kvt_zalloc(test, sizeof(*late));
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_wc wc;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	r->rnr_retry = 7;
	r->rnr_timer = 1;
	rig_start(test, r);
	late->change = (struct rig_meanwhile) { .r = r, .err = 1 };
	late->change.thread = kvt_thread_new(test, kvt_other_cpu(), change_queue_pair, late);
	kverbs_delay_set("emu_qp_park", change_comes, late);
	KUNIT_EXPECT_EQ(test, 0, rig_send(&r->a, 1, 0, 8));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(late->change.thread));
	KUNIT_EXPECT_TRUE(test, late->change.waits);
	KUNIT_EXPECT_EQ(test, 0, late->change.err);
	KUNIT_EXPECT_TRUE(test, late->ended);
	KUNIT_EXPECT_EQ(test, 0, rig_recv(&r->b, 2, 0, 8));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 2);
}

/* Each asks as often as it can, and for ever. */
static void retries_of_many_take_a_small_part_of_the_cpu(struct kunit *test)
{
	struct rig **r = kvt_zalloc(test, WAITING * sizeof(*r));
	u64 before, start, ms;
	int i;

	for (i = 0; i < WAITING; i++) {
		r[i] = rig_new(test, "emu0", "emu1");
		r[i]->rnr_retry = 7;
		r[i]->rnr_timer = 1;
		rig_start(test, r[i]);
	}
	start = ktime_get_ns();
	before = rig_counter(test, &r[0]->a, "rcvd_rnr_err");
	for (i = 0; i < WAITING; i++)
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r[i]->a, 1, 0, 8));
	KUNIT_EXPECT_TRUE(test, rig_counts_to(test, &r[0]->a, "rcvd_rnr_err", before + RETRIES));
	/* The last ms is not over, and each has tried once before it has had to wait. */
	ms = div64_u64(ktime_get_ns() - start, NSEC_PER_MSEC) + 1;
	KUNIT_EXPECT_GE(test, ms * RETRIES_PER_MS * num_online_cpus() + WAITING, RETRIES);
}

static struct kunit_case emu_fair_cases[] = {
	KUNIT_CASE(long_message_holds_up_no_other_queue_pair),
	KUNIT_CASE(queue_pair_on_a_list_can_be_changed_and_destroyed),
	KUNIT_CASE(processes_hold_up_no_message_of_the_kernel),
	KUNIT_CASE(long_message_survives_any_number_of_changes),
	KUNIT_CASE(owner_that_ends_a_later_wait_looks_again),
	KUNIT_CASE(retries_of_many_take_a_small_part_of_the_cpu),
	{}
};
KVT_SUITE(emu_fair);

MODULE_DESCRIPTION("KUnit: queue pairs that leave the CPU to others, on the software HCA");
MODULE_LICENSE("GPL");
