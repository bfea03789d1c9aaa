// SPDX-License-Identifier: GPL-2.0-only
/*
 * One thread makes random calls for P2P providers, their memory, and lists of clients, and
 * compares each result with a model.
 */
#include <linux/bitmap.h>
#include <linux/platform_device.h>
#include <linux/scatterlist.h>
#include <kverbs/p2pdma.h>

#include "p2p/rig.h"

#define OPERATIONS	100000
#define PAGES		(P2P_RIG_SIZE / PAGE_SIZE)
#define PIECES		200
#define LISTS		4
/* Most clients on a list at a time. */
#define CLIENTS		6

/* A device that may provide memory. */
struct model_provider {
	struct pci_dev *pdev;		/* the device */
	bool added;			/* its memory was added as a P2P resource */
	bool published;			/* its memory is published */
	DECLARE_BITMAP(used, PAGES);	/* pages that are allocated */
};

/* A slot for an allocation. */
struct model_piece {
	struct model_provider *from;	/* provider of the memory; NULL if nothing is allocated */
	void *addr;			/* address of the memory */
	size_t size;			/* bytes */
	/* Scatterlist of pci_p2pmem_alloc_sgl(); NULL for memory of pci_alloc_p2pmem(). */
	struct scatterlist *sgl;
};

/* A list of clients. */
struct model_list {
	struct list_head clients;	/* the list */
	struct device *dev[CLIENTS];	/* model: the clients on it, in order */
	int nr;				/* model: number of clients */
	struct pci_dev *bound;		/* model: provider that the list is bound to, or NULL */
};

/* Everything that the operations work on. */
struct model {
	struct kunit *test;			/* the running case */
	u32 rand;				/* state of kvt_rand() */
	int nr;					/* number of providers */
	/* The providers, which are the clients as well. */
	struct model_provider providers[P2P_RIG_MAX];
	struct model_piece pieces[PIECES];	/* allocations */
	struct model_list lists[LISTS];		/* lists of clients */
};

static u32 below(struct model *m, u32 limit)
{
	return kvt_rand(&m->rand) % limit;
}

static struct model_provider *any_provider(struct model *m)
{
	return &m->providers[below(m, m->nr)];
}

static struct model_piece *any_piece(struct model *m)
{
	return &m->pieces[below(m, PIECES)];
}

static struct model_list *any_list(struct model *m)
{
	return &m->lists[below(m, LISTS)];
}

static struct model_provider *provider_of(struct model *m, struct pci_dev *pdev)
{
	int i;

	for (i = 0; i < m->nr; i++)
		if (m->providers[i].pdev == pdev)
			return &m->providers[i];
	return NULL;
}

/* --- memory ------------------------------------------------------------------------ */

/* Mostly up to a page, seldom a multiple of it, and sometimes more than a provider has. */
static size_t any_size(struct model *m)
{
	static const size_t limits[] = {
		PAGE_SIZE, PAGE_SIZE, PAGE_SIZE, SZ_64K, SZ_1M, 2 * P2P_RIG_SIZE,
	};

	return 1 + below(m, limits[below(m, ARRAY_SIZE(limits))]);
}

static bool fits(struct model_provider *p, size_t size)
{
	return p->added && bitmap_find_next_zero_area(p->used, PAGES, 0, PFN_UP(size), 0) < PAGES;
}

static u64 first_page(struct model_provider *p, void *addr)
{
	return (virt_to_phys(addr) - pci_resource_start(p->pdev, P2P_RIG_BAR)) / PAGE_SIZE;
}

static void check_piece(struct model *m, struct model_piece *piece)
{
	struct model_provider *p = piece->from;
	u64 page = first_page(p, piece->addr), nr = PFN_UP(piece->size);

	KUNIT_ASSERT_TRUE(m->test, PAGE_ALIGNED(piece->addr));
	KUNIT_ASSERT_LE(m->test, page + nr, PAGES);
	KUNIT_ASSERT_GE(m->test, find_next_bit(p->used, page + nr, page), page + nr);
	KUNIT_ASSERT_EQ(m->test, pci_bus_address(p->pdev, P2P_RIG_BAR) + page * PAGE_SIZE,
			pci_p2pmem_virt_to_bus(p->pdev, piece->addr));
	bitmap_set(p->used, page, nr);
	*(u64 *)piece->addr = (u64)piece;
}

