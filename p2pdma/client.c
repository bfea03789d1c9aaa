// SPDX-License-Identifier: GPL-2.0-only
/*
 * Lists of clients: which provider all of them reach, and which is nearest.
 *
 * An orchestrator owns the head of its list, and lets only one of its threads at a time
 * work with it. The entries on it are ours; each has references to the client and to its
 * PCI function. All entries of a list share a struct p2p_list, which is made with the
 * first entry and freed with the last. It has the provider, with a reference, once one
 * is bound.
 *
 * p2p_lists_mutex guards the list of all lists. It is also held while anything in a list is
 * changed, so that debugfs can read them. The thread that works with a list may read it
 * without the mutex. No other lock is taken inside it.
 */
#include <linux/device.h>
#include <linux/export.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "p2pdma.h"

static LIST_HEAD(p2p_lists);
static DEFINE_MUTEX(p2p_lists_mutex);

/**
 * struct p2p_list - a list that has clients
 * @entry: in p2p_lists
 * @clients: head of the list, which the orchestrator owns
 * @provider: the bound provider, with a reference; or NULL
 * @number: number to show to people
 */
struct p2p_list {
	struct list_head entry;
	struct list_head *clients;
	struct pci_dev *provider;
	unsigned int number;
};

/**
 * struct p2p_client - a client on a list
 * @entry: in the orchestrator's list
 * @list: the list that it is on
 * @dev: the device, with a reference
 * @pdev: the PCI function that it is, or is below, with a reference
 */
struct p2p_client {
	struct list_head entry;
	struct p2p_list *list;
	struct device *dev;
	struct pci_dev *pdev;
};

static struct p2p_list *p2p_list_of(struct list_head *clients)
{
	struct p2p_client *client;

	client = list_first_entry_or_null(clients, struct p2p_client, entry);
	return client ? client->list : NULL;
}

/* --- distances ----------------------------------------------------------------- */

/* Returns the sum of the distances of all @clients; -1 if one does not reach @provider. */
static int p2p_paths_distance(const struct p2p_path *provider, const struct p2p_path *clients,
			      int nr)
{
	struct kverbs_p2pdma_route route;
	int distance = 0, i;

	for (i = 0; i < nr; i++) {
		p2p_path_route(provider, &clients[i], &route);
		if (route.map == KVERBS_P2PDMA_REFUSED)
			return -1;
		distance += route.hops;
	}
	return distance;
}

/* Room for the names of as many redirecting ports as anybody would want to read. */
#define P2P_PORTS_TEXT	256

/* Logs why @client does not reach @provider, and what would help. */
static void p2p_report_refused(const struct p2p_path *provider, const struct p2p_path *client,
			       const struct kverbs_p2pdma_route *route)
{
	struct pci_dev *ports[P2P_MAX_PORTS];
	char text[P2P_PORTS_TEXT] = "";
	int nr = p2p_path_redirecting(provider, client, ports), len = 0, i;

	pci_warn(client->dev[0], "cannot reach peer-to-peer memory of %s: %s\n",
		 pci_name(provider->dev[0]), kverbs_p2pdma_why_msg(route->why));
	for (i = 0; i < nr; i++)
		len += scnprintf(text + len, sizeof(text) - len, "%s%s", i ? ";" : "",
				 pci_name(ports[i]));
	if (nr)
		pci_warn(client->dev[0], "boot with pci=disable_acs_redir=%s to allow this path\n",
			 text);
}

static void p2p_report_paths(const struct p2p_path *provider, const struct p2p_path *clients, int nr)
{
	struct kverbs_p2pdma_route route;
	int i;

	for (i = 0; i < nr; i++) {
		p2p_path_route(provider, &clients[i], &route);
		if (route.map == KVERBS_P2PDMA_REFUSED)
			p2p_report_refused(provider, &clients[i], &route);
	}
}

static int p2p_distance(struct pci_dev *provider, const struct p2p_path *clients, int nr,
			bool verbose)
{
	struct p2p_path path;
	int distance;

	p2p_path_init(&path, provider);
	distance = p2p_paths_distance(&path, clients, nr);
	if (distance < 0 && verbose)
		p2p_report_paths(&path, clients, nr);
	return distance;
}

/*
 * Returns the nearest of the providers that have published memory, with a reference; or
 * NULL. If several are equally near, the n-th of them replaces the previous choice with a
 * probability of 1/n, so all have the same chance.
 */
static struct pci_dev *p2p_find_nearest(const struct p2p_path *clients, int nr)
{
	int nearest = INT_MAX, ties = 0, distance, nr_providers, i;
	struct pci_dev **providers, *found = NULL;

