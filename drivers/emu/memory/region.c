// SPDX-License-Identifier: GPL-2.0-only
/*
 * What memory keys name: regions and windows.
 *
 * A region is found under RCU by the index in its key, and is entered through its
 * gate, which is open while the region is valid. What describes the region is
 * written while the gate is closed and empty, by whoever has the region in state
 * EMU_REGION_BUSY; that lasts for a few instructions, with preemption off, so others
 * can wait for its end. Invalidation closes the gate; it is complete when those
 * inside have left.
 *
 * A window has a gate of its own. The region that it is bound to counts it, and
 * stays valid and unchanged until the window is unbound, which happens when the
 * window's gate is closed and empty.
 *
 * The memory of a user region can be taken away, even while windows are bound to the
 * region. The gate closes for that, and engines inside leave after the piece that
 * they are copying. Until the gate opens again, engines try again; once the region
 * is revoked or dead the gate never opens again, and they fail as with a key that is
 * not valid. So that the two cases are not confused, the state is set before the
 * gate closes for good. Accesses through a window of such a region enter both gates,
 * the window's first.
 *
 * Who can reach a region: engines that found its key, or remember it (target.h), until a grace
 * period after its removal from the table; engines inside its gate, until they have left;
 * windows bound to it; and its consumer, who frees it.
 */
#include <linux/slab.h>

#include "../lib/fault.h"
#include "../lib/limits.h"
#include "memory.h"
#include "region.h"

/* Key indices that fit above the consumer's byte. Index 0 is the local DMA key's. */
#define EMU_KEY_LIMIT	XA_LIMIT(1, (1 << (32 - EMU_KEY_SHIFT)) - 1)

#define EMU_REMOTE_ACCESS	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
				 IB_ACCESS_REMOTE_ATOMIC)

/* Odd, so never 0: see struct emu_target. */
atomic_long_t emu_keys_gen __read_mostly = ATOMIC_LONG_INIT(1);

/* Called when a region was removed from its table, a grace period before it is freed. */
static void emu_keys_changed(void)
{
	/* full barrier: pair A of target.h */
	(void)atomic_long_add_return(2, &emu_keys_gen);
}

/* Returns what is wrong with this use of an entered region. */
static enum emu_syndrome emu_region_check(const struct emu_region *region,
					  const struct ib_qp *qp, const struct ib_pd *pd,
					  const struct ib_sge *sge, int access)
{
	u64 offset = sge->addr - region->iova;

	/* No region has index 0, so no key that leads here is 0. */
	if (unlikely(region->key != sge->lkey && region->alias != sge->lkey))
		return EMU_SYN_KEY;
	/* Windows are for peers. */
	if (unlikely(region->kind == EMU_REGION_WINDOW && !(access & EMU_REMOTE_ACCESS)))
		return EMU_SYN_KEY;
	if (unlikely(region->pd != pd || (region->qpn && region->qpn != qp->qp_num)))
		return EMU_SYN_KEY_PD;
	if (unlikely((region->access & access) != access))
		return EMU_SYN_KEY_ACCESS;
	/* No region wraps, so an address before it is an offset behind its end. */
	if (unlikely(offset > region->length || sge->length > region->length - offset))
		return EMU_SYN_KEY_RANGE;
	return EMU_SYN_NONE;
}

/* Whether the region's memory is the midlayer's, which may revoke it. */
static bool emu_region_is_revocable(const struct emu_region *region)
{
	return region->kind == EMU_REGION_USER;
}

/*
 * Returns EMU_SYN_PAUSED if the gate of @region is only closed for a while,
 * EMU_SYN_KEY if the key is not valid. The caller knows that the gate is closed.
 */
enum emu_syndrome emu_region_closed(const struct emu_region *region)
{
	if (emu_region_is_revocable(region) &&
	    (atomic_read(&region->state) & EMU_REGION_STATE) == EMU_REGION_VALID)
		return EMU_SYN_PAUSED;
	return EMU_SYN_KEY;
}

/*
 * The region whose gate accesses through @region must enter besides its own, or
 * NULL. Called inside the gate of @region.
 */
static struct emu_region *emu_region_second_gate(const struct emu_region *region)
{
	if (likely(region->kind != EMU_REGION_WINDOW) || !emu_region_is_revocable(region->parent))
		return NULL;
	return region->parent;
}

