// SPDX-License-Identifier: GPL-2.0-only
/*
 * The pool: completion queues that consumers share.
 *
 * A consumer asks for entries on a completion vector in a polling context, and gets a CQ
 * that has enough entries left; if none has, a new one. A CQ is idle when all its entries
 * have been given back. It is destroyed when it has been idle for a while, by delayed work,
 * or when the device is unregistered.
 *
 * Lock protocol: pool->lock (a mutex) guards a device's pool, with the lists, users and
 * loads in it, and ib_cq.cqe_used. It is not held while a CQ is created or destroyed: a CQ
 * that is being created is not in the pool yet, and one that is being destroyed has left
 * it, so ib_cq_pool_get() finds neither.
 */
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/instruction_pointer.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/topology.h>
#include <linux/workqueue.h>
#include <kverbs/delay.h>

#include "../core/contract/contract.h"
#include "../core/contract/invalid.h"
#include "../core/contract/registry.h"
#include "cq.h"

/* Entries of a CQ made for the pool: a few consumers' worth. */
#define IB_CQ_POOL_CQE		4096

/* How often to check whether an idle CQ has lost its last QP. */
#define IB_CQ_POOL_LOOK		HZ

static unsigned int cq_pool_idle_ms = 10000;
module_param(cq_pool_idle_ms, uint, 0644);
MODULE_PARM_DESC(cq_pool_idle_ms,
		 "Time in ms that an unused CQ is kept in the pool (default: 10000)");

/**
 * struct ib_cq_pool - what a device's consumers share
 * @device: the device
 * @lock: guards the pool
 * @cqs: the CQs by polling context, linked by ib_cq.pool_entry
 * @trim: destroys those that stay idle
 * @trim_at: when @trim runs next, in jiffies
 * @next_vector: vector that is preferred among equals
 * @nr: number of vectors
 * @load: entries in use, by vector
 */
struct ib_cq_pool {
	struct ib_device *device;
	struct mutex lock;
	struct list_head cqs[IB_CQ_CONTEXTS];
	struct delayed_work trim;
	unsigned long trim_at;
	unsigned int next_vector;
	unsigned int nr;
	u64 load[];
};

/**
 * struct ib_cq_share - what the pool keeps for each CQ, as its cq_context
 * @users: the users that have entries
 * @idle_since: when the last user left, in jiffies
 */
struct ib_cq_share {
	struct list_head users;
	unsigned long idle_since;
};

/**
 * struct ib_cq_user - entries that a consumer has
 * @node: in ib_cq_share.users
 * @nr_cqe: how many
 * @name: name of the module; a copy, because the module may be unloaded without giving the
 *	entries back
 * @site: call site that asked for them
 */
struct ib_cq_user {
	struct list_head node;
	unsigned int nr_cqe;
	char name[MODULE_NAME_LEN];
	unsigned long site;
};

static struct ib_cq_share *ib_cq_share(const struct ib_cq *cq)
{
	return cq->cq_context;
}

static bool ib_cq_pool_covers(const struct ib_cq_pool *pool, unsigned int vector,
			      const struct cpumask *cpus)
{
	const struct cpumask *mask = ib_get_vector_affinity(pool->device, vector);

	if (mask)
		return cpumask_intersects(mask, cpus);
	return cpumask_test_cpu(ib_cq_vector_cpu(pool->device, vector, -1), cpus);
}

/*
 * Returns the vector with the least load of those that interrupt @cpus; among
 * equals the one that interrupts @cpu, else the next in turn; -1 if there is
 * none.
 */
static int ib_cq_pool_least(const struct ib_cq_pool *pool, const struct cpumask *cpus, int cpu)
{
	bool here, best_here = false;
	unsigned int i, vector;
	int best = -1;

	for (i = 0; i < pool->nr; i++) {
		vector = (pool->next_vector + i) % pool->nr;
		if (!ib_cq_pool_covers(pool, vector, cpus))
			continue;
		if (best >= 0 && pool->load[vector] > pool->load[best])
			continue;
		here = ib_cq_pool_covers(pool, vector, cpumask_of(cpu));
		if (best < 0 || pool->load[vector] < pool->load[best] || (here && !best_here)) {
			best = vector;
			best_here = here;
		}
	}
	return best;
}

