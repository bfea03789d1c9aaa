// SPDX-License-Identifier: GPL-2.0-only
/*
 * ib_reg_mem(): in which order memory is looked up in the process and with peer memory
 * clients, which errors are reported, and how MRs are revoked when a peer invalidates their
 * memory. The device is a mock that takes memory by DMA address; the memory is user memory
 * or belongs to a mock peer memory client.
 */
#include <linux/mm.h>
#include <rdma/ib_umem.h>

#include "lib/dmabuf_rig.h"
#include "lib/mock.h"
#include "lib/objects.h"
#include "peer/rig.h"

#define ACCESS		IB_ACCESS_LOCAL_WRITE

/* Range of peer memory, which neither begins nor ends at a page boundary. */
#define PEER_START(nr)	(PEER_BASE(nr) + 3 * SZ_64K + 100)
#define PEER_LENGTH	(2 * SZ_64K)

/* A mock device, a peer memory client, and user memory. */
struct rig {
	struct mock *m;			/* the device */
	struct ib_pd *pd;		/* a PD of the device */
	struct peer_mock *client;	/* the peer memory client */
	unsigned long host;		/* address of two pages of user memory */
};

static void rig_up_with(struct kunit *test, struct rig *r, struct mock *m, enum peer_kind kind)
{
	r->m = m;
	mock_start(test, m, "kvtm_a");
	mock_log_reset(m);
	r->pd = kvt_pd(test, m->ibdev);
	r->client = peer_mock_up(test, 0, "kvt_gpu", kind);
	r->host = kvt_map(test, 2 * PAGE_SIZE);
}

static void rig_up(struct kunit *test, struct rig *r)
{
	struct mock *m = mock_new(test);

	mock_by_umem(m);
	rig_up_with(test, r, m, PEER_CORE);
}

/* The visit tells the mock client that this thread may call the client's functions. */
static struct ib_mr *reg(struct rig *r, struct ib_mem *mem)
{
	struct peer_visit v;
	struct ib_mr *mr;

	peer_visit_begin(&v);
	mr = ib_reg_mem(r->pd, mem, mem->start, ACCESS);
	peer_visit_end(&v);
	return mr;
}

static int dereg(struct ib_mr *mr)
{
	struct peer_visit v;
	int ret;

	peer_visit_begin(&v);
	ret = ib_dereg_mr(mr);
	peer_visit_end(&v);
	return ret;
}

/*
 * The error of a registration, or 0. The MR is deregistered at once, as a client cannot
 * unregister while MRs of its memory exist.
 */
static int reg_error(struct rig *r, struct ib_mem *mem)
{
	struct ib_mr *mr = reg(r, mem);

	return IS_ERR(mr) ? PTR_ERR(mr) : dereg(mr);
}

static struct ib_mem host_mem(const struct rig *r, enum ib_mem_path path)
{
	return (struct ib_mem) {
		.path = path,
		.start = r->host + 100,
		.length = PAGE_SIZE,
	};
}

static struct ib_mem peer_mem(enum ib_mem_path path)
{
	return (struct ib_mem) {
		.path = path,
		.start = PEER_START(0),
		.length = PEER_LENGTH,
	};
}

static void expect_nothing_left(struct kunit *test, struct rig *r)
{
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->pd->usecnt));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->m->live[MOCK_MR]));
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&r->m->wrong_mr));
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	PEER_EXPECT_IDLE(test, r->client);
}

static void expect_errors(struct kunit *test, const struct ib_mem *mem, int host,
			  int peer, int dmabuf)
{
	KUNIT_EXPECT_EQ(test, host, mem->error[IB_MEM_HOST]);
	KUNIT_EXPECT_EQ(test, peer, mem->error[IB_MEM_PEER]);
	KUNIT_EXPECT_EQ(test, dmabuf, mem->error[IB_MEM_DMABUF]);
	KUNIT_EXPECT_EQ(test, 0, mem->error[IB_MEM_ANY]);
}

/* Which path finds the memory */

