// SPDX-License-Identifier: GPL-2.0-only
/*
 * Peer-to-peer memory under the software HCA: scatter lists that ULPs map, accessed by fast
 * registration and with the local DMA key. The second end uses the memory; its device is
 * placed below a PCI function that has a route to the memory, or below one that has none.
 */
#include <linux/pci.h>
#include <linux/scatterlist.h>
#include <kverbs/delay.h>
#include <kverbs/p2pdma.h>

#include "emu/rig.h"
#include "emu/rig_net.h"
#include "p2p/rig.h"

#define HCA		"kvt_p2p"
#define LEN		(4 * PAGE_SIZE)
/* More than a poster copies itself. */
#define LONG_LEN	(RIG_BUF + PAGE_SIZE)
#define REMOTE		(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ)
#define ACCESS		(IB_ACCESS_LOCAL_WRITE | REMOTE)

/* Memory of a provider at the second end of a connection. */
struct scene {
	struct rig *r;			/* the connection */
	struct pci_dev *provider;	/* the PCI device that provides the memory */
	struct scatterlist *sgl;	/* scatter list of the memory */
	unsigned int nents;		/* entries of @sgl */
	u8 *at;				/* kernel address of the memory */
	bool mapped;			/* @sgl is mapped for the second end's device */
};

static void scene_free(void *arg)
{
	struct scene *s = arg;

	if (s->mapped)
		ib_dma_unmap_sg(s->r->b.ibdev, s->sgl, s->nents, DMA_BIDIRECTIONAL);
	if (s->sgl)
		pci_p2pmem_free_sgl(s->provider, s->sgl);
	s->sgl = NULL;
	s->mapped = false;
}

/* Allocates memory of the provider, in one piece. */
static void scene_alloc(struct kunit *test, struct scene *s, u32 len)
{
	s->sgl = KVT_PTR(test, pci_p2pmem_alloc_sgl(s->provider, &s->nents, len));
	KUNIT_ASSERT_EQ(test, 1, s->nents);
	s->at = sg_virt(s->sgl);
	memset_io((void __iomem *)s->at, 0xee, len);
}

/* @place: PCI function that becomes the parent of the second end's device, or NULL. */
static struct scene *scene_new(struct kunit *test, struct pci_dev *provider, struct pci_dev *place)
{
	struct scene *s = kvt_zalloc(test, sizeof(*s));

	s->provider = provider;
	if (place)
		rig_device_at(test, HCA, pci_name(place));
	s->r = rig_new(test, "emu0", place ? HCA : "emu1");
	rig_start(test, s->r);
	rig_fill(s->r->a.buf, RIG_BUF, 1);
	kvt_defer(test, scene_free, s);
	scene_alloc(test, s, LEN);
	return s;
}

static void scene_map(struct kunit *test, struct scene *s)
{
	KUNIT_ASSERT_EQ(test, s->nents, ib_dma_map_sg(s->r->b.ibdev, s->sgl, s->nents,
						      DMA_BIDIRECTIONAL));
	s->mapped = true;
}

/* Sets the DMA address as a kernel without peer-to-peer DMA would when mapping the list. */
static void scene_map_by_hand(struct scene *s)
{
	sg_dma_address(s->sgl) = sg_phys(s->sgl);
	sg_dma_len(s->sgl) = s->sgl->length;
}

/* The HCA is a child of the provider, which it can reach on any machine. */
static struct scene *scene_near(struct kunit *test)
{
	struct pci_dev *provider = p2p_rig_provider(test);
	struct scene *s = scene_new(test, provider, provider);

	scene_map(test, s);
	return s;
}

/* The HCA is a child of a PCI function that has no route to the provider. */
static struct scene *scene_far(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_up(test, 2);
	struct kverbs_p2pdma_route route;
	int i;

	for (i = 1; i < rig->nr; i++) {
		if (kverbs_p2pdma_route(rig->pdev[0], &rig->pdev[i]->dev, &route))
			return scene_new(test, rig->pdev[0], rig->pdev[i]);
	}
	kunit_skip(test, "each ivshmem device can reach the first");
	return NULL;
}

