// SPDX-License-Identifier: GPL-2.0-only
/*
 * The DMA engine of QEMU's edu device, with system memory: which bytes are copied, in which
 * order requests end, and their status when the driver is unbound.
 */
#include <linux/mm.h>
#include <linux/prandom.h>
#include <kverbs/edu.h>

#include "fault/sweep.h"

/* Pieces of an area, and its bytes, which take the engine about three seconds to copy. */
#define EDU_TEST_PIECES	3
#define EDU_TEST_SIZE	(16 * PAGE_SIZE)

/* --- the rig ---------------------------------------------------------------------- */

struct edu_rig {
	struct pci_dev *pdev;
	struct edu_engine *edu;
};

static void edu_rig_end(void *arg)
{
	struct edu_rig *rig = arg;

	if (rig->edu)
		edu_engine_put(rig->edu);
	pci_dev_put(rig->pdev);
}

static struct edu_rig *edu_rig_up(struct kunit *test)
{
	struct edu_rig *rig = kvt_zalloc(test, sizeof(*rig));

	rig->pdev = pci_get_device(0x1234, 0x11e8, NULL);
	if (!rig->pdev)
		kunit_skip(test, "the machine has no edu device");
	kvt_defer(test, edu_rig_end, rig);
	rig->edu = KVT_PTR(test, edu_engine_get(rig->pdev));
	return rig;
}

static void edu_rig_unbind(struct edu_rig *rig)
{
	device_release_driver(&rig->pdev->dev);
}

/* Binds the driver again, as before the case. */
static void edu_rig_bind(struct kunit *test, struct edu_rig *rig)
{
	KUNIT_EXPECT_EQ(test, 1, device_attach(&rig->pdev->dev));
}

/* --- memory ----------------------------------------------------------------------- */

/* A scatter list of pieces of a buffer, in any order of addresses. */
struct area {
	struct sg_table sgt;			/* the table of the pieces */
	struct scatterlist sg[EDU_TEST_PIECES];	/* the entries of @sgt */
	u8 *mem;				/* the buffer, of EDU_TEST_SIZE bytes */
};

static struct area *area_new(struct kunit *test)
{
	struct area *area = kvt_zalloc(test, sizeof(*area));

	area->mem = kvt_zalloc(test, EDU_TEST_SIZE);
	sg_init_table(area->sg, EDU_TEST_PIECES);
	area->sgt = (struct sg_table) { .sgl = area->sg };
	return area;
}

/* Appends a piece of @len bytes that begins at byte @at of the buffer. */
static void area_add(struct area *area, size_t at, size_t len)
{
	sg_set_buf(&area->sg[area->sgt.orig_nents++], area->mem + at, len);
	sg_unmark_end(&area->sg[area->sgt.orig_nents - 1]);
}

static struct area *area_whole(struct kunit *test)
{
	struct area *area = area_new(test);

	area_add(area, 0, EDU_TEST_SIZE);
	sg_mark_end(&area->sg[0]);
	return area;
}

static void area_fill(struct area *area, u64 seed)
{
	struct rnd_state rnd;

	prandom_seed_state(&rnd, seed);
	prandom_bytes_state(&rnd, area->mem, EDU_TEST_SIZE);
}

/* --- requests --------------------------------------------------------------------- */

struct request {
	struct edu_copy copy;
	struct completion done;
	struct kvt_trace *trace;
	const char *name;
	struct request *next;
	struct edu_engine *edu;
	int again;
};

static void request_done(struct edu_copy *copy)
{
	struct request *req = container_of(copy, struct request, copy);

	kvt_trace_add(req->trace, "%s %d", req->name, copy->status);
	if (req->next)
		req->again = edu_submit(req->edu, &req->next->copy);
	complete(&req->done);
}

static struct request *request_new(struct kunit *test, struct edu_rig *rig,
				   struct kvt_trace *trace, const char *name, size_t len)
{
	struct request *req = kvt_zalloc(test, sizeof(*req));

