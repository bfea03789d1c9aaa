// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the core has for verbs of processes, which the kernel's own ib_uverbs makes itself: lists of
 * such objects and of whose they are, CQs that the core has not made, and memory that a process
 * may map.
 */
#include <linux/etherdevice.h>
#include <linux/sched.h>
#include <kverbs/completion.h>
#include <kverbs/upper.h>
#include <rdma/ib_cache.h>

#include "lib/client.h"
#include "lib/mock.h"
#include "lib/objects.h"

/* --- memory that a process may map ---------------------------------------------- */

static struct ib_ucontext *context_up(struct kunit *test)
{
	struct ib_ucontext *context = kvt_zalloc(test, sizeof(*context));

	context->device = mock_up(test, "kvtm_a")->ibdev;
	xa_init_flags(&context->mmap_xa, XA_FLAGS_ALLOC);
	return context;
}

#define ENTRIES 4

static void insert_all(struct kunit *test, struct ib_ucontext *context,
		       struct rdma_user_mmap_entry *entries)
{
	int i;

	for (i = 0; i < ENTRIES; i++) {
		memset(&entries[i], 0, sizeof(entries[i]));
		KUNIT_ASSERT_EQ(test, 0, rdma_user_mmap_entry_insert(context, &entries[i],
								     (i + 1) * PAGE_SIZE - 1));
		KUNIT_EXPECT_EQ(test, i + 1, entries[i].npages);
	}
}

static bool overlap(const struct rdma_user_mmap_entry *a, const struct rdma_user_mmap_entry *b)
{
	return a->start_pgoff < b->start_pgoff + b->npages &&
	       b->start_pgoff < a->start_pgoff + a->npages;
}

static void entries_do_not_overlap(struct kunit *test)
{
	struct rdma_user_mmap_entry *entries = kvt_zalloc(test, ENTRIES * sizeof(*entries));
	struct ib_ucontext *context = context_up(test);
	int i, j;

	insert_all(test, context, entries);
	for (i = 0; i < ENTRIES; i++)
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_FALSE(test, overlap(&entries[i], &entries[j]));
	for (i = 0; i < ENTRIES; i++)
		rdma_user_mmap_entry_remove(&entries[i]);
	KUNIT_EXPECT_TRUE(test, xa_empty(&context->mmap_xa));
}

/* The place of one that is gone, although the last has been put behind it. */
static void gaps_in_a_range_are_found(struct kunit *test)
{
	struct rdma_user_mmap_entry *entries = kvt_zalloc(test, ENTRIES * sizeof(*entries));
	struct ib_ucontext *context = context_up(test);
	struct rdma_user_mmap_entry more = {}, none = {};
	int i;

	insert_all(test, context, entries);
	rdma_user_mmap_entry_remove(&entries[1]);
	KUNIT_EXPECT_EQ(test, 0, rdma_user_mmap_entry_insert_range(context, &more, 2 * PAGE_SIZE,
								   0, 9));
	KUNIT_EXPECT_EQ(test, 1, more.start_pgoff);
	KUNIT_EXPECT_EQ(test, -ENOMEM, rdma_user_mmap_entry_insert_range(context, &none, PAGE_SIZE,
									 0, 9));
	rdma_user_mmap_entry_remove(&more);
	for (i = 0; i < ENTRIES; i++)
		if (i != 1)
			rdma_user_mmap_entry_remove(&entries[i]);
	KUNIT_EXPECT_TRUE(test, xa_empty(&context->mmap_xa));
}