static void piece_free(struct model *m, struct model_piece *piece)
{
	struct model_provider *p = piece->from;

	if (!p)
		return;
	KUNIT_ASSERT_PTR_EQ(m->test, (void *)piece, (void *)*(u64 *)piece->addr);
	bitmap_clear(p->used, first_page(p, piece->addr), PFN_UP(piece->size));
	if (piece->sgl)
		pci_p2pmem_free_sgl(p->pdev, piece->sgl);
	else
		pci_free_p2pmem(p->pdev, piece->addr, piece->size);
	piece->from = NULL;
}

static void do_alloc(struct model *m)
{
	struct model_piece *piece = any_piece(m);
	struct model_provider *p = any_provider(m);
	size_t size = any_size(m);

	piece_free(m, piece);
	piece->addr = pci_alloc_p2pmem(p->pdev, size);
	KUNIT_ASSERT_EQ_MSG(m->test, fits(p, size), !!piece->addr, "%zu bytes", size);
	if (!piece->addr)
		return;
	piece->from = p;
	piece->size = size;
	piece->sgl = NULL;
	check_piece(m, piece);
}

static void do_alloc_sgl(struct model *m)
{
	struct model_piece *piece = any_piece(m);
	struct model_provider *p = any_provider(m);
	size_t size = any_size(m);
	unsigned int nents = 0;

	piece_free(m, piece);
	piece->sgl = pci_p2pmem_alloc_sgl(p->pdev, &nents, size);
	KUNIT_ASSERT_EQ_MSG(m->test, fits(p, size), !!piece->sgl, "%zu bytes", size);
	if (!piece->sgl)
		return;
	KUNIT_ASSERT_EQ(m->test, 1, nents);
	KUNIT_ASSERT_EQ(m->test, size, piece->sgl->length);
	piece->from = p;
	piece->size = size;
	piece->addr = sg_virt(piece->sgl);
	check_piece(m, piece);
}

static void do_free(struct model *m)
{
	piece_free(m, any_piece(m));
}

/* p2pmem/available in sysfs must be the size of the provider's free pages. */
static void check_available(struct model *m, struct model_provider *p)
{
	char path[64], text[32];
	unsigned long available;

	if (!p->added)
		return;
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/p2pmem/available", pci_name(p->pdev));
	KUNIT_ASSERT_GT(m->test, kvt_read_file(path, text, sizeof(text)), 0);
	KUNIT_ASSERT_EQ(m->test, 0, kstrtoul(text, 0, &available));
	KUNIT_ASSERT_EQ(m->test, available, (PAGES - bitmap_weight(p->used, PAGES)) * PAGE_SIZE);
}

static void do_free_many(struct model *m)
{
	int i = below(m, PIECES);

	while (i--)
		piece_free(m, any_piece(m));
	check_available(m, any_provider(m));
}

/* The scatterlist is mapped if, and only if, the client can reach the provider. */
static void do_map(struct model *m)
{
	struct model_piece *piece = any_piece(m);
	struct device *client = &any_provider(m)->pdev->dev;
	bool reached;
	int nents;

	if (!piece->from || !piece->sgl)
		return;
	reached = pci_p2pdma_distance(piece->from->pdev, client, false) >= 0;
	nents = pci_p2pdma_map_sg(client, piece->sgl, 1, DMA_BIDIRECTIONAL);
	KUNIT_ASSERT_EQ(m->test, reached, nents);
	if (!nents)
		return;
	KUNIT_ASSERT_EQ(m->test, piece->size, sg_dma_len(piece->sgl));
	pci_p2pdma_unmap_sg(client, piece->sgl, 1, DMA_BIDIRECTIONAL);
}

/* --- providers --------------------------------------------------------------------- */

