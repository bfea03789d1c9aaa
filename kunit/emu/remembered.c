// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages from and into memory that is registered, as all of a process's is: the regions are
 * remembered, and one element in one piece takes no cursor. Wrong uses, and regions that go while
 * they are remembered, are found out as ever; what comes out is what a cursor makes of it.
 */
#include <linux/delay.h>
#include <linux/mman.h>
#include <kverbs/delay.h>

#include "emu/rig.h"
#include "lib/objects.h"

#define LEN	256
#define USER_PAGES	4
#define ACCESS	(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)

/* Whose memory a case changes: the sender's or the receiver's. */
static const struct side {
	const char *name;
	bool into;
	enum ib_wc_status want;		/* of the send, if this memory cannot be used */
} sides[] = {
	{ "source", false, IB_WC_LOC_PROT_ERR },
	{ "receive", true, IB_WC_REM_OP_ERR },
};
KUNIT_ARRAY_PARAM_DESC(side, sides, name);

/* What a case posts: elements in the regions of both ends. */
struct message {
	struct rig *r;
	struct ib_sge from;
	struct ib_sge to;
};

static struct rig_end *side_end(struct rig *r, const struct side *side)
{
	return side->into ? &r->b : &r->a;
}

static struct ib_sge *side_sge(struct message *m, const struct side *side)
{
	return side->into ? &m->to : &m->from;
}

static struct ib_sge region_sge(const struct rig_end *e, size_t offset, u32 len)
{
	return (struct ib_sge) { .addr = e->mr->iova + offset, .length = len, .lkey = e->mr->lkey };
}

static struct message message_of_type(struct kunit *test, enum ib_qp_type type)
{
	struct rig *r = rig_new(test, "emu0", "emu1");

	r->init.qp_type = type;
	r->access = type == IB_QPT_RC ? ACCESS : ACCESS & ~IB_ACCESS_REMOTE_READ;
	r->rnr_retry = 0;
	rig_start(test, r);
	rig_register(test, &r->a, ACCESS);
	rig_register(test, &r->b, ACCESS);
	return (struct message) {
		.r = r,
		.from = region_sge(&r->a, 0, LEN),
		.to = region_sge(&r->b, 0, LEN),
	};
}

static struct message message_new(struct kunit *test)
{
	return message_of_type(test, IB_QPT_RC);
}

static int message_receive(struct message *m, u64 id)
{
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &m->to, .num_sge = 1 };

	return ib_post_recv(m->r->b.qp, &wr, NULL);
}

static int message_send(struct message *m, u64 id)
{
	struct ib_send_wr wr;

	rig_send_wr(&wr, id, &m->from, 1);
	return ib_post_send(m->r->a.qp, &wr, NULL);
}

static int message_rdma(struct message *m, enum ib_wr_opcode op, u64 id)
{
	struct ib_rdma_wr wr = { .remote_addr = m->to.addr, .rkey = m->r->b.mr->rkey };

	rig_send_wr(&wr.wr, id, &m->from, 1);
	wr.wr.opcode = op;
	return ib_post_send(m->r->a.qp, &wr.wr, NULL);
}

static void message_expect(struct kunit *test, struct message *m, u64 id)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, message_receive(m, id));
	KUNIT_ASSERT_EQ(test, 0, message_send(m, id));
	RIG_EXPECT_DELIVERED(test, m->r, &wc, id, id);
	KUNIT_EXPECT_EQ(test, m->from.length, wc.byte_len);
}

/* The memory of @side cannot be used: both ends learn of it. */
static void message_expect_refused(struct kunit *test, struct message *m, const struct side *side)
{
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, message_receive(m, 50));
	KUNIT_ASSERT_EQ(test, 0, message_send(m, 51));
	RIG_EXPECT_WC(test, m->r->a.scq, &wc, 51, side->want);
	if (side->into)
		RIG_EXPECT_WC(test, m->r->b.rcq, &wc, 50, IB_WC_LOC_PROT_ERR);
}

/* Whether @place, where only a cursor or only a remembered region leads, is reached. */
#define EXPECT_REACHED(test, reached, place, post)			\
do {									\
	kverbs_delay_set(place, kvt_nothing, NULL);				\
	post;								\
	KUNIT_EXPECT_EQ_MSG(test, reached, kverbs_delay_clear(), place);\
} while (0)