static unsigned int ib_cq_pool_vector(struct ib_cq_pool *pool, int hint)
{
	int cpu = raw_smp_processor_id();
	int vector;

	lockdep_assert_held(&pool->lock);
	if (hint >= 0)
		return hint % pool->nr;
	vector = ib_cq_pool_least(pool, cpumask_of_node(cpu_to_node(cpu)), cpu);
	if (vector < 0)
		vector = ib_cq_pool_least(pool, cpu_possible_mask, cpu);
	/* The driver may report that none of its vectors interrupts any CPU. */
	if (vector < 0)
		vector = pool->next_vector;
	pool->next_vector = (vector + 1) % pool->nr;
	return vector;
}

/* Returns the least used CQ with room for @nr_cqe more, or NULL; not one that has failed. */
static struct ib_cq *ib_cq_pool_find(struct ib_cq_pool *pool, unsigned int vector,
				     enum ib_poll_context poll_ctx, unsigned int nr_cqe)
{
	struct ib_cq *cq, *best = NULL;

	lockdep_assert_held(&pool->lock);
	list_for_each_entry(cq, &pool->cqs[poll_ctx], pool_entry) {
		if (cq->comp_vector != vector || cq->cqe - cq->cqe_used < nr_cqe ||
		    atomic_read(&cq->stats.errors))
			continue;
		if (!best || cq->cqe_used < best->cqe_used)
			best = cq;
	}
	return best;
}

static void ib_cq_pool_use(struct ib_cq *cq, struct ib_cq_user *user)
{
	cq->cqe_used += user->nr_cqe;
	list_add_tail(&user->node, &ib_cq_share(cq)->users);
}

/* Makes a CQ that is not in the pool yet. */
static struct ib_cq *ib_cq_pool_make(struct ib_cq_pool *pool, unsigned int vector,
				     enum ib_poll_context poll_ctx, unsigned int nr_cqe)
{
	unsigned int max_cqe = pool->device->attrs.max_cqe;
	struct ib_cq_share *share;
	struct ib_cq *cq;

	share = kzalloc(sizeof(*share), GFP_KERNEL);
	if (!share)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&share->users);
	cq = __ib_alloc_cq(pool->device, share, clamp(IB_CQ_POOL_CQE, nr_cqe, max_cqe), vector,
			   poll_ctx, KBUILD_MODNAME);
	if (IS_ERR(cq)) {
		kfree(share);
		return cq;
	}
	cq->shared = true;
	return cq;
}

static struct ib_cq *ib_cq_pool_grow(struct ib_cq_pool *pool, unsigned int vector,
				     enum ib_poll_context poll_ctx, struct ib_cq_user *user)
{
	struct ib_cq *cq;

	cq = ib_cq_pool_make(pool, vector, poll_ctx, user->nr_cqe);
	kverbs_delay("ib_cq_pool_grow");
	mutex_lock(&pool->lock);
	if (IS_ERR(cq)) {
		pool->load[vector] -= user->nr_cqe;
	} else {
		list_add_tail(&cq->pool_entry, &pool->cqs[poll_ctx]);
		ib_cq_pool_use(cq, user);
	}
	mutex_unlock(&pool->lock);
	return cq;
}

/**
 * __ib_cq_pool_get() - get entries of a shared CQ; see ib_cq_pool_get()
 * @dev: the device
 * @nr_cqe: entries, 1 to attrs.max_cqe; enough for all requests that the
 *	caller's QPs on the CQ can have outstanding
 * @comp_vector_hint: completion vector, modulo the number of vectors; negative for the
 *	least loaded one of the caller's NUMA node
 * @poll_ctx: where done() is called, not %IB_POLL_DIRECT
 * @caller: KBUILD_MODNAME of the consumer
 *
 * The caller uses the CQ for its QPs like one of ib_alloc_cq(), but must not free it, nor
 * change its cq_context or settings: others use it too. After its QPs are destroyed it
 * gives the entries back with ib_cq_pool_put().
 *
 * Context: Process context.
 * Return: the CQ, or an ERR_PTR: -EINVAL for arguments out of range, -ENODEV if
 * the device is not registered, -ENOMEM, -EINTR if the caller was killed while a thread for
 * %IB_POLL_THREAD was made, or the driver's error.
 */
