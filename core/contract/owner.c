// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: which module an address belongs to, which modules have left a
 * device, and what they left behind.
 *
 * Clients are identified by their modules. A module that uses this one is loaded after it,
 * so the module notifier reports it, and we remember it until it is unloaded. A module has
 * left a device when remove() has returned for the last of its clients there, and has come
 * back when add() is called again, or when it looks the device up. The driver of a device
 * is not watched on that device: it may use its own device as it likes.
 *
 * The list of modules that have left is kept even while the checker is off, so that it is
 * known when the checker is switched on.
 *
 * Lock protocol: modules_lock (a spinlock) guards the list of modules, and is innermost. A
 * device's list of modules that left is changed under ib_registry_lock, and the list of
 * sources of references is read and changed under it. The former two are read under
 * RCU; contract_suspect tells the data path that it has to look at the latter. A device's
 * ahs_lock guards the list of its address handles that were made while the checker was on;
 * there is no table of them. Counting them holds the lock, with interrupts off.
 */
#include <linux/export.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <kverbs/upper.h>

#include "contract.h"
#include "export.h"
#include "refs.h"
#include "registry.h"

/*
 * Number of call sites that a report on what a client left behind lists, for each kind of
 * object.
 */
#define LEFTOVER_SITES	8

/**
 * struct loaded - a module that may use this one
 * @list: link among all of them
 * @mod: the module
 * @ours: it is a part of the midlayer, and not watched
 * @looks_up: it looks devices up, beside what its clients do, and uses them then
 *
 * The list is read under RCU; an entry is freed after a grace period.
 */
struct loaded {
	struct list_head list;
	struct module *mod;
	bool ours;
	bool looks_up;
};

/**
 * struct departed - a module that has left a device
 * @list: link in the device's list
 * @mod: the module
 * @how: what it did last there
 * @back: it has looked the device up since, or maybe just before, so it may use the device
 * @rcu: protects the readers of the list
 */
struct departed {
	struct list_head list;
	const struct module *mod;
	const char *how;
	bool back;
	struct rcu_head rcu;
};

static DEFINE_SPINLOCK(modules_lock);
static LIST_HEAD(modules);
static LIST_HEAD(sources);

/* Has the checker look through @source when a module leaves a device. */
void ib_contract_add_source(struct ib_ref_source *source)
{
	mutex_lock(&ib_registry_lock);
	list_add_tail(&source->list, &sources);
	mutex_unlock(&ib_registry_lock);
}
IB_EXPORT_INTERNAL(ib_contract_add_source);

void ib_contract_del_source(struct ib_ref_source *source)
{
	mutex_lock(&ib_registry_lock);
	list_del(&source->list);
	mutex_unlock(&ib_registry_lock);
}
IB_EXPORT_INTERNAL(ib_contract_del_source);

static bool module_contains(unsigned long addr, const struct module *mod)
{
	/* The module's init section is freed without notice to us. */
	return data_race(within_module(addr, mod));
}

/* Returns the entry of the module at @addr, or NULL if that was loaded earlier. Under RCU. */
static struct loaded *find_loaded(unsigned long addr)
{
	struct loaded *l;

	list_for_each_entry_rcu(l, &modules, list)
		if (module_contains(addr, l->mod))
			return l;
	return NULL;
}

/* Returns the entry of @mod, or NULL if that was loaded earlier. Under RCU or modules_lock. */
static struct loaded *find_module_entry(const struct module *mod)
{
	struct loaded *l;

	list_for_each_entry_rcu(l, &modules, list, lockdep_is_held(&modules_lock))
		if (l->mod == mod)
			return l;
	return NULL;
}

/* Returns the module at @addr that the checker watches, or NULL. Under RCU. */
static struct module *find_watched_module(unsigned long addr)
{
	struct loaded *l = find_loaded(addr);

	return l && !READ_ONCE(l->ours) ? l->mod : NULL;
}

