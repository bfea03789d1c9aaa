// SPDX-License-Identifier: GPL-2.0-only
/*
 * Shared receive queues of the software HCA: the limit event, the event for the last WQE,
 * resizing, and the PD that the keys in receives must belong to. The name of a case that
 * covers a row of the conformance table starts with the row's id.
 */
#include <kverbs/delay.h>

#include "emu/rig_net.h"
#include "lib/objects.h"

#define DEPTH		16
#define SLOT		512
#define LEN		64
#define RESIZES		150
#define DRAINS		40

KUNIT_ARRAY_PARAM_DESC(pair, rig_pairs, name);

/* A rig whose second end receives from an SRQ. */
struct shared {
	struct rig *r;			/* the rig; its first end sends */
	struct ib_srq *srq;		/* the SRQ of the second end */
	atomic_t limits;		/* SRQ_LIMIT_REACHED events */
	atomic_t lasts;			/* QP_LAST_WQE_REACHED events */
	struct completion got_limit;	/* completed by each event counted in @limits */
	struct completion got_last;	/* completed by each event counted in @lasts */
};

static void srq_event(struct ib_event *event, void *context)
{
	struct shared *s = context;

	if (event->event != IB_EVENT_SRQ_LIMIT_REACHED)
		return;
	atomic_inc(&s->limits);
	complete(&s->got_limit);
}

/* For the event handler of all QPs of the rig: only QPs with an SRQ get the last-WQE event. */
static struct shared *last_shared;

static void qp_event(struct ib_event *event, void *context)
{
	if (event->event != IB_EVENT_QP_LAST_WQE_REACHED)
		return;
	atomic_inc(&last_shared->lasts);
	complete(&last_shared->got_last);
}

static struct shared *shared_of(struct kunit *test, struct rig *r, u32 depth)
{
	struct shared *s = kvt_zalloc(test, sizeof(*s));
	struct ib_srq_init_attr init = {
		.event_handler = srq_event,
		.attr.max_wr = depth,
		.attr.max_sge = 2,
	};

	init_completion(&s->got_limit);
	init_completion(&s->got_last);
	init.srq_context = s;
	s->r = r;
	s->srq = KVT_OWN(test, ib_create_srq(r->b.pd, &init), kvt_end_srq);
	r->b.srq = s->srq;
	r->init.event_handler = qp_event;
	last_shared = s;
	return s;
}

/* Returns a connected rig with an SRQ; nothing is posted yet. */
static struct shared *shared_up(struct kunit *test, const char *a, const char *b)
{
	struct shared *s = shared_of(test, rig_new(test, a, b), DEPTH);

	rig_start(test, s->r);
	return s;
}

static struct shared *shared_of_param(struct kunit *test)
{
	const struct rig_pair *pair = test->param_value;

	return shared_up(test, pair->a, pair->b);
}

static int shared_recv(struct shared *s, u64 id)
{
	struct ib_sge sge = rig_sge(&s->r->b, id % (RIG_BUF / SLOT) * SLOT, SLOT);
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	return ib_post_srq_recv(s->srq, &wr, NULL);
}

static void shared_fill(struct kunit *test, struct shared *s, u64 from, u64 to)
{
	for (; from < to; from++)
		KUNIT_ASSERT_EQ(test, 0, shared_recv(s, from));
}

/* Sends one message, which must consume the receive posted with ID @id. */
static void shared_send(struct kunit *test, struct shared *s, u64 id)
{
	struct rig *r = s->r;
	struct ib_wc wc;

	rig_fill(r->a.buf, LEN, id);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 7, 0, LEN));
	RIG_EXPECT_DELIVERED(test, r, &wc, 7, id);
	KUNIT_EXPECT_PTR_EQ(test, wc.qp, r->b.qp);
	KUNIT_EXPECT_EQ(test, LEN, wc.byte_len);
	KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf + id % (RIG_BUF / SLOT) * SLOT, LEN, id));
}

static int set_limit(struct shared *s, u32 limit)
{
	struct ib_srq_attr attr = { .srq_limit = limit };

	return ib_modify_srq(s->srq, &attr, IB_SRQ_LIMIT);
}

static int set_size(struct shared *s, u32 size)
{
	struct ib_srq_attr attr = { .max_wr = size };

	return ib_modify_srq(s->srq, &attr, IB_SRQ_MAX_WR);
}

static struct ib_srq_attr query(struct kunit *test, struct shared *s)
{
	struct ib_srq_attr attr = {};