static void removed_entry_keeps_its_place_while_it_is_held(struct kunit *test)
{
	struct ib_ucontext *context = context_up(test);
	struct rdma_user_mmap_entry entry = {}, *found;
	unsigned long at;

	KUNIT_ASSERT_EQ(test, 0, rdma_user_mmap_entry_insert(context, &entry, 2 * PAGE_SIZE));
	at = entry.start_pgoff;
	KUNIT_EXPECT_NULL(test, rdma_user_mmap_entry_get_pgoff(context, at + 1));
	found = rdma_user_mmap_entry_get_pgoff(context, at);
	KUNIT_ASSERT_PTR_EQ(test, &entry, found);
	rdma_user_mmap_entry_remove(&entry);
	KUNIT_EXPECT_NULL(test, rdma_user_mmap_entry_get_pgoff(context, at));
	KUNIT_EXPECT_FALSE(test, xa_empty(&context->mmap_xa));
	rdma_user_mmap_entry_put(found);
	KUNIT_EXPECT_TRUE(test, xa_empty(&context->mmap_xa));
}

static void mapping_is_shared_and_whole(struct kunit *test)
{
	struct vm_area_struct *vma = kvt_zalloc(test, sizeof(*vma));
	struct ib_ucontext *context = context_up(test);
	struct rdma_user_mmap_entry entry = {};

	KUNIT_ASSERT_EQ(test, 0, rdma_user_mmap_entry_insert(context, &entry, 2 * PAGE_SIZE));
	vma->vm_pgoff = entry.start_pgoff;
	vma->vm_end = 2 * PAGE_SIZE;
	KUNIT_EXPECT_NULL(test, rdma_user_mmap_entry_get(context, vma));
	vm_flags_init(vma, VM_SHARED);
	vma->vm_end = PAGE_SIZE;
	KUNIT_EXPECT_NULL(test, rdma_user_mmap_entry_get(context, vma));
	vma->vm_end = 2 * PAGE_SIZE;
	KUNIT_EXPECT_PTR_EQ(test, &entry, rdma_user_mmap_entry_get(context, vma));
	rdma_user_mmap_entry_put(&entry);
	rdma_user_mmap_entry_remove(&entry);
}

/* --- objects of processes ----------------------------------------------------------- */

/* As ib_uverbs does it. */
static struct ib_pd *pd_of_process(struct kunit *test, struct mock *m)
{
	struct ib_pd *pd = rdma_zalloc_drv_obj(m->ibdev, ib_pd);

	KUNIT_ASSERT_NOT_NULL(test, pd);
	pd->device = m->ibdev;
	ib_track_new(&pd->res, RDMA_RESTRACK_PD);
	ib_track_set_user(&pd->res, current, _THIS_IP_);
	KUNIT_ASSERT_EQ(test, 0, m->ibdev->ops.alloc_pd(pd, NULL));
	ib_track_add(m->ibdev, &pd->res);
	return pd;
}

static void object_holds_its_process_until_it_is_gone(struct kunit *test)
{
	unsigned int before = refcount_read(&current->usage);
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = pd_of_process(test, m);

	KUNIT_EXPECT_FALSE(test, rdma_is_kernel_res(&pd->res));
	KUNIT_EXPECT_STREQ(test, current->comm, pd->res.kern_name);
	KUNIT_EXPECT_EQ(test, before + 1, refcount_read(&current->usage));

	mock_fail(m, MOCK_dealloc_pd, -EXFULL);
	KUNIT_EXPECT_EQ(test, -EXFULL, ib_dealloc_pd_user(pd, NULL));
	KUNIT_EXPECT_PTR_EQ(test, current, pd->res.task);
	mock_fail_none(m);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_pd_user(pd, NULL));
	KUNIT_EXPECT_EQ(test, before, refcount_read(&current->usage));
}

/* Processes may try, and the log has nothing of it. */
static void object_in_use_is_busy_in_silence(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_pd *pd = pd_of_process(test, m);

	atomic_inc(&pd->usecnt);
	KUNIT_EXPECT_EQ(test, -EBUSY, ib_dealloc_pd_user(pd, NULL));
	atomic_dec(&pd->usecnt);
	KUNIT_EXPECT_EQ(test, 0, ib_dealloc_pd_user(pd, NULL));
}

