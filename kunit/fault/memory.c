// SPDX-License-Identifier: GPL-2.0-only
/*
 * Registers memory of another device, as peer memory and as a dma-buf, while each of the
 * allocations in it fails in turn.
 */
#include <rdma/ib_umem.h>

#include "lib/dmabuf_rig.h"
#include "fault/sweep.h"
#include "lib/objects.h"
#include "peer/rig.h"

#define LENGTH		SZ_1M

/* A registration of memory. */
struct target {
	struct mock *m;			/* the device */
	struct ib_pd *pd;		/* a PD of @m */
	struct peer_mock *client;	/* peer-memory client, the driver of another device */
	struct dmabuf_rig *buf;		/* a dma-buf */
	struct ib_mem mem;		/* description of the memory that is registered */
	struct ib_mr *mr;		/* the MR that @mem was registered as */
};

static void target_up(struct kunit *test, struct target *t)
{
	t->m = mock_up_umem(test, "kvtm_a");
	t->pd = kvt_pd(test, t->m->ibdev);
	t->client = peer_mock_up(test, 0, "kvt_gpu", PEER_CORE);
	t->buf = dmabuf_rig_new(test, LENGTH);
	/* Small pages, so that scatter tables consist of more than one allocation. */
	t->client->page_size = PAGE_SIZE;
	t->buf->piece = PAGE_SIZE;
}

static int make_mr(void *arg)
{
	struct target *t = arg;
	struct peer_visit v;

	peer_visit_begin(&v);
	t->mr = ib_reg_mem(t->pd, &t->mem, 0, IB_ACCESS_LOCAL_WRITE);
	peer_visit_end(&v);
	return PTR_ERR_OR_ZERO(t->mr);
}

static void unmake_mr(void *arg)
{
	struct target *t = arg;
	struct peer_visit v;

	peer_visit_begin(&v);
	WARN_ON(ib_dereg_mr(t->mr));
	peer_visit_end(&v);
}

static void expect_nothing_left(struct kunit *test, struct target *t)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&t->pd->usecnt));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&t->m->wrong_mr));
	PEER_EXPECT_IDLE(test, t->client);
	DMABUF_EXPECT_IDLE(test, t->buf);
}

static void memory_of_a_peer(struct kunit *test)
{
	struct target t = {
		.mem = {
			.path = IB_MEM_PEER,
			.start = PEER_BASE(0),
			.length = LENGTH,
		},
	};

	target_up(test, &t);
	SWEEP(test, t.m, &t, "ib_reg_mem, peer", make_mr, unmake_mr);
	expect_nothing_left(test, &t);
}

static void memory_of_a_dmabuf(struct kunit *test)
{
	struct target t = {
		.mem = {
			.path = IB_MEM_DMABUF,
			.length = LENGTH,
			.has_fd = true,
		},
	};

	target_up(test, &t);
	t.mem.fd = t.buf->fd;
	SWEEP(test, t.m, &t, "ib_reg_mem, dma-buf", make_mr, unmake_mr);
	expect_nothing_left(test, &t);
}

/*
 * If a dma-buf that has moved cannot be mapped again, its MR is revoked: there is no caller
 * that could get an error. The sweep is told -ENOMEM then. But one failure is no reason.
 */
static int make_moved(void *arg)
{
	struct target *t = arg;
	int ret = make_mr(t);

	if (ret)
		return ret;
	dmabuf_rig_move(t->buf, t->buf->base + LENGTH);
	dmabuf_rig_settle(t->mr);
	if (!t->mr->umem->revoked)
		return mock_mr_state(t->mr) == MOCK_MR_LIVE ? 0 : -EIO;
	ret = mock_mr_state(t->mr) == MOCK_MR_REVOKED ? -ENOMEM : -EIO;
	unmake_mr(t);
	return ret;
}

static void memory_of_a_dmabuf_that_moves(struct kunit *test)
{
	static const struct victim victim = {
		"a dma-buf moves", make_moved, unmake_mr, UNDO_MAKES,
		.survives = true, .work = "dmabuf_remap_work",
	};
	struct target t = {
		.mem = {
			.path = IB_MEM_DMABUF,
			.length = LENGTH,
			.has_fd = true,
		},
	};

	if (!IS_ENABLED(CONFIG_DMABUF_MOVE_NOTIFY))
		kunit_skip(test, "without CONFIG_DMABUF_MOVE_NOTIFY");
	target_up(test, &t);
	work_fail_begin(test);
	t.mem.fd = t.buf->fd;
	sweep(test, t.m, &victim, &t);
	expect_nothing_left(test, &t);
}

static struct kunit_case fail_nth_mem_cases[] = {
	KUNIT_CASE(memory_of_a_peer),
	KUNIT_CASE(memory_of_a_dmabuf),
	KUNIT_CASE(memory_of_a_dmabuf_that_moves),
	{}
};
KVT_SUITE(fail_nth_mem, .init = kvt_need_injection);
