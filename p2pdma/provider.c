// SPDX-License-Identifier: GPL-2.0-only
/*
 * The memory of devices, where we manage it, not the kernel: gives it struct pages, lets
 * it be allocated, and removes it when the device goes away.
 *
 * Who owns what: the device of a driver owns its provider through devres. So the
 * provider is released when the driver has let go of the device, when the driver's
 * probe has failed, or when a device without a driver goes away; and before what the
 * driver had acquired by devres earlier, such as the BAR itself. A resource belongs to
 * its provider and goes away with it.
 *
 * Lock protocol: add_lock, a mutex, orders those who add memory. Inside it, table_lock,
 * a spinlock, guards the table of providers. Providers, and their resources, are looked
 * up under RCU. A reference to percpu_ref users keeps a provider from going away: each
 * allocation has one, and each page that is mapped by user space, until it is free.
 *
 * Who can reach a provider that is being released, in the order in which they are shut
 * out:
 *
 *   1. those who allocate: users is killed, and from then on they get no memory
 *   2. users of kverbs_p2pdma_user_add(): revoke() tells them to free their memory
 *   3. user space: `allocate` is removed, which unmaps its pages
 *   4. those who have memory: they are waited for, however long it takes
 *   5. those who free memory: return_work is cancelled; nothing is left to give back
 *   6. those who look the provider up: a grace period passes after it was taken out of
 *	the table; readers of its other files: these files are removed
 *   7. those who look up its pages: memunmap_pages() waits for them
 *
 * A page that user space has mapped is free when its last reference is dropped:
 * page_free() is called, and mm sets the count to 1 again after that has returned.
 * Nobody may be given the page before the count is 1, so page_free() leaves the page to
 * a work item, which checks whether this has happened; on any CPU, for this one may be
 * kept busy. While a page is allocated or on its way back, its zone_device_data is
 * ours: it has the size in bytes of the allocation that begins with the page, or the
 * link of the list of pages that come back.
 */
#include <linux/genalloc.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/memremap.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>

#include "p2pdma.h"
#include "provider.h"
#include "trace.h"

#ifndef CONFIG_ZONE_DEVICE
/* Without CONFIG_ZONE_DEVICE, memory of devices has no struct pages: no provider can be added. */
static void *memremap_pages(struct dev_pagemap *pgmap, int nid)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void memunmap_pages(struct dev_pagemap *pgmap)
{
}
#endif

bool p2p_own_provider;
module_param_named(own_provider, p2p_own_provider, bool, 0444);
MODULE_PARM_DESC(own_provider,
		 "Manage the memory of providers here even if the kernel can, with CONFIG_PCI_P2PDMA (default: N)");

/* Set before there is any provider. */
static const struct p2p_provider_hooks *provider_hooks;

static DEFINE_MUTEX(add_lock);
static DEFINE_SPINLOCK(table_lock);
static DEFINE_HASHTABLE(providers, 6);

/* Finds the provider of a device, even if it is going away; or NULL. Under RCU. */
static struct p2p_provider *provider_find(struct pci_dev *pdev)
{
	struct p2p_provider *provider;

	hash_for_each_possible_rcu_notrace(providers, provider, node, (unsigned long)pdev)
		if (provider->pdev == pdev)
			return provider;
	return NULL;
}

/* Returns the provider of a device, or NULL. The caller must know that it stays. */
static struct p2p_provider *provider_of(struct pci_dev *pdev)
{
	struct p2p_provider *provider;

	rcu_read_lock();
	provider = provider_find(pdev);
	rcu_read_unlock();
	return provider;
}

/* --- memory ---------------------------------------------------------------------- */

static void provider_idle(struct percpu_ref *users)
{
	complete(&container_of(users, struct p2p_provider, users)->idle);
}

static void provider_memory(struct p2p_provider *provider, struct p2p_memory *mem)
{
	*mem = (struct p2p_memory){ .published = READ_ONCE(provider->published) };
	p2p_pool_count(provider, mem);
}

/* As p2p_memory_of(). */
bool p2p_provider_memory(struct pci_dev *pdev, struct p2p_memory *mem)
{
	struct p2p_provider *provider;

	rcu_read_lock();
	provider = provider_find(pdev);
	if (provider)
		provider_memory(provider, mem);
	rcu_read_unlock();
	return provider;
}

/* Whether the device provides memory, and is not going away. */
bool p2p_provider_is_live(struct pci_dev *pdev)
{
	struct p2p_provider *provider;
	bool live;

	rcu_read_lock();
	provider = provider_find(pdev);
	live = provider && !percpu_ref_is_dying(&provider->users);
	rcu_read_unlock();
	return live;
}

