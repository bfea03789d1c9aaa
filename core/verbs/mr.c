// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory regions for fast registration, freeing regions of any kind, and
 * scatter lists as page lists. reg_mem.c makes regions of memory.
 *
 * Lock protocol: none. A region belongs to its consumer; the count of its PD
 * is atomic. The driver allocates and frees regions.
 */
#include <linux/err.h>
#include <linux/export.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "../contract/contract.h"
#include "../contract/invalid.h"
#include "../memory/umem.h"
#include "verbs.h"

/* Checks a region that @method has made: at most one of its keys may be 0. */
void ib_mr_need_key(const struct ib_device *device, const struct ib_mr *mr, const char *method,
		    unsigned long site)
{
	if (!mr->lkey && !mr->rkey)
		ib_output_missing(device, NULL, method, "returned no key", site);
}

/* Sets what the core keeps in a region, before other driver methods can be called for it. */
void ib_mr_fill(struct ib_mr *mr, struct ib_pd *pd, enum ib_mr_type type, struct ib_umem *umem)
{
	mr->device = pd->device;
	mr->pd = pd;
	mr->type = type;
	mr->uobject = NULL;
	mr->dm = NULL;
	mr->need_inval = false;
	mr->sig_attrs = NULL;
	mr->umem = umem;
}

/* Lists a region that ib_mr_fill() was called for, and counts it in its PD. */
void ib_mr_list(struct ib_mr *mr, unsigned long site)
{
	struct ib_pd *pd = mr->pd;

	atomic_inc(&pd->usecnt);
	rdma_restrack_new(&mr->res, RDMA_RESTRACK_MR);
	rdma_restrack_set_maker(&mr->res, pd->res.kern_name, site);
	rdma_restrack_add(&mr->res);
}

/*
 * Fills in and lists a region that a driver has made. In one go, because it has no memory yet
 * whose owner could have it revoked meanwhile.
 */
static void present_new(struct ib_mr *mr, struct ib_pd *pd, enum ib_mr_type type,
			const char *method, unsigned long site)
{
	ib_mr_fill(mr, pd, type, NULL);
	ib_mr_need_key(pd->device, mr, method, site);
	ib_mr_list(mr, site);
}

/* As ib_check_mr_access(), and logs what is wrong with the flags. */
int ib_mr_check_access(const struct ib_verb_call *call, struct ib_device *device, int access)
{
	int ret = ib_check_mr_access(device, access);

	if (ret != -EINVAL)
		return ret;
	if (access & ~IB_ACCESS_SUPPORTED)
		return ib_invalid(call, "access flags %#x: %#x are unknown", access,
				  access & ~IB_ACCESS_SUPPORTED);
	return ib_invalid(call, "access flags %#x: remote write and atomic need local write",
			  access);
}

/**
 * ib_alloc_mr() - make a memory region for fast registration
 * @pd: PD of the region
 * @mr_type: %IB_MR_TYPE_MEM_REG or %IB_MR_TYPE_SG_GAPS
 * @max_num_sg: pages, or scatter entries, that it can hold
 *
 * Its keys are not valid until it is filled with ib_map_mr_sg() and registered
 * with %IB_WR_REG_MR.
 *
 * Context: Process.
 * Return: the region; -EOPNOTSUPP if the device has no fast registration,
 * -EINVAL for another type, or an error of the driver: -EINVAL or -ENOMEM for
 * too large a @max_num_sg.
 */
struct ib_mr *ib_alloc_mr(struct ib_pd *pd, enum ib_mr_type mr_type,
			  u32 max_num_sg)
{
	const struct ib_verb_call call = {
		.dev = pd->device, .res = &pd->res, .what = "alloc_mr",
	};
	const struct ib_device_ops *ops = &pd->device->ops;
	struct ib_mr *mr;

	if (!ops->alloc_mr || !ops->map_mr_sg)
		return ERR_PTR(-EOPNOTSUPP);
	if (mr_type != IB_MR_TYPE_MEM_REG && mr_type != IB_MR_TYPE_SG_GAPS)
		return ERR_PTR(ib_invalid(&call, "mr_type %d: must be MEM_REG or SG_GAPS",
					  mr_type));

	mr = IB_METHOD(pd->device, NULL, "alloc_mr", ops->alloc_mr(pd, mr_type, max_num_sg));
	mr = IB_OUTPUT(pd->device, "alloc_mr", _RET_IP_, mr);
	if (IS_ERR(mr))
		ib_refused(&call, PTR_ERR(mr), "max_num_sg %u of %u", max_num_sg,
			   pd->device->attrs.max_fast_reg_page_list_len);
	else
		present_new(mr, pd, mr_type, "alloc_mr", _RET_IP_);
	return mr;
}
EXPORT_SYMBOL(ib_alloc_mr);