static void message_takes_no_cursor(struct kunit *test)
{
	struct message m = message_new(test);
	int i;

	for (i = 0; i < 3; i++) {
		rig_fill(m.r->a.buf, LEN, i);
		EXPECT_REACHED(test, false, "emu_copy", message_expect(test, &m, i));
		KUNIT_EXPECT_TRUE(test, rig_filled(m.r->b.buf, LEN, i));
	}
	EXPECT_REACHED(test, true, "emu_target_enter", message_expect(test, &m, i));
	/* Only one of them is registered. */
	m.from = rig_sge(&m.r->a, 0, LEN);
	EXPECT_REACHED(test, false, "emu_copy", message_expect(test, &m, 10));
	m.from = region_sge(&m.r->a, 0, LEN);
	m.to = rig_sge(&m.r->b, 0, LEN);
	EXPECT_REACHED(test, false, "emu_copy", message_expect(test, &m, 11));
}

static void rdma_takes_no_cursor(struct kunit *test)
{
	static const enum ib_wr_opcode ops[] = { IB_WR_RDMA_WRITE, IB_WR_RDMA_READ };
	struct message m = message_new(test);
	struct rig *r = m.r;
	struct ib_wc wc;
	bool read;
	int i;

	for (i = 0; i < 6; i++) {
		read = ops[i % 2] == IB_WR_RDMA_READ;
		rig_fill(read ? r->b.buf : r->a.buf, LEN, i);
		/* The peer has to be found once. */
		EXPECT_REACHED(test, !i, "emu_copy",
			       KUNIT_ASSERT_EQ(test, 0, message_rdma(&m, ops[i % 2], i)));
		RIG_EXPECT_WC(test, r->a.scq, &wc, i, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, read ? IB_WC_RDMA_READ : IB_WC_RDMA_WRITE, wc.opcode);
		KUNIT_EXPECT_TRUE(test, rig_filled(read ? r->a.buf : r->b.buf, LEN, i));
	}
}

static void inline_data_takes_no_cursor(struct kunit *test)
{
	struct message m = message_new(test);
	u8 data[RIG_INLINE];
	struct ib_sge sge = { .addr = (uintptr_t)data, .length = sizeof(data) };
	struct ib_send_wr wr;
	struct ib_wc wc;

	rig_fill(data, sizeof(data), 3);
	rig_send_wr(&wr, 1, &sge, 1);
	wr.send_flags |= IB_SEND_INLINE;
	KUNIT_ASSERT_EQ(test, 0, message_receive(&m, 2));
	EXPECT_REACHED(test, false, "emu_copy",
		       KUNIT_ASSERT_EQ(test, 0, ib_post_send(m.r->a.qp, &wr, NULL)));
	RIG_EXPECT_DELIVERED(test, m.r, &wc, 1, 2);
	KUNIT_EXPECT_TRUE(test, rig_filled(m.r->b.buf, sizeof(data), 3));
}

/*
 * Only the part of an element that the message uses decides whether it is contiguous: if an
 * element spans two pages, the message may lie in the first or in both.
 */
static void pages_that_do_not_follow_take_a_cursor(struct kunit *test)
{
	const struct side *side = test->param_value;
	struct message m = message_new(test);
	struct rig_end *e = side_end(m.r, side);
	struct ib_sge *sge = side_sge(&m, side);
	u8 *there = e->buf + 2 * PAGE_SIZE;
	struct ib_mr *mr = rig_swapped_pages(test, e, ACCESS);

	*sge = (struct ib_sge) { .lkey = mr->lkey };
	sge->length = LEN;
	sge->addr = mr->iova + PAGE_SIZE - LEN;
	if (side->into)
		sge->length = 2 * LEN;
	rig_fill(side->into ? m.r->a.buf : there - LEN, LEN, 1);
	EXPECT_REACHED(test, false, "emu_copy", message_expect(test, &m, 1));
	KUNIT_EXPECT_TRUE(test, rig_filled(side->into ? there - LEN : m.r->b.buf, LEN, 1));

	sge->addr = mr->iova + PAGE_SIZE - LEN / 2;
	rig_fill(m.r->a.buf, LEN, 2);
	if (!side->into) {
		memcpy(there - LEN / 2, m.r->a.buf, LEN / 2);
		memcpy(e->buf, m.r->a.buf + LEN / 2, LEN / 2);
		rig_fill(m.r->b.buf, LEN, 0);
	}
	EXPECT_REACHED(test, true, "emu_copy", message_expect(test, &m, 2));
	if (side->into) {
		KUNIT_EXPECT_MEMEQ(test, there - LEN / 2, m.r->a.buf, LEN / 2);
		KUNIT_EXPECT_MEMEQ(test, e->buf, m.r->a.buf + LEN / 2, LEN / 2);
	} else {
		KUNIT_EXPECT_MEMEQ(test, m.r->b.buf, there - LEN / 2, LEN / 2);
		KUNIT_EXPECT_MEMEQ(test, m.r->b.buf + LEN / 2, e->buf, LEN / 2);
	}
}