static void object_that_was_not_made_lets_its_process_go(struct kunit *test)
{
	unsigned int before = refcount_read(&current->usage);
	struct rdma_restrack_entry *res = kvt_zalloc(test, sizeof(*res));

	ib_track_new(res, RDMA_RESTRACK_CTX);
	ib_track_set_user(res, current, _THIS_IP_);
	KUNIT_EXPECT_EQ(test, before + 1, refcount_read(&current->usage));
	KUNIT_EXPECT_EQ(test, 1, rdma_restrack_put(res));
	KUNIT_EXPECT_EQ(test, before, refcount_read(&current->usage));
}

/* What the handlers of a CQ were told. */
struct told {
	struct completion done, failed;
};

static void on_completion(struct ib_cq *cq, void *context)
{
	complete(&((struct told *)context)->done);
}

static void on_event(struct ib_event *event, void *context)
{
	complete(&((struct told *)context)->failed);
}

static struct ib_cq *adopted_cq(struct kunit *test, struct mock *m, struct told *told)
{
	struct ib_cq *cq = rdma_zalloc_drv_obj(m->ibdev, ib_cq);

	KUNIT_ASSERT_NOT_NULL(test, cq);
	init_completion(&told->done);
	init_completion(&told->failed);
	cq->device = m->ibdev;
	cq->comp_handler = on_completion;
	cq->event_handler = on_event;
	cq->cq_context = told;
	ib_cq_adopt(cq);
	ib_track_set_user(&cq->res, current, _THIS_IP_);
	return cq;
}

static void adopted_cq_has_its_handlers_called(struct kunit *test)
{
	const struct ib_cq_init_attr attr = { .cqe = 1 };
	struct told *told = kvt_zalloc(test, sizeof(*told));
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq = adopted_cq(test, m, told);

	KUNIT_ASSERT_EQ(test, 0, m->ibdev->ops.create_cq(cq, &attr, NULL));
	ib_track_add(m->ibdev, &cq->res);
	ib_cq_notify(cq);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&told->done));
	ib_cq_notify_event(cq, IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_TRUE(test, kvt_wait(&told->failed));
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_cq_user(cq, NULL));
}

/* The driver reports, and then fails: the memory can go as soon as the entry is put. */
static void adopted_cq_that_was_not_made_ends_at_once(struct kunit *test)
{
	unsigned int before = refcount_read(&current->usage);
	struct told *told = kvt_zalloc(test, sizeof(*told));
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq = adopted_cq(test, m, told);
	unsigned long flags;

	local_irq_save(flags);
	ib_cq_notify(cq);
	local_irq_restore(flags);
	KUNIT_EXPECT_EQ(test, 1, rdma_restrack_put(&cq->res));
	kfree(cq);
	KUNIT_EXPECT_EQ(test, before, refcount_read(&current->usage));
}

static void extended_connections_are_refused(struct kunit *test)
{
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_qp_init_attr init = { .qp_type = IB_QPT_XRC_TGT };
	struct ib_udata udata = {};

	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EOPNOTSUPP),
			    ib_create_qp_user(m->ibdev, NULL, &init, &udata, NULL, NULL));
	KUNIT_EXPECT_EQ(test, 0, mock_calls(m, MOCK_create_qp));
}

static void qp_of_process_is_listed_with_it(struct kunit *test)
{
	unsigned int before = refcount_read(&current->usage);
	struct mock *m = mock_up(test, "kvtm_a");
	struct ib_cq *cq = kvt_cq(test, m->ibdev, 4, IB_POLL_DIRECT);
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct ib_qp_init_attr init;
	struct ib_udata udata = {};
	struct ib_qp *qp;

	kvt_qp_init(&init, cq, cq);
	qp = ib_create_qp_user(m->ibdev, pd, &init, &udata, NULL, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(qp));
	KUNIT_EXPECT_PTR_EQ(test, current, qp->res.task);
	KUNIT_EXPECT_EQ(test, 0, ib_destroy_qp_user(qp, &udata));
	mock_fail(m, MOCK_create_qp, -ENOSPC);
	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-ENOSPC),
			    ib_create_qp_user(m->ibdev, pd, &init, &udata, NULL, NULL));
	KUNIT_EXPECT_EQ(test, before, refcount_read(&current->usage));
}