/**
 * ib_alloc_mr_integrity() - make a region for data with its protection
 * @pd: PD of the region
 * @max_num_data_sg: scatter entries of data
 * @max_num_meta_sg: scatter entries of protection information
 *
 * Context: Process.
 * Return: the region; -EOPNOTSUPP if the device has no such regions, -EINVAL
 * if @max_num_meta_sg is 0, -ENOMEM, or an error of the driver.
 */
struct ib_mr *ib_alloc_mr_integrity(struct ib_pd *pd, u32 max_num_data_sg,
				    u32 max_num_meta_sg)
{
	const struct ib_verb_call call = {
		.dev = pd->device, .res = &pd->res, .what = "alloc_mr_integrity",
	};
	const struct ib_device_ops *ops = &pd->device->ops;
	struct ib_sig_attrs *sig_attrs;
	struct ib_mr *mr;

	if (!ops->alloc_mr_integrity || !ops->map_mr_sg_pi)
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_meta_sg)
		return ERR_PTR(ib_invalid(&call, "max_num_meta_sg 0: must be at least 1"));

	sig_attrs = kzalloc(sizeof(*sig_attrs), GFP_KERNEL);
	if (!sig_attrs)
		return ERR_PTR(-ENOMEM);

	mr = IB_METHOD(pd->device, NULL, "alloc_mr_integrity",
		       ops->alloc_mr_integrity(pd, max_num_data_sg, max_num_meta_sg));
	mr = IB_OUTPUT(pd->device, "alloc_mr_integrity", _RET_IP_, mr);
	if (IS_ERR(mr)) {
		ib_refused(&call, PTR_ERR(mr), "max_num_data_sg %u, max_num_meta_sg %u",
			   max_num_data_sg, max_num_meta_sg);
		kfree(sig_attrs);
		return mr;
	}
	present_new(mr, pd, IB_MR_TYPE_INTEGRITY, "alloc_mr_integrity", _RET_IP_);
	mr->sig_attrs = sig_attrs;
	return mr;
}
EXPORT_SYMBOL(ib_alloc_mr_integrity);

/* ib_dereg_mr_user() on behalf of the caller at @site. */
int ib_mr_free(struct ib_mr *mr, struct ib_udata *udata, unsigned long site)
{
	const struct ib_verb_call call = {
		.dev = mr->device, .res = &mr->res, .what = "dereg_mr",
	};
	struct ib_sig_attrs *sig_attrs = mr->sig_attrs;
	struct ib_device *device = mr->device;
	struct ib_umem *umem = mr->umem;
	struct ib_pd *pd = mr->pd;
	struct ib_tracked tracked;
	int ret;

	tracked = rdma_restrack_del(&mr->res);
	ret = IB_IN_FRAME(mr->device, &mr->res, "dereg_mr", IB_FRAME_METHOD, site,
			  umem ? umem_end_mr(umem, udata) :
				 mr->device->ops.dereg_mr(mr, udata));
	if (ret) {
		rdma_restrack_readd(&mr->res);
		/*
		 * Only the driver knows of windows, and drivers refuse with either error. A
		 * process may free a region in use: it gets the error, but that is not reported.
		 */
		if ((ret == -EBUSY || ret == -EINVAL) && !mr->res.user &&
		    !ib_contract_is_ours(site))
			ib_contract_report(IB_RULE_BUSY, mr->device, &mr->res,
					   ib_contract_culprit(site), site, 1,
					   "destroyed while the driver uses it");
		return ib_refused(&call, ret, "is a memory window bound to it?");
	}
	rdma_restrack_forget(device, RDMA_RESTRACK_MR, tracked);
	ib_umem_release(umem);
	kfree(sig_attrs);
	atomic_dec(&pd->usecnt);
	return 0;
}

/**
 * ib_dereg_mr_user() - free a memory region
 * @mr: the region
 * @udata: the process's request, or NULL
 *
 * Context: Process.
 * Return: 0, or an error of the driver, for instance while a memory window is
 * bound to the region; then the region still exists.
 */