static void wrong_use_of_a_remembered_region(struct kunit *test)
{
	const struct side *side = test->param_value;
	struct ib_sge *sge;
	struct message m;
	int i;

	for (i = 0; i < 4; i++) {
		m = message_new(test);
		message_expect(test, &m, 1);
		sge = side_sge(&m, side);
		if (i == 0)
			sge->addr += side_end(m.r, side)->size - LEN + 1;
		else if (i == 1)
			sge->addr -= 1;
		else if (i == 2)
			sge->lkey ^= 1;
		else
			sge->lkey += 0x100;
		message_expect_refused(test, &m, side);
	}
}

static void remembered_region_is_of_another_pd(struct kunit *test)
{
	const struct side *side = test->param_value;
	struct message m = message_new(test), other = message_new(test);

	message_expect(test, &m, 1);
	message_expect(test, &other, 1);
	*side_sge(&m, side) = *side_sge(&other, side);
	message_expect_refused(test, &m, side);
}

/* Memory that is only read may be read-only; that of a receive or of an RDMA READ may not. */
static void region_that_cannot_be_written(struct kunit *test)
{
	const struct side *side = test->param_value;
	struct message m = message_new(test);
	struct rig_end *e = side_end(m.r, side);
	struct ib_wc wc;

	message_expect(test, &m, 1);
	rig_register(test, e, 0);
	*side_sge(&m, side) = region_sge(e, 0, LEN);
	if (side->into) {
		message_expect_refused(test, &m, side);
		return;
	}
	message_expect(test, &m, 2);
	message_expect(test, &m, 3);
	KUNIT_ASSERT_EQ(test, 0, message_rdma(&m, IB_WR_RDMA_READ, 4));
	RIG_EXPECT_WC(test, m.r->a.scq, &wc, 4, IB_WC_LOC_PROT_ERR);
}

/* --- regions that go --- */

/* The region becomes invalid just before a message enters it. */
static void region_of_a_receive_goes_in_the_middle(struct kunit *test)
{
	struct message m = message_new(test);
	struct rig_meanwhile meanwhile = { .r = m.r };
	struct ib_wc wc;

	/* From memory that is not registered, so that only the receive's MR is used. */
	m.from = rig_sge(&m.r->a, 0, LEN);
	message_expect(test, &m, 1);
	kverbs_delay_set("emu_target_enter", rig_invalidate, &meanwhile);
	message_expect_refused(test, &m, &sides[1]);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	KUNIT_EXPECT_EQ(test, 0, meanwhile.err);
	RIG_EXPECT_WC(test, m.r->b.scq, &wc, 7, IB_WC_SUCCESS);
}

static void region_goes_between_two_messages(struct kunit *test)
{
	const struct side *side = test->param_value;
	struct message m = message_new(test);
	struct rig_end *e = side_end(m.r, side);
	struct ib_mr *kept = e->mr, *mr;
	struct ib_wc wc;

	mr = KVT_PTR(test, ib_alloc_mr(e->pd, IB_MR_TYPE_MEM_REG, RIG_BUF / PAGE_SIZE + 1));
	KUNIT_ASSERT_EQ(test, 1, rig_map(e, mr, 0, e->size));
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(e, mr, 8, ACCESS));
	RIG_EXPECT_WC(test, e->scq, &wc, 8, IB_WC_SUCCESS);
	e->mr = mr;
	*side_sge(&m, side) = region_sge(e, 0, LEN);
	e->mr = kept;
	message_expect(test, &m, 1);
	message_expect(test, &m, 2);
	KUNIT_ASSERT_EQ(test, 0, ib_dereg_mr(mr));
	/* Its memory, too. */
	rcu_barrier();
	message_expect_refused(test, &m, side);
}

/* --- memory of a process --- */

/* What a process has registered. */
struct user_region {
	unsigned long addr;
	struct ib_mr *mr;
};

static struct user_region user_region_new(struct kunit *test, struct rig_end *e)
{
	/* The order in which the kernel gives them, so that they do not all follow each other. */
	static const u8 order[USER_PAGES] = { 2, 0, 3, 1 };
	size_t size = USER_PAGES * PAGE_SIZE;
	struct user_region u;
	int i;