static void memory_of_the_system_comes_first(struct kunit *test)
{
	struct ib_mem mem;
	struct ib_mr *mr;
	struct rig r;

	rig_up(test, &r);
	mem = host_mem(&r, IB_MEM_ANY);
	memset(mem.error, 0xff, sizeof(mem.error));
	mr = KVT_PTR(test, reg(&r, &mem));
	KUNIT_EXPECT_EQ(test, IB_MEM_HOST, mem.found);
	expect_errors(test, &mem, 0, 0, 0);
	KUNIT_EXPECT_EQ(test, mem.start, mr->iova);
	KUNIT_EXPECT_EQ(test, PAGE_SIZE, mr->length);
	KUNIT_EXPECT_EQ(test, IB_MR_TYPE_USER, mr->type);
	KUNIT_ASSERT_NOT_NULL(test, mr->umem);
	KUNIT_EXPECT_FALSE(test, mr->umem->is_peer || mr->umem->is_dmabuf);
	KUNIT_EXPECT_EQ(test, 2, kvt_pinned_pages());
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.pd->usecnt));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_reg_umem_mr));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_open_mr));
	KUNIT_EXPECT_EQ(test, MOCK_MR_LIVE, mock_mr_state(mr));
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(r.client, PEER_ACQUIRE));
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_revoke_mr));
	expect_nothing_left(test, &r);
}

static void peers_are_asked_for_what_the_system_has_not(struct kunit *test)
{
	struct ib_mem mem = peer_mem(IB_MEM_ANY);
	struct kvt_trace *tr = kvt_trace_new(test);
	struct ib_mr *mr;
	struct rig r;

	rig_up(test, &r);
	r.client->trace = tr;
	mr = KVT_PTR(test, reg(&r, &mem));
	KUNIT_EXPECT_EQ(test, IB_MEM_PEER, mem.found);
	expect_errors(test, &mem, -EFAULT, 0, 0);
	KUNIT_EXPECT_EQ(test, PEER_START(0), mr->iova);
	KUNIT_EXPECT_EQ(test, PEER_LENGTH, mr->length);
	KUNIT_EXPECT_TRUE(test, mr->umem->is_peer);
	KUNIT_EXPECT_TRUE(test, mr->umem->writable);
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
	KVT_EXPECT_TRACE(test, tr, "acquire get_pages dma_map");
	KUNIT_EXPECT_FALSE(test, r.client->has_data);
	KUNIT_EXPECT_STREQ(test, (char *)r.client->name, "-");
	kvt_trace_reset(tr);
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));
	KVT_EXPECT_TRACE(test, tr, "dma_unmap put_pages release");
	expect_nothing_left(test, &r);
}

/* The client's pages are larger: the device gets the system pages of the range only. */
static void device_gets_what_was_registered(struct kunit *test)
{
	struct ib_mem mem = {
		.path = IB_MEM_PEER,
		.start = PEER_BASE(0) + SZ_64K + 3 * PAGE_SIZE + 8,
		.length = SZ_64K,
	};
	struct ib_block_iter biter;
	struct ib_mr *mr;
	struct rig r;
	u64 want;

	rig_up(test, &r);
	r.client->page_size = SZ_64K;
	mr = KVT_PTR(test, reg(&r, &mem));
	want = PEER_DMA + 3 * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, want, mock_mr_dma(mr));
	rdma_umem_for_each_dma_block(mr->umem, &biter, PAGE_SIZE) {
		KUNIT_EXPECT_EQ(test, want, rdma_block_iter_dma_address(&biter));
		want += PAGE_SIZE;
		/* The mock client leaves a gap after the DMA range of each of its pages. */
		if (want == PEER_DMA + SZ_64K)
			want += SZ_64K;
	}
	KUNIT_EXPECT_EQ(test, PEER_DMA + SZ_128K + 4 * PAGE_SIZE, want);
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));
	expect_nothing_left(test, &r);
}

