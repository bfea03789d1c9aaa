// SPDX-License-Identifier: GPL-2.0-only
/*
 * Sweeps of the calls that make other things than the usual verbs objects: each of their
 * allocations fails in turn. See sweep.c.
 */
#include <linux/dma-buf.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_umem.h>

#include "ca/rig.h"
#include "lib/dmabuf_rig.h"
#include "fault/sweep.h"
#include "lib/mock.h"
#include "lib/objects.h"
#include "peer/rig.h"

/* Pages of user memory: more than the entries in one chunk of a scatter list. */
#define USER_PAGES	300UL

/* Bytes of other memory: its scatter list has more than one chunk, too. */
#define LENGTH		SZ_1M

#define ACCESS		IB_ACCESS_LOCAL_WRITE

/* An event handler that reads a GID. */
struct heard {
	struct ib_event_handler handler;	/* the handler registered with the core */
	union ib_gid gid;	/* the GID that was in the cache when the last event came */
	struct completion got;	/* completed by each event */
};

/* What the calls work on, and what they have made. */
struct target {
	struct mock *m;			/* the device */
	struct ib_pd *pd;		/* a PD of the device */
	struct ib_cq *cq;		/* made by a call */
	struct ib_mr *mr;		/* likewise */
	struct ib_ah *ah;		/* likewise */
	struct ib_device *ibdev;	/* likewise */
	struct rdma_hw_stats *stats;	/* likewise */
	struct ib_umem *umem;		/* likewise */
	struct net_device *ndev;	/* a network device */
	struct peer_mock *client;	/* a client of the peer-memory registry */
	struct dmabuf_rig *buf;		/* a dma-buf */
	unsigned long addr;		/* start of the memory to be used */
	size_t size;			/* size of the memory, in bytes */
};

/* --- objects ----------------------------------------------------------------- */

MAKES(make_cq, target, t, KEEP(t, cq, ib_alloc_cq_any(t->m->ibdev, NULL, 32, IB_POLL_SOFTIRQ)))
UNMAKES(unmake_cq, target, t, ib_free_cq(t->cq))

static void completion_queue_of_any_vector(struct kunit *test)
{
	struct target t = {};

	t.m = mock_up(test, "kvtm_a");
	SWEEP(test, t.m, &t, "ib_alloc_cq_any", make_cq, unmake_cq, UNDO_QUIET);
}

static struct ib_mr *alloc_mr_integrity(struct ib_pd *pd, u32 max_num_data_sg, u32 max_num_meta_sg)
{
	return mock_of(pd->device)->ops.alloc_mr(pd, IB_MR_TYPE_INTEGRITY,
						 max_num_data_sg + max_num_meta_sg);
}

static int map_mr_sg_pi(struct ib_mr *mr, struct scatterlist *data_sg, int data_sg_nents,
			unsigned int *data_sg_offset, struct scatterlist *meta_sg,
			int meta_sg_nents, unsigned int *meta_sg_offset)
{
	return 0;
}

MAKES(make_mr, target, t, KEEP(t, mr, ib_alloc_mr_integrity(t->pd, 4, 4)))
UNMAKES(unmake_mr, target, t, ib_dereg_mr(t->mr))

static void region_with_protection(struct kunit *test)
{
	struct target t = {};

	t.m = mock_new(test);
	t.m->ops.alloc_mr_integrity = alloc_mr_integrity;
	t.m->ops.map_mr_sg_pi = map_mr_sg_pi;
	mock_start(test, t.m, "kvtm_a");
	t.pd = kvt_pd(test, t.m->ibdev);
	SWEEP(test, t.m, &t, "ib_alloc_mr_integrity", make_mr, unmake_mr, UNDO_QUIET);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&t.pd->usecnt));
}

static int make_ah(void *arg)
{
	const struct ib_wc wc = { .slid = 5, .port_num = 1 };
	struct target *t = arg;

	return KEEP(t, ah, ib_create_ah_from_wc(t->pd, &wc, NULL, 1));
}

UNMAKES(unmake_ah, target, t, rdma_destroy_ah(t->ah, 0))

static void address_of_a_sender(struct kunit *test)
{
	struct target t = {};

	t.m = mock_up(test, "kvtm_a");
	t.pd = kvt_pd(test, t.m->ibdev);
	SWEEP(test, t.m, &t, "ib_create_ah_from_wc", make_ah, unmake_ah, UNDO_QUIET);
	KUNIT_EXPECT_EQ(test, 0, atomic_read(&t.pd->usecnt));
}