/* Whether @addr is in the midlayer. Any context. */
bool ib_contract_is_ours(unsigned long addr)
{
	struct loaded *l;
	bool ours;

	if (module_contains(addr, THIS_MODULE))
		return true;
	rcu_read_lock();
	l = find_loaded(addr);
	ours = l && READ_ONCE(l->ours);
	rcu_read_unlock();
	return ours;
}

/*
 * The module is a part of the midlayer: it acts for others, and is not watched. Called in
 * the init of the module, before it calls anything else.
 */
void ib_contract_join(struct module *mod)
{
	struct loaded *l;

	rcu_read_lock();
	l = find_module_entry(mod);
	if (l)
		WRITE_ONCE(l->ours, true);
	rcu_read_unlock();
}
IB_EXPORT_INTERNAL(ib_contract_join);

/**
 * ib_contract_looks_up() - tell the checker that a module looks devices up at any time
 * @mod: the module, which calls this in its init function, before it registers a client
 * @looks_up: whether it does
 *
 * A use of a device that it has looked up may end after the remove() of its client, and is no
 * breach of rule 8; what it leaves behind is one of rule 7 nevertheless. For what answers requests
 * of processes, such as RDMA netlink.
 *
 * Context: any.
 */
void ib_contract_looks_up(const struct module *mod, bool looks_up)
{
	struct loaded *l;

	rcu_read_lock();
	l = find_module_entry(mod);
	if (l)
		WRITE_ONCE(l->looks_up, looks_up);
	rcu_read_unlock();
}
IB_EXPORT_INTERNAL(ib_contract_looks_up);

static bool module_looks_up(const struct module *mod)
{
	struct loaded *l;
	bool looks_up;

	rcu_read_lock();
	l = find_module_entry(mod);
	looks_up = l && READ_ONCE(l->looks_up);
	rcu_read_unlock();
	return looks_up;
}

/* Whether @addr is in a module that the checker watches. Any context. */
bool ib_contract_is_known(unsigned long addr)
{
	bool known;

	rcu_read_lock();
	known = find_watched_module(addr);
	rcu_read_unlock();
	return known;
}

/*
 * Returns an address in the module to blame for a call made at @site: after a tail call
 * from a client's function, @site does not lie in that function. Any context.
 */
unsigned long ib_contract_culprit(unsigned long site)
{
	unsigned long callback = ib_contract_is_known(site) ? 0 : ib_callback_here();

	return callback ?: site;
}

/* Also false if neither module is known. Any context. */
bool ib_same_module(unsigned long a, unsigned long b)
{
	const struct module *mod;
	bool same;

	rcu_read_lock();
	mod = find_watched_module(a);
	same = mod && module_contains(b, mod);
	rcu_read_unlock();
	return same;
}

/* Any context. */
void ib_module_name(unsigned long addr, char *name, size_t size)
{
	const struct module *mod;

	rcu_read_lock();
	mod = find_watched_module(addr);
	if (!mod && ib_contract_is_ours(addr))
		mod = THIS_MODULE;
	strscpy(name, mod ? mod->name : "?", size);
	rcu_read_unlock();
}

static bool is_driver_of(const struct ib_device *dev, const struct module *mod)
{
	return mod == dev->ops.owner || module_contains(ib_contract_driver(dev), mod);
}

/* Call this after a change of the device's state or of its list of modules that left. */
void ib_contract_watch_state(struct ib_device *dev)
{
	struct ib_device_priv *priv = ib_priv(dev);

	lockdep_assert_held(&ib_registry_lock);
	WRITE_ONCE(priv->contract_suspect, priv->state == IB_DEV_UNREGISTERED ||
					   priv->state == IB_DEV_RELEASED ||
					   !list_empty(&priv->departed_modules));
}