static void one_path_is_tried_if_it_is_named(struct kunit *test)
{
	struct ib_mem mem;
	struct rig r;

	rig_up(test, &r);
	mem = peer_mem(IB_MEM_HOST);
	KUNIT_EXPECT_EQ(test, -EFAULT, reg_error(&r, &mem));
	KUNIT_EXPECT_EQ(test, IB_MEM_ANY, mem.found);
	expect_errors(test, &mem, -EFAULT, 0, 0);
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(r.client, PEER_ACQUIRE));

	mem = host_mem(&r, IB_MEM_PEER);
	KUNIT_EXPECT_EQ(test, -EFAULT, reg_error(&r, &mem));
	KUNIT_EXPECT_EQ(test, IB_MEM_ANY, mem.found);
	expect_errors(test, &mem, 0, -ENODEV, 0);

	/* An address that is neither user memory nor known to any client. */
	mem.path = IB_MEM_ANY;
	mem.start = PEER_BASE(2);
	KUNIT_EXPECT_EQ(test, -EFAULT, reg_error(&r, &mem));
	expect_errors(test, &mem, -EFAULT, -ENODEV, 0);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_reg_umem_mr));
	expect_nothing_left(test, &r);
}

static void client_is_asked_by_name(struct kunit *test)
{
	static const u8 data[IB_PEER_MEMORY_DATA_MAX] = { 1, 2, [63] = 64 };
	struct ib_mem mem = peer_mem(IB_MEM_ANY);
	struct peer_mock *other;
	struct ib_mr *mr;
	struct rig r;

	rig_up(test, &r);
	other = peer_mock_up(test, 1, "kvt_other", PEER_CORE);
	mem.peer_name = "kvt_gpu";
	mem.peer_data = data;
	mr = KVT_PTR(test, reg(&r, &mem));
	KUNIT_EXPECT_TRUE(test, r.client->has_data);
	KUNIT_EXPECT_MEMEQ(test, (u8 *)r.client->data, data, sizeof(data));
	KUNIT_EXPECT_STREQ(test, (char *)r.client->name, "kvt_gpu");
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));

	mem.peer_name = "kvt_other";
	KUNIT_EXPECT_EQ(test, -EFAULT, reg_error(&r, &mem));
	expect_errors(test, &mem, -EFAULT, -ENODEV, 0);
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(r.client, PEER_ACQUIRE));

	mem.peer_name = "kvt_nobody";
	KUNIT_EXPECT_EQ(test, -EFAULT, reg_error(&r, &mem));
	expect_errors(test, &mem, -EFAULT, -ENOENT, 0);
	mem.path = IB_MEM_PEER;
	KUNIT_EXPECT_EQ(test, -ENOENT, reg_error(&r, &mem));
	PEER_EXPECT_IDLE(test, other);
	expect_nothing_left(test, &r);
}

static void error_of_the_client_is_told(struct kunit *test)
{
	static const enum peer_call steps[] = { PEER_GET_PAGES, PEER_DMA_MAP };
	static const enum ib_mem_path paths[] = { IB_MEM_ANY, IB_MEM_PEER };
	struct ib_mem mem;
	struct rig r;
	int i, j;

	rig_up(test, &r);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		r.client->ret[steps[i]] = -EXFULL;
		for (j = 0; j < ARRAY_SIZE(paths); j++) {
			mem = peer_mem(paths[j]);
			KUNIT_EXPECT_EQ(test, -EXFULL, reg_error(&r, &mem));
			expect_errors(test, &mem, j ? 0 : -EFAULT, -EXFULL, 0);
		}
		r.client->ret[steps[i]] = 0;
	}
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_reg_umem_mr));
	expect_nothing_left(test, &r);
}

struct bad_mem {
	const char *what;
	struct ib_mem mem;
	u64 virt;
	int access;
	int ret;
};

#define AT_PEER		.start = PEER_START(0), .length = SZ_4K

