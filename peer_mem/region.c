// SPDX-License-Identifier: GPL-2.0-only
/*
 * A region's life, and the invalidation that may come at any moment of it.
 *
 *             activate() *            invalidation
 *    MAKING --------------> ACTIVE ----------------> REVOKING   in revoke()
 *       |                     |   \                   |   |
 *       | stop()              |    \ **       returned|   | ** returned
 *       v                     v     \                 |   |
 *   UNMAPPING <---------------+------\----------------+   |
 *       | put_pages() returned        \                   |
 *       +----------------------------> GONE <-------------+
 *
 *   *  also stop(), if an invalidation waits; goes on to REVOKING if one did not wait
 *   ** if the client unmaps the memory by itself, and this is left to it; from ACTIVE
 *      for an invalidation that has waited. Such a one may also enter UNMAPPING there
 *
 * In MAKING the registering task is in get_pages() or dma_map(); in UNMAPPING one task is in
 * dma_unmap() or put_pages(), whichever entered it. No phase is entered twice, so each thing
 * that was got is given back once. put() begins with stop(), even if the registration failed.
 *
 * Lock protocol: region->lock, a spinlock, guards the phase and what belongs to it; owner is
 * the task that is at work. No lock of ours is held while a function of the client's or
 * revoke() runs.
 *
 * What an invalidation does:
 *   MAKING     waits for its end, for a limited time: clients expect that, or what get_pages()
 *              pins would be taken away from under it. The registering task itself does not
 *              wait. Without success: -EINPROGRESS, a promise that dma_unmap() and put_pages()
 *              will be called, even if the client unmaps by itself
 *   ACTIVE     calls revoke(), and gives the memory back from within the client's own call,
 *              since the client knows what it has locked. If the client unmaps by itself, the
 *              registering task calls any function of the client's that must be called
 *   REVOKING   waits for it; from within revoke(): -EINPROGRESS, with the same promise
 *   UNMAPPING  -EINPROGRESS
 *   GONE       nothing
 *
 * This cannot deadlock: the caller of an invalidation may hold locks that the client's
 * functions take, so it waits without limit only for revoke(), which needs no such lock. stop()
 * and put() do wait for the client's functions; their callers hold no lock of a client's.
 *
 * A region that has been put can be reached by invalidations that found its number, until they
 * put their references; by those that look for the number, and readers of the list, until a
 * grace period after it was taken out of the xarray. region_free() drops its reference on the
 * client.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/export.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <kverbs/delay.h>
#include <kverbs/peer_region.h>

#include "peer.h"
#include "trace.h"

static unsigned int invalidate_wait_ms = 1000;
module_param(invalidate_wait_ms, uint, 0644);
MODULE_PARM_DESC(invalidate_wait_ms,
		 "Max time in ms that an invalidation waits for a registration in progress; 0: do not wait (default: 1000)");

const char *peer_phase_name(enum peer_phase phase)
{
	static const char * const names[] = {
		[PEER_MAKING]		= "MAKING",
		[PEER_ACTIVE]		= "ACTIVE",
		[PEER_REVOKING]		= "REVOKING",
		[PEER_UNMAPPING]	= "UNMAPPING",
		[PEER_GONE]		= "GONE",
	};

	return names[phase];
}

/* Enters @phase, in which @owner is the task at work; NULL if none is. */
static void region_enter(struct peer_region *region, enum peer_phase phase,
			 struct task_struct *owner)
{
	lockdep_assert_held(&region->lock);
	WRITE_ONCE(region->phase, phase);
	region->owner = owner;
	wake_up_all(&region->wait);
}

/*
 * Waits, with the lock dropped, until the region is in another phase. Returns false if
 * @timeout has passed.
 */
static bool region_wait(struct peer_region *region, enum peer_phase phase, long timeout)
	__must_hold(&region->lock)
{
	lockdep_assert_held(&region->lock);
	spin_unlock(&region->lock);
	wait_event_timeout(region->wait, READ_ONCE(region->phase) != phase, timeout);
	spin_lock(&region->lock);
	return region->phase != phase;
}