static struct ib_mr *scene_register(struct kunit *test, struct scene *s)
{
	struct ib_mr *mr = rig_mr(test, s->r->b.pd);
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, s->nents, ib_map_mr_sg(mr, s->sgl, s->nents, NULL, PAGE_SIZE));
	KUNIT_ASSERT_EQ(test, 0, rig_post_reg(&s->r->b, mr, 1, ACCESS));
	RIG_EXPECT_WC(test, s->r->b.scq, &wc, 1, IB_WC_SUCCESS);
	return mr;
}

static bool scene_holds(const struct scene *s, size_t offset, const u8 *want, size_t len)
{
	size_t i;

	/* Byte by byte: device memory can be read that way on any machine. */
	for (i = 0; i < len; i++) {
		if (READ_ONCE(s->at[offset + i]) != want[i])
			return false;
	}
	return true;
}

/* A scatter/gather element of the provider's memory, with the local DMA key. */
static struct ib_sge scene_sge(const struct scene *s, u32 offset, u32 len)
{
	return (struct ib_sge) {
		.addr = sg_dma_address(s->sgl) + offset,
		.length = len,
		.lkey = s->r->b.pd->local_dma_lkey,
	};
}

static int scene_post(struct scene *s, enum ib_wr_opcode op, u64 id, u64 remote, u32 rkey)
{
	struct ib_sge sge = scene_sge(s, 64, 1000);
	struct ib_rdma_wr wr = { .remote_addr = remote, .rkey = rkey };

	rig_send_wr(&wr.wr, id, &sge, 1);
	wr.wr.opcode = op;
	return ib_post_send(s->r->b.qp, &wr.wr, NULL);
}

/* --- with a route to the memory ------------------------------------------------- */

static void fast_region_is_written_and_read(struct kunit *test)
{
	struct scene *s = scene_near(test);
	struct ib_mr *mr = scene_register(test, s);
	struct rig_end *a = &s->r->a;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, rig_rdma(a, IB_WR_RDMA_WRITE, 2, 0, LEN - 3, mr->iova + 3,
					  mr->rkey));
	RIG_EXPECT_WC(test, a->scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, scene_holds(s, 3, a->buf, LEN - 3));
	KUNIT_EXPECT_EQ(test, 0xee, READ_ONCE(s->at[2]));
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(a, IB_WR_RDMA_READ, 3, LEN, LEN, mr->iova, mr->rkey));
	RIG_EXPECT_WC(test, a->scq, &wc, 3, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, rig_all(a->buf + LEN, 3, 0xee));
	KUNIT_EXPECT_MEMEQ(test, a->buf + LEN + 3, a->buf, LEN - 3);
}

static void local_key_serves_rdma(struct kunit *test)
{
	struct scene *s = scene_near(test);
	struct rig_end *a = &s->r->a;
	struct ib_wc wc;

	rig_register(test, a, ACCESS);
	KUNIT_ASSERT_EQ(test, 0, scene_post(s, IB_WR_RDMA_READ, 4, a->mr->iova, a->mr->rkey));
	RIG_EXPECT_WC(test, s->r->b.scq, &wc, 4, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, scene_holds(s, 64, a->buf, 1000));
	KUNIT_EXPECT_EQ(test, 0xee, READ_ONCE(s->at[63]));
	KUNIT_EXPECT_EQ(test, 0xee, READ_ONCE(s->at[1064]));
	KUNIT_ASSERT_EQ(test, 0, scene_post(s, IB_WR_RDMA_WRITE, 5, a->mr->iova + LEN,
					    a->mr->rkey));
	RIG_EXPECT_WC(test, s->r->b.scq, &wc, 5, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, a->buf + LEN, a->buf, 1000);
}