static const struct bad_mem bad_mems[] = {
	{ "no bytes", { .start = PEER_START(0) }, 0, ACCESS, -EINVAL },
	{ "a path that there is not", { .path = IB_MEM_PATHS, AT_PEER }, 0, ACCESS,
	  -EINVAL },
	{ "the end of the addresses", { .start = -SZ_4K, .length = SZ_8K }, 0, ACCESS,
	  -EINVAL },
	{ "the end of the region's addresses", { AT_PEER }, -1, ACCESS, -EINVAL },
	{ "a dma-buf that is not given", { .path = IB_MEM_DMABUF, AT_PEER }, 0, ACCESS,
	  -EINVAL },
	{ "the end of the dma-buf's offsets",
	  { AT_PEER, .has_fd = true, .fd_offset = -1 }, 0, ACCESS, -EINVAL },
	{ "access that there is not", { AT_PEER }, 0, BIT(30), -EINVAL },
	{ "peers that write where the device may not", { AT_PEER }, 0,
	  IB_ACCESS_REMOTE_WRITE, -EINVAL },
	{ "on demand", { AT_PEER }, 0, IB_ACCESS_ON_DEMAND, -EOPNOTSUPP },
};

/* Bad arguments are refused before any client is asked. */
static void what_can_not_be_is_refused(struct kunit *test)
{
	const struct bad_mem *bad = bad_mems;
	struct ib_mem mem;
	struct ib_mr *mr;
	struct rig r;

	rig_up(test, &r);
	for (; bad < bad_mems + ARRAY_SIZE(bad_mems); bad++) {
		mem = bad->mem;
		mr = ib_reg_mem(r.pd, &mem, bad->virt, bad->access);
		KUNIT_EXPECT_EQ_MSG(test, bad->ret, PTR_ERR_OR_ZERO(mr), "%s", bad->what);
		expect_errors(test, &mem, 0, 0, 0);
	}
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(r.client, PEER_ACQUIRE));
	expect_nothing_left(test, &r);
}

static void call_for_memory_of_the_process_finds_peers(struct kunit *test)
{
	struct peer_visit v;
	struct ib_mr *mr;
	struct rig r;

	rig_up(test, &r);
	peer_visit_begin(&v);
	mr = ib_reg_user_mr(r.pd, PEER_START(0), PEER_LENGTH, 0x7000064, ACCESS);
	peer_visit_end(&v);
	KUNIT_ASSERT_EQ(test, 0, PTR_ERR_OR_ZERO(mr));
	KUNIT_EXPECT_TRUE(test, mr->umem->is_peer);
	KUNIT_EXPECT_EQ(test, 0x7000064, mr->iova);
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));
	expect_nothing_left(test, &r);
}

/* Devices with fewer methods */

/* It may only use memory of clients that never invalidate. */
static void device_that_cannot_revoke(struct kunit *test)
{
	struct mock *m = mock_new(test);
	struct peer_mock *stays;
	struct ib_mem mem;
	struct ib_mr *mr;
	struct rig r;

	mock_by_umem(m);
	m->ops.revoke_mr = NULL;
	rig_up_with(test, &r, m, PEER_CORE);
	stays = peer_mock_up(test, 1, "kvt_stays", PEER_NEVER);
	mem = peer_mem(IB_MEM_ANY);
	KUNIT_EXPECT_EQ(test, -EFAULT, reg_error(&r, &mem));
	expect_errors(test, &mem, -EFAULT, -EOPNOTSUPP, 0);
	mem.path = IB_MEM_PEER;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, reg_error(&r, &mem));
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(r.client, PEER_ACQUIRE));

	mem.start = PEER_START(1);
	mr = KVT_PTR(test, reg(&r, &mem));
	KUNIT_EXPECT_EQ(test, IB_MEM_PEER, mem.found);
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));
	PEER_EXPECT_IDLE(test, stays);
	expect_nothing_left(test, &r);
}

static void device_without_dma_addresses(struct kunit *test)
{
	struct mock *m = mock_new(test);
	struct dmabuf_rig *buf = dmabuf_rig_new(test, SZ_64K);
	struct ib_mem mem = peer_mem(IB_MEM_PEER);
	struct rig r;

	mock_by_umem(m);
	m->dma = false;
	rig_up_with(test, &r, m, PEER_CORE);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, reg_error(&r, &mem));
	mem.path = IB_MEM_DMABUF;
	mem.has_fd = true;
	mem.fd = buf->fd;
	mem.length = SZ_64K;
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, reg_error(&r, &mem));
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(r.client, PEER_ACQUIRE));
	KUNIT_EXPECT_EQ(test, 0, dmabuf_rig_calls(buf, DMABUF_ATTACH));
	expect_nothing_left(test, &r);
	DMABUF_EXPECT_IDLE(test, buf);
}