/* --- devices ----------------------------------------------------------------- */

/* If the call fails, the device must keep its name. */
static int make_name(void *arg)
{
	struct target *t = arg;
	int ret = ib_device_rename(t->m->ibdev, "kvtm_b");

	if (ret && !mock_exists("kvtm_a"))
		return -ENODEV;
	return ret;
}

UNMAKES(unmake_name, target, t, ib_device_rename(t->m->ibdev, "kvtm_a"))

static void name_of_a_device(struct kunit *test)
{
	struct target t = {};

	t.m = mock_up(test, "kvtm_a");
	SWEEP(test, t.m, &t, "ib_device_rename", make_name, unmake_name, UNDO_MAKES);
	KUNIT_EXPECT_TRUE(test, mock_exists("kvtm_a"));
	KUNIT_EXPECT_FALSE(test, mock_exists("kvtm_b"));
}

/* On a device that was not registered yet, the call has to allocate the data of the ports. */
static int make_bound(void *arg)
{
	struct mock_ibdev *mib = ib_alloc_device(mock_ibdev, ibdev);
	struct target *t = arg;
	int ret;

	if (!mib)
		return -ENOMEM;
	mib->ibdev.phys_port_cnt = 2;
	ret = ib_device_set_netdev(&mib->ibdev, t->ndev, 1);
	if (ret)
		ib_dealloc_device(&mib->ibdev);
	else
		t->ibdev = &mib->ibdev;
	return ret;
}

UNMAKES(unmake_bound, target, t, ib_dealloc_device(t->ibdev))

/* A leaked reference on the network device would keep the case from ending. */
static void network_device_of_a_port(struct kunit *test)
{
	struct target t = {};

	t.m = mock_new(test);
	t.ndev = kvt_netdev(test);
	SWEEP(test, t.m, &t, "ib_device_set_netdev", make_bound, unmake_bound);
	kvt_netdev_unregister(test, t.ndev);
}

static int modify_port(struct ib_device *ibdev, u32 port, int mask, struct ib_port_modify *attr)
{
	return 0;
}

static int modify_device(struct ib_device *ibdev, int mask, struct ib_device_modify *attr)
{
	return 0;
}

static int make_port(void *arg)
{
	struct ib_port_modify attr = {};
	struct target *t = arg;

	return ib_modify_port(t->m->ibdev, 1, 0, &attr);
}

static int make_changed(void *arg)
{
	struct ib_device_modify attr = {};
	struct target *t = arg;

	return ib_modify_device(t->m->ibdev, 0, &attr);
}

/* The calls succeed if the driver has made the change, even if the core lacks memory then. */
static void changes_that_the_driver_has_made(struct kunit *test)
{
	static const struct victim victims[] = {
		{ "ib_modify_port", make_port, kvt_nothing, UNDO_QUIET, .survives = true },
		{ "ib_modify_device", make_changed, kvt_nothing, UNDO_QUIET,
		  .survives = true },
	};
	struct target t = {};
	int i;

	t.m = mock_new(test);
	t.m->ops.modify_port = modify_port;
	t.m->ops.modify_device = modify_device;
	mock_start(test, t.m, "kvtm_a");
	for (i = 0; i < ARRAY_SIZE(victims); i++)
		sweep(test, t.m, &victims[i], &t);
}

static void change_netdev(struct mock *m, struct net_device *ndev)
{
	WRITE_ONCE(m->port[1].ndev, ndev);
	rdma_roce_rescan_device(m->ibdev);
}

/* Waits for the GIDs to be as expected: after a failed allocation the core tries again. */
static bool wait_for_gids(struct mock *m, unsigned long valid)
{
	return kvt_until(READ_ONCE(m->port[1].valid) == valid);
}

