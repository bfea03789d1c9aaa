// SPDX-License-Identifier: GPL-2.0-only
/*
 * Routes in simulated PCI trees: the verdict for each kind of pair of functions, ACS on each
 * port, the host bridges that are known to forward requests, AMD processors, and the policy.
 */
#include <linux/device.h>
#include <linux/platform_device.h>

#include <kverbs/p2pdma.h>
#include "lib/console.h"
#include "lib/lib.h"
#include "p2p/tree.h"

#define POLICY	"/sys/module/kverbs_p2pdma/parameters/policy"

/* Rows of the tree, which has each kind of PCI topology in it. */
enum {
	HOST_A,		/* 00.0: host bridge A is identified by it */
	PORT_1,		/* a root port of A, like PORT_2 */
	FN_0,		/* two functions of a slot */
	FN_1,
	PORT_2,
	UP,		/* a switch */
	DOWN_0,
	DEV_0,
	DOWN_1,
	DEV_1,
	DOWN_2,
	UP_IN,		/* a nested switch, below DOWN_2 */
	DOWN_IN_0,
	DEV_IN_0,
	DOWN_IN_1,
	DEV_IN_1,
	ALONE,		/* an endpoint on A's root bus */
	PORT_B,		/* root port of B: host bridge B is identified by it */
	DEV_B,
	ROWS
};

#define NOWHERE	ROWS

