// SPDX-License-Identifier: GPL-2.0-only
/*
 * Routes in words: how a client reaches a provider's memory, why this way, and what
 * the user can do to change it.
 */
#include <string.h>

#include "kverbs.h"
#include "p2p.h"

/* See enum kverbs_p2pdma_why in <kverbs/p2pdma.h>. */
static const struct {
	const char *why;
	const char *words;
} reasons[] = {
	{ "same_function", "client and provider are the same function" },
	{ "common_bridge", "no port on the route redirects it" },
	{ "zen", "processors of AMD Zen forward it" },
	{ "listed", "the host bridge is known to forward it" },
	{ "acs", "ports redirect it to the host bridge, which is not known to forward it" },
	{ "not_listed", "no bridge is above both, and the host bridge is not known to forward it" },
	{ "not_same_host", "the host bridges are only known to forward it within one bridge" },
	{ "by_policy", "it is not known to work, but the policy allows it" },
	{ "not_pci", "the client is not below a PCI function" },
};

bool p2p_is_by_policy(const struct p2p_route *route)
{
	return !strcmp(route->why, "by_policy");
}

const char *p2p_reason(const struct p2p_route *route)
{
	size_t i;

	for (i = 0; i < COUNT(reasons); i++)
		if (!strcmp(reasons[i].why, route->why))
			return reasons[i].words;
	return route->why;
}

/* Tells whether the kernel manages this provider's memory, and so decides alone. */
static bool is_kernels(const struct p2p_matrix *matrix, const char *provider)
{
	size_t i;

	for (i = 0; i < matrix->nr_providers; i++)
		if (!strcmp(matrix->providers[i].name, provider))
			return !strcmp(matrix->providers[i].keeper, "kernel");
	return false;
}

static void print_ports(const struct p2p_route *route)
{
	const char *at;

	if (!*route->redirects)
		return;
	printf("  Ports that redirect by ACS: %s\n", route->redirects);
	printf("  To turn that off, boot with:  pci=disable_acs_redir=");
	/* The kernel expects semicolons there. */
	for (at = route->redirects; *at; at++)
		putchar(*at == ',' ? ';' : *at);
	printf("\n  The IOMMU then no longer isolates the devices below them.\n");
}

static void print_bridge(const struct p2p_route *route)
{
	if (*route->redirects || !strcmp(route->bridge, "-"))
		return;
	if (!strcmp(route->why, "common_bridge"))
		printf("  The bridge above both: %s\n", route->bridge);
	else if (strcmp(route->why, "same_function"))
		printf("  The provider's host bridge is known by: %s\n", route->bridge);
}

static void print_policy(const struct p2p_matrix *matrix, const struct p2p_route *route)
{
	if (is_kernels(matrix, route->provider))
		printf("  This kernel manages the memory itself and allows no other route.\n");
	else
		printf("  If you know that the host bridge forwards it, allow it, as root:\n"
		       "  echo warn >" P2P_MODULE "/parameters/policy\n");
}

static void print_remedy(const struct p2p_matrix *matrix, const struct p2p_route *route)
{
	if (strcmp(route->map, "refused") || !strcmp(route->why, "not_pci"))
		return;
	if (!*route->redirects)
		printf("  Put both below one switch, or use a provider that shares one with the client.\n");
	print_policy(matrix, route);
}

void p2p_print_why(const struct p2p_matrix *matrix, const struct p2p_route *route)
{
	char driver[P2P_WORD];

	printf("%s (%s) to the memory of ", route->client, p2p_driver(route->client, driver));
	printf("%s (%s):\n", route->provider, p2p_driver(route->provider, driver));
	if (!strcmp(route->map, "refused"))
		printf("  refused: %s\n", p2p_reason(route));
	else
		printf("  by %s, %d ports: %s\n",
		       !strcmp(route->map, "bus") ? "bus address" : "the host bridge",
		       route->hops, p2p_reason(route));
	print_bridge(route);
	print_ports(route);
	print_remedy(matrix, route);
}
