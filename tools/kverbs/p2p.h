/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs p2p: what its files give each other.
 *
 *	p2p.c		the command, the matrix as text and as JSON
 *	p2p_read.c	what the kernel's files in debugfs say
 *	p2p_why.c	each route in words
 */
#ifndef KVERBS_P2P_H
#define KVERBS_P2P_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define P2P_DIR		"/sys/kernel/debug/kverbs_p2pdma"
#define P2P_MODULE	"/sys/module/kverbs_p2pdma"

/* A PCI function, as in 0000:3b:00.0. */
#define P2P_NAME	24
#define P2P_WORD	32

struct p2p_provider {
	char name[P2P_NAME];
	uint64_t size;
	uint64_t available;
	bool published;
	/* Who keeps the memory: "kernel", or "kverbs". */
	char keeper[P2P_WORD];
};

/* The words are those of the file, see Documentation/p2pdma.rst. */
struct p2p_route {
	char provider[P2P_NAME];
	char client[P2P_NAME];
	/* -1 if it is refused. */
	int distance;
	int hops;
	char map[P2P_WORD];
	char why[P2P_WORD];
	/* "-" if there is none. */
	char bridge[P2P_NAME];
	/* The ports that redirect, with commas; or "". */
	char *redirects;
};

/* A list of clients, and the provider that it is bound to or "-". */
struct p2p_list {
	unsigned int number;
	char provider[P2P_NAME];
	char *clients;
};

/* Providers and clients are sorted; routes are by client, then by provider. */
struct p2p_matrix {
	struct p2p_provider *providers;
	size_t nr_providers;
	char (*clients)[P2P_NAME];
	size_t nr_clients;
	struct p2p_route *routes;
	size_t nr_routes;
	struct p2p_list *lists;
	size_t nr_lists;
};

/*
 * Says what fails. Return: STATUS_OK or STATUS_FAILED; p2p_matrix_free() is right in
 * either case.
 */
int p2p_matrix_read(struct p2p_matrix *matrix);
void p2p_matrix_free(struct p2p_matrix *matrix);
/* NULL: they came or went while it was read. */
const struct p2p_route *p2p_matrix_route(const struct p2p_matrix *matrix,
					 const char *client, const char *provider);
/* What drives a function; "-" if nothing does. */
const char *p2p_driver(const char *name, char driver[P2P_WORD]);

/* Is it refused by a rule, which is not followed, for the policy allows it? */
bool p2p_is_by_policy(const struct p2p_route *route);
/* "bus address: both are below one bridge" */
const char *p2p_reason(const struct p2p_route *route);
/* A paragraph: the route, why it is so, what can be done about it. */
void p2p_print_why(const struct p2p_matrix *matrix, const struct p2p_route *route);

#endif /* KVERBS_P2P_H */
