// SPDX-License-Identifier: GPL-2.0-only
/*
 * Compares kverbs_p2pdma_route() with pci_p2pdma_distance_many() of kernels that have
 * CONFIG_PCI_P2PDMA, for all PCI functions of the machine and for random PCI trees.
 */

#define KVERBS_P2PDMA_NO_NAMES
#include <kverbs/p2pdma.h>
#include "lib/lib.h"
#include "p2p/tree.h"

#define TREES	100
#define ROWS	16

static void compare(struct kunit *test, struct pci_dev *provider, struct pci_dev *client)
{
	struct device *dev = &client->dev;
	struct kverbs_p2pdma_route route;
	int distance = pci_p2pdma_distance_many(provider, &dev, 1, false);

	kverbs_p2pdma_route(provider, dev, &route);
	KUNIT_EXPECT_EQ_MSG(test, distance,
			    route.map == KVERBS_P2PDMA_REFUSED ? -1 : route.hops,
			    "from %s to %s: %s", pci_name(client), pci_name(provider),
			    kverbs_p2pdma_why_msg(route.why));
}

static void need_kernel(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_PCI_P2PDMA))
		kunit_skip(test, "this kernel does not know the rules");
}

static void kernel_agrees_on_all_functions_of_the_machine(struct kunit *test)
{
	struct pci_dev *provider = NULL, *client = NULL;
	int pairs = 0;

	need_kernel(test);
	for_each_pci_dev(provider) {
		for_each_pci_dev(client) {
			compare(test, provider, client);
			pairs++;
		}
	}
	KUNIT_EXPECT_GT(test, pairs, 0);
}

/* --- random trees ------------------------------------------------------------------ */

/* Host bridges: some route to other host bridges, some only within, some are not known. */
static const u16 host_ids[] = { 0x2030, 0x09a2, 0x2f00, 0x3c01, 0x1237 };

/* Picks the parent of @row: a bridge in an earlier row, or a host bridge. */
static int draw_up(const struct p2p_fn *fns, int row, u32 *rand)
{
	int up = kvt_rand(rand) % (row + P2P_TREE_HOSTS) - P2P_TREE_HOSTS;

	while (up >= 0 && (fns[up].kind == P2P_ENDPOINT || fns[up].kind == P2P_INTEGRATED))
		up--;
	return up;
}

static enum p2p_kind draw_kind(const struct p2p_fn *fns, int up, u32 *rand)
{
	if (up < 0)
		return kvt_rand(rand) % 4 ? P2P_ROOT_PORT : P2P_INTEGRATED;
	if (fns[up].kind == P2P_UPSTREAM)
		return P2P_DOWNSTREAM;
	return kvt_rand(rand) % 3 ? P2P_ENDPOINT : P2P_UPSTREAM;
}

/*
 * Sets the devfn of @row to the first free one below its parent; returns false if there is
 * none. There is one slot with eight functions below a port, and an upstream port shares it
 * with no other function.
 */
static bool draw_place(struct p2p_fn *fns, int row)
{
	struct p2p_fn *fn = &fns[row];
	bool port = fn->up >= 0 && fns[fn->up].kind != P2P_UPSTREAM;
	int i, siblings = 0;

	for (i = 0; i < row; i++) {
		if (fns[i].up != fn->up)
			continue;
		if (port && fns[i].kind == P2P_UPSTREAM)
			return false;
		siblings++;
	}
	if (fn->kind == P2P_UPSTREAM && siblings)
		return false;
	fn->devfn = port ? PCI_DEVFN(0, siblings) : PCI_DEVFN(siblings, 0);
	return !port || siblings < 8;
}

static void draw_fn(struct p2p_fn *fns, int row, u32 *rand)
{
	struct p2p_fn *fn = &fns[row];

	do {
		*fn = (struct p2p_fn){ .up = draw_up(fns, row, rand) };
		fn->kind = draw_kind(fns, fn->up, rand);
	} while (!draw_place(fns, row));
	if (fn->up < 0 && kvt_rand(rand) % 4) {
		fn->vendor = PCI_VENDOR_ID_INTEL;
		fn->device = host_ids[kvt_rand(rand) % ARRAY_SIZE(host_ids)];
	}
	/* Most functions do not redirect: otherwise hardly any route would avoid the root. */
	if (kvt_rand(rand) % 8 == 0)
		fn->acs = kvt_rand(rand) & 0x7f;
	else if (kvt_rand(rand) % 8 == 0)
		fn->acs = P2P_NO_ACS;
}

static void compare_all(struct kunit *test, struct p2p_tree *tree)
{
	int i, j;

	for (i = 0; i < tree->nr; i++)
		for (j = 0; j < tree->nr; j++)
			compare(test, tree->pdev[i], tree->pdev[j]);
}

static void kernel_agrees_on_any_tree(struct kunit *test)
{
	u64 count = kvt_count(TREES), i;
	struct p2p_fn fns[ROWS];
	struct p2p_tree *tree;
	u32 rand;
	int row;

	need_kernel(test);
	rand = kvt_seed(test, "trees", count);
	for (i = 0; i < count; i++) {
		for (row = 0; row < ROWS; row++)
			draw_fn(fns, row, &rand);
		tree = p2p_tree_new(test, fns, ROWS);
		p2p_tree_amd(test, 0);
		compare_all(test, tree);
		if (kvt_rand(&rand) % 4 == 0) {
			p2p_tree_amd(test, 0x15 + kvt_rand(&rand) % 5);
			compare_all(test, tree);
		}
		p2p_tree_free(test, tree);
	}
}

static struct kunit_case p2p_kernel_cases[] = {
	KUNIT_CASE(kernel_agrees_on_all_functions_of_the_machine),
	KUNIT_CASE(kernel_agrees_on_any_tree),
	{}
};
KVT_SUITE(p2p_kernel);
