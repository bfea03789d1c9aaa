// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lists of P2PDMA clients: which devices can be added, which provider is found, what binds
 * a list to a provider and what unbinds it, and that all references are given back.
 */
#include <linux/device.h>
#include <linux/kref.h>
#include <linux/list.h>

#include <kverbs/p2pdma.h>
#include "lib/lib.h"
#include "p2p/tree.h"

#define DEBUGFS_DIR	"/sys/kernel/debug/kverbs_p2pdma/"
#define TEXT_LEN	16384
#define TIES		3
#define DRAWS		3000
#define ROUNDS		2000

/*
 * Rows of the tree: a switch with four slots, one of which has a device with two functions,
 * and a slot below another root port.
 */
enum {
	HOST, PORT, UP, DOWN_0, DOWN_1, DOWN_2, DOWN_3,
	NIC, NEAR, DISK, FAR, FARTHER,
	OTHER_PORT, AWAY,
	ROWS
};

static const struct p2p_fn machine[ROWS] = {
	[HOST]		= { P2P_HOST(0), PCI_DEVFN(0, 0), P2P_INTEGRATED },
	[PORT]		= { P2P_HOST(0), PCI_DEVFN(1, 0), P2P_ROOT_PORT },
	[UP]		= { PORT, PCI_DEVFN(0, 0), P2P_UPSTREAM },
	[DOWN_0]	= { UP, PCI_DEVFN(0, 0), P2P_DOWNSTREAM },
	[DOWN_1]	= { UP, PCI_DEVFN(1, 0), P2P_DOWNSTREAM },
	[DOWN_2]	= { UP, PCI_DEVFN(2, 0), P2P_DOWNSTREAM },
	[DOWN_3]	= { UP, PCI_DEVFN(3, 0), P2P_DOWNSTREAM },
	[NIC]		= { DOWN_0, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[NEAR]		= { DOWN_0, PCI_DEVFN(0, 1), P2P_ENDPOINT },
	[DISK]		= { DOWN_1, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[FAR]		= { DOWN_2, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[FARTHER]	= { DOWN_3, PCI_DEVFN(0, 0), P2P_ENDPOINT },
	[OTHER_PORT]	= { P2P_HOST(0), PCI_DEVFN(2, 0), P2P_ROOT_PORT },
	[AWAY]		= { OTHER_PORT, PCI_DEVFN(0, 0), P2P_ENDPOINT },
};

/* A tree of PCI functions and a list of clients. */
struct scene {
	struct p2p_tree *tree;
	unsigned int refs[ROWS];	/* refcount of each function when count_refs() was called */
	struct list_head clients;	/* the list */
};

static void scene_end(void *arg)
{
	struct scene *s = arg;

	kverbs_p2pdma_client_list_free(&s->clients);
}

static struct scene *scene_new(struct kunit *test)
{
	struct scene *s = kvt_zalloc(test, sizeof(*s));

	p2p_tree_amd(test, 0);
	s->tree = p2p_tree_new(test, machine, ROWS);
	INIT_LIST_HEAD(&s->clients);
	kvt_defer(test, scene_end, s);
	return s;
}

static void provide(struct kunit *test, struct scene *s, int row)
{
	p2p_tree_provide(test, s->tree, row, true);
}

static void count_refs(struct scene *s)
{
	int row;

	for (row = 0; row < ROWS; row++)
		s->refs[row] = kref_read(&s->tree->pdev[row]->dev.kobj.kref);
}

/* References to the function of @row that were taken since count_refs(). */
static int refs(struct scene *s, int row)
{
	return kref_read(&s->tree->pdev[row]->dev.kobj.kref) - s->refs[row];
}

static void expect_no_refs(struct kunit *test, struct scene *s)
{
	int row;

	for (row = 0; row < ROWS; row++)
		KUNIT_EXPECT_EQ_MSG(test, 0, refs(s, row), "row %d", row);
}

static int add(struct scene *s, int row)
{
	return pci_p2pdma_add_client(&s->clients, &s->tree->pdev[row]->dev);
}

static void remove(struct scene *s, int row)
{
	pci_p2pdma_remove_client(&s->clients, &s->tree->pdev[row]->dev);
}

/* Returns the row of the provider that is found, or -1, and puts the provider's reference. */
static int find(struct scene *s)
{
	struct pci_dev *found = pci_p2pmem_find(&s->clients);
	int row;

	pci_dev_put(found);
	for (row = 0; found && row < ROWS; row++)
		if (s->tree->pdev[row] == found)
			return row;
	return -1;
}

static bool assign(struct scene *s, int row)
{
	return pci_p2pdma_assign_provider(s->tree->pdev[row], &s->clients);
}

static int distance(struct scene *s, int row)
{
	return pci_p2pdma_distance(s->tree->pdev[row], &s->clients, false);
}

/* --- clients ----------------------------------------------------------------------- */

static void client_needs_a_pci_ancestor(struct kunit *test)
{
	struct scene *s = scene_new(test);
	struct device *root = KVT_PTR(test, root_device_register("kvt_p2p"));

	KUNIT_EXPECT_EQ(test, -ENODEV, pci_p2pdma_add_client(&s->clients, root));
	KUNIT_EXPECT_TRUE(test, list_empty(&s->clients));
	pci_p2pdma_remove_client(&s->clients, root);
	root_device_unregister(root);
}

static void device_below_a_function_is_a_client(struct kunit *test)
{
	struct scene *s = scene_new(test);
	struct device *child = kvt_zalloc(test, sizeof(*child));

	provide(test, s, NEAR);
	count_refs(s);
	device_initialize(child);
	child->parent = &s->tree->pdev[NIC]->dev;
	KUNIT_EXPECT_EQ(test, 0, pci_p2pdma_add_client(&s->clients, child));
	KUNIT_EXPECT_EQ(test, 2, kref_read(&child->kobj.kref));
	KUNIT_EXPECT_EQ(test, 1, refs(s, NIC));
	KUNIT_EXPECT_EQ(test, 2, distance(s, NEAR));
	KUNIT_EXPECT_EQ(test, NEAR, find(s));
	/* The function itself is not a client, so this does nothing. */
	remove(s, NIC);
	KUNIT_EXPECT_EQ(test, 2, distance(s, NEAR));
	pci_p2pdma_remove_client(&s->clients, child);
	KUNIT_EXPECT_EQ(test, 1, kref_read(&child->kobj.kref));
	expect_no_refs(test, s);
}

static void list_holds_its_clients(struct kunit *test)
{
	struct scene *s = scene_new(test);

	count_refs(s);
	KUNIT_EXPECT_EQ(test, 0, add(s, NIC));
	KUNIT_EXPECT_EQ(test, 0, add(s, DISK));
	KUNIT_EXPECT_GE(test, refs(s, NIC), 1);
	KUNIT_EXPECT_GE(test, refs(s, DISK), 1);
	remove(s, NIC);
	KUNIT_EXPECT_EQ(test, 0, refs(s, NIC));
	KUNIT_EXPECT_GE(test, refs(s, DISK), 1);
	pci_p2pdma_client_list_free(&s->clients);
	KUNIT_EXPECT_TRUE(test, list_empty(&s->clients));
	expect_no_refs(test, s);
	pci_p2pdma_client_list_free(&s->clients);
}

static void client_counts_as_often_as_it_is_added(struct kunit *test)
{
	struct scene *s = scene_new(test);

	count_refs(s);
	add(s, NIC);
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, 4, distance(s, NEAR));
	remove(s, NIC);
	KUNIT_EXPECT_EQ(test, 2, distance(s, NEAR));
	remove(s, NIC);
	KUNIT_EXPECT_TRUE(test, list_empty(&s->clients));
	remove(s, NIC);
	expect_no_refs(test, s);
}

static void distance_is_the_sum_over_the_clients(struct kunit *test)
{
	struct scene *s = scene_new(test);

	KUNIT_EXPECT_EQ(test, -1, distance(s, NEAR));
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, 2, distance(s, NEAR));
	add(s, DISK);
	KUNIT_EXPECT_EQ(test, 2 + 4, distance(s, NEAR));
	add(s, FAR);
	KUNIT_EXPECT_EQ(test, 2 + 4 + 4, distance(s, NEAR));
	KUNIT_EXPECT_EQ(test, 4 + 0 + 4, distance(s, DISK));
	add(s, AWAY);
	KUNIT_EXPECT_EQ(test, -1, distance(s, NEAR));
	remove(s, AWAY);
	KUNIT_EXPECT_EQ(test, 2 + 4 + 4, distance(s, NEAR));
}

/* --- find and bind ----------------------------------------------------------------- */

static void nothing_is_found_without_provider_or_client(struct kunit *test)
{
	struct scene *s = scene_new(test);

	KUNIT_EXPECT_EQ(test, -1, find(s));
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, -1, find(s));
	remove(s, NIC);
	provide(test, s, NEAR);
	KUNIT_EXPECT_EQ(test, -1, find(s));
	add(s, AWAY);
	KUNIT_EXPECT_EQ(test, -1, find(s));
}