/* How the module at @site has left the device, or NULL. Under RCU. */
static const char *departed_how(const struct ib_device *dev, unsigned long site)
{
	struct departed *l;

	list_for_each_entry_rcu(l, &ib_priv(dev)->departed_modules, list)
		if (!READ_ONCE(l->back) && module_contains(site, l->mod))
			return l->how;
	return NULL;
}

/*
 * A verbs call on a device which some module, or every module, may not use any more:
 * reports it if the caller is such a module. Returns whether it is. Any context.
 */
bool ib_contract_suspect(const struct ib_device *dev, const struct rdma_restrack_entry *res,
			 const char *what, unsigned long site)
{
	enum ib_dev_state state = READ_ONCE(ib_priv(dev)->state);
	bool gone = state == IB_DEV_UNREGISTERED || state == IB_DEV_RELEASED;
	const char *left = NULL;
	struct module *mod;
	bool own;

	if (site == IB_SITE_REPORTED)
		return false;
	site = ib_contract_culprit(site);
	rcu_read_lock();
	mod = find_watched_module(site);
	own = !mod || is_driver_of(dev, mod);
	if (!own && !gone)
		left = departed_how(dev, site);
	rcu_read_unlock();
	if (own || !(gone || left))
		return false;
	ib_contract_report(IB_RULE_GONE, dev, res, site, site, 1, "%s after %s%s", what,
			   gone ? "ib_unregister_device() returned" : "its ", left ?: "");
	return true;
}
IB_EXPORT_INTERNAL(ib_contract_suspect);

static void forget_departed(struct ib_device *dev, const struct module *mod)
{
	struct departed *l, *next;

	lockdep_assert_held(&ib_registry_lock);
	list_for_each_entry_safe(l, next, &ib_priv(dev)->departed_modules, list) {
		if (mod && l->mod != mod)
			continue;
		list_del_rcu(&l->list);
		kfree_rcu(l, rcu);
	}
	ib_contract_watch_state(dev);
}

/* The module at @addr has looked the device up, so it may use it again. Any context. */
void ib_contract_device_found(struct ib_device *dev, unsigned long addr)
{
	struct departed *l;

	if (!READ_ONCE(ib_priv(dev)->contract_suspect))
		return;
	rcu_read_lock();
	list_for_each_entry_rcu(l, &ib_priv(dev)->departed_modules, list)
		if (module_contains(addr, l->mod))
			WRITE_ONCE(l->back, true);
	rcu_read_unlock();
}

/* A client of the module at @addr is about to be added. */
void ib_contract_client_back(struct ib_device *dev, unsigned long addr)
{
	struct module *mod;

	lockdep_assert_held(&ib_registry_lock);
	if (list_empty(&ib_priv(dev)->departed_modules))
		return;
	rcu_read_lock();
	mod = find_watched_module(addr);
	rcu_read_unlock();
	if (mod)
		forget_departed(dev, mod);
}

/* The device is being freed. */
void ib_contract_forget(struct ib_device *dev)
{
	forget_departed(dev, NULL);
}

/**
 * struct leftovers - things of one kind that a module left behind, by the call site that made them
 * @mod: the module
 * @nr_sites: call sites found so far
 * @sites: the call sites
 * @sites.addr: its address
 * @sites.count: how many things it made
 * @others: how many from call sites for which there was no room
 */
struct leftovers {
	const struct module *mod;
	unsigned int nr_sites;
	struct {
		unsigned long addr;
		unsigned int count;
	} sites[LEFTOVER_SITES];
	unsigned int others;
};

static void count_leftover(void *context, unsigned long *where)
{
	unsigned long site = READ_ONCE(*where);
	struct leftovers *left = context;
	unsigned int i;

	if (!module_contains(site, left->mod))
		return;
	for (i = 0; i < left->nr_sites; i++) {
		if (left->sites[i].addr == site) {
			left->sites[i].count++;
			return;
		}
	}
	if (i == LEFTOVER_SITES) {
		left->others++;
		return;
	}
	left->sites[i].addr = site;
	left->sites[i].count = 1;
	left->nr_sites++;
}