/* Enters the gates of a region. Under RCU. Returns what forbids it, if anything. */
static enum emu_syndrome emu_region_enter_gates(struct emu_region *region)
{
	struct emu_region *second;

	if (unlikely(!emu_gate_enter(&region->gate)))
		return emu_region_closed(region);
	second = emu_region_second_gate(region);
	if (likely(!second) || emu_gate_enter(&second->gate))
		return EMU_SYN_NONE;
	emu_gate_leave(&region->gate);
	return emu_region_closed(second);
}

/**
 * emu_region_enter() - begin to use the memory that a key names
 * @qp: queue pair that uses it
 * @pd: protection domain that the key must belong to
 * @sge: address, length in bytes, and the key, in lkey even if it is a remote one
 * @access: what the key must grant; 0 for reading by the local side
 * @why: set on failure
 *
 * An invalidation waits until emu_region_leave().
 *
 * Context: Any.
 * Return: the region; or NULL, with @why EMU_SYN_PAUSED if that is only for a while.
 */
struct emu_region *emu_region_enter(const struct ib_qp *qp, const struct ib_pd *pd,
				    const struct ib_sge *sge, int access,
				    enum emu_syndrome *why)
{
	struct emu_region *region;

	rcu_read_lock();
	region = xa_load(&to_edev(qp->device)->keys, sge->lkey >> EMU_KEY_SHIFT);
	*why = region ? emu_region_enter_gates(region) : EMU_SYN_KEY;
	rcu_read_unlock();
	if (unlikely(*why))
		return NULL;

	*why = emu_region_check(region, qp, pd, sge, access);
	if (likely(*why == EMU_SYN_NONE))
		return region;
	emu_region_leave(region);
	return NULL;
}

/**
 * emu_target_find() - find the region that a key names, remember it, and enter it
 * @target: where it is remembered
 * @edev: device whose key it is
 * @key: the key
 *
 * Context: Any, preemption off.
 * Return: true if @target->region is entered, until emu_target_leave(); false if that takes
 * emu_region_enter().
 */
bool emu_target_find(struct emu_target *target, struct emu_device *edev, u32 key)
{
	unsigned long gen = emu_keys_generation();
	struct emu_region *region;

	region = xa_load(&edev->keys, key >> EMU_KEY_SHIFT);
	if (!region || region->kind == EMU_REGION_WINDOW)
		return false;
	target->region = region;
	target->gen = gen;
	target->index = key >> EMU_KEY_SHIFT;
	return emu_gate_enter(&region->gate);
}

/*
 * The memory of a part of a region that crosses a page boundary, at @offset from the start of the
 * region's first page; NULL if its pages are not contiguous, or not memory.
 */
void *emu_target_pages(const struct emu_region *region, u64 offset, u32 length)
{
	u64 page_size = 1ULL << region->page_shift;
	u64 first = offset >> region->page_shift;
	u64 last = (offset + length - 1) >> region->page_shift;
	u64 within = offset & (page_size - 1);
	void **mem = region->backing ? region->backing->pages : NULL;
	u64 page;

	for (page = first; page < last; page++) {
		if (mem ? mem[page + 1] != mem[page] + page_size :
			  region->pages[page + 1] != region->pages[page] + page_size)
			return NULL;
	}
	return mem ? mem[first] + within :
		     emu_dma_span(region->edev, region->pages[first] + within, length);
}

void emu_region_leave(struct emu_region *region)
{
	struct emu_region *second;

	rcu_read_lock();
	second = emu_region_second_gate(region);
	if (unlikely(second))
		emu_gate_leave(&second->gate);
	emu_gate_leave(&region->gate);
	rcu_read_unlock();
}

/**
 * emu_region_must_leave() - is the memory of an entered region being taken away?
 * @region: the region
 *
 * Context: Any.
 * Return: EMU_SYN_NONE if not; else what emu_region_enter() would say now.
 */
enum emu_syndrome emu_region_must_leave(const struct emu_region *region)
{
	if (region->kind == EMU_REGION_WINDOW)
		region = region->parent;
	if (!emu_region_is_revocable(region) || likely(!emu_gate_is_closed(&region->gate)))
		return EMU_SYN_NONE;
	return emu_region_closed(region);
}

/**
 * emu_region_span() - memory behind a part of a region
 * @region: the region, entered for a range that contains the part
 * @addr: address of the part, as in the SGE
 * @len: bytes of the part; reduced to what is contiguous
 *
 * Context: Any.
 * Return: the kernel address, or NULL if it is not memory.
 */