/* A message is received into the provider's memory, and sent from there. */
static void local_key_serves_messages(struct kunit *test)
{
	struct scene *s = scene_near(test);
	struct ib_sge sge = scene_sge(s, 64, 1000);
	struct ib_recv_wr wr = { .wr_id = 6, .sg_list = &sge, .num_sge = 1 };
	struct rig_end *a = &s->r->a;
	struct ib_wc wc;

	KUNIT_ASSERT_EQ(test, 0, ib_post_recv(s->r->b.qp, &wr, NULL));
	KUNIT_ASSERT_EQ(test, 0, rig_send(a, 7, 100, 1000));
	RIG_EXPECT_WC(test, s->r->b.rcq, &wc, 6, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, a->scq, &wc, 7, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, scene_holds(s, 64, a->buf + 100, 1000));
	KUNIT_ASSERT_EQ(test, 0, rig_recv(a, 8, LEN, 1000));
	KUNIT_ASSERT_EQ(test, 0, scene_post(s, IB_WR_SEND, 9, 0, 0));
	RIG_EXPECT_WC(test, a->rcq, &wc, 8, IB_WC_SUCCESS);
	RIG_EXPECT_WC(test, s->r->b.scq, &wc, 9, IB_WC_SUCCESS);
	KUNIT_EXPECT_MEMEQ(test, a->buf + LEN, a->buf + 100, 1000);
}

struct post {
	struct scene *s;
	int ret;
};

static void post_write(void *arg)
{
	struct post *post = arg;
	struct rig_end *a = &post->s->r->a;

	post->ret = scene_post(post->s, IB_WR_RDMA_WRITE, 10, a->mr->iova + LEN, a->mr->rkey);
}

/* The HCA looks for the route at the first use of the memory, in whatever context that is. */
static void first_use_is_from_any_context(struct kunit *test)
{
	void (*const run[])(void (*fn)(void *arg), void *arg) = {
		kvt_run_in_hardirq, kvt_run_in_softirq,
	};
	struct pci_dev *provider = p2p_rig_provider(test);
	struct post post;
	struct ib_wc wc;
	int i;

	for (i = 0; i < ARRAY_SIZE(run); i++) {
		post.s = scene_new(test, provider, i ? NULL : provider);
		if (i) {
			/* In softirq context, without a route: the access must fail. */
			scene_map_by_hand(post.s);
		} else {
			scene_map(test, post.s);
		}
		rig_register(test, &post.s->r->a, ACCESS);
		run[i](post_write, &post);
		KUNIT_ASSERT_EQ(test, 0, post.ret);
		RIG_EXPECT_WC(test, post.s->r->b.scq, &wc, 10,
			      i ? IB_WC_LOC_PROT_ERR : IB_WC_SUCCESS);
	}
}

struct look {
	bool done;
	bool reader;
};

static void look_at_rcu(void *arg)
{
	struct look *look = arg;

	look->reader = !preemptible() || rcu_preempt_depth();
	/* release: pairs with the acquire of the waiter */
	smp_store_release(&look->done, true);
}

static void look_at_next_page(void *arg)
{
	kverbs_delay_set_any("emu_p2p_span", look_at_rcu, arg);
}

/* With preemption on, a work item copies it, and looks for the memory page by page. */
static void long_message_finds_memory_as_an_rcu_reader(struct kunit *test)
{
	struct scene *s = scene_near(test);
	u32 quarter = LONG_LEN / RIG_SGE;
	struct rig_end *a = &s->r->a;
	struct ib_rdma_wr wr = {};
	struct ib_sge sge[RIG_SGE];
	struct look look = {};
	struct ib_wc wc;
	struct ib_mr *mr;
	int i;

	if (!IS_ENABLED(CONFIG_PREEMPT_RCU))
		kunit_skip(test, "readers cannot be told from others on this kernel");
	scene_free(s);
	scene_alloc(test, s, LONG_LEN);
	scene_map(test, s);
	mr = scene_register(test, s);
	for (i = 0; i < RIG_SGE; i++)
		sge[i] = rig_sge(a, i * SZ_1K, quarter);
	rig_send_wr(&wr.wr, 2, sge, RIG_SGE);
	wr.wr.opcode = IB_WR_RDMA_WRITE;
	wr.remote_addr = mr->iova;
	wr.rkey = mr->rkey;
	kverbs_delay_set_any("emu_copy_long", look_at_next_page, &look);
	KUNIT_EXPECT_EQ(test, 0, ib_post_send(a->qp, &wr.wr, NULL));
	RIG_EXPECT_WC(test, a->scq, &wc, 2, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, kverbs_delay_clear());
	/* acquire: pairs with the release in look_at_rcu() */
	KUNIT_EXPECT_TRUE(test, smp_load_acquire(&look.done));
	KUNIT_EXPECT_TRUE(test, look.reader);
	for (i = 0; i < RIG_SGE; i++)
		KUNIT_EXPECT_TRUE(test, scene_holds(s, i * quarter, a->buf + i * SZ_1K, quarter));
}