static void report_leftovers(struct ib_device *dev, const struct leftovers *left, const char *kind,
			     const char *how)
{
	unsigned int i;

	for (i = 0; i < left->nr_sites; i++)
		ib_contract_report(IB_RULE_LEFT, dev, NULL, left->sites[i].addr,
				   left->sites[i].addr, left->sites[i].count,
				   "%u %s left when %s", left->sites[i].count, kind, how);
	if (left->others)
		ib_contract_report(IB_RULE_LEFT, dev, NULL, left->sites[0].addr, 0, left->others,
				   "%u more %s left when %s", left->others, kind, how);
}

static void check_objects(struct ib_device *dev, const struct module *mod, const char *how)
{
	struct rdma_restrack_entry *res;
	unsigned long id;
	unsigned int i;

	for (i = 0; i < RDMA_RESTRACK_MAX; i++) {
		struct leftovers left = { .mod = mod };

		for (id = 0; (res = rdma_restrack_next(dev, i, &id)); id++) {
			count_leftover(&left, &res->site);
			rdma_restrack_put(res);
		}
		report_leftovers(dev, &left, rdma_restrack_kind(i), how);
	}
}

/* Any context but NMI. */
void ib_contract_ah_made(struct ib_ah *ah, unsigned long site)
{
	struct ib_device_priv *priv = ib_priv(ah->device);
	unsigned long flags;

	if (!ib_contract_on())
		return;
	ah->site = site;
	spin_lock_irqsave(&priv->ahs_lock, flags);
	list_add_tail(&ah->on_device, &priv->ahs);
	spin_unlock_irqrestore(&priv->ahs_lock, flags);
}

void ib_contract_ah_destroyed(struct ib_ah *ah)
{
	struct ib_device_priv *priv = ib_priv(ah->device);
	unsigned long flags;

	if (!READ_ONCE(ah->site))
		return;
	spin_lock_irqsave(&priv->ahs_lock, flags);
	/* The module that made it may have been unloaded meanwhile: see forget_ahs(). */
	if (ah->site)
		list_del(&ah->on_device);
	spin_unlock_irqrestore(&priv->ahs_lock, flags);
}

static void check_ahs(struct ib_device *dev, const struct module *mod, const char *how)
{
	struct ib_device_priv *priv = ib_priv(dev);
	struct leftovers left = { .mod = mod };
	struct ib_ah *ah;

	spin_lock_irq(&priv->ahs_lock);
	list_for_each_entry(ah, &priv->ahs, on_device)
		count_leftover(&left, &ah->site);
	spin_unlock_irq(&priv->ahs_lock);
	report_leftovers(dev, &left, "ah", how);
}

static void remember_departed(struct ib_device *dev, const struct module *mod, const char *how)
{
	struct departed *l;

	forget_departed(dev, mod);
	l = kmalloc(sizeof(*l), GFP_KERNEL | __GFP_NOWARN);
	/* Without memory, calls of this module on the device are not checked. */
	if (!l)
		return;
	l->mod = mod;
	l->how = how;
	l->back = module_looks_up(mod);
	list_add_rcu(&l->list, &ib_priv(dev)->departed_modules);
	ib_contract_watch_state(dev);
}

/*
 * The last client of the module at @addr has left the device, as @how says; or has
 * @declined it, and then the module is not remembered: declining is ordinary, and checking
 * the caller of each post makes it take three times as long. The lock keeps the module's
 * next client from creating anything on the device meanwhile. A PD that was borrowed after
 * @until, a value of ib_ref_log_seq(), is not counted: its borrower has yet to check whether
 * the client still has the device.
 */
