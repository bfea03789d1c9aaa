/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * References that the contract checker has seen modules take: see refs.c.
 */
#ifndef KVERBS_CORE_HELD_H
#define KVERBS_CORE_HELD_H

#include <linux/spinlock_types.h>
#include <linux/types.h>

#include "contract.h"

struct module;

/* Pairs of thing and call site that are told apart at a time: clients hold few for long. */
#define IB_HELD_PLACES	16

/**
 * struct ib_held_place - references on one thing that were taken at one call site
 * @thing: what they are on
 * @site: the call site
 * @count: how many there are; 0: the entry is free
 * @turn: when the last one was taken, as ib_held_turn()
 */
struct ib_held_place {
	const void *thing;
	unsigned long site;
	unsigned int count;
	u64 turn;
};

/**
 * struct ib_held - references on things of one kind
 * @lock: guards the following; taken in any context but NMI
 * @nr: entries of @places in use
 * @places: the references, by thing and call site
 */
struct ib_held {
	raw_spinlock_t lock;
	unsigned int nr;
	struct ib_held_place places[IB_HELD_PLACES];
};

void ib_held_init(struct ib_held *held);
void ib_held_note(struct ib_held *held, const void *thing, unsigned long site);
void ib_held_drop(struct ib_held *held, const void *thing, unsigned long site);
u64 ib_held_turn(void);
void ib_held_visit(struct ib_held *held, u64 until,
		   void (*visit)(void *context, unsigned long *site), void *context);
void ib_held_forget(struct ib_held *held, const struct module *mod);

/*
 * A module has taken a reference on @thing by a call from @site. Call this after the
 * reference was taken. Nothing is counted while the checker is off.
 */
static inline void ib_held_take(struct ib_held *held, const void *thing, unsigned long site)
{
	if (ib_contract_on())
		ib_held_note(held, thing, site);
}

/*
 * A module gives one back by a call from @site. Call this before; works with the checker
 * off.
 */
static inline void ib_held_give(struct ib_held *held, const void *thing, unsigned long site)
{
	if (unlikely(READ_ONCE(held->nr)))
		ib_held_drop(held, thing, site);
}

#endif
