// SPDX-License-Identifier: GPL-2.0-only
/*
 * Fast memory regions: page lists that the consumer maps with a call.
 *
 * A region can be mapped in any context, so mapping waits neither for accesses
 * through the previous mapping nor for another call. Each mapping has a key of
 * its own: the low byte is counted up. After EMU_MAX_FMR_MAPS mappings an unmap
 * is due, which waits until nobody is inside; so by the time a key is used
 * again, nobody still holds it for the earlier mapping. Windows are not bound to
 * such regions. Life and locking are those of all regions; see region.c.
 */
#include <linux/slab.h>

#include "fmr.h"

struct ib_fmr *emu_alloc_fmr(struct ib_pd *pd, int access, struct ib_fmr_attr *attr)
{
	struct emu_fmr *fmr;
	int err;

	if (attr->max_pages < 1 || attr->max_pages > EMU_MAX_PAGE_LIST ||
	    attr->max_maps < 1 || attr->max_maps > EMU_MAX_FMR_MAPS ||
	    attr->page_shift > 63 || !(BIT_ULL(attr->page_shift) & EMU_PAGE_SIZES) ||
	    (access & IB_ZERO_BASED))
		return ERR_PTR(-EINVAL);

	fmr = kzalloc(sizeof(*fmr), GFP_KERNEL);
	if (!fmr)
		return ERR_PTR(-ENOMEM);
	fmr->max_maps = attr->max_maps;
	fmr->region.access = access;
	fmr->region.page_shift = attr->page_shift;
	err = emu_region_add(&fmr->region, pd, EMU_REGION_FMR, attr->max_pages);
	if (err) {
		kfree(fmr);
		return ERR_PTR(err);
	}
	fmr->ibfmr.lkey = fmr->region.key;
	fmr->ibfmr.rkey = fmr->region.key;
	return &fmr->ibfmr;
}

/* Can the region take this list? */
static bool emu_fmr_takes(const struct emu_region *region, const u64 *pages, int nr, u64 iova)
{
	u64 mask = (1ULL << region->page_shift) - 1;
	int i;

	if (nr < 1 || nr > region->max_pages || iova & mask)
		return false;
	for (i = 0; i < nr; i++) {
		if (pages[i] & mask)
			return false;
	}
	return true;
}

/* Seizes the region with its gate closed and empty, or leaves everything as it is. */
static int emu_fmr_seize(struct emu_fmr *fmr, int *state)
{
	struct emu_region *region = &fmr->region;
	int err = 0;

	*state = atomic_read(&region->state);
	if ((*state != EMU_REGION_FREE && *state != EMU_REGION_VALID) ||
	    !emu_region_seize(region, *state))
		return -EBUSY;
	if (fmr->maps == fmr->max_maps)
		err = -EINVAL;
	else if (*state == EMU_REGION_VALID && !emu_gate_try_close(&region->gate))
		err = -EBUSY;
	if (err)
		emu_region_settle(region, *state);
	return err;
}

/**
 * emu_map_phys_fmr() - map pages, under new keys
 * @ibfmr: the region; what it mapped before is unmapped by this
 * @pages: DMA addresses of the pages
 * @nr: number of @pages
 * @iova: address of the first byte, as consumers use it
 *
 * Context: Any.
 * Return: 0; -EINVAL if the list is empty or too long, an address is not that of a
 * page, the range wraps, or the region has been mapped max_maps times since it was
 * last unmapped; -EBUSY while accesses through the previous mapping are under way,
 * or if somebody else is mapping or unmapping it. After an error the region is
 * mapped as before.
 */
int emu_map_phys_fmr(struct ib_fmr *ibfmr, u64 *pages, int nr, u64 iova)
{
	struct emu_fmr *fmr = to_efmr(ibfmr);
	struct emu_region *region = &fmr->region;
	u64 length = (u64)nr << region->page_shift;
	int err, state;

	if (!emu_fmr_takes(region, pages, nr, iova) || iova + length - 1 < iova)
		return -EINVAL;
	err = emu_fmr_seize(fmr, &state);
	if (err)
		return err;
	memcpy(region->pages, pages, nr * sizeof(*pages));
	region->nr_pages = nr;
	region->iova = iova;
	region->origin = iova;
	region->length = length;
	WRITE_ONCE(region->key, ib_inc_rkey(region->key));
	fmr->maps++;
	ibfmr->lkey = region->key;
	ibfmr->rkey = region->key;
	emu_region_publish(region);
	return 0;
}

/* Keeps new accesses out. An FMR that is not mapped stays as it is. */
static void emu_fmr_close(struct emu_region *region)
{
	int state;

	do {
		state = atomic_cmpxchg(&region->state, EMU_REGION_VALID, EMU_REGION_INVALIDATING);
		cpu_relax();
	} while (state == EMU_REGION_BUSY);
	if (state == EMU_REGION_VALID)
		emu_gate_close(&region->gate);
}

int emu_unmap_fmr(struct list_head *list)
{
	struct ib_fmr *ibfmr;

	list_for_each_entry(ibfmr, list, list)
		emu_fmr_close(&to_efmr(ibfmr)->region);

	list_for_each_entry(ibfmr, list, list) {
		struct emu_fmr *fmr = to_efmr(ibfmr);

		/*
		 * It was free before, and somebody has mapped it meanwhile: not
		 * ours to close.
		 */
		if (atomic_read(&fmr->region.state) != EMU_REGION_INVALIDATING)
			continue;
		emu_gate_drain(&fmr->region.gate);
		if (!emu_region_seize_drained(&fmr->region))
			continue;
		fmr->maps = 0;
		emu_region_settle(&fmr->region, EMU_REGION_FREE);
	}
	return 0;
}

int emu_dealloc_fmr(struct ib_fmr *ibfmr)
{
	struct emu_fmr *fmr = to_efmr(ibfmr);
	int err;

	err = emu_region_del(&fmr->region);
	if (err)
		return err;
	kfree_rcu(fmr, region.rcu);
	return 0;
}
