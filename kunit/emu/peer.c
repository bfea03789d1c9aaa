// SPDX-License-Identifier: GPL-2.0-only
/*
 * RDMA to and from the memory of another device, here called a card, and what happens when
 * the card takes its memory back: as soon as the card's invalidation has returned, the
 * software HCA neither reads nor writes the memory. Each kind of access that a connection
 * allows is tried.
 */
#include <linux/cpumask.h>
#include <linux/dma-map-ops.h>
#include <linux/io.h>
#include <linux/pci.h>
#include <linux/smp.h>
#include <linux/swiotlb.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include "emu/peer_rig.h"
#include "emu/window.h"

#define LEN		60000
/* How often memory is taken back, for each kind of traffic. */
#define TIMES		25
/* Memory is taken back within this time after the traffic has begun, in ns. */
#define SPREAD		100000
/* Registrations by each thread while the card takes memory back. */
#define COMERS		1500

KUNIT_ARRAY_PARAM_DESC(use, uses, name);

static const struct use *use_of(struct kunit *test)
{
	return test->param_value;
}

static void expect_success(struct kunit *test, struct traffic *t, u32 len, u32 seed)
{
	len = traffic_len(t, len);
	traffic_fill(t, len, seed);
	KUNIT_ASSERT_EQ(test, 0, traffic_post(t, seed, len));
	traffic_expect(test, t, seed, IB_WC_SUCCESS, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, traffic_arrived(t, len, seed));
}

/* An access fails, and nothing is written to or read from the memory taken back. */
static void expect_gone(struct kunit *test, struct traffic *t)
{
	memset(t->r->a.buf, CARD_FRESH, RIG_BUF);
	memset(t->r->b.buf, CARD_FRESH, RIG_BUF);
	KUNIT_ASSERT_EQ(test, 0, traffic_post(t, 99, traffic_len(t, LEN)));
	traffic_expect(test, t, 99, t->use->want, t->use->want_recv);
	KUNIT_EXPECT_TRUE(test, card_all(t->c, USE_AT, USE_LEN, CARD_POISON));
	KUNIT_EXPECT_TRUE(test, rig_all(t->r->a.buf, RIG_BUF, CARD_FRESH));
	/* An atomic whose result cannot be stored has been executed nevertheless. */
	if (t->use->op != IB_WR_ATOMIC_FETCH_AND_ADD || !t->use->local)
		KUNIT_EXPECT_TRUE(test, rig_all(t->r->b.buf, RIG_BUF, CARD_FRESH));
}

static void memory_of_a_card_is_reached(struct kunit *test)
{
	static const u32 lens[] = { 1, 8, 4000, 40000, LEN };
	struct card *c = card_up(test, false);
	struct traffic *t;
	int i, pair;

	for (pair = 0; pair < ARRAY_SIZE(rig_pairs); pair++) {
		t = traffic_up(test, c, use_of(test), &rig_pairs[pair]);
		for (i = 0; i < ARRAY_SIZE(lens); i++)
			expect_success(test, t, lens[i], i + 1);
	}
}

/* The memory is unmapped by the card or by the registry, and used between each device pair. */
static void memory_that_is_gone_is_an_access_error(struct kunit *test)
{
	struct traffic *t;
	struct card *c;
	int i;

	for (i = 0; i < 2 * ARRAY_SIZE(rig_pairs); i++) {
		c = card_up(test, i & 1);
		t = traffic_up(test, c, use_of(test), &rig_pairs[i / 2]);
		expect_success(test, t, LEN, 1);
		KUNIT_EXPECT_EQ(test, 0, card_take_back(c, 0));
		expect_gone(test, t);
		rig_reconnect(test, t->r);
		expect_gone(test, t);
		KUNIT_EXPECT_LE_MSG(test, card_take_back(c, 0), 0, "once more");
		traffic_end(test, t);
		KUNIT_EXPECT_EQ(test, -ENODEV, card_take_back(c, 0));
		card_end(test, c);
	}
}

/* A thread that uses memory until an access fails. */
struct flood {
	struct traffic *t;
	atomic_t done;		/* WRs that succeeded */
	struct ib_wc wc;	/* completion of the last WR */
};

static int flood(void *arg)
{
	struct flood *f = arg;
	struct traffic *t = f->t;
	u64 end = ktime_get_ns() + jiffies_to_nsecs(KVT_TIMEOUT);
	u32 len = traffic_len(t, LEN);
	struct ib_wc wc;

	while (ktime_get_ns() < end) {
		if (traffic_post(t, 1, len) || !rig_poll(t->r->a.scq, &f->wc))
			return -EIO;
		if (f->wc.status != IB_WC_SUCCESS)
			return 0;
		if (t->use->op == IB_WR_SEND && !rig_poll(t->r->b.rcq, &wc))
			return -EIO;
		atomic_inc(&f->done);
		kvt_yield();
	}
	return -ETIME;
}

