/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the files of kverbs_peer_mem share.
 */
#ifndef KVERBS_PEER_H
#define KVERBS_PEER_H

#include <linux/completion.h>
#include <linux/kobject.h>
#include <linux/kref.h>
#include <linux/percpu-refcount.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>
#include <rdma/peer_mem.h>

/* A wait that lasts longer is logged. */
#define PEER_WARN_INTERVAL	(10 * HZ)

struct dentry;
struct peer_request;

/* The counters of a client; see sysfs.c for their names. */
enum peer_stat {
	PEER_STAT_ALLOC_MRS,
	PEER_STAT_DEALLOC_MRS,
	PEER_STAT_REG_PAGES,
	PEER_STAT_DEREG_PAGES,
	PEER_STAT_REG_BYTES,
	PEER_STAT_DEREG_BYTES,
	PEER_STAT_FREE_CALLBACKS,
	PEER_STAT_LIVE_MRS,
	PEER_STAT_REVOKES,
	PEER_STAT_INVALIDATE_WAITS,
	PEER_STAT_INVALIDATE_TIMEOUTS,
	PEER_STAT_MAX
};

struct peer_stats {
	u64 count[PEER_STAT_MAX];
};

/**
 * struct peer_client - a registered client
 * @ops: the GPU driver's functions
 * @id: key in the list of clients
 * @unmaps: it has PEER_MEM_INVALIDATE_UNMAPS
 * @invalidates: it may invalidate
 * @users: regions, walks and invalidations that are under way; killed when the
 *	client unregisters
 * @idle: completed when @users has dropped to zero
 * @regions: its regions, by number
 * @last_number: number of the last region
 * @stats: counters, per CPU
 * @max_revoke_us: duration of the longest revoke(), in microseconds
 * @kobj: its directory in sysfs
 * @kobj_released: completed when the last reference to @kobj is dropped
 * @debugfs: its directory in debugfs
 */
struct peer_client {
	const struct peer_memory_client *ops;
	unsigned long id;
	bool unmaps;
	bool invalidates;
	struct percpu_ref users;
	struct completion idle;
	struct xarray regions;
	atomic_long_t last_number;
	struct peer_stats __percpu *stats;
	atomic_long_t max_revoke_us;
	struct kobject kobj;
	struct completion kobj_released;
	struct dentry *debugfs;
};

/*
 * Phases of a region, see region.c. A region enters no phase twice, and never goes
 * back to an earlier one.
 */
enum peer_phase {
	PEER_MAKING,
	PEER_ACTIVE,
	PEER_REVOKING,
	PEER_UNMAPPING,
	PEER_GONE,
};

/**
 * struct peer_region - memory of a client that is mapped for a device
 * @client: whose memory it is
 * @context: the context that acquire() returned
 * @number: the name of the region for the client: core_context
 * @addr: address of the first byte, in the process
 * @size: bytes
 * @dma_device: the device that reaches it
 * @sgt: the client's table, which only the client writes
 * @table: the part of it that the device gets
 * @pinned: put_pages() is due
 * @mapped: dma_unmap() is due
 * @entries: number of mapped entries of @sgt; 0 if the region was never complete,
 *	and so was not counted
 * @lock: guards the fields below, down to @arg
 * @phase: also read without the lock, but then checked again under it
 * @owner: the task that is in get_pages(), dma_map(), revoke(), dma_unmap() or
 *	put_pages()
 * @waiters: number of invalidations that wait for the end of %PEER_MAKING
 * @promised: the client was told that dma_unmap() and put_pages() will be called
 * @revoke: function to call once, with @arg; or NULL
 * @arg: argument of @revoke
 * @wait: for changes of @phase
 * @ref: the user's reference, until peer_region_put(); one for each invalidation
 *	under way
 * @rcu: for freeing it, because lookups by number may still see it
 * @pid: the process that registered it, for messages
 * @comm: name of that process
 * @user: name of the RDMA device
 */
struct peer_region {
	struct peer_client *client;
	void *context;
	unsigned long number;
	unsigned long addr;
	size_t size;
	struct device *dma_device;
	struct sg_table sgt;
	struct sg_table table;
	bool pinned;
	bool mapped;
	unsigned int entries;

	spinlock_t lock;
	enum peer_phase phase;
	struct task_struct *owner;
	unsigned int waiters;
	bool promised;
	void (*revoke)(void *arg);
	void *arg;
	wait_queue_head_t wait;

	struct kref ref;
	struct rcu_head rcu;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	char user[64];
};

static inline const char *peer_client_name(const struct peer_client *client)
{
	return client->ops->name;
}

static inline void peer_count(struct peer_client *client, enum peer_stat stat, u64 n)
{
	this_cpu_add(client->stats->count[stat], n);
}

/* stats.c */
u64 peer_stat_sum(const struct peer_client *client, enum peer_stat stat);
void peer_count_revoke(struct peer_client *client, u64 ns);

/* client.c */
struct peer_client *peer_client_next(unsigned long *id);
void peer_client_put(struct peer_client *client);

/* region.c */
struct peer_region *peer_region_alloc(struct peer_client *client, void *context,
				      const struct peer_request *req);
bool peer_region_is_doomed(struct peer_region *region);
int peer_invalidate(void *reg_handle, peer_core_context_t core_context);
const char *peer_phase_name(enum peer_phase phase);


/* sysfs.c */
int peer_sysfs_init(void);
void peer_sysfs_exit(void);
int peer_sysfs_add(struct peer_client *client);
void peer_sysfs_remove(struct peer_client *client);

/* debugfs.c */
void peer_debugfs_init(void);
void peer_debugfs_exit(void);
void peer_debugfs_add(struct peer_client *client);
void peer_debugfs_remove(struct peer_client *client);

#endif /* KVERBS_PEER_H */