static void do_publish(struct model *m)
{
	struct model_provider *p = any_provider(m);
	bool publish = below(m, 4);

	pci_p2pmem_publish(p->pdev, publish);
	p->published = p->added && publish;
	KUNIT_ASSERT_EQ(m->test, p->published, pci_has_p2pmem(p->pdev));
}

static void do_add(struct model *m)
{
	struct model_provider *p = any_provider(m);
	int err = pci_p2pdma_add_resource(p->pdev, P2P_RIG_BAR, P2P_RIG_SIZE, 0);

	KUNIT_ASSERT_EQ(m->test, p->added ? -EBUSY : 0, err);
	p->added = true;
}

/* Unbinding waits until all memory is freed. It is slow, so this is done one time in 20. */
static void do_rebind(struct model *m)
{
	struct model_provider *p = any_provider(m);
	int i;

	if (below(m, 20))
		return;
	for (i = 0; i < PIECES; i++)
		if (m->pieces[i].from == p)
			piece_free(m, &m->pieces[i]);
	KUNIT_ASSERT_TRUE(m->test, bitmap_empty(p->used, PAGES));
	p2p_rig_unbind(p->pdev);
	p->added = false;
	p->published = false;
	KUNIT_ASSERT_FALSE(m->test, pci_has_p2pmem(p->pdev));
	KUNIT_ASSERT_TRUE(m->test, p2p_rig_bind(p->pdev));
}

/* --- lists ------------------------------------------------------------------------- */

static int client_admitted(struct model *m, struct model_list *list, struct device *dev)
{
	if (!list->bound)
		return 0;
	if (!provider_of(m, list->bound)->published)
		return -ENODEV;
	return pci_p2pdma_distance(list->bound, dev, false) < 0 ? -EXDEV : 0;
}

static void do_add_client(struct model *m)
{
	struct model_list *list = any_list(m);
	struct device *dev = &any_provider(m)->pdev->dev;

	KUNIT_ASSERT_EQ(m->test, -ENODEV, pci_p2pdma_add_client(&list->clients, &platform_bus));
	if (list->nr == CLIENTS)
		return;
	KUNIT_ASSERT_EQ(m->test, client_admitted(m, list, dev),
			pci_p2pdma_add_client(&list->clients, dev));
	if (!client_admitted(m, list, dev))
		list->dev[list->nr++] = dev;
}

static void list_forget(struct model_list *list, int i)
{
	memmove(&list->dev[i], &list->dev[i + 1], (--list->nr - i) * sizeof(list->dev[0]));
	if (!list->nr)
		list->bound = NULL;
}

static void do_remove_client(struct model *m)
{
	struct device *dev = &any_provider(m)->pdev->dev;
	struct model_list *list = any_list(m);
	int i;

	pci_p2pdma_remove_client(&list->clients, dev);
	for (i = 0; i < list->nr; i++) {
		if (list->dev[i] == dev) {
			list_forget(list, i);
			break;
		}
	}
	KUNIT_ASSERT_EQ(m->test, !list->nr, list_empty(&list->clients));
}

static void do_free_list(struct model *m)
{
	struct model_list *list = any_list(m);

	pci_p2pdma_client_list_free(&list->clients);
	list->nr = 0;
	list->bound = NULL;
	KUNIT_ASSERT_TRUE(m->test, list_empty(&list->clients));
}

/* Sum of the distances of @list's clients to @p; -1 if @p cannot be used for @list. */
static int distance(struct model_list *list, struct model_provider *p)
{
	int sum = 0, hops, i;

	for (i = 0; i < list->nr; i++) {
		hops = pci_p2pdma_distance(p->pdev, list->dev[i], false);
		if (hops < 0)
			return -1;
		sum += hops;
	}
	return p->published && list->nr ? sum : -1;
}

static int nearest(struct model *m, struct model_list *list)
{
	int best = -1, d, i;

	for (i = 0; i < m->nr; i++) {
		d = distance(list, &m->providers[i]);
		if (d >= 0 && (best < 0 || d < best))
			best = d;
	}
	return best;
}