/* Waits until there is traffic, and then for another @ns nanoseconds. */
static void let_it_flow(struct flood *f, struct kvt_thread *thread, u32 ns)
{
	u64 end;

	while (!atomic_read(&f->done) && kvt_thread_running(thread))
		cond_resched();
	end = ktime_get_ns() + ns;
	while (ktime_get_ns() < end)
		cpu_relax();
}

static void take_back_under_traffic(struct kunit *test, struct traffic *t, u32 ns)
{
	struct flood *f = kvt_zalloc(test, sizeof(*f));
	struct kvt_thread *thread;

	f->t = t;
	card_fill(t->c, USE_AT, USE_LEN, CARD_FRESH);
	memset(t->r->a.buf, CARD_FRESH, RIG_BUF);
	memset(t->r->b.buf, CARD_FRESH, RIG_BUF);
	thread = kvt_thread_start(test, kvt_other_cpu(), flood, f);
	let_it_flow(f, thread, ns);

	KUNIT_EXPECT_EQ(test, 0, card_take_back(t->c, 0));
	KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(thread));
	KUNIT_EXPECT_STREQ(test, ib_wc_status_msg(f->wc.status), ib_wc_status_msg(t->use->want));
	KUNIT_EXPECT_TRUE(test, card_all(t->c, USE_AT, USE_LEN, CARD_POISON));
	if (!t->use->into)
		KUNIT_EXPECT_NULL(test, memchr(traffic_host(t), CARD_POISON, traffic_len(t, LEN)));
}

static void memory_is_taken_back_under_traffic(struct kunit *test)
{
	u64 i, n = kvt_count(TIMES);
	u32 seed = kvt_seed(test, "times", 4 * n);
	struct traffic *t;
	struct card *c;
	int kind;

	for (kind = 0; kind < 2 * ARRAY_SIZE(rig_pairs); kind++) {
		c = card_up(test, kind & 1);
		t = traffic_up(test, c, use_of(test), &rig_pairs[kind / 2]);
		for (i = 0; i < n; i++) {
			take_back_under_traffic(test, t, kvt_rand(&seed) % SPREAD);
			traffic_renew(test, t);
		}
		expect_success(test, t, LEN, 7);
		traffic_end(test, t);
		card_end(test, c);
	}
}

/*
 * Other registrations of the same memory, for this connection and for another one, are not
 * affected. This connection works again with its other one, and with a new one.
 */
static void what_is_not_taken_back_lives_on(struct kunit *test)
{
	struct card *c = card_up(test, false);
	struct traffic *gone = traffic_up(test, c, &uses[5], &rig_pairs[1]);
	struct traffic *other = traffic_up(test, c, &uses[5], &rig_pairs[1]);
	struct ib_mr *mr = card_mr(test, c, gone->r->b.pd, USE_AT, USE_LEN);

	KUNIT_EXPECT_EQ(test, 0, card_take_back(c, 2));
	expect_gone(test, gone);
	KUNIT_EXPECT_EQ(test, IB_QPS_RTS, rig_state(other->r->a.qp));
	expect_success(test, other, LEN, 3);

	rig_reconnect(test, gone->r);
	card_mr_end(test, gone->mr);
	gone->mr = mr;
	expect_success(test, gone, LEN, 4);
	gone->mr = card_mr(test, c, gone->r->b.pd, USE_AT, USE_LEN);
	expect_success(test, gone, LEN, 5);
}

/*
 * Windows do not keep memory from being taken back, and are invalidated and unbound as usual
 * then. IBTA vol. 1, C10-75 and 10.6.7.2.
 */