int ib_dereg_mr_user(struct ib_mr *mr, struct ib_udata *udata)
{
	return ib_mr_free(mr, udata, _RET_IP_);
}
EXPORT_SYMBOL(ib_dereg_mr_user);

/**
 * ib_advise_mr() - tell a device which memory of regions will be used
 * @pd: PD of the regions
 * @advice: how it will be used
 * @flags: IB_UVERBS_ADVISE_MR_FLAG_*
 * @sg_list: the memory, by local keys
 * @num_sge: number of its parts
 *
 * Context: Process, may sleep.
 * Return: 0; -EOPNOTSUPP if the device takes no advice; or an error of the
 * driver.
 */
int ib_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice, u32 flags,
		 struct ib_sge *sg_list, u32 num_sge)
{
	const struct ib_device_ops *ops = &pd->device->ops;

	if (!ops->advise_mr)
		return -EOPNOTSUPP;
	if (!num_sge)
		return 0;
	return IB_METHOD(pd->device, &pd->res, "advise_mr",
			 ops->advise_mr(pd, advice, flags, sg_list, num_sge, NULL));
}
EXPORT_SYMBOL(ib_advise_mr);

/**
 * ib_map_mr_sg() - fill a region with a DMA-mapped scatter list
 * @mr: the region; while it is registered, the list is for its next registration
 * @sg: the list
 * @sg_nents: its entries, as ib_dma_map_sg() returned them
 * @sg_offset: bytes to leave out at the start; on return, bytes of the entry
 *	after the last mapped one that were mapped. May be NULL for 0.
 * @page_size: bytes, a power of two
 *
 * Maps the longest possible start of the list. It ends where the region is
 * full and, unless the type is %IB_MR_TYPE_SG_GAPS, before a gap: an entry
 * must begin on a page boundary or go on where the one before ended, and only
 * the last may end off a boundary. Sets ib_mr.iova and ib_mr.length.
 *
 * Context: Any.
 * Return: entries that were mapped as a whole; -EOPNOTSUPP if the device has
 * no fast registration; -EINVAL or another error of the driver if nothing
 * could be mapped.
 */
int ib_map_mr_sg(struct ib_mr *mr, struct scatterlist *sg, int sg_nents,
		 unsigned int *sg_offset, unsigned int page_size)
{
	if (!mr->device->ops.map_mr_sg)
		return -EOPNOTSUPP;

	mr->page_size = page_size;
	return IB_ATOMIC_METHOD(mr->device, &mr->res, "map_mr_sg",
				mr->device->ops.map_mr_sg(mr, sg, sg_nents, sg_offset));
}
EXPORT_SYMBOL(ib_map_mr_sg);

/**
 * ib_map_mr_sg_pi() - fill a region with data and protection information
 * @mr: the region, of type %IB_MR_TYPE_INTEGRITY
 * @data_sg: DMA-mapped list of data
 * @data_sg_nents: its entries
 * @data_sg_offset: bytes to leave out at its start, or NULL
 * @meta_sg: DMA-mapped list of protection information, or NULL
 * @meta_sg_nents: its entries
 * @meta_sg_offset: bytes to leave out at its start, or NULL
 * @page_size: bytes, a power of two
 *
 * Context: Any.
 * Return: 0, meaning that both lists were mapped as a whole; -EOPNOTSUPP if
 * the device has no such regions, -EINVAL for another type of region, or an
 * error of the driver.
 */
int ib_map_mr_sg_pi(struct ib_mr *mr, struct scatterlist *data_sg,
		    int data_sg_nents, unsigned int *data_sg_offset,
		    struct scatterlist *meta_sg, int meta_sg_nents,
		    unsigned int *meta_sg_offset, unsigned int page_size)
{
	const struct ib_verb_call call = {
		.dev = mr->device, .res = &mr->res, .what = "map_mr_sg_pi",
	};

	if (!mr->device->ops.map_mr_sg_pi)
		return -EOPNOTSUPP;
	if (mr->type != IB_MR_TYPE_INTEGRITY)
		return ib_invalid(&call, "the region has type %d, not IB_MR_TYPE_INTEGRITY",
				  mr->type);

	mr->page_size = page_size;
	return IB_ATOMIC_METHOD(mr->device, &mr->res, "map_mr_sg_pi",
				mr->device->ops.map_mr_sg_pi(mr, data_sg, data_sg_nents,
							     data_sg_offset, meta_sg,
							     meta_sg_nents, meta_sg_offset));
}
EXPORT_SYMBOL(ib_map_mr_sg_pi);

