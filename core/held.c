// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: references that modules have taken and not given back.
 *
 * Who gives a reference back need not be who took it, and the checker may not have seen
 * it taken, or by whom. What it has noted of a module must not be more than what that
 * holds, or it would be blamed for nothing. So each reference that is given back takes one
 * off: of the same module if there is one, the last that it took; else of each module that
 * has one on that thing, for it may be anybody's. Errors are thus to the other side: a
 * reference that is left may not be noted any more. The midlayer's own references
 * are taken and given back by other calls, and are in no such count.
 *
 * One thing it cannot know: that a module has handed a reference to another one, which
 * had one of its own, and gives back only one of the two.
 *
 * Lock protocol: the lock guards the places, in any context but NMI; innermost, but for
 * RCU.
 */
#include <linux/module.h>
#include <linux/spinlock.h>

#include "contract.h"
#include "held.h"

void ib_held_init(struct ib_held *held)
{
	raw_spin_lock_init(&held->lock);
}

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

/* By ib_held_take(). One for which there is no room is not noted. */
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
		p->turn = ++held->turn;
	}
	raw_spin_unlock_irqrestore(&held->lock, flags);
}

/* The last that the module at @site took on @thing, or NULL. */
static struct ib_held_place *last_place(struct ib_held *held, const void *thing,
					unsigned long site)
{
	struct ib_held_place *p, *last = NULL;

	lockdep_assert_held(&held->lock);
	for (p = held->places; p < held->places + IB_HELD_PLACES; p++) {
		if (p->count && p->thing == thing && ib_same_module(site, p->site) &&
		    (!last || (int)(p->turn - last->turn) > 0))
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

/* The last of each module, for it may have been anybody's. */
static void drop_anybodys(struct ib_held *held, const void *thing)
{
	unsigned long due = 0;
	struct ib_held_place *p;
	unsigned int i;

	/* Before any goes: then another one is the last. */
	for (i = 0; i < IB_HELD_PLACES; i++) {
		p = &held->places[i];
		if (p->count && p->thing == thing && p == last_place(held, thing, p->site))
			due |= BIT(i);
	}
	for_each_set_bit(i, &due, IB_HELD_PLACES)
		drop_one(held, &held->places[i]);
}

/* By ib_held_give(). */
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

/* When the last reference was taken. Any context but NMI. */
unsigned int ib_held_turn(struct ib_held *held)
{
	unsigned long flags;
	unsigned int turn;

	raw_spin_lock_irqsave(&held->lock, flags);
	turn = held->turn;
	raw_spin_unlock_irqrestore(&held->lock, flags);
	return turn;
}

/*
 * For each reference that was taken no later than @until, of ib_held_turn(): where. Of those
 * taken at one place the last one counts for all. Any context but NMI; so is @visit called.
 */
void ib_held_visit(struct ib_held *held, unsigned int until,
		   void (*visit)(void *context, unsigned long *site), void *context)
{
	struct ib_held_place *p;
	unsigned long flags;
	unsigned int i;

	raw_spin_lock_irqsave(&held->lock, flags);
	for (p = held->places; p < held->places + IB_HELD_PLACES; p++)
		for (i = 0; i < p->count && (int)(p->turn - until) <= 0; i++)
			visit(context, &p->site);
	raw_spin_unlock_irqrestore(&held->lock, flags);
}

/* The module goes: another one may come where it was. */
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