	req->copy.from = &area_whole(test)->sgt;
	req->copy.to = &area_whole(test)->sgt;
	req->copy.len = len;
	req->copy.done = request_done;
	init_completion(&req->done);
	req->edu = rig->edu;
	req->trace = trace;
	req->name = name;
	return req;
}

/* --- cases ------------------------------------------------------------------------ */

static void copies_what_is_scattered(struct kunit *test)
{
	struct edu_rig *rig = edu_rig_up(test);
	struct area *from = area_new(test), *to = area_new(test);
	size_t len = 5000 + 1 + 1700;

	area_fill(from, 1);
	memset(to->mem, 0xee, EDU_TEST_SIZE);
	area_add(from, 6001, 5000);
	area_add(from, 17, 1);
	area_add(from, 999, 1700);
	sg_mark_end(&from->sg[2]);
	area_add(to, 4097, 7000);
	sg_mark_end(&to->sg[0]);
	KUNIT_EXPECT_EQ(test, 0, edu_copy(rig->edu, &from->sgt, &to->sgt, len));
	KUNIT_EXPECT_MEMEQ(test, to->mem + 4097, from->mem + 6001, 5000);
	KUNIT_EXPECT_EQ(test, to->mem[4097 + 5000], from->mem[17]);
	KUNIT_EXPECT_MEMEQ(test, to->mem + 4097 + 5001, from->mem + 999, 1700);
	KUNIT_EXPECT_NULL(test, memchr_inv(to->mem, 0xee, 4097));
	KUNIT_EXPECT_NULL(test, memchr_inv(to->mem + 4097 + len, 0xee, EDU_TEST_SIZE - 4097 - len));
}

static void refuses_what_the_lists_do_not_have(struct kunit *test)
{
	struct edu_rig *rig = edu_rig_up(test);
	struct area *from = area_whole(test), *to = area_new(test);

	area_add(to, 0, 100);
	sg_mark_end(&to->sg[0]);
	KUNIT_EXPECT_EQ(test, -EINVAL, edu_copy(rig->edu, &from->sgt, &to->sgt, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, edu_copy(rig->edu, &from->sgt, &to->sgt, 101));
	KUNIT_EXPECT_EQ(test, -EINVAL, edu_copy(rig->edu, &to->sgt, &from->sgt, 101));
	KUNIT_EXPECT_EQ(test, 0, edu_copy(rig->edu, &from->sgt, &to->sgt, 100));
}

static void ends_requests_in_order(struct kunit *test)
{
	struct edu_rig *rig = edu_rig_up(test);
	struct kvt_trace *trace = kvt_trace_new(test);
	struct request *a = request_new(test, rig, trace, "a", 3 * 4096);
	struct request *b = request_new(test, rig, trace, "b", 1);
	struct request *c = request_new(test, rig, trace, "c", 8);

	b->next = c;
	KUNIT_ASSERT_EQ(test, 0, edu_submit(rig->edu, &a->copy));
	KUNIT_ASSERT_EQ(test, 0, edu_submit(rig->edu, &b->copy));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&b->done));
	KUNIT_ASSERT_TRUE(test, kvt_wait(&c->done));
	KVT_EXPECT_TRACE(test, trace, "a 0 b 0 c 0");
	KUNIT_EXPECT_EQ(test, 0, b->again);
	KUNIT_EXPECT_EQ(test, 3 * 4096, a->copy.copied);
}

/* Pieces of a list that names the same memory again and again: minutes of copying. */
#define EDU_LONG_PIECES	64
#define EDU_LONG_SIZE	(EDU_LONG_PIECES * EDU_TEST_SIZE)

KUNIT_DEFINE_ACTION_WRAPPER(free_list, sg_free_table, struct sg_table *);