	nr_providers = p2p_providers_get(&providers, true);
	if (nr_providers < 0)
		return NULL;
	for (i = 0; i < nr_providers; i++) {
		distance = p2p_distance(providers[i], clients, nr, false);
		if (distance < 0 || distance > nearest)
			continue;
		if (distance < nearest)
			ties = 0;
		nearest = distance;
		if (!get_random_u32_below(++ties))
			found = providers[i];
	}
	pci_dev_get(found);
	p2p_providers_put(providers, nr_providers);
	return found;
}

/* --- paths of many clients: computed once, whatever they are compared with ------- */

static struct p2p_path *p2p_list_paths(struct list_head *clients, int *nr)
{
	struct p2p_path *paths;
	struct p2p_client *client;

	*nr = 0;
	paths = kvmalloc_array(list_count_nodes(clients), sizeof(*paths), GFP_KERNEL);
	if (paths)
		list_for_each_entry(client, clients, entry)
			p2p_path_init(&paths[(*nr)++], client->pdev);
	return paths;
}

static void p2p_array_paths_free(struct p2p_path *paths, int nr)
{
	while (nr--)
		pci_dev_put(paths[nr].dev[0]);
	kvfree(paths);
}

/*
 * Returns paths with references, which p2p_array_paths_free() puts. Returns NULL if a
 * client is not below a PCI device, or if there is not enough memory.
 */
static struct p2p_path *p2p_array_paths(struct device **clients, int nr, bool verbose)
{
	struct p2p_path *paths;
	struct pci_dev *pdev;
	int i;

	if (nr <= 0)
		return NULL;
	paths = kvmalloc_array(nr, sizeof(*paths), GFP_KERNEL);
	if (!paths)
		return NULL;
	for (i = 0; i < nr; i++) {
		pdev = p2p_pci_ancestor(clients[i]);
		if (!pdev) {
			if (verbose)
				dev_warn(clients[i], "cannot reach peer-to-peer memory: %s\n",
					 kverbs_p2pdma_why_msg(KVERBS_P2PDMA_NOT_PCI));
			p2p_array_paths_free(paths, i);
			return NULL;
		}
		p2p_path_init(&paths[i], pdev);
	}
	return paths;
}

/* --- lists --------------------------------------------------------------------- */

/*
 * Whether @client reaches @provider. If the kernel keeps the memory, it has stored the
 * route that it determined last, and maps by that: this makes it determine the route again.
 */
static bool p2p_path_reaches(const struct p2p_path *client, const struct p2p_path *provider)
{
	struct device *dev = &client->dev[0]->dev;
	struct kverbs_p2pdma_route route;

	if (p2p_path_use(provider, client, &route))
		return false;
	return p2p_is_own() || pci_p2pdma_distance_many(provider->dev[0], &dev, 1, false) >= 0;
}

/*
 * Binds a list to a provider, with a reference, if all of its clients reach that. @clients
 * are their paths. Returns whether it did.
 */
static bool p2p_list_bind(struct p2p_list *list, struct pci_dev *provider,
			  const struct p2p_path *clients, int nr)
{
	struct p2p_path path;
	int i;

	p2p_path_init(&path, provider);
	for (i = 0; i < nr; i++)
		if (!p2p_path_reaches(&clients[i], &path))
			return false;
	mutex_lock(&p2p_lists_mutex);
	list->provider = pci_dev_get(provider);
	mutex_unlock(&p2p_lists_mutex);
	return true;
}

/* Checks that a client may be added: if the list is bound, it must reach the provider. */
static int p2p_list_admit(const struct p2p_list *list, struct pci_dev *pdev)
{
	struct p2p_path provider, client;

	if (!list || !list->provider)
		return 0;
	if (!kverbs_has_p2pmem(list->provider))
		return -ENODEV;
	p2p_path_init(&provider, list->provider);
	p2p_path_init(&client, pdev);
	return p2p_path_reaches(&client, &provider) ? 0 : -EXDEV;
}

static struct p2p_list *p2p_list_new(struct list_head *clients)
{
	static unsigned int number;
	struct p2p_list *list = kzalloc(sizeof(*list), GFP_KERNEL);

	if (!list)
		return NULL;
	list->clients = clients;
	mutex_lock(&p2p_lists_mutex);
	list->number = number++;
	list_add_tail(&list->entry, &p2p_lists);
	mutex_unlock(&p2p_lists_mutex);
	return list;
}

static void p2p_list_free(struct p2p_list *list)
{
	mutex_lock(&p2p_lists_mutex);
	list_del(&list->entry);
	mutex_unlock(&p2p_lists_mutex);
	pci_dev_put(list->provider);
	kfree(list);
}

/* Allocates a client, and for the first one of a list the struct p2p_list as well. */
static struct p2p_client *p2p_client_new(struct list_head *clients)
{
	struct p2p_client *client = kzalloc(sizeof(*client), GFP_KERNEL);