static void only_published_memory_is_found(struct kunit *test)
{
	struct scene *s = scene_new(test);

	p2p_tree_provide(test, s->tree, NEAR, false);
	add(s, NIC);
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(s->tree->pdev[NEAR]));
	KUNIT_EXPECT_EQ(test, -1, find(s));
	pci_p2pmem_publish(s->tree->pdev[NEAR], true);
	KUNIT_EXPECT_TRUE(test, pci_has_p2pmem(s->tree->pdev[NEAR]));
	KUNIT_EXPECT_EQ(test, NEAR, find(s));
}

static void nearest_to_all_clients_is_found(struct kunit *test)
{
	struct scene *s = scene_new(test);

	provide(test, s, FAR);
	provide(test, s, NEAR);
	provide(test, s, AWAY);
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, NEAR, find(s));
	remove(s, NIC);
	/* Total distances: FAR 4 + 0, NEAR 4 + 4. */
	add(s, DISK);
	add(s, FAR);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	pci_p2pdma_client_list_free(&s->clients);
	/* Total distances without FAR: NEAR 2 + 4 + 4, FARTHER 4 + 4 + 4. */
	pci_p2pmem_publish(s->tree->pdev[FAR], false);
	provide(test, s, FARTHER);
	add(s, DISK);
	add(s, FAR);
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, NEAR, find(s));
	pci_p2pdma_client_list_free(&s->clients);
	add(s, AWAY);
	KUNIT_EXPECT_EQ(test, AWAY, find(s));
}