/*
 * Puts providers into @list, which has @max entries, each with a reference. Returns how
 * many providers there are.
 */
int p2p_provider_list(struct pci_dev **list, int max, bool published)
{
	struct p2p_provider *provider;
	int nr = 0, bucket;

	rcu_read_lock();
	hash_for_each_rcu(providers, bucket, provider, node) {
		if (published && !READ_ONCE(provider->published))
			continue;
		if (nr < max)
			list[nr] = pci_dev_get(provider->pdev);
		nr++;
	}
	rcu_read_unlock();
	return nr;
}

/* As kverbs_alloc_p2pmem(). */
void *p2p_provider_alloc(struct pci_dev *pdev, size_t size)
{
	struct p2p_provider *provider;
	void *addr = NULL;

	rcu_read_lock();
	provider = provider_find(pdev);
	/* data_race: a kill may change the mode of the count, but both values mean dead. */
	if (provider && data_race(percpu_ref_tryget_live_rcu(&provider->users))) {
		addr = p2p_pool_take(provider, size);
		if (addr)
			virt_to_page(addr)->zone_device_data = (void *)size;
		else
			percpu_ref_put(&provider->users);
	}
	rcu_read_unlock();
	return addr;
}

/* Returns the resource of @pdev that contains @addr, or NULL. Under RCU. */
static struct p2p_resource *resource_find(struct pci_dev *pdev, const void *addr)
{
	struct p2p_provider *provider = provider_find(pdev);
	struct p2p_resource *res;

	if (!provider)
		return NULL;
	list_for_each_entry_rcu(res, &provider->resources, entry)
		if (addr - res->addr < range_len(&res->pgmap.range))
			return res;
	return NULL;
}

static void provider_put(struct p2p_provider *provider, void *addr, size_t size)
{
	p2p_pool_put(provider, addr, size);
	percpu_ref_put(&provider->users);
}

/*
 * Whether this is an allocation, of this size. If it is not, or was freed already, it is better to
 * leak it than to give it to two owners.
 */
static bool allocation_is_sound(struct p2p_resource *res, const void *addr, size_t size)
{
	return res && (size_t)virt_to_page(addr)->zone_device_data == size;
}

/* As kverbs_free_p2pmem(). */
void p2p_provider_free(struct pci_dev *pdev, void *addr, size_t size)
{
	struct p2p_resource *res;

	rcu_read_lock();
	res = resource_find(pdev, addr);
	if (!WARN_ON_ONCE(!allocation_is_sound(res, addr, size))) {
		virt_to_page(addr)->zone_device_data = NULL;
		provider_put(res->provider, addr, size);
	}
	rcu_read_unlock();
}

/* As kverbs_p2pmem_virt_to_bus(). */
pci_bus_addr_t p2p_provider_bus(struct pci_dev *pdev, void *addr)
{
	struct p2p_resource *res;
	pci_bus_addr_t bus = 0;

	rcu_read_lock();
	res = resource_find(pdev, addr);
	if (res)
		bus = virt_to_phys(addr) + res->bus_offset;
	rcu_read_unlock();
	return bus;
}

/* Splits an allocation of whole pages into one allocation for each page. */
void p2p_provider_split(void *addr, size_t size)
{
	struct p2p_resource *res = p2p_resource_of(virt_to_page(addr));
	void *end = addr + size;

	percpu_ref_get_many(&res->provider->users, size / PAGE_SIZE - 1);
	for (; addr < end; addr += PAGE_SIZE)
		virt_to_page(addr)->zone_device_data = (void *)PAGE_SIZE;
}

/* --- pages that come back by their references ------------------------------------ */

/*
 * Called when the last reference to a page of user space is dropped; not for memory that is freed
 * by kverbs_free_p2pmem().
 */
static void resource_page_free(struct page *page)
{
	struct p2p_provider *provider = p2p_resource_of(page)->provider;

	BUILD_BUG_ON(sizeof(page->zone_device_data) != sizeof(struct llist_node));
	if (llist_add((struct llist_node *)&page->zone_device_data, &provider->returned))
		queue_delayed_work(system_unbound_wq, &provider->return_work, 0);
}

static const struct dev_pagemap_ops resource_ops = {
	.page_free = resource_page_free,
};

