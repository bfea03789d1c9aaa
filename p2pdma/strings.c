// SPDX-License-Identifier: GPL-2.0-only
/*
 * Texts for routes.
 */
#include <linux/export.h>
#include <linux/kernel.h>

#include "p2pdma.h"

/**
 * kverbs_p2pdma_why_msg() - get the reason for a route, for people
 * @why: from &struct kverbs_p2pdma_route
 *
 * Context: Any.
 * Return: a text, never NULL.
 */
const char *kverbs_p2pdma_why_msg(enum kverbs_p2pdma_why why)
{
	static const char * const msgs[] = {
		[KVERBS_P2PDMA_NOT_PCI] =
			"the client is not below a PCI device",
		[KVERBS_P2PDMA_SAME_FUNCTION] =
			"client and provider are one function",
		[KVERBS_P2PDMA_COMMON_BRIDGE] =
			"both are below one bridge",
		[KVERBS_P2PDMA_ZEN] =
			"processors of AMD Zen forward it",
		[KVERBS_P2PDMA_LISTED] =
			"the host bridge is known to forward it",
		[KVERBS_P2PDMA_ACS] =
			"ACS redirects it to the host bridge, which is not known to forward it",
		[KVERBS_P2PDMA_NOT_LISTED] =
			"no common bridge, and the host bridge is not known to forward it",
		[KVERBS_P2PDMA_NOT_SAME_HOST] =
			"the host bridges are known to forward it within one of them only",
		[KVERBS_P2PDMA_BY_POLICY] =
			"it is not known to work, but the policy allows it",
	};

	return why < KVERBS_P2PDMA_WHYS ? msgs[why] : "unknown";
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_why_msg);

/**
 * kverbs_p2pdma_map_msg() - get how a client reaches memory, for people and programs
 * @map: from &struct kverbs_p2pdma_route
 *
 * Context: Any.
 * Return: one word, never NULL.
 */
const char *kverbs_p2pdma_map_msg(enum kverbs_p2pdma_map map)
{
	static const char * const msgs[] = {
		[KVERBS_P2PDMA_REFUSED]		= "refused",
		[KVERBS_P2PDMA_BUS_ADDR]	= "bus",
		[KVERBS_P2PDMA_HOST_BRIDGE]	= "host",
	};

	return map < ARRAY_SIZE(msgs) ? msgs[map] : "unknown";
}
EXPORT_SYMBOL_GPL(kverbs_p2pdma_map_msg);
