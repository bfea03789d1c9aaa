// SPDX-License-Identifier: GPL-2.0-only
/* A macro makes a route of a struct dst_entry (6.10). */
#include <net/route.h>

static struct rtable __used *probe(struct dst_entry *dst)
{
	return dst_rtable(dst);
}