static const char *region_owner_work(enum peer_phase phase)
{
	switch (phase) {
	case PEER_REVOKING:
		return "revoke() of its user";
	case PEER_UNMAPPING:
		return "dma_unmap() or put_pages() of the client";
	default:
		return "an invalidation";
	}
}

/* As region_wait(), without limit; logs now and then what it waits for. */
static void region_wait_for_owner(struct peer_region *region, enum peer_phase phase)
{
	struct task_struct *owner;

	lockdep_assert_held(&region->lock);
	while (!region_wait(region, phase, PEER_WARN_INTERVAL)) {
		/* Valid: the task is in one of our functions, so it has not exited. */
		owner = region->owner;
		pr_warn("client '%s': waiting for region %lu of %s (%zu bytes at %#lx): %s has not returned, called by process %d (%s)\n",
			peer_client_name(region->client), region->number, region->user,
			region->size, region->addr, region_owner_work(phase),
			owner ? task_pid_nr(owner) : 0,
			owner ? owner->comm : "?");
	}
}

/*
 * Gives the region a number that no other has, and enters it in the xarray. With 64 bits, numbers
 * are never reused: so a late invalidation, of a region that has been put, cannot hit another one.
 */
static int region_enter_number(struct peer_region *region)
{
	struct peer_client *client = region->client;
	int err;

	do {
		region->number = atomic_long_inc_return(&client->last_number);
		err = region->number ? xa_insert(&client->regions, region->number, region,
						 GFP_KERNEL_ACCOUNT) : -EBUSY;
	} while (err == -EBUSY);
	return err;
}

/*
 * Allocates a region that has a number, and a reference to the client;
 * peer_region_put() gives both back.
 */
struct peer_region *peer_region_alloc(struct peer_client *client, void *context,
				      const struct peer_request *req)
{
	struct peer_region *region = kzalloc(sizeof(*region), GFP_KERNEL_ACCOUNT);
	int err;

	if (!region)
		return ERR_PTR(-ENOMEM);
	region->client = client;
	region->context = context;
	region->addr = req->addr;
	region->size = req->size;
	region->dma_device = req->dma_device;
	spin_lock_init(&region->lock);
	region->phase = PEER_MAKING;
	region->owner = current;
	init_waitqueue_head(&region->wait);
	kref_init(&region->ref);
	region->pid = current->tgid;
	get_task_comm(region->comm, current);
	strscpy(region->user, req->user, sizeof(region->user));

	percpu_ref_get(&client->users);
	err = region_enter_number(region);
	if (!err)
		return region;
	percpu_ref_put(&client->users);
	kfree(region);
	return ERR_PTR(err);
}

static void region_free(struct kref *ref)
{
	struct peer_region *region = container_of(ref, struct peer_region, ref);
	struct peer_client *client = region->client;

	sg_free_table(&region->table);
	kfree_rcu(region, rcu);
	peer_client_put(client);
}

/* Calls revoke(), without the lock. */
static void region_revoke(struct peer_region *region)
	__must_hold(&region->lock)
{
	void (*revoke)(void *arg) = region->revoke;
	u64 start;

	lockdep_assert_held(&region->lock);
	if (!revoke)
		return;
	region_enter(region, PEER_REVOKING, current);
	spin_unlock(&region->lock);
	start = ktime_get_ns();
	revoke(region->arg);
	peer_count_revoke(region->client, ktime_get_ns() - start);
	spin_lock(&region->lock);
}

static void region_released(struct peer_region *region)
{
	struct peer_client *client = region->client;

	lockdep_assert_held(&region->lock);
	if (region->entries) {
		peer_count(client, PEER_STAT_DEALLOC_MRS, 1);
		peer_count(client, PEER_STAT_DEREG_PAGES, region->entries);
		peer_count(client, PEER_STAT_DEREG_BYTES, region->size);
	}
	region_enter(region, PEER_GONE, NULL);
}

/* Gives the memory back by calling the functions of the client, without the lock. */
static void region_unmap(struct peer_region *region)
	__must_hold(&region->lock)
{
	const struct peer_memory_client *ops = region->client->ops;

	lockdep_assert_held(&region->lock);
	region_enter(region, PEER_UNMAPPING, current);
	spin_unlock(&region->lock);
	if (region->mapped)
		ops->dma_unmap(&region->sgt, region->context, region->dma_device);
	if (region->pinned)
		ops->put_pages(&region->sgt, region->context);
	spin_lock(&region->lock);
	region_released(region);
}

