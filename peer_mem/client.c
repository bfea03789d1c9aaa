// SPDX-License-Identifier: GPL-2.0-only
/*
 * The clients: drivers that offer memory.
 *
 * Lock protocol: clients_lock, a mutex, orders registration and the end of
 * unregistration, so that two clients cannot take the same name. The clients
 * are in an xarray by a number that only grows, and so in the order of their
 * registration; they are looked up under RCU. None of a client's functions is
 * called with clients_lock held, nor under RCU: a reference to percpu_ref users
 * keeps the client from being freed.
 *
 * Who can reach a client that unregisters: nobody new, because its percpu_ref is
 * killed; its regions, and invalidations, until they have put their references;
 * readers of its files, until those are removed; walks that saw it in the xarray,
 * until a grace period after it was taken out. It is freed after all of them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "api.h"
#include "peer.h"
#include "trace.h"

/* If an unregistration waits for regions, the log names so many of them each time. */
#define PEER_WARN_REGIONS	4

static DEFINE_MUTEX(clients_lock);
static DEFINE_XARRAY(clients);
static unsigned long next_client;

/*
 * Returns the next client whose number is *@id or more, and sets *@id to that
 * number; NULL if there is none. The caller puts the client, and may sleep before
 * that.
 */
struct peer_client *peer_client_next(unsigned long *id)
{
	struct peer_client *client;

	rcu_read_lock();
	xa_for_each_start(&clients, *id, client, *id) {
		/*
		 * data_race: the inline function has a plain read of a word that changes a
		 * grace period after the reference was killed; both values mean dead.
		 */
		if (data_race(percpu_ref_tryget_live(&client->users)))
			break;
	}
	rcu_read_unlock();
	return client;
}

void peer_client_put(struct peer_client *client)
{
	percpu_ref_put(&client->users);
}

static void peer_client_idle(struct percpu_ref *users)
{
	struct peer_client *client = container_of(users, struct peer_client, users);

	complete(&client->idle);
}

static bool peer_is_extended(const struct peer_memory_client *ops)
{
	return ops->version[IB_PEER_MEMORY_VER_MAX - 1];
}

static u32 peer_flags(const struct peer_memory_client *ops)
{
	const struct peer_memory_client_ex *ex =
		container_of(ops, const struct peer_memory_client_ex, client);

	if (!peer_is_extended(ops) ||
	    ex->ex_size < offsetofend(struct peer_memory_client_ex, flags))
		return 0;
	return ex->flags;
}

static bool peer_name_is_good(const char *name)
{
	return name[0] && name[0] != '.' &&
	       strnlen(name, IB_PEER_MEMORY_NAME_MAX) < IB_PEER_MEMORY_NAME_MAX &&
	       !strchr(name, '/');
}

/* Returns what is wrong with a client, and how to fix it; or NULL. */
static const char *peer_ops_fault(const struct peer_memory_client *ops)
{
	if (!peer_name_is_good(ops->name))
		return "bad name: must have 1 to 63 characters and a terminating 0, no '/', and no leading '.'";
	if (peer_is_extended(ops) &&
	    strnlen(ops->version, IB_PEER_MEMORY_VER_MAX - 1) == IB_PEER_MEMORY_VER_MAX - 1)
		return "version is not terminated: one of its first 15 bytes must be 0, the last one marks flags";
	if (!ops->acquire)
		return "method acquire is missing";
	if (!ops->get_pages)
		return "method get_pages is missing";
	if (!ops->dma_map)
		return "method dma_map is missing";
	if (!ops->dma_unmap)
		return "method dma_unmap is missing";
	if (!ops->put_pages)
		return "method put_pages is missing";
	if (peer_flags(ops) & ~PEER_MEM_INVALIDATE_UNMAPS)
		return "unknown flags: set only those of this version's peer_mem.h";
	return NULL;
}

/* A name is taken until its client has been unregistered. */
static bool peer_name_is_taken(const char *name)
{
	struct peer_client *client;
	unsigned long id;

	lockdep_assert_held(&clients_lock);
	xa_for_each(&clients, id, client)
		if (!strcmp(peer_client_name(client), name))
			return true;
	return false;
}