	u.addr = kunit_vm_mmap(test, NULL, 0, size, PROT_READ | PROT_WRITE,
			       MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_NE(test, 0, u.addr);
	for (i = 0; i < USER_PAGES; i++)
		KUNIT_ASSERT_EQ(test, 0, put_user(0, (u8 __user *)u.addr + order[i] * PAGE_SIZE));
	u.mr = KVT_OWN(test, ib_reg_user_mr(e->pd, u.addr, size, u.addr, ACCESS), kvt_end_mr);
	return u;
}

static struct ib_sge user_sge(const struct user_region *u, size_t offset, u32 len)
{
	return (struct ib_sge) { .addr = u->addr + offset, .length = len, .lkey = u->mr->lkey };
}

/* A message of @len bytes at @offset of the region arrives, as what @seed makes. */
static void expect_user_message(struct kunit *test, struct message *m, const struct side *side,
				struct user_region *u, size_t offset, u32 len, u32 seed)
{
	void __user *there = (void __user *)(u->addr + offset);
	u8 *from = m->r->a.buf, *to = m->r->b.buf;

	m->from = region_sge(&m->r->a, 0, len);
	m->to = region_sge(&m->r->b, 0, len);
	*side_sge(m, side) = user_sge(u, offset, len);
	rig_fill(from, len, seed);
	memset(to, 0, len);
	if (!side->into)
		KUNIT_ASSERT_EQ(test, 0, copy_to_user(there, from, len));
	message_expect(test, m, seed);
	if (side->into)
		KUNIT_ASSERT_EQ(test, 0, copy_from_user(to, there, len));
	KUNIT_EXPECT_TRUE(test, rig_filled(to, len, seed));
}

/* Its pages are wherever the kernel has some: a message may lie in one, or in several. */
static void region_of_several_pages_of_a_process(struct kunit *test)
{
	const struct side *side = test->param_value;
	struct message m = message_new(test);
	struct user_region u = user_region_new(test, side_end(m.r, side));
	u32 page, seed = 1;

	for (page = 0; page < USER_PAGES; page++) {
		EXPECT_REACHED(test, false, "emu_copy",
			       expect_user_message(test, &m, side, &u, page * PAGE_SIZE + 8, LEN,
						   seed++));
		if (page)
			expect_user_message(test, &m, side, &u, page * PAGE_SIZE - LEN / 2, LEN,
					    seed++);
	}
	expect_user_message(test, &m, side, &u, 0, USER_PAGES * PAGE_SIZE, seed++);
	expect_user_message(test, &m, side, &u, 7, (USER_PAGES - 1) * PAGE_SIZE, seed++);
	/* Beyond the last byte. */
	m.from = region_sge(&m.r->a, 0, LEN);
	m.to = region_sge(&m.r->b, 0, LEN);
	*side_sge(&m, side) = user_sge(&u, USER_PAGES * PAGE_SIZE - LEN + 1, LEN);
	message_expect_refused(test, &m, side);
}

/* It was remembered before; then its memory moves, and a message waits for it. */
static void paused_region_is_waited_for(struct kunit *test)
{
	const struct side *side = test->param_value;
	struct message m = message_new(test);
	struct user_region u = user_region_new(test, side_end(m.r, side));
	const struct ib_device_ops *ops = &u.mr->device->ops;
	struct ib_wc wc;

	expect_user_message(test, &m, side, &u, 0, LEN, 1);
	ops->pause_mr(u.mr);
	KUNIT_ASSERT_EQ(test, 0, message_receive(&m, 3));
	KUNIT_ASSERT_EQ(test, 0, message_send(&m, 2));
	/* Longer than until the next try. */
	msleep(50);
	KUNIT_EXPECT_TRUE(test, rig_empty(m.r->a.scq));
	KUNIT_EXPECT_TRUE(test, rig_empty(m.r->b.rcq));
	KUNIT_ASSERT_EQ(test, 0, ops->resume_mr(u.mr, u.mr->umem));
	RIG_EXPECT_DELIVERED(test, m.r, &wc, 2, 3);
	EXPECT_REACHED(test, false, "emu_copy",
		       expect_user_message(test, &m, side, &u, LEN, LEN, 4));
}

/* --- other queues --- */

static int message_receive_shared(struct message *m, u64 id)
{
	struct ib_recv_wr wr = { .wr_id = id, .sg_list = &m->to, .num_sge = 1 };

	return ib_post_srq_recv(m->r->b.srq, &wr, NULL);
}

/* A receive's region is of its SRQ's domain, and not of the queue pair's: IBTA vol. 1, 10.2.9.3. */
static void receive_is_in_the_domain_of_its_srq(struct kunit *test)
{
	struct rig *r = rig_new(test, "emu0", "emu1"), *other = rig_up(test, "emu0", "emu1");
	struct message m = { .r = r };
	struct ib_wc wc;
	int i;

	r->rnr_retry = 0;
	r->b.srq = kvt_srq(test, other->b.pd, 4, 1);
	rig_start(test, r);
	rig_register(test, &r->a, ACCESS);
	rig_register(test, &r->b, ACCESS);
	rig_register(test, &other->b, ACCESS);
	m.from = region_sge(&r->a, 0, LEN);
	m.to = region_sge(&other->b, 0, LEN);
	for (i = 0; i < 3; i++) {
		rig_fill(r->a.buf, LEN, i);
		KUNIT_ASSERT_EQ(test, 0, message_receive_shared(&m, i));
		EXPECT_REACHED(test, false, "emu_copy",
			       KUNIT_ASSERT_EQ(test, 0, message_send(&m, i)));
		RIG_EXPECT_DELIVERED(test, r, &wc, i, i);
		KUNIT_EXPECT_TRUE(test, rig_filled(other->b.buf, LEN, i));
	}
	m.to = region_sge(&r->b, 0, LEN);
	KUNIT_ASSERT_EQ(test, 0, message_receive_shared(&m, 10));
	KUNIT_ASSERT_EQ(test, 0, message_send(&m, 11));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 11, IB_WC_REM_OP_ERR);
	RIG_EXPECT_WC(test, r->b.rcq, &wc, 10, IB_WC_LOC_PROT_ERR);
	rig_destroy_qp(test, &r->b);
}