void *emu_region_span(const struct emu_region *region, u64 addr, size_t *len)
{
	u64 page_size, offset, page;

	if (region->kind == EMU_REGION_WINDOW) {
		addr = addr - region->iova + region->base;
		region = region->parent;
	}
	if (region->kind == EMU_REGION_DMA)
		return emu_dma_span(region->edev, addr, *len);

	/* The list starts at the page that holds the first byte of the region. */
	page_size = 1ULL << region->page_shift;
	offset = addr - region->origin;
	page = offset >> region->page_shift;
	offset &= page_size - 1;
	*len = min_t(u64, *len, page_size - offset);
	if (region->backing)
		return region->backing->pages[page] + offset;
	return emu_dma_span(region->edev, region->pages[page] + offset, *len);
}

/* The DMA address of a part of a region for which emu_region_span() found no memory. */
u64 emu_region_dma(const struct emu_region *region, u64 addr)
{
	u64 page_size = 1ULL << region->page_shift, offset;

	if (region->kind == EMU_REGION_WINDOW)
		return emu_region_dma(region->parent, addr - region->iova + region->base);
	if (region->kind == EMU_REGION_DMA)
		return addr;
	offset = addr - region->origin;
	return region->pages[offset >> region->page_shift] + (offset & (page_size - 1));
}

static enum emu_object emu_region_object(const struct emu_region *region)
{
	return region->kind == EMU_REGION_WINDOW ? EMU_OBJECT_MW : EMU_OBJECT_MR;
}

/*
 * Sets up @region, with room for @max_pages pages, and gives it a key, which is not
 * valid yet. Returns 0 or -ENOMEM. Process context.
 */
int emu_region_add(struct emu_region *region, struct ib_pd *pd, enum emu_region_kind kind,
		   u32 max_pages)
{
	struct emu_device *edev = to_edev(pd->device);
	u32 index;
	int err;

	emu_gate_init(&region->gate);
	atomic_set(&region->state, EMU_REGION_FREE);
	region->kind = kind;
	region->pd = pd;
	region->edev = edev;
	region->max_pages = max_pages;
	if (emu_fault_alloc(edev))
		return -ENOMEM;
	err = emu_object_get(edev, emu_region_object(region));
	if (err)
		return err;
	if (max_pages) {
		region->pages = kvcalloc(max_pages, sizeof(*region->pages), GFP_KERNEL);
		if (!region->pages)
			goto put;
	}
	/* From here on, somebody may guess the key, but finds the gate closed. */
	err = xa_alloc_cyclic(&edev->keys, &index, region, EMU_KEY_LIMIT, &edev->next_key,
			      GFP_KERNEL);
	if (err < 0)
		goto free;
	WRITE_ONCE(region->key, index << EMU_KEY_SHIFT);
	return 0;
free:
	kvfree(region->pages);
put:
	emu_object_put(edev, emu_region_object(region));
	return -ENOMEM;
}

/* Puts the region in state DEAD, for good. Returns false if windows are bound to it. */
static bool emu_region_kill(struct emu_region *region)
{
	int state = atomic_read(&region->state);

	do {
		while (state == EMU_REGION_BUSY) {
			cpu_relax();
			state = atomic_read(&region->state);
		}
		if (state >= EMU_REGION_ONE_WINDOW)
			return false;
	} while (!atomic_try_cmpxchg(&region->state, &state, EMU_REGION_DEAD));
	return true;
}

/*
 * Puts a valid user region in state REVOKED, because its memory is being taken away;
 * the caller then closes its gate. Windows may be bound to the region. Any context.
 */
void emu_region_revoke(struct emu_region *region)
{
	int state = atomic_read(&region->state);

	do {
		if ((state & EMU_REGION_STATE) != EMU_REGION_VALID)
			return;
	} while (!atomic_try_cmpxchg(&region->state, &state,
				     state - EMU_REGION_VALID + EMU_REGION_REVOKED));
}

/*
 * Ends all use of @region, which its owner then frees after a grace period.
 * Returns 0, or -EINVAL if windows are bound to it. May sleep.
 */
int emu_region_del(struct emu_region *region)
{
	if (!emu_region_kill(region))
		return -EINVAL;
	xa_erase(&region->edev->keys, region->key >> EMU_KEY_SHIFT);
	emu_keys_changed();
	emu_gate_drain(&region->gate);
	emu_window_unbind(region);
	emu_backing_free(region->backing);
	kvfree(region->pages);
	emu_object_put(region->edev, emu_region_object(region));
	return 0;
}