	KUNIT_ASSERT_EQ(test, 0, ib_query_srq(s->srq, &attr));
	return attr;
}

static void s1_limit_is_told_once(struct kunit *test)
{
	struct shared *s = shared_of_param(test);
	int i;

	shared_fill(test, s, 0, DEPTH);
	KUNIT_ASSERT_EQ(test, 0, set_limit(s, 10));
	KUNIT_EXPECT_EQ(test, 10, query(test, s).srq_limit);
	/* Ten receives are left, which is not below the limit yet. */
	for (i = 0; i < DEPTH - 10; i++)
		shared_send(test, s, i);
	KUNIT_EXPECT_EQ(test, 10, query(test, s).srq_limit);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->limits));
	for (; i < DEPTH; i++)
		shared_send(test, s, i);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->got_limit));
	KUNIT_EXPECT_EQ(test, 0, query(test, s).srq_limit);
	/* The limit is disarmed: there is no event when the SRQ is filled and emptied again. */
	shared_fill(test, s, 100, 100 + DEPTH);
	for (i = 0; i < DEPTH; i++)
		shared_send(test, s, 100 + i);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->limits));
}

static void s1_limit_is_armed_again(struct kunit *test)
{
	struct shared *s = shared_of_param(test);
	int i, id = 0;

	shared_fill(test, s, 0, DEPTH);
	for (i = 1; i <= 5; i++) {
		KUNIT_ASSERT_EQ(test, 0, set_limit(s, DEPTH));
		KUNIT_EXPECT_EQ(test, i - 1, atomic_read(&s->limits));
		shared_send(test, s, id);
		KUNIT_ASSERT_TRUE(test, kvt_wait(&s->got_limit));
		KUNIT_EXPECT_EQ(test, i, atomic_read(&s->limits));
		KUNIT_ASSERT_EQ(test, 0, shared_recv(s, id++ + DEPTH));
	}
}

static void s1_limit_above_what_is_there_is_told_at_once(struct kunit *test)
{
	struct shared *s = shared_of_param(test);

	shared_fill(test, s, 0, 3);
	KUNIT_ASSERT_EQ(test, 0, set_limit(s, 3));
	KUNIT_EXPECT_EQ(test, 3, query(test, s).srq_limit);
	KUNIT_ASSERT_EQ(test, 0, set_limit(s, 4));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->got_limit));
	KUNIT_EXPECT_EQ(test, 0, query(test, s).srq_limit);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->limits));
	/* A limit above the size of the SRQ is refused. */
	KUNIT_EXPECT_EQ(test, -EINVAL, set_limit(s, DEPTH + 1));
	/* A limit of 0 disarms it. */
	KUNIT_ASSERT_EQ(test, 0, set_limit(s, 3));
	KUNIT_ASSERT_EQ(test, 0, set_limit(s, 0));
	shared_send(test, s, 0);
	shared_send(test, s, 1);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->limits));
}

/* Ways to move a QP to the error state. */
enum ending {
	END_MODIFY,
	END_REMOTE,
	END_RECEIVE,
	END_BOTH,
};

static const char *const ending_names[] = {
	"modify_qp", "bad request of the peer", "bad receive",
	"bad receive and modify_qp",
};

static const int endings[] = { END_MODIFY, END_REMOTE, END_RECEIVE, END_BOTH };

KVT_NAMED_PARAM(ending, endings, ending_names);

static void end_qp(struct kunit *test, struct shared *s, int ending)
{
	struct rig *r = s->r;
	struct ib_wc wc;

	switch (ending) {
	case END_REMOTE:
		KUNIT_ASSERT_EQ(test, 0, rig_rdma(&r->a, IB_WR_RDMA_WRITE, 8, 0, 8, 0, 0x7777));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 8, IB_WC_REM_ACCESS_ERR);
		break;
	case END_RECEIVE:
	case END_BOTH:
		KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 8, 0, SLOT + 1));
		RIG_EXPECT_WC(test, r->a.scq, &wc, 8, IB_WC_REM_INV_REQ_ERR);
		RIG_EXPECT_WC(test, r->b.rcq, &wc, 0, IB_WC_LOC_LEN_ERR);
		break;
	}
	if (ending == END_MODIFY || ending == END_BOTH)
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
}