static const struct p2p_fn everything[ROWS] = {
	[HOST_A]	= { P2P_HOST(0), PCI_DEVFN(0, 0), P2P_INTEGRATED },
	[PORT_1]	= { P2P_HOST(0), PCI_DEVFN(1, 0), P2P_ROOT_PORT },
	[FN_0]		= { PORT_1, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[FN_1]		= { PORT_1, PCI_DEVFN(0, 1), P2P_ENDPOINT },
	[PORT_2]	= { P2P_HOST(0), PCI_DEVFN(2, 0), P2P_ROOT_PORT },
	[UP]		= { PORT_2, PCI_DEVFN(0, 0), P2P_UPSTREAM },
	[DOWN_0]	= { UP, PCI_DEVFN(0, 0), P2P_DOWNSTREAM },
	[DEV_0]		= { DOWN_0, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[DOWN_1]	= { UP, PCI_DEVFN(1, 0), P2P_DOWNSTREAM },
	[DEV_1]		= { DOWN_1, PCI_DEVFN(0, 0), P2P_ENDPOINT, P2P_NO_ACS },
	[DOWN_2]	= { UP, PCI_DEVFN(2, 0), P2P_DOWNSTREAM },
	[UP_IN]		= { DOWN_2, PCI_DEVFN(0, 0), P2P_UPSTREAM },
	[DOWN_IN_0]	= { UP_IN, PCI_DEVFN(0, 0), P2P_DOWNSTREAM },
	[DEV_IN_0]	= { DOWN_IN_0, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[DOWN_IN_1]	= { UP_IN, PCI_DEVFN(1, 0), P2P_DOWNSTREAM },
	[DEV_IN_1]	= { DOWN_IN_1, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[ALONE]		= { P2P_HOST(0), PCI_DEVFN(3, 0), P2P_INTEGRATED },
	[PORT_B]	= { P2P_HOST(1), PCI_DEVFN(5, 0), P2P_ROOT_PORT },
	[DEV_B]		= { PORT_B, PCI_DEVFN(0, 0), P2P_ENDPOINT },
};

/* The processor is not taken for AMD's, unless the case says so. */
static struct p2p_tree *everything_new(struct kunit *test)
{
	p2p_tree_amd(test, 0);
	return p2p_tree_new(test, everything, ROWS);
}

static void expect_bridge(struct kunit *test, const struct p2p_tree *tree, int row,
			  const struct kverbs_p2pdma_route *route)
{
	const struct pci_dev *pdev;

	KUNIT_EXPECT_EQ(test, row != NOWHERE, route->has_bridge);
	if (row == NOWHERE)
		return;
	pdev = tree->pdev[row];
	KUNIT_EXPECT_EQ(test, P2P_TREE_DOMAIN, route->domain);
	KUNIT_EXPECT_EQ(test, pdev->bus->number, route->bus);
	KUNIT_EXPECT_EQ(test, pdev->devfn, route->devfn);
}

/* --- each kind of pair, without ACS ---------------------------------------------- */

/* Expected route of a pair. */
struct pair_row {
	const char *what;		/* description, for the name of the case */
	int provider;			/* row of the provider */
	int client;			/* row of the client */
	int hops;			/* distance */
	int bridge;			/* row of the bridge that the route reports, or NOWHERE */
	enum kverbs_p2pdma_why why;	/* the reason for the verdict, which implies the verdict */
};

static const struct pair_row pair_rows[] = {
	{ "one function", DEV_0, DEV_0, 0, DEV_0, KVERBS_P2PDMA_SAME_FUNCTION },
	{ "two functions of a slot", FN_0, FN_1, 2, PORT_1, KVERBS_P2PDMA_COMMON_BRIDGE },
	{ "two slots of a switch", DEV_0, DEV_1, 4, UP, KVERBS_P2PDMA_COMMON_BRIDGE },
	{ "two slots of a nested switch",
	  DEV_IN_0, DEV_IN_1, 4, UP_IN, KVERBS_P2PDMA_COMMON_BRIDGE },
	{ "into a nested switch", DEV_0, DEV_IN_0, 6, UP, KVERBS_P2PDMA_COMMON_BRIDGE },
	{ "out of a nested switch", DEV_IN_1, DEV_1, 6, UP, KVERBS_P2PDMA_COMMON_BRIDGE },
	{ "to the bridge above", DEV_0, DOWN_0, 1, DOWN_0, KVERBS_P2PDMA_COMMON_BRIDGE },
	{ "from the bridge above", UP, DEV_0, 2, UP, KVERBS_P2PDMA_COMMON_BRIDGE },
	{ "two root ports", FN_0, DEV_0, 6, HOST_A, KVERBS_P2PDMA_NOT_LISTED },
	{ "to the root bus", DEV_0, ALONE, 5, HOST_A, KVERBS_P2PDMA_NOT_LISTED },
	{ "on the root bus", ALONE, ALONE, 0, ALONE, KVERBS_P2PDMA_SAME_FUNCTION },
	{ "two functions of the root bus", ALONE, HOST_A, 2, HOST_A, KVERBS_P2PDMA_NOT_LISTED },
	{ "two host bridges", DEV_IN_0, DEV_B, 8, HOST_A, KVERBS_P2PDMA_NOT_LISTED },
	{ "two host bridges, back", DEV_B, FN_1, 4, PORT_B, KVERBS_P2PDMA_NOT_LISTED },
};

KUNIT_ARRAY_PARAM_DESC(pair, pair_rows, what);

static void pair_has_its_route(struct kunit *test)
{
	const struct pair_row *row = test->param_value;
	struct p2p_tree *tree = everything_new(test);
	struct pci_dev *provider = tree->pdev[row->provider];
	struct device *client = &tree->pdev[row->client]->dev;
	struct kverbs_p2pdma_route route;
	bool refused = row->why == KVERBS_P2PDMA_NOT_LISTED;

	KUNIT_EXPECT_EQ(test, refused ? -EREMOTEIO : 0,
			kverbs_p2pdma_route(provider, client, &route));
	KUNIT_EXPECT_EQ(test, refused ? KVERBS_P2PDMA_REFUSED : KVERBS_P2PDMA_BUS_ADDR, route.map);
	KUNIT_EXPECT_EQ(test, row->why, route.why);
	KUNIT_EXPECT_EQ(test, row->hops, route.hops);
	KUNIT_EXPECT_EQ(test, 0, route.acs_ports);
	expect_bridge(test, tree, row->bridge, &route);
	KUNIT_EXPECT_EQ(test, refused ? -1 : row->hops,
			kverbs_p2pdma_distance_many(provider, &client, 1, false));
}

/* --- which devices can be clients ------------------------------------------------ */

static void device_without_pci_has_no_route(struct kunit *test)
{
	struct p2p_tree *tree = everything_new(test);
	struct device *root = KVT_PTR(test, root_device_register("kvt_p2p"));
	struct kverbs_p2pdma_route route;

	KUNIT_EXPECT_EQ(test, -ENODEV, kverbs_p2pdma_route(tree->pdev[DEV_0], root, &route));
	KUNIT_EXPECT_EQ(test, KVERBS_P2PDMA_REFUSED, route.map);
	KUNIT_EXPECT_EQ(test, KVERBS_P2PDMA_NOT_PCI, route.why);
	KUNIT_EXPECT_EQ(test, -1, route.hops);
	KUNIT_EXPECT_FALSE(test, route.has_bridge);
	KUNIT_EXPECT_EQ(test, -1, kverbs_p2pdma_distance_many(tree->pdev[DEV_0], &root, 1, true));
	root_device_unregister(root);
}

static void device_below_a_function_has_its_route(struct kunit *test)
{
	struct p2p_tree *tree = everything_new(test);
	struct kverbs_p2pdma_route route;
	struct platform_device *child;

	child = KVT_PTR(test, platform_device_register_data(&tree->pdev[DEV_1]->dev, "kvt_p2p",
							    PLATFORM_DEVID_AUTO, NULL, 0));
	KUNIT_EXPECT_EQ(test, 0, kverbs_p2pdma_route(tree->pdev[DEV_0], &child->dev, &route));
	KUNIT_EXPECT_EQ(test, 4, route.hops);
	KUNIT_EXPECT_EQ(test, KVERBS_P2PDMA_BUS_ADDR, route.map);
	platform_device_unregister(child);
}

/* --- ACS ------------------------------------------------------------------------- */

/* The functions on the way from DEV_0 to DEV_IN_0, in this order. */
static const int way[] = { DEV_0, DOWN_0, UP, DOWN_2, UP_IN, DOWN_IN_0, DEV_IN_0 };

static bool is_on_way(int row)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(way); i++)
		if (way[i] == row)
			return true;
	return false;
}

/* Sets the ACS control of one port to @acs, and checks the route from DEV_0 to DEV_IN_0. */
static void try_acs(struct kunit *test, struct p2p_tree *tree, int row, u16 acs)
{
	bool redirects = acs & (PCI_ACS_RR | PCI_ACS_CR | PCI_ACS_EC);
	struct kverbs_p2pdma_route route;

	p2p_tree_set_acs(tree, row, acs);
	if (redirects && is_on_way(row)) {
		KUNIT_EXPECT_EQ_MSG(test, -EREMOTEIO,
				    kverbs_p2pdma_route(tree->pdev[DEV_0],
							&tree->pdev[DEV_IN_0]->dev, &route),
				    "row %d, acs %#x", row, acs);
		KUNIT_EXPECT_EQ(test, KVERBS_P2PDMA_ACS, route.why);
		KUNIT_EXPECT_EQ(test, 1, route.acs_ports);
		expect_bridge(test, tree, row, &route);
	} else {
		KUNIT_EXPECT_EQ_MSG(test, 0,
				    kverbs_p2pdma_route(tree->pdev[DEV_0],
							&tree->pdev[DEV_IN_0]->dev, &route),
				    "row %d, acs %#x", row, acs);
		KUNIT_EXPECT_EQ(test, KVERBS_P2PDMA_BUS_ADDR, route.map);
		KUNIT_EXPECT_EQ(test, 0, route.acs_ports);
		expect_bridge(test, tree, UP, &route);
	}
	KUNIT_EXPECT_EQ(test, 6, route.hops);
	p2p_tree_set_acs(tree, row, 0);
}

static void each_acs_bit_counts_on_each_port_of_the_way(struct kunit *test)
{
	struct p2p_tree *tree = everything_new(test);
	int row, bit;

	for (row = 0; row < ROWS; row++)
		for (bit = 0; bit < 7; bit++)
			try_acs(test, tree, row, BIT(bit));
}

static void ports_that_redirect_are_counted(struct kunit *test)
{
	struct p2p_tree *tree = everything_new(test);
	struct kverbs_p2pdma_route route;
	int i;

	/* From the client to the provider: the port set last is then the first one reported. */
	for (i = ARRAY_SIZE(way) - 1; i >= 0; i--) {
		p2p_tree_set_acs(tree, way[i], PCI_ACS_RR | PCI_ACS_CR);
		KUNIT_EXPECT_EQ(test, -EREMOTEIO,
				kverbs_p2pdma_route(tree->pdev[DEV_0],
						    &tree->pdev[DEV_IN_0]->dev, &route));
		KUNIT_EXPECT_EQ(test, ARRAY_SIZE(way) - i, route.acs_ports);
		expect_bridge(test, tree, way[i], &route);
	}
}

static void function_that_redirects_does_not_reach_itself(struct kunit *test)
{
	struct p2p_tree *tree = everything_new(test);
	struct kverbs_p2pdma_route route;

	p2p_tree_set_acs(tree, DEV_0, PCI_ACS_RR);
	KUNIT_EXPECT_EQ(test, -EREMOTEIO,
			kverbs_p2pdma_route(tree->pdev[DEV_0], &tree->pdev[DEV_0]->dev, &route));
	KUNIT_EXPECT_EQ(test, KVERBS_P2PDMA_ACS, route.why);
	KUNIT_EXPECT_EQ(test, 0, route.hops);
	KUNIT_EXPECT_EQ(test, 1, route.acs_ports);
}

static void refusal_is_told_with_the_remedy(struct kunit *test)
{
	struct p2p_tree *tree = everything_new(test);
	struct device *client = &tree->pdev[DEV_1]->dev;
	struct kvt_console *console = kvt_console_watch(test, "pci=disable_acs_redir=");

	p2p_tree_set_acs(tree, DOWN_0, PCI_ACS_RR);
	KUNIT_EXPECT_EQ(test, -1,
			kverbs_p2pdma_distance_many(tree->pdev[DEV_0], &client, 1, false));
	KUNIT_EXPECT_EQ(test, 0, kvt_console_times(console));
	KUNIT_EXPECT_EQ(test, -1, kverbs_p2pdma_distance_many(tree->pdev[DEV_0], &client, 1, true));
	KUNIT_EXPECT_EQ(test, 1, kvt_console_times(console));
}

/* --- host bridges that are known ------------------------------------------------- */

/* Two host bridges: A has two slots, B has one. */
enum { A_FIRST, A_SECOND, A_DEV_0, A_DEV_1, B_FIRST, B_DEV, HOST_ROWS };

static const struct p2p_fn two_hosts[HOST_ROWS] = {
	[A_FIRST]	= { P2P_HOST(0), PCI_DEVFN(1, 0), P2P_ROOT_PORT },
	[A_SECOND]	= { P2P_HOST(0), PCI_DEVFN(2, 0), P2P_ROOT_PORT },
	[A_DEV_0]	= { A_FIRST, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[A_DEV_1]	= { A_SECOND, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[B_FIRST]	= { P2P_HOST(1), PCI_DEVFN(1, 0), P2P_ROOT_PORT },
	[B_DEV]		= { B_FIRST, PCI_DEVFN(0, 0), P2P_ENDPOINT },
};

/* Two host bridges, and what they forward. */
struct host_row {
	const char *what;		/* description, for the name of the case */
	u16 vendor;			/* vendor ID of the first function of both */
	u16 a;				/* device ID of the first function of A */
	u16 b;				/* device ID of the first function of B */
	enum kverbs_p2pdma_why within;	/* the verdict for two functions below A */
	enum kverbs_p2pdma_why across;	/* the verdict between A and B, in both directions */
};

#define INTEL	PCI_VENDOR_ID_INTEL

#define WITHIN(id) \
	{ #id " within", INTEL, id, id, KVERBS_P2PDMA_LISTED, KVERBS_P2PDMA_NOT_SAME_HOST }
#define ACROSS(id) \
	{ #id " across", INTEL, id, id, KVERBS_P2PDMA_LISTED, KVERBS_P2PDMA_LISTED }

static const struct host_row host_rows[] = {
	WITHIN(0x3c00), WITHIN(0x3c01), WITHIN(0x2f00), WITHIN(0x2f01),
	ACROSS(0x2030), ACROSS(0x2031), ACROSS(0x2032), ACROSS(0x2033), ACROSS(0x2020),
	ACROSS(0x09a2),
	{ "two that are known", INTEL, 0x2030, 0x09a2,
	  KVERBS_P2PDMA_LISTED, KVERBS_P2PDMA_LISTED },
	{ "one within only", INTEL, 0x2030, 0x2f00,
	  KVERBS_P2PDMA_LISTED, KVERBS_P2PDMA_NOT_SAME_HOST },
	{ "the other within only", INTEL, 0x2f00, 0x2030,
	  KVERBS_P2PDMA_LISTED, KVERBS_P2PDMA_NOT_SAME_HOST },
	{ "one that is known", INTEL, 0x2030, 0x1237,
	  KVERBS_P2PDMA_LISTED, KVERBS_P2PDMA_NOT_LISTED },
	{ "of another vendor", P2P_TREE_VENDOR, 0x2030, 0x2030,
	  KVERBS_P2PDMA_NOT_LISTED, KVERBS_P2PDMA_NOT_LISTED },
};

KUNIT_ARRAY_PARAM_DESC(host, host_rows, what);

static void expect_by_host(struct kunit *test, struct p2p_tree *tree, int provider, int client,
			   enum kverbs_p2pdma_why why)
{
	bool known = why == KVERBS_P2PDMA_LISTED || why == KVERBS_P2PDMA_ZEN;
	struct kverbs_p2pdma_route route;

	KUNIT_EXPECT_EQ(test, known ? 0 : -EREMOTEIO,
			kverbs_p2pdma_route(tree->pdev[provider], &tree->pdev[client]->dev,
					    &route));
	KUNIT_EXPECT_EQ(test, known ? KVERBS_P2PDMA_HOST_BRIDGE : KVERBS_P2PDMA_REFUSED, route.map);
	KUNIT_EXPECT_EQ(test, why, route.why);
	KUNIT_EXPECT_EQ(test, 4, route.hops);
}

static void host_bridge_is_known_by_its_first_function(struct kunit *test)
{
	const struct host_row *row = test->param_value;
	struct p2p_fn fns[HOST_ROWS];
	struct p2p_tree *tree;

	p2p_tree_amd(test, 0);
	memcpy(fns, two_hosts, sizeof(fns));
	fns[A_FIRST].vendor = row->vendor;
	fns[B_FIRST].vendor = row->vendor;
	fns[A_FIRST].device = row->a;
	fns[B_FIRST].device = row->b;
	tree = p2p_tree_new(test, fns, HOST_ROWS);
	expect_by_host(test, tree, A_DEV_0, A_DEV_1, row->within);
	expect_by_host(test, tree, A_DEV_0, B_DEV, row->across);
	expect_by_host(test, tree, B_DEV, A_DEV_0, row->across);
}

static void second_function_does_not_stand_for_a_host_bridge(struct kunit *test)
{
	struct p2p_fn fns[HOST_ROWS];
	struct p2p_tree *tree;

	p2p_tree_amd(test, 0);
	memcpy(fns, two_hosts, sizeof(fns));
	fns[A_SECOND].vendor = INTEL;
	fns[A_SECOND].device = 0x2030;
	tree = p2p_tree_new(test, fns, HOST_ROWS);
	expect_by_host(test, tree, A_DEV_0, A_DEV_1, KVERBS_P2PDMA_NOT_LISTED);
}

/* A host bridge is identified by a root port or by function 00.0, not by any other endpoint. */
static void endpoint_does_not_stand_for_a_host_bridge(struct kunit *test)
{
	struct kverbs_p2pdma_route route;
	struct p2p_fn fns[HOST_ROWS];
	struct p2p_tree *tree;

	p2p_tree_amd(test, 0);
	memcpy(fns, two_hosts, sizeof(fns));
	fns[A_FIRST].kind = P2P_INTEGRATED;
	fns[A_FIRST].vendor = INTEL;
	fns[A_FIRST].device = 0x2030;
	fns[A_DEV_0].up = B_FIRST;
	fns[A_DEV_0].devfn = PCI_DEVFN(0, 1);
	tree = p2p_tree_new(test, fns, HOST_ROWS);
	expect_by_host(test, tree, A_DEV_1, B_DEV, KVERBS_P2PDMA_NOT_LISTED);
	kverbs_p2pdma_route(tree->pdev[A_DEV_1], &tree->pdev[B_DEV]->dev, &route);
	KUNIT_EXPECT_FALSE(test, route.has_bridge);
}

static void known_host_bridge_forwards_what_acs_redirects(struct kunit *test)
{
	struct p2p_fn fns[ROWS];
	struct kverbs_p2pdma_route route;
	struct p2p_tree *tree;

	p2p_tree_amd(test, 0);
	memcpy(fns, everything, sizeof(fns));
	fns[HOST_A].vendor = INTEL;
	fns[HOST_A].device = 0x3c00;
	tree = p2p_tree_new(test, fns, ROWS);
	p2p_tree_set_acs(tree, DOWN_0, PCI_ACS_CR);
	KUNIT_EXPECT_EQ(test, 0, kverbs_p2pdma_route(tree->pdev[DEV_0], &tree->pdev[DEV_1]->dev,
						     &route));
	KUNIT_EXPECT_EQ(test, KVERBS_P2PDMA_HOST_BRIDGE, route.map);
	KUNIT_EXPECT_EQ(test, KVERBS_P2PDMA_LISTED, route.why);
	KUNIT_EXPECT_EQ(test, 4, route.hops);
	KUNIT_EXPECT_EQ(test, 1, route.acs_ports);
	expect_bridge(test, tree, DOWN_0, &route);
}

static void amd_forwards_since_zen(struct kunit *test)
{
	struct p2p_tree *tree = p2p_tree_new(test, two_hosts, HOST_ROWS);
	u8 family;

	for (family = 0x10; family < 0x1b; family++) {
		p2p_tree_amd(test, family);
		expect_by_host(test, tree, A_DEV_0, B_DEV,
			       family < 0x17 ? KVERBS_P2PDMA_NOT_LISTED : KVERBS_P2PDMA_ZEN);
	}
}

/* --- the policy ------------------------------------------------------------------ */

static void set_policy(struct kunit *test, const char *policy)
{
	char text[16] = "";

	KUNIT_ASSERT_EQ(test, 0, kvt_write_file(POLICY, policy));
	KUNIT_ASSERT_GT(test, kvt_read_file(POLICY, text, sizeof(text)), 0);
	KUNIT_EXPECT_STREQ(test, policy, (const char *)text);
}

/* If the kernel keeps the memory, the policy has no effect. */
static void expect_policy(struct kunit *test, struct p2p_tree *tree, const char *policy)
{
	struct kverbs_p2pdma_route route;
	bool allowed = p2p_tree_own() && strcmp(policy, "deny");

	set_policy(test, policy);
	KUNIT_EXPECT_EQ(test, allowed ? 0 : -EREMOTEIO,
			kverbs_p2pdma_route(tree->pdev[FN_0], &tree->pdev[DEV_0]->dev, &route));
	KUNIT_EXPECT_EQ(test, allowed ? KVERBS_P2PDMA_HOST_BRIDGE : KVERBS_P2PDMA_REFUSED,
			route.map);
	KUNIT_EXPECT_EQ(test, allowed ? KVERBS_P2PDMA_BY_POLICY : KVERBS_P2PDMA_NOT_LISTED,
			route.why);
	KUNIT_EXPECT_EQ(test, 6, route.hops);
	KUNIT_EXPECT_EQ(test, 0, kverbs_p2pdma_route(tree->pdev[DEV_0], &tree->pdev[DEV_1]->dev,
						     &route));
	KUNIT_EXPECT_EQ(test, KVERBS_P2PDMA_COMMON_BRIDGE, route.why);
}

static void policy_allows_what_is_not_known(struct kunit *test)
{
	struct p2p_tree *tree = everything_new(test);
	struct kvt_console *console;
	int warnings;

	kvt_restore_file(test, POLICY, "deny");
	console = kvt_console_watch(test, "because of policy=warn");
	expect_policy(test, tree, "deny");
	expect_policy(test, tree, "force");
	KUNIT_EXPECT_EQ(test, 0, kvt_console_times(console));
	expect_policy(test, tree, "warn");
	warnings = kvt_console_times(console);
	KUNIT_EXPECT_EQ(test, p2p_tree_own(), warnings);
}

static void policy_warns_once_of_a_pair(struct kunit *test)
{
	struct p2p_tree *tree = everything_new(test);
	struct kverbs_p2pdma_route route;
	struct kvt_console *console;
	int i;

	if (!p2p_tree_own())
		kunit_skip(test, "the kernel keeps the memory: it has no policy");
	kvt_restore_file(test, POLICY, "deny");
	console = kvt_console_watch(test, "because of policy=warn");
	set_policy(test, "warn");
	for (i = 0; i < 3; i++) {
		kverbs_p2pdma_route(tree->pdev[FN_0], &tree->pdev[DEV_0]->dev, &route);
		kverbs_p2pdma_route(tree->pdev[DEV_0], &tree->pdev[FN_0]->dev, &route);
		kverbs_p2pdma_route(tree->pdev[DEV_0], &tree->pdev[DEV_1]->dev, &route);
	}
	KUNIT_EXPECT_EQ(test, 2, kvt_console_times(console));
	set_policy(test, "warn");
	kverbs_p2pdma_route(tree->pdev[FN_0], &tree->pdev[DEV_0]->dev, &route);
	KUNIT_EXPECT_EQ(test, 3, kvt_console_times(console));
}

static void policy_is_one_of_three_words(struct kunit *test)
{
	KUNIT_EXPECT_LT(test, kvt_write_file(POLICY, "allow"), 0);
	KUNIT_EXPECT_LT(test, kvt_write_file(POLICY, "1"), 0);
	KUNIT_EXPECT_LT(test, kvt_write_file(POLICY, "den"), 0);
	set_policy(test, "deny");
}

static struct kunit_case p2p_route_cases[] = {
	KUNIT_CASE_PARAM(pair_has_its_route, pair_gen_params),
	KUNIT_CASE(device_without_pci_has_no_route),
	KUNIT_CASE(device_below_a_function_has_its_route),
	KUNIT_CASE(each_acs_bit_counts_on_each_port_of_the_way),
	KUNIT_CASE(ports_that_redirect_are_counted),
	KUNIT_CASE(function_that_redirects_does_not_reach_itself),
	KUNIT_CASE(refusal_is_told_with_the_remedy),
	KUNIT_CASE_PARAM(host_bridge_is_known_by_its_first_function, host_gen_params),
	KUNIT_CASE(second_function_does_not_stand_for_a_host_bridge),
	KUNIT_CASE(endpoint_does_not_stand_for_a_host_bridge),
	KUNIT_CASE(known_host_bridge_forwards_what_acs_redirects),
	KUNIT_CASE(amd_forwards_since_zen),
	KUNIT_CASE(policy_allows_what_is_not_known),
	KUNIT_CASE(policy_warns_once_of_a_pair),
	KUNIT_CASE(policy_is_one_of_three_words),
	{}
};
KVT_SUITE(p2p_route);

MODULE_DESCRIPTION("KUnit: routes to peer-to-peer memory");
MODULE_LICENSE("GPL");
