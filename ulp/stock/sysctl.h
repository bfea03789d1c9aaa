/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Included ahead of those of the kernel's source files that register sysctls.
 *
 * Kernels before 6.6 read a table up to an empty entry, which these do not have: registers a copy
 * that has one.
 */
#ifndef KVERBS_ULPS_SYSCTL_H
#define KVERBS_ULPS_SYSCTL_H

#include <linux/slab.h>
#include <net/net_namespace.h>

#ifndef HAVE_REGISTER_NET_SYSCTL_SZ
static inline struct ctl_table_header *
kv_register_net_sysctl(struct net *net, const char *path, const struct ctl_table *table,
		       size_t count)
{
	struct ctl_table *copy = kcalloc(count + 1, sizeof(*copy), GFP_KERNEL);
	struct ctl_table_header *header;

	if (!copy)
		return NULL;
	memcpy(copy, table, count * sizeof(*copy));
	header = register_net_sysctl(net, path, copy);
	if (!header)
		kfree(copy);
	return header;
}

static inline void kv_unregister_net_sysctl(struct ctl_table_header *header)
{
	struct ctl_table *copy = header->ctl_table_arg;

	unregister_net_sysctl_table(header);
	kfree(copy);
}

#define register_net_sysctl(net, path, table) \
	kv_register_net_sysctl(net, path, table, ARRAY_SIZE(table))
#define unregister_net_sysctl_table(header) kv_unregister_net_sysctl(header)
#endif

#endif
