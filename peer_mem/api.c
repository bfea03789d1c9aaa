// SPDX-License-Identifier: GPL-2.0-only
/*
 * The functions that drivers of other devices call.
 *
 * The versions of these symbols (CONFIG_MODVERSIONS) are derived from all types that this
 * file sees, down to the last member. So of our own headers it includes no more than
 * <rdma/peer_mem.h>: drivers need not be rebuilt when something internal changes.
 */
#include <linux/bug.h>
#include <linux/export.h>
#include <rdma/peer_mem.h>

#include "api.h"

/**
 * ib_register_peer_memory_client() - offer memory for RDMA
 * @peer_client: description of the client; it is never written, but is also read
 *	later, so it must stay until the client has unregistered
 * @invalidate_callback: set to the function with which the client ends RDMA to a
 *	region; NULL if this client never needs it
 *
 * The client's functions may be called before this returns. Clients are asked for
 * memory in the order of their registration. Users that cannot be revoked do not ask
 * a client that may invalidate.
 *
 * Context: Process, may sleep.
 * Return: a handle; NULL if the name is taken or not valid, the version is not
 * terminated, a function is missing, a flag is not known, or there is not enough
 * memory. The log says which.
 */
void *ib_register_peer_memory_client(const struct peer_memory_client *peer_client,
				     invalidate_peer_memory *invalidate_callback)
{
	return peer_client_register(peer_client, invalidate_callback);
}
EXPORT_SYMBOL_GPL(ib_register_peer_memory_client);

/**
 * ib_unregister_peer_memory_client() - offer no more memory
 * @reg_handle: from ib_register_peer_memory_client()
 *
 * From now on, the client is not asked for memory. Waits until it has no regions left,
 * and none of its calls to invalidate is under way; every ten seconds, the log says what
 * this waits for. After this has returned, none of the client's functions is called.
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