static void what_is_found_comes_with_a_reference(struct kunit *test)
{
	struct scene *s = scene_new(test);
	struct pci_dev *found;

	provide(test, s, NEAR);
	count_refs(s);
	add(s, NIC);
	found = pci_p2pmem_find(&s->clients);
	KUNIT_EXPECT_PTR_EQ(test, s->tree->pdev[NEAR], found);
	KUNIT_EXPECT_EQ(test, 2, refs(s, NEAR));
	KUNIT_EXPECT_PTR_EQ(test, found, pci_p2pmem_find(&s->clients));
	KUNIT_EXPECT_EQ(test, 3, refs(s, NEAR));
	pci_dev_put(found);
	pci_dev_put(found);
	/* The list holds a reference of its own. */
	KUNIT_EXPECT_EQ(test, 1, refs(s, NEAR));
	remove(s, NIC);
	expect_no_refs(test, s);
}

static void list_is_bound_for_good(struct kunit *test)
{
	struct scene *s = scene_new(test);

	provide(test, s, FAR);
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	provide(test, s, NEAR);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	KUNIT_EXPECT_FALSE(test, assign(s, NEAR));
	KUNIT_EXPECT_TRUE(test, assign(s, FAR));
	KUNIT_EXPECT_EQ(test, 0, add(s, DISK));
	remove(s, NIC);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	remove(s, DISK);
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, NEAR, find(s));
}

static void bound_list_takes_only_who_reaches_the_provider(struct kunit *test)
{
	struct scene *s = scene_new(test);

	provide(test, s, FAR);
	count_refs(s);
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, 0, add(s, AWAY));
	remove(s, AWAY);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	KUNIT_EXPECT_EQ(test, -EXDEV, add(s, AWAY));
	KUNIT_EXPECT_EQ(test, 0, refs(s, AWAY));
	p2p_tree_set_acs(s->tree, DOWN_1, PCI_ACS_RR);
	KUNIT_EXPECT_EQ(test, -EXDEV, add(s, DISK));
	p2p_tree_set_acs(s->tree, DOWN_1, 0);
	KUNIT_EXPECT_EQ(test, 0, add(s, DISK));
	KUNIT_EXPECT_EQ(test, 4 + 4, distance(s, FAR));
	pci_p2pdma_client_list_free(&s->clients);
	expect_no_refs(test, s);
}