/* --- addresses ------------------------------------------------------------------------ */

#define FOUND_MAC { 0x02, 0, 0, 0, 0, 0x77 }

static int find_mac(const union ib_gid *sgid, const union ib_gid *dgid, u8 *mac,
		    const struct ib_gid_attr *sgid_attr, int *hop_limit)
{
	static const u8 found[] = FOUND_MAC;

	ether_addr_copy(mac, found);
	*hop_limit = 3;
	return 0;
}

static const struct ib_addr_ops finder = { .owner = THIS_MODULE, .find_mac = find_mac };

/* A path for which no Ethernet address is found without @finder. */
static const struct rdma_ah_attr nowhere = {
	.type = RDMA_AH_ATTR_TYPE_ROCE, .port_num = 1, .ah_flags = IB_AH_GRH,
	.grh.dgid.raw = { [10] = 0xff, 0xff, 10, 0, 0, 7 },
};

static void path_of_process_gets_its_ethernet_address(struct kunit *test)
{
	struct mock *m = mock_up_eth(test, "kvtm_a", kvt_netdev(test));
	struct ib_pd *pd = kvt_pd(test, m->ibdev);
	struct rdma_ah_attr attr = nowhere;
	static const u8 found[] = FOUND_MAC;
	struct ib_udata udata = {};
	struct ib_ah *ah;

	KUNIT_EXPECT_PTR_EQ(test, ERR_PTR(-EHOSTUNREACH), rdma_create_user_ah(pd, &attr, &udata));
	ib_set_addr_ops(&finder);
	ah = rdma_create_user_ah(pd, &attr, &udata);
	ib_set_addr_ops(NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ah));
	KUNIT_EXPECT_TRUE(test, ether_addr_equal(attr.roce.dmac, found));
	KUNIT_EXPECT_EQ(test, 3, attr.grh.hop_limit);
	KUNIT_EXPECT_EQ(test, 0, rdma_destroy_ah_user(ah, RDMA_DESTROY_AH_SLEEPABLE, &udata));

	/*
	 * 239.1.2.3: the group's Ethernet address follows from it; also for an address
	 * handle of ib_umad.
	 */
	memcpy(attr.grh.dgid.raw + 12, ((u8 []){ 239, 1, 2, 3 }), 4);
	ah = rdma_create_user_ah(pd, &attr, NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ah));
	KUNIT_EXPECT_TRUE(test, ether_addr_equal(attr.roce.dmac, (u8 []){ 1, 0, 0x5e, 1, 2, 3 }));
	KUNIT_EXPECT_EQ(test, 0, rdma_destroy_ah_user(ah, RDMA_DESTROY_AH_SLEEPABLE, &udata));
}

static struct ib_qp *qp_of_type(struct kunit *test, struct mock *m, enum ib_qp_type type)
{
	struct ib_cq *cq = kvt_cq(test, m->ibdev, 4, IB_POLL_DIRECT);
	struct ib_qp_init_attr init;

	kvt_qp_init(&init, cq, cq);
	init.qp_type = type;
	return kvt_qp(test, kvt_pd(test, m->ibdev), &init);
}

/* What the caller brought stays the caller's, even if the other path is not found. */
static void failed_look_up_keeps_the_source_of_the_alternate_path(struct kunit *test)
{
	struct mock *m = mock_up_eth(test, "kvtm_a", kvt_netdev(test));
	struct ib_qp *qp = qp_of_type(test, m, IB_QPT_RC);
	const struct ib_gid_attr *source = rdma_get_gid_attr(m->ibdev, 1, 0);
	struct ib_qp_attr attr = { .ah_attr = nowhere, .alt_ah_attr = nowhere };
	struct ib_udata udata = {};

	KUNIT_ASSERT_FALSE(test, IS_ERR(source));
	attr.alt_ah_attr.grh.sgid_attr = source;
	KUNIT_EXPECT_EQ(test, -EHOSTUNREACH,
			ib_modify_qp_with_udata(qp, &attr, IB_QP_AV | IB_QP_ALT_PATH, &udata));
	KUNIT_ASSERT_PTR_EQ(test, source, attr.alt_ah_attr.grh.sgid_attr);
	rdma_put_gid_attr(source);
}

