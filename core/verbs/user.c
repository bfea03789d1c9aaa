// SPDX-License-Identifier: GPL-2.0-only
/*
 * Other support for processes: the requests that a device accepts from them, and memory that a
 * driver lets a process map, which is most of this file.
 *
 * A context has a table from the first page offset to the entry, in &ib_ucontext.mmap_xa. Entries
 * do not overlap. A process maps an entry as a whole, so only its first offset is looked up.
 *
 * Lock protocol: a table's own lock guards the table and &ib_ucontext.mmap_next, and orders lookups
 * and removals: an entry is looked at under it alone, and whoever wants it takes a reference unless
 * none is left, or the driver has removed it. Finding a place and taking it are one step under it.
 * An entry keeps its place until its last reference is put.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/ib_verbs.h>

#include "verbs.h"

/* Requests whose methods every driver has, or that can be refused without one. */
#define REQUEST(name) BIT_ULL(IB_USER_VERBS_CMD_ ## name)
const u64 ib_user_requests =
	REQUEST(GET_CONTEXT) | REQUEST(QUERY_DEVICE) | REQUEST(QUERY_PORT) |
	REQUEST(CREATE_COMP_CHANNEL) |
	REQUEST(ALLOC_PD) | REQUEST(DEALLOC_PD) |
	REQUEST(OPEN_XRCD) | REQUEST(CLOSE_XRCD) |
	REQUEST(REG_MR) | REQUEST(REREG_MR) | REQUEST(DEREG_MR) |
	REQUEST(ALLOC_MW) | REQUEST(DEALLOC_MW) |
	REQUEST(CREATE_AH) | REQUEST(DESTROY_AH) |
	REQUEST(CREATE_CQ) | REQUEST(RESIZE_CQ) | REQUEST(DESTROY_CQ) |
	REQUEST(CREATE_SRQ) | REQUEST(CREATE_XSRQ) | REQUEST(MODIFY_SRQ) |
	REQUEST(QUERY_SRQ) | REQUEST(DESTROY_SRQ) |
	REQUEST(CREATE_QP) | REQUEST(OPEN_QP) | REQUEST(MODIFY_QP) |
	REQUEST(QUERY_QP) | REQUEST(DESTROY_QP) |
	REQUEST(ATTACH_MCAST) | REQUEST(DETACH_MCAST);

/*
 * Returns the first page offset at or after @first where @npages pages are free. @from: offset of
 * the first entry that can reach beyond @first.
 */
static u64 find_free_pgoff(struct xarray *xa, u64 from, u64 first, u64 npages)
{
	const struct rdma_user_mmap_entry *entry;
	unsigned long index;

	lockdep_assert_held(&xa->xa_lock);
	xa_for_each_start(xa, index, entry, from) {
		if (index >= first + npages)
			break;
		if (index + entry->npages > first)
			first = index + entry->npages;
	}
	return first;
}

/* Returns a free offset in the range, or one whose pages do not end in it if it is full. */
static u64 choose_pgoff(struct ib_ucontext *ucontext, u64 npages, u64 min, u64 max)
{
	u64 next = ucontext->mmap_next, first;

	/*
	 * Behind the entry that was inserted last, mostly: no other reaches beyond its end. Else a
	 * process with many would make each insertion slower than the one before.
	 */
	if (next > min) {
		first = find_free_pgoff(&ucontext->mmap_xa, next, next, npages);
		if (first + npages - 1 <= max)
			return first;
	}
	return find_free_pgoff(&ucontext->mmap_xa, 0, min, npages);
}

/* Sets the error of @xas if no offset is free, or there is no memory for the table. */
static void insert_at_free_pgoff(struct xa_state *xas, struct rdma_user_mmap_entry *entry,
				 u64 min, u64 max)
{
	struct ib_ucontext *ucontext = entry->ucontext;
	u64 first = choose_pgoff(ucontext, entry->npages, min, max);

	if (first + entry->npages - 1 > max) {
		xas_set_err(xas, -ENOSPC);
		return;
	}
	entry->start_pgoff = first;
	xas_set(xas, first);
	xas_store(xas, entry);
	if (xas_error(xas))
		return;
	/* uverbs makes the table as one that keeps track of free slots. */
	xas_clear_mark(xas, XA_FREE_MARK);
	ucontext->mmap_next = first + entry->npages;
}

/**
 * rdma_user_mmap_entry_insert_range() - let a process map memory, at an offset in a range
 * @ucontext: context of the process
 * @entry: zeroed; what the driver's mmap method will find
 * @length: bytes, more than 0
 * @min_pgoff: first page offset of the range
 * @max_pgoff: last one
 *
 * Context: Process, may sleep.
 * Return: 0; -ENOMEM, also if there is no room in the range.
 */
