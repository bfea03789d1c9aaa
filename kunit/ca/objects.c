// SPDX-License-Identifier: GPL-2.0-only
/*
 * Channel-adapter requests for PDs and MRs: creation, QUERY_MR, LIST and freeing in order.
 * A failed request leaves nothing behind, and of two threads that free the same object
 * exactly one succeeds.
 */
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>

#include "ca/rig.h"
#include "lib/mock.h"
#include "lib/objects.h"

#define PAGES		4
#define RACES		4000

/* An open CA with memory to register. */
struct under {
	struct mock *m;		/* the mock device, NULL if @ibdev is a software HCA */
	struct ib_device *ibdev;
	u64 h;			/* handle of the open CA */
	unsigned long addr;	/* address of PAGES pages mapped by the case's thread */
};

static void under_up(struct kunit *test, struct under *u, bool emu)
{
	u->addr = kvt_map(test, PAGES * PAGE_SIZE);
	u->m = NULL;
	if (emu) {
		u->ibdev = kvt_device(test, "emu0");
	} else {
		u->m = mock_up(test, "kvtm_a");
		u->ibdev = u->m->ibdev;
	}
	u->h = ca_rig_open(test, u->ibdev);
}

static u64 pd_new(struct kunit *test, struct under *u)
{
	return ca_rig_pd(test, u->ibdev, u->h);
}

static u64 mr_new(struct kunit *test, struct under *u, u64 pd, u64 length)
{
	struct kverbs_ca_reg_mr reg = ca_rig_reg_of(pd, u->addr, length);

	return ca_rig_reg(test, u->ibdev, u->h, &reg);
}

static ssize_t reg_with(struct under *u, const void *in, u32 in_len, void *out, u32 out_len)
{
	return CA_CALL(u->ibdev, REG_MR, .handle = u->h, .in = in,
		       .in_len = in_len, .out = out, .out_len = out_len);
}

static ssize_t query(struct under *u, u64 object, struct kverbs_ca_mr_attr *attr)
{
	return CA_CALL(u->ibdev, QUERY_MR, .handle = u->h, .object = object,
		       .out = attr, .out_len = sizeof(*attr));
}

static void expect_closes(struct kunit *test, struct under *u)
{
	KUNIT_EXPECT_EQ(test, 0, ca_rig_list(test, u->ibdev, u->h)->count);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(u->ibdev, u->h));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	if (u->m)
		MOCK_EXPECT_IDLE(test, u->m);
}

static const bool emus[] = { false, true };

static void emu_name(const bool *emu, char *desc)
{
	strscpy(desc, *emu ? "software HCA" : "mock", KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(emu, emus, emu_name);

static void expect_region(struct kunit *test,
			  const struct kverbs_ca_mr_attr *attr,
			  const struct kverbs_ca_reg_mr *reg, u64 object)
{
	KUNIT_EXPECT_EQ(test, KVERBS_CA_VERSION, attr->version);
	KUNIT_EXPECT_EQ(test, sizeof(*attr), attr->size);
	KUNIT_EXPECT_EQ(test, object, attr->object);
	KUNIT_EXPECT_EQ(test, reg->pd, attr->pd);
	KUNIT_EXPECT_EQ(test, reg->start, attr->start);
	KUNIT_EXPECT_EQ(test, reg->length, attr->length);
	KUNIT_EXPECT_EQ(test, reg->iova, attr->iova);
	KUNIT_EXPECT_EQ(test, reg->access, attr->access);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_PATH_HOST, attr->path);
	KUNIT_EXPECT_EQ(test, KVERBS_CA_MR_PINNED, attr->flags);
	KUNIT_EXPECT_EQ(test, 0, attr->host_error);
	KUNIT_EXPECT_EQ(test, 0, attr->peer_error);
	KUNIT_EXPECT_EQ(test, 0, attr->dmabuf_error);
	KUNIT_EXPECT_NULL(test, memchr_inv(attr->peer, 0, sizeof(attr->peer)));
	KUNIT_EXPECT_NE(test, 0, attr->lkey);
	KUNIT_EXPECT_NE(test, 0, attr->rkey);
}

static void region_is_what_was_registered(struct kunit *test)
{
	struct kverbs_ca_mr_attr made = {}, asked = {};
	struct kverbs_ca_reg_mr reg;
	struct ib_ca_request req;
	struct under u;

	under_up(test, &u, *(const bool *)test->param_value);
	reg = ca_rig_reg_of(pd_new(test, &u), u.addr + 100, 2 * PAGE_SIZE);
	reg.iova = 0x7000000 + offset_in_page(reg.start);
	reg.access |= KVERBS_CA_ACCESS_REMOTE_READ;
	req = CA_REQ(REG_MR, .handle = u.h, .in = &reg, .in_len = sizeof(reg),
		     .out = &made, .out_len = sizeof(made));
	KUNIT_ASSERT_EQ(test, (ssize_t)sizeof(made), ib_ca_call(u.ibdev, &req));
	expect_region(test, &made, &reg, req.object);
	KUNIT_EXPECT_EQ(test, 3, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(asked), query(&u, req.object, &asked));
	KUNIT_EXPECT_MEMEQ(test, &made, &asked, sizeof(made));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dereg(u.ibdev, u.h, req.object));
	KUNIT_EXPECT_EQ(test, -ENOENT, query(&u, req.object, &asked));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, reg.pd));
	expect_closes(test, &u);
}