static void windows_of_what_is_gone_end_as_ever(struct kunit *test)
{
	struct card *c = card_up(test, false);
	struct traffic *t = traffic_up(test, c, &uses[10], &rig_pairs[0]);
	struct ib_mw *late = win_new(test, t->r->b.pd, IB_MW_TYPE_2);
	struct ib_mw *mw = win_new(test, t->r->b.pd, IB_MW_TYPE_2);
	struct rig_end *e = &t->r->b;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, win_bind(e, mw, t->mr, 0, 8, PEER_REMOTE, 1));
	RIG_EXPECT_WC(test, e->scq, &wc, 1, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, 0, card_take_back(c, 0));
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_dereg_mr(t->mr));

	KUNIT_ASSERT_EQ(test, 0, rig_inv(e, IB_WR_LOCAL_INV, 2, mw->rkey));
	RIG_EXPECT_WC(test, e->scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, -EINVAL, ib_dereg_mr(t->mr));
	KUNIT_ASSERT_EQ(test, 0, win_bind(e, t->mw, NULL, 0, 0, 0, 3));
	RIG_EXPECT_WC(test, e->scq, &wc, 3, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, 0, win_bind(e, late, t->mr, 0, 8, PEER_REMOTE, 4));
	RIG_EXPECT_WC(test, e->scq, &wc, 4, IB_WC_MW_BIND_ERR);
	traffic_end(test, t);
	KUNIT_EXPECT_EQ(test, -ENODEV, card_take_back(c, 0));
}

/* Sends all of the card's memory in one message. */
static int post_long(struct rig *r, struct ib_mr *mr, struct ib_sge *to)
{
	struct ib_sge from = { mr->iova, mr->length, mr->lkey };
	struct ib_recv_wr recv = { .sg_list = to, .num_sge = 1 };
	struct ib_send_wr wr;

	rig_send_wr(&wr, 1, &from, 1);
	return ib_post_recv(r->b.qp, &recv, NULL) ?: ib_post_send(r->a.qp, &wr, NULL);
}

/* A long message that is posted on another CPU. */
struct long_post {
	struct rig *r;		/* the connection */
	struct ib_mr *mr;	/* region to send from */
	struct ib_sge *to;	/* buffer to receive into */
};

static long post_long_here(void *arg)
{
	struct long_post *post = arg;

	return post_long(post->r, post->mr, post->to);
}

/* Posts on another CPU if there is one: its runner then copies the data, not this CPU's. */
static long post_long_elsewhere(struct rig *r, struct ib_mr *mr, struct ib_sge *to)
{
	struct long_post post = { r, mr, to };
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());

	return cpu < nr_cpu_ids ? work_on_cpu(cpu, post_long_here, &post) :
				  post_long_here(&post);
}

/* Is a message cut short if the memory is taken back after its first byte has arrived? */
static bool long_message_is_cut(struct kunit *test, struct rig *r, struct card *c,
				const struct rig_end *host)
{
	struct ib_sge sge = { host->dma, CARD_SIZE, r->b.pd->local_dma_lkey };
	struct ib_mr *mr = card_mr(test, c, r->a.pd, 0, CARD_SIZE);
	struct ib_wc wc;

	static_assert(CARD_SIZE <= RIG_BLOCK);
	card_fill(c, 0, CARD_SIZE, CARD_FRESH);
	memset(host->buf, 0, CARD_SIZE);
	KUNIT_ASSERT_EQ(test, 0, post_long_elsewhere(r, mr, &sge));
	KUNIT_ASSERT_TRUE(test, kvt_until(READ_ONCE(host->buf[0])));
	KUNIT_EXPECT_EQ(test, 0, card_take_back(c, 0));
	KUNIT_EXPECT_TRUE(test, rig_poll(r->a.scq, &wc));
	KUNIT_EXPECT_NULL(test, memchr(host->buf, CARD_POISON, CARD_SIZE));
	card_mr_end(test, mr);
	return wc.status == IB_WC_LOC_PROT_ERR;
}

static void long_message_does_not_keep_the_memory(struct kunit *test)
{
	struct card *c = card_up(test, false);
	struct rig_end *host = rig_block(test, &rig_new(test, "emu0", "emu1")->b, 0);
	int tries = 400;
	bool cut;

	kvt_need_two_cpus(test);
	/*
	 * A message may be complete before the memory is taken back, mostly on a host
	 * that runs only one of the guest's CPUs at a time.
	 */
	do {
		cut = long_message_is_cut(test, rig_up(test, "emu0", "emu1"), c, host);
	} while (!cut && --tries);
	KUNIT_EXPECT_TRUE(test, cut);
}

/* A thread that registers and deregisters memory. */
struct comer {
	struct rig *r;	/* the thread's connection, whose second end registers */
	struct card *c;
	size_t at;	/* offset in bytes of the page on the card that the thread registers */
	u64 left;	/* registrations still to be made */
	u64 gone;	/* registrations that were taken back while they were used */
};

/* Writes to the region until a write fails, at most 20 times. */
static int comer_use(struct comer *m, struct ib_mr *mr, struct ib_wc *wc)
{
	int n;

	for (n = 0; n < 20; n++) {
		if (rig_rdma(&m->r->a, IB_WR_RDMA_WRITE, n, 0, CARD_PAGE,
			     mr->iova, mr->rkey) ||
		    !rig_poll(m->r->a.scq, wc))
			return -EIO;
		if (wc->status != IB_WC_SUCCESS)
			break;
	}
	return 0;
}

