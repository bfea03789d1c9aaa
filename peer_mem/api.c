// SPDX-License-Identifier: GPL-2.0-only
/*
 * What drivers of other devices call.
 *
 * The versions of these symbols come from all types that this file sees, to the last
 * member. It sees no more of ours than <rdma/peer_mem.h>, so that drivers need not be
 * built again when something changes inside.
 */
#include <linux/bug.h>
#include <linux/export.h>
#include <rdma/peer_mem.h>

#include "api.h"

/**
 * ib_register_peer_memory_client() - offer memory for RDMA
 * @peer_client: what the client is; read, also later, but never written, so it stays
 *	until the client has unregistered
 * @invalidate_callback: set to the function that ends RDMA to a region; NULL: this
 *	client never needs it
 *
 * The client's functions may be called before this returns. Clients are asked in the
 * order of their registration. One that may invalidate is not asked by users who
 * cannot be revoked.
 *
 * Context: Process, may sleep.
 * Return: a handle; NULL if the name is taken or not a name, the version is not
 * terminated, a function is missing, a flag is not known, or memory is lacking. The
 * log has which.
 */
void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback)
{
	return peer_client_register(peer_client, invalidate_callback);
}
EXPORT_SYMBOL_GPL(ib_register_peer_memory_client);

/**
 * ib_unregister_peer_memory_client() - offer no more memory
 * @reg_handle: of ib_register_peer_memory_client()
 *
 * From now on nobody asks the client. Waits until none of its regions is left, and
 * none of its calls to invalidate is under way; every ten seconds the log has for
 * whom. None of the client's functions is called after that.
 *
 * Context: Process, may sleep. Not from within any of the client's functions, and not
 * with a lock held that these need.
 */
void ib_unregister_peer_memory_client(void *reg_handle)
{
	if (!WARN_ON_ONCE(!reg_handle))
		peer_client_unregister(reg_handle);
}
EXPORT_SYMBOL_GPL(ib_unregister_peer_memory_client);