static void peer_client_free(struct peer_client *client)
{
	xa_destroy(&client->regions);
	percpu_ref_exit(&client->users);
	free_percpu(client->stats);
	kfree(client);
}

static struct peer_client *peer_client_alloc(const struct peer_memory_client *ops,
					     bool invalidates)
{
	struct peer_client *client = kzalloc(sizeof(*client), GFP_KERNEL);

	if (!client)
		return NULL;
	client->ops = ops;
	client->unmaps = peer_flags(ops) & PEER_MEM_INVALIDATE_UNMAPS;
	client->invalidates = invalidates;
	init_completion(&client->idle);
	xa_init(&client->regions);
	client->stats = alloc_percpu(struct peer_stats);
	if (!client->stats)
		goto err_client;
	if (percpu_ref_init(&client->users, peer_client_idle, 0, GFP_KERNEL))
		goto err_stats;
	return client;

err_stats:
	free_percpu(client->stats);
err_client:
	kfree(client);
	return NULL;
}

/* Makes the client known. Returns 0; -EEXIST if its name is taken; or another error. */
static int peer_client_add(struct peer_client *client)
{
	int err;

	lockdep_assert_held(&clients_lock);
	if (peer_name_is_taken(peer_client_name(client)))
		return -EEXIST;
	err = peer_sysfs_add(client);
	if (err)
		return err;
	peer_debugfs_add(client);
	client->id = next_client++;
	err = xa_insert(&clients, client->id, client, GFP_KERNEL);
	if (!err)
		return 0;
	peer_debugfs_remove(client);
	peer_sysfs_remove(client);
	return err;
}

/* See ib_register_peer_memory_client(). */
struct peer_client *peer_client_register(const struct peer_memory_client *ops,
					 invalidate_peer_memory *invalidate)
{
	const char *fault = peer_ops_fault(ops);
	struct peer_client *client;
	int err;

	if (fault) {
		pr_err("client '%.*s' refused: %s\n", IB_PEER_MEMORY_NAME_MAX, ops->name,
		       fault);
		return NULL;
	}
	client = peer_client_alloc(ops, invalidate);
	if (!client) {
		pr_err("client '%s' refused: no memory\n", ops->name);
		return NULL;
	}
	/* A client may invalidate as soon as it can be asked. */
	if (invalidate)
		*invalidate = peer_invalidate;
	mutex_lock(&clients_lock);
	err = peer_client_add(client);
	mutex_unlock(&clients_lock);
	trace_peer_client(client, "register", err);
	if (!err)
		return client;
	if (err == -EEXIST)
		pr_err("client '%s' refused: name already registered\n",
		       ops->name);
	else
		pr_err("client '%s' refused: error %d\n", ops->name, err);
	peer_client_free(client);
	return NULL;
}

/* Logs for which regions an unregistration waits. */
static void peer_client_warn(struct peer_client *client)
{
	struct peer_region *region;
	unsigned long number, n = 0;

	rcu_read_lock();
	xa_for_each(&client->regions, number, region)
		n++;
	pr_warn("client '%s': unregister waiting for %lu regions; deregister them or end their processes\n",
		peer_client_name(client), n);
	n = 0;
	xa_for_each(&client->regions, number, region) {
		if (n++ == PEER_WARN_REGIONS)
			break;
		pr_warn("client '%s': waiting for region %lu of %s, process %d (%s): %zu bytes at %#lx\n",
			peer_client_name(client), region->number, region->user,
			region->pid, region->comm, region->size, region->addr);
	}
	rcu_read_unlock();
}

/* See ib_unregister_peer_memory_client(). */
void peer_client_unregister(struct peer_client *client)
{
	trace_peer_client(client, "unregister", 0);
	percpu_ref_kill(&client->users);
	while (!wait_for_completion_timeout(&client->idle, PEER_WARN_INTERVAL))
		peer_client_warn(client);

	/* With the lock held, so that the name is not taken before the files are removed. */
	mutex_lock(&clients_lock);
	peer_debugfs_remove(client);
	peer_sysfs_remove(client);
	xa_erase(&clients, client->id);
	mutex_unlock(&clients_lock);
	synchronize_rcu();
	trace_peer_client(client, "unregistered", 0);
	peer_client_free(client);
}