static struct sg_table *long_list(struct kunit *test)
{
	struct sg_table *sgt = kvt_zalloc(test, sizeof(*sgt));
	u8 *mem = kvt_zalloc(test, EDU_TEST_SIZE);
	struct scatterlist *sg;
	int i;

	KUNIT_ASSERT_EQ(test, 0, sg_alloc_table(sgt, EDU_LONG_PIECES, GFP_KERNEL));
	kvt_defer(test, free_list, sgt);
	for_each_sgtable_sg(sgt, sg, i)
		sg_set_buf(sg, mem, EDU_TEST_SIZE);
	return sgt;
}

/* The first one would take minutes, so that none ends before the driver goes. */
static void going_ends_all_requests(struct kunit *test)
{
	struct edu_rig *rig = edu_rig_up(test);
	struct kvt_trace *trace = kvt_trace_new(test);
	struct request *a = request_new(test, rig, trace, "a", EDU_LONG_SIZE);
	struct request *b = request_new(test, rig, trace, "b", 1);
	struct request *c = request_new(test, rig, trace, "c", 1);

	a->copy.from = long_list(test);
	a->copy.to = long_list(test);
	b->next = c;
	KUNIT_ASSERT_EQ(test, 0, edu_submit(rig->edu, &a->copy));
	/* The engine has the memory of the first from now on. */
	KUNIT_EXPECT_EQ(test, 0, edu_submit(rig->edu, &b->copy));
	edu_rig_unbind(rig);
	KUNIT_EXPECT_TRUE(test, try_wait_for_completion(&a->done));
	KUNIT_EXPECT_TRUE(test, try_wait_for_completion(&b->done));
	KVT_EXPECT_TRACE(test, trace, "a -19 b -19");
	KUNIT_EXPECT_LT(test, a->copy.copied, EDU_LONG_SIZE);
	KUNIT_EXPECT_EQ(test, -ENODEV, b->again);
	KUNIT_EXPECT_EQ(test, -ENODEV, edu_submit(rig->edu, &c->copy));
	KUNIT_EXPECT_NULL(test, edu_engine_get(rig->pdev));
	edu_rig_bind(test, rig);
}

static void others_have_no_engine(struct kunit *test)
{
	struct pci_dev *pdev = pci_get_domain_bus_and_slot(0, 0, 0);

	if (!pdev)
		kunit_skip(test, "no function 0000:00:00.0");
	KUNIT_EXPECT_NULL(test, edu_engine_get(pdev));
	pci_dev_put(pdev);
}

static void requests_need_no_memory(struct kunit *test)
{
	struct edu_rig *rig = edu_rig_up(test);
	struct area *from = area_whole(test), *to = area_whole(test);
	struct request *req = request_new(test, rig, kvt_trace_new(test), "a", 1);
	struct edu_engine *edu;

	kvt_need_injection(test);
	edu = QUIET(test, edu_engine_get(rig->pdev));
	KUNIT_ASSERT_PTR_EQ(test, rig->edu, edu);
	KUNIT_EXPECT_EQ(test, 0, QUIET(test, edu_copy(edu, &from->sgt, &to->sgt, 8)));
	KUNIT_EXPECT_EQ(test, 0, QUIET(test, edu_submit(edu, &req->copy)));
	KUNIT_EXPECT_TRUE(test, kvt_wait(&req->done));
	QUIET_VOID(test, edu_engine_put(edu));
}

static struct kunit_case edu_cases[] = {
	KUNIT_CASE(copies_what_is_scattered),
	KUNIT_CASE(refuses_what_the_lists_do_not_have),
	KUNIT_CASE(ends_requests_in_order),
	KUNIT_CASE(going_ends_all_requests),
	KUNIT_CASE(others_have_no_engine),
	KUNIT_CASE_PARAM(requests_need_no_memory, quiet_gen_params),
	{ }
};

KVT_SUITE(edu);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit: the DMA engine of QEMU's edu device");
