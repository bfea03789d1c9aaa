// SPDX-License-Identifier: GPL-2.0-only
/* A table of sysctls has a size, and needs no empty entry at its end (6.6). */
#include <net/net_namespace.h>

static struct ctl_table_header __used *probe(struct net *net, struct ctl_table *table)
{
	return register_net_sysctl_sz(net, "probe", table, 1);
}
