// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: references that modules have taken and not given back.
 *
 * The module that gives a reference back need not be the one that took it, and the checker
 * may not have seen it taken, or not know by whom. The checker must never count more
 * references for a module than the module holds, or it would blame the module for nothing.
 * So each reference that is given back takes one off the counts: if the same module has one
 * on that thing, the last that it took; else one of each module that has any on that thing,
 * because it may belong to any of them. Errors thus go the other way: a reference that was
 * left behind may not be counted any more. The midlayer takes and gives back its own
 * references by other calls; they are not counted here.
 *
 * One case it cannot detect: a module hands a reference to another module, which had one of
 * its own, and the latter gives back only one of the two.
 *
 * Lock protocol: the lock guards the places, in any context but NMI; innermost, but for
 * RCU.
 */
#include <linux/atomic.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/spinlock.h>

#include "contract.h"
#include "export.h"
#include "refs.h"

/* Grows with each reference taken. */
static atomic64_t held_turn;

void ib_held_init(struct ib_held *held)
{
	raw_spin_lock_init(&held->lock);
}
IB_EXPORT_INTERNAL(ib_held_init);

static struct ib_held_place *place_of(struct ib_held *held, const void *thing,
				      unsigned long site)
{
	struct ib_held_place *p, *free = NULL;

	lockdep_assert_held(&held->lock);
	for (p = held->places; p < held->places + IB_HELD_PLACES; p++) {
		if (!p->count)
			free = free ?: p;
		else if (p->thing == thing && p->site == site)
			return p;
	}
	return free;
}

/* For ib_held_take(). A reference for which there is no free entry is not counted. */
void ib_held_note(struct ib_held *held, const void *thing, unsigned long site)
{
	struct ib_held_place *p;
	unsigned long flags;

	site = ib_contract_culprit(site);
	if (!ib_contract_is_known(site))
		return;
	raw_spin_lock_irqsave(&held->lock, flags);
	p = place_of(held, thing, site);
	if (p) {
		if (!p->count)
			WRITE_ONCE(held->nr, held->nr + 1);
		p->thing = thing;
		p->site = site;
		p->count++;
		p->turn = atomic64_inc_return(&held_turn);
	}
	raw_spin_unlock_irqrestore(&held->lock, flags);
}
IB_EXPORT_INTERNAL(ib_held_note);

/* The entry of the last reference that the module at @site took on @thing, or NULL. */
static struct ib_held_place *last_place(struct ib_held *held, const void *thing,
					unsigned long site)
{
	struct ib_held_place *p, *last = NULL;

	lockdep_assert_held(&held->lock);
	for (p = held->places; p < held->places + IB_HELD_PLACES; p++) {
		if (p->count && p->thing == thing && ib_same_module(site, p->site) &&
		    (!last || p->turn > last->turn))
			last = p;
	}
	return last;
}

static void drop_one(struct ib_held *held, struct ib_held_place *p)
{
	lockdep_assert_held(&held->lock);
	if (!--p->count)
		WRITE_ONCE(held->nr, held->nr - 1);
}

/* Drops the last reference of each module: it may have been any module's. */
static void drop_anybodys(struct ib_held *held, const void *thing)
{
	unsigned long due = 0;
	struct ib_held_place *p;
	unsigned int i;

	/* Find them all before dropping any: a drop would make another entry the last. */
	for (i = 0; i < IB_HELD_PLACES; i++) {
		p = &held->places[i];
		if (p->count && p->thing == thing && p == last_place(held, thing, p->site))
			due |= BIT(i);
	}
	for_each_set_bit(i, &due, IB_HELD_PLACES)
		drop_one(held, &held->places[i]);
}

/* For ib_held_give(). */
void ib_held_drop(struct ib_held *held, const void *thing, unsigned long site)
{
	struct ib_held_place *own;
	unsigned long flags;

	site = ib_contract_culprit(site);
	raw_spin_lock_irqsave(&held->lock, flags);
	own = last_place(held, thing, site);
	if (own)
		drop_one(held, own);
	else
		drop_anybodys(held, thing);
	raw_spin_unlock_irqrestore(&held->lock, flags);
}
IB_EXPORT_INTERNAL(ib_held_drop);

/* When the last reference was taken, on whatever. Any context. */
u64 ib_held_turn(void)
{
	return atomic64_read(&held_turn);
}

/*
 * Calls @visit for each reference taken no later than @until, a value of ib_held_turn(),
 * with the call site that took it. For references taken at one site, the time of the last
 * one counts. Any context but NMI, which is also the context of @visit.
 */
void ib_held_visit(struct ib_held *held, u64 until,
		   void (*visit)(void *context, unsigned long *site), void *context)
{
	struct ib_held_place *p;
	unsigned long flags;
	unsigned int i;

	raw_spin_lock_irqsave(&held->lock, flags);
	for (p = held->places; p < held->places + IB_HELD_PLACES; p++)
		for (i = 0; i < p->count && p->turn <= until; i++)
			visit(context, &p->site);
	raw_spin_unlock_irqrestore(&held->lock, flags);
}
IB_EXPORT_INTERNAL(ib_held_visit);

/* The module is being unloaded: another one may be loaded at its addresses. */
void ib_held_forget(struct ib_held *held, const struct module *mod)
{
	struct ib_held_place *p;
	unsigned long flags;

	if (!READ_ONCE(held->nr))
		return;
	raw_spin_lock_irqsave(&held->lock, flags);
	for (p = held->places; p < held->places + IB_HELD_PLACES; p++) {
		if (!p->count || !within_module(p->site, mod))
			continue;
		p->count = 0;
		WRITE_ONCE(held->nr, held->nr - 1);
	}
	raw_spin_unlock_irqrestore(&held->lock, flags);
}
IB_EXPORT_INTERNAL(ib_held_forget);