/* An access that extends one byte beyond the end of the memory fails. */
static void memory_ends_where_it_ends(struct kunit *test)
{
	struct scene *s = scene_near(test);
	struct rig_end *a = &s->r->a;
	u64 end = pci_resource_end(s->provider, P2P_RIG_BAR) + 1;
	struct ib_wc wc;

	rig_register(test, a, ACCESS);
	KUNIT_ASSERT_EQ(test, 0, scene_post(s, IB_WR_RDMA_READ, 11, a->mr->iova, a->mr->rkey));
	RIG_EXPECT_WC(test, s->r->b.scq, &wc, 11, IB_WC_SUCCESS);
	sg_dma_address(s->sgl) = end - 64 - 999;
	KUNIT_ASSERT_EQ(test, 0, scene_post(s, IB_WR_RDMA_READ, 12, a->mr->iova, a->mr->rkey));
	RIG_EXPECT_WC(test, s->r->b.scq, &wc, 12, IB_WC_LOC_PROT_ERR);
	sg_dma_address(s->sgl) = sg_phys(s->sgl);
}

/* --- without a route ---------------------------------------------------------------- */

static void without_a_place_nothing_is_mapped(struct kunit *test)
{
	struct pci_dev *provider = p2p_rig_provider(test);
	struct scene *s = scene_new(test, provider, NULL);
	struct ib_device *ibdev = s->r->b.ibdev;
	struct sg_table sgt = { .sgl = s->sgl, .nents = s->nents, .orig_nents = s->nents };

	KUNIT_EXPECT_FALSE(test, ib_dma_pci_p2p_dma_supported(ibdev));
	KUNIT_EXPECT_EQ(test, 0, ib_dma_map_sg(ibdev, s->sgl, s->nents, DMA_BIDIRECTIONAL));
	KUNIT_EXPECT_EQ(test, -EREMOTEIO,
			ib_dma_map_sgtable_attrs(ibdev, &sgt, DMA_BIDIRECTIONAL, 0));
}

static void with_a_place_it_is_supported(struct kunit *test)
{
	struct scene *s = scene_near(test);

	KUNIT_EXPECT_TRUE(test, ib_dma_pci_p2p_dma_supported(s->r->b.ibdev));
	KUNIT_EXPECT_FALSE(test, ib_dma_pci_p2p_dma_supported(s->r->a.ibdev));
}

/* A list that was mapped by other means does not give the HCA access to the memory. */
static void expect_no_access(struct kunit *test, struct scene *s)
{
	struct rig_end *a = &s->r->a;
	struct ib_mr *mr;
	struct ib_wc wc;

	scene_map_by_hand(s);
	mr = scene_register(test, s);
	KUNIT_ASSERT_EQ(test, 0, rig_rdma(a, IB_WR_RDMA_WRITE, 13, 0, LEN, mr->iova, mr->rkey));
	RIG_EXPECT_WC(test, a->scq, &wc, 13, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, 0xee, READ_ONCE(s->at[0]));
}

static void without_a_place_nothing_is_reached(struct kunit *test)
{
	expect_no_access(test, scene_new(test, p2p_rig_provider(test), NULL));
}

static void without_a_way_nothing_is_mapped(struct kunit *test)
{
	struct scene *s = scene_far(test);

	KUNIT_EXPECT_EQ(test, 0, ib_dma_map_sg(s->r->b.ibdev, s->sgl, s->nents, DMA_BIDIRECTIONAL));
}

static void without_a_way_nothing_is_reached(struct kunit *test)
{
	expect_no_access(test, scene_far(test));
}