static void s2_error_leaves_the_srq_alone(struct kunit *test)
{
	int ending = *(const int *)test->param_value;
	struct shared *s = shared_up(test, "emu0", "emu1");
	u64 next = ending == END_RECEIVE || ending == END_BOTH;
	struct rig *r = s->r;
	int i;

	shared_fill(test, s, 0, DEPTH);
	end_qp(test, s, ending);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->got_last));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
	/* No receive is flushed, and the event comes once, whatever is asked of the QP in ERR. */
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->b, 9, 0, 8));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->b.rcq));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->lasts));

	/* The receives left in the SRQ serve the next connection. */
	rig_reconnect(test, r);
	for (; next < DEPTH; next++)
		shared_send(test, s, next);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->lasts));
	KUNIT_ASSERT_EQ(test, 0, rig_to(r->b.qp, IB_QPS_ERR));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->got_last));
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&s->lasts));
}

static void s2_other_queue_pairs_go_on(struct kunit *test)
{
	struct shared *s = shared_up(test, "emu0", "emu1");
	struct rig other = *s->r;

	rig_start(test, &other);
	shared_fill(test, s, 0, 4);
	shared_send(test, s, 0);
	KUNIT_ASSERT_EQ(test, 0, rig_to(s->r->b.qp, IB_QPS_ERR));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->got_last));
	s->r = &other;
	shared_send(test, s, 1);
	shared_send(test, s, 2);
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&s->lasts));
}

static void s3_receives_are_posted_to_the_srq_only(struct kunit *test)
{
	struct shared *s = shared_of_param(test);
	struct ib_sge sge = rig_sge(&s->r->b, SLOT, SLOT);
	struct ib_recv_wr two = { .wr_id = 2, .sg_list = &sge, .num_sge = 1 };
	struct ib_recv_wr one = { .next = &two, .wr_id = 1, .sg_list = &sge,
				  .num_sge = 1 };
	const struct ib_recv_wr *bad = NULL;

	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_recv(s->r->b.qp, &one, &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, &one);
	KUNIT_ASSERT_EQ(test, 0, shared_recv(s, 5));
	shared_send(test, s, 5);
	/* In a chain of WRs, those before the invalid one are posted. */
	two.num_sge = 3;
	bad = NULL;
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_post_srq_recv(s->srq, &one, &bad));
	KUNIT_EXPECT_PTR_EQ(test, bad, &two);
	shared_send(test, s, 1);
}

static void srq_takes_as_many_as_it_says(struct kunit *test)
{
	struct shared *s = shared_of_param(test);
	struct ib_srq_attr attr = query(test, s);
	u64 id, more;

	KUNIT_EXPECT_EQ(test, DEPTH, attr.max_wr);
	KUNIT_EXPECT_EQ(test, 2, attr.max_sge);
	KUNIT_EXPECT_EQ(test, 0, attr.srq_limit);
	shared_fill(test, s, 0, DEPTH);
	KUNIT_EXPECT_EQ(test, -ENOMEM, shared_recv(s, 99));
	/* A consumed receive frees its entry. The order is kept over many rounds of the queue. */
	for (id = 0, more = DEPTH; id < 10 * DEPTH; id++) {
		shared_send(test, s, id);
		KUNIT_ASSERT_EQ(test, 0, shared_recv(s, more++));
		KUNIT_EXPECT_EQ(test, -ENOMEM, shared_recv(s, 99));
	}
}

static void srq_waits_like_any_receive_queue(struct kunit *test)
{
	struct shared *s = shared_of_param(test);
	struct rig *r = s->r;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	KUNIT_EXPECT_TRUE(test, rig_empty(r->a.scq));
	KUNIT_ASSERT_EQ(test, 0, shared_recv(s, 3));
	RIG_EXPECT_DELIVERED(test, r, &wc, 1, 3);
}

static void r10_srq_that_stays_empty(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct shared *s = shared_of(test, r, DEPTH);
	struct ib_wc wc;

	r->rnr_retry = 2;
	rig_start(test, r);
	KUNIT_ASSERT_EQ(test, 0, rig_send(&r->a, 1, 0, LEN));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 1, IB_WC_RNR_RETRY_EXC_ERR);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(r->b.qp));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->lasts));
}

static void resize_keeps_what_is_there(struct kunit *test)
{
	static const u32 sizes[] = { 40, 12, 100, 10, 1000 };
	struct shared *s = shared_of_param(test);
	u64 first = 0, next = 10;
	int i, k;

	shared_fill(test, s, 0, next);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		KUNIT_ASSERT_EQ(test, 0, set_size(s, sizes[i]));
		KUNIT_EXPECT_EQ(test, sizes[i], query(test, s).max_wr);
		KUNIT_EXPECT_EQ(test, -EINVAL, set_size(s, 9));
		KUNIT_EXPECT_EQ(test, sizes[i], query(test, s).max_wr);
		/* Receives posted before the resize are consumed first. */
		for (k = 0; k < 25; k++) {
			shared_send(test, s, first++);
			KUNIT_ASSERT_EQ(test, 0, shared_recv(s, next++));
		}
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, set_size(s, 0));
	KUNIT_EXPECT_NE(test, 0, set_size(s, 1 << 30));
	while (first < next)
		shared_send(test, s, first++);
	KUNIT_EXPECT_TRUE(test, rig_empty(s->r->b.rcq));
}