static void provider_return_pages(struct work_struct *work)
{
	struct p2p_provider *provider =
		container_of(to_delayed_work(work), struct p2p_provider, return_work);
	struct llist_node *node, *next;
	struct page *page;

	llist_for_each_safe(node, next, llist_del_all(&provider->returned)) {
		page = container_of((void **)node, struct page, zone_device_data);
		if (page_count(page) == 1)
			provider_put(provider, page_address(page), PAGE_SIZE);
		else if (llist_add(node, &provider->returned))
			queue_delayed_work(system_unbound_wq, &provider->return_work, 1);
	}
}

/* Waits until the pages that user space and mm have released are free. May sleep. */
void p2p_provider_settle(struct pci_dev *pdev)
{
	struct p2p_provider *provider = provider_of(pdev);

	if (provider)
		flush_delayed_work(&provider->return_work);
}

/* --- resources ------------------------------------------------------------------- */

static void resource_destroy(struct p2p_resource *res)
{
	gen_pool_destroy(res->pool);
	kfree(res);
}

static struct p2p_resource *resource_create(struct p2p_provider *provider, int bar,
					    size_t size, u64 offset)
{
	struct p2p_resource *res = kzalloc(sizeof(*res), GFP_KERNEL);
	struct pci_dev *pdev = provider->pdev;
	phys_addr_t start = pci_resource_start(pdev, bar) + offset;
	int nid = dev_to_node(&pdev->dev);

	if (!res)
		return NULL;
	res->provider = provider;
	res->bus_offset = pci_bus_address(pdev, bar) - pci_resource_start(pdev, bar);
	/*
	 * If pages have the type of the kernel's own peer-to-peer pages, the kernel takes them
	 * for pages of a provider of its own, and looks for that provider behind the &struct
	 * dev_pagemap.
	 */
	res->pgmap.type = IS_ENABLED(CONFIG_PCI_P2PDMA) ? MEMORY_DEVICE_GENERIC :
							  MEMORY_DEVICE_PCI_P2PDMA;
	res->pgmap.owner = KVERBS_P2PDMA_OWNER;
	res->pgmap.ops = &resource_ops;
	res->pgmap.nr_range = 1;
	res->pgmap.range = (struct range){ start, start + size - 1 };
	res->pool = gen_pool_create(PAGE_SHIFT, nid);
	if (res->pool && !gen_pool_add(res->pool, (unsigned long)__va(start), size, nid))
		return res;
	if (res->pool)
		gen_pool_destroy(res->pool);
	kfree(res);
	return NULL;
}

/* memremap_pages() comes last, because from then on the resource can be found by its pages. */
static int provider_add_resource(struct p2p_provider *provider, int bar, size_t size,
				 u64 offset)
{
	struct p2p_resource *res = resource_create(provider, bar, size, offset);
	void *addr;

	if (!res)
		return -ENOMEM;
	trace_p2p_provider(provider->pdev, "pages", 0);
	addr = memremap_pages(&res->pgmap, dev_to_node(&provider->pdev->dev));
	if (IS_ERR(addr)) {
		resource_destroy(res);
		return PTR_ERR(addr);
	}
	res->addr = addr;
	list_add_tail_rcu(&res->entry, &provider->resources);
	return 0;
}

/* --- providers ------------------------------------------------------------------- */

static void provider_free(struct p2p_provider *provider)
{
	percpu_ref_exit(&provider->users);
	p2p_pool_exit(provider);
	pci_dev_put(provider->pdev);
	kfree(provider);
}

static struct p2p_provider *provider_alloc(struct pci_dev *pdev)
{
	struct p2p_provider *provider = kzalloc(sizeof(*provider), GFP_KERNEL);

	if (!provider)
		return NULL;
	if (p2p_pool_init(provider))
		goto err_provider;
	if (percpu_ref_init(&provider->users, provider_idle, 0, GFP_KERNEL))
		goto err_pool;
	provider->pdev = pci_dev_get(pdev);
	init_completion(&provider->idle);
	INIT_LIST_HEAD(&provider->resources);
	init_llist_head(&provider->returned);
	INIT_DELAYED_WORK(&provider->return_work, provider_return_pages);
	return provider;

err_pool:
	p2p_pool_exit(provider);
err_provider:
	kfree(provider);
	return NULL;
}

static void provider_wait_idle(struct p2p_provider *provider)
{
	struct p2p_memory mem;

	while (!wait_for_completion_timeout(&provider->idle, P2P_WARN_INTERVAL)) {
		rcu_read_lock();
		provider_memory(provider, &mem);
		rcu_read_unlock();
		pci_warn(provider->pdev,
			 "removal waiting for %zu bytes of peer-to-peer memory; stop the drivers and processes that use it\n",
			 mem.size - mem.available);
	}
}