static void expect_entry(struct kunit *test, struct under *u, u32 i,
			 const struct kverbs_ca_object *want)
{
	const struct kverbs_ca_list *list = ca_rig_list(test, u->ibdev, u->h);

	KUNIT_ASSERT_LT(test, i, list->count);
	KUNIT_EXPECT_MEMEQ(test, ca_rig_entry(list, i), want, sizeof(*want));
}

static void list_tells_who_uses_what(struct kunit *test)
{
	struct kverbs_ca_object want[4] = {};
	struct under u;
	int i;

	under_up(test, &u, *(const bool *)test->param_value);
	for (i = 0; i < 2; i++) {
		want[i].object = pd_new(test, &u);
		want[i].type = KVERBS_CA_OBJECT_PD;
		want[i].users = 2 * i;
	}
	for (i = 2; i < 4; i++) {
		want[i].length = 1000 * i;
		want[i].object = mr_new(test, &u, want[1].object, want[i].length);
		want[i].parent = want[1].object;
		want[i].type = KVERBS_CA_OBJECT_MR;
	}
	for (i = 0; i < 4; i++)
		expect_entry(test, &u, i, &want[i]);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, want[0].object));
	KUNIT_EXPECT_EQ(test, 3, ca_rig_list(test, u.ibdev, u.h)->count);
	ca_rig_dereg(u.ibdev, u.h, want[2].object);
	ca_rig_dereg(u.ibdev, u.h, want[3].object);
	ca_rig_dealloc(u.ibdev, u.h, want[1].object);
	expect_closes(test, &u);
}

static void what_is_in_use_is_busy(struct kunit *test)
{
	struct under u;
	u64 pd, mr;

	under_up(test, &u, *(const bool *)test->param_value);
	pd = pd_new(test, &u);
	mr = mr_new(test, &u, pd, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_close(u.ibdev, u.h));
	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_dealloc(u.ibdev, u.h, pd));
	KUNIT_EXPECT_EQ(test, 2, ca_rig_list(test, u.ibdev, u.h)->count);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dereg(u.ibdev, u.h, mr));
	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_close(u.ibdev, u.h));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, pd));
	expect_closes(test, &u);
}

static void number_is_good_for_its_object_only(struct kunit *test)
{
	struct kverbs_ca_mr_attr attr;
	struct under u;
	u64 pd, mr, other;

	under_up(test, &u, false);
	pd = pd_new(test, &u);
	mr = mr_new(test, &u, pd, PAGE_SIZE);
	other = ca_rig_open(test, u.ibdev);
	KUNIT_EXPECT_EQ(test, -ENOENT, ca_rig_dealloc(u.ibdev, u.h, mr));
	KUNIT_EXPECT_EQ(test, -ENOENT, ca_rig_dereg(u.ibdev, u.h, pd));
	KUNIT_EXPECT_EQ(test, -ENOENT, query(&u, pd, &attr));
	KUNIT_EXPECT_EQ(test, -ENOENT, query(&u, 0, &attr));
	KUNIT_EXPECT_EQ(test, -ENOENT, query(&u, lower_32_bits(mr), &attr));
	KUNIT_EXPECT_EQ(test, -ENOENT, query(&u, mr + BIT_ULL(32), &attr));
	KUNIT_EXPECT_EQ(test, -ENOENT, ca_rig_dereg(u.ibdev, other, mr));
	KUNIT_EXPECT_EQ(test, -ENOENT, ca_rig_dealloc(u.ibdev, other, pd));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(u.ibdev, other));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dereg(u.ibdev, u.h, mr));
	KUNIT_EXPECT_EQ(test, -ENOENT, ca_rig_dereg(u.ibdev, u.h, mr));
	KUNIT_EXPECT_NE(test, mr, mr_new(test, &u, pd, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, -ENOENT, ca_rig_dereg(u.ibdev, u.h, mr));
	ca_rig_dereg(u.ibdev, u.h, ca_rig_entry(ca_rig_list(test, u.ibdev, u.h), 1)->object);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, pd));
	expect_closes(test, &u);
}