void ib_contract_client_left(struct ib_device *dev, unsigned long addr, const char *how,
			     bool declined, u64 until)
{
	struct ib_ref_source *source;
	struct module *mod;

	lockdep_assert_held(&ib_registry_lock);
	rcu_read_lock();
	mod = find_watched_module(addr);
	rcu_read_unlock();
	/* The module cannot be unloaded meanwhile: its client is being removed. */
	if (!mod || is_driver_of(dev, mod))
		return;
	if (ib_contract_on()) {
		check_objects(dev, mod, how);
		check_ahs(dev, mod, how);
		list_for_each_entry(source, &sources, list) {
			struct leftovers left = { .mod = mod };

			source->for_each(dev, until, count_leftover, &left);
			report_leftovers(dev, &left, source->kind, how);
		}
	}
	if (!declined)
		remember_departed(dev, mod, how);
}

static void forget_site(void *context, unsigned long *site)
{
	if (module_contains(READ_ONCE(*site), context))
		WRITE_ONCE(*site, 0);
}

static void forget_ahs(struct ib_device *dev, struct module *mod)
{
	struct ib_device_priv *priv = ib_priv(dev);
	struct ib_ah *ah, *next;

	spin_lock_irq(&priv->ahs_lock);
	list_for_each_entry_safe(ah, next, &priv->ahs, on_device) {
		if (!module_contains(ah->site, mod))
			continue;
		list_del(&ah->on_device);
		/* Marks it as being in no list: see ib_contract_ah_destroyed(). */
		WRITE_ONCE(ah->site, 0);
	}
	spin_unlock_irq(&priv->ahs_lock);
}

/*
 * What the module has left behind must not be attributed to the next module that is
 * loaded at its addresses.
 */
static void forget_call_sites(struct ib_device *dev, struct module *mod)
{
	struct rdma_restrack_entry *res;
	struct ib_ref_source *source;
	unsigned long id;
	unsigned int i;

	for (i = 0; i < RDMA_RESTRACK_MAX; i++) {
		for (id = 0; (res = rdma_restrack_next(dev, i, &id)); id++) {
			forget_site(mod, &res->site);
			rdma_restrack_put(res);
		}
	}
	forget_ahs(dev, mod);
	list_for_each_entry(source, &sources, list) {
		if (source->forget)
			source->forget(dev, mod);
		else
			source->for_each(dev, ib_ref_log_seq(), forget_site, mod);
	}
}

static void module_comes(struct module *mod)
{
	struct loaded *l = kmalloc(sizeof(*l), GFP_KERNEL | __GFP_NOWARN);

	/* Without memory, the module is not watched at all. */
	if (!l)
		return;
	l->mod = mod;
	l->ours = false;
	l->looks_up = false;
	spin_lock(&modules_lock);
	list_add_rcu(&l->list, &modules);
	spin_unlock(&modules_lock);
}

static void module_unloading(struct module *mod)
{
	struct ib_device *dev;
	struct loaded *l;
	unsigned long index;

	mutex_lock(&ib_registry_lock);
	xa_for_each(&ib_devices, index, dev) {
		forget_departed(dev, mod);
		forget_call_sites(dev, mod);
	}
	mutex_unlock(&ib_registry_lock);

	spin_lock(&modules_lock);
	l = find_module_entry(mod);
	if (l)
		list_del_rcu(&l->list);
	spin_unlock(&modules_lock);
	/* Wait for readers: they look into the module, which is freed next. */
	synchronize_rcu();
	kfree(l);
}

static int module_event(struct notifier_block *nb, unsigned long event, void *data)
{
	if (event == MODULE_STATE_COMING)
		module_comes(data);
	else if (event == MODULE_STATE_GOING)
		module_unloading(data);
	return NOTIFY_OK;
}

static struct notifier_block module_notifier = { .notifier_call = module_event };

int ib_contract_init(void)
{
	ib_chains_init();
	return register_module_notifier(&module_notifier);
}

void ib_contract_exit(void)
{
	struct loaded *l, *next;

	unregister_module_notifier(&module_notifier);
	list_for_each_entry_safe(l, next, &modules, list)
		kfree(l);
	ib_contract_set_mode(IB_CONTRACT_OFF);
}
