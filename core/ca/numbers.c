// SPDX-License-Identifier: GPL-2.0-only
/*
 * The numbers of handles, and of the objects under them, as given to callers. See struct
 * ca_numbers.
 *
 * Lock protocol: the owner's lock is held around reserving and giving up. Only the thread
 * that has reserved a number publishes it, and only the one that frees its object withdraws
 * it. Lookups are under RCU or that lock.
 */
#include <linux/random.h>
#include <linux/xarray.h>

#include "ca.h"

void ca_numbers_init(struct ca_numbers *n)
{
	xa_init_flags(&n->entries, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	/* Random, so that numbers of one file or handle are not taken for those of another. */
	n->sequence = get_random_u32();
}

/* Reserves a number that is not found yet. Returns 0, -EBUSY if all are taken, or -ENOMEM. */
int ca_number_reserve(struct ca_numbers *n, u64 *id)
{
	u32 index;
	int ret;

	ret = xa_alloc_cyclic(&n->entries, &index, XA_ZERO_ENTRY, xa_limit_31b,
			      &n->next, GFP_KERNEL);
	if (ret < 0)
		return ret;
	n->count++;
	n->sequence++;
	*id = (u64)n->sequence << 32 | index;
	return 0;
}

void ca_number_release(struct ca_numbers *n, u64 id)
{
	xa_erase(&n->entries, lower_32_bits(id));
	n->count--;
}

/* Makes lookups find it from now on. Needs no memory: the place exists. */
void ca_number_publish(struct ca_numbers *n, u64 id, void *entry)
{
	xa_store(&n->entries, lower_32_bits(id), entry, GFP_KERNEL);
}

/* Makes lookups not find it any more. */
void ca_number_withdraw(struct ca_numbers *n, u64 id)
{
	xa_store(&n->entries, lower_32_bits(id), XA_ZERO_ENTRY, GFP_KERNEL);
}