struct bad_reg {
	const char *name;
	u32 at;
	u64 value;
	u32 bytes;
	int ret;
};

#define WITH(member, wrong, want)					\
	{ #member "=" #wrong, offsetof(struct kverbs_ca_reg_mr, member), wrong, \
	  sizeof_field(struct kverbs_ca_reg_mr, member), want }

static const struct bad_reg bad_regs[] = {
	WITH(version, 0, -EINVAL),
	WITH(version, 2, -EINVAL),
	WITH(size, 0, -EINVAL),
	WITH(size, KVERBS_CA_REG_MR_SIZE_MIN, -EINVAL),
	WITH(size, sizeof(struct kverbs_ca_reg_mr) + 1, -EINVAL),
	WITH(pd, 0, -ENOENT),
	WITH(pd, U64_MAX, -ENOENT),
	WITH(start, 0, -EFAULT),
	WITH(start, U64_MAX, -EINVAL),
	WITH(length, 0, -EINVAL),
	WITH(length, U64_MAX, -EINVAL),
	WITH(length, BIT_ULL(40), -EFAULT),
	WITH(iova, U64_MAX, -EINVAL),
	WITH(access, BIT(31), -EINVAL),
	WITH(access, KVERBS_CA_ACCESS_REMOTE_WRITE, -EINVAL),
	WITH(path, KVERBS_CA_PATH_PEER, -EOPNOTSUPP),
	WITH(path, KVERBS_CA_PATH_DMABUF, -EINVAL),
	WITH(path, KVERBS_CA_PATH_P2P + 1, -EINVAL),
	WITH(path, U32_MAX, -EINVAL),
	WITH(flags, BIT(1), -EINVAL),
	WITH(flags, BIT(31), -EINVAL),
	WITH(fd, 1, -EINVAL),
	WITH(offset, PAGE_SIZE, -EINVAL),
};

KUNIT_ARRAY_PARAM_DESC(bad_reg, bad_regs, name);

static void bad_registration_is_refused(struct kunit *test)
{
	const struct bad_reg *bad = test->param_value;
	struct kverbs_ca_reg_mr reg;
	struct under u;
	u64 pd;

	under_up(test, &u, false);
	pd = pd_new(test, &u);
	reg = ca_rig_reg_of(pd, u.addr, PAGE_SIZE);
	memcpy((void *)&reg + bad->at, &bad->value, bad->bytes);
	KUNIT_EXPECT_EQ(test, bad->ret, reg_with(&u, &reg, sizeof(reg), NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(u.m, MOCK_reg_user_mr));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, pd));
	expect_closes(test, &u);
}

/* Callers that know an older or newer, that is smaller or larger, struct kverbs_ca_reg_mr. */
static void structure_of_another_size_is_looked_at(struct kunit *test)
{
	const u32 known = sizeof(struct kverbs_ca_reg_mr);
	struct kverbs_ca_reg_mr *reg = kvt_zalloc(test, PAGE_SIZE + 8);
	struct under u;
	u64 pd;
	u32 len;

	under_up(test, &u, false);
	pd = pd_new(test, &u);
	*reg = ca_rig_reg_of(pd, u.addr, PAGE_SIZE);
	for (len = 0; len < KVERBS_CA_REG_MR_SIZE_MIN; len++) {
		reg->size = len;
		KUNIT_EXPECT_EQ(test, -EINVAL, reg_with(&u, reg, len, NULL, 0));
	}
	KUNIT_EXPECT_EQ(test, -EINVAL, reg_with(&u, NULL, known, NULL, 0));
	reg->size = known + 8;
	((u8 *)reg)[known + 7] = 1;
	KUNIT_EXPECT_EQ(test, -E2BIG, reg_with(&u, reg, known + 8, NULL, 0));
	reg->size = PAGE_SIZE + 8;
	KUNIT_EXPECT_EQ(test, -E2BIG, reg_with(&u, reg, PAGE_SIZE + 8, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(u.m, MOCK_reg_user_mr));
	((u8 *)reg)[known + 7] = 0;
	reg->size = known + 8;
	KUNIT_EXPECT_EQ(test, 0, reg_with(&u, reg, known + 8, NULL, 0));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(u.m, MOCK_reg_user_mr));
	for (len = KVERBS_CA_REG_MR_SIZE_MIN; len < known; len++) {
		reg->size = len;
		KUNIT_EXPECT_EQ(test, 0, reg_with(&u, reg, len, NULL, 0));
	}
}

