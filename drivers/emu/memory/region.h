/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What memory keys name: regions and windows. See region.c.
 */
#ifndef KVERBS_EMU_REGION_H
#define KVERBS_EMU_REGION_H

#include <linux/sizes.h>

#include "../lib/emu.h"
#include "../lib/gate.h"
#include "../lib/outcome.h"

struct emu_backing;
struct ib_umem;

/* Page sizes of a page list, one bit for each, as in attrs.page_size_cap. */
#define EMU_PAGE_SIZES		GENMASK_ULL(31, PAGE_SHIFT)

/* What a window can grant. */
#define EMU_WINDOW_ACCESS	(IB_ACCESS_REMOTE_WRITE | IB_ACCESS_REMOTE_READ | \
				 IB_ACCESS_REMOTE_ATOMIC)

/**
 * enum emu_region_kind - what a key names
 * @EMU_REGION_DMA: all of memory, by DMA address
 * @EMU_REGION_FAST: a page list, set by IB_WR_REG_MR
 * @EMU_REGION_FMR: a page list, set by ib_map_phys_fmr()
 * @EMU_REGION_USER: memory that the midlayer got, and can take away
 * @EMU_REGION_WINDOW: a part of another region
 */
enum emu_region_kind {
	EMU_REGION_DMA,
	EMU_REGION_FAST,
	EMU_REGION_FMR,
	EMU_REGION_USER,
	EMU_REGION_WINDOW,
};

/**
 * enum emu_region_state - life of a region
 * @EMU_REGION_FREE: not registered, not bound
 * @EMU_REGION_BUSY: somebody is changing it, for a few instructions
 * @EMU_REGION_VALID: registered or bound; the gate is open, unless memory that the
 *	midlayer has got is on the move
 * @EMU_REGION_INVALIDATING: the gate is closed, accesses are on their way out
 * @EMU_REGION_DEAD: deregistered, or about to be
 * @EMU_REGION_REVOKED: the memory was taken away; the gate is closed, or about to be
 *
 * FREE -> BUSY -> VALID -> INVALIDATING -> BUSY -> FREE. FMRs also go from VALID to
 * BUSY, user regions from VALID to REVOKED, and any region from any state but BUSY
 * to DEAD. Each step is a cmpxchg, so if several want to make the same step, one of
 * them makes it; the steps out of BUSY are made by the one who made the step into
 * it.
 */
enum emu_region_state {
	EMU_REGION_FREE,
	EMU_REGION_BUSY,
	EMU_REGION_VALID,
	EMU_REGION_INVALIDATING,
	EMU_REGION_DEAD,
	EMU_REGION_REVOKED,
};

/*
 * The windows bound to a region are counted in emu_region.state, in the bits above
 * the state. The state is VALID or REVOKED as long as there are any: the other steps
 * expect none.
 */
#define EMU_REGION_STATE	7
#define EMU_REGION_ONE_WINDOW	8

/**
 * struct emu_region - what a key names
 * @gate: open while the region is valid
 * @state: enum emu_region_state, and in units of EMU_REGION_ONE_WINDOW the windows
 *	bound to it
 * @kind: what it is, and how it translates
 * @key: current key
 * @alias: for a window that a process has bound, another key that names it; or 0, see mw.c
 * @access: IB_ACCESS_* granted
 * @page_shift: log2 of the size of the pages in @pages
 * @pd: its protection domain
 * @iova: first address of the region as consumers name it
 * @origin: what they would name the first byte of the first page; if @iova is 0, this may be
 *	below 0, modulo 2^64
 * @length: bytes; @iova + @length does not wrap
 * @parent: for a bound window, the region that it is bound to
 * @base: for a bound window, the address of its first byte in @parent
 * @qpn: for a bound window of type 2, the number of the queue pair that it is for;
 *	else 0
 * @nr_pages: number of pages in use
 * @max_pages: number of pages that there is room for
 * @pages: DMA addresses of the pages
 * @backing: for a user region, what is behind its pages; used instead of @pages
 * @edev: its device
 * @rcu: for freeing it
 *
 * From @key on, every field that can change is written in state BUSY, with the gate
 * closed and empty; @key, @alias and @qpn are also read from outside the gate. The fields
 * about the pages of a user region are an exception: the midlayer lets one caller at
 * a time write them, with the gate closed and empty.
 */