/*
 * Each provider holds the module. The last step of its release is in our own text, and
 * we cannot wait for devres, the caller. So the module must outlive its last reference
 * for a moment: p2p_provider_exit() waits for the tasks that are leaving this code. A
 * kernel that preempts tasks, but was built without RCU-tasks, does not know who is;
 * there a module that has had a provider stays.
 */
static void provider_put_module(void)
{
	if (!IS_ENABLED(CONFIG_PREEMPTION) || IS_ENABLED(CONFIG_TASKS_RCU))
		module_put(THIS_MODULE);
}

/* The devres action. The top of this file lists who can reach the provider up to which step. */
static void provider_release(void *data)
{
	struct p2p_provider *provider = data;
	struct pci_dev *pdev = provider->pdev;
	struct p2p_resource *res, *next;

	trace_p2p_provider(pdev, "release", 0);
	WRITE_ONCE(provider->published, false);
	percpu_ref_kill(&provider->users);
	provider_hooks->revoke(pdev);
	provider_hooks->stop(pdev);
	provider_wait_idle(provider);
	cancel_delayed_work_sync(&provider->return_work);
	spin_lock(&table_lock);
	hash_del_rcu(&provider->node);
	spin_unlock(&table_lock);
	provider_hooks->remove(pdev);
	synchronize_rcu();
	p2p_pool_drain(provider);
	list_for_each_entry_safe(res, next, &provider->resources, entry) {
		memunmap_pages(&res->pgmap);
		resource_destroy(res);
	}
	trace_p2p_provider(pdev, "released", 0);
	provider_free(provider);
	provider_put_module();
}

/* Adds the sysfs files and the devres action, which may fail, before there is memory. */
static int provider_prepare(struct p2p_provider *provider)
{
	struct pci_dev *pdev = provider->pdev;
	int err = provider_hooks->add(pdev);

	if (err)
		return err;
	err = devm_add_action(&pdev->dev, provider_release, provider);
	if (err)
		provider_hooks->remove(pdev);
	else
		__module_get(THIS_MODULE);
	return err;
}

/* Makes a new provider, with its first resource. */
static int provider_create(struct pci_dev *pdev, int bar, size_t size, u64 offset)
{
	struct p2p_provider *provider = provider_alloc(pdev);
	int err;

	if (!provider)
		return -ENOMEM;
	err = provider_prepare(provider);
	if (err) {
		provider_free(provider);
		return err;
	}
	err = provider_add_resource(provider, bar, size, offset);
	if (err) {
		devm_release_action(&pdev->dev, provider_release, provider);
		return err;
	}
	spin_lock(&table_lock);
	hash_add_rcu(providers, &provider->node, (unsigned long)pdev);
	spin_unlock(&table_lock);
	return 0;
}

void p2p_provider_init(const struct p2p_provider_hooks *hooks)
{
	provider_hooks = hooks;
}

/*
 * The module has no references left, but a task may still be on its way out of
 * provider_put_module(). It does not sleep there any more, but may have been preempted:
 * RCU-tasks waits until each task has given up its CPU by itself. Without preemption, that
 * is a grace period of RCU.
 */
void p2p_provider_exit(void)
{
	synchronize_rcu_tasks();
}

/* As kverbs_p2pdma_add_resource(), which has checked the arguments. */
int p2p_provider_add(struct pci_dev *pdev, int bar, size_t size, u64 offset)
{
	struct p2p_provider *provider;
	int err;

	mutex_lock(&add_lock);
	provider = provider_of(pdev);
	if (provider)
		err = provider_add_resource(provider, bar, size, offset);
	else
		err = provider_create(pdev, bar, size, offset);
	mutex_unlock(&add_lock);
	return err;
}

/* As kverbs_p2pmem_publish(). */
void p2p_provider_publish(struct pci_dev *pdev, bool publish)
{
	struct p2p_provider *provider;

	rcu_read_lock();
	provider = provider_find(pdev);
	if (provider)
		WRITE_ONCE(provider->published, publish);
	rcu_read_unlock();
}

/* As kverbs_has_p2pmem(). */
bool p2p_provider_is_published(struct pci_dev *pdev)
{
	struct p2p_provider *provider;
	bool published;

	rcu_read_lock();
	provider = provider_find(pdev);
	published = provider && READ_ONCE(provider->published);
	rcu_read_unlock();
	return published;
}