static int comer_reconnect(struct comer *m)
{
	struct rig *r = m->r;

	return rig_to(r->a.qp, IB_QPS_RESET) ?: rig_to(r->b.qp, IB_QPS_RESET) ?:
	       rig_to_init(r, &r->a) ?: rig_to_init(r, &r->b) ?:
	       rig_to_rtr(r, &r->a, &r->b) ?: rig_to_rtr(r, &r->b, &r->a) ?:
	       rig_to_rts(r, &r->a) ?: rig_to_rts(r, &r->b);
}

/* An access error means that the memory has been taken back, or is just being taken back. */
static int comer_check_gone(struct comer *m, const struct ib_wc *wc)
{
	if (wc->status != IB_WC_REM_ACCESS_ERR)
		return -EPROTO;
	if (!kvt_until(card_has_taken_back(m->c, m->at)))
		return -ETIMEDOUT;
	m->gone++;
	return card_all(m->c, m->at, CARD_PAGE, CARD_POISON) ? 0 : -EBADMSG;
}

static int comer_once(struct comer *m)
{
	struct ib_mr *mr = card_reg(m->r->b.pd, m->at, CARD_PAGE);
	struct ib_wc wc;
	int ret;

	/* The memory may be taken back before the registration is complete. */
	if (IS_ERR(mr))
		return PTR_ERR(mr) == -EFAULT ? 0 : PTR_ERR(mr);
	ret = comer_use(m, mr, &wc);
	if (!ret && wc.status != IB_WC_SUCCESS)
		ret = comer_check_gone(m, &wc) ?: comer_reconnect(m);
	return ib_dereg_mr(mr) ?: ret;
}

static int comer(void *arg)
{
	struct comer *m = arg;
	int ret = 0;

	while (m->left && !ret) {
		ret = comer_once(m);
		m->left--;
	}
	return ret;
}

static struct comer *comer_new(struct kunit *test, struct card *c, int nr)
{
	struct comer *m = kvt_zalloc(test, sizeof(*m));

	m->r = rig_up(test, "emu0", nr & 1 ? "emu1" : "emu0");
	memset(m->r->a.buf, CARD_FRESH, RIG_BUF);
	m->c = c;
	m->at = nr * CARD_PAGE;
	return m;
}

static void memory_comes_and_goes(struct kunit *test)
{
	u64 n = kvt_count(COMERS), gone = 0;
	u32 seed = kvt_seed(test, "registrations by each of 3", n);
	struct card *c = card_up(test, seed & 2);
	struct kvt_thread *threads[3];
	int i, ret, rounds = 20;
	struct comer *m[3];

	kvt_need_two_cpus(test);
	for (i = 0; i < ARRAY_SIZE(m); i++)
		m[i] = comer_new(test, c, i);
	/* None may be in use when it is taken back, where a CPU stands still for a whole round. */
	do {
		for (i = 0; i < ARRAY_SIZE(m); i++) {
			m[i]->left = n;
			threads[i] = kvt_thread_start(test, -1, comer, m[i]);
		}
		for (i = 0; i < ARRAY_SIZE(m); i++) {
			while (kvt_thread_running(threads[i])) {
				ret = card_take_back(c, kvt_rand(&seed));
				if (ret && ret != -ENODEV && ret != -ENOENT)
					KUNIT_EXPECT_EQ(test, -EINPROGRESS, ret);
				cond_resched();
			}
			KUNIT_ASSERT_EQ(test, 0, kvt_thread_result(threads[i]));
			gone += m[i]->gone;
		}
	} while (!gone && --rounds);
	kunit_info(test, "%llu were taken back under use\n", gone);
	KUNIT_EXPECT_GT(test, gone, 0);
}

/* Memory of a real PCI device, QEMU's ivshmem. */

static void put_pci(void *arg)
{
	pci_disable_device(arg);
	pci_dev_put(arg);
}

KUNIT_DEFINE_ACTION_WRAPPER(unmap_bar, memunmap, void *);

static struct card *card_on_the_bus(struct kunit *test)
{
	struct pci_dev *pdev = pci_get_device(0x1af4, 0x1110, NULL);
	void *mem;