struct emu_region {
	struct emu_gate gate;
	atomic_t state;
	enum emu_region_kind kind;
	u32 key;
	u32 alias;
	u32 access;
	u32 page_shift;
	struct ib_pd *pd;
	u64 iova;
	u64 origin;
	u64 length;
	struct emu_region *parent;
	u64 base;
	u32 qpn;
	u32 nr_pages;
	u32 max_pages;
	u64 *pages;
	struct emu_backing *backing;
	struct emu_device *edev;
	struct rcu_head rcu;
};

/**
 * struct emu_mr - a memory region
 * @ibmr: what the midlayer sees
 * @region: how it is reached
 * @umem: memory of a user region, if the driver and not the core holds it; else NULL
 * @virt_addr: for a user region or a list of pages, an address with the offset in a page that its
 *	first byte has
 * @next: for fast registration, the list that the next one takes in exchange for
 *	&emu_region.pages: a list is made while the region is still registered, too
 * @nr_next: entries of @next in use
 * @mapped: @next is newer than the list in the region
 */
struct emu_mr {
	struct ib_mr ibmr;
	struct emu_region region;
	struct ib_umem *umem;
	u64 virt_addr;
	u64 *next;
	u32 nr_next;
	bool mapped;
};

/**
 * struct emu_window - what a window's key names
 * @region: how it is reached
 * @type: its type
 * @first_key: the key that it was made with; 0 once it was bound by a later one
 */
struct emu_window {
	struct emu_region region;
	enum ib_mw_type type;
	u32 first_key;
};

/**
 * struct emu_mw - a memory window
 * @ibmw: what the midlayer sees
 * @window: what engines see, which is freed a grace period after @ibmw
 */
struct emu_mw {
	struct ib_mw ibmw;
	struct emu_window *window;
};

static inline struct emu_mr *to_emr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct emu_mr, ibmr);
}

static inline struct emu_mw *to_emw(struct ib_mw *ibmw)
{
	return container_of(ibmw, struct emu_mw, ibmw);
}

/**
 * struct emu_target - a region that is remembered, see target.h; belongs to an owner
 * @region: the region; never a window
 * @gen: generation of keys in which it was found; 0 for none
 * @index: index in its key
 */
struct emu_target {
	struct emu_region *region;
	unsigned long gen;
	u32 index;
};

/**
 * struct emu_reg - what an entry of a send queue with IB_WR_REG_MR wants
 * @key: new key of the region
 * @access: IB_ACCESS_*
 * @iova: first address
 * @length: bytes
 * @page_shift: log2 of the size of the pages
 */
struct emu_reg {
	u32 key;
	u32 access;
	u64 iova;
	u64 length;
	u32 page_shift;
};

/**
 * struct emu_bind - what one with IB_WR_BIND_MW wants
 * @mw_key: key of the window
 * @new_key: its next key
 * @mr_key: key of the region, which does not matter if @length is 0
 * @access: IB_ACCESS_*
 * @addr: first address
 * @length: bytes; 0 to unbind a window of type 1
 */
struct emu_bind {
	u32 mw_key;
	u32 new_key;
	u32 mr_key;
	u32 access;
	u64 addr;
	u64 length;
};

extern atomic_long_t emu_keys_gen;

/**
 * emu_keys_generation() - get the number that changes whenever a region is
 *	removed
 *
 * Context: Any.
 * Return: the number, never 0.
 */
static __always_inline unsigned long emu_keys_generation(void)
{
	/* acquire: pair A of target.h */
	return atomic_long_read_acquire(&emu_keys_gen);
}