struct ib_cq *__ib_cq_pool_get(struct ib_device *dev, unsigned int nr_cqe, int comp_vector_hint,
			       enum ib_poll_context poll_ctx, const char *caller)
{
	struct ib_cq_pool *pool = dev->cq_pool;
	const struct ib_verb_call call = { .dev = dev, .client = caller, .what = "cq_pool_get" };
	struct ib_cq_user *user;
	unsigned int vector;
	struct ib_cq *cq;
	int err;

	ib_contract_call(dev, NULL, "ib_cq_pool_get", _RET_IP_);
	if (!pool)
		return ERR_PTR(-ENODEV);
	if (poll_ctx == IB_POLL_DIRECT)
		return ERR_PTR(ib_invalid(&call, "poll_ctx IB_POLL_DIRECT: nobody polls for all"));
	err = ib_check_range(&call, "poll_ctx", poll_ctx, 0, IB_POLL_LAST_POOL_TYPE) ?:
	      ib_check_range(&call, "nr_cqe", nr_cqe, 1, dev->attrs.max_cqe);
	if (err)
		return ERR_PTR(err);
	user = kmalloc(sizeof(*user), GFP_KERNEL);
	if (!user)
		return ERR_PTR(-ENOMEM);
	user->nr_cqe = nr_cqe;
	strscpy(user->name, caller, sizeof(user->name));
	user->site = _RET_IP_;

	mutex_lock(&pool->lock);
	vector = ib_cq_pool_vector(pool, comp_vector_hint);
	pool->load[vector] += nr_cqe;
	cq = ib_cq_pool_find(pool, vector, poll_ctx, nr_cqe);
	if (cq)
		ib_cq_pool_use(cq, user);
	mutex_unlock(&pool->lock);
	if (cq)
		return cq;

	cq = ib_cq_pool_grow(pool, vector, poll_ctx, user);
	if (IS_ERR(cq))
		kfree(user);
	return cq;
}
EXPORT_SYMBOL(__ib_cq_pool_get);

/* Makes @trim run in @delay jiffies, or earlier. */
static void ib_cq_pool_trim_in(struct ib_cq_pool *pool, unsigned long delay)
{
	lockdep_assert_held(&pool->lock);
	if (delayed_work_pending(&pool->trim) &&
	    time_before_eq(pool->trim_at, jiffies + delay))
		return;
	pool->trim_at = jiffies + delay;
	mod_delayed_work(system_unbound_wq, &pool->trim, delay);
}

/* Takes out a user with @nr_cqe entries, one of @caller if possible. Returns NULL if none. */
static struct ib_cq_user *ib_cq_pool_unuse(struct ib_cq_pool *pool, struct ib_cq *cq,
					   unsigned int nr_cqe, const char *caller)
{
	struct ib_cq_user *user, *found = NULL;

	lockdep_assert_held(&pool->lock);
	list_for_each_entry(user, &ib_cq_share(cq)->users, node) {
		if (user->nr_cqe != nr_cqe)
			continue;
		if (!found)
			found = user;
		if (!strcmp(user->name, caller)) {
			found = user;
			break;
		}
	}
	if (!found)
		return NULL;
	list_del(&found->node);
	cq->cqe_used -= nr_cqe;
	pool->load[cq->comp_vector] -= nr_cqe;
	if (list_empty(&ib_cq_share(cq)->users)) {
		ib_cq_share(cq)->idle_since = jiffies;
		ib_cq_pool_trim_in(pool, msecs_to_jiffies(READ_ONCE(cq_pool_idle_ms)));
	}
	return found;
}