static void driver_that_gets_memory_itself(struct kunit *test)
{
	struct mock_call call = {};
	struct ib_mem mem;
	struct ib_mr *mr;
	struct rig r;

	rig_up_with(test, &r, mock_new(test), PEER_CORE);
	mem = host_mem(&r, IB_MEM_ANY);
	mr = KVT_PTR(test, reg(&r, &mem));
	KUNIT_EXPECT_NULL(test, mr->umem);
	KUNIT_EXPECT_EQ(test, IB_MEM_HOST, mem.found);
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));

	mem = peer_mem(IB_MEM_ANY);
	KUNIT_EXPECT_EQ(test, -EFAULT, reg_error(&r, &mem));
	expect_errors(test, &mem, -EFAULT, -EOPNOTSUPP, 0);

	mem = peer_mem(IB_MEM_DMABUF);
	mem.has_fd = true;
	mem.fd = 77;
	mem.fd_offset = SZ_8K;
	mr = KVT_PTR(test, reg(&r, &mem));
	KUNIT_EXPECT_EQ(test, IB_MEM_DMABUF, mem.found);
	KUNIT_EXPECT_TRUE(test, mock_last(r.m, MOCK_reg_user_mr_dmabuf, &call));
	KUNIT_EXPECT_EQ(test, SZ_8K, call.arg);
	KUNIT_EXPECT_EQ(test, 77, call.arg2);
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(r.client, PEER_ACQUIRE));
	expect_nothing_left(test, &r);
}

static void device_without_regions_of_memory(struct kunit *test)
{
	struct mock *m = mock_new(test);
	struct ib_mem mem;
	struct rig r;

	m->ops.reg_user_mr = NULL;
	m->ops.reg_user_mr_dmabuf = NULL;
	rig_up_with(test, &r, m, PEER_CORE);
	mem = host_mem(&r, IB_MEM_ANY);
	KUNIT_EXPECT_EQ(test, -EOPNOTSUPP, reg_error(&r, &mem));
	expect_errors(test, &mem, 0, 0, 0);
}

/* Invalidation */

static struct ib_mr *peer_mr(struct kunit *test, struct rig *r, struct peer_pin **pin)
{
	struct ib_mem mem = peer_mem(IB_MEM_PEER);
	struct ib_mr *mr = KVT_PTR(test, reg(r, &mem));

	*pin = peer_mock_made(PEER_START(0));
	KUNIT_ASSERT_NOT_NULL(test, *pin);
	return mr;
}

static void region_that_loses_its_memory_is_revoked(struct kunit *test)
{
	struct peer_pin *pin;
	struct ib_mr *mr;
	struct rig r;
	int i;

	rig_up(test, &r);
	mr = peer_mr(test, &r, &pin);
	KUNIT_EXPECT_EQ(test, MOCK_MR_LIVE, mock_mr_state(mr));
	KUNIT_EXPECT_FALSE(test, mr->umem->revoked);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(pin));
		KUNIT_EXPECT_EQ(test, MOCK_MR_REVOKED, mock_mr_state(mr));
		KUNIT_EXPECT_TRUE(test, mr->umem->revoked);
		KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_revoke_mr));
		KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(r.client, PEER_PUT_PAGES));
	}
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.pd->usecnt));
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_dereg_mr));
	peer_pin_put(pin);
	expect_nothing_left(test, &r);
}

/* The device is never told of memory that is invalidated while it is mapped. */
static void memory_that_goes_while_it_is_got(struct kunit *test)
{
	static const enum ib_mem_path paths[] = { IB_MEM_ANY, IB_MEM_PEER };
	struct ib_mem mem;
	struct rig r;
	int i;

	rig_up(test, &r);
	r.client->on[PEER_DMA_MAP] = peer_pin_invalidate_here;
	for (i = 0; i < ARRAY_SIZE(paths); i++) {
		mem = peer_mem(paths[i]);
		KUNIT_EXPECT_EQ(test, -EFAULT, reg_error(&r, &mem));
		expect_errors(test, &mem, i ? 0 : -EFAULT, -ECANCELED, 0);
	}
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_reg_umem_mr));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_revoke_mr));
	expect_nothing_left(test, &r);
}