/* region.c: for the engine */
bool emu_target_find(struct emu_target *target, struct emu_device *edev, u32 key);
void *emu_target_pages(const struct emu_region *region, u64 offset, u32 length);
struct emu_region *emu_region_enter(const struct ib_qp *qp, const struct ib_pd *pd,
				    const struct ib_sge *sge, int access,
				    enum emu_syndrome *why);
void emu_region_leave(struct emu_region *region);
enum emu_syndrome emu_region_must_leave(const struct emu_region *region);
void *emu_region_span(const struct emu_region *region, u64 addr, size_t *len);
u64 emu_region_dma(const struct emu_region *region, u64 addr);
enum emu_outcome emu_region_register(const struct ib_qp *qp, const struct emu_reg *reg,
				     enum emu_syndrome *why);
bool emu_region_is_named(const struct ib_qp *qp, u32 key);
enum emu_outcome emu_region_invalidate(const struct ib_qp *qp, u32 key, enum emu_syndrome *why);

/* region.c: for the other kinds */
int emu_region_add(struct emu_region *region, struct ib_pd *pd, enum emu_region_kind kind,
		   u32 max_pages);
int emu_region_del(struct emu_region *region);
void emu_region_revoke(struct emu_region *region);
struct emu_region *emu_region_find(const struct ib_qp *qp, u32 key, enum emu_syndrome *why);
enum emu_syndrome emu_region_closed(const struct emu_region *region);
bool emu_region_seize(struct emu_region *region, enum emu_region_state from);
enum emu_outcome emu_region_seize_free(struct emu_region *region);
bool emu_region_seize_drained(struct emu_region *region);
void emu_region_settle(struct emu_region *region, enum emu_region_state to);
void emu_region_publish(struct emu_region *region);
bool emu_region_set_range(struct emu_region *region, u64 iova, u64 virt_addr, u64 length);

/* umem_pages.c */

/**
 * struct emu_backing - the memory behind a user region, by page
 * @page_shift: log2 of the bytes in a page
 * @nr_pages: entries of @pages
 * @nr_maps: entries of @maps in use
 * @maps: mappings of the runs of memory that are not RAM; NULL if there are none
 * @pages: kernel addresses of the pages. The first and the last page need not be
 *	memory throughout, but are where the region is.
 */
struct emu_backing {
	u32 page_shift;
	u32 nr_pages;
	u32 nr_maps;
	void **maps;
	void *pages[];
};

int emu_umem_check_copy(struct ib_device *ibdev, struct ib_umem *umem);
struct emu_backing *emu_backing_create(struct emu_device *edev, struct ib_umem *umem,
				       u64 virt_addr);
void emu_backing_free(struct emu_backing *backing);

/* mr.c */
struct emu_mr *emu_mr_create(struct ib_pd *pd, enum emu_region_kind kind, u32 max_pages);
struct ib_mr *emu_get_dma_mr(struct ib_pd *pd, int access);
struct ib_mr *emu_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg);
int emu_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset);
int emu_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* umem_mr.c */
struct ib_mr *emu_reg_umem_mr(struct ib_pd *pd, struct ib_umem *umem, u64 virt_addr, int access);
struct ib_mr *emu_reg_empty_mr(struct ib_pd *pd, u64 virt_addr, int access);
void emu_open_mr(struct ib_mr *ibmr);
void emu_revoke_mr(struct ib_mr *ibmr);
void emu_pause_mr(struct ib_mr *ibmr);
int emu_resume_mr(struct ib_mr *ibmr, struct ib_umem *umem);

/* mw.c */
int emu_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int emu_dealloc_mw(struct ib_mw *ibmw);
enum emu_outcome emu_region_bind(const struct ib_qp *qp, const struct emu_bind *bind,
				 bool by_process, enum emu_syndrome *why);
bool emu_window_is_invalidatable(const struct emu_region *region);
void emu_window_unbind(struct emu_region *window);

#endif