static void assigned_provider_is_the_one_that_is_found(struct kunit *test)
{
	struct scene *s = scene_new(test);

	p2p_tree_provide(test, s->tree, FAR, false);
	provide(test, s, NEAR);
	count_refs(s);
	KUNIT_EXPECT_FALSE(test, assign(s, NEAR));
	add(s, NIC);
	KUNIT_EXPECT_FALSE(test, assign(s, FAR));
	KUNIT_EXPECT_FALSE(test, assign(s, DISK));
	pci_p2pmem_publish(s->tree->pdev[FAR], true);
	KUNIT_EXPECT_TRUE(test, assign(s, FAR));
	KUNIT_EXPECT_EQ(test, 1, refs(s, FAR));
	KUNIT_EXPECT_TRUE(test, assign(s, FAR));
	KUNIT_EXPECT_EQ(test, 1, refs(s, FAR));
	KUNIT_EXPECT_FALSE(test, assign(s, NEAR));
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	pci_p2pdma_client_list_free(&s->clients);
	expect_no_refs(test, s);
}

static void provider_is_not_assigned_to_who_does_not_reach_it(struct kunit *test)
{
	struct scene *s = scene_new(test);

	provide(test, s, NEAR);
	count_refs(s);
	add(s, NIC);
	add(s, AWAY);
	KUNIT_EXPECT_FALSE(test, assign(s, NEAR));
	KUNIT_EXPECT_EQ(test, -1, find(s));
	remove(s, AWAY);
	KUNIT_EXPECT_TRUE(test, assign(s, NEAR));
	remove(s, NIC);
	expect_no_refs(test, s);
}

/* --- providers that are unpublished or removed ------------------------------------- */

static void unpublished_provider_is_not_found_but_stays_bound(struct kunit *test)
{
	struct scene *s = scene_new(test);

	provide(test, s, FAR);
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	provide(test, s, NEAR);
	pci_p2pmem_publish(s->tree->pdev[FAR], false);
	KUNIT_EXPECT_EQ(test, -1, find(s));
	KUNIT_EXPECT_EQ(test, -ENODEV, add(s, DISK));
	KUNIT_EXPECT_FALSE(test, assign(s, NEAR));
	pci_p2pmem_publish(s->tree->pdev[FAR], true);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	KUNIT_EXPECT_EQ(test, 0, add(s, DISK));
}

static void pulled_provider_leaves_errors_not_dangling_pointers(struct kunit *test)
{
	struct scene *s = scene_new(test);
	struct pci_dev *far = pci_dev_get(s->tree->pdev[FAR]);
	unsigned int before;

	provide(test, s, FAR);
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	p2p_tree_pull(s->tree, FAR);
	before = kref_read(&far->dev.kobj.kref);
	KUNIT_EXPECT_FALSE(test, pci_has_p2pmem(far));
	KUNIT_EXPECT_NULL(test, pci_p2pmem_find(&s->clients));
	KUNIT_EXPECT_EQ(test, -ENODEV, add(s, DISK));
	KUNIT_EXPECT_FALSE(test, pci_p2pdma_assign_provider(far, &s->clients));
	remove(s, NIC);
	/* The list has put its reference, and that of the case is the last. */
	KUNIT_EXPECT_EQ(test, before - 1, kref_read(&far->dev.kobj.kref));
	KUNIT_EXPECT_EQ(test, 1, kref_read(&far->dev.kobj.kref));
	pci_dev_put(far);
	provide(test, s, NEAR);
	add(s, NIC);
	KUNIT_EXPECT_EQ(test, NEAR, find(s));
}

static void pulled_client_stays_until_it_is_removed(struct kunit *test)
{
	struct scene *s = scene_new(test);
	struct device *disk = &s->tree->pdev[DISK]->dev;

	provide(test, s, FAR);
	add(s, NIC);
	add(s, DISK);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	p2p_tree_pull(s->tree, DISK);
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	pci_p2pdma_remove_client(&s->clients, disk);
	KUNIT_EXPECT_EQ(test, 4, distance(s, FAR));
}

/* --- ties -------------------------------------------------------------------------- */

/*
 * With 3000 draws, each of three providers is found 1000 times, with a standard deviation of
 * 26. Five times that is exceeded in about one in a million runs.
 */
static void each_of_the_nearest_has_the_same_chance(struct kunit *test)
{
	static const int near[TIES] = { DISK, FAR, FARTHER };
	struct scene *s = scene_new(test);
	int found[ROWS] = {}, i;

	for (i = 0; i < TIES; i++)
		provide(test, s, near[i]);
	provide(test, s, AWAY);
	for (i = 0; i < DRAWS; i++) {
		KUNIT_ASSERT_EQ(test, 0, add(s, NIC));
		found[max(0, find(s))]++;
		remove(s, NIC);
	}
	for (i = 0; i < TIES; i++) {
		KUNIT_EXPECT_GT(test, found[near[i]], DRAWS / TIES - 130);
		KUNIT_EXPECT_LT(test, found[near[i]], DRAWS / TIES + 130);
	}
	KUNIT_EXPECT_EQ(test, DRAWS, found[DISK] + found[FAR] + found[FARTHER]);
	kunit_info(test, "found %d, %d and %d times", found[DISK], found[FAR], found[FARTHER]);
}