struct taker {
	struct rig *r;
	struct peer_pin *pin;
	struct ib_mr *mr;
	int ret;
};

static int invalidate_fn(void *arg)
{
	struct taker *t = arg;

	t->ret = peer_pin_invalidate(t->pin);
	return 0;
}

static int reg_fn(void *arg)
{
	struct ib_mem mem = peer_mem(IB_MEM_PEER);
	struct taker *t = arg;

	t->ret = reg_error(t->r, &mem);
	return 0;
}

static int dereg_fn(void *arg)
{
	struct taker *t = arg;

	t->ret = dereg(t->mr);
	return 0;
}

static void expect_waits(struct kunit *test, struct kvt_thread *t)
{
	KUNIT_EXPECT_TRUE(test, kvt_thread_waits(t));
	KUNIT_EXPECT_TRUE(test, kvt_thread_running(t));
}

/* The invalidation does not wait for the driver, whose MR is freed without being opened. */
static void memory_that_goes_while_the_device_hears_of_it(struct kunit *test)
{
	struct kvt_thread *maker, *thread;
	struct taker make = {}, take = {};
	struct rig r;

	rig_up(test, &r);
	make.r = &r;
	mock_hold(r.m, MOCK_reg_umem_mr);
	maker = kvt_thread_start(test, 0, reg_fn, &make);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r.m->hold.entered));
	take.pin = KVT_PTR(test, peer_mock_pin(r.client, 0));
	thread = kvt_thread_start(test, kvt_other_cpu(), invalidate_fn, &take);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(thread));
	KUNIT_EXPECT_EQ(test, 0, take.ret);
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(r.client, PEER_DMA_UNMAP));
	mock_hold_end(r.m);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(maker));
	KUNIT_EXPECT_EQ(test, -EFAULT, make.ret);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_open_mr));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_revoke_mr));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(r.m, MOCK_dereg_mr));
	peer_pin_put(take.pin);
	expect_nothing_left(test, &r);
}

/* The invalidation waits for the driver's dereg_mr(), and revokes nothing after that. */
static void memory_that_goes_while_the_region_does(struct kunit *test)
{
	struct taker end = {}, take = {};
	struct kvt_thread *ender, *thread;
	struct rig r;

	rig_up(test, &r);
	end.mr = peer_mr(test, &r, &take.pin);
	mock_hold(r.m, MOCK_dereg_mr);
	ender = kvt_thread_start(test, 0, dereg_fn, &end);
	KUNIT_ASSERT_TRUE(test, kvt_wait(&r.m->hold.entered));
	thread = kvt_thread_start(test, kvt_other_cpu(), invalidate_fn, &take);
	expect_waits(test, thread);
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(r.client, PEER_DMA_UNMAP));
	mock_hold_end(r.m);
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(ender));
	KUNIT_ASSERT_TRUE(test, kvt_thread_join(thread));
	KUNIT_EXPECT_EQ(test, 0, end.ret);
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_revoke_mr));
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(r.client, PEER_DMA_UNMAP));
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(r.client, PEER_RELEASE));
	peer_pin_put(take.pin);
	expect_nothing_left(test, &r);
}

static void region_that_the_device_refuses_leaves_nothing(struct kunit *test)
{
	struct ib_mem mems[2];
	struct rig r;
	int i;

	rig_up(test, &r);
	mems[0] = host_mem(&r, IB_MEM_HOST);
	mems[1] = peer_mem(IB_MEM_PEER);
	mock_fail(r.m, MOCK_reg_umem_mr, -EXFULL);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, -EXFULL, reg_error(&r, &mems[i]));
		KUNIT_EXPECT_EQ(test, -EXFULL, mems[i].error[mems[i].path]);
	}
	KUNIT_EXPECT_EQ(test, 0, mock_calls(r.m, MOCK_revoke_mr));
	expect_nothing_left(test, &r);
}

