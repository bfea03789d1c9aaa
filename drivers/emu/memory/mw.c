// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory windows, IBTA vol. 1, 10.6.7: parts of a region, for peers.
 *
 * An entry of a send queue binds a window to a region, which counts the window from
 * then on. Windows of type 1 can be bound any number of times, each binding
 * replacing the one before, and all queue pairs of their PD can use them. Windows of
 * type 2 can only be bound when they are free, and to one queue pair; they become
 * free when they are invalidated. Life and locking are those of all regions; see
 * region.c.
 *
 * A process that binds a window of type 2 is to write the new key into its own description of the
 * window; some providers do that for it, librxe does not. A process that relies on the provider
 * goes on using the key that the window was created with, and gives it to its peers. So this key
 * names the window, too, as an alias, until the process has bound it by a later key, which shows
 * that it keeps track. The price is the process's own: as its key stays the same, a peer that has
 * it reaches each binding, and a SEND_WITH_INV of it that is tried again may find the next one.
 * Whoever binds by the key of the time has an alias during the first binding only, which no peer
 * was told.
 */
#include <linux/slab.h>

#include "region.h"

int emu_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct emu_window *window = kzalloc(sizeof(*window), GFP_KERNEL_ACCOUNT);
	int err;

	if (!window)
		return -ENOMEM;
	window->type = ibmw->type;
	err = emu_region_add(&window->region, ibmw->pd, EMU_REGION_WINDOW, 0);
	if (err) {
		kfree(window);
		return err;
	}
	ibmw->rkey = window->region.key;
	window->first_key = ibmw->rkey;
	to_emw(ibmw)->window = window;
	return 0;
}

/*
 * Engines may have found the window, but never look at @ibmw, which ib_uverbs frees as soon as this
 * returns. So nobody waits for a grace period: a process that ends may have many windows.
 */
int emu_dealloc_mw(struct ib_mw *ibmw)
{
	struct emu_window *window = to_emw(ibmw)->window;
	int err;

	err = emu_region_del(&window->region);
	if (!err)
		kfree_rcu(window, region.rcu);
	return err;
}

static struct emu_window *to_window(const struct emu_region *region)
{
	return container_of((struct emu_region *)region, struct emu_window, region);
}

static enum ib_mw_type emu_window_type(const struct emu_region *window)
{
	return to_window(window)->type;
}

/*
 * Windows of type 2 can be invalidated; a binding of type 1 only ends by another
 * binding. IBTA vol. 1, 10.6.7.2.6.
 */
bool emu_window_is_invalidatable(const struct emu_region *region)
{
	return region->kind == EMU_REGION_WINDOW && emu_window_type(region) == IB_MW_TYPE_2;
}

/* Makes @region count one more window. Returns false if @region is not valid. */
static bool emu_window_get_parent(struct emu_region *region)
{
	int state = atomic_read(&region->state);

	do {
		if ((state & EMU_REGION_STATE) != EMU_REGION_VALID)
			return false;
	} while (!atomic_try_cmpxchg(&region->state, &state, state + EMU_REGION_ONE_WINDOW));
	return true;
}

static void emu_window_put_parent(struct emu_region *region)
{
	/* release: pairs with the cmpxchg that takes the region out of use */
	atomic_sub_return_release(EMU_REGION_ONE_WINDOW, &region->state);
}

/* The window's gate is closed and empty, and the caller has seized or killed the window. */
void emu_window_unbind(struct emu_region *window)
{
	if (!window->parent)
		return;
	emu_window_put_parent(window->parent);
	window->parent = NULL;
	WRITE_ONCE(window->qpn, 0);
}

/*
 * May the window be bound to this region in this way? IBTA vol. 1, C10-72 to
 * C10-75. Called inside the region's gate.
 */
static bool emu_window_fits(const struct ib_qp *qp, const struct emu_region *region,
			    const struct emu_bind *bind)
{
	u64 offset = bind->addr - region->iova;

	if (region->kind == EMU_REGION_WINDOW || region->kind == EMU_REGION_FMR)
		return false;
	if (region->key != bind->mr_key || region->pd != qp->pd)
		return false;
	if (!(region->access & IB_ACCESS_MW_BIND))
		return false;
	if ((bind->access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_ATOMIC)) &&
	    !(region->access & IB_ACCESS_LOCAL_WRITE))
		return false;
	return offset <= region->length && bind->length <= region->length - offset;
}

/*
 * Returns the region to bind to, which counts the window; or NULL. @why is then set
 * if that is only for a while. Under RCU.
 */
static struct emu_region *emu_window_parent(const struct ib_qp *qp, const struct emu_bind *bind,
					    enum emu_syndrome *why)
{
	struct emu_region *region;
	bool bound;

	region = xa_load(&to_edev(qp->device)->keys, bind->mr_key >> EMU_KEY_SHIFT);
	if (!region)
		return NULL;
	if (!emu_gate_enter(&region->gate)) {
		if (emu_region_closed(region) == EMU_SYN_PAUSED)
			*why = EMU_SYN_PAUSED;
		return NULL;
	}
	bound = emu_window_fits(qp, region, bind) && emu_window_get_parent(region);
	emu_gate_leave(&region->gate);
	return bound ? region : NULL;
}

