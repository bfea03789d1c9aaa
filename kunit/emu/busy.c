// SPDX-License-Identifier: GPL-2.0-only
/*
 * A thread posts to the software HCA and polls without giving up its CPU: with preemption or
 * bottom halves off, or with real-time priority. Its requests complete nevertheless, and others
 * can modify its queue pair meanwhile. Needs a second CPU.
 */
#include <linux/bottom_half.h>

#include "emu/rig.h"
#include "lib/objects.h"

/*
 * Nothing here takes longer, unless it waits for the thread itself, and then each time; or unless a
 * CPU of the guest stands still, so that a round in which the thread gives up is repeated.
 */
#define LIMIT_NS	(15 * NSEC_PER_SEC)
#define MAX_ROUNDS	2

#define RT_RUNTIME	"/proc/sys/kernel/sched_rt_runtime_us"

/* How a thread keeps its CPU. */
enum busy_how {
	BUSY_PREEMPT_OFF,
	BUSY_BH_OFF,
	BUSY_REALTIME,
};

/* A thread that polls. */
struct busy {
	struct rig *r;			/* the connection */
	/* Posts something at the first end; returns 0 or an error. */
	int (*post)(struct rig *r);
	int wanted;			/* completions of the first end to wait for */
	enum busy_how how;		/* how it keeps its CPU */
	struct completion posted;	/* completed before it polls */
	int got;			/* completions that were polled */
	bool gave_up;			/* it has not got them, and has let others have the CPU */
	struct ib_wc wc;		/* the last one of them */
};

static void keep_cpu(enum busy_how how)
{
	switch (how) {
	case BUSY_PREEMPT_OFF:
		preempt_disable();
		break;
	case BUSY_BH_OFF:
		local_bh_disable();
		break;
	case BUSY_REALTIME:
		sched_set_fifo(current);
		break;
	}
}

static void give_up_cpu(enum busy_how how)
{
	switch (how) {
	case BUSY_PREEMPT_OFF:
		preempt_enable();
		break;
	case BUSY_BH_OFF:
		local_bh_enable();
		break;
	case BUSY_REALTIME:
		sched_set_normal(current, 0);
		break;
	}
}

static int busy_fn(void *arg)
{
	struct busy *b = arg;
	u64 end = ktime_get_mono_fast_ns() + LIMIT_NS;
	bool late = false;
	int err;

	keep_cpu(b->how);
	err = b->post(b->r);
	complete(&b->posted);
	/* Once more when it is late, for it may have stood still itself. */
	while (!err && b->got < b->wanted && !late) {
		late = ktime_get_mono_fast_ns() >= end;
		b->got += ib_poll_cq(b->r->a.scq, 1, &b->wc);
	}
	WRITE_ONCE(b->gave_up, b->got < b->wanted);
	give_up_cpu(b->how);
	return err;
}

static struct busy *busy_new(struct kunit *test, struct rig *r, int (*post)(struct rig *r),
			     int wanted, enum busy_how how)
{
	struct busy *b = kvt_zalloc(test, sizeof(*b));

	b->r = r;
	b->post = post;
	b->wanted = wanted;
	b->how = how;
	init_completion(&b->posted);
	return b;
}

static void busy_tell(struct kunit *test, int rounds_left)
{
	if (rounds_left < MAX_ROUNDS)
		kunit_info(test, "gave up %d times in %d rounds: did a CPU of the guest stand still?",
			   MAX_ROUNDS - rounds_left, min(MAX_ROUNDS - rounds_left + 1, MAX_ROUNDS));
}

/* On the CPU of the case itself, which sleeps; the other one has nothing to do. */
static void busy_run(struct kunit *test, struct rig *(*up)(struct kunit *test),
		     int (*post)(struct rig *r), int wanted, enum busy_how how,
		     enum ib_wc_status want)
{
	int rounds = MAX_ROUNDS;
	struct busy *b;

	do {
		b = busy_new(test, up(test), post, wanted, how);
		KUNIT_ASSERT_EQ(test, 0,
				kvt_thread_result(kvt_thread_start(test, 0, busy_fn, b)));
	} while (b->gave_up && --rounds);
	busy_tell(test, rounds);
	KUNIT_EXPECT_EQ(test, b->wanted, b->got);
	if (b->got)
		KUNIT_EXPECT_STREQ(test, ib_wc_status_msg(b->wc.status), ib_wc_status_msg(want));
}

static struct rig *busy_rig(struct kunit *test)
{
	struct rig *r;

	kvt_need_two_cpus(test);
	r = rig_new(test, "emu0", "emu1");
	r->access = IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ;
	r->timeout = 12;
	r->retry_cnt = 3;
	rig_start(test, r);
	rig_register(test, &r->b, IB_ACCESS_LOCAL_WRITE | r->access);
	return r;
}

/* Four times as long as what a poster copies itself. */
static void long_sges(struct ib_sge *sge, struct rig_end *e)
{
	int i;

	for (i = 0; i < RIG_SGE; i++)
		sge[i] = rig_sge(e, 0, RIG_BUF);
}

static int post_long_send(struct rig *r)
{
	struct ib_sge to[RIG_SGE], from[RIG_SGE];
	struct ib_recv_wr recv = { .wr_id = 2, .sg_list = to, .num_sge = RIG_SGE };
	struct ib_send_wr send;

	long_sges(to, &r->b);
	long_sges(from, &r->a);
	rig_send_wr(&send, 1, from, RIG_SGE);
	return ib_post_recv(r->b.qp, &recv, NULL) ?: ib_post_send(r->a.qp, &send, NULL);
}