/**
 * __ib_cq_pool_put() - give entries back; see ib_cq_pool_put()
 * @cq: from ib_cq_pool_get()
 * @nr_cqe: as given to ib_cq_pool_get()
 * @caller: KBUILD_MODNAME of the consumer
 *
 * The caller must not use the CQ any more. If there was no ib_cq_pool_get() for
 * these entries, nothing happens but a warning.
 *
 * Context: Process context.
 */
void __ib_cq_pool_put(struct ib_cq *cq, unsigned int nr_cqe, const char *caller)
{
	struct ib_cq_pool *pool = cq->device->cq_pool;
	struct ib_cq_user *user;

	ib_contract_call(cq->device, &cq->res, "ib_cq_pool_put", _RET_IP_);
	if (!cq->shared || !pool) {
		ibdev_warn(cq->device,
			   "%s: ib_cq_pool_put() of a CQ of %s that is not from the pool; free it with ib_free_cq()\n",
			   caller, cq->res.kern_name);
		return;
	}
	mutex_lock(&pool->lock);
	user = ib_cq_pool_unuse(pool, cq, nr_cqe, caller);
	mutex_unlock(&pool->lock);
	if (!user)
		ibdev_warn(cq->device,
			   "%s: ib_cq_pool_put() of %u entries that it did not get; pass the nr_cqe of ib_cq_pool_get()\n",
			   caller, nr_cqe);
	kfree(user);
}
EXPORT_SYMBOL(__ib_cq_pool_put);

/* The CQ is not in the pool any more, and no QP should use it. */
static void ib_cq_pool_destroy(struct ib_cq *cq)
{
	struct ib_cq_share *share = ib_cq_share(cq);

	/* Site 0: if a QP was left on the CQ, the module that left it is reported by that. */
	if (!ib_cq_destroy(cq, 0))
		kfree(share);
}

static void ib_cq_pool_destroy_all(struct list_head *cqs)
{
	struct ib_cq *cq, *next;

	list_for_each_entry_safe(cq, next, cqs, pool_entry) {
		list_del(&cq->pool_entry);
		ib_cq_pool_destroy(cq);
	}
}

/* Returns true if the CQ is to be destroyed. Else schedules the next look at it, if needed. */
static bool ib_cq_pool_expired(struct ib_cq_pool *pool, struct ib_cq *cq, unsigned long idle)
{
	struct ib_cq_share *share = ib_cq_share(cq);

	lockdep_assert_held(&pool->lock);
	if (!list_empty(&share->users))
		return false;
	if (time_before(jiffies, share->idle_since + idle)) {
		ib_cq_pool_trim_in(pool, share->idle_since + idle - jiffies);
		return false;
	}
	/* A consumer gave the entries back before it destroyed its QPs. */
	if (atomic_read(&cq->usecnt)) {
		ib_cq_pool_trim_in(pool, max_t(unsigned long, idle, IB_CQ_POOL_LOOK));
		return false;
	}
	return true;
}

static void ib_cq_pool_trim(struct work_struct *work)
{
	struct ib_cq_pool *pool = container_of(to_delayed_work(work), struct ib_cq_pool, trim);
	unsigned long idle = msecs_to_jiffies(READ_ONCE(cq_pool_idle_ms));
	struct ib_cq *cq, *next;
	LIST_HEAD(expired);
	int i;

	mutex_lock(&pool->lock);
	for (i = 0; i < IB_CQ_CONTEXTS; i++) {
		list_for_each_entry_safe(cq, next, &pool->cqs[i], pool_entry) {
			if (ib_cq_pool_expired(pool, cq, idle))
				list_move_tail(&cq->pool_entry, &expired);
		}
	}
	mutex_unlock(&pool->lock);
	ib_cq_pool_destroy_all(&expired);
}

