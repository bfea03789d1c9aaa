/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All of the registry that api.c may see; the reason is in api.c.
 */
#ifndef KVERBS_PEER_API_H
#define KVERBS_PEER_API_H

#include <rdma/peer_mem.h>

struct peer_client;

struct peer_client *peer_client_register(const struct peer_memory_client *ops,
					 invalidate_peer_memory *invalidate);
void peer_client_unregister(struct peer_client *client);

#endif /* KVERBS_PEER_API_H */