/* The sender gets errors about its own memory only. */
static void unreliable_message_takes_no_cursor(struct kunit *test)
{
	const struct side *side = test->param_value;
	struct message m = message_of_type(test, IB_QPT_UC);
	struct rig *r = m.r;
	struct ib_wc wc;
	int i;

	for (i = 0; i < 3; i++) {
		rig_fill(r->a.buf, LEN, i);
		EXPECT_REACHED(test, false, "emu_copy", message_expect(test, &m, i));
		KUNIT_EXPECT_TRUE(test, rig_filled(r->b.buf, LEN, i));
	}
	/* One that has no room is left to the next message. */
	KUNIT_ASSERT_EQ(test, 0, message_receive(&m, 10));
	m.from.length = LEN + 1;
	KUNIT_ASSERT_EQ(test, 0, message_send(&m, 11));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 11, IB_WC_SUCCESS);
	m.from.length = LEN;
	KUNIT_ASSERT_EQ(test, 0, message_send(&m, 12));
	RIG_EXPECT_DELIVERED(test, r, &wc, 12, 10);

	side_sge(&m, side)->lkey ^= 1;
	KUNIT_ASSERT_EQ(test, 0, message_receive(&m, 20));
	KUNIT_ASSERT_EQ(test, 0, message_send(&m, 21));
	RIG_EXPECT_WC(test, r->a.scq, &wc, 21,
		      side->into ? IB_WC_SUCCESS : IB_WC_LOC_PROT_ERR);
	if (side->into)
		RIG_EXPECT_WC(test, r->b.rcq, &wc, 20, IB_WC_LOC_PROT_ERR);
}

static struct kunit_case emu_remembered_cases[] = {
	KUNIT_CASE(message_takes_no_cursor),
	KUNIT_CASE(rdma_takes_no_cursor),
	KUNIT_CASE(inline_data_takes_no_cursor),
	KUNIT_CASE_PARAM(pages_that_do_not_follow_take_a_cursor, side_gen_params),
	KUNIT_CASE_PARAM(wrong_use_of_a_remembered_region, side_gen_params),
	KUNIT_CASE_PARAM(remembered_region_is_of_another_pd, side_gen_params),
	KUNIT_CASE_PARAM(region_that_cannot_be_written, side_gen_params),
	KUNIT_CASE(region_of_a_receive_goes_in_the_middle),
	KUNIT_CASE_PARAM(region_goes_between_two_messages, side_gen_params),
	KUNIT_CASE_PARAM(region_of_several_pages_of_a_process, side_gen_params),
	KUNIT_CASE_PARAM(paused_region_is_waited_for, side_gen_params),
	KUNIT_CASE(receive_is_in_the_domain_of_its_srq),
	KUNIT_CASE_PARAM(unreliable_message_takes_no_cursor, side_gen_params),
	{}
};
KVT_SUITE(emu_remembered);