/* What an invalidation returns if nothing is left to do. */
static int region_done_result(const struct peer_region *region)
{
	return region->client->unmaps ? -ENOENT : 0;
}

/*
 * Whether the unmapping is left to the client: if it is of the kind that unmaps by itself, has
 * mapped the region, and was not promised, by -EINPROGRESS, that its functions would be called.
 */
static bool region_client_unmaps(const struct peer_region *region)
{
	return region->client->unmaps && region->mapped && !region->promised;
}

/*
 * Whether an invalidation that waits gives the memory back. Not if that means to call functions of
 * a client that unmaps by itself: the caller of the invalidation may hold any lock of that client.
 */
static bool region_waiter_unmaps(const struct peer_region *region)
{
	return region->waiters &&
	       (!region->client->unmaps || region_client_unmaps(region));
}

/*
 * Ends the use of an active region, and gives the memory back. Returns what the
 * invalidation answers.
 */
static int region_withdraw(struct peer_region *region)
{
	lockdep_assert_held(&region->lock);
	region_revoke(region);
	if (region_client_unmaps(region)) {
		region_released(region);
		return 0;
	}
	region_unmap(region);
	return region_done_result(region);
}

/* Waits for the end of a registration by another task. */
static void region_wait_made(struct peer_region *region)
{
	unsigned int ms = READ_ONCE(invalidate_wait_ms);

	lockdep_assert_held(&region->lock);
	if (region->owner == current || !ms)
		return;
	peer_count(region->client, PEER_STAT_INVALIDATE_WAITS, 1);
	region->waiters++;
	if (!region_wait(region, PEER_MAKING, msecs_to_jiffies(ms)))
		peer_count(region->client, PEER_STAT_INVALIDATE_TIMEOUTS, 1);
	region->waiters--;
}

static int region_invalidate(struct peer_region *region)
{
	int ret = -EINPROGRESS;

	lockdep_assert_held(&region->lock);
	if (region->phase == PEER_MAKING)
		region_wait_made(region);
	if (region->phase == PEER_REVOKING && region->owner != current)
		region_wait_for_owner(region, PEER_REVOKING);

	switch (region->phase) {
	case PEER_MAKING:
	case PEER_REVOKING:
		region->promised = true;
		break;
	case PEER_ACTIVE:
		ret = region_withdraw(region);
		break;
	case PEER_UNMAPPING:
		break;
	case PEER_GONE:
		ret = region_done_result(region);
		break;
	}
	return ret;
}

static struct peer_region *region_find(struct peer_client *client, u64 number)
{
	struct peer_region *region;

	rcu_read_lock();
	region = xa_load(&client->regions, number);
	if (region && !kref_get_unless_zero(&region->ref))
		region = NULL;
	rcu_read_unlock();
	return region;
}

/* Invalidates a region for its client: see &typedef invalidate_peer_memory. */
int peer_invalidate(void *reg_handle, peer_core_context_t core_context)
{
	struct peer_client *client = reg_handle;
	enum peer_phase found = PEER_GONE;
	struct peer_region *region;
	u64 start = ktime_get_ns();
	int ret = -ENOENT;

	/* A client may be asked for memory before it has its handle, but cannot invalidate then. */
	if (WARN_ON_ONCE(!client) || !percpu_ref_tryget(&client->users))
		return ret;
	peer_count(client, PEER_STAT_FREE_CALLBACKS, 1);
	kverbs_delay("peer_invalidate");
	region = region_find(client, core_context);
	if (region) {
		kverbs_delay("peer_invalidate_found");
		spin_lock(&region->lock);
		found = region->phase;
		ret = region_invalidate(region);
		spin_unlock(&region->lock);
		kref_put(&region->ref, region_free);
	}
	trace_peer_invalidate(client, core_context, found, ret, ktime_get_ns() - start);
	peer_client_put(client);
	return ret;
}

/*
 * Whether the client has invalidated the region while it is being made: then an invalidation waits,
 * or has returned with a promise.
 */