/* The region that the index in @key names, if it is in the queue pair's PD. Under RCU. */
struct emu_region *emu_region_find(const struct ib_qp *qp, u32 key, enum emu_syndrome *why)
{
	struct emu_region *region = xa_load(&to_edev(qp->device)->keys, key >> EMU_KEY_SHIFT);

	if (!region) {
		*why = EMU_SYN_KEY;
		return NULL;
	}
	if (region->pd != qp->pd) {
		*why = EMU_SYN_KEY_PD;
		return NULL;
	}
	return region;
}

/*
 * Puts the region in state BUSY, until emu_region_settle(), if it is in state @from
 * and no window is bound to it; else returns false. Any context.
 */
bool emu_region_seize(struct emu_region *region, enum emu_region_state from)
{
	/* Others spin until BUSY ends, so its holder must not be preempted. */
	preempt_disable();
	if (atomic_cmpxchg(&region->state, from, EMU_REGION_BUSY) == from)
		return true;
	preempt_enable();
	return false;
}

/* Seizes a region that is to be registered or bound. EMU_AGAIN if it may be free soon. */
enum emu_outcome emu_region_seize_free(struct emu_region *region)
{
	if (emu_region_seize(region, EMU_REGION_FREE))
		return EMU_DONE;
	switch (atomic_read(&region->state)) {
	case EMU_REGION_FREE:
	case EMU_REGION_BUSY:
		return EMU_AGAIN;
	default:
		return EMU_FAILED;
	}
}

/*
 * Seizes a region that is being invalidated, if those inside have left. Only once
 * the region is seized is it certain that it has not been reused meanwhile.
 */
bool emu_region_seize_drained(struct emu_region *region)
{
	if (!emu_region_seize(region, EMU_REGION_INVALIDATING))
		return false;
	if (emu_gate_is_drained(&region->gate))
		return true;
	emu_region_settle(region, EMU_REGION_INVALIDATING);
	return false;
}

void emu_region_settle(struct emu_region *region, enum emu_region_state to)
{
	/* release: pairs with the cmpxchg of the next to seize it */
	atomic_set_release(&region->state, to);
	preempt_enable();
}

/* Opens a region that is seized and has been set up. */
void emu_region_publish(struct emu_region *region)
{
	emu_gate_open(&region->gate);
	emu_region_settle(region, EMU_REGION_VALID);
}

/*
 * Sets the addresses by which consumers name the pages of a seized region. The first byte is at
 * the offset in the first page that @virt_addr has. Returns false if the range wraps or is larger
 * than the pages.
 */
bool emu_region_set_range(struct emu_region *region, u64 iova, u64 virt_addr, u64 length)
{
	u64 room = (u64)region->nr_pages << region->page_shift;
	u64 skip = virt_addr & ((1ULL << region->page_shift) - 1);

	if (length && iova + length - 1 < iova)
		return false;
	if (skip > room || length > room - skip)
		return false;
	region->iova = iova;
	region->origin = iova - skip;
	region->length = length;
	return true;
}

/* Sets up a seized region as the consumer wants it. Returns false if that is illegal. */
static bool emu_region_set(struct emu_region *region, const struct emu_reg *reg)
{
	struct emu_mr *mr = container_of(region, struct emu_mr, region);
	u64 iova, first;

	/* A region may be registered again with the list that it has. */
	if (mr->mapped) {
		swap(region->pages, mr->next);
		region->nr_pages = mr->nr_next;
		mr->mapped = false;
	}
	region->page_shift = reg->page_shift;
	iova = reg->access & IB_ZERO_BASED ? 0 : reg->iova;
	/* 0 is also what ib_map_mr_sg_zbva() sets: it names no place in a page. */
	first = reg->iova ?: mr->virt_addr;
	if (!emu_region_set_range(region, iova, first, reg->length))
		return false;
	region->access = reg->access;
	WRITE_ONCE(region->key, reg->key);
	return true;
}

/**
 * emu_region_register() - execute IB_WR_REG_MR
 * @qp: queue pair that it was posted to
 * @reg: what the entry wants
 * @why: set on failure
 *
 * Context: The owner of @qp; any.
 * Return: EMU_DONE; EMU_FAILED; EMU_AGAIN if somebody else has the region for a moment.
 */