static void region_that_cannot_be_freed_is_still_revoked(struct kunit *test)
{
	struct peer_pin *pin;
	struct ib_mr *mr;
	struct rig r;

	rig_up(test, &r);
	mr = peer_mr(test, &r, &pin);
	mock_fail_nth(r.m, MOCK_dereg_mr, 1, -EBUSY);
	KUNIT_EXPECT_EQ(test, -EBUSY, dereg(mr));
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(r.client, PEER_DMA_UNMAP));
	KUNIT_EXPECT_EQ(test, 1, atomic_read(&r.pd->usecnt));
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(pin));
	KUNIT_EXPECT_EQ(test, MOCK_MR_REVOKED, mock_mr_state(mr));
	KUNIT_EXPECT_EQ(test, 0, dereg(mr));
	peer_pin_put(pin);
	expect_nothing_left(test, &r);
}

/* Drivers that call ib_umem_get_peer() themselves */

static struct ib_umem *get_peer(struct rig *r, unsigned long addr, size_t size, unsigned long flags)
{
	struct ib_umem *umem;
	struct peer_visit v;

	peer_visit_begin(&v);
	umem = ib_umem_get_peer(r->m->ibdev, addr, size, ACCESS, flags);
	peer_visit_end(&v);
	return umem;
}

static void release(struct ib_umem *umem)
{
	struct peer_visit v;

	peer_visit_begin(&v);
	ib_umem_release(umem);
	peer_visit_end(&v);
}

static int get_peer_error(struct rig *r, unsigned long addr, size_t size, unsigned long flags)
{
	return PTR_ERR_OR_ZERO(get_peer(r, addr, size, flags));
}

#define ALL	(IB_PEER_MEM_ALLOW | IB_PEER_MEM_INVAL_SUPP)

static void memory_is_got_as_the_driver_allows(struct kunit *test)
{
	struct ib_umem *umem;
	struct rig r;

	rig_up(test, &r);
	umem = KVT_PTR(test, get_peer(&r, r.host, PAGE_SIZE, ALL));
	KUNIT_EXPECT_FALSE(test, umem->is_peer);
	release(umem);
	KUNIT_EXPECT_EQ(test, -EFAULT, get_peer_error(&r, PEER_START(0), 8, 0));
	KUNIT_EXPECT_EQ(test, -EFAULT,
			get_peer_error(&r, PEER_START(0), 8, IB_PEER_MEM_INVAL_SUPP));
	KUNIT_EXPECT_EQ(test, -EFAULT, get_peer_error(&r, PEER_START(0), 8, IB_PEER_MEM_ALLOW));
	KUNIT_EXPECT_EQ(test, -EFAULT, get_peer_error(&r, PEER_START(3), 8, ALL));
	KUNIT_EXPECT_EQ(test, -EINVAL, get_peer_error(&r, PEER_START(0), 0, ALL));
	KUNIT_EXPECT_EQ(test, 0, peer_mock_calls(r.client, PEER_ACQUIRE));
	r.client->ret[PEER_GET_PAGES] = -EXFULL;
	KUNIT_EXPECT_EQ(test, -EXFULL, get_peer_error(&r, PEER_START(0), 8, ALL));
	r.client->ret[PEER_GET_PAGES] = 0;

	umem = KVT_PTR(test, get_peer(&r, PEER_START(0), PEER_LENGTH, ALL));
	KUNIT_EXPECT_TRUE(test, umem->is_peer);
	KUNIT_EXPECT_EQ(test, PEER_START(0), umem->address);
	KUNIT_EXPECT_EQ(test, PEER_LENGTH, umem->length);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_umem_copy_from(&r, umem, 0, 1));
	release(umem);
	expect_nothing_left(test, &r);
}

struct notified {
	struct ib_umem *umem;
	int calls;
	bool mapped;
	struct rig *r;
};

static void notify(struct ib_umem *umem, void *priv)
{
	struct notified *n = priv;

	n->umem = umem;
	n->calls++;
	n->mapped = !peer_mock_calls(n->r->client, PEER_DMA_UNMAP);
}