static void answer_to_registration_may_be_cut_off(struct kunit *test)
{
	struct kverbs_ca_mr_attr attr;
	struct kverbs_ca_reg_mr reg;
	struct under u;
	u64 pd;
	u32 len;

	under_up(test, &u, false);
	pd = pd_new(test, &u);
	reg = ca_rig_reg_of(pd, u.addr, PAGE_SIZE);
	for (len = 8; len <= sizeof(attr) + 8; len++) {
		memset(&attr, 0xa5, sizeof(attr));
		KUNIT_EXPECT_EQ(test, (ssize_t)min_t(u32, len, sizeof(attr)),
				reg_with(&u, &reg, sizeof(reg), &attr, len));
		KUNIT_EXPECT_EQ(test, sizeof(attr), attr.size);
		KUNIT_EXPECT_EQ(test, len < sizeof(attr), ((u8 *)&attr)[sizeof(attr) - 1] == 0xa5);
	}
	KUNIT_EXPECT_EQ(test, len - 8, atomic_read(&u.m->live[MOCK_MR]));
}

/* A caller that is not told the object's number could never free the region. */
static void registration_without_an_answer_is_undone(struct kunit *test)
{
	struct kverbs_ca_reg_mr reg;
	struct under u;
	u64 pd, word;
	u32 len;

	under_up(test, &u, false);
	pd = pd_new(test, &u);
	reg = ca_rig_reg_of(pd, u.addr, PAGE_SIZE);
	for (len = 0; len < 8; len++)
		KUNIT_EXPECT_EQ(test, -ENOSPC, reg_with(&u, &reg, sizeof(reg), &word, len));
	KUNIT_EXPECT_EQ(test, -EINVAL, reg_with(&u, &reg, sizeof(reg), NULL, 64));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&u.m->live[MOCK_MR]));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, pd));
	expect_closes(test, &u);
}

static void any_length_gets_what_fits(struct kunit *test)
{
	struct under u;
	u64 pd, mr;

	under_up(test, &u, false);
	ca_rig_any_length(test, u.ibdev, &CA_REQ(LIST, .handle = u.h));
	pd = pd_new(test, &u);
	mr = mr_new(test, &u, pd, PAGE_SIZE);
	ca_rig_any_length(test, u.ibdev, &CA_REQ(LIST, .handle = u.h));
	ca_rig_any_length(test, u.ibdev, &CA_REQ(QUERY_MR, .handle = u.h, .object = mr));
	KUNIT_EXPECT_EQ(test, -EINVAL, CA_CALL(u.ibdev, LIST, .handle = u.h));
	KUNIT_EXPECT_EQ(test, -EINVAL, CA_CALL(u.ibdev, QUERY_MR, .handle = u.h, .object = mr));
}

static void failing_driver_leaves_nothing(struct kunit *test)
{
	struct kverbs_ca_reg_mr reg;
	struct under u;
	u64 pd;

	under_up(test, &u, false);
	mock_fail_nth(u.m, MOCK_alloc_pd, 1, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, CA_CALL(u.ibdev, ALLOC_PD, .handle = u.h));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_list(test, u.ibdev, u.h)->count);
	pd = pd_new(test, &u);
	reg = ca_rig_reg_of(pd, u.addr, PAGE_SIZE);
	mock_fail_nth(u.m, MOCK_reg_user_mr, 1, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, reg_with(&u, &reg, sizeof(reg), NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 1, ca_rig_list(test, u.ibdev, u.h)->count);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, pd));
	expect_closes(test, &u);
}