	if (!client)
		return NULL;
	client->list = p2p_list_of(clients) ?: p2p_list_new(clients);
	if (client->list)
		return client;
	kfree(client);
	return NULL;
}

static void p2p_client_free(struct p2p_client *client)
{
	struct p2p_list *list = client->list;

	mutex_lock(&p2p_lists_mutex);
	list_del(&client->entry);
	mutex_unlock(&p2p_lists_mutex);
	if (list_empty(list->clients))
		p2p_list_free(list);
	pci_dev_put(client->pdev);
	put_device(client->dev);
	kfree(client);
}

/**
 * kverbs_p2pdma_add_client() - put a client on a list
 * @clients: the list; first initialised by INIT_LIST_HEAD()
 * @dev: the client: a PCI function, or a device below one
 *
 * The list holds a reference to @dev. A device may be on it more than once; it is then
 * counted that many times.
 *
 * Context: Process, may sleep. The caller serialises all calls for one list.
 * Return: 0; -ENODEV if @dev has no PCI ancestor, or the list is bound to a provider
 *	that has gone; -EXDEV if @dev does not reach that provider; -ENOMEM.
 */
int kverbs_p2pdma_add_client(struct list_head *clients, struct device *dev)
{
	struct pci_dev *pdev = p2p_pci_ancestor(dev);
	struct p2p_client *client;
	int err;

	if (!pdev)
		return -ENODEV;
	err = p2p_list_admit(p2p_list_of(clients), pdev);
	if (err)
		goto put_pdev;
	err = -ENOMEM;
	client = p2p_client_new(clients);
	if (!client)
		goto put_pdev;
	client->dev = get_device(dev);
	client->pdev = pdev;
	mutex_lock(&p2p_lists_mutex);
	list_add_tail(&client->entry, clients);
	mutex_unlock(&p2p_lists_mutex);
	return 0;

put_pdev:
	pci_dev_put(pdev);
	return err;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_add_client);

/**
 * kverbs_p2pdma_remove_client() - take a client off a list
 * @clients: the list
 * @dev: the client; nothing is done if it is not on the list
 *
 * It undoes one kverbs_p2pdma_add_client(). A list that loses its last client is not
 * bound any more.
 *
 * Context: Process, may sleep. The caller serialises all calls for one list.
 */
void kverbs_p2pdma_remove_client(struct list_head *clients, struct device *dev)
{
	struct p2p_client *client;

	list_for_each_entry(client, clients, entry) {
		if (client->dev == dev) {
			p2p_client_free(client);
			return;
		}
	}
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_remove_client);

/**
 * kverbs_p2pdma_client_list_free() - take all clients off a list
 * @clients: the list, which is empty and not bound afterwards
 *
 * Context: Process, may sleep. The caller serialises all calls for one list.
 */
void kverbs_p2pdma_client_list_free(struct list_head *clients)
{
	struct p2p_client *client, *next;

	list_for_each_entry_safe(client, next, clients, entry)
		p2p_client_free(client);
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_client_list_free);

/**
 * kverbs_p2pdma_distance() - get the distance of a provider from all clients of a list
 * @provider: a PCI function; it need not provide memory yet
 * @clients: the list
 * @verbose: warn of each client that does not reach it, with the reason
 *
 * Context: Process, may sleep. The caller serialises all calls for one list.
 * Return: the sum of &kverbs_p2pdma_route.hops over the clients; -1 if one of them does
 *	not reach @provider, the list is empty, or there is not enough kernel memory.
 */
int kverbs_p2pdma_distance(struct pci_dev *provider, struct list_head *clients, bool verbose)
{
	struct p2p_path *paths;
	int distance = -1, nr;

	if (list_empty(clients))
		return -1;
	paths = p2p_list_paths(clients, &nr);
	if (paths)
		distance = p2p_distance(provider, paths, nr, verbose);
	kvfree(paths);
	return distance;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_distance);

/**
 * kverbs_p2pdma_assign_provider() - bind a list to a provider
 * @provider: the provider; it must have published memory
 * @clients: the list
 *
 * The list holds a reference to @provider until it loses its last client.
 *
 * Context: Process, may sleep. The caller serialises all calls for one list.
 * Return: true if the list is bound to @provider now; false if it is bound to another
 *	provider or is empty, if @provider has not published memory, if a client does not
 *	reach it, or if there is not enough kernel memory.
 */
bool kverbs_p2pdma_assign_provider(struct pci_dev *provider, struct list_head *clients)
{
	struct p2p_list *list = p2p_list_of(clients);
	struct p2p_path *paths;
	bool bound;
	int nr;

	if (!list || !kverbs_has_p2pmem(provider))
		return false;
	if (list->provider)
		return list->provider == provider;
	paths = p2p_list_paths(clients, &nr);
	bound = paths && p2p_list_bind(list, provider, paths, nr);
	kvfree(paths);
	return bound;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_assign_provider);