int rdma_user_mmap_entry_insert_range(struct ib_ucontext *ucontext,
				      struct rdma_user_mmap_entry *entry, size_t length,
				      u32 min_pgoff, u32 max_pgoff)
{
	XA_STATE(xas, &ucontext->mmap_xa, 0);

	kref_init(&entry->ref);
	entry->ucontext = ucontext;
	entry->npages = DIV_ROUND_UP(length, PAGE_SIZE);
	/* Memory for the table is allocated without the lock: then the place may be taken. */
	do {
		xas_lock(&xas);
		insert_at_free_pgoff(&xas, entry, min_pgoff, max_pgoff);
		xas_unlock(&xas);
	} while (xas_nomem(&xas, GFP_KERNEL_ACCOUNT));
	return xas_error(&xas) ? -ENOMEM : 0;
}
EXPORT_SYMBOL(rdma_user_mmap_entry_insert_range);

/**
 * rdma_user_mmap_entry_insert() - let a process map memory
 * @ucontext: context of the process
 * @entry: zeroed; what the driver's mmap method will find
 * @length: bytes, more than 0
 *
 * Context: Process, may sleep.
 * Return: as rdma_user_mmap_entry_insert_range().
 */
int rdma_user_mmap_entry_insert(struct ib_ucontext *ucontext, struct rdma_user_mmap_entry *entry,
				size_t length)
{
	return rdma_user_mmap_entry_insert_range(ucontext, entry, length, 0, U32_MAX);
}
EXPORT_SYMBOL(rdma_user_mmap_entry_insert);

/**
 * rdma_user_mmap_entry_get_pgoff() - find what a process may map at an offset
 * @ucontext: context of the process
 * @pgoff: the offset in pages
 *
 * Context: Process.
 * Return: the entry, to be given back with rdma_user_mmap_entry_put(); or %NULL.
 */
struct rdma_user_mmap_entry *rdma_user_mmap_entry_get_pgoff(struct ib_ucontext *ucontext,
							    unsigned long pgoff)
{
	struct rdma_user_mmap_entry *entry;

	xa_lock(&ucontext->mmap_xa);
	entry = xa_load(&ucontext->mmap_xa, pgoff);
	if (entry && (entry->driver_removed || !kref_get_unless_zero(&entry->ref)))
		entry = NULL;
	xa_unlock(&ucontext->mmap_xa);
	return entry;
}
EXPORT_SYMBOL(rdma_user_mmap_entry_get_pgoff);

/**
 * rdma_user_mmap_entry_get() - find what a process is about to map
 * @ucontext: context of the process
 * @vma: the mapping
 *
 * Context: Process.
 * Return: the entry, to be given back with rdma_user_mmap_entry_put(); %NULL if there is none at
 * that offset, or the mapping is not shared, or not as long as the entry.
 */
struct rdma_user_mmap_entry *rdma_user_mmap_entry_get(struct ib_ucontext *ucontext,
						      struct vm_area_struct *vma)
{
	struct rdma_user_mmap_entry *entry;

	if (!(vma->vm_flags & VM_SHARED))
		return NULL;
	entry = rdma_user_mmap_entry_get_pgoff(ucontext, vma->vm_pgoff);
	if (entry && entry->npages != vma_pages(vma)) {
		rdma_user_mmap_entry_put(entry);
		entry = NULL;
	}
	return entry;
}
EXPORT_SYMBOL(rdma_user_mmap_entry_get);

static void free_entry(struct kref *ref)
{
	struct rdma_user_mmap_entry *entry = container_of(ref, struct rdma_user_mmap_entry, ref);
	struct ib_ucontext *ucontext = entry->ucontext;

	xa_erase(&ucontext->mmap_xa, entry->start_pgoff);
	if (ucontext->device->ops.mmap_free)
		ucontext->device->ops.mmap_free(entry);
}

/**
 * rdma_user_mmap_entry_put() - give an entry back
 * @entry: the entry; the driver's mmap_free method is called if this is the last reference
 *
 * Context: Process.
 */
void rdma_user_mmap_entry_put(struct rdma_user_mmap_entry *entry)
{
	kref_put(&entry->ref, free_entry);
}
EXPORT_SYMBOL(rdma_user_mmap_entry_put);

/**
 * rdma_user_mmap_entry_remove() - stop processes from mapping an entry
 * @entry: the entry, or %NULL; what is mapped stays mapped
 *
 * Context: Process.
 */
void rdma_user_mmap_entry_remove(struct rdma_user_mmap_entry *entry)
{
	if (!entry)
		return;
	xa_lock(&entry->ucontext->mmap_xa);
	entry->driver_removed = true;
	xa_unlock(&entry->ucontext->mmap_xa);
	rdma_user_mmap_entry_put(entry);
}
EXPORT_SYMBOL(rdma_user_mmap_entry_remove);