/* Nobody uses it: the driver is asked, and refuses it. */
static void path_of_a_datagram_qp_is_not_looked_up(struct kunit *test)
{
	struct mock *m = mock_up_eth(test, "kvtm_a", kvt_netdev(test));
	struct ib_qp *qp = qp_of_type(test, m, IB_QPT_UD);
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .ah_attr = nowhere };
	struct ib_udata udata = {};

	KUNIT_EXPECT_EQ(test, -EINVAL,
			ib_modify_qp_with_udata(qp, &attr, IB_QP_STATE | IB_QP_AV, &udata));
	KUNIT_EXPECT_EQ(test, 1, mock_calls(m, MOCK_modify_qp));
}

/* --- what RDMA netlink asks ------------------------------------------------------------- */

static void devices_are_walked_through(struct kunit *test)
{
	struct mock *a = mock_up(test, "kvtm_a"), *b = mock_up(test, "kvtm_b");
	unsigned int found_a = 0, found_b = 0;
	struct ib_device *dev;
	u32 index;

	for (index = 0; (dev = ib_device_get_next(&index)); index++) {
		KUNIT_EXPECT_EQ(test, dev->index, index);
		found_a += dev == a->ibdev;
		found_b += dev == b->ibdev;
		ib_device_put(dev);
	}
	KUNIT_EXPECT_EQ(test, 1, found_a);
	KUNIT_EXPECT_EQ(test, 1, found_b);
}

static int answer(struct ib_client *client, struct ib_device *dev, void *data, void *arg)
{
	return dev == arg && (data || !dev) ? 7 : -EINVAL;
}

static void clients_are_called_by_name(struct kunit *test)
{
	struct kvt_client *c = kvt_client_new(test, "kvtc_a", kvt_trace_new(test));
	struct mock *m = mock_up(test, "kvtm_a");

	KUNIT_ASSERT_EQ(test, 0, kvt_client_register(c));
	ib_set_client_data(m->ibdev, &c->client, c);
	KUNIT_EXPECT_EQ(test, 7, ib_call_client(m->ibdev, "kvtc_a", answer, m->ibdev));
	KUNIT_EXPECT_EQ(test, 7, ib_call_client(NULL, "kvtc_a", answer, NULL));
	KUNIT_EXPECT_EQ(test, -ENOENT, ib_call_client(m->ibdev, "kvtc_b", answer, NULL));
	KUNIT_EXPECT_EQ(test, -ENOENT, ib_call_client(NULL, "kvtc_b", answer, NULL));
}

static struct kunit_case core_user_cases[] = {
	KUNIT_CASE(entries_do_not_overlap),
	KUNIT_CASE(gaps_in_a_range_are_found),
	KUNIT_CASE(removed_entry_keeps_its_place_while_it_is_held),
	KUNIT_CASE(mapping_is_shared_and_whole),
	KUNIT_CASE(object_holds_its_process_until_it_is_gone),
	KUNIT_CASE(object_in_use_is_busy_in_silence),
	KUNIT_CASE(object_that_was_not_made_lets_its_process_go),
	KUNIT_CASE(adopted_cq_has_its_handlers_called),
	KUNIT_CASE(adopted_cq_that_was_not_made_ends_at_once),
	KUNIT_CASE(extended_connections_are_refused),
	KUNIT_CASE(qp_of_process_is_listed_with_it),
	KUNIT_CASE(path_of_process_gets_its_ethernet_address),
	KUNIT_CASE(failed_look_up_keeps_the_source_of_the_alternate_path),
	KUNIT_CASE(path_of_a_datagram_qp_is_not_looked_up),
	KUNIT_CASE(devices_are_walked_through),
	KUNIT_CASE(clients_are_called_by_name),
	{}
};
KVT_SUITE(core_user);