static void resize_to_less_than_is_there(struct kunit *test)
{
	struct shared *s = shared_of_param(test);
	u64 i;

	shared_fill(test, s, 0, DEPTH);
	KUNIT_EXPECT_EQ(test, -EINVAL, set_size(s, DEPTH - 1));
	KUNIT_EXPECT_EQ(test, DEPTH, query(test, s).max_wr);
	KUNIT_EXPECT_EQ(test, -ENOMEM, shared_recv(s, 99));
	for (i = 0; i < DEPTH; i++)
		shared_send(test, s, i);
	/* An empty SRQ can be resized to a single entry. */
	KUNIT_EXPECT_EQ(test, 0, set_size(s, 1));
	KUNIT_ASSERT_EQ(test, 0, shared_recv(s, 50));
	KUNIT_EXPECT_EQ(test, -ENOMEM, shared_recv(s, 99));
	shared_send(test, s, 50);
}

/* What it says of a limit means nothing when an SRQ is made: ibv_create_srq(3). */
static void s1_srq_is_made_without_a_limit(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct ib_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 2 } };
	static const u32 limits[] = { 1, DEPTH, DEPTH + 1, U32_MAX };
	struct ib_srq_attr attr = {};
	struct ib_srq *srq;
	int i;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		init.attr.srq_limit = limits[i];
		srq = KVT_OWN(test, ib_create_srq(r->b.pd, &init), kvt_end_srq);
		KUNIT_ASSERT_EQ(test, 0, ib_query_srq(srq, &attr));
		KUNIT_EXPECT_EQ(test, 0, attr.srq_limit);
		KUNIT_EXPECT_EQ(test, DEPTH, attr.max_wr);
	}
}

static void limit_outlives_a_change_of_size(struct kunit *test)
{
	struct shared *s = shared_of_param(test);
	struct ib_srq_attr both = { .max_wr = 64, .srq_limit = 40 };
	u64 i;

	shared_fill(test, s, 0, 8);
	KUNIT_ASSERT_EQ(test, 0, set_limit(s, 6));
	KUNIT_ASSERT_EQ(test, 0, set_size(s, 32));
	KUNIT_EXPECT_EQ(test, 6, query(test, s).srq_limit);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&s->limits));
	shared_send(test, s, 0);
	shared_send(test, s, 1);
	KUNIT_EXPECT_EQ(test, 6, query(test, s).srq_limit);
	shared_send(test, s, 2);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->got_limit));
	/* In one call: the new limit is valid because of the new size, and is reached at once. */
	shared_fill(test, s, 8, 30);
	KUNIT_ASSERT_EQ(test, 0, ib_modify_srq(s->srq, &both, IB_SRQ_MAX_WR | IB_SRQ_LIMIT));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->got_limit));
	KUNIT_EXPECT_EQ(test, 64, query(test, s).max_wr);
	KUNIT_EXPECT_EQ(test, 2, atomic_read(&s->limits));
	for (i = 3; i < 30; i++)
		shared_send(test, s, i);
}

/* What cannot be done in full is not done in part. */
static void size_and_limit_are_changed_together_or_not_at_all(struct kunit *test)
{
	struct shared *s = shared_of_param(test);
	struct ib_srq_attr both = { .max_wr = 64, .srq_limit = 65 };

	shared_fill(test, s, 0, 8);
	KUNIT_ASSERT_EQ(test, 0, set_limit(s, 6));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_modify_srq(s->srq, &both, IB_SRQ_MAX_WR | IB_SRQ_LIMIT));
	KUNIT_EXPECT_EQ(test, DEPTH, query(test, s).max_wr);
	KUNIT_EXPECT_EQ(test, 6, query(test, s).srq_limit);
	shared_fill(test, s, 8, DEPTH);
	KUNIT_EXPECT_EQ(test, -ENOMEM, shared_recv(s, DEPTH));
}

