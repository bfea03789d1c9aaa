/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * References that the contract checker has seen modules take: see refs.c.
 */
#ifndef KVERBS_CORE_REFS_H
#define KVERBS_CORE_REFS_H

#include <linux/spinlock_types.h>
#include <linux/types.h>

#include "contract.h"

struct module;

/* Pairs of object and call site that are told apart at a time: clients hold few for long. */
#define IB_REF_ENTRIES	16

/**
 * struct ib_ref_entry - references on one object that were taken at one call site
 * @object: what they are on
 * @site: the call site
 * @count: how many there are; 0: the entry is free
 * @seq: when the last one was taken, as ib_ref_log_seq()
 */
struct ib_ref_entry {
	const void *object;
	unsigned long site;
	unsigned int count;
	u64 seq;
};

/**
 * struct ib_ref_log - references on things of one kind
 * @lock: guards the following; taken in any context but NMI
 * @nr: entries of @entries in use
 * @entries: the references, by object and call site
 */
struct ib_ref_log {
	raw_spinlock_t lock;
	unsigned int nr;
	struct ib_ref_entry entries[IB_REF_ENTRIES];
};

void ib_ref_log_init(struct ib_ref_log *log);
void ib_ref_log_add(struct ib_ref_log *log, const void *object, unsigned long site);
void ib_ref_log_del(struct ib_ref_log *log, const void *object, unsigned long site);
u64 ib_ref_log_seq(void);
void ib_ref_log_visit(struct ib_ref_log *log, u64 until,
		      void (*visit)(void *context, unsigned long *site), void *context);
void ib_ref_log_forget(struct ib_ref_log *log, const struct module *mod);

/*
 * A module has taken a reference on @object by a call from @site. Call this after the
 * reference was taken. Nothing is counted while the checker is off.
 */
static inline void ib_ref_log_get(struct ib_ref_log *log, const void *object, unsigned long site)
{
	if (ib_contract_on())
		ib_ref_log_add(log, object, site);
}

/*
 * A module gives one back by a call from @site. Call this before; works with the checker
 * off.
 */
static inline void ib_ref_log_put(struct ib_ref_log *log, const void *object, unsigned long site)
{
	if (unlikely(READ_ONCE(log->nr)))
		ib_ref_log_del(log, object, site);
}

#endif
