// SPDX-License-Identifier: GPL-2.0-only
/*
 * The time that pci_p2pmem_find() takes, and how it grows with the number of providers
 * and clients, and with the depth of the PCI tree. Times are checked only if max_ns is
 * set, which makes sense only under QEMU's -icount: there a nanosecond is an instruction.
 */
#include <linux/list.h>
#include <linux/math64.h>

#include <kverbs/p2pdma.h>
#include "lib/lib.h"
#include "p2p/tree.h"

static unsigned int max_ns;
module_param(max_ns, uint, 0444);
MODULE_PARM_DESC(max_ns,
		 "Max time in ns to find the providers of 64 clients among 64; 0: no limit (default: 0)");

/* Functions of the one slot below each downstream port. */
#define SLOT		8
#define MANY		64
#define FEW		16
#define SLOTS		(2 * MANY / SLOT)
#define SHALLOW		4
#define DEEP		30
/* Limit of the time per pair (or per level of the tree) for many, in percent of that for few. */
#define GROWTH		130

/* Providers and clients below one switch. */
struct crowd {
	/* The table: bridges above the switch, its ports, then providers, then clients. */
	struct p2p_fn fns[P2P_TREE_FNS];
	int nr;		/* number of rows in @fns */
	int first;	/* row of the first provider */
	int depth;	/* number of functions from a root port to a provider or client */
	struct p2p_tree *tree;
};

static int put_fn(struct crowd *c, int up, u8 devfn, enum p2p_kind kind)
{
	c->fns[c->nr] = (struct p2p_fn){ .up = up, .devfn = devfn, .kind = kind };
	return c->nr++;
}

/* Adds a root port and a chain of switches. Returns the upstream port of the last switch. */
static int put_switches(struct crowd *c, int depth)
{
	int up = put_fn(c, P2P_HOST(0), 0, P2P_ROOT_PORT);

	/* The endpoints and their downstream ports are the last two levels. */
	while (c->nr < depth - 2) {
		up = put_fn(c, up, 0, P2P_UPSTREAM);
		if (c->nr < depth - 2)
			up = put_fn(c, up, 0, P2P_DOWNSTREAM);
	}
	return up;
}

/* The first half of the endpoints are providers, the others clients. */
static struct crowd *crowd_new(struct kunit *test, int depth)
{
	struct crowd *c = kvt_zalloc(test, sizeof(*c));
	int up, i;

	c->depth = depth;
	up = put_switches(c, depth);
	KUNIT_ASSERT_EQ(test, P2P_UPSTREAM, c->fns[up].kind);
	for (i = 0; i < SLOTS; i++)
		put_fn(c, up, PCI_DEVFN(i + 1, 0), P2P_DOWNSTREAM);
	c->first = c->nr;
	for (i = 0; i < 2 * MANY; i++)
		put_fn(c, up + 1 + i / SLOT, PCI_DEVFN(0, i % SLOT), P2P_ENDPOINT);
	c->tree = p2p_tree_new(test, c->fns, c->nr);
	for (i = 0; i < MANY; i++)
		p2p_tree_provide(test, c->tree, c->first + i, true);
	return c;
}

static void publish_only(struct crowd *c, int providers)
{
	int i;

	for (i = 0; i < MANY; i++)
		pci_p2pmem_publish(c->tree->pdev[c->first + i], i < providers);
}

/* Time of one pci_p2pmem_find(), in ns. */
static u64 find_once(struct kunit *test, struct crowd *c, int clients)
{
	struct pci_dev *found;
	struct device *client;
	LIST_HEAD(list);
	u64 ns;
	int i;

	for (i = 0; i < clients; i++) {
		client = &c->tree->pdev[c->first + MANY + i]->dev;
		KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_add_client(&list, client));
	}
	ns = ktime_get_ns();
	found = pci_p2pmem_find(&list);
	ns = ktime_get_ns() - ns;
	KUNIT_EXPECT_NOT_NULL(test, found);
	pci_dev_put(found);
	pci_p2pdma_client_list_free(&list);
	return ns;
}

/* The least time of three, since interrupts may prolong some. */
static u64 cost(struct kunit *test, struct crowd *c, int providers, int clients)
{
	u64 ns = U64_MAX;
	int i;

	publish_only(c, providers);
	for (i = 0; i < 3; i++)
		ns = min(ns, find_once(test, c, clients));
	kunit_info(test, "providers=%d clients=%d depth=%d ns=%llu", providers, clients,
		   c->depth, ns);
	return ns;
}

/* The time per pair, or per level of the tree, is about the same for many as for few. */
static void expect_growth(struct kunit *test, u64 few, int nr_few, u64 many, int nr_many)
{
	u64 percent = div64_u64(many * nr_few * 100, max(few * nr_many, 1ULL));

	kunit_info(test, "%d times as many: each costs %llu%%", nr_many / nr_few, percent);
	if (max_ns)
		KUNIT_EXPECT_LE(test, percent, GROWTH);
}

static void find_costs_no_more_a_pair_where_there_are_many(struct kunit *test)
{
	struct crowd *c = crowd_new(test, SHALLOW);
	u64 few = cost(test, c, FEW, FEW);
	u64 all = cost(test, c, MANY, MANY);

	expect_growth(test, few, FEW * FEW, cost(test, c, MANY, FEW), MANY * FEW);
	expect_growth(test, few, FEW * FEW, cost(test, c, FEW, MANY), FEW * MANY);
	expect_growth(test, few, FEW * FEW, all, MANY * MANY);
	if (max_ns)
		KUNIT_EXPECT_LE(test, all, max_ns);
}

static void find_costs_no_more_a_port_where_the_tree_is_deep(struct kunit *test)
{
	struct crowd *c = crowd_new(test, SHALLOW);
	u64 shallow = cost(test, c, MANY, MANY), deep;

	p2p_tree_free(test, c->tree);
	c = crowd_new(test, DEEP);
	deep = cost(test, c, MANY, MANY);
	expect_growth(test, shallow, SHALLOW, deep, DEEP);
	if (max_ns)
		KUNIT_EXPECT_LE(test, deep, max_ns);
}

static struct kunit_case p2p_scale_cases[] = {
	KUNIT_CASE_SLOW(find_costs_no_more_a_pair_where_there_are_many),
	KUNIT_CASE_SLOW(find_costs_no_more_a_port_where_the_tree_is_deep),
	{}
};
KVT_SUITE(p2p_scale);

MODULE_DESCRIPTION("KUnit: what it costs to find peer-to-peer memory");
MODULE_LICENSE("GPL");
