// SPDX-License-Identifier: GPL-2.0-only
/*
 * Numbers that processes are given: of handles, and of the objects under them. See
 * struct ca_numbers.
 *
 * Lock protocol: an owner's lock around reserving and giving up. Who has reserved a
 * number publishes and withdraws it, and nobody else does. Lookups are under RCU or
 * that lock.
 */
#include <linux/random.h>
#include <linux/xarray.h>

#include "ca.h"

void ca_numbers_init(struct ca_numbers *n)
{
	xa_init_flags(&n->entries, XA_FLAGS_ALLOC1 | XA_FLAGS_ACCOUNT);
	/* Numbers of one file or handle are not taken for those of another. */
	n->sequence = get_random_u32();
}

/* A number, not found yet. Returns 0, -EBUSY if all are taken, or -ENOMEM. */
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

void ca_number_give_up(struct ca_numbers *n, u64 id)
{
	xa_erase(&n->entries, lower_32_bits(id));
	n->count--;
}

/* It is found from now on. Needs no memory: the place is there. */
void ca_number_publish(struct ca_numbers *n, u64 id, void *entry)
{
	xa_store(&n->entries, lower_32_bits(id), entry, GFP_KERNEL);
}

/* It is not found any more. */
void ca_number_withdraw(struct ca_numbers *n, u64 id)
{
	xa_store(&n->entries, lower_32_bits(id), XA_ZERO_ENTRY, GFP_KERNEL);
}
