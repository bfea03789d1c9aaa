// SPDX-License-Identifier: GPL-2.0-only
/*
 * /sys/kernel/debug/kverbs_peer_mem/<client>/regions: which memory of a client is
 * registered, and for whom.
 *
 * The list is read under RCU, a buffer's worth at a time: regions may come and go
 * meanwhile. Removing the file waits for its readers.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>

#include "peer.h"

static struct dentry *debugfs_root;

/* The position is the number of the region, or any number between it and the previous one. */
static void *regions_find(struct seq_file *s, loff_t *pos)
{
	struct peer_client *client = s->private;
	unsigned long number = *pos;
	struct peer_region *region;

	region = xa_find(&client->regions, &number, ULONG_MAX, XA_PRESENT);
	if (region)
		*pos = number;
	return region;
}

static void *regions_start(struct seq_file *s, loff_t *pos)
	__acquires(RCU)
{
	rcu_read_lock();
	return regions_find(s, pos);
}

static void *regions_next(struct seq_file *s, void *v, loff_t *pos)
{
	++*pos;
	return regions_find(s, pos);
}

static void regions_stop(struct seq_file *s, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

static int regions_show(struct seq_file *s, void *v)
{
	const struct peer_region *region = v;

	seq_printf(s, "region=%lu addr=%#lx bytes=%zu pages=%u device=%s pid=%d comm=%s phase=%s\n",
		   region->number, region->addr, region->size, READ_ONCE(region->entries),
		   region->user, region->pid, region->comm,
		   peer_phase_name(READ_ONCE(region->phase)));
	return 0;
}

static const struct seq_operations regions_sops = {
	.start = regions_start,
	.next = regions_next,
	.stop = regions_stop,
	.show = regions_show,
};
DEFINE_SEQ_ATTRIBUTE(regions);

void peer_debugfs_add(struct peer_client *client)
{
	client->debugfs = debugfs_create_dir(peer_client_name(client), debugfs_root);
	debugfs_create_file("regions", 0400, client->debugfs, client, &regions_fops);
}

void peer_debugfs_remove(struct peer_client *client)
{
	debugfs_remove_recursive(client->debugfs);
}

void peer_debugfs_init(void)
{
	debugfs_root = debugfs_create_dir("kverbs_peer_mem", NULL);
}

void peer_debugfs_exit(void)
{
	debugfs_remove_recursive(debugfs_root);
}