/* rdma_roce_rescan_device() returns no error: after a failure the tables are set later. */
static void gids_of_a_port(struct kunit *test)
{
	struct net_device *ndev;
	unsigned long valid;
	unsigned int n;
	struct mock *m;
	bool hit = true;

	ndev = kvt_netdev(test);
	m = mock_up_eth(test, "kvtm_a", ndev);
	valid = m->port[1].valid;
	KUNIT_ASSERT_NE(test, 0, valid);
	for (n = 0; hit && n < 100; n++) {
		change_netdev(m, NULL);
		KUNIT_ASSERT_TRUE(test, wait_for_gids(m, 0));
		kvt_fail_nth(n + 1);
		change_netdev(m, ndev);
		hit = kvt_failed_nth();
		KUNIT_ASSERT_TRUE(test, wait_for_gids(m, valid));
	}
	kunit_info(test, "rdma_roce_rescan_device: %u allocations failed", n - 1);
	KUNIT_EXPECT_GT(test, n, 1);
	KUNIT_EXPECT_FALSE(test, hit);
}

/* The query_gid method of the mock. */
static typeof_member(struct ib_device_ops, query_gid) query_gid;

/*
 * Where the mock fails with -EAGAIN, returns the GID instead, and lets the next allocation
 * of the calling thread fail: the one for the new GID.
 */
static int gid_without_memory(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	int ret = query_gid(ibdev, port, index, gid);

	if (ret != -EAGAIN)
		return ret;
	*gid = mock_of(ibdev)->port[port].gids[index];
	kvt_fail_nth(1);
	return 0;
}

static void note_gid(struct ib_event_handler *handler, struct ib_event *event)
{
	struct heard *h = container_of(handler, struct heard, handler);

	rdma_query_gid(event->device, event->element.port_num, 3, &h->gid);
	complete(&h->got);
}

/* The event is not delivered before all GIDs were read again without a failure. */
static void gids_that_are_read_again(struct kunit *test)
{
	struct heard *h = kvt_zalloc(test, sizeof(*h));
	struct mock *m = mock_new(test);
	union ib_gid gid;

	query_gid = m->ops.query_gid;
	m->ops.query_gid = gid_without_memory;
	mock_start(test, m, "kvtm_a");
	init_completion(&h->got);
	INIT_IB_EVENT_HANDLER(&h->handler, m->ibdev, note_gid);
	m->port[1].gids[3].raw[15] ^= 0x55;
	gid = m->port[1].gids[3];

	mock_log_reset(m);
	mock_fail_nth(m, MOCK_query_gid, 4, -EAGAIN);
	ib_register_event_handler(&h->handler);
	mock_event(m, 1, IB_EVENT_PKEY_CHANGE);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&h->got));
	ib_unregister_event_handler(&h->handler);
	/* The first pass ends with the fourth GID, which failed; the second one reads all. */
	KUNIT_EXPECT_EQ(test, 4 + MOCK_GIDS, mock_calls(m, MOCK_query_gid));
	KUNIT_EXPECT_EQ(test, 0, memcmp(&gid, &h->gid, sizeof(gid)));
}

static const struct rdma_stat_desc stats[] = { { .name = "a" }, { .name = "b" } };

/* The function returns NULL on any error. */
static int make_stats(void *arg)
{
	struct target *t = arg;

	t->stats = rdma_alloc_hw_stats_struct(stats, ARRAY_SIZE(stats), 10);
	return t->stats ? 0 : -ENOMEM;
}

UNMAKES(unmake_stats, target, t, rdma_free_hw_stats_struct(t->stats))

static void counters_of_a_driver(struct kunit *test)
{
	static const struct victim victim = {
		"rdma_alloc_hw_stats_struct", make_stats, unmake_stats, UNDO_QUIET,
	};
	struct target t = {};

	sweep(test, mock_new(test), &victim, &t);
}

/* --- memory ------------------------------------------------------------------ */

static void target_up(struct kunit *test, struct target *t)
{
	t->m = mock_up_umem(test, "kvtm_a");
}

MAKES(make_umem, target, t, KEEP(t, umem, ib_umem_get(t->m->ibdev, t->addr, t->size, ACCESS)))

static int make_peer_umem(void *arg)
{
	struct target *t = arg;
	struct peer_visit v;
	int ret;

	peer_visit_begin(&v);
	ret = KEEP(t, umem, ib_umem_get_peer(t->m->ibdev, t->addr, t->size, ACCESS,
					     IB_PEER_MEM_ALLOW | IB_PEER_MEM_INVAL_SUPP));
	peer_visit_end(&v);
	return ret;
}

static void unmake_umem(void *arg)
{
	struct target *t = arg;
	struct peer_visit v;

	peer_visit_begin(&v);
	ib_umem_release(t->umem);
	peer_visit_end(&v);
}