enum emu_outcome emu_region_register(const struct ib_qp *qp, const struct emu_reg *reg,
				     enum emu_syndrome *why)
{
	enum emu_outcome outcome = EMU_FAILED;
	struct emu_region *region;

	rcu_read_lock();
	region = emu_region_find(qp, reg->key, why);
	if (!region)
		goto unlock;
	*why = EMU_SYN_KEY;
	if (region->kind != EMU_REGION_FAST)
		goto unlock;
	*why = EMU_SYN_MR_STATE;
	outcome = emu_region_seize_free(region);
	if (outcome != EMU_DONE)
		goto unlock;
	if (emu_region_set(region, reg)) {
		emu_region_publish(region);
	} else {
		emu_region_settle(region, EMU_REGION_FREE);
		*why = EMU_SYN_KEY_RANGE;
		outcome = EMU_FAILED;
	}
unlock:
	rcu_read_unlock();
	return outcome;
}

/*
 * Closes the gate of a valid region if @key is its key. Returns what is wrong with
 * the key, if anything.
 */
static enum emu_syndrome emu_region_close(const struct ib_qp *qp, struct emu_region *region,
					  u32 key)
{
	/*
	 * Inside the gate the key does not change, so a later key is not
	 * invalidated by mistake.
	 */
	bool entered = emu_gate_enter(&region->gate);
	enum emu_syndrome why = EMU_SYN_NONE;
	u32 qpn;

	qpn = READ_ONCE(region->qpn);
	if (READ_ONCE(region->key) != key && READ_ONCE(region->alias) != key)
		why = EMU_SYN_KEY;
	else if (qpn && qpn != qp->qp_num)
		why = EMU_SYN_KEY_PD;
	if (!entered)
		return why;

	if (why == EMU_SYN_NONE && atomic_cmpxchg(&region->state, EMU_REGION_VALID,
						  EMU_REGION_INVALIDATING) == EMU_REGION_VALID)
		emu_gate_close(&region->gate);
	emu_gate_leave(&region->gate);
	return why;
}

/* Completes the invalidation of a region if those inside have left. */
static enum emu_outcome emu_region_finish(struct emu_region *region, enum emu_syndrome *why)
{
	int state = atomic_read(&region->state);

	switch (state) {
	case EMU_REGION_FREE:
		return EMU_DONE;
	case EMU_REGION_INVALIDATING:
		/* Whoever finds it drained may finish, for others too. */
		if (!emu_region_seize_drained(region))
			return EMU_AGAIN;
		emu_window_unbind(region);
		emu_region_settle(region, EMU_REGION_FREE);
		return EMU_DONE;
	case EMU_REGION_DEAD:
		*why = EMU_SYN_KEY;
		return EMU_FAILED;
	default:
		if (state < EMU_REGION_ONE_WINDOW)
			return EMU_AGAIN;
		*why = EMU_SYN_WINDOWS;
		return EMU_FAILED;
	}
}

/* Whether @key's index is that of a region or window in the PD of @qp, whatever its state. */
bool emu_region_is_named(const struct ib_qp *qp, u32 key)
{
	enum emu_syndrome why;
	bool named;

	rcu_read_lock();
	named = emu_region_find(qp, key, &why);
	rcu_read_unlock();
	return named;
}

/**
 * emu_region_invalidate() - take a region, or a window of type 2, out of use
 * @qp: queue pair that asked for it, or whose peer did
 * @key: its current key
 * @why: set on failure
 *
 * A region or window that is free already stays so.
 *
 * Context: The owner of a queue pair; any.
 * Return: EMU_DONE; EMU_FAILED, also while windows are bound to a region; EMU_AGAIN
 * while accesses are under way: no new ones begin, and the caller tries again.
 */
enum emu_outcome emu_region_invalidate(const struct ib_qp *qp, u32 key, enum emu_syndrome *why)
{
	enum emu_outcome outcome = EMU_FAILED;
	struct emu_region *region;

	rcu_read_lock();
	region = emu_region_find(qp, key, why);
	if (!region)
		goto unlock;
	*why = EMU_SYN_KEY;
	if (region->kind == EMU_REGION_FAST || emu_window_is_invalidatable(region))
		*why = emu_region_close(qp, region, key);
	if (*why == EMU_SYN_NONE)
		outcome = emu_region_finish(region, why);
unlock:
	rcu_read_unlock();
	return outcome;
}
