// SPDX-License-Identifier: GPL-2.0-only
/*
 * The contract checker: references that modules have taken and not given back.
 *
 * The module that gives a reference back need not be the one that took it, and the checker
 * may not have seen it taken, or not know by whom. The checker must never count more
 * references for a module than the module holds, or it would report the module without cause.
 * So each reference that is given back takes one off the counts: if the same module has one
 * on that object, the last that it took; else one of each module that has any on that object,
 * because it may belong to any of them. Errors thus go the other way: a reference that was
 * left behind may not be counted any more. The midlayer takes and gives back its own
 * references by other calls; they are not counted here.
 *
 * One case it cannot detect: a module hands a reference to another module, which had one of
 * its own, and the latter gives back only one of the two.
 *
 * Lock protocol: the lock guards the entries, in any context but NMI; innermost, but for
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
static atomic64_t ref_seq;

void ib_ref_log_init(struct ib_ref_log *log)
{
	raw_spin_lock_init(&log->lock);
}
IB_EXPORT_INTERNAL(ib_ref_log_init);

static struct ib_ref_entry *find_entry(struct ib_ref_log *log, const void *object,
				       unsigned long site)
{
	struct ib_ref_entry *p, *free = NULL;

	lockdep_assert_held(&log->lock);
	for (p = log->entries; p < log->entries + IB_REF_ENTRIES; p++) {
		if (!p->count)
			free = free ?: p;
		else if (p->object == object && p->site == site)
			return p;
	}
	return free;
}

/* For ib_ref_log_get(). A reference for which there is no free entry is not counted. */
void ib_ref_log_add(struct ib_ref_log *log, const void *object, unsigned long site)
{
	struct ib_ref_entry *p;
	unsigned long flags;

	site = ib_contract_culprit(site);
	if (!ib_contract_is_known(site))
		return;
	raw_spin_lock_irqsave(&log->lock, flags);
	p = find_entry(log, object, site);
	if (p) {
		if (!p->count)
			WRITE_ONCE(log->nr, log->nr + 1);
		p->object = object;
		p->site = site;
		p->count++;
		p->seq = atomic64_inc_return(&ref_seq);
	}
	raw_spin_unlock_irqrestore(&log->lock, flags);
}
IB_EXPORT_INTERNAL(ib_ref_log_add);

/* The entry of the last reference that the module at @site took on @object, or NULL. */
static struct ib_ref_entry *last_entry(struct ib_ref_log *log, const void *object,
				       unsigned long site)
{
	struct ib_ref_entry *p, *last = NULL;

	lockdep_assert_held(&log->lock);
	for (p = log->entries; p < log->entries + IB_REF_ENTRIES; p++) {
		if (p->count && p->object == object && ib_same_module(site, p->site) &&
		    (!last || p->seq > last->seq))
			last = p;
	}
	return last;
}

static void drop_ref(struct ib_ref_log *log, struct ib_ref_entry *p)
{
	lockdep_assert_held(&log->lock);
	if (!--p->count)
		WRITE_ONCE(log->nr, log->nr - 1);
}

/* Drops the last reference of each module: it may have been any module's. */
static void drop_one_per_module(struct ib_ref_log *log, const void *object)
{
	unsigned long due = 0;
	struct ib_ref_entry *p;
	unsigned int i;

	/* Find them all before dropping any: a drop would make another entry the last. */
	for (i = 0; i < IB_REF_ENTRIES; i++) {
		p = &log->entries[i];
		if (p->count && p->object == object && p == last_entry(log, object, p->site))
			due |= BIT(i);
	}
	for_each_set_bit(i, &due, IB_REF_ENTRIES)
		drop_ref(log, &log->entries[i]);
}

/* For ib_ref_log_put(). */
void ib_ref_log_del(struct ib_ref_log *log, const void *object, unsigned long site)
{
	struct ib_ref_entry *own;
	unsigned long flags;

	site = ib_contract_culprit(site);
	raw_spin_lock_irqsave(&log->lock, flags);
	own = last_entry(log, object, site);
	if (own)
		drop_ref(log, own);
	else
		drop_one_per_module(log, object);
	raw_spin_unlock_irqrestore(&log->lock, flags);
}
IB_EXPORT_INTERNAL(ib_ref_log_del);

/* Sequence number of the last reference that was taken on anything. Any context. */
u64 ib_ref_log_seq(void)
{
	return atomic64_read(&ref_seq);
}

/*
 * Calls @visit for each reference taken no later than @until, a value of ib_ref_log_seq(),
 * with the call site that took it. For references taken at one site, the time of the last
 * one counts. Any context but NMI, which is also the context of @visit.
 */
void ib_ref_log_visit(struct ib_ref_log *log, u64 until,
		      void (*visit)(void *context, unsigned long *site), void *context)
{
	struct ib_ref_entry *p;
	unsigned long flags;
	unsigned int i;

	raw_spin_lock_irqsave(&log->lock, flags);
	for (p = log->entries; p < log->entries + IB_REF_ENTRIES; p++)
		for (i = 0; i < p->count && p->seq <= until; i++)
			visit(context, &p->site);
	raw_spin_unlock_irqrestore(&log->lock, flags);
}
IB_EXPORT_INTERNAL(ib_ref_log_visit);

/* The module is being unloaded: another one may be loaded at its addresses. */
void ib_ref_log_forget(struct ib_ref_log *log, const struct module *mod)
{
	struct ib_ref_entry *p;
	unsigned long flags;

	if (!READ_ONCE(log->nr))
		return;
	raw_spin_lock_irqsave(&log->lock, flags);
	for (p = log->entries; p < log->entries + IB_REF_ENTRIES; p++) {
		if (!p->count || !within_module(p->site, mod))
			continue;
		p->count = 0;
		WRITE_ONCE(log->nr, log->nr - 1);
	}
	raw_spin_unlock_irqrestore(&log->lock, flags);
}
IB_EXPORT_INTERNAL(ib_ref_log_forget);