static void notifier_is_called_once(struct kunit *test)
{
	struct notified n = {};
	struct ib_umem *umem;
	struct peer_pin *pin;
	struct rig r;
	int i;

	rig_up(test, &r);
	n.r = &r;
	umem = KVT_PTR(test, get_peer(&r, PEER_START(0), PEER_LENGTH, ALL));
	pin = KVT_PTR(test, peer_mock_made(PEER_START(0)));
	ib_umem_activate_invalidation_notifier(umem, notify, &n);
	KUNIT_EXPECT_EQ(test, 0, n.calls);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(pin));
		KUNIT_EXPECT_EQ(test, 1, n.calls);
	}
	KUNIT_EXPECT_PTR_EQ(test, umem, n.umem);
	/* The memory was still mapped when the notifier ran. */
	KUNIT_EXPECT_TRUE(test, n.mapped);
	release(umem);
	peer_pin_put(pin);
	expect_nothing_left(test, &r);
}

static void notifier_that_is_stopped_is_not_called(struct kunit *test)
{
	struct notified n = {};
	struct peer_visit v;
	struct ib_umem *umem;
	struct peer_pin *pin;
	struct rig r;

	rig_up(test, &r);
	n.r = &r;
	umem = KVT_PTR(test, get_peer(&r, PEER_START(0), PEER_LENGTH, ALL));
	pin = KVT_PTR(test, peer_mock_made(PEER_START(0)));
	ib_umem_activate_invalidation_notifier(umem, notify, &n);
	peer_visit_begin(&v);
	ib_umem_stop_invalidation_notifier(umem);
	peer_visit_end(&v);
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(r.client, PEER_PUT_PAGES));
	KUNIT_EXPECT_EQ(test, 0, peer_pin_invalidate(pin));
	release(umem);
	KUNIT_EXPECT_EQ(test, 0, n.calls);
	KUNIT_EXPECT_EQ(test, 1, peer_mock_calls(r.client, PEER_PUT_PAGES));
	peer_pin_put(pin);

	/* User memory is never invalidated, so the calls do nothing. */
	umem = KVT_PTR(test, get_peer(&r, r.host, PAGE_SIZE, ALL));
	ib_umem_activate_invalidation_notifier(umem, notify, &n);
	ib_umem_stop_invalidation_notifier(umem);
	release(umem);
	expect_nothing_left(test, &r);
}

static struct kunit_case core_reg_mem_cases[] = {
	KUNIT_CASE(memory_of_the_system_comes_first),
	KUNIT_CASE(peers_are_asked_for_what_the_system_has_not),
	KUNIT_CASE(device_gets_what_was_registered),
	KUNIT_CASE(one_path_is_tried_if_it_is_named),
	KUNIT_CASE(client_is_asked_by_name),
	KUNIT_CASE(error_of_the_client_is_told),
	KUNIT_CASE(what_can_not_be_is_refused),
	KUNIT_CASE(call_for_memory_of_the_process_finds_peers),
	KUNIT_CASE(device_that_cannot_revoke),
	KUNIT_CASE(device_without_dma_addresses),
	KUNIT_CASE(driver_that_gets_memory_itself),
	KUNIT_CASE(device_without_regions_of_memory),
	KUNIT_CASE(region_that_loses_its_memory_is_revoked),
	KUNIT_CASE(memory_that_goes_while_it_is_got),
	KUNIT_CASE(memory_that_goes_while_the_device_hears_of_it),
	KUNIT_CASE(memory_that_goes_while_the_region_does),
	KUNIT_CASE(region_that_the_device_refuses_leaves_nothing),
	KUNIT_CASE(region_that_cannot_be_freed_is_still_revoked),
	KUNIT_CASE(memory_is_got_as_the_driver_allows),
	KUNIT_CASE(notifier_is_called_once),
	KUNIT_CASE(notifier_that_is_stopped_is_not_called),
	{}
};
KVT_SUITE(core_reg_mem);

MODULE_IMPORT_NS(DMA_BUF);
MODULE_DESCRIPTION("KUnit: regions of memory of any kind");
MODULE_LICENSE("GPL");