bool peer_region_is_doomed(struct peer_region *region)
{
	bool doomed;

	spin_lock(&region->lock);
	doomed = region->waiters || region->promised;
	spin_unlock(&region->lock);
	return doomed;
}

/**
 * peer_region_activate() - allow a region to be revoked
 * @region: from peer_region_get(), for a revocable request
 * @revoke: ends all use of the memory: when it returns, the device does not access
 *	it, and never will
 * @arg: argument of @revoke
 *
 * @revoke is called at most once, by any thread, perhaps before this returns. It may
 * sleep and may call peer_region_stop(), but must not wait for a lock of a client's.
 *
 * Context: Process, may sleep.
 */
void peer_region_activate(struct peer_region *region, void (*revoke)(void *arg), void *arg)
{
	spin_lock(&region->lock);
	if (!WARN_ON_ONCE(region->phase != PEER_MAKING)) {
		region->revoke = revoke;
		region->arg = arg;
		region_enter(region, PEER_ACTIVE, NULL);
		if ((region->promised || region->waiters) &&
		    !region_waiter_unmaps(region))
			region_withdraw(region);
	}
	spin_unlock(&region->lock);
}
EXPORT_SYMBOL_GPL(peer_region_activate);

/*
 * Makes sure that revoke() is not called any more. Gives the memory back, or leaves that
 * to whoever is doing it already.
 */
static void region_stop(struct peer_region *region)
{
	lockdep_assert_held(&region->lock);
	region->revoke = NULL;
	if (region->phase == PEER_REVOKING && region->owner != current)
		region_wait_for_owner(region, PEER_REVOKING);
	if (region->phase > PEER_ACTIVE)
		return;
	if (!region_waiter_unmaps(region))
		region_unmap(region);
	else if (region->phase == PEER_MAKING)
		region_enter(region, PEER_ACTIVE, NULL);
}

/**
 * peer_region_stop() - end the use of a region
 * @region: the region, active or not; the device does not access it any more
 *
 * When this returns, revoke() is not running and will not be called, unless revoke()
 * is the caller. The memory has been given back to the client, or an invalidation is
 * giving it back.
 *
 * Context: Process, may sleep.
 */
void peer_region_stop(struct peer_region *region)
{
	spin_lock(&region->lock);
	region_stop(region);
	spin_unlock(&region->lock);
}
EXPORT_SYMBOL_GPL(peer_region_stop);

/**
 * peer_region_put() - end a region
 * @region: from peer_region_get(); may be freed by this
 *
 * Does what peer_region_stop() does, if that has not been called. Waits for an
 * invalidation that is giving the memory back, then lets the client forget the region.
 *
 * Context: Process, may sleep. Not from within revoke().
 */
void peer_region_put(struct peer_region *region)
{
	struct peer_client *client = region->client;

	trace_peer_region_put(region);
	spin_lock(&region->lock);
	region_stop(region);
	while (region->phase != PEER_GONE)
		region_wait_for_owner(region, region->phase);
	spin_unlock(&region->lock);

	if (client->ops->release)
		client->ops->release(region->context);
	if (region->entries)
		peer_count(client, PEER_STAT_LIVE_MRS, -1);
	xa_erase(&client->regions, region->number);
	kref_put(&region->ref, region_free);
}
EXPORT_SYMBOL_GPL(peer_region_put);

/**
 * peer_region_table() - get the table of the memory that the device reaches
 * @region: from peer_region_get()
 *
 * Context: Any.
 * Return: a table, which is valid until peer_region_put(). Its entries have a DMA
 * address and a DMA length, and no pages. They cover the whole pages of the system
 * that the range touches.
 */
const struct sg_table *peer_region_table(const struct peer_region *region)
{
	return &region->table;
}
EXPORT_SYMBOL_GPL(peer_region_table);

/**
 * peer_region_client() - get the name of the client whose memory it is
 * @region: from peer_region_get()
 *
 * Context: Any.
 * Return: the client's name, which is valid until peer_region_put().
 */
const char *peer_region_client(const struct peer_region *region)
{
	return peer_client_name(region->client);
}
EXPORT_SYMBOL_GPL(peer_region_client);
