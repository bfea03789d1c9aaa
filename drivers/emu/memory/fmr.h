/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Fast memory regions, which kverbs' own core has. See fmr.c.
 */
#ifndef KVERBS_EMU_FMR_H
#define KVERBS_EMU_FMR_H

#include "region.h"

/*
 * Maximum number of mappings of an FMR between two unmaps. With one more, a key
 * would be used again.
 */
#define EMU_MAX_FMR_MAPS	((1 << EMU_KEY_SHIFT) - 1)

/**
 * struct emu_fmr - a fast memory region
 * @ibfmr: what the midlayer sees
 * @region: how it is reached
 * @max_maps: maximum number of mappings between two unmaps
 * @maps: mappings since the last unmap; written in state BUSY
 */
struct emu_fmr {
	struct ib_fmr ibfmr;
	struct emu_region region;
	u32 max_maps;
	u32 maps;
};

static inline struct emu_fmr *to_efmr(struct ib_fmr *ibfmr)
{
	return container_of(ibfmr, struct emu_fmr, ibfmr);
}

struct ib_fmr *emu_alloc_fmr(struct ib_pd *pd, int access, struct ib_fmr_attr *attr);
int emu_map_phys_fmr(struct ib_fmr *ibfmr, u64 *pages, int nr, u64 iova);
int emu_unmap_fmr(struct list_head *list);
int emu_dealloc_fmr(struct ib_fmr *ibfmr);

#endif