static const struct busy_way {
	const char *name;
	enum busy_how how;
} busy_ways[] = {
	{ "with preemption off", BUSY_PREEMPT_OFF },
	{ "with bottom halves off", BUSY_BH_OFF },
	{ "with real-time priority", BUSY_REALTIME },
};

KUNIT_ARRAY_PARAM_DESC(busy_way, busy_ways, name);

static enum busy_how busy_how(struct kunit *test)
{
	const struct busy_way *way = test->param_value;

	/* Else the scheduler takes the CPU away from real-time tasks now and then. */
	if (way->how == BUSY_REALTIME)
		kvt_set_file(test, RT_RUNTIME, "-1");
	return way->how;
}

static void p13_long_send_completes(struct kunit *test)
{
	busy_run(test, busy_rig, post_long_send, 1, busy_how(test), IB_WC_SUCCESS);
}

/* The first two take what a poster may do itself, and more. */
static int post_three(struct rig *r, enum ib_wr_opcode op)
{
	int i, err = 0;

	for (i = 0; i < 3 && !err; i++)
		err = rig_rdma(&r->a, op, i, 0, RIG_BUF, r->b.mr->iova, r->b.mr->rkey);
	return err;
}

static int post_reads(struct rig *r)
{
	return post_three(r, IB_WR_RDMA_READ);
}

static void p13_reads_complete(struct kunit *test)
{
	busy_run(test, busy_rig, post_reads, 3, BUSY_PREEMPT_OFF, IB_WC_SUCCESS);
}

static int post_writes(struct rig *r)
{
	return post_three(r, IB_WR_RDMA_WRITE);
}

static void p13_writes_complete(struct kunit *test)
{
	busy_run(test, busy_rig, post_writes, 3, BUSY_PREEMPT_OFF, IB_WC_SUCCESS);
}

static int post_send(struct rig *r)
{
	return rig_send(&r->a, 1, 0, 64);
}

/* Starts a thread on another CPU, which has posted when this returns. */
static struct kvt_thread *busy_beside(struct kunit *test, struct busy *b)
{
	struct kvt_thread *t = kvt_thread_start(test, kvt_other_cpu(), busy_fn, b);

	wait_for_completion(&b->posted);
	return t;
}

static void p13_send_finds_a_receive_late(struct kunit *test)
{
	enum busy_how how = busy_how(test);
	int rounds = MAX_ROUNDS;
	struct kvt_thread *t;
	struct ib_wc wc;
	struct busy *b;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	do {
		b = busy_new(test, busy_rig(test), post_send, 1, how);
		t = busy_beside(test, b);
		KUNIT_EXPECT_EQ(test, 0, rig_recv(&b->r->b, 2, 0, 64));
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	} while (b->gave_up && --rounds);
	busy_tell(test, rounds);
	KUNIT_EXPECT_EQ(test, 1, b->got);
	KUNIT_EXPECT_EQ(test, IB_WC_SUCCESS, b->wc.status);
	RIG_EXPECT_WC(test, b->r->b.rcq, &wc, 2, IB_WC_SUCCESS);
}

/* A rig whose second end does not answer. */
static struct rig *deaf_rig(struct kunit *test)
{
	struct rig *r = busy_rig(test);

	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_RESET));
	return r;
}

static void p13_send_to_nobody_is_given_up(struct kunit *test)
{
	busy_run(test, deaf_rig, post_send, 1, busy_how(test), IB_WC_RETRY_EXC_ERR);
}

/* The queue pair is moved to ERR by another CPU: the long message ends, or is flushed. */
static void p13_queue_pair_can_be_changed(struct kunit *test)
{
	int rounds = MAX_ROUNDS;
	struct kvt_thread *t;
	struct busy *b;
	bool late;

	kvt_need_two_cpus(test);
	kvt_stay_on_first_cpu();
	do {
		b = busy_new(test, busy_rig(test), post_long_send, 1, BUSY_PREEMPT_OFF);
		t = busy_beside(test, b);
		KUNIT_EXPECT_EQ(test, 0, rig_to(b->r->a.qp, IB_QPS_ERR));
		late = READ_ONCE(b->gave_up);
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t));
	} while ((late || b->gave_up) && --rounds);
	busy_tell(test, rounds);
	/* It would last until then. */
	KUNIT_EXPECT_FALSE(test, late);
	KUNIT_EXPECT_EQ(test, 1, b->got);
}

static struct kunit_case emu_busy_cases[] = {
	KUNIT_CASE_PARAM(p13_long_send_completes, busy_way_gen_params),
	KUNIT_CASE(p13_reads_complete),
	KUNIT_CASE(p13_writes_complete),
	KUNIT_CASE_PARAM(p13_send_finds_a_receive_late, busy_way_gen_params),
	KUNIT_CASE_PARAM(p13_send_to_nobody_is_given_up, busy_way_gen_params),
	KUNIT_CASE(p13_queue_pair_can_be_changed),
	{}
};
KVT_SUITE(emu_busy);

MODULE_DESCRIPTION("KUnit: pollers that keep their CPU, on the software HCA");
MODULE_LICENSE("GPL");