/* --- without a list ---------------------------------------------------------------- */

static void arrays_of_clients_are_as_lists_that_are_not_bound(struct kunit *test)
{
	struct scene *s = scene_new(test);
	struct device *clients[] = {
		&s->tree->pdev[NIC]->dev, &s->tree->pdev[DISK]->dev, &s->tree->pdev[AWAY]->dev,
	};
	struct pci_dev *near = s->tree->pdev[NEAR], *found;

	provide(test, s, NEAR);
	provide(test, s, FAR);
	count_refs(s);
	KUNIT_EXPECT_EQ(test, 2, pci_p2pdma_distance(near, clients[0], false));
	KUNIT_EXPECT_EQ(test, 6, pci_p2pdma_distance_many(near, clients, 2, false));
	KUNIT_EXPECT_EQ(test, -1, pci_p2pdma_distance_many(near, clients, 3, false));
	KUNIT_EXPECT_EQ(test, -1, pci_p2pdma_distance_many(near, clients, 0, false));
	found = pci_p2pmem_find_many(clients, 2);
	KUNIT_EXPECT_PTR_EQ(test, near, found);
	KUNIT_EXPECT_EQ(test, 1, refs(s, NEAR));
	pci_dev_put(found);
	KUNIT_EXPECT_NULL(test, pci_p2pmem_find_many(clients, 3));
	KUNIT_EXPECT_NULL(test, pci_p2pmem_find_many(clients, 0));
	found = pci_p2pmem_find(clients[0]);
	KUNIT_EXPECT_PTR_EQ(test, near, found);
	pci_dev_put(found);
	expect_no_refs(test, s);
}

/* --- debugfs ----------------------------------------------------------------------- */

static char *read_file(struct kunit *test, const char *name)
{
	char *text = kvt_zalloc(test, TEXT_LEN);
	char path[64];

	snprintf(path, sizeof(path), DEBUGFS_DIR "%s", name);
	KUNIT_ASSERT_GE(test, kvt_read_debugfs(path, text, TEXT_LEN), 0);
	return text;
}

static __printf(3, 4)
void expect_line(struct kunit *test, const char *text, const char *format, ...)
{
	va_list args;
	char *line;

	va_start(args, format);
	line = kvasprintf(GFP_KERNEL, format, args);
	va_end(args);
	KUNIT_ASSERT_NOT_NULL(test, line);
	KUNIT_EXPECT_TRUE_MSG(test, strstr(text, line), "no \"%s\" in:\n%s", line, text);
	kfree(line);
}

static void debugfs_has_providers_lists_and_routes(struct kunit *test)
{
	struct scene *s = scene_new(test);
	struct pci_dev **pdev = s->tree->pdev;
	unsigned int size;
	const char *text;

	provide(test, s, FAR);
	add(s, NIC);
	add(s, DISK);
	expect_line(test, read_file(test, "lists"), " provider=- clients=%s,%s\n",
		    pci_name(pdev[NIC]), pci_name(pdev[DISK]));
	KUNIT_EXPECT_EQ(test, FAR, find(s));
	expect_line(test, read_file(test, "lists"), " provider=%s clients=%s,%s\n",
		    pci_name(pdev[FAR]), pci_name(pdev[NIC]), pci_name(pdev[DISK]));
	/* The size of a provider kept by the kernel is known only while it has a driver. */
	size = p2p_tree_own() ? P2P_TREE_BAR : 0;
	expect_line(test, read_file(test, "providers"),
		    "provider=%s size=%u available=%u published=1 keeper=%s\n",
		    pci_name(pdev[FAR]), size, size, p2p_tree_own() ? "kverbs" : "kernel");

	p2p_tree_set_acs(s->tree, DOWN_0, PCI_ACS_RR);
	text = read_file(test, "matrix");
	expect_line(test, text, "provider=%s client=%s distance=4 hops=4 map=bus why=common_bridge bridge=%s acs_ports=0\n",
		    pci_name(pdev[FAR]), pci_name(pdev[DISK]), pci_name(pdev[UP]));
	expect_line(test, text, "provider=%s client=%s distance=-1 hops=4 map=refused why=acs bridge=%s acs_ports=1 redirects=%s\n",
		    pci_name(pdev[FAR]), pci_name(pdev[NIC]), pci_name(pdev[DOWN_0]),
		    pci_name(pdev[DOWN_0]));
	expect_line(test, text, "provider=%s client=%s distance=-1 hops=6 map=refused why=not_listed bridge=%s acs_ports=0\n",
		    pci_name(pdev[FAR]), pci_name(pdev[AWAY]), pci_name(pdev[HOST]));
	KUNIT_EXPECT_NULL(test, strnstr(text, "client=6b76:00:01.0", TEXT_LEN));
	pci_p2pdma_client_list_free(&s->clients);
	KUNIT_EXPECT_NULL(test, strnstr(read_file(test, "lists"), pci_name(pdev[NIC]), TEXT_LEN));
}