/* Numbered messages sent to an SRQ. */
struct stream {
	struct shared *s;	/* the rig with the SRQ */
	bool over;		/* set by the case to stop sending */
	u64 posted;		/* receives posted */
	u64 received;		/* messages received */
	u64 bad;		/* messages that were wrong or out of order */
};

/* Checks a message: its slot of the buffer is not reused until all others were used. */
static void stream_take(struct stream *st, const struct ib_wc *wc)
{
	u64 *slot = (void *)st->s->r->b.buf +
		    st->received % (RIG_BUF / SLOT) * SLOT;

	if (wc->status != IB_WC_SUCCESS || wc->wr_id != st->received ||
	    wc->byte_len != LEN || *slot != st->received)
		st->bad++;
	WRITE_ONCE(st->received, st->received + 1);
}

/* Keeps a few receives posted, sends messages, and checks the order in which they arrive. */
static int stream_fn(void *arg)
{
	struct stream *st = arg;
	struct rig *r = st->s->r;
	u64 sent = 0, done = 0;
	struct ib_wc wc;

	while (!READ_ONCE(st->over) || done < sent || st->received < sent) {
		if (kvt_should_stop())
			return -ETIMEDOUT;
		if (st->posted < st->received + DEPTH / 2) {
			/* -ENOMEM: the SRQ is full, because it was resized to few entries. */
			int err = shared_recv(st->s, st->posted);

			if (err && err != -ENOMEM)
				return err;
			st->posted += !err;
		}
		if (!READ_ONCE(st->over) && sent < done + RIG_WR / 2) {
			size_t at = sent % RIG_WR * LEN;

			*(u64 *)(r->a.buf + at) = sent;
			if (rig_send(&r->a, sent++, at, LEN))
				return -EIO;
		}
		while (ib_poll_cq(r->a.scq, 1, &wc) == 1) {
			if (wc.status != IB_WC_SUCCESS || wc.wr_id != done++)
				return -EIO;
		}
		while (ib_poll_cq(r->b.rcq, 1, &wc) == 1)
			stream_take(st, &wc);
		kvt_yield();
	}
	return 0;
}

/* Waits until another message is received. Returns false after KVT_TIMEOUT. */
static bool stream_goes_on(struct stream *st)
{
	u64 from = READ_ONCE(st->received);

	return kvt_until(READ_ONCE(st->received) != from);
}

static void resize_under_traffic_keeps_the_order(struct kunit *test)
{
	struct stream *st = kvt_zalloc(test, sizeof(*st));
	u64 i, count = kvt_count(RESIZES);
	u32 seed = kvt_seed(test, "changes of size", count);
	struct kvt_thread *t;

	st->s = shared_of_param(test);
	t = kvt_thread_start(test, kvt_other_cpu(), stream_fn, st);
	for (i = 0; i < count; i++) {
		int err = set_size(st->s, DEPTH + kvt_rand(&seed) % 200);

		KUNIT_ASSERT_EQ(test, 0, err);
		/* Hardly ever are so few receives in the SRQ that this succeeds. */
		err = set_size(st->s, 1);
		if (err)
			KUNIT_EXPECT_EQ(test, -EINVAL, err);
		else
			KUNIT_ASSERT_EQ(test, 0, set_size(st->s, DEPTH));
		KUNIT_ASSERT_TRUE(test, stream_goes_on(st));
	}
	WRITE_ONCE(st->over, true);
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(t));
	KUNIT_EXPECT_EQ(test, 0, st->bad);
}

/* Types of the QPs that share one SRQ, each QP in a PD of its own. */
static const enum ib_qp_type types[] = { IB_QPT_RC, IB_QPT_UC, IB_QPT_UD };

/* Returns a rig of @type whose second end uses the SRQ, but has another PD than the SRQ. */
static struct rig *another_rig(struct kunit *test, struct shared *s,
			       enum ib_qp_type type, const char *from)
{
	struct rig *r = rig_new(test, from, "emu0");

	r->b.srq = s->srq;
	r->init.event_handler = qp_event;
	if (type == IB_QPT_UD) {
		rig_make_ud(test, r, &r->b);
		/* The sending QP has a receive queue of its own. */
		rig_make_ud(test, r, &r->a);
		return r;
	}
	r->init.qp_type = type;
	rig_start(test, r);
	return r;
}

static int any_send(struct kunit *test, struct rig *r, u64 id)
{
	if (r->a.qp->qp_type != IB_QPT_UD)
		return rig_send(&r->a, id, 0, LEN);
	return rig_ud_send(&r->a, rig_ah(test, &r->a, &r->b), &r->b, id, 0, LEN);
}