static void memory_of_the_process(struct kunit *test)
{
	static const struct victim victims[] = {
		{ "ib_umem_get", make_umem, unmake_umem, UNDO_QUIET },
		{ "ib_umem_get_peer", make_peer_umem, unmake_umem, UNDO_QUIET },
	};
	struct target t = { .size = USER_PAGES << PAGE_SHIFT };
	int i;

	target_up(test, &t);
	t.addr = kvt_map(test, USER_PAGES * PAGE_SIZE);
	for (i = 0; i < ARRAY_SIZE(victims); i++)
		sweep(test, t.m, &victims[i], &t);
	KUNIT_EXPECT_EQ(test, 0, kvt_pinned_pages());
}

static void memory_of_a_peer(struct kunit *test)
{
	struct target t = { .addr = PEER_BASE(0), .size = LENGTH };

	target_up(test, &t);
	t.client = peer_mock_up(test, 0, "kvt_gpu", PEER_CORE);
	t.client->page_size = PAGE_SIZE;
	SWEEP(test, t.m, &t, "ib_umem_get_peer, peer", make_peer_umem, unmake_umem);
	PEER_EXPECT_IDLE(test, t.client);
}

static void moves(struct dma_buf_attachment *attach)
{
}

static const struct dma_buf_attach_ops importer = {
	.allow_peer2peer = true,
	.move_notify = moves,
};

static int make_dmabuf(void *arg)
{
	struct ib_umem_dmabuf *d;
	struct target *t = arg;

	d = ib_umem_dmabuf_get(t->m->ibdev, 0, t->size, t->buf->fd, ACCESS, &importer);
	if (IS_ERR(d))
		return PTR_ERR(d);
	t->umem = &d->umem;
	return 0;
}

static int make_pinned(void *arg)
{
	struct ib_umem_dmabuf *d;
	struct target *t = arg;

	d = ib_umem_dmabuf_get_pinned(t->m->ibdev, 0, t->size, t->buf->fd, ACCESS);
	if (IS_ERR(d))
		return PTR_ERR(d);
	t->umem = &d->umem;
	return 0;
}

UNMAKES(unmake_dmabuf, target, t, ib_umem_dmabuf_release(to_ib_umem_dmabuf(t->umem)))
MAKES(make_mapped, target, t, dmabuf_rig_map_pages(to_ib_umem_dmabuf(t->umem)))
UNMAKES(unmake_mapped, target, t, dmabuf_rig_unmap_pages(to_ib_umem_dmabuf(t->umem)))

static void memory_of_a_dmabuf(struct kunit *test)
{
	static const struct victim got[] = {
		{ "ib_umem_dmabuf_get", make_dmabuf, unmake_dmabuf, UNDO_QUIET },
		{ "ib_umem_dmabuf_get_pinned", make_pinned, unmake_dmabuf, UNDO_QUIET },
	};
	struct target t = { .size = LENGTH };
	int i;

	target_up(test, &t);
	t.buf = dmabuf_rig_new(test, LENGTH);
	t.buf->piece = PAGE_SIZE;
	for (i = 0; i < ARRAY_SIZE(got); i++)
		sweep(test, t.m, &got[i], &t);
	KUNIT_ASSERT_EQ(test, 0, make_dmabuf(&t));
	SWEEP(test, t.m, &t, "ib_umem_dmabuf_map_pages", make_mapped, unmake_mapped, UNDO_QUIET);
	unmake_dmabuf(&t);
	DMABUF_EXPECT_IDLE(test, t.buf);
}

static struct kunit_case fail_nth_objects_cases[] = {
	KUNIT_CASE(completion_queue_of_any_vector),
	KUNIT_CASE(region_with_protection),
	KUNIT_CASE(address_of_a_sender),
	KUNIT_CASE(name_of_a_device),
	KUNIT_CASE(network_device_of_a_port),
	KUNIT_CASE(changes_that_the_driver_has_made),
	KUNIT_CASE(gids_of_a_port),
	KUNIT_CASE(gids_that_are_read_again),
	KUNIT_CASE(counters_of_a_driver),
	KUNIT_CASE(memory_of_the_process),
	KUNIT_CASE(memory_of_a_peer),
	KUNIT_CASE(memory_of_a_dmabuf),
	{}
};
KVT_SUITE(fail_nth_objects, .init = kvt_need_injection);