static void region_that_cannot_be_freed_is_still_there(struct kunit *test)
{
	struct kverbs_ca_mr_attr attr;
	struct under u;
	u64 pd, mr;

	under_up(test, &u, false);
	pd = pd_new(test, &u);
	mr = mr_new(test, &u, pd, PAGE_SIZE);
	mock_fail_nth(u.m, MOCK_dereg_mr, 1, -EBUSY);
	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_dereg(u.ibdev, u.h, mr));
	KUNIT_EXPECT_EQ(test, (ssize_t)sizeof(attr), query(&u, mr, &attr));
	KUNIT_EXPECT_EQ(test, 2, ca_rig_list(test, u.ibdev, u.h)->count);
	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_dealloc(u.ibdev, u.h, pd));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dereg(u.ibdev, u.h, mr));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, pd));
	expect_closes(test, &u);
}

static void pd_is_busy_while_a_region_is_made(struct kunit *test)
{
	struct kverbs_ca_reg_mr reg;
	struct ca_async *reg_mr;
	struct under u;
	u64 pd;

	under_up(test, &u, false);
	pd = pd_new(test, &u);
	reg = ca_rig_reg_of(pd, u.addr, PAGE_SIZE);
	mock_hold(u.m, MOCK_reg_user_mr);
	reg_mr = ca_async_new(test, &CA_REQ(REG_MR, .handle = u.h, .in = &reg,
					    .in_len = sizeof(reg)));
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(u.ibdev, &reg_mr->req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&u.m->hold.entered));
	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_dealloc(u.ibdev, u.h, pd));
	KUNIT_EXPECT_EQ(test, 1, ca_rig_list(test, u.ibdev, u.h)->count);
	mock_hold_end(u.m);
	KUNIT_ASSERT_EQ(test, 0, ca_async_wait(reg_mr));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dereg(u.ibdev, u.h, reg_mr->req.object));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, pd));
	expect_closes(test, &u);
}

static void region_that_is_being_freed_is_not_there(struct kunit *test)
{
	struct kverbs_ca_mr_attr attr;
	struct ca_async *dereg;
	struct under u;
	u64 pd, mr;

	under_up(test, &u, false);
	pd = pd_new(test, &u);
	mr = mr_new(test, &u, pd, PAGE_SIZE);
	mock_hold(u.m, MOCK_dereg_mr);
	dereg = ca_async_new(test, &CA_REQ(DEREG_MR, .handle = u.h, .object = mr));
	KUNIT_ASSERT_EQ(test, -EINPROGRESS, ib_ca_submit(u.ibdev, &dereg->req));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&u.m->hold.entered));
	KUNIT_EXPECT_EQ(test, -ENOENT, ca_rig_dereg(u.ibdev, u.h, mr));
	KUNIT_EXPECT_EQ(test, -ENOENT, query(&u, mr, &attr));
	KUNIT_EXPECT_EQ(test, 1, ca_rig_list(test, u.ibdev, u.h)->count);
	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_dealloc(u.ibdev, u.h, pd));
	KUNIT_EXPECT_EQ(test, -EBUSY, ca_rig_close(u.ibdev, u.h));
	mock_hold_end(u.m);
	KUNIT_EXPECT_EQ(test, 0, ca_async_wait(dereg));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(u.m, MOCK_dereg_mr));
	KUNIT_EXPECT_EQ(test, 0, ca_rig_dealloc(u.ibdev, u.h, pd));
	expect_closes(test, &u);
}

struct rivals {
	struct under u;
	u64 object;
	u32 op;
	atomic_t ready;
	atomic_t won;
	atomic_t wrong;
};

static int rival_fn(void *arg)
{
	struct rivals *r = arg;
	struct ib_ca_request req = {
		.op = r->op,
		.version = KVERBS_CA_VERSION,
		.handle = r->u.h,
		.object = r->object,
	};
	ssize_t ret;

	atomic_inc(&r->ready);
	while (atomic_read(&r->ready) < 2)
		cond_resched();
	ret = ib_ca_call(r->u.ibdev, &req);
	if (!ret)
		atomic_inc(&r->won);
	else if (ret != -ENOENT)
		atomic_inc(&r->wrong);
	return 0;
}