static void srq_serves_all_types_of_several_pds(struct kunit *test)
{
	struct rig *first = rig_new(test, "emu0", "emu0");
	struct shared *s = shared_of(test, first, 64);
	struct rig *r[2 * ARRAY_SIZE(types)];
	struct ib_wc wc;
	u64 id;
	int i;

	for (i = 0; i < ARRAY_SIZE(r); i++)
		r[i] = another_rig(test, s, types[i / 2], i % 2 ? "emu1" : "emu0");
	shared_fill(test, s, 0, 60);
	for (id = 0; id < 60; id++) {
		struct rig *on = r[id * 7 % ARRAY_SIZE(r)];
		size_t head = on->a.qp->qp_type == IB_QPT_UD ? RIG_GRH : 0;

		rig_fill(on->a.buf, LEN, id);
		KUNIT_ASSERT_EQ(test, 0, any_send(test, on, 7));
		RIG_EXPECT_DELIVERED(test, on, &wc, 7, id);
		KUNIT_EXPECT_PTR_EQ(test, wc.qp, on->b.qp);
		KUNIT_EXPECT_EQ(test, head + LEN, wc.byte_len);
		KUNIT_EXPECT_TRUE(test, rig_filled(first->b.buf + id * SLOT + head, LEN, id));
	}
}

/* A datagram for an SRQ whose size is changing. */
struct early {
	struct rig *r;
	struct ib_ah *ah;
	int err;
	int polled;		/* completions of it, as soon as it is posted */
};

static void early_send(void *arg)
{
	struct early *early = arg;
	struct rig *r = early->r;
	struct ib_wc wc;

	early->err = rig_ud_send(&r->a, early->ah, &r->b, 7, 0, LEN);
	early->polled = ib_poll_cq(r->a.scq, 1, &wc);
}

/* A receiver that changes it again and again holds up nobody else's datagrams. */
static void datagram_does_not_wait_while_the_size_changes(struct kunit *test)
{
	struct shared *s = shared_of(test, rig_new(test, "emu0", "emu0"), DEPTH);
	struct early early = { .r = another_rig(test, s, IB_QPT_UD, "emu1"), .err = 1 };
	struct rig *r = early.r;
	struct ib_wc wc;
	u64 dropped;

	early.ah = rig_ah(test, &r->a, &r->b);
	dropped = rig_counter(test, &r->b, "rx_dropped");
	kverbs_delay_set("emu_srq_replaced", early_send, &early);
	KUNIT_ASSERT_EQ(test, 0, set_size(s, 2 * DEPTH));
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, early.err);
	KUNIT_EXPECT_EQ(test, 1, early.polled);
	KUNIT_EXPECT_EQ(test, dropped + 1, rig_counter(test, &r->b, "rx_dropped"));
	shared_fill(test, s, 0, 1);
	KUNIT_ASSERT_EQ(test, 0, rig_ud_send(&r->a, early.ah, &r->b, 8, 0, LEN));
	RIG_EXPECT_DELIVERED(test, r, &wc, 8, 0);
}

static void type_name(const enum ib_qp_type *type, char *desc)
{
	strscpy(desc, *type == IB_QPT_RC ? "RC" :
		      *type == IB_QPT_UC ? "UC" : "UD", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(type, types, type_name);

static int recv_by_region(struct shared *s, struct rig_end *e, u64 id)
{
	struct ib_sge sge = { e->mr->iova, SLOT, e->mr->lkey };
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };

	return ib_post_srq_recv(s->srq, &wr, NULL);
}

/* Keys in an SRQ's receives must belong to the SRQ's PD: IBTA vol. 1, 10.2.9.2. */
static void srq_keys_are_of_its_pd(struct kunit *test)
{
	enum ib_qp_type type = *(const enum ib_qp_type *)test->param_value;
	struct rig *first = rig_new(test, "emu0", "emu0");
	struct shared *s = shared_of(test, first, DEPTH);
	struct rig *r = another_rig(test, s, type, "emu1");
	size_t head = type == IB_QPT_UD ? RIG_GRH : 0;
	struct ib_wc wc;

	rig_register_apart(test, &first->b, IB_ACCESS_LOCAL_WRITE);
	rig_register_apart(test, &r->b, IB_ACCESS_LOCAL_WRITE);
	rig_fill(r->a.buf, LEN, 3);
	KUNIT_ASSERT_EQ(test, 0, recv_by_region(s, &first->b, 1));
	KUNIT_ASSERT_EQ(test, 0, any_send(test, r, 7));
	RIG_EXPECT_DELIVERED(test, r, &wc, 7, 1);
	KUNIT_EXPECT_TRUE(test, rig_filled(first->b.buf + head, LEN, 3));

	/* A key of the QP's PD is refused. */
	memset(r->b.buf, 0xee, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, recv_by_region(s, &r->b, 2));
	KUNIT_ASSERT_EQ(test, 0, any_send(test, r, 8));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 8, type == IB_QPT_RC ? IB_WC_REM_OP_ERR : IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 2, IB_WC_LOC_PROT_ERR);
	KUNIT_EXPECT_TRUE(test, rig_all(r->b.buf, RIG_BUF, 0xee));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&s->got_last));
	KUNIT_EXPECT_EQ(test, IB_QPS_ERR, rig_state(r->b.qp));
}