	if (!pdev)
		return NULL;
	KUNIT_ASSERT_EQ(test, 0, pci_enable_device(pdev));
	kvt_defer(test, put_pci, pdev);
	KUNIT_ASSERT_GE(test, pci_resource_len(pdev, 2), CARD_SIZE);
	mem = KVT_PTR(test, memremap(pci_resource_start(pdev, 2), CARD_SIZE,
				     MEMREMAP_WB | MEMREMAP_WC));
	kvt_defer(test, unmap_bar, mem);
	return card_up_at(test, pci_resource_start(pdev, 2), mem);
}

static void memory_on_the_bus_is_like_any(struct kunit *test)
{
	struct card *c = card_on_the_bus(test);
	struct traffic *t;
	int pair;

	if (!c)
		kunit_skip(test, "no ivshmem device");
	for (pair = 0; pair < ARRAY_SIZE(rig_pairs); pair++) {
		t = traffic_up(test, c, use_of(test), &rig_pairs[pair]);
		expect_success(test, t, LEN, 1);
		KUNIT_EXPECT_EQ(test, 0, card_take_back(c, 0));
		expect_gone(test, t);
		traffic_end(test, t);
	}
}

#if defined(CONFIG_SWIOTLB) && !defined(CONFIG_SWIOTLB_DYNAMIC)
/* Where there is neither memory nor a device, but the CPU could address some. */
#define NOWHERE		BIT_ULL(38)

/* Bounce buffers at the addresses of a card. */
struct bounce {
	struct device *dev;	/* the device that has them */
	struct io_tlb_mem *own;	/* those that it had before */
	struct io_tlb_mem at;	/* the buffers */
};

static void bounce_end(void *arg)
{
	struct bounce *b = arg;

	b->dev->dma_io_tlb_mem = b->own;
}

/* As if the DMA layer had answered the card's dma_map() with a bounce buffer for a page. */
static void bounce_at(struct kunit *test, struct ib_device *ibdev, phys_addr_t phys)
{
	struct bounce *b = kvt_zalloc(test, sizeof(*b));

	b->dev = ibdev->dma_device;
	b->own = b->dev->dma_io_tlb_mem;
	b->at.defpool.start = ALIGN_DOWN(phys, CARD_PAGE);
	b->at.defpool.end = b->at.defpool.start + CARD_PAGE;
	b->dev->dma_io_tlb_mem = &b->at;
	kvt_defer(test, bounce_end, b);
	dma_reset_need_sync(b->dev);
}

KUNIT_DEFINE_ACTION_WRAPPER(free_card_memory, vfree, void *);

static void m10_card_that_maps_a_copy_is_refused(struct kunit *test)
{
	void *mem = KVT_PTR(test, vzalloc(CARD_SIZE));
	struct rig *r = rig_new(test, "emu0", "emu0");
	struct card *c;
	struct ib_mr *mr;

	kvt_defer(test, free_card_memory, mem);
	c = card_up_at(test, NOWHERE, mem);
	mr = card_mr(test, c, r->a.pd, USE_AT, USE_LEN);
	card_mr_end(test, mr);
	/* Its last page: one that is a copy is enough. */
	bounce_at(test, r->a.ibdev, NOWHERE + (card_at(c, USE_AT + USE_LEN - 1) - (u8 *)mem));
	mr = card_reg(r->a.pd, USE_AT, USE_LEN);
	KUNIT_EXPECT_EQ(test, -EIO, PTR_ERR_OR_ZERO(mr));
	if (!IS_ERR(mr))
		ib_dereg_mr(mr);
	/* It was given back. */
	KUNIT_EXPECT_EQ(test, -ENODEV, card_take_back(c, 0));
}
#else
static void m10_card_that_maps_a_copy_is_refused(struct kunit *test)
{
	kunit_skip(test, "no bounce buffers of a kind that can be feigned");
}
#endif

static struct kunit_case emu_peer_cases[] = {
	KUNIT_CASE_PARAM(memory_of_a_card_is_reached, use_gen_params),
	KUNIT_CASE_PARAM(memory_that_is_gone_is_an_access_error, use_gen_params),
	KUNIT_CASE_PARAM(memory_is_taken_back_under_traffic, use_gen_params),
	KUNIT_CASE(what_is_not_taken_back_lives_on),
	KUNIT_CASE(windows_of_what_is_gone_end_as_ever),
	KUNIT_CASE(long_message_does_not_keep_the_memory),
	KUNIT_CASE(memory_comes_and_goes),
	KUNIT_CASE_PARAM(memory_on_the_bus_is_like_any, use_gen_params),
	KUNIT_CASE(m10_card_that_maps_a_copy_is_refused),
	{}
};
KVT_SUITE(emu_peer);

MODULE_DESCRIPTION("kverbs KUnit: memory of another device under the software HCA");
MODULE_LICENSE("GPL");