/*
 * Finds the first page of an entry that the entry before has not covered
 * already. Returns false if there is a gap between the two.
 */
static bool next_page(u64 start, u64 last_end, u64 page_size, u64 *page)
{
	if (start == last_end) {
		*page = ALIGN(start, page_size);
		return true;
	}
	*page = start;
	return IS_ALIGNED(start, page_size) && IS_ALIGNED(last_end, page_size);
}

static __cold int bad_sg(const struct ib_mr *mr, struct scatterlist *sgl, int sg_nents,
			 unsigned int skip)
{
	const struct ib_verb_call call = {
		.dev = mr->device, .res = &mr->res, .what = "map_mr_sg",
	};

	if (sg_nents <= 0)
		return ib_invalid(&call, "sg_nents %d: must be at least 1", sg_nents);
	if (!is_power_of_2(mr->page_size))
		return ib_invalid(&call, "page_size %u is not a power of 2", mr->page_size);
	return ib_invalid(&call, "sg_offset %u > %u, the length of the first entry", skip,
			  sg_dma_len(sgl));
}

/**
 * ib_sg_to_pages() - turn a scatter list into a list of pages
 * @mr: the region; ib_mr.page_size is set, iova and length are filled in
 * @sgl: DMA-mapped list
 * @sg_nents: its entries
 * @sg_offset: as in ib_map_mr_sg()
 * @set_page: takes the DMA address of the next page; an error ends the list
 *
 * For a driver's map_mr_sg method: does what ib_map_mr_sg() promises.
 *
 * Context: Any.
 * Return: entries that were mapped as a whole, 0 if none of them has a byte;
 * -EINVAL if there are no entries, for an offset beyond the first entry or a
 * page size that is no power of two; the error of @set_page if nothing could
 * be mapped.
 */
int ib_sg_to_pages(struct ib_mr *mr, struct scatterlist *sgl, int sg_nents,
		   unsigned int *sg_offset,
		   int (*set_page)(struct ib_mr *mr, u64 addr))
{
	unsigned int skip = sg_offset ? *sg_offset : 0;
	u64 start, end, page, last_end = 0;
	u64 page_size = mr->page_size;
	struct scatterlist *sg;
	int i, ret = 0;

	if (sg_nents <= 0 || skip > sg_dma_len(sgl) ||
	    !is_power_of_2(mr->page_size))
		return bad_sg(mr, sgl, sg_nents, skip);

	mr->length = 0;

	for_each_sg(sgl, sg, sg_nents, i) {
		start = sg_dma_address(sg) + skip;
		end = sg_dma_address(sg) + sg_dma_len(sg);
		skip = 0;
		if (start == end)
			continue;
		if (!mr->length) {
			mr->iova = start;
			page = ALIGN_DOWN(start, page_size);
		} else if (!next_page(start, last_end, page_size, &page)) {
			break;
		}

		for (; page < end; page += page_size) {
			ret = set_page(mr, page);
			if (ret < 0)
				break;
		}
		last_end = clamp(page, start, end);
		mr->length += last_end - start;
		if (last_end < end) {
			skip = last_end - sg_dma_address(sg);
			break;
		}
	}

	if (sg_offset)
		*sg_offset = skip;
	return mr->length ? i : min(ret, 0);
}
EXPORT_SYMBOL(ib_sg_to_pages);

/**
 * ib_check_mr_status() - ask for the result of integrity checks
 * @mr: the region, of type %IB_MR_TYPE_INTEGRITY
 * @check_mask: &enum ib_mr_status_check
 * @mr_status: filled in
 *
 * Context: Any.
 * Return: 0, -EOPNOTSUPP if the device has no such regions, or an error of
 * the driver.
 */
int ib_check_mr_status(struct ib_mr *mr, u32 check_mask,
		       struct ib_mr_status *mr_status)
{
	if (!mr->device->ops.check_mr_status)
		return -EOPNOTSUPP;
	return IB_ATOMIC_METHOD(mr->device, &mr->res, "check_mr_status",
				mr->device->ops.check_mr_status(mr, check_mask, mr_status));
}
EXPORT_SYMBOL(ib_check_mr_status);