static void check_found(struct model *m, struct model_list *list, struct pci_dev *found)
{
	int best = nearest(m, list);

	if (list->bound) {
		KUNIT_ASSERT_PTR_EQ(m->test, found,
				    provider_of(m, list->bound)->published ? list->bound : NULL);
		return;
	}
	KUNIT_ASSERT_EQ(m->test, best >= 0, !!found);
	if (found)
		KUNIT_ASSERT_EQ(m->test, best, distance(list, provider_of(m, found)));
	list->bound = found;
}

static void do_find(struct model *m)
{
	struct model_list *list = any_list(m);
	struct pci_dev *found = pci_p2pmem_find(&list->clients);

	check_found(m, list, found);
	pci_dev_put(found);
}

static void do_find_many(struct model *m)
{
	struct model_list *list = any_list(m);
	struct pci_dev *found = pci_p2pmem_find_many(list->dev, list->nr);
	int best = nearest(m, list);

	if (!list->nr) {
		pci_dev_put(found);
		return;
	}
	KUNIT_ASSERT_EQ(m->test, best >= 0, !!found);
	if (found)
		KUNIT_ASSERT_EQ(m->test, best, distance(list, provider_of(m, found)));
	pci_dev_put(found);
}

static void do_assign(struct model *m)
{
	struct model_list *list = any_list(m);
	struct model_provider *p = any_provider(m);
	bool may = distance(list, p) >= 0 && (!list->bound || list->bound == p->pdev);

	KUNIT_ASSERT_EQ(m->test, may, pci_p2pdma_assign_provider(p->pdev, &list->clients));
	if (may)
		list->bound = p->pdev;
}

static void do_distance(struct model *m)
{
	struct model_list *list = any_list(m);
	struct model_provider *p = any_provider(m);
	int want = -1;

	if (list->nr)
		want = pci_p2pdma_distance_many(p->pdev, list->dev, list->nr, false);
	KUNIT_ASSERT_EQ(m->test, want, pci_p2pdma_distance(p->pdev, &list->clients, false));
}

static void (* const operations[])(struct model *m) = {
	do_alloc, do_alloc, do_alloc, do_alloc, do_alloc, do_alloc_sgl, do_alloc_sgl,
	do_free, do_free, do_free, do_free, do_map, do_map, do_publish, do_add,
	do_rebind, do_add_client, do_add_client, do_remove_client, do_free_list,
	do_find, do_find_many, do_assign, do_distance,
};

static struct model *model_new(struct kunit *test)
{
	struct model *m = kvt_zalloc(test, sizeof(*m));
	struct p2p_rig *rig = p2p_rig_new(test, 1);
	int i;

	m->test = test;
	m->nr = rig->nr;
	for (i = 0; i < m->nr; i++)
		m->providers[i].pdev = rig->pdev[i];
	for (i = 0; i < LISTS; i++)
		INIT_LIST_HEAD(&m->lists[i].clients);
	return m;
}

static void model_end(struct model *m)
{
	int i;

	for (i = 0; i < PIECES; i++)
		piece_free(m, &m->pieces[i]);
	for (i = 0; i < LISTS; i++)
		pci_p2pdma_client_list_free(&m->lists[i].clients);
}

static void everything_is_as_the_model_says(struct kunit *test)
{
	u64 count = kvt_count(OPERATIONS), i;
	struct model *m = model_new(test);

	m->rand = kvt_seed(test, "operations", count);
	for (i = 0; i < count; i++) {
		operations[below(m, ARRAY_SIZE(operations))](m);
		if (!below(m, 500))
			do_free_many(m);
		cond_resched();
	}
	model_end(m);
}

static struct kunit_case p2p_model_cases[] = {
	KUNIT_CASE_SLOW(everything_is_as_the_model_says),
	{}
};
KVT_SUITE(p2p_model);

MODULE_DESCRIPTION("KUnit: peer-to-peer DMA against a model of it");
MODULE_LICENSE("GPL");
