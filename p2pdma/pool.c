// SPDX-License-Identifier: GPL-2.0-only
/*
 * The free part of a provider's memory: a pool for each of its resources and, in front
 * of the pools, a few single pages at hand for each CPU. Most allocations are of one
 * page; if a page is at hand, they need not search for one, nor write to what other
 * CPUs write to.
 *
 * There are no locks. Pages at hand are in slots, which any CPU may empty with xchg()
 * and fill with cmpxchg(), even in interrupts. To which CPU a slot belongs only matters
 * for speed. A slot hands over an address; accesses to the memory must be ordered by those
 * who allocate and free it.
 *
 * Pages at hand count as free: before an allocation fails, all of them are put back into
 * the pools. So it fails only if there is no piece that is large enough, but for pages that
 * another CPU is moving to its slots at that moment.
 */
#include <linux/genalloc.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <kverbs/delay.h>

#include "p2pdma.h"
#include "provider.h"

/* Maximum number of pages at hand, and how many are taken from a pool at once. */
#define P2P_AT_HAND	16
#define P2P_BATCH	(P2P_AT_HAND / 2)

/**
 * struct p2p_at_hand - pages at hand for a CPU
 * @page: their addresses, or NULL
 */
struct p2p_at_hand {
	void *page[P2P_AT_HAND];
};

/* Takes memory from one of the pools. Under RCU, like all functions below. */
static void *pools_take(struct p2p_provider *provider, size_t size)
{
	struct p2p_resource *res;
	void *addr;

	list_for_each_entry_rcu(res, &provider->resources, entry) {
		addr = (void *)gen_pool_alloc(res->pool, size);
		if (addr)
			return addr;
	}
	return NULL;
}

static void pools_put(void *addr, size_t size)
{
	struct p2p_resource *res = p2p_resource_of(virt_to_page(addr));

	gen_pool_free(res->pool, (unsigned long)addr, size);
}

static void *slot_take(void **slot)
{
	if (!READ_ONCE(*slot))
		return NULL;
	kverbs_delay("p2p_slot_take");
	return xchg(slot, NULL);
}

static bool slot_fill(void **slot, void *addr)
{
	if (READ_ONCE(*slot))
		return false;
	kverbs_delay("p2p_slot_fill");
	return !cmpxchg(slot, NULL, addr);
}

static void *at_hand_take(struct p2p_at_hand *at_hand)
{
	void *addr;
	int i;

	for (i = 0; i < P2P_AT_HAND; i++) {
		addr = slot_take(&at_hand->page[i]);
		if (addr)
			return addr;
	}
	return NULL;
}

static bool at_hand_put(struct p2p_at_hand *at_hand, void *addr)
{
	int i;

	for (i = 0; i < P2P_AT_HAND; i++)
		if (slot_fill(&at_hand->page[i], addr))
			return true;
	return false;
}

static void page_put(struct p2p_provider *provider, void *addr)
{
	if (!at_hand_put(raw_cpu_ptr(provider->at_hand), addr))
		pools_put(addr, PAGE_SIZE);
}

/* Takes a page from a pool, and puts further ones at hand. */
static void *batch_take(struct p2p_provider *provider)
{
	void *addr = pools_take(provider, P2P_BATCH * PAGE_SIZE);
	int i;

	for (i = 1; addr && i < P2P_BATCH; i++)
		page_put(provider, addr + i * PAGE_SIZE);
	return addr;
}

static void *page_take(struct p2p_provider *provider)
{
	return at_hand_take(raw_cpu_ptr(provider->at_hand)) ?: batch_take(provider);
}

/* Puts the pages at hand back into the pools, except for those that are freed meanwhile. */
void p2p_pool_drain(struct p2p_provider *provider)
{
	struct p2p_at_hand *at_hand;
	void *addr;
	int cpu;

	for_each_possible_cpu(cpu) {
		at_hand = per_cpu_ptr(provider->at_hand, cpu);
		while ((addr = at_hand_take(at_hand)))
			pools_put(addr, PAGE_SIZE);
	}
}

/* Returns whole pages, or NULL. */
void *p2p_pool_take(struct p2p_provider *provider, size_t size)
{
	void *addr = size && size <= PAGE_SIZE ? page_take(provider) :
						 pools_take(provider, size);

	if (likely(addr))
		return addr;
	p2p_pool_drain(provider);
	return pools_take(provider, size);
}

void p2p_pool_put(struct p2p_provider *provider, void *addr, size_t size)
{
	if (size <= PAGE_SIZE)
		page_put(provider, addr);
	else
		pools_put(addr, size);
}

static size_t at_hand_size(struct p2p_at_hand *at_hand)
{
	size_t size = 0;
	int i;

	for (i = 0; i < P2P_AT_HAND; i++)
		if (READ_ONCE(at_hand->page[i]))
			size += PAGE_SIZE;
	return size;
}

void p2p_pool_count(struct p2p_provider *provider, struct p2p_memory *mem)
{
	struct p2p_resource *res;
	int cpu;

	list_for_each_entry_rcu(res, &provider->resources, entry) {
		mem->size += gen_pool_size(res->pool);
		mem->available += gen_pool_avail(res->pool);
	}
	for_each_possible_cpu(cpu)
		mem->available += at_hand_size(per_cpu_ptr(provider->at_hand, cpu));
	/* Pages that move from a pool to a slot meanwhile are counted twice. */
	mem->available = min(mem->available, mem->size);
}

int p2p_pool_init(struct p2p_provider *provider)
{
	provider->at_hand = alloc_percpu(struct p2p_at_hand);
	return provider->at_hand ? 0 : -ENOMEM;
}

void p2p_pool_exit(struct p2p_provider *provider)
{
	free_percpu(provider->at_hand);
}
