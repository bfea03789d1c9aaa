// SPDX-License-Identifier: GPL-2.0-only
/*
 * Regions of memory that the midlayer got and mapped: memory of a process, of
 * another device, or of a dma-buf. The memory can be taken away again.
 *
 * The midlayer serialises all calls for one region, and releases the memory after
 * the last one. From a pause until the call that ends it, and after a revocation,
 * the gate is closed and nothing leads to the memory any more: see region.c.
 */
#include <linux/slab.h>
#include <rdma/ib_umem.h>

#include "region.h"

/* Gives a region its memory. Nobody can enter the region. */
static int emu_user_attach(struct emu_mr *mr, struct ib_umem *umem)
{
	struct emu_region *region = &mr->region;
	struct emu_backing *backing;

	backing = emu_backing_create(region->edev, umem, mr->virt_addr);
	if (IS_ERR(backing))
		return PTR_ERR(backing);
	region->page_shift = backing->page_shift;
	region->nr_pages = backing->nr_pages;
	if (!emu_region_set_range(region, region->iova, mr->virt_addr, umem->length)) {
		emu_backing_free(backing);
		return -EINVAL;
	}
	region->backing = backing;
	mr->ibmr.page_size = 1UL << backing->page_shift;
	return 0;
}

/* When it returns, nobody is inside the region, and nothing leads to its memory. */
static void emu_user_detach(struct emu_region *region)
{
	emu_gate_drain(&region->gate);
	emu_backing_free(region->backing);
	region->backing = NULL;
}

static struct emu_mr *emu_user_mr_create(struct ib_pd *pd, u64 virt_addr, int access)
{
	struct emu_mr *mr;

	mr = emu_mr_create(pd, EMU_REGION_USER, 0);
	if (IS_ERR(mr))
		return mr;
	mr->virt_addr = virt_addr;
	mr->region.iova = access & IB_ZERO_BASED ? 0 : virt_addr;
	mr->region.access = access;
	mr->ibmr.iova = mr->region.iova;
	return mr;
}

struct ib_mr *emu_reg_umem_mr(struct ib_pd *pd, struct ib_umem *umem, u64 virt_addr, int access)
{
	struct emu_mr *mr = emu_user_mr_create(pd, virt_addr, access);
	int err;

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	err = emu_user_attach(mr, umem);
	if (err) {
		emu_dereg_mr(&mr->ibmr, NULL);
		return ERR_PTR(err);
	}
	mr->ibmr.length = umem->length;
	return &mr->ibmr;
}

/**
 * emu_reg_empty_mr() - make a region without memory
 * @pd: its domain
 * @virt_addr: where it begins, and ends
 * @access: enum ib_access_flags
 *
 * Its keys are good for messages without data, and no others. As emu_reg_umem_mr(), it is
 * not valid before emu_open_mr().
 *
 * Context: Process.
 * Return: the region, or an ERR_PTR: -ENOMEM.
 */
struct ib_mr *emu_reg_empty_mr(struct ib_pd *pd, u64 virt_addr, int access)
{
	struct emu_mr *mr = emu_user_mr_create(pd, virt_addr, access);

	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ibmr;
}

void emu_open_mr(struct ib_mr *ibmr)
{
	struct emu_region *region = &to_emr(ibmr)->region;

	emu_region_seize(region, EMU_REGION_FREE);
	emu_region_publish(region);
}

void emu_revoke_mr(struct ib_mr *ibmr)
{
	struct emu_region *region = &to_emr(ibmr)->region;

	emu_region_revoke(region);
	emu_user_detach(region);
}

void emu_pause_mr(struct ib_mr *ibmr)
{
	emu_user_detach(&to_emr(ibmr)->region);
}

int emu_resume_mr(struct ib_mr *ibmr, struct ib_umem *umem)
{
	struct emu_mr *mr = to_emr(ibmr);
	int err;

	err = emu_user_attach(mr, umem);
	if (!err)
		emu_gate_open(&mr->region.gate);
	return err;
}