/* Before the device becomes visible. Returns 0 or -ENOMEM. */
int ib_cq_pool_init(struct ib_device *dev)
{
	unsigned int nr = max(dev->num_comp_vectors, 1);
	struct ib_cq_pool *pool;
	int i;

	pool = kzalloc(struct_size(pool, load, nr), GFP_KERNEL);
	if (!pool)
		return -ENOMEM;
	pool->device = dev;
	pool->nr = nr;
	mutex_init(&pool->lock);
	INIT_DELAYED_WORK(&pool->trim, ib_cq_pool_trim);
	for (i = 0; i < IB_CQ_CONTEXTS; i++)
		INIT_LIST_HEAD(&pool->cqs[i]);
	/* The checker, which may look at once, finds the lock and the lists set up. */
	mutex_lock(&ib_registry_lock);
	dev->cq_pool = pool;
	mutex_unlock(&ib_registry_lock);
	return 0;
}

/* Logs which modules did not give entries back, and forgets the entries. */
static void ib_cq_pool_blame(struct ib_cq *cq)
{
	struct ib_cq_user *user, *next;

	list_for_each_entry_safe(user, next, &ib_cq_share(cq)->users, node) {
		ibdev_warn(cq->device, "%s did not return %u entries of pool CQ %u\n",
			   user->name, user->nr_cqe, cq->res.id);
		list_del(&user->node);
		kfree(user);
	}
}

/*
 * The device is being unregistered, and its clients have been removed. A CQ that still has
 * a QP cannot be destroyed; it is left behind, like the QP.
 */
void ib_cq_pool_cleanup(struct ib_device *dev)
{
	struct ib_cq_pool *pool = dev->cq_pool;
	struct ib_cq *cq;
	int i;

	if (!pool)
		return;
	/* The checker visits the users of a device in any state, under this lock. */
	mutex_lock(&ib_registry_lock);
	dev->cq_pool = NULL;
	mutex_unlock(&ib_registry_lock);
	cancel_delayed_work_sync(&pool->trim);
	for (i = 0; i < IB_CQ_CONTEXTS; i++) {
		list_for_each_entry(cq, &pool->cqs[i], pool_entry)
			ib_cq_pool_blame(cq);
		ib_cq_pool_destroy_all(&pool->cqs[i]);
	}
	mutex_destroy(&pool->lock);
	kfree(pool);
}

/* The users that have entries. */
static void shares_for_each(struct ib_device *dev, u64 until,
			    void (*visit)(void *context, unsigned long *site), void *context)
{
	struct ib_cq_pool *pool = dev->cq_pool;
	struct ib_cq_user *user;
	struct ib_cq *cq;
	int i;

	if (!pool)
		return;
	mutex_lock(&pool->lock);
	for (i = 0; i < IB_CQ_CONTEXTS; i++)
		list_for_each_entry(cq, &pool->cqs[i], pool_entry)
			list_for_each_entry(user, &ib_cq_share(cq)->users, node)
				visit(context, &user->site);
	mutex_unlock(&pool->lock);
}

struct ib_ref_source ib_cq_pool_source = {
	.kind = "share of the CQ pool",
	.for_each = shares_for_each,
};

/* Lists the pool, a line for each CQ and for each of its users. */
void ib_cq_pool_show(struct ib_device *dev, struct seq_file *s)
{
	struct ib_cq_pool *pool = dev->cq_pool;
	struct ib_cq_user *user;
	struct ib_cq *cq;
	int i;

	if (!pool)
		return;
	mutex_lock(&pool->lock);
	for (i = 0; i < IB_CQ_CONTEXTS; i++) {
		list_for_each_entry(cq, &pool->cqs[i], pool_entry) {
			seq_printf(s, "cq=%u context=%s vector=%u used=%u depth=%d\n", cq->res.id,
				   ib_cq_contexts[i].name, cq->comp_vector, cq->cqe_used,
				   cq->cqe);
			list_for_each_entry(user, &ib_cq_share(cq)->users, node)
				seq_printf(s, "  user=%s entries=%u\n", user->name, user->nr_cqe);
		}
	}
	mutex_unlock(&pool->lock);
}