/* A process names the window by its present key or its first one, the kernel by a pointer. */
static bool emu_window_is_named(struct emu_region *window, u32 key, bool by_process)
{
	return !by_process || READ_ONCE(window->key) == key ||
	       READ_ONCE(to_window(window)->first_key) == key;
}

/* Returns the window to bind, or NULL if it cannot be bound in this way at all. Under RCU. */
static struct emu_region *emu_window_find(const struct ib_qp *qp, const struct emu_bind *bind,
					  bool by_process, enum emu_syndrome *why)
{
	struct emu_region *window = emu_region_find(qp, bind->mw_key, why);

	if (!window)
		return NULL;
	*why = EMU_SYN_BIND;
	if (window->kind != EMU_REGION_WINDOW ||
	    !emu_window_is_named(window, bind->mw_key, by_process) ||
	    (bind->new_key ^ bind->mw_key) >> EMU_KEY_SHIFT)
		return NULL;
	/* Only type 1 is unbound by a binding of length 0; only type 2 may be zero-based. */
	if (emu_window_type(window) == IB_MW_TYPE_2 ? !bind->length :
						      bind->access & IB_ZERO_BASED)
		return NULL;
	return window;
}

/* Closes a bound window of type 1, and seizes it once those inside have left. */
static enum emu_outcome emu_window_vacate(struct emu_region *window)
{
	if (atomic_cmpxchg(&window->state, EMU_REGION_VALID, EMU_REGION_INVALIDATING) ==
	    EMU_REGION_VALID)
		emu_gate_close(&window->gate);

	if (emu_region_seize_drained(window))
		return EMU_DONE;
	/* It is either free, or not ours yet. */
	return emu_region_seize(window, EMU_REGION_FREE) ? EMU_DONE : EMU_AGAIN;
}

/* The alias by which a process may also name the seized window, or 0. */
static u32 emu_window_alias(struct emu_region *window, const struct emu_bind *bind,
			    bool by_process)
{
	struct emu_window *w = to_window(window);

	if (w->first_key != bind->mw_key)
		WRITE_ONCE(w->first_key, 0);
	return by_process && w->type == IB_MW_TYPE_2 ? w->first_key : 0;
}

/* Gives the seized window its new binding. */
static void emu_window_set(const struct ib_qp *qp, struct emu_region *window,
			   struct emu_region *parent, const struct emu_bind *bind, bool by_process)
{
	emu_window_unbind(window);
	WRITE_ONCE(window->key, bind->new_key);
	WRITE_ONCE(window->alias, emu_window_alias(window, bind, by_process));
	if (!parent) {
		emu_region_settle(window, EMU_REGION_FREE);
		return;
	}
	window->parent = parent;
	window->base = bind->addr;
	window->iova = bind->access & IB_ZERO_BASED ? 0 : bind->addr;
	window->length = bind->length;
	window->access = bind->access & EMU_WINDOW_ACCESS;
	if (emu_window_type(window) == IB_MW_TYPE_2)
		WRITE_ONCE(window->qpn, qp->qp_num);
	emu_region_publish(window);
}

/**
 * emu_region_bind() - execute IB_WR_BIND_MW
 * @qp: queue pair that it was posted to
 * @bind: what the entry wants
 * @by_process: a process has posted it
 * @why: set on failure
 *
 * A window of type 1 that is bound already loses that binding, unless the new one is
 * illegal from the start. If the new one becomes illegal while this waits for
 * accesses through the old one, the window keeps its old region, but is of no use
 * until it is bound again.
 *
 * Context: The owner of @qp; any.
 * Return: EMU_DONE; EMU_FAILED; EMU_AGAIN while accesses through the old binding are
 * under way: no new ones begin, and the caller tries again. EMU_FAILED with @why
 * EMU_SYN_PAUSED is only for a while, too.
 */
enum emu_outcome emu_region_bind(const struct ib_qp *qp, const struct emu_bind *bind,
				 bool by_process, enum emu_syndrome *why)
{
	struct emu_region *window, *parent = NULL;
	enum emu_outcome outcome = EMU_FAILED;

	rcu_read_lock();
	window = emu_window_find(qp, bind, by_process, why);
	if (!window)
		goto unlock;
	if (bind->length) {
		parent = emu_window_parent(qp, bind, why);
		if (!parent)
			goto unlock;
	}

	outcome = emu_window_type(window) == IB_MW_TYPE_1 ? emu_window_vacate(window) :
							    emu_region_seize_free(window);
	if (outcome == EMU_DONE) {
		emu_window_set(qp, window, parent, bind, by_process);
	} else {
		*why = EMU_SYN_MR_STATE;
		if (parent)
			emu_window_put_parent(parent);
	}
unlock:
	rcu_read_unlock();
	return outcome;
}