/* A bridge on a list is a client like any other. */
static void matrix_has_bridges_that_are_clients(struct kunit *test)
{
	struct scene *s = scene_new(test);

	provide(test, s, FAR);
	add(s, DOWN_2);
	expect_line(test, read_file(test, "matrix"), "client=%s distance=1 hops=1 map=bus",
		    pci_name(s->tree->pdev[DOWN_2]));
}

static int read_all(void *arg)
{
	struct kunit *test = arg;
	char *text = kzalloc(TEXT_LEN, GFP_KERNEL);
	int i;

	KUNIT_EXPECT_NOT_NULL(test, text);
	for (i = 0; text && i < kvt_count(ROUNDS) / 20 + 1; i++) {
		KUNIT_EXPECT_GE(test, kvt_read_debugfs(DEBUGFS_DIR "lists", text, TEXT_LEN), 0);
		KUNIT_EXPECT_GE(test, kvt_read_debugfs(DEBUGFS_DIR "matrix", text, TEXT_LEN), 0);
	}
	kfree(text);
	return 0;
}

static void lists_change_while_they_are_shown(struct kunit *test)
{
	struct scene *s = scene_new(test);
	struct kvt_thread *reader;
	u64 count = kvt_count(ROUNDS), i;

	provide(test, s, FAR);
	count_refs(s);
	reader = kvt_thread_start(test, kvt_other_cpu(), read_all, test);
	for (i = 0; i < count; i++) {
		KUNIT_EXPECT_EQ(test, 0, add(s, NIC));
		KUNIT_EXPECT_EQ(test, 0, add(s, DISK));
		KUNIT_EXPECT_EQ(test, FAR, find(s));
		remove(s, NIC);
		pci_p2pdma_client_list_free(&s->clients);
	}
	KUNIT_EXPECT_TRUE(test, kvt_thread_join(reader));
	expect_no_refs(test, s);
}

static struct kunit_case p2p_list_cases[] = {
	KUNIT_CASE(client_needs_a_pci_ancestor),
	KUNIT_CASE(device_below_a_function_is_a_client),
	KUNIT_CASE(list_holds_its_clients),
	KUNIT_CASE(client_counts_as_often_as_it_is_added),
	KUNIT_CASE(distance_is_the_sum_over_the_clients),
	KUNIT_CASE(nothing_is_found_without_provider_or_client),
	KUNIT_CASE(only_published_memory_is_found),
	KUNIT_CASE(nearest_to_all_clients_is_found),
	KUNIT_CASE(what_is_found_comes_with_a_reference),
	KUNIT_CASE(list_is_bound_for_good),
	KUNIT_CASE(bound_list_takes_only_who_reaches_the_provider),
	KUNIT_CASE(assigned_provider_is_the_one_that_is_found),
	KUNIT_CASE(provider_is_not_assigned_to_who_does_not_reach_it),
	KUNIT_CASE(unpublished_provider_is_not_found_but_stays_bound),
	KUNIT_CASE(pulled_provider_leaves_errors_not_dangling_pointers),
	KUNIT_CASE(pulled_client_stays_until_it_is_removed),
	KUNIT_CASE(each_of_the_nearest_has_the_same_chance),
	KUNIT_CASE(arrays_of_clients_are_as_lists_that_are_not_bound),
	KUNIT_CASE(debugfs_has_providers_lists_and_routes),
	KUNIT_CASE(matrix_has_bridges_that_are_clients),
	KUNIT_CASE_SLOW(lists_change_while_they_are_shown),
	{}
};
KVT_SUITE(p2p_list);