/* --- the provider is unbound -------------------------------------------------------- */

static void on_remove_free(struct p2p_rig *rig, struct pci_dev *pdev)
{
	struct scene *s = rig->arg;

	if (pdev == s->provider)
		scene_free(s);
}

/* Runs before the scene is freed: the PCI devices are unbound only after that. */
static void forget_scene(void *arg)
{
	struct p2p_rig *rig = arg;

	rig->on_remove = NULL;
}

static int on_probe_provide(struct p2p_rig *rig, struct pci_dev *pdev)
{
	int err = pci_p2pdma_add_resource(pdev, P2P_RIG_BAR, 0, 0);

	if (!err)
		pci_p2pmem_publish(pdev, true);
	return err;
}

/*
 * The provider that the HCA has found can still be unbound, and is found again when it is
 * bound again.
 */
static void provider_comes_and_goes(struct kunit *test)
{
	struct p2p_rig *rig = p2p_rig_up(test, 1);
	struct scene *s = scene_new(test, rig->pdev[0], rig->pdev[0]);
	struct rig_end *a = &s->r->a;
	struct scatterlist old;
	struct ib_wc wc;

	rig->arg = s;
	rig->on_remove = on_remove_free;
	kvt_defer(test, forget_scene, rig);
	rig->on_probe = on_probe_provide;
	rig_register(test, a, ACCESS);
	scene_map(test, s);
	KUNIT_ASSERT_EQ(test, 0, scene_post(s, IB_WR_RDMA_READ, 14, a->mr->iova, a->mr->rkey));
	RIG_EXPECT_WC(test, s->r->b.scq, &wc, 14, IB_WC_SUCCESS);
	old = *s->sgl;
	p2p_rig_unbind(rig->pdev[0]);
	KUNIT_EXPECT_NULL(test, s->sgl);

	KUNIT_ASSERT_TRUE(test, p2p_rig_bind(rig->pdev[0]));
	scene_alloc(test, s, LEN);
	scene_map(test, s);
	KUNIT_EXPECT_EQ(test, sg_dma_address(&old), sg_dma_address(s->sgl));
	KUNIT_ASSERT_EQ(test, 0, scene_post(s, IB_WR_RDMA_READ, 15, a->mr->iova, a->mr->rkey));
	RIG_EXPECT_WC(test, s->r->b.scq, &wc, 15, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, scene_holds(s, 64, a->buf, 1000));

	/* Without a provider, the address is not known as peer-to-peer memory. */
	old = *s->sgl;
	p2p_rig_unbind(rig->pdev[0]);
	s->sgl = &old;
	KUNIT_EXPECT_EQ(test, 0, scene_post(s, IB_WR_RDMA_READ, 16, a->mr->iova, a->mr->rkey));
	s->sgl = NULL;
	RIG_EXPECT_WC(test, s->r->b.scq, &wc, 16, IB_WC_LOC_PROT_ERR);
	KUNIT_ASSERT_TRUE(test, p2p_rig_bind(rig->pdev[0]));
}

static struct kunit_case emu_p2p_cases[] = {
	KUNIT_CASE(fast_region_is_written_and_read),
	KUNIT_CASE(local_key_serves_rdma),
	KUNIT_CASE(local_key_serves_messages),
	KUNIT_CASE(first_use_is_from_any_context),
	KUNIT_CASE(long_message_finds_memory_as_an_rcu_reader),
	KUNIT_CASE(memory_ends_where_it_ends),
	KUNIT_CASE(without_a_place_nothing_is_mapped),
	KUNIT_CASE(with_a_place_it_is_supported),
	KUNIT_CASE(without_a_place_nothing_is_reached),
	KUNIT_CASE(without_a_way_nothing_is_mapped),
	KUNIT_CASE(without_a_way_nothing_is_reached),
	KUNIT_CASE(provider_comes_and_goes),
	{}
};
KVT_SUITE(emu_p2p);

MODULE_DESCRIPTION("kverbs KUnit: peer-to-peer memory under the software HCA");
MODULE_LICENSE("GPL");
