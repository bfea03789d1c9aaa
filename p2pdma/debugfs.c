// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/kverbs_p2pdma/: who provides memory, who can reach it, and which
 * lists of clients there are. Each line consists of key=value pairs; tools/kverbs
 * reads them.
 *
 * Nothing is stored: the contents of a file are determined when it is read.
 */
#include <linux/debugfs.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "p2pdma.h"

static struct dentry *p2p_debugfs;

static int providers_show(struct seq_file *m, void *unused)
{
	struct pci_dev **providers;
	struct p2p_memory mem;
	int nr, i;

	nr = p2p_providers_get(&providers, false);
	if (nr < 0)
		return nr;
	for (i = 0; i < nr; i++)
		if (p2p_memory_of(providers[i], &mem))
			seq_printf(m, "provider=%s size=%zu available=%zu published=%d keeper=%s\n",
				   pci_name(providers[i]), mem.size, mem.available,
				   mem.published, p2p_is_own() ? "kverbs" : "kernel");
	p2p_providers_put(providers, nr);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(providers);

/* A word for each reason, for programs. */
static const char * const why_words[] = {
	[KVERBS_P2PDMA_NOT_PCI]		= "not_pci",
	[KVERBS_P2PDMA_SAME_FUNCTION]	= "same_function",
	[KVERBS_P2PDMA_COMMON_BRIDGE]	= "common_bridge",
	[KVERBS_P2PDMA_ZEN]		= "zen",
	[KVERBS_P2PDMA_LISTED]		= "listed",
	[KVERBS_P2PDMA_ACS]		= "acs",
	[KVERBS_P2PDMA_NOT_LISTED]	= "not_listed",
	[KVERBS_P2PDMA_NOT_SAME_HOST]	= "not_same_host",
	[KVERBS_P2PDMA_BY_POLICY]	= "by_policy",
};

static_assert(ARRAY_SIZE(why_words) == KVERBS_P2PDMA_WHYS);

static void show_route(struct seq_file *m, const struct p2p_path *provider,
		       const struct p2p_path *client)
{
	struct pci_dev *ports[P2P_MAX_PORTS];
	int nr = p2p_path_redirecting(provider, client, ports), i;
	struct kverbs_p2pdma_route route;

	p2p_path_route(provider, client, &route);
	seq_printf(m, "provider=%s client=%s distance=%d hops=%d map=%s why=%s",
		   pci_name(provider->dev[0]), pci_name(client->dev[0]),
		   route.map == KVERBS_P2PDMA_REFUSED ? -1 : route.hops, route.hops,
		   kverbs_p2pdma_map_msg(route.map), why_words[route.why]);
	if (route.has_bridge)
		seq_printf(m, " bridge=%04x:%02x:%02x.%d", route.domain, route.bus,
			   PCI_SLOT(route.devfn), PCI_FUNC(route.devfn));
	else
		seq_puts(m, " bridge=-");
	seq_printf(m, " acs_ports=%d", nr);
	for (i = 0; i < nr; i++)
		seq_printf(m, "%s%s", i ? "," : " redirects=", pci_name(ports[i]));
	seq_putc(m, '\n');
}

static int show_provider(struct seq_file *m, struct pci_dev *provider)
{
	struct pci_dev *pdev = NULL;
	struct p2p_path *paths;

	paths = kmalloc_array(2, sizeof(*paths), GFP_KERNEL);
	if (!paths)
		return -ENOMEM;
	p2p_path_init(&paths[0], provider);
	for_each_pci_dev(pdev) {
		/* Bridges rarely do DMA of their own. */
		if (pci_is_bridge(pdev) && !p2p_is_client(pdev))
			continue;
		p2p_path_init(&paths[1], pdev);
		show_route(m, &paths[0], &paths[1]);
	}
	kfree(paths);
	return 0;
}

static int matrix_show(struct seq_file *m, void *unused)
{
	struct pci_dev **providers;
	int nr, err = 0, i;

	nr = p2p_providers_get(&providers, false);
	if (nr < 0)
		return nr;
	for (i = 0; i < nr && !err; i++)
		err = show_provider(m, providers[i]);
	p2p_providers_put(providers, nr);
	return err;
}
DEFINE_SHOW_ATTRIBUTE(matrix);

static int lists_show(struct seq_file *m, void *unused)
{
	p2p_lists_show(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(lists);

void p2p_debugfs_init(void)
{
	p2p_debugfs = debugfs_create_dir("kverbs_p2pdma", NULL);
	debugfs_create_file("providers", 0400, p2p_debugfs, NULL, &providers_fops);
	debugfs_create_file("matrix", 0400, p2p_debugfs, NULL, &matrix_fops);
	debugfs_create_file("lists", 0400, p2p_debugfs, NULL, &lists_fops);
}

void p2p_debugfs_exit(void)
{
	debugfs_remove_recursive(p2p_debugfs);
}
