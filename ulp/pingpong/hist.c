// SPDX-License-Identifier: GPL-2.0-only
/*
 * Log-linear histogram of nanoseconds: every power of two is cut into 32
 * buckets, so a percentile is off by at most 1/32. There is one writer at a
 * time, and it has finished before the reader starts.
 */
#include <linux/bitops.h>
#include <linux/math64.h>
#include <linux/slab.h>

#include "pingpong.h"

#define PP_SUB_BITS	5
#define PP_SUB		BIT(PP_SUB_BITS)
#define PP_BUCKETS	((64 - PP_SUB_BITS + 1) * PP_SUB)

struct pp_hist {
	u64 total;
	u32 count[PP_BUCKETS];
};

struct pp_hist *pp_hist_alloc(void)
{
	return kzalloc(sizeof(struct pp_hist), GFP_KERNEL);
}

void pp_hist_free(struct pp_hist *hist)
{
	kfree(hist);
}

/* Values below PP_SUB have a bucket each, as do the values of the first two rows. */
static unsigned int pp_bucket(u64 ns)
{
	unsigned int shift;

	if (ns < PP_SUB)
		return ns;
	shift = fls64(ns) - 1 - PP_SUB_BITS;
	return ((shift + 1) << PP_SUB_BITS) + ((ns >> shift) & (PP_SUB - 1));
}

/* Returns the middle of a bucket. */
static u64 pp_bucket_value(unsigned int i)
{
	unsigned int shift;
	u64 low;

	if (i < 2 * PP_SUB)
		return i;
	shift = (i >> PP_SUB_BITS) - 1;
	low = (u64)(PP_SUB + (i & (PP_SUB - 1))) << shift;
	return low + (1ULL << shift) / 2;
}

void pp_hist_add(struct pp_hist *hist, u64 ns)
{
	hist->count[pp_bucket(ns)]++;
	hist->total++;
}

void pp_hist_merge(struct pp_hist *to, const struct pp_hist *from)
{
	unsigned int i;

	for (i = 0; i < PP_BUCKETS; i++)
		to->count[i] += from->count[i];
	to->total += from->total;
}

u64 pp_hist_percentile(const struct pp_hist *hist, unsigned int percent)
{
	u64 rank = div_u64(hist->total * percent + 99, 100);
	u64 seen = 0;
	unsigned int i;

	if (!hist->total)
		return 0;
	for (i = 0; i < PP_BUCKETS; i++) {
		seen += hist->count[i];
		if (seen >= rank)
			break;
	}
	return pp_bucket_value(i);
}