/**
 * kverbs_p2pmem_find() - find the provider for all clients of a list
 * @clients: the list
 *
 * This is the provider that the list is bound to. If it is not bound, it is the nearest
 * of those that have published memory, by the sum of the distances; if several are at
 * the same distance, each of them may be chosen, with the same chance. The list is then
 * bound to it.
 *
 * Context: Process, may sleep. The caller serialises all calls for one list.
 * Return: the provider, with a reference for the caller to put by pci_dev_put(); NULL if
 *	there is none, the one that the list is bound to has gone, the list is empty, or
 *	there is not enough kernel memory.
 */
struct pci_dev *kverbs_p2pmem_find(struct list_head *clients)
{
	struct p2p_list *list = p2p_list_of(clients);
	struct pci_dev *provider;
	struct p2p_path *paths;
	int nr;

	if (!list)
		return NULL;
	if (list->provider)
		return kverbs_has_p2pmem(list->provider) ? pci_dev_get(list->provider) : NULL;
	paths = p2p_list_paths(clients, &nr);
	if (!paths)
		return NULL;
	provider = p2p_find_nearest(paths, nr);
	if (provider && !p2p_list_bind(list, provider, paths, nr)) {
		pci_dev_put(provider);
		provider = NULL;
	}
	kvfree(paths);
	return provider;
}
EXPORT_SYMBOL_GPL(kverbs_p2pmem_find);

/* --- without a list ------------------------------------------------------------ */

/**
 * kverbs_p2pdma_distance_many() - get the distance of a provider from several clients
 * @provider: a PCI function; it need not provide memory yet
 * @clients: PCI functions, or devices below them
 * @num_clients: number of @clients
 * @verbose: warn of each client that does not reach it, with the reason
 *
 * Context: Process, may sleep.
 * Return: the sum of &kverbs_p2pdma_route.hops over the clients; -1 if one of them does
 *	not reach @provider, there are none, or there is not enough kernel memory.
 */
int kverbs_p2pdma_distance_many(struct pci_dev *provider, struct device **clients,
				int num_clients, bool verbose)
{
	struct p2p_path *paths;
	int distance;

	if (!p2p_is_own())
		return pci_p2pdma_distance_many(provider, clients, num_clients, verbose);
	paths = p2p_array_paths(clients, num_clients, verbose);
	if (!paths)
		return -1;
	distance = p2p_distance(provider, paths, num_clients, verbose);
	p2p_array_paths_free(paths, num_clients);
	return distance;
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_distance_many);

/**
 * kverbs_p2pmem_find_many() - find the nearest provider for several clients
 * @clients: PCI functions, or devices below them
 * @num_clients: number of @clients
 *
 * As kverbs_p2pmem_find(), but nothing is bound.
 *
 * Context: Process, may sleep.
 * Return: the provider, with a reference for the caller to put by pci_dev_put(); NULL if
 *	there is none, there are no clients, or there is not enough kernel memory.
 */
struct pci_dev *kverbs_p2pmem_find_many(struct device **clients, int num_clients)
{
	struct pci_dev *provider;
	struct p2p_path *paths;

	if (!p2p_is_own())
		return pci_p2pmem_find_many(clients, num_clients);
	paths = p2p_array_paths(clients, num_clients, false);
	if (!paths)
		return NULL;
	provider = p2p_find_nearest(paths, num_clients);
	p2p_array_paths_free(paths, num_clients);
	return provider;
}
EXPORT_SYMBOL_GPL(kverbs_p2pmem_find_many);

/* --- debugfs ------------------------------------------------------------------- */

/* Prints a line for each list that has clients. */
void p2p_lists_show(struct seq_file *m)
{
	struct p2p_client *client;
	struct p2p_list *list;
	const char *comma;

	mutex_lock(&p2p_lists_mutex);
	list_for_each_entry(list, &p2p_lists, entry) {
		seq_printf(m, "list=%u provider=%s clients=", list->number,
			   list->provider ? pci_name(list->provider) : "-");
		comma = "";
		list_for_each_entry(client, list->clients, entry) {
			seq_printf(m, "%s%s", comma, pci_name(client->pdev));
			comma = ",";
		}
		seq_putc(m, '\n');
	}
	mutex_unlock(&p2p_lists_mutex);
}

/* Whether @pdev is on any list. */
bool p2p_is_client(const struct pci_dev *pdev)
{
	struct p2p_client *client;
	struct p2p_list *list;
	bool found = false;

	mutex_lock(&p2p_lists_mutex);
	list_for_each_entry(list, &p2p_lists, entry)
		list_for_each_entry(client, list->clients, entry)
			found |= client->pdev == pdev;
	mutex_unlock(&p2p_lists_mutex);
	return found;
}
