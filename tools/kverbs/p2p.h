/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * kverbs p2p: declarations that its files share.
 *
 *	p2p.c		the command, the matrix as text and as JSON
 *	p2p_read.c	reads the kernel's files in debugfs
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
	/* Manager of the memory: "kernel" or "kverbs". */
	char keeper[P2P_WORD];
};

/* Words as in the file, see Documentation/p2pdma.rst. */
struct p2p_route {
	char provider[P2P_NAME];
	char client[P2P_NAME];
	/* -1 if the route is refused. */
	int distance;
	int hops;
	char map[P2P_WORD];
	char why[P2P_WORD];
	/* "-" if there is none. */
	char bridge[P2P_NAME];
	/* The ports that redirect, separated by commas; or "". */
	char *redirects;
};

/* A list of clients, and the provider to which it is bound, or "-". */
struct p2p_list {
	unsigned int number;
	char provider[P2P_NAME];
	char *clients;
};

/* Providers and clients are sorted; routes are sorted by client, then by provider. */
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
 * Reports errors. Return: STATUS_OK or STATUS_FAILED; call p2p_matrix_free() in
 * either case.
 */
int p2p_matrix_read(struct p2p_matrix *matrix);
void p2p_matrix_free(struct p2p_matrix *matrix);
/* NULL if the functions came or went during the reading. */
const struct p2p_route *p2p_matrix_route(const struct p2p_matrix *matrix,
					 const char *client, const char *provider);
/* The driver of a function; "-" if there is none. */
const char *p2p_driver(const char *name, char driver[P2P_WORD]);

/* Tells whether a rule would refuse it, but the policy allows it. */
bool p2p_is_by_policy(const struct p2p_route *route);
/* "bus address: both are below one bridge" */
const char *p2p_reason(const struct p2p_route *route);
/* Prints a paragraph: the route, the reason, and what can be done about it. */
void p2p_print_why(const struct p2p_matrix *matrix, const struct p2p_route *route);

#endif /* KVERBS_P2P_H */