static void two_free(struct kunit *test, struct rivals *r, u32 op, u64 object)
{
	struct kvt_thread *t[2];
	int i;

	r->op = op;
	r->object = object;
	atomic_set(&r->ready, 0);
	atomic_set(&r->won, 0);
	for (i = 0; i < 2; i++)
		t[i] = kvt_thread_start(test, i ? kvt_other_cpu() : 0, rival_fn, r);
	for (i = 0; i < 2; i++)
		KUNIT_ASSERT_TRUE(test, kvt_thread_join(t[i]));
	KUNIT_ASSERT_EQ(test, 1, atomic_read(&r->won));
	KUNIT_ASSERT_EQ(test, 0, atomic_read(&r->wrong));
}

static void one_of_two_frees_it(struct kunit *test)
{
	u64 i, count = kvt_count(RACES) / 8 + 1, pd;
	struct rivals r = {};

	under_up(test, &r.u, false);
	kvt_print_length(test, "regions, and PDs, that two threads free", count);
	for (i = 0; i < count; i++) {
		pd = pd_new(test, &r.u);
		two_free(test, &r, KVERBS_CA_DEREG_MR, mr_new(test, &r.u, pd, PAGE_SIZE));
		two_free(test, &r, KVERBS_CA_DEALLOC_PD, pd);
	}
	two_free(test, &r, KVERBS_CA_CLOSE, 0);
	KUNIT_EXPECT_EQ(test, count, mock_calls(r.u.m, MOCK_dereg_mr));
	KUNIT_EXPECT_EQ(test, count, mock_calls(r.u.m, MOCK_dealloc_pd));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(r.u.m, MOCK_close_ca));
	MOCK_EXPECT_IDLE(test, r.u.m);
}

#define MAX_OBJECTS	"/sys/module/kverbs_ca/parameters/ca_max_objects"
#define MAX_HANDLES	"/sys/module/kverbs_ca/parameters/ca_max_handles"

/* Drop all capabilities, as when a module runs on behalf of an unprivileged process. */
static const struct cred *become_weak(struct kunit *test)
{
	struct cred *weak = KVT_PTR(test, prepare_creds());
	const struct cred *strong;

	cap_clear(weak->cap_effective);
	strong = override_creds(weak);
	put_cred(weak);
	return strong;
}

static void limits_are_for_processes(struct kunit *test)
{
	const struct cred *strong;
	struct ib_ca_request req = CA_REQ(OPEN);
	struct under u;
	ssize_t ret[3];
	int i;

	under_up(test, &u, false);
	kvt_restore_file(test, MAX_OBJECTS, "16384");
	kvt_restore_file(test, MAX_HANDLES, "64");
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(MAX_OBJECTS, "1"));
	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(MAX_HANDLES, "1"));
	strong = become_weak(test);
	for (i = 0; i < 2; i++)
		ret[i] = CA_CALL(u.ibdev, ALLOC_PD, .handle = u.h);
	ret[2] = ib_ca_call(u.ibdev, &req);
	revert_creds(strong);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, 0, ret[i]);
	KUNIT_EXPECT_EQ(test, 0, ca_rig_close(u.ibdev, req.handle));
	KUNIT_EXPECT_EQ(test, 2, ca_rig_list(test, u.ibdev, u.h)->count);
}

static struct kunit_case ca_objects_cases[] = {
	KUNIT_CASE_PARAM(region_is_what_was_registered, emu_gen_params),
	KUNIT_CASE_PARAM(list_tells_who_uses_what, emu_gen_params),
	KUNIT_CASE_PARAM(what_is_in_use_is_busy, emu_gen_params),
	KUNIT_CASE(number_is_good_for_its_object_only),
	KUNIT_CASE_PARAM(bad_registration_is_refused, bad_reg_gen_params),
	KUNIT_CASE(structure_of_another_size_is_looked_at),
	KUNIT_CASE(answer_to_registration_may_be_cut_off),
	KUNIT_CASE(registration_without_an_answer_is_undone),
	KUNIT_CASE(any_length_gets_what_fits),
	KUNIT_CASE(failing_driver_leaves_nothing),
	KUNIT_CASE(region_that_cannot_be_freed_is_still_there),
	KUNIT_CASE(pd_is_busy_while_a_region_is_made),
	KUNIT_CASE(region_that_is_being_freed_is_not_there),
	KUNIT_CASE(one_of_two_frees_it),
	KUNIT_CASE(limits_are_for_processes),
	{}
};
KVT_SUITE(ca_objects);