static void srq_of_another_device_is_refused(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1");
	struct shared *s = shared_of(test, r, DEPTH);
	struct ib_qp_init_attr init = r->init;

	init.srq = s->srq;
	init.send_cq = r->a.scq;
	init.recv_cq = r->a.rcq;
	KUNIT_EXPECT_EQ(test, -EINVAL, PTR_ERR_OR_ZERO(ib_create_qp(r->a.pd, &init)));
	/* Also, an SRQ cannot be destroyed while a QP uses it. */
	init.send_cq = r->b.scq;
	init.recv_cq = r->b.rcq;
	kvt_qp(test, r->b.pd, &init);
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_destroy_srq_user(s->srq, NULL));
}

/* A QP with an SRQ that is drained under traffic. */
struct drain_rig {
	struct shared *s;	/* the SRQ */
	struct rig *r;		/* the connection; its second end has the QP to be drained */
	struct ib_qp *qp;	/* the QP to be drained */
	struct ib_cqe cqe;	/* completion entry of all receives */
	int posted;		/* receives posted by the thread */
	atomic_t taken;		/* receives that completed */
	atomic_t flushed;	/* receives that completed in error */
	atomic_t late;		/* receives that completed after the drain had returned */
	int over;		/* the drain has returned */
};

static void drain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct drain_rig *d = container_of(wc->wr_cqe, struct drain_rig, cqe);

	/* Set by the case after ib_drain_qp(), which must wait for the last done(). */
	if (READ_ONCE(d->over))
		atomic_inc(&d->late);
	if (wc->status != IB_WC_SUCCESS)
		atomic_inc(&d->flushed);
	atomic_inc(&d->taken);
}

/* Posts a receive, unless there are so many completions to come that the CQ might overrun. */
static void drain_post(struct drain_rig *d)
{
	struct ib_sge sge = rig_sge(&d->r->b, 0, SLOT);
	struct ib_recv_wr wr = { .wr_cqe = &d->cqe, .sg_list = &sge,
				 .num_sge = 1 };

	if (d->posted < atomic_read(&d->taken) + RIG_CQE / 2 &&
	    !ib_post_srq_recv(d->s->srq, &wr, NULL))
		d->posted++;
}

/* Keeps the SRQ filled and sends messages, until a send completes in error. */
static int drain_traffic(void *arg)
{
	struct drain_rig *d = arg;
	struct ib_wc wc;

	while (!kvt_should_stop()) {
		drain_post(d);
		rig_send(&d->r->a, 1, 0, LEN);
		while (ib_poll_cq(d->r->a.scq, 1, &wc) == 1)
			if (wc.status != IB_WC_SUCCESS)
				return 0;
		kvt_yield();
	}
	return -ETIMEDOUT;
}

static void drain_up(struct kunit *test, struct drain_rig *d)
{
	enum ib_poll_context ctx = kvt_context(test);
	struct ib_qp_init_attr init;

	d->r = rig_new(test, "emu0", "emu1");
	d->s = shared_of(test, d->r, DEPTH);
	d->cqe.done = drain_done;
	/* Let the sender notice soon that its peer does not respond any more. */
	d->r->timeout = 2;
	d->r->retry_cnt = 2;
	rig_make_qp(test, d->r, &d->r->a);
	init = d->r->init;
	init.srq = d->s->srq;
	init.send_cq = kvt_cq(test, d->r->b.ibdev, RIG_CQE, ctx);
	init.recv_cq = kvt_cq(test, d->r->b.ibdev, RIG_CQE, ctx);
	d->qp = kvt_qp(test, d->r->b.pd, &init);
	d->r->b.qp = d->qp;
}

static void s2_drain_under_traffic(struct kunit *test)
{
	struct drain_rig *d = kvt_zalloc(test, sizeof(*d));
	u64 i, count = kvt_count(DRAINS);
	struct kvt_thread *t;

	drain_up(test, d);
	for (i = 1; i <= count; i++) {
		int before = atomic_read(&d->taken);

		rig_connect(test, d->r);
		WRITE_ONCE(d->over, 0);
		t = kvt_thread_start(test, kvt_other_cpu(), drain_traffic, d);
		while (atomic_read(&d->taken) < before + 20 && kvt_thread_running(t))
			kvt_yield();
		ib_drain_qp(d->qp);
		WRITE_ONCE(d->over, 1);
		KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(t));
		KUNIT_EXPECT_EQ(test, i, atomic_read(&d->s->lasts));
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&d->flushed));
		KUNIT_EXPECT_EQ(test, 0, atomic_read(&d->late));
		KUNIT_ASSERT_EQ(test, 0, rig_to(d->r->a.qp, IB_QPS_RESET));
		KUNIT_ASSERT_EQ(test, 0, rig_to(d->qp, IB_QPS_RESET));
	}
	/* The action of kvt_qp() destroys the QP at the end of the case, before its CQs. */
	d->r->b.qp = NULL;
}

static void s5_queue_pair_has_no_receive_queue(struct kunit *test)
{
	struct shared *s = shared_up(test, "emu0", "emu1");
	struct ib_qp_init_attr init = s->r->init;
	struct ib_qp_attr attr;

	init.send_cq = s->r->b.scq;
	init.recv_cq = s->r->b.rcq;
	init.srq = s->srq;
	init.cap.max_recv_wr = 1000000;
	init.cap.max_recv_sge = 77;
	kvt_qp(test, s->r->b.pd, &init);
	KUNIT_EXPECT_EQ(test, 0, init.cap.max_recv_wr);
	KUNIT_EXPECT_EQ(test, 0, init.cap.max_recv_sge);
	KUNIT_ASSERT_EQ(test, 0, ib_query_qp(s->r->b.qp, &attr, IB_QP_CAP, &init));
	KUNIT_EXPECT_EQ(test, 0, attr.cap.max_recv_wr);
	KUNIT_EXPECT_EQ(test, 0, init.cap.max_recv_sge);
}

static struct kunit_case emu_conform_srq_cases[] = {
	KUNIT_CASE_PARAM(s1_limit_is_told_once, pair_gen_params),
	KUNIT_CASE(s5_queue_pair_has_no_receive_queue),
	KUNIT_CASE_PARAM(s1_limit_is_armed_again, pair_gen_params),
	KUNIT_CASE_PARAM(s1_limit_above_what_is_there_is_told_at_once, pair_gen_params),
	KUNIT_CASE_PARAM(s2_error_leaves_the_srq_alone, ending_gen_params),
	KUNIT_CASE(s2_other_queue_pairs_go_on),
	KUNIT_CASE_PARAM(s3_receives_are_posted_to_the_srq_only, pair_gen_params),
	KUNIT_CASE_PARAM(srq_takes_as_many_as_it_says, pair_gen_params),
	KUNIT_CASE_PARAM(srq_waits_like_any_receive_queue, pair_gen_params),
	KUNIT_CASE(r10_srq_that_stays_empty),
	KUNIT_CASE_PARAM(resize_keeps_what_is_there, pair_gen_params),
	KUNIT_CASE_PARAM(resize_to_less_than_is_there, pair_gen_params),
	KUNIT_CASE(s1_srq_is_made_without_a_limit),
	KUNIT_CASE_PARAM(limit_outlives_a_change_of_size, pair_gen_params),
	KUNIT_CASE_PARAM(size_and_limit_are_changed_together_or_not_at_all, pair_gen_params),
	KUNIT_CASE_PARAM(resize_under_traffic_keeps_the_order, pair_gen_params),
	KUNIT_CASE(srq_serves_all_types_of_several_pds),
	KUNIT_CASE(datagram_does_not_wait_while_the_size_changes),
	KUNIT_CASE_PARAM(srq_keys_are_of_its_pd, type_gen_params),
	KUNIT_CASE(srq_of_another_device_is_refused),
	KUNIT_CASE_PARAM(s2_drain_under_traffic, kvt_scheduled_context),
	{}
};
KVT_SUITE(emu_conform_srq);

MODULE_DESCRIPTION("KUnit: shared receive queues of the software HCA");
MODULE_LICENSE("GPL");
